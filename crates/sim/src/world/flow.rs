//! A session: a connection with both its endpoints, the player and the server.

use super::dial::{Dialer, Listener, Retired, raised, see};
use super::side::Side;
use anabranch_events::{Log, TransportEvent};
use anabranch_media::content::DashVideo;
use anabranch_media::{Content, HttpServer, Player, Stream};
use anabranch_observation::{Observer, Written};
use anabranch_scenario::FlowPlan;
use anabranch_segment::{Flags, Segment};
use anabranch_stack::connection::{Connection, TooBig, Transmit};
use anabranch_stack::view::Hints;
use anabranch_units::{Instant, PathId, SubflowId};
use std::sync::Arc;

/// One end of a connection with the byte count of its application.
struct End {
    connection: Connection,
    moved: u64,
}

/// The server's end; before the first SYN arrives there are only its parameters.
enum Server {
    Listening(Box<Listener>),
    Accepted(Box<End>),
    /// The SYN was refused.
    Failed,
}

/// A connection with its applications.
pub(super) struct Flow {
    pub observer: Observer,
    pub start: Instant,
    pub is_session: bool,
    client: End,
    server: Server,
    player: Box<dyn Player + Send>,
    /// What the server serves, if that is a video in several representations.
    pub video: Option<Arc<DashVideo>>,
    pub http: HttpServer,
    hints: Hints,
    dialer: Dialer,
    /// Offset of the current connection's subflow numbers in the session's events.
    first_subflow: u16,
    /// Replaced connections that are not closed.
    retired: Vec<Retired>,
    /// Bytes read by the player from earlier connections.
    read_before: u64,
    /// Whether the connection was opened.
    begun: bool,
    /// Whether the player was started on the established connection.
    playing: bool,
    /// Whether an event of the scenario keeps the client's program from reading.
    paused: bool,
    /// Whether the player reads what arrives: it was started, has not finished, and is not paused.
    reads: bool,
    /// When the player finished.
    finished: Option<Instant>,
    /// When payload arrived last, in order or not.
    last_arrival: Instant,
    /// The player's next timeout as of its last call; [`Instant::FAR_FUTURE`] if there is none.
    player_timeout: Instant,
}

/// A connection as its application sees it.
struct AppStream<'a> {
    end: &'a mut End,
    now: Instant,
}

impl Stream for AppStream<'_> {
    fn readable(&self) -> u64 {
        self.end.connection.readable()
    }

    fn read(&mut self, max: u64) -> u64 {
        self.end.connection.read(self.now, max)
    }

    fn write(&mut self, bytes: u64) {
        self.end.moved += bytes;
        self.end.connection.write(bytes);
    }

    fn unbuffered(&self) -> u64 {
        self.end.connection.unbuffered()
    }

    fn withdraw(&mut self, bytes: u64) -> u64 {
        let taken = self.end.connection.withdraw(bytes);
        self.end.moved -= taken;
        taken
    }

    fn finish(&mut self) {
        self.end.connection.finish();
    }

    fn is_finished(&self) -> bool {
        self.end.connection.peer_finished()
    }
}

/// The connection as the player sees it: it counts the bytes read, to detect progress, and may be replaced.
struct PlayerStream<'a> {
    app: AppStream<'a>,
    dialer: &'a mut Dialer,
    http: &'a mut HttpServer,
    /// The replaced connection, and the parameters of the new one's server.
    replaced: &'a mut Option<(Connection, Listener)>,
}

