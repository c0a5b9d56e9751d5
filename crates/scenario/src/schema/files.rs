//! What a scenario reads besides itself: recorded traces and descriptions of videos.

use super::check::{Checker, Result};
use super::document::Origin;
use super::mistake::Mistake;
use super::tables::{LatencyUse, Offset, Rate, Recorded, Trace};
use anabranch_network::{
    AtEnd, RateConfig, RecordedRate, Recording, SYNTHETIC_KINDS, TraceError, TraceFormat, TraceHints, TraceKind,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Larger files are other files taken by mistake.
const MOST_BYTES: u64 = 1 << 28;

/// The files beside the scenario.
pub(super) struct Files<'a> {
    directory: Option<&'a Path>,
    /// Traces as they were written and as they were read: both directions of a link have the same one.
    traces: Vec<(Trace, Trace)>,
}

impl<'a> Files<'a> {
    pub fn beside(directory: Option<&'a Path>) -> Self {
        Files { directory, traces: Vec::new() }
    }

    /// The scenario's directory is in front of a relative name.
    fn path(&self, name: &str) -> PathBuf {
        self.directory.map_or_else(|| PathBuf::from(name), |directory| directory.join(name))
    }

    /// The name as it is opened, and the text of a description of a video.
    pub fn description(&self, name: &str, at: &Origin) -> Result<(String, String)> {
        let path = self.path(name);
        let wrong = |problem: String| Mistake::new(format!("`{}`: {problem}", path.display()), "").at(at);
        let size = std::fs::metadata(&path).map_err(|error| wrong(error.to_string()))?.len();
        if size > MOST_BYTES {
            return Err(wrong(format!("{size} bytes are more than a description of a video has")));
        }
        let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
        Ok((path.to_string_lossy().into_owned(), text))
    }

    fn trace(&self, path: &Path, at: &Origin) -> Result<Vec<u8>> {
        let wrong = |problem: String| Mistake::new(format!("trace {}: {problem}", path.display()), "").at(at);
        let size = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?.len();
        if size > MOST_BYTES {
            return Err(wrong(format!("{size} bytes are more than a trace has")));
        }
        std::fs::read(path).map_err(|error| wrong(error.to_string()))
    }
}

impl Checker<'_> {
    /// Reads the trace of a rate, or writes out a synthetic one's parameters.
    pub fn complete_rate(&mut self, rate: &mut Rate, link: &str, offset: Offset, steps: &[&str]) -> Result<()> {
        match rate {
            Rate::Constant(_) | Rate::TokenBucket(_) => Ok(()),
            Rate::Trace(trace) => self.complete_trace(trace, offset, steps),
            Rate::Synthetic(synthetic) => {
                if SYNTHETIC_KINDS.find(&synthetic.synthetic).is_none() {
                    let at = self.at(&[steps, &["synthetic"]].concat());
                    return Err(
                        Mistake::unknown("kind of network", &synthetic.synthetic, SYNTHETIC_KINDS.names()).at(at)
                    );
                }
                synthetic.stream = format!("link/{link}");
                synthetic.complete();
                let times =
                    [("correlation_time", synthetic.correlation_time), ("between_outages", synthetic.between_outages)];
                match times.into_iter().find(|(_, time)| time.is_some_and(|time| time.is_zero())) {
                    Some((key, _)) => {
                        self.wrong(&[steps, &[key]].concat(), format!("`{key}` is zero"), "a time above zero")
                    }
                    None => Ok(()),
                }
            }
        }
    }

    fn complete_trace(&mut self, trace: &mut Trace, offset: Offset, steps: &[&str]) -> Result<()> {
        if let Some((_, read)) = self.files.traces.iter().find(|(written, _)| written == trace) {
            *trace = read.clone();
            return Ok(());
        }
        let written = trace.clone();
        let under = |key: &'static str| [steps, &[key]].concat();
        let at = self.at(&under("trace"));
        let path = self.files.path(&trace.trace);
        let hints = TraceHints { kind: trace.format, unit: trace.unit, column: trace.column, at_end: trace.at_end };
        let bytes = self.files.trace(&path, at)?;
        let wrong = |error: TraceError| {
            let line = error.line.map_or_else(String::new, |line| format!("{line}:"));
            Mistake::new(format!("trace {}:{line} {}", path.display(), error.problem), error.expected).at(at)
        };
        let recording = Recording::read(&bytes, &hints).map_err(wrong)?;
        if matches!(recording.rate, RecordedRate::Opportunities(_)) && trace.at_end == AtEnd::Hold {
            return self.wrong(&under("at_end"), "a trace of Mahimahi's always repeats", "at_end = \"loop\"");
        }
        if trace.latency != LatencyUse::Ignore && recording.latency.is_none() {
            let expected = "a JSON trace with `latency_ms`, or latency = \"ignore\"";
            return self.wrong(&under("latency"), "the trace has no latency, or not everywhere", expected);
        }
        let offset = trace.offset.unwrap_or(offset);
        if offset == Offset::Random && trace.at_end == AtEnd::Hold {
            let message = "a trace that begins anywhere goes on with its beginning";
            return self.wrong(&under("at_end"), message, "at_end = \"loop\", or an offset such as \"30 s\"");
        }
        if trace.scale == 0.0 {
            return self.wrong(&under("scale"), "`scale` is zero", "a factor above zero");
        }
        let format = recording.format;
        let used = used_part(recording, trace, offset).map_err(wrong)?;
        trace.trace = path.to_string_lossy().into_owned();
        note_format(trace, format);
        trace.recorded = Some(recorded(used, trace.latency, bytes.into()));
        self.files.traces.push((written, trace.clone()));
        Ok(())
    }
}

/// The part of a recording that the trace follows.
fn used_part(mut used: Recording, trace: &mut Trace, offset: Offset) -> std::result::Result<Recording, TraceError> {
    // A random beginning is drawn later. A random offset of the scenario stays the scenario's: one draw for all.
    if let Offset::Fixed(time) = offset {
        trace.offset = Some(offset);
        used = used.shifted(time);
    }
    if let Some(duration) = trace.duration {
        used = used.lasting(duration)?;
    }
    if trace.scale == 1.0 { Ok(used) } else { used.scaled(trace.scale) }
}

/// Writes out what was recognised.
fn note_format(trace: &mut Trace, format: TraceFormat) {
    match format {
        TraceFormat::Mahimahi => trace.format = Some(TraceKind::Mahimahi),
        TraceFormat::Json => trace.format = Some(TraceKind::Json),
        TraceFormat::Columns { unit, column } => {
            (trace.format, trace.unit, trace.column) = (Some(TraceKind::Columns), Some(unit), Some(column));
        }
    }
}

fn recorded(used: Recording, latency: LatencyUse, content: Arc<[u8]>) -> Recorded {
    let period = used.period();
    let delay = used.latency.as_ref().and_then(|steps| match latency {
        LatencyUse::Ignore => None,
        LatencyUse::RoundTrip => Some(steps.map(|latency| latency / 2)),
        LatencyUse::OneWay => Some(steps.clone()),
    });
    let rate = match used.rate {
        RecordedRate::Table(steps) => RateConfig::Table(Arc::new(steps)),
        RecordedRate::Opportunities(trace) => RateConfig::Opportunities(Arc::new(trace)),
    };
    Recorded { content, period, rate, delay }
}
