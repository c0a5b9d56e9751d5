//! Whole DASH sessions: every player, its events and metrics, several viewers.

use super::tests::{scenario, simulate};
use super::*;
use anabranch_observation::Metrics;
use anabranch_observation::{Column, EventColumns, SessionMetrics};
use anabranch_scenario::catalogue;
use anabranch_scenario::load;
use std::collections::BTreeMap;

/// Two paths of 1 Mb/s and 30 ms each way, Big Buck Bunny in 2 s segments.
const DASH: &str = "duration = \"200 s\"\n[link.a]\ndelay = \"30 ms\"\nrate = \"1 Mb/s\"\n[link.b]\ndelay = \"30 ms\"\n\
    rate = \"1 Mb/s\"\n[[session]]\nvideo = { kind = \"dash\", ladder = \"bbb-2s\", duration = \"60 s\" }\n";

#[test]
fn every_dash_player_streams_over_two_paths() {
    for player in ["dash.js-2.2", "dash.js-2.9", "dash.js-5", "bba-0", "bola", "robust-mpc", "rate"] {
        let scenario = scenario(&format!("{DASH}player = \"{player}\"\n"));
        let outcome =
            run(&scenario, &RunOptions { seed: 1, record_events: true, ..RunOptions::default() }, &mut |_| true);
        let session = &outcome.metrics.sessions[0];
        let dash = session.dash().unwrap();
        assert_eq!(outcome.metrics.ended, Ended::Finished, "{player}");
        let played_s = session.viewer.as_ref().unwrap().played_s;
        assert!((played_s - 60.0).abs() < 1e-6, "{player}: {played_s}");
        // An abandoned request closes its connection, and a new one is opened. A second subflow joins each connection
        // that lives long enough at the server: as long as that of the first one took, over idle links.
        let events = outcome.events.as_ref().unwrap();
        let (begun, joined) = (at_server(events, "subflow-opened", "a"), at_server(events, "subflow-opened", "b"));
        assert_eq!(begun.len(), 1 + dash.abandoned_requests as usize, "{player}");
        let ended = at_server(events, "subflow-closed", "a").into_iter().chain([f64::INFINITY]);
        let lives: Vec<(f64, f64)> = begun.iter().copied().zip(ended).collect();
        let joins = lives.iter().map(|(from, to)| joined.iter().filter(|at| (*from..*to).contains(*at)).count());
        let join_s = joined[0] - begun[0];
        let expected = lives.iter().map(|(from, to)| usize::from(to - from > join_s));
        assert_eq!(joins.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{player}: {lives:?}, {joined:?}");
        let reported = |path: &str| session.transport.subflows.iter().filter(|subflow| subflow.path == path).count();
        assert_eq!((reported("a"), reported("b")), (begun.len(), joined.len()), "{player}");
        assert_eq!(joined.len() < begun.len(), player == "bola", "{player}: only BOLA abandons requests that fast");
        // The played bytes came over the paths, and are no more than these carry.
        let mean = dash.mean_bitrate_bps.unwrap();
        assert!((45_652.0..2e6).contains(&mean), "{player}: {mean}");
        let media: u64 = dash.media_segments.iter().map(|s| s.bytes).sum();
        assert!(dash.media_segments.len() >= 30 && session.bytes > media, "{player}");
        let ordered = dash.media_segments.windows(2).all(|w| w[0].finished_s <= w[1].requested_s);
        assert!(ordered, "{player}: one request at a time");
        let json: serde_json::Value = serde_json::from_str(&outcome.metrics.to_json(None)).unwrap();
        assert_eq!(json["sessions"][0]["switches"], dash.switches, "{player}");
    }
}

/// The texts of a column of the table of events.
fn texts<'a>(events: &'a EventColumns, name: &str) -> Vec<Option<&'a str>> {
    let Some((_, Column::Text { words, codes })) = events.columns.iter().find(|(n, _)| *n == name) else {
        panic!("{name} is no column of texts")
    };
    codes.iter().map(|code| code.map(|code| words[code as usize].as_str())).collect()
}

