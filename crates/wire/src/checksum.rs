//! The Internet checksum (RFC 1071), of TCP and of MPTCP's data sequence mappings.

use crate::protocol::TCP;
use core::net::IpAddr;

/// A running sum of 16-bit big-endian words in one's complement arithmetic.
///
/// Every piece but the last has an even length; an odd last one counts as if a zero byte followed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// Adds bytes.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Sum {
        // 32-bit words may be added in place of 16-bit ones, since 2^16 = 1 modulo 2^16 - 1. The sum of a whole
        // IP packet (at most 2^14 words below 2^32) cannot overflow 64 bits, nor can that of a million such packets.
        let words = bytes.chunks_exact(4);
        let rest = words.remainder();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        let sum: u64 = words.map(|w| u64::from(u32::from_be_bytes([w[0], w[1], w[2], w[3]]))).sum();
        Sum(self.0 + sum + u64::from(u32::from_be_bytes(last)))
    }

    /// Adds one 16-bit word.
    #[must_use]
    pub fn word(self, word: u16) -> Sum {
        Sum(self.0 + u64::from(word))
    }

    /// The checksum: the complement of the folded sum.
    #[must_use]
    pub fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        !(sum as u16)
    }
}

/// The sum of TCP's pseudo-header over IPv4 (RFC 9293 section 3.1) or IPv6 (RFC 8200 section 8.1).
/// `len` counts the TCP header and the payload.
pub(crate) fn pseudo_header(source: IpAddr, destination: IpAddr, len: u32) -> Sum {
    pseudo_header_of(TCP, source, destination, len)
}

/// The same for another protocol.
pub(crate) fn pseudo_header_of(protocol: u8, source: IpAddr, destination: IpAddr, len: u32) -> Sum {
    let sum = Sum::default().word(u16::from(protocol)).bytes(&len.to_be_bytes());
    match (source, destination) {
        (IpAddr::V4(a), IpAddr::V4(b)) => sum.bytes(&a.octets()).bytes(&b.octets()),
        (IpAddr::V6(a), IpAddr::V6(b)) => sum.bytes(&a.octets()).bytes(&b.octets()),
        _ => unreachable!("callers have checked that both addresses are of one family"),
    }
}

/// The checksum of a data sequence mapping (RFC 8684 section 3.3.1): over a pseudo-header with the *whole* data
/// sequence number, whatever width is encoded, and the mapped payload. A DATA_FIN counts in `len` but has no payload.
#[must_use]
pub fn mapping(dsn: u64, subflow_offset: u32, len: u16, payload: &[u8]) -> u16 {
    let header = Sum::default().bytes(&dsn.to_be_bytes()).bytes(&subflow_offset.to_be_bytes()).word(len);
    header.bytes(payload).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Word by word with end-around carry, as in the definition.
    fn naive(bytes: &[u8]) -> u16 {
        let mut sum: u16 = 0;
        for pair in bytes.chunks(2) {
            let word = u16::from(pair[0]) << 8 | u16::from(*pair.get(1).unwrap_or(&0));
            let (next, carry) = sum.overflowing_add(word);
            sum = next + u16::from(carry);
        }
        !sum
    }

    #[test]
    fn the_example_of_rfc_1071() {
        let sum = Sum::default().bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.finish(), !0xddf2);
    }

    #[test]
    fn a_mapping_covers_its_pseudo_header() {
        let mut bytes = vec![1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 9, 0, 3, 0, 0];
        bytes.extend([0xaa, 0xbb, 0xcc]);
        assert_eq!(mapping(0x0102_0304_0506_0708, 9, 3, &[0xaa, 0xbb, 0xcc]), naive(&bytes));
    }

    proptest! {
        #[test]
        fn equals_the_definition(bytes in prop::collection::vec(any::<u8>(), 0..3000), split in 0usize..1500) {
            prop_assert_eq!(Sum::default().bytes(&bytes).finish(), naive(&bytes));
            let (a, b) = bytes.split_at((split * 2).min(bytes.len()));
            prop_assert_eq!(Sum::default().bytes(a).bytes(b).finish(), naive(&bytes));
        }
    }
}
