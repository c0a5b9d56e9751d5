//! What the viewer of a DASH video saw, folded from what the player said.
//!
//! | metric | definition |
//! |---|---|
//! | mean bitrate | nominal bitrates on screen, weighted by the time for which pictures moved |
//! | switches | changes of the representation from one media segment on screen to the next |
//! | impactful switches | those that change the resolution (DASH over MPTCP, Table II) |
//! | time on high quality | share of the moving time with at least 1280x720 |
//! | linear QoE | sum q_k - lambda sum abs(q_k+1 - q_k) - mu stall - mu_s startup (Yin et al., SIGCOMM 2015, eq. 5), q in kbit/s |
//! | log QoE | the same with q = ln(R / R_min) (BOLA's utility; Pensieve, table 1) |
//! | reordering wait | per media segment, how long the bytes of its response waited in reassembly for earlier ones |
//! | wasted | bytes of bodies that never came on screen: given up, replaced, or too late |
//!
//! A window (60 to 540 s in the DASH-over-MPTCP paper) limits everything but the list of media segments and the wasted
//! bytes; it counts from the session's start. A switch or a media segment belongs to the window in which it came on
//! screen, the start-up to the one in which it ended.

mod levels;
mod segments;
mod waits;

pub use segments::MediaSegmentReport;

use anabranch_events::{PlayerEvent, TransportEvent};
use anabranch_media::content::{DashVideo, Resolution};
use anabranch_scenario::Statistics;
use anabranch_units::{Duration, Instant};
use levels::Levels;
use schemars::JsonSchema;
use segments::Requests;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Pictures of one representation that moved without a break.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: Instant,
    to: Instant,
    representation: usize,
}

/// The fold. It may be asked for a report at any instant, so it also serves a run that is cut off.
#[derive(Clone, Debug)]
pub struct DashMetrics {
    start: Instant,
    video: Arc<DashVideo>,
    statistics: Statistics,
    began: Option<Instant>,
    ended: Option<Instant>,
    /// Media segments as they came on screen.
    shown: Vec<(Instant, usize)>,
    pieces: Vec<Piece>,
    /// Since when pictures have moved, in which representation.
    moving: Option<(Instant, usize)>,
    stalls: Vec<(Instant, Instant)>,
    stalled: Option<Instant>,
    levels: Levels,
    requests: Requests,
}

/// What [`DashMetrics`] found; the field names are those of `run --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DashReport {
    /// The statistics window, since the session's start; null: all of it.
    pub statistics_window_s: Option<(f64, f64)>,
    /// Mean bitrate on screen, bit/s; null if nothing was shown.
    pub mean_bitrate_bps: Option<f64>,
    /// The mean of the different bitrates that were on screen, each counted once, bit/s (the other reading of MPTCP+'s
    /// "average of ever used bitrates").
    pub mean_used_bitrate_bps: Option<f64>,
    /// Changes of the representation.
    pub switches: u64,
    /// Changes of the resolution; null if resolutions are not known.
    pub impactful_switches: Option<u64>,
    /// Mean size of a change of the bitrate, bit/s; null if there was none.
    pub switch_amplitude_bps: Option<f64>,
    /// Share of the moving time with at least 1280x720; null if resolutions are not known or nothing was shown.
    pub time_on_high_quality: Option<f64>,
    /// Mean over time of what is buffered, s.
    pub mean_buffer_s: f64,
    /// Stalls as a share of the time after the start.
    pub stall_ratio: f64,
    /// QoE after Yin et al.
    pub qoe_linear: f64,
    /// The linear QoE over the number of media segments that it sums up, those that came on screen: the mean per media
    /// segment, as Mao et al. report it (Pensieve, SIGCOMM 2017). Null if none came on screen.
    pub qoe_linear_per_segment: Option<f64>,
    /// QoE with logarithmic quality.
    pub qoe_log: f64,
    /// Bytes of bodies that never came on screen.
    pub wasted_bytes: u64,
    /// Requests that were given up.
    pub abandoned_requests: u64,
    /// Media segments that were fetched to their end, in that order.
    pub media_segments: Vec<MediaSegmentReport>,
}

