//! Errors of the testbed.

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
        /// Its unsupported property, and the supported ones.
        why: String,
    },
    /// The operating system refused something.
    #[error("{doing}: {source}")]
    System {
        /// The attempted action.
        doing: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A part of the testbed failed during a run.
    #[error("the run failed: {0}")]
    Failed(String),
}

/// Adds the attempted action to an error of the operating system.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl Into<String>) -> Result<T, TestbedError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: impl Into<String>) -> Result<T, TestbedError> {
        self.map_err(|source| TestbedError::System { doing: what.into(), source })
    }
}
