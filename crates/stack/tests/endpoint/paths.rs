//! Several subflows: priorities, removed addresses, ends of subflows and of the connection, and data that moves to
//! another subflow.

use crate::common::talk::*;
use crate::common::{Pair, Path, Seeded, config, secs};
use anabranch_events::{SendKind, TransportEvent};
use anabranch_segment::{Flags, MptcpOption, RemovedAddresses};
use anabranch_stack::Connection;
use anabranch_stack::connection::{Commit, Protocol};
use anabranch_units::{LinkDirection, PathId};

const NOTHING: [&str; 0] = [];

/// A server with subflows on paths 0 and 1, established at time 40.
fn two_subflows() -> Talk {
    let mut talk = Talk::served(two_paths());
    talk.join(1, 2);
    assert_eq!((talk.end.views().len(), talk.now), (2, 40));
    talk
}

fn sends(talk: &mut Talk) -> Vec<(SendKind, u64)> {
    let events = talk.end.log().drain();
    let sent = events.filter_map(|(_, event)| match event {
        TransportEvent::SegmentSent { kind, offset, .. } => Some((kind, offset)),
        _ => None,
    });
    sent.collect()
}

/// By path: how many of the segments carry payload.
fn loads(emitted: &[(usize, anabranch_segment::Segment)]) -> [usize; 2] {
    [0, 1].map(|path| emitted.iter().filter(|(at, segment)| *at == path && segment.payload_len > 0).count())
}

#[test]
fn a_subflow_is_metered_as_its_path_is() {
    let mut paths = config(Protocol::Mptcp, 2);
    paths.paths[1].metered = true;
    let mut net =
        Pair::new(paths, config(Protocol::Mptcp, 2), vec![Path::symmetric(10, 10), Path::symmetric(10, 20)], 3);
    net.run_until(secs(1), |_| false);
    let metered = |end: &Connection| end.views().iter().map(|view| (view.path, view.metered)).collect::<Vec<_>>();
    assert_eq!(metered(&net.client), [(PathId(0), false), (PathId(1), true)]);
    assert_eq!(metered(net.server()), [(PathId(0), false), (PathId(1), false)], "nothing is signalled");
}

#[test]
fn a_priority_moves_the_traffic_and_moves_it_back() {
    let paths = || vec![Path::symmetric(10, 10), Path::symmetric(10, 20)];
    let mut net = Pair::new(config(Protocol::Mptcp, 2), config(Protocol::Mptcp, 2), paths(), 3);
    net.to_send = 40_000_000;
    net.trace = Some(Vec::new());
    net.run_until(secs(2), |_| false);
    let delivered = |net: &Pair| [0, 1].map(|path: usize| net.paths[path].down.delivered);
    // The client's last segment on the first path, with the option.
    let say_priority = |net: &mut Pair, backup| {
        let trace = net.trace.as_ref().unwrap();
        let last = trace.iter().rfind(|(_, path, to, _)| path.index() == 0 && *to == LinkDirection::Up).unwrap();
        let mut segment = last.3.clone();
        segment.mptcp.push(MptcpOption::Priority { backup });
        let now = net.now;
        net.server().handle_segment(now, PathId(0), &segment);
    };
    say_priority(&mut net, true);
    assert!(net.server().views()[0].backup);
    net.run_until(secs(3), |_| false);
    let before = delivered(&net);
    net.run_until(secs(5), |_| false);
    let after = delivered(&net);
    assert_eq!(after[0] - before[0], 0, "nothing new on the backup");
    assert!(after[1] - before[1] > 1000);
    say_priority(&mut net, false);
    net.run_until(secs(7), |_| false);
    assert!(delivered(&net)[0] - after[0] > 1000);
}

