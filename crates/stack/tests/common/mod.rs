//! A client and a server endpoint joined by paths, in virtual time: the smallest network for whole transfers.
#![allow(dead_code)] // Every test program uses a part of it.

pub mod talk;

use anabranch_segment::{Flags, Segment};
use anabranch_stack::connection::{Entropy, PathConfig, Protocol, TooBig};
use anabranch_stack::{Config, Connection, Transmit};
use anabranch_units::{Bandwidth, Duration, Instant, LinkDirection, PathId};
use std::collections::VecDeque;

/// A seeded generator (SplitMix64) for keys and for the losses of packets.
pub struct Seeded(pub u64);

impl Seeded {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64 <= probability && probability > 0.0
    }
}

impl Entropy for Seeded {
    fn next_u64(&mut self) -> u64 {
        self.next()
    }
}

/// One direction of a path: a rate, a queue without a limit unless one is set, a delay, and losses.
pub struct Pipe {
    pub rate: Bandwidth,
    pub delay: Duration,
    pub queue: u64,
    pub loss: f64,
    pub duplication: f64,
    /// The most by which a packet may be held back, out of order.
    pub shuffle: Duration,
    pub up: bool,
    /// The largest IP packet, and whether the sender is notified of others: at once, as by its own router.
    pub mtu: u32,
    pub reports: bool,
    pub too_big: u64,
    pub sent: u64,
    pub dropped: u64,
    pub delivered: u64,
    pub duplicated: u64,
    free_at: Instant,
    /// Arrival time, segment, and the offset of its payload in the sender's stream.
    flying: VecDeque<(Instant, Segment, u64)>,
}

impl Pipe {
    pub fn new(rate: Bandwidth, delay: Duration) -> Self {
        Pipe {
            rate,
            delay,
            queue: u64::MAX,
            loss: 0.0,
            duplication: 0.0,
            shuffle: Duration::ZERO,
            up: true,
            mtu: u32::MAX,
            reports: false,
            too_big: 0,
            sent: 0,
            dropped: 0,
            delivered: 0,
            duplicated: 0,
            free_at: Instant::ZERO,
            flying: VecDeque::new(),
        }
    }

    /// Returns the report about a packet that is too big, if the pipe reports.
    fn send(&mut self, now: Instant, segment: &Segment, offset: u64, fate: &mut Seeded) -> Option<TooBig> {
        const IP_HEADER: u64 = 20;
        self.sent += 1;
        let packet = segment.len() + IP_HEADER as u32;
        if packet > self.mtu {
            self.too_big += 1;
            self.dropped += 1;
            let (local_port, remote_port) = (segment.source_port, segment.destination_port);
            let report = TooBig { local_port, remote_port, seq: segment.seq, packet, mtu: self.mtu };
            return self.reports.then_some(report);
        }
        let backlog = self.rate.bytes_in(self.free_at.since(now));
        if !self.up || backlog > self.queue || fate.chance(self.loss) {
            self.dropped += 1;
            return None;
        }
        let size = u64::from(segment.len()) + IP_HEADER;
        self.free_at = self.free_at.max(now) + self.rate.time_to_send(size);
        let copies = 1 + u64::from(fate.chance(self.duplication));
        self.duplicated += copies - 1;
        for _ in 0..copies {
            let held = if self.shuffle.is_zero() { 0 } else { fate.next() % self.shuffle.as_nanos() };
            let at = self.free_at + self.delay + Duration::from_nanos(held);
            let place = self.flying.partition_point(|(other, ..)| *other <= at);
            self.flying.insert(place, (at, segment.clone(), offset));
        }
        None
    }

    pub fn in_flight(&self) -> u64 {
        self.flying.len() as u64
    }
}

/// Both directions of a path.
pub struct Path {
    pub up: Pipe,
    pub down: Pipe,
}

impl Path {
    pub fn symmetric(mbps: u64, one_way_ms: u64) -> Self {
        let pipe = || Pipe::new(Bandwidth::from_mbps(mbps), Duration::from_millis(one_way_ms));
        Path { up: pipe(), down: pipe() }
    }

    pub fn cut(&mut self) {
        (self.up.up, self.down.up) = (false, false);
    }

    pub fn heal(&mut self) {
        (self.up.up, self.down.up) = (true, true);
    }
}

