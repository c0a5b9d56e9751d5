//! Pictures of a video and their positions in its file.
//!
//! A file is a header (MP4's `moov` box, in front, as in "fast start" files) and then the pictures in the order in
//! which they are decoded. Picture `k` is due `k / fps` after the first: the reordering of B pictures delays all of
//! them equally and so has no effect.
//!
//! Sizes come from a seeded model, since the papers' file is unknown:
//! size_k = mean(kind_k) * scene * picture, scaled so that the file has exactly its size.
//! - kind: I, P, B in the proportion that MPEG-2 Test Model 5 (ISO/IEC JTC1/SC29/WG11 N0400, section 10) gives to a
//!   sequence without prior knowledge: complexities 160 : 60 : 42, B pictures quantised 1.4 times coarser.
//! - scene, picture: lognormal factors; a scene's lasts until the next cut.
//!   Their spreads give the variation that Fitzek and Reisslein measured (IEEE Network 15(6), 2001; library of
//!   trace.eas.asu.edu, "The Simpsons", medium quality: coefficient of variation 0.75 of pictures, 0.43 of groups).
//!
//! Ours: cuts fall between groups of pictures, and audio is part of the pictures' bytes.

use anabranch_units::{Bandwidth, Duration};
use rand::{Rng, RngExt};

/// Seconds between I pictures: the recommendation of adaptive streaming for seeking; encoders' defaults are 1 to 10 s.
const GROUP_SECONDS: u64 = 2;
/// B pictures between two others: the IBBP pattern of Test Model 5 and of most traces.
const B_RUN: u32 = 2;
/// Test Model 5, section 10: the initial complexities of I, P and B pictures, in any unit.
const COMPLEXITY: [f64; 3] = [160.0, 60.0, 42.0];
/// Test Model 5, section 10: how much coarser than an I picture each kind is quantised (1, Kp, Kb).
const COARSENESS: [f64; 3] = [1.0, 1.0, 1.4];
/// Coefficient of variation of a scene's factor: that of groups of pictures in the measured trace.
const SCENE_VARIATION: f64 = 0.43;
/// The highest accepted value: beyond it a lognormal factor has an extreme tail.
const VARIATION_MAX: f64 = 10.0;
/// Coefficient of variation of a picture's factor: the rest of the measured trace's 0.75 over all pictures,
/// (1 + 0.75^2) / ((1 + 0.52^2) (1 + 0.43^2)) - 1 = 0.2^2, where 0.52 comes from the kinds.
const PICTURE_VARIATION: f64 = 0.2;
/// Mean length of a scene: shots of contemporary films last about four seconds (Cutting, DeLong and Nothelfer 2010).
const SCENE_LENGTH: Duration = Duration::from_secs(4);
/// Bytes of the `moov` box per picture: 4 for its size (stsz), 8 for its composition offset (ctts),
/// 8 for the audio that goes with it (47 AAC frames a second with 4 bytes each).
const INDEX_BYTES_PER_PICTURE: u64 = 20;
/// Bytes of the `moov` box that do not depend on the length: boxes, codec configuration, chunk tables.
const INDEX_BYTES_FIXED: u64 = 4_000;

/// Why a video cannot be generated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VideoError {
    /// Rate or frame rate is zero.
    #[error("a video needs a rate and a frame rate above zero")]
    ZeroRate,
    /// Not even one byte per picture is left after the header.
    #[error("{size} bytes are too few for {pictures} pictures and their index of {header} bytes")]
    TooSmall {
        /// Bytes of the file.
        size: u64,
        /// Number of pictures by its duration.
        pictures: u32,
        /// Bytes of the header.
        header: u64,
    },
    /// A coefficient of variation out of range, or a scene of length zero.
    #[error("a variation must lie between 0 and {VARIATION_MAX}, and a scene must have a length")]
    BadVariation,
    /// More pictures than a 32-bit number can count.
    #[error("the video has more than 2^32 pictures")]
    TooLong,
}

/// Pictures per second, as a ratio (24000/1001 is common).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRate {
    numerator: u32,
    denominator: u32,
}

impl FrameRate {
    /// `numerator / denominator` pictures per second. Both must be above zero.
    pub fn new(numerator: u32, denominator: u32) -> Option<Self> {
        (numerator > 0 && denominator > 0).then_some(FrameRate { numerator, denominator })
    }

    /// A whole number of pictures per second, above zero.
    pub fn from_fps(fps: u32) -> Option<Self> {
        FrameRate::new(fps, 1)
    }

    /// Playing time before picture `k`, rounded down to a nanosecond.
    pub fn timestamp(self, k: u32) -> Duration {
        let nanos = u128::from(k) * u128::from(self.denominator) * 1_000_000_000 / u128::from(self.numerator);
        Duration::from_nanos(nanos as u64)
    }

