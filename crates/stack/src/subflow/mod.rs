//! One TCP connection of the Multipath TCP connection: its handshake, its two halves, and its queue.

mod control_segments;
mod memory;
mod peer_window;
mod rate;
mod receiver;
mod rtt;
mod scoreboard;
mod send_state;
mod sender;
#[cfg(test)]
mod tests;

pub(crate) use control_segments::{Closing, ControlSegments};
pub(crate) use memory::SendMemory;
pub(crate) use peer_window::PeerWindow;
pub(crate) use receiver::{Arrival, OwnWindow, Receiver, max_pieces};
pub(crate) use rtt::timestamp;
pub(crate) use scoreboard::{Record, Reinjection};
pub(crate) use sender::{
    AckOutcome, Acknowledgment, Attempt, Sender, SenderOptions, SizeChange, TICK, TimerOutcome, Withholding, least_mtu,
};

use crate::congestion::CongestionControl;
use crate::path::PathConfig;
use crate::receive_memory::ReceiveMemory;
use crate::view::{SubflowView, window_rate};
use anabranch_events::{CloseReason, SendKind};
use anabranch_units::{Duration, Instant, SeqNumber, SubflowId};
use std::collections::VecDeque;

/// The MSS of a peer that does not announce one (RFC 9293 section 3.7.1).
pub(crate) const DEFAULT_MSS: u32 = 536;
/// Retransmissions of a SYN before the subflow fails (Linux `tcp_syn_retries`).
const MAX_HANDSHAKE_TRIES: u32 = 6;
/// Consecutive timeouts before a subflow fails (Linux `tcp_retries2`).
const MAX_TIMEOUTS: u32 = 15;
/// The first timeout of a handshake (RFC 6298 section 2.1).
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(1);

/// Linux's `TCP_INIT_CWND` (RFC 6928), independent of the configured initial window: the smallest send buffer in
/// packets, and the lower bound of idle and unused windows.
const INITIAL_WINDOW: u32 = 10;
/// The shortest time between two challenge ACKs (Linux `tcp_invalid_ratelimit`).
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(500);

/// State of a subflow. Closing is part of the halves: [`Sender`] has its own FIN, [`Receiver`] the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Active open: the SYN is to be sent, or was sent.
    SynSent,
    /// Passive open: the SYN/ACK is to be sent, or was sent.
    SynReceived,
    /// Active join: its third segment is to be sent, or was sent; data must wait for the fourth (RFC 8684 section 3.2).
    JoinSent,
    /// Data may be sent.
    Established,
    /// Closed; the connection removes it at the next opportunity.
    Closed(CloseReason),
}

/// Which handshake opens the subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// The connection's first.
    Initial,
    /// A join, with both nonces.
    Join { local_nonce: u32, remote_nonce: u32 },
}

/// The handshake segment of the current state, and its timer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Handshake {
    /// When the segment must be sent; `None` if it must not.
    pub due: Option<Instant>,
    /// How often it was sent.
    pub tries: u32,
    /// When it was first sent.
    pub first_sent: Instant,
}

/// Bytes of the stream that were given to the subflow and not sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub stream_offset: u64,
    pub len: u64,
    pub kind: SendKind,
}

