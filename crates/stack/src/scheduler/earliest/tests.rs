//! Dialogues computed by hand: segments of 1000 bytes, round trips of 100 ms, a fast path with 100 kB/s and a slow one
//! with 5 kB/s. A segment takes 10 ms on the fast path and 200 ms on the slow one, and half a round trip on either:
//! empty paths deliver it after 60 and 250 ms.

use super::super::testing::{Bed, at, ms, send, wait};
use super::super::{Decision, InFlight, Sent, Silence, SubflowSet, View};
use crate::options::Value;
use crate::view::{Arrivals, SubflowView};
use anabranch_events::{ForecastReason, SendKind};
use anabranch_units::{Duration, Instant};

const FAST: usize = 0;
const SLOW: usize = 1;

fn with(options: &[(&str, Value)]) -> Bed {
    let mut bed = Bed::with("earliest", options).subflow(ms(100), 10).subflow(ms(100), 10);
    bed.subflows[FAST].arrivals = Arrivals { bytes: 10_000, interval: ms(100) };
    bed.subflows[SLOW].arrivals = Arrivals { bytes: 2_000, interval: ms(400) };
    bed.connection.now = at(ms(1_000));
    bed
}

fn two() -> Bed {
    with(&[])
}

/// A packet with 1000 bytes leaves.
fn transmit(bed: &mut Bed, position: usize, offset: u64, kind: SendKind) {
    let sent = Sent { at: bed.connection.now, offset, bytes: 1_000, kind };
    let before = bed.subflows[position];
    bed.scheduler.on_sent(&sent, &before);
    bed.subflows[position].in_flight += 1;
    bed.subflows[position].outstanding += 1_000;
    let sent_at = bed.connection.now;
    bed.flight.push(InFlight { subflow: position, offset, bytes: 1_000, sent_at, lost: false });
    bed.flight.sort_by_key(|packet| packet.subflow);
    bed.connection.next = bed.connection.next.max(offset + 1_000);
}

fn wait_for(bed: &Bed, time: Duration) -> Decision {
    Decision::Wait { until: Some(bed.connection.now + time) }
}

fn copy(subflow: usize, offset: u64) -> Decision {
    Decision::Duplicate { subflow, offset, bytes: 1_000 }
}

fn reason(bed: &mut Bed) -> Option<ForecastReason> {
    bed.scheduler.explanation().map(|forecast| forecast.reason)
}

// New data.

#[test]
fn the_fast_path_gets_data_first_and_the_slow_one_while_there_is_much() {
    let mut bed = two();
    bed.connection.unsent = 21_000;
    assert_eq!(bed.decide(), send(FAST, 1_000));
    // Ten in flight are what the path holds, so 22 kB more take until 50 + 220 ms, and 21 kB until 260 ms; a segment on
    // the slow path takes until 250 ms.
    bed.fill(FAST);
    bed.connection.unsent = 22_000;
    assert_eq!(bed.decide(), send(SLOW, 1_000));
}

#[test]
fn the_slow_path_gets_a_part_of_a_segment_so_that_both_end_together() {
    let mut bed = two();
    bed.fill(FAST);
    // The fast path alone needs until 50 + 105 ms; with 500 bytes less, until 150 ms, as the slow one with 500 bytes.
    bed.connection.unsent = 10_500;
    assert_eq!(bed.decide(), send(SLOW, 500));
    // A whole segment would end at 250 ms, as the fast path alone; 952 bytes end at 240.4 ms, as the rest does.
    bed.connection.unsent = 20_000;
    assert_eq!(bed.decide(), send(SLOW, 952));
}

