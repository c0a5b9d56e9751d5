//! What a server knows of a viewer: the MPD that it serves, what was asked for, when, and how much has arrived.

use crate::cmcd::{Cmcd, ObjectType};
use crate::content::DashVideo;
use crate::http::MediaSegment;
use anabranch_units::{Bandwidth, Duration, Instant};
use std::sync::Arc;

/// A response with a media segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Response {
    /// What was asked for.
    pub segment: MediaSegment,
    /// Bytes of header and body.
    pub bytes: u64,
    /// When the request arrived.
    pub requested_at: Instant,
    /// How long nothing had been asked for before.
    pub idle_before: Duration,
    /// When its first bytes were acknowledged.
    pub began_at: Option<Instant>,
}

impl Response {
    /// The throughput that the viewer measured, bit/s, once the response was acknowledged to its end: from the first
    /// bytes to the last.
    pub fn throughput(&self, finished_at: Instant) -> f64 {
        let began_at = self.began_at.unwrap_or(self.requested_at);
        self.bytes as f64 * 8.0 / finished_at.since(began_at).as_secs_f64().max(SHORTEST_S)
    }
}

/// Times of downloads are no shorter, in seconds: browsers' clocks are that coarse.
const SHORTEST_S: f64 = 0.001;

/// A viewer of one video.
#[derive(Debug)]
pub struct Viewer {
    video: Option<Arc<DashVideo>>,
    /// The cap of the rate at which the viewer's responses are sent; none: as fast as the congestion control allows.
    pub pace: Option<Bandwidth>,
    /// Bytes that the viewer has acknowledged, of all responses.
    pub delivered: u64,
    /// The viewers who share a bottleneck with this one, or with one who does, have the same number here.
    pub group: usize,
    /// The responses that are being sent, in the order of their requests, each with its connection; with none if
    /// another one has taken its place, until the viewer asks again.
    under_way: Vec<(Option<usize>, Response)>,
    /// Bits per second of all media segments that were asked for, times their playing time, and the playing time.
    asked: (f64, f64),
    /// Estimated playing time that is buffered, as of a time.
    buffered: (Duration, Instant),
    /// Whether the player reported its buffer with the present request.
    buffer_is_reported: bool,
    /// The media segment expected next, if any was delivered.
    next: Option<u32>,
    idle_since: Instant,
    /// What the player reported with its requests: playing time of a media segment, and the highest bitrate.
    reported: (Duration, Option<Bandwidth>),
}

impl Viewer {
    /// A viewer of this video, if the server knows one.
    pub fn new(video: Option<Arc<DashVideo>>) -> Self {
        Viewer {
            video,
            pace: None,
            delivered: 0,
            group: 0,
            under_way: Vec::new(),
            asked: (0.0, 0.0),
            buffered: (Duration::ZERO, Instant::ZERO),
            buffer_is_reported: false,
            next: None,
            idle_since: Instant::ZERO,
            reported: (Duration::ZERO, None),
        }
    }

    /// Another viewer in this one's place, whose delivered bytes go on counting.
    pub(super) fn successor(&self, video: Option<Arc<DashVideo>>) -> Self {
        Viewer { delivered: self.delivered, ..Viewer::new(video) }
    }

    /// The player's report with a request for media: its buffer, and what of the video the server may not know.
    pub fn report(&mut self, now: Instant, cmcd: &Cmcd) {
        // The buffer is that of the requested object's type.
        if let Some(buffer) = cmcd.buffer.filter(|_| cmcd.object.is_none_or(ObjectType::has_video)) {
            self.buffered = (buffer, now);
            self.buffer_is_reported = true;
        }
        self.reported = (cmcd.duration.unwrap_or(self.reported.0), cmcd.top.or(self.reported.1));
    }

    /// The video's representations and media segments; none if the server knows no MPD.
    pub fn video(&self) -> Option<&DashVideo> {
        self.video.as_deref()
    }

    /// Bits per second of the representation with this rank.
    pub fn bitrate(&self, rank: usize) -> f64 {
        self.video.as_ref().and_then(|video| video.representations().get(rank)).map_or(0.0, |r| r.bitrate as f64)
    }

    /// The highest bitrate, bit/s, by the video or the player's reports; zero if neither is known.
    pub fn top_bitrate(&self) -> f64 {
        match self.representations() {
            0 => self.reported.1.map_or(0.0, |top| top.as_bps() as f64),
            count => self.bitrate(count - 1),
        }
    }

    /// The media segment that follows the one delivered last, or the first one.
    pub fn next_index(&self) -> u32 {
        self.next.unwrap_or(0)
    }

    /// Number of representations; zero without a video.
    pub fn representations(&self) -> usize {
        self.video.as_ref().map_or(0, |video| video.representations().len())
    }

    /// The response that was asked for last, if any is being sent.
    pub fn current(&self) -> Option<&Response> {
        self.under_way.last().map(|(_, response)| response)
    }

