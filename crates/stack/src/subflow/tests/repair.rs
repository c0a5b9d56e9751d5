//! Undoing needless reductions: Eifel, duplicate SACKs, F-RTO.

use super::{Bed, PROBE_AT, RTT, Say, TIMEOUT_AT};
use crate::view::Phase;
use anabranch_events::SendKind;

/// Four packets at 1000 whose answers are late; a probe, and a timeout with the retransmission of packet 0.
fn late_network() -> Bed {
    let mut bed = Bed::new(10);
    bed.send(4).fire_at(PROBE_AT);
    bed.retransmit();
    bed.fire_at(TIMEOUT_AT);
    assert_eq!((bed.repairs(), bed.cwnd(), bed.ssthresh()), (vec![0], 1, Some(5)));
    bed
}

#[test]
fn a_timeout_is_undone_when_the_answer_echoes_the_original() {
    let mut bed = late_network();
    let outcome = bed.wait_until(1550).ack_saying(1, Say { echo: Some(1000), ..Say::default() });
    assert!(outcome.undone);
    assert_eq!((bed.subflow.sender.phase(), bed.ssthresh()), (Phase::Open, None));
    assert!(bed.cwnd() >= 10);
    assert_eq!((bed.repairs(), bed.in_flight()), (vec![], 3));
    // A packet that is really lost is found by those behind it, although the undo removed all marks.
    bed.send(8).wait_until(1550 + RTT).sack(1, &[(2, 9)]);
    assert_eq!(bed.repairs(), [1]);
}

#[test]
fn a_timeout_stands_when_the_answer_echoes_the_retransmission() {
    let mut bed = late_network();
    let outcome = bed.wait_until(TIMEOUT_AT + RTT).ack_saying(1, Say { echo: Some(TIMEOUT_AT), ..Say::default() });
    assert!(!outcome.undone);
    assert_eq!((bed.subflow.sender.phase(), bed.repairs()), (Phase::Loss, vec![1, 2]));
}

#[test]
fn without_timestamps_a_packet_that_was_never_retransmitted_shows() {
    let mut bed = late_network();
    bed.clock = false;
    // Packet 1 was sent once, and arrives: the timeout was premature.
    assert!(bed.wait_until(1550).ack(2).undone);
    let mut bed = late_network();
    bed.clock = false;
    assert!(!bed.wait_until(1550).ack(1).undone, "packet 0 alone proves nothing");
    bed.repairs();
    assert!(!bed.wait_until(1560).ack(2).undone, "later arrivals may answer a retransmission");
}

#[test]
fn a_duplicate_undoes_even_after_the_end_of_the_episode() {
    let mut bed = Bed::new(10);
    bed.clock = false;
    bed.send(10).wait_until(1000 + RTT);
    for end in 2..=10 {
        bed.sack(0, &[(1, end)]);
        bed.repairs();
    }
    assert_eq!(bed.ssthresh(), Some(5));
    bed.wait_until(1120).ack(10);
    assert_eq!((bed.subflow.sender.phase(), bed.cwnd()), (Phase::Open, 5));
    // It was the original that arrived; the retransmission comes second.
    let outcome = bed.wait_until(1200).ack_saying(10, Say { twice: Some(0), ..Say::default() });
    assert!(outcome.undone);
    assert_eq!((bed.cwnd(), bed.ssthresh()), (10, None));
}

#[test]
fn a_duplicate_of_one_retransmission_among_two_undoes_nothing() {
    let mut bed = Bed::new(10);
    bed.clock = false;
    bed.send(10).wait_until(1000 + RTT);
    for end in 3..=10 {
        bed.sack(0, &[(2, end)]);
        bed.repairs();
    }
    bed.wait_until(1120).ack(10);
    assert!(!bed.wait_until(1200).ack_saying(10, Say { twice: Some(0), ..Say::default() }).undone);
    assert!(bed.ack_saying(10, Say { twice: Some(1), ..Say::default() }).undone);
}

#[test]
fn duplicates_from_before_the_episode_say_nothing_about_it() {
    let mut bed = Bed::new(10);
    bed.clock = false;
    bed.send(10).wait_until(1000 + RTT).ack(5);
    for end in 7..=10 {
        bed.sack(5, &[(6, end)]);
    }
    assert_eq!(bed.repairs(), [5]);
    assert!(!bed.ack_saying(5, Say { ahead: &[(6, 10)], twice: Some(2), ..Say::default() }).undone);
    assert_eq!(bed.subflow.sender.phase(), Phase::Recovery);
}

