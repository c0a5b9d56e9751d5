//! RobustMPC: plans the next media segments with a pessimistic throughput prediction, and takes the first step of the
//! best plan.
//!
//! maximise  sum q(R_k) - lambda * sum |q(R_k) - q(R_k-1)| - mu * sum stall_k     over the next N media segments
//! with B' = min(max(B - d_k/C, 0) + L, B_max),  stall_k = max(d_k/C - B, 0)
//! C = C_hat / (1 + max error of the last 5),  C_hat the harmonic mean of the last 5,  error = |C_hat - c| / c
//! q in kbit/s, B buffered s, L segment duration s, d_k size of the media segment, c measured afterwards.
//!
//! Yin, Jindal, Sekar, Sinopoli: "A Control-Theoretic Approach for Dynamic Adaptive Video Streaming over HTTP", SIGCOMM
//! 2015, sections 4 and 5 (N = 5, lambda = 1, mu = 3000, B_max = 30 s); the throughput of a download includes its
//! latency, and errors are relative to what was measured, as in the code of Pensieve.
//!
//! Ours: the search is exact but not exhaustive. A plan is dropped if another one, with no less buffer, has so much
//! more quality that it could change to the other's representation and still be ahead; or if no continuation could
//! raise it above the result of a greedy search. That leaves a few out of 20^5. The start-up delay is not part of the
//! objective. Ties go to the lower first step.

use super::options::check;
use super::rate::{SAMPLES, harmonic_mean};
use super::{AbrRule, Decision, Entry, Event, View};
use anabranch_units::Duration;

const NAME: &str = "robust-mpc";
/// Yin section 5.
const HORIZON: usize = 5;
/// Yin section 7.1.2, "balanced".
const SWITCH_PENALTY: f64 = 1.0;
const STALL_PENALTY: f64 = 3_000.0;
const CAPACITY: Duration = Duration::from_secs(30);
/// kbit/s: sums that differ by less are equal where plans are dropped.
const ROUNDING: f64 = 1e-6;
/// A longer plan is unreliable, and its search is expensive.
const MAX_HORIZON: usize = 10;

pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "Plans the next five media segments against a lower bound of the forecast throughput.",
    source: "Yin et al., SIGCOMM 2015, section 4.3",
    create: |options| {
        options.expect_only(NAME, &["capacity", "samples", "horizon", "stall_penalty", "switch_penalty"])?;
        let horizon = options.horizon.unwrap_or(HORIZON);
        let penalty = |name, value: Option<f64>, default| {
            check(NAME, name, "at least 0", value.unwrap_or(default), |penalty| penalty >= 0.0)
        };
        let capacity = options.capacity.unwrap_or(CAPACITY);
        Ok(Box::new(RobustMpc {
            samples: check(NAME, "samples", "at least 1", options.samples.unwrap_or(SAMPLES), |n| n >= 1)?,
            horizon: check(NAME, "horizon", "from 1 to 10", horizon, |n| (1..=MAX_HORIZON).contains(&n))?,
            stall_penalty: penalty("stall_penalty", options.stall_penalty, STALL_PENALTY)?,
            switch_penalty: penalty("switch_penalty", options.switch_penalty, SWITCH_PENALTY)?,
            capacity: check(NAME, "capacity", "longer than no time", capacity, |c| !c.is_zero())?.as_secs_f64(),
            forecast: None,
            errors: Vec::new(),
        }))
    },
};

#[derive(Debug)]
struct RobustMpc {
    samples: usize,
    horizon: usize,
    stall_penalty: f64,
    switch_penalty: f64,
    /// Capacity of the buffer in seconds.
    capacity: f64,
    /// The last harmonic mean, bit/s, until a download shows its error.
    forecast: Option<f64>,
    /// Relative errors, oldest first.
    errors: Vec<f64>,
}

/// A partial plan: its first step and its current state.
#[derive(Clone, Copy, Debug)]
struct Plan {
    first: usize,
    last: usize,
    /// Buffer level in seconds.
    buffer: f64,
    /// The objective so far, kbit/s.
    quality: f64,
}

