//! Recorded networks: values that change over time, and their file formats.
//!
//! Three formats: Mahimahi's delivery opportunities ([`Opportunities::parse`]), tables of time and rate (`table`), and
//! JSON lists of periods with rate and latency ([`RateAndLatency::parse_json`]). [`Reading::of`] reads a file of any of
//! them, recognises the format, and says what it understood. Errors give the line, the column and the expected content.
//!
//! Without a recording, [`SyntheticConfig`] generates a rate with the statistics of recorded ones, and [`Summary`]
//! computes these statistics.

mod convert;
mod json;
mod mahimahi;
mod reading;
mod recording;
mod steps;
mod summary;
mod synthetic;
mod table;
mod text;

pub use json::RateAndLatency;
pub use mahimahi::{OPPORTUNITY_BYTES, Opportunities};
pub use reading::{Reading, TraceHints, Understood};
pub use recording::{RecordedNetwork, RecordedRate, TraceKind};
pub use steps::{AtEnd, Steps};
pub use summary::{Latency, OUTAGE_SHARE_OF_MEAN, Summary};
pub use synthetic::{SYNTHETIC_KINDS, SyntheticConfig, SyntheticEntry, SyntheticModel};
pub use table::{Column, ColumnName, FirstRow, Gap, Gaps, RateUnit, Separator, TableFormat, TableHints, TimeUnit};

use std::fmt;

/// A fault in a trace, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Line number from one; `None` if the fault is not in a single line.
    pub line: Option<usize>,
    /// The heading of a table's column, or its number where it has none; empty if the fault is not in a single column.
    pub column: String,
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
        TraceError { line: None, column: String::new(), problem: problem.into(), expected: String::new() }
    }

    fn in_column(self, column: impl Into<String>) -> Self {
        TraceError { column: column.into(), ..self }
    }

    fn expecting(self, expected: impl Into<String>) -> Self {
        TraceError { expected: expected.into(), ..self }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column.as_str()) {
            (Some(line), "") => write!(f, "line {line}: ")?,
            (Some(line), column) => write!(f, "line {line}, column {column}: ")?,
            (None, "") => {}
            (None, column) => write!(f, "column {column}: ")?,
        }
        write!(f, "{}", self.problem)?;
        if !self.expected.is_empty() {
            write!(f, "; expected {}", self.expected)?;
        }
        Ok(())
    }
}

impl std::error::Error for TraceError {}

/// The beginning of a line or a field, for messages, which have one line.
fn excerpt(text: &str) -> String {
    const MOST: usize = 40;
    let text = match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    };
    text.replace(char::is_control, " ")
}
