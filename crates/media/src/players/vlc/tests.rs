//! Dialogues with the player, computed by hand, and invariants for every arrival pattern.
//!
//! The video has 25 pictures a second (40 ms each) of 1000 bytes, after a header of 500: 25 bytes a millisecond. A step
//! of 250 ms ends with picture 6, 12, 18, 25, 31, ... (the last with a time stamp up to the step's end).

use super::*;
use crate::frames::FrameRate;
use crate::http::RESPONSE_HEADER_BYTES;
use crate::testing::{Pipe, at_ms, ms, steady, watch};
use anabranch_observation::{ViewerMetrics, ViewerReport};
use proptest::prelude::*;

/// Everything before the first picture.
const HEADERS: u64 = RESPONSE_HEADER_BYTES + 500;
/// Long enough for every test.
const FOREVER: Instant = Instant::from_nanos(400_000_000_000);

fn video(pictures: usize) -> Arc<FrameTable> {
    Arc::new(FrameTable::from_sizes(FrameRate::from_fps(25).unwrap(), 500, vec![1_000; pictures]))
}

fn vlc(pictures: usize) -> Vlc {
    Vlc::new(VlcOptions::version_3(), video(pictures), Exchanges::new())
}

/// The player's events, without the HTTP exchange.
fn play(player: &mut Vlc, arrivals: impl IntoIterator<Item = (u64, u64)>) -> Vec<(Instant, PlayerEvent)> {
    let events = watch(player, &mut Pipe::default(), arrivals, FOREVER);
    let http = |e: &PlayerEvent| {
        use PlayerEvent::{FirstByte, Requested, ResponseComplete};
        matches!(e, Requested { .. } | FirstByte { .. } | ResponseComplete { .. })
    };
    events.into_iter().filter(|(_, e)| !http(e)).collect()
}

fn report(events: &[(Instant, PlayerEvent)], end: Instant) -> ViewerReport {
    let mut metrics = ViewerMetrics::new(Instant::ZERO);
    events.iter().for_each(|(at, event)| metrics.observe(*at, event));
    metrics.finish(end)
}

fn underflow(late: u64) -> PlayerEvent {
    PlayerEvent::BufferUnderflow { late: ms(late) }
}

fn discarded(frame: u32) -> PlayerEvent {
    PlayerEvent::PictureDiscarded { frame }
}

fn flushed(first: u32, count: u32) -> PlayerEvent {
    PlayerEvent::PicturesFlushed { first, count }
}

use PlayerEvent::{PlaybackEnded, PlaybackStarted, PlayoutDelayRaised, StallBegan, StallEnded};

#[test]
fn it_starts_when_more_than_a_second_is_demultiplexed_and_plays_to_the_end() {
    // Headers at 100 ms, then a picture every 20 ms from 120 on, twice as fast as they play. The fifth step's PCR, 1250
    // ms, is the first above 1000; its last picture, 31, comes at 120 + 31 * 20 = 740. The first picture is shown 10 ms
    // later, and the 100 pictures last 4 s.
    let mut player = vlc(100);
    let events = play(&mut player, [(100, HEADERS)].into_iter().chain(steady(120, 20, 1_000, 100)));
    assert_eq!(events, [(at_ms(750), PlaybackStarted), (at_ms(4_750), PlaybackEnded)]);
    assert_eq!(player.frame_counts(), FrameCounts { shown: 100, ..FrameCounts::default() });
}

#[test]
fn steps_are_paced_by_the_clock_with_a_tenth_of_a_second_ahead() {
    // All is there at 100 ms: playing begins at 110. PCR 1250 is expected at 110 - 1000 + 1250 = 360 and the read-ahead
    // is 100 ms, so the next step, pictures 32..=37, is read at 260, and another one every 250 ms.
    let mut player = vlc(100);
    let mut pipe = Pipe::default();
    watch(&mut player, &mut pipe, [(100, HEADERS + 100_000)], at_ms(259));
    assert_eq!((player.next, player.poll_timeout()), (32, Some(at_ms(260))));
    player.handle_timeout(at_ms(260), &mut pipe);
    assert_eq!((player.next, player.poll_timeout()), (38, Some(at_ms(510))));
}

