//! P1 to P4 and the common conditions and variants of the claims of "MPTCP+".

use super::compare::{BITRATE, Quantity, SWITCHES, USED_BITRATE, above, below, higher, lower};
use super::study::{Change, Condition, Study, Variant};
use super::{friendliness, gains, one_segment, windows};
use crate::claims::Tick;
use crate::claims::verdict::{Claim, Finding, Outcome};
use crate::runs::set;

/// P4's grid: C2 in kb/s, and C1/C2.
const QUALITY_RATES: [u32; 2] = [500, 1000];
const QUALITY_RATIOS: [f64; 4] = [0.5, 0.6, 0.7, 0.8];
/// The ratios at which, by the paper, the slow path reduces quality.
const HURTING: std::ops::RangeInclusive<f64> = 0.5..=0.6;

const FAR: &str = "0.49 MPTCP";
const NEAR: &str = "0.87 MPTCP";
const FAST_ALONE: &str = "the fast path alone";
pub(super) const EQUAL: &str = "500 + 500 lia";

/// A switch in every tenth of the 596 media segments, or more, is called frequent.
const FREQUENT: f64 = 59.6;
/// Less than half of what the pair carries, 1490 kb/s, is called far below it.
const FAR_BELOW_KBPS: f64 = 745.0;

/// One TCP over one of the paths, with Linux's default control.
pub(super) fn alone(path: &str) -> Vec<Change> {
    vec![
        set("transport.protocol", "tcp"),
        set("transport.congestion_control", "cubic"),
        set("session.0.paths", format!("[\"{path}\"]")),
    ]
}

/// A point of the grids: C2 in kb/s, C1 as a part of it.
pub(super) fn grid(c2: u32, ratio: f64) -> Vec<Change> {
    let c1 = f64::from(c2) * ratio;
    vec![set("link.path1.rate", format!("{c1:.0} kb/s")), set("link.path2.rate", format!("{c2} kb/s"))]
}

pub(super) fn grid_name(c2: u32, ratio: f64, transport: &str) -> String {
    format!("C2 {c2}, C1/C2 {ratio} {transport}")
}

fn fast_alone(c2: u32) -> String {
    format!("C2 {c2} alone")
}

/// Every condition of the paper.
pub fn conditions() -> Vec<Condition> {
    let mut all = vec![
        Condition::new(FAR, "mptcp-plus/ratio-0.49", Vec::new()),
        Condition::new(NEAR, "mptcp-plus/ratio-0.87", Vec::new()),
        Condition::new(FAST_ALONE, "mptcp-plus/ratio-0.49", alone("path1")),
    ];
    for c2 in QUALITY_RATES {
        let mut changes = grid(c2, QUALITY_RATIOS[0]);
        changes.extend(alone("path2"));
        all.push(Condition::new(fast_alone(c2), "mptcp-plus/grid", changes));
    }
    for (c2, ratio) in quality_points().chain(gains::points()) {
        let name = grid_name(c2, ratio, "MPTCP");
        if all.iter().all(|condition: &Condition| condition.name != name) {
            all.push(Condition::new(name, "mptcp-plus/grid", grid(c2, ratio)));
        }
    }
    all.extend(gains::conditions());
    all.extend(windows::conditions());
    all.extend(one_segment::conditions());
    all
}

fn quality_points() -> impl Iterator<Item = (u32, f64)> {
    QUALITY_RATES.into_iter().flat_map(|c2| QUALITY_RATIOS.into_iter().map(move |ratio| (c2, ratio)))
}

/// The shipped scenarios, and what the paper leaves open set otherwise.
pub const VARIANTS: [Variant; 17] = [
    Variant { name: "as shipped", change: |_| Vec::new() },
    Variant { name: "policed at the client", change: policed },
    Variant { name: "queue of 32 packets", change: |c| c.on_links("queue", "32 packets") },
    Variant { name: "queue of 64 kB", change: |c| c.on_links("queue", "64 kB") },
    Variant { name: "queue of 1000 packets", change: |c| c.on_links("queue", "1000 packets") },
    Variant { name: "round trip of 2 ms", change: |c| c.on_links("rtt", "2 ms") },
    Variant { name: "round trip of 60 ms", change: |c| c.on_links("rtt", "60 ms") },
    Variant { name: "0.1 % random loss", change: |c| c.on_links("loss", "0.1 %") },
    Variant { name: "dash.js 2.9, ThroughputRule", change: |c| player(c, "dash.js-2.9", "throughput") },
    Variant { name: "dash.js 2.9, DYNAMIC", change: |c| player(c, "dash.js-2.9", "dynamic") },
    Variant { name: "MPTCP with Cubic", change: |c| base_control(c, "cubic") },
    Variant { name: "MPTCP with OLIA", change: |c| base_control(c, "olia") },
    Variant { name: "constant sizes", change: constant_sizes },
    Variant { name: "idle windows stay", change: |_| vec![set("transport.idle_restart", "false")] },
    Variant { name: "PUD samples every 10 ms", change: |c| pud(c, "period_ms", "10") },
    Variant { name: "PUD samples every second", change: |c| pud(c, "period_ms", "1000") },
    Variant { name: "PUD never readmits", change: |c| pud(c, "readmit", "never") },
];

/// wondershaper's limit on downloads until its version 1.4.
fn policed(condition: &Condition) -> Vec<Change> {
    let mut changes = condition.on_links("rate.burst", "10 kB");
    changes.extend(condition.on_links("queue", "1 packets"));
    changes
}

