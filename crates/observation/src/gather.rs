//! From what was observed to the outcome of a run.

use crate::account;
use crate::capacity;
use crate::fairness::Fairness;
use crate::folds::PathLabel;
use crate::marks::marks;
use crate::metrics::{Ended, Engine, LinkMetrics, Metrics, Outcome, QueueDelay, SCHEMA, SessionMetrics};
use crate::observer::{Ending, Observer};
use crate::recording::Recording;
use crate::table::{EventRow, tabulate};
use anabranch_events::DropCause;
use anabranch_network::{Count, Histogram, Stats};
use anabranch_scenario::{Path, Scenario};
use anabranch_units::{Duration, Instant, LinkDirection};

/// What is said of a run as a whole.
pub struct Facts {
    /// Who drove it.
    pub engine: Engine,
    /// Its seed.
    pub seed: u64,
    /// Why it ended.
    pub ended: Ended,
    /// When.
    pub end: Instant,
    /// Packets with payload that arrived at an endpoint.
    pub packets: u64,
    /// Two per link: down, up.
    pub links: Vec<LinkMetrics>,
}

/// A connection that is over, for the run.
pub struct Over {
    /// Who listened.
    pub observer: Observer,
    /// A session, not cross traffic.
    pub is_session: bool,
    /// Bytes that its player read.
    pub bytes: u64,
    /// When its player was done, if it was.
    pub finished: Option<Instant>,
}

impl Over {
    /// How the connection ended in a run that ended like this.
    fn ended(&self, run: Ended) -> Ended {
        match (self.finished, self.is_session) {
            (Some(_), _) => Ended::Finished,
            (None, true) => run,
            // The run does not wait for it.
            (None, false) => Ended::Duration,
        }
    }
}

fn label(path: &Path) -> PathLabel {
    PathLabel { name: path.name.clone(), metered: path.metered }
}

/// The outcome of a run: metrics, recording and, from the links' rows and the names of those who spoke, the table of
/// events.
pub fn gather(
    scenario: &Scenario,
    facts: Facts,
    flows: Vec<Over>,
    events: Option<(Vec<EventRow>, Vec<String>)>,
) -> Outcome {
    let now = facts.end;
    let path_names: Vec<String> = scenario.paths.iter().map(|path| path.name.clone()).collect();
    let labels: Vec<PathLabel> = scenario.paths.iter().map(label).collect();
    let (mut sessions, mut traffic): (Vec<SessionMetrics>, Vec<_>) = (Vec::new(), Vec::new());
    for flow in &flows {
        let ending = Ending { at: flow.finished.unwrap_or(now), finished: flow.finished, how: flow.ended(facts.ended) };
        let metrics = flow.observer.metrics(&ending, flow.bytes, &labels);
        if flow.is_session { sessions.push(metrics) } else { traffic.push(metrics) }
    }
    let viewers = sessions.iter().filter_map(|session| Some((session.transport.goodput_bps, session.dash.as_ref()?)));
    let viewers: Vec<_> = viewers.map(|(goodput, dash)| (goodput, dash.as_ref())).collect();
    let metrics = Metrics {
        schema: SCHEMA,
        scenario: scenario.name.clone(),
        seed: facts.seed,
        seed_matters: scenario.seed_matters(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        engine: facts.engine,
        ended: facts.ended,
        sim_seconds: now.as_secs_f64(),
        packets: facts.packets,
        links: facts.links,
        fairness: Fairness::of(&viewers),
        sessions,
        traffic,
        live: None,
    };
    let mut recording = Recording {
        interval_s: scenario.sample_interval.as_secs_f64(),
        sessions: Vec::new(),
        events: marks(scenario, now),
    };
    let (mut rows, sources) = events.unzip();
    let flow_names: Vec<String> = flows.iter().map(|flow| flow.observer.name.clone()).collect();
    let mut accounts = Vec::new();
    for mut flow in flows {
        if let Some(account) = flow.observer.account.take() {
            accounts.push((flow.observer.name.clone(), account));
        }
        let (session, own) = flow.observer.into_records(flow.finished.unwrap_or(now));
        recording.sessions.extend(session);
        if let Some(rows) = &mut rows {
            rows.extend(own);
        }
    }
    capacity::fill(&mut recording.sessions, scenario, facts.seed, scenario.sample_interval);
    let events = rows.map(|rows| tabulate(rows, sources.unwrap_or_default(), &path_names));
    let account = (!accounts.is_empty()).then(|| account::tabulate(scenario, facts.seed, now, accounts, &flow_names));
    Outcome { metrics, recording, events, account }
}

/// What a direction of a link did; `inside` is what was in it when the run ended.
pub fn link_metrics(name: &str, direction: LinkDirection, stats: &Stats, inside: Count) -> LinkMetrics {
    let seconds = |time: Option<Duration>| time.map(Duration::as_secs_f64);
    let delay: &Histogram = &stats.queue_delay;
    LinkMetrics {
        name: name.to_string(),
        direction,
        bytes: stats.delivered.bytes,
        packets: stats.delivered.packets,
        queue_delay_s: QueueDelay { mean: seconds(delay.mean()), p95: seconds(delay.quantile(0.95)) },
        drops_queue: stats.dropped(DropCause::Queue).packets,
        drops_random: stats.dropped(DropCause::Random).packets,
        drops_outage: stats.dropped(DropCause::Outage).packets,
        drops_too_big: stats.dropped(DropCause::TooBig).packets,
        packets_sent: stats.sent.packets,
        packets_duplicated: stats.duplicated.packets,
        packets_in_flight: inside.packets,
    }
}
