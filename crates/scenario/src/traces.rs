//! Trace files as such: what characterises them, other formats, parts, and synthetic ones.
//!
//! What the command line says about a file comes as text and is read here by the rules of scenarios.

use crate::error::Error;
use anabranch_network::{
    AtEnd, Column, ColumnName, Gap, Gaps, OUTAGE_SHARE_OF_MEAN, RateUnit, Reading, RecordedRate, SYNTHETIC_KINDS,
    Streams, Summary, TableFormat, TableHints, TimeUnit, TraceError, TraceHints, TraceKind,
};
use anabranch_units::text::{Problem, read_rate, read_time, write_time};
use anabranch_units::{Duration, nearest};
use serde::Serialize;
use std::collections::BTreeMap;

/// The version of [`TraceInfo`].
const SCHEMA: u32 = 1;

/// The quantiles that are reported, in percent.
const PERCENTILES: [u32; 7] = [5, 10, 25, 50, 75, 90, 95];

/// The distances in seconds at which the autocorrelation is reported.
const LAGS: [usize; 3] = [1, 5, 20];

/// A link that sends nothing at first for longer is worth a warning: connections are given up sooner.
const LONG_WAIT: Duration = Duration::from_secs(10);

/// A file, and what is known about it.
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceFile<'a> {
    /// Its name, for messages; its ending counts where the content suits two formats.
    pub name: &'a str,
    /// What it holds.
    pub content: &'a [u8],
    /// The name of its format; recognised where absent.
    pub format: Option<&'a str>,
    /// The unit of a table's rates; that of its heading where absent.
    pub unit: Option<&'a str>,
    /// The column of a table's rates: its heading, or its number counted from zero.
    pub rate_column: Option<&'a str>,
    /// The column of a table's times, likewise.
    pub time_column: Option<&'a str>,
    /// The unit of a table's times.
    pub time_unit: Option<&'a str>,
    /// The length of each row of a table without times.
    pub interval: Option<&'a str>,
    /// What happens in a table's gaps.
    pub gap: Option<&'a str>,
}

/// How a trace is to be written.
#[derive(Clone, Copy, Debug)]
pub struct TraceTarget<'a> {
    /// The file's name, whose ending tells the format.
    pub name: &'a str,
    /// The name of the format, where the ending does not tell it.
    pub format: Option<&'a str>,
    /// How long a step of a table is that is made from Mahimahi's opportunities: a time.
    pub step: &'a str,
}

/// What is done to a trace.
#[derive(Clone, Copy, Debug)]
pub struct TraceChange<'a> {
    /// The factor of the rate.
    pub scale: f64,
    /// Where it begins: a time.
    pub offset: &'a str,
    /// How much of it there is from there on: a time; all where absent.
    pub duration: Option<&'a str>,
}

/// What was understood of a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Understood {
    format: &'static str,
    encoding: &'static str,
    /// Of a table, as all that is optional here.
    separator: Option<&'static str>,
    decimal: Option<char>,
    /// From one; absent where the table has no heading.
    heading_line: Option<usize>,
    time_column: Option<ColumnInfo>,
    /// A unit of times, or how else they are written; the length of a row where there is no column of times.
    times: Option<String>,
    rate_column: Option<ColumnInfo>,
    unit: Option<String>,
    rows: Option<usize>,
    first_rows: Vec<FirstRow>,
    /// The usual step: the median.
    step_s: Option<f64>,
    gaps: Option<GapInfo>,
    /// What is legal and probably not meant.
    warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct ColumnInfo {
    number: usize,
    heading: String,
}

/// What is written, where it is a table, and how it was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct FirstRow {
    time: Option<String>,
    rate: Option<String>,
    time_s: f64,
    /// Absent of an opportunity of Mahimahi's.
    rate_bps: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct GapInfo {
    count: usize,
    longest_s: f64,
    /// The line in front of the longest one.
    after_line: u32,
    total_s: f64,
}

