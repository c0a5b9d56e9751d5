//! Media segments on the time axis of their period.
//!
//! ISO/IEC 23009-1, 5.3.9: a segment of a timeline begins at `t` ticks of the media; `presentationTimeOffset` is the
//! tick at which the period begins. The first `S` without `t` begins at tick zero, each other one where the one before
//! it ends. So
//! - what ends before the period begins, or begins after its end, is dropped, and what crosses one of them is cut;
//! - a segment that begins before the end of the one before it, which the standard does not allow, is played after it;
//! - a hole stays a hole: it has no segment, and dash.js's player jumps over it.

use super::time::from_nanos;
use crate::content::MAX_SEGMENTS;
use anabranch_units::Duration;

/// Segments of one duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Start in ticks, if stated.
    pub at: Option<u64>,
    pub ticks: u64,
    /// Number of segments after the first one; `None`: until the next run or the period's end.
    pub repeats: Option<u64>,
}

/// What is listed of a representation's time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed<'a> {
    pub runs: &'a [Run],
    /// Ticks per second.
    pub timescale: u64,
    /// The tick at which the period begins.
    pub offset: u64,
    /// Whether each one is listed. Then the period ends at a whole tick: the rest of a tick is no segment.
    pub timeline: bool,
}

/// What bounds the segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    /// Length of the period, if it has an end.
    pub period: Option<Duration>,
    /// The playing time that suffices.
    pub enough: Option<Duration>,
}

/// A media segment, or what is played of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Its number in the list, from zero.
    pub index: u64,
    /// The tick at which it begins when it is played whole: `$Time$` of a template.
    pub tick: u64,
    /// Where it begins in the period.
    pub start: Duration,
    /// The time that is played.
    pub duration: Duration,
    /// The time that its nominal size is of: in a timeline all of it, as it is fetched whole; else the time that is
    /// played, as the last one is shorter than the others.
    pub coded: Duration,
}

/// A part of the period without a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hole {
    pub at: Duration,
    pub length: Duration,
}

/// The segments of a representation in a period, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub pieces: Vec<Piece>,
    /// Parts between them, and before the first one, that have none.
    pub holes: Vec<Hole>,
    /// The most by which a segment begins before the end of the one before it.
    pub back: Duration,
    /// Whether there are segments at all, perhaps outside of the period.
    pub listed: bool,
    /// Whether the list ends because enough is played.
    pub limited: bool,
}

/// Why there are no segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unplayable {
    /// The period has no end, and the segments have none.
    Endless,
    /// The segments are described in the media file only.
    NeedsIndex,
    /// Several segments without durations.
    NoDurations,
    /// More than [`MAX_SEGMENTS`], or an invalid duration.
    TooMany,
}

/// A nanosecond is `timescale` of these units, and a tick a thousand million: so both are whole.
const UNITS_OF_TICK: u128 = 1_000_000_000;

/// Lays segments one after the other.
struct Layer {
    timeline: bool,
    timescale: u128,
    begin: u128,
    end: Option<u128>,
    enough: Option<Duration>,
    /// The end of what was laid.
    reached: u128,
    played: Duration,
    layout: Layout,
}

