//! Behaviour of each player over time.

use super::*;
use anabranch_media::GiveUp;
use anabranch_media::content::find_ladder;

const INIT: u64 = 672;
const MANIFEST: u64 = 9_321;
const RESPONSE: u64 = 265;
const TARGET_V2: Duration = Duration::from_secs(12);
const TARGET_V5: Duration = Duration::from_secs(18);
const AT_TOP: Duration = Duration::from_secs(30);

fn none() -> DashOptions {
    DashOptions::default()
}

/// Without BOLA, which asks for pauses of its own. 2.2 has none.
fn by_throughput(name: &str) -> DashOptions {
    let mut options = none();
    options.rule.strategy = (name != "dash.js-2.2").then_some(anabranch_media::abr::Strategy::Throughput);
    options
}

/// Milliseconds of `bytes` at 1 Mbit/s.
fn at_1_mbps(bytes: u64) -> f64 {
    bytes as f64 * 8.0 / 1_000.0
}

fn ms(at: Instant) -> f64 {
    at.as_secs_f64() * 1_000.0
}

#[test]
fn the_first_picture_comes_after_manifest_initialisation_and_one_media_segment() {
    let video = find_ladder("bbb-1s").unwrap().video(None).unwrap();
    let session = run("dash.js-2.9", &video, none(), &Downlink::constant(1_000_000, 30), 5_000);
    // 808 057 bit/s is the highest within 1000 kbit/s: rank 10, as in the MPTCP+ paper.
    assert_eq!(session.requested()[0].1, (0, 10));
    let bytes = (MANIFEST + RESPONSE) + (INIT + RESPONSE) + (101_007 + RESPONSE);
    let expected = 3.0 * 60.0 + at_1_mbps(bytes);
    let started = session.first(&PlayerEvent::PlaybackStarted).unwrap();
    assert!((ms(started) - expected).abs() < 0.01, "{} instead of {expected}", ms(started));
    let kinds: Vec<_> =
        session.events.iter().filter(|(_, e)| matches!(e, PlayerEvent::Requested { .. })).take(3).collect();
    assert!((ms(kinds[1].0) - (60.0 + at_1_mbps(MANIFEST + RESPONSE))).abs() < 0.01);
    assert!((ms(kinds[2].0) - (120.0 + at_1_mbps(MANIFEST + INIT + 2 * RESPONSE))).abs() < 0.01);
    assert_eq!(session.viewer().startup_s.map(|s| (s * 1e3).round()), Some(expected.round()));
}

#[test]
fn more_may_be_wanted_before_the_first_picture() {
    let video = video(&[400], 2, 20);
    for name in DASH_PLAYERS {
        let options = DashOptions { startup: Some(Duration::from_secs(5)), ..none() };
        let session = run(name, &video, options, &Downlink::constant(2_000_000, 10), 60_000);
        let started = session.first(&PlayerEvent::PlaybackStarted).unwrap();
        let before = session.appended().iter().filter(|(at, _)| *at <= started).count();
        assert_eq!(before, 3, "{name}: three segments of 2 s are the first to reach 5 s");
        let never = DashOptions { startup: Some(Duration::from_secs(900)), ..none() };
        let session = run(name, &video, never, &Downlink::constant(2_000_000, 10), 100_000);
        assert!(session.finished, "{name}: a threshold above the capacity ends with the capacity, or the video");
    }
}

#[test]
fn requests_pause_at_the_buffer_target() {
    // The upper representation is out of reach.
    let two = video(&[400, 900_000], 1, 200);
    let highest = |name: &str| {
        let session = run(name, &two, by_throughput(name), &Downlink::constant(5_000_000, 10), 60_000);
        assert!(session.requested().iter().all(|(_, (_, r))| *r == 0), "{name}");
        session.appended().iter().map(|(_, (_, _, level))| *level).max().unwrap()
    };
    let segment = Duration::from_secs(1);
    for name in ["dash.js-2.2", "dash.js-2.9"] {
        let level = highest(name);
        assert!(level > TARGET_V2 && level < TARGET_V2 + segment, "{name}: a request below 12 s, {level}");
    }
    let level = highest("dash.js-5");
    assert!(level > TARGET_V5 - segment && level < TARGET_V5, "the segment must fit below 18 s: {level}");
}

