//! Times of tests.

use anabranch_units::{Duration, Instant};

pub(crate) fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

pub(crate) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
