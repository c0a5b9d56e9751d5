//! Chooses the next segment to send, in a fixed order: handshakes and resets, retransmissions, data queued on a
//! subflow, data placed by the scheduler, DATA_FIN and FIN, acknowledgments.
//!
//! A choice moves no data and clears no flag: `carry_out` does. What choosing leaves behind are its own notes: why data
//! waits, bursts that were deferred, windows that decayed while nothing was sent, and penalties.

use super::deadline::Deadline;
use super::predict::is_off;
use super::{Commit, Connection, Failover, Mode};
use crate::scheduler::{Decision, Scheduler, SubflowSet, Trigger, View};
use crate::subflow::{Attempt, Chunk, Closing, Record, Reinjection, Subflow};
use crate::view::SubflowView;
use anabranch_events::{CopyCause, DecayCause, SendKind, TransportEvent};
use anabranch_units::{Instant, SubflowId};

/// The segment to send; `at` and plain numbers are the subflow's position.
#[derive(Clone, Copy, Debug)]
pub(super) enum NextSegment {
    /// A segment that opens or closes something.
    Control(Control),
    /// A retransmission of a packet of the same subflow.
    Retransmit { at: usize, position: u64, kind: SendKind },
    /// The first bytes of a packet in flight, to learn whether its size is why it does not arrive.
    Sample { at: usize, position: u64, len: u32 },
    /// Bytes of the stream: to send now, or to queue where data commits into the buffer.
    Data { at: usize, chunk: Chunk, source: Source },
    /// An acknowledgment, or an option that must be sent.
    Ack(usize),
}

/// A segment of which a connection has few.
#[derive(Clone, Copy, Debug)]
pub(super) enum Control {
    /// The handshake segment for the subflow's state.
    Handshake(usize),
    /// RST.
    Reset(usize),
    /// DATA_FIN.
    End(usize),
    /// The subflow's FIN.
    Fin(usize),
    /// A segment with an old number, to make the peer advertise its window.
    WindowProbe(usize),
}

/// Where the bytes of a choice come from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// The subflow's queue.
    Queue,
    /// Bytes never given to a subflow.
    Unsent,
    /// The data of failed subflows.
    Reinjection,
    /// Data in flight, which the scheduler duplicates.
    InFlight,
    /// The first unacknowledged data, which blocks the shared window.
    FirstUnacked,
}

/// A scheduler made a decision that it must not make. Sending nothing would look like a slow path.
///
/// # Panics
/// Always.
#[cold]
fn no_candidate(scheduler: &dyn Scheduler, decision: Decision) -> ! {
    panic!("{scheduler:?} decided {decision:?}: that is no candidate, or no answer to a reinjection")
}

impl Connection {
    /// Whether there is nothing to send but acknowledgments, as mostly at an end that receives.
    #[inline]
    pub(super) fn only_acknowledges(&mut self) -> bool {
        let activity = self.subflows.activity();
        let at_subflows = activity.control_segments.union(activity.in_flight).union(activity.queued);
        at_subflows.is_empty() && self.outgoing.is_idle() && !self.outgoing.exhausted()
    }

    #[inline]
    pub(super) fn choose(&mut self, now: Instant) -> Option<NextSegment> {
        // The other choices would find nothing and change nothing, which takes longer. A test compares.
        if !is_off() && self.only_acknowledges() {
            return self.choose_acknowledgment(now);
        }
        self.choose_control(now)
            .or_else(|| self.choose_early_acknowledgment(now))
            .or_else(|| self.choose_data(now))
            .or_else(|| self.choose_end())
            .or_else(|| self.choose_acknowledgment(now))
    }

    fn choose_control(&mut self, now: Instant) -> Option<NextSegment> {
        self.subflows.activity().control_segments.iter().find_map(|at| {
            let subflow = &self.subflows[at];
            if subflow.control_segments.resets() {
                Some(NextSegment::Control(Control::Reset(at)))
            } else if subflow.control_segments.owes_third_segment() {
                Some(NextSegment::Ack(at))
            } else if subflow.handshake.due.is_some_and(|due| due <= now) && !subflow.handshake_failed() {
                Some(NextSegment::Control(Control::Handshake(at)))
            } else {
                None
            }
        })
    }