/// What characterises a trace. But for the mean, it is said of the mean rates of whole seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceInfo {
    schema: u32,
    file: String,
    format: &'static str,
    /// Of a table.
    unit: Option<String>,
    /// Of a table: the column of the rates.
    column: Option<usize>,
    understood: Understood,
    duration_s: f64,
    mean_bps: f64,
    min_bps: f64,
    max_bps: f64,
    median_bps: f64,
    percentiles_bps: BTreeMap<String, f64>,
    coefficient_of_variation: f64,
    /// By the distance in seconds; absent where the trace is not three times as long, or never varies.
    autocorrelation: BTreeMap<String, f64>,
    /// The share of time in which a table's rate is zero, or of seconds without an opportunity.
    zero_share: f64,
    outage_threshold_bps: f64,
    outage_share: f64,
    outages: usize,
    mean_outage_s: f64,
    longest_outage_s: usize,
    latency_s: Option<LatencyInfo>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct LatencyInfo {
    mean: f64,
    min: f64,
    max: f64,
}

/// A file in another format.
#[derive(Clone, Debug, PartialEq)]
pub struct Converted {
    /// The text of the new file.
    pub text: String,
    /// What was understood of the old one.
    pub understood: Understood,
}

impl Understood {
    fn of(reading: &Reading) -> Self {
        let understood = &reading.understood;
        let table = understood.table.as_ref();
        let column = |column: &Column| ColumnInfo { number: column.number, heading: column.heading.clone() };
        let warning = match reading.recording.first_packet_after() {
            None => Some("not a single packet can be sent".to_string()),
            Some(after) => (after > LONG_WAIT).then(|| {
                let whole = Duration::from_millis(after.as_millis());
                format!("nothing can be sent before {}", write_time(whole))
            }),
        };
        Understood {
            format: understood.kind.name(),
            encoding: understood.encoding,
            separator: table.map(|table| table.separator.name()),
            decimal: table.and_then(|table| table.decimal),
            heading_line: table.and_then(|table| table.heading_line),
            time_column: table.and_then(|table| table.time_column.as_ref()).map(column),
            times: table.map(|table| table.times.clone()),
            rate_column: table.map(|table| column(&table.rate_column)),
            unit: table.map(|table| table.unit.name()),
            rows: table.map(|table| table.rows),
            first_rows: first_rows(&reading.recording.rate, table),
            step_s: table.map(|table| table.step.as_secs_f64()),
            gaps: table.and_then(|table| table.gaps.as_ref()).map(GapInfo::of),
            warnings: understood.warnings.iter().cloned().chain(warning).collect(),
        }
    }

    /// As one JSON object.
    ///
    /// # Panics
    /// Never: the object holds numbers and texts only.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts can be written")
    }
}

impl GapInfo {
    fn of(gaps: &Gaps) -> Self {
        let Gaps { count, longest, line, total } = *gaps;
        GapInfo { count, longest_s: longest.as_secs_f64(), after_line: line, total_s: total.as_secs_f64() }
    }
}

fn first_rows(rate: &RecordedRate, table: Option<&TableFormat>) -> Vec<FirstRow> {
    const SHOWN: usize = 3;
    let plain = |time_s, rate_bps| FirstRow { time: None, rate: None, time_s, rate_bps };
    match (table, rate) {
        (Some(table), _) => {
            let row = |row: &anabranch_network::FirstRow| FirstRow {
                time: Some(row.time.clone()),
                rate: Some(row.rate.clone()),
                time_s: row.at.as_secs_f64(),
                rate_bps: Some(row.bandwidth.as_bps()),
            };
            table.first_rows.iter().map(row).collect()
        }
        (None, RecordedRate::Opportunities(trace)) => {
            trace.iter().take(SHOWN).map(|at| plain(at.as_secs_f64(), None)).collect()
        }
        (None, RecordedRate::Table(steps)) => {
            let starts = steps.iter().scan(Duration::ZERO, |at, (length, rate)| {
                let start = *at;
                *at += length;
                Some(plain(start.as_secs_f64(), Some(rate.as_bps())))
            });
            starts.take(SHOWN).collect()
        }
    }
}

impl TraceInfo {
    /// As one JSON object.
    ///
    /// # Panics
    /// Never: the object holds numbers and texts only.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and texts can be written")
    }
}

