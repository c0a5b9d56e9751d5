//! The memory of a receive buffer, as Linux counts it, and how autotuning makes it larger.
//!
//! A Multipath TCP connection has such a buffer, and each of its subflows another one. The connection's bounds what may
//! wait for the application or for a hole; a subflow's bounds how far its own window opens. Linux counts memory and not
//! payload. It takes half of the memory for payload until packets have shown which share they need.
//!
//! Source: Linux 6.18, `tcp_rcvbuf_grow`, `mptcp_rcvbuf_grow`, `tcp_measure_rcv_mss`.

use crate::packet_memory::received_memory;
use anabranch_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The share of payload in a buffer's memory, in 256ths.
const WHOLE: u64 = 256;
/// The share before packets have shown theirs (`TCP_DEFAULT_SCALING_RATIO`), and the least.
pub(crate) const DEFAULT_SHARE: u64 = 128;
/// The scale of windows that 6 MiB of memory need (`tcp_select_initial_window`).
const LEAST_SCALE: u8 = 7;
/// What the application is taken to read in the first round trip: ten segments with timestamps (`TCP_INIT_CWND`).
const FIRST_ROUND: u64 = 10 * 1_448;

/// The receive window and how it grows: bytes of payload that are accepted at first, and up to where autotuning may
/// raise that. Both are the same for a fixed window: what full packets have room for, of which half of the memory is
/// accepted at first, as in Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReceiveBuffer {
    /// The window at first.
    pub initial: Bytes,
    /// The largest window that autotuning may reach (about half of tcp_rmem's 6 MiB).
    pub max: Bytes,
}

impl ReceiveBuffer {
    /// Bytes of memory at first, and where autotuning ends (`tcp_rmem`), where full segments have `segment` bytes of
    /// payload. A window that grows begins with half of the memory, which Linux takes for payload until packets have
    /// shown which share they need. A fixed one needs as much memory as its packets take.
    pub fn memory(&self, segment: u32) -> (u64, u64) {
        let (Bytes(initial), Bytes(max)) = (self.initial, self.max);
        if self.initial < self.max {
            return (initial * WHOLE / DEFAULT_SHARE, max * WHOLE / DEFAULT_SHARE);
        }
        let fixed = initial.saturating_mul(WHOLE) / ReceiveMemory::share_of(segment);
        (fixed, fixed)
    }

    /// What is accepted at first: half of the memory, in whole segments of `mss` bytes (Linux's
    /// `tcp_select_initial_window`).
    pub(crate) fn first_window(&self, mss: u32, segment: u32) -> u64 {
        let (half, mss) = (self.memory(segment).0 * DEFAULT_SHARE / WHOLE, u64::from(mss.max(1)));
        if half > mss { half / mss * mss } else { half }
    }

    /// The scale that the largest window needs (RFC 7323 section 2.3), and at least Linux's with the default of
    /// `tcp_rmem`.
    pub(crate) fn window_scale(&self) -> u8 {
        let Bytes(largest) = self.max.max(self.initial);
        (LEAST_SCALE..14).find(|scale| largest >> scale <= u64::from(u16::MAX)).unwrap_or(14)
    }
}

impl Default for ReceiveBuffer {
    fn default() -> Self {
        // net.ipv4.tcp_rmem = 4096 131072 6291456; about half of a buffer holds payload, the rest its bookkeeping.
        ReceiveBuffer { initial: Bytes(65_535), max: Bytes(3_145_728) }
    }
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
    /// See [`ReceiveMemory::payload`], and the most that it may be.
    payload: u64,
    most_payload: u64,
    /// The memory that so much payload takes.
    usable: u64,
}

impl ReceiveMemory {
    /// The memory of a buffer for full segments with `segment` bytes of payload.
    pub fn new(buffer: ReceiveBuffer, segment: u32) -> Self {
        let (bytes, most) = buffer.memory(segment);
        let mut memory = ReceiveMemory {
            bytes,
            most,
            share: DEFAULT_SHARE,
            per_round: buffer.initial.0.clamp(1, FIRST_ROUND),
            frozen: false,
            payload: 0,
            usable: 0,
            most_payload: buffer.max.max(buffer.initial).0,
        };
        memory.note_payload();
        memory
    }

