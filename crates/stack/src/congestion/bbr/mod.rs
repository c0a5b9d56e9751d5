//! BBR version 1: sends at the bandwidth that it measured, with a window of twice the bandwidth-delay product, and
//! takes neither loss nor delay for congestion.
//!
//! ```text
//! bandwidth    b = the largest delivery rate of the last 10 round trips            [packets/s]
//! round trip   r = the least of the last 10 s                                      [s]
//! pacing rate  0.99 · g_p · b        window  g_w · b · r + extra                   [packets]
//!   Startup    g_p = g_w = 2.89, until b grew by less than 25 % in three round trips, or one lost too much
//!   Drain      g_p = 1/2.89, until b · r packets are in flight
//!   ProbeBw    g_w = 2, g_p = 5/4, 3/4, 1, 1, 1, 1, 1, 1 for about r each, beginning at random but not with 3/4
//!   ProbeRtt   4 packets for 200 ms and a round trip, if r is 10 s old
//! ```
//! `extra` covers aggregated acknowledgments (see `aggregation.rs`) and three bursts of segmentation offload, each of
//! which the pace lets out at once: two packets, or what takes a millisecond. A repair begins with a round trip of
//! packet conservation and ends with the window from before. A policed path is recognised (`policer.rs`). Cardwell,
//! Cheng, Gunn, Yeganeh, Jacobson, "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016; behaviour and
//! constants of Linux's `tcp_bbr.c`. Not coupled: each subflow takes its share of its own bottleneck.
//!
//! Needs pacing and delivery-rate samples. Ours:
//! - Startup also ends on losses, as in versions 2 and 3 (`startup.rs`), of a sender without data: a subflow that a
//!   scheduler holds back may not see its bandwidth grow or cease to grow for minutes. With `startup_losses = "always"`
//!   it does so with data, too;
//! - `pace = "packets"` counts headers (`outputs.rs`), so that packets leave below the bandwidth over Multipath TCP as
//!   well, and lets them out one by one;
//! - a sample counts as one of a sender without data also where the scheduler, the path policy or the receive window
//!   holds the subflow back, and while its window is what penalisation left of it. Otherwise the bandwidth would fall
//!   to what the subflow was given;
//! - the maximum of the bandwidth is exact, where Linux keeps three samples; the first ten packets are paced, too; a
//!   delayed acknowledgment may renew an expired `r`; and packets that a timeout alone declares lost do not count for
//!   the policer.

mod aggregation;
mod competition;
pub(super) mod coupling;
mod outputs;
mod policer;
mod rate;
mod rules;
mod startup;
pub(super) mod v3;

use super::{Ack, CongestionControl, Entry, LossCause, RateSample, Siblings, Window};
use crate::view::{Packets, SubflowView};
use aggregation::Aggregation;
use anabranch_units::{Duration, Instant};
use outputs::offload_burst;
use policer::{AckSample, Action, Policer, Totals};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rate::{MaxFilter, Rate};
use rules::{Rules, Version1};
use startup::FullPipe;

pub(super) const ENTRY: Entry = Entry {
    name: "bbr",
    summary: "Paces at the measured bandwidth and ignores losses (version 1).",
    source: "Cardwell et al., ACM Queue 2016; Linux tcp_bbr.c",
    create: |options, seed| {
        options.expect_only(&["pace", "startup_losses"])?;
        let paced = match options.word("pace", &["linux", "packets"])? {
            "packets" => Pace::Packets,
            _ => Pace::Linux,
        };
        let reacts_to_losses = options.word("startup_losses", &["held-back", "always"])? == "always";
        Ok(Box::new(Bbr { paced, reacts_to_losses, ..Bbr::new(seed, Version1) }))
    },
};

const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// The number of phases with which a cycle may begin: all but the draining one.
const FIRST_PHASES: u32 = 7;
/// Two packets for each end of a path whose receiver acknowledges every second one.
const MIN_WINDOW: u32 = 4;
const MIN_RTT_LIFE: Duration = Duration::from_secs(10);
/// The age of a least round trip from which a subflow may join the ProbeRtt of another.
const LEAST_JOINING_AGE: Duration = Duration::from_secs(5);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw {
        phase: usize,
        since: Instant,
    },
    ProbeRtt {
        /// End of the phase, once few enough packets are in flight.
        until: Option<Instant>,
        round_passed: bool,
    },
}