#[test]
fn at_the_top_more_is_buffered_and_even_more_of_long_content() {
    let level = |name: &str, segments, dash: DashOptions| {
        let session = run(name, &video(&[400], 2, segments), dash, &Downlink::constant(5_000_000, 10), 150_000);
        session.appended().iter().map(|(_, (_, _, level))| level.as_secs_f64()).fold(0.0, f64::max)
    };
    for name in ["dash.js-2.2", "dash.js-2.9"] {
        assert!((30.0..32.0).contains(&level(name, 299, none())), "{name}: 598 s are no long content");
        assert!((60.0..62.0).contains(&level(name, 300, none())), "{name}: 600 s are");
    }
    assert!((28.0..30.0).contains(&level("dash.js-5", 299, none())));
    let given = DashOptions { buffer_at_top: Some(Duration::from_secs(20)), ..none() };
    assert!((20.0..22.0).contains(&level("dash.js-2.9", 299, given)));
}

#[test]
fn a_full_buffer_is_looked_at_every_half_second() {
    let two = video(&[400, 900_000], 1, 200);
    for name in ["dash.js-2.2", "dash.js-2.9", "dash.js-5"] {
        let session = run(name, &two, by_throughput(name), &Downlink::constant(5_000_000, 10), 60_000);
        let appended = session.appended();
        let late: Vec<_> = session.requested().into_iter().filter(|(at, _)| *at > at_ms(30_000)).collect();
        assert!(late.len() > 20);
        for (at, (index, _)) in late {
            let before = appended.iter().rfind(|(when, _)| *when <= at).unwrap().0;
            let pause = at.since(before).as_nanos();
            assert!(pause > 0 && pause % 500_000_000 == 0, "{name}, segment {index}: {}", at.since(before));
        }
    }
}

#[test]
fn the_plain_players_keep_within_their_capacity_and_use_it() {
    let one = video(&[400], 4, 150);
    for (name, capacity) in [("bba-0", 240.0), ("robust-mpc", 30.0), ("rate", 60.0), ("fixed", 60.0), ("bola", 25.0)] {
        let session = run(name, &one, none(), &Downlink::constant(5_000_000, 10), 590_000);
        let level = session.appended().iter().map(|(_, (_, _, l))| l.as_secs_f64()).fold(0.0, f64::max);
        assert!(level <= capacity && level > capacity - 4.1, "{name}: {level}");
        let small = DashOptions { buffer: Some(Duration::from_secs(12)), ..none() };
        let session = run(name, &one, small, &Downlink::constant(5_000_000, 10), 590_000);
        let level = session.appended().iter().map(|(_, (_, _, l))| l.as_secs_f64()).fold(0.0, f64::max);
        assert!(level <= 12.0 && level > 7.9, "{name}: {level}");
    }
}

#[test]
fn the_plain_players_ask_as_soon_as_the_next_segment_fits() {
    let one = video(&[400], 4, 100);
    for (name, capacity) in [("robust-mpc", 30.0), ("rate", 60.0), ("fixed", 60.0)] {
        let session = run(name, &one, none(), &Downlink::constant(5_000_000, 10), 300_000);
        let late: Vec<_> = session.requested().into_iter().filter(|(at, _)| *at > at_ms(100_000)).collect();
        assert!(late.len() > 20);
        for (at, (index, _)) in late {
            let (when, (_, _, level)) = *session.appended().iter().rfind(|(when, _)| *when <= at).unwrap();
            let level = level.as_secs_f64() - at.since(when).as_secs_f64();
            assert!((level + 4.0 - capacity).abs() < 1e-6, "{name}, segment {index}: {level}");
        }
    }
}

#[test]
fn a_target_at_the_top_below_the_usual_one_does_not_hold_a_stall_for_ever() {
    let options =
        DashOptions { buffer: Some(Duration::from_secs(20)), buffer_at_top: Some(Duration::from_secs(5)), ..none() };
    let session = run("dash.js-2.9", &video(&[400], 2, 60), options, &outage(), 400_000);
    assert!(session.finished && !session.stalls().is_empty());
}

