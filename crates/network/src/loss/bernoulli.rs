//! Bernoulli loss: each packet is lost with the same probability, independently of all others.

use super::{LossConfig, LossEntry, LossModel};
use crate::draws::Probability;
use anabranch_units::Instant;
use rand_chacha::ChaCha8Rng;

pub(super) const ENTRY: LossEntry = LossEntry {
    name: "bernoulli",
    summary: "Loses each packet with the same probability, independently.",
    source: "tc-netem(8), loss random",
    create: LossConfig::Bernoulli,
};

pub(super) struct Bernoulli(pub(super) Probability);

impl LossModel for Bernoulli {
    #[inline]
    fn lost(&mut self, _: Instant, rng: &mut ChaCha8Rng) -> bool {
        self.0.draw(rng)
    }
}
