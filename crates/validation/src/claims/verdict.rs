//! Findings, and verdicts that follow from them.
//!
//! - *A is lower than B*: the 95 % interval of the mean of the differences A − B, taken seed by seed, lies below zero.
//! - *A is like B*: that interval lies within 10 % of B's mean around zero, or within one underflow, one second of pictures (24) or
//!   one per cent of all segments where that is more: less than a viewer or an operator would notice.
//! - *undisturbed*: the upper end of the interval of the mean is at most one underflow and 24 discarded pictures per session.

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

/// A comparison.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The comparison in words.
    pub text: String,
    /// Whether it is as claimed.
    pub holds: bool,
}

impl Finding {
    /// In words, and whether it is as claimed.
    pub fn new(text: impl Into<String>, holds: bool) -> Self {
        Finding { text: text.into(), holds }
    }
}

/// Result of the findings of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every finding is as claimed.
    Reproduced,
    /// Some are.
    Partly,
    /// None is.
    NotReproduced,
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
        match self.holding() {
            _ if self.findings.is_empty() => Verdict::NotTestable,
            0 => Verdict::NotReproduced,
            n if n == self.findings.len() => Verdict::Reproduced,
            _ => Verdict::Partly,
        }
    }

    /// Number of findings that are as claimed.
    pub fn holding(&self) -> usize {
        self.findings.iter().filter(|finding| finding.holds).count()
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
    Finding::new(text, d.high() < 0.0)
}

/// A is like B.
pub fn alike(study: &Study, a: Cell, b: Cell, metric: Metric) -> Finding {
    let d = difference(study, a, b, metric);
    let reference = Mean::of(&study.values(b, metric.of)).mean;
    let margin = (ALIKE * reference.abs()).max(metric.negligible);
    let text = format!("{} {}, {} − {}: {:.1} ± {:.1}", a.control, metric.name, name(a), name(b), d.mean, d.half);
    Finding::new(text, d.low() >= -margin && d.high() <= margin)
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
    Finding::new(text, underflows.high() <= FEW_UNDERFLOWS && discards.high() <= FEW_DISCARDS)
}

/// The viewer of a condition is disturbed: the lower end of the interval exceeds those limits.
pub fn disturbed(study: &Study, cell: Cell) -> Finding {
    let [underflows, discards] = QUALITY.map(|metric| Mean::of(&study.values(cell, metric.of)));
    let holds = underflows.low() > FEW_UNDERFLOWS && discards.low() > FEW_DISCARDS;
    Finding::new(undisturbed(study, cell).text, holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(holding: &[bool]) -> Claim {
        let findings = holding.iter().map(|holds| Finding::new("", *holds)).collect();
        Claim { id: "X", claim: "", criterion: "", findings }
    }

    #[test]
    fn a_verdict_counts_the_findings() {
        assert_eq!(claim(&[true, true]).verdict(), Verdict::Reproduced);
        assert_eq!(claim(&[true, false]).verdict(), Verdict::Partly);
        assert_eq!(claim(&[false, false]).verdict(), Verdict::NotReproduced);
        assert_eq!(claim(&[]).verdict(), Verdict::NotTestable);
        assert_eq!(claim(&[true, false, false]).score(), "1 of 3");
    }
}
