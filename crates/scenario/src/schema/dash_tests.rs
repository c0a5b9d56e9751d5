use super::tables::{Dash, Scenario, Statistics, Video};
use crate::error::Error;
use crate::load;
use anabranch_media::PlayerOptions;
use anabranch_media::abr::Strategy;
use anabranch_media::content::{Resolution, SegmentVariation, find_ladder};
use anabranch_units::Duration;

/// A scenario whose session has these lines; they begin in line 6.
fn with(session: &str) -> std::result::Result<Scenario, Error> {
    let head = "schema = 1\nduration = \"60 s\"\n[link.a]\nrate = \"2 Mb/s\"\n[[session]]\n";
    load(&format!("{head}{session}\n"), "dash.toml", None, &[])
}

fn content(session: &str) -> Dash {
    let scenario = with(session).unwrap_or_else(|e| panic!("{e}"));
    let Video::Dash(content) = &scenario.sessions[0].video else { panic!("not DASH") };
    content.clone()
}

#[test]
fn a_ladder_varies_and_its_defaults_are_the_references() {
    let content = content("video = { kind = \"dash\", ladder = \"bbb-1s\" }");
    assert_eq!(content.video().segments(), 596);
    let usual = SegmentVariation::default();
    assert_eq!((content.scene_variation, content.scene_length), (Some(usual.scene), usual.scene_length));
    assert_eq!(content.seed, 1);
    assert_eq!((content.video().init_bytes(), content.video().manifest_bytes()), (672, 9_321));
    let still =
        "video = { kind = \"dash\", ladder = \"bbb-1s\", scene_variation = 0, init = \"0 B\", manifest = \"1 kB\" }";
    let still = self::content(still);
    assert_ne!(still.video, content.video);
    let nominal = find_ladder("bbb-1s").unwrap().video(None).unwrap();
    assert_eq!(still.video().bytes(10, 7), nominal.bytes(10, 7));
    assert_eq!((still.video().init_bytes(), still.video().manifest_bytes()), (0, 1_000));
    let other = self::content("video = { kind = \"dash\", ladder = \"bbb-1s\", seed = 2 }");
    assert_ne!(other.video, content.video);
}

/// A DASH video whose `rates` and further keys these are.
fn with_rates(rates: &str, more: &str) -> std::result::Result<Scenario, Error> {
    with(&format!("video = {{ kind = \"dash\", {more}\nrates = {rates} }}"))
}

const USUAL: &str = "segment_duration = \"4 s\", duration = \"10 s\",";

#[test]
fn rates_in_the_scenario_are_a_ladder() {
    let read = |more: &str| {
        let scenario = with_rates("[\"800 kb/s\", \"2.4 Mb/s\"]", more).unwrap_or_else(|e| panic!("{e}"));
        let again = load(&scenario.resolved(), "dash.toml", None, &[]);
        assert_eq!(again.as_ref(), Ok(&scenario), "{}", scenario.resolved());
        let Video::Dash(content) = &scenario.sessions[0].video else { panic!("not DASH") };
        content.clone()
    };
    let constant = read(&format!("{USUAL} scene_variation = 0, resolutions = [\"640x360\", \"1280x720\"],"));
    let video = constant.video();
    assert_eq!((video.segments(), video.duration()), (3, Duration::from_secs(10)));
    assert_eq!([video.bytes(0, 0), video.bytes(1, 1), video.bytes(1, 2)], [400_000, 1_200_000, 600_000]);
    assert_eq!(video.representations()[1].resolution, Some(Resolution { width: 1280, height: 720 }));
    let drawn = read(USUAL);
    assert_eq!(drawn.scene_variation, Some(SegmentVariation::default().scene), "as of a shipped ladder");
    let sum = |content: &Dash| (0..3).map(|segment| content.video().bytes(1, segment)).sum::<u64>();
    assert_eq!(sum(&drawn), sum(&constant), "the mean rate is the nominal one");
    assert_ne!(drawn.video().bytes(1, 0), constant.video().bytes(1, 0));
    assert_eq!(drawn.video().representations()[1].resolution, None);
    assert_ne!(read(&format!("{USUAL} seed = 2,")).video, drawn.video);
}

