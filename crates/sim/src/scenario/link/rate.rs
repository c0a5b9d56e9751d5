//! How fast a direction sends: a rate, a token bucket, or a recorded trace.

use super::super::document::{Node, Origin, Value};
use super::super::reader::{Complaint, Reader, Result, read_quantity};
use crate::quantity::{read_bytes, read_rate, write_bytes, write_rate};
use anabranch_network::{
    AtEnd, ColumnFormat, Opportunities, RateAndLatency, RateConfig, RateUnit, Steps, TokenBucketConfig, TraceError,
};
use anabranch_units::Bandwidth;
use std::path::Path;
use std::sync::Arc;

/// A recording that a direction follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The file as it is opened: the scenario's directory is in front of a relative name.
    pub file: String,
    /// How it is read.
    pub format: TraceFormat,
    /// What follows the last sample.
    pub at_end: AtEnd,
    data: RateConfig,
}

/// How a trace file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// Milliseconds at which 1500 bytes can leave.
    Mahimahi,
    /// Time and rate per line; the rate's unit and its column, counted from zero.
    Columns {
        /// The unit of the rates.
        unit: RateUnit,
        /// Which column holds them.
        column: usize,
    },
    /// A list of periods with rate and latency, of which the rate is used.
    Json,
}

/// How fast a direction sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Rate {
    /// Always the same.
    Constant(Bandwidth),
    /// A shaper that lets bursts pass.
    TokenBucket(TokenBucketConfig),
    /// As recorded.
    Trace(Trace),
}

/// The spellings of trace formats.
const FORMATS: [&str; 3] = ["mahimahi", "columns", "json"];

/// The spellings of rate units in tables.
const UNITS: [(&str, RateUnit); 4] = [
    ("b/s", RateUnit::BitsPerSecond),
    ("kb/s", RateUnit::KilobitsPerSecond),
    ("Mb/s", RateUnit::MegabitsPerSecond),
    ("B/s", RateUnit::BytesPerSecond),
];

/// Larger traces than this are another file taken by mistake.
const MOST_TRACE_BYTES: u64 = 256 << 20;

impl Rate {
    /// As the network takes it.
    pub(crate) fn config(&self) -> RateConfig {
        match self {
            Rate::Constant(rate) => RateConfig::Constant(*rate),
            Rate::TokenBucket(bucket) => RateConfig::TokenBucket(*bucket),
            Rate::Trace(trace) => trace.data.clone(),
        }
    }

    pub(in super::super) fn write(&self) -> String {
        match self {
            Rate::Constant(rate) => format!("\"{}\"", write_rate(*rate)),
            Rate::TokenBucket(TokenBucketConfig { rate, burst, peak }) => {
                let (rate, burst, peak) = (write_rate(*rate), write_bytes(*burst), write_rate(*peak));
                format!("{{ rate = \"{rate}\", burst = \"{burst}\", peak = \"{peak}\" }}")
            }
            Rate::Trace(trace) => trace.write(),
        }
    }
}

impl Trace {
    fn write(&self) -> String {
        let format = match self.format {
            TraceFormat::Mahimahi => "format = \"mahimahi\"".to_string(),
            TraceFormat::Columns { unit, column } => {
                let unit = UNITS.iter().find(|(_, u)| *u == unit).map_or("", |(name, _)| name);
                format!("format = \"columns\", unit = \"{unit}\", column = {column}")
            }
            TraceFormat::Json => "format = \"json\"".to_string(),
        };
        let at_end = match (self.format, self.at_end) {
            // Mahimahi's traces always repeat.
            (TraceFormat::Mahimahi, _) => "",
            (_, AtEnd::Loop) => ", at_end = \"loop\"",
            (_, AtEnd::Hold) => ", at_end = \"hold\"",
        };
        format!("{{ trace = {}, {format}{at_end} }}", super::super::resolved::quoted(&self.file))
    }
}

