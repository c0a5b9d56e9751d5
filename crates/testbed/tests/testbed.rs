//! Scenarios in real time: the same metrics as simulated, within the precision of a few seconds, and no namespace left
//! behind.

#![cfg(target_os = "linux")]

use anabranch_events::DropCause;
use anabranch_network::Packet;
use anabranch_observation::{Ended, Engine, LiveFacts, Outcome, SessionMetrics};
use anabranch_scenario::{Scenario, load};
use anabranch_testbed::{ClientKind, Options, ServerKind, Testbed, TestbedError};
use anabranch_testnet::requirements::skips_test;
use anabranch_units::{Duration, Instant, LinkDirection};
use std::process::Command;

fn scenario(text: &str) -> Scenario {
    load(&format!("schema = 1\n{text}"), "test", None, &[]).expect("a scenario")
}

fn live(scenario: &Scenario, options: &Options) -> Outcome {
    let testbed = Testbed::start(scenario, options).expect("a testbed");
    let ended = testbed.play(&mut |_| true).expect("a run");
    testbed.finish(ended).expect("an outcome")
}

const TWO_PATHS: &str = "duration = \"30 s\"\n[transport]\nscheduler = \"min-rtt\"\ncongestion_control = \"cubic\"\n\
    [link.wifi]\nrate = \"8 Mb/s\"\nrtt = \"20 ms\"\nqueue = \"40 kB\"\n\
    [link.lte]\nrate = \"4 Mb/s\"\nrtt = \"50 ms\"\nqueue = \"40 kB\"\n\
    [[session]]\nvideo = { kind = \"bulk\", size = \"3 MB\" }\n";

fn first(outcome: &Outcome) -> &SessionMetrics {
    &outcome.metrics.sessions[0]
}

fn facts(outcome: &Outcome) -> &LiveFacts {
    outcome.metrics.live.as_ref().expect("facts of a run in real time")
}

#[test]
fn a_download_over_two_paths_uses_both_with_any_server() {
    if skips_test(&[]) {
        return;
    }
    for server in [ServerKind::Anabranch, ServerKind::Kernel] {
        let outcome = live(&scenario(TWO_PATHS), &Options { seed: 1, server, ..Options::default() });
        assert_eq!(outcome.metrics.ended, Ended::Finished, "{}", outcome.metrics.to_json(None));
        // Both links' payload is 11.6 Mb/s; the bound is loose because the machine may be busy.
        let session = first(&outcome);
        let goodput = session.transport.goodput_bps;
        assert!((6e6..11.8e6).contains(&goodput), "{server:?}: {goodput}");
        let subflows = &session.transport.subflows;
        let both = subflows.len() == 2 && subflows.iter().all(|subflow| subflow.bytes > 300_000);
        assert!(both, "{server:?}: {}", outcome.metrics.to_json(None));
        assert_eq!(session.transport.path_switches.is_none(), server == ServerKind::Kernel);
        assert!(session.transport.reorder_delay_s.is_none(), "the client's kernel does not report it");
        assert_eq!(outcome.metrics.engine, Engine::Live);
        assert_eq!(session.bytes, 3_000_000 + anabranch_media::RESPONSE_HEADER_BYTES);
    }
}

/// A packet with a size only.
struct Probe;

impl Packet for Probe {
    fn bytes(&self) -> u32 {
        1000
    }

    fn duplicate(&self) -> Self {
        Probe
    }
}

/// How many of `packets` packets the simulator's links lose, one direction after the other, if no queue ever fills.
fn lost_of(scenario: &Scenario, seed: u64, packets: &[u64]) -> Vec<u64> {
    let lines = anabranch_scenario::directed_links::<Probe>(scenario, seed).into_iter().zip(packets);
    let lost = lines.map(|(mut link, &packets)| {
        let mut now = Instant::ZERO;
        for _ in 0..packets {
            link.link.send(now, Probe);
            now += Duration::from_secs(1);
            while link.link.poll_delivery(now).is_some() {}
        }
        link.link.stats().dropped(DropCause::Random).packets
    });
    lost.collect()
}

/// The k-th packet on a link is lost in both simulation and live run, or in neither, so the number of packets decides
/// the number of losses.
#[test]
fn the_emulator_loses_the_packets_that_the_simulator_loses() {
    if skips_test(&[]) {
        return;
    }
    let lossy = "queue = \"4 MB\"\nup = { loss = \"5 %\" }\nloss = \"3 %\"\n";
    let scenario = scenario(&TWO_PATHS.replace("queue = \"40 kB\"\n", lossy).replace("3 MB", "1 MB"));
    let testbed = Testbed::start(&scenario, &Options { seed: 7, ..Options::default() }).expect("a testbed");
    let ended = testbed.play(&mut |_| true).expect("a run");
    // Data in flight when the player was done arrives meanwhile.
    std::thread::sleep(std::time::Duration::from_millis(700));
    let links = testbed.finish(ended).expect("an outcome").metrics.links;
    assert!(links.iter().all(|link| link.drops_queue == 0), "no queue is that long");
    let lost: Vec<_> = links.iter().map(|link| link.drops_random).collect();
    let offered: Vec<_> = links.iter().map(|link| link.packets + link.drops_random).collect();
    assert!(lost.iter().sum::<u64>() > 20, "the loss is real: {lost:?} of {offered:?}");
    assert_eq!(lost, lost_of(&scenario, 7, &offered), "of {offered:?}");
    assert_ne!(lost, lost_of(&scenario, 8, &offered), "another seed loses others");
}

