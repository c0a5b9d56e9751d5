//! What a network carries for all viewers together, by what arrives while they could take more.

use anabranch_units::Instant;

/// Mean of so many seconds is a sample.
const SAMPLE_S: f64 = 4.0;
/// A sample counts only as far as paces were this much above the present estimate.
const ABOVE: f64 = 1.05;
/// The share by which a lower sample counts. A higher one counts at once: what arrived was carried, and what did not may have another cause.
const DOWN: f64 = 0.1;

/// An estimate from samples of what arrives while paces do not limit it.
#[derive(Debug, Default)]
pub(super) struct Capacity {
    bps: f64,
    /// Whether paces have been above the estimate since the last measurement.
    filled: bool,
    measured_at: Instant,
    delivered: u64,
    /// Seconds and bits of the sample that is being taken.
    sample: (f64, f64),
}

impl Capacity {
    /// The estimate, bit/s; zero as long as there is no sample.
    pub fn bps(&self) -> f64 {
        self.bps
    }

    /// All viewers together have acknowledged so many bytes.
    pub fn measure(&mut self, now: Instant, delivered: u64) {
        if self.filled {
            self.sample.0 += now.since(self.measured_at).as_secs_f64();
            self.sample.1 += (delivered - self.delivered) as f64 * 8.0;
        }
        if self.sample.0 >= SAMPLE_S {
            let rate = self.sample.1 / self.sample.0;
            self.bps = if rate < self.bps { self.bps + DOWN * (rate - self.bps) } else { rate };
            self.sample = (0.0, 0.0);
        }
        (self.measured_at, self.delivered) = (now, delivered);
    }

    /// From here on it is that of other viewers, who have acknowledged so many bytes together. Until there is a sample of them, the estimate
    /// is that of those before.
    pub fn rebase(&mut self, now: Instant, delivered: u64) {
        self.sample = (0.0, 0.0);
        (self.measured_at, self.delivered) = (now, delivered);
    }

    /// Paces of the responses that are being sent, in sum, from here on, bit/s; infinite if one is not paced.
    pub fn note_claims(&mut self, bps: f64) {
        self.filled = bps > ABOVE * self.bps;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at_ms;

    #[test]
    fn only_what_arrives_while_paces_are_above_it_counts() {
        let mut capacity = Capacity::default();
        capacity.measure(at_ms(0), 0);
        capacity.note_claims(f64::INFINITY);
        capacity.measure(at_ms(3_999), 4_000_000);
        assert!(capacity.bps() <= 0.0, "no whole sample");
        capacity.measure(at_ms(4_000), 4_000_000);
        assert!((capacity.bps() - 8e6).abs() < 1.0);
        capacity.note_claims(4e6);
        capacity.measure(at_ms(14_000), 6_000_000);
        assert!((capacity.bps() - 8e6).abs() < 1.0, "1.6 Mb/s arrived because paces allowed no more");
        capacity.note_claims(9e6);
        capacity.measure(at_ms(18_000), 9_000_000);
        assert!((capacity.bps() - 7.8e6).abs() < 1.0, "6 Mb/s count by a tenth");
        capacity.measure(at_ms(22_000), 14_000_000);
        assert!((capacity.bps() - 10e6).abs() < 1.0, "more counts at once");
    }
}
