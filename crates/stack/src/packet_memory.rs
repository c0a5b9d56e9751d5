//! The memory that Linux counts for a packet, in send buffers and in receive buffers.

/// The kernel's description of a packet (`struct sk_buff`).
pub(crate) const DESCRIPTION: u32 = 256;
/// The kernel's record of the pages of a packet (`struct skb_shared_info`).
pub(crate) const PAGES: u32 = 320;

/// What a driver puts before a received packet, and the headers with their options.
const RECEIVED_HEADERS: u32 = 144;

/// Bytes of memory that Linux counts for a received packet with so much payload (`skb->truesize`, as TUN and veth
/// devices show it).
pub(crate) fn received_memory(payload: u64) -> u64 {
    packet_memory(payload as u32, RECEIVED_HEADERS)
}

/// How many bytes more fit into the memory of a received packet with so much payload: what follows it immediately takes
/// no memory if it fits there (`skb_try_coalesce`).
pub(crate) fn room_behind(payload: u64) -> u64 {
    received_memory(payload) - u64::from(DESCRIPTION + PAGES + RECEIVED_HEADERS) - payload
}

/// Bytes of memory that Linux's autotuning of send buffers counts for a packet (`tcp_sndbuf_expand`). `segment` is the
/// payload of the largest segment without options, `header_room` what the kernel's build reserves for headers
/// (`MAX_TCP_HEADER`).
pub fn packet_memory(segment: u32, header_room: u32) -> u64 {
    u64::from((segment + header_room + PAGES).next_power_of_two() + DESCRIPTION)
}
