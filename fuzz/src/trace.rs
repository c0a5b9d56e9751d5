//! Arbitrary bytes as a trace file. What is read can be written as a table, and that reads the same.

use anabranch_network::{Gap, RateUnit, Reading, TableHints, TraceHints, TraceKind};
use anabranch_units::Duration;

/// The first byte says what the caller knows; the others are the file.
fn hints(byte: u8) -> TraceHints {
    let table = TableHints {
        unit: (byte & 1 != 0).then_some(RateUnit::KILOBITS_PER_SECOND),
        interval: (byte & 2 != 0).then_some(Duration::from_millis(500)),
        gap: (byte & 4 != 0).then_some(Gap::Zero),
        ..TableHints::default()
    };
    let suggested = [None, Some(TraceKind::Mahimahi), Some(TraceKind::Columns), Some(TraceKind::Json)];
    TraceHints { suggested: suggested[usize::from(byte >> 3) % 4], table, ..TraceHints::default() }
}

/// Reads the bytes as a trace.
pub fn run(data: &[u8]) {
    let Some((first, file)) = data.split_first() else { return };
    let Ok(read) = Reading::of(file, &hints(*first)) else { return };
    // An opportunity for every packet, or a bucket for every step, of a trace of centuries is refused.
    let Ok(text) = read.recording.write(TraceKind::Columns, Duration::from_secs(1)) else { return };
    let again = Reading::of(text.as_bytes(), &TraceHints::default()).expect("what is written can be read");
    if read.understood.kind != TraceKind::Mahimahi {
        let longer = again.recording.period().as_nanos() - read.recording.period().as_nanos();
        assert!(longer <= 1, "the last step is written as two halves");
    }
}
