//! The tables of a scenario, one struct each: a key is declared here, with its meaning, its default and its range, and
//! nowhere else. `[transport]` is `anabranch_stack::connection::Transport`, a player's options are
//! `anabranch_media::PlayerOptions`.
//!
//! The structs are the *long form*: what [`super::expand`] makes of what an author writes short.

mod event;
mod link;
mod named;
mod offset;
mod player;
mod rate;
mod server;
mod session;
mod starts;
mod video;

pub use event::{Action, Event};
pub use link::{DirectionSpec, Link, TooBig};
pub use offset::Offset;
pub use player::Player;
pub(super) use rate::Recorded;
pub use rate::{LatencyUse, Rate, Trace};
pub use server::Server;
pub use session::{Path, Session, Statistics, Traffic, TrafficKind};
pub use starts::Starts;
pub use video::{Bulk, Dash, Fps, Progressive, Video};
pub(super) use video::{RATES_EXPECTED, RESOLUTIONS_EXPECTED};

use crate::warning::Warning;
use anabranch_stack::connection::{Choice, Transport};
use anabranch_units::{Duration, text};
use core::ops::Range;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the schema, as a scenario states it.
pub const SCHEMA: u64 = 1;

/// A scenario: a network, the sessions that use it, and timed events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scenario {
    /// What the run is called: the file's name, or that of a shipped scenario.
    #[serde(skip)]
    pub name: String,
    /// What is legal in it and probably not meant.
    #[serde(skip)]
    pub warnings: Vec<Warning>,
    /// The version of the schema: 1.
    #[serde(deserialize_with = "text::whole::<0, 18446744073709551615, _, _>")]
    #[schemars(extend("const" = 1, "x-expected" = "schema = 1"))]
    pub schema: u64,
    /// The question that the scenario answers, in one sentence.
    #[serde(default)]
    pub question: String,
    /// When the run ends at the latest.
    pub duration: Duration,
    /// Goodput is counted from this time on: that of sessions, of cross traffic and of subflows. All other metrics
    /// cover the whole run, or the `statistics` window of a session.
    #[serde(default)]
    pub warm_up: Duration,
    /// How often windows, rates and buffers are sampled.
    #[serde(default = "tenth_of_a_second")]
    pub sample_interval: Duration,
    /// The run ends when no session received a packet for this long and no event is to come. The default is more than
    /// three of the longest retransmission timeouts, 120 s each.
    #[serde(default = "stuck_after")]
    pub stuck_after: Duration,
    /// Where in their recordings the traces without an `offset` of their own begin. Traces that were recorded together
    /// stay aligned. `random` draws one beginning per seed, the same for all these traces.
    #[serde(default)]
    pub trace_offset: Offset,
    /// How the endpoints behave.
    #[serde(default)]
    pub transport: Transport,
    /// The server of the sessions.
    #[serde(default)]
    pub server: Server,
    /// The links: one table each, `[link.NAME]`.
    #[serde(rename = "link", default, with = "named")]
    #[schemars(with = "BTreeMap<String, Link>")]
    pub links: Vec<Link>,
    /// The paths over the links: `[path.NAME]`. Without any, every link is a path of the same name.
    #[serde(rename = "path", default, with = "named")]
    #[schemars(with = "BTreeMap<String, Path>")]
    pub paths: Vec<Path>,
    /// The sessions, which play a video or download: a list, `[[session]]`.
    #[serde(rename = "session", default, deserialize_with = "starts::list", skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<Session>,
    /// Cross traffic: a list, `[[traffic]]`.
    #[serde(default, deserialize_with = "starts::list", skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<Traffic>,
    /// Changes of links and paths at given times: a list, `[[event]]`, sorted by time when the scenario is read.
    #[serde(rename = "event", default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
}

fn tenth_of_a_second() -> Duration {
    Duration::from_millis(100)
}

fn stuck_after() -> Duration {
    Duration::from_secs(400)
}

/// The kind of congestion controls.
const CONTROL: &str = "congestion_control";

/// The choice if it is in no registry.
fn outside<'a>((kind, choice): (&'static str, &'a Choice)) -> Option<(&'static str, &'a str)> {
    choice.external().map(|_| (kind, choice.name.as_str()))
}

impl Scenario {
    /// The scenario as TOML with every default written out. It reads as the same scenario again.
    ///
    /// # Panics
    /// Never: every value of a scenario can be written as TOML.
    pub fn resolved(&self) -> String {
        toml::to_string(self).expect("a scenario has only texts, numbers, lists and tables")
    }

    /// The parts that are in no registry: the kind of each, as in `scheduler`, and its name; each once.
    pub fn external(&self) -> Vec<(&'static str, &str)> {
        let transports = self.sessions.iter().filter_map(|session| session.transport.as_ref());
        let mut found = Vec::new();
        for transport in transports.chain([&self.transport]) {
            let choices = [
                ("scheduler", &transport.scheduler),
                ("path_policy", &transport.path_policy),
                (CONTROL, &transport.congestion_control),
            ];
            found.extend(choices.into_iter().filter_map(outside));
        }
        let of_paths = self.paths.iter().filter_map(|path| path.congestion_control.as_ref());
        let of_traffic = self.traffic.iter().map(|traffic| &traffic.congestion_control);
        found.extend(of_paths.chain(of_traffic).filter_map(|choice| outside((CONTROL, choice))));
        let rules = self.sessions.iter().filter_map(|session| session.player.options.own.rule.as_ref());
        found.extend(rules.map(|rule| ("abr_rule", rule.name.as_str())));
        found.sort_unstable();
        found.dedup();
        found
    }

    /// How the endpoints of a session behave.
    pub fn transport_of<'a>(&'a self, session: &'a Session) -> &'a Transport {
        session.transport.as_ref().unwrap_or(&self.transport)
    }

    /// The positions of a path's links, from the client to the server.
    pub fn links_of(&self, path: &Path) -> Vec<usize> {
        path.links.iter().map(|link| self.link_position(link)).collect()
    }

    /// The positions of a session's paths; the first carries the initial subflow.
    pub fn paths_of(&self, session: &Session) -> Vec<usize> {
        session.paths.iter().map(|path| self.path_position(path)).collect()
    }

    /// The positions of a session's connections among those of [`plan`](crate::plan).
    pub fn flows_of(&self, session: usize) -> Range<usize> {
        let viewers = |sessions: &[Session]| sessions.iter().map(|session| session.starts.count as usize).sum();
        viewers(&self.sessions[..session])..viewers(&self.sessions[..=session])
    }

    /// The position of the link of that name.
    ///
    /// # Panics
    /// If there is none: names are checked when the scenario is read.
    pub fn link_position(&self, name: &str) -> usize {
        self.links.iter().position(|link| link.name == name).expect("the names of links were checked")
    }

    /// The position of the path of that name.
    ///
    /// # Panics
    /// As [`Scenario::link_position`].
    pub fn path_position(&self, name: &str) -> usize {
        self.paths.iter().position(|path| path.name == name).expect("the names of paths were checked")
    }
}
