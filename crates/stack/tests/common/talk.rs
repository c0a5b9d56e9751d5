//! A dialogue with one endpoint: the test plays the peer, segment by segment, and reads the endpoint's segments as
//! text. All numbers are relative: offsets on the subflow (0 is the SYN), bytes of the stream from zero.

use super::{Seeded, config};
use anabranch_segment::{
    CapableFlags, DataSeq, Dss, Flags, Mapping, MptcpOption, SackBlock, Segment, SynOptions, Timestamps,
};
use anabranch_stack::connection::{Choice, Entropy, Placed, Protocol};
use anabranch_stack::{Config, Connection};
use anabranch_units::{Duration, Instant, PathId, SeqNumber};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;

pub const OUR_KEY: u64 = 0x0123_4567_89ab_cdef;
pub const PEER_KEY: u64 = 0xfedc_ba98_7654_3210;
/// The peer's first number on each path.
pub const PEER_ISN: [u32; 3] = [7_000, 4_294_967_000, 9_000];
/// The peer's nonce in joins.
pub const PEER_NONCE: u32 = 0x5555;

pub const CAPABLE: CapableFlags =
    CapableFlags { checksum_required: false, deny_join_initial: false, hmac_sha256: true };

/// Returns the numbers of the test first, then seeded numbers.
pub struct Scripted(pub VecDeque<u64>);

impl Scripted {
    pub fn new(numbers: &[u64]) -> Box<Self> {
        Box::new(Scripted(numbers.iter().copied().collect()))
    }
}

impl Entropy for Scripted {
    fn next_u64(&mut self) -> u64 {
        self.0.pop_front().unwrap_or_else(|| Seeded(77).next())
    }
}

pub fn token(key: u64) -> u32 {
    u32::from_be_bytes(Sha256::digest(key.to_be_bytes())[..4].try_into().unwrap())
}

pub fn idsn(key: u64) -> u64 {
    u64::from_be_bytes(Sha256::digest(key.to_be_bytes())[24..].try_into().unwrap())
}

/// HMAC of RFC 8684 section 3.2, computed independently of the endpoint.
pub fn proof(signer: u64, other: u64, message: &[u8]) -> [u8; 32] {
    let key = [signer.to_be_bytes(), other.to_be_bytes()].concat();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(message);
    mac.finalize().into_bytes().into()
}

pub fn join_proof(signer: u64, other: u64, nonces: [u32; 2]) -> [u8; 32] {
    proof(signer, other, &[nonces[0].to_be_bytes(), nonces[1].to_be_bytes()].concat())
}

/// One endpoint and the state of its peer.
pub struct Talk {
    pub end: Connection,
    pub now: u64,
    /// By path: the endpoint's first number, and its port.
    ours: [(SeqNumber, u16); 3],
    /// By path: the peer's port.
    ports: [u16; 3],
    pub timestamps: bool,
    pub wide: bool,
    /// The peer's window field.
    pub window: u16,
    /// The nonce of the endpoint's last join.
    pub nonce: u32,
}

pub fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A segment of the peer, in relative numbers.
#[derive(Clone)]
pub struct PeerSegment {
    segment: Segment,
    seq: u64,
    ack: u64,
    blocks: Vec<(u64, u64)>,
    data_ack: Option<u64>,
    map: Option<(u64, u32, u16)>,
    data_fin: bool,
    echo: Option<u64>,
    clock: Clock,
}

/// The timestamp of a peer's segment.
#[derive(Clone, Copy)]
enum Clock {
    /// The time in milliseconds and one, if timestamps were agreed on.
    Agreed,
    /// None.
    Absent,
    /// This one.
    Reads(u32),
}

/// A segment with an acknowledgment of everything before `ack` at the peer's `seq`.
pub fn peer(seq: u64, ack: u64) -> PeerSegment {
    let segment = Segment::new(Flags::ACK);
    PeerSegment {
        segment,
        seq,
        ack,
        blocks: Vec::new(),
        data_ack: None,
        map: None,
        data_fin: false,
        echo: None,
        clock: Clock::Agreed,
    }
}

impl PeerSegment {
    pub fn flags(mut self, flags: Flags) -> Self {
        self.segment.flags = flags;
        self
    }

    pub fn payload(mut self, len: u32) -> Self {
        self.segment.payload_len = len;
        self
    }

    pub fn data_ack(mut self, offset: u64) -> Self {
        self.data_ack = Some(offset);
        self
    }

