//! AbandonRequestsRule: abandons a download that takes too long in favour of a lower representation.
//!
//! bw [kbit/s] = round(8 * loaded / elapsed)                             2.0 to 2.2, once 500 ms have elapsed
//!             = round(mean of that over all reports), at least 5        2.3 to 2.9, after 500 ms
//!             = round(8 * bytes / time after the first report)          5.x, at least 6 reports, after 500 ms
//! ETA [s] = 8 * total / bw / 1000, to two decimals;  keep if ETA < m * L or at the lowest;  m = 1.5, 1.8 from 2.3 on
//! new = what 0.9 * bw (5.x: bw) allows
//! abandon if total - loaded > total * rate(new) / rate(current)   (2.0 to 2.2: in any case)
//! elapsed since the first report; L duration of a media segment.
//!
//! Once per media segment; from 2.6 on only while B <= the stable buffer time. dash.js 2.2.0, 2.9.3, 5.2.1,
//! rules/abr/AbandonRequestsRule.js. A consequence: with media segments of one second, one must take more than 1.8 s.
//!
//! 2.x indexes its notes by the media segment, not by the request: the notes of a request that was aborted otherwise
//! (by a seek) are used again if the same media segment is fetched anew. We keep that.

use super::super::view::{Mark, Progress, View};
use super::js::{date_ms, fixed2, level_s, round};
use super::quality::{allowed_2, allowed_5};
use super::throughput_history::SAFETY_FACTOR;
use anabranch_units::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const REASON: &str = "AbandonRequestsRule: the download takes too long";
/// `ABANDON_MULTIPLIER`, `abandonDurationMultiplier`.
const MULTIPLIER_2_2: f64 = 1.5;
const MULTIPLIER: f64 = 1.8;
/// `GRACE_TIME_THRESHOLD`, `minSegmentDownloadTimeThresholdInMs`.
const GRACE_TIME_MS: f64 = 500.0;
/// `MIN_LENGTH_TO_AVERAGE` of 2.3 to 2.9.
const MIN_SAMPLES_2_9: usize = 5;
/// `minThroughputSamplesThreshold` of 5.x.
const MIN_REPORTS_5: u32 = 6;

/// State of 2.x for a media segment, from its first report on.
#[derive(Clone, Copy, Debug)]
struct Note {
    first_ms: f64,
    total: u64,
}

/// State of 2.x for running requests.
#[derive(Debug, Default)]
struct Notes {
    running: BTreeMap<u64, Note>,
    abandoned: BTreeSet<u64>,
}

impl Notes {
    /// The note of this media segment, and whether it is a new one; `None` if there is nothing (more) to do.
    fn open(&mut self, progress: &Progress) -> Option<(Note, bool)> {
        let first = progress.first_progress?;
        let fresh = Note { first_ms: date_ms(first.at), total: progress.total };
        let is_new = !self.running.contains_key(&progress.index);
        if !is_new && self.abandoned.contains(&progress.index) {
            return None;
        }
        Some((*self.running.entry(progress.index).or_insert(fresh), is_new))
    }

    fn close(&mut self, index: u64, abandoned: bool) {
        if abandoned {
            self.abandoned.insert(index);
        }
        self.running.remove(&index);
    }
}

fn is_quick(view: &View<'_>, total: u64, kbps: f64, multiplier: f64) -> bool {
    let eta_s = fixed2(total as f64 * 8.0 / kbps / 1_000.0);
    eta_s < view.ladder.segment_duration().as_secs_f64() * multiplier
}

fn is_worthwhile(view: &View<'_>, loaded: u64, total: u64, new: usize, current: usize) -> bool {
    let other = total as f64 * view.ladder.bps(new) / view.ladder.bps(current);
    (total as f64 - loaded as f64) > other
}

/// 2.0 to 2.2.
#[derive(Debug, Default)]
pub(super) struct AbandonRequests22 {
    notes: Notes,
}

