//! What a connection remembers from one call to the next, besides its streams and subflows.

use anabranch_units::{Duration, Instant, SubflowId};

/// Guards against data that every subflow had acknowledged and the peer's connection never did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    pub deadline: Option<Instant>,
    pub backoff: u32,
    /// The head of the line was repeated on a faster subflow up to here.
    pub repeated_head: Option<u64>,
    /// Upstream Linux's period between two looks at the head of the line.
    pub period: Duration,
    pub opportunistic: u64,
    /// No subflow is left since then.
    pub lonely_since: Option<Instant>,
}

/// The subflows of the last segments, to tell path switches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Switches {
    pub last: Option<SubflowId>,
    pub last_new: Option<SubflowId>,
}

/// What keeps data back at this moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waits {
    pub window_limited: bool,
    pub scheduler_waiting: bool,
    pub scheduler_until: Option<Instant>,
    /// A subflow has room, but its pacing does not let the next packet leave before this.
    pub paced_until: Option<Instant>,
}
