//! Packets sent and not acknowledged: the retransmission queue with its marks (RFC 6675, RFC 8985).
//!
//! Records are in sequence order, one per packet, contiguous. A second queue holds transmissions in the order of their
//! times, so that RACK finds the oldest without a search; an entry whose record was acknowledged, marked or sent again
//! since is skipped when it is reached. First transmissions are in the order of the sequence, so they are listed there
//! only when a packet is sent again, or the list is read: without loss never. Every operation costs amortised constant
//! time per packet, whatever the window, apart from binary searches and from the repair after a timeout, which walks
//! the queue once.

use super::rtt::timestamp;
use super::send_state::SendState;
use crate::queue::push_back;
use anabranch_events::CopyCause;
use anabranch_units::{Duration, Instant, SubflowId};
use std::collections::VecDeque;
use std::fmt;

/// One packet in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// The subflow's offset of the first byte.
    pub start: u64,
    /// Offset of that byte in the connection's stream.
    pub stream_offset: u64,
    /// Payload bytes.
    pub len: u32,
    /// The packet carries the subflow's FIN, which takes one sequence number.
    pub fin: bool,
    flags: u8,
    /// When it was last sent.
    pub sent_at: Instant,
    /// Delivery state when it was last sent; for rate samples.
    pub send_state: SendState,
}

const SACKED: u8 = 1;
const LOST: u8 = 2;
/// A retransmission is in flight; only lost packets are retransmitted.
const RETRANSMITTED: u8 = 4;
/// It was retransmitted at some time, so a round trip measured from it would be ambiguous (Karn).
const EVER_RETRANSMITTED: u8 = 8;

impl Record {
    pub fn new(start: u64, stream_offset: u64, len: u32, fin: bool, sent_at: Instant, send_state: SendState) -> Self {
        Record { start, stream_offset, len, fin, flags: 0, sent_at, send_state }
    }

    /// One past its last sequence number.
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.len) + u64::from(self.fin)
    }

    pub fn ever_retransmitted(&self) -> bool {
        self.has(EVER_RETRANSMITTED)
    }

    /// A retransmission is in flight.
    pub fn under_repair(&self) -> bool {
        self.has(RETRANSMITTED)
    }

    /// The peer has reported it as arrived.
    pub fn sacked(&self) -> bool {
        self.has(SACKED)
    }

    /// It counts as lost and was not retransmitted since.
    pub fn unrepaired(&self) -> bool {
        self.has(LOST) && !self.has(RETRANSMITTED)
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Of the delivered packets that with the latest transmission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newest {
    pub sent_at: Instant,
    pub end: u64,
    pub send_state: SendState,
}

/// What an acknowledgment tells about which transmission of a packet it answers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answer {
    /// When it arrived.
    pub at: Instant,
    /// The least round trip before it.
    pub min_rtt: Duration,
    /// The timestamp that it echoes.
    pub echo: Option<u32>,
}

impl Answer {
    /// Whether it answers the last transmission of a packet, and not an earlier one, as far as can be seen: an answer
    /// within less than the least round trip is to an earlier one (Linux's `tcp_rack_advance`), and so is a cumulative
    /// acknowledgment that echoes an older timestamp than the retransmission's (`tcp_skb_spurious_retrans`).
    fn is_to_last(&self, record: &Record, cumulative: bool) -> bool {
        if !record.ever_retransmitted() {
            return true;
        }
        let older = |echo: u32| echo != 0 && (echo.wrapping_sub(timestamp(record.sent_at)) as i32) < 0;
        self.at.since(record.sent_at) >= self.min_rtt && !(cumulative && self.echo.is_some_and(older))
    }
}

