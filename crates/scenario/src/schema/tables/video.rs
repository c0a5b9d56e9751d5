//! `video = { ... }`: what a session transfers.

use anabranch_media::content::{DashVideo, LADDERS, Resolution, SegmentVariation};
use anabranch_media::{Content, FrameRate, FrameTable, Variation, VideoError, VideoSpec};
use anabranch_registry::by_kind;
use anabranch_units::{Bandwidth, Bytes, Duration, text};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

by_kind! {
    /// What is transferred.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Video: "kind of video" {
        /// One file that is played while it is downloaded.
        "progressive" => Progressive(Progressive),
        /// Media segments in several representations.
        "dash" => Dash(Dash),
        /// A download of bytes.
        "bulk" => Bulk(Bulk),
    }
}

/// One file that is played while it is downloaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Progressive {
    /// The size of the file, such as "409 MB".
    pub size: Bytes,
    /// The mean rate, such as "5.24 Mb/s"; the playing time is the size over the rate.
    pub rate: Bandwidth,
    /// Pictures per second: a number, or a ratio such as "24000/1001".
    #[serde(default)]
    pub fps: Fps,
    /// The seed of the synthetic picture sizes. It is independent of the run's seed, so that all runs play the same
    /// file.
    #[serde(default = "first", deserialize_with = "text::whole::<0, 4294967295, _, _>")]
    #[schemars(range(max = 4_294_967_295u64))]
    pub seed: u64,
    /// The coefficient of variation of picture sizes between scenes. The default was measured
    /// (`crates/media/src/frames.rs`).
    #[serde(default = "scene_variation", deserialize_with = "text::number::<0, 10, _>")]
    #[schemars(range(min = 0, max = 10))]
    pub scene_variation: f64,
    /// The same between pictures of one kind within a scene.
    #[serde(default = "picture_variation", deserialize_with = "text::number::<0, 10, _>")]
    #[schemars(range(min = 0, max = 10))]
    pub picture_variation: f64,
    /// The mean length of a scene.
    #[serde(default = "scene_length")]
    pub scene_length: Duration,
}

fn first() -> u64 {
    1
}

fn scene_variation() -> f64 {
    Variation::default().scene
}

fn picture_variation() -> f64 {
    Variation::default().picture
}

fn scene_length() -> Duration {
    Variation::default().scene_length
}

fn segment_scene_length() -> Duration {
    SegmentVariation::default().scene_length
}

/// What messages expect of `rates`.
pub(in super::super) const RATES_EXPECTED: &str =
    "a list of rates in ascending order, such as [\"1 Mb/s\", \"3 Mb/s\"]";
/// What messages expect of `resolutions`.
pub(in super::super) const RESOLUTIONS_EXPECTED: &str =
    "a list of widths and heights, one for each rate, such as [\"640x360\", \"1280x720\"]";

/// Media segments in several representations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dash {
    /// A shipped ladder: `bbb-1s`, `bbb-2s`, `bbb-6s`, `bbb-10s` (Big Buck Bunny, 596 s), `uhd-4s` (synthetic, up to 25
    /// Mb/s, 596 s).
    #[serde(default)]
    #[schemars(schema_with = "names_of_ladders")]
    pub ladder: Option<String>,
    /// In place of a ladder: the nominal rates of the representations, in ascending order, such as ["1 Mb/s", "3
    /// Mb/s"]. They need `segment_duration` and `duration`. Sizes are nominal with `scene_variation = 0`, and otherwise
    /// drawn.
    #[schemars(extend("x-expected" = RATES_EXPECTED))]
    pub rates: Option<Vec<Bandwidth>>,
    /// Of `rates`: the sizes of the pictures, one for each rate, such as ["640x360", "1280x720"]; unknown where absent.
    #[schemars(extend("x-expected" = RESOLUTIONS_EXPECTED))]
    pub resolutions: Option<Vec<Resolution>>,
    /// In place of a ladder: an MPD, relative to the scenario's file, with the sizes that it states.
    pub mpd: Option<String>,
    /// In place of a ladder: a JSON table of sizes, with `segment_duration_ms`, `bitrates_kbps`, `segment_sizes_bits`.
    pub table: Option<String>,
    /// The longest playing time, from the first media segment that is listed; a live MPD ends then. Of `rates`: the
    /// playing time.
    pub duration: Option<Duration>,
    /// Of an MPD: the only period that is played, counted from one; all of them, one after the other, where absent.
    #[serde(default, deserialize_with = "text::whole_option::<1, 10000, _, _>")]
    #[schemars(range(min = 1, max = 10_000))]
    pub period: Option<usize>,
    /// Of an MPD: the adaptation set of each period, counted from one. Where absent: of the main video the set with the
    /// highest bitrate, with those of the same codec, language and role.
    #[serde(default, deserialize_with = "text::whole_option::<1, 10000, _, _>")]
    #[schemars(range(min = 1, max = 10_000))]
    pub adaptation_set: Option<usize>,
    /// Of `rates`: the duration of media segments; the last one has the rest. Of an MPD: the same, needed where only
    /// the index of the media file has it.
    pub segment_duration: Option<Duration>,
    /// The coefficient of variation of sizes between scenes, which are lognormal. Where absent: 0.222 for a ladder or
    /// `rates`, 0 (sizes as they are) for an MPD or a table.
    #[serde(default, deserialize_with = "text::number_option::<0, 10, _>")]
    #[schemars(range(min = 0, max = 10))]
    pub scene_variation: Option<f64>,
    /// The mean length of a scene.
    #[serde(default = "segment_scene_length")]
    pub scene_length: Duration,
    /// The seed of these variations; independent of the run's seed.
    #[serde(default = "first", deserialize_with = "text::whole::<0, 4294967295, _, _>")]
    #[schemars(range(max = 4_294_967_295u64))]
    pub seed: u64,
    /// Bytes of an initialisation segment; where absent those that the MPD states, or 672 B.
    pub init: Option<Bytes>,
    /// Bytes of the MPD that the player downloads; where absent its own size, or 9321 B. 0 B if the player has it
    /// already.
    pub manifest: Option<Bytes>,
    /// The MPD or the table as it was read.
    #[serde(skip)]
    pub(crate) content: Option<Arc<[u8]>>,
    /// The video, once its description was read.
    #[serde(skip)]
    pub(in super::super) video: Option<Arc<DashVideo>>,
}

