//! Rates of transmission.

use crate::Duration;
use core::fmt;

/// A rate in bits per second. The highest one, [`Bandwidth::INFINITE`], takes no time to send anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bandwidth(u64);

impl Bandwidth {
    /// Zero: no packet is ever sent.
    pub const ZERO: Bandwidth = Bandwidth(0);
    /// No limit: sending takes no time.
    pub const INFINITE: Bandwidth = Bandwidth(u64::MAX);

    /// `n` bits per second.
    pub const fn from_bps(n: u64) -> Self {
        Bandwidth(n)
    }

    /// `n` million bits per second.
    pub const fn from_mbps(n: u64) -> Self {
        Bandwidth(n * 1_000_000)
    }

    /// The rate at which `bytes` take `time`; infinite if `time` is zero.
    pub fn from_bytes_per(bytes: u64, time: Duration) -> Self {
        if time.is_zero() {
            return Bandwidth::INFINITE;
        }
        let bits = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(time.as_nanos());
        Bandwidth(u64::try_from(bits).unwrap_or(u64::MAX))
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Time to send `bytes` at this rate, rounded up to a nanosecond: a sender that waits this long
    /// never exceeds the rate. [`Duration::MAX`] at rate zero.
    pub fn time_to_send(self, bytes: u64) -> Duration {
        if self.0 == u64::MAX {
            return Duration::ZERO;
        }
        if self.0 == 0 {
            return Duration::MAX;
        }
        // 64 bits hold the product up to 2.3 GB, so packets never pay for a 128-bit division.
        match bytes.checked_mul(8_000_000_000) {
            Some(scaled) => Duration::from_nanos(scaled.div_ceil(self.0)),
            None => {
                let scaled = u128::from(bytes) * 8_000_000_000;
                let nanos = scaled.div_ceil(u128::from(self.0));
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
        }
    }

    /// Whole bytes sent in `time`.
    pub fn bytes_in(self, time: Duration) -> u64 {
        let bytes = u128::from(self.0) * u128::from(time.as_nanos()) / 8_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// The rate times a factor.
    pub fn mul_f64(self, factor: f64) -> Self {
        Bandwidth((self.0 as f64 * factor) as u64)
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            u64::MAX => write!(f, "infinite"),
            n if n >= 1_000_000_000 => write!(f, "{} Gb/s", n as f64 / 1e9),
            n if n >= 1_000_000 => write!(f, "{} Mb/s", n as f64 / 1e6),
            n if n >= 1_000 => write!(f, "{} kb/s", n as f64 / 1e3),
            n => write!(f, "{n} b/s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_on_two_megabits_takes_six_milliseconds() {
        let rate = Bandwidth::from_mbps(2);
        assert_eq!(rate.time_to_send(1500), Duration::from_millis(6));
        assert_eq!(rate.bytes_in(Duration::from_millis(6)), 1500);
    }

    #[test]
    fn waiting_never_exceeds_the_rate() {
        let rate = Bandwidth::from_bps(3);
        assert_eq!(rate.time_to_send(1), Duration::from_nanos(2_666_666_667));
        assert_eq!(Bandwidth::from_bps(1_000).time_to_send(u64::MAX), Duration::MAX);
        assert_eq!(Bandwidth::ZERO.time_to_send(1), Duration::MAX);
        assert_eq!(Bandwidth::INFINITE.time_to_send(u64::MAX), Duration::ZERO);
    }
}
