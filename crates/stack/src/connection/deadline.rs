//! When a timer is due.

use anabranch_units::Instant;

/// The time at which a timer is due; the default is one that does not run. As one number, which the earliest of many
/// deadlines is found from without a branch: it is looked for after each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deadline(Instant);

impl Deadline {
    /// Of a timer that does not run.
    pub const NEVER: Deadline = Deadline(Instant::FAR_FUTURE);

    /// The timer is due at `time`.
    pub const fn at(time: Instant) -> Self {
        Deadline(time)
    }

    /// Whether the timer runs.
    pub fn runs(self) -> bool {
        self != Deadline::NEVER
    }

    /// Whether the timer runs and is due by `now`.
    pub fn is_due(self, now: Instant) -> bool {
        self.runs() && self.0 <= now
    }

    /// The time; [`Instant::FAR_FUTURE`] if the timer does not run.
    pub const fn time(self) -> Instant {
        self.0
    }
}

impl Default for Deadline {
    fn default() -> Self {
        Deadline::NEVER
    }
}

impl From<Option<Instant>> for Deadline {
    #[inline]
    fn from(time: Option<Instant>) -> Self {
        time.map_or(Deadline::NEVER, Deadline::at)
    }
}
