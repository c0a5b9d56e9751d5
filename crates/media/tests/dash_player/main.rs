//! Whole sessions of DASH players on an ideal network.

mod audio;
mod dialogues;
mod downlink;
mod properties;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "../../src/testing.rs"]
mod testing;

use anabranch_events::PlayerEvent;
use anabranch_media::content::{DashVideo, Representation, Resolution};
use anabranch_media::{Content, DashOptions, Exchanges, PLAYERS, Player, PlayerOptions, PlayerSetup, Stream};
use anabranch_observation::{ViewerMetrics, ViewerReport};
use anabranch_units::{Duration, Instant};
use downlink::{Downlink, play};
use std::sync::Arc;
use testing::at_ms;

const DASH_PLAYERS: [&str; 8] =
    ["dash.js-2.2", "dash.js-2.9", "dash.js-5", "bba-0", "bola", "robust-mpc", "rate", "fixed"];

/// `segments` segments of `seconds` seconds in representations of these kbit/s.
fn video(kbps: &[u64], seconds: u64, segments: usize) -> DashVideo {
    let representation = |&kbps: &u64| Representation { bitrate: kbps * 1_000, resolution: None };
    let durations = vec![Duration::from_secs(seconds); segments];
    DashVideo::nominal(kbps.iter().map(representation).collect(), &durations).unwrap()
}

/// Results of a session.
struct Session {
    events: Vec<(Instant, PlayerEvent)>,
    finished: bool,
    end: Instant,
}

fn player(name: &str, video: &DashVideo, dash: DashOptions, exchanges: &Exchanges) -> Box<dyn Player + Send> {
    let options = PlayerOptions { dash, ..PlayerOptions::default() };
    let content = Content::Dash(Arc::new(video.clone()));
    let setup = PlayerSetup { content, exchanges: exchanges.clone(), options };
    (PLAYERS.find(name).unwrap().create)(&setup).unwrap()
}

fn run(name: &str, video: &DashVideo, dash: DashOptions, link: &Downlink, until_ms: u64) -> Session {
    let exchanges = Exchanges::new();
    let mut player = player(name, video, dash, &exchanges);
    let events = play(player.as_mut(), &exchanges, link, at_ms(until_ms));
    let end = if player.finished() { events.last().unwrap().0 } else { at_ms(until_ms) };
    Session { finished: player.finished(), events, end }
}

impl Session {
    /// All events that a pattern selects, with their times.
    fn pick<T>(&self, pattern: impl Fn(&PlayerEvent) -> Option<T>) -> Vec<(Instant, T)> {
        self.events.iter().filter_map(|(at, event)| Some((*at, pattern(event)?))).collect()
    }

    fn first(&self, wanted: &PlayerEvent) -> Option<Instant> {
        self.events.iter().find(|(_, event)| event == wanted).map(|(at, _)| *at)
    }

    /// Requests for media segments: index and representation.
    fn requested(&self) -> Vec<(Instant, (u32, u16))> {
        self.pick(|event| match *event {
            PlayerEvent::SegmentRequested { index, representation, .. } => Some((index, representation)),
            _ => None,
        })
    }

    /// Appended media segments: index, representation, and the level then.
    fn appended(&self) -> Vec<(Instant, (u32, u16, Duration))> {
        self.pick(|event| match *event {
            PlayerEvent::SegmentAppended { index, representation, buffered } => Some((index, representation, buffered)),
            _ => None,
        })
    }

    fn shown(&self) -> Vec<(Instant, (u32, u16))> {
        self.pick(|event| match *event {
            PlayerEvent::SegmentShown { index, representation } => Some((index, representation)),
            _ => None,
        })
    }

    fn inits(&self) -> Vec<(Instant, u16)> {
        self.pick(|event| match *event {
            PlayerEvent::InitRequested { representation, .. } => Some(representation),
            _ => None,
        })
    }

    fn stalls(&self) -> Vec<(Instant, bool)> {
        self.pick(|event| match event {
            PlayerEvent::StallBegan => Some(true),
            PlayerEvent::StallEnded => Some(false),
            _ => None,
        })
    }

    fn viewer(&self) -> ViewerReport {
        let mut metrics = ViewerMetrics::new(Instant::ZERO);
        self.events.iter().for_each(|(at, event)| metrics.observe(*at, event));
        metrics.finish(self.end)
    }
}

fn hd() -> Resolution {
    Resolution::HIGH_QUALITY
}
