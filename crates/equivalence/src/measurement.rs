//! A test case in virtual time and in real time. Both give the metrics of a run, and what is compared is read from them by the same code.

use crate::equivalence::{median, percentile};
use crate::kernel::Kernel;
use crate::question::{Part, Quantity};
use crate::test_cases::{FIRST_PATH, TestCase};
use anabranch_observation::{Column, EventColumns, Metrics, check_finite};
use anabranch_scenario::{Scenario, load};
use anabranch_sim::{RunOptions, run};
use anabranch_testbed::{Options, Testbed};
use anabranch_units::LinkDirection;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What one run of a test case gave. What is none does not exist in such runs, or was not observed; it has all that its test case compares
/// ([`Measurement::check`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// The seed of its links.
    pub seed: u64,
    /// Bytes that the client's applications read, as bits per second of the whole run.
    pub goodput_bps: f64,
    /// Segments that the server sent again, in all sessions.
    pub retransmissions: f64,
    /// The median time from a request to the last byte of its response, in seconds, where the traffic comes in chunks.
    pub chunk_s: Option<f64>,
    /// The 90th percentile of these times.
    pub chunk_p90_s: Option<f64>,
    /// The share of the first path in the payload that the server sent, retransmissions included.
    pub first_share: Option<f64>,
    /// The share of the session that received least in the bytes of all sessions, where there are several.
    pub smallest_share: Option<f64>,
    /// The mean bitrate on screen, of a DASH video.
    pub mean_bitrate_bps: Option<f64>,
    /// Changes of the representation, of a DASH video.
    pub switches: Option<f64>,
    /// Intervals with a frozen picture, as the client's player reports them.
    pub stalls: Option<f64>,
    /// What the links dropped on the way down, link by link.
    pub drops: Vec<Drops>,
}

/// Packets that a link dropped on the way down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    pub measurement: Measurement,
    /// How late the emulator delivered packets.
    pub lateness: Lateness,
    /// The testbed says that the run measured the machine.
    pub invalid: bool,
}

impl Live {
    fn of(case: &TestCase, seed: u64, metrics: &Metrics, events: Option<&EventColumns>) -> Result<Self, String> {
        let facts = metrics.live.as_ref().ok_or("`live` is missing: the run was not made in the testbed")?;
        let measurement = Measurement::of(case, seed, metrics, events)?;
        let percentile = |name: &str, value: Option<f64>| {
            value.ok_or_else(|| format!("`live.lateness_s.{name}` was not observed: no packet was delivered"))
        };
        let median_s = percentile("p50", facts.lateness_s.p50)?;
        let p99_s = percentile("p99", facts.lateness_s.p99)?;
        Ok(Live { measurement, lateness: Lateness { median_s, p99_s }, invalid: facts.invalid })
    }
}

/// How much later than due packets were delivered, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lateness {
    /// In the middle.
    pub median_s: f64,
    /// At the 99th percentile.
    pub p99_s: f64,
}

impl Lateness {
    /// The means over several runs; none without any.
    pub fn typical(runs: &[Live]) -> Option<Self> {
        let mean = |of: fn(&Lateness) -> f64| runs.iter().map(|run| of(&run.lateness)).sum::<f64>() / runs.len() as f64;
        (!runs.is_empty()).then(|| Lateness { median_s: mean(|l| l.median_s), p99_s: mean(|l| l.p99_s) })
    }
}

/// What plays in a browser, which is driven from outside of this crate.
pub trait Browser: Sync {
    /// The folder with the video that the test cases' scenarios name.
    fn directory(&self) -> &Path;

    /// Plays a test case in real time and gives the metrics of the run.
    ///
    /// # Errors
    /// What failed, or that it was stopped.
    fn play(&self, case: &TestCase, seed: u64) -> Result<Metrics, String>;
}

impl Measurement {
    fn of(case: &TestCase, seed: u64, metrics: &Metrics, events: Option<&EventColumns>) -> Result<Self, String> {
        check_finite(metrics).map_err(|error| error.to_string())?;
        let session = metrics.sessions.first().ok_or("`sessions` is empty")?;
        if let Some(silent) = metrics.sessions.iter().position(|session| session.transport.subflows.is_empty()) {
            return Err(format!("`sessions[{silent}].subflows` is empty: nothing was transferred"));
        }
        let subflows = || metrics.sessions.iter().flat_map(|session| &session.transport.subflows);
        let received: Vec<u64> = metrics.sessions.iter().map(|session| session.bytes).collect();
        let retransmissions: u64 = subflows().map(|subflow| subflow.retransmissions).sum();
        let down = metrics.links.iter().filter(|link| link.direction == LinkDirection::Down);
        let dash = session.dash();
        let measurement = Measurement {
            seed,
            goodput_bps: received.iter().sum::<u64>() as f64 * 8.0 / f64::from(case.seconds),
            retransmissions: retransmissions as f64,
            chunk_s: events.and_then(|events| median(&chunks(events))),
            chunk_p90_s: events.and_then(|events| percentile(&chunks(events), 0.9)),
            first_share: first_share(subflows().map(|subflow| (&*subflow.path, subflow.bytes))),
            smallest_share: smallest_share(&received),
            mean_bitrate_bps: dash.and_then(|dash| dash.mean_bitrate_bps),
            switches: dash.map(|dash| dash.switches as f64),
            stalls: session.viewer.as_ref().map(|viewer| viewer.stalls as f64),
            drops: down.map(|link| Drops { queue: link.drops_queue, random: link.drops_random }).collect(),
        };
        measurement.check(case)?;
        Ok(measurement)
    }

