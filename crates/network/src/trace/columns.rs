//! Tables of time and rate: one sample per line, separated by commas, semicolons, tabs or spaces.
//!
//! A sample's rate holds from its time until the next sample's. Times are counted from the first sample, so a table may
//! begin at second 0 or at second 1. The last sample holds as long as the one before it. Of samples at equal times,
//! which occur in recordings, the last counts. A first line whose time is not a number is a heading.

use super::{AtEnd, Steps, TraceError, content, excerpt};
use anabranch_units::{Bandwidth, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a table's rates are measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RateUnit {
    /// Bits per second.
    #[serde(rename = "b/s")]
    BitsPerSecond,
    /// 1000 bits per second.
    #[serde(rename = "kb/s")]
    KilobitsPerSecond,
    /// 1 000 000 bits per second.
    #[serde(rename = "Mb/s")]
    MegabitsPerSecond,
    /// Bytes per second.
    #[serde(rename = "B/s")]
    BytesPerSecond,
}

/// No link is faster (10 Tb/s), so a larger rate is in another unit than stated.
const MOST_BPS: f64 = 1e13;

/// 292 years, about what 63 bits of nanoseconds hold; later times are milliseconds or less since 1970.
const MOST_SECONDS: f64 = 9.2e9;

impl RateUnit {
    /// Every unit with its name.
    pub const NAMES: [(&'static str, RateUnit); 4] = [
        ("b/s", RateUnit::BitsPerSecond),
        ("kb/s", RateUnit::KilobitsPerSecond),
        ("Mb/s", RateUnit::MegabitsPerSecond),
        ("B/s", RateUnit::BytesPerSecond),
    ];

    /// Name in scenarios and on the command line.
    pub fn name(self) -> &'static str {
        RateUnit::NAMES.iter().find(|(_, unit)| *unit == self).map_or("", |(name, _)| name)
    }

    /// The unit at the end of a column's heading, such as `wifi_mbps`; `None` if there is none.
    fn of_heading(heading: &str) -> Option<Self> {
        const ENDINGS: [(&str, RateUnit); 4] = [
            ("kbps", RateUnit::KilobitsPerSecond),
            ("mbps", RateUnit::MegabitsPerSecond),
            ("bps", RateUnit::BitsPerSecond),
            ("bytes_per_s", RateUnit::BytesPerSecond),
        ];
        let heading = heading.to_lowercase();
        ENDINGS.iter().find(|(ending, _)| heading.ends_with(ending)).map(|(_, unit)| *unit)
    }

    /// The unit in the heading of column `column`; `None` without a heading or a unit.
    pub(super) fn in_heading(text: &str, column: usize) -> Option<Self> {
        let (_, first) = content(text).next()?;
        if !is_heading(first) {
            return None;
        }
        RateUnit::of_heading(fields(first).nth(column)?)
    }

    fn bits(self) -> f64 {
        match self {
            RateUnit::BitsPerSecond => 1.0,
            RateUnit::KilobitsPerSecond => 1e3,
            RateUnit::MegabitsPerSecond => 1e6,
            RateUnit::BytesPerSecond => 8.0,
        }
    }
}

/// The format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnFormat {
    /// The unit of the rates. Times are in seconds.
    pub unit: RateUnit,
    /// The column of the rates; column 0 has the times.
    pub column: usize,
    /// What follows the last sample.
    pub at_end: AtEnd,
}

impl ColumnFormat {
    /// Times and rates in this unit, in two columns; the table loops.
    pub fn new(unit: RateUnit) -> Self {
        ColumnFormat { unit, column: 1, at_end: AtEnd::Loop }
    }
}

/// A line's time and rate.
struct Sample {
    at: Duration,
    rate: Bandwidth,
}

impl Steps<Bandwidth> {
    /// Reads a table of time and rate.
    ///
    /// Errors give the line: too few columns, not a number, a negative or impossible rate, a time before the previous
    /// one.
    pub fn parse_columns(text: &str, format: ColumnFormat) -> Result<Self, TraceError> {
        let mut samples: Vec<Sample> = Vec::new();
        for (nth, (number, line)) in content(text).enumerate() {
            if nth == 0 && is_heading(line) {
                continue;
            }
            let sample = parse_line(number, line, format)?;
            if samples.last().is_some_and(|last| sample.at < last.at) {
                return Err(
                    TraceError::at(number, "the time lies before the previous line's").expecting("ascending times")
                );
            }
            samples.push(sample);
        }
        if samples.is_empty() {
            return Err(
                TraceError::whole("no line holds numbers").expecting("a time in seconds and a rate on each line")
            );
        }
        Steps::new(lengths(&samples), format.at_end)
    }
}

fn fields(line: &str) -> impl Iterator<Item = &str> {
    line.split([',', ';', '\t', ' ']).map(str::trim).filter(|field| !field.is_empty())
}

fn is_heading(line: &str) -> bool {
    fields(line).next().is_some_and(|first| first.parse::<f64>().is_err())
}

fn parse_line(number: usize, line: &str, format: ColumnFormat) -> Result<Sample, TraceError> {
    let columns: Vec<&str> = fields(line).collect();
    let Some(rate) = columns.get(format.column) else {
        let problem = format!("there is no column {}: the line has {}", format.column, columns.len());
        return Err(
            TraceError::at(number, problem).expecting("times in column 0, and rates in the column that was named")
        );
    };
    let seconds = number_in(number, "time in seconds", columns[0], MOST_SECONDS)?;
    let most = MOST_BPS / format.unit.bits();
    let rate = number_in(number, &format!("rate in {}", format.unit.name()), rate, most)?;
    let rate = Bandwidth::from_bps((rate * format.unit.bits() + 0.5) as u64);
    Ok(Sample { at: Duration::from_secs_f64(seconds), rate })
}

