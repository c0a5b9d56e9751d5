//! Processing of an arriving segment: RFC 9293 section 3.10.7's ordered checks, one function each, and RFC 8684's
//! additions.

use super::fallback::BadMapping;
use super::numbers::{MAX_WINDOW, expand, sack_runs};
use super::predict::is_off;
use super::{Connection, Failover, Mode, Placed};
use crate::congestion::Siblings;
use crate::subflow::{AckOutcome, Acknowledgment, KnownMapping, State, Subflow};
use anabranch_events::{CloseReason, CopyCause, FallbackReason, LossCause, TransportEvent};
use anabranch_segment::{DataSeq, Dss, Flags, Mapping, MptcpOption, Segment, TIMESTAMPS_LEN};
use anabranch_units::{Duration, Instant, PathId, SubflowId};

/// A timestamp that is older than this may have wrapped: half the numbers of a clock of one tick per millisecond,
/// rounded down to days (RFC 7323 section 5.5).
const TIMESTAMP_LIFETIME: Duration = Duration::from_secs(24 * 86_400);

impl Connection {
    /// Processes a segment that arrived on `path`. Returns where its payload belongs, if it is new.
    pub fn handle_segment(&mut self, now: Instant, path: PathId, segment: &Segment) -> Option<Placed> {
        let Some(at) = self.find_subflow(path, segment) else {
            let joins = segment.flags == Flags::SYN && self.accept_join(now, path, segment);
            if !joins {
                self.refuse(path, segment);
            }
            return None;
        };
        let placed = match self.subflows[at].state {
            State::SynSent => {
                self.on_syn_ack(now, at, segment);
                None
            }
            _ => match self.predict(at, segment) {
                Some(expected) => self.on_predicted(now, at, segment, expected),
                None => self.on_synchronised(now, at, segment),
            },
        };
        self.remove_dead(now);
        self.open_missing_subflows(now);
        placed
    }

    fn find_subflow(&self, path: PathId, segment: &Segment) -> Option<usize> {
        let matches = |s: &Subflow| {
            s.path.id == path && s.remote_port == segment.source_port && s.local_port == segment.destination_port
        };
        self.subflows.iter().position(matches)
    }

    /// The checks for a subflow whose numbers are synchronised. Not inlined, because most segments are predicted.
    #[inline(never)]
    pub(super) fn on_synchronised(&mut self, now: Instant, at: usize, segment: &Segment) -> Option<Placed> {
        let subflow = &self.subflows[at];
        let start = segment.seq.expand(subflow.peer_isn, subflow.receiver.next());
        if segment.flags.contains(Flags::RST) {
            if self.check_reset(now, at, start) {
                self.on_reset(now, at, segment);
            }
            return None;
        }
        if !self.check_sequence(now, at, start, segment) {
            return None;
        }
        if !segment.flags.contains(Flags::ACK) || !self.check_timestamp(now, at, start, segment) {
            return None;
        }
        self.subflows.receiver(at).note_timestamp(start, segment.timestamps);
        let at = self.check_opening(now, at, segment)?;
        if !self.check_acknowledgment(now, at, segment) {
            return None;
        }
        self.check_options(now, at, segment);
        self.take_signals(now, at, segment);
        let acked = segment.ack.expand(self.subflows[at].isn, self.subflows[at].sender.acked());
        self.take_acknowledgment(now, at, acked, segment);
        self.take_data_acknowledgment(now, at, segment);
        self.mark_to_expand(at);
        let placed = self.take_payload(now, at, start, segment);
        self.take_end(now, at, start, segment);
        placed
    }

    /// Whether to accept a reset: only with exactly the expected number. One elsewhere in the window gets a challenge
    /// ACK, so that the peer can repeat the reset with the right number; others are dropped (RFC 5961 section 3.2).
    fn check_reset(&mut self, now: Instant, at: usize, start: u64) -> bool {
        let window = self.incoming.edge() - self.incoming.next();
        let subflow = self.subflows.change(at);
        let next = subflow.receiver.next();
        if start != next && (next..=next + window).contains(&start) {
            subflow.challenge(now);
        }
        start == next
    }

