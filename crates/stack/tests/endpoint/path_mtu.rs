//! Links that take smaller packets than the ends know: with and without reports, on one path and on two.

use crate::common::{Pair, Path, Seeded, config, secs};
use anabranch_events::{MtuCause, TransportEvent};
use anabranch_stack::connection::{Choice, Commit, Failover, PathConfig, Protocol, TooBig};
use anabranch_units::{Duration, Instant, LinkDirection, PathId, SeqNumber};

const LEN: u64 = 20_000_000;

/// How the sender learns of a small link.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Knows {
    /// It knew before.
    Before,
    /// A router reports.
    Reported,
    /// There is no report.
    Nothing,
    /// The same, and the sender does not look for it either.
    Never,
}

/// A server with 20 MB for a client; the link of each path takes packets of `mtu` bytes at most.
fn download(paths: Vec<Path>, mtu: u32, knows: Knows, adjust: impl Fn(&mut anabranch_stack::Config)) -> Pair {
    let protocol = if paths.len() == 1 { Protocol::Tcp } else { Protocol::Mptcp };
    let mut ours = config(protocol, paths.len());
    ours.mtu_discovery = knows != Knows::Never;
    if knows == Knows::Before {
        let known = |path: &PathConfig| PathConfig { mtu, ..*path };
        ours.paths = ours.paths.iter().map(known).collect();
    }
    adjust(&mut ours);
    let mut pair = Pair::new(config(protocol, paths.len()), ours, paths, 7);
    for path in &mut pair.paths {
        (path.down.mtu, path.down.reports) = (mtu, knows == Knows::Reported);
        path.down.queue = 128_000;
    }
    pair.to_send = LEN;
    pair
}

fn is_done(pair: &mut Pair) -> bool {
    pair.received == pair.to_send && pair.client.peer_finished()
}

fn seconds(mut pair: Pair) -> f64 {
    assert!(pair.run_until(secs(120), is_done), "{} bytes: {:?}", pair.received, pair.server);
    pair.now.as_secs_f64()
}

fn sizes(pair: &mut Pair) -> Vec<(u32, MtuCause)> {
    let events = pair.server().log().drain();
    let sizes = events.filter_map(|(_, event)| match event {
        TransportEvent::PathMtu { mtu, cause, .. } => Some((mtu, cause)),
        _ => None,
    });
    sizes.collect()
}

#[test]
fn a_single_path_through_a_black_hole_hangs_without_discovery() {
    let mut net = download(vec![Path::symmetric(20, 20)], 1400, Knows::Never, |_| {});
    assert!(!net.run_until(secs(60), is_done));
    assert_eq!(net.received, 0);
}

#[test]
fn a_small_link_costs_little_whether_it_reports_or_not() {
    for delay in [5, 20, 50] {
        for two in [false, true] {
            let paths = || {
                let first = vec![Path::symmetric(20, delay)];
                if two { first.into_iter().chain([Path::symmetric(10, 2 * delay)]).collect() } else { first }
            };
            let known = seconds(download(paths(), 1400, Knows::Before, |_| {}));
            let reported = seconds(download(paths(), 1400, Knows::Reported, |_| {}));
            let silent = seconds(download(paths(), 1400, Knows::Nothing, |_| {}));
            eprintln!("{delay} ms, two {two}: {known} s known, {reported} s reported, {silent} s silent");
            assert!(reported < 1.1 * known, "{delay} ms, two {two}: {reported} s, known before {known} s");
            assert!(silent < 1.1 * known + 2.0, "{delay} ms, two {two}: {silent} s, known before {known} s");
        }
    }
}

