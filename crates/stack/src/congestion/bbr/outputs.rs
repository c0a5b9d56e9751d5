//! The pacing rate and the window that follow from BBR's model.

use super::rate::Rate;
use super::rules::Rules;
use super::{Bbr, CYCLE, MIN_WINDOW, Mode, Pace, Repair};
use crate::congestion::{Ack, Window};
use crate::view::{Packets, SubflowView};
use anabranch_units::{Bandwidth, Duration};

/// 2/ln 2, the least gain that doubles the rate every round trip, in Linux's 256ths.
pub(super) const HIGH_GAIN: f64 = 739.0 / 256.0;
const DRAIN_GAIN: f64 = 88.0 / 256.0;
const WINDOW_GAIN: f64 = 2.0;
/// Pacing stays a little below the bandwidth, so that queues shrink.
pub(super) const PACING_MARGIN: f64 = 0.99;
/// Header bytes of a packet on the wire, about; see [`Pace::Packets`].
pub(super) const PACED_HEADERS: u32 = 60;
/// The window while no round trip was measured (RFC 6928).
pub(super) const INITIAL_WINDOW: u32 = 10;
/// The round trip that the first pacing rate assumes if none was measured.
pub(super) const NOMINAL_RTT: Duration = Duration::from_millis(1);
/// Below this pacing rate Linux does not aggregate segments.
const MIN_OFFLOAD_RATE: Bandwidth = Bandwidth::from_bps(1_200_000);
/// The largest burst of segmentation offload, and the time that it should take.
const MAX_OFFLOAD_BYTES: u64 = 65_535;
const OFFLOAD_TIME: Duration = Duration::from_nanos(1_000_000_000 >> 10);

impl<R: Rules> Bbr<R> {
    pub(super) fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBw { .. } if self.policer.rate().is_some() => 1.0,
            Mode::ProbeBw { phase, .. } => self.rules.pacing_gain(CYCLE[phase]),
            Mode::ProbeRtt { .. } => 1.0,
        }
    }

    fn window_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBw { .. } => self.rules.window_gain(WINDOW_GAIN),
            Mode::ProbeRtt { .. } => 1.0,
        }
    }

    pub(super) fn pace_before_samples(&mut self, window: &mut Window, own: &SubflowView) {
        self.rtt_known = !own.srtt.is_zero();
        let rtt = if self.rtt_known { own.srtt } else { NOMINAL_RTT };
        let rate = Rate::new(u64::from(window.cwnd.floor()), rtt);
        window.pacing_rate = Some(self.pacing(rate, HIGH_GAIN));
        window.paced_overhead = if self.paced == Pace::Packets { PACED_HEADERS } else { 0 };
        self.pace_bursts(window);
    }

    fn pacing(&self, rate: Rate, gain: f64) -> Bandwidth {
        let rate = rate.mul_f64(gain * PACING_MARGIN);
        rate.to_bandwidth(match self.paced {
            Pace::Linux => self.tcp_mss,
            Pace::Packets if self.rules.paces_whole_packets() => self.mss + PACED_HEADERS,
            Pace::Packets => self.mss,
        })
    }

    /// Until the pipe is full the rate only rises.
    pub(super) fn pace(&self, gain: f64, window: &mut Window) {
        let rate = self.pacing(self.rate(), gain);
        if self.full_pipe.reached() || window.pacing_rate.is_none_or(|current| rate > current) {
            window.pacing_rate = Some(rate);
        }
        self.pace_bursts(window);
    }

    fn pace_bursts(&self, window: &mut Window) {
        window.paced_burst = if self.paced == Pace::Linux { offload_burst(window, self.mss) } else { 1 };
    }

    /// Packets of `gain` bandwidth-delay products.
    pub(super) fn pipe(&self, rate: Rate, gain: f64) -> u32 {
        pipe(self.min_rtt, rate, gain)
    }

    /// Room for bursts at both ends, an even number of packets for delayed acknowledgments, and more while probing.
    pub(super) fn budget(&self, packets: u32, window: &Window) -> u32 {
        let packets = packets.saturating_add(3 * offload_burst(window, self.mss));
        let even = packets.saturating_add(packets % 2);
        let probing = matches!(self.mode, Mode::ProbeBw { phase: 0, .. });
        even.saturating_add(if probing { 2 } else { 0 })
    }

    pub(super) fn save_window(&mut self, window: &Window) {
        let reduced = self.repair != Repair::None || matches!(self.mode, Mode::ProbeRtt { .. });
        self.prior_window = if reduced { self.prior_window.max(window.cwnd) } else { window.cwnd };
    }

    pub(super) fn update_window(&mut self, ack: &Ack, window: &mut Window) {
        if ack.delivered > 0 {
            let cwnd = self.next_window(ack, window);
            window.cwnd = Packets::whole(cwnd);
        }
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            window.cwnd = window.cwnd.min(Packets::whole(self.probe_rtt_window()));
        }
    }

    fn next_window(&mut self, ack: &Ack, window: &Window) -> u32 {
        let mut cwnd = window.cwnd.floor().saturating_sub(ack.lost).max(1);
        let conserved = ack.in_flight.saturating_add(ack.delivered);
        if self.repair == Repair::Beginning {
            self.repair = Repair::Conserving;
            self.round_ends_at = self.totals.delivered;
            cwnd = conserved;
        }
        if self.repair == Repair::Conserving {
            return cwnd.max(conserved);
        }
        let rate = self.rate();
        let extra = if self.full_pipe.reached() { self.aggregation.extra(rate) } else { 0 };
        let target = self.budget(self.pipe(rate, self.window_gain()).saturating_add(extra), window);
        let grown = cwnd.saturating_add(ack.delivered);
        if self.full_pipe.reached() {
            cwnd = grown.min(target);
        } else if cwnd < target || self.totals.delivered < u64::from(INITIAL_WINDOW) {
            cwnd = grown;
        }
        self.rules.limit(cwnd.max(MIN_WINDOW))
    }

    /// Packets in flight during ProbeRtt.
    pub(super) fn probe_rtt_window(&self) -> u32 {
        ((self.bandwidth_delay_product() * R::PROBE_RTT_GAIN) as u32).max(MIN_WINDOW)
    }

    /// The bandwidth-delay product in packets, zero while no round trip is known.
    pub(super) fn bandwidth_delay_product(&self) -> f64 {
        self.min_rtt.map_or(0.0, |rtt| self.bandwidth.max().packets_in(rtt))
    }
}

/// Packets of `gain` bandwidth-delay products, or the initial window while no round trip is known.
pub(super) fn pipe(min_rtt: Option<Duration>, rate: Rate, gain: f64) -> u32 {
    min_rtt.map_or(INITIAL_WINDOW, |rtt| (rate.packets_in(rtt) * gain).ceil() as u32)
}

/// Segments that leave in one burst of segmentation offload.
pub(super) fn offload_burst(window: &Window, mss: u32) -> u32 {
    let rate = window.pacing_rate.unwrap_or(Bandwidth::ZERO);
    let bytes = rate.bytes_in(OFFLOAD_TIME).min(MAX_OFFLOAD_BYTES);
    let least = if rate < MIN_OFFLOAD_RATE { 1 } else { 2 };
    (bytes as u32 / mss.max(1)).max(least)
}
