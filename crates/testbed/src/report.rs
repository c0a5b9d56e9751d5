//! What a run in the testbed found, in the simulator's words. What nobody could see is null, not zero.

use crate::flow::{Flow, State};
use crate::options::{ClientKind, Options, ServerKind};
use anabranch_live::{Counters, Report as Emulated};
use anabranch_observation::{Ended, Outcome, SessionMetrics};
use anabranch_observation::{Facts, Over, gather, link_metrics};
use anabranch_scenario::Scenario;
use anabranch_units::{Duration, Instant};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A run of whose deliveries more than one in a hundred came later than this measured the machine.
const MOST_LATENESS: Duration = Duration::from_millis(1);

/// What a run gives.
#[derive(Clone, Debug)]
pub struct Report {
    /// The metrics as `run --json` has them, and `live`: what there is to say about the testbed.
    pub metrics: Map<String, Value>,
    /// The same as the simulator's outcome; numbers that nobody could see are zero here.
    pub outcome: Outcome,
    /// What is in `live`.
    pub facts: LiveFacts,
}

/// What there is to say about the testbed.
#[derive(Clone, Debug, Serialize)]
pub struct LiveFacts {
    /// Who served.
    pub server: &'static str,
    /// `model`, or `program`.
    pub client: &'static str,
    /// The kernel's release.
    pub kernel: String,
    /// How much later than due packets were delivered.
    pub lateness_s: Lateness,
    /// The run is worth nothing: the machine was too late.
    pub void: bool,
    /// Whether the emulator ran before all that is not real-time.
    pub realtime: bool,
    /// Packets that a kernel refused to take, as it does while an interface is down.
    pub refused: u64,
    /// Connections that the first session's client opened.
    pub connections: u16,
    /// Kernel parameters that follow from the scenario.
    pub settings: Map<String, Value>,
    /// What our server counted, flow by flow; empty if the kernel served.
    pub server_counters: Vec<Value>,
    /// What is not as the scenario says.
    pub notes: Vec<String>,
}

/// How much later than due packets were delivered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lateness {
    /// In the middle; null if there was no packet.
    pub p50: Option<f64>,
    /// At the 99th percentile.
    pub p99: Option<f64>,
    /// One packet of a thousand was later.
    pub p999: Option<f64>,
    /// At most.
    pub max: Option<f64>,
}

/// What was seen of a run.
pub(crate) struct Seen {
    pub ended: Ended,
    pub end: Instant,
    pub report: Emulated,
    pub counters: Vec<Counters>,
    pub flows: Vec<Flow>,
    pub sources: Vec<String>,
}

/// What is known of the machine.
pub(crate) struct Machine {
    pub realtime: bool,
    pub notes: Vec<String>,
    pub settings: Vec<(&'static str, String)>,
}

impl Report {
    pub(crate) fn new(scenario: &Scenario, options: &Options, seen: Seen, machine: Machine) -> Self {
        let links = scenario.links.iter().zip(&seen.report.paths);
        let links = links.flat_map(|(link, report)| {
            [link_metrics(&link.name, true, &report.down), link_metrics(&link.name, false, &report.up)]
        });
        let (mut over, mut states) = (Vec::new(), Vec::new());
        for flow in seen.flows {
            let (awaited, program) = (flow.awaited, flow.program);
            let (observer, state, bytes) = flow.into_parts();
            over.push(Over { observer, awaited, bytes, finished: state.finished });
            states.push((awaited, program, state));
        }
        // What the links next to the clients delivered to them; a packet that passed others before counts once.
        let last: BTreeSet<_> = scenario.paths.iter().map(|path| scenario.links_of(path)[0]).collect();
        let packets = last.into_iter().map(|link| seen.report.paths[link].down.delivered.packets).sum();
        let facts = Facts {
            engine: "live",
            seed: options.seed,
            ended: seen.ended,
            end: seen.end,
            packets,
            links: links.collect(),
        };
        let events = options.record_events.then(|| (Vec::new(), seen.sources));
        let outcome = gather(scenario, facts, over, events);
        let facts = live_facts(options, &seen.report, &seen.counters, &states, machine);
        let mut metrics = object(serde_json::to_value(&outcome.metrics));
        let lists = [("sessions", true, &outcome.metrics.sessions), ("traffic", false, &outcome.metrics.traffic)];
        for (list, awaited, typed) in lists {
            let states = states.iter().filter(|(own, ..)| *own == awaited);
            let sessions = metrics.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
            for ((session, typed), (_, program, state)) in sessions.zip(typed).zip(states) {
                forget(session, typed, options.server, *program, state);
            }
        }
        if states.iter().any(|(awaited, program, _)| *awaited && *program) {
            forget_fairness(&mut metrics);
        }
        metrics.insert("live".into(), serde_json::to_value(&facts).unwrap_or_default());
        Report { metrics, outcome, facts }
    }

