//! What follows from a table's samples: their steps, their gaps, and whether they can be of a network.

use super::super::{AtEnd, Steps, TraceError};
use super::{Gap, RateUnit};
use anabranch_units::text::write_time;
use anabranch_units::{Bandwidth, Duration};

/// A row's time, counted from the first one, its rate as written, and its line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) at: Duration,
    pub(super) value: f64,
    pub(super) line: u32,
}

/// A gap is longer than this many usual steps: fewer may be lost samples of a busy logger.
const GAP_STEPS: u64 = 10;

/// Steps that are much longer than the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gaps {
    /// How many there are.
    pub count: usize,
    /// The longest one.
    pub longest: Duration,
    /// The line in front of the longest one.
    pub line: u32,
    /// All together.
    pub total: Duration,
}

/// The usual step: the median of those that have a length. A second where there is none.
pub(super) fn usual_step(samples: &[Sample], rows_are: Option<Duration>) -> Duration {
    let lengths = samples.windows(2).map(|pair| pair[1].at - pair[0].at);
    let mut lengths: Vec<Duration> = lengths.filter(|length| !length.is_zero()).collect();
    if lengths.is_empty() {
        // A single sample has no step to take; its length then has no meaning.
        return rows_are.unwrap_or(Duration::from_secs(1));
    }
    let middle = lengths.len() / 2;
    *lengths.select_nth_unstable(middle).1
}

fn is_gap(length: Duration, step: Duration) -> bool {
    length.as_nanos() / GAP_STEPS > step.as_nanos()
        || length.as_nanos() / GAP_STEPS == step.as_nanos() && !length.as_nanos().is_multiple_of(GAP_STEPS)
}

/// The gaps; `None` without any.
pub(super) fn gaps(samples: &[Sample], step: Duration) -> Option<Gaps> {
    let mut found = None::<Gaps>;
    for pair in samples.windows(2) {
        let length = pair[1].at - pair[0].at;
        if !is_gap(length, step) {
            continue;
        }
        let gaps = found.get_or_insert(Gaps { count: 0, longest: Duration::ZERO, line: 0, total: Duration::ZERO });
        gaps.count += 1;
        gaps.total += length;
        if length > gaps.longest {
            (gaps.longest, gaps.line) = (length, pair[0].line);
        }
    }
    found
}

/// How long each sample holds; the last one as long as the one before it.
fn lengths(samples: &[Sample], step: Duration) -> impl Iterator<Item = Duration> {
    let between = samples.windows(2).map(|pair| pair[1].at - pair[0].at);
    let last = between.clone().rev().find(|length| !length.is_zero()).unwrap_or(step);
    between.chain([last])
}

/// The samples as steps. A rate holds until the next sample; the last one as long as the one before it. In a gap it
/// holds, or the rate is zero after a usual step.
///
/// Errors: no time passes.
pub(super) fn steps(
    samples: &[Sample],
    unit: RateUnit,
    (step, gap): (Duration, Option<Gap>),
    at_end: AtEnd,
) -> Result<Steps<Bandwidth>, TraceError> {
    let steps = samples.iter().zip(lengths(samples, step)).flat_map(|(sample, length)| {
        let held = if gap == Some(Gap::Zero) && is_gap(length, step) { step } else { length };
        [(held, rate(sample.value, unit, held)), (length - held, Bandwidth::from_bps(0))]
    });
    Steps::new(steps, at_end)
}

/// The rate of a row that lasts so long.
pub(super) fn rate(value: f64, unit: RateUnit, length: Duration) -> Bandwidth {
    let seconds = if unit.is_per_interval() && !length.is_zero() { length.as_secs_f64() } else { 1.0 };
    Bandwidth::from_bps((value * unit.factor() / seconds + 0.5) as u64)
}

/// The line of an amount that would be a higher rate than any link has, as its row lasts for a moment only.
pub(super) fn impossible(samples: &[Sample], unit: RateUnit, step: Duration, most_bps: f64) -> Option<u32> {
    if !unit.is_per_interval() {
        return None;
    }
    let mut rates = samples.iter().zip(lengths(samples, step)).filter(|(_, length)| !length.is_zero());
    rates
        .find(|(sample, length)| rate(sample.value, unit, *length).as_bps() as f64 > most_bps)
        .map(|(sample, _)| sample.line)
}

/// Rows that share their time with a later one, which counts.
pub(super) fn repeated(samples: &[Sample]) -> usize {
    samples.windows(2).filter(|pair| pair[0].at == pair[1].at).count()
}

/// The sentence about gaps.
pub(super) fn warning_of(gaps: &Gaps, step: Duration, gap: Option<Gap>) -> String {
    let Gaps { count, longest, line, .. } = gaps;
    let many = if *count == 1 { String::new() } else { format!("{count} gaps; the longest is ") };
    let what = if gap == Some(Gap::Zero) { "is zero" } else { "of the last row before it holds" };
    format!(
        "{many}a gap of {} after line {line}, where the usual step is {}: the rate {what} in it (`gap` decides)",
        write_time(*longest),
        write_time(step)
    )
}
