//! The shipped scenarios with synthetic rates.

use anabranch_observation::{Ended, Metrics};
use anabranch_scenario::{catalogue, load};
use anabranch_sim::{RunOptions, run};

fn metrics(name: &str, seed: u64, overrides: &[(&str, &str)]) -> Metrics {
    let shipped = catalogue::scenario(name).expect("it ships");
    let overrides: Vec<_> = overrides.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let scenario = load(shipped.text, name, None, &overrides).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, &RunOptions { seed, ..RunOptions::default() }, &mut |_| true).metrics
}

#[test]
fn the_walks_play_to_their_end_over_both_paths() {
    for (name, seconds) in [("mobile/wifi-lte", 596.0), ("mobile/walk", 300.0)] {
        for seed in 1..=3 {
            let metrics = metrics(name, seed, &[]);
            let session = &metrics.sessions[0];
            assert_eq!(metrics.ended, Ended::Finished, "{name} {seed}: {:?}", session.viewer);
            let played_s = session.viewer.as_ref().unwrap().played_s;
            assert!((played_s - seconds).abs() < 1.0, "{name} {seed}: {played_s}");
            // A given-up request closes its connection, so a path has many subflows.
            for path in ["wifi", "lte"] {
                let subflows = session.transport.subflows.iter().filter(|subflow| subflow.path == path);
                assert!(subflows.map(|subflow| subflow.bytes).sum::<u64>() > 1_000_000, "{name} {seed} {path}");
            }
        }
    }
}

#[test]
fn the_seed_decides_on_the_rates_unless_the_rate_has_its_own() {
    let short = [("session.0.video.duration", "60 s")];
    let json = |seed, own: &[(&str, &str)]| metrics("mobile/wifi-lte", seed, &[&short, own].concat()).to_json(None);
    assert_eq!(json(1, &[]), json(1, &[]));
    assert_ne!(json(1, &[]), json(2, &[]));
    // Nothing else is random in this scenario, so with rates of their own two runs differ in their seed and keys only.
    let own = [("link.wifi.rate.seed", "5"), ("link.lte.rate.seed", "5")];
    let goodput = |seed, own: &[(&str, &str)]| {
        metrics("mobile/wifi-lte", seed, &[&short, own].concat()).sessions[0].transport.goodput_bps
    };
    assert!((goodput(1, &own) - goodput(2, &own)).abs() < 1e-9);
    assert!((goodput(1, &[]) - goodput(2, &[])).abs() > 1.0);
}

#[test]
fn lte_spares_most_stalls_to_who_walks_out_of_the_wifi_s_reach() {
    let stalled = |paths: &str| -> f64 {
        let sum: f64 = (1..=3)
            .map(|seed| metrics("mobile/walk", seed, &[("session.0.paths", paths)]))
            .map(|metrics| metrics.sessions[0].viewer.as_ref().unwrap().stall_s)
            .sum();
        sum / 3.0
    };
    let (alone, both) = (stalled("[\"wifi\"]"), stalled("[\"lte\", \"wifi\"]"));
    // The WiFi is gone for 80 s and the buffer holds 60 s at most.
    assert!(alone > 20.0 && both < alone / 3.0, "{alone} {both}");
}
