//! A kernel's socket behind the player's stream interface.

use crate::http::FILLER;
use crate::shared_flow::SharedFlow;
use anabranch_media::{Exchanges, HttpServer, Stream};
use anabranch_units::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

/// `IPPROTO_MPTCP`.
const MPTCP: i32 = 262;

/// Bytes moved at once.
const CHUNK: usize = 1 << 16;

/// A non-blocking socket that sends small messages at once, as players and servers configure theirs.
pub(crate) fn new_socket(address: SocketAddr, mptcp: bool) -> io::Result<Socket> {
    let protocol = if mptcp { Protocol::from(MPTCP) } else { Protocol::TCP };
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    Ok(socket)
}

/// Parameters of a player's connections.
#[derive(Clone)]
pub(crate) struct Dialer {
    pub server: SocketAddr,
    pub mptcp: bool,
    /// The table shared by the player and its server.
    pub exchanges: Exchanges,
}

impl Dialer {
    /// A socket that begins to connect.
    pub fn dial(&self) -> io::Result<Socket> {
        let socket = new_socket(self.server, self.mptcp)?;
        match socket.connect(&SockAddr::from(self.server)) {
            Err(error) if Errno::from_io_error(&error) != Some(Errno::INPROGRESS) => Err(error),
            _ => Ok(socket),
        }
    }
}

/// Result of a wait on a socket.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ready {
    pub readable: bool,
    pub writable: bool,
}

/// Waits until the socket can be read or written, as selected, or `nanos` nanoseconds are over.
pub(crate) fn wait(socket: &Socket, read: bool, write: bool, nanos: u64) -> io::Result<Ready> {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, read);
    flags.set(PollFlags::OUT, write);
    let mut list = [PollFd::new(socket, flags)];
    let timeout = Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 };
    match poll(&mut list, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let [file] = list;
    let got = file.revents();
    // An error or a hang-up is detected by reading, if selected, and by writing.
    let gone = got.intersects(PollFlags::ERR | PollFlags::HUP);
    Ok(Ready { readable: got.contains(PollFlags::IN) || gone, writable: got.contains(PollFlags::OUT) || gone })
}

/// A connected socket of a client, of which the player reads only the number of bytes.
pub(crate) struct SocketStream<'a> {
    pub socket: Socket,
    dialer: Dialer,
    flow: &'a SharedFlow,
    /// Bytes that can be read.
    readable: u64,
    read: u64,
    /// Bytes that became readable so far.
    seen: u64,
    /// Bytes to be written.
    pending: u64,
    finishing: bool,
    /// Whether the peer has ended its stream.
    ended: bool,
    /// Error of the connection, if it has failed.
    failure: Option<io::Error>,
    buffer: Vec<u8>,
}

impl<'a> SocketStream<'a> {
    pub fn new(socket: Socket, dialer: Dialer, flow: &'a SharedFlow) -> Self {
        SocketStream {
            socket,
            dialer,
            flow,
            readable: 0,
            read: 0,
            seen: 0,
            pending: 0,
            finishing: false,
            ended: false,
            failure: None,
            buffer: vec![FILLER; CHUNK],
        }
    }

    /// Updates the readable bytes; returns whether there are more than before, or the stream has ended.
    pub fn refresh(&mut self, now: Instant) -> bool {
        match ioctl_fionread(&self.socket) {
            Ok(bytes) => self.readable = bytes,
            Err(error) => self.fail(error.into()),
        }
        let arrived = self.read + self.readable;
        let new_bytes = arrived.saturating_sub(self.seen);
        self.seen = self.seen.max(arrived);
        self.flow.delivered(now, new_bytes);
        new_bytes > 0
    }

    /// Checks whether the stream has ended: to be called when the socket can be read although no bytes arrived.
    pub fn look_for_end(&mut self) -> bool {
        if self.readable > 0 || self.ended || self.failure.is_some() {
            return false;
        }
        match self.socket.peek(&mut [std::mem::MaybeUninit::uninit()]) {
            Ok(0) => self.ended = true,
            Ok(_) => return false,
            Err(error) if is_only_early(&error) => return false,
            Err(error) => self.fail(error),
        }
        true
    }

    /// Sends pending bytes, as far as the socket accepts them.
    pub fn flush(&mut self) {
        while self.pending > 0 && self.failure.is_none() {
            let len = self.pending.min(CHUNK as u64) as usize;
            self.buffer[..len].fill(FILLER);
            match self.socket.write(&self.buffer[..len]) {
                Ok(sent) => self.pending -= sent as u64,
                Err(error) if is_only_early(&error) => return,
                Err(error) => self.fail(error),
            }
        }
        if self.finishing && self.pending == 0 {
            self.finishing = false;
            // A failure closes the connection, which reading detects.
            let _ = self.socket.shutdown(std::net::Shutdown::Write);
        }
    }

    fn fail(&mut self, error: io::Error) {
        self.failure.get_or_insert(error);
    }

    pub fn wants_to_write(&self) -> bool {
        self.pending > 0 && self.failure.is_none()
    }

    /// Whether nothing can arrive any more.
    pub fn is_over(&self) -> bool {
        self.ended || self.failure.is_some()
    }

    /// Error of the connection, if it has failed.
    pub fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }
}

fn is_only_early(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

impl Stream for SocketStream<'_> {
    fn readable(&self) -> u64 {
        self.readable
    }

    fn read(&mut self, max: u64) -> u64 {
        let (most, mut taken) = (max.min(self.readable), 0);
        while taken < most {
            let len = (most - taken).min(CHUNK as u64) as usize;
            match self.socket.read(&mut self.buffer[..len]) {
                Ok(0) => break,
                Ok(read) => taken += read as u64,
                Err(error) if is_only_early(&error) => break,
                Err(error) => {
                    self.fail(error);
                    break;
                }
            }
        }
        self.readable -= taken;
        self.read += taken;
        self.flow.bytes.fetch_add(taken, Ordering::Relaxed);
        taken
    }

    fn write(&mut self, bytes: u64) {
        self.pending += bytes;
    }

    fn reopen(&mut self) -> bool {
        let socket = match self.dialer.dial() {
            Ok(socket) => socket,
            Err(error) => {
                self.fail(error);
                return false;
            }
        };
        let mut http = HttpServer::new(self.dialer.exchanges.clone());
        // Before the player sends a request.
        http.reconnect();
        self.flow.reopened(self.flow.clock.now(), http);
        // The old socket closes; with bytes unread it resets its connection.
        *self = SocketStream::new(socket, self.dialer.clone(), self.flow);
        true
    }

    fn finish(&mut self) {
        self.finishing = true;
    }

    fn is_finished(&self) -> bool {
        self.ended && self.readable == 0
    }
}