#[test]
fn a_timeout_hands_the_bytes_to_the_other_subflow() {
    let mut talk = two_subflows();
    // The round trips are equal and measured from the handshakes; the first subflow is the one that min-RTT takes.
    talk.end.write(1_428 * 4);
    let emitted = talk.emitted_segments();
    assert_eq!(loads(&emitted), [4, 0]);
    // A probe after two round trips and 6 ms, a timeout one timeout after that.
    assert_eq!(talk.emitted_at(40 + 46), ["0 ACK 4285+1428 ack 1 4284@4285+1428 data-ack 0"]);
    sends(&mut talk);
    let emitted = talk.emitted_at(86 + 220);
    // The failed subflow retransmits its first packet; the other one carries all four, in order.
    assert_eq!(emitted[0], "0 ACK 1+1428 ack 1 0@1+1428 data-ack 0");
    let reinjected: Vec<_> = (0..4)
        .map(|i| format!("1 ACK {}+1428 ack 1 {}@{}+1428 data-ack 0", 1 + i * 1428, i * 1428, 1 + i * 1428))
        .collect();
    assert_eq!(emitted[1..], reinjected);
    use SendKind::{Reinjection, Retransmission};
    let expected =
        [(Retransmission, 0), (Reinjection, 0), (Reinjection, 1428), (Reinjection, 2856), (Reinjection, 4284)];
    assert_eq!(sends(&mut talk), expected);
    // New data avoids the subflow that failed, until an acknowledgment arrives on it.
    assert!(talk.end.views()[0].potentially_failed);
    talk.deliver(1, peer(1, 5713).data_ack(5712).echo(306));
    talk.end.write(1_428);
    assert_eq!(loads(&talk.emitted_segments()), [0, 1]);
    talk.deliver(0, peer(1, 5713).data_ack(5712).echo(40));
    assert!(!talk.end.views()[0].potentially_failed);
}

#[test]
fn a_subflow_that_is_reset_hands_over_everything_that_it_held() {
    let mut config = two_paths();
    config.transport.commit = Commit::IntoBuffer;
    let mut talk = Talk::served(config);
    talk.join(1, 2);
    // The peer's window is wide enough for both buffers, of some 60 packets each.
    talk.deliver(0, peer(1, 1).data_ack(0));
    talk.end.write(1_428 * 200);
    let emitted = talk.emitted_segments();
    assert_eq!(loads(&emitted), [10, 10]);
    let queued: Vec<_> = talk.end.views().iter().map(|view| view.queued).collect();
    assert!(queued[0] > 0 && queued[1] > 0, "{queued:?}");
    sends(&mut talk);
    talk.deliver(0, peer(1, 1).flags(Flags::RST | Flags::ACK));
    let mut acked = 1 + 10 * 1428;
    let mut reinjected = 0;
    for _ in 0..20 {
        talk.wait_until(talk.now + 20);
        let (now, emitted) = (talk.now, peer(1, acked).data_ack(0));
        talk.deliver(1, emitted.echo(now - 20));
        let emitted = talk.emitted_segments();
        acked += emitted.iter().map(|(_, segment)| u64::from(segment.payload_len)).sum::<u64>();
        reinjected += sends(&mut talk).iter().filter(|(kind, _)| *kind == SendKind::Reinjection).count();
    }
    assert!(reinjected >= 10, "{reinjected} segments");
    // Every byte of the stream has left on the subflow that remains: it carries 200 segments.
    assert_eq!(acked, 1 + 200 * 1428);
}

/// The send buffer of a subflow with data that commits into it, after each flight of slow start with all that the
/// application wrote.
fn send_buffers(written: u64, flights: &[usize]) -> Vec<u64> {
    let mut config = two_paths();
    config.transport.commit = Commit::IntoBuffer;
    let mut talk = Talk::served(config);
    talk.deliver(0, peer(1, 1).data_ack(0));
    talk.end.write(written);
    let mut acked = 0;
    let round_trip = |packets: &usize| {
        let emitted = talk.emitted_segments();
        assert_eq!(loads(&emitted), [*packets, 0]);
        let buffer = talk.end.views()[0].send_buffer;
        talk.wait_until(talk.now + 20);
        acked += emitted.iter().map(|(_, segment)| u64::from(segment.payload_len)).sum::<u64>();
        let echo = talk.now - 20;
        talk.deliver(0, peer(1, 1 + acked).data_ack(acked).echo(echo));
        buffer
    };
    flights.iter().map(round_trip).collect()
}

#[test]
fn the_send_buffer_grows_with_the_window_while_the_application_waits_for_room() {
    // A packet takes 4,096 bytes and a description of 256, and the buffer has room for twice the window.
    let room = |packets: u64| 2 * packets * 4_352;
    assert_eq!(send_buffers(1_000_000, &[10, 20, 40, 80]), [room(10), room(20), room(40), room(80)]);
    // After the second acknowledgment 40 packets are left, which take less than two thirds of the buffer: no data
    // waits.
    assert_eq!(send_buffers(1_428 * 70, &[10, 20, 40]), [room(10), room(20), room(20)]);
}

