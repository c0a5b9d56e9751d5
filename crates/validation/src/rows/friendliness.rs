//! Row 13: the goals of RFC 6356, section 2.1.

use super::{Check, LawRow};
use crate::runs::{MPTCP_PAYLOAD, TCP_PAYLOAD, set, shipped, simulate, wire_rate};

/// RFC 6356 is LIA's; OLIA and BALIA promise the same. MCC's promise is a paper's claim.
const CONTROLS: [&str; 4] = ["lia", "olia", "balia", "mcc"];

/// The drop-tail queue that replaces RED: one bandwidth-delay product of 10 Mb/s and 80 ms.
const DROP_TAIL: &str = "100 kB";

/// From seed to seed the competitor starts this much later: no multiple of the round trip or of a packet's time.
const PHASE_S: f64 = 0.137;

pub(super) fn rows() -> Vec<LawRow> {
    let mut rows = Vec::new();
    for control in CONTROLS {
        rows.push(improve_throughput(control));
        rows.push(do_no_harm(control, false));
        rows.push(do_no_harm(control, true));
    }
    rows
}

/// Two access links with a smooth loss curve, each with one NewReno of its own on it. The session's paths follow.
const TWO_LINKS: &str = r#"
schema = 1
duration = "320 s"
warm_up = "20 s"
[transport]
receive_buffer = "8 MB"
send_buffer = "8 MB"
[link.fast]
rtt = "40 ms"
rate = "20 Mb/s"
queue = { kind = "red", limit = "200 packets", min = "50 packets", max = "100 packets", max_probability = "10 %" }
[link.slow]
rtt = "80 ms"
rate = "10 Mb/s"
queue = { kind = "red", limit = "100 packets", min = "25 packets", max = "50 packets", max_probability = "10 %" }
[[session]]
[[traffic]]
path = "fast"
congestion_control = "newreno"
start = "1 s"
[[traffic]]
path = "slow"
congestion_control = "newreno"
start = "2 s"
"#;

/// Goal 1: a multipath user gets at least what plain TCP would get on the best of the paths, against the same
/// competitors.
fn improve_throughput(control: &'static str) -> LawRow {
    let measure = move |seed| {
        let session = |changes: &[(String, String)], payload| {
            wire_rate(&simulate(TWO_LINKS, changes, seed).metrics.sessions, payload)
        };
        let alone = |path: &str| {
            let changes = [
                set("transport.protocol", "tcp"),
                set("transport.congestion_control", "newreno"),
                set("session.0.paths", format!("[\"{path}\"]")),
            ];
            session(&changes, TCP_PAYLOAD)
        };
        let best = alone("fast").max(alone("slow"));
        vec![session(&[set("transport.congestion_control", control)], MPTCP_PAYLOAD) / best]
    };
    LawRow {
        number: 13,
        network: format!("{control} over 20 Mb/s and 10 Mb/s, one NewReno on each (RED)"),
        checks: vec![Check::at_least("total over the best path's TCP", "RFC 6356, goal 1", 0.9)],
        seeds: 10,
        quick_seeds: u64::from(control == "lia"),
        measure: Box::new(measure),
    }
}

/// Goal 2: on a bottleneck that all its paths share, a multipath user takes no more than one TCP.
fn do_no_harm(control: &'static str, drop_tail: bool) -> LawRow {
    let measure = move |seed| {
        // Without a random queue only the phase of the two downloads varies; so the competitor starts at another time
        // each.
        let start = format!("{} s", 1.0 + PHASE_S * seed as f64);
        let mut changes = vec![set("transport.congestion_control", control), set("traffic.0.start", start)];
        if drop_tail {
            changes.push(set("link.bottleneck.queue", format!("\"{DROP_TAIL}\"")));
        }
        let metrics = simulate(shipped("fairness/shared-bottleneck"), &changes, seed).metrics;
        vec![wire_rate(&metrics.sessions, MPTCP_PAYLOAD) / wire_rate(&metrics.traffic, TCP_PAYLOAD)]
    };
    let queue = if drop_tail { "drop-tail" } else { "RED" };
    LawRow {
        number: 13,
        network: format!("{control} with both paths through one bottleneck ({queue}), and one NewReno"),
        checks: vec![Check::at_most("share over the TCP's", "RFC 6356, goal 2", 1.15)],
        seeds: 10,
        quick_seeds: u64::from(control == "lia" && !drop_tail),
        measure: Box::new(measure),
    }
}
