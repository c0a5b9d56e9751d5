//! When packets that fit the window may be sent: the pacing rate, and bursts for segmentation offload.

use super::Sender;
use crate::view::{Pace, Phase};
use anabranch_units::{Bandwidth, Duration, Instant};

/// A burst of segmentation offload is what can be sent in this time at the pacing rate; the sender counts as busy for
/// the same time after its last packet (Linux: 2^-10 s and 1 ms).
const BURST_TIME: Duration = Duration::from_millis(1);
/// Packets of the smallest burst (Linux `tcp_min_tso_segs`).
const LEAST_BURST: u64 = 2;

/// A burst that segmentation offload splits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    /// When it is sent.
    began: Instant,
    /// Its packets, and those not yet sent.
    packets: u32,
    left: u32,
}

/// New data waits for a burst.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deferral {
    /// Until when the sender counts as busy.
    until: Instant,
    /// Bytes for which there is room.
    room: u64,
}

/// The packets of a burst at a pace. The pace changes less often than it is asked for, and the divisions take long.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BurstSize {
    pace: Pace,
    full: u32,
    packets: u64,
}

impl Burst {
    /// A packet is sent now. Returns whether it is one of the burst, but not the first.
    pub fn take_one(&mut self, now: Instant) -> bool {
        let goes_on = self.began == now && 0 < self.left && self.left < self.packets;
        self.left = self.left.saturating_sub(1);
        goes_on
    }
}

/// What is left of a burst that the pace lets out as a whole.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacedBurst {
    began: Instant,
    left: u32,
}

impl PacedBurst {
    fn goes_on(self, now: Instant) -> bool {
        self.left > 0 && self.began == now
    }

    /// The rest after a packet that was sent now, of this burst or as the first one of another of `size` packets.
    pub fn after_packet(self, now: Instant, size: u32) -> Self {
        let left = if self.goes_on(now) { self.left } else { size };
        PacedBurst { began: now, left: left.saturating_sub(1) }
    }
}

impl Sender {
    /// The pacing rate since the last acknowledgment.
    pub fn pace(&self) -> Pace {
        Pace { fixed: self.window.pacing_rate, ..self.pace }
    }

    /// Twice the window per round trip while it doubles, 1.2 times later (Linux `tcp_update_pacing_rate`).
    pub(super) fn update_pace(&mut self) {
        let cwnd = self.window.cwnd.as_f64();
        let doubling = cwnd < self.window.ssthresh.as_f64() / 2.0;
        let factor = if doubling { 2.0 } else { 1.2 };
        let packets = factor * cwnd.max(f64::from(self.board.packets_out()));
        self.pace = Pace { fixed: None, packets, round_trip: self.rtt.srtt() };
    }

    /// With pacing: earliest time of the next burst.
    pub fn paced_until(&self) -> Instant {
        self.window.paced_until
    }

    /// Whether the next packet belongs to the burst that leaves now.
    pub fn continues_burst(&self, now: Instant) -> bool {
        self.paced.goes_on(now)
    }

    /// A packet with `len` bytes of payload takes its time of a pacing rate. It stands by itself to keep the path of
    /// packets without a pace short.
    #[inline(never)]
    pub(super) fn take_pace(&mut self, now: Instant, rate: Bandwidth, len: u32) {
        // Linux takes the bytes of the packet's payload (`tcp_update_skb_after_send`).
        let bytes = u64::from(len + self.window.paced_overhead);
        self.window.paced_until = self.window.paced_until.max(now) + rate.time_to_send(bytes);
        self.paced = self.paced.after_packet(now, self.window.paced_burst);
    }

    /// Whether new data should wait for the next acknowledgment, so that it is sent as one burst for segmentation
    /// offload (Linux's `tcp_tso_should_defer`): as long as that one is near, the sender has been busy until now, and
    /// there is room for less than a burst and for less than a third of the window. `full` is the payload of a full
    /// segment, `unsent` the waiting bytes of which a burst may be made. A burst that has begun is sent as a whole.
    #[inline(always)]
    pub fn defers_for_burst(&mut self, now: Instant, unsent: u64, full: u32) -> bool {
        if !self.options.defers_for_burst || self.burst.is_some_and(|burst| burst.began == now && burst.left > 0) {
            return false;
        }
        let cwnd = self.window.cwnd.floor();
        let room = cwnd.saturating_sub(self.board.in_flight());
        // With less room than the smallest burst needs, no size of the burst changes what follows.
        let burst = if u64::from(room) < LEAST_BURST { LEAST_BURST } else { self.burst_packets(full.max(1)) };
        let full = u64::from(full.max(1));
        let calm = matches!(self.phase, Phase::Open | Phase::Disorder);
        let busy = now.since(self.last_sent_at) <= BURST_TIME;
        let little = u64::from(room) < burst && 3 * room < cwnd && unsent > u64::from(room) * full;
        // The first one in flight is acknowledged soon: within a burst's time, which Linux 6.18 uses in addition to
        // half a round trip.
        let near = BURST_TIME.min(self.rtt.srtt() / 2);
        let soon = || self.board.front().is_some_and(|front| front.sent_at + self.rtt.srtt() <= now + near);
        let defers = calm && busy && little && soon();
        let most = u64::from(room).min(burst);
        let packets = if unsent < most * full { unsent.div_ceil(full) } else { most } as u32;
        self.burst = (!defers).then_some(Burst { began: now, packets, left: packets });
        self.deferring |= defers;
        self.deferral = Deferral { until: self.last_sent_at + BURST_TIME, room: u64::from(room) * full };
        defers
    }

    /// Whether new data still waits, after [`Sender::defers_for_burst`] said so and nothing changed but the time and
    /// the waiting bytes: the sender is still busy, and there is more than the room for it. The acknowledgment has only
    /// come nearer.
    #[inline]
    pub fn still_defers(&mut self, now: Instant, unsent: u64) -> bool {
        let defers = now <= self.deferral.until && unsent > self.deferral.room;
        self.deferring |= defers;
        defers
    }

    /// Packets of a burst at the present pace, of `full` bytes of payload each.
    fn burst_packets(&mut self, full: u32) -> u64 {
        let pace = self.pace();
        if self.burst_size.pace != pace || self.burst_size.full != full {
            let packets = (pace.rate(full).bytes_in(BURST_TIME) / u64::from(full)).max(LEAST_BURST);
            self.burst_size = BurstSize { pace, full, packets };
        }
        self.burst_size.packets
    }

    /// Whether the last packet sent was the last one of several in a burst.
    pub fn burst_ended(&self) -> bool {
        self.burst.is_some_and(|burst| burst.left == 0 && burst.packets > 1)
    }

    /// Whether the last packet sent ended a record: one that is left to segmentation offload as a whole.
    pub fn record_ended(&self) -> bool {
        self.burst.is_none_or(|burst| burst.left == 0)
    }

    /// Whether new data waited for a burst since the last one: it waits for the window.
    pub fn is_deferring(&self) -> bool {
        self.deferring
    }
}
