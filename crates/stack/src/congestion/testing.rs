//! Shorthands of the tests.

use super::{Ack, REGISTRY, RateSample, Siblings, Window};
use super::{CongestionControl, LossCause};
use crate::options::{Options, Value};
use crate::view::{Packets, SubflowView};
use anabranch_units::{Duration, Instant};

/// Payload bytes of a segment in the tests.
pub(super) const MSS: u32 = 1448;

/// An open subflow with that window in packets and round trip in seconds, beyond slow start.
pub(super) fn view(id: u16, cwnd: f64, rtt: f64) -> SubflowView {
    let idle = SubflowView::idle(id, MSS, Packets::from_f64(cwnd), Duration::from_secs_f64(rtt));
    SubflowView { ssthresh: Packets::whole(2), in_flight: cwnd as u32, ..idle }
}

/// A window in congestion avoidance.
pub(super) fn window(cwnd: f64) -> Window {
    Window { cwnd: Packets::from_f64(cwnd), ssthresh: Packets::whole(1), ..Window::initial(0) }
}

/// An acknowledgment at `now` seconds of `delivered` packets, after a round trip in seconds, that lets the window grow.
/// It does not end a round: offsets are zero.
pub(super) fn ack(now: f64, delivered: u32, rtt: f64) -> Ack {
    Ack {
        now: at(now),
        delivered,
        total_delivered: u64::from(delivered),
        rtt: Some(Duration::from_secs_f64(rtt)),
        may_grow: true,
        prior_in_flight: 10,
        in_flight: 10,
        lost: 0,
        acked_offset: 0,
        sent_offset: 0,
        rate: RateSample::default(),
    }
}

/// Seconds since the beginning.
pub(super) fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

/// A registered controller with options.
pub(super) fn create(name: &str, options: &[(&str, Value)]) -> Box<dyn CongestionControl> {
    let options = Options::new(options.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect());
    (REGISTRY.find(name).expect("a registered name").create)(&options, 1).expect("valid options")
}

/// The growth of the window, in packets, by an acknowledgment of one packet.
pub(super) fn growth(cc: &mut dyn CongestionControl, cwnd: f64, all: &[SubflowView], own: usize) -> f64 {
    let mut window = window(cwnd);
    cc.on_ack(&ack(0.0, 1, all[own].srtt.as_secs_f64()), &mut window, Siblings::new(all, own));
    window.cwnd.as_f64() - cwnd
}

/// The threshold, in packets, that a loss at this window sets.
pub(super) fn threshold(
    cc: &mut dyn CongestionControl,
    cwnd: f64,
    cause: LossCause,
    all: &[SubflowView],
    own: usize,
) -> f64 {
    let mut window = window(cwnd);
    cc.on_congestion(at(0.0), cause, &mut window, Siblings::new(all, own));
    window.ssthresh.as_f64()
}

/// Asserts that two numbers differ by at most a relative tolerance.
#[track_caller]
pub(super) fn assert_near(value: f64, expected: f64, tolerance: f64) {
    let error = (value / expected - 1.0).abs();
    assert!(error <= tolerance, "{value} is not within {tolerance} of {expected} (off by {error:.4})");
}
