//! Recordings written in another format and read again.

use anabranch_network::{
    AtEnd, RateUnit, Reading, RecordedNetwork, RecordedRate, Steps, Summary, TableHints, TraceHints, TraceKind,
};
use anabranch_units::{Bandwidth, Duration};
use proptest::collection::vec;
use proptest::prelude::*;

const BUCKET: Duration = Duration::from_millis(100);

/// 1500 bytes in bits, the size of an opportunity.
const PACKET_BITS: f64 = 12_000.0;

fn table() -> impl Strategy<Value = RecordedNetwork> {
    let length = prop_oneof![1u64..5_000_000_000, (1u64..5000).prop_map(|ms| ms * 1_000_000)];
    let rate = prop_oneof![Just(0), 0u64..100_000, 0u64..20_000_000];
    vec((length, rate), 1..12).prop_map(|steps| {
        let steps = steps.into_iter().map(|(ns, bps)| (Duration::from_nanos(ns), Bandwidth::from_bps(bps)));
        let rate = RecordedRate::Table(Steps::new(steps, AtEnd::Loop).unwrap());
        RecordedNetwork { rate, latency: None }
    })
}

fn opportunities() -> impl Strategy<Value = RecordedNetwork> {
    vec(prop_oneof![Just(0u32), 1u32..20, 1u32..500], 1..300).prop_map(|gaps| {
        let times = gaps.iter().scan(1, |at, gap| {
            *at += gap;
            Some(format!("{at}\n"))
        });
        read(&times.collect::<String>())
    })
}

fn read(text: &str) -> RecordedNetwork {
    Reading::of(text.as_bytes(), &TraceHints::default()).unwrap_or_else(|error| panic!("{error}\n{text}")).recording
}

fn rewritten(recording: &RecordedNetwork, kind: TraceKind) -> RecordedNetwork {
    read(&recording.write(kind, BUCKET).unwrap())
}

/// Bits that a full link has moved after this time, and at its end.
fn moved_bits(recording: &RecordedNetwork, until: Duration) -> f64 {
    match &recording.rate {
        RecordedRate::Table(steps) => {
            let part = steps.lasting(until).unwrap();
            part.iter().map(|(length, rate)| length.as_secs_f64() * rate.as_bps() as f64).sum()
        }
        RecordedRate::Opportunities(trace) => {
            trace.lasting(until).map_or(0.0, |part| part.mean_rate().as_bps() as f64 * until.as_secs_f64())
        }
    }
}

/// Texts that are nearly traces.
fn scribble() -> impl Strategy<Value = Vec<u8>> {
    const WORDS: [&str; 24] = [
        "0",
        "1",
        "7",
        "42",
        "1000",
        "9000000000",
        "1e9",
        "1e300",
        "-3",
        ".5",
        "NaN",
        ",",
        ";",
        "\t",
        " ",
        "\n",
        "\r\n",
        "#",
        "[",
        "]",
        "{\"duration_ms\": 5, \"bandwidth_kbps\": 7}",
        "t,mbps\n",
        "\u{feff}",
        "\u{1f}",
    ];
    vec(proptest::sample::select(WORDS.to_vec()), 0..40).prop_map(|words| words.concat().into_bytes())
}

