//! Data, segment by segment: windows, mappings, acknowledgments at both levels, the end (RFC 8684 section 3.3).

use crate::common::talk::*;
use crate::common::{Pair, Path, config, secs};
use anabranch_events::TransportEvent;
use anabranch_segment::Flags;
use anabranch_stack::connection::{Choice, Placed, Protocol};
use anabranch_stack::options::{Options, Value};
use anabranch_units::{Bytes, Duration, Instant, LinkDirection, SubflowId};

const NOTHING: [&str; 0] = [];

fn served() -> Talk {
    Talk::served(two_paths())
}

/// `n` full segments from packet `first` on, as text.
fn full(first: u64, n: u64) -> Vec<String> {
    let segment = |i: u64| {
        let offset = i * 1428;
        format!("0 ACK {}+1428 ack 1 {offset}@{}+1428 data-ack 0", offset + 1, offset + 1)
    };
    (first..first + n).map(segment).collect()
}

#[test]
fn ten_segments_leave_at_once_and_two_for_each_that_is_acknowledged() {
    let mut talk = served();
    talk.end.write(1_000_000);
    assert_eq!(talk.emitted(), full(0, 10));
    talk.sends_nothing_until(39);
    talk.wait_until(40);
    for pair in 1..=5 {
        let acked = 2 * pair * 1428;
        talk.deliver(0, peer(1, 1 + acked).data_ack(acked).echo(20));
        assert_eq!(talk.emitted(), full(10 + 4 * (pair - 1), 4));
    }
    talk.sends_nothing_until(59);
}

#[test]
fn wide_numbers_take_eight_bytes_more() {
    let mut config = two_paths();
    config.transport.wide_data_seq = true;
    let mut talk = Talk::served(config);
    talk.wide = true;
    talk.end.write(3_000);
    let emitted = talk.emitted_segments();
    let lens: Vec<_> = emitted.iter().map(|(_, s)| (s.payload_len, s.len())).collect();
    assert_eq!(lens, [(1420, 1480), (1420, 1480), (160, 220)]);
    let dss = emitted[1].1.dss.unwrap();
    assert_eq!({ dss.mapping.unwrap().dsn.value }, idsn(OUR_KEY).wrapping_add(1421));
    assert_eq!({ dss.data_ack.unwrap().value }, idsn(PEER_KEY).wrapping_add(1));
    // With 8-byte acknowledgments one run fits in with them; with 4 bytes, two.
    for (start, stream) in [(101, 100), (301, 300), (501, 500)] {
        talk.deliver(0, peer(start, 1).data(stream, 100));
    }
    assert_eq!(talk.emitted(), ["0 ACK 3001 ack 1 [501-601] data-ack 0"]);
    let mut talk = served();
    for (start, stream) in [(101, 100), (301, 300), (501, 500)] {
        talk.deliver(0, peer(start, 1).data(stream, 100));
    }
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 1 [501-601] [301-401] data-ack 0"]);
}

/// A key whose initial data sequence number is just below a multiple of 2^32.
fn key_before_the_wrap() -> u64 {
    (0..).find(|key| idsn(*key) as u32 > u32::MAX - 100_000).unwrap()
}

#[test]
fn numbers_of_both_levels_wrap_in_the_midst_of_a_transfer() {
    for (protocol, wide) in [(Protocol::Tcp, false), (Protocol::Mptcp, false), (Protocol::Mptcp, true)] {
        let mut ours = config(protocol, 2);
        ours.transport.wide_data_seq = wide;
        let paths = vec![Path::symmetric(5, 10), Path::symmetric(5, 15)];
        let mut net = Pair::new(ours.clone(), ours, paths, 1);
        // The server's key, and first numbers a few packets before the wrap on both of its subflows.
        let numbers = [key_before_the_wrap(), 0, u64::from(u32::MAX) - 40_000, 5, 0, u64::from(u32::MAX) - 9_000];
        net.server_entropy = Some(Scripted::new(&numbers));
        net.to_send = 600_000;
        net.paths[0].down.loss = 0.01;
        net.trace = Some(Vec::new());
        assert!(net.run_until(secs(20), |net| net.received == 600_000 && net.client.peer_finished()), "{protocol:?}");
        let seqs = |path: usize| {
            let trace = net.trace.as_ref().unwrap();
            let downward = trace.iter().filter(|(_, _, direction, _)| *direction == LinkDirection::Down);
            let data = downward.filter(|(_, at, _, segment)| at.index() == path && segment.payload_len > 0);
            let (mut before, mut behind) = (0, 0);
            data.for_each(|(.., s)| *if s.seq.0 > 1 << 31 { &mut before } else { &mut behind } += 1);
            (before, behind)
        };
        let (before, behind) = seqs(0);
        assert!(before > 20 && behind > 20, "{before} and {behind} packets on either side of the wrap");
    }
}

