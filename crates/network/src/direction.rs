//! One direction of a link: a queue, a server, and propagating packets.
//!
//! Evaluation is lazy: internal events are processed at the next call, in the order and with the times at which they
//! happen, so that the host needs one event per packet, its arrival. Every call first processes the events that were
//! due before its time. Therefore results do not depend on how often, or when, the host calls (a property test
//! compares).

use crate::config::{Change, DelayConfig, DirectionConfig};
use crate::draws::Streams;
use crate::effects::{Effects, Fate};
use crate::queue::{Backlog, Departure, Queue, QueuedPacket};
use crate::ring::Ring;
use crate::server::Server;
use crate::stats::{Count, Imbalance, Stats};
use anabranch_events::{DropCause, LinkEvent, Log};
use anabranch_units::{Bandwidth, Duration, Instant};

/// A packet that a link can carry.
pub trait Packet {
    /// Bytes at the network layer, IP header included. It never changes while a link holds the packet.
    fn bytes(&self) -> u32;

    /// A copy, for links that duplicate packets.
    fn duplicate(&self) -> Self;
}

/// A packet that the server of a direction has sent, or that was dropped.
#[derive(Clone, Debug)]
pub struct Departed<P> {
    /// The packet, or a copy of it.
    pub packet: P,
    /// When its transmission began; none if it was dropped before.
    pub began: Option<Instant>,
    /// When its last bit was sent, or when it was dropped.
    pub at: Instant,
    /// Why it was dropped; none if it propagates.
    pub dropped: Option<DropCause>,
}

/// The packet in service: the first that does not propagate.
#[derive(Clone, Copy, Debug)]
struct Service {
    /// When its first bit is sent.
    began: Instant,
    /// When its last bit is sent.
    finish: Instant,
    /// When it arrives; `None` if it is lost.
    arrival: Instant,
    fate: Fate,
}

/// One direction of a link. The times passed to its methods must never decrease.
pub struct Direction<P> {
    mtu: u32,
    reports_too_big: bool,
    overhead: u32,
    up: bool,
    queue: Box<dyn Queue>,
    /// Number of earlier queues; each has its own random stream.
    queue_changes: u32,
    packets: Ring<P>,
    /// Size of the waiting packets, without the one in service.
    backlog: Backlog,
    server: Server,
    /// The long-run mean of the configured rate, for queues that need it.
    mean_rate: Bandwidth,
    in_service: Option<Service>,
    effects: Effects,
    delay: DelayConfig,
    /// Start of the current delay, for recorded delays.
    delay_since: Instant,
    /// The shortest time that a packet can take after the server.
    least_delay: Duration,
    /// Arrival of the last packet that keeps the order.
    last_arrival: Instant,
    /// See [`poll_timeout`](Self::poll_timeout); [`Instant::FAR_FUTURE`] for none.
    next_delivery: Instant,
    streams: Streams,
    stats: Stats,
    log: Log<LinkEvent>,
    /// Only where a host asks for them.
    departures: Option<Vec<Departed<P>>>,
    /// The packets of the drops in the log, in their order; only where a host asks for them.
    dropped: Option<Vec<P>>,
}

impl<P: Packet> Direction<P> {
    /// A direction in its initial state, idle. Random effects draw from `streams`.
    ///
    /// The configuration should have passed [`DirectionConfig::validate`]; otherwise packets may all be dropped or wait
    /// for ever.
    pub fn new(config: &DirectionConfig, streams: Streams) -> Self {
        let mean_rate = config.rate.mean();
        let queue = config.queue.build(config.mtu, mean_rate, streams.stream("queue/0"));
        let effects = Effects::new(config, &streams);
        let mut direction = Direction {
            mtu: config.mtu,
            reports_too_big: config.reports_too_big,
            overhead: config.overhead,
            up: config.up,
            queue,
            queue_changes: 0,
            packets: Ring::new(),
            backlog: Backlog::default(),
            server: Server::new(&config.rate, &streams, Instant::ZERO),
            mean_rate,
            in_service: None,
            effects,
            delay: config.delay.clone(),
            delay_since: Instant::ZERO,
            least_delay: Duration::ZERO,
            last_arrival: Instant::ZERO,
            next_delivery: Instant::FAR_FUTURE,
            streams,
            stats: Stats::default(),
            log: Log::default(),
            departures: None,
            dropped: None,
        };
        direction.note_least_delay();
        direction
    }

