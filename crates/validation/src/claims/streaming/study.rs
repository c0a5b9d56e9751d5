//! Conditions, variants of studies, and the results of each condition.

use super::seen::Seen;
use crate::claims::Tick;
use crate::runs::{set, shipped, simulate};
use crate::statistics::{Mean, paired};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// A key of a scenario and its value, as `--set` takes them.
pub type Change = (String, String);

/// A shipped scenario with changes.
#[derive(Clone, Debug)]
pub struct Condition {
    /// Name in findings.
    pub name: String,
    /// The shipped scenario.
    pub scenario: &'static str,
    /// The changes.
    pub changes: Vec<Change>,
}

impl Condition {
    pub(super) fn new(name: impl Into<String>, scenario: &'static str, changes: Vec<Change>) -> Self {
        Condition { name: name.into(), scenario, changes }
    }

    /// Whether a key is changed.
    pub(super) fn sets(&self, key: &str) -> bool {
        self.changes.iter().any(|(k, _)| k == key)
    }

    /// Whether a DASH video is streamed, as in the shipped scenarios.
    pub(super) fn streams(&self) -> bool {
        !self.sets("session.0.video")
    }

    /// The same change of every link that the scenario has.
    pub(super) fn on_links(&self, key: &str, value: &str) -> Vec<Change> {
        let links: &[&str] = if self.scenario.starts_with("dash/tcp-") { &["path1"] } else { &["path1", "path2"] };
        links.iter().map(|link| set(format!("link.{link}.{key}"), value)).collect()
    }
}

/// An assumption in another place than the shipped scenarios have it.
#[derive(Clone, Copy)]
pub struct Variant {
    /// Name of the change, for the head of a column.
    pub name: &'static str,
    /// Further changes of a condition.
    pub change: fn(&Condition) -> Vec<Change>,
}

/// The conditions of one paper under one variant.
pub struct Study {
    /// The variant's name.
    pub variant: &'static str,
    /// Number of seeds of each condition.
    pub seeds: u64,
    seen: BTreeMap<String, Vec<Seen>>,
}

impl Study {
    /// Simulates every condition with the seeds from 1; `None` if it was stopped.
    pub fn run(conditions: &[Condition], variant: Variant, seeds: u64, tick: Tick<'_>) -> Option<Self> {
        let runs: Vec<(&Condition, u64)> = conditions.iter().flat_map(|c| (1..=seeds).map(move |s| (c, s))).collect();
        let observe = |(condition, seed): &(&Condition, u64)| {
            let mut changes = condition.changes.clone();
            if condition.streams() {
                changes.push(set("session.0.video.seed", seed));
            }
            changes.extend((variant.change)(condition));
            let seen = Seen::of(&simulate(shipped(condition.scenario), &changes, *seed));
            tick().then_some(seen)
        };
        let observed: Vec<Seen> = runs.par_iter().map(observe).collect::<Option<_>>()?;
        let mut seen: BTreeMap<String, Vec<Seen>> = BTreeMap::new();
        for ((condition, _), observation) in runs.into_iter().zip(observed) {
            seen.entry(condition.name.clone()).or_default().push(observation);
        }
        Some(Study { variant: variant.name, seeds, seen })
    }

    /// The study restricted to the first `seeds` seeds.
    pub fn first(&self, seeds: u64) -> Self {
        let some =
            |(name, seen): (&String, &Vec<Seen>)| (name.clone(), seen.iter().take(seeds as usize).cloned().collect());
        Study { variant: self.variant, seeds: self.seeds.min(seeds), seen: self.seen.iter().map(some).collect() }
    }

    /// One quantity of a condition, by seed.
    ///
    /// # Panics
    /// If there is no such condition.
    pub fn values(&self, condition: &str, of: impl Fn(&Seen) -> f64) -> Vec<f64> {
        let seen = self.seen.get(condition).unwrap_or_else(|| panic!("no condition {condition}"));
        seen.iter().map(of).collect()
    }

    pub(super) fn mean(&self, condition: &str, of: impl Fn(&Seen) -> f64) -> Mean {
        Mean::of(&self.values(condition, of))
    }

    /// The mean of the differences a − b, taken seed by seed.
    pub(super) fn difference(&self, a: &str, b: &str, of: impl Fn(&Seen) -> f64) -> Mean {
        paired(&self.values(a, &of), &self.values(b, &of))
    }

    /// Number of sessions that did not play the whole video in the scenario's time, and of all.
    pub fn unfinished(&self) -> (usize, usize) {
        let all = || self.seen.values().flatten();
        (all().filter(|seen| !seen.finished).count(), all().count())
    }
}
