//! dash.js 2.0 to 2.2: AbrController, RulesController and ABRRulesCollection of 2.2.0.
//!
//! The highest request of the strongest priority wins (`request.rs`). For 10 s after an abandoned request only changes
//! upwards are made. An abandonment itself is followed only downwards.

use super::super::view::{Abandon, Decision, Event, Progress, View, Vote};
use super::super::{AbrRule, Entry};
use super::abandon_requests::{self, AbandonRequests22};
use super::abandonment::Abandonment;
use super::buffer_occupancy;
use super::insufficient_buffer::InsufficientBuffer22;
use super::js::date_ms;
use super::request::{Request, highest};
use super::throughput_rule::ThroughputRule22;

pub(in super::super) const ENTRY: Entry = Entry {
    name: "dash.js-2.2",
    summary: "dash.js 2.0 to 2.2: nine tenths of the mean of the last three throughputs, requests abandoned at 1.5 durations.",
    source: "dash.js 2.2.0, src/streaming/rules/abr and controllers/AbrController.js",
    create: |options| {
        options.expect_only("dash.js-2.2", &[])?;
        Ok(Box::new(DashJs22 {
            throughput: ThroughputRule22::default(),
            insufficient: InsufficientBuffer22::default(),
            abandon: AbandonRequests22::default(),
            abandonment: Abandonment::new(false),
            votes: Vec::new(),
        }))
    },
};

#[derive(Debug)]
struct DashJs22 {
    throughput: ThroughputRule22,
    insufficient: InsufficientBuffer22,
    abandon: AbandonRequests22,
    abandonment: Abandonment,
    votes: Vec<Vote>,
}

