//! Gilbert-Elliott loss whose states last for a time, not for a number of packets: a radio fades whether it is used or
//! not.
//!
//! ```text
//! lambda = 1 / good, mu = 1 / bad: a Markov chain in continuous time; g = exp(-(lambda + mu) dt): correlation after dt
//! share of bad b = lambda / (lambda + mu) = bad / (good + bad)
//! P(bad after dt | good) = b (1 - g);   P(bad after dt | bad) = b + (1 - b) g
//! loss = (1 - b) loss in good + b loss in bad
//! ```
//!
//! The transition probabilities of the two-state chain are in Norris, Markov Chains, 1997, example 2.1.3; loss by such
//! a chain in Yajnik, Moon, Kurose, Towsley, INFOCOM 1999. The chain is evaluated when a packet's transmission begins
//! (or, at the entry, when it enters), and starts in the good state. Two packets sent at the same time see the same
//! state.

use super::{LossAt, LossModel, LossParameters};
use crate::draws::Probability;
use crate::error::ConfigError;
use anabranch_units::{Duration, Instant};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The mean length of a bad state of a model that is made from a loss rate alone: about that of a fade at walking
/// speed, where half a wave of 2.4 GHz, 6 cm, passes in 40 ms at 1.5 m/s, half of it in a fade.
const DEFAULT_BAD: Duration = Duration::from_millis(20);

/// Losses in bursts of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GilbertElliottTime {
    /// The mean duration of a good state.
    pub good: Duration,
    /// The mean duration of a bad state.
    pub bad: Duration,
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

impl LossParameters for GilbertElliottTime {
    const SUMMARY: &'static str =
        "Loses packets in bursts that last for a time: a good and a bad state alternate, whatever is sent.";
    const SOURCE: &'static str = "Yajnik, Moon, Kurose, Towsley, INFOCOM 1999";

    /// No loss in the good state, nothing passes in the bad one, and this long-run share of time in the bad one.
    fn with_rate(rate: Probability) -> Self {
        let share = rate.as_f64();
        GilbertElliottTime {
            // Without loss the good state is as long as possible; at a loss of 1 it has no length.
            good: DEFAULT_BAD.mul_f64((1.0 - share) / share),
            bad: DEFAULT_BAD,
            loss_in_good: Probability::ZERO,
            loss_in_bad: Probability::ONE,
            at: LossAt::default(),
        }
    }

    fn long_run_rate(&self) -> f64 {
        let (good, bad) = (self.good.as_secs_f64(), self.bad.as_secs_f64());
        let share = if bad == 0.0 { 0.0 } else { bad / (good + bad) };
        (1.0 - share) * self.loss_in_good.as_f64() + share * self.loss_in_bad.as_f64()
    }

    fn is_random(&self) -> bool {
        self.loss_in_good > Probability::ZERO || self.loss_in_bad > Probability::ZERO
    }

    fn at(&self) -> LossAt {
        self.at
    }

    fn check(&self) -> Result<(), ConfigError> {
        let zero = [("loss.good", self.good), ("loss.bad", self.bad)].into_iter().find(|(_, time)| time.is_zero());
        zero.map_or(Ok(()), |(field, _)| {
            let expected = "the mean length of the state, such as \"100 ms\"";
            Err(ConfigError::new(field, "must be above zero").expecting(expected))
        })
    }

    fn build(&self) -> Option<Box<dyn LossModel>> {
        Some(Box::new(Fading::new(self)))
    }
}

struct Fading {
    bad: bool,
    seen: Instant,
    /// 1 / good + 1 / bad, per second.
    rate: f64,
    share_of_bad: f64,
    loss_in_good: Probability,
    loss_in_bad: Probability,
}

impl Fading {
    fn new(parameters: &GilbertElliottTime) -> Self {
        let &GilbertElliottTime { loss_in_good, loss_in_bad, .. } = parameters;
        let (good, bad) = (parameters.good.as_secs_f64(), parameters.bad.as_secs_f64());
        let share_of_bad = if bad == 0.0 { 0.0 } else { bad / (good + bad) };
        // A state without length is left at once: the correlation time is zero.
        let rate = if good == 0.0 || bad == 0.0 { f64::INFINITY } else { 1.0 / good + 1.0 / bad };
        Fading { bad: false, seen: Instant::ZERO, rate, share_of_bad, loss_in_good, loss_in_bad }
    }

