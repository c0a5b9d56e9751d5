//! Bitrate rules: which representation of the next media segment to fetch, and when to abandon a request.
//!
//! A rule sees a [`View`] of the player, receives [`Event`]s and returns a [`Decision`] whenever the player is about to
//! place a request. It does not see the transport: its knowledge of the network are the times and sizes of downloads.
//!
//! To add one: a file in this folder with an [`Entry`], and a line in [`REGISTRY`].

mod bba;
pub(crate) mod bola;
pub mod dashjs;
mod fixed;
mod options;
mod rate;
mod robust_mpc;
#[cfg(test)]
mod testing;
mod view;

pub use options::{AbrOptionError, AbrOptions, BolaCap, Strategy};
pub use view::{
    Abandon, BufferState, Decision, Download, Event, Ladder, LadderError, Mark, Pictures, Playback, Progress, View,
    Vote,
};

use anabranch_events::Note;
use anabranch_registry::Registry;
use anabranch_registry::options::{OptionError, Options};
use anabranch_units::Instant;
use std::fmt;

/// A bitrate rule.
///
/// Time never decreases from call to call. Every event passed to [`observe`](Self::observe) has
/// happened before the next [`decide`](Self::decide).
pub trait AbrRule: fmt::Debug + Send {
    /// A request for media segment [`View::next`] is due: in which representation, and after what pause?
    ///
    /// The player adopts [`Decision::representation`] as [`View::current`]. It may have to fetch an initialisation
    /// segment first and then asks again; the rule must not take that for another media segment.
    fn decide(&mut self, view: &View<'_>) -> Decision;

    /// Receives an event.
    fn observe(&mut self, _view: &View<'_>, _event: &Event<'_>) {}

    /// More of the running request's body arrived: returns whether to abandon it. The player then aborts the request,
    /// adopts the representation, reports [`Event::SegmentAborted`], and fetches the same media segment without another
    /// decision.
    fn on_progress(&mut self, _view: &View<'_>, _progress: &Progress) -> Option<Abandon> {
        None
    }

    /// The requests of a composite rule's parts at the last decision.
    fn votes(&self) -> &[Vote] {
        &[]
    }

    /// Passes on the notes since the last call with their times, oldest first, for the table of events. The built-in
    /// rules have none.
    fn take_notes(&mut self, _take: &mut dyn FnMut(Instant, Note)) {}
}

/// Makes bitrate rules that are in no registry. The names are the host's own.
pub trait ExternalRules: fmt::Debug + Send + Sync {
    /// Whether a name that is in no registry is one of the host's. A name that it knows may still be wrong.
    fn knows(&self, name: &str) -> bool;

    /// Makes a rule for a new session.
    ///
    /// # Errors
    /// If there is none of that name, or it refuses its options; the option is `name` where the fault is not one
    /// option's.
    fn rule(&self, name: &str, options: &Options) -> Result<Box<dyn AbrRule>, OptionError>;
}

/// A bitrate rule from outside by name, with its options.
pub type RuleChoice = anabranch_registry::Choice<dyn ExternalRules>;

/// Constructor of a rule from its options.
pub type Constructor = fn(&AbrOptions) -> Result<Box<dyn AbrRule>, AbrOptionError>;

/// A rule's line in the registry.
pub type Entry = anabranch_registry::Entry<Constructor>;

/// Every rule, in the order in which lists show them.
pub static REGISTRY: Registry<Constructor> = Registry::new(&[
    dashjs::ENTRY_2_2,
    dashjs::ENTRY_2_9,
    dashjs::ENTRY_5,
    bba::ENTRY,
    bola::ENTRY,
    robust_mpc::ENTRY,
    rate::ENTRY,
    fixed::ENTRY,
]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for entry in REGISTRY {
            assert_eq!(REGISTRY.iter().filter(|other| other.name == entry.name).count(), 1, "{}", entry.name);
            assert_eq!(REGISTRY.find(entry.name).map(|found| found.summary), Some(entry.summary));
            assert!(entry.summary.ends_with('.') && !entry.source.is_empty(), "{}", entry.name);
        }
        assert!(REGISTRY.find("clairvoyant").is_none());
    }

    #[test]
    fn options_of_other_rules_are_refused() {
        let fixed = AbrOptions { representation: Some(1), ..AbrOptions::default() };
        for entry in REGISTRY {
            let expected = AbrOptionError::Unknown { rule: entry.name, option: "representation".into() };
            assert_eq!((entry.create)(&fixed).err(), (entry.name != "fixed").then_some(expected));
        }
    }
}
