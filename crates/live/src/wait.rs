//! Waiting for packets or for a time, whichever comes first.

use crate::Clock;
use anabranch_units::{Duration, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;

/// How long the kernel may defer a thread's timers to save power: 50 us by default, a nanosecond here.
const TIMER_SLACK: NonZeroU64 = NonZeroU64::MIN;

/// Makes the timers of the calling thread as precise as the machine allows.
///
/// # Errors
/// If the kernel refuses, which it does not.
pub fn sharpen_timers() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(Some(TIMER_SLACK))?)
}

/// Waits on a fixed set of files.
pub struct Waiter<'a>(Vec<PollFd<'a>>);

impl<'a> Waiter<'a> {
    /// Waits on these files, in the order of the indices of [`Waiter::ready`].
    pub fn new(files: impl IntoIterator<Item = BorrowedFd<'a>>) -> Self {
        Waiter(files.into_iter().map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN)).collect())
    }

    /// Returns once a file can be read or `deadline` has come.
    ///
    /// This is `ppoll`, whose timeout has nanoseconds; `epoll_wait` would round up to a millisecond.
    ///
    /// # Errors
    /// If the kernel is out of memory.
    pub fn wait(&mut self, clock: &Clock, deadline: Instant) -> io::Result<()> {
        loop {
            let timeout = timespec(deadline.since(clock.now()));
            match poll(&mut self.0, Some(&timeout)) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether file `i` could be read (or is gone, which reading detects) when the last wait ended.
    pub fn ready(&self, i: usize) -> bool {
        !self.0[i].revents().is_empty()
    }
}

fn timespec(duration: Duration) -> Timespec {
    let nanos = duration.as_nanos();
    Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 }
}
