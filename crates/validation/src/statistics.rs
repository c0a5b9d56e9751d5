//! Means with intervals, and the few other statistics that the reports need.

/// Student's t at 97.5 % for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// The normal distribution's, for more.
const NORMAL: f64 = 1.960;

/// A mean and half the width of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Half the width; infinite for a single value, whose variance is unknown.
    pub half: f64,
    /// Number of values.
    pub count: usize,
}

impl Mean {
    /// Of values that are independent and about normal (Student's t).
    ///
    /// # Panics
    /// If there is no value.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len();
        assert!(n > 0, "a mean needs a value");
        let mean = values.iter().sum::<f64>() / n as f64;
        if n == 1 {
            return Mean { mean, half: f64::INFINITY, count: 1 };
        }
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1) as f64;
        let t = STUDENT.get(n - 2).copied().unwrap_or(NORMAL);
        Mean { mean, half: t * (variance / n as f64).sqrt(), count: n }
    }

    /// The lower end of the interval.
    pub fn low(&self) -> f64 {
        self.mean - self.half
    }

    /// The upper end of the interval.
    pub fn high(&self) -> f64 {
        self.mean + self.half
    }
}

/// The mean of the differences `a[i] - b[i]` of paired values.
///
/// # Panics
/// If the lists differ in length or are empty.
pub fn paired(a: &[f64], b: &[f64]) -> Mean {
    assert_eq!(a.len(), b.len(), "paired values");
    Mean::of(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
}

/// The area under the curve of hits over false alarms: how likely a case with the outcome has a higher score than one
/// without; ties count half (Mann and Whitney's U). `None` if one of the kinds is missing.
pub fn area_under_curve(mut cases: Vec<(f64, bool)>) -> Option<f64> {
    cases.retain(|(score, _)| !score.is_nan());
    let positive = cases.iter().filter(|(_, outcome)| *outcome).count() as f64;
    let negative = cases.len() as f64 - positive;
    if positive == 0.0 || negative == 0.0 {
        return None;
    }
    cases.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut rank_sum, mut at) = (0.0, 0);
    while at < cases.len() {
        let ties = cases[at..].iter().take_while(|case| case.0 == cases[at].0).count();
        let rank = at as f64 + (ties + 1) as f64 / 2.0;
        let hits = cases[at..at + ties].iter().filter(|(_, outcome)| *outcome).count();
        rank_sum += rank * hits as f64;
        at += ties;
    }
    Some((rank_sum - positive * (positive + 1.0) / 2.0) / (positive * negative))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_follows_students_t() {
        // Mean 3, standard deviation sqrt(2.5), t(4) = 2.776.
        let m = Mean::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!((m.half - 2.776 * (2.5_f64 / 5.0).sqrt()).abs() < 1e-12);
        assert_eq!((m.mean, m.count), (3.0, 5));
        assert_eq!(Mean::of(&[7.0]).half, f64::INFINITY);
    }

    #[test]
    fn pairing_removes_what_both_have_in_common() {
        let m = paired(&[11.0, 101.0, 1001.0], &[10.0, 100.0, 1000.0]);
        assert_eq!((m.mean, m.half), (1.0, 0.0));
    }

    #[test]
    fn the_area_is_one_for_a_perfect_order_and_half_for_ties() {
        let area = |cases: &[(f64, bool)]| area_under_curve(cases.to_vec());
        assert_eq!(area(&[(0.1, false), (0.2, false), (0.3, true), (0.4, true)]), Some(1.0));
        assert_eq!(area(&[(0.1, true), (0.2, false)]), Some(0.0));
        assert_eq!(area(&[(1.0, true), (1.0, false), (1.0, false)]), Some(0.5));
        // Of the four pairs three are in order.
        assert_eq!(area(&[(1.0, false), (2.0, true), (3.0, false), (4.0, true)]), Some(0.75));
        assert_eq!(area(&[(1.0, true)]), None);
        assert_eq!(area(&[(f64::NAN, false), (1.0, true)]), None);
    }
}
