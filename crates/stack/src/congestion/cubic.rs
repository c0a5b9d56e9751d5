//! CUBIC: grows by a cubic function of the time since the last loss, flat around the window at which it happened, so
//! that growth does not depend on the round trip; where NewReno would be faster, as NewReno with the same average.
//!
//! ```text
//! W(t) = C (t − K)³ + W_max,   K = ∛((W_max − w₀)/C)         t since growth began at w₀, both after the last loss
//! increase per acknowledged packet   w += (W(t + rtt) − w)/w,  at least 1/(100 w), at most 1/2
//!   but never below                  W_est += α / w,  α = 3 (1 − β)/(1 + β)
//! after a loss                       W_max = w, or w (1 + β)/2 if w < W_max (fast convergence);  ssthresh = max(β w, 2)
//! ```
//! `w` and `W` windows (packets), `t`, K and `rtt` (the least one) (s), C (packets/s³). While W_max is unknown `w`
//! grows by at least 1/20 per acknowledged packet. A timeout forgets everything; an idle time shifts `t`. RFC 9438;
//! Linux's `tcp_cubic.c` 2.3, whose constants C = 410/1024, β = 717/1024 and α = 8/15 (integer arithmetic) are the
//! default. Option `constants = "rfc9438"`: C = 0.4, β = 0.7, α = 9/17 and, once W_est reaches the window before the
//! loss, α = 1 (RFC 9438 section 4.3; Linux never switches). Option `hystart = false` turns [HyStart](super::hystart)
//! off. With Linux's constants the window moves by whole packets, as [`super::cubic_steps`] has it; option
//! `arithmetic = "exact"` takes the formulas above.
//!
//! The handoff and the sticky-schedulers papers print eq. 1 as K = ∛(W_max β/C) and `cwnd = β cwnd` after a loss. The
//! first needs the *decrease* for β, the second what *remains*; with 0.7 in both, K(100) is 5.59 s instead of 4.22 s.
//! We compute K from w₀, which is both. They also set the window to W(t) at once, and leave out W_est and fast
//! convergence.
//!
//! Ours: the clock has no ticks; a spurious reduction restores the window only, as in Linux (RFC 9438 section 4.9
//! restores the epoch).

use super::cubic_steps::Steps;
use super::hystart::HyStart;
use super::{Ack, CongestionControl, Entry, LossCause, Siblings, Window};
use crate::view::Packets;
use anabranch_units::{Duration, Instant};

pub(super) const ENTRY: Entry = Entry {
    name: "cubic",
    summary: "Grows by a cubic function of the time since the last loss; Linux's default.",
    source: "RFC 9438; Linux tcp_cubic.c",
    create: |options, _seed| {
        options.expect_only(&["constants", "hystart", "arithmetic"])?;
        let exact = options.word("arithmetic", &["whole", "exact"])? == "exact";
        let (constants, whole) = match options.word("constants", &["linux", "rfc9438"])? {
            "rfc9438" => (RFC_9438, false),
            _ => (LINUX, !exact),
        };
        let steps = whole.then(Steps::default);
        Ok(Box::new(Cubic { steps, ..Cubic::new(constants, options.flag("hystart", true)?) }))
    },
};

#[derive(Clone, Copy, Debug)]
struct Constants {
    /// C (packets/s³).
    c: f64,
    /// What remains of the window after a loss.
    beta: f64,
    /// Packets per round trip that W_est gains.
    alpha: f64,
    /// Packets per round trip that W_est gains beyond the window before the loss.
    late_alpha: f64,
}

const LINUX: Constants =
    Constants { c: 410.0 / 1024.0, beta: 717.0 / 1024.0, alpha: 8.0 / 15.0, late_alpha: 8.0 / 15.0 };
const RFC_9438: Constants = Constants { c: 0.4, beta: 0.7, alpha: 9.0 / 17.0, late_alpha: 1.0 };

/// The largest growth of the window per acknowledged packet, in packets.
const MOST_GROWTH: f64 = 0.5;
/// The smallest growth per acknowledged packet while no loss was seen, in packets.
const SEARCHING_GROWTH: f64 = 1.0 / 20.0;
/// Windows per packet of growth while the cubic function lies below the window.
const PLATEAU: f64 = 100.0;
/// Round trips that were measured so soon after growth began are not trusted: they belong to the repair.
const UNTRUSTED: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Cubic {
    constants: Constants,
    hystart: Option<HyStart>,
    min_rtt: Option<Duration>,
    /// Window at which the cubic function is flat; zero while no loss was seen.
    w_max: Packets,
    /// The window before the last loss.
    w_prior: Packets,
    epoch: Option<Epoch>,
    /// Counts whole packets, as Linux does.
    steps: Option<Steps>,
}

