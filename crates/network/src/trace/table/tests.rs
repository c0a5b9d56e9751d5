use super::super::{Reading, TraceHints};
use super::*;

fn hints(table: TableHints) -> TraceHints {
    TraceHints { kind: Some(super::super::TraceKind::Columns), table, ..TraceHints::default() }
}

fn in_unit(unit: &str) -> TableHints {
    TableHints { unit: Some(RateUnit::read(unit).unwrap()), ..TableHints::default() }
}

fn read(text: &str, table: TableHints) -> Result<Vec<(u64, u64)>, String> {
    let read = Reading::of(text.as_bytes(), &hints(table)).map_err(|error| error.to_string())?;
    let super::super::RecordedRate::Table(steps) = read.recording.rate else { unreachable!() };
    Ok(steps.iter().map(|(length, rate)| (length.as_millis(), rate.as_bps())).collect())
}

fn error(text: &str, table: TableHints) -> String {
    read(text, table).unwrap_err()
}

fn column(name: &str) -> Option<ColumnName> {
    Some(ColumnName::Name(name.into()))
}

#[test]
fn commas_tabs_blanks_and_semicolons_separate() {
    let expected = Ok(vec![(1000, 80), (1000, 160)]);
    for text in [
        "1,10\r\n2,20\r\n",
        "0\t10\n1\t20",
        "0.0 10.0\n1.0  20",
        "t_s;rate\n7;10\n\n8;20\n",
        "# x\n3, 10\n4, 20",
        "t;rate\n0;10,0\n1,0;20\n",
        "\"t\",\"rate\"\n\"0\",\"10\"\n\"1\",\"20\"\n",
        "t,rate\r0,10\r1,20\r",
    ] {
        assert_eq!(read(text, in_unit("B/s")), expected, "{text:?}");
    }
}

#[test]
fn of_samples_at_one_time_the_last_counts() {
    let samples = read("0 8\n2 9\n2 0\n2 4\n3 7", in_unit("b/s"));
    assert_eq!(samples, Ok(vec![(2000, 8), (1000, 4), (1000, 7)]));
    assert!(error("t,mbps\n5,1\n5,2\n", TableHints::default()).starts_with("all rows have the same time"));
}

#[test]
fn index_columns_are_never_times() {
    let expected = Ok(vec![(1000, 20_000_000), (1000, 22_000_000)]);
    for text in [
        ",t_s,mbps\n0,0.0,20\n1,1.0,22\n",
        "\"\",\"t\",\"mbps\"\n\"1\",0,20\n\"2\",1,22\n",
        "\"t\" \"mbps\"\n\"1\" 0 20\n\"2\" 1 22\n",
        "Unnamed: 0,t_s,mbps\n5,0,20\n5,1,22\n",
        "index,mbps,t_s\n0,20,0\n0,22,1\n",
    ] {
        assert_eq!(read(text, TableHints::default()), expected, "{text:?}");
    }
    assert!(error(",mbps\n0,20\n1,22\n", TableHints::default()).contains("no time column: give an interval"));
    assert!(error(",0\n0,20\n1,22\n", in_unit("Mb/s")).contains("no time column: give an interval"));
}

#[test]
fn columns_are_named_or_known() {
    let text = "t_s,wifi_mbps,lte_kbps\n0,1,5\n1,2,6\n";
    let named = |rate_column| read(text, TableHints { rate_column, ..TableHints::default() });
    assert_eq!(named(column("wifi_mbps")), Ok(vec![(1000, 1_000_000), (1000, 2_000_000)]));
    assert_eq!(named(Some(ColumnName::Number(2))), Ok(vec![(1000, 5_000), (1000, 6_000)]));
    assert_eq!(named(column("2")), Ok(vec![(1000, 5_000), (1000, 6_000)]));
    assert!(
        named(None)
            .unwrap_err()
            .starts_with("several columns may hold the rates: wifi_mbps, lte_kbps; expected the one")
    );
    assert!(named(column("lte_mbps")).unwrap_err().contains("there is no column `lte_mbps`: the headings are `t_s`"));
    assert!(named(Some(ColumnName::Number(3))).unwrap_err().contains("a number from 0 to 2"));
    assert!(named(column("t_s")).unwrap_err().starts_with("no time column"));
    let two = "time,start,mbps\n0,1,1\n1,2,2\n";
    assert!(error(two, TableHints::default()).starts_with("several columns may hold the times: time, start"));
    let time = TableHints { time_column: column("start"), ..TableHints::default() };
    assert!(read(two, time).is_ok());
    assert!(error("x,mbps\n0,1\n", TableHints::default()).starts_with("no time column"));
    assert!(error("t,wifi\n0,1\n", in_unit("Mb/s")).starts_with("no column is known to hold rates"));
    assert!(error("0,1,2\n1,2,3\n", in_unit("Mb/s")).starts_with("several columns may hold the rates: 1, 2"));
    assert!(error("t,rate\n0,1\n", TableHints::default()).contains("the heading `rate` does not"));
}

