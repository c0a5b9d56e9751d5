//! A cell in virtual time and in real time. Both give the metrics of a run, and what is compared is read from them by the same code.

use crate::cells::Cell;
use crate::equivalence::median;
use crate::question::Quantity;
use anabranch_observation::{Column, EventColumns};
use anabranch_scenario::{Scenario, load};
use anabranch_sim::{RunOptions, run};
use anabranch_testbed::{Options, Testbed, TestbedError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// What one run of a cell gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// The seed of its links.
    pub seed: u64,
    /// Bytes that the client's application read, as bits per second of the whole run.
    pub goodput_bps: f64,
    /// Segments that the server sent again.
    pub retransmissions: f64,
    /// The median time from a request to the last byte of its response, where the traffic comes in chunks.
    pub chunk_s: Option<f64>,
    /// Of a DASH video.
    pub mean_bitrate_bps: Option<f64>,
    /// Of a DASH video.
    pub switches: Option<f64>,
    /// Of a video.
    pub stalls: Option<f64>,
    /// What the links dropped on the way down, link by link.
    pub drops: Vec<Drops>,
}

/// Packets that a link dropped on the way down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// For want of room.
    pub queue: u64,
    /// At random.
    pub random: u64,
}

/// A live run.
#[derive(Clone, Debug)]
pub struct Live {
    /// What is compared.
    pub observation: Observation,
    /// How late the emulator delivered packets.
    pub lateness: Lateness,
}

/// How much later than due packets were delivered, in seconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Lateness {
    /// In the middle.
    pub median_s: f64,
    /// At the 99th percentile.
    pub p99_s: f64,
}

impl Lateness {
    fn of(metrics: &Value) -> Self {
        let percentile = |name: &str| metrics["live"]["lateness_s"][name].as_f64().unwrap_or(0.0);
        Lateness { median_s: percentile("p50"), p99_s: percentile("p99") }
    }

    /// The means over several runs; zero without any.
    pub fn typical(runs: &[Live]) -> Self {
        let mean =
            |of: fn(&Lateness) -> f64| runs.iter().map(|run| of(&run.lateness)).sum::<f64>() / runs.len().max(1) as f64;
        Lateness { median_s: mean(|l| l.median_s), p99_s: mean(|l| l.p99_s) }
    }
}

/// What plays in a browser, which is driven from outside of this crate.
pub trait Browser: Sync {
    /// The folder with the video that the cells' scenarios name.
    fn directory(&self) -> &Path;

    /// Plays a cell in real time and gives the metrics of `run --json`.
    ///
    /// # Errors
    /// What failed, or that it was stopped.
    fn play(&self, cell: &Cell, seed: u64) -> Result<Value, String>;
}

impl Observation {
    fn of(cell: &Cell, seed: u64, metrics: &Value, events: Option<&EventColumns>) -> Self {
        let session = &metrics["sessions"][0];
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let sum = list(&session["subflows"]).iter().filter_map(|s| s["retransmissions"].as_f64()).sum();
        let links = list(&metrics["links"]);
        let down = links.iter().filter(|link| link["direction"] == "down");
        let count = |value: &Value| value.as_u64().unwrap_or(0);
        Observation {
            seed,
            goodput_bps: session["bytes"].as_f64().unwrap_or(0.0) * 8.0 / f64::from(cell.seconds),
            retransmissions: sum,
            chunk_s: events.and_then(|events| median(&chunks(events))),
            mean_bitrate_bps: session["mean_bitrate_bps"].as_f64(),
            switches: session["switches"].as_f64(),
            stalls: session["stalls"].as_f64(),
            drops: down.map(|l| Drops { queue: count(&l["drops_queue"]), random: count(&l["drops_random"]) }).collect(),
        }
    }

    /// One of the quantities; not a number where the run has none.
    pub fn get(&self, quantity: Quantity) -> f64 {
        match quantity {
            Quantity::Goodput => self.goodput_bps,
            Quantity::Retransmissions => self.retransmissions,
            Quantity::ChunkTime => self.chunk_s.unwrap_or(f64::NAN),
            Quantity::MeanBitrate => self.mean_bitrate_bps.unwrap_or(f64::NAN),
            Quantity::Switches => self.switches.unwrap_or(f64::NAN),
            Quantity::Stalls => self.stalls.unwrap_or(f64::NAN),
        }
    }
}

/// The cell's scenario. Files that it names are looked up in `directory`; `changes` are keys and values.
///
/// # Panics
/// If it is wrong: the cells are this crate's.
pub fn scenario(cell: &Cell, directory: Option<&Path>, changes: &[(String, String)]) -> Scenario {
    load(&cell.scenario, "cell", directory, changes).unwrap_or_else(|error| panic!("{error}\n{}", cell.scenario))
}