    /// Whether it has all that the test case compares.
    ///
    /// # Errors
    /// The key of what was not observed.
    pub fn check(&self, case: &TestCase) -> Result<(), String> {
        let missing = case.criteria().iter().find(|criterion| self.get(criterion.quantity).is_none());
        missing.map_or(Ok(()), |criterion| Err(format!("`{}` was not observed", criterion.quantity.key())))
    }

    /// One of the quantities; none if it was not observed.
    pub fn get(&self, quantity: Quantity) -> Option<f64> {
        match quantity {
            Quantity::Goodput => Some(self.goodput_bps),
            Quantity::Retransmissions => Some(self.retransmissions),
            Quantity::ChunkTime => self.chunk_s,
            Quantity::ChunkTimeP90 => self.chunk_p90_s,
            Quantity::FirstShare => self.first_share,
            Quantity::SmallestShare => self.smallest_share,
            Quantity::MeanBitrate => self.mean_bitrate_bps,
            Quantity::Switches => self.switches,
            Quantity::Stalls => self.stalls,
        }
    }
}

/// The test case's scenario. Files that it names are looked up in `directory`; `changes` are keys and values.
///
/// # Panics
/// If it is wrong: the test cases are this crate's.
pub fn scenario(case: &TestCase, directory: Option<&Path>, changes: &[(String, String)]) -> Scenario {
    load(&case.scenario, "cell", directory, changes).unwrap_or_else(|error| panic!("{error}\n{}", case.scenario))
}

/// The test case's scenario as a pair of hosts would live it: the links are those of the emulator, where packets are late by as much as was
/// measured. Without it a drop-tail queue drops the same packets of the same cycle for ever (traffic phase effects, Floyd and Jacobson 1992).
/// Beyond the 99th percentile the distribution goes on as before it: longer delays come in clumps, when the machine stands still for some
/// milliseconds, and are no property of single packets. And the session begins at another fraction of a millisecond with every seed, because
/// timestamps tick in milliseconds: whether a receiver sees a round trip of 101 or 102 of them can decide over a whole slow start. Packets take as
/// much memory as in the kernel under test.
///
/// # Panics
/// If the test case's scenario is wrong.
pub fn emulated(case: &TestCase, directory: Option<&Path>, kernel: &Kernel, lateness: Lateness) -> Scenario {
    let Lateness { median_s, p99_s } = lateness;
    // An exponential distribution is linear in the logarithm of what remains.
    let slope = (p99_s - median_s) / 50.0_f64.ln();
    let percentiles = [("p50", median_s), ("p99", p99_s), ("p999", p99_s + slope * 10.0_f64.ln())];
    let percentiles = percentiles.map(|(name, seconds)| format!("{name} = \"{:.3} us\"", seconds * 1e6));
    let jitter = format!("{{ kind = \"percentiles\", {} }}", percentiles.join(", "));
    let links = scenario(case, directory, &[]).links;
    let late = links.iter().map(|link| (format!("link.{}.jitter", link.name), jitter.clone()));
    let phases = ("session.0.start_spread".to_string(), "1 ms".to_string());
    let build = ("transport.header_room".to_string(), kernel.header_room.to_string());
    scenario(case, directory, &late.chain([phases, build]).collect::<Vec<_>>())
}

/// Simulates a test case's scenario, which [`emulated`] gives.
///
/// # Errors
/// What the test case compares and the run does not have.
pub fn simulate(case: &TestCase, scenario: &Scenario, seed: u64) -> Result<Measurement, String> {
    let outcome = run(scenario, &RunOptions { seed, record_events: case.in_chunks() }, &mut |_| true);
    Measurement::of(case, seed, &outcome.metrics, outcome.events.as_ref())
}

