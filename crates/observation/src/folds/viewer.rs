//! What the viewer saw, folded from what the player said.
//!
//! Time is counted from the session's start: start-up, then playing and stalls in turn. At any instant after the first
//! picture, `startup_s + played_s + stall_s` is the time that has passed, or passed until the end of the video.

use anabranch_events::PlayerEvent;
use anabranch_units::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    StartingUp,
    Playing { since: Instant },
    Stalled { since: Instant },
    Over,
}

/// The fold. It may be asked for a report at any instant, so it also serves a run that is cut off.
#[derive(Clone, Debug)]
pub struct ViewerMetrics {
    start: Instant,
    phase: Phase,
    startup: Option<Duration>,
    played: Duration,
    stalled: Duration,
    longest_stall: Duration,
    stalls: u64,
    discards: u64,
    underflows: u64,
    flushed: u64,
}

/// What [`ViewerMetrics`] found; the field names are those of `run --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ViewerReport {
    /// From the session's start to the first picture, in seconds; null if there was none.
    pub startup_s: Option<f64>,
    /// Intervals with a frozen picture, after the start and before the end. One that ended in the instant in which it
    /// began is none.
    pub stalls: u64,
    /// Their length in all, in seconds.
    pub stall_s: f64,
    /// The longest of them, in seconds; zero without any.
    pub longest_stall_s: f64,
    /// Time with moving pictures, in seconds.
    pub played_s: f64,
    /// Pictures dropped as late.
    pub picture_discards: u64,
    /// Late clock references (VLC).
    pub buffer_underflows: u64,
    /// Pictures thrown away, unshown and not counted as discards, when the player buffered anew.
    pub pictures_flushed: u64,
}

impl ViewerMetrics {
    /// For a session that begins at `start`.
    pub fn new(start: Instant) -> Self {
        ViewerMetrics {
            start,
            phase: Phase::StartingUp,
            startup: None,
            played: Duration::ZERO,
            stalled: Duration::ZERO,
            longest_stall: Duration::ZERO,
            stalls: 0,
            discards: 0,
            underflows: 0,
            flushed: 0,
        }
    }

    /// Takes in one event, in the order in which they were said.
    pub fn observe(&mut self, at: Instant, event: &PlayerEvent) {
        match event {
            PlayerEvent::PlaybackStarted => {
                self.startup = Some(at.since(self.start));
                self.enter(at, Phase::Playing { since: at });
            }
            PlayerEvent::StallBegan => self.enter(at, Phase::Stalled { since: at }),
            PlayerEvent::StallEnded => self.enter(at, Phase::Playing { since: at }),
            PlayerEvent::PlaybackEnded => self.enter(at, Phase::Over),
            PlayerEvent::PictureDiscarded { .. } => self.discards += 1,
            PlayerEvent::PicturesFlushed { count, .. } => self.flushed += u64::from(*count),
            PlayerEvent::BufferUnderflow { .. } => self.underflows += 1,
            PlayerEvent::Requested { .. }
            | PlayerEvent::FirstByte { .. }
            | PlayerEvent::ResponseComplete { .. }
            | PlayerEvent::PlayoutDelayRaised { .. }
            | PlayerEvent::BufferLevel { .. }
            | PlayerEvent::RepresentationChosen { .. }
            | PlayerEvent::InitRequested { .. }
            | PlayerEvent::SegmentRequested { .. }
            | PlayerEvent::SegmentAbandoned { .. }
            | PlayerEvent::AudioRequested { .. }
            | PlayerEvent::Reconnected
            | PlayerEvent::SegmentAppended { .. }
            | PlayerEvent::SegmentShown { .. }
            | PlayerEvent::BufferStateChanged { .. }
            | PlayerEvent::Noted(_) => {}
        }
    }

    /// The metrics of a session that ended, or was cut off, at `end`.
    pub fn finish(&self, end: Instant) -> ViewerReport {
        let mut closed = self.clone();
        closed.enter(end, Phase::Over);
        ViewerReport {
            startup_s: closed.startup.map(Duration::as_secs_f64),
            stalls: closed.stalls,
            stall_s: closed.stalled.as_secs_f64(),
            longest_stall_s: closed.longest_stall.as_secs_f64(),
            played_s: closed.played.as_secs_f64(),
            picture_discards: closed.discards,
            buffer_underflows: closed.underflows,
            pictures_flushed: closed.flushed,
        }
    }

    fn enter(&mut self, at: Instant, next: Phase) {
        match self.phase {
            Phase::Playing { since } => self.played += at.since(since),
            Phase::Stalled { since } => {
                self.stalled += at.since(since);
                self.longest_stall = self.longest_stall.max(at.since(since));
                self.stalls += u64::from(at > since);
            }
            Phase::StartingUp | Phase::Over => {}
        }
        self.phase = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at_ms;

    fn fold(events: &[(u64, PlayerEvent)]) -> ViewerMetrics {
        let mut metrics = ViewerMetrics::new(at_ms(1_000));
        for (ms, event) in events {
            metrics.observe(at_ms(*ms), event);
        }
        metrics
    }

    #[test]
    fn time_is_divided_into_startup_playing_and_stalls() {
        let underflow = PlayerEvent::BufferUnderflow { late: Duration::from_millis(1) };
        let metrics = fold(&[
            (1_800, PlayerEvent::PlaybackStarted),
            (5_000, PlayerEvent::StallBegan),
            (5_500, PlayerEvent::PictureDiscarded { frame: 7 }),
            (6_000, underflow),
            (6_000, PlayerEvent::PicturesFlushed { first: 8, count: 4 }),
            (7_000, PlayerEvent::StallEnded),
            (8_000, PlayerEvent::StallBegan),
            (8_500, PlayerEvent::StallEnded),
            (9_000, PlayerEvent::StallBegan),
            (9_000, PlayerEvent::StallEnded),
            (10_000, PlayerEvent::PlaybackEnded),
        ]);
        let report = metrics.finish(at_ms(60_000));
        let expected = ViewerReport {
            startup_s: Some(0.8),
            stalls: 2,
            stall_s: 2.5,
            longest_stall_s: 2.0,
            played_s: 5.7,
            picture_discards: 1,
            buffer_underflows: 1,
            pictures_flushed: 4,
        };
        assert_eq!(report, expected);
    }

    #[test]
    fn a_run_may_be_cut_off_anywhere() {
        assert_eq!(fold(&[]).finish(at_ms(9_000)).startup_s, None);
        let playing = fold(&[(1_500, PlayerEvent::PlaybackStarted)]);
        assert_eq!(playing.finish(at_ms(4_000)).played_s, 2.5);
        let stalled = fold(&[(1_500, PlayerEvent::PlaybackStarted), (3_000, PlayerEvent::StallBegan)]);
        let report = stalled.finish(at_ms(4_000));
        assert_eq!((report.stalls, report.stall_s, report.played_s), (1, 1.0, 1.5));
        let later = stalled.finish(at_ms(5_000));
        assert_eq!((later.stall_s, later.longest_stall_s), (2.0, 2.0), "asking changes nothing");
    }

    #[test]
    fn field_names_are_the_contracts() {
        let json = serde_json::to_value(fold(&[]).finish(at_ms(0))).unwrap();
        let names: Vec<_> = json.as_object().unwrap().keys().cloned().collect();
        let contract =
            ["startup_s", "stalls", "stall_s", "longest_stall_s", "played_s", "picture_discards", "buffer_underflows"];
        assert!(contract.iter().all(|name| names.iter().any(|n| n == name)), "{names:?}");
    }
}
