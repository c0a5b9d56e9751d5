//! Random networks under invariants: topologies, losses, reordering, duplication, outages, schedulers and controls.
//!
//! A case is a number, from which its scenario is made. Run one again with
//! `ANABRANCH_CASE=17 cargo test -p anabranch-sim random_networks -- --nocapture`, or many in the slow suite with
//! `ANABRANCH_CASES=10000 cargo test --release -p anabranch-sim random_networks`.

use super::*;
use anabranch_observation::SessionMetrics;
use anabranch_scenario::{Bulk, Video};
use anabranch_stack::{congestion, scheduler};
use anabranch_units::Bytes;
use rand::RngExt;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::fmt::Write;

/// Cases of the quick suite.
const QUICK_CASES: u64 = 60;

/// The network is whole again from here on.
const HEALED_S: f64 = 25.0;

/// From one packet to more than an outage's worth, in kB; small sizes are as frequent as large ones.
fn size(rng: &mut ChaCha8Rng) -> u32 {
    let most = 1 << rng.random_range(1..15);
    rng.random_range(most / 2..=most)
}

fn queue(rng: &mut ChaCha8Rng) -> String {
    let packets = rng.random_range(5..200);
    match rng.random_range(0..4) {
        0 => format!("{{ kind = \"red\", limit = \"{} packets\" }}", packets.max(20)),
        1 => format!("{{ kind = \"codel\", limit = \"{packets} packets\" }}"),
        2 => format!("\"{} kB\"", 10 + packets),
        _ => format!("\"{packets} packets\""),
    }
}

fn loss(rng: &mut ChaCha8Rng) -> String {
    match rng.random_range(0..4) {
        0 => format!("{{ kind = \"every-nth\", n = {} }}", rng.random_range(20..500)),
        1 => format!(
            "{{ kind = \"gilbert-elliott\", good_to_bad = \"0.{} %\", bad_to_good = \"{} %\" }}",
            rng.random_range(1..9),
            // The state changes with packets, not with time: a single retransmission in the bad state is lost whenever
            // the state stays bad, and fifteen of them end a connection. So it must be left soon enough that no case of
            // tens of thousands sees that.
            rng.random_range(60..100)
        ),
        2 => format!(
            "{{ kind = \"gilbert-elliott-time\", good = \"{} ms\", bad = \"{} ms\" }}",
            rng.random_range(300..3000),
            rng.random_range(1..60)
        ),
        _ => format!("\"{}.{} %\"", rng.random_range(0..4), rng.random_range(0..9)),
    }
}

fn link(rng: &mut ChaCha8Rng, name: &str) -> String {
    let kbps = rng.random_range(300..30_000);
    let rate = match ["wifi", "wifi-walk", "lte"].choose(rng) {
        // One link in five varies.
        Some(kind) if rng.random_bool(0.2) => format!("{{ synthetic = \"{kind}\", mean = \"{kbps} kb/s\" }}"),
        _ => format!("\"{kbps} kb/s\""),
    };
    let mut text = format!("[link.{name}]\nrate = {rate}\n");
    let one_way = rng.random_range(0..120);
    let _ = writeln!(text, "delay = \"{one_way} ms\"\nqueue = {}\nloss = {}", queue(rng), loss(rng));
    if rng.random_bool(0.5) {
        let _ = writeln!(text, "up = {{ rate = \"{} kb/s\", loss = {} }}", rng.random_range(100..5_000), loss(rng));
    }
    if rng.random_bool(0.3) {
        let share = rng.random_range(1..30);
        let _ = writeln!(text, "reordering = {{ share = \"{share} %\", by = \"{} ms\" }}", rng.random_range(1..80));
    }
    if rng.random_bool(0.3) {
        let _ = writeln!(text, "duplication = \"{} %\"", rng.random_range(1..20));
    }
    if rng.random_bool(0.3) && one_way > 2 {
        let width = rng.random_range(1..one_way);
        let _ = writeln!(text, "jitter = {{ kind = \"uniform\", half_width = \"{width} ms\", reorders = true }}");
    }
    let _ = writeln!(text, "mtu = {}", [1280, 1400, 1500, 9000].choose(rng).unwrap());
    text
}

fn outages(rng: &mut ChaCha8Rng, links: usize, paths: usize, multipath: bool) -> String {
    let mut text = String::new();
    for _ in 0..rng.random_range(0..4) {
        let (from, to) = (rng.random_range(0.0..HEALED_S), rng.random_range(0.0..HEALED_S));
        let (from, to) = (from.min(to), from.max(to) + 0.001);
        // The interface of the first path stays: plain TCP has no other, and a client without any path cannot recover.
        let what = if multipath && paths > 1 && rng.random_bool(0.4) {
            format!("path = \"p{}\"", rng.random_range(1..paths))
        } else {
            format!("link = \"l{}\"", rng.random_range(0..links))
        };
        for (at, down) in [(from, true), (to, false)] {
            let _ = writeln!(text, "[[event]]\nat = \"{at:.3} s\"\n{what}\ndown = {down}");
        }
    }
    text
}