/// The segments within the period.
pub(super) fn lay(listed: &Listed<'_>, window: Window) -> Result<Layout, Unplayable> {
    let Listed { runs, offset, .. } = *listed;
    let timescale = u128::from(listed.timescale.max(1));
    let begin = u128::from(offset) * UNITS_OF_TICK;
    let length = window.period.map(|period| {
        let units = u128::from(period.as_nanos()) * timescale;
        if listed.timeline { units - units % UNITS_OF_TICK } else { units }
    });
    let end = length.map(|length| begin + length);
    let layout = Layout { listed: !runs.is_empty(), ..Layout::default() };
    let (enough, played) = (window.enough, Duration::ZERO);
    let mut layer = Layer { timeline: listed.timeline, timescale, begin, end, enough, reached: begin, played, layout };
    let (mut at, mut index) = (0, 0);
    for (n, run) in runs.iter().enumerate() {
        at = run.at.map_or(at, |ticks| u128::from(ticks) * UNITS_OF_TICK);
        let step = u128::from(run.ticks) * UNITS_OF_TICK;
        let next = runs.get(n + 1).and_then(|next| next.at).map(|ticks| u128::from(ticks) * UNITS_OF_TICK);
        let count = match (run.repeats, next.or(end)) {
            (Some(repeats), _) => u128::from(repeats) + 1,
            (None, Some(until)) => until.saturating_sub(at).div_ceil(step),
            (None, None) if enough.is_some() => u128::from(u64::MAX),
            (None, None) => return Err(Unplayable::Endless),
        };
        if layer.run(at, step, count, index)? {
            layer.layout.limited = true;
            break;
        }
        at = at.saturating_add(step.saturating_mul(count));
        index += count;
    }
    Ok(layer.layout)
}

