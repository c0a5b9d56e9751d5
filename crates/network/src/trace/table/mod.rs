//! Tables of time and rate, as spreadsheets, pandas, R, numpy and loggers write them: one sample per line.
//!
//! A sample's rate holds from its time until the next sample's. Times are counted from the first sample, so a table may
//! begin at second 0, at second 1, or in 2026. The last sample holds as long as the one before it. Of samples at equal
//! times, which occur in recordings, the last counts.
//!
//! Nothing is guessed: one dialect holds for the whole file (`dialect`), a column is taken by its name or by a
//! heading that is known (`columns`, `heading`), and a rate has a unit (`units`). [`TableFormat`] says what was
//! understood.

mod columns;
mod dialect;
mod heading;
mod numbers;
mod samples;
mod times;
mod units;

pub use columns::Column;
pub use dialect::Separator;
pub use samples::Gaps;
pub use units::{RateUnit, TimeUnit};

use super::steps::MOST_ENTRIES;
use super::{AtEnd, Steps, TraceError, excerpt};
use anabranch_units::{Bandwidth, Duration};
use columns::{Columns, TimesFrom};
use dialect::{Dialect, MOST_COLUMNS, Rows};
use numbers::Marks;
use samples::Sample;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use times::Clock;

pub(super) use dialect::is_value;

/// No link is faster (10 Tb/s), so a larger rate is in another unit than stated.
const MOST_BPS: f64 = 1e13;

/// 292 years in nanoseconds; later times are in another unit than stated.
const MOST_NANOS: i128 = i64::MAX as i128;

const NANOS_PER_S: i128 = 1_000_000_000;

/// The years 2000 and 2100 in seconds since 1970: a time between them, in some unit, is one since 1970.
const SINCE_1970: std::ops::Range<i128> = 946_684_800..4_102_444_800;

/// Rows that are repeated as they were read.
const SHOWN_ROWS: usize = 3;

/// A column, as the user of a table names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnName {
    /// By its heading, or by its number as text where no heading is the same.
    Name(String),
    /// By its number, counted from zero.
    Number(usize),
}

impl fmt::Display for ColumnName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnName::Name(name) => write!(f, "`{name}`"),
            ColumnName::Number(number) => write!(f, "{number}"),
        }
    }
}

const EXPECTED_COLUMN: &str = "a column's heading, or its number counted from 0";

impl Serialize for ColumnName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ColumnName::Name(name) => serializer.serialize_str(name),
            ColumnName::Number(number) => serializer.serialize_u64(*number as u64),
        }
    }
}

impl<'de> Deserialize<'de> for ColumnName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrNumber;
        impl de::Visitor<'_> for NameOrNumber {
            type Value = ColumnName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED_COLUMN)
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<ColumnName, E> {
                Ok(ColumnName::Name(name.trim().to_string()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<ColumnName, E> {
                let number = usize::try_from(number).ok().filter(|number| *number <= MOST_COLUMNS);
                let number = number
                    .ok_or_else(|| E::custom(format!("no column has this number; expected {EXPECTED_COLUMN}")))?;
                Ok(ColumnName::Number(number))
            }
        }
        deserializer.deserialize_any(NameOrNumber)
    }
}

impl JsonSchema for ColumnName {
    fn schema_name() -> Cow<'static, str> {
        "ColumnName".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let number = json_schema!({ "type": "integer", "minimum": 0, "maximum": MOST_COLUMNS });
        json_schema!({ "anyOf": [{ "type": "string" }, number], "x-expected": EXPECTED_COLUMN })
    }
}

/// What happens in a gap: a step that is more than ten times as long as the usual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gap {
    /// The rate of the row before it holds.
    Hold,
    /// After a usual step the rate is zero.
    Zero,
    /// The table is refused.
    Error,
}

