//! Rows 1, 2 and 4: one sender, one path, losses that do not depend on it.

use super::{Check, LawRow};
use crate::runs::{EXACT_CUBIC, IDEAL_SENDER, TCP_PAYLOAD, Windows, ideal_pipe, simulate, timing, windows};

/// The windows of a plain TCP download over the ideal pipe.
pub(super) fn measure(control: &str, loss: &str, seconds: f64, seed: u64) -> Windows {
    let text = format!(
        "{}[transport]\nprotocol = \"tcp\"\ncongestion_control = {control}\n{IDEAL_SENDER}{}[[session]]\n",
        timing(seconds),
        ideal_pipe("pipe", loss)
    );
    windows(&simulate(&text, &[], seed), TCP_PAYLOAD)[0]
}

/// Random loss of this probability, as a scenario writes it.
pub(super) fn random(p: f64) -> String {
    format!("\"{} %\"", p * 100.0)
}

/// Why the delivered rate lies below the window at small windows.
pub(super) const SMALL_WINDOWS: &str = "whole packets only (0.4 of a packet per round trip lie idle), the receiver delays its \
    acknowledgment of the last odd packet, lost packets are not delivered, none grows a window while a loss is repaired";

pub(super) fn rows() -> Vec<LawRow> {
    let mut rows = Vec::new();
    // About two thousand losses per seed.
    for (p, constant, tolerance, seconds, seeds, quick_seeds) in [
        (0.02, 1.20, 0.10, 2000.0, 10, 3),
        (0.01, 1.24, 0.05, 2000.0, 10, 3),
        (1e-3, 1.286, 0.05, 5000.0, 10, 1),
        (1e-4, 1.30, 0.05, 15_000.0, 4, 0),
    ] {
        rows.push(newreno_random(p, constant, tolerance, seconds, seeds, quick_seeds));
    }
    for (n, seconds, quick_seeds) in [(1000, 1000.0, 0), (10_000, 2000.0, 1), (100_000, 6000.0, 0)] {
        rows.push(newreno_periodic(n, seconds, quick_seeds));
    }
    let rfc = "{ name = \"cubic\", constants = \"rfc9438\" }";
    for (control, name, targets) in
        [(EXACT_CUBIC, "Linux", [8.7, 12.5, 43.9, 214.0]), (rfc, "RFC 9438", [9.6, 13.9, 47.0, 214.0])]
    {
        // The constants differ in two numbers, so the normal suite takes the widest windows with one set only.
        let wide = u64::from(name == "Linux");
        let networks = [(0.02, 2000.0, 10, 3), (0.01, 2000.0, 10, 3), (1e-3, 5000.0, 10, wide), (1e-4, 8000.0, 4, 0)];
        for ((p, seconds, seeds, quick_seeds), target) in networks.into_iter().zip(targets) {
            rows.push(cubic_random((control, name), p, target, seconds, seeds, quick_seeds));
        }
    }
    rows
}

fn newreno_random(p: f64, constant: f64, tolerance: f64, seconds: f64, seeds: u64, quick_seeds: u64) -> LawRow {
    LawRow {
        number: 1,
        network: format!("NewReno, random loss p = {p}"),
        checks: vec![Check::near("x rtt √p", "window model", constant, tolerance)],
        seeds,
        quick_seeds,
        measure: Box::new(move |seed| vec![measure("\"newreno\"", &random(p), seconds, seed).delivered * p.sqrt()]),
    }
}

fn newreno_periodic(n: u32, seconds: f64, quick_seeds: u64) -> LawRow {
    let root = f64::from(n).sqrt();
    let check = Check::near("w √p", "√(3/2), Mathis et al.", 1.5_f64.sqrt(), 0.03);
    let check = match n {
        1000 => check.deviating(
            "a loss costs about a round trip without growth; that is a twenty-fifth of the 25 round trips between losses",
        ),
        _ => check,
    };
    LawRow {
        number: 2,
        network: format!("NewReno, every {n}th packet lost"),
        checks: vec![check],
        seeds: 1,
        quick_seeds,
        measure: Box::new(move |seed| {
            let loss = format!("{{ kind = \"every-nth\", n = {n} }}");
            vec![measure("\"newreno\"", &loss, seconds, seed).delivered / root]
        }),
    }
}

fn cubic_random(
    (control, name): (&'static str, &str),
    p: f64,
    target: f64,
    seconds: f64,
    seeds: u64,
    quick_seeds: u64,
) -> LawRow {
    let delivered = Check::near("delivered per round trip", "window model", target, 0.07);
    let small = p > 0.01;
    let delivered = if small { delivered.deviating(SMALL_WINDOWS) } else { delivered };
    let mut checks = vec![delivered];
    if small {
        checks.push(Check::near("congestion window", "window model", target, 0.07));
    }
    LawRow {
        number: 4,
        network: format!("CUBIC with the constants of {name}, random loss p = {p}"),
        checks,
        seeds,
        quick_seeds,
        measure: Box::new(move |seed| {
            let w = measure(control, &random(p), seconds, seed);
            if small { vec![w.delivered, w.congestion] } else { vec![w.delivered] }
        }),
    }
}
