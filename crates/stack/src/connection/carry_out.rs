//! Carries out a choice: moves what it takes from the streams and queues, and has the segment built.

use super::choose::{Control, NextSegment, Source};
use super::{Commit, Connection, Transmit};
use crate::subflow::Chunk;
use crate::view::Packets;
use anabranch_events::{DecayCause, TransportEvent};
use anabranch_units::Instant;

impl Connection {
    /// Whether data from there is queued on its subflow: what is not in the queue yet, unless it commits at the window.
    pub(super) fn queues(&self, source: Source) -> bool {
        self.config.transport.commit == Commit::IntoBuffer && !matches!(source, Source::Queue)
    }

    /// The chosen segment.
    pub(super) fn carry_out(&mut self, now: Instant, choice: &NextSegment) -> Transmit {
        match *choice {
            NextSegment::Data { at, chunk, source } => {
                self.take(at, chunk, source);
                self.encode_data(now, at, chunk)
            }
            NextSegment::Ack(at) => {
                if self.subflows[at].control_segments.owes_third_segment() {
                    self.subflows.change(at).control_segments.third_segment_sent();
                }
                self.encode_acknowledgment(now, at)
            }
            NextSegment::Retransmit { at, position, kind } => self.encode_retransmission(now, at, position, kind),
            NextSegment::Sample { at, position, len } => self.encode_sample(now, at, position, len),
            NextSegment::Control(control) => self.carry_out_control(now, control),
        }
    }

    /// Not inlined, because a connection has few of these segments.
    #[inline(never)]
    fn carry_out_control(&mut self, now: Instant, control: Control) -> Transmit {
        match control {
            Control::Handshake(at) => self.encode_handshake(now, at),
            Control::Reset(at) => self.encode_reset(now, at),
            Control::End(at) => {
                self.subflows.change(at).control_segments.data_fin_sent();
                self.encode_end(now, at)
            }
            Control::Fin(at) => self.encode_fin(now, at),
            Control::WindowProbe(at) => {
                self.subflows.change(at).control_segments.window_probed();
                self.encode_window_probe(now, at)
            }
        }
    }

    /// Adds the chosen data to the subflow's queue.
    pub(super) fn carry_into_queue(&mut self, now: Instant, at: usize, chunk: Chunk, source: Source) {
        self.take(at, chunk, source);
        self.queue(now, at, chunk);
        self.waits.filling = Some(self.subflows[at].id);
    }

    /// Takes the chosen data from where it is. Inlined, because it is mostly one addition.
    #[inline(always)]
    fn take(&mut self, at: usize, chunk: Chunk, source: Source) {
        match source {
            Source::Queue => {
                self.subflows.change(at).take(chunk.len);
            }
            Source::Unsent => self.outgoing.give(chunk.len),
            Source::Reinjection => self.outgoing.take_reinjection(chunk.len),
            Source::FirstUnacked => {
                self.progress.relieved_at = Some(chunk.stream_offset);
                self.progress.opportunistic += 1;
            }
            Source::InFlight => {}
        }
    }

    /// Adds bytes to the queue of a subflow.
    pub(super) fn queue(&mut self, now: Instant, at: usize, chunk: Chunk) {
        // Where data commits at the window, the window decays when the data is sent (`decay_idle_window`).
        let decay = self.config.transport.idle_restart && self.config.transport.commit == Commit::IntoBuffer;
        if self.config.transport.subflow_windows {
            let window = self.outgoing.window_end().saturating_sub(chunk.stream_offset);
            self.subflows.peer_window(at).raise(window);
        }
        let payload = self.full_payload(at);
        let subflow = self.subflows.change(at);
        let records = subflow.give(chunk, payload);
        let before = subflow.sender.before_queueing(now, records, decay);
        self.note_decay(now, at, DecayCause::Idle, before);
    }

    /// Everything that could be sent was sent.
    pub(super) fn end_burst(&mut self, now: Instant) {
        // A rate that the connection's cap limits does not show the path.
        let allowed_at = now.max(self.pace_cap.until());
        // An application that waits for room to write is not what leaves a window unused.
        let decay = self.config.transport.idle_restart && !self.writer_waits();
        for at in self.subflows.take_unsettled().iter() {
            let waits_for_pace = self.subflows[at].sender.paced_until() > allowed_at && self.has_supply(at);
            let before = self.subflows.settle(now, at, waits_for_pace, decay);
            self.note_decay(now, at, DecayCause::Unused, before);
        }
        // Nothing that is due is left.
        (self.waits.acknowledges_first, self.waits.answers_on) = (false, None);
        self.arm_progress(now);
    }

    /// Emits that a window decayed, if there is one from `before`.
    #[inline]
    pub(super) fn note_decay(&mut self, now: Instant, at: usize, cause: DecayCause, before: Option<Packets>) {
        if let Some(before) = before {
            let subflow = &self.subflows[at];
            let (from, to) = (before.as_f64(), subflow.sender.window().cwnd.as_f64());
            self.log.emit(now, TransportEvent::WindowDecayed { subflow: subflow.id, cause, from, to });
        }
    }
}
