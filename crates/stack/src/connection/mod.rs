//! The data level of the endpoint and its public interface.
//!
//! Four kinds of method. *Inputs* ([`Connection::handle_segment`], [`Connection::handle_timeout`],
//! [`Connection::handle_path_change`]) report what happened. *Commands* ([`Connection::write`], [`Connection::read`],
//! ...) are the application's. *Polls* return what to do: after any input or command, call
//! [`Connection::poll_transmit`] until it returns `None`, then [`Connection::poll_timeout`] for the time of the next
//! call. *Getters* change nothing.
//!
//! The files: `addresses` (ADD_ADDR, REMOVE_ADDR), `arrival` (ordered checks of a segment), `handshake`, `choose`
//! (chooses the next segment, builds nothing), `encode` (builds, decides nothing), `failure` (reinjection, closed
//! subflows), `stale` (failures as in upstream Linux), `incoming` and `outgoing` (the two streams).

mod addresses;
mod arrival;
mod books;
mod choose;
mod config;
mod encode;
mod failure;
mod fallback;
mod handshake;
mod incoming;
mod keys;
mod numbers;
mod outgoing;
mod policy;
mod stale;
mod stray;
mod transport;
#[cfg(test)]
mod wraps;

pub use config::{Config, Entropy, PathConfig};
pub use transport::{
    Choice, Commit, Failover, Protocol, ReceiveBuffer, Transport, congestion_control_schema, path_policy_schema,
    scheduler_schema,
};

use crate::options::OptionError;
use crate::path_manager::FullMesh;
use crate::path_policy::{self, PathPolicy};
use crate::receive_memory::{DEFAULT_SHARE, ReceiveMemory};
use crate::scheduler::{self, Scheduler};
use crate::subflow::{State, Subflow, TimerOutcome};
use crate::view::{ConnectionView, Hints, SubflowView};
use anabranch_events::{FallbackReason, Log, TransportEvent};
use anabranch_segment::Segment;
use anabranch_units::{Duration, Instant, PathId};
use books::{Progress, Switches, Waits};
use incoming::{Incoming, Surroundings};
use keys::Key;
use outgoing::Outgoing;
use std::collections::VecDeque;

/// A segment to send.
#[derive(Clone, Debug)]
pub struct Transmit {
    /// Path to send it on.
    pub path: PathId,
    /// Headers and options.
    pub segment: Segment,
    /// Offset of the payload's first byte in the send stream.
    pub stream_offset: u64,
}

/// The place of a received segment's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Offset in the receive stream.
    pub stream_offset: u64,
    /// First new byte within the segment's payload.
    pub payload_start: u32,
    /// Number of bytes.
    pub len: u32,
}

/// The end's role in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Client,
    Server,
}

/// The protocol in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// MP_CAPABLE was offered; the peer has not answered.
    Negotiating,
    /// Multipath TCP.
    Multipath,
    /// Plain TCP, by choice or by fallback: the stream is the initial subflow's.
    Plain,
}

/// One end of a Multipath TCP connection. See the module's description for how to drive it.
pub struct Connection {
    config: Config,
    entropy: Box<dyn Entropy>,
    role: Role,
    mode: Mode,
    /// Only the initial subflow ever existed.
    alone: bool,
    /// The peer asked not to be joined at its initial address and port (`C` of MP_CAPABLE).
    initial_denied: bool,
    /// The peer has sent DSS after the handshake: joins may be sent.
    confirmed: bool,
    local_key: Key,
    remote_key: Option<Key>,
    outgoing: Outgoing,
    incoming: Incoming,
    subflows: Vec<Subflow>,
    /// The state of each subflow for the replaceable parts, in the same order; kept up to date after every change.
    views: Vec<SubflowView>,
    scheduler: Box<dyn Scheduler>,
    path_manager: FullMesh,
    path_policy: Box<dyn PathPolicy>,
    hints: Hints,
    log: Log<TransportEvent>,
    next_subflow: u16,
    established: bool,
    closed: bool,
    /// DATA_FIN was sent at least once.
    end_told: bool,
    progress: Progress,
    switches: Switches,
    waits: Waits,
    /// Resets for segments of no subflow.
    answers: VecDeque<stray::Answer>,
    addresses: addresses::Addresses,
}