#[test]
fn the_slow_path_waits_where_the_fast_one_alone_is_done_earlier() {
    let mut bed = two();
    bed.fill(FAST);
    // 249 bytes would end at 99.8 ms, 2.7 ms before the fast path alone, but are less than a quarter of a segment.
    bed.connection.unsent = 5_249;
    assert_eq!(bed.decide(), wait_for(&bed, ms(25)), "it is asked again after a quarter of a round trip");
    let forecast = bed.scheduler.explanation().expect("a wait is explained");
    assert_eq!(forecast.reason, ForecastReason::Waits);
    assert_eq!((forecast.arrival, forecast.finish), (ms(250), Some(Duration::from_micros(102_490))));
    assert_eq!(bed.decide(), wait_for(&bed, ms(25)));
    assert_eq!(reason(&mut bed), None, "explained once");
    bed.connection.unsent = 30_000;
    assert_eq!(bed.decide(), send(SLOW, 1_000));
    assert_eq!(reason(&mut bed), Some(ForecastReason::Sends));
}

#[test]
fn waiting_can_be_switched_off() {
    let mut bed = with(&[("waiting", Value::Flag(false))]);
    bed.fill(FAST);
    bed.connection.unsent = 1_000;
    assert_eq!(bed.decide(), send(SLOW, 1_000));
}

#[test]
fn no_data_waits_while_nothing_is_in_flight() {
    let mut bed = two();
    bed.connection.unsent = 1_000;
    let mut only_slow = SubflowSet::EMPTY;
    only_slow.insert(SLOW);
    let view = View { connection: &bed.connection, subflows: &bed.subflows, candidates: only_slow, flight: &[] };
    assert_eq!(bed.scheduler.decide(&view, super::super::Trigger::NewData), send(SLOW, 1_000));
}

#[test]
fn a_queue_on_the_fast_path_makes_the_slow_one_the_earlier() {
    let mut bed = two();
    bed.subflows[FAST].cwnd = crate::view::Packets::whole(40);
    // 33 in flight: 21 of them wait, 210 ms, if ten are on their way and two have arrived.
    bed.load(FAST, 33);
    assert_eq!(bed.decide(), send(SLOW, 1_000));
    bed.load(FAST, 28);
    assert_eq!(bed.decide(), send(FAST, 1_000));
}

#[test]
fn a_join_without_a_round_trip_gets_data_while_there_is_much() {
    let mut bed = two();
    bed.subflows[SLOW] = SubflowView { arrivals: Arrivals::default(), ..bed.subflows[SLOW] };
    (bed.subflows[SLOW].srtt, bed.subflows[SLOW].min_rtt) = (Duration::ZERO, Duration::ZERO);
    bed.fill(FAST);
    assert_eq!(bed.decide(), send(SLOW, 1_000));
}

#[test]
fn a_reinjection_goes_where_it_arrives_first() {
    let mut bed = two();
    assert_eq!(bed.reinject(), send(FAST, 1_000));
    bed.fill(FAST);
    assert_eq!(bed.reinject(), send(SLOW, 1_000));
}

// Copies.

/// Everything was sent: the first packet on the slow path, the second on the fast one.
fn sent() -> Bed {
    let mut bed = two();
    bed.connection.unsent = 0;
    transmit(&mut bed, SLOW, 0, SendKind::New);
    transmit(&mut bed, FAST, 1_000, SendKind::New);
    bed
}

#[test]
fn data_on_the_slow_path_is_copied_once_where_the_copy_is_earlier() {
    let mut bed = sent();
    // 1000 bytes are due after 250 ms; the copy arrives after 10 + 10 + 50 ms.
    assert_eq!(bed.decide(), copy(FAST, 0));
    assert_eq!(reason(&mut bed), Some(ForecastReason::Sooner));
    transmit(&mut bed, FAST, 0, SendKind::Duplicate);
    bed.subflows[SLOW].in_flight = 1;
    // The second packet's acknowledgment is overdue 20 ms and a round trip later than 12.5 ms of grace.
    assert!(matches!(bed.decide(), Decision::Wait { until: Some(_) }));
}

#[test]
fn a_copy_that_gains_little_is_not_made() {
    let mut bed = sent();
    // 190 ms later the original is 60 ms away; a copy would take as long.
    bed.connection.now += ms(190);
    bed.subflows[FAST].in_flight = 0;
    bed.flight.retain(|packet| packet.subflow == SLOW);
    assert!(matches!(bed.decide(), Decision::Wait { until: Some(_) }));
}

