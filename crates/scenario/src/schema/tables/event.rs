//! `[[event]]`: what happens to the network, and when.

use super::Scenario;
use super::link::DirectionSpec;
use anabranch_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A change of the network at a given time.
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
    /// `true` cuts the link or the path, `false` restores it. A cut link drops packets silently, as a lost radio does. Or a
    /// table of changes of the downlink.
    pub down: Option<DirectionSpec>,
    /// A table of changes of the uplink.
    pub up: Option<DirectionSpec>,
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
}

impl Event {
    /// What the event does in its scenario.
    ///
    /// # Panics
    /// If it names no link or path of the scenario, which is checked when the scenario is read.
    pub fn action(&self, scenario: &Scenario) -> Action<'_> {
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
