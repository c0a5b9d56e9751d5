//! Windows: growth, idleness, recovery.

use super::{Bed, PACKET, RTO, RTT, Say, at};
use crate::subflow::SenderOptions;
use crate::view::{Packets, Phase};

#[test]
fn slow_start_doubles_per_round_trip_and_counts_packets() {
    let mut bed = Bed::new(10);
    assert_eq!(bed.send_what_fits(), 10);
    bed.wait_until(1000 + RTT);
    // Delayed acknowledgments of two packets each.
    for next in [2, 4, 6, 8, 10] {
        bed.ack(next);
        assert_eq!(bed.send_what_fits(), 4);
    }
    assert_eq!((bed.cwnd(), bed.in_flight()), (20, 20));
}

#[test]
fn the_window_grows_only_if_it_limited_the_sender() {
    let grown_after = |packets| {
        let mut bed = Bed::new(10);
        bed.send_with_rest(packets, false).wait_until(1000 + RTT).ack(u64::from(packets));
        bed.cwnd()
    };
    // In slow start, more than half of the window in use is enough.
    assert_eq!(grown_after(5), 10);
    assert_eq!(grown_after(6), 16);
    let grown_in_avoidance = |packets| {
        let mut bed = Bed::new(10);
        bed.set_window(10, 5);
        bed.send_with_rest(packets, false).wait_until(1000 + RTT).ack(u64::from(packets));
        bed.cwnd()
    };
    assert_eq!(grown_in_avoidance(9), 10);
    assert_eq!(grown_in_avoidance(10), 11);
}

#[test]
fn an_idle_window_halves_per_timeout_down_to_the_initial_one() {
    let after_idle = |idle| {
        let mut bed = Bed::new(10);
        bed.set_window(50, 20);
        bed.send(1).wait_until(1000 + RTT).ack(1);
        bed.wait_until(1000 + idle).send(1);
        (bed.cwnd(), bed.ssthresh().unwrap())
    };
    // Exactly one timeout is not idle yet, but the window was not used for so long: half way to ten.
    assert_eq!(after_idle(RTO), (30, 37));
    // In either case the threshold becomes 3/4 of the window.
    assert_eq!(after_idle(RTO + 1), (25, 37));
    assert_eq!(after_idle(2 * RTO), (25, 37));
    assert_eq!(after_idle(2 * RTO + 1), (12, 37));
    assert_eq!(after_idle(20 * RTO), (10, 37));
}

#[test]
fn each_record_that_is_queued_after_a_pause_halves_the_window_again() {
    let idle_for = |time: u64| {
        let mut bed = Bed::new(10);
        bed.set_window(95, 20);
        bed.send(1).wait_until(1000 + RTT).ack(1);
        bed.wait_until(1000 + time);
        bed
    };
    let queue = |bed: &mut Bed, records| {
        let now = at(bed.now);
        bed.subflow.sender.before_queueing(now, records, true);
        bed.cwnd()
    };
    // Two timeouts: a quarter, and a quarter again, but no less than the initial window.
    let mut bed = idle_for(2 * RTO + 1);
    assert_eq!([queue(&mut bed, 0), queue(&mut bed, 1), queue(&mut bed, 1)], [95, 23, 10]);
    assert_eq!(queue(&mut idle_for(2 * RTO + 1), 2), 10);
    assert_eq!(queue(&mut idle_for(RTO + 1), 2), 23, "half, and half again");
    assert_eq!(queue(&mut idle_for(RTO), 2), 95, "exactly one timeout is no pause");
    // Once something is in flight, records are queued behind it.
    let mut bed = idle_for(RTO + 1);
    let now = at(bed.now);
    bed.subflow.sender.on_sent(now, PACKET.into(), PACKET, false);
    assert_eq!(queue(&mut bed, 2), 95);
}

#[test]
fn a_window_that_is_not_used_moves_towards_what_is_used() {
    let mut bed = Bed::new(10);
    bed.set_window(50, 20);
    // Two packets per round trip, and nothing idle for a whole timeout.
    let mut next = 0;
    for round in 0..4 {
        bed.wait_until(1000 + round * RTT).send_with_rest(2, false);
        next += 2;
        bed.wait_until(1000 + (round + 1) * RTT).ack(next);
    }
    // At 1300, a timeout after the window began to lie idle: half way to max(used, 10).
    assert_eq!((bed.cwnd(), bed.ssthresh()), (30, Some(37)));
}

