//! The kernel as judge, with the interpreter free for others meanwhile.

use crate::outcome::Outcome;
use crate::worker::supervise;
use crate::{InputError, LiveError};
use anabranch_equivalence::campaign::{self, Found};
use anabranch_equivalence::cells::{self, Cell, Client};
use anabranch_equivalence::observation::Browser;
use anabranch_equivalence::question::Part;
use anabranch_equivalence::report::Report;
use anabranch_observation::Metrics;
use anabranch_testbed::ServerKind;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The parts: letter and title.
#[pyfunction]
pub fn judge_parts() -> Vec<(&'static str, &'static str)> {
    Part::ALL.iter().map(|part| (part.letter(), part.title())).collect()
}

fn chosen(letters: &[String]) -> PyResult<Vec<Part>> {
    let find = |letter: &String| Part::ALL.into_iter().find(|part| part.letter() == letter);
    let unknown = |letter: &String| {
        let known = Part::ALL.map(Part::letter).join(", ");
        InputError::new_err(format!("part `{letter}`: expected one of {known}"))
    };
    letters.iter().map(|letter| find(letter).ok_or_else(|| unknown(letter))).collect()
}

/// The cells of some parts; with a text only those with it in their names.
fn wanted(parts: &[String], quick: bool, text: Option<&str>) -> PyResult<Vec<Cell>> {
    let mut cells = cells::all(&chosen(parts)?, quick);
    if let Some(text) = text {
        cells.retain(|cell| cell.name.contains(text));
        if cells.is_empty() {
            return Err(InputError::new_err(format!("no cell of these parts has `{text}` in its name")));
        }
    }
    Ok(cells)
}

/// Whether some of these cells are for a browser.
#[pyfunction]
#[pyo3(signature = (parts, *, quick, only_cells))]
pub fn judge_browses(parts: Vec<String>, quick: bool, only_cells: Option<&str>) -> PyResult<bool> {
    Ok(wanted(&parts, quick, only_cells)?.iter().any(|cell| cell.client == Client::Browser))
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

    fn play(&self, cell: &Cell, seed: u64) -> Result<Metrics, String> {
        let server = if cell.server == ServerKind::Kernel { "kernel" } else { "anabranch" };
        let stop = self.stop.clone();
        let played = Python::attach(|py| -> PyResult<Metrics> {
            let wanted = move |_: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| !stop.load(Ordering::Relaxed);
            let wanted = PyCFunction::new_closure(py, Some(c"wanted"), None, wanted)?;
            let played = self.play.call1(py, (&cell.scenario, server, seed, wanted))?;
            let outcome: PyRef<'_, Outcome> = played.bind(py).extract()?;
            Ok(outcome.metrics().clone())
        });
        played.map_err(|error| error.to_string())
    }
}

/// Runs the cells of some parts; returns the report as JSON and as Markdown. `browser` is the folder with the video and who plays it; the
/// cells for it are left out where it is absent. Of the cells only those with `only_cells` in their names. With `earlier`, the JSON of an
/// earlier report, its live runs are judged instead of new ones.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
#[pyo3(signature = (parts, *, quick, only_cells, at_once, browser, earlier, progress))]
pub fn judge(
    py: Python<'_>,
    parts: Vec<String>,
    quick: bool,
    only_cells: Option<&str>,
    at_once: usize,
    browser: Option<(PathBuf, Py<PyAny>)>,
    earlier: Option<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    let mut cells = wanted(&parts, quick, only_cells)?;
    let missing = anabranch_live::requirements::missing(&[]);
    if earlier.is_none() && !missing.is_empty() {
        return Err(LiveError::new_err(missing.join("\n")));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let browser = browser.map(|(directory, play)| PythonBrowser { directory, play, stop: stop.clone() });
    if browser.is_none() {
        cells.retain(|cell| cell.client == Client::Model);
    }
    let browser = browser.as_ref().map(|browser| browser as &dyn Browser);
    let found = match earlier {
        Some(earlier) => {
            let found = py.detach(|| campaign::again(cells, &earlier, browser.map(Browser::directory)));
            found.map_err(|error| InputError::new_err(format!("no report of validate --json: {error}")))?
        }
        None => run(py, cells, at_once, browser, &stop, progress.as_ref())?,
    };
    let report = Report::of(found);
    Ok((report.to_json(), report.to_markdown()))
}

/// Runs a campaign and passes on what it reports: runs that are over, of how many, and the name of the latest.
fn run(
    py: Python<'_>,
    cells: Vec<Cell>,
    at_once: usize,
    browser: Option<&dyn Browser>,
    stop: &AtomicBool,
    progress: Option<&Py<PyAny>>,
) -> PyResult<Vec<Found>> {
    let latest = Mutex::new(None);
    let latest = || latest.lock().unwrap_or_else(PoisonError::into_inner);
    let note = |done: usize, of: usize, cell: &str| *latest() = Some((done, of, cell.to_owned()));
    let report = |py: Python<'_>| match (progress, latest().take()) {
        (Some(callback), Some(latest)) => callback.call1(py, latest).map(|_| ()),
        _ => Ok(()),
    };
    // At an exception, what is running is taken down first.
    let found = supervise(py, stop, || campaign::run(cells, at_once, browser, stop, &note), report)?;
    found.map_err(|_| LiveError::new_err("the campaign broke off"))
}
