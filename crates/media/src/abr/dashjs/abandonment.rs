//! How long dash.js reacts to an abandoned request: `ABANDON_LOAD`, for 10 s (`abandonLoadTimeout`).
//!
//! A second one within this time restarts the 10 s. In 2.0 to 2.5 the first timer continues all the same, and ends the
//! state when it fires (AbrController.onFragmentLoadProgress, 2.2.0).

use std::collections::VecDeque;

/// `ABANDON_LOAD_TIMEOUT`, ms.
const ABANDON_LOAD_TIMEOUT_MS: f64 = 10_000.0;

#[derive(Debug)]
pub(super) struct Abandonment {
    restarts: bool,
    /// When timers fire, ms, ascending.
    timers: VecDeque<f64>,
    active: bool,
}

impl Abandonment {
    /// `restarts`: whether a second one stops the timer of the first.
    pub(super) fn new(restarts: bool) -> Self {
        Abandonment { restarts, timers: VecDeque::new(), active: false }
    }

    pub(super) fn begin(&mut self, now_ms: f64) {
        self.is_active(now_ms);
        if self.restarts {
            self.timers.clear();
        }
        self.timers.push_back(now_ms + ABANDON_LOAD_TIMEOUT_MS);
        self.active = true;
    }

    pub(super) fn is_active(&mut self, now_ms: f64) -> bool {
        while self.timers.front().is_some_and(|&due| due <= now_ms) {
            self.timers.pop_front();
            self.active = false;
        }
        self.active
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_after_ten_seconds() {
        let mut state = Abandonment::new(true);
        assert!(!state.is_active(0.0));
        state.begin(5.0);
        assert!(state.is_active(5.0) && state.is_active(10_004.0) && !state.is_active(10_005.0));
    }

    #[test]
    fn a_second_one_begins_anew_but_not_in_the_first_releases() {
        for (restarts, at_11_s, at_16_s) in [(true, true, false), (false, false, false)] {
            let mut state = Abandonment::new(restarts);
            state.begin(0.0);
            state.begin(6_000.0);
            assert_eq!(
                (state.is_active(9_999.0), state.is_active(11_000.0), state.is_active(16_000.0)),
                (true, at_11_s, at_16_s)
            );
        }
        let mut state = Abandonment::new(false);
        state.begin(0.0);
        state.begin(10_000.0);
        assert!(state.is_active(12_000.0), "the first timer fired before the second one began");
    }
}
