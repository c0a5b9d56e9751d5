//! How large a segment may be: path MTU discovery by the sender itself (RFC 4821, RFC 8899), in addition to the reports
//! of routers ([`Connection::handle_too_big`](crate::Connection::handle_too_big)).
//!
//! A link that drops large packets and says nothing is a *black hole*. A timeout does not show one: packets of every
//! size may be lost, or the path may be cut. The evidence here is a pair: a packet of the suspicious size and, right
//! behind it, the first bytes of the same data in a small segment. If the peer acknowledges the small one alone, the
//! large one was lost where the small one passed. After [`PAIRS`] of these without a large packet delivered between
//! them, segments become small, and larger sizes are tried one at a time with new data. A try that is lost costs its
//! own retransmission and no reduction of the window (RFC 4821 section 7.5).
//!
//! Deviation: Linux (`tcp_mtu_probing = 1`) makes segments smaller at the fourth timeout, whatever the reason was.
//!
//! A *room* is what a segment of some size has for options and payload: the IP packet less the IP header and the fixed
//! TCP header.

use super::recovery::TailProbe;
use super::{AckOutcome, Sender, SizeChange};
use crate::congestion::Window;
use crate::subflow::scoreboard::{Delivery, Record};
use crate::view::{Packets, Phase};
use anabranch_segment::{BASE_HEADER_LEN, MAX_OPTIONS_LEN};
use anabranch_units::{Duration, Instant};

/// IP packets of the small segments, the first choice first. IPv6 guarantees 1280 bytes (RFC 8200 section 5), and
/// nearly every IPv4 path has them; 552 is the least that Linux believes over IPv4 (`net.ipv4.route.min_pmtu`).
const SMALL: [u32; 2] = [1_280, 552];
/// Pairs that show a black hole. Where a third of all packets is lost at random, six pairs in a row come about by
/// chance once in some 4,000 times, and once in 47,000 where it is a fifth; and pairs are only sent after a repeated
/// timeout, or before any large packet was delivered.
const PAIRS: u32 = 6;
/// Timeouts in a row that raise the suspicion on a path where packets of the size were delivered.
const SUSPICIOUS_TIMEOUTS: u32 = 2;
/// Small segments in a row that may stay without an answer before smaller ones are sent.
const UNANSWERED: u32 = 2;
/// A size counts as too large when this many packets of it were lost (RFC 8899 section 5.1.2, `MAX_PROBES`).
const MOST_TRIES: u32 = 3;
/// The search ends when the possible gain is less than this (Linux `tcp_probe_threshold`).
const LEAST_GAIN: u32 = 8;
/// A search for larger sizes begins anew after this long (RFC 8899 section 5.1.1, `PMTU_RAISE_TIMER`; Linux
/// `tcp_probe_interval`).
const RAISE_INTERVAL: Duration = Duration::from_secs(600);
/// Full segments that must follow a try of a larger size, so that its loss shows without a timer (RFC 8985's three).
const FOLLOWERS: u32 = 3;

/// The least IP packet that segments are made for: reports of less are not believed (RFC 8201 section 4; Linux's
/// `min_pmtu`).
pub(crate) fn least_mtu(ipv4: bool) -> u32 {
    if ipv4 { SMALL[1] } else { SMALL[0] }
}

/// Whether the next segment tries a larger size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// It has the usual size.
    None,
    /// It does, with this much payload.
    Of(u32),
    /// It will, as soon as the peer's window has room for it and its followers: until then nothing new is sent (as in
    /// Linux's `tcp_mtu_probe`). A window that is always full would otherwise never have room.
    Wait,
}

/// A try of a larger size.
#[derive(Clone, Copy, Debug)]
struct Try {
    /// The packet's first offset, and the one behind it.
    start: u64,
    end: u64,
    room: u32,
}

/// The first bytes of a large packet's data in a small segment.
#[derive(Clone, Copy, Debug)]
struct Sample {
    end: u64,
    /// Where the large packet ends.
    whole_end: u64,
    /// The large packet was sent right before it.
    paired: bool,
}

/// The suspicion that packets of some size do not pass.
#[derive(Clone, Copy, Debug, Default)]
struct Suspicion {
    /// The large packet at this offset is to be followed by its sample; and whether it was sent again before.
    due: Option<(u64, bool)>,
    sample: Option<Sample>,
    pairs: u32,
    /// The least payload of which a sample was sent; zero without one.
    len: u32,
    /// Samples in a row without an answer, and how many sizes of small segments were given up for it.
    unanswered: u32,
    given_up: usize,
    /// The window before the first of the reductions that the size may be the reason of.
    before: Option<Window>,
}

