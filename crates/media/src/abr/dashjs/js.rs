//! JavaScript's arithmetic, for decisions that depend on its last digit.

use anabranch_units::{Duration, Instant};

/// A `Date`: whole milliseconds, rounded down.
pub(super) fn date_ms(at: Instant) -> f64 {
    (at.as_nanos() / 1_000_000) as f64
}

/// A `DOMHighResTimeStamp`: milliseconds with a fraction. (Browsers round it to 5 or 100 us; we do not.)
pub(super) fn timestamp_ms(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e6
}

/// A length of time in milliseconds, unrounded.
pub(super) fn millis(length: Duration) -> f64 {
    length.as_nanos() as f64 / 1e6
}

/// `Math.round`: halves go up.
pub(super) fn round(x: f64) -> f64 {
    let floor = x.floor();
    if x - floor >= 0.5 { floor + 1.0 } else { floor }
}

/// `+x.toFixed(2)` of a number that is not negative: the nearest hundredth to the exact binary value, the larger of
/// two.
pub(super) fn fixed2(x: f64) -> f64 {
    let scaled = x * 100.0;
    if !scaled.is_finite() {
        return x;
    }
    let floor = scaled.floor();
    // The product was rounded; its rounding error decides where it is exactly a half.
    let lost = libm::fma(x, 100.0, -scaled);
    let above_half = (scaled - floor - 0.5) + lost >= 0.0;
    (if above_half { floor + 1.0 } else { floor }) / 100.0
}

/// `DashMetrics.getCurrentBufferLevel`: seconds, rounded to the millisecond.
pub(super) fn level_s(buffer: Duration) -> f64 {
    ((buffer.as_nanos() + 500_000) / 1_000_000) as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_up() {
        assert_eq!((round(2.5), round(3.5), round(2.4), round(-2.5)), (3.0, 4.0, 2.0, -2.0));
        assert_eq!(round(0.499_999_999_999_999_94), 0.0, "where adding a half and rounding down gives one");
        assert!(round(f64::INFINITY).is_infinite() && round(f64::NAN).is_nan());
    }

    #[test]
    fn two_decimals_are_of_the_exact_value() {
        assert_eq!(fixed2(0.125), 0.13, "a tie");
        assert_eq!(fixed2(1.005), 1.0, "1.005 is a little less than it says");
        assert_eq!(fixed2(8.345), 8.35, "8.345 is a little more");
        assert_eq!(fixed2(10.235), 10.23, "the product is a tie only because it was rounded");
        assert_eq!(fixed2(1.8), 1.8);
        assert!(fixed2(f64::INFINITY).is_infinite());
    }

    #[test]
    fn dates_lose_their_fraction_and_levels_are_rounded() {
        assert_eq!(date_ms(Instant::from_nanos(1_999_999)), 1.0);
        assert_eq!(timestamp_ms(Instant::from_nanos(1_500_000)), 1.5);
        assert_eq!(millis(Duration::from_micros(2_500)), 2.5);
        assert_eq!(level_s(Duration::from_micros(12_345_499)), 12.345);
        assert_eq!(level_s(Duration::from_micros(12_345_500)), 12.346);
    }
}
