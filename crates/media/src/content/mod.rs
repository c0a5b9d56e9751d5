//! Content of a DASH player: representations, media segments, and their sizes in bytes.
//!
//! A [`DashVideo`] is the video of one presentation. It comes from
//! - a shipped ladder ([`LADDERS`]), or rates in equal segments ([`DashVideo::of_equal_segments`]), with nominal sizes,
//! - an MPD ([`Mpd`]), with the sizes that it states, if it does,
//! - a table of sizes ([`read_table`]).
//!
//! Unknown sizes are nominal (bitrate times duration), or varied by a seeded model ([`SegmentVariation`]).
//!
//! Several periods follow each other; audio is left out; live presentations end where their description ends.

mod error;
mod ladders;
mod mpd;
mod table;
mod variation;

pub use error::{ContentError, ContentWarning, Place};
pub use ladders::{LADDERS, NominalLadder, find_ladder};
pub use mpd::{AdaptationSet, MediaKind, Mpd, MpdPeriod, MpdRepresentation, MpdSelection, file_of};
pub use table::read_table;
pub use variation::SegmentVariation;

use crate::abr::{Ladder, LadderError};
use anabranch_units::{Duration, Instant};
use rand::Rng;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;

/// Default size of an initialisation segment: that of the single-file presentations of python-mpegdash's
/// samples for video (`Initialization range="0-671"`).
pub const INIT_BYTES: u64 = 672;
/// Default size of an MPD: that of Big Buck Bunny in 20 representations (ITEC dataset, 4 s), without
/// the sizes that AStream added to it.
pub const MANIFEST_BYTES: u64 = 9_321;

/// Width and height of the pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Resolution {
    /// Pixels per line.
    pub width: u32,
    /// Number of lines.
    pub height: u32,
}

impl Resolution {
    /// The smallest high-quality resolution in the DASH-over-MPTCP paper.
    pub const HIGH_QUALITY: Resolution = Resolution { width: 1280, height: 720 };

    /// Whether pictures of this size fit into (or fill) those of `other`.
    pub fn fits_within(self, other: Resolution) -> bool {
        self.width <= other.width && self.height <= other.height
    }

    /// Whether pictures of this size are at least as wide and as high as those of `other`.
    pub fn covers(self, other: Resolution) -> bool {
        other.fits_within(self)
    }
}

impl Serialize for Resolution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Resolution {
    /// `"1280x720"`.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let sides = text.split_once('x').and_then(|(w, h)| Some((w.trim().parse().ok()?, h.trim().parse().ok()?)));
        match sides {
            Some((width, height)) if width > 0 && height > 0 => Ok(Resolution { width, height }),
            _ => Err(de::Error::invalid_value(
                de::Unexpected::Str(&text),
                &"width and height in pixels, such as \"1280x720\"",
            )),
        }
    }
}

impl JsonSchema for Resolution {
    fn schema_name() -> Cow<'static, str> {
        "Resolution".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": r"^\s*[1-9][0-9]*\s*x\s*[1-9][0-9]*\s*$",
            "x-expected": "width and height in pixels, such as \"1280x720\"",
        })
    }
}

impl fmt::Display for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// One encoding of the video.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Representation {
    /// Nominal rate, bit/s.
    pub bitrate: u64,
    /// Size of its pictures; `None` if unknown.
    pub resolution: Option<Resolution>,
}

/// Why representations, segments and sizes do not form a video.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VideoShapeError {
    /// The representations do not form a ladder.
    #[error(transparent)]
    Ladder(#[from] LadderError),
    /// There are no media segments.
    #[error("the video has no media segments")]
    NoSegments,
    /// A media segment has no playing time.
    #[error("media segment {0} (counted from zero) has no duration")]
    EmptySegment(usize),
    /// A media segment has no bytes.
    #[error("media segment {index} of representation {representation} (both counted from zero) has no bytes")]
    NoBytes {
        /// Rank of the representation.
        representation: usize,
        /// Number of the media segment.
        index: usize,
    },
    /// More media segments than [`MAX_SEGMENTS`], or more than [`MAX_DURATION`] or [`MAX_BYTES`] in sum.
    #[error("a video may have at most {MAX_SEGMENTS} media segments, 200 years, and 1 EB in each representation")]
    TooLong,
}

/// Eleven days of one-second segments: far more than any run, and few enough for a table in memory.
pub const MAX_SEGMENTS: u32 = 1_000_000;

