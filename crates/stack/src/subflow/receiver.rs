//! The receiving half of a subflow: what has arrived, and when to acknowledge it.
//!
//! Delayed and quick acknowledgments follow Linux: every packet is answered while a sender probably is in slow start,
//! and while a hole is open; otherwise every second one, or the delayed-acknowledgment timer.

use super::rtt::timestamp;
use crate::packet_memory::received_memory;
use crate::reassembly::{Note, Piece, Reassembly};
use crate::receive_memory::ReceiveMemory;
use anabranch_segment::{Segment, Timestamps};
use anabranch_units::{Duration, Instant};

/// Packets answered at once when a connection begins or wakes up (Linux `TCP_MAX_QUICKACKS`).
const MAX_QUICK_ACKS: u32 = 16;
/// The least and the most delay of an acknowledgment (Linux `TCP_ATO_MIN`, `TCP_DELACK_MAX`).
const MIN_DELAY: Duration = Duration::from_millis(40);
const MAX_DELAY: Duration = Duration::from_millis(200);
/// While a hole is open, acknowledgments are gathered for a twentieth of a round trip, at most a millisecond and at
/// most this many packets, once the sender surely knows of the hole (Linux `tcp_comp_sack_*`).
const COMPRESSION_SHARE: u64 = 20;
const MAX_COMPRESSION: Duration = Duration::from_millis(1);
const MAX_COMPRESSED: u32 = 44;
const UNCOMPRESSED: u32 = 3;
/// Packets with old data that are answered at once within this time: more than a window that a sender repeats
/// needlessly has. Linux has no such limit.
const MOST_OLD_DATA: u32 = 1_000;
const OLD_DATA_INTERVAL: Duration = Duration::from_millis(500);
/// Bytes of the smallest segment that opens the window.
const LEAST_OPENING: u32 = 128;

/// Limit of the pieces beyond a hole: packets of 256 bytes on average, and some more. Only a hostile peer sends that
/// many smaller ones; the rest of these is not acknowledged, so the peer has to send it again.
pub(crate) fn max_pieces(window: u64) -> usize {
    (window / 256) as usize + 1024
}

/// Where a run of subflow bytes belongs in the connection's stream, and when it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub stream_offset: u64,
    pub at: Instant,
}

impl Note for Arrival {
    fn advanced(self, bytes: u64) -> Self {
        Arrival { stream_offset: self.stream_offset.wrapping_add(bytes), ..self }
    }
}

/// When an acknowledgment is due. As one number, because it is looked at several times per packet, mostly to be
/// compared with the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AckDue(Instant);

impl AckDue {
    /// Nothing is to be acknowledged.
    const NEVER: AckDue = AckDue(Instant::FAR_FUTURE);
    /// At once.
    const NOW: AckDue = AckDue(Instant::ZERO);

    /// At this time, or sooner if it is due before.
    fn by(self, time: Instant) -> Self {
        AckDue(self.0.min(time))
    }

    /// Whether a packet waits for a second one, or for the timer.
    fn is_delayed(self) -> bool {
        self != AckDue::NEVER && self != AckDue::NOW
    }
}

/// What a subflow allows of a window, whatever room the connection's buffer has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnWindow {
    /// How far it has opened with arriving data (Linux's `rcv_ssthresh`).
    pub opened: u64,
    /// How far it may open (`window_clamp`).
    pub most: u64,
    /// Payload of a full packet (`rcv_mss`).
    pub full_size: u64,
}

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// Next offset expected in order; 0 is the SYN.
    next: u64,
    ahead: Reassembly<Arrival>,
    /// Offset of the peer's FIN.
    fin_at: Option<u64>,
    /// Runs beyond `next`, the latest first (RFC 2018 section 4).
    blocks: Vec<(u64, u64)>,
    /// A run that arrived twice, to be reported once.
    duplicate: Option<(u64, u64)>,
    /// Old data that was answered at once since this time.
    old_answered: (Instant, u32),
    due: AckDue,
    /// `next` when the last acknowledgment was sent.
    last_acknowledged: u64,
    /// The largest packet seen lately: what counts as a full one.
    full_size: u32,
    quick_acks: u32,
    /// The window of this subflow: it opens with arriving data (Linux's `rcv_ssthresh`); the connection's is the
    /// largest of all.
    opened: u64,
    /// How far it may open.
    memory: ReceiveMemory,
    /// A packet in order with this payload leaves no memory to open the window further; zero if not known.
    widest_for: u32,
    /// The window in the last segment that was sent on this subflow.
    advertised: u64,
    /// A PSH arrived since the last acknowledgment, so the sender may wait for the next one; and another end of its
    /// data after that.
    pushed: bool,
    pushed_twice: bool,
    /// This end answers what it receives: a segment with data left within the delay of an acknowledgment of data that
    /// arrived. There are no quick acknowledgments, because the next answer has them (Linux's "pingpong mode").
    interactive: bool,
    delay: Duration,
    last_arrival: Option<Instant>,
    compressed: u32,
    /// The timestamp to echo (RFC 7323 section 4.3).
    recent_timestamp: u32,
    /// Packets ahead of the hole since it last became smaller.
    since_progress: u32,
    /// The round trip as a receiver sees it: from an acknowledgment to the data that echoes its timestamp.
    rtt: Duration,
    measured_echo: u32,
}

