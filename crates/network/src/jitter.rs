//! Jitter: the deviation of a packet's delay from the link's.
//!
//! Draws are independent from packet to packet. By default the order of packets is kept: a packet that would
//! overtake another arrives together with it, so on a busy link short delays are rarer than in the distribution.

use crate::error::ConfigError;
use anabranch_registry::by_kind;
use anabranch_units::{Duration, text};
use core::f64::consts::{LN_2, LN_10};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

by_kind! {
    /// A random addition to the delay.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub enum Jitter: "jitter" {
        /// Uniformly distributed around the delay.
        "uniform" => Uniform(Uniform),
        /// Normally distributed around the delay, truncated at three standard deviations.
        "normal" => Normal(Normal),
        /// A gamma-distributed addition; the delay is the minimum.
        "gamma" => Gamma(Gamma),
        /// An addition with measured percentiles, such as those of a busy computer: the delay is the minimum, and the
        /// distribution is exponential between and beyond these percentiles.
        "percentiles" => Percentiles(Percentiles),
    }
}

/// Evenly distributed jitter; tc-netem's default.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Uniform {
    /// The largest deviation from the delay.
    pub half_width: Duration,
    /// Whether packets may overtake each other.
    #[serde(default)]
    pub reorders: bool,
}

/// Normally distributed jitter. Its standard deviation is 1.3 % less after truncation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Normal {
    /// The standard deviation.
    pub deviation: Duration,
    /// Whether packets may overtake each other.
    #[serde(default)]
    pub reorders: bool,
}

/// Gamma distributed jitter, as measured on Internet paths (Mukherjee, "On the dynamics and significance of low
/// frequency components of Internet load", 1994).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gamma {
    /// The mean of the addition.
    pub mean: Duration,
    /// The shape of the distribution, at least 1; 1 is the exponential distribution.
    #[serde(deserialize_with = "text::number::<1, 1000000, _>")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub shape: f64,
    /// Whether packets may overtake each other.
    #[serde(default)]
    pub reorders: bool,
}

/// Jitter by its percentiles, for measured delays: mostly short, at times long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Percentiles {
    /// The median of the addition.
    pub p50: Duration,
    /// Its 99th percentile: one addition in a hundred exceeds this.
    pub p99: Duration,
    /// Its 99.9th percentile: one addition in a thousand exceeds this.
    pub p999: Duration,
    /// Whether packets may overtake each other.
    #[serde(default)]
    pub reorders: bool,
}

/// Where the normal distribution is cut, in standard deviations: it keeps 99.7 %.
const NORMAL_REACH: f64 = 3.0;

impl Jitter {
    /// How far a packet's delay can be below the link's delay.
    pub fn reach_below(&self) -> Duration {
        match self {
            Jitter::Uniform(uniform) => uniform.half_width,
            Jitter::Normal(normal) => normal.deviation.mul_f64(NORMAL_REACH),
            Jitter::Gamma(_) | Jitter::Percentiles(_) => Duration::ZERO,
        }
    }

    /// Whether packets may overtake each other.
    pub fn reorders(&self) -> bool {
        match self {
            Jitter::Uniform(jitter) => jitter.reorders,
            Jitter::Normal(jitter) => jitter.reorders,
            Jitter::Gamma(jitter) => jitter.reorders,
            Jitter::Percentiles(jitter) => jitter.reorders,
        }
    }

    /// Whether the parameters make sense together.
    ///
    /// # Errors
    /// Names the field.
    pub fn check(&self) -> Result<(), ConfigError> {
        match *self {
            Jitter::Gamma(Gamma { shape, .. }) if !(shape.is_finite() && shape >= 1.0) => {
                Err(ConfigError::new("jitter.shape", format!("{shape} is not a number of 1 or more")))
            }
            Jitter::Percentiles(Percentiles { p50, p99, p999, .. }) if !(p50 <= p99 && p99 <= p999) => {
                Err(ConfigError::new("jitter", "the percentiles are out of order").expecting("p50 <= p99 <= p999"))
            }
            _ => Ok(()),
        }
    }

    /// The next packet's deviation from the link's delay, in nanoseconds.
    pub(crate) fn draw(&self, rng: &mut ChaCha8Rng) -> i64 {
        match *self {
            Jitter::Uniform(Uniform { half_width, .. }) => uniform(rng, half_width.as_nanos()),
            Jitter::Normal(Normal { deviation, .. }) => (truncated_normal(rng) * deviation.as_nanos() as f64) as i64,
            Jitter::Gamma(Gamma { mean, shape, .. }) => (gamma(rng, shape) * (mean.as_nanos() as f64 / shape)) as i64,
            Jitter::Percentiles(Percentiles { p50, p99, p999, .. }) => {
                between(exponential(rng), [p50, p99, p999]) as i64
            }
        }
    }
}

/// An integer between -half_width and half_width, both included.
fn uniform(rng: &mut ChaCha8Rng, half_width: u64) -> i64 {
    let values = u128::from(half_width) * 2 + 1;
    // The upper half of the product is uniform below `values`, up to a bias of 2^-64 of the width.
    let drawn = (u128::from(rng.next_u64()) * values) >> 64;
    (drawn as i128 - i128::from(half_width)) as i64
}

