//! BOLA: Lyapunov optimisation of utility over the buffer's level.
//!
//! m* maximises (V*(v_m + gp) - Q) / S_m;  while Q > Q_D - 1 it waits
//! v_m = ln(S_m / S_1),  V = (Q_D - 1) / (v_M + gp)
//! Q buffer in media segments, S_m nominal size (only ratios count), gp = gamma*p = 5, Q_max capacity in media
//! segments.
//!
//! BOLA-BASIC (`finite = false`): Q_D = Q_max. BOLA-FINITE, near the beginning and the end of a video:
//! t = min(played, left),  t' = max(t/2, 3p),  Q_D = min(Q_max, t'/p)
//! and a download with S^R left is abandoned for an m' < m with (V*(v_m' + gp) - Q) / S_m' > (V*(v_m + gp) - Q) / S^R.
//!
//! BOLA-U and BOLA-O cap a switch upwards, m* > m[n-1], by the throughput r of the last media segment:
//! m' = the highest with S_m/p <= max(r, S_1/p);  m* if m' >= m*,  m[n-1] if m' < m[n-1],  and between these two
//! BOLA-U (the default with FINITE): m' + 1.  BOLA-O: m', after a pause until m' scores no less than m' + 1.
//!
//! Spiteri, Urgaonkar, Sitaraman: "BOLA: Near-Optimal Bitrate Adaptation for Online Videos", INFOCOM 2016, and
//! IEEE/ACM Transactions on Networking 28(4), 2020, figures 6 (the algorithm) and 7 (abandonment); gp = 5 as there.
//!
//! Domain. The buffer has to hold three media segments ([`FINITE_FLOOR_SEGMENTS`], section V-D of the journal). Where a
//! media segment is longer than the distances between the levels at which the choice changes (section V-E2, "dense
//! buffer thresholds"), BOLA-BASIC and BOLA-FINITE alternate between low and high representations, and stall at the
//! high ones also if the network is constant; the cap is the remedy. A download of a segment as long as the distance
//! between several levels is abandoned early and often.
//!
//! Ours: r counts from the request to the last byte, as one measurement (Sabre, the authors' simulator: averages of 3
//! and 8 s, latency apart). Ties go to the higher representation, as in dash.js. Of several m' worth abandoning for,
//! the one of the highest score. Q_D is at least [`MIN_CAPACITY_SEGMENTS`], since a buffer of one media segment leaves
//! nothing to decide.

use super::options::{BolaCap, check};
use super::{Abandon, AbrRule, Decision, Entry, Progress, View};
use anabranch_units::Duration;

const NAME: &str = "bola";
/// gamma*p: the weight of stalls, in units of utility (Sabre).
const GAMMA_P: f64 = 5.0;
/// Sabre's default buffer.
const CAPACITY: Duration = Duration::from_secs(25);
const MIN_CAPACITY_SEGMENTS: f64 = 2.0;
/// BOLA-FINITE's capacity as a share of the time that was played, or that is left.
const FINITE_SHARE: f64 = 0.5;
/// The minimum of BOLA-FINITE's capacity, in media segments.
const FINITE_FLOOR_SEGMENTS: f64 = 3.0;

pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "Maximises utility over the buffer's level by Lyapunov optimisation; the throughput only caps switches upwards.",
    source: "Spiteri et al., BOLA, INFOCOM 2016 and ToN 2020",
    create: |options| {
        options.expect_only(NAME, &["capacity", "finite", "cap", "abandon"])?;
        let capacity = options.capacity.unwrap_or(CAPACITY);
        let finite = options.finite.unwrap_or(true);
        Ok(Box::new(Bola {
            capacity: check(NAME, "capacity", "longer than no time", capacity, |c| !c.is_zero())?,
            finite,
            cap: options.cap.unwrap_or(if finite { BolaCap::BolaU } else { BolaCap::None }),
            abandon: options.abandon.unwrap_or(finite),
            weight: 0.0,
        }))
    },
};

/// The shortest buffer for which the algorithm was made: three media segments (section V-D).
pub(crate) fn least_capacity(segment: Duration) -> Duration {
    Duration::from_secs_f64(FINITE_FLOOR_SEGMENTS * segment.as_secs_f64())
}

