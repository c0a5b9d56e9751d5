//! When the receiving half acknowledges, and with which contents.

use super::{PACKET, at, ms, start_of};
use crate::connection::ReceiveBuffer;
use crate::receive_memory::ReceiveMemory;
use crate::subflow::{Receiver, timestamp};
use anabranch_segment::{Flags, Segment, Timestamps};
use anabranch_units::{Bytes, Duration, Instant};

/// A receiver and a clock in milliseconds; packets are named by their numbers.
struct Bed {
    receiver: Receiver,
    now: u64,
    rtt: Duration,
    variance: Duration,
    /// A second packet finds a window that is no smaller than the last one.
    keeps_window: bool,
}

const WINDOW: u64 = 65_535;

/// A buffer that autotuning can enlarge.
fn buffer(initial: u64) -> ReceiveMemory {
    ReceiveMemory::new(ReceiveBuffer { initial: Bytes(initial), max: Bytes(10 * WINDOW) }, PACKET)
}

impl Bed {
    fn new() -> Self {
        // Too small for packets to open the window.
        Bed::with(buffer(WINDOW / 2))
    }

    fn with(memory: ReceiveMemory) -> Self {
        let mut receiver = Receiver::new((memory, WINDOW));
        receiver.on_syn(&Segment::new(Flags::SYN));
        Bed { receiver, now: 1000, rtt: ms(100), variance: ms(200), keeps_window: true }
    }

    /// The application has read, and everything if it has `drained` the connection.
    fn reads(&mut self, drained: bool) {
        if self.receiver.acknowledges_when_read(drained) {
            self.receiver.acknowledge_now();
        }
    }

    fn drained(&mut self) {
        self.reads(true);
    }

    /// After the initial quick acknowledgments: all of them used up, the last a millisecond ago.
    fn settled() -> (Self, u64) {
        let mut bed = Bed::new();
        for packet in 0..16 {
            bed.arrives(packet);
            assert_eq!(bed.answer(), Some(vec![]), "packet {packet} is answered at once");
            bed.now += 1;
        }
        (bed, 16)
    }

    fn arrives(&mut self, packet: u64) {
        self.arrive_bytes(start_of(packet), start_of(packet + 1));
    }

    fn arrive_bytes(&mut self, start: u64, end: u64) {
        let len = (end - start) as u32;
        let opens = self.receiver.widen(len, PACKET, start <= self.receiver.next());
        self.receiver.adapt_delay(at(self.now), len, (self.rtt, self.variance), |_| WINDOW, opens);
        self.receiver.on_data(at(self.now), start, end, start - 1, self.rtt, WINDOW);
        while self.receiver.pop().is_some() {}
        if self.receiver.owes_for_second() && self.keeps_window {
            self.receiver.acknowledge_now();
        }
    }

    /// The SACK blocks of an acknowledgment, if one is sent now.
    fn answer(&mut self) -> Option<Vec<(u64, u64)>> {
        if !self.receiver.wants_ack(at(self.now)) {
            return None;
        }
        let mut blocks = Vec::new();
        self.receiver.on_ack_sent(at(self.now), 65_535, |start, end| {
            let number = |offset: u64| (offset - 1) / u64::from(PACKET);
            blocks.push((number(start), number(end)));
            true
        });
        Some(blocks)
    }

    fn deadline(&self) -> Option<u64> {
        let due = self.receiver.deadline();
        (due != Instant::FAR_FUTURE).then_some(due.as_nanos() / 1_000_000)
    }
}

#[test]
fn a_connection_begins_with_quick_acknowledgments() {
    let (mut bed, next) = Bed::settled();
    bed.arrives(next);
    assert_eq!(bed.answer(), None, "the seventeenth waits");
}

