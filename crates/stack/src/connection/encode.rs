//! Builds the chosen segment and records the transmission.

use super::{Connection, Mode, Transmit};
use crate::scheduler::Sent;
use crate::subflow::{Chunk, Opening, State, Subflow};
use anabranch_events::{CloseReason, SendKind, TransportEvent};
use anabranch_segment::{
    CapableFlags, DataSeq, Dss, Flags, MAX_OPTIONS_LEN, Mapping, MptcpOption, SackBlock, SackBlocks, Segment,
    SynOptions, Timestamps,
};
use anabranch_units::{Bandwidth, Duration, Instant};

const CAPABLE_FLAGS: CapableFlags =
    CapableFlags { checksum_required: false, deny_join_initial: false, hmac_sha256: true };

impl Connection {
    fn transmission(&self, at: usize, segment: Segment, stream_offset: u64) -> Transmit {
        Transmit { path: self.subflows[at].path.id, segment, stream_offset }
    }

    /// A segment of the subflow with its ports, numbers and window, but no options. Inlined, so that it is built where
    /// it is kept.
    #[inline(always)]
    fn bare(&mut self, at: usize, flags: Flags, offset: u64) -> Segment {
        let scaled = !flags.contains(Flags::SYN) && self.subflows[at].peer().scales_windows;
        let scale = if scaled { self.incoming.window_scale() } else { 0 };
        let own = self.subflows[at].receiver.own_window();
        let window = self.incoming.advertise(own, scale);
        if self.subflows[at].receiver.is_quick() && self.incoming.is_half_full(own) {
            self.subflows.receiver(at).end_quick_acks();
        }
        let subflow = &self.subflows[at];
        Segment {
            source_port: subflow.local_port,
            destination_port: subflow.remote_port,
            seq: subflow.isn.at(offset),
            ack: subflow.peer_isn.at(subflow.receiver.next()),
            window,
            ..Segment::new(flags)
        }
    }

    // Handshakes.

    pub(super) fn encode_handshake(&mut self, now: Instant, at: usize) -> Transmit {
        let segment = match self.subflows[at].state {
            State::SynSent => {
                self.doubt_capable(now, at);
                self.syn(now, at)
            }
            State::SynReceived => self.syn_ack(now, at),
            _ => {
                let proof = self.join_proof(at);
                let next = self.subflows[at].sender.next();
                let mut segment = self.bare(at, Flags::ACK, next);
                segment.timestamps = self.timestamps(now, at);
                segment.mptcp.push(MptcpOption::JoinAck { hmac: proof });
                segment
            }
        };
        self.subflows.change(at).on_handshake_sent(now);
        self.transmission(at, segment, 0)
    }

    fn syn(&mut self, now: Instant, at: usize) -> Segment {
        let mut segment = self.bare(at, Flags::SYN, 0);
        segment.ack = anabranch_units::SeqNumber(0);
        segment.syn = Some(self.syn_options(at, true, true));
        let clock = crate::subflow::timestamp(now);
        segment.timestamps = self.config.transport.timestamps.then_some(Timestamps { value: clock, echo: 0 });
        let subflow = &self.subflows[at];
        let option = match subflow.opening {
            Opening::Initial if self.mode() == Mode::Negotiating => Some(capable(None, None, None)),
            Opening::Initial => None,
            Opening::Join { local_nonce, .. } => Some(MptcpOption::JoinSyn {
                backup: subflow.backup_here,
                address_id: subflow.local_address_id,
                token: self.remote_key.map_or(0, |key| key.token),
                nonce: local_nonce,
            }),
        };
        segment.mptcp.extend(option);
        segment
    }

    fn syn_ack(&mut self, now: Instant, at: usize) -> Segment {
        let mut segment = self.bare(at, Flags::SYN | Flags::ACK, 0);
        // Only options that the peer offered are accepted.
        let peer = self.subflows[at].peer();
        segment.syn = Some(self.syn_options(at, peer.scales_windows, peer.sack));
        segment.timestamps = self.timestamps(now, at);
        let subflow = &self.subflows[at];
        let option = match subflow.opening {
            Opening::Initial if self.mode() == Mode::Plain => None,
            Opening::Initial => Some(capable(Some(self.local_key.value), None, None)),
            Opening::Join { local_nonce, remote_nonce } => Some(MptcpOption::JoinSynAck {
                backup: subflow.backup_here,
                address_id: subflow.local_address_id,
                hmac: self.short_join_proof(local_nonce, remote_nonce),
                nonce: local_nonce,
            }),
        };
        segment.mptcp.extend(option);
        segment
    }

    fn syn_options(&self, at: usize, scale: bool, sack: bool) -> SynOptions {
        SynOptions {
            mss: u16::try_from(self.subflows[at].path.mss()).unwrap_or(u16::MAX),
            window_scale: scale.then(|| self.incoming.window_scale()),
            sack_permitted: sack,
        }
    }

