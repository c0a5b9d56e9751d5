//! VLC 3.0 playing one file over HTTP.
//!
//! Bytes flow: socket -> prefetch ring -> demultiplexer -> decoder -> screen.
//! - The ring (16 MiB, filled by a thread of its own) takes whatever arrives until it is full; then the receive window
//!   closes.
//! - The demultiplexer works in steps of 250 ms: it reads the pictures up to the step's end, waiting inside a picture
//!   for its bytes, and then announces the step's end as clock reference (PCR). While buffering the steps follow each
//!   other at once, until the PCRs span more than pts_delay (network-caching, 1 s); later each step waits for its time
//!   ([`clock`]).
//! - A picture is decoded when its last byte is read. It is discarded if that is later than its date plus half a
//!   frame period; the first one after buffering is shown in any case.
//! - A PCR that comes late is a buffer underflow. VLC then wants pts_delay plus the median of the last three lates:
//!   up to clock-jitter (5 s) above the configured delay it takes that delay, flushes the decoders and buffers anew;
//!   above, it only forgets its clock reference, and pictures decoded before the next PCR have no date and are
//!   discarded.
//!
//! Two consequences of the code that are kept:
//! - After a reset the first PCR, and so the reference, comes at the *end* of a step whose pictures lie before it. When
//!   playing resumes these are overdue: the first is shown, those more than half a period late are discarded (four of
//!   six at 24 fps).
//! - PCRs that are late during a slow (re)buffering count for the median, although they are no underflow by themselves.
//!
//! Source: VLC 3.0 as facts: modules/access/http, modules/stream_filter/prefetch.c, modules/demux/mp4/mp4.c,
//! src/input/es_out.c, src/input/clock.c, src/input/decoder.c, src/video_output/video_output.c. Ours: decoding takes no
//! time, so pictures read in the very instant of a reset count as flushed; the decoder's own skipping when it is more
//! than five pictures late is left out; audio is part of the pictures; `vlc-2` differs by the missing ring only.

mod clock;
mod screen;
#[cfg(test)]
mod tests;

use super::{Content, Player, PlayerSetup, SetupError, receive, refuse_unknown};
use crate::frames::FrameTable;
use crate::http::{Exchange, Exchanges, HttpClient};
use crate::stream::Stream;
use anabranch_events::{Log, PlayerEvent};
use anabranch_units::{Duration, Instant};
use clock::InputClock;
use screen::Screen;
use std::sync::Arc;

/// Length of a step of the MP4 demultiplexer.
const STEP: Duration = Duration::from_millis(250);
/// Above this many bytes in the decoders' queues the clock does not read ahead (es_out.c).
const DECODER_QUEUE_LIMIT: u64 = 10 << 20;
/// The highest playout delay (INPUT_PTS_DELAY_MAX).
const PTS_DELAY_MAX: Duration = Duration::from_secs(60);
/// The demultiplexer does not wait for bytes.
const NOTHING: u64 = u64::MAX;

/// Differences between VLC's versions and settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlcOptions {
    /// Bytes of the prefetch ring (`--prefetch-buffer-size`); zero: there is none.
    pub ring: u64,
    /// `--network-caching`.
    pub caching: Duration,
    /// `--clock-jitter`: how far the playout delay may grow above `caching`.
    pub clock_jitter: Duration,
}

impl VlcOptions {
    /// VLC 3's defaults.
    pub const fn version_3() -> Self {
        VlcOptions { ring: 16 << 20, caching: Duration::from_secs(1), clock_jitter: Duration::from_secs(5) }
    }

    /// VLC 2's, which had no prefetch stage.
    pub const fn version_2() -> Self {
        VlcOptions { ring: 0, ..VlcOptions::version_3() }
    }
}