/// Linux probes a window of zero with new sequence numbers of the subflow for a byte that was acknowledged long ago,
/// and with an arbitrary byte as its content.
#[test]
fn what_the_stream_has_is_not_placed_again() {
    let mut talk = served();
    talk.deliver(0, peer(1, 1).payload(1000).map(0, 1, 1000));
    assert_eq!(talk.deliver(0, peer(1001, 1).payload(1).map(999, 1001, 1)), None);
    assert_eq!(talk.emitted().pop().unwrap(), "0 ACK 1 ack 1002 data-ack 1000", "the probe is answered");
    // A segment whose first part is known.
    let placed = talk.deliver(0, peer(1002, 1).payload(300).map(900, 1002, 300));
    assert_eq!(placed, Some(Placed { stream_offset: 1000, payload_start: 100, len: 200 }));
    assert_eq!(talk.end.readable(), 1200);
}

#[test]
fn a_mapping_may_span_segments_and_come_with_each_or_with_the_first() {
    let mut talk = served();
    // As Linux sends: the same mapping on each.
    for part in 0..3u64 {
        let placed = talk.deliver(0, peer(1 + 1000 * part, 1).payload(1000).map(0, 1, 3000));
        assert_eq!(placed, Some(Placed { stream_offset: 1000 * part, payload_start: 0, len: 1000 }));
    }
    // On the first only.
    talk.deliver(0, peer(3001, 1).payload(1000).map(3000, 3001, 2000));
    let placed = talk.deliver(0, peer(4001, 1).payload(1000));
    assert_eq!(placed.map(|p| p.stream_offset), Some(4000));
    assert_eq!((talk.end.readable(), talk.emitted().pop().unwrap().as_str()), (5000, "0 ACK 1 ack 5001 data-ack 5000"));
    // A segment whose mapping has not arrived is not accepted, and is retransmitted.
    assert!(talk.deliver(0, peer(6001, 1).payload(1000)).is_none());
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 5001 data-ack 5000"]);
    talk.deliver(0, peer(5001, 1).payload(1000).map(5000, 5001, 2000));
    talk.deliver(0, peer(6001, 1).payload(1000));
    assert_eq!(talk.end.readable(), 7000);
    // Bytes accepted already need no mapping.
    assert!(talk.deliver(0, peer(6001, 1).payload(1000)).is_none());
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 7001 [6001-7001] data-ack 7000"]);
    assert_eq!(talk.end.views().len(), 1);
}

#[test]
fn a_payload_beyond_its_mapping_is_taken_as_far_as_it_is_mapped() {
    let mut talk = served();
    let placed = talk.deliver(0, peer(1, 1).payload(1000).map(0, 1, 600));
    assert_eq!(placed.map(|p| p.len), Some(600));
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 601 data-ack 600"]);
}

#[test]
fn data_without_a_mapping_and_contradicting_mappings_reset_the_subflow() {
    let mut talk = served();
    talk.deliver(0, peer(1, 1).data(0, 100));
    talk.emitted();
    talk.deliver(0, peer(101, 1).payload(100));
    assert_eq!(talk.emitted(), ["0 RST|ACK 1 ack 101 reset(MptcpError)"]);

    let mut talk = served();
    talk.deliver(0, peer(1, 1).payload(100).map(0, 1, 300));
    talk.emitted();
    // The bytes 201 to 300 were mapped to 200..300 before.
    talk.deliver(0, peer(101, 1).payload(100).map(5000, 101, 200));
    assert_eq!(talk.emitted(), ["0 RST|ACK 1 ack 101 reset(MptcpError)"]);

    // A mapping that does not cover its own segment, and one that begins before all numbers.
    for subflow in [0, 150, u32::MAX - 5] {
        let mut talk = served();
        talk.deliver(0, peer(1, 1).data(0, 100));
        talk.emitted();
        talk.deliver(0, peer(101, 1).payload(100).map(100, subflow, 100));
        assert_eq!(talk.emitted(), ["0 RST|ACK 1 ack 101 reset(MptcpError)"]);
    }
}