#[test]
fn a_pause_that_the_ring_bridges_is_not_seen() {
    // 200 pictures at once, playing from 110 on. Picture 200 belongs to the step that ends with PCR 8000 (its own time
    // stamp), which is due at 8110 like the picture. If the rest comes at 8110, nothing happened.
    let mut player = vlc(250);
    let events = play(&mut player, [(100, HEADERS + 200_000), (8_110, 50_000)]);
    assert_eq!(events, [(at_ms(110), PlaybackStarted), (at_ms(10_110), PlaybackEnded)]);
}

#[test]
fn a_millisecond_more_is_an_underflow_that_costs_pictures() {
    // Now PCR 8000 is a millisecond late: picture 200, just read, is flushed. All the rest is there, so buffering is
    // over in the same instant: the reference is the first PCR after the reset, 8250, due at 8111 + 10. Picture 201
    // (8040) was due 210 ms earlier, at 7911: shown because it is the first. 202..=205 were due at 7951, 7991, 8031,
    // 8071: discarded. 206 was due at 8111: shown. Picture 249, time stamp 9960, is due at 8121 + 1710 and stays for 40
    // ms.
    let mut player = vlc(250);
    let events = play(&mut player, [(100, HEADERS + 200_000), (8_111, 50_000)]);
    let t = at_ms(8_111);
    let expected = [
        (at_ms(110), PlaybackStarted),
        (t, underflow(1)),
        (t, flushed(200, 1)),
        (t, StallBegan),
        (t, discarded(202)),
        (t, discarded(203)),
        (t, discarded(204)),
        (t, discarded(205)),
        (t, StallEnded),
        (at_ms(9_871), PlaybackEnded),
    ];
    assert_eq!(events, expected);
    assert_eq!(player.frame_counts(), FrameCounts { shown: 245, discarded: 4, flushed: 1, left: 0 });
    assert_eq!(report(&events, FOREVER).stalls, 0, "the picture jumped but did not stand still");
}

#[test]
fn a_longer_pause_freezes_the_picture_and_buffers_a_second_anew() {
    // As before, but the rest comes from 10 000 on, at the rate of the video. Picture 200 would have been too late
    // after 8110 + 20 ms. At 10 000 it completes its step: 1890 ms late. Buffering needs PCR 8250 + more than 1000 =
    // 9500, whose last picture, 237, comes 37 * 40 ms later, at 11 480. Then the reference 8250 is due at 11 490, and
    // 206 (8240) at 11 480. Picture 299 (11 960) is due at 11 490 + 3710 and stays for 40 ms.
    let mut player = vlc(300);
    let events = play(&mut player, [(100, HEADERS + 200_000)].into_iter().chain(steady(10_000, 40, 1_000, 100)));
    let t = at_ms(11_480);
    let expected = [
        (at_ms(110), PlaybackStarted),
        (at_ms(8_130) + Duration::from_nanos(1), StallBegan),
        (at_ms(10_000), underflow(1_890)),
        (at_ms(10_000), flushed(200, 1)),
        (t, discarded(202)),
        (t, discarded(203)),
        (t, discarded(204)),
        (t, discarded(205)),
        (t, StallEnded),
        (at_ms(15_240), PlaybackEnded),
    ];
    assert_eq!(events, expected);
    let report = report(&events, FOREVER);
    assert_eq!((report.stalls, report.buffer_underflows, report.pictures_flushed), (1, 1, 1));
    assert!((report.stall_s - 3.35).abs() < 1e-6 && (report.played_s - (8.02 + 3.76)).abs() < 1e-6);
}

#[test]
fn only_pictures_later_than_half_a_period_are_discarded() {
    // 195 pictures at once; the step to PCR 8000 holds 194..=200, due at 7870, 7910, ... 8110. Of those that are
    // missing, 195 comes 20 ms late: shown. 196 comes 21 ms late: discarded. 197 comes 20 ms late again, the others in
    // time: no PCR is late.
    let mut player = vlc(250);
    let arrivals = [(100, HEADERS + 195_000), (7_930, 1_000), (7_971, 1_000), (8_010, 1_000), (8_030, 52_000)];
    let events = play(&mut player, arrivals);
    let expected = [
        (at_ms(110), PlaybackStarted),
        (at_ms(7_970) + Duration::from_nanos(1), StallBegan),
        (at_ms(7_971), discarded(196)),
        (at_ms(8_010), StallEnded),
        (at_ms(10_110), PlaybackEnded),
    ];
    assert_eq!(events, expected);
}

