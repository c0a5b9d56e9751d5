//! How long the bytes of each response waited in reassembly for earlier ones.
//!
//! The receiver says of all bytes, in the order of the stream, how long they had waited; the player says where each
//! response ends in the stream. So every byte is attributed to its response, header included.

use anabranch_units::Duration;
use std::collections::VecDeque;

/// Bytes in a row that waited for the same time.
#[derive(Clone, Copy, Debug)]
struct Run {
    bytes: u64,
    waited: Duration,
    across: Duration,
}

/// What was delivered and belongs to no complete response yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    runs: VecDeque<Run>,
    /// Where the oldest of them begins in the stream.
    begin: u64,
}

/// The waits of one response's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Wait {
    bytes: u64,
    /// Sums over bytes, ns.
    waited: u128,
    across: u128,
    longest: Duration,
}

impl Waits {
    /// Bytes became readable after they had waited.
    #[inline]
    pub fn deliver(&mut self, bytes: u32, waited: Duration, across: Duration) {
        let bytes = u64::from(bytes);
        match self.runs.back_mut().filter(|last| (last.waited, last.across) == (waited, across)) {
            Some(last) => last.bytes += bytes,
            None => self.runs.push_back(Run { bytes, waited, across }),
        }
    }

    /// The waits of all that was delivered up to `end` and not asked for before.
    pub fn take_until(&mut self, end: u64) -> Wait {
        let mut wait = Wait::default();
        while self.begin < end
            && let Some(first) = self.runs.front_mut()
        {
            let taken = first.bytes.min(end - self.begin);
            wait.add(taken, first.waited, first.across);
            self.begin += taken;
            first.bytes -= taken;
            if first.bytes == 0 {
                self.runs.pop_front();
            }
        }
        wait
    }
}

impl Wait {
    fn add(&mut self, bytes: u64, waited: Duration, across: Duration) {
        self.bytes += bytes;
        self.waited += u128::from(bytes) * u128::from(waited.as_nanos());
        self.across += u128::from(bytes) * u128::from(across.as_nanos());
        self.longest = self.longest.max(waited);
    }

    fn mean(&self, sum: u128) -> Option<f64> {
        (self.bytes > 0).then(|| sum as f64 / self.bytes as f64 / 1e9)
    }

    /// The mean over the bytes, s; none if no byte was seen.
    pub fn mean_s(&self) -> Option<f64> {
        self.mean(self.waited)
    }

    /// The mean of the part in which only other subflows' bytes were missing, s.
    pub fn mean_across_s(&self) -> Option<f64> {
        self.mean(self.across)
    }

    /// The longest, s.
    pub fn longest_s(&self) -> Option<f64> {
        (self.bytes > 0).then(|| self.longest.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ms;

    #[test]
    fn bytes_are_attributed_to_their_response_even_within_a_run() {
        let mut waits = Waits::default();
        waits.deliver(600, ms(0), ms(0));
        waits.deliver(300, ms(40), ms(10));
        waits.deliver(300, ms(40), ms(10));
        waits.deliver(100, ms(0), ms(0));
        // The first response is 1000 bytes long: 600 in order and 400 of those that waited.
        let first = waits.take_until(1_000);
        assert_eq!((first.mean_s(), first.mean_across_s()), (Some(0.016), Some(0.004)));
        assert_eq!(first.longest_s(), Some(0.04));
        let second = waits.take_until(1_300);
        assert_eq!((second.mean_s(), second.longest_s()), (Some(0.2 * 0.04 / 0.3), Some(0.04)));
        assert!(waits.runs.is_empty());
    }

    #[test]
    fn nothing_seen_is_nothing_known() {
        let mut waits = Waits::default();
        let nothing = waits.take_until(500);
        assert_eq!((nothing.mean_s(), nothing.mean_across_s(), nothing.longest_s()), (None, None, None));
        waits.deliver(100, ms(7), ms(7));
        assert_eq!(waits.take_until(100).mean_s(), Some(0.007), "what was never seen is not waited for");
        assert_eq!(waits.take_until(100), Wait::default());
    }
}
