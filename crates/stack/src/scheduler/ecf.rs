//! ECF, earliest completion first: waits for the fast subflow if all remaining data completes sooner that way.
//!
//! Let f be the contender with the lowest round trip and s the candidate with the lowest one. If they differ (f is
//! full), compare finishing on f alone, after a round of waiting, with using s:
//!
//! ```text
//! (1)  srtt_f * (x_f + W_f) < W_f * (srtt_s + delta) * (1 + beta * waiting)    x_f = max(k, W_f)
//! (2)  srtt_s * x_s        >= W_s * (2 * srtt_f + delta)                       x_s = max(k, W_s)
//! ```
//!
//! Both hold: wait, and set waiting to 1. (1) fails: use s, and set waiting to 0. Only (2) fails: use s. k: bytes not
//! yet given to a subflow. W: window in bytes. delta: the larger deviation of the two round trips. beta = 1/4: a
//! hysteresis that prolongs a wait a little beyond the threshold.
//!
//! Source: Lim et al., "ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths", CoNEXT 2017; multipath-tcp.org
//! v0.95, `mptcp_ecf.c`.
//!
//! Ours:
//! - Products in 128 bits; there, in 32 bits, which overflow from about 86 kB at 50 ms.
//! - f is sought among contenders; there, also among failed subflows and resting backups.
//! - delta is the measured deviation, as in the paper. The kernel halves Linux's `rttvar`, which is four deviations but
//!   at least 200 ms: delta is never below 100 ms there, which makes (1) easy and (2) hard. `deviation = "kernel"` does
//!   this.
//! - A reinjection goes to the lowest round trip without waiting.

use super::{Decision, Entry, Scheduler, Trigger, View};
use crate::view::SubflowView;
use anabranch_units::Duration;

pub(super) const ENTRY: Entry = Entry {
    name: "ecf",
    summary: "Like min-rtt, but waits for the fast subflow when the remaining data completes earlier that way.",
    source: "Lim et al., ECF, CoNEXT 2017; multipath-tcp.org v0.95, mptcp_ecf.c",
    create: |options| {
        options.expect_only(&["deviation"])?;
        let deviation = match options.word("deviation", &["measured", "kernel"])? {
            "measured" => Deviation::Measured,
            _ => Deviation::Kernel,
        };
        Ok(Box::new(Ecf { deviation, waiting: false }))
    },
};

/// The hysteresis is one part in so many: beta = 1/4.
const INVERSE_BETA: u128 = 4;
/// The least value of Linux's `rttvar`, which is four deviations.
const MIN_LINUX_RTTVAR: Duration = Duration::from_millis(200);

#[derive(Debug)]
struct Ecf {
    deviation: Deviation,
    waiting: bool,
}

#[derive(Clone, Copy, Debug)]
enum Deviation {
    Measured,
    Kernel,
}

impl Deviation {
    fn of(self, subflow: &SubflowView) -> Duration {
        match self {
            Deviation::Measured => subflow.rttvar,
            Deviation::Kernel => (subflow.rttvar * 4).max(MIN_LINUX_RTTVAR) / 2,
        }
    }
}

impl Scheduler for Ecf {
    fn decide(&mut self, view: &View<'_>, trigger: Trigger) -> Decision {
        let slow = view.fastest_candidate();
        if trigger == Trigger::Reinjection {
            return view.one_segment(slow);
        }
        match (slow, view.fastest_contender()) {
            (Some(slow), Some(fast)) if slow != fast && self.waits(view, slow, fast) => Decision::Wait { until: None },
            _ => view.one_segment(slow),
        }
    }
}

impl Ecf {
    /// Whether to wait for `fast` rather than use `slow`.
    fn waits(&mut self, view: &View<'_>, slow: usize, fast: usize) -> bool {
        let (slow, fast) = (&view.subflows[slow], &view.subflows[fast]);
        let remaining = u128::from(view.connection.unsent);
        let delta = nanos(self.deviation.of(slow).max(self.deviation.of(fast)));
        let [(window_f, srtt_f), (window_s, srtt_s)] = [fast, slow].map(|s| (window(s), nanos(s.srtt)));

        // (1), times 1/beta. Real quantities are far below 2^64, so nothing saturates.
        let on_fast = srtt_f.saturating_mul(remaining.max(window_f) + window_f).saturating_mul(INVERSE_BETA);
        let margin = INVERSE_BETA + u128::from(self.waiting);
        if on_fast >= window_f.saturating_mul(srtt_s + delta).saturating_mul(margin) {
            self.waiting = false;
            return false;
        }
        // (2)
        if srtt_s.saturating_mul(remaining.max(window_s)) < window_s.saturating_mul(2 * srtt_f + delta) {
            return false;
        }
        self.waiting = true;
        true
    }
}

/// The congestion window in bytes.
fn window(subflow: &SubflowView) -> u128 {
    u128::from(subflow.cwnd.floor()) * u128::from(subflow.mss)
}