#[test]
fn rows_may_have_an_interval_instead_of_times() {
    let second = Some(Duration::from_secs(1));
    let table = TableHints { interval: second, ..in_unit("Mb/s") };
    assert_eq!(read("5\n12\n", table.clone()), Ok(vec![(1000, 5_000_000), (1000, 12_000_000)]));
    assert_eq!(
        read("Rate (Mbit/s)\n5\n12\n", TableHints { interval: second, ..TableHints::default() }).unwrap().len(),
        2
    );
    let both = TableHints { time_column: column("0"), ..table.clone() };
    assert!(error("5\n12\n", both).starts_with("both `time_column` and `interval`"));
    assert!(error("5\n", TableHints { interval: Some(Duration::ZERO), ..table }).starts_with("`interval` is zero"));
    let bytes = TableHints { interval: Some(Duration::from_millis(500)), ..in_unit("B per interval") };
    assert_eq!(read("1000\n2000\n", bytes), Ok(vec![(500, 16_000), (500, 32_000)]));
    assert_eq!(read("t,bytes\n0,1000\n2,3000\n", in_unit("B per interval")), Ok(vec![(2000, 4_000), (2000, 12_000)]));
}

#[test]
fn times_are_in_units_since_1970_or_of_iso_8601() {
    let expected = Ok(vec![(1000, 1_000_000), (2000, 2_000_000), (2000, 3_000_000)]);
    for (heading, times) in [
        ("t_s", ["0", "1", "3"]),
        ("time_ms", ["0", "1000", "3e3"]),
        ("ts_us", ["1700000000000000", "1700000001000000", "1700000003000000"]),
        ("timestamp_ns", ["1700000000123456789", "1700000001123456789", "1700000003123456789"]),
        ("timestamp", ["1700000000", "1700000001", "1700000003"]),
        ("timestamp", ["1700000000000", "1700000001000", "1700000003000"]),
        ("Timestamp", ["2026-03-01T00:59:59+01:00", "2026-03-01T00:00:00Z", "2026-03-01T00:00:02Z"]),
        ("Timestamp", ["2024-02-28 23:59:59", "2024-02-29 00:00:00.000", "2024-02-29 00:00:02"]),
        ("time", ["09:59:59", "10:00:00", "10:00:02"]),
    ] {
        let rows: String = times.iter().zip(1..).map(|(time, rate)| format!("{time},{rate}\n")).collect();
        assert_eq!(read(&format!("{heading},mbps\n{rows}"), TableHints::default()), expected, "{heading} {times:?}");
    }
    let ms = TableHints { time_unit: Some(TimeUnit::Milliseconds), ..in_unit("Mb/s") };
    assert_eq!(read("0,1\n1000,2\n3000,3\n", ms), expected);
    let named = |name: &str| TableHints { time_column: column(name), ..TableHints::default() };
    assert_eq!(read("x_ms,mbps\n0,1\n1000,2\n3000,3\n", named("x_ms")), expected);
    let minutes = error("time (min),mbps\n0,1\n", named("time (min)"));
    assert!(minutes.starts_with("column time (min): times in `min` are not read; expected `time_unit`"), "{minutes}");
    assert!(error("t_s (ms),mbps\n0,1\n", TableHints::default()).contains("names several units of times"));
    let mixed = error("time,mbps\n2026-03-01T00:00:00Z,1\n2026-03-01T00:00:01,1\n", TableHints::default());
    assert!(
        mixed
            .starts_with("line 3, column time: \"2026-03-01T00:00:01\" is no such time; expected ISO 8601 with a zone")
    );
}

#[test]
fn times_since_1970_without_a_unit_are_warned_of() {
    let read = |text: &str| Reading::of(text.as_bytes(), &hints(TableHints::default())).unwrap().understood;
    let found = read("timestamp,mbps\n1700000000000,1\n1700000001000,2\n");
    assert!(found.warnings[0].contains("timestamp names no unit: its times are read as ms since 1970"), "{found:?}");
    assert_eq!(found.table.unwrap().times, "ms since 1970");
    assert!(read("timestamp_ms,mbps\n1700000000000,1\n1700000001000,2\n").warnings.is_empty());
    assert!(read("timestamp,mbps\n1700000000,1\n1700000001,2\n").warnings.is_empty());
}

