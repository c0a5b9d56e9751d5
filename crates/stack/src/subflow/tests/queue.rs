//! What was given to a subflow and has not left, and the memory that it takes.

use super::{Bed, PACKET};
use crate::subflow::Chunk;
use anabranch_events::SendKind;

/// Linux's record of these segments holds 65 of them: 65 535 bytes less room for headers.
const RECORD: u64 = 65 * 1000;
/// The memory of a record without its payload.
const OVERHEAD: u64 = 256 + 320 + 320;

fn chunk(stream_offset: u64, len: u64) -> Chunk {
    Chunk { stream_offset, len, kind: SendKind::New }
}

/// Memory without the payload, in records.
fn records(bed: &Bed) -> u64 {
    let view = bed.subflow.view(PACKET);
    let overhead = view.memory - view.queued - view.outstanding;
    assert_eq!(overhead % OVERHEAD, 0);
    overhead / OVERHEAD
}

#[test]
fn what_is_queued_lies_in_records_that_are_cut_from_its_beginning() {
    let mut bed = Bed::new(10);
    assert_eq!(bed.subflow.give(chunk(0, 60_000), PACKET), 1);
    // It follows in the stream, fills the first record, and begins another one.
    assert_eq!(bed.subflow.give(chunk(60_000, 5_136), PACKET), 1);
    // It does not follow, so it has a record of its own.
    assert_eq!(bed.subflow.give(chunk(90_000, 10), PACKET), 1);
    assert_eq!(records(&bed), 3);
    // The first record is still there when packets of it have left, until it is empty.
    bed.subflow.take(14_000);
    assert_eq!(records(&bed), 3);
    bed.subflow.take(RECORD - 14_000);
    assert_eq!(records(&bed), 2);
    assert_eq!(bed.subflow.take(1_000).map(|taken| taken.len), Some(136));
    assert_eq!(records(&bed), 1);
    // The next record begins after what has left.
    bed.subflow.take(4);
    assert_eq!(bed.subflow.give(chunk(90_010, RECORD - 10), PACKET), 0);
    assert_eq!(bed.subflow.give(chunk(90_000 + RECORD, 1), PACKET), 1);
    assert_eq!(records(&bed), 2);
    assert_eq!(bed.subflow.take_all().len(), 1);
    assert_eq!((records(&bed), bed.subflow.view(PACKET).queued), (0, 0));
}

/// Options come and go, for example the keys that a client repeats until the server answers with DSS.
#[test]
fn what_is_queued_is_counted_again_when_segments_have_another_size() {
    let mut bed = Bed::new(10);
    assert_eq!(bed.subflow.give(chunk(0, RECORD), PACKET), 1);
    // A record of these segments has 59 x 1100 bytes, so the same bytes need two.
    assert_eq!(bed.subflow.give(chunk(RECORD, 10), 1_100), 0);
    assert_eq!(records(&bed), 2);
    bed.subflow.take(RECORD);
    assert_eq!(records(&bed), 1);
    bed.subflow.take(10);
    assert_eq!(records(&bed), 0);
}
