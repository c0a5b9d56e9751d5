//! The links of a scenario as parts of `anabranch-network`.

use crate::scenario::Scenario;
use anabranch_network::{Direction, Packet, Streams};

/// One direction of a link.
pub struct Line<P> {
    /// The link's name.
    pub name: String,
    /// Towards the client.
    pub down: bool,
    /// What it does to packets.
    pub direction: Direction<P>,
}

/// Every direction of every link, two per link: down, up. With the same seed they treat the same packets alike, whatever carries them.
pub fn lines<P: Packet>(scenario: &Scenario, seed: u64) -> Vec<Line<P>> {
    let both = scenario.links.iter().flat_map(|link| [(&link.name, true, &link.down), (&link.name, false, &link.up)]);
    let line = |(name, down, spec): (&String, bool, &crate::scenario::Direction)| {
        let way = if down { "down" } else { "up" };
        let streams = Streams::new(seed, format!("link/{name}/{way}"));
        Line { name: name.clone(), down, direction: Direction::new(&spec.config(), streams) }
    };
    both.map(line).collect()
}
