//! A histogram of durations.

use anabranch_units::Duration;

/// The shared histogram with durations as values.
#[derive(Clone, Debug, Default)]
pub struct Histogram(anabranch_events::Histogram);

impl Histogram {
    /// Adds one value.
    #[inline]
    pub fn record(&mut self, value: Duration) {
        self.0.record(value.as_nanos(), 1);
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.0.total_weight()
    }

    /// The sum of all values; the longest duration there is if it is longer.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.weighted_sum()).unwrap_or(u64::MAX))
    }

    /// The longest value; zero if there is none.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.0.max())
    }

    /// Mean value; `None` if there is none.
    pub fn mean(&self) -> Option<Duration> {
        (!self.0.is_empty()).then(|| Duration::from_nanos(self.0.mean() as u64))
    }

    /// The value that a share `q` (0 to 1) of all values does not exceed, within 0.8 %; `None` if there is no value.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        (!self.0.is_empty()).then(|| Duration::from_nanos(self.0.quantile(q)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_quantiles_are_times_and_absent_without_any() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.mean(), histogram.quantile(0.95)), (None, None));
        (1..=100).for_each(|ms| histogram.record(Duration::from_millis(ms)));
        assert_eq!(histogram.mean(), Some(Duration::from_micros(50_500)));
        assert_eq!(histogram.total(), Duration::from_millis(5050));
        let p95 = histogram.quantile(0.95).unwrap().as_secs_f64();
        assert!((p95 / 0.095 - 1.0).abs() < 1.0 / 128.0, "{p95}");
        assert_eq!((histogram.quantile(1.0), histogram.count()), (Some(Duration::from_millis(100)), 100));
    }
}