    /// First check: the sequence number. A segment outside every window is acknowledged but not accepted. The rate of
    /// these answers is limited (RFC 5961 section 7), like that of the answers to old segments without data (Linux
    /// `tcp_oow_rate_limited`): two ends that disagree would answer each other for ever, and a stranger could make this
    /// end send. Old data is answered each time: its sender needs the report of the duplicate.
    fn check_sequence(&mut self, now: Instant, at: usize, start: u64, segment: &Segment) -> bool {
        let subflow = self.subflows.change(at);
        let next = subflow.receiver.next();
        if segment.flags.contains(Flags::SYN) {
            // A retransmitted SYN or SYN/ACK: our answer to it was lost.
            match subflow.state {
                State::SynReceived | State::JoinSent => subflow.retransmit_handshake(),
                _ => subflow.challenge(now),
            }
            return false;
        }
        // A start before the initial number is a huge offset here.
        if !(start <= next + MAX_WINDOW && start + MAX_WINDOW >= next) {
            subflow.challenge(now);
            return false;
        }
        if segment.sequence_len() == 0 && start < next {
            // A window probe, or an old segment: the acknowledgment resynchronises the peer in either case.
            subflow.challenge(now);
        }
        true
    }

    /// Protection against wrapped sequence numbers (PAWS, RFC 7323 section 5): where timestamps were agreed on, a
    /// segment with an older one than the latest in order is answered but not accepted, nor is one without any. RST and
    /// SYN are handled before.
    fn check_timestamp(&mut self, now: Instant, at: usize, start: u64, segment: &Segment) -> bool {
        let subflow = self.subflows.change(at);
        if !subflow.peer().timestamps {
            return true;
        }
        // ADD_ADDR may leave no room for timestamps.
        let announces = || segment.mptcp.iter().any(|option| matches!(option, MptcpOption::AddAddress { .. }));
        let accepted = match segment.timestamps {
            Some(t) if subflow.receiver.is_recent(t) => true,
            // After so long a pause the peer's clock may have wrapped (section 5.5).
            Some(t) if now.since(subflow.last_ack_at) > TIMESTAMP_LIFETIME || subflow.receiver.lacks_timestamp() => {
                subflow.receiver.replace_timestamp(t);
                true
            }
            Some(_) => false,
            None => segment.payload_len == 0 && announces(),
        };
        if !accepted {
            self.answer_untimely(now, at, start, segment);
        }
        accepted
    }

    /// Answers a segment that is not accepted for its timestamp. Data that arrived before was sent again and is late:
    /// the answer says so by a duplicate SACK, as Linux's (`tcp_send_dupack`).
    fn answer_untimely(&mut self, now: Instant, at: usize, start: u64, segment: &Segment) {
        let subflow = self.subflows.change(at);
        let (next, end) = (subflow.receiver.next(), start + u64::from(segment.payload_len));
        if segment.payload_len > 0 && start < next {
            subflow.receiver.on_duplicate_data(now, start, end.min(next));
        } else if segment.payload_len > 0 {
            subflow.receiver.acknowledge_now();
        } else {
            subflow.challenge(now);
        }
    }

    /// An acknowledgment of data that was never sent, or of data older than every window, is not accepted but answered
    /// (RFC 9293 section 3.10.7.4, fifth check; RFC 5961 section 5.2).
    fn check_acknowledgment(&mut self, now: Instant, at: usize, segment: &Segment) -> bool {
        let subflow = self.subflows.change(at);
        let acked = segment.ack.expand(subflow.isn, subflow.sender.acked());
        let sane = acked <= subflow.sender.next() && acked + MAX_WINDOW >= subflow.sender.acked();
        if !sane {
            subflow.challenge(now);
        }
        sane
    }

    /// A Multipath TCP server puts DSS on its first segment. Without it, the options were removed on the path: the
    /// connection is plain TCP (RFC 8684 section 3.7).
    fn check_options(&mut self, now: Instant, at: usize, segment: &Segment) {
        let silent = segment.dss.is_none() && segment.mptcp.is_empty();
        if silent && !self.confirmed() && self.mode() == Mode::Multipath && self.subflows.len() == 1 && at == 0 {
            self.fall_back(now, FallbackReason::OptionsStripped);
        }
    }

    fn on_reset(&mut self, now: Instant, at: usize, segment: &Segment) {
        let fast_close = segment
            .mptcp
            .iter()
            .any(|o| matches!(o, MptcpOption::FastClose { receiver_key } if *receiver_key == self.local_key.value));
        if fast_close {
            self.subflows.iter_mut().for_each(|s| s.state = State::Closed(CloseReason::ResetByPeer));
            self.end_aborted(now);
            return;
        }
        self.subflows.change(at).state = State::Closed(CloseReason::ResetByPeer);
    }

