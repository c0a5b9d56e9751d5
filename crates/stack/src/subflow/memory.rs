//! The memory of a subflow's send buffer, as Linux counts it.
//!
//! Where data commits into the buffer, this decides when a subflow takes more data, and the sum over the subflows
//! decides how far the application may be ahead of DATA_ACK. Linux counts memory and not payload, and how much memory a
//! packet takes depends on the build of the kernel: on the room that its drivers want in front of a packet
//! (`MAX_TCP_HEADER`).
//!
//! Source: Linux 6.18, `tcp_sndbuf_expand`, `tcp_should_expand_sndbuf`, `tcp_stream_alloc_skb`.

use super::INITIAL_WINDOW;
use crate::packet_memory::{DESCRIPTION, PAGES, packet_memory};

/// The longest IPv4 packet, which bounds what segmentation offload takes at once (`GSO_LEGACY_MAX_SIZE - 1`).
const LARGEST_PACKET: u32 = 65_535;
/// The memory of a packet shows this room for headers where a build without tunnels and wireless networks has 192. With
/// the record of its pages these make 512 bytes, and Linux adds a cache line, so that such memory has its own cache
/// (`SKB_SMALL_HEAD_SIZE`). A build with tunnels alone has 256 and cannot be told from it.
const SLIM_ROOM: u32 = 256;
const SLIM_HEADERS: u32 = 192;
/// A window of no more than this is not halved (`TCP_MSS_DEFAULT`).
const SMALL_WINDOW: u64 = 536;
/// What a subflow's data may take, and takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendMemory {
    /// Bytes that the kernel reserves for headers in front of a packet.
    header_room: u32,
    /// Where autotuning ends (`tcp_wmem[2]`).
    most: u64,
    /// How many windows there is room for (`sndbuf_expand`).
    windows: u32,
    /// The most that queued and outstanding data may take (`sk_sndbuf`); zero before the handshake.
    limit: u64,
}

impl SendMemory {
    pub fn new(header_room: u32, most: u64, windows: u32) -> Self {
        SendMemory { header_room, most, windows, limit: 0 }
    }

    /// The most that queued and outstanding data may take.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The most payload of a record (`sk_gso_max_size`, `tcp_xmit_size_goal`): whole segments of `segment` bytes, in no
    /// more than half of the `largest` window that the peer advertised (`tcp_bound_to_half_wnd`). Zero means that this
    /// window is unknown, and is no bound.
    pub fn record(&self, segment: u32, largest: u64) -> u64 {
        let headers = if self.header_room == SLIM_ROOM { SLIM_HEADERS } else { self.header_room };
        let packet = u64::from(LARGEST_PACKET - headers);
        let most = if largest > SMALL_WINDOW { packet.min(largest / 2) } else { packet };
        let segment = u64::from(segment).clamp(1, packet);
        (most / segment).max(1) * segment
    }

    /// What `payload` takes in so many buffers.
    pub fn taken(&self, payload: u64, buffers: u64) -> u64 {
        payload + buffers * u64::from(DESCRIPTION + PAGES + self.header_room)
    }

    /// The handshake is complete: memory for the initial window. `segment` is the payload of the largest segment
    /// without options.
    pub fn open(&mut self, segment: u32) {
        self.expand(segment, INITIAL_WINDOW);
    }

    /// Autotuning: memory for so many windows, and never less than before. Called while the application waits for room
    /// and the window has room: what was sent did not fill it, so the buffer may be why.
    pub fn expand(&mut self, segment: u32, window: u32) {
        let packets = u64::from(self.windows) * u64::from(window.max(INITIAL_WINDOW));
        let wanted = packet_memory(segment, self.header_room) * packets;
        self.limit = self.limit.max(wanted.min(self.most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u64 = 4 << 20;

    #[test]
    fn a_new_subflow_has_the_buffer_of_the_kernels_build() {
        // What `ss -m` shows (tb) on a fresh connection with segments of 1460 bytes: 87 040 with a distribution's
        // kernel, 46 080 with a slim one. 1460 + 320 + 320 exceeds 2048, 1460 + 256 + 320 does not.
        for (header_room, shown) in [(320, 87_040), (256, 46_080)] {
            let mut memory = SendMemory::new(header_room, MOST, 2);
            memory.open(1_460);
            assert_eq!(memory.limit(), shown);
        }
    }

    #[test]
    fn a_control_may_have_room_for_more_windows() {
        let mut memory = SendMemory::new(256, MOST, 3);
        memory.open(1_460);
        assert_eq!(memory.limit(), 69_120, "seen with `ss` on a fresh connection with BBR");
    }

    #[test]
    fn the_buffer_follows_the_largest_window_up_to_its_limit() {
        let mut memory = SendMemory::new(256, MOST, 2);
        memory.expand(1_460, 32);
        assert_eq!(memory.limit(), 147_456, "seen with `ss` on a subflow whose window had been 32 packets");
        memory.expand(1_460, 11);
        assert_eq!(memory.limit(), 147_456);
        memory.expand(1_460, 10_000);
        assert_eq!(memory.limit(), MOST);
    }

    #[test]
    fn packets_in_flight_take_more_than_their_payload() {
        // Seen with `ss` (w): 832 bytes more than the payload for a burst of two packets.
        let memory = SendMemory::new(256, MOST, 2);
        assert_eq!(memory.taken(5_000, 0), 5_000);
        assert_eq!(memory.taken(5_000, 2), 6_664);
    }

    #[test]
    fn a_full_burst_of_the_scheduler_takes_two_records() {
        let (slim, distribution) = (SendMemory::new(256, MOST, 2), SendMemory::new(320, MOST, 2));
        // Seen in captures: records of 46 packets in a slim build.
        assert_eq!((slim.record(1_420, 0), distribution.record(1_420, 0)), (46 * 1_420, 45 * 1_420));
        assert_eq!(65_428_u64.div_ceil(slim.record(1_420, 200_000)), 2);
    }

    #[test]
    fn a_record_takes_half_of_a_small_window() {
        let memory = SendMemory::new(256, MOST, 2);
        assert_eq!(memory.record(1_420, 50_000), 17 * 1_420);
        assert_eq!(memory.record(1_420, 2_000), 1_420);
    }
}
