//! Compound TCP: NewReno's window plus a delay-based one, which fills an empty fast path and leaves when a queue
//! builds.
//!
//! ```text
//! win = loss window + dwnd
//! per acknowledged packet   win += 1 / ⌊win⌋                                            (slow start: NewReno, dwnd = 0)
//! once per round trip       diff = win (1 − base/rtt)
//!   diff < γ                dwnd += max(α win^k − 1, 0)
//!   diff ≥ γ                dwnd = max(dwnd − η diff, 0)
//! after a loss              ssthresh = win (1 − β),  loss window halves,
//!                           dwnd = max(win (1 − β) − loss window / 2, 0);  after a timeout 0
//!                           γ += (0.75 · diff_reno − γ)/4, within 5 to 30;   diff_reno = loss window (1 − base/rtt)
//! ```
//! Windows, `diff` and γ (packets), `rtt` least of the round and `base` least of all round trips (s); α = 1/8, β = 1/2,
//! k = 3/4, η = 1. Tan, Song, Zhang, Sridharan, "A Compound TCP Approach for High-Speed and Long Distance Networks",
//! INFOCOM 2006; draft-sridharan-tcpm-ctcp-02. As the draft's implementation, it is NewReno below [`LOW_WINDOW`]
//! packets; fewer than three samples in a round are ignored. A round's gain is spread over the next round, so that it
//! does not leave as a burst.
//!
//! The handoff and the sticky-schedulers papers print eq. 3 with `α dwnd^k` (we take `win^k`, INFOCOM's and the
//! deployed form: theirs is −1 from `dwnd = 0` and so can never begin), per acknowledgment (it is per round trip),
//! without the `max(·, 0)`, and after a loss `dwnd (1 − β) − cwnd/2`, which must begin with `win`.
//!
//! Ours: the draft samples diff_reno from an emulated NewReno; the loss window is one. Windows are fractions.

use super::rounds::Rounds;
use super::{Ack, CongestionControl, Entry, LossCause, Siblings, Window};
use crate::view::Packets;
use anabranch_units::{Duration, Instant};

pub(super) const ENTRY: Entry = Entry {
    name: "compound",
    summary: "NewReno plus a delay-based window that fills empty fast paths.",
    source: "Tan et al., INFOCOM 2006; draft-sridharan-tcpm-ctcp-02",
    create: |options, _seed| {
        options.expect_only(&[])?;
        Ok(Box::new(Compound::default()))
    },
};

const ALPHA: f64 = 1.0 / 8.0;
const BETA: f64 = 0.5;
const ETA: f64 = 1.0;
/// Queued packets that count as congestion: the first value and the bounds of its tuning.
const INITIAL_GAMMA: f64 = 30.0;
const LEAST_GAMMA: f64 = 5.0;
/// Share of NewReno's own queue at which γ aims, and the weight of a new observation.
const GAMMA_SHARE: f64 = 0.75;
const GAMMA_GAIN: f64 = 0.25;
/// Below this window Compound is NewReno.
const LOW_WINDOW: f64 = 38.0;
/// Rounds with fewer samples are ignored: all of them may be of delayed acknowledgments.
const MIN_SAMPLES: u32 = 3;

#[derive(Debug)]
struct Compound {
    rounds: Rounds,
    base: Option<Duration>,
    round_least: Option<Duration>,
    samples: u32,
    delay_window: Packets,
    /// The delay window before the last reduction.
    prior_delay_window: Packets,
    /// The remaining and the whole increase of the delay window in this round.
    rise_left: Packets,
    rise: Packets,
    gamma: Packets,
    /// NewReno's share of the queue in the last round.
    reno_backlog: Option<Packets>,
    restart: bool,
}

impl Default for Compound {
    fn default() -> Self {
        Compound {
            rounds: Rounds::default(),
            base: None,
            round_least: None,
            samples: 0,
            delay_window: Packets::ZERO,
            prior_delay_window: Packets::ZERO,
            rise_left: Packets::ZERO,
            rise: Packets::ZERO,
            gamma: Packets::from_f64(INITIAL_GAMMA),
            reno_backlog: None,
            restart: false,
        }
    }
}

/// Increase of the delay window by an uncongested round, in packets.
fn gain(win: f64) -> f64 {
    // win^(3/4) by square roots, which are exact on every machine.
    (ALPHA * win.sqrt() * win.sqrt().sqrt() - 1.0).max(0.0)
}

impl Compound {
    fn observe(&mut self, rtt: Duration) {
        let least = |so_far: Option<Duration>| Some(so_far.map_or(rtt, |least| least.min(rtt)));
        self.base = least(self.base);
        self.round_least = least(self.round_least);
        self.samples += 1;
    }

    fn clear_samples(&mut self) {
        self.round_least = None;
        self.samples = 0;
    }

    fn without_delay_window(&mut self) {
        self.delay_window = Packets::ZERO;
        self.rise = Packets::ZERO;
        self.rise_left = Packets::ZERO;
    }