impl Receiver {
    /// With this memory, of which so much is the first window.
    pub fn new((memory, opened): (ReceiveMemory, u64)) -> Self {
        Receiver {
            next: 0,
            ahead: Reassembly::default(),
            fin_at: None,
            blocks: Vec::with_capacity(4),
            duplicate: None,
            old_answered: (Instant::ZERO, 0),
            due: AckDue::NEVER,
            last_acknowledged: 0,
            full_size: 536,
            quick_acks: 0,
            opened,
            memory,
            widest_for: 0,
            advertised: opened,
            pushed: false,
            pushed_twice: false,
            interactive: false,
            delay: MIN_DELAY,
            last_arrival: None,
            compressed: 0,
            recent_timestamp: 0,
            since_progress: 0,
            rtt: Duration::ZERO,
            measured_echo: 0,
        }
    }

    /// What bounds the window of this subflow, in addition to the connection's buffer.
    #[inline]
    pub fn own_window(&self) -> OwnWindow {
        OwnWindow { opened: self.opened, most: self.memory.payload(), full_size: u64::from(self.full_size) }
    }

    /// The window in the last segment that was sent on this subflow.
    pub fn advertised(&self) -> u64 {
        self.advertised
    }

    /// What is left of the window in the last segment that was sent on this subflow (Linux's `tcp_receive_window`).
    pub fn window(&self) -> u64 {
        self.advertised.saturating_sub(self.next - self.last_acknowledged)
    }

    /// The share of payload in the memory of its packets.
    pub fn share(&self) -> u64 {
        self.memory.share()
    }

    /// The connection's buffer grew, because the application read so much in a round trip: this subflow's follows.
    pub fn grow(&mut self, per_round: u64) {
        self.memory.grow(per_round, self.reach());
        self.widest_for = 0;
    }

    /// A packet of `len` bytes arrived: the window opens by two full segments of `segment` bytes, as far as there is
    /// memory in addition to this packet (Linux's `tcp_grow_window`). A packet out of order takes its memory only after
    /// that (`tcp_data_queue_ofo`). Returns whether the window opened.
    #[inline]
    pub fn widen(&mut self, len: u32, segment: u32, in_order: bool) -> bool {
        let is_widest = len == self.widest_for && in_order;
        !is_widest && self.try_to_widen(len, segment, in_order)
    }

    fn try_to_widen(&mut self, len: u32, segment: u32, in_order: bool) -> bool {
        if len > self.full_size {
            self.memory.set_share(ReceiveMemory::share_of(len));
            self.widest_for = 0;
        }
        let taken = if in_order { received_memory(u64::from(len)) } else { 0 };
        let widest = self.memory.room_for_payload(taken);
        if self.opened >= widest {
            if in_order {
                self.widest_for = len;
            }
            return false;
        }
        let opens = len >= LEAST_OPENING && self.memory.bears(len, self.opened);
        if opens {
            let step = if self.memory.is_well_used(len) { segment } else { self.full_size };
            self.opened = (self.opened + 2 * u64::from(step.max(len))).min(widest);
        }
        opens
    }

    /// The round trip as this receiver sees it; zero before the first sample.
    pub fn rtt(&self) -> Duration {
        self.rtt
    }

    /// Data echoes the timestamp of one of our acknowledgments (Linux's `tcp_rcv_rtt_measure_ts`). Only the first full
    /// packet with that echo is a sample; later ones waited for the sender's window or its link. A shorter round trip
    /// counts at once.
    pub fn measure(&mut self, now: Instant, echo: u32, len: u32) {
        let elapsed = timestamp(now).wrapping_sub(echo);
        if echo == self.measured_echo || len < self.full_size || elapsed > u32::MAX / 2 {
            return;
        }
        self.measured_echo = echo;
        let sample = Duration::from_millis(u64::from(elapsed.max(1)));
        let adopted = self.rtt.is_zero() || sample < self.rtt;
        self.rtt = if adopted { sample } else { self.rtt - self.rtt / 8 + sample / 8 };
    }

