//! Whole transfers: a server sends, a client reads, and the networks fail meanwhile.

use crate::common::{Pair, Path, config, secs};
use anabranch_events::{SendKind, TransportEvent};
use anabranch_stack::connection::{Choice, Commit, Protocol};
use anabranch_units::{Bandwidth, Duration, Instant};

const MIB: u64 = 1 << 20;

fn download(protocol: Protocol, paths: Vec<Path>, bytes: u64) -> Pair {
    let n = paths.len();
    let mut pair = Pair::new(config(protocol, n), config(protocol, n), paths, 7);
    pair.to_send = bytes;
    pair
}

fn finished(bytes: u64) -> impl FnMut(&mut Pair) -> bool {
    move |pair| pair.received == bytes && pair.client.peer_finished()
}

#[test]
fn one_tcp_fills_its_link() {
    let mut net = download(Protocol::Tcp, vec![Path::symmetric(10, 20)], 5 * MIB);
    assert!(net.run_until(secs(60), finished(5 * MIB)));
    // 1448 of 1500 bytes are payload; two round trips of start-up are generous.
    let ideal = (5 * MIB) as f64 * 8.0 * 1500.0 / 1448.0 / 10e6;
    let took = net.now.as_secs_f64();
    assert!(took > ideal && took < ideal + 0.25, "{took} s for ideally {ideal} s");
}

#[test]
fn the_receive_window_grows_with_and_without_timestamps() {
    for timestamps in [true, false] {
        let mut ours = config(Protocol::Tcp, 1);
        ours.transport.timestamps = timestamps;
        let mut net = Pair::new(ours.clone(), ours, vec![Path::symmetric(50, 20)], 7);
        net.to_send = 10 * MIB;
        assert!(net.run_until(secs(60), finished(10 * MIB)));
        // The first window of 64 kB per round trip would take more than six seconds.
        assert!(net.now.as_secs_f64() < 2.5, "{} with timestamps: {timestamps}", net.now);
    }
}

#[test]
fn two_paths_carry_the_sum_of_their_rates() {
    let mut net = download(Protocol::Mptcp, vec![Path::symmetric(10, 20), Path::symmetric(5, 40)], 10 * MIB);
    assert!(net.run_until(secs(60), finished(10 * MIB)));
    assert!(net.server().is_multipath() && net.client.is_multipath());
    let ideal = (10 * MIB) as f64 * 8.0 * 1500.0 / 1428.0 / 15e6;
    let took = net.now.as_secs_f64();
    assert!(took > ideal && took < ideal + 0.5, "{took} s for ideally {ideal} s");
}

/// Seconds that 5 MiB take over paths of 10 and 5 Mb/s with this cap, and the bytes that each path carried. Data that
/// commits into buffers is divided by Linux's scheduler: `min-rtt` would fill one buffer before the other gets any.
fn capped(commit: Commit, cap: Option<u64>) -> (f64, [u64; 2]) {
    let mut ours = config(Protocol::Mptcp, 2);
    ours.transport.commit = commit;
    if commit == Commit::IntoBuffer {
        ours.transport.scheduler = Choice::of("linux");
    }
    let paths = vec![Path::symmetric(10, 20), Path::symmetric(5, 40)];
    let mut net = Pair::new(ours.clone(), ours, paths, 7);
    net.to_send = 5 * MIB;
    assert!(net.run_until(secs(1), |net| net.server.is_some()));
    net.server().set_pace_cap(cap.map(Bandwidth::from_mbps));
    assert!(net.run_until(secs(60), finished(5 * MIB)));
    let packets = [net.paths[0].down.sent, net.paths[1].down.sent];
    (net.now.as_secs_f64(), packets)
}

#[test]
fn a_cap_limits_the_rate_of_all_subflows_together() {
    for commit in [Commit::AtWindow, Commit::IntoBuffer] {
        // A third of both paths, and more than either of them alone.
        for mbps in [3, 12] {
            let (took, packets) = capped(commit, Some(mbps));
            // In addition: handshakes, slow start, and last bytes that were committed to the slow path.
            let ideal = (5 * MIB) as f64 * 8.0 / (mbps as f64 * 1e6);
            assert!(
                took > ideal && took < 1.05 * ideal + 0.5,
                "{commit:?}, {mbps} Mb/s: {took} s for ideally {ideal} s"
            );
            assert!(mbps < 10 || packets.iter().all(|sent| *sent > 500), "{commit:?}: {packets:?}");
        }
    }
}

#[test]
fn a_cap_above_what_the_paths_carry_changes_little() {
    let (free, _) = capped(Commit::AtWindow, None);
    let (high, _) = capped(Commit::AtWindow, Some(1_000));
    assert!((high - free).abs() < 0.02 * free, "{high} s and {free} s");
}

