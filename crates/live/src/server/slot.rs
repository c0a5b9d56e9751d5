//! A connection of a server and what belongs to it.

use super::receive_pool::ReceivePool;
use super::time_wait::FinalNumbers;
use super::train::{Mappings, TURN, Train, is_before};
use super::{Application, Finish, FlowKey, Limits, Outgoing, Parts, PathCounters, Progress, QueueingDelays};
use crate::buffer::ReceiveBuffer;
use crate::tun::Offload;
use anabranch_segment::{Flags, Segment};
use anabranch_stack::{Connection, Transmit};
use anabranch_units::{Duration, Instant, PathId, SeqNumber};
use anabranch_wire::{encode, encode_unsummed};

/// A subflow's addresses, and the last numbers sent on it.
#[derive(Clone, Debug)]
pub(super) struct FlowRecord {
    pub(super) flow: FlowKey,
    /// The number behind all sent bytes, and the latest acknowledgment.
    sent: Option<(SeqNumber, SeqNumber)>,
    fin_sent: bool,
    fin_received: bool,
    mappings: Mappings,
}

impl FlowRecord {
    pub(super) fn new(flow: FlowKey) -> Self {
        FlowRecord { flow, sent: None, fin_sent: false, fin_received: false, mappings: Mappings::default() }
    }

    /// Records a sent segment; returns whether its first byte was sent before.
    fn note_sent(&mut self, segment: &Segment) -> bool {
        if segment.flags.contains(Flags::SYN) {
            // The client may have joined again from the same port.
            *self = FlowRecord::new(self.flow);
        }
        let next = segment.seq + segment.sequence_len();
        let before = self.sent.map(|(before, _)| before);
        let is_behind = |number: SeqNumber| before.is_some_and(|before| is_before(number, before));
        let latest = before.filter(|_| is_behind(next)).unwrap_or(next);
        self.sent = Some((latest, segment.ack));
        self.fin_sent |= segment.flags.contains(Flags::FIN);
        is_behind(segment.seq)
    }

    /// The final numbers, if both sides have ended.
    pub(super) fn end(&self) -> Option<FinalNumbers> {
        let (next, acked) = self.sent.filter(|_| self.fin_sent && self.fin_received)?;
        Some(FinalNumbers { next, acked })
    }
}

/// Why the server aborts a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AbortCause {
    /// No packet of the client arrived for too long.
    Idle,
    /// The client acknowledged no data for too long.
    Stalled,
}

/// See the module's description.
pub(super) struct Slot<A> {
    pub(super) serial: u64,
    pub(super) connection: Connection,
    /// What makes its parts, if the host has a maker for each connection.
    parts: Option<Parts>,
    /// `None` until the handshake is complete.
    pub(super) application: Option<A>,
    received: ReceiveBuffer,
    /// Room of its receive buffer, as the pool of all connections counts it.
    pub(super) room: u64,
    /// Its subflows, open and closed ones; the first is the initial one.
    pub(super) flows: Vec<FlowRecord>,
    /// Bytes that the application has received.
    heard: u64,
    /// Bytes announced by the application.
    written: u64,
    /// Acknowledged bytes, and the time of the last acknowledgment or of the first unacknowledged byte.
    taken: (u64, Instant),
    /// The application has ended its stream.
    finished: bool,
    /// When the application ended.
    pub(super) left_at: Option<Instant>,
    /// When to drop it, once it is closed but its subflows are not.
    pub(super) forget_at: Option<Instant>,
    pub(super) last_packet: Instant,
    /// When to check whether the client is idle.
    pub(super) idle_check: Instant,
    /// The entry in the set of timers, if there is one.
    pub(super) timer: Option<Instant>,
    /// Whether it counts among the open connections of its client.
    pub(super) counted: bool,
    /// Bytes sent in its present turn.
    turn: usize,
    /// Whether it is in the queue of connections with segments to send.
    pub(super) queued: bool,
    /// What the endpoint has sent, but did not go into the packet before.
    pending: Option<Transmit>,
}

impl<A: Application> Slot<A> {
    pub(super) fn new(
        now: Instant,
        serial: u64,
        (connection, parts): (Connection, Option<Parts>),
        flow: FlowKey,
        idle: Duration,
    ) -> Self {
        Slot {
            serial,
            connection,
            parts,
            application: None,
            received: ReceiveBuffer::default(),
            room: 0,
            flows: vec![FlowRecord::new(flow)],
            heard: 0,
            written: 0,
            taken: (0, now),
            finished: false,
            left_at: None,
            forget_at: None,
            last_packet: now,
            idle_check: now + idle,
            timer: None,
            counted: false,
            turn: 0,
            queued: false,
            pending: None,
        }
    }

    /// Whether a part of the connection has failed, which is not closed yet.
    pub(super) fn has_failed(&self) -> bool {
        self.parts.as_ref().is_some_and(|parts| parts.has_failed()) && !self.connection.is_closed()
    }

