//! How evenly viewers fared whose sessions ran at the same time.

use crate::folds::DashReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Jain's index over the viewers of DASH videos: 1 if all fared alike, 1/n if one had everything.
///
/// The index is defined for shares, which are not negative: null where one of them is, as a linear QoE may be, or where
/// all had nothing. What viewers saw has no index if one of them was not observed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fairness {
    /// How many of them.
    pub viewers: usize,
    /// Over their mean bitrates on screen; who saw nothing counts with zero.
    pub jain_mean_bitrate: Option<f64>,
    /// Over their linear QoE.
    pub jain_qoe_linear: Option<f64>,
    /// Over their logarithmic QoE.
    pub jain_qoe_log: Option<f64>,
    /// Over their goodputs.
    pub jain_goodput: Option<f64>,
}

impl Fairness {
    /// Of the viewers of DASH videos, each with goodput and, if it was observed, what was seen; none if there are fewer
    /// than two.
    pub(crate) fn of(viewers: &[(f64, Option<&DashReport>)]) -> Option<Self> {
        let of_viewers = |share: fn(&DashReport) -> f64| {
            let shares: Option<Vec<f64>> = viewers.iter().map(|(_, dash)| dash.map(share)).collect();
            jain(&shares?)
        };
        let goodputs: Vec<f64> = viewers.iter().map(|(goodput, _)| *goodput).collect();
        (viewers.len() > 1).then(|| Fairness {
            viewers: viewers.len(),
            // Nothing on screen is a share of nothing.
            jain_mean_bitrate: of_viewers(|dash| dash.mean_bitrate_bps.unwrap_or(0.0)),
            jain_qoe_linear: of_viewers(|dash| dash.qoe_linear),
            jain_qoe_log: of_viewers(|dash| dash.qoe_log),
            jain_goodput: jain(&goodputs),
        })
    }
}

/// Jain's index of fairness, (Σx)² / (n Σx²): 1 if all shares are equal, 1/n if one is all (Jain, Chiu, Hawe 1984).
/// None if a share is negative, or all are zero.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    (squares > 0.0 && shares.iter().all(|x| *x >= 0.0)).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index() {
        assert_eq!(jain(&[2.0, 2.0]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        // (1 + 2 + 3)² / (3 · 14)
        assert_eq!(jain(&[1.0, 2.0, 3.0]), Some(36.0 / 42.0));
        assert_eq!(jain(&[1.0, -2.0]), None);
        assert_eq!(jain(&[0.0, 0.0]), None);
        assert_eq!(jain(&[]), None);
    }
}