/// See the module's description.
#[derive(Clone, Debug)]
pub(crate) struct SegmentSize {
    /// Links may be smaller than the host knows.
    discovers: bool,
    /// Bytes of the headers that are in no room.
    headers: u32,
    /// The room of full segments.
    room: u32,
    /// The room that both ends allow.
    most: u32,
    /// The largest payload that was delivered.
    proven: u32,
    suspicion: Suspicion,
    /// The largest room that may pass, and whether a larger one is known to fail.
    ceiling: u32,
    bounded: bool,
    /// When a larger size may be tried; [`Instant::FAR_FUTURE`] where there is nothing to search for.
    search_at: Instant,
    tried: Option<Try>,
    failures: u32,
    /// Data of a lost try that is to be sent again at once: offsets.
    resend: Option<(u64, u64)>,
    /// Whether acknowledgments must be looked at, and whether there is something to send: of all that is above.
    watches: bool,
    wants_to_send: bool,
}

impl Default for SegmentSize {
    fn default() -> Self {
        SegmentSize {
            discovers: false,
            headers: 0,
            room: u32::MAX,
            most: u32::MAX,
            proven: 0,
            suspicion: Suspicion::default(),
            ceiling: u32::MAX,
            bounded: false,
            search_at: Instant::FAR_FUTURE,
            tried: None,
            failures: 0,
            resend: None,
            watches: false,
            wants_to_send: false,
        }
    }
}

impl SegmentSize {
    /// The room of full segments is agreed: that which both ends allow.
    pub fn begin(&mut self, ip_header: u32, room: u32, discovers: bool) {
        let headers = ip_header + BASE_HEADER_LEN;
        *self = SegmentSize { discovers, headers, room, most: room, ceiling: room, ..SegmentSize::default() };
        self.note_doubts();
    }

    /// The room of full segments.
    pub fn room(&self) -> u32 {
        self.room
    }

    /// The IP packet of a full segment.
    pub fn mtu(&self) -> u32 {
        self.room + self.headers
    }

    /// Whether acknowledgments say something about sizes, and so are not plain.
    #[inline]
    pub fn watches(&self) -> bool {
        self.watches
    }

    /// Whether a segment must be sent whatever the window is.
    #[inline]
    pub fn wants_to_send(&self) -> bool {
        self.wants_to_send
    }

    /// Whether a larger size may be tried now.
    #[inline]
    pub fn searches(&self, now: Instant) -> bool {
        self.search_at <= now
    }

    /// The window is reduced from `before`. If it is a size that does not pass, none of the reductions since it was
    /// last seen to pass was for congestion, and there may be several: of timeouts, and of recoveries between them.
    pub(super) fn note_reduction(&mut self, before: Window) {
        if self.watches {
            self.suspicion.before.get_or_insert(before);
        }
    }

    /// Routers' reports may exceed what is in use while a larger size is tried: then they say what to try next. Returns
    /// whether the report is about the packet at `offset` that tries `room` or more.
    pub fn is_tried(&self, offset: u64, room: u32) -> bool {
        self.tried.is_some_and(|tried| tried.start == offset && room < tried.room)
    }

    /// A packet with new data is sent. If it is not the try that was planned, because the peer's window lacks room,
    /// there is none.
    #[cold]
    pub fn note_sent(&mut self, start: u64, end: u64) {
        if self.tried.is_some_and(|tried| tried.start == start && tried.end != end) {
            self.tried = None;
            self.note_doubts();
        }
    }

    fn small_rooms(&self) -> impl Iterator<Item = u32> {
        let (headers, room, v4) = (self.headers, self.room, self.headers == 20 + BASE_HEADER_LEN);
        let possible = SMALL.into_iter().filter(move |mtu| *mtu >= least_mtu(v4));
        possible.map(move |mtu| mtu - headers).filter(move |small| *small < room)
    }

    /// The room of small segments while packets are in use with `len` bytes of payload, which may be smaller than full
    /// ones; `None` where these are as small.
    fn small_room(&self, len: u32) -> Option<u32> {
        let smaller = || self.small_rooms().filter(|room| room - MAX_OPTIONS_LEN < len);
        smaller().nth(self.suspicion.given_up).or_else(|| smaller().last())
    }

