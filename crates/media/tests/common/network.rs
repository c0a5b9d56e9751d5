//! Random networks for tests of bitrate rules: a rate that holds for a while and then changes, and a latency.

use anabranch_units::{Duration, Instant};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Parameters of the changes of rate.
#[derive(Clone, Copy, Debug)]
pub struct Mood {
    /// Lowest and highest rate, bit/s; rates are drawn evenly over the logarithm.
    pub bps: (f64, f64),
    /// The largest factor between consecutive rates; infinite: no limit.
    pub step: f64,
    /// How long a rate holds at most, ms.
    pub hold_ms: u64,
    /// Highest latency, ms.
    pub latency_ms: u64,
}

/// The rate as a function of time, generated as time passes.
#[derive(Debug)]
pub struct Network {
    mood: Mood,
    bps: f64,
    until: Instant,
}

fn between(rng: &mut ChaCha8Rng, (low, high): (f64, f64)) -> f64 {
    (low.ln() + (high.ln() - low.ln()) * rng.random::<f64>()).exp()
}

impl Network {
    pub fn new(mood: Mood, rng: &mut ChaCha8Rng) -> Self {
        Network { mood, bps: between(rng, mood.bps), until: Instant::ZERO }
    }

    pub fn latency(&self, rng: &mut ChaCha8Rng) -> Duration {
        Duration::from_nanos(rng.random_range(100_000..=self.mood.latency_ms * 1_000_000))
    }

    /// The bytes that arrive from `from` to `to`.
    pub fn bytes(&mut self, from: Instant, to: Instant, rng: &mut ChaCha8Rng) -> f64 {
        let (mut at, mut bits) = (from, 0.0);
        while at < to {
            if at >= self.until {
                self.until = at + Duration::from_nanos(rng.random_range(1..=self.mood.hold_ms * 1_000_000));
                let near = (self.bps / self.mood.step, self.bps * self.mood.step);
                let range = (near.0.max(self.mood.bps.0), near.1.min(self.mood.bps.1));
                self.bps = between(rng, range);
            }
            let end = self.until.min(to);
            bits += self.bps * end.since(at).as_secs_f64();
            at = end;
        }
        bits / 8.0
    }
}