#[test]
fn the_same_bytes_on_two_subflows_are_delivered_once() {
    let mut talk = served();
    talk.join(1, 2);
    talk.deliver(0, peer(1, 1).data(0, 1000));
    talk.emitted();
    talk.deliver(1, peer(1, 1).data(500, 1000));
    assert_eq!((talk.end.readable(), talk.emitted()), (1500, vec!["1 ACK 1 ack 1001 data-ack 1500".to_string()]));
    // All of it again, in one piece.
    talk.deliver(1, peer(1001, 1).data(0, 1428));
    assert_eq!((talk.end.readable(), talk.emitted()), (1500, vec!["1 ACK 1 ack 2429 data-ack 1500".to_string()]));
    // Ahead of a gap of the stream, on a subflow without gaps.
    talk.deliver(0, peer(1001, 1).data(2500, 500));
    assert_eq!((talk.end.readable(), talk.emitted()), (1500, vec!["0 ACK 1 ack 1501 data-ack 1500".to_string()]));
    talk.deliver(1, peer(2429, 1).data(1400, 1428));
    assert_eq!(talk.end.readable(), 3000);
}

#[test]
fn overlapping_segments_of_a_subflow_count_once() {
    let mut talk = served();
    talk.deliver(0, peer(1, 1).data(0, 1000));
    let placed = talk.deliver(0, peer(501, 1).payload(1000).map(500, 501, 1000));
    assert_eq!(placed, Some(Placed { stream_offset: 1000, payload_start: 500, len: 500 }));
    assert_eq!(talk.end.readable(), 1500);
}

#[test]
fn acknowledgments_of_what_was_never_sent_are_not_taken() {
    let mut talk = served();
    talk.end.write(100_000);
    talk.emitted();
    // At the data level: 14 280 bytes were sent.
    talk.deliver(0, peer(1, 1).data_ack(14_281).sack(1429, 2857));
    assert_eq!(talk.end.acked(), 0);
    talk.deliver(0, peer(1, 1).data_ack(99_999));
    assert_eq!(talk.end.acked(), 0);
    // At the subflow level: no part of the segment is accepted, and it is answered.
    talk.emitted();
    assert!(talk.deliver(0, peer(1, 14_282).data_ack(1428).data(0, 10)).is_none());
    assert_eq!((talk.end.acked(), talk.emitted().len()), (0, 1));
    talk.deliver(0, peer(1, 14_281).data_ack(14_280));
    assert_eq!(talk.end.acked(), 14_280);
}

#[test]
fn segments_outside_every_window_are_answered_and_not_taken() {
    let mut talk = served();
    for seq in [(1 << 31) - 5, (1 << 30) + 2, u64::MAX - 100] {
        let fin = peer(seq, 1).data(0, 100).flags(Flags::ACK | Flags::FIN);
        assert!(talk.deliver(0, fin).is_none());
        assert_eq!(talk.emitted().len(), 1, "at {seq}");
        // Their rate is limited.
        talk.wait_until(talk.now + 500);
        talk.emitted();
    }
}

