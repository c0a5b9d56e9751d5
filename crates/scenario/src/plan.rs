//! The connections of a scenario with their endpoints' configurations and players, for whatever engine runs them.

use crate::schema::{Action, Bulk, DirectionSpec, Player as PlayerSpec, Scenario, Session, Statistics, Traffic, Video};
use anabranch_media::{Content, Exchanges, FileOptions, PLAYERS, Player, PlayerOptions, PlayerSetup};
use anabranch_network::Streams;
use anabranch_segment::{BASE_HEADER_LEN, DataSeq, Dss, Mapping, TIMESTAMPS_LEN};
use anabranch_stack::connection::{Config, PathConfig, Protocol, Transport};
use anabranch_stack::view::Hints;
use anabranch_units::{Duration, Instant, PathId};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use rand::RngExt as _;

/// One connection and its applications.
pub struct FlowPlan {
    /// Such as `session 0`.
    pub name: String,
    /// When the client connects.
    pub start: Instant,
    /// Positions of its paths in the scenario's list; the first carries the initial subflow.
    pub paths: Vec<usize>,
    /// How its endpoints behave.
    pub transport: Transport,
    /// The client's end.
    pub client: Config,
    /// The server's end.
    pub server: Config,
    /// What is transferred.
    pub content: Content,
    /// Who asks for it.
    pub player: Box<dyn Player + Send>,
    /// What the player and the server at the other end share.
    pub exchanges: Exchanges,
    /// What the server knows about its application.
    pub hints: Hints,
    /// What is measured of a DASH video, and when.
    pub statistics: Statistics,
    /// Payload of a full segment on the first path, in bytes.
    pub full_payload: u32,
    /// Whether it is a session, for whose end the run waits; otherwise it is cross traffic.
    pub is_session: bool,
}

/// The connections of a scenario: every session's, then all cross traffic's. The seed decides when each begins within
/// its spread.
///
/// # Panics
/// If the scenario was not made by [`load`](crate::load).
pub fn plan(scenario: &Scenario, seed: u64) -> Vec<FlowPlan> {
    let mut planner = Planner { scenario, seed, flows: Vec::new() };
    for session in &scenario.sessions {
        planner.add_session(session);
    }
    let sessions = planner.flows.len();
    for traffic in &scenario.traffic {
        planner.add_traffic(traffic, sessions);
    }
    planner.flows
}

struct Planner<'a> {
    scenario: &'a Scenario,
    seed: u64,
    flows: Vec<FlowPlan>,
}

