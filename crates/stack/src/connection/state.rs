//! State that a connection keeps between calls, besides its streams and subflows.

use super::deadline::Deadline;
use crate::scheduler::SubflowSet;
use anabranch_units::SubflowId;

/// The subflows of the last segments, to count path switches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Switches {
    pub last: Option<SubflowId>,
    pub last_new: Option<SubflowId>,
}

/// Reasons for which data is waiting now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waits {
    pub window_limited: bool,
    pub scheduler_waiting: bool,
    pub scheduler_until: Deadline,
    /// When the path policy wants to be asked again while data moves, as of its last decision.
    pub policy_until: Deadline,
    /// The subflow that is being given data, whose queue begins to leave when another one gets data or there is no
    /// more.
    pub filling: Option<SubflowId>,
    /// The subflow on which data arrived that is to be acknowledged at once, until the application reads.
    pub answers_on: Option<usize>,
    /// Acknowledgments that were due before the application wrote leave before new data.
    pub acknowledges_first: bool,
    /// An acknowledgment arrived: what it allows is given to subflows before any of it leaves.
    pub gives_first: bool,
    /// Subflows with new acknowledgments, whose send buffers may grow once what these allow was sent.
    pub to_expand: SubflowSet,
    /// A subflow has room, but its pacing does not allow the next packet before this time.
    pub paced_until: Deadline,
}

impl Waits {
    /// Subflows have other positions from here on.
    pub fn forget_positions(&mut self) {
        (self.to_expand, self.answers_on) = (SubflowSet::EMPTY, None);
    }
}