    /// Payload of a small segment while such packets are in use, whatever its options are.
    fn small_payload(&self, len: u32) -> Option<u32> {
        self.small_room(len).map(|room| room - MAX_OPTIONS_LEN)
    }

    /// Whether the packet is so large that its size may be why it was lost.
    fn is_suspect(&self, record: &Record) -> bool {
        self.small_room(record.len).is_some() && !record.sacked()
    }

    /// Whether the sender waits for an answer about the size of packets.
    pub fn asks(&self) -> bool {
        let suspicion = &self.suspicion;
        let samples = suspicion.sample.is_some() || suspicion.pairs > 0;
        samples || self.tried.is_some() || self.wants_to_send
    }

    fn note_doubts(&mut self) {
        let suspicion = &self.suspicion;
        let unproven =
            self.discovers && self.small_rooms().next().is_some() && self.proven + MAX_OPTIONS_LEN < self.room;
        self.wants_to_send = suspicion.due.is_some() || self.resend.is_some();
        self.watches = unproven || self.asks();
    }

    /// Segments have another size from here on.
    fn settle(&mut self, now: Instant, change: SizeChange) {
        self.suspicion = Suspicion::default();
        (self.tried, self.failures, self.resend) = (None, 0, None);
        match change {
            // The report says what passes.
            SizeChange::Reported(room) => {
                (self.room, self.ceiling, self.proven) = (room, room, 0);
                self.search_at = now + RAISE_INTERVAL;
            }
            SizeChange::BlackHole(room) => {
                self.ceiling = self.room - 1;
                (self.room, self.proven, self.bounded) = (room, room, true);
                self.search_at = now;
            }
            SizeChange::Tried(room) => {
                self.room = room;
                self.plan_search(now);
            }
        }
        self.note_doubts();
    }

    fn plan_search(&mut self, now: Instant) {
        let over = self.ceiling < self.room + LEAST_GAIN;
        if over {
            (self.ceiling, self.bounded) = (self.room, false);
        }
        self.search_at = match over {
            _ if self.room >= self.most => Instant::FAR_FUTURE,
            true => now + RAISE_INTERVAL,
            false => now,
        };
    }

    /// The room to try next.
    fn candidate(&mut self) -> u32 {
        if self.ceiling <= self.room {
            // The search begins anew.
            (self.ceiling, self.bounded) = (self.most, false);
        }
        if self.bounded { (self.room + self.ceiling).div_ceil(2) } else { self.ceiling }
    }
}

impl Sender {
    /// Whether the next segment tries a larger size, if there are `unsent` bytes and the peer's window has `space` for
    /// new ones; `payload` is that of a full segment. The caller sends it at once, or nothing.
    pub fn try_larger(&mut self, payload: u32, unsent: u64, space: u64) -> Attempt {
        let calm = self.phase == Phase::Open && self.board.sacked() == 0 && self.board.lost() == 0;
        let size = &mut self.size;
        if !calm || size.watches || size.room >= size.most || self.window.cwnd.floor() <= FOLLOWERS {
            return Attempt::None;
        }
        let room = size.candidate();
        let larger = payload + (room - size.room);
        let needed = u64::from(larger) + u64::from(payload) * u64::from(FOLLOWERS);
        if unsent < needed || !self.has_room() {
            return Attempt::None;
        }
        if space < needed {
            // What is in flight will be acknowledged, which may open the window.
            return if self.board.is_empty() { Attempt::None } else { Attempt::Wait };
        }
        let start = self.next;
        self.size.tried = Some(Try { start, end: start + u64::from(larger), room });
        self.size.note_doubts();
        Attempt::Of(larger)
    }

