//! Dialogues with one half of a subflow at a time, with times and windows worked out by hand; and the scoreboard
//! against an obvious model.

mod delivery_rate;
mod plain;
mod queue;
mod receiver;
mod repair;
mod scoreboard;
mod sender;
mod timers;

use super::{AckOutcome, Acknowledgment, Opening, Origin, State, Subflow, timestamp};
use crate::congestion::{self, Siblings};
use crate::connection::{PathConfig, ReceiveBuffer};
use crate::options::Options;
use crate::receive_memory::ReceiveMemory;
use crate::view::{Packets, SubflowView};
use anabranch_events::SendKind;
use anabranch_units::{Duration, Instant, PathId, SeqNumber, SubflowId};

/// Every packet of these tests carries this much.
const PACKET: u32 = 1000;
/// The round trip of the handshake.
const RTT: u64 = 100;
/// A retransmission timeout after samples that all were [`RTT`].
const RTO: u64 = RTT + 200;
/// Added to the timers of RACK and of probes.
const ALLOWANCE: u64 = 6;
/// When a probe is sent for packets that left at 1000, if nothing answers.
const PROBE_AT: u64 = 1000 + 2 * RTT + ALLOWANCE;
/// When their timeout fires after that probe.
const TIMEOUT_AT: u64 = PROBE_AT + RTO;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn at(n: u64) -> Instant {
    Instant::ZERO + ms(n)
}

/// The offset at which packet `n` begins.
fn start_of(n: u64) -> u64 {
    1 + n * u64::from(PACKET)
}

/// An established subflow under NewReno, and a clock in milliseconds. Packets are named by their numbers, from zero.
struct Bed {
    subflow: Subflow,
    now: u64,
    /// Whether acknowledgments echo timestamps.
    clock: bool,
}

/// The optional parts of an acknowledgment.
#[derive(Clone, Copy, Default)]
struct Say<'a> {
    /// Ranges of packets that arrived ahead.
    ahead: &'a [(u64, u64)],
    /// A packet that arrived twice.
    twice: Option<u64>,
    /// When the segment was sent that the acknowledgment answers.
    echo: Option<u64>,
}

impl Bed {
    /// With a window of `packets`, at time 1000.
    fn new(packets: u32) -> Self {
        Bed::under("newreno", packets)
    }

    /// The same under another congestion control.
    fn under(control: &str, packets: u32) -> Self {
        let now = 1000;
        let path = PathConfig {
            id: PathId(0),
            local: [10, 0, 0, 1].into(),
            remote: [10, 0, 0, 2].into(),
            mtu: 1500,
            backup: false,
            metered: false,
        };
        let origin = Origin {
            id: SubflowId(0),
            path,
            ports: (1, 2),
            address_id: 0,
            state: State::Established,
            opening: Opening::Initial,
            isn: SeqNumber(0),
            receive_buffer: (ReceiveMemory::new(ReceiveBuffer::default(), PACKET), 65_535),
            memory: crate::subflow::SendMemory::new(320, 4 << 20, 2),
        };
        let control = congestion::REGISTRY.find(control).unwrap().create;
        let mut subflow = Subflow::new(at(now - RTT), &origin, control(&Options::default(), 0).unwrap(), packets);
        subflow.handshake.tries = 1;
        subflow.on_numbers_agreed(at(now), None);
        Bed { subflow, now, clock: true }
    }

    fn views(&self) -> [SubflowView; 1] {
        [self.subflow.view(PACKET)]
    }

    fn wait_until(&mut self, now: u64) -> &mut Self {
        assert!(now >= self.now);
        self.now = now;
        self
    }

    /// Sends `n` packets of new data back to back; more data is waiting.
    fn send(&mut self, n: u32) -> &mut Self {
        self.send_with_rest(n, true)
    }

    fn send_with_rest(&mut self, n: u32, more: bool) -> &mut Self {
        let now = at(self.now);
        for _ in 0..n {
            let sender = &mut self.subflow.sender;
            sender.before_sending(now);
            sender.on_sent(now, sender.next() - 1, PACKET, false);
        }
        self.subflow.sender.note_supply(more);
        self.subflow.sender.after_sending(now, true);
        self
    }

    /// As many packets of new data as the window has room for.
    fn send_what_fits(&mut self) -> u32 {
        let mut sent = 0;
        while self.subflow.sender.has_room() {
            self.send(1);
            sent += 1;
        }
        sent
    }

    /// The packets that the sender wants to retransmit now.
    fn retransmit(&mut self) -> Vec<(u64, SendKind)> {
        let now = at(self.now);
        let mut retransmitted = Vec::new();
        while let Some((position, record, kind)) = self.subflow.sender.next_retransmission() {
            retransmitted.push(((record.start - 1) / u64::from(PACKET), kind));
            self.subflow.sender.on_retransmitted(now, position, record.len);
        }
        retransmitted
    }

    /// The packets retransmitted, none of which is a probe.
    fn repairs(&mut self) -> Vec<u64> {
        let repair = |(packet, kind)| {
            assert_eq!(kind, SendKind::Retransmission);
            packet
        };
        self.retransmit().into_iter().map(repair).collect()
    }

    /// An acknowledgment of everything before packet `next`.
    fn ack(&mut self, next: u64) -> AckOutcome {
        self.ack_saying(next, Say::default())
    }

    /// An acknowledgment with the ranges of packets that arrived ahead.
    fn sack(&mut self, next: u64, ahead: &[(u64, u64)]) -> AckOutcome {
        self.ack_saying(next, Say { ahead, ..Say::default() })
    }

    fn ack_saying(&mut self, next: u64, say: Say<'_>) -> AckOutcome {
        let blocks: Vec<_> = say.ahead.iter().map(|&(first, end)| (start_of(first), start_of(end))).collect();
        let echo = say.echo.filter(|_| self.clock).map(|sent| timestamp(at(sent)));
        let acknowledgment = Acknowledgment {
            acked: start_of(next),
            blocks: &blocks,
            duplicate: say.twice.map(|packet| (start_of(packet), start_of(packet + 1))),
            echo,
            more_than_ack: false,
        };
        let views = self.views();
        self.subflow.sender.on_ack(at(self.now), &acknowledgment, Siblings::new(&views, 0))
    }

    /// The sender's next timeout.
    fn deadline(&self) -> Option<u64> {
        self.subflow.sender.deadline().map(|at| at.since(Instant::ZERO).as_millis())
    }

    /// Waits for the deadline, which must be `expected`, and lets the timer fire.
    fn fire_at(&mut self, expected: u64) -> AckOutcome {
        assert_eq!(self.deadline(), Some(expected));
        self.now = expected;
        let views = self.views();
        self.subflow.sender.on_timer(at(expected), Siblings::new(&views, 0)).1
    }

    fn cwnd(&self) -> u32 {
        self.subflow.sender.window().cwnd.floor()
    }

    /// The threshold; `None` before the first loss.
    fn ssthresh(&self) -> Option<u32> {
        let ssthresh = self.subflow.sender.window().ssthresh;
        (ssthresh != Packets::INFINITE).then(|| ssthresh.floor())
    }

    fn in_flight(&self) -> u32 {
        self.subflow.sender.board().in_flight()
    }

    fn set_window(&mut self, cwnd: u32, ssthresh: u32) {
        self.subflow.sender.window.cwnd = Packets::whole(cwnd);
        self.subflow.sender.window.ssthresh = Packets::whole(ssthresh);
    }
}
