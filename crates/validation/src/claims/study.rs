//! Conditions, variants of studies, and the results of each condition.

use super::Tick;
use crate::runs::{observed, set, shipped, simulate};
use anabranch_observation::{Ended, Metrics, Outcome, Recording};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// The congestion controls of both papers.
pub const CONTROLS: [&str; 4] = ["cubic", "compound", "lia", "olia"];
/// The sticky schedulers' paper's schedulers; min-RTT is its DFT.
pub const SCHEDULERS: [&str; 4] = ["min-rtt", "gr-sty", "tp-sty", "tr-sty"];
/// The video's rate, b/s.
pub const VIDEO_BPS: f64 = 5.24e6;

/// A set of scenarios with the schedulers that their paper tried.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Names of shipped scenarios.
    pub scenarios: &'static [&'static str],
    /// The schedulers.
    pub schedulers: &'static [&'static str],
}

/// The sticky schedulers' paper.
pub const STICKY: Group =
    Group { scenarios: &["sticky/base", "sticky/3p-50", "sticky/3p-150"], schedulers: &SCHEDULERS };

/// The handoff paper.
pub const HANDOFF: Group = Group {
    scenarios: &[
        "handoff/limited",
        "handoff/limited-handoff",
        "handoff/large",
        "handoff/large-handoff",
        "handoff/cellular",
        "handoff/cellular-handoff",
    ],
    schedulers: &["min-rtt", "gr-sty"],
};

/// One condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The scenario.
    pub scenario: &'static str,
    /// The congestion control.
    pub control: &'static str,
    /// The scheduler.
    pub scheduler: &'static str,
}

/// An assumption in another place than the shipped scenarios have it.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Name of the change, for the head of a column.
    pub name: &'static str,
    /// Changes of a scenario.
    change: fn(&str) -> Vec<(String, String)>,
}

/// The shipped scenarios, and what the papers leave open set otherwise.
pub const VARIANTS: [Variant; 7] = [
    Variant { name: "as shipped", change: |_| Vec::new() },
    Variant { name: "VLC 3", change: |_| vec![set("session.0.player", "vlc")] },
    Variant { name: "queues halved", change: |scenario| queues(scenario, 0.5) },
    Variant { name: "queues doubled", change: |scenario| queues(scenario, 2.0) },
    Variant { name: "WiFi loses 0.5 %", change: wifi_loss },
    Variant { name: "constant rate", change: |_| constant_rate() },
    Variant { name: "cut at 120 s", change: early_cut },
];

/// The links of a scenario with their queues as shipped, in bytes, or packets where these are counted.
fn links(scenario: &str) -> (&'static [&'static str], f64, &'static str) {
    match scenario {
        "handoff/limited" | "handoff/limited-handoff" => (&["wifi1", "wifi2"], 192.0, "kB"),
        "handoff/large" | "handoff/large-handoff" => (&["wifi1", "wifi2"], 576.0, "kB"),
        "handoff/cellular" | "handoff/cellular-handoff" => (&["wifi", "lte"], 1000.0, "packets"),
        _ => (&["path1", "path2", "path3"], 64.0, "kB"),
    }
}

fn queues(scenario: &str, times: f64) -> Vec<(String, String)> {
    let (links, size, unit) = links(scenario);
    links.iter().map(|link| set(format!("link.{link}.queue"), format!("\"{} {unit}\"", size * times))).collect()
}

/// The sum of WiFi's own loss and the emulator's. Paths 1 and 2 of the sticky scenarios are WiFi.
fn wifi_loss(scenario: &str) -> Vec<(String, String)> {
    let loss = |link: &str, share: &str| set(format!("link.{link}.loss"), format!("\"{share} %\""));
    match scenario {
        "sticky/base" => vec![loss("path1", "0.5"), loss("path2", "0.5")],
        "sticky/3p-50" | "sticky/3p-150" => vec![loss("path1", "2.5"), loss("path2", "0.5")],
        "handoff/cellular" | "handoff/cellular-handoff" => vec![loss("wifi", "0.5")],
        _ => vec![loss("wifi1", "0.5"), loss("wifi2", "0.5")],
    }
}

fn constant_rate() -> Vec<(String, String)> {
    vec![set("session.0.video.scene_variation", 0), set("session.0.video.picture_variation", 0)]
}

fn early_cut(scenario: &str) -> Vec<(String, String)> {
    if scenario.ends_with("-handoff") { vec![set("event.0.at", "\"120 s\"")] } else { Vec::new() }
}

/// Results of one session on one path.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathObservation {
    /// Acknowledged payload over the session's time.
    pub throughput_bps: f64,
    /// TCP's retransmissions; reinjections on another subflow are not counted.
    pub retransmissions: f64,
    /// Segments with payload, retransmissions included.
    pub segments: f64,
}

/// Results of one session.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Late clock references.
    pub underflows: f64,
    /// Pictures decoded too late.
    pub discards: f64,
    /// Frozen intervals, and their sum in seconds.
    pub stalls: f64,
    /// See `stalls`.
    pub stall_s: f64,
    /// Path switches among all packets.
    pub switches: f64,
    /// Retransmissions on all paths.
    pub retransmissions: f64,
    /// Retransmissions before and after the cut; zero without one.
    pub around_cut: (f64, f64),
    /// By path, in the scenario's order.
    pub paths: Vec<PathObservation>,
    /// From the cut until the second path carries the video's rate for a second; zero without a cut.
    pub recovery_s: f64,
    /// Whether the video was played to its end.
    pub finished: bool,
}

