//! Links in real time: between two namespaces, or between a namespace and a host in this process.

use crate::idle_states::NoIdleStates;
use crate::middlebox::{ActiveMiddlebox, Middlebox, MiddleboxCounts};
use crate::packet::{BytesPacket, Pool};
use crate::script::{Script, Step};
use anabranch_live::{Clock, Host, Tap, Tun, Waiter, sharpen_timers};
use anabranch_network::{Count, Direction, Histogram, Stats, Streams};
use anabranch_units::{Duration, Instant, LinkDirection, PathId, PerDirection};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// The largest IP packet that a device can return, in bytes.
const MAX_PACKET: usize = 65_535;

/// Packets read from one device before the others get their turn and due packets are delivered: enough to save system
/// calls, few enough (about 0.1 ms of work) for timely delivery.
const READ_BATCH: usize = 32;

/// How often the stop flag is checked without other activity.
const STOP_INTERVAL: Duration = Duration::from_millis(20);

/// Seed of the middleboxes' random numbers. In real time the order of packets is not reproducible, so the seed need not
/// differ from run to run.
const MIDDLEBOX_SEED: u64 = 1;

/// The far end of a link, as seen from the client.
#[derive(Debug)]
pub enum Far {
    /// A device in a server's namespace.
    Device(Tun),
    /// The [`Host`] in this process.
    Host,
}

/// No host: for links between two namespaces.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHost;

impl Host for NoHost {
    fn receive(&mut self, _: Instant, _: PathId, _: &[u8]) {}

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, _: &mut [u8]) -> Option<(PathId, usize)> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

/// One path with a link of its own: a device in the client's namespace, and both directions of the link between it and
/// the far end.
pub struct EmulatedPath {
    /// The client's device.
    pub client: Tun,
    /// The far end.
    pub far: Far,
    /// From the client.
    pub up: Direction<BytesPacket>,
    /// To the client.
    pub down: Direction<BytesPacket>,
    /// The middlebox in front of it.
    pub middlebox: Middlebox,
}

/// Both directions of a link that several paths may share.
pub struct Pipes {
    /// From clients.
    pub up: Direction<BytesPacket>,
    /// To clients.
    pub down: Direction<BytesPacket>,
    /// The middlebox in front of it.
    pub middlebox: Middlebox,
}

/// The ends of a path, and the links between them.
pub struct Route {
    /// The client's device.
    pub client: Tun,
    /// The far end.
    pub far: Far,
    /// Positions of its links, from the client to the far end.
    pub links: Vec<usize>,
}

/// A network in which several paths may share a link, and a path may have several.
pub struct Topology {
    /// The links; a [`Step`]'s path is a position here, and a report has one entry for each.
    pub links: Vec<Pipes>,
    /// The paths, by their [`PathId`].
    pub paths: Vec<Route>,
}

impl From<Vec<EmulatedPath>> for Topology {
    fn from(list: Vec<EmulatedPath>) -> Self {
        let (mut links, mut paths) = (Vec::new(), Vec::new());
        for (i, EmulatedPath { client, far, up, down, middlebox }) in list.into_iter().enumerate() {
            links.push(Pipes { up, down, middlebox });
            paths.push(Route { client, far, links: vec![i] });
        }
        Topology { links, paths }
    }
}

/// Counters of a link, which are those of a path unless paths share it.
#[derive(Clone, Debug)]
pub struct LinkReport {
    /// Of its whole run.
    pub stats: PerDirection<Stats>,
    /// What was in it at the end.
    pub inside: PerDirection<Count>,
    /// Packets changed by its middlebox.
    pub middlebox: PerDirection<MiddleboxCounts>,
}

/// Counters of an emulator.
#[derive(Clone, Debug)]
pub struct EmulatorReport {
    /// Counters of each link.
    pub paths: Vec<LinkReport>,
    /// How much later than due packets were delivered, all directions together. If this is not small compared with the
    /// links' delays, a run measured the machine, not the links.
    pub lateness: Histogram,
    /// Packets that a kernel refused, as it does while an interface is down.
    pub refused: u64,
}

/// Links in real time.
pub struct Emulator<H> {
    clock: Clock,
    devices: Vec<Device>,
    links: Links,
    host: H,
    script: Script,
    tap: Tap,
    refused: u64,
}

/// A device, and the direction of the packets read from it.
struct Device {
    tun: Tun,
    path: PathId,
    direction: LinkDirection,
}

/// Receiver of a packet that has passed the last link of its path.
#[derive(Clone, Copy)]
enum Sink {
    Device(usize),
    Host,
}

/// One direction of one link.
struct DirectedLink {
    link: Direction<BytesPacket>,
    middlebox: ActiveMiddlebox,
}

/// The directed links of a path in the order in which packets take them, and the receivers behind them.
struct Ends {
    links: PerDirection<Vec<usize>>,
    sinks: PerDirection<Sink>,
}

/// All directed links: those of link `i` are number `2 i` and `2 i + 1`, in the order of [`LinkDirection::BOTH`].
struct Links {
    directions: Vec<DirectedLink>,
    paths: Vec<Ends>,
    lateness: Histogram,
    pool: Pool,
}

