//! ThroughputRule: the highest representation within the throughput.
//!
//! 2.0 to 2.2: round(0.9 * mean of the last 3 (live 2) samples / 1000) kbit/s; a sample is round(8 * bytes) / (finish -
//!              first) of the last media segment, taken when a decision is due, left out if it equals the one before
//! 2.6 to 2.9:  0.9 * average of `throughput_history.rs`, with the latency's share taken off
//! 5.x:         0.9 * average of `ewma.rs`
//! No request while the buffer is not loaded (unless live) and for 10 s after an abandoned request.
//!
//! dash.js 2.2.0, 2.9.3, 5.2.1, rules/abr/ThroughputRule.js. In 2.0 to 2.4 the rule reads the last HTTP request, and
//! makes no request if that was for an initialisation segment: right after a switch it does not decide. Its array of
//! samples is shortened by one per decision, so that at most four are in it and three count.

use super::super::view::{BufferState, Download, View};
use super::js::round;
use super::quality::{allowed_2, allowed_5};
use super::request::Request;
use super::throughput_history::SAFETY_FACTOR;

pub(super) const NAME: &str = "ThroughputRule";
/// `AVERAGE_THROUGHPUT_SAMPLE_AMOUNT_VOD` and `_LIVE` of 2.2.
const SAMPLES_VOD_2_2: usize = 3;
const SAMPLES_LIVE_2_2: usize = 2;

fn may_act(view: &View<'_>, abandoning: bool) -> bool {
    let loaded = view.buffer_state == Some(BufferState::Loaded);
    !abandoning && view.buffer_state.is_some() && (loaded || view.ladder.is_live())
}

/// 2.0 to 2.2.
#[derive(Debug, Default)]
pub(super) struct ThroughputRule22 {
    /// Samples in bit/s, oldest first.
    samples: Vec<f64>,
    last_was_init: bool,
}

impl ThroughputRule22 {
    /// The last HTTP request was for an initialisation segment, or for a media segment.
    pub(super) fn fetched(&mut self, init: bool) {
        self.last_was_init = init;
    }

    pub(super) fn request(&mut self, view: &View<'_>, abandoning: bool) -> Option<Request> {
        let last = view.downloads.last().filter(|_| !self.last_was_init)?;
        view.buffer_state?;
        self.sample(last);
        let average = self.average(view.ladder.is_live());
        let representation = allowed_2(view.ladder, round(average / 1_000.0 * SAFETY_FACTOR), None);
        may_act(view, abandoning).then(|| Request::new(NAME, representation))
    }

    fn sample(&mut self, last: &Download) {
        use super::js::date_ms;
        let first = last.first_progress.map_or(last.requested_at, |mark| mark.at);
        let seconds = (date_ms(last.finished_at) - date_ms(first)) / 1_000.0;
        let bps = (last.bytes() * 8) as f64 / seconds;
        if bps.is_finite() && self.samples.last() != Some(&bps) {
            self.samples.push(bps);
        }
    }

    fn average(&mut self, live: bool) -> f64 {
        let wanted = if live { SAMPLES_LIVE_2_2 } else { SAMPLES_VOD_2_2 };
        let n = wanted.min(self.samples.len());
        let last = &self.samples[self.samples.len() - n..];
        let average = if last.is_empty() { 0.0 } else { last.iter().sum::<f64>() / n as f64 };
        if self.samples.len() > n {
            self.samples.remove(0);
        }
        average
    }
}

/// 2.6 to 2.9: `safe_average` in kbit/s, `latency` in ms.
pub(super) fn request_2_9(
    view: &View<'_>,
    abandoning: bool,
    safe_average: Option<f64>,
    latency: Option<f64>,
) -> Option<Request> {
    let kbps = safe_average?;
    may_act(view, abandoning).then(|| Request::new(NAME, allowed_2(view.ladder, kbps, latency)))
}

