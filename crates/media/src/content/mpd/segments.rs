//! Segments of a representation: SegmentTemplate, SegmentList or SegmentBase, with inheritance.
//!
//! ISO/IEC 23009-1, 5.3.9: the elements may occur in Period, AdaptationSet and Representation; attributes of an inner
//! one of the same kind replace those of an outer one, and the innermost kind counts.

use super::super::{ContentError, ladders::equal_parts};
use super::time::from_ticks;
use super::xml::Element;
use crate::content::MAX_SEGMENTS;
use anabranch_units::Duration;

/// The media segments of one representation, as described by the MPD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Division {
    /// A SegmentTimeline.
    Timeline {
        timescale: u64,
        /// `presentationTimeOffset`: the tick that is the period's begin.
        offset: u64,
        runs: Vec<Run>,
    },
    /// Segments of one duration; `count` if it is stated (a SegmentList's length, `endNumber`).
    Equal { duration: Duration, count: Option<u64> },
    /// A number of segments without durations: a single one fills the period.
    Undated { count: u64 },
    /// One file with an index that is not in the MPD.
    Indexed,
}

/// An S element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Start in ticks, if stated.
    pub at: Option<u64>,
    pub ticks: u64,
    /// Number of segments after the first one; `None`: until the next run or the period's end.
    pub repeats: Option<u64>,
}

/// The division, and the stated sizes of segments and of the initialisation segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segments {
    pub division: Division,
    /// Empty, or one entry per segment.
    pub sizes: Vec<Option<u64>>,
    pub init_bytes: Option<u64>,
}

/// Elements of one kind, innermost first.
struct Inherited<'a>(Vec<Element<'a>>);

impl<'a> Inherited<'a> {
    fn find(levels: &[Element<'a>], kind: &'a str) -> Self {
        Inherited(levels.iter().filter_map(|level| level.child(kind)).collect())
    }

    /// The innermost element that has this attribute.
    fn owner(&self, attribute: &str) -> Option<Element<'a>> {
        self.0.iter().copied().find(|e| e.text(attribute).is_some())
    }

    fn number(&self, attribute: &str) -> Result<Option<u64>, ContentError> {
        match self.owner(attribute) {
            Some(element) => element.number(attribute, "a whole number that is not negative"),
            None => Ok(None),
        }
    }

