//! The scenario's links for the emulator, and their changes.

use anabranch_network::Direction;
use anabranch_scenario::{Action, Event, Scenario, directed_links};
use anabranch_testnet::{BytesPacket, Pipes, Script, Step, When};
use anabranch_units::{Instant, LinkDirection, PathId};

/// The scenario's links in its order. They are built as in the simulator and draw from the same streams, so with the
/// same seed they treat the same packets alike.
pub fn links(scenario: &Scenario, seed: u64) -> Vec<Pipes> {
    let mut directions = directed_links::<BytesPacket>(scenario, seed).into_iter().map(|directed| directed.link);
    let pair =
        |directions: &mut dyn Iterator<Item = Direction<BytesPacket>>| Some((directions.next()?, directions.next()?));
    let pairs = std::iter::from_fn(|| pair(&mut directions));
    pairs.map(|(down, up)| Pipes { up, down, middlebox: Default::default() }).collect()
}

/// The scheduled changes of the links.
pub(crate) fn script(scenario: &Scenario) -> Script {
    Script::new(scenario.events.iter().flat_map(|event| steps(scenario, event)))
}

fn steps(scenario: &Scenario, event: &Event) -> Vec<Step> {
    let action = event.action(scenario);
    let Action::Link { link, .. } = action else { return Vec::new() };
    let (when, path) = (When::At(Instant::ZERO + event.at), PathId(link as u16));
    let of = |direction: &'static LinkDirection| {
        let changes = action.changes(*direction).into_iter();
        changes.map(move |change| Step { when, path, directions: std::slice::from_ref(direction), change })
    };
    LinkDirection::BOTH.iter().flat_map(of).collect()
}

/// The scheduled changes of the interfaces: time, index of the path, whether it is up.
pub(crate) fn interface_events(scenario: &Scenario) -> Vec<(Instant, usize, bool)> {
    let changes = scenario.events.iter().filter_map(|event| match event.action(scenario) {
        Action::Path { path, down } => Some((Instant::ZERO + event.at, path, !down)),
        Action::Link { .. } | Action::Session { .. } => None,
    });
    changes.collect()
}
