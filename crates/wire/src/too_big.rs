//! Reports of routers that a packet was too big: "fragmentation needed" of ICMP (RFC 792, RFC 1191), "packet too big"
//! of ICMPv6 (RFC 4443).

use crate::checksum::{self, Sum};
use crate::ip;
use crate::protocol::{ICMP, ICMPV6, TCP};
use crate::reader::Reader;
use anabranch_units::SeqNumber;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// "Destination unreachable", "fragmentation needed and DF set".
const FRAGMENTATION_NEEDED: [u8; 2] = [3, 4];
/// "Packet too big".
const PACKET_TOO_BIG: [u8; 2] = [2, 0];

/// A report about a TCP segment that this host sent, with what it quotes of the segment's packet. Any host can send
/// one: who acts on it compares it with what was sent (RFC 5927).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBigReport {
    /// Who sent the quoted packet: address and port.
    pub source: (IpAddr, u16),
    /// Whom it was for.
    pub destination: (IpAddr, u16),
    /// Its sequence number.
    pub seq: SeqNumber,
    /// Its length in bytes, with the IP header.
    pub packet: u32,
    /// The largest packet that fits, in bytes; zero where the router does not say.
    pub mtu: u32,
}

/// Decodes a report and verifies its checksum; `None` for any other packet.
pub fn decode_too_big(packet: &[u8]) -> Option<TooBigReport> {
    let ip::Header { source, destination, protocol, body } = ip::decode(packet).ok()?;
    let kind = [*body.first()?, *body.get(1)?];
    let mut r = Reader::new(body);
    let _kind_and_checksum = r.u32()?;
    let mtu = r.u32()?;
    match (protocol, kind) {
        (ICMP, FRAGMENTATION_NEEDED) if Sum::default().bytes(body).finish() == 0 => {
            // The upper half is unused, or has the length of the quotation (RFC 4884).
            quoted_v4(r, mtu & 0xffff)
        }
        (ICMPV6, PACKET_TOO_BIG) => {
            let sum = checksum::pseudo_header_of(ICMPV6, source, destination, body.len() as u32).bytes(body);
            if sum.finish() == 0 { quoted_v6(r, mtu) } else { None }
        }
        _ => None,
    }
}

fn quoted_v4(mut r: Reader<'_>, mtu: u32) -> Option<TooBigReport> {
    let begin = r.array::<12>()?;
    let header_len = usize::from(begin[0] & 0x0f) * 4;
    let (from, to) = (Ipv4Addr::from(r.array::<4>()?), Ipv4Addr::from(r.array::<4>()?));
    r.take(header_len.checked_sub(ip::IPV4_HEADER_LEN)?)?;
    let packet = u32::from(u16::from_be_bytes([begin[2], begin[3]]));
    if begin[0] >> 4 != 4 || begin[9] != TCP {
        return None;
    }
    segment(r, from.into(), to.into(), packet, mtu)
}

fn quoted_v6(mut r: Reader<'_>, mtu: u32) -> Option<TooBigReport> {
    let begin = r.array::<8>()?;
    let (from, to) = (Ipv6Addr::from(r.array::<16>()?), Ipv6Addr::from(r.array::<16>()?));
    let packet = ip::IPV6_HEADER_LEN as u32 + u32::from(u16::from_be_bytes([begin[4], begin[5]]));
    // Our packets have no extension headers.
    if begin[0] >> 4 != 6 || begin[6] != TCP {
        return None;
    }
    segment(r, from.into(), to.into(), packet, mtu)
}

/// The first eight bytes of a TCP header, which is all that a router needs to quote.
fn segment(mut r: Reader<'_>, from: IpAddr, to: IpAddr, packet: u32, mtu: u32) -> Option<TooBigReport> {
    let (source, destination) = ((from, r.u16()?), (to, r.u16()?));
    Some(TooBigReport { source, destination, seq: SeqNumber(r.u32()?), packet, mtu })
}
