//! What a server does with a connection.

use anabranch_events::{Log, TransportEvent};
use std::net::{IpAddr, SocketAddr};

/// Names a connection of a server, for ever: a name is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId {
    pub(super) index: usize,
    pub(super) serial: u64,
}

/// A connection whose handshake is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its name.
    pub id: ConnectionId,
    /// The server's address and port on the initial subflow.
    pub local: SocketAddr,
    /// The client's.
    pub remote: SocketAddr,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the sending stream that the peer has acknowledged; they will not be asked for again.
    pub acked: u64,
    /// Bytes at the end of the sending stream that can still be taken back: they have not left.
    pub unsent: u64,
    /// The peer has sent everything, and the application has received it.
    pub ended: bool,
    /// The connection is over, in order or not; nothing can be sent or will be received any more.
    pub closed: bool,
}

/// What a connection's application wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Bytes that it appends to its stream; [`Application::fill`] gives them. None once it has finished.
    pub bytes: u64,
    /// Bytes that it takes back from the end of its stream before it appends: at most as many as are unsent.
    pub withdraw: u64,
    /// Nothing will follow.
    pub finish: bool,
    /// The connection shall end at once, with RST.
    pub abort: bool,
    /// The application is gone: what still arrives is thrown away, and the peer has a limited time to end its side.
    pub leave: bool,
}

/// The application of one connection. It does not block.
pub trait Application {
    /// Bytes that it takes at the moment. The rest waits; the peer is stopped once the receive window is full.
    fn wants(&self) -> u64 {
        u64::MAX
    }

    /// Bytes arrived, in order; at most as many as it wants.
    fn receive(&mut self, bytes: &[u8]);

    /// What it has to say, now that the connection is this far. It is asked whenever something happened on the connection, and
    /// after [`Server::wake`](super::Server::wake).
    fn poll(&mut self, progress: Progress) -> Reply;

    /// Writes the bytes of the sending stream from `offset` on, all of which a [`Reply`] has announced. Any of them may be asked for
    /// again until the peer has acknowledged them.
    fn fill(&self, offset: u64, buffer: &mut [u8]);

    /// What the endpoint said since the last call, its first words included. It is thrown away unless somebody wants it.
    fn observe(&mut self, log: &mut Log<TransportEvent>) {
        log.drain().for_each(drop);
    }
}

/// So that one server can have applications of several kinds.
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

    fn observe(&mut self, log: &mut Log<TransportEvent>) {
        (**self).observe(log);
    }
}

pub(super) fn socket_address((address, port): (IpAddr, u16)) -> SocketAddr {
    SocketAddr::new(address, port)
}