/// Effect of one acknowledgment on the scoreboard.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivery {
    /// Packets newly delivered.
    pub packets: u32,
    /// Payload bytes newly delivered, cumulatively or selectively.
    pub payload: u64,
    /// Payload bytes newly acknowledged cumulatively.
    pub bytes: u64,
    /// Send times of the first and the last packet newly acknowledged cumulatively that were never retransmitted.
    pub acked: Option<(Instant, Instant)>,
    /// The same for packets newly acknowledged selectively.
    pub sacked: Option<(Instant, Instant)>,
    /// A retransmitted packet was acknowledged cumulatively.
    pub retransmitted_acked: bool,
    /// A packet that was never retransmitted was delivered although it was sent before `high_mark` (F-RTO's evidence).
    pub original_delivered: bool,
    /// At least one packet was newly acknowledged selectively.
    pub any_sacked: bool,
    /// A packet arrived after one that was sent later: the network reorders.
    pub reordered: bool,
    pub newest: Option<Newest>,
    /// When that was sent, and its end, without transmissions of which it is not known whether they or earlier ones of
    /// the same packet arrived.
    pub arrived: Option<(Instant, u64)>,
    /// The first offset of the packet, of those of which `arrived` is the latest, whose delivery Linux notes last, and
    /// when it was sent: Linux goes through selective blocks in the order of the sequence, and then through what is
    /// acknowledged cumulatively.
    pub noted_last: (u64, Instant),
    answer: Answer,
    /// The largest payload of a packet that was newly delivered.
    pub largest: u32,
    /// The highest offset known to have arrived before this acknowledgment. The order of packets that one
    /// acknowledgment covers is unknown.
    known: u64,
}

impl Delivery {
    /// A packet is newly delivered, by a `cumulative` acknowledgment or a selective one.
    fn note(&mut self, record: &Record, high_mark: u64, cumulative: bool) {
        self.packets += 1;
        self.payload += u64::from(record.len);
        self.largest = self.largest.max(record.len);
        let newer = |n: &Newest| (record.sent_at, record.end()) > (n.sent_at, n.end);
        if self.newest.as_ref().is_none_or(newer) {
            self.newest = Some(Newest { sent_at: record.sent_at, end: record.end(), send_state: record.send_state });
        }
        if self.answer.is_to_last(record, cumulative) {
            self.arrived = self.arrived.max(Some((record.sent_at, record.end())));
            if cumulative || self.noted_last.0 <= record.start {
                self.noted_last = (record.start, record.sent_at);
            }
        }
        if !record.ever_retransmitted() {
            self.original_delivered |= record.end() <= high_mark;
            self.reordered |= record.start < self.known;
        }
    }
}

/// What an acknowledgment delivers where [nothing was marked](Scoreboard::is_unmarked).
#[derive(Clone, Copy, Debug)]
pub(crate) struct InOrder {
    /// Packets delivered.
    pub packets: u32,
    /// Payload bytes delivered.
    pub bytes: u64,
    /// When the first of the packets was sent.
    pub first_sent_at: Instant,
    /// The last of them.
    pub last: Newest,
}

/// Whether the transmission at this time is the packet's last, and may still be in flight.
fn is_under_way(record: &Record, sent_at: Instant) -> bool {
    record.sent_at == sent_at && !record.has(SACKED) && (!record.has(LOST) || record.has(RETRANSMITTED))
}

fn span(times: &mut Option<(Instant, Instant)>, sent_at: Instant) {
    let (first, _) = *times.get_or_insert((sent_at, sent_at));
    *times = Some((first, sent_at));
}

/// Adds a packet in pieces with at most this much payload each.
fn push_pieces(pieces: &mut VecDeque<Record>, mut rest: Record, most: u32) {
    while rest.len > most {
        pieces.push_back(Record { len: most, fin: false, ..rest });
        rest.start += u64::from(most);
        rest.stream_offset += u64::from(most);
        rest.len -= most;
    }
    pieces.push_back(rest);
}