    /// The probability of the bad state at `now`.
    fn chance_of_bad(&self, now: Instant) -> f64 {
        let passed = now.since(self.seen);
        if passed.is_zero() {
            return if self.bad { 1.0 } else { 0.0 };
        }
        let remembered = libm::exp(-self.rate * passed.as_secs_f64());
        let b = self.share_of_bad;
        if self.bad { b + (1.0 - b) * remembered } else { b * (1.0 - remembered) }
    }
}

impl LossModel for Fading {
    #[inline]
    fn lost(&mut self, now: Instant, rng: &mut ChaCha8Rng) -> bool {
        self.bad = Probability::clamped(self.chance_of_bad(now)).draw(rng);
        self.seen = now;
        let loss = if self.bad { self.loss_in_bad } else { self.loss_in_good };
        loss.draw(rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Streams;

    /// Nothing is lost in the good state, and nothing passes in the bad one.
    fn fading(good: Duration, bad: Duration) -> Fading {
        let [loss_in_good, loss_in_bad] = [Probability::ZERO, Probability::ONE];
        Fading::new(&GilbertElliottTime { good, bad, loss_in_good, loss_in_bad, at: LossAt::Exit })
    }

    fn fates(good_ms: u64, bad_ms: u64, gap_us: u64, packets: u64) -> Vec<bool> {
        let [good, bad] = [good_ms, bad_ms].map(Duration::from_millis);
        let mut model = fading(good, bad);
        let mut rng = Streams::new(5, "test").stream("loss");
        (1..=packets).map(|n| model.lost(Instant::ZERO + Duration::from_micros(n * gap_us), &mut rng)).collect()
    }

    fn share(fates: &[bool]) -> f64 {
        fates.iter().filter(|lost| **lost).count() as f64 / fates.len() as f64
    }

    #[test]
    fn the_share_of_losses_is_that_of_the_bad_time_however_often_packets_come() {
        for gap_us in [1_000, 10_000, 500_000] {
            let lost = share(&fates(900, 100, gap_us, 4_000_000));
            assert!((lost / 0.1 - 1.0).abs() < 0.05, "{gap_us}: {lost}");
        }
    }

    /// From one packet to the next: the formulas' probabilities for a gap of a third of both states.
    #[test]
    fn the_next_packet_s_fate_follows_the_chain() {
        let fates = fates(300, 150, 100, 4_000_000);
        let bursts = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        // A burst lasts 150 ms on average, so of 0.1 ms packets 1500 on average.
        let mean = fates.iter().filter(|lost| **lost).count() as f64 / bursts;
        assert!((mean / 1500.0 - 1.0).abs() < 0.1, "{mean}");
        let apart = super::tests::fates(300, 150, 100_000, 1_000_000);
        let after_loss: Vec<bool> = apart.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
        let remembered = libm::exp(-(1.0 / 0.3 + 1.0 / 0.15) * 0.1);
        let expected = 1.0 / 3.0 + 2.0 / 3.0 * remembered;
        assert!((share(&after_loss) - expected).abs() < 0.005, "{} {expected}", share(&after_loss));
    }

    #[test]
    fn packets_of_one_moment_share_their_state() {
        let mut model = fading(DEFAULT_BAD, DEFAULT_BAD);
        let mut rng = Streams::new(1, "test").stream("loss");
        for second in 1..200 {
            let now = Instant::ZERO + Duration::from_secs(second);
            let first = model.lost(now, &mut rng);
            assert!((0..20).all(|_| model.lost(now, &mut rng) == first));
        }
    }

    #[test]
    fn states_without_length_do_not_occur() {
        assert!(!fates(10, 0, 1000, 1000).contains(&true));
        assert!(!fates(0, 10, 1000, 1000).contains(&false));
    }
}
