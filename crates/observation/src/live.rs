//! What there is to say about a run in real time, in addition to the numbers that a simulation has, too.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The testbed and the machine of a run in real time: `live` in its metrics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LiveFacts {
    /// Who served: `anabranch` (our endpoint) or `kernel`.
    pub server: String,
    /// The client of the first session: `model` (the scenario's player), or the name of a program.
    pub client: String,
    /// The kernel's release.
    pub kernel: String,
    /// How much later than due packets were delivered.
    pub lateness_s: Lateness,
    /// The machine was too late: the run measured it and not the links, and its numbers mean nothing.
    #[serde(rename = "void")]
    pub invalid: bool,
    /// Whether the emulator ran as a real-time thread.
    pub realtime: bool,
    /// Packets that a kernel refused to take, as it does while an interface is down.
    pub refused: u64,
    /// Connections that the first session's client opened.
    pub connections: u16,
    /// Kernel parameters that follow from the scenario, by name.
    pub settings: BTreeMap<String, String>,
    /// What our server counted, flow by flow; empty if the kernel served.
    pub server_counters: Vec<ServerCounters>,
    /// What is not as the scenario says, and what the client's program reported.
    pub notes: Vec<String>,
    /// How long the decisions of algorithms in Python took. Absent where none decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_latency_us: Option<DecisionLatency>,
    /// What the kernel of the first session's client counted of Multipath TCP, by name, without what is zero. Absent
    /// where they were not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_counters: Option<BTreeMap<String, u64>>,
    /// Bytes that each device of the first session's client received. Absent where the counters were not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_received_bytes: Option<BTreeMap<String, u64>>,
}

/// How much later than due packets were delivered, in seconds. All are null if there was no packet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lateness {
    /// The median.
    pub p50: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
    /// One packet of a thousand was later.
    pub p999: Option<f64>,
    /// The latest packet's.
    pub max: Option<f64>,
}

/// How long decisions of algorithms in Python took, in microseconds of real time: from the engine's call to the answer,
/// with the wait for the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionLatency {
    /// How many decisions there were.
    pub decisions: u64,
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// What a listener of our server counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerCounters {
    /// SYNs that were taken up.
    pub accepted: u64,
    /// Connections that ended, half-open ones included.
    pub closed: u64,
    /// SYNs that were not answered.
    pub refused: u64,
    /// Half-open connections that made room for newer ones.
    pub displaced: u64,
    /// Connections that were aborted because nothing arrived from the client.
    pub idle: u64,
    /// Connections that were aborted because the client took no data.
    pub stalled: u64,
    /// Packets that could not be decoded.
    pub undecodable: u64,
    /// Packets for an address that is not the server's on that path.
    pub misdirected: u64,
    /// Segments that belong to no connection.
    pub unknown: u64,
    /// Segments that the endpoint wanted to send and that could not be encoded.
    pub unsendable: u64,
}
