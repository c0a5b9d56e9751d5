//! Packets that were too big for a link: routers' reports (ICMP; RFC 1191, RFC 8201), and the size of segments
//! afterwards. What the sender finds out by itself is in `subflow/sender/segment_size.rs`.

use super::Connection;
use crate::subflow::{SizeChange, least_mtu};
use anabranch_events::{MtuCause, TransportEvent};
use anabranch_segment::BASE_HEADER_LEN;
use anabranch_units::{Instant, PathId, SeqNumber};

/// What routers that do not say what fits may mean: the next of these below the packet (RFC 1191 section 7.1).
const PLATEAUS: [u32; 8] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 552];

/// The report of a router that a packet of ours did not fit into the next link: "fragmentation needed" of ICMP, "packet
/// too big" of ICMPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig {
    /// This end's port in the quoted packet.
    pub local_port: u16,
    /// The peer's port.
    pub remote_port: u16,
    /// The quoted packet's sequence number.
    pub seq: SeqNumber,
    /// The quoted packet's length, in bytes with the IP header.
    pub packet: u32,
    /// The largest packet that fits, in bytes; zero from routers that do not say (RFC 1191 section 5).
    pub mtu: u32,
}

/// Segments of a subflow became smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MtuReduction {
    /// The subflow's path.
    pub path: PathId,
    /// The IP packet of a full segment from then on, in bytes.
    pub mtu: u32,
    /// Whether a router reported it; otherwise large packets were lost where small ones arrived.
    pub reported: bool,
}

impl Connection {
    /// Where segments became smaller since the last call, for counters of the host.
    pub fn take_mtu_reductions(&mut self) -> Vec<MtuReduction> {
        std::mem::take(&mut self.mtu_reductions)
    }

    /// Whether [`Connection::take_mtu_reductions`] has something to return.
    #[inline]
    pub fn has_mtu_reductions(&self) -> bool {
        !self.mtu_reductions.is_empty()
    }

    /// A router reports that a packet sent on `path` was too big. Segments become smaller, and the data is sent again.
    /// Returns whether the report was believed: it must quote the first number of a packet that the peer has not
    /// acknowledged (RFC 5927 section 4.1), and name less than what is sent. Over IPv6 less than 1280 bytes is not
    /// believed (RFC 8201 section 4); over IPv4 segments are made for 552 bytes at least.
    pub fn handle_too_big(&mut self, now: Instant, path: PathId, report: &TooBig) -> bool {
        let ports = (report.local_port, report.remote_port);
        let found = self.subflows.iter().position(|s| s.path.id == path && (s.local_port, s.remote_port) == ports);
        let Some(at) = found.filter(|at| self.subflows[*at].is_established()) else { return false };
        let subflow = &self.subflows[at];
        let (ipv4, sender) = (subflow.path.local.is_ipv4(), &subflow.sender);
        let offset = report.seq.expand(subflow.isn, sender.acked());
        let quoted = sender.board().position_of(offset).and_then(|position| sender.board().get(position));
        let in_flight = quoted.is_some_and(|record| record.start == offset && !record.sacked() && record.len > 0);
        let fits = match report.mtu {
            0 => PLATEAUS.into_iter().find(|plateau| *plateau < report.packet).unwrap_or(least_mtu(ipv4)),
            mtu => mtu,
        };
        if !in_flight || report.packet <= fits || (!ipv4 && fits < least_mtu(ipv4)) {
            return false;
        }
        let headers = subflow.path.ip_header() + BASE_HEADER_LEN;
        let room = fits.max(least_mtu(ipv4)) - headers;
        if room < sender.size().room() {
            self.resize(now, at, SizeChange::Reported(room));
            return true;
        }
        let tried = sender.size().is_tried(offset, room);
        if tried {
            self.subflows.change(at).sender.fail_try(now, Some(room));
        }
        tried
    }

    /// Segments of the subflow have another size from here on.
    pub(super) fn resize(&mut self, now: Instant, at: usize, change: SizeChange) {
        let (room, cause) = match change {
            SizeChange::Reported(room) => (room, MtuCause::Reported),
            SizeChange::BlackHole(room) => (room, MtuCause::BlackHole),
            SizeChange::Tried(room) => (room, MtuCause::Tried),
        };
        self.subflows.change(at).set_room(room);
        let payload = self.full_payload(at);
        let subflow = self.subflows.change(at);
        subflow.sender.resize(now, change, payload);
        let (path, mtu) = (subflow.path.id, subflow.sender.size().mtu());
        let event = TransportEvent::PathMtu { subflow: subflow.id, mtu, cause };
        self.log.emit(now, event);
        if cause != MtuCause::Tried {
            self.mtu_reductions.push(MtuReduction { path, mtu, reported: cause == MtuCause::Reported });
        }
    }
}
