//! Links in real time: between two namespaces, or between a namespace and a host in this process.

use crate::host::Host;
use crate::middlebox::{ActiveMiddlebox, Middlebox, MiddleboxCounts};
use crate::packet::{BytesPacket, Pool};
use crate::script::{Heading, Script, Step};
use crate::tap::Tap;
use crate::wait::{Waiter, sharpen_timers};
use crate::{Clock, Tun};
use anabranch_network::{Count, Direction, Histogram, Stats, Streams};
use anabranch_units::{Duration, Instant, PathId};
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

/// One path with a link of its own: a device in the client's namespace, and both directions of the link between it and the far end.
pub struct Link {
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

impl From<Vec<Link>> for Topology {
    fn from(list: Vec<Link>) -> Self {
        let (mut links, mut paths) = (Vec::new(), Vec::new());
        for (i, Link { client, far, up, down, middlebox }) in list.into_iter().enumerate() {
            links.push(Pipes { up, down, middlebox });
            paths.push(Route { client, far, links: vec![i] });
        }
        Topology { links, paths }
    }
}

/// Counters of a link, which are those of a path unless paths share it.
#[derive(Clone, Debug)]
pub struct LinkReport {
    /// From the client.
    pub up: Stats,
    /// To the client.
    pub down: Stats,
    /// What was in it at the end, from the client and to it.
    pub inside: [Count; 2],
    /// Packets changed by its middlebox, from the client and to it.
    pub middlebox: [MiddleboxCounts; 2],
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
    heading: Heading,
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

/// The link directions of a path in order, and the receivers behind them; the direction from the client first.
struct Ends {
    directions: [Vec<usize>; 2],
    sinks: [Sink; 2],
}

/// All link directions: of link `i`, number `2 i` leads up and `2 i + 1` down.
struct Links {
    directions: Vec<DirectedLink>,
    paths: Vec<Ends>,
    lateness: Histogram,
    pool: Pool,
}

impl Links {
    fn direction_mut(&mut self, link: usize, heading: Heading) -> &mut DirectedLink {
        &mut self.directions[2 * link + index_of(heading)]
    }

    /// A packet is sent from an end of its path.
    fn send(&mut self, now: Instant, path: PathId, heading: Heading, bytes: &[u8]) {
        let packet = self.pool.packet(path, bytes);
        self.enter(now, heading, packet);
    }

    /// Sends a packet into the next link of its path.
    fn enter(&mut self, now: Instant, heading: Heading, mut packet: BytesPacket) {
        let at = self.paths[packet.path.index()].directions[index_of(heading)][usize::from(packet.passed)];
        let direction = &mut self.directions[at];
        direction.middlebox.pass(packet.as_mut_slice());
        direction.link.send(now, packet);
    }

    /// Takes a packet that has passed a link: returns it with its receiver if that was the last link, else sends it on.
    fn leave(&mut self, now: Instant, heading: Heading, mut packet: BytesPacket) -> Option<(Sink, BytesPacket)> {
        packet.passed += 1;
        let path = &self.paths[packet.path.index()];
        if usize::from(packet.passed) == path.directions[index_of(heading)].len() {
            return Some((path.sinks[index_of(heading)], packet));
        }
        self.enter(now, heading, packet);
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.directions.iter().filter_map(|direction| direction.link.poll_timeout()).min()
    }

    /// Bytes of IP packets delivered by links to the client.
    fn delivered_down(&self) -> u64 {
        self.directions.iter().skip(1).step_by(2).map(|direction| direction.link.stats().delivered.bytes).sum()
    }

    fn report(&self, refused: u64) -> EmulatorReport {
        let stats = |direction: &DirectedLink| direction.link.stats().clone();
        let paths = self.directions.chunks(2).map(|pair| LinkReport {
            up: stats(&pair[0]),
            down: stats(&pair[1]),
            inside: [pair[0].link.inside(), pair[1].link.inside()],
            middlebox: [pair[0].middlebox.counts, pair[1].middlebox.counts],
        });
        EmulatorReport { paths: paths.collect(), lateness: self.lateness.clone(), refused }
    }
}

/// The index of a direction in pairs of up and down.
fn index_of(heading: Heading) -> usize {
    usize::from(heading == Heading::Down)
}

impl<H: Host> Emulator<H> {
    /// Links that carry traffic once [`Emulator::run`] is called; link `i` is [`PathId`] `i`. All times count from `clock`'s zero.
    ///
    /// # Errors
    /// If the tap cannot write its headers.
    pub fn new(clock: Clock, links: Vec<Link>, host: H, script: Script, tap: Tap) -> io::Result<Self> {
        Emulator::of(clock, links.into(), host, script, tap)
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
            for (heading, direction) in [("up", link.up), ("down", link.down)] {
                let streams = Streams::new(MIDDLEBOX_SEED, format!("link/{i}/{heading}"));
                directions
                    .push(DirectedLink { link: direction, middlebox: ActiveMiddlebox::new(link.middlebox, &streams) });
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
            let up: Vec<_> = route.links.iter().map(|link| 2 * link).collect();
            let down = up.iter().rev().map(|at| at + 1).collect();
            let near = Sink::Device(devices.len());
            devices.push(Device { tun: route.client, path, heading: Heading::Up });
            let far = match route.far {
                Far::Host => Sink::Host,
                Far::Device(tun) => {
                    devices.push(Device { tun, path, heading: Heading::Down });
                    Sink::Device(devices.len() - 1)
                }
            };
            paths.push(Ends { directions: [up, down], sinks: [far, near] });
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
            let heading = if at % 2 == 0 { Heading::Up } else { Heading::Down };
            while let Some(due) = self.links.directions[at].link.poll_timeout() {
                let now = self.clock.now();
                if due > now {
                    break;
                }
                let Some(packet) = self.links.directions[at].link.poll_delivery(now) else { break };
                self.links.lateness.record(now.since(due));
                if let Some((sink, packet)) = self.links.leave(now, heading, packet) {
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
                self.tap.at_far_end(now, path, Heading::Up, packet)?;
                self.host.receive(now, path, packet);
            }
            Sink::Device(i) => {
                let device = &self.devices[i];
                match device.heading {
                    Heading::Up => self.tap.at_client(now, path, Heading::Down, packet)?,
                    Heading::Down => self.tap.at_far_end(now, path, Heading::Up, packet)?,
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
            self.tap.at_far_end(now, path, Heading::Down, &buffer[..len])?;
            self.links.send(now, path, Heading::Down, &buffer[..len]);
        }
        Ok(())
    }

    /// Applies the due steps of the script.
    fn follow(&mut self, script: &mut Script) {
        let now = self.clock.now();
        while let Some(Step { path, directions, change, .. }) = script.due(now, self.links.delivered_down()) {
            for heading in directions.each() {
                self.links.direction_mut(path.index(), heading).link.change(now, change.clone());
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
                match device.heading {
                    Heading::Up => self.tap.at_client(now, device.path, Heading::Up, packet)?,
                    Heading::Down => self.tap.at_far_end(now, device.path, Heading::Down, packet)?,
                }
                self.links.send(now, device.path, device.heading, packet);
            }
        }
        Ok(())
    }
}
