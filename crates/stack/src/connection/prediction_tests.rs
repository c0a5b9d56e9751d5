//! Header prediction against the ordered checks, and the short choice of an end that only acknowledges against the
//! whole one: two equal clients get the same segments of a server, some of them changed at random, and only one client
//! predicts and chooses so. Whatever arrives, both send the same, emit the same events, and are in the same state.

use super::predict::PREDICTION;
use super::wraps::common::{Seeded, config};
use super::{Commit, Connection, Failover, Protocol};
use anabranch_segment::{Flags, MptcpOption, SackBlock, Segment, Timestamps};
use anabranch_units::{Duration, Instant, PathId};

/// Bytes in either direction.
const BYTES: u64 = 300_000;
/// Events of a run at most.
const STEPS: usize = 1_500;

/// A segment under way, to the clients or to the server.
type Flight = (Instant, bool, PathId, Segment);

struct Clients {
    now: Instant,
    predicting: Connection,
    checking: Connection,
    server: Option<Connection>,
    flights: Vec<Flight>,
    draw: Seeded,
    /// One segment in this many is changed.
    changes: u64,
    predicted: u64,
    /// How often the predicting client had nothing but acknowledgments to send.
    acknowledging: u64,
}

impl Clients {
    fn new(seed: u64) -> Self {
        let client = || {
            let mut client =
                Connection::client(Self::config(seed), Box::new(Seeded(seed))).expect("a valid configuration");
            // Every fourth one mostly receives, and leaves its stream open.
            if seed % 4 == 3 {
                client.write(BYTES / 10);
            } else {
                client.write(BYTES);
                client.finish();
            }
            client
        };
        let changes = [10_000, 40, 8][(seed % 3) as usize];
        let (predicting, checking, draw) = (client(), client(), Seeded(seed ^ 7));
        Clients {
            now: Instant::ZERO,
            predicting,
            checking,
            server: None,
            flights: Vec::new(),
            draw,
            changes,
            predicted: 0,
            acknowledging: 0,
        }
    }

    fn config(seed: u64) -> super::Config {
        let mut config = config(Protocol::Mptcp, 2);
        let transport = &mut config.transport;
        transport.wide_data_seq = seed % 2 == 1;
        // Which acknowledgments are plain depends on what is known of sizes.
        config.mtu_discovery = seed % 7 < 3;
        let transport = &mut config.transport;
        (transport.commit, transport.failover) = match seed % 5 {
            0 => (Commit::IntoBuffer, Failover::Upstream),
            1 => (Commit::IntoBuffer, Failover::Legacy),
            _ => (Commit::AtWindow, Failover::Legacy),
        };
        transport.subflow_windows = transport.failover == Failover::Upstream && seed % 3 < 2;
        config
    }

    /// The same call of both clients. Panics unless both return the same, emit the same events, and set the same
    /// timers.
    fn both<T: PartialEq + std::fmt::Debug>(&mut self, call: impl Fn(&mut Connection) -> T) -> T {
        PREDICTION.set(Some(0));
        let predicting = call(&mut self.predicting);
        self.predicted += PREDICTION.take().unwrap_or_default();
        let checking = call(&mut self.checking);
        assert_eq!(predicting, checking, "at {}", self.now);
        let shown = |client: &mut Connection| (client.log().drain().collect::<Vec<_>>(), client.poll_timeout());
        assert_eq!(shown(&mut self.predicting), shown(&mut self.checking), "at {}", self.now);
        predicting
    }

    /// The whole state, hidden parts included.
    fn state(client: &Connection) -> String {
        let subflows: Vec<_> = client.subflows.iter().collect();
        let waits = (&client.progress, &client.waits, client.closed);
        format!("{:?} {:?} {waits:?} {subflows:?}", client.outgoing, client.incoming)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.draw.next() % n
    }

    fn send(&mut self, to_clients: bool, path: PathId, segment: &Segment) {
        let copies = if self.draw.chance(0.02) { 0 } else { 1 + usize::from(self.draw.chance(0.02)) };
        for _ in 0..copies {
            let late = if self.below(20) == 0 { 15_000 } else { 0 };
            let delay = Duration::from_micros(10_000 + 10_000 * u64::from(path.0) + late);
            self.flights.push((self.now + delay, to_clients, path, segment.clone()));
        }
    }

