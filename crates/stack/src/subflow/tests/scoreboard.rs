//! The scoreboard against a model that keeps every packet for ever and searches all of them at every step.

use super::{PACKET, at, start_of};
use crate::subflow::scoreboard::{Answer, Delivery, Record, Scoreboard};
use crate::subflow::send_state::SendState;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
struct Packet {
    acked: bool,
    sacked: bool,
    lost: bool,
    retransmitted: bool,
    /// When it was last sent, and its place among all transmissions.
    sent_at: u64,
    order: u64,
}

impl Packet {
    fn missing(&self) -> bool {
        !self.acked && !self.sacked
    }

    fn under_way(&self) -> bool {
        self.missing() && (!self.lost || self.retransmitted)
    }

    fn awaits_retransmission(&self) -> bool {
        self.missing() && self.lost && !self.retransmitted
    }
}

#[derive(Default)]
struct Model {
    packets: Vec<Packet>,
    order: u64,
    marked: u64,
}

impl Model {
    fn count(&self, counts: impl Fn(&Packet) -> bool) -> u32 {
        self.packets.iter().filter(|packet| !packet.acked && counts(packet)).count() as u32
    }

    fn oldest(&self) -> Option<usize> {
        let under_way = self.packets.iter().enumerate().filter(|(_, packet)| packet.under_way());
        under_way.min_by_key(|(_, packet)| (packet.sent_at, packet.order)).map(|(n, _)| n)
    }

    fn mark_lost(&mut self, n: usize) {
        if self.packets[n].under_way() {
            (self.packets[n].lost, self.packets[n].retransmitted) = (true, false);
            self.marked += 1;
        }
    }

    /// Returns how many packets are newly delivered.
    fn deliver(&mut self, range: std::ops::Range<usize>, cumulative: bool) -> u32 {
        let mut new = 0;
        for packet in &mut self.packets[range] {
            new += u32::from(packet.missing());
            if cumulative {
                packet.acked = true;
            } else if packet.missing() {
                *packet = Packet { sacked: true, lost: false, retransmitted: false, ..*packet };
            }
        }
        new
    }

    fn mark_all_lost(&mut self, recent: u64) {
        let Some(first) = self.packets.iter().position(|packet| !packet.acked) else { return };
        if self.packets[first].sacked {
            self.packets.iter_mut().for_each(|packet| packet.sacked = false);
            self.order_by_time();
        }
        for n in first..self.packets.len() {
            if n == first || self.packets[n].sent_at <= recent {
                self.mark_lost(n);
            }
        }
    }

    fn unmark_lost(&mut self) {
        for packet in &mut self.packets {
            (packet.lost, packet.retransmitted) = (false, false);
        }
        self.order_by_time();
    }

    /// At equal times the sequence counts.
    fn order_by_time(&mut self) {
        let mut all: Vec<_> = (0..self.packets.len()).collect();
        all.sort_by_key(|n| self.packets[*n].sent_at);
        for n in all {
            self.order += 1;
            self.packets[n].order = self.order;
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Send(u8),
    /// Cumulatively, so many more packets.
    Ack(u8),
    /// From this many packets behind the first, this many packets, and odd bytes on either side.
    Sack(u8, u8, u8, u8),
    LoseOldest,
    Retransmit,
    /// The last one again, as a probe does.
    Probe,
    /// Spare packets sent within this many milliseconds.
    Timeout(u8),
    Undo,
    Wait(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1u8..12).prop_map(Step::Send),
        3 => (0u8..6).prop_map(Step::Ack),
        5 => (0u8..20, 1u8..5, 0u8..3, 0u8..3).prop_map(|(a, b, c, d)| Step::Sack(a, b, c, d)),
        4 => Just(Step::LoseOldest),
        5 => Just(Step::Retransmit),
        1 => Just(Step::Probe),
        1 => (0u8..9).prop_map(Step::Timeout),
        1 => Just(Step::Undo),
        3 => (1u8..5).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..120)
}

/// Packets of a burst, which share a buffer.
const BURST: u64 = 3;

struct Both {
    board: Scoreboard,
    model: Model,
    now: u64,
    acked: usize,
}

impl Both {
    fn send(&mut self) {
        let n = self.model.packets.len() as u64;
        let record = Record::new(start_of(n), start_of(n) - 1, PACKET, false, at(self.now), SendState::default());
        let is_first = self.board.is_empty();
        self.board.push(record);
        if !n.is_multiple_of(BURST) && !is_first {
            self.board.share_buffer();
        }
        self.model.order += 1;
        let (sent_at, order) = (self.now, self.model.order);
        let packet = Packet { acked: false, sacked: false, lost: false, retransmitted: false, sent_at, order };
        self.model.packets.push(packet);
    }