#[derive(Debug)]
struct Bola {
    capacity: Duration,
    finite: bool,
    cap: BolaCap,
    abandon: bool,
    /// V of the last decision, in media segments per unit of utility.
    weight: f64,
}

impl Bola {
    /// Q_max or Q_D, in media segments.
    fn capacity_segments(&self, view: &View<'_>) -> f64 {
        let p = view.ladder.segment_duration().as_secs_f64();
        let q_max = self.capacity.as_secs_f64() / p;
        if !self.finite {
            return q_max.max(MIN_CAPACITY_SEGMENTS);
        }
        let fetched = view.next as f64 * p;
        let played = (fetched - view.buffer.as_secs_f64()).max(0.0);
        let left = view.ladder.segments() as f64 * p - played;
        let t = (FINITE_SHARE * played.min(left)).max(FINITE_FLOOR_SEGMENTS * p);
        q_max.min(t / p).max(MIN_CAPACITY_SEGMENTS)
    }

    /// The level in media segments up to which a representation's score is not negative.
    fn highest_level(&self, view: &View<'_>, representation: usize) -> f64 {
        self.weight * (utility(view, representation) + GAMMA_P)
    }

    /// The level in media segments up to which a representation scores no less than the next one.
    fn level_of_change(&self, view: &View<'_>, representation: usize) -> f64 {
        let (low, high) = (view.ladder.bps(representation), view.ladder.bps(representation + 1));
        let [low_level, high_level] = [0, 1].map(|step| self.highest_level(view, representation + step));
        (high * low_level - low * high_level) / (high - low)
    }

    /// The representation to take instead of `best`, and the level to which the buffer has to fall before.
    fn capped(&self, view: &View<'_>, best: usize) -> (usize, f64) {
        let last = view.current.min(view.top);
        let Some(download) = view.downloads.last().filter(|_| best > last) else { return (best, f64::INFINITY) };
        let sustained = view.ladder.highest_within(download.throughput_bps(), view.top);
        match self.cap {
            BolaCap::None => (best, f64::INFINITY),
            _ if sustained >= best => (best, f64::INFINITY),
            // The cap is there against oscillations, so it leaves the last choice as it is.
            _ if sustained < last => (last, f64::INFINITY),
            BolaCap::BolaO => (sustained, self.level_of_change(view, sustained)),
            BolaCap::BolaU => (sustained + 1, f64::INFINITY),
        }
    }
}

fn utility(view: &View<'_>, representation: usize) -> f64 {
    libm::log(view.ladder.bps(representation) / view.ladder.bps(0))
}

fn level(view: &View<'_>) -> f64 {
    view.buffer.as_secs_f64() / view.ladder.segment_duration().as_secs_f64()
}

impl AbrRule for Bola {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        let p = view.ladder.segment_duration().as_secs_f64();
        self.weight = (self.capacity_segments(view) - 1.0) / (utility(view, view.top) + GAMMA_P);
        // Above this level every score is negative. While it waits the level falls by one second per second, so the
        // highest representation is the first to be worth fetching again.
        let full = self.highest_level(view, view.top);
        let q = level(view);
        let score = |m: usize| (self.highest_level(view, m) - q.min(full)) / view.ladder.bps(m);
        let best = (1..=view.top).fold(0, |best, m| if score(m) >= score(best) { m } else { best });
        let (representation, fallen) = self.capped(view, best);
        let wait = Duration::from_secs_f64((q - full.min(fallen)).max(0.0) * p);
        let reason = match (q > full, representation == best) {
            (true, _) => "the buffer is full",
            (false, true) => "highest utility for the buffer",
            (false, false) => "highest utility for the buffer, capped by the last throughput",
        };
        Decision { representation, wait, reason }
    }

    fn on_progress(&mut self, view: &View<'_>, progress: &Progress) -> Option<Abandon> {
        let left = progress.total.saturating_sub(progress.bytes) as f64;
        let q = level(view);
        let here = self.highest_level(view, progress.representation) - q;
        // A negative score would gain by a larger download.
        if !self.abandon || progress.bytes == 0 || left <= 0.0 || here < 0.0 {
            return None;
        }
        let whole = |m: usize| progress.total as f64 * view.ladder.bps(m) / view.ladder.bps(progress.representation);
        let score = |m: usize| (self.highest_level(view, m) - q) / whole(m);
        let lower = (0..progress.representation).filter(|&m| score(m) > here / left);
        let representation = lower.reduce(|best, m| if score(m) >= score(best) { m } else { best })?;
        Some(Abandon { representation, reason: "a lower representation has the higher utility for what is left" })
    }
}

