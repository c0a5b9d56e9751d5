//! The screen: blank, moving pictures, a frozen picture, the end.
//!
//! The picture counts as frozen from the first instant at which the due picture could no longer be shown, which
//! is half a frame period after its date; so the start of a stall and a discard are the same lateness, and jitter below
//! it is neither.

use anabranch_events::{Log, PlayerEvent};
use anabranch_units::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Blank,
    Moving,
    Frozen,
    Over,
}

/// The screen and its scheduled changes.
#[derive(Debug)]
pub(super) struct Screen {
    state: State,
    /// When the picture will start to move.
    moves_at: Option<Instant>,
    /// When the picture will freeze unless another one is shown before.
    freezes_at: Option<Instant>,
    /// When the last picture will have been shown.
    ends_at: Option<Instant>,
}

impl Screen {
    pub(super) fn new() -> Self {
        Screen { state: State::Blank, moves_at: None, freezes_at: None, ends_at: None }
    }

    /// A picture will be shown at `at`. Only the first one after a blank or frozen screen matters.
    pub(super) fn show(&mut self, at: Instant) {
        if matches!(self.state, State::Blank | State::Frozen) && self.moves_at.is_none() {
            self.moves_at = Some(at);
        }
    }

    /// A moving picture will freeze at `at`, unless this is called again before. `None`: no picture is expected.
    pub(super) fn expect_next_before(&mut self, at: Option<Instant>) {
        self.freezes_at = at;
    }

    /// The buffered pictures were flushed.
    pub(super) fn freeze(&mut self, now: Instant, log: &mut Log<PlayerEvent>) {
        self.moves_at = None;
        self.freezes_at = None;
        if self.state == State::Moving {
            self.state = State::Frozen;
            log.emit(now, PlayerEvent::StallBegan);
        }
    }

    /// There will be no more pictures, and the last one stays until `at`.
    pub(super) fn end(&mut self, at: Instant) {
        self.freezes_at = None;
        if self.state != State::Over {
            self.ends_at = Some(at);
        }
    }

    /// The time of the next change.
    pub(super) fn next_change(&self) -> Option<Instant> {
        [self.moves_at, self.freezes_at, self.ends_at].into_iter().flatten().min()
    }

    pub(super) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Applies the due changes in their order.
    pub(super) fn advance(&mut self, now: Instant, log: &mut Log<PlayerEvent>) {
        while let Some(at) = self.next_change().filter(|&at| at <= now) {
            if self.moves_at == Some(at) {
                self.moves_at = None;
                let event = match self.state {
                    State::Blank => PlayerEvent::PlaybackStarted,
                    _ => PlayerEvent::StallEnded,
                };
                self.state = State::Moving;
                log.emit(at, event);
            } else if self.freezes_at == Some(at) {
                self.freeze(at, log);
            } else {
                self.ends_at = None;
                self.state = State::Over;
                log.emit(at, PlayerEvent::PlaybackEnded);
            }
        }
    }
}