    /// Processes MPTCP options that do not depend on the payload.
    fn take_signals(&mut self, now: Instant, at: usize, segment: &Segment) {
        for option in &segment.mptcp {
            match option {
                MptcpOption::Priority { backup } => self.on_priority(now, at, *backup),
                MptcpOption::RemoveAddress(ids) => self.on_addresses_removed(ids.as_slice()),
                MptcpOption::AddAddress { .. } => self.on_address_announced(now, at, option),
                // The fourth segment of the join was lost (RFC 8684 section 3.2).
                MptcpOption::JoinAck { .. } => self.subflows.change(at).receiver.acknowledge_now(),
                MptcpOption::FastClose { receiver_key } if *receiver_key == self.local_key.value => {
                    self.abort_all(now);
                    return;
                }
                MptcpOption::Fail { dsn } if self.mode() == Mode::Multipath => self.on_peer_failed(now, at, *dsn),
                _ => {}
            }
        }
    }

    fn on_priority(&mut self, now: Instant, at: usize, backup: bool) {
        let subflow = self.subflows.change(at);
        if subflow.backup_there != backup {
            subflow.backup_there = backup;
            let event = TransportEvent::PriorityChanged { subflow: subflow.id, backup, by_peer: true };
            self.log.emit(now, event);
        }
    }

    /// Processes the subflow-level acknowledgment of everything before the offset `acked`.
    pub(super) fn take_acknowledgment(&mut self, now: Instant, at: usize, acked: u64, segment: &Segment) {
        let sender = &self.subflows[at].sender;
        let predictable = segment.sack.is_empty() && !is_off();
        if predictable && sender.is_quiet(acked) {
            self.subflows.answered(at).sender.on_quiet_ack();
            self.note_answer(now, at, false);
        } else if predictable && sender.is_plain(acked) {
            let (subflow, views) = self.subflows.with_views(at);
            subflow.sender.on_plain_ack(now, acked, Siblings::new(views, at));
            self.note_answer(now, at, true);
        } else {
            self.process_acknowledgment(now, at, acked, segment);
        }
        if self.mode() == Mode::Plain && acked <= self.subflows[at].sender.next() {
            self.take_plain_window(at, acked, segment);
            self.on_plain_ack(now, at, acked);
        }
    }

    /// The same for one that is not plain. Not inlined, because most are.
    #[inline(never)]
    fn process_acknowledgment(&mut self, now: Instant, at: usize, acked: u64, segment: &Segment) {
        let (subflow, views) = self.subflows.with_views(at);
        let (isn, acked_before, next) = (subflow.isn, subflow.sender.acked(), subflow.sender.next());
        let runs = sack_runs(&segment.sack, |seq| seq.expand(isn, acked_before), acked, next);
        let more_than_ack = segment.payload_len > 0 || segment.flags.contains(Flags::FIN);
        let acknowledgment = Acknowledgment {
            acked,
            blocks: &runs.blocks[..runs.count],
            duplicate: runs.duplicate,
            echo: segment.timestamps.map(|t| t.echo),
            more_than_ack,
        };
        let outcome = subflow.sender.on_ack(now, &acknowledgment, Siblings::new(views, at));
        self.note_answer(now, at, outcome.advanced);
        self.report(now, at, &outcome);
    }

    /// The subflow answered, and may have `advanced`: it works.
    #[inline]
    fn note_answer(&mut self, now: Instant, at: usize, advanced: bool) {
        let subflow = self.subflows.answered(at);
        subflow.last_ack_at = now;
        let upstream = self.config.transport.failover == Failover::Upstream;
        if advanced || upstream {
            // Upstream Linux looks for silence when the connection's timer fires, and so for its end (`check_silence`).
            if !upstream || subflow.potentially_failed {
                subflow.recover();
            }
            self.forecasting.answered(now, subflow, &mut self.outgoing);
        } else if subflow.potentially_failed {
            self.on_sign_of_life(now, at);
        }
    }

    pub(super) fn report(&mut self, now: Instant, at: usize, outcome: &AckOutcome) {
        let subflow = self.subflows[at].id;
        if let Some(cut) = outcome.reduced {
            let (from, to) = (cut.from.as_f64(), cut.to.as_f64());
            self.log.emit(now, TransportEvent::WindowReduced { subflow, cause: cut.cause, from, to });
            debug_assert!(cut.cause != LossCause::Penalty, "penalties are reported where they are imposed");
        }
        if outcome.undone {
            self.log.emit(now, TransportEvent::ReductionUndone { subflow });
        }
        if outcome.suspicious {
            self.hand_over(at, CopyCause::BlackHole);
        }
        if let Some(change) = outcome.size {
            self.resize(now, at, change);
        }
        if outcome.false_claim {
            self.reject_claims(at);
        }
    }

