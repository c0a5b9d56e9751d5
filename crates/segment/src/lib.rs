//! Typed TCP and Multipath TCP segments.
//!
//! A [`Segment`] holds header fields and options as values, and the *length* of the payload. It never holds payload
//! bytes: the host stores those, indexed by stream offset (see `anabranch-stack`). The simulator carries segments as
//! they are; `anabranch-wire` converts them to bytes and back. Sizes agree in simulation and live, because
//! [`Segment::header_len`] counts the options as they are encoded.

mod mptcp;
mod sack;

pub use mptcp::{CapableFlags, DataSeq, Dss, Mapping, MptcpOption, MptcpOptions, RemovedAddresses, ResetReason};
pub use sack::{SackBlock, SackBlocks};

use anabranch_units::SeqNumber;
use core::fmt;
use core::ops::BitOr;

/// The maximum length of TCP options in bytes (RFC 9293 section 3.1: the data offset counts 15 words).
pub const MAX_OPTIONS_LEN: u32 = 40;

/// A TCP header without options.
pub const BASE_HEADER_LEN: u32 = 20;

/// The encoded length of the timestamps option, padded as Linux pads it.
pub const TIMESTAMPS_LEN: u32 = 12;

/// TCP header flags (RFC 9293 section 3.1).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// No flag set.
    pub const NONE: Flags = Flags(0);
    /// The sender has finished sending.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x04);
    /// Push: the receiver should pass the data to the application.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgment number is meaningful.
    pub const ACK: Flags = Flags(0x10);
    /// The urgent pointer is valid; decoded, never used.
    pub const URG: Flags = Flags(0x20);
    /// ECN echo.
    pub const ECE: Flags = Flags(0x40);
    /// Congestion window reduced.
    pub const CWR: Flags = Flags(0x80);

    /// Whether every flag of `other` is set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
        let set = names.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0);
        let set: Vec<_> = set.map(|(_, name)| *name).collect();
        write!(f, "{}", set.join("|"))
    }
}

/// The timestamps option (RFC 7323 section 3), in milliseconds of the sender's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(Rust, packed(2))]
pub struct Timestamps {
    /// The sender's clock when this segment was sent.
    pub value: u32,
    /// The peer's value that this segment echoes.
    pub echo: u32,
}

/// Options that only a SYN carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynOptions {
    /// The largest payload (with options counted in, RFC 9293 section 3.7.1) that the sender can receive.
    pub mss: u16,
    /// The shift of later window fields (RFC 7323 section 2); `None` without window scaling.
    pub window_scale: Option<u8>,
    /// Whether the sender supports selective acknowledgments.
    pub sack_permitted: bool,
}

/// One TCP segment, MPTCP options included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The number of the first byte of payload (of the SYN or FIN where there is none).
    pub seq: SeqNumber,
    /// The next number that the sender expects; meaningless without [`Flags::ACK`].
    pub ack: SeqNumber,
    /// Header flags.
    pub flags: Flags,
    /// The window field of the header, not yet scaled.
    pub window: u16,
    /// Bytes of payload.
    pub payload_len: u32,
    /// The timestamps option; `None` if it was not negotiated.
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgment blocks.
    pub sack: SackBlocks,
    /// Options of a SYN; `None` on other segments.
    pub syn: Option<SynOptions>,
    /// The DSS option, which almost every segment carries.
    pub dss: Option<Dss>,
    /// All other MPTCP options; empty, and so without allocation, on almost every segment.
    pub mptcp: MptcpOptions,
}

impl Segment {
    /// A segment with the given flags and nothing else.
    pub fn new(flags: Flags) -> Self {
        Segment {
            source_port: 0,
            destination_port: 0,
            seq: SeqNumber(0),
            ack: SeqNumber(0),
            flags,
            window: 0,
            payload_len: 0,
            timestamps: None,
            sack: SackBlocks::default(),
            syn: None,
            dss: None,
            mptcp: MptcpOptions::NONE,
        }
    }

    /// Sequence space that the segment occupies: payload, and one each for SYN and FIN.
    pub fn sequence_len(&self) -> u32 {
        let syn = u32::from(self.flags.contains(Flags::SYN));
        let fin = u32::from(self.flags.contains(Flags::FIN));
        self.payload_len + syn + fin
    }

    /// Bytes of TCP options as `anabranch-wire` encodes them: each option padded to whole words, like Linux.
    #[inline]
    pub fn options_len(&self) -> u32 {
        let mut len = self.sack.encoded_len();
        if let Some(syn) = &self.syn {
            len += 4; // maximum segment size
            if syn.window_scale.is_some() {
                len += 4;
            }
            // SACK-permitted takes the place of the timestamps' padding where both are present.
            if syn.sack_permitted && self.timestamps.is_none() {
                len += 4;
            }
        }
        if self.timestamps.is_some() {
            len += TIMESTAMPS_LEN;
        }
        if let Some(dss) = &self.dss {
            len += dss.encoded_len();
        }
        for option in &self.mptcp {
            len += option.encoded_len();
        }
        len
    }

    /// Bytes of TCP header, options included.
    #[inline]
    pub fn header_len(&self) -> u32 {
        BASE_HEADER_LEN + self.options_len()
    }

    /// Bytes of TCP header and payload: the packet's size without the IP header.
    #[inline]
    pub fn len(&self) -> u32 {
        self.header_len() + self.payload_len
    }

    /// Never: a segment has at least a header.
    pub fn is_empty(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_small_enough_to_be_copied_without_a_call() {
        // A packet of the simulator adds 16 bytes, and up to 128 bytes are copied in place.
        assert!(size_of::<Segment>() <= 112, "{} bytes", size_of::<Segment>());
    }

    #[test]
    fn a_list_whose_last_option_was_taken_equals_an_empty_one() {
        let mut options = MptcpOptions::NONE;
        options.push(MptcpOption::Priority { backup: true });
        assert_eq!(options, [MptcpOption::Priority { backup: true }]);
        assert_eq!((options.pop(), options.pop()), (Some(MptcpOption::Priority { backup: true }), None));
        assert_eq!((options.is_empty(), options), (true, MptcpOptions::NONE));
        assert_eq!(MptcpOptions::from([]), MptcpOptions::NONE);
    }
}
