//! Links in real time: between two namespaces, or between a namespace and a host in this process.

use crate::host::Host;
use crate::middlebox::{Meddled, Meddler, Middlebox};
use crate::packet::{BytesPacket, Pool};
use crate::script::{Script, Step, Way};
use crate::tap::Tap;
use crate::wait::{Waiter, sharpen_timers};
use crate::{Clock, Tun};
use anabranch_network::{Direction, Histogram, Stats, Streams};
use anabranch_units::{Duration, Instant, PathId};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// The largest IP packet, and so the largest thing that a device gives.
const MAX_PACKET: usize = 65_535;

/// Packets that are read from one device before the others get their turn and due packets are delivered:
/// enough to spare system calls, few enough (about 0.1 ms of work) to stay punctual.
const READ_BATCH: usize = 32;

/// How often a flag to stop is looked at when nothing else happens.
const STOP_INTERVAL: Duration = Duration::from_millis(20);

/// What middleboxes draw their random numbers from. In real time packets arrive in no order that could be repeated, so it need not differ
/// from run to run.
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
    /// What stands in its way.
    pub middlebox: Middlebox,
}

/// Both directions of a link, whoever uses it.
pub struct Pipes {
    /// From clients.
    pub up: Direction<BytesPacket>,
    /// To clients.
    pub down: Direction<BytesPacket>,
    /// What stands in its way.
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

/// What a link did, which is that of one path if paths do not share it.
#[derive(Clone, Debug)]
pub struct PathReport {
    /// From the client.
    pub up: Stats,
    /// To the client.
    pub down: Stats,
    /// What its middlebox did, from the client and to it.
    pub meddled: [Meddled; 2],
}

/// What an emulator did.
#[derive(Clone, Debug)]
pub struct Report {
    /// Link by link.
    pub paths: Vec<PathReport>,
    /// How much later than due packets were delivered, all directions together. A run in which this is not small against
    /// the links' delays measured the machine, not the links.
    pub lateness: Histogram,
    /// Packets that a kernel refused to take, as it does while an interface is down.
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

/// A device, and where packets that are read from it go.
struct Device {
    tun: Tun,
    path: PathId,
    way: Way,
}

/// Where a packet goes that has passed the last link of its path.
#[derive(Clone, Copy)]
enum Sink {
    Device(usize),
    Host,
}

/// One direction of one link.
struct Lane {
    direction: Direction<BytesPacket>,
    meddler: Meddler,
}

/// The lanes of a path, first to last, and what is behind them; the way from the client first.
struct Ends {
    lanes: [Vec<usize>; 2],
    sinks: [Sink; 2],
}

/// All directions: of link `i`, number `2 i` leads up and `2 i + 1` down.
struct Links {
    lanes: Vec<Lane>,
    paths: Vec<Ends>,
    lateness: Histogram,
    pool: Pool,
}

impl Links {
    fn lane(&mut self, link: usize, way: Way) -> &mut Lane {
        &mut self.lanes[2 * link + index_of(way)]
    }

    /// A packet leaves an end of its path.
    fn send(&mut self, now: Instant, path: PathId, way: Way, bytes: &[u8]) {
        let packet = self.pool.packet(path, bytes);
        self.enter(now, way, packet);
    }

    /// Puts a packet on the link that is next on its path.
    fn enter(&mut self, now: Instant, way: Way, mut packet: BytesPacket) {
        let at = self.paths[packet.path.index()].lanes[index_of(way)][usize::from(packet.passed)];
        let lane = &mut self.lanes[at];
        lane.meddler.pass(packet.as_mut_slice());
        lane.direction.send(now, packet);
    }

    /// Takes a packet that has passed a link: what is behind its path if that was the last one. Else it goes on.
    fn leave(&mut self, now: Instant, way: Way, mut packet: BytesPacket) -> Option<(Sink, BytesPacket)> {
        packet.passed += 1;
        let path = &self.paths[packet.path.index()];
        if usize::from(packet.passed) == path.lanes[index_of(way)].len() {
            return Some((path.sinks[index_of(way)], packet));
        }
        self.enter(now, way, packet);
        None
    }

