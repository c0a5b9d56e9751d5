//! D1 to D8: "Performance of DASH over Multipath TCP". D9, the cause, is in a file of its own.

use super::compare::{
    BITRATE, BUFFER_DEVIATION, HIGH_QUALITY, IMPACTFUL, Quantity, STARTUP, SWITCHES, higher, lower, near,
};
use super::dash_cause;
use super::study::{Change, Condition, Study, Variant};
use crate::claims::verdict::{Claim, Finding, Outcome};
use crate::runs::set;

/// Lengths of media segments, and the ladders that have them.
pub(super) const LENGTHS: [(&str, &str); 3] = [("1 s", "bbb-1s"), ("6 s", "bbb-6s"), ("10 s", "bbb-10s")];
/// Ratios of the paths' rates, and the scenarios that have them.
pub(super) const RATIOS: [(&str, &str); 5] = [
    ("1:1", "dash/ratio-1-1"),
    ("1:2", "dash/ratio-1-2"),
    ("1:3", "dash/ratio-1-3"),
    ("1:4", "dash/ratio-1-4"),
    ("1:5", "dash/ratio-1-5"),
];
const REFERENCES: [(&str, &str); 2] = [("TCP 2000", "dash/tcp-2000"), ("TCP 1667", "dash/tcp-1667")];

/// A condition's name.
pub(super) fn name(length: &str, network: &str) -> String {
    format!("{length} {network}")
}

/// Every condition of the paper.
pub fn conditions() -> Vec<Condition> {
    let mut all = Vec::new();
    for (length, ladder) in LENGTHS {
        for (network, scenario) in RATIOS.into_iter().chain(REFERENCES) {
            all.push(Condition::new(name(length, network), scenario, vec![set("session.0.video.ladder", ladder)]));
        }
    }
    all
}

fn player(kind: &str, strategy: &str) -> Vec<Change> {
    let strategy = if strategy.is_empty() { String::new() } else { format!("strategy = \"{strategy}\", ") };
    vec![set("session.0.player", format!("{{ kind = \"{kind}\", {strategy}max_resolution = \"1280x720\" }}"))]
}

/// MPTCP's control only: the reference is plain TCP.
fn control(condition: &Condition, control: &str) -> Vec<Change> {
    let plain = condition.scenario.starts_with("dash/tcp-");
    if plain { Vec::new() } else { vec![set("transport.congestion_control", control)] }
}

fn old_player_and_cubic(condition: &Condition) -> Vec<Change> {
    let mut changes = player("dash.js-2.2", "");
    changes.extend(control(condition, "cubic"));
    changes
}

/// The shipped scenarios, and what the paper leaves open set otherwise.
pub const VARIANTS: [Variant; 18] = [
    Variant { name: "as shipped", change: |_| Vec::new() },
    Variant { name: "Cubic on each path", change: |c| control(c, "cubic") },
    Variant { name: "OLIA", change: |c| control(c, "olia") },
    Variant { name: "DYNAMIC", change: |_| player("dash.js-2.9", "dynamic") },
    Variant { name: "ThroughputRule", change: |_| player("dash.js-2.9", "throughput") },
    Variant { name: "dash.js 2.2", change: |_| player("dash.js-2.2", "") },
    Variant { name: "dash.js 2.2, Cubic on each path", change: old_player_and_cubic },
    Variant { name: "dash.js 5, BOLA", change: |_| player("dash.js-5", "bola") },
    Variant { name: "queue of 20 packets", change: |c| c.on_links("queue", "20 packets") },
    Variant { name: "queue of 1000 packets", change: |c| c.on_links("queue", "1000 packets") },
    Variant { name: "30 ms is the round trip", change: |c| c.on_links("delay", "15 ms") },
    Variant { name: "loss upwards too", change: |c| c.on_links("up", "{ loss = \"0.5 %\" }") },
    Variant { name: "losses in pairs", change: |c| c.on_links("loss", PAIRS) },
    Variant { name: "constant sizes", change: |_| vec![set("session.0.video.scene_variation", 0)] },
    Variant { name: "receive buffer of 64 kB", change: |_| vec![set("transport.receive_buffer", "64 kB")] },
    Variant { name: "committed into the send buffer", change: |_| vec![set("transport.commit", "into-buffer")] },
    Variant { name: "round-robin", change: |_| vec![set("transport.scheduler", "round-robin")] },
    Variant { name: "given-up responses drain", change: |_| vec![set("session.0.player.give_up", "drain")] },
];

