//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers.

use crate::DecodeError;
use crate::checksum::Sum;
use crate::protocol::TCP;
use crate::reader::Reader;
use crate::writer::Writer;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IPv4 header without options, as written here.
pub(crate) const IPV4_HEADER_LEN: usize = 20;
/// An IPv6 header without extensions, as written here.
pub(crate) const IPV6_HEADER_LEN: usize = 40;

/// Hop limit of our packets; Linux's default.
const HOP_LIMIT: u8 = 64;
/// "Don't fragment", in the 16 bits that hold flags and fragment offset.
const DONT_FRAGMENT: u16 = 0x4000;
/// "More fragments" and the fragment offset.
const FRAGMENT: u16 = 0x3fff;

/// The decoded fields of an IP header.
pub(crate) struct Header<'a> {
    pub source: IpAddr,
    pub destination: IpAddr,
    /// The number of the protocol that the packet carries.
    pub protocol: u8,
    /// What is behind the IP headers, without padding behind the packet.
    pub body: &'a [u8],
}

pub(crate) fn decode(packet: &[u8]) -> Result<Header<'_>, DecodeError> {
    match packet.first().ok_or(DecodeError::Truncated)? >> 4 {
        4 => decode_v4(packet),
        6 => decode_v6(packet),
        version => Err(DecodeError::IpVersion(version)),
    }
}

fn decode_v4(packet: &[u8]) -> Result<Header<'_>, DecodeError> {
    let header_len = usize::from(packet[0] & 0x0f) * 4;
    if header_len < IPV4_HEADER_LEN {
        return Err(DecodeError::HeaderLength);
    }
    let header = packet.get(..header_len).ok_or(DecodeError::Truncated)?;
    if Sum::default().bytes(header).finish() != 0 {
        return Err(DecodeError::IpChecksum);
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if total < header_len {
        return Err(DecodeError::HeaderLength);
    }
    if u16::from_be_bytes([header[6], header[7]]) & FRAGMENT != 0 {
        return Err(DecodeError::Fragment);
    }
    let address = |at: usize| IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]));
    let body = packet.get(header_len..total).ok_or(DecodeError::Truncated)?;
    Ok(Header { source: address(12), destination: address(16), protocol: header[9], body })
}

fn decode_v6(packet: &[u8]) -> Result<Header<'_>, DecodeError> {
    read_v6(packet).ok_or(DecodeError::Truncated)?
}

/// `None` where the packet is truncated.
fn read_v6(packet: &[u8]) -> Option<Result<Header<'_>, DecodeError>> {
    let mut r = Reader::new(packet);
    let _version_class_flow = r.u32()?;
    let payload_len = r.u16()?;
    let mut next = r.u8()?;
    let _hop_limit = r.u8()?;
    let source = IpAddr::V6(Ipv6Addr::from(r.array::<16>()?));
    let destination = IpAddr::V6(Ipv6Addr::from(r.array::<16>()?));
    let mut r = Reader::new(r.take(usize::from(payload_len))?);
    // Hop-by-hop options, routing header, destination options: all begin with the next header and their length in
    // units of eight bytes, the first of which does not count. Each takes at least eight bytes, so the loop ends.
    while matches!(next, 0 | 43 | 60) {
        next = r.u8()?;
        let len = r.u8()?;
        r.take(6 + 8 * usize::from(len))?;
    }
    Some(match next {
        44 => Err(DecodeError::Fragment),
        protocol => Ok(Header { source, destination, protocol, body: r.remaining() }),
    })
}

/// Writes an IPv4 header for `body_len` bytes; both header and body fit into 65 535 bytes.
///
/// The identification is zero: a packet with "don't fragment" needs none (RFC 6864 section 4.1).
pub(crate) fn encode_v4(w: &mut Writer<'_>, source: Ipv4Addr, destination: Ipv4Addr, body_len: usize) {
    let mut header = [0; IPV4_HEADER_LEN];
    header[0] = 4 << 4 | (IPV4_HEADER_LEN / 4) as u8;
    header[2..4].copy_from_slice(&((IPV4_HEADER_LEN + body_len) as u16).to_be_bytes());
    header[6..8].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
    header[8] = HOP_LIMIT;
    header[9] = TCP;
    header[12..16].copy_from_slice(&source.octets());
    header[16..20].copy_from_slice(&destination.octets());
    let checksum = Sum::default().bytes(&header).finish();
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    w.bytes(&header);
}

/// Writes an IPv6 header for `body_len` bytes, at most 65 535.
pub(crate) fn encode_v6(w: &mut Writer<'_>, source: Ipv6Addr, destination: Ipv6Addr, body_len: usize) {
    w.u32(6 << 28);
    w.u16(body_len as u16);
    w.bytes(&[TCP, HOP_LIMIT]);
    w.bytes(&source.octets());
    w.bytes(&destination.octets());
}