    fn timestamps(&self, now: Instant, at: usize) -> Option<Timestamps> {
        let subflow = &self.subflows[at];
        subflow.peer().timestamps.then(|| subflow.receiver.timestamps(now))
    }

    // Data.

    /// New bytes on a subflow take its next sequence numbers and are recorded until they are acknowledged.
    pub(super) fn encode_data(&mut self, now: Instant, at: usize, chunk: Chunk) -> Transmit {
        let start = self.subflows[at].sender.next();
        let mut segment = self.bare(at, Flags::ACK, start);
        self.fill_data(now, at, &mut segment, start, chunk.stream_offset, chunk.len as u32);
        let last = self.outgoing.unsent() == 0 && self.subflows[at].queue.is_empty();
        // The event has the estimates with which the scheduler chose.
        self.note_sent(now, at, chunk.kind, chunk.stream_offset, chunk.len as u32);
        let ends_burst = self.subflows.send(at, |subflow| {
            subflow.sender.on_sent(now, chunk.stream_offset, chunk.len as u32, false);
            subflow.sent_in_burst = true;
            subflow.sender.burst_ended() || subflow.sender.tries_larger(start)
        });
        if self.subflows[at].sender.record_ended() {
            self.expand_send_buffer(at);
        }
        // Linux sets PSH at the end of its data and of every burst for segmentation offload. A segment that tries a
        // larger size travels alone, or a router would drop those behind it in the same burst with it.
        if last || ends_burst {
            segment.flags = segment.flags | Flags::PSH;
        }
        self.transmission(at, segment, chunk.stream_offset)
    }

    /// A retransmission of the packet at `position`, with the same sequence numbers and the same mapping.
    pub(super) fn encode_retransmission(&mut self, now: Instant, at: usize, position: u64, kind: SendKind) -> Transmit {
        let record = self.subflows[at].sender.board().get(position).copied();
        let record = record.expect("what is chosen to be retransmitted was not acknowledged");
        let flags = if record.fin { Flags::ACK | Flags::FIN } else { Flags::ACK };
        let mut segment = self.bare(at, flags, record.start);
        self.fill_data(now, at, &mut segment, record.start, record.stream_offset, record.len);
        if kind == SendKind::New {
            // It was withheld until now, and noted before.
            let subflow = self.subflows.change(at);
            subflow.sender.withholding.on_sent(record.start);
            subflow.sent_in_burst = true;
            return self.transmission(at, segment, record.stream_offset);
        }
        if record.len > 0 {
            self.note_sent(now, at, kind, record.stream_offset, record.len);
        }
        let subflow = self.subflows.change(at);
        subflow.sender.on_retransmitted(now, position, record.len);
        subflow.sent_in_burst = true;
        self.transmission(at, segment, record.stream_offset)
    }

    /// The first bytes of the packet at `position` once more, while the packet itself may be in flight.
    pub(super) fn encode_sample(&mut self, now: Instant, at: usize, position: u64, len: u32) -> Transmit {
        let record = self.subflows[at].sender.board().get(position).copied();
        let record = record.expect("what is chosen to be sampled was not acknowledged");
        let mut segment = self.bare(at, Flags::ACK, record.start);
        self.fill_data(now, at, &mut segment, record.start, record.stream_offset, len);
        self.note_sent(now, at, SendKind::Retransmission, record.stream_offset, len);
        let subflow = self.subflows.change(at);
        subflow.sender.on_sampled(now, len);
        subflow.sent_in_burst = true;
        self.transmission(at, segment, record.stream_offset)
    }

    /// Makes a bare segment carry `len` bytes of the stream from `stream_offset` on, at the subflow's offset `start`;
    /// the acknowledgment fills the remaining option space. Inlined, as each packet with new data needs it.
    #[inline(always)]
    fn fill_data(&mut self, now: Instant, at: usize, segment: &mut Segment, start: u64, stream_offset: u64, len: u32) {
        segment.payload_len = len;
        self.pace_cap.on_sent(now, len);
        segment.timestamps = self.timestamps(now, at);
        if self.mode() == Mode::Multipath {
            if self.repeats_keys(at) && start == 1 && len > 0 {
                segment.mptcp.push(self.keys(Some(len as u16)));
            } else {
                segment.dss = Some(self.dss(start, stream_offset, len));
            }
        } else if let Some(from) = self.subflows[at].infinite_from.filter(|from| start <= *from && len > 0) {
            // Data keeps its first mapping.
            let mapped = if start == from { 0 } else { len };
            let mut dss = self.dss(start, stream_offset, len);
            dss.mapping = dss.mapping.map(|mapping| Mapping { len: mapped as u16, ..mapping });
            segment.dss = Some(dss);
        }
        let room = self.subflows[at].payload_room(0).saturating_sub(len);
        self.fill_acknowledgment(now, at, segment, room.min(MAX_OPTIONS_LEN));
    }

