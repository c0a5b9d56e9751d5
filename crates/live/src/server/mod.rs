//! A server made of our endpoint: it assigns packets to connections, converts them to segments and back, and stores the
//! bytes that the endpoint handles only by offset.

mod application;
mod clients;
mod counters;
mod limits;
mod orphans;
mod receive_pool;
mod resets;
mod slot;
mod time_wait;
mod train;

pub use application::{Application, ConnectionId, Opened, Progress, QueueingDelays, Reply};
pub use counters::{Counters, Gauges, PathCounters};
pub use limits::Limits;
pub use orphans::Orphan;

use crate::Host;
use crate::entropy::SystemEntropy;
use crate::tun::Offload;
use anabranch_segment::{Flags, MptcpOption, Segment};
use anabranch_stack::connection::{Entropy, PathConfig, TooBig};
use anabranch_stack::external::{DecisionTimes, ExternalParts};
use anabranch_stack::options::OptionError;
use anabranch_stack::{Config, Connection};
use anabranch_units::{Instant, PathId};
use anabranch_wire::{Packet, decode, decode_too_big, encode};
use application::socket_address;
use clients::Clients;
use orphans::Orphans;
use receive_pool::ReceivePool;
use resets::Answers;
use slot::{FlowRecord, Slot};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use time_wait::{Lookup, TimeWait};

/// Addresses of a subflow's packets, by which the subflow is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FlowKey {
    path: PathId,
    local: (IpAddr, u16),
    remote: (IpAddr, u16),
}

/// Who completes the checksums of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The server.
    Here,
    /// The kernel or the interface, which also cut up packets that carry several segments.
    Kernel,
}

/// A packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The path to send it on.
    pub path: PathId,
    /// Its length in the buffer.
    pub len: usize,
    /// The number of packets that it is once it was cut up.
    pub packets: u32,
    /// Their bytes, IP headers included.
    pub bytes: usize,
    /// What is left to do with it, if anything is.
    pub offload: Option<Offload>,
}

/// A server that accepts connections on one port and gives each an application of its own.
pub struct Server<F, A> {
    config: Config,
    limits: Limits,
    open: F,
    accepting: bool,
    slots: Vec<Option<Slot<A>>>,
    /// Slots that are empty.
    free: Vec<usize>,
    next_serial: u64,
    /// Connections with a handshake in progress, oldest first, by their serial number.
    half_open: BTreeMap<u64, usize>,
    /// Connections whose client has not asked for anything yet, likewise.
    silent: BTreeMap<u64, usize>,
    flows: HashMap<FlowKey, usize>,
    tokens: HashMap<u32, usize>,
    timers: BTreeSet<(Instant, usize)>,
    /// Connections that may have segments to send, in the order in which they changed.
    active: VecDeque<usize>,
    /// Answers to segments of no connection.
    answers: Answers,
    time_wait: TimeWait,
    orphans: Orphans,
    /// Open connections of each client.
    clients: Clients,
    receive_pool: ReceivePool,
    counters: Counters,
    /// Counters of each path, in the order of the configuration.
    path_counters: Vec<PathCounters>,
}

/// Who makes a connection's parts that are in no registry, and knows whether one has failed.
type Parts = Arc<dyn ExternalParts>;

/// Why a subflow's path is in the configuration.
const OURS: &str = "packets on paths that are not configured are refused, and the configured paths stay";

/// Subflows of a connection that are remembered. Beyond, those that have ended out of order, or never began, are
/// forgotten.
const MAX_FLOWS: usize = 256;

impl<F, A> Server<F, A> {
    /// Tries all names and options of a configuration on a connection that is never used.
    ///
    /// # Errors
    /// If the scheduler or a congestion control does not exist or refuses its options.
    pub fn check(config: &Config, limits: Limits) -> Result<(), OptionError> {
        let mut config = config.clone();
        limits.cap(&mut config);
        Connection::client(config, Box::new(SystemEntropy)).map(drop)
    }

