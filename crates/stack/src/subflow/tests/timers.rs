//! When each timer fires, to the millisecond, and its effect.

use super::*;
use crate::view::Phase;
use anabranch_events::SendKind;

const PROBE: SendKind = SendKind::TailLossProbe;

#[test]
fn several_packets_without_an_answer_are_probed_after_two_round_trips() {
    let mut bed = Bed::new(10);
    bed.send(4);
    bed.fire_at(PROBE_AT);
    assert_eq!(bed.retransmit(), [(3, PROBE)], "the last packet, once");
    // The timeout counts from the probe. Then the first packet is retransmitted, and the rest as the window allows.
    bed.fire_at(TIMEOUT_AT);
    assert_eq!(bed.subflow.sender.phase(), Phase::Loss);
    assert_eq!((bed.cwnd(), bed.ssthresh()), (1, Some(5)));
    assert_eq!(bed.repairs(), [0]);
}

#[test]
fn while_a_probe_waits_for_its_answer_the_next_packet_sets_the_timeout_of_the_first() {
    let mut bed = Bed::new(10);
    bed.send(4).wait_until(1000 + RTT).ack(1);
    let probe = bed.deadline().unwrap();
    bed.fire_at(probe);
    assert_eq!(bed.retransmit(), [(3, PROBE)]);
    bed.wait_until(probe + 50).send(1);
    let second = probe + 50 + 2 * RTT + ALLOWANCE;
    bed.fire_at(second);
    assert_eq!((bed.retransmit(), bed.subflow.sender.phase()), (vec![], Phase::Open));
    // The first packet has waited longer than a timeout, so that it is due after this call, but at once.
    assert!(bed.subflow.sender.deadline() > Some(at(second)));
    assert_eq!(bed.deadline(), Some(second));
    bed.wait_until(second + 1);
    let views = bed.views();
    bed.subflow.sender.on_timer(at(second + 1), Siblings::new(&views, 0));
    assert_eq!((bed.repairs(), bed.subflow.sender.phase()), (vec![1], Phase::Loss));
}

#[test]
fn a_probe_of_new_data_proves_no_loss_when_more_is_acknowledged() {
    let mut bed = Bed::new(10);
    bed.send(10);
    let probe = 1000 + 2 * RTT + ALLOWANCE;
    bed.fire_at(probe);
    assert!(bed.subflow.sender.probe_is_due());
    // The window is full; the timeout counts from the probe.
    bed.send(1);
    assert_eq!((bed.retransmit(), bed.deadline()), (vec![], Some(probe + RTO)));
    bed.send(1).wait_until(probe + RTT);
    assert!(bed.ack(12).reduced.is_none());
}

#[test]
fn a_lone_packet_is_given_the_time_of_a_delayed_acknowledgment() {
    let mut bed = Bed::new(10);
    bed.send_with_rest(1, false);
    // 2 * 100 + 200, but not later than the timeout of 300.
    bed.fire_at(1000 + RTO);
    assert_eq!(bed.retransmit(), [(0, PROBE)]);
    bed.fire_at(1000 + 2 * RTO);
    assert_eq!(bed.repairs(), [0]);
}

#[test]
fn progress_restarts_the_clock_and_later_packets_do_not_put_it_off() {
    let mut bed = Bed::new(10);
    bed.send(5).wait_until(1000 + RTT).ack(2);
    // Two round trips from the acknowledgment, although the timeout of packet 2, counted from its transmission, is
    // earlier.
    assert_eq!(bed.deadline(), Some(1000 + RTT + 2 * RTT + ALLOWANCE));
    bed.wait_until(1150).send(1);
    assert_eq!(bed.deadline(), Some(1000 + RTO), "but a packet that leaves must not put it off beyond that");
    bed.wait_until(1000 + RTO + 1).send(1);
    assert_eq!(bed.deadline(), Some(1301 + 2 * RTT + ALLOWANCE), "which has passed");
}