    fn choose_data(&mut self, now: Instant) -> Option<NextSegment> {
        let activity = self.subflows.activity();
        let repairing_or_paced = activity.repairing_or_paced;
        if activity.in_flight.union(activity.queued).is_empty() && self.outgoing.is_idle() {
            return None;
        }
        for at in repairing_or_paced.iter() {
            // What shows the size of packets that pass comes right behind the packet that it is compared with, whatever
            // the pace is.
            let subflow = &self.subflows[at];
            let at_once = subflow.is_established() && subflow.sender.exceeds_window();
            if !(at_once || self.may_send_now(now, at)) || !self.subflows[at].sender.may_retransmit() {
                continue;
            }
            if let Some((position, record)) = self.subflows[at].sender.next_withheld()
                && self.window_allows(at, position, &record)
            {
                return Some(NextSegment::Retransmit { at, position, kind: SendKind::New });
            }
            if at_once
                && self.subflows[at].sender.has_ripe_sample()
                && let Some((position, len)) = self.subflows.change(at).sender.next_sample()
            {
                return Some(NextSegment::Sample { at, position, len });
            }
            if self.subflows[at].sender.probe_is_due()
                && let Some(chunk) = self.new_data_for_probe(at)
            {
                return Some(NextSegment::Data { at, chunk, source: Source::Queue });
            }
            if let Some((position, record, kind)) = self.subflows.change(at).sender.next_retransmission()
                && self.window_allows(at, position, &record)
            {
                return Some(NextSegment::Retransmit { at, position, kind });
            }
            if let Some((position, len)) = self.subflows.change(at).sender.next_sample() {
                return Some(NextSegment::Sample { at, position, len });
            }
        }
        loop {
            // Linux looks at what an acknowledgment allows before it sends (`ack_update_msk`, `tcp_data_snd_check`).
            let queued = self.subflows.activity().queued;
            if !queued.is_empty()
                && !self.waits.gives_first
                && let Some(choice) = self.choose_queued(now, queued)
            {
                return Some(choice);
            }
            // What was written is sent before the application's next write.
            if self.waits.filling.is_some() && !self.waits.gives_first && self.outgoing.unsent() == 0 {
                self.end_filling(now);
                continue;
            }
            let choice = self.schedule(now);
            if choice.is_some() || !self.goes_on(now) {
                return choice;
            }
        }
    }

    /// Nothing more can be placed. Returns whether there may be data to send all the same: data that was placed in the
    /// buffers of subflows, or that the application writes now.
    #[inline]
    fn goes_on(&mut self, now: Instant) -> bool {
        self.config.transport.commit == Commit::IntoBuffer && self.sends_or_writes(now)
    }

    /// Not inlined, as [`Connection::choose_queued`]: with them every packet costs more, also where no buffer holds
    /// data.
    #[inline(never)]
    fn sends_or_writes(&mut self, now: Instant) -> bool {
        let gave_first = std::mem::take(&mut self.waits.gives_first);
        let filled = self.waits.filling.is_some();
        if filled {
            self.end_filling(now);
        }
        gave_first || filled || self.write_next()
    }

    /// Everything was placed that can be: what is queued is sent. The connection's timer starts before any of it has
    /// left (Linux's `__mptcp_push_pending`).
    fn end_filling(&mut self, now: Instant) {
        self.waits.filling = None;
        self.arm_progress(now);
    }

    /// Whether the subflow may send data now; records when only pacing, its own or the connection's, prevents it.
    fn may_send_now(&mut self, now: Instant, at: usize) -> bool {
        let subflow = &self.subflows[at];
        if !subflow.is_established() {
            return false;
        }
        let paced_until = subflow.sender.paced_until().max(self.pace_cap.until());
        if paced_until <= now || (self.pace_cap.until() <= now && subflow.sender.continues_burst(now)) {
            return true;
        }
        if subflow.sender.has_room() {
            self.waits.paced_until = Deadline::at(self.waits.paced_until.time().min(paced_until));
        }
        false
    }

    /// What is sent as a tail-loss probe: the next packet of the subflow's queue, whatever the congestion window is, if
    /// there is one and the peer's window allows it (RFC 8985 section 7.3, Linux's `tcp_send_loss_probe`).
    #[cold]
    fn new_data_for_probe(&self, at: usize) -> Option<Chunk> {
        let next = self.subflows[at].peek(u64::from(self.full_payload(at)));
        next.and_then(|chunk| self.within_window(at, chunk))
    }

