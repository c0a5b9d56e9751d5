//! What a network carries for all viewers together, by what arrives while they could take more.

use super::Viewer;
use anabranch_units::Instant;

/// Mean of so many seconds is a sample.
const SAMPLE_S: f64 = 4.0;
/// A sample counts only as far as paces were this much above the present estimate.
const ABOVE: f64 = 1.05;
/// The share by which a lower sample counts. A higher one counts at once: what arrived was carried, and what did not
/// may have another cause.
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

    /// From here on it is that of other viewers, who have acknowledged so many bytes together, and for whom so many
    /// bit/s have arrived of late. Until there is a sample of them, the estimate is that of those before, or what has
    /// arrived if that is more.
    pub fn rebase(&mut self, now: Instant, delivered: u64, arrived: f64) {
        self.bps = self.bps.max(arrived);
        self.sample = (0.0, 0.0);
        (self.measured_at, self.delivered) = (now, delivered);
    }

    /// Paces of the responses that are being sent, in sum, from here on, bit/s; infinite if one is not paced.
    pub fn note_claims(&mut self, bps: f64) {
        self.filled = bps > ABOVE * self.bps;
    }
}

/// What viewers have acknowledged at two earlier times: what has arrived for some of them of late, who were not
/// together then.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    earlier: Snapshot,
    latest: Snapshot,
}

/// Bytes that each viewer has acknowledged.
#[derive(Debug, Default)]
struct Snapshot {
    at: Instant,
    delivered: Vec<u64>,
}

impl Arrivals {
    /// Looks at the viewers, but no more often than samples are taken.
    pub fn note(&mut self, now: Instant, viewers: &[Viewer]) {
        if now.since(self.latest.at).as_secs_f64() >= SAMPLE_S {
            let delivered = viewers.iter().map(|viewer| viewer.delivered).collect();
            self.earlier = std::mem::replace(&mut self.latest, Snapshot { at: now, delivered });
        }
    }

    /// Bits per second for the viewers of a group, in the mean of at least the time of a sample; zero before.
    pub fn rate(&self, now: Instant, viewers: &[Viewer], group: usize) -> f64 {
        let passed = now.since(self.earlier.at).as_secs_f64();
        if passed < SAMPLE_S {
            return 0.0;
        }
        let before = |at: usize| self.earlier.delivered.get(at).copied().unwrap_or(0);
        let members = viewers.iter().enumerate().filter(|(_, viewer)| viewer.group == group);
        members.map(|(at, viewer)| viewer.delivered - before(at)).sum::<u64>() as f64 * 8.0 / passed
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
        capacity.rebase(at_ms(22_000), 0, 9e6);
        assert!((capacity.bps() - 10e6).abs() < 1.0, "others, for whom less has arrived");
        capacity.rebase(at_ms(22_000), 0, 11e6);
        assert!((capacity.bps() - 11e6).abs() < 1.0, "others, for whom more has arrived");
    }

    #[test]
    fn what_has_arrived_for_a_group_is_that_of_its_members_now() {
        let mut viewers: Vec<_> = (0..3).map(|_| Viewer::new(None)).collect();
        let mut arrivals = Arrivals::default();
        for second in 1..=9 {
            viewers.iter_mut().zip([100_000, 200_000, 400_000]).for_each(|(viewer, bytes)| viewer.delivered += bytes);
            arrivals.note(at_ms(1_000 * second), &viewers);
        }
        let rate = |viewers: &[Viewer], group| arrivals.rate(at_ms(9_000), viewers, group);
        assert!((rate(&viewers, 0) - 5.6e6).abs() < 1.0, "of the last five seconds");
        viewers[1].group = 1;
        assert!((rate(&viewers, 0) - 4e6).abs() < 1.0 && (rate(&viewers, 1) - 1.6e6).abs() < 1.0);
        viewers.push(Viewer::new(None));
        viewers[3].delivered = 500_000;
        assert!((rate(&viewers, 0) - 4.8e6).abs() < 1.0, "who came after counts from the beginning");
        assert!(Arrivals::default().rate(at_ms(3_900), &viewers, 0) <= 0.0, "no whole sample");
    }
}
