//! Statistics of a recorded rate.
//!
//! The rate is averaged over whole seconds, as in most recordings; all statistics but the mean use these samples x_1 ..
//! x_n:
//!
//! ```text
//! coefficient of variation = s / m,   s^2 = sum (x_i - m)^2 / n
//! autocorrelation at k     = sum_(i <= n - k) (x_i - m) (x_(i+k) - m) / (n s^2)
//! outage                   = consecutive samples below 5 % of m
//! ```
//!
//! The autocorrelation is the usual, biased estimate (Box, Jenkins, Reinsel, Time Series Analysis, 2.1.5). A share of
//! the mean, rather than a rate, defines an outage, so that scaling a trace does not change its statistics.

use super::steps::check_entries;
use super::{OPPORTUNITY_BYTES, Opportunities, RecordedNetwork, RecordedRate, Steps, TraceError};
use anabranch_units::{Bandwidth, Duration};

/// Below this share of the mean rate a trace counts as out: video that suits the mean cannot be transferred.
pub const OUTAGE_SHARE_OF_MEAN: f64 = 0.05;

const SECOND: u64 = 1_000_000_000;

/// A trace's statistics. Rates are in bits per second.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The mean over the whole trace, in bits per second.
    pub mean_bps: f64,
    /// Means over whole seconds, in the order of time; of a trace shorter than a second its mean.
    pub samples_bps: Vec<f64>,
    /// The samples in ascending order.
    sorted_bps: Vec<f64>,
    /// Coefficient of variation: the standard deviation over the mean.
    pub variation: f64,
    /// Number of outages.
    pub outages: usize,
    /// The share of time in outages, 0 to 1.
    pub outage_share: f64,
    /// Length of the longest outage, in whole seconds.
    pub longest_outage_s: usize,
    /// The recorded latency; `None` if there is none.
    pub latency: Option<Latency>,
}

/// A recorded latency, weighted by time, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// Mean in seconds.
    pub mean_s: f64,
    /// Minimum in seconds.
    pub min_s: f64,
    /// Maximum in seconds.
    pub max_s: f64,
}

impl Summary {
    /// The statistics of a recording.
    ///
    /// Errors: it has more seconds than the limit of entries.
    pub fn of(recording: &RecordedNetwork) -> Result<Self, TraceError> {
        check_entries(usize::try_from(recording.period().as_nanos() / SECOND).unwrap_or(usize::MAX))?;
        let samples = match &recording.rate {
            RecordedRate::Table(steps) => steps.per_second(),
            RecordedRate::Opportunities(trace) => trace.per_second(),
        };
        let mean = recording.mean_rate();
        let latency = recording.latency.as_ref().map(Latency::of);
        Ok(Summary { latency, ..Summary::of_samples(mean.as_bps() as f64, samples) })
    }

    /// The statistics of at least one sample with a known mean.
    fn of_samples(mean_bps: f64, samples: Vec<f64>) -> Self {
        let samples = if samples.is_empty() { vec![mean_bps] } else { samples };
        let mut sorted = samples.clone();
        sorted.sort_by(f64::total_cmp);
        let outages = runs_below(&samples, OUTAGE_SHARE_OF_MEAN * mean_bps);
        Summary {
            variation: if mean_bps > 0.0 { variance(&samples).sqrt() / mean_bps } else { 0.0 },
            outages: outages.len(),
            outage_share: outages.iter().sum::<usize>() as f64 / samples.len() as f64,
            longest_outage_s: outages.into_iter().max().unwrap_or(0),
            mean_bps,
            samples_bps: samples,
            sorted_bps: sorted,
            latency: None,
        }
    }

    /// The rate that this share of the samples, from 0 to 1, does not exceed, interpolated between samples.
    pub fn quantile_bps(&self, share: f64) -> f64 {
        let place = share.clamp(0.0, 1.0) * (self.sorted_bps.len() - 1) as f64;
        let below = place as usize;
        let above = (below + 1).min(self.sorted_bps.len() - 1);
        let part = place - below as f64;
        self.sorted_bps[below] * (1.0 - part) + self.sorted_bps[above] * part
    }

    /// Autocorrelation at a lag of `seconds`, from -1 to 1; `None` if there are fewer than three times as many
    /// samples, or if they are all equal.
    pub fn autocorrelation(&self, seconds: usize) -> Option<f64> {
        let (x, n) = (&self.samples_bps, self.samples_bps.len());
        let variance = variance(x);
        if n < 3 * seconds.max(1) || variance == 0.0 {
            return None;
        }
        let mean = mean(x);
        let products = x.iter().zip(&x[seconds..]).map(|(a, b)| (a - mean) * (b - mean));
        Some(products.sum::<f64>() / (n as f64 * variance))
    }
}

impl Latency {
    fn of(steps: &Steps<Duration>) -> Self {
        let values = || steps.iter().map(|(_, latency)| latency.as_secs_f64());
        let weighed: f64 = steps.iter().map(|(length, latency)| length.as_secs_f64() * latency.as_secs_f64()).sum();
        Latency {
            mean_s: weighed / steps.period().as_secs_f64(),
            min_s: values().fold(f64::INFINITY, f64::min),
            max_s: values().fold(0.0, f64::max),
        }
    }
}

