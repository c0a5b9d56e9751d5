//! The pacing rate and the window that follow from the model.

use super::super::MIN_WINDOW;
use super::super::outputs::{INITIAL_WINDOW, NOMINAL_RTT, PACING_MARGIN, offload_burst, pipe};
use super::super::rate::Rate;
use super::{Bbr3, PROBE_RTT_GAIN, Phase};
use crate::congestion::{Ack, Window};
use crate::view::{Packets, SubflowView};

/// 4 ln 2: at this pace the rate doubles every round trip, with a window of two bandwidth-delay products.
pub(super) const STARTUP_GAIN: f64 = 2.77;
const DRAIN_GAIN: f64 = 0.5;
const DOWN_GAIN: f64 = 0.9;
const UP_GAIN: f64 = 1.25;
const WINDOW_GAIN: f64 = 2.0;
const UP_WINDOW_GAIN: f64 = 2.25;
/// Packets of the least burst of segmentation offload, and bursts in flight: one at the sender, one on the way, one at
/// the receiver.
const LEAST_BURST: u32 = 2;
const BURSTS: u32 = 3;

impl Bbr3 {
    pub(super) fn pacing_gain(&self) -> f64 {
        match self.phase {
            Phase::Startup => STARTUP_GAIN,
            Phase::Drain => DRAIN_GAIN,
            Phase::Down => DOWN_GAIN,
            Phase::Up => UP_GAIN,
            Phase::Cruise | Phase::Refill | Phase::ProbeRtt { .. } => 1.0,
        }
    }

    fn window_gain(&self) -> f64 {
        match self.phase {
            Phase::Up => UP_WINDOW_GAIN,
            Phase::ProbeRtt { .. } => PROBE_RTT_GAIN,
            _ => WINDOW_GAIN,
        }
    }

    pub(super) fn pace_before_samples(&mut self, window: &mut Window, own: &SubflowView) {
        self.rtt_known = !own.srtt.is_zero();
        let rtt = if self.rtt_known { own.srtt } else { NOMINAL_RTT };
        let rate = Rate::new(u64::from(window.cwnd.floor()), rtt);
        window.pacing_rate = Some(rate.mul_f64(STARTUP_GAIN * PACING_MARGIN).to_bandwidth(self.mss));
        window.paced_burst = self.burst(window);
    }

    /// Until the pipe is full the rate only rises.
    pub(super) fn pace(&self, gain: f64, window: &mut Window) {
        let rate = self.rate().mul_f64(gain * PACING_MARGIN).to_bandwidth(self.mss);
        if self.filled.reached() || window.pacing_rate.is_none_or(|current| rate > current) {
            window.pacing_rate = Some(rate);
        }
        window.paced_burst = self.burst(window);
    }

    /// Packets of `gain` bandwidth-delay products.
    pub(super) fn pipe(&self, rate: Rate, gain: f64) -> u32 {
        pipe(self.round_trip.least(), rate, gain)
    }

    /// The same with what bursts and delayed acknowledgments need.
    pub(super) fn inflight(&self, rate: Rate, gain: f64, window: &Window) -> u32 {
        self.quantized(self.pipe(rate, gain), window)
    }

    /// Packets that leave together.
    fn burst(&self, window: &Window) -> u32 {
        offload_burst(window, self.mss).max(LEAST_BURST)
    }

    fn quantized(&self, packets: u32, window: &Window) -> u32 {
        let bursts = BURSTS * self.burst(window);
        let probing = if self.phase == Phase::Up { 2 } else { 0 };
        packets.max(bursts).max(MIN_WINDOW).saturating_add(probing)
    }

    /// What should be in flight: the pipe, unless congestion cut the window.
    pub(super) fn target(&self, window: &Window) -> u32 {
        self.pipe(self.rate(), 1.0).min(window.cwnd.floor())
    }

    pub(super) fn probe_rtt_window(&self) -> u32 {
        self.pipe(self.rate(), PROBE_RTT_GAIN).max(MIN_WINDOW)
    }

    pub(super) fn save_window(&mut self, window: &Window) {
        let reduced = self.repairing || matches!(self.phase, Phase::ProbeRtt { .. });
        self.prior_window = if reduced { self.prior_window.max(window.cwnd) } else { window.cwnd };
    }

    pub(super) fn restore_window(&self, window: &mut Window) {
        window.cwnd = window.cwnd.max(self.prior_window);
    }

    pub(super) fn update_window(&mut self, ack: &Ack, window: &mut Window) {
        let extra = self.aggregation.extra(self.rate());
        let most = self.quantized(self.pipe(self.rate(), self.window_gain()).saturating_add(extra), window);
        let cwnd = window.cwnd.floor();
        let grown = cwnd.saturating_add(ack.delivered);
        let cwnd = if self.filled.reached() {
            grown.min(most)
        } else if cwnd < most || self.delivered < u64::from(INITIAL_WINDOW) {
            grown
        } else {
            cwnd
        };
        let mut cwnd = cwnd.max(MIN_WINDOW);
        if matches!(self.phase, Phase::ProbeRtt { .. }) {
            cwnd = cwnd.min(self.probe_rtt_window());
        }
        window.cwnd = Packets::whole(cwnd.min(self.bound()));
    }

    /// The most packets in flight that losses allow in this phase.
    fn bound(&self) -> u32 {
        let long = match self.phase {
            Phase::Startup | Phase::Drain => None,
            Phase::Down | Phase::Refill | Phase::Up => self.bounds.inflight,
            Phase::Cruise | Phase::ProbeRtt { .. } => self.bounds.with_headroom(),
        };
        [long, self.bounds.short_inflight].into_iter().flatten().min().unwrap_or(u32::MAX).max(MIN_WINDOW)
    }
}