    /// To be called after any change of the memory or of the share of payload in it.
    fn note_payload(&mut self) {
        self.usable = self.bytes.min(self.most_payload.saturating_mul(WHOLE).div_ceil(self.share));
        self.payload = self.room_for_payload(0);
    }

    /// The payload that it has room for; never more than the scenario's maximum.
    pub fn payload(&self) -> u64 {
        self.payload
    }

    /// The payload that there is room for in addition to packets that take so much memory.
    pub fn room_for_payload(&self, taken: u64) -> u64 {
        self.usable.saturating_sub(taken) * self.share / WHOLE
    }

    /// Whether a packet with so much payload takes no more memory than its share.
    pub fn is_well_used(&self, len: u32) -> bool {
        self.share_taken(len) <= u64::from(len)
    }

    /// Whether a window of `opened` bytes may grow by a packet with so much payload. One that takes up to twice its
    /// share of the memory may do so up to half of the largest window, one that takes up to four times as much up to a
    /// quarter, and so on (`__tcp_grow_window`).
    pub fn bears(&self, len: u32, opened: u64) -> bool {
        let (mut taken, mut window) = (self.share_taken(len), self.most * self.share / WHOLE);
        while taken > u64::from(len) {
            (taken, window) = (taken / 2, window / 2);
            if opened > window {
                return false;
            }
        }
        true
    }

    fn share_taken(&self, len: u32) -> u64 {
        received_memory(u64::from(len)) * self.share / WHOLE
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
        let share = u64::from(payload) * WHOLE / received_memory(u64::from(payload));
        share.clamp(DEFAULT_SHARE, WHOLE - 1)
    }

    /// Whether it may grow. What it measures meanwhile does not count, so it grows later as if the transfer were new.
    pub fn freeze(&mut self, frozen: bool) {
        self.frozen = frozen;
    }

    /// Dynamic right-sizing: the application read `per_round` bytes in a round trip. If that is more than before, there
    /// should be room for twice as much, for more while that grows, and for what waits `ahead` of a hole. True if the
    /// buffer grew.
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
        ReceiveMemory::new(ReceiveBuffer::default(), 1_420)
    }

    #[test]
    fn packets_show_their_share() {
        // As the kernel has it (`scaling_ratio`) for segments of Multipath TCP and of TCP.
        assert_eq!([1_420, 1_448].map(ReceiveMemory::share_of), [157, 160]);
        assert_eq!(ReceiveMemory::share_of(152), 128);
        // Twice the payload is too much memory for it.
        assert_eq!([1_420, 152].map(|segment| fixed(50_000).memory(segment)), [(81_528, 81_528), (100_000, 100_000)]);
        let mut memory = fresh();
        assert_eq!(memory.payload(), 65_535);
        memory.set_share(157);
        assert_eq!(memory.payload(), 80_382, "the kernel's `window_clamp` after the first packet");
    }

    fn fixed(payload: u64) -> ReceiveBuffer {
        ReceiveBuffer { initial: Bytes(payload), max: Bytes(payload) }
    }

    /// A download's first chunks over 8 and 2 Mb/s, read from the kernel's structures: `rcvq_space.space` and the
    /// buffer as payload.
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
    fn it_ends_at_the_scenarios_maximum() {
        let mut memory = fresh();
        memory.set_share(160);
        assert!(memory.grow(10 << 20, 0));
        assert_eq!(memory.payload(), 3_145_728);
        assert!(!memory.grow(20 << 20, 0));
    }

    #[test]
    fn a_fixed_one_does_not_grow_and_begins_with_half_of_its_memory() {
        // A kernel announced 78,848 bytes over TCP: this, rounded up to units of 128 bytes.
        assert_eq!(fixed(100_000).first_window(1_460, 1_448), 54 * 1_460);
        let mut memory = ReceiveMemory::new(fixed(100_000), 1_448);
        assert_eq!(memory.payload(), 80_000);
        memory.set_share(160);
        assert!(!memory.grow(1 << 20, 1 << 20));
        assert_eq!(memory.payload(), 100_000);
        memory.set_share(200);
        assert_eq!(memory.payload(), 100_000, "never more than the scenario says");
        // Small packets take more memory, which leaves less room for others.
        memory.set_share(160);
        assert_eq!([1_448, 24].map(|len| 100_000 - memory.room_for_payload(received_memory(len))), [1_440, 480]);
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