/// Two megabits, then nothing from 20 s to 70 s, then two megabits.
fn outage() -> Downlink {
    Downlink::constant(2_000_000, 10).then(20_000, 0).then(70_000, 2_000_000)
}

#[test]
fn a_stall_begins_and_ends_where_each_release_has_its_thresholds() {
    // One representation of 400 kbit/s, 2 s: 30 s are buffered when the outage begins, 60 s for the plain player.
    let one = video(&[400], 2, 200);
    for (name, resume_s) in [("dash.js-2.2", 0.5), ("dash.js-2.9", 12.0), ("dash.js-5", 0.0), ("robust-mpc", 0.0)] {
        let session = run(name, &one, none(), &outage(), 150_000);
        let stalls = session.stalls();
        assert_eq!(stalls.iter().map(|s| s.1).collect::<Vec<_>>(), [true, false], "{name}");
        let (began, ended) = (stalls[0].0, stalls[1].0);
        let played_before = began.since(session.first(&PlayerEvent::PlaybackStarted).unwrap());
        let buffered_before = 2 * session.appended().iter().filter(|(at, _)| *at <= began).count() as u64;
        let left = Duration::from_secs(buffered_before) - played_before;
        let stopped_early = name.starts_with("dash.js-2");
        if stopped_early {
            // The level is checked every 250 ms, and stops the video below 0.5 s.
            assert!((0.25..0.5).contains(&left.as_secs_f64()), "{name}: {left}");
        } else {
            assert!(left.is_zero(), "{name}: {left}");
        }
        let (_, (_, _, level)) = *session.appended().iter().rfind(|(at, _)| *at <= ended).unwrap();
        assert!(ended > at_ms(70_000));
        assert!(level.as_secs_f64() >= resume_s && level.as_secs_f64() < resume_s + 2.5, "{name}: {level}");
    }
}

#[test]
fn more_may_be_wanted_before_a_stall_ends() {
    let one = video(&[400], 2, 200);
    let options = DashOptions { resume: Some(Duration::from_secs(7)), ..none() };
    for name in ["dash.js-2.2", "dash.js-5", "robust-mpc"] {
        let session = run(name, &one, options, &outage(), 150_000);
        let ended = session.stalls()[1].0;
        let (_, (_, _, level)) = *session.appended().iter().rfind(|(at, _)| *at <= ended).unwrap();
        assert!((7.0..9.0).contains(&level.as_secs_f64()), "{name}: {level}");
    }
}

#[test]
fn the_picture_stands_still_while_it_is_stalled_and_no_time_is_lost() {
    let one = video(&[400], 2, 60);
    for name in DASH_PLAYERS {
        let session = run(name, &one, none(), &outage(), 400_000);
        assert!(session.finished, "{name}");
        let viewer = session.viewer();
        assert!((viewer.played_s - 120.0).abs() < 1e-6, "{name}: {}", viewer.played_s);
        let sum = viewer.startup_s.unwrap() + viewer.played_s + viewer.stall_s;
        assert!((sum - session.end.as_secs_f64()).abs() < 1e-6, "{name}");
    }
}

#[test]
fn releases_until_2_9_wait_for_a_loaded_buffer_before_they_switch() {
    let three = video(&[500, 900, 2_000], 1, 100);
    let first_switch = |name: &str| {
        let session = run(name, &three, none(), &Downlink::constant(4_000_000, 10), 90_000);
        let (at, _) = *session.requested().iter().find(|(_, (_, r))| *r != 1).unwrap();
        let level = session.appended().iter().rfind(|(when, _)| *when <= at).unwrap().1.2;
        (session.requested()[0].1.1, level.as_secs_f64())
    };
    let (initial, level) = first_switch("dash.js-2.9");
    assert_eq!(initial, 1, "900 is the highest within 1000 kbit/s");
    assert!(level >= 12.0, "{level}");
    let (_, level) = first_switch("dash.js-2.2");
    assert!(level < 4.0, "0.5 s are enough: {level}");
}

