//! Loss models: which packets are lost.
//!
//! Whether the k-th packet of a model is lost depends on the stream's seed and name, the model's parameters and k only;
//! never on size, and on time only where the model uses it. So the simulator and the emulator lose the same packets.

mod bernoulli;
mod every_nth;
mod gilbert_elliott;
mod gilbert_elliott_time;

use crate::draws::Probability;
use anabranch_registry::{Entry, Registry};
use anabranch_units::{Duration, Instant};
use core::num::NonZeroU32;
use rand_chacha::ChaCha8Rng;

/// Decides for one packet after the other.
pub trait LossModel: Send {
    /// Whether the next packet, at time `now`, is lost. Takes the same amount of randomness for every packet.
    fn lost(&mut self, now: Instant, rng: &mut ChaCha8Rng) -> bool;
}

/// The loss model of a link and its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossConfig {
    /// No loss.
    #[default]
    None,
    /// Each with the same probability, independently.
    Bernoulli(Probability),
    /// In bursts: the link alternates between a good and a bad state.
    GilbertElliott {
        /// p: the probability that a bad state follows on a good one.
        good_to_bad: Probability,
        /// r: the probability that a good state follows on a bad one; 1 / r packets is a bad state's mean length.
        bad_to_good: Probability,
        /// 1 - k: the probability of loss in the good state; zero in Gilbert's model.
        loss_in_good: Probability,
        /// 1 - h: the probability of loss in the bad state; one in the "simple Gilbert" model.
        loss_in_bad: Probability,
    },
    /// Every n-th packet.
    EveryNth(NonZeroU32),
    /// In bursts that last for a time, as a radio's fades do: the link alternates between a good and a bad state, whatever is
    /// sent.
    GilbertElliottTime {
        /// The mean length of a good state.
        good: Duration,
        /// The mean length of a bad state.
        bad: Duration,
        /// The probability of loss in the good state.
        loss_in_good: Probability,
        /// The probability of loss in the bad state.
        loss_in_bad: Probability,
    },
}

impl LossConfig {
    /// The share of packets lost in the long run, 0 to 1.
    pub fn long_run_rate(&self) -> f64 {
        match *self {
            LossConfig::None => 0.0,
            LossConfig::Bernoulli(p) => p.as_f64(),
            LossConfig::GilbertElliott { good_to_bad, bad_to_good, loss_in_good, loss_in_bad } => {
                let (p, r) = (good_to_bad.as_f64(), bad_to_good.as_f64());
                // A link that never changes its state stays in the good one.
                let bad = if p == 0.0 { 0.0 } else { p / (p + r) };
                (1.0 - bad) * loss_in_good.as_f64() + bad * loss_in_bad.as_f64()
            }
            LossConfig::EveryNth(n) => 1.0 / f64::from(n.get()),
            LossConfig::GilbertElliottTime { good, bad, loss_in_good, loss_in_bad } => {
                let (good, bad) = (good.as_secs_f64(), bad.as_secs_f64());
                let share = if bad == 0.0 { 0.0 } else { bad / (good + bad) };
                (1.0 - share) * loss_in_good.as_f64() + share * loss_in_bad.as_f64()
            }
        }
    }

    /// The model in its initial state; `None` for [`LossConfig::None`].
    pub fn build(&self) -> Option<Box<dyn LossModel>> {
        match *self {
            LossConfig::None => None,
            LossConfig::Bernoulli(p) => Some(Box::new(bernoulli::Bernoulli(p))),
            LossConfig::GilbertElliott { good_to_bad, bad_to_good, loss_in_good, loss_in_bad } => Some(Box::new(
                gilbert_elliott::GilbertElliott::new(good_to_bad, bad_to_good, loss_in_good, loss_in_bad),
            )),
            LossConfig::EveryNth(n) => Some(Box::new(every_nth::EveryNth::new(n))),
            LossConfig::GilbertElliottTime { good, bad, loss_in_good, loss_in_bad } => {
                Some(Box::new(gilbert_elliott_time::GilbertElliottTime::new(good, bad, loss_in_good, loss_in_bad)))
            }
        }
    }
}

/// A loss model's line in the registry. Its constructor makes one that loses a share of packets in the long run, with the model's other
/// parameters at their defaults.
pub type LossEntry = Entry<fn(Probability) -> LossConfig>;

/// Every loss model that can be chosen by name.
pub static LOSS_MODELS: Registry<fn(Probability) -> LossConfig> =
    Registry::new(&[bernoulli::ENTRY, gilbert_elliott::ENTRY, every_nth::ENTRY, gilbert_elliott_time::ENTRY]);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Streams;

    /// Every model at the rate that was asked for, and the same losses again from the same seed.
    #[test]
    fn registered_models_lose_what_was_asked_and_repeat() {
        for kind in LOSS_MODELS {
            for rate in [0.005, 0.02, 0.2] {
                let config = (kind.create)(Probability::new(rate).unwrap());
                assert!((config.long_run_rate() / rate - 1.0).abs() < 1e-7, "{} {rate}", kind.name);
                const PACKETS: usize = 1_000_000;
                let fates = |seed| -> Vec<bool> {
                    let mut rng = Streams::new(seed, kind.name).stream("loss");
                    let mut model = config.build().unwrap();
                    // Half a burst apart, where bursts have a length in time.
                    let at = |n| Instant::ZERO + Duration::from_millis(10 * n);
                    (1..=PACKETS as u64).map(|n| model.lost(at(n), &mut rng)).collect()
                };
                let lost = fates(1).iter().filter(|lost| **lost).count() as f64;
                // Bursts of mean length 2 widen the standard deviation of the count by less than the factor 2.
                let deviation = 2.0 * (PACKETS as f64 * rate).sqrt();
                assert!((lost - PACKETS as f64 * rate).abs() < 4.0 * deviation, "{} {rate}: {lost}", kind.name);
                assert_eq!(fates(1), fates(1));
            }
        }
    }
}
