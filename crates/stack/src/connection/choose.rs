//! Chooses the next segment to send, in a fixed order, and builds nothing: handshakes and resets, retransmissions, data
//! queued on a subflow, data placed by the scheduler, DATA_FIN and FIN, acknowledgments.

use super::{Commit, Connection, Failover, Mode};
use crate::scheduler::{Decision, SubflowSet, Trigger, View};
use crate::subflow::{Chunk, Record, Reinjection};
use crate::view::SubflowView;
use anabranch_events::{SendKind, TransportEvent};
use anabranch_units::{Instant, SubflowId};

/// Linux's connection has the buffers of its subflows and this (`tcp_wmem[0]`, `__mptcp_sync_sndbuf`).
const LEAST_BUFFER: u64 = 4_096;

/// The segment to send; `at` and plain numbers are the subflow's position.
#[derive(Clone, Copy, Debug)]
pub(super) enum Choice {
    /// The handshake segment for the subflow's state.
    Handshake(usize),
    /// RST.
    Reset(usize),
    /// A retransmission of a packet of the same subflow.
    Repeat { at: usize, position: u64, record: Record, kind: SendKind },
    /// Bytes of the stream.
    Data { at: usize, chunk: Chunk },
    /// DATA_FIN.
    End(usize),
    /// The subflow's FIN.
    Fin(usize),
    /// A segment with an old number, to make the peer advertise its window.
    WindowProbe(usize),
    /// An acknowledgment, or an option that must be sent.
    Ack(usize),
}

impl Connection {
    pub(super) fn choose(&mut self, now: Instant) -> Option<Choice> {
        debug_assert_eq!(self.stale_view(), None, "the view of this subflow is out of date");
        self.waits.paced_until = None;
        let choice = self
            .choose_control(now)
            .or_else(|| self.choose_first_acknowledgment(now))
            .or_else(|| self.choose_data(now))
            .or_else(|| self.choose_end())
            .or_else(|| self.choose_acknowledgment(now));
        if choice.is_none() {
            self.end_burst(now);
        }
        choice
    }

    /// Schedulers and congestion controls decide by the views, so these must match the subflows.
    fn stale_view(&self) -> Option<(SubflowView, SubflowView)> {
        let pairs = (0..self.subflows.len()).map(|at| (self.views[at], self.subflows[at].view(self.full_payload(at))));
        pairs.into_iter().find(|(view, truth)| view != truth)
    }

    fn choose_control(&mut self, now: Instant) -> Option<Choice> {
        self.subflows.iter_mut().enumerate().find_map(|(at, subflow)| {
            if subflow.reset.is_some() {
                Some(Choice::Reset(at))
            } else if std::mem::take(&mut subflow.third_due) {
                Some(Choice::Ack(at))
            } else if subflow.handshake.due.is_some_and(|due| due <= now) && !subflow.handshake_failed() {
                Some(Choice::Handshake(at))
            } else {
                None
            }
        })
    }

    fn choose_data(&mut self, now: Instant) -> Option<Choice> {
        if self.has_no_data() {
            return None;
        }
        for at in 0..self.subflows.len() {
            if !self.may_send_now(now, at) {
                continue;
            }
            if let Some((position, record, kind)) = self.subflows[at].sender.next_repetition() {
                return Some(Choice::Repeat { at, position, record, kind });
            }
        }
        loop {
            if let Some(choice) = self.choose_queued(now) {
                return Some(choice);
            }
            // What was written is sent before the application's next write.
            if self.outgoing.write_placed() && self.waits.filling.take().is_some() {
                continue;
            }
            match self.schedule(now) {
                Scheduled::Send(choice) => return Some(choice),
                Scheduled::Queued(at) => self.waits.filling = Some(self.subflows[at].id),
                Scheduled::Nothing if self.waits.filling.take().is_some() => {}
                Scheduled::Nothing => {
                    self.outgoing.write_all();
                    return None;
                }
            }
        }
    }

    /// Nothing is to be sent, retransmitted or waited for: the usual state of a pure receiver.
    fn has_no_data(&self) -> bool {
        self.outgoing.is_idle() && self.subflows.iter().all(|s| s.sender.board().is_empty() && s.queue.is_empty())
    }

