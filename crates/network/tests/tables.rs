//! Tables in every dialect and unit, written by this test and read back.

use anabranch_network::{ColumnName, RateUnit, Reading, RecordedRate, TableHints, TraceHints};
use anabranch_units::{Bandwidth, Duration};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// A unit of rates: its spellings in headings, and how many bits per second it is.
const RATES: [(&[&str], f64); 13] = [
    (&["bps", "rate_bps", "Rate (bit/s)", "bits_per_second"], 1.0),
    (&["kbps", "wifi_kbps", "Throughput [kbit/s]", "rateKbps"], 1e3),
    (&["mbps", "Throughput (Mbit/s)", "lte Mb/s", "megabits per second"], 1e6),
    (&["gbps", "rate_gbps", "Gbit/s"], 1e9),
    (&["Bps", "bytes/s", "rate (B/s)", "bytes_per_s"], 8.0),
    (&["kBps", "KB/s", "kilobytes_per_second"], 8e3),
    (&["bandwidth_MBps", "MB/s", "MBytes/sec"], 8e6),
    (&["GB/s"], 8e9),
    (&["Kib/s", "Kibit/s"], 1024.0),
    (&["Mib/s"], 1_048_576.0),
    (&["KiB/s"], 8192.0),
    (&["MiB/s", "MiBps"], 8_388_608.0),
    (&["B per interval", "bytes_per_interval"], 8.0),
];

/// A unit of times: its spellings, and its nanoseconds.
const TIMES: [(&[&str], u64); 4] = [
    (&["t_s", "time (s)", "seconds", "Time", "timestamp"], 1_000_000_000),
    (&["time_ms", "Timestamp (ms)", "ms"], 1_000_000),
    (&["ts_us", "time [µs]"], 1_000),
    (&["t_ns", "timestamp_ns"], 1),
];

/// Columns in front: none, pandas' index without a name, R's names of rows, a named one that means nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Front {
    Nothing,
    Index,
    RowNames,
    Unused,
}

#[derive(Clone, Debug)]
struct Dialect {
    separator: &'static str,
    decimal: char,
    quoted: bool,
    end_of_line: &'static str,
    encoding: usize,
    front: Front,
    behind: bool,
    rate_first: bool,
    last_end: bool,
}

#[derive(Clone, Debug)]
struct Written {
    dialect: Dialect,
    /// Tenths of a unit from row to row, and hundredths of a unit of rate.
    rows: Vec<(u64, u64)>,
    begin: u64,
    time: (&'static str, u64),
    rate: (&'static str, f64),
}

fn dialect() -> impl Strategy<Value = Dialect> {
    let separators =
        select(vec![(",", '.'), (";", '.'), (";", ','), ("\t", '.'), ("\t", ','), (" ", '.'), ("   ", ',')]);
    let fronts = select(vec![Front::Nothing, Front::Index, Front::RowNames, Front::Unused]);
    let ends = select(vec!["\n", "\r\n", "\r"]);
    (separators, any::<bool>(), ends, 0usize..4, fronts, any::<[bool; 3]>()).prop_map(
        |((separator, decimal), quoted, end_of_line, encoding, front, [behind, rate_first, last_end])| {
            // Blanks separate unless they are in quotes, and an empty field between them needs quotes.
            let quoted = quoted || separator.starts_with(' ');
            Dialect { separator, decimal, quoted, end_of_line, encoding, front, behind, rate_first, last_end }
        },
    )
}

fn written() -> impl Strategy<Value = Written> {
    let pick =
        |(names, unit): (&'static [&'static str], u64)| select(names.to_vec()).prop_map(move |name| (name, unit));
    let time = select(TIMES.to_vec()).prop_flat_map(pick);
    let rate =
        select(RATES.to_vec()).prop_flat_map(|(names, unit)| select(names.to_vec()).prop_map(move |name| (name, unit)));
    (dialect(), vec((1u64..60, 0u64..90_000), 2..30), 0u64..5_000, time, rate)
        .prop_map(|(dialect, rows, begin, time, rate)| Written { dialect, rows, begin, time, rate })
}

impl Dialect {
    fn number(&self, value: u64, digits: usize) -> String {
        let unit = 10u64.pow(digits as u32);
        match value % unit {
            0 => (value / unit).to_string(),
            rest => format!("{}{}{rest:0digits$}", value / unit, self.decimal),
        }
    }

    fn line(&self, fields: &[String]) -> String {
        let quote = |field: &String| if self.quoted { format!("\"{field}\"") } else { field.clone() };
        fields.iter().map(quote).collect::<Vec<_>>().join(self.separator)
    }

    fn encoded(&self, text: &str) -> Vec<u8> {
        let units = || "\u{feff}".encode_utf16().chain(text.encode_utf16());
        match self.encoding {
            0 => text.as_bytes().to_vec(),
            1 => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
            2 => units().flat_map(u16::to_le_bytes).collect(),
            _ => units().flat_map(u16::to_be_bytes).collect(),
        }
    }
}

impl Written {
    /// The times of the rows in tenths of a unit. Nanoseconds are whole.
    fn times(&self) -> Vec<u64> {
        let tenths = if self.time.1 == 1 { 10 } else { 1 };
        let mut at = self.begin * tenths;
        let mut times = Vec::new();
        for (step, _) in &self.rows {
            times.push(at);
            at += step * tenths;
        }
        times
    }

