//! The byte streams of one connection between the endpoint's loop and the task that serves the connection.
//!
//! The two sides run on different threads. Each may have to wait for the other:
//!
//! - the task waits in [`TaskEnd::poll_read`] for bytes, and in [`TaskEnd::poll_write`] for room; the loop wakes its
//!   waker;
//! - the loop waits for the task to write, to end, or to take received bytes; the task enters the connection into
//!   [`Ready`] and wakes the loop.
//!
//! A wake-up cannot get lost, because three rules hold under the one lock of the connection:
//!
//! 1. Who finds that it must wait records so (`reader`, `writer`, `starved`) in the critical section in which it found
//!    it.
//! 2. Who changes what another waits for looks at that record in the critical section of the change.
//! 3. `scheduled` says that a poll of the loop is ahead, and [`LoopEnd::poll`] clears it in the critical section in
//!    which it takes all requests and decides whether the loop has to be polled for room. A change before is seen
//!    there; a change after it schedules another poll.
//!
//! The file uses nothing of the crate but `super::sync`, so that `tests/channel_model.rs` compiles it with loom's
//! primitives and tries all interleavings.

use super::sync::{Arc, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::io;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

/// Wakes the loop, which may sleep.
pub(super) trait Wake {
    /// The loop calls [`Ready::take`] once more after this.
    fn wake(&self);
}

/// Connections whose task has something for the loop.
#[derive(Debug)]
pub(super) struct Ready<I, W> {
    waiting: Mutex<Vec<I>>,
    waker: W,
}

impl<I, W: Wake> Ready<I, W> {
    pub(super) fn new(waker: W) -> Self {
        Ready { waiting: Mutex::new(Vec::new()), waker }
    }

    pub(super) fn waker(&self) -> &W {
        &self.waker
    }

    pub(super) fn enter(&self, id: I) {
        let first = {
            let mut waiting = lock(&self.waiting);
            waiting.push(id);
            waiting.len() == 1
        };
        // What entered the first one has woken the loop or is about to, and the loop takes all of them.
        if first {
            self.waker.wake();
        }
    }

    /// Exchanges the waiting connections for an empty list. To be called after the waker was cleared.
    pub(super) fn take(&self, into: &mut Vec<I>) {
        std::mem::swap(&mut *lock(&self.waiting), into);
    }
}

/// Memory for bytes that are written and not acknowledged.
pub(super) trait Allowance {
    /// Its size in bytes.
    fn bytes(&self) -> usize;
    /// More, if there is any.
    fn grow(&mut self);
    /// Back to the initial size.
    fn shrink(&mut self);
    /// The two buffers together occupy this many bytes now.
    fn occupy(&mut self, bytes: usize);
}

/// What the connection reports to [`LoopEnd::poll`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Report {
    /// Bytes of the send stream that the peer has acknowledged.
    pub(super) acked: u64,
    /// Bytes that have arrived and did not fit in here.
    pub(super) unread: u64,
    /// The peer's stream ends after the bytes that were passed.
    pub(super) ended: bool,
    /// The connection is closed.
    pub(super) closed: bool,
}

/// What the task has requested.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Request {
    /// Bytes that it has written since the last poll.
    pub(super) written: u64,
    /// It has ended its stream.
    pub(super) finished: bool,
    /// It is gone.
    pub(super) abandoned: bool,
}

/// State shared by both sides.
#[derive(Debug)]
struct Shared<A> {
    /// Bytes from the peer that the task has not read, at most `most_incoming`.
    incoming: VecDeque<u8>,
    most_incoming: usize,
    /// The loop has bytes that did not fit into `incoming`.
    starved: bool,
    /// The peer's stream ends after `incoming`.
    ended: bool,
    reader: Option<Waker>,
    /// Bytes written and not acknowledged; the first one is at `acked` in the stream.
    outgoing: VecDeque<u8>,
    acked: u64,
    /// Offset up to which the loop knows of written bytes.
    announced: u64,
    allowance: A,
    writer: Option<Waker>,
    finished: bool,
    abandoned: bool,
    closed: bool,
    /// See the third rule of the module.
    scheduled: bool,
}

