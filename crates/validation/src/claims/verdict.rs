//! Findings, and verdicts that follow from them.
//!
//! - *A is lower than B*: the 95 % interval of the mean of the differences A − B, taken seed by seed, lies below zero.
//! - *A is like B*: that interval lies within 10 % of B's mean around zero, or within one underflow, one second of pictures (24) or
//!   one per cent of all segments where that is more: less than a viewer or an operator would notice.
//! - *undisturbed*: the upper end of the interval of the mean is at most one underflow and 24 discarded pictures per session.
//!
//! Where an interval has values that meet the criterion and values that miss it, the finding is *undecided*.

use super::study::{Cell, Observation, Study};
use crate::statistics::{Mean, paired};

/// A second of pictures.
pub const FEW_DISCARDS: f64 = 24.0;
/// One pause of a second or two.
pub const FEW_UNDERFLOWS: f64 = 1.0;
/// How far means may lie apart and be alike.
const ALIKE: f64 = 0.1;

/// A quantity of a session, with the difference that does not matter.
#[derive(Clone, Copy)]
pub struct Metric {
    /// Name in sentences.
    pub name: &'static str,
    /// Reads the quantity.
    pub of: fn(&Observation) -> f64,
    /// A difference this small is none.
    pub negligible: f64,
}

/// Buffer underflows.
pub const UNDERFLOWS: Metric = Metric { name: "underflows", of: |o| o.underflows, negligible: FEW_UNDERFLOWS };
/// Discarded pictures.
pub const DISCARDS: Metric = Metric { name: "discards", of: |o| o.discards, negligible: FEW_DISCARDS };
/// Both measures of quality in the papers.
pub const QUALITY: [Metric; 2] = [UNDERFLOWS, DISCARDS];
/// Path switches.
pub const SWITCHES: Metric = Metric { name: "switches", of: |o| o.switches, negligible: 0.0 };
/// Retransmissions on all paths.
pub const RETRANSMISSIONS: Metric = Metric { name: "retransmissions", of: |o| o.retransmissions, negligible: 0.0 };

/// How a comparison came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As claimed: the whole interval meets the criterion.
    Holds,
    /// Otherwise: the whole interval misses it, or the criterion has no interval.
    Fails,
    /// The interval has values that meet the criterion and values that miss it: it is too wide to decide.
    Undecided,
}

impl Outcome {
    fn of(meets: bool, misses: bool) -> Self {
        match (meets, misses) {
            (true, _) => Outcome::Holds,
            (false, true) => Outcome::Fails,
            (false, false) => Outcome::Undecided,
        }
    }

    /// The interval lies above a mark.
    pub fn above(mean: &Mean, mark: f64) -> Self {
        Outcome::of(mean.low() > mark, mean.high() <= mark)
    }

    /// The interval lies below a mark.
    pub fn below(mean: &Mean, mark: f64) -> Self {
        Outcome::of(mean.high() < mark, mean.low() >= mark)
    }

    /// The interval lies at a mark or below it.
    pub fn at_most(mean: &Mean, mark: f64) -> Self {
        Outcome::of(mean.high() <= mark, mean.low() > mark)
    }

    /// The interval lies at a mark or above it.
    pub fn at_least(mean: &Mean, mark: f64) -> Self {
        Outcome::of(mean.low() >= mark, mean.high() < mark)
    }

    /// Both hold.
    #[must_use]
    pub fn and(self, other: Outcome) -> Self {
        match (self, other) {
            (Outcome::Fails, _) | (_, Outcome::Fails) => Outcome::Fails,
            (Outcome::Holds, Outcome::Holds) => Outcome::Holds,
            _ => Outcome::Undecided,
        }
    }
}

impl From<bool> for Outcome {
    fn from(holds: bool) -> Self {
        if holds { Outcome::Holds } else { Outcome::Fails }
    }
}

/// A comparison.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The comparison in words.
    pub text: String,
    /// How it came out.
    pub outcome: Outcome,
}

impl Finding {
    /// In words, and how it came out; `true` is as claimed.
    pub fn new(text: impl Into<String>, outcome: impl Into<Outcome>) -> Self {
        Finding { text: text.into(), outcome: outcome.into() }
    }

    /// Whether it is as claimed.
    pub fn holds(&self) -> bool {
        self.outcome == Outcome::Holds
    }
}

/// Result of the findings of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every finding is as claimed.
    Reproduced,
    /// Some are, and some are not.
    Partly,
    /// None is.
    NotReproduced,
    /// An interval is too wide: with more seeds the claim could come out better than it can be said to be now.
    Undecided,
    /// There are no findings: simulation cannot test the claim.
    NotTestable,
}

impl Verdict {
    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Partly => "partly",
            Verdict::NotReproduced => "not reproduced",
            Verdict::Undecided => "undecided",
            Verdict::NotTestable => "not testable",
        }
    }
}

/// A claim with its findings.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Identifier, such as `S1`.
    pub id: &'static str,
    /// The paper's claim.
    pub claim: &'static str,
    /// The criterion.
    pub criterion: &'static str,
    /// The comparisons of the criterion.
    pub findings: Vec<Finding>,
}

impl Claim {
    /// See [`Verdict`].
    pub fn verdict(&self) -> Verdict {
        let some = |outcome| self.findings.iter().any(|finding| finding.outcome == outcome);
        match (some(Outcome::Holds), some(Outcome::Fails)) {
            _ if self.findings.is_empty() => Verdict::NotTestable,
            // Whatever the undecided ones turn out to be.
            (true, true) => Verdict::Partly,
            _ if some(Outcome::Undecided) => Verdict::Undecided,
            (true, false) => Verdict::Reproduced,
            (false, _) => Verdict::NotReproduced,
        }
    }

