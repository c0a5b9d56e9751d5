//! Trace files.

use crate::scenario::refused;
use anabranch_scenario::traces::{self, TraceChange, TraceFile, TraceTarget};
use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;

/// What characterises a trace, as JSON, and the mean rates of its seconds.
#[pyfunction]
#[pyo3(signature = (content, *, name, file_format, unit, column))]
pub fn trace_info<'py>(
    py: Python<'py>,
    content: &[u8],
    name: &str,
    file_format: Option<&str>,
    unit: Option<&str>,
    column: Option<usize>,
) -> PyResult<(String, Bound<'py, PyArray1<f64>>)> {
    let file = TraceFile { name, content, format: file_format, unit, column };
    let (info, samples) = traces::info(&file).map_err(|e| refused(&e))?;
    Ok((info.to_json(), samples.to_pyarray(py)))
}

/// A trace, or a part of it, as the text of another file.
#[pyfunction]
#[pyo3(signature = (content, *, name, file_format, unit, column, scale, offset, duration, target, target_format, step))]
#[expect(clippy::too_many_arguments, reason = "each is an option of the command line")]
pub fn trace_convert(
    content: &[u8],
    name: &str,
    file_format: Option<&str>,
    unit: Option<&str>,
    column: Option<usize>,
    scale: f64,
    offset: &str,
    duration: Option<&str>,
    target: &str,
    target_format: Option<&str>,
    step: &str,
) -> PyResult<String> {
    let file = TraceFile { name, content, format: file_format, unit, column };
    let change = TraceChange { scale, offset, duration };
    let target = TraceTarget { name: target, format: target_format, step };
    traces::convert(&file, &change, &target).map_err(|e| refused(&e))
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
