//! The receiving half of a connection: one stream from several subflows, and their shared window.

use crate::packet_memory::received_memory;
use crate::reassembly::{Note, Piece, Reassembly};
use crate::receive_memory::ReceiveMemory;
use crate::subflow::{OwnWindow, max_pieces};
use anabranch_events::{Log, TransportEvent};
use anabranch_units::{Duration, Instant, SubflowId};

/// When bytes arrived, when they were in order on their subflow, and which that is.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    at: Instant,
    in_order_at: Instant,
    subflow: SubflowId,
}

impl Note for Arrived {
    fn advanced(self, _bytes: u64) -> Self {
        self
    }
}

/// Offsets count bytes of the peer's stream from zero.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// Next byte expected in order; one more than all bytes once the end of data was received.
    next: u64,
    ahead: Reassembly<Arrived>,
    /// Length of the stream; `None` until DATA_FIN arrived.
    end: Option<u64>,
    /// Bytes read by the application.
    consumed: u64,
    /// Memory of the packets with bytes that it may read.
    readable_memory: u64,
    memory: ReceiveMemory,
    /// The scale that the largest window needs.
    scale: u8,
    /// One past the last byte that was ever advertised; never moves back.
    edge: u64,
    /// The window in the segment that was sent last, on whichever subflow (`old_wspace`).
    advertised: u64,
    tuning: Tuning,
}

/// How much the application reads in a round trip (Linux's `tcp_rcv_space_adjust` and `mptcp_rcv_space_adjust`).
#[derive(Clone, Copy, Debug)]
struct Tuning {
    /// When the measurement began, and what had been read until then.
    since: Instant,
    consumed: u64,
    /// The longest round trip when it was last looked at.
    rtt: Duration,
}

/// State of the subflows that right-sizing needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Surroundings {
    /// The longest round trip, as a receiver sees it.
    pub rtt: Duration,
    /// How far beyond its own hole a TCP connection has received, in bytes.
    pub reach: u64,
    /// The least share of payload in the memory of a subflow's packets; one without packets has the least of all.
    pub share: u64,
}

impl Incoming {
    /// A connection whose subflows accept `first_window` bytes at first, and the largest window of which needs this
    /// scale.
    pub fn new((memory, first_window): (ReceiveMemory, u64), scale: u8) -> Self {
        Incoming {
            next: 0,
            ahead: Reassembly::default(),
            end: None,
            consumed: 0,
            readable_memory: 0,
            memory,
            scale,
            edge: first_window,
            advertised: first_window,
            tuning: Tuning { since: Instant::ZERO, consumed: 0, rtt: Duration::ZERO },
        }
    }

    /// Accepts bytes of a subflow in the order in which it has them. A piece that ends beyond the advertised window is
    /// accepted only as the next of the stream, and while the application reads (Linux's `mptcp_data_queue_ofo`).
    /// `held` is what subflows hold beyond their own holes.
    pub fn on_bytes(
        &mut self,
        now: Instant,
        piece: Piece<crate::subflow::Arrival>,
        subflow: SubflowId,
        held: u64,
        log: &mut Log<TransportEvent>,
    ) {
        let start = piece.note.stream_offset;
        let end = start.saturating_add(piece.end - piece.start).min(self.end.unwrap_or(u64::MAX));
        if end <= self.next || start >= end {
            return;
        }
        if end > self.edge {
            if start > self.next || self.readable() >= self.memory.payload() {
                return;
            }
            self.edge = end;
        }
        let note = Arrived { at: piece.note.at, in_order_at: now, subflow };
        if start <= self.next && end <= self.ahead.start() {
            self.deliver(now, end - self.next, note, log);
        } else if start <= self.next || self.ahead.pieces() < max_pieces(self.memory.payload()) {
            self.ahead.insert(Piece { start: start.max(self.next), end, note });
        } else {
            return;
        }
        while let Some(ready) = self.ahead.pop_ready(self.next) {
            self.deliver(now, ready.end - ready.start, ready.note, log);
        }
        if !self.ahead.is_empty() {
            let buffered = self.ahead.bytes() + held;
            log.emit(now, TransportEvent::OutOfOrder { subflow, offset: start, buffered });
        }
    }

    fn deliver(&mut self, now: Instant, bytes: u64, arrived: Arrived, log: &mut Log<TransportEvent>) {
        let (subflow, offset) = (Some(arrived.subflow), Some(self.next));
        self.next += bytes;
        self.readable_memory += received_memory(bytes);
        let (waited, across) = (now.since(arrived.at), now.since(arrived.in_order_at));
        log.emit(now, TransportEvent::Delivered { subflow, offset, bytes: bytes as u32, waited, across });
    }