#[test]
fn two_two_holds_the_top_with_more_than_twenty_seconds() {
    // BufferOccupancyRule: level - target > 20 s, where the target that 2.2 states is zero.
    let two = video(&[400, 1_500], 2, 150);
    // 1.2 Mbit/s are too little for the top, but not so little that a request is abandoned.
    let session = run("dash.js-2.2", &two, none(), &Downlink::constant(8_000_000, 10).then(40_000, 1_200_000), 200_000);
    let slow: Vec<_> = session.requested().into_iter().filter(|(at, _)| *at > at_ms(55_000)).collect();
    let (first_low, _) = *slow.iter().find(|(_, (_, r))| *r == 0).unwrap();
    let level = |at: Instant| session.appended().iter().rfind(|(when, _)| *when <= at).unwrap().1.2.as_secs_f64();
    assert!((18.0..=20.0).contains(&level(first_low)), "{}", level(first_low));
    assert!(slow.iter().take_while(|(at, _)| *at < first_low).all(|(at, _)| level(*at) > 20.0));
    assert!(slow[0].1.1 == 1 && slow[0].0 < first_low);
}

#[test]
fn initialisation_segments_are_fetched_once_and_in_the_releases_order() {
    let two = video(&[500, 2_000], 2, 60);
    let swinging =
        Downlink::constant(4_000_000, 10).then(25_000, 400_000).then(60_000, 6_000_000).then(90_000, 300_000);
    for name in DASH_PLAYERS {
        let session = run(name, &two, none(), &swinging, 400_000);
        assert!(session.finished, "{name}");
        let mut used: Vec<u16> = session.appended().iter().map(|(_, (_, r, _))| *r).collect();
        used.sort_unstable();
        used.dedup();
        let mut inits: Vec<u16> = session.inits().iter().map(|(_, r)| *r).collect();
        inits.sort_unstable();
        let mut once = inits.clone();
        once.dedup();
        assert_eq!(inits, once, "{name}: each once");
        assert!(used.iter().all(|r| inits.contains(r)), "{name}: {used:?} of {inits:?}");
    }
    let order = |name| {
        let session = run(name, &two, none(), &Downlink::constant(6_000_000, 10), 100_000);
        let media = session.requested().iter().find(|(_, (_, r))| *r == 1).unwrap().0;
        let init = session.inits().iter().find(|(_, r)| *r == 1).unwrap().0;
        let appended = session.appended().iter().find(|(_, (_, r, _))| *r == 1).unwrap().0;
        assert!(init < appended);
        init < media
    };
    assert!(order("dash.js-2.9") && order("dash.js-5") && order("rate"));
    assert!(!order("dash.js-2.2"), "2.2 finds out when the media segment is there");
}

#[test]
fn rules_are_asked_when_the_release_asks_them() {
    let one = video(&[400], 2, 5);
    let order = |name: &str| {
        let session = run(name, &one, none(), &Downlink::constant(2_000_000, 10), 60_000);
        let kinds = session.pick(|event| match *event {
            PlayerEvent::RepresentationChosen { index: 0, .. } => Some("rule"),
            PlayerEvent::InitRequested { .. } => Some("init"),
            PlayerEvent::SegmentRequested { index: 0, .. } => Some("media"),
            _ => None,
        });
        kinds.into_iter().map(|(_, kind)| kind).collect::<Vec<_>>()
    };
    assert_eq!(order("dash.js-2.2"), ["init", "rule", "media"]);
    assert_eq!(order("dash.js-2.9"), ["rule", "init", "rule", "media"]);
    assert_eq!(order("dash.js-5"), ["rule", "init", "media"]);
    assert_eq!(order("rate"), ["rule", "init", "media"]);
}

#[test]
fn without_initialisation_and_manifest_the_first_request_is_for_media() {
    let bare = video(&[400], 2, 5).with_init_bytes(0).with_manifest_bytes(0);
    for name in DASH_PLAYERS {
        let session = run(name, &bare, none(), &Downlink::constant(2_000_000, 10), 60_000);
        assert!(session.finished && session.inits().is_empty());
        assert_eq!(session.requested()[0], (Instant::ZERO, (0, 0)), "{name}");
    }
}

