//! What happens to the links during a run.

use anabranch_network::Change;
use anabranch_units::{Duration, Instant, PathId};
use std::collections::VecDeque;

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the client.
    Up,
    /// To the client.
    Down,
}

/// One direction of a link, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    /// From the client.
    Up,
    /// To the client.
    Down,
    /// Both directions.
    Both,
}

impl Ways {
    pub(crate) fn each(self) -> impl Iterator<Item = Way> {
        let (up, down) = (self != Ways::Down, self != Ways::Up);
        [up.then_some(Way::Up), down.then_some(Way::Down)].into_iter().flatten()
    }
}

/// When a step is taken; never before the step above it.
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
    /// When.
    pub when: When,
    /// Of which link: that of this path, or of a [`Topology`](crate::Topology) the one at this position.
    pub path: PathId,
    /// Of which directions.
    pub way: Ways,
    /// What changes.
    pub change: Change,
}

/// Steps, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Script {
    steps: VecDeque<Step>,
    /// When the latest step was taken.
    latest: Instant,
}

impl Script {
    /// From a list.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Script { steps: steps.into_iter().collect(), latest: Instant::ZERO }
    }

    /// When the next step is due, if it depends on time.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        match self.steps.front()?.when {
            When::At(at) => Some(at),
            When::After(wait) => Some(self.latest + wait),
            When::Delivered(_) => None,
        }
    }

    /// Takes the next step, if it is due.
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
        Step { when, path: PathId(1), way: Ways::Both, change: Change::Up(up) }
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