    /// DATA_FIN at `offset`. An end before received data or beyond the advertised window is ignored.
    pub fn on_end(&mut self, offset: u64) {
        if (self.next..=self.edge).contains(&offset) {
            self.end.get_or_insert(offset);
        }
    }

    /// The offset for DATA_ACK: the next byte, or one more once DATA_FIN was received.
    pub fn acknowledged(&self) -> u64 {
        self.next + u64::from(self.ended())
    }

    /// Every byte up to the peer's end of data arrived.
    pub fn ended(&self) -> bool {
        self.end == Some(self.next)
    }

    pub fn next(&self) -> u64 {
        self.next
    }

    pub fn readable(&self) -> u64 {
        self.next - self.consumed
    }

    pub fn held_ahead(&self) -> u64 {
        self.ahead.bytes()
    }

    /// The application takes up to `max` bytes. Returns how many it took; [`Incoming::tune`] comes next, if it
    /// [is due](Incoming::tuning_is_due).
    pub fn read(&mut self, max: u64) -> u64 {
        let readable = self.readable();
        let taken = readable.min(max);
        self.consumed += taken;
        self.readable_memory =
            if taken == readable { 0 } else { part_of(self.readable_memory, readable - taken, readable) };
        taken
    }

    /// Whether a round trip has passed since the application's rate was measured last.
    pub fn tuning_is_due(&self, now: Instant) -> bool {
        now.since(self.tuning.since) >= self.tuning.rtt
    }

    /// Measures how much the application reads in a round trip. Returns that if it made the connection's buffer grow.
    pub fn tune(&mut self, now: Instant, around: Surroundings) -> Option<u64> {
        let elapsed = now.since(self.tuning.since);
        self.tuning.rtt = around.rtt;
        self.memory.set_share(around.share);
        if around.rtt.is_zero() || elapsed < around.rtt {
            return None;
        }
        let taken = self.consumed - self.tuning.consumed;
        self.tuning = Tuning { since: now, consumed: self.consumed, rtt: around.rtt };
        self.memory.grow(taken, around.reach).then_some(taken)
    }

    /// Payload that the connection's buffer has room for.
    pub fn room(&self) -> u64 {
        self.memory.payload()
    }

    /// Whether the connection's buffer may grow.
    pub fn freeze(&mut self, frozen: bool) {
        self.memory.freeze(frozen);
    }

    /// The share of payload in the memory of its packets is known. A Multipath TCP connection asks its subflows when it
    /// measures how much is read; a TCP connection knows it with each packet.
    pub fn set_share(&mut self, share: u64) {
        self.memory.set_share(share);
    }

    /// The free part of the buffer: without packets that wait to be read or for a hole to be filled (Linux's
    /// `mptcp_space`).
    fn space(&self) -> u64 {
        self.memory.room_for_payload(self.readable_memory + self.ahead.memory())
    }

    /// The free buffer as far as a subflow's own window allows. There is none where less than a packet or than a
    /// sixteenth of the buffer is free (Linux's `__tcp_select_window`).
    pub fn free(&self, own: OwnWindow) -> u64 {
        if self.is_empty() {
            return self.memory.payload().min(own.opened);
        }
        let space = self.space();
        if self.leaves_half(own, space) || !self.is_tight(own, space) { space.min(own.opened) } else { 0 }
    }

