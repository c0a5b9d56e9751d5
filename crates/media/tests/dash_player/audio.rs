//! Audio with the video.

use super::*;
use anabranch_media::GiveUp;
use anabranch_media::content::find_ladder;
use anabranch_units::Bandwidth;

const INIT: u64 = 672;
const MANIFEST: u64 = 9_321;
const RESPONSE: u64 = 265;
/// 128 kbit/s: 16 000 bytes per second.
const RATE: Bandwidth = Bandwidth::from_bps(128_000);

fn with_sound() -> DashOptions {
    DashOptions { audio: Some(RATE), ..DashOptions::default() }
}

fn audio_requests(session: &Session) -> Vec<(Instant, u32)> {
    session.pick(|event| match *event {
        PlayerEvent::AudioRequested { index, .. } => Some(index),
        _ => None,
    })
}

#[test]
fn sound_costs_its_bytes_and_no_round_trip() {
    let video = find_ladder("bbb-1s").unwrap().video(None).unwrap();
    let session = run("dash.js-2.9", &video, with_sound(), &Downlink::constant(1_000_000, 30), 5_000);
    // The MPD, the initialisation segment, then audio and video at once: three round trips.
    let pictures = (MANIFEST + RESPONSE) + (INIT + RESPONSE) + (101_007 + RESPONSE);
    let audio = (INIT + RESPONSE) + (16_000 + RESPONSE);
    let expected = 3.0 * 60.0 + (pictures + audio) as f64 * 8.0 / 1_000.0;
    let started = session.first(&PlayerEvent::PlaybackStarted).unwrap().as_secs_f64() * 1e3;
    assert!((started - expected).abs() < 0.01, "{started} instead of {expected}");
}

#[test]
fn each_segment_of_the_sound_is_fetched_once_before_its_pictures() {
    // The rate falls at 20 s, so that requests are abandoned and fetched again.
    let video = video(&[200, 1_500], 2, 40);
    let link = Downlink::constant(4_000_000, 10).then(20_000, 300_000).then(60_000, 4_000_000);
    for name in DASH_PLAYERS {
        for give_up in [GiveUp::Close, GiveUp::Cancel, GiveUp::Drain] {
            let options = DashOptions { give_up: Some(give_up), initial_representation: Some(1), ..with_sound() };
            let session = run(name, &video, options, &link, 600_000);
            assert!(session.finished, "{name}, {give_up:?}");
            let requests = audio_requests(&session);
            assert_eq!(
                requests.iter().map(|(_, index)| *index).collect::<Vec<_>>(),
                (0..40).collect::<Vec<_>>(),
                "{name}"
            );
            for (at, (index, ..)) in session.appended() {
                assert!(requests[index as usize].0 < at, "{name}: {index}");
            }
        }
    }
}

#[test]
fn without_a_word_there_is_none() {
    let session =
        run("dash.js-5", &video(&[200], 2, 10), DashOptions::default(), &Downlink::constant(1_000_000, 10), 60_000);
    assert!(session.finished && audio_requests(&session).is_empty());
}
