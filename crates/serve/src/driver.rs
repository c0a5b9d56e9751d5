//! The real-time loop of a server: devices, clock, endpoint. It runs on a thread of its own and gets messages through
//! [`Wakes`].

use super::Listen;
use super::channel::{Ready, Wake, lock};
use super::devices;
use super::loop_waker::LoopWaker;
use super::meter::Meter;
use super::pacing::Pacing;
use super::state::Writer;
use super::status::{Board, PathStatus, Status, Traffic};
use super::stream::{ReadyConnections, StreamApplication};
use anabranch_live::{
    Clock, ConnectionId, Counters, Finish, Host, Limits, Opened, Outgoing, Server, Tap, Tun, Waiter, sharpen_timers,
};
use anabranch_stack::Config;
use anabranch_units::{Duration, Instant, LinkDirection, PathId};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

/// The largest IP packet.
const MAX_PACKET: usize = 65_535;
/// Packets read from a device, or sent, before others get their turn: few enough (about 0.1 ms of work) for timely
/// processing.
const BATCH: usize = 64;
/// How long clients of aborted connections are still answered: more than most round trips.
const LINGER: Duration = Duration::from_millis(300);
/// Interval of the published status, and the longest sleep of the loop.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);
/// How old the list of open subflows may be. A client that connected since then is not reset after a crash.
const STATE_EVERY: Duration = Duration::from_millis(100);

/// What the loop should do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Order {
    /// Serve clients.
    Run = 0,
    /// Accept no new connections.
    Refuse = 1,
    /// Accept no new connections, and return when no connection is left.
    Finish = 2,
    /// Abort all connections with RST and return.
    Abort = 3,
}

/// Messages to the loop.
#[derive(Debug)]
pub(super) struct Wakes {
    pub(super) ready: Arc<ReadyConnections>,
    order: AtomicU8,
    /// The configuration of new connections and the limits, if they were changed.
    changed: Mutex<Option<(Config, Limits)>>,
}

impl Wakes {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Wakes {
            ready: Arc::new(Ready::new(LoopWaker::new()?)),
            order: AtomicU8::new(Order::Run as u8),
            changed: Mutex::default(),
        })
    }

    /// Changes the order; orders are never withdrawn.
    pub(super) fn order(&self, order: Order) {
        self.order.fetch_max(order as u8, Ordering::Relaxed);
        self.ready.waker().wake();
    }

    /// Changes the configuration of new connections, and the limits.
    pub(super) fn reconfigure(&self, config: Config, limits: Limits) {
        *lock(&self.changed) = Some((config, limits));
        self.ready.waker().wake();
    }

    fn take_changed(&self) -> Option<(Config, Limits)> {
        lock(&self.changed).take()
    }

    /// Takes the connections that became ready since the last call.
    fn take(&self, into: &mut Vec<ConnectionId>) {
        self.ready.waker().clear();
        self.ready.take(into);
    }

    fn event(&self) -> BorrowedFd<'_> {
        self.ready.waker().as_fd()
    }

    fn ordered(&self, order: Order) -> bool {
        self.order.load(Ordering::Relaxed) >= order as u8
    }
}

/// A path of the loop.
#[derive(Debug)]
pub(super) struct Port {
    device: Arc<Tun>,
    /// The device is gone, and the path carries nothing until it is back.
    gone: bool,
    listen: Listen,
    received: Traffic,
    sent: Traffic,
    refused: u64,
}

impl Port {
    pub(super) fn new(device: Arc<Tun>, listen: Listen) -> Self {
        Port { device, gone: false, listen, received: Traffic::default(), sent: Traffic::default(), refused: 0 }
    }

    fn write(&mut self, packet: &[u8], sent: &Outgoing) {
        let written = match &sent.offload {
            _ if self.gone => Ok(false),
            Some(offload) => self.device.write_unfinished(packet, offload),
            None => self.device.write(packet),
        };
        // A packet refused by the device counts as a loss of the network; so do those of a path without one.
        match written {
            Ok(true) => self.sent.count(sent.packets, sent.bytes),
            Ok(false) => self.refused += u64::from(sent.packets),
            Err(_) => {
                self.gone = true;
                self.refused += u64::from(sent.packets);
            }
        }
    }

