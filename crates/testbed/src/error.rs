//! Why there is no testbed, or none any more.

use std::io;
use thiserror::Error;

/// Why a run in the testbed failed.
#[derive(Debug, Error)]
pub enum TestbedError {
    /// The machine lacks something.
    #[error("live runs cannot work here. {}", .0.join(" "))]
    Missing(Vec<String>),
    /// The testbed cannot build what the scenario describes.
    #[error("the testbed cannot run {scenario}: {why}")]
    Refused {
        /// The scenario's name.
        scenario: String,
        /// What it has, and what would be possible.
        why: String,
    },
    /// The operating system refused something.
    #[error("{doing}: {source}")]
    System {
        /// What was attempted.
        doing: String,
        /// Why it failed.
        source: io::Error,
    },
    /// A part of the testbed failed while it ran.
    #[error("the run failed: {0}")]
    Failed(String),
}

/// Says what was attempted when an error of the operating system came.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl Into<String>) -> Result<T, TestbedError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: impl Into<String>) -> Result<T, TestbedError> {
        self.map_err(|source| TestbedError::System { doing: what.into(), source })
    }
}
