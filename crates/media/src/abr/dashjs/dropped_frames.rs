//! DroppedFramesRule: excludes representations whose pictures this machine drops.
//!
//! the first i >= 1 with more than 375 pictures and dropped / all > 0.15: the limit is i - 1
//!
//! dash.js 2.9.3 and 5.2.1, rules/abr/DroppedFramesRule.js and rules/DroppedFramesHistory.js; off by default in 5.x.
//! Pictures are counted for the representation on screen, with two mistakes that we make too. In 2.x, when the
//! representation on screen changes, it goes on counting for the *old* one until the next change
//! (AbrController.onQualityChangeRendered); before the first change it counts for none. In 5.x the pictures before the
//! first change count for the one that is shown next (DroppedFramesHistory.push).

use super::super::view::Pictures;
use super::dynamic::Generation;
use super::request::Request;

pub(super) const NAME: &str = "DroppedFramesRule";
/// `GOOD_SAMPLE_SIZE`, `minimumSampleSize`.
const GOOD_SAMPLE_SIZE: u64 = 375;
/// `DROPPED_PERCENTAGE_FORBID`, `droppedFramesPercentageThreshold`.
const DROPPED_PERCENTAGE_FORBID: f64 = 0.15;

#[derive(Debug)]
pub(super) struct DroppedFrames {
    generation: Generation,
    counts: Vec<Pictures>,
    counted: Pictures,
    on_screen: Option<usize>,
}

impl DroppedFrames {
    pub(super) fn new(generation: Generation) -> Self {
        DroppedFrames { generation, counts: Vec::new(), counted: Pictures::default(), on_screen: None }
    }

    /// Counts the pictures since the last call.
    pub(super) fn count(&mut self, pictures: Pictures) {
        if let Some(on_screen) = self.on_screen {
            if self.counts.len() <= on_screen {
                self.counts.resize(on_screen + 1, Pictures::default());
            }
            let count = &mut self.counts[on_screen];
            count.total += pictures.total - self.counted.total;
            count.dropped += pictures.dropped - self.counted.dropped;
        } else if self.generation == Generation::V5 {
            return;
        }
        self.counted = pictures;
    }

    /// Another representation came on screen.
    pub(super) fn shown(&mut self, from: usize, to: usize, pictures: Pictures) {
        match self.generation {
            Generation::V2 => {
                self.on_screen = Some(from);
                self.count(pictures);
            }
            Generation::V5 => {
                self.count(pictures);
                self.on_screen = Some(to);
            }
        }
    }

    pub(super) fn request(&self) -> Option<Request> {
        let too_many = |count: &Pictures| {
            count.total > GOOD_SAMPLE_SIZE && count.dropped as f64 / count.total as f64 > DROPPED_PERCENTAGE_FORBID
        };
        let first = self.counts.iter().skip(1).position(too_many)?;
        Some(Request::new(NAME, first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pictures(total: u64, dropped: u64) -> Pictures {
        Pictures { total, dropped }
    }

    /// The limit after this many pictures of one representation, counted from zero.
    fn limit(on_screen: usize, total: u64, dropped: u64) -> Option<usize> {
        let mut rule = DroppedFrames::new(Generation::V5);
        rule.shown(9, on_screen, pictures(0, 0));
        rule.count(pictures(total, dropped));
        rule.request().map(|r| r.representation)
    }

    #[test]
    fn more_than_375_pictures_and_more_than_15_percent() {
        assert_eq!(limit(3, 375, 375), None);
        assert_eq!(limit(3, 376, 56), None, "14.9 %");
        assert_eq!(limit(3, 376, 57), Some(2), "15.2 %");
        assert_eq!(limit(3, 400, 60), None, "15 % exactly");
        assert_eq!(limit(3, 400, 61), Some(2));
        assert_eq!(limit(0, 400, 400), None, "nothing is below the lowest");
    }

    #[test]
    fn the_lowest_representation_in_trouble_decides() {
        let mut rule = DroppedFrames::new(Generation::V5);
        rule.shown(0, 3, pictures(0, 0));
        rule.shown(3, 2, pictures(400, 200));
        rule.count(pictures(800, 250));
        assert_eq!(rule.request().map(|r| r.representation), Some(2), "3: 200 of 400; 2: 50 of 400");
        rule.count(pictures(801, 251));
        rule.count(pictures(810, 280));
        assert_eq!(rule.request().map(|r| r.representation), Some(1), "80 of 410");
    }

    #[test]
    fn two_x_counts_for_the_representation_before() {
        let mut rule = DroppedFrames::new(Generation::V2);
        rule.count(pictures(1_000, 500));
        assert_eq!(rule.request(), None, "before the first change nothing is counted");
        rule.shown(2, 4, pictures(1_000, 500));
        assert_eq!(rule.request(), None);
        rule.count(pictures(1_400, 700));
        assert_eq!(rule.request().map(|r| r.representation), Some(1), "though it was not 2 that was on screen");
    }

    #[test]
    fn five_x_counts_for_the_one_on_screen_and_what_was_before_for_the_first() {
        let mut rule = DroppedFrames::new(Generation::V5);
        rule.count(pictures(1_000, 500));
        rule.shown(4, 2, pictures(1_000, 500));
        assert_eq!(rule.request(), None);
        rule.count(pictures(1_001, 500));
        assert_eq!(rule.request().map(|r| r.representation), Some(1));
    }
}
