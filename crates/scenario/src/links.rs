//! The links of a scenario as parts of `anabranch-network`.

use crate::schema::Scenario;
use anabranch_network::{Direction, Packet, Streams};

/// One direction of a link, ready to carry packets.
pub struct DirectedLink<P> {
    /// The link's name.
    pub link: String,
    /// Whether it leads to the client (the downlink).
    pub down: bool,
    /// Its rate, queue, delay and losses at work.
    pub direction: Direction<P>,
}

/// Every direction of every link, two per link: down, up. With the same seed they treat the same packets alike, whatever
/// carries them.
pub fn directed_links<P: Packet>(scenario: &Scenario, seed: u64) -> Vec<DirectedLink<P>> {
    let both = scenario.links.iter().flat_map(|link| [(&link.name, true, &link.down), (&link.name, false, &link.up)]);
    let direction = |(name, down, spec): (&String, bool, &crate::schema::DirectionSpec)| {
        let suffix = if down { "down" } else { "up" };
        let streams = Streams::new(seed, format!("link/{name}/{suffix}"));
        DirectedLink { link: name.clone(), down, direction: Direction::new(&spec.config(), streams) }
    };
    both.map(direction).collect()
}
