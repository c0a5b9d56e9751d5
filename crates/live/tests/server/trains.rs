//! The server on a network that cuts up its packets, as the kernel does, and loses some of what they become.

use crate::answer::{Answer, content};
use anabranch_live::{Finish, Host, Limits, Outgoing, Server, SystemEntropy};
use anabranch_segment::{Flags, Mapping, Segment};
use anabranch_stack::connection::{PathConfig, Protocol};
use anabranch_stack::{Config, Connection};
use anabranch_units::{Duration, Instant, PathId, SeqNumber};
use anabranch_wire::{CHECKSUM_AT, checksum, decode, encode};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const PORT: u16 = 7000;
const PATHS: u16 = 2;
const ONE_WAY: Duration = Duration::from_millis(10);
const STEP: Duration = Duration::from_millis(1);
const LEN: u64 = 3_000_000;
/// One of this many packets is lost.
const LOSS: u32 = 50;

#[derive(Clone, Copy)]
struct Family {
    ipv6: bool,
}

impl Family {
    fn server(self) -> IpAddr {
        self.address(99)
    }

    fn client(self, path: PathId) -> IpAddr {
        self.address(path.0 + 1)
    }

    fn address(self, number: u16) -> IpAddr {
        match self.ipv6 {
            true => Ipv6Addr::new(0xfd00, number, 0, 0, 0, 0, 0, 2).into(),
            false => Ipv4Addr::new(10, number as u8, 0, 2).into(),
        }
    }
}

/// A subflow at the receiver: its path, and the server's first sequence number is that of the SYN.
type Subflow = (PathId, u16);

/// What the network and the client saw.
#[derive(Default)]
struct Seen {
    trains: u64,
    lost: u64,
    /// By subflow and sequence number of a byte, its mapping: Linux refuses another one.
    mappings: BTreeMap<(Subflow, u32), Mapping>,
    repeated: u64,
    received: u64,
}

impl Seen {
    /// Every byte of a subflow always has the same mapping, and the mapping covers it.
    fn check(&mut self, subflow: Subflow, first: SeqNumber, segment: &Segment) {
        let Some(mapping) = segment.dss.and_then(|dss| dss.mapping).filter(|_| segment.payload_len > 0) else { return };
        let offset = segment.seq.0.wrapping_sub(first.0);
        let end = mapping.subflow_offset + u32::from(mapping.len);
        assert!(mapping.subflow_offset <= offset && offset + segment.payload_len <= end, "{segment:?}");
        for at in [segment.seq.0, segment.seq.0.wrapping_add(segment.payload_len - 1)] {
            let known = *self.mappings.entry((subflow, at)).or_insert(mapping);
            assert_eq!(known, mapping, "a byte has two mappings");
        }
    }
}

