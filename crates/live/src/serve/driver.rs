//! The real-time loop of a server: devices, clock, endpoint. It runs on a thread of its own and is talked to through [`Wakes`].

use super::stream::StreamApplication;
use crate::wait::{Waiter, sharpen_timers};
use crate::{Clock, ConnectionId, Counters, Host, Opened, Server, Tap, Tun, Way};
use anabranch_units::{Duration, Instant, PathId};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

/// The largest IP packet.
const MAX_PACKET: usize = 65_535;
/// Packets that are read from a device, or sent, before others get their turn: few enough (about 0.1 ms of work) to stay punctual.
const BATCH: usize = 64;
/// How long the loop sleeps when nothing is due.
const LONGEST_SLEEP: Duration = Duration::from_secs(3600);

/// What the loop shall do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Order {
    /// Serve.
    Run = 0,
    /// Take no new connections.
    Refuse = 1,
    /// The same, and return once no connection is left.
    Finish = 2,
    /// End all connections with RST and return.
    Abort = 3,
}

/// Messages to the loop.
#[derive(Debug)]
pub(super) struct Wakes {
    pending: Mutex<Vec<ConnectionId>>,
    order: AtomicU8,
    event: OwnedFd,
}

impl Wakes {
    pub(super) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Wakes { pending: Mutex::default(), order: AtomicU8::new(Order::Run as u8), event })
    }

    /// A connection's stream has changed.
    pub(super) fn wake(&self, id: ConnectionId) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.push(id);
        if pending.len() == 1 {
            self.ring();
        }
    }

    /// Changes what the loop shall do; it never goes back.
    pub(super) fn order(&self, order: Order) {
        self.order.fetch_max(order as u8, Ordering::Relaxed);
        self.ring();
    }

    fn ring(&self) {
        // It fails only if the counter is full, and then the loop is going to wake up anyway.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    fn take(&self, into: &mut Vec<ConnectionId>) {
        let _ = rustix::io::read(&self.event, &mut [0u8; 8]);
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *pending, into);
    }

    fn ordered(&self, order: Order) -> bool {
        self.order.load(Ordering::Relaxed) >= order as u8
    }
}

/// Everything that the loop owns.
pub(super) struct Driver<F> {
    pub(super) devices: Vec<Tun>,
    pub(super) server: Server<F, StreamApplication>,
    pub(super) tap: Tap,
}

impl<F: FnMut(Opened) -> StreamApplication> Driver<F> {
    /// Serves until it is ordered to end; returns what the server has counted.
    pub(super) fn run(mut self, wakes: &Wakes) -> io::Result<Counters> {
        sharpen_timers()?;
        let clock = Clock::new();
        let devices = std::mem::take(&mut self.devices);
        for device in &devices {
            self.tap.interface(device.name())?;
        }
        let files = devices.iter().map(Tun::as_fd).chain([wakes.event.as_fd()]);
        let mut waiter = Waiter::new(files);
        let (mut buffer, mut woken) = (vec![0; MAX_PACKET], Vec::new());
        loop {
            self.obey(clock.now(), wakes, &mut woken);
            let now = clock.now();
            if self.server.poll_timeout().is_some_and(|at| at <= now) {
                self.server.handle_timeout(now);
            }
            let more = self.send(now, &devices, &mut buffer)?;
            if !more && self.is_done(wakes) {
                self.tap.finish()?;
                return Ok(self.server.counters());
            }
            let idle = now + LONGEST_SLEEP;
            let wake = if more { now } else { self.server.poll_timeout().map_or(idle, |at| at.min(idle)) };
            waiter.wait(&clock, wake)?;
            for (i, device) in devices.iter().enumerate().filter(|(i, _)| waiter.ready(*i)) {
                self.receive(&clock, PathId(i as u16), device, &mut buffer)?;
            }
        }
    }

    fn obey(&mut self, now: Instant, wakes: &Wakes, woken: &mut Vec<ConnectionId>) {
        wakes.take(woken);
        for id in woken.drain(..) {
            self.server.wake(now, id);
        }
        if wakes.ordered(Order::Refuse) {
            self.server.stop_accepting();
        }
        if wakes.ordered(Order::Abort) {
            self.server.abort_all(now);
        }
    }

    fn is_done(&self, wakes: &Wakes) -> bool {
        wakes.ordered(Order::Abort) || (wakes.ordered(Order::Finish) && self.server.is_idle())
    }

    /// Sends some of what there is to say; returns whether there may be more.
    fn send(&mut self, now: Instant, devices: &[Tun], buffer: &mut [u8]) -> io::Result<bool> {
        for _ in 0..BATCH {
            let Some((path, len)) = self.server.poll_transmit(now, buffer) else { return Ok(false) };
            self.tap.at_far_end(now, path, Way::Down, &buffer[..len])?;
            // A device that refuses a packet is a network that loses one.
            devices[path.index()].write(&buffer[..len])?;
        }
        Ok(true)
    }

    fn receive(&mut self, clock: &Clock, path: PathId, device: &Tun, buffer: &mut [u8]) -> io::Result<()> {
        for _ in 0..BATCH {
            let Some(len) = device.read(buffer)? else { return Ok(()) };
            let now = clock.now();
            self.tap.at_far_end(now, path, Way::Up, &buffer[..len])?;
            self.server.receive(now, path, &buffer[..len]);
        }
        Ok(())
    }
}