    /// Data that was queued on one of these subflows.
    #[inline(never)]
    fn choose_queued(&mut self, now: Instant, mut queued: SubflowSet) -> Option<NextSegment> {
        while let Some(at) = self.next_queue(queued) {
            queued.remove(at);
            if self.waits.filling == Some(self.subflows[at].id) || !self.may_send_now(now, at) {
                continue;
            }
            if self.windows_decay() {
                self.decay_idle_window(now, at);
            }
            // Linux sends one record at a time, and the end of a record does not wait for the next one.
            let record = self.subflows[at].queue.front().map_or(0, |record| record.len);
            let payload = self.full_payload(at);
            if self.subflows.defers_for_burst(now, at, record, payload) {
                continue;
            }
            self.drop_acknowledged(at, u64::from(payload));
            let Some(payload) = self.size_to_send(now, at, payload, Source::Queue) else { continue };
            let subflow = &self.subflows[at];
            let next = subflow.peek(u64::from(payload)).filter(|_| subflow.sender.has_room());
            if let Some(chunk) = next.and_then(|chunk| self.within_window(at, chunk)) {
                return Some(NextSegment::Data { at, chunk, source: Source::Queue });
            }
        }
        None
    }

    /// The subflow whose queue comes next. A cap leaves all of them less than they could carry together: what the peer
    /// needs first leaves first, or the queue that comes last would hold up the stream.
    fn next_queue(&self, queued: SubflowSet) -> Option<usize> {
        let needed = |at: &usize| self.subflows[*at].queue.front().map(|chunk| chunk.stream_offset);
        if self.pace_cap.rate().is_some() { queued.iter().min_by_key(needed) } else { queued.iter().next() }
    }

    /// Removes what was acknowledged meanwhile, through another subflow, from the front of the queue: it need not be
    /// sent at all. Upstream Linux cannot take back what stands in the queue of a TCP.
    fn drop_acknowledged(&mut self, at: usize, payload: u64) {
        if self.config.transport.failover == Failover::Upstream || !self.subflows[at].sender.has_room() {
            return;
        }
        let unacked = self.outgoing.unacked();
        let acknowledged =
            |subflow: &Subflow| subflow.peek(payload).is_some_and(|chunk| chunk.stream_offset + chunk.len <= unacked);
        while acknowledged(&self.subflows[at]) {
            self.subflows.change(at).take(payload);
        }
    }

    /// Decays the windows of subflows that may send now after a pause.
    fn decay_idle_windows(&mut self, now: Instant) {
        if self.windows_decay() {
            let idle = SubflowSet::below(self.subflows.len()).without(self.subflows.activity().in_flight);
            idle.iter().for_each(|at| self.decay_idle_window(now, at));
        }
    }

    /// Whether windows decay when data is about to be sent. What is queued had this effect when it was queued.
    fn windows_decay(&self) -> bool {
        self.config.transport.commit == Commit::AtWindow && self.config.transport.idle_restart
    }

    #[inline]
    fn decay_idle_window(&mut self, now: Instant, at: usize) {
        let sender = &self.subflows[at].sender;
        if sender.board().is_empty() && sender.idles_beyond_timeout(now) {
            let before = self.subflows.change(at).sender.before_sending(now);
            self.note_decay(now, at, DecayCause::Idle, before);
        }
    }

    /// Places bytes on subflows: those of failed subflows first, then new ones.
    fn schedule(&mut self, now: Instant) -> Option<NextSegment> {
        if self.mode() == Mode::Negotiating || self.subflows.is_empty() {
            return None;
        }
        self.give_up_silent(now);
        if let Some(bytes) = self.outgoing.next_reinjection() {
            let scheduled = self.schedule_reinjection(now, bytes);
            if scheduled.is_some() {
                return scheduled;
            }
        }
        self.size_send_buffer();
        let unsent = self.outgoing.unsent();
        // In plain TCP the position in the subflow is that in the stream, so nothing can be sent twice under another
        // number.
        let under_way = self.mode() == Mode::Multipath && self.outgoing.next > self.outgoing.unacked();
        if unsent == 0 && !(under_way && self.forecasting.services.duplicates) {
            self.note_waits(now, false, false);
            return None;
        }
        if unsent > 0 {
            self.note_period(now);
        }
        self.decay_idle_windows(now);
        let candidates = self.candidates(now, None);
        if candidates.is_empty() {
            self.note_waits(now, false, false);
            return None;
        }
        if unsent > 0 && self.window_blocks(unsent) {
            self.note_waits(now, true, false);
            return self.relieve_window(now, candidates);
        }
        self.schedule_new(now, candidates)
    }

