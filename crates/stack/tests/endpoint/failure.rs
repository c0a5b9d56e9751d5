//! Failures, segment by segment: forged resets, bad mappings, and silent subflows as in upstream Linux.

use crate::common::talk::*;
use anabranch_events::{SendKind, TransportEvent};
use anabranch_segment::{Flags, MptcpOption};
use anabranch_stack::connection::{Commit, Failover};

const NOTHING: [&str; 0] = [];

fn reset(seq: u64) -> PeerSegment {
    peer(seq, 1).flags(Flags::RST | Flags::ACK)
}

#[test]
fn a_reset_is_believed_only_with_the_very_number_that_is_expected() {
    let mut talk = Talk::served(two_paths());
    talk.deliver(0, peer(1, 1).data(0, 100));
    talk.emitted();
    // Behind and beyond the window: dropped without an answer.
    for seq in [100, 1, 0, 70_000] {
        talk.deliver(0, reset(seq));
        assert_eq!(talk.emitted(), NOTHING, "at {seq}");
    }
    // Within it: answered, so that a real peer learns the right number; but at a limited rate.
    talk.deliver(0, reset(102));
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 101 data-ack 100"]);
    talk.deliver(0, reset(103));
    assert_eq!(talk.emitted(), NOTHING);
    talk.wait_until(talk.now + 500);
    talk.deliver(0, reset(104));
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 101 data-ack 100"]);
    assert_eq!(talk.end.views().len(), 1);
    talk.deliver(0, reset(101));
    assert_eq!(talk.end.views().len(), 0);
}

#[test]
fn an_acknowledgment_older_than_every_window_is_not_taken() {
    let mut talk = Talk::served(two_paths());
    talk.deliver(0, peer(1, u64::from(u32::MAX) - (1 << 30)).data_ack(0).data(0, 10));
    assert_eq!((talk.emitted(), talk.end.readable()), (vec!["0 ACK 1 ack 1 data-ack 0".to_string()], 0));
}

/// How many answers 5000 of these segments within a second get.
fn answers(segments: impl Fn(u64) -> PeerSegment) -> usize {
    let mut talk = Talk::served(two_paths());
    talk.deliver(0, peer(1, 1).data_ack(0).data(0, 100));
    talk.emitted();
    let mut answers = 0;
    for number in 0..5_000 {
        talk.now += u64::from(number % 5 == 0);
        talk.deliver(0, segments(number).data_ack(0));
        answers += talk.emitted().len();
    }
    answers
}

#[test]
fn floods_of_segments_that_are_not_accepted_are_answered_at_a_limited_rate() {
    // Numbers of long ago, acknowledgments of what was never sent and of long ago, and keep-alives.
    let far = 1 << 31;
    assert!((1..=3).contains(&answers(|number| peer(far + number, 1).payload(10))));
    assert!((1..=3).contains(&answers(|number| peer(101, 2 + number))));
    assert!((1..=3).contains(&answers(|number| peer(101, u64::from(u32::MAX) - (1 << 30) - number))));
    assert!((1..=3).contains(&answers(|_| peer(100, 1))));
    assert!((1..=3).contains(&answers(|_| peer(0, 0).flags(Flags::SYN))));
    // The sender of old data needs the report of each packet; a flood of it has a limit, too.
    let old = answers(|_| peer(1, 1).data(0, 100));
    assert!((1_000..=3_000).contains(&old), "{old}");
}

#[test]
fn a_first_mapping_that_contradicts_itself_is_no_reason_to_fall_back() {
    for subflow in [2, 150] {
        let mut talk = Talk::served(two_paths());
        talk.deliver(0, peer(1, 1).payload(100).map(0, subflow, 100));
        assert_eq!(talk.emitted(), ["0 RST|ACK 1 ack 1 reset(MptcpError)"]);
    }
    // Without any mapping: a middlebox removes options.
    let mut talk = Talk::served(two_paths());
    assert!(talk.deliver(0, peer(1, 1).payload(100)).is_some());
    assert_eq!((talk.emitted(), talk.end.is_multipath()), (vec!["0 ACK 1 ack 101".to_string()], false));
}

