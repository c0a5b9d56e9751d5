//! A limit of the rate at which a connection sends data, over all its subflows.
//!
//! It is the minimum with each congestion control's own pace, so every control keeps its law: a connection that a cap
//! holds back does not use its windows, and what it does not take is left to others.

use anabranch_units::{Bandwidth, Duration, Instant};

/// A host that is woken late sends at once what it should have sent before, up to what the cap allows in this time. It
/// is a tick of the timers of live hosts, and less than a packet at the rates of video.
const CREDIT: Duration = Duration::from_millis(1);

/// The cap, and when it allows the next packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PaceCap {
    rate: Option<Bandwidth>,
    until: Instant,
}

impl PaceCap {
    pub fn rate(&self) -> Option<Bandwidth> {
        self.rate
    }

    /// Sets or removes the cap. Without one the next packet need not wait.
    pub fn set(&mut self, rate: Option<Bandwidth>) {
        self.rate = rate;
        if rate.is_none() {
            self.until = Instant::ZERO;
        }
    }

    /// Earliest time of the next packet; the beginning of time without a cap.
    #[inline]
    pub fn until(&self) -> Instant {
        self.until
    }

    /// A packet with this payload was sent, new or not, on any subflow.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, payload: u32) {
        if let Some(rate) = self.rate {
            let due = self.until.max(now - CREDIT);
            self.until = due + rate.time_to_send(u64::from(payload));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn the_next_packet_waits_for_the_last_one() {
        let mut cap = PaceCap::default();
        cap.on_sent(at(0), 1_000);
        assert_eq!(cap.until(), Instant::ZERO, "no cap, no waiting");
        cap.set(Some(Bandwidth::from_mbps(8)));
        cap.on_sent(at(10_000), 1_500);
        assert_eq!(cap.until(), at(10_500), "1.5 ms at 8 Mb/s, less the credit of 1 ms");
        cap.on_sent(at(10_500), 1_000);
        assert_eq!(cap.until(), at(11_500));
        cap.on_sent(at(12_000), 1_000);
        assert_eq!(cap.until(), at(12_500), "half a millisecond late: it is made up for");
        cap.set(None);
        assert_eq!(cap.until(), Instant::ZERO);
    }
}
