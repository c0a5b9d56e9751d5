//! Parts by choice: from a registry, or from outside, where a host of the endpoint makes them, in whatever language it
//! is written.

use crate::congestion::{self, CongestionControl};
use crate::options::{OptionError, Options};
use crate::path_policy::{self, PathPolicy};
use crate::scheduler::{self, Scheduler};
use anabranch_units::Duration;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// A scheduler, a path policy or a congestion control by name, with its options.
pub type Choice = anabranch_registry::Choice<dyn ExternalParts>;

/// Makes the scheduler that was chosen, from its registry or from outside. Both kinds have the common options.
///
/// # Errors
/// As [`scheduler::create`].
pub fn scheduler(choice: &Choice) -> Result<Box<dyn Scheduler>, OptionError> {
    match choice.external() {
        None => scheduler::create(&choice.name, &choice.options),
        Some(external) => scheduler::with_common_options(&choice.options, |own| external.scheduler(&choice.name, own)),
    }
}

/// Makes the path policy that was chosen, from its registry or from outside.
///
/// # Errors
/// As [`path_policy::create`].
pub fn path_policy(choice: &Choice) -> Result<Box<dyn PathPolicy>, OptionError> {
    match choice.external() {
        None => path_policy::create(&choice.name, &choice.options),
        Some(external) => external.path_policy(&choice.name, &choice.options),
    }
}

/// Makes the congestion control that was chosen, from its registry or from outside; the seed is for controls that draw.
///
/// # Errors
/// As [`congestion::create`].
pub fn congestion_control(choice: &Choice, seed: u64) -> Result<Box<dyn CongestionControl>, OptionError> {
    match choice.external() {
        None => congestion::create(&choice.name, &choice.options, seed),
        Some(external) => external.congestion_control(&choice.name, &choice.options, seed),
    }
}

/// A kind of replaceable part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A [`Scheduler`].
    Scheduler,
    /// A [`PathPolicy`].
    PathPolicy,
    /// A [`CongestionControl`].
    CongestionControl,
}

/// How long the decisions of parts took, in real time: from the engine's call to the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecisionTimes {
    /// How many decisions there were.
    pub decisions: u64,
    /// The time of all of them.
    pub total: Duration,
    /// The median.
    pub p50: Duration,
    /// The 99th percentile.
    pub p99: Duration,
}

/// Makes parts that are in no registry. The names are the host's own.
///
/// What it makes keeps the contract of the part's trait, as the conformance tests check it for the parts of the
/// registries. In the errors of all three constructors the option is `name` where the fault is not one option's.
pub trait ExternalParts: fmt::Debug + Send + Sync {
    /// Whether a name that is in no registry is one of the host's. A name that it knows may still be wrong.
    fn knows(&self, kind: Kind, name: &str) -> bool;

    /// Makes a scheduler for a new connection.
    ///
    /// # Errors
    /// If there is none of that name, or it refuses its options.
    fn scheduler(&self, name: &str, options: &Options) -> Result<Box<dyn Scheduler>, OptionError>;

    /// Makes a path policy for a new connection.
    ///
    /// # Errors
    /// As [`ExternalParts::scheduler`].
    fn path_policy(&self, name: &str, options: &Options) -> Result<Box<dyn PathPolicy>, OptionError>;

    /// Makes a congestion control for a new subflow; the seed is for controls that draw.
    ///
    /// # Errors
    /// As [`ExternalParts::scheduler`].
    fn congestion_control(
        &self,
        name: &str,
        options: &Options,
        seed: u64,
    ) -> Result<Box<dyn CongestionControl>, OptionError>;

    /// Who makes the parts of a connection that a client at this address opens. `None` if the host keeps nothing for
    /// each connection: then this one makes them.
    fn for_connection(&self, _client: SocketAddr) -> Option<Arc<dyn ExternalParts>> {
        None
    }

    /// Whether a part has failed. Then the connection that it belongs to must be aborted.
    fn has_failed(&self) -> bool {
        false
    }

    /// How long decisions took since the host began to measure; `None` if it does not.
    fn decision_times(&self) -> Option<DecisionTimes> {
        None
    }
}