    /// Segments have another size from here on, with `payload` bytes in a full one. Larger packets in flight are lost:
    /// they are sent again in pieces, with no reduction of the window, because the network is not congested (RFC 1191
    /// section 6.5; Linux `tcp_simple_retransmit`).
    pub fn resize(&mut self, now: Instant, change: SizeChange, payload: u32) {
        let smaller = !matches!(change, SizeChange::Tried(_));
        let before = self.size.room;
        let unreduced = self.size.suspicion.before;
        self.size.settle(now, change);
        if !smaller {
            // As many bytes as before may be in flight (Linux `tcp_mtup_probe_success`).
            let scaled = self.window.cwnd.as_f64() * f64::from(before) / f64::from(self.size.room);
            if !self.control.governs_itself() {
                self.window.cwnd = Packets::from_f64(scaled.max(1.0));
            }
            return;
        }
        self.largest = payload;
        if matches!(change, SizeChange::BlackHole(_)) {
            self.forgive_losses(now, unreduced);
            // The large packets used none of the link.
            self.window.paced_until = now;
        }
        if !self.board.lose_larger(payload) {
            return;
        }
        if self.phase != Phase::Loss {
            self.window.ssthresh = self.current_ssthresh();
            self.high_mark = self.next;
            self.phase = Phase::Loss;
        }
        self.undo = None;
        self.doubt_timeout = false;
        self.probe = TailProbe::default();
        self.arm_timeout(now);
    }

    /// A probe for a lost tail is due. If no large packet was ever delivered, a small segment is the better probe;
    /// returns whether it is sent instead.
    pub(super) fn sample_as_probe(&mut self) -> bool {
        let Some(front) = self.board.front().copied() else { return false };
        let suits = self.size.watches && self.size.is_suspect(&front) && front.len > self.size.proven;
        if suits {
            self.size.suspicion.due = Some((front.start, false));
            self.size.note_doubts();
        }
        suits
    }

    /// A timeout marked everything as lost. The first packet is sent again; a sample follows it if its size is
    /// suspicious.
    pub(super) fn sample_after_timeout(&mut self) {
        if !self.size.discovers {
            return;
        }
        let suspicion = &mut self.size.suspicion;
        if suspicion.sample.take().is_some() {
            suspicion.unanswered += 1;
            if suspicion.unanswered == UNANSWERED {
                (suspicion.unanswered, suspicion.pairs) = (0, 0);
                suspicion.given_up += 1;
            }
        }
        let Some(front) = self.board.front().copied() else { return };
        let suspicious = front.len > self.size.proven || self.timeouts >= SUSPICIOUS_TIMEOUTS;
        let due = (suspicious && self.size.is_suspect(&front)).then_some((front.start, true));
        self.size.suspicion.due = due;
        if let Some(undo) = self.undo.filter(|_| due.is_some()) {
            // The suspicion may begin after the first reduction.
            self.size.suspicion.before.get_or_insert(undo.window);
        }
        self.size.note_doubts();
    }

    /// What an acknowledgment of everything before `acked` says about sizes.
    pub(super) fn learn_sizes(&mut self, now: Instant, acked: u64, delivery: &Delivery, outcome: &mut AckOutcome) {
        if let Some(tried) = self.size.tried
            && (acked >= tried.end || self.board.is_delivered(tried.start))
        {
            outcome.size = Some(SizeChange::Tried(tried.room));
        }
        let size = &mut self.size;
        size.proven = size.proven.max(delivery.largest);
        if delivery.largest > 0 && delivery.largest >= size.suspicion.len {
            // A large packet arrived: whatever was lost was not lost for its size.
            size.suspicion = Suspicion::default();
        } else if let Some(sample) = size.suspicion.sample.filter(|sample| acked >= sample.end) {
            size.suspicion.sample = None;
            size.suspicion.unanswered = 0;
            if acked < sample.whole_end {
                size.suspicion.pairs += u32::from(sample.paired);
                if size.suspicion.pairs >= PAIRS
                    && let Some(room) = size.small_room(size.suspicion.len)
                {
                    outcome.size = Some(SizeChange::BlackHole(room));
                    // The rest of the large packet was in the large packet.
                    self.board.lose_retransmission(self.board.first_position());
                } else {
                    outcome.suspicious = true;
                    self.send_pair(now);
                }
            }
        }
        self.size.resend = self.size.resend.filter(|(_, end)| *end > acked);
        self.size.note_doubts();
    }

    /// A small segment arrived without the large packet that it was a part of. The rest of that one is sent again in
    /// small segments, and then the next large packet with its sample.
    fn send_pair(&mut self, now: Instant) {
        let least = self.size.suspicion.len;
        let small = self.size.small_payload(least).unwrap_or(u32::MAX);
        if let Some(front) = self.board.front().copied().filter(|front| front.len < least && front.len > small) {
            self.board.cut(front.start, small, now);
        }
        let large = self.board.records().position(|record| record.len >= least && !record.sacked());
        let first = self.board.first_position();
        let last = first + large.unwrap_or_default() as u64;
        // What was being retransmitted is lost again.
        (first..=last).for_each(|position| self.board.lose_retransmission(position));
        if let Some(last) = self.board.get(last).copied() {
            self.size.resend = Some((self.acked, last.end()));
            self.size.suspicion.due = large.is_some().then_some((last.start, true));
        }
    }

