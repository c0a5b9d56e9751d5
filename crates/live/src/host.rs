//! A host inside this process.

use anabranch_units::{Instant, PathId};

/// A host that speaks IP: it takes packets and the time, and returns packets to send and its next timeout.
///
/// It does no input or output itself and reads no clock. After every call that changes something the
/// caller drains [`Host::poll_transmit`] and asks [`Host::poll_timeout`] again.
pub trait Host {
    /// A packet arrived on this path.
    fn receive(&mut self, now: Instant, path: PathId, packet: &[u8]);

    /// The time of [`Host::poll_timeout`] has come.
    fn handle_timeout(&mut self, now: Instant);

    /// Writes the next packet to the start of `buffer` (65 535 bytes), and returns its path and length.
    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<(PathId, usize)>;

    /// When to call [`Host::handle_timeout`]; `None` if no timer runs.
    fn poll_timeout(&self) -> Option<Instant>;
}