/// The longest playing time: two centuries, because live presentations count from 1970.
pub const MAX_DURATION: Duration = Duration::from_secs(200 * 366 * 86_400);
/// The most bytes of a representation, an exabyte; sums of a few stay below 2^64.
pub const MAX_BYTES: u64 = 1_000_000_000_000_000_000;

/// The video of a DASH presentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DashVideo {
    representations: Vec<Representation>,
    /// Playing time at the end of each media segment.
    ends: Vec<Duration>,
    /// Bytes, by representation and media segment.
    sizes: Vec<Vec<u64>>,
    init_bytes: u64,
    manifest_bytes: u64,
    ladder: Ladder,
}

impl DashVideo {
    /// Media segments of these durations, in every representation of its nominal size.
    pub fn nominal(representations: Vec<Representation>, durations: &[Duration]) -> Result<Self, VideoShapeError> {
        let sizes = representations.iter().map(|r| durations.iter().map(|&d| nominal_bytes(r.bitrate, d)).collect());
        let sizes = sizes.collect();
        DashVideo::with_sizes(representations, durations, sizes)
    }

    /// A video that plays for `duration`, in media segments of `segment` and nominal sizes. The last media segment is
    /// shorter if the duration is no multiple.
    pub fn of_equal_segments(
        representations: Vec<Representation>,
        segment: Duration,
        duration: Duration,
    ) -> Result<Self, VideoShapeError> {
        DashVideo::nominal(representations, &equal_parts(duration, segment))
    }

    /// With the bytes of every media segment: `sizes[representation][segment]`.
    pub fn with_sizes(
        representations: Vec<Representation>,
        durations: &[Duration],
        sizes: Vec<Vec<u64>>,
    ) -> Result<Self, VideoShapeError> {
        let ends = ends_of(durations)?;
        let ladder = ladder_of(&representations, durations, &sizes)?;
        for (representation, row) in sizes.iter().enumerate() {
            if let Some(index) = row.iter().position(|&bytes| bytes == 0) {
                return Err(VideoShapeError::NoBytes { representation, index });
            }
            if row.iter().map(|&bytes| u128::from(bytes)).sum::<u128>() > u128::from(MAX_BYTES) {
                return Err(VideoShapeError::TooLong);
            }
        }
        let (init_bytes, manifest_bytes) = (INIT_BYTES, MANIFEST_BYTES);
        Ok(DashVideo { representations, ends, sizes, init_bytes, manifest_bytes, ladder })
    }

    /// The same video with sizes that vary by a model. Their mean stays as it is in every representation.
    pub fn varied(&self, variation: &SegmentVariation, rng: &mut impl Rng) -> Self {
        let durations: Vec<_> = (0..self.segments()).map(|k| self.duration_of(k)).collect();
        let factors = variation.factors(&durations, rng);
        let sizes = self.sizes.iter().map(|row| variation::scale(row, &factors)).collect();
        DashVideo::with_sizes(self.representations.clone(), &durations, sizes)
            .expect("the shape did not change and no size became zero")
            .with_init_bytes(self.init_bytes)
            .with_manifest_bytes(self.manifest_bytes)
            .live_if(self.ladder.is_live())
    }

    /// The same video with other sizes, in bytes, where there is one above zero for the rank of a representation and
    /// the number of a media segment.
    pub fn with_sizes_of(&self, mut size: impl FnMut(usize, u32) -> Option<u64>) -> Result<Self, VideoShapeError> {
        let durations: Vec<_> = (0..self.segments()).map(|k| self.duration_of(k)).collect();
        let known = |(rank, row): (usize, &Vec<u64>)| {
            let sizes = (0..).zip(row).map(|(k, &nominal)| size(rank, k).filter(|&bytes| bytes > 0).unwrap_or(nominal));
            sizes.collect()
        };
        let sizes = self.sizes.iter().enumerate().map(known).collect();
        let video = DashVideo::with_sizes(self.representations.clone(), &durations, sizes)?;
        let video = video.with_init_bytes(self.init_bytes).with_manifest_bytes(self.manifest_bytes);
        Ok(video.live_if(self.ladder.is_live()))
    }

    /// Sets the size of the initialisation segments; zero: there are none.
    pub fn with_init_bytes(mut self, bytes: u64) -> Self {
        self.init_bytes = bytes;
        self
    }