#[test]
fn losses_are_repaired_without_a_timeout() {
    for protocol in [Protocol::Tcp, Protocol::Mptcp] {
        let mut path = Path::symmetric(10, 20);
        path.down.loss = 0.01;
        let mut net = download(protocol, vec![path], 5 * MIB);
        assert!(net.run_until(secs(120), finished(5 * MIB)), "{:?}", net.server);
        let events: Vec<_> = net.server().log().drain().map(|(_, event)| event).collect();
        let sent = |wanted| {
            let is = |e: &&TransportEvent| matches!(e, TransportEvent::SegmentSent { kind, .. } if *kind == wanted);
            events.iter().filter(is).count() as u64
        };
        let retransmitted = sent(SendKind::Retransmission) + sent(SendKind::TailLossProbe);
        // Every loss of data costs one retransmission, and hardly any more.
        assert!(
            retransmitted >= 20 && retransmitted <= net.paths[0].down.dropped + 3,
            "{retransmitted} retransmissions"
        );
        let timeouts = events
            .iter()
            .filter(|e| matches!(e, TransportEvent::WindowReduced { cause: anabranch_events::LossCause::Timeout, .. }));
        assert!(timeouts.count() <= 1);
    }
}

#[test]
fn a_dead_path_hands_its_bytes_to_the_living_one() {
    let mut net = download(Protocol::Mptcp, vec![Path::symmetric(20, 15), Path::symmetric(8, 40)], 8 * MIB);
    assert!(!net.run_until(secs(1), |_| false));
    net.paths[0].cut();
    let before = net.received;
    assert!(before > MIB);
    // A timeout of the first path, and a round trip of the second.
    let resumed = net.run_until(secs(1) + Duration::from_millis(500), |pair| pair.received > before + MIB / 8);
    assert!(resumed, "{} bytes since the cut", net.received - before);
    assert!(net.run_until(secs(60), finished(8 * MIB)), "{:?}", net.server);
}

#[test]
fn a_silent_outage_heals() {
    let mut net = download(Protocol::Mptcp, vec![Path::symmetric(4, 20), Path::symmetric(4, 20)], 4 * MIB);
    net.run_until(secs(1), |_| false);
    net.paths.iter_mut().for_each(Path::cut);
    net.run_until(secs(6), |_| false);
    net.paths.iter_mut().for_each(Path::heal);
    let before: Vec<_> = net.paths.iter().map(|path| path.down.delivered).collect();
    assert!(net.run_until(secs(60), finished(4 * MIB)), "{:?}", net.server);
    for (path, before) in net.paths.iter().zip(before) {
        let since = path.down.delivered - before;
        assert!(since > 300, "both paths carry data again, not only {since} packets");
    }
}

#[test]
fn a_sleeping_reader_closes_the_window_and_opens_it_again() {
    let mut net = download(Protocol::Mptcp, vec![Path::symmetric(10, 10), Path::symmetric(10, 10)], 4 * MIB);
    net.client_sleeps = true;
    net.run_until(secs(20), |_| false);
    let held = net.client.readable();
    // Linux's 128 kB of memory have room for 56 packets.
    assert!(held > 32 * 1024 && held <= 56 * 1_428, "{held} bytes wait");
    net.client_sleeps = false;
    net.read();
    assert!(net.run_until(secs(60), finished(4 * MIB)), "{:?}", net.server);
}

#[test]
fn an_interface_that_goes_and_comes_back_gets_a_new_subflow() {
    let mut net = download(Protocol::Mptcp, vec![Path::symmetric(10, 10), Path::symmetric(10, 20)], 20 * MIB);
    net.run_until(secs(2), |_| false);
    let now = net.now;
    net.paths[0].cut();
    net.client.handle_path_change(now, anabranch_units::PathId(0), false);
    net.run_until(secs(4), |_| false);
    assert_eq!(net.server().views().len(), 1, "the server learned of it by REMOVE_ADDR");
    net.paths[0].heal();
    let now = net.now;
    net.client.handle_path_change(now, anabranch_units::PathId(0), true);
    net.run_until(secs(5), |_| false);
    assert_eq!(net.server().views().len(), 2);
    assert!(net.run_until(secs(60), finished(20 * MIB)));
}

#[test]
fn both_ends_close_in_order() {
    let mut net = download(Protocol::Mptcp, vec![Path::symmetric(10, 10), Path::symmetric(10, 20)], MIB);
    assert!(net.run_until(secs(20), finished(MIB)));
    net.client.finish();
    assert!(net.run_until(secs(25), |pair| pair.client.is_closed() && pair.server().is_closed()));
    net.run_until(secs(26), |_| false);
    assert_eq!(net.server().poll_timeout(), None, "nothing is left to do");
    assert_eq!(net.client.poll_timeout(), None);
}

#[test]
fn a_peer_without_multipath_gets_plain_tcp() {
    let paths = || vec![Path::symmetric(10, 10), Path::symmetric(10, 20)];
    let mut net = Pair::new(config(Protocol::Mptcp, 2), config(Protocol::Tcp, 2), paths(), 7);
    net.to_send = MIB;
    assert!(net.run_until(secs(20), finished(MIB)));
    assert!(!net.client.is_multipath());
    let mut net = Pair::new(config(Protocol::Tcp, 2), config(Protocol::Mptcp, 2), paths(), 7);
    net.to_send = MIB;
    assert!(net.run_until(secs(20), finished(MIB)));
    assert!(!net.server().is_multipath());
    assert!(net.now < Instant::ZERO + Duration::from_secs(2));
}
