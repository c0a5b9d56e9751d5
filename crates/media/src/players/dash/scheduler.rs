//! When the player requests which segment: dash.js's ScheduleController (and, in 5, its StreamProcessor).

use super::Dash;
use super::buffer::Held;
use super::headers;
use super::request::{Kind, Media, Pending};
use crate::abr::Event;
use crate::abr::dashjs::Release;
use crate::http::{Exchange, MediaSegment};
use crate::stream::Stream;
use anabranch_events::PlayerEvent;
use anabranch_units::{Bandwidth, Duration, Instant};

/// Time until the next check for room (`startScheduleTimer(500)`; 5: `scheduling.defaultTimeout`).
const RETRY: Duration = Duration::from_millis(500);
/// 2.9 asks its rules again after every initialisation segment, also after those already fetched. Rules that answered
/// differently each time would go on forever at one instant, where a browser needs some milliseconds each time.
const MOST_DECISIONS: u32 = 8;

/// The event for which the scheduler waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// A response.
    Response,
    /// The next check for room.
    Retry(Instant),
    /// The end of the pause before a media segment.
    Pause(Instant),
    /// None: everything is fetched.
    Done,
}

pub(super) struct Scheduler {
    waiting: Waiting,
    /// The representation whose initialisation segment was appended last.
    initialised: Option<usize>,
    /// By representation, whether its initialisation segment was fetched.
    fetched_init: Vec<bool>,
    /// A media segment that waits for its initialisation segment (2.2).
    held_back: Option<(u32, Held)>,
    /// A media segment to be fetched again.
    refetch: Option<u32>,
    /// Whether to ask the rule before the next request.
    ask: bool,
    /// The pause set by the rule.
    pause: Duration,
    /// The next audio segment to be fetched.
    next_audio: u32,
}

impl Scheduler {
    pub fn new(representations: usize) -> Self {
        Scheduler {
            waiting: Waiting::Response,
            initialised: None,
            fetched_init: vec![false; representations],
            held_back: None,
            refetch: None,
            ask: true,
            pause: Duration::ZERO,
            next_audio: 0,
        }
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.waiting {
            Waiting::Retry(at) | Waiting::Pause(at) => Some(at),
            Waiting::Response | Waiting::Done => None,
        }
    }

    pub fn stop(&mut self) {
        self.waiting = Waiting::Done;
    }

    /// A request for this media segment was abandoned.
    pub fn abandoned(&mut self, index: u32) {
        self.refetch = Some(index);
        self.ask = false;
    }
}

impl Dash {
    pub(super) fn fetch_manifest(&mut self, now: Instant, stream: &mut dyn Stream) {
        match self.core.video.manifest_bytes() {
            0 => self.begin(now, stream),
            bytes => {
                self.request(now, stream, headers::get(bytes), Kind::Manifest);
            }
        }
    }

    /// The MPD is complete: begins with the content.
    fn begin(&mut self, now: Instant, stream: &mut dyn Stream) {
        // 2.2 fetches the first initialisation segment before it asks its rules for anything.
        if !(self.core.profile.initialises_late() && self.fetch_init(now, stream)) {
            self.schedule(now, stream);
        }
    }

    pub(super) fn handle_schedule_timeout(&mut self, now: Instant, stream: &mut dyn Stream) {
        match self.scheduler.waiting {
            Waiting::Retry(at) if at <= now => self.schedule(now, stream),
            Waiting::Pause(at) if at <= now => self.fetch_media(now, stream),
            _ => {}
        }
    }

    /// The oldest request was answered in full.
    pub(super) fn complete(&mut self, now: Instant, stream: &mut dyn Stream) {
        let Some(pending) = self.core.pending.pop_front() else { return };
        match pending.kind {
            Kind::Manifest => self.begin(now, stream),
            Kind::Init { representation } => {
                self.scheduler.fetched_init[representation] = true;
                self.scheduler.initialised = Some(representation);
                self.rule.observe(&self.core.view(now), &Event::InitFinished);
                match self.scheduler.held_back.take() {
                    Some((index, held)) => self.append(now, stream, index, held),
                    None => self.schedule(now, stream),
                }
            }
            Kind::Media(media) => self.finish_media(now, stream, &media),
            // The media segment of the same number was requested together with it, and comes next.
            Kind::Audio | Kind::Drained => {}
        }
    }

