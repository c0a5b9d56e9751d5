//! RED: drops at random, more often the longer the queue is on average, so that senders slow down before it is full.
//!
//! On every arrival, with q the backlog and w = 2^-`weight_exponent`:
//!
//! ```text
//! avg <- avg + w (q - avg)                                 the queue is not empty
//! avg <- (1 - w)^m avg, m = idle time / time per packet    it is empty
//! p_b = max_p (avg - min) / (max - min)                    min <= avg < max
//! p_b = max_p + (1 - max_p) (avg - max) / max              max <= avg < 2 max, "gentle"
//! p_a = p_b / (1 - count p_b)                              count: packets admitted since the last drop
//! ```
//!
//! A packet is dropped with probability p_a; always once avg reaches `max` (2 `max` when gentle); never below `min`.
//! p_a spaces the drops evenly between 1 and 1/p_b packets apart instead of geometrically.
//!
//! Floyd, Jacobson: Random Early Detection Gateways for Congestion Avoidance, IEEE/ACM ToN 1(4), 1993, section 4;
//! "gentle": Floyd, Recommendation on using the "gentle_" variant of RED, 2000.
//! Thresholds count bytes or packets, as the limit does. Packets are dropped regardless of their own size.
//!
//! The average is kept as an integer in 2^-24 of a unit; floating point appears in the formulas only.

use super::{Backlog, Queue, QueueLimit, QueueParameters};
use crate::draws::Probability;
use crate::error::ConfigError;
use crate::server::Work;
use anabranch_units::{Bandwidth, Duration, Instant, text};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Random early detection (Floyd and Jacobson, 1993).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "Red")]
pub struct RedConfig {
    /// The capacity: a size such as "64 kB", or "100 packets".
    pub limit: QueueLimit,
    /// Nothing is dropped while the average queue is below this: a third of `max` where absent. In the limit's unit.
    pub min: Option<QueueLimit>,
    /// The average queue at which packets are dropped with `max_probability`: half of the limit where absent. In the
    /// limit's unit.
    pub max: Option<QueueLimit>,
    /// The probability of a drop at `max` (p_b).
    #[serde(default = "max_probability")]
    pub max_probability: Probability,
    /// Whether the probability rises from `max_probability` at `max` to 1 at twice `max`, or jumps to 1 at `max`.
    #[serde(default = "gentle")]
    pub gentle: bool,
    /// The weight of the newest sample in the average is 2 to the power of minus this.
    #[serde(default = "weight_exponent", deserialize_with = "text::whole::<0, 24, _, _>")]
    #[schemars(range(max = 24))]
    pub weight_exponent: u32,
    /// Bytes of a typical packet, from which the number of departures during an idle time is estimated.
    #[serde(default = "mean_packet", deserialize_with = "text::whole::<1, 65535, _, _>")]
    #[schemars(range(min = 1, max = 65535))]
    pub mean_packet: u32,
}

fn max_probability() -> Probability {
    Probability::clamped(0.1)
}

fn gentle() -> bool {
    true
}

/// Floyd's weight of about 0.002 (RED parameters, 1997).
fn weight_exponent() -> u32 {
    9
}

fn mean_packet() -> u32 {
    1000
}

impl RedConfig {
    /// Both thresholds, in the limit's unit. Where they are absent, `max` is half of the limit, so that twice `max`
    /// fits, and three times `min` (Floyd, RED parameters, 1997).
    fn thresholds(&self) -> Thresholds {
        let usual_max = (self.limit.value() / 2).max(2);
        let usual_min = (usual_max / 3).max(1);
        let value = |limit: Option<QueueLimit>, usual| limit.map_or(usual, QueueLimit::value);
        Thresholds { min: value(self.min, usual_min), max: value(self.max, usual_max) }
    }

    /// The drop probability p_b at an average queue, before drops are spaced.
    fn probability_at(&self, average: f64, thresholds: Thresholds) -> f64 {
        let (min, max, highest) = (thresholds.min as f64, thresholds.max as f64, self.max_probability.as_f64());
        if average < min {
            0.0
        } else if average < max {
            highest * (average - min) / (max - min)
        } else if self.gentle {
            (highest + (1.0 - highest) * (average - max) / max).min(1.0)
        } else {
            1.0
        }
    }
}

/// Average queues between which the drop probability rises.
#[derive(Clone, Copy, Debug)]
struct Thresholds {
    min: u64,
    max: u64,
}

impl QueueParameters for RedConfig {
    const SUMMARY: &'static str = "Drops packets at random, more often the longer the queue is on average.";
    const SOURCE: &'static str = "Floyd, Jacobson, IEEE/ACM ToN 1(4), 1993; gentle: Floyd 2000";

    fn with_limit(limit: QueueLimit) -> Self {
        RedConfig {
            limit,
            min: None,
            max: None,
            max_probability: max_probability(),
            gentle: gentle(),
            weight_exponent: weight_exponent(),
            mean_packet: mean_packet(),
        }
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }

    fn is_random(&self) -> bool {
        true
    }