    /// Sets the size of the MPD; zero: the player has it already.
    pub fn with_manifest_bytes(mut self, bytes: u64) -> Self {
        self.manifest_bytes = bytes;
        self
    }

    /// Marks it as a live presentation (a dynamic MPD), which some rules treat differently.
    pub fn live_if(mut self, live: bool) -> Self {
        if live {
            self.ladder = self.ladder.live();
        }
        self
    }

    /// The representations, in the order of their bitrates.
    pub fn representations(&self) -> &[Representation] {
        &self.representations
    }

    /// The ladder for bitrate rules.
    pub fn ladder(&self) -> &Ladder {
        &self.ladder
    }

    /// Number of media segments, at least one.
    pub fn segments(&self) -> u32 {
        self.ends.len() as u32
    }

    /// Playing time of the whole video.
    pub fn duration(&self) -> Duration {
        self.end(self.segments() - 1)
    }

    /// Playing time before media segment `index`.
    pub fn start(&self, index: u32) -> Duration {
        if index == 0 { Duration::ZERO } else { self.end(index - 1) }
    }

    /// Playing time at the end of media segment `index`.
    #[inline]
    pub fn end(&self, index: u32) -> Duration {
        self.ends[index as usize]
    }

    /// Playing time of media segment `index`.
    pub fn duration_of(&self, index: u32) -> Duration {
        self.end(index) - self.start(index)
    }

    /// The media segment on screen at playing time `time`; the last one from its begin on.
    pub fn at_time(&self, time: Duration) -> u32 {
        (self.ends.partition_point(|&end| end <= time) as u32).min(self.segments() - 1)
    }

    /// Bytes of a media segment.
    #[inline]
    pub fn bytes(&self, representation: usize, index: u32) -> u64 {
        self.sizes[representation][index as usize]
    }

    /// Bytes of an initialisation segment.
    pub fn init_bytes(&self) -> u64 {
        self.init_bytes
    }

    /// Bytes of the MPD.
    pub fn manifest_bytes(&self) -> u64 {
        self.manifest_bytes
    }

    /// The highest representation with at most this bitrate and pictures of at most this size; the lowest one if there
    /// is none. Unknown resolutions count as fitting.
    pub fn highest_within(&self, bitrate: Option<u64>, resolution: Option<Resolution>) -> usize {
        let fits = |r: &Representation| {
            let cheap = bitrate.is_none_or(|most| r.bitrate <= most);
            let small = match (r.resolution, resolution) {
                (Some(own), Some(most)) => own.fits_within(most),
                _ => true,
            };
            cheap && small
        };
        self.representations.iter().rposition(fits).unwrap_or(0)
    }
}

/// Divides `whole` into parts of `part`, and a last one with the rest.
fn equal_parts(whole: Duration, part: Duration) -> Vec<Duration> {
    let full = whole.as_nanos() / part.as_nanos().max(1);
    // One more than allowed suffices for a refusal; a list of billions would waste memory.
    let mut parts = vec![part; full.min(u64::from(MAX_SEGMENTS) + 1) as usize];
    let rest = whole.as_nanos() % part.as_nanos().max(1);
    if rest > 0 {
        parts.push(Duration::from_nanos(rest));
    }
    parts
}

/// Bytes at a rate (bit/s) in a time; at least one.
fn nominal_bytes(bitrate: u64, duration: Duration) -> u64 {
    let bits = u128::from(bitrate) * u128::from(duration.as_nanos());
    u64::try_from(bits / 8_000_000_000).unwrap_or(u64::MAX).max(1)
}

fn ends_of(durations: &[Duration]) -> Result<Vec<Duration>, VideoShapeError> {
    if durations.is_empty() {
        return Err(VideoShapeError::NoSegments);
    }
    if durations.len() > MAX_SEGMENTS as usize {
        return Err(VideoShapeError::TooLong);
    }
    if let Some(index) = durations.iter().position(|d| d.is_zero()) {
        return Err(VideoShapeError::EmptySegment(index));
    }
    if durations.iter().map(|d| u128::from(d.as_nanos())).sum::<u128>() > u128::from(MAX_DURATION.as_nanos()) {
        return Err(VideoShapeError::TooLong);
    }
    let mut end = Instant::ZERO;
    let ends = durations.iter().map(|&duration| {
        end += duration;
        end.since(Instant::ZERO)
    });
    Ok(ends.collect())
}