/// One stretch of growth after a loss.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    k: Duration,
    origin: Packets,
    w_est: Packets,
}

impl Epoch {
    fn begin(now: Instant, cwnd: Packets, w_max: Packets, c: f64) -> Self {
        let below = (w_max.as_f64() - cwnd.as_f64()).max(0.0);
        Epoch { start: now, k: Duration::from_secs_f64(libm::cbrt(below / c)), origin: w_max.max(cwnd), w_est: cwnd }
    }

    /// W at `ahead` after now.
    fn cubic(&self, now: Instant, ahead: Duration, c: f64) -> f64 {
        let t = (now.since(self.start) + ahead).as_secs_f64() - self.k.as_secs_f64();
        c * t * t * t + self.origin.as_f64()
    }

    /// W in whole packets: the cubic term is rounded towards the origin.
    fn whole(&self, now: Instant, ahead: Duration, c: f64) -> u32 {
        let origin = f64::from(self.origin.floor());
        let cube = self.cubic(now, ahead, c) - self.origin.as_f64();
        (origin + cube.trunc()).max(0.0) as u32
    }
}

impl Cubic {
    fn new(constants: Constants, hystart: bool) -> Self {
        Cubic {
            constants,
            hystart: hystart.then(HyStart::default),
            min_rtt: None,
            w_max: Packets::ZERO,
            w_prior: Packets::ZERO,
            epoch: None,
            steps: None,
        }
    }

    fn observe(&mut self, rtt: Duration, ack: &Ack, window: &mut Window, siblings: Siblings<'_>) {
        if self.epoch.is_some_and(|epoch| ack.now.since(epoch.start) < UNTRUSTED) {
            return;
        }
        let base = self.min_rtt.map_or(rtt, |least| least.min(rtt));
        self.min_rtt = Some(base);
        let Some(hystart) = &mut self.hystart else { return };
        if hystart.ends_slow_start(ack, rtt, base, siblings.own().pacing_rate(), window) {
            window.ssthresh = window.cwnd;
            self.w_prior = window.cwnd;
        }
    }

    fn avoid(&mut self, now: Instant, acked: f64, window: &mut Window) {
        match self.steps.take() {
            None => self.avoid_exactly(now, acked, window),
            Some(mut steps) => {
                self.avoid_in_steps(now, acked as u32, window, &mut steps);
                self.steps = Some(steps);
            }
        }
    }

    fn avoid_in_steps(&mut self, now: Instant, acked: u32, window: &mut Window, steps: &mut Steps) {
        let cwnd = window.cwnd.floor();
        if steps.due(now, cwnd, acked) {
            let c = self.constants.c;
            let epoch = self.epoch.get_or_insert_with(|| {
                steps.begin(cwnd, acked);
                Epoch::begin(now, window.cwnd, self.w_max, c)
            });
            let target = epoch.whole(now, self.min_rtt.unwrap_or(Duration::ZERO), c);
            steps.compute(now, cwnd, target, self.w_max == Packets::ZERO);
        }
        steps.grow(window, acked);
    }

    fn avoid_exactly(&mut self, now: Instant, acked: f64, window: &mut Window) {
        let Constants { c, alpha, late_alpha, .. } = self.constants;
        let cwnd = window.cwnd.as_f64();
        let epoch = self.epoch.get_or_insert_with(|| Epoch::begin(now, window.cwnd, self.w_max, c));

        let alpha = if epoch.w_est < self.w_prior { alpha } else { late_alpha };
        let w_est = epoch.w_est.as_f64() + alpha * acked / cwnd;
        epoch.w_est = Packets::from_f64(w_est);

        let target = epoch.cubic(now, self.min_rtt.unwrap_or(Duration::ZERO), c);
        let mut growth = if target > cwnd { (target - cwnd) / cwnd } else { 1.0 / (PLATEAU * cwnd) };
        if self.w_max == Packets::ZERO {
            growth = growth.max(SEARCHING_GROWTH);
        }
        window.grow((acked * growth).max(w_est - cwnd).min(acked * MOST_GROWTH));
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, ack: &Ack, window: &mut Window, siblings: Siblings<'_>) {
        if let Some(rtt) = ack.rtt {
            self.observe(rtt, ack, window, siblings);
        }
        if ack.may_grow {
            let left = window.slow_start(ack.delivered);
            if left > 0.0 {
                self.avoid(ack.now, left, window);
            }
        }
    }

