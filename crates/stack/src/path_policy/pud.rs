//! PUD, the path-use decision of MPTCP+: a path whose throughput is far below the best one's is not used.
//!
//! Every tick, for each subflow with something in flight:
//!
//! ```text
//! raw_i  = mss * cwnd / srtt                          (bytes per second; see `rate` below)
//! MA_i   = mean of the last min(i, 3) raw values
//! x      = sum(i * MA_i, i = 1..n) / (n (n + 1) / 2)  (the latest weighs most; n = 150)
//! used   = { k : x_k > rho * max x },  rho = 0.6      never empty
//! ```
//!
//! Source: "MPTCP+", Algorithm 1. What it prints has errors, and it leaves questions open. We read it so:
//! - samples are taken for all subflows at one tick, not in a loop over subflows; the maximum is taken over complete
//!   means;
//! - the moving average is over *raw* values, as the text says;
//! - window over round trip is the throughput only while the window is full and the queue short: a window that is not
//!   used, or that a control leaves large, reads several times the path's rate. `rate = "delivery"` takes the measured
//!   delivery rate in its place; `"window"` (the default) is the paper's;
//! - the sampling period is not stated: `period`, 100 ms of time in which something is in flight, so the first decision
//!   falls after 15 s; later ones slide, every n/10 ticks;
//! - how a path comes back is not stated. `readmit = "degraded"` (the default): its mean stays as it was, and it is
//!   used again when that exceeds rho times the best one's, or at once when no allowed path works; `"never"`: the
//!   literal text; `"probe"`: besides, it is tried for n/10 ticks every 30 s, which renews its mean;
//! - the paper sets cwnd = 0. Here the subflow gets no new data; zero would keep it from retransmitting its losses.

use super::{Entry, PathPolicy};
use crate::scheduler::SubflowSet;
use crate::view::SubflowView;
use anabranch_units::{Duration, Instant, SubflowId};
use std::collections::VecDeque;

pub(super) const ENTRY: Entry = Entry {
    name: "pud",
    summary: "Stops using a path whose throughput is below 0.6 of the best one's.",
    source: "MPTCP+, Algorithm 1",
    create: |options| {
        options.expect_only(&["n", "rho", "period_ms", "readmit", "tell_peer", "rate"])?;
        let readmit = match options.word("readmit", &["degraded", "never", "probe"])? {
            "never" => Readmit::Never,
            "probe" => Readmit::Probe,
            _ => Readmit::Degraded,
        };
        let throughput = match options.word("rate", &["window", "delivery"])? {
            "delivery" => Throughput::Delivery,
            _ => Throughput::Window,
        };
        Ok(Box::new(Pud {
            n: options.number("n", 150.0, 5.0..=10_000.0)? as usize,
            rho: options.number("rho", 0.6, 0.0..=1.0)?,
            period: Duration::from_secs_f64(options.number("period_ms", 100.0, 1.0..=60_000.0)? / 1e3),
            readmit,
            throughput,
            signal_peer: options.flag("tell_peer", false)?,
            next_tick: Instant::ZERO,
            tick: 0,
            meters: Vec::new(),
        }))
    },
};

/// How often a forbidden path is tried with `readmit = "probe"`.
const PROBE_INTERVAL: Duration = Duration::from_secs(30);
/// Raw samples in the moving average (Algorithm 1, `sum_last2` plus the present one).
const SMOOTHED: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readmit {
    Never,
    Degraded,
    Probe,
}

/// The estimate of a subflow's throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Throughput {
    /// Window over smoothed round trip, as in the paper.
    Window,
    /// What was delivered.
    Delivery,
}

impl Throughput {
    /// In bytes per second; `None` before the first sample.
    fn of(self, subflow: &SubflowView) -> Option<f64> {
        match self {
            Throughput::Window => (!subflow.srtt.is_zero()).then(|| subflow.rate()),
            Throughput::Delivery => subflow.delivery_rate(),
        }
    }
}