/// Counts of pictures by outcome. Each picture is in exactly one count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Decoded in time: shown, or due to be shown.
    pub shown: u32,
    /// Decoded too late, or without a date.
    pub discarded: u32,
    /// Discarded unshown when the player began to buffer anew.
    pub flushed: u32,
    /// Not decoded yet.
    pub left: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Demux {
    /// Waiting for the file's header.
    Opening,
    /// Within a step: reading picture after picture.
    Reading,
    /// Between two steps.
    Pacing { until: Instant },
    /// Everything was read.
    Drained,
}

/// The player.
pub struct Vlc {
    options: VlcOptions,
    frames: Arc<FrameTable>,
    client: HttpClient,
    /// Bytes of the file read from the socket.
    fetched: u64,
    /// Bytes of the file read from the ring.
    demuxed: u64,
    /// Offset that must be fetched before the demultiplexer can continue, or `NOTHING`.
    wanted: u64,
    /// The server closed the connection before the file was complete.
    cut_short: bool,
    demux: Demux,
    /// The next picture to be read.
    next: u32,
    /// The playing time up to which the current step reads.
    step_end: Duration,
    clock: InputClock,
    buffering: bool,
    /// The next decoded picture is shown even if it is late.
    force: bool,
    /// The first picture that was read since the last (re)buffering began.
    epoch: u32,
    /// The first picture read but not yet counted: the decoder waits, or later events of this instant may flush it.
    unsettled: u32,
    /// When the last picture that will be shown has been shown in full.
    shown_until: Instant,
    counts: FrameCounts,
    screen: Screen,
    hung_up: bool,
    log: Log<PlayerEvent>,
}

pub(super) fn build(
    name: &'static str,
    defaults: VlcOptions,
    setup: &PlayerSetup,
) -> Result<Box<dyn Player + Send>, SetupError> {
    refuse_unknown(name, &setup.options, &["caching", "ring", "clock_jitter"])?;
    let Content::Progressive(frames) = &setup.content else {
        return Err(SetupError::WrongContent { player: name, needs: "a progressive video" });
    };
    let options = VlcOptions {
        ring: setup.options.file.ring.map_or(defaults.ring, |ring| ring.0),
        caching: setup.options.file.caching.unwrap_or(defaults.caching),
        clock_jitter: setup.options.file.clock_jitter.unwrap_or(defaults.clock_jitter),
    };
    Ok(Box::new(Vlc::new(options, frames.clone(), setup.exchanges.clone())))
}

impl Vlc {
    /// A player for this video. Its server must use the same table of exchanges.
    pub fn new(options: VlcOptions, frames: Arc<FrameTable>, exchanges: Exchanges) -> Self {
        Vlc {
            options,
            frames,
            client: HttpClient::new(exchanges),
            fetched: 0,
            demuxed: 0,
            wanted: NOTHING,
            cut_short: false,
            demux: Demux::Opening,
            next: 0,
            step_end: STEP,
            clock: InputClock::new(options.caching),
            buffering: true,
            force: false,
            epoch: 0,
            unsettled: 0,
            shown_until: Instant::ZERO,
            counts: FrameCounts::default(),
            screen: Screen::new(),
            hung_up: false,
            log: Log::default(),
        }
    }

    /// Counts of pictures by outcome, so far.
    pub fn frame_counts(&self) -> FrameCounts {
        let FrameCounts { shown, discarded, flushed, .. } = self.counts;
        FrameCounts { left: self.frames.len() - shown - discarded - flushed, ..self.counts }
    }

    /// The current playout delay (pts_delay).
    pub fn playout_delay(&self) -> Duration {
        self.clock.pts_delay()
    }

    /// The ring's thread: reads from the socket up to the ring's free space, and what the demultiplexer waits for.
    #[inline]
    fn fetch(&mut self, now: Instant, stream: &mut dyn Stream) {
        let demand = if self.wanted == NOTHING { 0 } else { self.wanted };
        let limit = demand.max(self.demuxed + self.options.ring);
        if limit <= self.fetched {
            return;
        }
        let received = receive(&mut self.client, stream, limit - self.fetched, now, &mut self.log);
        self.fetched += received.body;
        // The last bytes and the end of data may come in one call, so both are checked in each.
        self.cut_short |= self.fetched < limit && stream.is_finished();
    }

