//! The equivalence test with the kernel, with the interpreter free for others meanwhile.

use crate::outcome::Outcome;
use crate::worker::supervise;
use crate::{InputError, LiveError};
use anabranch_equivalence::campaign::{self, Campaign};
use anabranch_equivalence::kernel::Kernel;
use anabranch_equivalence::measurement::Browser;
use anabranch_equivalence::question::Part;
use anabranch_equivalence::report::CampaignReport;
use anabranch_equivalence::test_cases::{self, Client, TestCase};
use anabranch_observation::Metrics;
use anabranch_testbed::ServerKind;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The parts: letter and title.
#[pyfunction]
pub fn validation_parts() -> Vec<(&'static str, &'static str)> {
    Part::ALL.iter().map(|part| (part.letter(), part.title())).collect()
}

fn chosen(letters: &[String]) -> PyResult<Vec<Part>> {
    let find = |letter: &String| Part::find(letter);
    let unknown = |letter: &String| {
        let known = Part::ALL.map(Part::letter).join(", ");
        let coupled = Part::Coupled.letter();
        InputError::new_err(format!("part `{letter}`: expected one of {known}, {coupled}"))
    };
    letters.iter().map(|letter| find(letter).ok_or_else(|| unknown(letter))).collect()
}

/// The test cases of some parts; with a text only those with it in their names.
fn wanted(parts: &[String], quick: bool, text: Option<&str>) -> PyResult<Vec<TestCase>> {
    let mut cases = test_cases::all(&chosen(parts)?, quick);
    if let Some(text) = text {
        cases.retain(|case| case.name.contains(text));
        if cases.is_empty() {
            return Err(InputError::new_err(format!("no test case of these parts has `{text}` in its name")));
        }
    }
    Ok(cases)
}

/// Whether some of these test cases are for a browser.
#[pyfunction]
#[pyo3(signature = (parts, *, quick, only_cases))]
pub fn validation_browses(parts: Vec<String>, quick: bool, only_cases: Option<&str>) -> PyResult<bool> {
    Ok(wanted(&parts, quick, only_cases)?.iter().any(|case| case.client == Client::Browser))
}

/// A browser that Python drives.
struct PythonBrowser {
    directory: PathBuf,
    play: Py<PyAny>,
    stop: Arc<AtomicBool>,
}

impl Browser for PythonBrowser {
    fn directory(&self) -> &Path {
        &self.directory
    }

    fn play(&self, case: &TestCase, seed: u64) -> Result<Metrics, String> {
        let server = if case.server == ServerKind::Kernel { "kernel" } else { "anabranch" };
        let stop = self.stop.clone();
        let played = Python::attach(|py| -> PyResult<Metrics> {
            let wanted = move |_: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| !stop.load(Ordering::Relaxed);
            let wanted = PyCFunction::new_closure(py, Some(c"wanted"), None, wanted)?;
            let played = self.play.call1(py, (&case.scenario, server, seed, wanted))?;
            let outcome: PyRef<'_, Outcome> = played.bind(py).extract()?;
            Ok(outcome.metrics().clone())
        });
        played.map_err(|error| error.to_string())
    }
}

/// Runs the test cases of some parts; returns the report as JSON and as Markdown. `browser` is the folder with the video and
/// the function that plays it; without it, its test cases are left out. Only test cases with `only_cases` in their names are
/// run. With `earlier`, the JSON of an earlier report, its live runs are compared instead of new ones.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
#[pyo3(signature = (parts, *, quick, only_cases, at_once, browser, earlier, progress))]
pub fn validate(
    py: Python<'_>,
    parts: Vec<String>,
    quick: bool,
    only_cases: Option<&str>,
    at_once: usize,
    browser: Option<(PathBuf, Py<PyAny>)>,
    earlier: Option<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    let mut cases = wanted(&parts, quick, only_cases)?;
    let missing = anabranch_live::requirements::missing(&[]);
    if earlier.is_none() && !missing.is_empty() {
        return Err(LiveError::new_err(missing.join("\n")));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let browser = browser.map(|(directory, play)| PythonBrowser { directory, play, stop: stop.clone() });
    if browser.is_none() {
        cases.retain(|case| case.client == Client::Model);
    }
    let browser = browser.as_ref().map(|browser| browser as &dyn Browser);
    let campaign = match earlier {
        Some(earlier) => {
            let found = py.detach(|| campaign::again(cases, &earlier, browser.map(Browser::directory)));
            found.map_err(|error| InputError::new_err(format!("no report of validate --json: {error}")))?
        }
        None => run(py, cases, at_once, browser, &stop, progress.as_ref())?,
    };
    let report = CampaignReport::of(campaign);
    Ok((report.to_json(), report.to_markdown()))
}

/// Runs a campaign and passes on what it reports: runs that are over, of how many, and the name of the latest.
fn run(
    py: Python<'_>,
    cases: Vec<TestCase>,
    at_once: usize,
    browser: Option<&dyn Browser>,
    stop: &AtomicBool,
    progress: Option<&Py<PyAny>>,
) -> PyResult<Campaign> {
    let kernel = Kernel::running().map_err(LiveError::new_err)?;
    let latest = Mutex::new(None);
    let latest = || latest.lock().unwrap_or_else(PoisonError::into_inner);
    let note = |done: usize, of: usize, case: &str| *latest() = Some((done, of, case.to_owned()));
    let report = |py: Python<'_>| match (progress, latest().take()) {
        (Some(callback), Some(latest)) => callback.call1(py, latest).map(|_| ()),
        _ => Ok(()),
    };
    // At an exception, what is running is taken down first.
    let found = supervise(py, stop, || campaign::run(cases, kernel, at_once, browser, stop, &note), report)?;
    found.map_err(|_| LiveError::new_err("the campaign broke off"))
}
