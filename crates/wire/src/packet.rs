//! Whole packets: IP header, TCP header, options, payload.

use crate::checksum;
use crate::ip;
use crate::options;
use crate::protocol;
use crate::reader::Reader;
use crate::writer::Writer;
use anabranch_segment::{BASE_HEADER_LEN, Flags, MAX_OPTIONS_LEN, Segment};
use anabranch_units::SeqNumber;
use core::net::IpAddr;
use thiserror::Error;

/// MSS of a peer that does not announce one (RFC 9293 section 3.7.1), over IPv4 and IPv6.
const DEFAULT_MSS: (u16, u16) = (536, 1220);

/// Where the checksum is in the TCP header.
pub const CHECKSUM_AT: usize = 16;

/// A packet from the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Sender's address.
    pub source: IpAddr,
    /// Receiver's address.
    pub destination: IpAddr,
    /// The TCP header.
    pub segment: Segment,
    /// The bytes behind the TCP header, `segment.payload_len` of them.
    pub payload: &'a [u8],
}

/// A fault in a packet from the network. The sender, or a middlebox, is at fault; the receiver drops the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The packet ends within a header, or before the length in its header.
    #[error("the packet ends too early")]
    Truncated,
    /// The version field is neither IPv4 nor IPv6.
    #[error("IP version {0}")]
    IpVersion(u8),
    /// A header's length field is below the least possible.
    #[error("a header's length is impossible")]
    HeaderLength,
    /// The IPv4 header's checksum is wrong.
    #[error("wrong IPv4 header checksum")]
    IpChecksum,
    /// The packet is a fragment; reassembly is not supported, and TCP's path MTU discovery avoids the need.
    #[error("a fragment")]
    Fragment,
    /// The protocol is not TCP.
    #[error("IP protocol {0} is not TCP")]
    NotTcp(u8),
    /// The TCP checksum is wrong.
    #[error("wrong TCP checksum")]
    TcpChecksum,
}

/// Why a segment cannot be encoded. The caller is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// One address is IPv4, the other IPv6.
    #[error("addresses of different families")]
    MixedFamilies,
    /// The options take more than 40 bytes.
    #[error("{0} bytes of options do not fit into a TCP header")]
    TooManyOptions(u32),
    /// The packet is larger than IP's length field allows.
    #[error("a payload of {0} bytes does not fit into a packet")]
    PayloadTooLong(u32),
    /// The buffer has fewer bytes than the packet.
    #[error("the packet needs a buffer of {0} bytes")]
    BufferTooSmall(usize),
}

/// Bytes of IP and TCP headers before the payload of `segment`, IPv6 or IPv4.
pub fn headers_len(ipv6: bool, segment: &Segment) -> usize {
    let ip = if ipv6 { ip::IPV6_HEADER_LEN } else { ip::IPV4_HEADER_LEN };
    ip + segment.header_len() as usize
}

/// Writes a segment as an IP packet to the start of `buffer` and returns the packet's length.
///
/// `payload` is called once, with a slice of `segment.payload_len` bytes within the buffer, and fills it. An option
/// that breaks the forms of RFC 8684 (a receiver's key without the sender's) is written as it is, and [`decode`] will
/// ignore it.
///
/// # Errors
/// See [`EncodeError`]; then the buffer's content is undefined and `payload` was not called.
pub fn encode(
    buffer: &mut [u8],
    source: IpAddr,
    destination: IpAddr,
    segment: &Segment,
    payload: impl FnOnce(&mut [u8]),
) -> Result<usize, EncodeError> {
    let total = check(source, destination, segment)?;
    let packet = buffer.get_mut(..total).ok_or(EncodeError::BufferTooSmall(total))?;
    let headers = write_headers(packet, source, destination, segment);
    payload(&mut packet[headers..]);
    write_checksum(packet, source, destination, segment);
    Ok(total)
}

/// Writes a segment as [`encode`] does, but leaves its TCP checksum to the kernel or the interface: the field has the
/// sum of the pseudo-header, to which what completes it adds the rest. Returns the length of the headers and the
/// packet's.
///
/// # Errors
/// See [`EncodeError`]; then the buffer's content is undefined and `payload` was not called.
pub fn encode_unsummed(
    buffer: &mut [u8],
    source: IpAddr,
    destination: IpAddr,
    segment: &Segment,
    payload: impl FnOnce(&mut [u8]),
) -> Result<(usize, usize), EncodeError> {
    let total = check(source, destination, segment)?;
    let packet = buffer.get_mut(..total).ok_or(EncodeError::BufferTooSmall(total))?;
    let headers = write_headers(packet, source, destination, segment);
    payload(&mut packet[headers..]);
    let field = headers - segment.header_len() as usize + CHECKSUM_AT;
    let sum = !checksum::pseudo_header(source, destination, segment.len()).finish();
    packet[field..field + 2].copy_from_slice(&sum.to_be_bytes());
    Ok((headers, total))
}

/// Writes only the headers of the packet that [`encode`] would write to the start of `buffer`, and returns their length
/// and the packet's.
///
/// The TCP checksum is the one of a payload of zeros, because there is none here: that of an engine without payload,
/// such as the simulator.
///
/// # Errors
/// See [`EncodeError`]; then the buffer's content is undefined.
pub fn encode_headers(
    buffer: &mut [u8],
    source: IpAddr,
    destination: IpAddr,
    segment: &Segment,
) -> Result<(usize, usize), EncodeError> {
    let total = check(source, destination, segment)?;
    let headers = headers_len(source.is_ipv6(), segment);
    let packet = buffer.get_mut(..headers).ok_or(EncodeError::BufferTooSmall(headers))?;
    write_headers(packet, source, destination, segment);
    // Zeros add nothing to a sum; the payload's length is in the pseudo header.
    write_checksum(packet, source, destination, segment);
    Ok((headers, total))
}