    /// Passes a segment to the endpoint and stores its payload.
    pub(super) fn handle_segment(&mut self, now: Instant, path: PathId, segment: &Segment, payload: &[u8]) {
        self.last_packet = now;
        if segment.flags.contains(Flags::FIN)
            && let Some(record) = self.record(path, segment.destination_port, segment.source_port)
        {
            record.fin_received = true;
        }
        if let Some(placed) = self.connection.handle_segment(now, path, segment) {
            let start = placed.payload_start as usize;
            self.received.store(placed.stream_offset, &payload[start..start + placed.len as usize]);
        }
    }

    fn record(&mut self, path: PathId, local: u16, remote: u16) -> Option<&mut FlowRecord> {
        self.position(path, local, remote).map(|at| &mut self.flows[at])
    }

    /// The place of a subflow's record.
    fn position(&self, path: PathId, local: u16, remote: u16) -> Option<usize> {
        self.flows.iter().position(|r| r.flow.path == path && (r.flow.local.1, r.flow.remote.1) == (local, remote))
    }

    /// Removes the records of subflows that no longer exist and left nothing to remember; returns them. The initial one
    /// stays, because it names the client.
    pub(super) fn drop_dead_flows(&mut self) -> Vec<FlowRecord> {
        let Slot { connection, flows, .. } = self;
        let is_dead = |record: &FlowRecord| {
            let FlowKey { path, local, remote } = record.flow;
            record.end().is_none() && !connection.has_subflow(path, local.1, remote.1)
        };
        let dead: Vec<_> = flows.iter().skip(1).filter(|record| is_dead(record)).cloned().collect();
        flows.retain(|record| !dead.iter().any(|other| other.flow == record.flow));
        dead
    }

    /// Passes received bytes to the application, and its requests to the endpoint.
    pub(super) fn poll_application(&mut self, now: Instant, pool: &mut ReceivePool) {
        let Slot { connection, application: Some(application), received, room, heard, .. } = self else { return };
        connection.freeze_receive_buffer(pool.is_full());
        let len = connection.read(now, application.wants());
        *heard += len;
        pool.change(room, connection.receive_room());
        received.consume(len as usize, |bytes| application.receive(bytes));
        let closed = connection.is_closed();
        let acked = connection.acked();
        if acked > self.taken.0 || acked >= self.written {
            self.taken = (acked, now);
        }
        let mut delays = QueueingDelays::default();
        delays.iter_mut().zip(connection.queueing_delays()).for_each(|(place, delay)| *place = Some(delay));
        let progress = Progress {
            now,
            acked,
            unsent: connection.withdrawable(),
            unread: connection.readable(),
            ended: connection.peer_finished(),
            // Data that arrived before the end can still be read.
            closed: closed && connection.readable() == 0,
            subflows: connection.views().iter().filter(|view| view.established).count(),
            delays,
        };
        let reply = application.poll(progress);
        if reply.leave && self.left_at.is_none() {
            self.left_at = Some(now);
        }
        if closed {
            return;
        }
        connection.set_pace_cap(reply.pace_cap);
        connection.set_buffered_until(reply.buffered_until);
        if reply.abort {
            return connection.abort(now);
        }
        if !self.finished {
            self.written -= connection.withdraw(reply.withdraw);
            connection.write(reply.bytes);
            self.written += reply.bytes;
            self.finished = reply.finish;
            if reply.finish {
                connection.finish();
            }
        }
    }

    /// Passes the endpoint's events to the application. Before there is one, a handshake emits few.
    pub(super) fn pass_events(&mut self) {
        if let Some(application) = &mut self.application {
            application.observe(self.connection.log());
        }
    }

    /// Whether its client has asked for something.
    pub(super) fn has_request(&self) -> bool {
        self.application.as_ref().is_some_and(|application| application.has_request(self.heard, self.written))
    }

    /// Whether the application has received everything.
    pub(super) fn drained(&self) -> bool {
        self.application.is_none() || self.connection.readable() == 0
    }

