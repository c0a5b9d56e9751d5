//! A server, honest clients made of our endpoint, and an attacker, in virtual time, without the operating system.

use crate::answer::{Answer, content};
use anabranch_live::{Host, Limits, Opened, Server};
use anabranch_segment::{Flags, Segment};
use anabranch_stack::connection::{Entropy, PathConfig, Protocol, WITHHELD_INTERVAL};
use anabranch_stack::{Config, Connection};
use anabranch_units::{Duration, Instant, PathId};
use anabranch_wire::{decode, encode};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

pub const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 99, 0, 1));
pub const PORT: u16 = 7000;
pub const PATHS: u16 = 2;
/// The honest clients' host; attackers have other addresses.
pub fn honest_address(path: PathId) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, (path.0 + 1) as u8, 0, 2))
}
const ONE_WAY: Duration = Duration::from_millis(10);
const STEP: Duration = Duration::from_millis(1);

/// Seeded numbers, except that the initial sequence numbers are about to wrap.
struct Seeded(ChaCha8Rng);

impl Entropy for Seeded {
    fn next_u64(&mut self) -> u64 {
        // Sequence numbers are the low halves; keys and nonces differ by the high ones and the lowest bits.
        self.0.next_u64() | 0xffff_ff00
    }
}

/// A client that requests `len` bytes.
pub struct Honest {
    pub connection: Connection,
    port: u16,
    pub received: u64,
    asked: bool,
    pub finished_at: Option<Instant>,
}

impl Honest {
    fn new(number: u16) -> Self {
        let port = 40_000 + 100 * number;
        let path = |i| PathConfig {
            id: PathId(i),
            local: honest_address(PathId(i)),
            remote: SERVER,
            mtu: 1500,
            backup: false,
            metered: false,
        };
        let mut config = Config::new(Protocol::Mptcp, (0..PATHS).map(path).collect());
        (config.local_port, config.remote_port) = (port, PORT);
        let entropy = Seeded(ChaCha8Rng::seed_from_u64(u64::from(number)));
        let connection = Connection::client(config, Box::new(entropy)).expect("a valid configuration");
        Honest { connection, port, received: 0, asked: false, finished_at: None }
    }

    fn owns(&self, segment: &Segment) -> bool {
        (self.port..self.port + 100).contains(&segment.destination_port)
    }

    fn receive(&mut self, now: Instant, path: PathId, segment: &Segment, payload: &[u8]) {
        if let Some(placed) = self.connection.handle_segment(now, path, segment) {
            let bytes = &payload[placed.payload_start as usize..][..placed.len as usize];
            for (byte, at) in bytes.iter().zip(placed.stream_offset..) {
                assert_eq!(*byte, content(at), "byte {at}");
            }
        }
        self.received += self.connection.read(now, u64::MAX);
        if self.connection.peer_finished() && self.finished_at.is_none() {
            self.finished_at = Some(now);
            self.connection.finish();
        }
    }

    /// Sends one request, and ends its own side when it has everything.
    fn ask(&mut self) {
        if self.connection.is_established() && !self.asked {
            self.asked = true;
            self.connection.write(100);
        }
    }
}

type Packet = (Instant, PathId, Vec<u8>);

pub struct World<F> {
    pub now: Instant,
    pub server: Server<F, Answer>,
    pub honest: Vec<Honest>,
    up: VecDeque<Packet>,
    down: VecDeque<Packet>,
    /// Packets that the server can send in a step.
    pub packets_per_step: usize,
    /// Recent segments of the server to other addresses than the honest clients'.
    pub to_attackers: Vec<(PathId, IpAddr, Segment)>,
}

pub fn world(limits: Limits, len: u64) -> World<impl FnMut(Opened) -> Answer> {
    world_of(limits, move || Answer::new(len))
}

/// A server that resets clients which acknowledge what they have not received.
pub fn distrustful_world(len: u64) -> World<impl FnMut(Opened) -> Answer> {
    let mut config = config();
    config.withheld_interval = Some(WITHHELD_INTERVAL);
    of_config(config, Limits::default(), move || Answer::new(len))
}

pub fn world_of(limits: Limits, answer: impl Fn() -> Answer) -> World<impl FnMut(Opened) -> Answer> {
    of_config(config(), limits, answer)
}

fn config() -> Config {
    let path =
        |i| PathConfig { id: PathId(i), local: SERVER, remote: SERVER, mtu: 1500, backup: false, metered: false };
    let mut config = Config::new(Protocol::Mptcp, (0..PATHS).map(path).collect());
    config.local_port = PORT;
    config
}