/// Properties of the next media segments.
struct Outlook<'a> {
    mpc: &'a RobustMpc,
    /// Quality of each representation, kbit/s.
    kbps: Vec<f64>,
    /// Seconds of download by step and representation.
    downloads: Vec<Vec<f64>>,
    duration: f64,
    /// The objective that at least one plan reaches.
    reached: f64,
    /// The price of a second of download, kbit/s, no higher than that of a stall; and what the media segments after
    /// each step can add at most at this price.
    price: f64,
    most: Vec<f64>,
}

impl RobustMpc {
    fn lower_bound(&mut self, view: &View<'_>) -> Option<f64> {
        let mean = harmonic_mean(view.downloads, self.samples)?;
        self.forecast = Some(mean);
        let worst = self.errors.iter().copied().fold(0.0, f64::max);
        Some(mean / (1.0 + worst))
    }

    fn best_first_step(&self, view: &View<'_>, bps: f64) -> usize {
        let start =
            Plan { first: 0, last: view.current.min(view.top), buffer: view.buffer.as_secs_f64(), quality: 0.0 };
        let outlook = Outlook::new(self, view, start, bps);
        let mut plans: Vec<Plan> = (0..=view.top).map(|to| Plan { first: to, ..outlook.step(start, 0, to) }).collect();
        for ahead in 1..outlook.downloads.len() {
            let steps = plans.iter().flat_map(|&plan| (0..=view.top).map(move |to| (plan, to)));
            let longer = steps.map(|(plan, to)| outlook.step(plan, ahead, to));
            plans = outlook.undominated(longer.filter(|plan| outlook.may_win(*plan, ahead)).collect());
        }
        let better = |best: Plan, plan: Plan| {
            let wins = plan.quality > best.quality || (plan.quality == best.quality && plan.first < best.first);
            if wins { plan } else { best }
        };
        plans.into_iter().reduce(better).map_or(0, |plan| plan.first)
    }
}

impl<'a> Outlook<'a> {
    fn new(mpc: &'a RobustMpc, view: &View<'_>, start: Plan, bps: f64) -> Self {
        let left = usize::try_from(view.ladder.segments().saturating_sub(view.next)).unwrap_or(usize::MAX);
        let steps = mpc.horizon.min(left).max(1) as u64;
        let download = |index, r| view.ladder.segment_bytes(r, index) as f64 * 8.0 / bps;
        let row = |ahead| (0..=view.top).map(|r| download(view.next + ahead, r)).collect();
        let mut outlook = Outlook {
            mpc,
            kbps: (0..=view.top).map(|r| view.ladder.bps(r) / 1_000.0).collect(),
            downloads: (0..steps).map(row).collect(),
            duration: view.ladder.segment_duration().as_secs_f64(),
            reached: f64::NEG_INFINITY,
            price: 0.0,
            most: Vec::new(),
        };
        outlook.reached = outlook.reach(start);
        // A second of download is worth what the network carries in it: with constant sizes, then all rates are alike.
        outlook.price = (bps / 1_000.0 / outlook.duration).min(mpc.stall_penalty);
        outlook.most = (1..=outlook.downloads.len()).map(|ahead| outlook.most_from(ahead, outlook.price)).collect();
        outlook
    }