#[test]
fn a_full_window_retransmits_its_first_data_on_the_faster_subflow_and_slows_the_slower() {
    let mut talk = Talk::served(two_paths());
    talk.window = (1_428 * 14 / 128) as u16; // 14 segments, and a little less
    talk.deliver(0, peer(1, 1).data_ack(0));
    // The second subflow is five times slower.
    talk.join_syn(1, 2, token(OUR_KEY));
    talk.emitted();
    talk.wait_until(120);
    let hmac = join_proof(PEER_KEY, OUR_KEY, [PEER_NONCE, talk.nonce])[..20].try_into().unwrap();
    talk.deliver(1, peer(1, 1).option(MptcpOption::JoinAck { hmac }));
    talk.emitted();
    // The peer's first window of 65 536 bytes stays advertised: 45 segments. Fill it so that the slow one holds the
    // first unacknowledged data.
    talk.end.write(1_428 * 100);
    assert_eq!(loads(&talk.emitted_segments()), [10, 10]);
    talk.wait_until(140);
    // The fast subflow is acknowledged, and the stream up to where the slow one's bytes begin.
    talk.deliver(0, peer(1, 1 + 14_280).data_ack(14_280).echo(120));
    assert_eq!(loads(&talk.emitted_segments()), [20, 0]);
    sends(&mut talk);
    talk.wait_until(160);
    talk.deliver(0, peer(1, 1 + 3 * 14_280).data_ack(14_280).echo(140));
    let emitted = talk.emitted();
    assert_eq!(emitted.first().map(String::as_str), Some("0 ACK 42841+1428 ack 1 57120@42841+1428 data-ack 0"));
    let kinds = sends(&mut talk);
    assert_eq!(kinds.last(), Some(&(SendKind::Reinjection, 14_280)), "{kinds:?}");
    assert_eq!(kinds.iter().filter(|(kind, _)| *kind == SendKind::Reinjection).count(), 1, "once");
    assert_eq!(talk.end.views()[1].cwnd.floor(), 5, "half of ten");
    talk.deliver(0, peer(1, 1 + 3 * 14_280).data_ack(14_280).echo(140));
    assert_eq!(talk.emitted(), NOTHING);
}

#[test]
fn an_address_that_goes_takes_its_subflow_along() {
    let mut talk = two_subflows();
    talk.end.write(1_428 * 30);
    assert_eq!(loads(&talk.emitted_segments()), [10, 10]);
    let gone = MptcpOption::RemoveAddress(RemovedAddresses::new(&[2]).unwrap());
    talk.deliver(0, peer(1, 1).data_ack(0).option(gone));
    assert_eq!(talk.end.views().len(), 1);
    talk.wait_until(60);
    sends(&mut talk);
    talk.deliver(0, peer(1, 1 + 14_280).data_ack(14_280).echo(40));
    talk.emitted();
    let first = sends(&mut talk)[..10].to_vec();
    let expected: Vec<_> = (10..20).map(|i| (SendKind::Reinjection, i * 1428)).collect();
    assert_eq!(first, expected, "its bytes first, then new ones");
}

#[test]
fn a_client_whose_interface_goes_down_withdraws_its_address() {
    let mut talk = Talk::connected(two_paths());
    talk.emitted();
    let hmac = u64::from_be_bytes(join_proof(PEER_KEY, OUR_KEY, [PEER_NONCE, 0x4444])[..8].try_into().unwrap());
    talk.syn_ack(1, &[MptcpOption::JoinSynAck { backup: false, address_id: 0, hmac, nonce: PEER_NONCE }]);
    talk.emitted();
    talk.deliver(1, peer(1, 1).data_ack(0));
    talk.emitted();
    talk.end.handle_path_change(at(talk.now), PathId(0), false);
    assert_eq!(talk.emitted(), ["1 ACK 1 ack 1 data-ack 0 remove([0])"]);
    talk.end.handle_path_change(at(talk.now), PathId(0), true);
    assert_eq!(talk.emitted(), ["0 SYN 0 join-syn(0)"], "back at once");
}

#[test]
fn a_subflow_that_the_peer_ends_is_ended_here_too() {
    let mut talk = two_subflows();
    talk.deliver(1, peer(1, 1).data_ack(0).flags(Flags::ACK | Flags::FIN));
    assert_eq!(talk.emitted(), ["1 FIN|ACK 1 ack 2 data-ack 0"]);
    talk.end.write(1_428 * 20);
    assert_eq!(loads(&talk.emitted_segments()), [10, 0]);
    talk.deliver(1, peer(2, 2).data_ack(0));
    assert!(!talk.end.is_closed());
}

