//! P2, P3 and P8: how congestion windows and the throughput of a path fluctuate.

use super::compare::{Metric, Quantity, SWITCHES, VARIATION, above, digits, lower};
use super::mptcp_plus::EQUAL;
use super::seen::SETTLING;
use super::study::{Change, Condition, Study};
use crate::claims::verdict::{Claim, Finding, Outcome};
use crate::runs::set;

/// The coefficient of variation of one NewReno's sawtooth, which goes evenly from w/2 to w: (1/2)/√12 over 3/4.
const SAWTOOTH: f64 = 0.192;
/// As in P1.
const FREQUENT: f64 = 59.6;
/// A deviation that comes this near its final value has settled, as a part of it.
const SETTLED: f64 = 0.2;

/// Controls of P8, MCC last.
const CONTROLS: [&str; 4] = ["lia", "olia", "balia", "mcc"];
/// Networks of P8, with what makes them from their scenario.
const NETWORKS: [(&str, &str, bool); 3] = [
    ("500 + 500", "mptcp-plus/500-500", false),
    ("1000 + 870", "mptcp-plus/ratio-0.87", false),
    ("500 + 500, download", "mptcp-plus/500-500", true),
];
/// P3's patterns: limits whose measured throughputs come near the paper's, and these.
const PATTERNS: [(&str, &str, &str, [&str; 2]); 2] = [
    ("900 + 480", "900 kb/s", "480 kb/s", ["867.5", "461.5"]),
    ("3250 + 670", "3250 kb/s", "670 kb/s", ["3141.7", "647.4"]),
];

const SAMPLED: [Metric; 2] = [
    Metric { name: "mean of sampled throughput, path 1", unit: "kb/s", of: |s| kbps(&s.sampled_bps, 0) },
    Metric { name: "mean of sampled throughput, path 2", unit: "kb/s", of: |s| kbps(&s.sampled_bps, 1) },
];
const ESTIMATED: [Metric; 2] = [
    Metric { name: "window over round trip, path 1", unit: "kb/s", of: |s| kbps(&s.estimated_bps, 0) },
    Metric { name: "window over round trip, path 2", unit: "kb/s", of: |s| kbps(&s.estimated_bps, 1) },
];

fn kbps(rates: &[f64], path: usize) -> f64 {
    rates.get(path).map_or(f64::NAN, |bps| bps / 1e3)
}

pub(super) fn conditions() -> Vec<Condition> {
    let mut all = Vec::new();
    for (network, scenario, bulk) in NETWORKS {
        for control in CONTROLS {
            let mut changes = vec![set("transport.congestion_control", control)];
            changes.extend(bulk.then(download).into_iter().flatten());
            all.push(Condition::new(format!("{network} {control}"), scenario, changes));
        }
    }
    for (name, fast, slow, _) in PATTERNS {
        let changes = vec![set("link.path1.rate", fast), set("link.path2.rate", slow)];
        all.push(Condition::new(name, "mptcp-plus/ratio-0.49", changes));
    }
    all
}

/// A long download instead of a video: the windows alone. A little random loss, so that there is congestion avoidance, and seeds differ.
fn download() -> Vec<Change> {
    vec![
        set("session.0.video", "{ kind = \"bulk\", size = \"30 MB\" }"),
        set("session.0.player", "{ kind = \"bulk\" }"),
        set("link.path1.loss", "0.1 %"),
        set("link.path2.loss", "0.1 %"),
    ]
}

pub(super) fn p2(study: &Study) -> Claim {
    Claim {
        id: "P2",
        claim: "500 kb/s per path, coupled control: the total window fluctuates strongly and the bitrate oscillates",
        criterion: "the coefficient of variation of the total window is above 0.192, that of one NewReno's sawtooth; there is more than \
            one switch in ten media segments",
        findings: vec![above(study, EQUAL, VARIATION, SAWTOOTH), above(study, EQUAL, SWITCHES, FREQUENT)],
    }
}

fn deviation(path: usize, step: usize) -> impl Fn(&super::Seen) -> f64 {
    move |seen| seen.settling.get(path).map_or(f64::NAN, |steps| steps[step] / 1e3)
}

pub(super) fn p3(study: &Study) -> Claim {
    let mut findings = Vec::new();
    for (name, ..) in PATTERNS {
        for path in [0, 1] {
            findings.push(settles(study, name, path));
        }
        let last = SETTLING.len() - 1;
        let d =
            crate::statistics::paired(&study.values(name, deviation(0, last)), &study.values(name, deviation(1, last)));
        findings
            .push(Finding::new(format!("{name}: deviation, fast − slow {} kb/s", digits(&d)), Outcome::above(&d, 0.0)));
    }
    Claim {
        id: "P3",
        claim: "the standard deviation of sampled throughput settles by n = 150 samples; the faster path's is larger",
        criterion: "for each path of both patterns the mean deviation of the first 150 samples is within 20 % of that of all; the faster \
            path's is higher",
        findings,
    }
}

fn settles(study: &Study, name: &str, path: usize) -> Finding {
    let means: Vec<_> = (0..SETTLING.len()).map(|step| study.mean(name, deviation(path, step))).collect();
    let last = means[SETTLING.len() - 1];
    let words: Vec<String> = means.iter().map(digits).collect();
    let text = format!("{name}, path {}: deviation over 50, 150, 300, all samples {} kb/s", path + 1, words.join(", "));
    Finding::new(text, (means[1].mean / last.mean - 1.0).abs() <= SETTLED)
}

pub(super) fn p8(study: &Study) -> Claim {
    let mut findings = Vec::new();
    for (network, ..) in NETWORKS {
        for other in &CONTROLS[..3] {
            findings.push(lower(study, &format!("{network} mcc"), &format!("{network} {other}"), VARIATION));
        }
    }
    Claim {
        id: "P8",
        claim: "MCC's total window fluctuates less than LIA's, OLIA's and Balia's",
        criterion: "its coefficient of variation is lower than each of theirs, for the video over 500 + 500 and 1000 + 870 kb/s and for \
            an endless download over 500 + 500 kb/s",
        findings,
    }
}

pub(super) fn quantities(study: &Study) -> Vec<Quantity> {
    let mut all = vec![SWITCHES.quantity(study, "P2", EQUAL, "")];
    for (name, _, _, papers) in PATTERNS {
        for (metric, paper) in SAMPLED.into_iter().zip(papers) {
            all.push(metric.quantity(study, "P3", name, paper));
        }
        all.extend(ESTIMATED.map(|metric| metric.quantity(study, "P3", name, "")));
    }
    for (network, ..) in NETWORKS {
        for control in CONTROLS {
            all.push(VARIATION.quantity(study, "P8", &format!("{network} {control}"), ""));
        }
    }
    all
}
