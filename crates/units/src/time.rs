//! Points in time and lengths of time, in nanoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A point in time: nanoseconds since the run began. Unlike the standard library's, it starts at zero,
/// so a simulation and its tests need no wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A length of time in nanoseconds. Never negative; subtraction saturates at zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Instant {
    /// The beginning of the run.
    pub const ZERO: Instant = Instant(0);
    /// Later than every event: "never".
    pub const FAR_FUTURE: Instant = Instant(u64::MAX);

    /// The instant `nanos` after the beginning.
    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    /// Nanoseconds since the beginning.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the beginning, for output and formulas.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Time since `earlier`; zero if that is later than `self`.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// A length of zero.
    pub const ZERO: Duration = Duration(0);
    /// Longer than any run.
    pub const MAX: Duration = Duration(u64::MAX);

    /// `n` nanoseconds.
    pub const fn from_nanos(n: u64) -> Self {
        Duration(n)
    }

    /// `n` microseconds.
    pub const fn from_micros(n: u64) -> Self {
        Duration(n * 1_000)
    }

    /// `n` milliseconds.
    pub const fn from_millis(n: u64) -> Self {
        Duration(n * 1_000_000)
    }

    /// `n` seconds.
    pub const fn from_secs(n: u64) -> Self {
        Duration(n * 1_000_000_000)
    }

    /// The nearest whole nanosecond to `s` seconds; negative or undefined values give zero.
    pub fn from_secs_f64(s: f64) -> Self {
        // `as` saturates and maps NaN to zero, as specified.
        Duration((s * 1e9 + 0.5) as u64)
    }

    /// The length in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The length in whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// The length in whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The length in seconds, for output and formulas.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Whether the length is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The length times a factor, rounded to the nearest nanosecond.
    pub fn mul_f64(self, factor: f64) -> Self {
        Duration((self.0 as f64 * factor + 0.5) as u64)
    }

    /// The length times an integer; at most [`Duration::MAX`].
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Duration(self.0.saturating_mul(factor))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, d: Duration) -> Instant {
        Instant(self.0.saturating_add(d.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, d: Duration) -> Instant {
        Instant(self.0.saturating_sub(d.0))
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, d: Duration) -> Duration {
        Duration(self.0.saturating_add(d.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub for Duration {
    type Output = Duration;
    fn sub(self, d: Duration) -> Duration {
        Duration(self.0.saturating_sub(d.0))
    }
}

impl SubAssign for Duration {
    fn sub_assign(&mut self, d: Duration) {
        *self = *self - d;
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    fn mul(self, n: u64) -> Duration {
        self.saturating_mul(n)
    }
}

impl Div<u64> for Duration {
    type Output = Duration;
    fn div(self, n: u64) -> Duration {
        Duration(self.0 / n)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} s", self.as_secs_f64())
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1_000_000_000 => write!(f, "{} s", n as f64 / 1e9),
            n if n >= 1_000_000 => write!(f, "{} ms", n as f64 / 1e6),
            n if n >= 1_000 => write!(f, "{} us", n as f64 / 1e3),
            n => write!(f, "{n} ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtraction_stops_at_zero_and_addition_at_the_end_of_time() {
        assert_eq!(Instant::ZERO.since(Instant::from_nanos(5)), Duration::ZERO);
        assert_eq!(Instant::FAR_FUTURE + Duration::from_secs(1), Instant::FAR_FUTURE);
        assert_eq!(Duration::from_millis(1) - Duration::from_secs(1), Duration::ZERO);
    }

    #[test]
    fn floating_seconds_round_to_the_nearest_nanosecond() {
        assert_eq!(Duration::from_secs_f64(0.1), Duration::from_millis(100));
        assert_eq!(Duration::from_secs_f64(-1.0), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(f64::NAN), Duration::ZERO);
    }
}