/// Data that was given to the buffer of a subflow waits for it, and upstream Linux leaves it there for a few periods.
/// So the second path may be of no use for long, but the download is not slower than over the first one alone.
#[test]
fn every_control_and_every_failover_gets_through_a_black_hole() {
    use {Commit::AtWindow, Commit::IntoBuffer, Failover::Legacy, Failover::Upstream};
    for (commit, failover) in [(AtWindow, Legacy), (IntoBuffer, Legacy), (IntoBuffer, Upstream)] {
        for control in ["cubic", "newreno", "lia", "olia", "balia", "wvegas", "compound", "mcc", "bbr", "cbbr"] {
            let adjust = |ours: &mut anabranch_stack::Config| {
                (ours.transport.commit, ours.transport.failover) = (commit, failover);
                ours.transport.congestion_control = Choice::of(control);
            };
            let both = || vec![Path::symmetric(20, 20), Path::symmetric(10, 40)];
            let first = || vec![Path::symmetric(20, 20)];
            let known = |paths| seconds(download(paths, 1400, Knows::Before, adjust));
            let least = if commit == AtWindow { known(both()) } else { known(both()).max(known(first())) };
            let silent = seconds(download(both(), 1400, Knows::Nothing, adjust));
            eprintln!("{commit:?} {failover:?} {control}: {silent} s, known before {least} s");
            assert!(silent < 1.1 * least + 2.0, "{control}: {silent} s, known before {least} s");
        }
    }
}

#[test]
fn the_size_that_fits_is_found_within_a_few_bytes() {
    for mtu in [552, 600, 1000, 1280, 1281, 1300, 1400, 1420, 1450, 1460, 1492, 1499] {
        let mut net = download(vec![Path::symmetric(20, 20)], mtu, Knows::Nothing, |_| {});
        assert!(net.run_until(secs(120), is_done), "{mtu}: {} bytes", net.received);
        let sizes = sizes(&mut net);
        assert_eq!(sizes.first().map(|(_, cause)| *cause), Some(MtuCause::BlackHole), "{mtu}: {sizes:?}");
        let last = sizes.last().expect("a size").0;
        assert!(last <= mtu && last + 16 > mtu.min(1500), "{mtu}: {sizes:?}");
    }
}

#[test]
fn a_link_that_becomes_smaller_is_noticed_and_a_larger_one_is_found_again() {
    let mut net = download(vec![Path::symmetric(20, 20)], 1500, Knows::Nothing, |_| {});
    (net.to_send, net.finish) = (100_000_000, false);
    net.run_until(secs(2), |_| false);
    net.paths[0].down.mtu = 1400;
    let before = net.received;
    net.run_until(secs(4), |_| false);
    assert!(net.received > before + 500_000, "{} bytes in two seconds", net.received - before);
    let shrunk = sizes(&mut net);
    assert_eq!(shrunk[0], (1280, MtuCause::BlackHole));
    assert!((1385..=1400).contains(&shrunk.last().unwrap().0), "{shrunk:?}");
    // A larger size is tried again ten minutes later.
    net.paths[0].down.mtu = 1500;
    net.run_until(secs(620), |_| false);
    net.server().write(1_000_000);
    net.run_until(secs(622), |_| false);
    assert_eq!(sizes(&mut net).last(), Some(&(1500, MtuCause::Tried)));
}

#[test]
fn no_segment_becomes_smaller_for_loss_and_outages() {
    let mut draw = Seeded(1);
    for seed in 0..1_000 {
        let rate = draw.pick(&[1, 5, 20]);
        let mut paths = vec![Path::symmetric(rate, draw.pick(&[5, 20, 80]))];
        if draw.one_in(2) {
            paths.push(Path::symmetric(draw.pick(&[1, 5, 20]), draw.pick(&[5, 20, 80])));
        }
        let mut net = download(paths, 1500, Knows::Nothing, |_| {});
        net.fate = Seeded(seed);
        (net.to_send, net.finish) = (1_000_000, true);
        for path in &mut net.paths {
            path.down.loss = draw.pick(&[0.0, 0.01, 0.05, 0.2, 0.35]);
            path.up.loss = draw.pick(&[0.0, 0.01, 0.1]);
            path.down.queue = draw.pick(&[4_500, 16_000, 64_000]);
            path.down.shuffle = Duration::from_millis(draw.pick(&[0, 0, 30]));
        }
        let mut at = Instant::ZERO;
        for _ in 0..10 {
            at += Duration::from_millis(draw.below(1_500));
            if net.run_until(at, is_done) {
                break;
            }
            let cut = draw.below(net.paths.len() as u64) as usize;
            net.paths[cut].cut();
            let longest = draw.pick(&[200, 1_000, 5_000]);
            at += Duration::from_millis(draw.below(longest));
            let done = net.run_until(at, is_done);
            net.paths[cut].heal();
            if done {
                break;
            }
        }
        net.run_until(at + Duration::from_secs(120), is_done);
        // The first SYN may be lost for long.
        if net.server.is_some() {
            assert_eq!(sizes(&mut net), [], "seed {seed}");
        }
    }
}