#[test]
fn every_second_full_packet_is_answered_and_a_single_one_after_40_ms() {
    let (mut bed, next) = Bed::settled();
    for pair in 0..5 {
        bed.arrives(next + 2 * pair);
        assert_eq!((bed.answer(), bed.deadline()), (None, Some(bed.now + 40)));
        bed.now += 1;
        bed.arrives(next + 2 * pair + 1);
        assert_eq!((bed.answer(), bed.deadline()), (Some(vec![]), None));
        bed.now += 1;
    }
    bed.arrives(next + 10);
    bed.now += 39;
    assert_eq!(bed.answer(), None);
    bed.now += 1;
    assert_eq!(bed.answer(), Some(vec![]));
}

#[test]
fn where_the_window_is_smaller_a_second_packet_is_answered_once_the_application_has_read() {
    let (mut bed, next) = Bed::settled();
    bed.keeps_window = false;
    bed.arrives(next);
    bed.reads(false);
    bed.arrives(next + 1);
    assert_eq!((bed.answer(), bed.deadline()), (None, Some(bed.now + 40)));
    bed.reads(false);
    assert_eq!(bed.answer(), Some(vec![]));
}

#[test]
fn who_answers_what_arrives_sends_no_quick_acknowledgments_until_an_answer_is_late() {
    let mut bed = Bed::new();
    bed.arrives(0);
    assert_eq!(bed.answer(), Some(vec![]));
    bed.now += 10;
    bed.receiver.on_answer(at(bed.now));
    bed.arrives(1);
    assert_eq!((bed.answer(), bed.deadline()), (None, Some(bed.now + 40)), "the next answer has it");
    bed.now += 40;
    assert_eq!(bed.answer(), Some(vec![]));
    bed.arrives(2);
    assert_eq!(bed.answer(), Some(vec![]), "quick again");
    bed.now += 41;
    bed.receiver.on_answer(at(bed.now));
    bed.arrives(3);
    assert_eq!(bed.answer(), Some(vec![]), "what is sent so late is no answer");
}

#[test]
fn who_answers_acknowledges_the_second_end_of_data_once_it_is_read() {
    let (mut bed, next) = Bed::settled();
    bed.receiver.on_answer(at(bed.now));
    let start = start_of(next);
    for part in 0..2 {
        bed.arrive_bytes(start + 100 * part, start + 100 * (part + 1));
        bed.receiver.note_push(true, 100);
        assert_eq!(bed.answer(), None);
        bed.drained();
        assert_eq!(bed.answer().is_some(), part == 1, "part {part}");
    }
}

#[test]
fn small_packets_are_answered_when_they_exceed_a_full_one() {
    let (mut bed, next) = Bed::settled();
    let start = start_of(next);
    for part in 0..4 {
        bed.arrive_bytes(start + 250 * part, start + 250 * (part + 1));
        assert_eq!(bed.answer(), None, "{} bytes are one packet", 250 * (part + 1));
    }
    bed.arrive_bytes(start + 1000, start + 1001);
    assert_eq!(bed.answer(), Some(vec![]));
}

#[test]
fn a_delay_that_was_waited_out_doubles_within_the_round_trip() {
    let (mut bed, mut next) = Bed::settled();
    // A packet every 90 ms: each is answered by the timer, which waits longer and longer.
    for delay in [40, 80, 90] {
        bed.arrives(next);
        assert_eq!(bed.deadline().map(|at| at - bed.now), Some(delay).filter(|d| *d < 90).or(Some(100)));
        next += 1;
        bed.now += delay.min(89);
        if delay < 90 {
            assert_eq!(bed.answer(), Some(vec![]));
            bed.now += 90 - delay;
        }
    }
}

#[test]
fn after_a_long_pause_answers_are_quick_again() {
    let (mut bed, next) = Bed::settled();
    bed.now += 301; // more than the timeout of 300 ms
    for packet in next..next + 16 {
        bed.arrives(packet);
        assert_eq!(bed.answer(), Some(vec![]));
        bed.now += 1;
    }
    bed.arrives(next + 16);
    assert_eq!(bed.answer(), None);
}

#[test]
fn a_pause_is_long_if_it_exceeds_the_timeout() {
    let (mut bed, next) = Bed::settled();
    bed.variance = ms(300);
    bed.now += 399;
    bed.arrives(next);
    assert_eq!(bed.answer(), None);
}