#[cfg(test)]
mod tests {
    use super::super::AbrOptions;
    use super::super::testing::{download, ladder, two_second_ladder, view};
    use super::*;
    use anabranch_units::Instant;

    fn decide(finite: bool, buffer_ms: u64, next: u64) -> Decision {
        // p = 1 s, 100 media segments, rates 1, e, e^2 (in kbit/s): utilities 0, 1, 2.
        let ladder = ladder(&[1_000, 2_718, 7_389]);
        let capacity = Some(Duration::from_secs(15));
        let mut rule = (ENTRY.create)(&AbrOptions { capacity, finite: Some(finite), ..AbrOptions::default() }).unwrap();
        rule.decide(&View { buffer: Duration::from_millis(buffer_ms), next, ..view(&ladder) })
    }

    #[test]
    fn scores_change_places_where_they_are_equal() {
        // V = 14 / 7 = 2. (10 - Q)/1 = (12 - Q)/2.718 at Q = (27.18 - 12)/1.718 = 8.836;
        // (12 - Q)/2.718 = (14 - Q)/7.389 at Q = (88.668 - 38.052)/4.671 = 10.836.
        let chosen = |ms| decide(false, ms, 50).representation;
        assert_eq!((chosen(0), chosen(8_830), chosen(8_845)), (0, 0, 1));
        assert_eq!((chosen(10_830), chosen(10_845), chosen(13_999)), (1, 2, 2));
    }

    #[test]
    fn it_waits_where_every_score_is_negative() {
        // V*(2 + 5) = 14 media segments.
        assert_eq!(decide(false, 14_000, 50).wait, Duration::ZERO);
        let full = decide(false, 14_750, 50);
        assert_eq!((full.representation, full.wait), (2, Duration::from_millis(750)));
    }

    #[test]
    fn a_finite_video_begins_and_ends_with_a_small_buffer() {
        // Played 0: t' = 3 s, V = 2/7, full at 2. Equal scores of the lower two at Q = 8.836/7 = 1.262, of the upper at
        // 1.548.
        let chosen = |ms, next| decide(true, ms, next).representation;
        assert_eq!((chosen(1_250, 1), chosen(1_270, 1), chosen(1_560, 1)), (0, 1, 2));
        // Fetched 25, played 25 - Q: Q_D = (25 - Q)/2, V = (Q_D - 1)/7; equal at Q = 8.836/2 * V, so at 5.517.
        assert_eq!((chosen(5_500, 25), chosen(5_530, 25)), (0, 1));
        // Fetched 93 of 100, left 7 + Q: equal at Q = 8.836/2 * ((7 + Q)/2 - 1)/7, so at 2.305.
        assert_eq!((chosen(2_295, 93), chosen(2_315, 93)), (0, 1));
        // In the middle the capacity is the limit: as without FINITE.
        assert_eq!((chosen(8_830, 58), chosen(8_845, 58)), (0, 1));
    }

    #[test]
    fn media_segments_of_two_seconds_count_as_one_each() {
        // 30 s are 15 media segments: V = 2, thresholds at 8.836 and full at 14 of them, 28 s.
        let ladder = two_second_ladder(&[1_000, 2_718, 7_389]);
        let decide = |finite, ms, next| {
            let capacity = Some(Duration::from_secs(30));
            let options = AbrOptions { capacity, finite: Some(finite), ..AbrOptions::default() };
            let mut rule = (ENTRY.create)(&options).unwrap();
            rule.decide(&View { buffer: Duration::from_millis(ms), next, ..view(&ladder) })
        };
        assert_eq!((decide(false, 17_660, 25).representation, decide(false, 17_690, 25).representation), (0, 1));
        assert_eq!(decide(false, 29_500, 25).wait, Duration::from_millis(1_500));
        // Fetched 12 (24 s), played 24 - B: Q_D = (24 - B)/4, equal at B/2 = 8.836/2 * (Q_D - 1)/7, so at B = 4.797.
        assert_eq!((decide(true, 4_780, 12).representation, decide(true, 4_820, 12).representation), (0, 1));
        // Fetched 46 of 50 (92 s), left 8 + B: Q_D = (8 + B)/4, so equal at B = 1.845, but three are the least: B/2 =
        // 1.262.
        assert_eq!((decide(true, 2_510, 46).representation, decide(true, 2_540, 46).representation), (0, 1));
        // Fetched 40 (80 s), left 20 + B: Q_D = (20 + B)/4, equal at B = 7.378.
        assert_eq!((decide(true, 7_360, 40).representation, decide(true, 7_400, 40).representation), (0, 1));
    }