/// Runs a test case in real time; takes as long as the test case. `wanted` ends it early by answering false.
///
/// # Errors
/// If the machine lacks something, the testbed fails, or the run does not have what the test case compares.
pub fn run_live(case: &TestCase, seed: u64, wanted: &dyn Fn() -> bool) -> Result<Live, String> {
    let options = Options { seed, server: case.server, record_events: case.in_chunks(), ..Options::default() };
    let run = || {
        let testbed = Testbed::start(&scenario(case, None, &[]), &options)?;
        let ended = testbed.play(&mut |_| wanted())?;
        testbed.finish(ended)
    };
    let outcome = run().map_err(|error| error.to_string())?;
    let notes = outcome.metrics.live.iter().flat_map(|live| &live.notes);
    if let Some(note) = notes.into_iter().find(|note| note.contains(LACKS_CONTROL)) {
        let remedy = if case.part == Part::Coupled {
            "attach it first: anabranch kernel attach --port 1 --congestion-control NAME"
        } else {
            "load its module, such as: modprobe tcp_bbr"
        };
        return Err(format!("{note}; {remedy}"));
    }
    Live::of(case, seed, &outcome.metrics, outcome.events.as_ref())
}

/// Part of the testbed's note about a control that the kernel does not have.
const LACKS_CONTROL: &str = "has no congestion control";

/// Has a browser play a test case in real time.
///
/// # Errors
/// Those of [`Browser::play`], or what the test case compares and the run does not have.
pub fn play_in(browser: &dyn Browser, case: &TestCase, seed: u64) -> Result<Live, String> {
    Live::of(case, seed, &browser.play(case, seed)?, None)
}

/// The share of the first path in the payload that was sent, of the names of the subflows' paths and their bytes; none without any.
fn first_share<'a>(subflows: impl Iterator<Item = (&'a str, u64)>) -> Option<f64> {
    let (mut first, mut all) = (0, 0);
    for (path, bytes) in subflows {
        first += if path == FIRST_PATH { bytes } else { 0 };
        all += bytes;
    }
    (all > 0).then(|| first as f64 / all as f64)
}