pub(super) fn read(file: &str, node: &Node, directory: Option<&Path>) -> Result<Rate> {
    let Value::Table(table) = &node.value else {
        return read_quantity(file, "rate", node, read_rate).map(Rate::Constant);
    };
    if table.get("trace").is_some() {
        return read_trace(file, node, directory).map(Rate::Trace);
    }
    let r = Reader::new(file, node, "link.rate", "rate")?;
    let Some(rate) = r.quantity("rate", read_rate)? else {
        return r.missing("rate", "`rate` and `burst` of a token bucket, or `trace`");
    };
    let Some(burst) = r.quantity("burst", read_bytes)? else {
        return r.missing("burst", "the size of the bucket, such as \"15 kB\"");
    };
    Ok(Rate::TokenBucket(TokenBucketConfig { rate, burst, peak: r.quantity_or_default("peak", read_rate)? }))
}

fn read_trace(file: &str, node: &Node, directory: Option<&Path>) -> Result<Trace> {
    let r = Reader::new(file, node, "link.trace", "rate")?;
    let Some((name, at)) = r.text("trace")? else { return r.missing("trace", "the name of a file") };
    let format = read_format(&r)?;
    let at_end = match r.word("at_end", &["loop", "hold"])? {
        "loop" => AtEnd::Loop,
        _ => AtEnd::Hold,
    };
    if format == TraceFormat::Mahimahi && at_end == AtEnd::Hold {
        let at = r.node("at_end").map_or(r.at, |node| &node.at);
        return r.fail(Complaint::new("a trace of Mahimahi's always repeats", "at_end = \"loop\""), at);
    }
    let path = directory.map_or_else(|| Path::new(name).to_path_buf(), |directory| directory.join(name));
    let text = read_file(&r, &path, at)?;
    let data = parse(&text, format, at_end);
    let data = data.map_err(|error| Complaint::new(format!("trace `{name}`: {error}"), "").at(file, at))?;
    Ok(Trace { file: path.to_string_lossy().into_owned(), format, at_end, data })
}

fn read_format(r: &Reader<'_>) -> Result<TraceFormat> {
    let format = match r.word("format", &FORMATS)? {
        "mahimahi" => TraceFormat::Mahimahi,
        "json" => TraceFormat::Json,
        _ => {
            let names: Vec<&'static str> = UNITS.iter().map(|(name, _)| *name).collect();
            if !r.has("unit") {
                return r.missing("unit", &format!("the unit of the table's rates, one of {}", names.join(", ")));
            }
            let unit = r.word("unit", &names)?;
            let unit = UNITS.iter().find(|(name, _)| *name == unit).expect("it is one of them").1;
            TraceFormat::Columns { unit, column: r.integer_or_default("column", 1..=999)? as usize }
        }
    };
    let of_tables = ["unit", "column"].into_iter().find_map(|key| r.entry(key));
    match (format, of_tables) {
        (TraceFormat::Mahimahi | TraceFormat::Json, Some(entry)) => r.fail(
            Complaint::new(format!("only a trace of columns has `{}`", entry.key), "format = \"columns\""),
            &entry.at,
        ),
        _ => Ok(format),
    }
}

fn read_file(r: &Reader<'_>, path: &Path, at: &Origin) -> Result<String> {
    let wrong = |problem: String| Complaint::new(format!("trace `{}`: {problem}", path.display()), "").at(r.file, at);
    let size = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?.len();
    if size > MOST_TRACE_BYTES {
        return Err(wrong(format!("{size} bytes are more than a trace has")));
    }
    std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))
}

fn parse(text: &str, format: TraceFormat, at_end: AtEnd) -> std::result::Result<RateConfig, TraceError> {
    Ok(match format {
        TraceFormat::Mahimahi => RateConfig::Opportunities(Arc::new(Opportunities::parse(text)?)),
        TraceFormat::Columns { unit, column } => {
            RateConfig::Table(Arc::new(Steps::parse_columns(text, ColumnFormat { unit, column, at_end })?))
        }
        TraceFormat::Json => RateConfig::Table(Arc::new(RateAndLatency::parse_json(text, at_end)?.rate)),
    })
}