proptest! {
    #[test]
    fn whatever_a_file_holds_it_is_read_or_refused(bytes in prop_oneof![scribble(), vec(any::<u8>(), 0..60)], kind in 0usize..4) {
        let kind = TraceKind::NAMES.get(kind).map(|(_, kind)| *kind);
        let unit = (kind == Some(TraceKind::Columns)).then_some(RateUnit::KILOBITS_PER_SECOND);
        let table = TableHints { unit, ..TableHints::default() };
        let Ok(Reading { recording, .. }) = Reading::of(&bytes, &TraceHints { kind, table, ..TraceHints::default() }) else { return Ok(()) };
        if let Ok(summary) = Summary::of(&recording) {
            prop_assert!(summary.variation.is_finite() && (0.0..=1.0).contains(&summary.outage_share));
            prop_assert!(summary.autocorrelation(1).is_none_or(|r| (-1.000_001..=1.000_001).contains(&r)));
        }
        let part = recording.shifted(Duration::from_millis(1500)).lasting(Duration::from_millis(2500));
        for recording in [Ok(recording), part].into_iter().flatten() {
            for (_, kind) in TraceKind::NAMES {
                if let Ok(text) = recording.write(kind, BUCKET) {
                    read(&text);
                }
            }
        }
    }

    #[test]
    fn tables_and_lists_keep_every_bit(recording in table()) {
        let RecordedRate::Table(steps) = &recording.rate else { unreachable!() };
        for kind in [TraceKind::Columns, TraceKind::Json] {
            let again = rewritten(&recording, kind);
            let RecordedRate::Table(read) = &again.rate else { panic!("{again:?}") };
            // A table writes its last step as two equal halves.
            prop_assert!(read.period().as_nanos() - steps.period().as_nanos() <= 1);
            for part in 0..50u64 {
                let at = Duration::from_nanos((u128::from(steps.period().as_nanos()) * u128::from(part) / 50) as u64);
                prop_assert_eq!(read.value_at(at), steps.value_at(at));
            }
        }
    }

    #[test]
    fn a_table_as_opportunities_is_at_most_a_packet_away(recording in table()) {
        prop_assume!(moved_bits(&recording, recording.period()) > 0.0);
        let again = rewritten(&recording, TraceKind::Mahimahi);
        // An opportunity stands at the next whole millisecond.
        let late = again.period() - recording.period();
        prop_assert!(late < Duration::from_millis(1));
        for part in 1..=20u64 {
            let at = Duration::from_nanos(recording.period().as_nanos() * part / 20);
            let earlier = moved_bits(&recording, Duration::from_nanos(at.as_nanos().saturating_sub(1_000_000).max(1)));
            let (table, packets) = (moved_bits(&recording, at), moved_bits(&again, at));
            // Means of rates are whole bits per second, so a bit per second may be missing.
            let rounding = 1.0 + at.as_secs_f64();
            prop_assert!(packets <= table + PACKET_BITS + rounding, "{part}: {packets} {table}");
            prop_assert!(packets + PACKET_BITS + rounding >= earlier, "{part}: {packets} {earlier}");
        }
    }

    #[test]
    fn opportunities_as_a_table_are_at_most_a_bucket_away(recording in opportunities()) {
        let table = rewritten(&recording, TraceKind::Columns);
        prop_assert_eq!(table.period(), recording.period());
        let (all, written) = (moved_bits(&recording, recording.period()), moved_bits(&table, recording.period()));
        prop_assert!((all - written).abs() <= 2.0 + 2.0 * recording.period().as_secs_f64(), "{} {}", all, written);
        let back = rewritten(&table, TraceKind::Mahimahi);
        let count = |recording: &RecordedNetwork| recording.write(TraceKind::Mahimahi, BUCKET).unwrap().lines().count();
        prop_assert!(count(&back).abs_diff(count(&recording)) <= 1, "{} {}", count(&back), count(&recording));
        // Nothing moves by more than the bucket in which it is.
        for part in 1..10u64 {
            let at = Duration::from_nanos(recording.period().as_nanos() * part / 10);
            let [before, after] = [at.as_nanos().saturating_sub(101_000_000).max(1), at.as_nanos() + 101_000_000]
                .map(|at| moved_bits(&recording, Duration::from_nanos(at)));
            let moved = moved_bits(&back, at);
            prop_assert!((before - PACKET_BITS - 9.0..=after + PACKET_BITS + 9.0).contains(&moved), "{before} {moved} {after}");
        }
    }

    #[test]
    fn offsets_add_up_and_a_whole_turn_changes_nothing(recording in prop_oneof![table(), opportunities()], a in 0u64..9_000_000_000, b in 0u64..9_000_000_000) {
        let by = Duration::from_nanos;
        let [twice, once] = [recording.shifted(by(a)).shifted(by(b)), recording.shifted(by(a + b))];
        prop_assert_eq!(once.period(), recording.period());
        for ns in [0u64, 1, 999, 1_000_000_000] {
            let length = by(recording.period().as_nanos() / 3 + ns + 1);
            prop_assert!((moved_bits(&twice, length) - moved_bits(&once, length)).abs() < 12_001.0);
        }
        let turned = recording.shifted(recording.period());
        prop_assert_eq!(moved_bits(&turned, recording.period()), moved_bits(&recording, recording.period()));
    }
}
