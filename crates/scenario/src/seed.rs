//! What a scenario leaves to the run's seed.

use crate::schema::{DirectionSpec, Offset, Rate, Scenario, Trace};
use anabranch_network::Streams;
use rand_chacha::rand_core::Rng as _;
use std::borrow::Cow;

/// The name of the stream that moves traces.
const OFFSET: &str = "trace/offset";

impl Scenario {
    /// Whether another seed gives another run: a link or a beginning is random. Keys and sequence numbers of connections, which
    /// are drawn as well, have no influence.
    pub fn seed_matters(&self) -> bool {
        let spreads = self.sessions.iter().map(|session| session.start_spread);
        let mut spreads = spreads.chain(self.traffic.iter().map(|traffic| traffic.start_spread));
        let shared = self.trace_offset;
        spreads.any(|spread| !spread.is_zero())
            || directions(self).any(|(_, direction)| direction.is_random(shared == Offset::Random))
    }

    /// The scenario of one seed: traces with a random offset begin where the seed says. An engine runs this one.
    ///
    /// # Panics
    /// If the scenario was not made by [`load`](crate::load).
    pub fn of_seed(&self, seed: u64) -> Cow<'_, Scenario> {
        let shared = self.trace_offset == Offset::Random;
        let moves = |direction: &DirectionSpec| direction.trace().is_some_and(|trace| trace.begins_anywhere(shared));
        if !directions(self).any(|(_, direction)| moves(direction)) {
            return Cow::Borrowed(self);
        }
        let mut own = self.clone();
        let links = own.links.iter_mut().flat_map(|link| [(&link.name, &mut link.up), (&link.name, &mut link.down)]);
        let events = own.events.iter_mut().flat_map(|event| {
            let name = event.link.as_ref();
            let both = [(name, event.up.as_mut()), (name, event.down.as_mut())];
            both.into_iter().filter_map(|(name, direction)| Some((name?, direction?)))
        });
        for (link, direction) in links.chain(events) {
            if let Some(Rate::Trace(trace)) = &mut direction.rate
                && trace.begins_anywhere(shared)
            {
                trace.begin_at(draw(seed, link, trace));
            }
        }
        Cow::Owned(own)
    }
}

/// Which part of the recording is skipped, in units of 2^-64 of it. All traces without an offset of their own follow one draw, so
/// that those which were recorded together stay together; both directions of a link do so in any case.
fn draw(seed: u64, link: &str, trace: &Trace) -> u64 {
    let own = trace.offset == Some(Offset::Random);
    let name = if own { format!("link/{link}") } else { "scenario".to_owned() };
    Streams::new(seed, name).stream(OFFSET).next_u64()
}

/// The directions of all links, and what events change of them, each with its link's name.
fn directions(scenario: &Scenario) -> impl Iterator<Item = (&str, &DirectionSpec)> {
    let links = scenario.links.iter().flat_map(|link| [(&link.name, &link.up), (&link.name, &link.down)]);
    let links = links.map(|(name, direction)| (name.as_str(), direction));
    let events = scenario.events.iter().flat_map(|event| {
        let name = event.link.as_deref().unwrap_or_default();
        event.up.iter().chain(&event.down).map(move |direction| (name, direction))
    });
    links.chain(events)
}
