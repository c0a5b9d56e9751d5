//! Reducers over whole runs.

use anabranch_observation::reducers::{REDUCERS, read_account, read_forecasts, reduce};
use anabranch_observation::{Column, Outcome};
use anabranch_scenario::{Scenario, load};
use anabranch_sim::{RunOptions, run};
use std::collections::BTreeMap;

/// Two paths, one of which is cut, and a video that they hardly carry.
const CUT: &str = r#"
schema = 1
duration = "120 s"
[link.a]
rtt = "50 ms"
rate = "3 Mb/s"
queue = "64 kB"
[link.b]
rtt = "100 ms"
rate = "3 Mb/s"
queue = "64 kB"
[[session]]
video = { kind = "progressive", size = "25 MB", rate = "5 Mb/s" }
player = "vlc-2"
[[event]]
at = "20 s"
link = "a"
down = true
"#;

const DASH: &str = r#"
schema = 1
duration = "60 s"
[link.a]
rtt = "50 ms"
rate = "2 Mb/s"
[link.b]
rtt = "20 ms"
rate = "1 Mb/s"
[[session]]
video = { kind = "dash", ladder = "bbb-1s", duration = "20 s" }
"#;

fn all() -> Vec<String> {
    REDUCERS.names().map(String::from).collect()
}

fn simulate(text: &str, record_events: bool) -> (Scenario, Outcome) {
    let scenario = load(text, "reducers", None, &[]).unwrap();
    let options = RunOptions { seed: 1, record_events, record_forecasts: true, account: true };
    let outcome = run(&scenario, &options, &mut |_| true);
    (scenario, outcome)
}

fn reduced(text: &str) -> BTreeMap<String, Option<f64>> {
    let (scenario, outcome) = simulate(text, false);
    let mut sessions = reduce(&scenario, &outcome, &all());
    assert_eq!(sessions.len(), 1);
    sessions.remove(0).into_iter().collect()
}

#[test]
fn a_run_that_was_stopped_at_once_has_the_same_columns() {
    for text in [CUT, DASH] {
        let scenario = load(text, "reducers", None, &[]).unwrap();
        let options = RunOptions { record_forecasts: true, ..RunOptions::default() };
        let outline = run(&scenario, &options, &mut |_| false);
        let names = |numbers: Vec<(String, Option<f64>)>| numbers.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let (_, whole) = simulate(text, false);
        let of = |outcome| names(reduce(&scenario, outcome, &all()).remove(0));
        assert_eq!(of(&outline), of(&whole));
        for name in of(&whole) {
            assert!(all().iter().any(|reducer| name == *reducer || name.starts_with(&format!("{reducer}."))), "{name}");
        }
    }
}

#[test]
fn a_cut_has_a_recovery_and_switches_have_areas() {
    let numbers = reduced(CUT);
    // The other path carries 3 Mb/s and never the video's rate: until the end.
    let recovery = numbers["recovery_s"].unwrap();
    assert!((20.0..101.0).contains(&recovery), "{recovery}");
    assert!(numbers["switch_areas.underflow"].is_some(), "there are underflows after the cut, and none before");
    assert!(numbers["sampled_throughput.a.mean_bps"].unwrap() > 1e6);
    assert_eq!(numbers["segment_delivery.delay_mean_s"], None, "it has no media segments");
}

#[test]
fn the_shares_of_link_time_are_of_one_whole() {
    for text in [CUT, DASH] {
        let numbers = reduced(text);
        let shares = numbers.iter().filter(|(name, _)| name.starts_with("link_time."));
        let sum: f64 = shares.clone().map(|(_, share)| share.unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        assert!(shares.clone().all(|(_, share)| share.unwrap() >= 0.0));
        assert!(numbers["link_time.useful_share"].unwrap() > 0.1);
    }
    assert!(reduced(CUT)["link_time.link_down_share"].unwrap() > 0.1, "one of two links is cut");
    assert_eq!(reduced(DASH)["link_time.link_down_share"], Some(0.0));
}

#[test]
fn only_the_shares_of_link_time_need_an_account() {
    let needed: Vec<_> = all().into_iter().filter(|name| read_account(std::slice::from_ref(name))).collect();
    assert_eq!(needed, ["link_time"]);
}

#[test]
fn media_segments_are_those_of_the_metrics() {
    let (_, outcome) = simulate(DASH, false);
    let segments = &outcome.metrics.sessions[0].dash().unwrap().media_segments;
    let mean = segments.iter().map(|segment| segment.download_s).sum::<f64>() / segments.len() as f64;
    let numbers = reduced(DASH);
    assert!((numbers["segment_delivery.delay_mean_s"].unwrap() - mean).abs() < 1e-12);
    assert!(numbers["segment_delivery.delay_p90_s"].unwrap() >= mean * 0.9);
    assert!(numbers["segment_delivery.second_bitrate_bps"].unwrap() > 4e4);
    assert_eq!((numbers["recovery_s"], numbers["switch_areas.discard"]), (None, None));
}

#[test]
fn the_recording_has_the_switches_and_discards_of_the_table_of_events() {
    let (_, outcome) = simulate(CUT, true);
    let events = outcome.events.as_ref().unwrap();
    let column = |name: &str| &events.columns.iter().find(|(n, _)| *n == name).unwrap().1;
    let Column::Text { words, codes } = column("event") else { panic!() };
    let named = |event: &str| -> Vec<usize> {
        let code = words.iter().position(|word| word == event).map(|at| at as u32);
        (0..codes.len()).filter(|row| code.is_some() && codes[*row] == code).collect()
    };
    let (Column::Flag(new_data), Column::Float(ratio)) = (column("new_data"), column("underflow_ratio")) else {
        panic!()
    };
    let Column::Integer(numbers) = column("frame") else { panic!() };
    let switches: Vec<u64> = named("path-switched")
        .into_iter()
        .filter(|row| new_data[*row] == Some(true))
        .map(|row| ratio[row].to_bits())
        .collect();
    let recording = &outcome.recording.sessions[0];
    assert!(switches.len() > 100);
    let forecasts = recording.forecasts.as_ref().unwrap().iter();
    assert_eq!(forecasts.map(|forecast| forecast.underflow_ratio.to_bits()).collect::<Vec<_>>(), switches);
    let discarded: Vec<i64> = named("picture-discarded").into_iter().map(|row| numbers[row]).collect();
    assert_eq!(recording.discarded.iter().map(|picture| i64::from(*picture)).collect::<Vec<_>>(), discarded);
}

#[test]
fn only_the_areas_of_switches_need_forecasts_and_a_run_keeps_none_without_them() {
    let needed: Vec<_> = all().into_iter().filter(|name| read_forecasts(std::slice::from_ref(name))).collect();
    assert_eq!(needed, ["switch_areas"]);
    let (scenario, kept) = simulate(CUT, false);
    let options = RunOptions { seed: 1, ..RunOptions::default() };
    let plain = run(&scenario, &options, &mut |_| true);
    assert_eq!(plain.recording.sessions[0].forecasts, None);
    assert_eq!(plain.account, None);
    assert_eq!(plain.metrics, kept.metrics);
    let others: Vec<_> = all().into_iter().filter(|name| name != "switch_areas" && name != "link_time").collect();
    assert_eq!(reduce(&scenario, &plain, &others), reduce(&scenario, &kept, &others));
}
