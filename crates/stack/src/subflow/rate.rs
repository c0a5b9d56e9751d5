//! Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation-02, Linux `tcp_rate.c`).
//!
//! A sample is what was delivered between the transmission of a packet and its acknowledgment, over the longer of the two
//! intervals in which these packets were sent and acknowledged.

use super::scoreboard::Newest;
use crate::congestion::RateSample;
use crate::view::Delivered;
use anabranch_units::{Duration, Instant};

/// State when a packet was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendState {
    /// Packets delivered until then.
    delivered: u64,
    /// When the last of them was delivered.
    delivered_at: Instant,
    /// When the first packet of the current flight was sent.
    first_sent_at: Instant,
    /// The sender had no data to send.
    app_limited: bool,
    /// Packets in flight, with this one.
    in_flight: u32,
    /// Packets found lost until then.
    lost: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct RateSampler {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// The sender lacks data until this count is delivered; zero if it does not.
    app_limited_until: u64,
    latest: Delivered,
}

impl RateSampler {
    /// The latest rate that shows the path.
    pub fn latest(&self) -> Delivered {
        self.latest
    }

    /// All packets delivered so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// A packet is sent; `idle` if nothing is in flight, so that the flight begins with it. `lost` counts all packets found lost so far.
    pub fn on_sent(&mut self, now: Instant, idle: bool, in_flight: u32, lost: u64) -> SendState {
        if idle {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        SendState {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited_until != 0,
            in_flight: in_flight + 1,
            lost,
        }
    }

    /// The sender has room but no data.
    pub fn on_app_limited(&mut self, in_flight: u32) {
        self.app_limited_until = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// An acknowledgment delivered `packets`, the latest of which is `newest`. `lost` counts all packets found lost so far.
    pub fn on_delivered(
        &mut self,
        now: Instant,
        packets: u32,
        newest: Option<Newest>,
        min_rtt: Duration,
        lost: u64,
    ) -> RateSample {
        self.delivered += u64::from(packets);
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
            app_limited: sent.app_limited,
            sent_in_flight: sent.in_flight,
            lost: (lost - sent.lost) as u32,
            ..Default::default()
        };
        // An interval below the least round trip is an artefact of compressed acknowledgments.
        if min_rtt == Duration::MAX || interval < min_rtt {
            return prior;
        }
        let sample = RateSample { delivered: (self.delivered - sent.delivered) as u32, interval, ..prior };
        self.keep(&sample);
        sample
    }

    /// A sender without data is slower than its path, unless it is faster than was known.
    fn keep(&mut self, sample: &RateSample) {
        // packets / interval >= packets / interval, without dividing.
        let product = |packets: u32, time: Duration| u128::from(packets) * u128::from(time.as_nanos());
        let faster = product(sample.delivered, self.latest.interval) >= product(self.latest.packets, sample.interval);
        if sample.delivered > 0 && (!sample.app_limited || faster) {
            self.latest = Delivered { packets: sample.delivered, interval: sample.interval };
        }
    }
}