fn constant_sizes(condition: &Condition) -> Vec<Change> {
    if condition.streams() { vec![set("session.0.video.scene_variation", 0)] } else { Vec::new() }
}

fn player(condition: &Condition, kind: &str, strategy: &str) -> Vec<Change> {
    if condition.sets("session.0.player") {
        return Vec::new();
    }
    let start = if condition.scenario == "mptcp-plus/one-segment" { "4 Mb/s" } else { "808.057 kb/s" };
    let player = format!("{{ kind = \"{kind}\", strategy = \"{strategy}\", initial_bitrate = \"{start}\" }}");
    vec![set("session.0.player", player)]
}

/// MPTCP's control, where the condition does not state one.
fn base_control(condition: &Condition, control: &str) -> Vec<Change> {
    let stated = condition.sets("transport.congestion_control");
    if stated { Vec::new() } else { vec![set("transport.congestion_control", control)] }
}

fn pud(condition: &Condition, option: &str, value: &str) -> Vec<Change> {
    let used = condition.sets("transport.path_policy");
    if used { vec![set(format!("transport.path_policy.{option}"), value)] } else { Vec::new() }
}

/// P1 to P8, P10, P11. P9 is not about DASH and has a study of its own: `friendliness`.
pub fn claims(study: &Study, friendliness: Claim) -> Vec<Claim> {
    let mut all = vec![p1(study), windows::p2(study), windows::p3(study), p4(study)];
    all.extend(gains::claims(study));
    all.extend([windows::p8(study), friendliness, p10(), one_segment::p11(study)]);
    all
}

/// Number of calls of `tick` in [`measure_friendliness`].
pub const FRIENDLINESS_TICKS: u64 = 2;

/// P9, measured; `None` if it was stopped.
pub fn measure_friendliness(seeds: u64, tick: Tick<'_>) -> Option<Claim> {
    friendliness::p9(seeds, tick)
}

/// What the paper gives numbers for, and the means behind the other claims.
pub fn quantities(study: &Study) -> Vec<Quantity> {
    let mut all = Vec::new();
    for condition in [FAR, FAST_ALONE, NEAR] {
        all.push(BITRATE.quantity(study, "P1", condition, ""));
        all.push(SWITCHES.quantity(study, "P1", condition, ""));
    }
    all.extend(windows::quantities(study));
    for c2 in QUALITY_RATES {
        all.push(BITRATE.quantity(study, "P4", &fast_alone(c2), ""));
    }
    for (c2, ratio) in quality_points() {
        for metric in [BITRATE, USED_BITRATE] {
            all.push(metric.quantity(study, "P4", &grid_name(c2, ratio, "MPTCP"), ""));
        }
    }
    all.extend(gains::quantities(study));
    all.extend(one_segment::quantities(study));
    all
}

fn p1(study: &Study) -> Claim {
    Claim {
        id: "P1",
        claim: "a throughput ratio of 0.49 holds the bitrate at a low level, far below what the pair could carry; at 0.87 the slow path \
            no longer limits it, though switches stay frequent",
        criterion: "at 0.49 the mean bitrate is below half of the pair's rate, and lower than over the fast path alone; at 0.87 it is \
            higher than over the fast path alone, with more than one switch in ten media segments",
        findings: vec![
            below(study, FAR, BITRATE, FAR_BELOW_KBPS),
            lower(study, FAR, FAST_ALONE, BITRATE),
            higher(study, NEAR, FAST_ALONE, BITRATE),
            above(study, NEAR, SWITCHES, FREQUENT),
        ],
    }
}

fn p4(study: &Study) -> Claim {
    let mut findings = Vec::new();
    for metric in [BITRATE, USED_BITRATE] {
        for (c2, ratio) in quality_points() {
            let (pair, alone) = (grid_name(c2, ratio, "MPTCP"), fast_alone(c2));
            let lower = lower(study, &pair, &alone, metric);
            let hurts = HURTING.contains(&ratio);
            let outcome = if hurts { lower.outcome } else { Outcome::from(!lower.holds()) };
            findings.push(Finding::new(lower.text, outcome));
        }
        findings.push(hurts_most(study, metric));
    }
    Claim {
        id: "P4",
        claim: "quality against C1/C2 from 0.5 to 0.8 with C2 = 500 and 1000 kb/s: the slow path hurts at 0.5 and 0.6, worst at 500, and \
            not above",
        criterion: "in both readings of the \"average of ever used bitrates\" the pair is lower than C2's path alone at 0.5 and 0.6, \
            and not at 0.7 and 0.8; at 0.5 the loss relative to that path is higher with C2 = 500 than with 1000",
        findings,
    }
}

fn hurts_most(study: &Study, metric: super::compare::Metric) -> Finding {
    let loss = |c2: u32| {
        let pair = study.values(&grid_name(c2, QUALITY_RATIOS[0], "MPTCP"), metric.of);
        let alone = study.values(&fast_alone(c2), metric.of);
        pair.iter().zip(alone).map(|(pair, alone)| 100.0 - pair / alone * 100.0).collect::<Vec<f64>>()
    };
    let d = crate::statistics::paired(&loss(QUALITY_RATES[0]), &loss(QUALITY_RATES[1]));
    let text = format!("{}, loss at 0.5, 500 − 1000: {} points", metric.name, super::compare::digits(&d));
    Finding::new(text, Outcome::above(&d, 0.0))
}

fn p10() -> Claim {
    Claim {
        id: "P10",
        claim: "it needs the server only: unmodified MPTCP clients work",
        criterion: "a kernel's client and dash.js in a browser play over our server with PUD and MCC, on and off",
        findings: Vec::new(),
    }
}
