//! Failures: timeouts and ends of subflows, unacknowledged data, removed addresses, the end of the connection.

use super::deadline::Deadline;
use super::{Connection, Failover, Mode};
use crate::subflow::{Reinjection, State};
use anabranch_events::{CloseReason, CopyCause, TransportEvent};
use anabranch_segment::ResetReason;
use anabranch_units::{Duration, Instant, PathId};

/// How long a peer with a closed window may be silent: probes are at most half as far apart (Linux's
/// `tcp_rtx_probe0_timed_out`, twice `TCP_RTO_MAX`).
const CLOSED_WINDOW_SILENCE: Duration = Duration::from_secs(240);
/// A connection without any subflow is given up after this long (Linux's close timeout).
const CLOSE_TIMEOUT: Duration = Duration::from_secs(60);

impl Connection {
    /// The subflow's retransmission timer fired. The others retransmit its data, and it gets no new data until an
    /// acknowledgment arrives on it (legacy Multipath TCP's "potentially failed").
    pub(super) fn on_subflow_timeout(&mut self, now: Instant, at: usize, timeout: Duration) {
        let (subflow, in_a_row) = (self.subflows[at].id, self.subflows[at].sender.timeouts());
        self.log.emit(now, TransportEvent::TimeoutFired { subflow, in_a_row, timeout });
        if self.subflows[at].timed_out() && !self.keeps_window_closed(now, at) {
            self.subflows.change(at).state = State::Closed(CloseReason::TimedOut);
            return;
        }
        if self.hand_over(at, CopyCause::Timeout) {
            self.subflows.change(at).potentially_failed = true;
            self.forecasting.note_given_up(now, subflow);
        }
    }

    /// Whether a plain TCP has queued data, but nothing in flight: its peer shrank the window.
    fn window_holds_queue(&self) -> bool {
        let mut subflows = self.subflows.iter();
        self.mode() == Mode::Plain && subflows.any(|s| s.queued > 0 && s.sender.board().is_empty())
    }

    /// Whether the peer of a plain TCP shrank its window to nothing and answers what probes it: then the connection
    /// does not time out (RFC 9293 section 3.8.6, SHLD-17).
    fn keeps_window_closed(&self, now: Instant, at: usize) -> bool {
        let closed = self.mode() == Mode::Plain && self.outgoing.window_end() <= self.outgoing.unacked();
        closed && now.since(self.subflows[at].last_ack_at) <= CLOSED_WINDOW_SILENCE
    }

    /// The subflow's data may not arrive soon: the others retransmit it, if there are others that work (legacy
    /// Multipath TCP). Returns whether they do.
    pub(super) fn hand_over(&mut self, at: usize, cause: CopyCause) -> bool {
        // A subflow that the path policy forbids counts: it may be allowed again because this one fails.
        let alternative = self.subflows.views().iter().enumerate().any(|(i, view)| i != at && view.works());
        let legacy = self.mode() == Mode::Multipath && self.config.transport.failover == Failover::Legacy;
        if legacy && alternative {
            self.reinject_from(at, cause);
        }
        legacy && alternative
    }

    /// Moves all data of the subflow to the others, once.
    pub(super) fn reinject_from(&mut self, at: usize, cause: CopyCause) {
        let (subflow, outgoing) = (self.subflows.change(at), &mut self.outgoing);
        let until = subflow.reinjected_until;
        for record in subflow.sender.board().records().filter(|r| r.start >= until && r.len > 0) {
            let start = record.stream_offset;
            let (end, avoid) = (start + u64::from(record.len), Some(subflow.id));
            outgoing.reinject(Reinjection { start, end, avoid, cause });
        }
        subflow.reinjected_until = subflow.sender.next();
        self.reinject_queue(at, cause);
    }

    /// Moves the subflow's unsent data to the others.
    pub(super) fn reinject_queue(&mut self, at: usize, cause: CopyCause) {
        let (subflow, outgoing) = (self.subflows.change(at), &mut self.outgoing);
        for chunk in subflow.take_all() {
            let start = chunk.stream_offset;
            outgoing.reinject(Reinjection { start, end: start + chunk.len, avoid: Some(subflow.id), cause });
        }
    }

