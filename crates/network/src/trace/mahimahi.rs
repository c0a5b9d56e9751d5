//! Mahimahi's packet-delivery traces (Netravali et al., USENIX ATC 2015; recorded with the Saturator of Winstein et
//! al., NSDI 2013): every line is a time, in milliseconds, at which the link can send up to 1500 bytes.

use super::steps::check_entries;
use super::{TraceError, excerpt};
use anabranch_units::{Bandwidth, Duration};

/// Bytes that one delivery opportunity can send.
pub const OPPORTUNITY_BYTES: u32 = 1500;

/// 292 years, about what 63 bits of nanoseconds hold.
const MOST_MS: u64 = 9_200_000_000_000;

/// Times at which a link can send 1500 bytes each. After the last one the trace repeats, so that a
/// trace which holds only "1" gives one opportunity in every millisecond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opportunities {
    /// Ascending, in nanoseconds from the start of the trace, none after its end.
    times: Vec<u64>,
    /// When the trace repeats, in nanoseconds.
    period: u64,
}

impl Opportunities {
    /// Opportunities at these times after the start, which must not descend; the last one is also the period of
    /// the loop, so it must not be zero.
    pub fn new(times: impl IntoIterator<Item = Duration>) -> Result<Self, TraceError> {
        let times: Vec<u64> = times.into_iter().map(Duration::as_nanos).collect();
        let period = times.last().copied().unwrap_or(0);
        Opportunities::with_period(times, Duration::from_nanos(period))
    }

    /// Opportunities with an explicit period, in nanoseconds; none may be after it.
    pub(super) fn with_period(times: Vec<u64>, period: Duration) -> Result<Self, TraceError> {
        let period = period.as_nanos();
        if !times.is_sorted() {
            return Err(TraceError::whole("the opportunities are not in the order of time"));
        }
        match times.last() {
            None => {
                Err(TraceError::whole("no packet is ever delivered")
                    .expecting("a whole number of milliseconds per line"))
            }
            Some(_) if period == 0 => {
                Err(TraceError::whole("the trace ends at time zero, so it cannot repeat")
                    .expecting("a later last time"))
            }
            Some(last) if *last > period => Err(TraceError::whole("an opportunity lies after the trace's end")),
            Some(_) => Ok(Opportunities { times, period }),
        }
    }

