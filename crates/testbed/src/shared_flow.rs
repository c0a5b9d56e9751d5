//! A flow of the scenario, shared by the threads that work on it.

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

/// Subflow numbers reserved for each connection. A program may open many connections, and each counts from zero.
pub(crate) const SUBFLOWS_PER_CONNECTION: u16 = 64;

/// What is known of a flow before it runs, and stays so.
pub(crate) struct Fixed {
    pub name: String,
    pub start: Instant,
    pub is_session: bool,
    /// Indices of its paths in the scenario's list.
    pub paths: Vec<usize>,
    /// The same paths in the emulator's numbering.
    pub ends: Vec<PathId>,
    pub hints: Hints,
    /// Whether its client is a program and not one of our players.
    pub program: bool,
    pub port: u16,
    pub clock: Clock,
    pub sample_interval: Duration,
}

/// A flow: what is fixed, to which it dereferences, and what changes while it runs.
pub(crate) struct SharedFlow {
    fixed: Fixed,
    observer: Mutex<Observer>,
    state: Mutex<State>,
    /// The HTTP server of the next connection of a player that reopened its connection.
    successor: Mutex<Option<HttpServer>>,
    /// Bytes read by the player, or acknowledged by a program.
    pub bytes: AtomicU64,
    /// When data arrived last, in nanoseconds.
    pub last_arrival: AtomicU64,
    /// Whether its player has nothing to do until more data arrives.
    pub starved: AtomicBool,
    /// Whether the run is over: all threads of the flow end.
    pub stop: AtomicBool,
}

/// Current state of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// When its player finished.
    pub finished: Option<Instant>,
    /// Whether the session is over.
    pub over: bool,
    /// The first error.
    pub failure: Option<String>,
    /// Number of connections opened to its server.
    pub connections: u16,
    /// Number of these that are open.
    pub open: u16,
    /// Subflows of the kernel's server whose opening the observer knows.
    pub subflows: BTreeSet<SubflowId>,
}

/// A lock whose holders do single steps, so its content is consistent even after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Deref for SharedFlow {
    type Target = Fixed;

    fn deref(&self) -> &Fixed {
        &self.fixed
    }
}

impl SharedFlow {
    pub fn new(fixed: Fixed, observer: Observer) -> Self {
        SharedFlow {
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

    /// The player reopened its connection; `http` continues with their exchanges.
    pub fn reopened(&self, now: Instant, http: HttpServer) {
        *lock(&self.successor) = Some(http);
        self.observer().reconnected(now);
    }

    /// The HTTP server of a reopened connection, if the connection just opened is one.
    pub fn take_successor(&self) -> Option<HttpServer> {
        lock(&self.successor).take()
    }

    /// The results, when no thread uses the flow any more.
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
            let (waited, across) = (Duration::ZERO, Duration::ZERO);
            log.emit(now, TransportEvent::Delivered { subflow: None, offset: None, bytes: part, waited, across });
            left -= u64::from(part);
        }
        self.observer().see_receiver(&mut log);
    }

    /// A connection to its server was opened; returns the offset of its subflows' numbers.
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