/// Plays with an outage for each of `lates` that ends so many milliseconds after the next PCR was due; between two
/// outages 200 pictures come at once. Returns the underflows and the raised delays, and the player.
fn after_outages(clock_jitter: Duration, lates: &[u64]) -> (Vec<PlayerEvent>, Vlc) {
    let options = VlcOptions { clock_jitter, ..VlcOptions::version_3() };
    let mut player = Vlc::new(options, video(2_000), Exchanges::new());
    let mut pipe = Pipe::default();
    let mut events = watch(&mut player, &mut pipe, [(100, HEADERS + 200_000)], at_ms(100));
    for late in lates {
        // Play until the player waits for a picture, then let `late` pass since its step's PCR was due.
        while let Some(due) = player.poll_timeout().filter(|_| player.demux != Demux::Reading) {
            player.handle_timeout(due, &mut pipe);
        }
        let due = player.clock.due(player.step_end).unwrap();
        while let Some(at) = player.poll_timeout().filter(|&at| at <= due + ms(*late)) {
            player.handle_timeout(at, &mut pipe);
        }
        pipe.arrive(200_000);
        player.on_readable(due + ms(*late), &mut pipe);
    }
    events.extend(player.log().drain());
    let kept = |e: &PlayerEvent| matches!(e, PlayerEvent::BufferUnderflow { .. } | PlayoutDelayRaised { .. });
    (events.into_iter().map(|(_, e)| e).filter(kept).collect(), player)
}

#[test]
fn the_delay_grows_by_the_median_of_the_last_three_lates() {
    // Lates 2000, 500: the median of 0, 500, 2000 is 500. Against the new delay 1500 the first late would have been
    // 1500, the second 0. Then 700: median of 0, 700, 1500. Against 2200 there remain 800 and 0. Then 300: median of 0,
    // 300, 800.
    let (events, player) = after_outages(ms(5_000), &[2_000, 500, 700, 300]);
    let expected = [
        underflow(2_000),
        underflow(500),
        PlayoutDelayRaised { to: ms(1_500) },
        underflow(700),
        PlayoutDelayRaised { to: ms(2_200) },
        underflow(300),
        PlayoutDelayRaised { to: ms(2_500) },
    ];
    assert_eq!(events, expected);
    assert_eq!(player.playout_delay(), ms(2_500));
}

#[test]
fn a_higher_delay_is_buffered_in_full() {
    // After the second outage the delay is 1500, so the PCRs must span more than that: seven steps from the reference
    // (1750 ms).
    let (_, player) = after_outages(ms(5_000), &[2_000, 500]);
    assert!(!player.buffering);
    assert_eq!(player.clock.buffered(), ms(1_750));
}

#[test]
fn a_wish_above_the_limit_is_ignored_and_only_the_clock_is_reset() {
    // Two lates of 6000 ms want a delay of 7000, above 1000 + 5000. The delay stays. The second time nothing is
    // buffered anew: the next PCR, in the same instant, is the new reference, due a second later; and as it is expected
    // now, one more step is read now.
    let (events, mut player) = after_outages(ms(5_000), &[6_000, 6_000]);
    assert_eq!(events, [underflow(6_000), underflow(6_000)]);
    assert_eq!(player.playout_delay(), ms(1_000));
    assert!(!player.buffering);
    assert_eq!(player.clock.buffered(), ms(250));
    assert_eq!(player.frame_counts().flushed, 1, "the first time; the second time the late picture is discarded");
    // The reference is due in 1000 ms; the first picture of its step lies 240 or 210 ms before it.
    let resumed_at = player.clock.due(player.step_end - ms(250)).unwrap() - ms(1_000);
    let moves_again = player.screen.next_change().unwrap();
    assert!([ms(760), ms(790)].contains(&moves_again.since(resumed_at)), "{moves_again} after {resumed_at}");
    while let Some(due) = player.poll_timeout().filter(|&due| due <= moves_again) {
        player.handle_timeout(due, &mut Pipe::default());
    }
    assert!(player.log().drain().any(|(at, e)| at == moves_again && e == StallEnded));
}

#[test]
fn no_delay_above_a_minute_is_taken() {
    let (events, player) = after_outages(ms(100_000), &[70_000, 70_000]);
    assert_eq!((events, player.playout_delay()), (vec![underflow(70_000), underflow(70_000)], ms(1_000)));
    let (_, player) = after_outages(ms(100_000), &[58_000, 58_000]);
    assert_eq!(player.playout_delay(), ms(59_000));
}