    /// Sends a packet into the link. Inlined, so that the packet is built where the link keeps it.
    #[inline(always)]
    pub fn send(&mut self, now: Instant, packet: P) {
        self.advance(now);
        let bytes = packet.bytes();
        self.stats.sent.add(bytes);
        if let Some(cause) = self.refusal(now, bytes) {
            count_drop(&mut self.stats, &mut self.log, now, cause, bytes);
            return self.note_refused(now, cause, packet);
        }
        self.backlog.add(bytes);
        self.packets.enter(now, packet);
        if self.in_service.is_none() {
            self.begin_next(now);
            self.plan_delivery();
        }
    }

    /// When to call [`poll_delivery`](Self::poll_delivery): never later than the next delivery. It is the time of the
    /// next delivery unless the packet in service will be lost or packets may overtake each other. `None` if nothing
    /// arrives without a further call.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        (self.next_delivery != Instant::FAR_FUTURE).then_some(self.next_delivery)
    }

    /// The time of [`poll_timeout`](Self::poll_timeout); [`Instant::FAR_FUTURE`] for none.
    #[inline]
    pub fn next_delivery(&self) -> Instant {
        self.next_delivery
    }

    /// The next packet that has arrived at the far end by now, which stays inside.
    #[inline]
    pub fn peek_delivery(&mut self, now: Instant) -> Option<&P> {
        self.advance(now);
        self.packets.peek(now)
    }

    /// The packet that [`peek_delivery`](Self::peek_delivery) returned.
    #[inline]
    pub fn arrived(&self) -> Option<&P> {
        self.packets.first()
    }

    /// Removes the packet that [`peek_delivery`](Self::peek_delivery) returned; there must be one.
    #[inline]
    pub fn remove_delivery(&mut self) {
        if let Some(packet) = self.packets.pop() {
            self.stats.delivered.add(packet.bytes());
        }
        self.plan_delivery();
    }

    /// The next packet that has arrived at the far end by now. Call until it returns `None`.
    #[inline]
    pub fn poll_delivery(&mut self, now: Instant) -> Option<P> {
        self.peek_delivery(now)?;
        let packet = self.packets.pop()?;
        self.plan_delivery();
        self.stats.delivered.add(packet.bytes());
        Some(packet)
    }

    /// Processes all events until `now`, so that the counters and the log are up to date.
    #[inline]
    pub fn advance(&mut self, now: Instant) {
        if self.in_service.as_ref().is_some_and(|service| service.finish <= now) {
            self.finish_services(now);
        }
    }

    /// Changes a parameter at `now`.
    pub fn change(&mut self, now: Instant, change: Change) {
        self.advance(now);
        let key = change.key();
        match change {
            Change::Rate(rate) => {
                self.mean_rate = rate.mean();
                self.queue.rate_changed(self.mean_rate);
                let finish = self.server.change(&rate, &self.streams, now, self.in_service.is_some());
                if let (Some(finish), Some(service)) = (finish, &mut self.in_service) {
                    service.finish = finish;
                }
            }
            Change::Delay(delay) => {
                self.delay = delay;
                self.delay_since = now;
            }
            Change::Queue(config) => {
                self.queue_changes += 1;
                let rng = self.streams.stream(&format!("queue/{}", self.queue_changes));
                self.queue = config.build(self.mtu, self.mean_rate, rng);
            }
            Change::Jitter(jitter) => self.effects.change_jitter(jitter),
            Change::Reordering(reordering) => self.effects.change_reordering(reordering),
            Change::Duplication(probability) => self.effects.change_duplication(probability),
            Change::Loss(loss) => self.effects.change_loss(&loss),
            Change::Mtu(mtu) => self.mtu = mtu,
            Change::ReportsTooBig(reports) => self.reports_too_big = reports,
            Change::Overhead(overhead) => self.overhead = overhead,
            Change::Up(up) => self.switch(now, up),
        }
        if let Some(what) = key {
            let rate = (what == "rate").then_some(self.mean_rate);
            self.log.emit(now, LinkEvent::Changed { what, rate });
        }
        self.note_least_delay();
        if let Some(service) = self.in_service {
            self.in_service = Some(Service { arrival: self.arrival(service.finish, service.fate), ..service });
        }
        self.plan_delivery();
    }

    /// [`Stats::check_conservation`] with what is inside.
    ///
    /// # Errors
    /// Those of [`Stats::check_conservation`].
    pub fn check_conservation(&self) -> Result<(), Imbalance> {
        self.stats.check_conservation(self.inside())
    }

    /// Counters as of the last call with a time.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Drops and changes between up and down, with their times. The host drains it.
    pub fn log(&mut self) -> &mut Log<LinkEvent> {
        &mut self.log
    }

    /// From here on, [`Direction::drain_drops`] has the packets.
    pub fn keep_dropped(&mut self) {
        self.dropped.get_or_insert_default();
    }

    /// The events of [`Direction::log`], each drop with its packet where they are [kept](Self::keep_dropped).
    pub fn drain_drops(&mut self) -> impl Iterator<Item = (Instant, LinkEvent, Option<P>)> + '_ {
        let mut dropped = self.dropped.iter_mut().flat_map(|dropped| dropped.drain(..));
        self.log.drain().map(move |(at, event)| {
            let packet = if let LinkEvent::Dropped { .. } = event { dropped.next() } else { None };
            (at, event, packet)
        })
    }

    /// From here on, [`Direction::drain_departures`] has every packet that is sent or dropped.
    pub fn observe_departures(&mut self) {
        self.departures.get_or_insert_default();
    }

    /// The packets that were sent or dropped since the last call, in the order in which that happened; none unless they
    /// are [observed](Self::observe_departures). Call [`advance`](Self::advance) before.
    pub fn drain_departures(&mut self) -> impl Iterator<Item = Departed<P>> + '_ {
        self.departures.iter_mut().flat_map(|departures| departures.drain(..))
    }

    /// Since when the present packet is being sent; none if the server is idle.
    pub fn serving_since(&self) -> Option<Instant> {
        self.in_service.map(|service| service.began)
    }

    /// The largest packet that may enter.
    #[inline]
    pub fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Whether the sender of a larger one is to be notified.
    pub fn reports_too_big(&self) -> bool {
        self.reports_too_big
    }

    /// Whether the link is up.
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// Bits that the rate allows between two times without a change between them, used or not: nothing while the link
    /// is cut, infinity without a limit. The link's overhead counts. Of a link that carries nothing; its recordings
    /// wait for no packet.
    pub fn capacity_bits(&self, from: Instant, to: Instant) -> f64 {
        if self.up { self.server.capacity_bits(from, to) } else { 0.0 }
    }

    /// The long-run mean of the rate.
    pub fn mean_rate(&self) -> Bandwidth {
        self.mean_rate
    }

    /// Size of the waiting packets, without the one in service.
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Number of packets inside: waiting, in service and propagating. Counted at each call, for checks of conservation.
    pub fn inside(&self) -> Count {
        let mut count = Count::default();
        self.packets.iter().for_each(|packet| count.add(packet.bytes()));
        count
    }

    /// Why a packet may not enter; `None` if it may.
    #[inline]
    fn refusal(&mut self, now: Instant, bytes: u32) -> Option<DropCause> {
        if bytes > self.mtu {
            Some(DropCause::TooBig)
        } else if !self.up {
            Some(DropCause::Outage)
        } else if self.effects.lost_at_entry(now) {
            Some(DropCause::Random)
        } else if !self.queue.admit(now, self.backlog, bytes) {
            Some(DropCause::Queue)
        } else {
            None
        }
    }

    /// The server is free: takes the first packet that the queue lets pass.
    #[inline]
    fn begin_next(&mut self, now: Instant) {
        self.in_service = None;
        while let Some((head, entered)) = self.packets.head() {
            let packet = QueuedPacket { entered, bytes: head.bytes() };
            self.backlog.remove(packet.bytes);
            match self.queue.depart(now, packet, self.backlog) {
                Departure::Send => return self.begin_service(now, packet),
                Departure::Drop => self.drop_head(None, now, DropCause::Queue),
            }
        }
        self.queue.emptied(now);
    }

    #[inline]
    fn begin_service(&mut self, now: Instant, packet: QueuedPacket) {
        self.stats.queue_delay.record(now.since(packet.entered));
        let finish = self.server.begin(now, u64::from(packet.bytes) + u64::from(self.overhead));
        let fate = self.effects.draw(now);
        self.in_service = Some(Service { began: now, finish, arrival: self.arrival(finish, fate), fate });
    }

    /// When a packet arrives whose last bit leaves the server at `finish`, with these random draws.
    #[inline]
    fn arrival(&self, finish: Instant, fate: Fate) -> Instant {
        if finish == Instant::FAR_FUTURE {
            return Instant::FAR_FUTURE;
        }
        let delay = match &self.delay {
            DelayConfig::Constant(delay) => *delay,
            DelayConfig::Table(steps) => steps.value_at(finish.since(self.delay_since)),
        };
        let arrival = finish + Duration::from_nanos(delay.as_nanos().saturating_add_signed(fate.wander));
        if fate.unordered { arrival } else { arrival.max(self.last_arrival) }
    }

    /// Every packet whose service ends until `now` leaves the server, and the next one follows it.
    fn finish_services(&mut self, now: Instant) {
        while let Some(service) = self.in_service
            && service.finish <= now
        {
            if service.fate.lost {
                // It was sent.
                self.drop_head(Some(service.began), service.finish, DropCause::Random);
            } else {
                self.propagate(service);
            }
            self.begin_next(service.finish);
        }
        self.plan_delivery();
    }

    /// Drops the first packet that does not propagate.
    #[cold]
    fn drop_head(&mut self, began: Option<Instant>, now: Instant, cause: DropCause) {
        if self.departures.is_some() {
            self.note_departure(began, now, Some(cause));
        }
        if let Some((packet, _)) = self.packets.head() {
            count_drop(&mut self.stats, &mut self.log, now, cause, packet.bytes());
            if let Some(dropped) = &mut self.dropped {
                dropped.push(packet.duplicate());
            }
        }
        self.packets.remove_head();
    }

    #[inline]
    fn propagate(&mut self, Service { began, finish, arrival, fate }: Service) {
        if self.departures.is_some() {
            self.note_departure(Some(began), finish, None);
        }
        if fate.duplicated {
            self.propagate_twice(arrival);
        } else {
            self.packets.propagate(arrival);
        }
        if !fate.unordered {
            self.last_arrival = arrival;
        }
    }

    #[cold]
    fn propagate_twice(&mut self, arrival: Instant) {
        let copy = self.packets.head().map(|(packet, _)| packet.duplicate());
        self.packets.propagate(arrival);
        if let Some(copy) = copy {
            self.stats.duplicated.add(copy.bytes());
            self.packets.propagate_copy(arrival, copy);
        }
    }

    /// Notes the time of the next delivery, after any change of what propagates or is in service.
    #[inline]
    fn plan_delivery(&mut self) {
        let served = match &self.in_service {
            None => Instant::FAR_FUTURE,
            // The next delivery may be of a later packet.
            Some(service) if service.fate.lost => service.finish + self.least_delay,
            Some(service) if service.fate.unordered || self.effects.may_reorder() => {
                service.arrival.min(service.finish + self.least_delay)
            }
            Some(service) => service.arrival,
        };
        self.next_delivery = self.packets.next_arrival().min(served);
    }

    fn switch(&mut self, now: Instant, up: bool) {
        if up == self.up {
            return;
        }
        self.up = up;
        self.log.emit(now, LinkEvent::Switched { up });
        if up {
            return;
        }
        let mut began = self.in_service.take().map(|service| service.began);
        if began.is_some() {
            self.server.interrupt(now);
        }
        for packet in self.packets.remove_waiting() {
            let cause = DropCause::Outage;
            count_drop(&mut self.stats, &mut self.log, now, cause, packet.bytes());
            if let Some(dropped) = &mut self.dropped {
                dropped.push(packet.duplicate());
            }
            if let Some(departures) = &mut self.departures {
                departures.push(Departed { packet, began: began.take(), at: now, dropped: Some(cause) });
            }
        }
        self.backlog = Backlog::default();
        self.queue.emptied(now);
    }

    /// A packet was dropped that never entered.
    #[cold]
    fn note_refused(&mut self, at: Instant, cause: DropCause, packet: P) {
        if let Some(dropped) = &mut self.dropped {
            dropped.push(packet.duplicate());
        }
        if let Some(departures) = &mut self.departures {
            departures.push(Departed { packet, began: None, at, dropped: Some(cause) });
        }
    }

    /// The first packet that does not propagate was sent or dropped.
    #[cold]
    fn note_departure(&mut self, began: Option<Instant>, at: Instant, dropped: Option<DropCause>) {
        if let (Some(departures), Some((packet, _))) = (&mut self.departures, self.packets.head()) {
            departures.push(Departed { packet: packet.duplicate(), began, at, dropped });
        }
    }

    fn note_least_delay(&mut self) {
        self.least_delay = self.delay.shortest() - self.effects.reach_below();
    }
}

/// Counts a packet that was dropped, and emits the event.
#[cold]
fn count_drop(stats: &mut Stats, log: &mut Log<LinkEvent>, now: Instant, cause: DropCause, bytes: u32) {
    stats.count_drop(cause, bytes);
    log.emit(now, LinkEvent::Dropped { cause, bytes });
}