impl Steps<Bandwidth> {
    /// The mean rate in each whole second.
    fn per_second(&self) -> Vec<f64> {
        let mut nanobits = vec![0u128; (self.period().as_nanos() / SECOND) as usize];
        let mut at = 0;
        for (length, rate) in self.iter() {
            let end = at + length.as_nanos();
            while at < end {
                let second = (at / SECOND) as usize;
                let until = end.min((at / SECOND + 1) * SECOND);
                if let Some(sum) = nanobits.get_mut(second) {
                    *sum += u128::from(until - at) * u128::from(rate.as_bps());
                }
                at = until;
            }
        }
        nanobits.into_iter().map(|sum| sum as f64 / 1e9).collect()
    }
}

impl Opportunities {
    /// The mean rate in each whole second. The opportunity that closes the trace belongs to the last.
    fn per_second(&self) -> Vec<f64> {
        let seconds = (self.period().as_nanos() / SECOND) as usize;
        let mut packets = vec![0u64; seconds];
        for time in self.times() {
            let closing = *time == self.period().as_nanos() && time.is_multiple_of(SECOND);
            let second = (time / SECOND) as usize - usize::from(closing);
            if let Some(count) = packets.get_mut(second) {
                *count += 1;
            }
        }
        packets.into_iter().map(|n| n as f64 * f64::from(OPPORTUNITY_BYTES) * 8.0).collect()
    }
}

/// The lengths of the runs of samples below a threshold.
fn runs_below(samples: &[f64], threshold: f64) -> Vec<usize> {
    let runs = samples.chunk_by(|a, b| (*a < threshold) == (*b < threshold));
    runs.filter(|run| run[0] < threshold).map(<[f64]>::len).collect()
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

fn variance(x: &[f64]) -> f64 {
    let mean = mean(x);
    x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / x.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Reading, TraceHints};

    fn of(text: &str) -> Summary {
        Summary::of(&Reading::of(text.as_bytes(), &TraceHints::default()).unwrap().recording).unwrap()
    }

    #[test]
    fn what_lasts_for_centuries_is_refused() {
        let recording = Reading::of(b"t,bps\n0,8\n4000000000,4\n", &TraceHints::default()).unwrap().recording;
        assert!(Summary::of(&recording).unwrap_err().to_string().contains("more than 20000000 entries"));
    }

    #[test]
    fn a_table_is_averaged_over_seconds() {
        // 8 b/s for 1.5 s, 2 b/s for 1.5 s, and half a second that is left out of the samples but not of the mean.
        let summary = of("t,bps\n0,8\n1.5,2\n3,1\n3.5,1\n4,9\n4.5,9\n");
        assert_eq!(summary.samples_bps, [8.0, 5.0, 2.0, 1.0, 9.0]);
        assert_eq!(of("t,bps\n0,8\n0.25,4\n").samples_bps, [6.0]);
    }

    #[test]
    fn opportunities_are_counted_by_the_second() {
        assert_eq!(of("0\n999\n1000\n2000\n").samples_bps, [24_000.0, 24_000.0]);
        assert_eq!(of("0\n999\n1000\n2100\n").samples_bps, [24_000.0, 12_000.0]);
    }

    #[test]
    fn variation_quantiles_and_autocorrelation_are_those_of_the_formulas() {
        let summary = of("t,bps\n0,1\n1,2\n2,3\n3,4\n4,5\n5,9\n");
        assert_eq!(summary.mean_bps, 4.0);
        // Squares of distances: 9 + 4 + 1 + 0 + 1 + 25 = 40.
        assert!((summary.variation - (40f64 / 6.0).sqrt() / 4.0).abs() < 1e-12);
        assert_eq!([0.0, 0.5, 0.9, 1.0].map(|q| summary.quantile_bps(q)), [1.0, 3.5, 7.0, 9.0]);
        // Products of neighbours: 6 + 2 + 0 + 0 + 5 = 13.
        assert!((summary.autocorrelation(1).unwrap() - 13.0 / 40.0).abs() < 1e-12);
        // Two apart: 3 + 0 - 1 + 0 = 2.
        assert!((summary.autocorrelation(2).unwrap() - 2.0 / 40.0).abs() < 1e-12);
        assert_eq!(summary.autocorrelation(3), None);
        assert_eq!(of("t,bps\n0,5\n1,5\n2,5\n3,5").autocorrelation(1), None);
    }

    #[test]
    fn outages_are_runs_far_below_the_mean() {
        let rates = [100, 0, 0, 100, 4, 100, 100, 100, 100, 0];
        let text: String = rates.iter().enumerate().map(|(t, rate)| format!("{t},{rate}\n")).collect();
        // The mean is 60.4, so that 3.02 is the threshold.
        let summary = of(&format!("t,bps\n{text}"));
        assert_eq!((summary.outages, summary.longest_outage_s, summary.outage_share), (2, 2, 0.3));
    }

    #[test]
    fn latency_is_weighed_by_time() {
        let text = r#"[{"duration_ms": 1000, "bandwidth_kbps": 1, "latency_ms": 10},
                       {"duration_ms": 3000, "bandwidth_kbps": 1, "latency_ms": 50}]"#;
        let latency = of(text).latency.unwrap();
        assert_eq!((latency.min_s, latency.max_s), (0.01, 0.05));
        assert!((latency.mean_s - 0.04).abs() < 1e-12, "{}", latency.mean_s);
    }
}