fn of_config(config: Config, limits: Limits, answer: impl Fn() -> Answer) -> World<impl FnMut(Opened) -> Answer> {
    let open = move |_| answer();
    let server = Server::new(config, limits, open).expect("a valid configuration");
    let now = Instant::ZERO + STEP;
    World {
        now,
        server,
        honest: Vec::new(),
        up: VecDeque::new(),
        down: VecDeque::new(),
        packets_per_step: usize::MAX,
        to_attackers: Vec::new(),
    }
}

impl<F: FnMut(Opened) -> Answer> World<F> {
    pub fn add_honest(&mut self) {
        self.honest.push(Honest::new(self.honest.len() as u16));
    }

    /// A segment of an attacker arrives at the server now.
    pub fn forge(&mut self, path: PathId, from: IpAddr, segment: &Segment) {
        let mut packet = vec![0; 65_535];
        let len = encode(&mut packet, from, SERVER, segment, |payload| payload.fill(0x66)).expect("fits");
        self.server.receive(self.now, path, &packet[..len]);
        self.collect_packets();
    }

    pub fn forge_bytes(&mut self, path: PathId, packet: &[u8]) {
        self.server.receive(self.now, path, packet);
        self.collect_packets();
    }

    /// Advances the time by a millisecond.
    pub fn step(&mut self) {
        self.now += STEP;
        let now = self.now;
        while let Some((_, path, packet)) = due(&mut self.up, now) {
            self.server.receive(now, path, &packet);
        }
        while let Some((_, path, packet)) = due(&mut self.down, now) {
            let packet = decode(&packet).expect("the server writes valid packets");
            if let Some(honest) = self.honest.iter_mut().find(|honest| honest.owns(&packet.segment)) {
                honest.receive(now, path, &packet.segment, packet.payload);
            }
        }
        if self.server.poll_timeout().is_some_and(|at| at <= now) {
            self.server.handle_timeout(now);
        }
        self.collect_packets();
        for honest in &mut self.honest {
            honest.ask();
            if honest.connection.poll_timeout().is_some_and(|at| at <= now) {
                honest.connection.handle_timeout(now);
            }
            while let Some(transmit) = honest.connection.poll_transmit(now) {
                let mut packet = vec![0; 1500];
                let from = honest_address(transmit.path);
                let len = encode(&mut packet, from, SERVER, &transmit.segment, |p| p.fill(0x33)).expect("fits");
                packet.truncate(len);
                self.up.push_back((now + ONE_WAY, transmit.path, packet));
            }
        }
    }

    /// Takes the server's packets.
    fn collect_packets(&mut self) {
        let mut buffer = [0; 65_535];
        for _ in 0..self.packets_per_step {
            let Some((path, len)) = self.server.poll_transmit(self.now, &mut buffer) else { break };
            let packet = decode(&buffer[..len]).expect("the server writes valid packets");
            if packet.destination == honest_address(path) {
                self.down.push_back((self.now + ONE_WAY, path, buffer[..len].to_vec()));
            } else {
                self.to_attackers.push((path, packet.destination, packet.segment));
            }
        }
        assert_eq!(self.server.counters().unsendable, 0);
    }

    /// The server's segments to that address and port since the last call.
    pub fn emitted(&mut self, address: IpAddr, port: u16) -> Vec<Segment> {
        let emitted =
            self.to_attackers.extract_if(.., |(_, to, segment)| (*to, segment.destination_port) == (address, port));
        emitted.map(|(_, _, segment)| segment).collect()
    }

    /// Whether all honest clients have received everything.
    pub fn served(&self, len: u64) -> bool {
        self.honest.iter().all(|honest| honest.finished_at.is_some() && honest.received == len)
    }

    /// Runs until all honest clients are served, with an attack in every millisecond; returns the duration.
    pub fn run(&mut self, len: u64, mut attack: impl FnMut(&mut Self)) -> Duration {
        let began = self.now;
        while !self.served(len) {
            self.step();
            attack(self);
            assert!(self.now.since(began) < Duration::from_secs(60), "honest clients are not served");
        }
        self.now.since(began)
    }
}

fn due(queue: &mut VecDeque<Packet>, now: Instant) -> Option<Packet> {
    queue.front().filter(|(at, _, _)| *at <= now)?;
    queue.pop_front()
}

/// A segment to the server's port.
pub fn segment(flags: Flags, from: u16) -> Segment {
    let mut segment = Segment::new(flags);
    (segment.source_port, segment.destination_port, segment.window) = (from, PORT, 65_535);
    segment
}