#[test]
fn mistakes_in_rates_are_reported_where_they_are() {
    // The keys are in line 6, the rates in line 7; the first rate begins in column 10.
    let cases = [
        ("[]", USUAL, (7, 9), "`rates` is empty"),
        ("[\"2 Mb/s\", \"1 Mb/s\"]", USUAL, (7, 20), "`rates`: 1 Mb/s follows 2 Mb/s"),
        ("[\"2 Mb/s\", \"2 Mb/s\"]", USUAL, (7, 20), "`rates`: 2 Mb/s follows 2 Mb/s"),
        ("[\"0 Mb/s\"]", USUAL, (7, 10), "`rates` has `0 b/s`"),
        ("[\"1 Mb/s\", \"unlimited\"]", USUAL, (7, 20), "`rates` has `unlimited`"),
        ("[\"1 Mbs\"]", USUAL, (7, 10), "`rates`: `Mbs` in `1 Mbs` is no unit"),
        ("[\"1 Mb/s\", 2]", USUAL, (7, 20), "`rates`: "),
        ("\"1 Mb/s\"", USUAL, (7, 9), "`rates` is a text"),
        ("[\"1 Mb/s\"]", "", (6, 9), "a video with `rates` has no `segment_duration`"),
        ("[\"1 Mb/s\"]", "segment_duration = \"4 s\",", (6, 9), "a video with `rates` has no `duration`"),
        ("[\"1 Mb/s\"]", "segment_duration = \"0 s\", duration = \"9 s\",", (6, 45), "`segment_duration` is zero"),
        ("[\"1 Mb/s\"]", "segment_duration = \"1 ns\", duration = \"9 s\",", (6, 9), "at most 1000000 media segments"),
        (
            "[\"1 Mb/s\"]",
            "segment_duration = \"4 s\", duration = \"9 s\", resolutions = [\"640x360\", \"1280x720\"],",
            (6, 84),
            "`resolutions` has 2 entries, and `rates` has 1",
        ),
        ("[\"1 Mb/s\"]", "ladder = \"bbb-1s\",", (7, 9), "`video` has `ladder` and `rates`"),
    ];
    for (rates, more, place, message) in cases {
        let error = with_rates(rates, more).expect_err(rates);
        assert_eq!((error.line, error.column), place, "{rates} {more}: {error}");
        assert!(error.message.contains(message), "{rates} {more}: {error}");
    }
    let error = with_rates("\"1 Mb/s\"", USUAL).unwrap_err();
    assert!(error.expected.starts_with("a list of rates"), "{error}");
    let error = with("video = { kind = \"dash\", rate = [\"1 Mb/s\"] }").unwrap_err();
    assert_eq!(error.nearest.as_deref(), Some("rates"), "{error}");
}

