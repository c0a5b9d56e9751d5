//! A connection's two streams of bytes, shared between the real-time loop and asynchronous code.

use super::driver::Wakes;
use super::room::Room;
use crate::{Application, ConnectionId, Opened, Progress, Reply};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that may wait here to be read; further ones stay in the endpoint's receive buffer, and count in its window.
/// Enough for the head of any request, and for an upload between two turns of the asynchronous side.
const READ_ROOM: usize = 256 << 10;

/// State shared by both sides.
#[derive(Debug)]
struct Shared {
    /// Bytes from the peer, not read yet.
    incoming: VecDeque<u8>,
    /// Whether the peer's stream ends after them.
    ended: bool,
    reader: Option<Waker>,
    /// Bytes written and not acknowledged; the first one is at `acked` in the stream.
    outgoing: VecDeque<u8>,
    acked: u64,
    /// Offset up to which the endpoint knows of written bytes.
    announced: u64,
    /// Bytes that may be written and not acknowledged.
    room: Room,
    writer: Option<Waker>,
    /// The writer has finished.
    finished: bool,
    /// The asynchronous side was dropped.
    abandoned: bool,
    /// The connection is closed.
    closed: bool,
    /// Whether the loop was woken and has not yet run.
    announced_wake: bool,
}

impl Shared {
    fn new(room: Room) -> Self {
        Shared {
            incoming: VecDeque::new(),
            ended: false,
            reader: None,
            outgoing: VecDeque::new(),
            acked: 0,
            announced: 0,
            room,
            writer: None,
            finished: false,
            abandoned: false,
            closed: false,
            announced_wake: false,
        }
    }

    /// Bytes that may be written now.
    fn free(&self) -> usize {
        self.room.bytes().saturating_sub(self.outgoing.len())
    }

    /// Whether there is enough room to wake up a writer.
    fn is_roomy(&self) -> bool {
        self.free() >= self.room.bytes() / 4
    }

    fn wake_reader(&mut self) {
        self.reader.take().into_iter().for_each(Waker::wake);
    }

    fn wake_writer(&mut self) {
        self.writer.take().into_iter().for_each(Waker::wake);
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    // A panic of the other side leaves a truncated stream, which it is anyway.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The side of the loop.
#[derive(Debug)]
pub(super) struct StreamApplication(Arc<Mutex<Shared>>);

/// The byte stream of a connection. Reading ends with the peer's stream; writing waits while more than the limit is
/// unacknowledged; shutting down ends this side's stream. Dropping it before that aborts the connection.
#[derive(Debug)]
pub struct Stream {
    shared: Arc<Mutex<Shared>>,
    wakes: Arc<Wakes>,
    id: ConnectionId,
    remote: SocketAddr,
}

/// Both sides of a connection's stream, which holds up to `room` unacknowledged bytes.
pub(super) fn pair(opened: Opened, room: Room, wakes: Arc<Wakes>) -> (StreamApplication, Stream) {
    let shared = Arc::new(Mutex::new(Shared::new(room)));
    let stream = Stream { shared: shared.clone(), wakes, id: opened.id, remote: opened.remote };
    (StreamApplication(shared), stream)
}

impl Application for StreamApplication {
    fn wants(&self) -> u64 {
        let shared = lock(&self.0);
        if shared.abandoned { u64::MAX } else { READ_ROOM.saturating_sub(shared.incoming.len()) as u64 }
    }

    fn receive(&mut self, bytes: &[u8]) {
        let mut shared = lock(&self.0);
        if !shared.abandoned {
            shared.incoming.extend(bytes);
            shared.wake_reader();
        }
    }

    fn poll(&mut self, progress: Progress) -> Reply {
        let mut shared = lock(&self.0);
        shared.announced_wake = false;
        let newly_acked = progress.acked.saturating_sub(shared.acked);
        let known = shared.outgoing.len();
        shared.outgoing.drain(..known.min(newly_acked as usize));
        shared.acked = progress.acked;
        // A waiting writer is woken only when there is much room.
        if shared.is_roomy() || progress.closed {
            shared.wake_writer();
        }
        if (progress.ended && !shared.ended) || (progress.closed && !shared.closed) {
            shared.wake_reader();
        }
        (shared.ended, shared.closed) = (shared.ended || progress.ended, progress.closed);
        let written = shared.acked + shared.outgoing.len() as u64;
        let bytes = written - shared.announced;
        shared.announced = written;
        let abort = shared.abandoned && !shared.finished;
        Reply { bytes, finish: shared.finished, abort, leave: shared.abandoned, ..Reply::default() }
    }

    fn fill(&self, offset: u64, buffer: &mut [u8]) {
        let mut shared = lock(&self.0);
        // All bytes of the room are in flight, so the room limits the connection.
        let end = shared.acked + shared.outgoing.len() as u64;
        if offset + buffer.len() as u64 == end && !shared.is_roomy() {
            shared.room.grow();
        }
        // Acknowledged bytes are not sent again, so every requested byte is here.
        let Some(at) = offset.checked_sub(shared.acked) else { return };
        let (front, back) = shared.outgoing.as_slices();
        let at = at as usize;
        let in_front = front.get(at..).unwrap_or_default();
        let (first, second) = buffer.split_at_mut(in_front.len().min(buffer.len()));
        first.copy_from_slice(&in_front[..first.len()]);
        let rest = back.get(at.saturating_sub(front.len())..).unwrap_or_default();
        let n = rest.len().min(second.len());
        second[..n].copy_from_slice(&rest[..n]);
    }
}

impl Stream {
    /// The client's address and port.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Wakes the loop, once for all changes until it runs.
    fn announce(&self, mut shared: MutexGuard<'_, Shared>) {
        let pending = std::mem::replace(&mut shared.announced_wake, true);
        drop(shared);
        if !pending {
            self.wakes.wake(self.id);
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut shared = lock(&self.shared);
        let before = shared.incoming.len();
        if before == 0 {
            if shared.ended {
                return Poll::Ready(Ok(()));
            }
            if shared.closed {
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            }
            shared.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let n = before.min(buffer.remaining());
        let (front, back) = shared.incoming.as_slices();
        let in_front = front.len().min(n);
        buffer.put_slice(&front[..in_front]);
        buffer.put_slice(&back[..n - in_front]);
        shared.incoming.drain(..n);
        // The loop left bytes in the endpoint only if this was nearly full.
        if before >= READ_ROOM / 2 && before - n < READ_ROOM / 2 {
            self.announce(shared);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut shared = lock(&self.shared);
        if shared.closed || shared.finished {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let n = shared.free().min(bytes.len());
        if n == 0 && !bytes.is_empty() {
            shared.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        shared.outgoing.extend(&bytes[..n]);
        self.announce(shared);
        Poll::Ready(Ok(n))
    }

    /// Does nothing: written bytes are sent as soon as windows allow.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut shared = lock(&self.shared);
        if !shared.finished {
            shared.finished = true;
            self.announce(shared);
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        shared.abandoned = true;
        shared.incoming = VecDeque::new();
        self.announce(shared);
    }
}
