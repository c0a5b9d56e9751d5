//! BLEST: keeps a slow subflow from blocking the shared window for the fast one.
//!
//! Let f be the contender with the lowest round trip and s the candidate with the lowest one. If they differ (f is
//! full), a segment on s occupies the peer's window until s delivers it. If f would use that space meanwhile, wait for
//! f instead:
//!
//! ```text
//! wait if  X_f * lambda > M - (b + y_s)
//! ```
//!
//! In bytes, X_f: what f sends meanwhile. M: the peer's window from the first unacknowledged byte. b: the segment. y_s:
//! what was given to s and not acknowledged on it. lambda in [1.0, 1.3] corrects the estimate; it starts at 1.2 and, at
//! most once per least srtt_s and only when f and s differ, rises by 0.04 if the full window made the connection
//! retransmit its first unacknowledged data since, else falls by 0.01.
//!
//! With `formula = "kernel"` (default), in whole numbers, w and h being window and slow-start threshold of f in
//! packets:
//!
//! ```text
//! t   = max(srtt_s, min_s + (max_s - min_s) * (inflight_s + 1) / w_s)   while inflight_s + 1 < w_s
//! t   = max(srtt_s, max_s)                                              otherwise
//! r   = t / ((min_f + max_f) / 2) + 1
//! X_f = MSS_f * w * (2^min(r, 16) - 1)                                  before the first loss (h infinite)
//! X_f = MSS_f * (max(w, h + 1) + (r - 1) / 2) * r                       afterwards
//! ```
//!
//! min, max: the extremes of the smoothed round trip so far. With `formula = "paper"`: r = srtt_s / srtt_f, not
//! rounded, and X_f = MSS_f * (w + (r - 1) / 2) * r.
//!
//! Source: Ferlin et al., "BLEST: Blocking Estimation-based MPTCP Scheduler for Heterogeneous Networks", IFIP
//! Networking 2016; multipath-tcp.org v0.95, `mptcp_blest.c`.
//!
//! Ours:
//! - f is sought among contenders; there, also among failed subflows and resting backups, and then it waits for these.
//! - A round trip that was not sampled yet is no extreme; there, zero remains the least for good. (As there, extremes
//!   never decay.)
//! - A reinjection goes to the lowest round trip without waiting.

use super::{Decision, Entry, PerSubflow, Scheduler, Trigger, View};
use crate::view::{Packets, SubflowView};
use anabranch_units::{Duration, Instant};

pub(super) const ENTRY: Entry = Entry {
    name: "blest",
    summary: "Like min-rtt, but waits when a slow subflow would block the peer's window for the fast one.",
    source: "Ferlin et al., BLEST, IFIP Networking 2016; multipath-tcp.org v0.95, mptcp_blest.c",
    create: |options| {
        options.expect_only(&["formula"])?;
        let formula = match options.word("formula", &["kernel", "paper"])? {
            "kernel" => Formula::Kernel,
            _ => Formula::Paper,
        };
        Ok(Box::new(Blest { formula, lambda: Lambda::default(), extremes: PerSubflow::default() }))
    },
};

#[derive(Debug)]
struct Blest {
    formula: Formula,
    lambda: Lambda,
    extremes: PerSubflow<Extremes>,
}

#[derive(Clone, Copy, Debug)]
enum Formula {
    Kernel,
    Paper,
}

impl Scheduler for Blest {
    fn decide(&mut self, view: &View<'_>, trigger: Trigger) -> Decision {
        let slow = view.fastest_candidate();
        if trigger == Trigger::Reinjection {
            return view.one_segment(slow);
        }
        self.extremes.forget_dead(view.subflows);
        for (_, subflow) in view.contenders() {
            self.extremes.of(subflow.id).widen(subflow.srtt);
        }
        self.lambda.begin(view);
        match (slow, view.fastest_contender()) {
            (Some(slow), Some(fast)) if slow != fast && self.blocks(view, slow, fast) => Decision::Wait { until: None },
            _ => view.one_segment(slow),
        }
    }
}