/// The smallest share in the sum; none where there is nothing to share, or nobody to share it with.
fn smallest_share(received: &[u64]) -> Option<f64> {
    let all: u64 = received.iter().sum();
    let least = received.iter().min()?;
    (received.len() > 1 && all > 0).then(|| *least as f64 / all as f64)
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
    use crate::question::Part;
    use crate::test_cases;
    use anabranch_observation::LiveFacts;
    use anabranch_scenario::{Jitter, Percentiles};
    use anabranch_units::Duration;
    use std::collections::BTreeMap;

    fn metrics(case: &TestCase, seed: u64) -> Metrics {
        run(&scenario(case, None, &[]), &RunOptions { seed, record_events: false }, &mut |_| true).metrics
    }

    /// Metrics as a live run of the test case gives them.
    fn live_metrics(case: &TestCase, p50: Option<f64>, p99: Option<f64>) -> Metrics {
        let live = LiveFacts {
            server: "kernel".into(),
            client: "model".into(),
            kernel: "6.12".into(),
            lateness_s: anabranch_observation::Lateness { p50, p99, p999: p99, max: p99 },
            invalid: false,
            realtime: true,
            refused: 0,
            connections: 1,
            settings: BTreeMap::new(),
            server_counters: Vec::new(),
            notes: Vec::new(),
            client_counters: None,
            client_received_bytes: None,
        };
        Metrics { live: Some(live), ..metrics(case, 1) }
    }

    fn kernel() -> Kernel {
        Kernel { release: "6.12.8".into(), header_room: 256 }
    }

    fn quick() -> TestCase {
        test_cases::all(&[Part::OnePath], true).remove(0)
    }

    fn live(p50: f64, p99: f64) -> Live {
        let case = quick();
        Live::of(&case, 1, &live_metrics(&case, Some(p50), Some(p99)), None).unwrap()
    }

    #[test]
    fn simulated_links_are_late_as_live_ones_were_on_average() {
        let runs = [live(30e-6, 200e-6), live(50e-6, 400e-6)];
        let lateness = Lateness::typical(&runs).unwrap();
        let [p50, p99, p999] = [40_000, 300_000, 453_034].map(Duration::from_nanos);
        let jitter = Some(Jitter::Percentiles(Percentiles { p50, p99, p999, reorders: false }));
        for case in test_cases::all(&[Part::SeveralPaths], false) {
            let scenario = emulated(&case, None, &kernel(), lateness);
            assert!(scenario.links.len() >= 2, "{}", case.name);
            assert_eq!(scenario.transport.header_room, 256, "{}", case.name);
            for link in &scenario.links {
                assert_eq!((&link.up.jitter, &link.down.jitter), (&jitter, &jitter), "{}", case.name);
            }
            assert_eq!(scenario.sessions[0].starts.start_spread, Duration::from_millis(1));
        }
    }

    #[test]
    fn the_share_of_the_first_path_is_that_of_its_bytes() {
        let share = |part: Part| {
            let case = test_cases::all(&[part], true).remove(0);
            let metrics = metrics(&case, 1);
            let subflows = &metrics.sessions[0].transport.subflows;
            first_share(subflows.iter().map(|subflow| (&*subflow.path, subflow.bytes))).unwrap()
        };
        assert_eq!(share(Part::OnePath), 1.0);
        // Two equal paths.
        assert!((0.45..0.55).contains(&share(Part::SeveralPaths)), "{}", share(Part::SeveralPaths));
        assert_eq!(first_share(std::iter::empty()), None);
    }

    #[test]
    fn the_smallest_share_needs_two_sessions_that_received_something() {
        assert_eq!(smallest_share(&[3, 1, 4]), Some(0.125));
        assert_eq!(smallest_share(&[5, 0]), Some(0.0));
        for nothing_to_share in [&[][..], &[5], &[0, 0]] {
            assert_eq!(smallest_share(nothing_to_share), None);
        }
    }

    #[test]
    fn the_sessions_of_a_test_case_are_measured_together() {
        let case = test_cases::all(&[Part::OnePath], false).into_iter().find(|case| case.sessions == 2).unwrap();
        let metrics = metrics(&case, 1);
        let measured = Measurement::of(&case, 1, &metrics, None).unwrap();
        let [one, other] = [0, 1].map(|i| &metrics.sessions[i]);
        let retransmissions = [one, other].map(|session| session.transport.subflows[0].retransmissions as f64);
        assert_eq!(measured.retransmissions, retransmissions.iter().sum::<f64>());
        assert_eq!(measured.goodput_bps, (one.bytes + other.bytes) as f64 * 8.0 / f64::from(case.seconds));
        let smaller = one.bytes.min(other.bytes) as f64;
        assert_eq!(measured.smallest_share, Some(smaller / (one.bytes + other.bytes) as f64));
    }

    #[test]
    fn another_seed_is_another_run_and_the_same_seed_is_the_same() {
        let case = &quick();
        let scenario = emulated(case, None, &kernel(), Lateness { median_s: 40e-6, p99_s: 300e-6 });
        let [one, again, other] = [1, 1, 2].map(|seed| simulate(case, &scenario, seed).unwrap());
        assert_eq!(one, again);
        assert_ne!(Measurement { seed: 1, ..other }, one);
    }

    #[test]
    fn what_was_not_observed_is_named_and_never_zero() {
        let case = quick();
        let refused = |metrics: &Metrics| Live::of(&case, 1, metrics, None).unwrap_err();
        let whole = live_metrics(&case, Some(3e-5), Some(2e-4));
        assert!(refused(&live_metrics(&case, None, None)).contains("`live.lateness_s.p50`"));
        assert!(refused(&live_metrics(&case, Some(3e-5), None)).contains("`live.lateness_s.p99`"));
        assert!(refused(&Metrics { live: None, ..whole.clone() }).contains("`live`"));
        assert!(refused(&Metrics { sessions: Vec::new(), ..whole.clone() }).contains("`sessions`"));
        let mut nothing = whole.clone();
        nothing.sessions[0].transport.subflows.clear();
        assert!(refused(&nothing).contains("`sessions[0].subflows`"));
        let mut not_a_number = whole;
        not_a_number.sessions[0].transport.goodput_bps = f64::NAN;
        assert!(refused(&not_a_number).contains("`sessions[0].goodput_bps` is NaN"));
    }

    #[test]
    fn each_quantity_that_a_test_case_compares_has_to_be_observed() {
        for part in Part::ALL {
            let case = test_cases::all(&[part], true).remove(0);
            let all = Measurement {
                seed: 1,
                goodput_bps: 1e6,
                retransmissions: 1.0,
                chunk_s: Some(1.0),
                chunk_p90_s: Some(1.0),
                first_share: Some(0.5),
                smallest_share: Some(0.5),
                mean_bitrate_bps: Some(1e6),
                switches: Some(1.0),
                stalls: Some(0.0),
                drops: Vec::new(),
            };
            assert_eq!(all.check(&case), Ok(()));
            let lacks = |lacking: Measurement, quantity: Quantity| {
                let compared = case.criteria().iter().any(|criterion| criterion.quantity == quantity);
                assert_eq!(lacking.check(&case).is_err(), compared, "{part:?} {quantity:?}");
            };
            lacks(Measurement { chunk_s: None, ..all.clone() }, Quantity::ChunkTime);
            lacks(Measurement { mean_bitrate_bps: None, ..all.clone() }, Quantity::MeanBitrate);
            lacks(Measurement { switches: None, ..all.clone() }, Quantity::Switches);
            lacks(Measurement { stalls: None, ..all.clone() }, Quantity::Stalls);
        }
    }
}