/// See the module's description.
#[derive(Clone, Default)]
pub(crate) struct Scoreboard {
    records: VecDeque<Record>,
    /// The position of the front record, counted since the beginning: identifies records while the queue moves.
    first: u64,
    /// Transmissions by time: position of the record, and the time.
    by_time: VecDeque<(u64, Instant)>,
    /// Packets from this position on were sent once, after all transmissions in `by_time`.
    unlisted_from: u64,
    /// Records to retransmit, in sequence order; Linux also retransmits the earliest hole first.
    lost_queue: VecDeque<u64>,
    /// Runs of whole records known to be delivered selectively, ascending and disjoint.
    sacked_runs: VecDeque<(u64, u64)>,
    highest_sacked: u64,
    /// One past the last position that was ever retransmitted.
    unrepeated_from: u64,
    sacked: u32,
    lost: u32,
    retransmitted: u32,
    marked: u64,
    outstanding: u64,
    /// Positions of packets that left in one burst with the one before, and share one of Linux's buffers (`sk_buff`).
    sharing: VecDeque<u64>,
}

/// With all transmissions listed: scoreboards that hold the same look the same.
impl fmt::Debug for Scoreboard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut whole = self.clone();
        whole.list_transmissions();
        let counts = (whole.sacked, whole.lost, whole.retransmitted, whole.marked, whole.outstanding);
        f.debug_struct("Scoreboard")
            .field("records", &whole.records)
            .field("first", &whole.first)
            .field("by_time", &whole.by_time)
            .field("lost_queue", &whole.lost_queue)
            .field("sacked_runs", &whole.sacked_runs)
            .field("highest_sacked", &whole.highest_sacked)
            .field("unrepeated_from", &whole.unrepeated_from)
            .field("sacked, lost, retransmitted, marked, outstanding", &counts)
            .finish()
    }
}

impl Scoreboard {
    /// Packets in flight by their marks: sent, less delivered, less lost, plus retransmitted.
    pub fn in_flight(&self) -> u32 {
        (self.records.len() as u32 + self.retransmitted).saturating_sub(self.sacked + self.lost)
    }

    /// Packets that are not acknowledged cumulatively.
    pub fn packets_out(&self) -> u32 {
        self.records.len() as u32
    }

    /// Linux's buffers that these packets lie in.
    pub fn buffers(&self) -> u32 {
        self.packets_out() - self.sharing.len() as u32
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Payload bytes that are not acknowledged cumulatively.
    pub fn outstanding(&self) -> u64 {
        self.outstanding
    }

    pub fn sacked(&self) -> u32 {
        self.sacked
    }

    /// One past the last byte that was ever reported as arrived ahead of others.
    pub fn highest_sacked(&self) -> u64 {
        self.highest_sacked
    }

    pub fn lost(&self) -> u32 {
        self.lost
    }

    /// Retransmissions in flight.
    pub fn retransmitted(&self) -> u32 {
        self.retransmitted
    }

    /// How often packets were marked as lost since the beginning (Linux's `tp->lost`).
    pub fn marked(&self) -> u64 {
        self.marked
    }

    /// An empty delivery for the next acknowledgment.
    pub fn delivery(&self, answer: Answer) -> Delivery {
        Delivery { answer, known: self.highest_sacked, ..Delivery::default() }
    }

    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.iter()
    }

    pub fn front(&self) -> Option<&Record> {
        self.records.front()
    }

    /// Adds a packet that is sent for the first time.
    pub fn push(&mut self, record: Record) {
        debug_assert!(self.records.back().is_none_or(|last| last.end() == record.start));
        self.outstanding += u64::from(record.len);
        push_back(&mut self.records, record);
    }

    /// The last packet left in one burst with the one before, which is still there.
    pub fn share_buffer(&mut self) {
        self.sharing.push_back(self.first + self.records.len() as u64 - 1);
    }

    /// Adds the packets to `by_time` that are not in it.
    fn list_transmissions(&mut self) {
        let from = self.unlisted_from.max(self.first);
        let unlisted = self.records.iter().enumerate().skip((from - self.first) as usize);
        self.by_time.extend(unlisted.map(|(at, record)| (self.first + at as u64, record.sent_at)));
        self.unlisted_from = self.first + self.records.len() as u64;
    }

