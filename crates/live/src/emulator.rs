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

/// One path: a device in the client's namespace, and both directions of the link between it and the far end.
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

/// What the links of one path did.
#[derive(Clone, Debug)]
pub struct PathReport {
    /// From the client.
    pub up: Stats,
    /// To the client.
    pub down: Stats,
    /// What the path's middlebox did, from the client and to it.
    pub meddled: [Meddled; 2],
}

/// What an emulator did.
#[derive(Clone, Debug)]
pub struct Report {
    /// Path by path.
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

/// Where a direction's packets go.
#[derive(Clone, Copy)]
enum Sink {
    Device(usize),
    Host,
}

/// One direction of one path.
struct Lane {
    direction: Direction<BytesPacket>,
    meddler: Meddler,
    sink: Sink,
}

/// All directions: of path `i`, number `2 i` leads up and `2 i + 1` down.
struct Links {
    lanes: Vec<Lane>,
    lateness: Histogram,
    pool: Pool,
}

impl Links {
    fn lane(&mut self, path: PathId, way: Way) -> &mut Lane {
        &mut self.lanes[2 * path.index() + usize::from(way == Way::Down)]
    }

    fn send(&mut self, now: Instant, path: PathId, way: Way, bytes: &[u8]) {
        let mut packet = self.pool.packet(bytes);
        let lane = self.lane(path, way);
        lane.meddler.pass(packet.as_mut_slice());
        lane.direction.send(now, packet);
    }

    fn next_delivery(&self) -> Option<Instant> {
        self.lanes.iter().filter_map(|lane| lane.direction.next_delivery()).min()
    }

    /// Bytes of IP packets that reached the client, on all paths.
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

impl<H: Host> Emulator<H> {
    /// Links that carry traffic once [`Emulator::run`] is called; link `i` is [`PathId`] `i`. All times count from `clock`'s zero.
    ///
    /// # Errors
    /// If the tap cannot write its headers.
    pub fn new(clock: Clock, links: Vec<Link>, host: H, script: Script, mut tap: Tap) -> io::Result<Self> {
        let mut devices = Vec::new();
        let mut lanes = Vec::new();
        for (i, link) in links.into_iter().enumerate() {
            let path = PathId(i as u16);
            tap.interface(link.client.name())?;
            devices.push(Device { tun: link.client, path, way: Way::Up });
            let meddler = |way| Meddler::new(link.middlebox, &Streams::new(MIDDLEBOX_SEED, format!("link/{i}/{way}")));
            lanes.push(Lane { direction: link.up, meddler: meddler("up"), sink: Sink::Host });
            let sink = Sink::Device(devices.len() - 1);
            lanes.push(Lane { direction: link.down, meddler: meddler("down"), sink });
            if let Far::Device(tun) = link.far {
                lanes[2 * i].sink = Sink::Device(devices.len());
                devices.push(Device { tun, path, way: Way::Down });
            }
        }
        let links = Links { lanes, lateness: Histogram::default(), pool: Pool::default() };
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
    pub fn finish(self) -> io::Result<(H, Report)> {
        self.tap.finish()?;
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
    /// Hands every packet that is due to its device or to the host.
    fn deliver(&mut self) -> io::Result<()> {
        for lane in 0..self.links.lanes.len() {
            let path = PathId((lane / 2) as u16);
            while let Some(due) = self.links.lanes[lane].direction.next_delivery() {
                let now = self.clock.now();
                if due > now {
                    break;
                }
                let Some(packet) = self.links.lanes[lane].direction.poll_delivery(now) else { break };
                self.links.lateness.record(now.since(due));
                self.hand_over(now, path, self.links.lanes[lane].sink, packet.as_slice())?;
                self.links.pool.recycle(packet);
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
                self.links.lane(path, way).direction.change(now, change.clone());
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