#[test]
fn a_peer_that_cannot_trust_mappings_gets_an_infinite_one() {
    for wide in [false, true] {
        let mut config = two_paths();
        config.transport.wide_data_seq = wide;
        let mut talk = Talk::served(config);
        talk.wide = wide;
        let full = if wide { 1420 } else { 1428 };
        talk.end.write(full + 10_000);
        let sent = talk.emitted_segments().len() as u64;
        assert_eq!(sent, 1 + 10_000_u64.div_ceil(full));
        let next = 1 + full + 10_000;
        // The second segment was changed on the path.
        talk.wait_until(40);
        talk.deliver(
            0,
            peer(1, 1 + full)
                .data_ack(full)
                .echo(20)
                .option(MptcpOption::Fail { dsn: idsn(OUR_KEY).wrapping_add(full + 1) }),
        );
        assert_eq!(talk.emitted(), [format!("0 ACK {next} ack 1 fail")]);
        assert!(!talk.end.is_multipath());
        // New data: the first segment carries the mapping and leaves room for it, the next ones are plain.
        talk.end.write(4_000);
        let first = format!("0 ACK {next}+{full} ack 1 {}@{next}+0 data-ack 0", next - 1);
        let second = format!("0 ACK {}+1448 ack 1", next + full);
        assert_eq!(talk.emitted()[..2], [first.clone(), second]);
        // Data mapped before is retransmitted with its mapping, the first new data with the infinite one.
        let probes = talk.emitted_at(talk.now + 46);
        assert_eq!(probes.len(), 1, "the tail-loss probe retransmits the last one: {probes:?}");
        let retransmitted = talk.emitted_at(talk.now + 220);
        assert_eq!(retransmitted, [format!("0 ACK {}+{full} ack 1 {full}@{}+{full} data-ack 0", 1 + full, 1 + full)]);
        // That timeout was spurious; the next one is not.
        talk.deliver(0, peer(1, next));
        let mut emitted = talk.emitted();
        while !emitted.contains(&first) {
            let due = talk.end.poll_timeout().expect("something is waited for").as_nanos().div_ceil(1_000_000);
            assert!(due < 10_000, "{emitted:?}");
            emitted.extend(talk.emitted_at(due));
        }
        talk.deliver(0, peer(1, next + 4_000));
        assert_eq!((talk.end.acked(), talk.emitted()), (full + 14_000, vec![]));
        // The peer's own infinite mapping, and what follows it.
        let placed = talk.deliver(0, peer(1, next + 4_000).payload(100).map(0, 1, 0));
        assert_eq!(placed.map(|placed| placed.len), Some(100));
        assert!(
            talk.deliver(0, peer(101, next + 4_000).payload(100)).is_some_and(|placed| placed.stream_offset == 100)
        );
    }
}

#[test]
fn with_several_subflows_a_failed_mapping_ends_one_of_them() {
    let mut talk = Talk::served(two_paths());
    talk.join(1, 2);
    talk.deliver(1, peer(1, 1).data_ack(0).option(MptcpOption::Fail { dsn: idsn(OUR_KEY).wrapping_add(1) }));
    assert_eq!(talk.emitted(), ["1 RST|ACK 1 ack 1 reset(Middlebox)"]);
    // Nor can the remaining subflow be the connection: bytes may have been sent on the other one.
    talk.deliver(0, peer(1, 1).data_ack(0).option(MptcpOption::Fail { dsn: idsn(OUR_KEY).wrapping_add(1) }));
    assert_eq!(talk.emitted(), ["0 RST|ACK 1 ack 1 reset(Middlebox)"]);
}

/// A server over two paths whose subflows fail as in upstream Linux, at time 40.
fn upstream() -> Talk {
    let mut config = two_paths();
    config.transport.failover = Failover::Upstream;
    let mut talk = Talk::served(config);
    talk.join(1, 2);
    talk
}

/// Segments sent since the last call: subflow, kind, segment of the stream.
fn sends(talk: &mut Talk) -> Vec<(u16, SendKind, u64)> {
    let events = talk.end.log().drain();
    let sent = events.filter_map(|(_, event)| match event {
        TransportEvent::SegmentSent { subflow, kind, offset, .. } => Some((subflow.0, kind, offset / 1428)),
        _ => None,
    });
    sent.collect()
}

#[test]
fn an_idle_subflow_retransmits_the_first_unacknowledged_data_and_nothing_more() {
    let mut talk = upstream();
    talk.end.write(1_428 * 30);
    talk.emitted();
    // The first ten segments are on one subflow, the next ten on the other; the rest waits. The other one is
    // acknowledged.
    talk.wait_until(60);
    talk.deliver(1, peer(1, 1 + 14_280).data_ack(0).echo(40));
    talk.emitted();
    talk.wait_until(70);
    talk.deliver(1, peer(1, 1 + 28_560).data_ack(0).echo(50));
    sends(&mut talk);
    // No acknowledgment arrives on the first one: at 86 ms it sends its probe. The connection's period is the time that
    // remained until that probe when there was data to place, 46 ms, and a tick. One subflow is idle by then, and
    // retransmits the first fragment (32 KiB less the 40 bytes that describe it), as far as its window of 20 packets
    // allows.
    assert_eq!(talk.emitted_at(86), ["0 ACK 12853+1428 ack 1 12852@12853+1428 data-ack 0"]);
    assert_eq!(sends(&mut talk), [(0, SendKind::TailLossProbe, 9)]);
    talk.emitted_at(90);
    assert_eq!(sends(&mut talk), (0..20).map(|i| (1, SendKind::Reinjection, i)).collect::<Vec<_>>());
    talk.deliver(1, peer(1, 1 + 28_560 + 28_560).data_ack(28_560).echo(90));
    let rest = talk.emitted_segments();
    assert_eq!(rest.iter().map(|(_, segment)| segment.payload_len).sum::<u32>(), 32_728 - 28_560);
    talk.deliver(1, peer(1, 1 + 28_560 + 32_728).data_ack(42_840).echo(90));
    sends(&mut talk);
    // A timeout alone moves no data, and new data may still be sent there.
    assert_eq!(talk.emitted_at(306).len(), 1);
    assert!(sends(&mut talk).iter().all(|(subflow, kind, _)| (*subflow, *kind) != (1, SendKind::Reinjection)));
    assert!(talk.end.views()[0].usable());
}