    /// Whether the subflow may send data now; records when only pacing prevents it.
    fn may_send_now(&mut self, now: Instant, at: usize) -> bool {
        let subflow = &self.subflows[at];
        if !subflow.is_established() {
            return false;
        }
        let paced_until = subflow.sender.paced_until();
        if paced_until <= now {
            return true;
        }
        if subflow.sender.has_room() {
            let earliest = self.waits.paced_until.map_or(paced_until, |other| other.min(paced_until));
            self.waits.paced_until = Some(earliest);
        }
        false
    }

    /// Data that was queued on a subflow.
    fn choose_queued(&mut self, now: Instant) -> Option<Choice> {
        for at in 0..self.subflows.len() {
            let filling = self.waits.filling == Some(self.subflows[at].id);
            if self.subflows[at].queue.is_empty() || filling || !self.may_send_now(now, at) {
                continue;
            }
            self.wake(now, at);
            let payload = u64::from(self.full_payload(at));
            let unacked = self.outgoing.unacked();
            let subflow = &mut self.subflows[at];
            if subflow.sender.gathers(now, subflow.queued, payload as u32) {
                subflow.sender.gather();
                continue;
            }
            while subflow.sender.has_room() {
                let Some(chunk) = subflow.take(payload) else { break };
                // What was acknowledged meanwhile, through another subflow, need not be sent at all. Upstream Linux cannot take
                // back what stands in the queue of a TCP.
                if chunk.stream_offset + chunk.len > unacked || self.config.transport.failover == Failover::Upstream {
                    return Some(Choice::Data { at, chunk });
                }
            }
            self.refresh(at);
        }
        None
    }

    /// Decays the window of a subflow that is about to send after a pause. What is queued had this effect when it was queued.
    fn wake(&mut self, now: Instant, at: usize) {
        if self.config.transport.commit == Commit::AtWindow && self.subflows[at].sender.board().is_empty() {
            let decay = self.config.transport.idle_restart;
            self.subflows[at].sender.before_sending(now, decay);
            self.refresh(at);
        }
    }

    /// Places bytes on subflows: those of failed subflows first, then new ones.
    fn schedule(&mut self, now: Instant) -> Scheduled {
        if self.mode == Mode::Negotiating || self.subflows.is_empty() {
            return Scheduled::Nothing;
        }
        if let Some(bytes) = self.outgoing.next_reinjection() {
            let scheduled = self.schedule_reinjection(now, bytes);
            if !matches!(scheduled, Scheduled::Nothing) {
                return scheduled;
            }
        }
        if self.config.transport.commit == Commit::IntoBuffer {
            self.outgoing.set_buffer(LEAST_BUFFER + self.subflows.iter().map(|s| s.memory.limit()).sum::<u64>());
        }
        let unsent = self.outgoing.unsent();
        let under_way = self.outgoing.next > self.outgoing.unacked();
        if unsent == 0 && !(under_way && self.scheduler.duplicates()) {
            self.note_waits(now, false, false);
            return Scheduled::Nothing;
        }
        for at in 0..self.subflows.len() {
            self.wake(now, at);
        }
        let candidates = self.candidates(now, None);
        if candidates.is_empty() {
            self.note_waits(now, false, false);
            return Scheduled::Nothing;
        }
        if unsent > 0 && self.window_blocks(unsent) {
            self.note_waits(now, true, false);
            return self.relieve_window(now, candidates);
        }
        self.schedule_new(now, candidates)
    }

    fn schedule_new(&mut self, now: Instant, candidates: SubflowSet) -> Scheduled {
        self.note_period(now);
        let connection = self.connection_view(now);
        let view = View { connection: &connection, subflows: &self.views, candidates };
        match self.scheduler.decide(&view, Trigger::NewData) {
            Decision::Send { subflow, bytes } if candidates.contains(subflow) => {
                self.note_waits(now, false, false);
                self.place_new(now, subflow, bytes)
            }
            Decision::Duplicate { subflow, offset, bytes } if candidates.contains(subflow) => {
                self.note_waits(now, false, false);
                self.place_duplicate(now, subflow, offset, bytes)
            }
            Decision::Wait { until } => {
                self.waits.scheduler_until = until.filter(|at| *at > now);
                self.note_waits(now, false, self.outgoing.unsent() > 0);
                Scheduled::Nothing
            }
            other => {
                debug_assert!(false, "{:?} decided {other:?}, which is no candidate", self.scheduler);
                Scheduled::Nothing
            }
        }
    }