/// What loss recovery does to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    None,
    /// A loss was signalled; the next acknowledgment begins packet conservation.
    Beginning,
    /// The first round trip: as many packets leave as arrived.
    Conserving,
    /// Later, and after a timeout: the window grows by what arrives.
    Growing,
}

/// The samples of ProbeRtt's few packets do not show the bandwidth. They are those sent after `from` packets were
/// delivered and until `to` were.
#[derive(Clone, Copy, Debug)]
struct Excluded {
    from: u64,
    to: u64,
}

impl Excluded {
    /// With the packets that are in flight after `delivered` packets in all.
    fn extended(excluded: Option<Self>, delivered: u64, in_flight: u32) -> Self {
        Excluded { from: excluded.map_or(delivered, |excluded| excluded.from), to: delivered + u64::from(in_flight) }
    }

    /// The sample; one of these packets is as that of a sender without data.
    fn applied(excluded: Option<Self>, sample: &RateSample) -> RateSample {
        let within = excluded.is_some_and(|excluded| (excluded.from..=excluded.to).contains(&sample.prior_delivered));
        RateSample { app_limited: sample.app_limited || within, ..*sample }
    }
}

/// What the pace is a rate of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// The rate is that of full segments of plain TCP (`mss_cache`), and a packet takes its payload of it. Over TCP
    /// packets leave at 0.99 times the bandwidth. Over Multipath TCP, whose options make segments shorter, they leave
    /// at up to 1.01 times the bandwidth, so that a queue stands.
    Linux,
    /// The rate is that of payload, and a packet takes its headers of it, too: packets leave at 0.95 times the
    /// bandwidth. With the headers in the rate they leave at 0.99 times the bandwidth.
    Packets,
}

#[derive(Debug)]
struct Bbr<R> {
    rules: R,
    mode: Mode,
    repair: Repair,
    /// The round trip's number, the count of delivered packets that ends it, and whether this acknowledgment begins
    /// one.
    round: u64,
    round_ends_at: u64,
    round_start: bool,
    bandwidth: MaxFilter,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    full_pipe: FullPipe,
    policer: Policer,
    aggregation: Aggregation,
    excluded: Option<Excluded>,
    totals: Totals,
    /// Sending began again after an idle time, and nothing was acknowledged yet.
    idle_restart: bool,
    started: bool,
    rtt_known: bool,
    /// The last good window before a repair or ProbeRtt.
    prior_window: Packets,
    mss: u32,
    tcp_mss: u32,
    paced: Pace,
    /// Losses end Startup whether or not the sender was held back.
    reacts_to_losses: bool,
    random: ChaCha8Rng,
}

