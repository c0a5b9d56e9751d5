//! Means with intervals.

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
}
