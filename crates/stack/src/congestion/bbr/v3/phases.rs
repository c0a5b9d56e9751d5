//! When BBR version 3 probes for bandwidth, for how long, and when it measures the round trip.

use super::super::rate::Rate;
use super::super::startup::FullPipe;
use super::super::{Excluded, PROBE_RTT_TIME};
use super::bounds::{BETA, lost_too_many};
use super::{Bbr3, Feedback, Phase};
use crate::congestion::{Ack, RateSample, Window};
use anabranch_units::{Duration, Instant};
use rand_chacha::rand_core::Rng;

/// The time between two probes for bandwidth is this much and up to [`PROBE_SPREAD`] more, by chance.
const PROBE_WAIT: Duration = Duration::from_secs(2);
const PROBE_SPREAD: Duration = Duration::from_secs(1);
/// So many round trips are the most between two probes: NewReno needs as many as its window has packets to grow by half
/// again, and one that shares 25 Mb/s over 30 ms has 63.
const RENO_ROUNDS: u32 = 63;
/// Round trips after which Drain ends in any case.
const DRAIN_ROUNDS: u64 = 3;
/// The doubling of the bound's growth stops here.
const MOST_UP_ROUNDS: u32 = 30;

impl Bbr3 {
    pub(super) fn check_startup(&mut self, ack: &Ack, sample: &RateSample, window: &mut Window) {
        if self.phase != Phase::Startup {
            return;
        }
        if self.round_start && !sample.app_limited {
            self.filled.on_round(rate_of(sample));
        }
        let plateau = self.filled.reached();
        self.filled.on_ack(ack.delivered, ack.lost, self.round_start, self.repairing);
        if !self.filled.reached() {
            return;
        }
        if !plateau {
            self.undo_phase = Some(Phase::Startup);
            self.bounds.inflight = Some(self.pipe(self.rate(), 1.0).max(self.signals.delivered));
        }
        self.phase = Phase::Drain;
        self.drain_from = self.round;
        window.set_ssthresh(f64::from(self.inflight(self.rate(), 1.0, window)));
    }

    pub(super) fn check_drain(&mut self, ack: &Ack, window: &Window) {
        let drained = ack.in_flight <= self.inflight(self.rate(), 1.0, window);
        if self.phase == Phase::Drain && (drained || self.round > self.drain_from + DRAIN_ROUNDS) {
            self.go_down(ack.now);
        }
    }

    pub(super) fn update_phase(&mut self, ack: &Ack, sample: &RateSample, window: &Window) {
        if !self.filled.reached() || self.react_to_feedback(ack, sample, window) {
            return;
        }
        match self.phase {
            Phase::Down | Phase::Cruise if self.is_time_to_probe(ack.now, window) => self.refill(),
            Phase::Down if self.has_left_room(ack, window) => self.phase = Phase::Cruise,
            // A round trip at the bandwidth fills the pipe, so that whatever the probe adds is a queue.
            Phase::Refill if self.round_start => {
                self.sampling = true;
                self.go_up(sample, window);
            }
            Phase::Up => self.end_probe(ack, sample, window),
            _ => {}
        }
    }

    /// What comes back of a probe (`AdaptLongTermModel`). True if it decided the phase.
    fn react_to_feedback(&mut self, ack: &Ack, sample: &RateSample, window: &Window) -> bool {
        if self.round_start && self.feedback == Feedback::Starting {
            self.feedback = Feedback::Arriving;
        }
        if self.round_start && self.feedback == Feedback::Stopping {
            self.sampling = false;
            self.feedback = Feedback::None;
            if self.phase.probes_bandwidth() && !sample.app_limited {
                self.bandwidth.advance();
            }
            if self.phase.probes_bandwidth() && self.last_cautious && !self.last_too_high {
                self.refill();
                return true;
            }
        }
        if !lost_too_many(sample)
            && let Some(bound) = self.bounds.inflight
        {
            self.bounds.inflight = Some(bound.max(sample.sent_in_flight));
            if self.phase == Phase::Up {
                self.raise_bound(ack, window);
            }
        }
        false
    }

    /// More was in flight in a probe than the path carries without losing too much.
    pub(super) fn on_too_much_in_flight(&mut self, sample: &RateSample, now: Instant, window: &Window) {
        self.last_too_high = true;
        // One reduction for each probe.
        self.sampling = false;
        if !sample.app_limited {
            let least = f64::from(self.target(window)) * BETA;
            self.bounds.inflight = Some(sample.sent_in_flight.max(least as u32));
        }
        if self.phase == Phase::Up {
            self.undo_phase = Some(Phase::Up);
            self.go_down(now);
        }
    }

    pub(super) fn go_down(&mut self, now: Instant) {
        self.signals.reset();
        self.up_rounds = 0;
        self.per_increment = None;
        self.rounds_since_up = self.random.next_u32() % 2;
        self.wait = PROBE_WAIT + PROBE_SPREAD.mul_f64(f64::from(self.random.next_u32()) / f64::from(u32::MAX));
        self.cycle_from = now;
        self.feedback = Feedback::Stopping;
        self.begin_round();
        self.phase = Phase::Down;
    }

