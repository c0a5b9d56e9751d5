//! What the author's objects of one run have in common: the seed, and the first failure, which ends the run.

use anabranch_network::Histogram;
use anabranch_observation::DecisionLatency;
use anabranch_stack::external::DecisionTimes;
use anabranch_units::Duration;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

/// What went wrong in an author's code.
pub(crate) struct Failure {
    /// Which algorithm, and when: one sentence without a full stop.
    message: String,
    /// The exception, if it was one.
    cause: Option<PyErr>,
}

/// How long decisions took, in real time.
#[derive(Default)]
pub(crate) struct Latencies(Mutex<Histogram>);

impl Latencies {
    fn record(&self, taken: std::time::Duration) {
        let nanos = u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).record(Duration::from_nanos(nanos));
    }

    /// The same as numbers for a page of metrics.
    pub fn times(&self) -> DecisionTimes {
        let histogram = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let quantile = |share| histogram.quantile(share).unwrap_or_default();
        DecisionTimes {
            decisions: histogram.count(),
            total: histogram.total(),
            p50: quantile(0.5),
            p99: quantile(0.99),
        }
    }

    /// The same for the metrics of a live run, in microseconds; `None` if there were no decisions.
    fn of_run(&self) -> Option<DecisionLatency> {
        let histogram = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let micros = |duration: Duration| duration.as_secs_f64() * 1e6;
        Some(DecisionLatency {
            decisions: histogram.count(),
            p50: micros(histogram.quantile(0.5)?),
            p99: micros(histogram.quantile(0.99)?),
            max: micros(histogram.max()),
        })
    }
}

/// Takes the failure of a server's connection: what is the same for all failures of one kind, what happened, and the
/// exception.
pub(crate) type Report = Box<dyn Fn(&str, String, Option<PyErr>) + Send + Sync>;

/// The state of a run.
#[derive(Default)]
pub(crate) struct RunState {
    seed: u64,
    /// How long decisions took, in real time; it is not counted in simulation.
    latencies: Option<Arc<Latencies>>,
    /// Who hears of the first failure. It is a server's: there a connection is a run, and its notes are dropped.
    report: Option<Report>,
    /// Parts made so far; each gets random numbers of its own.
    made: AtomicU64,
    failed: AtomicBool,
    failure: Mutex<Option<Failure>>,
}

thread_local! {
    /// The run on this thread: a simulation makes all its parts on the thread that it runs on.
    static CURRENT: RefCell<Option<Arc<RunState>>> = const { RefCell::new(None) };
}

/// The run in real time of this process. Its parts are made on threads of the testbed, so it is no thread's.
static LIVE: Mutex<Weak<RunState>> = Mutex::new(Weak::new());

impl RunState {
    /// The run on this thread, or that in real time; one of its own where there is none, such as while a scenario is
    /// checked.
    pub fn current() -> Arc<RunState> {
        RunState::running().unwrap_or_default()
    }

    /// Whether a run is going on.
    pub fn is_running() -> bool {
        RunState::running().is_some()
    }

    fn running() -> Option<Arc<RunState>> {
        let on_this_thread = CURRENT.with_borrow(Option::clone);
        on_this_thread.or_else(|| LIVE.lock().unwrap_or_else(PoisonError::into_inner).upgrade())
    }

    /// Begins a run in real time, which lasts as long as what is returned. `None` while another one lasts.
    pub fn begin_live(seed: u64) -> Option<Arc<RunState>> {
        let mut live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
        if live.upgrade().is_some() {
            return None;
        }
        let state = Arc::new(RunState { seed, latencies: Some(Arc::default()), ..RunState::default() });
        *live = Arc::downgrade(&state);
        Some(state)
    }

    /// The run that a connection of a server is.
    pub fn of_connection(seed: u64, latencies: Arc<Latencies>, report: Report) -> Arc<RunState> {
        Arc::new(RunState { seed, latencies: Some(latencies), report: Some(report), ..RunState::default() })
    }

    /// Makes parts of this run on this thread.
    pub fn within<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        let before = CURRENT.replace(Some(self.clone()));
        let result = work();
        CURRENT.set(before);
        result
    }

    /// Counts how long a decision takes: until the returned guard is dropped. Nothing in simulation, where time stands
    /// still.
    pub fn decision(&self) -> Option<DecisionTimer> {
        self.latencies.as_ref().map(|latencies| DecisionTimer { latencies: latencies.clone(), began: Instant::now() })
    }

    /// How long decisions took; `None` if there were none.
    pub fn decision_latency(&self) -> Option<DecisionLatency> {
        self.latencies.as_ref()?.of_run()
    }

    /// Which clock the engine's times are of, for messages.
    pub fn clock(&self) -> &'static str {
        match (&self.report, &self.latencies) {
            (Some(_), _) => "of the server's run",
            (None, Some(_)) => "of the live run",
            (None, None) => "of simulated time",
        }
    }

    /// Whether the notes of its parts are taken.
    pub fn keeps_notes(&self) -> bool {
        self.report.is_none()
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The number of the next part.
    pub fn number(&self) -> u64 {
        self.made.fetch_add(1, Ordering::Relaxed)
    }

    /// Keeps the first failure, or reports it. `place` is the same for all failures of one kind.
    pub fn fail(&self, place: &str, message: String, cause: Option<PyErr>) {
        if let Some(report) = &self.report {
            if !self.failed.swap(true, Ordering::Relaxed) {
                report(place, message, cause);
            }
            return;
        }
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_none() {
            *failure = Some(Failure { message, cause });
        }
        self.failed.store(true, Ordering::Relaxed);
    }

    /// The first failure of an author's code, once: an `AlgorithmError` whose cause is the author's exception.
    pub fn failure(&self, py: Python<'_>) -> Option<PyErr> {
        let Failure { message, cause } = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        // An interruption comes while the interpreter runs an author's code, and is no fault of that.
        if let Some(interruption) = cause.as_ref().filter(|cause| !cause.is_instance_of::<PyException>(py)) {
            return Some(interruption.clone_ref(py));
        }
        let error = crate::AlgorithmError::new_err(message);
        error.set_cause(py, cause);
        Some(error)
    }

    /// Whether the run is lost: authors' code is not called any more.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

/// Counts the time until it is dropped as that of a decision.
pub(crate) struct DecisionTimer {
    latencies: Arc<Latencies>,
    began: Instant,
}

impl Drop for DecisionTimer {
    fn drop(&mut self) {
        self.latencies.record(self.began.elapsed());
    }
}

/// Does a run whose parts know of each other's failures: `work` gets a function that says whether to go on.
///
/// # Errors
/// The first failure of an author's code: an `AlgorithmError` whose cause is the author's exception.
pub(crate) fn with_run<T>(py: Python<'_>, seed: u64, work: impl FnOnce(&dyn Fn() -> bool) -> T) -> PyResult<T> {
    let state = Arc::new(RunState { seed, ..RunState::default() });
    let result = state.within(|| work(&|| !state.has_failed()));
    state.failure(py).map_or(Ok(result), Err)
}
