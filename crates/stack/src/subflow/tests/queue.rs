//! What was given to a subflow and has not left, and the memory that it takes.

use super::{Bed, PACKET};
use crate::subflow::Chunk;
use anabranch_events::SendKind;

/// Linux's record of these segments holds 65 of them: 65 535 bytes less 192 for headers.
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
fn what_follows_joins_the_last_record_until_it_is_full() {
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
    assert_eq!(bed.subflow.take_all().len(), 1);
    assert_eq!((records(&bed), bed.subflow.view(PACKET).queued), (0, 0));
}

#[test]
fn a_record_of_which_a_part_was_sent_takes_no_more_data() {
    let mut bed = Bed::new(10);
    bed.subflow.give(chunk(0, 10_000), PACKET);
    bed.subflow.take(4_000);
    assert_eq!(bed.subflow.give(chunk(10_000, 500), PACKET), 1);
    // The one behind it does.
    assert_eq!(bed.subflow.give(chunk(10_500, 500), PACKET), 0);
    assert_eq!(bed.subflow.take(6_000).map(|taken| taken.len), Some(6_000));
    assert_eq!(bed.subflow.give(chunk(11_000, 500), PACKET), 0);
    assert_eq!(bed.subflow.take(9_999).map(|taken| taken.len), Some(1_500));
}

/// Options come and go, for example the keys that a client repeats until the server answers with DSS.
#[test]
fn a_record_keeps_its_size_when_segments_have_another_one() {
    let mut bed = Bed::new(10);
    assert_eq!(bed.subflow.give(chunk(0, RECORD - 100), PACKET), 1);
    // A record of these segments has 59 x 1100 bytes, which are in the first one already.
    assert_eq!(bed.subflow.give(chunk(RECORD - 100, 10), 1_100), 1);
    assert_eq!(records(&bed), 2);
    bed.subflow.take(RECORD - 100);
    assert_eq!(records(&bed), 1);
}
