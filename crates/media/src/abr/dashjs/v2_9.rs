//! dash.js 2.7 to 2.9: AbrController and ABRRulesCollection of 2.9.3.
//!
//! The lowest request wins. For 10 s after an abandoned request the throughput is not asked and only changes upwards
//! are made. Every decision enters the switch history, one for no change as one that did not drop; an abandonment
//! clears the history and enters it first.

use super::super::options::AbrOptions;
use super::super::view::{Abandon, BufferState, Decision, Event, Progress, View, Vote};
use super::super::{AbrOptionError, AbrRule, Entry};
use super::abandon_requests::{self, AbandonRequests29};
use super::abandonment::Abandonment;
use super::bola::{Bola, DelayS, Generation, Sustainable};
use super::dropped_frames::DroppedFrames;
use super::dynamic::Dynamic;
use super::insufficient_buffer::InsufficientBuffer29;
use super::js::date_ms;
use super::quality::allowed_2;
use super::request::{Request, lowest};
use super::switch_history::{SAMPLES_2, SwitchHistory};
use super::throughput_history::{ThroughputHistory, Widening};
use super::{Release, stable_buffer, throughput_rule};
use anabranch_units::Duration;

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
    dynamic: Dynamic,
    bola: Bola,
    insufficient: InsufficientBuffer29,
    switches: SwitchHistory,
    dropped: DroppedFrames,
    abandon: AbandonRequests29,
    abandonment: Abandonment,
    votes: Vec<Vote>,
}

impl DashJs29 {
    fn new(options: &AbrOptions) -> Result<Self, AbrOptionError> {
        options.expect_only(NAME, &["strategy", "stable_buffer"])?;
        let stable = stable_buffer(NAME, options.stable_buffer, Release::V2_9)?;
        Ok(DashJs29 {
            history: ThroughputHistory::new(Widening::ByTheOldest),
            dynamic: Dynamic::new(options.strategy.unwrap_or_default(), Generation::V2, stable),
            bola: Bola::new(Generation::V2, stable),
            insufficient: InsufficientBuffer29::default(),
            switches: SwitchHistory::new(SAMPLES_2),
            dropped: DroppedFrames::new(Generation::V2),
            abandon: AbandonRequests29::new(stable),
            abandonment: Abandonment::new(true),
            votes: Vec::new(),
        })
    }

    fn requests(&mut self, view: &View<'_>, abandoning: bool) -> (Vec<Request>, DelayS) {
        let live = view.ladder.is_live();
        let (safe, latency) = (self.history.safe_average(live), self.history.latency());
        let (bola, throughput) = if self.dynamic.bola() {
            let representation = allowed_2(view.ladder, safe.unwrap_or(f64::NAN), latency);
            (self.bola.request(view, Sustainable { known: safe.is_some(), representation }), None)
        } else {
            (None, throughput_rule::request_2_9(view, abandoning, safe, latency))
        };
        let delay = bola.map_or(0.0, |(_, delay)| delay);
        let requests = [
            bola.map(|(request, _)| request),
            throughput,
            self.insufficient.request(view, self.history.average(false), latency),
            self.switches.request(view.ladder.len()),
            self.dropped.request(),
        ];
        (requests.into_iter().flatten().collect(), delay)
    }
}

impl AbrRule for DashJs29 {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        let abandoning = self.abandonment.is_active(date_ms(view.now));
        self.dropped.count(view.pictures);
        let (requests, delay) = self.requests(view, abandoning);
        self.votes.clear();
        self.votes.extend(requests.iter().map(Request::vote));
        let wins = lowest(&requests);
        let wanted = wins.map_or(view.current, |r| r.representation.min(view.top));
        self.switches.push(view.current, wanted);
        let held = abandoning && wanted < view.current;
        let representation = if held { view.current } else { wanted };
        if representation != view.current {
            self.bola.changed(representation);
        }
        let reason = match wins {
            _ if held => "only upwards after an abandoned request",
            None => "no rule asks for a change",
            Some(request) => request.rule,
        };
        Decision { representation, wait: Duration::from_secs_f64(delay), reason }
    }

    fn observe(&mut self, view: &View<'_>, event: &Event<'_>) {
        match event {
            Event::SegmentFinished(download) => {
                self.history.push(download);
                self.bola.finished(view, download);
            }
            Event::BufferMeasured => self.dynamic.measured(view.buffer),
            Event::BufferState(BufferState::Empty) => self.bola.emptied(),
            Event::Seeked => {
                self.bola.seeked();
                self.insufficient.seeked();
            }
            Event::Shown { from, to } => self.dropped.shown(*from, *to, view.pictures),
            // An aborted request leaves no trace in the metrics of 2.x; BOLA heard of it when it was abandoned.
            Event::SegmentAborted(_) | Event::InitFinished | Event::BufferState(BufferState::Loaded) => {}
        }
    }

    fn on_progress(&mut self, view: &View<'_>, progress: &Progress) -> Option<Abandon> {
        let wanted = self.abandon.request(view, progress)?;
        self.bola.abandoned(view);
        self.abandonment.begin(date_ms(view.now));
        self.switches.clear();
        self.switches.push(view.current, wanted);
        // A representation above the limit is not adopted: the same one is fetched again.
        let representation = if wanted <= view.top { wanted } else { view.current };
        if representation != view.current {
            self.bola.changed(representation);
        }
        Some(Abandon { representation, reason: abandon_requests::REASON })
    }

    fn votes(&self) -> &[Vote] {
        &self.votes
    }
}

#[cfg(test)]
#[path = "v2_9_tests.rs"]
mod tests;
