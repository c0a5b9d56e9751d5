//! The largest window space first.
//!
//! Among the subflows with room take the one with the most of it: max over i of (w_i - inflight_i - queued_i) * MSS_i,
//! in bytes. It spreads load by spare capacity, whatever the round trips.
//!
//! Source: Kimura, Lima, Loureiro, "Alternative Scheduling Decisions for Multipath TCP", IEEE Communications Letters
//! 2017 (largest window space); Matsufuji et al., "Multipath TCP Packet Schedulers for Streaming Video", PACRIM 2017.
//! Ours: on a tie the lower round trip, then the older subflow. Where data commits into the send buffer, windows may
//! all be full while buffers have room; then it is the lowest round trip.

use super::{Decision, Entry, Scheduler, Trigger, View};
use crate::view::SubflowView;
use std::cmp::Reverse;

pub(super) const ENTRY: Entry = Entry {
    name: "largest-window",
    summary: "Takes the subflow with the most free space in its congestion window.",
    source: "Kimura et al., IEEE Communications Letters 2017; Matsufuji et al., PACRIM 2017",
    create: |options| {
        options.expect_only(&[])?;
        Ok(Box::new(LargestWindow))
    },
};

#[derive(Debug)]
struct LargestWindow;

impl Scheduler for LargestWindow {
    fn decide(&mut self, view: &View<'_>, _trigger: Trigger) -> Decision {
        let merit = |s: &SubflowView| (space(s), Reverse(s.srtt));
        view.one_segment(view.best_candidate(|a, b| merit(a) > merit(b)))
    }
}

/// Free space of the congestion window in bytes.
fn space(subflow: &SubflowView) -> u64 {
    u64::from(subflow.room()) * u64::from(subflow.mss)
}

#[cfg(test)]
mod tests {
    use crate::scheduler::testing::{Bed, ms, send};

    #[test]
    fn free_bytes_decide_and_neither_window_nor_round_trip() {
        // Free: 20 - 15 = 5 packets, 10 - 4 = 6 packets, 8 packets of half the size = 4 packets' worth.
        let mut bed = Bed::new("largest-window").subflow(ms(10), 20).subflow(ms(90), 10).subflow(ms(5), 8);
        bed.load(0, 15);
        bed.load(1, 4);
        bed.subflows[2].mss = 500;
        assert_eq!(bed.decide(), send(1, 1000));
        bed.load(1, 6);
        assert_eq!(bed.decide(), send(0, 1000));
        bed.load(0, 17);
        assert_eq!(bed.decide(), send(2, 500), "4000 bytes are as many as the second's, at a lower round trip");
    }

    #[test]
    fn queued_segments_count_as_taken() {
        let mut bed = Bed::new("largest-window").subflow(ms(10), 10).subflow(ms(10), 10);
        bed.subflows[0].queued = 1;
        assert_eq!(bed.decide(), send(1, 1000));
    }
}