#[test]
fn lost_data_is_copied_where_the_copy_overtakes_the_retransmission() {
    let mut bed = two();
    bed.connection.unsent = 0;
    for (position, other) in [(FAST, SLOW), (SLOW, FAST)] {
        bed.flight.clear();
        bed.connection.next = 1_000;
        let sent_at = bed.connection.now;
        bed.flight.push(InFlight { subflow: position, offset: 0, bytes: 1_000, sent_at, lost: true });
        bed.subflows[position].unrepaired = 1;
        bed.subflows[other].unrepaired = 0;
        // On the fast path the retransmission arrives after 10 + 60 ms, on the slow one after 200 + 250 ms.
        let expected = if position == SLOW { copy(FAST, 0) } else { wait_for(&bed, Duration::from_micros(152_500)) };
        assert_eq!(bed.decide(), expected);
    }
    assert_eq!(reason(&mut bed), Some(ForecastReason::Lost));
}

#[test]
fn late_data_is_copied_before_its_own_probe_and_not_again_after_it() {
    let mut bed = two();
    bed.connection.unsent = 0;
    transmit(&mut bed, FAST, 0, SendKind::New);
    bed.subflows[SLOW].cwnd = crate::view::Packets::ZERO;
    // Due after 60 ms, acknowledged after 110 ms, overdue 12.5 + 40 ms later.
    assert_eq!(bed.decide(), wait_for(&bed, Duration::from_micros(162_500)));
    bed.connection.now += Duration::from_micros(162_500);
    assert_eq!(bed.decide(), copy(FAST, 0));
    assert_eq!(reason(&mut bed), Some(ForecastReason::Late));
    // The copy is due after 70 ms, because the original counts as in flight, and overdue as long after that.
    assert_eq!(bed.decide(), wait_for(&bed, Duration::from_micros(162_500)));
    bed.connection.now += Duration::from_micros(162_500);
    assert_eq!(bed.decide(), wait(), "the tail-loss probe was due after 200 ms: a copy would be no earlier");
}

#[test]
fn an_idle_path_copies_what_would_be_repaired_last_for_two_percent_of_the_data() {
    let mut bed = two();
    // Both paths are fast here, so that no copy is earlier than an original.
    bed.subflows[SLOW].arrivals = bed.subflows[FAST].arrivals;
    (0..50).for_each(|packet| transmit(&mut bed, FAST, packet * 1_000, SendKind::New));
    bed.connection.unsent = 0;
    bed.connection.unacked = 48_000;
    // The last one is due after 550 ms: 70 ms from now, in which a copy that takes 60 ms gains too little.
    bed.connection.now += ms(480);
    bed.flight.retain(|packet| packet.offset >= 48_000);
    bed.load(FAST, 2);
    assert_eq!(bed.decide(), copy(SLOW, 49_000));
    assert_eq!(reason(&mut bed), Some(ForecastReason::Spare));
    transmit(&mut bed, SLOW, 49_000, SendKind::Duplicate);
    bed.load(SLOW, 0);
    assert!(matches!(bed.decide(), Decision::Wait { .. }), "1000 of 50 000 bytes were the budget");
}

#[test]
fn copies_end_with_the_budget() {
    let mut bed = sent();
    let mut copies = 0;
    while let Decision::Duplicate { subflow, offset, .. } = bed.decide() {
        transmit(&mut bed, subflow, offset, SendKind::Duplicate);
        bed.connection.now += ms(1_000);
        bed.subflows[FAST].in_flight = 0;
        copies += 1;
    }
    assert_eq!(copies, 14, "an initial window of 14 600 bytes, and 4 % of 2000");
    assert_eq!(bed.decide(), wait());
}

#[test]
fn what_the_peer_has_is_not_copied_and_copies_can_be_switched_off() {
    let mut bed = sent();
    bed.connection.unacked = 2_000;
    assert_eq!(bed.decide(), wait());
    assert!(!with(&[("copies", Value::Flag(false))]).scheduler.services().duplicates);
}