#[test]
fn timeouts_double_until_a_round_trip_is_measured() {
    let mut bed = Bed::new(10);
    bed.clock = false;
    bed.send(2);
    bed.fire_at(PROBE_AT);
    bed.retransmit();
    let mut now = TIMEOUT_AT;
    for factor in [1, 2, 4] {
        bed.fire_at(now);
        assert_eq!(bed.repairs(), [0]);
        now += 2 * factor * RTO;
    }
    // Without timestamps the answer to a retransmission measures nothing (Karn): the timeout stays as it is.
    bed.wait_until(now - 100).ack(1);
    assert_eq!(bed.repairs(), [1]);
    assert_eq!(bed.deadline(), Some(now - 100 + 8 * RTO));
    bed.wait_until(now).ack(2);
    bed.send(2);
    bed.wait_until(now + RTT).ack(3);
    assert_eq!(bed.subflow.sender.rtt().rto().as_millis(), RTO);
}

#[test]
fn with_timestamps_the_answer_to_a_retransmission_measures() {
    let mut bed = Bed::new(10);
    bed.send_with_rest(1, false).fire_at(1000 + RTO);
    bed.retransmit();
    bed.fire_at(1000 + 2 * RTO);
    assert_eq!(bed.repairs(), [0]);
    bed.wait_until(1000 + 2 * RTO + RTT).ack_saying(1, Say { echo: Some(1000 + 2 * RTO), ..Say::default() });
    assert_eq!(bed.subflow.sender.rtt().srtt().as_millis(), RTT);
    assert_eq!(bed.subflow.sender.rtt().rto().as_millis(), RTO);
}

#[test]
fn the_echo_of_a_selective_acknowledgment_measures_nothing() {
    let mut bed = Bed::new(10);
    bed.send(10).wait_until(1000 + RTT);
    for end in 2..=9 {
        bed.sack(0, &[(1, end)]);
    }
    assert_eq!(bed.repairs(), [0]);
    // The first of these blocks set the reordering timer.
    bed.fire_at(1000 + RTT + RTT / 4 + ALLOWANCE);
    // The receiver echoes what it got last in order, long ago; here only the retransmitted packet is new.
    bed.fire_at(1000 + RTT + RTO);
    bed.repairs();
    bed.wait_until(2500);
    bed.ack_saying(0, Say { ahead: &[(1, 10)], echo: Some(900), ..Say::default() });
    assert!(bed.subflow.sender.rtt().srtt().as_millis() < 700, "not 1600");
}

#[test]
fn the_reordering_timer_waits_a_quarter_of_a_round_trip() {
    let mut bed = Bed::new(10);
    bed.send(10).wait_until(1000 + RTT);
    // Two packets arrived ahead of the first: it may just be late.
    bed.sack(0, &[(1, 3)]);
    assert!(bed.repairs().is_empty());
    let outcome = bed.fire_at(1000 + RTT + RTT / 4 + ALLOWANCE);
    assert!(outcome.reduced.is_some());
    assert_eq!((bed.repairs(), bed.ssthresh()), (vec![0], Some(5)));
}

#[test]
fn an_acknowledgment_that_moves_ahead_and_reports_what_is_behind_a_hole_proves_no_loss() {
    let mut bed = Bed::new(10);
    bed.send(4).wait_until(1050).send(6);
    // Packet 0 is acknowledged, and one that was sent 50 ms later reported: what was measured last is the round trip of
    // packet 0, which packets 1 to 3 do not exceed.
    bed.wait_until(1000 + RTT).ack_saying(1, Say { ahead: &[(4, 5)], ..Say::default() });
    assert!(bed.repairs().is_empty());
    // They are lost a quarter of the least round trip later, which is the 50 ms of the packet that was reported.
    assert_eq!(bed.deadline(), Some(1000 + RTT + 50 / 4 + ALLOWANCE));
    // The next report has a round trip of its own.
    bed.wait_until(1000 + RTT + 5).ack_saying(1, Say { ahead: &[(4, 6)], ..Say::default() });
    assert_eq!(bed.repairs(), [1]);
}

#[test]
fn after_reordering_was_seen_three_packets_ahead_prove_nothing() {
    let mut bed = Bed::new(10);
    bed.send(10).wait_until(1000 + RTT);
    bed.sack(0, &[(1, 3)]);
    // The original arrives late: the network reorders.
    bed.wait_until(1110).ack(3);
    bed.sack(3, &[(4, 8)]);
    assert!(bed.repairs().is_empty(), "four ahead of packet 3");
    // The latest round trip measured was 110, of which a quarter of the least is added, and the allowance for timers.
    assert_eq!(bed.deadline(), Some(1000 + 110 + RTT / 4 + ALLOWANCE));
    bed.wait_until(1120).ack(8);
    assert_eq!((bed.subflow.sender.phase(), bed.cwnd(), bed.ssthresh()), (Phase::Open, 16, None));
}