    /// Playing time of a picture.
    pub fn period(self) -> Duration {
        self.timestamp(1)
    }

    /// Number of whole pictures in `time`.
    fn pictures_in(self, time: Duration) -> u128 {
        u128::from(time.as_nanos()) * u128::from(self.numerator) / (u128::from(self.denominator) * 1_000_000_000)
    }
}

/// Variation of the sizes of pictures beyond their kinds. It determines how long a link that is hardly faster than the
/// video is too slow. The papers do not state it for their video: an assumption to be varied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variation {
    /// Coefficient of variation between scenes, 0 to 10. Zero: groups of pictures differ by chance only.
    pub scene: f64,
    /// Coefficient of variation between pictures of a kind within a scene, 0 to 10.
    pub picture: f64,
    /// Mean length of a scene.
    pub scene_length: Duration,
}

impl Default for Variation {
    /// The measured trace's and the films' of the module documentation: 0.43, 0.2, 4 s.
    fn default() -> Self {
        Variation { scene: SCENE_VARIATION, picture: PICTURE_VARIATION, scene_length: SCENE_LENGTH }
    }
}

impl Variation {
    fn is_valid(&self) -> bool {
        let valid = |variation: f64| (0.0..=VARIATION_MAX).contains(&variation);
        valid(self.scene) && valid(self.picture) && !self.scene_length.is_zero()
    }
}

/// Parameters of a synthetic file.
#[derive(Clone, Copy, Debug)]
pub struct VideoSpec {
    /// Bytes of the whole file.
    pub size: u64,
    /// Mean rate, header included: the duration is size over rate.
    pub rate: Bandwidth,
    /// Pictures per second.
    pub frame_rate: FrameRate,
    /// Variation of the sizes of its pictures.
    pub variation: Variation,
}

impl VideoSpec {
    /// Playing time.
    pub fn duration(&self) -> Duration {
        self.rate.time_to_send(self.size)
    }

    /// Whether [`FrameTable::generate`] can make the video; no picture is drawn.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn check(&self) -> Result<(), VideoError> {
        self.layout().map(|_| ())
    }

    fn layout(&self) -> Result<Layout, VideoError> {
        if self.rate.as_bps() == 0 {
            return Err(VideoError::ZeroRate);
        }
        if !self.variation.is_valid() {
            return Err(VideoError::BadVariation);
        }
        let pictures = self.frame_rate.pictures_in(self.duration());
        let pictures = u32::try_from(pictures).map_err(|_| VideoError::TooLong)?.max(1);
        let header = INDEX_BYTES_FIXED + INDEX_BYTES_PER_PICTURE * u64::from(pictures);
        let payload = self.size.checked_sub(header).filter(|&left| left >= u64::from(pictures));
        let payload = payload.ok_or(VideoError::TooSmall { size: self.size, pictures, header })?;
        Ok(Layout { pictures, header, payload })
    }
}

/// What a file has room for.
struct Layout {
    /// Number of pictures.
    pictures: u32,
    /// Bytes before the first of them.
    header: u64,
    /// Bytes of all of them.
    payload: u64,
}

/// Coding type of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Intra-coded.
    I,
    /// Predicted from an earlier picture.
    P,
    /// Predicted from an earlier and a later picture.
    B,
}

/// The end of every picture of a video in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameTable {
    frame_rate: FrameRate,
    header: u64,
    ends: Vec<u64>,
}

impl FrameTable {
    /// Generates a synthetic video. The same numbers from `rng` give the same video.
    pub fn generate(spec: &VideoSpec, rng: &mut impl Rng) -> Result<Self, VideoError> {
        let Layout { pictures, header, payload } = spec.layout()?;
        let ends = scale(&weights(pictures, spec, rng), header, payload);
        Ok(FrameTable { frame_rate: spec.frame_rate, header, ends })
    }

    /// A video with known sizes, in the order of decoding, after `header` bytes.
    pub fn from_sizes(frame_rate: FrameRate, header: u64, sizes: impl IntoIterator<Item = u64>) -> Self {
        let mut end = header;
        let ends = sizes.into_iter().map(|size| {
            end += size;
            end
        });
        FrameTable { frame_rate, header, ends: ends.collect() }
    }

    /// Number of pictures.
    pub fn len(&self) -> u32 {
        self.ends.len() as u32
    }

    /// Whether there is no picture.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Pictures per second.
    pub fn frame_rate(&self) -> FrameRate {
        self.frame_rate
    }

    /// Playing time before picture `k`.
    pub fn timestamp(&self, k: u32) -> Duration {
        self.frame_rate.timestamp(k)
    }

    /// Playing time of all pictures.
    pub fn duration(&self) -> Duration {
        self.timestamp(self.len())
    }