#[test]
fn both_ends_finish_in_order() {
    let mut talk = served();
    talk.join(1, 2);
    talk.end.write(1_500);
    talk.end.finish();
    // DATA_FIN is sent on every subflow.
    let emitted = talk.emitted();
    let expected = [
        "0 ACK 1+1428 ack 1 0@1+1428 data-ack 0",
        "0 ACK 1429+72 ack 1 1428@1429+72 data-ack 0",
        "0 ACK 1501 ack 1 1500@0+1 fin data-ack 0",
        "1 ACK 1 ack 1 1500@0+1 fin data-ack 0",
    ];
    assert_eq!(emitted, expected);
    talk.wait_until(60);
    talk.deliver(0, peer(1, 1501).data_ack(1501));
    assert!(!talk.end.is_closed(), "the peer has not finished");
    // The peer's last data brings its end: the mapping is one longer than the payload.
    talk.deliver(0, peer(1, 1501).payload(200).map(0, 1, 201).data_fin().data_ack(1501));
    assert_eq!((talk.end.readable(), talk.end.is_closed()), (200, true));
    let expected = ["0 FIN|ACK 1501 ack 201 data-ack 201", "1 FIN|ACK 1 ack 1 data-ack 201"];
    assert_eq!(talk.emitted(), expected);
    for (path, seq, ack) in [(0, 201, 1502), (1, 1, 2)] {
        talk.deliver(path, peer(seq, ack).data_ack(1501).flags(Flags::ACK | Flags::FIN));
    }
    assert_eq!(talk.emitted(), ["0 ACK 1502 ack 202 data-ack 201", "1 ACK 2 ack 2 data-ack 201"]);
    assert!(talk.end.is_over());
    assert_eq!(talk.end.poll_timeout(), None);
    // The peer did not receive that.
    talk.deliver(0, peer(201, 1502).data_ack(1501).flags(Flags::ACK | Flags::FIN));
    assert_eq!(talk.emitted().len(), 1);
}

#[test]
fn a_data_fin_that_is_not_acknowledged_is_retransmitted() {
    let mut talk = served();
    talk.end.finish();
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 1 0@0+1 fin data-ack 0"]);
    // Twice the timeout of 20 + 200 ms, then doubled.
    assert_eq!(talk.emitted_at(20 + 440), ["0 ACK 1 ack 1 0@0+1 fin data-ack 0"]);
    assert_eq!(talk.emitted_at(460 + 880), ["0 ACK 1 ack 1 0@0+1 fin data-ack 0"]);
    talk.deliver(0, peer(1, 1).data_ack(1));
    talk.sends_nothing_until(100_000);
}

#[test]
fn an_end_beyond_every_window_is_none() {
    let mut talk = served();
    talk.wide = true;
    for stream in [1 << 40, u64::MAX - 2] {
        talk.deliver(0, peer(1, 1).map(stream, 0, 1).data_fin());
        talk.emitted();
    }
    talk.deliver(0, peer(1, 1).data(0, 100));
    assert!(!talk.end.peer_finished());
    talk.deliver(0, peer(101, 1).map(100, 0, 1).data_fin());
    talk.end.read(Instant::ZERO, 100);
    assert!(talk.end.peer_finished());
}

#[test]
fn a_closed_window_is_probed_with_growing_pauses() {
    let mut talk = served();
    talk.window = 0;
    talk.deliver(0, peer(1, 1).data_ack(0));
    talk.end.write(200_000);
    // The first window was 65 536 bytes; it stays advertised.
    let mut acked = 0;
    loop {
        let sent: u64 = talk.emitted_segments().iter().map(|(_, segment)| u64::from(segment.payload_len)).sum();
        if sent == 0 {
            break;
        }
        acked += sent;
        talk.wait_until(talk.now + 20);
        talk.deliver(0, peer(1, 1 + acked).data_ack(acked).echo(talk.now - 20));
    }
    assert_eq!(acked, 65_536);
    let closed = talk.now;
    assert_eq!(talk.emitted_at(closed + 440), ["0 ACK 65536 ack 1 data-ack 0"], "an old number");
    assert_eq!(talk.emitted_at(closed + 440 + 880), ["0 ACK 65536 ack 1 data-ack 0"]);
    assert_eq!(talk.emitted_at(closed + 440 + 880 + 1760), ["0 ACK 65536 ack 1 data-ack 0"]);
    // The answer opens it by one segment.
    talk.window = 12; // times 128
    talk.deliver(0, peer(1, 65_537).data_ack(65_536));
    assert_eq!(talk.emitted(), ["0 ACK 65537+1428 ack 1 65536@65537+1428 data-ack 0"]);
}

