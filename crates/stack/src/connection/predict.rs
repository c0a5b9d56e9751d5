//! Header prediction (Linux's `tcp_rcv_established`): in a transfer without loss, nearly every segment is the next data
//! in order or a plain acknowledgment. Of the ordered checks in `receive` such a segment needs few, because most of
//! them have no effect. A test compares both on random segments.

use super::numbers::MAX_WINDOW;
use super::{Connection, Mode, Placed};
use crate::subflow::KnownMapping;
use anabranch_segment::{Flags, Segment};
use anabranch_units::Instant;

/// What a predicted segment says, in offsets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Predicted {
    /// The subflow's data before this is acknowledged.
    acked: u64,
    /// The place of the payload; `None` if there is none.
    mapping: Option<KnownMapping>,
}

#[cfg(test)]
thread_local! {
    /// For tests of both: how many segments were predicted in this thread; `None` if none shall be.
    pub(super) static PREDICTION: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(Some(0)) };
}

/// Whether a test wants the ordered checks for every segment.
#[cfg(test)]
pub(super) fn is_off() -> bool {
    PREDICTION.get().is_none()
}

/// Only tests switch prediction off.
#[cfg(not(test))]
pub(super) const fn is_off() -> bool {
    false
}

impl Connection {
    /// Whether the segment is an expected one: on an established subflow of Multipath TCP, the next in order, with
    /// nothing but a mapping of its own payload and an acknowledgment of data that was sent. `None` if the ordered
    /// checks must
    /// look at it.
    pub(super) fn predict(&self, at: usize, segment: &Segment) -> Option<Predicted> {
        if is_off() {
            return None;
        }
        let subflow = &self.subflows[at];
        let (sender, receiver) = (&subflow.sender, &subflow.receiver);
        let flags_are_plain = segment.flags == Flags::ACK || segment.flags == Flags::ACK | Flags::PSH;
        let peer_is_known = self.mode() == Mode::Multipath && self.confirmed() && subflow.is_established();
        let in_order = segment.seq == subflow.peer_isn.at(receiver.next()) && receiver.has_no_hole();
        let in_time = subflow.peer().timestamps == segment.timestamps.is_some_and(|t| receiver.is_recent(t));
        if !(flags_are_plain && peer_is_known && in_order && in_time && segment.mptcp.is_empty()) {
            return None;
        }
        let acked = segment.ack.expand(subflow.isn, sender.acked());
        if acked > sender.next() || acked + MAX_WINDOW < sender.acked() {
            return None;
        }
        let dss = segment.dss.filter(|dss| !dss.data_fin)?;
        if segment.payload_len == 0 {
            return Some(Predicted { acked, mapping: None });
        }
        let start = receiver.next();
        let mapping = dss.mapping?;
        let maps_payload = u32::from(mapping.len) == segment.payload_len && mapping.subflow_offset == start as u32;
        let stream_offset = self.peer_offset(mapping.dsn);
        let len = u64::from(segment.payload_len);
        let allowed = stream_offset.saturating_add(len) <= self.incoming.edge();
        if !maps_payload || !subflow.mappings_are_used() || !allowed {
            return None;
        }
        Some(Predicted { acked, mapping: Some(KnownMapping { start, end: start + len, stream_offset }) })
    }

    /// Processes a predicted segment.
    pub(super) fn on_predicted(
        &mut self,
        now: Instant,
        at: usize,
        segment: &Segment,
        expected: Predicted,
    ) -> Option<Placed> {
        #[cfg(test)]
        PREDICTION.set(PREDICTION.get().map(|count| count + 1));
        let receiver = self.subflows.receiver(at);
        receiver.note_timestamp(receiver.next(), segment.timestamps);
        self.take_acknowledgment(now, at, expected.acked, segment);
        self.take_data_acknowledgment(now, at, segment);
        self.mark_to_expand(at);
        let placed = match expected.mapping {
            Some(mapping) => self.take_next_payload(now, at, segment, mapping),
            None => {
                if let Some(t) = segment.timestamps {
                    self.subflows.receiver(at).skip_echo(t.echo);
                }
                None
            }
        };
        if self.outgoing.done() {
            self.close_when_done(now);
        }
        placed
    }

    /// The next payload in order on a subflow without a hole.
    fn take_next_payload(
        &mut self,
        now: Instant,
        at: usize,
        segment: &Segment,
        mapping: KnownMapping,
    ) -> Option<Placed> {
        self.subflows.replace_mappings(at, mapping);
        self.note_arrival(now, at, segment, true);
        let len = mapping.end - mapping.start;
        // Bytes that the stream has already, through another subflow, are not placed again.
        let known = self.incoming.next().saturating_sub(mapping.stream_offset);
        let held = self.subflows.iter().map(|s| s.receiver.ahead()).sum();
        let piece = self.subflows.receiver(at).on_next_data(now, mapping.end, mapping.stream_offset);
        let id = self.subflows[at].id;
        self.incoming.on_bytes(now, piece, id, held, &mut self.log);
        self.answer_arrival(at);
        (known < len).then(|| Placed {
            stream_offset: mapping.stream_offset + known,
            payload_start: known as u32,
            len: (len - known) as u32,
        })
    }
}
