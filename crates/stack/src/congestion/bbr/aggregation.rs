//! How many more packets than expected are acknowledged at once, so that the window can bridge the gap after them.
//!
//! `extra = acked − bandwidth · time` since acknowledgments last came slower than the bandwidth; its maximum over the
//! last 5 to 10 round trips, at most what the bandwidth delivers in 100 ms. Constants of Linux's `tcp_bbr.c`.

use super::rate::Rate;
use anabranch_units::{Duration, Instant};

/// Round trips in each half of the window of the maximum.
const ROUNDS: u32 = 5;
const MOST: Duration = Duration::from_millis(100);
/// An epoch with that many packets begins anew.
const LONGEST_EPOCH: u64 = 1 << 20;

/// The excess of acknowledgments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    epoch_start: Instant,
    acked: u64,
    /// The largest excess in packets, of this half and of the one before.
    current: u32,
    previous: u32,
    rounds: u32,
}

impl Aggregation {
    /// Begins an epoch after an idle time.
    pub(super) fn restart(&mut self, now: Instant) {
        self.epoch_start = now;
        self.acked = 0;
    }

    /// Packets `acked` arrived; the window was `cwnd` packets.
    pub(super) fn observe(&mut self, now: Instant, acked: u32, cwnd: u32, bandwidth: Rate, round_start: bool) {
        self.rounds += u32::from(round_start);
        if self.rounds >= ROUNDS {
            self.rounds = 0;
            self.previous = std::mem::take(&mut self.current);
        }
        let acked = u64::from(acked);
        let mut expected = bandwidth.packets_in(now.since(self.epoch_start)) as u64;
        if self.acked <= expected || self.acked + acked >= LONGEST_EPOCH {
            self.restart(now);
            expected = 0;
        }
        self.acked += acked;
        let extra = u32::try_from(self.acked.saturating_sub(expected)).unwrap_or(u32::MAX);
        self.current = self.current.max(extra.min(cwnd));
    }

    /// Packets by which to widen the window.
    pub(super) fn extra(&self, bandwidth: Rate) -> u32 {
        self.current.max(self.previous).min(bandwidth.packets_in(MOST) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::at;
    use super::*;

    /// Packets per second.
    const BANDWIDTH: u64 = 1000;

    fn observe(aggregation: &mut Aggregation, now: f64, acked: u32, round_start: bool) -> u32 {
        let bandwidth = Rate::new(BANDWIDTH, Duration::from_secs(1));
        aggregation.observe(at(now), acked, 500, bandwidth, round_start);
        aggregation.extra(bandwidth)
    }

    #[test]
    fn a_burst_counts_beyond_what_the_bandwidth_brings_meanwhile() {
        let mut aggregation = Aggregation::default();
        assert_eq!(observe(&mut aggregation, 1.0, 10, false), 10);
        // 30 after 5 ms, of which 5 were due.
        assert_eq!(observe(&mut aggregation, 1.005, 20, false), 25);
        // An acknowledgment that comes late begins a new epoch.
        assert_eq!(observe(&mut aggregation, 1.1, 3, false), 25);
    }

    #[test]
    fn the_maximum_fades_after_five_to_ten_rounds_and_is_bounded_by_100_ms() {
        let mut aggregation = Aggregation::default();
        assert_eq!(observe(&mut aggregation, 1.0, 400, false), 100);
        let mut now = 1.0;
        let rounds = (1..20).find(|_| {
            now += 1.0;
            observe(&mut aggregation, now, 2, true) == 2
        });
        assert_eq!(rounds, Some(10));
    }
}
