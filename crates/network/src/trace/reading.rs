//! Reads a file of any format, and says what was understood of it.

use super::table::{Table, is_value};
use super::text::Text;
use super::{
    AtEnd, Opportunities, RateAndLatency, RecordedNetwork, RecordedRate, TableFormat, TableHints, TraceError, TraceKind,
};
use anabranch_units::Duration;
use anabranch_units::text::{write_rate, write_time};

/// What the caller knows about a file; the rest is recognised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceHints {
    /// Format; recognised where absent.
    pub kind: Option<TraceKind>,
    /// The format that the file's name suggests ([`TraceKind::of_name`]). It decides where the content suits two
    /// formats: a number per line is Mahimahi's or a table of one column.
    pub suggested: Option<TraceKind>,
    /// What is known about a table.
    pub table: TableHints,
    /// What follows the last sample.
    pub at_end: AtEnd,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Its content.
    pub recording: RecordedNetwork,
    /// How it was understood.
    pub understood: Understood,
}

/// How a file was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Understood {
    /// Its format.
    pub kind: TraceKind,
    /// Its encoding.
    pub encoding: &'static str,
    /// Columns, units and more of a table.
    pub table: Option<TableFormat>,
    /// What is legal and probably not meant: sentences without a full stop.
    pub warnings: Vec<String>,
}

/// Mean rates of networks, in bits per second: another one is probably in another unit.
const PLAUSIBLE_MEAN_BPS: std::ops::RangeInclusive<u64> = 1_000..=1_000_000_000_000;

/// Steps of recordings: others are probably in another unit.
const PLAUSIBLE_STEP: std::ops::RangeInclusive<Duration> = Duration::from_micros(1)..=Duration::from_secs(3600);

impl Reading {
    /// Reads a file, in UTF-8 or (with a byte-order mark) in UTF-16, with lines that end in LF, CRLF or CR.
    ///
    /// Errors: those of the formats; not a text; what is said of a table about a file of another format.
    pub fn of(bytes: &[u8], hints: &TraceHints) -> Result<Self, TraceError> {
        let text = Text::of(bytes)?;
        let content = &text.content;
        let looks_like = looks_like(content, hints);
        let kind = hints.kind.unwrap_or(looks_like);
        if kind != TraceKind::Columns && hints.table != TableHints::default() {
            let problem = format!("a trace in the format {} has no unit and no columns", kind.name());
            return Err(TraceError::whole(problem).expecting("the format columns, or neither unit nor columns"));
        }
        let read = match kind {
            TraceKind::Mahimahi => {
                Opportunities::parse(content).map(|trace| (RecordedNetwork::from(trace), None, Vec::new()))
            }
            TraceKind::Columns => Table::of(content, &hints.table, hints.at_end).map(|table| {
                let rate = RecordedRate::Table(table.steps);
                (RecordedNetwork { rate, latency: None }, Some(table.format), table.warnings)
            }),
            TraceKind::Json => RateAndLatency::parse_json(content, hints.at_end)
                .map(|trace| (RecordedNetwork::from(trace), None, Vec::new())),
        };
        let (recording, table, warnings) = read.map_err(|error| suspect(error, (kind, looks_like), hints, content))?;
        let mut understood = Understood { kind, encoding: text.encoding, table, warnings };
        understood.warn_of_the_implausible(&recording);
        Ok(Reading { recording, understood })
    }
}

/// The format that a text has by its first line: JSON begins with a bracket. A number alone is an opportunity of
/// Mahimahi's if the name does not say otherwise, nothing is said of a table, and it is a whole one.
fn looks_like(text: &str, hints: &TraceHints) -> TraceKind {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let Some(first) = lines.next() else { return hints.suggested.unwrap_or(TraceKind::Columns) };
    if first.starts_with(['[', '{']) {
        return TraceKind::Json;
    }
    let single = first.split('#').next().is_some_and(|number| number.trim().parse::<f64>().is_ok());
    let whole = first.bytes().all(|byte| byte.is_ascii_digit());
    match hints.suggested {
        Some(TraceKind::Mahimahi) if single => TraceKind::Mahimahi,
        None if whole && hints.table == TableHints::default() => TraceKind::Mahimahi,
        _ => TraceKind::Columns,
    }
}

/// The error for a text that seems to have another format than the stated one, or may have two.
fn suspect(
    error: TraceError,
    (kind, looks_like): (TraceKind, TraceKind),
    hints: &TraceHints,
    text: &str,
) -> TraceError {
    let numbers_alone =
        || text.lines().take(2).all(|line| is_value(line.trim()) && !line.trim().contains([',', ';', ' ', '\t']));
    if kind != looks_like {
        let expected = format!("the format {}; this looks like {}", kind.name(), looks_like.name());
        return error.expecting(expected);
    }
    let also = match kind {
        _ if hints.kind.is_some() || !numbers_alone() => return error,
        TraceKind::Mahimahi => "or, if these are rates, `interval` (--interval)",
        TraceKind::Columns if error.line.is_none() => {
            "or, if these are Mahimahi's times in milliseconds, the format mahimahi"
        }
        TraceKind::Columns | TraceKind::Json => return error,
    };
    let expected = format!("{}, {also}", error.expected);
    error.expecting(expected)
}

