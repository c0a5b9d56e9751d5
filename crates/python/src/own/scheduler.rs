//! Schedulers in Python.

use super::context::{instant, seconds};
use super::part::Part;
use super::views::{SchedulerView, Subflow};
use anabranch_events::{Note, SendKind};
use anabranch_stack::scheduler::{Decision, FlightList, Scheduler, Sent, Services, Silence, Trigger, View};
use anabranch_stack::view::SubflowView;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// Give new bytes to a subflow.
#[pyclass(frozen, module = "anabranch._core", get_all)]
pub struct Send {
    subflow: Py<Subflow>,
    bytes: u64,
}

#[pymethods]
impl Send {
    #[new]
    fn new(subflow: Py<Subflow>, bytes: u64) -> Self {
        Send { subflow, bytes }
    }
}

/// Send bytes again that were sent on another subflow.
#[pyclass(frozen, module = "anabranch._core", get_all)]
pub struct Duplicate {
    subflow: Py<Subflow>,
    offset: u64,
    bytes: u64,
}

#[pymethods]
impl Duplicate {
    #[new]
    fn new(subflow: Py<Subflow>, offset: u64, bytes: u64) -> Self {
        Duplicate { subflow, offset, bytes }
    }
}

/// Send nothing now.
#[pyclass(frozen, module = "anabranch._core", get_all)]
pub struct Wait {
    until: Option<f64>,
}

#[pymethods]
impl Wait {
    #[new]
    #[pyo3(signature = (until=None))]
    fn new(until: Option<f64>) -> Self {
        Wait { until }
    }
}

/// A packet that leaves.
#[pyclass(frozen, module = "anabranch._core", get_all)]
pub struct SentPacket {
    at: f64,
    offset: u64,
    bytes: u32,
    kind: &'static str,
}

/// A scheduler of an author.
pub(super) struct OwnScheduler {
    part: Part,
    view: Py<SchedulerView>,
    decide: Py<PyAny>,
    on_sent: Option<Py<PyAny>>,
    silence: Option<Py<PyAny>>,
    duplicates: bool,
    watches_flight: bool,
}

impl std::fmt::Debug for OwnScheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.part.fmt(f)
    }
}

impl OwnScheduler {
    pub fn new(py: Python<'_>, part: Part) -> PyResult<Self> {
        Ok(OwnScheduler {
            view: Py::new(py, SchedulerView::default())?,
            decide: part.method(py, "decide")?,
            on_sent: part.own_method(py, "on_sent")?,
            silence: part.own_method(py, "silence")?,
            duplicates: part.flag(py, "duplicates")?,
            watches_flight: part.flag(py, "watches_flight")?,
            part,
        })
    }

    fn show(&mut self, py: Python<'_>, view: &View<'_>) -> PyResult<()> {
        self.part.at(py, view.connection.now);
        self.view.borrow_mut(py).update(py, view)
    }

    /// What the engine would refuse ends the run: it is a fault of the algorithm, and everything after it would be its
    /// consequence.
    fn checked(&self, view: &View<'_>, trigger: Trigger, decision: Decision) -> Option<Decision> {
        let (subflow, bytes) = match decision {
            Decision::Wait { .. } => return Some(decision),
            Decision::Send { subflow, bytes } | Decision::Duplicate { subflow, bytes, .. } => (subflow, bytes),
        };
        let candidates = || view.candidates.iter().map(|at| at.to_string()).collect::<Vec<_>>().join(", ");
        if !view.candidates.contains(subflow) {
            self.part.misbehave(&format!(
                "decide() chose the subflow at position {subflow}, which cannot take data; `view.candidates` are those at {}",
                candidates()
            ));
            return None;
        }
        if bytes == 0 {
            self.part.misbehave("decide() chose to send 0 bytes; return None to wait");
            return None;
        }
        if matches!(decision, Decision::Duplicate { .. }) && trigger == Trigger::Reinjection {
            self.part.misbehave("decide() returned Duplicate for a reinjection; return a subflow, Send or None");
            return None;
        }
        if let Decision::Duplicate { offset, bytes, .. } = decision {
            let (from, to, end) = (view.connection.unacked, view.connection.next, offset.saturating_add(bytes));
            if offset < from || end > to {
                self.part
                    .misbehave(&format!("decide() duplicates bytes {offset} to {end}; in flight are {from} to {to}"));
                return None;
            }
        }
        Some(decision)
    }
}

/// The position of a subflow that was named; of one that is closed none.
fn position_of(py: Python<'_>, subflow: &Py<Subflow>, view: &View<'_>) -> usize {
    let id = subflow.borrow(py).view.id;
    view.position_of(id).unwrap_or(usize::MAX)
}