#[test]
fn files_are_found_next_to_the_scenario() {
    let directory = std::env::temp_dir().join(format!("anabranch-dash-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let mpd = "<MPD mediaPresentationDuration=\"PT8S\"><Period><AdaptationSet mimeType=\"video/mp4\">\n\
        <SegmentTemplate media=\"$Number$\" duration=\"4\"/><Representation bandwidth=\"800000\"/></AdaptationSet></Period></MPD>";
    std::fs::write(directory.join("a.mpd"), mpd).unwrap();
    std::fs::write(directory.join("broken.mpd"), "<MPD>\n<Period>").unwrap();
    let table = r#"{"segment_duration_ms": 3000, "bitrates_kbps": [100], "segment_sizes_bits": [[8000], [16000]]}"#;
    std::fs::write(directory.join("a.json"), table).unwrap();
    let read = |video: &str| {
        let text = format!(
            "schema = 1\nduration = \"60 s\"\n[link.a]\nrate = \"2 Mb/s\"\n[[session]]\nvideo = {{ kind = \"dash\", {video} }}\n"
        );
        load(&text, "dash.toml", Some(&directory), &[])
    };
    let of = |video: &str| {
        let scenario = read(video).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(
            load(&scenario.resolved(), "dash.toml", None, &[]).as_ref(),
            Ok(&scenario),
            "{}",
            scenario.resolved()
        );
        let Video::Dash(content) = &scenario.sessions[0].video else { panic!() };
        content.video().clone()
    };
    assert_eq!(of("mpd = \"a.mpd\"").bytes(0, 1), 400_000);
    assert_eq!(of("mpd = \"a.mpd\", period = 1, adaptation_set = 1, duration = \"6 s\"").segments(), 2);
    assert_eq!(of("table = \"a.json\"").bytes(0, 1), 2_000, "as it is");
    let error = read("mpd = \"broken.mpd\"").unwrap_err();
    assert_eq!(error.line, 6);
    assert!(error.message.contains("broken.mpd:") && error.message.contains("not well-formed XML"), "{error}");
    let error = read("table = \"none.json\"").unwrap_err();
    assert!(error.line == 6 && error.message.contains("none.json"), "{error}");
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn what_of_an_mpd_is_not_played_is_a_warning_where_the_scenario_names_it() {
    let directory = std::env::temp_dir().join(format!("anabranch-mpd-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let mpd = "<?xml version='1.0' encoding='ISO-8859-1'?><MPD><!--\u{e9}--><Period duration='PT8S'><AdaptationSet contentType='video'>\n\
        <SegmentTemplate media='$Number$' duration='4'/><Representation bandwidth='8'/></AdaptationSet></Period>\n<Period id='ad'/></MPD>";
    let latin: Vec<u8> = mpd.chars().map(|c| c as u8).collect();
    std::fs::write(directory.join("a.mpd"), &latin).unwrap();
    let text = "schema = 1\nduration = \"60 s\"\n[link.a]\nrate = \"2 Mb/s\"\n[[session]]\nvideo = { kind = \"dash\", mpd = \"a.mpd\" }\n";
    let scenario = load(text, "dash.toml", Some(&directory), &[]).unwrap();
    let [warning] = &scenario.warnings[..] else { panic!("{:?}", scenario.warnings) };
    assert_eq!(warning.kind.word(), "manifest");
    let shown = warning.to_string();
    assert!(shown.starts_with("dash.toml:6:32: "), "{shown}");
    assert!(shown.contains("a.mpd:3:1: period ad is empty: it has no AdaptationSet, and is skipped"), "{shown}");
    let portable = scenario.portable();
    assert_eq!(portable.files[0].1[..], latin[..], "the file is kept byte by byte");
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn mistakes_are_reported_where_they_are() {
    let video = |keys: &str| format!("video = {{ kind = \"dash\", {keys} }}");
    let player = |keys: &str| format!("video = {{ kind = \"dash\", ladder = \"bbb-1s\" }}\nplayer = {{ {keys} }}");
    let statistics =
        |keys: &str| format!("video = {{ kind = \"dash\", ladder = \"bbb-1s\" }}\nstatistics = {{ {keys} }}");
    let cases = [
        (video("seed = 1"), 6, "no `ladder`"),
        (video("ladder = \"bbb-1s\", mpd = \"a.mpd\""), 6, "`video` has `ladder` and `mpd`"),
        (video("ladder = \"bbb-3s\""), 6, "unknown ladder `bbb-3s`"),
        (video("ladder = \"bbb-1s\", period = 2"), 6, "only a video with `mpd` has `period`"),
        (
            video("ladder = \"bbb-1s\", segment_duration = \"2 s\""),
            6,
            "only a video with `rates` or `mpd` has `segment_dur",
        ),
        (video("ladder = \"bbb-1s\", resolutions = []"), 6, "only a video with `rates` has `resolutions`"),
        (video("ladder = \"bbb-1s\", duration = \"0 s\""), 6, "no media segments"),
        (video("ladder = \"bbb-1s\", scene_variation = -1"), 6, "`scene_variation` is -1"),
        (video("ladder = \"bbb-1s\", scene_length = \"0 s\""), 6, "`scene_length` is zero"),
        (video("table = \"a.json\", duration = \"9 s\""), 6, "its own duration"),
        (video("ladder = \"bbb-1s\", rate = \"1 Mb/s\""), 6, "`rate`"),
        (player("kind = \"vlc\""), 7, "needs a progressive video"),
        (player("kind = \"dash.js-2.9\", buffer = \"0 s\""), 7, "`buffer` is zero"),
        (player("kind = \"dash.js-2.9\", fast_switch = true"), 7, "no option `fast_switch`"),
        (player("kind = \"bola\", cmcd = true"), 7, "no option `cmcd`"),
        (player("kind = \"dash.js-2.2\", strategy = \"bola\""), 7, "no option `strategy`"),
        (player("kind = \"dash.js-2.9\", strategy = \"bolla\""), 7, "`bolla`"),
        (player("kind = \"rate\", audio = \"0 kb/s\""), 7, "`audio` is zero"),
        (player("kind = \"rate\", give_up = \"drian\""), 7, "`drian`"),
        (player("kind = \"robust-mpc\", horizon = 0"), 7, "`horizon` must be"),
        (player("kind = \"rate\", max_resolution = \"720p\""), 7, "`max_resolution` is `720p`"),
        (player("kind = \"rate\", initial_representation = 20"), 7, "the video has 20 representations"),
        (player("kind = \"fixed\", representation = 20"), 7, "`representation` is 20"),
        (player("kind = \"rate\", caching = \"1 s\""), 7, "no option `caching`"),
        (statistics("from = \"9 s\", to = \"3 s\""), 7, "`to` is not after `from`"),
        (statistics("from = \"9 s\""), 7, "no `to`"),
        (statistics("stall_penalty = -1"), 7, "`stall_penalty` is -1"),
        ("statistics = { to = \"9 s\" }".to_string(), 6, "`statistics` are of a DASH video"),
    ];
    for (session, line, message) in cases {
        let error = with(&session).expect_err(&session);
        assert_eq!(error.line, line, "{session}: {error}");
        assert!(error.message.contains(message), "{session}: {error}");
    }
}

#[test]
fn what_a_player_is_told_is_written_and_read_again() {
    let everything = "video = { kind = \"dash\", ladder = \"bbb-2s\", duration = \"100 s\", scene_variation = 0.5 }\n\
        player = { kind = \"dash.js-5\", buffer = \"10 s\", buffer_at_top = \"20 s\", startup = \"2 s\", resume = \"3 s\", \
        initial_bitrate = \"500 kb/s\", initial_representation = 3, max_bitrate = \"2 Mb/s\", max_resolution = \"854x480\", \
        audio = \"128 kb/s\", give_up = \"drain\", fast_switch = false, cmcd = true, strategy = \"throughput\", dropped_frames = true, progress_timing = true }\n\
        statistics = { from = \"10 s\", to = \"90 s\", switch_penalty = 3, log_stall_penalty = 1.5 }";
    let scenario = with(everything).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(load(&scenario.resolved(), "dash.toml", None, &[]).as_ref(), Ok(&scenario), "{}", scenario.resolved());
    let session = &scenario.sessions[0];
    let options: &PlayerOptions = &session.player.options;
    assert_eq!(options.dash.max_resolution, Some(Resolution { width: 854, height: 480 }));
    assert_eq!(options.dash.rule.strategy, Some(Strategy::Throughput));
    let statistics = session.statistics.as_ref().unwrap();
    assert_eq!(statistics.window(), Some((Duration::from_secs(10), Duration::from_secs(90))));
    assert_eq!((statistics.switch_penalty, statistics.stall_penalty), (3.0, 3_000.0));
    assert_eq!((statistics.log_stall_penalty, statistics.log_startup_penalty), (1.5, 0.0));
    let others = [
        "kind = \"bba-0\", buffer = \"100 s\"",
        "kind = \"bola\", finite = false, buffer = \"20 s\"",
        "kind = \"rate\", samples = 3, safety = 0.8",
        "kind = \"robust-mpc\", horizon = 3, stall_penalty = 2500, switch_penalty = 0.5",
        "kind = \"fixed\", representation = 2",
    ];
    for player in others {
        let text = format!("video = {{ kind = \"dash\", ladder = \"bbb-2s\" }}\nplayer = {{ {player} }}");
        let scenario = with(&text).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(load(&scenario.resolved(), "dash.toml", None, &[]).as_ref(), Ok(&scenario), "{player}");
    }
}

#[test]
fn without_a_word_dash_js_5_plays() {
    let scenario = with("video = { kind = \"dash\", ladder = \"bbb-1s\" }").unwrap();
    assert_eq!(scenario.sessions[0].player.kind, "dash.js-5");
    assert_eq!(scenario.sessions[0].statistics, None, "nothing is said of them");
    let spelt = with("video = { kind = \"dash\", ladder = \"bbb-1s\" }\nstatistics = { }").unwrap();
    assert_eq!(spelt.sessions[0].statistics, Some(Statistics::default()));
}
