//! Delivery rates and their maximum over the last round trips.

use anabranch_units::{Bandwidth, Duration};

/// A rate in packets per second, fixed point with [`Rate::FRACTION`] fractional bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rate(u64);

impl Rate {
    const FRACTION: u32 = 24;
    pub(super) const ZERO: Rate = Rate(0);

    /// The rate that delivers `packets` in `time`, which must not be zero.
    pub(super) fn new(packets: u64, time: Duration) -> Self {
        let scaled = (u128::from(packets) << Self::FRACTION) * 1_000_000_000 / u128::from(time.as_nanos().max(1));
        Rate(u64::try_from(scaled).unwrap_or(u64::MAX))
    }

    /// Packets per second, for a formula.
    pub(super) fn as_f64(self) -> f64 {
        self.0 as f64 / f64::from(1u32 << Self::FRACTION)
    }

    /// Packets in `time`.
    pub(super) fn packets_in(self, time: Duration) -> f64 {
        self.as_f64() * time.as_secs_f64()
    }

    /// The rate times a factor.
    pub(super) fn mul_f64(self, factor: f64) -> Self {
        Rate((self.0 as f64 * factor) as u64)
    }

    /// The mean of two rates.
    pub(super) fn mean(self, other: Rate) -> Self {
        Rate(self.0.midpoint(other.0))
    }

    /// How far apart two rates are.
    pub(super) fn difference(self, other: Rate) -> Self {
        Rate(self.0.abs_diff(other.0))
    }

    /// In bits per second, for packets with that much payload.
    pub(super) fn to_bandwidth(self, mss: u32) -> Bandwidth {
        Bandwidth::from_bps((self.as_f64() * f64::from(mss) * 8.0) as u64)
    }
}

/// Round trips for which a rate counts.
const ROUNDS: u64 = 10;
const SLOTS: usize = ROUNDS as usize + 1;

/// The largest rate of the current round trip and the [`ROUNDS`] before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxFilter {
    /// The largest rate of each round, at its number modulo the slots.
    best: [Rate; SLOTS],
    round: u64,
}

impl MaxFilter {
    /// Takes a sample of a round, which must not be earlier than the last one.
    pub(super) fn add(&mut self, round: u64, rate: Rate) {
        self.advance(round);
        let slot = &mut self.best[slot(round)];
        *slot = rate.max(*slot);
    }

    pub(super) fn max(&self) -> Rate {
        self.best.iter().copied().max().unwrap_or(Rate::ZERO)
    }

    fn advance(&mut self, round: u64) {
        let first = (self.round + 1).max(round.saturating_sub(ROUNDS));
        for skipped in first..=round {
            self.best[slot(skipped)] = Rate::ZERO;
        }
        self.round = self.round.max(round);
    }
}

fn slot(round: u64) -> usize {
    (round % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(packets: u64) -> Rate {
        Rate::new(packets, Duration::from_secs(1))
    }

    #[test]
    fn rates_convert_to_packets_and_bits() {
        let rate = Rate::new(5, Duration::from_millis(40));
        assert_eq!(rate.as_f64(), 125.0);
        assert_eq!(rate.packets_in(Duration::from_millis(200)), 25.0);
        assert_eq!(rate.to_bandwidth(1448), Bandwidth::from_bps(1_448_000));
        assert_eq!(Rate::new(u64::MAX, Duration::from_nanos(1)), Rate(u64::MAX));
    }

    #[test]
    fn a_maximum_counts_for_its_own_and_ten_further_rounds() {
        let mut filter = MaxFilter::default();
        filter.add(3, rate(100));
        filter.add(4, rate(60));
        for round in 5..=13 {
            filter.add(round, rate(10));
        }
        assert_eq!(filter.max(), rate(100));
        filter.add(14, rate(10));
        assert_eq!(filter.max(), rate(60));
        filter.add(40, rate(5));
        assert_eq!(filter.max(), rate(5));
    }

    #[test]
    fn a_sample_of_the_same_round_only_raises_the_maximum() {
        let mut filter = MaxFilter::default();
        filter.add(1, rate(7));
        filter.add(1, rate(5));
        assert_eq!(filter.max(), rate(7));
    }
}