impl Links {
    fn direction_mut(&mut self, link: usize, direction: LinkDirection) -> &mut DirectedLink {
        &mut self.directions[position(link, direction)]
    }

    /// A packet is sent from an end of its path.
    fn send(&mut self, now: Instant, path: PathId, direction: LinkDirection, bytes: &[u8]) {
        let packet = self.pool.packet(path, bytes);
        self.enter(now, direction, packet);
    }

    /// Sends a packet into the next link of its path.
    fn enter(&mut self, now: Instant, direction: LinkDirection, mut packet: BytesPacket) {
        let at = self.paths[packet.path.index()].links[direction][usize::from(packet.passed)];
        let directed = &mut self.directions[at];
        directed.middlebox.pass(packet.as_mut_slice());
        directed.link.send(now, packet);
    }

    /// Takes a packet that has passed a link: returns it with its receiver if that was the last link, else sends it on.
    fn leave(
        &mut self,
        now: Instant,
        direction: LinkDirection,
        mut packet: BytesPacket,
    ) -> Option<(Sink, BytesPacket)> {
        packet.passed += 1;
        let path = &self.paths[packet.path.index()];
        if usize::from(packet.passed) == path.links[direction].len() {
            return Some((path.sinks[direction], packet));
        }
        self.enter(now, direction, packet);
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.directions.iter().filter_map(|direction| direction.link.poll_timeout()).min()
    }

    /// Bytes of IP packets delivered by links to the client.
    fn delivered_down(&self) -> u64 {
        let downlinks = self.directions.iter().skip(LinkDirection::Down.index()).step_by(2);
        downlinks.map(|direction| direction.link.stats().delivered.bytes).sum()
    }

    fn report(&self, refused: u64) -> EmulatorReport {
        let paths = self.directions.chunks(2).map(|pair| LinkReport {
            stats: PerDirection::from_fn(|direction| pair[direction.index()].link.stats().clone()),
            inside: PerDirection::from_fn(|direction| pair[direction.index()].link.inside()),
            middlebox: PerDirection::from_fn(|direction| pair[direction.index()].middlebox.counts),
        });
        EmulatorReport { paths: paths.collect(), lateness: self.lateness.clone(), refused }
    }
}

/// The number of a direction of a link among all directed links.
fn position(link: usize, direction: LinkDirection) -> usize {
    2 * link + direction.index()
}

impl<H: Host> Emulator<H> {
    /// Paths that carry traffic once [`Emulator::run`] is called; path `i` is [`PathId`] `i`. All times count from
    /// `clock`'s zero.
    ///
    /// # Errors
    /// If the tap cannot write its headers.
    pub fn new(clock: Clock, paths: Vec<EmulatedPath>, host: H, script: Script, tap: Tap) -> io::Result<Self> {
        Emulator::of(clock, paths.into(), host, script, tap)
    }

    /// The general form of [`Emulator::new`], for any network.
    ///
    /// # Errors
    /// If the tap cannot write its headers.
    ///
    /// # Panics
    /// If a path has no link, or one that does not exist.
    pub fn of(clock: Clock, network: Topology, host: H, script: Script, mut tap: Tap) -> io::Result<Self> {
        let mut directions = Vec::new();
        for (i, link) in network.links.into_iter().enumerate() {
            for (direction, directed) in [(LinkDirection::Down, link.down), (LinkDirection::Up, link.up)] {
                let streams = Streams::new(MIDDLEBOX_SEED, format!("link/{i}/{direction}"));
                directions
                    .push(DirectedLink { link: directed, middlebox: ActiveMiddlebox::new(link.middlebox, &streams) });
            }
        }
        let (mut devices, mut paths) = (Vec::new(), Vec::new());
        for (i, route) in network.paths.into_iter().enumerate() {
            assert!(
                !route.links.is_empty() && route.links.iter().all(|link| 2 * link < directions.len()),
                "links of path {i}"
            );
            let path = PathId(i as u16);
            tap.interface(route.client.name())?;
            let links = PerDirection {
                down: route.links.iter().rev().map(|link| position(*link, LinkDirection::Down)).collect(),
                up: route.links.iter().map(|link| position(*link, LinkDirection::Up)).collect(),
            };
            let near = Sink::Device(devices.len());
            devices.push(Device { tun: route.client, path, direction: LinkDirection::Up });
            let far = match route.far {
                Far::Host => Sink::Host,
                Far::Device(tun) => {
                    devices.push(Device { tun, path, direction: LinkDirection::Down });
                    Sink::Device(devices.len() - 1)
                }
            };
            paths.push(Ends { links, sinks: PerDirection { down: near, up: far } });
        }
        let links = Links { directions, paths, lateness: Histogram::default(), pool: Pool::default() };
        Ok(Emulator { clock, devices, links, host, script, tap, refused: 0 })
    }