    /// Without MPTCP the subflow's acknowledgment is the connection's. Offset 1 is the first byte.
    fn on_plain_ack(&mut self, now: Instant, at: usize, acked: u64) {
        let bytes = acked.saturating_sub(1);
        if self.outgoing.on_ack(bytes) {
            self.on_progress(now);
        }
        let subflow = &self.subflows[at];
        if subflow.control_segments.fin_sent() && acked == subflow.sender.next() {
            self.outgoing.on_ack(self.outgoing.end() + 1);
        }
    }

    /// Without MPTCP the window counts from the subflow's acknowledgment. That of data may count one number for the
    /// FIN.
    fn take_plain_window(&mut self, at: usize, acked: u64, segment: &Segment) {
        if self.update_window(at, acked, segment) {
            let acked = acked.saturating_sub(1).min(self.outgoing.next);
            self.outgoing.on_plain_window(acked, self.subflows[at].peer_window.bytes());
        }
    }

    /// Updates the subflow's window from a segment that acknowledges its bytes before the offset `acked`. Returns
    /// whether the segment counts.
    fn update_window(&mut self, at: usize, acked: u64, segment: &Segment) -> bool {
        let window = self.window_of(at, segment);
        let subflow = &self.subflows[at];
        let seq = segment.seq.expand(subflow.peer_isn, subflow.receiver.next());
        self.subflows.peer_window(at).update(seq, acked, window)
    }

    /// The window of a segment. The window of a SYN is not scaled (RFC 7323 section 2.2); the handshake takes it.
    pub(super) fn window_of(&self, at: usize, segment: &Segment) -> u64 {
        u64::from(segment.window) << self.subflows[at].peer().window_scale
    }

    /// Processes DATA_ACK and the shared window, which counts from it. Where subflows have windows of their own, every
    /// acknowledgment updates that of its subflow.
    pub(super) fn take_data_acknowledgment(&mut self, now: Instant, at: usize, segment: &Segment) {
        if self.mode() != Mode::Multipath {
            return;
        }
        let window = if self.config.transport.subflow_windows {
            let acked = segment.ack.expand(self.subflows[at].isn, self.subflows[at].sender.acked());
            self.update_window(at, acked, segment);
            self.subflows[at].peer_window.bytes()
        } else {
            self.window_of(at, segment)
        };
        let Some(ack) = segment.dss.and_then(|dss| dss.data_ack) else { return };
        if !self.confirmed() {
            self.confirm(now);
        }
        let offset = self.own_offset(ack);
        // The window of an acknowledgment of data that was never sent is ignored, too.
        if offset > self.outgoing.sent_end() {
            return;
        }
        if self.outgoing.on_ack(offset) {
            self.on_progress(now);
        }
        self.outgoing.on_window(offset.min(self.outgoing.next) + window);
    }

    /// The offset in our stream for one of our data sequence numbers.
    fn own_offset(&self, number: DataSeq) -> u64 {
        expand(number, self.local_key.idsn.wrapping_add(1), self.outgoing.unacked())
    }

    /// The subflow that sent this segment of ours, and where its payload begins in the stream, if it has any; none if
    /// there is no such subflow any more.
    pub fn origin_of(&self, path: PathId, segment: &Segment) -> Option<(SubflowId, Option<u64>)> {
        let subflow = self.subflow_with(path, segment.source_port, segment.destination_port)?;
        let mapping = segment.dss.and_then(|dss| dss.mapping);
        let offset = match mapping.filter(|_| self.mode() == Mode::Multipath) {
            Some(mapping) => self.own_offset(mapping.dsn),
            // Offset 1 is the first byte, of the stream as well: of plain TCP, and of the first segment of Multipath
            // TCP, which has the keys.
            None => segment.seq.expand(subflow.isn, subflow.sender.next()).saturating_sub(1),
        };
        Some((subflow.id, (segment.payload_len > 0).then_some(offset)))
    }

    /// The offset in the peer's stream for one of the peer's data sequence numbers.
    pub(super) fn peer_offset(&self, number: DataSeq) -> u64 {
        let idsn = self.remote_key.map_or(0, |key| key.idsn);
        expand(number, idsn.wrapping_add(1), self.incoming.next())
    }

