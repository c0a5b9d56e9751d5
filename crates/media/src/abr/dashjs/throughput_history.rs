//! Throughput and latency estimates of dash.js 2.6 to 2.9.
//!
//! sample = round(8 * bytes / (finish - first))  [kbit/s = bit/ms],  latency = first - request, each time at least 1 ms
//! average = mean of the last n samples; n = 4 (live 3), and one more for every jump of 1.3 or 1/1.3 among neighbours
//! safe average = 0.9 * average;  average latency = mean of the last 4
//!
//! dash.js 2.9.3, rules/ThroughputHistory.js; thresholds and quirks as there:
//! - `first` is the first *progress report* with an incomplete body. A body that was complete by then has none, and its
//!   request counts as the first byte: the round trip is then part of the download (net/HTTPLoader.js).
//! - A download of less than 50 ms is taken for a cached one: it is kept only as long as there are no others, and the
//!   first other one clears everything.
//! - The jumps are searched among the *oldest* of the 20 samples kept, while the mean is of the newest. 2.6 searched
//!   at negative indices, which are undefined in JavaScript: it never found one.
//!
//! The EWMA (`movingAverageMethod`) is an option of dash.js that is off by default; it is in `ewma.rs` for dash.js 5.

use super::super::view::Download;
use super::js::{date_ms, round};
use std::collections::VecDeque;

const MAX_MEASUREMENTS_TO_KEEP: usize = 20;
const SAMPLES_LIVE: usize = 3;
const SAMPLES_VOD: usize = 4;
const SAMPLES_LATENCY: usize = 4;
/// `THROUGHPUT_INCREASE_SCALE`, `THROUGHPUT_DECREASE_SCALE`.
const JUMP: f64 = 1.3;
/// `CACHE_LOAD_THRESHOLD_VIDEO`, ms.
const CACHE_LOAD_THRESHOLD_MS: f64 = 50.0;
/// `BANDWIDTH_SAFETY_FACTOR` of MediaPlayerModel, in all versions.
pub(super) const SAFETY_FACTOR: f64 = 0.9;

/// How a mean over unsteady samples takes more samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Widening {
    /// 2.6.
    Never,
    /// 2.9.
    ByTheOldest,
}

#[derive(Debug)]
pub(super) struct ThroughputHistory {
    widening: Widening,
    /// Samples in kbit/s, oldest first.
    throughput: VecDeque<f64>,
    /// Samples in ms, oldest first.
    latency: VecDeque<f64>,
    holds_cached: bool,
}

/// Milliseconds as the player measures them: request to first report, and from there to the end; at least one each.
pub(super) fn latency_and_download_ms(download: &Download) -> (f64, f64) {
    let requested = date_ms(download.requested_at);
    let first = download.first_progress.map_or(requested, |mark| date_ms(mark.at));
    let at_least_one = |ms: f64| if ms == 0.0 { 1.0 } else { ms };
    (at_least_one(first - requested), at_least_one(date_ms(download.finished_at) - first))
}

fn keep(samples: &mut VecDeque<f64>, sample: f64) {
    samples.push_back(sample);
    if samples.len() > MAX_MEASUREMENTS_TO_KEEP {
        samples.pop_front();
    }
}

fn mean_of_last(samples: &VecDeque<f64>, n: usize) -> Option<f64> {
    let last = samples.iter().skip(samples.len() - n.min(samples.len()));
    (!samples.is_empty()).then(|| last.clone().sum::<f64>() / last.len() as f64)
}

impl ThroughputHistory {
    pub(super) fn new(widening: Widening) -> Self {
        ThroughputHistory { widening, throughput: VecDeque::new(), latency: VecDeque::new(), holds_cached: false }
    }

    pub(super) fn push(&mut self, download: &Download) {
        let (latency, time) = latency_and_download_ms(download);
        if time < CACHE_LOAD_THRESHOLD_MS {
            if !self.throughput.is_empty() && !self.holds_cached {
                return;
            }
            self.holds_cached = true;
        } else if self.holds_cached {
            *self = ThroughputHistory::new(self.widening);
        }
        keep(&mut self.throughput, round(8.0 * download.bytes() as f64 / time));
        keep(&mut self.latency, latency);
    }

    fn sample_size(&self, live: bool) -> usize {
        let samples = &self.throughput;
        let mut size = if live { SAMPLES_LIVE } else { SAMPLES_VOD };
        if size >= samples.len() || self.widening == Widening::Never {
            return size;
        }
        let mut i = 1;
        while i < size {
            let ratio = samples[i] / samples[i - 1];
            if ratio >= JUMP || ratio <= 1.0 / JUMP {
                size += 1;
                if size == samples.len() {
                    break;
                }
            }
            i += 1;
        }
        size
    }

    /// kbit/s; `None` before the first sample.
    pub(super) fn average(&self, live: bool) -> Option<f64> {
        mean_of_last(&self.throughput, self.sample_size(live))
    }

