//! A server that paces its responses: viewers who compete for the links of `viewers/four`.

use anabranch_observation::Outcome;
use anabranch_scenario::{catalogue, load};
use anabranch_sim::{RunOptions, run};

/// Four viewers for three minutes, with this pacing of responses.
fn simulate(pacing: &str) -> Outcome {
    simulate_with(pacing, &[("duration", "180 s"), ("session.0.statistics.to", "150 s")])
}

fn simulate_with(pacing: &str, changes: &[(&str, &str)]) -> Outcome {
    let text = catalogue::scenario("viewers/four").unwrap().text;
    let paced = [("server.response_pacing", pacing)];
    let changes: Vec<_> =
        changes.iter().chain(&paced).map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let scenario = load(text, "viewers/four", None, &changes).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, &RunOptions { seed: 11, ..RunOptions::default() }, &mut |_| true)
}

/// Changes of the bitrate of all viewers, and Jain's index of their mean bitrates.
fn seen(outcome: &Outcome) -> (u64, f64) {
    let switches = outcome.metrics.sessions.iter().map(|session| session.dash().unwrap().switches).sum();
    (switches, outcome.metrics.fairness.as_ref().unwrap().jain_mean_bitrate.unwrap())
}

#[test]
fn levels_make_viewers_calm_and_fair() {
    let ((restless, unfair), (calm, fair)) = (seen(&simulate("off")), seen(&simulate("levels")));
    assert!(2 * calm < restless, "{calm} and {restless} switches");
    assert!(fair > 0.97 && fair > unfair + 0.05, "{fair} and {unfair}");
}

#[test]
fn seventy_viewers_are_calm_and_fair_and_lose_no_quality() {
    let many = [
        ("duration", "150 s"),
        ("session.0.statistics.to", "110 s"),
        ("session.0.count", "70"),
        // As much for each as in `viewers/eight`.
        ("session.0.stagger", "0.4 s"),
        ("link.wifi.rate", "70 Mb/s"),
        ("link.wifi.queue", "875 kB"),
        ("link.lte.rate", "35 Mb/s"),
        ("link.lte.queue", "875 kB"),
    ];
    let [off, levels] = ["off", "levels"].map(|pacing| simulate_with(pacing, &many));
    let ((restless, unfair), (calm, fair)) = (seen(&off), seen(&levels));
    assert!(2 * calm < restless, "{calm} and {restless} switches");
    assert!(fair > 0.98 && fair > unfair, "{fair} and {unfair}");
    let quality = |outcome: &Outcome| -> f64 {
        let sessions = outcome.metrics.sessions.iter();
        sessions.map(|session| session.dash().unwrap().qoe_linear_per_segment.unwrap()).sum()
    };
    assert!(quality(&levels) > quality(&off), "{} and {}", quality(&levels), quality(&off));
}

#[test]
fn sammy_paces_what_is_sent() {
    let (off, sammy) = (simulate("off"), simulate("sammy"));
    assert_ne!(off.metrics.sessions[0].bytes, sammy.metrics.sessions[0].bytes);
}