impl Observation {
    fn of(outcome: &Outcome) -> Self {
        let Metrics { ended, sessions, .. } = &outcome.metrics;
        let session = &sessions[0];
        let recorded = &outcome.recording.sessions[0];
        let path = |name: &str| {
            let own = session.transport.subflows.iter().filter(|subflow| subflow.path == name);
            own.fold(PathObservation::default(), |sum, subflow| PathObservation {
                throughput_bps: sum.throughput_bps + subflow.goodput_bps,
                retransmissions: sum.retransmissions + subflow.retransmissions as f64,
                segments: sum.segments + subflow.segments_sent as f64,
            })
        };
        let paths: Vec<_> = recorded.paths.iter().map(|recorded| path(&recorded.path)).collect();
        let around = observed(session.transport.retransmissions_around_events.as_ref()).first();
        let viewer = observed(session.viewer.as_ref());
        Observation {
            underflows: viewer.buffer_underflows as f64,
            discards: viewer.picture_discards as f64,
            stalls: viewer.stalls as f64,
            stall_s: viewer.stall_s,
            switches: observed(session.transport.path_switches) as f64,
            retransmissions: paths.iter().map(|path| path.retransmissions).sum(),
            around_cut: around.map_or((0.0, 0.0), |event| (event.before as f64, event.after as f64)),
            paths,
            recovery_s: recovery_s(&outcome.recording),
            finished: *ended == Ended::Finished,
        }
    }
}

/// From the first event on: when does the second path carry the video's rate, on average over a second?
fn recovery_s(recording: &Recording) -> f64 {
    let Some(cut) = recording.events.first() else { return 0.0 };
    let session = &recording.sessions[0];
    let per_second = (1.0 / recording.interval_s).round() as usize;
    let after = session.time_s.partition_point(|time| *time <= cut.at_s);
    let rates = &session.paths[1].throughput_bps[after..];
    let carries =
        |window: &[f32]| window.iter().map(|bps| f64::from(*bps)).sum::<f64>() / per_second as f64 >= VIDEO_BPS;
    let begin = rates.windows(per_second).position(carries).unwrap_or(rates.len());
    begin as f64 * recording.interval_s
}

/// Every condition of a paper under one variant.
pub struct Study {
    /// The variant.
    pub variant: Variant,
    /// Number of seeds of each condition.
    pub seeds: u64,
    cells: BTreeMap<Cell, Vec<Observation>>,
}

/// The conditions of a group, in the order of its lists.
pub fn cells(group: Group) -> impl Iterator<Item = Cell> {
    group.scenarios.iter().flat_map(move |scenario| {
        CONTROLS.iter().flat_map(move |control| {
            group.schedulers.iter().map(move |scheduler| Cell { scenario, control, scheduler })
        })
    })
}

impl Cell {
    /// The changes that turn the shipped scenario into this condition, for one seed.
    pub fn changes(&self, seed: u64) -> Vec<(String, String)> {
        vec![
            set("transport.congestion_control", self.control),
            set("transport.scheduler", self.scheduler),
            set("session.0.video.seed", seed),
        ]
    }

    /// The condition with another scheduler.
    pub fn with_scheduler(self, scheduler: &'static str) -> Self {
        Cell { scheduler, ..self }
    }

    /// The condition in another scenario.
    pub fn in_scenario(self, scenario: &'static str) -> Self {
        Cell { scenario, ..self }
    }
}

impl Study {
    /// Simulates every condition of a group with the seeds from 1; `None` if it was stopped.
    pub fn run(variant: Variant, group: Group, seeds: u64, tick: Tick<'_>) -> Option<Self> {
        let runs: Vec<(Cell, u64)> = cells(group).flat_map(|cell| (1..=seeds).map(move |seed| (cell, seed))).collect();
        let observe = |(cell, seed): &(Cell, u64)| {
            let mut changes = cell.changes(*seed);
            changes.extend((variant.change)(cell.scenario));
            let observation = Observation::of(&simulate(shipped(cell.scenario), &changes, *seed));
            tick().then_some(observation)
        };
        let observed: Vec<Observation> = runs.par_iter().map(observe).collect::<Option<_>>()?;
        let mut cells: BTreeMap<Cell, Vec<Observation>> = BTreeMap::new();
        for ((cell, _), observation) in runs.into_iter().zip(observed) {
            cells.entry(cell).or_default().push(observation);
        }
        Some(Study { variant, seeds, cells })
    }

    /// The study restricted to the first `seeds` seeds.
    pub fn first(&self, seeds: u64) -> Self {
        let some =
            |(cell, seen): (&Cell, &Vec<Observation>)| (*cell, seen.iter().take(seeds as usize).cloned().collect());
        Study { variant: self.variant, seeds: self.seeds.min(seeds), cells: self.cells.iter().map(some).collect() }
    }

    /// The results of a condition, by seed.
    ///
    /// # Panics
    /// If the condition is not the study's.
    pub fn cell(&self, cell: Cell) -> &[Observation] {
        &self.cells[&cell]
    }

    /// Number of sessions that were not played to the end, and of all.
    pub fn unfinished(&self) -> (usize, usize) {
        let all = || self.cells.values().flatten();
        (all().filter(|seen| !seen.finished).count(), all().count())
    }

    /// One quantity of a condition, by seed.
    pub fn values(&self, cell: Cell, of: impl Fn(&Observation) -> f64) -> Vec<f64> {
        self.cell(cell).iter().map(of).collect()
    }
}