    /// Carries traffic until `stop` is set, or until `done` returns true (called after every turn of the loop).
    ///
    /// # Errors
    /// If a device is gone, or the tap's file cannot be written.
    pub fn run(&mut self, stop: &AtomicBool, mut done: impl FnMut(&mut H, Instant) -> bool) -> io::Result<()> {
        sharpen_timers()?;
        let _punctual = NoIdleStates::begin();
        let Emulator { clock, devices, links, host, script, tap, refused } = self;
        let devices = &*devices;
        let mut waiter = Waiter::new(devices.iter().map(|device| device.tun.as_fd()));
        let mut buffer = vec![0; MAX_PACKET];
        loop {
            let mut turn =
                Turn { clock, devices, links: &mut *links, host: &mut *host, tap: &mut *tap, refused: &mut *refused };
            turn.deliver()?;
            turn.drive_host(&mut buffer)?;
            turn.follow(script);
            let now = clock.now();
            if stop.load(Ordering::Relaxed) || done(turn.host, now) {
                return Ok(());
            }
            let wake = [turn.links.poll_timeout(), turn.host.poll_timeout(), script.next_time()];
            let wake = wake.into_iter().flatten().fold(now + STOP_INTERVAL, Instant::min);
            waiter.wait(clock, wake)?;
            turn.read(&waiter, &mut buffer)?;
        }
    }

    /// Ends the run; returns the host and the counters of the links.
    ///
    /// # Errors
    /// If the tap's file cannot be written.
    pub fn finish(mut self) -> io::Result<(H, EmulatorReport)> {
        self.tap.finish()?;
        let now = self.clock.now();
        self.links.directions.iter_mut().for_each(|direction| direction.link.advance(now));
        let report = self.links.report(self.refused);
        Ok((self.host, report))
    }
}

/// The parts used by one turn of the loop.
struct Turn<'a, H> {
    clock: &'a Clock,
    devices: &'a [Device],
    links: &'a mut Links,
    host: &'a mut H,
    tap: &'a mut Tap,
    refused: &'a mut u64,
}

impl<H: Host> Turn<'_, H> {
    /// Delivers every due packet to its next link, its device or the host.
    fn deliver(&mut self) -> io::Result<()> {
        for at in 0..self.links.directions.len() {
            let direction = LinkDirection::BOTH[at % 2];
            while let Some(due) = self.links.directions[at].link.poll_timeout() {
                let now = self.clock.now();
                if due > now {
                    break;
                }
                let Some(packet) = self.links.directions[at].link.poll_delivery(now) else { break };
                self.links.lateness.record(now.since(due));
                if let Some((sink, packet)) = self.links.leave(now, direction, packet) {
                    self.hand_over(now, packet.path, sink, packet.as_slice())?;
                    self.links.pool.recycle(packet);
                }
            }
            // The log has no observer; the counters suffice.
            self.links.directions[at].link.log().drain().for_each(drop);
        }
        Ok(())
    }

    fn hand_over(&mut self, now: Instant, path: PathId, sink: Sink, packet: &[u8]) -> io::Result<()> {
        match sink {
            Sink::Host => {
                self.tap.at_far_end(now, path, LinkDirection::Up, packet)?;
                self.host.receive(now, path, packet);
            }
            Sink::Device(i) => {
                let device = &self.devices[i];
                match device.direction {
                    LinkDirection::Up => self.tap.at_client(now, path, LinkDirection::Down, packet)?,
                    LinkDirection::Down => self.tap.at_far_end(now, path, LinkDirection::Up, packet)?,
                }
                if !device.tun.write(packet)? {
                    *self.refused += 1;
                }
            }
        }
        Ok(())
    }

    /// Runs the host's timers, and sends its packets.
    fn drive_host(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let now = self.clock.now();
        if self.host.poll_timeout().is_some_and(|at| at <= now) {
            self.host.handle_timeout(now);
        }
        while let Some((path, len)) = self.host.poll_transmit(now, buffer) {
            self.tap.at_far_end(now, path, LinkDirection::Down, &buffer[..len])?;
            self.links.send(now, path, LinkDirection::Down, &buffer[..len]);
        }
        Ok(())
    }

    /// Applies the due steps of the script.
    fn follow(&mut self, script: &mut Script) {
        let now = self.clock.now();
        while let Some(Step { path, directions, change, .. }) = script.due(now, self.links.delivered_down()) {
            for direction in directions.iter().copied() {
                self.links.direction_mut(path.index(), direction).link.change(now, change.clone());
            }
        }
    }

    /// Reads packets from the devices that have any.
    fn read(&mut self, waiter: &Waiter<'_>, buffer: &mut [u8]) -> io::Result<()> {
        for (i, device) in self.devices.iter().enumerate().filter(|(i, _)| waiter.ready(*i)) {
            for _ in 0..READ_BATCH {
                let Some(len) = self.devices[i].tun.read(buffer)? else { break };
                // Each packet has its own time: several may have arrived since the last turn.
                let now = self.clock.now();
                let packet = &buffer[..len];
                match device.direction {
                    LinkDirection::Up => self.tap.at_client(now, device.path, LinkDirection::Up, packet)?,
                    LinkDirection::Down => self.tap.at_far_end(now, device.path, LinkDirection::Down, packet)?,
                }
                self.links.send(now, device.path, device.direction, packet);
            }
        }
        Ok(())
    }
}
