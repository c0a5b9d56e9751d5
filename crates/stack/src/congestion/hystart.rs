//! HyStart: leaves slow start before it overflows the queue.
//!
//! ```text
//! from 16 packets on, per acknowledgment:
//!   train   acknowledgments at most 2 ms apart since the round began last longer than (base + d)/2   (paced: base + d)
//!   delay   the least round trip of more than 8 samples in the round > base + clamp(base/8, 4 ms, 16 ms)
//! either:   ssthresh = w
//! ```
//! `w` window (packets), `base` least round trip (s), `d` what segmentation offload may delay an acknowledgment: the
//! time of four of its bursts at the pacing rate, at most 1 ms. Ha, Rhee, "Taming the Elephants: New TCP Slow Start",
//! Computer Networks 2011; thresholds as in Linux's `tcp_cubic.c` 2.3. This is the classic algorithm, not HyStart++
//! (RFC 9406).
//!
//! After it has fired it is off until a retransmission timeout.

use super::rounds::Rounds;
use super::{Ack, Window};
use anabranch_units::{Bandwidth, Duration, Instant};

/// The window in packets from which it watches.
const LOW_WINDOW: u32 = 16;
/// The largest distance of two acknowledgments of one train.
const TRAIN_SPACING: Duration = Duration::from_millis(2);
/// Samples before the round's least round trip is trusted.
const MIN_SAMPLES: u32 = 8;
const LEAST_RISE: Duration = Duration::from_millis(4);
const MOST_RISE: Duration = Duration::from_millis(16);
/// Bytes of the largest burst of segmentation offload.
const OFFLOAD_BURST: u64 = 65_536;
const MOST_ACK_DELAY: Duration = Duration::from_millis(1);

/// Measurements of the current round.
#[derive(Debug, Default)]
pub(super) struct HyStart {
    rounds: Rounds,
    round_start: Instant,
    last_ack: Instant,
    least: Option<Duration>,
    samples: u32,
    fired: bool,
}

impl HyStart {
    /// A retransmission timeout: slow start begins again.
    pub(super) fn reset(&mut self) {
        *self = HyStart { rounds: self.rounds, ..HyStart::default() };
    }

    /// Whether slow start shall end with this sample of the round trip. `base` is the least one; `pacing` is the rate
    /// at which the sender would or does pace.
    pub(super) fn ends_slow_start(
        &mut self,
        ack: &Ack,
        rtt: Duration,
        base: Duration,
        pacing: Bandwidth,
        window: &Window,
    ) -> bool {
        if self.fired || !window.in_slow_start() {
            return false;
        }
        if self.rounds.ended_by(ack) {
            self.round_start = ack.now;
            self.last_ack = ack.now;
            self.least = None;
            self.samples = 0;
        }
        if window.cwnd.floor() < LOW_WINDOW {
            return false;
        }
        let long_train = self.train_is_long(ack.now, base, pacing, window.pacing_rate.is_some());
        self.fired = long_train | self.delay_rose(rtt, base);
        self.fired
    }

    fn train_is_long(&mut self, now: Instant, base: Duration, pacing: Bandwidth, paced: bool) -> bool {
        if now.since(self.last_ack) > TRAIN_SPACING {
            return false;
        }
        self.last_ack = now;
        let threshold = base + ack_delay(pacing);
        now.since(self.round_start) > if paced { threshold } else { threshold / 2 }
    }

    fn delay_rose(&mut self, rtt: Duration, base: Duration) -> bool {
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        self.least = Some(least);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        least > base + (base / 8).clamp(LEAST_RISE, MOST_RISE)
    }
}

/// How long segmentation offload may hold an acknowledgment back; zero while no rate is known.
fn ack_delay(pacing: Bandwidth) -> Duration {
    if pacing == Bandwidth::ZERO { Duration::ZERO } else { pacing.time_to_send(4 * OFFLOAD_BURST).min(MOST_ACK_DELAY) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ack;
    use super::*;

    const BASE: f64 = 0.05;

    /// Feeds acknowledgments of one round, `spacing` seconds apart, each with a round trip; returns when it fired,
    /// counted from 1.
    fn fires_after(packets: u32, spacing: f64, paced: bool, rtt: impl Fn(u64) -> f64) -> Option<u64> {
        let pacing_rate = paced.then(|| Bandwidth::from_mbps(10));
        let window = Window { pacing_rate, ..Window::initial(packets) };
        let mut hystart = HyStart::default();
        (1..=200).find(|&i| {
            let ack = Ack { acked_offset: 1, sent_offset: 1, ..ack(i as f64 * spacing, 1, rtt(i)) };
            let (rtt, base) = (Duration::from_secs_f64(rtt(i)), Duration::from_secs_f64(BASE));
            hystart.ends_slow_start(&ack, rtt, base, Bandwidth::from_mbps(10), &window)
        })
    }

    #[test]
    fn a_train_longer_than_half_the_least_round_trip_ends_slow_start() {
        // The first acknowledgment begins the round; (50 + 1 ms)/2 = 25.5 ms are exceeded 26 ms later.
        assert_eq!(fires_after(20, 0.001, false, |_| BASE), Some(27));
        assert_eq!(fires_after(20, 0.001, true, |_| BASE), Some(53));
    }

    #[test]
    fn a_gap_ends_the_train() {
        assert_eq!(fires_after(20, 0.0021, false, |_| BASE), None);
    }

    #[test]
    fn nine_samples_beyond_the_rise_end_slow_start() {
        // 50/8 = 6.25 ms lie between the bounds.
        assert_eq!(fires_after(20, 0.003, false, |_| BASE + 0.0063), Some(9));
        assert_eq!(fires_after(20, 0.003, false, |_| BASE + 0.0062), None);
        assert_eq!(fires_after(20, 0.003, false, |i| if i == 5 { BASE } else { BASE + 0.02 }), None);
    }

    #[test]
    fn nothing_ends_slow_start_below_sixteen_packets() {
        assert_eq!(fires_after(15, 0.001, false, |_| BASE + 0.1), None);
        assert_eq!(fires_after(16, 0.001, false, |_| BASE + 0.1), Some(9));
    }

    #[test]
    fn it_fires_once_until_a_timeout() {
        let window = Window::initial(20);
        let mut hystart = HyStart::default();
        let fires = |hystart: &mut HyStart, from: u64| {
            (from..from + 50).any(|i| {
                let ack = Ack { acked_offset: 1, sent_offset: 1, ..ack(i as f64 * 0.003, 1, 0.1) };
                let (rtt, base) = (Duration::from_millis(100), Duration::from_millis(50));
                hystart.ends_slow_start(&ack, rtt, base, Bandwidth::ZERO, &window)
            })
        };
        assert!(fires(&mut hystart, 0));
        assert!(!fires(&mut hystart, 50));
        hystart.reset();
        assert!(fires(&mut hystart, 100));
    }
}