/// What the kernel makes of a packet: packets with complete checksums.
fn cut(sent: &Outgoing, packet: &[u8]) -> Vec<Vec<u8>> {
    let Some(offload) = sent.offload else { return vec![packet.to_vec()] };
    let (ip, headers) = (usize::from(offload.ip_header), usize::from(offload.headers));
    let payload = &packet[headers..];
    let size = offload.cut.map_or(payload.len().max(1), usize::from);
    let pieces: Vec<&[u8]> = if payload.is_empty() { vec![payload] } else { payload.chunks(size).collect() };
    let last = pieces.len() - 1;
    let finish = |(number, piece): (usize, &&[u8])| {
        let mut made = [&packet[..headers], piece].concat();
        let tcp_len = made.len() - ip;
        let seq = u32::from_be_bytes(made[ip + 4..ip + 8].try_into().unwrap()).wrapping_add((number * size) as u32);
        made[ip + 4..ip + 8].copy_from_slice(&seq.to_be_bytes());
        if number < last {
            made[ip + 13] &= !(Flags::PSH.0 | Flags::FIN.0);
        }
        // The field has the sum of the pseudo-header with the length of the whole: only the length differs.
        let pseudo = u16::from_be_bytes(made[ip + CHECKSUM_AT..ip + CHECKSUM_AT + 2].try_into().unwrap());
        let whole = (packet.len() - ip) as u32;
        let other = checksum::Sum::default().word(pseudo).word(!(whole as u16)).word(tcp_len as u16);
        made[ip + CHECKSUM_AT..ip + CHECKSUM_AT + 2].fill(0);
        let sum = other.bytes(&made[ip..]).finish();
        made[ip + CHECKSUM_AT..ip + CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
        finish_ip(&mut made, ip, offload.ipv6);
        made
    };
    pieces.iter().enumerate().map(finish).collect()
}

fn finish_ip(packet: &mut [u8], ip: usize, ipv6: bool) {
    let len = packet.len();
    if ipv6 {
        packet[4..6].copy_from_slice(&((len - ip) as u16).to_be_bytes());
    } else {
        packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        packet[10..12].fill(0);
        let sum = checksum::Sum::default().bytes(&packet[..ip]).finish();
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}

type Packets = VecDeque<(Instant, PathId, Vec<u8>)>;

fn due(queue: &mut Packets, now: Instant) -> Option<(Instant, PathId, Vec<u8>)> {
    queue.front().filter(|(at, _, _)| *at <= now)?;
    queue.pop_front()
}

struct World<F> {
    family: Family,
    now: Instant,
    server: Server<F, Answer>,
    client: Connection,
    up: Packets,
    down: Packets,
    random: ChaCha8Rng,
    /// The server's first sequence number of each subflow.
    first: BTreeMap<Subflow, SeqNumber>,
    seen: Seen,
}

fn config(family: Family, protocol: Protocol, ours: impl Fn(PathId) -> IpAddr) -> Config {
    let path = |i| PathConfig {
        id: PathId(i),
        local: ours(PathId(i)),
        remote: family.server(),
        mtu: 1500,
        backup: false,
        metered: false,
    };
    Config::new(protocol, (0..PATHS).map(path).collect())
}

fn world(family: Family, protocol: Protocol, seed: u64) -> World<impl FnMut(anabranch_live::Opened) -> Answer> {
    let mut ours = config(family, Protocol::Mptcp, |_| family.server());
    ours.local_port = PORT;
    let mut theirs = config(family, protocol, |path| family.client(path));
    (theirs.local_port, theirs.remote_port) = (40_000, PORT);
    World {
        family,
        now: Instant::ZERO + STEP,
        server: Server::new(ours, Limits::default(), |_| Answer::new(LEN)).unwrap(),
        client: Connection::client(theirs, Box::new(SystemEntropy)).unwrap(),
        up: VecDeque::new(),
        down: VecDeque::new(),
        random: ChaCha8Rng::seed_from_u64(seed),
        first: BTreeMap::new(),
        seen: Seen::default(),
    }
}

impl<F: FnMut(anabranch_live::Opened) -> Answer> World<F> {
    fn step(&mut self) {
        self.now += STEP;
        while let Some((_, path, packet)) = due(&mut self.up, self.now) {
            self.server.receive(self.now, path, &packet);
        }
        while let Some((_, path, packet)) = due(&mut self.down, self.now) {
            self.arrive(path, &packet);
        }
        if self.server.poll_timeout().is_some_and(|at| at <= self.now) {
            self.server.handle_timeout(self.now);
        }
        if self.client.poll_timeout().is_some_and(|at| at <= self.now) {
            self.client.handle_timeout(self.now);
        }
        self.collect();
    }

    fn arrive(&mut self, path: PathId, packet: &[u8]) {
        let packet = decode(packet).expect("a valid packet");
        let segment = &packet.segment;
        let subflow = (path, segment.destination_port);
        if segment.flags.contains(Flags::SYN) {
            self.first.insert(subflow, segment.seq);
        }
        self.seen.check(subflow, self.first[&subflow], segment);
        if let Some(placed) = self.client.handle_segment(self.now, path, segment) {
            let bytes = &packet.payload[placed.payload_start as usize..][..placed.len as usize];
            for (byte, at) in bytes.iter().zip(placed.stream_offset..) {
                assert_eq!(*byte, content(at), "byte {at}");
            }
        }
        self.seen.received += self.client.read(self.now, u64::MAX);
    }

    fn collect(&mut self) {
        let mut buffer = vec![0; 65_535];
        while let Some(sent) = self.server.poll_packet(self.now, Finish::Kernel, &mut buffer) {
            let pieces = cut(&sent, &buffer[..sent.len]);
            assert_eq!(pieces.len(), sent.packets as usize);
            assert_eq!(pieces.iter().map(Vec::len).sum::<usize>(), sent.bytes);
            self.seen.trains += u64::from(sent.packets > 1);
            for piece in pieces {
                if self.random.next_u32().is_multiple_of(LOSS) {
                    self.seen.lost += 1;
                } else {
                    self.down.push_back((self.now + ONE_WAY, sent.path, piece));
                }
            }
        }
        while let Some(transmit) = self.client.poll_transmit(self.now) {
            let from = self.family.client(transmit.path);
            let len = encode(&mut buffer, from, self.family.server(), &transmit.segment, |p| p.fill(7)).expect("fits");
            self.up.push_back((self.now + ONE_WAY, transmit.path, buffer[..len].to_vec()));
        }
    }

    fn run(&mut self) {
        let mut asked = false;
        while !self.client.peer_finished() {
            self.step();
            if self.client.is_established() && !std::mem::replace(&mut asked, self.client.is_established()) {
                self.client.write(100);
            }
            assert!(self.now < Instant::ZERO + Duration::from_secs(120), "{} of {LEN} bytes", self.seen.received);
        }
        assert_eq!(self.seen.received, LEN);
        let paths = self.server.path_counters();
        self.seen.repeated = paths.iter().map(|path| path.retransmitted_segments).sum();
        let sent: u64 = paths.iter().map(|path| path.bytes - path.retransmitted_bytes).sum();
        assert!(sent >= LEN, "every segment of a train counts: {sent}");
    }
}

#[test]
fn what_the_network_loses_of_trains_is_sent_again_with_the_mapping_of_the_train() {
    for ipv6 in [false, true] {
        for seed in 0..4 {
            let mut world = world(Family { ipv6 }, Protocol::Mptcp, seed);
            world.run();
            let Seen { trains, lost, repeated, .. } = world.seen;
            assert!(trains > 100 && lost > 20 && repeated > 20, "{trains} trains, {lost} lost, {repeated} repeated");
        }
    }
}

#[test]
fn trains_of_a_tcp_client_need_no_mapping() {
    let mut world = world(Family { ipv6: false }, Protocol::Tcp, 1);
    world.run();
    assert!(world.seen.trains > 100 && world.seen.mappings.is_empty());
}