impl AbandonRequests22 {
    /// The representation to fetch instead; `None` to keep the request.
    pub(super) fn request(&mut self, view: &View<'_>, progress: &Progress) -> Option<usize> {
        let (note, _) = self.notes.open(progress)?;
        let elapsed = date_ms(view.now) - note.first_ms;
        if progress.bytes >= note.total || elapsed < GRACE_TIME_MS {
            if progress.bytes == note.total {
                self.notes.close(progress.index, false);
            }
            return None;
        }
        let kbps = round(progress.bytes as f64 * 8.0 / elapsed);
        // 2.2 multiplies by 0.001 where later releases divide by 1000; two decimals hide the difference but for ties.
        let eta_s = fixed2(note.total as f64 * 8.0 * 0.001 / kbps);
        let limit = view.ladder.segment_duration().as_secs_f64() * MULTIPLIER_2_2;
        if eta_s < limit || view.current == 0 || self.notes.abandoned.contains(&progress.index) {
            return None;
        }
        self.notes.close(progress.index, true);
        Some(allowed_2(view.ladder, kbps * SAFETY_FACTOR, None))
    }
}

/// 2.3 to 2.9.
#[derive(Debug)]
pub(super) struct AbandonRequests29 {
    /// Stable buffer time in seconds.
    stable_buffer: f64,
    notes: Notes,
    /// Sum and number of the running averages of the media segment noted last, kbit/s.
    samples: (f64, usize),
}

impl AbandonRequests29 {
    pub(super) fn new(stable_buffer: Duration) -> Self {
        AbandonRequests29 { stable_buffer: stable_buffer.as_secs_f64(), notes: Notes::default(), samples: (0.0, 0) }
    }

    /// The representation to fetch instead; `None` to keep the request.
    pub(super) fn request(&mut self, view: &View<'_>, progress: &Progress) -> Option<usize> {
        if level_s(view.buffer) > self.stable_buffer {
            return None;
        }
        let (note, is_new) = self.notes.open(progress)?;
        if is_new {
            self.samples = (0.0, 0);
        }
        let elapsed = date_ms(view.now) - note.first_ms;
        if progress.bytes > 0 && elapsed > 0.0 {
            self.samples.0 += round(progress.bytes as f64 * 8.0 / elapsed);
            self.samples.1 += 1;
        }
        if self.samples.1 < MIN_SAMPLES_2_9 || elapsed <= GRACE_TIME_MS || progress.bytes >= note.total {
            if progress.bytes == note.total {
                self.notes.close(progress.index, false);
            }
            return None;
        }
        let kbps = round(self.samples.0 / self.samples.1 as f64);
        if is_quick(view, note.total, kbps, MULTIPLIER) || view.current == 0 {
            return None;
        }
        let new = allowed_2(view.ladder, kbps * SAFETY_FACTOR, None);
        if !is_worthwhile(view, progress.bytes, note.total, new, view.current) {
            return None;
        }
        self.notes.close(progress.index, true);
        Some(new)
    }
}

/// The reports on the running request, as 5.x keeps them in `request.traces`.
#[derive(Clone, Copy, Debug)]
struct Traces {
    index: u64,
    requested_at: Instant,
    first: Mark,
    count: u32,
}

/// 5.x.
#[derive(Debug)]
pub(super) struct AbandonRequests5 {
    /// Stable buffer time in seconds.
    stable_buffer: f64,
    traces: Option<Traces>,
    abandoned: BTreeSet<u64>,
}

impl AbandonRequests5 {
    pub(super) fn new(stable_buffer: Duration) -> Self {
        AbandonRequests5 { stable_buffer: stable_buffer.as_secs_f64(), traces: None, abandoned: BTreeSet::new() }
    }

    fn count(&mut self, progress: &Progress, first: Mark) -> Traces {
        let key = (progress.index, progress.requested_at);
        let fresh = Traces { index: progress.index, requested_at: progress.requested_at, first, count: 0 };
        let mut traces = self.traces.filter(|t| (t.index, t.requested_at) == key).unwrap_or(fresh);
        traces.count += 1;
        self.traces = Some(traces);
        traces
    }

