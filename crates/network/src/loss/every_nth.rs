//! Periodic loss: every n-th packet is lost, without randomness. It gives the regular sawtooth of the 1/sqrt(p) law.

use super::{LossConfig, LossEntry, LossModel};
use anabranch_units::Instant;
use core::num::NonZeroU32;
use rand_chacha::ChaCha8Rng;

pub(super) const ENTRY: LossEntry = LossEntry {
    name: "every-nth",
    summary: "Loses every n-th packet.",
    source: "Mathis, Semke, Mahdavi, Ott, CCR 27(3), 1997: periodic loss",
    create: |rate| {
        // Rates between 1/n and 1/(n+1) are rounded to the nearer n; a rate of zero is as rare as it can be.
        let n = (1.0 / rate.as_f64() + 0.5) as u32;
        LossConfig::EveryNth(NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN))
    },
};

pub(super) struct EveryNth {
    n: NonZeroU32,
    until_next: u32,
}

impl EveryNth {
    pub(super) fn new(n: NonZeroU32) -> Self {
        EveryNth { n, until_next: n.get() }
    }
}

impl LossModel for EveryNth {
    #[inline]
    fn lost(&mut self, _: Instant, _: &mut ChaCha8Rng) -> bool {
        self.until_next -= 1;
        let lost = self.until_next == 0;
        if lost {
            self.until_next = self.n.get();
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Probability, Streams};

    #[test]
    fn just_every_third_is_lost() {
        let mut rng = Streams::new(1, "test").stream("loss");
        let mut model = EveryNth::new(NonZeroU32::new(3).unwrap());
        let lost: Vec<_> = (1..=9).filter(|_| model.lost(Instant::ZERO, &mut rng)).collect();
        assert_eq!(lost, [3, 6, 9]);
    }

    #[test]
    fn extreme_rates_are_possible() {
        assert_eq!((ENTRY.create)(Probability::ONE), LossConfig::EveryNth(NonZeroU32::MIN));
        assert_eq!((ENTRY.create)(Probability::ZERO), LossConfig::EveryNth(NonZeroU32::MAX));
    }
}