    /// A mapping: stream offset, subflow offset, length.
    pub fn map(mut self, stream: u64, subflow: u32, len: u16) -> Self {
        self.map = Some((stream, subflow, len));
        self
    }

    /// Payload at `stream`, mapped.
    pub fn data(self, stream: u64, len: u32) -> Self {
        let subflow = self.seq as u32;
        self.payload(len).map(stream, subflow, len as u16)
    }

    pub fn data_fin(mut self) -> Self {
        self.data_fin = true;
        self
    }

    pub fn sack(mut self, start: u64, end: u64) -> Self {
        self.blocks.push((start, end));
        self
    }

    pub fn option(mut self, option: MptcpOption) -> Self {
        self.segment.mptcp.push(option);
        self
    }

    pub fn echo(mut self, ms: u64) -> Self {
        self.echo = Some(ms);
        self
    }

    /// Its timestamp.
    pub fn stamped(mut self, value: u32) -> Self {
        self.clock = Clock::Reads(value);
        self
    }

    /// It has no timestamp.
    pub fn unstamped(mut self) -> Self {
        self.clock = Clock::Absent;
        self
    }
}

impl Talk {
    /// A client; the numbers are drawn as key, (seed of the control, first number), then for each join nonce, seed,
    /// number.
    pub fn client(config: Config, numbers: &[u64]) -> Self {
        let end = Connection::client(config, Scripted::new(numbers)).unwrap();
        Self::new(end, [80; 3])
    }

    fn new(end: Connection, ports: [u16; 3]) -> Self {
        let ours = [(SeqNumber(0), 0); 3];
        Talk { end, now: 0, ours, ports, timestamps: true, wide: false, window: 65_535, nonce: 0 }
    }

    /// A server that got a SYN with these options on path 0.
    pub fn server(config: Config, numbers: &[u64], options: &[MptcpOption], adapt: impl FnOnce(&mut Segment)) -> Self {
        let mut syn = Segment::new(Flags::SYN);
        (syn.source_port, syn.destination_port, syn.seq) = (5000, 80, SeqNumber(PEER_ISN[0]));
        syn.window = 65_535;
        syn.timestamps = Some(Timestamps { value: 1, echo: 0 });
        syn.syn = Some(peer_syn());
        syn.mptcp = options.iter().cloned().collect();
        adapt(&mut syn);
        let end = Connection::accept(config, Scripted::new(numbers), Instant::ZERO, PathId(0), &syn).unwrap();
        let mut talk = Self::new(end, [5000, 5001, 5002]);
        talk.timestamps = syn.timestamps.is_some();
        talk
    }

    /// Multipath TCP is established as a server on path 0 with 20 ms of round trip at time 20; the first DSS was
    /// received.
    pub fn served(config: Config) -> Self {
        let mut talk = Self::server(config, &[OUR_KEY, 0, 1_000], &[capable(None, None, None)], |_| {});
        talk.emitted();
        talk.wait_until(20);
        let keys = capable(Some(PEER_KEY), Some(OUR_KEY), None);
        // The third segment has the window of the SYN, scaled: 65 536 bytes.
        let window = std::mem::replace(&mut talk.window, 512);
        talk.deliver(0, peer(1, 1).option(keys));
        talk.window = window;
        talk.emitted();
        talk
    }

    /// Multipath TCP is established as a client on path 0 with 20 ms of round trip at time 40, the peer's first DSS
    /// included.
    pub fn connected(config: Config) -> Self {
        let mut talk = Self::client(config, &[OUR_KEY, 0, 1_000, 0x4444, 0, 2_000]);
        talk.emitted();
        talk.wait_until(20);
        talk.syn_ack(0, &[capable(Some(PEER_KEY), None, None)]);
        talk.emitted();
        talk.wait_until(40);
        talk.deliver(0, peer(1, 1).data_ack(0));
        talk
    }

    /// The peer joins on `path`, in the time since the last call, and sees its round trip of 20 ms.
    pub fn join(&mut self, path: usize, address_id: u8) {
        self.join_syn(path, address_id, token(OUR_KEY));
        self.emitted();
        self.wait_until(self.now + 20);
        self.join_ack(path);
        self.emitted();
    }

    /// The third segment of a join.
    pub fn join_ack(&mut self, path: usize) {
        let hmac = join_proof(PEER_KEY, OUR_KEY, [PEER_NONCE, self.nonce])[..20].try_into().unwrap();
        self.deliver(path, peer(1, 1).option(MptcpOption::JoinAck { hmac }));
    }

