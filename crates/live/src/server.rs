//! A server made of our endpoint: it tells connections apart, turns packets into segments and back, and keeps the bytes that
//! the endpoint knows only by offset.

use crate::Host;
use crate::buffer::ReceiveBuffer;
use crate::entropy::SystemEntropy;
use anabranch_segment::{Flags, MptcpOption, Segment};
use anabranch_stack::connection::PathConfig;
use anabranch_stack::options::OptionError;
use anabranch_stack::{Config, Connection, Transmit};
use anabranch_units::{Duration, Instant, PathId};
use anabranch_wire::{Packet, decode, encode};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;

/// What a connection's application wants to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Bytes that it appends to its stream; [`Application::fill`] gives them.
    pub bytes: u64,
    /// Nothing will follow.
    pub finish: bool,
}

/// The application of one connection.
pub trait Application {
    /// Bytes arrived, in order.
    fn receive(&mut self, bytes: &[u8]) -> Reply;

    /// Writes the bytes of the sending stream from `offset` on, all of which a [`Reply`] has announced. Any of them may be asked for
    /// again until the peer has acknowledged them.
    fn fill(&self, offset: u64, buffer: &mut [u8]);
}

/// Where a subflow's packets come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Flow {
    path: PathId,
    local: (IpAddr, u16),
    remote: (IpAddr, u16),
}

/// A connection and what the host keeps for it.
struct Slot<A> {
    connection: Connection,
    application: A,
    received: ReceiveBuffer,
    /// Its subflows, open ones and those that once were.
    flows: Vec<Flow>,
    /// When to forget it, once it is closed, though its subflows are not.
    forget_at: Option<Instant>,
    /// The entry in the set of timers, if there is one.
    timer: Option<Instant>,
    /// Whether it stands in the queue of those that may have something to send.
    queued: bool,
}

/// What a server counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections that ended.
    pub closed: u64,
    /// Packets that could not be understood.
    pub undecodable: u64,
    /// Segments that belong to no connection, answered with RST.
    pub unknown: u64,
    /// Segments that the endpoint wanted to send and that could not be encoded or had no address: always zero,
    /// unless the endpoint has a fault.
    pub unsendable: u64,
}

/// A server that accepts connections on one port and hands each to an application of its own.
pub struct Server<F, A> {
    config: Config,
    open: F,
    slots: Vec<Option<Slot<A>>>,
    flows: HashMap<Flow, usize>,
    tokens: HashMap<u32, usize>,
    timers: BTreeSet<(Instant, usize)>,
    /// Connections that may have something to send, in the order in which they were touched.
    active: VecDeque<usize>,
    /// Answers to segments of no connection.
    resets: VecDeque<(Flow, Segment)>,
    counters: Counters,
}

/// How long the subflows of a closed connection may take to say goodbye (Linux's `net.mptcp.close_timeout`).
const LINGER: Duration = Duration::from_secs(60);

/// Subflows that a connection may ever have had; more only serve an attacker.
const MAX_FLOWS: usize = 256;

/// Answers to unknown segments that may wait; a flood gets no more.
const MAX_RESETS: usize = 64;

impl<A: Application, F: FnMut() -> A> Server<F, A> {
    /// A server that gives each connection `config` (its local port is the one that is listened on; the remote addresses of
    /// its paths are filled in as clients come) and calls `open` for its application.
    ///
    /// # Errors
    /// If the scheduler or a congestion control does not exist or refuses its options.
    pub fn new(config: Config, open: F) -> Result<Self, OptionError> {
        // A connection that goes nowhere tries all names and options.
        Connection::client(config.clone(), Box::new(SystemEntropy))?;
        Ok(Server {
            config,
            open,
            slots: Vec::new(),
            flows: HashMap::new(),
            tokens: HashMap::new(),
            timers: BTreeSet::new(),
            active: VecDeque::new(),
            resets: VecDeque::new(),
            counters: Counters::default(),
        })
    }

    /// What was counted so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The connections that have not ended, oldest first.
    pub fn connections(&mut self) -> impl Iterator<Item = (&mut Connection, &mut A)> {
        self.slots.iter_mut().flatten().map(|slot| (&mut slot.connection, &mut slot.application))
    }

