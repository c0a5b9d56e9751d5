//! Fallback to plain TCP during a connection (RFC 8684 section 3.7).

use super::Connection;
use anabranch_events::FallbackReason;
use anabranch_segment::{MptcpOption, ResetReason, Segment};
use anabranch_units::Instant;

/// Why payload cannot be placed in the stream.
#[derive(Clone, Copy)]
pub(super) enum BadMapping {
    /// No mapping received so far covers it.
    Missing,
    /// Its own mapping does not cover it, or contradicts another.
    Wrong,
}

impl Connection {
    /// The peer falls back: from here on the single subflow is the connection (RFC 8684 section 3.7).
    pub(super) fn accept_infinite_mapping(
        &mut self,
        now: Instant,
        at: usize,
        start: u64,
        segment: &Segment,
    ) -> Result<(u64, u64), BadMapping> {
        if start.wrapping_sub(1) != self.incoming.next() || !self.may_fall_back(at) {
            return Err(BadMapping::Wrong);
        }
        self.fall_back(now, FallbackReason::PeerFailed);
        Ok((start - 1, u64::from(segment.payload_len)))
    }

    /// A mapping is missing or contradicts another. If it is missing on the only subflow, before the first byte, a
    /// middlebox removes options: fall back. Otherwise the subflow is reset.
    pub(super) fn on_bad_mapping(&mut self, now: Instant, at: usize, reason: BadMapping) {
        let untouched = self.incoming.next() == 0 && self.subflows[at].receiver.next() == 1;
        if matches!(reason, BadMapping::Missing) && untouched && self.may_fall_back(at) {
            self.fall_back(now, FallbackReason::OptionsStripped);
        } else {
            self.subflows.change(at).control_segments.reset(ResetReason::MptcpError);
        }
    }

    /// The peer rejects our mappings from `dsn` on (a middlebox changes payload, and with it checksums). On the only
    /// subflow this end answers with MP_FAIL, and all new data has one infinite mapping (RFC 8684 section 3.7).
    pub(super) fn on_peer_failed(&mut self, now: Instant, at: usize, dsn: u64) {
        if self.may_fall_back(at) {
            let subflow = self.subflows.change(at);
            subflow.control_segments.signals.push_back(MptcpOption::Fail { dsn });
            subflow.infinite_from = Some(subflow.sender.next());
            self.fall_back(now, FallbackReason::PeerFailed);
        } else {
            self.subflows.change(at).control_segments.reset(ResetReason::Middlebox);
        }
    }

    /// Whether the subflow has been the only one so far: both streams are its own, from their first bytes on.
    pub(super) fn may_fall_back(&self, at: usize) -> bool {
        let subflow = &self.subflows[at];
        let given = self.outgoing.next - subflow.queued.min(self.outgoing.next);
        let received = self.incoming.held_ahead() == 0 && subflow.receiver.next() == self.incoming.next() + 1;
        self.alone && self.subflows.len() == 1 && received && subflow.sender.next() == given + 1
    }
}
