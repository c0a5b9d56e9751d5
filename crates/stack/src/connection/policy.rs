//! Applies the path policy: which subflows may carry new data, where the data of the others goes, and MP_PRIO to the
//! peer.

use super::deadline::Deadline;
use super::{Connection, Mode};
use crate::scheduler::SubflowSet;
use anabranch_events::{CopyCause, TransportEvent};
use anabranch_segment::MptcpOption;
use anabranch_units::Instant;

impl Connection {
    /// Asks the policy and applies its decision.
    pub(super) fn apply_policy(&mut self, now: Instant) {
        if self.mode() != Mode::Multipath || self.subflows.is_empty() {
            return;
        }
        let allowed = self.path_policy.decide(now, self.subflows.views());
        self.waits.policy_until = self.path_policy.poll_timeout().into();
        let none_allowed = (0..self.subflows.len()).all(|at| !allowed.contains(at));
        debug_assert!(!none_allowed, "{:?} forbids every subflow", self.path_policy);
        if none_allowed {
            return;
        }
        for at in 0..self.subflows.len() {
            if self.subflows[at].allowed != allowed.contains(at) {
                self.set_allowed(now, at, allowed);
            }
        }
    }

    fn set_allowed(&mut self, now: Instant, at: usize, set: SubflowSet) {
        let allowed = set.contains(at);
        let subflow = self.subflows.change(at);
        subflow.allowed = allowed;
        if self.path_policy.signals_peer() && subflow.is_established() {
            subflow.control_segments.signals.push_back(MptcpOption::Priority { backup: !allowed });
            subflow.receiver.acknowledge_now();
        }
        self.log.emit(now, TransportEvent::PathUse { subflow: subflow.id, allowed });
        // Data in flight there is retransmitted on other subflows, so that the stream does not wait for an abandoned
        // path.
        if !allowed {
            self.reinject_from(at, CopyCause::Policy);
        }
    }

    /// When to ask the policy again; while no data moves it has nothing to measure.
    #[inline]
    pub(super) fn policy_deadline(&self) -> Deadline {
        if self.waits.policy_until.runs() && self.policy_measures() { self.waits.policy_until } else { Deadline::NEVER }
    }

    fn policy_measures(&self) -> bool {
        let moving = self.outgoing.next > self.outgoing.unacked() || self.outgoing.has_unsent();
        let asks = moving && self.mode() == Mode::Multipath && self.established && !self.closed;
        // Without a subflow the policy has no input, and its timeout would stay in the past.
        asks && !self.subflows.is_empty()
    }
}
