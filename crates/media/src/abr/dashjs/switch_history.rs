//! SwitchHistoryRule: after frequent requests to switch down, limits switches up to below their origin.
//!
//! Over the last 8 decisions, i from the lowest representation up, D = sum of drops from 0..=i, N = of the others:
//! the first i with D + N >= s and D / N > 0.075 is the limit, or i - 1 if i itself was dropped from
//! s = 6 (2.x), 8 (5.x)
//!
//! dash.js 2.9.3 and 5.2.1, rules/abr/SwitchHistoryRule.js and rules/SwitchRequestHistory.js. In 2.x a decision for no
//! change counts as one that did not drop; in 5.x a decision that no rule asked for does not count.

use super::request::Request;
use std::collections::VecDeque;

pub(super) const NAME: &str = "SwitchHistoryRule";
/// `SWITCH_REQUEST_HISTORY_DEPTH` of 2.x; `sampleSize` of 5.x.
const DEPTH: usize = 8;
/// `SAMPLE_SIZE` of 2.x.
pub(super) const SAMPLES_2: u32 = 6;
/// `sampleSize` of 5.x.
pub(super) const SAMPLES_5: u32 = 8;
/// `MAX_SWITCH`, `switchPercentageThreshold`.
const MAX_SWITCH: f64 = 0.075;

#[derive(Debug)]
pub(super) struct SwitchHistory {
    samples: u32,
    /// (from, dropped), oldest first.
    decisions: VecDeque<(usize, bool)>,
}

impl SwitchHistory {
    pub(super) fn new(samples: u32) -> Self {
        SwitchHistory { samples, decisions: VecDeque::with_capacity(DEPTH + 1) }
    }

    pub(super) fn push(&mut self, from: usize, to: usize) {
        self.decisions.push_back((from, to < from));
        if self.decisions.len() > DEPTH {
            self.decisions.pop_front();
        }
    }

    pub(super) fn clear(&mut self) {
        self.decisions.clear();
    }

    pub(super) fn request(&self, representations: usize) -> Option<Request> {
        let (mut drops, mut others) = (0u32, 0u32);
        for i in 0..representations {
            let here = |dropped| self.decisions.iter().filter(|d| **d == (i, dropped)).count() as u32;
            let dropped_here = here(true);
            drops += dropped_here;
            others += here(false);
            // Without others the ratio is infinite, and without either it is NaN: as in JavaScript.
            if drops + others >= self.samples && f64::from(drops) / f64::from(others) > MAX_SWITCH {
                let limit = if dropped_here > 0 { i.saturating_sub(1) } else { i };
                return Some(Request::new(NAME, limit));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(samples: u32, decisions: &[(usize, usize)]) -> Option<usize> {
        let mut history = SwitchHistory::new(samples);
        decisions.iter().for_each(|&(from, to)| history.push(from, to));
        history.request(5).map(|r| r.representation)
    }

    #[test]
    fn six_decisions_with_one_drop_limit_2_x() {
        let five = [(2, 2), (2, 2), (2, 2), (2, 2), (2, 1)];
        assert_eq!(limit(SAMPLES_2, &five), None, "five decisions are too few");
        assert_eq!(limit(SAMPLES_2, &[five.as_slice(), &[(1, 1)]].concat()), Some(1), "dropped from 2: below it");
    }

    #[test]
    fn five_x_needs_eight() {
        let seven = [(2, 1), (1, 2), (2, 2), (2, 2), (2, 2), (2, 2), (2, 2)];
        assert_eq!(limit(SAMPLES_5, &seven), None);
        assert_eq!(limit(SAMPLES_5, &[seven.as_slice(), &[(2, 2)]].concat()), Some(1));
        assert_eq!(limit(SAMPLES_2, &seven), Some(1));
    }

    #[test]
    fn the_limit_is_where_the_sum_is_reached() {
        // At 1 the sum is 1 of 2; at 3, which was not dropped from, it is 1 of 6: 3 itself.
        assert_eq!(limit(SAMPLES_2, &[(1, 0), (1, 3), (3, 3), (3, 3), (3, 3), (3, 3)]), Some(3));
        // Dropped from the lowest: impossible to go below.
        assert_eq!(limit(SAMPLES_2, &[(1, 0); 6]), Some(0));
    }

    #[test]
    fn a_drop_is_forgotten_after_eight_decisions() {
        let drop_then = |n: usize| [&[(2, 1)], [(2, 2)].repeat(n).as_slice()].concat();
        assert_eq!(limit(SAMPLES_2, &drop_then(7)), Some(1));
        assert_eq!(limit(SAMPLES_2, &drop_then(8)), None);
    }

    #[test]
    fn steady_decisions_and_a_cleared_history_limit_nothing() {
        assert_eq!(limit(SAMPLES_2, &[(2, 3), (3, 4), (4, 4), (4, 4), (4, 4), (4, 4)]), None);
        let mut history = SwitchHistory::new(SAMPLES_2);
        (0..8).for_each(|_| history.push(2, 1));
        assert!(history.request(5).is_some());
        history.clear();
        assert_eq!(history.request(5), None);
    }
}