    #[test]
    fn the_default_capacity_is_that_of_sabre() {
        // 25 media segments: V = 24/7, full at 24.
        let ladder = ladder(&[1_000, 2_718, 7_389]);
        let mut rule = (ENTRY.create)(&AbrOptions { finite: Some(false), ..AbrOptions::default() }).unwrap();
        let decision = rule.decide(&View { buffer: Duration::from_secs(25), ..view(&ladder) });
        assert_eq!(decision.wait, Duration::from_secs(1));
    }

    #[test]
    fn a_limit_of_the_representation_is_the_top_of_the_utilities() {
        let ladder = ladder(&[1_000, 2_718, 7_389]);
        let options =
            AbrOptions { finite: Some(false), capacity: Some(Duration::from_secs(13)), ..AbrOptions::default() };
        let mut rule = (ENTRY.create)(&options).unwrap();
        // V = 12 / 6 = 2, full at 12.
        let decision = rule.decide(&View { buffer: Duration::from_secs(13), top: 1, ..view(&ladder) });
        assert_eq!((decision.representation, decision.wait), (1, Duration::from_secs(1)));
    }

    #[test]
    fn a_tiny_capacity_still_fetches() {
        let ladder = ladder(&[1_000, 2_718]);
        let options = AbrOptions { capacity: Some(Duration::from_millis(1)), ..AbrOptions::default() };
        let mut rule = (ENTRY.create)(&options).unwrap();
        assert_eq!(
            rule.decide(&View { buffer: Duration::ZERO, ..view(&ladder) }),
            Decision::now(0, "highest utility for the buffer")
        );
        // Two media segments: full at one of them.
        let decision = rule.decide(&View { buffer: Duration::from_millis(1_250), ..view(&ladder) });
        assert_eq!(decision.wait, Duration::from_millis(250));
        assert!((ENTRY.create)(&AbrOptions { capacity: Some(Duration::ZERO), ..AbrOptions::default() }).is_err());
    }

    /// The decision of BOLA with V = 2 (capacity 15 s) at this level, with rates 1, e, e^2 Mbit/s, after a media
    /// segment in representation `last` at `bps`.
    fn capped(cap: BolaCap, buffer_ms: u64, last: usize, bps: u64) -> Decision {
        let ladder = ladder(&[1_000_000, 2_718_282, 7_389_056]);
        let options = AbrOptions {
            capacity: Some(Duration::from_secs(15)),
            finite: Some(false),
            cap: Some(cap),
            ..AbrOptions::default()
        };
        let downloads = [download(bps)];
        let buffer = Duration::from_millis(buffer_ms);
        let view = View { buffer, current: last, downloads: &downloads, ..view(&ladder) };
        (ENTRY.create)(&options).unwrap().decide(&view)
    }

    #[test]
    fn a_switch_upwards_is_capped_by_the_last_throughput() {
        // At 12 s the buffer alone asks for the top, as the thresholds above show.
        let chosen = |cap, last, bps| capped(cap, 12_000, last, bps).representation;
        use BolaCap::{BolaO, BolaU, None};
        assert_eq!(chosen(None, 0, 1_500_000), 2);
        // 1.5 Mbit/s sustain the lowest: one above it, or the lowest itself.
        assert_eq!((chosen(BolaU, 0, 1_500_000), chosen(BolaO, 0, 1_500_000)), (1, 0));
        // Less than the lowest counts as the lowest.
        assert_eq!((chosen(BolaU, 0, 500_000), chosen(BolaO, 0, 500_000)), (1, 0));
        // The cap neither lowers the last choice nor raises it.
        assert_eq!((chosen(BolaU, 1, 1_500_000), chosen(BolaO, 1, 1_500_000)), (1, 1));
        // 2.8 Mbit/s sustain the middle; 7.5 the top.
        assert_eq!((chosen(BolaU, 0, 2_800_000), chosen(BolaO, 0, 2_800_000)), (2, 1));
        assert_eq!((chosen(BolaU, 0, 7_500_000), chosen(BolaO, 0, 7_500_000)), (2, 2));
        // Downwards, or without a change, the throughput says nothing.
        let down = |last| capped(BolaU, 8_830, last, 500_000).representation;
        assert_eq!((down(2), down(1), chosen(BolaU, 2, 500_000)), (0, 0, 2));
    }

