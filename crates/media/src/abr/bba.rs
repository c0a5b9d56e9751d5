//! BBA-0: the bitrate is a function of the buffer level only.
//!
//! f(B) = R_min                                        B <= r
//!      = R_min + (R_max - R_min) * (B - r) / cu       r < B < r + cu
//!      = R_max                                        B >= r + cu
//! next = R_min if B <= r; R_max if B >= r + cu;
//!        the highest R < f(B) if f(B) >= Rate+; the lowest R > f(B) if f(B) <= Rate-; otherwise the previous rate.
//! B buffered, s; r reservoir, cu cushion, s; Rate+, Rate- the neighbours of the previous rate.
//!
//! Huang, Johari, McKeown, Trunnell, Watson: "A Buffer-Based Approach to Rate Adaptation: Evidence from a Large Video
//! Streaming Service", SIGCOMM 2014, section 4 and algorithm 1.
//!
//! Ours: the paper's player holds 240 s; for another capacity the reservoir and the cushion keep their shares of it.

use super::options::check;
use super::{AbrRule, Decision, Entry, View};
use anabranch_units::Duration;

const NAME: &str = "bba-0";
/// The buffer of the paper's player (section 4).
const CAPACITY: Duration = Duration::from_secs(240);
/// r = 90 s of 240 s.
const RESERVOIR_SHARE: f64 = 90.0 / 240.0;
/// cu = 126 s of 240 s: the map ends at 216 s, nine tenths of the buffer.
const CUSHION_SHARE: f64 = 126.0 / 240.0;

pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "Maps the buffer's level to a bitrate, from the lowest at its reservoir to the highest at nine tenths full.",
    source: "Huang et al., SIGCOMM 2014, algorithm 1",
    create: |options| {
        options.expect_only(NAME, &["capacity"])?;
        let capacity = options.capacity.unwrap_or(CAPACITY);
        let capacity = check(NAME, "capacity", "longer than no time", capacity, |c| !c.is_zero())?.as_secs_f64();
        Ok(Box::new(Bba0 { reservoir: RESERVOIR_SHARE * capacity, cushion: CUSHION_SHARE * capacity }))
    },
};

/// Lengths in seconds.
#[derive(Debug)]
struct Bba0 {
    reservoir: f64,
    cushion: f64,
}

impl AbrRule for Bba0 {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        let (buffer, top, previous) = (view.buffer.as_secs_f64(), view.top, view.current.min(view.top));
        if buffer <= self.reservoir {
            return Decision::now(0, "within the reservoir");
        }
        if buffer >= self.reservoir + self.cushion {
            return Decision::now(top, "beyond the cushion");
        }
        let bps = |i: usize| view.ladder.bps(i);
        let mapped = bps(0) + (bps(top) - bps(0)) * (buffer - self.reservoir) / self.cushion;
        // At an end of the ladder the neighbour is the previous rate itself.
        if previous < top && mapped >= bps(previous + 1) {
            let highest_below = (0..=top).rev().find(|&i| bps(i) < mapped);
            return Decision::now(highest_below.unwrap_or(0), "the map passed the next higher rate");
        }
        if previous > 0 && mapped <= bps(previous - 1) {
            let lowest_above = (0..=top).find(|&i| bps(i) > mapped);
            return Decision::now(lowest_above.unwrap_or(top), "the map passed the next lower rate");
        }
        Decision::now(previous, "the map is between the neighbours")
    }
}

#[cfg(test)]
mod tests {
    use super::super::AbrOptions;
    use super::super::testing::{ladder, view};
    use super::*;

    /// With 240 s, R = 100, 200, 300, 400, 500: f(B) = 100 + 400 * (B - 90) / 126, so 200 at 121.5, 300 at 153, 400 at
    /// 184.5.
    fn chosen(buffer_ms: u64, current: usize) -> usize {
        let ladder = ladder(&[100, 200, 300, 400, 500]);
        let mut rule = (ENTRY.create)(&AbrOptions::default()).unwrap();
        rule.decide(&View { buffer: Duration::from_millis(buffer_ms), current, ..view(&ladder) }).representation
    }

    #[test]
    fn the_ends_of_the_map() {
        assert_eq!(chosen(0, 4), 0);
        assert_eq!(chosen(90_000, 4), 0);
        assert_eq!(chosen(216_000, 0), 4);
        assert_eq!(chosen(230_000, 0), 4);
    }

    #[test]
    fn it_stays_until_the_map_reaches_a_neighbour() {
        for current in [1, 2, 3] {
            assert_eq!(chosen(153_000, current), current, "f = 300, neither above nor below it");
        }
        assert_eq!(chosen(153_001, 1), 2, "f just above 300, and 300 is below it");
        assert_eq!(chosen(152_999, 1), 1, "f is above 200 and below 300");
        assert_eq!(chosen(152_999, 3), 2, "f just below 300: the lowest rate above it is 300");
        assert_eq!(chosen(184_499, 3), 3, "f is below 400 but above 300");
        assert_eq!(chosen(184_501, 2), 3);
    }

    #[test]
    fn far_from_the_previous_rate_it_takes_the_nearest_towards_it() {
        assert_eq!(chosen(190_000, 0), 3, "f = 417: the highest below");
        assert_eq!(chosen(100_000, 4), 1, "f = 131: the lowest above");
        assert_eq!(chosen(91_000, 0), 0, "f = 103, no lower neighbour");
        assert_eq!(chosen(215_000, 4), 4, "f = 496, no higher neighbour");
    }

    #[test]
    fn another_capacity_keeps_the_shares_and_the_top_ends_the_map() {
        let ladder = ladder(&[100, 200, 300, 400, 500]);
        let options = AbrOptions { capacity: Some(Duration::from_secs(24)), ..AbrOptions::default() };
        let mut rule = (ENTRY.create)(&options).unwrap();
        let mut at = |ms, top| {
            rule.decide(&View { buffer: Duration::from_millis(ms), current: 1, top, ..view(&ladder) }).representation
        };
        assert_eq!((at(9_000, 4), at(15_301, 4), at(21_600, 4)), (0, 2, 4));
        assert_eq!((at(21_600, 2), at(15_301, 2)), (2, 1), "f = 200 between 100 and 300");
    }

    #[test]
    fn a_capacity_of_nothing_is_refused() {
        assert!((ENTRY.create)(&AbrOptions { capacity: Some(Duration::ZERO), ..AbrOptions::default() }).is_err());
    }
}
