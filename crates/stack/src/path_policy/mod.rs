//! Path policies: which of the subflows may carry new data.
//!
//! The path manager opens subflows; a policy decides which of them to use. A subflow that is not allowed keeps its TCP
//! alive and retransmits its losses, but gets no new data, and leaves the sums of coupled congestion controls.
//!
//! To add one: a file in this folder with an [`Entry`], and a line in [`REGISTRY`].

#[cfg(any(test, feature = "conformance"))]
pub mod contract;
mod full_mesh;
mod pud;

use crate::options::{OptionError, Options};
use crate::scheduler::SubflowSet;
use crate::view::SubflowView;
use anabranch_events::Note;
use anabranch_registry::Registry;
use anabranch_units::Instant;
use std::fmt;

/// Every policy, in the order in which lists show them.
pub static REGISTRY: Registry<Constructor> = Registry::new(&[full_mesh::ENTRY, pud::ENTRY]);

/// A policy's line in the registry.
pub type Entry = anabranch_registry::Entry<Constructor>;

/// Makes a policy for a new connection from its options.
pub type Constructor = fn(&Options) -> Result<Box<dyn PathPolicy>, OptionError>;

/// Makes the policy of that name.
///
/// # Errors
/// If there is none, or it refuses its options.
pub fn create(name: &str, options: &Options) -> Result<Box<dyn PathPolicy>, OptionError> {
    let entry = REGISTRY.named("path_policy", name)?;
    (entry.create)(options)
}

/// Decides which subflows may carry new data.
pub trait PathPolicy: fmt::Debug + Send {
    /// The subflows that may carry new data, by position. Called at every [`PathPolicy::poll_timeout`] and when a
    /// subflow opened or closed. A policy should never forbid all of them; a connection ignores such a decision.
    fn decide(&mut self, now: Instant, subflows: &[SubflowView]) -> SubflowSet;

    /// When to decide again, which only a decision changes; `None` if only changes of the subflows matter.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Whether to ask the peer, by MP_PRIO, not to send on subflows that are not allowed.
    fn signals_peer(&self) -> bool {
        false
    }

    /// Passes on the notes since the last call, oldest first, for the table of events. The built-in ones have none.
    fn take_notes(&mut self, _take: &mut dyn FnMut(Note)) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_policy_keeps_a_subflow_and_moves_on(case in contract::any_case()) {
            for entry in REGISTRY {
                let policy = || (entry.create)(&Options::default()).unwrap();
                case.check(&policy).map_err(|error| TestCaseError::fail(format!("{}: {error}", entry.name)))?;
            }
        }
    }

    #[test]
    fn names_are_unique_and_options_are_checked() {
        let names: Vec<_> = REGISTRY.names().collect();
        assert!(names.starts_with(&["full-mesh", "pud"]), "scripts depend on these names: {names:?}");
        for entry in REGISTRY {
            let unknown = Options::new(vec![("no-such-option".into(), crate::options::Value::Flag(true))]);
            assert!((entry.create)(&unknown).is_err());
        }
    }
}
