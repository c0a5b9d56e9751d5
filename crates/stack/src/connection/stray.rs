//! Segments that belong to no subflow: of one that is gone here while the peer still speaks on it, or a join that is not
//! taken. Each is answered with RST, so that the peer does not go on in vain (RFC 9293 section 3.10.7.1).

use super::{Connection, Transmit};
use anabranch_segment::{Flags, MptcpOption, ResetReason, Segment};
use anabranch_units::PathId;

/// Answers that may wait; a flood gets no more.
const MAX_ANSWERS: usize = 8;

/// An answer to send.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    path: PathId,
    segment: Segment,
}

impl Connection {
    /// A segment arrived that no subflow takes.
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

    /// The next of these answers.
    pub(super) fn next_answer(&mut self) -> Option<Transmit> {
        let Answer { path, segment } = self.answers.pop_front()?;
        Some(Transmit { path, segment, stream_offset: 0 })
    }
}
