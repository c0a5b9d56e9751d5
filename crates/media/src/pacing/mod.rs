//! Pacing of responses: how fast a server sends what its viewers ask for.
//!
//! A player chooses the bitrate by the throughput that it measures and by its buffer. A server that sends slower than
//! the network could carry changes the first and knows much of the second: it serves the MPD, and sees when each media
//! segment is asked for. A policy sees all viewers of a server, and sets a cap of the rate for each ([`Viewer::pace`]).
//!
//! To add one: a file in this folder with an [`Entry`], and a line in [`REGISTRY`].

mod capacity;
mod files;
mod levels;
mod off;
mod pacer;
mod presentations;
mod sammy;
mod sharing;
mod viewer;

pub use files::{FilePacer, FileResponse};
pub use pacer::{Pacer, Progress};
pub use presentations::{Presentation, UnknownMedia};
pub use viewer::{Response, Viewer};

use anabranch_registry::Registry;
use anabranch_registry::options::{OptionError, Options};
use anabranch_units::Instant;
use std::fmt;

/// How responses are paced where nothing is said.
pub const DEFAULT: &str = "off";

/// The most viewers at a time who are paced. A policy looks at all of them for each response, and compares each two of
/// them where it asks for groups. Further viewers are sent everything as without pacing.
pub const MOST_VIEWERS: usize = 256;

/// Every policy, in the order in which lists show them.
pub static REGISTRY: Registry<Constructor> = Registry::new(&[off::ENTRY, sammy::ENTRY, levels::ENTRY]);

/// A policy's line in the registry.
pub type Entry = anabranch_registry::Entry<Constructor>;

/// Makes a policy for a server from its options; none if nothing is paced.
pub type Constructor = fn(&Options) -> Result<Option<Box<dyn ResponsePacing>>, OptionError>;

/// Makes the policy of that name.
///
/// # Errors
/// If there is none, or it refuses its options.
pub fn create(name: &str, options: &Options) -> Result<Option<Box<dyn ResponsePacing>>, OptionError> {
    let entry = REGISTRY.named("name", name)?;
    (entry.create)(options)
}

/// What happened to a viewer, by position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moment {
    /// A request for a media segment arrived: [`Viewer::current`].
    Requested(usize),
    /// A response with a media segment was acknowledged to its end.
    Delivered(usize, Response),
    /// The viewer's connection is closed.
    Left(usize),
    /// Other viewers share a bottleneck than before: [`Viewer::group`].
    Grouped,
}

impl Moment {
    /// The viewer to whom it happened, if it was one.
    pub fn viewer(&self) -> Option<usize> {
        match *self {
            Moment::Requested(at) | Moment::Delivered(at, _) | Moment::Left(at) => Some(at),
            Moment::Grouped => None,
        }
    }
}

/// Decides how fast responses are sent.
pub trait ResponsePacing: fmt::Debug + Send {
    /// Something happened: sets [`Viewer::pace`] of whom it concerns. Positions of viewers never change.
    fn decide(&mut self, now: Instant, viewers: &mut [Viewer], moment: &Moment);

    /// Whether it asks for [`Viewer::group`]; else every viewer is alone.
    fn groups(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_registry::options::Value;

    #[test]
    fn names_are_unique_and_options_are_checked() {
        let names: Vec<_> = REGISTRY.names().collect();
        assert_eq!(names, ["off", "sammy", "levels"], "scripts depend on these names");
        for entry in &*REGISTRY {
            let unknown = Options::new(vec![("no-such-option".into(), Value::Flag(true))]);
            assert!((entry.create)(&unknown).is_err());
        }
        assert!(create("of", &Options::default()).is_err());
    }
}