#[test]
fn gaps_hold_are_zero_or_are_refused() {
    let text = "t_s,mbps\n0,20\n1,22\n7201,18\n7202,24\n";
    let with = |gap| TableHints { gap, ..TableHints::default() };
    let held = vec![(1000, 20_000_000), (7_200_000, 22_000_000), (1000, 18_000_000), (1000, 24_000_000)];
    assert_eq!([read(text, with(None)), read(text, with(Some(Gap::Hold)))], [Ok(held.clone()), Ok(held)]);
    let zero = read(text, with(Some(Gap::Zero))).unwrap();
    assert_eq!(zero[1..3], [(1000, 22_000_000), (7_199_000, 0)]);
    assert!(error(text, with(Some(Gap::Error))).starts_with("line 3: a gap of 7200 s follows"));
    let warnings =
        |text: &str| Reading::of(text.as_bytes(), &hints(TableHints::default())).unwrap().understood.warnings;
    assert!(
        warnings(text)[0].starts_with("a gap of 7200 s after line 3, where the usual step is 1 s"),
        "{:?}",
        warnings(text)
    );
    assert!(warnings("t_s,mbps\n0,20\n1,22\n11,18\n12,24\n").is_empty());
    assert_eq!(warnings("t_s,mbps\n0,20\n1,22\n11.1,18\n12.1,24\n").len(), 1);
}

#[test]
fn headings_may_have_several_lines() {
    let text = "\"Time\n(s)\",\"Throughput\n(Mbit/s)\"\n0,1\n1,2\n";
    assert_eq!(read(text, TableHints::default()).unwrap().len(), 2);
    let named = TableHints { rate_column: column("Throughput (Mbit/s)"), ..TableHints::default() };
    assert_eq!(read(text, named), read(text, TableHints::default()));
    let message = error("t,mbps\n0,\"a\nb\"\n", TableHints::default());
    assert!(message.starts_with("line 2, column mbps: \"a b\" is no rate"), "{message}");
}

#[test]
fn errors_name_line_and_column() {
    let number = "expected a finite number that is not negative";
    let error = |text: &str| error(text, in_unit("Mb/s"));
    assert_eq!(error("0,1\n1,fast"), format!("line 2, column 1: \"fast\" is no rate in Mb/s; {number}"));
    assert_eq!(error("t,wifi_mbps,x\n0,1,1\n1,,1"), format!("line 3, column wifi_mbps: empty; {number}"));
    assert_eq!(error("0,1\n1,-3"), format!("line 2, column 1: the rate in Mb/s is -3; {number}"));
    assert_eq!(error("0,1\n1,NaN"), format!("line 2, column 1: the rate in Mb/s is NaN; {number}"));
    assert_eq!(error("t,rate\n0,1\n1,inf"), format!("line 3, column rate: the rate in Mb/s is inf; {number}"));
    assert!(
        error("0,1\n1,1e8")
            .starts_with("line 2, column 1: a rate in Mb/s of 1e8 is impossible; is it in another unit?")
    );
    assert!(
        error("t_s,rate\n1700000000000,1")
            .starts_with("line 2, column t_s: a time in s of 1700000000000 is impossible")
    );
    assert!(error("t,rate\n0,1\n-1,1").starts_with("line 3, column t: the time in s is -1"));
    let back = "line 3, column 0: the time lies before the previous line's; expected ascending times";
    assert_eq!(error("0,1\n5,1\n4,1"), back);
    assert!(error("5,1\n4,1").starts_with("line 2, column 0: the time lies before the first line's"));
    assert!(error("t,rate\n0,1\n,1").starts_with("line 3, column t: empty"));
    assert!(error("time,rate\nx,1").starts_with("line 2, column time: \"x\" is no time in s"));
    assert!(error("t;rate\n0;1,5\n1;1.5").starts_with("line 3, column rate: \"1.5\" is no rate in Mb/s: it has a `.`"));
    assert!(error("").starts_with("no line holds numbers"));
    assert!(error("Date,rate\n46000.5,1\n46001,2\n").starts_with("line 2, column Date: 46000.5 is no date"));
    assert!(error(&",".repeat(20_000)).starts_with("line 1: the line has more than 9999 fields"));
    assert!(error("t,rate\n").starts_with("no line holds numbers"));
}

#[test]
fn units_that_are_said_go_before_those_of_headings_with_a_warning() {
    let reading = Reading::of(b"t_s,mbps\n0,2000\n1,3000\n", &hints(in_unit("kb/s"))).unwrap();
    assert_eq!(reading.recording.mean_rate(), Bandwidth::from_bps(2_500_000));
    assert_eq!(reading.understood.warnings, ["column mbps is read in kb/s, as `unit` says, not in Mb/s"]);
}

#[test]
fn commas_in_quotes_are_not_taken_for_decimal_ones() {
    // A spreadsheet in English writes thousands like this into text that is separated by tabs.
    assert!(
        error("t\trate\n0\t\"1,234\"\n1\t\"2,345\"\n", in_unit("kb/s"))
            .contains("may be a decimal one or one of thousands")
    );
    let expected = Ok(vec![(500, 1_234_000), (500, 2_345_500)]);
    assert_eq!(read("t\trate\n0.0\t\"1,234\"\n0.5\t\"2,345.5\"\n", in_unit("kb/s")), expected);
    assert_eq!(read("t,rate\n0.0,\"1,234\"\n0.5,\"2,345.5\"\n", in_unit("kb/s")), expected);
    assert_eq!(read("t;rate\n0,0;\"1.234\"\n0,5;\"2.345,5\"\n", in_unit("kb/s")), expected);
}
