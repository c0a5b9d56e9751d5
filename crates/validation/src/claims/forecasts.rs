//! S10: how well the paper's two conditions predict what happens after a path switch.
//!
//! A switch is a case; the condition's left side over (or minus) its right side is its score. Its outcome is, for
//! underflows, whether the player reports one within a horizon after the switch; for discards, whether the picture that
//! was being sent is discarded. The area under the curve says how likely a switch that was followed by the outcome has a
//! higher score than one that was not: 1 is a perfect predictor, 0.5 chance.

use super::Tick;
use super::study::{Cell, STICKY, cells};
use super::verdict::{Claim, Finding, Outcome};
use crate::runs::{Events, shipped, simulate_with_events};
use crate::statistics::{Mean, area_under_curve};
use rayon::prelude::*;

/// How soon after a switch an underflow has to come, in seconds: VLC's second of caching and as much for queues and
/// retransmissions.
pub const HORIZON_S: f64 = 2.0;

/// The areas of one condition and seed.
#[derive(Clone, Copy, Debug)]
pub struct Areas {
    /// The condition.
    pub cell: Cell,
    /// The underflow condition's; none without underflows, or with one after every switch.
    pub underflow: Option<f64>,
    /// The discard condition's.
    pub discard: Option<f64>,
}

/// Measures all conditions of the sticky schedulers' paper with the seeds from 1; `None` if it was stopped.
pub fn measure(seeds: u64, tick: Tick<'_>) -> Option<Vec<Areas>> {
    let runs: Vec<(Cell, u64)> = cells(STICKY).flat_map(|cell| (1..=seeds).map(move |seed| (cell, seed))).collect();
    let observe = |(cell, seed)| {
        let areas = areas(cell, seed);
        tick().then_some(areas)
    };
    runs.into_par_iter().map(observe).collect()
}

fn areas(cell: Cell, seed: u64) -> Areas {
    let outcome = simulate_with_events(shipped(cell.scenario), &cell.changes(seed), seed);
    let events = Events::of(&outcome);
    let time = events.floats("time_s");
    let underflows: Vec<f64> = events.named("buffer-underflow").map(|row| time[row]).collect();
    let mut discarded: Vec<i64> = events.named("picture-discarded").map(|row| events.integers("number")[row]).collect();
    discarded.sort_unstable();
    let new_data = events.flags("new_data");
    let frames = events.integers("frame");
    let (ratio, margin) = (events.floats("underflow_ratio"), events.floats("discard_margin"));
    let (mut of_underflow, mut of_discard) = (Vec::new(), Vec::new());
    for row in events.named("path-switched").filter(|row| new_data[*row] == Some(true)) {
        let next = underflows.partition_point(|at| *at < time[row]);
        let followed = underflows.get(next).is_some_and(|at| *at <= time[row] + HORIZON_S);
        of_underflow.push((ratio[row], followed));
        if frames[row] >= 0 {
            of_discard.push((margin[row], discarded.binary_search(&frames[row]).is_ok()));
        }
    }
    Areas { cell, underflow: area_under_curve(of_underflow), discard: area_under_curve(of_discard) }
}

/// Above this area a condition predicts (Hosmer and Lemeshow call it acceptable discrimination).
const USEFUL: f64 = 0.7;

/// S10 as a claim.
pub fn claim(areas: &[Areas]) -> Claim {
    let finding = |name: &str, of: fn(&Areas) -> Option<f64>| {
        let values: Vec<f64> = areas.iter().filter_map(of).collect();
        if values.is_empty() {
            return Finding::new(format!("{name}: no case"), Outcome::Undecided);
        }
        let mean = Mean::of(&values);
        let text = format!("{name}: area {:.3} ± {:.3} over {} sessions", mean.mean, mean.half, mean.count);
        Finding::new(text, Outcome::above(&mean, USEFUL))
    };
    Claim {
        id: "S10",
        claim: "switch i→j: underflow is likelier when rtt_i λ_i < rtt_j λ_r; discard when F_i < (F − F_i) λ_i/λ_j + rtt_j λ_i",
        criterion: "the mean area under the curve of each condition is above 0.7 for certain",
        findings: vec![finding("underflow", |a| a.underflow), finding("discard", |a| a.discard)],
    }
}
