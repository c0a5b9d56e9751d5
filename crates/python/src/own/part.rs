//! An author's object and how its methods are called.

use super::context::{Context, seconds};
use super::run::{DecisionTimer, RunState};
use anabranch_events::Note;
use anabranch_units::Instant;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::fmt;
use std::sync::Arc;

/// An author's object with its context, and the run that its failures end.
pub(crate) struct Part {
    /// What the scenario calls it.
    name: String,
    pub object: Py<PyAny>,
    pub context: Py<Context>,
    run: Arc<RunState>,
    now: Instant,
    /// Whether the last call may have left notes.
    has_notes: bool,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Part").field(&self.name).finish()
    }
}

impl Part {
    /// Gives the object its context.
    pub fn new(py: Python<'_>, name: &str, object: Py<PyAny>) -> PyResult<Self> {
        let run = RunState::current();
        let context = Py::new(py, Context::new(py, run.seed(), run.number(), run.keeps_notes())?)?;
        object.setattr(py, "ctx", &context)?;
        Ok(Part { name: name.into(), object, context, run, now: Instant::ZERO, has_notes: false })
    }

    /// A method of the object, to be called often.
    pub fn method(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        self.object.getattr(py, name)
    }

    /// The same if the author wrote one: a method that the base class has for readers alone need not be called.
    pub fn own_method(&self, py: Python<'_>, name: &str) -> PyResult<Option<Py<PyAny>>> {
        let class = self.object.bind(py).get_type();
        let base = py.import("anabranch.algorithms")?.getattr("overrides")?;
        let overridden: bool = base.call1((class, name))?.extract()?;
        overridden.then(|| self.method(py, name)).transpose()
    }

    /// An attribute that is true or false.
    pub fn flag(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.object.bind(py).getattr(name)?.is_truthy()
    }

    /// Whether the object may still be called.
    pub fn works(&self) -> bool {
        !self.run.has_failed()
    }

    /// Counts how long a decision takes in real time; to be called before the interpreter's lock is taken.
    pub fn decision(&self) -> Option<DecisionTimer> {
        self.run.decision()
    }

    /// Sets the time of the next call.
    pub fn at(&mut self, py: Python<'_>, now: Instant) {
        self.now = now;
        self.context.borrow_mut(py).now = now;
        self.has_notes = self.run.keeps_notes();
    }

    /// Calls a method at the time that was set, and understands its result. `None` after a failure, which ends the run.
    pub fn call<'py, T>(
        &self,
        py: Python<'py>,
        method: &Py<PyAny>,
        arguments: impl pyo3::call::PyCallArgs<'py>,
        understand: impl FnOnce(Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        match method.bind(py).call1(arguments).and_then(understand) {
            Ok(value) => Some(value),
            Err(error) => {
                self.fail(py, error);
                None
            }
        }
    }

    /// Ends the run with the author's exception.
    pub fn fail(&self, py: Python<'_>, error: PyErr) {
        let (what, place) = (kind_of(py, &error), place_of(py, &error));
        let (name, at, text) = (&self.name, seconds(self.now), error.value(py));
        let message = format!("`{name}` raised {what} at {at:.6} s {}: {text}{place}", self.run.clock());
        self.run.fail(&format!("{name} {what}{place}"), message, Some(error));
    }

    /// Ends the run because of what the author's method returned or left behind.
    pub fn misbehave(&self, message: &str) {
        // The numbers in a message differ from one time to the next, and the fault is the same.
        let fault: String = message.chars().filter(|letter| !letter.is_ascii_digit()).collect();
        let place = format!("{} {fault}", self.name);
        let message = format!("`{}` at {:.6} s {}: {message}", self.name, seconds(self.now), self.run.clock());
        self.run.fail(&place, message, None);
    }

    /// Passes on the notes since the last call.
    pub fn take_notes(&mut self, mut take: impl FnMut(Instant, Note)) {
        if std::mem::take(&mut self.has_notes) {
            Python::attach(|py| {
                self.context.borrow_mut(py).notes.drain(..).for_each(|(at, note)| take(at, note));
            });
        }
    }
}

/// The name of an exception's class.
pub(super) fn kind_of(py: Python<'_>, error: &PyErr) -> String {
    error.get_type(py).name().map_or_else(|_| "an exception".into(), |name| name.to_string())
}

/// Where in the author's code an exception was raised: file and line of the innermost frame.
pub(super) fn place_of(py: Python<'_>, error: &PyErr) -> String {
    let innermost = || -> PyResult<String> {
        let mut frame = error.traceback(py).map(pyo3::Bound::into_any);
        let mut place = String::new();
        while let Some(here) = frame.filter(|here| !here.is_none()) {
            let file: String = here.getattr("tb_frame")?.getattr("f_code")?.getattr("co_filename")?.extract()?;
            let line: usize = here.getattr("tb_lineno")?.extract()?;
            place = format!(" ({file}:{line})");
            frame = Some(here.getattr("tb_next")?);
        }
        Ok(place)
    };
    innermost().unwrap_or_default()
}

/// A tuple, kept to be given again while it holds the same.
pub(crate) fn tuple_of<'py, T: pyo3::PyClass>(
    py: Python<'py>,
    items: impl ExactSizeIterator<Item = Py<T>>,
) -> PyResult<Py<PyTuple>> {
    Ok(PyTuple::new(py, items)?.unbind())
}
