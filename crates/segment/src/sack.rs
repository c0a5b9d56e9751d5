//! The selective acknowledgment option (RFC 2018).

use anabranch_units::SeqNumber;
use core::fmt;

/// One contiguous run of received bytes: `start` is its first, `end` is the number after its last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First byte of the run.
    pub start: SeqNumber,
    /// One past its last byte.
    pub end: SeqNumber,
}

/// Up to four blocks, kept in place so that an ACK needs no allocation.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [SackBlock; SackBlocks::CAPACITY],
    len: u8,
}

impl SackBlocks {
    /// The maximum number of blocks in a header (without timestamps and MPTCP).
    pub const CAPACITY: usize = 4;

    /// Number of blocks that fit into `space` bytes of options.
    pub const fn fitting(space: u32) -> usize {
        if space < 12 {
            return 0;
        }
        let n = ((space - 4) / 8) as usize;
        if n < Self::CAPACITY { n } else { Self::CAPACITY }
    }

    /// Appends a block; false, and unchanged, if there is no room.
    pub fn push(&mut self, block: SackBlock) -> bool {
        let at = usize::from(self.len);
        if at == Self::CAPACITY {
            return false;
        }
        self.blocks[at] = block;
        self.len += 1;
        true
    }

    /// The blocks in the order of the option.
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Whether there is no block, and so no option.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Encoded bytes, padding included; zero without a block.
    pub const fn encoded_len(&self) -> u32 {
        if self.len == 0 { 0 } else { 4 + 8 * self.len as u32 }
    }
}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}
