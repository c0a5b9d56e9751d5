//! How late acknowledgments come: paths that pause may do so again, and are not given up for it (`silence.rs`).

use anabranch_units::{Duration, Instant};

/// The longest pause of a radio link that works: a path is not given up sooner while it is unknown, or has paused.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// A path that paused may pause for longer the next time. Over half an hour of recorded LTE, twice the lateness gave up
/// a working path once, and three times the lateness never (tests/test_silence.py).
const PAUSE_FACTOR: u64 = 3;
/// How long pauses are remembered, in two halves.
const MEMORY: Duration = Duration::from_secs(60);
/// After this time a path that has not paused is taken for one that does not.
const KNOWN_AFTER: Duration = Duration::from_secs(10);

/// How late the acknowledgments of a subflow have been, behind the time at which they were expected.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lateness {
    /// When the next acknowledgment was expected, and when the last one had come by then.
    expected: Option<Instant>,
    acked_at: Instant,
    /// The most of this half of the memory, and of the one before.
    current: Duration,
    previous: Duration,
    /// When this half began, and when the first one did.
    since: Instant,
    began: Option<Instant>,
}

impl Lateness {
    /// The last acknowledgment came at `acked_at`, and the next one is expected at `expected`.
    pub(super) fn note(&mut self, now: Instant, acked_at: Instant, expected: Instant) {
        if self.began.is_none() {
            (self.began, self.since) = (Some(now), now);
        }
        if let Some(expected) = self.expected.filter(|_| acked_at != self.acked_at) {
            self.current = self.current.max(acked_at.since(expected));
        }
        (self.acked_at, self.expected) = (acked_at, Some(expected));
        if now.since(self.since) >= MEMORY / 2 {
            (self.previous, self.current, self.since) = (self.current, Duration::ZERO, now);
        }
    }

    /// Nothing is outstanding, so no acknowledgment is expected.
    pub(super) fn rest(&mut self) {
        self.expected = None;
    }

    /// For how long the subflow may pause.
    pub(super) fn pause(&self, now: Instant) -> Duration {
        let known = self.began.is_some_and(|began| now.since(began) >= KNOWN_AFTER);
        let most = self.current.max(self.previous) * PAUSE_FACTOR;
        if known { most.min(LONGEST_PAUSE) } else { LONGEST_PAUSE }
    }
}
