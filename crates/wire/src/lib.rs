//! IP, TCP and Multipath TCP headers as bytes, both ways.
//!
//! [`encode`] writes an [`anabranch_segment::Segment`] as a whole IP packet into a buffer of the caller's; [`decode`]
//! reads one. Nothing here allocates for an ordinary segment, and no input makes it panic: what is wrong with
//! a packet from the network is a [`DecodeError`].
//!
//! The options of a segment stand in the order in which Linux writes them: maximum segment size, timestamps (behind
//! SACK-permitted or two NOPs), window scale, SACK blocks, MPTCP. The bytes that they take are just
//! [`anabranch_segment::Segment::options_len`], so that simulated and real packets have the same size.
//!
//! [`capture`] writes packets as a pcapng file, which Wireshark and tshark read.

pub mod capture;
pub mod checksum;
mod ip;
mod mptcp;
mod options;
mod packet;
mod reader;
mod strip;
mod writer;

pub use packet::{DecodeError, EncodeError, Packet, decode, encode, headers_len};
pub use strip::strip_mptcp;