    pub(super) fn refill(&mut self) {
        self.bounds.forget_short();
        (self.up_rounds, self.up_acked) = (0, 0);
        self.last_cautious = false;
        self.feedback = Feedback::Refilling;
        self.begin_round();
        self.phase = Phase::Refill;
    }

    fn go_up(&mut self, sample: &RateSample, window: &Window) {
        self.feedback = Feedback::Starting;
        self.begin_round();
        self.seek_growth_from(rate_of(sample));
        self.phase = Phase::Up;
        self.steepen(window);
    }

    fn seek_growth_from(&mut self, rate: Rate) {
        self.growth = FullPipe::default();
        self.growth.on_round(rate);
    }

    fn is_time_to_probe(&self, now: Instant, window: &Window) -> bool {
        now > self.cycle_from + self.wait || self.rounds_since_up >= self.target(window).min(RENO_ROUNDS)
    }

    fn has_left_room(&self, ack: &Ack, window: &Window) -> bool {
        self.bounds.with_headroom().is_none_or(|bound| ack.in_flight <= bound)
            && ack.in_flight <= self.inflight(self.bandwidth.max(), 1.0, window)
    }

    fn end_probe(&mut self, ack: &Ack, sample: &RateSample, window: &Window) {
        if self.is_time_to_go_down(ack, sample, window) {
            self.last_too_high = false;
            self.go_down(ack.now);
        }
    }

    fn is_time_to_go_down(&mut self, ack: &Ack, sample: &RateSample, window: &Window) -> bool {
        if self.round_start && !sample.app_limited {
            self.growth.on_round(rate_of(sample));
        }
        if self.last_too_high && self.bounds.inflight.is_some_and(|bound| ack.in_flight >= bound) {
            self.last_cautious = true;
            return true;
        }
        if self.is_held_by_bound(ack, window) {
            // The bandwidth cannot grow because the bound does not let it.
            self.seek_growth_from(rate_of(sample));
            return false;
        }
        self.growth.reached()
    }

    /// The window is full, and no wider than the long-term bound lets it be.
    fn is_held_by_bound(&self, ack: &Ack, window: &Window) -> bool {
        let cwnd = window.cwnd.floor();
        ack.prior_in_flight >= cwnd && self.bounds.inflight.is_some_and(|bound| cwnd >= bound)
    }

    /// The bound grows by 1, 2, 4, ... packets in the round trips of a probe.
    fn raise_bound(&mut self, ack: &Ack, window: &Window) {
        let (Some(bound), Some(each)) = (self.bounds.inflight, self.per_increment) else { return };
        if !self.is_held_by_bound(ack, window) {
            return;
        }
        self.up_acked = self.up_acked.saturating_add(ack.delivered);
        self.bounds.inflight = Some(bound.saturating_add(self.up_acked / each));
        self.up_acked %= each;
        if self.round_start {
            self.steepen(window);
        }
    }

    pub(super) fn steepen(&mut self, window: &Window) {
        self.per_increment = Some((window.cwnd.floor() >> self.up_rounds).max(1));
        self.up_rounds = (self.up_rounds + 1).min(MOST_UP_ROUNDS);
    }

    // ---- the round trip --------------------------------------------------------------------------------------------

    pub(super) fn check_probe_rtt(&mut self, ack: &Ack, window: &mut Window) {
        let probing = matches!(self.phase, Phase::ProbeRtt { .. });
        if self.round_trip.is_due() && !self.idle_restart && !probing {
            self.save_window(window);
            self.excluded = None;
            self.phase = Phase::ProbeRtt { until: None, round_passed: false };
            self.feedback = Feedback::Stopping;
            self.begin_round();
        }
        self.continue_probe_rtt(ack, window);
        self.idle_restart &= ack.delivered == 0;
    }

    fn continue_probe_rtt(&mut self, ack: &Ack, window: &mut Window) {
        let few = self.probe_rtt_window();
        let Phase::ProbeRtt { until, round_passed } = &mut self.phase else { return };
        // Few packets do not show the bandwidth.
        self.excluded = Some(Excluded::extended(self.excluded, self.delivered, ack.in_flight));
        if until.is_none() {
            if ack.in_flight <= few {
                *until = Some(ack.now + PROBE_RTT_TIME);
                self.begin_round();
            }
        } else {
            *round_passed |= self.round_start;
            if *round_passed {
                self.end_probe_rtt(ack.now, window);
            }
        }
    }

    pub(super) fn end_probe_rtt(&mut self, now: Instant, window: &mut Window) {
        let Phase::ProbeRtt { until: Some(until), .. } = self.phase else { return };
        if now < until {
            return;
        }
        self.round_trip.postpone(now);
        self.restore_window(window);
        self.bounds.forget_short();
        if self.filled.reached() {
            self.go_down(now);
            self.phase = Phase::Cruise;
        } else {
            self.phase = Phase::Startup;
        }
    }
}

/// The delivery rate of a sample; zero if it is none.
pub(super) fn rate_of(sample: &RateSample) -> Rate {
    if sample.interval.is_zero() { Rate::ZERO } else { Rate::new(u64::from(sample.delivered), sample.interval) }
}
