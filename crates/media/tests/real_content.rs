//! Real manifests and tables, read where the shared data of the project's machines is present; skipped elsewhere.

use anabranch_media::content::{DashVideo, Mpd, MpdSelection, read_table};
use anabranch_units::Duration;
use std::path::{Path, PathBuf};

/// The folder next to the project, if there is one.
fn shared(folder: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(folder);
    if !path.is_dir() {
        eprintln!("skipped: no shared data");
        return None;
    }
    Some(path)
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|e| e == ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Representations, media segments and milliseconds, or a part of the message.
type Expected = Result<(usize, u32, u64), &'static str>;

/// Everything under `mpd`. The two that are broken on purpose are not XML; the others that are refused are well-formed,
/// but lack information, or have no video.
const MPDS: &[(&str, Expected)] = &[
    ("dash-mpd-rs/a2d-tv.mpd", Ok((7, 616, 2_458_360))),
    ("dash-mpd-rs/ad-insertion-testcase1.mpd", Ok((1, 15, 28_800))),
    ("dash-mpd-rs/dash-testcases-5b-1-thomson.mpd", Err("4 video representations, where an earlier period has 2")),
    ("dash-mpd-rs/dashif-live-atoinf.mpd", Err("17:7: the period has no end: give a `duration`")),
    ("dash-mpd-rs/dashif-low-latency.mpd", Err("the period has no end: give a `duration`")),
    ("dash-mpd-rs/example_G22.mpd", Ok((3, 423, 846_812))),
    ("dash-mpd-rs/f64-inf.mpd", Err("6:7: the period has no end: give a `duration`")),
    ("dash-mpd-rs/incomplete.mpd", Err("not well-formed XML: the root node was opened but never closed")),
    ("dash-mpd-rs/jurassic-compact-5975.mpd", Ok((7, 927, 5_536_072))),
    ("dash-mpd-rs/manifest_wvcenc_1080p.mpd", Ok((3, 100, 384_000))),
    ("dash-mpd-rs/multiple_supplementals.mpd", Ok((1, 1, 7_504))),
    ("dash-mpd-rs/patch-location.mpd", Ok((3, 9, 36_036))),
    ("dash-mpd-rs/st-sl.mpd", Err("5:7: a representation's bandwidth is 0")),
    ("dash-mpd-rs/telenet-mid-ad-rolls.mpd", Ok((4, 1_302, 2_531_320))),
    (
        "dash-mpd-rs/vod-aip-unif-streaming.mpd",
        Err("1 video representations, where an earlier period has 5: choose one `period`"),
    ),
    ("dashjs/audio_gap_at_start_timeline.mpd", Ok((3, 15, 90_000))),
    ("dashjs/video_gap_at_start_timeline.mpd", Ok((3, 14, 84_000))),
    // Its first media segment begins 2.34 s before the period (presentationTimeOffset), and is cut there.
    ("dashjs/video_negative_ept_delta.mpd", Ok((3, 15, 87_656))),
    ("livesim2/bbb_hevc_ac3_8s.mpd", Ok((1, 4, 8_000))),
    ("livesim2/testpic_2s.mpd", Err("2:161: not well-formed XML: expected a whitespace")),
    ("livesim2/testpic_2s_low_delay.mpd", Ok((3, 4, 8_000))),
    ("livesim2/testpic_6s.mpd", Ok((1, 2, 12_000))),
    ("livesim2/testpic_alt_seg_dur_stl.mpd", Ok((1, 2, 12_000))),
    ("livesim2/wave_cfhd_t1.mpd", Ok((1, 4, 8_008))),
    ("pensieve/Manifest.mpd", Ok((6, 49, 193_680))),
    ("python-mpegdash/360p_speciment_dash.mpd", Ok((1, 3, 22_959))),
    ("python-mpegdash/motion-20120802-manifest.mpd", Err("give a `segment_duration`")),
    ("python-mpegdash/oops-20120802-manifest.mpd", Err("give a `segment_duration`")),
    ("python-mpegdash/sample-001.mpd", Err("9:13: its media segments are listed only in the media file's index")),
    ("python-mpegdash/utc_timing.mpd", Err("14:3: period 1 has no video")),
    ("python-mpegdash/with_content_protection.mpd", Ok((1, 1, 10_080))),
    ("python-mpegdash/with_event_message_data.mpd", Err("13:3: period 1 has no video")),
];

/// Sums over the media segments of those that are read: of the durations (ns), each times its number, and of the bytes,
/// each times its number and its representation's, all from one. They were recorded in November 2026, before segments
/// were placed on the axis of their period, which changes none of them.
const SUMS: &[(&str, u64, u64)] = &[
    ("dash-mpd-rs/a2d-tv.mpd", 757_296_720_000_000, 10_356_032_646_000),
    ("dash-mpd-rs/ad-insertion-testcase1.mpd", 230_400_000_000, 2_880_000),
    ("dash-mpd-rs/example_G22.mpd", 179_320_107_633_333, 363_060_160_972),
    ("dash-mpd-rs/jurassic-compact-5975.mpd", 2_567_355_468_750_000, 34_205_920_244_253),
    ("dash-mpd-rs/manifest_wvcenc_1080p.mpd", 19_392_000_000_000, 20_291_430_250),
    ("dash-mpd-rs/multiple_supplementals.mpd", 7_504_000_000, 3_913_593),
    ("dash-mpd-rs/patch-location.mpd", 180_180_000_000, 1_143_244_485),
    ("dash-mpd-rs/telenet-mid-ad-rolls.mpd", 1_647_497_280_000_000, 5_783_339_313_700),
    ("dashjs/audio_gap_at_start_timeline.mpd", 720_000_000_000, 822_091_440),
    ("dashjs/video_gap_at_start_timeline.mpd", 630_000_000_000, 719_330_010),
    ("livesim2/bbb_hevc_ac3_8s.mpd", 20_000_000_000, 1_852_850),
    ("livesim2/testpic_2s_low_delay.mpd", 20_000_000_000, 21_008_230),
    ("livesim2/testpic_6s.mpd", 18_000_000_000, 675_000),
    ("livesim2/testpic_alt_seg_dur_stl.mpd", 20_000_000_000, 750_000),
    ("livesim2/wave_cfhd_t1.mpd", 20_020_000_000, 12_762_750),
    ("pensieve/Manifest.mpd", 4_794_055_466_928, 31_670_715_076),
    ("python-mpegdash/360p_speciment_dash.mpd", 38_877_000_000, 3_508_736),
    ("python-mpegdash/with_content_protection.mpd", 10_080_000_000, 1_785_050),
];

fn seen(path: &Path, name: &str, selection: &MpdSelection) -> Result<DashVideo, String> {
    Mpd::read(name, &std::fs::read(path).unwrap())
        .and_then(|mpd| mpd.video(selection))
        .map_err(|error| error.to_string())
}

fn shape(video: &DashVideo) -> (usize, u32, u64) {
    (video.representations().len(), video.segments(), video.duration().as_millis())
}

#[test]
fn every_mpd_is_read_or_refused_with_its_place() {
    let Some(folder) = shared("mpd") else { return };
    let found: Vec<_> = files(&folder, "mpd");
    let names: Vec<_> = found.iter().map(|path| path.strip_prefix(&folder).unwrap().to_str().unwrap()).collect();
    assert_eq!(names, MPDS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for (path, (name, expected)) in found.iter().zip(MPDS) {
        match (seen(path, name, &MpdSelection::default()), expected) {
            (Ok(video), Ok(expected)) => assert_eq!(shape(&video), *expected, "{name}"),
            (Err(message), Err(part)) => {
                let place = message.strip_prefix(&format!("{name}:")).and_then(|rest| rest.split(':').next());
                assert!(place.is_some_and(|line| line.parse::<u32>().is_ok()), "no file and line: {message}");
                assert!(message.contains(part), "{message}");
            }
            (seen, _) => panic!("{name}: {:?}", seen.map(|video| shape(&video))),
        }
    }
}

#[test]
fn durations_and_sizes_stay_as_they_were() {
    let Some(folder) = shared("mpd") else { return };
    for (name, durations, sizes) in SUMS {
        let video = seen(&folder.join(name), name, &MpdSelection::default()).unwrap();
        let sum = |value: &dyn Fn(u32) -> u64| (0..video.segments()).map(|k| u64::from(k + 1) * value(k)).sum::<u64>();
        assert_eq!(sum(&|k| video.duration_of(k).as_nanos()), *durations, "{name}");
        let all: u64 = (0..video.representations().len()).map(|r| (r as u64 + 1) * sum(&|k| video.bytes(r, k))).sum();
        assert_eq!(all, *sizes, "{name}");
    }
    let read = MPDS.iter().filter(|(_, expected)| expected.is_ok()).count();
    assert_eq!(SUMS.len() + 1, read, "all but the one whose first media segment is cut");
}

#[test]
fn what_an_mpd_leaves_open_can_be_given() {
    let Some(folder) = shared("mpd") else { return };
    let given = |name: &str, selection: &MpdSelection| shape(&seen(&folder.join(name), name, selection).unwrap());
    let part = MpdSelection { segment_duration: Some(Duration::from_secs(5)), ..MpdSelection::default() };
    assert_eq!(given("python-mpegdash/motion-20120802-manifest.mpd", &part), (5, 23, 112_430));
    let minute = MpdSelection { duration: Some(Duration::from_secs(60)), ..MpdSelection::default() };
    assert_eq!(given("dash-mpd-rs/dashif-live-atoinf.mpd", &minute), (1, 30, 60_000));
    let second = MpdSelection { period: Some(2), ..MpdSelection::default() };
    assert_eq!(given("python-mpegdash/sample-001.mpd", &second), (2, 5, 300_000));
}

#[test]
fn astreams_sizes_are_those_of_the_corrected_table() {
    let Some(folder) = shared("segment_sizes") else { return };
    let video = seen(&folder.join("astream_bbb_4s_20rates.mpd"), "bbb.mpd", &MpdSelection::default()).unwrap();
    let table = read_table("bbb.json", &std::fs::read_to_string(folder.join("astream_bbb_4s_20rates.json")).unwrap());
    let table = table.unwrap();
    assert_eq!((video.segments(), table.segments()), (150, 150));
    for representation in 0..20 {
        for index in 0..150 {
            let (own, theirs) = (video.bytes(representation, index), table.bytes(representation, index));
            assert!(own.abs_diff(theirs) <= 1, "representation {representation}, segment {index}: {own} and {theirs}");
        }
    }
    assert_eq!(video.representations()[13].resolution, table.representations()[13].resolution);
}

#[test]
fn every_table_of_sizes_is_read() {
    let Some(folder) = shared("segment_sizes") else { return };
    let found = files(&folder, "json");
    assert!(found.len() >= 4);
    for path in found {
        let video = read_table("table.json", &std::fs::read_to_string(&path).unwrap()).unwrap();
        // What a table says of a bitrate and of its sizes must agree.
        for (rank, representation) in video.representations().iter().enumerate() {
            let bytes: u64 = (0..video.segments()).map(|k| video.bytes(rank, k)).sum();
            let mean = bytes as f64 * 8.0 / video.duration().as_secs_f64();
            let ratio = mean / representation.bitrate as f64;
            assert!((0.95..1.05).contains(&ratio), "{}: {ratio}", path.display());
        }
    }
}
