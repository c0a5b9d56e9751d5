//! Helpers of the rules' tests.

use super::{Download, Ladder, Mark, Pictures, Playback, View};
use anabranch_units::{Duration, Instant};

/// Media segments of one second, a hundred of them.
pub(super) fn ladder(bitrates: &[u64]) -> Ladder {
    Ladder::new(bitrates.to_vec(), Duration::from_secs(1), 100).unwrap()
}

/// Media segments of two seconds, fifty of them, to detect a duration in the wrong place.
pub(super) fn two_second_ladder(bitrates: &[u64]) -> Ladder {
    Ladder::new(bitrates.to_vec(), Duration::from_secs(2), 50).unwrap()
}

/// A player at the beginning, to be changed by the tests.
pub(super) fn view(ladder: &Ladder) -> View<'_> {
    View {
        ladder,
        now: Instant::ZERO,
        buffer: Duration::ZERO,
        buffer_state: None,
        buffer_target: Duration::from_secs(12),
        playback: Playback::Steady,
        current: 0,
        top: ladder.len() - 1,
        next: 0,
        downloads: &[],
        pictures: Pictures::default(),
    }
}

pub(super) fn at_ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// A download of one second at `bps` (rounded down to whole bytes), without latency.
pub(super) fn download(bps: u64) -> Download {
    timed(0, 0, 1_000, bps / 8)
}

/// A download: requested, first reported (without bytes), complete, in milliseconds.
pub(super) fn timed(requested: u64, first: u64, finished: u64, bytes: u64) -> Download {
    Download {
        index: 0,
        representation: 0,
        requested_at: at_ms(requested),
        first_byte_at: at_ms(first),
        first_progress: Some(Mark { at: at_ms(first), bytes: 0 }),
        last_progress: Mark { at: at_ms(finished), bytes },
        finished_at: at_ms(finished),
    }
}
