//! The operating system's monotonic clock.

use anabranch_units::Instant;

/// A monotonic clock that starts at zero when it is made; precise to the nanosecond as far as the machine is.
#[derive(Clone, Copy, Debug)]
pub struct Clock(std::time::Instant);

impl Clock {
    /// A clock that shows zero now.
    #[allow(clippy::new_without_default)] // "Now" is no default: two of them differ.
    pub fn new() -> Self {
        Clock(std::time::Instant::now())
    }

    /// The time since the clock was made.
    pub fn now(&self) -> Instant {
        let nanos = self.0.elapsed().as_nanos();
        // 64 bits last 584 years.
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}
