//! The data level of the endpoint and its public interface.
//!
//! Four kinds of method. *Inputs* ([`Connection::handle_segment`], [`Connection::handle_timeout`],
//! [`Connection::handle_path_change`]) report what happened. *Commands* ([`Connection::write`], [`Connection::read`],
//! ...) are the application's. *Polls* return what to do: after any input or command, call
//! [`Connection::poll_transmit`] until it returns `None` (or [`Connection::transmit`], which comes to the same), then
//! [`Connection::poll_timeout`] for the time of the next call. *Getters* change nothing.
//!
//! The files, in the order of a segment's life: `receive` (ordered checks of a segment) and `predict` (the segment that
//! a transfer without loss expects), `choose` (the next segment to send), `carry_out` (moves what the choice takes),
//! `encode` (builds the segment, decides nothing), `timers`. Also: `subflows` (the subflows with their views),
//! `incoming` and `outgoing` (the two streams), `handshake`, `addresses` (ADD_ADDR, REMOVE_ADDR), `failure`
//! (reinjection, closed subflows), `stale` (failures as in upstream Linux), `fallback` (plain TCP), `policy` (path
//! policies), `path_mtu` (packets that were too big), `withhold` (peers that acknowledge what they have not received),
//! `forecasting` (what schedulers
//! that forecast arrivals ask for), `limits` (what keeps a path from carrying more), `report` (reasons of decisions),
//! `pace_cap` (a limit of the rate of all subflows together), `room` (how
//! much an application may write ahead), and `resets` (for segments of no subflow).

mod addresses;
mod carry_out;
mod choose;
mod config;
mod deadline;
mod encode;
mod failure;
mod fallback;
mod forecasting;
mod handshake;
mod incoming;
mod keys;
mod limits;
mod numbers;
mod outgoing;
mod pace_cap;
mod pages;
mod path_mtu;
mod policy;
mod predict;
#[cfg(test)]
mod prediction_tests;
mod receive;
mod report;
mod resets;
mod room;
mod stale;
mod state;
mod subflows;
mod timers;
mod transport;
mod withhold;
#[cfg(test)]
mod wraps;

pub use crate::external::Choice;
pub use crate::path::PathConfig;
pub use crate::receive_memory::ReceiveBuffer;
pub use config::{Config, Entropy, WITHHELD_INTERVAL};
pub use path_mtu::{MtuReduction, TooBig};
pub use transport::{
    Commit, EXTERNAL_NAME, Failover, Protocol, Transport, Writer, congestion_control_schema, path_policy_schema,
    scheduler_schema,
};

