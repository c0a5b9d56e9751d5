//! MPDs: the description of a DASH presentation (ISO/IEC 23009-1).
//!
//! Read: periods, adaptation sets, representations; SegmentTemplate by $Number$ and $Time$, SegmentTimeline, SegmentList,
//! SegmentBase, with inheritance; sizes from `mediaRange` and from AStream's SegmentSize. Not read: URLs (a model needs
//! sizes, not names), remote elements (xlink), updates of live MPDs, segment sequences.
//!
//! The XML parser is roxmltree, because it gives the line of every element; typed MPD crates do not, and the tested
//! ones depend on hundreds of crates.

mod segments;
mod select;
mod sizes;
mod time;
mod xml;

pub use select::MpdSelection;

use super::{ContentError, Place, Resolution};
use anabranch_units::Duration;
use segments::Segments;
use sizes::StatedSize;
use xml::Element;

/// A media presentation description.
#[derive(Clone, Debug, PartialEq)]
pub struct Mpd {
    file: String,
    bytes: u64,
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
    place: Place,
    /// `start`; `None` if absent.
    pub start: Option<Duration>,
    /// Length: stated, or until the next period or the presentation's end; `None` if it has no end.
    pub duration: Option<Duration>,
    /// Its adaptation sets, in order.
    pub sets: Vec<AdaptationSet>,
}

/// An adaptation set: encodings of the same content.
#[derive(Clone, Debug, PartialEq)]
pub struct AdaptationSet {
    place: Place,
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
    place: Place,
    /// Its `id`; empty if it has none.
    pub id: String,
    /// Nominal rate, bit/s.
    pub bandwidth: u64,
    /// Size of its pictures; `None` if unknown.
    pub resolution: Option<Resolution>,
    segments: Segments,
    stated: Vec<StatedSize>,
}

impl Mpd {
    /// Reads an MPD. `file` is its name for messages.
    pub fn parse(file: &str, text: &str) -> Result<Self, ContentError> {
        // A byte-order mark is no part of the document.
        let document = xml::document(file, text.trim_start_matches('\u{feff}'))?;
        let root = Element::root(file, &document);
        if root.name() != "MPD" {
            return Err(root.error(format!("the document is a `{}`, not an MPD", root.name())));
        }
        let duration = root.duration("mediaPresentationDuration")?;
        let mut periods: Vec<_> = root.children("Period").map(|p| read_period(&p)).collect::<Result<_, _>>()?;
        if periods.is_empty() {
            return Err(root.error("the MPD has no Period"));
        }
        resolve_durations(&mut periods, duration);
        let live = root.text("type") == Some("dynamic");
        Ok(Mpd { file: file.to_string(), bytes: text.len() as u64, live, duration, periods })
    }
}

/// ISO/IEC 23009-1, 5.3.2.1: a period ends at its stated end, at the next one's start, or with the presentation.
fn resolve_durations(periods: &mut [MpdPeriod], whole: Option<Duration>) {
    let mut start = Some(Duration::ZERO);
    for n in 0..periods.len() {
        start = periods[n].start.or(start);
        let next = periods.get(n + 1).map_or(whole, |next| next.start);
        let until = |(next, start): (Duration, Duration)| (next > start).then(|| next - start);
        periods[n].duration = periods[n].duration.or_else(|| next.zip(start).and_then(until));
        start = start.zip(periods[n].duration).map(|(start, duration)| start + duration);
    }
}

fn read_period(element: &Element<'_>) -> Result<MpdPeriod, ContentError> {
    let sets = element.children("AdaptationSet").map(|set| read_set(element, &set)).collect::<Result<_, _>>()?;
    let (start, duration) = (element.duration("start")?, element.duration("duration")?);
    Ok(MpdPeriod { place: element.place(), start, duration, sets })
}

fn read_set(period: &Element<'_>, set: &Element<'_>) -> Result<AdaptationSet, ContentError> {
    let elements: Vec<_> = set.children("Representation").collect();
    let kind = kind(set, &elements);
    let representations = elements.iter().map(|r| read_representation(period, set, r)).collect::<Result<_, _>>()?;
    Ok(AdaptationSet { place: set.place(), kind, representations })
}

/// The type of the set: by its content type, its components, its MIME type, or the size of its pictures.
fn kind(set: &Element<'_>, representations: &[Element<'_>]) -> MediaKind {
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
    period: &Element<'_>,
    set: &Element<'_>,
    element: &Element<'_>,
) -> Result<MpdRepresentation, ContentError> {
    const PIXELS: &str = "a number of pixels";
    let bandwidth = element.number("bandwidth", "a rate in bit/s")?;
    let bandwidth = bandwidth.ok_or_else(|| element.error("a Representation needs a `bandwidth`"))?;
    let side = |name: &str| match element.number(name, PIXELS)? {
        Some(own) => Ok(Some(own)),
        None => set.number(name, PIXELS),
    };
    let resolution = side("width")?.zip(side("height")?).map(|(width, height)| Resolution { width, height });
    Ok(MpdRepresentation {
        place: element.place(),
        id: element.text("id").unwrap_or_default().to_string(),
        bandwidth,
        resolution,
        segments: segments::read(&[*element, *set, *period])?,
        stated: sizes::read(element)?,
    })
}

#[cfg(test)]
mod tests;