    fn on_congestion(&mut self, _now: Instant, cause: LossCause, window: &mut Window, _siblings: Siblings<'_>) {
        let beta = self.constants.beta;
        let cwnd = window.cwnd.as_f64();
        let converging = window.cwnd < self.w_max;
        self.w_max = if converging { Packets::from_f64(cwnd * (1.0 + beta) / 2.0) } else { window.cwnd };
        self.w_prior = window.cwnd;
        self.epoch = None;
        if let Some(steps) = &mut self.steps {
            steps.on_reduction();
        }
        window.set_ssthresh(cwnd * beta);
        if cause == LossCause::Timeout {
            self.w_max = Packets::ZERO;
            self.min_rtt = None;
            self.steps = self.steps.map(|_| Steps::default());
            if let Some(hystart) = &mut self.hystart {
                hystart.reset();
            }
        }
    }

    fn on_restart(&mut self, now: Instant, idle: Duration, _app_limited: bool, _window: &mut Window) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start = (epoch.start + idle).min(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ack, assert_near, at, create, threshold, view, window};
    use super::*;
    use crate::options::Value;

    const RTT: f64 = 0.1;

    /// Loses at 100 packets and begins to grow at second 10.
    fn after_a_loss_at_100(constants: Constants) -> (Cubic, Window) {
        let (mut cc, mut window) = (Cubic::new(constants, false), window(100.0));
        cc.min_rtt = Some(Duration::from_secs_f64(RTT));
        lose(&mut cc, LossCause::FastRetransmit, &mut window);
        grow(&mut cc, 10.0, &mut window);
        (cc, window)
    }

    fn lose(cc: &mut Cubic, cause: LossCause, window: &mut Window) {
        cc.on_congestion(at(0.0), cause, window, Siblings::new(&[view(0, 100.0, RTT)], 0));
        window.cwnd = window.ssthresh;
    }

    fn grow(cc: &mut Cubic, now: f64, window: &mut Window) -> f64 {
        let before = window.cwnd.as_f64();
        cc.on_ack(&ack(now, 1, RTT), window, Siblings::new(&[view(0, 100.0, RTT)], 0));
        window.cwnd.as_f64() - before
    }

    #[test]
    fn after_100_packets_70_remain_and_k_is_4_217_seconds() {
        for (constants, tolerance) in [(LINUX, 0.01), (RFC_9438, 1e-4)] {
            let (cc, window) = after_a_loss_at_100(constants);
            assert_near(window.ssthresh.as_f64(), 70.0, tolerance);
            assert_near(cc.epoch.unwrap().k.as_secs_f64(), 4.217, tolerance);
        }
    }

    #[test]
    fn the_function_reaches_w_max_at_k_and_w0_at_the_start() {
        let (cc, _) = after_a_loss_at_100(RFC_9438);
        let epoch = cc.epoch.unwrap();
        assert_near(epoch.cubic(at(10.0) + epoch.k, Duration::ZERO, 0.4), 100.0, 1e-6);
        assert_near(epoch.cubic(at(10.0), Duration::ZERO, 0.4), 70.0, 1e-6);
        // One second after K it is C beyond.
        assert_near(epoch.cubic(at(11.0), epoch.k, 0.4), 100.4, 1e-6);
    }

    #[test]
    fn an_acknowledgment_takes_the_window_one_wth_of_the_way_to_where_it_shall_be_a_round_trip_later() {
        let (mut cc, mut window) = after_a_loss_at_100(RFC_9438);
        window.cwnd = Packets::whole(80);
        // W(3.1) = 0.4 (3.1 − 4.2172)³ + 100 = 99.442
        assert_near(grow(&mut cc, 13.0, &mut window), (99.442 - 80.0) / 80.0, 1e-4);
    }

