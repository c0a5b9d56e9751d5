//! The kernel as judge, with the interpreter free for others meanwhile.

use crate::{InputError, LiveError};
use anabranch_judge::campaign;
use anabranch_judge::cells::{self, Part};
use anabranch_judge::report::Report;
use pyo3::prelude::*;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the campaign asks for the interpreter, to report and to see whether the user interrupts.
const ASK_EVERY: Duration = Duration::from_millis(100);

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

/// Runs the cells of some parts; returns the report as JSON and as Markdown.
#[pyfunction]
#[pyo3(signature = (parts, *, quick, at_once, progress))]
pub fn judge(
    py: Python<'_>,
    parts: Vec<String>,
    quick: bool,
    at_once: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    let cells = cells::all(&chosen(&parts)?, quick);
    let missing = anabranch_live::requirements::missing(&[]);
    if !missing.is_empty() {
        return Err(LiveError::new_err(missing.join("\n")));
    }
    let (stop, latest) = (AtomicBool::new(false), Mutex::new(None));
    let report = |done: usize, of: usize, cell: &str| {
        *latest.lock().unwrap_or_else(PoisonError::into_inner) = Some((done, of, cell.to_owned()));
    };
    let ask = || {
        let news = latest.lock().unwrap_or_else(PoisonError::into_inner).take();
        Python::attach(|py| {
            py.check_signals()?;
            match (&progress, news) {
                (Some(callback), Some(news)) => callback.call1(py, news).map(|_| ()),
                _ => Ok(()),
            }
        })
    };
    let (found, raised) = py.detach(|| {
        std::thread::scope(|scope| {
            let campaign = scope.spawn(|| campaign::run(cells, at_once, &stop, &report));
            let mut raised = None;
            while !campaign.is_finished() {
                std::thread::sleep(ASK_EVERY);
                if raised.is_none()
                    && let Err(error) = ask()
                {
                    // What is running is taken down first.
                    stop.store(true, Ordering::Relaxed);
                    raised = Some(error);
                }
            }
            (campaign.join(), raised)
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let found = found.map_err(|_| LiveError::new_err("the campaign broke off"))?;
    let report = Report::of(found);
    Ok((report.to_json(), report.to_markdown()))
}
