//! What congestion controls in Python see and set.

use super::context::seconds;
use super::part::tuple_of;
use super::views::{Subflow, Subflows, bps};
use anabranch_stack::congestion;
use anabranch_stack::view::Packets;
use anabranch_units::Bandwidth;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The window that a control sets.
#[pyclass(module = "anabranch._core")]
pub struct Window(pub(super) congestion::Window);

fn packets(value: f64, what: &str) -> PyResult<Packets> {
    match value {
        x if x.is_nan() || x < 0.0 => {
            Err(PyValueError::new_err(format!("{what} = {value}: expected a number of packets")))
        }
        f64::INFINITY => Ok(Packets::INFINITE),
        x => Ok(Packets::from_f64(x)),
    }
}

#[pymethods]
impl Window {
    #[getter]
    fn cwnd(&self) -> f64 {
        self.0.cwnd.as_f64()
    }
    #[setter]
    fn set_cwnd(&mut self, value: f64) -> PyResult<()> {
        self.0.cwnd = packets(value, "cwnd")?;
        Ok(())
    }
    #[getter]
    fn ssthresh(&self) -> f64 {
        self.0.ssthresh.as_f64()
    }
    #[setter]
    fn set_ssthresh(&mut self, value: f64) -> PyResult<()> {
        self.0.ssthresh = packets(value, "ssthresh")?;
        Ok(())
    }
    #[getter]
    fn pacing_rate(&self) -> Option<f64> {
        self.0.pacing_rate.map(bps)
    }
    #[setter]
    fn set_pacing_rate(&mut self, value: Option<f64>) -> PyResult<()> {
        self.0.pacing_rate = match value {
            None => None,
            Some(rate) if rate > 0.0 && rate.is_finite() => Some(Bandwidth::from_bps(rate as u64)),
            Some(rate) => {
                return Err(PyValueError::new_err(format!("pacing_rate = {rate}: expected bit/s above zero, or None")));
            }
        };
        Ok(())
    }
    #[getter]
    fn in_slow_start(&self) -> bool {
        self.0.in_slow_start()
    }
    /// Increases the window by one packet per acknowledged packet, up to the threshold; returns how many acknowledged
    /// packets are left.
    fn slow_start(&mut self, acked: u32) -> f64 {
        self.0.slow_start(acked)
    }
    /// Increases the window by one packet per window of acknowledged packets, in whole packets as in Linux.
    fn grow_per_window(&mut self, acked: f64) {
        self.0.grow_per_window(acked);
    }
    /// Increases the window by so many packets; a negative number decreases it, to one packet at the least.
    fn grow(&mut self, increment: f64) {
        self.0.grow(increment);
    }
    /// Sets the threshold after a loss, to at least 2 packets.
    fn reduce_to(&mut self, packets: f64) {
        self.0.set_ssthresh(packets);
    }
    fn __repr__(&self) -> String {
        format!("<Window of {:.2} packets, ssthresh {:.2}>", self.cwnd(), self.ssthresh())
    }
}

/// An acknowledgment of new data.
#[pyclass(module = "anabranch._core")]
pub struct Ack(pub(super) congestion::Ack);

#[pymethods]
impl Ack {
    #[getter]
    fn now(&self) -> f64 {
        seconds(self.0.now)
    }
    #[getter]
    fn delivered(&self) -> u32 {
        self.0.delivered
    }
    #[getter]
    fn total_delivered(&self) -> u64 {
        self.0.total_delivered
    }
    #[getter]
    fn rtt(&self) -> Option<f64> {
        self.0.rtt.map(|rtt| rtt.as_secs_f64())
    }
    #[getter]
    fn may_grow(&self) -> bool {
        self.0.may_grow
    }
    #[getter]
    fn prior_in_flight(&self) -> u32 {
        self.0.prior_in_flight
    }
    #[getter]
    fn in_flight(&self) -> u32 {
        self.0.in_flight
    }
    #[getter]
    fn lost(&self) -> u32 {
        self.0.lost
    }
    #[getter]
    fn acked_offset(&self) -> u64 {
        self.0.acked_offset
    }
    #[getter]
    fn sent_offset(&self) -> u64 {
        self.0.sent_offset
    }
    #[getter]
    fn rate_delivered(&self) -> u32 {
        self.0.rate.delivered
    }
    #[getter]
    fn rate_interval(&self) -> f64 {
        self.0.rate.interval.as_secs_f64()
    }
    #[getter]
    fn rate_prior_delivered(&self) -> u64 {
        self.0.rate.prior_delivered
    }
    #[getter]
    fn rate_app_limited(&self) -> bool {
        self.0.rate.app_limited
    }
}

/// The connection's subflows as the control of one of them sees them.
#[pyclass(module = "anabranch._core")]
#[derive(Default)]
pub struct Siblings {
    pub(super) subflows: Subflows,
    pub(super) own: usize,
}

#[pymethods]
impl Siblings {
    #[getter]
    fn all(&self, py: Python<'_>) -> Py<PyTuple> {
        self.subflows.all(py)
    }
    #[getter]
    fn own(&self, py: Python<'_>) -> Option<Py<Subflow>> {
        self.subflows.get(py, self.own)
    }
    #[getter]
    fn coupled(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let views = self.subflows.views(py);
        let Some(own) = views.get(self.own) else { return tuple_of(py, Vec::<Py<Subflow>>::new().into_iter()) };
        let own = own.id;
        // The engine's own rule, by the ids of the subflows that it counts.
        let counted: Vec<_> = congestion::Siblings::new(&views, self.own).coupled().map(|view| view.id).collect();
        debug_assert!(counted.contains(&own));
        let positions = views.iter().enumerate().filter(|(_, view)| counted.contains(&view.id)).map(|(at, _)| at);
        self.subflows.some(py, &positions.collect::<Vec<_>>())
    }
}
