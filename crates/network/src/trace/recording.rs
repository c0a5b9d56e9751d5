//! A file with a recorded rate, in any of the formats.

use super::{AtEnd, ColumnFormat, Opportunities, RateAndLatency, RateUnit, Steps, TraceError, content};
use anabranch_units::{Bandwidth, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceKind {
    /// Times in milliseconds at which 1500 bytes can be sent.
    Mahimahi,
    /// Time and rate per line.
    Columns,
    /// A JSON list of periods with rate and latency.
    Json,
}

impl TraceKind {
    /// Every kind with its name.
    pub const NAMES: [(&'static str, TraceKind); 3] =
        [("mahimahi", TraceKind::Mahimahi), ("columns", TraceKind::Columns), ("json", TraceKind::Json)];

    /// Name in scenarios and on the command line.
    pub fn name(self) -> &'static str {
        TraceKind::NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// The format given by a file name's ending, if known. Mahimahi's traces end with the direction that they were
    /// recorded in.
    pub fn of_name(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1.to_lowercase().as_str() {
            "csv" | "tsv" | "txt" => Some(TraceKind::Columns),
            "json" => Some(TraceKind::Json),
            "up" | "down" | "mahimahi" => Some(TraceKind::Mahimahi),
            _ => None,
        }
    }

    /// The format that a text seems to have: JSON begins with a bracket, and Mahimahi's lines are single numbers.
    pub fn of(text: &str) -> Self {
        let Some((_, first)) = content(text).next() else { return TraceKind::Columns };
        if first.starts_with(['[', '{']) {
            TraceKind::Json
        } else if first.bytes().all(|byte| byte.is_ascii_digit()) {
            TraceKind::Mahimahi
        } else {
            TraceKind::Columns
        }
    }
}

/// The format in which a file was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// See [`TraceKind::Mahimahi`].
    Mahimahi,
    /// See [`TraceKind::Columns`].
    Columns {
        /// The unit of the rates.
        unit: RateUnit,
        /// The column of the rates, counted from zero.
        column: usize,
    },
    /// See [`TraceKind::Json`].
    Json,
}

impl TraceFormat {
    /// Name of the format's kind.
    pub fn name(self) -> &'static str {
        match self {
            TraceFormat::Mahimahi => TraceKind::Mahimahi.name(),
            TraceFormat::Columns { .. } => TraceKind::Columns.name(),
            TraceFormat::Json => TraceKind::Json.name(),
        }
    }
}

/// What the caller knows about a file; the rest is detected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceHints {
    /// Format; detected where absent.
    pub kind: Option<TraceKind>,
    /// The unit of a table's rates; where absent, the heading must have it.
    pub unit: Option<RateUnit>,
    /// The column of a table's rates, counted from zero; 1 where absent.
    pub column: Option<usize>,
    /// What follows the last sample.
    pub at_end: AtEnd,
}

/// A recorded rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedRate {
    /// Constant in steps.
    Table(Steps<Bandwidth>),
    /// Times at which a packet can be sent.
    Opportunities(Opportunities),
}

/// The content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The format in which it was read.
    pub format: TraceFormat,
    /// The rate over time.
    pub rate: RecordedRate,
    /// The latency over time, if it was recorded.
    pub latency: Option<Steps<Duration>>,
}

impl Recording {
    /// Reads a file. A byte-order mark and carriage returns are accepted.
    ///
    /// Errors: those of [`Opportunities::parse`], [`Steps::parse_columns`] and [`RateAndLatency::parse_json`]; not a
    /// text; a table without a known unit; a unit or a column for a format other than a table.
    pub fn read(bytes: &[u8], hints: &TraceHints) -> Result<Self, TraceError> {
        let text = text_of(bytes)?;
        let looks_like = TraceKind::of(text);
        let kind = hints.kind.unwrap_or(looks_like);
        if kind != TraceKind::Columns && (hints.unit.is_some() || hints.column.is_some()) {
            let problem = format!("a trace in the format {} has no unit and no columns", kind.name());
            return Err(TraceError::whole(problem).expecting("the format columns, or neither unit nor column"));
        }
        let read = match kind {
            TraceKind::Mahimahi => Opportunities::parse(text).map(Recording::from),
            TraceKind::Columns => read_table(text, hints),
            TraceKind::Json => RateAndLatency::parse_json(text, hints.at_end).map(Recording::from),
        };
        read.map_err(|error| if kind == looks_like { error } else { suspect(error, kind, looks_like) })
    }