    /// The average times the safety factor, kbit/s.
    pub(super) fn safe_average(&self, live: bool) -> Option<f64> {
        self.average(live).map(|average| average * SAFETY_FACTOR)
    }

    /// Mean latency in ms; `None` before the first sample.
    pub(super) fn latency(&self) -> Option<f64> {
        mean_of_last(&self.latency, SAMPLES_LATENCY)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::timed;
    use super::*;

    /// A history of samples in kbit/s, each measured over one second.
    fn of(widening: Widening, kbps: &[u64]) -> ThroughputHistory {
        let mut history = ThroughputHistory::new(widening);
        for k in kbps {
            history.push(&timed(0, 100, 1_100, k * 125));
        }
        history
    }

    #[test]
    fn a_sample_leaves_the_time_to_the_first_report_out() {
        let mut history = ThroughputHistory::new(Widening::ByTheOldest);
        // 8 * 10 001 / 300 = 266.69.
        history.push(&timed(1_000, 1_080, 1_380, 10_001));
        assert_eq!((history.average(false), history.latency()), (Some(267.0), Some(80.0)));
        assert_eq!(history.safe_average(false), Some(267.0 * 0.9));
    }

    #[test]
    fn without_a_report_before_the_end_the_whole_request_counts() {
        let mut history = ThroughputHistory::new(Widening::ByTheOldest);
        history.push(&Download { first_progress: None, ..timed(1_000, 1_080, 1_100, 10_000) });
        assert_eq!((history.average(false), history.latency()), (Some(800.0), Some(1.0)));
    }

    #[test]
    fn times_are_at_least_a_millisecond() {
        assert_eq!(latency_and_download_ms(&timed(5, 5, 5, 1)), (1.0, 1.0));
    }

    #[test]
    fn four_samples_count_and_three_live() {
        let history = of(Widening::Never, &[9_000, 100, 200, 300, 400]);
        assert_eq!((history.average(false), history.average(true)), (Some(250.0), Some(300.0)));
        assert_eq!(of(Widening::Never, &[100, 200]).average(false), Some(150.0));
        assert_eq!(ThroughputHistory::new(Widening::Never).average(false), None);
    }

    #[test]
    fn jumps_among_the_oldest_widen_the_mean() {
        // Ratios of the oldest: 1.3 (a jump: n = 5), then 1, 1, 1: the last five.
        let steady = [1_000, 1_300, 1_300, 1_300, 1_300, 2_000, 2_000];
        assert_eq!(of(Widening::ByTheOldest, &steady).average(false), Some((3.0 * 1_300.0 + 4_000.0) / 5.0));
        assert_eq!(of(Widening::Never, &steady).average(false), Some((2.0 * 1_300.0 + 4_000.0) / 4.0));
        // 1299/1000 is no jump, and the one among the newest is not seen.
        let newest = [1_000, 1_299, 1_299, 1_299, 1_299, 5_000];
        assert_eq!(of(Widening::ByTheOldest, &newest).average(false), Some((3.0 * 1_299.0 + 5_000.0) / 4.0));
        let once_down = [1_301, 1_000, 1_000, 1_000, 1_000, 5_000];
        assert_eq!(of(Widening::ByTheOldest, &once_down).average(false), Some(9_000.0 / 5.0));
        // With no more samples than are asked for there is nothing to widen.
        assert_eq!(of(Widening::ByTheOldest, &[100, 200, 400, 900]).average(false), Some(400.0));
        // Down by more than 1/1.3 is one, and the search goes on as far as the widened mean, until it spans everything.
        let falling = [1_301, 1_000, 700, 500, 300, 200];
        assert_eq!(of(Widening::ByTheOldest, &falling).average(false), Some(4_001.0 / 6.0));
    }

    #[test]
    fn twenty_samples_are_kept() {
        let mut kbps = vec![50; 1];
        kbps.extend([1_000; 20]);
        let history = of(Widening::ByTheOldest, &kbps);
        assert_eq!(history.throughput.len(), 20);
        assert_eq!(history.average(false), Some(1_000.0), "the jump at the beginning is gone");
    }

    #[test]
    fn downloads_of_less_than_fifty_milliseconds_count_only_alone() {
        let mut history = ThroughputHistory::new(Widening::ByTheOldest);
        let cached = |kbit: u64| timed(0, 10, 59, kbit * 125);
        history.push(&cached(49));
        history.push(&cached(147));
        assert_eq!(history.average(false), Some(2_000.0), "49 kbit and 147 kbit in 49 ms");
        history.push(&timed(0, 30, 80, 125_000));
        assert_eq!((history.average(false), history.latency()), (Some(20_000.0), Some(30.0)), "50 ms: no cache");
        history.push(&cached(49));
        assert_eq!(history.average(false), Some(20_000.0));
    }

    #[test]
    fn latency_is_the_mean_of_four() {
        let mut history = ThroughputHistory::new(Widening::Never);
        for latency in [900, 10, 20, 30, 40] {
            history.push(&timed(0, latency, latency + 100, 1_000));
        }
        assert_eq!(history.latency(), Some(25.0));
    }
}
