//! When dash.js considers its buffer empty or loaded.
//!
//! 2.0 to 2.6:  empty below 0.5 s, otherwise loaded
//! 2.7 to 2.9:  empty below 0.5 s, loaded from the stable buffer time (12 s) on, unchanged between
//! 5.x:         empty up to 0.3 s, otherwise loaded
//! From 2.8 on it is not empty before playing has begun. When everything is buffered it is loaded.
//!
//! dash.js 2.2.0, 2.9.3, 5.2.1, controllers/BufferController.js, checkIfSufficientBuffer and notifyBufferStateChanged.

use super::super::view::BufferState;
use super::Release;
use anabranch_units::Duration;

const STALL_THRESHOLD_2: Duration = Duration::from_millis(500);
/// `buffer.stallThreshold`.
const STALL_THRESHOLD_5: Duration = Duration::from_millis(300);

/// The hysteresis between the two states, to be updated whenever the player measures its buffer.
#[derive(Clone, Copy, Debug)]
pub struct BufferWatch {
    release: Release,
    stable_buffer: Duration,
    state: Option<BufferState>,
}

impl BufferWatch {
    /// `stable_buffer` matters to 2.9 only; its default is [`Release::stable_buffer`].
    pub fn new(release: Release, stable_buffer: Duration) -> Self {
        BufferWatch { release, stable_buffer, state: None }
    }

    /// The new state if it changed. `begun`: the playhead has left the beginning; `complete`: nothing is left to fetch.
    pub fn measure(&mut self, level: Duration, begun: bool, complete: bool) -> Option<BufferState> {
        let empty = match self.release {
            Release::V2_2 | Release::V2_9 => level < STALL_THRESHOLD_2,
            Release::V5 => level <= STALL_THRESHOLD_5,
        };
        let found = if empty && !complete {
            (begun || self.release == Release::V2_2).then_some(BufferState::Empty)
        } else {
            let enough = complete || self.release != Release::V2_9 || level >= self.stable_buffer;
            enough.then_some(BufferState::Loaded)
        };
        if found.is_none() || found == self.state {
            return None;
        }
        self.state = found;
        found
    }

    /// The state found last.
    pub fn state(&self) -> Option<BufferState> {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use BufferState::{Empty, Loaded};

    /// The changes at levels in milliseconds, all after the beginning.
    fn changes(release: Release, levels: &[u64]) -> Vec<Option<BufferState>> {
        let mut watch = BufferWatch::new(release, Duration::from_secs(12));
        levels.iter().map(|&ms| watch.measure(Duration::from_millis(ms), true, false)).collect()
    }

    #[test]
    fn the_first_releases_have_one_threshold() {
        assert_eq!(changes(Release::V2_2, &[499, 0, 500, 400]), [Some(Empty), None, Some(Loaded), Some(Empty)]);
    }

    #[test]
    fn an_empty_buffer_must_reach_the_stable_level_in_2_9() {
        assert_eq!(
            changes(Release::V2_9, &[5_000, 499, 500, 11_999, 12_000, 500, 499]),
            [None, Some(Empty), None, None, Some(Loaded), None, Some(Empty)]
        );
    }

    #[test]
    fn three_tenths_of_a_second_are_empty_in_5() {
        assert_eq!(changes(Release::V5, &[300, 301, 300]), [Some(Empty), Some(Loaded), Some(Empty)]);
    }

    #[test]
    fn before_the_beginning_only_the_first_releases_call_it_empty() {
        for (release, first) in [(Release::V2_2, Some(Empty)), (Release::V2_9, None), (Release::V5, None)] {
            let mut watch = BufferWatch::new(release, release.stable_buffer());
            assert_eq!(watch.measure(Duration::ZERO, false, false), first, "{release:?}");
            assert_eq!(watch.state(), first);
        }
    }

    #[test]
    fn when_all_is_there_it_is_loaded() {
        for release in [Release::V2_2, Release::V2_9, Release::V5] {
            let mut watch = BufferWatch::new(release, release.stable_buffer());
            assert_eq!(watch.measure(Duration::ZERO, true, true), Some(Loaded), "{release:?}");
        }
    }
}