#[test]
fn a_reader_that_resumes_advertises_the_window() {
    let mut config = two_paths();
    config.transport.receive_buffer.initial = Bytes(20_000);
    config.transport.receive_buffer.max = Bytes(20_000);
    let mut talk = Talk::served(config);
    talk.wait_until(30);
    // The first window is half of the memory in whole segments, 16,060 bytes.
    for packet in 0..16u64 {
        talk.deliver(0, peer(1 + 1000 * packet, 1).data(1000 * packet, 1000));
    }
    assert_eq!(talk.emitted_segments().pop().unwrap().1.window, 0);
    // Data beyond the window is neither accepted nor acknowledged.
    assert!(talk.deliver(0, peer(16_001, 1).data(16_000, 1000)).is_none());
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 16001 data-ack 16000"]);
    assert_eq!(talk.end.read(at(30), 100_000), 16_000);
    let update = talk.emitted_segments();
    assert_eq!((update.len(), update[0].1.window), (1, 16_060_u16.div_ceil(128)));
}

/// The second subflow advertised the whole buffer when the hole was open, and a peer does not forget that: to say it
/// again has no use (Linux's `mptcp_cleanup_rbuf`).
#[test]
fn a_hole_filled_through_one_subflow_is_acknowledged_there_alone() {
    let mut config = two_paths();
    config.transport.receive_buffer.initial = Bytes(20_000);
    config.transport.receive_buffer.max = Bytes(20_000);
    let mut talk = Talk::served(config);
    talk.join(1, 2);
    talk.wait_until(talk.now + 30);
    for packet in 1..8u64 {
        talk.deliver(1, peer(1 + 1000 * (packet - 1), 1).data(1000 * packet, 1000));
    }
    talk.emitted();
    talk.deliver(0, peer(1, 1).data(0, 1000));
    assert_eq!(talk.end.read(at(talk.now), 100_000), 8_000);
    let answers = talk.emitted_segments();
    let advertised: Vec<_> = answers.iter().map(|(path, segment)| (*path, segment.window)).collect();
    assert_eq!(advertised, [(0, 16_060_u16.div_ceil(128))]);
}

#[test]
fn a_lost_tail_is_probed_and_repaired() {
    let mut talk = served();
    talk.end.write(1_428 * 3);
    assert_eq!(talk.emitted(), full(0, 3));
    talk.wait_until(40);
    talk.deliver(0, peer(1, 1 + 2 * 1428).data_ack(2 * 1428).echo(20));
    // A lone packet: two round trips and 200 ms, but not later than the timeout of 20 + 200 ms.
    assert_eq!(talk.emitted_at(40 + 220), full(2, 1));
    talk.wait_until(280);
    talk.deliver(0, peer(1, 1 + 3 * 1428).data_ack(3 * 1428).echo(260));
    talk.sends_nothing_until(100_000);
}

#[test]
fn a_hole_is_repaired_when_three_packets_behind_it_arrived() {
    let mut talk = served();
    talk.end.write(1_428 * 10);
    assert_eq!(talk.emitted(), full(0, 10));
    talk.wait_until(40);
    for end in [2, 3] {
        talk.deliver(0, peer(1, 1).data_ack(0).sack(1429, 1 + end * 1428).echo(20));
        assert_eq!(talk.emitted(), NOTHING);
    }
    talk.deliver(0, peer(1, 1).data_ack(0).sack(1429, 1 + 4 * 1428).echo(20));
    assert_eq!(talk.emitted(), full(0, 1));
    talk.wait_until(60);
    talk.deliver(0, peer(1, 1 + 10 * 1428).data_ack(10 * 1428).echo(40));
    // The window is at its threshold of 5, and the six packets that this acknowledgment delivered make it grow by one.
    assert_eq!(talk.end.views()[0].cwnd.floor(), 6);
    talk.sends_nothing_until(100_000);
}

#[test]
fn paced_packets_leave_one_by_one() {
    let mut config = two_paths();
    config.transport.pacing = true;
    let mut talk = Talk::served(config);
    talk.end.write(1_428 * 4);
    // Twice ten packets per round trip of 20 ms: a packet's payload takes a millisecond.
    assert_eq!(talk.emitted(), full(0, 1));
    let due = talk.end.poll_timeout().unwrap();
    assert!(due >= at(21) && due < at(21) + Duration::from_micros(1), "{due}");
    for packet in 1..4 {
        talk.wait_until(20 + 2 * packet);
        assert_eq!(talk.emitted(), full(packet, 1));
    }
}

