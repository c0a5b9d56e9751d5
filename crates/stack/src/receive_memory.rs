//! The memory of a receive buffer, as Linux counts it, and how autotuning makes it larger.
//!
//! A Multipath TCP connection has such a buffer, and each of its subflows another one. The connection's bounds what may wait for
//! the application or for a hole; a subflow's bounds how far its own window opens. Linux counts memory and not payload. It takes
//! half of the memory for payload until packets have shown which share they need.
//!
//! Source: Linux 6.18, `tcp_rcvbuf_grow`, `mptcp_rcvbuf_grow`, `tcp_measure_rcv_mss`.

use crate::packet_memory::packet_memory;
use anabranch_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The share of payload in a buffer's memory, in 256ths.
const WHOLE: u64 = 256;
/// The share before packets have shown theirs (`TCP_DEFAULT_SCALING_RATIO`). It is the least here: a fixed buffer is given in bytes
/// of payload, so small packets do not make it smaller.
pub(crate) const DEFAULT_SHARE: u64 = 128;
/// What a driver puts before a packet, and the headers with their options.
const HEADERS: u32 = 144;
/// What the application is taken to read in the first round trip: ten segments with timestamps (`TCP_INIT_CWND`).
const FIRST_ROUND: u64 = 10 * 1_448;

/// The receive window and how it grows: bytes of payload that are accepted at first, and up to where autotuning may raise
/// that; both are the same for a fixed window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReceiveBuffer {
    /// The window at first.
    pub initial: Bytes,
    /// The largest window that autotuning may reach (about half of tcp_rmem's 6 MiB).
    pub max: Bytes,
}

impl ReceiveBuffer {
    /// What is accepted at first: one that grows begins with whole segments of `segment` bytes (Linux's
    /// `tcp_select_initial_window`).
    pub(crate) fn first_window(&self, segment: u32) -> u64 {
        let (Bytes(initial), segment) = (self.initial, u64::from(segment.max(1)));
        if self.max > self.initial && initial > segment { initial / segment * segment } else { initial }
    }

    /// The scale that the largest window needs (RFC 7323 section 2.3).
    pub(crate) fn window_scale(&self) -> u8 {
        let Bytes(largest) = self.max.max(self.initial);
        (0..14).find(|scale| largest >> scale <= u64::from(u16::MAX)).unwrap_or(14)
    }
}

impl Default for ReceiveBuffer {
    fn default() -> Self {
        // net.ipv4.tcp_rmem = 4096 131072 6291456; about half of a buffer holds payload, the rest its bookkeeping.
        ReceiveBuffer { initial: Bytes(65_535), max: Bytes(3_145_728) }
    }
}

/// The memory of a receive buffer that has room for so much payload in segments of `segment` bytes of payload.
pub fn receive_memory(payload: u64, segment: u32) -> u64 {
    payload.saturating_mul(WHOLE) / ReceiveMemory::share_of(segment)
}

/// See the module's description.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveMemory {
    /// Bytes of memory (`sk_rcvbuf`).
    bytes: u64,
    /// Where autotuning ends, in bytes of memory (`tcp_rmem[2]`).
    most: u64,
    /// See [`WHOLE`] (`scaling_ratio`).
    share: u64,
    /// What the application read in a round trip when the buffer grew last, in bytes (`rcvq_space.space`).
    per_round: u64,
    /// The host has no memory for a larger buffer at present.
    frozen: bool,
    /// See [`ReceiveMemory::payload`].
    payload: u64,
}

impl ReceiveMemory {
    pub fn new(buffer: ReceiveBuffer) -> Self {
        let (Bytes(initial), Bytes(max)) = (buffer.initial, buffer.max.max(buffer.initial));
        let of_payload = |payload: u64| payload * WHOLE / DEFAULT_SHARE;
        let mut memory = ReceiveMemory {
            bytes: of_payload(initial),
            most: of_payload(max),
            share: DEFAULT_SHARE,
            per_round: initial.clamp(1, FIRST_ROUND),
            frozen: false,
            payload: 0,
        };
        memory.note_payload();
        memory
    }

    /// To be called after any change of the memory or of the share of payload in it.
    fn note_payload(&mut self) {
        self.payload = (self.bytes * self.share / WHOLE).min(self.most * DEFAULT_SHARE / WHOLE);
    }

    /// The payload that it has room for; never more than the scenario's maximum.
    pub fn payload(&self) -> u64 {
        self.payload
    }

    /// The share of payload in the memory.
    pub fn share(&self) -> u64 {
        self.share
    }

    /// The packets need another share.
    pub fn set_share(&mut self, share: u64) {
        if self.share != share {
            self.share = share;
            self.note_payload();
        }
    }

