//! Bernoulli loss: each packet is lost with the same probability, independently of all others.

use super::{LossAt, LossModel, LossParameters};
use crate::draws::Probability;
use anabranch_units::Instant;
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Independent losses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bernoulli {
    /// The probability that a packet is lost.
    pub share: Probability,
    /// Where packets are lost: at the `entry` (before the queue, as with netem) or at the `exit` (after the
    /// transmission, as on a radio link, so that a lost packet has used the link).
    #[serde(default)]
    pub at: LossAt,
}

impl LossParameters for Bernoulli {
    const SUMMARY: &'static str = "Loses each packet with the same probability, independently.";
    const SOURCE: &'static str = "tc-netem(8), loss random";

    fn with_rate(share: Probability) -> Self {
        Bernoulli { share, at: LossAt::default() }
    }

    fn long_run_rate(&self) -> f64 {
        self.share.as_f64()
    }

    fn is_random(&self) -> bool {
        self.share > Probability::ZERO
    }

    fn at(&self) -> LossAt {
        self.at
    }

    fn build(&self) -> Option<Box<dyn LossModel>> {
        self.is_random().then(|| Box::new(Independent(self.share)) as Box<dyn LossModel>)
    }
}

struct Independent(Probability);

impl LossModel for Independent {
    #[inline]
    fn lost(&mut self, _: Instant, rng: &mut ChaCha8Rng) -> bool {
        self.0.draw(rng)
    }
}