pub fn config(protocol: Protocol, paths: usize) -> Config {
    let path = |i: usize| PathConfig {
        id: PathId(i as u16),
        local: std::net::Ipv4Addr::new(10, i as u8, 0, 1).into(),
        remote: std::net::Ipv4Addr::new(10, i as u8, 0, 2).into(),
        mtu: 1500,
        backup: false,
        metered: false,
    };
    Config::new(protocol, (0..paths).map(path).collect())
}

/// The host's part for its endpoint: storing the bytes that arrive. Here only their ranges are recorded.
#[derive(Default)]
pub struct Host {
    placed: Vec<bool>,
    read: u64,
}

impl Host {
    /// Passes a segment to the endpoint and records where the payload belongs; the sender's offset is the reference.
    fn deliver(&mut self, end: &mut Connection, now: Instant, path: PathId, segment: &Segment, offset: u64) {
        let Some(placed) = end.handle_segment(now, path, segment) else { return };
        assert_eq!(placed.stream_offset, offset + u64::from(placed.payload_start), "misplaced: {segment:?}");
        assert!(placed.payload_start + placed.len <= segment.payload_len);
        let place = placed.stream_offset as usize..placed.stream_offset as usize + placed.len as usize;
        self.placed.resize(self.placed.len().max(place.end), false);
        self.placed[place].fill(true);
    }

    /// The application takes everything that the endpoint calls readable; all of it must have been placed.
    pub fn read(&mut self, end: &mut Connection, now: Instant) -> u64 {
        let taken = end.read(now, u64::MAX);
        let place = self.read as usize..(self.read + taken) as usize;
        assert!(self.placed[place].iter().all(|there| *there), "bytes were never placed");
        self.read += taken;
        taken
    }
}

/// Changes segments as they leave, and says whether each goes on.
pub type Meddler = Box<dyn FnMut(PathId, LinkDirection, &mut Segment) -> bool>;

/// The whole network. The client sends a request, the server sends `to_send` bytes; both read whatever arrives.
pub struct Pair {
    pub now: Instant,
    pub client: Connection,
    pub server: Option<Connection>,
    pub paths: Vec<Path>,
    pub server_config: Config,
    /// The server's entropy, if not from the seed.
    pub server_entropy: Option<Box<dyn Entropy>>,
    pub fate: Seeded,
    pub received: u64,
    /// A middlebox, or an end that lies.
    pub meddler: Option<Meddler>,
    /// The client stops reading.
    pub client_sleeps: bool,
    /// Bytes that the server will write, once it exists, and whether it then finishes.
    pub to_send: u64,
    pub finish: bool,
    /// Bytes of request that the server waits for before it writes, and bytes of it that it has read.
    pub request: u64,
    pub requested: u64,
    answered: bool,
    client_host: Host,
    server_host: Host,
    seed: u64,
    /// Every segment in order: time, path, towards the client, segment.
    pub trace: Option<Vec<(Instant, PathId, LinkDirection, Segment)>>,
}

impl Pair {
    pub fn new(client: Config, server: Config, paths: Vec<Path>, seed: u64) -> Self {
        let client = Connection::client(client, Box::new(Seeded(seed ^ 1))).expect("a valid configuration");
        Pair {
            now: Instant::ZERO,
            client,
            server: None,
            paths,
            server_config: server,
            server_entropy: None,
            fate: Seeded(seed),
            received: 0,
            meddler: None,
            client_sleeps: false,
            to_send: 0,
            finish: true,
            request: 0,
            requested: 0,
            answered: false,
            client_host: Host::default(),
            server_host: Host::default(),
            seed,
            trace: None,
        }
    }

    pub fn server(&mut self) -> &mut Connection {
        self.server.as_mut().expect("the server exists once the SYN has arrived")
    }

    /// The client sends a request of `bytes`; with `finish` it then ends its stream.
    pub fn ask(&mut self, bytes: u64, finish: bool) {
        self.request = bytes;
        self.client.write(bytes);
        if finish {
            self.client.finish();
        }
    }

    /// Runs until `done` or until `limit`; true if done.
    pub fn run_until(&mut self, limit: Instant, mut done: impl FnMut(&mut Pair) -> bool) -> bool {
        /// This many events at one instant mean that a timer is due and makes no progress.
        const TOO_MANY: u32 = 10_000;
        let mut at_this_instant = 0;
        self.flush();
        loop {
            if done(self) {
                return true;
            }
            let Some(next) = self.next_event().filter(|at| *at <= limit) else {
                self.now = limit;
                return false;
            };
            assert!(next >= self.now, "time runs backwards: {next} after {}", self.now);
            at_this_instant = if next == self.now { at_this_instant + 1 } else { 0 };
            assert!(at_this_instant < TOO_MANY, "no progress: {:?} {:?}", self.client, self.server);
            self.now = next;
            self.step();
        }
    }

