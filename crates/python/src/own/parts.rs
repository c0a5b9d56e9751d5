//! Makes parts from Python classes, for the crates below.

use super::abr::OwnRule;
use super::congestion::OwnControl;
use super::part::Part;
use super::path_policy::OwnPathPolicy;
use super::run::RunState;
use super::scheduler::OwnScheduler;
use anabranch_media::abr::{AbrRule, ExternalRules};
use anabranch_scenario::External;
use anabranch_stack::congestion::CongestionControl;
use anabranch_stack::external::{ExternalParts, Kind};
use anabranch_stack::options::{OptionError, Options, Value};
use anabranch_stack::path_policy::PathPolicy;
use anabranch_stack::scheduler::Scheduler;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::PathBuf;
use std::sync::Arc;

/// The classes that a scenario can name.
#[derive(Debug)]
struct PythonParts {
    /// Where modules are looked for first: next to the scenario, then next to the plan that names it.
    folders: Vec<PathBuf>,
}

/// The parts of a scenario whose modules may be in these folders.
pub(crate) fn external(folders: Vec<PathBuf>) -> External {
    let parts = Arc::new(PythonParts { folders });
    External { parts: parts.clone(), rules: parts }
}

/// The kind of bitrate rules, which only `media` knows.
const RULE: &str = "abr_rule";

/// The name of a kind in Python.
pub(super) fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Scheduler => "scheduler",
        Kind::PathPolicy => "path_policy",
        Kind::CongestionControl => "congestion_control",
    }
}

/// Options as keywords. Whole numbers are integers, because TOML's are, and Python computes with them as with floats.
fn keywords<'py>(py: Python<'py>, options: &Options) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in options.entries() {
        dict.set_item(name, argument(py, value)?)?;
    }
    Ok(dict)
}

fn argument<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    /// Up to here a float holds every integer.
    const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Text(text) => text.into_bound_py_any(py),
        Value::Flag(flag) => flag.into_bound_py_any(py),
        Value::Number(n) if n.fract() == 0.0 && n.abs() <= LARGEST_EXACT => (*n as i64).into_bound_py_any(py),
        Value::Number(n) => n.into_bound_py_any(py),
        Value::List(list) => {
            let items = list.iter().map(|item| argument(py, item)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, items)?.into_any())
        }
    }
}

impl PythonParts {
    fn knows(&self, kind: &str, name: &str) -> bool {
        name.contains(':')
            || Python::attach(|py| {
                let asked = py.import("anabranch.algorithms.loading")?.getattr("is_registered")?.call1((kind, name))?;
                asked.extract::<bool>()
            })
            .unwrap_or(false)
    }

    /// Makes an object of the class of that name, and wraps it.
    fn make<T>(
        &self,
        kind: &str,
        name: &str,
        options: &Options,
        wrap: impl FnOnce(Python<'_>, Part) -> PyResult<T>,
    ) -> Result<T, OptionError> {
        Python::attach(|py| {
            let made = keywords(py, options).and_then(|options| {
                let make = py.import("anabranch.algorithms.loading")?.getattr("make")?;
                make.call1((kind, name, &self.folders, options))
            });
            let made = made.and_then(|object| wrap(py, Part::new(py, name, object.unbind())?));
            made.map_err(|error| refusal(py, name, error))
        })
    }
}

/// What is wrong with a class or its options. Python gives both as arguments of its exception.
fn refusal(py: Python<'_>, name: &str, error: PyErr) -> OptionError {
    let arguments = error.value(py).getattr("args").and_then(|args| args.extract::<(String, String)>());
    if let Ok((option, message)) = arguments {
        return OptionError { option, message };
    }
    // An interruption by the user, or a fault of ours.
    if RunState::is_running() {
        RunState::current().fail(name, format!("`{name}` could not be made"), Some(error.clone_ref(py)));
    }
    OptionError { option: "name".into(), message: format!("`{name}`: {error}") }
}

impl ExternalParts for PythonParts {
    fn knows(&self, kind: Kind, name: &str) -> bool {
        self.knows(word(kind), name)
    }

    fn scheduler(&self, name: &str, options: &Options) -> Result<Box<dyn Scheduler>, OptionError> {
        let made = self.make(word(Kind::Scheduler), name, options, OwnScheduler::new)?;
        Ok(Box::new(made))
    }

    fn path_policy(&self, name: &str, options: &Options) -> Result<Box<dyn PathPolicy>, OptionError> {
        let made = self.make(word(Kind::PathPolicy), name, options, OwnPathPolicy::new)?;
        Ok(Box::new(made))
    }

    fn congestion_control(
        &self,
        name: &str,
        options: &Options,
        _seed: u64,
    ) -> Result<Box<dyn CongestionControl>, OptionError> {
        let made = self.make(word(Kind::CongestionControl), name, options, OwnControl::new)?;
        Ok(Box::new(made))
    }
}

impl ExternalRules for PythonParts {
    fn knows(&self, name: &str) -> bool {
        self.knows(RULE, name)
    }

    fn rule(&self, name: &str, options: &Options) -> Result<Box<dyn AbrRule>, OptionError> {
        let made = self.make(RULE, name, options, OwnRule::new)?;
        Ok(Box::new(made))
    }
}

/// The names of a scenario's parts that are in no registry, with their kinds.
pub(crate) fn names_of<'py>(py: Python<'py>, scenario: &anabranch_scenario::Scenario) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, scenario.external())
}