    fn complete(&mut self) {
        let Thresholds { min, max } = self.thresholds();
        (self.min, self.max) = (Some(self.limit.with(min)), Some(self.limit.with(max)));
    }

    fn check(&self) -> Result<(), ConfigError> {
        let wrong = |field, problem: String| Err(ConfigError::new(field, problem));
        for (field, threshold) in [("queue.min", self.min), ("queue.max", self.max)] {
            if threshold.is_some_and(|threshold| self.limit.with(0) != threshold.with(0)) {
                let error = ConfigError::new(field, "has another unit than queue.limit");
                return Err(error.expecting("the same unit"));
            }
        }
        // An average within 2^38 units leaves room for 24 fractional bits and the sums in 64 bits.
        const HIGHEST: u64 = 1 << 38;
        let Thresholds { min, max } = self.thresholds();
        match self {
            _ if min == 0 => wrong("queue.min", "must be positive".into()),
            _ if min >= max => wrong("queue.max", format!("{max} must exceed queue.min, {min}")),
            _ if max > HIGHEST => wrong("queue.max", format!("{max} is more than 2^38")),
            _ if self.limit.value() > HIGHEST => wrong("queue.limit", "is more than 2^38".into()),
            RedConfig { max_probability: Probability::ZERO, .. } => {
                wrong("queue.max_probability", "must be positive".into())
            }
            RedConfig { weight_exponent, .. } if *weight_exponent > 24 => wrong(
                "queue.weight_exponent",
                format!("{weight_exponent} is more than 24: the average would never move"),
            ),
            RedConfig { mean_packet: 0, .. } => wrong("queue.mean_packet", "must be positive".into()),
            _ => Ok(()),
        }
    }

    fn build(&self, _: u32, rate: Bandwidth, rng: ChaCha8Rng) -> Box<dyn Queue> {
        Box::new(Red::new(*self, rate, rng))
    }
}

/// Binary digits of the average after the point.
const FRACTION_BITS: u32 = 24;

struct Red {
    config: RedConfig,
    thresholds: Thresholds,
    rng: ChaCha8Rng,
    average: u64,
    /// Packets admitted since the last drop, while the average has been above `min`.
    count: u64,
    /// Since when no packet waits.
    empty_since: Option<Instant>,
    time_per_packet: Duration,
}

impl Red {
    fn new(config: RedConfig, rate: Bandwidth, rng: ChaCha8Rng) -> Self {
        let empty_since = Some(Instant::ZERO);
        let thresholds = config.thresholds();
        let mut red =
            Red { config, thresholds, rng, average: 0, count: 0, empty_since, time_per_packet: Duration::ZERO };
        red.rate_changed(rate);
        red
    }

    fn update_average(&mut self, now: Instant, backlog: u64) {
        match self.empty_since {
            Some(since) if backlog == 0 => {
                self.average = self.decayed(now.since(since));
                self.empty_since = Some(now);
            }
            _ => {
                let target = (backlog << FRACTION_BITS) as i64;
                let step = (target - self.average as i64) >> self.config.weight_exponent;
                self.average = self.average.saturating_add_signed(step);
            }
        }
    }

    /// The average after an idle time, as if packets had arrived to an empty queue at the link's rate.
    fn decayed(&self, idle: Duration) -> u64 {
        if self.average == 0 || self.time_per_packet.is_zero() {
            return 0;
        }
        let packets = idle.as_nanos() as f64 / self.time_per_packet.as_nanos() as f64;
        let weight = 1.0 / f64::from(1 << self.config.weight_exponent);
        (self.average as f64 * libm::pow(1.0 - weight, packets)) as u64
    }

    fn drops(&mut self) -> bool {
        let average = self.average as f64 / f64::from(1 << FRACTION_BITS);
        let base = self.config.probability_at(average, self.thresholds);
        if base == 0.0 {
            self.count = 0;
            return false;
        }
        let spaced = base / (1.0 - self.count as f64 * base);
        // Beyond 1 / base packets the fraction is negative: a drop is overdue.
        let probability = if spaced > 0.0 { Probability::clamped(spaced) } else { Probability::ONE };
        let dropped = probability.draw(&mut self.rng);
        self.count = if dropped { 0 } else { self.count + 1 };
        dropped
    }
}

impl Queue for Red {
    fn admit(&mut self, now: Instant, waiting: Backlog, bytes: u32) -> bool {
        self.update_average(now, self.config.limit.measure(waiting));
        let fits = self.config.limit.admits(waiting, bytes);
        if self.drops() || !fits {
            self.count = 0;
            return false;
        }
        true
    }

    fn depart(&mut self, now: Instant, _: super::QueuedPacket, behind: Backlog) -> super::Departure {
        self.empty_since = (behind.packets == 0).then_some(now);
        super::Departure::Send
    }

    fn emptied(&mut self, now: Instant) {
        self.empty_since = self.empty_since.or(Some(now));
    }

