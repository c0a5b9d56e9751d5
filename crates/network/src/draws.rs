//! Named streams of random numbers, and probabilities that are compared as integers.

use anabranch_units::Ratio;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Source of random numbers for one direction: the run's seed, split by name.
///
/// The key of a ChaCha8 generator is the run's seed, its stream number a hash of `NAME/EFFECT`. So every effect of
/// every link draws from its own independent sequence, and adding an effect or a link changes no other draws.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Streams {
    run_seed: u64,
    name: String,
}

impl Streams {
    /// The streams of the consumer called `name`, such as `link/wifi/down`, in the run with this seed.
    pub fn new(run_seed: u64, name: impl Into<String>) -> Self {
        Streams { run_seed, name: name.into() }
    }

    /// The streams of another consumer in this run, or with another seed.
    pub(crate) fn named(&self, seed: Option<u64>, name: &str) -> Self {
        Streams::new(seed.unwrap_or(self.run_seed), name)
    }

    /// The sequence for one effect of this consumer, from its start.
    pub fn stream(&self, effect: &str) -> ChaCha8Rng {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.run_seed.to_le_bytes());
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream(fnv1a([self.name.as_bytes(), b"/", effect.as_bytes()].into_iter().flatten()));
        rng
    }
}

/// The 64-bit FNV-1a hash (Fowler, Noll, Vo; draft-eastlake-fnv section 2): stable across versions and machines,
/// whereas the standard library's hasher may change.
fn fnv1a<'a>(bytes: impl Iterator<Item = &'a u8>) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

/// A probability, stored in units of 2^-64 so that a draw is one integer comparison. Scenarios write it as a share,
/// `"2 %"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Ratio", into = "Ratio")]
pub struct Probability(u64);

impl Probability {
    /// Probability 0.
    pub const ZERO: Probability = Probability(0);
    /// Probability 1.
    pub const ONE: Probability = Probability(u64::MAX);

    /// Probability 1, as the default of a key.
    pub(crate) fn one() -> Self {
        Probability::ONE
    }

    /// The probability `p`; `None` unless it is between 0 and 1.
    pub fn new(p: f64) -> Option<Self> {
        // 2^64 as a float; the conversion back saturates, so that 1 becomes ONE.
        (0.0..=1.0).contains(&p).then_some(Probability((p * 18_446_744_073_709_551_616.0) as u64))
    }

    /// The probability `p`, clamped to 0 to 1.
    pub(crate) fn clamped(p: f64) -> Self {
        Probability::new(p).unwrap_or(if p > 0.5 { Probability::ONE } else { Probability::ZERO })
    }

    /// The value between 0 and 1.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 18_446_744_073_709_551_616.0
    }

    /// Draws whether the event happens. Every call takes the same amount of randomness, whatever the probability: the
    /// k-th call depends on the generator's seed and k alone, and an event that happens at one probability happens at
    /// each higher one.
    #[inline]
    pub fn draw(self, rng: &mut ChaCha8Rng) -> bool {
        let drawn = rng.next_u64();
        drawn < self.0 || self == Probability::ONE
    }
}

impl From<Ratio> for Probability {
    fn from(share: Ratio) -> Self {
        Probability::clamped(share.as_f64())
    }
}

impl From<Probability> for Ratio {
    /// The nearest share: exactly the one that the probability was made from, if it was.
    fn from(probability: Probability) -> Self {
        Ratio((probability.as_f64() * 1e9).round() as u64)
    }
}

impl JsonSchema for Probability {
    fn schema_name() -> Cow<'static, str> {
        Ratio::schema_name()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Ratio::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_written_as_it_was_read() {
        for parts in (0..=1_000_000_000).step_by(999_983).chain([1, 2, 3, 999_999_999, 1_000_000_000]) {
            assert_eq!(Ratio::from(Probability::from(Ratio(parts))), Ratio(parts));
        }
    }

    #[test]
    fn streams_repeat_by_name_and_differ_between_names_and_seeds() {
        let first = |seed, name: &str, effect| Streams::new(seed, name).stream(effect).next_u64();
        assert_eq!(first(7, "link/a/down", "loss"), first(7, "link/a/down", "loss"));
        let others =
            [first(8, "link/a/down", "loss"), first(7, "link/a/up", "loss"), first(7, "link/a/down", "jitter")];
        assert!(others.iter().all(|other| *other != first(7, "link/a/down", "loss")));
    }

    #[test]
    fn the_hash_is_fnv1a() {
        // Published test vectors of the algorithm's authors.
        assert_eq!(fnv1a(b"".iter()), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a".iter()), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar".iter()), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn probabilities_keep_their_ends() {
        assert_eq!(Probability::new(1.0), Some(Probability::ONE));
        assert_eq!(Probability::new(0.0), Some(Probability::ZERO));
        assert_eq!([-0.1, 1.1, f64::NAN].map(Probability::new), [None; 3]);
        assert!((Probability::new(0.02).unwrap().as_f64() - 0.02).abs() < 1e-15);
        let mut rng = Streams::new(1, "test").stream("draw");
        assert!((0..1000).all(|_| Probability::ONE.draw(&mut rng) && !Probability::ZERO.draw(&mut rng)));
    }

    #[test]
    fn what_happens_at_one_probability_happens_at_a_higher_one() {
        let [low, high] = [0.1, 0.3].map(|p| Probability::new(p).unwrap());
        let [mut a, mut b] = [0, 0].map(|_| Streams::new(1, "test").stream("draw"));
        let drawn: Vec<_> = (0..1000).map(|_| (low.draw(&mut a), high.draw(&mut b))).collect();
        assert!(drawn.iter().all(|(low, high)| *high || !*low));
        assert!(drawn.iter().any(|(low, high)| *high && !*low));
    }
}
