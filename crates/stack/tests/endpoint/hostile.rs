//! A hostile peer: random numbers, flags and options, near the edges of what is allowed. Whatever it sends, the
//! endpoint neither panics nor sends without end, and every segment that it sends can be encoded.
//!
//! A case is one number; a failure prints it.

use crate::common::{Pair, Path, Seeded, config};
use anabranch_segment::{
    CapableFlags, DataSeq, Dss, Flags, MAX_OPTIONS_LEN, Mapping, MptcpOption, RemovedAddresses, ResetReason, SackBlock,
    Segment, SynOptions, Timestamps,
};
use anabranch_stack::connection::{Commit, Failover, Protocol};
use anabranch_stack::{Connection, Transmit};
use anabranch_units::{Duration, Instant, LinkDirection, PathId, SeqNumber};

impl Seeded {
    /// A number at, near or far from `n`.
    fn near(&mut self, n: u32) -> u32 {
        match self.below(24) {
            0..=19 => n,
            20 => n.wrapping_add(self.below(3000) as u32),
            21 => n.wrapping_sub(self.below(3000) as u32),
            22 => n.wrapping_add(1 << (20 + self.below(12))),
            _ => self.next() as u32,
        }
    }

    fn near_wide(&mut self, n: u64) -> u64 {
        match self.below(16) {
            0..=12 => n,
            13 => n.wrapping_add(self.below(5000)),
            14 => n.wrapping_sub(self.below(5000)),
            _ => self.next(),
        }
    }

    fn number(&mut self, n: u64) -> DataSeq {
        let (value, wide) = (self.near_wide(n), self.one_in(2));
        DataSeq { value: if wide { value } else { value & 0xffff_ffff }, wide }
    }
}

/// The last segments that each end sent on each path: the ones that a peer may refer to.
struct Wire {
    now: Instant,
    seen: Vec<(PathId, Segment)>,
    target: Connection,
    /// The first number of the peer, by path.
    first: [SeqNumber; 2],
    /// The application has not ended its stream.
    writes: bool,
}

impl Wire {
    fn flush(&mut self) {
        for count in 0.. {
            assert!(count < 20_000, "it sends for ever: {:?} {:?}", self.seen, self.target);
            let Some(Transmit { path, segment, .. }) = self.target.poll_transmit(self.now) else { break };
            assert!(segment.options_len() <= MAX_OPTIONS_LEN, "{segment:?}");
            assert!(segment.len() + 20 <= 1500, "{segment:?}");
            self.seen.retain(|(at, _)| *at != path);
            self.seen.push((path, segment));
        }
        self.target.log().drain().for_each(drop);
    }

    fn step(&mut self, draw: &mut Seeded) {
        if draw.one_in(6) {
            let wake = self.target.poll_timeout().map_or(self.now, |at| at.max(self.now));
            self.now = wake.min(self.now + Duration::from_secs(100));
        } else {
            self.now += Duration::from_micros(draw.below(5_000));
        }
        if self.target.poll_timeout().is_some_and(|at| at <= self.now) {
            self.target.handle_timeout(self.now);
            self.flush();
            let again = self.target.poll_timeout();
            assert!(again.is_none_or(|at| at > self.now), "a timer is due and makes no progress: {:?}", self.target);
        }
        let (path, segment) = self.invent(draw);
        if let Some(placed) = self.target.handle_segment(self.now, path, &segment) {
            assert!(placed.len > 0 && placed.payload_start + placed.len <= segment.payload_len);
            assert!(placed.stream_offset < 1 << 30, "{placed:?}");
        }
        match draw.below(12) {
            0 if self.writes => self.target.write(draw.below(20_000)),
            1..=3 => drop(self.target.read(self.now, draw.below(9_000))),
            4 if draw.one_in(20) => self.target.handle_path_change(self.now, PathId(1), draw.one_in(2)),
            _ => {}
        }
        self.flush();
    }