/// What characterises a file, and the mean rates of its seconds in bits per second.
///
/// # Errors
/// The first mistake in the file, with its line, or in what is said about it.
pub fn info(file: &TraceFile<'_>) -> Result<(TraceInfo, Vec<f64>), Error> {
    let reading = file.read()?;
    let recording = &reading.recording;
    let summary = Summary::of(recording).map_err(|error| complain(file.name, error))?;
    let understood = Understood::of(&reading);
    let zero_share = match &recording.rate {
        RecordedRate::Table(steps) => steps.zero_share(),
        RecordedRate::Opportunities(_) => {
            summary.samples_bps.iter().filter(|rate| **rate == 0.0).count() as f64 / summary.samples_bps.len() as f64
        }
    };
    let percentile = |n: &u32| (format!("p{n:02}"), summary.quantile_bps(f64::from(*n) / 100.0));
    let autocorrelation = |lag: &usize| Some((lag.to_string(), summary.autocorrelation(*lag)?));
    let outage_s = summary.outage_share * summary.samples_bps.len() as f64;
    let info = TraceInfo {
        schema: SCHEMA,
        file: file.name.to_string(),
        format: understood.format,
        unit: understood.unit.clone(),
        column: understood.rate_column.as_ref().map(|column| column.number),
        understood,
        duration_s: recording.period().as_secs_f64(),
        mean_bps: summary.mean_bps,
        min_bps: summary.quantile_bps(0.0),
        max_bps: summary.quantile_bps(1.0),
        median_bps: summary.quantile_bps(0.5),
        percentiles_bps: PERCENTILES.iter().map(percentile).collect(),
        coefficient_of_variation: summary.variation,
        autocorrelation: LAGS.iter().filter_map(autocorrelation).collect(),
        zero_share,
        outage_threshold_bps: OUTAGE_SHARE_OF_MEAN * summary.mean_bps,
        outage_share: summary.outage_share,
        outages: summary.outages,
        mean_outage_s: if summary.outages == 0 { 0.0 } else { outage_s / summary.outages as f64 },
        longest_outage_s: summary.longest_outage_s,
        latency_s: summary.latency.map(|l| LatencyInfo { mean: l.mean_s, min: l.min_s, max: l.max_s }),
    };
    Ok((info, summary.samples_bps))
}

/// A file in another format, or a part of it. Only JSON keeps a recorded latency.
///
/// # Errors
/// As for [`info`], and what cannot be written: a factor of zero, no packet, too many entries.
pub fn convert(file: &TraceFile<'_>, change: &TraceChange<'_>, target: &TraceTarget<'_>) -> Result<Converted, Error> {
    let kind = target.kind()?;
    let step = time("--step", target.step)?;
    let offset = time("--offset", change.offset)?;
    let duration = change.duration.map(|text| time("--duration", text)).transpose()?;
    if !(change.scale.is_finite() && change.scale > 0.0) {
        let problem =
            Problem { message: "is no usable factor".into(), expected: "a number above zero".into(), nearest: None };
        return Err(option("--scale", &change.scale.to_string(), problem));
    }
    let wrong = |error| complain(file.name, error);
    let reading = file.read()?;
    let mut part = reading.recording.shifted(offset);
    if let Some(duration) = duration {
        part = part.lasting(duration).map_err(wrong)?;
    }
    if change.scale != 1.0 {
        part = part.scaled(change.scale).map_err(wrong)?;
    }
    let text = part.write(kind, step).map_err(wrong)?;
    Ok(Converted { text, understood: Understood::of(&reading) })
}

/// A synthetic trace of this kind, mean rate and duration.
///
/// # Errors
/// An unknown kind, or a quantity that cannot be.
pub fn synthesize(
    kind: &str,
    mean: &str,
    duration: &str,
    seed: u64,
    target: &TraceTarget<'_>,
) -> Result<String, Error> {
    let known = || SYNTHETIC_KINDS.names();
    let Some(found) = SYNTHETIC_KINDS.find(kind) else {
        return Err(unknown("kind of network", kind, known()));
    };
    let mean = read_rate(mean).map_err(|problem| option("--mean", mean, problem))?;
    let period = time("--duration", duration)?;
    let streams = Streams::new(seed, format!("trace/{kind}"));
    let recording = (found.create)().recording(mean, period, &streams).map_err(|error| complain(kind, error))?;
    recording.write(target.kind()?, time("--step", target.step)?).map_err(|error| complain(kind, error))
}

