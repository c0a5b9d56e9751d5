//! dash.js 5: AbrController and ABRRulesCollection of 5.2.1.
//!
//! The lowest request wins. For 10 s after an abandoned request the throughput is not asked and only changes *downwards*
//! are made. A decision that some rule asked for enters the switch history; an abandonment clears it.

use super::super::options::AbrOptions;
use super::super::view::{Abandon, BufferState, Decision, Event, Progress, View, Vote};
use super::super::{AbrOptionError, AbrRule, Entry};
use super::abandon_requests::{self, AbandonRequests5};
use super::abandonment::Abandonment;
use super::bola::{Bola, DelayS, Generation, Sustainable};
use super::dropped_frames::DroppedFrames;
use super::dynamic::Dynamic;
use super::ewma::{Ewma, Timing};
use super::insufficient_buffer::InsufficientBuffer5;
use super::js::date_ms;
use super::quality::allowed_5;
use super::request::{Request, lowest};
use super::switch_history::{SAMPLES_5, SwitchHistory};
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
    dynamic: Dynamic,
    bola: Bola,
    insufficient: InsufficientBuffer5,
    switches: SwitchHistory,
    /// None: the rule is off, as it is by default.
    dropped: Option<DroppedFrames>,
    abandon: AbandonRequests5,
    abandonment: Abandonment,
    votes: Vec<Vote>,
}

impl DashJs5 {
    fn new(options: &AbrOptions) -> Result<Self, AbrOptionError> {
        options.expect_only(NAME, &["strategy", "stable_buffer", "dropped_frames", "progress_timing"])?;
        let stable = stable_buffer(NAME, options.stable_buffer, Release::V5)?;
        let by_progress = options.progress_timing.unwrap_or(false);
        Ok(DashJs5 {
            timing: if by_progress { Timing::Progress } else { Timing::Resource },
            ewma: Ewma::default(),
            dynamic: Dynamic::new(options.strategy.unwrap_or_default(), Generation::V5, HYBRID_SWITCH_BUFFER_TIME),
            bola: Bola::new(Generation::V5, stable),
            insufficient: InsufficientBuffer5::new(),
            switches: SwitchHistory::new(SAMPLES_5),
            dropped: options.dropped_frames.unwrap_or(false).then(|| DroppedFrames::new(Generation::V5)),
            abandon: AbandonRequests5::new(stable),
            abandonment: Abandonment::new(true),
            votes: Vec::new(),
        })
    }

    fn requests(&mut self, view: &View<'_>, abandoning: bool) -> (Vec<Request>, DelayS) {
        let safe = self.ewma.safe_average();
        let (bola, throughput) = if self.dynamic.bola() {
            let representation = allowed_5(view.ladder, view.top, safe.unwrap_or(f64::NAN));
            (self.bola.request(view, Sustainable { known: safe.is_some(), representation }), None)
        } else {
            (None, throughput_rule::request_5(view, abandoning, safe))
        };
        let delay = bola.map_or(0.0, |(_, delay)| delay);
        let requests = [
            bola.map(|(request, _)| request),
            throughput,
            self.insufficient.request(view, self.ewma.average()),
            self.switches.request(view.top + 1),
            self.dropped.as_ref().and_then(DroppedFrames::request),
        ];
        (requests.into_iter().flatten().collect(), delay)
    }
}

impl AbrRule for DashJs5 {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        let abandoning = self.abandonment.is_active(date_ms(view.now));
        if let Some(dropped) = &mut self.dropped {
            dropped.count(view.pictures);
        }
        let (requests, delay) = self.requests(view, abandoning);
        let wait = Duration::from_secs_f64(delay);
        self.votes.clear();
        self.votes.extend(requests.iter().map(Request::vote));
        let Some(wins) = lowest(&requests) else {
            return Decision { representation: view.current, wait, reason: "no rule asks for a change" };
        };
        self.switches.push(view.current, wins.representation);
        if abandoning && wins.representation > view.current {
            return Decision {
                representation: view.current,
                wait,
                reason: "only downwards after an abandoned request",
            };
        }
        if wins.representation != view.current {
            self.bola.changed(wins.representation);
        }
        Decision { representation: wins.representation, wait, reason: wins.rule }
    }

    fn observe(&mut self, view: &View<'_>, event: &Event<'_>) {
        match event {
            Event::SegmentFinished(download) => {
                self.ewma.push(download, self.timing);
                self.bola.finished(view, download);
                self.insufficient.appended();
            }
            Event::SegmentAborted(download) => {
                // The metrics hold aborted requests too, but only if a part of the body was reported.
                if download.first_progress.is_some() {
                    self.ewma.push(download, Timing::Progress);
                    self.bola.noted_abort(download);
                }
                self.bola.abandoned(view);
            }
            Event::BufferMeasured => self.dynamic.measured(view.buffer),
            Event::BufferState(BufferState::Empty) => self.bola.emptied(),
            Event::Seeked => {
                self.bola.seeked();
                self.insufficient.seeked();
            }
            Event::Shown { from, to } => {
                if let Some(dropped) = &mut self.dropped {
                    dropped.shown(*from, *to, view.pictures);
                }
            }
            Event::InitFinished | Event::BufferState(BufferState::Loaded) => {}
        }
    }

    fn on_progress(&mut self, view: &View<'_>, progress: &Progress) -> Option<Abandon> {
        let representation = self.abandon.request(view, progress)?;
        self.abandonment.begin(date_ms(view.now));
        self.switches.clear();
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
#[path = "v5_tests.rs"]
mod tests;
