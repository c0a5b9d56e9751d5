//! Consecutive connections of a session: a player may close its connection and open another one.
//!
//! The old one is aborted, as a browser closes a socket with unread data: its client sends a reset, and until that
//! arrives the server continues to send. So both of its ends stay until they are closed, and data in flight still uses
//! the links. Connections of one session differ in the client's ports.

use super::side::Side;
use anabranch_events::{Log, TransportEvent};
use anabranch_network::Streams;
use anabranch_observation::Observer;
use anabranch_segment::Segment;
use anabranch_stack::connection::{Config, Connection, Entropy};
use anabranch_units::{Instant, PathId, SubflowId};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

/// The first of the dynamic ports (RFC 6335 section 6).
const FIRST_EPHEMERAL_PORT: u16 = 49_152;
/// Ports of one connection: one for each of its subflows, also for those that replace others.
const PORTS_PER_CONNECTION: u16 = 64;
/// After this many connections the ports are used again; the first connection is closed by then.
const PORT_BLOCKS: u32 = ((u16::MAX - FIRST_EPHEMERAL_PORT) / PORTS_PER_CONNECTION) as u32;
/// Numbers reserved for subflows that the server of an aborted connection may still accept.
const SPARE_NUMBERS: u16 = 8;

/// Keys, sequence numbers and nonces from the run's seed.
struct SeededEntropy(ChaCha8Rng);

impl Entropy for SeededEntropy {
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// Opens a session's connections.
pub(super) struct Dialer {
    client: Config,
    server: Config,
    seed: u64,
    /// The session's name, as a path.
    name: String,
    dialed: u32,
    /// See [`Connection::report_decisions`].
    reports: bool,
}

/// Parameters of the server's end.
pub(super) struct Listener {
    config: Config,
    entropy: SeededEntropy,
}

impl Dialer {
    pub fn new(client: Config, server: Config, seed: u64, name: &str, reports: bool) -> Self {
        Dialer { client, server, seed, name: name.replace(' ', "/"), dialed: 0, reports }
    }

    /// The client's end of the next connection, and the parameters of its server's end.
    ///
    /// # Panics
    /// If the transport refuses options that were accepted when the scenario was loaded.
    pub fn dial(&mut self) -> (Connection, Listener) {
        let stream = if self.dialed == 0 { "entropy".to_string() } else { format!("entropy/{}", self.dialed) };
        let entropy = |side: &str| {
            let name = format!("{}/{side}", self.name);
            SeededEntropy(Streams::new(self.seed, name).stream(&stream))
        };
        let config = Config { local_port: first_port(self.dialed), ..self.client.clone() };
        let client = Connection::client(config, Box::new(entropy("client")));
        let mut client = client.expect("the scenario's options were checked");
        client.report_decisions(self.reports);
        let listener = Listener { config: self.server.clone(), entropy: entropy("server") };
        self.dialed += 1;
        (client, listener)
    }

    /// Number of earlier connections.
    pub fn present(&self) -> u32 {
        self.dialed - 1
    }
}

impl Listener {
    /// The server's end, if it accepts this SYN.
    pub fn accept(self, now: Instant, path: PathId, syn: &Segment) -> Option<Connection> {
        Connection::accept(self.config, Box::new(self.entropy), now, path, syn).ok()
    }
}

fn first_port(connection: u32) -> u16 {
    FIRST_EPHEMERAL_PORT + (connection % PORT_BLOCKS) as u16 * PORTS_PER_CONNECTION
}

/// A connection that was replaced.
pub(super) struct Retired {
    /// Number of the connection in the session.
    number: u32,
    /// Offset of its subflows' numbers in the session's events.
    first_subflow: u16,
    client: Connection,
    server: Option<Connection>,
}

impl Retired {
    pub fn new(number: u32, first_subflow: u16, client: Connection, server: Option<Connection>) -> Self {
        Retired { number, first_subflow, client, server }
    }

    /// Offset of the subflows' numbers of the next connection.
    pub fn next_first(observer: &Observer) -> u16 {
        observer.subflows_seen() + SPARE_NUMBERS
    }

    /// Whether a segment to `side` belongs to this connection.
    pub fn takes(&self, side: Side, segment: &Segment) -> bool {
        let port = if side == Side::Client { segment.destination_port } else { segment.source_port };
        port.checked_sub(first_port(self.number)).is_some_and(|offset| offset < PORTS_PER_CONNECTION)
    }

    /// The number in the session's events of the subflow that sent a segment from `side`, and the offset of its
    /// payload.
    pub fn origin_of(&self, side: Side, path: PathId, segment: &Segment) -> Option<(SubflowId, Option<u64>)> {
        let end = if side == Side::Client { Some(&self.client) } else { self.server.as_ref() };
        let (subflow, offset) = end?.origin_of(path, segment)?;
        Some((raised(subflow, self.first_subflow), offset))
    }

    pub fn end(&mut self, side: Side) -> Option<&mut Connection> {
        if side == Side::Client { Some(&mut self.client) } else { self.server.as_mut() }
    }

    pub fn poll_timeout(&self, side: Side) -> Option<Instant> {
        if side == Side::Client { self.client.poll_timeout() } else { self.server.as_ref()?.poll_timeout() }
    }

    /// Whether both ends are closed.
    pub fn is_over(&self) -> bool {
        self.client.is_over() && self.server.as_ref().is_none_or(Connection::is_over)
    }

    /// Passes the events of an end to the observer.
    pub fn drain_events(&mut self, side: Side, observer: &mut Observer) {
        let first = self.first_subflow;
        let Some(log) = self.end(side).map(Connection::log) else { return };
        see(observer, side, log, first);
    }
}

/// Passes the events of one end of a connection to the observer.
#[inline]
pub(super) fn see(observer: &mut Observer, side: Side, log: &mut Log<TransportEvent>, first_subflow: u16) {
    if first_subflow > 0 && !log.is_empty() {
        raise_numbers(log, first_subflow);
    }
    match side {
        Side::Client => observer.see_receiver(log),
        Side::Server => observer.see_sender(log),
    }
}

/// Subflows of later connections have the numbers after those of the first.
#[cold]
fn raise_numbers(log: &mut Log<TransportEvent>, first_subflow: u16) {
    let mut raised = Log::default();
    for (at, event) in log.drain() {
        raised.emit(at, event.map_subflows(|subflow| self::raised(subflow, first_subflow)));
    }
    *log = raised;
}

/// The number in the session's events of a subflow of the connection whose first has this number.
pub(super) fn raised(subflow: SubflowId, first: u16) -> SubflowId {
    SubflowId(subflow.0.saturating_add(first))
}