impl TraceFile<'_> {
    fn read(&self) -> Result<Reading, Error> {
        let column = |name: &str| ColumnName::Name(name.to_string());
        let unit = |name: &str| RateUnit::read(name).map_err(|problem| option("--unit", name, problem));
        let table = TableHints {
            unit: self.unit.map(unit).transpose()?,
            rate_column: self.rate_column.map(column),
            time_column: self.time_column.map(column),
            time_unit: self.time_unit.map(|name| named("--time-unit", name, &TimeUnit::NAMES)).transpose()?,
            interval: self.interval.map(|text| time("--interval", text)).transpose()?,
            gap: self.gap.map(|name| named("--gap", name, &Gap::NAMES)).transpose()?,
        };
        let hints = TraceHints {
            kind: self.format.map(|name| named("--from", name, &TraceKind::NAMES)).transpose()?,
            suggested: TraceKind::of_name(self.name),
            table,
            at_end: AtEnd::Loop,
        };
        Reading::of(self.content, &hints).map_err(|error| complain(self.name, error))
    }
}

impl TraceTarget<'_> {
    /// What is said, and else what the name's ending says.
    fn kind(&self) -> Result<TraceKind, Error> {
        if let Some(name) = self.format {
            return named("--format", name, &TraceKind::NAMES);
        }
        TraceKind::of_name(self.name).ok_or_else(|| Error {
            file: self.name.to_string(),
            line: 0,
            column: 0,
            message: "the name does not say the format".into(),
            expected: "an ending in .csv, .tsv, .txt, .json, .up or .down, or --format mahimahi, columns or json"
                .into(),
            nearest: None,
        })
    }
}

