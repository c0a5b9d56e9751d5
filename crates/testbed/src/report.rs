//! What a run in the testbed found, as the simulator's metrics. What could not be observed is none, not zero.

use crate::error::TestbedError;
use crate::options::{ClientKind, Options, ServerKind};
use crate::shared_flow::SharedFlow;
use anabranch_live::Counters;
use anabranch_network::Histogram;
use anabranch_observation::{DashReport, Observed, ViewerReport};
use anabranch_observation::{DecisionLatency, Ended, Engine, Lateness, LiveFacts, Metrics, Outcome, ServerCounters};
use anabranch_observation::{Facts, Over, gather, link_metrics};
use anabranch_scenario::Scenario;
use anabranch_testnet::EmulatorReport as Emulated;
use anabranch_units::{Duration, Instant, LinkDirection};
use std::collections::{BTreeMap, BTreeSet};

/// A run is invalid if more than one in a hundred of its deliveries came later than this: it measured the machine.
const MOST_LATENESS: Duration = Duration::from_millis(1);

/// What was seen of a run.
pub(crate) struct Seen {
    pub ended: Ended,
    pub end: Instant,
    pub report: Emulated,
    pub counters: Vec<Counters>,
    pub flows: Vec<SharedFlow>,
    pub sources: Vec<String>,
}

/// What is known of the machine.
pub(crate) struct Machine {
    pub realtime: bool,
    pub notes: Vec<String>,
    pub settings: Vec<(&'static str, String)>,
}

/// Whose events the testbed gets of the connection with this number.
pub(crate) fn observed(options: &Options, number: usize) -> Observed {
    Observed {
        sender: options.server == ServerKind::Anabranch,
        // A kernel does not report how long bytes waited for earlier ones.
        receiver: false,
        player: !options.is_program(number),
    }
}

/// Everything that a run gives.
pub(crate) fn outcome(scenario: &Scenario, options: &Options, seen: Seen, machine: Machine) -> Outcome {
    let Seen { ended, end, report, counters, flows, sources } = seen;
    let links = scenario.links.iter().zip(&report.paths);
    let links = links.flat_map(|(link, report)| {
        LinkDirection::BOTH
            .map(|direction| link_metrics(&link.name, direction, &report.stats[direction], report.inside[direction]))
    });
    let mut over = Vec::new();
    let mut connections = None;
    for flow in flows {
        let is_session = flow.is_session;
        let (observer, state, bytes) = flow.into_parts();
        connections.get_or_insert(state.connections);
        over.push(Over { observer, is_session, bytes, finished: state.finished });
    }
    // What the links next to the clients delivered to them; a packet that passed others before counts once.
    let last: BTreeSet<_> = scenario.paths.iter().map(|path| scenario.links_of(path)[0]).collect();
    let packets = last.into_iter().map(|link| report.paths[link].stats.down.delivered.packets).sum();
    let facts = Facts { engine: Engine::Live, seed: options.seed, ended, end, packets, links: links.collect() };
    let events = options.record_events.then(|| (Vec::new(), sources));
    let mut outcome = gather(scenario, facts, over, events);
    // A scenario without any session or traffic opens none.
    let connections = connections.unwrap_or(0);
    outcome.metrics.live = Some(live_facts(options, &report, &counters, connections, machine));
    outcome
}

/// Checks that no link lost count of packets.
///
/// # Errors
/// The link, and its numbers: that is a fault of this program.
pub(crate) fn check_conservation(scenario: &Scenario, report: &Emulated) -> Result<(), TestbedError> {
    for (link, report) in scenario.links.iter().zip(&report.paths) {
        for direction in LinkDirection::BOTH {
            report.stats[direction].check_conservation(report.inside[direction]).map_err(|imbalance| {
                TestbedError::Failed(format!("link {} ({direction}) lost count of packets: {imbalance}", link.name))
            })?;
        }
    }
    Ok(())
}

/// The release of the running kernel, such as `6.12.8`; `unknown` where `/proc` does not tell.
pub fn kernel_release() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    release.map_or_else(|_| "unknown".to_owned(), |release| release.trim().to_owned())
}

fn live_facts(
    options: &Options,
    report: &Emulated,
    counters: &[Counters],
    connections: u16,
    machine: Machine,
) -> LiveFacts {
    let client = if options.client == ClientKind::Model { "model" } else { "program" };
    LiveFacts {
        server: options.server.name().to_owned(),
        client: client.to_owned(),
        kernel: kernel_release(),
        lateness_s: lateness(&report.lateness),
        invalid: is_invalid(&report.lateness),
        realtime: machine.realtime,
        refused: report.refused,
        connections,
        settings: machine.settings.into_iter().map(|(name, value)| (name.replace('/', "."), value)).collect(),
        server_counters: counters.iter().map(counted).collect(),
        notes: machine.notes,
        decision_latency_us: None,
        client_counters: None,
        client_received_bytes: None,
    }
}

/// Whether the machine delivered packets so late that the run's numbers mean nothing. This is the one place that
/// decides it.
fn is_invalid(lateness: &Histogram) -> bool {
    lateness.quantile(0.99).is_some_and(|p99| p99 > MOST_LATENESS)
}

fn lateness(lateness: &Histogram) -> Lateness {
    let quantile = |q| lateness.quantile(q).map(Duration::as_secs_f64);
    let p99 = quantile(0.99);
    let max = p99.map(|_| lateness.max().as_secs_f64());
    Lateness { p50: quantile(0.5), p99, p999: quantile(0.999), max }
}

fn counted(counters: &Counters) -> ServerCounters {
    ServerCounters {
        accepted: counters.accepted,
        closed: counters.closed,
        refused: counters.refused,
        displaced: counters.displaced,
        idle: counters.idle,
        stalled: counters.stalled,
        undecodable: counters.undecodable,
        misdirected: counters.misdirected,
        unknown: counters.unknown,
        unsendable: counters.unsendable,
    }
}

/// What the caller of a testbed knows of the first session's client and the testbed does not.
#[derive(Clone, Debug, Default)]
pub struct ClientReport {
    /// The client's name; none: as the testbed calls it.
    pub name: Option<String>,
    /// What the viewer of a program saw, if the program reports it.
    pub viewer: Option<ViewerReport>,
    /// The same of a DASH video.
    pub dash: Option<DashReport>,
    /// What the client's kernel counted of Multipath TCP, by name.
    pub counters: Option<BTreeMap<String, u64>>,
    /// Bytes that each of the client's devices received.
    pub received_bytes: Option<BTreeMap<String, u64>>,
    /// What should be known of the run.
    pub notes: Vec<String>,
    /// How long decisions of the caller's own algorithms took, if it has any.
    pub decisions: Option<DecisionLatency>,
}

impl ClientReport {
    /// Adds it to the metrics of the run. Indexes of fairness do not change: they are of what was observed while the
    /// run lasted.
    pub fn add_to(self, metrics: &mut Metrics) {
        if let Some(session) = metrics.sessions.first_mut() {
            session.viewer = self.viewer.or(session.viewer.take());
            session.dash = self.dash.map(Some).or(session.dash.take());
        }
        if let Some(live) = &mut metrics.live {
            live.client = self.name.unwrap_or_else(|| std::mem::take(&mut live.client));
            live.decision_latency_us = self.decisions;
            live.client_counters = self.counters;
            live.client_received_bytes = self.received_bytes;
            live.notes.extend(self.notes);
        }
    }
}

#[cfg(test)]
mod tests;
