//! Mahimahi's packet-delivery traces (Netravali et al., USENIX ATC 2015; recorded with the Saturator of Winstein et
//! al., NSDI 2013): every line is a moment, in milliseconds, at which the link can move up to 1500 bytes.

use super::{TraceError, content};
use anabranch_units::{Bandwidth, Duration};

/// What a delivery opportunity can move.
pub const OPPORTUNITY_BYTES: u32 = 1500;

/// Moments at which a link can move 1500 bytes each. After the last one the trace begins again, so that a
/// trace which holds only "1" gives one opportunity in every millisecond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opportunities {
    /// Ascending, in nanoseconds from the beginning of the trace.
    times: Vec<u64>,
}

impl Opportunities {
    /// Opportunities at these times after the beginning, which must not descend; the last one is also the period of
    /// the loop, so it must not be zero.
    pub fn new(times: impl IntoIterator<Item = Duration>) -> Result<Self, TraceError> {
        let times: Vec<u64> = times.into_iter().map(Duration::as_nanos).collect();
        if !times.is_sorted() {
            return Err(TraceError::Whole("is not in the order of time"));
        }
        match times.last() {
            None => Err(TraceError::Whole("is empty")),
            Some(0) => Err(TraceError::Whole("ends at time zero, so it cannot repeat")),
            Some(_) => Ok(Opportunities { times }),
        }
    }

    /// Reads a trace: one whole number of milliseconds per line, never less than the line before.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut times: Vec<Duration> = Vec::new();
        for (number, line) in content(text) {
            let Ok(ms) = line.parse::<u32>() else {
                return Err(TraceError::at(number, format!("expected whole milliseconds, not \"{line}\"")));
            };
            let time = Duration::from_millis(u64::from(ms));
            if times.last().is_some_and(|last| time < *last) {
                return Err(TraceError::at(number, "the time lies before the previous line's"));
            }
            times.push(time);
        }
        Opportunities::new(times)
    }

    /// How long the trace is.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.times[self.times.len() - 1])
    }

    /// The rate of a sender that uses every opportunity in full.
    pub fn mean_rate(&self) -> Bandwidth {
        Bandwidth::from_bytes_per(self.times.len() as u64 * u64::from(OPPORTUNITY_BYTES), self.period())
    }

    /// When they come, in nanoseconds from the beginning.
    pub(crate) fn times(&self) -> &[u64] {
        &self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_a_time_per_line() {
        let trace = Opportunities::parse("0\n2\n2\r\n5\n").unwrap();
        assert_eq!(trace.times(), [0, 2_000_000, 2_000_000, 5_000_000]);
        assert_eq!(trace.period(), Duration::from_millis(5));
        assert_eq!(trace.mean_rate(), Bandwidth::from_bps(4 * 12_000 * 200));
    }

    #[test]
    fn errors_name_the_line() {
        let error = |text| Opportunities::parse(text).unwrap_err().to_string();
        assert_eq!(error("1\n2\n1.5\n"), "line 3: expected whole milliseconds, not \"1.5\"");
        assert_eq!(error("1\n-2\n"), "line 2: expected whole milliseconds, not \"-2\"");
        assert_eq!(error("7\n\n6\n"), "line 3: the time lies before the previous line's");
        assert_eq!(error("0\n0\n"), "the trace ends at time zero, so it cannot repeat");
        assert_eq!(error("\n"), "the trace is empty");
    }
}