    fn next_event(&self) -> Option<Instant> {
        let pipes = self.paths.iter().flat_map(|p| [&p.up, &p.down]);
        let arrivals = pipes.filter_map(|pipe| pipe.flying.front().map(|(at, ..)| *at));
        let server = self.server.as_ref().and_then(Connection::poll_timeout);
        // A timeout that has passed already is due now.
        let timers = [self.client.poll_timeout(), server].into_iter().flatten().map(|at| at.max(self.now));
        arrivals.chain(timers).min()
    }

    fn step(&mut self) {
        let now = self.now;
        for at in 0..self.paths.len() {
            let id = PathId(at as u16);
            while let Some((segment, offset)) = arrive(&mut self.paths[at].up, now) {
                // A listener does not know a connection that ended before it began.
                let stillborn = |server: &Connection| server.is_closed() && !server.is_established();
                match self.server.as_mut().filter(|server| !stillborn(server)) {
                    Some(server) => self.server_host.deliver(server, now, id, &segment, offset),
                    None if segment.flags == Flags::SYN => self.accept(id, &segment),
                    None => {}
                }
            }
            while let Some((segment, offset)) = arrive(&mut self.paths[at].down, now) {
                self.client_host.deliver(&mut self.client, now, id, &segment, offset);
            }
        }
        if self.client.poll_timeout().is_some_and(|at| at <= now) {
            self.client.handle_timeout(now);
        }
        if let Some(server) = self.server.as_mut()
            && server.poll_timeout().is_some_and(|at| at <= now)
        {
            server.handle_timeout(now);
        }
        if !self.client_sleeps {
            self.read();
        }
        self.serve();
        self.flush();
    }

    /// The client's application reads all available bytes.
    pub fn read(&mut self) {
        self.received += self.client_host.read(&mut self.client, self.now);
    }

    /// The server's application reads the request and answers it.
    fn serve(&mut self) {
        let Some(server) = &mut self.server else { return };
        self.requested += self.server_host.read(server, self.now);
        if self.requested >= self.request && !self.answered {
            self.answered = true;
            server.write(self.to_send);
            if self.finish {
                server.finish();
            }
        }
    }

    fn accept(&mut self, path: PathId, syn: &Segment) {
        let entropy = self.server_entropy.take().unwrap_or_else(|| Box::new(Seeded(self.seed ^ 2)));
        let server = Connection::accept(self.server_config.clone(), entropy, self.now, path, syn);
        self.server = Some(server.expect("a valid configuration"));
        // A server may time out before.
        (self.answered, self.requested, self.server_host) = (false, 0, Host::default());
        self.serve();
    }

    pub fn flush(&mut self) {
        let now = self.now;
        while let Some(transmit) = self.client.poll_transmit(now) {
            self.dispatch(transmit, LinkDirection::Up);
        }
        while let Some(transmit) = self.server.as_mut().and_then(|server| server.poll_transmit(now)) {
            self.dispatch(transmit, LinkDirection::Down);
        }
    }

    fn dispatch(&mut self, mut transmit: Transmit, direction: LinkDirection) {
        let goes_on =
            self.meddler.as_mut().is_none_or(|meddler| meddler(transmit.path, direction, &mut transmit.segment));
        if !goes_on {
            return;
        }
        if let Some(trace) = &mut self.trace {
            trace.push((self.now, transmit.path, direction, transmit.segment.clone()));
        }
        let path = &mut self.paths[transmit.path.index()];
        let pipe = match direction {
            LinkDirection::Down => &mut path.down,
            LinkDirection::Up => &mut path.up,
        };
        let report = pipe.send(self.now, &transmit.segment, transmit.stream_offset, &mut self.fate);
        let sender = match direction {
            LinkDirection::Down => self.server.as_mut(),
            LinkDirection::Up => Some(&mut self.client),
        };
        if let Some((report, sender)) = report.zip(sender) {
            sender.handle_too_big(self.now, transmit.path, &report);
        }
    }
}

fn arrive(pipe: &mut Pipe, now: Instant) -> Option<(Segment, u64)> {
    if pipe.flying.front()?.0 > now {
        return None;
    }
    pipe.delivered += 1;
    pipe.flying.pop_front().map(|(_, segment, offset)| (segment, offset))
}

pub fn secs(n: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(n)
}