    pub fn join_syn(&mut self, path: usize, address_id: u8, token: u32) {
        let option = MptcpOption::JoinSyn { backup: false, address_id, token, nonce: PEER_NONCE };
        let mut syn = Segment::new(Flags::SYN);
        (syn.source_port, syn.destination_port, syn.seq) = (self.ports[path], 80, SeqNumber(PEER_ISN[path]));
        syn.syn = Some(peer_syn());
        syn.timestamps = Some(Timestamps { value: 1, echo: 0 });
        syn.mptcp.push(option);
        self.end.handle_segment(at(self.now), PathId(path as u16), &syn);
    }

    /// The peer's SYN/ACK.
    pub fn syn_ack(&mut self, path: usize, options: &[MptcpOption]) {
        self.syn_ack_with(path, options, |_| {});
    }

    pub fn syn_ack_with(&mut self, path: usize, options: &[MptcpOption], adapt: impl FnOnce(&mut Segment)) {
        let mut peer = peer(0, 1).flags(Flags::SYN | Flags::ACK);
        peer.segment.syn = Some(peer_syn());
        peer.segment.mptcp = options.iter().cloned().collect();
        adapt(&mut peer.segment);
        self.deliver(path, peer);
    }

    pub fn wait_until(&mut self, ms: u64) {
        assert!(ms >= self.now);
        self.now = ms;
    }

    pub fn deliver(&mut self, path: usize, peer: PeerSegment) -> Option<Placed> {
        let segment = self.resolve(path, peer);
        self.end.handle_segment(at(self.now), PathId(path as u16), &segment)
    }

    fn resolve(&self, path: usize, peer: PeerSegment) -> Segment {
        let mut segment = peer.segment;
        let (isn, port) = self.ours[path];
        (segment.source_port, segment.destination_port) = (self.ports[path], port);
        segment.seq = SeqNumber(PEER_ISN[path]).at(peer.seq);
        segment.ack = isn.at(peer.ack);
        segment.window = self.window;
        let stamp = |value: u32| Timestamps { value, echo: peer.echo.unwrap_or(self.now) as u32 };
        segment.timestamps = match peer.clock {
            // Its SYN has the first number.
            Clock::Agreed => self.timestamps.then(|| stamp(1 + self.now as u32)),
            Clock::Absent => None,
            Clock::Reads(value) => Some(stamp(value)),
        };
        for (start, end) in peer.blocks {
            segment.sack.push(SackBlock { start: isn.at(start), end: isn.at(end) });
        }
        let number = |key: u64, offset: u64| {
            let value = idsn(key).wrapping_add(1).wrapping_add(offset);
            DataSeq { value: if self.wide { value } else { value & 0xffff_ffff }, wide: self.wide }
        };
        let mapping = peer.map.map(|(stream, subflow, len)| Mapping {
            dsn: number(PEER_KEY, stream),
            subflow_offset: subflow,
            len,
            checksum: None,
        });
        let data_ack = peer.data_ack.map(|offset| number(OUR_KEY, offset));
        if data_ack.is_some() || mapping.is_some() {
            segment.dss = Some(Dss { data_ack, mapping, data_fin: peer.data_fin });
        }
        segment
    }

    /// All segments that the endpoint sends now.
    pub fn emitted_segments(&mut self) -> Vec<(usize, Segment)> {
        let mut emitted = Vec::new();
        while let Some(transmit) = self.end.poll_transmit(at(self.now)) {
            let (path, segment) = (transmit.path.index(), transmit.segment);
            if segment.flags.contains(Flags::SYN) {
                self.ours[path] = (segment.seq, segment.source_port);
                self.note_nonce(&segment);
            }
            emitted.push((path, segment));
            assert!(emitted.len() < 10_000, "it sends for ever");
        }
        emitted
    }

    fn note_nonce(&mut self, segment: &Segment) {
        for option in &segment.mptcp {
            if let MptcpOption::JoinSyn { nonce, .. } | MptcpOption::JoinSynAck { nonce, .. } = option {
                self.nonce = *nonce;
            }
        }
    }

    /// The same as text: see [`Talk::describe`].
    pub fn emitted(&mut self) -> Vec<String> {
        self.emitted_segments().iter().map(|(path, segment)| self.describe(*path, segment)).collect()
    }

    /// Runs the endpoint's timers; no segment is sent before `ms`, and the segments sent then are returned.
    pub fn emitted_at(&mut self, ms: u64) -> Vec<String> {
        loop {
            let due = self.end.poll_timeout().expect("something is waited for");
            assert!(due <= at(ms), "nothing is due at {ms} ms but at {due}");
            self.now = self.now.max(due.as_nanos().div_ceil(1_000_000));
            self.end.handle_timeout(due.max(at(self.now)));
            let emitted = self.emitted();
            if !emitted.is_empty() {
                assert_eq!(self.now, ms, "earlier than expected: {emitted:?}");
                return emitted;
            }
            assert!(self.now < ms, "nothing at {ms} ms");
        }
    }

