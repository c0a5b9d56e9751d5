//! Rows 6 to 9: coupled controllers on two paths with losses of their own.

use super::single_path::{SMALL_WINDOWS, measure as measure_tcp, random};
use super::{Check, LawRow};
use crate::runs::{IDEAL_SENDER, MPTCP_PAYLOAD, Windows, ideal_pipe, simulate, timing, windows};

/// A controller's row: its number and name, the total over NewReno's at equal losses, and the windows at unequal ones.
struct Law {
    number: u32,
    control: &'static str,
    total: f64,
    /// At losses of 1e-3 and 4e-3.
    windows: [f64; 2],
    /// At a tenth of these losses: the project's reference program (window-laws.c), 400 000 s.
    wider: [f64; 2],
}

const LAWS: [Law; 4] = [
    Law { number: 6, control: "lia", total: 1.10, windows: [31.3, 7.9], wider: [100.0, 24.8] },
    Law { number: 7, control: "olia", total: 1.01, windows: [32.3, 5.1], wider: [106.3, 13.7] },
    Law { number: 8, control: "balia", total: 1.06, windows: [32.7, 6.7], wider: [105.4, 20.1] },
    Law { number: 9, control: "mcc", total: 1.00, windows: [37.4, 2.6], wider: [127.0, 2.56] },
];

const TOLERANCE: f64 = 0.08;

pub(super) fn rows() -> Vec<LawRow> {
    LAWS.iter().flat_map(|law| [equal(law), unequal(law), wider(law)]).collect()
}

/// The windows of a Multipath TCP download over two ideal pipes.
fn measure(control: &str, losses: [f64; 2], seconds: f64, seed: u64) -> Vec<Windows> {
    let text = format!(
        "{}[transport]\ncongestion_control = \"{control}\"\n{IDEAL_SENDER}{}{}[[session]]\n",
        timing(seconds),
        ideal_pipe("one", &random(losses[0])),
        ideal_pipe("two", &random(losses[1]))
    );
    windows(&simulate(&text, &[], seed), MPTCP_PAYLOAD)
}

fn equal(law: &Law) -> LawRow {
    let control = law.control;
    LawRow {
        number: law.number,
        network: format!("{control}, p = 0.001 and 0.001"),
        checks: vec![Check::near("total over NewReno's", "window model", law.total, TOLERANCE)],
        seeds: 6,
        quick_seeds: 0,
        measure: Box::new(move |seed| {
            const SECONDS: f64 = 5000.0;
            let total: f64 = measure(control, [1e-3, 1e-3], SECONDS, seed).iter().map(|w| w.delivered).sum();
            vec![total / measure_tcp("\"newreno\"", &random(1e-3), SECONDS, seed).delivered]
        }),
    }
}

fn unequal(law: &Law) -> LawRow {
    let control = law.control;
    let near = |what: &str, value| Check::near(what, "window model", value, TOLERANCE);
    let second = near("congestion window on the second", law.windows[1]);
    LawRow {
        number: law.number,
        network: format!("{control}, p = 0.001 and 0.004"),
        checks: vec![
            near("delivered per round trip on the first path", law.windows[0]),
            near("delivered on the second", law.windows[1]).deviating(SMALL_WINDOWS),
            second,
        ],
        seeds: 6,
        quick_seeds: u64::from(matches!(control, "lia" | "mcc")),
        measure: Box::new(move |seed| {
            let w = measure(control, [1e-3, 4e-3], 5000.0, seed);
            vec![w[0].delivered, w[1].delivered, w[1].congestion]
        }),
    }
}

fn wider(law: &Law) -> LawRow {
    let control = law.control;
    let near = |what: &str, value| Check::near(what, "reference program", value, TOLERANCE);
    let second = near("congestion window on the second", law.wider[1]);
    LawRow {
        number: law.number,
        network: format!("{control}, p = 0.0001 and 0.0004"),
        checks: vec![
            near("delivered per round trip on the first path", law.wider[0]),
            match control {
                "olia" => second.deviating(OLIA_ROUND_TRIPS),
                "mcc" => second.deviating(MCC_FLOOR),
                _ => second,
            },
        ],
        seeds: 4,
        quick_seeds: 0,
        measure: Box::new(move |seed| {
            let w = measure(control, [1e-4, 4e-4], 8000.0, seed);
            vec![w[0].delivered, w[1].congestion]
        }),
    }
}

const OLIA_ROUND_TRIPS: &str = "delayed acknowledgments make the smoothed round trip of the small window 7 % longer, and OLIA compares \
    l/rtt²; the model with round trips of 101 and 107 ms gives 12.4 here";

const MCC_FLOOR: &str = "the second window lies on its floor of two packets, where the model's reductions are instantaneous and \
    those of a TCP take a round trip at the old window";