    /// Bytes before the first picture.
    pub fn header(&self) -> u64 {
        self.header
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.ends.last().copied().unwrap_or(self.header)
    }

    /// The offset in the file at which picture `k` begins; for `k` past the last one, the size of the file.
    pub fn start(&self, k: u32) -> u64 {
        match k {
            0 => self.header,
            _ => self.end(k - 1),
        }
    }

    /// The offset in the file at which picture `k` ends; for `k` past the last one, the size of the file.
    #[inline]
    pub fn end(&self, k: u32) -> u64 {
        self.ends.get(k as usize).copied().unwrap_or_else(|| self.size())
    }

    /// Number of pictures that are complete within the first `bytes` of the file.
    pub fn complete_within(&self, bytes: u64) -> u32 {
        self.ends.partition_point(|&end| end <= bytes) as u32
    }

    /// The picture that contains the byte at `offset`; `None` in the header and past the end.
    pub fn at_offset(&self, offset: u64) -> Option<u32> {
        let k = self.complete_within(offset);
        (offset >= self.header && k < self.len()).then_some(k)
    }

    /// The same as [`FrameTable::at_offset`], without a search if it is the picture `near` or the one after it.
    pub fn at_offset_near(&self, offset: u64, near: u32) -> Option<u32> {
        let contains = |k: &u32| *k < self.len() && (self.start(*k)..self.end(*k)).contains(&offset);
        [near, near.saturating_add(1)].into_iter().find(contains).or_else(|| self.at_offset(offset))
    }

    /// The picture that is due at playing time `time`; past the end, the number of pictures.
    pub fn at_time(&self, time: Duration) -> u32 {
        u32::try_from(self.frame_rate.pictures_in(time)).map_or(self.len(), |k| k.min(self.len()))
    }

    /// Coding type of picture `k` of a video from [`FrameTable::generate`].
    pub fn kind(&self, k: u32) -> FrameKind {
        kind(k, group_length(self.frame_rate))
    }
}

fn group_length(frame_rate: FrameRate) -> u32 {
    frame_rate.pictures_in(Duration::from_secs(GROUP_SECONDS)).max(1) as u32
}

/// In decoding order: I, then repeatedly a P and the B pictures that are shown before it.
fn kind(k: u32, group: u32) -> FrameKind {
    match k % group {
        0 => FrameKind::I,
        n if (n - 1) % (B_RUN + 1) == 0 => FrameKind::P,
        _ => FrameKind::B,
    }
}

/// Relative sizes of all pictures.
fn weights(pictures: u32, spec: &VideoSpec, rng: &mut impl Rng) -> Vec<f64> {
    let Variation { scene: between, picture: within, scene_length } = spec.variation;
    let group = group_length(spec.frame_rate);
    let group_seconds = spec.frame_rate.timestamp(group).as_secs_f64();
    // A cut at every group boundary with this probability gives scenes of the wanted mean length.
    let cut = (group_seconds / scene_length.as_secs_f64()).min(1.0);
    let mut scene = lognormal(between, rng);
    (0..pictures)
        .map(|k| {
            if k > 0 && k % group == 0 && rng.random::<f64>() < cut {
                scene = lognormal(between, rng);
            }
            mean_weight(kind(k, group)) * scene * lognormal(within, rng)
        })
        .collect()
}

fn mean_weight(kind: FrameKind) -> f64 {
    COMPLEXITY[kind as usize] / COARSENESS[kind as usize]
}

/// Lognormal with median one (the mean follows from scaling): exp(s z), where s^2 = ln(1 + variation^2).
pub(crate) fn lognormal(variation: f64, rng: &mut impl Rng) -> f64 {
    let s = libm::log(1.0 + variation * variation).sqrt();
    libm::exp(s * standard_normal(rng))
}

/// Box and Muller's transformation, by its cosine.
fn standard_normal(rng: &mut impl Rng) -> f64 {
    let (u, v) = (1.0 - rng.random::<f64>(), rng.random::<f64>());
    (-2.0 * libm::log(u)).sqrt() * libm::cos(core::f64::consts::TAU * v)
}

/// Divides `payload` in proportion to the weights, at least one byte each, and sums from `header` on.
/// The partial sums are rounded, so the last one is exact.
fn scale(weights: &[f64], header: u64, payload: u64) -> Vec<u64> {
    let total: f64 = weights.iter().sum();
    let spare = payload - weights.len() as u64;
    let mut sum = 0.0;
    let mut ends: Vec<u64> = (1u64..)
        .zip(weights)
        .map(|(n, weight)| {
            sum += weight;
            header + n + ((sum / total * spare as f64) as u64).min(spare)
        })
        .collect();
    if let Some(last) = ends.last_mut() {
        *last = header + payload;
    }
    ends
}

#[cfg(test)]
mod tests;
