//! Players: request the content and, if it is a video, play it.
//!
//! One player, one file, one line in [`PLAYERS`].

mod bulk;
mod dash;
mod vlc;

pub use bulk::Bulk;
pub use dash::{Dash, DashOptions, GiveUp, outside_domain};
pub use vlc::{FrameCounts, Vlc, VlcOptions};

use crate::abr::{AbrOptionError, AbrOptions, RuleChoice};
use crate::content::DashVideo;
use crate::frames::FrameTable;
use crate::given::first_unknown;
use crate::http::{Exchanges, HttpClient, Received};
use crate::stream::Stream;
use anabranch_events::{Log, PlayerEvent};
use anabranch_registry::options::OptionError;
use anabranch_registry::{Entry, Registry};
use anabranch_units::{Bytes, Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::sync::Arc;

/// A player as its host drives it. Time is an argument and must never decrease.
///
/// After every call the host must read the timeout again and may drain the log. A player that reopens its connection
/// ([`Stream::reopen`], to abandon a download) continues with the same stream, which then belongs to the new
/// connection.
pub trait Player {
    /// The connection is established: place the first request.
    fn start(&mut self, now: Instant, stream: &mut dyn Stream);

    /// More bytes, or the peer's end of data, became readable. Called up to once per packet: constant time, and
    /// cheap when the player waits for more.
    fn on_readable(&mut self, now: Instant, stream: &mut dyn Stream);

    /// The time of [`Player::poll_timeout`] has come. A call before that time has no effect.
    fn handle_timeout(&mut self, now: Instant, stream: &mut dyn Stream);

    /// When to call [`Player::handle_timeout`]; `None` if never. It may change with every other call.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Whether the session is over: everything was played or fetched.
    fn finished(&self) -> bool;

    /// Whether there is an end that the player comes to: a video has one, an endless download has none, and a run that
    /// ends before it cuts the session off.
    fn has_end(&self) -> bool {
        true
    }

    /// Events since the last drain.
    fn log(&mut self) -> &mut Log<PlayerEvent>;

    /// Emits the buffer level, if it has a buffer: for tables and figures, at an interval that the host chooses.
    fn sample(&mut self, now: Instant);
}

/// The content of a player.
#[derive(Clone, Debug)]
pub enum Content {
    /// A file of pictures, played while it is fetched.
    Progressive(Arc<FrameTable>),
    /// A video in several representations, played segment by segment.
    Dash(Arc<DashVideo>),
    /// This many bytes.
    Bytes(u64),
    /// More bytes than any run can transfer.
    Endless,
}

impl Content {
    /// How long it plays; none if it is no video.
    pub fn playing_time(&self) -> Option<Duration> {
        match self {
            Content::Progressive(frames) => Some(frames.duration()),
            Content::Dash(video) => Some(video.duration()),
            Content::Bytes(_) | Content::Endless => None,
        }
    }
}

/// What a scenario may say about a player. An option that is absent has the player's own default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct PlayerOptions {
    /// Options of the players that fetch a single file.
    #[serde(flatten)]
    pub file: FileOptions,
    /// Options of DASH players, and of their bitrate rules.
    #[serde(flatten)]
    #[schemars(with = "DashKeys")]
    pub dash: DashOptions,
    /// A bitrate rule from outside.
    #[serde(flatten)]
    pub own: OwnRule,
}

/// A bitrate rule from outside, in the place of the player's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OwnRule {
    /// DASH players: a bitrate rule of yours in place of the player's, as `module:Class`, or a table with `name` and
    /// the options of the class. The rest of the player stays as it is.
    #[schemars(schema_with = "rule_schema")]
    pub rule: Option<RuleChoice>,
}

fn rule_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let name = schemars::json_schema!({ "type": "string" });
    let table = schemars::json_schema!({ "type": "object", "properties": { "name": name }, "required": ["name"] });
    schemars::json_schema!({ "anyOf": [name, table], "x-expected": "a name, or a table with `name` and options" })
}