impl Blest {
    /// Whether a segment on `slow` would take window space that `fast` needs meanwhile.
    fn blocks(&mut self, view: &View<'_>, slow: usize, fast: usize) -> bool {
        let (slow, fast) = (&view.subflows[slow], &view.subflows[fast]);
        let slow_extremes = *self.extremes.of(slow.id);
        self.lambda.adapt(view, slow_extremes.min);
        let estimate = match self.formula {
            Formula::Kernel => {
                let meanwhile = delivery_time(slow, slow_extremes);
                bytes_meanwhile(fast, meanwhile, self.extremes.of(fast.id).average())
            }
            Formula::Paper => bytes_meanwhile_in_paper(slow, fast),
        };
        let needed = self.lambda.correct(estimate);
        let segment = u64::from(slow.mss).min(view.new_bytes());
        let occupied = segment.saturating_add(slow.queued).saturating_add(slow.outstanding);
        let window = view.connection.window_end.saturating_sub(view.connection.unacked);
        needed > u128::from(window.saturating_sub(occupied))
    }
}

/// When `slow` will have delivered one more segment: its round trip, or more if its window is filling up.
fn delivery_time(slow: &SubflowView, extremes: Extremes) -> Duration {
    let in_flight = u64::from(slow.in_flight) + 1;
    let window = u64::from(slow.cwnd.floor());
    let estimate = if in_flight >= window {
        extremes.max
    } else {
        let spread = u128::from((extremes.max - extremes.min).as_nanos());
        // The result is below the spread, because fewer packets are in flight than the window holds.
        extremes.min + Duration::from_nanos((spread * u128::from(in_flight) / u128::from(window)) as u64)
    };
    slow.srtt.max(estimate)
}

/// Beyond so many rounds slow start is no longer extrapolated.
const MAX_SLOW_START_ROUNDS: u64 = 16;

/// Bytes that `fast` sends in `time` if it grows as NewReno does and a round lasts `round`.
fn bytes_meanwhile(fast: &SubflowView, time: Duration, round: Duration) -> u128 {
    let rounds = time.as_nanos().checked_div(round.as_nanos()).map_or(1, |n| n.saturating_add(1));
    let window = u64::from(fast.cwnd.floor());
    let packets = if fast.ssthresh == Packets::INFINITE {
        u128::from(window) * ((1 << rounds.min(MAX_SLOW_START_ROUNDS)) - 1)
    } else {
        let window = window.max(u64::from(fast.ssthresh.floor()) + 1);
        (u128::from(window) + u128::from((rounds - 1) / 2)) * u128::from(rounds)
    };
    packets.saturating_mul(u128::from(fast.mss))
}

/// [`bytes_meanwhile`] by the paper's formula: rounds are not rounded, and growth is linear.
fn bytes_meanwhile_in_paper(slow: &SubflowView, fast: &SubflowView) -> u128 {
    // Without a sample of the fast one assume a single round, as the kernel does.
    let rounds = if fast.srtt.is_zero() { 1.0 } else { slow.srtt.as_secs_f64() / fast.srtt.as_secs_f64() };
    let packets = (fast.cwnd.as_f64() + (rounds - 1.0) / 2.0) * rounds;
    (f64::from(fast.mss) * packets) as u128
}

/// The extremes of a subflow's smoothed round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Extremes {
    min: Duration,
    max: Duration,
}

impl Extremes {
    fn widen(&mut self, srtt: Duration) {
        if srtt.is_zero() {
            return;
        }
        self.min = if self.max.is_zero() { srtt } else { self.min.min(srtt) };
        self.max = self.max.max(srtt);
    }

    fn average(self) -> Duration {
        self.min + (self.max - self.min) / 2
    }
}

/// The correction of the estimate, in thousandths.
#[derive(Debug)]
struct Lambda {
    thousandths: u32,
    adapted_at: Option<Instant>,
    /// Retransmissions of the first unacknowledged data, counted when lambda was last adapted.
    retransmissions: u64,
}

impl Lambda {
    const INITIAL: u32 = 1_200;
    const LEAST: u32 = 1_000;
    const MOST: u32 = 1_300;
    /// Added when the window was blocked.
    const RISE: u32 = 40;
    /// Subtracted when the window was not blocked.
    const FALL: u32 = 10;

