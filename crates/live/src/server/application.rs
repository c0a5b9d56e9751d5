//! The application of a connection.

use anabranch_events::{Log, TransportEvent};
use anabranch_units::{Bandwidth, Duration, Instant, SubflowId};
use std::net::{IpAddr, SocketAddr};

/// Identifies a connection of a server. Ids are never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId {
    pub(super) index: usize,
    pub(super) serial: u64,
}

impl ConnectionId {
    /// The connection that is the server's `serial`th and is kept at `index`.
    pub fn new(index: usize, serial: u64) -> Self {
        ConnectionId { index, serial }
    }
}

/// A connection whose handshake is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Identifier of the connection.
    pub id: ConnectionId,
    /// The server's address and port on the initial subflow.
    pub local: SocketAddr,
    /// The client's address and port on it.
    pub remote: SocketAddr,
}

/// Progress of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The present time.
    pub now: Instant,
    /// Bytes of the send stream that the peer has acknowledged; they are not requested again.
    pub acked: u64,
    /// Bytes at the end of the send stream that were not sent and can still be withdrawn.
    pub unsent: u64,
    /// Bytes that have arrived in order and that the application did not want.
    pub unread: u64,
    /// The peer has sent everything, and the application has received it.
    pub ended: bool,
    /// The connection is closed, in order or not; no data can be sent or received any more.
    pub closed: bool,
    /// Subflows whose handshake is complete and that have not ended.
    pub subflows: usize,
    /// How long packets wait in queues.
    pub delays: QueueingDelays,
}

/// The queueing delay of each subflow with data in flight, up to four of them ([`Connection::queueing_delays`]).
///
/// [`Connection::queueing_delays`]: anabranch_stack::Connection::queueing_delays
pub type QueueingDelays = [Option<(SubflowId, Duration)>; 4];

/// Requests of a connection's application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Bytes that it appends to its stream; [`Application::fill`] returns them. Zero once it has finished.
    pub bytes: u64,
    /// Bytes that it withdraws from the end of its stream before it appends: at most the unsent ones.
    pub withdraw: u64,
    /// The send stream ends here.
    pub finish: bool,
    /// Abort the connection with RST.
    pub abort: bool,
    /// The application has ended: further received bytes are discarded, and the peer has a limited time to end its
    /// side.
    pub leave: bool,
    /// The most that the connection may send from here on, over all subflows together; `None`: no limit.
    pub pace_cap: Option<Bandwidth>,
    /// When the viewer's buffer will be empty if nothing more arrives; `None` where it is not estimated.
    pub buffered_until: Option<Instant>,
}

/// The application of one connection. It does not block.
pub trait Application {
    /// Bytes that it can receive now. The rest waits; the peer is stopped once the receive window is full.
    fn wants(&self) -> u64 {
        u64::MAX
    }

    /// Bytes arrived, in order; at most as many as [`Application::wants`].
    fn receive(&mut self, bytes: &[u8]);

    /// The application's requests, given the progress of the connection. Called whenever the connection changes, and
    /// after [`Server::wake`](super::Server::wake).
    fn poll(&mut self, progress: Progress) -> Reply;

    /// Writes the bytes of the send stream from `offset` on, all of which an earlier [`Reply`] has announced. Any of
    /// them may be requested again until the peer has acknowledged them.
    fn fill(&self, offset: u64, buffer: &mut [u8]);

    /// Whether the client has asked for something, given the bytes that have come from it and those of the send stream.
    /// While the server is full, a connection whose client has not gives way to a new one. By default any byte is a
    /// request, or an answer.
    fn has_request(&self, received: u64, written: u64) -> bool {
        received > 0 || written > 0
    }

    /// A segment with payload was sent on the path at this position of the configuration; `again`: its first byte was
    /// sent on the subflow before. Ignored by default.
    fn note_sent(&mut self, _position: usize, _bytes: u32, _again: bool) {}

    /// Events of the endpoint since the last call, those of the handshake included. Discarded by default.
    fn observe(&mut self, log: &mut Log<TransportEvent>) {
        log.drain().for_each(drop);
    }
}

/// Lets one server have applications of several kinds.
impl<A: Application + ?Sized> Application for Box<A> {
    fn wants(&self) -> u64 {
        (**self).wants()
    }

    fn receive(&mut self, bytes: &[u8]) {
        (**self).receive(bytes);
    }

    fn poll(&mut self, progress: Progress) -> Reply {
        (**self).poll(progress)
    }

    fn fill(&self, offset: u64, buffer: &mut [u8]) {
        (**self).fill(offset, buffer);
    }

    fn has_request(&self, received: u64, written: u64) -> bool {
        (**self).has_request(received, written)
    }

    fn note_sent(&mut self, position: usize, bytes: u32, again: bool) {
        (**self).note_sent(position, bytes, again);
    }

    fn observe(&mut self, log: &mut Log<TransportEvent>) {
        (**self).observe(log);
    }
}

pub(super) fn socket_address((address, port): (IpAddr, u16)) -> SocketAddr {
    SocketAddr::new(address, port)
}