#[test]
fn full_decoder_queues_stop_the_reading_ahead() {
    // Pictures of a megabyte: 7 MB are queued at PCR 250, which adds 46.875 ms, and 13 MB at PCR 500, above 10 MiB.
    let frames = FrameTable::from_sizes(FrameRate::from_fps(25).unwrap(), 500, [1_000_000; 50]);
    let mut player = Vlc::new(VlcOptions::version_3(), Arc::new(frames), Exchanges::new());
    watch(&mut player, &mut Pipe::default(), [(100, HEADERS + 50_000_000)], at_ms(110));
    let expected = at_ms(110 + 1_250 - 1_000);
    assert_eq!(player.poll_timeout(), Some(expected - Duration::from_micros(46_875)));
}

#[test]
fn pictures_without_a_date_are_discarded() {
    // After the second late PCR there is no reference until the next one. Of the next step three pictures come, and
    // later the rest.
    let options = VlcOptions { clock_jitter: Duration::ZERO, ..VlcOptions::version_3() };
    let mut player = Vlc::new(options, video(600), Exchanges::new());
    // The first underflow: PCR 8000 is 1000 ms late at 9110; 200 more pictures come, and playing begins at once with
    // reference 8250 due at 9120. Picture 400 (16 000) completes the step to PCR 16 000, due at 9120 + 7750 = 16 870.
    // At 17 870 it comes with three of the next step: late 1000, median of 0, 1000, 1000: wish 2000, limit 1000:
    // ignored.
    let arrivals = [(100, HEADERS + 200_000), (9_110, 200_000), (17_870, 4_000), (17_900, 196_000)];
    let events = play(&mut player, arrivals);
    let lost: Vec<_> = events.iter().filter(|(at, _)| *at >= at_ms(17_870)).map(|(_, e)| *e).collect();
    let expected =
        [underflow(1_000), discarded(400), discarded(401), discarded(402), discarded(403), StallEnded, PlaybackEnded];
    assert_eq!(lost, expected);
    // PCR 16 250 at 17 900 is the reference, due a second later; 404 (16 160) is due 90 ms before that.
    let resumed = events.iter().rfind(|(_, e)| *e == StallEnded).unwrap();
    assert_eq!(resumed.0, at_ms(18_810));
}

#[test]
fn late_pcrs_while_buffering_count_for_the_median() {
    // Pictures come at a fifth of their rate, so buffering takes long: PCRs 250, 500, ... are read at 100 + 200 * 6,
    // 12, 18, 25, 31 ms after the reference at 100: late by (200 * k) - 1000 - PCR: -50, 900, 1850, 3000, 3950. The
    // last three count, so the first underflow already raises the delay: by the median of its own lateness, 3000 and
    // 3950.
    let mut player = vlc(2_000);
    let mut pipe = Pipe::default();
    let mut events =
        watch(&mut player, &mut pipe, [(100, HEADERS)].into_iter().chain(steady(100, 200, 1_000, 32)), at_ms(6_300));
    assert!(!player.buffering && events.len() == 2, "a request and its first byte: {events:?}");
    while let Some(due) = player.poll_timeout() {
        player.handle_timeout(due, &mut pipe);
    }
    // PCR 1500 waits for the pictures 32..=37. Playing began at 6310, so it is due at 7810.
    pipe.arrive(100_000);
    player.on_readable(at_ms(7_910), &mut pipe);
    events.extend(player.log().drain());
    let kept: Vec<_> = events
        .iter()
        .map(|(_, e)| *e)
        .filter(|e| matches!(e, PlayerEvent::BufferUnderflow { .. } | PlayoutDelayRaised { .. }))
        .collect();
    assert_eq!(kept, [underflow(100), PlayoutDelayRaised { to: ms(4_000) }]);
}

/// A link of `rate` bytes a millisecond, except in outages, into a socket buffer of `window` bytes: the sender sends
/// what fits.
fn windowed(player: &mut Vlc, rate: u64, window: u64, size: u64, outages: &[(u64, u64)]) -> ViewerReport {
    let mut pipe = Pipe::default();
    player.start(Instant::ZERO, &mut pipe);
    let (mut left, mut metrics) = (size, ViewerMetrics::new(Instant::ZERO));
    for now in 1..200_000 {
        while let Some(due) = player.poll_timeout().filter(|&due| due <= at_ms(now)) {
            player.handle_timeout(due, &mut pipe);
        }
        if !outages.iter().any(|&(from, to)| (from..to).contains(&now)) {
            let fits = window.saturating_sub(pipe.readable()).min(rate).min(left);
            left -= fits;
            pipe.arrive(fits);
            player.on_readable(at_ms(now), &mut pipe);
        }
        player.log().drain().for_each(|(at, event)| metrics.observe(at, &event));
    }
    assert!(player.finished());
    metrics.finish(at_ms(200_000))
}

