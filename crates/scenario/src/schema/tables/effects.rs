//! What else happens to packets: loss, jitter, reordering.

use super::kinds::by_kind;
use anabranch_network::{JitterConfig, LossAt, LossConfig, Probability};
use anabranch_units::{Duration, Ratio, text};
use core::num::NonZeroU32;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A share as the network takes it.
pub(super) fn probability(share: Ratio) -> Probability {
    Probability::new(share.as_f64()).expect("a share lies between 0 and 1")
}

/// Which packets are lost. A share alone stands for independent losses at the exit of the link.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Loss {
    /// Each packet with the same probability, independently.
    Bernoulli(Bernoulli),
    /// In bursts: a good and a bad state, which change from packet to packet.
    GilbertElliott(GilbertElliott),
    /// Every n-th packet.
    EveryNth(EveryNth),
    /// In bursts that last for a time, whatever is sent, as the fades of a radio.
    GilbertElliottTime(GilbertElliottTime),
}

by_kind!(Loss, "loss model", {
    "bernoulli" => Bernoulli(Bernoulli),
    "gilbert-elliott" => GilbertElliott(GilbertElliott),
    "every-nth" => EveryNth(EveryNth),
    "gilbert-elliott-time" => GilbertElliottTime(GilbertElliottTime),
});

/// Independent losses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bernoulli {
    /// The probability that a packet is lost.
    pub share: Ratio,
    /// Where packets are lost: at the `entry` (before the queue, as with netem) or at the `exit` (after the transmission, as on a
    /// radio link, so that a lost packet has used the link).
    #[serde(default)]
    pub at: LossAt,
}

/// Losses in bursts of packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GilbertElliott {
    /// The probability, per packet, of a change from the good state to the bad one.
    pub good_to_bad: Ratio,
    /// The probability, per packet, of a change from the bad state to the good one.
    pub bad_to_good: Ratio,
    /// The probability of loss in the good state.
    #[serde(default)]
    pub loss_in_good: Ratio,
    /// The probability of loss in the bad state.
    #[serde(default = "all")]
    pub loss_in_bad: Ratio,
    /// Where packets are lost: at the `entry` (before the queue, as with netem) or at the `exit` (after the transmission, as on a
    /// radio link, so that a lost packet has used the link).
    #[serde(default)]
    pub at: LossAt,
}

/// Periodic losses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EveryNth {
    /// The number n: of n packets, the last is lost.
    #[serde(deserialize_with = "text::whole::<1, 4294967295, _, _>")]
    #[schemars(range(min = 1, max = 4_294_967_295u64))]
    pub n: u32,
    /// Where packets are lost: at the `entry` (before the queue, as with netem) or at the `exit` (after the transmission, as on a
    /// radio link, so that a lost packet has used the link).
    #[serde(default)]
    pub at: LossAt,
}

/// Losses in bursts of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GilbertElliottTime {
    /// The mean duration of a good state.
    pub good: Duration,
    /// The mean duration of a bad state.
    pub bad: Duration,
    /// The probability of loss in the good state.
    #[serde(default)]
    pub loss_in_good: Ratio,
    /// The probability of loss in the bad state.
    #[serde(default = "all")]
    pub loss_in_bad: Ratio,
    /// Where packets are lost: at the `entry` (before the queue, as with netem) or at the `exit` (after the transmission, as on a
    /// radio link, so that a lost packet has used the link).
    #[serde(default)]
    pub at: LossAt,
}

fn all() -> Ratio {
    Ratio::ONE
}

impl Loss {
    /// No packet is lost.
    pub const NONE: Loss = Loss::Bernoulli(Bernoulli { share: Ratio::ZERO, at: LossAt::Exit });

    /// As the network takes it.
    pub fn config(&self) -> LossConfig {
        match self {
            Loss::Bernoulli(Bernoulli { share: Ratio::ZERO, .. }) => LossConfig::None,
            Loss::Bernoulli(Bernoulli { share, .. }) => LossConfig::Bernoulli(probability(*share)),
            Loss::GilbertElliott(l) => LossConfig::GilbertElliott {
                good_to_bad: probability(l.good_to_bad),
                bad_to_good: probability(l.bad_to_good),
                loss_in_good: probability(l.loss_in_good),
                loss_in_bad: probability(l.loss_in_bad),
            },
            Loss::EveryNth(l) => LossConfig::EveryNth(NonZeroU32::new(l.n).expect("n is at least 1")),
            Loss::GilbertElliottTime(l) => LossConfig::GilbertElliottTime {
                good: l.good,
                bad: l.bad,
                loss_in_good: probability(l.loss_in_good),
                loss_in_bad: probability(l.loss_in_bad),
            },
        }
    }

    /// Whether the run's seed decides which packets are lost.
    pub(super) fn is_random(&self) -> bool {
        let chance = |share: &Ratio| *share > Ratio::ZERO;
        match self {
            Loss::Bernoulli(l) => chance(&l.share),
            Loss::GilbertElliott(l) => chance(&l.loss_in_good) || (chance(&l.loss_in_bad) && chance(&l.good_to_bad)),
            Loss::EveryNth(_) => false,
            Loss::GilbertElliottTime(l) => chance(&l.loss_in_good) || chance(&l.loss_in_bad),
        }
    }

    /// Where packets are lost.
    pub fn at(&self) -> LossAt {
        match self {
            Loss::Bernoulli(l) => l.at,
            Loss::GilbertElliott(l) => l.at,
            Loss::EveryNth(l) => l.at,
            Loss::GilbertElliottTime(l) => l.at,
        }
    }

    /// The key of a state that takes no time.
    pub(in super::super) fn zero_time(&self) -> Option<&'static str> {
        let Loss::GilbertElliottTime(l) = self else { return None };
        [("good", l.good), ("bad", l.bad)].into_iter().find(|(_, time)| time.is_zero()).map(|(key, _)| key)
    }
}

/// A random addition to the delay.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Jitter {
    /// Uniformly distributed around the delay.
    Uniform(Uniform),
    /// Normally distributed around the delay, truncated at three standard deviations.
    Normal(Normal),
    /// A gamma-distributed addition; the delay is the minimum.
    Gamma(Gamma),
    /// An addition with measured percentiles, such as those of a busy computer: the delay is the minimum, and the distribution is
    /// exponential between and beyond these percentiles.
    Percentiles(Percentiles),
}

by_kind!(Jitter, "jitter", {
    "uniform" => Uniform(Uniform),
    "normal" => Normal(Normal),
    "gamma" => Gamma(Gamma),
    "percentiles" => Percentiles(Percentiles),
});

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

/// Packets that are held back, so that others overtake them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reordering {
    /// The share of packets that is delayed.
    pub share: Ratio,
    /// The additional delay of these packets.
    pub by: Duration,
}

impl Reordering {
    /// As the network takes it.
    pub fn config(&self) -> anabranch_network::Reordering {
        anabranch_network::Reordering { probability: probability(self.share), extra: self.by }
    }
}