#[test]
fn a_request_that_takes_too_long_is_given_up_and_made_again_lower() {
    let two = video(&[200, 2_000], 4, 40);
    // The third media segment is 190 ms old when the rate falls, and would take 22 s more.
    let link = Downlink::constant(8_000_000, 20).then(2_400, 300_000).then(60_000, 8_000_000);
    for name in ["dash.js-2.2", "dash.js-2.9", "dash.js-5"] {
        let mut arrived = Vec::new();
        for give_up in [GiveUp::Drain, GiveUp::Cancel] {
            let options = DashOptions { initial_representation: Some(1), give_up: Some(give_up), ..none() };
            let session = run(name, &two, options, &link, 300_000);
            let given_up = session.pick(|event| match *event {
                PlayerEvent::SegmentAbandoned { request, index, received, instead } => {
                    Some((request, index, received, instead))
                }
                _ => None,
            });
            let (at, (request, index, received, instead)) = *given_up.first().unwrap_or_else(|| panic!("{name}"));
            assert!(received > 0 && received < 1_000_000, "{name}");
            assert_eq!(instead, 0, "{name}");
            let again = *session.requested().iter().find(|(when, _)| *when >= at).unwrap();
            assert_eq!(again.1, (index, 0), "{name}: the same media segment, lower");
            // The abandoned bytes still arrive, before the others.
            let ends = session.pick(|event| match *event {
                PlayerEvent::ResponseComplete { request: number, bytes, .. } if number == request => Some(bytes),
                _ => None,
            });
            let [(ended, bytes)] = ends[..] else { panic!("{name}: {ends:?}") };
            let appended = session.appended().iter().find(|(_, (i, _, _))| *i == index).unwrap().0;
            assert!(ended > at && ended < appended, "{name}");
            assert!(session.finished, "{name}");
            arrived.push((bytes, received, ended.since(at)));
        }
        let [drained, cancelled] = arrived[..] else { unreachable!() };
        assert_eq!(drained.0, 1_000_000, "{name}: all of it");
        // One round trip at 300 kbit/s is 1500 bytes: two pieces, and the one that was leaving.
        assert!(cancelled.0 >= cancelled.1 && cancelled.0 <= cancelled.1 + 3_000, "{name}: {cancelled:?}");
        assert!(cancelled.2 < Duration::from_millis(200), "{name}: {cancelled:?}");
    }
}

#[test]
fn what_two_two_gives_up_is_fetched_again_however_much_is_buffered() {
    let two = video(&[200, 1_500], 2, 100);
    let session = run("dash.js-2.2", &two, none(), &Downlink::constant(8_000_000, 10).then(40_000, 100_000), 60_000);
    let given_up = session.pick(|event| match *event {
        PlayerEvent::SegmentAbandoned { index, .. } => Some(index),
        _ => None,
    });
    let (at, index) = given_up[0];
    let (when, (_, _, level)) = *session.appended().iter().rfind(|(when, _)| *when <= at).unwrap();
    assert!(level - at.since(when) > TARGET_V2, "more than the target of the representation that it falls to");
    assert!(session.requested().contains(&(at, (index, 0))), "in the same instant");
}

#[test]
fn dash_js_5_reports_its_buffer_with_each_request_for_media() {
    let two = video(&[500, 3_000], 2, 60);
    let link = Downlink::constant(2_000_000, 10);
    let exchanges = Exchanges::new();
    let mut asking = player("dash.js-5", &two, DashOptions { cmcd: Some(true), ..none() }, &exchanges);
    let events = play(asking.as_mut(), &exchanges, &link, at_ms(30_000));
    let session = Session { events, finished: false, end: at_ms(30_000) };
    let messages = (0..).map_while(|number| exchanges.at(number));
    let reports: Vec<_> = messages.filter(|exchange| exchange.media.is_some()).map(|e| e.cmcd.unwrap()).collect();
    let (requested, appended) = (session.requested(), session.appended());
    assert_eq!(reports.len(), requested.len());
    assert!(reports[0].startup && reports[0].buffer == Some(Duration::ZERO));
    let mut at_once = 0;
    for ((at, _), report) in requested.iter().zip(&reports).skip(1) {
        assert!(!report.startup);
        if let Some((_, (_, _, level))) = appended.iter().find(|(when, _)| when == at) {
            at_once += 1;
            assert!(level.as_millis() - report.buffer.unwrap().as_millis() < 100, "{level} and {report:?}");
        }
    }
    assert!(at_once > 5, "{at_once}");
    let silent = Exchanges::new();
    play(player("dash.js-5", &two, none(), &silent).as_mut(), &silent, &link, at_ms(30_000));
    assert!((0..).map_while(|number| silent.at(number)).all(|exchange| exchange.cmcd.is_none()));
}