/// A connection without any subflow is given up after this long (Linux's close timeout).
const LONELY_TIMEOUT: Duration = Duration::from_secs(60);

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("role", &self.role)
            .field("mode", &self.mode)
            .field("outgoing", &self.outgoing)
            .field("subflows", &self.views)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// A client. The first [`Connection::poll_transmit`] yields its SYN.
    ///
    /// # Errors
    /// If the scheduler or a congestion control does not exist or refuses its options.
    pub fn client(config: Config, entropy: Box<dyn Entropy>) -> Result<Self, OptionError> {
        let mut connection = Self::new(config, entropy, Role::Client)?;
        let path = connection.config.paths[0];
        connection.open(Instant::ZERO, path, State::SynSent, crate::subflow::Opening::Initial, None)?;
        Ok(connection)
    }

    /// A server's end, for a SYN without MP_JOIN that arrived on `path`.
    ///
    /// # Errors
    /// If the scheduler or a congestion control does not exist or refuses its options.
    pub fn accept(
        config: Config,
        entropy: Box<dyn Entropy>,
        now: Instant,
        path: PathId,
        syn: &Segment,
    ) -> Result<Self, OptionError> {
        let mut connection = Self::new(config, entropy, Role::Server)?;
        connection.accept_initial(now, path, syn)?;
        Ok(connection)
    }

    fn new(config: Config, mut entropy: Box<dyn Entropy>, role: Role) -> Result<Self, OptionError> {
        let scheduler = scheduler::create(&config.transport.scheduler.name, &config.transport.scheduler.options)?;
        let path_policy =
            path_policy::create(&config.transport.path_policy.name, &config.transport.path_policy.options)?;
        let mode = if config.transport.protocol == Protocol::Tcp { Mode::Plain } else { Mode::Negotiating };
        let local_key = Key::new(entropy.next_u64());
        Ok(Connection {
            role,
            mode,
            alone: true,
            initial_denied: false,
            confirmed: false,
            local_key,
            remote_key: None,
            outgoing: Outgoing::new(config.transport.send_buffer.0, config.transport.commit == Commit::IntoBuffer),
            incoming: Incoming::new(
                ReceiveMemory::new(config.transport.receive_buffer),
                config.transport.receive_buffer.first_window(config.paths[0].mss()),
                config.transport.receive_buffer.window_scale(),
            ),
            subflows: Vec::new(),
            views: Vec::new(),
            scheduler,
            path_policy,
            path_manager: FullMesh::new(config.paths.iter().map(|path| path.id)),
            hints: Hints::default(),
            log: Log::default(),
            next_subflow: 0,
            established: false,
            closed: false,
            progress: Progress::default(),
            end_told: false,
            switches: Switches::default(),
            waits: Waits::default(),
            answers: VecDeque::new(),
            addresses: addresses::Addresses::default(),
            config,
            entropy,
        })
    }

    // Inputs.

    /// Runs the timers that are due; to be called at the time of [`Connection::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        for at in 0..self.subflows.len() {
            self.handle_subflow_timeout(now, at);
        }
        if self.progress.deadline.is_some_and(|at| at <= now) {
            self.on_no_progress(now);
        }
        if self.policy_deadline().is_some_and(|at| at <= now) {
            self.apply_policy(now);
        }
        if self.waits.scheduler_until.is_some_and(|at| at <= now) {
            self.waits.scheduler_until = None;
        }
        if self.progress.lonely_since.is_some_and(|since| since + LONELY_TIMEOUT <= now) {
            self.end_aborted(now);
        }
        self.send_announcements(now);
        self.remove_dead(now);
        self.mend_mesh(now);
    }

    fn handle_subflow_timeout(&mut self, now: Instant, at: usize) {
        let subflow = &mut self.subflows[at];
        if subflow.handshake.due.is_some_and(|due| due <= now) && subflow.handshake_failed() {
            subflow.state = State::Closed(anabranch_events::CloseReason::TimedOut);
            return;
        }
        if subflow.sender.deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        let siblings = crate::congestion::Siblings::new(&self.views, at);
        let (timer, outcome) = subflow.sender.on_timer(now, siblings);
        self.report(now, at, &outcome);
        if timer == TimerOutcome::Timeout {
            self.on_subflow_timeout(now, at);
        }
        self.refresh(at);
    }

    /// The host's interface under a path went down or came up. A radio outage that the host does not notice is not
    /// reported here.
    pub fn handle_path_change(&mut self, now: Instant, path: PathId, up: bool) {
        self.path_manager.on_path_change(now, path, up);
        if up {
            self.restore_path(now, path);
        } else {
            self.drop_path(now, path);
        }
        self.mend_mesh(now);
    }

    // Commands.

    /// The application appends bytes to the send stream.
    pub fn write(&mut self, bytes: u64) {
        self.outgoing.write(bytes);
    }

    /// The application withdraws up to `bytes` that it wrote last; returns how many. Bytes given to a subflow, and any
    /// bytes after [`Connection::finish`], cannot be withdrawn.
    pub fn withdraw(&mut self, bytes: u64) -> u64 {
        self.outgoing.withdraw(bytes)
    }

    /// The largest number of bytes that [`Connection::withdraw`] would return.
    pub fn withdrawable(&self) -> u64 {
        self.outgoing.withdrawable()
    }

    /// The application has written everything.
    pub fn finish(&mut self) {
        self.outgoing.finish();
    }

    /// The application takes up to `max` bytes that arrived in order; returns how many it got.
    pub fn read(&mut self, now: Instant, max: u64) -> u64 {
        // Over TCP the data beyond a hole is held by the subflow.
        let plain = self.subflows.first().filter(|_| self.mode == Mode::Plain);
        let around = Surroundings {
            rtt: self.subflows.iter().map(Subflow::round_trip).max().unwrap_or_default(),
            reach: plain.map_or(0, |subflow| subflow.receiver.reach()),
            share: self.subflows.iter().map(|subflow| subflow.receiver.share()).min().unwrap_or(DEFAULT_SHARE),
        };
        let mss = self.views.first().map_or(1460, |view| view.mss);
        let promised = self.incoming.promised();
        let (taken, grown) = self.incoming.read(now, max, around);
        // The subflows' buffers follow, each from where it is.
        if let Some(per_round) = grown {
            self.subflows.iter_mut().for_each(|subflow| subflow.receiver.grow(per_round));
        }
        // A small window that has doubled is advertised at once (Linux `tcp_cleanup_rbuf`).
        let opened = self.subflows.iter().map(|subflow| subflow.receiver.opened()).max().unwrap_or_default();
        let window = self.incoming.window(opened);
        if taken > 0 && promised * 2 <= window && promised < u64::from(mss) * 16 {
            self.subflows.iter_mut().filter(|s| s.is_established()).for_each(|s| s.receiver.acknowledge_now());
        }
        if taken > 0 && self.incoming.readable() == 0 {
            self.subflows.iter_mut().for_each(|s| s.receiver.on_drained());
        }
        taken
    }

    /// Aborts the connection.
    pub fn abort(&mut self, now: Instant) {
        self.abort_all(now);
        self.remove_dead(now);
    }

    /// The application's hints about its data.
    pub fn set_hints(&mut self, hints: Hints) {
        self.hints = hints;
    }

    /// Emits the state of every subflow.
    pub fn sample(&mut self, now: Instant) {
        for (subflow, view) in self.subflows.iter_mut().zip(&self.views) {
            if !subflow.is_established() {
                continue;
            }
            tell_counts(now, subflow, &mut self.log);
            let event = TransportEvent::Sample {
                subflow: view.id,
                cwnd: view.cwnd.as_f64(),
                ssthresh: view.ssthresh.as_f64(),
                in_flight: view.in_flight,
                srtt: view.srtt,
                acked: subflow.sender.acked_bytes(),
            };
            self.log.emit(now, event);
        }
    }

    // Polls.

    /// The next segment to send; to be called until it returns `None`.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if let Some(answer) = self.next_answer() {
            return Some(answer);
        }
        let choice = self.choose(now)?;
        Some(self.encode(now, choice))
    }

    /// When to call [`Connection::handle_timeout`], and [`Connection::poll_transmit`] after it; `None` if no timer
    /// runs.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let mut next = Instant::FAR_FUTURE;
        let mut consider = |at: Option<Instant>| next = next.min(at.unwrap_or(Instant::FAR_FUTURE));
        for subflow in &self.subflows {
            consider(subflow.handshake.due);
            consider(subflow.sender.deadline());
            consider(subflow.receiver.deadline());
        }
        consider(self.waits.scheduler_until);
        consider(self.waits.paced_until);
        consider(self.progress.deadline);
        consider(self.progress.lonely_since.map(|since| since + LONELY_TIMEOUT));
        consider(self.mesh_deadline());
        consider(self.policy_deadline());
        consider(self.announcement_deadline());
        (next != Instant::FAR_FUTURE).then_some(next)
    }

    /// Events since the log was last drained.
    pub fn log(&mut self) -> &mut Log<TransportEvent> {
        &mut self.log
    }

    // Getters.

    /// Bytes that the application may read.
    pub fn readable(&self) -> u64 {
        self.incoming.readable()
    }

    /// Payload that the buffer of received data has room for: read or not, this much the peer may send ahead.
    pub fn receive_room(&self) -> u64 {
        self.incoming.room()
    }

    /// Keeps the buffer of received data from growing, for a host that is short of memory, or lets it grow again.
    pub fn freeze_receive_buffer(&mut self, frozen: bool) {
        self.incoming.freeze(frozen);
    }

    /// Whether the first handshake is complete.
    pub fn is_established(&self) -> bool {
        self.established
    }

    /// Whether the connection is closed, in order or by an abort.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether the connection and all its subflows are closed: the host may drop it. A host that drops it earlier
    /// leaves the peer's last segments unanswered.
    pub fn is_over(&self) -> bool {
        self.closed && self.subflows.iter().all(|s| s.finished() || matches!(s.state, State::Closed(_)))
    }

    /// Whether the peer's stream has ended and every byte of it was read.
    pub fn peer_finished(&self) -> bool {
        self.incoming.ended() && self.incoming.readable() == 0
    }

    /// The token in the peer's joins.
    pub fn token(&self) -> u32 {
        self.local_key.token
    }

    /// The peer's key, which MP_FASTCLOSE carries; `None` before it is known, and over TCP.
    pub fn peer_key(&self) -> Option<u64> {
        self.remote_key.filter(|_| self.mode == Mode::Multipath).map(|key| key.value)
    }

    /// Whether Multipath TCP is in use.
    pub fn is_multipath(&self) -> bool {
        self.mode == Mode::Multipath
    }

    /// Whether a subflow of this path has these ports.
    pub fn has_subflow(&self, path: PathId, local_port: u16, remote_port: u16) -> bool {
        let ports = (local_port, remote_port);
        self.subflows.iter().any(|s| s.path.id == path && (s.local_port, s.remote_port) == ports)
    }

    /// The open subflows as schedulers see them, oldest first.
    pub fn views(&self) -> &[SubflowView] {
        &self.views
    }

    /// Stream bytes that the peer acknowledged at the data level.
    pub fn acked(&self) -> u64 {
        self.outgoing.unacked()
    }

    // Shared by the other files.

    fn refresh(&mut self, at: usize) {
        let mss = self.full_payload(at);
        self.views[at] = self.subflows[at].view(mss);
    }

    fn connection_view(&self, now: Instant) -> ConnectionView {
        ConnectionView {
            now,
            unacked: self.outgoing.unacked(),
            next: self.outgoing.next,
            unsent: self.outgoing.unsent(),
            window_end: self.outgoing.window_end(),
            fragment: (self.config.transport.commit == Commit::IntoBuffer).then(|| self.outgoing.rest_of_fragment()),
            opportunistic_retransmissions: self.progress.opportunistic,
            hints: self.hints,
        }
    }

    fn fall_back(&mut self, now: Instant, reason: FallbackReason) {
        self.mode = Mode::Plain;
        self.log.emit(now, TransportEvent::FellBack { reason });
    }
}

/// Emits the counters of the subflow's congestion control, if they changed since the last emission.
fn tell_counts(now: Instant, subflow: &mut Subflow, log: &mut Log<TransportEvent>) {
    let counters = subflow.sender.control_counters();
    let sum = counters.iter().map(|(_, count)| count).sum();
    if sum == subflow.counts_told {
        return;
    }
    for &(name, count) in counters {
        log.emit(now, TransportEvent::ControlCount { subflow: subflow.id, name, count });
    }
    subflow.counts_told = sum;
}
