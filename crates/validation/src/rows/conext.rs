//! Rows 10 and 11: the scenarios A and C of "MPTCP is not Pareto-optimal" (CoNEXT 2012) in their fluid limit.
//!
//! The formulas know no packets and no queueing delay: windows are large, and every path has the same round trip. The
//! testbed's networks, which ship as `conext/*`, are far from that, with windows of three to ten packets. So here
//! - rates are ten times theirs, and windows with them;
//! - RED's curve is as steep as these windows need: with losses around a per mille, a curve that reaches 10 %
//!   oscillates;
//! - the queues hold a quarter of the bandwidth-delay product, and in scenario A, where one path has two queues and the
//!   others have one, these others get a fixed delay of what the other queue adds. A first run measures it.

use super::{Check, LawRow};
use crate::runs::{TCP_PAYLOAD, queue_delay_s, set, shipped, simulate, wire_rate};
use anabranch_observation::{Metrics, SessionMetrics};

/// How many times faster than the testbed's the links are.
const SCALE: u64 = 10;
/// RED's thresholds for one of its links, in packets: a quarter of 100 Mb/s × 80 ms is 167 packets.
const THRESHOLDS: [(&str, u64); 3] = [("limit", 500), ("min", 124), ("max", 250)];
/// The loss at the upper threshold, some times what NewReno needs for a window of 67 packets, 1.5/67² = 0.034 %.
const LOSS_AT_MAX: &str = "0.25 %";
/// What the shared access point's users have together in the testbed, b/s.
const C2_TOTAL: f64 = 10e6;
/// How many users it has of their own kind.
const USERS: u64 = 10;
const TOLERANCE: f64 = 0.08;

pub(super) fn rows() -> Vec<LawRow> {
    let mut rows = Vec::new();
    for (r, target) in [(1, 0.739), (2, 0.590), (3, 0.500)] {
        rows.push(scenario_a("lia", r, Some(target)));
    }
    for (r, target) in [(1, 0.704), (2, 0.566), (3, 0.485)] {
        rows.push(scenario_c("lia", r, Some(target)));
    }
    for r in 1..=3 {
        rows.push(scenario_a("olia", r, None));
        rows.push(scenario_c("olia", r, None));
    }
    rows
}

/// The changes of a shipped scenario for a ratio `r` of users, whose own link is `own`.
fn changes(control: &str, r: u64, own: &str, shared: &str) -> Vec<(String, String)> {
    let mut list = vec![
        set("transport.congestion_control", control),
        set("transport.receive_buffer", "16 MB"),
        set("transport.send_buffer", "16 MB"),
        // The formulas know no bursts, and windows of any size.
        set("transport.whole_windows", "false"),
        set("transport.segmentation_offload", "false"),
        set("session.0.count", USERS * r),
        set("session.0.stagger", format!("{} ms", 1000 / r)),
    ];
    for (link, times) in [(own, r), (shared, 1)] {
        list.push(set(format!("link.{link}.rate"), format!("{} Mb/s", 10 * SCALE * times)));
        list.push(set(format!("link.{link}.queue.max_probability"), LOSS_AT_MAX));
        for (key, packets) in THRESHOLDS {
            list.push(set(format!("link.{link}.queue.{key}"), format!("{} packets", packets * times)));
        }
    }
    list
}

/// What the users of the shared access point get of it, on the wire.
fn share(metrics: &Metrics) -> f64 {
    wire_rate(&metrics.traffic, TCP_PAYLOAD) / (C2_TOTAL * SCALE as f64)
}

/// What a probe of one packet per round trip on each path of the multipath users takes from each of the others, over
/// C2.
fn probe(metrics: &Metrics, r: u64) -> f64 {
    let rtts = metrics.sessions.iter().filter_map(second_rtt);
    let rates: Vec<f64> = rtts.map(|rtt| crate::runs::PACKET * 8.0 / rtt).collect();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    r as f64 * mean / (C2_TOTAL * SCALE as f64 / USERS as f64)
}

fn second_rtt(session: &SessionMetrics) -> Option<f64> {
    session.transport.subflows.get(1)?.mean_srtt_s
}

fn scenario_a(control: &'static str, r: u64, target: Option<f64>) -> LawRow {
    let run = move |control: &str, seed| {
        let mut list = changes(control, r, "server", "shared");
        let first = simulate(shipped("conext/scenario-a"), &list, seed).metrics;
        // Propagation of these links is 40 ms in the scenario.
        let delayed = |queue: &str| format!("{:.6} s", 0.040 + queue_delay_s(&first, queue));
        list.push(set("link.private.rtt", delayed("shared")));
        list.push(set("link.other-server.rtt", delayed("server")));
        simulate(shipped("conext/scenario-a"), &list, seed).metrics
    };
    row(10, 'A', control, r, target, "z + r z²/(1 + 2z²) = C2/C1, y = z C1", run)
}

fn scenario_c(control: &'static str, r: u64, target: Option<f64>) -> LawRow {
    let run = move |control: &str, seed| {
        simulate(shipped("conext/scenario-c"), &changes(control, r, "ap1", "ap2"), seed).metrics
    };
    row(11, 'C', control, r, target, "z³ + r z² + z = C2/C1, y = z (1 + z²) C1", run)
}

/// With a target the share, for LIA; without one the share over what probes leave, and over the share with LIA.
fn row(
    number: u32,
    scenario: char,
    control: &'static str,
    r: u64,
    target: Option<f64>,
    formula: &'static str,
    run: impl Fn(&str, u64) -> Metrics + Send + Sync + 'static,
) -> LawRow {
    let checks = match target {
        Some(target) => vec![Check::near("y/C2", formula, target, TOLERANCE)],
        None => vec![
            Check::near("y/C2 over 1 − probes", "1 − (N1/N2)(1 packet/rtt)/C2", 1.0, TOLERANCE).deviating(OLIA),
            Check::at_least("y over that with LIA", "less aggressive on the bad path than LIA", 1.0),
        ],
    };
    LawRow {
        number,
        network: format!("CoNEXT'12 scenario {scenario}, {control}, N1/N2 = {r}"),
        checks,
        seeds: 3,
        quick_seeds: 0,
        measure: Box::new(move |seed| {
            let metrics = run(control, seed);
            match target {
                Some(_) => vec![share(&metrics)],
                None => vec![share(&metrics) / (1.0 - probe(&metrics, r)), share(&metrics) / share(&run("lia", seed))],
            }
        }),
    }
}

const OLIA: &str = "the fluid's optimum is one packet on the bad path; with finite windows OLIA keeps more there, as in the window model of row 7, because either path looks better in turn by chance";
