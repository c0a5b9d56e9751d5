use super::super::super::testing::{at_ms, ladder, timed, view};
use super::super::super::view::{BufferState, Ladder, Mark, Pictures};
use super::super::super::{AbrOptions, Strategy};
use super::*;
use anabranch_units::{Duration, Instant};

fn rates() -> Ladder {
    ladder(&[300_000, 600_000, 1_200_000, 2_400_000])
}

fn loaded(ladder: &Ladder, s: u64) -> View<'_> {
    View { buffer: Duration::from_secs(s), buffer_state: Some(BufferState::Loaded), ..view(ladder) }
}

fn rule(options: AbrOptions) -> DashJs29 {
    DashJs29::new(&options).unwrap()
}

/// A rule that measured 10 Mbit/s, so that only what a test is about limits it.
fn fast() -> DashJs29 {
    let mut rule = rule(AbrOptions::default());
    rule.history.push(&timed(0, 0, 1_000, 1_250_000));
    rule
}

fn slow_progress() -> Progress {
    Progress {
        index: 9,
        representation: 3,
        requested_at: Instant::ZERO,
        first_progress: Some(Mark { at: Instant::ZERO, bytes: 0 }),
        bytes: 0,
        total: 300_000,
    }
}

/// Makes the rule abandon a request at 2400 kbit/s at 600 ms in favour of the highest within 800 kbit/s: 600.
fn abandon(rule: &mut DashJs29, view: &View<'_>) -> Option<Abandon> {
    (1..=6).find_map(|n| {
        let progress = Progress { bytes: n * 10_000, ..slow_progress() };
        rule.on_progress(&View { now: at_ms(n * 100), ..*view }, &progress)
    })
}

#[test]
fn before_the_buffer_is_loaded_nothing_changes() {
    let ladder = rates();
    let start = View { buffer_state: None, current: 1, ..loaded(&ladder, 5) };
    assert_eq!(fast().decide(&start), Decision::now(1, "no rule asks for a change"));
    assert_eq!(fast().decide(&View { ladder: &ladder, ..loaded(&ladder, 60) }).representation, 3);
}

#[test]
fn the_lowest_request_wins_within_the_limit() {
    // The throughput allows the top; half of it before 1 s of buffer is gone: 5 Mbit/s * 0.5 too. Of 0.4 s: 2 Mbit/s.
    let ladder = rates();
    let mut rule = fast();
    let at = View { buffer: Duration::from_millis(400), ..loaded(&ladder, 0) };
    let decision = rule.decide(&at);
    assert_eq!((decision.representation, decision.reason), (2, "InsufficientBufferRule"));
    assert_eq!(rule.votes().iter().map(|v| v.representation).collect::<Vec<_>>(), [3, 2]);
    assert_eq!(rule.decide(&View { top: 1, ..at }).representation, 1);
}

#[test]
fn an_empty_buffer_asks_for_the_lowest_and_not_after_a_seek() {
    let ladder = rates();
    let mut rule = fast();
    rule.decide(&loaded(&ladder, 12));
    let empty = View { buffer_state: Some(BufferState::Empty), current: 2, ..loaded(&ladder, 0) };
    assert_eq!(rule.decide(&empty).representation, 0);
    rule.observe(&empty, &Event::Seeked);
    assert_eq!(rule.decide(&empty).representation, 2);
}

#[test]
fn bola_decides_above_the_stable_buffer() {
    let ladder = rates();
    let mut rule = fast();
    let at = loaded(&ladder, 13);
    rule.observe(&at, &Event::BufferMeasured);
    rule.decide(&at);
    assert_eq!(rule.votes()[0].rule, "BolaRule");
    let at = loaded(&ladder, 6);
    rule.observe(&at, &Event::BufferMeasured);
    rule.decide(&at);
    assert_eq!(rule.votes()[0].rule, "ThroughputRule");
}

#[test]
fn frequent_drops_hold_it_down() {
    let ladder = rates();
    let mut rule = fast();
    (0..5).for_each(|_| rule.controller.switches.push(3, 3));
    rule.controller.switches.push(3, 2);
    let decision = rule.decide(&View { current: 2, ..loaded(&ladder, 60) });
    assert_eq!((decision.representation, decision.reason), (2, "SwitchHistoryRule"));
    assert_eq!(
        rule.controller.switches.request(4).map(|r| r.representation),
        Some(2),
        "the decision itself was entered"
    );
}