#[test]
fn fast_switch_replaces_what_is_buffered_lower() {
    let two = video(&[500, 3_000], 2, 60);
    let link = Downlink::constant(900_000, 10).then(30_000, 20_000_000);
    let fast = run("dash.js-5", &two, none(), &link, 300_000);
    let mut replaced = 0;
    let mut latest = std::collections::BTreeMap::new();
    for (at, event) in &fast.events {
        match *event {
            PlayerEvent::SegmentAppended { index, representation, buffered } => {
                if let Some(before) = latest.insert(index, representation) {
                    replaced += 1;
                    assert!(before < representation, "segment {index} at {at}");
                    assert!(!buffered.is_zero());
                }
            }
            PlayerEvent::SegmentShown { index, representation } => assert_eq!(latest[&index], representation),
            _ => {}
        }
    }
    assert!(replaced >= 3, "{replaced}");
    // The first segment fetched again is the one on screen, which cannot be replaced any more.
    let started = fast.first(&PlayerEvent::PlaybackStarted).unwrap();
    assert!(fast.stalls().is_empty());
    let again = fast.requested().windows(2).find(|w| w[1].1.0 <= w[0].1.0).map(|w| w[1]).unwrap();
    let position = again.0.since(started).as_secs_f64();
    // The request for the initialisation segment came in between, 20 ms and its bytes before.
    let decided = fast.inits().iter().find(|(_, r)| *r == 1).unwrap().0.since(started).as_secs_f64();
    assert!(position - decided < 0.1);
    let on_screen = (decided / 2.0) as u32;
    assert_eq!(again.1, (on_screen, 1));
    assert!(fast.appended().iter().all(|(_, (index, representation, _))| (*index, *representation) != (on_screen, 1)));
    let off = DashOptions { fast_switch: Some(false), ..none() };
    let slow = run("dash.js-5", &two, off, &link, 300_000);
    assert_eq!(slow.appended().len(), 60, "each once");
    let switched = |s: &Session| s.shown().iter().find(|(_, (_, r))| *r == 1).unwrap().0;
    assert!(switched(&fast) < switched(&slow));
}

#[test]
fn fast_switch_leaves_what_is_buffered_higher() {
    let two = video(&[500, 3_000], 2, 60);
    // The throughput switches down while much is buffered; BOLA would wait.
    let high_first = DashOptions { initial_representation: Some(1), ..by_throughput("dash.js-5") };
    let session =
        run("dash.js-5", &two, high_first, &Downlink::constant(20_000_000, 10).then(20_000, 1_500_000), 200_000);
    let (at, (index, _)) = *session.requested().iter().find(|(_, (_, r))| *r == 0).unwrap();
    let appended = session.appended().iter().filter(|(when, _)| *when <= at).map(|(_, (i, _, _))| *i).max().unwrap();
    let level = session.appended().iter().rfind(|(when, _)| *when <= at).unwrap().1.2;
    assert!(at > at_ms(20_000) && level > Duration::from_secs(6), "{at}, {level}");
    assert_eq!(index, appended + 1);
}

