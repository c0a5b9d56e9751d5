//! What a run gives, as Python objects. Columns become NumPy arrays.

use crate::InputError;
use anabranch_observation::{Column, EventColumns, NoteSeries, PathRecording, SessionRecording};
use numpy::{PyArray1, PyArray2, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Everything that a run gives.
#[pyclass(frozen)]
pub struct Outcome {
    metrics_json: String,
    outcome: anabranch_observation::Outcome,
}

impl Outcome {
    pub(crate) fn new(outcome: anabranch_observation::Outcome) -> Self {
        Outcome { metrics_json: outcome.metrics.to_json(None), outcome }
    }
}

#[pymethods]
impl Outcome {
    /// The metrics as JSON.
    #[getter]
    fn metrics_json(&self) -> &str {
        &self.metrics_json
    }

    /// Whether events were recorded.
    #[getter]
    fn has_events(&self) -> bool {
        self.outcome.events.is_some()
    }

    /// The sampled columns of each recorded session.
    fn sessions<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.outcome.recording.sessions.iter().map(|session| convert_session(py, session)).collect()
    }

    /// What the scenario had happen: when, and what.
    fn marks(&self) -> Vec<(f64, &str)> {
        self.outcome.recording.events.iter().map(|mark| (mark.at_s, mark.text.as_str())).collect()
    }

    /// Where the link time of each session went, column by column; `None` if the run kept no account.
    fn account<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.outcome.account.as_ref().map(|account| convert_events(py, account)).transpose()
    }

    /// The table of events, column by column; `None` if none were recorded.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.outcome.events.as_ref().map(|events| convert_events(py, events)).transpose()
    }
}

/// Refuses a text that is not the metrics of a run, whole and without anything else; the message names the key.
#[pyfunction]
pub fn check_metrics(text: &str) -> PyResult<()> {
    let read = anabranch_observation::read_strictly::<anabranch_observation::Metrics>(text);
    read.map(|_| ()).map_err(|error| InputError::new_err(error.to_string()))
}

/// The JSON Schema of metrics, as text.
#[pyfunction]
pub fn metrics_schema() -> String {
    serde_json::to_string_pretty(&anabranch_observation::json_schema()).expect("a schema has only text keys")
}

fn convert_session<'py>(py: Python<'py>, session: &SessionRecording) -> PyResult<Bound<'py, PyDict>> {
    let paths = session.paths.iter().map(|path| convert_path(py, path)).collect::<PyResult<Vec<_>>>()?;
    let shown: Vec<Vec<f64>> = session
        .shown
        .iter()
        .map(|s| vec![s.begin_s, s.end_s, s.bitrate_bps, f64::from(s.resolution.0), f64::from(s.resolution.1)])
        .collect();
    let dict = PyDict::new(py);
    dict.set_item("name", &session.name)?;
    dict.set_item("shown", PyArray2::from_vec2(py, &shown)?)?;
    dict.set_item("time_s", session.time_s.to_pyarray(py))?;
    dict.set_item("buffer_s", session.buffer_s.to_pyarray(py))?;
    dict.set_item("discards", session.discards.to_pyarray(py))?;
    dict.set_item("path_switches", session.path_switches.to_pyarray(py))?;
    dict.set_item("stalls", pairs(py, &session.stalls)?)?;
    dict.set_item("underflows", session.underflows.to_pyarray(py))?;
    dict.set_item("paths", paths)?;
    dict.set_item("notes", session.notes.iter().map(|notes| convert_notes(py, notes)).collect::<Vec<_>>())?;
    Ok(dict)
}

fn convert_path<'py>(py: Python<'py>, path: &PathRecording) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("path", &path.path)?;
    dict.set_item("throughput_bps", path.throughput_bps.to_pyarray(py))?;
    dict.set_item("capacity_bps", path.capacity_bps.to_pyarray(py))?;
    dict.set_item("cwnd_packets", path.cwnd_packets.to_pyarray(py))?;
    dict.set_item("srtt_s", path.srtt_s.to_pyarray(py))?;
    dict.set_item("disabled", pairs(py, &path.disabled)?)?;
    dict.set_item("opened", pairs(py, &path.opened)?)?;
    Ok(dict)
}

/// Name, path, instants and numbers of what an algorithm emitted.
type Notes<'py> = (&'py str, Option<&'py str>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

fn convert_notes<'py>(py: Python<'py>, notes: &'py NoteSeries) -> Notes<'py> {
    (&notes.name, notes.path.as_deref(), notes.time_s.to_pyarray(py), notes.value.to_pyarray(py))
}

/// Pairs, such as beginnings and ends, as an array of two columns.
fn pairs<'py>(py: Python<'py>, pairs: &[(f64, f64)]) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let rows: Vec<Vec<f64>> = pairs.iter().map(|(first, second)| vec![*first, *second]).collect();
    Ok(PyArray2::from_vec2(py, &rows)?)
}

fn convert_events<'py>(py: Python<'py>, events: &EventColumns) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, column) in &events.columns {
        dict.set_item(name, convert_column(py, column)?)?;
    }
    Ok(dict)
}

/// A column as `(kind, values, missing or words)`, as `_core.pyi` describes it.
fn convert_column<'py>(py: Python<'py>, column: &Column) -> PyResult<Bound<'py, PyAny>> {
    let converted = match column {
        Column::Integer(values) => ("integer", values.to_pyarray(py), EventColumns::NO_INTEGER).into_pyobject(py)?,
        Column::Float(values) => ("float", values.to_pyarray(py), f64::NAN).into_pyobject(py)?,
        Column::Flag(values) => {
            let codes = values.iter().map(|flag| flag.map_or(-1, i8::from));
            ("flag", PyArray1::from_iter(py, codes), -1).into_pyobject(py)?
        }
        Column::Text { words, codes } => {
            let codes = codes.iter().map(|code| code.map_or(-1, i64::from));
            ("text", PyArray1::from_iter(py, codes), words).into_pyobject(py)?
        }
    };
    Ok(converted.into_any())
}
