//! MPDs: the description of a DASH presentation (ISO/IEC 23009-1).
//!
//! Read: periods, adaptation sets, representations; SegmentTemplate by $Number$ and $Time$, SegmentTimeline,
//! SegmentList, SegmentBase, with inheritance; sizes from `mediaRange` and from AStream's SegmentSize; names of files.
//! Not read: remote elements (xlink), updates of live MPDs, segment sequences.
//!
//! The XML parser is roxmltree, because it gives the line of every element; typed MPD crates do not, and the tested
//! ones depend on hundreds of crates.

mod axis;
mod encoding;
mod names;
mod part;
mod remarks;
mod segments;
mod select;
mod selection;
mod sets;
mod sizes;
mod time;
mod xml;

pub use names::file_of;
pub use selection::MpdSelection;

use super::{ContentError, Resolution};
use anabranch_units::Duration;
use segments::{Budget, Level, Segments};
use sets::Traits;
use sizes::StatedSize;
use std::sync::Arc;
use xml::{Element, Fault, Source, Spot};

/// Larger files are other files taken by mistake: the MPD of a film with a size for every media segment has a quarter
/// of a megabyte.
const MOST_BYTES: usize = 64 << 20;
/// Far more than an encoder writes, and small enough for the bytes of a presentation to be counted.
const HIGHEST_BANDWIDTH: u64 = 1_000_000_000_000;

/// A media presentation description.
#[derive(Clone, Debug, PartialEq)]
pub struct Mpd {
    source: Source,
    bytes: u64,
    /// How the text was read, where that is odd.
    remark: Option<String>,
    /// Whether it describes a live presentation (`type="dynamic"`).
    pub live: bool,
    /// `mediaPresentationDuration`.
    pub duration: Option<Duration>,
    /// Periods, in order.
    pub periods: Vec<MpdPeriod>,
}

/// A period.
#[derive(Clone, Debug, PartialEq)]
pub struct MpdPeriod {
    spot: Spot,
    id: Option<String>,
    /// Where its content is, if it is remote.
    remote: Option<String>,
    /// By how much the next period begins before the end that this one states.
    overlap: Duration,
    /// `start`, or the end of the period before it; `None` if neither is known.
    pub start: Option<Duration>,
    /// Length: stated, or until the next period or the presentation's end; `None` if it has no end.
    pub duration: Option<Duration>,
    /// Its adaptation sets, in order.
    pub sets: Vec<AdaptationSet>,
}

/// An adaptation set: encodings of the same content.
#[derive(Clone, Debug, PartialEq)]
pub struct AdaptationSet {
    spot: Spot,
    traits: Traits,
    /// Whether its content is in another file.
    remote: bool,
    /// What makes it unusable. It matters only where the set is used.
    fault: Option<Fault>,
    /// Type of its content.
    pub kind: MediaKind,
    /// Its representations, in order.
    pub representations: Vec<MpdRepresentation>,
}

/// Type of an adaptation set's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaKind {
    /// Video, perhaps with sound.
    Video,
    /// Sound only.
    Audio,
    /// Anything else: subtitles, thumbnails.
    Other,
}

/// A representation: one encoding.
#[derive(Clone, Debug, PartialEq)]
pub struct MpdRepresentation {
    spot: Spot,
    /// Its `id`; empty if it has none.
    pub id: String,
    /// Nominal rate, bit/s.
    pub bandwidth: u64,
    /// Size of its pictures; `None` if unknown.
    pub resolution: Option<Resolution>,
    /// An essential property that dash.js does not know.
    unknown: Option<String>,
    /// Where relative addresses of its media segments begin.
    base: Arc<str>,
    segments: Segments,
    stated: Vec<StatedSize>,
}

impl Mpd {
    /// Reads an MPD from a file's bytes, in the encoding that they have or declare. `file` is its name for messages.
    pub fn read(file: &str, bytes: &[u8]) -> Result<Self, ContentError> {
        if bytes.len() > MOST_BYTES {
            let message = format!("{} bytes are more than an MPD has: expected at most {MOST_BYTES}", bytes.len());
            return Err(ContentError::new(file, None, message));
        }
        let decoded = encoding::decode(file, bytes)?;
        let mpd = Mpd::parse(file, &decoded.text)?;
        Ok(Mpd { bytes: bytes.len() as u64, remark: decoded.remark, ..mpd })
    }

    /// Reads an MPD from its text. `file` is its name for messages.
    pub fn parse(file: &str, text: &str) -> Result<Self, ContentError> {
        let bytes = text.len() as u64;
        // A byte-order mark is no part of the document.
        let source = Source { file: file.to_string(), text: text.trim_start_matches('\u{feff}').to_string() };
        let document = source.document()?;
        let root = Element::root(&document);
        let wrong = |fault: Fault| source.fault(&fault);
        if root.name() != "MPD" {
            let message = format!("the document is a `{}`, not an MPD: name a file whose root is <MPD>", root.name());
            return Err(source.error(&root.spot(), message));
        }
        let duration = root.duration("mediaPresentationDuration").map_err(wrong)?;
        let budget = Budget::default();
        let base = names::base(&"".into(), &root);
        let periods = root.children("Period").map(|period| read_period(&base, &period, &budget));
        let mut periods: Vec<_> = periods.collect::<Result<_, _>>().map_err(wrong)?;
        if periods.is_empty() {
            return Err(source.error(&root.spot(), "the MPD has no Period: it describes nothing to play"));
        }
        let live = root.text("type") == Some("dynamic");
        resolve_durations(&mut periods, duration);
        Ok(Mpd { source: source.clone(), bytes, remark: None, live, duration, periods })
    }
}