    /// The share that packets of this much payload need.
    pub fn share_of(payload: u32) -> u64 {
        let share = u64::from(payload) * WHOLE / packet_memory(payload, HEADERS);
        share.clamp(DEFAULT_SHARE, WHOLE - 1)
    }

    /// Whether it may grow. What it measures meanwhile does not count, so it grows later as if the transfer were new.
    pub fn freeze(&mut self, frozen: bool) {
        self.frozen = frozen;
    }

    /// Dynamic right-sizing: the application read `per_round` bytes in a round trip. If that is more than before, there should be
    /// room for twice as much, for more while that grows, and for what waits `ahead` of a hole. True if the buffer grew.
    pub fn grow(&mut self, per_round: u64, ahead: u64) -> bool {
        if self.frozen || per_round <= self.per_round {
            return false;
        }
        let doubled = 2 * per_round;
        let growth = u128::from(doubled) * u128::from(per_round - self.per_round) / u128::from(self.per_round);
        let payload = doubled.saturating_add(2 * growth as u64).saturating_add(ahead);
        self.per_round = per_round;
        let wanted = (payload.saturating_mul(WHOLE) / self.share).min(self.most);
        let grows = wanted > self.bytes;
        self.bytes = self.bytes.max(wanted);
        self.note_payload();
        grows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The default of the scenario, and of the kernel.
    fn fresh() -> ReceiveMemory {
        ReceiveMemory::new(ReceiveBuffer::default())
    }

    #[test]
    fn packets_show_their_share() {
        // As the kernel has it (`scaling_ratio`) for segments of Multipath TCP and of TCP.
        assert_eq!([1_420, 1_448].map(ReceiveMemory::share_of), [157, 160]);
        assert_eq!(ReceiveMemory::share_of(152), 128);
        // Twice the payload is too much memory for it.
        assert_eq!([1_420, 152].map(|segment| receive_memory(50_000, segment)), [81_528, 100_000]);
        let mut memory = fresh();
        assert_eq!(memory.payload(), 65_535);
        memory.set_share(157);
        assert_eq!(memory.payload(), 80_382, "the kernel's `window_clamp` after the first packet");
    }

    /// A download's first chunks over 8 and 2 Mb/s, read from the kernel's structures: `rcvq_space.space` and the buffer as payload.
    #[test]
    fn it_grows_as_the_kernels_did() {
        let mut connection = fresh();
        for (per_round, payload) in [(15_620, 65_535), (26_980, 132_446), (35_856, 132_446), (42_600, 132_446)] {
            connection.grow(per_round, 0);
            assert_eq!(connection.payload(), payload, "after {per_round} bytes");
        }
        connection.set_share(157);
        assert_eq!(connection.payload(), 162_453);
        for (per_round, payload) in [(49_949, 162_453), (78_316, 334_540), (190_797, 1_477_718)] {
            connection.grow(per_round, 0);
            assert!(connection.payload().abs_diff(payload) <= 2, "{} after {per_round} bytes", connection.payload());
        }
        let mut subflow = fresh();
        subflow.set_share(157);
        assert!(subflow.grow(26_980, 0));
        assert_eq!(subflow.payload(), 147_121);
        assert!(subflow.grow(78_316, 0));
        assert!(subflow.payload().abs_diff(752_691) <= 2, "{}", subflow.payload());
    }

    #[test]
    fn it_ends_at_the_scenarios_maximum_and_a_fixed_one_stays() {
        let mut memory = fresh();
        memory.set_share(160);
        assert!(memory.grow(10 << 20, 0));
        assert_eq!(memory.payload(), 3_145_728);
        assert!(!memory.grow(20 << 20, 0));
        let mut fixed = ReceiveMemory::new(ReceiveBuffer { initial: Bytes(10_000), max: Bytes(10_000) });
        fixed.set_share(157);
        assert!(!fixed.grow(1 << 20, 1 << 20));
        assert_eq!(fixed.payload(), 10_000);
    }

    #[test]
    fn a_frozen_one_grows_once_it_may() {
        let mut memory = fresh();
        memory.freeze(true);
        assert!(!memory.grow(1 << 20, 0));
        assert_eq!(memory.payload(), 65_535);
        memory.freeze(false);
        assert!(memory.grow(1 << 20, 0));
        assert_eq!(memory.payload(), 3_145_728);
    }

    #[test]
    fn what_waits_ahead_of_a_hole_needs_room_as_well() {
        let (mut with, mut without) = (fresh(), fresh());
        assert!(with.grow(30_000, 50_000) && without.grow(30_000, 0));
        assert_eq!(with.payload() - without.payload(), 50_000);
    }
}