    fn retransmit(&mut self, position: u64, n: usize) {
        // Nothing is retransmitted at the very instant at which it left.
        self.now += 1;
        let repairs = self.board.mark_retransmitted(position, at(self.now), SendState::default());
        let packet = &mut self.model.packets[n];
        assert_eq!(repairs, packet.lost);
        packet.retransmitted = packet.lost;
        packet.sent_at = self.now;
        self.model.order += 1;
        packet.order = self.model.order;
    }

    fn sack(&mut self, first: usize, count: usize, before: u64, behind: u64) {
        let (first, end) = (self.acked + first, self.acked + first + count);
        if end > self.model.packets.len() {
            return;
        }
        // Odd bytes beyond whole packets change nothing, inside them they exclude one.
        let (start_byte, end_byte) = (start_of(first as u64), start_of(end as u64));
        let (start_byte, from) = if before == 2 { (start_byte + 1, first + 1) } else { (start_byte - before, first) };
        let (end_byte, to) = if behind == 2 { (end_byte - 1, end - 1) } else { (end_byte + behind, end) };
        let mut delivery = Delivery::default();
        self.board.selectively_acknowledge(start_byte, end_byte, 0, &mut delivery);
        let new = if from < to { self.model.deliver(from..to, false) } else { 0 };
        assert_eq!(delivery.packets, new);
        assert_eq!(delivery.any_sacked, new > 0);
    }

    fn ack(&mut self, count: usize) {
        let end = (self.acked + count).min(self.model.packets.len());
        let mut delivery = Delivery::default();
        self.board.acknowledge(start_of(end as u64), 0, &mut delivery);
        assert_eq!(delivery.packets, self.model.deliver(self.acked..end, true));
        assert_eq!(delivery.bytes, (end - self.acked) as u64 * u64::from(PACKET));
        self.acked = end;
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Send(n) => (0..n).for_each(|_| self.send()),
            Step::Ack(n) => self.ack(usize::from(n)),
            Step::Sack(first, count, before, behind) => {
                self.sack(usize::from(first), usize::from(count), u64::from(before), u64::from(behind));
            }
            Step::LoseOldest => {
                if let Some((position, _)) = self.board.oldest_transmission() {
                    self.board.mark_lost(position);
                    let n = self.model.oldest().unwrap();
                    self.model.mark_lost(n);
                }
            }
            Step::Retransmit => {
                if let Some((position, record)) = self.board.next_lost() {
                    self.retransmit(position, ((record.start - 1) / u64::from(PACKET)) as usize);
                }
            }
            Step::Probe => {
                let last = self.model.packets.len().wrapping_sub(1);
                if let Some((position, _)) = self.board.last_missing()
                    && !self.model.packets[last].retransmitted
                {
                    self.retransmit(position, last);
                }
            }
            Step::Timeout(spared) => {
                let recent = self.now.saturating_sub(u64::from(spared));
                self.board.mark_all_lost(at(recent));
                self.model.mark_all_lost(recent);
            }
            Step::Undo => {
                self.board.unmark_lost();
                self.model.unmark_lost();
            }
            Step::Wait(n) => self.now += u64::from(n),
        }
    }

