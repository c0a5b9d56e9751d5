//! A histogram of weighted integers with a bounded relative error and a bounded size.
//!
//! Small values have a bucket each. Above them every power of two is cut into [`STEPS`] equal buckets, so a bucket is
//! never wider than 1/64 of its lower end, and its middle is never further than 0.8 % from any value inside.
//! (The idea is Gil Tene's HdrHistogram.) Recording is a shift and an addition. The buckets of a power of two are
//! allocated with its first value: values of one kind fill few of them. Mean, minimum and maximum are exact.

/// How many buckets a power of two is cut into, as a power of two.
const STEP_BITS: u32 = 6;
/// How many buckets a power of two is cut into.
const STEPS: u64 = 1 << STEP_BITS;

/// The buckets of one power of two, or of the values below [`STEPS`].
type Octave = [u64; STEPS as usize];

/// Weighted integers, of any unit: nanoseconds, bytes, packets.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Up to the highest one with a value; those without a value are absent.
    octaves: Vec<Option<Box<Octave>>>,
    total_weight: u64,
    weighted_sum: u128,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { octaves: Vec::new(), total_weight: 0, weighted_sum: 0, min: u64::MAX, max: 0 }
    }
}

impl Histogram {
    /// An empty histogram. It grows by 512 bytes for each power of two among its values, to 30 kB at the most.
    pub fn new() -> Self {
        Histogram::default()
    }

    /// Adds `value` with `weight`, for example a delay with the number of bytes that it applies to. Weight zero adds
    /// nothing.
    #[inline]
    pub fn record(&mut self, value: u64, weight: u64) {
        if weight == 0 {
            return;
        }
        let (octave, step) = bucket_of(value);
        match self.octaves.get_mut(octave) {
            Some(Some(weights)) => weights[step] += weight,
            _ => self.add_octave(octave)[step] += weight,
        }
        self.total_weight += weight;
        self.weighted_sum += u128::from(value) * u128::from(weight);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Allocates the buckets of an octave that has no value yet.
    #[cold]
    fn add_octave(&mut self, octave: usize) -> &mut Octave {
        if self.octaves.len() <= octave {
            self.octaves.resize(octave + 1, None);
        }
        self.octaves[octave].insert(Box::new([0; STEPS as usize]))
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.total_weight == 0
    }

    /// The sum of all values, each times its weight. Exact.
    pub fn weighted_sum(&self) -> u128 {
        self.weighted_sum
    }

    /// The sum of all weights.
    pub fn total_weight(&self) -> u64 {
        self.total_weight
    }

    /// The smallest value such that the share `q` of the weight (0 to 1) is not above it, within 0.8 %; zero if empty.
    ///
    /// `q` outside 0 to 1 counts as the nearer end; the ends give the exact minimum and maximum.
    pub fn quantile(&self, q: f64) -> u64 {
        if self.is_empty() {
            return 0;
        }
        let wanted = (q.clamp(0.0, 1.0) * self.total_weight as f64).ceil() as u64;
        if wanted <= 1 {
            return self.min;
        }
        if wanted >= self.total_weight {
            return self.max;
        }
        let mut seen = 0;
        for (octave, weights) in self.octaves.iter().enumerate() {
            for (step, weight) in weights.iter().flat_map(|weights| weights.iter()).enumerate() {
                seen += weight;
                if seen >= wanted {
                    return middle_of(octave, step).clamp(self.min, self.max);
                }
            }
        }
        self.max
    }

    /// The weighted mean, exact up to the rounding of the division; zero if empty.
    pub fn mean(&self) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        self.weighted_sum as f64 / self.total_weight as f64
    }

    /// The smallest recorded value, exact; zero if empty.
    pub fn min(&self) -> u64 {
        if self.is_empty() { 0 } else { self.min }
    }

    /// The largest recorded value, exact; zero if empty.
    pub fn max(&self) -> u64 {
        self.max
    }
}

