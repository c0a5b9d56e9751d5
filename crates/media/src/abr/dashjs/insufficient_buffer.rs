//! InsufficientBufferRule: limits the representation so that the buffer does not run empty.
//!
//! 2.0 to 2.5:  empty -> the lowest, strongly; at most one look per second
//! 2.6 to 2.9:  empty -> the lowest; otherwise at most throughput * Q/L * 0.5, with the latency's share taken off
//! 5.x:         empty -> the lowest; otherwise at most throughput * 0.7 * Q/L; not before 2 media segments
//! Q buffered s, L duration of a media segment s, throughput the average without safety factor.
//!
//! dash.js 2.2.0, 2.9.3, 5.2.1, rules/abr/InsufficientBufferRule.js. 2.x makes no request until the buffer was once
//! loaded, and again after a seek; 5.x counts its two media segments again after a seek. The average of 2.9 is always
//! that of recorded video (four samples), even live, because the rule does not pass the type of stream.

use super::super::view::{BufferState, View};
use super::js::{date_ms, level_s};
use super::quality::{allowed_2, allowed_5};
use super::request::Request;

pub(super) const NAME: &str = "InsufficientBufferRule";
/// `waitToSwitchTime` of 2.2, ms.
const WAIT_TO_SWITCH_MS: f64 = 1_000.0;
/// `INSUFFICIENT_BUFFER_SAFETY_FACTOR` of 2.9.
const SAFETY_FACTOR_2_9: f64 = 0.5;
/// `throughputSafetyFactor` of 5.x.
const SAFETY_FACTOR_5: f64 = 0.7;
/// `segmentIgnoreCount` of 5.x.
const SEGMENT_IGNORE_COUNT: u32 = 2;

/// 2.0 to 2.5.
#[derive(Debug, Default)]
pub(super) struct InsufficientBuffer22 {
    was_loaded: bool,
    last_look_ms: Option<f64>,
}

impl InsufficientBuffer22 {
    pub(super) fn request(&mut self, view: &View<'_>) -> Option<Request> {
        let now = date_ms(view.now);
        let state = view.buffer_state?;
        if self.last_look_ms.is_some_and(|last| now - last < WAIT_TO_SWITCH_MS) {
            return None;
        }
        self.last_look_ms = Some(now);
        self.was_loaded |= state == BufferState::Loaded;
        (self.was_loaded && state == BufferState::Empty).then_some(Request::strong(NAME, 0))
    }

    pub(super) fn seeked(&mut self) {
        self.was_loaded = false;
    }
}

/// 2.6 to 2.9.
#[derive(Debug, Default)]
pub(super) struct InsufficientBuffer29 {
    was_loaded: bool,
}

impl InsufficientBuffer29 {
    /// `average` in kbit/s, `latency` in ms.
    pub(super) fn request(&mut self, view: &View<'_>, average: Option<f64>, latency: Option<f64>) -> Option<Request> {
        let state = view.buffer_state?;
        self.was_loaded |= state == BufferState::Loaded;
        if !self.was_loaded {
            return None;
        }
        if state == BufferState::Empty {
            return Some(Request::new(NAME, 0));
        }
        let segments = level_s(view.buffer) / view.ladder.segment_duration().as_secs_f64();
        // Without an average the value is NaN, and NaN allows the lowest only.
        let kbps = average.unwrap_or(f64::NAN) * segments * SAFETY_FACTOR_2_9;
        Some(Request::new(NAME, allowed_2(view.ladder, kbps, latency)))
    }

    pub(super) fn seeked(&mut self) {
        self.was_loaded = false;
    }
}

/// 5.x.
#[derive(Debug)]
pub(super) struct InsufficientBuffer5 {
    ignored: u32,
}

impl InsufficientBuffer5 {
    pub(super) fn new() -> Self {
        InsufficientBuffer5 { ignored: SEGMENT_IGNORE_COUNT }
    }

    /// `average` in kbit/s.
    pub(super) fn request(&self, view: &View<'_>, average: Option<f64>) -> Option<Request> {
        if self.ignored > 0 {
            return None;
        }
        if view.buffer_state == Some(BufferState::Empty) {
            return Some(Request::new(NAME, 0));
        }
        let kbps = average? * SAFETY_FACTOR_5 * level_s(view.buffer) / view.ladder.segment_duration().as_secs_f64();
        (kbps > 0.0).then(|| Request::new(NAME, allowed_5(view.ladder, view.top, kbps)))
    }

    pub(super) fn appended(&mut self) {
        self.ignored = self.ignored.saturating_sub(1);
    }