    /// The representation to fetch instead; `None` to keep the request. `abandoned` is noted even if the player cannot
    /// follow.
    pub(super) fn request(&mut self, view: &View<'_>, progress: &Progress) -> Option<usize> {
        let traces = self.count(progress, progress.first_progress?);
        if self.abandoned.contains(&progress.index) || level_s(view.buffer) > self.stable_buffer {
            return None;
        }
        let now = date_ms(view.now);
        let first_ms = date_ms(traces.first.at);
        if traces.count < MIN_REPORTS_5 || now - first_ms <= GRACE_TIME_MS || progress.bytes >= progress.total {
            return None;
        }
        let bytes = progress.bytes as f64 - traces.first.bytes as f64;
        let kbps = round(8.0 * bytes / (now - first_ms).max(1.0));
        if is_quick(view, progress.total, kbps, MULTIPLIER) || view.current == 0 {
            return None;
        }
        let new = allowed_5(view.ladder, view.top, kbps);
        if !is_worthwhile(view, progress.bytes, progress.total, new, progress.representation) {
            return None;
        }
        self.abandoned.insert(progress.index);
        Some(new)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{at_ms, ladder, view};
    use super::super::super::view::Ladder;
    use super::*;

    /// A request for 300 kbyte at 2400 kbit/s (a second of it), from 0 ms on; first report with nothing at 100 ms.
    const TOTAL: u64 = 300_000;

    fn rates() -> Ladder {
        ladder(&[300_000, 600_000, 1_200_000, 2_400_000])
    }

    fn progress(index: u64, bytes: u64) -> Progress {
        let first_progress = Some(Mark { at: at_ms(100), bytes: 0 });
        Progress { index, representation: 3, requested_at: Instant::ZERO, first_progress, bytes, total: TOTAL }
    }

    fn at(ladder: &Ladder, ms: u64) -> View<'_> {
        View { now: at_ms(ms), current: 3, buffer: Duration::from_secs(5), ..view(ladder) }
    }

