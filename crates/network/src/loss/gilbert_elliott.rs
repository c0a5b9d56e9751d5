//! Gilbert-Elliott loss: a Markov chain with a good and a bad state, each with its own probability of loss.
//!
//! ```text
//! p = P(good -> bad), r = P(bad -> good), per packet; loss 1 - k in the good state, 1 - h in the bad one
//! share of bad = p / (p + r);   loss = (1 - k) r / (p + r) + (1 - h) p / (p + r);   mean length of a bad state = 1 / r
//! ```
//!
//! Gilbert, BSTJ 39, 1960; Elliott, BSTJ 42, 1963; notation of Hasslinger and Hohlfeld, MMB 2008, and tc-netem(8).
//! The chain moves before every packet, and starts in the good state.

use super::{LossAt, LossModel, LossParameters};
use crate::draws::Probability;
use anabranch_units::Instant;
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The mean burst, in packets, of a model that is made from a loss rate alone: the smallest whole number that differs
/// from independent losses.
const DEFAULT_BURST: f64 = 2.0;

/// Losses in bursts of packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GilbertElliott {
    /// The probability, per packet, of a change from the good state to the bad one.
    pub good_to_bad: Probability,
    /// The probability, per packet, of a change from the bad state to the good one.
    pub bad_to_good: Probability,
    /// The probability of loss in the good state.
    #[serde(default)]
    pub loss_in_good: Probability,
    /// The probability of loss in the bad state.
    #[serde(default = "Probability::one")]
    pub loss_in_bad: Probability,
    /// Where packets are lost: at the `entry` (before the queue, as with netem) or at the `exit` (after the
    /// transmission, as on a radio link, so that a lost packet has used the link).
    #[serde(default)]
    pub at: LossAt,
}

impl LossParameters for GilbertElliott {
    const SUMMARY: &'static str =
        "Loses packets in bursts: a good and a bad state alternate, each with its own loss probability.";
    const SOURCE: &'static str = "Gilbert 1960, Elliott 1963; Hasslinger, Hohlfeld, MMB 2008";

    /// The simple Gilbert model (no loss in the good state, nothing passes in the bad one) with this long-run loss
    /// rate.
    fn with_rate(rate: Probability) -> Self {
        let r = 1.0 / DEFAULT_BURST;
        let share = rate.as_f64();
        // From share = p / (p + r). High shares would need p above one, which is capped.
        let p = r * share / (1.0 - share);
        GilbertElliott {
            good_to_bad: Probability::clamped(p),
            bad_to_good: Probability::clamped(r),
            loss_in_good: Probability::ZERO,
            loss_in_bad: Probability::ONE,
            at: LossAt::default(),
        }
    }

    fn long_run_rate(&self) -> f64 {
        let (p, r) = (self.good_to_bad.as_f64(), self.bad_to_good.as_f64());
        // A link that never changes its state stays in the good one.
        let bad = if p == 0.0 { 0.0 } else { p / (p + r) };
        (1.0 - bad) * self.loss_in_good.as_f64() + bad * self.loss_in_bad.as_f64()
    }

    fn is_random(&self) -> bool {
        let chance = |share| share > Probability::ZERO;
        chance(self.loss_in_good) || (chance(self.loss_in_bad) && chance(self.good_to_bad))
    }

    fn at(&self) -> LossAt {
        self.at
    }

    fn build(&self) -> Option<Box<dyn LossModel>> {
        Some(Box::new(Chain { bad: false, parameters: self.clone() }))
    }
}

struct Chain {
    bad: bool,
    parameters: GilbertElliott,
}

impl LossModel for Chain {
    #[inline]
    fn lost(&mut self, _: Instant, rng: &mut ChaCha8Rng) -> bool {
        let parameters = &self.parameters;
        let change = if self.bad { parameters.bad_to_good } else { parameters.good_to_bad };
        self.bad ^= change.draw(rng);
        let loss = if self.bad { parameters.loss_in_bad } else { parameters.loss_in_good };
        loss.draw(rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Streams;

    fn parameters(p: f64, r: f64, good: f64, bad: f64) -> GilbertElliott {
        let [good_to_bad, bad_to_good, loss_in_good, loss_in_bad] =
            [p, r, good, bad].map(|p| Probability::new(p).unwrap());
        GilbertElliott { good_to_bad, bad_to_good, loss_in_good, loss_in_bad, at: LossAt::Exit }
    }

    fn fates(p: f64, r: f64, good: f64, bad: f64, packets: usize) -> Vec<bool> {
        let mut model = parameters(p, r, good, bad).build().unwrap();
        let mut rng = Streams::new(5, "test").stream("loss");
        (0..packets).map(|_| model.lost(Instant::ZERO, &mut rng)).collect()
    }

    #[test]
    fn the_long_run_rate_is_that_of_the_formula() {
        for (p, r, good, bad) in [(0.01, 0.25, 0.0, 1.0), (0.02, 0.1, 0.001, 0.5), (0.3, 0.2, 0.1, 0.9)] {
            let lost = fates(p, r, good, bad, 2_000_000).iter().filter(|lost| **lost).count() as f64 / 2e6;
            let theory = parameters(p, r, good, bad).long_run_rate();
            assert!((lost / theory - 1.0).abs() < 0.03, "{lost} {theory}");
        }
    }

    #[test]
    fn bursts_are_as_long_as_the_bad_state() {
        let fates = fates(0.01, 0.25, 0.0, 1.0, 2_000_000);
        let bursts = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let lost = fates.iter().filter(|lost| **lost).count();
        let mean = lost as f64 / bursts as f64;
        assert!((mean / 4.0 - 1.0).abs() < 0.03, "{mean}");
    }
}
