//! Scheduled changes of the links during a run.

use anabranch_network::Change;
use anabranch_units::{Duration, Instant, LinkDirection, PathId};
use std::collections::VecDeque;

/// When a step is applied; never before the step above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At this time.
    At(Instant),
    /// This long after the step above.
    After(Duration),
    /// When this many bytes of IP packets have reached the client, all paths together.
    Delivered(u64),
}

/// A change of a link.
#[derive(Clone, Debug)]
pub struct Step {
    /// Time of the change.
    pub when: When,
    /// The link: that of this path, or of a [`Topology`](crate::Topology) the one at this position.
    pub path: PathId,
    /// Its changed directions.
    pub directions: &'static [LinkDirection],
    /// The new value.
    pub change: Change,
}

/// Steps in their order.
#[derive(Clone, Debug, Default)]
pub struct Script {
    steps: VecDeque<Step>,
    /// When the latest step was applied.
    latest: Instant,
}

impl Script {
    /// Makes a script of steps in their order.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Script { steps: steps.into_iter().collect(), latest: Instant::ZERO }
    }

    /// When the next step is due; `None` if that does not depend on time, or there is none.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        match self.steps.front()?.when {
            When::At(at) => Some(at),
            When::After(wait) => Some(self.latest + wait),
            When::Delivered(_) => None,
        }
    }

    /// Removes and returns the next step if it is due.
    pub(crate) fn due(&mut self, now: Instant, delivered: u64) -> Option<Step> {
        let due = match self.steps.front()?.when {
            When::Delivered(bytes) => delivered >= bytes,
            _ => self.next_time()? <= now,
        };
        if !due {
            return None;
        }
        self.latest = now;
        self.steps.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(when: When, up: bool) -> Step {
        Step { when, path: PathId(1), directions: &LinkDirection::BOTH, change: Change::Up(up) }
    }

    #[test]
    fn steps_wait_for_their_time_their_bytes_and_each_other() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let steps = [When::Delivered(1000), When::After(Duration::from_millis(30)), When::At(at(10))];
        let mut script = Script::new(steps.map(|when| step(when, true)));
        assert!(script.next_time().is_none() && script.due(at(20), 999).is_none());
        assert!(script.due(at(40), 1000).is_some());
        assert_eq!(script.next_time(), Some(at(70)));
        assert!(script.due(at(69), 5000).is_none());
        assert!(script.due(at(71), 5000).is_some());
        assert!(script.due(at(71), 5000).is_some(), "its time had come long ago");
        assert!(script.due(at(71), 5000).is_none() && script.next_time().is_none());
    }
}
