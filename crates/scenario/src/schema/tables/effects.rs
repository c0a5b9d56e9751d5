//! A random change of the delay.

use anabranch_network::JitterConfig;
use anabranch_registry::by_kind;
use anabranch_units::{Duration, text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

by_kind! {
    /// A random addition to the delay.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Jitter: "jitter" {
        /// Uniformly distributed around the delay.
        "uniform" => Uniform(Uniform),
        /// Normally distributed around the delay, truncated at three standard deviations.
        "normal" => Normal(Normal),
        /// A gamma-distributed addition; the delay is the minimum.
        "gamma" => Gamma(Gamma),
        /// An addition with measured percentiles, such as those of a busy computer: the delay is the minimum, and the distribution is
        /// exponential between and beyond these percentiles.
        "percentiles" => Percentiles(Percentiles),
    }
}

/// Evenly distributed jitter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Uniform {
    /// The largest deviation from the delay.
    pub half_width: Duration,
    /// Whether packets may overtake each other.
    #[serde(default)]
    pub reorders: bool,
}

/// Normally distributed jitter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Normal {
    /// The standard deviation.
    pub deviation: Duration,
    /// Whether packets may overtake each other.
    #[serde(default)]
    pub reorders: bool,
}

/// Gamma distributed jitter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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

/// Jitter by its percentiles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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

impl Jitter {
    /// As the network takes it.
    pub fn config(&self) -> JitterConfig {
        use anabranch_network::Jitter as J;
        let (jitter, reorders) = match self {
            Jitter::Uniform(j) => (J::Uniform { half_width: j.half_width }, j.reorders),
            Jitter::Normal(j) => (J::Normal { deviation: j.deviation }, j.reorders),
            Jitter::Gamma(j) => (J::Gamma { mean: j.mean, shape: j.shape }, j.reorders),
            Jitter::Percentiles(j) => (J::Percentiles { p50: j.p50, p99: j.p99, p999: j.p999 }, j.reorders),
        };
        JitterConfig { jitter, reorders }
    }

    pub(in super::super) fn is_in_order(&self) -> bool {
        !matches!(self, Jitter::Percentiles(j) if !(j.p50 <= j.p99 && j.p99 <= j.p999))
    }
}
