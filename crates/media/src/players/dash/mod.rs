//! DASH players: dash.js in three generations, and the plain players of the bitrate rules' papers.
//!
//! A player fetches the MPD, then one media segment after the other over one persistent connection; a bitrate rule
//! ([`AbrRule`]) chooses the representations, and may abandon a request. The differences between the players are in
//! [`profile`].
//!
//! A step of the scheduler: if there is room in the buffer, ask the rule; fetch the representation's initialisation
//! segment if it was never fetched; fetch the media segment, perhaps after a pause set by the rule. When it is complete
//! it is appended, the buffer is measured, and the next step follows at once.
//!
//! An abandoned request: dash.js aborts the XMLHttpRequest, and the browser closes the connection and opens another
//! one. The player does the same; or it cancels the response or drains it on the same connection ([`GiveUp`]). The
//! bytes received count as wasted.
//!
//! Audio, if there is any, is requested together with each media segment and on the same connection, just ahead of it:
//! it costs its bytes and no round trip. (A browser uses a second connection, where the two share the rate; either way
//! the video gets the rest of the rate, and audio never causes a stall.)
//!
//! Not modelled: decoding (no pictures are dropped), seeking, several periods, the limit of the browser's source
//! buffer, updates of live MPDs.

mod buffer;
mod domain;
mod headers;
mod limits;
mod options;
mod playback;
mod profile;
mod request;
mod scheduler;

pub use domain::outside_domain;
pub use options::{DashOptions, GiveUp};

use super::{Content, Player, PlayerOptions, PlayerSetup, SetupError, receive, refuse_unknown};
use crate::abr::dashjs::{BufferWatch, Release, Reporter, Requested};
use crate::abr::{self, AbrRule, BufferState, Download, Event, Pictures, Playback as Phase, View};
use crate::cmcd::Cmcd;
use crate::content::DashVideo;
use crate::http::{Exchanges, HttpClient};
use crate::stream::Stream;
use anabranch_events::{Log, PlayerEvent};
use anabranch_registry::options::OptionError;
use anabranch_units::{Duration, Instant};
use buffer::{Held, MediaBuffer};
use limits::{Limits, first_representation};
use playback::{Due, Playback};
use profile::{BufferOption, Profile};
use request::{Kind, Pending};
use scheduler::Scheduler;
use std::collections::VecDeque;
use std::sync::Arc;

/// The player.
pub struct Dash {
    rule: Box<dyn AbrRule>,
    core: Core,
    scheduler: Scheduler,
    hung_up: bool,
}

/// The player's state apart from the rule and the scheduler.
struct Core {
    profile: Profile,
    video: Arc<DashVideo>,
    limits: Limits,
    client: HttpClient,
    /// Requests without a complete response, oldest first.
    pending: VecDeque<Pending>,
    buffer: MediaBuffer,
    playback: Playback,
    watch: Option<BufferWatch>,
    reporter: Option<Reporter>,
    /// The buffer level at the last measurement.
    measured: Duration,
    current: usize,
    /// The next media segment to be fetched.
    next: u32,
    downloads: Vec<Download>,
    log: Log<PlayerEvent>,
}

fn build(profile: Profile, setup: &PlayerSetup) -> Result<Box<dyn Player + Send>, SetupError> {
    let player = profile.name;
    let options = &setup.options;
    refuse_unknown(player, &options.file, &[])?;
    let of_five = [("fast_switch", options.dash.fast_switch.is_some()), ("cmcd", options.dash.cmcd.is_some())];
    if let Some((option, _)) = of_five.into_iter().find(|(_, given)| *given && profile.release != Some(Release::V5)) {
        return Err(SetupError::UnknownOption { player, option: option.into() });
    }
    let Content::Dash(video) = &setup.content else {
        return Err(SetupError::WrongContent { player, needs: "a DASH video" });
    };
    check_ranks(&options.dash, video.representations().len())?;
    let rule = make_rule(&profile, options)?;
    Ok(Box::new(Dash::new(profile, rule, video.clone(), &options.dash, setup.exchanges.clone())))
}

