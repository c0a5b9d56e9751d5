//! A value that is constant in steps.

use super::TraceError;
use anabranch_units::{Bandwidth, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What follows the last step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AtEnd {
    /// The first step again.
    #[default]
    Loop,
    /// The last value for ever.
    Hold,
}

/// A larger trace, hours of packets at gigabits per second, is a mistake and would fill the memory.
pub(super) const MOST_ENTRIES: usize = 20_000_000;

/// Refuses a trace that becomes too large.
pub(super) fn check_entries(entries: usize) -> Result<(), TraceError> {
    if entries <= MOST_ENTRIES {
        return Ok(());
    }
    let problem = format!("the trace would have more than {MOST_ENTRIES} entries");
    Err(TraceError::whole(problem).expecting("a shorter duration or a lower rate"))
}

/// A value over time, constant in steps. Time starts when a link gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps<T> {
    /// The start of each step, in nanoseconds; the first is 0, each later one is larger.
    starts: Vec<u64>,
    values: Vec<T>,
    /// When the last step ends.
    period: u64,
    at_end: AtEnd,
}

/// A step with its value and its remaining time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step<T> {
    pub(crate) value: T,
    pub(crate) index: usize,
    /// [`Duration::MAX`]: no end.
    pub(crate) left: Duration,
}

impl<T: Copy> Steps<T> {
    /// These values for these times, one after the other. Steps of length zero are dropped.
    ///
    /// Errors: no step has a length, or the total exceeds 2^63 ns (292 years).
    pub fn new(steps: impl IntoIterator<Item = (Duration, T)>, at_end: AtEnd) -> Result<Self, TraceError> {
        let mut made = Steps { starts: Vec::new(), values: Vec::new(), period: 0, at_end };
        for (length, value) in steps {
            if length.is_zero() {
                continue;
            }
            made.starts.push(made.period);
            made.values.push(value);
            made.period = made.period.saturating_add(length.as_nanos());
        }
        match made.period {
            0 => Err(TraceError::whole("no step lasts").expecting("times that grow")),
            period if period > i64::MAX as u64 => {
                Err(TraceError::whole("the trace is longer than 292 years").expecting("times in seconds"))
            }
            _ => Ok(made),
        }
    }

    /// Total length of the steps.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period)
    }

    /// What follows the last step.
    pub fn at_end(&self) -> AtEnd {
        self.at_end
    }

    /// The steps, each with its length and value.
    pub fn iter(&self) -> impl Iterator<Item = (Duration, T)> + '_ {
        let ends = self.starts.iter().skip(1).copied().chain([self.period]);
        let lengths = self.starts.iter().zip(ends).map(|(start, end)| Duration::from_nanos(end - start));
        lengths.zip(self.values.iter().copied())
    }

    /// The same steps with other values, such as half a round trip for a one-way delay.
    pub fn map<U: Copy>(&self, f: impl FnMut(T) -> U) -> Steps<U> {
        let values = self.values.iter().copied().map(f).collect();
        Steps { starts: self.starts.clone(), values, period: self.period, at_end: self.at_end }
    }

    /// The steps from `offset` on. A loop continues with its beginning after its end, so its length is unchanged;
    /// steps that hold the last value become shorter, and have this value from the end on.
    pub fn shifted(&self, offset: Duration) -> Self {
        let step = self.step_at(offset, 0);
        let first = step.left.min(Duration::from_nanos(self.end_of(step.index) - self.starts[step.index]));
        let later = self.iter().skip(step.index + 1);
        let steps = [(first, step.value)].into_iter().chain(later);
        let shifted = match self.at_end {
            AtEnd::Hold => Steps::new(steps, self.at_end),
            AtEnd::Loop => {
                let begun = self.end_of(step.index) - self.starts[step.index] - first.as_nanos();
                let wrapped = self.iter().take(step.index).chain([(Duration::from_nanos(begun), step.value)]);
                Steps::new(steps.chain(wrapped), self.at_end)
            }
        };
        shifted.expect("a part of what lasts, and no longer")
    }

    /// The first part of this length; beyond the end, its continuation.
    ///
    /// Errors: a length of zero, or too many steps.
    pub fn lasting(&self, length: Duration) -> Result<Self, TraceError> {
        let mut steps: Vec<(Duration, T)> = Vec::new();
        let (mut left, mut at) = (length, Duration::ZERO);
        while !left.is_zero() {
            let step = self.step_at(at, 0);
            let taken = step.left.min(left);
            steps.push((taken, step.value));
            left -= taken;
            at += taken;
            check_entries(steps.len())?;
        }
        Steps::new(steps, self.at_end)
    }

    /// The value `elapsed` after the beginning.
    pub fn value_at(&self, elapsed: Duration) -> T {
        self.step_at(elapsed, 0).value
    }

    /// The step that holds `elapsed` after the beginning. `hint` is a step that is probably the right one; it saves
    /// the search and never changes the result.
    pub(crate) fn step_at(&self, elapsed: Duration, hint: usize) -> Step<T> {
        let mut offset = elapsed.as_nanos();
        if offset >= self.period {
            if self.at_end == AtEnd::Hold {
                let index = self.values.len() - 1;
                return Step { value: self.values[index], index, left: Duration::MAX };
            }
            offset %= self.period;
        }
        let index = if self.holds(hint, offset) { hint } else { self.search(offset) };
        let forever = self.at_end == AtEnd::Hold && index + 1 == self.values.len();
        let left = if forever { Duration::MAX } else { Duration::from_nanos(self.end_of(index) - offset) };
        Step { value: self.values[index], index, left }
    }

    fn holds(&self, index: usize, offset: u64) -> bool {
        index < self.starts.len() && self.starts[index] <= offset && offset < self.end_of(index)
    }

    fn search(&self, offset: u64) -> usize {
        self.starts.partition_point(|start| *start <= offset) - 1
    }

    fn end_of(&self, index: usize) -> u64 {
        self.starts.get(index + 1).copied().unwrap_or(self.period)
    }
}