impl Gap {
    /// Every choice with its name.
    pub const NAMES: [(&'static str, Gap); 3] = [("hold", Gap::Hold), ("zero", Gap::Zero), ("error", Gap::Error)];
}

/// What the caller knows about a table; the rest is found from its headings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableHints {
    /// The unit of the rates.
    pub unit: Option<RateUnit>,
    /// The column of the rates.
    pub rate_column: Option<ColumnName>,
    /// The column of the times.
    pub time_column: Option<ColumnName>,
    /// The unit of the times.
    pub time_unit: Option<TimeUnit>,
    /// How long each row is, instead of times.
    pub interval: Option<Duration>,
    /// What happens in gaps; where absent the rate holds, with a warning.
    pub gap: Option<Gap>,
}

/// What was understood of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFormat {
    /// What stands between fields.
    pub separator: Separator,
    /// The decimal mark, if a number has one.
    pub decimal: Option<char>,
    /// The line of the heading, if there is one.
    pub heading_line: Option<usize>,
    /// The column of the times; `None` if each row has the same length.
    pub time_column: Option<Column>,
    /// How times are written: a unit, `ISO 8601`, ...; the length of a row where there is no column of times.
    pub times: String,
    /// The unit that was taken for times that are numbers.
    pub time_unit: Option<TimeUnit>,
    /// The column of the rates.
    pub rate_column: Column,
    /// The unit of the rates.
    pub unit: RateUnit,
    /// Number of rows.
    pub rows: usize,
    /// The first rows.
    pub first_rows: Vec<FirstRow>,
    /// The usual step from row to row: the median.
    pub step: Duration,
    /// Steps that are much longer.
    pub gaps: Option<Gaps>,
}

/// One of the first rows of a table, as it is written and as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstRow {
    /// The time's field; empty if there is no column of times.
    pub time: String,
    /// The rate's field.
    pub rate: String,
    /// The time from the first row on.
    pub at: Duration,
    /// The rate.
    pub bandwidth: Bandwidth,
}

/// A table that was read.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) steps: Steps<Bandwidth>,
    pub(super) format: TableFormat,
    pub(super) warnings: Vec<String>,
}

impl Table {
    /// Reads a table of time and rate.
    ///
    /// Errors give line and column: another count of fields, an empty field, not a number, a negative or impossible
    /// rate, a time before the previous one. Without a line: unknown columns or units, no row.
    pub(super) fn of(text: &str, hints: &TableHints, at_end: AtEnd) -> Result<Self, TraceError> {
        let dialect = Dialect::of(text)?;
        let columns = Columns::of(&dialect, hints)?;
        let mut warnings = columns.warnings.clone();
        let mut reader = Reader::new(&dialect, &columns);
        let samples = reader.read_all(dialect.rows(text))?;
        let interval = match columns.times {
            TimesFrom::Interval(interval) => Some(interval),
            TimesFrom::Column(..) => None,
        };
        let step = samples::usual_step(&samples, interval);
        let gaps = samples::gaps(&samples, step);
        if let Some(found) = &gaps {
            match hints.gap {
                Some(Gap::Error) => {
                    let problem = format!("a gap of {} follows", anabranch_units::text::write_time(found.longest));
                    let error = TraceError::at(found.line as usize, problem);
                    return Err(error.expecting("no gap, as gap = \"error\" says; or gap = \"hold\" or \"zero\""));
                }
                Some(Gap::Hold | Gap::Zero) => {}
                None => warnings.push(samples::warning_of(found, step, hints.gap)),
            }
        }
        warnings.extend(reader.warning.take());
        if let Some(line) = samples::impossible(&samples, columns.unit, step, MOST_BPS) {
            let problem = format!("an amount in {} is impossible in so short a time", columns.unit);
            return Err(TraceError::at(line as usize, problem)
                .in_column(columns.rates.name())
                .expecting("another unit"));
        }
        let steps = samples::steps(&samples, columns.unit, (step, hints.gap), at_end)?;
        match samples::repeated(&samples) {
            0 => {}
            n if n + 1 == samples.len() => {
                return Err(TraceError::whole("all rows have the same time").expecting("times that grow"));
            }
            n => warnings
                .push(format!("{n} of {} rows have the time of the row after them, which counts", samples.len())),
        }
        let format = TableFormat {
            separator: dialect.separator,
            decimal: reader.marks.decimal(),
            heading_line: dialect.heading.as_ref().map(|heading| heading.line),
            times: reader.times_name(),
            time_unit: reader.time_unit(),
            time_column: reader.time_column().cloned(),
            rate_column: columns.rates.clone(),
            unit: columns.unit,
            rows: samples.len(),
            first_rows: reader.first_rows(&samples, step),
            step,
            gaps,
        };
        Ok(Table { steps, format, warnings })
    }
}

/// How the times of a table are written, which its first row decides.
#[derive(Clone, Copy, Debug)]
enum Written {
    Number(TimeUnit),
    Clock(Clock),
}

/// Reads rows.
struct Reader<'a> {
    columns: &'a Columns,
    marks: Marks,
    written: Option<Written>,
    /// The time of the first row, in nanoseconds.
    began: i128,
    first_rows: Vec<(String, String)>,
    warning: Option<String>,
}