    /// Everything before `acked` was delivered.
    pub fn acknowledge(&mut self, acked: u64, high_mark: u64, delivery: &mut Delivery) {
        while let Some(record) = self.records.front_mut() {
            if record.end() > acked {
                let cut = Self::trim(record, acked);
                self.outstanding -= cut;
                delivery.bytes += cut;
                delivery.payload += if record.has(SACKED) { 0 } else { cut };
                break;
            }
            let record = *record;
            self.records.pop_front();
            self.first += 1;
            self.outstanding -= u64::from(record.len);
            delivery.bytes += u64::from(record.len);
            delivery.retransmitted_acked |= record.has(EVER_RETRANSMITTED);
            if record.has(SACKED) {
                // It arrived long ago: its round trip is unknown.
                self.sacked -= 1;
                continue;
            }
            if !record.has(EVER_RETRANSMITTED) {
                span(&mut delivery.acked, record.sent_at);
            }
            self.forget_marks(record);
            delivery.note(&record, high_mark, true);
        }
        if !self.sharing.is_empty() {
            self.release_buffers();
        }
        while self.sacked_runs.front().is_some_and(|run| run.1 <= acked) {
            self.sacked_runs.pop_front();
        }
    }

    /// Packets have left the queue: what is left of the first buffer belongs to the first packet. Not inlined, because
    /// it slows down the rest where no buffers are counted.
    #[inline(never)]
    fn release_buffers(&mut self) {
        while self.sharing.front().is_some_and(|position| *position <= self.first) {
            self.sharing.pop_front();
        }
    }

    /// Whether no packet that is not acknowledged was ever reported by the peer, lost, or sent again.
    pub fn is_unmarked(&self) -> bool {
        let unreported = self.front().is_none_or(|front| self.highest_sacked <= front.start);
        unreported && self.sacked + self.lost == 0 && self.first >= self.unrepeated_from
    }

    /// [`Scoreboard::acknowledge`] where [nothing was marked](Self::is_unmarked), in fewer steps: everything before
    /// `acked` was delivered. `None`, and no effect, if that is less than a packet.
    pub fn acknowledge_unmarked(&mut self, acked: u64) -> Option<InOrder> {
        let front = self.records.front().filter(|front| front.end() <= acked)?;
        let (first_sent_at, before) = (front.sent_at, (self.first, self.outstanding));
        let mut last = *front;
        while let Some(record) = self.records.front().filter(|record| record.end() <= acked) {
            last = *record;
            self.outstanding -= u64::from(last.len);
            self.records.pop_front();
            self.first += 1;
        }
        if !self.sharing.is_empty() {
            self.release_buffers();
        }
        if let Some(record) = self.records.front_mut() {
            self.outstanding -= Self::trim(record, acked);
        }
        while self.by_time.front().is_some_and(|(position, _)| *position < self.first) {
            self.by_time.pop_front();
        }
        debug_assert!(self.sacked_runs.is_empty(), "without a packet that the peer reported there is no run of them");
        Some(InOrder {
            packets: (self.first - before.0) as u32,
            bytes: before.1 - self.outstanding,
            first_sent_at,
            last: Newest { sent_at: last.sent_at, end: last.end(), send_state: last.send_state },
        })
    }

    /// The peer acknowledged a part of a packet: a retransmission must carry the rest.
    fn trim(record: &mut Record, acked: u64) -> u64 {
        let cut = acked.saturating_sub(record.start).min(u64::from(record.len));
        record.start += cut;
        record.stream_offset += cut;
        record.len -= cut as u32;
        cut
    }

    fn forget_marks(&mut self, record: Record) {
        self.lost -= u32::from(record.has(LOST));
        self.retransmitted -= u32::from(record.has(RETRANSMITTED));
    }