    /// Whether media is being sent.
    pub fn is_served(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// A request for a media segment arrived on a connection. Who asks for one again has given up the response that was
    /// under way.
    pub fn requested(&mut self, now: Instant, connection: usize, segment: MediaSegment, bytes: u64) {
        let idle_before = if self.is_served() { Duration::ZERO } else { now.since(self.idle_since) };
        self.under_way.retain(|(on, response)| on.is_some() && response.segment.index != segment.index);
        let response = Response { segment, bytes, requested_at: now, idle_before, began_at: None };
        self.under_way.push((Some(connection), response));
        let playing = self.duration_of(segment).as_secs_f64();
        let bitrate = self.bitrate(segment.representation as usize);
        self.asked = (self.asked.0 + bitrate * playing, self.asked.1 + playing);
    }

    /// The first bytes of the response being sent on a connection were acknowledged.
    pub fn began(&mut self, now: Instant, connection: usize) {
        if let Some((_, response)) = self.under_way.iter_mut().find(|(on, _)| *on == Some(connection)) {
            response.began_at.get_or_insert(now);
        }
    }

    /// The response being sent on a connection was acknowledged to its end. Returns it, unless the viewer had given it
    /// up.
    pub fn completed(&mut self, now: Instant, connection: usize, segment: MediaSegment) -> Option<Response> {
        let is_it = |(on, response): &(Option<usize>, Response)| *on == Some(connection) && response.segment == segment;
        let (_, response) = self.under_way.remove(self.under_way.iter().position(is_it)?);
        self.idle_since = now;
        let index = response.segment.index;
        let left = self.buffer(now);
        let playing = self.duration_of(response.segment);
        let is_reported = std::mem::take(&mut self.buffer_is_reported);
        self.buffered = match self.next {
            // In place of one that is buffered already.
            Some(next) if index < next && next - index <= REPLACED => (left, now),
            // Two may be under way at a time, and the later one complete first.
            Some(next) if index >= next && index - next <= SKIPPED => (left + playing, now),
            // What was there before a seek is not in the report.
            _ if is_reported => (left + playing, now),
            // The first one, or one after a seek.
            _ => (playing, now),
        };
        if self.next.is_none_or(|next| index >= next || next - index > REPLACED) {
            self.next = Some(index + 1);
        }
        Some(response)
    }

    /// Another connection has taken the place of this one. Who is about to ask again is not idle.
    pub(super) fn replace_connection(&mut self, connection: usize) {
        self.under_way.iter_mut().filter(|(on, _)| *on == Some(connection)).for_each(|(on, _)| *on = None);
    }

    /// The connection is closed: nothing that is being sent on it will arrive.
    pub(super) fn forget_responses_on(&mut self, connection: usize) {
        self.under_way.retain(|(on, _)| *on != Some(connection));
    }

    /// Nothing that is being sent will arrive.
    pub(super) fn forget_responses(&mut self) {
        self.under_way.clear();
    }

    /// Playing time that the viewer has buffered, by an estimate: what was delivered, less the time since. Players that
    /// wait for more before they begin have more, and so have those that are paused.
    pub fn buffer(&self, now: Instant) -> Duration {
        self.buffered.0 - now.since(self.buffered.1)
    }

    /// When that will be played; `None` as long as nothing was asked for, or if the server knows no playing times.
    pub fn buffered_until(&self) -> Option<Instant> {
        let has_times = self.video.is_some() || !self.reported.0.is_zero();
        let has_asked = self.next.is_some() || self.is_served();
        (has_times && has_asked).then(|| self.buffered.1 + self.buffered.0)
    }

    /// The mean bitrate of what was asked for, bit/s, of which old requests are forgotten by [`Viewer::forget`].
    pub fn mean_bitrate(&self) -> f64 {
        if self.asked.1 > 0.0 { self.asked.0 / self.asked.1 } else { 0.0 }
    }

    /// Counts earlier requests only by this share.
    pub fn forget(&mut self, share: f64) {
        self.asked = (self.asked.0 * share, self.asked.1 * share);
    }

    fn duration_of(&self, segment: MediaSegment) -> Duration {
        let Some(video) = &self.video else { return self.reported.0 };
        if segment.index < video.segments() { video.duration_of(segment.index) } else { Duration::ZERO }
    }
}

/// Media segments that may be missing between two that were delivered one after the other; more of them are a seek.
const SKIPPED: u32 = 2;
/// A media segment this many before the next one or fewer replaces one that is buffered; an earlier one is a seek.
const REPLACED: u32 = 30;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at_ms;

    fn viewer() -> Viewer {
        let video = crate::content::find_ladder("bbb-2s").map(|ladder| Arc::new(ladder.video(None).unwrap()));
        Viewer::new(video)
    }

    fn fetch(viewer: &mut Viewer, index: u32, from_ms: u64, to_ms: u64) -> Option<Response> {
        let segment = MediaSegment { representation: 3, index };
        viewer.requested(at_ms(from_ms), 0, segment, 1_000);
        viewer.completed(at_ms(to_ms), 0, segment)
    }