    /// Sets the time of the first adaptation.
    fn begin(&mut self, view: &View<'_>) {
        self.adapted_at.get_or_insert(view.connection.now);
    }

    /// Adapts lambda, unless that was done less than `interval` ago.
    fn adapt(&mut self, view: &View<'_>, interval: Duration) {
        let now = view.connection.now;
        if self.adapted_at.is_some_and(|then| now.since(then) < interval) {
            return;
        }
        let retransmissions = view.connection.opportunistic_retransmissions;
        let next = if retransmissions > self.retransmissions {
            self.thousandths + Self::RISE
        } else {
            self.thousandths - Self::FALL
        };
        self.thousandths = next.clamp(Self::LEAST, Self::MOST);
        self.retransmissions = retransmissions;
        self.adapted_at = Some(now);
    }

    fn correct(&self, bytes: u128) -> u128 {
        bytes.saturating_mul(u128::from(self.thousandths)) / 1_000
    }
}

impl Default for Lambda {
    fn default() -> Self {
        Lambda { thousandths: Self::INITIAL, adapted_at: None, retransmissions: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Value;
    use crate::scheduler::testing::{Bed, at, ms, send, wait};

    /// A full subflow of 10 packets at 10 ms and an empty one of 20 packets at 45 ms, 1000-byte segments.
    fn full_fast_path(mut bed: Bed) -> Bed {
        bed = bed.subflow(ms(10), 10).subflow(ms(45), 20);
        bed.fill(0);
        bed.connection.unacked = 0;
        bed
    }

    fn window(mut bed: Bed, bytes: u64) -> Bed {
        bed.connection.window_end = bytes;
        bed
    }

    #[test]
    fn after_a_loss_the_threshold_is_linear_growth_over_the_rounds() {
        // r = 45 / 10 + 1 = 5; X = 1000 * (10 + 2) * 5 = 60 000; with lambda 1.2: 72 000. One segment on s, none in
        // flight: waits below a window of 73 000.
        let bed = || {
            let mut bed = full_fast_path(Bed::new("blest"));
            bed.subflows[0].ssthresh = Packets::whole(5);
            bed
        };
        assert_eq!(window(bed(), 73_000).decide(), send(1, 1_000));
        assert_eq!(window(bed(), 72_999).decide(), wait());
    }

    #[test]
    fn a_threshold_above_the_window_counts_as_the_window() {
        // max(10, 14 + 1) = 15; X = 1000 * (15 + 2) * 5 = 85 000; times 1.2: 102 000; plus 1000.
        let bed = || {
            let mut bed = full_fast_path(Bed::new("blest"));
            bed.subflows[0].ssthresh = Packets::whole(14);
            bed
        };
        assert_eq!(window(bed(), 103_000).decide(), send(1, 1_000));
        assert_eq!(window(bed(), 102_999).decide(), wait());
    }

    #[test]
    fn before_the_first_loss_it_is_exponential_growth() {
        // X = 1000 * 10 * (2^5 - 1) = 310 000; times 1.2: 372 000; plus 1000.
        assert_eq!(window(full_fast_path(Bed::new("blest")), 373_000).decide(), send(1, 1_000));
        assert_eq!(window(full_fast_path(Bed::new("blest")), 372_999).decide(), wait());
    }

    #[test]
    fn the_estimate_counts_whole_rounds_and_bounds_slow_start() {
        let mut fast = Bed::new("blest").subflow(ms(10), 10).subflows[0];
        assert_eq!(bytes_meanwhile(&fast, ms(10_000), ms(10)), 10_000 * 65_535, "16 rounds at most");
        assert_eq!(bytes_meanwhile(&fast, ms(9), ms(10)), 10_000, "one round at least");
        assert_eq!(bytes_meanwhile(&fast, ms(9), ms(0)), 10_000, "a round of unknown length is the only one");
        fast.ssthresh = Packets::whole(5);
        assert_eq!(bytes_meanwhile(&fast, ms(39), ms(10)), 44_000, "r = 4; (10 + 1) * 4");
    }

    #[test]
    fn the_papers_formula_does_not_round() {
        // r = 4.5; X = 1000 * (10 + 1.75) * 4.5 = 52 875; times 1.2: 63 450; plus 1000.
        let bed = || full_fast_path(Bed::with("blest", &[("formula", Value::Text("paper".into()))]));
        assert_eq!(window(bed(), 64_450).decide(), send(1, 1_000));
        assert_eq!(window(bed(), 64_449).decide(), wait());
    }

    #[test]
    fn what_is_on_the_slow_subflow_already_counts_against_the_window() {
        let bed = || {
            let mut bed = full_fast_path(Bed::new("blest"));
            bed.subflows[0].ssthresh = Packets::whole(5);
            bed.subflows[1].queued = 2_000;
            bed.subflows[1].outstanding = 3_000;
            bed
        };
        assert_eq!(window(bed(), 78_000).decide(), send(1, 1_000));
        assert_eq!(window(bed(), 77_999).decide(), wait());
    }

    #[test]
    fn the_fast_subflow_itself_never_waits() {
        let mut bed = window(full_fast_path(Bed::new("blest")), 2_000);
        bed.load(0, 0);
        assert_eq!(bed.decide(), send(0, 1_000));
    }

    #[test]
    fn a_failed_or_resting_subflow_is_not_waited_for() {
        let bed = || window(full_fast_path(Bed::new("blest")), 2_000);
        let mut failed = bed();
        failed.subflows[0].potentially_failed = true;
        assert_eq!(failed.decide(), send(1, 1_000));
        let mut backup = bed();
        backup.subflows[0].backup = true;
        assert_eq!(backup.decide(), send(1, 1_000));
    }

    #[test]
    fn a_reinjection_does_not_wait() {
        assert_eq!(window(full_fast_path(Bed::new("blest")), 2_000).reinject(), send(1, 1_000));
    }

    #[test]
    fn a_filling_window_delays_delivery_towards_the_longest_round_trip() {
        let extremes = Extremes { min: ms(40), max: ms(80) };
        let mut bed = Bed::new("blest").subflow(ms(50), 20);
        bed.load(0, 4);
        // 40 + 40 * 5 / 20 = 50 ms: just the round trip. 40 + 40 * 15 / 20 = 70 ms.
        assert_eq!(delivery_time(&bed.subflows[0], extremes), ms(50));
        bed.load(0, 14);
        assert_eq!(delivery_time(&bed.subflows[0], extremes), ms(70));
        bed.load(0, 19);
        assert_eq!(delivery_time(&bed.subflows[0], extremes), ms(80));
        bed.subflows[0].srtt = ms(90);
        assert_eq!(delivery_time(&bed.subflows[0], extremes), ms(90));
    }

    #[test]
    fn a_round_is_the_middle_of_the_extremes_and_unsampled_round_trips_are_none() {
        let mut extremes = Extremes::default();
        for srtt in [ms(0), ms(30), ms(10), ms(20)] {
            extremes.widen(srtt);
        }
        assert_eq!((extremes.min, extremes.max, extremes.average()), (ms(10), ms(30), ms(20)));
    }

    #[test]
    fn lambda_rises_after_a_blocked_window_and_falls_otherwise_once_per_round_trip() {
        let mut bed = window(full_fast_path(Bed::new("blest")), 10_000);
        let mut blest = Blest { formula: Formula::Kernel, lambda: Lambda::default(), extremes: PerSubflow::default() };
        let mut after = |bed: &mut Bed, now, retransmissions| {
            bed.connection.now = at(now);
            bed.connection.opportunistic_retransmissions = retransmissions;
            bed.ask(&mut blest, Trigger::NewData);
            blest.lambda.thousandths
        };
        assert_eq!(after(&mut bed, ms(0), 0), 1_200);
        assert_eq!(after(&mut bed, ms(44), 1), 1_200, "less than a round trip of 45 ms ago");
        assert_eq!(after(&mut bed, ms(45), 1), 1_240);
        assert_eq!(after(&mut bed, ms(90), 1), 1_230);
        assert_eq!(after(&mut bed, ms(135), 3), 1_270);
        assert_eq!(after(&mut bed, ms(180), 4), 1_300, "at most");
        for n in 5..40 {
            after(&mut bed, ms(45 * n), 4);
        }
        assert_eq!(after(&mut bed, ms(10_000), 4), 1_000, "at least");
    }
}