    /// Adds this acknowledgment's part of the round's gain.
    fn rise(&mut self, acked: f64, window: &mut Window) {
        if self.rise_left == Packets::ZERO {
            return;
        }
        let left = self.rise_left.as_f64();
        let step = (self.rise.as_f64() * acked / window.cwnd.as_f64()).min(left);
        self.rise_left = Packets::from_f64(left - step);
        self.delay_window = Packets::from_f64(self.delay_window.as_f64() + step);
        window.grow(step);
    }

    /// Decides at the end of a round.
    fn adapt(&mut self, window: &mut Window) {
        self.without_rise();
        let win = window.cwnd.as_f64();
        // The subflow may have taken the window down after an idle time.
        self.delay_window = self.delay_window.min(window.cwnd);
        let (Some(base), Some(rtt)) = (self.base, self.round_least) else { return };
        if self.samples < MIN_SAMPLES {
            return;
        }
        let queueing = 1.0 - base.as_secs_f64() / rtt.as_secs_f64();
        let delay_window = self.delay_window.as_f64();
        self.reno_backlog = Some(Packets::from_f64((win - delay_window) * queueing));
        if win < LOW_WINDOW {
            self.without_delay_window();
        } else if win * queueing < self.gamma.as_f64() {
            self.rise = Packets::from_f64(gain(win));
            self.rise_left = self.rise;
        } else {
            let cut = delay_window.min(ETA * win * queueing);
            self.delay_window = Packets::from_f64(delay_window - cut);
            window.grow(-cut);
        }
    }

    fn without_rise(&mut self) {
        self.rise = Packets::ZERO;
        self.rise_left = Packets::ZERO;
    }

    fn tune_gamma(&mut self) {
        if let Some(backlog) = self.reno_backlog.take() {
            let gamma = self.gamma.as_f64();
            let tuned = gamma + (GAMMA_SHARE * backlog.as_f64() - gamma) * GAMMA_GAIN;
            self.gamma = Packets::from_f64(tuned.clamp(LEAST_GAMMA, INITIAL_GAMMA));
        }
    }
}

