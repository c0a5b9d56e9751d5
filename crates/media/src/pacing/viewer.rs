//! What a server knows of a viewer: the MPD that it serves, what was asked for, when, and how much has arrived.

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
    /// The throughput that the viewer measured, bit/s, once the response was acknowledged to its end: from the first bytes to the last.
    pub fn throughput(&self, finished_at: Instant) -> f64 {
        let began_at = self.began_at.unwrap_or(self.requested_at);
        self.bytes as f64 * 8.0 / finished_at.since(began_at).as_secs_f64().max(SHORTEST_S)
    }
}

/// Times of downloads are no shorter, in seconds: browsers' clocks are that coarse.
const SHORTEST_S: f64 = 0.001;

/// A viewer with a connection of their own.
#[derive(Debug)]
pub struct Viewer {
    video: Option<Arc<DashVideo>>,
    /// The cap of the rate at which the viewer's responses are sent; none: as fast as the congestion control allows.
    pub pace: Option<Bandwidth>,
    /// Bytes that the viewer has acknowledged, of all responses.
    pub delivered: u64,
    /// The response that is being sent.
    pub current: Option<Response>,
    /// Bits per second of all media segments that were asked for, times their playing time, and the playing time.
    asked: (f64, f64),
    /// Estimated playing time that is buffered, as of a time.
    buffered: (Duration, Instant),
    /// The media segment expected next, if any was delivered.
    next: Option<u32>,
    idle_since: Instant,
}

impl Viewer {
    /// A viewer of this video, if the server knows one.
    pub fn new(video: Option<Arc<DashVideo>>) -> Self {
        Viewer {
            video,
            pace: None,
            delivered: 0,
            current: None,
            asked: (0.0, 0.0),
            buffered: (Duration::ZERO, Instant::ZERO),
            next: None,
            idle_since: Instant::ZERO,
        }
    }

    /// The video's representations and media segments; none if the server knows no MPD.
    pub fn video(&self) -> Option<&DashVideo> {
        self.video.as_deref()
    }

    /// Bits per second of the representation with this rank.
    pub fn bitrate(&self, rank: usize) -> f64 {
        self.video.as_ref().and_then(|video| video.representations().get(rank)).map_or(0.0, |r| r.bitrate as f64)
    }

    /// Number of representations; zero without a video.
    pub fn representations(&self) -> usize {
        self.video.as_ref().map_or(0, |video| video.representations().len())
    }

    /// A request for a media segment arrived.
    pub fn requested(&mut self, now: Instant, segment: MediaSegment, bytes: u64) {
        let idle_before = if self.current.is_some() { Duration::ZERO } else { now.since(self.idle_since) };
        self.current = Some(Response { segment, bytes, requested_at: now, idle_before, began_at: None });
        let playing = self.duration_of(segment).as_secs_f64();
        let bitrate = self.bitrate(segment.representation as usize);
        self.asked = (self.asked.0 + bitrate * playing, self.asked.1 + playing);
    }

    /// The first bytes of the response being sent were acknowledged.
    pub fn began(&mut self, now: Instant) {
        if let Some(response) = &mut self.current {
            response.began_at.get_or_insert(now);
        }
    }

    /// The response being sent was acknowledged to its end; returns it.
    pub fn completed(&mut self, now: Instant) -> Option<Response> {
        let response = self.current.take()?;
        self.idle_since = now;
        let index = response.segment.index;
        let left = self.buffer(now);
        let playing = self.duration_of(response.segment);
        self.buffered = match self.next {
            // In place of one that is buffered already.
            Some(next) if index < next && next - index <= REPLACED => (left, now),
            Some(next) if index == next => (left + playing, now),
            // The first one, or one after a seek.
            _ => (playing, now),
        };
        if self.next.is_none_or(|next| index >= next || next - index > REPLACED) {
            self.next = Some(index + 1);
        }
        Some(response)
    }

    /// Playing time that the viewer has buffered, by an estimate: what was delivered, less the time since. Players that wait for more
    /// before they begin have more, and so have those that are paused.
    pub fn buffer(&self, now: Instant) -> Duration {
        self.buffered.0 - now.since(self.buffered.1)
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
        let known = self.video.as_ref().filter(|video| segment.index < video.segments());
        known.map_or(Duration::ZERO, |video| video.duration_of(segment.index))
    }
}

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
        viewer.requested(at_ms(from_ms), MediaSegment { representation: 3, index }, 1_000);
        viewer.completed(at_ms(to_ms))
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
    fn the_mean_bitrate_is_that_of_the_requests() {
        let mut viewer = viewer();
        assert!(viewer.mean_bitrate().abs() < 1e-9);
        viewer.requested(at_ms(0), MediaSegment { representation: 0, index: 0 }, 1);
        viewer.requested(at_ms(0), MediaSegment { representation: 19, index: 1 }, 1);
        let mean = (viewer.bitrate(0) + viewer.bitrate(19)) / 2.0;
        assert!((viewer.mean_bitrate() - mean).abs() < 1.0);
        viewer.forget(0.0);
        viewer.requested(at_ms(0), MediaSegment { representation: 19, index: 1 }, 1);
        assert!((viewer.mean_bitrate() - viewer.bitrate(19)).abs() < 1.0);
    }
}
