//! A histogram of durations with bounded relative error and no allocation per sample.
//!
//! Values up to 2^6 ns have a bucket each; above, every power of two is divided into 2^6 equal buckets, so a bucket's
//! width is at most 1/64 of its lower edge, and its middle is off by at most 1/128 of the value (the idea of
//! HdrHistogram, G. Tene 2012). Values beyond [`HIGHEST`] count as the highest one.

use anabranch_units::Duration;

/// Every power of two is divided into 2^6 buckets: 0.8 % of error, well below what seeds differ by.
const SUB_BITS: u32 = 6;
const SUB_BUCKETS: usize = 1 << SUB_BITS;
/// Nanoseconds above 2^42 (73 minutes) share the last bucket.
const HIGHEST_BITS: u32 = 42;
const BUCKETS: usize = ((HIGHEST_BITS - SUB_BITS + 1) as usize) * SUB_BUCKETS;

/// The highest value that is still told from the next lower ones.
const HIGHEST: u64 = (1 << HIGHEST_BITS) - 1;

/// Counts of durations, from which mean (exact) and quantiles (within 0.8 %) are read.
#[derive(Clone)]
pub struct Histogram {
    buckets: Box<[u64; BUCKETS]>,
    count: u64,
    sum_nanos: u128,
    max: Duration,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { buckets: Box::new([0; BUCKETS]), count: 0, sum_nanos: 0, max: Duration::ZERO }
    }
}

impl Histogram {
    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: Duration) {
        self.buckets[bucket_of(value.as_nanos())] += 1;
        self.count += 1;
        self.sum_nanos += u128::from(value.as_nanos());
        self.max = self.max.max(value);
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest value, exactly; zero if there was none.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// The mean, rounded down to a nanosecond; nothing if there was no value.
    pub fn mean(&self) -> Option<Duration> {
        let mean = self.sum_nanos.checked_div(u128::from(self.count))?;
        Some(Duration::from_nanos(mean as u64))
    }

    /// The value that a share `q` (0 to 1) of all values does not exceed, within 0.8 %; nothing if there was no value.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        if self.count == 0 {
            return None;
        }
        // The smallest rank whose share reaches q ("nearest rank").
        let rank = ((q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let index = self.buckets.iter().position(|n| {
            seen += n;
            seen >= rank
        });
        let middle = index.map_or(self.max, |index| Duration::from_nanos(middle_of(index)));
        Some(middle.min(self.max))
    }
}

impl core::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count)
            .field("mean", &self.mean())
            .field("p95", &self.quantile(0.95))
            .field("max", &self.max)
            .finish()
    }
}

/// The bucket that counts `nanos`: its leading `SUB_BITS + 1` binary digits, and how many follow.
#[inline]
fn bucket_of(nanos: u64) -> usize {
    let nanos = nanos.min(HIGHEST);
    // The shift that leaves SUB_BITS + 1 digits; small values need none and keep all of theirs.
    let shift = (63 - (nanos | (SUB_BUCKETS as u64)).leading_zeros()) - SUB_BITS;
    (shift as usize) * SUB_BUCKETS + (nanos >> shift) as usize
}

/// The middle of a bucket, rounded down.
fn middle_of(index: usize) -> u64 {
    // The first two rows (2 * SUB_BUCKETS values) are exact; in row r >= 2 the leading digits are shifted by r - 1.
    let shift = (index / SUB_BUCKETS).saturating_sub(1);
    let digits = (index - shift * SUB_BUCKETS) as u64;
    (digits << shift) + ((1 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bucket_holds_its_middle_and_small_values_are_exact() {
        for value in 0..2 * SUB_BUCKETS as u64 {
            assert_eq!(middle_of(bucket_of(value)), value);
        }
        for index in 0..BUCKETS {
            assert_eq!(bucket_of(middle_of(index)), index);
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn the_relative_error_is_below_one_part_in_128() {
        for value in (0..500_000u64).map(|n| n * n * 17 + n) {
            let error = middle_of(bucket_of(value)).abs_diff(value);
            assert!(error * 128 <= value, "{value} became {}", middle_of(bucket_of(value)));
        }
    }

    #[test]
    fn mean_is_exact_and_quantiles_are_nearest_ranks() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.mean(), histogram.quantile(0.95)), (None, None));
        (1..=100).for_each(|ms| histogram.record(Duration::from_millis(ms)));
        assert_eq!(histogram.mean(), Some(Duration::from_micros(50_500)));
        let p95 = histogram.quantile(0.95).unwrap().as_secs_f64();
        assert!((p95 / 0.095 - 1.0).abs() < 1.0 / 128.0, "{p95}");
        assert_eq!((histogram.quantile(1.0), histogram.count()), (Some(Duration::from_millis(100)), 100));
    }
}