    fn schedule_new(&mut self, now: Instant, candidates: SubflowSet) -> Option<NextSegment> {
        let connection = self.connection_view(now);
        let flight = self.forecasting.list_flight(&self.subflows, &self.outgoing);
        let subflows = self.subflows.views();
        let view = View { connection: &connection, subflows, candidates, flight };
        let decision = self.scheduler.decide(&view, Trigger::NewData);
        self.explain(now);
        match decision {
            Decision::Send { subflow, bytes } if candidates.contains(subflow) => {
                self.note_waits(now, false, false);
                let placed = self.place_new(now, subflow, bytes);
                self.note_decision(now, candidates, placed.as_ref());
                placed
            }
            Decision::Duplicate { subflow, offset, bytes } if candidates.contains(subflow) => {
                self.note_waits(now, false, false);
                self.place_duplicate(now, subflow, offset, bytes)
            }
            Decision::Wait { until } => {
                self.waits.scheduler_until = until.filter(|at| *at > now).into();
                let had_waited = self.waits.scheduler_waiting;
                self.note_waits(now, false, self.outgoing.unsent() > 0);
                if self.waits.scheduler_waiting && !had_waited {
                    self.note_decision(now, candidates, None);
                }
                None
            }
            other => no_candidate(self.scheduler.as_ref(), other),
        }
    }

    fn place_new(&mut self, now: Instant, at: usize, bytes: u64) -> Option<NextSegment> {
        let payload = u64::from(self.subflows.latest_view(at).mss);
        let limit = match self.config.transport.commit {
            Commit::AtWindow if bytes >= payload => {
                u64::from(self.size_to_send(now, at, payload as u32, Source::Unsent)?)
            }
            Commit::AtWindow => bytes.clamp(1, payload),
            Commit::IntoBuffer => bytes.max(1),
        };
        let len = limit.min(self.outgoing.unsent()).min(self.outgoing.window_end() - self.outgoing.next);
        if len == 0 {
            return None;
        }
        let chunk = Chunk { stream_offset: self.outgoing.next, len, kind: SendKind::New };
        Some(NextSegment::Data { at, chunk, source: Source::Unsent })
    }

    /// Payload of the next segment with data from this source: that of a `full` segment, or that of one which tries a
    /// larger size. `None`: such a segment waits for room in the peer's window.
    #[inline]
    fn size_to_send(&mut self, now: Instant, at: usize, full: u32, source: Source) -> Option<u32> {
        if self.subflows[at].sender.size().searches(now) { self.try_larger(at, full, source) } else { Some(full) }
    }

    #[cold]
    fn try_larger(&mut self, at: usize, full: u32, source: Source) -> Option<u32> {
        let (unsent, space) = match source {
            // What is queued is within the window.
            Source::Queue => (self.subflows[at].peek(u64::MAX).map_or(0, |chunk| chunk.len), u64::MAX),
            _ => (self.outgoing.unsent(), self.outgoing.window_end() - self.outgoing.next),
        };
        match self.subflows.change(at).sender.try_larger(full, unsent, space) {
            Attempt::None => Some(full),
            Attempt::Of(larger) => Some(larger),
            Attempt::Wait => None,
        }
    }

    fn place_duplicate(&mut self, now: Instant, at: usize, offset: u64, bytes: u64) -> Option<NextSegment> {
        let payload = u64::from(self.full_payload(at));
        let start = offset.max(self.outgoing.unacked());
        let len = self.outgoing.next.saturating_sub(start).min(bytes).min(payload);
        if len == 0 {
            return None;
        }
        let chunk = Chunk { stream_offset: start, len, kind: SendKind::Duplicate };
        self.note_copy(now, at, &chunk, None, self.cause_of_duplicate());
        Some(NextSegment::Data { at, chunk, source: Source::InFlight })
    }

    fn schedule_reinjection(&mut self, now: Instant, bytes: Reinjection) -> Option<NextSegment> {
        self.note_period(now);
        // Not on the subflow that lost them, unless there is no other.
        let alternative = self.subflows.views().iter().any(|view| view.usable() && Some(view.id) != bytes.avoid);
        let candidates = self.candidates(now, bytes.avoid.filter(|_| alternative));
        if candidates.is_empty() {
            return None;
        }
        let connection = self.connection_view(now);
        let subflows = self.subflows.views();
        let view = View { connection: &connection, subflows, candidates, flight: &[] };
        let at = match self.scheduler.decide(&view, Trigger::Reinjection) {
            Decision::Send { subflow, .. } if candidates.contains(subflow) => subflow,
            Decision::Wait { .. } => return None,
            other => no_candidate(self.scheduler.as_ref(), other),
        };
        let len = (bytes.end - bytes.start).min(u64::from(self.full_payload(at)));
        let chunk = Chunk { stream_offset: bytes.start, len, kind: SendKind::Reinjection };
        self.note_copy(now, at, &chunk, bytes.avoid, bytes.cause);
        Some(NextSegment::Data { at, chunk, source: Source::Reinjection })
    }