#[test]
fn segments_that_carry_our_data_use_up_no_quick_acknowledgment() {
    let mut bed = Bed::new();
    for _ in 0..40 {
        bed.receiver.on_ack_sent(at(bed.now), 65_535, |_, _| true);
    }
    for packet in 0..16 {
        bed.arrives(packet);
        assert_eq!(bed.answer(), Some(vec![]));
    }
}

#[test]
fn a_hole_is_reported_at_once_and_so_is_its_filling() {
    let (mut bed, next) = Bed::settled();
    bed.arrives(next + 1);
    assert_eq!(bed.answer(), Some(vec![(next + 1, next + 2)]));
    bed.arrives(next + 2);
    assert_eq!(bed.answer(), Some(vec![(next + 1, next + 3)]));
    bed.arrives(next);
    assert_eq!(bed.answer(), Some(vec![]));
    bed.arrives(next + 3);
    assert_eq!(bed.answer(), None, "back to every second one");
}

#[test]
fn the_latest_run_is_reported_first_and_runs_merge() {
    let (mut bed, next) = Bed::settled();
    let n = |k| next + k;
    bed.arrives(n(2));
    assert_eq!(bed.answer(), Some(vec![(n(2), n(3))]));
    bed.arrives(n(6));
    assert_eq!(bed.answer(), Some(vec![(n(6), n(7)), (n(2), n(3))]));
    bed.arrives(n(4));
    assert_eq!(bed.answer(), Some(vec![(n(4), n(5)), (n(6), n(7)), (n(2), n(3))]));
    // The fourth closes the gap between the two oldest.
    bed.arrives(n(3));
    bed.now += 1;
    assert_eq!(bed.answer(), Some(vec![(n(2), n(5)), (n(6), n(7))]));
    bed.arrives(n(0));
    bed.arrives(n(1));
    assert_eq!(bed.answer(), Some(vec![(n(6), n(7))]));
}

#[test]
fn while_a_hole_stays_open_answers_are_gathered_for_a_millisecond() {
    let (mut bed, next) = Bed::settled();
    for packet in 1..=3 {
        bed.arrives(next + packet);
        assert!(bed.answer().is_some(), "the sender needs three to know");
    }
    bed.arrives(next + 4);
    assert_eq!((bed.answer(), bed.deadline()), (None, Some(bed.now + 1)));
    bed.arrives(next + 5);
    assert_eq!(bed.answer(), None);
    bed.now += 1;
    assert_eq!(bed.answer(), Some(vec![(next + 1, next + 6)]));
    // Forty-four are the most that are gathered.
    for packet in 6..6 + 44 {
        bed.arrives(next + packet);
        assert_eq!(bed.answer(), None);
    }
    bed.arrives(next + 50);
    assert!(bed.answer().is_some());
    // The first hole closes, another one is open behind: again the sender needs three acknowledgments of it at once.
    bed.arrives(next + 52);
    bed.now += 1;
    bed.answer();
    bed.arrives(next);
    assert_eq!(bed.answer(), Some(vec![(next + 52, next + 53)]));
    for packet in 53..=55 {
        bed.arrives(next + packet);
        assert!(bed.answer().is_some());
    }
    bed.arrives(next + 56);
    assert_eq!(bed.answer(), None);
}

#[test]
fn gathering_takes_a_twentieth_of_a_short_round_trip() {
    let (mut bed, next) = Bed::settled();
    bed.rtt = ms(10);
    for packet in 1..=4 {
        bed.arrives(next + packet);
        bed.answer();
    }
    assert_eq!(bed.receiver.deadline().since(at(bed.now)), Duration::from_micros(500));
}

