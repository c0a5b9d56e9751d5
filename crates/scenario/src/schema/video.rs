//! What a session transfers and who watches it.

use super::dash::{self, DashContent};
use super::document::{Node, Value};
use super::reader::{Complaint, Reader, Result, wrong_kind};
use super::reference;
use crate::quantity::{read_bytes, read_rate, read_time};
use anabranch_media::abr::AbrOptionError;
use anabranch_media::{
    Content, Exchanges, FrameRate, FrameTable, PLAYERS, PlayerOptions, PlayerSetup, SetupError, Variation, VideoError,
    VideoSpec,
};
use anabranch_units::Bandwidth;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::path::Path;
use std::sync::Arc;

/// What is transferred.
#[derive(Clone, Debug, PartialEq)]
pub enum Video {
    /// One file that is played while it is fetched.
    Progressive {
        /// Bytes of the file.
        size: u64,
        /// Its mean rate; the playing time is size over rate.
        rate: Bandwidth,
        /// Pictures per second, as numerator and denominator.
        fps: (u32, u32),
        /// Which of the made-up sequences of picture sizes. It does not depend on the run's seed: repetitions of an
        /// experiment play the same file.
        seed: u64,
        /// How much the sizes vary.
        variation: Variation,
    },
    /// Media segments in several representations.
    Dash(DashContent),
    /// Bytes without meaning; endless if no size is given.
    Bulk {
        /// How many.
        size: Option<u64>,
    },
}

impl Video {
    /// The content for a player; the scenario was checked, so it can be made.
    pub(crate) fn content(&self) -> Content {
        self.try_content().expect("the scenario's videos were checked")
    }

    fn try_content(&self) -> std::result::Result<Content, VideoError> {
        match self {
            Video::Progressive { size, rate, fps, seed, variation } => {
                let frame_rate = FrameRate::new(fps.0, fps.1).expect("read_fps refuses zero");
                let spec = VideoSpec { size: *size, rate: *rate, frame_rate, variation: *variation };
                let table = FrameTable::generate(&spec, &mut ChaCha8Rng::seed_from_u64(*seed))?;
                Ok(Content::Progressive(Arc::new(table)))
            }
            Video::Dash(content) => Ok(Content::Dash(content.video().clone())),
            Video::Bulk { size: Some(size) } => Ok(Content::Bytes(*size)),
            Video::Bulk { size: None } => Ok(Content::Endless),
        }
    }

    /// The rate at which it is consumed, if it has one.
    pub(crate) fn rate(&self) -> Option<Bandwidth> {
        match self {
            Video::Progressive { rate, .. } => Some(*rate),
            // It depends on what the player chooses.
            Video::Dash(_) | Video::Bulk { .. } => None,
        }
    }
}

/// Who watches.
#[derive(Clone, Debug, PartialEq)]
pub struct Player {
    /// Its name in the registry.
    pub kind: String,
    /// What the scenario says about it.
    pub options: PlayerOptions,
}

/// Reads `video` and `player` of a session.
pub(super) fn read(session: &Reader<'_>, directory: Option<&Path>) -> Result<(Video, Player)> {
    let video = match session.node("video") {
        Some(node) => read_video(session.file, node, directory)?,
        None => Video::Bulk { size: None },
    };
    let player = read_player(session, &video)?;
    Ok((video, player))
}

fn read_video(file: &str, node: &Node, directory: Option<&Path>) -> Result<Video> {
    let any = Reader::unchecked(file, node, "video.bulk", "video")?;
    let Some((kind, at)) = any.text("kind")? else {
        return any.missing("kind", "\"progressive\", \"dash\" or \"bulk\"");
    };
    match kind {
        "progressive" => {
            let r = Reader::new(file, node, "video.progressive", "video")?;
            let Some(size) = r.quantity("size", read_bytes)? else {
                return r.missing("size", "the size of the file, such as \"409 MB\"");
            };
            let Some(rate) = r.quantity("rate", read_rate)? else {
                return r.missing("rate", "the rate of the video, such as \"5.24 Mb/s\"");
            };
            let seed = r.integer_or_default("seed", 0..=u64::from(u32::MAX))?;
            let video = Video::Progressive { size, rate, fps: read_fps(&r)?, seed, variation: read_variation(&r)? };
            match video.try_content() {
                Ok(_) => Ok(video),
                Err(error) => r.fail(Complaint::new(error.to_string(), "another size, rate or fps"), r.at),
            }
        }
        "dash" => Ok(Video::Dash(dash::read_video(file, node, directory)?)),
        "bulk" => {
            let r = Reader::new(file, node, "video.bulk", "video")?;
            Ok(Video::Bulk { size: r.quantity("size", read_bytes)? })
        }
        other => Err(Complaint::unknown("kind of video", other, ["progressive", "dash", "bulk"]).at(file, at)),
    }
}

