//! How many of a kind there are, and when they begin: keys that `[[session]]` and `[[traffic]]` share.

use anabranch_units::{Duration, text};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// How many of a kind there are, and when they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Starts {
    /// The number of sessions or downloads that are like this one.
    #[serde(deserialize_with = "text::whole::<1, 100000, _, _>")]
    #[schemars(range(min = 1, max = 100_000))]
    pub count: u32,
    /// When the first of them begins.
    pub start: Duration,
    /// Each begins at a random time within this after its start, so that every seed has phases of its own.
    pub start_spread: Duration,
    /// The time from the start of each of them to that of the next.
    pub stagger: Duration,
}

impl Default for Starts {
    fn default() -> Self {
        Starts { count: 1, start: Duration::ZERO, start_spread: Duration::ZERO, stagger: Duration::ZERO }
    }
}

impl Starts {
    /// When each of them begins, at the earliest: the spread is not in it.
    pub fn earliest(&self) -> impl Iterator<Item = Duration> + use<> {
        let Starts { count, start, stagger, .. } = *self;
        (0..count).map(move |position| start + stagger * u64::from(position))
    }

    /// When the last of them begins, at the earliest.
    pub fn last(&self) -> Duration {
        self.start + self.stagger * u64::from(self.count - 1)
    }
}

/// A table with the keys of [`Starts`] among its own.
pub trait Started {
    /// Its part of them.
    fn starts_mut(&mut self) -> &mut Starts;
}

/// Reads a list of such tables. Two structs share each of them, which a deserializer offers as a tuple struct of two
/// parts, so that every mistake keeps its place.
pub fn list<'de, D: Deserializer<'de>, T: Deserialize<'de> + Started>(deserializer: D) -> Result<Vec<T>, D::Error> {
    #[derive(Deserialize)]
    struct Shared<T>(T, Starts);
    let tables = Vec::<Shared<T>>::deserialize(deserializer)?.into_iter().map(|Shared(mut table, starts)| {
        *table.starts_mut() = starts;
        table
    });
    Ok(tables.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_begins_one_stagger_after_the_one_before() {
        let secs = Duration::from_secs;
        let starts = Starts { count: 3, start: secs(2), stagger: secs(5), ..Starts::default() };
        assert_eq!(starts.earliest().collect::<Vec<_>>(), [secs(2), secs(7), secs(12)]);
        assert_eq!(starts.last(), secs(12));
    }
}
