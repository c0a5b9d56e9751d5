//! One run, with the interpreter free for others meanwhile.

use crate::InputError;
use crate::outcome::Outcome;
use crate::own::run::with_run;
use crate::scenario::Scenario;
use anabranch_sim::{CaptureError, Captures, RunOptions, Tap};
use pyo3::prelude::*;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often the interpreter is asked for, to report and to see whether the user interrupts. People notice more than a
/// tenth of a second; the interpreter's lock, taken this rarely, costs nothing.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Simulates a scenario.
#[pyfunction]
#[pyo3(signature = (scenario, *, seed, record_events, progress, capture_dir=None, account=false))]
pub fn run(
    py: Python<'_>,
    scenario: &Scenario,
    seed: u64,
    record_events: bool,
    progress: Option<Py<PyAny>>,
    capture_dir: Option<PathBuf>,
    account: bool,
) -> PyResult<Outcome> {
    let scenario = &scenario.0;
    let options = RunOptions { seed, record_events, account, ..RunOptions::default() };
    let duration = scenario.duration.as_secs_f64();
    let mut asked = Instant::now();
    let mut raised = None;
    let mut captures = capture_dir.map(|directory| captures(scenario, &directory)).transpose()?;
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
        let tap = captures.as_mut().map(|captures| captures as &mut dyn Tap);
        anabranch_sim::run_with(scenario, &options, &mut report, tap)
    };
    // Algorithms in Python need the interpreter for each decision: to take its lock and to give it back costs more than
    // many of them.
    let outcome =
        if scenario.external().is_empty() { py.detach(|| simulate(&|| true)) } else { with_run(py, seed, simulate)? };
    if let Some(error) = raised {
        return Err(error);
    }
    captures.map(Captures::finish).transpose().map_err(|error| match error {
        CaptureError::Io(error) => PyErr::from(error),
        CaptureError::Encode(_) => InputError::new_err(error.to_string()),
    })?;
    Ok(Outcome::new(outcome))
}

/// Captures of both ends, in files of this directory.
fn captures(scenario: &anabranch_scenario::Scenario, directory: &Path) -> io::Result<Captures<BufWriter<File>>> {
    let file = |name: &str| File::create(directory.join(name)).map(BufWriter::new);
    Captures::new(scenario, Some(file("client.pcapng")?), Some(file("server.pcapng")?))
}
