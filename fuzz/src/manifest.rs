//! Arbitrary bytes as an MPD. Nothing may panic or take long; what is refused has a message with the file's name, and
//! what is read is a video with sizes and durations in every media segment.

use anabranch_media::content::{MAX_SEGMENTS, Mpd, MpdSelection};
use anabranch_units::Duration;

/// Reads the bytes as an MPD, and chooses from it in a few ways.
pub fn run(data: &[u8]) {
    let Ok(mpd) = Mpd::read("fuzz.mpd", data).map_err(|error| assert!(error.to_string().starts_with("fuzz.mpd:")))
    else {
        return;
    };
    let minute = Some(Duration::from_secs(60));
    let selections = [
        MpdSelection::default(),
        MpdSelection { duration: minute, segment_duration: Some(Duration::from_secs(2)), ..MpdSelection::default() },
        MpdSelection { duration: minute, period: Some(1), adaptation_set: Some(1), ..MpdSelection::default() },
    ];
    for selection in selections {
        match mpd.video_with_warnings(&selection) {
            Err(error) => assert!(error.to_string().starts_with("fuzz.mpd:"), "{error}"),
            Ok((video, warnings)) => {
                assert!((1..=MAX_SEGMENTS).contains(&video.segments()));
                assert!(selection.duration.is_none_or(|limit| video.duration() <= limit));
                assert!(warnings.len() <= 22, "{} warnings", warnings.len());
                for k in 0..video.segments() {
                    assert!(!video.duration_of(k).is_zero());
                    assert!((0..video.representations().len()).all(|r| video.bytes(r, k) > 0));
                }
            }
        }
    }
}