/// The keys of DASH players, for the JSON Schema: those of the rule are read apart, see [`PlayerOptions::deserialize`].
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its JSON Schema is used")]
struct DashKeys {
    #[serde(flatten)]
    player: DashOptions,
    #[serde(flatten)]
    rule: AbrOptions,
}

/// Options of the players that fetch a single file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FileOptions {
    /// vlc: the playing time that must be read ahead before the start (network-caching); 1 s.
    pub caching: Option<Duration>,
    /// vlc: the bytes that are fetched ahead of the demultiplexer (the prefetch ring of VLC 3); 16 MiB, none in VLC 2.
    pub ring: Option<Bytes>,
    /// vlc: the largest growth of the playout delay (clock-jitter); 5 s.
    pub clock_jitter: Option<Duration>,
    /// bulk, on-off: when to stop before the content ends; never where absent (on-off: 60 s).
    pub duration: Option<Duration>,
    /// on-off: the time from one request to the next, which waits until the response before it is complete; 1 s.
    pub interval: Option<Duration>,
}

impl<'de> Deserialize<'de> for PlayerOptions {
    /// From one table that three structs share, which a deserializer offers as a tuple struct of that many parts.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Shared(FileOptions, DashOptions, AbrOptions, OwnRule);
        let Shared(file, dash, rule, own) = Shared::deserialize(deserializer)?;
        Ok(PlayerOptions { file, dash: DashOptions { rule, ..dash }, own })
    }
}

/// What a player is made from.
#[derive(Clone, Debug)]
pub struct PlayerSetup {
    /// The content to fetch.
    pub content: Content,
    /// The table shared with the server of its connection.
    pub exchanges: Exchanges,
    /// Options of the scenario.
    pub options: PlayerOptions,
}

