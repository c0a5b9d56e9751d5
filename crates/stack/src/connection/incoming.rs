//! The receiving half of a connection: one stream from several subflows, and their shared window.

use crate::connection::transport::ReceiveBuffer;
use crate::reassembly::{Note, Piece, Reassembly};
use crate::subflow::max_pieces;
use anabranch_events::{Log, TransportEvent};
use anabranch_units::{Bytes, Duration, Instant};

/// When bytes arrived, and when they were in order on their subflow.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    at: Instant,
    in_order_at: Instant,
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
    buffer: u64,
    /// Whether the real memory size of packets is known.
    measured: bool,
    max_buffer: u64,
    /// One past the last byte that was ever advertised; never moves back.
    edge: u64,
    tuning: Tuning,
}

/// Dynamic right-sizing: the window should hold twice what the application reads per round trip, more while that grows,
/// and the data beyond a hole (Linux's `tcp_rcvbuf_grow` and `mptcp_rcvbuf_grow` since 6.16).
#[derive(Clone, Copy, Debug)]
struct Tuning {
    since: Instant,
    consumed: u64,
    per_round: u64,
}

/// State of the subflows that right-sizing needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Surroundings {
    /// The longest round trip, as a receiver sees it.
    pub rtt: Duration,
    /// How far beyond its own hole a TCP connection has received, in bytes.
    pub reach: u64,
    /// Whether packets arrived on every subflow.
    pub all_heard: bool,
}

/// Relative growth of a buffer when the packets' memory size is known: Linux counts half of its memory as payload until
/// the first packet, and then the share in a packet, 1448 of 2304 bytes or five eighths (`tcp_measure_rcv_mss`).
const MEASURED_GROWTH: u64 = 4;

impl Incoming {
    pub fn new(buffer: ReceiveBuffer) -> Self {
        let (Bytes(initial), Bytes(max_buffer)) = (buffer.initial, buffer.max.max(buffer.initial));
        Incoming {
            next: 0,
            ahead: Reassembly::default(),
            end: None,
            consumed: 0,
            buffer: initial,
            measured: false,
            max_buffer,
            edge: initial,
            tuning: Tuning { since: Instant::ZERO, consumed: 0, per_round: initial.min(14_600) },
        }
    }

    /// Accepts bytes in the order in which a subflow has them. Bytes beyond the advertised window are refused. `held`
    /// is what subflows hold beyond their own holes.
    pub fn on_bytes(
        &mut self,
        now: Instant,
        piece: Piece<crate::subflow::Arrival>,
        held: u64,
        log: &mut Log<TransportEvent>,
    ) {
        let start = piece.note.stream_offset;
        let limit = self.end.unwrap_or(self.edge).min(self.edge);
        let end = start.saturating_add(piece.end - piece.start).min(limit);
        if end <= self.next || start >= end {
            return;
        }
        if start <= self.next && self.ahead.is_empty() {
            self.deliver(now, end - self.next, Arrived { at: piece.note.at, in_order_at: now }, log);
            return;
        }
        let start = start.max(self.next);
        if start > self.next && self.ahead.pieces() >= max_pieces(self.buffer) {
            return;
        }
        self.ahead.insert(Piece { start, end, note: Arrived { at: piece.note.at, in_order_at: now } });
        while let Some(ready) = self.ahead.pop_ready(self.next) {
            self.deliver(now, ready.end - ready.start, ready.note, log);
        }
        if !self.ahead.is_empty() {
            log.emit(now, TransportEvent::OutOfOrder { buffered: self.ahead.bytes() + held });
        }
    }