    /// A segment that mostly makes sense.
    fn invent(&mut self, draw: &mut Seeded) -> (PathId, Segment) {
        let at = draw.below(self.seen.len().max(1) as u64) as usize;
        let Some((path, last)) = self.seen.get(at).cloned() else { return (PathId(0), Segment::new(Flags::SYN)) };
        let flags = match draw.below(40) {
            0 => Flags::SYN,
            1 => Flags::SYN | Flags::ACK,
            2 if draw.one_in(4) => Flags::FIN | Flags::ACK,
            3 => Flags::NONE,
            4 if draw.one_in(10) => Flags::RST,
            _ => Flags::ACK,
        };
        let mut segment = Segment::new(flags);
        (segment.source_port, segment.destination_port) = (last.destination_port, last.source_port);
        segment.seq = SeqNumber(draw.near(last.ack.0));
        segment.ack = SeqNumber(draw.near(last.seq.0.wrapping_add(last.sequence_len())));
        segment.window = draw.next() as u16;
        if draw.one_in(2) {
            segment.payload_len = [1, 100, 1428, 1460, 9000][draw.below(5) as usize];
        }
        segment.timestamps = last.timestamps.map(|t| Timestamps { value: draw.near(t.echo), echo: draw.near(t.value) });
        for _ in 0..draw.below(4) {
            let start = SeqNumber(draw.near(segment.ack.0));
            segment.sack.push(SackBlock { start, end: SeqNumber(draw.near(start.0.wrapping_add(1428))) });
        }
        if flags.contains(Flags::SYN) {
            let window_scale = (!draw.one_in(3)).then(|| draw.below(20) as u8);
            segment.syn = Some(SynOptions { mss: draw.next() as u16, window_scale, sack_permitted: !draw.one_in(3) });
        }
        let first = self.first[path.index()];
        self.invent_options(draw, first, &last, &mut segment);
        (path, segment)
    }

    fn invent_options(&mut self, draw: &mut Seeded, first: SeqNumber, last: &Segment, segment: &mut Segment) {
        let (theirs, ours) = last.dss.map_or((0, 0), |dss| {
            let ours = dss.mapping.map_or(0, |m| m.dsn.value.wrapping_add(u64::from(m.len)));
            (dss.data_ack.map_or(0, |ack| ack.value), ours)
        });
        if !draw.one_in(20) {
            let len = match draw.below(5) {
                0 => draw.next() as u16,
                1 if draw.one_in(8) => 0,
                _ => segment.payload_len as u16,
            };
            let mapping = Mapping {
                dsn: draw.number(theirs),
                subflow_offset: draw.near(segment.seq.0.wrapping_sub(first.0)),
                len,
                checksum: None,
            };
            segment.dss = Some(Dss {
                data_ack: (!draw.one_in(4)).then(|| draw.number(ours)),
                mapping: (segment.payload_len > 0).then_some(mapping).filter(|_| !draw.one_in(20)),
                data_fin: draw.one_in(30),
            });
        }
        if draw.one_in(4) {
            let option = self.invent_option(draw, ours);
            segment.mptcp.push(option);
        }
    }

    fn invent_option(&mut self, draw: &mut Seeded, ours: u64) -> MptcpOption {
        let token = if draw.one_in(2) { self.target.token() } else { 7 };
        let key = draw.one_in(2).then(|| draw.next());
        let flags = CapableFlags { checksum_required: false, deny_join_initial: false, hmac_sha256: true };
        match draw.below(12) {
            0 => MptcpOption::Capable {
                version: draw.below(3) as u8,
                flags,
                sender_key: key,
                receiver_key: key,
                data_len: draw.one_in(2).then(|| draw.next() as u16),
                checksum: None,
            },
            1 => MptcpOption::JoinSyn { backup: draw.one_in(2), address_id: 1, token, nonce: 5 },
            2 => MptcpOption::JoinSynAck { backup: false, address_id: 1, hmac: draw.next(), nonce: 5 },
            3 => MptcpOption::JoinAck { hmac: [3; 20] },
            4..=6 => MptcpOption::AddAddress {
                echo: draw.one_in(2),
                address_id: draw.below(256) as u8,
                address: if draw.one_in(2) { [10, 9, 9, 9].into() } else { [9u16; 8].into() },
                port: draw.one_in(2).then_some(80),
                hmac: draw.next(),
            },
            7 => MptcpOption::RemoveAddress(RemovedAddresses::new(&[draw.below(4) as u8]).unwrap()),
            8 => MptcpOption::Priority { backup: draw.one_in(2) },
            9 if draw.one_in(8) => MptcpOption::Fail { dsn: ours },
            10 => MptcpOption::FastClose { receiver_key: draw.next() },
            _ => MptcpOption::Reset { transient: false, reason: ResetReason::Unspecified },
        }
    }
}