impl Stream for PlayerStream<'_> {
    fn readable(&self) -> u64 {
        self.app.readable()
    }

    fn read(&mut self, max: u64) -> u64 {
        let taken = self.app.read(max);
        self.app.end.moved += taken;
        taken
    }

    fn write(&mut self, bytes: u64) {
        self.app.end.connection.write(bytes);
    }

    fn reopen(&mut self) -> bool {
        if self.replaced.is_some() {
            return false;
        }
        let (client, listener) = self.dialer.dial();
        let mut old = std::mem::replace(&mut self.app.end.connection, client);
        old.abort(self.app.now);
        // Before the player sends a request.
        self.http.reconnect();
        *self.replaced = Some((old, listener));
        true
    }

    fn finish(&mut self) {
        self.app.finish();
    }

    fn is_finished(&self) -> bool {
        self.app.is_finished()
    }
}

/// The same while the client's program does not read.
struct Unread<'a>(&'a mut dyn Stream);

impl Stream for Unread<'_> {
    fn readable(&self) -> u64 {
        0
    }

    fn read(&mut self, _max: u64) -> u64 {
        0
    }

    fn write(&mut self, bytes: u64) {
        self.0.write(bytes);
    }

    fn reopen(&mut self) -> bool {
        self.0.reopen()
    }

    fn finish(&mut self) {
        self.0.finish();
    }

    fn is_finished(&self) -> bool {
        false
    }
}

impl Flow {
    /// A flow that begins at its start time.
    pub fn new(plan: FlowPlan, observer: Observer, seed: u64) -> Self {
        let mut dialer = Dialer::new(plan.client, plan.server, seed, &plan.name, observer.keeps_rows());
        let (connection, listener) = dialer.dial();
        Flow {
            start: plan.start,
            is_session: plan.is_session,
            client: End { connection, moved: 0 },
            server: Server::Listening(Box::new(listener)),
            player: plan.player,
            video: match plan.content {
                Content::Dash(video) => Some(video),
                _ => None,
            },
            http: HttpServer::new(plan.exchanges),
            hints: plan.hints,
            dialer,
            first_subflow: 0,
            retired: Vec::new(),
            read_before: 0,
            begun: false,
            playing: false,
            paused: false,
            reads: false,
            finished: None,
            last_arrival: plan.start,
            player_timeout: Instant::FAR_FUTURE,
            observer,
        }
    }

    /// The next timeout of this end; [`Instant::FAR_FUTURE`] if there is none.
    #[inline]
    pub fn next_timeout(&self, side: Side) -> Instant {
        let earlier = self.retired.iter().filter_map(|old| old.poll_timeout(side)).min();
        let earlier = earlier.unwrap_or(Instant::FAR_FUTURE);
        let present = match (side, &self.server) {
            (Side::Client, _) if !self.begun => self.start,
            (Side::Client, _) => self.client.connection.next_timeout().min(self.player_timeout),
            (Side::Server, Server::Accepted(end)) => end.connection.next_timeout(),
            (Side::Server, _) => Instant::FAR_FUTURE,
        };
        present.min(earlier)
    }

    /// Runs the due timers of this end.
    pub fn handle_timeout(&mut self, now: Instant, side: Side) {
        if side == Side::Client && !self.begun {
            self.begun = true;
            return;
        }
        for end in self.retired.iter_mut().filter_map(|old| old.end(side)) {
            if end.poll_timeout().is_some_and(|at| at <= now) {
                end.handle_timeout(now);
            }
        }
        if let Some(connection) = self.connection(side)
            && connection.poll_timeout().is_some_and(|at| at <= now)
        {
            connection.handle_timeout(now);
        }
        if side == Side::Client && self.player_timeout <= now {
            let paused = self.paused;
            self.with_player(now, |player, stream| {
                if paused {
                    player.handle_timeout(now, &mut Unread(stream));
                } else {
                    player.handle_timeout(now, stream);
                }
            });
        }
    }

    /// Calls the player with the connection, and retires a connection that it replaced.
    #[inline]
    fn with_player(&mut self, now: Instant, act: impl FnOnce(&mut dyn Player, &mut dyn Stream)) {
        let mut replaced = None;
        let app = AppStream { end: &mut self.client, now };
        act(
            self.player.as_mut(),
            &mut PlayerStream { app, dialer: &mut self.dialer, http: &mut self.http, replaced: &mut replaced },
        );
        self.player_timeout = self.player.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        if let Some((old, listener)) = replaced {
            self.retire(now, old, listener);
        }
    }