    /// Processes everything that is possible now.
    fn advance(&mut self, now: Instant, stream: &mut dyn Stream) {
        self.screen.advance(now, &mut self.log);
        while self.step(now, stream) {}
        if !self.buffering {
            self.settle(now);
        }
        self.screen.expect_next_before(self.too_late_for_next());
        self.screen.advance(now, &mut self.log);
        // Demultiplexing made room in the ring.
        self.fetch(now, stream);
        if self.screen.is_over() && !self.hung_up {
            self.hung_up = true;
            stream.finish();
        }
    }

    /// One step of the demultiplexer; false if it must wait.
    fn step(&mut self, now: Instant, stream: &mut dyn Stream) -> bool {
        match self.demux {
            Demux::Opening => {
                if !self.take(self.frames.header(), now, stream) {
                    return false;
                }
                self.demux = Demux::Reading;
                true
            }
            Demux::Reading => self.read_picture(now, stream),
            Demux::Pacing { until } if until <= now => {
                self.step_end += STEP;
                self.demux = Demux::Reading;
                true
            }
            Demux::Pacing { .. } | Demux::Drained => false,
        }
    }

    fn read_picture(&mut self, now: Instant, stream: &mut dyn Stream) -> bool {
        if self.next == self.frames.len() {
            self.on_pcr(now);
            self.drain(now);
            return false;
        }
        if self.frames.timestamp(self.next) > self.step_end {
            self.on_pcr(now);
            return true;
        }
        if !self.take(self.frames.end(self.next), now, stream) {
            return false;
        }
        if self.next == 0 {
            // Only here does a PCR come before the pictures that follow it.
            self.clock.on_pcr(Duration::ZERO, now, true);
        }
        self.next += 1;
        true
    }

    /// Reads the file up to `end` from the ring; false if that is not there yet.
    fn take(&mut self, end: u64, now: Instant, stream: &mut dyn Stream) -> bool {
        if self.fetched < end {
            self.wanted = end;
            self.fetch(now, stream);
            if self.fetched < end {
                if self.cut_short {
                    self.drain(now);
                }
                return false;
            }
        }
        self.wanted = NOTHING;
        self.demuxed = end;
        true
    }

    /// The step's pictures are read: announces its end, and schedules the next step.
    fn on_pcr(&mut self, now: Instant) {
        let queued = self.demuxed - self.frames.start(self.frames.at_time(self.position(now))).min(self.demuxed);
        let late = self.clock.on_pcr(self.step_end, now, queued < DECODER_QUEUE_LIMIT);
        if self.buffering {
            if self.clock.buffered() > self.clock.pts_delay() {
                self.begin_playout(now);
            }
        } else if let Some(late) = late {
            self.underflow(late, now);
        }
        let next_step = self.clock.poll_timeout().filter(|_| !self.buffering);
        self.demux = Demux::Pacing { until: next_step.unwrap_or(now) };
    }

    fn begin_playout(&mut self, now: Instant) {
        self.buffering = false;
        self.force = true;
        self.clock.begin_playout(now);
        self.settle(now);
    }

    fn underflow(&mut self, late: Duration, now: Instant) {
        self.log.emit(now, PlayerEvent::BufferUnderflow { late });
        let wanted = self.clock.wanted_delay();
        if wanted <= (self.options.caching + self.options.clock_jitter).min(PTS_DELAY_MAX) {
            self.flush(now);
            self.buffering = true;
            if wanted > self.clock.pts_delay() {
                self.clock.raise_delay(wanted);
                self.log.emit(now, PlayerEvent::PlayoutDelayRaised { to: wanted });
            }
        } else {
            self.settle(now);
        }
        self.screen.freeze(now, &mut self.log);
        self.clock.reset();
        self.epoch = self.next;
    }