    /// What is to be sent next, if anything is.
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.pending.take().or_else(|| self.connection.poll_transmit(now))
    }

    /// The packet of a segment on the path at this position of the configuration, with the segments that continue it if
    /// the packet may be left unfinished; `None` if it does not fit into a header, or its subflow is unknown here.
    pub(super) fn encode(
        &mut self,
        now: Instant,
        transmit: Transmit,
        position: usize,
        counters: &mut PathCounters,
        finish: Finish,
        buffer: &mut [u8],
    ) -> Option<Outgoing> {
        let (path, segment) = (transmit.path, &transmit.segment);
        let at = self.position(path, segment.source_port, segment.destination_port)?;
        let again = self.flows[at].note_sent(segment);
        let mut train = Train::of(transmit);
        if again {
            self.pending = self.flows[at].mappings.restore(&mut train.whole);
        }
        self.count(&train.whole, position, counters, again);
        if finish == Finish::Kernel && !again {
            self.extend(now, at, &mut train, |slot, next| slot.count(next, position, counters, false));
        }
        self.write(&self.flows[at].flow, &train, finish, buffer)
    }

    /// Adds what the endpoint sends next, as long as it continues the train.
    fn extend(&mut self, now: Instant, at: usize, train: &mut Train, mut count: impl FnMut(&mut Self, &Transmit)) {
        while train.may_grow()
            && let Some(next) = self.connection.poll_transmit(now)
        {
            if !train.continues(&next) {
                self.pending = Some(next);
                break;
            }
            self.flows[at].note_sent(&next.segment);
            count(self, &next);
            train.push(&next);
        }
        let FlowRecord { flow, mappings, .. } = &mut self.flows[at];
        if let Some(number) = self.connection.first_unacknowledged(flow.path, flow.local.1, flow.remote.1) {
            mappings.acknowledge(number);
        }
        mappings.remember(train);
    }

    fn count(&mut self, transmit: &Transmit, position: usize, counters: &mut PathCounters, again: bool) {
        let bytes = transmit.segment.payload_len;
        counters.count(bytes, again);
        if let Some(application) = self.application.as_mut().filter(|_| bytes > 0) {
            application.note_sent(position, bytes, again);
        }
    }

    fn write(&self, flow: &FlowKey, train: &Train, finish: Finish, buffer: &mut [u8]) -> Option<Outgoing> {
        let Transmit { path, segment, stream_offset } = &train.whole;
        let fill = |payload: &mut [u8]| {
            if let Some(application) = self.application.as_ref().filter(|_| !payload.is_empty()) {
                application.fill(*stream_offset, payload);
            }
        };
        let (local, remote) = (flow.local.0, flow.remote.0);
        if finish == Finish::Here {
            let len = encode(buffer, local, remote, segment, fill).ok()?;
            return Some(Outgoing { path: *path, len, packets: 1, bytes: len, offload: None });
        }
        let (headers, len) = encode_unsummed(buffer, local, remote, segment, fill).ok()?;
        let offload = Offload {
            ipv6: local.is_ipv6(),
            ip_header: (headers as u32 - segment.header_len()) as u16,
            headers: headers as u16,
            cut: (train.segments > 1).then_some(train.payload as u16),
        };
        let bytes = len + (train.segments as usize - 1) * headers;
        Some(Outgoing { path: *path, len, packets: train.segments, bytes, offload: Some(offload) })
    }

    /// Counts a sent packet; returns whether others that wait to send come first now. What a packet exceeds the turn by
    /// is taken from the next one, so that all who have data get the same number of bytes.
    pub(super) fn ends_turn(&mut self, bytes: usize) -> bool {
        self.turn += bytes;
        let ends = self.turn >= TURN;
        if ends {
            self.turn -= TURN;
        }
        ends
    }

    /// Bytes that the buffer of received data occupies.
    pub(super) fn receive_memory(&self) -> u64 {
        self.received.capacity() as u64
    }

    /// Bytes that wait for acknowledgment.
    pub(super) fn owed(&self) -> u64 {
        self.written.saturating_sub(self.taken.0)
    }

    /// When a timer of the connection or of its limits is due; `None` if no timer runs.
    pub(super) fn poll_timeout(&self, limits: &Limits) -> Option<Instant> {
        let timers = [self.connection.poll_timeout(), self.forget_at].into_iter().flatten().min();
        if self.connection.is_closed() {
            return timers;
        }
        let left = self.closes_at(limits);
        let stall = (self.owed() > 0).then(|| self.taken.1 + limits.stall);
        [timers, left, stall, Some(self.idle_check)].into_iter().flatten().min()
    }

    /// When a client whose server has ended must have ended, too: some time after it has acknowledged something at
    /// last, so that slow clients get everything.
    fn closes_at(&self, limits: &Limits) -> Option<Instant> {
        self.left_at.map(|at| at.max(self.taken.1) + limits.closing)
    }

    /// Aborts the connection if its client has been silent, has acknowledged no data, or has not ended its side, for
    /// too long; returns which of the first two it was.
    pub(super) fn check_timeouts(&mut self, now: Instant, limits: &Limits) -> Option<AbortCause> {
        if self.connection.is_closed() {
            return None;
        }
        if self.idle_check <= now {
            self.idle_check = self.last_packet + limits.idle;
        }
        let forsaken = self.closes_at(limits).is_some_and(|at| at <= now);
        let why = if self.idle_check <= now {
            Some(AbortCause::Idle)
        } else if self.owed() > 0 && self.taken.1 + limits.stall <= now {
            Some(AbortCause::Stalled)
        } else {
            None
        };
        if forsaken || why.is_some() {
            self.connection.abort(now);
        }
        why
    }
}
