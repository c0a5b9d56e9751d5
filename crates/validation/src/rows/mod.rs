//! The rows of the validation table: laws with targets and tolerances.
//!
//! A row is one network and what is measured in it. Its checks compare the mean over the seeds with a target. A check
//! with a known deviation is reported with its cause and not asserted; the law behind it is then asserted by another
//! check of the same row number, or at the level of the controllers (`crates/stack/src/congestion/laws.rs`), never with
//! a weaker tolerance.

mod conext;
mod coupled;
mod cubic_cycle;
mod exact;
mod friendliness;
mod rate_based;
mod single_path;

use crate::statistics::Mean;
use rayon::prelude::*;

/// What a measured mean is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// This value, up to a relative tolerance.
    Near {
        /// The value.
        value: f64,
        /// The tolerance, 0.05 for 5 %.
        tolerance: f64,
    },
    /// This or less.
    AtMost(f64),
    /// This or more.
    AtLeast(f64),
}

impl Target {
    /// Whether a value meets the target.
    pub fn is_met(&self, value: f64) -> bool {
        match *self {
            Target::Near { value: target, tolerance } => (value / target - 1.0).abs() <= tolerance,
            Target::AtMost(bound) => value <= bound,
            Target::AtLeast(bound) => value >= bound,
        }
    }
}

/// One comparison of a row.
#[derive(Clone, Debug)]
pub struct Check {
    /// The measured quantity.
    pub what: String,
    /// Where the target comes from.
    pub formula: &'static str,
    /// The target.
    pub target: Target,
    /// Why the whole endpoint misses the target, where it does: such a check is reported and not asserted.
    pub deviation: Option<&'static str>,
}

impl Check {
    fn near(what: impl Into<String>, formula: &'static str, value: f64, tolerance: f64) -> Self {
        Check { what: what.into(), formula, target: Target::Near { value, tolerance }, deviation: None }
    }

    fn at_most(what: impl Into<String>, formula: &'static str, bound: f64) -> Self {
        Check { what: what.into(), formula, target: Target::AtMost(bound), deviation: None }
    }

    fn at_least(what: impl Into<String>, formula: &'static str, bound: f64) -> Self {
        Check { what: what.into(), formula, target: Target::AtLeast(bound), deviation: None }
    }

    fn deviating(self, cause: &'static str) -> Self {
        Check { deviation: Some(cause), ..self }
    }
}

/// Measures a row's checks, in their order, with one seed.
type Measure = Box<dyn Fn(u64) -> Vec<f64> + Send + Sync>;

/// One network with its checks.
pub struct LawRow {
    /// The row of the specification's table.
    pub number: u32,
    /// The network, in a few words.
    pub network: String,
    /// The comparisons.
    pub checks: Vec<Check>,
    /// How many seeds the report uses; one where nothing is random.
    pub seeds: u64,
    /// Number of seeds in the normal suite; zero if the row is left to `make laws`.
    pub quick_seeds: u64,
    measure: Measure,
}

/// Results of a row.
pub struct Measured {
    /// The row.
    pub row: LawRow,
    /// Values by check, then by seed.
    pub values: Vec<Vec<f64>>,
}

impl LawRow {
    /// Measures with the seeds from 1.
    pub fn measure(self, seeds: u64) -> Measured {
        let by_seed: Vec<Vec<f64>> = (1..=seeds).into_par_iter().map(|seed| (self.measure)(seed)).collect();
        let column = |check: usize| by_seed.iter().map(|values| values[check]).collect();
        let values = (0..self.checks.len()).map(column).collect();
        Measured { row: self, values }
    }
}

impl Measured {
    /// The checks with their means.
    pub fn results(&self) -> impl Iterator<Item = (&Check, Mean)> {
        self.row.checks.iter().zip(&self.values).map(|(check, values)| (check, Mean::of(values)))
    }

    /// What the asserted checks miss, in words.
    pub fn failures(&self) -> Vec<String> {
        let missed =
            self.results().filter(|(check, mean)| check.deviation.is_none() && !check.target.is_met(mean.mean));
        let words = |(check, mean): (&Check, Mean)| {
            let LawRow { number, network, .. } = &self.row;
            format!("row {number}, {network}, {}: {:.4} misses {:?}", check.what, mean.mean, check.target)
        };
        missed.map(words).collect()
    }
}

/// Every row, in the order of the table.
pub fn all() -> Vec<LawRow> {
    let mut rows = single_path::rows();
    rows.extend(cubic_cycle::rows());
    rows.extend(exact::rows());
    rows.extend(coupled::rows());
    rows.extend(conext::rows());
    rows.extend(friendliness::rows());
    rows.extend(rate_based::rows());
    rows.sort_by_key(|row| row.number);
    rows
}
