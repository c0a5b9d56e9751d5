//! The rules in which controls upon BBR version 1 may differ; by default they are those of version 1.

use crate::congestion::{Ack, Siblings};
use anabranch_units::Duration;
use std::fmt;

pub(super) trait Rules: fmt::Debug + Send {
    /// Bandwidth-delay products that ProbeRtt keeps in flight, if these are more than the least window.
    const PROBE_RTT_GAIN: f64 = 0.0;

    /// How many windows a send buffer has room for (`bbr_sndbuf_expand`).
    const BUFFERED_WINDOWS: u32 = 3;

    /// Takes an acknowledgment.
    fn observe(&mut self, _ack: &Ack) {}

    /// A round trip ended; the path's own one is `min_rtt`, its bandwidth-delay product `pipe` packets. Returns whether
    /// the pipe was full.
    fn on_round_end(&mut self, _min_rtt: Option<Duration>, _pipe: f64, _siblings: Siblings<'_>) -> bool {
        false
    }

    /// Whether a sample shows that the least round trip still holds.
    fn renews(&self, _least: Duration, _sample: Duration) -> bool {
        false
    }

    /// Whether another subflow is in ProbeRtt, so that this one joins it if its least round trip is old enough.
    fn joins_probe_rtt(&self, _siblings: Siblings<'_>) -> bool {
        false
    }

    /// The pacing gain of a phase of ProbeBw, for which version 1 has `gain`.
    fn pacing_gain(&self, gain: f64) -> f64 {
        gain
    }

    /// The gain of the window in ProbeBw, for which version 1 has `gain`.
    fn window_gain(&self, gain: f64) -> f64 {
        gain
    }

    /// Whether a pace of packets counts their headers in the rate, as links do.
    fn paces_whole_packets(&self) -> bool {
        false
    }

    /// The window, at most what the rules allow.
    fn limit(&self, cwnd: u32) -> u32 {
        cwnd
    }
}

/// The rules of version 1.
#[derive(Debug)]
pub(super) struct Version1;

impl Rules for Version1 {}