    /// A pure acknowledgment has this echo, so data that has it as well is no sample.
    pub fn skip_echo(&mut self, echo: u32) {
        self.measured_echo = echo;
    }

    /// The peer's SYN arrived.
    pub fn on_syn(&mut self, segment: &Segment) {
        self.next = 1;
        self.last_acknowledged = 1;
        self.recent_timestamp = segment.timestamps.map_or(0, |t| t.value);
    }

    pub fn next(&self) -> u64 {
        self.next
    }

    /// The peer's FIN was received in order.
    pub fn finished(&self) -> bool {
        self.fin_at.is_some_and(|fin| self.next > fin)
    }

    /// Bytes beyond a hole.
    pub fn ahead(&self) -> u64 {
        self.ahead.bytes()
    }

    /// How far the received data reaches beyond the data in order, in bytes.
    pub fn reach(&self) -> u64 {
        self.ahead.end().saturating_sub(self.next)
    }

    /// Whether the timestamp is not older than the one to echo (the comparison of PAWS, RFC 7323 section 5.3).
    pub fn is_recent(&self, timestamps: Timestamps) -> bool {
        (timestamps.value.wrapping_sub(self.recent_timestamp) as i32) >= 0
    }

    /// Remembers the timestamp to echo: that of the earliest segment not yet acknowledged, so that the sender's round
    /// trip counts the delay of the acknowledgment.
    pub fn note_timestamp(&mut self, start: u64, timestamps: Option<Timestamps>) {
        if let Some(t) = timestamps
            && start <= self.last_acknowledged
            && self.is_recent(t)
        {
            self.recent_timestamp = t.value;
        }
    }

    /// Whether the timestamp to echo says nothing: some hosts put zero into their SYN only (Linux's `tcp_paws_check`).
    pub fn lacks_timestamp(&self) -> bool {
        self.recent_timestamp == 0
    }

    /// The timestamp to echo is no longer valid: this one takes its place, whichever is older.
    pub fn replace_timestamp(&mut self, timestamps: Timestamps) {
        self.recent_timestamp = timestamps.value;
    }

    /// The timestamps of a segment that is sent now.
    pub fn timestamps(&self, now: Instant) -> Timestamps {
        Timestamps { value: timestamp(now), echo: self.recent_timestamp }
    }

    /// Payload arrived: bytes `start..end` of the subflow, the first of which is at `stream_offset`. `rtt` is this
    /// end's estimate, `window` the bytes it accepts. Returns whether any of it is new.
    pub fn on_data(
        &mut self,
        now: Instant,
        start: u64,
        end: u64,
        stream_offset: u64,
        rtt: Duration,
        window: u64,
    ) -> bool {
        if end <= self.next {
            self.on_duplicate_data(now, start, end);
            return false;
        }
        let hole_open = !self.ahead.is_empty();
        if start > self.next && self.ahead.pieces() >= max_pieces(window) {
            self.acknowledge_now();
            return false;
        }
        let piece = Piece { start, end, note: Arrival { stream_offset, at: now } };
        let new = self.ahead.insert(piece);
        if new == 0 {
            // The block of the first arrival comes right behind (RFC 2883 section 4).
            self.note_block(start, end);
            self.duplicate = Some((start, end));
            self.acknowledge_now();
            return false;
        }
        if start > self.next {
            self.on_hole(now, start, end, rtt);
        } else {
            if start < self.next {
                self.duplicate = Some((start, self.next));
            }
            self.on_in_order(now, hole_open);
        }
        true
    }

    /// Whether the data in order is all that has arrived, and the peer has not announced the end.
    pub fn has_no_hole(&self) -> bool {
        self.ahead.is_empty() && self.fin_at.is_none()
    }

    /// The next data in order arrived while there was [no hole](Receiver::has_no_hole): what [`Receiver::on_data`] and
    /// [`Receiver::pop`] come to. Returns the piece for the connection.
    pub fn on_next_data(&mut self, now: Instant, end: u64, stream_offset: u64) -> Piece<Arrival> {
        let piece = Piece { start: self.next, end, note: Arrival { stream_offset, at: now } };
        self.on_in_order(now, false);
        self.next = end;
        self.blocks.retain(|block| block.1 > end);
        self.since_progress = 0;
        piece
    }

