//! The papers' claims, measured on several threads with the interpreter free for others meanwhile.

use crate::InputError;
use crate::worker::supervise;
use anabranch_validation::claims::reproduction::{Effort, Paper, on_threads};
use anabranch_validation::claims::{json, tables};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Measures a paper's claims.
#[pyfunction]
#[pyo3(signature = (paper, *, seeds, jobs, sensitivity, progress))]
pub fn reproduce(
    py: Python<'_>,
    paper: &str,
    seeds: u64,
    jobs: usize,
    sensitivity: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    let Some(found) = Paper::find(paper) else {
        return Err(InputError::new_err(format!("{paper} is no paper")));
    };
    if seeds < 2 || jobs == 0 {
        return Err(InputError::new_err("an interval needs at least two seeds, and work at least one thread"));
    }
    let effort = Effort { seeds, sensitivity };
    let total = effort.ticks(found) as f64;
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let tick = || {
        done.fetch_add(1, Ordering::Relaxed);
        !stop.load(Ordering::Relaxed)
    };
    let report = |py: Python<'_>| {
        let fraction = done.load(Ordering::Relaxed) as f64 / total;
        progress.as_ref().map_or(Ok(()), |callback| callback.call1(py, (fraction,)).map(|_| ()))
    };
    let measured = supervise(py, &stop, || on_threads(jobs, || effort.reproduce(found, &tick)), report)?;
    let measured = measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    // Only what was raised stops it.
    let measured = measured.ok_or_else(|| InputError::new_err("stopped"))?;
    Ok((json::rows(&measured).to_string(), tables::document(&measured)))
}

/// The names of the papers, in the order of reports.
#[pyfunction]
pub fn papers() -> Vec<&'static str> {
    Paper::ALL.into_iter().map(Paper::name).collect()
}
