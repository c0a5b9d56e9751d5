//! Who downloads or watches, over which paths: `[path.NAME]`, `[[session]]` and `[[traffic]]`.

use super::named::Named;
use super::player::Player;
use super::starts::{Started, Starts};
use super::video::Video;
use anabranch_stack::connection::{Choice, Transport, congestion_control_schema};
use anabranch_units::{Bytes, Duration, text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A route through the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Path {
    /// Its name.
    #[serde(skip)]
    pub name: String,
    /// Names of its links, from the client to the server.
    pub links: Vec<String>,
    /// Use the path only while no other one works.
    #[serde(default)]
    pub backup: bool,
    /// Bytes cost money on this path. Schedulers and path policies see it, and the metrics count what was sent there.
    #[serde(default)]
    pub metered: bool,
    /// The congestion control of its subflows; the transport's where absent.
    #[serde(default)]
    #[schemars(schema_with = "congestion_control_schema")]
    pub congestion_control: Option<Choice>,
    /// The version of the Internet Protocol, 4 or 6. It decides the size of the headers.
    #[serde(default = "version_4", deserialize_with = "text::whole::<4, 6, _, _>")]
    #[schemars(range(min = 4, max = 6))]
    pub ip: u8,
}

fn version_4() -> u8 {
    4
}

impl Named for Path {
    fn name(&self) -> &str {
        &self.name
    }

    fn set_name(&mut self, name: String) {
        self.name = name;
    }
}

/// One or more viewers of the same kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// Names of the session's paths, the first for the initial subflow; all paths where absent.
    pub paths: Vec<String>,
    /// Keys of `[transport]` that are different for this session.
    pub transport: Option<Transport>,
    /// The content: { kind = "progressive", ... }, { kind = "dash", ... } or { kind = "bulk" }; an endless bulk
    /// download where absent.
    pub video: Video,
    /// The player: a name, or { kind, ... }; where absent `vlc` for a progressive video, `dash.js-5` for DASH, `bulk`
    /// for bulk.
    pub player: Player,
    /// Which part of a DASH session is measured, and the weights of its QoE: { from, to, ... }.
    pub statistics: Option<Statistics>,
    /// How many viewers of this kind, and when they begin.
    #[serde(flatten, skip_deserializing)]
    #[schemars(!skip_deserializing)]
    pub starts: Starts,
}

impl Started for Session {
    fn starts_mut(&mut self) -> &mut Starts {
        &mut self.starts
    }
}

/// What is measured of a DASH video.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Statistics {
    /// When measuring begins, after the session's start.
    pub from: Duration,
    /// When measuring ends, after the session's start; at the end of the session where absent.
    pub to: Option<Duration>,
    /// Linear QoE: the penalty for a change of the bitrate, per kbit/s (Yin et al., balanced).
    #[serde(deserialize_with = "price")]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub switch_penalty: f64,
    /// Linear QoE: the penalty for a second of stall, in kbit/s.
    #[serde(deserialize_with = "price")]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub stall_penalty: f64,
    /// Linear QoE: the penalty for a second of start-up, in kbit/s.
    #[serde(deserialize_with = "price")]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub startup_penalty: f64,
    /// Log QoE: the penalty for a change of the logarithm by one.
    #[serde(deserialize_with = "price")]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub log_switch_penalty: f64,
    /// Log QoE: the penalty for a second of stall (Pensieve).
    #[serde(deserialize_with = "price")]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub log_stall_penalty: f64,
    /// Log QoE: the penalty for a second of start-up.
    #[serde(deserialize_with = "price")]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub log_startup_penalty: f64,
}

fn price<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    text::number::<0, 1_000_000_000, D>(deserializer)
}

impl Default for Statistics {
    fn default() -> Self {
        Statistics {
            from: Duration::ZERO,
            to: None,
            // Yin et al., SIGCOMM 2015, section 7.1, "balanced": for a quality in kbit/s.
            switch_penalty: 1.0,
            stall_penalty: 3_000.0,
            startup_penalty: 3_000.0,
            // QoE_log of Pensieve (SIGCOMM 2017), which has no price of the start-up.
            log_switch_penalty: 1.0,
            log_stall_penalty: 2.66,
            log_startup_penalty: 0.0,
        }
    }
}

impl Statistics {
    /// From when until when, since the session's start; none: all of it.
    pub fn window(&self) -> Option<(Duration, Duration)> {
        self.to.map(|to| (self.from, to))
    }
}

/// Plain TCP downloads that compete with the sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// `tcp`: a plain TCP download, as fast as it can.
    #[serde(default)]
    pub kind: TrafficKind,
    /// The name of its path.
    pub path: String,
    /// The congestion control: a name, or a table with `name` and options.
    #[serde(default = "cubic")]
    #[schemars(schema_with = "congestion_control_schema")]
    pub congestion_control: Choice,
    /// How many of them, and when they begin.
    #[serde(flatten, skip_deserializing)]
    #[schemars(!skip_deserializing)]
    pub starts: Starts,
    /// When they end; at the end of the run where absent.
    pub stop: Option<Duration>,
    /// Bytes of each download; endless where absent.
    pub size: Option<Bytes>,
}

impl Started for Traffic {
    fn starts_mut(&mut self) -> &mut Starts {
        &mut self.starts
    }
}

fn cubic() -> Choice {
    Choice::of("cubic")
}

/// What cross traffic is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrafficKind {
    /// Downloads over plain TCP.
    #[default]
    Tcp,
}