#[test]
fn the_ring_bridges_what_the_socket_cannot() {
    // 60 s of video, a socket buffer of one second, an outage of five. Without the ring: about two seconds of reserve.
    // With a ring of ten seconds: nothing happens. With one of two seconds: too small.
    let with_ring = |ring, caching| {
        let mut player =
            Vlc::new(VlcOptions { ring, caching, ..VlcOptions::version_3() }, video(1_500), Exchanges::new());
        let report = windowed(&mut player, 100, 25_000, HEADERS + 1_500_000, &[(20_000, 25_000)]);
        (report.buffer_underflows, report.stalls)
    };
    assert_eq!(with_ring(0, ms(1_000)), (1, 1));
    assert_eq!(with_ring(50_000, ms(1_000)), (1, 1));
    assert_eq!(with_ring(250_000, ms(1_000)), (0, 0));
    assert_eq!(with_ring(0, ms(5_000)), (0, 0), "network-caching is a reserve too");
}

#[test]
fn a_full_ring_leaves_the_rest_in_the_socket() {
    let options = VlcOptions { ring: 30_000, ..VlcOptions::version_3() };
    let mut player = Vlc::new(options, video(1_000), Exchanges::new());
    let mut pipe = Pipe::default();
    watch(&mut player, &mut pipe, [(100, HEADERS + 1_000_000)], at_ms(100));
    // The header and the pictures 0..=31 were demultiplexed.
    assert_eq!(player.fetched, 500 + 32_000 + 30_000);
    assert_eq!(pipe.readable(), 500 + 1_000_000 - player.fetched);
}

#[test]
fn without_a_ring_nothing_is_read_between_two_steps() {
    let mut player = Vlc::new(VlcOptions::version_2(), video(1_000), Exchanges::new());
    let mut pipe = Pipe::default();
    watch(&mut player, &mut pipe, [(100, HEADERS + 1_000_000), (200, 0)], at_ms(250));
    assert_eq!(player.fetched, 500 + 32_000);
}

#[test]
fn a_server_that_hangs_up_ends_the_video_early() {
    // 100 of 1000 pictures, and half of the next with the end of data.
    let mut player = vlc(1_000);
    let mut pipe = Pipe::default();
    watch(&mut player, &mut pipe, [(100, HEADERS + 100_000)], at_ms(1_000));
    pipe.arrive(500);
    pipe.peer_finished = true;
    player.on_readable(at_ms(1_000), &mut pipe);
    while let Some(due) = player.poll_timeout() {
        player.handle_timeout(due, &mut pipe);
    }
    assert_eq!(player.log().drain().last(), Some((at_ms(4_110), PlaybackEnded)));
    assert_eq!(player.frame_counts(), FrameCounts { shown: 100, left: 900, ..FrameCounts::default() });
}

#[test]
fn a_server_that_hangs_up_before_the_start_ends_it_at_once() {
    let mut player = vlc(1_000);
    let mut pipe = Pipe::default();
    watch(&mut player, &mut pipe, [(100, 10)], at_ms(150));
    pipe.peer_finished = true;
    player.on_readable(at_ms(200), &mut pipe);
    assert!(player.finished() && pipe.finished);
    assert_eq!(player.log().drain().last(), Some((at_ms(200), PlaybackEnded)));
}

#[test]
fn a_video_shorter_than_the_delay_is_played() {
    // Ten pictures, 400 ms: buffering never spans a second, but there is no more to wait for.
    let mut player = vlc(10);
    let events = play(&mut player, [(100, HEADERS + 10_000)]);
    assert_eq!(events, [(at_ms(110), PlaybackStarted), (at_ms(510), PlaybackEnded)]);
}

#[test]
fn the_buffer_level_counts_playing_time_and_bytes() {
    let mut player = vlc(200);
    let mut pipe = Pipe::default();
    // Playing from 110; at 1110 the picture 25 is due; 100 500 bytes of pictures are there, 100 complete.
    watch(&mut player, &mut pipe, [(100, HEADERS + 100_500)], at_ms(1_110));
    player.sample(at_ms(1_110));
    let level = player.log().drain().last().unwrap().1;
    assert_eq!(level, PlayerEvent::BufferLevel { media: ms(3_000), bytes: 75_500 });
}