#[derive(Debug)]
struct Pud {
    n: usize,
    rho: f64,
    period: Duration,
    readmit: Readmit,
    throughput: Throughput,
    signal_peer: bool,
    next_tick: Instant,
    tick: u64,
    meters: Vec<Meter>,
}

/// One subflow's samples.
#[derive(Debug)]
struct Meter {
    id: SubflowId,
    raw: VecDeque<f64>,
    smoothed: VecDeque<f64>,
    /// The weighted mean at the last evaluation with enough samples.
    mean: Option<f64>,
    allowed: bool,
    /// A forbidden path is on trial up to and including this tick; never yet if zero.
    trial_until: u64,
    forbidden_since: Instant,
}

impl Meter {
    fn new(id: SubflowId) -> Self {
        Meter {
            id,
            raw: VecDeque::with_capacity(SMOOTHED),
            smoothed: VecDeque::new(),
            mean: None,
            allowed: true,
            trial_until: 0,
            forbidden_since: Instant::ZERO,
        }
    }

    fn sample(&mut self, raw: f64, n: usize) {
        if self.raw.len() == SMOOTHED {
            self.raw.pop_front();
        }
        self.raw.push_back(raw);
        if self.smoothed.len() == n {
            self.smoothed.pop_front();
        }
        self.smoothed.push_back(self.raw.iter().sum::<f64>() / self.raw.len() as f64);
    }

    /// The mean of at least `least` samples, the latest weighing most.
    fn weighted_mean(&self, least: usize) -> Option<f64> {
        let n = self.smoothed.len();
        if n < least {
            return None;
        }
        let sum: f64 = self.smoothed.iter().zip(1..).map(|(average, weight)| average * f64::from(weight)).sum();
        Some(sum / (n as f64 * (n as f64 + 1.0) / 2.0))
    }

    fn active(&self, tick: u64) -> bool {
        self.allowed || tick <= self.trial_until
    }
}

impl Pud {
    fn sample_all(&mut self, subflows: &[SubflowView]) {
        let (n, tick) = (self.n, self.tick);
        for subflow in subflows.iter().filter(|s| s.established) {
            let under_way = subflow.in_flight > 0 || subflow.queued > 0;
            if let Some(meter) = self.meters.iter_mut().find(|meter| meter.id == subflow.id)
                && under_way
                && meter.active(tick)
                && let Some(raw) = self.throughput.of(subflow)
            {
                meter.sample(raw, n);
            }
        }
    }

    fn evaluate(&mut self, now: Instant) {
        let n = self.n;
        for meter in &mut self.meters {
            // A forbidden path keeps its last mean; one on trial is measured by the samples of the trial.
            if meter.active(self.tick) {
                let least = if meter.allowed { n } else { SMOOTHED };
                meter.mean = meter.weighted_mean(least).or(meter.mean);
            }
        }
        // No decision before every subflow has been measured: a start-up's spike must not set the threshold.
        if self.meters.iter().any(|meter| meter.mean.is_none()) {
            return;
        }
        let best = self.meters.iter().filter(|m| m.allowed).filter_map(|m| m.mean).fold(0.0, f64::max);
        for meter in &mut self.meters {
            let good = meter.mean.is_some_and(|mean| mean > self.rho * best);
            if meter.allowed && !good {
                (meter.allowed, meter.forbidden_since) = (false, now);
            } else if !meter.allowed && good && self.readmit != Readmit::Never {
                meter.allowed = true;
            }
        }
    }

    fn begin_trials(&mut self, now: Instant) {
        if self.readmit != Readmit::Probe {
            return;
        }
        let until = self.tick + self.n as u64 / 10;
        for meter in self.meters.iter_mut().filter(|meter| !meter.allowed) {
            if now.since(meter.forbidden_since) >= PROBE_INTERVAL {
                (meter.forbidden_since, meter.trial_until) = (now, until);
                meter.smoothed.clear();
                meter.raw.clear();
            }
        }
    }

    fn follow(&mut self, subflows: &[SubflowView]) {
        self.meters.retain(|meter| subflows.iter().any(|s| s.id == meter.id));
        for subflow in subflows {
            if !self.meters.iter().any(|meter| meter.id == subflow.id) {
                self.meters.push(Meter::new(subflow.id));
            }
        }
    }
}