    fn finish_media(&mut self, now: Instant, stream: &mut dyn Stream, media: &Media) {
        let download = media.download(now);
        self.rule.observe(&self.core.view(now), &Event::SegmentFinished(&download));
        self.core.downloads.push(download);
        let held = Held { representation: media.representation, bytes: media.total };
        if self.core.profile.initialises_late() && self.scheduler.initialised != Some(held.representation) {
            self.scheduler.held_back = Some((media.index, held));
            if self.fetch_init_of(now, stream, held.representation) {
                return;
            }
            self.scheduler.held_back = None;
        }
        self.append(now, stream, media.index, held);
    }

    fn append(&mut self, now: Instant, stream: &mut dyn Stream, index: u32, held: Held) {
        // A replacement of the segment on screen, or of an earlier one, comes too late.
        if self.core.playback.on_screen().is_none_or(|on_screen| index > on_screen) || index == self.core.buffer.end() {
            self.core.buffer.put(index, held);
            let (representation, buffered) = (held.representation as u16, self.core.level(now));
            self.core.log.emit(now, PlayerEvent::SegmentAppended { index, representation, buffered });
        }
        self.measure(now);
        self.try_to_play(now, false);
        self.schedule(now, stream);
    }

    /// A step: what to fetch next, if anything.
    pub(super) fn schedule(&mut self, now: Instant, stream: &mut dyn Stream) {
        for round in 0.. {
            if self.scheduler.refetch.is_none() && self.core.next >= self.core.buffer.total() {
                self.scheduler.waiting = Waiting::Done;
                return;
            }
            if let Some(retry) = self.retry_at(now) {
                self.scheduler.waiting = Waiting::Retry(retry);
                // A threshold above the buffer's capacity would wait for ever.
                self.try_to_play(now, true);
                return;
            }
            let refetching = self.scheduler.refetch.is_some();
            let ask = self.scheduler.ask && !refetching && round < MOST_DECISIONS;
            if ask && self.decide(now) && self.core.profile.release == Some(Release::V5) {
                self.scheduler.ask = false;
                self.replace_lower(now);
                continue;
            }
            if self.core.profile.initialises_late() || self.scheduler.initialised == Some(self.core.current) {
                break;
            }
            if self.fetch_init(now, stream) {
                return;
            }
        }
        self.pause_or_fetch(now, stream);
    }

    /// When to check again, if there is no room now.
    fn retry_at(&self, now: Instant) -> Option<Instant> {
        let core = &self.core;
        let first = self.scheduler.initialised.is_none();
        if first || (self.scheduler.refetch.is_some() && !core.profile.refetches_within_target()) {
            return None;
        }
        let target = core.target();
        if core.profile.release.is_some() {
            let segment = core.video.ladder().segment_duration();
            // 5 does not count a media segment that alone would fill the buffer.
            let reserved = if core.profile.reserves_segment() && target > segment { segment } else { Duration::ZERO };
            return (core.measured + reserved >= target).then_some(now + RETRY);
        }
        let index = self.scheduler.refetch.unwrap_or(core.next);
        let excess = (core.level(now) + core.video.duration_of(index)) - target;
        // An empty buffer has room for anything.
        if excess.is_zero() || core.level(now).is_zero() {
            return None;
        }
        Some(now + if core.playback.is_moving() { excess.min(core.level(now)) } else { RETRY })
    }

    /// Asks the rule; returns whether the representation changes.
    fn decide(&mut self, now: Instant) -> bool {
        if self.core.profile.release.is_none() {
            self.measure(now);
        }
        let view = self.core.view(now);
        let buffered = view.buffer;
        let download = view.downloads.last().map(|download| Bandwidth::from_bps(download.throughput_bps() as u64));
        let decision = self.rule.decide(&view);
        let core = &mut self.core;
        let chosen = decision.representation.min(core.limits.top);
        let changed = chosen != core.current;
        core.current = chosen;
        self.scheduler.pause = decision.wait;
        let representation = chosen as u16;
        let (index, reason) = (core.next, decision.reason);
        core.log.emit(now, PlayerEvent::RepresentationChosen { index, representation, reason, buffered, download });
        changed
    }

