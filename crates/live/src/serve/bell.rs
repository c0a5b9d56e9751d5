//! What wakes the loop of packets.

use super::channel::Bell;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Wakes the loop from its sleep.
#[derive(Debug)]
pub(super) struct LoopBell(OwnedFd);

impl LoopBell {
    pub(super) fn new() -> io::Result<Self> {
        Ok(LoopBell(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?))
    }

    /// Ringing before this is forgotten.
    pub(super) fn silence(&self) {
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
    }
}

impl Bell for LoopBell {
    fn ring(&self) {
        // It fails only if the counter is full, and then the loop wakes up anyway.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl AsFd for LoopBell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
