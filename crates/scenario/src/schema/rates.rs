//! Reads the trace of a rate, and writes out the parameters of a synthetic one.

use super::checker::{Checker, Result};
use super::mistake::Mistake;
use super::tables::{LatencyUse, Offset, Rate, Recorded, Trace};
use crate::warning::WarningKind;
use anabranch_network::{
    AtEnd, ColumnName, RateConfig, Reading, RecordedNetwork, RecordedRate, SYNTHETIC_KINDS, TableHints, TraceError,
    TraceHints, TraceKind, Understood,
};
use std::path::Path;
use std::sync::Arc;

impl Checker<'_> {
    /// Reads the trace of a rate, or writes out a synthetic one's parameters.
    pub fn complete_rate(&mut self, rate: &mut Rate, link: &str, offset: Offset, steps: &[&str]) -> Result<()> {
        match rate {
            Rate::Constant(_) | Rate::TokenBucket(_) => Ok(()),
            Rate::Trace(trace) => self.complete_trace(trace, offset, steps),
            Rate::Synthetic(synthetic) => {
                if SYNTHETIC_KINDS.find(&synthetic.kind).is_none() {
                    let at = self.at(&[steps, &["synthetic"]].concat());
                    return Err(Mistake::unknown("kind of network", &synthetic.kind, SYNTHETIC_KINDS.names()).at(at));
                }
                synthetic.stream = format!("link/{link}");
                synthetic.complete();
                synthetic.check().or_else(|error| {
                    let message = format!("`{}` {}", error.field, error.problem);
                    self.wrong(&[steps, &[error.field]].concat(), message, error.expected)
                })
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
        if trace.column.is_some() && trace.rate_column.is_some() {
            return self.wrong(&under("column"), "both `column` and `rate_column` are given", "`rate_column` alone");
        }
        let bytes = self.files.trace(&path, at)?;
        let wrong = |error: TraceError| wrong_trace(&path, error).at(at);
        let Reading { recording, understood } = Reading::of(&bytes, &hints_of(trace)).map_err(wrong)?;
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
        let used = used_part(recording, trace, offset).map_err(wrong)?;
        let at = under("trace");
        for warning in &understood.warnings {
            self.warn(&at, WarningKind::Trace, format!("trace {}: {warning}", path.display()));
        }
        trace.trace = path.to_string_lossy().into_owned();
        note_format(trace, &understood);
        trace.recorded = Some(recorded(used, trace.latency, bytes.into()));
        self.files.traces.push((written, trace.clone()));
        Ok(())
    }
}

/// The part of a recording that the trace follows.
fn used_part(
    mut used: RecordedNetwork,
    trace: &mut Trace,
    offset: Offset,
) -> std::result::Result<RecordedNetwork, TraceError> {
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

/// The fault of a trace's file.
fn wrong_trace(path: &Path, error: TraceError) -> Mistake {
    let TraceError { line, column, problem, expected } = error;
    let line = line.map_or_else(String::new, |line| format!("{line}:"));
    let column = if column.is_empty() { String::new() } else { format!(" column {column}:") };
    Mistake::new(format!("trace {}:{line}{column} {problem}", path.display()), expected)
}

/// What the scenario says about a trace's file.
fn hints_of(trace: &Trace) -> TraceHints {
    let table = TableHints {
        unit: trace.unit,
        rate_column: trace.rate_column.clone().or(trace.column.map(ColumnName::Number)),
        time_column: trace.time_column.clone(),
        time_unit: trace.time_unit,
        interval: trace.interval,
        gap: trace.gap,
    };
    TraceHints { kind: trace.format, suggested: TraceKind::of_name(&trace.trace), table, at_end: trace.at_end }
}

/// Writes out what was recognised, so that the resolved scenario reads the same.
fn note_format(trace: &mut Trace, understood: &Understood) {
    trace.format = Some(understood.kind);
    if let Some(table) = &understood.table {
        trace.unit = Some(table.unit);
        trace.rate_column = Some(ColumnName::Number(table.rate_column.number));
        trace.time_column = table.time_column.as_ref().map(|column| ColumnName::Number(column.number));
        trace.time_unit = table.time_unit;
        trace.column = None;
    }
}

fn recorded(used: RecordedNetwork, latency: LatencyUse, content: Arc<[u8]>) -> Recorded {
    let (period, first_packet) = (used.period(), used.first_packet_after());
    let delay = used.latency.as_ref().and_then(|steps| match latency {
        LatencyUse::Ignore => None,
        LatencyUse::RoundTrip => Some(steps.map(|latency| latency / 2)),
        LatencyUse::OneWay => Some(steps.clone()),
    });
    let rate = match used.rate {
        RecordedRate::Table(steps) => RateConfig::Table(Arc::new(steps)),
        RecordedRate::Opportunities(trace) => RateConfig::Opportunities(Arc::new(trace)),
    };
    Recorded { content, period, first_packet, rate, delay }
}