    /// The player has a new connection; retires the old one.
    fn retire(&mut self, now: Instant, client: Connection, listener: Listener) {
        let server = match std::mem::replace(&mut self.server, Server::Listening(Box::new(listener))) {
            Server::Accepted(end) => Some(end.connection),
            Server::Listening(_) | Server::Failed => None,
        };
        self.retired.push(Retired::new(self.dialer.present() - 1, self.first_subflow, client, server));
        self.first_subflow = Retired::next_first(&self.observer);
        self.observer.reconnected(now);
        self.read_before += std::mem::take(&mut self.client.moved);
    }

    /// A segment arrived.
    #[inline]
    pub fn receive(&mut self, now: Instant, side: Side, path: PathId, segment: &Segment) {
        if let Some(old) = self.retired.iter_mut().find(|old| old.takes(side, segment)) {
            if let Some(end) = old.end(side) {
                end.handle_segment(now, path, segment);
            }
            return;
        }
        match (side, &mut self.server) {
            (Side::Client, _) => {
                if segment.payload_len > 0 {
                    self.last_arrival = now;
                }
                self.client.connection.handle_segment(now, path, segment);
            }
            (Side::Server, Server::Accepted(end)) => {
                end.connection.handle_segment(now, path, segment);
            }
            (Side::Server, _) => self.accept(now, path, segment),
        }
    }

    /// A packet of this end was too big for a link with this MTU. The report's ports are those of an answer to the
    /// packet; its payload is the packet's length.
    pub fn too_big(&mut self, now: Instant, side: Side, path: PathId, report: &Segment, mtu: u32) {
        let about = TooBig {
            local_port: report.destination_port,
            remote_port: report.source_port,
            seq: report.seq,
            packet: report.payload_len,
            mtu,
        };
        let retired = self.retired.iter_mut().find(|old| old.takes(side, report)).and_then(|old| old.end(side));
        let present = match (side, &mut self.server) {
            (Side::Client, _) => Some(&mut self.client.connection),
            (Side::Server, Server::Accepted(end)) => Some(&mut end.connection),
            (Side::Server, _) => None,
        };
        if let Some(connection) = retired.or(present) {
            connection.handle_too_big(now, path, &about);
        }
    }

    fn accept(&mut self, now: Instant, path: PathId, segment: &Segment) {
        if !segment.flags.contains(Flags::SYN) || segment.flags.contains(Flags::ACK) {
            return;
        }
        if let Server::Listening(listener) = std::mem::replace(&mut self.server, Server::Failed)
            && let Some(mut connection) = listener.accept(now, path, segment)
        {
            connection.set_hints(self.hints);
            connection.report_decisions(self.observer.keeps_rows());
            self.server = Server::Accepted(Box::new(End { connection, moved: 0 }));
        }
    }

    /// Data arrived, and the application of this end is about to read. Returns whether an acknowledgment leaves before,
    /// see [`Connection::begin_reading`].
    #[inline]
    pub fn begin_reading(&mut self, side: Side) -> bool {
        self.connection(side).is_some_and(Connection::begin_reading)
    }

    /// Lets the application of this end read the available data; then come the segments of [`Flow::transmit`].
    #[inline]
    pub fn run_application(&mut self, now: Instant, side: Side) {
        match (side, &mut self.server) {
            (Side::Client, _) => self.run_player(now),
            (Side::Server, Server::Accepted(end)) => {
                if end.connection.readable() > 0 || end.connection.peer_finished() {
                    self.http.on_readable(&mut AppStream { end, now });
                }
            }
            (Side::Server, _) => {}
        }
    }