    fn compare(&mut self) {
        let (board, model) = (&mut self.board, &self.model);
        assert_eq!(board.packets_out(), model.count(|_| true));
        let begins = |n: &usize| *n == self.acked || (*n as u64).is_multiple_of(BURST);
        assert_eq!(board.buffers() as usize, (self.acked..model.packets.len()).filter(begins).count());
        assert_eq!(board.outstanding(), u64::from(model.count(|_| true)) * u64::from(PACKET));
        assert_eq!(board.sacked(), model.count(|packet| packet.sacked));
        assert_eq!(board.lost(), model.count(|packet| packet.lost));
        assert_eq!(board.retransmitted(), model.count(|packet| packet.retransmitted));
        assert_eq!(board.in_flight(), model.count(Packet::under_way));
        assert_eq!(board.marked(), model.marked);
        let oldest = board.oldest_transmission().map(|(_, record)| record.start);
        assert_eq!(oldest, model.oldest().map(|n| start_of(n as u64)));
        let next = board.next_lost().map(|(_, record)| record.start);
        assert_eq!(next, model.packets.iter().position(Packet::awaits_retransmission).map(|n| start_of(n as u64)));
        let last = model.packets.last().filter(|packet| packet.missing()).map(|_| model.packets.len() as u64 - 1);
        assert_eq!(board.last_missing().map(|(_, record)| record.start), last.map(start_of));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_answer_is_that_of_the_model(steps in steps()) {
        let mut both = Both { board: Scoreboard::default(), model: Model::default(), now: 1, acked: 0 };
        for step in steps {
            both.step(step);
            both.compare();
        }
    }
}

fn board_of(packets: u64) -> Scoreboard {
    let mut board = Scoreboard::default();
    for n in 0..packets {
        board.push(Record::new(start_of(n), start_of(n) - 1, PACKET, false, at(n), SendState::default()));
    }
    board
}

#[test]
fn crumbs_of_packets_are_not_remembered() {
    let mut board = board_of(4);
    let mut delivery = Delivery::default();
    for n in 0..4 {
        for byte in (100..900).step_by(10) {
            let start = start_of(n) + byte;
            board.selectively_acknowledge(start, start + 5, 0, &mut delivery);
        }
    }
    assert_eq!((board.sacked(), delivery.packets, board.in_flight()), (0, 0, 4));
    // Once the parts have merged they are one run of whole packets.
    board.selectively_acknowledge(start_of(1) - 500, start_of(3) + 500, 0, &mut delivery);
    assert_eq!((board.sacked(), delivery.packets, board.in_flight()), (2, 2, 2));
}

#[test]
fn a_part_of_a_packet_leaves_the_rest_to_be_retransmitted() {
    let mut board = board_of(2);
    let mut delivery = Delivery::default();
    board.acknowledge(start_of(0) + 300, 0, &mut delivery);
    assert_eq!((delivery.bytes, delivery.packets, board.outstanding()), (300, 0, 1700));
    board.mark_all_lost(at(10));
    let (_, rest) = board.next_lost().unwrap();
    assert_eq!((rest.start, rest.stream_offset, rest.len), (start_of(0) + 300, 300, 700));
}

#[test]
fn what_arrived_long_ago_gives_no_round_trip() {
    let mut board = board_of(3);
    let mut delivery = board.delivery(Answer::default());
    board.selectively_acknowledge(start_of(1), start_of(3), 0, &mut delivery);
    assert_eq!(delivery.sacked, Some((at(1), at(2))));
    let mut delivery = board.delivery(Answer::default());
    board.acknowledge(start_of(3), 0, &mut delivery);
    assert_eq!(delivery.acked, Some((at(0), at(0))), "only the packet that was missing is new");
    assert!(delivery.reordered, "it arrived after others that left later");
}

#[test]
fn what_is_reported_at_once_is_no_sign_of_reordering() {
    let mut board = board_of(8);
    let mut delivery = board.delivery(Answer::default());
    // A late acknowledgment of the first packet covers packets beyond a hole as well, the latest first.
    board.selectively_acknowledge(start_of(5), start_of(6), 0, &mut delivery);
    board.selectively_acknowledge(start_of(2), start_of(3), 0, &mut delivery);
    board.acknowledge(start_of(1), 0, &mut delivery);
    assert!(!delivery.reordered);
    let mut delivery = board.delivery(Answer::default());
    board.selectively_acknowledge(start_of(4), start_of(5), 0, &mut delivery);
    assert!(delivery.reordered, "the next acknowledgment covers an earlier one");
}

/// A board with packets of [`PACKET`] bytes, the last with the FIN: 0 arrived ahead, 1 is lost, 2 was lost and sent
/// again, 3 and 4 are in flight.
fn marked() -> Scoreboard {
    let mut board = Scoreboard::default();
    for n in 0..5 {
        board.push(Record::new(start_of(n), start_of(n) - 1, PACKET, n == 4, at(n), SendState::default()));
    }
    let mut delivery = board.delivery(Answer::default());
    board.selectively_acknowledge(start_of(0), start_of(1), 0, &mut delivery);
    board.mark_lost(1);
    board.mark_lost(2);
    assert!(board.mark_retransmitted(2, at(10), SendState::default()));
    board
}

/// Offset, payload, FIN, and whether it waits to be sent again, of each packet. Also checks that nothing is missing
/// between them.
fn packets(board: &Scoreboard) -> Vec<(u64, u32, bool, bool)> {
    let records: Vec<_> = board.records().collect();
    assert!(records.windows(2).all(|pair| pair[0].end() == pair[1].start));
    assert!(records.iter().all(|record| record.stream_offset == record.start - 1));
    records.iter().map(|r| (r.start, r.len, r.fin, r.unrepaired())).collect()
}

#[test]
fn packets_that_are_too_large_are_lost_and_sent_again_in_pieces() {
    let mut board = marked();
    let (outstanding, marked_before) = (board.outstanding(), board.marked());
    assert!(board.lose_larger(400));
    let piece = |n: u64, at: u32, len: u32, fin| (start_of(n) + u64::from(at), len, fin, true);
    let pieces = |n| [piece(n, 0, 400, false), piece(n, 400, 400, false), piece(n, 800, 200, n == 4)];
    let mut expected = vec![(start_of(0), PACKET, false, false)];
    (1..5).for_each(|n| expected.extend(pieces(n)));
    assert_eq!(packets(&board), expected);
    assert_eq!((board.sacked(), board.lost(), board.retransmitted(), board.in_flight()), (1, 12, 0, 0));
    // The one that waited to be sent again was counted before.
    assert_eq!((board.outstanding(), board.marked()), (outstanding, marked_before + 9));
    let mut again = Vec::new();
    while let Some((position, record)) = board.next_lost() {
        board.mark_retransmitted(position, at(20), SendState::default());
        again.push(record.start);
    }
    assert_eq!(again, expected[1..].iter().map(|packet| packet.0).collect::<Vec<_>>());
    assert!(!board.lose_larger(400), "nothing is larger any more");
    let mut delivery = board.delivery(Answer::default());
    board.acknowledge(start_of(5) + 1, 0, &mut delivery);
    assert!(board.is_empty() && board.in_flight() == 0 && board.outstanding() == 0);
    assert_eq!((delivery.bytes, delivery.largest), (5 * u64::from(PACKET), 400));
}

#[test]
fn a_packet_that_is_cut_does_not_count_as_lost() {
    let mut board = marked();
    let (lost, marked_before, in_flight) = (board.lost(), board.marked(), board.in_flight());
    board.cut(start_of(3), 600, at(15));
    assert_eq!((board.lost(), board.marked(), board.in_flight()), (lost, marked_before, in_flight + 1));
    let all = packets(&board);
    assert_eq!(all[3..5], [(start_of(3), 600, false, false), (start_of(3) + 600, 400, false, false)]);
    // RACK finds the transmissions in the order of their times: packet 4, the repair of 2, and the pieces.
    let mut order = Vec::new();
    while let Some((position, record)) = board.oldest_transmission() {
        order.push(record.start);
        board.mark_lost(position);
    }
    assert_eq!(order, [start_of(4), start_of(2), start_of(3), start_of(3) + 600]);
}
