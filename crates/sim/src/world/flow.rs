//! One connection: both endpoints, the player and the server behind them.

use crate::parts::{FlowPlan, Observer};
use anabranch_media::{HttpServer, Player, Stream};
use anabranch_network::Streams;
use anabranch_segment::{Flags, Segment};
use anabranch_stack::connection::{Config, Connection, Entropy, Transmit};
use anabranch_stack::view::Hints;
use anabranch_units::{Instant, PathId};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;

/// Keys, sequence numbers and nonces from the run's seed.
struct SeededEntropy(ChaCha8Rng);

impl SeededEntropy {
    fn new(seed: u64, flow: &str, side: &str) -> Self {
        let name = format!("{}/{side}", flow.replace(' ', "/"));
        SeededEntropy(Streams::new(seed, name).stream("entropy"))
    }
}

impl Entropy for SeededEntropy {
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// One end of a connection with the bytes that its application moved.
struct End {
    connection: Connection,
    moved: u64,
}

/// What a server is made from.
struct Listener {
    config: Config,
    entropy: SeededEntropy,
}

/// The server: before the first SYN arrives there is only what it will be made from.
enum Server {
    Listening(Box<Listener>),
    Accepted(Box<End>),
    /// The SYN was refused.
    Failed,
}

/// Which end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

impl Side {
    /// The position among a flow's two components.
    pub fn index(self) -> usize {
        usize::from(self == Side::Server)
    }
}

/// A connection with its applications.
pub(super) struct Flow {
    pub observer: Observer,
    pub start: Instant,
    pub awaited: bool,
    client: End,
    server: Server,
    player: Box<dyn Player + Send>,
    http: HttpServer,
    hints: Hints,
    /// The connection was opened: its time has come.
    begun: bool,
    /// The player was told that the connection stands.
    playing: bool,
    /// When the player was done.
    finished: Option<Instant>,
    /// When payload arrived last, in order or not.
    last_arrival: Instant,
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

/// Counts what the player reads, to know whether anything moves.
struct PlayerStream<'a>(AppStream<'a>);

impl Stream for PlayerStream<'_> {
    fn readable(&self) -> u64 {
        self.0.readable()
    }

    fn read(&mut self, max: u64) -> u64 {
        let taken = self.0.read(max);
        self.0.end.moved += taken;
        taken
    }

    fn write(&mut self, bytes: u64) {
        self.0.end.connection.write(bytes);
    }

    fn finish(&mut self) {
        self.0.finish();
    }

    fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl Flow {
    /// A flow that begins at its time.
    ///
    /// # Panics
    /// If the transport refuses options that were accepted when the scenario was read.
    pub fn new(plan: FlowPlan, seed: u64) -> Self {
        let entropy = |side| SeededEntropy::new(seed, &plan.name, side);
        let connection = Connection::client(plan.client, Box::new(entropy("client")));
        let connection = connection.expect("the scenario's options were checked");
        Flow {
            start: plan.start,
            awaited: plan.awaited,
            client: End { connection, moved: 0 },
            server: Server::Listening(Box::new(Listener { config: plan.server, entropy: entropy("server") })),
            player: plan.player,
            http: HttpServer::new(plan.exchanges),
            hints: plan.hints,
            begun: false,
            playing: false,
            finished: None,
            last_arrival: plan.start,
            observer: plan.observer,
        }
    }

    /// When this end wants to be woken.
    pub fn next_wake(&self, side: Side) -> Instant {
        let connection = match (side, &self.server) {
            (Side::Client, _) if !self.begun => return self.start,
            (Side::Client, _) => &self.client.connection,
            (Side::Server, Server::Accepted(end)) => &end.connection,
            (Side::Server, _) => return Instant::FAR_FUTURE,
        };
        let transport = connection.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        match side {
            Side::Client => transport.min(self.player_timer()),
            Side::Server => transport,
        }
    }

    fn player_timer(&self) -> Instant {
        if self.playing { self.player.next_timer().unwrap_or(Instant::FAR_FUTURE) } else { Instant::FAR_FUTURE }
    }

    /// The time of this end has come.
    pub fn wake(&mut self, now: Instant, side: Side) {
        if side == Side::Client && !self.begun {
            self.begun = true;
            return;
        }
        if let Some(connection) = self.connection(side)
            && connection.poll_timeout().is_some_and(|at| at <= now)
        {
            connection.handle_timeout(now);
        }
        if side == Side::Client && self.player_timer() <= now {
            self.player.on_timer(now, &mut PlayerStream(AppStream { end: &mut self.client, now }));
        }
    }

    /// A segment arrived.
    #[inline]
    pub fn receive(&mut self, now: Instant, side: Side, path: PathId, segment: &Segment) {
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

    fn accept(&mut self, now: Instant, path: PathId, segment: &Segment) {
        if !segment.flags.contains(Flags::SYN) || segment.flags.contains(Flags::ACK) {
            return;
        }
        if let Server::Listening(listener) = std::mem::replace(&mut self.server, Server::Failed)
            && let Ok(mut connection) =
                Connection::accept(listener.config, Box::new(listener.entropy), now, path, segment)
        {
            connection.set_hints(self.hints);
            self.server = Server::Accepted(Box::new(End { connection, moved: 0 }));
        }
    }

    /// Lets the application of this end take what is there; then come the segments of [`Flow::poll_transmit`].
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
        if !self.playing {
            if !self.begun || !self.client.connection.is_established() {
                return;
            }
            self.playing = true;
            self.player.start(now, &mut PlayerStream(AppStream { end: &mut self.client, now }));
        }
        if self.finished.is_some() {
            return;
        }
        if self.client.connection.readable() > 0 || self.client.connection.peer_finished() {
            self.player.on_readable(now, &mut PlayerStream(AppStream { end: &mut self.client, now }));
        }
        if self.player.finished() {
            self.finished = Some(now);
            // A download that was given up leaves bytes under way that nobody will read.
            let written = if let Server::Accepted(end) = &self.server { end.moved } else { 0 };
            if self.client.moved < written {
                self.client.connection.abort(now);
            }
        }
    }

    /// The next segment that this end sends.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant, side: Side) -> Option<Transmit> {
        match (side, &mut self.server) {
            (Side::Client, _) if !self.begun => None,
            (Side::Client, _) => self.client.connection.poll_transmit(now),
            (Side::Server, Server::Accepted(end)) => end.connection.poll_transmit(now),
            (Side::Server, _) => None,
        }
    }

    /// The client's interface on a path went away or came back.
    pub fn interface_changed(&mut self, now: Instant, path: PathId, up: bool) {
        self.client.connection.handle_path_change(now, path, up);
    }

    /// Lets the observer see what this end said since the last call.
    #[inline]
    pub fn drain_events(&mut self, side: Side) {
        match (side, &mut self.server) {
            (Side::Client, _) => {
                self.observer.see_receiver(self.client.connection.log());
                if self.playing {
                    self.observer.see_player(self.player.log());
                }
            }
            (Side::Server, Server::Accepted(end)) => self.observer.see_sender(end.connection.log()),
            (Side::Server, _) => {}
        }
    }

    /// Has both endpoints and the player say how they are.
    pub fn sample(&mut self, now: Instant) {
        if let Server::Accepted(end) = &mut self.server {
            end.connection.sample(now);
        }
        self.observer.begin_sample(now);
        if self.playing && self.finished.is_none() {
            self.player.sample(now);
        }
        self.drain_events(Side::Client);
        self.drain_events(Side::Server);
    }

    /// Bytes that the player read so far.
    pub fn bytes_read(&self) -> u64 {
        self.client.moved
    }

    /// When the player was done, if it is.
    pub fn finished(&self) -> Option<Instant> {
        self.finished
    }

    /// Nothing will happen to this flow's viewer any more: the player is done, or its connection is gone and nothing
    /// that was received is left to be played.
    pub fn is_over(&self) -> bool {
        self.finished.is_some() || (self.client.connection.is_closed() && self.player_timer() == Instant::FAR_FUTURE)
    }

    /// When payload arrived last, in order or not; the start if none did.
    pub fn last_arrival(&self) -> Instant {
        self.last_arrival
    }

    /// The player has nothing to do until more arrives.
    pub fn is_starved(&self) -> bool {
        self.begun && self.player_timer() == Instant::FAR_FUTURE
    }

    /// The paths that it may use.
    pub fn paths(&self) -> &[PathId] {
        self.observer.paths()
    }

    fn connection(&mut self, side: Side) -> Option<&mut Connection> {
        match (side, &mut self.server) {
            (Side::Client, _) => Some(&mut self.client.connection),
            (Side::Server, Server::Accepted(end)) => Some(&mut end.connection),
            (Side::Server, _) => None,
        }
    }
}
