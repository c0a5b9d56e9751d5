//! Segments of a representation: SegmentTemplate, SegmentList or SegmentBase, with inheritance.
//!
//! ISO/IEC 23009-1, 5.3.9: the elements may occur in Period, AdaptationSet and Representation; attributes of an inner
//! one of the same kind replace those of an outer one, and the innermost kind counts.

use super::axis::{Layout, Listed, Run, Unplayable, Window, lay};
use super::names::Names;
use super::time::ticks_last;
use super::xml::{Element, Fault};
use anabranch_units::Duration;
use std::cell::Cell;

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
    Equal {
        timescale: u64,
        ticks: u64,
        /// `eptDelta`: ticks from the period's begin to that of the first segment.
        begin: i64,
        count: Option<u64>,
    },
    /// A number of segments without durations: a single one fills the period.
    Undated { count: u64 },
    /// One file with an index that is not in the MPD.
    Indexed,
}

/// The division, and the stated sizes of segments and of the initialisation segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segments {
    pub division: Division,
    /// Empty, or one entry per segment.
    pub sizes: Vec<Option<u64>>,
    /// How many byte ranges have no end, so that their sizes are unknown.
    pub open_ranges: usize,
    pub init_bytes: Option<u64>,
    pub names: Names,
}

impl Default for Segments {
    /// Those of a single file without description.
    fn default() -> Self {
        Segments {
            division: Division::Indexed,
            sizes: Vec::new(),
            open_ranges: 0,
            init_bytes: None,
            names: Names::Unknown,
        }
    }
}

/// The elements that divide media into segments, of one level.
#[derive(Clone, Copy)]
pub(super) struct Level<'a>([Option<Element<'a>>; 3]);

const KINDS: [&str; 3] = ["SegmentTemplate", "SegmentList", "SegmentBase"];

impl<'a> Level<'a> {
    /// Those within this element. To look once per level matters where thousands of representations share it.
    pub fn of(element: &Element<'a>) -> Self {
        let mut found = [None; 3];
        for child in element.elements() {
            if let Some(kind) = KINDS.iter().position(|kind| *kind == child.name()) {
                found[kind].get_or_insert(child);
            }
        }
        Level(found)
    }
}

/// Bounds the lists of an MPD: each representation has its own copy of what it inherits.
pub(super) struct Budget(Cell<usize>);

impl Default for Budget {
    /// A day of two-second segments in a hundred representations, or some 200 MB.
    fn default() -> Self {
        Budget(Cell::new(4_320_000))
    }
}

impl Budget {
    fn take(&self, count: usize, element: &Element<'_>) -> Result<(), Fault> {
        let left = self.0.get().checked_sub(count);
        let message = "more media segments are listed than can be read: take out representations or periods";
        self.0.set(left.ok_or_else(|| element.fault(message))?);
        Ok(())
    }
}

/// Elements of one kind, innermost first.
struct Inherited<'a>(Vec<Element<'a>>);

impl<'a> Inherited<'a> {
    /// The innermost element that has this attribute.
    fn owner(&self, attribute: &str) -> Option<Element<'a>> {
        self.0.iter().copied().find(|e| e.text(attribute).is_some())
    }

    fn number(&self, attribute: &str) -> Result<Option<u64>, Fault> {
        match self.owner(attribute) {
            Some(element) => element.number(attribute, WHOLE),
            None => Ok(None),
        }
    }

    fn child(&self, name: &'a str) -> Option<Element<'a>> {
        self.0.iter().find_map(|e| e.child(name))
    }

    fn init_bytes(&self) -> Result<Option<u64>, Fault> {
        self.child("Initialization").map_or(Ok(None), |init| Ok(init.range_bytes("range")?.flatten()))
    }
}

const WHOLE: &str = "a whole number that is not negative";