    /// The data, DATA_FIN or the window made no progress for a timeout.
    pub(super) fn on_no_progress(&mut self, now: Instant) {
        self.progress.deadline = Deadline::NEVER;
        self.progress.backoff += 1;
        self.progress.relieved_at = None;
        if self.data_fin_sent && self.outgoing.end_pending() {
            self.subflows.iter_mut().filter(|s| s.is_established()).for_each(|s| s.control_segments.send_data_fin());
        }
        let (head, next) = (self.outgoing.unacked(), self.outgoing.next);
        let idle = |s: &crate::subflow::Subflow| {
            s.is_established() && s.sender.board().is_empty() && s.queue.is_empty() && !s.control_segments.fin_sent()
        };
        if (head == next && self.outgoing.unsent() > 0) || self.window_holds_queue() {
            // Nothing is in flight, so the window must be closed, or too small for a segment: probe on every subflow.
            if self.mode() == Mode::Plain && self.outgoing.window_end() > next {
                self.outgoing.override_silly_window();
            } else {
                self.subflows.iter_mut().filter(|s| s.is_established()).for_each(|s| s.control_segments.probe_window());
            }
        } else if self.looks_for_stale() {
            self.retransmit_first_unacked(now);
        } else if self.mode() == Mode::Multipath
            && self.outgoing.next_reinjection().is_none()
            && self.subflows.iter().any(idle)
        {
            // Every subflow that held the first unacknowledged data has finished: the peer's connection did not accept
            // it.
            let holder = self.subflows.iter().find(|s| s.sender.board().carries_near_front(head));
            let avoid = holder.map(|s| s.id);
            let mss = self.subflows.views().iter().map(|view| u64::from(view.mss)).max().unwrap_or(1);
            let (end, cause) = (next.min(head + mss), CopyCause::NoProgress);
            self.outgoing.reinject(Reinjection { start: head, end, avoid, cause });
        }
        self.arm_progress(now);
    }

    /// The host lost the interface of the path.
    pub(super) fn drop_path(&mut self, now: Instant, path: PathId) {
        let mut removed = None;
        for subflow in self.subflows.iter_mut().filter(|s| s.path.id == path) {
            subflow.state = State::Closed(CloseReason::PathDown);
            removed = Some(subflow.local_address_id);
        }
        if let Some(address_id) = removed {
            self.withdraw_address(now, address_id);
        }
        self.remove_dead(now);
    }

    /// The peer withdrew addresses: closes the subflows that use them.
    pub(super) fn on_addresses_removed(&mut self, ids: &[u8]) {
        for subflow in self.subflows.iter_mut().filter(|s| ids.contains(&s.remote_address_id)) {
            subflow.state = State::Closed(CloseReason::PathDown);
            self.path_manager.on_address_gone(subflow.path.id);
        }
        self.forget_addresses(ids);
    }

    /// Removes closed subflows, and moves their data to the others.
    #[inline]
    pub(super) fn remove_dead(&mut self, now: Instant) {
        if !self.subflows.activity().control_segments.is_empty() {
            self.remove_closed(now);
        }
    }

    fn remove_closed(&mut self, now: Instant) {
        let mut at = 0;
        while at < self.subflows.len() {
            let State::Closed(reason) = self.subflows[at].state else {
                at += 1;
                continue;
            };
            if self.mode() == Mode::Multipath {
                match self.config.transport.failover {
                    // What was handed over before is the others' already.
                    Failover::Legacy => self.reinject_from(at, CopyCause::Closed),
                    Failover::Upstream => self.outgoing.reinject_everything(CopyCause::Closed),
                }
            }
            // Those behind it have other positions from here on.
            self.waits.forget_positions();
            let mut subflow = self.subflows.remove(at);
            super::report_counters(now, &mut subflow, &mut self.log);
            self.path_manager.on_failed(now, subflow.path.id);
            let (subflow, path) = (subflow.id, subflow.path.id);
            self.log.emit(now, TransportEvent::SubflowClosed { subflow, path, reason });
            self.on_subflow_removed(now);
            self.apply_policy(now);
        }
    }

    fn on_subflow_removed(&mut self, now: Instant) {
        if !self.subflows.is_empty() || self.closed {
            return;
        }
        if self.mode() == Mode::Multipath && self.established {
            self.progress.close_at = Deadline::at(now + CLOSE_TIMEOUT);
        } else {
            self.end_aborted(now);
        }
    }

    /// Whether the connection is being closed in order.
    pub(super) fn closing(&self) -> bool {
        self.subflows.iter().any(|s| s.control_segments.is_closing())
    }

    /// Closes the subflows once both ends of data were acknowledged.
    pub(super) fn close_when_done(&mut self, now: Instant) {
        if self.closed {
            return;
        }
        let done = match self.mode() {
            Mode::Multipath => self.outgoing.done() && self.incoming.ended(),
            _ => self.subflows.first().is_some_and(|s| s.finished()),
        };
        if done {
            for subflow in self.subflows.iter_mut() {
                subflow.control_segments.close();
                // A subflow that is still opening has nothing more to send; segments that arrive on it are refused.
                if !subflow.is_established() {
                    subflow.state = State::Closed(CloseReason::Finished);
                }
            }
            self.closed = true;
            self.progress.deadline = Deadline::NEVER;
            self.log.emit(now, TransportEvent::Finished);
        }
    }

    /// Aborts the connection: RST on each subflow, with MP_FASTCLOSE where the peer supports it.
    pub(super) fn abort_all(&mut self, now: Instant) {
        for subflow in self.subflows.iter_mut() {
            match subflow.state {
                State::SynSent => subflow.state = State::Closed(CloseReason::Aborted),
                _ => subflow.control_segments.reset(ResetReason::Unspecified),
            }
        }
        self.end_aborted(now);
    }

    pub(super) fn end_aborted(&mut self, now: Instant) {
        if !self.closed {
            self.closed = true;
            self.progress.deadline = Deadline::NEVER;
            self.progress.close_at = Deadline::NEVER;
            self.log.emit(now, TransportEvent::Aborted);
        }
    }
}