// Silence.

/// Asks about silence at a time.
fn ask(bed: &mut Bed, now: Instant) -> Silence {
    bed.connection.now = now;
    let candidates = SubflowSet::EMPTY;
    let view = View { connection: &bed.connection, subflows: &bed.subflows, candidates, flight: &[] };
    bed.scheduler.silence(&view)
}

/// Two subflows whose pauses are known: there were none. With the time.
fn known() -> (Bed, Instant) {
    let mut bed = two();
    let start = bed.connection.now + ms(20_000);
    (bed.subflows[FAST].oldest_sent, bed.subflows[FAST].outstanding) = (Some(bed.connection.now), 1);
    let begun = bed.connection.now;
    ask(&mut bed, begun);
    bed.subflows[FAST].outstanding = 0;
    ask(&mut bed, start);
    (bed, start)
}

#[test]
fn a_path_is_given_up_when_three_quarters_of_a_round_trip_more_bring_nothing() {
    let (mut bed, start) = known();
    (0..5).for_each(|packet| transmit(&mut bed, FAST, packet * 1_000, SendKind::New));
    bed.subflows[FAST].oldest_sent = Some(start);
    // The oldest should be acknowledged 110 ms after the start; then 75 ms, and 20 ms for a pair of packets.
    let deadline = start + ms(110 + 75 + 20);
    assert_eq!(ask(&mut bed, start), Silence { give_up: None, until: Some(deadline) });
    assert_eq!(ask(&mut bed, deadline).give_up, Some(FAST));
    assert_eq!(reason(&mut bed), Some(ForecastReason::Silent));
    // A sign of life puts it off: it came 40 ms late, and the next one may be three times as late.
    bed.subflows[FAST].last_ack_at = start + ms(150);
    assert_eq!(ask(&mut bed, deadline), Silence { give_up: None, until: Some(start + ms(150 + 120)) });
}

#[test]
fn a_lone_packet_may_be_acknowledged_late_and_jitter_allows_more() {
    let (mut bed, start) = known();
    transmit(&mut bed, FAST, 0, SendKind::New);
    bed.subflows[FAST].oldest_sent = Some(start);
    assert_eq!(ask(&mut bed, start).until, Some(start + ms(110 + 75 + 20 + 40)));
    bed.subflows[FAST].rttvar = ms(30);
    assert_eq!(ask(&mut bed, start).until, Some(start + ms(110 + 120 + 20 + 40)));
}

#[test]
fn a_path_may_pause_for_200_ms_while_it_is_unknown_and_for_three_times_what_it_did() {
    let mut bed = two();
    let start = bed.connection.now;
    transmit(&mut bed, FAST, 0, SendKind::New);
    let fast = &mut bed.subflows[FAST];
    (fast.oldest_sent, fast.srtt, fast.min_rtt) = (Some(start), ms(10), ms(10));
    fast.last_ack_at = start + ms(100);
    assert_eq!(ask(&mut bed, start + ms(100)).until, Some(start + ms(100 + 200)));
    // An acknowledgment 50 ms after the one before, which is behind the expectation by as much.
    bed.subflows[FAST].last_ack_at = start + ms(150);
    ask(&mut bed, start + ms(150));
    let later = start + ms(11_000);
    (bed.subflows[FAST].oldest_sent, bed.subflows[FAST].last_ack_at) = (Some(later), later);
    bed.subflows[FAST].outstanding = 0;
    ask(&mut bed, later);
    bed.subflows[FAST].outstanding = 1_000;
    assert_eq!(ask(&mut bed, later).until, Some(later + ms(150)));
}

#[test]
fn the_only_path_that_works_is_never_given_up() {
    let mut bed = two();
    let start = bed.connection.now;
    transmit(&mut bed, FAST, 0, SendKind::New);
    bed.subflows[FAST].oldest_sent = Some(start);
    bed.subflows[SLOW].potentially_failed = true;
    assert_eq!(ask(&mut bed, start + ms(5_000)), Silence::default());
}