    fn text(&self) -> String {
        let dialect = &self.dialect;
        let pair = |time: String, rate: String| if dialect.rate_first { [rate, time] } else { [time, rate] };
        let behind = |text: &str| dialect.behind.then(|| text.to_string());
        let front = |row: usize| match dialect.front {
            Front::Nothing => None,
            Front::Index => Some(row.to_string()),
            Front::RowNames => Some((row + 1).to_string()),
            Front::Unused => Some("7".to_string()),
        };
        let heading = match dialect.front {
            Front::Nothing | Front::RowNames => None,
            Front::Index => Some(String::new()),
            Front::Unused => Some("rsrp".to_string()),
        };
        let fields = |front: Option<String>, pair: [String; 2], behind: Option<String>| -> Vec<String> {
            front.into_iter().chain(pair).chain(behind).collect()
        };
        let names = fields(heading, pair(self.time.0.into(), self.rate.0.into()), behind("note"));
        let mut lines = vec![dialect.line(&names)];
        for (row, (at, (_, rate))) in self.times().into_iter().zip(&self.rows).enumerate() {
            let pair = pair(dialect.number(at, 1), dialect.number(*rate, 2));
            lines.push(dialect.line(&fields(front(row), pair, behind(if row % 3 == 0 { "" } else { "x" }))));
        }
        let end = if dialect.last_end { dialect.end_of_line } else { "" };
        lines.join(dialect.end_of_line) + end
    }

    /// Lengths in nanoseconds and rates in bits per second.
    fn expected(&self) -> Vec<(u64, u64)> {
        let times: Vec<u64> = self.times().iter().map(|at| at * self.time.1 / 10).collect();
        let mut lengths: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        lengths.push(*lengths.last().expect("there are two rows"));
        let per_interval = self.rate.0.contains("interval");
        let rate = |hundredths: u64, length: u64| {
            let seconds = if per_interval { Duration::from_nanos(length).as_secs_f64() } else { 1.0 };
            (hundredths as f64 / 100.0 * self.rate.1 / seconds + 0.5) as u64
        };
        lengths.iter().zip(&self.rows).map(|(length, (_, value))| (*length, rate(*value, *length))).collect()
    }
}

fn read(bytes: &[u8], table: TableHints) -> Result<Vec<(u64, u64)>, String> {
    let hints = TraceHints { table, ..TraceHints::default() };
    let reading = Reading::of(bytes, &hints).map_err(|error| error.to_string())?;
    let RecordedRate::Table(steps) = reading.recording.rate else { return Err("no table".into()) };
    Ok(steps.iter().map(|(length, rate)| (length.as_nanos(), rate.as_bps())).collect())
}

/// Rates as floating-point numbers may be a bit per second, or the last digit, apart.
fn same(a: &[(u64, u64)], b: &[(u64, u64)]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && a.1.abs_diff(b.1) <= 1 + (a.1 >> 50))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn tables_of_every_dialect_and_unit_are_read_back(written in written()) {
        // Names of rows begin at 1, so blanks and quotes make no difference.
        let text = written.text();
        let found = read(&written.dialect.encoded(&text), TableHints::default());
        let expected = written.expected();
        prop_assert!(found.as_ref().is_ok_and(|found| same(found, &expected)), "{:?}\n{:?}\n{}", found, expected, text);
    }

    #[test]
    fn columns_that_are_named_are_those_that_are_known(written in written()) {
        let named = |name: &str| Some(ColumnName::Name(name.to_string()));
        let table = TableHints { time_column: named(written.time.0), rate_column: named(written.rate.0), ..TableHints::default() };
        let text = written.text();
        prop_assert_eq!(read(text.as_bytes(), table), read(text.as_bytes(), TableHints::default()));
    }

    #[test]
    fn a_field_that_is_lost_or_moved_is_an_error_with_its_line(written in written(), row in any::<prop::sample::Index>()) {
        let text = written.text();
        let mut lines: Vec<&str> = text.split(written.dialect.end_of_line).filter(|line| !line.is_empty()).collect();
        let row = 1 + row.index(lines.len() - 1);
        let cut = lines[row].rsplit_once(written.dialect.separator.chars().next().unwrap()).unwrap().0.trim_end();
        lines[row] = cut;
        // The first row shows how many fields there are where R wrote names of rows.
        prop_assume!(row > 1 || written.dialect.front != Front::RowNames);
        let error = read(lines.join("\n").as_bytes(), TableHints::default()).unwrap_err();
        let place = format!("line {}: ", row + 1);
        prop_assert!(error.starts_with(&place) || row == 1, "{}\n{}", error, lines.join("\n"));
    }

    #[test]
    fn a_rate_that_is_empty_or_no_number_is_an_error_with_line_and_column(written in written(), row in any::<prop::sample::Index>(), what in select(vec!["", "NaN", "inf", "-1", "NA", "x"])) {
        let mut plain = written;
        plain.dialect = Dialect { separator: ";", quoted: false, encoding: 0, end_of_line: "\n", front: Front::Nothing, behind: false, rate_first: false, ..plain.dialect };
        let text = plain.text();
        let row = 1 + row.index(plain.rows.len());
        let changed: Vec<String> = text.lines().enumerate().map(|(at, line)| {
            if at == row { format!("{};{what}", line.split(';').next().unwrap()) } else { line.to_string() }
        }).collect();
        let error = read(changed.join("\n").as_bytes(), TableHints::default()).unwrap_err();
        let place = format!("line {}, column {}: ", row + 1, plain.rate.0);
        prop_assert!(error.starts_with(&place), "{}", error);
    }
}

#[test]
fn a_rate_of_a_table_is_that_of_its_unit() {
    let mean = |unit: &str| {
        let table = TableHints { unit: RateUnit::read(unit).ok(), ..TableHints::default() };
        let reading = Reading::of(b"0,2\n1,2\n", &TraceHints { table, ..TraceHints::default() }).unwrap();
        reading.recording.mean_rate()
    };
    assert_eq!([mean("MB/s"), mean("Mb/s"), mean("KiB/s")], [16_000_000, 2_000_000, 16_384].map(Bandwidth::from_bps));
}
