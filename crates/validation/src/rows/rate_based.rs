//! Row 14: what BBR's coupled form takes from others, and what it makes of links of its own.
//!
//! The yardstick at a common bottleneck is one BBR, which takes more from loss-based flows than these take from each
//! other. With a BBR whose pace leaves room for headers, as that of `cbbr` does, the subflows together have to get as
//! much as it does. Linux's own is faster, and its row says only that they do not take more than it.

use super::{Check, LawRow};
use crate::runs::{MPTCP_PAYLOAD, TCP_PAYLOAD, set, simulate, wire_rate};

/// From seed to seed the competitors start this much later: no multiple of the round trip or of a packet's time.
const PHASE_S: f64 = 0.137;
/// One bandwidth-delay product of the bottleneck, 10 Mb/s and 40 ms.
const PIPE_KB: u32 = 50;

/// The BBR that is as fast as `cbbr`, which is the reference of docs/validation/one-pipe.md, and Linux's.
const REFERENCE: Competitor = Competitor {
    name: "bbr of the reference",
    control: "{ name = \"bbr\", pace = \"packets\", startup_losses = \"always\" }",
};
const LINUX: Competitor = Competitor { name: "bbr", control: "bbr" };
const CUBIC: Competitor = Competitor { name: "cubic", control: "cubic" };
const NEWRENO: Competitor = Competitor { name: "newreno", control: "newreno" };

/// A TCP at the bottleneck.
#[derive(Clone, Copy)]
struct Competitor {
    name: &'static str,
    /// Its congestion control, as in a scenario.
    control: &'static str,
}

pub(super) fn rows() -> Vec<LawRow> {
    let mut rows = Vec::new();
    for pipes in [1, 2] {
        let over_tcp = "share over the TCP's";
        rows.push(share(pipes, REFERENCE, 1, Check::near(over_tcp, "ours: as one BBR", 1.0, 0.15)));
        rows.push(share(pipes, LINUX, 1, Check::at_most(over_tcp, "ours: as one BBR", 1.15)));
        rows.push(share(pipes, CUBIC, 1, Check::at_most(over_tcp, "ours", 1.35)));
        rows.push(share(pipes, NEWRENO, 1, Check::at_most(over_tcp, "ours", 1.6)));
        rows.push(share(pipes, CUBIC, 5, Check::at_least("least TCP over a fair share", "ours", 0.25)));
    }
    rows.push(alone());
    rows.push(contended());
    rows
}

const SHARED: &str = r#"
schema = 1
duration = "120 s"
warm_up = "20 s"
[transport]
congestion_control = "cbbr"
scheduler = "earliest"
opportunistic_retransmission = false
penalisation = false
receive_buffer = "8 MB"
[link.bottleneck]
rtt = "40 ms"
rate = "10 Mb/s"
[link.a]
rate = "unlimited"
[link.b]
rate = "unlimited"
[path.a]
links = ["a", "bottleneck"]
[path.b]
links = ["b", "bottleneck"]
[[session]]
paths = ["a", "b"]
[[traffic]]
path = "a"
"#;

/// Both subflows through one drop-tail bottleneck, together with plain TCPs.
fn share(pipes: u32, competitor: Competitor, count: u32, check: Check) -> LawRow {
    let measure = move |seed: u64| {
        let changes = [
            set("link.bottleneck.queue", format!("\"{} kB\"", pipes * PIPE_KB)),
            set("traffic.0.congestion_control", competitor.control),
            set("traffic.0.count", count),
            set("traffic.0.stagger", "0.3 s"),
            set("traffic.0.start", format!("{} s", 1.0 + PHASE_S * seed as f64)),
        ];
        let metrics = simulate(SHARED, &changes, seed).metrics;
        let ours = wire_rate(&metrics.sessions, MPTCP_PAYLOAD);
        let theirs: Vec<f64> =
            metrics.traffic.iter().map(|flow| wire_rate(std::slice::from_ref(flow), TCP_PAYLOAD)).collect();
        let sum: f64 = theirs.iter().sum();
        if count == 1 {
            return vec![ours / sum];
        }
        let fair = (ours + sum) / f64::from(count + 1);
        vec![theirs.iter().copied().fold(f64::INFINITY, f64::min) / fair]
    };
    let plural = if count == 1 { "" } else { "s" };
    LawRow {
        number: 14,
        network: format!(
            "cbbr with both paths through 10 Mb/s, queue of {pipes} BDP, and {count} {}{plural}",
            competitor.name
        ),
        checks: vec![check],
        seeds: 10,
        quick_seeds: if competitor.name == REFERENCE.name { QUICK_SEEDS } else { 0 },
        measure: Box::new(measure),
    }
}

/// The share of a single seed deviates by 0.12 from the mean, which is nearly the tolerance.
const QUICK_SEEDS: u64 = 5;

const SEPARATE: &str = r#"
schema = 1
duration = "120 s"
warm_up = "20 s"
[transport]
opportunistic_retransmission = false
penalisation = false
receive_buffer = "8 MB"
[link.fast]
rtt = "40 ms"
rate = "8 Mb/s"
queue = "40 kB"
[link.slow]
rtt = "80 ms"
rate = "4 Mb/s"
queue = "40 kB"
[[session]]
start_spread = "1 s"
"#;

/// The wire rate of the session over these paths, with what else the changes say.
fn session(text: &str, changes: &[(&str, &str)], payload: f64, seed: u64) -> f64 {
    let changes: Vec<_> = changes.iter().map(|(key, value)| set(*key, *value)).collect();
    wire_rate(&simulate(text, &changes, seed).metrics.sessions, payload)
}

const OURS: [(&str, &str); 2] = [("transport.congestion_control", "cbbr"), ("transport.scheduler", "earliest")];

/// One BBR over TCP on a path.
fn single(text: &str, path: &str, control: &str, seed: u64) -> f64 {
    let paths = format!("[\"{path}\"]");
    let changes =
        [("transport.protocol", "tcp"), ("transport.congestion_control", control), ("session.0.paths", paths.as_str())];
    session(text, &changes, TCP_PAYLOAD, seed)
}

/// Two links without others: as much as one TCP on each.
fn alone() -> LawRow {
    let measure = |seed| {
        let sum: f64 = ["fast", "slow"].iter().map(|path| single(SEPARATE, path, "bbr", seed)).sum();
        vec![session(SEPARATE, &OURS, MPTCP_PAYLOAD, seed) / sum]
    };
    LawRow {
        number: 14,
        network: "cbbr over 8 and 4 Mb/s, no other traffic".into(),
        checks: vec![Check::at_least("total over two single BBRs", "ours", 0.95)],
        seeds: 5,
        quick_seeds: 1,
        measure: Box::new(measure),
    }
}

/// The same with a CUBIC on each link.
fn contended() -> LawRow {
    let text = format!(
        "{SEPARATE}[[traffic]]\npath = \"fast\"\nstart = \"1 s\"\nstart_spread = \"1 s\"\n[[traffic]]\npath = \"slow\"\nstart = \"2 s\"\nstart_spread = \"1 s\"\n"
    );
    let measure = move |seed| {
        let best = single(&text, "fast", "cubic", seed).max(single(&text, "slow", "cubic", seed));
        vec![session(&text, &OURS, MPTCP_PAYLOAD, seed) / best]
    };
    LawRow {
        number: 14,
        network: "cbbr over 8 and 4 Mb/s, one CUBIC on each".into(),
        checks: vec![Check::at_least("total over the best path's CUBIC", "ours; RFC 6356, goal 1", 0.95)],
        seeds: 10,
        quick_seeds: 0,
        measure: Box::new(measure),
    }
}