/// The player's own rule, or the one from outside in its place.
fn make_rule(profile: &Profile, options: &PlayerOptions) -> Result<Box<dyn AbrRule>, SetupError> {
    let own = abr::REGISTRY.find(profile.name).expect("every profile is named like its rule");
    let Some(choice) = &options.own.rule else { return Ok((own.create)(&rule_options(profile, &options.dash))?) };
    // Its options stand in its own table; those of the rule that it replaces would have no effect.
    refuse_unknown("with `rule`", &options.dash.rule, &[])?;
    let unknown = || OptionError { option: "name".into(), message: format!("there is no rule `{}`", choice.name) };
    let external = choice.external().ok_or_else(unknown)?;
    Ok(external.rule(&choice.name, &choice.options)?)
}

macro_rules! builder {
    ($name:ident, $profile:expr) => {
        pub(super) fn $name(setup: &PlayerSetup) -> Result<Box<dyn Player + Send>, SetupError> {
            build($profile, setup)
        }
    };
}

builder!(dashjs_2_2, profile::DASHJS_2_2);
builder!(dashjs_2_9, profile::DASHJS_2_9);
builder!(dashjs_5, profile::DASHJS_5);
builder!(bba_0, profile::BBA_0);
builder!(bola, profile::BOLA);
builder!(robust_mpc, profile::ROBUST_MPC);
builder!(rate, profile::RATE);
builder!(fixed, profile::FIXED);

/// Ranks in the options must exist.
fn check_ranks(options: &DashOptions, have: usize) -> Result<(), SetupError> {
    let named =
        [("initial_representation", options.initial_representation), ("representation", options.rule.representation)];
    for (option, rank) in named {
        if let Some(representation) = rank.filter(|&rank| rank >= have) {
            return Err(SetupError::NoSuchRepresentation { option, representation, have });
        }
    }
    Ok(())
}

/// Passes the player's buffer to the rule, where it has an option for it.
fn rule_options(profile: &Profile, options: &DashOptions) -> abr::AbrOptions {
    let mut rule = options.rule;
    let buffer = options.buffer.unwrap_or(profile.buffer);
    match profile.buffer_option {
        BufferOption::Stable => rule.stable_buffer = rule.stable_buffer.or(Some(buffer)),
        BufferOption::Capacity => rule.capacity = rule.capacity.or(Some(buffer)),
        BufferOption::Nothing => {}
    }
    rule
}

impl Dash {
    fn new(
        profile: Profile,
        rule: Box<dyn AbrRule>,
        video: Arc<DashVideo>,
        options: &DashOptions,
        exchanges: Exchanges,
    ) -> Self {
        let limits = Limits::new(&profile, &video, options);
        let core = Core {
            profile,
            limits,
            client: HttpClient::new(exchanges),
            pending: VecDeque::new(),
            buffer: MediaBuffer::new(video.segments()),
            playback: Playback::new(),
            reporter: options.cmcd.unwrap_or(false).then(Reporter::default),
            watch: profile.release.map(|release| BufferWatch::new(release, limits.buffer)),
            measured: Duration::ZERO,
            current: first_representation(&profile, &video, options).min(limits.top),
            next: 0,
            downloads: Vec::new(),
            log: Log::default(),
            video,
        };
        let scheduler = Scheduler::new(core.video.representations().len());
        Dash { rule, core, scheduler, hung_up: false }
    }

    /// Processes everything that depends on the clock only, up to now.
    fn advance(&mut self, now: Instant) {
        while let Some(due) = self.core.playback.due(&self.core.video).filter(|due| due.at() <= now) {
            match due {
                Due::SegmentEnd(at) => self.end_segment(at),
                Due::TimeUpdate(at) => {
                    self.core.playback.updated();
                    self.measure(at);
                }
            }
        }
    }

    /// The media segment on screen has ended: show the next one, or stall, or end.
    fn end_segment(&mut self, at: Instant) {
        let next = self.core.playback.on_screen().map_or(0, |index| index + 1);
        if next >= self.core.buffer.total() {
            self.core.playback.finish(at);
            self.core.log.emit(at, PlayerEvent::PlaybackEnded);
        } else if let Some(held) = self.core.buffer.get(next) {
            self.core.playback.enter_next();
            self.show(held, at);
        } else {
            self.freeze(at);
            self.measure(at);
        }
    }

    /// Shows the media segment at the current position.
    fn show(&mut self, held: Held, at: Instant) {
        let index = self.core.playback.on_screen().unwrap_or(0);
        let before = index.checked_sub(1).and_then(|before| self.core.buffer.get(before));
        self.core.log.emit(at, PlayerEvent::SegmentShown { index, representation: held.representation as u16 });
        let (from, to) = (before.map_or(held.representation, |b| b.representation), held.representation);
        if from != to {
            self.rule.observe(&self.core.view(at), &Event::Shown { from, to });
        }
    }