fn nanos(time: Duration) -> u128 {
    u128::from(time.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Value;
    use crate::scheduler::testing::{Bed, ms, send, wait};

    /// A full subflow of 10 kB at 20 ms and an empty one of 10 kB at 100 ms.
    fn full_fast_path(mut bed: Bed) -> Bed {
        bed = bed.subflow(ms(20), 10).subflow(ms(100), 10);
        bed.fill(0);
        bed
    }

    fn remaining(bed: &mut Bed, bytes: u64) -> Decision {
        bed.connection.unsent = bytes;
        bed.decide()
    }

    #[test]
    fn it_waits_while_the_rest_is_through_sooner_on_the_fast_subflow() {
        // (1): 20 * (k + 10) < 10 * 100, so k < 40 kB. (2): 100 * max(k, 10) >= 10 * 40 always.
        for (bytes, expected) in [(1, wait()), (39_999, wait()), (40_000, send(1, 1_000)), (1_000_000, send(1, 1_000))]
        {
            assert_eq!(remaining(&mut full_fast_path(Bed::new("ecf")), bytes), expected, "{bytes} bytes");
        }
    }

    #[test]
    fn who_waits_goes_on_waiting_a_quarter_beyond_the_threshold() {
        // While waiting, (1) is 20 * (k + 10) < 10 * 100 * 1.25, so k < 52.5 kB.
        let mut bed = full_fast_path(Bed::new("ecf"));
        assert_eq!(remaining(&mut bed, 45_000), send(1, 1_000));
        assert_eq!(remaining(&mut bed, 39_999), wait());
        assert_eq!(remaining(&mut bed, 45_000), wait());
        assert_eq!(remaining(&mut bed, 52_499), wait());
        assert_eq!(remaining(&mut bed, 52_500), send(1, 1_000));
        assert_eq!(remaining(&mut bed, 45_000), send(1, 1_000), "it waits no longer");
    }

    #[test]
    fn a_subflow_that_is_hardly_slower_is_used() {
        // (1): 20 * 20 < 10 * (39 + 2) holds. (2): 39 * 10 >= 10 * (40 + 2) does not; with 42 ms it does.
        let mut bed = full_fast_path(Bed::new("ecf"));
        bed.subflows[0].rttvar = ms(2);
        bed.subflows[1].rttvar = ms(1);
        bed.subflows[1].srtt = ms(39);
        assert_eq!(remaining(&mut bed, 1), send(1, 1_000));
        bed.subflows[1].srtt = ms(41);
        assert_eq!(remaining(&mut bed, 1), send(1, 1_000));
        bed.subflows[1].srtt = ms(42);
        assert_eq!(remaining(&mut bed, 1), wait());
    }

    #[test]
    fn the_second_test_alone_leaves_the_hysteresis_as_it_is() {
        let mut bed = full_fast_path(Bed::new("ecf"));
        assert_eq!(remaining(&mut bed, 39_999), wait());
        bed.subflows[1].srtt = ms(39);
        // (1) fails at 39 ms unless waiting: 20 * 20 < 10 * 39 * 1.25. (2): 390 >= 400 fails.
        assert_eq!(remaining(&mut bed, 1), send(1, 1_000));
        bed.subflows[1].srtt = ms(100);
        assert_eq!(remaining(&mut bed, 45_000), wait(), "still waiting");
    }

    #[test]
    fn the_kernels_deviation_is_at_least_a_hundred_milliseconds() {
        // (1): 20 * (k + 10) < 10 * (100 + 100), so k < 90 kB. (2): 100 * k >= 10 * (40 + 100), so k >= 14 kB.
        let bed = || full_fast_path(Bed::with("ecf", &[("deviation", Value::Text("kernel".into()))]));
        for (bytes, expected) in
            [(13_999, send(1, 1_000)), (14_000, wait()), (89_999, wait()), (90_000, send(1, 1_000))]
        {
            assert_eq!(remaining(&mut bed(), bytes), expected, "{bytes} bytes");
        }
        // A deviation of 60 ms: 4 * 60 / 2 = 120 ms.
        let mut bed = bed();
        bed.subflows[1].rttvar = ms(60);
        assert_eq!(Deviation::Kernel.of(&bed.subflows[1]), ms(120));
        assert_eq!(remaining(&mut bed, 99_999), wait());
    }

    #[test]
    fn products_beyond_32_bits_do_not_wrap() {
        // 50 ms in microseconds times 86 kB exceeds 2^32, where the kernel's left side of (1) becomes small.
        let mut bed = Bed::new("ecf").subflow(ms(50), 10).subflow(ms(100), 10);
        bed.fill(0);
        assert_eq!(remaining(&mut bed, 86_000), send(1, 1_000));
    }

    #[test]
    fn the_fast_subflow_itself_never_waits_nor_does_a_reinjection() {
        let mut bed = full_fast_path(Bed::new("ecf"));
        assert_eq!(bed.reinject(), send(1, 1_000));
        bed.load(0, 0);
        assert_eq!(remaining(&mut bed, 1), send(0, 1_000));
    }

    #[test]
    fn a_failed_or_resting_subflow_is_not_waited_for() {
        let mut bed = full_fast_path(Bed::new("ecf"));
        bed.subflows[0].potentially_failed = true;
        assert_eq!(remaining(&mut bed, 1), send(1, 1_000));
        let mut bed = full_fast_path(Bed::new("ecf"));
        bed.subflows[0].backup = true;
        assert_eq!(remaining(&mut bed, 1), send(1, 1_000));
    }
}
