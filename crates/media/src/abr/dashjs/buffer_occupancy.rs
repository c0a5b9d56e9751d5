//! BufferOccupancyRule of dash.js 2.0 to 2.4: the highest representation while the buffer is rich.
//!
//! level - target > 20 s  ->  the highest representation, strongly; no request for 10 s after an abandoned request
//!
//! dash.js 2.2.0, rules/abr/BufferOccupancyRule.js. The rule also means to wait half a media segment after a switch,
//! but it never notes when it switched, so it never waits.

use super::super::view::View;
use super::js::level_s;
use super::request::Request;

pub(super) const NAME: &str = "BufferOccupancyRule";
/// `RICH_BUFFER_THRESHOLD` of MediaPlayerModel, s.
const RICH_BUFFER_THRESHOLD_S: f64 = 20.0;

pub(super) fn request(view: &View<'_>, abandoning: bool) -> Option<Request> {
    let rich = level_s(view.buffer) - view.buffer_target.as_secs_f64() > RICH_BUFFER_THRESHOLD_S;
    let applies = !abandoning && view.buffer_state.is_some() && view.ladder.len() > 1;
    (applies && rich).then(|| Request::strong(NAME, view.ladder.len() - 1))
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{ladder, view};
    use super::super::super::view::BufferState;
    use super::*;
    use anabranch_units::Duration;

    #[test]
    fn more_than_twenty_seconds_above_the_target() {
        let ladder = ladder(&[1, 2, 3]);
        let at = |ms| View {
            buffer: Duration::from_millis(ms),
            buffer_target: Duration::from_secs(12),
            buffer_state: Some(BufferState::Loaded),
            ..view(&ladder)
        };
        assert_eq!(request(&at(32_000), false), None);
        assert_eq!(request(&at(32_001), false), Some(Request::strong(NAME, 2)));
        assert_eq!(request(&at(32_001), true), None);
        assert_eq!(request(&View { buffer_state: None, ..at(32_001) }, false), None);
    }

    #[test]
    fn one_representation_needs_no_rule() {
        let ladder = ladder(&[1]);
        let rich = View { buffer: Duration::from_secs(60), buffer_state: Some(BufferState::Loaded), ..view(&ladder) };
        assert_eq!(request(&rich, false), None);
    }
}