/// Writes the headers without the TCP checksum, for addresses of one family, and returns their length.
fn write_headers(packet: &mut [u8], source: IpAddr, destination: IpAddr, segment: &Segment) -> usize {
    let headers = headers_len(source.is_ipv6(), segment);
    let tcp_len = segment.len() as usize;
    let mut w = Writer::new(packet);
    match (source, destination) {
        (IpAddr::V4(a), IpAddr::V4(b)) => ip::encode_v4(&mut w, a, b, tcp_len),
        (IpAddr::V6(a), IpAddr::V6(b)) => ip::encode_v6(&mut w, a, b, tcp_len),
        _ => unreachable!("the caller checked that"),
    }
    encode_tcp(&mut w, segment);
    debug_assert_eq!(w.position(), headers, "the options take what Segment::options_len counts");
    headers
}

/// Writes the TCP checksum over what is in `packet`; bytes that are missing behind its headers count as zeros.
fn write_checksum(packet: &mut [u8], source: IpAddr, destination: IpAddr, segment: &Segment) {
    let tcp_at = headers_len(source.is_ipv6(), segment) - segment.header_len() as usize;
    let sum = checksum::pseudo_header(source, destination, segment.len()).bytes(&packet[tcp_at..]);
    packet[tcp_at + CHECKSUM_AT..tcp_at + CHECKSUM_AT + 2].copy_from_slice(&sum.finish().to_be_bytes());
}

/// The packet's length, if the segment can be encoded.
fn check(source: IpAddr, destination: IpAddr, segment: &Segment) -> Result<usize, EncodeError> {
    if source.is_ipv4() != destination.is_ipv4() {
        return Err(EncodeError::MixedFamilies);
    }
    let options = segment.options_len();
    if options > MAX_OPTIONS_LEN {
        return Err(EncodeError::TooManyOptions(options));
    }
    // Both families' length fields have 16 bits; IPv4's counts the IP header, too.
    let counted = headers_len(false, segment) - if source.is_ipv6() { ip::IPV4_HEADER_LEN } else { 0 };
    if counted as u64 + u64::from(segment.payload_len) > u64::from(u16::MAX) {
        return Err(EncodeError::PayloadTooLong(segment.payload_len));
    }
    Ok(headers_len(source.is_ipv6(), segment) + segment.payload_len as usize)
}

fn encode_tcp(w: &mut Writer<'_>, segment: &Segment) {
    w.u16(segment.source_port);
    w.u16(segment.destination_port);
    w.u32(segment.seq.0);
    w.u32(segment.ack.0);
    w.u8((segment.header_len() / 4) as u8 * 16);
    w.u8(segment.flags.0);
    w.u16(segment.window);
    w.u32(0); // checksum, filled in later, and urgent pointer
    options::encode(w, segment);
}

/// Decodes a packet and verifies its checksums. Bytes behind the length in its header are ignored.
///
/// # Errors
/// See [`DecodeError`]. Options are never an error: see the crate's notes on unknown and malformed ones.
pub fn decode(packet: &[u8]) -> Result<Packet<'_>, DecodeError> {
    let ip::Header { source, destination, protocol, body } = ip::decode(packet)?;
    if protocol != protocol::TCP {
        return Err(DecodeError::NotTcp(protocol));
    }
    if body.len() < BASE_HEADER_LEN as usize {
        return Err(DecodeError::Truncated);
    }
    let sum = checksum::pseudo_header(source, destination, body.len() as u32).bytes(body);
    if sum.finish() != 0 {
        return Err(DecodeError::TcpChecksum);
    }
    let default_mss = if source.is_ipv4() { DEFAULT_MSS.0 } else { DEFAULT_MSS.1 };
    let (segment, payload) = decode_tcp(body, default_mss)?;
    Ok(Packet { source, destination, segment, payload })
}

fn decode_tcp(body: &[u8], default_mss: u16) -> Result<(Segment, &[u8]), DecodeError> {
    let header_len = usize::from(body[12] >> 4) * 4;
    if header_len < BASE_HEADER_LEN as usize {
        return Err(DecodeError::HeaderLength);
    }
    let (header, payload) = body.split_at_checked(header_len).ok_or(DecodeError::Truncated)?;
    let mut r = Reader::new(header);
    let segment = decode_fixed(&mut r).ok_or(DecodeError::Truncated)?;
    let mut segment = Segment { payload_len: payload.len() as u32, ..segment };
    options::decode(r.remaining(), default_mss, &mut segment);
    Ok((segment, payload))
}

/// The TCP header without options.
fn decode_fixed(r: &mut Reader<'_>) -> Option<Segment> {
    let mut segment = Segment::new(Flags::NONE);
    segment.source_port = r.u16()?;
    segment.destination_port = r.u16()?;
    segment.seq = SeqNumber(r.u32()?);
    segment.ack = SeqNumber(r.u32()?);
    let _data_offset = r.u8()?;
    segment.flags = Flags(r.u8()?);
    segment.window = r.u16()?;
    let _checksum_and_urgent_pointer = r.u32()?;
    Some(segment)
}
