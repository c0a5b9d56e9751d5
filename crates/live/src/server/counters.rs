//! Counters of a server.

use super::slot::AbortCause;
use anabranch_stack::connection::MtuReduction;

/// Counters of a server since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// SYNs that opened a connection.
    pub accepted: u64,
    /// Connections that ended, half-open ones included.
    pub closed: u64,
    /// SYNs that were not answered, because there were enough connections or the server no longer accepts any.
    pub refused: u64,
    /// SYNs that were refused with RST, because a part that is in no registry could not be made.
    pub unmade: u64,
    /// Connections aborted because a part that is in no registry failed.
    pub failed: u64,
    /// Half-open connections that made room for newer ones.
    pub displaced: u64,
    /// Connections that were aborted for new ones while the server was full, because no request had come on them.
    pub silent: u64,
    /// Connections aborted because no packet of the client arrived for too long.
    pub idle: u64,
    /// Connections aborted because the client acknowledged no data for too long.
    pub stalled: u64,
    /// Packets that could not be decoded.
    pub undecodable: u64,
    /// Packets for an address that is not the server's on that path.
    pub misdirected: u64,
    /// Reports about packets that were too big, of none that was in flight, or of sizes that are not believed.
    pub reports_ignored: u64,
    /// Segments of no connection; answered with RST, as far as the limit allows.
    pub unknown: u64,
    /// Segments of the endpoint that could not be encoded or had no address: always zero,
    /// unless the endpoint has a fault.
    pub unsendable: u64,
}

impl Counters {
    pub(super) fn give_up(&mut self, why: Option<AbortCause>) {
        self.idle += u64::from(why == Some(AbortCause::Idle));
        self.stalled += u64::from(why == Some(AbortCause::Stalled));
    }
}

/// Segments with payload sent on a path, retransmissions included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounters {
    /// Segments.
    pub segments: u64,
    /// Their payload.
    pub bytes: u64,
    /// Segments whose first byte was sent on the same subflow before.
    pub retransmitted_segments: u64,
    /// Their payload.
    pub retransmitted_bytes: u64,
    /// How often a subflow's segments became smaller because a router reported a packet that was too big.
    pub mtu_reported: u64,
    /// How often they did because large packets were lost, without a report, where small ones arrived.
    pub mtu_black_holes: u64,
    /// The IP packet of a full segment after the last of these, in bytes; zero without one.
    pub mtu: u32,
    /// Subflows that were reset because the client acknowledged what had not left the server.
    pub false_acknowledgments: u64,
}

impl PathCounters {
    pub(super) fn note_mtu(&mut self, reduction: MtuReduction) {
        self.mtu = reduction.mtu;
        self.mtu_reported += u64::from(reduction.reported);
        self.mtu_black_holes += u64::from(!reduction.reported);
    }

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

/// Current values of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Connections whose handshake is complete and that have not ended.
    pub open: u64,
    /// Open connections that use Multipath TCP.
    pub multipath: u64,
    /// Handshakes in progress.
    pub half_open: u64,
    /// Subflows in TIME-WAIT.
    pub time_waits: u64,
    /// Bytes written by applications and not acknowledged by clients.
    pub send_queue: u64,
    /// Bytes received from clients and not taken by applications.
    pub receive_queue: u64,
    /// Bytes of room that the receive buffers of all connections have.
    pub receive_room: u64,
    /// Bytes that the endpoint's buffers of received data occupy.
    pub receive_memory: u64,
    /// Established subflows, by path in the order of the configuration.
    pub subflows: Vec<u64>,
}