    /// Fast switch: returns to the media segment on screen if it is in a lower representation.
    ///
    /// dash.js 5.2.1 intends to leave one and a half media segments as they are, but takes their duration from an
    /// object without it (`fragmentDuration` is null in what `getVoRepresentations` creates for the rules), which makes
    /// that zero: in Chromium it fetches the segment on screen again, too late to be shown. It also requires that no
    /// request was abandoned in the last 10 s, when its rules switch only downwards.
    fn replace_lower(&mut self, now: Instant) {
        let core = &mut self.core;
        if !core.limits.fast_switch {
            return;
        }
        let index = core.video.at_time(core.playback.position(now));
        // It checks the last fetch of the segment, also if that came too late: no segment is fetched three times.
        let fetched = core.downloads.iter().rev().find(|download| download.index == u64::from(index));
        if fetched.is_some_and(|download| download.representation < core.current) {
            core.next = index;
        }
    }

    fn pause_or_fetch(&mut self, now: Instant, stream: &mut dyn Stream) {
        // In 2.x a segment that is fetched again does not wait; the pause stays for the next one.
        let exempt = self.scheduler.refetch.is_some() && !self.core.profile.refetches_within_target();
        let pause = if exempt { Duration::ZERO } else { std::mem::take(&mut self.scheduler.pause) };
        if pause.is_zero() {
            self.fetch_media(now, stream);
        } else {
            self.scheduler.waiting = Waiting::Pause(now + pause);
            // A rule that pauses expects the buffer level to fall.
            self.try_to_play(now, true);
        }
    }

    fn fetch_media(&mut self, now: Instant, stream: &mut dyn Stream) {
        let index = self.scheduler.refetch.take().unwrap_or(self.core.next);
        self.fetch_audio_until(now, stream, index);
        let core = &mut self.core;
        let rank = core.current;
        core.next = index + 1;
        self.scheduler.ask = true;
        let bytes = core.video.bytes(rank, index);
        let kind = Kind::Media(Media::new(index, rank, bytes, now));
        let media = MediaSegment { representation: rank as u32, index };
        let exchange = headers::get_media(bytes, media, core.report());
        let request = self.request(now, stream, exchange, kind);
        let representation = rank as u16;
        self.core.log.emit(now, PlayerEvent::SegmentRequested { request, index, representation });
    }

    /// Requests the audio segments up to `last`, if there are any. The audio segment arrives before an abandoned media
    /// segment, so none is fetched twice.
    fn fetch_audio_until(&mut self, now: Instant, stream: &mut dyn Stream, last: u32) {
        let Some(rate) = self.core.limits.audio else { return };
        if self.scheduler.next_audio == 0 && self.core.video.init_bytes() > 0 {
            self.request(now, stream, headers::get(self.core.video.init_bytes()), Kind::Audio);
        }
        while self.scheduler.next_audio <= last {
            let index = self.scheduler.next_audio;
            self.scheduler.next_audio += 1;
            let bytes = rate.bytes_in(self.core.video.duration_of(index)).max(1);
            let request = self.request(now, stream, headers::get(bytes), Kind::Audio);
            self.core.log.emit(now, PlayerEvent::AudioRequested { request, index });
        }
    }

    fn fetch_init(&mut self, now: Instant, stream: &mut dyn Stream) -> bool {
        self.fetch_init_of(now, stream, self.core.current)
    }

    /// Fetches an initialisation segment, or appends the one fetched before; returns whether it must be fetched.
    fn fetch_init_of(&mut self, now: Instant, stream: &mut dyn Stream, representation: usize) -> bool {
        self.scheduler.ask = self.core.profile.asks_again() || self.core.profile.initialises_late();
        let bytes = self.core.video.init_bytes();
        if bytes == 0 || self.scheduler.fetched_init[representation] {
            self.scheduler.initialised = Some(representation);
            return false;
        }
        let request = self.request(now, stream, headers::get(bytes), Kind::Init { representation });
        self.core.log.emit(now, PlayerEvent::InitRequested { request, representation: representation as u16 });
        true
    }

    fn request(&mut self, now: Instant, stream: &mut dyn Stream, exchange: Exchange, kind: Kind) -> u32 {
        let number = self.core.client.request(stream, exchange);
        self.core.pending.push_back(Pending { number, kind });
        self.core.log.emit(now, PlayerEvent::Requested { request: number });
        self.scheduler.waiting = Waiting::Response;
        number
    }
}