fn named<T: Copy>(option: &str, name: &str, known: &[(&'static str, T)]) -> Result<T, Error> {
    match known.iter().find(|(known, _)| *known == name) {
        Some((_, value)) => Ok(*value),
        None => Err(unknown(option, name, known.iter().map(|(name, _)| *name))),
    }
}

fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let known: Vec<&str> = known.collect();
    Error {
        file: what.to_string(),
        line: 0,
        column: 0,
        message: format!("`{name}` is unknown"),
        expected: format!("one of {}", known.join(", ")),
        nearest: nearest(name, known.iter().copied()),
    }
}

fn time(name: &str, text: &str) -> Result<Duration, Error> {
    read_time(text).map_err(|problem| option(name, text, problem))
}

fn option(name: &str, text: &str, problem: Problem) -> Error {
    let Problem { message, expected, nearest } = problem;
    Error { file: format!("{name} {text}"), line: 0, column: 0, message, expected, nearest }
}

fn complain(name: &str, error: TraceError) -> Error {
    let TraceError { line, column, problem, expected } = error;
    let message = if column.is_empty() { problem } else { format!("column {column}: {problem}") };
    Error { file: name.to_string(), line: line.unwrap_or(0), column: 0, message, expected, nearest: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file<'a>(name: &'a str, text: &'a str) -> TraceFile<'a> {
        TraceFile { name, content: text.as_bytes(), ..TraceFile::default() }
    }

    const ALL: TraceChange<'static> = TraceChange { scale: 1.0, offset: "0 s", duration: None };

    fn target(name: &str) -> TraceTarget<'_> {
        TraceTarget { name, format: None, step: "1 s" }
    }

    #[test]
    fn the_information_is_that_of_the_summary() {
        let text: String = (0..60).map(|t| format!("{t},{}\n", if t % 20 == 3 { 0 } else { 10 })).collect();
        let (found, samples) = info(&file("a.csv", &format!("t,mbps\n{text}"))).unwrap();
        assert_eq!((found.format, found.unit.as_deref(), found.column), ("columns", Some("Mb/s"), Some(1)));
        assert_eq!((found.duration_s, samples.len()), (60.0, 60));
        assert_eq!((found.mean_bps, found.median_bps, found.min_bps), (9.5e6, 1e7, 0.0));
        assert_eq!((found.outages, found.mean_outage_s, found.longest_outage_s), (3, 1.0, 1));
        let json: serde_json::Value = serde_json::from_str(&found.to_json()).unwrap();
        assert_eq!(json["percentiles_bps"]["p50"], 1e7);
        assert!(json["autocorrelation"]["1"].as_f64().unwrap() < 0.0);
        assert!(json["latency_s"].is_null());
    }

    #[test]
    fn parts_of_files_are_converted() {
        let table = file("a.csv", "t,mbps\n0,12\n1,24\n2,36\n");
        let change = TraceChange { scale: 0.5, offset: "1 s", duration: Some("2 s") };
        let text = convert(&table, &change, &target("b.csv")).unwrap().text;
        assert_eq!(text, "time_s,rate_bps\n0,12000000\n1,18000000\n");
        let packets = convert(&table, &change, &target("b.down")).unwrap().text;
        assert_eq!(packets.lines().count(), 1000 + 1500);
        let again = convert(&file("b.down", &packets), &ALL, &target("c.csv")).unwrap().text;
        assert_eq!(again, "time_s,rate_bps\n0,11988000\n1,18012000\n");
        let latency = file("a.json", "[{\"duration_ms\": 5, \"bandwidth_kbps\": 2, \"latency_ms\": 7}]");
        assert!(convert(&latency, &ALL, &target("b.json")).unwrap().text.contains("\"latency_ms\": 7"));
    }

    #[test]
    fn made_up_traces_repeat_by_their_seed() {
        let make = |seed| synthesize("lte", "12 Mb/s", "100 s", seed, &target("a.csv")).unwrap();
        assert_eq!(make(1), make(1));
        assert_ne!(make(1), make(2));
        assert_eq!(make(1).lines().count(), 101);
        let error = |kind, mean| synthesize(kind, mean, "9 s", 1, &target("a.csv")).unwrap_err().to_string();
        assert!(error("lta", "1 Mb/s").ends_with("did you mean `lte`?"), "{}", error("lta", "1 Mb/s"));
        assert!(error("lte", "1 Mbps").starts_with("--mean 1 Mbps: "));
    }

    #[test]
    fn mistakes_name_the_file_or_the_option() {
        let good = file("a.csv", "t,mbps\n0,12\n");
        let error = |file: &TraceFile<'_>, change: &TraceChange<'_>, target: &TraceTarget<'_>| {
            convert(file, change, target).unwrap_err().to_string()
        };
        assert!(
            error(&file("bad.csv", "t,mbps\n0,1\n1,x\n"), &ALL, &target("b.csv"))
                .starts_with("bad.csv:3: column mbps: \"x\" is no rate")
        );
        assert!(error(&good, &ALL, &target("b.xyz")).starts_with("b.xyz: the name does not say the format"));
        let format = TraceTarget { format: Some("jsom"), ..target("b") };
        assert_eq!(
            error(&good, &ALL, &format),
            "--format: `jsom` is unknown; expected one of mahimahi, columns, json; did you mean `json`?"
        );
        let change = |scale, offset, duration| TraceChange { scale, offset, duration };
        assert!(error(&good, &change(0.0, "0 s", None), &target("b.csv")).starts_with("--scale 0: "));
        assert!(error(&good, &change(f64::NAN, "0 s", None), &target("b.csv")).starts_with("--scale NaN: "));
        assert!(error(&good, &change(1.0, "9", None), &target("b.csv")).starts_with("--offset 9: "));
        assert!(error(&good, &change(1.0, "0 s", Some("0 s")), &target("b.csv")).starts_with("a.csv: no step lasts"));
        assert!(
            error(&file("zero.csv", "t,mbps\n0,0\n"), &ALL, &target("b.up")).starts_with("zero.csv: the rate is zero")
        );
        let unit = TraceFile { unit: Some("Mbs"), ..good };
        assert!(error(&unit, &ALL, &target("b.csv")).contains("did you mean `Mb/s`?"));
    }
}
