//! The scenario's links for the emulator, and what happens to them.

use anabranch_live::{BytesPacket, Pipes, Script, Step, Ways, When};
use anabranch_network::{Change, Direction};
use anabranch_scenario::{Action, Event, Scenario, link_directions};
use anabranch_units::{Instant, PathId};

/// The scenario's links in its order. They are made as the simulator makes them and draw from the same streams, so with the same seed they
/// treat the same packets alike.
pub fn links(scenario: &Scenario, seed: u64) -> Vec<Pipes> {
    let mut directions = link_directions::<BytesPacket>(scenario, seed).into_iter().map(|link| link.direction);
    let pair =
        |directions: &mut dyn Iterator<Item = Direction<BytesPacket>>| Some((directions.next()?, directions.next()?));
    let pairs = std::iter::from_fn(|| pair(&mut directions));
    pairs.map(|(down, up)| Pipes { up, down, middlebox: Default::default() }).collect()
}

/// What happens to the links.
pub(crate) fn script(scenario: &Scenario) -> Script {
    Script::new(scenario.events.iter().flat_map(|event| steps(scenario, event)))
}

fn steps(scenario: &Scenario, event: &Event) -> Vec<Step> {
    let Action::Link { link, cut, down, up } = event.action(scenario) else { return Vec::new() };
    let when = When::At(Instant::ZERO + event.at);
    let path = PathId(link as u16);
    let changes =
        |of: Option<&anabranch_scenario::Direction>| of.map_or_else(Vec::new, anabranch_scenario::Direction::changes);
    let of = |changes: Vec<Change>, way| changes.into_iter().map(move |change| Step { when, path, way, change });
    let cut = cut.map(|cut| Change::Up(!cut));
    of(changes(down), Ways::Down)
        .chain(of(changes(up), Ways::Up))
        .chain(of(cut.into_iter().collect(), Ways::Both))
        .collect()
}

/// When which path's interface goes away or comes back: time, position of the path, whether it is up.
pub(crate) fn interface_events(scenario: &Scenario) -> Vec<(Instant, usize, bool)> {
    let changes = scenario.events.iter().filter_map(|event| match event.action(scenario) {
        Action::Path { path, down } => Some((Instant::ZERO + event.at, path, !down)),
        Action::Link { .. } => None,
    });
    changes.collect()
}