impl Steps<Bandwidth> {
    /// The mean rate over one pass.
    pub fn mean_rate(&self) -> Bandwidth {
        let bits: u128 =
            self.iter().map(|(length, rate)| u128::from(length.as_nanos()) * u128::from(rate.as_bps())).sum();
        Bandwidth::from_bps((bits / u128::from(self.period)) as u64)
    }

    /// When a full link has moved this many bits, more than none; `None` if it never does.
    pub(super) fn moved_after(&self, bits: u64) -> Option<Duration> {
        const NANOS: u128 = 1_000_000_000;
        let here = |(length, rate): (Duration, Bandwidth)| u128::from(length.as_nanos()) * u128::from(rate.as_bps());
        let pass: u128 = self.iter().map(here).sum();
        let (mut missing, mut began) = (u128::from(bits) * NANOS, Duration::ZERO);
        if pass < missing {
            let last = self.values.last().map_or(0, |rate| rate.as_bps());
            match self.at_end {
                _ if pass == 0 => return None,
                AtEnd::Hold if last == 0 => return None,
                AtEnd::Hold => {
                    let more = (missing - pass).div_ceil(u128::from(last));
                    return Some(self.period() + Duration::from_nanos(u64::try_from(more).unwrap_or(u64::MAX / 2)));
                }
                AtEnd::Loop => {
                    let passes = (missing - 1) / pass;
                    missing -= passes * pass;
                    began = Duration::from_nanos(self.period.saturating_mul(passes as u64).min(u64::MAX / 2));
                }
            }
        }
        for (length, rate) in self.iter() {
            let here = here((length, rate));
            if here >= missing {
                return Some(began + Duration::from_nanos(missing.div_ceil(u128::from(rate.as_bps())) as u64));
            }
            missing -= here;
            began += length;
        }
        None
    }