    fn freeze(&mut self, at: Instant) {
        self.core.playback.freeze(at);
        self.core.log.emit(at, PlayerEvent::StallBegan);
    }

    /// Measures the buffer: the rule gets the level, and dash.js 2 may stop the video or resume it.
    fn measure(&mut self, at: Instant) {
        let core = &mut self.core;
        core.measured = core.level(at);
        let (begun, complete) = (!core.playback.position(at).is_zero(), core.buffer.is_complete());
        let changed = core.watch.as_mut().and_then(|watch| watch.measure(core.measured, begun, complete));
        self.rule.observe(&self.core.view(at), &Event::BufferMeasured);
        let Some(state) = changed else { return };
        let loaded = state == BufferState::Loaded;
        self.core.log.emit(at, PlayerEvent::BufferStateChanged { loaded });
        self.rule.observe(&self.core.view(at), &Event::BufferState(state));
        if let Some(reporter) = self.core.reporter.as_mut().filter(|_| !loaded) {
            reporter.note_empty();
        }
        if self.core.profile.stops_video() && self.core.playback.has_begun() {
            self.core.playback.stopped = !loaded;
            if !loaded && self.core.playback.is_moving() {
                self.freeze(at);
            }
        }
    }

    /// Starts or resumes if enough is buffered and nothing prevents it. `full`: no more will be fetched.
    fn try_to_play(&mut self, now: Instant, full: bool) {
        let core = &mut self.core;
        if core.playback.is_moving() || core.playback.is_over() || core.playback.stopped {
            return;
        }
        let begun = core.playback.has_begun();
        let wanted = if begun { core.limits.resume } else { core.limits.startup };
        let level = core.level(now);
        if level.is_zero() || (level < wanted && !full && !core.buffer.is_complete()) {
            return;
        }
        let position = core.playback.position(now);
        core.playback.start(now);
        core.log.emit(now, if begun { PlayerEvent::StallEnded } else { PlayerEvent::PlaybackStarted });
        let on_screen = core.playback.on_screen().unwrap_or(0);
        let ended = begun && position >= core.video.end(on_screen);
        if ended {
            core.playback.enter_next();
        }
        if ended || !begun {
            let index = core.playback.on_screen().unwrap_or(0);
            let held = core.buffer.get(index).expect("a level above zero means that the position is buffered");
            self.show(held, now);
        }
    }

    /// The response being read cannot be completed: the server closed the connection.
    fn give_up(&mut self, now: Instant) {
        self.core.pending.clear();
        self.scheduler.stop();
        self.core.buffer.close();
        self.measure(now);
        self.try_to_play(now, true);
        let core = &mut self.core;
        let shown_to_the_end = core.playback.position(now) >= core.end_of_buffer();
        if !core.playback.is_moving() && shown_to_the_end && !core.playback.is_over() {
            core.playback.finish(now);
            core.log.emit(now, PlayerEvent::PlaybackEnded);
        }
    }

    fn hang_up_at_the_end(&mut self, stream: &mut dyn Stream) {
        if self.core.playback.is_over() && !self.hung_up {
            self.hung_up = true;
            self.scheduler.stop();
            stream.finish();
        }
    }

    /// Reports the progress of the media segment to the rule, if a report is due; the rule may abandon the request.
    #[inline]
    fn report(&mut self, now: Instant, stream: &mut dyn Stream) {
        let Some(Pending { number, kind: Kind::Media(media) }) = self.core.pending.front_mut() else { return };
        if media.report_due().is_none_or(|due| due > now) {
            return;
        }
        let (number, progress) = (*number, media.report(now));
        let aborted = *media;
        let Some(abandon) = self.rule.on_progress(&self.core.view(now), &progress) else { return };
        let core = &mut self.core;
        if let Some(front) = core.pending.front_mut() {
            front.kind = Kind::Drained;
        }
        let reopened = core.limits.give_up == GiveUp::Close && stream.reopen();
        if core.limits.give_up == GiveUp::Cancel {
            core.client.cancel(stream);
        }
        core.current = abandon.representation.min(core.limits.top);
        core.log.emit(
            now,
            PlayerEvent::SegmentAbandoned {
                request: number,
                index: aborted.index,
                received: aborted.bytes,
                instead: core.current as u16,
            },
        );
        if reopened {
            core.client.reconnect();
            core.pending.clear();
            core.log.emit(now, PlayerEvent::Reconnected);
        }
        self.rule.observe(&self.core.view(now), &Event::SegmentAborted(&aborted.download(now)));
        self.scheduler.abandoned(aborted.index);
        self.schedule(now, stream);
    }
}

