//! Counts before and after each of the scenario's events.

use super::AroundEvent;
use anabranch_units::Instant;

/// From counts between the events (one more than there are events) to sums before and after each.
pub(super) fn around_events(splits: &[Instant], counts: &[u64]) -> Vec<AroundEvent> {
    let split = |(n, at): (usize, &Instant)| {
        let (before, after) = counts.split_at(n + 1);
        AroundEvent { at_s: at.as_secs_f64(), before: before.iter().sum(), after: after.iter().sum() }
    };
    splits.iter().enumerate().map(split).collect()
}