#[test]
fn a_program_in_the_clients_namespace_is_served_and_nothing_is_left() {
    if skips_test(&[]) {
        return;
    }
    let content = std::env::temp_dir().join(format!("anabranch-testbed-content-{}", std::process::id()));
    std::fs::create_dir_all(&content).expect("a directory");
    std::fs::write(content.join("hello.txt"), "hello").expect("a file");
    for server in [ServerKind::Anabranch, ServerKind::Kernel] {
        let options = Options {
            server,
            client: ClientKind::Program,
            content: Some(content.clone()),
            capture: Some(content.clone()),
            ..Options::default()
        };
        let testbed = Testbed::start(&scenario(TWO_PATHS), &options).expect("a testbed");
        let namespace = testbed.namespace().to_owned();
        let fetch = |what: &str| {
            let url = format!("{}/{what}", testbed.url());
            let fetched =
                Command::new("ip").args(["netns", "exec", &namespace, "curl", "-sS", "-m", "10", &url]).output();
            fetched.expect("curl starts")
        };
        assert_eq!(fetch("hello.txt").stdout, b"hello");
        assert_eq!(fetch("bytes/100000").stdout.len(), 100_000);
        let outcome = testbed.finish(Ended::Finished).expect("an outcome");
        assert!(first(&outcome).bytes > 100_000, "{}", outcome.metrics.to_json(None));
        assert!(first(&outcome).viewer.is_none(), "curl shows no picture");
        assert_eq!(facts(&outcome).connections, 2);
        assert!(!std::path::Path::new("/run/netns").join(&namespace).exists(), "namespaces vanish");
        let captured = content.join("wifi.pcapng").metadata().expect("a capture").len();
        assert!(captured > 100_000, "plain TCP takes the first path: {captured}");
        for path in ["wifi", "lte"] {
            assert!(content.join(format!("{path}.pcapng")).exists());
        }
    }
    std::fs::remove_dir_all(&content).expect("it is there");
}

