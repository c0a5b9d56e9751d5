//! Finds a model's parameters: those whose synthetic group has statistics nearest to the recorded group's.
//!
//! The distance is the sum of squared differences, each in units of its statistic's scale. Synthetic groups are
//! averaged over a few seeds, the same for all parameters, so the distance is a function of the parameters alone; a
//! pattern search (Hooke, Jeeves, JACM 8(2), 1961: one parameter after the other, with steps that are halved when none
//! helps) descends from the given start. The method is that of simulated moments (McFadden, Econometrica 57(5), 1989).

use super::{STATISTICS, means, synthetic_group};
use anabranch_network::{Summary, SyntheticModel};
use anabranch_units::Duration;

/// Number of seeds in the average.
const SEEDS: u64 = 8;

/// Number of halvings of the step: from a half to a hundredth.
const HALVINGS: usize = 6;

/// The parameters as the search sees them: times and deviations by their logarithms, so that a step is a factor.
type Point = [f64; 6];

fn point(model: &SyntheticModel) -> Point {
    // A deviation of zero has no logarithm; a thousandth is as good.
    let log = |x: f64| x.max(1e-3).ln();
    let time = |t: Duration| log(t.as_secs_f64());
    [
        model.headroom,
        log(model.spread),
        time(model.correlation_time),
        log(model.noise),
        time(model.between_outages),
        time(model.outage),
    ]
}

fn model(point: &Point) -> SyntheticModel {
    let time = |log: f64| Duration::from_secs_f64(log.exp());
    SyntheticModel {
        headroom: point[0].clamp(-10.0, 10.0),
        spread: point[1].exp().min(10.0),
        correlation_time: time(point[2]),
        noise: point[3].exp().min(3.0),
        between_outages: time(point[4]),
        // Outages shorter than a tenth of a second are none.
        outage: if point[5].exp() < 0.1 { Duration::ZERO } else { time(point[5]) },
    }
}

/// How far a model is from a recorded group.
pub fn distance(model: &SyntheticModel, real: &[Summary]) -> f64 {
    let target = means(real);
    let groups: Vec<Vec<f64>> = (0..SEEDS).map(|seed| means(&synthetic_group(model, real, seed))).collect();
    let difference = |(i, statistic): (usize, &super::Statistic)| {
        let known: Vec<f64> = groups.iter().map(|group| group[i]).filter(|x| !x.is_nan()).collect();
        if target[i].is_nan() || known.is_empty() {
            return 0.0;
        }
        let made = known.iter().sum::<f64>() / known.len() as f64;
        ((made - target[i]) / statistic.scale).powi(2)
    };
    STATISTICS.iter().enumerate().map(difference).sum()
}

/// The nearest model, and its distance.
pub fn fit(start: &SyntheticModel, real: &[Summary]) -> (SyntheticModel, f64) {
    let (mut best, mut least) = (point(start), distance(start, real));
    let mut step = 0.5;
    for _ in 0..HALVINGS {
        while let Some((better, nearer)) = improve(&best, least, step, real) {
            (best, least) = (better, nearer);
        }
        step /= 2.0;
    }
    (model(&best), least)
}

/// A round through all parameters, if any step of it helped.
fn improve(from: &Point, distance_from: f64, step: f64, real: &[Summary]) -> Option<(Point, f64)> {
    let (mut best, mut least) = (*from, distance_from);
    for parameter in 0..from.len() {
        for direction in [step, -step] {
            let mut tried = best;
            tried[parameter] += direction;
            let found = distance(&model(&tried), real);
            if found < least {
                (best, least) = (tried, found);
                break;
            }
        }
    }
    (least < distance_from).then_some((best, least))
}