    fn next_delivery(&self) -> Option<Instant> {
        self.lanes.iter().filter_map(|lane| lane.direction.next_delivery()).min()
    }

    /// Bytes of IP packets that links to the client delivered.
    fn delivered_down(&self) -> u64 {
        self.lanes.iter().skip(1).step_by(2).map(|lane| lane.direction.stats().delivered.bytes).sum()
    }

    fn report(&self, refused: u64) -> Report {
        let stats = |lane: &Lane| lane.direction.stats().clone();
        let paths = self.lanes.chunks(2).map(|pair| PathReport {
            up: stats(&pair[0]),
            down: stats(&pair[1]),
            meddled: [pair[0].meddler.meddled, pair[1].meddler.meddled],
        });
        Report { paths: paths.collect(), lateness: self.lateness.clone(), refused }
    }
}

/// The position of a way where both have one.
fn index_of(way: Way) -> usize {
    usize::from(way == Way::Down)
}

impl<H: Host> Emulator<H> {
    /// Links that carry traffic once [`Emulator::run`] is called; link `i` is [`PathId`] `i`. All times count from `clock`'s zero.
    ///
    /// # Errors
    /// If the tap cannot write its headers.
    pub fn new(clock: Clock, links: Vec<Link>, host: H, script: Script, tap: Tap) -> io::Result<Self> {
        Emulator::of(clock, links.into(), host, script, tap)
    }

    /// The same for any network.
    ///
    /// # Errors
    /// If the tap cannot write its headers.
    ///
    /// # Panics
    /// If a path has no link, or one that does not exist.
    pub fn of(clock: Clock, network: Topology, host: H, script: Script, mut tap: Tap) -> io::Result<Self> {
        let mut lanes = Vec::new();
        for (i, link) in network.links.into_iter().enumerate() {
            for (way, direction) in [("up", link.up), ("down", link.down)] {
                let streams = Streams::new(MIDDLEBOX_SEED, format!("link/{i}/{way}"));
                lanes.push(Lane { direction, meddler: Meddler::new(link.middlebox, &streams) });
            }
        }
        let (mut devices, mut paths) = (Vec::new(), Vec::new());
        for (i, route) in network.paths.into_iter().enumerate() {
            assert!(
                !route.links.is_empty() && route.links.iter().all(|link| 2 * link < lanes.len()),
                "links of path {i}"
            );
            let path = PathId(i as u16);
            tap.interface(route.client.name())?;
            let up: Vec<_> = route.links.iter().map(|link| 2 * link).collect();
            let down = up.iter().rev().map(|lane| lane + 1).collect();
            let near = Sink::Device(devices.len());
            devices.push(Device { tun: route.client, path, way: Way::Up });
            let far = match route.far {
                Far::Host => Sink::Host,
                Far::Device(tun) => {
                    devices.push(Device { tun, path, way: Way::Down });
                    Sink::Device(devices.len() - 1)
                }
            };
            paths.push(Ends { lanes: [up, down], sinks: [far, near] });
        }
        let links = Links { lanes, paths, lateness: Histogram::default(), pool: Pool::default() };
        Ok(Emulator { clock, devices, links, host, script, tap, refused: 0 })
    }

    /// Carries traffic until `stop` is set, or until `done` says so (asked whenever something may have happened).
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
            let wake = [turn.links.next_delivery(), turn.host.poll_timeout(), script.next_time()];
            let wake = wake.into_iter().flatten().fold(now + STOP_INTERVAL, Instant::min);
            waiter.wait(clock, wake)?;
            turn.read(&waiter, &mut buffer)?;
        }
    }