#[test]
fn a_fast_close_ends_everything() {
    // In its RST form.
    let mut talk = two_subflows();
    let close = MptcpOption::FastClose { receiver_key: OUR_KEY };
    talk.deliver(1, peer(1, 1).flags(Flags::RST | Flags::ACK).option(close.clone()));
    assert!(talk.end.is_closed() && talk.end.views().is_empty());
    assert_eq!((talk.emitted(), talk.end.poll_timeout()), (vec![], None));
    // In its ACK form it is answered by a reset on every subflow.
    let mut talk = two_subflows();
    talk.deliver(1, peer(1, 1).data_ack(0).option(close));
    assert!(talk.end.is_closed());
    let resets = talk.emitted();
    assert_eq!(resets.len(), 2);
    assert!(resets.iter().all(|text| text.contains("RST")), "{resets:?}");
    // With a wrong key it is ignored.
    let mut talk = two_subflows();
    talk.deliver(1, peer(1, 1).data_ack(0).option(MptcpOption::FastClose { receiver_key: 5 }));
    assert!(!talk.end.is_closed());
}

#[test]
fn an_abort_is_a_fast_close_on_every_subflow() {
    let mut talk = two_subflows();
    talk.end.write(1_428 * 3);
    talk.emitted();
    talk.end.abort(at(talk.now));
    let expected =
        ["0 RST|ACK 4285 ack 1 fastclose reset(Unspecified)", "1 RST|ACK 1 ack 1 fastclose reset(Unspecified)"];
    assert_eq!(talk.emitted(), expected);
    assert!(talk.end.is_closed() && talk.end.is_over());
}

#[test]
fn bytes_of_a_dead_subflow_wait_for_the_other_one_to_recover_and_go_once() {
    let mut talk = Talk::served(two_paths());
    talk.join_syn(1, 2, token(OUR_KEY));
    talk.emitted();
    talk.wait_until(30);
    let hmac = join_proof(PEER_KEY, OUR_KEY, [PEER_NONCE, talk.nonce])[..20].try_into().unwrap();
    talk.deliver(1, peer(1, 1).option(MptcpOption::JoinAck { hmac }));
    talk.emitted();
    // The second subflow is the faster one, so it carries the first bytes. Neither path delivers any more.
    talk.end.write(1_428 * 20);
    assert_eq!(loads(&talk.emitted_segments()), [10, 10]);
    assert_eq!(talk.emitted_at(30 + 26).len(), 1);
    assert_eq!(talk.emitted_at(30 + 46).len(), 1);
    sends(&mut talk);
    // The second times out; the first has no room for its bytes. Then the first times out; the second stays dead.
    assert_eq!(talk.emitted_at(56 + 210), ["1 ACK 1+1428 ack 1 0@1+1428 data-ack 0"]);
    assert_eq!(talk.emitted_at(76 + 220), ["0 ACK 1+1428 ack 1 14280@1+1428 data-ack 0"]);
    talk.wait_until(300);
    talk.deliver(1, peer(1, 1).flags(Flags::RST | Flags::ACK));
    assert_eq!(talk.emitted(), NOTHING);
    sends(&mut talk);
    // An acknowledgment arrives on the first: it received its own bytes, which lack those before.
    talk.wait_until(312);
    talk.deliver(0, peer(1, 1 + 14_280).data_ack(0).echo(296));
    talk.emitted();
    let mut offsets: Vec<_> = sends(&mut talk).iter().map(|(_, offset)| offset / 1428).collect();
    for _ in 0..5 {
        talk.wait_until(talk.now + 20);
        let acked = 1 + 14_280 + 1_428 * offsets.len() as u64;
        talk.deliver(0, peer(1, acked).data_ack(0).echo(talk.now - 20));
        talk.emitted();
        offsets.extend(sends(&mut talk).iter().map(|(_, offset)| offset / 1428));
    }
    assert_eq!(offsets, (0..10).collect::<Vec<_>>());
}

#[test]
fn more_paths_than_a_connection_can_have_subflows_are_refused() {
    let client = |paths| Connection::client(config(Protocol::Mptcp, paths), Box::new(Seeded(1)));
    assert!(client(64).is_ok());
    let error = client(65).expect_err("one too many").to_string();
    assert!(error.contains("there are 65") && error.contains("at most 64"), "{error}");
}

/// A server accepts a join on each of its paths, however many there are.
#[test]
fn every_path_gets_a_subflow() {
    let paths = (0..20).map(|_| Path::symmetric(5, 10)).collect();
    let mut net = Pair::new(config(Protocol::Mptcp, 20), config(Protocol::Mptcp, 20), paths, 1);
    net.to_send = 1_000_000;
    net.ask(100, false);
    net.run_until(secs(1), |_| false);
    assert_eq!((net.client.views().len(), net.server().views().len()), (20, 20));
}
