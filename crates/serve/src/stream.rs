//! A connection's two streams of bytes, shared between the real-time loop and asynchronous code.

use super::access::{Client, Log, StreamStats};
use super::channel::{self, Allowance, LoopEnd, Ready, Report, TaskEnd};
use super::loop_waker::LoopWaker;
use super::pacing::{Announcements, PacedLoop, Pacing};
use super::room::Room;
use super::sync::Arc;
use anabranch_live::{Application, ConnectionId, Opened, Progress, Reply};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that may wait here to be read; further ones stay in the endpoint's receive buffer, and count in its window.
/// Enough for the head of any request, and for an upload between two turns of the asynchronous side.
const READ_ROOM: usize = 256 << 10;

/// Connections of a server that their tasks want to be polled.
pub(super) type ReadyConnections = Ready<ConnectionId, LoopWaker>;

/// The side of the loop.
#[derive(Debug)]
pub(super) struct StreamApplication {
    end: LoopEnd<ConnectionId, LoopWaker, Room>,
    stats: Arc<StreamStats>,
    asking: Asking,
    /// If the server paces responses.
    paced: Option<PacedLoop>,
}

/// When a client has asked for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asking {
    /// With a whole request of HTTP: once a response has begun. Those who send it a byte at a time have not.
    WithRequest,
    /// With any byte in either direction, of whatever protocol an origin speaks.
    WithAnything,
}

/// The byte stream of a connection. Reading ends with the peer's stream; writing waits while more than the limit is
/// unacknowledged; shutting down ends this side's stream. Dropping it before that aborts the connection.
#[derive(Debug)]
pub struct Stream {
    end: TaskEnd<ConnectionId, LoopWaker, Room>,
    local: SocketAddr,
    remote: SocketAddr,
    stats: Arc<StreamStats>,
    announcements: Option<Arc<Announcements>>,
}

/// Both sides of a connection's stream, which holds up to `room` unacknowledged bytes and may have so many paths.
pub(super) fn pair(
    opened: Opened,
    asking: Asking,
    room: Room,
    paths: usize,
    ready: &Arc<ReadyConnections>,
    pacing: Option<&Arc<Pacing>>,
) -> (StreamApplication, Stream) {
    let stats = StreamStats::new(paths);
    let (for_loop, end) = channel::channel(opened.id, READ_ROOM, room, ready);
    let (paced, announcements) = pacing.map(|pacing| pacing.open(opened.id, opened.remote.ip())).unzip();
    let application = StreamApplication { end: for_loop, stats: stats.clone(), asking, paced };
    (application, Stream { end, local: opened.local, remote: opened.remote, stats, announcements })
}

impl Allowance for Room {
    fn bytes(&self) -> usize {
        Room::bytes(self)
    }

    fn grow(&mut self) {
        Room::grow(self);
    }

    fn shrink(&mut self) {
        Room::shrink(self);
    }

    fn occupy(&mut self, bytes: usize) {
        Room::occupy(self, bytes);
    }
}

impl Application for StreamApplication {
    fn wants(&self) -> u64 {
        self.end.begin()
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.end.pass(bytes);
    }

    fn poll(&mut self, progress: Progress) -> Reply {
        let Progress { now, acked, unread, ended, closed, subflows, ref delays, .. } = progress;
        self.stats.progress(acked, subflows);
        let follow = |paced: &mut PacedLoop| paced.follow(now, acked, delays);
        let (pace_cap, buffered_until) = self.paced.as_mut().map_or((None, None), follow);
        self.stats.paced(pace_cap);
        let request = self.end.poll(Report { acked, unread, ended, closed });
        let abort = request.abandoned && !request.finished;
        let (bytes, finish, leave) = (request.written, request.finished, request.abandoned);
        Reply { bytes, finish, abort, leave, pace_cap, buffered_until, ..Reply::default() }
    }

    fn has_request(&self, received: u64, written: u64) -> bool {
        written > 0 || (self.asking == Asking::WithAnything && received > 0)
    }

    fn note_sent(&mut self, position: usize, bytes: u32, again: bool) {
        self.stats.count(position, bytes, again);
    }

    fn fill(&self, offset: u64, buffer: &mut [u8]) {
        self.end.fill(offset, buffer);
    }
}

impl Drop for StreamApplication {
    fn drop(&mut self) {
        // Nothing is acknowledged any more.
        self.stats.close();
    }
}

impl Stream {
    /// The client, for the access log.
    pub(super) fn client(&self, log: Option<Log>) -> Client {
        let (stats, announcements) = (self.stats.clone(), self.announcements.clone());
        Client { log, address: self.remote, stats, announcements }
    }

    /// The server's address and port that the client connected to.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// The client's address and port.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }
}

impl Stream {
    /// Both directions, for two tasks in one. Only one of each may be in use, because one waker waits for each.
    pub(super) fn halves(&self) -> (Reader<'_>, Writer<'_>) {
        (Reader(self), Writer(self))
    }

    fn read(&self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let n = ready!(self.end.poll_read(cx, buffer.initialize_unfilled()))?;
        buffer.advance(n);
        Poll::Ready(Ok(()))
    }

    fn write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(self.end.poll_write(cx, bytes))?;
        self.stats.wrote(written);
        Poll::Ready(Ok(written))
    }

    /// Written bytes are sent as soon as windows allow; only the access log wants to know that a response is behind
    /// them.
    fn flush(&self) -> Poll<io::Result<()>> {
        self.stats.flushed();
        Poll::Ready(Ok(()))
    }

    fn shutdown(&self) -> Poll<io::Result<()>> {
        self.stats.flushed();
        self.end.finish();
        Poll::Ready(Ok(()))
    }
}

/// The client's direction of a stream.
#[derive(Debug)]
pub(super) struct Reader<'a>(&'a Stream);

/// The server's direction.
#[derive(Debug)]
pub(super) struct Writer<'a>(&'a Stream);

impl Writer<'_> {
    /// Waits until the client has acknowledged everything, or the connection has ended.
    pub(super) async fn acknowledged(&self) {
        poll_fn(|cx| self.0.end.poll_acknowledged(cx)).await;
    }
}

impl AsyncRead for Reader<'_> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.0.read(cx, buffer)
    }
}

impl AsyncWrite for Writer<'_> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.flush()
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.shutdown()
    }
}

/// A handle of a stream that HTTP reads and writes, while its task holds another one.
#[derive(Clone, Debug)]
pub(super) struct Shared(Arc<Stream>);

impl Shared {
    pub(super) fn new(stream: Stream) -> Self {
        Shared(Arc::new(stream))
    }
}

impl AsyncRead for Shared {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.0.read(cx, buffer)
    }
}

impl AsyncWrite for Shared {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.flush()
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.shutdown()
    }
}
