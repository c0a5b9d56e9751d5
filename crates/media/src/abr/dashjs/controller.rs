//! What the AbrControllers of 2.9.3 and 5.2.1 have in common.
//!
//! DYNAMIC asks either BOLA or the throughput rule; the lowest of all rules' requests wins; BOLA sees every change; and
//! for a time after an abandoned request some things are not done.

use super::super::view::{BufferState, Decision, Event, View, Vote};
use super::abandonment::Abandonment;
use super::bola::{Bola, DelayS, Sustainable};
use super::dynamic::Dynamic;
use super::js::date_ms;
use super::request::{Request, lowest};
use super::switch_history::SwitchHistory;
use anabranch_units::{Duration, Instant};

/// The reason of a decision for which no rule asked.
pub(super) const STAYS: &str = "no rule asks for a change";

/// The state that decisions of both releases share.
#[derive(Debug)]
pub(super) struct Controller {
    pub dynamic: Dynamic,
    pub bola: Bola,
    pub switches: SwitchHistory,
    abandonment: Abandonment,
    votes: Vec<Vote>,
}

impl Controller {
    /// A controller whose switch history holds so many samples.
    pub fn new(dynamic: Dynamic, bola: Bola, samples: u32) -> Self {
        Controller {
            dynamic,
            bola,
            switches: SwitchHistory::new(samples),
            abandonment: Abandonment::new(true),
            votes: Vec::new(),
        }
    }

    /// Whether a request was abandoned less than 10 s ago.
    pub fn is_abandoning(&mut self, now: Instant) -> bool {
        self.abandonment.is_active(date_ms(now))
    }

    /// The request of the rule that DYNAMIC has chosen, and by how much BOLA delays the media segment.
    pub fn dynamic_request(
        &mut self,
        view: &View<'_>,
        sustainable: impl FnOnce() -> Sustainable,
        throughput: impl FnOnce() -> Option<Request>,
    ) -> (Option<Request>, DelayS) {
        if !self.dynamic.bola() {
            return (throughput(), 0.0);
        }
        match self.bola.request(view, sustainable()) {
            Some((request, delay)) => (Some(request), delay),
            None => (None, 0.0),
        }
    }

    /// Remembers what the rules asked for and returns the lowest.
    pub fn lowest(&mut self, requests: impl IntoIterator<Item = Option<Request>>) -> Option<Request> {
        let requests: Vec<_> = requests.into_iter().flatten().collect();
        self.votes.clear();
        self.votes.extend(requests.iter().map(Request::vote));
        lowest(&requests)
    }

    /// Adopts a representation for the next media segment, after BOLA's delay.
    pub fn adopt(&mut self, view: &View<'_>, representation: usize, delay: DelayS, reason: &'static str) -> Decision {
        self.changed(view, representation);
        Decision { representation, wait: Duration::from_secs_f64(delay), reason }
    }

    /// Tells BOLA of a representation, if it is another one.
    pub fn changed(&mut self, view: &View<'_>, representation: usize) {
        if representation != view.current {
            self.bola.changed(representation);
        }
    }

    /// What both releases do about the buffer.
    pub fn observe(&mut self, view: &View<'_>, event: &Event<'_>) {
        match event {
            Event::BufferMeasured => self.dynamic.measured(view.buffer),
            Event::BufferState(BufferState::Empty) => self.bola.emptied(),
            Event::Seeked => self.bola.seeked(),
            _ => {}
        }
    }

    /// A request is abandoned.
    pub fn abandon(&mut self, now: Instant) {
        self.abandonment.begin(date_ms(now));
        self.switches.clear();
    }

    /// What the rules asked for at the last decision.
    pub fn votes(&self) -> &[Vote] {
        &self.votes
    }
}
