//! P5 to P7: gains of MPTCP+ over MPTCP, over a grid of rates and ratios.

use super::compare::{BITRATE, DELAY, DELAY_P90, Metric, Quantity, SPEED, digits, higher, lower};
use super::mptcp_plus::{grid, grid_name};
use super::study::{Condition, Study};
use crate::claims::verdict::{Claim, Finding, Outcome};
use crate::runs::set;
use crate::statistics::Mean;

/// Rates of the faster path, kb/s. The paper names 1500 ("average bandwidth": its limit); its figure 6 has the others.
const RATES: [u32; 3] = [500, 1000, 1500];
/// C1/C2: a large difference, one that PUD still refuses, and a small one. The paper does not state its ratios.
const RATIOS: [f64; 3] = [0.3, 0.5, 0.8];

const QOE_LINEAR: Metric = Metric { name: "linear QoE", unit: "", of: |s| s.qoe_linear };
const QOE_LOG: Metric = Metric { name: "log QoE", unit: "", of: |s| s.qoe_log };
/// Counters of the two halves of MPTCP+.
const DISABLED: Metric =
    Metric { name: "time with one path forbidden by PUD", unit: "%", of: |s| s.disabled_share * 100.0 };
const TRIGGERS: Metric = Metric { name: "triggers of MCC's θ", unit: "", of: |s| s.theta_triggers };
/// The smallest gain that passes for "up to 50 %".
const UP_TO_HALF: f64 = 40.0;

pub(super) fn points() -> impl Iterator<Item = (u32, f64)> {
    RATES.into_iter().flat_map(|c2| RATIOS.into_iter().map(move |ratio| (c2, ratio)))
}

fn before(c2: u32, ratio: f64) -> String {
    grid_name(c2, ratio, "MPTCP")
}

fn after(c2: u32, ratio: f64) -> String {
    grid_name(c2, ratio, "MPTCP+")
}

/// MPTCP+ at each point, and its halves where the difference is large.
pub(super) fn conditions() -> Vec<Condition> {
    let (mcc, pud) = (set("transport.congestion_control", "mcc"), set("transport.path_policy", "pud"));
    let with = |(c2, ratio): (u32, f64), transport: &str, parts: &[&(String, String)]| {
        let mut changes = grid(c2, ratio);
        changes.extend(parts.iter().map(|part| (*part).clone()));
        Condition::new(grid_name(c2, ratio, transport), "mptcp-plus/grid", changes)
    };
    let mut all: Vec<Condition> = points().map(|point| with(point, "MPTCP+", &[&mcc, &pud])).collect();
    for point in points().filter(|(_, ratio)| *ratio == RATIOS[1]) {
        all.push(with(point, "MPTCP with PUD", &[&pud]));
        all.push(with(point, "MPTCP with MCC", &[&mcc]));
    }
    all
}

pub(super) fn claims(study: &Study) -> Vec<Claim> {
    vec![p5(study), p6(study), p7(study)]
}

pub(super) fn quantities(study: &Study) -> Vec<Quantity> {
    let mut all = Vec::new();
    for (c2, ratio) in points() {
        for condition in [before(c2, ratio), after(c2, ratio)] {
            all.push(DELAY.quantity(study, "P5", &condition, ""));
            all.push(SPEED.quantity(study, "P6", &condition, ""));
            all.push(BITRATE.quantity(study, "P7", &condition, ""));
        }
        all.extend([DISABLED, TRIGGERS].map(|metric| metric.quantity(study, "P7", &after(c2, ratio), "")));
    }
    for (c2, ratio) in points().filter(|(_, ratio)| *ratio == RATIOS[1]) {
        for half in ["MPTCP with PUD", "MPTCP with MCC"] {
            all.push(BITRATE.quantity(study, "P7", &grid_name(c2, ratio, half), ""));
        }
    }
    all
}

fn p5(study: &Study) -> Claim {
    let mut findings = Vec::new();
    for metric in [DELAY, DELAY_P90] {
        findings.extend(points().map(|(c2, ratio)| lower(study, &after(c2, ratio), &before(c2, ratio), metric)));
    }
    Claim {
        id: "P5",
        claim: "MPTCP+ lowers media-segment download delay against MPTCP",
        criterion: "for C2 = 500, 1000, 1500 kb/s and C1/C2 = 0.3, 0.5, 0.8 the mean and the 90th percentile are lower",
        findings,
    }
}

/// The relative gain, per cent, seed by seed; `inverse` where less is better.
fn gain(study: &Study, c2: u32, ratio: f64, metric: Metric, inverse: bool) -> Mean {
    let values = |condition: String| study.values(&condition, metric.of);
    let pairs = values(after(c2, ratio)).into_iter().zip(values(before(c2, ratio)));
    let relative = |(new, old): (f64, f64)| if inverse { old / new - 1.0 } else { (new - old) / old.abs() };
    Mean::of(&pairs.map(|pair| relative(pair) * 100.0).collect::<Vec<_>>())
}

fn p6(study: &Study) -> Claim {
    let mut findings: Vec<Finding> =
        points().map(|(c2, ratio)| higher(study, &after(c2, ratio), &before(c2, ratio), SPEED)).collect();
    let (c2, ratio) = (RATES[2], RATIOS[0]);
    let here = gain(study, c2, ratio, SPEED, false);
    let largest = points().all(|(c, r)| gain(study, c, r, SPEED, false).mean <= here.mean);
    findings.push(Finding::new(format!("gain of speed at {}: {} %", after(c2, ratio), digits(&here)), largest));
    Claim {
        id: "P6",
        claim: "MPTCP+ raises media-segment download speed against MPTCP, most at 1500 kb/s and a large inter-path difference",
        criterion: "at the same nine points the mean is higher, and the relative gain is largest at 1500 kb/s and 0.3",
        findings,
    }
}

fn p7(study: &Study) -> Claim {
    let measures = [(DELAY, true), (SPEED, false), (BITRATE, false), (QOE_LINEAR, false), (QOE_LOG, false)];
    let best = |(metric, inverse): (Metric, bool)| {
        let gains = points().map(|(c2, ratio)| (gain(study, c2, ratio, metric, inverse), c2, ratio));
        let most = gains.max_by(|a, b| a.0.low().total_cmp(&b.0.low())).expect("there are points");
        let (gain, c2, ratio) = most;
        let text = format!("{}: largest gain {} %, at C2 {c2}, C1/C2 {ratio}", metric.name, digits(&gain));
        Finding::new(text, Outcome::above(&gain, 0.0).and((gain.mean >= UP_TO_HALF).into()))
    };
    Claim {
        id: "P7",
        claim: "QoE up to 50 % higher (the figures show media-segment delay and speed)",
        criterion: "at the best of the nine points delay, speed, bitrate, linear and log QoE each gain 40 % or more, for certain more \
            than nothing",
        findings: measures.into_iter().map(best).collect(),
    }
}
