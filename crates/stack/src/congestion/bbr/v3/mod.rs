//! BBR version 3: sends at the bandwidth that it measured, and bounds the data in flight by what the path carried
//! without losing more than 2 %.
//!
//! ```text
//! bandwidth    b = the largest delivery rate of this cycle and of the one before, at most b_s       [packets/s]
//! round trip   r = the least of the last 10 s                                                      [s]
//! pacing rate  0.99 · g_p · b        window  the least of g_w · b · r + extra, h and h_s            [packets]
//!   Startup    g_p = 2.77, g_w = 2, until b grew by less than 25 % in three round trips, or one lost too much
//!   Drain      g_p = 0.5, until b · r packets are in flight, at most three round trips
//!   Down       g_p = 0.9, until at most b · r and 0.85 h are in flight
//!   Cruise     0.85 h in the place of h, until 2 to 3 s or min(63, b · r) round trips after Down began
//!   Refill     a round trip without b_s and h_s
//!   Up         g_p = 1.25, g_w = 2.25, until b grew by less than 25 % in three round trips, or 2 % of what was in flight were lost
//!   ProbeRtt   half of b · r for 200 ms and a round trip, where no round trip as low was seen for 5 s
//! long term    h = the packets in flight at which a probe lost more than 2 %, at least 0.7 · min(b · r, window);
//!              in Up + 1, 2, 4, ... packets in each round trip in which it limits
//! short term   b_s, h_s = the larger of 0.7 times themselves and what was delivered, after a round trip with losses without a probe
//! ```
//! draft-ietf-ccwg-bbr as of August 2026 (Cardwell, Swett, Beshay), with its constants. Not coupled: each subflow takes
//! its share of its own bottleneck. The filter of aggregated acknowledgments, the end of Startup and the rates are
//! those of version 1 (`../mod.rs`).
//!
//! Ours:
//! - there is no ECN, as in the draft;
//! - losses of a probe are counted where an acknowledgment shows them, since its newest packet was sent, and not for
//!   each lost packet. The newest packet was sent a few packets after the lost one, and both know about the same
//!   losses;
//! - the window counts as full where as many packets were in flight before an acknowledgment;
//! - each acknowledgment that shows losses counts as one place of Startup's six;
//! - in Startup, excess of acknowledgments counts for 10 round trips as later, not for one;
//! - a sample counts as one of a sender without data also where the scheduler or the receive window holds the subflow
//!   back.

mod bounds;
mod outputs;
mod phases;

use super::aggregation::Aggregation;
use super::rate::Rate;
use super::startup::FullPipe;
use super::{Excluded, MIN_RTT_LIFE};
use crate::congestion::{Ack, CongestionControl, Entry, LossCause, RateSample, Siblings, Window};
use crate::view::{Packets, SubflowView};
use anabranch_units::{Duration, Instant};
use bounds::{Bounds, CycleMax, Signals, lost_too_many};
use phases::rate_of;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

pub(in crate::congestion) const ENTRY: Entry = Entry {
    name: "bbr3",
    summary: "Paces at the measured bandwidth and bounds the data in flight by losses (version 3).",
    source: "draft-ietf-ccwg-bbr",
    create: |options, seed| {
        options.expect_only(&[])?;
        Ok(Box::new(Bbr3::new(seed)))
    },
};

/// The least round trip must have been seen within this time (`BBR.ProbeRTTInterval`).
const PROBE_RTT_EVERY: Duration = Duration::from_secs(5);
/// The part of a bandwidth-delay product that ProbeRtt keeps in flight (`BBR.ProbeRTTCwndGain`).
pub(super) const PROBE_RTT_GAIN: f64 = 0.5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt {
        /// End of the phase, once few enough packets are in flight.
        until: Option<Instant>,
        round_passed: bool,
    },
}

impl Phase {
    /// One of the four phases of ProbeBW.
    fn probes_bandwidth(self) -> bool {
        matches!(self, Phase::Down | Phase::Cruise | Phase::Refill | Phase::Up)
    }

    /// The phases in which losses say something about a probe, and short-term bounds do not apply.
    fn accelerates(self) -> bool {
        matches!(self, Phase::Startup | Phase::Refill | Phase::Up)
    }
}

/// What acknowledgments say about a probe for bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feedback {
    None,
    Refilling,
    /// The probe began; its packets are not acknowledged yet.
    Starting,
    Arriving,
    /// The probe is over; its last packets are not acknowledged yet.
    Stopping,
}