    /// The connection that a segment belongs to, or that it joins.
    fn find(&mut self, flow: Flow, segment: &Segment) -> Option<usize> {
        if let Some(&index) = self.flows.get(&flow) {
            let ended = self.slots[index].as_ref().is_some_and(|slot| slot.connection.is_closed());
            if !(ended && opens(segment.flags)) {
                return Some(index);
            }
            // The client uses its port again; it knows that the old connection is over.
            self.remove(index);
        }
        let token = segment.mptcp.iter().find_map(|option| match option {
            MptcpOption::JoinSyn { token, .. } => Some(*token),
            _ => None,
        });
        let index = *self.tokens.get(&token.filter(|_| opens(segment.flags))?)?;
        let slot = self.slots[index].as_mut()?;
        if slot.flows.len() == MAX_FLOWS {
            return None;
        }
        slot.flows.push(flow);
        self.flows.insert(flow, index);
        Some(index)
    }

    /// Takes up a new connection if the segment asks for one.
    fn accept(&mut self, now: Instant, flow: Flow, segment: &Segment) -> Option<usize> {
        let joins = segment.mptcp.iter().any(|option| matches!(option, MptcpOption::JoinSyn { .. }));
        if joins || !opens(segment.flags) || flow.local.1 != self.config.local_port {
            return None;
        }
        let connection = self.connect(now, flow, segment)?;
        self.counters.accepted += 1;
        let index = self.slots.iter().position(Option::is_none).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.tokens.insert(connection.token(), index);
        self.flows.insert(flow, index);
        self.slots[index] = Some(Slot {
            connection,
            application: (self.open)(),
            received: ReceiveBuffer::default(),
            flows: vec![flow],
            forget_at: None,
            timer: None,
            queued: false,
        });
        Some(index)
    }

    /// The endpoint for a SYN; none if it came by a path that is not configured.
    fn connect(&self, now: Instant, flow: Flow, segment: &Segment) -> Option<Connection> {
        let mut config = self.config.clone();
        // The initial subflow's path comes first. The addresses of the others are known when their joins arrive.
        let known = config.paths.iter().position(|path| path.id == flow.path)?;
        config.paths[..=known].rotate_right(1);
        config.paths[0] = PathConfig { local: flow.local.0, remote: flow.remote.0, ..config.paths[0] };
        match Connection::accept(config, Box::new(SystemEntropy), now, flow.path, segment) {
            Ok(connection) => Some(connection),
            // `Server::new` has tried the same names and options.
            Err(error) => panic!("the configuration was checked: {error}"),
        }
    }

    /// Hands a segment to its connection, stores its payload and lets the application read what is in order.
    fn deliver(&mut self, now: Instant, index: usize, path: PathId, segment: &Segment, payload: &[u8]) {
        let Some(slot) = &mut self.slots[index] else { return };
        if let Some(placed) = slot.connection.handle_segment(now, path, segment) {
            let start = placed.payload_start as usize;
            slot.received.store(placed.stream_offset, &payload[start..start + placed.len as usize]);
        }
        slot.let_application_read(now);
        self.touch(index);
    }

    /// Notes that a connection may have something to send and another deadline.
    fn touch(&mut self, index: usize) {
        let Some(slot) = &mut self.slots[index] else { return };
        if !slot.queued {
            slot.queued = true;
            self.active.push_back(index);
        }
    }

    /// The connection has nothing more to send for now: notes when to wake it, or removes it if it has ended.
    fn settle(&mut self, now: Instant, index: usize) {
        let Some(slot) = &mut self.slots[index] else { return };
        slot.queued = false;
        // Nobody listens yet.
        slot.connection.log().drain().for_each(drop);
        if slot.connection.is_closed() && slot.forget_at.is_none() {
            slot.forget_at = Some(now + LINGER);
        }
        if slot.connection.is_over() || slot.forget_at.is_some_and(|at| at <= now) {
            return self.remove(index);
        }
        let timer = [slot.connection.poll_timeout(), slot.forget_at].into_iter().flatten().min();
        if timer != slot.timer {
            if let Some(old) = slot.timer {
                self.timers.remove(&(old, index));
            }
            if let Some(new) = timer {
                self.timers.insert((new, index));
            }
            slot.timer = timer;
        }
    }

