//! A server that paces its responses: viewers who compete for the links of `viewers/four`.

use anabranch_observation::Outcome;
use anabranch_scenario::{catalogue, load};
use anabranch_sim::{RunOptions, run};

/// Four viewers for three minutes, with this pacing of responses.
fn simulate(pacing: &str) -> Outcome {
    let text = catalogue::scenario("viewers/four").unwrap().text;
    let changes = [("server.response_pacing", pacing), ("duration", "180 s"), ("session.0.statistics.to", "150 s")];
    let changes: Vec<_> = changes.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
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
    assert!(3 * calm < restless, "{calm} and {restless} switches");
    assert!(fair > 0.97 && fair > unfair + 0.05, "{fair} and {unfair}");
}

#[test]
fn sammy_paces_what_is_sent() {
    let (off, sammy) = (simulate("off"), simulate("sammy"));
    assert_ne!(off.metrics.sessions[0].bytes, sammy.metrics.sessions[0].bytes);
}