    /// Whether no packet waits to be read or for a hole to be filled, as at an end that mostly sends.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.readable_memory + self.ahead.memory() == 0
    }

    fn leaves_half(&self, own: OwnWindow, space: u64) -> bool {
        space >= own.most.min(self.memory.payload()) / 2
    }

    fn is_tight(&self, own: OwnWindow, space: u64) -> bool {
        space < own.full_size.min(own.most).max(self.memory.payload() / 16)
    }

    /// Whether the room in the buffer limits the window, and not how far the subflow's own has opened.
    pub fn is_limited(&self, own: OwnWindow) -> bool {
        self.space() < own.opened
    }

    /// Whether there is room for a window of so many bytes, as far as a subflow's own window allows, with what rounding
    /// adds.
    pub fn allows(&self, own: OwnWindow, window: u64) -> bool {
        round_up(self.free(own), self.scale) >= window
    }

    /// Whether less than half of what a subflow's window may be is free.
    pub fn is_half_full(&self, own: OwnWindow) -> bool {
        !self.is_empty() && !self.leaves_half(own, self.space())
    }

    /// The window in the segment that was sent last.
    pub fn advertised(&self) -> u64 {
        self.advertised
    }

    /// Whether there is at least twice as much room as was advertised last, so that subflows may have to advertise it
    /// at once.
    pub fn has_opened(&self) -> bool {
        self.space() >= 2 * self.advertised
    }

    /// The window to advertise on a subflow: what is free, at least the window advertised before.
    pub fn window(&self, own: OwnWindow) -> u64 {
        self.free(own).max(self.edge - self.next)
    }

    /// One past the last byte that was ever advertised.
    pub fn edge(&self) -> u64 {
        self.edge
    }

    /// One past the last byte that a sender may send which adds an older window to a data acknowledgment: no window is
    /// larger than the empty buffer.
    pub fn reach(&self) -> u64 {
        self.edge.max(self.next + round_up(self.memory.payload(), self.scale))
    }

    /// The window to advertise on a subflow, in units of `1 << scale`; records it. What is free is rounded up as in
    /// Linux (`tcp_select_window`), what was advertised before is not (`mptcp_set_rwin`).
    pub fn advertise(&mut self, own: OwnWindow, scale: u8) -> u16 {
        let largest = u64::from(u16::MAX) << scale;
        let selected = round_up(self.free(own), scale).min(largest);
        self.edge = self.edge.max(self.next + selected);
        self.advertised = self.edge - self.next;
        (self.advertised.min(largest) >> scale) as u16
    }

    /// The scale that the largest window needs (RFC 7323 section 2.3).
    pub fn window_scale(&self) -> u8 {
        self.scale
    }
}

/// In whole units of `1 << scale`.
fn round_up(bytes: u64, scale: u8) -> u64 {
    let unit = 1 << scale;
    (bytes + unit - 1) & !(unit - 1)
}