impl<'a> Reader<'a> {
    fn new(dialect: &Dialect, columns: &'a Columns) -> Self {
        Reader { columns, marks: dialect.marks, written: None, began: 0, first_rows: Vec::new(), warning: None }
    }

    fn read_all(&mut self, mut rows: Rows<'_>) -> Result<Vec<Sample>, TraceError> {
        let mut samples: Vec<Sample> = Vec::new();
        while let Some(line) = rows.next()? {
            let at = self.time(&rows, line, samples.len())?;
            let value = self.rate(&rows, line)?;
            if samples.last().is_some_and(|last| at < last.at) {
                let problem = "the time lies before the previous line's";
                return Err(self.in_times(TraceError::at(line, problem)).expecting("ascending times"));
            }
            if samples.len() == MOST_ENTRIES {
                let problem = format!("the table has more than {MOST_ENTRIES} rows");
                return Err(TraceError::at(line, problem).expecting("a part of it"));
            }
            if samples.len() < SHOWN_ROWS {
                let time = self.time_column().map_or_else(String::new, |column| rows.field(column.number).to_string());
                self.first_rows.push((time, rows.field(self.columns.rates.number).to_string()));
            }
            samples.push(Sample { at, value, line: u32::try_from(line).unwrap_or(u32::MAX) });
        }
        if samples.is_empty() {
            return Err(TraceError::whole("no line holds numbers").expecting("a time and a rate on each line"));
        }
        Ok(samples)
    }