    fn dss(&self, start: u64, stream_offset: u64, len: u32) -> Dss {
        let mapping = (len > 0).then(|| Mapping {
            dsn: self.own_number(stream_offset),
            subflow_offset: start as u32,
            len: len as u16,
            checksum: None,
        });
        Dss { data_ack: Some(self.peer_number()), mapping, data_fin: false }
    }

    /// The data sequence number of our stream's byte at `offset`.
    fn own_number(&self, offset: u64) -> DataSeq {
        self.number(self.local_key.idsn.wrapping_add(1).wrapping_add(offset))
    }

    /// The next data sequence number expected from the peer.
    fn peer_number(&self) -> DataSeq {
        let idsn = self.remote_key.map_or(0, |key| key.idsn);
        self.number(idsn.wrapping_add(1).wrapping_add(self.incoming.acknowledged()))
    }

    fn number(&self, value: u64) -> DataSeq {
        let wide = self.config.transport.wide_data_seq;
        DataSeq { value: if wide { value } else { value & 0xffff_ffff }, wide }
    }

    fn repeats_keys(&self, at: usize) -> bool {
        self.subflows.options().repeats_keys(&self.subflows[at])
    }

    fn keys(&self, data_len: Option<u16>) -> MptcpOption {
        capable(Some(self.local_key.value), self.remote_key.map(|key| key.value), data_len)
    }

    /// Records a segment with data, and emits its events. Inlined, as each packet with data needs it.
    #[inline(always)]
    fn note_sent(&mut self, now: Instant, at: usize, kind: SendKind, offset: u64, bytes: u32) {
        let subflow = self.subflows[at].id;
        self.log.emit(now, TransportEvent::SegmentSent { subflow, kind, bytes, offset });
        if self.forecasting.services.sending {
            self.scheduler.on_sent(&Sent { at: now, offset, bytes, kind }, &self.subflows.views()[at]);
        }
        let new = kind == SendKind::New;
        if self.switches.last != Some(subflow) || (new && self.switches.last_new != Some(subflow)) {
            self.note_switch(now, at, new, offset);
        }
    }

    /// The segment's subflow is not that of the last one, or of the last one with `new` data.
    #[inline(never)]
    fn note_switch(&mut self, now: Instant, at: usize, new: bool, offset: u64) {
        let subflow = self.subflows[at].id;
        let from_any = self.switches.last.replace(subflow).filter(|last| *last != subflow);
        let from_new = if new { self.switches.last_new.replace(subflow).filter(|last| *last != subflow) } else { None };
        let Some(from) = from_any.or(from_new) else { return };
        let options = self.subflows.options();
        let estimate = |s: &Subflow| (s.sender.rtt().srtt(), s.window_rate(options.full_payload(s)));
        let (rtt_to, rate_to) = estimate(&self.subflows[at]);
        // The earlier one may be closed.
        let earlier = self.subflows.iter().find(|subflow| subflow.id == from);
        let (rtt_from, rate_from) = earlier.map_or((Duration::ZERO, 0.0), estimate);
        let event = TransportEvent::PathSwitched {
            from,
            to: subflow,
            any: from_any.is_some(),
            new_data: from_new.is_some(),
            offset,
            rtt_from,
            rtt_to,
            rate_from: Bandwidth::from_bps((rate_from * 8.0) as u64),
            rate_to: Bandwidth::from_bps((rate_to * 8.0) as u64),
        };
        self.log.emit(now, event);
    }

    // Ends and acknowledgments.

    /// DATA_FIN, which takes no sequence number of the subflow.
    pub(super) fn encode_end(&mut self, now: Instant, at: usize) -> Transmit {
        let next = self.subflows[at].sender.next();
        let mut segment = self.bare_acknowledgment(now, at, next);
        let mapping = Mapping { dsn: self.own_number(self.outgoing.end()), subflow_offset: 0, len: 1, checksum: None };
        segment.dss = Some(Dss { data_ack: Some(self.peer_number()), mapping: Some(mapping), data_fin: true });
        self.fill_acknowledgment(now, at, &mut segment, MAX_OPTIONS_LEN);
        self.transmission(at, segment, 0)
    }

    /// The subflow's FIN, which takes one sequence number: like data, it is recorded until it is acknowledged.
    pub(super) fn encode_fin(&mut self, now: Instant, at: usize) -> Transmit {
        let start = self.subflows[at].sender.next();
        let end = self.outgoing.end();
        let mut segment = self.bare(at, Flags::ACK | Flags::FIN, start);
        self.fill_data(now, at, &mut segment, start, end, 0);
        let subflow = self.subflows.change(at);
        subflow.sender.on_sent(now, end, 0, true);
        subflow.control_segments.on_fin_sent();
        self.transmission(at, segment, 0)
    }