/// Ten packets at 1000, of which the first `lost` are missing; the others are acknowledged one by one at 1100. Returns
/// the packets retransmitted and sent anew after each of these acknowledgments.
fn lossy_flight(lost: u64) -> (Bed, Vec<(Vec<u64>, u32)>) {
    let mut bed = Bed::new(10);
    bed.send(10).wait_until(1000 + RTT);
    let mut sent = Vec::new();
    for packet in lost..10 {
        bed.sack(0, &[(lost, packet + 1)]);
        sent.push((bed.repairs(), bed.send_what_fits()));
    }
    (bed, sent)
}

#[test]
fn one_loss_among_ten_is_repaired_by_proportional_rate_reduction() {
    let (mut bed, sent) = lossy_flight(1);
    // Before the loss is certain, one leaves for one that arrived (RFC 3042). The third shows the loss: the threshold
    // is 5, and 8 are in flight. From then on one leaves for every two that are delivered, until 5 are in flight.
    let expected = [
        (vec![], 1),
        (vec![], 1),
        (vec![0], 0), // ceil(5 * 1 / 10) - 0 = 1; 8 in flight before, 9 after
        (vec![], 0),  // ceil(5 * 2 / 10) - 1 = 0; 8 in flight
        (vec![], 1),  // ceil(5 * 3 / 10) - 1 = 1; 7, then 8
        (vec![], 0),  // ceil(5 * 4 / 10) - 2 = 0; 7
        (vec![], 1),  // ceil(5 * 5 / 10) - 2 = 1; 6, then 7
        (vec![], 0),  // ceil(5 * 6 / 10) - 3 = 0; 6
        (vec![], 0),  // 5 in flight: there it stays
    ];
    assert_eq!(sent, expected);
    assert_eq!((bed.ssthresh(), bed.cwnd(), bed.in_flight()), (Some(5), 5, 5));
    // The retransmission arrives: the episode ends with the window at the threshold.
    bed.wait_until(1000 + 2 * RTT).ack(12);
    assert_eq!((bed.subflow.sender.phase(), bed.cwnd(), bed.in_flight()), (Phase::Open, 5, 2));
}

#[test]
fn three_losses_among_ten_are_repaired_by_proportional_rate_reduction() {
    let (mut bed, sent) = lossy_flight(3);
    let expected = [
        (vec![], 1),
        (vec![], 1),
        (vec![0], 0), // 12 sent, 3 arrived, 3 lost: 6 in flight, ceil(5 * 1 / 10) = 1
        (vec![], 0),  // ceil(5 * 2 / 10) - 1 = 0; 6 in flight
        (vec![], 0),  // 5 in flight
        (vec![1], 0), // 4: one is missing to the threshold
        (vec![2], 0), // 4 again
    ];
    assert_eq!(sent, expected);
    assert_eq!((bed.ssthresh(), bed.cwnd(), bed.in_flight()), (Some(5), 5, 5));
    bed.wait_until(1000 + 2 * RTT);
    for next in [1, 2] {
        bed.sack(next, &[(3, 10)]);
        assert_eq!((bed.repairs(), bed.send_what_fits()), (vec![], 1));
    }
    // The episode lasts until everything that had left when it began is acknowledged.
    bed.ack(10);
    assert_eq!((bed.subflow.sender.phase(), bed.cwnd()), (Phase::Recovery, 5));
    bed.ack(12);
    assert_eq!((bed.subflow.sender.phase(), bed.cwnd()), (Phase::Open, 5));
}

#[test]
fn a_retransmission_that_is_lost_is_retransmitted_as_soon_as_later_ones_arrive() {
    let (mut bed, _) = lossy_flight(2);
    // Packets 0 and 1 were retransmitted at 1100, and new ones behind them; the retransmission of 0 is lost.
    let next = bed.subflow.sender.next() / 1000;
    bed.wait_until(1000 + 2 * RTT);
    bed.sack(0, &[(1, next)]);
    assert_eq!(bed.repairs(), [0], "the retransmission of 1 was sent later and arrived");
    assert_eq!(bed.subflow.sender.phase(), Phase::Recovery);
}

#[test]
fn the_earliest_hole_is_repaired_first_even_if_found_last() {
    let mut bed = Bed::new(10);
    bed.set_window(20, 10);
    bed.send(10).wait_until(1010).send(10).wait_until(1000 + RTT);
    // Packet 0 is lost; its retransmission, too, as well as packets 12 to 16.
    for end in 2..=10 {
        bed.sack(0, &[(1, end)]);
        bed.repairs();
    }
    bed.wait_until(1010 + RTT).sack(0, &[(1, 12)]);
    bed.wait_until(1000 + 2 * RTT + 20).send_what_fits();
    // Packets sent at 1100 and later are acknowledged at 1230: the retransmission is lost; so are 12 to 16.
    bed.sack(0, &[(1, 12), (17, 20)]);
    let repaired = bed.repairs();
    assert_eq!(repaired.first(), Some(&12));
    let next = bed.subflow.sender.next() / 1000;
    bed.wait_until(1000 + 3 * RTT + 40).sack(0, &[(1, 12), (17, next)]);
    assert_eq!(bed.repairs().first(), Some(&0), "0 was found lost after 13 to 16, but blocks everything");
}

