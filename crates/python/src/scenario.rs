//! Scenarios and the names that they may use.

use crate::InputError;
use anabranch_sim::{Error, catalogue};
use pyo3::prelude::*;
use std::path::PathBuf;

/// A checked scenario.
#[pyclass(frozen, skip_from_py_object)]
pub struct Scenario(pub(crate) anabranch_sim::Scenario);

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
}

/// Reads and checks a scenario's text.
#[pyfunction]
#[pyo3(signature = (text, *, name, directory, overrides))]
pub fn load(
    text: &str,
    name: &str,
    directory: Option<PathBuf>,
    overrides: Vec<(String, String)>,
) -> PyResult<Scenario> {
    anabranch_sim::load(text, name, directory.as_deref(), &overrides).map(Scenario).map_err(|e| refused(&e))
}

fn refused(error: &Error) -> PyErr {
    InputError::new_err(error.to_string())
}

/// The text of a shipped scenario.
#[pyfunction]
pub fn shipped(name: &str) -> Option<&'static str> {
    catalogue::scenario(name).map(|found| found.text)
}

/// Everything that can be named: kind, name, one sentence, source.
#[pyfunction]
pub fn registry() -> Vec<(&'static str, &'static str, String, &'static str)> {
    let lists = [
        ("schedulers", catalogue::schedulers()),
        ("congestion-controls", catalogue::congestion_controls()),
        ("path-policies", catalogue::path_policies()),
        ("abr-rules", catalogue::abr_rules()),
        ("players", catalogue::players()),
        ("queues", catalogue::queues()),
        ("ladders", catalogue::ladders()),
        ("loss-models", catalogue::loss_models()),
    ];
    let items = lists.into_iter().flat_map(|(kind, items)| items.into_iter().map(move |item| (kind, item)));
    let items = items.map(|(kind, item)| (kind, item.name, item.summary.to_string(), item.source));
    let scenarios = catalogue::SCENARIOS.iter().map(|shipped| ("scenarios", shipped.name, shipped.question(), ""));
    items.chain(scenarios).collect()
}

/// The candidate that was probably meant, if any is near.
#[pyfunction]
pub fn nearest(word: &str, candidates: Vec<String>) -> Option<String> {
    anabranch_sim::nearest(word, candidates.iter().map(String::as_str))
}