/// When the server emitted an event of a subflow on a path, in seconds.
fn at_server(events: &EventColumns, event: &str, path: &str) -> Vec<f64> {
    let Some((_, Column::Float(times))) = events.columns.iter().find(|(n, _)| *n == "time_s") else {
        panic!("no times")
    };
    let names = texts(events, "source").into_iter().zip(texts(events, "event")).zip(texts(events, "path"));
    let wanted = |((source, name), on): &((Option<&str>, Option<&str>), Option<&str>)| {
        source.is_some_and(|source| source.ends_with("/server")) && *name == Some(event) && *on == Some(path)
    };
    times.iter().zip(names).filter(|(_, names)| wanted(names)).map(|(time, _)| *time).collect()
}

#[test]
fn a_dash_session_emits_events_of_all_its_actions() {
    let scenario = scenario(DASH);
    let outcome = run(&scenario, &RunOptions { seed: 1, record_events: true, ..RunOptions::default() }, &mut |_| true);
    let events = outcome.events.unwrap();
    let column = |name: &str| events.columns.iter().find(|(n, _)| *n == name).map(|(_, c)| c.clone()).unwrap();
    let Column::Text { words, codes } = column("event") else { panic!() };
    let count = |word: &str| codes.iter().filter(|code| words[code.unwrap() as usize] == word).count();
    let dash = outcome.metrics.sessions[0].dash().unwrap();
    // What replaces a media segment may come too late for it.
    assert!((30..=dash.media_segments.len()).contains(&count("segment-appended")));
    assert_eq!(count("segment-shown"), 30);
    assert!(count("representation-chosen") >= 30 && count("buffer-state-changed") >= 1);
}

#[test]
fn an_abandoned_request_leaves_its_place_to_the_next() {
    // 4.2 Mb/s over 2 x 1 Mb/s: the first requests cannot come in time.
    let wasted = |give_up: &str| {
        let player =
            format!("player = {{ kind = \"dash.js-2.9\", initial_representation = 19, give_up = \"{give_up}\" }}\n");
        let outcome = simulate(&format!("{DASH}{player}"), 1);
        let session = &outcome.metrics.sessions[0];
        let dash = session.dash().unwrap();
        assert_eq!(outcome.metrics.ended, Ended::Finished, "{give_up}");
        assert!(dash.abandoned_requests > 0, "{give_up}");
        assert_eq!(dash.media_segments.len(), 30, "{give_up}");
        let media: u64 = dash.media_segments.iter().map(|s| s.bytes).sum();
        // The bytes read by the client: bodies, wasted ones included, and headers, initialisation segments and the MPD.
        let rest = session.bytes - media - dash.wasted_bytes;
        assert!((9_321..50_000).contains(&rest), "{give_up}: {rest}");
        dash.wasted_bytes
    };
    assert!(wasted("cancel") < wasted("drain"));
    assert!(wasted("close") < wasted("drain"));
}

/// The first session of a shipped scenario with these overrides.
fn shipped(name: &str, overrides: &[(&str, &str)]) -> Metrics {
    let overrides: Vec<_> = overrides.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let scenario = load(catalogue::scenario(name).unwrap().text, name, None, &overrides).unwrap();
    run(&scenario, &RunOptions { seed: 1, ..RunOptions::default() }, &mut |_| true).metrics
}

/// Means over the media segments of the total wait, and of that for other subflows.
fn waits(session: &SessionMetrics) -> (f64, f64) {
    let list = &session.dash().unwrap().media_segments;
    let mean = |of: fn(&anabranch_observation::MediaSegmentReport) -> Option<f64>| {
        list.iter().map(|segment| of(segment).unwrap()).sum::<f64>() / list.len() as f64
    };
    (mean(|s| s.reorder_wait_s), mean(|s| s.reorder_wait_across_s))
}