fn names_of_ladders(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<&str> = LADDERS.names().collect();
    json_schema!({ "enum": names, "x-expected": format!("one of {}", names.join(", ")) })
}

/// A download of bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bulk {
    /// The number of bytes; endless where absent.
    pub size: Option<Bytes>,
}

impl Video {
    /// The content for a player; the scenario was checked, so it can be made.
    pub(crate) fn content(&self) -> Content {
        match self {
            Video::Progressive(file) => Content::Progressive(Arc::new(file.table().expect("the video was checked"))),
            Video::Dash(dash) => Content::Dash(dash.video().clone()),
            Video::Bulk(Bulk { size: Some(Bytes(size)) }) => Content::Bytes(*size),
            Video::Bulk(Bulk { size: None }) => Content::Endless,
        }
    }

    /// The rate at which it is consumed, if it has one. That of a DASH video depends on what the player chooses.
    pub(crate) fn rate(&self) -> Option<Bandwidth> {
        if let Video::Progressive(file) = self { Some(file.rate) } else { None }
    }
}

impl Progressive {
    /// Pictures per second.
    pub(in super::super) fn frame_rate(&self) -> FrameRate {
        FrameRate::new(self.fps.0, self.fps.1).expect("a frame rate is above zero")
    }

    fn spec(&self) -> VideoSpec {
        let variation =
            Variation { scene: self.scene_variation, picture: self.picture_variation, scene_length: self.scene_length };
        VideoSpec { size: self.size.0, rate: self.rate, frame_rate: self.frame_rate(), variation }
    }

    /// Whether there is such a video. Its pictures are drawn when a run begins: a sweep reads a scenario several times
    /// for a run.
    pub(in super::super) fn check(&self) -> Result<(), VideoError> {
        self.spec().check()
    }

    /// The sizes of its pictures.
    fn table(&self) -> Result<FrameTable, VideoError> {
        FrameTable::generate(&self.spec(), &mut ChaCha8Rng::seed_from_u64(self.seed))
    }
}

impl Dash {
    /// The video as the player streams it.
    ///
    /// # Panics
    /// If its description was not read.
    pub fn video(&self) -> &Arc<DashVideo> {
        self.video.as_ref().expect("the description of the video was read")
    }

    /// Sizes vary as this says; those that shall not vary stay exactly as they are.
    pub(in super::super) fn finish(&self, base: DashVideo) -> DashVideo {
        let variation =
            SegmentVariation { scene: self.scene_variation.unwrap_or(0.0), scene_length: self.scene_length };
        let mut video = if variation.scene > 0.0 {
            base.varied(&variation, &mut ChaCha8Rng::seed_from_u64(self.seed))
        } else {
            base
        };
        if let Some(Bytes(bytes)) = self.init {
            video = video.with_init_bytes(bytes);
        }
        if let Some(Bytes(bytes)) = self.manifest {
            video = video.with_manifest_bytes(bytes);
        }
        video
    }
}

/// Pictures per second, as numerator and denominator: `24`, or `"24000/1001"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fps(pub u32, pub u32);

/// What messages expect of a frame rate.
const EXPECTED_FPS: &str = "pictures per second from 1 to 1000, such as 24 or \"24000/1001\"";

impl Default for Fps {
    fn default() -> Self {
        Fps(24, 1)
    }
}

impl Fps {
    fn is_usable(self) -> bool {
        self.1 > 0 && self.0 >= self.1 && self.0 / self.1 <= 1000
    }
}

impl Serialize for Fps {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.1 == 1 {
            serializer.serialize_u32(self.0)
        } else {
            serializer.collect_str(&format!("{}/{}", self.0, self.1))
        }
    }
}

impl<'de> Deserialize<'de> for Fps {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Rate;
        impl de::Visitor<'_> for Rate {
            type Value = Fps;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED_FPS)
            }

            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Fps, E> {
                let rate = u32::try_from(n).ok().map(|n| Fps(n, 1)).filter(|rate| rate.is_usable());
                rate.ok_or_else(|| E::invalid_value(de::Unexpected::Signed(n), &self))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Fps, E> {
                let sides = text.split_once('/');
                let rate = sides.and_then(|(n, d)| Some(Fps(n.trim().parse().ok()?, d.trim().parse().ok()?)));
                let rate = rate.filter(|rate| rate.is_usable());
                rate.ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Rate)
    }
}

impl JsonSchema for Fps {
    fn schema_name() -> Cow<'static, str> {
        "Fps".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{ "type": "integer", "minimum": 1, "maximum": 1000 }, { "type": "string" }],
            "x-expected": EXPECTED_FPS,
        })
    }
}
