//! Segments of no subflow: of one that is closed here while the peer still sends on it, or a join that is refused. Each
//! is answered with RST, so that the peer stops (RFC 9293 section 3.10.7.1).

use super::{Connection, Transmit};
use anabranch_segment::{Flags, MptcpOption, ResetReason, Segment};
use anabranch_units::PathId;

/// Resets that may wait, a bound against floods.
const MAX_ANSWERS: usize = 8;

/// A reset to send.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    path: PathId,
    segment: Segment,
}

impl Connection {
    /// A segment arrived for no subflow.
    pub(super) fn refuse(&mut self, path: PathId, segment: &Segment) {
        if segment.flags.contains(Flags::RST) || self.answers.len() == MAX_ANSWERS {
            return;
        }
        let mut reset = Segment::new(Flags::RST);
        (reset.source_port, reset.destination_port) = (segment.destination_port, segment.source_port);
        if segment.flags.contains(Flags::ACK) {
            reset.seq = segment.ack;
        } else {
            reset.flags = Flags::RST | Flags::ACK;
            reset.ack = segment.seq + segment.sequence_len();
        }
        if segment.mptcp.iter().any(|option| matches!(option, MptcpOption::JoinSyn { .. })) {
            reset.mptcp.push(MptcpOption::Reset { transient: false, reason: ResetReason::MptcpError });
        }
        self.answers.push_back(Answer { path, segment: reset });
    }

    /// The next reset to send.
    #[inline]
    pub(super) fn next_answer(&mut self) -> Option<Transmit> {
        let Answer { path, segment } = self.answers.pop_front()?;
        Some(Transmit { path, segment, stream_offset: 0 })
    }
}