    /// The bytes from `start` up to `end` were delivered although earlier ones are missing. Only whole packets count,
    /// so that a peer cannot fill the list of runs with tiny ones; parts are reported in one block later.
    pub fn selectively_acknowledge(&mut self, start: u64, end: u64, high_mark: u64, delivery: &mut Delivery) {
        let first = self.records.partition_point(|record| record.start < start);
        let behind = self.records.partition_point(|record| record.end() <= end);
        if first >= behind {
            return;
        }
        let (start, end) = (self.records[first].start, self.records[behind - 1].end());
        let mut at = self.sacked_runs.partition_point(|run| run.1 < start);
        let mut from = start;
        // Only the parts beyond earlier blocks are walked: a block is mostly the last one plus a packet.
        let mut merged = (start, end);
        let first_merged = at;
        while let Some(&(run_start, run_end)) = self.sacked_runs.get(at) {
            if run_start > end {
                break;
            }
            if from < run_start {
                self.mark_delivered(from, run_start, high_mark, delivery);
            }
            from = from.max(run_end);
            merged = (merged.0.min(run_start), merged.1.max(run_end));
            at += 1;
        }
        if from < end {
            self.mark_delivered(from, end, high_mark, delivery);
        }
        match at - first_merged {
            0 => self.sacked_runs.insert(first_merged, merged),
            n => {
                self.sacked_runs[first_merged] = merged;
                if n > 1 {
                    self.sacked_runs.drain(first_merged + 1..at);
                }
            }
        }
        self.highest_sacked = self.highest_sacked.max(end);
    }

    fn mark_delivered(&mut self, start: u64, end: u64, high_mark: u64, delivery: &mut Delivery) {
        let mut at = self.records.partition_point(|record| record.start < start);
        while let Some(record) = self.records.get_mut(at).filter(|record| record.end() <= end) {
            if !record.has(SACKED) {
                let old = *record;
                record.flags = (record.flags & EVER_RETRANSMITTED) | SACKED;
                self.sacked += 1;
                self.forget_marks(old);
                delivery.any_sacked = true;
                if !old.has(EVER_RETRANSMITTED) {
                    span(&mut delivery.sacked, old.sent_at);
                }
                delivery.note(&old, high_mark, false);
            }
            at += 1;
        }
    }

    /// The oldest transmission of those that may still be in flight.
    pub fn oldest_transmission(&mut self) -> Option<(u64, Record)> {
        self.list_transmissions();
        while let Some(&(position, sent_at)) = self.by_time.front() {
            if let Some(record) = self.get(position).filter(|record| is_under_way(record, sent_at)) {
                return Some((position, *record));
            }
            self.by_time.pop_front();
        }
        None
    }

    /// When the latest transmission of those that may still be in flight was sent, of those before `limit`, a time and
    /// an end. The list of transmissions must be complete, as [`Self::oldest_transmission`] leaves it. Takes time in
    /// proportion to the packets that were sent since and have arrived.
    pub fn latest_transmission_before(&self, limit: (Instant, u64)) -> Option<Instant> {
        let later = self.by_time.partition_point(|(_, sent_at)| *sent_at <= limit.0);
        let found = self.by_time.range(..later).rev().find(|(position, sent_at)| {
            let is_before = |record: &Record| is_under_way(record, *sent_at) && (*sent_at, record.end()) < limit;
            self.get(*position).is_some_and(is_before)
        });
        found.map(|(_, sent_at)| *sent_at)
    }

    /// Marks the transmission found by [`Self::oldest_transmission`] as lost.
    pub fn mark_lost(&mut self, position: u64) {
        let Some(record) = position.checked_sub(self.first).and_then(|at| self.records.get_mut(at as usize)) else {
            return;
        };
        let (was_lost, was_retransmitted) = (record.has(LOST), record.has(RETRANSMITTED));
        if record.has(SACKED) || (was_lost && !was_retransmitted) {
            return;
        }
        record.flags = (record.flags | LOST) & !RETRANSMITTED;
        self.lost += u32::from(!was_lost);
        self.retransmitted -= u32::from(was_retransmitted);
        self.marked += 1;
        self.queue_lost(position);
    }

