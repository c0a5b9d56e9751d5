//! Two connected endpoints, and a third party that loses, repeats, delays and changes their segments and adds its own.
//!
//! Nothing may panic; both ends may only report payload that lies within the segment that carried it, and read no more
//! than could have been sent to them; and nothing keeps an endpoint busy for ever without time passing.

use anabranch_segment::{DataSeq, Dss, Flags, Mapping, MptcpOption, MptcpOptions, ResetReason, SackBlock, Segment};
use anabranch_stack::connection::{Choice, Commit, Entropy, Failover, PathConfig, Protocol};
use anabranch_stack::{Config, Connection, scheduler};
use anabranch_units::{Duration, Instant, PathId, SeqNumber};
use arbitrary::{Arbitrary, Result, Unstructured};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

const PATHS: u16 = 2;
/// Segments that one call of an endpoint may cause; a window of tiny segments is less.
const MAX_BURST: usize = 100_000;
/// Segments that wait for the third party; the oldest are lost.
const MAX_QUEUE: usize = 256;

/// SplitMix64 (Steele, Lea, Flood 2014), so that runs are repeatable.
struct Counter(u64);

impl Entropy for Counter {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[derive(Arbitrary, Clone, Copy)]
enum Side {
    Client,
    Server,
}

/// What the third party does next.
#[derive(Arbitrary)]
enum Action {
    /// The oldest segment on the way to that side arrives.
    Deliver(Side),
    /// All of them do.
    DeliverAll(Side),
    Lose(Side),
    Repeat(Side),
    /// It arrives behind all others.
    Delay(Side),
    /// It arrives with changes.
    Change(Side, Changes),
    /// Something like it arrives on another path.
    Divert(Side, Changes),
    Wait(u16),
    /// To the next deadline of that side.
    Expire(Side),
    Write(Side, u16),
    Read(Side, u16),
    Finish(Side),
    Path(Side, bool),
    Abort(Side),
}

/// Small and large steps away from what is right.
#[derive(Arbitrary)]
struct Changes {
    flags: Option<u8>,
    seq: i16,
    ack: i16,
    far: Option<u32>,
    window: Option<u16>,
    payload_len: Option<u16>,
    sack: Option<(i16, i16)>,
    dss: Option<(bool, i32, i16, u16, Option<i32>, bool)>,
    strip: bool,
    option: Option<(u8, u64)>,
}

impl Changes {
    fn apply(&self, segment: &mut Segment) {
        if let Some(flags) = self.flags {
            segment.flags = Flags(flags);
        }
        segment.seq = SeqNumber(segment.seq.0.wrapping_add_signed(i32::from(self.seq)));
        segment.ack = SeqNumber(segment.ack.0.wrapping_add_signed(i32::from(self.ack)));
        if let Some(far) = self.far {
            segment.seq = SeqNumber(segment.seq.0.wrapping_add(far));
        }
        segment.window = self.window.unwrap_or(segment.window);
        segment.payload_len = self.payload_len.map_or(segment.payload_len, u32::from);
        if let Some((start, len)) = self.sack {
            let start = segment.ack.0.wrapping_add_signed(i32::from(start));
            let end = SeqNumber(start.wrapping_add_signed(i32::from(len)));
            segment.sack.push(SackBlock { start: SeqNumber(start), end });
        }
        self.change_mptcp(segment);
    }