    fn time_column(&self) -> Option<&'a Column> {
        match &self.columns.times {
            TimesFrom::Column(column, _) => Some(column),
            TimesFrom::Interval(_) => None,
        }
    }

    fn in_times(&self, error: TraceError) -> TraceError {
        match self.time_column() {
            Some(column) => error.in_column(column.name()),
            None => error,
        }
    }

    /// The time of a row, counted from the first one.
    fn time(&mut self, rows: &Rows<'_>, line: usize, nth: usize) -> Result<Duration, TraceError> {
        let (column, unit) = match &self.columns.times {
            TimesFrom::Interval(interval) => {
                let at = (nth as u64).saturating_mul(interval.as_nanos()).min(i64::MAX as u64);
                return Ok(Duration::from_nanos(at));
            }
            TimesFrom::Column(column, unit) => (column, *unit),
        };
        let field = rows.field(column.number);
        let wrong = |problem: String, unit: &str| {
            let expected = format!("{unit}, as in the first row");
            TraceError::at(line, problem).in_column(column.name()).expecting(expected)
        };
        if field.is_empty() {
            return Err(wrong("empty".into(), "a time"));
        }
        let at = match self.written {
            None => {
                let at = self.first_time(rows, field, unit).map_err(|problem| {
                    let expected = "a number that is not negative, a date of ISO 8601, or a time of day as hh:mm:ss";
                    TraceError::at(line, problem).in_column(column.name()).expecting(expected)
                })?;
                self.began = at;
                at
            }
            Some(Written::Number(unit)) => {
                self.number_of(rows, field, unit).map_err(|problem| wrong(problem, "a number"))?
            }
            Some(Written::Clock(first)) => match Clock::of(field) {
                Some(clock) if std::mem::discriminant(&clock) == std::mem::discriminant(&first) => clock.nanos(),
                _ => return Err(wrong(format!("\"{}\" is no such time", excerpt(field)), first.name())),
            },
        };
        let since = at - self.began;
        if since < 0 {
            return Err(wrong("the time lies before the first line's".into(), "ascending times"));
        }
        u64::try_from(since)
            .map(Duration::from_nanos)
            .map_err(|_| wrong("the table is longer than 292 years".into(), "a time"))
    }

    /// The time of the first row, which shows how times are written.
    fn first_time(&mut self, rows: &Rows<'_>, field: &str, unit: Option<TimeUnit>) -> Result<i128, String> {
        if let Some(clock) = Clock::of(field) {
            self.written = Some(Written::Clock(clock));
            return Ok(clock.nanos());
        }
        let known = unit;
        let unit = unit.unwrap_or_else(|| self.unit_since_1970(field));
        let at = self.number_of(rows, field, unit)?;
        // Spreadsheets number days, which nothing distinguishes from seconds but the heading.
        let is_date = |column: &Column| matches!(column.heading.to_lowercase().as_str(), "date" | "datum" | "datetime");
        if known.is_none() && !SINCE_1970.contains(&(at / NANOS_PER_S)) && self.time_column().is_some_and(is_date) {
            return Err(format!("{field} is no date, and of a number the unit is unknown (`time_unit`)"));
        }
        self.written = Some(Written::Number(unit));
        Ok(at)
    }

    /// The unit of a time whose column does not say it: seconds, unless it is a time of this century in a smaller one.
    fn unit_since_1970(&mut self, field: &str) -> TimeUnit {
        let value = numbers::nanos(field, NANOS_PER_S).unwrap_or(0) / NANOS_PER_S;
        let smaller = TimeUnit::NAMES.into_iter().map(|(_, unit)| unit).skip(1);
        let found = smaller.into_iter().find(|unit| SINCE_1970.contains(&(value * unit.nanos() / NANOS_PER_S)));
        if let (Some(unit), Some(column)) = (found, self.time_column()) {
            let (name, unit) = (column.name(), unit.name());
            self.warning = Some(format!(
                "column {name} names no unit: its times are read as {unit} since 1970, because of their size (`time_unit` decides)"
            ));
        }
        found.unwrap_or(TimeUnit::Seconds)
    }

    fn number_of(&mut self, rows: &Rows<'_>, field: &str, unit: TimeUnit) -> Result<i128, String> {
        let what = format!("time in {}", unit.name());
        let plain = self.marks.plain(field, || rows.is_quoted(field));
        let plain = plain.map_err(|problem| match field.contains(':') {
            true => format!("\"{}\" is no {what}", excerpt(field)),
            false => format!("\"{}\" is no {what}: {problem}", excerpt(field)),
        })?;
        match numbers::nanos(&plain, unit.nanos()) {
            Some(at) if (0..=MOST_NANOS).contains(&at) => Ok(at),
            Some(at) if at > MOST_NANOS => Err(format!("a {what} of {field} is impossible; is it in another unit?")),
            None if plain.parse::<f64>().is_ok_and(|value| value > 0.0 && value.is_finite()) => {
                Err(format!("a {what} of {field} is impossible; is it in another unit?"))
            }
            Some(_) => Err(format!("the {what} is {field}")),
            None if plain.parse::<f64>().is_ok() => Err(format!("the {what} is {field}")),
            None => Err(format!("\"{}\" is no {what}", excerpt(field))),
        }
    }

    fn rate(&mut self, rows: &Rows<'_>, line: usize) -> Result<f64, TraceError> {
        let (column, unit) = (&self.columns.rates, self.columns.unit);
        let field = rows.field(column.number);
        let what = format!("rate in {unit}");
        let most = MOST_BPS / unit.factor();
        let plain =
            if field.is_empty() { Err("empty".to_string()) } else { self.marks.plain(field, || rows.is_quoted(field)) };
        let problem = match plain.as_deref().map(str::parse::<f64>) {
            Ok(Ok(value)) if (0.0..=most).contains(&value) => return Ok(value),
            Ok(Ok(value)) if value > most && value.is_finite() => {
                format!("a {what} of {field} is impossible; is it in another unit?")
            }
            Ok(Ok(_)) => format!("the {what} is {field}"),
            Ok(Err(_)) => format!("\"{}\" is no {what}", excerpt(field)),
            Err(problem) if field.is_empty() => problem.to_string(),
            Err(problem) => format!("\"{}\" is no {what}: {problem}", excerpt(field)),
        };
        Err(TraceError::at(line, problem).in_column(column.name()).expecting("a finite number that is not negative"))
    }

    fn first_rows(&self, samples: &[Sample], step: Duration) -> Vec<FirstRow> {
        let row = |(position, (time, rate)): (usize, &(String, String))| {
            let Sample { at, value, .. } = samples[position];
            let length = samples.get(position + 1).map_or(step, |next| next.at - at);
            let bandwidth = samples::rate(value, self.columns.unit, length);
            FirstRow { time: time.clone(), rate: rate.clone(), at, bandwidth }
        };
        self.first_rows.iter().enumerate().map(row).collect()
    }

    fn time_unit(&self) -> Option<TimeUnit> {
        match self.written {
            Some(Written::Number(unit)) => Some(unit),
            _ => None,
        }
    }

    fn times_name(&self) -> String {
        match (&self.columns.times, self.written) {
            (TimesFrom::Interval(interval), _) => anabranch_units::text::write_time(*interval),
            (_, Some(Written::Clock(clock))) => clock.name().into(),
            (_, Some(Written::Number(unit))) if SINCE_1970.contains(&(self.began / NANOS_PER_S)) => {
                format!("{} since 1970", unit.name())
            }
            (_, Some(Written::Number(unit))) => unit.name().into(),
            (_, None) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests;
