//! Reducers: numbers that single studies need and [`metrics.json`](crate::Metrics) does not have, computed from what
//! was recorded of a run.
//!
//! A reducer has a name, by which a plan asks for it, and gives a few numbers of each session. The column of a number
//! is the reducer's name, or begins with it and a dot. A reducer is a file here and a line in [`REDUCERS`].

mod areas;
mod buffer;
mod delivery;
mod link_time;
mod recovery;
mod throughput;

use crate::metrics::{Outcome, SessionMetrics};
use crate::recording::{Mark, SessionRecording};
use crate::table::EventColumns;
use anabranch_registry::{Entry, Registry};
use anabranch_scenario::{Scenario, Video};

/// One session of a run: what a reducer reads.
pub struct Observed<'a> {
    /// What the session transfers.
    pub video: &'a Video,
    /// Its metrics.
    pub metrics: &'a SessionMetrics,
    /// What was recorded of it.
    pub recording: &'a SessionRecording,
    /// The time between samples.
    pub interval_s: f64,
    /// What the scenario had happen.
    pub events: &'a [Mark],
    /// The account of link time of all sessions; none if the run did not [keep](crate::Keep::account) it, or had no
    /// session.
    pub account: Option<&'a EventColumns>,
}

/// A number with the rest of its column's name behind the reducer's; empty where the reducer has one number. `None`:
/// the session has no such number.
pub type Number = (String, Option<f64>);

/// What computes the numbers of a session. Their names depend on the scenario alone.
pub type Reduce = fn(&Observed<'_>) -> Vec<Number>;

/// A reducer.
#[derive(Clone, Copy)]
pub struct Reducer {
    reduce: Reduce,
    /// Whether it reads the forecasts of path switches, which a run keeps only for such a reducer.
    reads_forecasts: bool,
    /// Whether it reads the account of link time, which a run keeps only for such a reducer.
    reads_account: bool,
}

impl Reducer {
    const fn of(reduce: Reduce) -> Self {
        Reducer { reduce, reads_forecasts: false, reads_account: false }
    }
}

/// All reducers.
pub static REDUCERS: Registry<Reducer> = Registry::new(&[
    Entry {
        name: "buffer_deviation_s",
        summary: "The standard deviation over time of what is buffered, in the statistics window if there is one.",
        source: "Performance of DASH over Multipath TCP, figure 7",
        create: Reducer::of(buffer::deviation),
    },
    Entry {
        name: "link_time",
        summary: "Where the time of a session's links went while a response was due: the share of what they could have carried \
                  that was new data, and that of each cause.",
        source: "",
        create: Reducer { reads_account: true, ..Reducer::of(link_time::shares) },
    },
    Entry {
        name: "recovery_s",
        summary: "From the scenario's first event until the second path carries a progressive video's rate for a second.",
        source: "handoff paper, its conclusion",
        create: Reducer::of(recovery::recovery),
    },
    Entry {
        name: "sampled_throughput",
        summary: "Per path: mean, and standard deviation over the first 50, 150, 300 and all samples, of the throughput in each \
                  interval in which something was acknowledged; and window over round trip at the same times.",
        source: "MPTCP+, section on PUD",
        create: Reducer::of(throughput::sampled),
    },
    Entry {
        name: "segment_delivery",
        summary: "Of media segments: mean and 90th percentile of the time from request to last byte, the mean speed, the share \
                  of that time for which bytes waited for another path, and the bitrate of the second one.",
        source: "MPTCP+, figures 6 to 8; Performance of DASH over Multipath TCP, its conclusion",
        create: Reducer::of(delivery::of_segments),
    },
    Entry {
        name: "switch_areas",
        summary: "How well two conditions foretell, at each path switch, a buffer underflow within 2 s and the discard of the \
                  picture: areas under the curve of hits over false alarms.",
        source: "sticky schedulers' paper, model of a path switch",
        create: Reducer { reads_forecasts: true, ..Reducer::of(areas::of_switches) },
    },
]);

/// The numbers of each session of a run, by column: those of the named reducers, in their order. A session beyond the
/// recorded ones has none.
///
/// # Panics
/// If there is no reducer of a name, or the run did not [keep](crate::Keep) what one of them reads.
pub fn reduce(scenario: &Scenario, outcome: &Outcome, names: &[String]) -> Vec<Vec<Number>> {
    let videos = scenario.sessions.iter().flat_map(|session| session.starts.earliest().map(|_| &session.video));
    let recorded = outcome.recording.sessions.iter().map(Some).chain(std::iter::repeat(None));
    let sessions = outcome.metrics.sessions.iter().zip(videos).zip(recorded);
    let numbers = |((metrics, video), recording): ((&SessionMetrics, &Video), Option<&SessionRecording>)| {
        let Some(recording) = recording else { return Vec::new() };
        let (interval_s, events) = (outcome.recording.interval_s, &outcome.recording.events[..]);
        let observed = Observed { video, metrics, recording, interval_s, events, account: outcome.account.as_ref() };
        names.iter().flat_map(|name| columns(name, &observed)).collect()
    };
    sessions.map(numbers).collect()
}

/// Whether one of the named reducers reads the forecasts of path switches, so that the run has to
/// [keep](crate::Keep::forecasts) them.
///
/// # Panics
/// If there is no reducer of a name.
pub fn read_forecasts(names: &[String]) -> bool {
    names.iter().any(|name| find(name).reads_forecasts)
}

/// Whether one of the named reducers reads the account of link time, so that the run has to
/// [keep](crate::Keep::account) it.
///
/// # Panics
/// If there is no reducer of a name.
pub fn read_account(names: &[String]) -> bool {
    names.iter().any(|name| find(name).reads_account)
}

fn find(name: &str) -> Reducer {
    REDUCERS.find(name).unwrap_or_else(|| panic!("no reducer is called {name}")).create
}

fn columns(name: &str, observed: &Observed<'_>) -> Vec<Number> {
    let numbers = (find(name).reduce)(observed).into_iter();
    let column = |rest: String| if rest.is_empty() { name.to_string() } else { format!("{name}.{rest}") };
    // What is no number is not known, as in the metrics.
    numbers.map(|(rest, value)| (column(rest), value.filter(|value| value.is_finite()))).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Of all values there are, not of a sample.
fn standard_deviation(values: &[f64]) -> f64 {
    let center = mean(values);
    (values.iter().map(|v| (v - center) * (v - center)).sum::<f64>() / values.len() as f64).sqrt()
}