    fn remove(&mut self, index: usize) {
        let Some(slot) = self.slots[index].take() else { return };
        self.counters.closed += 1;
        self.tokens.remove(&slot.connection.token());
        for flow in &slot.flows {
            self.flows.remove(flow);
        }
        if let Some(timer) = slot.timer {
            self.timers.remove(&(timer, index));
        }
    }

    /// Answers a segment that belongs to no connection (RFC 9293 section 3.10.7.1).
    fn reset(&mut self, flow: Flow, segment: &Segment) {
        self.counters.unknown += 1;
        if segment.flags.contains(Flags::RST) || self.resets.len() == MAX_RESETS {
            return;
        }
        let mut reset = Segment::new(Flags::RST);
        (reset.source_port, reset.destination_port) = (flow.local.1, flow.remote.1);
        if segment.flags.contains(Flags::ACK) {
            reset.seq = segment.ack;
        } else {
            reset.flags = Flags::RST | Flags::ACK;
            reset.ack = segment.seq + segment.sequence_len();
        }
        self.resets.push_back((flow, reset));
    }

    fn transmit_reset(&mut self, buffer: &mut [u8]) -> Option<(PathId, usize)> {
        let (flow, segment) = self.resets.pop_front()?;
        let len = encode(buffer, flow.local.0, flow.remote.0, &segment, |_| {}).ok()?;
        Some((flow.path, len))
    }

    /// Writes the next packet of one connection.
    fn transmit(&mut self, now: Instant, index: usize, buffer: &mut [u8]) -> Option<(PathId, usize)> {
        let slot = self.slots[index].as_mut()?;
        while let Some(transmit) = slot.connection.poll_transmit(now) {
            match slot.encode(&transmit, buffer) {
                Some(len) => return Some((transmit.path, len)),
                None => self.counters.unsendable += 1,
            }
        }
        None
    }
}

impl<A: Application, F: FnMut() -> A> Host for Server<F, A> {
    fn receive(&mut self, now: Instant, path: PathId, packet: &[u8]) {
        let Ok(Packet { source, destination, segment, payload }) = decode(packet) else {
            self.counters.undecodable += 1;
            return;
        };
        let local = (destination, segment.destination_port);
        let flow = Flow { path, local, remote: (source, segment.source_port) };
        if let Some(index) = self.find(flow, &segment) {
            self.deliver(now, index, path, &segment, payload);
        } else if let Some(index) = self.accept(now, flow, &segment) {
            self.touch(index);
        } else {
            self.reset(flow, &segment);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, index)) = self.timers.first() {
            if at > now {
                return;
            }
            self.timers.pop_first();
            if let Some(slot) = &mut self.slots[index] {
                slot.timer = None;
                slot.connection.handle_timeout(now);
            }
            self.touch(index);
        }
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<(PathId, usize)> {
        while let Some(&index) = self.active.front() {
            if let Some(sent) = self.transmit(now, index, buffer) {
                return Some(sent);
            }
            self.active.pop_front();
            self.settle(now, index);
        }
        self.transmit_reset(buffer)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }
}

impl<A: Application> Slot<A> {
    /// Hands everything that is in order to the application, and its answer to the endpoint.
    fn let_application_read(&mut self, now: Instant) {
        let Slot { connection, application, received, .. } = self;
        let len = connection.read(now, u64::MAX);
        received.consume(len as usize, |bytes| {
            let reply = application.receive(bytes);
            connection.write(reply.bytes);
            if reply.finish {
                connection.finish();
            }
        });
    }

    /// The packet for a segment; none if it does not fit into a header, or its subflow is not known here.
    fn encode(&self, transmit: &Transmit, buffer: &mut [u8]) -> Option<usize> {
        let Transmit { path, segment, stream_offset } = transmit;
        let ports = (segment.source_port, segment.destination_port);
        let flow = self.flows.iter().find(|flow| flow.path == *path && (flow.local.1, flow.remote.1) == ports)?;
        let fill = |payload: &mut [u8]| self.application.fill(*stream_offset, payload);
        encode(buffer, flow.local.0, flow.remote.0, segment, fill).ok()
    }
}

/// A SYN and nothing that contradicts it.
fn opens(flags: Flags) -> bool {
    flags.contains(Flags::SYN) && ![Flags::ACK, Flags::RST, Flags::FIN].iter().any(|other| flags.contains(*other))
}
