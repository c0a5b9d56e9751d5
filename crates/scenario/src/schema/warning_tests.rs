//! What is legal and odd, and what is not even legal.

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
