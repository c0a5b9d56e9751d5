//! Delivery rates on a link of known rate, and what a subflow knows of its path after a retransmitted handshake.

use super::*;
use std::collections::VecDeque;

/// Time between two packets on the link, in milliseconds: 100 packets of 1000 bytes a second.
const SPACING: u64 = 10;
const LINK_RATE: f64 = 100_000.0;

/// A bed behind a link with a rate, a round trip of [`RTT`] and an endless queue; each packet is acknowledged.
struct Bottleneck {
    bed: Bed,
    free_at: u64,
    arrivals: VecDeque<u64>,
    acked: u64,
}

impl Bottleneck {
    /// In congestion avoidance, so that the window hardly grows.
    fn new(window: u32) -> Self {
        let mut bed = Bed::new(window);
        bed.set_window(window, window);
        Bottleneck { bed, free_at: 0, arrivals: VecDeque::new(), acked: 0 }
    }

    /// Sends until a time, with at most so many packets in flight besides what the window allows: as a scheduler that
    /// holds the subflow back.
    fn run(&mut self, until: u64, most: u32) {
        for now in self.bed.now..until {
            self.bed.wait_until(now);
            while self.arrivals.front().is_some_and(|at| *at <= now) {
                self.arrivals.pop_front();
                self.acked += 1;
                self.bed.ack(self.acked);
            }
            while self.bed.subflow.sender.has_room() && self.bed.in_flight() < most {
                self.free_at = self.free_at.max(now) + SPACING;
                self.arrivals.push_back(self.free_at + RTT);
                let sender = &mut self.bed.subflow.sender;
                sender.on_sent(at(now), sender.next() - 1, PACKET, false);
            }
            let sender = &mut self.bed.subflow.sender;
            sender.note_supply(false);
            // Without decay (`idle_restart = false`): a window that is not used stays.
            sender.after_sending(at(now), false);
        }
    }

    /// By the delivery rate, and by window over round trip, in multiples of the link's rate.
    fn readings(&self) -> (f64, f64) {
        let view = self.bed.subflow.view(PACKET);
        (view.delivery_rate().unwrap() / LINK_RATE, view.rate() / LINK_RATE)
    }
}

#[test]
fn the_delivery_rate_is_the_link_s_where_window_over_round_trip_reads_several_times_it() {
    let mut bottleneck = Bottleneck::new(40);
    bottleneck.run(3000, u32::MAX);
    let (delivered, by_window) = bottleneck.readings();
    assert!((delivered - 1.0).abs() < 0.02, "{delivered}");
    assert!((by_window - 1.0).abs() < 0.2, "a full window and its queue: {by_window}");
    // Held back at 5 packets a round trip, the queue and the round trip shrink and the window stays.
    bottleneck.run(8000, 5);
    let (delivered, by_window) = bottleneck.readings();
    assert!((delivered - 1.0).abs() < 0.02, "{delivered}");
    assert!(by_window > 3.0, "{by_window}");
}

#[test]
fn a_window_that_was_cut_to_spare_another_subflow_does_not_show_the_path() {
    let mut bottleneck = Bottleneck::new(40);
    bottleneck.run(3000, u32::MAX);
    for _ in 0..4 {
        bottleneck.bed.subflow.sender.penalise();
    }
    assert!(bottleneck.bed.cwnd() < 8, "{}", bottleneck.bed.cwnd());
    // What was sent before the cut is acknowledged, then one round trip of few packets.
    let drained = bottleneck.free_at + RTT;
    bottleneck.run(drained + RTT, u32::MAX);
    assert!((bottleneck.readings().0 - 1.0).abs() < 0.02, "{:?}", bottleneck.readings());
}

#[test]
fn no_rate_was_delivered_before_the_first_sample() {
    let mut bed = Bed::new(10);
    bed.send(1);
    assert_eq!(bed.subflow.view(PACKET).delivery_rate(), None);
}

/// A subflow whose SYN was sent at 1000.5 ms and again at 2000.5 ms, and answered at 2080 ms.
fn answered_late(timestamps: bool, echo: Option<u64>) -> SubflowView {
    let mut subflow = Bed::new(10).subflow;
    subflow.sender = super::super::Sender::new(
        (congestion::REGISTRY.find("newreno").unwrap().create)(&Options::default(), 0).unwrap(),
        10,
    );
    subflow.peer.timestamps = timestamps;
    // Not at ticks of the clock.
    let half = Duration::from_micros(500);
    subflow.on_handshake_sent(at(1000) + half);
    subflow.on_handshake_sent(at(2000) + half);
    subflow.on_numbers_agreed(at(2080), echo.map(|sent| timestamp(at(sent))));
    subflow.view(PACKET)
}