    /// Reads a trace: one whole number of milliseconds per line, never less than the line before. What mahimahi-link
    /// refuses (`LinkQueue` in src/frontend/link_queue.cc, `myatoi` in src/util/util.cc) is refused: empty lines,
    /// comments, fractions, blanks behind the number.
    ///
    /// Errors give the line.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut times: Vec<Duration> = Vec::new();
        for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line)) {
            if line.is_empty() {
                let error = TraceError::at(number, "the line is empty, which mahimahi-link refuses");
                return Err(error.expecting("a whole number of milliseconds per line"));
            }
            let Some(ms) = line.trim_start().parse::<u64>().ok().filter(|ms| *ms <= MOST_MS) else {
                let problem = format!("\"{}\" is no time in milliseconds", excerpt(line));
                return Err(TraceError::at(number, problem).expecting("a whole number that is not negative"));
            };
            let time = Duration::from_millis(ms);
            if times.last().is_some_and(|last| time < *last) {
                return Err(
                    TraceError::at(number, "the time lies before the previous line's").expecting("ascending times")
                );
            }
            check_entries(times.len())?;
            times.push(time);
        }
        Opportunities::new(times)
    }

    /// Length of the trace.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period)
    }

    /// The mean rate if every opportunity is used in full.
    pub fn mean_rate(&self) -> Bandwidth {
        Bandwidth::from_bytes_per(self.times.len() as u64 * u64::from(OPPORTUNITY_BYTES), self.period())
    }

    /// The trace from `offset` on; the part before `offset` follows after the end.
    pub fn shifted(&self, offset: Duration) -> Self {
        let offset = offset.as_nanos() % self.period;
        let first = self.times.partition_point(|time| *time < offset);
        let later = self.times[first..].iter().map(|time| time - offset);
        let earlier = self.times[..first].iter().map(|time| time + self.period - offset);
        Opportunities { times: later.chain(earlier).collect(), period: self.period }
    }

    /// The opportunities until `length`; beyond the end of the trace, those of its next passes.
    ///
    /// Errors: there is none, or there are too many.
    pub fn lasting(&self, length: Duration) -> Result<Self, TraceError> {
        let mut times: Vec<u64> = Vec::new();
        let mut began: u64 = 0;
        while began < length.as_nanos() {
            let within = self.times.partition_point(|time| began.saturating_add(*time) <= length.as_nanos());
            times.extend(self.times[..within].iter().map(|time| began + time));
            check_entries(times.len())?;
            began = began.saturating_add(self.period);
        }
        Opportunities::with_period(times, length)
    }

    /// `factor` times as many opportunities, at the same times: after k of the trace's, `factor` k have come, rounded
    /// down.
    ///
    /// Errors: none is left, or there are too many.
    pub fn scaled(&self, factor: f64) -> Result<Self, TraceError> {
        check_entries((self.times.len() as f64 * factor) as usize)?;
        let until = |k: usize| (k as f64 * factor) as usize;
        let repeat = |(k, time): (usize, &u64)| std::iter::repeat_n(*time, until(k + 1) - until(k));
        let times = self.times.iter().enumerate().flat_map(repeat).collect();
        Opportunities::with_period(times, self.period())
    }

    /// The times after the start.
    pub fn iter(&self) -> impl Iterator<Item = Duration> {
        self.times.iter().copied().map(Duration::from_nanos)
    }

    /// Times in nanoseconds from the start.
    pub(crate) fn times(&self) -> &[u64] {
        &self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_a_time_per_line() {
        let trace = Opportunities::parse("0\n2\n2\n5\n").unwrap();
        assert_eq!(trace.times(), [0, 2_000_000, 2_000_000, 5_000_000]);
        assert_eq!(trace.period(), Duration::from_millis(5));
        assert_eq!(trace.mean_rate(), Bandwidth::from_bps(4 * 12_000 * 200));
    }

    fn ms(trace: &Opportunities) -> Vec<u64> {
        trace.times().iter().map(|time| time / 1_000_000).collect()
    }

    #[test]
    fn parts_wrap_around_and_repeat() {
        let trace = Opportunities::parse("0\n2\n2\n5\n").unwrap();
        let at = |n| trace.shifted(Duration::from_millis(n));
        assert_eq!(
            [ms(&at(0)), ms(&at(2)), ms(&at(3)), ms(&at(13))],
            [[0, 2, 2, 5], [0, 0, 3, 3], [2, 2, 4, 4], [2, 2, 4, 4]]
        );
        assert_eq!(at(3).period(), Duration::from_millis(5));
        let part = |n| trace.lasting(Duration::from_millis(n)).unwrap();
        assert_eq!((ms(&part(4)), part(4).period()), (vec![0, 2, 2], Duration::from_millis(4)));
        assert_eq!(ms(&part(7)), [0, 2, 2, 5, 5, 7, 7]);
        assert!(at(3).lasting(Duration::from_millis(1)).is_err());
    }

    #[test]
    fn a_factor_multiplies_opportunities() {
        let trace = Opportunities::parse("1\n2\n3\n4\n").unwrap();
        assert_eq!(ms(&trace.scaled(0.5).unwrap()), [2, 4]);
        assert_eq!(ms(&trace.scaled(1.5).unwrap()), [1, 2, 2, 3, 4, 4]);
        assert!(trace.scaled(0.1).is_err() && trace.scaled(1e9).is_err());
    }

    #[test]
    fn errors_name_the_line() {
        let error = |text: &str| Opportunities::parse(text).unwrap_err().to_string();
        let whole = "expected a whole number that is not negative";
        for bad in ["1.5", "-2", "NaN", "9200000000001", "1,2", "3 # x", "# x", "3 ", "0x3", "3e1"] {
            assert_eq!(
                error(&format!("1\n2\n{bad}\n")),
                format!("line 3: \"{bad}\" is no time in milliseconds; {whole}")
            );
        }
        assert!(error("7\n6\n").starts_with("line 2: the time lies before the previous line's"));
        assert!(
            error("\n5\n").starts_with("line 1: the line is empty") && error("5\n\n6").starts_with("line 2: the line")
        );
        assert_eq!(ms(&Opportunities::parse(" 5\n+6").unwrap()), [5, 6]);
        assert!(error("0\n0\n").starts_with("the trace ends at time zero, so it cannot repeat"));
        assert!(error("").starts_with("no packet is ever delivered"));
    }
}