    /// Gives new connections another configuration, which [`Server::check`] has accepted and which has the same paths
    /// and the same port, and all connections other limits. Those of memory hold for new connections.
    pub fn reconfigure(&mut self, mut config: Config, limits: Limits) {
        limits.cap(&mut config);
        self.receive_pool.resize(limits.receive_memory);
        (self.config, self.limits) = (config, limits);
    }
}

impl<A: Application, F: FnMut(Opened) -> A> Server<F, A> {
    /// A server that gives each connection `config` and calls `open` for its application. The local port of the
    /// configuration is the listening port, and the paths' local addresses are the server's; the remote ones are set
    /// when clients connect.
    ///
    /// # Errors
    /// If the scheduler or a congestion control does not exist or refuses its options.
    pub fn new(mut config: Config, limits: Limits, open: F) -> Result<Self, OptionError> {
        Self::check(&config, limits)?;
        limits.cap(&mut config);
        let path_counters = vec![PathCounters::default(); config.paths.len()];
        Ok(Server {
            path_counters,
            config,
            limits,
            open,
            accepting: true,
            slots: Vec::new(),
            free: Vec::new(),
            next_serial: 0,
            half_open: BTreeMap::new(),
            silent: BTreeMap::new(),
            flows: HashMap::new(),
            tokens: HashMap::new(),
            timers: BTreeSet::new(),
            active: VecDeque::new(),
            answers: Answers::new(limits.resets_per_second),
            time_wait: TimeWait::new(limits.time_waits),
            orphans: Orphans::default(),
            clients: Clients::default(),
            receive_pool: ReceivePool::new(limits.receive_memory),
            counters: Counters::default(),
        })
    }

    /// Counters so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Segments sent on each path, in the order of the configuration.
    pub fn path_counters(&self) -> &[PathCounters] {
        &self.path_counters
    }

    /// How long the decisions of parts that are in no registry took, if the host of the present configuration measures
    /// that.
    pub fn decision_times(&self) -> Option<DecisionTimes> {
        self.config.external_parts()?.decision_times()
    }

    /// Current values.
    pub fn gauges(&self) -> Gauges {
        let mut gauges = Gauges {
            half_open: self.half_open.len() as u64,
            time_waits: self.time_wait.len() as u64,
            subflows: vec![0; self.config.paths.len()],
            receive_room: self.receive_pool.taken(),
            ..Gauges::default()
        };
        for slot in self.slots.iter().flatten().filter(|slot| slot.application.is_some()) {
            gauges.open += 1;
            gauges.multipath += u64::from(slot.connection.is_multipath());
            gauges.send_queue += slot.owed();
            gauges.receive_queue += slot.connection.readable();
            gauges.receive_memory += slot.receive_memory();
            for view in slot.connection.views().iter().filter(|view| view.established) {
                gauges.subflows[position(&self.config, view.path).expect(OURS)] += 1;
            }
        }
        gauges
    }

    /// The connections whose handshake is complete and that have not ended.
    pub fn connections(&mut self) -> impl Iterator<Item = (&mut Connection, &mut A)> {
        let open = self.slots.iter_mut().flatten();
        open.filter_map(|slot| Some((&mut slot.connection, slot.application.as_mut()?)))
    }

    /// The subflows of all open connections, and those of an earlier server that are not reset yet, for the state of a
    /// server that may be killed.
    pub fn open_subflows(&self) -> Vec<Orphan> {
        let open =
            self.slots.iter().flatten().filter(|slot| slot.application.is_some() && !slot.connection.is_closed());
        let subflows = open.flat_map(|slot| {
            let key = slot.connection.peer_key();
            slot.flows.iter().filter(|record| record.end().is_none()).map(move |record| Orphan {
                path: record.flow.path,
                local: socket_address(record.flow.local),
                remote: socket_address(record.flow.remote),
                key,
            })
        });
        subflows.chain(self.orphans.left()).collect()
    }