    fn deliver(&mut self, now: Instant, bytes: u64, arrived: Arrived, log: &mut Log<TransportEvent>) {
        self.next += bytes;
        let (waited, across) = (now.since(arrived.at), now.since(arrived.in_order_at));
        log.emit(now, TransportEvent::Delivered { bytes: bytes as u32, waited, across });
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

    /// The application takes up to `max` bytes.
    pub fn read(&mut self, now: Instant, max: u64, around: Surroundings) -> u64 {
        let taken = self.readable().min(max);
        self.consumed += taken;
        self.tune(now, around);
        taken
    }

    fn tune(&mut self, now: Instant, around: Surroundings) {
        if now.since(self.tuning.since) < around.rtt {
            return;
        }
        if around.all_heard {
            self.measure();
        }
        if around.rtt.is_zero() {
            return;
        }
        let taken = self.consumed - self.tuning.consumed;
        let before = self.tuning.per_round.max(1);
        if taken > before {
            let doubled = 2 * taken;
            let growth = u128::from(doubled) * u128::from(taken - before) / u128::from(before);
            let ahead = around.reach.max(self.ahead.end().saturating_sub(self.next));
            let target = doubled.saturating_add(2 * growth as u64).saturating_add(ahead);
            self.buffer = self.buffer.max(target.min(self.max_buffer));
            self.tuning.per_round = taken;
        }
        (self.tuning.since, self.tuning.consumed) = (now, self.consumed);
    }

    /// The real memory size of packets is known: with the first one over TCP. A Multipath TCP connection asks its
    /// subflows when it measures the reading rate, and takes the most pessimistic, which is one without packets so far
    /// (Linux's `mptcp_rcv_space_adjust`).
    pub fn measure(&mut self) {
        self.buffer = self.widest();
        self.measured = true;
    }

    /// Limit of a subflow's window: each subflow has a buffer of its own beside that of the connection, and knows the
    /// memory size of its packets from the first one on.
    pub fn widest(&self) -> u64 {
        let growth = if self.measured { 0 } else { self.buffer / MEASURED_GROWTH };
        (self.buffer + growth).min(self.max_buffer)
    }

    /// The window to advertise on a subflow whose own window has opened to `opened`: at most the free buffer beside
    /// data that waits to be read or for a hole to be filled (Linux's `__tcp_select_window` and `mptcp_space`), at
    /// least the window advertised before.
    pub fn window(&self, opened: u64) -> u64 {
        let room = self.buffer.saturating_sub(self.readable() + self.ahead.bytes());
        (self.next + room.min(opened)).max(self.edge) - self.next
    }

    /// The window advertised last.
    pub fn promised(&self) -> u64 {
        self.edge - self.next
    }

    /// The window to advertise, see [`Incoming::window`], in units of `1 << scale`; records it.
    pub fn promise(&mut self, opened: u64, scale: u8) -> u16 {
        let units = (self.window(opened) >> scale).min(u64::from(u16::MAX));
        self.edge = self.edge.max(self.next + (units << scale));
        units as u16
    }

    /// The scale that the largest window needs (RFC 7323 section 2.3).
    pub fn window_scale(&self) -> u8 {
        (0..14).find(|scale| self.max_buffer >> scale <= u64::from(u16::MAX)).unwrap_or(14)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subflow::Arrival;

    #[test]
    fn a_wait_is_divided_into_that_for_its_own_subflow_and_that_for_others() {
        let mut incoming = Incoming::new(ReceiveBuffer { initial: Bytes(10_000), max: Bytes(10_000) });
        let mut log = Log::default();
        let ms = |n: u64| Instant::from_nanos(n * 1_000_000);
        let piece = |start: u64, end: u64, arrived| Piece {
            start,
            end,
            note: Arrival { at: ms(arrived), stream_offset: start },
        };
        // The last bytes arrived at 10 and were in order on their subflow at 30; the first ones arrive at 90.
        incoming.on_bytes(ms(30), piece(1_000, 1_500, 10), 0, &mut log);
        incoming.on_bytes(ms(90), piece(0, 1_000, 90), 0, &mut log);
        // These had to wait for their own subflow alone.
        incoming.on_bytes(ms(120), piece(1_500, 1_600, 100), 0, &mut log);
        let waits: Vec<_> = log
            .drain()
            .filter_map(|(_, event)| match event {
                TransportEvent::Delivered { bytes, waited, across } => {
                    Some((bytes, waited.as_nanos() / 1_000_000, across.as_nanos() / 1_000_000))
                }
                _ => None,
            })
            .collect();
        assert_eq!(waits, [(1_000, 0, 0), (500, 80, 60), (100, 20, 0)]);
    }

    #[test]
    fn what_waits_for_a_hole_takes_room_but_no_promise() {
        let mut incoming = Incoming::new(ReceiveBuffer { initial: Bytes(10_000), max: Bytes(10_000) });
        let mut log = Log::default();
        let now = Instant::ZERO;
        let mut take = |incoming: &mut Incoming, start: u64, end: u64| {
            let note = Arrival { at: now, stream_offset: start };
            incoming.on_bytes(now, Piece { start, end, note }, 0, &mut log);
            incoming.read(now, u64::MAX, Surroundings::default());
        };
        assert_eq!(incoming.window(4_000), 10_000, "never less than was promised");
        // 3000 bytes beyond a hole: the next bytes in order move the window by the free space, no more than was
        // advertised.
        take(&mut incoming, 2_000, 5_000);
        assert_eq!(incoming.window(20_000), 10_000);
        take(&mut incoming, 0, 1_000);
        assert_eq!(incoming.window(20_000), 9_000);
        incoming.promise(20_000, 0);
        // The hole is filled.
        take(&mut incoming, 1_000, 2_000);
        assert_eq!(incoming.window(20_000), 10_000);
        assert_eq!(incoming.window(7_000), 7_000, "a subflow that has not opened as far announces less");
        incoming.promise(20_000, 0);
        assert_eq!(incoming.window(7_000), 10_000);
    }
}