    /// Losses are found in order of their times, so mostly the position belongs at the end.
    fn queue_lost(&mut self, position: u64) {
        if self.lost_queue.back().is_none_or(|last| *last < position) {
            return self.lost_queue.push_back(position);
        }
        if let Err(place) = self.lost_queue.binary_search(&position) {
            self.lost_queue.insert(place, position);
        }
    }

    /// After a timeout: marks every undelivered packet as lost, except transmissions sent after `recent`, which may
    /// well be in flight; the first packet in any case. If the peer had reported the first packet by SACK it has
    /// dropped it since, so no SACK can be trusted (RFC 2018 section 8).
    pub fn mark_all_lost(&mut self, recent: Instant) {
        if self.front().is_some_and(|first| first.has(SACKED)) {
            self.forget_selective();
        }
        for position in self.first..self.first + self.records.len() as u64 {
            let record = &self.records[(position - self.first) as usize];
            if position == self.first || record.sent_at <= recent {
                self.mark_lost(position);
            }
        }
    }

    fn forget_selective(&mut self) {
        self.records.iter_mut().for_each(|record| record.flags &= !SACKED);
        self.sacked = 0;
        self.sacked_runs.clear();
        self.order_by_time();
    }

    /// Removes every mark of loss: the losses were spurious.
    pub fn unmark_lost(&mut self) {
        // From now on a retransmission counts as the packet itself.
        self.records.iter_mut().for_each(|record| record.flags &= !(LOST | RETRANSMITTED));
        (self.lost, self.retransmitted) = (0, 0);
        self.lost_queue.clear();
        self.order_by_time();
    }

    /// Rebuilds the list of transmissions in flight: some entries were dropped when they were marked.
    fn order_by_time(&mut self) {
        let (records, first) = (&self.records, self.first);
        let under_way = records.iter().enumerate().filter(|(_, record)| !record.has(SACKED));
        self.unlisted_from = first + records.len() as u64;
        self.by_time.clear();
        self.by_time.extend(under_way.map(|(at, record)| (first + at as u64, record.sent_at)));
        // Stable: at equal times the order is that of the sequence, as RACK requires.
        self.by_time.make_contiguous().sort_by_key(|(_, sent_at)| *sent_at);
    }

    /// The next packet to retransmit.
    pub fn next_lost(&mut self) -> Option<(u64, Record)> {
        while let Some(&position) = self.lost_queue.front() {
            if let Some(record) = self.get(position)
                && record.has(LOST)
                && !record.has(RETRANSMITTED)
            {
                return Some((position, *record));
            }
            self.lost_queue.pop_front();
        }
        None
    }

    /// The last packet, for a tail-loss probe, unless it arrived already.
    pub fn last_missing(&self) -> Option<(u64, Record)> {
        let last = self.records.back().filter(|record| !record.has(SACKED))?;
        Some((self.first + self.records.len() as u64 - 1, *last))
    }

    /// The packet at `position` is sent again. Returns whether that repairs a loss; a probe retransmits a packet that
    /// still counts as in flight, and does not change that count.
    pub fn mark_retransmitted(&mut self, position: u64, now: Instant, send_state: SendState) -> bool {
        self.list_transmissions();
        let Some(record) = position.checked_sub(self.first).and_then(|at| self.records.get_mut(at as usize)) else {
            return false;
        };
        debug_assert!(
            !record.has(SACKED) && !record.has(RETRANSMITTED),
            "a packet that arrived or is being retransmitted is not retransmitted"
        );
        let repairs = record.has(LOST);
        if repairs {
            self.retransmitted += 1;
            record.flags |= RETRANSMITTED;
        }
        record.flags |= EVER_RETRANSMITTED;
        self.unrepeated_from = self.unrepeated_from.max(position + 1);
        record.sent_at = now;
        record.send_state = send_state;
        self.by_time.push_back((position, now));
        repairs
    }

