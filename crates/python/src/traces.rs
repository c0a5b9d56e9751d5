//! Trace files.

use crate::scenario::refused;
use anabranch_scenario::traces::{self, TraceChange, TraceFile, TraceTarget};
use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;

/// What the command line says about a trace's file.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct ReadAs {
    format: Option<String>,
    unit: Option<String>,
    rate_column: Option<String>,
    time_column: Option<String>,
    time_unit: Option<String>,
    interval: Option<String>,
    gap: Option<String>,
}

impl ReadAs {
    fn file<'a>(&'a self, name: &'a str, content: &'a [u8]) -> TraceFile<'a> {
        TraceFile {
            name,
            content,
            format: self.format.as_deref(),
            unit: self.unit.as_deref(),
            rate_column: self.rate_column.as_deref(),
            time_column: self.time_column.as_deref(),
            time_unit: self.time_unit.as_deref(),
            interval: self.interval.as_deref(),
            gap: self.gap.as_deref(),
        }
    }
}

/// What characterises a trace, as JSON, and the mean rates of its seconds.
#[pyfunction]
#[pyo3(signature = (content, *, name, read_as))]
#[expect(clippy::needless_pass_by_value, reason = "Python's objects are converted into values")]
pub fn trace_info<'py>(
    py: Python<'py>,
    content: &[u8],
    name: &str,
    read_as: ReadAs,
) -> PyResult<(String, Bound<'py, PyArray1<f64>>)> {
    let (info, samples) = traces::info(&read_as.file(name, content)).map_err(|e| refused(&e))?;
    Ok((info.to_json(), samples.to_pyarray(py)))
}

/// A trace, or a part of it, as the text of another file; and what was understood of it, as JSON.
#[pyfunction]
#[pyo3(signature = (content, *, name, read_as, scale, offset, duration, target, target_format, step))]
#[expect(clippy::too_many_arguments, reason = "each is an option of the command line")]
#[expect(clippy::needless_pass_by_value, reason = "Python's objects are converted into values")]
pub fn trace_convert(
    content: &[u8],
    name: &str,
    read_as: ReadAs,
    scale: f64,
    offset: &str,
    duration: Option<&str>,
    target: &str,
    target_format: Option<&str>,
    step: &str,
) -> PyResult<(String, String)> {
    let change = TraceChange { scale, offset, duration };
    let target = TraceTarget { name: target, format: target_format, step };
    let converted = traces::convert(&read_as.file(name, content), &change, &target).map_err(|e| refused(&e))?;
    Ok((converted.text, converted.understood.to_json()))
}

/// A synthetic trace as the text of a file.
#[pyfunction]
#[pyo3(signature = (kind, *, mean, duration, seed, target, target_format, step))]
pub fn trace_synthesize(
    kind: &str,
    mean: &str,
    duration: &str,
    seed: u64,
    target: &str,
    target_format: Option<&str>,
    step: &str,
) -> PyResult<String> {
    let target = TraceTarget { name: target, format: target_format, step };
    traces::synthesize(kind, mean, duration, seed, &target).map_err(|e| refused(&e))
}
