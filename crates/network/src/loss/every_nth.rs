//! Periodic loss: every n-th packet is lost, without randomness. It gives the regular sawtooth of the 1/sqrt(p) law.

use super::{LossAt, LossModel, LossParameters};
use crate::draws::Probability;
use anabranch_units::{Instant, text};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Periodic losses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EveryNth {
    /// The number n: of n packets, the last is lost.
    #[serde(deserialize_with = "text::whole::<1, 4294967295, _, _>")]
    #[schemars(range(min = 1, max = 4_294_967_295u64))]
    pub n: u32,
    /// Where packets are lost: at the `entry` (before the queue, as with netem) or at the `exit` (after the
    /// transmission, as on a radio link, so that a lost packet has used the link).
    #[serde(default)]
    pub at: LossAt,
}

impl LossParameters for EveryNth {
    const SUMMARY: &'static str = "Loses every n-th packet.";
    const SOURCE: &'static str = "Mathis, Semke, Mahdavi, Ott, CCR 27(3), 1997: periodic loss";

    /// Rates between 1/n and 1/(n+1) are rounded to the nearer n; a rate of zero is as rare as it can be.
    fn with_rate(rate: Probability) -> Self {
        EveryNth { n: ((1.0 / rate.as_f64() + 0.5) as u32).max(1), at: LossAt::default() }
    }

    fn long_run_rate(&self) -> f64 {
        1.0 / f64::from(self.n)
    }

    fn is_random(&self) -> bool {
        false
    }

    fn at(&self) -> LossAt {
        self.at
    }

    fn check(&self) -> Result<(), crate::ConfigError> {
        if self.n == 0 { Err(crate::ConfigError::new("loss.n", "must be at least 1")) } else { Ok(()) }
    }

    fn build(&self) -> Option<Box<dyn LossModel>> {
        Some(Box::new(Periodic { n: self.n, until_next: self.n }))
    }
}

struct Periodic {
    n: u32,
    until_next: u32,
}

impl LossModel for Periodic {
    #[inline]
    fn lost(&mut self, _: Instant, _: &mut ChaCha8Rng) -> bool {
        self.until_next -= 1;
        let lost = self.until_next == 0;
        if lost {
            self.until_next = self.n;
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Streams;

    #[test]
    fn just_every_third_is_lost() {
        let mut rng = Streams::new(1, "test").stream("loss");
        let mut model = EveryNth { n: 3, at: LossAt::Exit }.build().unwrap();
        let lost: Vec<_> = (1..=9).filter(|_| model.lost(Instant::ZERO, &mut rng)).collect();
        assert_eq!(lost, [3, 6, 9]);
    }

    #[test]
    fn extreme_rates_are_possible() {
        assert_eq!(EveryNth::with_rate(Probability::ONE).n, 1);
        assert_eq!(EveryNth::with_rate(Probability::ZERO).n, u32::MAX);
    }
}