/// Why a player cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The player plays another kind of content.
    #[error("player `{player}` needs {needs}")]
    WrongContent {
        /// Name of the player.
        player: &'static str,
        /// The content that it can play.
        needs: &'static str,
    },
    /// The player has no such option.
    #[error("player `{player}` has no option `{option}`")]
    UnknownOption {
        /// Name of the player.
        player: &'static str,
        /// Name of the option.
        option: String,
    },
    /// An option names a representation that the video does not have.
    #[error("`{option}` is {representation}, but the video has {have} representations, counted from 0")]
    NoSuchRepresentation {
        /// Name of the option.
        option: &'static str,
        /// Its value.
        representation: usize,
        /// Number of representations.
        have: usize,
    },
    /// An option that its bitrate rule refuses.
    #[error(transparent)]
    Rule(#[from] AbrOptionError),
    /// The bitrate rule from outside is not there, or refuses an option.
    #[error("{}", .0.message)]
    External(#[from] OptionError),
}

/// A player's line in the registry.
pub type PlayerEntry = Entry<Constructor>;

/// Makes a player for a session, or says what of the setup does not fit.
pub type Constructor = fn(&PlayerSetup) -> Result<Box<dyn Player + Send>, SetupError>;

/// Every player.
pub static PLAYERS: Registry<Constructor> = Registry::new(&[
    Entry {
        name: "vlc",
        summary: "Plays one file over HTTP as VLC 3.0 does: a 16 MiB prefetch ring, one second of caching, \
            pictures later than half a frame period dropped.",
        source: "VLC 3.0: modules/stream_filter/prefetch.c, modules/demux/mp4, src/input/clock.c, es_out.c, \
            src/video_output",
        create: |setup| vlc::build("vlc", VlcOptions::version_3(), setup),
    },
    Entry {
        name: "vlc-2",
        summary: "The same without the prefetch ring, as VLC 2.x had none: the socket's buffer and one second of \
            caching are all its reserve.",
        source: "as vlc; the absence of a prefetch stage in VLC 2.x is from the literature",
        create: |setup| vlc::build("vlc-2", VlcOptions::version_2(), setup),
    },
    Entry {
        name: "bulk",
        summary: "Downloads as fast as it can read, until everything is there or its time is over.",
        source: "curl, iperf",
        create: bulk::bulk,
    },
    Entry {
        name: "on-off",
        summary: "Downloads the same number of bytes at every interval, the next one at the earliest when the last is there.",
        source: "a player whose buffer is full",
        create: bulk::on_off,
    },
    Entry {
        name: "dash.js-2.2",
        summary: "Plays DASH as dash.js 2.0 to 2.2 does: a buffer of 12 s (30 s at the top), stopped below 0.5 s.",
        source: "dash.js 2.2.0: src/streaming/controllers, src/streaming/rules",
        create: dash::dashjs_2_2,
    },
    Entry {
        name: "dash.js-2.9",
        summary: "Plays DASH as dash.js 2.7 to 2.9 does: as 2.2, but a stall ends only with 12 s buffered.",
        source: "dash.js 2.9.3: src/streaming/controllers, src/streaming/rules",
        create: dash::dashjs_2_9,
    },
    Entry {
        name: "dash.js-5",
        summary: "Plays DASH as dash.js 5 does: a buffer of 18 s (30 s at the top); `fast_switch` fetches again what is on screen in a lower representation.",
        source: "dash.js 5.2.1: src/streaming/controllers, src/streaming/rules",
        create: dash::dashjs_5,
    },
    Entry {
        name: "bba-0",
        summary: "Plays DASH with a buffer of 240 s, whose level alone decides the bitrate.",
        source: "Huang et al., SIGCOMM 2014",
        create: dash::bba_0,
    },
    Entry {
        name: "bola",
        summary: "Plays DASH with a buffer of 25 s, whose utility BOLA maximises.",
        source: "Spiteri et al., INFOCOM 2016; Sabre",
        create: dash::bola,
    },
    Entry {
        name: "robust-mpc",
        summary: "Plays DASH with a buffer of 30 s and plans five media segments ahead.",
        source: "Yin et al., SIGCOMM 2015",
        create: dash::robust_mpc,
    },
    Entry {
        name: "rate",
        summary: "Plays DASH with a buffer of 60 s in the highest representation below the measured throughput.",
        source: "Jiang et al., CoNEXT 2012; Mao et al., SIGCOMM 2017",
        create: dash::rate,
    },
    Entry {
        name: "fixed",
        summary: "Plays DASH with a buffer of 60 s, always in the same representation.",
        source: "none",
        create: dash::fixed,
    },
]);

/// Refuses an option that is given and not among those that the player knows.
fn refuse_unknown(player: &'static str, options: &impl Serialize, known: &[&str]) -> Result<(), SetupError> {
    match first_unknown(options, known) {
        Some(option) => Err(SetupError::UnknownOption { player, option }),
        None => Ok(()),
    }
}

/// [`HttpClient::receive`], which also emits the begin and the completion of responses.
#[inline]
fn receive(
    client: &mut HttpClient,
    stream: &mut dyn Stream,
    max_body: u64,
    now: Instant,
    log: &mut Log<PlayerEvent>,
) -> Received {
    let received = client.receive(stream, max_body);
    if let Some(request) = received.began {
        log.emit(now, PlayerEvent::FirstByte { request });
    }
    if let Some((request, bytes)) = received.completed {
        log.emit(now, PlayerEvent::ResponseComplete { request, bytes, end: client.bytes_read() });
    }
    received
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::FrameRate;
    use crate::testing::{Pipe, at_ms, steady, watch};

    fn setup(content: Content) -> PlayerSetup {
        PlayerSetup { content, exchanges: Exchanges::new(), options: PlayerOptions::default() }
    }

    fn two_seconds() -> Content {
        Content::Progressive(Arc::new(FrameTable::from_sizes(FrameRate::from_fps(25).unwrap(), 500, [1_000; 50])))
    }

    /// Tests every registered player: each must fetch its content to the end, emit the events of that, and have no
    /// timeout after it.
    #[test]
    fn every_player_fetches_its_content_and_finishes() {
        for entry in PLAYERS {
            let fits = |c: &Content| (entry.create)(&setup(c.clone())).is_ok();
            let content = [two_seconds(), Content::Bytes(50_500)].into_iter().find(fits);
            // DASH players send many requests, which their own tests check.
            let Some(content) = content else { continue };
            let mut player = (entry.create)(&setup(content)).unwrap();
            let mut pipe = Pipe::default();
            let events = watch(player.as_mut(), &mut pipe, steady(100, 10, 500, 200), at_ms(60_000));
            assert!(player.finished() && player.poll_timeout().is_none() && pipe.finished, "{}", entry.name);
            let complete = PlayerEvent::ResponseComplete {
                request: 0,
                bytes: 50_500,
                end: 50_500 + crate::http::RESPONSE_HEADER_BYTES,
            };
            assert_eq!(events.iter().filter(|(_, e)| *e == complete).count(), 1, "{}", entry.name);
            assert!(entry.summary.ends_with('.') && !entry.source.is_empty());
        }
    }

    #[test]
    fn names_are_unique_and_found() {
        for entry in PLAYERS {
            assert!(std::ptr::eq(PLAYERS.find(entry.name).unwrap(), entry));
        }
        assert!(PLAYERS.find("quicktime").is_none());
    }

    #[test]
    fn every_player_plays_something() {
        let video = crate::content::find_ladder("bbb-1s").unwrap().video(Some(Duration::from_secs(2))).unwrap();
        for entry in PLAYERS {
            let content = [two_seconds(), Content::Bytes(50_500), Content::Dash(Arc::new(video.clone()))];
            let fits = |c: &&Content| (entry.create)(&setup((*c).clone())).is_ok();
            assert_eq!(content.iter().filter(fits).count(), 1, "{}", entry.name);
        }
    }

    #[test]
    fn content_and_options_that_do_not_fit_are_refused() {
        let build = |name: &str, setup: &PlayerSetup| (PLAYERS.find(name).unwrap().create)(setup).err();
        assert_eq!(
            build("vlc", &setup(Content::Bytes(9))),
            Some(SetupError::WrongContent { player: "vlc", needs: "a progressive video" })
        );
        assert_eq!(
            build("bulk", &setup(two_seconds())),
            Some(SetupError::WrongContent { player: "bulk", needs: "a number of bytes, or endless content" })
        );
        let mut odd = setup(two_seconds());
        odd.options.file.duration = Some(Duration::from_secs(1));
        assert_eq!(
            build("vlc-2", &odd),
            Some(SetupError::UnknownOption { player: "vlc-2", option: "duration".into() })
        );
        let mut odd = setup(Content::Endless);
        odd.options.file.interval = Some(Duration::from_secs(1));
        assert_eq!(build("bulk", &odd), Some(SetupError::UnknownOption { player: "bulk", option: "interval".into() }));
        let mut odd = setup(Content::Endless);
        odd.options.file.ring = Some(Bytes(1));
        assert_eq!(build("bulk", &odd), Some(SetupError::UnknownOption { player: "bulk", option: "ring".into() }));
        odd.options = PlayerOptions::default();
        odd.options.file.clock_jitter = Some(Duration::from_secs(1));
        assert_eq!(
            build("bulk", &odd),
            Some(SetupError::UnknownOption { player: "bulk", option: "clock_jitter".into() })
        );
        let mut odd = setup(Content::Endless);
        odd.options.dash.startup = Some(Duration::from_secs(1));
        assert_eq!(build("bulk", &odd), Some(SetupError::UnknownOption { player: "bulk", option: "startup".into() }));
        assert_eq!(build("vlc", &odd), Some(SetupError::UnknownOption { player: "vlc", option: "startup".into() }));
    }
}
