//! dash.js: its rules, one file each, and their combination by its controllers.
//!
//! | name | stands for | rules |
//! |---|---|---|
//! | `dash.js-2.2` | 2.0 to 2.2 (MPTCP+, 2016) | throughput (mean of 3), buffer occupancy, insufficient buffer, abandon (1.5) |
//! | `dash.js-2.9` | 2.7 to 2.9 (DASH over MPTCP, 2019) | DYNAMIC: throughput (mean of 4) or BOLA; insufficient buffer, switch history, dropped frames, abandon (1.8) |
//! | `dash.js-5` | 5.x, current | DYNAMIC: throughput (EWMA) or BOLA; insufficient buffer, switch history, abandon (1.8) |
//!
//! Thresholds and quirks are those of 2.2.0, 2.9.3 and 5.2.1, read in their npm packages; the rules of 2.9.3 and 5.2.1
//! are compared with the originals, decision by decision, in `tests/dashjs.rs`. The player's handling of its buffer and
//! its requests is elsewhere, but [`BufferWatch`] is here because rules depend on it, and so is what it reports of
//! itself ([`Reporter`]).
//!
//! Not modelled: low-latency live playback, several periods, and limits of the lowest bitrate.

mod abandon_requests;
mod abandonment;
mod bola;
mod buffer_occupancy;
mod buffer_state;
mod controller;
mod dropped_frames;
mod dynamic;
mod ewma;
mod insufficient_buffer;
mod js;
mod quality;
mod reporter;
mod request;
mod switch_history;
mod throughput_history;
mod throughput_rule;
mod v2_2;
mod v2_9;
mod v5;

pub use buffer_state::BufferWatch;
pub use reporter::{Reporter, Requested};
pub(super) use v2_2::ENTRY as ENTRY_2_2;
pub(super) use v2_9::ENTRY as ENTRY_2_9;
pub(super) use v5::ENTRY as ENTRY_5;

use super::options::{AbrOptionError, check};
use anabranch_units::Duration;

/// The groups of releases with different rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// 2.0 to 2.2.
    V2_2,
    /// 2.7 to 2.9.
    V2_9,
    /// 5.x.
    V5,
}

impl Release {
    /// The buffer that the player holds below the top representation: `stableBufferTime` of 2.x (12 s without fast
    /// switching), `bufferTimeDefault` of 5.x (18 s).
    pub const fn stable_buffer(self) -> Duration {
        match self {
            Release::V2_2 | Release::V2_9 => Duration::from_secs(12),
            Release::V5 => Duration::from_secs(18),
        }
    }
}

/// The option's stable buffer time, or the release's own.
fn stable_buffer(rule: &'static str, given: Option<Duration>, release: Release) -> Result<Duration, AbrOptionError> {
    let value = given.unwrap_or(release.stable_buffer());
    check(rule, "stable_buffer", "longer than no time", value, |length| !length.is_zero())
}
