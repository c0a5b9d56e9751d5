//! Bitrate rules in Python.

use super::context;
use super::part::Part;
use super::playback::{Decision, PlayerEvent, PlayerView, Progress};
use anabranch_events::Note;
use anabranch_media::abr::{self, AbrRule};
use anabranch_units::{Duration, Instant};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// A bitrate rule of an author.
pub(super) struct OwnRule {
    part: Part,
    view: Option<Py<PlayerView>>,
    decide: Py<PyAny>,
    observe: Option<Py<PyAny>>,
    on_progress: Option<Py<PyAny>>,
}

impl std::fmt::Debug for OwnRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.part.fmt(f)
    }
}

impl OwnRule {
    pub fn new(py: Python<'_>, part: Part) -> PyResult<Self> {
        Ok(OwnRule {
            view: None,
            decide: part.method(py, "decide")?,
            observe: part.own_method(py, "observe")?,
            on_progress: part.own_method(py, "on_progress")?,
            part,
        })
    }

    /// Shows the player's state as the first argument of the next call.
    fn show(&mut self, py: Python<'_>, view: &abr::View<'_>) -> PyResult<Py<PlayerView>> {
        self.part.at(py, view.now);
        if let Some(shown) = &self.view {
            shown.borrow_mut(py).update(py, view)?;
            return Ok(shown.clone_ref(py));
        }
        let shown = Py::new(py, PlayerView::new(py, view)?)?;
        self.view = Some(shown.clone_ref(py));
        Ok(shown)
    }

    /// Shows the state and calls a method with it and another argument.
    fn ask<T>(
        &mut self,
        view: &abr::View<'_>,
        call: impl FnOnce(&Self, Python<'_>, Py<PlayerView>) -> PyResult<Option<T>>,
    ) -> Option<T> {
        if !self.part.works() {
            return None;
        }
        let _timer = self.part.decision();
        Python::attach(|py| match self.show(py, view).and_then(|shown| call(self, py, shown)) {
            Ok(answer) => answer,
            Err(error) => {
                self.part.fail(py, error);
                None
            }
        })
    }

    /// Whether a representation exists and is allowed; otherwise the run ends.
    fn allowed(&self, view: &abr::View<'_>, representation: usize, method: &str) -> bool {
        if representation > view.top {
            let message = format!(
                "{method} chose representation {representation}; the highest allowed is {} (`view.top`), counted from 0",
                view.top
            );
            self.part.misbehave(&message);
        }
        representation <= view.top
    }
}

/// A representation and a reason, as a number or as a `Decision`; `None` where the author's answer is `None`.
fn decision(answer: &Bound<'_, PyAny>, method: &str) -> PyResult<Option<abr::Decision>> {
    if answer.is_none() {
        return Ok(None);
    }
    if let Ok(decision) = answer.cast::<Decision>() {
        let Decision { representation, wait, reason } = decision.get();
        let wait = Duration::from_secs_f64(*wait);
        return Ok(Some(abr::Decision { representation: *representation, wait, reason: context::name(reason)? }));
    }
    let representation = answer.extract::<usize>().map_err(|_| {
        let found = answer.repr().map_or_else(|_| "something else".to_string(), |text| text.to_string());
        PyTypeError::new_err(format!("{method} returned {found}; expected the rank of a representation, or a Decision"))
    })?;
    Ok(Some(abr::Decision::now(representation, "")))
}

impl AbrRule for OwnRule {
    fn decide(&mut self, view: &abr::View<'_>) -> abr::Decision {
        const METHOD: &str = "decide()";
        let keep = abr::Decision::now(view.current.min(view.top), "");
        let decided = self.ask(view, |own, py, shown| {
            let read = |answer: Bound<'_, PyAny>| match decision(&answer, METHOD)? {
                Some(decision) => Ok(decision),
                None => Err(PyTypeError::new_err("decide() returned None; expected the rank of a representation")),
            };
            Ok(own.part.call(py, &own.decide, (shown,), read))
        });
        decided.filter(|decision| self.allowed(view, decision.representation, METHOD)).unwrap_or(keep)
    }

    fn observe(&mut self, view: &abr::View<'_>, event: &abr::Event<'_>) {
        if self.observe.is_none() {
            return;
        }
        self.ask(view, |own, py, shown| {
            let Some(method) = &own.observe else { return Ok(None) };
            let event = Py::new(py, PlayerEvent::new(py, event)?)?;
            Ok(own.part.call(py, method, (shown, event), |_| Ok(())))
        });
    }

    fn on_progress(&mut self, view: &abr::View<'_>, progress: &abr::Progress) -> Option<abr::Abandon> {
        const METHOD: &str = "on_progress()";
        self.on_progress.as_ref()?;
        let instead = self.ask(view, |own, py, shown| {
            let Some(method) = &own.on_progress else { return Ok(None) };
            let progress = Py::new(py, Progress(*progress))?;
            Ok(own.part.call(py, method, (shown, progress), |answer| decision(&answer, METHOD)))
        });
        let instead = instead.flatten().filter(|instead| self.allowed(view, instead.representation, METHOD))?;
        Some(abr::Abandon { representation: instead.representation, reason: instead.reason })
    }

    fn take_notes(&mut self, take: &mut dyn FnMut(Instant, Note)) {
        self.part.take_notes(take);
    }
}