/// Options of the peer's SYN.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peer {
    pub mss: u32,
    pub window_scale: u8,
    /// It offers window scaling, so this end may use it (RFC 7323 section 2.2).
    pub scales_windows: bool,
    pub sack: bool,
    pub timestamps: bool,
}

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Subflow {
    pub id: SubflowId,
    pub path: PathConfig,
    pub local_port: u16,
    pub remote_port: u16,
    pub local_address_id: u8,
    pub remote_address_id: u8,
    pub state: State,
    pub opening: Opening,
    pub handshake: Handshake,
    /// This end's and the peer's initial numbers.
    pub isn: SeqNumber,
    pub peer_isn: SeqNumber,
    peer: Peer,
    /// It is kept up to date for plain TCP, and with `subflow_windows`.
    pub peer_window: PeerWindow,
    /// Payload of the largest segment without options that the path and the peer allow, as far as is known.
    largest_payload: u32,
    pub sender: Sender,
    pub receiver: Receiver,
    /// What waits to be sent, in Linux's records; see [`SendMemory::record`].
    pub queue: VecDeque<Chunk>,
    /// Bytes of it.
    pub queued: u64,
    /// A part of the first record was sent.
    first_is_split: bool,
    /// What the data may take where it commits into the buffer.
    pub memory: SendMemory,
    /// Mappings that may cover bytes still to come: a mapping may span several segments.
    pub mappings: Vec<KnownMapping>,
    pub backup_here: bool,
    pub backup_there: bool,
    pub allowed: bool,
    pub potentially_failed: bool,
    /// Periods of the connection's timer without an acknowledgment while data was in flight, and the time of the last
    /// acknowledgment when they began (upstream Linux's `stale_count` and `stale_rcv_tstamp`).
    pub silent_periods: u32,
    pub silent_since: Instant,
    /// When the last acknowledgment arrived.
    pub last_ack_at: Instant,
    /// A timeout alone keeps new data off (legacy Multipath TCP).
    pub rests_in_loss: bool,
    /// Everything before this offset was moved to other subflows already.
    pub reinjected_until: u64,
    pub control_segments: ControlSegments,
    /// Something was sent since the end of the last burst.
    pub sent_in_burst: bool,
    /// From this offset on, data has an infinite mapping, which its first segment carries (RFC 8684 section 3.7).
    pub infinite_from: Option<u64>,
    /// When the last challenge ACK was sent.
    pub challenged_at: Option<Instant>,
    /// When the scheduler last penalised this subflow for blocking the window.
    pub penalised_at: Option<Instant>,
    /// The sum of the control's counters at their last emission. They only grow, so it shows whether one changed.
    pub counters_reported: u64,
}

/// A mapping of the peer, in offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownMapping {
    /// Subflow offsets.
    pub start: u64,
    pub end: u64,
    pub stream_offset: u64,
}

/// Parameters of a new subflow.
pub(crate) struct Origin {
    pub id: SubflowId,
    pub path: PathConfig,
    pub ports: (u16, u16),
    pub address_id: u8,
    pub state: State,
    pub opening: Opening,
    pub isn: SeqNumber,
    /// Its memory, and the bytes that it accepts at first.
    pub receive_buffer: (ReceiveMemory, u64),
    pub memory: SendMemory,
}

impl Subflow {
    pub fn new(now: Instant, origin: &Origin, control: Box<dyn CongestionControl>, initial_window: u32) -> Self {
        Subflow {
            id: origin.id,
            path: origin.path,
            local_port: origin.ports.0,
            remote_port: origin.ports.1,
            local_address_id: origin.address_id,
            remote_address_id: 0,
            state: origin.state,
            opening: origin.opening,
            handshake: Handshake { due: Some(now), tries: 0, first_sent: now },
            isn: origin.isn,
            peer_isn: SeqNumber(0),
            peer: Peer { mss: DEFAULT_MSS, ..Peer::default() },
            peer_window: PeerWindow::default(),
            largest_payload: origin.path.mss().min(DEFAULT_MSS),
            sender: Sender::new(control, initial_window),
            receiver: Receiver::new(origin.receive_buffer),
            queue: VecDeque::new(),
            queued: 0,
            first_is_split: false,
            memory: origin.memory,
            mappings: Vec::new(),
            backup_here: origin.path.backup,
            backup_there: false,
            allowed: true,
            potentially_failed: false,
            silent_periods: 0,
            silent_since: now,
            last_ack_at: now,
            rests_in_loss: true,
            reinjected_until: 0,
            control_segments: ControlSegments::default(),
            sent_in_burst: false,
            infinite_from: None,
            challenged_at: None,
            penalised_at: None,
            counters_reported: 0,
        }
    }

    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// Whether the subflow has other segments to send than data and acknowledgments: of a handshake, of its removal, or
    /// [others](ControlSegments).
    pub fn has_control_segments(&self) -> bool {
        !self.is_established() || !self.control_segments.is_empty()
    }

