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

/// Which packets are lost. A share alone is that of independent losses after the server.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Loss {
    /// Each packet with the same probability, independently.
    Bernoulli(Bernoulli),
    /// In bursts: a good and a bad state, which change from packet to packet.
    GilbertElliott(GilbertElliott),
    /// Periodically.
    EveryNth(EveryNth),
    /// In bursts that last for a time, whatever is sent, as a radio's fades do.
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
    /// `entry` (before the queue, as netem) or `exit` (after the server, like a radio).
    #[serde(default)]
    pub at: LossAt,
}

/// Losses in bursts of packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GilbertElliott {
    /// How likely a bad state follows on a good one, per packet.
    pub good_to_bad: Ratio,
    /// How likely a good state follows on a bad one, per packet.
    pub bad_to_good: Ratio,
    /// The loss in the good state.
    #[serde(default)]
    pub loss_in_good: Ratio,
    /// The loss in the bad state.
    #[serde(default = "all")]
    pub loss_in_bad: Ratio,
    /// `entry` (before the queue, as netem) or `exit` (after the server, like a radio).
    #[serde(default)]
    pub at: LossAt,
}

/// Periodic losses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EveryNth {
    /// Every how many packets one is lost.
    #[serde(deserialize_with = "text::whole::<1, 4294967295, _, _>")]
    #[schemars(range(min = 1, max = 4_294_967_295u64))]
    pub n: u32,
    /// `entry` (before the queue, as netem) or `exit` (after the server, like a radio).
    #[serde(default)]
    pub at: LossAt,
}

/// Losses in bursts of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GilbertElliottTime {
    /// The mean length of a good state.
    pub good: Duration,
    /// The mean length of a bad state.
    pub bad: Duration,
    /// The loss in the good state.
    #[serde(default)]
    pub loss_in_good: Ratio,
    /// The loss in the bad state.
    #[serde(default = "all")]
    pub loss_in_bad: Ratio,
    /// `entry` (before the queue, as netem) or `exit` (after the server, like a radio).
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
    /// Evenly around the delay.
    Uniform(Uniform),
    /// Normal around the delay, truncated at three standard deviations.
    Normal(Normal),
    /// Gamma distributed; the delay is the least.
    Gamma(Gamma),
    /// For additions that were measured, such as a busy computer's: the delay is the least, and the distribution is
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
    /// The largest distance from the delay.
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
    /// The mean of what is added.
    pub mean: Duration,
    /// At least 1, which is the exponential distribution.
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
    /// Half of the additions do not exceed this.
    pub p50: Duration,
    /// One addition in a hundred exceeds this.
    pub p99: Duration,
    /// One addition in a thousand exceeds this.
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
    /// The share of packets that is held back.
    pub share: Ratio,
    /// For how long a packet is held back.
    pub by: Duration,
}

impl Reordering {
    /// As the network takes it.
    pub fn config(&self) -> anabranch_network::Reordering {
        anabranch_network::Reordering { probability: probability(self.share), extra: self.by }
    }
}