use crate::external;
use crate::options::OptionError;
use crate::path_manager::FullMesh;
use crate::path_policy::PathPolicy;
use crate::receive_memory::DEFAULT_SHARE;
use crate::scheduler::{Scheduler, SubflowSet};
use crate::subflow::{State, Subflow};
use crate::view::{ConnectionView, Hints, SubflowView};
use anabranch_events::{FallbackReason, Log, Note, TransportEvent};
use anabranch_segment::Segment;
use anabranch_units::{Bandwidth, Duration, Instant, PathId, SeqNumber, SubflowId};
use choose::NextSegment;
use deadline::Deadline;
use forecasting::Forecasting;
use incoming::{Incoming, Surroundings};
use keys::Key;
use outgoing::Outgoing;
use pace_cap::PaceCap;
use state::{Switches, Waits};
use std::collections::VecDeque;
use subflows::{DataOptions, Subflows};
use timers::Progress;

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
    /// Only the initial subflow ever existed.
    alone: bool,
    /// The peer asked not to be joined at its initial address and port (`C` of MP_CAPABLE).
    initial_denied: bool,
    local_key: Key,
    remote_key: Option<Key>,
    outgoing: Outgoing,
    incoming: Incoming,
    subflows: Subflows,
    scheduler: Box<dyn Scheduler>,
    path_manager: FullMesh,
    path_policy: Box<dyn PathPolicy>,
    hints: Hints,
    buffered_until: Option<Instant>,
    pace_cap: PaceCap,
    log: Log<TransportEvent>,
    next_subflow: u16,
    established: bool,
    closed: bool,
    /// DATA_FIN was sent at least once.
    data_fin_sent: bool,
    progress: Progress,
    switches: Switches,
    waits: Waits,
    forecasting: Forecasting,
    /// Resets for segments of no subflow.
    answers: VecDeque<resets::Answer>,
    addresses: addresses::Addresses,
    /// Some part comes from outside, and may have notes to report.
    reports_notes: bool,
    /// A host keeps events that say why decisions were made as they were.
    reports_decisions: bool,
    mtu_reductions: Vec<MtuReduction>,
    false_acknowledgments: Vec<PathId>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("role", &self.role)
            .field("mode", &self.mode())
            .field("outgoing", &self.outgoing)
            .field("subflows", &self.views())
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// A client. The first [`Connection::poll_transmit`] yields its SYN.
    ///
    /// # Errors
    /// If there are more than [`SubflowSet::CAPACITY`] paths, or if the scheduler or a congestion control does not
    /// exist or refuses its options.
    pub fn client(config: Config, entropy: Box<dyn Entropy>) -> Result<Self, OptionError> {
        let mut connection = Self::new(config, entropy, Role::Client)?;
        let path = connection.config.paths[0];
        connection.open(Instant::ZERO, path, State::SynSent, crate::subflow::Opening::Initial, None)?;
        Ok(connection)
    }

    /// A server's end, for a SYN without MP_JOIN that arrived on `path`.
    ///
    /// # Errors
    /// As for [`Connection::client`].
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
        let (most, paths) = (SubflowSet::CAPACITY, config.paths.len());
        if paths > most {
            let message = format!("there are {paths}; a connection has at most {most}, one subflow on each");
            return Err(OptionError { option: "paths".into(), message });
        }
        let scheduler = external::scheduler(&config.transport.scheduler)?;
        let forecasting = Forecasting::new(scheduler.services());
        let path_policy = external::path_policy(&config.transport.path_policy)?;
        let reports_notes = config.external_parts().is_some();
        let mode = if config.transport.protocol == Protocol::Tcp { Mode::Plain } else { Mode::Negotiating };
        let local_key = Key::new(entropy.next_u64());
        let wide_data_seq = config.transport.wide_data_seq;
        let data_options = DataOptions { mode, role, confirmed: false, wide_data_seq };
        Ok(Connection {
            role,
            alone: true,
            initial_denied: false,
            local_key,
            remote_key: None,
            outgoing: match config.transport.commit {
                Commit::AtWindow => Outgoing::new(config.transport.send_buffer.0),
                Commit::IntoBuffer => Outgoing::in_pages(0, config.transport.writer),
            },
            incoming: Incoming::new(
                config.transport.receive_buffer(config.paths[0].mss()),
                config.transport.receive_buffer.window_scale(),
            ),
            subflows: Subflows::new(data_options, config.transport.commit),
            scheduler,
            waits: Waits { policy_until: path_policy.poll_timeout().into(), ..Waits::default() },
            path_policy,
            path_manager: FullMesh::new(config.paths.iter().map(|path| path.id)),
            hints: Hints::default(),
            buffered_until: None,
            pace_cap: PaceCap::default(),
            log: Log::default(),
            next_subflow: 0,
            established: false,
            closed: false,
            progress: Progress::default(),
            data_fin_sent: false,
            switches: Switches::default(),
            forecasting,
            answers: VecDeque::new(),
            addresses: addresses::Addresses::default(),
            reports_notes,
            reports_decisions: false,
            mtu_reductions: Vec::new(),
            false_acknowledgments: Vec::new(),
            config,
            entropy,
        })
    }

    // Inputs.

    /// The host's interface under a path went down or came up. A radio outage that the host does not notice is not
    /// reported here.
    pub fn handle_path_change(&mut self, now: Instant, path: PathId, up: bool) {
        self.path_manager.on_path_change(now, path, up);
        if up {
            self.restore_path(now, path);
        } else {
            self.drop_path(now, path);
        }
        self.open_missing_subflows(now);
    }

    // Commands.

    /// The application appends bytes to the send stream.
    pub fn write(&mut self, bytes: u64) {
        self.size_send_buffer();
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

    /// Bytes written for which the send buffer has had no room yet.
    pub fn unbuffered(&self) -> u64 {
        self.outgoing.unbuffered()
    }

    /// The application has written everything.
    pub fn finish(&mut self) {
        self.outgoing.finish();
    }

    /// The application takes up to `max` bytes that arrived in order; returns how many it got.
    pub fn read(&mut self, now: Instant, max: u64) -> u64 {
        let taken = self.incoming.read(max);
        if self.incoming.tuning_is_due(now) {
            self.tune_receive_buffers(now);
        }
        if taken > 0 {
            self.advertise_room();
            self.acknowledge_read();
        }
        taken
    }

    /// Data arrived, and the application is about to read. In Linux an acknowledgment that the arrival made due has
    /// left by then, and its window has no room for what became readable. Returns whether that matters: then the host
    /// sends what is due ([`Connection::transmit`]) before the application reads. Otherwise it leaves before what the
    /// application writes next. A host need not call this; its acknowledgments then have the room.
    #[inline]
    pub fn begin_reading(&mut self) -> bool {
        let Some(at) = self.waits.answers_on.take() else { return false };
        self.waits.acknowledges_first = true;
        self.incoming.readable() > 0 && self.incoming.is_limited(self.subflows[at].receiver.own_window())
    }

    /// Right-sizes the connection's receive buffer; the subflows' buffers follow, each from where it is.
    fn tune_receive_buffers(&mut self, now: Instant) {
        // Over TCP the data beyond a hole is held by the subflow.
        let plain = self.subflows.first().filter(|_| self.mode() == Mode::Plain);
        let around = Surroundings {
            rtt: self.subflows.iter().map(Subflow::round_trip).max().unwrap_or_default(),
            reach: plain.map_or(0, |subflow| subflow.receiver.reach()),
            share: self.subflows.iter().map(|subflow| subflow.receiver.share()).min().unwrap_or(DEFAULT_SHARE),
        };
        if let Some(per_round) = self.incoming.tune(now, around) {
            for at in 0..self.subflows.len() {
                // Linux measures nothing on a subflow before its SYN was answered.
                if !matches!(self.subflows[at].state, State::SynSent | State::SynReceived) {
                    self.subflows.receiver(at).grow(per_round);
                }
            }
        }
    }

    /// The application has made room: each subflow advertises it at once whose own window it doubles (Linux's
    /// `mptcp_cleanup_rbuf` and `tcp_cleanup_rbuf`). A subflow's own window is what it advertised last, less what has
    /// arrived on it since. Where a hole was filled through another subflow it is as large as before, and nothing is
    /// sent.
    fn advertise_room(&mut self) {
        if self.mode() == Mode::Multipath && !self.incoming.has_opened() {
            return;
        }
        for at in 0..self.subflows.len() {
            let subflow = &self.subflows[at];
            let free = self.incoming.free(subflow.receiver.own_window());
            if subflow.is_established() && free > 0 && free >= 2 * subflow.receiver.window() {
                self.acknowledge_first(at);
            }
        }
    }

    /// The application has read what was readable, or a part of it.
    fn acknowledge_read(&mut self) {
        let drained = self.incoming.is_empty();
        for at in self.subflows.may_owe().iter() {
            if self.subflows[at].receiver.acknowledges_when_read(drained) {
                self.acknowledge_first(at);
            }
        }
    }

    /// Reading makes an acknowledgment due. It leaves before what the application writes next.
    fn acknowledge_first(&mut self, at: usize) {
        self.subflows.receiver(at).acknowledge_now();
        self.waits.acknowledges_first = true;
    }

    /// Aborts the connection.
    pub fn abort(&mut self, now: Instant) {
        self.abort_all(now);
        self.remove_dead(now);
    }

    /// How long packets of the subflows wait in queues: of each with data in flight, its smoothed round trip less its
    /// least one.
    pub fn queueing_delays(&self) -> impl Iterator<Item = (SubflowId, Duration)> {
        self.subflows.iter().filter_map(|subflow| Some((subflow.id, subflow.queueing_delay()?)))
    }

    /// Whether events have what takes time to find out and no behaviour depends on: how the scheduler saw each subflow
    /// when it decided about new data, and which subflow data was given before that is copied. A host that keeps a
    /// table of events asks for it.
    pub fn report_decisions(&mut self, wanted: bool) {
        self.reports_decisions = wanted;
    }

    /// The application's hints about its data.
    pub fn set_hints(&mut self, hints: Hints) {
        self.hints = hints;
    }

    /// When the viewer's buffer will be empty if nothing more arrives, by the application's estimate; `None` where it
    /// has none. Schedulers see it ([`ConnectionView::buffer`]) when something happens next.
    pub fn set_buffered_until(&mut self, time: Option<Instant>) {
        self.buffered_until = time;
    }

    /// Limits the rate of payload that is sent, new or not, over all subflows together; `None` removes the limit.
    /// Windows and paces of the congestion controls apply as before, and acknowledgments are not limited.
    pub fn set_pace_cap(&mut self, rate: Option<Bandwidth>) {
        self.pace_cap.set(rate);
    }

    /// The limit of [`Connection::set_pace_cap`].
    pub fn pace_cap(&self) -> Option<Bandwidth> {
        self.pace_cap.rate()
    }

    /// Emits the state of every subflow.
    pub fn sample(&mut self, now: Instant) {
        for subflow in self.subflows.iter_noted() {
            if !subflow.is_established() {
                continue;
            }
            report_counters(now, subflow, &mut self.log);
            let sender = &subflow.sender;
            let event = TransportEvent::Sample {
                subflow: subflow.id,
                cwnd: sender.window().cwnd.as_f64(),
                ssthresh: sender.window().ssthresh.as_f64(),
                in_flight: sender.board().in_flight(),
                srtt: sender.rtt().srtt(),
                acked: subflow.sender.acked_bytes(),
            };
            self.log.emit(now, event);
        }
    }

    // Polls.

    /// The next segment to send; to be called until it returns `None`.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        let mut next = None;
        self.transmit(now, &mut |transmit| {
            next = Some(transmit);
            false
        });
        next
    }

    /// Passes the segments to `send` that [`Connection::poll_transmit`] would return, until `send` returns false or
    /// there is none left. The host gets each where it was built, and moves it once.
    pub fn transmit(&mut self, now: Instant, send: &mut dyn FnMut(Transmit) -> bool) {
        while let Some(answer) = self.next_answer() {
            if !send(answer) {
                return;
            }
        }
        self.waits.paced_until = Deadline::NEVER;
        while let Some(choice) = self.choose(now) {
            if let NextSegment::Data { at, chunk, source } = choice
                && self.queues(source)
            {
                self.carry_into_queue(now, at, chunk, source);
                continue;
            }
            if let Some(interval) = self.config.withheld_interval
                && self.withholds(&choice, interval)
            {
                self.withhold(now, &choice);
                continue;
            }
            if !send(self.carry_out(now, &choice)) {
                return;
            }
            self.waits.paced_until = Deadline::NEVER;
        }
        self.end_burst(now);
        if self.reports_notes {
            self.report_notes(now);
        }
    }

    /// Emits the notes of the replaceable parts. Every input ends with a poll that yields nothing, so this is the time
    /// of all of them.
    fn report_notes(&mut self, now: Instant) {
        let log = &mut self.log;
        self.scheduler.take_notes(&mut |note| log.emit(now, TransportEvent::Noted(note)));
        self.path_policy.take_notes(&mut |note| log.emit(now, TransportEvent::Noted(note)));
        for subflow in self.subflows.iter_noted() {
            let own = Some(subflow.id);
            subflow.sender.take_notes(&mut |note| {
                log.emit(now, TransportEvent::Noted(Note { subflow: note.subflow.or(own), ..note }));
            });
        }
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

    /// The window that was advertised last, on whichever subflow, and one past the last byte that was ever advertised.
    pub fn advertised(&self) -> (u64, u64) {
        (self.incoming.advertised(), self.incoming.edge())
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
        self.remote_key.filter(|_| self.mode() == Mode::Multipath).map(|key| key.value)
    }

    /// Whether Multipath TCP is in use.
    pub fn is_multipath(&self) -> bool {
        self.mode() == Mode::Multipath
    }

    /// Whether a subflow of this path has these ports.
    pub fn has_subflow(&self, path: PathId, local_port: u16, remote_port: u16) -> bool {
        self.subflow_with(path, local_port, remote_port).is_some()
    }

    /// The number of the first byte that the peer has not acknowledged on the subflow of this path with these ports;
    /// `None` if there is no such subflow.
    pub fn first_unacknowledged(&self, path: PathId, local_port: u16, remote_port: u16) -> Option<SeqNumber> {
        self.subflow_with(path, local_port, remote_port).map(|subflow| subflow.isn.at(subflow.sender.acked()))
    }

    fn subflow_with(&self, path: PathId, local_port: u16, remote_port: u16) -> Option<&Subflow> {
        let ports = (local_port, remote_port);
        self.subflows.iter().find(|s| s.path.id == path && (s.local_port, s.remote_port) == ports)
    }

    /// The open subflows as schedulers see them, oldest first.
    pub fn views(&self) -> Vec<SubflowView> {
        let options = self.subflows.options();
        self.subflows.iter().map(|subflow| subflow.view(options.full_payload(subflow))).collect()
    }

    /// Stream bytes that the peer acknowledged at the data level.
    pub fn acked(&self) -> u64 {
        self.outgoing.unacked()
    }

    // Shared by the other files.

    /// The protocol in use.
    #[inline]
    fn mode(&self) -> Mode {
        self.subflows.options().mode
    }

    /// The peer has sent DSS after the handshake: joins may be sent.
    #[inline]
    fn confirmed(&self) -> bool {
        self.subflows.options().confirmed
    }

    /// Payload of a full segment on the subflow.
    fn full_payload(&self, at: usize) -> u32 {
        self.subflows.options().full_payload(&self.subflows[at])
    }

    fn connection_view(&self, now: Instant) -> ConnectionView {
        ConnectionView {
            now,
            unacked: self.outgoing.unacked(),
            next: self.outgoing.next,
            unsent: self.outgoing.unsent(),
            window_end: self.outgoing.window_end(),
            fragment: self.outgoing.rest_of_fragment(),
            write_begins: self.outgoing.write_begins(),
            opportunistic_retransmissions: self.progress.opportunistic,
            hints: self.hints,
            buffered_until: self.buffered_until,
        }
    }

    fn fall_back(&mut self, now: Instant, reason: FallbackReason) {
        self.subflows.set_mode(Mode::Plain);
        self.log.emit(now, TransportEvent::FellBack { reason });
    }
}

/// Emits the counters of the subflow's congestion control, if they changed since the last emission.
fn report_counters(now: Instant, subflow: &mut Subflow, log: &mut Log<TransportEvent>) {
    let counters = subflow.sender.control_counters();
    let sum = counters.iter().map(|(_, count)| count).sum();
    if sum == subflow.counters_reported {
        return;
    }
    for &(name, count) in counters {
        log.emit(now, TransportEvent::ControlCount { subflow: subflow.id, name, count });
    }
    subflow.counters_reported = sum;
}