    /// The handshake segment was sent; schedules its retransmission.
    pub fn on_handshake_sent(&mut self, now: Instant) {
        let handshake = &mut self.handshake;
        if handshake.tries == 0 {
            handshake.first_sent = now;
        }
        handshake.due = Some(now + HANDSHAKE_TIMEOUT * (1 << handshake.tries.min(6)));
        handshake.tries += 1;
    }

    /// The peer retransmitted its handshake segment, so ours was lost: it is sent again at once. This does not count as
    /// a retry.
    pub fn retransmit_handshake(&mut self) {
        self.handshake.due = Some(Instant::ZERO);
        // One try remains counted, because a second answer makes the round trip ambiguous.
        if self.handshake.tries > 1 {
            self.handshake.tries -= 1;
        }
    }

    /// The subflow works again: it may get new data.
    pub fn recover(&mut self) {
        self.potentially_failed = false;
        self.silent_periods = 0;
    }

    /// When its next timer is due; [`Instant::FAR_FUTURE`] if none runs.
    pub fn deadline(&self) -> Instant {
        let or_never = |at: Option<Instant>| at.unwrap_or(Instant::FAR_FUTURE);
        let sender = or_never(self.sender.deadline());
        or_never(self.handshake.due).min(sender).min(self.receiver.deadline())
    }

    /// Whether the retransmissions of the handshake are used up.
    pub fn handshake_failed(&self) -> bool {
        self.handshake.tries > MAX_HANDSHAKE_TRIES
    }

    /// Whether the retransmissions of data are used up.
    pub fn timed_out(&self) -> bool {
        self.sender.timeouts() >= MAX_TIMEOUTS
    }

    /// The handshake is complete as far as this end's sequence numbers go; `echo` is the timestamp in the peer's
    /// answer.
    pub fn on_numbers_agreed(&mut self, now: Instant, echo: Option<u32>) {
        let since_first = now.since(self.handshake.first_sent);
        // After a retransmitted SYN only the timestamp says which one was answered (Karn; RFC 7323 section 4), as in
        // Linux.
        let by_clock = || {
            let echo = echo.filter(|_| self.peer.timestamps)?;
            let elapsed = Duration::from_millis(u64::from(timestamp(now).wrapping_sub(echo).max(1)));
            // Two readings of a clock that ticks in milliseconds may be up to a tick further apart than the times.
            (elapsed < since_first + Duration::from_millis(1)).then(|| elapsed.min(since_first))
        };
        let rtt = if self.handshake.tries == 1 { Some(since_first) } else { by_clock() };
        self.sender.on_established(now, rtt);
        self.memory.open(self.payload_room(0));
        self.handshake = Handshake::default();
    }

    /// The round trip measured by the receiver, zero before the first sample; without timestamps the sender's.
    pub fn round_trip(&self) -> Duration {
        if self.peer.timestamps { self.receiver.rtt() } else { self.sender.rtt().srtt() }
    }

    /// The application waits for room: Linux's autotuning makes the send buffer larger unless the window is full, which
    /// says that the window and not the buffer limits the subflow. Returns whether it is larger now.
    pub fn expand_send_buffer(&mut self) -> bool {
        let (before, cwnd) = (self.memory.limit(), self.sender.window().cwnd.floor());
        if self.sender.board().in_flight() < cwnd {
            self.memory.expand(self.payload_room(0), cwnd);
        }
        self.memory.limit() > before
    }

    /// A segment is not accepted for what its numbers say: a challenge ACK tells the peer the right ones. Their rate is
    /// limited.
    #[cold]
    pub fn challenge(&mut self, now: Instant) {
        if self.challenged_at.is_none_or(|at| now.since(at) >= CHALLENGE_INTERVAL) {
            self.challenged_at = Some(now);
            self.receiver.acknowledge_now();
        }
    }