impl Core {
    /// Playing time at the end of the buffer.
    fn end_of_buffer(&self) -> Duration {
        self.video.start(self.buffer.end())
    }

    fn level(&self, now: Instant) -> Duration {
        self.end_of_buffer() - self.playback.position(now)
    }

    /// What the player reports with the next request for media, if it reports anything.
    fn report(&mut self) -> Option<Cmcd> {
        let reporter = self.reporter.as_mut()?;
        let bitrate = |rank: usize| self.video.representations()[rank].bitrate;
        Some(reporter.report(&Requested {
            buffer: self.measured,
            bitrate: bitrate(self.current),
            top: bitrate(self.limits.top),
            duration: self.video.ladder().segment_duration(),
        }))
    }

    /// The level at which requests pause.
    fn target(&self) -> Duration {
        if self.current == self.limits.top { self.limits.buffer_at_top } else { self.limits.buffer }
    }

    fn view(&self, now: Instant) -> View<'_> {
        // See the module of the profiles: 2.2 never states its target.
        let stated = if self.profile.states_no_target() { Duration::ZERO } else { self.target() };
        let loaded = if self.playback.is_moving() { BufferState::Loaded } else { BufferState::Empty };
        View {
            ladder: self.video.ladder(),
            now,
            buffer: self.measured,
            buffer_state: self.watch.map_or(Some(loaded), |watch| watch.state()),
            buffer_target: stated,
            playback: if self.playback.has_begun() { Phase::Steady } else { Phase::Startup },
            current: self.current,
            top: self.limits.top,
            next: u64::from(self.next),
            downloads: &self.downloads,
            pictures: Pictures::default(),
        }
    }
}

impl Player for Dash {
    fn start(&mut self, now: Instant, stream: &mut dyn Stream) {
        self.fetch_manifest(now, stream);
    }

    #[inline]
    fn on_readable(&mut self, now: Instant, stream: &mut dyn Stream) {
        self.advance(now);
        loop {
            let received = receive(&mut self.core.client, stream, u64::MAX, now, &mut self.core.log);
            if let Some(Pending { kind: Kind::Media(media), .. }) = self.core.pending.front_mut() {
                if received.began.is_some() {
                    media.began(now);
                }
                media.bytes += received.body;
            }
            if received.completed.is_none() {
                break;
            }
            self.complete(now, stream);
        }
        self.report(now, stream);
        if !self.core.pending.is_empty() && stream.is_finished() {
            self.give_up(now);
        }
        self.hang_up_at_the_end(stream);
    }

    fn handle_timeout(&mut self, now: Instant, stream: &mut dyn Stream) {
        if self.poll_timeout().is_none_or(|due| due > now) {
            return;
        }
        self.advance(now);
        self.report(now, stream);
        self.handle_schedule_timeout(now, stream);
        self.hang_up_at_the_end(stream);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let report = match self.core.pending.front() {
            Some(Pending { kind: Kind::Media(media), .. }) => media.report_due(),
            _ => None,
        };
        let playback = self.core.playback.due(&self.core.video).map(Due::at);
        let or_never = |at: Option<Instant>| at.unwrap_or(Instant::FAR_FUTURE);
        let next = or_never(report).min(or_never(playback)).min(or_never(self.scheduler.poll_timeout()));
        (next != Instant::FAR_FUTURE).then_some(next)
    }

    fn finished(&self) -> bool {
        self.core.playback.is_over()
    }

    fn log(&mut self) -> &mut Log<PlayerEvent> {
        let log = &mut self.core.log;
        self.rule.take_notes(&mut |at, note| log.emit(at, PlayerEvent::Noted(note)));
        log
    }

    fn sample(&mut self, now: Instant) {
        let from = self.core.playback.on_screen().map_or(0, |index| index + 1);
        let (media, bytes) = (self.core.level(now), self.core.buffer.bytes_from(from));
        self.core.log.emit(now, PlayerEvent::BufferLevel { media, bytes });
    }
}
