//! Events of endpoints, links and players.
//!
//! One typed stream feeds metrics, figures, tests and debugging: an event gives what changed, from which value, to
//! which value and why. Emitters do not print and do not count; subscribers do. Types carry the units.
//!
//! The set is versioned by [`SCHEMA`], because event tables are written to disk.

mod column;
mod histogram;
mod host;
mod limit;
mod link;
mod pacing;
mod player;
mod transport;

pub use histogram::Histogram;
pub use host::HostEvent;
pub use limit::{Limit, PathLimit};
pub use link::{Carried, DropCause, LinkEvent};
pub use pacing::PacingCounts;
pub use player::PlayerEvent;
pub use transport::{
    CloseReason, Consideration, CopyCause, DecayCause, FallbackReason, Forecast, ForecastReason, LossCause, MtuCause,
    Note, SendKind, TransportEvent,
};

use anabranch_units::Instant;

/// Version of the set of events.
pub const SCHEMA: u32 = 2;

/// A growing list of one emitter's events, oldest first.
///
/// An emitter owns one and appends; its host drains it after every step, so the buffer is reused and
/// nothing is allocated in the steady state.
#[derive(Clone, Debug)]
pub struct Log<E> {
    entries: Vec<(Instant, E)>,
}

impl<E> Default for Log<E> {
    fn default() -> Self {
        Log { entries: Vec::new() }
    }
}

impl<E> Log<E> {
    /// Appends one event.
    #[inline]
    pub fn emit(&mut self, at: Instant, event: E) {
        self.entries.push((at, event));
    }

    /// Removes and yields the events since the last call.
    pub fn drain(&mut self) -> impl Iterator<Item = (Instant, E)> + '_ {
        self.entries.drain(..)
    }

    /// Removes the events since the last call, and passes each to `see`.
    #[inline]
    pub fn consume(&mut self, mut see: impl FnMut(Instant, &E)) {
        self.entries.iter().for_each(|(at, event)| see(*at, event));
        self.entries.clear();
    }

    /// Whether no event was emitted since the last drain.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