    #[test]
    fn growth_lies_between_a_hundredth_of_newrenos_and_half_a_packet_per_packet() {
        let (mut cc, mut window) = after_a_loss_at_100(LINUX);
        window.cwnd = Packets::whole(200);
        assert_near(grow(&mut cc, 13.0, &mut window), 1.0 / 20_000.0, 1e-5);
        (window.cwnd, window.ssthresh) = (Packets::whole(20), Packets::whole(2));
        cc.epoch.as_mut().unwrap().w_est = Packets::ZERO;
        assert_near(grow(&mut cc, 30.0, &mut window), 0.5, 1e-6);
    }

    #[test]
    fn without_a_loss_the_window_grows_by_five_percent_per_round_trip() {
        let (mut cc, mut window) = (Cubic::new(LINUX, false), window(100.0));
        assert_near(grow(&mut cc, 1.0, &mut window), 0.05, 1e-6);
    }

    #[test]
    fn a_slow_cubic_function_gives_way_to_newrenos_average() {
        let (mut cc, mut window) = (Cubic::new(LINUX, false), window(10.0));
        lose(&mut cc, LossCause::FastRetransmit, &mut window);
        let w0 = window.cwnd.as_f64();
        // One round trip of 1 ms: the cubic function has hardly moved, W_est gained 8/15.
        for _ in 0..7 {
            grow(&mut cc, 5.0, &mut window);
        }
        assert_near(window.cwnd.as_f64() - w0, 8.0 / 15.0, 0.04);
    }

    #[test]
    fn only_rfc_9438_speeds_up_beyond_the_window_before_the_loss() {
        for (constants, expected) in [(LINUX, 8.0 / 15.0 / 60.0), (RFC_9438, 1.0 / 60.0)] {
            let (mut cc, mut window) = (Cubic::new(constants, false), window(60.0));
            let epoch =
                Epoch { start: at(9.0), k: Duration::ZERO, origin: Packets::whole(50), w_est: Packets::whole(60) };
            (cc.w_prior, cc.w_max, cc.epoch) = (Packets::whole(59), Packets::whole(50), Some(epoch));
            assert_near(grow(&mut cc, 9.0, &mut window), expected, 1e-6);
        }
    }

    #[test]
    fn fast_convergence_gives_up_room_after_a_second_loss_at_less() {
        let mut cc = Cubic::new(LINUX, false);
        lose(&mut cc, LossCause::FastRetransmit, &mut window(100.0));
        lose(&mut cc, LossCause::FastRetransmit, &mut window(80.0));
        assert_near(cc.w_max.as_f64(), 80.0 * (1.0 + 717.0 / 1024.0) / 2.0, 1e-9);
        lose(&mut cc, LossCause::FastRetransmit, &mut window(90.0));
        assert_near(cc.w_max.as_f64(), 90.0, 1e-9);
    }

    #[test]
    fn a_timeout_forgets_the_function_and_an_idle_time_shifts_it() {
        let (mut cc, mut window) = after_a_loss_at_100(LINUX);
        cc.on_restart(at(20.0), Duration::from_secs(3), true, &mut window);
        assert_eq!(cc.epoch.unwrap().start, at(13.0));
        cc.on_restart(at(20.0), Duration::from_secs(30), true, &mut window);
        assert_eq!(cc.epoch.unwrap().start, at(20.0));
        let all = [view(0, 100.0, RTT)];
        assert_near(threshold(&mut cc, 100.0, LossCause::Timeout, &all, 0), 70.02, 1e-3);
        assert!(cc.epoch.is_none() && cc.w_max == Packets::ZERO && cc.min_rtt.is_none());
    }

    #[test]
    fn hystart_ends_slow_start_at_the_window_where_the_delay_rose() {
        for (hystart, expected) in [(true, true), (false, false)] {
            let mut cc = create("cubic", &[("hystart", Value::Flag(hystart))]);
            let all = [view(0, 20.0, RTT)];
            let mut window = Window::initial(20);
            // The first acknowledgment measures the empty path; the second one begins a round of longer ones.
            for i in 1..30 {
                let rtt = if i == 1 { 0.05 } else { RTT };
                let sent_offset = if i == 1 { 1 } else { 40 };
                let ack = Ack { acked_offset: i, sent_offset, ..ack(i as f64 * 0.01, 1, rtt) };
                cc.on_ack(&ack, &mut window, Siblings::new(&all, 0));
            }
            assert_eq!(window.ssthresh != Packets::INFINITE, expected);
            assert_eq!(window.in_slow_start(), !expected);
        }
    }
}