    /// Resets the subflows of an earlier server. Those at other addresses, or on other paths, are ignored.
    pub fn reset_orphans(&mut self, now: Instant, orphans: &[Orphan]) {
        for orphan in orphans {
            let end = |address: std::net::SocketAddr| (address.ip(), address.port());
            let flow = FlowKey { path: orphan.path, local: end(orphan.local), remote: end(orphan.remote) };
            if self.is_ours(flow) {
                self.orphans.adopt(now, flow, orphan.key);
            }
        }
    }

    /// Number of handshakes in progress.
    pub fn half_open(&self) -> usize {
        self.half_open.len()
    }

    /// Forgets the subflows whose TIME-WAIT is over. A segment does the same, but may not come.
    pub fn expire(&mut self, now: Instant) {
        self.time_wait.expire(now);
    }

    /// Number of subflows in TIME-WAIT.
    pub fn time_waits(&self) -> usize {
        self.time_wait.len()
    }

    /// Whether no connection is left, half-open ones apart.
    pub fn is_idle(&self) -> bool {
        self.established() == 0
    }

    fn established(&self) -> usize {
        self.slots.len() - self.free.len() - self.half_open.len()
    }

    /// Stops answering SYNs of new connections; existing ones continue.
    pub fn stop_accepting(&mut self) {
        self.accepting = false;
    }

    /// Aborts all connections.
    pub fn abort_all(&mut self, now: Instant) {
        for index in 0..self.slots.len() {
            if let Some(slot) = &mut self.slots[index] {
                slot.connection.abort(now);
                slot.poll_application(now, &mut self.receive_pool);
            }
            self.touch(index);
        }
    }

    /// Polls the application of a connection again. Has no effect on a connection that has ended.
    pub fn wake(&mut self, now: Instant, id: ConnectionId) {
        let slot = self.slots.get_mut(id.index).and_then(Option::as_mut);
        if slot.is_some_and(|slot| slot.serial == id.serial) {
            self.poll(now, id.index);
        }
    }

    /// The connection that a segment belongs to, or that it joins.
    fn find(&mut self, flow: FlowKey, segment: &Segment) -> Option<usize> {
        if let Some(&index) = self.flows.get(&flow) {
            let ended = self.slots[index].as_ref().is_some_and(|slot| slot.connection.is_closed());
            if !(ended && opens(segment.flags)) {
                return Some(index);
            }
            // The client reuses its port, so the old connection is closed.
            self.remove(index);
        }
        let token = segment.mptcp.iter().find_map(|option| match option {
            MptcpOption::JoinSyn { token, .. } => Some(*token),
            _ => None,
        });
        let index = *self.tokens.get(&token.filter(|_| opens(segment.flags))?)?;
        let slot = self.slots[index].as_mut()?;
        if slot.flows.len() == MAX_FLOWS {
            for record in slot.drop_dead_flows() {
                self.flows.remove(&record.flow);
            }
        }
        if slot.flows.len() == MAX_FLOWS {
            return None;
        }
        slot.flows.push(FlowRecord::new(flow));
        self.flows.insert(flow, index);
        Some(index)
    }

    /// Whether the segment opens a new connection.
    fn asks(&self, flow: FlowKey, segment: &Segment) -> bool {
        let joins = segment.mptcp.iter().any(|option| matches!(option, MptcpOption::JoinSyn { .. }));
        opens(segment.flags) && !joins && flow.local.1 == self.config.local_port
    }

    /// Accepts or refuses a new connection. One whose parts cannot be made is refused with RST: trying again would not
    /// help.
    fn accept(&mut self, now: Instant, flow: FlowKey, segment: &Segment) {
        self.orphans.forget(flow);
        let full = self.established() >= self.limits.connections && self.silent.is_empty();
        if !self.accepting || full || self.clients.is_full(flow.remote.0, self.limits.per_address) {
            self.counters.refused += 1;
            return;
        }
        let Ok((connection, parts)) = self.connect(now, flow, segment) else {
            self.counters.unmade += 1;
            return self.answers.reset(now, flow, segment);
        };
        if self.half_open.len() >= self.limits.half_open.max(1)
            && let Some((_, oldest)) = self.half_open.pop_first()
        {
            self.counters.displaced += 1;
            self.remove(oldest);
        }
        self.counters.accepted += 1;
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let serial = self.next_serial;
        self.next_serial += 1;
        self.tokens.insert(connection.token(), index);
        self.flows.insert(flow, index);
        self.half_open.insert(serial, index);
        self.slots[index] = Some(Slot::new(now, serial, (connection, parts), flow, self.limits.idle));
        self.touch(index);
    }

