use super::*;
use crate::testing::{at_ms, ms};
use anabranch_media::content::Representation;

/// 1 s segments at 100 and 500 kbit/s (320x240), 2000 kbit/s (1280x720).
fn video(known: bool) -> Arc<DashVideo> {
    let of = |kbps: u64, width, height| Representation {
        bitrate: kbps * 1_000,
        resolution: known.then_some(Resolution { width, height }),
    };
    let representations = vec![of(100, 320, 240), of(500, 320, 240), of(2_000, 1280, 720)];
    Arc::new(DashVideo::nominal(representations, &[Duration::from_secs(1); 8]).unwrap())
}

fn shown(index: u32, representation: u16) -> PlayerEvent {
    PlayerEvent::SegmentShown { index, representation }
}

/// Start at 2 s (the session begins at 1 s); segments of ranks 0, 1, 1, 2 from 2, 3, 4 and 7 s on, with a stall from 5
/// to 7 s; the end at 8 s.
const STORY: [(u64, PlayerEvent); 8] = [
    (2_000, PlayerEvent::PlaybackStarted),
    (2_000, PlayerEvent::SegmentShown { index: 0, representation: 0 }),
    (3_000, PlayerEvent::SegmentShown { index: 1, representation: 1 }),
    (4_000, PlayerEvent::SegmentShown { index: 2, representation: 1 }),
    (5_000, PlayerEvent::StallBegan),
    (7_000, PlayerEvent::StallEnded),
    (7_000, PlayerEvent::SegmentShown { index: 3, representation: 2 }),
    (8_000, PlayerEvent::PlaybackEnded),
];

fn fold(events: &[(u64, PlayerEvent)], statistics: Statistics, known: bool) -> DashMetrics {
    let mut metrics = DashMetrics::new(at_ms(1_000), video(known), statistics);
    events.iter().for_each(|(at, event)| metrics.observe(at_ms(*at), event));
    metrics
}

fn report(events: &[(u64, PlayerEvent)]) -> DashReport {
    fold(events, Statistics::default(), true).finish(at_ms(60_000))
}

#[test]
fn the_whole_session_is_measured() {
    let report = report(&STORY);
    // 100, 500, 500, 2000 for a second each.
    assert_eq!(report.mean_bitrate_bps, Some(775_000.0));
    assert_eq!(report.mean_used_bitrate_bps, Some(2_600_000.0 / 3.0));
    assert_eq!((report.switches, report.impactful_switches), (2, Some(1)));
    assert_eq!(report.switch_amplitude_bps, Some((400_000.0 + 1_500_000.0) / 2.0));
    assert_eq!(report.time_on_high_quality, Some(0.25));
    assert_eq!(report.stall_ratio, 2.0 / 6.0);
    // 3100 - (400 + 1500) - 3000 * 2 - 3000 * 1.
    assert_eq!(report.qoe_linear, 3_100.0 - 1_900.0 - 6_000.0 - 3_000.0);
    assert_eq!(report.qoe_linear_per_segment, Some(report.qoe_linear / 4.0));
    let (five, twenty) = (libm::log(5.0), libm::log(20.0));
    // Changes telescope to ln 20.
    assert!((report.qoe_log - (2.0 * five + twenty - twenty - 2.66 * 2.0)).abs() < 1e-12);
}

#[test]
fn a_window_cuts_pieces_switches_and_the_start() {
    // From 3.5 s to 7.5 s of the clock.
    let statistics = Statistics { from: ms(2_500), to: Some(ms(6_500)), ..Statistics::default() };
    let report = fold(&STORY, statistics, true).finish(at_ms(60_000));
    assert_eq!(report.statistics_window_s, Some((2.5, 6.5)));
    // 500 for 1.5 s, 2000 for 0.5 s.
    assert_eq!(report.mean_bitrate_bps, Some(875_000.0));
    assert_eq!((report.switches, report.impactful_switches), (1, Some(1)));
    assert_eq!(report.time_on_high_quality, Some(0.25));
    assert_eq!(report.stall_ratio, 0.5);
    // Ranks 1 and 2 came on screen; the start-up did not end within.
    assert_eq!(report.qoe_linear, 2_500.0 - 1_500.0 - 6_000.0);
}

#[test]
fn weights_are_prices() {
    let statistics =
        Statistics { switch_penalty: 3.0, stall_penalty: 10.0, startup_penalty: 7.0, ..Statistics::default() };
    assert_eq!(fold(&STORY, statistics, true).finish(at_ms(9_000)).qoe_linear, 3_100.0 - 5_700.0 - 20.0 - 7.0);
}

#[test]
fn a_run_may_be_cut_off_anywhere() {
    let cut = |until: u64| {
        let seen: Vec<_> = STORY.into_iter().filter(|(at, _)| *at <= until).collect();
        fold(&seen, Statistics::default(), true).finish(at_ms(until))
    };
    let before = cut(1_500);
    assert_eq!((before.mean_bitrate_bps, before.time_on_high_quality, before.qoe_linear), (None, None, 0.0));
    assert_eq!(before.qoe_linear_per_segment, None);
    assert_eq!(cut(3_500).mean_bitrate_bps, Some((100_000.0 + 250_000.0) / 1.5));
    let stalled = cut(6_000);
    assert_eq!(stalled.stall_ratio, 0.25);
    assert_eq!(stalled.mean_bitrate_bps, Some(1_100_000.0 / 3.0));
    let open = fold(&STORY[..5], Statistics::default(), true);
    assert_eq!(open.finish(at_ms(6_000)), open.finish(at_ms(6_000)), "asking changes nothing");
}

