//! Recorded networks: values that change over time, and where they are read from.
//!
//! Three formats: Mahimahi's delivery opportunities ([`Opportunities::parse`]), tables of time and rate
//! ([`Steps::parse_columns`]), and JSON lists of periods with rate and latency ([`RateAndLatency::parse_json`]).
//! All are read from text; errors name the line.

mod columns;
mod json;
mod mahimahi;
mod steps;

pub use columns::{ColumnFormat, RateUnit};
pub use json::RateAndLatency;
pub use mahimahi::{OPPORTUNITY_BYTES, Opportunities};
pub use steps::{AtEnd, Steps};

/// What is wrong with a trace, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// A line that cannot be understood.
    #[error("line {line}: {problem}")]
    Line {
        /// Counted from one.
        line: usize,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// Nothing in it moves time forward.
    #[error("the trace {0}")]
    Whole(&'static str),
}

impl TraceError {
    fn at(line: usize, problem: impl Into<String>) -> Self {
        TraceError::Line { line, problem: problem.into() }
    }
}

/// The lines that say something, with their numbers from one: neither empty nor a comment after `#`.
fn content(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}
