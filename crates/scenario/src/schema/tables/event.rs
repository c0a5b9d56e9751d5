//! `[[event]]`: what happens to the network and to programs, and when.

use super::Scenario;
use super::link::DirectionSpec;
use anabranch_network::Change;
use anabranch_units::{Duration, LinkDirection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A change of the network, or of a session's programs, at a given time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// The time of the event.
    pub at: Duration,
    /// The name of the link that changes.
    pub link: Option<String>,
    /// The name of the path whose network interface goes down or comes back. The client notices it.
    pub path: Option<String>,
    /// The long form of `down = true` or `down = false`.
    pub cut: Option<bool>,
    /// `true` cuts the link or the path, `false` restores it. A cut link drops packets silently, as a lost radio does.
    /// Or a table of changes of the downlink.
    pub down: Option<DirectionSpec>,
    /// A table of changes of the uplink.
    pub up: Option<DirectionSpec>,
    /// The position of the `[[session]]` whose programs stop or go on; all viewers of it.
    pub session: Option<u32>,
    /// `false`: from here on the client's program reads nothing from its connection, as if it hung; `true`: it reads
    /// again. Playback goes on meanwhile. Simulation only.
    pub reads: Option<bool>,
    /// `false`: from here on the server's program writes nothing, also in the middle of a response; what the send
    /// buffer has taken is still sent. `true`: it writes again. Simulation only.
    pub writes: Option<bool>,
}

/// What an event does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action<'a> {
    /// A link gets other properties.
    Link {
        /// Its position in the scenario's list.
        link: usize,
        /// Cut or restored, in both directions.
        cut: Option<bool>,
        /// Changes of its downlink.
        down: Option<&'a DirectionSpec>,
        /// Changes of its uplink.
        up: Option<&'a DirectionSpec>,
    },
    /// The client's interface on a path goes away or comes back, which the client notices.
    Path {
        /// Its position in the scenario's list.
        path: usize,
        /// Whether the interface is down now.
        down: bool,
    },
    /// The programs of a session stop or go on.
    Session {
        /// Its position in the scenario's list.
        session: usize,
        /// Whether the client's program reads now, if that changes.
        reads: Option<bool>,
        /// Whether the server's program writes now, if that changes.
        writes: Option<bool>,
    },
}

impl Action<'_> {
    /// What a link's direction gets, one change after the other; nothing if the action is none of a link.
    pub fn changes(&self, direction: LinkDirection) -> Vec<Change> {
        let Action::Link { cut, down, up, .. } = self else { return Vec::new() };
        let spec = if direction == LinkDirection::Down { down } else { up };
        let properties = spec.map_or_else(Vec::new, DirectionSpec::changes);
        properties.into_iter().chain(cut.map(|cut| Change::Up(!cut))).collect()
    }
}

impl Event {
    /// What the event does in its scenario.
    ///
    /// # Panics
    /// If it names no link, path or session of the scenario, which is checked when the scenario is read.
    pub fn action(&self, scenario: &Scenario) -> Action<'_> {
        if let Some(session) = self.session {
            return Action::Session { session: session as usize, reads: self.reads, writes: self.writes };
        }
        match (&self.link, &self.path) {
            (Some(link), _) => Action::Link {
                link: scenario.link_position(link),
                cut: self.cut,
                down: self.down.as_ref(),
                up: self.up.as_ref(),
            },
            (None, Some(path)) => {
                Action::Path { path: scenario.path_position(path), down: self.cut.unwrap_or_default() }
            }
            (None, None) => unreachable!("the events were checked"),
        }
    }
}
