//! The state of connections and subflows as an author's methods see it: read-only objects that are made once and get
//! new content before each call.

use super::context::seconds;
use super::part::tuple_of;
use anabranch_stack::scheduler::{self, SubflowSet};
use anabranch_stack::view::{ConnectionView, Phase, SubflowView};
use anabranch_units::Bandwidth;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// One subflow.
#[pyclass(module = "anabranch._core")]
pub struct Subflow {
    pub(super) view: SubflowView,
    #[pyo3(get)]
    pub(super) position: usize,
}

/// A rate in bit/s; infinite where nothing limits it.
pub(super) fn bps(rate: Bandwidth) -> f64 {
    if rate == Bandwidth::INFINITE { f64::INFINITY } else { rate.as_bps() as f64 }
}

#[pymethods]
impl Subflow {
    #[getter]
    fn id(&self) -> u16 {
        self.view.id.0
    }
    #[getter]
    fn path(&self) -> u16 {
        self.view.path.0
    }
    #[getter]
    fn established(&self) -> bool {
        self.view.established
    }
    #[getter]
    fn backup(&self) -> bool {
        self.view.backup
    }
    #[getter]
    fn metered(&self) -> bool {
        self.view.metered
    }
    #[getter]
    fn potentially_failed(&self) -> bool {
        self.view.potentially_failed
    }
    #[getter]
    fn allowed(&self) -> bool {
        self.view.allowed
    }
    #[getter]
    fn phase(&self) -> &'static str {
        match self.view.phase {
            Phase::Open => "open",
            Phase::Disorder => "disorder",
            Phase::Recovery => "recovery",
            Phase::Loss => "loss",
        }
    }
    #[getter]
    fn mss(&self) -> u32 {
        self.view.mss
    }
    #[getter]
    fn cwnd(&self) -> f64 {
        self.view.cwnd.as_f64()
    }
    #[getter]
    fn ssthresh(&self) -> f64 {
        self.view.ssthresh.as_f64()
    }
    #[getter]
    fn in_flight(&self) -> u32 {
        self.view.in_flight
    }
    #[getter]
    fn unrepaired(&self) -> u32 {
        self.view.unrepaired
    }
    #[getter]
    fn oldest_sent(&self) -> Option<f64> {
        self.view.oldest_sent.map(seconds)
    }
    #[getter]
    fn last_ack_at(&self) -> f64 {
        seconds(self.view.last_ack_at)
    }
    #[getter]
    fn queued(&self) -> u64 {
        self.view.queued
    }
    #[getter]
    fn outstanding(&self) -> u64 {
        self.view.outstanding
    }
    #[getter]
    fn memory(&self) -> u64 {
        self.view.memory
    }
    #[getter]
    fn send_buffer(&self) -> u64 {
        self.view.send_buffer
    }
    #[getter]
    fn srtt(&self) -> f64 {
        self.view.srtt.as_secs_f64()
    }
    #[getter]
    fn rttvar(&self) -> f64 {
        self.view.rttvar.as_secs_f64()
    }
    #[getter]
    fn latest_rtt(&self) -> f64 {
        self.view.latest_rtt.as_secs_f64()
    }
    #[getter]
    fn min_rtt(&self) -> f64 {
        self.view.min_rtt.as_secs_f64()
    }
    #[getter]
    fn seeks_min_rtt(&self) -> bool {
        self.view.seeks_min_rtt
    }
    #[getter]
    fn acked_since_loss(&self) -> u64 {
        self.view.acked_since_loss
    }
    #[getter]
    fn acked_between_losses(&self) -> u64 {
        self.view.acked_between_losses
    }
    #[getter]
    fn room(&self) -> u32 {
        self.view.room()
    }
    #[getter]
    fn rate(&self) -> f64 {
        self.view.rate()
    }
    #[getter]
    fn delivery_rate(&self) -> Option<f64> {
        self.view.delivery_rate()
    }
    #[getter]
    fn arrival_rate(&self) -> Option<f64> {
        self.view.arrival_rate()
    }
    #[getter]
    fn pacing_rate(&self) -> f64 {
        bps(self.view.pacing_rate())
    }
    #[getter]
    fn usable(&self) -> bool {
        self.view.usable()
    }
    #[getter]
    fn works(&self) -> bool {
        self.view.works()
    }
    #[getter]
    fn in_slow_start(&self) -> bool {
        self.view.in_slow_start()
    }
    #[getter]
    fn settled_window(&self) -> f64 {
        self.view.settled_window()
    }
    fn __repr__(&self) -> String {
        let v = &self.view;
        let srtt = v.srtt.as_secs_f64() * 1e3;
        format!(
            "<Subflow {} of path {}: srtt {srtt:.1} ms, {} of {:.1} packets in flight>",
            v.id.0,
            v.path.0,
            v.in_flight,
            v.cwnd.as_f64()
        )
    }
}

/// The objects of a connection's subflows, in their order.
#[derive(Default)]
pub(super) struct Subflows {
    objects: Vec<Py<Subflow>>,
    ids: Vec<u16>,
    all: Option<Py<PyTuple>>,
}

impl Subflows {
    /// New content; new objects only where a subflow opened or closed.
    pub fn update(&mut self, py: Python<'_>, views: &[SubflowView]) -> PyResult<()> {
        if self.ids.len() != views.len() || self.ids.iter().zip(views).any(|(id, view)| *id != view.id.0) {
            self.ids = views.iter().map(|view| view.id.0).collect();
            let made = views.iter().enumerate().map(|(position, view)| Py::new(py, Subflow { view: *view, position }));
            self.objects = made.collect::<PyResult<_>>()?;
            self.all = Some(tuple_of(py, self.objects.iter().map(|object| object.clone_ref(py)))?);
            return Ok(());
        }
        for (object, view) in self.objects.iter().zip(views) {
            object.borrow_mut(py).view = *view;
        }
        Ok(())
    }

