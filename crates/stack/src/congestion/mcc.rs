//! MCC, the congestion control of MPTCP+: fully coupled, with steps that shrink while the round trip shoots up.
//!
//! ```text
//! the paper's fluid model            dx_r/dt = θ x_r² (1 / (rtt_r² (Σ x_k)²) − λ_r / 2)                      (1)
//! increase per acknowledged packet   w_r += θ · (w_r / rtt_r²) / (Σ w_k / rtt_k)²
//! after a loss                       ssthresh = max(w_r (1 − θ/2), 2); after a timeout max(w_r / 2, 2)
//!   θ = min_k w_k / Σ w_k   while   R_r > 1.5 Γ_r,   else 1                                                 (2)
//!   Γ_r = Σ i·R_(i) / Σ i over the last ten samples R_(1..10) before R_r, the newest with i = 10
//! ```
//! `w` windows (packets), `x = w/rtt` rates (packets/s), `rtt` smoothed and `R` momentary round trips (s), λ losses
//! (1/s). Zhao, Liu, Zhang, Cui, Jiang, Gong, "MPTCP+: Enhancing Adaptive HTTP Video Streaming over Multipath", section
//! III.B.
//!
//! The paper gives a fluid model only. We match it term by term: gaining I per acknowledged packet and losing D per
//! lost one is dx/dt = (x I − λ D x)/rtt, hence I and D above. With θ = 1 this is OLIA without its α, so that nothing
//! moves a window back from the path on which it parks. The paper leaves open, and we choose: the weights (linear);
//! that Γ excludes
//! the current sample; that R is a momentary sample, as a smoothed one never exceeds 1.5 Γ; and what one sample
//! is: option `gamma_unit`, the last of each round trip (`"rtt-round"`, the default) or every one (`"ack"`). θ holds
//! until the next sample. Sums and minimum run over the paths that the path policy allows; a disabled one would make θ
//! zero.

use super::coupled::{self, Path};
use super::rounds::Rounds;
use super::{Ack, CongestionControl, Entry, LossCause, Siblings, Window};
use anabranch_units::{Duration, Instant};

pub(super) const ENTRY: Entry = Entry {
    name: "mcc",
    summary: "Couples the increases fully and takes smaller steps while the round trip shoots up (MPTCP+).",
    source: "Zhao et al., MPTCP+, section III.B",
    create: |options, _seed| {
        options.expect_only(&["gamma_unit"])?;
        Ok(Box::new(Mcc::new(match options.word("gamma_unit", &["rtt-round", "ack"])? {
            "ack" => Unit::Ack,
            _ => Unit::Round,
        })))
    },
};

/// How far above Γ a round trip counts as shooting up (equation 2).
const SPIKE: f64 = 1.5;
/// Samples in Γ ("the last ten RTTs").
const HISTORY: usize = 10;

/// What counts as one sample of the round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Round,
    Ack,
}

