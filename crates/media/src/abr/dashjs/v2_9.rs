//! dash.js 2.7 to 2.9: AbrController and ABRRulesCollection of 2.9.3.
//!
//! The lowest request wins. For 10 s after an abandoned request the throughput rule is not used and only changes
//! upwards are made. Every decision enters the switch history, one for no change as one that did not drop; an
//! abandonment clears the history and enters it first.

use super::super::options::AbrOptions;
use super::super::view::{Abandon, Decision, Event, Progress, View, Vote};
use super::super::{AbrOptionError, AbrRule, Entry};
use super::abandon_requests::{self, AbandonRequests29};
use super::bola::{Bola, DelayS, Generation, Sustainable};
use super::controller::{Controller, STAYS};
use super::dropped_frames::DroppedFrames;
use super::dynamic::Dynamic;
use super::insufficient_buffer::InsufficientBuffer29;
use super::quality::allowed_2;
use super::request::Request;
use super::switch_history::SAMPLES_2;
use super::throughput_history::{ThroughputHistory, Widening};
use super::{Release, stable_buffer, throughput_rule};

const NAME: &str = "dash.js-2.9";

pub(in super::super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "dash.js 2.7 to 2.9: the mean of the last four throughputs, or BOLA once 12 s are buffered.",
    source: "dash.js 2.9.3, src/streaming/rules and controllers/AbrController.js",
    create: |options| Ok(Box::new(DashJs29::new(options)?)),
};

#[derive(Debug)]
struct DashJs29 {
    history: ThroughputHistory,
    controller: Controller,
    insufficient: InsufficientBuffer29,
    dropped: DroppedFrames,
    abandon: AbandonRequests29,
}

impl DashJs29 {
    fn new(options: &AbrOptions) -> Result<Self, AbrOptionError> {
        options.expect_only(NAME, &["strategy", "stable_buffer"])?;
        let stable = stable_buffer(NAME, options.stable_buffer, Release::V2_9)?;
        let dynamic = Dynamic::new(options.strategy.unwrap_or_default(), Generation::V2, stable);
        Ok(DashJs29 {
            history: ThroughputHistory::new(Widening::ByTheOldest),
            controller: Controller::new(dynamic, Bola::new(Generation::V2, stable), SAMPLES_2),
            insufficient: InsufficientBuffer29::default(),
            dropped: DroppedFrames::new(Generation::V2),
            abandon: AbandonRequests29::new(stable),
        })
    }

    fn request(&mut self, view: &View<'_>, abandoning: bool) -> (Option<Request>, DelayS) {
        let (safe, latency) = (self.history.safe_average(view.ladder.is_live()), self.history.latency());
        let sustainable = || {
            let representation = allowed_2(view.ladder, safe.unwrap_or(f64::NAN), latency);
            Sustainable { known: safe.is_some(), representation }
        };
        let throughput = || throughput_rule::request_2_9(view, abandoning, safe, latency);
        let (dynamic, delay) = self.controller.dynamic_request(view, sustainable, throughput);
        let insufficient = self.insufficient.request(view, self.history.average(false), latency);
        let switches = self.controller.switches.request(view.ladder.len());
        (self.controller.lowest([dynamic, insufficient, switches, self.dropped.request()]), delay)
    }
}

impl AbrRule for DashJs29 {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        let abandoning = self.controller.is_abandoning(view.now);
        self.dropped.count(view.pictures);
        let (wins, delay) = self.request(view, abandoning);
        let wanted = wins.map_or(view.current, |r| r.representation.min(view.top));
        self.controller.switches.push(view.current, wanted);
        let held = abandoning && wanted < view.current;
        let reason = match wins {
            _ if held => "only upwards after an abandoned request",
            None => STAYS,
            Some(request) => request.rule,
        };
        self.controller.adopt(view, if held { view.current } else { wanted }, delay, reason)
    }

    fn observe(&mut self, view: &View<'_>, event: &Event<'_>) {
        self.controller.observe(view, event);
        match event {
            Event::SegmentFinished(download) => {
                self.history.push(download);
                self.controller.bola.finished(view, download);
            }
            Event::Seeked => self.insufficient.seeked(),
            Event::Shown { from, to } => self.dropped.shown(*from, *to, view.pictures),
            // An aborted request leaves no trace in the metrics of 2.x; BOLA was informed when it was abandoned.
            Event::SegmentAborted(_) | Event::InitFinished | Event::BufferMeasured | Event::BufferState(_) => {}
        }
    }

    fn on_progress(&mut self, view: &View<'_>, progress: &Progress) -> Option<Abandon> {
        let wanted = self.abandon.request(view, progress)?;
        self.controller.bola.abandoned(view);
        self.controller.abandon(view.now);
        self.controller.switches.push(view.current, wanted);
        // A representation above the limit is not adopted: the same one is fetched again.
        let representation = if wanted <= view.top { wanted } else { view.current };
        self.controller.changed(view, representation);
        Some(Abandon { representation, reason: abandon_requests::REASON })
    }

    fn votes(&self) -> &[Vote] {
        self.controller.votes()
    }
}

#[cfg(test)]
#[path = "v2_9_tests.rs"]
mod tests;