    /// Reports every 100 ms from 200 ms on, at `kbps`, until the first abandonment: its time and representation.
    fn first_abandonment(
        mut request: impl FnMut(&View<'_>, &Progress) -> Option<usize>,
        kbps: u64,
    ) -> Option<(u64, usize)> {
        let ladder = rates();
        (1..).take_while(|n| n * kbps * 100 / 8 < TOTAL).find_map(|n| {
            let ms = 100 + n * 100;
            request(&at(&ladder, ms), &progress(7, n * kbps * 100 / 8)).map(|new| (ms, new))
        })
    }

    #[test]
    fn two_two_abandons_after_half_a_second_at_one_and_a_half_durations() {
        // 1600 kbit/s: 2400/1600 = 1.5 s is not below 1.5. 0.9 * 1600 = 1440 allows 1200.
        let run = |kbps| {
            let mut rule = AbandonRequests22::default();
            first_abandonment(move |v, p| rule.request(v, p), kbps)
        };
        assert_eq!(run(1_600), Some((600, 2)));
        assert_eq!(run(1_608), None, "1.49 s");
        assert_eq!(run(400), Some((600, 0)));
        assert_eq!(run(656), Some((600, 0)), "0.9 * 656 = 590");
    }

    #[test]
    fn two_nine_needs_five_samples_more_than_half_a_second_and_one_point_eight_durations() {
        let run = |kbps| {
            let mut rule = AbandonRequests29::new(Duration::from_secs(12));
            first_abandonment(move |v, p| rule.request(v, p), kbps)
        };
        // 500 ms have elapsed at 600, more than that at 700. 2400/1336 = 1.80, not below; 0.9 * 1336 = 1202.
        assert_eq!(run(1_336), Some((700, 2)), "199 800 bytes are left, and 1200 kbit/s would be 150 000");
        assert_eq!(run(1_344), None, "1.79 s");
        // 1200 kbit/s: ETA 2 s, 1080 allows 600 (75 kbyte), 210 000 bytes are left.
        assert_eq!(run(1_200), Some((700, 1)));
        // Too few samples: reports only every 200 ms.
        let ladder = rates();
        let mut rule = AbandonRequests29::new(Duration::from_secs(12));
        let sparse = (1..=5).map(|n| rule.request(&at(&ladder, 100 + n * 200), &progress(7, n * 20_000)));
        assert_eq!(sparse.collect::<Vec<_>>(), [None, None, None, None, Some(1)], "800 kbit/s");
    }

    #[test]
    fn two_nine_averages_the_running_averages() {
        // Running averages 1600, 800, 400, 400, 400, 400 (mean 667): 0.9 * 667 = 600.3 allows 600; the last one alone
        // 300.
        let ladder = rates();
        let mut rule = AbandonRequests29::new(Duration::from_secs(12));
        let bytes = [20_000, 20_000, 15_000, 20_000, 25_000, 30_000];
        let answers: Vec<_> =
            (1..).zip(bytes).map(|(n, b)| rule.request(&at(&ladder, 100 + n * 100), &progress(7, b))).collect();
        assert_eq!(answers, [None, None, None, None, None, Some(1)]);
    }

    #[test]
    fn what_would_not_be_sooner_is_not_abandoned() {
        // At 1200 kbit/s 600 are allowed, a quarter of 300 000. With 75 000 left it is not less.
        let ladder = rates();
        let mut rule = AbandonRequests29::new(Duration::from_secs(12));
        for n in 1..=5 {
            assert_eq!(rule.request(&at(&ladder, 100 + n * 10), &progress(7, n * 1_500)), None);
        }
        assert_eq!(rule.request(&at(&ladder, 1_600), &progress(7, 225_000)), None);
        assert_eq!(rule.request(&at(&ladder, 1_601), &progress(7, 224_990)), Some(1));
    }

    #[test]
    fn a_long_buffer_and_the_lowest_representation_protect_a_request() {
        let slow = |change: &dyn Fn(&mut View<'_>)| {
            let ladder = rates();
            let mut two = AbandonRequests29::new(Duration::from_secs(12));
            let mut five = AbandonRequests5::new(Duration::from_secs(12));
            let mut answers = (None, None);
            for n in 1..=8 {
                let mut view = at(&ladder, 100 + n * 100);
                change(&mut view);
                answers = (two.request(&view, &progress(7, n * 1_000)), five.request(&view, &progress(7, n * 1_000)));
            }
            // Only the first abandonment counts; it is before the last report.
            (answers, two.notes.abandoned.len(), five.abandoned.len())
        };
        assert_eq!(slow(&|_| ()), ((None, None), 1, 1));
        assert_eq!(slow(&|v| v.buffer = Duration::from_millis(12_001)), ((None, None), 0, 0));
        assert_eq!(slow(&|v| v.buffer = Duration::from_millis(12_000)), ((None, None), 1, 1));
        assert_eq!(slow(&|v| v.current = 0), ((None, None), 0, 0));
    }

    #[test]
    fn five_measures_after_the_first_report_and_keeps_no_reserve() {
        let run = |kbps| {
            let mut rule = AbandonRequests5::new(Duration::from_secs(18));
            first_abandonment(move |v, p| rule.request(v, p), kbps)
        };
        // Six reports: at 700 ms. 1200 kbit/s: ETA 2 s; 1200 allows 1200, half of it; 210 000 are left.
        assert_eq!(run(1_200), Some((700, 2)));
        assert_eq!(run(1_344), None, "1.79 s");
        assert_eq!(run(599), Some((700, 0)));
    }

    #[test]
    fn a_media_segment_is_abandoned_once() {
        let ladder = rates();
        let (mut two, mut five) =
            (AbandonRequests29::new(Duration::from_secs(12)), AbandonRequests5::new(Duration::from_secs(12)));
        let (mut first, mut count) = (AbandonRequests22::default(), [0; 3]);
        for n in 1..=30 {
            let (view, progress) = (at(&ladder, 100 + n * 100), progress(7, n * 1_000));
            count[0] += usize::from(first.request(&view, &progress).is_some());
            count[1] += usize::from(two.request(&view, &progress).is_some());
            count[2] += usize::from(five.request(&view, &progress).is_some());
        }
        assert_eq!(count, [1, 1, 1]);
    }

    #[test]
    fn a_body_that_was_complete_at_the_first_report_is_left_alone() {
        let ladder = rates();
        let whole = Progress { first_progress: None, ..progress(7, TOTAL) };
        assert_eq!(AbandonRequests22::default().request(&at(&ladder, 9_000), &whole), None);
        assert_eq!(AbandonRequests29::new(Duration::from_secs(12)).request(&at(&ladder, 9_000), &whole), None);
        assert_eq!(AbandonRequests5::new(Duration::from_secs(12)).request(&at(&ladder, 9_000), &whole), None);
    }

    #[test]
    fn two_nine_counts_neither_reports_without_bytes_nor_the_first_instant() {
        let ladder = rates();
        let mut rule = AbandonRequests29::new(Duration::from_secs(12));
        // The report at 100 ms is the first: no time has passed. Two have no bytes. Then four samples are too few.
        let reports = [(100, 5_000), (150, 0), (200, 0), (300, 10_000), (400, 10_000), (500, 10_000), (700, 10_000)];
        for (ms, bytes) in reports {
            assert_eq!(rule.request(&at(&ladder, ms), &progress(7, bytes)), None, "{ms}");
        }
        assert!(rule.request(&at(&ladder, 800), &progress(7, 10_000)).is_some());
    }

    #[test]
    fn five_leaves_the_first_report_out_and_waits_for_half_a_second() {
        let ladder = rates();
        let mut rule = AbandonRequests5::new(Duration::from_secs(18));
        let first_progress = Some(Mark { at: at_ms(100), bytes: 50_000 });
        let mut ask = |ms, bytes| rule.request(&at(&ladder, ms), &Progress { first_progress, ..progress(7, bytes) });
        let early: Vec<_> = (1..=8).map(|n| ask(100 + n * 60, 50_000 + n * 3_000)).collect();
        assert_eq!(early, [None; 8], "480 ms");
        assert_eq!(ask(600, 75_000), None, "500 ms");
        // 26 250 bytes in 700 ms: 300 kbit/s, where 76 250 would be 871.
        assert_eq!(ask(800, 76_250), Some(0));
    }

    #[test]
    fn five_waits_for_six_reports_however_rare_they_are() {
        let ladder = rates();
        let mut rule = AbandonRequests5::new(Duration::from_secs(18));
        let first_progress = Some(Mark { at: at_ms(100), bytes: 50_000 });
        let mut ask = |ms, bytes| rule.request(&at(&ladder, ms), &Progress { first_progress, ..progress(7, bytes) });
        let five: Vec<_> = (1..=5).map(|n| ask(100 + n * 200, 50_000 + n * 1_000)).collect();
        assert_eq!(five, [None; 5], "half a second is over at the third");
        assert_eq!(ask(1_300, 56_000), Some(0));
    }

    #[test]
    fn a_complete_body_is_not_abandoned_however_long_it_took() {
        let ladder = rates();
        let mut first = AbandonRequests22::default();
        let mut two = AbandonRequests29::new(Duration::from_secs(12));
        let mut five = AbandonRequests5::new(Duration::from_secs(18));
        // Being the lowest protects the request until its end.
        for n in 1..=8 {
            let protected = View { current: 0, ..at(&ladder, 100 + n * 1_000) };
            let progress = progress(7, n * 1_000);
            assert_eq!(first.request(&protected, &progress), None);
            assert_eq!((two.request(&protected, &progress), five.request(&protected, &progress)), (None, None));
        }
        let (end, whole) = (at(&ladder, 9_100), progress(7, TOTAL));
        assert_eq!(first.request(&end, &whole), None);
        assert_eq!((two.request(&end, &whole), five.request(&end, &whole)), (None, None));
    }

    #[test]
    fn notes_end_with_the_download() {
        let ladder = rates();
        let mut rule = AbandonRequests29::new(Duration::from_secs(12));
        rule.request(&at(&ladder, 200), &progress(7, 1_000));
        assert_eq!(rule.notes.running.len(), 1);
        rule.request(&at(&ladder, 9_000), &progress(7, TOTAL));
        assert_eq!(rule.notes.running.len(), 0);
        let mut rule = AbandonRequests22::default();
        rule.request(&at(&ladder, 200), &progress(7, 1_000));
        rule.request(&at(&ladder, 9_000), &progress(7, TOTAL));
        assert_eq!(rule.notes.running.len(), 0);
    }
}