impl CongestionControl for Compound {
    fn on_ack(&mut self, ack: &Ack, window: &mut Window, _siblings: Siblings<'_>) {
        if let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero()) {
            self.observe(rtt);
        }
        if self.restart && ack.may_grow {
            self.rounds.restart(ack);
            self.clear_samples();
            self.restart = false;
        }
        let round_ended = self.rounds.ended_by(ack);
        if ack.may_grow {
            if window.in_slow_start() {
                self.without_delay_window();
            }
            let left = window.slow_start(ack.delivered);
            if left > 0.0 {
                window.grow_per_window(left);
                self.rise(left, window);
                if round_ended {
                    self.adapt(window);
                }
            }
        }
        if round_ended {
            self.clear_samples();
        }
    }

    fn on_congestion(&mut self, _now: Instant, cause: LossCause, window: &mut Window, _siblings: Siblings<'_>) {
        self.tune_gamma();
        let win = window.cwnd.as_f64();
        let delay_window = self.delay_window.as_f64().min(win);
        let loss_window = win - delay_window;
        self.prior_delay_window = Packets::from_f64(delay_window);
        window.set_ssthresh(win * (1.0 - BETA));
        self.without_rise();
        self.delay_window = match cause {
            LossCause::Timeout => Packets::ZERO,
            LossCause::FastRetransmit | LossCause::Penalty => {
                Packets::from_f64((win * (1.0 - BETA) - loss_window / 2.0).max(0.0))
            }
        };
        self.restart = true;
    }

    fn on_undo(&mut self, _now: Instant, _window: &mut Window) {
        self.delay_window = self.prior_delay_window;
    }

    fn on_restart(&mut self, _now: Instant, _idle: Duration, _app_limited: bool, _window: &mut Window) {
        self.without_rise();
        self.restart = true;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ack, assert_near, create, view, window};
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{Rng, SeedableRng};

    /// One round trip: as many acknowledgments as the window has packets, the last of which ends the round.
    fn round(cc: &mut dyn CongestionControl, window: &mut Window, number: u64, rtt: f64) {
        let all = [view(0, 10.0, rtt)];
        let packets = u64::from(window.cwnd.floor());
        for i in 1..=packets {
            let ended = i == packets;
            let ack =
                Ack { acked_offset: number * 2 + u64::from(ended), sent_offset: number * 2 + 2, ..ack(0.0, 1, rtt) };
            cc.on_ack(&ack, window, Siblings::new(&all, 0));
        }
    }

    #[test]
    fn an_uncongested_round_adds_the_papers_gain_over_the_next_one() {
        // 100^(3/4)/8 − 1 = 31.62/8 − 1.
        assert_near(gain(100.0), 2.9528, 1e-4);
        assert_eq!(gain(16.0), 0.0);
        let (mut cc, mut window) = (Compound::default(), window(100.0));
        round(&mut cc, &mut window, 0, 0.1);
        let before = window.cwnd.as_f64();
        round(&mut cc, &mut window, 1, 0.1);
        // NewReno's packet (a little less, as the window grows meanwhile), and the gain but for the last
        // acknowledgment.
        assert_near(window.cwnd.as_f64() - before, 1.0 + gain(before), 0.03);
        assert_near(cc.delay_window.as_f64(), gain(before), 0.03);
    }

    #[test]
    fn a_congested_round_takes_the_queue_from_the_delay_window_alone() {
        let mut cc = Compound {
            delay_window: Packets::whole(60),
            base: Some(Duration::from_millis(80)),
            samples: 5,
            ..Compound::default()
        };
        let mut win = window(200.0);
        cc.round_least = Some(Duration::from_millis(100));
        cc.adapt(&mut win);
        // diff = 200 · 0.2 = 40 ≥ 30.
        assert_near(win.cwnd.as_f64(), 160.0, 1e-6);
        assert_near(cc.delay_window.as_f64(), 20.0, 1e-6);
        cc.round_least = Some(Duration::from_millis(100));
        cc.adapt(&mut win);
        assert_near(win.cwnd.as_f64(), 140.0, 1e-6);
        assert_eq!(cc.delay_window, Packets::ZERO);
    }

    #[test]
    fn a_loss_halves_both_windows_and_a_timeout_empties_the_delay_window() {
        let all = [view(0, 100.0, 0.1)];
        for (cause, expected) in [(LossCause::FastRetransmit, 20.0), (LossCause::Timeout, 0.0)] {
            let mut cc = Compound { delay_window: Packets::whole(40), ..Compound::default() };
            let mut window = window(100.0);
            cc.on_congestion(Instant::ZERO, cause, &mut window, Siblings::new(&all, 0));
            assert_eq!((window.ssthresh.as_f64(), cc.delay_window.as_f64()), (50.0, expected));
            cc.on_undo(Instant::ZERO, &mut window);
            assert_eq!(cc.delay_window, Packets::whole(40));
        }
    }

    #[test]
    fn gamma_follows_the_backlog_of_newreno_within_its_bounds() {
        let mut cc = Compound { reno_backlog: Some(Packets::whole(16)), ..Compound::default() };
        cc.tune_gamma();
        // 30 + (12 − 30)/4
        assert_near(cc.gamma.as_f64(), 25.5, 1e-9);
        cc.tune_gamma();
        assert_near(cc.gamma.as_f64(), 25.5, 1e-9);
        for _ in 0..50 {
            cc.reno_backlog = Some(Packets::ZERO);
            cc.tune_gamma();
        }
        assert_near(cc.gamma.as_f64(), 5.0, 1e-9);
    }

    #[test]
    fn below_the_low_window_the_trace_is_newrenos_to_the_bit() {
        let mut random = ChaCha8Rng::seed_from_u64(38);
        let all = [view(0, 10.0, 0.1)];
        let mut pair = [create("compound", &[]), create("newreno", &[])];
        let mut windows = [Window::initial(10); 2];
        let mut congestion = 0;
        for i in 0..200_000u64 {
            let rtt = 0.05 + f64::from(random.next_u32() % 1000) / 10_000.0;
            let loss = random.next_u32() % 50 == 0 || windows[0].cwnd.as_f64() > LOW_WINDOW - 2.0;
            congestion += u32::from(loss);
            for (cc, window) in pair.iter_mut().zip(&mut windows) {
                let siblings = Siblings::new(&all, 0);
                if loss {
                    cc.on_congestion(Instant::ZERO, LossCause::FastRetransmit, window, siblings);
                    window.cwnd = window.ssthresh;
                    cc.on_recovery_end(Instant::ZERO, window);
                } else {
                    cc.on_ack(
                        &Ack { acked_offset: i, sent_offset: i + 10, ..ack(0.0, 1 + i as u32 % 2, rtt) },
                        window,
                        siblings,
                    );
                }
            }
            assert_eq!(windows[0].cwnd, windows[1].cwnd, "after {i} events");
            assert!(windows[0].cwnd.as_f64() < LOW_WINDOW);
        }
        assert!(congestion > 1000);
    }

    #[test]
    fn above_it_the_trace_is_not() {
        let mut pair = [create("compound", &[]), create("newreno", &[])];
        let mut windows = [window(60.0); 2];
        for number in 0..20 {
            for (cc, window) in pair.iter_mut().zip(&mut windows) {
                round(cc.as_mut(), window, number, 0.1);
            }
        }
        assert!(windows[0].cwnd.as_f64() > windows[1].cwnd.as_f64() + 10.0, "{windows:?}");
    }

    /// The handoff paper's eq. 3 as printed, for one acknowledgment without congestion.
    fn printed_rule(dwnd: f64) -> f64 {
        dwnd + ALPHA * dwnd.powf(0.75) - 1.0
    }

    #[test]
    fn the_rule_as_the_papers_print_it_is_dead() {
        let mut dwnd = 0.0;
        for _ in 0..1000 {
            dwnd = printed_rule(dwnd).max(0.0);
            assert_eq!(dwnd, 0.0);
        }
        // It would grow only if it were beyond 16 packets already.
        assert!(printed_rule(15.9) < 15.9 && printed_rule(16.1) > 16.1);
    }
}
