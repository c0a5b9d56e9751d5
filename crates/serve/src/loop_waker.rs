//! What wakes the loop of packets.

use super::channel::Wake;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The eventfd that ends the sleep of the loop.
#[derive(Debug)]
pub(super) struct LoopWaker(OwnedFd);

impl LoopWaker {
    pub(super) fn new() -> io::Result<Self> {
        Ok(LoopWaker(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?))
    }

    /// What was woken for before this is forgotten.
    pub(super) fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
    }
}

impl Wake for LoopWaker {
    fn wake(&self) {
        // It fails only if the counter is full, and then the loop wakes up anyway.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl AsFd for LoopWaker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
