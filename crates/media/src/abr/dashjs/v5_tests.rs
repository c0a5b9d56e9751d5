use super::super::super::testing::{at_ms, ladder, timed, view};
use super::super::super::view::{BufferState, Download, Ladder, Mark, Pictures};
use super::super::super::{AbrOptions, Strategy};
use super::*;
use anabranch_units::Instant;

fn rates() -> Ladder {
    ladder(&[300_000, 600_000, 1_200_000, 2_400_000])
}

fn loaded(ladder: &Ladder, s: u64) -> View<'_> {
    View { buffer: Duration::from_secs(s), buffer_state: Some(BufferState::Loaded), ..view(ladder) }
}

fn rule(options: AbrOptions) -> DashJs5 {
    DashJs5::new(&options).unwrap()
}

/// A rule that measured 10 Mbit/s and is past the first two media segments.
fn fast(options: AbrOptions) -> DashJs5 {
    let mut rule = rule(options);
    rule.ewma.push(&timed(0, 0, 1_000, 1_250_000), Timing::Resource);
    (0..2).for_each(|_| rule.insufficient.appended());
    rule
}

/// Makes the rule abandon a request at 2400 kbit/s at 600 ms in favour of the highest within 800 kbit/s: 600.
fn abandon(rule: &mut DashJs5, view: &View<'_>) -> Option<Abandon> {
    let first_progress = Some(Mark { at: Instant::ZERO, bytes: 0 });
    (0..=6).find_map(|n| {
        let bytes = n * 10_000;
        let progress = Progress {
            index: 9,
            representation: 3,
            requested_at: Instant::ZERO,
            first_progress,
            bytes,
            total: 300_000,
        };
        rule.on_progress(&View { now: at_ms(n * 100), ..*view }, &progress)
    })
}

#[test]
fn without_a_request_it_stays_and_the_history_does_not_grow() {
    let ladder = rates();
    let mut rule = rule(AbrOptions::default());
    for _ in 0..8 {
        let decision = rule.decide(&View { current: 2, ..loaded(&ladder, 5) });
        assert_eq!(decision, Decision::now(2, "no rule asks for a change"));
    }
    rule.controller.switches.push(3, 2);
    assert_eq!(rule.controller.switches.request(4), None, "one decision is in it");
}

#[test]
fn the_lowest_request_wins_within_the_limit() {
    // 10 Mbit/s and a little: the buffer rule allows 0.7 * 10 * 0.2 = 1.4 Mbit/s with 0.2 s.
    let ladder = rates();
    let mut rule = fast(AbrOptions::default());
    let at = View { buffer: Duration::from_millis(200), ..loaded(&ladder, 0) };
    let decision = rule.decide(&at);
    assert_eq!((decision.representation, decision.reason), (2, "InsufficientBufferRule"));
    assert_eq!(rule.votes().iter().map(|v| v.representation).collect::<Vec<_>>(), [3, 2]);
    assert_eq!(rule.decide(&View { top: 1, ..at }).representation, 1);
}

#[test]
fn the_first_two_media_segments_are_not_limited_by_the_buffer_nor_those_after_a_seek() {
    let ladder = rates();
    let mut rule = rule(AbrOptions::default());
    let download = timed(0, 0, 1_000, 1_250_000);
    let at = View { buffer: Duration::from_millis(200), ..loaded(&ladder, 0) };
    let mut decide = |event: Event<'_>| {
        rule.observe(&at, &event);
        rule.decide(&at).representation
    };
    assert_eq!(decide(Event::SegmentFinished(&download)), 3);
    assert_eq!(decide(Event::SegmentFinished(&download)), 2);
    assert_eq!(decide(Event::Seeked), 3);
}

#[test]
fn bola_decides_from_twelve_seconds_on_whatever_the_stable_buffer() {
    let ladder = rates();
    let mut rule = fast(AbrOptions { stable_buffer: Some(Duration::from_secs(30)), ..AbrOptions::default() });
    let at = loaded(&ladder, 12);
    rule.observe(&at, &Event::BufferMeasured);
    rule.decide(&at);
    assert_eq!(rule.votes()[0].rule, "BolaRule");
}

#[test]
fn after_an_abandoned_request_it_only_goes_down_without_the_throughput() {
    let ladder = rates();
    let mut rule = fast(AbrOptions::default());
    let at = View { current: 3, ..loaded(&ladder, 12) };
    assert_eq!(abandon(&mut rule, &at).map(|a| a.representation), Some(1));
    let later = |ms, buffer_state| View { now: at_ms(ms), current: 1, buffer_state: Some(buffer_state), ..at };
    let decision = rule.decide(&later(10_599, BufferState::Loaded));
    assert_eq!((decision.representation, decision.reason), (1, "only downwards after an abandoned request"));
    assert!(rule.votes().iter().all(|v| v.rule != "ThroughputRule"));
    let held = View { current: 3, ..later(10_599, BufferState::Loaded) };
    assert_eq!(rule.decide(&held).reason, "InsufficientBufferRule", "no change is no change upwards");
    assert_eq!(rule.decide(&later(10_599, BufferState::Empty)).representation, 0);
    assert_eq!(rule.decide(&later(10_600, BufferState::Loaded)).representation, 3);
}

