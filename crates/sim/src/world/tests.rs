//! Whole runs: physics of one path, conservation, determinism, runs that cannot progress.

use super::*;
use crate::load;

fn scenario(text: &str) -> Scenario {
    load(&format!("schema = 1\n{text}"), "test", None, &[]).unwrap_or_else(|e| panic!("{e}"))
}

fn simulate(text: &str, seed: u64) -> Outcome {
    run(&scenario(text), &RunOptions { seed, record_events: false }, &mut |_| true)
}

/// One path of 2 Mb/s and 50 ms with room for two bandwidth-delay products, NewReno, an endless download.
const ONE_PATH: &str = "duration = \"60 s\"\nwarm_up = \"5 s\"\n[transport]\nprotocol = \"tcp\"\n\
    congestion_control = \"newreno\"\n[link.a]\nrtt = \"50 ms\"\nrate = \"2 Mb/s\"\nqueue = \"25 kB\"\n[[session]]\n";

#[test]
fn one_path_delivers_the_payload_s_share_of_its_rate() {
    for (protocol, payload) in [("tcp", 1448.0), ("mptcp", 1428.0)] {
        let outcome = simulate(&ONE_PATH.replace("\"tcp\"", &format!("\"{protocol}\"")), 1);
        let session = &outcome.metrics.sessions[0];
        let expected = 2e6 * payload / 1500.0;
        let ratio = session.transport.goodput_bps / expected;
        assert!((ratio - 1.0).abs() < 0.01, "{protocol}: {} of {expected}", session.transport.goodput_bps);
        assert_eq!(outcome.metrics.ended, Ended::Duration);
        assert_eq!(outcome.metrics.sim_seconds, 60.0);
    }
}