    fn place_new(&mut self, now: Instant, at: usize, bytes: u64) -> Scheduled {
        let payload = u64::from(self.full_payload(at));
        let (limit, written) = match self.config.transport.commit {
            Commit::AtWindow => (payload, self.outgoing.unsent()),
            Commit::IntoBuffer => (bytes.max(1), self.outgoing.begin_write()),
        };
        let len = limit.min(written).min(self.outgoing.window_end() - self.outgoing.next);
        if len == 0 {
            return Scheduled::Nothing;
        }
        let chunk = Chunk { stream_offset: self.outgoing.next, len, kind: SendKind::New };
        self.outgoing.next += len;
        self.hand_over(now, at, chunk)
    }

    fn place_duplicate(&mut self, now: Instant, at: usize, offset: u64, bytes: u64) -> Scheduled {
        let payload = u64::from(self.full_payload(at));
        let start = offset.max(self.outgoing.unacked());
        let len = self.outgoing.next.saturating_sub(start).min(bytes).min(payload);
        if len == 0 {
            return Scheduled::Nothing;
        }
        self.hand_over(now, at, Chunk { stream_offset: start, len, kind: SendKind::Duplicate })
    }

    /// Where data commits at the window it is sent now, otherwise it is added to the subflow's queue.
    fn hand_over(&mut self, now: Instant, at: usize, chunk: Chunk) -> Scheduled {
        if self.config.transport.commit == Commit::AtWindow {
            return Scheduled::Send(Choice::Data { at, chunk });
        }
        self.queue(now, at, chunk);
        Scheduled::Queued(at)
    }

    /// Adds bytes to the queue of a subflow.
    pub(super) fn queue(&mut self, now: Instant, at: usize, chunk: Chunk) {
        // Where data commits at the window, the window decays when the data is sent (`wake`).
        let decay = self.config.transport.idle_restart && self.config.transport.commit == Commit::IntoBuffer;
        let payload = self.full_payload(at);
        let subflow = &mut self.subflows[at];
        let records = subflow.give(chunk, payload);
        subflow.sender.before_queueing(now, records, decay);
        self.refresh(at);
    }

    fn schedule_reinjection(&mut self, now: Instant, bytes: Reinjection) -> Scheduled {
        self.note_period(now);
        // Not on the subflow that lost them, unless there is no other.
        let alternative = self.views.iter().any(|view| view.usable() && view.id != bytes.avoid);
        let candidates = self.candidates(now, alternative.then_some(bytes.avoid));
        if candidates.is_empty() {
            return Scheduled::Nothing;
        }
        let connection = self.connection_view(now);
        let view = View { connection: &connection, subflows: &self.views, candidates };
        let Decision::Send { subflow: at, .. } = self.scheduler.decide(&view, Trigger::Reinjection) else {
            return Scheduled::Nothing;
        };
        let len = (bytes.end - bytes.start).min(u64::from(self.full_payload(at)));
        self.outgoing.take_reinjection(len);
        self.hand_over(now, at, Chunk { stream_offset: bytes.start, len, kind: SendKind::Reinjection })
    }

    /// The subflows that can take data: usable, not held back by pacing, with room; backups only if nothing else is usable.
    /// Ignores the subflow `without`.
    fn candidates(&mut self, now: Instant, without: Option<SubflowId>) -> SubflowSet {
        // Plain TCP has no other subflow on which new data could avoid the repair after a timeout.
        let alone = self.mode == Mode::Plain;
        let counts = |view: &SubflowView| (view.usable() || (alone && view.established)) && Some(view.id) != without;
        let backups = !self.views.iter().any(|view| counts(view) && !view.backup);
        let mut set = SubflowSet::EMPTY;
        for at in 0..self.views.len().min(64) {
            let view = &self.views[at];
            let room = match self.config.transport.commit {
                Commit::AtWindow => view.room() > 0,
                Commit::IntoBuffer => view.memory < view.send_buffer,
            };
            if counts(view) && view.backup == backups && room && self.may_take_now(now, at) {
                set.insert(at);
            }
        }
        set
    }