    #[test]
    fn bola_o_waits_for_the_level_at_which_it_would_choose_so() {
        // The lowest and the middle score alike at 8.836 s, the middle and the top at 10.836 s (computed above).
        let waits = |last, bps| capped(BolaCap::BolaO, 12_000, last, bps).wait.as_secs_f64();
        assert!((waits(0, 1_500_000) - (12.0 - 8.836)).abs() < 0.001);
        assert!((waits(0, 2_800_000) - (12.0 - 10.836)).abs() < 0.001);
        assert_eq!(waits(1, 1_500_000), 0.0, "it keeps its last choice");
        assert_eq!(capped(BolaCap::BolaU, 12_000, 0, 1_500_000).wait, Duration::ZERO);
        // A full buffer falls to 14 s first whatever the cap.
        assert_eq!(capped(BolaCap::BolaU, 15_000, 0, 1_500_000).wait, Duration::from_secs(1));
    }

    #[test]
    fn a_download_is_abandoned_where_a_lower_one_scores_more_than_what_is_left() {
        let ladder = ladder(&[1_000_000, 2_718_282, 7_389_056]);
        let options =
            AbrOptions { capacity: Some(Duration::from_secs(15)), finite: Some(false), ..AbrOptions::default() };
        let with = |abandon| AbrOptions { abandon: Some(abandon), ..options };
        let abandoned = |options: &AbrOptions, representation: usize, buffer_ms: u64, got: u64| {
            let mut rule = (ENTRY.create)(options).unwrap();
            rule.decide(&View { buffer: Duration::from_secs(12), ..view(&ladder) });
            let total = ladder.segment_bytes(representation, 7);
            let requested_at = Instant::ZERO;
            let progress = Progress { index: 7, representation, requested_at, first_progress: None, bytes: got, total };
            let view = View { buffer: Duration::from_millis(buffer_ms), ..view(&ladder) };
            rule.on_progress(&view, &progress).map(|abandon| abandon.representation)
        };
        // V = 2: levels 10, 12, 14. At Q = 4, in units of the lowest's size: the top scores 10/7.389 = 1.353 with all
        // left, the middle 8/2.718 = 2.943, the lowest 6/1 = 6; the top reaches 6 with 10/6 = 1.667 left, 208 333
        // bytes.
        let total = ladder.segment_bytes(2, 7);
        assert_eq!(abandoned(&with(true), 2, 4_000, 1_000), Some(0));
        assert_eq!(abandoned(&with(true), 2, 4_000, total - 208_500), Some(0));
        assert_eq!(abandoned(&with(true), 2, 4_000, total - 208_000), None);
        // At Q = 9.5: 4.5/7.389 = 0.609, 2.5/2.718 = 0.920, 0.5/1: the middle.
        assert_eq!(abandoned(&with(true), 2, 9_500, 1_000), Some(1));
        // Nothing received yet, nothing lower, a negative score, or not allowed.
        assert_eq!(abandoned(&with(true), 2, 4_000, 0), None);
        assert_eq!(abandoned(&with(true), 0, 4_000, 1_000), None);
        assert_eq!(abandoned(&with(true), 2, 14_100, 1_000), None);
        assert_eq!(abandoned(&with(false), 2, 4_000, 1_000), None);
        assert_eq!(abandoned(&options, 2, 4_000, 1_000), None, "BOLA-BASIC abandons nothing");
        assert_eq!(abandoned(&AbrOptions { finite: Some(true), ..options }, 2, 0, 1_000), Some(0));
    }
}