#[test]
fn a_partial_answer_to_an_original_undoes_only_if_no_retransmission_is_under_way() {
    let mut bed = Bed::new(10);
    bed.send(10).wait_until(1000 + RTT);
    for end in 3..=10 {
        bed.sack(0, &[(2, end)]);
        bed.repairs();
    }
    // Packet 0 was late; 1, retransmitted as well, may really be lost.
    let late = Say { ahead: &[(2, 10)], echo: Some(1000), ..Say::default() };
    assert!(!bed.wait_until(1110).ack_saying(1, late).undone);
    assert_eq!(bed.subflow.sender.phase(), Phase::Recovery);
    // Its retransmission arrives: the cut was right.
    assert!(!bed.wait_until(1000 + 2 * RTT).ack_saying(10, Say { echo: Some(1100), ..Say::default() }).undone);
    assert_eq!(bed.cwnd(), 5);
}

#[test]
fn a_probe_that_was_needless_neither_cuts_nor_teaches_of_reordering() {
    let mut bed = Bed::new(10);
    bed.send(4).fire_at(PROBE_AT);
    assert_eq!(bed.retransmit(), [(3, SendKind::TailLossProbe)]);
    bed.wait_until(1210).ack_saying(4, Say { echo: Some(1000), ..Say::default() });
    let outcome = bed.wait_until(1300).ack_saying(4, Say { twice: Some(3), ..Say::default() });
    assert!(outcome.reduced.is_none() && bed.ssthresh().is_none());
    // Three packets ahead of a hole still prove a loss at once.
    bed.send(8).wait_until(1400).sack(4, &[(5, 8)]);
    assert_eq!(bed.repairs(), [4]);
}

#[test]
fn a_probe_whose_packet_arrived_meanwhile_does_not_leave() {
    let mut bed = Bed::new(10);
    bed.send(4).fire_at(PROBE_AT);
    bed.sack(0, &[(3, 4)]);
    assert_eq!(bed.retransmit(), []);
    bed.wait_until(1210).ack(4);
    assert_eq!(bed.in_flight(), 0);
}

#[test]
fn a_second_loss_of_what_a_timeout_retransmitted_is_a_congestion_of_its_own() {
    let mut bed = Bed::new(10);
    bed.set_window(40, 20);
    bed.send(10).fire_at(PROBE_AT);
    bed.retransmit();
    bed.fire_at(TIMEOUT_AT);
    assert_eq!((bed.repairs(), bed.ssthresh()), (vec![0], Some(20)));
    bed.wait_until(TIMEOUT_AT + RTT).ack_saying(1, Say { echo: Some(TIMEOUT_AT), ..Say::default() });
    assert_eq!(bed.repairs(), [1, 2]);
    // The retransmission of 1 is lost again, that of 2 arrives.
    assert!(bed.wait_until(TIMEOUT_AT + 2 * RTT).sack(1, &[(2, 3)]).reduced.is_some());
    assert_eq!((bed.subflow.sender.phase(), bed.ssthresh(), bed.repairs()), (Phase::Recovery, Some(2), vec![1]));
}

/// A lost acknowledgment hid that packet 0 had arrived, so that it was retransmitted at 1100; packets 10 to 14 left at
/// 1050.
fn needless_retransmission() -> Bed {
    let mut bed = Bed::new(15);
    bed.send(10).wait_until(1050).send(5);
    bed.wait_until(1000 + RTT).sack(0, &[(1, 10)]);
    assert_eq!(bed.repairs(), [0]);
    bed
}

#[test]
fn a_retransmission_of_what_had_arrived_makes_nothing_before_it_lost() {
    // A cumulative acknowledgment covers it more than a round trip later, and echoes the originals' time.
    let mut bed = needless_retransmission();
    bed.wait_until(1210).ack_saying(10, Say { echo: Some(1000), ..Say::default() });
    assert!(bed.repairs().is_empty(), "packets 10 to 14 may be on their way");
    // The retransmission itself is answered: those that left before it are late.
    let mut bed = needless_retransmission();
    bed.wait_until(1210).ack_saying(10, Say { echo: Some(1100), ..Say::default() });
    assert_eq!(bed.repairs()[0], 10);
}

#[test]
fn an_answer_within_a_round_trip_is_not_to_the_retransmission() {
    let mut bed = needless_retransmission();
    bed.clock = false;
    // The acknowledgment comes 50 ms after the retransmission: to the original.
    bed.wait_until(1150).ack(10);
    assert!(bed.repairs().is_empty(), "packets 10 to 14 may be on their way");
}
