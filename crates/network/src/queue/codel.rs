//! CoDel: keeps the waiting time of packets near a target by dropping from the head.
//!
//! When every packet of the last `interval` has waited longer than `target`, it drops one; and as long as that goes on,
//! the n-th further drop follows the one before it after `interval / sqrt(n)`, so that the senders' rate falls
//! linearly. RFC 8289; the pseudocode of its section 5 decides here packet by packet instead of in a loop over the
//! queue.
//! Nothing is dropped while at most one full packet waits. Arrivals beyond the limit are dropped at the tail.

use super::{Backlog, Departure, Queue, QueueLimit, QueueParameters, QueuedPacket};
use crate::error::ConfigError;
use anabranch_units::{Bandwidth, Duration, Instant};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Controlled delay (RFC 8289).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "CoDel")]
pub struct CoDelConfig {
    /// The capacity: a size such as "64 kB", or "100 packets".
    pub limit: QueueLimit,
    /// The acceptable queueing delay.
    #[serde(default = "target")]
    pub target: Duration,
    /// How long the delay may exceed the target before a packet is dropped: about the longest usual round trip.
    #[serde(default = "interval")]
    pub interval: Duration,
}

/// RFC 8289, section 4.3.
fn target() -> Duration {
    Duration::from_millis(5)
}

/// RFC 8289, section 4.2.
fn interval() -> Duration {
    Duration::from_millis(100)
}

impl QueueParameters for CoDelConfig {
    const SUMMARY: &'static str = "Drops packets from the head while all of them have waited too long for an interval.";
    const SOURCE: &'static str = "RFC 8289";

    fn with_limit(limit: QueueLimit) -> Self {
        CoDelConfig { limit, target: target(), interval: interval() }
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.target.is_zero() {
            return Err(ConfigError::new("queue.target", "must be positive"));
        }
        if self.interval <= self.target {
            let problem = format!("{} must exceed queue.target, {}", self.interval, self.target);
            return Err(ConfigError::new("queue.interval", problem));
        }
        Ok(())
    }

    fn build(&self, mtu: u32, _: Bandwidth, _: ChaCha8Rng) -> Box<dyn Queue> {
        Box::new(CoDel::new(*self, mtu))
    }
}

/// State of the control loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The waiting time is acceptable, or not yet too long for an interval.
    Passing,
    /// The first packet was dropped; the next one passes without a check.
    Entering,
    /// Drops are due at `next_drop`.
    Dropping,
    /// A packet was just dropped; if the next one has waited too long as well, a further drop is scheduled.
    Dropped,
}

struct CoDel {
    config: CoDelConfig,
    max_packet: u64,
    state: State,
    /// When the waiting time will have been too long for an interval.
    first_above: Option<Instant>,
    next_drop: Instant,
    /// Drops since the control loop entered its dropping state; it sets the drop rate.
    count: u32,
    /// `count` when the dropping state was entered.
    last_count: u32,
}

impl CoDel {
    fn new(config: CoDelConfig, mtu: u32) -> Self {
        CoDel {
            config,
            max_packet: u64::from(mtu),
            state: State::Passing,
            first_above: None,
            next_drop: Instant::ZERO,
            count: 0,
            last_count: 0,
        }
    }

    /// The RFC's `dodequeue`: whether the waiting time has been too long for an interval.
    fn may_drop(&mut self, now: Instant, packet: QueuedPacket, behind: Backlog) -> bool {
        if now.since(packet.entered) < self.config.target || behind.bytes <= self.max_packet {
            self.first_above = None;
            return false;
        }
        let first_above = *self.first_above.get_or_insert(now + self.config.interval);
        now >= first_above
    }

    fn enter(&mut self, now: Instant) {
        // Soon after the last episode its drop rate is a good start; the RFC asks for 16 intervals.
        let delta = self.count.wrapping_sub(self.last_count);
        let recent = now.since(self.next_drop) < self.config.interval * 16;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.next_drop = self.after_pause(now);
        self.last_count = self.count;
        self.state = State::Entering;
    }

    /// The control law.
    fn after_pause(&self, from: Instant) -> Instant {
        from + self.config.interval.mul_f64(1.0 / f64::from(self.count).sqrt())
    }

    fn drop_if_due(&mut self, now: Instant) -> Departure {
        if now < self.next_drop {
            self.state = State::Dropping;
            return Departure::Send;
        }
        self.count += 1;
        self.state = State::Dropped;
        Departure::Drop
    }
}

impl Queue for CoDel {
    fn admit(&mut self, _: Instant, waiting: Backlog, bytes: u32) -> bool {
        self.config.limit.admits(waiting, bytes)
    }