impl Planner<'_> {
    fn add_session(&mut self, session: &Session) {
        let content = session.video.content();
        let (paths, transport) = (self.scenario.paths_of(session), self.scenario.transport_of(session));
        let statistics = session.statistics.clone().unwrap_or_default();
        for start in session.starts.earliest() {
            let name = format!("session {}", self.flows.len());
            let start = self.begin(&name, start, session.starts.start_spread);
            let hints = Hints { consumption_rate: session.video.rate(), message_end: None };
            let part = Part { name, start, paths: &paths, transport, hints, is_session: true };
            self.add(&part, &session.player, content.clone(), statistics.clone());
        }
    }

    fn add_traffic(&mut self, traffic: &Traffic, sessions: usize) {
        let transport = Transport {
            protocol: Protocol::Tcp,
            congestion_control: traffic.congestion_control.clone(),
            ..self.scenario.transport.clone()
        };
        for start in traffic.starts.earliest() {
            let name = format!("traffic {}", self.flows.len() - sessions);
            let start = self.begin(&name, start, traffic.starts.start_spread);
            let duration = traffic.stop.map(|stop| (Instant::ZERO + stop).since(start));
            let file = FileOptions { duration, ..FileOptions::default() };
            let options = PlayerOptions { file, ..PlayerOptions::default() };
            let player = PlayerSpec { kind: "bulk".into(), options };
            let content = Video::Bulk(Bulk { size: traffic.size }).content();
            let paths = [self.scenario.path_position(&traffic.path)];
            let hints = Hints::default();
            let part = Part { name, start, paths: &paths, transport: &transport, hints, is_session: false };
            self.add(&part, &player, content, Statistics::default());
        }
    }

    /// When a session begins: at any nanosecond of the spread after the start.
    fn begin(&self, name: &str, start: Duration, spread: Duration) -> Instant {
        let mut draws = Streams::new(self.seed, name).stream("start");
        Instant::ZERO + start + Duration::from_nanos(draws.random_range(0..=spread.as_nanos()))
    }

    fn add(&mut self, part: &Part<'_>, player: &PlayerSpec, content: Content, statistics: Statistics) {
        let exchanges = Exchanges::new();
        let entry = PLAYERS.find(&player.kind).expect("the scenario's players were checked");
        let setup = PlayerSetup { content, exchanges: exchanges.clone(), options: player.options.clone() };
        self.flows.push(FlowPlan {
            name: part.name.clone(),
            start: part.start,
            paths: part.paths.to_vec(),
            transport: part.transport.clone(),
            client: self.config(part, true),
            server: self.config(part, false),
            player: (entry.create)(&setup).expect("the scenario's players were checked"),
            content: setup.content,
            exchanges,
            hints: part.hints,
            statistics,
            full_payload: self.payload(part),
            is_session: part.is_session,
        });
    }

    /// Payload of a full segment on the first path: what the conditions of path switches count packets in.
    fn payload(&self, part: &Part<'_>) -> u32 {
        let path = self.path_config(part.paths[0], true);
        let timestamps = if part.transport.timestamps { TIMESTAMPS_LEN } else { 0 };
        let dss = match part.transport.protocol {
            Protocol::Tcp => 0,
            Protocol::Mptcp => {
                let dsn = DataSeq { value: 0, wide: part.transport.wide_data_seq };
                let mapping = Mapping { dsn, subflow_offset: 0, len: 0, checksum: None };
                Dss { data_ack: Some(dsn), mapping: Some(mapping), data_fin: false }.encoded_len()
            }
        };
        path.mtu.saturating_sub(path.ip_header() + BASE_HEADER_LEN + timestamps + dss).max(1)
    }

    fn config(&self, part: &Part<'_>, client: bool) -> Config {
        let t = part.transport;
        let paths: Vec<PathConfig> = part.paths.iter().map(|path| self.path_config(*path, client)).collect();
        let own = part.paths.iter().filter_map(|path| {
            let choice = self.scenario.paths[*path].congestion_control.as_ref()?;
            Some((PathId(*path as u16), choice.clone()))
        });
        let mut config = Config { transport: t.clone(), ..Config::new(t.protocol, paths) };
        // Cross traffic has its own control, whatever the path says about the sessions'.
        config.path_congestion_control = if part.is_session { own.collect() } else { Vec::new() };
        config.mtu_discovery = part.paths.iter().any(|path| self.hides_mtu(*path));
        config.remote_port = SERVER_PORT;
        // The client's port is its dialer's choice.
        config.local_port = SERVER_PORT;
        config
    }

    /// Whether a link of the path has an MTU that the endpoints do not know, or gets one by an event.
    fn hides_mtu(&self, path: usize) -> bool {
        let links = self.scenario.links_of(&self.scenario.paths[path]);
        let hides = |direction: Option<&DirectionSpec>| direction.is_some_and(DirectionSpec::hides_mtu);
        let at_first = links.iter().map(|link| &self.scenario.links[*link]);
        at_first.into_iter().any(|link| link.up.hides_mtu() || link.down.hides_mtu())
            || self.scenario.events.iter().any(|event| match event.action(self.scenario) {
                Action::Link { link, down, up, .. } => links.contains(&link) && (hides(down) || hides(up)),
                Action::Path { .. } | Action::Session { .. } => false,
            })
    }

    fn path_config(&self, path: usize, client: bool) -> PathConfig {
        let spec = &self.scenario.paths[path];
        let links = self.scenario.links_of(spec).into_iter().map(|link| &self.scenario.links[link]);
        let known = links.flat_map(|link| [&link.up, &link.down]).filter(|direction| !direction.hides_mtu());
        let mtu = known.filter_map(|direction| direction.mtu).min().unwrap_or(USUAL_MTU);
        let (near, far) = addresses(path, spec.ip);
        let (local, remote) = if client { (near, far) } else { (far, near) };
        PathConfig { id: PathId(path as u16), local, remote, mtu, backup: spec.backup, metered: spec.metered }
    }
}

/// The largest packet of an interface where no link says another: Ethernet's.
const USUAL_MTU: u32 = 1500;

/// HTTP's.
const SERVER_PORT: u16 = 80;

/// What sessions and cross traffic have in common.
struct Part<'a> {
    name: String,
    start: Instant,
    paths: &'a [usize],
    transport: &'a Transport,
    hints: Hints,
    is_session: bool,
}

/// The client's address on a path of this position and IP version, and the server's. The client has one per path, the
/// server one of each family.
pub fn addresses(path: usize, version: u8) -> (IpAddr, IpAddr) {
    let [high, low] = (path as u16 + 1).to_be_bytes();
    if version == 6 {
        let address = |host: u16| IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, host, 0, 0, 0, 1));
        (address(path as u16 + 1), address(0))
    } else {
        (IpAddr::V4(Ipv4Addr::new(10, high, low, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)))
    }
}
