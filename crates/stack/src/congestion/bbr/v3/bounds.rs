//! What deliveries and losses showed about the path: the bandwidth, and the bounds on it and on the data in flight.

use super::super::MIN_WINDOW;
use super::super::rate::Rate;
use crate::congestion::RateSample;

/// What remains of a bound after a round trip with losses (`BBR.Beta`).
pub(super) const BETA: f64 = 0.7;
/// The share of the packets in flight that may be lost while bandwidth is probed (`BBR.LossThresh`).
const LOSS_SHARE: f64 = 0.02;
/// The part of the long-term bound that is left to others while cruising (`BBR.Headroom`).
const HEADROOM: f64 = 0.15;

/// Whether more packets were lost, since the acknowledged one was sent, than the path may lose at what was in flight
/// then.
pub(super) fn lost_too_many(sample: &RateSample) -> bool {
    f64::from(sample.lost) > f64::from(sample.sent_in_flight) * LOSS_SHARE
}

/// The largest delivery rate of the current cycle of probing and of the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CycleMax {
    current: Rate,
    previous: Rate,
}

impl CycleMax {
    pub(super) fn add(&mut self, rate: Rate) {
        self.current = self.current.max(rate);
    }

    pub(super) fn max(&self) -> Rate {
        self.current.max(self.previous)
    }

    /// A cycle is over.
    pub(super) fn advance(&mut self) {
        self.previous = std::mem::take(&mut self.current);
    }
}

/// What the current round trip showed. Its rounds are apart from those that time the phases: a first loss begins one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signals {
    /// The count of delivered packets that ends the round trip.
    ends_at: u64,
    pub(super) round_start: bool,
    lost: bool,
    rate: Rate,
    /// The most packets that a sample counted.
    pub(super) delivered: u32,
}

impl Signals {
    /// A valid sample arrived; `delivered` counts all packets so far.
    pub(super) fn observe(&mut self, sample: &RateSample, rate: Rate, delivered: u64) {
        self.rate = self.rate.max(rate);
        self.delivered = self.delivered.max(sample.delivered);
        self.round_start = sample.prior_delivered >= self.ends_at;
        if self.round_start {
            self.ends_at = delivered;
        }
    }

    /// A packet was found lost. True if it is the first one of the round trip, which begins with it.
    pub(super) fn lose(&mut self, delivered: u64) -> bool {
        let first = !std::mem::replace(&mut self.lost, true);
        if first {
            self.ends_at = delivered;
        }
        first
    }

    /// Whether the round trip that ended had losses; the next one has none yet.
    pub(super) fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.lost)
    }

    /// A round trip that began with this sample knows only this sample.
    pub(super) fn begin_with(&mut self, sample: &RateSample, rate: Rate) {
        (self.rate, self.delivered) = (rate, sample.delivered);
    }

    /// What was seen belongs to an earlier phase.
    pub(super) fn reset(&mut self) {
        (self.lost, self.rate, self.delivered) = (false, Rate::ZERO, 0);
    }
}

/// The bounds; `None` is no bound.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bounds {
    /// The most packets in flight of which the path did not lose too many when it was probed (`inflight_longterm`).
    pub(super) inflight: Option<u32>,
    /// The bandwidth and the packets in flight that are safe until the next probe (`bw_shortterm`,
    /// `inflight_shortterm`).
    pub(super) short_rate: Option<Rate>,
    pub(super) short_inflight: Option<u32>,
}

impl Bounds {
    /// A round trip had losses although nothing was probed: a step towards what it delivered.
    pub(super) fn lower(&mut self, signals: &Signals, bandwidth: Rate, window: u32) {
        let rate = self.short_rate.unwrap_or(bandwidth).mul_f64(BETA);
        let inflight = f64::from(self.short_inflight.unwrap_or(window)) * BETA;
        self.short_rate = Some(rate.max(signals.rate));
        self.short_inflight = Some((inflight as u32).max(signals.delivered));
    }

    /// The bandwidth is about to be probed: short-term bounds would hide it.
    pub(super) fn forget_short(&mut self) {
        (self.short_rate, self.short_inflight) = (None, None);
    }

    /// The long-term bound without the part that is left to others.
    pub(super) fn with_headroom(&self) -> Option<u32> {
        self.inflight.map(|bound| {
            let headroom = (HEADROOM * f64::from(bound)).max(1.0) as u32;
            bound.saturating_sub(headroom).max(MIN_WINDOW)
        })
    }

    /// The wider of each pair.
    pub(super) fn widened(&self, other: &Bounds) -> Bounds {
        fn wider<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.zip(other).map(|(one, other)| one.max(other))
        }
        Bounds {
            inflight: wider(self.inflight, other.inflight),
            short_rate: wider(self.short_rate, other.short_rate),
            short_inflight: wider(self.short_inflight, other.short_inflight),
        }
    }
}