    fn run_player(&mut self, now: Instant) {
        if !self.reads && !self.begin_to_read(now) {
            return;
        }
        if self.client.connection.readable() > 0 || self.client.connection.peer_finished() {
            self.with_player(now, |player, stream| player.on_readable(now, stream));
        }
        if self.player.finished() {
            self.finish(now);
        }
    }

    /// Starts the player once its connection is there; returns whether it reads then. Else it is paused, or has
    /// finished.
    #[cold]
    fn begin_to_read(&mut self, now: Instant) -> bool {
        if !self.playing {
            if !self.begun || !self.client.connection.is_established() {
                return false;
            }
            (self.playing, self.reads) = (true, !self.paused);
            self.with_player(now, |player, stream| player.start(now, stream));
        }
        // Also a player that does not read plays what it has.
        if self.paused && self.finished.is_none() && self.player.finished() {
            self.finish(now);
        }
        self.reads
    }

    fn finish(&mut self, now: Instant) {
        (self.finished, self.reads) = (Some(now), false);
        // An abandoned download leaves bytes in flight that are never read.
        let written = if let Server::Accepted(end) = &self.server { end.moved } else { 0 };
        if self.client.moved < written + self.http.owed() {
            self.client.connection.abort(now);
        }
    }

    /// The client's program stops reading, or reads again.
    pub fn set_reads(&mut self, reads: bool) {
        self.paused = !reads;
        self.reads = reads && self.playing && self.finished.is_none();
    }

    /// The server's program stops writing, or writes again.
    pub fn set_writes(&mut self, now: Instant, writes: bool) {
        let mut stream = match &mut self.server {
            Server::Accepted(end) => Some(AppStream { end, now }),
            Server::Listening(_) | Server::Failed => None,
        };
        let stream = stream.as_mut().map(|stream| stream as &mut dyn Stream);
        if writes {
            self.http.resume(stream);
        } else {
            self.http.pause(stream);
        }
    }

    /// Passes the segments that this end sends now to `send`, which returns true.
    #[inline]
    pub fn transmit(&mut self, now: Instant, side: Side, send: &mut dyn FnMut(Transmit) -> bool) {
        for end in self.retired.iter_mut().filter_map(|old| old.end(side)) {
            end.transmit(now, send);
        }
        match (side, &mut self.server) {
            (Side::Client, _) if !self.begun => {}
            (Side::Client, _) => self.client.connection.transmit(now, send),
            (Side::Server, Server::Accepted(end)) => end.connection.transmit(now, send),
            (Side::Server, _) => {}
        }
    }

    /// The client's interface on a path went down or came up.
    pub fn interface_changed(&mut self, now: Instant, path: PathId, up: bool) {
        self.client.connection.handle_path_change(now, path, up);
        for client in self.retired.iter_mut().filter_map(|old| old.end(Side::Client)) {
            client.handle_path_change(now, path, up);
        }
    }

    /// Gives the connection of this end a buffer for its events, until [`Flow::drain_events`] takes it back. A
    /// connection that waits needs none, and a buffer that all connections share stays in the processor's cache.
    #[inline]
    pub fn lend_log(&mut self, side: Side, buffer: &mut Log<TransportEvent>) {
        if let Some(connection) = self.connection(side) {
            std::mem::swap(connection.log(), buffer);
        }
    }

    /// Passes the events of this end to the observer, and takes the connection's buffer back.
    #[inline]
    pub fn drain_events(&mut self, side: Side, buffer: &mut Log<TransportEvent>) {
        self.drain_retired(side);
        let first = self.first_subflow;
        match (side, &mut self.server) {
            (Side::Client, _) => {
                see(&mut self.observer, side, self.client.connection.log(), first);
                std::mem::swap(buffer, self.client.connection.log());
                if self.playing {
                    self.observer.see_player(self.player.log());
                }
            }
            (Side::Server, Server::Accepted(end)) => {
                see(&mut self.observer, side, end.connection.log(), first);
                std::mem::swap(buffer, end.connection.log());
            }
            (Side::Server, _) => {}
        }
    }