    /// The options of the peer's SYN.
    #[inline]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The peer's SYN arrived.
    pub fn learn_peer(&mut self, peer: Peer) {
        self.largest_payload = self.path.mss().min(peer.mss);
        self.peer = peer;
        self.sender.begin_sizes(self.path.ip_header(), self.largest_payload);
    }

    /// Full segments have this room for options and payload from here on.
    pub fn set_room(&mut self, room: u32) {
        self.largest_payload = room;
    }

    /// Bytes of payload in a segment with `options` bytes of options.
    #[inline]
    pub fn payload_room(&self, options: u32) -> u32 {
        self.largest_payload.saturating_sub(options).max(1)
    }

    /// Window over smoothed round trip, see [`SubflowView::rate`].
    pub fn window_rate(&self, mss: u32) -> f64 {
        window_rate(self.sender.window().cwnd, mss, self.sender.rtt().srtt())
    }

    /// How long packets wait in queues, while any is in flight: the smoothed round trip less the least one.
    pub fn queueing_delay(&self) -> Option<Duration> {
        let (rtt, in_flight) = (self.sender.rtt(), self.sender.board().in_flight());
        (self.is_established() && in_flight > 0 && rtt.has_sample()).then(|| rtt.srtt() - rtt.min())
    }

    /// The subflow as the replaceable parts see it. `mss` is the payload of a full segment. Inlined, so that a view is
    /// written where it is kept.
    #[inline(always)]
    pub fn view(&self, mss: u32) -> SubflowView {
        let rtt = self.sender.rtt();
        let (acked_since_loss, acked_between_losses) = self.sender.loss_intervals();
        let outstanding = self.sender.board().outstanding();
        let payload = self.queued + outstanding;
        SubflowView {
            id: self.id,
            path: self.path.id,
            established: self.is_established() && !self.control_segments.is_closing(),
            backup: self.backup_here || self.backup_there,
            metered: self.path.metered,
            potentially_failed: self.potentially_failed,
            rests_in_loss: self.rests_in_loss,
            allowed: self.allowed,
            phase: self.sender.phase(),
            mss,
            tcp_mss: self.payload_room(if self.peer.timestamps { anabranch_segment::TIMESTAMPS_LEN } else { 0 }),
            cwnd: self.sender.window().cwnd,
            ssthresh: self.sender.window().ssthresh,
            seeks_min_rtt: self.sender.window().seeks_min_rtt,
            in_flight: self.sender.board().in_flight(),
            unrepaired: self.sender.board().lost().saturating_sub(self.sender.board().retransmitted()),
            oldest_sent: self.sender.board().front().map(|record| record.sent_at),
            last_ack_at: self.last_ack_at,
            queued: self.queued,
            outstanding,
            memory: self.memory.taken(payload, self.buffers()),
            send_buffer: self.memory.limit(),
            srtt: rtt.srtt(),
            rttvar: rtt.deviation(),
            latest_rtt: rtt.latest(),
            // The estimator's "none yet" would read as an endless round trip.
            min_rtt: if rtt.has_sample() { rtt.min() } else { Duration::ZERO },
            delivery: self.sender.delivery(),
            arrivals: self.sender.arrivals(),
            pace: self.sender.pace(),
            acked_since_loss,
            acked_between_losses,
        }
    }

    /// Updates the part of the view that shows how much data is queued and on its way.
    pub fn count_data(&self, view: &mut SubflowView) {
        let board = self.sender.board();
        view.in_flight = board.in_flight();
        view.queued = self.queued;
        view.outstanding = board.outstanding();
        view.memory = self.memory.taken(self.queued + board.outstanding(), self.buffers());
    }

    /// Linux's buffers of what is queued and of what is outstanding.
    fn buffers(&self) -> u64 {
        self.queue.len() as u64 + u64::from(self.sender.board().buffers())
    }