    /// The result of a greedy search: of all plans that lead to a representation it keeps only the one
    /// of the highest quality so far.
    fn reach(&self, start: Plan) -> f64 {
        let all = 0..self.kbps.len();
        let best_to = |plans: &[Plan], ahead: usize, to: usize| {
            let longer = plans.iter().map(|&plan| self.step(plan, ahead, to));
            longer.reduce(|best, plan| if plan.quality > best.quality { plan } else { best })
        };
        let mut plans = vec![start];
        for ahead in 0..self.downloads.len() {
            plans = all.clone().filter_map(|to| best_to(&plans, ahead, to)).collect();
        }
        plans.iter().map(|plan| plan.quality).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Upper bound of the quality of the media segments from `ahead` on if a second of download had this price, and
    /// nothing else counted.
    fn most_from(&self, ahead: usize, price: f64) -> f64 {
        let best = |row: &Vec<f64>| {
            let worth = |r: usize| self.kbps[r] - price * row[r];
            (0..self.kbps.len()).map(worth).fold(f64::NEG_INFINITY, f64::max)
        };
        self.downloads[ahead..].iter().map(best).sum()
    }

    fn change(&self, from: usize, to: usize) -> f64 {
        self.mpc.switch_penalty * (self.kbps[to] - self.kbps[from]).abs()
    }

    fn step(&self, plan: Plan, ahead: usize, to: usize) -> Plan {
        let download = self.downloads[ahead][to];
        let stall = (download - plan.buffer).max(0.0);
        let buffer = (plan.buffer - download).max(0.0) + self.duration;
        let gain = self.kbps[to] - self.change(plan.last, to) - self.mpc.stall_penalty * stall;
        Plan { first: plan.first, last: to, buffer: buffer.min(self.mpc.capacity), quality: plan.quality + gain }
    }

    /// Whether a plan that has made step `ahead` may still be the best, by two bounds of the rest:
    /// - without any stall: to stay, or to go to the top at once; everything else is worth less than one of these;
    /// - with stalls: k downloads of d seconds in all stall for at least d - (B + (k - 1) * L), so with any price p <=
    ///   mu of a second of download they add no more than sum max(q - p * d) + p * (B + (k - 1) * L).
    fn may_win(&self, plan: Plan, ahead: usize) -> bool {
        let left = (self.downloads.len() - 1 - ahead) as f64;
        let top = self.kbps.len() - 1;
        let stays = left * self.kbps[plan.last];
        let rises = left * self.kbps[top] - self.change(plan.last, top);
        let time = plan.buffer + (left - 1.0).max(0.0) * self.duration;
        let stalls = self.most[ahead] + self.price * time;
        // Sums in another order may differ in the last digits.
        plan.quality + stays.max(rises).min(stalls) >= self.reached - ROUNDING
    }

    fn undominated(&self, mut plans: Vec<Plan>) -> Vec<Plan> {
        let order = |a: &Plan, b: &Plan| {
            b.buffer.total_cmp(&a.buffer).then(b.quality.total_cmp(&a.quality)).then(a.first.cmp(&b.first))
        };
        plans.sort_by(order);
        let mut kept: Vec<Plan> = Vec::new();
        for plan in plans {
            let beats = |held: &Plan| {
                let mimics = held.quality - self.change(held.last, plan.last);
                mimics > plan.quality || (mimics == plan.quality && held.first <= plan.first)
            };
            if !kept.iter().any(beats) {
                kept.push(plan);
            }
        }
        kept
    }
}

impl AbrRule for RobustMpc {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        match self.lower_bound(view) {
            None => Decision::now(view.current.min(view.top), "nothing measured yet"),
            Some(bps) => Decision::now(self.best_first_step(view, bps), "first step of the best plan"),
        }
    }