    /// The host, and what the links did.
    ///
    /// # Errors
    /// If the tap's file cannot be written.
    pub fn finish(mut self) -> io::Result<(H, Report)> {
        self.tap.finish()?;
        let now = self.clock.now();
        self.links.lanes.iter_mut().for_each(|lane| lane.direction.advance(now));
        let report = self.links.report(self.refused);
        Ok((self.host, report))
    }
}

/// What one turn of the loop works with.
struct Turn<'a, H> {
    clock: &'a Clock,
    devices: &'a [Device],
    links: &'a mut Links,
    host: &'a mut H,
    tap: &'a mut Tap,
    refused: &'a mut u64,
}

impl<H: Host> Turn<'_, H> {
    /// Hands every packet that is due to its next link, its device or the host.
    fn deliver(&mut self) -> io::Result<()> {
        for lane in 0..self.links.lanes.len() {
            let way = if lane % 2 == 0 { Way::Up } else { Way::Down };
            while let Some(due) = self.links.lanes[lane].direction.next_delivery() {
                let now = self.clock.now();
                if due > now {
                    break;
                }
                let Some(packet) = self.links.lanes[lane].direction.poll_delivery(now) else { break };
                self.links.lateness.record(now.since(due));
                if let Some((sink, packet)) = self.links.leave(now, way, packet) {
                    self.hand_over(now, packet.path, sink, packet.as_slice())?;
                    self.links.pool.recycle(packet);
                }
            }
            // Nobody listens yet; the counters have it all.
            self.links.lanes[lane].direction.log().drain().for_each(drop);
        }
        Ok(())
    }

    fn hand_over(&mut self, now: Instant, path: PathId, sink: Sink, packet: &[u8]) -> io::Result<()> {
        match sink {
            Sink::Host => {
                self.tap.at_far_end(now, path, Way::Up, packet)?;
                self.host.receive(now, path, packet);
            }
            Sink::Device(i) => {
                let device = &self.devices[i];
                match device.way {
                    Way::Up => self.tap.at_client(now, path, Way::Down, packet)?,
                    Way::Down => self.tap.at_far_end(now, path, Way::Up, packet)?,
                }
                if !device.tun.write(packet)? {
                    *self.refused += 1;
                }
            }
        }
        Ok(())
    }

    /// Lets the host act on the time and on what it received, and sends what it has to say.
    fn drive_host(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let now = self.clock.now();
        if self.host.poll_timeout().is_some_and(|at| at <= now) {
            self.host.handle_timeout(now);
        }
        while let Some((path, len)) = self.host.poll_transmit(now, buffer) {
            self.tap.at_far_end(now, path, Way::Down, &buffer[..len])?;
            self.links.send(now, path, Way::Down, &buffer[..len]);
        }
        Ok(())
    }

    /// Applies what the script has for now.
    fn follow(&mut self, script: &mut Script) {
        let now = self.clock.now();
        while let Some(Step { path, way, change, .. }) = script.due(now, self.links.delivered_down()) {
            for way in way.each() {
                self.links.lane(path.index(), way).direction.change(now, change.clone());
            }
        }
    }

    /// Takes packets from the devices that have any.
    fn read(&mut self, waiter: &Waiter<'_>, buffer: &mut [u8]) -> io::Result<()> {
        for (i, device) in self.devices.iter().enumerate().filter(|(i, _)| waiter.ready(*i)) {
            for _ in 0..READ_BATCH {
                let Some(len) = self.devices[i].tun.read(buffer)? else { break };
                // Each packet has its own time: the loop may have been away while several arrived.
                let now = self.clock.now();
                let packet = &buffer[..len];
                match device.way {
                    Way::Up => self.tap.at_client(now, device.path, Way::Up, packet)?,
                    Way::Down => self.tap.at_far_end(now, device.path, Way::Down, packet)?,
                }
                self.links.send(now, device.path, device.way, packet);
            }
        }
        Ok(())
    }
}