    /// Queues bytes to send; returns how many of Linux's records they need in addition to those that are queued.
    /// `segment` is the payload of a full segment.
    ///
    /// They join the last record until it is full, unless a part of it was sent, or other data comes before: then its
    /// mapping is on the way, or would not fit (`mptcp_skb_can_collapse_to`), and a short segment ends it.
    pub fn give(&mut self, chunk: Chunk, segment: u32) -> u64 {
        let full = self.memory.record(segment, self.peer_window.largest());
        let before = self.queue.len();
        self.queued += chunk.len;
        let mut rest = chunk;
        let last_is_split = self.first_is_split && before == 1;
        if let Some(last) = self.queue.back_mut().filter(|_| !last_is_split)
            && last.kind == rest.kind
            && last.stream_offset + last.len == rest.stream_offset
        {
            let joins = rest.len.min(full.saturating_sub(last.len));
            last.len += joins;
            (rest.stream_offset, rest.len) = (rest.stream_offset + joins, rest.len - joins);
        }
        while rest.len > 0 {
            let len = rest.len.min(full);
            self.queue.push_back(Chunk { len, ..rest });
            (rest.stream_offset, rest.len) = (rest.stream_offset + len, rest.len - len);
        }
        (self.queue.len() - before) as u64
    }

    /// Up to `max` bytes at the front of the queue.
    pub fn peek(&self, max: u64) -> Option<Chunk> {
        self.queue.front().map(|front| Chunk { len: front.len.min(max), ..*front })
    }

    /// Removes up to `max` bytes from the front of the queue.
    pub fn take(&mut self, max: u64) -> Option<Chunk> {
        let taken = self.peek(max)?;
        self.queued -= taken.len;
        let first = &mut self.queue[0];
        self.first_is_split = taken.len < first.len;
        if self.first_is_split {
            first.stream_offset += taken.len;
            first.len -= taken.len;
        } else {
            self.queue.pop_front();
        }
        Some(taken)
    }

    /// Empties the queue.
    pub fn take_all(&mut self) -> VecDeque<Chunk> {
        (self.queued, self.first_is_split) = (0, false);
        std::mem::take(&mut self.queue)
    }

    /// Where the byte at the subflow's `offset` belongs in the stream, by the mappings seen so far, and how many bytes
    /// from there on are mapped.
    pub fn mapped(&self, offset: u64) -> Option<(u64, u64)> {
        let mapping = self.mappings.iter().rev().find(|m| m.start <= offset && offset < m.end)?;
        Some((mapping.stream_offset.wrapping_add(offset - mapping.start), mapping.end - offset))
    }

    /// Whether no mapping that is stored reaches beyond the data in order.
    pub fn mappings_are_used(&self) -> bool {
        let next = self.receiver.next();
        self.mappings.iter().all(|known| known.end <= next)
    }

    /// Stores a mapping in place of those that are used.
    pub fn replace_mappings(&mut self, mapping: KnownMapping) {
        self.mappings.clear();
        self.mappings.push(mapping);
    }

    /// Stores a mapping. An error if it contradicts one that is still stored.
    pub fn learn(&mut self, mapping: KnownMapping) -> Result<(), ()> {
        /// A peer that maps every segment needs no old ones; the limit bounds a hostile peer.
        const REMEMBERED: usize = 16;
        if self.mappings.last() == Some(&mapping) {
            return Ok(());
        }
        let next = self.receiver.next();
        self.mappings.retain(|known| known.end > next);
        for known in &self.mappings {
            let overlap = known.start < mapping.end && mapping.start < known.end;
            let same =
                known.stream_offset.wrapping_sub(known.start) == mapping.stream_offset.wrapping_sub(mapping.start);
            if overlap && !same {
                return Err(());
            }
        }
        // Only a mapping that reaches beyond its own segment has to be stored; the caller passes no other.
        if self.mappings.len() == REMEMBERED {
            self.mappings.remove(0);
        }
        self.mappings.push(mapping);
        Ok(())
    }

    /// Both FINs were sent and acknowledged.
    pub fn finished(&self) -> bool {
        self.control_segments.fin_sent() && self.sender.acked() == self.sender.next() && self.receiver.finished()
    }
}