/// A server in the middle of its download, and a packet of it that was too big, as a router quotes it.
fn under_way(ipv6: bool) -> (Pair, TooBig) {
    let adjust = |ours: &mut anabranch_stack::Config| {
        for path in ours.paths.iter_mut().filter(|_| ipv6) {
            (path.local, path.remote) = (std::net::Ipv6Addr::LOCALHOST.into(), std::net::Ipv6Addr::LOCALHOST.into());
        }
    };
    let mut net = download(vec![Path::symmetric(20, 20)], 1500, Knows::Nothing, adjust);
    net.trace = Some(Vec::new());
    net.run_until(secs(1), |_| false);
    let trace = net.trace.take().unwrap();
    let sent = trace.iter().rfind(|(.., direction, s)| *direction == LinkDirection::Down && s.payload_len > 0);
    let segment = &sent.expect("data").3;
    let (local_port, remote_port) = (segment.source_port, segment.destination_port);
    (net, TooBig { local_port, remote_port, seq: segment.seq, packet: 1500, mtu: 1400 })
}

#[test]
fn only_reports_about_a_packet_in_flight_are_believed() {
    let believed = |change: &dyn Fn(&mut TooBig), ipv6| {
        let (mut net, mut report) = under_way(ipv6);
        change(&mut report);
        let now = net.now;
        let believed = net.server().handle_too_big(now, PathId(0), &report);
        let sizes = sizes(&mut net);
        assert_eq!(believed, !sizes.is_empty());
        assert!(net.run_until(secs(60), is_done), "{sizes:?}");
        sizes.first().map(|(mtu, _)| *mtu)
    };
    let v4 = |change: &dyn Fn(&mut TooBig)| believed(change, false);
    assert_eq!(v4(&|_| {}), Some(1400));
    assert_eq!(v4(&|report| report.seq = report.seq + 1), None, "within a packet");
    assert_eq!(v4(&|report| report.seq = report.seq + 10_000_000), None, "beyond what was sent");
    assert_eq!(v4(&|report| report.seq = SeqNumber(report.seq.0.wrapping_sub(1_448 * 1_000))), None, "acknowledged");
    assert_eq!(v4(&|report| report.local_port += 1), None, "of another subflow");
    assert_eq!(v4(&|report| report.mtu = 1500), None, "it would have fitted");
    assert_eq!(v4(&|report| report.mtu = 68), Some(552), "as Linux");
    assert_eq!(v4(&|report| report.mtu = 0), Some(1492), "a router from before RFC 1191");
    assert_eq!(believed(&|report| report.mtu = 1279, true), None, "RFC 8201");
    assert_eq!(believed(&|report| report.mtu = 1280, true), Some(1280));
}

#[test]
fn a_report_reduces_no_window() {
    let (mut net, report) = under_way(false);
    let before = net.server().views()[0];
    let now = net.now;
    assert!(net.server().handle_too_big(now, PathId(0), &report));
    let after = net.server().views()[0];
    assert_eq!((after.cwnd, after.mss), (before.cwnd, before.mss - 100));
    assert_eq!(after.in_flight, 0, "everything is sent again");
    assert!(net.run_until(secs(60), is_done));
    assert!(net.now.as_secs_f64() < 1.1 * LEN as f64 * 8.0 * 1400.0 / 1348.0 / 20e6, "{}", net.now);
}
