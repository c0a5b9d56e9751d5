//! DroppedFramesRule: a representation that this machine cannot show in time is too high.
//!
//! the first i >= 1 with more than 375 pictures and dropped / all > 0.15: the limit is i - 1
//!
//! dash.js 2.9.3 and 5.2.1, rules/abr/DroppedFramesRule.js and rules/DroppedFramesHistory.js; off by default in 5.x.
//! Pictures are counted for the representation on screen. 2.x makes a mistake there, which we make too: when the
//! representation on screen changes, it goes on counting for the *old* one until the next change
//! (AbrController.onQualityChangeRendered), and before the first change it counts for none.

use super::super::view::Pictures;
use super::request::Request;

pub(super) const NAME: &str = "DroppedFramesRule";
/// `GOOD_SAMPLE_SIZE`, `minimumSampleSize`.
const GOOD_SAMPLE_SIZE: u64 = 375;
/// `DROPPED_PERCENTAGE_FORBID`, `droppedFramesPercentageThreshold`.
const DROPPED_PERCENTAGE_FORBID: f64 = 0.15;

#[derive(Debug, Default)]
pub(super) struct DroppedFrames {
    counts: Vec<Pictures>,
    counted: Pictures,
    on_screen: Option<usize>,
}

impl DroppedFrames {
    /// Counts the pictures since the last call.
    pub(super) fn count(&mut self, pictures: Pictures) {
        if let Some(on_screen) = self.on_screen {
            if self.counts.len() <= on_screen {
                self.counts.resize(on_screen + 1, Pictures::default());
            }
            let count = &mut self.counts[on_screen];
            count.total += pictures.total - self.counted.total;
            count.dropped += pictures.dropped - self.counted.dropped;
        }
        self.counted = pictures;
    }

    /// 2.x: the representation on screen changed from this one.
    pub(super) fn shown_2(&mut self, from: usize, pictures: Pictures) {
        self.on_screen = Some(from);
        self.count(pictures);
    }

    /// 5.x: the representation on screen changed to this one.
    pub(super) fn shown_5(&mut self, to: usize, pictures: Pictures) {
        self.count(pictures);
        self.on_screen = Some(to);
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

    fn limit(on_screen: usize, total: u64, dropped: u64) -> Option<usize> {
        let mut rule = DroppedFrames::default();
        rule.shown_5(on_screen, pictures(0, 0));
        rule.count(pictures(total, dropped));
        rule.request().map(|r| r.representation)
    }

    #[test]
    fn more_than_375_pictures_and_more_than_15_percent() {
        assert_eq!(limit(3, 375, 375), None);
        assert_eq!(limit(3, 376, 56), None, "14.9 %");
        assert_eq!(limit(3, 400, 60), None, "15 % exactly");
        assert_eq!(limit(3, 400, 61), Some(2));
        assert_eq!(limit(0, 400, 400), None, "nothing is below the lowest");
    }

    #[test]
    fn the_lowest_representation_in_trouble_decides() {
        let mut rule = DroppedFrames::default();
        rule.shown_5(3, pictures(0, 0));
        rule.shown_5(2, pictures(400, 200));
        rule.count(pictures(800, 400));
        assert_eq!(rule.request().map(|r| r.representation), Some(1));
    }

    #[test]
    fn two_x_counts_for_the_representation_before() {
        let mut rule = DroppedFrames::default();
        rule.count(pictures(1_000, 500));
        assert_eq!(rule.request(), None, "before the first change nothing is counted");
        rule.shown_2(2, pictures(1_000, 500));
        rule.count(pictures(1_400, 700));
        assert_eq!(rule.request().map(|r| r.representation), Some(1), "though it was not 2 that was on screen");
    }

    #[test]
    fn five_x_counts_for_the_one_on_screen() {
        let mut rule = DroppedFrames::default();
        rule.shown_5(2, pictures(1_000, 500));
        assert_eq!(rule.request(), None, "the pictures before were of another one");
        rule.shown_5(4, pictures(1_400, 700));
        assert_eq!(rule.request().map(|r| r.representation), Some(1));
    }
}
