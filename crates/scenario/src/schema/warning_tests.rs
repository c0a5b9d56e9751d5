//! What is legal and gets a warning, and what is not even legal.

use super::*;
use crate::error::Error;
use crate::warning::{Warning, WarningKind};

const TEXT: &str = r#"
schema = 1
duration = "60 s"
[link.wifi]
rtt = "50 ms"
rate = "2 Mb/s"
[link.lte]
rtt = "50 ms"
rate = "1 Mb/s"
[[session]]
video = { kind = "bulk" }
[[traffic]]
path = "lte"
count = 3
stagger = "10 s"
[[event]]
at = "30 s"
link = "wifi"
rate = "3 Mb/s"
[[event]]
at = "10 s"
link = "lte"
down = true
"#;

fn with(overrides: &[(&str, &str)]) -> Result<Scenario, Error> {
    let overrides: Vec<_> = overrides.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    load(TEXT, "odd.toml", None, &overrides)
}

fn warnings(overrides: &[(&str, &str)]) -> Vec<Warning> {
    with(overrides).unwrap_or_else(|error| panic!("{error}")).warnings
}

#[test]
fn a_scenario_that_means_what_it_says_has_no_warning() {
    assert_eq!(warnings(&[]), []);
    assert_eq!(warnings(&[("duration", "30.001 s")]), []);
}

#[test]
fn an_event_after_the_end_is_a_warning_with_its_place() {
    let found = warnings(&[("duration", "30 s")]);
    let [warning] = &found[..] else { panic!("{found:?}") };
    assert_eq!(warning.kind, WarningKind::EventAfterEnd);
    let line = TEXT.lines().position(|line| line == "at = \"30 s\"").unwrap() + 1;
    let expected = format!("odd.toml:{line}:6: [[event]] 0 is at 30 s, when the run is over (30 s): it never happens");
    assert_eq!(warning.to_string(), expected);
    let found = warnings(&[("event.1.at", "1 h")]);
    assert_eq!(found[0].place, "--set event.1.at=1 h");
    assert_eq!(found.len(), 1);
}

#[test]
fn a_start_after_the_end_is_a_warning() {
    let found = warnings(&[("session.0.start", "60 s"), ("traffic.0.stagger", "40 s")]);
    assert!(found.iter().all(|warning| warning.kind == WarningKind::StartAfterEnd), "{found:?}");
    let messages: Vec<&str> = found.iter().map(|warning| warning.message.as_str()).collect();
    let expected = [
        "[[session]] 0 begins at 60 s, when the run is over (60 s)",
        "[[traffic]] 0 has its last start at 80 s, when the run is over (60 s)",
    ];
    assert_eq!(messages, expected);
}

#[test]
fn viewers_whom_pacing_does_not_compare_are_a_warning() {
    let viewers = |count, pacing| warnings(&[("session.0.count", count), ("server.response_pacing", pacing)]);
    let found = viewers("257", "levels");
    let [warning] = &found[..] else { panic!("{found:?}") };
    assert_eq!(warning.kind, WarningKind::Unpaced);
    assert_eq!(warning.message, "`levels` paces 256 viewers at a time, and not the others of the 257 sessions");
    assert_eq!([viewers("256", "levels"), viewers("257", "sammy"), viewers("257", "off")], [[], [], []]);
}

#[test]
fn more_samples_than_fit_into_memory_are_refused_with_the_least_interval() {
    let error = with(&[("sample_interval", "1 ns")]).unwrap_err();
    assert!(error.message.contains("60000000000 samples in 60 s"), "{error}");
    assert_eq!(error.expected, "at least \"6 us\" for this `duration`");
    assert!(with(&[("sample_interval", "6 us")]).is_ok(), "what the message expects is taken");
    // Of a crowd only the first sixteen are recorded.
    let error = with(&[("sample_interval", "6 us"), ("session.0.count", "100")]).unwrap_err();
    assert!(error.message.contains("of 16 sessions"), "{error}");
    assert!(error.expected.contains("96 us"), "{error}");
    assert!(with(&[("sample_interval", "96 us"), ("session.0.count", "100")]).is_ok());
    let error = with(&[("duration", "1000000 h")]).unwrap_err();
    assert!(error.expected.contains("s\" for this `duration`"), "{error}");
}

#[test]
fn a_path_goes_over_each_link_once() {
    let text = TEXT.replace("[[session]]", "[path.both]\nlinks = [\"wifi\", \"lte\", \"wifi\"]\n[[session]]");
    let text = text.replace("path = \"lte\"", "path = \"both\"");
    let error = load(&text, "odd.toml", None, &[]).unwrap_err();
    assert_eq!(error.message, "link `wifi` stands twice in `links`");
    assert_eq!((error.line > 0, error.column), (true, 25));
}

#[test]
fn a_rate_of_zero_all_the_time_is_refused_and_an_event_may_raise_it() {
    for (key, value, which) in [
        ("link.lte.rate", "0 b/s", "up"),
        ("link.lte.down.rate", "0 b/s", "down"),
        ("link.lte.rate", "{ synthetic = \"lte\", mean = \"0 b/s\" }", "up"),
        ("link.lte.rate", "{ rate = \"0 b/s\", burst = \"10 kB\" }", "up"),
    ] {
        let Err(error) = with(&[(key, value)]) else { panic!("{key} = {value} was taken") };
        assert!(error.file.contains(key), "{error}");
        let all_the_time = error.message.ends_with("is zero all the time") && error.message.contains("[link.lte]");
        assert!(all_the_time || error.message.contains("zero"), "{error}");
        assert!(!all_the_time || error.message.contains(&format!("({which})")) || which == "up", "{error}");
    }
    // The first event gives WiFi a rate; before that it has none.
    assert!(with(&[("link.wifi.rate", "0 b/s")]).is_ok());
    assert!(with(&[("link.wifi.rate", "0 b/s"), ("event.0.rate", "0 b/s")]).is_err());
}

#[test]
fn a_trace_of_zeros_is_refused() {
    let folder = std::env::temp_dir().join(format!("anabranch-zero-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("zero.csv"), "0,0\n1,0\n2,0\n").unwrap();
    let text = TEXT.replace("rate = \"1 Mb/s\"", "rate = { trace = \"zero.csv\", unit = \"Mb/s\" }");
    let error = load(&text, "odd.toml", Some(&folder), &[]).unwrap_err();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(error.message.contains("zero"), "{error}");
}

#[test]
fn bola_with_less_than_three_media_segments_is_a_warning() {
    let with = |ladder: &str, player: &str| {
        let video = format!("{{ kind = \"dash\", ladder = \"{ladder}\", duration = \"100 s\" }}");
        warnings(&[("session.0.video", &video), ("session.0.player", player)])
    };
    let found = with("bbb-10s", "{ kind = \"bola\" }");
    let [warning] = &found[..] else { panic!("{found:?}") };
    assert_eq!(warning.kind, WarningKind::OutsideDomain);
    let expected = "`bola` has a buffer of 25 s and needs three media segments (30 s at 10 s each)";
    assert!(warning.message.starts_with(expected), "{warning}");
    assert_eq!(with("bbb-10s", "{ kind = \"bola\", buffer = \"30 s\" }"), []);
    assert_eq!(with("bbb-10s", "{ kind = \"bola\", buffer = \"29 s\" }").len(), 1);
    assert_eq!(with("bbb-6s", "{ kind = \"bola\" }"), []);
    assert_eq!(with("bbb-10s", "{ kind = \"robust-mpc\" }"), []);
}