/// The least round trip of the last 10 s, and that of the last 5 s, which says whether it must be measured.
#[derive(Clone, Copy, Debug, Default)]
struct RoundTrip {
    least: Option<(Duration, Instant)>,
    recent: Option<(Duration, Instant)>,
    due: bool,
}

impl RoundTrip {
    fn starting(least: Option<Duration>, now: Instant) -> Self {
        let least = least.map(|least| (least, now));
        RoundTrip { least, recent: least, due: false }
    }

    fn least(&self) -> Option<Duration> {
        self.least.map(|(least, _)| least)
    }

    fn is_due(&self) -> bool {
        self.due
    }

    fn observe(&mut self, now: Instant, rtt: Option<Duration>) {
        self.due = self.recent.is_some_and(|(_, at)| now > at + PROBE_RTT_EVERY);
        if let Some(rtt) = rtt
            && (self.due || self.recent.is_none_or(|(recent, _)| rtt < recent))
        {
            self.recent = Some((rtt, now));
        }
        let expired = self.least.is_none_or(|(_, at)| now > at + MIN_RTT_LIFE);
        if expired || self.recent.zip(self.least).is_some_and(|((recent, _), (least, _))| recent < least) {
            self.least = self.recent;
        }
    }

    /// It was measured: not again for a while.
    fn postpone(&mut self, now: Instant) {
        self.recent = self.recent.map(|(recent, _)| (recent, now));
    }
}

#[derive(Debug)]
struct Bbr3 {
    phase: Phase,
    /// The round trip's number, the count of delivered packets that ends it, and whether this acknowledgment begins
    /// one.
    round: u64,
    round_ends_at: u64,
    round_start: bool,
    delivered: u64,
    bandwidth: CycleMax,
    round_trip: RoundTrip,
    bounds: Bounds,
    signals: Signals,
    aggregation: Aggregation,
    excluded: Option<Excluded>,
    /// Startup has found the bandwidth; the probe of this cycle has.
    filled: FullPipe,
    growth: FullPipe,
    drain_from: u64,
    feedback: Feedback,
    /// Acknowledgments are of packets of a probe that did not lose too many yet.
    sampling: bool,
    /// The growth of the long-term bound in Up: packets acknowledged, and how many of them are worth one.
    up_rounds: u32,
    up_acked: u32,
    per_increment: Option<u32>,
    rounds_since_up: u32,
    wait: Duration,
    cycle_from: Instant,
    /// The last probe lost too much; it ended at the bound that one before it had found.
    last_too_high: bool,
    last_cautious: bool,
    /// What a loss changed, in case that it was none.
    undo_phase: Option<Phase>,
    undo_bounds: Bounds,
    repairing: bool,
    idle_restart: bool,
    started: bool,
    rtt_known: bool,
    /// The last good window before a repair or ProbeRtt.
    prior_window: Packets,
    mss: u32,
    random: ChaCha8Rng,
}