    /// Length of the recording.
    pub fn period(&self) -> Duration {
        match &self.rate {
            RecordedRate::Table(steps) => steps.period(),
            RecordedRate::Opportunities(trace) => trace.period(),
        }
    }

    /// The recording from `offset` on; after its end its beginning follows, unless it holds its last value.
    pub fn shifted(&self, offset: Duration) -> Self {
        let rate = match &self.rate {
            RecordedRate::Table(steps) => RecordedRate::Table(steps.shifted(offset)),
            RecordedRate::Opportunities(trace) => RecordedRate::Opportunities(trace.shifted(offset)),
        };
        Recording { rate, latency: self.latency.as_ref().map(|latency| latency.shifted(offset)), ..*self }
    }

    /// The first part of this length; beyond the end, its continuation.
    ///
    /// Errors: a part of length zero or without a packet, or too large a one.
    pub fn lasting(&self, length: Duration) -> Result<Self, TraceError> {
        let rate = match &self.rate {
            RecordedRate::Table(steps) => RecordedRate::Table(steps.lasting(length)?),
            RecordedRate::Opportunities(trace) => RecordedRate::Opportunities(trace.lasting(length)?),
        };
        let latency = self.latency.as_ref().map(|latency| latency.lasting(length)).transpose()?;
        Ok(Recording { rate, latency, ..*self })
    }

    /// The rate times a factor.
    ///
    /// Errors: of Mahimahi's opportunities, none or too many are left.
    pub fn scaled(&self, factor: f64) -> Result<Self, TraceError> {
        let rate = match &self.rate {
            RecordedRate::Table(steps) => RecordedRate::Table(steps.map(|rate| rate.mul_f64(factor))),
            RecordedRate::Opportunities(trace) => RecordedRate::Opportunities(trace.scaled(factor)?),
        };
        Ok(Recording { rate, latency: self.latency.clone(), ..*self })
    }
}

impl From<Opportunities> for Recording {
    fn from(trace: Opportunities) -> Self {
        Recording { format: TraceFormat::Mahimahi, rate: RecordedRate::Opportunities(trace), latency: None }
    }
}

impl From<RateAndLatency> for Recording {
    fn from(trace: RateAndLatency) -> Self {
        Recording { format: TraceFormat::Json, rate: RecordedRate::Table(trace.rate), latency: trace.latency }
    }
}

fn read_table(text: &str, hints: &TraceHints) -> Result<Recording, TraceError> {
    let column = hints.column.unwrap_or(1);
    let Some(unit) = hints.unit.or_else(|| RateUnit::in_heading(text, column)) else {
        let names: Vec<&str> = RateUnit::NAMES.iter().map(|(name, _)| *name).collect();
        let problem = "nothing says in which unit the table's rates are";
        return Err(TraceError::whole(problem).expecting(format!("a unit, one of {}", names.join(", "))));
    };
    let steps = Steps::parse_columns(text, ColumnFormat { unit, column, at_end: hints.at_end })?;
    let format = TraceFormat::Columns { unit, column };
    Ok(Recording { format, rate: RecordedRate::Table(steps), latency: None })
}

/// The error for a text that seems to have another format than the stated one.
fn suspect(error: TraceError, kind: TraceKind, looks_like: TraceKind) -> TraceError {
    let expected = format!("the format {}; this looks like {}", kind.name(), looks_like.name());
    error.expecting(expected)
}

