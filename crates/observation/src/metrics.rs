//! The numbers of a run: the contract of `metrics.json` and `run --json`.

use crate::fairness::Fairness;
use crate::finite;
use crate::folds::{DashReport, DownloadReport, ForecastCounts, TransportReport, ViewerReport};
use crate::group;
use crate::live::LiveFacts;
use crate::recording::Recording;
use crate::table::EventColumns;
use anabranch_units::LinkDirection;
use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};

/// The version of the JSON contract.
pub const SCHEMA: u32 = 1;

/// Everything that a run gives.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The numbers.
    pub metrics: Metrics,
    /// Samples for pictures.
    pub recording: Recording,
    /// Every event, if the run was asked to record them.
    pub events: Option<EventColumns>,
    /// Where the link time of each session went, if the run was asked to keep account.
    pub account: Option<EventColumns>,
}

/// Why a run or a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// Every session was done.
    Finished,
    /// The scenario's duration was over.
    Duration,
    /// Some session was not done, and nothing could happen to it any more.
    Stuck,
    /// The caller wanted no more.
    Stopped,
}

/// What drove a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// The simulator, in virtual time.
    Sim,
    /// The testbed, in real time.
    Live,
}

/// The numbers of a run; `run --json`. What is not observed is none here and null in JSON, never zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// The version of this contract.
    pub schema: u32,
    /// The scenario's name.
    pub scenario: String,
    /// The run's seed.
    pub seed: u64,
    /// Whether another seed gives another run: something in the scenario is drawn at random.
    pub seed_matters: bool,
    /// The version of Anabranch.
    pub version: String,
    /// What drove it.
    pub engine: Engine,
    /// Why the run ended.
    pub ended: Ended,
    /// The time at which it did, in seconds: simulated, or real.
    pub sim_seconds: f64,
    /// Packets with payload that arrived at an endpoint.
    pub packets: u64,
    /// Two per link: down, up.
    pub links: Vec<LinkMetrics>,
    /// One per viewer.
    pub sessions: Vec<SessionMetrics>,
    /// One per download of the cross traffic.
    pub traffic: Vec<SessionMetrics>,
    /// How evenly the viewers of DASH videos fared; null if there are not several.
    pub fairness: Option<Fairness>,
    /// The testbed of a run in real time; absent in JSON of a simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveFacts>,
}

/// The JSON Schema of the contract. What is not required is null or absent where it was not observed, and so is every
/// key of an object that is marked `x-observable`.
pub fn json_schema() -> Schema {
    schema_for!(Metrics)
}

#[derive(Serialize)]
struct Timed<'a> {
    #[serde(flatten)]
    metrics: &'a Metrics,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_seconds: Option<f64>,
}

impl Metrics {
    /// The metrics as JSON. The time that the run took belongs to a machine, not to the result: it is added only if it
    /// is given, as `cpu_seconds`.
    ///
    /// # Panics
    /// If a number is NaN or infinite, which no metric is: JSON would make it null, as if it had not been observed.
    pub fn to_json(&self, cpu_seconds: Option<f64>) -> String {
        let timed = Timed { metrics: self, cpu_seconds };
        finite::check(&timed).unwrap_or_else(|error| panic!("a metric is no number: {error}"));
        serde_json::to_string_pretty(&timed).expect("metrics have only text keys")
    }
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkMetrics {
    /// The link's name.
    pub name: String,
    /// Which of the two.
    pub direction: LinkDirection,
    /// Bytes of IP packets that it delivered.
    pub bytes: u64,
    /// IP packets that it delivered.
    pub packets: u64,
    /// How long packets waited.
    pub queue_delay_s: QueueDelay,
    /// Packets that the queue dropped.
    pub drops_queue: u64,
    /// Packets that the loss model dropped.
    pub drops_random: u64,
    /// Packets that were lost because the link was cut.
    pub drops_outage: u64,
    /// Packets that were larger than the MTU.
    pub drops_too_big: u64,
    /// Packets that were sent into it. With the copies, these are the packets delivered, dropped and in flight.
    pub packets_sent: u64,
    /// Copies that it made.
    pub packets_duplicated: u64,
    /// Packets that waited or propagated when the run ended.
    pub packets_in_flight: u64,
}

/// How long packets waited in a queue, in seconds. Both are null if no packet passed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueDelay {
    /// Exact.
    pub mean: Option<f64>,
    /// Within 0.8 %.
    pub p95: Option<f64>,
}

/// One viewer, or one download of the cross traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionMetrics {
    /// Such as `session 0`.
    pub name: String,
    /// When it began, in seconds.
    pub start_s: f64,
    /// When the player was done, in seconds; null if it was not.
    pub finished_s: Option<f64>,
    /// How it ended: as the run did, unless its player was done before. Cross traffic goes on as long as the run:
    /// `duration`.
    pub ended: Ended,
    /// It ended before its end: the video was not played, or the download not complete. Stalls and all else count until
    /// then only, so that a session that was cut off may seem better than one that was not.
    pub cut_off: bool,
    /// The playing time of its video, in seconds; null if it has none.
    pub video_s: Option<f64>,
    /// Bytes that the application read.
    pub bytes: u64,
    /// What the viewer saw. None: the client is a program that does not report it, and its keys are null in JSON.
    #[serde(flatten, with = "group::observable")]
    #[schemars(with = "Option<ViewerReport>")]
    pub viewer: Option<ViewerReport>,
    /// What the viewer of a DASH video saw. `None`: the video is no DASH video, and its keys are absent in JSON.
    /// `Some(None)`: as with [`viewer`](Self::viewer), and its keys are null.
    #[serde(flatten, with = "group::optional")]
    #[schemars(with = "Option<DashReport>")]
    pub dash: Option<Option<DashReport>>,
    /// What a player without a video downloaded (`bulk`, `on-off`); null for a video, and where the player is not
    /// observed.
    pub downloads: Option<Vec<DownloadReport>>,
    /// The longest time in which no byte became readable although a response was under way, in seconds. None: the
    /// player is not observed.
    pub longest_delivery_gap_s: Option<f64>,
    /// What the transport did.
    #[serde(flatten, with = "group::required")]
    #[schemars(with = "TransportReport")]
    pub transport: TransportReport,
    /// How the sticky schedulers' paper's two conditions judged the path switches; null without a progressive video,
    /// and where the sender is not observed.
    pub switch_forecasts: Option<ForecastCounts>,
}

impl SessionMetrics {
    /// What the viewer of a DASH video saw; none if it is no DASH video or was not observed.
    pub fn dash(&self) -> Option<&DashReport> {
        self.dash.as_ref()?.as_ref()
    }
}