    /// Whether new data should wait until the subflow has room for a burst.
    fn gathers(&mut self, now: Instant, at: usize) -> bool {
        let gathers = self.subflows[at].sender.gathers(now, self.outgoing.unsent(), self.views[at].mss);
        if gathers {
            self.subflows[at].sender.gather();
        }
        gathers
    }

    /// Data that commits at the window leaves at once, so pacing and bursts matter; a queue can take it at any time.
    fn may_take_now(&mut self, now: Instant, at: usize) -> bool {
        self.config.transport.commit == Commit::IntoBuffer || (self.may_send_now(now, at) && !self.gathers(now, at))
    }

    /// Whether the peer's window blocks new data. A remainder smaller than a segment waits while anything is in flight
    /// (sender-side silly-window avoidance, RFC 9293 section 3.8.6.2.1), unless a subflow's buffer takes it: upstream Linux fills
    /// the window to its end.
    fn window_blocks(&self, unsent: u64) -> bool {
        let space = self.outgoing.window_end().saturating_sub(self.outgoing.next);
        let segment = self.views.iter().map(|view| u64::from(view.mss)).min().unwrap_or(1);
        let under_way = self.outgoing.next > self.outgoing.unacked();
        let silly = under_way && space < unsent.min(segment) && self.config.transport.commit == Commit::AtWindow;
        space == 0 || silly
    }

    /// Opportunistic retransmission and penalisation (Raiciu et al., NSDI 2012; legacy `mptcp_rcv_buf_optimization`): the
    /// segment that blocks the window is retransmitted on the fastest subflow with room, and the window of the subflow
    /// that holds it is halved.
    fn relieve_window(&mut self, now: Instant, candidates: SubflowSet) -> Scheduled {
        let head = self.outgoing.unacked();
        if !self.config.transport.opportunistic_retransmission || self.progress.repeated_head == Some(head) {
            return Scheduled::Nothing;
        }
        let fastest = candidates.iter().min_by_key(|at| self.views[*at].srtt);
        let holder = self.subflows.iter().position(|s| s.sender.board().carries_near_front(head));
        let (Some(fast), Some(slow)) = (fastest, holder) else { return Scheduled::Nothing };
        let (fast_view, slow_view) = (self.views[fast], self.views[slow]);
        if fast == slow || fast_view.srtt >= slow_view.srtt {
            return Scheduled::Nothing;
        }
        if self.config.transport.penalisation {
            self.penalise(now, slow, fast_view);
        }
        // Not worth it if the copy arrives no earlier than the original (legacy condition).
        if slow_view.cwnd.floor() > 4 && fast_view.srtt * 4 >= slow_view.srtt {
            return Scheduled::Nothing;
        }
        self.progress.repeated_head = Some(head);
        self.progress.opportunistic += 1;
        let len = u64::from(self.full_payload(fast)).min(self.outgoing.next - head);
        self.hand_over(now, fast, Chunk { stream_offset: head, len, kind: SendKind::Reinjection })
    }

    fn penalise(&mut self, now: Instant, slow: usize, fast: SubflowView) {
        let subflow = &mut self.subflows[slow];
        let recently = subflow.penalised_at.is_some_and(|at| now.since(at) < fast.srtt);
        if recently || subflow.sender.phase() != crate::view::Phase::Open {
            return;
        }
        subflow.penalised_at = Some(now);
        let cut = subflow.sender.penalise();
        let event = TransportEvent::WindowReduced {
            subflow: subflow.id,
            cause: cut.cause,
            from: cut.from.as_f64(),
            to: cut.to.as_f64(),
        };
        self.log.emit(now, event);
        self.refresh(slow);
    }

