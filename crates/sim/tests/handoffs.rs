//! Handoffs: whether data reaches the player while one path is cut and another one works, under every congestion control, every
//! scheduler and both commit models.

use anabranch_observation::{Column, Ended, EventColumns, Outcome};
use anabranch_scenario::{Scenario, catalogue, load};
use anabranch_sim::{RunOptions, run};
use anabranch_stack::{congestion, scheduler};

/// When the path is cut, and the length of the video, in seconds: short, so that some eight hundred runs take half a minute.
const CUT_S: f64 = 20.0;
const VIDEO_S: f64 = 60.0;
/// Time for stalls besides.
const DURATION_S: f64 = 200.0;
/// The longest time without data.
const LONGEST_GAP_S: f64 = 10.0;

/// Runs that may wait longer, with the reason.
const EXCEPTIONS: &[(&str, &str, &str, &str, &str)] = &[];

fn overridden(text: &str, name: &str, overrides: &[(String, String)]) -> Scenario {
    load(text, name, None, overrides).unwrap_or_else(|error| panic!("{error}"))
}

/// The shipped scenarios in which a link is cut for good or for a while, with what makes them short.
fn handoffs() -> Vec<(&'static catalogue::Shipped, Vec<(String, String)>)> {
    let shortened = |shipped: &'static catalogue::Shipped| {
        let scenario = overridden(shipped.text, shipped.name, &[]);
        let cut = scenario.events.iter().find(|event| event.cut == Some(true))?;
        let scale = CUT_S / cut.at.as_secs_f64();
        let mut changes = vec![("duration".into(), format!("{DURATION_S} s"))];
        for (number, event) in scenario.events.iter().enumerate() {
            changes.push((format!("event.{number}.at"), format!("{} s", event.at.as_secs_f64() * scale)));
        }
        changes.push(if shipped.text.contains("kind = \"progressive\"") {
            // All of them play 5.24 Mb/s.
            ("session.0.video.size".into(), format!("{} B", VIDEO_S * 5.24e6 / 8.0))
        } else {
            ("session.0.video.duration".into(), format!("{VIDEO_S} s"))
        });
        Some((shipped, changes))
    };
    catalogue::SCENARIOS.iter().filter_map(shortened).collect()
}

/// The longest time in which the application got nothing, from the first byte to the last one that it got, or to the end of a
/// run that did not finish; and when it began.
fn longest_gap(outcome: &Outcome) -> (f64, f64) {
    let mut times = deliveries(outcome.events.as_ref().unwrap());
    if outcome.metrics.ended != Ended::Finished {
        times.push(outcome.metrics.sim_seconds);
    }
    let gaps = times.windows(2).map(|pair| (pair[1] - pair[0], pair[0]));
    gaps.fold((0.0, 0.0), |longest, gap| if gap.0 > longest.0 { gap } else { longest })
}

/// When the client's application got data.
fn deliveries(events: &EventColumns) -> Vec<f64> {
    let column = |name: &str| &events.columns.iter().find(|(n, _)| *n == name).unwrap().1;
    let words = |name: &str| match column(name) {
        Column::Text { words, codes } => codes.iter().map(|code| code.map(|code| words[code as usize].as_str())),
        other => panic!("{name} is no text: {other:?}"),
    };
    let Column::Float(times) = column("time_s") else { panic!("times are numbers") };
    let rows = times.iter().zip(words("event")).zip(words("source"));
    let at_client = |source: Option<&str>| source.is_some_and(|source| source.ends_with("/client"));
    rows.filter(|((_, event), source)| *event == Some("delivered") && at_client(*source)).map(|((at, _), _)| *at).collect()
}

#[test]
#[ignore = "half a minute where optimised"]
fn data_goes_on_arriving_after_a_handoff_under_every_control_and_scheduler() {
    let handoffs = handoffs();
    assert!(handoffs.len() >= 4, "the shipped handoffs and the walk");
    let (mut runs, mut failures) = (0, Vec::new());
    for (shipped, changes) in &handoffs {
        for control in congestion::REGISTRY {
            for scheduler in scheduler::REGISTRY {
                for commit in ["at-window", "into-buffer"] {
                    let chosen = [
                        ("transport.congestion_control".into(), control.name.to_string()),
                        ("transport.scheduler".into(), scheduler.name.to_string()),
                        ("transport.commit".into(), commit.to_string()),
                    ];
                    let scenario = overridden(shipped.text, shipped.name, &[changes.as_slice(), &chosen].concat());
                    let outcome = run(&scenario, &RunOptions { seed: 0, record_events: true }, &mut |_| true);
                    let (gap, since) = longest_gap(&outcome);
                    runs += 1;
                    let name = (shipped.name, control.name, scheduler.name, commit);
                    let excepted = EXCEPTIONS.iter().any(|e| (e.0, e.1, e.2, e.3) == name);
                    if (gap > LONGEST_GAP_S) != excepted {
                        failures.push(format!("{name:?}: {gap:.1} s without data from {since:.1} s"));
                    }
                }
            }
        }
    }
    assert!(runs >= 4 * 9 * 11 * 2, "{runs} runs");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The whole video, with the cut in the middle: an estimate of the path's rate has five minutes to decay on a path that the
/// scheduler and the receive window hold back.
#[test]
fn bbr_keeps_its_estimate_of_a_path_that_is_held_back() {
    for scheduler in ["min-rtt", "linux", "ecf"] {
        for commit in ["at-window", "into-buffer"] {
            let shipped = catalogue::scenario("handoff/large-handoff").unwrap();
            let chosen = [("congestion_control", "bbr"), ("scheduler", scheduler), ("commit", commit)];
            let chosen = chosen.map(|(key, value)| (format!("transport.{key}"), value.to_string()));
            let outcome = run(&overridden(shipped.text, shipped.name, &chosen), &RunOptions::default(), &mut |_| true);
            let stalled_s = outcome.metrics.sessions[0].viewer.as_ref().unwrap().stall_s;
            assert_eq!(outcome.metrics.ended, Ended::Finished, "{scheduler} {commit}");
            assert!(stalled_s < 5.0, "{scheduler} {commit}: {stalled_s} s");
        }
    }
}