/// A number from 0 to `most`.
fn number_in(line: usize, what: &str, field: &str, most: f64) -> Result<f64, TraceError> {
    let problem = match field.parse::<f64>() {
        Ok(value) if (0.0..=most).contains(&value) => return Ok(value),
        Ok(value) if value > most && value.is_finite() => {
            format!("a {what} of {field} is impossible; is it in another unit?")
        }
        Ok(_) => format!("the {what} is {field}"),
        Err(_) => format!("\"{}\" is no {what}", excerpt(field)),
    };
    Err(TraceError::at(line, problem).expecting("a finite number that is not negative"))
}

/// The duration of each sample.
fn lengths(samples: &[Sample]) -> Vec<(Duration, Bandwidth)> {
    let gaps: Vec<Duration> = samples.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    // A single sample has no gap to take; its length then has no meaning.
    let last = gaps.iter().rev().find(|gap| !gap.is_zero()).copied().unwrap_or(Duration::from_secs(1));
    gaps.into_iter().chain([last]).zip(samples.iter().map(|sample| sample.rate)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, unit: RateUnit) -> Result<Vec<(u64, u64)>, String> {
        let steps = Steps::parse_columns(text, ColumnFormat::new(unit)).map_err(|error| error.to_string())?;
        Ok(steps.iter().map(|(length, rate)| (length.as_millis(), rate.as_bps())).collect())
    }

    #[test]
    fn commas_tabs_spaces_and_carriage_returns_separate() {
        let expected = Ok(vec![(1000, 80), (1000, 160)]);
        for text in
            ["1,10\r\n2,20\r\n", "0\t10\n1\t20", "0.0 10.0\n1.0  20", "t_s;rate\n7;10\n\n8;20\n", "# x\n3, 10\n4, 20"]
        {
            assert_eq!(parse(text, RateUnit::BytesPerSecond), expected, "{text:?}");
        }
    }

    #[test]
    fn units_scale() {
        let one = |unit| parse("0 1.5\n1 2", unit).unwrap()[0].1;
        assert_eq!(one(RateUnit::BitsPerSecond), 2);
        assert_eq!(one(RateUnit::BytesPerSecond), 12);
        assert_eq!(one(RateUnit::KilobitsPerSecond), 1500);
        assert_eq!(one(RateUnit::MegabitsPerSecond), 1_500_000);
    }

    #[test]
    fn of_samples_at_one_time_the_last_counts() {
        let read = parse("0 8\n2 9\n2 0\n2 4\n3 7", RateUnit::BitsPerSecond);
        assert_eq!(read, Ok(vec![(2000, 8), (1000, 4), (1000, 7)]));
    }

    #[test]
    fn another_column_can_be_chosen() {
        let text = "t_s,a_mbps,b_mbps\n0,1,5\n1,2,6\n";
        let format = ColumnFormat { column: 2, ..ColumnFormat::new(RateUnit::MegabitsPerSecond) };
        let steps = Steps::parse_columns(text, format).unwrap();
        assert_eq!(steps.value_at(Duration::ZERO), Bandwidth::from_mbps(5));
    }

    #[test]
    fn errors_name_the_line() {
        let error = |text| parse(text, RateUnit::MegabitsPerSecond).unwrap_err();
        let number = "expected a finite number that is not negative";
        assert_eq!(error("0,1\n1,fast"), format!("line 2: \"fast\" is no rate in Mb/s; {number}"));
        assert!(error("t,r\n0,1\n\n1").starts_with("line 4: there is no column 1: the line has 1"));
        assert_eq!(error("0,1\n1,-3"), format!("line 2: the rate in Mb/s is -3; {number}"));
        assert_eq!(error("0,1\n1,NaN"), format!("line 2: the rate in Mb/s is NaN; {number}"));
        assert_eq!(error("0,1\n1,inf"), format!("line 2: the rate in Mb/s is inf; {number}"));
        assert!(error("0,1\n1,1e8").starts_with("line 2: a rate in Mb/s of 1e8 is impossible; is it in another unit?"));
        assert!(error("1700000000000,1").starts_with("line 1: a time in seconds of 1700000000000 is impossible"));
        assert_eq!(
            error("0,1\n5,1\n4,1"),
            "line 3: the time lies before the previous line's; expected ascending times"
        );
        assert_eq!(error("time,rate\nx,1"), format!("line 2: \"x\" is no time in seconds; {number}"));
        assert!(error("").starts_with("no line holds numbers"));
    }

    #[test]
    fn headings_say_the_unit() {
        let unit_of = |text| RateUnit::in_heading(text, 1);
        assert_eq!(unit_of("t_s,att_mbps\n0,1"), Some(RateUnit::MegabitsPerSecond));
        assert_eq!(unit_of("# from a phone\ntime rate_bps\n0 1"), Some(RateUnit::BitsPerSecond));
        assert_eq!(unit_of("t,KBPS\n"), Some(RateUnit::KilobitsPerSecond));
        assert_eq!(unit_of("t,bytes_per_s\n"), Some(RateUnit::BytesPerSecond));
        assert_eq!([unit_of("t,rate\n0,1"), unit_of("0,1"), unit_of("t\n0,1"), unit_of("")], [None; 4]);
    }
}
