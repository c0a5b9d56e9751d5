//! Bernoulli loss: each packet is lost with the same probability, independently of all others.

use super::{LossConfig, LossKind, LossModel};
use crate::draws::Probability;
use anabranch_units::Instant;
use rand_chacha::ChaCha8Rng;

pub(super) const KIND: LossKind = LossKind {
    name: "bernoulli",
    summary: "Loses each packet with the same probability, independently.",
    source: "tc-netem(8), loss random",
    with_rate: LossConfig::Bernoulli,
};

pub(super) struct Bernoulli(pub(super) Probability);

impl LossModel for Bernoulli {
    #[inline]
    fn lost(&mut self, _: Instant, rng: &mut ChaCha8Rng) -> bool {
        self.0.draw(rng)
    }
}
