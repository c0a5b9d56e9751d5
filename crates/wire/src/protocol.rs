//! Numbers of the protocols that an IP packet carries (IANA, Assigned Internet Protocol Numbers).

pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const ICMPV6: u8 = 58;