    /// The peer's FIN is at `offset`. It does not move once everything before it has arrived.
    pub fn on_fin(&mut self, offset: u64) {
        if !self.finished() {
            self.fin_at = Some(offset);
            self.take_fin();
        }
        if offset > self.next {
            // Ahead of a hole it is a run of one number, which shows the hole to the sender.
            self.note_block(offset, offset + 1);
        }
        self.acknowledge_now();
    }

    fn take_fin(&mut self) {
        if self.fin_at == Some(self.next) {
            self.next += 1;
        }
    }

    /// The next run of bytes in order, with its place in the stream.
    pub fn pop(&mut self) -> Option<Piece<Arrival>> {
        let piece = self.ahead.pop_ready(self.next)?;
        self.next = piece.end;
        self.take_fin();
        let next = self.next;
        self.blocks.retain(|block| block.1 > next);
        self.since_progress = 0;
        Some(piece)
    }

    /// Bytes acknowledged before arrived again: the acknowledgment was lost, or the sender's timeout was too short. Its
    /// sender needs the report of each one. A flood of them is answered at a limited rate (RFC 5961 section 7).
    #[cold]
    pub fn on_duplicate_data(&mut self, now: Instant, start: u64, end: u64) {
        self.duplicate = Some((start, end));
        (self.quick_acks, self.interactive) = (MAX_QUICK_ACKS, false);
        let (since, answered) = self.old_answered;
        self.old_answered = if now.since(since) >= OLD_DATA_INTERVAL { (now, 1) } else { (since, answered + 1) };
        if self.old_answered.1 <= MOST_OLD_DATA {
            self.acknowledge_now();
        }
    }

    fn on_hole(&mut self, now: Instant, start: u64, end: u64, rtt: Duration) {
        self.note_block(start, end);
        self.since_progress += 1;
        if self.since_progress <= UNCOMPRESSED || self.answers_quickly() {
            return self.acknowledge_now();
        }
        self.compressed += 1;
        if self.compressed > MAX_COMPRESSED {
            return self.acknowledge_now();
        }
        let wait = if rtt.is_zero() { Duration::ZERO } else { (rtt / COMPRESSION_SHARE).min(MAX_COMPRESSION) };
        self.due = self.due.by(now + wait);
    }

    fn on_in_order(&mut self, now: Instant, hole_open: bool) {
        if hole_open || self.answers_quickly() {
            self.acknowledge_now();
        } else if self.due == AckDue::NEVER {
            self.due = AckDue(now + self.delay);
        }
    }

    /// Whether more than one full packet waits to be acknowledged. When that happens depends on the window, and on the
    /// application.
    #[inline]
    pub fn owes_for_second(&self) -> bool {
        self.due.is_delayed() && self.next - self.last_acknowledged > u64::from(self.full_size)
    }

    fn answers_quickly(&self) -> bool {
        self.quick_acks > 0 && !self.interactive
    }

    /// Whether quick acknowledgments are left.
    #[inline]
    pub fn is_quick(&self) -> bool {
        self.quick_acks > 0
    }

    /// The buffer is half full: there are no more quick acknowledgments (Linux's `__tcp_select_window`).
    pub fn end_quick_acks(&mut self) {
        self.quick_acks = 0;
    }

    /// A segment with data is sent, which may be the answer to what has arrived (Linux's `tcp_event_data_sent`).
    #[inline]
    pub fn on_answer(&mut self, now: Instant) {
        self.interactive = self.interactive || self.last_arrival.is_some_and(|last| now.since(last) < self.delay);
    }

    /// Merges a run into the list of the latest ones and puts it first.
    fn note_block(&mut self, start: u64, end: u64) {
        let mut merged = (start, end);
        self.blocks.retain(|&(s, e)| {
            let touches = s <= merged.1 && merged.0 <= e;
            if touches {
                merged = (merged.0.min(s), merged.1.max(e));
            }
            !touches
        });
        self.blocks.truncate(3);
        self.blocks.insert(0, merged);
    }

    /// Notes whether a segment ends the sender's current data: it has PSH, or is not full (Linux's
    /// `tcp_measure_rcv_mss`).
    pub fn note_push(&mut self, pushed: bool, len: u32) {
        let small = len < self.full_size;
        self.pushed_twice |= self.pushed && small;
        self.pushed |= pushed || small;
    }

    /// Whether to acknowledge once the application has read (Linux's `tcp_cleanup_rbuf`): more than one full packet, or
    /// if it has read everything (`drained`), data with PSH.
    pub fn acknowledges_when_read(&self, drained: bool) -> bool {
        let ends = self.pushed_twice || (self.pushed && !self.interactive);
        self.owes_for_second() || (drained && ends && self.compressed == 0 && self.due.is_delayed())
    }