#[test]
fn an_acknowledgment_of_what_was_never_sent_changes_nothing() {
    let mut bed = Bed::new(10);
    bed.send(3).wait_until(1000 + RTT);
    let before = bed.views();
    let outcome = bed.ack(4);
    assert!(!outcome.advanced && bed.views() == before);
    // Nor do blocks beyond it, or blocks the wrong way round.
    bed.sack(0, &[(2, 9), (2, 1)]);
    assert_eq!(bed.views()[0].in_flight, 3);
}

#[test]
fn a_probe_that_repaired_the_loss_of_the_last_packet_cuts_the_window() {
    let mut bed = Bed::new(10);
    bed.send(10).wait_until(1000 + RTT).ack(9);
    // The last packet is lost. One packet out: two round trips and 200 ms, but not later than the timeout.
    bed.fire_at(1000 + RTT + RTO);
    assert_eq!(bed.retransmit(), [(9, anabranch_events::SendKind::TailLossProbe)]);
    bed.send_with_rest(1, false).wait_until(1000 + 2 * RTT + RTO);
    let outcome = bed.ack_saying(11, Say { echo: Some(1000 + RTT + RTO), ..Say::default() });
    assert!(outcome.reduced.is_some(), "more than the probe was acknowledged, without a duplicate SACK");
    assert_eq!(bed.ssthresh(), Some(9), "half of the window");
    assert_eq!((bed.subflow.sender.phase(), bed.cwnd()), (Phase::Open, 9));
}

/// Payload that waits in the tests of bursts: plenty.
const UNSENT: u64 = 100 * PACKET as u64;

#[test]
fn a_single_packet_waits_for_the_second_of_a_burst_while_the_next_answer_is_near() {
    let mut bed = Bed::new(10);
    bed.set_window(10, 5);
    bed.send(10).wait_until(1000 + RTT).ack(2);
    let sends = |bed: &mut Bed| !bed.subflow.sender.defers_for_burst(at(bed.now), UNSENT, PACKET);
    assert!(sends(&mut bed), "room for two");
    bed.send(1);
    assert!(!bed.subflow.sender.burst_ended() && sends(&mut bed), "a burst leaves as a whole");
    bed.send(1);
    assert!(bed.subflow.sender.burst_ended());
    // Room for one more, a whole round trip after the first one in flight left.
    bed.ack(3);
    assert!(!sends(&mut bed));
    assert!(!bed.subflow.sender.defers_for_burst(at(bed.now), u64::from(PACKET), PACKET), "the last packet of all");
    bed.wait_until(1000 + RTT + 2);
    assert!(sends(&mut bed), "the sender has not been busy for more than a millisecond");
}

#[test]
fn windows_are_whole_after_a_reduction_unless_reported_otherwise() {
    for (whole, expected) in [(true, 4.0), (false, 4.75)] {
        let mut bed = Bed::new(10);
        bed.subflow.sender.configure(SenderOptions { whole_windows: whole, ..SenderOptions::default() });
        bed.set_window(9, 5);
        bed.subflow.sender.window.cwnd = Packets::from_f64(9.5);
        bed.send(9).wait_until(1000 + RTT);
        bed.sack(0, &[(1, 5)]);
        assert_eq!(bed.subflow.sender.window().ssthresh.as_f64(), expected);
    }
}

#[test]
fn a_window_decays_a_timeout_after_its_application_last_waited_for_room() {
    let mut bed = Bed::new(40);
    bed.set_window(40, 20);
    let mut decays = |now: u64, decay: bool| {
        bed.wait_until(now);
        let sender = &mut bed.subflow.sender;
        sender.on_sent(at(now), sender.next() - 1, PACKET, false);
        sender.after_sending(at(now), decay).map(|before| (before.floor(), sender.window().cwnd.floor()))
    };
    assert_eq!(decays(1000 + RTO, false), None, "the application has more to write, and waits for room");
    assert_eq!(decays(1000 + 2 * RTO - 1, true), None, "less than a timeout ago");
    assert_eq!(decays(1000 + 2 * RTO, true), Some((40, 25)), "halfway to the initial window");
}