/// ISO/IEC 23009-1, 5.3.2.1: a period ends at its stated end, at the next one's start, or with the presentation.
fn resolve_durations(periods: &mut [MpdPeriod], whole: Option<Duration>) {
    let mut start = Some(Duration::ZERO);
    for n in 0..periods.len() {
        start = periods[n].start.or(start);
        let next = periods.get(n + 1).map_or(whole, |next| next.start);
        let until = |(next, start): (Duration, Duration)| (next > start).then(|| next - start);
        let room = next.zip(start).and_then(until);
        let last = n + 1 == periods.len();
        let period = &mut periods[n];
        // What the next period covers is not played twice.
        if let (Some(stated), Some(room), false) = (period.duration, room, last)
            && stated > room
        {
            (period.overlap, period.duration) = (stated - room, Some(room));
        }
        period.duration = period.duration.or(room);
        period.start = start;
        start = start.zip(period.duration).map(|(start, duration)| start + duration);
    }
}

fn read_period(base: &Arc<str>, element: &Element<'_>, budget: &Budget) -> Result<MpdPeriod, Fault> {
    let (level, base) = (Level::of(element), names::base(base, element));
    let sets = element.children("AdaptationSet").map(|set| read_set(level, &base, &set, budget));
    let sets = sets.collect::<Result<_, _>>()?;
    let (start, duration) = (element.duration("start")?, element.duration("duration")?);
    let (id, remote) = (element.text("id").map(str::to_string), element.remote().map(str::to_string));
    Ok(MpdPeriod { spot: element.spot(), id, remote, overlap: Duration::ZERO, start, duration, sets })
}

fn read_set(period: Level<'_>, base: &Arc<str>, set: &Element<'_>, budget: &Budget) -> Result<AdaptationSet, Fault> {
    let elements: Vec<_> = set.children("Representation").collect();
    let kind = kind(set, &elements);
    let (levels, base) = ([Level::of(set), period], names::base(base, set));
    let mut fault = None;
    let mut representations = Vec::new();
    for element in &elements {
        match read_representation(levels, &base, set, element, budget) {
            Ok(representation) => representations.push(representation),
            Err(error) => drop(fault.get_or_insert(error)),
        }
    }
    let remote = set.remote().is_some() && elements.is_empty();
    if remote {
        fault =
            Some(set.fault("the set is in another file (xlink:href), which is not fetched: write its content here"));
    }
    let traits = match Traits::read(set, &elements) {
        Ok(traits) => traits,
        Err(error) => {
            fault.get_or_insert(error);
            Traits::default()
        }
    };
    Ok(AdaptationSet { spot: set.spot(), traits, remote, fault, kind, representations })
}

/// The type of the set: by its content type, its components, its MIME type, or the size of its pictures.
fn kind(set: &Element<'_>, representations: &[Element<'_>]) -> MediaKind {
    if representations.first().is_some_and(sets::is_thumbnails) || sets::is_thumbnails(set) {
        return MediaKind::Other;
    }
    let component = set.children("ContentComponent").filter_map(|c| c.text("contentType"));
    let mime = std::iter::once(set).chain(representations).filter_map(|e| e.text("mimeType"));
    let words: Vec<&str> = match set.text("contentType") {
        Some(word) => vec![word],
        None => component.chain(mime).collect(),
    };
    let says = |what: &str| words.iter().any(|word| *word == what || word.starts_with(&format!("{what}/")));
    let pictures = || representations.iter().chain([set]).any(|e| e.text("width").is_some());
    if says("video") || (words.is_empty() && pictures()) {
        MediaKind::Video
    } else if says("audio") {
        MediaKind::Audio
    } else {
        MediaKind::Other
    }
}

fn read_representation(
    [set_level, period_level]: [Level<'_>; 2],
    base: &Arc<str>,
    set: &Element<'_>,
    element: &Element<'_>,
    budget: &Budget,
) -> Result<MpdRepresentation, Fault> {
    const PIXELS: &str = "a number of pixels";
    let bandwidth = element.number("bandwidth", "a rate in bit/s")?;
    let bandwidth = bandwidth.ok_or_else(|| element.fault("a Representation needs a `bandwidth`, in bit/s"))?;
    if bandwidth > HIGHEST_BANDWIDTH {
        let message = format!("bandwidth=\"{bandwidth}\" is no rate of a video: expected bit/s, at most 1 Tb/s");
        return Err(element.attribute_fault("bandwidth", message));
    }
    let side = |name: &str| match element.number(name, PIXELS)? {
        Some(own) => Ok(Some(own)),
        None => set.number(name, PIXELS),
    };
    let resolution = side("width")?.zip(side("height")?).map(|(width, height)| Resolution { width, height });
    Ok(MpdRepresentation {
        spot: element.spot(),
        id: element.text("id").unwrap_or_default().to_string(),
        bandwidth,
        resolution,
        unknown: sets::unknown_property(element),
        base: names::base(base, element),
        segments: segments::read(&[Level::of(element), set_level, period_level], budget)?,
        stated: sizes::read(element)?,
    })
}

impl AdaptationSet {
    /// Its representations without those that dash.js skips for an essential property.
    fn usable(&self) -> impl Iterator<Item = &MpdRepresentation> {
        self.representations.iter().filter(|r| r.unknown.is_none())
    }

    /// The property for which dash.js skips the set, or all of its representations.
    fn unknown(&self) -> Option<&str> {
        let all = || self.representations.iter().map(|r| r.unknown.as_deref()).collect::<Option<Vec<_>>>();
        self.traits.unknown().or_else(|| all().and_then(|schemes| schemes.first().copied()))
    }

    fn is_empty(&self) -> bool {
        self.representations.is_empty() && self.fault.is_none()
    }

    fn highest(&self) -> u64 {
        self.usable().map(|r| r.bandwidth).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