    /// Reads one packet; `None` if there is none, or no device any more.
    fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        if self.gone {
            return None;
        }
        let read = self.device.read(buffer);
        self.gone = read.is_err();
        read.unwrap_or_default()
    }

    /// Uses the device again if it is back.
    fn recover(&mut self) {
        if self.device.is_attached() {
            // What failed was the operation, not the device.
            self.gone = false;
        } else if let Some(device) = devices::reopen(&self.listen.device) {
            (self.device, self.gone) = (device, false);
        }
    }
}

/// The state of the loop.
pub(super) struct Driver<F> {
    pub(super) ports: Vec<Port>,
    pub(super) server: Server<F, StreamApplication>,
    /// Who completes the server's packets.
    pub(super) finish: Finish,
    pub(super) tap: Tap,
    pub(super) board: Arc<Board>,
    pub(super) meter: Meter,
    /// The pacing of new connections.
    pub(super) pacing: Arc<Mutex<Option<Arc<Pacing>>>>,
    pub(super) state: Option<Writer>,
    /// When the list of open subflows is due, after packets that may have changed it.
    pub(super) state_due: Option<Instant>,
    /// All connections were aborted; when to return.
    pub(super) linger_until: Option<Instant>,
}

impl<F: FnMut(Opened) -> StreamApplication> Driver<F> {
    /// Serves until it is ordered to end; returns the server's counters.
    pub(super) fn run(mut self, wakes: &Wakes) -> io::Result<Counters> {
        sharpen_timers()?;
        let clock = Clock::new();
        let mut ports = std::mem::take(&mut self.ports);
        for port in &ports {
            self.tap.interface(port.device.name())?;
        }
        let mut buffer = vec![0; MAX_PACKET];
        loop {
            if let Some(counters) = self.serve(&clock, wakes, &mut ports, &mut buffer)? {
                self.tap.finish()?;
                if let Some(state) = self.state.take() {
                    state.finish();
                }
                return Ok(counters);
            }
        }
    }

    /// Serves until it is ordered to end, or until the set of devices is another one: one is gone, and its path with
    /// it, or is back.
    fn serve(
        &mut self,
        clock: &Clock,
        wakes: &Wakes,
        ports: &mut [Port],
        buffer: &mut [u8],
    ) -> io::Result<Option<Counters>> {
        let waited_for: Vec<_> = ports.iter().map(|port| !port.gone).collect();
        let files: Vec<_> = ports.iter().map(|port| port.device.try_clone()).collect::<io::Result<_>>()?;
        // In the place of a device that is gone the loop's own event is waited for, and nothing is read.
        let wanted =
            files.iter().zip(&waited_for).map(|(file, there)| if *there { file.as_fd() } else { wakes.event() });
        let mut waiter = Waiter::new(wanted.chain([wakes.event()]));
        let (mut woken, mut publish_at) = (Vec::new(), Instant::ZERO);
        loop {
            let now = clock.now();
            if now >= publish_at {
                ports.iter_mut().filter(|port| port.gone).for_each(Port::recover);
                self.publish(now, ports);
                publish_at = now + PUBLISH_EVERY;
            }
            if ports.iter().zip(&waited_for).any(|(port, waited_for)| port.gone == *waited_for) {
                return Ok(None);
            }
            if self.server.poll_timeout().is_some_and(|at| at <= now) {
                self.server.handle_timeout(now);
            }
            let more = self.send(now, ports, buffer)?;
            if !more && self.is_done(now, wakes) {
                self.publish(now, ports);
                return Ok(Some(self.server.counters()));
            }
            self.keep_state(now);
            let next = [self.linger_until, self.state_due].into_iter().flatten().fold(publish_at, Instant::min);
            let due = self.server.poll_timeout().map_or(next, |at| at.min(next));
            waiter.wait(clock, if more { now } else { due })?;
            // Before packets: a client that connects after the options were read again gets the new ones.
            if waiter.ready(ports.len()) {
                self.handle_messages(clock.now(), wakes, &mut woken);
            }
            for (i, port) in ports.iter_mut().enumerate().filter(|(i, _)| waiter.ready(*i)) {
                self.receive(clock, PathId(i as u16), port, buffer)?;
            }
        }
    }