/// A number strictly between 0 and 1, a multiple of 2^-54 that is odd in that unit.
fn open_unit(rng: &mut ChaCha8Rng) -> f64 {
    ((rng.next_u64() >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0
}

/// A standard normal number: Marsaglia's polar method (SIAM Review 6(3), 1964); its second number is left unused, so
/// that a packet's draw depends on no earlier one's.
pub(crate) fn normal(rng: &mut ChaCha8Rng) -> f64 {
    loop {
        let u = 2.0 * open_unit(rng) - 1.0;
        let v = 2.0 * open_unit(rng) - 1.0;
        let s = u * u + v * v;
        if s < 1.0 && s > 0.0 {
            return u * (-2.0 * libm::log(s) / s).sqrt();
        }
    }
}

fn truncated_normal(rng: &mut ChaCha8Rng) -> f64 {
    loop {
        let z = normal(rng);
        if z.abs() <= NORMAL_REACH {
            return z;
        }
    }
}

/// A gamma number of this shape (at least 1) and scale 1: Marsaglia and Tsang, ACM TOMS 26(3), 2000.
fn gamma(rng: &mut ChaCha8Rng, shape: f64) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(rng);
        let v = 1.0 + c * x;
        if v <= 0.0 {
            continue;
        }
        let v = v * v * v;
        if libm::log(open_unit(rng)) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v;
        }
    }
}

/// An exponential number of mean 1.
fn exponential(rng: &mut ChaCha8Rng) -> f64 {
    -libm::log(open_unit(rng))
}

/// The position of the exponential number `drawn` among its own percentiles (50, 99, 99.9), mapped to `percentiles`, in
/// nanoseconds.
fn between(drawn: f64, percentiles: [Duration; 3]) -> f64 {
    const AT: [f64; 3] = [LN_2, 2.0 * LN_10, 3.0 * LN_10];
    let times = percentiles.map(|time| time.as_nanos() as f64);
    let (from, to) = if drawn < AT[0] {
        ((0.0, 0.0), (AT[0], times[0]))
    } else if drawn < AT[1] {
        ((AT[0], times[0]), (AT[1], times[1]))
    } else {
        ((AT[1], times[1]), (AT[2], times[2]))
    };
    from.1 + (drawn - from.0) / (to.0 - from.0) * (to.1 - from.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Streams;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Mean, standard deviation, minimum and maximum of many draws, in milliseconds.
    fn moments(jitter: Jitter) -> [f64; 4] {
        let mut rng = Streams::new(9, "test").stream("jitter");
        let drawn: Vec<f64> = (0..400_000).map(|_| jitter.draw(&mut rng) as f64 / 1e6).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        let ends = drawn.iter().fold([f64::MAX, f64::MIN], |[low, high], x| [low.min(*x), high.max(*x)]);
        [mean, variance.sqrt(), ends[0], ends[1]]
    }

    #[test]
    fn uniform_jitter_fills_its_width() {
        let [mean, deviation, low, high] = moments(Jitter::Uniform(Uniform { half_width: MS(10), reorders: false }));
        assert!(mean.abs() < 0.05 && (deviation - 10.0 / 3f64.sqrt()).abs() < 0.05, "{mean} {deviation}");
        assert!((-10.0..-9.99).contains(&low) && (9.99..=10.0).contains(&high), "{low} {high}");
    }

    #[test]
    fn normal_jitter_is_truncated_at_three_deviations() {
        let [mean, deviation, low, high] = moments(Jitter::Normal(Normal { deviation: MS(10), reorders: false }));
        assert!(mean.abs() < 0.08 && (deviation - 9.866).abs() < 0.05, "{mean} {deviation}");
        assert!((-30.0..-29.5).contains(&low) && (29.5..=30.0).contains(&high), "{low} {high}");
    }

    #[test]
    fn gamma_jitter_has_its_mean_and_deviation() {
        for shape in [1.0, 2.5, 9.0] {
            let [mean, deviation, low, _] = moments(Jitter::Gamma(Gamma { mean: MS(10), shape, reorders: false }));
            // The deviation of a gamma distribution is its mean over the root of its shape.
            assert!((mean - 10.0).abs() < 0.1 && (deviation * shape.sqrt() - 10.0).abs() < 0.2, "{mean} {deviation}");
            assert!(low >= 0.0);
        }
    }

    #[test]
    fn percentiles_are_what_they_say() {
        let [p50, p99, p999] = [MS(1), MS(5), MS(20)];
        let mut rng = Streams::new(9, "test").stream("jitter");
        let jitter = Jitter::Percentiles(Percentiles { p50, p99, p999, reorders: false });
        let mut drawn: Vec<i64> = (0..400_000).map(|_| jitter.draw(&mut rng)).collect();
        drawn.sort_unstable();
        for (share, wanted) in [(0.25, 0.415), (0.5, 1.0), (0.99, 5.0), (0.999, 20.0), (0.9999, 35.0)] {
            let found = drawn[(share * drawn.len() as f64) as usize] as f64 / 1e6;
            assert!((found / wanted - 1.0).abs() < 0.1, "{found} ms at {share}");
        }
        assert!(drawn[0] >= 0);
    }
}
