//! Peers that acknowledge what they have not received: which segments are withheld to find them, and the reset that
//! follows. How one is found is in `subflow/sender/withheld.rs`.

use super::Connection;
use super::choose::{NextSegment, Source};
use anabranch_events::SendKind;
use anabranch_segment::ResetReason;
use anabranch_units::{Instant, PathId};
use core::num::NonZeroU32;

impl Connection {
    /// Whether the chosen segment does not leave the host. Never the last data that waits, which nothing would follow,
    /// and no segment that tells more than its data.
    pub(super) fn withholds(&mut self, choice: &NextSegment, interval: NonZeroU32) -> bool {
        let NextSegment::Data { at, chunk, source } = *choice else { return false };
        let subflow = &self.subflows[at];
        if chunk.kind != SendKind::New || !subflow.peer().sack {
            return false;
        }
        let entropy = &mut self.entropy;
        if !self.subflows.withholding(at).count_down(interval, || entropy.next_u64()) {
            return false;
        }
        let subflow = &self.subflows[at];
        let waiting = match source {
            Source::Queue => subflow.queued,
            _ => self.outgoing.unsent(),
        };
        let plain = !self.subflows.options().repeats_keys(subflow) && !subflow.receiver.has_blocks();
        waiting > chunk.len && plain && subflow.sender.may_withhold()
    }

    /// Records the chosen data as sent, and keeps it here. Events and schedulers learn of it now; when it leaves, they
    /// do not.
    #[cold]
    pub(super) fn withhold(&mut self, now: Instant, choice: &NextSegment) {
        let NextSegment::Data { at, .. } = *choice else { return };
        let start = self.subflows[at].sender.next();
        drop(self.carry_out(now, choice));
        self.subflows.change(at).sender.withhold(start);
    }

    /// The peer acknowledges what has not left this host: the subflow is reset.
    #[cold]
    pub(super) fn reject_claims(&mut self, at: usize) {
        let subflow = self.subflows.change(at);
        self.false_acknowledgments.push(subflow.path.id);
        subflow.control_segments.reset(ResetReason::MptcpError);
    }

    /// The paths of subflows that were reset since the last call because the peer acknowledged what had not left this
    /// host, for counters of the host.
    pub fn take_false_acknowledgments(&mut self) -> Vec<PathId> {
        std::mem::take(&mut self.false_acknowledgments)
    }

    /// Whether [`Connection::take_false_acknowledgments`] has something to return.
    #[inline]
    pub fn has_false_acknowledgments(&self) -> bool {
        !self.false_acknowledgments.is_empty()
    }
}