    fn flush(&mut self) {
        let now = self.now;
        PREDICTION.set(Some(0));
        self.acknowledging += u64::from(self.predicting.only_acknowledges());
        PREDICTION.take();
        while let Some((path, segment)) = self.both(|client| client.poll_transmit(now).map(|t| (t.path, t.segment))) {
            self.send(false, path, &segment);
        }
        while let Some(transmit) = self.server.as_mut().and_then(|server| server.poll_transmit(now)) {
            let mut segment = transmit.segment;
            if self.below(self.changes) == 0 {
                self.change(&mut segment);
            }
            self.send(true, transmit.path, &segment);
        }
        if let Some(server) = &mut self.server {
            server.log().drain().for_each(drop);
        }
    }

    /// Changes one field of a segment.
    fn change(&mut self, segment: &mut Segment) {
        let by = 1 + self.below(3_000) as u32;
        let mapping = segment.dss.as_mut().and_then(|dss| dss.mapping.as_mut());
        match (self.draw.next() % 15, mapping) {
            (0, _) => segment.seq.0 = segment.seq.0.wrapping_add(by),
            (1, _) => segment.seq.0 = segment.seq.0.wrapping_sub(by),
            (2, _) => segment.ack.0 = segment.ack.0.wrapping_add(by),
            (3, _) => segment.ack.0 = segment.ack.0.wrapping_sub(by),
            (4, _) => segment.payload_len = by,
            (5, _) => segment.flags = segment.flags | Flags::PSH,
            (6, _) => segment.dss = None,
            (7, _) => segment.window = by as u16,
            (8, _) => segment.timestamps = None,
            (9, _) => drop(segment.sack.push(SackBlock { start: segment.ack + by, end: segment.ack + 2 * by })),
            (10, _) => segment.mptcp.push(MptcpOption::Priority { backup: by & 1 == 0 }),
            (11, Some(mapping)) => mapping.len = by as u16,
            (12, Some(mapping)) => mapping.dsn.value = mapping.dsn.value.wrapping_add(u64::from(by)) & 0xffff_ffff,
            (14, _) => {
                let older = |t: Timestamps| Timestamps { value: t.value.wrapping_sub(by), ..t };
                segment.timestamps = segment.timestamps.map(older);
            }
            (13, Some(mapping)) => mapping.subflow_offset = mapping.subflow_offset.wrapping_add(by),
            _ => segment.flags = segment.flags | Flags::FIN,
        }
    }

    /// The next arrival or timeout; false if there is none.
    fn step(&mut self) -> bool {
        let timeouts = [self.predicting.poll_timeout(), self.server.as_ref().and_then(Connection::poll_timeout)];
        let arrival = self.flights.iter().map(|flight| flight.0).min();
        let Some(next) = timeouts.into_iter().flatten().chain(arrival).min() else { return false };
        self.now = next.max(self.now);
        let now = self.now;
        while let Some(at) = self.flights.iter().position(|flight| flight.0 <= now) {
            let (_, to_clients, path, segment) = self.flights.remove(at);
            if to_clients {
                self.both(|client| client.handle_segment(now, path, &segment));
            } else {
                self.serve(path, &segment);
            }
        }
        if self.predicting.poll_timeout().is_some_and(|at| at <= now) {
            self.both(|client| client.handle_timeout(now));
        }
        self.both(|client| client.read(now, u64::MAX));
        if let Some(server) = &mut self.server {
            if server.poll_timeout().is_some_and(|at| at <= now) {
                server.handle_timeout(now);
            }
            server.read(now, u64::MAX);
        }
        self.flush();
        // To write down the whole state takes long.
        if self.below(16) == 0 {
            assert_eq!(Self::state(&self.predicting), Self::state(&self.checking), "at {}", self.now);
        }
        true
    }

    fn serve(&mut self, path: PathId, segment: &Segment) {
        let seed = self.draw.next();
        match &mut self.server {
            Some(server) => drop(server.handle_segment(self.now, path, segment)),
            None if segment.flags == Flags::SYN => {
                let config = Self::config(seed);
                let mut server = Connection::accept(config, Box::new(Seeded(seed)), self.now, path, segment)
                    .expect("a valid configuration");
                server.write(BYTES);
                server.finish();
                self.server = Some(server);
            }
            None => {}
        }
    }
}

#[test]
fn prediction_and_the_ordered_checks_give_the_same_on_random_segments() {
    let (mut predicted, mut acknowledging) = (0, 0);
    for seed in 0..64 {
        let mut clients = Clients::new(seed);
        clients.flush();
        for _ in 0..STEPS {
            if !clients.step() {
                break;
            }
        }
        predicted += clients.predicted;
        acknowledging += clients.acknowledging;
    }
    assert!(predicted > 6_000, "{predicted} segments were predicted");
    assert!(acknowledging > 300, "nothing but acknowledgments could be sent {acknowledging} times");
}