    fn depart(&mut self, now: Instant, packet: QueuedPacket, behind: Backlog) -> Departure {
        let may_drop = self.may_drop(now, packet, behind);
        match (self.state, may_drop) {
            (State::Entering, _) => {
                self.state = State::Dropping;
                Departure::Send
            }
            (_, false) => {
                self.state = State::Passing;
                Departure::Send
            }
            (State::Passing, true) => {
                self.enter(now);
                Departure::Drop
            }
            (State::Dropping, true) => self.drop_if_due(now),
            (State::Dropped, true) => {
                self.next_drop = self.after_pause(self.next_drop);
                self.drop_if_due(now)
            }
        }
    }

    fn emptied(&mut self, _: Instant) {
        self.first_above = None;
        self.state = State::Passing;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEHIND: Backlog = Backlog { packets: 100, bytes: 150_000 };

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    fn codel() -> CoDel {
        CoDel::new(CoDelConfig::with_limit(QueueLimit::Packets(1000)), 1500)
    }

    /// Packets depart every 100 us from `from` to `to` after this waiting time; the times of the drops.
    fn drops(codel: &mut CoDel, from: u64, to: u64, wait: Duration) -> Vec<u64> {
        let mut drops = Vec::new();
        for us in (from..to).step_by(100) {
            let packet = QueuedPacket { entered: at(us) - wait, bytes: 1500 };
            while codel.depart(at(us), packet, BEHIND) == Departure::Drop {
                drops.push(us);
            }
        }
        drops
    }

    #[test]
    fn the_first_drop_comes_after_an_interval_above_target_and_the_others_by_the_control_law() {
        let start = 1_000_000;
        let drops = drops(&mut codel(), start, start + 700_000, Duration::from_millis(6));
        assert_eq!(drops[0], start + 100_000);
        assert!(drops.len() > 8);
        // The n-th pause is interval / sqrt(n); departures come every 100 us, so each drop is up to that much late.
        let mut due = drops[0] as f64;
        for (n, drop) in drops.iter().enumerate().skip(1) {
            due += 100_000.0 / (n as f64).sqrt();
            assert!((0.0..=100.0).contains(&(*drop as f64 - due)), "drop {n} at {drop}, due at {due}");
        }
    }

    #[test]
    fn a_short_wait_or_a_single_packet_behind_never_drops() {
        let mut codel = codel();
        assert!(drops(&mut codel, 1_000_000, 2_000_000, Duration::from_micros(4_999)).is_empty());
        for us in (2_000_000..3_000_000).step_by(100) {
            let packet = QueuedPacket { entered: Instant::ZERO, bytes: 1500 };
            assert_eq!(codel.depart(at(us), packet, Backlog { packets: 1, bytes: 1500 }), Departure::Send);
        }
    }

    #[test]
    fn one_acceptable_wait_restarts_the_interval() {
        let mut codel = codel();
        let long = Duration::from_millis(9);
        assert!(drops(&mut codel, 1_000_000, 1_099_000, long).is_empty());
        assert!(drops(&mut codel, 1_099_000, 1_099_100, Duration::from_millis(1)).is_empty());
        assert_eq!(drops(&mut codel, 1_099_100, 1_199_200, long), [1_199_100]);
    }

    #[test]
    fn an_empty_queue_restarts_the_interval() {
        let mut codel = codel();
        let long = Duration::from_millis(9);
        assert!(drops(&mut codel, 1_000_000, 1_099_000, long).is_empty());
        codel.emptied(at(1_099_000));
        assert_eq!(drops(&mut codel, 1_099_100, 1_199_200, long), [1_199_100]);
    }

    #[test]
    fn a_new_episode_soon_after_resumes_the_pace() {
        let mut codel = codel();
        let long = Duration::from_millis(9);
        let first = drops(&mut codel, 1_000_000, 1_600_000, long);
        drops(&mut codel, 1_600_000, 1_600_100, Duration::ZERO);
        let second = drops(&mut codel, 1_600_100, 1_800_000, long);
        // The first episode counted to n; the second begins with n - 1 as its count.
        let pause = 100_000.0 / ((first.len() - 1) as f64).sqrt();
        assert!(((second[1] - second[0]) as f64 - pause).abs() <= 100.0, "{second:?} {pause}");
        // Long after, it begins at 1 again.
        drops(&mut codel, 1_800_000, 9_000_000, Duration::ZERO);
        let third = drops(&mut codel, 9_000_000, 9_300_000, long);
        assert_eq!(third[1] - third[0], 100_000);
    }

    #[test]
    fn intervals_must_exceed_the_target() {
        let config =
            CoDelConfig { interval: Duration::from_millis(5), ..CoDelConfig::with_limit(QueueLimit::Packets(9)) };
        assert_eq!(config.check().unwrap_err().field, "queue.interval");
    }
}
