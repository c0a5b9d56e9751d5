//! Encoding and decoding of IP, TCP and Multipath TCP headers.
//!
//! [`encode`] writes an [`anabranch_segment::Segment`] as a whole IP packet into a buffer of the caller's; [`decode`]
//! decodes one, [`encode_headers`] writes one without its payload, and [`encode_unsummed`] leaves the checksum to the
//! kernel. Nothing here allocates for an ordinary segment, and no input causes a panic: a fault in a packet from the
//! network is a [`DecodeError`].
//!
//! The options of a segment are encoded in Linux's order: maximum segment size, timestamps (behind SACK-permitted or
//! two NOPs), window scale, SACK blocks, MPTCP. Their length is exactly [`anabranch_segment::Segment::options_len`], so
//! that simulated and real packets have the same size.
//!
//! [`capture`] writes packets as a pcapng file, which Wireshark and tshark read.

pub mod capture;
pub mod checksum;
mod ip;
mod mptcp;
mod options;
mod packet;
mod protocol;
mod reader;
mod strip;
mod too_big;
mod writer;

pub use packet::{
    CHECKSUM_AT, DecodeError, EncodeError, Packet, decode, encode, encode_headers, encode_unsummed, headers_len,
};
pub use strip::strip_mptcp;
pub use too_big::{TooBigReport, decode_too_big};