#[test]
fn media_segments_wait_for_the_slow_path_over_two_paths_and_only_for_repairs_over_one() {
    let unequal = "duration = \"200 s\"\n[link.a]\ndelay = \"30 ms\"\nrate = \"300 kb/s\"\n[link.b]\ndelay = \"30 ms\"\n\
        rate = \"1700 kb/s\"\n[[session]]\nvideo = { kind = \"dash\", ladder = \"bbb-2s\", duration = \"60 s\" }\n";
    let outcome = simulate(unequal, 1);
    let session = &outcome.metrics.sessions[0];
    let (all, across) = waits(session);
    assert!(across > 0.02 && across <= all, "{all} {across}");
    for segment in &session.dash().unwrap().media_segments {
        let [wait, longest] = [segment.reorder_wait_s, segment.reorder_wait_max_s].map(Option::unwrap);
        assert!(wait <= longest && longest <= segment.finished_s - segment.requested_s, "{segment:?}");
    }
    let single = unequal.replace("[[session]]", "[transport]\nprotocol = \"tcp\"\n[[session]]");
    let lossy = single.replace("rate = \"300 kb/s\"", "rate = \"2 Mb/s\"\nloss = \"1 %\"");
    let (all, across) = waits(&simulate(&lossy, 1).metrics.sessions[0]);
    assert!(all > 0.0 && across == 0.0, "{all} {across}");
}

#[test]
fn the_metrics_count_the_actions_of_pud_and_mcc() {
    let overrides = [("transport.path_policy", "pud"), ("transport.congestion_control", "mcc")];
    let metrics = shipped("dash/ratio-1-5", &overrides);
    let session = &metrics.sessions[0];
    let [slow, fast] = &session.transport.subflows[..] else { panic!("two subflows") };
    // 333 of 1667 kb/s is below 0.6.
    let spans = slow.disabled_spans_s.as_ref().unwrap();
    assert!(slow.times_disabled.unwrap() >= 1 && slow.disabled_s.unwrap() > 200.0, "{slow:?}");
    assert_eq!(Some(spans.len() as u64), slow.times_disabled);
    assert!(spans[0].0 >= 15.0, "the first decision needs 150 samples of 100 ms");
    assert_eq!((fast.times_disabled, fast.disabled_s), (Some(0), Some(0.0)));
    for subflow in [slow, fast] {
        let count = |name| subflow.control_counts.as_ref().unwrap()[name];
        assert!(count("rtt_samples") > 50 && count("theta_triggers") <= count("rtt_samples"), "{subflow:?}");
    }
    assert!(session.transport.total_window.unwrap().variation > 0.0);
    let counts = shipped("dash/tcp-2000", &[]).sessions[0].transport.subflows[0].control_counts.clone();
    assert_eq!(counts, Some(BTreeMap::new()));
}

#[test]
fn a_warm_up_is_of_goodputs_and_of_nothing_else() {
    let all = shipped("dash/ratio-1-1", &[("duration", "40 s")]);
    let late = shipped("dash/ratio-1-1", &[("duration", "40 s"), ("warm_up", "20 s")]);
    let [of_all, of_late] = [&all, &late].map(|metrics| metrics.sessions[0].transport.goodput_bps);
    assert!((of_all / of_late - 1.0).abs() > 1e-3, "{of_all} {of_late}");
    let rest = |metrics: &Metrics| {
        let mut json: serde_json::Value = serde_json::from_str(&metrics.to_json(None)).unwrap();
        let session = &mut json["sessions"][0];
        session["goodput_bps"].take();
        for subflow in session["subflows"].as_array_mut().unwrap() {
            subflow["goodput_bps"].take();
        }
        json
    };
    assert_eq!(rest(&all), rest(&late));
}

#[test]
fn four_viewers_finish_and_none_is_starved() {
    let metrics = shipped("dash/four-viewers", &[]);
    assert_eq!((metrics.ended, metrics.sessions.len()), (Ended::Finished, 4));
    let fairness = metrics.fairness.unwrap();
    let bitrates: Vec<f64> = metrics.sessions.iter().map(|s| s.dash().unwrap().mean_bitrate_bps.unwrap()).collect();
    let (sum, squares) = (bitrates.iter().sum::<f64>(), bitrates.iter().map(|x| x * x).sum::<f64>());
    assert_eq!(fairness.viewers, 4);
    assert!((fairness.jain_mean_bitrate.unwrap() - sum * sum / (4.0 * squares)).abs() < 1e-12);
    // Their total rate is below that of both links, and each has at least half of an equal share of it.
    assert!(sum < 12e6, "{bitrates:?}");
    assert!(bitrates.iter().all(|bitrate| *bitrate > sum / 8.0), "{bitrates:?}");
    let alone = shipped("dash/ratio-1-1", &[]);
    assert_eq!(alone.fairness, None);
}