    /// The share of time in which the rate is zero, 0 to 1.
    pub fn zero_share(&self) -> f64 {
        let zero: u64 = self.iter().filter(|(_, rate)| rate.as_bps() == 0).map(|(length, _)| length.as_nanos()).sum();
        zero as f64 / self.period as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn three(at_end: AtEnd) -> Steps<char> {
        Steps::new([(MS(10), 'a'), (MS(0), 'x'), (MS(20), 'b'), (MS(5), 'c')], at_end).unwrap()
    }

    #[test]
    fn values_hold_until_the_next_step_and_loop_at_the_end() {
        let steps = three(AtEnd::Loop);
        let found: String = [0, 9, 10, 29, 30, 34, 35, 44, 45, 350].map(|ms| steps.value_at(MS(ms))).iter().collect();
        assert_eq!(found, "aabbccaaba");
        assert_eq!(steps.period(), MS(35));
        assert_eq!(steps.step_at(MS(35 + 12), 0), Step { value: 'b', index: 1, left: MS(18) });
    }

    #[test]
    fn the_last_value_holds_for_ever_when_asked() {
        let steps = three(AtEnd::Hold);
        assert_eq!(steps.step_at(MS(32), 0), Step { value: 'c', index: 2, left: Duration::MAX });
        assert_eq!(steps.step_at(MS(900), 0), Step { value: 'c', index: 2, left: Duration::MAX });
    }

    #[test]
    fn a_wrong_hint_changes_nothing() {
        let steps = three(AtEnd::Loop);
        for ms in 0..80 {
            for hint in 0..5 {
                assert_eq!(steps.step_at(MS(ms), hint), steps.step_at(MS(ms), 0));
            }
        }
    }

    fn spelled(steps: &Steps<char>) -> String {
        steps.iter().map(|(length, value)| format!("{value}{} ", length.as_millis())).collect()
    }

    #[test]
    fn a_shifted_loop_begins_later_and_wraps_around() {
        let loops = three(AtEnd::Loop);
        assert_eq!(spelled(&loops.shifted(MS(0))), "a10 b20 c5 ");
        assert_eq!(spelled(&loops.shifted(MS(10))), "b20 c5 a10 ");
        assert_eq!(spelled(&loops.shifted(MS(14))), "b16 c5 a10 b4 ");
        assert_eq!(spelled(&loops.shifted(MS(14 + 3 * 35))), "b16 c5 a10 b4 ");
        for offset in 0..80 {
            for ms in 0..80 {
                assert_eq!(loops.shifted(MS(offset)).value_at(MS(ms)), loops.value_at(MS(offset + ms)));
                let holds = three(AtEnd::Hold);
                assert_eq!(holds.shifted(MS(offset)).value_at(MS(ms)), holds.value_at(MS(offset + ms)));
            }
        }
    }

    #[test]
    fn a_part_is_cut_off_or_goes_on_as_the_whole_does() {
        assert_eq!(spelled(&three(AtEnd::Loop).lasting(MS(12)).unwrap()), "a10 b2 ");
        assert_eq!(spelled(&three(AtEnd::Loop).lasting(MS(37)).unwrap()), "a10 b20 c5 a2 ");
        assert_eq!(spelled(&three(AtEnd::Hold).lasting(MS(90)).unwrap()), "a10 b20 c60 ");
        assert!(three(AtEnd::Loop).lasting(Duration::ZERO).is_err());
        assert!(three(AtEnd::Loop).lasting(Duration::from_secs(1 << 33)).is_err());
    }

    #[test]
    fn a_trace_without_length_is_refused() {
        assert!(Steps::new([(Duration::ZERO, 'a')], AtEnd::Loop).is_err());
        assert!(Steps::<char>::new([], AtEnd::Loop).is_err());
        assert!(Steps::new([(Duration::MAX, 'a')], AtEnd::Loop).is_err());
    }

    #[test]
    fn bits_are_moved_in_as_many_passes_as_it_takes() {
        let rates = [(MS(10), Bandwidth::from_bps(0)), (MS(30), Bandwidth::from_bps(1000))];
        // 30 bits in a pass of 40 ms.
        let steps = |at_end| Steps::new(rates, at_end).unwrap();
        let after = |bits, at_end| steps(at_end).moved_after(bits).map(Duration::as_millis);
        assert_eq!([1, 30, 31, 60, 300].map(|bits| after(bits, AtEnd::Loop)), [11, 40, 51, 80, 400].map(Some));
        assert_eq!([1, 30, 31, 300].map(|bits| after(bits, AtEnd::Hold)), [11, 40, 41, 310].map(Some));
        let zero = Steps::new([(MS(5), Bandwidth::from_bps(0))], AtEnd::Loop).unwrap();
        assert_eq!((zero.moved_after(1), zero.zero_share(), steps(AtEnd::Loop).zero_share()), (None, 1.0, 0.25));
    }

    #[test]
    fn the_mean_rate_weighs_by_time() {
        let rates = [(MS(10), Bandwidth::from_mbps(1)), (MS(30), Bandwidth::from_mbps(3))];
        assert_eq!(Steps::new(rates, AtEnd::Loop).unwrap().mean_rate(), Bandwidth::from_bps(2_500_000));
    }
}
