//! Equivalence of two samples: equivalent within a tolerance, different, or inconclusive.
//!
//! Two one-sided tests at 5 % (Schuirmann 1987): equivalent if the 90 % interval of the difference lies inside the
//! tolerance. An interval that includes zero proves nothing, because a poor measurement has a wide one.

use serde::Serialize;

/// Student's t at 95 % for 1 to 30 degrees of freedom: the half width of 90 % intervals.
const STUDENT: [f64; 30] = [
    6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753, 1.746,
    1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711, 1.708, 1.706, 1.703, 1.701, 1.699, 1.697,
];
/// The normal distribution's value, for more degrees of freedom.
const NORMAL: f64 = 1.645;

/// Confidence interval of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The estimate.
    pub mean: f64,
    /// Half the width of the 90 % interval; infinite where the variance is unknown.
    pub half: f64,
}

/// Result of the comparison of an interval with a tolerance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval is inside the tolerance.
    Equivalent,
    /// The whole interval is outside the tolerance.
    Differs,
    /// The interval crosses a bound of the tolerance.
    Inconclusive,
}

impl Verdict {
    /// The word in tables.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Equivalent => "pass",
            Verdict::Differs => "differs",
            Verdict::Inconclusive => "inconclusive",
        }
    }

    /// Either tolerance suffices for equivalence; to differ, both must be exceeded.
    pub fn or(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::Equivalent, _) | (_, Verdict::Equivalent) => Verdict::Equivalent,
            (Verdict::Differs, Verdict::Differs) => Verdict::Differs,
            _ => Verdict::Inconclusive,
        }
    }

    /// Both must be equivalent; to differ, one suffices.
    pub fn and(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::Differs, _) | (_, Verdict::Differs) => Verdict::Differs,
            (Verdict::Equivalent, Verdict::Equivalent) => Verdict::Equivalent,
            _ => Verdict::Inconclusive,
        }
    }
}

impl Interval {
    /// The lower end.
    pub fn low(&self) -> f64 {
        self.mean - self.half
    }

    /// The upper end.
    pub fn high(&self) -> f64 {
        self.mean + self.half
    }

    /// Compares the interval with the bounds of the tolerance.
    pub fn within(&self, low: f64, high: f64) -> Verdict {
        if low <= self.low() && self.high() <= high {
            Verdict::Equivalent
        } else if self.high() < low || high < self.low() {
            Verdict::Differs
        } else {
            Verdict::Inconclusive
        }
    }

    /// Compares an interval of logarithms: the ratio may differ by this share, up or down.
    pub fn within_share(&self, share: f64) -> Verdict {
        self.within((1.0 - share).ln(), (1.0 + share).ln())
    }
}

/// Mean and variance; the variance of a single value is unknown.
fn moments(values: &[f64]) -> (f64, Option<f64>) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>();
    (mean, (values.len() > 1).then(|| squares / (n - 1.0)))
}

fn student(degrees: f64) -> f64 {
    // Rounded down: fewer degrees of freedom make a wider interval.
    let whole = degrees.floor().max(1.0) as usize;
    STUDENT.get(whole - 1).copied().unwrap_or(NORMAL)
}

/// The mean of the differences `a[i] - b[i]` of runs with the same random numbers.
pub fn paired(a: &[f64], b: &[f64]) -> Interval {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    match moments(&differences) {
        (mean, Some(variance)) => {
            let n = differences.len() as f64;
            Interval { mean, half: student(n - 1.0) * (variance / n).sqrt() }
        }
        (mean, None) => Interval { mean, half: f64::INFINITY },
    }
}

/// The difference of the means of `a` and `b`, whose runs are independent and whose variances may
/// differ (Welch 1947).
pub fn unpaired(a: &[f64], b: &[f64]) -> Interval {
    let ((mean_a, var_a), (mean_b, var_b)) = (moments(a), moments(b));
    let mean = mean_a - mean_b;
    let (Some(var_a), Some(var_b)) = (var_a, var_b) else { return Interval { mean, half: f64::INFINITY } };
    let (n, m) = (a.len() as f64, b.len() as f64);
    let (of_a, of_b) = (var_a / n, var_b / m);
    let variance = of_a + of_b;
    if variance == 0.0 {
        return Interval { mean, half: 0.0 };
    }
    let degrees = variance * variance / (of_a * of_a / (n - 1.0) + of_b * of_b / (m - 1.0));
    Interval { mean, half: student(degrees) * variance.sqrt() }
}

/// The median; `None` of no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// The least value that at least this share of the values does not exceed; `None` of no values.
pub fn percentile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_of_runs_shares_what_both_have_in_common() {
        let interval = paired(&[11.0, 101.0, 1002.0], &[10.0, 100.0, 1000.0]);
        // Differences 1, 1, 2: mean 4/3, deviation 1/sqrt(3), t(2) = 2.920.
        assert!((interval.mean - 4.0 / 3.0).abs() < 1e-12);
        assert!((interval.half - 2.920 / 3.0).abs() < 1e-12);
        assert_eq!(paired(&[1.0], &[1.0]).half, f64::INFINITY);
    }

    #[test]
    fn welchs_interval_follows_the_sample_that_is_less_known() {
        // Variances 2 and 0: all uncertainty is from the first two runs, with one degree of freedom.
        let interval = unpaired(&[1.0, 3.0], &[1.0, 1.0, 1.0, 1.0]);
        assert!((interval.mean - 1.0).abs() < 1e-12 && (interval.half - 6.314).abs() < 1e-9);
        assert_eq!(unpaired(&[1.0, 2.0], &[1.0]).half, f64::INFINITY);
        assert_eq!(unpaired(&[2.0, 2.0], &[1.0, 1.0]), Interval { mean: 1.0, half: 0.0 });
    }

    #[test]
    fn only_a_narrow_interval_passes() {
        let interval = |mean, half| Interval { mean, half };
        assert_eq!(interval(0.01, 0.02).within_share(0.05), Verdict::Equivalent);
        assert_eq!(interval(0.0, 0.2).within_share(0.05), Verdict::Inconclusive);
        assert_eq!(interval(0.2, 0.1).within_share(0.05), Verdict::Differs);
        assert_eq!(interval(-0.2, 0.1).within_share(0.05), Verdict::Differs);
        assert_eq!(interval(0.0, f64::INFINITY).within_share(0.05), Verdict::Inconclusive);
    }

    #[test]
    fn either_tolerance_suffices_and_both_conditions_count() {
        use Verdict::{Differs, Equivalent, Inconclusive};
        assert_eq!(Differs.or(Equivalent), Equivalent);
        assert_eq!(Differs.or(Inconclusive), Inconclusive);
        assert_eq!(Differs.or(Differs), Differs);
        assert_eq!(Equivalent.and(Inconclusive), Inconclusive);
        assert_eq!(Inconclusive.and(Differs), Differs);
        assert_eq!(Equivalent.and(Equivalent), Equivalent);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<f64> = (1..=10).rev().map(f64::from).collect();
        assert_eq!(
            [0.0, 0.85, 0.9, 0.91, 1.0].map(|share| percentile(&values, share)),
            [1.0, 9.0, 9.0, 10.0, 10.0].map(Some)
        );
        assert_eq!(percentile(&[], 0.9), None);
    }
}