    fn observe(&mut self, _view: &View<'_>, event: &Event<'_>) {
        // The forecast stays until a download shows its error: the player measures its buffer many times before.
        let Event::SegmentFinished(download) = event else { return };
        if let Some(forecast) = self.forecast.take() {
            let measured = download.throughput_bps();
            self.errors.push((forecast - measured).abs() / measured);
            if self.errors.len() > self.samples {
                self.errors.remove(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::AbrOptions;
    use super::super::testing::{download, ladder, two_second_ladder, view};
    use super::*;
    use proptest::prelude::*;

    fn rule(options: &AbrOptions) -> Box<dyn AbrRule> {
        (ENTRY.create)(options).unwrap()
    }

    fn one_step() -> AbrOptions {
        AbrOptions { horizon: Some(1), ..AbrOptions::default() }
    }

    /// The choice with this buffer at 1 Mbit/s (no error known) from representation 0 of 500, 1000, 2000 kbit/s.
    fn chosen(options: &AbrOptions, buffer_ms: u64) -> usize {
        let ladder = ladder(&[500_000, 1_000_000, 2_000_000]);
        let downloads = [download(1_000_000)];
        let buffer = Duration::from_millis(buffer_ms);
        rule(options).decide(&View { buffer, downloads: &downloads, ..view(&ladder) }).representation
    }

    #[test]
    fn one_step_weighs_quality_against_the_switch_and_the_stall() {
        // From 500: going to R costs R - 500, so with lambda = 1 every R gains 500 and the stall decides: ties to the
        // lower.
        assert_eq!(chosen(&one_step(), 5_000), 0);
        // With lambda = 1/2, R gains R - (R - 500)/2: 500, 750, 1250. The top takes 2 s: at 1.83 s of buffer it loses
        // 0.17 * 3000 = 510 > 500, at 1.84 s 480.
        let half = AbrOptions { switch_penalty: Some(0.5), ..one_step() };
        assert_eq!((chosen(&half, 1_830), chosen(&half, 1_840)), (1, 2));
        // A cheap stall changes that.
        assert_eq!(chosen(&AbrOptions { stall_penalty: Some(100.0), ..half }, 0), 2);
    }

    #[test]
    fn several_steps_see_what_one_cannot() {
        // A switch pays off only over several media segments: from the second one on, 2000 instead of 500 each.
        assert_eq!(chosen(&AbrOptions::default(), 20_000), 2);
        assert_eq!(chosen(&one_step(), 20_000), 0);
        // With 3 s the top would run dry (each fetch loses a second): five of 1000 hold the buffer.
        assert_eq!(chosen(&AbrOptions::default(), 1_000), 1);
    }

    /// The choices from the middle of a ladder at many levels of the buffer and throughputs.
    fn choices(options: &AbrOptions) -> Vec<usize> {
        let ladder = two_second_ladder(&[350_000, 600_000, 1_000_000, 2_000_000, 3_000_000]);
        let mut choices = Vec::new();
        for (level, kbps) in (0..=80).flat_map(|level| (1..=40).map(move |step| (level, step * 100))) {
            let downloads = [download(kbps * 1_000)];
            let buffer = Duration::from_millis(level * 500);
            let view = View { buffer, downloads: &downloads, current: 2, ..view(&ladder) };
            choices.push(rule(options).decide(&view).representation);
        }
        choices
    }

    #[test]
    fn the_defaults_are_those_of_the_paper() {
        let paper = AbrOptions {
            horizon: Some(5),
            stall_penalty: Some(3_000.0),
            switch_penalty: Some(1.0),
            capacity: Some(Duration::from_secs(30)),
            ..AbrOptions::default()
        };
        let defaults = choices(&AbrOptions::default());
        assert_eq!(choices(&paper), defaults);
        let others = [
            AbrOptions { horizon: Some(4), ..paper },
            AbrOptions { horizon: Some(6), ..paper },
            AbrOptions { stall_penalty: Some(2_250.0), ..paper },
            AbrOptions { stall_penalty: Some(3_750.0), ..paper },
            AbrOptions { switch_penalty: Some(0.75), ..paper },
            AbrOptions { switch_penalty: Some(1.25), ..paper },
            AbrOptions { capacity: Some(Duration::from_secs(23)), ..paper },
            AbrOptions { capacity: Some(Duration::from_secs(37)), ..paper },
        ];
        for other in others {
            assert_ne!(choices(&other), defaults, "these choices can tell {other:?} from the paper's");
        }
    }

    #[test]
    fn ten_media_segments_ahead_are_the_most() {
        let with = |n| (ENTRY.create)(&AbrOptions { horizon: Some(n), ..AbrOptions::default() }).is_ok();
        assert_eq!([0, 1, 10, 11].map(with), [false, true, true, false]);
    }

    #[test]
    fn errors_of_the_forecast_make_it_careful() {
        let ladder = ladder(&[500_000, 1_000_000]);
        let first = [download(1_000_000)];
        let at = |downloads| View { buffer: Duration::from_millis(1_000), downloads, ..view(&ladder) };
        let mut rule = rule(&AbrOptions::default());
        assert_eq!(rule.decide(&at(&first)).representation, 1);
        // 1 Mbit/s was forecast, 500 kbit/s came: error 1. Mean 667, bound 333: even the lowest stalls, the higher
        // more.
        let second = download(500_000);
        rule.observe(&at(&first), &Event::SegmentFinished(&second));
        let downloads = [first[0], second];
        assert_eq!(rule.decide(&at(&downloads)).representation, 0);
        // Four good forecasts later the error still halves the bound, to 500; after five it is forgotten.
        let good = [download(1_000_000); 5];
        let mut chosen = Vec::new();
        for download in &good {
            rule.decide(&at(&good));
            rule.observe(&at(&good), &Event::SegmentFinished(download));
            chosen.push(rule.decide(&at(&good)).representation);
        }
        assert_eq!(chosen, [0, 0, 0, 0, 1]);
    }

    #[test]
    fn the_bound_is_the_mean_divided_by_one_plus_the_relative_error() {
        // Forecast 1000, measured 500: error 1, mean 667, bound 333. 300 takes 0.9 s, 350 stalls 0.05 s: 150 > 50.
        let ladder = ladder(&[100_000, 300_000, 350_000]);
        let options = AbrOptions { switch_penalty: Some(0.0), ..one_step() };
        let mut rule = rule(&options);
        let downloads = [download(1_000_000), download(500_000)];
        let at = |downloads| View { buffer: Duration::from_millis(1_000), downloads, ..view(&ladder) };
        assert_eq!(rule.decide(&at(&downloads[..1])).representation, 2);
        rule.observe(&at(&downloads), &Event::SegmentFinished(&downloads[1]));
        assert_eq!(rule.decide(&at(&downloads)).representation, 1);
    }

    #[test]
    fn before_the_first_download_it_keeps_what_the_player_chose() {
        let ladder = ladder(&[500, 1_000]);
        assert_eq!(rule(&AbrOptions::default()).decide(&View { current: 1, ..view(&ladder) }).representation, 1);
    }

    #[test]
    fn the_last_media_segments_have_a_short_horizon() {
        let ladder = ladder(&[500_000, 2_000_000]);
        let downloads = [download(1_000_000)];
        let at = |next| View { buffer: Duration::from_secs(20), downloads: &downloads, next, ..view(&ladder) };
        // A switch pays off in the second media segment: not for the very last one, nor beyond it.
        let choose = |next| rule(&AbrOptions::default()).decide(&at(next)).representation;
        assert_eq!((choose(98), choose(99), choose(100)), (1, 0, 0));
    }

    #[test]
    fn options_out_of_range_are_refused() {
        let default = AbrOptions::default();
        for bad in [
            AbrOptions { horizon: Some(0), ..default },
            AbrOptions { horizon: Some(11), ..default },
            AbrOptions { samples: Some(0), ..default },
            AbrOptions { stall_penalty: Some(-1.0), ..default },
            AbrOptions { switch_penalty: Some(f64::NAN), ..default },
            AbrOptions { capacity: Some(Duration::ZERO), ..default },
        ] {
            assert!((ENTRY.create)(&bad).is_err());
        }
        let least = AbrOptions { samples: Some(1), horizon: Some(1), stall_penalty: Some(0.0), ..default };
        assert!((ENTRY.create)(&least).is_ok());
    }

    /// The value of the best continuation of a plan, by exhaustive search.
    fn exhaustive(outlook: &Outlook<'_>, plan: Plan, ahead: usize) -> f64 {
        if ahead == outlook.downloads.len() {
            return plan.quality;
        }
        let try_one = |to| exhaustive(outlook, outlook.step(plan, ahead, to), ahead + 1);
        (0..outlook.kbps.len()).map(try_one).fold(f64::NEG_INFINITY, f64::max)
    }

    proptest! {
        #[test]
        fn the_pruned_search_finds_what_the_exhaustive_one_finds(
            rates in proptest::collection::btree_set(100u64..5_000, 2..6),
            bps in 100_000.0f64..5_000_000.0,
            buffer_ms in 0u64..30_000,
            current in 0usize..6,
            stall_penalty in 0.0f64..6_000.0,
            switch_penalty in 0.0f64..3.0,
        ) {
            let ladder = ladder(&rates.iter().map(|r| r * 1_000).collect::<Vec<_>>());
            let mpc = RobustMpc {
                samples: 5, horizon: 4, stall_penalty, switch_penalty, capacity: 30.0, forecast: None, errors: vec![],
            };
            let current = current % ladder.len();
            let view = View { buffer: Duration::from_millis(buffer_ms), current, ..view(&ladder) };
            let start = Plan { first: 0, last: current, buffer: view.buffer.as_secs_f64(), quality: 0.0 };
            let outlook = Outlook::new(&mpc, &view, start, bps);
            let after = |first| exhaustive(&outlook, outlook.step(start, 0, first), 1);
            let best = (0..ladder.len()).map(after).fold(f64::NEG_INFINITY, f64::max);
            prop_assert!(after(mpc.best_first_step(&view, bps)) >= best - ROUNDING);
        }
    }
}
