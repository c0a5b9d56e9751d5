//! A host for tests: it drives one direction through a script and records the results.
#![allow(dead_code)] // Every test file uses another part of it.

use anabranch_events::{DropCause, LinkEvent};
use anabranch_network::{Change, Direction, DirectionConfig, Packet, Probability, Streams};
use anabranch_units::{Duration, Instant};
use std::collections::BTreeMap;

/// A numbered packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    pub number: u32,
    pub bytes: u32,
}

impl Packet for Numbered {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn duplicate(&self) -> Self {
        self.clone()
    }
}

/// An action of a host on a link.
#[derive(Clone, Debug)]
pub enum Step {
    /// Sends a packet of this size.
    Send(u32),
    Change(Change),
    /// Polls for deliveries before the link's timeout.
    Look,
}

/// Results that a host observed.
#[derive(Debug, PartialEq)]
pub struct Seen {
    /// Arrival times and packets.
    pub arrivals: Vec<(Instant, u32)>,
    pub log: Vec<(Instant, LinkEvent)>,
    /// Sent, duplicated, delivered, dropped.
    pub packets: [u64; 4],
    /// Number, mean and largest of the queue delays.
    pub queue_delay: (u64, Option<Duration>, Duration),
}

impl Seen {
    pub fn order(&self) -> Vec<u32> {
        self.arrivals.iter().map(|(_, number)| *number).collect()
    }

    pub fn drops(&self, cause: DropCause) -> usize {
        let wanted = |event: &LinkEvent| matches!(event, LinkEvent::Dropped { cause: c, .. } if *c == cause);
        self.log.iter().filter(|(_, event)| wanted(event)).count()
    }
}

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub fn at(n: u64) -> Instant {
    Instant::ZERO + ms(n)
}

pub fn probability(p: f64) -> Probability {
    Probability::new(p).unwrap()
}

/// A link with the host that drives it.
pub struct Bench {
    pub link: Direction<Numbered>,
    sent: u32,
    arrivals: Vec<(Instant, u32)>,
    log: Vec<(Instant, LinkEvent)>,
    /// Packets and bytes of the drop events, by cause.
    dropped: BTreeMap<String, (u64, u64)>,
}

impl Bench {
    pub fn new(config: &DirectionConfig) -> Self {
        Self::seeded(config, 1)
    }

    pub fn seeded(config: &DirectionConfig, seed: u64) -> Self {
        config.validate().unwrap();
        let link = Direction::new(config, Streams::new(seed, "link/test/down"));
        Bench { link, sent: 0, arrivals: Vec::new(), log: Vec::new(), dropped: BTreeMap::new() }
    }

    /// Takes every delivery at the link's timeout, up to `until`.
    pub fn run_until(&mut self, until: Instant) -> &mut Self {
        while let Some(next) = self.link.poll_timeout().filter(|next| *next <= until) {
            self.look(next);
            let later = self.link.poll_timeout();
            assert!(later.is_none_or(|later| later > next), "no progress: {later:?} is the timeout at {next}");
        }
        self
    }

    /// Polls for deliveries now.
    pub fn look(&mut self, now: Instant) -> &mut Self {
        while let Some(packet) = self.link.poll_delivery(now) {
            self.arrivals.push((now, packet.number));
        }
        self.note_log();
        self
    }

    /// Records the link's events, and checks that its counters agree.
    fn note_log(&mut self) {
        for (time, event) in self.link.log().drain() {
            if let LinkEvent::Dropped { cause, bytes } = event {
                let count = self.dropped.entry(format!("{cause:?}")).or_default();
                *count = (count.0 + 1, count.1 + u64::from(bytes));
            }
            self.log.push((time, event));
        }
        for cause in [DropCause::Queue, DropCause::Random, DropCause::Outage, DropCause::TooBig] {
            let counted = self.link.stats().dropped(cause);
            let dropped = self.dropped.get(&format!("{cause:?}")).copied().unwrap_or_default();
            assert_eq!((counted.packets, counted.bytes), dropped, "{cause:?}");
        }
    }

    pub fn send(&mut self, now: Instant, bytes: u32) -> &mut Self {
        self.run_until(now);
        self.link.send(now, Numbered { number: self.sent, bytes });
        self.sent += 1;
        self
    }

    pub fn change(&mut self, now: Instant, change: Change) -> &mut Self {
        self.run_until(now);
        self.link.change(now, change);
        self
    }

    pub fn step(&mut self, now: Instant, step: &Step) {
        match step {
            Step::Send(bytes) => {
                self.send(now, *bytes);
            }
            Step::Change(change) => {
                self.change(now, change.clone());
            }
            Step::Look => {
                let due = self.run_until(now).arrivals.len();
                assert_eq!(self.look(now).arrivals.len(), due, "something arrived before its timeout");
            }
        }
    }

    /// Like [`Bench::step`], but without taking a delivery before.
    pub fn step_blindly(&mut self, now: Instant, step: &Step) {
        match step {
            Step::Send(bytes) => {
                self.link.send(now, Numbered { number: self.sent, bytes: *bytes });
                self.sent += 1;
            }
            Step::Change(change) => self.link.change(now, change.clone()),
            Step::Look => {}
        }
    }

    /// Checks that every packet is accounted for: in packets and in bytes.
    pub fn assert_conserved(&self) {
        let (stats, inside) = (self.link.stats(), self.link.inside());
        let (sent, copies, out) = (stats.sent, stats.duplicated, stats.delivered);
        let dropped = stats.dropped_in_total();
        assert_eq!(sent.packets + copies.packets, out.packets + dropped.packets + inside.packets);
        assert_eq!(sent.bytes + copies.bytes, out.bytes + dropped.bytes + inside.bytes);
    }

    /// The results so far.
    pub fn seen(&mut self) -> Seen {
        self.note_log();
        let stats = self.link.stats();
        let counts = [stats.sent, stats.duplicated, stats.delivered, stats.dropped_in_total()];
        let delay = &stats.queue_delay;
        Seen {
            arrivals: std::mem::take(&mut self.arrivals),
            log: std::mem::take(&mut self.log),
            packets: counts.map(|count| count.packets),
            queue_delay: (delay.count(), delay.mean(), delay.max()),
        }
    }

    /// Arrivals in milliseconds, which must be whole.
    pub fn arrivals_ms(&mut self) -> Vec<(u64, u32)> {
        let whole = |(time, number): (Instant, u32)| {
            assert_eq!(time.as_nanos() % 1_000_000, 0, "packet {number} arrived at {time}");
            (time.as_nanos() / 1_000_000, number)
        };
        self.seen().arrivals.into_iter().map(whole).collect()
    }
}