#[test]
fn the_first_period_is_the_least_one_and_the_next_follows_from_the_timers() {
    let mut config = two_paths();
    config.transport.commit = Commit::IntoBuffer;
    config.transport.failover = Failover::Upstream;
    config.paths[1].backup = true;
    let mut talk = Talk::served(config);
    talk.join(1, 2);
    assert_eq!(talk.now, 40);
    // More than the send buffer takes. No timer of a subflow runs before the first data has left, so that the first
    // period is the least one: it ends at 244 ms, a tick late. The subflow sends its probe and times out.
    talk.end.write(1_000_000);
    assert_eq!(talk.emitted().len(), 10);
    for (time, kind) in [(86, SendKind::New), (306, SendKind::Retransmission)] {
        talk.emitted_at(time);
        assert!(sends(&mut talk).iter().any(|(subflow, sent, _)| (*subflow, *sent) == (0, kind)), "{kind:?}");
    }
    // When the probe was sent, data waited for room, and the timeout was 220 ms away: that is the second period, after
    // which the backup helps.
    talk.emitted_at(244 + 220 + 4);
    assert!(sends(&mut talk).iter().all(|(subflow, kind, _)| (*subflow, *kind) == (1, SendKind::Reinjection)));
}

#[test]
fn a_subflow_that_is_silent_for_long_is_stale_until_an_acknowledgment_arrives() {
    let mut talk = upstream();
    talk.end.write(1_428 * 20);
    assert_eq!(talk.emitted().len(), 20);
    sends(&mut talk);
    // The second subflow is acknowledged, again and again, but the stream lacks the first one's data.
    let (mut acked, mut heads) = (1, 0);
    let mut answer = |talk: &mut Talk, emitted: &[(usize, anabranch_segment::Segment)]| {
        acked += emitted.iter().filter(|(path, _)| *path == 1).map(|(_, s)| u64::from(s.payload_len)).sum::<u64>();
        let now = talk.now;
        talk.deliver(1, peer(1, acked).data_ack(0).echo(now));
    };
    talk.wait_until(60);
    let bytes = anabranch_segment::Segment { payload_len: 14_280, ..anabranch_segment::Segment::new(Flags::ACK) };
    answer(&mut talk, &[(1, bytes)]);
    while !talk.end.views()[0].potentially_failed {
        let due = talk.end.poll_timeout().expect("a timer runs");
        talk.wait_until(due.as_nanos().div_ceil(1_000_000).max(talk.now));
        assert!(talk.now < 5_000, "it is never stale");
        talk.end.handle_timeout(at(talk.now));
        if talk.end.views()[0].potentially_failed {
            break;
        }
        while let emitted @ [_, ..] = &talk.emitted_segments()[..] {
            answer(&mut talk, emitted);
        }
        heads += sends(&mut talk).iter().filter(|sent| **sent == (1, SendKind::Reinjection, 0)).count();
    }
    assert_eq!(heads, 4, "one for each period until the fifth");
    // Now the other one sends everything, and the new data.
    talk.end.write(1_428 * 2);
    let mut carried = Vec::new();
    while let emitted @ [_, ..] = &talk.emitted_segments()[..] {
        answer(&mut talk, emitted);
        carried.extend(sends(&mut talk).into_iter().filter(|(subflow, ..)| *subflow == 1));
    }
    let again = (0..20).map(|i| (1, SendKind::Reinjection, i));
    let new = (20..22).map(|i| (1, SendKind::New, i));
    assert_eq!(carried, again.chain(new).collect::<Vec<_>>());
    // Any acknowledgment brings it back, even one that acknowledges nothing new.
    talk.deliver(0, peer(1, 1).data_ack(22 * 1_428).echo(40));
    assert!(talk.end.views()[0].usable());
}

#[test]
fn a_subflow_that_ends_makes_the_others_retransmit_everything() {
    let mut talk = upstream();
    talk.end.write(1_428 * 20);
    talk.emitted();
    sends(&mut talk);
    talk.wait_until(60);
    talk.deliver(1, peer(1, 1 + 14_280).data_ack(0).echo(40));
    talk.deliver(0, reset(1));
    talk.emitted();
    // The second one's data was acknowledged by its TCP, but not by the connection.
    assert_eq!(sends(&mut talk), (0..20).map(|i| (1, SendKind::Reinjection, i)).collect::<Vec<_>>());
}