impl AbrRule for DashJs22 {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        let abandoning = self.abandonment.is_active(date_ms(view.now));
        let requests: Vec<Request> = [
            self.throughput.request(view, abandoning),
            buffer_occupancy::request(view, abandoning),
            self.insufficient.request(view),
        ]
        .into_iter()
        .flatten()
        .collect();
        self.votes.clear();
        self.votes.extend(requests.iter().map(Request::vote));
        let Some(wins) = highest(&requests) else { return Decision::now(view.current, "no rule asks for a change") };
        let new = wins.representation.min(view.top);
        if abandoning && new < view.current {
            return Decision::now(view.current, "only upwards after an abandoned request");
        }
        Decision::now(new, wins.rule)
    }

    fn observe(&mut self, _view: &View<'_>, event: &Event<'_>) {
        match event {
            Event::SegmentFinished(_) => self.throughput.fetched(false),
            Event::InitFinished => self.throughput.fetched(true),
            Event::Seeked => self.insufficient.seeked(),
            Event::SegmentAborted(_) | Event::BufferMeasured | Event::BufferState(_) | Event::Shown { .. } => {}
        }
    }

    fn on_progress(&mut self, view: &View<'_>, progress: &Progress) -> Option<Abandon> {
        let representation = self.abandon.request(view, progress)?.min(view.top);
        if representation >= view.current {
            return None;
        }
        self.abandonment.begin(date_ms(view.now));
        Some(Abandon { representation, reason: abandon_requests::REASON })
    }

    fn votes(&self) -> &[Vote] {
        &self.votes
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::AbrOptions;
    use super::super::super::testing::{at_ms, ladder, timed, view};
    use super::super::super::view::{BufferState, Ladder, Mark};
    use super::*;
    use anabranch_units::{Duration, Instant};

    fn rule() -> Box<dyn AbrRule> {
        (ENTRY.create)(&AbrOptions::default()).unwrap()
    }

    fn rates() -> Ladder {
        ladder(&[300_000, 600_000, 1_200_000, 2_400_000])
    }

    #[test]
    fn the_highest_strong_request_wins() {
        // Empty asks for 0, the throughput (of a live stream) for 2, a rich buffer for the top.
        let ladder = rates().live();
        let downloads = [timed(0, 0, 1_000, 187_500)];
        let at = |ms, state, buffer| View {
            now: at_ms(ms),
            buffer_state: Some(state),
            buffer: Duration::from_secs(buffer),
            downloads: &downloads,
            current: 1,
            ..view(&ladder)
        };
        let mut rule = rule();
        assert_eq!(rule.decide(&at(0, BufferState::Loaded, 5)).representation, 2, "0.9 * 1500");
        assert_eq!(rule.decide(&at(1_000, BufferState::Empty, 0)).representation, 0);
        assert_eq!(rule.votes().len(), 2);
        assert_eq!(rule.decide(&at(2_000, BufferState::Empty, 60)).representation, 3);
        assert_eq!(rule.decide(&View { top: 2, ..at(3_000, BufferState::Empty, 60) }).representation, 2);
        rule.observe(&at(3_000, BufferState::Empty, 0), &Event::Seeked);
        assert_eq!(rule.decide(&at(4_000, BufferState::Empty, 0)).representation, 2, "not loaded since the seek");
    }

    #[test]
    fn without_a_request_the_representation_stays() {
        let ladder = rates();
        let decision = rule().decide(&View { current: 2, ..view(&ladder) });
        assert_eq!(decision, Decision::now(2, "no rule asks for a change"));
    }

    #[test]
    fn after_an_abandoned_request_it_only_goes_up_for_ten_seconds() {
        let ladder = rates();
        let mut rule = rule();
        let loaded = View { buffer_state: Some(BufferState::Loaded), ..view(&ladder) };
        rule.decide(&loaded);
        let slow = Progress {
            index: 4,
            representation: 3,
            requested_at: at_ms(1_000),
            first_progress: Some(Mark { at: at_ms(1_100), bytes: 0 }),
            bytes: 60_000,
            total: 300_000,
        };
        // 480 kbit in 500 ms: 960 kbit/s, 0.9 of which allows 600.
        let at = |ms| View { now: at_ms(ms), current: 3, ..loaded };
        assert_eq!(rule.on_progress(&at(1_600), &slow).map(|a| a.representation), Some(1));
        let empty = |ms| View { buffer_state: Some(BufferState::Empty), current: 1, ..at(ms) };
        let at_the_lowest = rule.decide(&View { current: 0, ..empty(10_000) });
        assert_eq!(at_the_lowest.reason, "InsufficientBufferRule", "no change is no change downwards");
        assert_eq!(rule.decide(&empty(11_599)).reason, "only upwards after an abandoned request");
        assert_eq!(rule.decide(&empty(12_600)).representation, 0);
    }

    #[test]
    fn an_abandonment_that_is_not_downwards_is_not_followed() {
        // 2300 kbit/s would allow 1200 of 2400, but the player is at 1200 already.
        let ladder = rates();
        let fast = Progress {
            index: 0,
            representation: 2,
            requested_at: Instant::ZERO,
            first_progress: Some(Mark { at: Instant::ZERO, bytes: 0 }),
            bytes: 143_750,
            total: 600_000,
        };
        let mut rule = rule();
        assert_eq!(rule.on_progress(&View { now: at_ms(500), current: 2, ..view(&ladder) }, &fast), None);
        assert_eq!(
            rule.on_progress(&View { now: at_ms(600), current: 3, ..view(&ladder) }, &fast),
            None,
            "asked for once"
        );
    }

    #[test]
    fn after_an_initialisation_segment_the_throughput_makes_no_request() {
        let ladder = rates();
        let downloads = [timed(0, 0, 1_000, 187_500)];
        let at = View { buffer_state: Some(BufferState::Loaded), downloads: &downloads, ..view(&ladder) };
        let mut rule = rule();
        rule.observe(&at, &Event::SegmentFinished(&downloads[0]));
        rule.observe(&at, &Event::InitFinished);
        assert!(rule.decide(&at).reason.starts_with("no rule"));
        rule.observe(&at, &Event::SegmentFinished(&downloads[0]));
        assert_eq!(rule.decide(&at).representation, 2);
    }
}