    /// The endpoint sends nothing until `ms`.
    pub fn sends_nothing_until(&mut self, ms: u64) {
        while let Some(due) = self.end.poll_timeout().filter(|due| *due < at(ms)) {
            self.now = self.now.max(due.as_nanos().div_ceil(1_000_000));
            self.end.handle_timeout(due.max(at(self.now)));
            assert_eq!(self.emitted(), Vec::<String>::new(), "at {} ms", self.now);
        }
        self.now = ms;
    }

    /// `path FLAGS start+len ack N [a-b ...] [stream@subflow+len] data-ack N` and the names of other options.
    pub fn describe(&self, path: usize, segment: &Segment) -> String {
        let (isn, _) = self.ours[path];
        let offset = |seq: SeqNumber, first: SeqNumber| seq.0.wrapping_sub(first.0) as i32;
        // PSH marks the ends of bursts; it has a test of its own.
        let flags = Flags(segment.flags.0 & !Flags::PSH.0);
        let mut text = format!("{path} {flags:?} {}", offset(segment.seq, isn));
        if segment.payload_len > 0 {
            text += &format!("+{}", segment.payload_len);
        }
        let peer_isn = SeqNumber(PEER_ISN[path]);
        if segment.flags.contains(Flags::ACK) {
            text += &format!(" ack {}", offset(segment.ack, peer_isn));
        }
        for block in segment.sack.as_slice() {
            text += &format!(" [{}-{}]", offset(block.start, peer_isn), offset(block.end, peer_isn));
        }
        let number = |n: DataSeq, key: u64| {
            let first = idsn(key).wrapping_add(1);
            if n.wide {
                n.value.wrapping_sub(first) as i64
            } else {
                i64::from((n.value as u32).wrapping_sub(first as u32) as i32)
            }
        };
        if let Some(dss) = segment.dss {
            if let Some(map) = dss.mapping {
                let fin = if dss.data_fin { " fin" } else { "" };
                text += &format!(" {}@{}+{}{fin}", number(map.dsn, OUR_KEY), map.subflow_offset, map.len);
            }
            if let Some(ack) = dss.data_ack {
                text += &format!(" data-ack {}", number(ack, PEER_KEY));
            }
        }
        for option in &segment.mptcp {
            text += &format!(" {}", name(option));
        }
        text
    }
}

fn name(option: &MptcpOption) -> String {
    match option {
        MptcpOption::Capable { sender_key, receiver_key, data_len, .. } => {
            let keys = usize::from(sender_key.is_some()) + usize::from(receiver_key.is_some());
            data_len.map_or(format!("capable({keys})"), |len| format!("capable({keys}, {len})"))
        }
        MptcpOption::JoinSyn { address_id, .. } => format!("join-syn({address_id})"),
        MptcpOption::JoinSynAck { address_id, .. } => format!("join-syn-ack({address_id})"),
        MptcpOption::JoinAck { .. } => "join-ack".into(),
        MptcpOption::AddAddress { echo, address_id, .. } if *echo => format!("add-echo({address_id})"),
        MptcpOption::AddAddress { address_id, address, .. } => format!("add({address_id}, {address})"),
        MptcpOption::RemoveAddress(ids) => format!("remove({:?})", ids.as_slice()),
        MptcpOption::Priority { backup } => format!("prio({backup})"),
        MptcpOption::Fail { .. } => "fail".into(),
        MptcpOption::FastClose { .. } => "fastclose".into(),
        MptcpOption::Reset { reason, .. } => format!("reset({reason:?})"),
    }
}

pub fn peer_syn() -> SynOptions {
    SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true }
}

pub fn capable(sender_key: Option<u64>, receiver_key: Option<u64>, data_len: Option<u16>) -> MptcpOption {
    MptcpOption::Capable { version: 1, flags: CAPABLE, sender_key, receiver_key, data_len, checksum: None }
}

/// Two paths of Multipath TCP under NewReno.
pub fn two_paths() -> Config {
    paths(2)
}

pub fn paths(n: usize) -> Config {
    let mut config = config(Protocol::Mptcp, n);
    config.transport.congestion_control = Choice::of("newreno");
    config.local_port = 80;
    config
}