/// Reads the division of a representation. `levels`: Representation, AdaptationSet, Period.
pub(super) fn read(levels: &[Level<'_>], budget: &Budget) -> Result<Segments, Fault> {
    let innermost = levels.iter().find_map(|level| level.0.iter().position(Option::is_some));
    let Some(kind) = innermost else { return Ok(Segments::default()) };
    let inherited = Inherited(levels.iter().filter_map(|level| level.0[kind]).collect());
    let init_bytes = inherited.init_bytes()?;
    match KINDS[kind] {
        "SegmentTemplate" => {
            let (start, end) = (inherited.number("startNumber")?.unwrap_or(1), inherited.number("endNumber")?);
            let count = end.map(|end| end.saturating_add(1).saturating_sub(start));
            let division = division(&inherited, count, budget)?;
            check_template(&inherited, &division)?;
            let media = inherited.owner("media").and_then(|owner| owner.text("media"));
            let template = |media: &str| Names::Template { media: media.to_string(), first: start };
            let names = media.map_or(Names::Unknown, template);
            Ok(Segments { division, init_bytes, names, ..Segments::default() })
        }
        "SegmentList" => read_list(&inherited, init_bytes, budget),
        _ => Ok(Segments { init_bytes, ..Segments::default() }),
    }
}

fn read_list(list: &Inherited<'_>, init_bytes: Option<u64>, budget: &Budget) -> Result<Segments, Fault> {
    let of = |e: &Element<'_>| e.children("SegmentURL").count();
    let owner = list.0.iter().find(|e| of(e) > 0);
    if let (None, Some(remote)) = (owner, list.0.iter().find(|e| e.remote().is_some())) {
        let message = "the list is in another file (xlink:href), which is not fetched: write its content here";
        return Err(remote.fault(message));
    }
    let mut sizes = Vec::new();
    let (mut open_ranges, mut names) = (0, Vec::new());
    if let Some(owner) = owner {
        budget.take(of(owner), owner)?;
        for url in owner.children("SegmentURL") {
            let range = url.range_bytes("mediaRange")?;
            open_ranges += usize::from(range == Some(None));
            sizes.push(range.flatten());
            // A part of a file has the file's name, and so have the others.
            names.push(url.text("media").filter(|_| range.is_none()).map(str::to_string));
        }
    }
    let division = division(list, Some(sizes.len() as u64), budget)?;
    Ok(Segments { division, sizes, open_ranges, init_bytes, names: Names::Listed(names) })
}

/// Without $Number$ or $Time$ all segments would have the same URL.
fn check_template(template: &Inherited<'_>, division: &Division) -> Result<(), Fault> {
    let Some(owner) = template.owner("media") else { return Ok(()) };
    let media = owner.text("media").unwrap_or_default();
    let single = matches!(division, Division::Undated { count: 1 });
    if single || ["$Number", "$Time", "$SubNumber"].iter().any(|id| media.contains(id)) {
        return Ok(());
    }
    let message = format!("media=\"{media}\" has neither $Number$ nor $Time$: write one of them where segments differ");
    Err(owner.attribute_fault("media", message))
}

fn division(element: &Inherited<'_>, count: Option<u64>, budget: &Budget) -> Result<Division, Fault> {
    let timescale = element.number("timescale")?.unwrap_or(1);
    if timescale == 0 {
        let owner = element.owner("timescale").unwrap_or(element.0[0]);
        return Err(owner.attribute_fault("timescale", "timescale=\"0\" counts no time: give the ticks per second"));
    }
    let offset = element.number("presentationTimeOffset")?.unwrap_or(0);
    if let Some(timeline) = element.child("SegmentTimeline") {
        budget.take(timeline.children("S").count(), &timeline)?;
        let runs = timeline.children("S").map(|s| read_run(&s)).collect::<Result<_, _>>()?;
        return Ok(Division::Timeline { timescale, offset, runs });
    }
    let Some(ticks) = element.number("duration")? else {
        return Ok(Division::Undated { count: count.unwrap_or(1) });
    };
    let owner = element.owner("duration").unwrap_or(element.0[0]);
    if !ticks_last(ticks, timescale) {
        let message = format!(
            "duration=\"{ticks}\" of {timescale} ticks a second is no usable time: give the duration of a media segment"
        );
        return Err(owner.attribute_fault("duration", message));
    }
    let begin = match element.owner("eptDelta") {
        Some(owner) => owner.number("eptDelta", "a whole number")?.unwrap_or(0),
        None => 0,
    };
    Ok(Division::Equal { timescale, ticks, begin, count })
}

fn read_run(s: &Element<'_>) -> Result<Run, Fault> {
    let ticks = s.number("d", WHOLE)?.filter(|&d| d > 0);
    let ticks = ticks.ok_or_else(|| s.fault("an S element needs a duration `d` above zero"))?;
    let repeats: i64 = s.number("r", "a whole number")?.unwrap_or(0);
    Ok(Run { at: s.number("t", WHOLE)?, ticks, repeats: u64::try_from(repeats).ok() })
}

impl Division {
    /// The media segments within a window. `indexed`: the duration of those that only the media file lists.
    pub fn layout(&self, window: Window, indexed: Option<Duration>) -> Result<Layout, Unplayable> {
        // What has no end of its own ends with the period, or when enough is played.
        let whole = || window.period.or(window.enough).ok_or(Unplayable::Endless);
        match *self {
            Division::Timeline { timescale, offset, ref runs } => {
                lay(&Listed { runs, timescale, offset, timeline: true }, window)
            }
            Division::Equal { timescale, ticks, begin, count } => equal(timescale, ticks, begin, count, window),
            Division::Undated { count: 1 } => single(whole()?),
            Division::Undated { .. } => Err(Unplayable::NoDurations),
            Division::Indexed => {
                let part = indexed.ok_or(Unplayable::NeedsIndex)?;
                let period = Some(whole()?);
                equal(NANOS, part.as_nanos().max(1), 0, None, Window { period, ..window })
            }
        }
    }
}

const NANOS: u64 = 1_000_000_000;

/// Segments of one duration, to the nanosecond. What rounding left of the period behind them is none.
fn equal(timescale: u64, ticks: u64, begin: i64, count: Option<u64>, window: Window) -> Result<Layout, Unplayable> {
    let Some(repeats) = count.map_or(Some(None), |count| count.checked_sub(1).map(Some)) else {
        return Ok(Layout::default());
    };
    let nanos = |ticks: u64| u64::try_from(u128::from(ticks) * u128::from(NANOS) / u128::from(timescale)).ok();
    let part = nanos(ticks).filter(|part| *part > 0).ok_or(Unplayable::TooMany)?;
    let first = nanos(begin.unsigned_abs()).ok_or(Unplayable::TooMany)?;
    let (offset, at) = if begin < 0 { (first, 0) } else { (0, first) };
    let run = Run { at: Some(at), ticks: part, repeats };
    let mut layout = lay(&Listed { runs: &[run], timescale: NANOS, offset, timeline: false }, window)?;
    if layout.pieces.last().is_some_and(|last| last.duration.as_nanos() <= last.index) {
        layout.pieces.pop();
    }
    // Those of the MPD's own timescale.
    layout.pieces.iter_mut().for_each(|piece| piece.tick = piece.index.saturating_mul(ticks));
    Ok(layout)
}

fn single(period: Duration) -> Result<Layout, Unplayable> {
    let window = Window { period: Some(period), enough: None };
    equal(NANOS, period.as_nanos().max(1), 0, Some(1), window)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(layout: Result<Layout, Unplayable>) -> Result<Vec<u64>, Unplayable> {
        Ok(layout?.pieces.iter().map(|piece| piece.duration.as_millis()).collect())
    }

    fn period(seconds: u64) -> Window {
        Window { period: Some(Duration::from_secs(seconds)), enough: None }
    }

    #[test]
    fn equal_segments_need_a_count_or_an_end() {
        let of =
            |count, window| millis(Division::Equal { timescale: 1, ticks: 4, begin: 0, count }.layout(window, None));
        assert_eq!(of(None, period(10)), Ok(vec![4_000, 4_000, 2_000]));
        assert_eq!(of(Some(2), period(10)), Ok(vec![4_000, 4_000]));
        assert_eq!(of(Some(3), Window::default()), Ok(vec![4_000, 4_000, 4_000]));
        assert_eq!(of(None, Window::default()), Err(Unplayable::Endless));
        assert_eq!(of(Some(0), period(10)), Ok(vec![]));
    }

    #[test]
    fn a_third_of_a_second_thirty_times_is_ten_seconds() {
        let thirds = Division::Equal { timescale: 3, ticks: 1, begin: 0, count: None };
        assert_eq!(thirds.layout(period(10), None).unwrap().pieces.len(), 30, "no rest of a nanosecond");
    }

    #[test]
    fn the_first_segment_may_begin_before_or_after_its_period() {
        let of = |begin| Division::Equal { timescale: 10, ticks: 40, begin, count: None }.layout(period(10), None);
        assert_eq!(millis(of(-15)), Ok(vec![2_500, 4_000, 3_500]));
        assert_eq!(millis(of(20)), Ok(vec![4_000, 4_000]));
        assert_eq!(of(20).unwrap().holes.len(), 1);
    }

    #[test]
    fn what_the_mpd_does_not_say_must_be_given() {
        let indexed = |part: Option<u64>| Division::Indexed.layout(period(60), part.map(Duration::from_secs));
        assert_eq!(indexed(None), Err(Unplayable::NeedsIndex));
        assert_eq!(millis(indexed(Some(25))), Ok(vec![25_000, 25_000, 10_000]));
        assert_eq!(millis(Division::Undated { count: 1 }.layout(period(60), None)), Ok(vec![60_000]));
        assert_eq!(Division::Undated { count: 2 }.layout(period(60), None), Err(Unplayable::NoDurations));
    }
}