/// The text of a file, without a byte-order mark. A file that is not a text is refused with the first bad line.
fn text_of(bytes: &[u8]) -> Result<&str, TraceError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let not_text = |at: usize| {
        let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        let problem = format!("this is no text: it holds the byte {:#04x}", bytes[at]);
        TraceError::at(line, problem).expecting("a text file in UTF-8; unpack or convert it first")
    };
    let text = std::str::from_utf8(bytes);
    let readable = text.map_or_else(|error| error.valid_up_to(), str::len);
    let control = |byte: &u8| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r');
    match (bytes[..readable].iter().position(control), text) {
        (Some(at), _) => Err(not_text(at)),
        (None, Err(_)) => Err(not_text(readable)),
        (None, Ok(text)) => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Recording {
        Recording::read(text.as_bytes(), &TraceHints::default()).unwrap()
    }

    fn error(bytes: &[u8], hints: TraceHints) -> String {
        Recording::read(bytes, &hints).unwrap_err().to_string()
    }

    #[test]
    fn formats_are_recognised() {
        assert_eq!(read("0\n5\n").format, TraceFormat::Mahimahi);
        assert_eq!(read("\n [\n{\"duration_ms\": 1, \"bandwidth_kbps\": 1}]").format, TraceFormat::Json);
        let table = TraceFormat::Columns { unit: RateUnit::MegabitsPerSecond, column: 1 };
        assert_eq!(read("t,mbps\n0,5\n").format, table);
    }

    #[test]
    fn byte_order_marks_and_carriage_returns_are_accepted() {
        for text in ["t,mbps\r\n0,5\r\n1,6\r\n", "3\r\n5\r\n", "[{\"duration_ms\": 1,\r\n\"bandwidth_kbps\": 1}]\r\n"] {
            let marked = format!("\u{feff}{text}");
            assert_eq!(read(&marked), read(text));
            assert_eq!(read(text), read(&text.replace('\r', "")));
        }
    }

    #[test]
    fn what_is_no_text_is_refused_with_its_line() {
        let none = TraceHints::default();
        assert!(error(b"1\n2\n\x1f\x8b\x08\n", none).starts_with("line 3: this is no text: it holds the byte 0x1f"));
        assert!(error(b"1\n\xff\xfe2\n", none).starts_with("line 2: this is no text: it holds the byte 0xff"));
        assert!(error(b"1\0\n2\n", none).starts_with("line 1: this is no text"));
        assert!(error(b"", none).contains("in which unit"));
    }

    #[test]
    fn a_wrong_format_is_reported_with_the_right_one() {
        let hinted = |kind| TraceHints { kind: Some(kind), ..TraceHints::default() };
        let table = TraceHints { unit: Some(RateUnit::BytesPerSecond), ..hinted(TraceKind::Columns) };
        assert!(error(b"0,1\n1,2\n", hinted(TraceKind::Mahimahi)).ends_with("this looks like columns"));
        assert!(error(b"1\n2\n", table).ends_with("this looks like mahimahi"));
        assert!(error(b"[{}]", table).ends_with("this looks like json"));
        assert!(error(b"1\n2\n", hinted(TraceKind::Json)).ends_with("this looks like mahimahi"));
        assert!(error(b"0 1\n", hinted(TraceKind::Columns)).ends_with("one of b/s, kb/s, Mb/s, B/s"));
        assert!(error(b"1\n", TraceHints { column: Some(2), ..TraceHints::default() }).contains("no columns"));
    }

    #[test]
    fn latency_follows_the_rate() {
        let text = r#"[{"duration_ms": 10, "bandwidth_kbps": 1, "latency_ms": 5},
                       {"duration_ms": 10, "bandwidth_kbps": 2, "latency_ms": 6}]"#;
        let cut = read(text).shifted(Duration::from_millis(10)).lasting(Duration::from_millis(15)).unwrap();
        let latency: Vec<_> = cut.latency.unwrap().iter().map(|(l, v)| (l.as_millis(), v.as_millis())).collect();
        assert_eq!(latency, [(10, 6), (5, 5)]);
    }
}
