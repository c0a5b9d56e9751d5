//! What a packet remembers of the sender when it left, to measure the delivery rate (`rate.rs`).

use anabranch_units::Instant;

/// State when a packet was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendState {
    /// Packets delivered until then.
    pub(super) delivered: u64,
    /// When the last of them was delivered.
    pub(super) delivered_at: Instant,
    /// When the first packet of the current flight was sent.
    pub(super) first_sent_at: Instant,
    /// The sender had no data to send.
    pub(super) app_limited: bool,
    /// Packets in flight, with this one.
    pub(super) in_flight: u32,
    /// Packets found lost until then, and payload bytes delivered, both modulo 2^32: a record of each packet in flight
    /// has this state, and a flight has less.
    pub(super) lost: u32,
    pub(super) delivered_bytes: u32,
}