#[test]
fn the_reordering_timer_takes_the_place_of_the_timeout() {
    let mut bed = Bed::new(10);
    bed.set_window(30, 10);
    bed.send(10).wait_until(1000 + RTT);
    // Reordering, so that RACK waits longer.
    bed.sack(0, &[(1, 2)]);
    bed.ack(2);
    bed.sack(2, &[(3, 10)]);
    let repaired_at = 1000 + RTT + RTT / 4 + ALLOWANCE;
    bed.fire_at(repaired_at);
    assert_eq!(bed.repairs(), [2]);
    assert_eq!(bed.deadline(), Some(repaired_at + RTO), "of the retransmission");
    bed.wait_until(repaired_at + 1).send(3).wait_until(repaired_at + 1 + RTT);
    let fires_at = repaired_at + RTT + RTT / 4 + ALLOWANCE;
    for end in 11..=13 {
        bed.sack(2, &[(3, end)]);
        assert_eq!(bed.deadline(), Some(fires_at), "these were sent after the retransmission");
    }
    bed.fire_at(fires_at);
    assert_eq!(bed.deadline(), Some(repaired_at + RTO), "the timeout is the retransmission's again");
    assert_eq!(bed.repairs(), [2], "which is lost as well");
    assert_eq!(bed.deadline(), Some(fires_at + RTO));
}

#[test]
fn a_timeout_spares_what_left_within_the_last_round_trip() {
    let mut bed = Bed::new(10);
    bed.send(4).wait_until(1000 + RTT).ack(1);
    bed.retransmit();
    let probe = bed.deadline().unwrap();
    bed.fire_at(probe);
    assert_eq!(bed.retransmit(), [(3, PROBE)]);
    bed.fire_at(probe + RTO);
    assert_eq!(bed.repairs(), [1]);
    let again = probe + 3 * RTO;
    bed.wait_until(again - 50).send(2);
    bed.fire_at(again);
    // Two packets may well be in flight, and one more may leave.
    assert_eq!((bed.in_flight(), bed.cwnd()), (2, 3));
    assert_eq!(bed.repairs(), [1]);
}

#[test]
fn a_receiver_that_takes_back_what_it_reported_gets_all_of_it_again() {
    let mut bed = Bed::new(10);
    bed.send(4).wait_until(1000 + RTT).sack(0, &[(1, 4)]);
    assert_eq!(bed.repairs(), [0]);
    // Packet 0 arrives, and is all that is acknowledged: 1 to 3 were thrown away.
    bed.wait_until(1000 + 2 * RTT).ack(1);
    assert_eq!(bed.in_flight(), 0);
    let timeout = bed.deadline().unwrap();
    bed.fire_at(timeout);
    assert_eq!(bed.repairs(), [1]);
    bed.wait_until(timeout + RTT).ack(2);
    assert_eq!(bed.repairs(), [2, 3]);
}

#[test]
fn nothing_under_way_means_no_timer() {
    let mut bed = Bed::new(10);
    assert_eq!(bed.deadline(), None);
    bed.send(3).wait_until(1000 + RTT).ack(3);
    assert_eq!(bed.deadline(), None);
}

#[test]
fn after_an_outage_the_first_round_trip_that_began_then_replaces_what_was_known() {
    let mut bed = Bed::new(10);
    // The answers to these were held back for three seconds.
    bed.send(2).wait_until(4000).ack(1);
    bed.subflow.sender.forget_path(at(4000));
    bed.wait_until(4001).ack(2);
    assert!(bed.subflow.sender.rtt().srtt() > ms(700), "they say how long the outage was");
    assert_eq!(bed.subflow.sender.arrivals().bytes, 0, "and nothing of the rate");
    bed.send(1).wait_until(4051).ack(3);
    let rtt = bed.subflow.sender.rtt();
    assert_eq!((rtt.srtt(), rtt.deviation(), rtt.rto()), (ms(50), ms(25), ms(250)));
    bed.send(1).wait_until(4101).ack(4);
    assert_eq!(bed.subflow.sender.rtt().deviation(), Duration::from_micros(18_750), "from there on as always");
}