    fn change_mptcp(&self, segment: &mut Segment) {
        if self.strip {
            segment.dss = None;
            segment.mptcp = MptcpOptions::NONE;
        }
        if let Some((wide, by, offset, len, ack, data_fin)) = self.dss {
            let old = segment.dss.unwrap_or_default();
            let near = |old: Option<DataSeq>, by: i32| {
                let value = old.map_or(0, |old| old.value).wrapping_add_signed(i64::from(by));
                DataSeq { value: if wide { value } else { value & 0xffff_ffff }, wide }
            };
            let dsn = near(old.mapping.map(|mapping| mapping.dsn), by);
            let old_offset = old.mapping.map_or(0, |mapping| mapping.subflow_offset);
            let subflow_offset = old_offset.wrapping_add_signed(i32::from(offset));
            let mapping = Some(Mapping { dsn, subflow_offset, len, checksum: None });
            segment.dss = Some(Dss { data_ack: ack.map(|by| near(old.data_ack, by)), mapping, data_fin });
        }
        let Some((kind, value)) = self.option else { return };
        segment.mptcp.push(match kind % 6 {
            0 => MptcpOption::Priority { backup: value & 1 == 1 },
            1 => MptcpOption::Fail { dsn: value },
            2 => MptcpOption::FastClose { receiver_key: value },
            3 => MptcpOption::JoinSyn { backup: false, address_id: 3, token: value as u32, nonce: 1 },
            4 => MptcpOption::Reset { transient: true, reason: ResetReason::Unspecified },
            _ => MptcpOption::JoinAck { hmac: [value as u8; 20] },
        });
    }
}

struct End {
    connection: Option<Connection>,
    finished: bool,
    /// On their way here.
    arriving: VecDeque<(PathId, Segment)>,
}

struct World {
    kind: Kind,
    now: Instant,
    client: End,
    server: End,
}

/// What both ends are, apart from the defaults.
#[derive(Arbitrary, Clone, Copy)]
struct Kind {
    scheduler: u8,
    into_buffer: bool,
    upstream: bool,
    wide: bool,
}

fn config(kind: Kind) -> Config {
    let address = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
    let path = |i: u16| PathConfig {
        id: PathId(i),
        local: address(1),
        remote: address(2),
        mtu: 1500,
        backup: false,
        metered: false,
    };
    let mut config = Config::new(Protocol::Mptcp, (0..PATHS).map(path).collect());
    (config.local_port, config.remote_port) = (7000, 7000);
    let schedulers = scheduler::REGISTRY;
    config.transport.scheduler = Choice::of(schedulers[usize::from(kind.scheduler) % schedulers.len()].name);
    config.transport.commit = if kind.into_buffer { Commit::IntoBuffer } else { Commit::AtWindow };
    config.transport.failover = if kind.upstream { Failover::Upstream } else { Failover::Legacy };
    config.transport.subflow_windows = kind.upstream;
    config.transport.wide_data_seq = kind.wide;
    config
}

/// Puts what one end has to say on its way to the other.
fn say(now: Instant, from: &mut End, to: &mut End) {
    let Some(connection) = &mut from.connection else { return };
    let mut burst = 0;
    while let Some(transmit) = connection.poll_transmit(now) {
        burst += 1;
        assert!(burst < MAX_BURST, "an endpoint talks for ever");
        to.arriving.push_back((transmit.path, transmit.segment));
    }
    while to.arriving.len() > MAX_QUEUE {
        to.arriving.pop_front();
    }
    connection.log().drain().for_each(drop);
}

impl World {
    fn new(kind: Kind) -> Self {
        let client = Connection::client(config(kind), Box::new(Counter(1))).expect("a valid configuration");
        let end = |connection| End { connection, finished: false, arriving: VecDeque::new() };
        let mut world = World { kind, now: Instant::ZERO, client: end(Some(client)), server: end(None) };
        world.talk();
        world
    }

    fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// Puts what both have to say on its way.
    fn talk(&mut self) {
        say(self.now, &mut self.client, &mut self.server);
        say(self.now, &mut self.server, &mut self.client);
    }