#[test]
fn what_arrives_twice_is_reported_once() {
    let (mut bed, next) = Bed::settled();
    bed.arrives(next);
    bed.arrives(next + 1);
    assert_eq!(bed.answer(), Some(vec![]));
    bed.arrives(next);
    assert_eq!(bed.answer(), Some(vec![(next, next + 1)]));
    bed.arrives(next + 2);
    assert_eq!(bed.answer(), Some(vec![]), "once; and quick again, for the sender may be in trouble");
}

#[test]
fn what_arrives_twice_ahead_of_a_hole_is_reported_with_the_run_that_holds_it() {
    let (mut bed, next) = Bed::settled();
    let n = |k| next + k;
    for packet in [1, 2, 3, 6] {
        bed.arrives(n(packet));
        bed.now += 1;
        bed.answer();
    }
    bed.arrives(n(2));
    assert_eq!(bed.answer(), Some(vec![(n(2), n(3)), (n(1), n(4)), (n(6), n(7))]));
    bed.arrives(n(7));
    bed.now += 1;
    assert_eq!(bed.answer(), Some(vec![(n(6), n(8)), (n(1), n(4))]));
}

#[test]
fn a_packet_of_which_a_part_is_known_shows_that_part() {
    let (mut bed, next) = Bed::settled();
    bed.arrive_bytes(start_of(next - 1), start_of(next + 1));
    bed.arrives(next + 1);
    bed.arrives(next + 2);
    assert_eq!(bed.answer(), Some(vec![(next - 1, next)]));
}

#[test]
fn the_timestamp_echoed_is_that_of_the_first_unanswered_packet() {
    let (mut bed, next) = Bed::settled();
    let arrives = |bed: &mut Bed, packet: u64, value: u32| {
        bed.receiver.note_timestamp(start_of(packet), Some(Timestamps { value, echo: 0 }));
        bed.arrives(packet);
        bed.receiver.timestamps(at(bed.now)).echo
    };
    assert_eq!(arrives(&mut bed, next, 500), 500);
    assert_eq!(arrives(&mut bed, next + 1, 510), 500, "the answer is delayed by the first");
    bed.answer();
    assert_eq!(arrives(&mut bed, next + 3, 520), 500, "ahead of a hole");
    bed.answer();
    assert_eq!(arrives(&mut bed, next + 2, 530), 530, "what fills the hole");
    bed.answer();
    assert_eq!(arrives(&mut bed, next + 2, 505), 530, "never an older one");
    assert_eq!({ bed.receiver.timestamps(at(7777)).value }, timestamp(at(7777)));
}

#[test]
fn the_receivers_round_trip_is_measured_once_per_echo() {
    let (mut bed, _) = Bed::settled();
    bed.receiver.measure(at(1100), 1050, PACKET);
    assert_eq!(bed.receiver.rtt(), ms(50));
    // Packets behind the first came later only because the sender's window or its link let them.
    bed.receiver.measure(at(1190), 1050, PACKET);
    assert_eq!(bed.receiver.rtt(), ms(50));
    bed.receiver.measure(at(1200), 1120, 10);
    assert_eq!(bed.receiver.rtt(), ms(50), "nor do small ones, which may have waited for data");
    bed.receiver.measure(at(1210), 1120, PACKET);
    assert_eq!(bed.receiver.rtt(), ms(50) - ms(50) / 8 + ms(90) / 8);
    bed.receiver.measure(at(1210), 9999, PACKET);
    assert_eq!(bed.receiver.rtt(), ms(50) - ms(50) / 8 + ms(90) / 8, "an echo of the future is none");
}

#[test]
fn an_end_counts_as_one_number_and_only_once() {
    let (mut bed, next) = Bed::settled();
    let end = start_of(next + 1);
    bed.receiver.on_fin(end);
    assert!(!bed.receiver.finished());
    assert_eq!(bed.answer(), Some(vec![(next + 1, next + 1)]), "a run of one number");
    bed.arrives(next);
    assert!(bed.receiver.finished());
    bed.arrives(next);
    assert_eq!(bed.answer(), Some(vec![(next, next + 1)]), "which is no run any more");
    assert_eq!(bed.receiver.next(), end + 1);
    // The same again, and one that claims to be behind.
    bed.receiver.on_fin(end);
    bed.receiver.on_fin(end + 1);
    assert_eq!(bed.receiver.next(), end + 1);
}

