//! How well the two conditions of the sticky schedulers' paper foretell what happens after a path switch.
//!
//! A switch of new data is a case; the condition's left side over (or minus) its right side is its score. Its outcome
//! is, for underflows, whether the player reports one within a horizon after the switch; for discards, whether the
//! picture that was being sent is discarded. The area under the curve of hits over false alarms says how likely a
//! switch that was followed by the outcome has a higher score than one that was not: 1 is a perfect predictor, 0.5
//! chance.

use super::{Number, Observed};

/// How soon after a switch an underflow has to come, in seconds: VLC's second of caching and as much for queues and
/// retransmissions.
const HORIZON_S: f64 = 2.0;

/// None without an outcome, and with one after every switch.
///
/// # Panics
/// If the run did not keep forecasts.
pub fn of_switches(observed: &Observed<'_>) -> Vec<Number> {
    let underflows = &observed.recording.underflows;
    let mut discarded = observed.recording.discarded.clone();
    discarded.sort_unstable();
    let (mut of_underflow, mut of_discard) = (Vec::new(), Vec::new());
    let forecasts = observed.recording.forecasts.as_ref().expect("a run with this reducer keeps forecasts");
    for forecast in forecasts {
        let at_s = forecast.at.as_secs_f64();
        let next = underflows.partition_point(|underflow| *underflow < at_s);
        let followed = underflows.get(next).is_some_and(|underflow| *underflow <= at_s + HORIZON_S);
        of_underflow.push((forecast.underflow_ratio, followed));
        if let Some(frame) = forecast.frame {
            of_discard.push((forecast.discard_margin, discarded.binary_search(&frame).is_ok()));
        }
    }
    vec![
        ("underflow".to_string(), area_under_curve(&of_underflow)),
        ("discard".to_string(), area_under_curve(&of_discard)),
    ]
}

/// How likely a case with the outcome has a higher score than one without; ties count half (Mann and Whitney's U).
/// `None` if one of the kinds is missing.
///
/// A session has a hundred thousand switches, and mostly few of one kind. Only these are sorted; the others find their
/// places among them.
fn area_under_curve(cases: &[(f64, bool)]) -> Option<f64> {
    let known = || cases.iter().filter(|(score, _)| !score.is_nan());
    let positive = known().filter(|(_, outcome)| *outcome).count();
    let negative = known().count() - positive;
    if positive == 0 || negative == 0 {
        return None;
    }
    let sorted_kind = positive <= negative;
    let scores = |kind: bool| known().filter(move |(_, outcome)| *outcome == kind).map(|(score, _)| *score);
    let mut sorted: Vec<f64> = scores(sorted_kind).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    // Twice U, a whole number: 2 for a pair in which the sorted kind's score is higher, 1 for a tie.
    let pairs = |score: f64| {
        let below = sorted.partition_point(|other| *other < score);
        let not_above = below + sorted[below..].partition_point(|other| *other == score);
        2 * (sorted.len() - not_above) + (not_above - below)
    };
    let of_sorted: usize = scores(!sorted_kind).map(pairs).sum();
    let all = positive * negative;
    let of_positive = if sorted_kind { of_sorted } else { 2 * all - of_sorted };
    Some(of_positive as f64 / 2.0 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::area_under_curve;

    #[test]
    fn the_area_is_one_for_a_perfect_order_and_half_for_ties() {
        let area = area_under_curve;
        assert_eq!(area(&[(0.1, false), (0.2, false), (0.3, true), (0.4, true)]), Some(1.0));
        assert_eq!(area(&[(0.1, true), (0.2, false)]), Some(0.0));
        assert_eq!(area(&[(1.0, true), (1.0, false), (1.0, false)]), Some(0.5));
        assert_eq!(area(&[(0.0, true), (-0.0, false), (-0.0, true)]), Some(0.5));
        // Of the four pairs three are in order.
        assert_eq!(area(&[(1.0, false), (2.0, true), (3.0, false), (4.0, true)]), Some(0.75));
        assert_eq!(area(&[(1.0, true)]), None);
        assert_eq!(area(&[(f64::NAN, false), (1.0, true)]), None);
    }

    #[test]
    fn the_area_is_the_share_of_pairs_in_order_whichever_kind_is_the_rarer_one() {
        let score = |n: u32| f64::from(n * 7919 % 23);
        for every in [2, 3, 11] {
            for positive_is_rare in [true, false] {
                let cases: Vec<_> = (0..200).map(|n| (score(n), (n % every == 0) == positive_is_rare)).collect();
                let of_kind = |kind| cases.iter().filter(move |case| case.1 == kind).map(|case| case.0);
                let pairs = of_kind(true).flat_map(|hit| of_kind(false).map(move |miss| (hit, miss)));
                let points = |(hit, miss)| if hit > miss { 1.0 } else { f64::from(u8::from(hit == miss)) / 2.0 };
                let (sum, number) = pairs.fold((0.0, 0.0), |(sum, number), pair| (sum + points(pair), number + 1.0));
                assert_eq!(area_under_curve(&cases), Some(sum / number));
            }
        }
    }
}