    /// The subflows that can take data: usable, not held back by pacing, with room; backups only if nothing else is
    /// usable. Ignores the subflow `without`.
    fn candidates(&mut self, now: Instant, without: Option<SubflowId>) -> SubflowSet {
        let availability = *self.subflows.availability();
        // Plain TCP has no other subflow on which new data could avoid the repair after a timeout.
        let alone = self.mode() == Mode::Plain;
        let mut considered =
            if alone { availability.usable.union(availability.established) } else { availability.usable };
        if let Some(at) = without.and_then(|id| self.subflows.iter().position(|subflow| subflow.id == id)) {
            considered.remove(at);
        }
        let mut set = availability.with_room(considered);
        if self.config.transport.commit == Commit::AtWindow {
            // This data leaves at once, so pacing and bursts matter; a queue can take data at any time.
            let unsent = self.outgoing.unsent();
            for at in set.iter() {
                let full = self.subflows.latest_view(at).mss;
                if !self.may_send_now(now, at) || self.subflows.defers_for_burst(now, at, unsent, full) {
                    set.remove(at);
                }
            }
        }
        set
    }

    /// Whether the peer's window blocks new data. A remainder smaller than a segment waits while anything is in flight
    /// (sender-side silly-window avoidance, RFC 9293 section 3.8.6.2.1), unless a subflow's buffer takes it: upstream
    /// Linux fills the window to its end.
    fn window_blocks(&mut self, unsent: u64) -> bool {
        let space = self.outgoing.window_end().saturating_sub(self.outgoing.next);
        let under_way = self.outgoing.next > self.outgoing.unacked();
        if space == 0 || space >= unsent || self.config.transport.commit == Commit::IntoBuffer {
            return space == 0;
        }
        // The window of plain TCP may shrink to less than a segment.
        let largest = || self.subflows.first().map_or(0, |subflow| subflow.peer_window.largest());
        if !under_way && (self.mode() != Mode::Plain || !self.outgoing.avoids_silly_window(space, largest())) {
            return false;
        }
        // Mostly the first subflow's segment fits.
        self.subflows.views().iter().all(|view| space < u64::from(view.mss))
    }

    /// Whether the window of plain TCP allows a packet that was sent before to be sent again: one that begins in it, or
    /// the first one, which probes a closed window (RFC 9293 section 3.8.6, SHLD-16; Linux's `tcp_retransmit_skb`).
    fn window_allows(&self, at: usize, position: u64, record: &Record) -> bool {
        let first = self.subflows[at].sender.board().first_position();
        let within = record.stream_offset < self.outgoing.window_end() + u64::from(record.fin);
        self.mode() != Mode::Plain || position == first || within
    }

    /// The part of a queued chunk that the window allows: what was queued lay within it, but that of plain TCP may
    /// shrink, and so may a subflow's own.
    #[inline]
    fn within_window(&self, at: usize, chunk: Chunk) -> Option<Chunk> {
        if self.mode() != Mode::Plain {
            return self.subflow_window_allows(at, chunk.len).then_some(chunk);
        }
        let space = self.outgoing.window_end().saturating_sub(chunk.stream_offset);
        (space > 0).then_some(Chunk { len: chunk.len.min(space), ..chunk })
    }

    /// Whether a subflow's own window has room for the next `bytes` on it (Linux's `tcp_snd_wnd_test`), where there is
    /// such a window. If nothing is in flight they may leave all the same: no acknowledgment would say that the window
    /// has opened (Linux sends them when a timeout has passed). Before the first acknowledgment no window is known.
    #[inline]
    pub(super) fn subflow_window_allows(&self, at: usize, bytes: u64) -> bool {
        let subflow = &self.subflows[at];
        let window = &subflow.peer_window;
        let ends_within = subflow.sender.next() + bytes <= subflow.sender.acked() + window.bytes();
        let counts = self.config.transport.subflow_windows && window.largest() > 0;
        ends_within || !counts || subflow.sender.board().is_empty()
    }