/// As Linux gives them to the network: a burst of segmentation offload has at least two packets.
#[test]
fn bbr_paces_pairs_of_packets_and_by_option_single_ones() {
    for (pace, together) in [("linux", 2), ("packets", 1)] {
        let mut config = two_paths();
        let options = Options::new(vec![("pace".into(), Value::Text(pace.into()))]);
        config.transport.congestion_control = Choice::with("bbr", options);
        let mut talk = Talk::served(config);
        talk.end.write(1_428 * 4);
        assert_eq!(talk.emitted(), full(0, together), "{pace}");
        // Some 690 us a packet at 2.89 times ten packets per round trip of 20 ms.
        talk.wait_until(20 + together);
        assert_eq!(talk.emitted(), full(together, together), "{pace}");
    }
}

/// The offset of each arrival out of order, as events report it, and what waited then: bytes that no application could
/// read yet, on subflows and in the connection.
fn waiting(talk: &mut Talk) -> Vec<(u64, u64)> {
    let waited = |(_, event)| match event {
        TransportEvent::OutOfOrder { subflow: SubflowId(0), offset, buffered } => Some((offset, buffered)),
        _ => None,
    };
    talk.end.log().drain().filter_map(waited).collect()
}

#[test]
fn bytes_that_move_from_a_subflow_to_the_connection_wait_once() {
    let mut talk = served();
    waiting(&mut talk);
    // In order on the subflow, but the first hundred bytes of the stream are missing.
    talk.deliver(0, peer(1, 1).data(100, 100));
    assert_eq!(waiting(&mut talk), [(100, 100)]);
    // Behind a hole of the subflow.
    talk.deliver(0, peer(201, 1).data(300, 100));
    talk.deliver(0, peer(301, 1).data(400, 100));
    assert_eq!(waiting(&mut talk), [(300, 200), (400, 300)]);
    // The hole is filled: three pieces go to the connection, where they wait for the start of the stream.
    talk.deliver(0, peer(101, 1).data(200, 100));
    assert_eq!(waiting(&mut talk), [(200, 400), (300, 400), (400, 400)]);
}

/// In Linux what waits for a hole of the stream counts as unread (`mptcp_cleanup_rbuf`).
#[test]
fn the_end_of_a_write_is_acknowledged_at_once_only_if_nothing_waits() {
    let mut talk = Talk::served(two_paths());
    talk.join(1, 2);
    let mut seq = 0;
    let mut answers_to = |talk: &mut Talk, len: u32| {
        talk.deliver(0, peer(1 + seq, 1).data(seq, len));
        seq += u64::from(len);
        talk.end.begin_reading();
        talk.end.read(at(talk.now), u64::MAX);
        talk.emitted().len()
    };
    // The first path's quick acknowledgments end.
    for _ in 0..20 {
        answers_to(&mut talk, 1000);
    }
    assert_eq!(answers_to(&mut talk, 100), 1);
    talk.deliver(1, peer(1, 1).data(30_000, 1000));
    talk.emitted();
    assert_eq!(answers_to(&mut talk, 100), 0);
}

/// A second packet whose window is smaller than the last one waits for the application (Linux's `__tcp_ack_snd_check`).
#[test]
fn what_fills_a_hole_between_subflows_is_acknowledged_with_the_room_that_reading_made() {
    let mut talk = Talk::served(two_paths());
    talk.join(1, 2);
    talk.wait_until(talk.now + 30);
    // The first path's quick acknowledgments end.
    let mut seq = 0;
    for _ in 0..20 {
        talk.deliver(0, peer(1 + seq, 1).data(seq, 1000));
        seq += 1000;
        talk.end.begin_reading();
        talk.end.read(at(talk.now), u64::MAX);
        talk.emitted();
    }
    for packet in 2..12u64 {
        talk.deliver(1, peer(1 + 1000 * (packet - 2), 1).data(seq + 1000 * packet, 1000));
        talk.emitted();
    }
    talk.deliver(0, peer(1 + seq, 1).data(seq, 1000));
    assert!(talk.emitted().is_empty(), "the first packet waits for the second");
    talk.deliver(0, peer(1 + seq + 1000, 1).data(seq + 1000, 1000));
    assert!(!talk.end.begin_reading());
    talk.end.read(at(talk.now), u64::MAX);
    let answers = talk.emitted_segments();
    assert_eq!(answers.len(), 1);
    assert!(answers[0].1.window >= 64_240_u16.div_ceil(128), "all of the room: {}", answers[0].1.window);
}