/// Keys of `[transport]` that are true or false.
const SWITCHES: [&str; 6] =
    ["opportunistic_retransmission", "penalisation", "pacing", "idle_restart", "timestamps", "wide_data_seq"];

/// The scenario of a case.
fn scenario_of(case: u64) -> String {
    let rng = &mut ChaCha8Rng::seed_from_u64(case);
    let links = rng.random_range(1..=3);
    let shared = rng.random_bool(0.3);
    let multipath = rng.random_bool(0.85);
    let mut text = "schema = 1\nduration = \"20000 s\"\nstuck_after = \"2000 s\"\n[transport]\n".to_string();
    let scheduler = scheduler::REGISTRY.choose(rng).unwrap().name;
    let control = congestion::REGISTRY.choose(rng).unwrap().name;
    let _ = writeln!(text, "protocol = \"{}\"", if multipath { "mptcp" } else { "tcp" });
    let _ = writeln!(text, "scheduler = \"{scheduler}\"\ncongestion_control = \"{control}\"");
    let _ = writeln!(text, "commit = \"{}\"", ["at-window", "into-buffer"].choose(rng).unwrap());
    let failover = *["legacy", "upstream"].choose(rng).unwrap();
    let windows = rng.random_bool(0.5) && failover == "upstream";
    let _ = writeln!(text, "failover = \"{failover}\"\nsubflow_windows = {windows}");
    for key in SWITCHES {
        let _ = writeln!(text, "{key} = {}", rng.random_bool(0.5));
    }
    let _ = writeln!(text, "writer = \"{}\"", ["when-writable", "at-once"].choose(rng).unwrap());
    if rng.random_bool(0.3) {
        let _ = writeln!(text, "receive_buffer = \"{} kB\"", rng.random_range(20..200));
    }
    for i in 0..links {
        text += &link(rng, &format!("l{i}"));
    }
    if shared {
        text += &link(rng, "core");
    }
    for i in 0..links {
        let hops = if shared { format!("\"l{i}\", \"core\"") } else { format!("\"l{i}\"") };
        let _ = writeln!(text, "[path.p{i}]\nlinks = [{hops}]\nip = {}", [4, 6].choose(rng).unwrap());
        let _ = writeln!(text, "backup = {}", i > 0 && rng.random_bool(0.2));
    }
    for _ in 0..rng.random_range(1..=2) {
        let _ = writeln!(text, "[[session]]\nvideo = {{ kind = \"bulk\", size = \"{} kB\" }}", size(rng));
        let _ = writeln!(text, "start = \"{} ms\"", rng.random_range(0..3_000));
    }
    text + &outages(rng, links, links, multipath)
}

/// When a client gives up that begins at once: after seven SYNs, the first retransmitted after a second.
const SYNS_IN_VAIN: Duration = Duration::from_secs(127);

/// Checks a case; the error describes the fault.
fn check(case: u64) -> Result<(), String> {
    let text = scenario_of(case);
    let scenario = anabranch_scenario::load(&text, "random", None, &[]).map_err(|error| format!("{error}\n{text}"))?;
    let mut world = World::new(&scenario, &RunOptions { seed: case, ..RunOptions::default() });
    let ended = world.run(&mut |_| true);
    let now = world.now;
    let wrong = |what: String| Err(format!("{what}\n{text}"));
    if let Err(imbalance) = world.check_conservation() {
        return wrong(imbalance);
    }
    let outcome = world.finish(ended);
    // A client whose SYNs are all lost gives up, as Linux does: then no server ever opened a subflow, and the run ends
    // without a session.
    let refused = |session: &SessionMetrics| {
        session.transport.subflows.is_empty() && session.bytes == 0 && now >= Instant::ZERO + SYNS_IN_VAIN
    };
    let ended_well = ended == Ended::Finished || outcome.metrics.sessions.iter().any(refused);
    for (session, spec) in outcome.metrics.sessions.iter().zip(&scenario.sessions) {
        let Video::Bulk(Bulk { size: Some(Bytes(size)) }) = spec.video else { continue };
        let expected = size + anabranch_media::RESPONSE_HEADER_BYTES;
        if !refused(session) && (!ended_well || session.bytes != expected) {
            return wrong(format!("{ended:?} at {now}: {} of {expected} bytes arrived", session.bytes));
        }
    }
    let windows = outcome.recording.sessions.iter().flat_map(|s| &s.paths).flat_map(|p| &p.cwnd_packets);
    match windows.filter(|w| **w < 1.0).min_by(|a, b| a.total_cmp(b)) {
        None => Ok(()),
        Some(window) => wrong(format!("a window fell to {window} packets")),
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn random_networks_deliver_every_byte_once_and_lose_no_packet_from_the_books() {
    let cases = match number("ANABRANCH_CASE") {
        Some(case) => case..case + 1,
        None => 0..number("ANABRANCH_CASES").unwrap_or(QUICK_CASES),
    };
    for case in cases {
        let result = std::panic::catch_unwind(|| check(case)).unwrap_or_else(|_| Err("panicked".into()));
        if let Err(problem) = result {
            panic!("ANABRANCH_CASE={case} cargo test -p anabranch-sim random_networks\n{problem}");
        }
    }
}
