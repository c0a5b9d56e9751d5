//! Protection against wrapped sequence numbers (PAWS, RFC 7323 section 5).

use crate::common::config;
use crate::common::talk::*;
use anabranch_segment::{Flags, MptcpOption};
use anabranch_stack::connection::Protocol;
use anabranch_units::PathId;

const NOTHING: [&str; 0] = [];
const DAY: u64 = 86_400_000;

/// A server's end at time 100 that received 100 bytes with the timestamp 101, and has acknowledged them.
fn acquainted() -> Talk {
    let mut talk = Talk::served(two_paths());
    talk.wait_until(100);
    talk.deliver(0, peer(1, 1).data(0, 100));
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 101 data-ack 100"]);
    talk
}

#[test]
fn data_with_an_old_timestamp_is_answered_and_not_taken() {
    let mut talk = acquainted();
    assert!(talk.deliver(0, peer(101, 1).data(100, 100).stamped(100)).is_none());
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 101 data-ack 100"]);
    assert!(
        talk.deliver(0, peer(101, 1).data(100, 100).stamped(101 + (1 << 31))).is_none(),
        "half of all numbers are old"
    );
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 101 data-ack 100"]);
    assert!(talk.deliver(0, peer(101, 1).data(100, 100).stamped(101)).is_some(), "the same one is not old");
}

#[test]
fn so_it_is_over_plain_tcp() {
    let mut talk = Talk::server(config(Protocol::Tcp, 1), &[OUR_KEY, 0, 1_000], &[], |_| {});
    talk.emitted();
    talk.wait_until(20);
    talk.deliver(0, peer(1, 1));
    for segment in [peer(1, 1).payload(100).stamped(20), peer(1, 1).payload(100).unstamped()] {
        assert!(talk.deliver(0, segment).is_none());
        assert_eq!(talk.emitted(), ["0 ACK 1 ack 1"]);
    }
    assert!(talk.deliver(0, peer(1, 1).payload(100)).is_some());
}

#[test]
fn so_is_data_without_a_timestamp() {
    let mut talk = acquainted();
    assert!(talk.deliver(0, peer(101, 1).data(100, 100).unstamped()).is_none());
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 101 data-ack 100"]);
    assert_eq!(talk.end.views().len(), 1, "a segment that lacks it ends nothing");
    assert!(talk.deliver(0, peer(101, 1).data(100, 100)).is_some());
}

#[test]
fn an_old_acknowledgment_has_no_effect_and_is_answered_twice_a_second_at_most() {
    let mut talk = acquainted();
    talk.end.write(1_000);
    assert_eq!(talk.emitted().len(), 1);
    for segment in [peer(101, 1_001).stamped(100), peer(101, 1_001).unstamped()] {
        talk.deliver(0, segment.data_ack(1_000));
        assert_eq!(talk.end.acked(), 0);
    }
    assert_eq!(talk.emitted(), ["0 ACK 1001 ack 101 data-ack 100"]);
    talk.deliver(0, peer(101, 1_001).data_ack(1_000).stamped(98));
    assert_eq!(talk.emitted(), NOTHING);
    talk.deliver(0, peer(101, 1_001).data_ack(1_000));
    assert_eq!(talk.end.acked(), 1_000);
    talk.wait_until(600);
    talk.deliver(0, peer(101, 1_001).data_ack(1_000).stamped(98));
    assert_eq!(talk.emitted().len(), 1);
}

#[test]
fn a_reset_needs_no_timestamp() {
    for segment in [peer(101, 1).stamped(1), peer(101, 1).unstamped()] {
        let mut talk = acquainted();
        talk.deliver(0, segment.flags(Flags::RST));
        assert!(talk.end.views().is_empty());
    }
}

