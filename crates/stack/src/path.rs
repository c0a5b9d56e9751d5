//! A path as an endpoint knows it.

use anabranch_segment::BASE_HEADER_LEN;
use anabranch_units::PathId;
use core::net::IpAddr;

/// One path that the connection may use.
#[derive(Clone, Copy, Debug)]
pub struct PathConfig {
    /// Identifier of the path.
    pub id: PathId,
    /// This end's address.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
    /// The largest IP packet that this end's interface takes, in bytes.
    pub mtu: u32,
    /// Whether to use the path only when no other works.
    pub backup: bool,
    /// Whether bytes cost money on the path.
    pub metered: bool,
}

impl PathConfig {
    /// Bytes of the IP header on this path, without options.
    pub fn ip_header(&self) -> u32 {
        if self.local.is_ipv4() { 20 } else { 40 }
    }

    /// Payload of the largest segment without options: the MSS of this end's SYN.
    pub(crate) fn mss(&self) -> u32 {
        self.mtu.saturating_sub(self.ip_header() + BASE_HEADER_LEN)
    }
}
