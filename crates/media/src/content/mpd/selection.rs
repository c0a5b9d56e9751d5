//! What of an MPD is wanted.

use anabranch_units::Duration;

/// Which parts of an MPD to use, and the assumptions for missing information.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MpdSelection {
    /// Only this period, counted from one. `None`: all of them, one after the other.
    pub period: Option<usize>,
    /// This adaptation set of each period, counted from one. `None`: of those with video that dash.js does not skip,
    /// and of these of the highest priority and the main role, the one with the highest bitrate, together with those of
    /// the same codec, language and role.
    pub adaptation_set: Option<usize>,
    /// Longest playing time, from the first media segment that is listed. A period without end (a live presentation) is
    /// assumed to be this long.
    pub duration: Option<Duration>,
    /// Duration of media segments where only the media file's index has it (SegmentBase).
    pub segment_duration: Option<Duration>,
}