    fn rate_changed(&mut self, rate: Bandwidth) {
        self.time_per_packet = Work::of(u64::from(self.config.mean_packet)).time(rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Streams;

    const LIMIT: QueueLimit = QueueLimit::Packets(100);

    fn red(config: RedConfig) -> Red {
        Red::new(config, Bandwidth::from_mbps(8), Streams::new(3, "test").stream("queue"))
    }

    fn backlog(packets: u64) -> Backlog {
        Backlog { packets, bytes: packets * 1000 }
    }

    fn average(red: &Red) -> f64 {
        red.average as f64 / f64::from(1 << FRACTION_BITS)
    }

    #[test]
    fn the_average_follows_the_formula() {
        let mut red = red(RedConfig { weight_exponent: 2, ..RedConfig::with_limit(LIMIT) });
        let mut expected = 0.0;
        for packets in [4, 8, 8, 2, 30, 1] {
            red.admit(Instant::ZERO, backlog(packets), 1000);
            expected += 0.25 * (packets as f64 - expected);
            assert!((average(&red) - expected).abs() < 1e-5, "{} {expected}", average(&red));
        }
    }

    #[test]
    fn the_average_decays_while_the_queue_is_empty() {
        let mut red = red(RedConfig { weight_exponent: 2, ..RedConfig::with_limit(LIMIT) });
        red.average = 8 << FRACTION_BITS;
        let packet = super::super::QueuedPacket { entered: Instant::ZERO, bytes: 1000 };
        let emptied = Instant::from_nanos(77);
        red.depart(emptied, packet, backlog(0));
        // A packet of 1000 bytes takes 1 ms at 8 Mb/s; three could have left.
        red.admit(emptied + Duration::from_millis(3), backlog(0), 1000);
        assert!((average(&red) - 8.0 * 0.75f64.powi(3)).abs() < 1e-5);
        // At half the rate it would have been one more in two milliseconds.
        red.rate_changed(Bandwidth::from_mbps(4));
        red.admit(emptied + Duration::from_millis(5), backlog(0), 1000);
        assert!((average(&red) - 8.0 * 0.75f64.powi(4)).abs() < 1e-5);
    }

    #[test]
    fn a_full_queue_restarts_the_spacing() {
        let mut red = red(RedConfig {
            min: Some(QueueLimit::Packets(5)),
            max: Some(QueueLimit::Packets(15)),
            ..RedConfig::with_limit(QueueLimit::Packets(10))
        });
        red.average = 10 << FRACTION_BITS;
        red.count = 7;
        assert!(!red.admit(Instant::ZERO, backlog(10), 1000));
        assert_eq!(red.count, 0);
    }

    #[test]
    fn the_probability_is_linear_and_then_gentle() {
        let mut config = RedConfig {
            min: Some(QueueLimit::Packets(5)),
            max: Some(QueueLimit::Packets(15)),
            ..RedConfig::with_limit(LIMIT)
        };
        let at =
            |config: &RedConfig, average| (config.probability_at(average, config.thresholds()) * 1e6).round() / 1e6;
        assert_eq!(
            [4.9, 5.0, 10.0, 15.0, 22.5, 30.0, 99.0].map(|q| at(&config, q)),
            [0.0, 0.0, 0.05, 0.1, 0.55, 1.0, 1.0]
        );
        config.gentle = false;
        assert_eq!([14.9, 15.0].map(|q| at(&config, q)), [0.099, 1.0]);
    }

    /// Spaced drops lie 1 to 1/p_b packets apart, each distance equally likely (the paper's section 7, method 2).
    #[test]
    fn drops_are_spaced_uniformly() {
        let mut red = red(RedConfig {
            min: Some(QueueLimit::Packets(5)),
            max: Some(QueueLimit::Packets(15)),
            ..RedConfig::with_limit(LIMIT)
        });
        red.average = 10 << FRACTION_BITS;
        let mut distances = [0u32; 21];
        let mut distance = 0;
        for _ in 0..210_000 {
            // At a backlog equal to the average nothing moves: p_b stays 1/20.
            distance += 1;
            if !red.admit(Instant::ZERO, backlog(10), 1000) {
                distances[distance] += 1;
                distance = 0;
            }
        }
        // The mean distance of 10.5 makes 20000 drops, 1000 of each distance; the standard deviation is 31.
        for (distance, n) in distances.iter().enumerate().skip(1) {
            assert!((850..1150).contains(n), "distance {distance}: {n} times");
        }
    }

    #[test]
    fn parameters_that_make_no_sense_are_named() {
        let good = RedConfig::with_limit(LIMIT);
        let field = |config: RedConfig| config.check().unwrap_err().field;
        assert_eq!(good.check(), Ok(()));
        assert_eq!(field(RedConfig { min: Some(QueueLimit::Packets(0)), ..good }), "queue.min");
        assert_eq!(field(RedConfig { min: Some(QueueLimit::Bytes(5)), ..good }), "queue.min");
        assert_eq!(field(RedConfig { max: Some(QueueLimit::Packets(1)), ..good }), "queue.max");
        assert_eq!(field(RedConfig { max_probability: Probability::ZERO, ..good }), "queue.max_probability");
        assert_eq!(field(RedConfig { weight_exponent: 25, ..good }), "queue.weight_exponent");
        assert_eq!(field(RedConfig { mean_packet: 0, ..good }), "queue.mean_packet");
    }
}
