//! Runs of scenarios, and their results in the terms of the laws.

use anabranch_observation::SubflowReport;
use anabranch_observation::{Column, EventColumns, Metrics, Outcome, PathRecording, SessionMetrics};
use anabranch_scenario::load;
use anabranch_sim::{RunOptions, run};
use anabranch_units::LinkDirection;

/// Bytes of an Ethernet's full packet.
pub const PACKET: f64 = 1500.0;
/// Payload of a full TCP segment with timestamps at that size.
pub const TCP_PAYLOAD: f64 = 1448.0;
/// Payload of a full segment of Multipath TCP: the mapping and acknowledgment of 4 bytes each take 20.
pub const MPTCP_PAYLOAD: f64 = 1428.0;

/// Simulates a scenario given as text, with overrides.
///
/// # Panics
/// If the scenario is wrong: those passed here are this crate's or ship with the program.
pub fn simulate(text: &str, overrides: &[(String, String)], seed: u64) -> Outcome {
    simulate_with(text, overrides, RunOptions { seed, ..RunOptions::default() })
}

/// [`simulate`] with every event kept.
///
/// # Panics
/// As [`simulate`].
pub fn simulate_with_events(text: &str, overrides: &[(String, String)], seed: u64) -> Outcome {
    simulate_with(text, overrides, RunOptions { seed, record_events: true, ..RunOptions::default() })
}

fn simulate_with(text: &str, overrides: &[(String, String)], options: RunOptions) -> Outcome {
    let scenario = load(text, "validation", None, overrides).unwrap_or_else(|error| panic!("{error}\n{text}"));
    run(&scenario, &options, &mut |_| true)
}

/// An override, as `--set` takes it.
#[allow(clippy::needless_pass_by_value)] // A number or a text, as the caller has it.
pub fn set(key: impl Into<String>, value: impl std::fmt::Display) -> (String, String) {
    (key.into(), value.to_string())
}

/// A shipped scenario's text.
///
/// # Panics
/// If there is none of that name.
pub fn shipped(name: &str) -> &'static str {
    anabranch_scenario::catalogue::scenario(name).unwrap_or_else(|| panic!("no scenario {name}")).text
}

/// Round trip of the ideal pipes: that of the specification's rows and of RFC 9438's tables.
pub const RTT_S: f64 = 0.1;

/// An ideal pipe, as the window laws assume it: no queueing (at 10 Gb/s a packet takes 1.2 µs), every round trip is
/// [`RTT_S`], and only the given loss model drops, on the way down. `loss` is as in a scenario: `"1 %"` with its
/// quotes, or a table.
pub fn ideal_pipe(name: &str, loss: &str) -> String {
    format!("[link.{name}]\nrtt = \"100 ms\"\nrate = \"10 Gb/s\"\nqueue = \"100 MB\"\nloss = {loss}\n")
}

/// The duration of a run and of the part to leave out: a twentieth, many loss intervals in every row.
pub fn timing(seconds: f64) -> String {
    format!("schema = 1\nduration = \"{seconds} s\"\nwarm_up = \"{} s\"\n", seconds * SKIPPED)
}

/// The sender of the window laws. Buffers never limit: the largest window of the rows is 5926 packets. Windows are real
/// numbers and no packet is held back for a burst; Linux does otherwise on both, and so does our endpoint by default.
pub const IDEAL_SENDER: &str = "receive_buffer = \"64 MB\"\nsend_buffer = \"64 MB\"\nwhole_windows = false\n\
    segmentation_offload = false\n";
/// CUBIC with Linux's constants, computed by the formulas rather than in whole packets.
pub const EXACT_CUBIC: &str = "{ name = \"cubic\", arithmetic = \"exact\" }";

/// The share of a run that [`timing`] leaves out.
const SKIPPED: f64 = 0.05;

/// The windows of one subflow.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// Delivered segments per round trip of the pipe.
    pub delivered: f64,
    /// The congestion window's mean over time.
    pub congestion: f64,
}

/// The windows of the first session's subflows over ideal pipes, one per path, without what [`timing`] leaves out.
pub fn windows(outcome: &Outcome, payload: f64) -> Vec<Windows> {
    let subflows = &outcome.metrics.sessions[0].transport.subflows;
    let paths = &outcome.recording.sessions[0].paths;
    let of = |(subflow, path): (&SubflowReport, &PathRecording)| {
        let samples = &path.cwnd_packets[(path.cwnd_packets.len() as f64 * SKIPPED) as usize..];
        Windows {
            delivered: subflow.goodput_bps / 8.0 / payload * RTT_S,
            congestion: samples.iter().map(|window| f64::from(*window)).sum::<f64>() / samples.len() as f64,
        }
    };
    subflows.iter().zip(paths).map(of).collect()
}

/// The sum of goodputs, as a rate on the wire if every packet is full.
pub fn wire_rate(sessions: &[SessionMetrics], payload: f64) -> f64 {
    sessions.iter().map(|session| session.transport.goodput_bps).sum::<f64>() * PACKET / payload
}

/// The mean time that packets waited before a link's downlink.
///
/// # Panics
/// If there is no such link, or nothing passed it.
pub fn queue_delay_s(metrics: &Metrics, link: &str) -> f64 {
    let found = metrics.links.iter().find(|l| l.name == link && l.direction == LinkDirection::Down);
    found.and_then(|l| l.queue_delay_s.mean).unwrap_or_else(|| panic!("nothing passed {link}"))
}

/// Rows of the table of events, by column.
pub struct Events<'a>(&'a EventColumns);

impl<'a> Events<'a> {
    /// The events of a run that recorded them.
    ///
    /// # Panics
    /// If the run did not record events.
    pub fn of(outcome: &'a Outcome) -> Self {
        Events(outcome.events.as_ref().expect("the run recorded events"))
    }

    fn column(&self, name: &str) -> &'a Column {
        let found = self.0.columns.iter().find(|(n, _)| *n == name);
        found.map(|(_, column)| column).unwrap_or_else(|| panic!("no column {name}"))
    }

    /// A column of numbers.
    ///
    /// # Panics
    /// If the column has another type.
    pub fn floats(&self, name: &str) -> &'a [f64] {
        match self.column(name) {
            Column::Float(list) => list,
            _ => panic!("{name} is no column of numbers"),
        }
    }

    /// A column of whole numbers.
    ///
    /// # Panics
    /// If the column has another type.
    pub fn integers(&self, name: &str) -> &'a [i64] {
        match self.column(name) {
            Column::Integer(list) => list,
            _ => panic!("{name} is no column of whole numbers"),
        }
    }

    /// A column of flags.
    ///
    /// # Panics
    /// If the column has another type.
    pub fn flags(&self, name: &str) -> &'a [Option<bool>] {
        match self.column(name) {
            Column::Flag(list) => list,
            _ => panic!("{name} is no column of flags"),
        }
    }

    /// The positions of the rows whose word in a column is this one.
    ///
    /// # Panics
    /// If it is not a column of words.
    pub fn with(&self, name: &str, word: &str) -> impl Iterator<Item = usize> + use<'a> {
        let Column::Text { words, codes } = self.column(name) else { panic!("{name} is no column of words") };
        let code = words.iter().position(|w| w == word).map(|at| at as u32);
        codes.iter().enumerate().filter(move |(_, c)| code.is_some() && **c == code).map(|(row, _)| row)
    }

    /// The positions of the events of one kind.
    pub fn named(&self, event: &str) -> impl Iterator<Item = usize> + use<'a> {
        self.with("event", event)
    }
}