/// The octave of a value, and its bucket there: below `STEPS` the value itself, above it the `STEP_BITS` bits after the
/// first.
#[inline]
fn bucket_of(value: u64) -> (usize, usize) {
    if value < STEPS {
        return (0, value as usize);
    }
    let shift = (63 - value.leading_zeros()) - STEP_BITS;
    (shift as usize + 1, (value >> shift) as usize - STEPS as usize)
}

/// The middle of a bucket's range.
fn middle_of(octave: usize, step: usize) -> u64 {
    let step = step as u64;
    let Some(shift) = octave.checked_sub(1) else { return step };
    let low = (STEPS + step) << shift;
    low + ((1 << shift) - 1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_within_eight_tenths_of_a_percent_of_its_bucket() {
        let mut value: u64 = 1;
        while value < u64::MAX / 3 {
            for v in [value - 1, value, value + 1, value * 2 - 1] {
                let (octave, step) = bucket_of(v);
                let middle = middle_of(octave, step);
                assert!(middle.abs_diff(v) as f64 <= 0.008 * v as f64, "{v} became {middle}");
            }
            value = value * 3 / 2 + 1;
        }
        assert_eq!(
            bucket_of(u64::MAX),
            (64 - STEP_BITS as usize, STEPS as usize - 1),
            "the last bucket of the last octave"
        );
    }

    #[test]
    fn buckets_rise_with_the_value() {
        let mut last = (0, 0);
        for v in 0..100_000u64 {
            let bucket = bucket_of(v);
            let next = if last.1 + 1 < STEPS as usize { (last.0, last.1 + 1) } else { (last.0 + 1, 0) };
            assert!(bucket == last || bucket == next, "at {v}");
            last = bucket;
        }
    }

    #[test]
    fn quantiles_of_a_uniform_range() {
        let mut h = Histogram::new();
        for v in 1..=10_000 {
            h.record(v, 1);
        }
        for q in [0.05, 0.5, 0.95, 0.99] {
            let exact = q * 10_000.0;
            let got = h.quantile(q) as f64;
            assert!((got - exact).abs() <= 0.008 * exact, "{q}: {got}");
        }
        assert_eq!((h.min(), h.quantile(0.0), h.max(), h.quantile(1.0)), (1, 1, 10_000, 10_000));
        assert!((h.mean() - 5000.5).abs() < 1e-9);
    }

    #[test]
    fn a_weight_counts_as_several_values() {
        let (mut weighted, mut repeated) = (Histogram::new(), Histogram::new());
        for (value, weight) in [(0, 90), (7_000_000, 4), (50_000_000, 6), (9, 0)] {
            weighted.record(value, weight);
            (0..weight).for_each(|_| repeated.record(value, 1));
        }
        for q in [0.1, 0.9, 0.93, 0.95, 1.0] {
            assert_eq!(weighted.quantile(q), repeated.quantile(q));
        }
        assert_eq!(weighted.quantile(0.9), 0);
        assert!(weighted.quantile(0.95).abs_diff(50_000_000) <= 400_000);
        assert!(weighted.quantile(0.94).abs_diff(7_000_000) <= 56_000);
        assert_eq!(weighted.total_weight(), 100);
        assert_eq!(weighted.mean(), (4.0 * 7e6 + 6.0 * 5e7) / 100.0);
    }

    #[test]
    fn only_octaves_with_values_take_memory() {
        let mut h = Histogram::new();
        assert_eq!(h.octaves.capacity(), 0);
        for value in [0, 50_000_000, 60_000_000, 60_000_000, 250_000_000] {
            h.record(value, 1500);
        }
        assert_eq!(h.octaves.iter().flatten().count(), 3);
        assert_eq!((h.quantile(0.2), h.quantile(0.5).abs_diff(60_000_000) < 480_000), (0, true));
    }

    #[test]
    fn an_empty_one_is_zero_everywhere() {
        let h = Histogram::new();
        assert_eq!((h.quantile(0.5), h.min(), h.max(), h.mean()), (0, 0, 0, 0.0));
    }
}