impl<A: Allowance> Shared<A> {
    /// Bytes that may be written now.
    fn free(&self) -> usize {
        self.allowance.bytes().saturating_sub(self.outgoing.len())
    }

    /// Whether there is enough room to wake up a writer: more than a little, so that it writes much at a time.
    fn has_room(&self) -> bool {
        self.free() >= self.allowance.bytes().div_ceil(4)
    }

    /// Bytes that the loop may pass now.
    fn room(&self) -> usize {
        self.most_incoming.saturating_sub(self.incoming.len())
    }

    /// Whether a starved loop should be polled: there is room for much.
    fn feeds_loop(&mut self) -> bool {
        let feeds = self.starved && self.room() >= self.most_incoming.div_ceil(2);
        self.starved &= !feeds;
        feeds
    }

    /// Gives memory back that idle connections do not need, and counts what is left.
    fn account(&mut self) {
        if self.outgoing.is_empty() && self.outgoing.capacity() > KEPT {
            self.outgoing = VecDeque::new();
            self.allowance.shrink();
        }
        if self.incoming.is_empty() && self.incoming.capacity() > KEPT {
            self.incoming = VecDeque::new();
        }
        self.allowance.occupy(self.outgoing.capacity() + self.incoming.capacity());
    }
}

/// Capacity that an empty buffer keeps: enough for heads of requests and responses, so that these allocate nothing.
const KEPT: usize = 4 << 10;

/// Locks, also after a panic of another thread.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves a truncated stream, which it is anyway, or a value that is whole before and after each change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Copies `into.len()` bytes that begin `at` bytes after the first one; fewer if there are fewer.
fn copy(bytes: &VecDeque<u8>, at: usize, into: &mut [u8]) -> usize {
    let (front, back) = bytes.as_slices();
    let in_front = front.get(at..).unwrap_or_default();
    let (first, second) = into.split_at_mut(in_front.len().min(into.len()));
    first.copy_from_slice(&in_front[..first.len()]);
    let rest = back.get(at.saturating_sub(front.len())..).unwrap_or_default();
    let n = rest.len().min(second.len());
    second[..n].copy_from_slice(&rest[..n]);
    first.len() + n
}

/// The loop's side.
#[derive(Debug)]
pub(super) struct LoopEnd<I, W, A> {
    shared: Arc<Mutex<Shared<A>>>,
    ready: Arc<Ready<I, W>>,
    id: I,
}

/// The task's side. Dropping it before [`TaskEnd::finish`] aborts the connection.
#[derive(Debug)]
pub(super) struct TaskEnd<I: Copy, W: Wake, A: Allowance> {
    shared: Arc<Mutex<Shared<A>>>,
    ready: Arc<Ready<I, W>>,
    id: I,
}

/// Both sides of the connection `id`, which holds up to `most_incoming` unread bytes.
pub(super) fn channel<I: Copy, W: Wake, A: Allowance>(
    id: I,
    most_incoming: usize,
    allowance: A,
    ready: &Arc<Ready<I, W>>,
) -> (LoopEnd<I, W, A>, TaskEnd<I, W, A>) {
    let shared = Arc::new(Mutex::new(Shared {
        incoming: VecDeque::new(),
        most_incoming,
        starved: false,
        ended: false,
        reader: None,
        outgoing: VecDeque::new(),
        acked: 0,
        announced: 0,
        allowance,
        writer: None,
        finished: false,
        abandoned: false,
        closed: false,
        scheduled: false,
    }));
    let task = TaskEnd { shared: shared.clone(), ready: ready.clone(), id };
    (LoopEnd { shared, ready: ready.clone(), id }, task)
}

impl<I: Copy, W: Wake, A: Allowance> LoopEnd<I, W, A> {
    /// Begins a poll; returns how many bytes [`LoopEnd::pass`] may pass in it. The task may make more room until
    /// [`LoopEnd::poll`], which takes that into account.
    pub(super) fn begin(&self) -> u64 {
        let shared = &mut *lock(&self.shared);
        if shared.abandoned { u64::MAX } else { shared.room() as u64 }
    }