    /// Opportunistic retransmission and penalisation (Raiciu et al., NSDI 2012; legacy `mptcp_rcv_buf_optimization`):
    /// the segment that blocks the window is retransmitted on the fastest subflow with room, and the window of the
    /// subflow that holds it is halved.
    fn relieve_window(&mut self, now: Instant, candidates: SubflowSet) -> Option<NextSegment> {
        let head = self.outgoing.unacked();
        if !self.config.transport.opportunistic_retransmission || self.progress.relieved_at == Some(head) {
            return None;
        }
        let holder = self.subflows.iter().position(|s| s.sender.board().carries_near_front(head));
        let views = self.subflows.views();
        let fastest = candidates.iter().min_by_key(|at| views[*at].srtt);
        let (Some(fast), Some(slow)) = (fastest, holder) else { return None };
        let (fast_view, slow_view) = (views[fast], views[slow]);
        if fast == slow || fast_view.srtt >= slow_view.srtt {
            return None;
        }
        if self.config.transport.penalisation {
            self.penalise(now, slow, fast_view);
        }
        // Not worth it if the copy arrives no earlier than the original (legacy condition).
        if slow_view.cwnd.floor() > 4 && fast_view.srtt * 4 >= slow_view.srtt {
            return None;
        }
        let len = u64::from(self.full_payload(fast)).min(self.outgoing.next - head);
        let chunk = Chunk { stream_offset: head, len, kind: SendKind::Reinjection };
        self.note_copy(now, fast, &chunk, Some(self.subflows[slow].id), CopyCause::WindowFull);
        Some(NextSegment::Data { at: fast, chunk, source: Source::FirstUnacked })
    }

    fn penalise(&mut self, now: Instant, slow: usize, fast: SubflowView) {
        let subflow = self.subflows.change(slow);
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
    }

    fn choose_end(&mut self) -> Option<NextSegment> {
        self.begin_end();
        self.subflows.activity().control_segments.iter().find_map(|at| {
            let subflow = &self.subflows[at];
            let closing =
                subflow.control_segments.closing(!subflow.queue.is_empty()).filter(|_| subflow.is_established())?;
            Some(NextSegment::Control(match closing {
                Closing::DataFin => Control::End(at),
                Closing::Fin => Control::Fin(at),
                Closing::WindowProbe => Control::WindowProbe(at),
            }))
        })
    }

    /// Everything was sent and the application has no more: DATA_FIN is due on every subflow, or, over TCP, the FIN.
    fn begin_end(&mut self) {
        if !self.outgoing.exhausted() {
            return;
        }
        // Before the peer has sent DSS, the keys take the option space of DATA_FIN.
        let may_send = self.mode() == Mode::Multipath && self.confirmed();
        if self.outgoing.end_pending() && may_send && !self.data_fin_sent {
            self.data_fin_sent = true;
            self.subflows.iter_mut().filter(|s| s.is_established()).for_each(|s| s.control_segments.send_data_fin());
        }
        if self.mode() == Mode::Plain {
            for at in 0..self.subflows.len() {
                if self.subflows[at].is_established() && !self.subflows[at].control_segments.is_closing() {
                    self.subflows.change(at).control_segments.close();
                }
            }
        }
    }

    /// An acknowledgment that leaves before data: what reading made due, and the first one of a connection, which Linux
    /// sends before the application can answer (also where the host does not [ask](Connection::begin_reading)).
    fn choose_early_acknowledgment(&mut self, now: Instant) -> Option<NextSegment> {
        let unanswered = self.incoming.next() > 0 && self.outgoing.next == 0;
        if unanswered || self.waits.acknowledges_first { self.choose_acknowledgment(now) } else { None }
    }

    fn choose_acknowledgment(&mut self, now: Instant) -> Option<NextSegment> {
        let owing = self.subflows.owing(now);
        let concerned = owing.union(self.subflows.activity().control_segments);
        if concerned.is_empty() {
            return None;
        }
        let wants = |at: &usize| {
            let subflow = &self.subflows[*at];
            let signals = || !subflow.control_segments.signals.is_empty() && self.may_signal(*at);
            subflow.is_established() && (owing.contains(*at) || signals())
        };
        concerned.iter().find(wants).map(NextSegment::Ack)
    }

    /// Whether there is data that the subflow may send, or that a scheduler may give it.
    pub(super) fn has_supply(&mut self, at: usize) -> bool {
        let unsent = self.outgoing.unsent();
        match self.config.transport.commit {
            Commit::AtWindow => unsent > 0 && !self.window_blocks(unsent),
            // What commits into the buffer was queued already, if it is for this subflow.
            Commit::IntoBuffer => !self.subflows[at].queue.is_empty(),
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