impl Understood {
    fn warn_of_the_implausible(&mut self, recording: &RecordedNetwork) {
        let of = |column: Option<String>, unit: String| match column {
            Some(name) => format!("column {name} in {unit}: "),
            None => String::new(),
        };
        let rates = self.table.as_ref().map(|table| of(Some(table.rate_column.name()), table.unit.name()));
        let mean = recording.mean_rate();
        if !PLAUSIBLE_MEAN_BPS.contains(&mean.as_bps()) {
            let column = rates.unwrap_or_default();
            let mean = write_rate(mean);
            self.warnings
                .push(format!("{column}a mean of {mean} is implausible for a network; is it in another unit?"));
        }
        if let Some(table) = self.table.as_ref().filter(|table| table.rows > 1 && !PLAUSIBLE_STEP.contains(&table.step))
        {
            let column = of(table.time_column.as_ref().map(|column| column.name()), table.times.clone());
            let step = write_time(table.step);
            self.warnings
                .push(format!("{column}a usual step of {step} is implausible; are the times in another unit?"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{ColumnName, RateUnit};

    fn read(text: &str) -> Reading {
        Reading::of(text.as_bytes(), &TraceHints::default()).unwrap()
    }

    fn error(bytes: &[u8], hints: &TraceHints) -> String {
        Reading::of(bytes, hints).unwrap_err().to_string()
    }

    fn named(name: &str) -> TraceHints {
        TraceHints { suggested: TraceKind::of_name(name), ..TraceHints::default() }
    }

    #[test]
    fn formats_are_recognised() {
        let kind =
            |text: &str, hints: &TraceHints| Reading::of(text.as_bytes(), hints).map(|read| read.understood.kind);
        let none = TraceHints::default();
        assert_eq!(kind("0\n5\n", &none), Ok(TraceKind::Mahimahi));
        assert_eq!(kind("\n [\n{\"duration_ms\": 1, \"bandwidth_kbps\": 1}]", &none), Ok(TraceKind::Json));
        assert_eq!(kind("t,mbps\n0,5\n", &none), Ok(TraceKind::Columns));
        assert_eq!(kind("t,mbps\n0,5\n", &named("lte.down")), Ok(TraceKind::Columns));
        assert!(error(b"0\n5\n", &named("lte.csv")).starts_with("no time column: give an interval"));
        assert!(error(b"0\n5\n", &named("lte.csv")).ends_with("the format mahimahi"));
        assert!(error(b"1.5\n2.5\n", &named("lte.up")).starts_with("line 1: \"1.5\" is no time in milliseconds"));
        assert!(error(b"1.5\n2.5\n", &none).starts_with("no time column: give an interval"));
        assert!(error(b"# x\n5\n", &named("lte.up")).starts_with("line 1: \"# x\" is no time in milliseconds"));
        assert!(error(b"5\n4\n", &none).ends_with("if these are rates, `interval` (--interval)"));
    }

    #[test]
    fn byte_order_marks_and_carriage_returns_are_accepted() {
        for text in ["t,mbps\r\n0,5\r\n1,6\r\n", "3\r\n5\r\n", "[{\"duration_ms\": 1,\r\n\"bandwidth_kbps\": 1}]\r\n"] {
            let marked = format!("\u{feff}{text}");
            assert_eq!(read(&marked), read(text));
            assert_eq!(read(text), read(&text.replace('\r', "")));
        }
    }

    #[test]
    fn a_wrong_format_is_reported_with_the_right_one() {
        let hinted = |kind| TraceHints { kind: Some(kind), ..TraceHints::default() };
        let table = TableHints { unit: Some(RateUnit::BYTES_PER_SECOND), ..TableHints::default() };
        let table = TraceHints { table, ..hinted(TraceKind::Columns) };
        assert!(error(b"0,1\n1,2\n", &hinted(TraceKind::Mahimahi)).ends_with("this looks like columns"));
        assert!(error(b"[{}]", &table).ends_with("this looks like json"));
        assert!(error(b"1\n2\n", &hinted(TraceKind::Json)).ends_with("this looks like mahimahi"));
        assert!(error(b"0 1\n", &hinted(TraceKind::Columns)).contains("in which unit"));
        let column = TableHints { rate_column: Some(ColumnName::Number(2)), ..TableHints::default() };
        let column = TraceHints { table: column, ..named("a.up") };
        assert!(error(b"1\n", &column).contains("no columns"));
    }

    #[test]
    fn the_implausible_is_warned_of() {
        let warnings = |text: &str| read(text).understood.warnings;
        let mean = "column rate_bps in b/s: a mean of 20 b/s is implausible for a network; is it in another unit?";
        assert!(warnings("t_s,rate_bps\n0,20\n1,20\n").contains(&mean.to_string()));
        let tera = warnings("t_s,rate_gbps\n0,2000\n1,2000\n");
        assert!(tera[0].starts_with("column rate_gbps in Gb/s: a mean of 2000 Gb/s is implausible"), "{tera:?}");
        let step = warnings("t_ns,mbps\n0,20\n100,20\n200,20\n");
        assert!(step[0].starts_with("column t_ns in ns: a usual step of 100 ns is implausible"), "{step:?}");
        let step = warnings("t_s,mbps\n0,20\n7200,20\n14400,20\n");
        assert!(step[0].starts_with("column t_s in s: a usual step of 7200 s is implausible"), "{step:?}");
        assert_eq!(warnings("t_s,mbps\n0,20\n1,22\n"), [""; 0]);
        let json = r#"[{"duration_ms": 1000, "bandwidth_kbps": 0.5}]"#;
        assert!(warnings(json)[0].starts_with("a mean of 500 b/s is implausible"));
    }

    #[test]
    fn latency_follows_the_rate() {
        let text = r#"[{"duration_ms": 10, "bandwidth_kbps": 1, "latency_ms": 5},
                       {"duration_ms": 10, "bandwidth_kbps": 2, "latency_ms": 6}]"#;
        let cut = read(text).recording.shifted(Duration::from_millis(10)).lasting(Duration::from_millis(15)).unwrap();
        let latency: Vec<_> = cut.latency.unwrap().iter().map(|(l, v)| (l.as_millis(), v.as_millis())).collect();
        assert_eq!(latency, [(10, 6), (5, 5)]);
    }
}
