//! dash.js 5: AbrController and ABRRulesCollection of 5.2.1.
//!
//! The lowest request wins. For 10 s after an abandoned request the throughput rule is not used and only changes
//! *downwards* are made. A decision that some rule asked for enters the switch history; an abandonment clears it.

use super::super::options::AbrOptions;
use super::super::view::{Abandon, Decision, Event, Progress, View, Vote};
use super::super::{AbrOptionError, AbrRule, Entry};
use super::abandon_requests::{self, AbandonRequests5};
use super::bola::{Bola, DelayS, Generation, Sustainable};
use super::controller::{Controller, STAYS};
use super::dropped_frames::DroppedFrames;
use super::dynamic::Dynamic;
use super::ewma::{Ewma, Timing};
use super::insufficient_buffer::InsufficientBuffer5;
use super::quality::allowed_5;
use super::request::Request;
use super::switch_history::SAMPLES_5;
use super::{Release, stable_buffer, throughput_rule};
use anabranch_units::Duration;

const NAME: &str = "dash.js-5";
/// `hybridSwitchBufferTime`.
const HYBRID_SWITCH_BUFFER_TIME: Duration = Duration::from_secs(12);

pub(in super::super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "dash.js 5: the lower of two moving averages of the throughput, or BOLA once 12 s are buffered.",
    source: "dash.js 5.2.1, src/streaming/rules, controllers/AbrController.js and ThroughputController.js",
    create: |options| Ok(Box::new(DashJs5::new(options)?)),
};

#[derive(Debug)]
struct DashJs5 {
    timing: Timing,
    ewma: Ewma,
    controller: Controller,
    insufficient: InsufficientBuffer5,
    /// None: the rule is off, as it is by default.
    dropped: Option<DroppedFrames>,
    abandon: AbandonRequests5,
}

impl DashJs5 {
    fn new(options: &AbrOptions) -> Result<Self, AbrOptionError> {
        options.expect_only(NAME, &["strategy", "stable_buffer", "dropped_frames", "progress_timing"])?;
        let stable = stable_buffer(NAME, options.stable_buffer, Release::V5)?;
        let by_progress = options.progress_timing.unwrap_or(false);
        let strategy = options.strategy.unwrap_or_default();
        let dynamic = Dynamic::new(strategy, Generation::V5, HYBRID_SWITCH_BUFFER_TIME);
        Ok(DashJs5 {
            timing: if by_progress { Timing::Progress } else { Timing::Resource },
            ewma: Ewma::default(),
            controller: Controller::new(dynamic, Bola::new(Generation::V5, stable), SAMPLES_5),
            insufficient: InsufficientBuffer5::new(),
            dropped: options.dropped_frames.unwrap_or(false).then(|| DroppedFrames::new(Generation::V5)),
            abandon: AbandonRequests5::new(stable),
        })
    }

    fn request(&mut self, view: &View<'_>, abandoning: bool) -> (Option<Request>, DelayS) {
        let safe = self.ewma.safe_average();
        let sustainable = || {
            let representation = allowed_5(view.ladder, view.top, safe.unwrap_or(f64::NAN));
            Sustainable { known: safe.is_some(), representation }
        };
        let throughput = || throughput_rule::request_5(view, abandoning, safe);
        let (dynamic, delay) = self.controller.dynamic_request(view, sustainable, throughput);
        let insufficient = self.insufficient.request(view, self.ewma.average());
        let switches = self.controller.switches.request(view.top + 1);
        let dropped = self.dropped.as_ref().and_then(DroppedFrames::request);
        (self.controller.lowest([dynamic, insufficient, switches, dropped]), delay)
    }
}

impl AbrRule for DashJs5 {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        let abandoning = self.controller.is_abandoning(view.now);
        if let Some(dropped) = &mut self.dropped {
            dropped.count(view.pictures);
        }
        let (wins, delay) = self.request(view, abandoning);
        let Some(wins) = wins else { return self.controller.adopt(view, view.current, delay, STAYS) };
        self.controller.switches.push(view.current, wins.representation);
        if abandoning && wins.representation > view.current {
            return self.controller.adopt(view, view.current, delay, "only downwards after an abandoned request");
        }
        self.controller.adopt(view, wins.representation, delay, wins.rule)
    }

    fn observe(&mut self, view: &View<'_>, event: &Event<'_>) {
        self.controller.observe(view, event);
        match event {
            Event::SegmentFinished(download) => {
                self.ewma.push(download, self.timing);
                self.controller.bola.finished(view, download);
                self.insufficient.appended();
            }
            Event::SegmentAborted(download) => {
                // The metrics hold aborted requests too, but only if a part of the body was reported.
                if download.first_progress.is_some() {
                    self.ewma.push(download, Timing::Progress);
                    self.controller.bola.noted_abort(download);
                }
                self.controller.bola.abandoned(view);
            }
            Event::Seeked => self.insufficient.seeked(),
            Event::Shown { from, to } => {
                if let Some(dropped) = &mut self.dropped {
                    dropped.shown(*from, *to, view.pictures);
                }
            }
            Event::InitFinished | Event::BufferMeasured | Event::BufferState(_) => {}
        }
    }

    fn on_progress(&mut self, view: &View<'_>, progress: &Progress) -> Option<Abandon> {
        let representation = self.abandon.request(view, progress)?;
        self.controller.abandon(view.now);
        self.controller.changed(view, representation);
        Some(Abandon { representation, reason: abandon_requests::REASON })
    }

    fn votes(&self) -> &[Vote] {
        self.controller.votes()
    }
}

#[cfg(test)]
#[path = "v5_tests.rs"]
mod tests;
