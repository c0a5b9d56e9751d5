//! What an author's object has as `self.ctx`: the time, random numbers, the engine's mathematics, and notes.

use crate::InputError;
use anabranch_events::Note;
use anabranch_network::Streams;
use anabranch_units::{Duration, Instant};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Names that live as long as the process: those of notes and reasons, of which an algorithm has few.
static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// More names than this are numbers in disguise, and would fill the memory.
const MOST_NAMES: usize = 10_000;

/// The name for as long as the process lives.
///
/// # Errors
/// `InputError` if there are too many.
pub(crate) fn name(text: &str) -> PyResult<&'static str> {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(text) {
        return Ok(known);
    }
    if names.len() >= MOST_NAMES {
        let message =
            format!("there are {MOST_NAMES} names of notes and reasons; give numbers as values, not in names");
        return Err(InputError::new_err(message));
    }
    let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
    names.insert(kept);
    Ok(kept)
}

/// The time in seconds.
pub(crate) fn seconds(at: Instant) -> f64 {
    at.since(Instant::ZERO).as_secs_f64()
}

/// The instant that many seconds after the start, to the nearest nanosecond; times before the start are the start.
pub(crate) fn instant(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

/// The engine as an algorithm sees it.
#[pyclass(module = "anabranch._core")]
pub struct Context {
    pub(super) now: Instant,
    pub(super) notes: Vec<(Instant, Note)>,
    /// Whether notes are taken; otherwise they are dropped.
    keeps_notes: bool,
    #[pyo3(get)]
    rng: Py<Rng>,
    #[pyo3(get)]
    math: Py<Math>,
}

impl Context {
    pub(super) fn new(py: Python<'_>, seed: u64, number: u64, keeps_notes: bool) -> PyResult<Self> {
        let rng = Streams::new(seed, format!("own/{number}")).stream("draws");
        let (rng, math) = (Py::new(py, Rng(rng))?, Py::new(py, Math)?);
        Ok(Context { now: Instant::ZERO, notes: Vec::new(), keeps_notes, rng, math })
    }

    fn note(&mut self, name_of_note: &str, value: f64, subflow: Option<u16>) -> PyResult<()> {
        if !self.keeps_notes {
            return Ok(());
        }
        let subflow = subflow.map(anabranch_units::SubflowId);
        self.notes.push((self.now, Note { name: name(name_of_note)?, value, subflow }));
        Ok(())
    }
}

#[pymethods]
impl Context {
    #[getter]
    fn now(&self) -> f64 {
        seconds(self.now)
    }

    /// The time so many seconds from now, rounded as the engine rounds times: `now` can equal it.
    fn after(&self, delay: f64) -> f64 {
        seconds(self.now + Duration::from_secs_f64(delay))
    }

    /// Writes numbers into the table of events: rows with the event `noted`.
    #[pyo3(signature = (name, value=None, /, *, subflow=None, **values))]
    fn emit(
        &mut self,
        name: &str,
        value: Option<f64>,
        subflow: Option<u16>,
        values: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        if value.is_some() || values.is_none() {
            self.note(name, value.unwrap_or(f64::NAN), subflow)?;
        }
        for (key, value) in values.into_iter().flatten() {
            self.note(&format!("{name}.{key}"), value.extract()?, subflow)?;
        }
        Ok(())
    }
}

/// Random numbers of one algorithm object, from the seed of the run.
#[pyclass(module = "anabranch._core")]
pub struct Rng(ChaCha8Rng);

#[pymethods]
impl Rng {
    /// A number from 0, included, to 1, excluded.
    fn random(&mut self) -> f64 {
        self.0.random()
    }

    /// A number between the two.
    fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.random::<f64>()
    }

    /// A whole number from the first to the second, both included.
    fn integer(&mut self, low: i64, high: i64) -> PyResult<i64> {
        if low > high {
            return Err(pyo3::exceptions::PyValueError::new_err(format!("integer({low}, {high}): low is above high")));
        }
        Ok(self.0.random_range(low..=high))
    }

    /// Box and Muller's method; of its two numbers one is used, so that a draw depends on nothing but the draws before
    /// it.
    fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        // From (0, 1], because zero has no logarithm.
        let (radius, angle) = (1.0 - self.0.random::<f64>(), self.0.random::<f64>());
        mean + deviation * libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(std::f64::consts::TAU * angle)
    }
}

/// The engine's functions: the same bits on every machine, which the system's library does not promise.
#[pyclass(frozen, module = "anabranch._core")]
pub struct Math;

macro_rules! functions {
    ($($name:ident),*) => {
        #[pymethods]
        impl Math {
            $(/// The function of this name, with the same bits on every machine.
            #[staticmethod]
            fn $name(x: f64) -> f64 {
                libm::$name(x)
            })*

            /// The first number to the power of the second, with the same bits on every machine.
            #[staticmethod]
            fn pow(x: f64, y: f64) -> f64 {
                libm::pow(x, y)
            }
        }
    };
}

functions!(exp, expm1, log, log1p, log2, log10, sqrt, cbrt, sin, cos, tanh);
