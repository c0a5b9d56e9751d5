//! Comparison of the simulated and live runs of a test case.

use crate::equivalence::{Interval, Verdict, paired, unpaired};
use crate::measurement::Measurement;
use crate::question::{Criterion, Part, Quantity, USUAL_GOODPUT};
use crate::test_cases::{Runs, TestCase};
use serde::Serialize;

/// The share of test cases of (a) whose goodput must be within [`USUAL_GOODPUT`].
pub const USUAL_SHARE: f64 = 0.9;

/// A quantity in simulation and live.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Compared {
    /// The quantity and its tolerance.
    pub criterion: Criterion,
    /// The mean of the simulated runs.
    pub simulated: f64,
    /// The mean of the live runs.
    pub live: f64,
    /// log(simulated / live).
    pub ratio: Interval,
    /// simulated - live.
    pub difference: Interval,
    /// Result of the comparison.
    pub verdict: Verdict,
}

impl Compared {
    fn of(criterion: Criterion, runs: Runs, simulated: &[Measurement], live: &[Measurement]) -> Self {
        let value = |run: &Measurement| run.get(criterion.quantity).expect("runs have what their test case compares");
        let values = |runs: &[Measurement]| runs.iter().map(value).collect::<Vec<_>>();
        let (simulated, live) = (values(simulated), values(live));
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let logs = |values: &[f64]| values.iter().map(|v| v.max(f64::MIN_POSITIVE).ln()).collect::<Vec<_>>();
        let interval = |a: &[f64], b: &[f64]| match runs {
            Runs::Paired => paired(a, b),
            Runs::Unpaired => unpaired(a, b),
        };
        let ratio = interval(&logs(&simulated), &logs(&live));
        let difference = interval(&simulated, &live);
        let of_share = criterion.share.map(|share| ratio.within_share(share));
        let of_number = criterion.number.map(|number| difference.within(-number, number));
        let verdict = match (of_share, of_number) {
            (Some(share), Some(number)) => share.or(number),
            (share, number) => Option::or(share, number).unwrap_or(Verdict::Inconclusive),
        };
        Compared { criterion, simulated: mean(&simulated), live: mean(&live), ratio, difference, verdict }
    }
}

/// Results of a test case.
#[derive(Clone, Debug, Serialize)]
pub struct Judgement {
    /// One comparison per criterion.
    pub compared: Vec<Compared>,
}

impl Judgement {
    /// Decides a test case by its simulated and live runs; those of a paired test case have the seeds in the same order. None without a live run.
    ///
    /// # Panics
    /// If a run lacks what the test case compares: see [`Measurement::check`].
    pub fn of(case: &TestCase, simulated: &[Measurement], live: &[Measurement]) -> Option<Self> {
        if live.is_empty() || simulated.is_empty() {
            return None;
        }
        let compare = |criterion: &Criterion| Compared::of(*criterion, case.runs, simulated, live);
        Some(Judgement { compared: case.criteria().iter().map(compare).collect() })
    }

    /// The result of all criteria.
    pub fn verdict(&self) -> Verdict {
        self.compared.iter().map(|compared| compared.verdict).fold(Verdict::Equivalent, Verdict::and)
    }

    /// For (a): whether the goodput is within the tolerance of 9 test cases in 10.
    pub fn usual(&self) -> Verdict {
        let goodput = self.compared.iter().find(|compared| compared.criterion.quantity == Quantity::Goodput);
        goodput.map_or(Verdict::Inconclusive, |compared| compared.ratio.within_share(USUAL_GOODPUT))
    }
}

/// The result of a part. A test case without a live run is inconclusive.
pub fn part_verdict(part: Part, judgements: &[Option<Judgement>]) -> Verdict {
    let verdict = |j: &Option<Judgement>| j.as_ref().map_or(Verdict::Inconclusive, Judgement::verdict);
    let all = judgements.iter().map(verdict).fold(Verdict::Equivalent, Verdict::and);
    if part != Part::OnePath {
        return all;
    }
    let count = |wanted: Verdict| {
        judgements.iter().filter(|j| j.as_ref().map_or(Verdict::Inconclusive, Judgement::usual) == wanted).count()
    };
    let share = |wanted: Verdict| count(wanted) as f64 / judgements.len().max(1) as f64;
    let usual = if share(Verdict::Equivalent) >= USUAL_SHARE {
        Verdict::Equivalent
    } else if share(Verdict::Differs) > 1.0 - USUAL_SHARE {
        Verdict::Differs
    } else {
        Verdict::Inconclusive
    };
    all.and(usual)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_cases;

    fn measurement(goodput_bps: f64) -> Measurement {
        Measurement {
            seed: 1,
            goodput_bps,
            retransmissions: 30.0,
            chunk_s: None,
            chunk_p90_s: None,
            first_share: None,
            smallest_share: None,
            mean_bitrate_bps: None,
            switches: None,
            stalls: None,
            drops: Vec::new(),
        }
    }

    fn judged(simulated: f64, live: f64) -> Judgement {
        let case = test_cases::all(&[Part::OnePath], false).remove(0);
        let runs = |value: f64| [0.999, 1.0, 1.001].map(|factor| measurement(value * factor));
        Judgement::of(&case, &runs(simulated), &runs(live)).unwrap()
    }

    #[test]
    fn one_test_case_in_ten_may_be_off_by_more_than_usual_but_none_by_much() {
        let part = |odd: f64, count: usize| {
            let cases: Vec<_> = (0..20).map(|i| Some(judged(1e6, if i < count { odd } else { 1e6 }))).collect();
            part_verdict(Part::OnePath, &cases)
        };
        assert_eq!(part(1.1e6, 2), Verdict::Equivalent);
        assert_eq!(part(1.1e6, 3), Verdict::Differs);
        assert_eq!(part(1.3e6, 1), Verdict::Differs);
    }

    #[test]
    fn a_test_case_that_could_not_be_measured_passes_nothing() {
        assert_eq!(part_verdict(Part::OnOff, &[Some(judged(1e6, 1e6)), None]), Verdict::Inconclusive);
        let case = test_cases::all(&[Part::OnePath], false).remove(0);
        assert!(Judgement::of(&case, &[measurement(1e6)], &[]).is_none());
    }

    #[test]
    fn twenty_segments_are_close_enough_whatever_the_share() {
        let case = test_cases::all(&[Part::OnePath], false).remove(0);
        let with = |n: f64| vec![Measurement { retransmissions: n, ..measurement(1e6) }; 3];
        let verdict = |a: f64, b: f64| Judgement::of(&case, &with(a), &with(b)).unwrap().verdict();
        assert_eq!(verdict(1.0, 20.0), Verdict::Equivalent);
        assert_eq!(verdict(100.0, 122.0), Verdict::Equivalent);
        assert_eq!(verdict(100.0, 140.0), Verdict::Differs);
    }
}