impl Bbr3 {
    fn new(seed: u64) -> Self {
        Bbr3 {
            phase: Phase::Startup,
            round: 0,
            round_ends_at: 0,
            round_start: false,
            delivered: 0,
            bandwidth: CycleMax::default(),
            round_trip: RoundTrip::default(),
            bounds: Bounds::default(),
            signals: Signals::default(),
            aggregation: Aggregation::default(),
            excluded: None,
            filled: FullPipe::default(),
            growth: FullPipe::default(),
            drain_from: 0,
            feedback: Feedback::None,
            sampling: false,
            up_rounds: 0,
            up_acked: 0,
            per_increment: None,
            rounds_since_up: 0,
            wait: Duration::ZERO,
            cycle_from: Instant::ZERO,
            last_too_high: false,
            last_cautious: false,
            undo_phase: None,
            undo_bounds: Bounds::default(),
            repairing: false,
            idle_restart: false,
            started: false,
            rtt_known: false,
            prior_window: Packets::ZERO,
            mss: 0,
            random: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    fn start(&mut self, now: Instant, window: &mut Window, own: &SubflowView) {
        self.started = true;
        self.mss = own.mss;
        self.round_trip = RoundTrip::starting((!own.min_rtt.is_zero()).then_some(own.min_rtt), now);
        self.aggregation.restart(now);
        self.pace_before_samples(window, own);
    }

    /// The bandwidth to send at.
    fn rate(&self) -> Rate {
        let most = self.bandwidth.max();
        self.bounds.short_rate.map_or(most, |short| short.min(most))
    }

    fn begin_round(&mut self) {
        self.round_ends_at = self.delivered;
    }

    fn note_loss(&mut self, window: &Window) {
        if self.signals.lose(self.delivered) {
            self.save_window(window);
            self.undo_phase = None;
            self.undo_bounds = self.bounds;
        }
    }

    fn update_model(&mut self, ack: &Ack, sample: &RateSample, window: &mut Window) {
        let valid = sample.delivered > 0 && !sample.interval.is_zero();
        (self.round_start, self.signals.round_start) = (false, false);
        if valid {
            self.signals.observe(sample, rate_of(sample), self.delivered);
            self.update_round(sample);
            self.update_bandwidth(sample);
            self.react_to_losses(window);
            let cwnd = window.cwnd.floor();
            self.aggregation.observe(ack.now, ack.delivered, cwnd, self.rate(), self.round_start);
        }
        self.check_startup(ack, sample, window);
        self.check_drain(ack, window);
        self.update_phase(ack, sample, window);
        self.round_trip.observe(ack.now, ack.rtt);
        self.check_probe_rtt(ack, window);
        if self.signals.round_start {
            self.signals.begin_with(sample, rate_of(sample));
        }
    }

    fn update_round(&mut self, sample: &RateSample) {
        if sample.prior_delivered >= self.round_ends_at {
            self.begin_round();
            self.round += 1;
            self.rounds_since_up = self.rounds_since_up.saturating_add(1);
            self.round_start = true;
        }
    }

    fn update_bandwidth(&mut self, sample: &RateSample) {
        // A sender without data is slower than its path: its sample counts only if it exceeds all earlier ones.
        let rate = rate_of(sample);
        if !sample.app_limited || rate >= self.bandwidth.max() {
            self.bandwidth.add(rate);
        }
    }

    /// At the end of a round trip without a probe, losses lower the short-term bounds.
    fn react_to_losses(&mut self, window: &Window) {
        if self.signals.round_start && self.signals.take_lost() && !self.phase.accelerates() {
            self.bounds.lower(&self.signals, self.bandwidth.max(), window.cwnd.floor());
        }
    }
}

impl CongestionControl for Bbr3 {
    fn on_established(&mut self, now: Instant, window: &mut Window, siblings: Siblings<'_>) {
        self.start(now, window, siblings.own());
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window, siblings: Siblings<'_>) {
        let own = siblings.own();
        if !self.started {
            self.start(ack.now, window, own);
        }
        self.mss = own.mss;
        self.delivered = ack.total_delivered;
        let sample = Excluded::applied(self.excluded, &ack.rate);
        if ack.lost > 0 {
            self.note_loss(window);
            if self.sampling && lost_too_many(&sample) {
                self.on_too_much_in_flight(&sample, ack.now, window);
            }
        }
        self.update_model(ack, &sample, window);
        if !self.rtt_known && !own.srtt.is_zero() {
            self.pace_before_samples(window, own);
        }
        self.pace(self.pacing_gain(), window);
        self.update_window(ack, window);
    }

    fn on_congestion(&mut self, _now: Instant, cause: LossCause, window: &mut Window, _siblings: Siblings<'_>) {
        // A penalty loses no packet: there is nothing to repair, and the next acknowledgments widen the window again.
        if cause != LossCause::Penalty {
            self.save_window(window);
            self.note_loss(window);
            self.repairing = true;
        }
    }

    fn on_recovery_end(&mut self, _now: Instant, window: &mut Window) {
        if std::mem::take(&mut self.repairing) {
            self.restore_window(window);
        }
    }

    fn on_undo(&mut self, now: Instant, window: &mut Window) {
        self.on_recovery_end(now, window);
        self.signals.take_lost();
        self.bounds = self.bounds.widened(&self.undo_bounds);
        self.growth = FullPipe::default();
        let probing_rtt = matches!(self.phase, Phase::ProbeRtt { .. });
        match self.undo_phase.take() {
            Some(Phase::Startup) => {
                self.filled = FullPipe::default();
                if !probing_rtt {
                    self.phase = Phase::Startup;
                }
            }
            Some(_) if !probing_rtt && self.phase != Phase::Up => self.refill(),
            _ => {}
        }
    }

    fn on_restart(&mut self, now: Instant, _idle: Duration, app_limited: bool, window: &mut Window) {
        if !app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.phase {
            // What was queued is gone, so there is nothing to probe for or to drain.
            Phase::Down | Phase::Cruise | Phase::Refill | Phase::Up => self.pace(1.0, window),
            Phase::ProbeRtt { .. } => self.end_probe_rtt(now, window),
            Phase::Startup | Phase::Drain => {}
        }
    }

    fn governs_itself(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