    /// The endpoint for a SYN, and what makes its parts if the host has a maker for each connection.
    ///
    /// # Errors
    /// If a part of the host's cannot be made: its constructor may fail although it did not when the configuration was
    /// checked.
    fn connect(
        &self,
        now: Instant,
        flow: FlowKey,
        segment: &Segment,
    ) -> Result<(Connection, Option<Parts>), OptionError> {
        let mut config = self.config.clone();
        // The initial subflow's path comes first. The addresses of the others are known when their joins arrive.
        let known = position(&config, flow.path).expect(OURS);
        config.paths[..=known].rotate_right(1);
        config.paths[0] = PathConfig { remote: flow.remote.0, ..config.paths[0] };
        let parts = config.external_parts().and_then(|host| host.for_connection(socket_address(flow.remote)));
        if let Some(parts) = &parts {
            config.set_external_parts(parts);
        }
        let connection = Connection::accept(config, Box::new(SystemEntropy), now, flow.path, segment)?;
        Ok((connection, parts))
    }

    /// Passes a segment to its connection, and polls the application.
    fn deliver(&mut self, now: Instant, index: usize, path: PathId, segment: &Segment, payload: &[u8]) {
        let Some(slot) = &mut self.slots[index] else { return };
        slot.handle_segment(now, path, segment, payload);
        if slot.application.is_none() && slot.connection.is_established() && !slot.connection.is_closed() {
            self.open_slot(now, index);
        }
        self.poll(now, index);
    }

    /// Polls the application of a connection, and notes whether its client has asked for something.
    fn poll(&mut self, now: Instant, index: usize) {
        let Some(slot) = &mut self.slots[index] else { return };
        slot.poll_application(now, &mut self.receive_pool);
        if !self.silent.is_empty() && slot.has_request() {
            self.silent.remove(&slot.serial);
        }
        self.touch(index);
    }

    /// The handshake of a connection is complete: gives it its application, or aborts it if others completed theirs
    /// since its SYN and the limit is reached. Who only completes handshakes keeps no client out: the oldest connection
    /// without a request gives way. It does so now and not at the SYN, whose address may be forged.
    fn open_slot(&mut self, now: Instant, index: usize) {
        let others = self.established();
        let Some(slot) = &mut self.slots[index] else { return };
        self.half_open.remove(&slot.serial);
        let FlowKey { local, remote, .. } = slot.flows[0].flow;
        let full = others >= self.limits.connections && self.silent.is_empty();
        if full || self.clients.is_full(remote.0, self.limits.per_address) {
            self.counters.refused += 1;
            return slot.connection.abort(now);
        }
        self.clients.enter(remote.0);
        slot.counted = true;
        let id = ConnectionId::new(index, slot.serial);
        let opened = Opened { id, local: socket_address(local), remote: socket_address(remote) };
        slot.application = Some((self.open)(opened));
        let serial = slot.serial;
        if others >= self.limits.connections {
            self.displace_silent(now);
        }
        self.silent.insert(serial, index);
    }

    /// Aborts the oldest connection without a request.
    fn displace_silent(&mut self, now: Instant) {
        let Some((_, index)) = self.silent.pop_first() else { return };
        let Some(slot) = &mut self.slots[index] else { return };
        self.counters.silent += 1;
        slot.connection.abort(now);
        slot.poll_application(now, &mut self.receive_pool);
        self.touch(index);
    }

