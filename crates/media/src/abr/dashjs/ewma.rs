//! Throughput estimate of dash.js 5: the lower of two exponentially weighted averages.
//!
//! a = 0.5^(w / H);  E <- (1 - a) * sample + a * E;  W <- W + w;  estimate = E / (1 - 0.5^(W / H))
//! average = round(min over H = 3 s and 8 s);  safe average = 0.9 * average
//! sample = round(8 * bytes / time)  [kbit/s],  w = 0.0015 * time in ms
//!
//! dash.js 5.2.1, models/ThroughputModel.js and controllers/ThroughputController.js, core/Settings.js
//! (`abr.throughput`). Time and bytes come from the browser's Resource Timing entry (`responseStart` to `responseEnd`,
//! `transferSize`), or, where it has none (another origin, an aborted request), from the progress reports after the
//! first. A request
//! of less than 10 ms, from request to end, is then taken for a cached one and ignored.

use super::super::view::Download;
use super::js::{date_ms, round, timestamp_ms};
use super::throughput_history::SAFETY_FACTOR;

/// `throughputFastHalfLifeSeconds`, `throughputSlowHalfLifeSeconds`.
const HALF_LIVES_S: [f64; 2] = [3.0, 8.0];
/// `weightDownloadTimeMultiplicationFactor`: the weight of a millisecond, s.
const WEIGHT_PER_MS: f64 = 0.0015;
/// `cacheLoadThresholds.video`, ms.
const CACHE_LOAD_THRESHOLD_MS: f64 = 10.0;
/// Bytes that `transferSize` adds to the body for the response's header, whatever its length (Resource Timing, section
/// 4.5).
const TRANSFER_SIZE_HEADER_BYTES: u64 = 300;

/// Source of times and sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timing {
    /// The Resource Timing entry.
    Resource,
    /// The progress reports.
    Progress,
}

#[derive(Debug, Default)]
pub(super) struct Ewma {
    estimates: [f64; 2],
    weight_s: f64,
}

/// (kbit/s, ms) as the player measures them; `None` if it cannot.
fn measure(download: &Download, timing: Timing) -> Option<(f64, f64)> {
    let (bytes, ms) = match timing {
        Timing::Resource => {
            let ms = timestamp_ms(download.finished_at) - timestamp_ms(download.first_byte_at);
            (download.bytes() + TRANSFER_SIZE_HEADER_BYTES, ms)
        }
        Timing::Progress => {
            // A body with a single report has no second one to measure from.
            let first = download.first_progress?;
            if download.last_progress.at == first.at && download.bytes() == first.bytes {
                return None;
            }
            let ms = date_ms(download.last_progress.at) - date_ms(first.at);
            (download.bytes() - first.bytes, ms.max(1.0))
        }
    };
    let kbps = round(8.0 * bytes as f64 / ms);
    kbps.is_finite().then_some((kbps, ms))
}

fn is_cached(download: &Download, timing: Timing) -> bool {
    let whole_ms = date_ms(download.finished_at) - date_ms(download.requested_at);
    timing == Timing::Progress && whole_ms < CACHE_LOAD_THRESHOLD_MS
}

impl Ewma {
    pub(super) fn push(&mut self, download: &Download, timing: Timing) {
        let Some((kbps, ms)) = measure(download, timing) else { return };
        if is_cached(download, timing) {
            return;
        }
        let weight = WEIGHT_PER_MS * ms;
        for (estimate, half_life) in self.estimates.iter_mut().zip(HALF_LIVES_S) {
            let alpha = libm::pow(0.5, weight / half_life);
            *estimate = (1.0 - alpha) * kbps + alpha * *estimate;
        }
        self.weight_s += weight;
    }

    /// kbit/s, rounded; `None` before the first sample.
    pub(super) fn average(&self) -> Option<f64> {
        if self.weight_s <= 0.0 {
            return None;
        }
        let unbiased = |i: usize| self.estimates[i] / (1.0 - libm::pow(0.5, self.weight_s / HALF_LIVES_S[i]));
        Some(round(unbiased(0).min(unbiased(1))))
    }

