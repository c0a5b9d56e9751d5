//! One run, with the interpreter free for others meanwhile.

use crate::outcome::Outcome;
use crate::own::run::with_run;
use crate::scenario::Scenario;
use crate::worker::ASK_EVERY;
use anabranch_sim::RunOptions;
use pyo3::prelude::*;
use std::time::Instant;

/// Simulates a scenario.
#[pyfunction]
#[pyo3(signature = (scenario, *, seed, record_events, progress))]
pub fn run(
    py: Python<'_>,
    scenario: &Scenario,
    seed: u64,
    record_events: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Outcome> {
    let scenario = &scenario.0;
    let options = RunOptions { seed, record_events };
    let duration = scenario.duration.as_secs_f64();
    let mut asked = Instant::now();
    let mut raised = None;
    let mut simulate = |goes_on: &dyn Fn() -> bool| {
        let mut report = |seconds: f64| {
            if !goes_on() {
                return false;
            }
            if asked.elapsed() < ASK_EVERY {
                return true;
            }
            asked = Instant::now();
            let answer = Python::attach(|py| {
                py.check_signals()?;
                progress.as_ref().map_or(Ok(()), |callback| callback.call1(py, (seconds / duration,)).map(|_| ()))
            });
            raised = answer.err();
            raised.is_none()
        };
        anabranch_sim::run(scenario, &options, &mut report)
    };
    // Algorithms in Python need the interpreter for each decision: to take its lock and to give it back costs more than many of them.
    let outcome =
        if scenario.external().is_empty() { py.detach(|| simulate(&|| true)) } else { with_run(py, seed, simulate)? };
    match raised {
        Some(error) => Err(error),
        None => Ok(Outcome::new(outcome)),
    }
}