    fn drain_retired(&mut self, side: Side) {
        if !self.retired.is_empty() {
            self.retired.iter_mut().for_each(|old| old.drain_events(side, &mut self.observer));
            self.retired.retain(|old| !old.is_over());
        }
    }

    /// Tells the observer, if it follows endpoints, what this end is like now.
    pub fn note_end(&mut self, now: Instant, side: Side) {
        if !self.observer.follows_endpoints() {
            return;
        }
        if side == Side::Client {
            let unread = self.client.connection.readable() > 0;
            let advertised = self.client.connection.advertised();
            return self.observer.note_receiver(now, self.client.moved, unread, self.paused, advertised);
        }
        if let Server::Accepted(end) = &self.server {
            let connection = &end.connection;
            let written =
                Written { bytes: end.moved, all_given: connection.withdrawable() == 0, owes: self.http.owed() > 0 };
            self.observer.note_sender(now, &connection.limits(now), written);
        }
    }

    /// Makes both endpoints and the player emit samples.
    pub fn sample(&mut self, now: Instant, buffer: &mut Log<TransportEvent>) {
        self.lend_log(Side::Server, buffer);
        if let Server::Accepted(end) = &mut self.server {
            end.connection.sample(now);
        }
        self.observer.begin_sample(now);
        if self.playing && self.finished.is_none() && self.observer.keeps_buffer_levels() {
            self.player.sample(now);
            self.player_timeout = self.player.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        }
        // The client's connection emits no samples and has no buffer now.
        self.drain_events(Side::Client, &mut Log::default());
        self.drain_events(Side::Server, buffer);
    }

    /// Bytes read by the player so far.
    pub fn bytes_read(&self) -> u64 {
        self.read_before + self.client.moved
    }

    /// The server's end of the present connection, once it exists.
    pub fn served(&mut self) -> Option<&mut Connection> {
        self.connection(Side::Server)
    }

    /// When the player finished, if it has.
    pub fn finished(&self) -> Option<Instant> {
        self.finished
    }

    /// Whether the session is over: the player has finished, or its connection is closed and nothing
    /// received is left to be played.
    pub fn is_over(&self) -> bool {
        self.finished.is_some() || (self.client.connection.is_closed() && self.player_timeout == Instant::FAR_FUTURE)
    }

    /// When payload arrived last, in order or not; the start if none did.
    pub fn last_arrival(&self) -> Instant {
        self.last_arrival
    }

    /// Whether the player has nothing to do until more data arrives.
    pub fn is_starved(&self) -> bool {
        self.begun && self.player_timeout == Instant::FAR_FUTURE
    }

    /// The paths of the flow.
    pub fn paths(&self) -> &[PathId] {
        self.observer.paths()
    }

    /// The number in the session's events of the subflow that sent a segment from this end, and the offset of its
    /// payload; none if there is no such subflow any more.
    pub fn origin_of(&self, side: Side, path: PathId, segment: &Segment) -> Option<(SubflowId, Option<u64>)> {
        if let Some(old) = self.retired.iter().find(|old| old.takes(side.other(), segment)) {
            return old.origin_of(side, path, segment);
        }
        let present = match (side, &self.server) {
            (Side::Client, _) => &self.client.connection,
            (Side::Server, Server::Accepted(end)) => &end.connection,
            (Side::Server, _) => return None,
        };
        let (subflow, offset) = present.origin_of(path, segment)?;
        Some((raised(subflow, self.first_subflow), offset))
    }

    fn connection(&mut self, side: Side) -> Option<&mut Connection> {
        match (side, &mut self.server) {
            (Side::Client, _) => Some(&mut self.client.connection),
            (Side::Server, Server::Accepted(end)) => Some(&mut end.connection),
            (Side::Server, _) => None,
        }
    }
}
