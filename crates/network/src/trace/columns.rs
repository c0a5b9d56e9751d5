//! Tables of time and rate: one sample per line, separated by commas, semicolons, tabs or spaces.
//!
//! A sample's rate holds from its time until the next sample's. Times are counted from the first sample, so a table may
//! begin at second 0 or at second 1. The last sample holds as long as the one before it. Samples at equal times occur in
//! recordings; the last of them counts. A first line whose time is no number is a heading.

use super::{AtEnd, Steps, TraceError, content};
use anabranch_units::{Bandwidth, Duration};

/// What a table's rates are measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateUnit {
    /// Bits per second.
    BitsPerSecond,
    /// 1000 bits per second.
    KilobitsPerSecond,
    /// 1 000 000 bits per second.
    MegabitsPerSecond,
    /// Bytes per second.
    BytesPerSecond,
}

impl RateUnit {
    fn bits(self) -> f64 {
        match self {
            RateUnit::BitsPerSecond => 1.0,
            RateUnit::KilobitsPerSecond => 1e3,
            RateUnit::MegabitsPerSecond => 1e6,
            RateUnit::BytesPerSecond => 8.0,
        }
    }
}

/// How a table is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnFormat {
    /// The unit of the rates. Times are in seconds.
    pub unit: RateUnit,
    /// Which column holds the rates; the times are column 0.
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
    /// Errors name the line: too few columns, not a number, a negative rate, a time before the previous one.
    pub fn parse_columns(text: &str, format: ColumnFormat) -> Result<Self, TraceError> {
        let mut samples: Vec<Sample> = Vec::new();
        for (nth, (number, line)) in content(text).enumerate() {
            if nth == 0 && is_heading(line) {
                continue;
            }
            let sample = parse_line(number, line, format)?;
            if samples.last().is_some_and(|last| sample.at < last.at) {
                return Err(TraceError::at(number, "the time lies before the previous line's"));
            }
            samples.push(sample);
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
    let mut fields = fields(line);
    let seconds = number_in(number, "time in seconds", fields.next())?;
    let rate = number_in(number, "rate", fields.nth(format.column.saturating_sub(1)))?;
    let rate = Bandwidth::from_bps((rate * format.unit.bits() + 0.5) as u64);
    Ok(Sample { at: Duration::from_secs_f64(seconds), rate })
}

/// A finite number that is not negative.
fn number_in(line: usize, what: &str, field: Option<&str>) -> Result<f64, TraceError> {
    let Some(text) = field else {
        return Err(TraceError::at(line, format!("expected a {what}, but the line ends")));
    };
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        Ok(_) => Err(TraceError::at(line, format!("the {what} must be finite and not negative, not \"{text}\""))),
        Err(_) => Err(TraceError::at(line, format!("expected a {what}, not \"{text}\""))),
    }
}

/// How long each sample holds.
fn lengths(samples: &[Sample]) -> Vec<(Duration, Bandwidth)> {
    let gaps: Vec<Duration> = samples.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    // A single sample has no gap to repeat; its length is then without meaning.
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
        assert_eq!(error("0,1\n1,fast"), "line 2: expected a rate, not \"fast\"");
        assert_eq!(error("t,r\n0,1\n\n1"), "line 4: expected a rate, but the line ends");
        assert_eq!(error("0,1\n1,-3"), "line 2: the rate must be finite and not negative, not \"-3\"");
        assert_eq!(error("0,1\n5,1\n4,1"), "line 3: the time lies before the previous line's");
        assert_eq!(error("time,rate\nx,1"), "line 2: expected a time in seconds, not \"x\"");
        assert_eq!(error(""), "the trace has no step that lasts");
    }
}