    fn arrive(&mut self, side: Side, path: PathId, segment: &Segment) {
        let (now, kind) = (self.now, self.kind);
        let end = self.end(side);
        match &mut end.connection {
            Some(connection) => {
                if let Some(placed) = connection.handle_segment(now, path, segment) {
                    let fits = placed.payload_start.checked_add(placed.len).is_some_and(|at| at <= segment.payload_len);
                    assert!(fits, "{placed:?} of {segment:?}");
                }
            }
            None if segment.flags == Flags::SYN => {
                let accepted = Connection::accept(config(kind), Box::new(Counter(2)), now, path, segment);
                end.connection = Some(accepted.expect("a valid configuration"));
            }
            None => {}
        }
        self.talk();
    }

    fn wait(&mut self, duration: Duration) {
        self.now += duration;
        for end in [&mut self.client, &mut self.server] {
            if let Some(connection) = &mut end.connection
                && connection.poll_timeout().is_some_and(|at| at <= self.now)
            {
                connection.handle_timeout(self.now);
            }
        }
        self.talk();
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Deliver(side) => {
                if let Some((path, segment)) = self.end(side).arriving.pop_front() {
                    self.arrive(side, path, &segment);
                }
            }
            Action::DeliverAll(side) => {
                for (path, segment) in std::mem::take(&mut self.end(side).arriving) {
                    self.arrive(side, path, &segment);
                }
            }
            Action::Lose(side) => drop(self.end(side).arriving.pop_front()),
            Action::Repeat(side) => {
                if let Some((path, segment)) = self.end(side).arriving.front().cloned() {
                    self.arrive(side, path, &segment);
                }
            }
            Action::Delay(side) => {
                let arriving = &mut self.end(side).arriving;
                arriving.rotate_left(usize::from(!arriving.is_empty()));
            }
            Action::Change(side, changes) => self.forge(side, &changes, 0),
            Action::Divert(side, changes) => self.forge(side, &changes, 1),
            Action::Wait(ms) => self.wait(Duration::from_millis(u64::from(ms))),
            Action::Expire(side) => {
                let deadline = self.end(side).connection.as_ref().and_then(Connection::poll_timeout);
                if let Some(at) = deadline {
                    self.wait(at.since(self.now));
                }
            }
            ref other => self.command(other),
        }
    }

    fn forge(&mut self, side: Side, changes: &Changes, divert: u16) {
        if let Some((path, mut segment)) = self.end(side).arriving.pop_front() {
            changes.apply(&mut segment);
            self.arrive(side, PathId((path.0 + divert) % PATHS), &segment);
        }
    }

    fn command(&mut self, action: &Action) {
        let now = self.now;
        let (Action::Write(side, _)
        | Action::Read(side, _)
        | Action::Finish(side)
        | Action::Path(side, _)
        | Action::Abort(side)) = *action
        else {
            return;
        };
        let end = self.end(side);
        let Some(connection) = &mut end.connection else { return };
        match *action {
            Action::Write(_, bytes) if !end.finished => connection.write(u64::from(bytes)),
            Action::Read(_, max) => {
                let readable = connection.readable();
                let taken = connection.read(now, u64::from(max));
                assert_eq!(taken, readable.min(u64::from(max)));
            }
            Action::Finish(_) => {
                end.finished = true;
                connection.finish();
            }
            Action::Path(_, up) => connection.handle_path_change(now, PathId(1), up),
            Action::Abort(_) => connection.abort(now),
            _ => {}
        }
        self.talk();
    }
}

fn play(mut input: Unstructured<'_>) -> Result<()> {
    let mut world = World::new(Kind::arbitrary(&mut input)?);
    // Most inputs are about connected endpoints.
    if input.ratio(7, 8)? {
        for _ in 0..6 {
            world.act(Action::DeliverAll(Side::Server));
            world.act(Action::DeliverAll(Side::Client));
            world.wait(Duration::from_millis(10));
        }
    }
    while !input.is_empty() {
        world.act(Action::arbitrary(&mut input)?);
    }
    Ok(())
}

/// Plays what the bytes say.
pub fn run(data: &[u8]) {
    let _ = play(Unstructured::new(data));
}