    /// Flushes the pictures that the decoder has not finished.
    fn flush(&mut self, now: Instant) {
        let (first, count) = (self.unsettled, self.next - self.unsettled);
        if count > 0 {
            self.log.emit(now, PlayerEvent::PicturesFlushed { first, count });
        }
        self.counts.flushed += count;
        self.unsettled = self.next;
    }

    /// Decodes the pictures read.
    fn settle(&mut self, now: Instant) {
        let late_bound = self.late_bound();
        while self.unsettled < self.next {
            let frame = self.unsettled;
            self.unsettled += 1;
            match self.clock.due(self.frames.timestamp(frame)) {
                Some(due) if self.force || now <= due + late_bound => self.show(now.max(due)),
                _ => {
                    self.counts.discarded += 1;
                    self.log.emit(now, PlayerEvent::PictureDiscarded { frame });
                }
            }
        }
    }

    fn show(&mut self, at: Instant) {
        self.force = false;
        self.counts.shown += 1;
        self.screen.show(at);
        self.shown_until = at + self.frames.frame_rate().period();
    }

    /// There will be no more pictures: play those that are there.
    fn drain(&mut self, now: Instant) {
        self.demux = Demux::Drained;
        self.wanted = NOTHING;
        if self.buffering && self.clock.has_reference() {
            self.begin_playout(now);
        } else if self.buffering {
            self.buffering = false;
            self.flush(now);
        }
        self.settle(now);
        self.screen.end(self.shown_until.max(now));
    }

    /// The lateness above which a picture is discarded.
    fn late_bound(&self) -> Duration {
        self.frames.frame_rate().period() / 2
    }

    /// The first instant at which the picture that the demultiplexer waits for can no longer be shown.
    fn too_late_for_next(&self) -> Option<Instant> {
        if self.demux != Demux::Reading || self.buffering {
            return None;
        }
        let due = self.clock.due(self.frames.timestamp(self.next))?;
        Some(due + self.late_bound() + Duration::from_nanos(1))
    }

    /// The playing time that the viewer has reached.
    fn position(&self, now: Instant) -> Duration {
        let first = self.frames.timestamp(self.epoch);
        let read = self.frames.timestamp(self.next);
        match self.clock.playing(now) {
            _ if self.buffering => first,
            Some(playing) => playing.clamp(first, read),
            None => read,
        }
    }
}

impl Player for Vlc {
    fn start(&mut self, now: Instant, stream: &mut dyn Stream) {
        let request = self.client.request(stream, Exchange::get(self.frames.size()));
        self.log.emit(now, PlayerEvent::Requested { request });
        self.advance(now, stream);
    }

    #[inline]
    fn on_readable(&mut self, now: Instant, stream: &mut dyn Stream) {
        self.fetch(now, stream);
        if self.wanted != NOTHING && (self.fetched >= self.wanted || self.cut_short) {
            self.advance(now, stream);
        }
    }

    fn handle_timeout(&mut self, now: Instant, stream: &mut dyn Stream) {
        if self.poll_timeout().is_some_and(|due| due <= now) {
            self.advance(now, stream);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let step = match self.demux {
            Demux::Pacing { until } => Some(until),
            _ => None,
        };
        match (step, self.screen.next_change()) {
            (Some(step), Some(change)) => Some(step.min(change)),
            (step, change) => step.or(change),
        }
    }

    fn finished(&self) -> bool {
        self.screen.is_over()
    }

    fn log(&mut self) -> &mut Log<PlayerEvent> {
        &mut self.log
    }

    fn sample(&mut self, now: Instant) {
        let position = self.position(now);
        let complete = self.frames.timestamp(self.frames.complete_within(self.fetched));
        let bytes = self.fetched.saturating_sub(self.frames.start(self.frames.at_time(position)));
        self.log.emit(now, PlayerEvent::BufferLevel { media: complete - position, bytes });
    }
}