    /// Notes that a connection may have segments to send and another timeout.
    fn touch(&mut self, index: usize) {
        let Some(slot) = &mut self.slots[index] else { return };
        if !slot.queued {
            slot.queued = true;
            self.active.push_back(index);
        }
    }

    /// The connection has no more segments to send for now: notes its timeout, or removes it if it has ended.
    fn settle(&mut self, now: Instant, index: usize) {
        let Some(slot) = &mut self.slots[index] else { return };
        slot.queued = false;
        slot.pass_events();
        let position = |path| position(&self.config, path).expect(OURS);
        if slot.connection.has_mtu_reductions() {
            for reduction in slot.connection.take_mtu_reductions() {
                self.path_counters[position(reduction.path)].note_mtu(reduction);
            }
        }
        if slot.connection.has_false_acknowledgments() {
            for path in slot.connection.take_false_acknowledgments() {
                self.path_counters[position(path)].false_acknowledgments += 1;
            }
        }
        if slot.connection.is_closed() && slot.forget_at.is_none() {
            slot.forget_at = Some(now + self.limits.closing);
            // It has closed by itself, so the application does not know.
            slot.poll_application(now, &mut self.receive_pool);
        }
        if (slot.connection.is_over() && slot.drained()) || slot.forget_at.is_some_and(|at| at <= now) {
            for record in &slot.flows {
                if let Some(end) = record.end() {
                    self.time_wait.remember(now + self.limits.time_wait, record.flow, end);
                }
            }
            return self.remove(index);
        }
        let timer = slot.poll_timeout(&self.limits);
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
        let Some(mut slot) = self.slots[index].take() else { return };
        self.counters.closed += 1;
        self.receive_pool.change(&mut slot.room, 0);
        self.free.push(index);
        if slot.counted {
            self.clients.leave(slot.flows[0].flow.remote.0);
        }
        self.half_open.remove(&slot.serial);
        self.silent.remove(&slot.serial);
        self.tokens.remove(&slot.connection.token());
        for record in &slot.flows {
            self.flows.remove(&record.flow);
        }
        if let Some(timer) = slot.timer {
            self.timers.remove(&(timer, index));
        }
    }

    /// A packet that is no TCP: the report of a router that a packet of ours was too big for the next link, or nothing
    /// that is known here. A report may come by another path than the packet went.
    #[cold]
    fn receive_other(&mut self, now: Instant, path: PathId, packet: &[u8]) {
        let Some(report) = decode_too_big(packet) else {
            self.counters.undecodable += 1;
            return;
        };
        let paths = self.config.paths.iter().map(|path| path.id);
        let flow = |path| FlowKey { path, local: report.source, remote: report.destination };
        let mut flows = std::iter::once(path).chain(paths).map(flow);
        let found = flows.find_map(|flow| Some((flow.path, *self.flows.get(&flow)?)));
        let believed = found.is_some_and(|(path, index)| {
            let (local_port, remote_port) = (report.source.1, report.destination.1);
            let report = TooBig { local_port, remote_port, seq: report.seq, packet: report.packet, mtu: report.mtu };
            let slot = self.slots[index].as_mut();
            let believed = slot.is_some_and(|slot| slot.connection.handle_too_big(now, path, &report));
            self.touch(index);
            believed
        });
        self.counters.reports_ignored += u64::from(!believed);
    }

    /// A segment of no connection that does not open one.
    fn answer_unknown(&mut self, now: Instant, flow: FlowKey, segment: &Segment) {
        self.counters.unknown += 1;
        if let Some(reset) = self.orphans.reset(flow, segment) {
            return self.answers.push(flow, reset);
        }
        self.answers.reset(now, flow, segment);
    }

    fn transmit_answer(&mut self, buffer: &mut [u8]) -> Option<Outgoing> {
        let (flow, segment) = self.answers.pop()?;
        let len = encode(buffer, flow.local.0, flow.remote.0, &segment, |_| {}).ok()?;
        Some(Outgoing { path: flow.path, len, packets: 1, bytes: len, offload: None })
    }

