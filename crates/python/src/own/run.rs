//! What the author's objects of one run have in common: the seed, and the first failure, which ends the run.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What went wrong in an author's code.
pub(crate) struct Failure {
    /// Which algorithm, and when: one sentence without a full stop.
    message: String,
    /// The exception, if it was one.
    cause: Option<PyErr>,
}

/// The state of a run.
#[derive(Default)]
pub(crate) struct RunState {
    seed: u64,
    /// Parts made so far; each gets random numbers of its own.
    made: AtomicU64,
    failed: AtomicBool,
    failure: Mutex<Option<Failure>>,
}

thread_local! {
    /// The run on this thread: a simulation makes all its parts on the thread that it runs on.
    static CURRENT: RefCell<Option<Arc<RunState>>> = const { RefCell::new(None) };
}

impl RunState {
    /// The run on this thread; one of its own where there is none, such as while a scenario is checked.
    pub fn current() -> Arc<RunState> {
        CURRENT.with_borrow(|current| current.clone().unwrap_or_default())
    }

    /// Whether a run is going on on this thread.
    pub fn is_running() -> bool {
        CURRENT.with_borrow(Option::is_some)
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The number of the next part.
    pub fn number(&self) -> u64 {
        self.made.fetch_add(1, Ordering::Relaxed)
    }

    /// Keeps the first failure.
    pub fn fail(&self, message: String, cause: Option<PyErr>) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_none() {
            *failure = Some(Failure { message, cause });
        }
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Whether the run is lost: authors' code is not called any more.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

/// Does a run whose parts know of each other's failures: `work` gets a function that says whether to go on.
///
/// # Errors
/// The first failure of an author's code: an `AlgorithmError` whose cause is the author's exception.
pub(crate) fn with_run<T>(py: Python<'_>, seed: u64, work: impl FnOnce(&dyn Fn() -> bool) -> T) -> PyResult<T> {
    let state = Arc::new(RunState { seed, ..RunState::default() });
    let before = CURRENT.replace(Some(state.clone()));
    let result = work(&|| !state.has_failed());
    CURRENT.set(before);
    let failure = state.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(Failure { message, cause }) = failure else { return Ok(result) };
    // An interruption comes while the interpreter runs an author's code, and is no fault of that.
    if let Some(interruption) = cause.as_ref().filter(|cause| !cause.is_instance_of::<PyException>(py)) {
        return Err(interruption.clone_ref(py));
    }
    let error = crate::AlgorithmError::new_err(message);
    error.set_cause(py, cause);
    Err(error)
}