/// 5.x: `safe_average` in kbit/s.
pub(super) fn request_5(view: &View<'_>, abandoning: bool, safe_average: Option<f64>) -> Option<Request> {
    let kbps = safe_average?;
    may_act(view, abandoning).then(|| Request::new(NAME, allowed_5(view.ladder, view.top, kbps)))
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{ladder, timed, view};
    use super::*;
    use BufferState::{Empty, Loaded};

    const RATES: [u64; 4] = [100_000, 200_000, 300_000, 900_000];

    #[test]
    fn it_acts_on_a_loaded_buffer_or_live() {
        let recorded = ladder(&RATES);
        let live = recorded.clone().live();
        for (ladder, state, acts) in [
            (&recorded, None, false),
            (&recorded, Some(Empty), false),
            (&recorded, Some(Loaded), true),
            (&live, None, false),
            (&live, Some(Empty), true),
        ] {
            let view = View { buffer_state: state, ..view(ladder) };
            assert_eq!(request_2_9(&view, false, Some(210.0), None), acts.then_some(Request::new(NAME, 1)));
            assert_eq!(request_5(&view, false, Some(210.0)), acts.then_some(Request::new(NAME, 1)));
            assert_eq!(request_2_9(&view, true, Some(210.0), None), None, "abandoning");
            assert_eq!(request_5(&view, true, Some(210.0)), None, "abandoning");
        }
    }

    #[test]
    fn it_makes_no_request_without_an_average_and_2_9_minds_the_latency() {
        let ladder = ladder(&RATES);
        let view = View { buffer_state: Some(Loaded), ..view(&ladder) };
        assert_eq!(request_2_9(&view, false, None, None), None);
        assert_eq!(request_5(&view, false, None), None);
        assert_eq!(request_2_9(&view, false, Some(210.0), Some(100.0)), Some(Request::new(NAME, 0)));
    }

    /// Decides once per media segment at each of these kbit/s, fetched in a second after 500 ms of latency.
    fn decide_22(kbps: &[u64], live: bool) -> Vec<usize> {
        let ladder = if live { ladder(&RATES).live() } else { ladder(&RATES) };
        let mut rule = ThroughputRule22::default();
        let mut downloads = Vec::new();
        kbps.iter()
            .map(|k| {
                downloads.push(timed(0, 500, 1_500, k * 125));
                let view = View { buffer_state: Some(Loaded), downloads: &downloads, ..view(&ladder) };
                rule.request(&view, false).unwrap().representation
            })
            .collect()
    }

    #[test]
    fn two_two_takes_nine_tenths_of_the_mean_of_three() {
        // Means: 1000, 550, 400, (100 + 100.8 + 100): the fourth leaves the first out.
        assert_eq!(decide_22(&[1_000, 100, 101, 100], false), [3, 2, 2, 0]);
        // Live two: 1000, 550, 100.5.
        assert_eq!(decide_22(&[1_000, 100, 101], true), [3, 2, 0]);
        // 0.9 * 223 = 200.7, rounded to 201; 0.9 * 222 = 199.8, rounded to 200: enough.
        assert_eq!(decide_22(&[222], false), [1]);
        assert_eq!(decide_22(&[221], false), [0]);
    }

    #[test]
    fn two_two_leaves_out_a_sample_that_equals_the_last() {
        // Without the rule the mean of (1000, 100, 100) would be 400 and then 100; with it the 1000 stays in.
        assert_eq!(decide_22(&[1_000, 100, 100, 100, 100], false), [3, 2, 2, 2, 2]);
    }

    #[test]
    fn two_two_makes_no_request_after_an_initialisation_segment() {
        let ladder = ladder(&RATES);
        let downloads = [timed(0, 500, 1_500, 125_000)];
        let view = View { buffer_state: Some(Loaded), downloads: &downloads, ..view(&ladder) };
        let mut rule = ThroughputRule22::default();
        rule.fetched(true);
        assert_eq!(rule.request(&view, false), None);
        rule.fetched(false);
        assert_eq!(rule.request(&view, false), Some(Request::new(NAME, 3)));
        assert_eq!(rule.request(&View { downloads: &[], ..view }, false), None);
    }

    #[test]
    fn two_two_samples_even_while_it_makes_no_request() {
        let ladder = ladder(&RATES);
        let mut rule = ThroughputRule22::default();
        let (slow, fast) = ([timed(0, 0, 1_000, 12_500)], [timed(0, 0, 1_000, 125_000)]);
        let at = |state, downloads| View { buffer_state: Some(state), downloads, ..view(&ladder) };
        assert_eq!(rule.request(&at(Empty, &slow), false), None);
        assert_eq!(rule.request(&at(Loaded, &slow), true), None);
        assert_eq!(rule.request(&at(Loaded, &fast), false), Some(Request::new(NAME, 2)), "the mean of 100 and 1000");
    }

    #[test]
    fn two_two_divides_by_the_time_after_the_first_report() {
        // 75 kbyte in 2 s are 300 kbit/s, of which 270 are used; the second before does not count.
        let ladder = ladder(&RATES);
        let downloads = [timed(0, 1_000, 3_000, 75_000)];
        let view = View { buffer_state: Some(Loaded), downloads: &downloads, ..view(&ladder) };
        assert_eq!(ThroughputRule22::default().request(&view, false), Some(Request::new(NAME, 1)));
    }

    #[test]
    fn two_two_ignores_a_download_without_duration() {
        let ladder = ladder(&RATES);
        let mut rule = ThroughputRule22::default();
        let downloads = [timed(0, 1_000, 1_000, 125_000)];
        let view = View { buffer_state: Some(Loaded), downloads: &downloads, ..view(&ladder) };
        assert_eq!(rule.request(&view, false), Some(Request::new(NAME, 0)), "an average of nothing is zero");
    }
}
