//! Conversion of sequence numbers to offsets.

use anabranch_segment::{DataSeq, SackBlocks};
use anabranch_units::SeqNumber;

/// A segment that starts this far from the expected number is outside every window that either end could have
/// advertised (RFC 7323 section 2.3).
pub(super) const MAX_WINDOW: u64 = 1 << 30;

/// The offset of a data sequence number, `first` being the number of offset 0; a 32-bit number is resolved near `near`.
pub(super) fn expand(number: DataSeq, first: u64, near: u64) -> u64 {
    if number.wide {
        return number.value.wrapping_sub(first);
    }
    let near_number = first.wrapping_add(near);
    let delta = (number.value as u32).wrapping_sub(near_number as u32) as i32;
    near.wrapping_add_signed(i64::from(delta))
}

/// SACK blocks in offsets, a duplicate one apart (RFC 2883 section 4).
pub(super) struct SackRuns {
    pub blocks: [(u64, u64); SackBlocks::CAPACITY],
    pub count: usize,
    pub duplicate: Option<(u64, u64)>,
}

pub(super) fn sack_runs(sack: &SackBlocks, expand: impl Fn(SeqNumber) -> u64, acked: u64, next: u64) -> SackRuns {
    let mut runs = SackRuns { blocks: [(0, 0); SackBlocks::CAPACITY], count: 0, duplicate: None };
    for (i, block) in sack.as_slice().iter().enumerate() {
        let run = (expand(block.start), expand(block.end));
        if run.0 >= run.1 || run.1 > next {
            continue;
        }
        let within_second = || {
            sack.as_slice().get(1).is_some_and(|second| expand(second.start) <= run.0 && run.1 <= expand(second.end))
        };
        if i == 0 && (run.1 <= acked || within_second()) {
            runs.duplicate = Some(run);
        } else if run.0 >= acked {
            runs.blocks[runs.count] = run;
            runs.count += 1;
        }
    }
    // The latest run comes first in the option; in sequence order, no run seems to follow a later one.
    runs.blocks[..runs.count].sort_unstable();
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_segment::SackBlock;

    #[test]
    fn narrow_numbers_are_taken_near_what_is_expected() {
        let first = u64::MAX - 5;
        for offset in [0u64, 3, 6, 1 << 31, (1 << 32) + 9, 7 << 40] {
            let number = first.wrapping_add(offset);
            assert_eq!(expand(DataSeq { value: number, wide: true }, first, 0), offset);
            let narrow = DataSeq { value: number & 0xffff_ffff, wide: false };
            assert_eq!(expand(narrow, first, offset.saturating_sub(1000)), offset);
            assert_eq!(expand(narrow, first, offset + 1000), offset);
        }
    }

    #[test]
    fn blocks_come_in_sequence_order_and_duplicates_apart() {
        let runs = |blocks: &[(u32, u32)]| {
            let mut sack = SackBlocks::default();
            for &(start, end) in blocks {
                sack.push(SackBlock { start: SeqNumber(start), end: SeqNumber(end) });
            }
            let runs = sack_runs(&sack, |seq| u64::from(seq.0), 100, 1000);
            (runs.blocks[..runs.count].to_vec(), runs.duplicate)
        };
        assert_eq!(runs(&[(500, 600), (200, 300)]), (vec![(200, 300), (500, 600)], None));
        // What was acknowledged before, and what a second block contains, arrived twice (RFC 2883 section 4).
        assert_eq!(runs(&[(50, 60), (200, 300)]), (vec![(200, 300)], Some((50, 60))));
        assert_eq!(runs(&[(220, 240), (200, 300)]), (vec![(200, 300)], Some((220, 240))));
        // Empty runs, or runs beyond the data sent.
        assert_eq!(runs(&[(300, 200), (900, 1001), (150, 160)]), (vec![(150, 160)], None));
    }
}