/// Rules use a single duration. The longest is the nominal one: usually only the last media segment of a period is
/// shorter.
fn ladder_of(
    representations: &[Representation],
    durations: &[Duration],
    sizes: &[Vec<u64>],
) -> Result<Ladder, VideoShapeError> {
    let bitrates = representations.iter().map(|r| r.bitrate).collect();
    let longest = durations.iter().copied().max().unwrap_or(Duration::ZERO);
    Ok(Ladder::new(bitrates, longest, durations.len() as u64)?.with_sizes(sizes.to_vec())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(bitrate: u64) -> Representation {
        Representation { bitrate, resolution: None }
    }

    fn seconds(n: &[u64]) -> Vec<Duration> {
        n.iter().map(|&n| Duration::from_secs(n)).collect()
    }

    #[test]
    fn segments_lie_one_after_the_other() {
        let video = DashVideo::nominal(vec![plain(800), plain(1_600)], &seconds(&[4, 4, 2])).unwrap();
        assert_eq!((video.segments(), video.duration()), (3, Duration::from_secs(10)));
        assert_eq!((video.start(0), video.start(2)), (Duration::ZERO, Duration::from_secs(8)));
        assert_eq!(video.duration_of(2), Duration::from_secs(2));
        assert_eq!((video.bytes(0, 0), video.bytes(1, 2)), (400, 400));
        let at = |ms| video.at_time(Duration::from_millis(ms));
        assert_eq!((at(0), at(3_999), at(4_000), at(99_000)), (0, 0, 1, 2));
        assert_eq!(video.ladder().segment_duration(), Duration::from_secs(4));
        assert_eq!(video.ladder().segment_bytes(1, 2), 400);
    }

    #[test]
    fn videos_that_cannot_be_played_are_refused() {
        let make = |bitrates: &[u64], durations: &[u64]| {
            DashVideo::nominal(bitrates.iter().map(|&b| plain(b)).collect(), &seconds(durations)).err()
        };
        assert_eq!(make(&[1], &[]), Some(VideoShapeError::NoSegments));
        assert_eq!(make(&[1], &[1, 0]), Some(VideoShapeError::EmptySegment(1)));
        assert_eq!(make(&[], &[1]), Some(VideoShapeError::Ladder(LadderError::Empty)));
        assert_eq!(make(&[2, 2], &[1]), Some(VideoShapeError::Ladder(LadderError::NotAscending(1))));
        let sized = |sizes| DashVideo::with_sizes(vec![plain(1), plain(2)], &seconds(&[1, 1]), sizes).err();
        let shape = LadderError::Sizes { representations: 2, segments: 2 };
        assert_eq!(sized(vec![vec![1, 1]]), Some(VideoShapeError::Ladder(shape)));
        assert_eq!(sized(vec![vec![1, 1], vec![5, 0]]), Some(VideoShapeError::NoBytes { representation: 1, index: 1 }));
    }

    #[test]
    fn limits_of_bitrate_and_resolution() {
        let of = |bitrate, width, height| Representation { bitrate, resolution: Some(Resolution { width, height }) };
        let ladder = vec![of(100, 320, 240), of(200, 1280, 720), of(300, 1280, 720), of(400, 1920, 1080)];
        let video = DashVideo::nominal(ladder, &seconds(&[1])).unwrap();
        let hd = Some(Resolution::HIGH_QUALITY);
        assert_eq!(video.highest_within(None, None), 3);
        assert_eq!(video.highest_within(None, hd), 2);
        assert_eq!(video.highest_within(Some(299), hd), 1);
        assert_eq!(video.highest_within(Some(300), None), 2);
        assert_eq!(video.highest_within(Some(1), hd), 0, "something must be played");
        let unknown = DashVideo::nominal(vec![plain(1), plain(2)], &seconds(&[1])).unwrap();
        assert_eq!(unknown.highest_within(None, hd), 1);
    }

    #[test]
    fn a_resolution_is_high_by_both_measures() {
        let of = |width, height| Resolution { width, height };
        assert!(of(1280, 720).covers(Resolution::HIGH_QUALITY) && of(1920, 1080).covers(Resolution::HIGH_QUALITY));
        assert!(!of(1279, 720).covers(Resolution::HIGH_QUALITY) && !of(2000, 700).covers(Resolution::HIGH_QUALITY));
        assert_eq!(of(854, 480).to_string(), "854x480");
    }
}