    /// Data that is sent again now, whatever the window is.
    pub(super) fn next_resent(&mut self) -> Option<(u64, Record)> {
        while let Some((from, end)) = self.size.resend {
            let next = self.board.position_of(from).and_then(|at| Some((at, *self.board.get(at)?)));
            let rest = next.map(|(_, record)| record.end()).filter(|behind| *behind < end);
            self.size.resend = rest.map(|behind| (behind, end));
            self.size.note_doubts();
            if let Some(found) = next.filter(|(_, record)| !record.sacked() && !record.under_repair()) {
                return Some(found);
            }
        }
        None
    }

    /// Whether a sample is due whose large packet is on its way.
    pub fn has_ripe_sample(&self) -> bool {
        let large = self.size.suspicion.due.and_then(|(start, _)| self.board.position_of(start));
        large.and_then(|at| self.board.get(at)).is_some_and(|record| !record.unrepaired())
    }

    /// The sample that is due: the position of the large packet, and how many of its bytes it has.
    pub fn next_sample(&mut self) -> Option<(u64, u32)> {
        let (start, paired) = self.size.suspicion.due.take()?;
        let sampled = self.board.position_of(start).and_then(|at| Some((at, *self.board.get(at)?)));
        let sampled = sampled.filter(|(_, record)| record.start == start && self.size.is_suspect(record));
        let sampled = sampled.filter(|(_, record)| !self.withholding.holds(record.start));
        let sampled = sampled.and_then(|(at, record)| Some((at, record, self.size.small_payload(record.len)?)));
        if let Some((_, record, small)) = sampled {
            let suspicion = &mut self.size.suspicion;
            suspicion.sample = Some(Sample { end: start + u64::from(small), whole_end: record.end(), paired });
            suspicion.len = if suspicion.len == 0 { record.len } else { suspicion.len.min(record.len) };
        }
        self.size.note_doubts();
        sampled.map(|(position, _, small)| (position, small))
    }

    /// A sample with `len` bytes of payload is sent.
    pub fn on_sampled(&mut self, now: Instant, len: u32) {
        self.retransmissions += 1;
        // If the large packet arrives as well, the peer reports a duplicate that says nothing about the other
        // retransmissions.
        if let Some(undo) = self.undo.as_mut() {
            undo.on_retransmitted(now);
        }
        self.after_transmission(now, len);
    }

    /// Whether the packet at `offset` was sent to try a larger size.
    #[inline]
    pub fn tries_larger(&self, offset: u64) -> bool {
        self.size.watches && self.is_try(offset)
    }

    /// Whether the packet at `offset` tries a larger size.
    pub(super) fn is_try(&self, offset: u64) -> bool {
        self.size.tried.is_some_and(|tried| tried.start == offset)
    }

    /// The packet that tried a larger size was lost: its data is sent again at once, in segments of the present size,
    /// and nothing else follows from it. `fitting`: the room that a router reported to pass, if one did.
    pub fn fail_try(&mut self, now: Instant, fitting: Option<u32>) {
        let Some(tried) = self.size.tried.take() else { return };
        let size = &mut self.size;
        let payload = (tried.end - tried.start) as u32 - (tried.room - size.room);
        size.failures += 1;
        if let Some(room) = fitting {
            (size.ceiling, size.bounded, size.failures) = (room, false, 0);
        } else if size.failures == MOST_TRIES {
            (size.ceiling, size.bounded, size.failures) = (tried.room - 1, true, 0);
        }
        size.plan_search(now);
        // The next try waits until this one is repaired, more or less.
        size.search_at = size.search_at.max(now + self.rtt.srtt());
        size.resend = Some((tried.start.max(self.acked), tried.end));
        size.note_doubts();
        self.board.cut(tried.start, payload, now);
    }

    /// Before everything is marked as lost after a timeout.
    pub(super) fn abandon_try(&mut self, now: Instant) {
        self.fail_try(now, None);
        self.size.resend = None;
        self.size.note_doubts();
    }
}