#[test]
fn unknown_resolutions_are_not_guessed() {
    let report = fold(&STORY, Statistics::default(), false).finish(at_ms(9_000));
    assert_eq!((report.switches, report.impactful_switches, report.time_on_high_quality), (2, None, None));
}

#[test]
fn requests_become_downloads_with_times_since_the_start() {
    let report = report(&[
        (1_000, PlayerEvent::Requested { request: 0 }),
        (1_100, PlayerEvent::ResponseComplete { request: 0, bytes: 99, end: 99 }),
        (2_000, PlayerEvent::SegmentRequested { request: 1, index: 0, representation: 2 }),
        (2_500, PlayerEvent::FirstByte { request: 1 }),
        (4_000, PlayerEvent::ResponseComplete { request: 1, bytes: 250_000, end: 250_199 }),
        (4_000, PlayerEvent::SegmentAppended { index: 0, representation: 2, buffered: ms(1_000) }),
    ]);
    let expected = MediaSegmentReport {
        index: 0,
        representation: 2,
        bytes: 250_000,
        requested_s: 1.0,
        first_byte_s: 1.5,
        finished_s: 3.0,
        download_s: 2.0,
        throughput_bps: 1_000_000.0,
        reorder_wait_s: None,
        reorder_wait_across_s: None,
        reorder_wait_max_s: None,
    };
    assert_eq!(report.media_segments, [expected]);
    assert_eq!((report.wasted_bytes, report.abandoned_requests), (0, 0));
}

#[test]
fn a_media_segment_is_charged_with_what_its_own_bytes_waited() {
    let mut metrics = fold(&[], Statistics::default(), true);
    let delivered = |bytes, waited, across| TransportEvent::Delivered {
        subflow: None,
        offset: None,
        bytes,
        waited: ms(waited),
        across: ms(across),
    };
    let complete = |request, bytes, end| PlayerEvent::ResponseComplete { request, bytes, end };
    // The manifest, whose waits do not count.
    metrics.observe_receiver(&delivered(500, 900, 900));
    metrics.observe(at_ms(2_000), &complete(0, 400, 500));
    for (request, index) in [(1, 0), (2, 1)] {
        metrics.observe(at_ms(2_000), &PlayerEvent::SegmentRequested { request, index, representation: 0 });
    }
    // 100 bytes of header and 900 of body; the next response begins within what was delivered at once.
    metrics.observe_receiver(&delivered(250, 0, 0));
    metrics.observe_receiver(&delivered(950, 40, 30));
    metrics.observe(at_ms(3_000), &complete(1, 900, 1_500));
    metrics.observe_receiver(&delivered(300, 0, 0));
    metrics.observe(at_ms(4_000), &complete(2, 400, 2_000));
    let waits: Vec<_> = metrics
        .finish(at_ms(5_000))
        .media_segments
        .iter()
        .map(|s| (s.reorder_wait_s, s.reorder_wait_across_s, s.reorder_wait_max_s))
        .collect();
    assert_eq!(waits, [(Some(0.03), Some(0.0225), Some(0.04)), (Some(0.016), Some(0.012), Some(0.04))]);
}

#[test]
fn what_never_comes_on_screen_is_wasted() {
    let requested = |request, index| PlayerEvent::SegmentRequested { request, index, representation: 0 };
    let complete = |request, bytes| PlayerEvent::ResponseComplete { request, bytes, end: 0 };
    let appended = |index| PlayerEvent::SegmentAppended { index, representation: 0, buffered: ms(1_000) };
    let given_up = |request| PlayerEvent::SegmentAbandoned { request, index: 1, received: 30, instead: 0 };
    let wasted = |events: &[PlayerEvent]| {
        let timed: Vec<_> = (2_000..).zip(events.iter().copied()).collect();
        report(&timed).wasted_bytes
    };
    let drained = [requested(1, 1), given_up(1), requested(2, 1), complete(1, 500), complete(2, 100), appended(1)];
    assert_eq!(wasted(&drained), 500);
    assert_eq!(wasted(&drained[..3]), 30, "so far");
    let replaced = [requested(1, 0), complete(1, 70), appended(0), requested(2, 0), complete(2, 90), appended(0)];
    assert_eq!(wasted(&replaced), 70);
    let late = [requested(1, 0), complete(1, 70), requested(2, 5), complete(2, 90), appended(5)];
    assert_eq!(wasted(&late), 70);
}

#[test]
fn the_buffer_is_averaged_until_the_end() {
    let mut events = vec![(2_000, PlayerEvent::SegmentAppended { index: 0, representation: 0, buffered: ms(2_000) })];
    events.extend([(2_000, PlayerEvent::PlaybackStarted), (2_000, shown(0, 0)), (3_000, shown(1, 0))]);
    events.push((4_000, PlayerEvent::PlaybackEnded));
    // Nothing for a second, then from 2 s down to 0 in two.
    assert_eq!(report(&events).mean_buffer_s, 2.0 / 3.0);
}

#[test]
fn field_names_are_the_contracts() {
    let json = serde_json::to_value(report(&STORY)).unwrap();
    for name in
        ["mean_bitrate_bps", "switches", "impactful_switches", "time_on_high_quality", "mean_buffer_s", "qoe_linear"]
    {
        assert!(json.get(name).is_some(), "{name}");
    }
    assert!(json["media_segments"].is_array());
}