    /// The position of the packet with this byte; `None` if it was acknowledged or not sent.
    pub fn position_of(&self, offset: u64) -> Option<u64> {
        let at = self.records.partition_point(|record| record.end() <= offset);
        self.records.get(at).filter(|record| record.start <= offset).map(|_| self.first + at as u64)
    }

    /// Whether the packet that begins here arrived ahead of others.
    pub fn is_delivered(&self, start: u64) -> bool {
        let record = self.position_of(start).and_then(|position| self.get(position));
        record.is_some_and(|record| record.start == start && record.sacked())
    }

    /// A retransmission that may be in flight is lost.
    pub fn lose_retransmission(&mut self, position: u64) {
        if self.get(position).is_some_and(Record::under_repair) {
            self.mark_lost(position);
        }
    }

    /// No packet with more payload than this can arrive any more: those that have not are lost, and are to be sent
    /// again in pieces. Returns whether there is one. Takes time in proportion to the packets in flight.
    pub fn lose_larger(&mut self, most: u32) -> bool {
        let larger = |record: &Record| record.len > most && !record.has(SACKED);
        let found = self.records.iter().any(larger);
        if found {
            let (mut pieces, mut newly) = (VecDeque::with_capacity(self.records.len() + 1), 0);
            for record in &self.records {
                if larger(record) {
                    let lost = Record { flags: (record.flags | LOST) & !RETRANSMITTED, ..*record };
                    let before = pieces.len();
                    push_pieces(&mut pieces, lost, most);
                    newly += if record.unrepaired() { 0 } else { pieces.len() - before };
                } else {
                    pieces.push_back(*record);
                }
            }
            self.marked += newly as u64;
            self.replace(pieces);
        }
        found
    }

    /// The packet that begins here was too large, but does not count as lost: what takes its place is about to be sent.
    pub fn cut(&mut self, start: u64, most: u32, now: Instant) {
        let mut pieces = VecDeque::with_capacity(self.records.len() + 1);
        for record in &self.records {
            if record.start == start && !record.has(SACKED) {
                push_pieces(&mut pieces, Record { sent_at: now, ..*record }, most);
            } else {
                pieces.push_back(*record);
            }
        }
        self.replace(pieces);
    }

    /// The same bytes are in flight in other packets.
    fn replace(&mut self, records: VecDeque<Record>) {
        self.records = records;
        let count = |flag: u8| self.records.iter().filter(|record| record.has(flag)).count() as u32;
        (self.sacked, self.lost, self.retransmitted) = (count(SACKED), count(LOST), count(RETRANSMITTED));
        self.sharing.clear();
        let positions = || (self.first..).zip(&self.records);
        self.lost_queue = positions().filter(|(_, record)| record.unrepaired()).map(|(at, _)| at).collect();
        let repeated = positions().filter(|(_, record)| record.ever_retransmitted()).map(|(at, _)| at + 1);
        self.unrepeated_from = repeated.last().unwrap_or(self.first);
        self.order_by_time();
    }

    /// The position of the first packet.
    pub fn first_position(&self) -> u64 {
        self.first
    }

    /// Whether the bytes of the connection's stream at `offset` are in flight on this subflow; checks the first few
    /// packets only, because the first unacknowledged data is among these.
    pub fn carries_near_front(&self, offset: u64) -> bool {
        const NEAR: usize = 16;
        let covers = |r: &Record| r.stream_offset <= offset && offset < r.stream_offset + u64::from(r.len);
        self.records.iter().take(NEAR).any(covers)
    }

    /// The packet at `position`; `None` if it was acknowledged.
    pub fn get(&self, position: u64) -> Option<&Record> {
        self.records.get(position.checked_sub(self.first)? as usize)
    }
}

/// Bytes of the connection's stream that must be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reinjection {
    pub start: u64,
    pub end: u64,
    /// The subflow that lost them, which carries them only if there is no other.
    pub avoid: Option<SubflowId>,
    /// Why they must be.
    pub cause: CopyCause,
}
