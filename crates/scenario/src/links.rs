//! The links of a scenario as parts of `anabranch-network`.

use crate::schema::Scenario;
use anabranch_network::{Direction, Packet, Streams};
use anabranch_units::LinkDirection;

/// One direction of a link, ready to carry packets.
pub struct DirectedLink<P> {
    /// The link's name.
    pub name: String,
    /// Which of its directions this is.
    pub direction: LinkDirection,
    /// Its rate, queue, delay and losses at work.
    pub link: Direction<P>,
}

/// Every direction of every link, two per link, in the order of [`LinkDirection::BOTH`]. With the same seed they treat
/// the same packets alike, whatever carries them.
pub fn directed_links<P: Packet>(scenario: &Scenario, seed: u64) -> Vec<DirectedLink<P>> {
    let both = scenario.links.iter().flat_map(|link| LinkDirection::BOTH.map(|direction| (link, direction)));
    let directed = both.map(|(link, direction)| {
        let streams = Streams::new(seed, format!("link/{}/{direction}", link.name));
        let config = link.of(direction).config();
        DirectedLink { name: link.name.clone(), direction, link: Direction::new(&config, streams) }
    });
    directed.collect()
}