/// The cell's scenario as a pair of hosts would live it: the links are those of the emulator, where packets are late by as much as was
/// measured. Without it a drop-tail queue drops the same packets of the same cycle for ever (traffic phase effects, Floyd and Jacobson 1992).
/// Beyond the 99th percentile the distribution goes on as before it: longer delays come in clumps, when the machine stands still for some
/// milliseconds, and are no property of single packets. And the session begins at another fraction of a millisecond with every seed, because
/// timestamps tick in milliseconds: whether a receiver sees a round trip of 101 or 102 of them can decide over a whole slow start.
///
/// # Panics
/// If the cell's scenario is wrong.
pub fn emulated(cell: &Cell, directory: Option<&Path>, lateness: Lateness) -> Scenario {
    let Lateness { median_s, p99_s } = lateness;
    // An exponential distribution is linear in the logarithm of what remains.
    let slope = (p99_s - median_s) / 50.0_f64.ln();
    let percentiles = [("p50", median_s), ("p99", p99_s), ("p999", p99_s + slope * 10.0_f64.ln())];
    let percentiles = percentiles.map(|(name, seconds)| format!("{name} = \"{:.3} us\"", seconds * 1e6));
    let jitter = format!("{{ kind = \"percentiles\", {} }}", percentiles.join(", "));
    let links = scenario(cell, directory, &[]).links;
    let late = links.iter().map(|link| (format!("link.{}.jitter", link.name), jitter.clone()));
    let phases = ("session.0.start_spread".to_string(), "1 ms".to_string());
    scenario(cell, directory, &late.chain([phases]).collect::<Vec<_>>())
}

/// Simulates a cell's scenario, which [`emulated`] gives.
///
/// # Panics
/// If the metrics are no JSON, which they are.
pub fn simulate(cell: &Cell, scenario: &Scenario, seed: u64) -> Observation {
    let outcome = run(scenario, &RunOptions { seed, record_events: cell.in_chunks() }, &mut |_| true);
    let metrics = serde_json::to_value(&outcome.metrics).expect("metrics are JSON");
    Observation::of(cell, seed, &metrics, outcome.events.as_ref())
}

/// Runs a cell in real time; takes as long as the cell. `wanted` ends it early by answering false.
///
/// # Errors
/// If the machine lacks something, or the laboratory fails.
pub fn run_live(cell: &Cell, seed: u64, wanted: &dyn Fn() -> bool) -> Result<Live, TestbedError> {
    let options = Options { seed, server: cell.server, record_events: cell.in_chunks(), ..Options::default() };
    let lab = Testbed::start(&scenario(cell, None, &[]), &options)?;
    let ended = lab.play(&mut |_| wanted())?;
    let report = lab.finish(ended)?;
    let metrics = Value::Object(report.metrics);
    let observation = Observation::of(cell, seed, &metrics, report.outcome.events.as_ref());
    Ok(Live { observation, lateness: Lateness::of(&metrics) })
}

/// Has a browser play a cell in real time.
///
/// # Errors
/// Those of [`Browser::play`].
pub fn play_in(browser: &dyn Browser, cell: &Cell, seed: u64) -> Result<Live, String> {
    let metrics = browser.play(cell, seed)?;
    Ok(Live { observation: Observation::of(cell, seed, &metrics, None), lateness: Lateness::of(&metrics) })
}

/// From each request to the last byte of its response.
///
/// # Panics
/// If the table of events has not the columns that it has.
fn chunks(events: &EventColumns) -> Vec<f64> {
    let column = |name: &str| &events.columns.iter().find(|(n, _)| *n == name).expect("a column of that name").1;
    let (Column::Float(times), Column::Text { words, codes }) = (column("time_s"), column("event")) else {
        panic!("times are numbers and events are words");
    };
    let at = |event: &str| -> Vec<f64> {
        let code = words.iter().position(|word| word == event).map(|at| at as u32);
        codes.iter().zip(times).filter(|(c, _)| code.is_some() && **c == code).map(|(_, time)| *time).collect()
    };
    at("requested").iter().zip(at("response-complete")).map(|(asked, complete)| complete - asked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells;
    use crate::question::Part;

    fn run(p50: f64, p99: f64) -> Live {
        let metrics = serde_json::json!({ "live": { "lateness_s": { "p50": p50, "p99": p99 } } });
        let cell = &cells::all(&[Part::OnePath], false)[0];
        Live { observation: Observation::of(cell, 1, &metrics, None), lateness: Lateness::of(&metrics) }
    }

    #[test]
    fn simulated_links_are_late_as_live_ones_were_on_average() {
        let runs = [run(30e-6, 200e-6), run(50e-6, 400e-6)];
        let lateness = Lateness::typical(&runs);
        for cell in cells::all(&[Part::TwoPaths], false) {
            let text = emulated(&cell, None, lateness).resolved();
            let jitter = "jitter = { kind = \"percentiles\", p50 = \"40 us\", p99 = \"300 us\", p999 = \"453.034 us\", reorders = false }";
            assert_eq!(text.matches(jitter).count(), 4, "both directions of two links: {text}");
            assert!(text.contains("start_spread = \"1 ms\""), "{text}");
        }
    }

    #[test]
    fn another_seed_is_another_run_and_the_same_seed_is_the_same() {
        let cell = &cells::all(&[Part::OnePath], true)[0];
        let scenario = emulated(cell, None, Lateness { median_s: 40e-6, p99_s: 300e-6 });
        let [one, again, other] = [1, 1, 2].map(|seed| simulate(cell, &scenario, seed));
        assert_eq!(one, again);
        assert_ne!(Observation { seed: 1, ..other }, one);
    }
}
