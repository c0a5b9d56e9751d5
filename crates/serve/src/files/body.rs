//! The bytes of a file as the body of a response.

use super::super::access::Pending;
use super::super::meter::{Held, Meter};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::fs::File;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Bytes of one read, and all that a response holds in addition to what is written to its connection.
pub(super) const CHUNK: usize = 64 << 10;

/// Time for an operation on a file. Files of a network mount that is gone, or of a broken disk, take for ever.
const FILE_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs an operation that may block on another thread. Its result is no longer waited for after a while; its thread is
/// lost until the operation ends.
pub(super) async fn unblocked<T: Send + 'static>(
    operation: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    within(FILE_TIMEOUT, operation).await
}

async fn within<T: Send + 'static>(
    timeout: Duration,
    operation: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    match tokio::time::timeout(timeout, tokio::task::spawn_blocking(operation)).await {
        Ok(Ok(result)) => result,
        Ok(Err(failed)) => Err(failed.into()),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

type Reading = Pin<Box<dyn Future<Output = io::Result<Bytes>> + Send>>;

/// A part of a file, read when the connection has room for it.
pub(crate) struct FileBody {
    /// `None` for a body without bytes.
    file: Option<Arc<File>>,
    left: Range<u64>,
    reading: Option<Reading>,
    meter: Meter,
    /// The line of the access log, written when the body is dropped.
    record: Option<Pending>,
}

impl FileBody {
    pub(super) fn new(file: File, part: Range<u64>, meter: Meter) -> Self {
        FileBody { file: Some(Arc::new(file)), left: part, reading: None, meter, record: None }
    }

    /// A body without bytes.
    pub(super) fn empty() -> Self {
        FileBody { file: None, left: 0..0, reading: None, meter: Meter::default(), record: None }
    }

    /// Writes this line of the access log when the response has ended.
    pub(super) fn log(&mut self, mut record: Pending) {
        if self.left.is_empty() {
            record.completed();
        }
        self.record = Some(record);
    }

    fn next_len(&self) -> usize {
        (self.left.end - self.left.start).min(CHUNK as u64) as usize
    }

    /// Reads from another thread, because this file's data is not in memory.
    fn read_elsewhere(&self, file: &Arc<File>, mut chunk: Held) -> Reading {
        let (file, at) = (file.clone(), self.left.start);
        Box::pin(unblocked(move || match file.read_at(chunk.bytes_mut(), at)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            n => Ok(chunk.into_bytes(n)),
        }))
    }
}

/// Reads what is in memory; `None` if that is nothing or cannot be known.
fn read_cached(file: &File, at: u64, chunk: &mut [u8]) -> io::Result<Option<usize>> {
    match preadv2(file, &mut [IoSliceMut::new(chunk)], at, ReadWriteFlags::NOWAIT) {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(n) => Ok(Some(n)),
        Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INTR | Errno::PERM) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    /// A file that became shorter is an error, which aborts the connection: the length of the header cannot be sent.
    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Some(file) = self.file.clone().filter(|_| !self.left.is_empty()) else { return Poll::Ready(None) };
        let bytes = match &mut self.reading {
            Some(reading) => {
                let result = ready!(reading.as_mut().poll(cx));
                self.reading = None;
                result
            }
            None => {
                let mut chunk = self.meter.hold(self.next_len());
                match read_cached(&file, self.left.start, chunk.bytes_mut()) {
                    Ok(Some(n)) => Ok(chunk.into_bytes(n)),
                    Ok(None) => {
                        self.reading = Some(self.read_elsewhere(&file, chunk));
                        return self.poll_frame(cx);
                    }
                    Err(error) => Err(error),
                }
            }
        };
        if let Ok(bytes) = &bytes {
            let len = bytes.len();
            self.left.start += len as u64;
            let is_whole = self.left.is_empty();
            if let Some(record) = &mut self.record {
                record.sent(len);
                if is_whole {
                    record.completed();
                }
            }
        }
        Poll::Ready(Some(bytes.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.end.saturating_sub(self.left.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn an_operation_that_never_ends_stops_neither_its_request_nor_the_end_of_the_server() {
        let (never, blocks) = channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let operation = move || {
            let _ = blocks.recv();
            Ok(())
        };
        let result = runtime.block_on(within(Duration::from_millis(1), operation));
        assert_eq!(result.expect_err("it took too long").kind(), io::ErrorKind::TimedOut);
        assert_eq!(runtime.block_on(within(FILE_TIMEOUT, || Ok(5))).expect("others are not concerned"), 5);
        // This returns although the thread still waits, as the server's end does.
        runtime.shutdown_background();
        drop(never);
    }
}