#[test]
fn what_cannot_be_built_is_refused_with_the_reason() {
    if skips_test(&[]) {
        return;
    }
    let mixed = "duration = \"1 s\"\n[link.a]\nrate = \"1 Mb/s\"\n[link.b]\nrate = \"1 Mb/s\"\n\
        [path.a]\nlinks = [\"a\"]\n[path.b]\nlinks = [\"b\"]\nip = 6\n[[session]]\n";
    let error = Testbed::start(&scenario(mixed), &Options::default()).err().expect("refused");
    assert!(matches!(error, TestbedError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("IPv4 and IPv6"), "{error}");
}

/// The median throughput of the media segments of a viewer whose server paces responses so, bit/s.
fn throughput_with(pacing: &str) -> f64 {
    let links = TWO_PATHS.split("[[session]]").next().expect("the links");
    let text = format!(
        "{links}[server]\nresponse_pacing = {pacing}\n[[session]]\nplayer = {{ kind = \"dash.js-5\", fast_switch = false }}\n\
         video = {{ kind = \"dash\", rates = [\"300 kb/s\", \"900 kb/s\"], segment_duration = \"2 s\", duration = \"16 s\" }}\n"
    );
    let outcome = live(&scenario(&text), &Options { seed: 1, ..Options::default() });
    assert_eq!(outcome.metrics.ended, Ended::Finished, "{}", outcome.metrics.to_json(None));
    let segments = &first(&outcome).dash().expect("what the viewer saw").media_segments;
    let mut throughputs: Vec<_> = segments.iter().map(|segment| segment.throughput_bps).collect();
    throughputs.sort_by(f64::total_cmp);
    throughputs[throughputs.len() / 2]
}

#[test]
fn responses_to_a_viewer_are_as_fast_as_the_scenarios_server_paces_them() {
    if skips_test(&[]) {
        return;
    }
    let [off, paced] = ["\"off\"", "{ name = \"sammy\", start_s = 0 }"].map(throughput_with);
    // Twice to three times the highest bitrate, until 18 s are buffered; both links carry 12 Mb/s.
    assert!((1.5e6..2.8e6).contains(&paced), "{paced}");
    assert!(off > 1.5 * paced, "{off} and {paced}");
}

#[test]
fn a_kernels_server_paces_nothing_and_is_refused() {
    if skips_test(&[]) {
        return;
    }
    let paced = scenario(&format!("{TWO_PATHS}[server]\nresponse_pacing = \"sammy\"\n"));
    let options = Options { server: ServerKind::Kernel, ..Options::default() };
    let error = Testbed::start(&paced, &options).err().expect("refused");
    assert!(error.to_string().contains("take the server anabranch, or the pacing off"), "{error}");
}

#[test]
fn paths_share_a_link_with_each_other_and_with_cross_traffic() {
    if skips_test(&[]) {
        return;
    }
    let text = "duration = \"4 s\"\n[transport]\ncongestion_control = \"lia\"\n\
        [link.bottleneck]\nrate = \"8 Mb/s\"\nrtt = \"20 ms\"\nqueue = \"40 kB\"\n\
        [link.a]\nrate = \"unlimited\"\n[link.b]\nrate = \"unlimited\"\ndelay = \"5 ms\"\n\
        [path.a]\nlinks = [\"a\", \"bottleneck\"]\n[path.b]\nlinks = [\"b\", \"bottleneck\"]\n\
        [[session]]\nvideo = { kind = \"bulk\" }\n\
        [[traffic]]\nkind = \"tcp\"\npath = \"a\"\ncongestion_control = \"newreno\"\n";
    let outcome = live(&scenario(text), &Options::default());
    let metrics = &outcome.metrics;
    assert_eq!(metrics.ended, Ended::Duration);
    let goodputs = [metrics.sessions[0].transport.goodput_bps, metrics.traffic[0].transport.goodput_bps];
    assert!(goodputs.iter().all(|bps| *bps > 0.3e6), "{goodputs:?}");
    assert!((4e6..7.8e6).contains(&goodputs.iter().sum()), "{goodputs:?}");
    let down = |name: &str| {
        let link = metrics.links.iter().find(|link| link.name == name && link.direction == LinkDirection::Down);
        link.expect("there is such a link")
    };
    let [a, b, bottleneck] = ["a", "b", "bottleneck"].map(down);
    assert!(b.packets > 100, "{} packets over the second path", b.packets);
    assert_eq!(bottleneck.packets, a.packets_sent + b.packets_sent, "what leaves the one link enters the others");
}

#[test]
fn an_interface_that_comes_back_gets_a_new_subflow() {
    if skips_test(&[]) {
        return;
    }
    let events = "[[event]]\nat = \"1 s\"\npath = \"wifi\"\ndown = true\n[[event]]\nat = \"2 s\"\npath = \"wifi\"\ndown = false\n";
    let text = format!("{}{events}", TWO_PATHS.replace("3 MB", "5 MB"));
    for server in [ServerKind::Anabranch, ServerKind::Kernel] {
        let outcome = live(&scenario(&text), &Options { server, ..Options::default() });
        assert_eq!(outcome.metrics.ended, Ended::Finished, "{server:?}: {}", outcome.metrics.to_json(None));
        let subflows = &outcome.metrics.sessions[0].transport.subflows;
        let paths: Vec<_> = subflows.iter().map(|subflow| subflow.path.as_str()).collect();
        assert_eq!(paths, ["wifi", "lte", "wifi"], "{server:?}");
        let marks = &outcome.recording.events;
        assert_eq!(marks.len(), 2);
    }
}

/// A video whose links become too slow in the middle of a media segment.
const GIVES_UP: &str = "duration = \"14 s\"\n[transport]\nscheduler = \"min-rtt\"\ncongestion_control = \"cubic\"\n\
    [link.path1]\nrtt = \"40 ms\"\nrate = \"4 Mb/s\"\n[link.path2]\nrtt = \"60 ms\"\nrate = \"3 Mb/s\"\n\
    [[session]]\nvideo = { kind = \"dash\", ladder = \"bbb-6s\", duration = \"60 s\" }\nplayer = \"dash.js-5\"\n\
    [[event]]\nat = \"7 s\"\nlink = \"path1\"\nrate = \"300 kb/s\"\n\
    [[event]]\nat = \"7 s\"\nlink = \"path2\"\nrate = \"300 kb/s\"\n";

#[test]
#[ignore = "it takes 28 s"]
fn a_player_that_abandons_a_response_continues_with_another_connection() {
    if skips_test(&[]) {
        return;
    }
    for server in [ServerKind::Anabranch, ServerKind::Kernel] {
        let outcome = live(&scenario(GIVES_UP), &Options { server, record_events: true, ..Options::default() });
        let session = &outcome.metrics.sessions[0];
        assert!(facts(&outcome).connections >= 2, "{server:?}: {}", outcome.metrics.to_json(None));
        // Those of the first connection, and at least the initial one of the second: joins take long while the queues
        // are full.
        let subflows = &session.transport.subflows;
        assert!(subflows.len() >= 3 && subflows[2].goodput_bps > 0.0, "{server:?}: {subflows:?}");
    }
}
