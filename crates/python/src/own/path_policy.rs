//! Path policies in Python.

use super::context::{instant, seconds};
use super::part::Part;
use super::views::{Subflow, Subflows};
use anabranch_events::Note;
use anabranch_stack::path_policy::PathPolicy;
use anabranch_stack::scheduler::SubflowSet;
use anabranch_stack::view::SubflowView;
use anabranch_units::{Duration, Instant};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// A policy that asks to be called a nanosecond later, again and again, would nearly stop the time; it is called this
/// much later.
const LEAST_PAUSE: Duration = Duration::from_micros(1);

/// A path policy of an author.
pub(super) struct OwnPathPolicy {
    part: Part,
    subflows: Subflows,
    decide: Py<PyAny>,
    poll_timeout: Py<PyAny>,
    signals_peer: bool,
    next: Option<Instant>,
}

impl std::fmt::Debug for OwnPathPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.part.fmt(f)
    }
}

impl OwnPathPolicy {
    pub fn new(py: Python<'_>, part: Part) -> PyResult<Self> {
        let mut policy = OwnPathPolicy {
            subflows: Subflows::default(),
            decide: part.method(py, "decide")?,
            poll_timeout: part.method(py, "poll_timeout")?,
            signals_peer: part.flag(py, "signals_peer")?,
            next: None,
            part,
        };
        policy.next = policy.ask_timeout(py);
        Ok(policy)
    }

    fn ask_timeout(&self, py: Python<'_>) -> Option<Instant> {
        let read = |answer: Bound<'_, PyAny>| answer.extract::<Option<f64>>();
        self.part.call(py, &self.poll_timeout, (), read)?.map(instant)
    }
}

fn allowed(answer: &Bound<'_, PyAny>, views: &[SubflowView]) -> PyResult<SubflowSet> {
    if answer.is_none() {
        return Ok(SubflowSet::below(views.len()));
    }
    let wrong = |found: &Bound<'_, PyAny>| {
        let found = found.repr().map_or_else(|_| "something else".to_string(), |text| text.to_string());
        PyTypeError::new_err(format!(
            "decide() returned {found}; expected subflows, such as a list of them, or None for all"
        ))
    };
    let mut set = SubflowSet::EMPTY;
    for item in answer.try_iter().map_err(|_| wrong(answer))? {
        let item = item?;
        let id = item.cast::<Subflow>().map_err(|_| wrong(&item))?.borrow().view.id;
        if let Some(position) = views.iter().position(|view| view.id == id) {
            set.insert(position);
        }
    }
    Ok(set)
}

impl PathPolicy for OwnPathPolicy {
    fn decide(&mut self, now: Instant, subflows: &[SubflowView]) -> SubflowSet {
        let everything = SubflowSet::below(subflows.len());
        if !self.part.works() {
            self.next = None;
            return everything;
        }
        let _timer = self.part.decision();
        let decided = Python::attach(|py| {
            self.part.at(py, now);
            if let Err(error) = self.subflows.update(py, subflows) {
                self.part.fail(py, error);
                return None;
            }
            let all = self.subflows.all(py);
            let set = self.part.call(py, &self.decide, (all,), |answer| allowed(&answer, subflows))?;
            let next = self.ask_timeout(py);
            if let Some(next) = next.filter(|next| *next <= now) {
                self.part.misbehave(&format!(
                    "poll_timeout() returned {}, which is not later than now; expected a later time, such as \
                     self.ctx.after(0.1), or None",
                    seconds(next)
                ));
            }
            self.next = next.map(|next| next.max(now + LEAST_PAUSE));
            Some(set)
        });
        match decided {
            Some(set) if !set.is_empty() => set,
            Some(_) => {
                self.part.misbehave("decide() allows no subflow; at least one must carry the data");
                everything
            }
            None => everything,
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    fn signals_peer(&self) -> bool {
        self.signals_peer
    }

    fn take_notes(&mut self, take: &mut dyn FnMut(Note)) {
        self.part.take_notes(|_, note| take(note));
    }
}