/// Twice what any published video has.
const MOST_VARIATION: f64 = 10.0;

fn read_variation(r: &Reader<'_>) -> Result<Variation> {
    let own = Variation::default();
    Ok(Variation {
        scene: r.number("scene_variation", 0.0..=MOST_VARIATION)?.unwrap_or(own.scene),
        picture: r.number("picture_variation", 0.0..=MOST_VARIATION)?.unwrap_or(own.picture),
        scene_length: r.quantity("scene_length", read_time)?.unwrap_or(own.scene_length),
    })
}

/// `24`, or `"24000/1001"`.
fn read_fps(r: &Reader<'_>) -> Result<(u32, u32)> {
    const EXPECTED: &str = "pictures per second from 1 to 1000, such as 24 or \"24000/1001\"";
    let Some(node) = r.node("fps") else {
        return Ok((reference::default("video.progressive", "fps").parse().expect("the default is a number"), 1));
    };
    let ratio = match &node.value {
        Value::Integer(n) => u32::try_from(*n).ok().map(|n| (n, 1)),
        Value::Text(text) => {
            text.split_once('/').and_then(|(n, d)| Some((n.trim().parse().ok()?, d.trim().parse().ok()?)))
        }
        _ => None,
    };
    match ratio {
        Some((n, d)) if d > 0 && n >= d && n / d <= 1000 => Ok((n, d)),
        _ => r.fail(Complaint::new("`fps` is not usable", EXPECTED), &node.at),
    }
}

fn read_player(session: &Reader<'_>, video: &Video) -> Result<Player> {
    let default = match video {
        Video::Progressive { .. } => "vlc",
        Video::Dash(_) => "dash.js-5",
        Video::Bulk { .. } => "bulk",
    };
    let Some(node) = session.node("player") else {
        return Ok(Player { kind: default.to_string(), options: PlayerOptions::default() });
    };
    let file = session.file;
    let (kind, kind_at, options) = match &node.value {
        Value::Text(kind) => (kind.as_str(), &node.at, PlayerOptions::default()),
        Value::Table(_) => {
            let r = Reader::new(file, node, "player", "player")?;
            let (kind, at) = r.text("kind")?.unwrap_or((default, &node.at));
            (kind, at, read_options(&r)?)
        }
        other => {
            return Err(wrong_kind("player", other, "the name of a player, or a table with `kind`").at(file, &node.at));
        }
    };
    let Some(entry) = PLAYERS.find(kind) else {
        return Err(Complaint::unknown("player", kind, PLAYERS.names()).at(file, kind_at));
    };
    let setup = PlayerSetup { content: probe_content(video), exchanges: Exchanges::new(), options };
    if let Err(error) = (entry.create)(&setup) {
        let at = match &error {
            SetupError::UnknownOption { option, .. } => option_place(node, option),
            SetupError::Rule(AbrOptionError::Unknown { option, .. } | AbrOptionError::OutOfRange { option, .. }) => {
                option_place(node, option)
            }
            SetupError::NoSuchRepresentation { option, .. } => option_place(node, option),
            SetupError::WrongContent { .. } => None,
        };
        return Err(Complaint::new(error.to_string(), "").at(file, at.unwrap_or(kind_at)));
    }
    Ok(Player { kind: kind.to_string(), options })
}

/// Content of the video's kind for trying a player out: a real one may have a million pictures.
fn probe_content(video: &Video) -> Content {
    match video {
        Video::Progressive { fps, .. } => {
            let frame_rate = FrameRate::new(fps.0, fps.1).expect("read_fps refuses zero");
            Content::Progressive(Arc::new(FrameTable::from_sizes(frame_rate, 1, [1])))
        }
        Video::Dash(_) | Video::Bulk { .. } => video.content(),
    }
}

fn option_place<'a>(player: &'a Node, option: &str) -> Option<&'a super::document::Origin> {
    let Value::Table(table) = &player.value else { return None };
    table.get(option).map(|entry| &entry.at)
}

fn read_options(r: &Reader<'_>) -> Result<PlayerOptions> {
    Ok(PlayerOptions {
        caching: r.quantity("caching", read_time)?,
        ring: r.quantity("ring", read_bytes)?,
        clock_jitter: r.quantity("clock_jitter", read_time)?,
        duration: r.quantity("duration", read_time)?,
        dash: dash::read_options(r)?,
    })
}