    /// Passes bytes of the peer.
    pub(super) fn pass(&self, bytes: &[u8]) {
        let mut shared = lock(&self.shared);
        if shared.abandoned {
            return;
        }
        shared.incoming.extend(bytes);
        shared.account();
        let reader = shared.reader.take();
        drop(shared);
        reader.into_iter().for_each(Waker::wake);
    }

    /// Ends a poll: reports the state of the connection, and returns what the task has requested.
    pub(super) fn poll(&self, report: Report) -> Request {
        let mut guard = lock(&self.shared);
        let shared = &mut *guard;
        shared.scheduled = false;
        let newly_acked = report.acked.saturating_sub(shared.acked) as usize;
        shared.outgoing.drain(..newly_acked.min(shared.outgoing.len()));
        shared.acked = report.acked;
        shared.account();
        let wakes_reader = report.closed || report.ended;
        (shared.ended, shared.closed) = (shared.ended || report.ended, shared.closed || report.closed);
        let reader = if wakes_reader { shared.reader.take() } else { None };
        let writer = if shared.has_room() || report.closed { shared.writer.take() } else { None };
        let end = shared.acked + shared.outgoing.len() as u64;
        let written = end - shared.announced;
        shared.announced = end;
        let request = Request { written, finished: shared.finished, abandoned: shared.abandoned };
        shared.starved = report.unread > 0;
        // The task may have read since the poll began; nothing else would make the loop pass the rest.
        let again = shared.feeds_loop() && !std::mem::replace(&mut shared.scheduled, true);
        drop(guard);
        reader.into_iter().chain(writer).for_each(Waker::wake);
        if again {
            self.ready.enter(self.id);
        }
        request
    }

    /// Writes the bytes of the send stream from `offset` on. More memory is taken if they are the last ones and there
    /// is hardly room for others: then the memory, and not the network, limits the connection.
    pub(super) fn fill(&self, offset: u64, buffer: &mut [u8]) {
        let mut shared = lock(&self.shared);
        let end = shared.acked + shared.outgoing.len() as u64;
        if offset + buffer.len() as u64 == end && !shared.has_room() {
            shared.allowance.grow();
        }
        // Acknowledged bytes are not sent again, so every requested byte is here.
        let Some(at) = offset.checked_sub(shared.acked) else { return };
        copy(&shared.outgoing, at as usize, buffer);
    }
}

impl<I: Copy, W: Wake, A: Allowance> TaskEnd<I, W, A> {
    /// Schedules a poll of the loop, unless one is ahead already.
    fn schedule(&self, mut shared: MutexGuard<'_, Shared<A>>) {
        let ahead = std::mem::replace(&mut shared.scheduled, true);
        drop(shared);
        if !ahead {
            self.ready.enter(self.id);
        }
    }

    /// Reads bytes of the peer; zero at the end of its stream, or if `buffer` is empty.
    pub(super) fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut shared = lock(&self.shared);
        if shared.incoming.is_empty() && !buffer.is_empty() {
            if shared.ended {
                return Poll::Ready(Ok(0));
            }
            if shared.closed {
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            }
            shared.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let n = copy(&shared.incoming, 0, buffer);
        shared.incoming.drain(..n);
        shared.account();
        if shared.feeds_loop() {
            self.schedule(shared);
        }
        Poll::Ready(Ok(n))
    }

    /// Writes as many bytes as there is room for.
    pub(super) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
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
        shared.account();
        self.schedule(shared);
        Poll::Ready(Ok(n))
    }

    /// Waits until the peer has acknowledged everything that was written, or the connection is closed.
    pub(super) fn poll_acknowledged(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut shared = lock(&self.shared);
        if shared.outgoing.is_empty() || shared.closed {
            return Poll::Ready(());
        }
        // The loop wakes a writer once there is room, and this one waits again until all is room.
        shared.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Ends this side's stream.
    pub(super) fn finish(&self) {
        let mut shared = lock(&self.shared);
        if !shared.finished {
            shared.finished = true;
            self.schedule(shared);
        }
    }
}

impl<I: Copy, W: Wake, A: Allowance> Drop for TaskEnd<I, W, A> {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        shared.abandoned = true;
        shared.incoming = VecDeque::new();
        shared.account();
        self.schedule(shared);
    }
}
