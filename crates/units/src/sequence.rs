//! TCP sequence numbers.

use core::fmt;
use core::ops::Add;

/// A TCP sequence number (RFC 9293 section 3.4). It wraps at 2^32, so it has no total order; the endpoint
/// converts it into a 64-bit offset on arrival, with [`SeqNumber::expand`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// The 64-bit offset of this number from `initial`, given that it is within 2^31 of `near`.
    ///
    /// A number before `initial` gives a "negative" offset, which wraps to a huge one and so is outside every window.
    pub fn expand(self, initial: SeqNumber, near: u64) -> u64 {
        let low = self.0.wrapping_sub(initial.0);
        let delta = low.wrapping_sub(near as u32) as i32;
        near.wrapping_add_signed(i64::from(delta))
    }

    /// The number of the byte at `offset` from this initial number.
    pub fn at(self, offset: u64) -> SeqNumber {
        SeqNumber(self.0.wrapping_add(offset as u32))
    }
}

impl Add<u32> for SeqNumber {
    type Output = SeqNumber;
    fn add(self, n: u32) -> SeqNumber {
        SeqNumber(self.0.wrapping_add(n))
    }
}

impl fmt::Display for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_expand_across_the_wrap() {
        let initial = SeqNumber(u32::MAX - 10);
        for offset in [0u64, 5, 11, 12, 1 << 31, (1 << 32) - 1, 1 << 32, (5 << 32) + 77] {
            let seq = initial.at(offset);
            for near in [offset, offset.saturating_sub(1 << 30), offset + (1 << 30)] {
                assert_eq!(seq.expand(initial, near), offset);
            }
        }
    }

    #[test]
    fn a_number_before_the_first_is_beyond_every_window() {
        assert!(SeqNumber(99).expand(SeqNumber(100), 0) > u64::MAX / 2);
    }
}