impl Layer {
    /// Lays a run of segments; whether no more are needed.
    fn run(&mut self, at: u128, step: u128, count: u128, index: u128) -> Result<bool, Unplayable> {
        // What ends before the period begins is passed at once: it may be billions.
        let first = self.begin.saturating_sub(at) / step;
        for k in first..count {
            let start = at.saturating_add(step.saturating_mul(k));
            if self.end.is_some_and(|end| start >= end) {
                return Ok(false);
            }
            self.segment(start, step, index + k)?;
            if self.enough.is_some_and(|enough| self.played >= enough) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn segment(&mut self, start: u128, step: u128, index: u128) -> Result<(), Unplayable> {
        let from = start.max(self.begin);
        let whole = start.saturating_add(step);
        let to = self.end.map_or(whole, |end| whole.min(end));
        let duration = self.time(to - from).ok_or(Unplayable::TooMany)?;
        if duration.is_zero() {
            // A rest below a nanosecond is nothing; a segment that short is no segment.
            self.reached = self.reached.max(to);
            return if to - from < step { Ok(()) } else { Err(Unplayable::TooMany) };
        }
        if self.layout.pieces.len() == MAX_SEGMENTS as usize {
            return Err(Unplayable::TooMany);
        }
        let timescale = self.timescale;
        let place = |units: u128| from_nanos(units / timescale).unwrap_or(Duration::MAX);
        if start > self.reached {
            let hole = Hole { at: place(self.reached - self.begin), length: place(start - self.reached) };
            self.layout.holes.push(hole);
        }
        let index = u64::try_from(index).map_err(|_| Unplayable::TooMany)?;
        let coded = if self.timeline { place(step) } else { duration };
        // What begins later than ticks can say has a name that is never requested.
        let tick = u64::try_from(start / UNITS_OF_TICK).unwrap_or(u64::MAX);
        self.layout.pieces.push(Piece { index, tick, start: place(from - self.begin), duration, coded });
        self.played += duration;
        let back = place(self.reached.saturating_sub(from));
        self.layout.back = self.layout.back.max(back);
        self.reached = self.reached.max(to);
        Ok(())
    }

    /// Rounded down to nanoseconds.
    fn time(&self, units: u128) -> Option<Duration> {
        from_nanos(units / self.timescale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(at: Option<u64>, ticks: u64, repeats: i64) -> Run {
        Run { at, ticks, repeats: u64::try_from(repeats).ok() }
    }

    fn laid(runs: &[Run], offset: u64, period: Option<u64>, enough: Option<u64>) -> Result<Layout, Unplayable> {
        let listed = Listed { runs, timescale: 1_000, offset, timeline: true };
        lay(&listed, Window { period: period.map(Duration::from_secs), enough: enough.map(Duration::from_secs) })
    }

    fn played(runs: &[Run], offset: u64, period: Option<u64>) -> Result<Vec<u64>, Unplayable> {
        Ok(laid(runs, offset, period, None)?.pieces.iter().map(|piece| piece.duration.as_millis()).collect())
    }

    #[test]
    fn runs_repeat_and_end_with_the_period() {
        assert_eq!(played(&[run(Some(0), 2_000, 2)], 0, None), Ok(vec![2_000, 2_000, 2_000]));
        assert_eq!(played(&[run(Some(0), 2_000, 9)], 0, Some(3)), Ok(vec![2_000, 1_000]));
        assert_eq!(played(&[run(None, 2_000, -1)], 0, Some(5)), Ok(vec![2_000, 2_000, 1_000]));
        let two = [run(Some(0), 2_000, -1), run(Some(4_000), 500, 0)];
        assert_eq!(played(&two, 0, None), Ok(vec![2_000, 2_000, 500]));
        assert_eq!(played(&[run(None, 2_000, -1)], 0, None), Err(Unplayable::Endless));
        assert_eq!(played(&[run(Some(7_000), 2_000, -1)], 7_000, Some(4)), Ok(vec![2_000, 2_000]));
        assert_eq!(played(&[run(Some(0), 1, 2_000_000)], 0, None), Err(Unplayable::TooMany));
        let listed = Listed { runs: &[run(Some(0), 1, 0)], timescale: 2_000_000_000, offset: 0, timeline: true };
        assert_eq!(lay(&listed, Window::default()), Err(Unplayable::TooMany), "no nanosecond");
    }

    #[test]
    fn the_offset_is_where_the_period_begins() {
        let layout = laid(&[run(None, 2_000, 9)], 5_000, Some(30), None).unwrap();
        let first = layout.pieces[0];
        assert_eq!((first.index, first.start), (2, Duration::ZERO), "the first S without t is at zero");
        assert_eq!((first.coded, first.duration), (Duration::from_secs(2), Duration::from_secs(1)));
        assert_eq!((layout.pieces.len(), layout.pieces[7].index), (8, 9));
        assert_eq!(layout.holes, []);
        let before = laid(&[run(Some(0), 2_000, 1)], 5_000, Some(30), None).unwrap();
        assert_eq!((before.pieces.len(), before.listed), (0, true));
        let far = laid(&[run(None, 1, i64::MAX)], u64::MAX, None, Some(1)).unwrap();
        assert!(far.pieces.is_empty(), "what is before the period takes no time to pass");
    }

    #[test]
    fn holes_stay_and_a_step_back_is_noticed() {
        let layout = laid(&[run(Some(1_000), 2_000, 1), run(Some(9_000), 2_000, 0)], 0, Some(20), None).unwrap();
        let seconds = |at, length| Hole { at: Duration::from_secs(at), length: Duration::from_secs(length) };
        assert_eq!(layout.holes, [seconds(0, 1), seconds(5, 4)]);
        assert_eq!(layout.pieces[2].start, Duration::from_secs(9));
        let back = [run(Some(0), 2_000, 4), run(Some(5_000), 2_000, 4)];
        let layout = laid(&back, 0, None, None).unwrap();
        assert_eq!((layout.pieces.len(), layout.back), (10, Duration::from_secs(5)));
        assert_eq!(layout.holes, []);
    }

    #[test]
    fn a_playing_time_counts_from_the_first_segment() {
        let epoch = [run(Some(1_600_000_000_000), 6_000, 49)];
        assert_eq!(laid(&epoch, 0, None, Some(60)).unwrap().pieces.len(), 10);
        assert_eq!(laid(&epoch, 0, None, None).unwrap().pieces.len(), 50);
        let open = [run(Some(1_600_000_000_000), 6_000, -1)];
        assert_eq!(laid(&open, 0, None, Some(62)).unwrap().pieces.len(), 11);
        assert_eq!(laid(&open, 0, None, None), Err(Unplayable::Endless));
    }
}
