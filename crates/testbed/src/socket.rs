//! A kernel's socket as a player sees it.

use crate::apps::FILLER;
use crate::flow::Flow;
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

/// Bytes that are moved at once.
const CHUNK: usize = 1 << 16;

/// A socket that does not block and sends small messages at once, as players and servers set theirs.
pub(crate) fn new_socket(address: SocketAddr, mptcp: bool) -> io::Result<Socket> {
    let protocol = if mptcp { Protocol::from(MPTCP) } else { Protocol::TCP };
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    Ok(socket)
}

/// How a player's connections are opened.
#[derive(Clone)]
pub(crate) struct Dialer {
    pub server: SocketAddr,
    pub mptcp: bool,
    /// What the player and its server share.
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

/// What a wait on a socket brought.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ready {
    pub readable: bool,
    pub writable: bool,
}

/// Waits until the socket can be read or written, as far as that is of interest, or so many nanoseconds are over.
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
    // An error or a hang-up is found out by reading, if that is of interest, and by writing.
    let gone = got.intersects(PollFlags::ERR | PollFlags::HUP);
    Ok(Ready { readable: got.contains(PollFlags::IN) || gone, writable: got.contains(PollFlags::OUT) || gone })
}

/// A connected socket of a client, of which the player reads only how much there is.
pub(crate) struct SocketStream<'a> {
    pub socket: Socket,
    dialer: Dialer,
    flow: &'a Flow,
    /// Bytes that can be read.
    readable: u64,
    read: u64,
    /// Bytes that have become readable so far.
    seen: u64,
    /// Bytes to be written.
    pending: u64,
    finishing: bool,
    /// The peer has sent everything.
    ended: bool,
    /// The connection is gone.
    failure: Option<io::Error>,
    buffer: Vec<u8>,
}

impl<'a> SocketStream<'a> {
    pub fn new(socket: Socket, dialer: Dialer, flow: &'a Flow) -> Self {
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

    /// Looks how much has arrived; whether it is more than before, or the end.
    pub fn refresh(&mut self, now: Instant) -> bool {
        match ioctl_fionread(&self.socket) {
            Ok(bytes) => self.readable = bytes,
            Err(error) => self.fail(error.into()),
        }
        let arrived = self.read + self.readable;
        let news = arrived.saturating_sub(self.seen);
        self.seen = self.seen.max(arrived);
        self.flow.delivered(now, news);
        news > 0
    }

    /// Looks whether the stream has ended: to be called when the socket can be read although nothing has arrived.
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

    /// Sends what there is to send, as far as the socket takes it.
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
            // If it fails, the connection is gone, which reading tells.
            let _ = self.socket.shutdown(std::net::Shutdown::Write);
        }
    }

    fn fail(&mut self, error: io::Error) {
        self.failure.get_or_insert(error);
    }

    pub fn wants_to_write(&self) -> bool {
        self.pending > 0 && self.failure.is_none()
    }

    /// Nothing will arrive any more.
    pub fn is_over(&self) -> bool {
        self.ended || self.failure.is_some()
    }

    /// Why the connection broke, if it did.
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
        // Before the player asks for more.
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