/// netem drops what the sender's offloading left together: 0.5 % of all packets, two at a time.
const PAIRS: &str = "{ kind = \"gilbert-elliott\", good_to_bad = \"0.25 %\", bad_to_good = \"50 %\" }";

/// D1's and D3's numbers: length, ratio, value.
const D1_NUMBERS: [(&str, &str, f64, &str); 4] = [
    ("1 s", "1:1", 64.9, "64.9"),
    ("1 s", "1:5", 22.0, "22.0"),
    ("10 s", "1:1", 90.7, "90.7"),
    ("10 s", "1:5", 59.2, "59.2"),
];
const D3_NUMBERS: [(&str, &str, f64, &str); 4] = [
    ("1 s", "1:1", 33.5, "33.5"),
    ("6 s", "1:1", 9.9, "9.9"),
    ("10 s", "1:1", 5.0, "5"),
    ("10 s", "1:5", 20.8, "20.8"),
];
/// Start-up at 1:1 with the paper's "mean-square errors".
const D6_NUMBERS: [(&str, f64, f64, &str); 3] =
    [("1 s", 0.8, 0.42, "0.8 ± 0.42"), ("6 s", 3.7, 1.16, "3.7 ± 1.16"), ("10 s", 6.6, 1.17, "6.6 ± 1.17")];
/// How near a share of time has to come, in points.
const NEAR_POINTS: f64 = 10.0;
/// How near a number of switches has to come, as a part of the paper's.
const NEAR_PART: f64 = 0.5;

/// D1 to D9.
pub fn claims(study: &Study) -> Vec<Claim> {
    vec![d1(study), d2(study), d3(study), d4(study), d5(study), d6(study), d7(study), d8(study), dash_cause::d9(study)]
}

/// What the paper gives numbers for, and the means behind the other claims.
pub fn quantities(study: &Study) -> Vec<Quantity> {
    let mut all = Vec::new();
    for (length, ratio, _, paper) in D1_NUMBERS {
        all.push(HIGH_QUALITY.quantity(study, "D1", &name(length, ratio), paper));
    }
    for (length, ratio, _, paper) in D3_NUMBERS {
        all.push(IMPACTFUL.quantity(study, "D3", &name(length, ratio), paper));
    }
    for (length, _) in LENGTHS {
        for ratio in ["1:1", "1:5"] {
            all.push(SWITCHES.quantity(study, "D4", &name(length, ratio), ""));
        }
    }
    for (length, _) in LENGTHS {
        for network in ["1:1", "1:5", "TCP 2000", "TCP 1667"] {
            let claim = if network.starts_with("TCP") { "D7" } else { "D5" };
            all.push(BITRATE.quantity(study, claim, &name(length, network), ""));
        }
    }
    for (length, _, _, paper) in D6_NUMBERS {
        all.push(STARTUP.quantity(study, "D6", &name(length, "1:1"), paper));
    }
    for (length, _) in LENGTHS {
        all.push(BUFFER_DEVIATION.quantity(study, "D8", &name(length, "1:1"), ""));
    }
    all.extend(dash_cause::quantities(study));
    all
}

fn d1(study: &Study) -> Claim {
    let number = |(length, ratio, paper, _): &(&str, &str, f64, &str)| {
        near(study, &name(length, ratio), HIGH_QUALITY, *paper, NEAR_POINTS)
    };
    Claim {
        id: "D1",
        claim: "time on high quality: 1 s segments 64.9 % at 1:1 falling to 22.0 % at 1:5; 10 s segments 90.7 % falling to 59.2 %",
        criterion: "each of the four means is within 10 points of the paper's",
        findings: D1_NUMBERS.iter().map(number).collect(),
    }
}

fn d2(study: &Study) -> Claim {
    let falls = |(length, _): (&str, &str)| lower(study, &name(length, "1:5"), &name(length, "1:1"), HIGH_QUALITY);
    let longer = |(ratio, _): (&str, &str)| higher(study, &name("10 s", ratio), &name("1 s", ratio), HIGH_QUALITY);
    Claim {
        id: "D2",
        claim: "time on high quality falls as the ratio grows, and longer segments do better",
        criterion: "for each length it is lower at 1:5 than at 1:1; at each ratio it is higher with 10 s than with 1 s",
        findings: LENGTHS.into_iter().map(falls).chain(RATIOS.into_iter().map(longer)).collect(),
    }
}