    /// The metrics as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.metrics).expect("metrics have only text keys")
    }
}

fn object(value: Result<Value, serde_json::Error>) -> Map<String, Value> {
    match value {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

fn live_facts(
    options: &Options,
    report: &Emulated,
    counters: &[Counters],
    states: &[(bool, bool, State)],
    machine: Machine,
) -> LiveFacts {
    let late = |q| report.lateness.quantile(q);
    let p99 = late(0.99);
    LiveFacts {
        server: options.server.name(),
        client: if options.client == ClientKind::Model { "model" } else { "program" },
        kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
        lateness_s: Lateness {
            p50: late(0.5).map(Duration::as_secs_f64),
            p99: p99.map(Duration::as_secs_f64),
            p999: late(0.999).map(Duration::as_secs_f64),
            max: p99.map(|_| report.lateness.max().as_secs_f64()),
        },
        void: p99.is_some_and(|p99| p99 > MOST_LATENESS),
        realtime: machine.realtime,
        refused: report.refused,
        connections: states.first().map_or(0, |(_, _, state)| state.connections),
        settings: machine.settings.into_iter().map(|(name, value)| (name.replace('/', "."), value.into())).collect(),
        server_counters: counters.iter().map(counted).collect(),
        notes: machine.notes,
    }
}

fn counted(c: &Counters) -> Value {
    json!({
        "accepted": c.accepted, "closed": c.closed, "refused": c.refused, "displaced": c.displaced,
        "idle": c.idle, "stalled": c.stalled, "undecodable": c.undecodable, "misdirected": c.misdirected, "unknown": c.unknown, "unsendable": c.unsendable,
    })
}

/// What only our endpoint tells when it sends.
const OF_OUR_SENDER: [&str; 6] = [
    "path_switches",
    "path_switches_new_data",
    "receive_window_limited_s",
    "scheduler_wait_s",
    "retransmissions_around_events",
    "switch_forecasts",
];
/// The same of each subflow.
const OF_OUR_SUBFLOWS: [&str; 8] = [
    "reinjections",
    "loss_events",
    "times_disabled",
    "times_enabled",
    "disabled_s",
    "disabled_spans_s",
    "control_counts",
    "retransmissions_around_events",
];

/// What the viewer saw, which only a player of ours tells: the names in a session's metrics.
fn of_players(session: &SessionMetrics) -> Vec<String> {
    let names = [serde_json::to_value(&session.viewer), serde_json::to_value(&session.dash)];
    names.into_iter().flat_map(object).map(|(name, _)| name).collect()
}

fn erase(of: &mut Map<String, Value>, names: &[impl AsRef<str>]) {
    for name in names {
        of.entry(name.as_ref()).and_modify(|value| *value = Value::Null);
    }
}

/// What the indexes of fairness take from what viewers saw.
const FAIRNESS_OF_VIEWERS: [&str; 3] = ["jain_mean_bitrate", "jain_qoe_linear", "jain_qoe_log"];

/// Makes the indexes null to which a program would have contributed numbers that nobody could see.
fn forget_fairness(metrics: &mut Map<String, Value>) {
    if let Some(fairness) = metrics.get_mut("fairness").and_then(Value::as_object_mut) {
        erase(fairness, &FAIRNESS_OF_VIEWERS);
    }
}

/// Makes null what nobody could see, and fills in what the kernel counted.
fn forget(session: &mut Value, metrics: &SessionMetrics, server: ServerKind, program: bool, state: &State) {
    let Some(session) = session.as_object_mut() else { return };
    // A kernel does not tell how long bytes waited for earlier ones.
    if let Some(waits) = session.get_mut("reorder_delay_s").and_then(Value::as_object_mut) {
        waits.values_mut().for_each(|value| *value = Value::Null);
    }
    erase(session, &["reorder_bytes_max"]);
    if program {
        erase(session, &of_players(metrics));
    }
    if server == ServerKind::Anabranch {
        return;
    }
    erase(session, &OF_OUR_SENDER);
    let subflows = session.get_mut("subflows").and_then(Value::as_array_mut).into_iter().flatten();
    let mut counted = state.counted.clone();
    counted.sort_by_key(|subflow| subflow.id);
    for (subflow, counted) in subflows.filter_map(Value::as_object_mut).zip(counted) {
        erase(subflow, &OF_OUR_SUBFLOWS);
        for (name, number) in [
            ("bytes", counted.bytes),
            ("segments_sent", counted.segments),
            ("retransmissions", counted.retransmissions),
            ("rto_count", counted.timeouts),
        ] {
            subflow.insert(name.into(), number.into());
        }
    }
}

#[cfg(test)]
mod tests;