    fn child(&self, name: &'a str) -> Option<Element<'a>> {
        self.0.iter().find_map(|e| e.child(name))
    }

    fn init_bytes(&self) -> Result<Option<u64>, ContentError> {
        self.child("Initialization").map_or(Ok(None), |init| init.range_bytes("range"))
    }
}

/// Reads the division of a representation. `levels`: Representation, AdaptationSet, Period.
pub(super) fn read(levels: &[Element<'_>]) -> Result<Segments, ContentError> {
    const KINDS: [&str; 3] = ["SegmentTemplate", "SegmentList", "SegmentBase"];
    let innermost = levels.iter().find_map(|level| KINDS.into_iter().find(|kind| level.child(kind).is_some()));
    let none = Segments { division: Division::Indexed, sizes: Vec::new(), init_bytes: None };
    let Some(kind) = innermost else { return Ok(none) };
    let inherited = Inherited::find(levels, kind);
    let init_bytes = inherited.init_bytes()?;
    match kind {
        "SegmentTemplate" => {
            check_template(&inherited)?;
            let (start, end) = (inherited.number("startNumber")?.unwrap_or(1), inherited.number("endNumber")?);
            let count = end.map(|end| (end + 1).saturating_sub(start));
            Ok(Segments { division: division(&inherited, count)?, init_bytes, ..none })
        }
        "SegmentList" => {
            let urls: Vec<_> = inherited
                .0
                .iter()
                .map(|e| e.children("SegmentURL").collect::<Vec<_>>())
                .find(|u| !u.is_empty())
                .unwrap_or_default();
            let sizes: Vec<_> = urls.iter().map(|url| url.range_bytes("mediaRange")).collect::<Result<_, _>>()?;
            Ok(Segments { division: division(&inherited, Some(urls.len() as u64))?, sizes, init_bytes })
        }
        _ => Ok(Segments { init_bytes, ..none }),
    }
}

/// Without $Number$ or $Time$ all segments would have the same URL.
fn check_template(template: &Inherited<'_>) -> Result<(), ContentError> {
    let Some(owner) = template.owner("media") else { return Ok(()) };
    let media = owner.text("media").unwrap_or_default();
    if ["$Number", "$Time", "$SubNumber"].iter().any(|id| media.contains(id)) {
        return Ok(());
    }
    Err(owner.attribute_error("media", format!("media=\"{media}\" has neither $Number$ nor $Time$")))
}

fn division(element: &Inherited<'_>, count: Option<u64>) -> Result<Division, ContentError> {
    let timescale = element.number("timescale")?.unwrap_or(1);
    if timescale == 0 {
        let owner = element.owner("timescale").unwrap_or(element.0[0]);
        return Err(owner.attribute_error("timescale", "timescale=\"0\" counts no time"));
    }
    if let Some(timeline) = element.child("SegmentTimeline") {
        let offset = element.number("presentationTimeOffset")?.unwrap_or(0);
        let runs = timeline.children("S").map(|s| read_run(&s)).collect::<Result<_, _>>()?;
        return Ok(Division::Timeline { timescale, offset, runs });
    }
    let Some(ticks) = element.number("duration")? else {
        return Ok(Division::Undated { count: count.unwrap_or(1) });
    };
    let owner = element.owner("duration").unwrap_or(element.0[0]);
    let duration = from_ticks(ticks, timescale).filter(|d| !d.is_zero());
    let wrong = || {
        owner.attribute_error(
            "duration",
            format!("duration=\"{ticks}\" of {timescale} ticks a second is no usable time"),
        )
    };
    Ok(Division::Equal { duration: duration.ok_or_else(wrong)?, count })
}

fn read_run(s: &Element<'_>) -> Result<Run, ContentError> {
    const WHOLE: &str = "a whole number that is not negative";
    let ticks = s.number("d", WHOLE)?.filter(|&d| d > 0);
    let ticks = ticks.ok_or_else(|| s.error("an S element needs a duration `d` above zero"))?;
    let repeats: i64 = s.number("r", "a whole number")?.unwrap_or(0);
    Ok(Run { at: s.number("t", WHOLE)?, ticks, repeats: u64::try_from(repeats).ok() })
}

/// Why the durations are unknown.
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

impl Division {
    /// The durations of the media segments within a period of this length.
    pub fn durations(&self, period: Option<Duration>, indexed: Option<Duration>) -> Result<Vec<Duration>, Unplayable> {
        match self {
            Division::Timeline { timescale, offset, runs } => timeline(runs, *timescale, *offset, period),
            Division::Equal { duration, count } => equal(*duration, *count, period),
            Division::Undated { count: 1 } => Ok(vec![period.ok_or(Unplayable::Endless)?]),
            Division::Undated { .. } => Err(Unplayable::NoDurations),
            Division::Indexed => {
                let part = indexed.ok_or(Unplayable::NeedsIndex)?;
                Ok(equal_parts(period.ok_or(Unplayable::Endless)?, part))
            }
        }
    }
}

fn equal(part: Duration, count: Option<u64>, period: Option<Duration>) -> Result<Vec<Duration>, Unplayable> {
    let mut parts = match (count, period) {
        (_, Some(period)) => equal_parts(period, part),
        (Some(count), None) if count <= u64::from(MAX_SEGMENTS) => vec![part; count as usize],
        (Some(_), None) => return Err(Unplayable::TooMany),
        (None, None) => return Err(Unplayable::Endless),
    };
    if let Some(count) = count {
        parts.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    }
    Ok(parts)
}

/// Segments at or after the period's end are dropped; one that crosses it is cut.
fn timeline(runs: &[Run], timescale: u64, offset: u64, period: Option<Duration>) -> Result<Vec<Duration>, Unplayable> {
    let period_ticks = period.map(|p| u128::from(p.as_nanos()) * u128::from(timescale) / 1_000_000_000);
    // Rounding down must not add a segment of length zero at the end.
    let end = period_ticks.map(|ticks| u64::try_from(ticks).unwrap_or(u64::MAX).saturating_add(offset));
    let mut durations = Vec::new();
    let mut at = runs.first().and_then(|run| run.at).unwrap_or(offset);
    for (n, run) in runs.iter().enumerate() {
        at = run.at.unwrap_or(at);
        let until = runs.get(n + 1).and_then(|next| next.at).or(end);
        let count = match (run.repeats, until) {
            (Some(repeats), _) => repeats.saturating_add(1),
            (None, Some(until)) => until.saturating_sub(at).div_ceil(run.ticks),
            (None, None) => return Err(Unplayable::Endless),
        };
        for _ in 0..count {
            let left = end.map_or(u64::MAX, |end| end.saturating_sub(at));
            if left == 0 {
                break;
            }
            let duration = from_ticks(run.ticks.min(left), timescale).ok_or(Unplayable::TooMany)?;
            if duration.is_zero() || durations.len() == MAX_SEGMENTS as usize {
                return Err(Unplayable::TooMany);
            }
            durations.push(duration);
            at = at.saturating_add(run.ticks);
        }
    }
    Ok(durations)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(at: Option<u64>, ticks: u64, repeats: i64) -> Run {
        Run { at, ticks, repeats: u64::try_from(repeats).ok() }
    }

    fn ms(n: &[u64]) -> Vec<Duration> {
        n.iter().map(|&n| Duration::from_millis(n)).collect()
    }

    #[test]
    fn runs_repeat_and_end_with_the_period() {
        let secs = Duration::from_secs;
        let of = |runs: &[Run], offset, period| timeline(runs, 1_000, offset, period);
        assert_eq!(of(&[run(Some(0), 2_000, 2)], 0, None), Ok(ms(&[2_000, 2_000, 2_000])));
        assert_eq!(of(&[run(Some(0), 2_000, 9)], 0, Some(secs(3))), Ok(ms(&[2_000, 1_000])));
        assert_eq!(of(&[run(None, 2_000, -1)], 0, Some(secs(5))), Ok(ms(&[2_000, 2_000, 1_000])));
        assert_eq!(of(&[run(Some(0), 2_000, -1), run(Some(4_000), 500, 0)], 0, None), Ok(ms(&[2_000, 2_000, 500])));
        assert_eq!(of(&[run(None, 2_000, -1)], 0, None), Err(Unplayable::Endless));
        assert_eq!(of(&[run(Some(7_000), 2_000, -1)], 7_000, Some(secs(4))), Ok(ms(&[2_000, 2_000])));
        assert_eq!(of(&[run(Some(0), 1, 2_000_000)], 0, None), Err(Unplayable::TooMany));
        assert_eq!(timeline(&[run(Some(0), 1, 0)], 2_000_000_000, 0, None), Err(Unplayable::TooMany), "no nanosecond");
    }

    #[test]
    fn equal_segments_need_a_count_or_an_end() {
        let four = Duration::from_secs(4);
        let of = |count, period| Division::Equal { duration: four, count }.durations(period, None);
        assert_eq!(of(None, Some(Duration::from_secs(10))), Ok(ms(&[4_000, 4_000, 2_000])));
        assert_eq!(of(Some(2), Some(Duration::from_secs(10))), Ok(ms(&[4_000, 4_000])));
        assert_eq!(of(Some(3), None), Ok(ms(&[4_000, 4_000, 4_000])));
        assert_eq!(of(None, None), Err(Unplayable::Endless));
    }

    #[test]
    fn what_the_mpd_does_not_say_must_be_given() {
        let minute = Some(Duration::from_secs(60));
        assert_eq!(Division::Indexed.durations(minute, None), Err(Unplayable::NeedsIndex));
        assert_eq!(
            Division::Indexed.durations(minute, Some(Duration::from_secs(25))),
            Ok(ms(&[25_000, 25_000, 10_000]))
        );
        assert_eq!(Division::Undated { count: 1 }.durations(minute, None), Ok(ms(&[60_000])));
        assert_eq!(Division::Undated { count: 2 }.durations(minute, None), Err(Unplayable::NoDurations));
    }
}