/// A connection during a transfer, taken off its network.
fn established(case: u64, draw: &mut Seeded) -> Wire {
    let protocol = if draw.one_in(5) { Protocol::Tcp } else { Protocol::Mptcp };
    let mut ours = config(protocol, 2);
    ours.transport.wide_data_seq = draw.one_in(2);
    ours.transport.timestamps = !draw.one_in(4);
    ours.transport.pacing = draw.one_in(5);
    ours.transport.commit = if draw.one_in(3) { Commit::IntoBuffer } else { Commit::AtWindow };
    ours.transport.failover = if draw.one_in(2) { Failover::Upstream } else { Failover::Legacy };
    ours.transport.subflow_windows = ours.transport.failover == Failover::Upstream;
    let paths = vec![Path::symmetric(5, 10), Path::symmetric(5, 20)];
    let mut net = Pair::new(ours.clone(), ours, paths, case);
    net.to_send = draw.below(300_000);
    net.finish = draw.one_in(2);
    let mut seen = Vec::new();
    net.trace = Some(Vec::new());
    let until = Instant::ZERO + Duration::from_millis(1 + draw.below(300));
    net.run_until(until, |_| false);
    let is_client = draw.one_in(2) || net.server.is_none();
    let to_target = if is_client { LinkDirection::Down } else { LinkDirection::Up };
    let mut first = [SeqNumber(0); 2];
    for (_, path, direction, segment) in net.trace.take().into_iter().flatten() {
        if direction == to_target && segment.flags.contains(Flags::SYN) {
            first[path.index()] = segment.seq;
        }
        if direction != to_target {
            seen.retain(|(at, _)| *at != path);
            seen.push((path, segment));
        }
    }
    let (now, writes) = (net.now, is_client || !net.finish);
    let target = if is_client { net.client } else { net.server.expect("checked") };
    Wire { now, seen, target, first, writes }
}

fn run_case(case: u64) {
    let mut draw = Seeded(case);
    let mut wire = established(case, &mut draw);
    wire.flush();
    for _ in 0..200 {
        wire.step(&mut draw);
    }
}

fn run_cases(cases: std::ops::Range<u64>) {
    for case in cases {
        let outcome = std::panic::catch_unwind(|| run_case(case));
        assert!(outcome.is_ok(), "case {case}: replay with ANABRANCH_CASE={case} and the test one_case");
    }
}

#[test]
fn nothing_that_a_peer_sends_harms() {
    run_cases(0..2_000);
}

/// The reordering timer gives way to the timeout of a packet that has waited longer already.
#[test]
fn nothing_that_showed_a_fault_harms() {
    run_cases(1_001_703..1_001_704);
}

#[test]
#[ignore = "slow suite: 50 000 cases"]
fn nothing_that_fifty_thousand_peers_send_harms() {
    run_cases(1_000_000..1_050_000);
}

#[test]
#[ignore = "replays one case: set ANABRANCH_CASE"]
fn one_case() {
    if let Ok(case) = std::env::var("ANABRANCH_CASE") {
        run_case(case.parse().expect("ANABRANCH_CASE is a number"));
    }
}
