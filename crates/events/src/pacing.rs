//! What a server says of its pacing of responses.

/// Counts of a server's pacing so far, and present values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacingCounts {
    /// Responses with media.
    pub media: u64,
    /// Of these, responses that were paced when they began.
    pub paced: u64,
    /// Viewers who are present.
    pub viewers: u64,
    /// Connections that a cap limits.
    pub limited: u64,
    /// Presentations that are known by their MPDs.
    pub presentations: u64,
    /// MPDs that were asked for and cannot be used: live ones, those without a file for each media segment, and broken
    /// ones.
    pub unusable: u64,
}