    #[test]
    fn the_buffer_is_what_was_delivered_less_the_time_since() {
        let mut viewer = viewer();
        assert_eq!(viewer.buffer(at_ms(500)), Duration::ZERO);
        fetch(&mut viewer, 0, 500, 1_000);
        assert_eq!(viewer.buffer(at_ms(1_500)), Duration::from_millis(1_500));
        let second = fetch(&mut viewer, 1, 1_200, 1_500).unwrap();
        assert_eq!(second.idle_before, Duration::from_millis(200));
        assert_eq!(viewer.buffer(at_ms(1_500)), Duration::from_millis(3_500));
        fetch(&mut viewer, 1, 1_500, 2_000);
        assert_eq!(viewer.buffer(at_ms(2_000)), Duration::from_millis(3_000), "the same one again adds nothing");
        fetch(&mut viewer, 2, 2_000, 9_000);
        assert_eq!(viewer.buffer(at_ms(9_000)), Duration::from_millis(2_000), "it was empty before");
        fetch(&mut viewer, 200, 9_000, 9_500);
        assert_eq!(viewer.buffer(at_ms(9_500)), Duration::from_millis(2_000), "a seek empties it");
    }

    #[test]
    fn responses_on_several_connections_are_kept_apart() {
        let mut viewer = viewer();
        let segment = |representation, index| MediaSegment { representation, index };
        viewer.requested(at_ms(0), 1, segment(9, 0), 1_000);
        viewer.requested(at_ms(100), 2, segment(5, 0), 500);
        assert_eq!(viewer.completed(at_ms(300), 1, segment(9, 0)), None, "it was given up");
        viewer.requested(at_ms(400), 1, segment(5, 1), 600);
        viewer.began(at_ms(500), 2);
        let second = viewer.completed(at_ms(900), 1, segment(5, 1)).unwrap();
        assert_eq!((second.bytes, second.began_at), (600, None));
        let first = viewer.completed(at_ms(1_000), 2, segment(5, 0)).unwrap();
        assert_eq!((first.bytes, first.began_at, viewer.is_served()), (500, Some(at_ms(500)), false));
        viewer.requested(at_ms(1_000), 1, segment(5, 2), 600);
        viewer.forget_responses_on(2);
        assert!(viewer.is_served());
        viewer.forget_responses();
        assert!(!viewer.is_served());
    }

    #[test]
    fn a_later_media_segment_that_completes_first_is_no_seek() {
        let mut viewer = viewer();
        fetch(&mut viewer, 0, 0, 0);
        fetch(&mut viewer, 2, 0, 0);
        assert_eq!(viewer.buffer(at_ms(0)), Duration::from_secs(4));
        fetch(&mut viewer, 6, 0, 0);
        assert_eq!(viewer.buffer(at_ms(0)), Duration::from_secs(2), "a seek");
    }

    #[test]
    fn what_the_player_reports_comes_before_the_estimate() {
        let mut known = viewer();
        fetch(&mut known, 0, 500, 1_000);
        let reported = |text: &str| Cmcd::of(None, [text]).unwrap();
        known.report(at_ms(1_000), &reported("bl=7300,ot=v,d=9000,tb=1"));
        assert_eq!(known.buffer(at_ms(1_500)), Duration::from_millis(6_800));
        fetch(&mut known, 1, 1_500, 1_500);
        assert_eq!(known.buffer(at_ms(1_500)), Duration::from_millis(8_800), "the MPD's 2 s, not the player's 9 s");
        known.report(at_ms(1_500), &reported("bl=100,ot=a"));
        assert_eq!(known.buffer(at_ms(1_500)), Duration::from_millis(8_800), "the sound's buffer is another one");
        assert!(known.top_bitrate() > 4e6);
    }

    #[test]
    fn without_an_mpd_the_player_reports_how_long_a_media_segment_plays() {
        let mut unknown = Viewer::new(None);
        assert!(unknown.top_bitrate().abs() < 1e-9);
        unknown.report(at_ms(0), &Cmcd::of(None, ["d=4000,tb=3000,ot=v"]).unwrap());
        fetch(&mut unknown, 0, 0, 1_000);
        let next = unknown.next_index();
        fetch(&mut unknown, next, 1_000, 2_000);
        assert_eq!(unknown.buffer(at_ms(2_000)), Duration::from_millis(7_000));
        assert!((unknown.top_bitrate() - 3e6).abs() < 1.0);
    }

    #[test]
    fn the_mean_bitrate_is_that_of_the_requests() {
        let mut viewer = viewer();
        assert!(viewer.mean_bitrate().abs() < 1e-9);
        viewer.requested(at_ms(0), 0, MediaSegment { representation: 0, index: 0 }, 1);
        viewer.requested(at_ms(0), 0, MediaSegment { representation: 19, index: 1 }, 1);
        let mean = (viewer.bitrate(0) + viewer.bitrate(19)) / 2.0;
        assert!((viewer.mean_bitrate() - mean).abs() < 1.0);
        viewer.forget(0.0);
        viewer.requested(at_ms(0), 0, MediaSegment { representation: 19, index: 1 }, 1);
        assert!((viewer.mean_bitrate() - viewer.bitrate(19)).abs() < 1.0);
    }
}
