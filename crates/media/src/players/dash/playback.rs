//! The video element: plays at rate one, or not at all.
//!
//! It plays as soon as there is data, and stalls at the end of the buffer. A `timeupdate` comes every 250 ms during
//! playback (HTML, 4.8.11.8 allows 15 to 250 ms; Chromium and Firefox take the longest): then dash.js measures its
//! buffer, and may stop the video.

use crate::content::DashVideo;
use anabranch_units::{Duration, Instant};

const TIME_UPDATE: Duration = Duration::from_millis(250);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first picture.
    Waiting,
    /// Playing.
    Moving {
        since: Instant,
    },
    Frozen,
    Over,
}

/// The next event of a playing video.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The media segment on screen ends.
    SegmentEnd(Instant),
    TimeUpdate(Instant),
}

impl Due {
    pub fn at(self) -> Instant {
        match self {
            Due::SegmentEnd(at) | Due::TimeUpdate(at) => at,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Playback {
    state: State,
    /// The playing time reached, at the last change of state.
    reached: Duration,
    /// The media segment on screen, or the last one shown.
    index: u32,
    next_update: Instant,
    /// The player stopped it (`setStallState`).
    pub stopped: bool,
}

impl Playback {
    pub fn new() -> Self {
        let (reached, next_update) = (Duration::ZERO, Instant::ZERO);
        Playback { state: State::Waiting, reached, index: 0, next_update, stopped: false }
    }

    /// The playing time reached.
    pub fn position(&self, now: Instant) -> Duration {
        match self.state {
            State::Moving { since } => self.reached + now.since(since),
            _ => self.reached,
        }
    }

    /// The media segment on screen, or the last one shown; `None` before the first picture.
    pub fn on_screen(&self) -> Option<u32> {
        (self.state != State::Waiting).then_some(self.index)
    }

    pub fn has_begun(&self) -> bool {
        self.state != State::Waiting
    }

    pub fn is_moving(&self) -> bool {
        matches!(self.state, State::Moving { .. })
    }

    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// The next event, if the video plays. Of two at one time the end of the segment comes first.
    #[inline]
    pub fn due(&self, video: &DashVideo) -> Option<Due> {
        let State::Moving { since } = self.state else { return None };
        let end = since + (video.end(self.index) - self.reached);
        Some(if end <= self.next_update { Due::SegmentEnd(end) } else { Due::TimeUpdate(self.next_update) })
    }

    /// Starts playback.
    pub fn start(&mut self, now: Instant) {
        self.state = State::Moving { since: now };
        self.next_update = now + TIME_UPDATE;
    }

    pub fn freeze(&mut self, now: Instant) {
        self.reached = self.position(now);
        self.state = State::Frozen;
    }

    /// The next media segment comes on screen.
    pub fn enter_next(&mut self) {
        self.index += 1;
    }

    pub fn updated(&mut self) {
        self.next_update += TIME_UPDATE;
    }

    pub fn finish(&mut self, now: Instant) {
        self.reached = self.position(now);
        self.state = State::Over;
    }
}
