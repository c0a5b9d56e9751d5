//! The data level of the endpoint, and its face to the host.
//!
//! Four kinds of method. *Inputs* ([`Connection::handle_segment`], [`Connection::handle_timeout`],
//! [`Connection::handle_path_change`]) tell what happened. *Commands* ([`Connection::write`], [`Connection::read`], ...) are the
//! application's. *Polls* say what to do: after any input or command, call [`Connection::poll_transmit`] until it
//! gives nothing, then ask [`Connection::poll_timeout`] when to come back. *Getters* change nothing.
//!
//! The files: `addresses` (told and taken back), `arrival` (a segment arrived: ordered checks), `handshake`, `choose` (what do I send next: decides, builds nothing),
//! `encode` (builds, decides nothing), `failure` (reinjection, subflows that die), `stale` (the same as upstream Linux does it), `incoming` and `outgoing` (the two streams).

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
    /// On this path.
    pub path: PathId,
    /// What to send.
    pub segment: Segment,
    /// Where its payload starts in the send stream.
    pub stream_offset: u64,
}

/// Where payload of a received segment belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// In the receive stream.
    pub stream_offset: u64,
    /// In the segment's payload.
    pub payload_start: u32,
    /// How many bytes.
    pub len: u32,
}

/// Which end of the connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Client,
    Server,
}

/// What is spoken.
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
    /// There has never been another subflow than the first.
    alone: bool,
    /// The peer asked not to be joined at its initial address and port (`C` of MP_CAPABLE).
    initial_denied: bool,
    /// The peer proved that it speaks Multipath TCP beyond the handshake: joins make sense.
    confirmed: bool,
    local_key: Key,
    remote_key: Option<Key>,
    outgoing: Outgoing,
    incoming: Incoming,
    subflows: Vec<Subflow>,
    /// What the replaceable parts see of each subflow, in the same order; kept up to date after every change.
    views: Vec<SubflowView>,
    scheduler: Box<dyn Scheduler>,
    path_manager: FullMesh,
    path_policy: Box<dyn PathPolicy>,
    hints: Hints,
    log: Log<TransportEvent>,
    next_subflow: u16,
    established: bool,
    closed: bool,
    /// The end of data was told at least once.
    end_told: bool,
    progress: Progress,
    switches: Switches,
    waits: Waits,
    /// Answers to segments of no subflow.
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
            outgoing: Outgoing::new(config.transport.send_buffer.0),
            incoming: Incoming::new(config.transport.receive_buffer),
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

    /// A deadline of [`Connection::poll_timeout`] has come.
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

    /// The host's interface under a path went away or came back. A silent loss of a radio is no such thing: nobody tells.
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

    /// The application takes back up to `bytes` that it wrote last; returns how many it got. What a subflow was given cannot
    /// be taken back, and after [`Connection::finish`] nothing can.
    pub fn withdraw(&mut self, bytes: u64) -> u64 {
        self.outgoing.withdraw(bytes)
    }

    /// How many bytes [`Connection::withdraw`] would take back at most.
    pub fn withdrawable(&self) -> u64 {
        self.outgoing.withdrawable()
    }

    /// The application has written everything.
    pub fn finish(&mut self) {
        self.outgoing.finish();
    }

    /// The application takes up to `max` bytes that arrived in order; returns how many it got.
    pub fn read(&mut self, now: Instant, max: u64) -> u64 {
        // Over TCP what waits for a hole is the subflow's.
        let plain = self.subflows.first().filter(|_| self.mode == Mode::Plain);
        let around = Surroundings {
            rtt: self.subflows.iter().map(Subflow::round_trip).max().unwrap_or_default(),
            reach: plain.map_or(0, |subflow| subflow.receiver.reach()),
            all_heard: self.subflows.iter().all(|subflow| subflow.receiver.has_data()),
        };
        let mss = self.views.first().map_or(1460, |view| view.mss);
        let promised = self.incoming.promised();
        let taken = self.incoming.read(now, max, around);
        // A window that was small and is twice as large now is news to the peer (Linux `tcp_cleanup_rbuf`).
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

    /// Ends the connection at once.
    pub fn abort(&mut self, now: Instant) {
        self.abort_all(now);
        self.remove_dead(now);
    }

    /// What the application knows about its data.
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

    /// The next segment to send; call until it gives nothing.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if let Some(answer) = self.next_answer() {
            return Some(answer);
        }
        let choice = self.choose(now)?;
        Some(self.encode(now, choice))
    }

    /// When to call [`Connection::handle_timeout`], and [`Connection::poll_transmit`] after it.
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

    /// What happened since the log was last drained.
    pub fn log(&mut self) -> &mut Log<TransportEvent> {
        &mut self.log
    }

    // Getters.

    /// Bytes that the application may read.
    pub fn readable(&self) -> u64 {
        self.incoming.readable()
    }

    /// Whether the first handshake is complete.
    pub fn is_established(&self) -> bool {
        self.established
    }

    /// Whether the connection is over, one way or the other.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether the connection is over and every subflow, too: the host may forget it. A host that forgets earlier leaves
    /// the peer's last segments unanswered.
    pub fn is_over(&self) -> bool {
        self.closed && self.subflows.iter().all(|s| s.finished() || matches!(s.state, State::Closed(_)))
    }

    /// Whether the peer's stream has ended and every byte of it was read.
    pub fn peer_finished(&self) -> bool {
        self.incoming.ended() && self.incoming.readable() == 0
    }

    /// The token by which the peer's joins name this connection.
    pub fn token(&self) -> u32 {
        self.local_key.token
    }

    /// Whether Multipath TCP is spoken.
    pub fn is_multipath(&self) -> bool {
        self.mode == Mode::Multipath
    }

    /// The live subflows as schedulers see them, oldest first.
    pub fn views(&self) -> &[SubflowView] {
        &self.views
    }

    /// Stream bytes that the peer acknowledged at the data level.
    pub fn acked(&self) -> u64 {
        self.outgoing.unacked()
    }

    // What the parts share.

    fn refresh(&mut self, at: usize) {
        let mss = self.full_payload(at);
        let subflow = &mut self.subflows[at];
        if self.config.transport.commit == Commit::IntoBuffer {
            subflow.expand_send_buffer(mss, self.config.transport.send_buffer.0);
        }
        self.views[at] = subflow.view(mss);
    }

    fn connection_view(&self, now: Instant) -> ConnectionView {
        ConnectionView {
            now,
            unacked: self.outgoing.unacked(),
            next: self.outgoing.next,
            unsent: self.outgoing.unsent(),
            window_end: self.outgoing.window_end(),
            opportunistic_retransmissions: self.progress.opportunistic,
            hints: self.hints,
        }
    }

    fn fall_back(&mut self, now: Instant, reason: FallbackReason) {
        self.mode = Mode::Plain;
        self.log.emit(now, TransportEvent::FellBack { reason });
    }
}

/// Emits what the subflow's congestion control counted, if it changed since it was told last.
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