    fn take_payload(&mut self, now: Instant, at: usize, start: u64, segment: &Segment) -> Option<Placed> {
        if segment.payload_len == 0 {
            if let Some(t) = segment.timestamps {
                self.subflows.receiver(at).skip_echo(t.echo);
            }
            return None;
        }
        let end = start + u64::from(segment.payload_len);
        let expected = self.subflows[at].receiver.next();
        if end <= expected {
            self.subflows.change(at).receiver.on_duplicate_data(now, start, end);
            return None;
        }
        let (stream_offset, mapped) = match self.locate(now, at, start, segment) {
            Ok(found) => found,
            Err(BadMapping::Missing) if start > expected => {
                // The segment with the mapping may be missing; this segment will be retransmitted.
                self.subflows.change(at).receiver.acknowledge_now();
                return None;
            }
            Err(reason) => {
                self.on_bad_mapping(now, at, reason);
                self.locate(now, at, start, segment).ok().filter(|_| self.mode() == Mode::Plain)?
            }
        };
        let end = end.min(start + mapped);
        // Bytes beyond the window are not acknowledged: the peer has to send them again.
        let lasting = self.config.transport.subflow_windows && self.mode() == Mode::Multipath;
        let limit = if lasting { self.incoming.reach() } else { self.incoming.edge() };
        if stream_offset.saturating_add(end - start) > limit {
            self.subflows.change(at).receiver.acknowledge_now();
            return None;
        }
        let rtt = self.note_arrival(now, at, segment, start <= expected);
        let window = self.incoming.window(self.subflows[at].receiver.own_window());
        let new = self.subflows.receiver(at).on_data(now, start, end, stream_offset, rtt, window);
        // Bytes that the stream has already are not placed again. Linux probes a window of zero with the previous data
        // sequence number and an arbitrary byte (`mptcp_sendmsg_frag`), so a retransmission need not have the same
        // content.
        let known = expected.saturating_sub(start).max(self.incoming.next().saturating_sub(stream_offset));
        self.drain_subflow(now, at, stream_offset);
        self.answer_arrival(at);
        (new && known < end - start).then(|| Placed {
            stream_offset: stream_offset + known,
            payload_start: known as u32,
            len: (end - start - known) as u32,
        })
    }

    /// New data arrived: measures the round trip as a receiver sees it, opens the window, and adapts the delay of
    /// acknowledgments. Returns the sender's round trip.
    pub(super) fn note_arrival(&mut self, now: Instant, at: usize, segment: &Segment, in_order: bool) -> Duration {
        let subflow = &self.subflows[at];
        let (rtt, variance) = (subflow.sender.rtt().srtt(), subflow.sender.rtt().variance_term());
        let segment_len = subflow.payload_room(TIMESTAMPS_LEN);
        let mode = self.mode();
        let receiver = self.subflows.receiver(at);
        if let Some(t) = segment.timestamps {
            receiver.measure(now, t.echo, segment.payload_len);
        }
        let widened = receiver.widen(segment.payload_len, segment_len, in_order);
        if mode == Mode::Plain {
            self.incoming.set_share(receiver.share());
        }
        let incoming = &self.incoming;
        let window = |own| incoming.window(own);
        receiver.adapt_delay(now, segment.payload_len, (rtt, variance), window, widened);
        receiver.note_push(segment.flags.contains(Flags::PSH), segment.payload_len);
        rtt
    }

    /// Data arrived and is where it belongs. A second packet is answered at once if its window is no smaller than the
    /// last one, or if the application has nothing to read; otherwise once it has read, so that the acknowledgment has
    /// the room (Linux's `__tcp_ack_snd_check` and `subflow_data_ready`).
    #[inline(always)]
    pub(super) fn answer_arrival(&mut self, at: usize) {
        let receiver = &self.subflows[at].receiver;
        if receiver.owes_for_second() {
            let keeps_window = self.incoming.allows(receiver.own_window(), receiver.advertised());
            if keeps_window || self.incoming.readable() == 0 {
                self.subflows.receiver(at).acknowledge_now();
            }
        }
        if self.subflows[at].receiver.acknowledges_at_once() {
            self.waits.answers_on = Some(at);
        }
    }

