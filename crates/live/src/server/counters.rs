//! What a server counts.

use super::slot::Impatience;

/// What a server counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// SYNs that were taken up.
    pub accepted: u64,
    /// Connections that ended, half-open ones included.
    pub closed: u64,
    /// SYNs that were not answered, because there were enough connections or the server no longer accepts any.
    pub refused: u64,
    /// Half-open connections that made room for newer ones.
    pub displaced: u64,
    /// Connections that were aborted because nothing was heard of the client.
    pub idle: u64,
    /// Connections that were aborted because the client took no data.
    pub stalled: u64,
    /// Packets that could not be understood.
    pub undecodable: u64,
    /// Packets for an address that is not the server's on that path.
    pub misdirected: u64,
    /// Segments that belong to no connection; answered with RST, as far as the limit allows.
    pub unknown: u64,
    /// Segments that the endpoint wanted to send and that could not be encoded or had no address: always zero,
    /// unless the endpoint has a fault.
    pub unsendable: u64,
}

impl Counters {
    pub(super) fn give_up(&mut self, why: Option<Impatience>) {
        self.idle += u64::from(why == Some(Impatience::Idle));
        self.stalled += u64::from(why == Some(Impatience::Stalled));
    }
}

/// What left with payload on a path, repetitions included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounters {
    /// Segments.
    pub segments: u64,
    /// Their payload.
    pub bytes: u64,
    /// Segments whose first byte had left on the same subflow before.
    pub retransmitted_segments: u64,
    /// Their payload.
    pub retransmitted_bytes: u64,
}

impl PathCounters {
    pub(super) fn count(&mut self, payload: u32, again: bool) {
        if payload == 0 {
            return;
        }
        self.segments += 1;
        self.bytes += u64::from(payload);
        if again {
            self.retransmitted_segments += 1;
            self.retransmitted_bytes += u64::from(payload);
        }
    }
}

/// What a server has at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Connections whose handshake is complete and that have not ended.
    pub open: u64,
    /// Those of them that speak Multipath TCP.
    pub multipath: u64,
    /// Handshakes under way.
    pub half_open: u64,
    /// Subflows whose end is remembered.
    pub time_waits: u64,
    /// Bytes that applications have written and clients have not acknowledged.
    pub send_queue: u64,
    /// Bytes that clients have sent and applications have not taken.
    pub receive_queue: u64,
    /// Established subflows, by path in the order of the configuration.
    pub subflows: Vec<u64>,
}