    /// Number of findings that are as claimed.
    pub fn holding(&self) -> usize {
        self.findings.iter().filter(|finding| finding.holds()).count()
    }

    /// Number of findings as claimed, of all.
    pub fn score(&self) -> String {
        format!("{} of {}", self.holding(), self.findings.len())
    }
}

/// The mean of the differences between two conditions.
pub fn difference(study: &Study, a: Cell, b: Cell, metric: Metric) -> Mean {
    paired(&study.values(a, metric.of), &study.values(b, metric.of))
}

/// A is lower than B.
pub fn lower(study: &Study, a: Cell, b: Cell, metric: Metric) -> Finding {
    let d = difference(study, a, b, metric);
    let text = format!("{} {}, {} − {}: {:.1} ± {:.1}", a.control, metric.name, name(a), name(b), d.mean, d.half);
    Finding::new(text, Outcome::below(&d, 0.0))
}

/// A is like B.
pub fn alike(study: &Study, a: Cell, b: Cell, metric: Metric) -> Finding {
    let d = difference(study, a, b, metric);
    let reference = Mean::of(&study.values(b, metric.of)).mean;
    let margin = (ALIKE * reference.abs()).max(metric.negligible);
    let text = format!("{} {}, {} − {}: {:.1} ± {:.1}", a.control, metric.name, name(a), name(b), d.mean, d.half);
    Finding::new(text, Outcome::at_least(&d, -margin).and(Outcome::at_most(&d, margin)))
}

/// Name of a condition within its claim: the scenario without the paper's name, and the scheduler.
fn name(cell: Cell) -> String {
    let scenario = cell.scenario.split('/').next_back().unwrap_or(cell.scenario);
    format!("{scenario} {}", cell.scheduler)
}

/// The viewer of a condition is not disturbed.
pub fn undisturbed(study: &Study, cell: Cell) -> Finding {
    let [underflows, discards] = QUALITY.map(|metric| Mean::of(&study.values(cell, metric.of)));
    let text = format!(
        "{} {}: {:.1} ± {:.1} underflows, {:.0} ± {:.0} discards",
        cell.control,
        name(cell),
        underflows.mean,
        underflows.half,
        discards.mean,
        discards.half
    );
    Finding::new(text, Outcome::at_most(&underflows, FEW_UNDERFLOWS).and(Outcome::at_most(&discards, FEW_DISCARDS)))
}

/// The viewer of a condition is disturbed: the lower end of the interval exceeds those limits.
pub fn disturbed(study: &Study, cell: Cell) -> Finding {
    let [underflows, discards] = QUALITY.map(|metric| Mean::of(&study.values(cell, metric.of)));
    let outcome = Outcome::above(&underflows, FEW_UNDERFLOWS).and(Outcome::above(&discards, FEW_DISCARDS));
    Finding::new(undisturbed(study, cell).text, outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    use Outcome::{Fails, Holds, Undecided};

    fn claim(outcomes: &[Outcome]) -> Claim {
        let findings = outcomes.iter().map(|outcome| Finding::new("", *outcome)).collect();
        Claim { id: "X", claim: "", criterion: "", findings }
    }

    #[test]
    fn a_verdict_counts_the_findings() {
        assert_eq!(claim(&[Holds, Holds]).verdict(), Verdict::Reproduced);
        assert_eq!(claim(&[Holds, Fails]).verdict(), Verdict::Partly);
        assert_eq!(claim(&[Fails, Fails]).verdict(), Verdict::NotReproduced);
        assert_eq!(claim(&[]).verdict(), Verdict::NotTestable);
        assert_eq!(claim(&[Holds, Fails, Undecided]).score(), "1 of 3");
    }

    #[test]
    fn a_verdict_is_undecided_where_an_interval_could_change_it() {
        assert_eq!(claim(&[Undecided]).verdict(), Verdict::Undecided);
        assert_eq!(claim(&[Holds, Undecided]).verdict(), Verdict::Undecided);
        assert_eq!(claim(&[Fails, Undecided]).verdict(), Verdict::Undecided);
        assert_eq!(claim(&[Holds, Fails, Undecided]).verdict(), Verdict::Partly);
    }

    #[test]
    fn an_interval_that_reaches_to_both_sides_of_a_mark_decides_nothing() {
        // The example: a difference of -40 from two seeds, known to 318, that is claimed to be below zero.
        let wide = Mean { mean: -40.0, half: 318.0, count: 2 };
        assert_eq!(Outcome::below(&wide, 0.0), Undecided);
        assert_eq!(Outcome::above(&wide, 0.0), Undecided);
        let narrow = Mean { half: 39.0, ..wide };
        assert_eq!([Outcome::below(&narrow, 0.0), Outcome::above(&narrow, 0.0)], [Holds, Fails]);
        // An end that touches the mark: "below" is strict, "at most" is not.
        let touching = Mean { half: 40.0, ..wide };
        assert_eq!([Outcome::below(&touching, 0.0), Outcome::at_most(&touching, 0.0)], [Undecided, Holds]);
        let none = Mean { mean: 0.0, half: 0.0, count: 2 };
        assert_eq!([Outcome::below(&none, 0.0), Outcome::at_least(&none, 0.0)], [Fails, Holds]);
        let single = Mean { mean: -40.0, half: f64::INFINITY, count: 1 };
        assert_eq!(Outcome::below(&single, 0.0), Undecided);
    }

    #[test]
    fn a_finding_of_two_comparisons_fails_with_either() {
        assert_eq!(Holds.and(Holds), Holds);
        assert_eq!(Holds.and(Undecided), Undecided);
        assert_eq!(Undecided.and(Fails), Fails);
    }
}
