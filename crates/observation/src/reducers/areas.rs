//! How well the two conditions of the sticky schedulers' paper foretell what happens after a path switch.
//!
//! A switch of new data is a case; the condition's left side over (or minus) its right side is its score. Its outcome is, for
//! underflows, whether the player reports one within a horizon after the switch; for discards, whether the picture that was being
//! sent is discarded. The area under the curve of hits over false alarms says how likely a switch that was followed by the outcome
//! has a higher score than one that was not: 1 is a perfect predictor, 0.5 chance.

use super::{Number, Observed};

/// How soon after a switch an underflow has to come, in seconds: VLC's second of caching and as much for queues and
/// retransmissions.
const HORIZON_S: f64 = 2.0;

/// None without an outcome, and with one after every switch.
pub fn of_switches(observed: &Observed<'_>) -> Vec<Number> {
    let underflows = &observed.recording.underflows;
    let mut discarded = observed.recording.discarded.clone();
    discarded.sort_unstable();
    let (mut of_underflow, mut of_discard) = (Vec::new(), Vec::new());
    for forecast in &observed.recording.forecasts {
        let at_s = forecast.at.as_secs_f64();
        let next = underflows.partition_point(|underflow| *underflow < at_s);
        let followed = underflows.get(next).is_some_and(|underflow| *underflow <= at_s + HORIZON_S);
        of_underflow.push((forecast.underflow_ratio, followed));
        if let Some(frame) = forecast.frame {
            of_discard.push((forecast.discard_margin, discarded.binary_search(&frame).is_ok()));
        }
    }
    vec![
        ("underflow".to_string(), area_under_curve(of_underflow)),
        ("discard".to_string(), area_under_curve(of_discard)),
    ]
}

/// How likely a case with the outcome has a higher score than one without; ties count half (Mann and Whitney's U). `None` if one
/// of the kinds is missing.
fn area_under_curve(mut cases: Vec<(f64, bool)>) -> Option<f64> {
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
    use super::area_under_curve;

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
