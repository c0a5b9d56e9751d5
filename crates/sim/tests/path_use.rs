//! The path-use decision of MPTCP+ (PUD) with the whole endpoint over a simulated network: the data on a path
//! that is no longer used, and the return of such a path.

use anabranch_observation::{Ended, Outcome, SessionMetrics};
use anabranch_scenario::load;
use anabranch_sim::{RunOptions, run};

/// The body, and the header in front of it.
const RESPONSE: u64 = 12_000_000 + 353;

/// A fast and a slow path. PUD decides after 5 s here instead of 15 s, so that the runs stay short.
const TWO_PATHS: &str = r#"
schema = 1
duration = "200 s"
[transport]
path_policy = { name = "pud", n = 50 }
[link.fast]
rtt = "40 ms"
rate = "4 Mb/s"
[link.slow]
rtt = "40 ms"
rate = "1 Mb/s"
[[session]]
video = { kind = "bulk", size = "12 MB" }
"#;

fn simulate(more: &str, changes: &[(&str, &str)]) -> Outcome {
    let changes: Vec<_> = changes.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let scenario = load(&format!("{TWO_PATHS}{more}"), "test", None, &changes).unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, &RunOptions::default(), &mut |_| true)
}

fn complete(outcome: &Outcome) -> &SessionMetrics {
    assert_eq!(outcome.metrics.ended, Ended::Finished);
    let session = &outcome.metrics.sessions[0];
    assert_eq!(session.bytes, RESPONSE, "every byte, once");
    session
}

/// When the slow path was forbidden for the first time, and until when.
fn first_span(session: &SessionMetrics) -> (f64, f64) {
    let slow = session.transport.subflows.iter().find(|subflow| subflow.path == "slow").unwrap();
    let span = slow.disabled_spans_s.as_ref().unwrap().first().expect("PUD forbids the slow path");
    (span.0, span.1)
}

#[test]
fn a_forbidden_path_gets_nothing_new() {
    let outcome = simulate("", &[]);
    let (from, _) = first_span(complete(&outcome));
    assert!((5.0..10.0).contains(&from), "{from}");
    // Data in flight there is acknowledged within the queue's time, half a second; then nothing moves.
    let recorded = &outcome.recording.sessions[0];
    let slow = recorded.paths.iter().find(|path| path.path == "slow").unwrap();
    let acked = |wanted: &dyn Fn(f64) -> bool| {
        recorded.time_s.iter().zip(&slow.throughput_bps).filter(|(at, rate)| wanted(**at) && **rate > 0.0).count()
    };
    assert!(acked(&|at| at < from) > 20);
    assert_eq!(acked(&|at| at > from + 1.0), 0);
    let without = simulate("", &[("transport.path_policy", "full-mesh")]);
    let slow_share = |outcome: &Outcome| {
        let subflows = &complete(outcome).transport.subflows;
        let bytes = |path: &str| subflows.iter().filter(|s| s.path == path).map(|s| s.bytes).sum::<u64>() as f64;
        bytes("slow") / (bytes("slow") + bytes("fast"))
    };
    assert!(slow_share(&outcome) < slow_share(&without) / 2.0);
}

/// The slow path goes silent at the moment of the decision, with a window of data on it.
#[test]
fn data_on_a_forbidden_path_is_not_stranded() {
    let calm = simulate("", &[]);
    let (from, _) = first_span(complete(&calm));
    let recorded = &calm.recording.sessions[0];
    let slow = recorded.paths.iter().find(|path| path.path == "slow").unwrap();
    let before = recorded.time_s.partition_point(|at| *at < from) - 1;
    assert!(slow.cwnd_packets[before] > 10.0, "{}", slow.cwnd_packets[before]);
    let cut = simulate(&format!("[[event]]\nat = \"{from} s\"\nlink = \"slow\"\ndown = true\n"), &[]);
    let session = complete(&cut);
    assert_eq!(first_span(session).0, from, "both runs are alike until then");
    let reinjected: u64 = session.transport.subflows.iter().map(|subflow| subflow.reinjections.unwrap()).sum();
    assert!(reinjected > 10, "{reinjected}");
    // Retransmitted on the fast path at once: nothing waits for a retransmission timeout of the silent path, which is
    // longer than its round trip with a full queue, 0.55 s.
    let (before, after) = (complete(&calm).finished_s.unwrap(), session.finished_s.unwrap());
    assert!(after - before < 0.3, "{before} s, with the cut {after} s");
}

#[test]
fn a_forbidden_path_returns_when_the_other_one_degrades_and_only_then() {
    let (_, until) = first_span(complete(&simulate("", &[])));
    let end = complete(&simulate("", &[])).finished_s.unwrap();
    assert_eq!(until, end, "never while the fast path is four times as fast");
    // At 1.2 Mb/s the slow path's 1 Mb/s are enough again: above 0.6 of the best.
    let degrades = "[[event]]\nat = \"10 s\"\nlink = \"fast\"\ndown = { rate = \"1.2 Mb/s\" }\n";
    let outcome = simulate(degrades, &[]);
    let session = complete(&outcome);
    let (_, until) = first_span(session);
    // The mean over 50 samples of 100 ms follows within some seconds.
    assert!((10.5..25.0).contains(&until), "{until}");
    let slow = session.transport.subflows.iter().find(|subflow| subflow.path == "slow").unwrap();
    assert!(slow.times_enabled.unwrap() >= 1);
    let literal = simulate(degrades, &[("transport.path_policy.readmit", "never")]);
    let (_, until) = first_span(complete(&literal));
    assert_eq!(until, complete(&literal).finished_s.unwrap());
}

#[test]
fn a_forbidden_path_takes_over_when_the_other_one_dies() {
    let outcome = simulate("[[event]]\nat = \"10 s\"\nlink = \"fast\"\ndown = true\n", &[]);
    let (_, until) = first_span(complete(&outcome));
    // The first timeout of the dead path triggers it: a round trip with a full queue is 0.17 s.
    assert!((10.0..12.0).contains(&until), "{until}");
}

#[test]
fn with_the_measured_rate_the_slow_path_is_forbidden_and_returns_when_the_other_one_degrades() {
    let delivery = [("transport.path_policy.rate", "delivery")];
    let outcome = simulate("", &delivery);
    let (from, until) = first_span(complete(&outcome));
    assert!((5.0..10.0).contains(&from), "{from}");
    assert_eq!(until, complete(&outcome).finished_s.unwrap(), "never while the fast path is four times as fast");
    let degrades = "[[event]]\nat = \"10 s\"\nlink = \"fast\"\ndown = { rate = \"1.2 Mb/s\" }\n";
    let (_, until) = first_span(complete(&simulate(degrades, &delivery)));
    assert!((10.5..25.0).contains(&until), "{until}");
}