impl PathPolicy for Pud {
    fn decide(&mut self, now: Instant, subflows: &[SubflowView]) -> SubflowSet {
        self.follow(subflows);
        if now >= self.next_tick {
            self.next_tick = now + self.period;
            if subflows.iter().any(|s| s.in_flight > 0 || s.queued > 0) {
                self.tick += 1;
                self.sample_all(subflows);
                self.begin_trials(now);
                if self.tick.is_multiple_of((self.n as u64 / 10).max(1)) {
                    self.evaluate(now);
                }
            }
        }
        self.allowed(subflows)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next_tick)
    }

    fn signals_peer(&self) -> bool {
        self.signal_peer
    }
}

impl Pud {
    fn allowed(&self, subflows: &[SubflowView]) -> SubflowSet {
        let mut set = SubflowSet::EMPTY;
        let mut works = false;
        for (at, subflow) in subflows.iter().enumerate().take(64) {
            let meter = self.meters.iter().find(|meter| meter.id == subflow.id);
            if meter.is_none_or(|meter| meter.active(self.tick)) {
                set.insert(at);
                works |= subflow.established && !subflow.potentially_failed;
            }
        }
        // Every allowed path has failed: a slow path is better than none.
        if !works && self.readmit != Readmit::Never || set.is_empty() {
            (0..subflows.len().min(64)).for_each(|at| set.insert(at));
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Options, Value};
    use crate::view::{Delivered, Packets};

    fn pud(options: &[(&str, f64)], readmit: &str) -> Box<dyn PathPolicy> {
        let mut entries: Vec<_> = options.iter().map(|(k, v)| (k.to_string(), Value::Number(*v))).collect();
        entries.push(("readmit".into(), Value::Text(readmit.into())));
        (ENTRY.create)(&Options::new(entries)).unwrap()
    }

    /// A subflow at `rate` packets of 1000 bytes per second: its window is the rate, its round trip a second.
    fn at_rate(id: u16, rate: u32) -> SubflowView {
        let idle = SubflowView::idle(id, 1000, Packets::whole(rate), Duration::from_secs(1));
        SubflowView { in_flight: rate, ..idle }
    }

    #[test]
    fn with_rate_delivery_it_measures_what_was_delivered() {
        // Both windows over their round trips say 100; the second path delivers 40 packets a second.
        let delivering = |id, packets| {
            let delivery = Delivered { packets, interval: Duration::from_secs(1) };
            SubflowView { delivery, ..at_rate(id, 100) }
        };
        let views = [delivering(0, 100), delivering(1, 40)];
        for (rate, expected) in [("window", vec![0, 1]), ("delivery", vec![0])] {
            let options = Options::new(vec![("rate".into(), Value::Text(rate.into()))]);
            let mut policy = (ENTRY.create)(&options).unwrap();
            assert_eq!(run(&mut *policy, Instant::ZERO, 150, &views).1, expected, "{rate}");
        }
        // Nothing is decided before both have a sample.
        let options = Options::new(vec![("rate".into(), Value::Text("delivery".into()))]);
        let mut policy = (ENTRY.create)(&options).unwrap();
        assert_eq!(run(&mut *policy, Instant::ZERO, 300, &[delivering(0, 100), at_rate(1, 1)]).1, [0, 1]);
        let unknown = Options::new(vec![("rate".into(), Value::Text("goodput".into()))]);
        assert!((ENTRY.create)(&unknown).unwrap_err().message.contains("window, delivery"));
    }

    fn run(policy: &mut dyn PathPolicy, from: Instant, ticks: u64, views: &[SubflowView]) -> (Instant, Vec<usize>) {
        let mut now = from;
        let mut allowed = SubflowSet::EMPTY;
        for _ in 0..ticks {
            allowed = policy.decide(now, views);
            now = policy.poll_timeout().unwrap();
        }
        (now, allowed.iter().collect())
    }

    #[test]
    fn raw_values_one_to_five_have_the_mean_2_8() {
        let mut meter = Meter::new(SubflowId(0));
        (1..=5).for_each(|raw| meter.sample(f64::from(raw), 5));
        assert_eq!(meter.smoothed, [1.0, 1.5, 2.0, 3.0, 4.0]);
        assert!((meter.weighted_mean(5).unwrap() - 2.8).abs() < 1e-12);
    }

    #[test]
    fn a_constant_input_is_its_own_mean() {
        let mut meter = Meter::new(SubflowId(0));
        (0..150).for_each(|_| meter.sample(7.0, 150));
        assert!((meter.weighted_mean(150).unwrap() - 7.0).abs() < 1e-12);
    }

    #[test]
    fn half_of_the_best_is_too_little_and_seven_tenths_are_enough() {
        for (rate, expected) in [(50, vec![0]), (60, vec![0]), (61, vec![0, 1]), (70, vec![0, 1])] {
            let mut policy = pud(&[], "degraded");
            let views = [at_rate(0, 100), at_rate(1, rate)];
            assert_eq!(run(&mut *policy, Instant::ZERO, 149, &views).1, [0, 1], "nothing is decided before n samples");
            let mut policy = pud(&[], "degraded");
            assert_eq!(run(&mut *policy, Instant::ZERO, 150, &views).1, expected, "{rate} of 100");
        }
    }

    #[test]
    fn a_forbidden_path_returns_when_the_best_one_degrades() {
        let mut policy = pud(&[], "degraded");
        let (now, allowed) = run(&mut *policy, Instant::ZERO, 150, &[at_rate(0, 100), at_rate(1, 50)]);
        assert_eq!(allowed, [0]);
        // At 80 its mean of 50 exceeds 0.6 of the best, once the better samples have left the window.
        let (now, allowed) = run(&mut *policy, now, 300, &[at_rate(0, 80), at_rate(1, 50)]);
        assert_eq!(allowed, [0, 1]);
        let mut literal = pud(&[], "never");
        let (now2, _) = run(&mut *literal, Instant::ZERO, 150, &[at_rate(0, 100), at_rate(1, 50)]);
        assert_eq!(run(&mut *literal, now2, 600, &[at_rate(0, 10), at_rate(1, 50)]).1, [0]);
        assert!(now > Instant::ZERO);
    }

    #[test]
    fn a_forbidden_path_returns_at_once_when_the_best_one_dies() {
        let mut policy = pud(&[], "degraded");
        let (now, allowed) = run(&mut *policy, Instant::ZERO, 150, &[at_rate(0, 100), at_rate(1, 50)]);
        assert_eq!(allowed, [0]);
        let dead = SubflowView { potentially_failed: true, ..at_rate(0, 100) };
        assert_eq!(run(&mut *policy, now, 1, &[dead, at_rate(1, 50)]).1, [0, 1]);
    }

    #[test]
    fn a_trial_gives_a_path_that_recovered_its_chance() {
        let mut policy = pud(&[("n", 50.0)], "probe");
        let (now, allowed) = run(&mut *policy, Instant::ZERO, 50, &[at_rate(0, 100), at_rate(1, 50)]);
        assert_eq!(allowed, [0]);
        let better = [at_rate(0, 100), at_rate(1, 90)];
        // 30 s are 300 ticks; the trial lasts five more, and is evaluated at the next fifth tick.
        let (now, allowed) = run(&mut *policy, now, 290, &better);
        assert_eq!(allowed, [0]);
        let (now, _) = run(&mut *policy, now, 20, &better);
        assert_eq!(run(&mut *policy, now, 50, &better).1, [0, 1], "it stays");
        let mut policy = pud(&[("n", 50.0)], "probe");
        let still_bad = [at_rate(0, 100), at_rate(1, 50)];
        let (now, _) = run(&mut *policy, Instant::ZERO, 400, &still_bad);
        assert_eq!(run(&mut *policy, now, 50, &still_bad).1, [0], "it goes again");
    }
}