#[test]
fn a_syn_is_answered_whatever_its_timestamp() {
    let mut talk = acquainted();
    talk.deliver(0, peer(0, 0).flags(Flags::SYN).stamped(1));
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 101 data-ack 100"]);
    // While its own answer may be lost, it repeats that.
    let mut talk = Talk::server(two_paths(), &[OUR_KEY, 0, 1_000], &[capable(None, None, None)], |_| {});
    let first = talk.emitted();
    talk.deliver(0, peer(0, 0).flags(Flags::SYN).stamped(0));
    assert_eq!(talk.emitted(), first);
}

#[test]
fn a_timestamp_is_valid_for_twenty_four_days() {
    // The peer's clock has wrapped meanwhile: at 24.9 days its timestamps seem older than the last one.
    for (idle, accepted) in [(24 * DAY, false), (24 * DAY + 1, true)] {
        let mut talk = acquainted();
        talk.wait_until(100 + idle);
        let placed = talk.deliver(0, peer(101, 1).data(100, 100).stamped(50));
        assert_eq!(placed.is_some(), accepted, "after {idle} ms");
        if accepted {
            assert!(talk.deliver(0, peer(201, 1).data(200, 100).stamped(60)).is_some(), "from there on it counts");
            assert!(talk.deliver(0, peer(301, 1).data(300, 100).stamped(40)).is_none());
        }
    }
}

#[test]
fn a_timestamp_of_zero_in_the_syn_says_nothing() {
    let zero = |syn: &mut anabranch_segment::Segment| {
        syn.timestamps = Some(anabranch_segment::Timestamps { value: 0, echo: 0 });
    };
    let mut talk = Talk::server(two_paths(), &[OUR_KEY, 0, 1_000], &[capable(None, None, None)], zero);
    talk.emitted();
    talk.wait_until(20);
    talk.deliver(0, peer(1, 1).option(capable(Some(PEER_KEY), Some(OUR_KEY), None)).stamped(3 << 30));
    assert!(talk.end.is_established());
    assert!(talk.deliver(0, peer(1, 1).data(0, 100).stamped((3 << 30) + 1)).is_some());
    assert!(talk.deliver(0, peer(101, 1).data(100, 100).stamped((3 << 30) - 1)).is_none());
}

#[test]
fn a_retransmitted_original_that_comes_late_is_reported_as_a_duplicate() {
    let mut talk = acquainted();
    assert!(talk.deliver(0, peer(1, 1).data(0, 100).stamped(100)).is_none());
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 101 [1-101] data-ack 100"]);
}

#[test]
fn an_announced_address_leaves_no_room_for_timestamps() {
    let mut talk = acquainted();
    let mut message = vec![9];
    message.extend([9u16; 8].into_iter().flat_map(u16::to_be_bytes));
    message.extend(80u16.to_be_bytes());
    let hmac = u64::from_be_bytes(proof(PEER_KEY, OUR_KEY, &message)[24..].try_into().unwrap());
    let address = [9u16; 8].into();
    let option = MptcpOption::AddAddress { echo: false, address_id: 9, address, port: Some(80), hmac };
    talk.deliver(0, peer(101, 1).option(option).unstamped());
    assert_eq!(talk.emitted(), ["0 ACK 1 ack 101 add-echo(9)"]);
}

#[test]
fn where_timestamps_were_not_agreed_on_they_say_nothing() {
    let mut talk =
        Talk::server(two_paths(), &[OUR_KEY, 0, 1_000], &[capable(None, None, None)], |syn| syn.timestamps = None);
    talk.emitted();
    talk.wait_until(20);
    talk.deliver(0, peer(1, 1).option(capable(Some(PEER_KEY), Some(OUR_KEY), None)));
    assert!(talk.deliver(0, peer(1, 1).data(0, 100).stamped(5_000)).is_some());
    assert!(talk.deliver(0, peer(101, 1).data(100, 100).stamped(4_000)).is_some());
    assert!(talk.deliver(0, peer(201, 1).data(200, 100)).is_some());
    assert!(talk.end.has_subflow(PathId(0), 80, 5000));
}