impl DashMetrics {
    /// For a session that begins at `start`.
    pub fn new(start: Instant, video: Arc<DashVideo>, statistics: Statistics) -> Self {
        DashMetrics {
            start,
            video,
            statistics,
            began: None,
            ended: None,
            shown: Vec::new(),
            pieces: Vec::new(),
            moving: None,
            stalls: Vec::new(),
            stalled: None,
            levels: Levels::new(start),
            requests: Requests::default(),
        }
    }

    /// Takes in one event, in the order in which they were said.
    pub fn observe(&mut self, at: Instant, event: &PlayerEvent) {
        self.requests.observe(at, event);
        match *event {
            PlayerEvent::PlaybackStarted => {
                self.began = Some(at);
                self.levels.set_moving(at, true);
            }
            PlayerEvent::SegmentShown { representation, .. } => {
                self.close_piece(at);
                self.shown.push((at, usize::from(representation)));
                self.moving = Some((at, usize::from(representation)));
            }
            PlayerEvent::StallBegan => {
                self.close_piece(at);
                self.stalled = Some(at);
                self.levels.set_moving(at, false);
            }
            PlayerEvent::StallEnded => {
                self.stalls.extend(self.stalled.take().map(|since| (since, at)));
                self.moving = self.shown.last().map(|(_, representation)| (at, *representation));
                self.levels.set_moving(at, true);
            }
            PlayerEvent::PlaybackEnded => {
                self.close_piece(at);
                self.ended = Some(at);
                self.levels.set_moving(at, false);
            }
            PlayerEvent::SegmentAppended { buffered, .. } => self.levels.set(at, buffered),
            _ => {}
        }
    }

    /// Takes in one event of the endpoint that receives the video, before what the player says because of it.
    pub fn observe_receiver(&mut self, event: &TransportEvent) {
        if let TransportEvent::Delivered { bytes, waited, across, .. } = *event {
            self.requests.deliver(bytes, waited, across);
        }
    }

    fn close_piece(&mut self, at: Instant) {
        if let Some((from, representation)) = self.moving.take() {
            self.pieces.push(Piece { from, to: at, representation });
        }
    }

    /// The metrics of a session that ended, or was cut off, at `end`.
    pub fn finish(&self, end: Instant) -> DashReport {
        let mut closed = self.clone();
        let end = self.ended.unwrap_or(end).min(end);
        closed.close_piece(end);
        closed.stalls.extend(closed.stalled.take().map(|since| (since, end)));
        closed.report(end)
    }

    fn report(&self, end: Instant) -> DashReport {
        let window = self.window(end);
        let moved: f64 = self.pieces.iter().map(|p| window.share(p.from, p.to)).sum();
        let stall: f64 = self.stalls.iter().map(|(from, to)| window.share(*from, *to)).sum();
        let (wasted_bytes, abandoned_requests) = self.requests.wasted();
        let ranks = self.ranks_shown(&window);
        let quality = |rank: usize| self.bitrate(rank) / 1_000.0;
        let utility = |rank: usize| libm::log(self.bitrate(rank) / self.bitrate(0));
        let seconds = |(from, to): (Duration, Duration)| (from.as_secs_f64(), to.as_secs_f64());
        let qoe_linear = self.qoe(&window, &ranks, stall, &Prices::linear(&self.statistics), quality);
        DashReport {
            statistics_window_s: self.statistics.window().map(seconds),
            mean_bitrate_bps: self.weighted(&window, moved, |rank| Some(self.bitrate(rank))),
            mean_used_bitrate_bps: self.mean_used(&ranks),
            switches: self.changes(&window, |a, b| Some(a != b)).unwrap_or(0),
            impactful_switches: self.changes(&window, |a, b| Some(self.resolution(a)? != self.resolution(b)?)),
            switch_amplitude_bps: self.amplitude(&window),
            time_on_high_quality: self.weighted(&window, moved, |rank| {
                Some(f64::from(u8::from(self.resolution(rank)?.covers(Resolution::HIGH_QUALITY))))
            }),
            mean_buffer_s: self.levels.mean(window.from, window.to),
            // Adding zero turns the negative zero of an empty sum into a plain one.
            stall_ratio: if moved + stall > 0.0 { 0.0 + stall / (moved + stall) } else { 0.0 },
            qoe_linear,
            qoe_linear_per_segment: (!ranks.is_empty()).then(|| qoe_linear / ranks.len() as f64),
            qoe_log: self.qoe(&window, &ranks, stall, &Prices::log(&self.statistics), utility),
            wasted_bytes,
            abandoned_requests,
            media_segments: self.requests.reports(self.start),
        }
    }

