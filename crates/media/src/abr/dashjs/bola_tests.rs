//! BOLA's thresholds and its placeholder, by hand. Rates of 1, e and e^2 Mbit/s have utilities 1, 2 and 3 and T =
//! max(12, 16) = 16 s: gp = 2 / 0.6 = 3.333, Vp = 3. Highest levels Vp*(u + gp): 13, 16, 19.
//! Lowest levels: 1: 3*(3.333 + (2.718*1 - 1*2)/1.718) = 11.254;
//! 2: against 1 3*(3.333 + (7.389*2 - 2.718*3)/4.671) = 14.254, against 0 3*(3.333 + (7.389 - 3)/6.389) = 12.061.

use super::super::super::testing::{at_ms, ladder, timed, view};
use super::super::super::view::Ladder;
use super::*;

fn rates() -> Ladder {
    ladder(&[1_000_000, 2_718_282, 7_389_056])
}

fn allows(representation: usize) -> Sustainable {
    Sustainable { known: true, representation }
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() < 2e-3, "{a} is not {b}");
}

fn level(view: View<'_>, s: f64) -> View<'_> {
    View { buffer: Duration::from_secs_f64(s), ..view }
}

/// A rule in its steady state, without a placeholder, at `at_s`.
fn steady(generation: Generation, ladder: &Ladder) -> Bola {
    let mut bola = Bola::new(generation, Duration::from_secs(12));
    bola.request(&view(ladder), allows(0));
    bola.finished(&view(ladder), &timed(0, 0, 0, 1_000));
    bola.request(&level(view(ladder), 1.0), allows(0));
    let state = bola.state.as_mut().unwrap();
    assert!(!state.starting_up);
    state.placeholder = 0.0;
    state.last_finished_ms = None;
    bola
}

fn state(bola: &Bola) -> &State {
    bola.state.as_ref().unwrap()
}

#[test]
fn parameters_follow_from_the_ladder() {
    let ladder = rates();
    let bola = steady(Generation::V2, &ladder);
    let s = state(&bola);
    near(s.gp, 10.0 / 3.0);
    near(s.vp, 3.0);
    for (i, (lowest, highest)) in [(0.0, 13.0), (11.254, 16.0), (14.254, 19.0)].into_iter().enumerate() {
        near(s.lowest_level(i), lowest);
        near(s.highest_level(i), highest);
    }
}

#[test]
fn a_longer_stable_buffer_stretches_the_thresholds() {
    // T = 32: gp = 2 / 2.2, Vp = 11: highest level for the top 11 * 3.909 = 43.
    let ladder = rates();
    let mut bola = Bola::new(Generation::V2, Duration::from_secs(32));
    bola.request(&view(&ladder), allows(0));
    near(state(&bola).highest_level(2), 43.0);
}

#[test]
fn the_score_of_2_x_lies_vp_higher_than_that_of_5() {
    // 5.x: (Vp*(0 + gp) - Q)/1 = (Vp*(1 + gp) - Q)/2.718 at Q = (2.718*10 - 13)/1.718 = 8.254; of 1 and 2 at 11.254.
    // 2.x: 11.254 and 14.254.
    let ladder = rates();
    for (generation, first, second) in [(Generation::V5, 8.254, 11.254), (Generation::V2, 11.254, 14.254)] {
        let chosen =
            |s| steady(generation, &ladder).request(&level(view(&ladder), s), allows(2)).unwrap().0.representation;
        assert_eq!((chosen(first - 0.01), chosen(first + 0.01)), (0, 1), "{generation:?}");
        assert_eq!((chosen(second - 0.01), chosen(second + 0.01)), (1, 2), "{generation:?}");
    }
}

#[test]
fn starting_up_it_follows_the_throughput_until_a_media_segment_is_buffered() {
    let ladder = rates();
    let mut bola = Bola::new(Generation::V2, Duration::from_secs(12));
    let ask = |bola: &mut Bola, s| bola.request(&level(view(&ladder), s), allows(1)).map(|(r, _)| r.representation);
    assert_eq!(ask(&mut bola, 0.0), Some(1));
    near(state(&bola).placeholder, 11.254);
    assert_eq!(ask(&mut bola, 5.0), Some(1), "no media segment yet, so its duration is unknown");
    bola.finished(&view(&ladder), &timed(0, 0, 100, 1_000));
    assert_eq!(ask(&mut bola, 0.999), Some(1));
    assert!(state(&bola).starting_up);
    assert_eq!(ask(&mut bola, 1.0), Some(1));
    assert!(!state(&bola).starting_up);
    near(state(&bola).placeholder, 10.254);
}

#[test]
fn without_a_throughput_2_x_never_makes_a_request_and_5_does_after_the_startup() {
    let ladder = rates();
    let unknown = Sustainable { known: false, representation: 0 };
    for (generation, speaks) in [(Generation::V2, false), (Generation::V5, true)] {
        assert!(Bola::new(generation, Duration::from_secs(12)).request(&view(&ladder), unknown).is_none());
        assert_eq!(steady(generation, &ladder).request(&view(&ladder), unknown).is_some(), speaks);
    }
}

#[test]
fn pauses_count_as_if_they_had_been_buffered() {
    let ladder = rates();
    let mut bola = steady(Generation::V2, &ladder);
    bola.finished(&level(view(&ladder), 5.0), &Download { index: 1, ..timed(900, 950, 1_000, 1_000) });
    bola.request(&View { now: at_ms(3_500), ..level(view(&ladder), 5.0) }, allows(2));
    near(state(&bola).placeholder, 2.5);
    // No download since: from call to call.
    bola.request(&View { now: at_ms(4_000), ..level(view(&ladder), 5.0) }, allows(2));
    near(state(&bola).placeholder, 3.0);
}

#[test]
fn above_the_last_choice_it_goes_no_higher_than_the_throughput() {
    let ladder = rates();
    // Choosing 2 by its buffer, from 0 and from 1, with a throughput for 0, 1, 2.
    for (last, allowed, chosen) in [(0, 0, 0), (0, 1, 1), (0, 2, 2), (1, 0, 1), (2, 0, 2)] {
        let mut bola = steady(Generation::V2, &ladder);
        bola.state.as_mut().unwrap().last = last;
        let (request, _) = bola.request(&level(view(&ladder), 15.0), allows(allowed)).unwrap();
        assert_eq!(request.representation, chosen, "from {last} with {allowed}");
    }
}

#[test]
fn too_full_a_buffer_is_first_imagined_less_and_then_waited_out() {
    let ladder = rates();
    // Held at 0 (highest level 13) with 15 s: 2 s too much.
    let ask = |placeholder: f64, s, top| {
        let mut bola = steady(Generation::V2, &ladder);
        bola.state.as_mut().unwrap().placeholder = placeholder;
        let (request, delay) = bola.request(&View { top, ..level(view(&ladder), s) }, allows(0)).unwrap();
        (request.representation, delay, state(&bola).placeholder)
    };
    let (representation, delay, placeholder) = ask(0.0, 15.0, 2);
    assert_eq!((representation, placeholder), (0, 0.0));
    near(delay, 2.0);
    let (_, delay, placeholder) = ask(1.5, 15.0, 2);
    assert_eq!(placeholder, 0.0);
    near(delay, 2.0);
    let (_, delay, placeholder) = ask(3.0, 12.0, 2);
    assert_eq!(delay, 0.0);
    near(placeholder, 1.0);
    assert_eq!(ask(0.0, 15.0, 0).1, 0.0, "at the highest that is allowed the player's own target decides");
}

#[test]
fn a_download_shortens_the_placeholder() {
    let ladder = rates();
    let finished = |placeholder: f64, representation| {
        let mut bola = steady(Generation::V2, &ladder);
        bola.state.as_mut().unwrap().placeholder = placeholder;
        let download = Download { index: 1, representation, ..timed(500, 600, 2_500, 1_000) };
        bola.finished(&level(view(&ladder), 5.0), &download);
        state(&bola).placeholder
    };
    near(finished(4.0, 1), 3.96);
    near(finished(20.0, 1), 9.0); // 16 - (5 + 2)
    near(finished(20.0, 0), 6.0);
}

#[test]
fn a_replaced_media_segment_counts_as_buffered() {
    let ladder = rates();
    let mut bola = steady(Generation::V2, &ladder);
    bola.finished(&view(&ladder), &Download { index: 5, ..timed(0, 0, 0, 1) });
    near(state(&bola).placeholder, 0.0);
    bola.finished(&view(&ladder), &Download { index: 5, ..timed(0, 0, 0, 1) });
    near(state(&bola).placeholder, 1.0);
    bola.finished(&view(&ladder), &Download { index: 6, ..timed(0, 0, 0, 1) });
    near(state(&bola).placeholder, 0.99);
}

#[test]
fn an_empty_buffer_ends_the_illusion_but_not_while_starting_up() {
    let ladder = rates();
    let mut bola = steady(Generation::V2, &ladder);
    bola.state.as_mut().unwrap().placeholder = 5.0;
    bola.emptied();
    assert_eq!(state(&bola).placeholder, 0.0);
    let mut bola = Bola::new(Generation::V2, Duration::from_secs(12));
    bola.emptied();
    bola.request(&view(&ladder), allows(1));
    bola.emptied();
    near(state(&bola).placeholder, 11.254);
}

#[test]
fn a_seek_starts_up_again() {
    let ladder = rates();
    let mut bola = steady(Generation::V2, &ladder);
    bola.seeked();
    assert!(state(&bola).starting_up && state(&bola).placeholder == 0.0);
    assert_eq!(bola.request(&level(view(&ladder), 15.0), allows(0)).unwrap().0.representation, 0);
    assert!(state(&bola).starting_up, "the duration is unknown again");
}

#[test]
fn an_abandoned_request_shortens_the_placeholder() {
    let ladder = rates();
    let after = |generation, changed: Option<usize>, s| {
        let mut bola = steady(generation, &ladder);
        bola.state.as_mut().unwrap().placeholder = 20.0;
        if let Some(representation) = changed {
            bola.changed(representation);
        }
        bola.abandoned(&level(view(&ladder), s));
        state(&bola).placeholder
    };
    for generation in [Generation::V2, Generation::V5] {
        near(after(generation, Some(2), 4.0), 10.254);
        near(after(generation, Some(0), 4.0), 6.0);
        near(after(generation, None, 4.0), 6.0);
        near(after(generation, Some(1), 12.0), 0.0);
    }
}

#[test]
fn only_five_takes_a_change_for_its_last_choice() {
    let ladder = rates();
    for (generation, last) in [(Generation::V2, 0), (Generation::V5, 2)] {
        let mut bola = steady(generation, &ladder);
        bola.changed(2);
        assert_eq!(state(&bola).last, last);
    }
}

#[test]
fn only_five_leaves_out_what_the_limit_forbids() {
    let ladder = rates();
    for (generation, visible) in [(Generation::V2, 3), (Generation::V5, 2)] {
        let mut bola = Bola::new(generation, Duration::from_secs(12));
        bola.request(&View { top: 1, ..view(&ladder) }, allows(0));
        assert_eq!(state(&bola).bitrates.len(), visible);
    }
    // And restarts when the limit changes; events in between have no effect.
    let mut bola = Bola::new(Generation::V5, Duration::from_secs(12));
    bola.request(&View { top: 1, ..view(&ladder) }, allows(1));
    bola.finished(&view(&ladder), &Download { representation: 2, ..timed(0, 0, 0, 1) });
    bola.request(&view(&ladder), allows(0));
    assert_eq!((state(&bola).bitrates.len(), state(&bola).most_advanced), (3, None));
}

#[test]
fn with_one_representation_there_is_nothing_to_decide() {
    let ladder = ladder(&[1_000_000]);
    let mut bola = Bola::new(Generation::V2, Duration::from_secs(12));
    assert!(bola.request(&view(&ladder), allows(0)).is_none());
    bola.finished(&view(&ladder), &timed(0, 0, 0, 1));
    bola.noted_abort(&timed(0, 0, 0, 1));
    bola.changed(0);
    bola.abandoned(&view(&ladder));
    bola.emptied();
    bola.seeked();
    assert!(bola.state.is_none());
}