    fn handle_messages(&mut self, now: Instant, wakes: &Wakes, woken: &mut Vec<ConnectionId>) {
        wakes.take(woken);
        for id in woken.drain(..) {
            self.server.wake(now, id);
        }
        if let Some((config, limits)) = wakes.take_changed() {
            self.server.reconfigure(config, limits);
        }
        if wakes.ordered(Order::Refuse) {
            self.server.stop_accepting();
        }
        if wakes.ordered(Order::Abort) && self.linger_until.is_none() {
            self.linger_until = Some(now + LINGER);
            let open = self.server.open_subflows();
            self.server.abort_all(now);
            // The resets may be lost; then the clients' next segments are answered with others.
            self.server.reset_orphans(now, &open);
        }
    }

    fn is_done(&self, now: Instant, wakes: &Wakes) -> bool {
        match self.linger_until {
            Some(until) => until <= now,
            None => wakes.ordered(Order::Finish) && self.server.is_idle(),
        }
    }

    /// Sends some of the waiting packets; returns whether there may be more.
    fn send(&mut self, now: Instant, ports: &mut [Port], buffer: &mut [u8]) -> io::Result<bool> {
        let mut packets = 0;
        while packets < BATCH {
            let Some(sent) = self.server.poll_packet(now, self.finish, buffer) else { return Ok(false) };
            let packet = &buffer[..sent.len];
            self.tap.at_far_end(now, sent.path, LinkDirection::Down, packet)?;
            ports[sent.path.index()].write(packet, &sent);
            packets += sent.packets as usize;
        }
        Ok(true)
    }

    fn receive(&mut self, clock: &Clock, path: PathId, port: &mut Port, buffer: &mut [u8]) -> io::Result<()> {
        for _ in 0..BATCH {
            let Some(len) = port.read(buffer) else { return Ok(()) };
            let now = clock.now();
            if self.state.is_some() {
                self.state_due.get_or_insert(now + STATE_EVERY);
            }
            port.received.count(1, len);
            self.tap.at_far_end(now, path, LinkDirection::Up, &buffer[..len])?;
            self.server.receive(now, path, &buffer[..len]);
        }
        Ok(())
    }

    /// Writes the list of open subflows, if it is due.
    fn keep_state(&mut self, now: Instant) {
        if let Some(state) = self.state.as_mut().filter(|_| self.state_due.is_some_and(|at| at <= now)) {
            // A list that is still being written is tried again.
            self.state_due = (!state.update(self.server.open_subflows())).then(|| now + STATE_EVERY);
        }
    }

    fn publish(&mut self, now: Instant, ports: &[Port]) {
        self.server.expire(now);
        let gauges = self.server.gauges();
        let paths = ports.iter().zip(self.server.path_counters()).zip(&gauges.subflows);
        let paths = paths.map(|((port, segments), subflows)| PathStatus {
            gone: port.gone,
            device: port.listen.device.clone(),
            address: port.listen.address,
            metered: port.listen.metered,
            received: port.received,
            sent: port.sent,
            refused: port.refused,
            segments: *segments,
            subflows: *subflows,
        });
        let pacing = lock(&self.pacing).clone();
        let status = Status {
            uptime: std::time::Duration::from_nanos(now.as_nanos()),
            counters: self.server.counters(),
            paths: paths.collect(),
            held: self.meter.bytes(),
            decisions: self.server.decision_times().unwrap_or_default(),
            pacing: pacing.map(|pacing| pacing.counts()).unwrap_or_default(),
            gauges,
        };
        self.board.publish(status);
    }
}