#[test]
fn a_flood_of_crumbs_is_not_kept() {
    let mut bed = Bed::new();
    let most = crate::subflow::max_pieces(WINDOW) as u64;
    for crumb in 0..4 * most {
        let start = 10 + 2 * crumb;
        bed.receiver.on_data(at(bed.now), start, start + 1, start - 1, bed.rtt, WINDOW);
    }
    assert_eq!(bed.receiver.ahead(), most, "one byte each");
    // What is in order is always taken.
    assert!(bed.receiver.on_data(at(bed.now), 1, 9, 0, bed.rtt, WINDOW));
}

#[test]
fn a_push_is_answered_once_the_application_has_read_everything() {
    let (mut bed, next) = Bed::settled();
    bed.arrives(next);
    bed.drained();
    assert_eq!(bed.answer(), None, "no push");
    bed.receiver.note_push(true, PACKET);
    assert_eq!(bed.answer(), None, "it was not read yet");
    bed.drained();
    assert!(bed.answer().is_some());
    bed.arrives(next + 1);
    bed.drained();
    assert_eq!(bed.answer(), None, "the push was answered");
}

#[test]
fn packets_that_open_the_window_use_up_no_quick_acknowledgment() {
    let mut bed = Bed::with(buffer(WINDOW + 12 * u64::from(PACKET)));
    let quick = (0..100).take_while(|packet| {
        bed.arrives(*packet);
        bed.answer().is_some()
    });
    // Observed on a kernel: six packets opened its window, and it answered twenty-two at once.
    assert_eq!(quick.count(), 22);
}

#[test]
fn while_the_window_opens_every_packet_is_answered() {
    let (mut bed, next) = Bed::settled();
    // Room for one packet beyond the window, and for the packet itself.
    bed.receiver.grow(19_700);
    bed.arrives(next);
    assert!(bed.answer().is_some());
    bed.arrives(next + 1);
    assert_eq!(bed.answer(), None);
}

/// A receiver whose window has opened to `opened` bytes of a buffer for `payload` bytes, after a packet of `len`.
fn opened_to(opened: u64, payload: u64, len: u32) -> Receiver {
    let mut memory = buffer(payload);
    memory.set_share(ReceiveMemory::share_of(len));
    let mut receiver = Receiver::new((memory, opened));
    receiver.adapt_delay(at(1000), len, (ms(100), ms(200)), |_| WINDOW, false);
    receiver
}

#[test]
fn a_packet_out_of_order_opens_the_window_before_it_takes_memory() {
    // The window has all of the buffer but 500 bytes: less than the packet takes.
    let mut receiver = opened_to(WINDOW - 500, WINDOW, PACKET);
    let opens = [true, true, false, false].map(|in_order| receiver.widen(PACKET, PACKET, in_order));
    assert_eq!(opens, [false, false, true, false]);
    assert_eq!(receiver.own_window().opened, WINDOW);
}

#[test]
fn a_short_packet_opens_a_narrow_window_by_two_of_the_largest_that_arrived() {
    const LARGEST: u32 = 1_420;
    // 200 bytes take 1,280 of memory, in which there should be 785 of payload: less than four times as many.
    let most = ReceiveMemory::share_of(LARGEST) * 2 * 10 * WINDOW / 256;
    let opened = |from: u64, len: u32| {
        let mut receiver = opened_to(from, 5 * WINDOW, LARGEST);
        receiver.widen(len, LARGEST + 28, true);
        receiver.own_window().opened - from
    };
    assert_eq!([most / 4, most / 4 + 1].map(|from| opened(from, 200)), [2 * u64::from(LARGEST), 0]);
    assert_eq!(opened(most / 4, 127), 0, "too short");
    assert_eq!(opened(most / 4, LARGEST), 2 * u64::from(LARGEST + 28), "a full one: two of the largest possible");
}
