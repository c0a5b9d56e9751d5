//! Recorded rates, and latencies that were recorded with them.

use super::super::document::Origin;
use super::super::reader::{Complaint, Reader, Result};
use super::super::resolved::quoted;
use super::Context;
use crate::quantity::{read_time, write_time};
use anabranch_network::{
    AtEnd, RateConfig, RateUnit, RecordedRate, Recording, Steps, TraceError, TraceFormat, TraceHints, TraceKind,
};
use anabranch_units::Duration;
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
    /// How far into the recording it begins.
    pub offset: Duration,
    /// How much of it is used from there; all where absent.
    pub duration: Option<Duration>,
    /// What becomes of a recorded latency.
    pub latency: LatencyUse,
    rate: RateConfig,
    /// What the latency adds to the delay over time.
    delay: Option<Steps<Duration>>,
}

/// What becomes of a recorded latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyUse {
    /// Nothing.
    Ignore,
    /// Half of it is the delay of each direction.
    RoundTrip,
    /// It is the delay of each direction.
    OneWay,
}

/// The spellings of [`LatencyUse`].
const LATENCIES: [(&str, LatencyUse); 3] =
    [("ignore", LatencyUse::Ignore), ("round-trip", LatencyUse::RoundTrip), ("one-way", LatencyUse::OneWay)];

/// Larger traces than this are another file taken by mistake.
const MOST_TRACE_BYTES: u64 = 256 << 20;

impl Trace {
    /// As the network takes it.
    pub(crate) fn config(&self) -> RateConfig {
        self.rate.clone()
    }

    /// What the recorded latency adds to the delay over time, if it is used.
    pub(super) fn delay(&self) -> Option<&Steps<Duration>> {
        self.delay.as_ref()
    }

    pub(super) fn write(&self) -> String {
        let mut parts = vec![format!("trace = {}", quoted(&self.file))];
        parts.push(match self.format {
            TraceFormat::Mahimahi => "format = \"mahimahi\"".into(),
            TraceFormat::Columns { unit, column } => {
                format!("format = \"columns\", unit = \"{}\", column = {column}", unit.name())
            }
            TraceFormat::Json => "format = \"json\"".into(),
        });
        let at_end = if self.at_end == AtEnd::Loop { "loop" } else { "hold" };
        parts.push(format!("at_end = \"{at_end}\", offset = \"{}\"", write_time(self.offset)));
        parts.extend(self.duration.map(|duration| format!("duration = \"{}\"", write_time(duration))));
        let latency = LATENCIES.iter().find(|(_, latency)| *latency == self.latency).map_or("", |(name, _)| name);
        parts.push(format!("latency = \"{latency}\""));
        format!("{{ {} }}", parts.join(", "))
    }
}

pub(super) fn read(r: &Reader<'_>, context: Context<'_>) -> Result<Trace> {
    let Some((name, at)) = r.text("trace")? else { return r.missing("trace", "the name of a file") };
    let hints = read_hints(r)?;
    let path = context.directory.map_or_else(|| Path::new(name).to_path_buf(), |directory| directory.join(name));
    let bytes = read_file(r, &path, at)?;
    let wrong = |error: TraceError| {
        let line = error.line.map_or_else(String::new, |line| format!("{line}:"));
        Complaint::new(format!("trace {}:{line} {}", path.display(), error.problem), error.expected).at(r.file, at)
    };
    let recording = Recording::read(&bytes, &hints).map_err(wrong)?;
    if matches!(recording.rate, RecordedRate::Opportunities(_)) && hints.at_end == AtEnd::Hold {
        let at = r.node("at_end").map_or(r.at, |node| &node.at);
        return r.fail(Complaint::new("a trace of Mahimahi's always repeats", "at_end = \"loop\""), at);
    }
    let offset = r.quantity("offset", read_time)?.unwrap_or(context.trace_offset);
    let duration = r.quantity("duration", read_time)?;
    let mut used = recording.shifted(offset);
    if let Some(duration) = duration {
        used = used.lasting(duration).map_err(wrong)?;
    }
    let latency = read_latency(r, &recording)?;
    let delay = used.latency.as_ref().and_then(|steps| match latency {
        LatencyUse::Ignore => None,
        LatencyUse::RoundTrip => Some(steps.map(|latency| latency / 2)),
        LatencyUse::OneWay => Some(steps.clone()),
    });
    let rate = match used.rate {
        RecordedRate::Table(steps) => RateConfig::Table(Arc::new(steps)),
        RecordedRate::Opportunities(trace) => RateConfig::Opportunities(Arc::new(trace)),
    };
    let file = path.to_string_lossy().into_owned();
    Ok(Trace { file, format: recording.format, at_end: hints.at_end, offset, duration, latency, rate, delay })
}

/// What the scenario says about the file.
fn read_hints(r: &Reader<'_>) -> Result<TraceHints> {
    let kinds = TraceKind::NAMES.map(|(name, _)| name);
    let units = RateUnit::NAMES.map(|(name, _)| name);
    let position = |key: &str, names: &[&'static str]| {
        let Some(_) = r.entry(key) else { return Ok(None) };
        let word = r.word(key, names)?;
        Ok(names.iter().position(|name| *name == word))
    };
    let at_end = if r.word("at_end", &["loop", "hold"])? == "loop" { AtEnd::Loop } else { AtEnd::Hold };
    Ok(TraceHints {
        kind: position("format", &kinds)?.map(|index| TraceKind::NAMES[index].1),
        unit: position("unit", &units)?.map(|index| RateUnit::NAMES[index].1),
        column: r.integer("column", 1..=999)?.map(|column| column as usize),
        at_end,
    })
}

fn read_latency(r: &Reader<'_>, recording: &Recording) -> Result<LatencyUse> {
    let word = r.word("latency", &LATENCIES.map(|(name, _)| name))?;
    let latency = LATENCIES.iter().find(|(name, _)| *name == word).expect("it is one of them").1;
    if latency != LatencyUse::Ignore && recording.latency.is_none() {
        let at = r.node("latency").map_or(r.at, |node| &node.at);
        let problem = "the trace has no latency, or not everywhere";
        return r.fail(Complaint::new(problem, "a JSON trace with `latency_ms`, or latency = \"ignore\""), at);
    }
    Ok(latency)
}

fn read_file(r: &Reader<'_>, path: &Path, at: &Origin) -> Result<Vec<u8>> {
    let wrong = |problem: String| Complaint::new(format!("trace {}: {problem}", path.display()), "").at(r.file, at);
    let size = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?.len();
    if size > MOST_TRACE_BYTES {
        return Err(wrong(format!("{size} bytes are more than a trace has")));
    }
    std::fs::read(path).map_err(|error| wrong(error.to_string()))
}