    /// The average times the safety factor, kbit/s.
    pub(super) fn safe_average(&self) -> Option<f64> {
        self.average().map(|average| average * SAFETY_FACTOR)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{at_ms, timed};
    use super::super::super::view::Mark;
    use super::*;
    use anabranch_units::Instant;

    fn ewma(downloads: &[Download], timing: Timing) -> Ewma {
        let mut ewma = Ewma::default();
        downloads.iter().for_each(|d| ewma.push(d, timing));
        ewma
    }

    #[test]
    fn the_first_sample_is_the_estimate() {
        // 8 * (12 200 + 300) / 100 ms.
        let one = ewma(&[timed(0, 50, 150, 12_200)], Timing::Resource);
        assert_eq!((one.average(), one.safe_average()), (Some(1_000.0), Some(900.0)));
        assert_eq!(Ewma::default().average(), None);
    }

    #[test]
    fn the_slow_and_the_fast_average_pull_down_and_never_up() {
        // 1000 kbit/s for 2 s (w = 3 s), then 200 kbit/s for 2 s.
        // Fast: a = 1/2: E = 500, then 350; W = 6 s: / (1 - 1/4) = 466.67.
        // Slow: a = 2^(-3/8) = 0.77111: E = 228.89, then 45.778 + 176.50 = 222.28; / (1 - 0.59460) = 548.31.
        let kbps = |k: u64, from: u64| timed(from, from, from + 2_000, k * 250 - 300);
        let falling = ewma(&[kbps(1_000, 0), kbps(200, 2_000)], Timing::Resource);
        assert_eq!(falling.average(), Some(467.0));
        // The other way round: fast (100 + 500 - ...) 0.5*1000 + 0.5*100 = 550 / 0.75 = 733; slow 228.89 +
        // 0.77111*45.778 = 264.19 / 0.40540 = 651.68.
        let rising = ewma(&[kbps(200, 0), kbps(1_000, 2_000)], Timing::Resource);
        assert_eq!(rising.average(), Some(652.0));
    }

    #[test]
    fn a_download_without_duration_is_ignored() {
        let none = ewma(&[timed(0, 50, 50, 1_000)], Timing::Resource);
        assert_eq!(none.average(), None);
    }

    #[test]
    fn progress_reports_are_measured_from_the_first_to_the_last() {
        let download = Download {
            first_progress: Some(Mark { at: at_ms(100), bytes: 2_000 }),
            last_progress: Mark { at: at_ms(300), bytes: 27_000 },
            ..timed(0, 50, 400, 0)
        };
        assert_eq!(ewma(&[download], Timing::Progress).average(), Some(1_000.0));
        let single = Download { first_progress: None, ..download };
        assert_eq!(ewma(&[single], Timing::Progress).average(), None);
        // A report without new bytes is a report: nothing in 200 ms.
        let stuck = Download { last_progress: Mark { at: at_ms(300), bytes: 2_000 }, ..download };
        assert_eq!(ewma(&[stuck], Timing::Progress).average(), Some(0.0));
        let aborted = Download { last_progress: download.first_progress.unwrap(), ..download };
        assert_eq!(ewma(&[aborted], Timing::Progress).average(), None);
    }

    #[test]
    fn two_reports_within_a_millisecond_are_one_apart() {
        let both = |bytes| Download {
            first_progress: Some(Mark { at: at_ms(40), bytes: 500 }),
            last_progress: Mark { at: at_ms(40), bytes },
            ..timed(0, 40, 60, 0)
        };
        // 8 * (1 500 - 500) / 1 ms.
        assert_eq!(ewma(&[both(1_500)], Timing::Progress).average(), Some(8_000.0));
        assert_eq!(ewma(&[both(500)], Timing::Progress).average(), None, "one report only");
    }

    #[test]
    fn less_than_ten_milliseconds_is_a_cache() {
        let quick =
            |ms: u64| Download { first_progress: Some(Mark { at: at_ms(1), bytes: 0 }), ..timed(0, 1, ms, 1_000) };
        assert_eq!(ewma(&[quick(9)], Timing::Progress).average(), None);
        let later = Download { requested_at: at_ms(1), ..quick(10) };
        assert_eq!(ewma(&[later], Timing::Progress).average(), None, "from 1 to 10 ms");
        assert_eq!(ewma(&[quick(10)], Timing::Progress).average(), Some(889.0), "8000 bit in 9 ms");
        let resource = Download { finished_at: Instant::from_nanos(9_000_000), ..quick(9) };
        assert_eq!(ewma(&[resource], Timing::Resource).average(), Some(1_300.0), "10 400 bit in 8 ms");
    }
}