#[test]
fn frequent_drops_hold_it_down() {
    let ladder = rates();
    let mut rule = fast(AbrOptions::default());
    (0..7).for_each(|_| rule.controller.switches.push(3, 3));
    rule.controller.switches.push(3, 2);
    let decision = rule.decide(&View { current: 2, ..loaded(&ladder, 60) });
    assert_eq!((decision.representation, decision.reason), (2, "SwitchHistoryRule"));
}

#[test]
fn an_abandoned_request_clears_the_switch_history() {
    let ladder = rates();
    let mut rule = fast(AbrOptions::default());
    (0..8).for_each(|_| rule.controller.switches.push(1, 0));
    assert!(abandon(&mut rule, &View { current: 3, ..loaded(&ladder, 12) }).is_some());
    (0..7).for_each(|_| rule.controller.switches.push(1, 0));
    assert_eq!(rule.controller.switches.request(4), None);
}

#[test]
fn an_aborted_request_is_measured_if_some_of_it_was_reported() {
    let ladder = rates();
    let first_progress = Some(Mark { at: at_ms(100), bytes: 1_000 });
    let aborted =
        Download { first_progress, last_progress: Mark { at: at_ms(600), bytes: 26_000 }, ..timed(0, 0, 700, 0) };
    let mut rule = rule(AbrOptions::default());
    rule.observe(&loaded(&ladder, 5), &Event::SegmentAborted(&Download { first_progress: None, ..aborted }));
    assert_eq!(rule.ewma.average(), None);
    rule.observe(&loaded(&ladder, 5), &Event::SegmentAborted(&aborted));
    assert_eq!(rule.ewma.average(), Some(400.0), "200 kbit in 500 ms");
}

#[test]
fn dropped_pictures_count_only_if_asked_for() {
    let ladder = rates();
    let pictures = Pictures { total: 400, dropped: 100 };
    for (on, chosen) in [(None, 3), (Some(false), 3), (Some(true), 1)] {
        let mut rule = fast(AbrOptions { dropped_frames: on, ..AbrOptions::default() });
        rule.observe(&loaded(&ladder, 20), &Event::Shown { from: 3, to: 2 });
        assert_eq!(rule.decide(&View { pictures, ..loaded(&ladder, 60) }).representation, chosen, "{on:?}");
    }
}

#[test]
fn timing_by_progress_leaves_the_first_report_out() {
    let ladder = rates();
    let download = Download {
        first_progress: Some(Mark { at: at_ms(500), bytes: 100_000 }),
        last_progress: Mark { at: at_ms(1_000), bytes: 150_000 },
        ..timed(0, 0, 1_000, 0)
    };
    for (by_progress, kbps) in [(true, 800.0), (false, 1_202.0)] {
        let mut rule = rule(AbrOptions { progress_timing: Some(by_progress), ..AbrOptions::default() });
        rule.observe(&loaded(&ladder, 5), &Event::SegmentFinished(&download));
        assert_eq!(rule.ewma.average(), Some(kbps));
    }
}

#[test]
fn bola_forgets_its_placeholder_when_the_buffer_is_empty() {
    let ladder = rates();
    let mut rule = fast(AbrOptions { strategy: Some(Strategy::Bola), ..AbrOptions::default() });
    let download = timed(0, 0, 1_000, 1_250_000);
    rule.decide(&loaded(&ladder, 0));
    rule.observe(&loaded(&ladder, 0), &Event::SegmentFinished(&download));
    assert_eq!(rule.decide(&loaded(&ladder, 2)).representation, 3);
    assert_eq!(rule.decide(&View { current: 3, ..loaded(&ladder, 2) }).representation, 3);
    rule.observe(&loaded(&ladder, 2), &Event::BufferState(BufferState::Empty));
    assert_eq!(rule.decide(&View { current: 3, ..loaded(&ladder, 2) }).representation, 0);
}

#[test]
fn what_does_not_concern_it_changes_nothing() {
    let ladder = rates();
    let at = loaded(&ladder, 12);
    let (mut informed, mut uninformed) = (fast(AbrOptions::default()), fast(AbrOptions::default()));
    informed.observe(&at, &Event::InitFinished);
    informed.observe(&at, &Event::BufferState(BufferState::Loaded));
    assert_eq!(informed.decide(&at), uninformed.decide(&at));
}

#[test]
fn a_request_that_falls_back_to_what_is_current_changes_nothing_for_bola() {
    let ladder = rates();
    let mut rule = fast(AbrOptions { strategy: Some(Strategy::Bola), ..AbrOptions::default() });
    rule.decide(&View { current: 3, ..loaded(&ladder, 5) });
    let before = format!("{:?}", rule.controller.bola);
    // The player is at 600 kbit/s already while the request at 2400 is under way.
    let abandoned = abandon(&mut rule, &View { current: 1, ..loaded(&ladder, 5) });
    assert_eq!(abandoned.map(|a| a.representation), Some(1));
    assert_eq!(format!("{:?}", rule.controller.bola), before);
}

#[test]
fn bola_takes_over_at_twelve_seconds() {
    let ladder = rates();
    let mut rule = rule(AbrOptions::default());
    for (ms, bola) in [(9_000, false), (11_999, false), (12_000, true)] {
        let measured = View { buffer: Duration::from_millis(ms), ..view(&ladder) };
        rule.observe(&measured, &Event::BufferMeasured);
        assert_eq!(rule.controller.dynamic.bola(), bola, "{ms} ms");
    }
}
