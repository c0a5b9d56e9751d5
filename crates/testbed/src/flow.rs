//! A connection of the scenario as all who work on it share it.

use anabranch_events::{Log, TransportEvent};
use anabranch_live::Clock;
use anabranch_media::HttpServer;
use anabranch_observation::Observer;
use anabranch_stack::view::Hints;
use anabranch_units::{Duration, Instant, PathId, SubflowId};
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many subflows of one connection keep names of their own. A program may open many connections, and each counts from zero.
pub(crate) const SUBFLOWS_PER_CONNECTION: u16 = 64;

/// What is known of a flow before it runs, and stays so.
pub(crate) struct Fixed {
    pub name: String,
    pub start: Instant,
    pub awaited: bool,
    /// Positions of its paths in the scenario's list.
    pub paths: Vec<usize>,
    /// The same as the emulator numbers them.
    pub ends: Vec<PathId>,
    pub hints: Hints,
    /// A program and not a player of ours is its client.
    pub program: bool,
    pub port: u16,
    pub clock: Clock,
    pub sample_interval: Duration,
}

/// A flow: what is fixed, to which it dereferences, and what changes while it runs.
pub(crate) struct Flow {
    fixed: Fixed,
    observer: Mutex<Observer>,
    state: Mutex<State>,
    /// What serves the next connection of a player that opened its connection anew.
    successor: Mutex<Option<HttpServer>>,
    /// Bytes that the player read, or that a program acknowledged.
    pub bytes: AtomicU64,
    /// When something arrived last, in nanoseconds.
    pub last_arrival: AtomicU64,
    /// Its player has nothing to do until more arrives.
    pub starved: AtomicBool,
    /// The run is over: whoever works on the flow ends.
    pub stop: AtomicBool,
}

/// How far it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// When its player was done.
    pub finished: Option<Instant>,
    /// Nothing will happen to it any more.
    pub over: bool,
    /// What went wrong.
    pub failure: Option<String>,
    /// Connections that were opened to its server.
    pub connections: u16,
    /// Those of them that have not ended.
    pub open: u16,
    /// Subflows of the kernel's server whose opening the observer knows.
    pub subflows: BTreeSet<SubflowId>,
}

/// A lock whose holders do single steps, so what it guards is whole even after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Deref for Flow {
    type Target = Fixed;

    fn deref(&self) -> &Fixed {
        &self.fixed
    }
}

impl Flow {
    pub fn new(fixed: Fixed, observer: Observer) -> Self {
        Flow {
            observer: Mutex::new(observer),
            state: Mutex::default(),
            successor: Mutex::default(),
            bytes: AtomicU64::new(0),
            last_arrival: AtomicU64::new(fixed.start.as_nanos()),
            starved: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            fixed,
        }
    }

    pub fn observer(&self) -> MutexGuard<'_, Observer> {
        lock(&self.observer)
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The player opens its connection anew: `http` knows where in their exchanges.
    pub fn reopened(&self, now: Instant, http: HttpServer) {
        *lock(&self.successor) = Some(http);
        self.observer().reconnected(now);
    }

    /// What serves the connection that was opened anew, if that is what was just opened.
    pub fn take_successor(&self) -> Option<HttpServer> {
        lock(&self.successor).take()
    }

    /// Nobody works on it any more.
    pub fn into_parts(self) -> (Observer, State, u64) {
        let own = |error: PoisonError<_>| error.into_inner();
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        (self.observer.into_inner().unwrap_or_else(own), state, self.bytes.into_inner())
    }

    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Bytes became readable for the client.
    pub fn delivered(&self, now: Instant, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.last_arrival.store(now.as_nanos(), Ordering::Relaxed);
        let mut log = Log::default();
        let mut left = bytes;
        while left > 0 {
            let part = u32::try_from(left).unwrap_or(u32::MAX);
            log.emit(now, TransportEvent::Delivered { bytes: part, waited: Duration::ZERO, across: Duration::ZERO });
            left -= u64::from(part);
        }
        self.observer().see_receiver(&mut log);
    }

    /// A connection to its server was opened; returns by how much the numbers of its subflows are moved.
    pub fn connected(&self, now: Instant) -> u16 {
        let mut state = self.state();
        let shift = state.connections.saturating_mul(SUBFLOWS_PER_CONNECTION);
        state.connections = state.connections.saturating_add(1);
        state.open = state.open.saturating_add(1);
        let first = state.connections == 1;
        drop(state);
        if first && self.program {
            self.observer().restart(now);
        }
        shift
    }

    pub fn fail(&self, why: impl Into<String>) {
        let mut state = self.state();
        state.over = true;
        state.failure.get_or_insert(why.into());
    }
}