#[test]
fn representations_above_a_limit_are_never_asked_for() {
    let video = find_ladder("bbb-2s").unwrap().video(Some(Duration::from_secs(120))).unwrap();
    for name in DASH_PLAYERS {
        for (options, top) in [
            (DashOptions { max_resolution: Some(hd()), ..none() }, 13),
            (DashOptions { max_bitrate: Some(anabranch_units::Bandwidth::from_bps(600_000)), ..none() }, 9),
        ] {
            let session = run(name, &video, options, &Downlink::constant(20_000_000, 10), 200_000);
            assert!(session.requested().iter().all(|(_, (_, r))| *r <= top), "{name}");
            let best = session.requested().iter().map(|(_, (_, r))| *r).max().unwrap();
            // BBA-0's buffer never passes its reservoir of 90 s by much within 120 s.
            assert!(best == top || name == "bba-0", "{name}: {best}");
        }
    }
}

#[test]
fn the_first_representation_can_be_given() {
    let video = find_ladder("bbb-1s").unwrap().video(Some(Duration::from_secs(20))).unwrap();
    let first =
        |name, options| run(name, &video, options, &Downlink::constant(1_000_000, 10), 3_000).requested()[0].1.1;
    assert_eq!(first("rate", none()), 0);
    assert_eq!(first("dash.js-5", none()), 10);
    let rate = Some(anabranch_units::Bandwidth::from_bps(230_000));
    assert_eq!(first("dash.js-2.2", DashOptions { initial_bitrate: rate, ..none() }), 4);
    assert_eq!(first("rate", DashOptions { initial_representation: Some(3), ..none() }), 3);
    let capped = DashOptions { initial_representation: Some(18), max_resolution: Some(hd()), ..none() };
    assert_eq!(first("dash.js-2.9", capped), 13);
}

#[test]
fn a_server_that_hangs_up_ends_the_video_where_the_buffer_ends() {
    let one = video(&[400], 2, 100);
    for name in DASH_PLAYERS {
        let link = Downlink { hangs_up: Some(at_ms(5_000)), ..Downlink::constant(1_000_000, 10) };
        let session = run(name, &one, none(), &link, 300_000);
        assert!(session.finished, "{name}");
        let whole = session.appended().len() as f64 * 2.0;
        assert!(whole >= 4.0);
        assert!((session.viewer().played_s - whole).abs() < 1e-6, "{name}");
        let link = Downlink { hangs_up: Some(at_ms(50)), ..Downlink::constant(1_000_000, 10) };
        let session = run(name, &one, none(), &link, 300_000);
        assert!(session.finished && session.viewer().startup_s.is_none(), "{name}: nothing was ever shown");
    }
}

#[test]
fn a_cut_off_session_can_be_sampled_at_any_time() {
    let one = video(&[400], 2, 100);
    let exchanges = Exchanges::new();
    let mut player = player("dash.js-5", &one, none(), &exchanges);
    play(player.as_mut(), &exchanges, &Downlink::constant(2_000_000, 10), at_ms(20_000));
    player.sample(at_ms(20_000));
    let levels: Vec<_> = player.log().drain().collect();
    let [(_, PlayerEvent::BufferLevel { media, bytes })] = levels[..] else { panic!("{levels:?}") };
    assert!(media > AT_TOP - Duration::from_secs(5) && media < AT_TOP, "{media}");
    // Whole segments of 100 kB behind the one on screen.
    assert_eq!(bytes % 100_000, 0);
    assert!((bytes as f64 / 50_000.0 - media.as_secs_f64()).abs() <= 2.0);
}

#[test]
fn options_for_other_players_are_refused() {
    let build = |name: &str, dash| {
        let content = Content::Dash(Arc::new(video(&[400], 2, 10)));
        let options = PlayerOptions { dash, ..PlayerOptions::default() };
        let setup = PlayerSetup { content, exchanges: Exchanges::new(), options };
        (PLAYERS.find(name).unwrap().create)(&setup).err().map(|error| error.to_string())
    };
    let fast = DashOptions { fast_switch: Some(true), ..none() };
    assert_eq!(build("dash.js-2.9", fast), Some("player `dash.js-2.9` has no option `fast_switch`".to_string()));
    assert_eq!(build("dash.js-5", fast), None);
    let mut horizon = none();
    horizon.rule.horizon = Some(3);
    assert_eq!(build("rate", horizon), Some("bitrate rule `rate` has no option `horizon`".to_string()));
    assert_eq!(build("robust-mpc", horizon), None);
}