/// `part` of `whole` of the memory: what is left of a packet is counted with its share. Rare, because applications read
/// what there is.
#[cold]
fn part_of(memory: u64, part: u64, whole: u64) -> u64 {
    (u128::from(memory) * u128::from(part) / u128::from(whole)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::ReceiveBuffer;
    use crate::subflow::Arrival;
    use anabranch_units::Bytes;

    /// With packets of 1420 bytes, which have shown their share.
    fn fixed(window: u64) -> Incoming {
        let buffer = ReceiveBuffer { initial: Bytes(window), max: Bytes(window) };
        let mut memory = ReceiveMemory::new(buffer, FULL as u32);
        memory.set_share(ReceiveMemory::share_of(FULL as u32));
        Incoming::new((memory, window), 7)
    }

    const FULL: u64 = 1_420;

    /// Of a subflow that has opened so far.
    fn own(opened: u64) -> OwnWindow {
        OwnWindow { opened, most: u64::MAX, full_size: FULL }
    }

    #[test]
    fn a_wait_is_divided_into_that_for_its_own_subflow_and_that_for_others() {
        let mut incoming = fixed(10_000);
        let mut log = Log::default();
        let ms = |n: u64| Instant::from_nanos(n * 1_000_000);
        let piece = |start: u64, end: u64, arrived| Piece {
            start,
            end,
            note: Arrival { at: ms(arrived), stream_offset: start },
        };
        // The last bytes arrived at 10 and were in order on their subflow at 30; the first ones arrive at 90.
        incoming.on_bytes(ms(30), piece(1_000, 1_500, 10), SubflowId(0), 0, &mut log);
        incoming.on_bytes(ms(90), piece(0, 1_000, 90), SubflowId(1), 0, &mut log);
        // These had to wait for their own subflow alone.
        incoming.on_bytes(ms(120), piece(1_500, 1_600, 100), SubflowId(0), 0, &mut log);
        let waits: Vec<_> = log
            .drain()
            .filter_map(|(_, event)| match event {
                TransportEvent::Delivered { subflow, offset, bytes, waited, across } => Some((
                    (subflow.unwrap().0, offset.unwrap(), bytes),
                    (waited.as_nanos() / 1_000_000, across.as_nanos() / 1_000_000),
                )),
                _ => None,
            })
            .collect();
        assert_eq!(waits, [((1, 0, 1_000), (0, 0)), ((0, 1_000, 500), (80, 60)), ((0, 1_500, 100), (20, 0))]);
    }

    /// A buffer for a hundred packets, each of which takes this much of its room.
    const HUNDRED: u64 = 100 * FULL;
    const ROOM: u64 = 2_304 * 157 / 256;

    /// These packets arrive, and the application reads what it can.
    fn take(incoming: &mut Incoming, packets: std::ops::Range<u64>) {
        let now = Instant::ZERO;
        for packet in packets {
            let (start, end) = (packet * FULL, (packet + 1) * FULL);
            let note = Arrival { at: now, stream_offset: start };
            incoming.on_bytes(now, Piece { start, end, note }, SubflowId(0), 0, &mut Log::default());
        }
        incoming.read(u64::MAX);
    }

    #[test]
    fn what_waits_for_a_hole_takes_room_but_none_that_was_advertised() {
        let mut incoming = fixed(HUNDRED);
        let room = incoming.room();
        assert_eq!(incoming.window(own(4_000)), HUNDRED, "never less than was advertised");
        // Three packets beyond a hole.
        take(&mut incoming, 2..5);
        assert_eq!(incoming.free(own(u64::MAX)), room - 3 * ROOM);
        take(&mut incoming, 0..1);
        assert_eq!(incoming.window(own(u64::MAX)), HUNDRED - FULL, "what was advertised, less what arrived");
        // The hole is filled.
        take(&mut incoming, 1..2);
        assert_eq!(incoming.window(own(u64::MAX)), room);
        assert_eq!(
            incoming.window(own(70_000)),
            HUNDRED - 5 * FULL,
            "a subflow that has not opened as far moves no edge"
        );
        // What is free is rounded up to a unit, what was advertised is not.
        assert_eq!(u64::from(incoming.advertise(own(u64::MAX), 7)), room.div_ceil(128));
        assert_eq!((incoming.advertised(), incoming.edge()), (142_080, 142_080 + 5 * FULL));
        take(&mut incoming, 6..8);
        take(&mut incoming, 5..6);
        incoming.advertise(own(70_000), 7);
        assert_eq!(incoming.edge(), 142_080 + 5 * FULL);
    }

    #[test]
    fn beyond_the_advertised_window_only_what_comes_next_is_accepted() {
        let mut incoming = fixed(HUNDRED);
        let mut arrive = |packets: std::ops::Range<u64>| {
            take(&mut incoming, packets);
            (incoming.next() / FULL, incoming.edge() / FULL, incoming.held_ahead())
        };
        assert_eq!(arrive(0..99), (99, 100, 0));
        assert_eq!(arrive(100..101), (99, 100, 0), "there is a hole before it");
        assert_eq!(arrive(99..102), (102, 102, 0), "these are the next");
        // The application does not read any more.
        for packet in 102..300 {
            let note = Arrival { at: Instant::ZERO, stream_offset: packet * FULL };
            let piece = Piece { start: packet * FULL, end: (packet + 1) * FULL, note };
            incoming.on_bytes(Instant::ZERO, piece, SubflowId(0), 0, &mut Log::default());
        }
        assert_eq!(incoming.readable(), incoming.room().next_multiple_of(FULL));
    }

    #[test]
    fn an_acknowledgment_before_the_application_reads_has_less_room() {
        let mut incoming = fixed(HUNDRED);
        let note = Arrival { at: Instant::ZERO, stream_offset: 0 };
        let packet = Piece { start: 0, end: FULL, note };
        incoming.on_bytes(Instant::ZERO, packet, SubflowId(0), 0, &mut Log::default());
        assert_eq!(incoming.free(own(u64::MAX)), incoming.room() - ROOM);
        assert!(!incoming.allows(own(u64::MAX), incoming.room()));
        // A packet of which a part was read takes its share of room.
        incoming.read(FULL / 2);
        assert_eq!(incoming.free(own(u64::MAX)), incoming.room() - ROOM / 2);
        incoming.read(FULL);
        assert!(incoming.allows(own(u64::MAX), incoming.room()));
    }

    #[test]
    fn there_is_no_window_below_a_packet_or_a_sixteenth_of_the_buffer() {
        let mut incoming = fixed(HUNDRED);
        take(&mut incoming, 1..40);
        assert!(!incoming.is_half_full(own(u64::MAX)));
        take(&mut incoming, 40..94);
        assert!(incoming.is_half_full(own(u64::MAX)));
        assert_eq!(incoming.free(own(u64::MAX)), incoming.room() - 93 * ROOM);
        assert_eq!(incoming.free(OwnWindow { full_size: 20_000, ..own(u64::MAX) }), 0);
        take(&mut incoming, 94..96);
        assert_eq!(incoming.free(own(u64::MAX)), 0, "less than a sixteenth");
    }
}