fn d3(study: &Study) -> Claim {
    let number = |(length, ratio, paper, _): &(&str, &str, f64, &str)| {
        near(study, &name(length, ratio), IMPACTFUL, *paper, paper * NEAR_PART)
    };
    let mut findings: Vec<Finding> = D3_NUMBERS.iter().map(number).collect();
    findings.push(higher(study, &name("10 s", "1:5"), &name("10 s", "1:1"), IMPACTFUL));
    Claim {
        id: "D3",
        claim: "impactful switches at 1:1: 33.5 (1 s), 9.9 (6 s), 5 (10 s); 10 s at 1:5: 20.8",
        criterion: "each of the four means is within half of the paper's value; with 10 s there are more at 1:5 than at 1:1",
        findings,
    }
}

fn d4(study: &Study) -> Claim {
    let mut findings = Vec::new();
    for (ratio, _) in RATIOS {
        for longer in ["6 s", "10 s"] {
            findings.push(higher(study, &name("1 s", ratio), &name(longer, ratio), SWITCHES));
        }
    }
    for length in ["6 s", "10 s"] {
        findings.push(higher(study, &name(length, "1:5"), &name(length, "1:1"), SWITCHES));
    }
    Claim {
        id: "D4",
        claim: "switches: 1 s segments have far more than 6 and 10 s; they tend to rise with the ratio (1 s: not monotonic)",
        criterion: "at each ratio 1 s has more than 6 s and 10 s; with 6 s and 10 s there are more at 1:5 than at 1:1",
        findings,
    }
}

fn d5(study: &Study) -> Claim {
    let falls = |(length, _): (&str, &str)| lower(study, &name(length, "1:5"), &name(length, "1:1"), BITRATE);
    Claim {
        id: "D5",
        claim: "mean bitrate falls as the ratio grows",
        criterion: "for each length it is lower at 1:5 than at 1:1",
        findings: LENGTHS.into_iter().map(falls).collect(),
    }
}

fn d6(study: &Study) -> Claim {
    let number =
        |(length, paper, error, _): &(&str, f64, f64, &str)| near(study, &name(length, "1:1"), STARTUP, *paper, *error);
    Claim {
        id: "D6",
        claim: "start-up latency at 1:1: 0.8 ± 0.42 s (1 s), 3.7 ± 1.16 s (6 s), 6.6 ± 1.17 s (10 s)",
        criterion: "each mean is within the error that the paper gives",
        findings: D6_NUMBERS.iter().map(number).collect(),
    }
}

/// Better in bitrate or time on high quality, and for certain worse in neither.
fn beats(study: &Study, winner: &str, loser: &str) -> Finding {
    let better = [BITRATE, HIGH_QUALITY].map(|metric| (metric, study.difference(winner, loser, metric.of)));
    let text: Vec<String> = better
        .iter()
        .map(|(metric, d)| format!("{} {} {}", metric.name, super::compare::digits(d), metric.unit))
        .collect();
    let certainly_worse = better.iter().any(|(_, d)| d.high() < 0.0);
    let outcome = match better.each_ref().map(|(_, d)| Outcome::above(d, 0.0)) {
        _ if certainly_worse => Outcome::Fails,
        both if both.contains(&Outcome::Holds) => Outcome::Holds,
        both if both.contains(&Outcome::Undecided) => Outcome::Undecided,
        _ => Outcome::Fails,
    };
    Finding::new(format!("{winner} − {loser}: {}", text.join(", ")), outcome)
}

fn d7(study: &Study) -> Claim {
    let mut findings = Vec::new();
    for (length, _) in LENGTHS {
        for (ratio, _) in RATIOS {
            findings.push(beats(study, &name(length, "TCP 2000"), &name(length, ratio)));
        }
        findings.push(beats(study, &name(length, "TCP 1667"), &name(length, "1:5")));
    }
    Claim {
        id: "D7",
        claim: "one TCP of 2000 kb/s beats MPTCP at every ratio; one TCP of 1667 kb/s beats MPTCP at 1:5",
        criterion: "for each length it is higher in mean bitrate or time on high quality, and lower in neither",
        findings,
    }
}

fn d8(study: &Study) -> Claim {
    let pairs = [("1 s", "6 s"), ("6 s", "10 s"), ("1 s", "10 s")];
    let steadier = |(a, b): (&str, &str)| lower(study, &name(a, "1:1"), &name(b, "1:1"), BUFFER_DEVIATION);
    Claim {
        id: "D8",
        claim: "shorter segments keep the buffer level steadier",
        criterion: "at 1:1 the standard deviation of the buffer level is lower with 1 s than with 6 s, and so on",
        findings: pairs.into_iter().map(steadier).collect(),
    }
}
