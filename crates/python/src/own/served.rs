//! Own algorithms of a server. Their classes are imported when the options are read, so a connection's parts are only
//! made. Each connection is a run of its own: a failure ends it and no other one.

use super::congestion::OwnControl;
use super::part::{Part, kind_of, place_of};
use super::parts::word;
use super::path_policy::OwnPathPolicy;
use super::run::{Latencies, Report, RunState};
use super::scheduler::OwnScheduler;
use anabranch_stack::congestion::CongestionControl;
use anabranch_stack::connection::Choice;
use anabranch_stack::external::{DecisionTimes, ExternalParts, Kind};
use anabranch_stack::options::{OptionError, Options};
use anabranch_stack::path_policy::PathPolicy;
use anabranch_stack::scheduler::Scheduler;
use pyo3::prelude::*;
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Kinds of failures that are reported after the options were read; more means that names of functions have numbers.
const MOST_PLACES: usize = 100;

/// What is reported of a failure to the author: the traceback, if it was an exception, and one sentence.
pub(crate) type FailureText = (Option<String>, String);

/// What all connections of a server have in common, also after its options were read again.
#[derive(Default)]
pub(crate) struct Service {
    latencies: Arc<Latencies>,
    failures: Mutex<Failures>,
}

#[derive(Default)]
struct Failures {
    /// Where failures were reported.
    known: BTreeSet<String>,
    waiting: Vec<FailureText>,
}

impl Service {
    fn failures(&self) -> std::sync::MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The failures that were not reported yet, one for each place.
    pub fn take_failures(&self) -> Vec<FailureText> {
        std::mem::take(&mut self.failures().waiting)
    }

    /// The author's code is another one: its failures are reported again.
    pub fn forget_places(&self) {
        self.failures().known.clear();
    }

    fn is_new(&self, place: &str) -> bool {
        let mut failures = self.failures();
        failures.known.len() < MOST_PLACES && failures.known.insert(place.to_owned())
    }

    /// Keeps a failure to be reported, if it is the first of its place.
    fn report(&self, client: SocketAddr, place: &str, message: &str, cause: Option<PyErr>) {
        if !self.is_new(place) {
            return;
        }
        // No lock is held here: Python may give the interpreter to a thread that waits for it.
        let traceback = cause.and_then(|error| Python::attach(|py| traceback_of(py, error).ok()));
        let message =
            format!("{message}; the connection of {client} is reset, and further failures there are only counted");
        self.failures().waiting.push((traceback, message));
    }
}

/// Another seed for each connection: real clients make no two runs the same anyway. The standard library keys its hash
/// maps with such numbers.
fn random_seed() -> u64 {
    RandomState::new().hash_one(0)
}

/// The author's frames: what called them is compiled.
fn traceback_of(py: Python<'_>, error: PyErr) -> PyResult<String> {
    // The value alone has no frames until it is taken out of the error.
    let lines = py.import("traceback")?.getattr("format_exception")?.call1((error.into_value(py),))?;
    Ok(lines.extract::<Vec<String>>()?.concat())
}

/// A class of an author.
struct Class {
    kind: Kind,
    class: Py<PyAny>,
}

/// The own algorithms that a server's options name.
pub(crate) struct ServedParts {
    classes: Arc<[Class]>,
    service: Arc<Service>,
    /// The connection whose parts it makes; `None` while options are checked.
    connection: Option<Arc<RunState>>,
}

impl fmt::Debug for ServedParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.classes.iter().map(|class| class.kind).collect();
        f.debug_struct("ServedParts").field("kinds", &kinds).finish_non_exhaustive()
    }
}

/// Whether a name is one of an author's class.
pub(crate) fn is_own(name: &str) -> bool {
    name.contains(':')
}

/// Attaches the authors' classes to those of the choices that name one. Their modules are imported anew, so that they
/// are as their files are now; connections that exist keep the classes that they have.
///
/// # Errors
/// `InputError` if a module cannot be imported, or has no such class.
pub(crate) fn attach(
    py: Python<'_>,
    choices: &mut [(Kind, &mut Choice)],
    modules: Option<&Path>,
    service: &Arc<Service>,
) -> PyResult<()> {
    let own: Vec<_> = choices.iter().filter(|(_, choice)| is_own(&choice.name)).collect();
    if own.is_empty() {
        return Ok(());
    }
    let kinds: Vec<_> = own.iter().map(|(kind, _)| *kind).collect();
    let named: Vec<_> = own.iter().map(|(kind, choice)| (word(*kind), choice.name.clone())).collect();
    let import = py.import("anabranch.algorithms.serving")?.getattr("import_anew")?;
    let imported: Vec<Py<PyAny>> = import.call1((named, modules))?.extract()?;
    let classes = kinds.into_iter().zip(imported).map(|(kind, class)| Class { kind, class }).collect();
    let parts = Arc::new(ServedParts { classes, service: service.clone(), connection: None });
    for (_, choice) in choices.iter_mut().filter(|(_, choice)| is_own(&choice.name)) {
        choice.attach(parts.clone());
    }
    Ok(())
}

impl ServedParts {
    /// Makes an object of the class of this kind, and wraps it.
    fn make<T>(
        &self,
        kind: Kind,
        name: &str,
        wrap: impl FnOnce(Python<'_>, Part) -> PyResult<T>,
    ) -> Result<T, OptionError> {
        let refusal = |message| OptionError { option: "name".into(), message };
        let named = self.classes.iter().find(|class| class.kind == kind);
        let class = named.ok_or_else(|| refusal(format!("`{name}` was not imported")))?;
        let run = self.connection.clone().unwrap_or_default();
        Python::attach(|py| {
            let made = run.within(|| wrap(py, Part::new(py, name, class.class.call0(py)?)?));
            made.map_err(|error| {
                let (what, place, text) = (kind_of(py, &error), place_of(py, &error), error.value(py).to_string());
                let message = format!("`{name}` cannot be made: {what}: {text}{place}");
                run.fail(&format!("{name} {what}{place}"), message.clone(), Some(error));
                refusal(message)
            })
        })
    }
}

impl ExternalParts for ServedParts {
    fn knows(&self, kind: Kind, name: &str) -> bool {
        is_own(name) && self.classes.iter().any(|class| class.kind == kind)
    }

    fn scheduler(&self, name: &str, _: &Options) -> Result<Box<dyn Scheduler>, OptionError> {
        Ok(Box::new(self.make(Kind::Scheduler, name, OwnScheduler::new)?))
    }

    fn path_policy(&self, name: &str, _: &Options) -> Result<Box<dyn PathPolicy>, OptionError> {
        Ok(Box::new(self.make(Kind::PathPolicy, name, OwnPathPolicy::new)?))
    }

    fn congestion_control(&self, name: &str, _: &Options, _: u64) -> Result<Box<dyn CongestionControl>, OptionError> {
        Ok(Box::new(self.make(Kind::CongestionControl, name, OwnControl::new)?))
    }

    fn for_connection(&self, client: SocketAddr) -> Option<Arc<dyn ExternalParts>> {
        let service = self.service.clone();
        let report: Report = Box::new(move |place, message, cause| service.report(client, place, &message, cause));
        let run = RunState::of_connection(random_seed(), self.service.latencies.clone(), report);
        let (classes, service) = (self.classes.clone(), self.service.clone());
        Some(Arc::new(ServedParts { classes, service, connection: Some(run) }))
    }

    fn has_failed(&self) -> bool {
        self.connection.as_ref().is_some_and(|run| run.has_failed())
    }

    fn decision_times(&self) -> Option<DecisionTimes> {
        Some(self.service.latencies.times())
    }
}