    /// Writes the next packet of one connection.
    fn transmit(&mut self, now: Instant, index: usize, finish: Finish, buffer: &mut [u8]) -> Option<Outgoing> {
        let slot = self.slots[index].as_mut()?;
        while let Some(transmit) = slot.poll_transmit(now) {
            let sent = position(&self.config, transmit.path).and_then(|position| {
                slot.encode(now, transmit, position, &mut self.path_counters[position], finish, buffer)
            });
            if sent.is_some() {
                return sent;
            }
            self.counters.unsendable += 1;
        }
        None
    }

    /// As [`Host::poll_transmit`]; a packet may be left to the kernel to finish.
    pub fn poll_packet(&mut self, now: Instant, finish: Finish, buffer: &mut [u8]) -> Option<Outgoing> {
        while let Some(&index) = self.active.front() {
            self.abort_failed(now, index);
            if let Some(sent) = self.transmit(now, index, finish, buffer) {
                if self.slots[index].as_mut().is_some_and(|slot| slot.ends_turn(sent.bytes)) {
                    self.active.rotate_left(1);
                }
                return Some(sent);
            }
            // The question what to send may have been what failed. Then the resets are next.
            if self.abort_failed(now, index) {
                continue;
            }
            self.active.pop_front();
            self.settle(now, index);
        }
        self.transmit_answer(buffer)
    }

    /// Aborts a connection of which a part has failed; returns whether it did.
    fn abort_failed(&mut self, now: Instant, index: usize) -> bool {
        let Some(slot) = self.slots[index].as_mut().filter(|slot| slot.has_failed()) else { return false };
        self.counters.failed += 1;
        slot.connection.abort(now);
        slot.poll_application(now, &mut self.receive_pool);
        true
    }

    fn is_ours(&self, flow: FlowKey) -> bool {
        self.config.paths.iter().any(|path| path.id == flow.path && path.local == flow.local.0)
    }
}

impl<A: Application, F: FnMut(Opened) -> A> Host for Server<F, A> {
    fn receive(&mut self, now: Instant, path: PathId, packet: &[u8]) {
        let Ok(Packet { source, destination, segment, payload }) = decode(packet) else {
            return self.receive_other(now, path, packet);
        };
        let local = (destination, segment.destination_port);
        let flow = FlowKey { path, local, remote: (source, segment.source_port) };
        if !self.is_ours(flow) {
            self.counters.misdirected += 1;
            return;
        }
        if let Some(index) = self.find(flow, &segment) {
            return self.deliver(now, index, path, &segment, payload);
        }
        match self.time_wait.look_up(now, flow, &segment) {
            Lookup::Answer(answer) => self.answers.acknowledge(now, flow, answer),
            Lookup::Ignore => {}
            Lookup::Unknown if self.asks(flow, &segment) => self.accept(now, flow, &segment),
            Lookup::Unknown => self.answer_unknown(now, flow, &segment),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        for (flow, question) in self.orphans.ask(now, || SystemEntropy.next_u64()) {
            self.answers.push(flow, question);
        }
        while let Some(&(at, index)) = self.timers.first() {
            if at > now {
                return;
            }
            self.timers.pop_first();
            if let Some(slot) = &mut self.slots[index] {
                slot.timer = None;
                slot.connection.handle_timeout(now);
                let why = slot.check_timeouts(now, &self.limits);
                self.counters.give_up(why);
            }
            self.touch(index);
        }
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<(PathId, usize)> {
        self.poll_packet(now, Finish::Here, buffer).map(|sent| (sent.path, sent.len))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.timers.first().map(|(at, _)| *at), self.orphans.poll_timeout()].into_iter().flatten().min()
    }
}

/// The position of a path in the configuration, if it is there.
fn position(config: &Config, path: PathId) -> Option<usize> {
    config.paths.iter().position(|listed| listed.id == path)
}

/// A SYN without contradicting flags.
fn opens(flags: Flags) -> bool {
    flags.contains(Flags::SYN) && ![Flags::ACK, Flags::RST, Flags::FIN].iter().any(|other| flags.contains(*other))
}
