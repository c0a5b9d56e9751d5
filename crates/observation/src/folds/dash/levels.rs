//! What is buffered, as a function of time: it jumps when something is appended, and falls by a second per second while
//! pictures move.

use anabranch_units::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
struct Point {
    at: Instant,
    level: Duration,
    falling: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Levels(Vec<Point>);

impl Point {
    fn level_at(&self, at: Instant) -> Duration {
        if self.falling { self.level - at.since(self.at) } else { self.level }
    }

    /// The integral from `from` to `to`, both after this point, s^2.
    fn integral(&self, from: Instant, to: Instant) -> f64 {
        let empty = self.at + self.level;
        let to = if self.falling { to.min(empty.max(from)) } else { to };
        let mean = (self.level_at(from).as_secs_f64() + self.level_at(to).as_secs_f64()) / 2.0;
        mean * to.since(from).as_secs_f64()
    }
}

impl Levels {
    pub fn new(start: Instant) -> Self {
        Levels(vec![Point { at: start, level: Duration::ZERO, falling: false }])
    }

    fn last(&self) -> Point {
        self.0[self.0.len() - 1]
    }

    pub fn set(&mut self, at: Instant, level: Duration) {
        self.0.push(Point { at, level, falling: self.last().falling });
    }

    pub fn set_moving(&mut self, at: Instant, falling: bool) {
        self.0.push(Point { at, level: self.last().level_at(at), falling });
    }

    /// The mean over time, s; zero over no time.
    pub fn mean(&self, from: Instant, to: Instant) -> f64 {
        let length = to.since(from).as_secs_f64();
        let mut sum = 0.0;
        for (n, point) in self.0.iter().enumerate() {
            let (begin, end) = (point.at.max(from), self.0.get(n + 1).map_or(to, |next| next.at.min(to)));
            if begin < end {
                sum += point.integral(begin, end);
            }
        }
        if length > 0.0 { sum / length } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_ms, ms};

    #[test]
    fn the_mean_is_exact() {
        let mut levels = Levels::new(at_ms(0));
        levels.set(at_ms(1_000), ms(4_000));
        levels.set_moving(at_ms(1_000), true);
        // 0 for a second; from 4 to 2 in two seconds; from 4 to 0 in four; then 0.
        levels.set(at_ms(3_000), ms(4_000));
        assert_eq!(levels.mean(at_ms(0), at_ms(1_000)), 0.0);
        assert_eq!(levels.mean(at_ms(1_000), at_ms(3_000)), 3.0);
        assert_eq!(levels.mean(at_ms(0), at_ms(7_000)), (6.0 + 8.0) / 7.0);
        assert_eq!(levels.mean(at_ms(0), at_ms(10_000)), 1.4);
        assert_eq!(levels.mean(at_ms(8_000), at_ms(10_000)), 0.0);
        levels.set_moving(at_ms(4_000), false);
        assert_eq!(levels.mean(at_ms(3_000), at_ms(6_000)), (3.5 + 6.0) / 3.0);
        assert_eq!(levels.mean(at_ms(5_000), at_ms(5_000)), 0.0);
    }
}
