//! Scenarios and the names that they may use.

use crate::InputError;
use crate::own::parts::{external, names_of};
use crate::toml_text::document_text;
use anabranch_media::content::Representation;
use anabranch_observation::reducers::REDUCERS;
use anabranch_scenario::{Bulk, Error, Progressive, Video, catalogue};
use anabranch_units::{Bandwidth, text};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyMapping};
use std::path::PathBuf;

/// A checked scenario, and the folders in which the modules of its own algorithms are looked for first.
#[pyclass(frozen)]
pub struct Scenario(pub(crate) anabranch_scenario::Scenario, Vec<PathBuf>);

#[pymethods]
impl Scenario {
    /// What the run is called.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The scenario as TOML with every default written out.
    #[getter]
    fn resolved(&self) -> String {
        self.0.resolved()
    }

    /// What is legal in it and probably not meant: the kind's word, and the sentence with its place.
    #[getter]
    fn warnings(&self) -> Vec<(&'static str, String)> {
        self.0.warnings.iter().map(|warning| (warning.kind.word(), warning.to_string())).collect()
    }

    /// The algorithms that are not built in, each with its kind.
    #[getter]
    fn own_algorithms<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        names_of(py, &self.0)
    }

    /// The folders in which their modules are looked for before the current directory.
    #[getter]
    fn module_folders(&self) -> Vec<PathBuf> {
        self.1.clone()
    }

    /// The resolved scenario, which names its files relative to itself, and these files.
    fn portable<'py>(&self, py: Python<'py>) -> (String, Vec<(String, Bound<'py, PyBytes>)>) {
        let portable = self.0.portable();
        let files = portable.files.iter().map(|(name, content)| (name.clone(), PyBytes::new(py, content)));
        (portable.scenario, files.collect())
    }

    /// What each session watches.
    fn videos<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.0.sessions.iter().map(|session| describe(py, &session.video)).collect()
    }
}

fn describe<'py>(py: Python<'py>, video: &Video) -> PyResult<Bound<'py, PyDict>> {
    let about = PyDict::new(py);
    match video {
        Video::Progressive(Progressive { size, rate, fps, .. }) => {
            about.set_item("kind", "progressive")?;
            about.set_item("bytes", size.0)?;
            about.set_item("rate_bps", rate.as_bps())?;
            about.set_item("duration_s", size.0 as f64 * 8.0 / rate.as_bps() as f64)?;
            about.set_item("fps", (fps.0, fps.1))?;
        }
        Video::Dash(content) => {
            let video = content.video();
            let one = |r: &Representation| (r.bitrate, r.resolution.map(|size| (size.width, size.height)));
            about.set_item("kind", "dash")?;
            about.set_item("representations", video.representations().iter().map(one).collect::<Vec<_>>())?;
            about.set_item("segments", video.segments())?;
            about.set_item("segment_s", video.ladder().segment_duration().as_secs_f64())?;
            about.set_item("duration_s", video.duration().as_secs_f64())?;
        }
        Video::Bulk(Bulk { size }) => {
            about.set_item("kind", "bulk")?;
            about.set_item("bytes", size.map(|size| size.0))?;
        }
    }
    Ok(about)
}

/// Reads and checks a scenario's text. Modules of own algorithms are looked for in the directory, and then in
/// `modules`.
#[pyfunction]
#[pyo3(signature = (text, *, name, directory, overrides, modules = None))]
pub fn load(
    py: Python<'_>,
    text: &str,
    name: &str,
    directory: Option<PathBuf>,
    overrides: Vec<(String, String)>,
    modules: Option<PathBuf>,
) -> PyResult<Scenario> {
    let folders: Vec<PathBuf> = directory.clone().into_iter().chain(modules).collect();
    // A recorded rate may be a long file: other threads go on meanwhile.
    let external = external(folders.clone());
    let loaded =
        py.detach(|| anabranch_scenario::load_with(text, name, directory.as_deref(), &overrides, Some(&external)));
    loaded.map(|scenario| Scenario(scenario, folders)).map_err(|e| refused(&e))
}

/// The same for a scenario given as a dictionary, with mistakes that name keys.
#[pyfunction]
#[pyo3(signature = (table, *, name, overrides))]
pub fn load_dictionary(
    table: &Bound<'_, PyMapping>,
    name: &str,
    overrides: Vec<(String, String)>,
) -> PyResult<Scenario> {
    let text = document_text(table, name)?;
    let loaded = anabranch_scenario::load_dictionary(&text, name, &overrides, Some(&external(Vec::new())));
    loaded.map(|scenario| Scenario(scenario, Vec::new())).map_err(|e| refused(&e))
}

/// A mistake of the caller's, in one line.
pub(crate) fn refused(error: &Error) -> PyErr {
    InputError::new_err(error.to_string())
}

/// The text of a shipped scenario.
#[pyfunction]
pub fn shipped(name: &str) -> Option<&'static str> {
    catalogue::scenario(name).map(|found| found.text)
}

/// The JSON Schema of scenarios, as text.
#[pyfunction]
pub fn scenario_schema() -> String {
    serde_json::to_string_pretty(&anabranch_scenario::json_schema()).expect("a schema has only text keys")
}

/// Everything that can be named: kind, name, one sentence, source.
#[pyfunction]
pub fn registry() -> Vec<(&'static str, &'static str, String, &'static str)> {
    let lists = [
        ("schedulers", catalogue::schedulers()),
        ("congestion-controls", catalogue::congestion_controls()),
        ("path-policies", catalogue::path_policies()),
        ("response-pacings", catalogue::response_pacings()),
        ("abr-rules", catalogue::abr_rules()),
        ("players", catalogue::players()),
        ("queues", catalogue::queues()),
        ("ladders", catalogue::ladders()),
        ("loss-models", catalogue::loss_models()),
        ("synthetic-rates", catalogue::synthetic_rates()),
    ];
    let items = lists.into_iter().flat_map(|(kind, items)| items.into_iter().map(move |item| (kind, item)));
    let items = items.map(|(kind, item)| (kind, item.name, item.summary.to_string(), item.source));
    let reducers = REDUCERS.iter().map(|item| ("reducers", item.name, item.summary.to_string(), item.source));
    let scenarios = catalogue::SCENARIOS.iter().map(|shipped| ("scenarios", shipped.name, shipped.question(), ""));
    items.chain(reducers).chain(scenarios).collect()
}

/// The candidate that was probably meant, if any is near.
#[pyfunction]
pub fn nearest(word: &str, candidates: Vec<String>) -> Option<String> {
    anabranch_units::nearest(word, candidates.iter().map(String::as_str))
}

/// A rate with its unit, in bit/s.
#[pyfunction]
pub fn rate_bps(text: &str) -> PyResult<u64> {
    match text::read_rate(text) {
        Ok(Bandwidth::INFINITE) => {
            Err(InputError::new_err("`unlimited` is no rate here; expected one such as \"2 Mb/s\""))
        }
        Ok(rate) => Ok(rate.as_bps()),
        Err(problem) => Err(InputError::new_err(problem.to_string())),
    }
}

/// A time with its unit, in seconds.
#[pyfunction]
pub fn time_s(text: &str) -> PyResult<f64> {
    text::read_time(text).map(|time| time.as_secs_f64()).map_err(|problem| InputError::new_err(problem.to_string()))
}
