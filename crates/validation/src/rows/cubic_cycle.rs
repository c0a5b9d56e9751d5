//! Row 3: CUBIC under periodic loss, the table of RFC 9438.
//!
//! The closed form describes a cycle that repeats itself: window W at every loss, and exactly n packets from W to W.
//! That cycle is neutrally stable, because the cubic function is flat near its plateau: a download that begins below W
//! stays there and approaches W by a per mille per loss. One that comes from above, as from slow start, is taken into a
//! lower cycle by fast convergence, 7 to 13 % below, and stays there. So to find the cycle of the closed form a run has
//! to begin just below it. The pipe is first a bottleneck that overflows there; right after a loss it opens, and from
//! then on every n-th packet is lost.

use super::{Check, LawRow};
use crate::rows::single_path;
use crate::runs::{
    EXACT_CUBIC, Events, IDEAL_SENDER, PACKET, RTT_S, TCP_PAYLOAD, simulate, simulate_with_events, windows,
};

/// RFC 9438 tables 1 and 2, for a round trip of 0.1 s: packets per loss and average window, the larger of CUBIC's and
/// Reno's.
const TABLE: [(u32, f64); 5] = [(100, 12.0), (1000, 38.0), (10_000, 187.0), (100_000, 1054.0), (1_000_000, 5926.0)];

/// Where, relative to W, the bottleneck's losses come.
const START: f64 = 0.98;
/// How near to that they have to be.
const START_TOLERANCE: f64 = 0.01;
/// Slow start and its overshoot are over after this many losses.
const SETTLED: usize = 4;
/// Numbers of losses that are left out and used.
const CYCLES: (f64, f64) = (2.0, 12.0);

pub(super) fn rows() -> Vec<LawRow> {
    TABLE.map(|(n, average)| row(n, average)).into()
}

fn row(n: u32, average: f64) -> LawRow {
    let check = Check::near("delivered per round trip", "RFC 9438 tables 1 and 2", average, 0.05);
    // Up to a loss per thousand packets the Reno-friendly window decides, which finds its cycle from anywhere.
    let friendly = n <= 1000;
    let check = if n == 100 { check.deviating(single_path::SMALL_WINDOWS) } else { check };
    LawRow {
        number: 3,
        network: format!("CUBIC, every {n}th packet lost"),
        checks: vec![check],
        seeds: 1,
        quick_seeds: u64::from(n <= 10_000),
        measure: Box::new(move |seed| {
            vec![if friendly {
                let loss = format!("{{ kind = \"every-nth\", n = {n} }}");
                single_path::measure(EXACT_CUBIC, &loss, 1000.0, seed).delivered
            } else {
                from_below(n, average, seed)
            }]
        }),
    }
}

fn from_below(n: u32, average: f64, seed: u64) -> f64 {
    // The average of CUBIC's cycle is (3 + β)/4 of the window at a loss, β = 0.7.
    let wanted = average * 4.0 / 3.7 * START;
    let (capacity, loss_at) = settle(wanted, average, seed);
    let opening = loss_at + 2.0 * RTT_S;
    let cycle = f64::from(n) / average * RTT_S;
    let (skipped, measured) = (opening + CYCLES.0 * cycle, CYCLES.1 * cycle);
    let text = format!(
        "schema = 1\nduration = \"{:.3} s\"\nwarm_up = \"{skipped:.3} s\"\n{}[[event]]\nat = \"{opening:.3} s\"\n\
         link = \"pipe\"\nrate = \"10 Gb/s\"\nqueue = \"100 MB\"\nloss = {{ kind = \"every-nth\", n = {n} }}\n",
        skipped + measured,
        bottleneck(capacity)
    );
    windows(&simulate(&text, &[], seed), TCP_PAYLOAD)[0].delivered
}

/// The capacity in packets of a bottleneck whose losses come at this window, and when one of them comes.
fn settle(wanted: f64, average: f64, seed: u64) -> (f64, f64) {
    // The window outgrows the capacity a little before the loss is seen, so the first try is corrected.
    let mut capacity = wanted;
    for _ in 0..4 {
        let (at, window) = settled_loss(capacity, average, seed);
        if (window / wanted - 1.0).abs() <= START_TOLERANCE {
            return (capacity, at);
        }
        capacity *= wanted / window;
    }
    panic!("no bottleneck was found that overflows at {wanted} packets")
}

/// When, and at which window, a download in a bottleneck of this capacity has its losses once it has settled.
fn settled_loss(capacity: f64, average: f64, seed: u64) -> (f64, f64) {
    // From the plateau back to it takes K = cbrt(0.3 W/0.4); W is little more than the average.
    let seconds = 10.0 + 3.0 * SETTLED as f64 * (0.3 * average / 0.4).cbrt();
    let text = format!("schema = 1\nduration = \"{seconds:.3} s\"\n{}", bottleneck(capacity));
    let outcome = simulate_with_events(&text, &[], seed);
    let events = Events::of(&outcome);
    let rows: Vec<usize> = events.named("window-reduced").skip(SETTLED - 1).collect();
    let window = |row: usize| events.floats("cwnd_packets")[row];
    // A loss at a smaller window than the last one brings fast convergence, which has no place in the closed form.
    let grown = rows.windows(2).find(|pair| window(pair[1]) > window(pair[0])).expect("a bottleneck overflows again");
    (events.floats("time_s")[grown[1]], window(grown[1]))
}

/// A pipe that holds this many packets, half of them in its queue, and a download over it.
fn bottleneck(packets: f64) -> String {
    let half = packets / 2.0 * PACKET;
    format!(
        "[transport]\nprotocol = \"tcp\"\ncongestion_control = {EXACT_CUBIC}\n{IDEAL_SENDER}[link.pipe]\nrtt = \"100 ms\"\n\
         rate = \"{:.0} b/s\"\nqueue = \"{half:.0} B\"\n[[session]]\n",
        half * 8.0 / RTT_S
    )
}