    pub(super) fn encode_reset(&mut self, now: Instant, at: usize) -> Transmit {
        // After the SYN in any case, or the peer would not accept it.
        let next = self.subflows[at].sender.next().max(1);
        let mut segment = self.bare(at, Flags::RST | Flags::ACK, next);
        segment.timestamps = self.timestamps(now, at);
        let subflow = self.subflows.change(at);
        let reason = subflow.control_segments.take_reset().unwrap_or(anabranch_segment::ResetReason::Unspecified);
        subflow.state = State::Closed(if self.closed { CloseReason::Aborted } else { CloseReason::ProtocolError });
        if self.mode() == Mode::Multipath {
            if self.closed
                && let Some(key) = self.remote_key
            {
                segment.mptcp.push(MptcpOption::FastClose { receiver_key: key.value });
            }
            segment.mptcp.push(MptcpOption::Reset { transient: false, reason });
        }
        let transmit = self.transmission(at, segment, 0);
        self.remove_dead(now);
        transmit
    }

    /// A segment with an old number.
    pub(super) fn encode_window_probe(&mut self, now: Instant, at: usize) -> Transmit {
        let old = self.subflows[at].sender.acked().wrapping_sub(1);
        let segment = self.acknowledgment(now, at, old);
        self.transmission(at, segment, 0)
    }

    pub(super) fn encode_acknowledgment(&mut self, now: Instant, at: usize) -> Transmit {
        let segment = self.acknowledgment(now, at, self.subflows[at].sender.next());
        self.transmission(at, segment, 0)
    }

    /// A segment without payload with the number of `offset` and the next option that waits to be sent.
    fn acknowledgment(&mut self, now: Instant, at: usize, offset: u64) -> Segment {
        let mut segment = self.bare_acknowledgment(now, at, offset);
        if !self.subflows[at].control_segments.signals.is_empty()
            && self.may_signal(at)
            && let Some(signal) = self.subflows.change(at).control_segments.signals.pop_front()
        {
            // ADD_ADDR with its HMAC takes the place of all other options (RFC 8684 section 3.4.1).
            if segment.options_len() + signal.encoded_len() > MAX_OPTIONS_LEN {
                segment.dss = None;
            }
            // An IPv6 address with a port leaves no room for timestamps either.
            if segment.options_len() + signal.encoded_len() > MAX_OPTIONS_LEN {
                segment.timestamps = None;
            }
            segment.mptcp.push(signal);
        }
        self.fill_acknowledgment(now, at, &mut segment, MAX_OPTIONS_LEN);
        segment
    }

    /// Whether there is room for further options: the keys leave none.
    pub(super) fn may_signal(&self, at: usize) -> bool {
        !self.repeats_keys(at)
    }

    /// An acknowledgment with only the options of every segment of the subflow.
    fn bare_acknowledgment(&mut self, now: Instant, at: usize, offset: u64) -> Segment {
        let mut segment = self.bare(at, Flags::ACK, offset);
        segment.timestamps = self.timestamps(now, at);
        if self.mode() == Mode::Multipath {
            // Segments after the first imply that the keys were received.
            if self.repeats_keys(at) && self.subflows[at].sender.next() == 1 {
                segment.mptcp.push(self.keys(None));
            } else {
                segment.dss = Some(Dss { data_ack: Some(self.peer_number()), mapping: None, data_fin: false });
            }
        }
        segment
    }

    /// The selective part of the acknowledgment, as far as the option space allows.
    fn fill_acknowledgment(&mut self, now: Instant, at: usize, segment: &mut Segment, room: u32) {
        let subflow = &self.subflows[at];
        let peer_isn = subflow.peer_isn;
        let fitting = if subflow.peer().sack && subflow.receiver.has_blocks() {
            SackBlocks::fitting(room.saturating_sub(segment.options_len()))
        } else {
            0
        };
        let window = self.incoming.advertised();
        let sack = &mut segment.sack;
        let receiver = self.subflows.receiver(at);
        receiver.on_ack_sent(now, window, |start, end| {
            let block = SackBlock { start: peer_isn.at(start), end: peer_isn.at(end) };
            sack.as_slice().len() < fitting && sack.push(block)
        });
        if segment.payload_len > 0 {
            receiver.on_answer(now);
        }
    }
}

fn capable(sender_key: Option<u64>, receiver_key: Option<u64>, data_len: Option<u16>) -> MptcpOption {
    MptcpOption::Capable { version: 1, flags: CAPABLE_FLAGS, sender_key, receiver_key, data_len, checksum: None }
}