    /// Where the payload that starts at the subflow's `start` belongs in the stream, and how many bytes from there are
    /// mapped.
    fn locate(&mut self, now: Instant, at: usize, start: u64, segment: &Segment) -> Result<(u64, u64), BadMapping> {
        if self.mode() != Mode::Multipath {
            return Ok((start.wrapping_sub(1), u64::from(segment.payload_len)));
        }
        if let Some(mapping) = segment.dss.and_then(|dss| dss.mapping) {
            if mapping.len == 0 {
                return self.accept_infinite_mapping(now, at, start, segment);
            }
            self.learn_mapping(at, start, segment, mapping)?;
        } else if let Some(len) = capable_data_len(segment) {
            let first = KnownMapping { start: 1, end: 1 + u64::from(len), stream_offset: 0 };
            self.subflows.change(at).learn(first).map_err(|()| BadMapping::Wrong)?;
        }
        self.subflows[at].mapped(start).ok_or(BadMapping::Missing)
    }

    fn learn_mapping(&mut self, at: usize, start: u64, segment: &Segment, mapping: Mapping) -> Result<(), BadMapping> {
        let end_of_data = u64::from(segment.dss.is_some_and(|dss| dss.data_fin));
        let len = u64::from(mapping.len).checked_sub(end_of_data).ok_or(BadMapping::Wrong)?;
        let stream_offset = self.peer_offset(mapping.dsn);
        let near = anabranch_units::SeqNumber(mapping.subflow_offset);
        let map_start = near.expand(anabranch_units::SeqNumber(0), start);
        // Offset 0 is the SYN's.
        let covers = |end: &u64| map_start > 0 && (map_start..*end).contains(&start);
        let map_end = map_start.checked_add(len).filter(covers);
        let end = map_end.ok_or(BadMapping::Wrong)?;
        self.subflows
            .change(at)
            .learn(KnownMapping { start: map_start, end, stream_offset })
            .map_err(|()| BadMapping::Wrong)
    }

    /// Moves the subflow's data that is in order to the connection; what arrived last is at this offset of the stream.
    fn drain_subflow(&mut self, now: Instant, at: usize, offset: u64) {
        let mut held: u64 = self.subflows.iter().map(|s| s.receiver.ahead()).sum();
        let (subflow, incoming, log) = (self.subflows.change(at), &mut self.incoming, &mut self.log);
        let mut popped = false;
        loop {
            let before = subflow.receiver.ahead();
            let Some(piece) = subflow.receiver.pop() else { break };
            // From here on the connection holds it, and counts it itself.
            held -= before - subflow.receiver.ahead();
            incoming.on_bytes(now, piece, subflow.id, held, log);
            popped = true;
        }
        if !popped && held > 0 {
            let (subflow, buffered) = (subflow.id, held + incoming.held_ahead());
            log.emit(now, TransportEvent::OutOfOrder { subflow, offset, buffered });
        }
    }

    /// Processes the FIN of the subflow, or DATA_FIN.
    fn take_end(&mut self, now: Instant, at: usize, start: u64, segment: &Segment) {
        if self.mode() == Mode::Multipath
            && let Some(Dss { mapping, data_fin: true, .. }) = segment.dss
        {
            self.take_data_fin(at, mapping);
        }
        if segment.flags.contains(Flags::FIN) {
            let fin_at = start + u64::from(segment.payload_len);
            self.subflows.change(at).receiver.on_fin(fin_at);
            if self.mode() == Mode::Plain {
                self.incoming.on_end(fin_at.saturating_sub(1));
            }
        }
        self.answer_subflow_end(at);
        self.close_when_done(now);
    }

    /// The peer closes a subflow but not the connection: this end closes it too, and its data moves to other subflows.
    fn answer_subflow_end(&mut self, at: usize) {
        let mode = self.mode();
        let subflow = self.subflows.change(at);
        if mode == Mode::Multipath && subflow.receiver.finished() && !subflow.control_segments.is_closing() {
            subflow.control_segments.close();
            self.reinject_queue(at, CopyCause::Closed);
        }
    }

    fn take_data_fin(&mut self, at: usize, mapping: Option<Mapping>) {
        if let Some(mapping) = mapping
            && mapping.len > 0
        {
            let first = self.peer_offset(mapping.dsn);
            self.incoming.on_end(first.saturating_add(u64::from(mapping.len) - 1));
        }
        self.subflows.change(at).receiver.acknowledge_now();
    }
}

fn capable_data_len(segment: &Segment) -> Option<u16> {
    segment.mptcp.iter().find_map(|option| match option {
        MptcpOption::Capable { data_len, .. } => *data_len,
        _ => None,
    })
}
