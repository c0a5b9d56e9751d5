//! P9: the three goals of RFC 6356, section 2.1, for MCC with PUD.

use super::compare::digits;
use crate::claims::Tick;
use crate::claims::verdict::{Claim, Finding, Outcome};
use crate::rows::{Target, all};
use crate::runs::{MPTCP_PAYLOAD, TCP_PAYLOAD, set, simulate, wire_rate};
use crate::statistics::{Mean, paired};
use rayon::prelude::*;

/// Goals 1 and 2 are row 13 of the laws, which measures MCC too.
const ROW: u32 = 13;

/// Two equal links with a smooth loss curve; one NewReno competes on the first and four on the second.
const UNEQUALLY_CONGESTED: &str = r#"
schema = 1
duration = "220 s"
warm_up = "20 s"
[transport]
congestion_control = "mcc"
path_policy = "pud"
receive_buffer = "8 MB"
send_buffer = "8 MB"
[link.calm]
rtt = "60 ms"
rate = "10 Mb/s"
queue = { kind = "red", limit = "100 packets", min = "25 packets", max = "50 packets", max_probability = "10 %" }
[link.busy]
rtt = "60 ms"
rate = "10 Mb/s"
queue = { kind = "red", limit = "100 packets", min = "25 packets", max = "50 packets", max_probability = "10 %" }
[[session]]
[[traffic]]
path = "calm"
congestion_control = "newreno"
start = "1 s"
[[traffic]]
path = "busy"
congestion_control = "newreno"
count = 4
start = "2 s"
stagger = "137 ms"
"#;

pub(super) fn p9(seeds: u64, tick: Tick<'_>) -> Option<Claim> {
    let mut findings = goals_one_and_two(seeds);
    if !tick() {
        return None;
    }
    findings.push(balances_congestion(seeds));
    tick().then_some(Claim {
        id: "P9",
        claim: "MPTCP+ is TCP-friendly (RFC 6356 goals 1-3)",
        criterion: "goals 1 and 2 as in the laws' row 13: at least 0.9 of the best path's TCP, at most 1.15 of a TCP on a shared \
            bottleneck; goal 3: with PUD, on the path with four competitors it takes less than each of them, for certain",
        findings,
    })
}

fn goals_one_and_two(seeds: u64) -> Vec<Finding> {
    let rows = all().into_iter().filter(|row| row.number == ROW && row.network.starts_with("mcc"));
    let measured: Vec<_> = rows.map(|row| row.measure(seeds)).collect();
    let finding = |network: &str, check: &crate::rows::Check, mean: Mean| {
        let bound = match check.target {
            Target::AtMost(bound) => format!("at most {bound}"),
            Target::AtLeast(bound) => format!("at least {bound}"),
            Target::Near { value, .. } => format!("about {value}"),
        };
        let text = format!("{network}: {} {}, {bound}", check.what, digits(&mean));
        Finding::new(text, check.target.is_met(mean.mean))
    };
    measured
        .iter()
        .flat_map(|m| m.results().map(|(check, mean)| finding(&m.row.network, check, mean)).collect::<Vec<_>>())
        .collect()
}

fn balances_congestion(seeds: u64) -> Finding {
    let rates = |seed: u64| {
        let metrics =
            simulate(UNEQUALLY_CONGESTED, &[set("traffic.1.stagger", format!("{} ms", 137 + seed))], seed).metrics;
        let subflows = &metrics.sessions[0].transport.subflows;
        let own: f64 = subflows.iter().filter(|s| s.path == "busy").map(|s| s.goodput_bps / MPTCP_PAYLOAD).sum();
        let competitors = &metrics.traffic[1..];
        let other = wire_rate(competitors, TCP_PAYLOAD) / competitors.len() as f64;
        (own * crate::runs::PACKET / 1e3, other / 1e3)
    };
    let (own, other): (Vec<f64>, Vec<f64>) = (1..=seeds).into_par_iter().map(rates).unzip();
    let d = paired(&own, &other);
    let text = format!(
        "goal 3, on the congested path: {} kb/s, each competitor {} kb/s",
        digits(&Mean::of(&own)),
        digits(&Mean::of(&other))
    );
    Finding::new(text, Outcome::below(&d, 0.0))
}
