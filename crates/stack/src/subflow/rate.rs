//! Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation-02, Linux `tcp_rate.c`).
//!
//! A sample is what was delivered between the transmission of a packet and its acknowledgment, over the longer of the
//! two intervals in which these packets were sent and acknowledged.
//!
//! Two rates are kept. The delivery rate is Linux's: it counts packets. The arrival rate is ours, for forecasts: it
//! counts bytes, because a short packet is no full one, and in the first flight after a pause it also looks at what
//! followed the first acknowledgment. Before that nothing could arrive for a round trip, which makes the delivery rate
//! of a short response too low.

use super::scoreboard::Newest;
use super::send_state::SendState;
use crate::congestion::RateSample;
use crate::view::{Arrivals, Delivered};
use anabranch_units::{Duration, Instant};

/// Acknowledgments of a flight that arrive within less than this part of the least round trip do not show the rate: the
/// network may have held them back and passed them on together.
const LEAST_FLIGHT_DIVISOR: u64 = 4;

/// The first acknowledgment of a flight.
#[derive(Clone, Copy, Debug)]
struct FirstAck {
    at: Instant,
    /// When the latest packet that it covers was sent.
    sent_at: Instant,
    /// Bytes delivered until then, modulo 2^32.
    delivered_bytes: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct RateSampler {
    delivered: u64,
    delivered_bytes: u32,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// The sender lacks data until this count is delivered; zero if it does not.
    app_limited_until: u64,
    /// The congestion control does not know of that.
    pub(super) hides_app_limited: bool,
    latest: Delivered,
    arrivals: Arrivals,
    /// Packets delivered when the flight began, before which nothing was in flight.
    flight_began_at: u64,
    first_ack: Option<FirstAck>,
}

impl RateSampler {
    /// The latest rate that shows the path.
    pub fn latest(&self) -> Delivered {
        self.latest
    }

    /// The latest arrival rate that shows the path.
    pub fn arrivals(&self) -> Arrivals {
        self.arrivals
    }

    /// The path is another one after an outage: the next sample shows it, whatever it was before. Samples of packets
    /// that are sent from now on begin now, or the outage would be a part of their time.
    pub fn forget_rates(&mut self, now: Instant) {
        (self.latest, self.arrivals) = (Delivered::default(), Arrivals::default());
        (self.first_sent_at, self.delivered_at) = (now, now);
    }

    /// All packets delivered so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// A packet is sent; `idle` if nothing is in flight, so that the flight begins with it. `lost` counts all packets
    /// found lost so far.
    pub fn on_sent(&mut self, now: Instant, idle: bool, in_flight: u32, lost: u64) -> SendState {
        if idle {
            self.first_sent_at = now;
            self.delivered_at = now;
            self.flight_began_at = self.delivered;
            self.first_ack = None;
        }
        SendState {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited_until != 0,
            in_flight: in_flight + 1,
            lost: lost as u32,
            delivered_bytes: self.delivered_bytes,
        }
    }

    /// The sender has room but no data.
    pub fn on_app_limited(&mut self, in_flight: u32) {
        self.app_limited_until = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// An acknowledgment delivered `packets` with `bytes` of payload, the latest of which is `newest`. `lost` counts
    /// all packets found lost so far.
    #[inline]
    pub fn on_delivered(
        &mut self,
        now: Instant,
        packets: u32,
        bytes: u64,
        newest: Option<Newest>,
        min_rtt: Duration,
        lost: u64,
    ) -> RateSample {
        self.delivered += u64::from(packets);
        self.delivered_bytes = self.delivered_bytes.wrapping_add(bytes as u32);
        if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        if packets > 0 {
            self.delivered_at = now;
        }
        let Some(newest) = newest else { return RateSample::default() };
        let sent = newest.send_state;
        self.first_sent_at = newest.sent_at;
        let sending = newest.sent_at.since(sent.first_sent_at);
        let acknowledging = now.since(sent.delivered_at);
        let interval = sending.max(acknowledging);
        let prior = RateSample {
            prior_delivered: sent.delivered,
            app_limited: sent.app_limited && !self.hides_app_limited,
            sent_in_flight: sent.in_flight,
            lost: (lost as u32).wrapping_sub(sent.lost),
            ..Default::default()
        };
        // An interval below the least round trip is an artefact of compressed acknowledgments.
        if min_rtt == Duration::MAX || interval < min_rtt {
            return prior;
        }
        let sample = RateSample { delivered: (self.delivered - sent.delivered) as u32, interval, ..prior };
        self.keep(&sample, sent.app_limited);
        let mut arrivals = Arrivals { bytes: self.delivered_bytes.wrapping_sub(sent.delivered_bytes), interval };
        if sent.delivered == self.flight_began_at {
            arrivals = self.without_first_round_trip(now, &newest, min_rtt, arrivals);
        }
        self.keep_arrivals(arrivals, sent.app_limited);
        sample
    }

    fn keep(&mut self, sample: &RateSample, app_limited: bool) {
        let known = (self.latest.packets, self.latest.interval);
        if replaces((sample.delivered, sample.interval), known, app_limited) {
            self.latest = Delivered { packets: sample.delivered, interval: sample.interval };
        }
    }

    fn keep_arrivals(&mut self, sample: Arrivals, app_limited: bool) {
        let known = (self.arrivals.bytes, self.arrivals.interval);
        if replaces((sample.bytes, sample.interval), known, app_limited) {
            self.arrivals = sample;
        }
    }

    /// For packets of the first flight after a pause: the faster of a sample and of what arrived after the first
    /// acknowledgment of that flight.
    #[cold]
    fn without_first_round_trip(
        &mut self,
        now: Instant,
        newest: &Newest,
        min_rtt: Duration,
        sample: Arrivals,
    ) -> Arrivals {
        let Some(first) = self.first_ack else {
            let delivered_bytes = self.delivered_bytes;
            self.first_ack = Some(FirstAck { at: now, sent_at: newest.sent_at, delivered_bytes });
            return sample;
        };
        // The longer of the intervals in which they were sent and acknowledged, as above.
        let interval = now.since(first.at).max(newest.sent_at.since(first.sent_at));
        let later = Arrivals { bytes: self.delivered_bytes.wrapping_sub(first.delivered_bytes), interval };
        let faster = is_faster((later.bytes, later.interval), (sample.bytes, sample.interval));
        if interval >= min_rtt / LEAST_FLIGHT_DIVISOR && faster { later } else { sample }
    }
}

/// Packets or bytes, and the time in which they arrived.
type Counted = (u32, Duration);

/// Whether one of two rates is larger than the other, without dividing.
fn is_faster((count, time): Counted, (other_count, other_time): Counted) -> bool {
    let product = |count: u32, time: Duration| u128::from(count) * u128::from(time.as_nanos());
    product(count, other_time) > product(other_count, time)
}

/// Whether a sample replaces what was known: a sender without data is slower than its path, unless it is at least as
/// fast as was known.
fn replaces(sample: Counted, known: Counted, app_limited: bool) -> bool {
    sample.0 > 0 && (!app_limited || !is_faster(known, sample))
}
