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
    anabranch_sim::load(text, name, directory.as_deref(), &overrides).map(Scenario).map_err(refused)
}

fn refused(error: Error) -> PyErr {
    InputError::new_err(error.to_string())
}