#[test]
fn dropped_pictures_hold_it_down() {
    let ladder = rates();
    let mut rule = fast();
    rule.observe(&loaded(&ladder, 20), &Event::Shown { from: 2, to: 3 });
    let pictures = Pictures { total: 400, dropped: 100 };
    assert_eq!(rule.decide(&View { pictures, ..loaded(&ladder, 60) }).representation, 1);
}

#[test]
fn after_an_abandoned_request_it_only_goes_up_without_the_throughput() {
    let ladder = rates();
    let mut rule = fast();
    let at = View { current: 3, ..loaded(&ladder, 12) };
    rule.decide(&at);
    assert_eq!(abandon(&mut rule, &at).map(|a| a.representation), Some(1));
    let later = |ms, buffer_state| View { now: at_ms(ms), current: 1, buffer_state: Some(buffer_state), ..at };
    let decision = rule.decide(&later(10_599, BufferState::Empty));
    assert_eq!((decision.representation, decision.reason), (1, "only upwards after an abandoned request"));
    let held = View { current: 0, ..later(10_599, BufferState::Empty) };
    assert_eq!(rule.decide(&held).reason, "InsufficientBufferRule", "no change is no change downwards");
    assert_eq!(rule.decide(&later(10_599, BufferState::Loaded)).representation, 3, "the buffer allows it");
    assert!(rule.votes().iter().all(|v| v.rule != "ThroughputRule"));
    assert_eq!(rule.decide(&later(10_600, BufferState::Empty)).representation, 0);
}

#[test]
fn an_abandoned_request_begins_the_switch_history_anew_with_a_drop() {
    let ladder = rates();
    let mut rule = fast();
    (0..8).for_each(|_| rule.controller.switches.push(1, 0));
    assert!(abandon(&mut rule, &View { current: 3, ..loaded(&ladder, 12) }).is_some());
    (0..4).for_each(|_| rule.controller.switches.push(1, 1));
    assert_eq!(rule.controller.switches.request(4), None, "five entries");
    rule.controller.switches.push(1, 1);
    assert_eq!(rule.controller.switches.request(4).map(|r| r.representation), Some(2));
}

#[test]
fn an_abandonment_above_the_limit_fetches_the_same_again() {
    let ladder = rates();
    let abandoned = abandon(&mut fast(), &View { current: 3, top: 0, ..loaded(&ladder, 12) });
    assert_eq!(abandoned.map(|a| a.representation), Some(3));
    let at_the_limit = abandon(&mut fast(), &View { current: 3, top: 1, ..loaded(&ladder, 12) });
    assert_eq!(at_the_limit.map(|a| a.representation), Some(1));
}

#[test]
fn bola_forgets_its_placeholder_when_the_buffer_is_empty() {
    let ladder = rates();
    let mut rule = rule(AbrOptions { strategy: Some(Strategy::Bola), ..AbrOptions::default() });
    let download = timed(0, 0, 1_000, 1_250_000);
    rule.observe(&loaded(&ladder, 0), &Event::SegmentFinished(&download));
    rule.observe(&loaded(&ladder, 0), &Event::BufferMeasured);
    rule.decide(&loaded(&ladder, 0));
    rule.observe(&loaded(&ladder, 0), &Event::SegmentFinished(&download));
    // From here on steady, with a placeholder that makes it choose the top; without, 2 s are worth the lowest.
    assert_eq!(rule.decide(&loaded(&ladder, 2)).representation, 3);
    assert_eq!(rule.decide(&View { current: 3, ..loaded(&ladder, 2) }).representation, 3);
    rule.observe(&loaded(&ladder, 2), &Event::BufferState(BufferState::Empty));
    assert_eq!(rule.decide(&View { current: 3, ..loaded(&ladder, 2) }).representation, 0);
}

#[test]
fn what_does_not_concern_it_changes_nothing() {
    let ladder = rates();
    let at = loaded(&ladder, 12);
    let (mut informed, mut uninformed) = (fast(), fast());
    let download = timed(0, 0, 1_000, 1);
    for event in [Event::InitFinished, Event::SegmentAborted(&download), Event::BufferState(BufferState::Loaded)] {
        informed.observe(&at, &event);
    }
    assert_eq!(informed.decide(&at), uninformed.decide(&at));
}

#[test]
fn a_stable_buffer_of_nothing_is_refused() {
    let options = AbrOptions { stable_buffer: Some(Duration::ZERO), ..AbrOptions::default() };
    assert!(DashJs29::new(&options).is_err());
}