    fn choose_end(&mut self) -> Option<Choice> {
        // Before that, the keys take the option space of DATA_FIN.
        let may_tell = self.mode == Mode::Multipath && self.confirmed;
        if self.outgoing.end_pending() && may_tell && !self.end_told {
            self.end_told = true;
            self.subflows.iter_mut().filter(|s| s.is_established()).for_each(|s| s.tell_end = true);
        }
        if self.mode == Mode::Plain && self.outgoing.exhausted() {
            for at in 0..self.subflows.len() {
                if self.subflows[at].is_established() && !std::mem::replace(&mut self.subflows[at].closing, true) {
                    self.refresh(at);
                }
            }
        }
        self.subflows.iter_mut().enumerate().find_map(|(at, subflow)| {
            if !subflow.is_established() {
                None
            } else if std::mem::take(&mut subflow.tell_end) {
                Some(Choice::End(at))
            } else if subflow.closing && !subflow.fin_sent && subflow.queue.is_empty() {
                Some(Choice::Fin(at))
            } else if std::mem::take(&mut subflow.window_probe) {
                Some(Choice::WindowProbe(at))
            } else {
                None
            }
        })
    }

    /// Linux acknowledges the first data of a connection at once, before the application can answer (quick acknowledgments, which
    /// end with the first answer: "pingpong mode").
    fn choose_first_acknowledgment(&mut self, now: Instant) -> Option<Choice> {
        let unanswered = self.incoming.next() > 0 && self.outgoing.next == 0;
        if unanswered { self.choose_acknowledgment(now) } else { None }
    }

    fn choose_acknowledgment(&mut self, now: Instant) -> Option<Choice> {
        let wants = |at: &usize| {
            let subflow = &self.subflows[*at];
            let signals = !subflow.signals.is_empty() && self.may_signal(*at);
            subflow.is_established() && (subflow.receiver.wants_ack(now) || signals)
        };
        (0..self.subflows.len()).find(wants).map(Choice::Ack)
    }

    /// Everything that could be sent was sent.
    fn end_burst(&mut self, now: Instant) {
        let decay = self.config.transport.idle_restart;
        if self.config.transport.commit == Commit::IntoBuffer && self.outgoing.lacks_room() {
            self.expand_send_buffers();
        }
        for at in 0..self.subflows.len() {
            let waits_for_pace = self.subflows[at].sender.paced_until() > now && self.has_supply(at);
            let subflow = &mut self.subflows[at];
            subflow.sender.note_supply(waits_for_pace);
            if std::mem::take(&mut subflow.sent_in_burst) || subflow.sender.is_gathering() {
                subflow.sender.after_sending(now, decay);
                self.refresh(at);
            }
        }
        self.arm_progress(now);
    }

    /// Whether there is data that the subflow may send, or that a scheduler may give it.
    fn has_supply(&self, at: usize) -> bool {
        let unsent = self.outgoing.unsent();
        match self.config.transport.commit {
            Commit::AtWindow => unsent > 0 && !self.window_blocks(unsent),
            // What commits into the buffer was queued already, if it is for this subflow.
            Commit::IntoBuffer => !self.subflows[at].queue.is_empty(),
        }
    }

    fn expand_send_buffers(&mut self) {
        for at in 0..self.subflows.len() {
            if self.subflows[at].is_established() && self.subflows[at].expand_send_buffer() {
                self.refresh(at);
            }
        }
    }

    fn note_waits(&mut self, now: Instant, window_limited: bool, scheduler_waiting: bool) {
        if self.waits.window_limited != window_limited {
            self.waits.window_limited = window_limited;
            self.log.emit(now, TransportEvent::ReceiveWindowLimited { limited: window_limited });
        }
        if self.waits.scheduler_waiting != scheduler_waiting {
            self.waits.scheduler_waiting = scheduler_waiting;
            self.log.emit(now, TransportEvent::SchedulerWaiting { waiting: scheduler_waiting });
        }
    }
}

/// Placement result.
enum Scheduled {
    /// The bytes are sent now.
    Send(Choice),
    /// The bytes are in the queue of this subflow.
    Queued(usize),
    /// No bytes can be placed.
    Nothing,
}