fn decision(answer: &Bound<'_, PyAny>, view: &View<'_>) -> PyResult<Decision> {
    let py = answer.py();
    if let Ok(subflow) = answer.cast::<Subflow>() {
        let subflow = subflow.borrow();
        let position = view.position_of(subflow.view.id).unwrap_or(usize::MAX);
        return Ok(Decision::Send { subflow: position, bytes: u64::from(subflow.view.mss) });
    }
    if answer.is_none() {
        return Ok(Decision::Wait { until: None });
    }
    if let Ok(send) = answer.cast::<Send>() {
        return Ok(Decision::Send { subflow: position_of(py, &send.get().subflow, view), bytes: send.get().bytes });
    }
    if let Ok(wait) = answer.cast::<Wait>() {
        return Ok(Decision::Wait { until: wait.get().until.map(instant) });
    }
    if let Ok(duplicate) = answer.cast::<Duplicate>() {
        let Duplicate { subflow, offset, bytes } = duplicate.get();
        return Ok(Decision::Duplicate { subflow: position_of(py, subflow, view), offset: *offset, bytes: *bytes });
    }
    let message = format!(
        "decide() returned {}; expected a subflow of `view.candidates`, Send, Duplicate, Wait or None",
        answer.repr()?
    );
    Err(PyTypeError::new_err(message))
}

fn silence_of(answer: &Bound<'_, PyAny>, view: &View<'_>) -> PyResult<Silence> {
    if answer.is_none() {
        return Ok(Silence::default());
    }
    if let Ok(subflow) = answer.cast::<Subflow>() {
        return Ok(Silence { give_up: view.position_of(subflow.borrow().view.id), until: None });
    }
    if let Ok(wait) = answer.cast::<Wait>() {
        return Ok(Silence { give_up: None, until: wait.get().until.map(instant) });
    }
    let message = format!("silence() returned {}; expected a subflow to give up, Wait or None", answer.repr()?);
    Err(PyTypeError::new_err(message))
}

fn kind_of(kind: SendKind) -> &'static str {
    match kind {
        SendKind::New => "new",
        SendKind::Retransmission => "retransmission",
        SendKind::TailLossProbe => "tail-loss-probe",
        SendKind::Reinjection => "reinjection",
        SendKind::Duplicate => "duplicate",
    }
}

impl Scheduler for OwnScheduler {
    fn decide(&mut self, view: &View<'_>, trigger: Trigger) -> Decision {
        const WAIT: Decision = Decision::Wait { until: None };
        // Authors are promised a candidate, as the trait has it.
        if !self.part.works() || view.candidates.is_empty() {
            return WAIT;
        }
        let _timer = self.part.decision();
        let decided = Python::attach(|py| {
            if let Err(error) = self.show(py, view) {
                self.part.fail(py, error);
                return None;
            }
            let word = match trigger {
                Trigger::NewData => pyo3::intern!(py, "new-data"),
                Trigger::Reinjection => pyo3::intern!(py, "reinjection"),
            };
            self.part.call(py, &self.decide, (&self.view, word), |answer| decision(&answer, view))
        });
        decided.and_then(|decision| self.checked(view, trigger, decision)).unwrap_or(WAIT)
    }

    fn services(&self) -> Services {
        Services {
            duplicates: self.duplicates,
            flight: if self.watches_flight { FlightList::WithoutNewData } else { FlightList::Never },
            silence: self.silence.is_some(),
            sending: self.on_sent.is_some(),
            explains: false,
        }
    }

    fn on_sent(&mut self, sent: &Sent, subflow: &SubflowView) {
        if !self.part.works() {
            return;
        }
        Python::attach(|py| {
            self.part.at(py, sent.at);
            let Some(method) = &self.on_sent else { return };
            let made = Py::new(
                py,
                SentPacket { at: seconds(sent.at), offset: sent.offset, bytes: sent.bytes, kind: kind_of(sent.kind) },
            );
            let shown = Py::new(py, Subflow { view: *subflow, position: usize::MAX });
            match made.and_then(|packet| Ok((packet, shown?))) {
                Ok(arguments) => drop(self.part.call(py, method, arguments, |_| Ok(()))),
                Err(error) => self.part.fail(py, error),
            }
        });
    }

    fn silence(&mut self, view: &View<'_>) -> Silence {
        if !self.part.works() {
            return Silence::default();
        }
        Python::attach(|py| {
            if let Err(error) = self.show(py, view) {
                self.part.fail(py, error);
                return None;
            }
            let method = self.silence.as_ref()?;
            self.part.call(py, method, (&self.view,), |answer| silence_of(&answer, view))
        })
        .unwrap_or_default()
    }

    fn take_notes(&mut self, take: &mut dyn FnMut(Note)) {
        self.part.take_notes(|_, note| take(note));
    }
}
