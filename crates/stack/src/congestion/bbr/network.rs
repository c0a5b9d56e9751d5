//! A sender and a link of the tests of BBR.

use super::super::testing::{MSS, ack, at, view};
use crate::congestion::{Ack, CongestionControl, LossCause, RateSample, Siblings, Window};
use crate::view::SubflowView;
use anabranch_units::Duration;
use std::collections::VecDeque;
use std::iter;

/// A sender that always has data, paced and limited by the window, on a link with a rate, a delay and an endless queue;
/// each packet is acknowledged, with the delivery rate of draft-cheng-iccrg-delivery-rate-estimation.
pub(super) struct Network<C> {
    pub(super) bbr: C,
    pub(super) window: Window,
    pub(super) now: f64,
    /// Packets per second, and the round trip without a queue in seconds.
    pub(super) capacity: f64,
    pub(super) base: f64,
    pub(super) link_free: f64,
    pub(super) next_send: f64,
    pub(super) in_flight: VecDeque<Packet>,
    pub(super) delivered: u64,
    pub(super) delivered_at: f64,
    pub(super) first_sent: f64,
    /// Every n-th packet is lost; the repair lasts until a packet arrives that was sent after its beginning.
    pub(super) lose_every: Option<u64>,
    pub(super) sent: u64,
    pub(super) newly_lost: u32,
    pub(super) lost: u32,
    pub(super) repairing_since: Option<f64>,
    /// Bytes of options in each segment with data.
    pub(super) options: u32,
    /// Another subflow of the connection, which sends nothing here.
    pub(super) sibling: Option<SubflowView>,
}

pub(super) struct Packet {
    lost: bool,
    sent: f64,
    acked: f64,
    first_sent: f64,
    delivered: u64,
    delivered_at: f64,
    in_flight: u32,
    lost_before: u32,
}

impl<C: CongestionControl> Network<C> {
    pub(super) fn with(bbr: C, capacity: f64, base: f64) -> Self {
        let mut network = Network {
            bbr,
            window: Window::initial(10),
            now: 0.0,
            capacity,
            base,
            link_free: 0.0,
            next_send: 0.0,
            in_flight: VecDeque::new(),
            delivered: 0,
            delivered_at: 0.0,
            first_sent: 0.0,
            lose_every: None,
            sent: 0,
            newly_lost: 0,
            lost: 0,
            repairing_since: None,
            options: 0,
            sibling: None,
        };
        let all = [view(0, 10.0, base)];
        network.bbr.on_established(at(0.0), &mut network.window, Siblings::new(&all, 0));
        network
    }

    /// Runs until a time, and shows each state after an acknowledgment.
    pub(super) fn run(&mut self, until: f64, mut watch: impl FnMut(&Self)) {
        while self.now < until {
            let send_at = self.next_send.max(self.now);
            let may_send = self.in_flight.len() < self.window.cwnd.floor() as usize;
            if may_send && self.in_flight.front().is_none_or(|first| send_at < first.acked) {
                self.send(send_at);
            } else {
                self.acknowledge();
                watch(self);
            }
        }
    }

    fn send(&mut self, now: f64) {
        self.now = now;
        if self.in_flight.is_empty() {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        self.link_free = self.link_free.max(now) + 1.0 / self.capacity;
        let rate = self.window.pacing_rate.unwrap();
        self.next_send =
            now + rate.time_to_send(u64::from(MSS - self.options + self.window.paced_overhead)).as_secs_f64();
        self.sent += 1;
        self.in_flight.push_back(Packet {
            lost: self.lose_every.is_some_and(|n| self.sent.is_multiple_of(n)),
            sent: now,
            acked: self.link_free + self.base,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            in_flight: self.in_flight.len() as u32 + 1,
            lost_before: self.lost,
        });
    }

    fn acknowledge(&mut self) {
        let prior_in_flight = self.in_flight.len() as u32;
        let packet = self.in_flight.pop_front().unwrap();
        self.now = packet.acked;
        if packet.lost {
            return self.lose();
        }
        self.end_repair(packet.sent);
        self.delivered += 1;
        self.delivered_at = self.now;
        self.first_sent = packet.sent;
        let rtt = self.now - packet.sent;
        let interval = (self.now - packet.delivered_at).max(packet.sent - packet.first_sent);
        let rate = RateSample {
            delivered: (self.delivered - packet.delivered) as u32,
            interval: Duration::from_secs_f64(interval),
            prior_delivered: packet.delivered,
            app_limited: false,
            sent_in_flight: packet.in_flight,
            lost: self.lost - packet.lost_before,
        };
        let ack = Ack {
            total_delivered: self.delivered,
            prior_in_flight,
            in_flight: prior_in_flight - 1,
            lost: std::mem::take(&mut self.newly_lost),
            rate,
            ..ack(self.now, 1, rtt)
        };
        let all: Vec<_> = iter::once(self.view(rtt)).chain(self.sibling).collect();
        self.bbr.on_ack(&ack, &mut self.window, Siblings::new(&all, 0));
    }

    fn view(&self, rtt: f64) -> SubflowView {
        SubflowView { mss: MSS - self.options, ..view(0, self.window.cwnd.as_f64(), rtt) }
    }

    fn lose(&mut self) {
        self.newly_lost += 1;
        self.lost += 1;
        if self.repairing_since.is_none() {
            self.repairing_since = Some(self.now);
            let all = [self.view(self.base)];
            let siblings = Siblings::new(&all, 0);
            self.bbr.on_congestion(at(self.now), LossCause::FastRetransmit, &mut self.window, siblings);
        }
    }

    fn end_repair(&mut self, sent: f64) {
        if self.repairing_since.is_some_and(|since| sent > since) {
            self.repairing_since = None;
            self.bbr.on_recovery_end(at(self.now), &mut self.window);
        }
    }
}
