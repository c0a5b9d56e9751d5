//! When nothing more will happen to a run.

use anabranch_units::{Duration, Instant};

/// For so long a session may wait without any path: data that is on its way arrives within it.
const CUT_OFF_LIMIT: Duration = Duration::from_secs(10);

/// What is known of a session that is not over.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// When payload arrived last; the session's start if none did.
    pub last_arrival: Instant,
    /// The player has nothing to do until more arrives.
    pub starved: bool,
    /// Every path is known to pass nothing. Where that is not observed: false.
    pub cut_off: bool,
}

/// No session can receive anything any more, as far as one can know: each of them is starved, and nothing arrived for
/// `stuck_after` since the last event of the scenario.
pub fn is_stuck(
    now: Instant,
    last_event: Instant,
    stuck_after: Duration,
    mut sessions: impl Iterator<Item = Waiting>,
) -> bool {
    // An event may bring a path back, which a retransmission timer then has to notice.
    now >= last_event
        && sessions.all(|session| {
            let limit = if session.cut_off { stuck_after.min(CUT_OFF_LIMIT) } else { stuck_after };
            session.starved && now.since(last_event.max(session.last_arrival)) >= limit
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUCK_AFTER: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn stuck(now: u64, last_event: u64, sessions: &[Waiting]) -> bool {
        is_stuck(at(now), at(last_event), STUCK_AFTER, sessions.iter().copied())
    }

    #[test]
    fn the_limit_counts_from_the_last_arrival_or_the_last_event() {
        let session = Waiting { last_arrival: at(100), starved: true, cut_off: false };
        assert!(!stuck(159, 0, &[session]) && stuck(160, 0, &[session]));
        assert!(!stuck(179, 120, &[session]) && stuck(180, 120, &[session]));
        assert!(!stuck(160, 161, &[session]), "an event is still to come");
    }

    #[test]
    fn without_a_path_ten_seconds_are_enough() {
        let session = Waiting { last_arrival: at(100), starved: true, cut_off: true };
        assert!(!stuck(109, 0, &[session]) && stuck(110, 0, &[session]));
        let soon = is_stuck(at(105), at(0), Duration::from_secs(5), std::iter::once(session));
        assert!(soon, "the limit of the scenario is the shorter one");
    }

    #[test]
    fn one_session_that_can_go_on_is_enough() {
        let waits = Waiting { last_arrival: at(0), starved: true, cut_off: false };
        let plays = Waiting { starved: false, ..waits };
        let receives = Waiting { last_arrival: at(150), ..waits };
        assert!(stuck(160, 0, &[waits, waits]));
        assert!(!stuck(160, 0, &[waits, plays]) && !stuck(160, 0, &[receives, waits]));
    }
}