    fn window(&self, end: Instant) -> Window {
        match self.statistics.window() {
            None => Window { from: self.start, to: end },
            Some((from, to)) => Window { from: self.start + from, to: (self.start + to).min(end) },
        }
    }

    fn bitrate(&self, rank: usize) -> f64 {
        self.video.representations()[rank].bitrate as f64
    }

    fn resolution(&self, rank: usize) -> Option<Resolution> {
        self.video.representations()[rank].resolution
    }

    fn ranks_shown(&self, window: &Window) -> Vec<usize> {
        self.shown.iter().filter(|(at, _)| window.contains(*at)).map(|(_, rank)| *rank).collect()
    }

    /// The mean of a value over the moving time; none if there was no such time, or the value is not known.
    fn weighted(&self, window: &Window, moved: f64, value: impl Fn(usize) -> Option<f64>) -> Option<f64> {
        let mut sum = 0.0;
        for piece in &self.pieces {
            let share = window.share(piece.from, piece.to);
            if share > 0.0 {
                sum += share * value(piece.representation)?;
            }
        }
        (moved > 0.0).then(|| sum / moved)
    }

    fn mean_used(&self, ranks: &[usize]) -> Option<f64> {
        let mut used = ranks.to_vec();
        used.sort_unstable();
        used.dedup();
        let sum: f64 = used.iter().map(|&rank| self.bitrate(rank)).sum();
        (!used.is_empty()).then(|| sum / used.len() as f64)
    }

    /// Pairs of neighbours of which the second one came on screen within the window.
    fn pairs(&self, window: &Window) -> impl Iterator<Item = (usize, usize)> {
        self.shown.windows(2).filter(|pair| window.contains(pair[1].0)).map(|pair| (pair[0].1, pair[1].1))
    }

    /// How many pairs differ; none if that cannot be said of one.
    fn changes(&self, window: &Window, differ: impl Fn(usize, usize) -> Option<bool>) -> Option<u64> {
        self.pairs(window).map(|(a, b)| differ(a, b).map(u64::from)).sum()
    }

    fn amplitude(&self, window: &Window) -> Option<f64> {
        let changes = self.pairs(window).filter(|(a, b)| a != b);
        let sizes: Vec<f64> = changes.map(|(a, b)| (self.bitrate(b) - self.bitrate(a)).abs()).collect();
        (!sizes.is_empty()).then(|| sizes.iter().sum::<f64>() / sizes.len() as f64)
    }

    fn qoe(
        &self,
        window: &Window,
        ranks: &[usize],
        stall_s: f64,
        prices: &Prices,
        quality: impl Fn(usize) -> f64,
    ) -> f64 {
        let startup_s = match self.began.filter(|at| window.contains(*at)) {
            Some(began) => began.since(self.start).as_secs_f64(),
            None => 0.0,
        };
        let gained: f64 = ranks.iter().map(|&rank| quality(rank)).sum();
        let changed: f64 = ranks.windows(2).map(|pair| (quality(pair[1]) - quality(pair[0])).abs()).sum();
        gained - prices.switch * changed - prices.stall * stall_s - prices.startup * startup_s
    }
}

/// Prices in a sum of qualities: of a change of quality by one, of a second of stall and of one of start-up.
struct Prices {
    switch: f64,
    stall: f64,
    startup: f64,
}

impl Prices {
    fn linear(statistics: &Statistics) -> Self {
        let &Statistics { switch_penalty: switch, stall_penalty: stall, startup_penalty: startup, .. } = statistics;
        Prices { switch, stall, startup }
    }

    fn log(statistics: &Statistics) -> Self {
        let &Statistics { log_switch_penalty, log_stall_penalty, log_startup_penalty, .. } = statistics;
        Prices { switch: log_switch_penalty, stall: log_stall_penalty, startup: log_startup_penalty }
    }
}

/// What counts.
#[derive(Clone, Copy, Debug)]
struct Window {
    from: Instant,
    to: Instant,
}

impl Window {
    fn contains(&self, at: Instant) -> bool {
        self.from <= at && at < self.to
    }

    /// The seconds of an interval that lie within.
    fn share(&self, from: Instant, to: Instant) -> f64 {
        to.min(self.to).since(from.max(self.from)).as_secs_f64()
    }
}

#[cfg(test)]
mod tests;