#[derive(Debug)]
struct Mcc {
    unit: Unit,
    rounds: Rounds,
    latest: Option<Duration>,
    gamma: WeightedMean,
    spiking: bool,
    counters: [(&'static str, u64); 4],
}

/// Positions in the counters.
const SAMPLES: usize = 0;
const SPIKES: usize = 1;
const SMOOTHED_INCREASES: usize = 2;
const SMOOTHED_REDUCTIONS: usize = 3;

impl Mcc {
    fn new(unit: Unit) -> Self {
        Mcc {
            unit,
            rounds: Rounds::default(),
            latest: None,
            gamma: WeightedMean::default(),
            spiking: false,
            counters: [("rtt_samples", 0), ("theta_triggers", 0), ("theta_increases", 0), ("theta_reductions", 0)],
        }
    }

    fn observe(&mut self, ack: &Ack) {
        self.latest = ack.rtt.or(self.latest);
        let round_ended = self.rounds.ended_by(ack);
        let sample = match self.unit {
            Unit::Ack => ack.rtt,
            Unit::Round if round_ended => self.latest.take(),
            Unit::Round => None,
        };
        let Some(rtt) = sample else { return };
        self.spiking = self.gamma.mean().is_some_and(|mean| rtt.as_secs_f64() > SPIKE * mean);
        self.gamma.push(rtt);
        self.counters[SAMPLES].1 += 1;
        self.counters[SPIKES].1 += u64::from(self.spiking);
    }

    /// Equation (2).
    fn theta(&self, paths: impl Iterator<Item = Path> + Clone) -> f64 {
        if !self.spiking {
            return 1.0;
        }
        let least = paths.clone().map(|p| p.window).fold(f64::INFINITY, f64::min);
        least / coupled::total_window(paths)
    }
}

impl CongestionControl for Mcc {
    fn on_ack(&mut self, ack: &Ack, window: &mut Window, siblings: Siblings<'_>) {
        self.observe(ack);
        let mut theta = 1.0;
        coupled::grow(ack, window, siblings, |own, window| {
            let paths = coupled::paths(siblings, window);
            let rate = coupled::total_rate(paths.clone());
            theta = self.theta(paths);
            theta * own.acceleration() / (rate * rate)
        });
        self.counters[SMOOTHED_INCREASES].1 += u64::from(theta < 1.0);
    }

    fn on_congestion(&mut self, _now: Instant, cause: LossCause, window: &mut Window, siblings: Siblings<'_>) {
        let theta = match cause {
            LossCause::Timeout => 1.0,
            LossCause::FastRetransmit | LossCause::Penalty => self.theta(coupled::paths(siblings, window)),
        };
        self.counters[SMOOTHED_REDUCTIONS].1 += u64::from(theta < 1.0);
        window.set_ssthresh(window.cwnd.as_f64() * (1.0 - theta / 2.0));
    }

    fn counters(&self) -> &[(&'static str, u64)] {
        &self.counters
    }
}

/// Γ: the mean of the last [`HISTORY`] samples, weighted linearly, the newest most.
#[derive(Clone, Copy, Debug, Default)]
struct WeightedMean {
    samples: [Duration; HISTORY],
    count: usize,
}

impl WeightedMean {
    fn push(&mut self, sample: Duration) {
        if self.count == HISTORY {
            self.samples.rotate_left(1);
            self.count -= 1;
        }
        self.samples[self.count] = sample;
        self.count += 1;
    }

    /// In seconds; nothing before the first sample.
    fn mean(&self) -> Option<f64> {
        let (mut sum, mut weights) = (0.0, 0.0);
        for (i, sample) in self.samples[..self.count].iter().enumerate() {
            let weight = (i + 1) as f64;
            sum += weight * sample.as_secs_f64();
            weights += weight;
        }
        (self.count > 0).then(|| sum / weights)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ack, assert_near, create, growth, threshold, view, window};
    use super::*;
    use crate::options::Value;

    /// How often θ is triggered by a round trip that grows to `step` times itself and stays there.
    fn triggers(cc: &mut dyn CongestionControl, step: f64) -> u64 {
        let all = [view(0, 10.0, 0.1)];
        for i in 0..60u64 {
            let rtt = if i < 30 { 0.1 } else { 0.1 * step };
            let ack = Ack { acked_offset: i + 1, sent_offset: i + 1, ..ack(i as f64, 1, rtt) };
            cc.on_ack(&ack, &mut window(10.0), Siblings::new(&all, 0));
        }
        assert_eq!(cc.counters()[SAMPLES].1, 60);
        cc.counters()[SPIKES].1
    }

    #[test]
    fn a_step_of_the_round_trip_triggers_as_often_as_the_weights_say() {
        for (step, expected) in [(1.5, 0), (1.6, 1), (1.75, 2), (2.0, 2), (3.0, 4), (5.0, 4), (10.0, 5)] {
            assert_eq!(triggers(&mut Mcc::new(Unit::Round), step), expected, "step {step}");
            let mut per_ack = create("mcc", &[("gamma_unit", Value::Text("ack".into()))]);
            assert_eq!(triggers(per_ack.as_mut(), step), expected, "step {step} per acknowledgment");
        }
    }

    #[test]
    fn only_the_last_sample_of_a_round_counts_by_default() {
        let mut cc = Mcc::new(Unit::Round);
        let all = [view(0, 10.0, 0.1)];
        let mut acknowledge = |acked_offset, sent_offset, rtt: Option<u64>| {
            let ack = Ack { acked_offset, sent_offset, rtt: rtt.map(Duration::from_millis), ..ack(0.0, 1, 0.1) };
            cc.on_ack(&ack, &mut window(10.0), Siblings::new(&all, 0));
            [cc.counters[SAMPLES].1, cc.counters[SPIKES].1]
        };
        assert_eq!(acknowledge(1, 10, Some(100)), [1, 0]);
        assert_eq!(acknowledge(5, 15, Some(700)), [1, 0]);
        assert_eq!(acknowledge(11, 20, Some(100)), [2, 0]);
        // The acknowledgment that ends this round is of a retransmitted packet only, and so is the whole next round.
        assert_eq!(acknowledge(15, 25, Some(400)), [2, 0]);
        assert_eq!(acknowledge(21, 30, None), [3, 1]);
        assert_eq!(acknowledge(31, 40, None), [3, 1]);
    }

    #[test]
    fn gamma_of_a_partial_history_is_weighted_by_what_there_is() {
        let mut gamma = WeightedMean::default();
        assert_eq!(gamma.mean(), None);
        for ms in [10, 20, 30] {
            gamma.push(Duration::from_millis(ms));
        }
        // (1·10 + 2·20 + 3·30) / 6
        assert_near(gamma.mean().unwrap(), 0.140 / 6.0, 1e-9);
        for _ in 0..10 {
            gamma.push(Duration::from_millis(50));
        }
        assert_near(gamma.mean().unwrap(), 0.05, 1e-9);
    }

    #[test]
    fn theta_scales_both_steps_while_the_round_trip_shoots_up() {
        let all = [view(0, 10.0, 0.1), view(1, 30.0, 0.1)];
        // (10/0.01) / 400² alone, and θ = 10/40.
        let plain = 1000.0 / 160_000.0;
        assert_near(growth(&mut Mcc::new(Unit::Round), 10.0, &all, 0), plain, 1e-6);
        let spiking = || Mcc { spiking: true, ..Mcc::new(Unit::Round) };
        assert_near(growth(&mut spiking(), 10.0, &all, 0), plain / 4.0, 1e-6);
        let mut counting = spiking();
        growth(&mut counting, 10.0, &all, 0);
        threshold(&mut counting, 10.0, LossCause::FastRetransmit, &all, 0);
        threshold(&mut counting, 10.0, LossCause::Timeout, &all, 0);
        let counted =
            ["theta_increases", "theta_reductions"].map(|name| counting.counters().iter().find(|c| c.0 == name));
        assert_eq!(counted, [Some(&("theta_increases", 1)), Some(&("theta_reductions", 1))]);
        assert_near(threshold(&mut spiking(), 10.0, LossCause::FastRetransmit, &all, 0), 8.75, 1e-9);
        assert_near(threshold(&mut spiking(), 10.0, LossCause::Timeout, &all, 0), 5.0, 1e-9);
    }

    #[test]
    fn two_equal_paths_keep_three_quarters_and_a_single_path_ignores_theta() {
        let spiking = || Mcc { spiking: true, ..Mcc::new(Unit::Round) };
        let equal = [view(0, 10.0, 0.1), view(1, 10.0, 0.1)];
        assert_near(threshold(&mut spiking(), 10.0, LossCause::FastRetransmit, &equal, 0), 7.5, 1e-9);
        assert_near(threshold(&mut spiking(), 10.0, LossCause::FastRetransmit, &equal[..1], 0), 5.0, 1e-9);
    }

    #[test]
    fn a_disallowed_path_does_not_freeze_the_windows() {
        let disallowed = crate::view::SubflowView { allowed: false, ..view(1, 0.0, 0.1) };
        let all = [view(0, 10.0, 0.1), disallowed];
        assert_near(growth(&mut Mcc { spiking: true, ..Mcc::new(Unit::Round) }, 10.0, &all, 0), 0.1, 1e-6);
    }
}
