//! A set of bytes of the stream, as ranges.

use std::collections::BTreeMap;

/// Ranges that neither overlap nor touch: their ends by their starts.
#[derive(Debug, Default)]
pub(super) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds the bytes from `start` up to `end`.
    pub(super) fn insert(&mut self, mut start: u64, mut end: u64) {
        while let Some((&first, &last)) = self.0.range(..=end).next_back().filter(|(_, last)| **last >= start) {
            self.0.remove(&first);
            (start, end) = (start.min(first), end.max(last));
        }
        if start < end {
            self.0.insert(start, end);
        }
    }

    /// The first bytes from `start` up to `end` that are not in the set.
    pub(super) fn first_missing(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let within = self.0.range(..=start).next_back().map(|(_, last)| *last).filter(|last| *last > start);
        let first = within.unwrap_or(start);
        let last = self.0.range(first..).next().map_or(end, |(next, _)| end.min(*next));
        (first < last).then_some((first, last))
    }

    /// Forgets what lies before `offset`; a range that reaches beyond it is kept.
    pub(super) fn forget_before(&mut self, offset: u64) {
        while let Some(first) = self.0.first_entry().filter(|first| *first.get() <= offset) {
            first.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut ranges = Ranges::default();
        for (start, end) in [(10, 20), (40, 50), (20, 30), (45, 60), (5, 6)] {
            ranges.insert(start, end);
        }
        assert_eq!(ranges.0.into_iter().collect::<Vec<_>>(), [(5, 6), (10, 30), (40, 60)]);
    }

    #[test]
    fn a_range_may_cover_several() {
        let mut ranges = Ranges::default();
        for (start, end) in [(10, 20), (30, 40), (0, 50), (60, 60)] {
            ranges.insert(start, end);
        }
        assert_eq!(ranges.0.into_iter().collect::<Vec<_>>(), [(0, 50)]);
    }

    #[test]
    fn what_is_missing_lies_between_ranges() {
        let mut ranges = Ranges::default();
        ranges.insert(10, 20);
        ranges.insert(30, 40);
        assert_eq!(ranges.first_missing(0, 100), Some((0, 10)));
        assert_eq!(ranges.first_missing(10, 100), Some((20, 30)));
        assert_eq!(ranges.first_missing(25, 28), Some((25, 28)));
        assert_eq!(ranges.first_missing(12, 18), None);
        assert_eq!(ranges.first_missing(35, 100), Some((40, 100)));
        assert_eq!(ranges.first_missing(7, 7), None);
    }

    #[test]
    fn what_lies_before_an_offset_is_forgotten() {
        let mut ranges = Ranges::default();
        ranges.insert(0, 10);
        ranges.insert(20, 30);
        ranges.forget_before(25);
        assert_eq!(ranges.first_missing(0, 30), Some((0, 20)));
    }
}