    pub fn all(&self, py: Python<'_>) -> Py<PyTuple> {
        self.all.as_ref().map_or_else(|| PyTuple::empty(py).unbind(), |all| all.clone_ref(py))
    }

    pub fn get(&self, py: Python<'_>, position: usize) -> Option<Py<Subflow>> {
        self.objects.get(position).map(|object| object.clone_ref(py))
    }

    pub fn views(&self, py: Python<'_>) -> Vec<SubflowView> {
        self.objects.iter().map(|object| object.borrow(py).view).collect()
    }

    /// Those at these positions.
    pub fn some(&self, py: Python<'_>, positions: &[usize]) -> PyResult<Py<PyTuple>> {
        tuple_of(py, positions.iter().map(|position| self.objects[*position].clone_ref(py)))
    }
}

/// A packet in flight.
#[pyclass(frozen, module = "anabranch._core", get_all)]
pub struct InFlight {
    subflow: usize,
    offset: u64,
    bytes: u32,
    sent_at: f64,
    lost: bool,
}

/// What a scheduler decides on.
#[pyclass(module = "anabranch._core")]
#[derive(Default)]
pub struct SchedulerView {
    pub(super) connection: ConnectionView,
    pub(super) subflows: Subflows,
    pub(super) candidates: SubflowSet,
    /// The tuple of the candidates, and which they were.
    listed: Option<(SubflowSet, Py<PyTuple>)>,
    pub(super) flight: Vec<scheduler::InFlight>,
}

impl SchedulerView {
    pub(super) fn update(&mut self, py: Python<'_>, view: &scheduler::View<'_>) -> PyResult<()> {
        let opened_or_closed = self.subflows.ids.len() != view.subflows.len();
        let first = self.subflows.objects.first().map(Py::as_ptr);
        self.connection = *view.connection;
        self.subflows.update(py, view.subflows)?;
        // New objects make the tuple of the old ones useless.
        if opened_or_closed || first != self.subflows.objects.first().map(Py::as_ptr) {
            self.listed = None;
        }
        self.candidates = view.candidates;
        self.flight.clear();
        self.flight.extend_from_slice(view.flight);
        Ok(())
    }

    /// The answer of a method of the engine's own view.
    fn ask<T>(&self, py: Python<'_>, question: impl FnOnce(&scheduler::View<'_>) -> T) -> T {
        let subflows = self.subflows.views(py);
        question(&scheduler::View {
            connection: &self.connection,
            subflows: &subflows,
            candidates: self.candidates,
            flight: &self.flight,
        })
    }
}

#[pymethods]
impl SchedulerView {
    #[getter]
    fn now(&self) -> f64 {
        seconds(self.connection.now)
    }
    #[getter]
    fn subflows(&self, py: Python<'_>) -> Py<PyTuple> {
        self.subflows.all(py)
    }
    #[getter]
    fn candidates(&mut self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        if let Some((set, tuple)) = &self.listed
            && *set == self.candidates
        {
            return Ok(tuple.clone_ref(py));
        }
        let positions: Vec<usize> = self.candidates.iter().collect();
        let tuple = self.subflows.some(py, &positions)?;
        self.listed = Some((self.candidates, tuple.clone_ref(py)));
        Ok(tuple)
    }
    #[getter]
    fn contenders(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let positions: Vec<usize> = self.ask(py, |view| view.contenders().map(|(position, _)| position).collect());
        self.subflows.some(py, &positions)
    }
    #[getter]
    fn fastest_candidate(&self, py: Python<'_>) -> Option<Py<Subflow>> {
        self.subflows.get(py, self.ask(py, |view| view.fastest_candidate())?)
    }
    #[getter]
    fn fastest_contender(&self, py: Python<'_>) -> Option<Py<Subflow>> {
        self.subflows.get(py, self.ask(py, |view| view.fastest_contender())?)
    }
    #[getter]
    fn flight(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let packets = self.flight.iter().map(|packet| {
            let scheduler::InFlight { subflow, offset, bytes, sent_at, lost } = *packet;
            Py::new(py, InFlight { subflow, offset, bytes, sent_at: seconds(sent_at), lost })
        });
        let packets = packets.collect::<PyResult<Vec<_>>>()?;
        tuple_of(py, packets.into_iter())
    }
    #[getter]
    fn unacked(&self) -> u64 {
        self.connection.unacked
    }
    #[getter]
    fn next(&self) -> u64 {
        self.connection.next
    }
    #[getter]
    fn unsent(&self) -> u64 {
        self.connection.unsent
    }
    #[getter]
    fn window_end(&self) -> u64 {
        self.connection.window_end
    }
    #[getter]
    fn window_space(&self) -> u64 {
        self.connection.window_space()
    }
    #[getter]
    fn new_bytes(&self) -> u64 {
        self.connection.unsent.min(self.connection.window_space())
    }
    #[getter]
    fn opportunistic_retransmissions(&self) -> u64 {
        self.connection.opportunistic_retransmissions
    }
    #[getter]
    fn consumption_rate(&self) -> Option<f64> {
        self.connection.hints.consumption_rate.map(bps)
    }
    #[getter]
    fn buffer(&self) -> Option<f64> {
        self.connection.buffer().map(|buffer| buffer.as_secs_f64())
    }
    #[getter]
    fn message_end(&self) -> Option<u64> {
        self.connection.hints.message_end
    }
}