impl<R: Rules> Bbr<R> {
    fn new(seed: u64, rules: R) -> Self {
        Bbr {
            rules,
            mode: Mode::Startup,
            repair: Repair::None,
            round: 0,
            round_ends_at: 0,
            round_start: false,
            bandwidth: MaxFilter::default(),
            min_rtt: None,
            min_rtt_at: Instant::ZERO,
            full_pipe: FullPipe::default(),
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            excluded: None,
            totals: Totals::default(),
            idle_restart: false,
            started: false,
            rtt_known: false,
            prior_window: Packets::ZERO,
            mss: 0,
            tcp_mss: 0,
            paced: Pace::Linux,
            reacts_to_losses: false,
            random: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    fn start(&mut self, now: Instant, window: &mut Window, own: &SubflowView) {
        self.started = true;
        (self.mss, self.tcp_mss) = (own.mss, own.tcp_mss);
        self.min_rtt = (!own.min_rtt.is_zero()).then_some(own.min_rtt);
        self.min_rtt_at = now;
        self.aggregation.restart(now);
        self.pace_before_samples(window, own);
    }

    // ---- the model -------------------------------------------------------------------------------------------------

    fn update_model(&mut self, ack: &Ack, window: &mut Window, siblings: Siblings<'_>) {
        let sample = Excluded::applied(self.excluded, &ack.rate);
        self.totals =
            Totals { now: ack.now, delivered: ack.total_delivered, lost: self.totals.lost + u64::from(ack.lost) };
        self.round_start = false;
        if sample.delivered > 0 && !sample.interval.is_zero() {
            self.update_round(&sample);
            self.observe_policer(ack.lost > 0, sample.app_limited);
            self.update_bandwidth(&sample);
            let cwnd = window.cwnd.floor();
            self.aggregation.observe(ack.now, ack.delivered, cwnd, self.rate(), self.round_start);
        }
        self.rules.observe(ack);
        if self.round_start && self.rules.on_round_end(self.min_rtt, self.bandwidth_delay_product(), siblings) {
            self.full_pipe.reach();
        }
        self.update_phase(ack, window);
        self.check_full_pipe(ack, sample.app_limited);
        self.check_drain(ack, window);
        self.update_min_rtt(ack, window, siblings);
    }

    fn update_round(&mut self, sample: &RateSample) {
        if sample.prior_delivered >= self.round_ends_at {
            self.round_ends_at = self.totals.delivered;
            self.round += 1;
            self.round_start = true;
            if self.repair == Repair::Conserving {
                self.repair = Repair::Growing;
            }
        }
    }

    fn observe_policer(&mut self, loss: bool, app_limited: bool) {
        let seen = AckSample {
            totals: self.totals,
            loss,
            app_limited,
            round_start: self.round_start,
            cycling: matches!(self.mode, Mode::ProbeBw { .. }),
            mss: self.mss,
        };
        if self.policer.observe(&seen) == Action::Resume {
            self.begin_cycle(self.totals.now);
        }
    }

    fn update_bandwidth(&mut self, sample: &RateSample) {
        let rate = Rate::new(u64::from(sample.delivered), sample.interval);
        // A sender without data is slower than its path: its sample counts only if it exceeds all earlier ones.
        if !sample.app_limited || rate >= self.bandwidth.max() {
            self.bandwidth.add(self.round, rate);
        }
    }

    /// The bandwidth to send at.
    fn rate(&self) -> Rate {
        self.policer.rate().unwrap_or(self.bandwidth.max())
    }

    fn update_min_rtt(&mut self, ack: &Ack, window: &mut Window, siblings: Siblings<'_>) {
        if let (Some(least), Some(rtt)) = (self.min_rtt, ack.rtt)
            && self.rules.renews(least, rtt)
        {
            self.min_rtt_at = ack.now;
        }
        let older_than = |age| ack.now > self.min_rtt_at + age;
        let expired =
            older_than(MIN_RTT_LIFE) || (older_than(LEAST_JOINING_AGE) && self.rules.joins_probe_rtt(siblings));
        if let Some(rtt) = ack.rtt
            && (expired || self.min_rtt.is_none_or(|least| rtt < least))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = ack.now;
        }
        if expired && !self.idle_restart && !matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.save_window(window);
            self.excluded = None;
            self.mode = Mode::ProbeRtt { until: None, round_passed: false };
            window.seeks_min_rtt = true;
        }
        self.continue_probe_rtt(ack, window);
        self.idle_restart &= ack.delivered == 0;
    }

    // ---- the modes -------------------------------------------------------------------------------------------------

    fn check_full_pipe(&mut self, ack: &Ack, app_limited: bool) {
        if self.round_start && !app_limited {
            self.full_pipe.on_round(self.bandwidth.max());
        }
        let reacts = self.repair != Repair::None && (app_limited || self.reacts_to_losses);
        self.full_pipe.on_ack(ack.delivered, ack.lost, self.round_start, reacts);
    }

    fn check_drain(&mut self, ack: &Ack, window: &mut Window) {
        let pipe = self.budget(self.pipe(self.bandwidth.max(), 1.0), window);
        if self.mode == Mode::Startup && self.full_pipe.reached() {
            self.mode = Mode::Drain;
            window.set_ssthresh(f64::from(pipe));
        }
        if self.mode == Mode::Drain && self.in_network(ack.in_flight, ack.now, window) <= pipe {
            self.begin_cycle(ack.now);
        }
    }

    /// Of these packets, those that are still in flight when the pace lets the next burst leave (Linux's
    /// `bbr_packets_in_net_at_edt`); all of them where it lets packets out one by one.
    fn in_network(&self, packets: u32, now: Instant, window: &Window) -> u32 {
        if self.paced == Pace::Packets {
            return packets;
        }
        packets.saturating_sub(self.rate().packets_in(window.paced_until.since(now)) as u32)
    }

    fn begin_cycle(&mut self, now: Instant) {
        let back = (self.random.next_u32() % FIRST_PHASES) as usize;
        self.mode = Mode::ProbeBw { phase: (CYCLE.len() - back) % CYCLE.len(), since: now };
    }

