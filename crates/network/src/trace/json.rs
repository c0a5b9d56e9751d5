//! JSON lists of periods, as sabre and its trace collections use them: objects with `duration_ms`,
//! `bandwidth_kbps` (1000 bits per second) and, optionally, `latency_ms`.

use super::{AtEnd, Steps, TraceError};
use anabranch_units::{Bandwidth, Duration};
use serde::Deserialize;

/// A trace of rate and, where recorded, latency.
///
/// The meaning of the latency depends on the recording: in sabre's collections it is added once per request, a round
/// trip, so half of it (`latency.map(|rtt| rtt / 2)`) makes a one-way delay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateAndLatency {
    /// The rate over time.
    pub rate: Steps<Bandwidth>,
    /// The latency over time, if every period has one.
    pub latency: Option<Steps<Duration>>,
}

/// 292 years, about what 63 bits of nanoseconds hold.
const MOST_MS: f64 = 9.2e12;

/// 10 Tb/s, beyond every existing link.
const MOST_KBPS: f64 = 1e10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Period {
    duration_ms: f64,
    bandwidth_kbps: f64,
    latency_ms: Option<f64>,
}

impl RateAndLatency {
    /// Reads a JSON list of periods.
    ///
    /// Errors give the line where the JSON is malformed or a field is missing, unknown or not a number; or the period
    /// (counted from one) with a negative value.
    pub fn parse_json(text: &str, at_end: AtEnd) -> Result<Self, TraceError> {
        let expected = "a list of objects with `duration_ms`, `bandwidth_kbps` and, if there is one, `latency_ms`";
        let malformed = |error: serde_json::Error| TraceError::at(error.line(), error.to_string()).expecting(expected);
        let periods: Vec<Period> = serde_json::from_str(text).map_err(malformed)?;
        for (index, period) in periods.iter().enumerate() {
            period.check().map_err(|problem| {
                let problem = format!("period {}: {problem}", index + 1);
                TraceError::at(line_of_object(text, index), problem).expecting("a finite number that is not negative")
            })?;
        }
        if periods.is_empty() {
            return Err(TraceError::whole("the list is empty").expecting(expected));
        }
        let rate = Steps::new(periods.iter().map(|period| (period.length(), period.rate())), at_end)?;
        let latencies: Option<Vec<_>> =
            periods.iter().map(|p| Some((p.length(), milliseconds(p.latency_ms?)))).collect();
        let latency = latencies.map(|latencies| Steps::new(latencies, at_end)).transpose()?;
        Ok(RateAndLatency { rate, latency })
    }
}

impl Period {
    fn check(&self) -> Result<(), String> {
        let numbers = [
            ("duration_ms", Some(self.duration_ms), MOST_MS),
            ("bandwidth_kbps", Some(self.bandwidth_kbps), MOST_KBPS),
            ("latency_ms", self.latency_ms, MOST_MS),
        ];
        for (name, value, most) in numbers {
            match value {
                Some(value) if value < 0.0 => return Err(format!("`{name}` is {value}")),
                Some(value) if value > most => return Err(format!("a `{name}` of {value} is impossible")),
                _ => {}
            }
        }
        Ok(())
    }

    fn length(&self) -> Duration {
        milliseconds(self.duration_ms)
    }

    fn rate(&self) -> Bandwidth {
        Bandwidth::from_bps((self.bandwidth_kbps * 1e3 + 0.5) as u64)
    }
}

fn milliseconds(ms: f64) -> Duration {
    Duration::from_secs_f64(ms / 1e3)
}

/// The line on which the list's object with this index begins. The text is a valid list of flat objects whose
/// strings are field names, so every brace opens one.
fn line_of_object(text: &str, index: usize) -> usize {
    let before = text.match_indices('{').nth(index).map_or(0, |(at, _)| at);
    text[..before].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_give_rate_and_latency() {
        let text = r#"[{"duration_ms": 840, "bandwidth_kbps": 16823, "latency_ms": 20},
                       {"duration_ms": 1000.5, "bandwidth_kbps": 0.5, "latency_ms": 30}]"#;
        let trace = RateAndLatency::parse_json(text, AtEnd::Loop).unwrap();
        let rates: Vec<_> = trace.rate.iter().map(|(length, rate)| (length.as_micros(), rate.as_bps())).collect();
        assert_eq!(rates, [(840_000, 16_823_000), (1_000_500, 500)]);
        let latency = trace.latency.unwrap().map(|rtt| rtt / 2);
        assert_eq!(latency.value_at(Duration::from_millis(900)), Duration::from_millis(15));
    }

    #[test]
    fn latency_is_optional() {
        let text = r#"[{"duration_ms": 1, "bandwidth_kbps": 1}]"#;
        assert_eq!(RateAndLatency::parse_json(text, AtEnd::Hold).unwrap().latency, None);
    }

    #[test]
    fn errors_name_the_line() {
        let line = |text| match RateAndLatency::parse_json(text, AtEnd::Loop) {
            Err(TraceError { line: Some(line), .. }) => line,
            other => panic!("{other:?}"),
        };
        assert_eq!(line("[\n{\"duration_ms\": 1, \"bandwidth_kbps\": 1},\n{\"duration_ms\": 1}]"), 3);
        assert_eq!(line("[\n{\"duration_ms\": 1, \"bandwith_kbps\": 1}]"), 2);
        assert_eq!(
            line("[{\"duration_ms\": 1, \"bandwidth_kbps\": 1},\n\n{\"duration_ms\": 1, \"bandwidth_kbps\": -1}]"),
            3
        );
        let error = |text| RateAndLatency::parse_json(text, AtEnd::Loop).unwrap_err().to_string();
        assert!(error("[]").starts_with("the list is empty; expected a list of objects"));
        assert!(error("[{\"duration_ms\": 0, \"bandwidth_kbps\": 1}]").starts_with("no step lasts"));
        let huge = error("[\n{\"duration_ms\": 1, \"bandwidth_kbps\": 1e11}]");
        assert!(huge.starts_with("line 2: period 1: a `bandwidth_kbps` of 100000000000 is impossible"), "{huge}");
        assert_eq!(line("[\n{\"duration_ms\": NaN, \"bandwidth_kbps\": 1}]"), 2);
        assert_eq!(line("[\n{\"duration_ms\": 1e999, \"bandwidth_kbps\": 1}]"), 2);
    }
}
