//! Limits of a server's resources, against overload and attacks.

use anabranch_stack::Config;
use anabranch_units::{Bytes, Duration};

/// Limits that hold for any input. The defaults let a machine with 1 GiB to spare withstand a flood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections with a completed handshake. At this number a new one takes the place of the oldest whose client has
    /// not asked for anything; if there is none, SYNs are not answered, and clients try again. Default: 1024.
    pub connections: usize,
    /// Of these, connections of one client: of an IPv4 address, or of an IPv6 network of 64 bits. Default: 256.
    pub per_address: usize,
    /// Handshakes in progress (Linux's `tcp_max_syn_backlog`); a further SYN replaces the oldest one. Under a flood of
    /// `r` SYNs a second a client gets in if its round trip is shorter than `half_open / r`: 41 ms at 100 000 SYNs a
    /// second with the default, 4096.
    pub half_open: usize,
    /// Bytes of payload that a connection may hold, half of them received and unread, half of them written and not
    /// acknowledged. It caps the endpoint's buffers. Default: 8 MiB, room for what Linux's default buffers hold.
    pub memory: u64,
    /// Bytes of room that the receive buffers of all connections together have; beyond, none grows. Each begins with 64
    /// KiB of it. Default: 256 MiB.
    pub receive_memory: u64,
    /// A connection is aborted when no packet of the client arrived for so long. A client that merely pauses answers
    /// probes of its closed window; only one that is idle between requests, or gone, is silent. Default: 5 min.
    pub idle: Duration,
    /// A connection is aborted when the client has acknowledged nothing for so long although data waits for it, so that
    /// a client that requests and never reads does not keep its place for ever. A player that pauses longer requests
    /// the rest anew, as with other servers (60 s is nginx's `send_timeout`, and the default).
    pub stall: Duration,
    /// How long a client may take to end its side after the server's (Linux's `net.mptcp.close_timeout`, and
    /// `tcp_fin_timeout`). Default: 60 s.
    pub closing: Duration,
    /// How long the end of a closed subflow is remembered, so that a retransmitted FIN is acknowledged and a late
    /// segment is harmless (TIME-WAIT, RFC 9293 section 3.6; 60 s is Linux's `TCP_TIMEWAIT_LEN`).
    pub time_wait: Duration,
    /// Subflows in TIME-WAIT; beyond, the oldest is removed early (Linux's `tcp_max_tw_buckets`). Default: 16 384.
    pub time_waits: usize,
    /// Segments of no connection, and of closed ones, that are answered per second; the limit keeps the server from
    /// being an amplifier and from wasting its uplink. Default: 200.
    pub resets_per_second: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 1024,
            per_address: 256,
            half_open: 4096,
            memory: 8 << 20,
            receive_memory: 256 << 20,
            idle: Duration::from_secs(300),
            stall: Duration::from_secs(60),
            closing: Duration::from_secs(60),
            time_wait: Duration::from_secs(60),
            time_waits: 16_384,
            resets_per_second: 200,
        }
    }
}

impl Limits {
    /// Caps the endpoint's buffers.
    pub(super) fn cap(&self, config: &mut Config) {
        let half = Bytes(self.memory / 2);
        let receive = &mut config.transport.receive_buffer;
        receive.max = receive.max.min(half);
        receive.initial = receive.initial.min(half);
        config.transport.send_buffer = config.transport.send_buffer.min(half);
    }
}