    fn update_phase(&mut self, ack: &Ack, window: &Window) {
        let Mode::ProbeBw { phase, since } = self.mode else { return };
        let lasted = self.min_rtt.is_some_and(|r| ack.now.since(since) > r);
        let gain = self.pacing_gain();
        let target = |gain| self.budget(self.pipe(self.bandwidth.max(), gain), window);
        let over = if gain > 1.0 {
            // Press on until the pipe holds what the gain should put in, unless it overflows.
            let in_flight = ack.prior_in_flight.saturating_add(offload_burst(window, self.mss));
            lasted && (ack.lost > 0 || self.in_network(in_flight, ack.now, window) >= target(gain))
        } else if gain < 1.0 {
            lasted || self.in_network(ack.prior_in_flight, ack.now, window) <= target(1.0)
        } else {
            lasted
        };
        if over {
            self.mode = Mode::ProbeBw { phase: (phase + 1) % CYCLE.len(), since: ack.now };
        }
    }

    fn continue_probe_rtt(&mut self, ack: &Ack, window: &mut Window) {
        let Mode::ProbeRtt { until, round_passed } = self.mode else { return };
        self.excluded = Some(Excluded::extended(self.excluded, self.totals.delivered, ack.in_flight));
        if until.is_none() {
            if ack.in_flight <= self.probe_rtt_window() {
                self.mode = Mode::ProbeRtt { until: Some(ack.now + PROBE_RTT_TIME), round_passed };
                self.round_ends_at = self.totals.delivered;
            }
        } else if round_passed || self.round_start {
            self.mode = Mode::ProbeRtt { until, round_passed: true };
            self.end_probe_rtt(ack.now, window);
        }
    }

    fn end_probe_rtt(&mut self, now: Instant, window: &mut Window) {
        let Mode::ProbeRtt { until: Some(until), .. } = self.mode else { return };
        if now < until {
            return;
        }
        self.min_rtt_at = now;
        window.seeks_min_rtt = false;
        window.cwnd = window.cwnd.max(self.prior_window);
        if self.full_pipe.reached() {
            self.begin_cycle(now);
        } else {
            self.mode = Mode::Startup;
        }
    }
}

impl<R: Rules> CongestionControl for Bbr<R> {
    fn on_established(&mut self, now: Instant, window: &mut Window, siblings: Siblings<'_>) {
        self.start(now, window, siblings.own());
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window, siblings: Siblings<'_>) {
        let own = siblings.own();
        if !self.started {
            self.start(ack.now, window, own);
        }
        (self.mss, self.tcp_mss) = (own.mss, own.tcp_mss);
        self.update_model(ack, window, siblings);
        if !self.rtt_known && !own.srtt.is_zero() {
            self.pace_before_samples(window, own);
        }
        self.pace(self.pacing_gain(), window);
        self.update_window(ack, window);
    }

    fn on_congestion(&mut self, now: Instant, cause: LossCause, window: &mut Window, _siblings: Siblings<'_>) {
        match cause {
            // No packet was lost: there is nothing to repair, and the next acknowledgments widen the window again.
            LossCause::Penalty => {}
            LossCause::FastRetransmit => {
                self.save_window(window);
                self.repair = Repair::Beginning;
            }
            LossCause::Timeout => {
                self.save_window(window);
                self.repair = Repair::Growing;
                self.full_pipe.forget_best();
                self.round_start = true;
                self.totals.now = now;
                self.observe_policer(true, false);
            }
        }
    }

    fn on_recovery_end(&mut self, _now: Instant, window: &mut Window) {
        if self.repair != Repair::None {
            self.repair = Repair::None;
            window.cwnd = window.cwnd.max(self.prior_window);
        }
    }

    fn on_undo(&mut self, now: Instant, window: &mut Window) {
        self.full_pipe.restart();
        self.policer.reset();
        self.on_recovery_end(now, window);
    }

    fn on_restart(&mut self, now: Instant, _idle: Duration, app_limited: bool, window: &mut Window) {
        if !app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            // What was queued is gone, so there is nothing to probe for or to drain.
            Mode::ProbeBw { .. } => self.pace(1.0, window),
            Mode::ProbeRtt { .. } => self.end_probe_rtt(now, window),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn buffered_windows(&self) -> u32 {
        R::BUFFERED_WINDOWS
    }

    fn governs_itself(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod network;
#[cfg(test)]
mod tests;