#[test]
fn the_buffer_level_begins_anew_with_the_buffering() {
    // As in the longer pause: at 10 000 picture 200 is flushed and four more have come; the viewer will go on with 201.
    let mut player = vlc(300);
    let mut pipe = Pipe::default();
    watch(&mut player, &mut pipe, [(100, HEADERS + 200_000), (10_000, 5_200)], at_ms(10_100));
    player.sample(at_ms(10_100));
    let level = player.log().drain().last().unwrap().1;
    assert_eq!(level, PlayerEvent::BufferLevel { media: ms(160), bytes: 4_200 });
}

/// Bursts and pauses: milliseconds to the next arrival and its bytes.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let gap = prop_oneof![6 => 0..60u64, 2 => 60..1_500u64, 1 => 1_500..9_000u64];
    let bytes = prop_oneof![6 => 0..3_000u64, 3 => 3_000..30_000u64, 1 => Just(100_000u64)];
    prop::collection::vec((gap, bytes), 1..120)
}

/// Bursts at times, ended by everything that is missing.
fn schedule(gaps: &[(u64, u64)], size: u64) -> Vec<(u64, u64)> {
    let (mut now, mut left) = (0, size);
    let mut list = Vec::new();
    for &(gap, bytes) in gaps {
        now += gap;
        let bytes = bytes.min(left);
        left -= bytes;
        list.push((now, bytes));
    }
    list.push((now + 10, left));
    list
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_picture_has_one_fate_and_every_moment_one_state(
        gaps in arrivals(),
        ring in prop_oneof![Just(0u64), 1_000..60_000u64, Just(16 << 20)],
        jitter in prop_oneof![Just(0u64), 500..6_000u64],
        pictures in 1..900usize,
    ) {
        let options = VlcOptions { ring, clock_jitter: ms(jitter), ..VlcOptions::version_3() };
        let run = || {
            let mut player = Vlc::new(options, video(pictures), Exchanges::new());
            let events = play(&mut player, schedule(&gaps, HEADERS + 1_000 * pictures as u64));
            (events, player)
        };
        let (events, player) = run();
        prop_assert!(player.finished());

        let counts = player.frame_counts();
        prop_assert_eq!(counts.left, 0);
        let mut fate = vec![0; pictures];
        for (_, event) in &events {
            match *event {
                PlayerEvent::PictureDiscarded { frame } => fate[frame as usize] += 1,
                PlayerEvent::PicturesFlushed { first, count } => (first..first + count).for_each(|f| fate[f as usize] += 1),
                _ => {}
            }
        }
        prop_assert!(fate.iter().all(|&n| n <= 1));
        let lost: u32 = fate.iter().sum();
        prop_assert_eq!(lost, counts.discarded + counts.flushed);
        prop_assert_eq!(counts.shown + lost, pictures as u32);

        let end = events.last().unwrap();
        prop_assert_eq!(end.1, PlaybackEnded);
        let report = report(&events, FOREVER);
        let sum = report.startup_s.unwrap() + report.played_s + report.stall_s;
        prop_assert!((sum - end.0.as_secs_f64()).abs() < 1e-6, "{} of {}", sum, end.0);

        let delays: Vec<_> = events.iter().filter_map(|(_, e)| match e {
            PlayoutDelayRaised { to } => Some(*to),
            _ => None,
        }).collect();
        prop_assert!(delays.windows(2).all(|d| d[0] < d[1]));
        prop_assert!(player.playout_delay() <= ms(1_000 + jitter));

        prop_assert_eq!(events, run().0);
    }

    #[test]
    fn more_bytes_earlier_never_start_later(gaps in arrivals(), pictures in 50..400usize) {
        let size = HEADERS + 1_000 * pictures as u64;
        let start = |list: Vec<(u64, u64)>| {
            let events = play(&mut vlc(pictures), list);
            events.iter().find(|(_, e)| *e == PlaybackStarted).map(|(at, _)| *at)
        };
        let early = gaps.iter().map(|&(gap, bytes)| (gap / 2, bytes)).collect::<Vec<_>>();
        prop_assert!(start(schedule(&early, size)) <= start(schedule(&gaps, size)));
    }
}
