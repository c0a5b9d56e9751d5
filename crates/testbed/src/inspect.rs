//! The kernel's counters of a sender's subflows.

use crate::sockopt::{SubflowInfo, TCP_INFO_BYTES, subflow_infos, tcp_info};
use anabranch_testnet::sites::MAX_PATHS;
use anabranch_units::Duration;
use rustix::net::AddressFamily;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;

/// A subflow in the kernel of the sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Subflow {
    /// The kernel's number of the subflow; the initial one's is 1.
    pub id: u16,
    /// The client's address.
    pub remote: IpAddr,
    /// Congestion window in packets.
    pub cwnd: u32,
    /// Slow-start threshold in packets.
    pub ssthresh: u32,
    /// Packets in flight.
    pub in_flight: u32,
    /// Smoothed round trip.
    pub srtt: Duration,
    /// Payload bytes acknowledged.
    pub acked: u64,
    /// Payload bytes sent, retransmissions included.
    pub bytes: u64,
    /// Segments with payload sent, retransmissions included.
    pub segments: u64,
    /// Retransmitted segments.
    pub retransmissions: u64,
    /// How often the retransmission timer fired.
    pub timeouts: u64,
}

/// The open subflows of a socket; empty if the kernel does not report them.
pub(crate) fn subflows(socket: impl AsFd + Copy, peer: IpAddr) -> Vec<Subflow> {
    if let Ok(list) = subflow_infos(socket, usize::from(MAX_PATHS)) {
        return list.iter().filter_map(of_subflow).collect();
    }
    tcp_info(socket).ok().map(|info| read(1, peer, &info)).into_iter().collect()
}

/// The packets for twice of which the kernel gave a new connection memory (`tcp_sndbuf_expand`): its window, or the
/// reordering that it remembers of earlier connections to this host and one more, and no less than the initial window.
pub(crate) fn packets_of_buffer(socket: impl AsFd) -> io::Result<u32> {
    const INITIAL_WINDOW: u32 = 10;
    let info = tcp_info(socket)?;
    let (cwnd, reordering) = (u32_at(&info, 80), u32_at(&info, 88));
    Ok(cwnd.max(reordering + 1).max(INITIAL_WINDOW))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Reads `struct tcp_info` of `linux/tcp.h`.
fn read(id: u16, remote: IpAddr, info: &[u8; TCP_INFO_BYTES]) -> Subflow {
    let u32_of = |at| u32_at(info, at);
    Subflow {
        id,
        remote,
        in_flight: u32_of(24).saturating_sub(u32_of(28)).saturating_sub(u32_of(32)) + u32_of(36),
        srtt: Duration::from_micros(u64::from(u32_of(68))),
        ssthresh: u32_of(76),
        cwnd: u32_of(80),
        retransmissions: u64::from(u32_of(100)),
        acked: u64_at(info, 120),
        segments: u64::from(u32_of(156)),
        bytes: u64_at(info, 200),
        timeouts: u64::from(u16_at(info, 240)),
    }
}

/// Reads `struct mptcp_subflow_info` of `linux/mptcp.h`: the number, then at 8 the local and at 136 the remote address.
fn of_subflow((about, info): &SubflowInfo) -> Option<Subflow> {
    const REMOTE: usize = 136;
    let remote = match AddressFamily::from_raw(u16_at(about, REMOTE)) {
        AddressFamily::INET => {
            let bytes: [u8; 4] = about[REMOTE + 4..REMOTE + 8].try_into().ok()?;
            IpAddr::V4(Ipv4Addr::from(bytes))
        }
        AddressFamily::INET6 => {
            let bytes: [u8; 16] = about[REMOTE + 8..REMOTE + 24].try_into().ok()?;
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(read(u16::try_from(u32_at(about, 0)).ok()?, remote, info))
}
