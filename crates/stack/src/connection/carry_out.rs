//! Carries out a choice: moves what it takes from the streams and queues, and has the segment built.

use super::choose::{Choice, Source};
use super::{Commit, Connection, Transmit};
use crate::subflow::Chunk;
use anabranch_units::Instant;

impl Connection {
    /// The chosen segment; `None` if the choice was to queue data on a subflow.
    pub(super) fn carry_out(&mut self, now: Instant, choice: Choice) -> Option<Transmit> {
        match choice {
            Choice::Handshake(at) => Some(self.encode_handshake(now, at)),
            Choice::Reset(at) => Some(self.encode_reset(now, at)),
            Choice::Retransmit { at, position, kind } => self.encode_retransmission(now, at, position, kind),
            Choice::Data { at, chunk, source } => self.carry_out_data(now, at, chunk, source),
            Choice::End(at) => {
                self.subflows[at].errands.data_fin_sent();
                Some(self.encode_end(now, at))
            }
            Choice::Fin(at) => Some(self.encode_fin(now, at)),
            Choice::WindowProbe(at) => {
                self.subflows[at].errands.window_probed();
                Some(self.encode_window_probe(now, at))
            }
            Choice::Ack(at) => {
                if self.subflows[at].errands.owes_third_segment() {
                    self.subflows[at].errands.third_segment_sent();
                }
                Some(self.encode_acknowledgment(now, at))
            }
        }
    }

    /// Where data commits at the window it is sent now, otherwise it is added to the subflow's queue.
    fn carry_out_data(&mut self, now: Instant, at: usize, chunk: Chunk, source: Source) -> Option<Transmit> {
        match source {
            Source::Queue => {
                self.subflows[at].take(chunk.len);
                return Some(self.encode_data(now, at, chunk));
            }
            Source::Unsent => self.outgoing.next += chunk.len,
            Source::Reinjection => self.outgoing.take_reinjection(chunk.len),
            Source::FirstUnacked => {
                self.progress.relieved_at = Some(chunk.stream_offset);
                self.progress.opportunistic += 1;
            }
            Source::InFlight => {}
        }
        if self.config.transport.commit == Commit::AtWindow {
            return Some(self.encode_data(now, at, chunk));
        }
        self.queue(now, at, chunk);
        self.waits.filling = Some(self.subflows[at].id);
        None
    }

    /// Adds bytes to the queue of a subflow.
    pub(super) fn queue(&mut self, now: Instant, at: usize, chunk: Chunk) {
        // Where data commits at the window, the window decays when the data is sent (`decay_idle_window`).
        let decay = self.config.transport.idle_restart && self.config.transport.commit == Commit::IntoBuffer;
        let payload = self.full_payload(at);
        let subflow = &mut self.subflows[at];
        let records = subflow.give(chunk, payload);
        subflow.sender.before_queueing(now, records, decay);
    }

    /// Everything that could be sent was sent.
    pub(super) fn end_burst(&mut self, now: Instant) {
        let decay = self.config.transport.idle_restart;
        if self.config.transport.commit == Commit::IntoBuffer && self.outgoing.lacks_room() {
            self.expand_send_buffers();
        }
        for at in self.subflows.take_unsettled().iter() {
            let waits_for_pace = self.subflows[at].sender.paced_until() > now && self.has_supply(at);
            self.subflows.settle(now, at, waits_for_pace, decay);
        }
        self.arm_progress(now);
    }

    fn expand_send_buffers(&mut self) {
        for at in 0..self.subflows.len() {
            if self.subflows[at].is_established() {
                self.subflows[at].expand_send_buffer();
            }
        }
    }
}