    /// Linux's `tcp_event_data_recv`, for every packet before [`on_data`](Self::on_data): the delay follows the gaps
    /// between packets. After a pause the sender probably begins with slow start, so it gets quick acknowledgments, as
    /// it does while the window opens, the connection's or its own. The criterion is Linux's (`tcp_grow_window`): an
    /// even number of quick acknowledgments, which is not used up meanwhile.
    /// `window` are the bytes that this end accepts.
    pub fn adapt_delay(
        &mut self,
        now: Instant,
        len: u32,
        (rtt, variance): (Duration, Duration),
        window: impl Fn(OwnWindow) -> u64,
        opens: bool,
    ) {
        // Of the window before this packet counts as a full one.
        let own = self.own_window();
        let quick =
            |full: u32| u32::try_from(window(own) / (2 * u64::from(full))).unwrap_or(u32::MAX).clamp(2, MAX_QUICK_ACKS);
        self.full_size = self.full_size.max(len);
        match self.last_arrival {
            None => {
                self.quick_acks = quick(self.full_size);
                self.delay = MIN_DELAY;
            }
            Some(last) => {
                let gap = now.since(last);
                if gap <= MIN_DELAY / 2 {
                    self.delay = self.delay / 2 + MIN_DELAY / 2;
                } else if gap < self.delay {
                    self.delay = (self.delay / 2 + gap).min(MAX_DELAY);
                } else if gap > rtt + variance {
                    self.quick_acks = quick(self.full_size);
                }
            }
        }
        // Never longer than a round trip, but at least the minimum, so that the sender's timer does not fire.
        let ceiling = if rtt.is_zero() { MAX_DELAY } else { rtt.max(MIN_DELAY).min(MAX_DELAY) };
        self.delay = self.delay.min(ceiling);
        self.last_arrival = Some(now);
        self.quick_acks |= u32::from(opens);
    }

    pub fn acknowledge_now(&mut self) {
        self.due = AckDue::NOW;
    }

    /// Whether an acknowledgment has anything to report other than the data in order.
    pub fn has_blocks(&self) -> bool {
        self.duplicate.is_some() || !self.blocks.is_empty()
    }

    /// Whether an acknowledgment must be sent, now or later.
    pub fn owes_ack(&self) -> bool {
        self.due != AckDue::NEVER
    }

    /// Whether an acknowledgment must be sent for what has arrived, whatever the time is.
    #[inline]
    pub fn acknowledges_at_once(&self) -> bool {
        self.due == AckDue::NOW
    }

    /// Whether an acknowledgment must be sent now.
    pub fn wants_ack(&self, now: Instant) -> bool {
        self.due.0 <= now
    }

    /// When a delayed acknowledgment must be sent; [`Instant::FAR_FUTURE`] if none is pending.
    pub fn deadline(&self) -> Instant {
        if self.due == AckDue::NOW { Instant::FAR_FUTURE } else { self.due.0 }
    }

    /// A segment is sent, and with it the acknowledgment and a `window`. The SACK blocks go to `report`, most urgent
    /// first; it returns false when there is no more room.
    pub fn on_ack_sent(&mut self, now: Instant, window: u64, mut report: impl FnMut(u64, u64) -> bool) {
        self.advertised = window;
        let twice = self.duplicate.take();
        if let Some((start, end)) = twice {
            report(start, end);
        }
        for &(start, end) in self.blocks.iter().filter(|block| block.0 >= self.next) {
            if !report(start, end) {
                break;
            }
        }
        self.last_acknowledged = self.next;
        (self.pushed, self.pushed_twice) = (false, false);
        let due = std::mem::replace(&mut self.due, AckDue::NEVER);
        if due.is_delayed() && due.0 <= now && self.compressed == 0 {
            // The sender's next packet would have come in time for a longer delay, or the answer did not come (Linux:
            // "delayed ACK missed").
            self.delay = if self.interactive { MIN_DELAY } else { (self.delay * 2).min(MAX_DELAY) };
            self.interactive = false;
        } else if due != AckDue::NEVER {
            self.use_quick_ack();
        }
        self.compressed = 0;
    }

    /// An acknowledgment of new data was sent; after the last quick one acknowledgments are delayed again.
    fn use_quick_ack(&mut self) {
        if self.quick_acks == 1 {
            self.delay = MIN_DELAY;
        }
        self.quick_acks = self.quick_acks.saturating_sub(1);
    }
}