#[test]
fn the_timestamp_shows_which_of_two_syns_was_answered() {
    // The clock has milliseconds; the first SYN bounds the time.
    for (echo, round_trip_us) in [(2000, 80_000), (1000, 1_079_500)] {
        let (view, expected) = (answered_late(true, Some(echo)), Duration::from_micros(round_trip_us));
        assert_eq!((view.min_rtt, view.srtt), (expected, expected));
    }
}

#[test]
fn without_a_credible_timestamp_a_retransmitted_handshake_leaves_no_round_trip_rather_than_an_endless_one() {
    // The echo of a clock that runs ahead, or that was read before the first SYN, is not believed.
    for view in [answered_late(false, Some(2000)), answered_late(true, Some(2500)), answered_late(true, Some(900))] {
        assert_eq!((view.min_rtt, view.srtt), (Duration::ZERO, Duration::ZERO));
    }
}

#[test]
fn a_tail_loss_that_its_probe_repaired_leaves_the_window_of_a_control_that_governs_itself() {
    let mut bed = Bed::under("bbr", 10);
    bed.send_with_rest(10, false).wait_until(1000 + RTT).ack(9);
    let before = bed.cwnd();
    let deadline = bed.deadline().unwrap();
    bed.fire_at(deadline);
    assert_eq!(bed.retransmit(), [(9, SendKind::TailLossProbe)]);
    bed.send(1);
    let outcome = bed.wait_until(deadline + RTT).ack(11);
    assert!(outcome.reduced.is_some(), "the probe repaired a loss");
    assert!(bed.cwnd() >= before, "{} packets, {before} before", bed.cwnd());
}

/// A burst of 15 packets after a pause, and an acknowledgment of each `spacing` ms after the one before; what arrived
/// of the last one is `last` bytes. Returns delivery rate and arrival rate in multiples of the link's rate.
fn rates_of_a_burst(spacing: u64, last: u32) -> (f64, f64) {
    let mut bed = Bed::new(20);
    bed.send(14);
    let sender = &mut bed.subflow.sender;
    sender.on_sent(at(bed.now), sender.next() - 1, last, false);
    sender.note_supply(false);
    let sent_at = bed.now;
    for packet in 1..=15 {
        bed.wait_until(sent_at + RTT + spacing * packet);
        let short = if packet == 15 { u64::from(PACKET - last) } else { 0 };
        let ack = Acknowledgment {
            acked: start_of(packet) - short,
            blocks: &[],
            duplicate: None,
            echo: None,
            more_than_ack: false,
        };
        let views = bed.views();
        bed.subflow.sender.on_ack(at(bed.now), &ack, Siblings::new(&views, 0));
    }
    let view = bed.subflow.view(PACKET);
    (view.delivery_rate().unwrap() / LINK_RATE, view.arrival_rate().unwrap() / LINK_RATE)
}

#[test]
fn the_arrival_rate_of_a_burst_leaves_out_the_round_trip_in_which_nothing_could_arrive() {
    let (delivered, arrived) = rates_of_a_burst(SPACING, PACKET);
    let whole = (RTT + 15 * SPACING) as f64;
    assert!((delivered - 150.0 / whole).abs() < 1e-6, "{delivered}");
    assert!((arrived - 1.0).abs() < 1e-6, "{arrived}");
}

#[test]
fn a_short_packet_is_none_of_full_size_for_the_arrival_rate() {
    let (delivered, arrived) = rates_of_a_burst(SPACING, 500);
    let whole = (RTT + 15 * SPACING) as f64;
    assert!((delivered - 150.0 / whole).abs() < 1e-6, "15 packets, as Linux counts: {delivered}");
    assert!((arrived - 13.5 / 14.0).abs() < 1e-6, "13 packets and a half after the first one: {arrived}");
}

#[test]
fn acknowledgments_that_arrive_at_once_show_no_rate() {
    // 14 of them in 14 ms, less than a quarter of the 100 ms of the round trip: only the whole time counts.
    let (delivered, arrived) = rates_of_a_burst(1, PACKET);
    assert!((arrived - delivered).abs() < 1e-6, "{arrived} and {delivered}");
}
