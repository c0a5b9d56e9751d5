//! Recorded networks: values that change over time, and their file formats.
//!
//! Three formats: Mahimahi's delivery opportunities ([`Opportunities::parse`]), tables of time and rate
//! ([`Steps::parse_columns`]), and JSON lists of periods with rate and latency ([`RateAndLatency::parse_json`]).
//! [`Recording::read`] reads a file of any of them and detects the format. Errors give the line and the expected
//! content.
//!
//! Without a recording, [`SyntheticConfig`] generates a rate with the statistics of recorded ones, and [`Summary`]
//! computes these statistics.

mod columns;
mod convert;
mod json;
mod mahimahi;
mod recording;
mod steps;
mod summary;
mod synthetic;

pub use columns::{ColumnFormat, RateUnit};
pub use json::RateAndLatency;
pub use mahimahi::{OPPORTUNITY_BYTES, Opportunities};
pub use recording::{RecordedRate, Recording, TraceFormat, TraceHints, TraceKind};
pub use steps::{AtEnd, Steps};
pub use summary::{Latency, OUTAGE_SHARE_OF_MEAN, Summary};
pub use synthetic::{SYNTHETIC_KINDS, SyntheticConfig, SyntheticEntry, SyntheticModel};

use std::fmt;

/// A fault in a trace, and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Line number from one; `None` if the fault is not in a single line.
    pub line: Option<usize>,
    /// The fault.
    pub problem: String,
    /// The expected content; empty where the problem implies it.
    pub expected: String,
}

impl TraceError {
    fn at(line: usize, problem: impl Into<String>) -> Self {
        TraceError { line: Some(line), ..TraceError::whole(problem) }
    }

    fn whole(problem: impl Into<String>) -> Self {
        TraceError { line: None, problem: problem.into(), expected: String::new() }
    }

    fn expecting(self, expected: impl Into<String>) -> Self {
        TraceError { expected: expected.into(), ..self }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "{}", self.problem)?;
        if !self.expected.is_empty() {
            write!(f, "; expected {}", self.expected)?;
        }
        Ok(())
    }
}

impl std::error::Error for TraceError {}

/// The lines with content, numbered from one: neither empty nor a comment after `#`.
fn content(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// The beginning of a line, for messages.
fn excerpt(line: &str) -> String {
    const MOST: usize = 40;
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_string(),
    }
}
