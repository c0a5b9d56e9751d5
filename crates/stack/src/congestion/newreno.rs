//! NewReno: one packet more per round trip, half after a loss (RFC 5681, RFC 6582).
//!
//! increase per acknowledged packet: `w += 1/⌊w⌋`; after a loss: `ssthresh = max(w/2, 2)` (packets).
//! Ours, as Linux: `w` is the window, where RFC 5681 takes the data in flight, and counts in whole packets.

use super::{Ack, CongestionControl, Entry, LossCause, Siblings, Window};
use anabranch_units::Instant;

pub(super) const ENTRY: Entry = Entry {
    name: "newreno",
    summary: "Adds one packet per round trip and halves after a loss.",
    source: "RFC 5681, RFC 6582",
    create: |options, _seed| {
        options.expect_only(&[])?;
        Ok(Box::new(NewReno))
    },
};

#[derive(Debug)]
pub(super) struct NewReno;

impl CongestionControl for NewReno {
    fn on_ack(&mut self, ack: &Ack, window: &mut Window, _siblings: Siblings<'_>) {
        if ack.may_grow {
            let left = window.slow_start(ack.delivered);
            if left > 0.0 {
                window.grow_per_window(left);
            }
        }
    }

    fn on_congestion(&mut self, _now: Instant, _cause: LossCause, window: &mut Window, _siblings: Siblings<'_>) {
        window.set_ssthresh(window.cwnd.as_f64() / 2.0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::window;

    /// The counter of Linux's `tcp_cong_avoid_ai`, isolated.
    #[derive(Default)]
    struct Counter(u32);

    impl Counter {
        fn grow(&mut self, window: u32, acked: u32) -> u32 {
            self.0 += acked;
            let steps = self.0 / window;
            self.0 -= steps * window;
            window + steps
        }
    }

    #[test]
    fn the_window_steps_with_the_same_packet_as_a_counter_s() {
        for pattern in [&[1][..], &[2], &[2, 2, 1], &[1, 2, 7]] {
            let (mut ours, mut counter, mut theirs) = (window(2.0), Counter::default(), 2);
            for (i, acked) in pattern.iter().cycle().take(30_000).enumerate() {
                ours.grow_per_window(f64::from(*acked));
                theirs = counter.grow(theirs, *acked);
                assert_eq!(ours.cwnd.floor(), theirs, "after {i} acknowledgments of {pattern:?}");
            }
            assert!(theirs > 200);
        }
    }
}
