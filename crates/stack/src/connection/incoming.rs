//! The receiving half of a connection: one stream from several subflows, and their shared window.

use crate::reassembly::{Note, Piece, Reassembly};
use crate::receive_memory::ReceiveMemory;
use crate::subflow::max_pieces;
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
    /// A connection whose subflows accept `first_window` bytes at first, and the largest window of which needs this scale.
    pub fn new(memory: ReceiveMemory, first_window: u64, scale: u8) -> Self {
        Incoming {
            next: 0,
            ahead: Reassembly::default(),
            end: None,
            consumed: 0,
            memory,
            scale,
            edge: first_window,
            advertised: first_window,
            tuning: Tuning { since: Instant::ZERO, consumed: 0, rtt: Duration::ZERO },
        }
    }

    /// Accepts bytes of a subflow in the order in which it has them. Bytes beyond the advertised window are refused. `held`
    /// is what subflows hold beyond their own holes.
    pub fn on_bytes(
        &mut self,
        now: Instant,
        piece: Piece<crate::subflow::Arrival>,
        subflow: SubflowId,
        held: u64,
        log: &mut Log<TransportEvent>,
    ) {
        let start = piece.note.stream_offset;
        let limit = self.end.unwrap_or(self.edge).min(self.edge);
        let end = start.saturating_add(piece.end - piece.start).min(limit);
        if end <= self.next || start >= end {
            return;
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
        let taken = self.readable().min(max);
        self.consumed += taken;
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

    /// The share of payload in the memory of its packets is known. A Multipath TCP connection asks its subflows when it measures
    /// how much is read; a TCP connection knows it with each packet.
    pub fn set_share(&mut self, share: u64) {
        self.memory.set_share(share);
    }

    /// The free part of the buffer: without data that waits to be read or for a hole to be filled (Linux's `mptcp_space`).
    fn space(&self) -> u64 {
        self.memory.payload().saturating_sub(self.readable() + self.ahead.bytes())
    }

    /// The free buffer as far as a subflow's own window has `opened` (Linux's `__tcp_select_window`).
    pub fn free(&self, opened: u64) -> u64 {
        self.space().min(opened)
    }

    /// The window in the segment that was sent last.
    pub fn advertised(&self) -> u64 {
        self.advertised
    }

    /// Whether there is at least twice as much room as was advertised last, so that subflows may have to advertise it at once.
    pub fn has_opened(&self) -> bool {
        self.space() >= 2 * self.advertised
    }

    /// The window to advertise on a subflow whose own window has opened to `opened`: what is free, at least the window advertised
    /// before.
    pub fn window(&self, opened: u64) -> u64 {
        self.free(opened).max(self.edge - self.next)
    }

    /// One past the last byte that was ever advertised.
    pub fn edge(&self) -> u64 {
        self.edge
    }

    /// The window to advertise, see [`Incoming::window`], in units of `1 << scale`; records it. What is free is rounded up as in
    /// Linux; what was advertised before is not, because it would grow with each acknowledgment.
    pub fn advertise(&mut self, opened: u64, scale: u8) -> u16 {
        let (free, left) = (self.free(opened), self.edge - self.next);
        let rounded_up = (free + (1 << scale) - 1) >> scale;
        let units = if free >= left { rounded_up } else { left >> scale };
        let units = units.min(u64::from(u16::MAX));
        self.advertised = units << scale;
        self.edge = self.edge.max(self.next + self.advertised);
        units as u16
    }

    /// The scale that the largest window needs (RFC 7323 section 2.3).
    pub fn window_scale(&self) -> u8 {
        self.scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::ReceiveBuffer;
    use crate::subflow::Arrival;
    use anabranch_units::Bytes;

    fn fixed(window: u64) -> Incoming {
        let buffer = ReceiveBuffer { initial: Bytes(window), max: Bytes(window) };
        Incoming::new(ReceiveMemory::new(buffer), window, 0)
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

    #[test]
    fn what_waits_for_a_hole_takes_room_but_none_that_was_advertised() {
        let mut incoming = fixed(10_000);
        let mut log = Log::default();
        let now = Instant::ZERO;
        let mut take = |incoming: &mut Incoming, start: u64, end: u64| {
            let note = Arrival { at: now, stream_offset: start };
            incoming.on_bytes(now, Piece { start, end, note }, SubflowId(0), 0, &mut log);
            incoming.read(u64::MAX);
            if incoming.tuning_is_due(now) {
                incoming.tune(now, Surroundings { share: 128, ..Surroundings::default() });
            }
        };
        assert_eq!(incoming.window(4_000), 10_000, "never less than was advertised");
        // 3000 bytes beyond a hole: the next bytes in order move the window by the free space, no more than was
        // advertised.
        take(&mut incoming, 2_000, 5_000);
        assert_eq!(incoming.window(20_000), 10_000);
        take(&mut incoming, 0, 1_000);
        assert_eq!(incoming.window(20_000), 9_000);
        incoming.advertise(20_000, 0);
        // The hole is filled.
        take(&mut incoming, 1_000, 2_000);
        assert_eq!(incoming.window(20_000), 10_000);
        assert_eq!(incoming.window(7_000), 7_000, "a subflow that has not opened as far announces less");
        incoming.advertise(20_000, 0);
        assert_eq!(incoming.window(7_000), 10_000);
    }
}