    pub(super) fn seeked(&mut self) {
        self.ignored = SEGMENT_IGNORE_COUNT;
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{at_ms, ladder, two_second_ladder, view};
    use super::*;
    use BufferState::{Empty, Loaded};
    use anabranch_units::Duration;

    const RATES: [u64; 3] = [100_000, 200_000, 300_000];

    #[test]
    fn two_two_drops_to_the_lowest_once_a_second_after_the_first_load() {
        let ladder = ladder(&RATES);
        let mut rule = InsufficientBuffer22::default();
        let mut at = |ms, state| rule.request(&View { now: at_ms(ms), buffer_state: state, ..view(&ladder) });
        assert_eq!(at(0, None), None);
        assert_eq!(at(0, Some(Empty)), None, "never loaded");
        assert_eq!(at(999, Some(Loaded)), None, "not looked at");
        assert_eq!(at(1_000, Some(Empty)), None, "so it was still never loaded");
        assert_eq!(at(2_000, Some(Loaded)), None);
        assert_eq!(at(2_999, Some(Empty)), None);
        assert_eq!(at(3_000, Some(Empty)), Some(Request::strong(NAME, 0)));
        rule.seeked();
        assert_eq!(rule.request(&View { now: at_ms(9_000), buffer_state: Some(Empty), ..view(&ladder) }), None);
    }

    fn asked_29(state: BufferState, buffer_ms: u64, average: Option<f64>, latency: Option<f64>) -> Option<usize> {
        let ladder = ladder(&RATES);
        let mut rule = InsufficientBuffer29 { was_loaded: true };
        let buffer = Duration::from_millis(buffer_ms);
        rule.request(&View { buffer, buffer_state: Some(state), ..view(&ladder) }, average, latency)
            .map(|r| r.representation)
    }

    #[test]
    fn two_nine_allows_half_of_what_arrives_before_the_buffer_is_gone() {
        // 100 kbit/s * 4 s / 1 s * 0.5 = 200.
        assert_eq!(asked_29(Loaded, 4_000, Some(100.0), None), Some(1));
        assert_eq!(asked_29(Loaded, 3_999, Some(100.0), None), Some(0));
        assert_eq!(asked_29(Loaded, 4_000, Some(100.0), Some(10.0)), Some(0), "latency of 1 %");
        assert_eq!(asked_29(Loaded, 60_000, Some(100.0), Some(10.0)), Some(2));
        assert_eq!(asked_29(Loaded, 60_000, None, None), Some(0));
        assert_eq!(asked_29(Empty, 60_000, Some(1e9), None), Some(0));
    }

    #[test]
    fn longer_media_segments_need_a_longer_buffer() {
        let ladder = two_second_ladder(&RATES);
        let at = |s| View { buffer: Duration::from_secs(s), buffer_state: Some(Loaded), ..view(&ladder) };
        // 100 * 8/2 * 0.5 = 200.
        let mut two = InsufficientBuffer29::default();
        assert_eq!(two.request(&at(8), Some(100.0), None), Some(Request::new(NAME, 1)));
        assert_eq!(two.request(&at(7), Some(100.0), None), Some(Request::new(NAME, 0)));
        // 100 * 0.7 * 6/2 = 210.
        let five = InsufficientBuffer5 { ignored: 0 };
        assert_eq!(five.request(&at(6), Some(100.0)), Some(Request::new(NAME, 1)));
        assert_eq!(five.request(&at(5), Some(100.0)), Some(Request::new(NAME, 0)));
    }

    #[test]
    fn two_nine_waits_for_the_first_load_and_again_after_a_seek() {
        let ladder = ladder(&RATES);
        let mut rule = InsufficientBuffer29::default();
        let at = |state| View { buffer_state: state, buffer: Duration::from_secs(12), ..view(&ladder) };
        assert_eq!(rule.request(&at(None), Some(50.0), None), None);
        assert_eq!(rule.request(&at(Some(Empty)), Some(50.0), None), None);
        assert!(rule.request(&at(Some(Loaded)), Some(50.0), None).is_some());
        assert!(rule.request(&at(Some(Empty)), Some(50.0), None).is_some());
        rule.seeked();
        assert_eq!(rule.request(&at(Some(Empty)), Some(50.0), None), None);
    }

    #[test]
    fn five_ignores_two_media_segments_and_takes_seven_tenths() {
        let ladder = ladder(&RATES);
        let mut rule = InsufficientBuffer5::new();
        let at = |state, ms| View { buffer_state: state, buffer: Duration::from_millis(ms), ..view(&ladder) };
        assert_eq!(rule.request(&at(Some(Empty), 0), Some(100.0)), None);
        rule.appended();
        assert_eq!(rule.request(&at(Some(Empty), 0), Some(100.0)), None);
        rule.appended();
        rule.appended();
        assert_eq!(rule.request(&at(Some(Empty), 0), Some(100.0)), Some(Request::new(NAME, 0)));
        // 100 * 0.7 * 2.858 = 200.06; 2.857 gives 199.99.
        assert_eq!(rule.request(&at(Some(Loaded), 2_858), Some(100.0)), Some(Request::new(NAME, 1)));
        assert_eq!(rule.request(&at(None, 2_857), Some(100.0)), Some(Request::new(NAME, 0)));
        assert_eq!(rule.request(&at(Some(Loaded), 9_000), None), None);
        assert_eq!(rule.request(&at(Some(Loaded), 0), Some(100.0)), None, "nothing is no limit");
        assert_eq!(
            rule.request(&View { top: 1, ..at(Some(Loaded), 60_000) }, Some(900.0)),
            Some(Request::new(NAME, 1))
        );
        rule.seeked();
        assert_eq!(rule.request(&at(Some(Empty), 0), Some(100.0)), None);
    }
}
