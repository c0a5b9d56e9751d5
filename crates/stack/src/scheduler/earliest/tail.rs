//! Copies of the last data: when nothing is unsent, subflows with room send again what would otherwise arrive late.
//!
//! In this order, the first data in the stream first:
//!
//! ```text
//! lost    a lost packet, where the copy arrives more than 1 ms before the subflow's own retransmission could
//! late    a packet whose acknowledgment is overdue, where the copy arrives before the subflow's tail-loss probe could
//!         overdue = max(due + m/2, sent + max(srtt, latest rtt)) + max(srtt/8, 4 rttvar, 5 ms) (+ 40 ms if it is the last)
//! sooner  a packet that would arrive in D, where the copy arrives more than 4 ms + D/10 earlier
//! spare   by an idle subflow: the packet whose repair would arrive last, if it should be lost
//! ```
//! A range has one copy at a time: the next one may follow when that is overdue itself. All copies together are at most
//! [`MOST_SHARE`] of the data and an initial window, those of `spare` [`SPARE_SHARE`] of it. A subflow may copy its own
//! late packet: the new packet has numbers of its own, so what is acknowledged beyond the late one shows its loss.

use super::forecast::DELAYED_ACK;
use super::{Candidate, Decision, Earliest, ForecastReason, InFlight, Sent, SubflowSet, Terms, View};
use crate::view::SubflowView;
use anabranch_events::SendKind;
use anabranch_units::{Duration, Instant, SubflowId};
use std::collections::BTreeMap;

/// The most that copies may add to the data: beyond about 3 % they gained nothing in measurements.
const MOST_SHARE: u64 = 4;
/// The most that copies of data that is on time may add.
const SPARE_SHARE: u64 = 2;
const PERCENT: u64 = 100;
/// Bytes that may be copied before any share of the data allows it: an initial window.
const ALLOWANCE: u64 = 10 * 1_460;
/// A copy of lost data must arrive this much earlier, in seconds.
const LOST_MARGIN: f64 = 0.001;
/// A copy of data that is on time must arrive this much earlier, in seconds, and by this part of the time that is left.
const SOONER_MARGIN: f64 = 0.004;
const SOONER_SHARE: f64 = 0.1;
/// The least time by which an acknowledgment is overdue.
const LEAST_OVERDUE: Duration = Duration::from_millis(5);

/// A second transmission of some bytes.
#[derive(Clone, Copy, Debug)]
struct CopyOf {
    end: u64,
    /// When its acknowledgment is overdue.
    overdue: Instant,
}

/// What is remembered of packets and of copies.
#[derive(Debug, Default)]
pub(super) struct Tail {
    /// When packets should arrive, by stream offset and subflow.
    due: BTreeMap<(u64, SubflowId), Instant>,
    /// The latest copy by stream offset.
    copies: BTreeMap<u64, CopyOf>,
    /// Bytes sent for the first time, and bytes of copies.
    sent: u64,
    copied: u64,
}

/// A packet that could be copied.
#[derive(Clone, Copy, Debug)]
struct Missing<'a> {
    packet: InFlight,
    holder: &'a SubflowView,
    /// When it should arrive.
    due: Instant,
    /// When its acknowledgment is overdue.
    overdue: Instant,
}

/// A packet to copy, where it is sent, and why.
type Planned = (InFlight, Candidate, ForecastReason);

impl Tail {
    /// Drops what the peer has.
    pub(super) fn forget_acknowledged(&mut self, unacked: u64) {
        let first = |map: &BTreeMap<(u64, SubflowId), Instant>| map.first_key_value().map(|((offset, _), _)| *offset);
        if first(&self.due).is_some_and(|offset| offset < unacked) {
            self.due = self.due.split_off(&(unacked, SubflowId(0)));
        }
        while let Some(first) = self.copies.first_entry().filter(|first| first.get().end <= unacked) {
            first.remove();
        }
    }

    pub(super) fn on_sent(&mut self, sent: &Sent, subflow: &SubflowView, arrives: Instant) {
        self.due.insert((sent.offset, subflow.id), arrives);
        match sent.kind {
            SendKind::New => self.sent += u64::from(sent.bytes),
            SendKind::Duplicate => self.copied += u64::from(sent.bytes),
            // What another subflow sends for one that failed is a copy as well, but not one by choice.
            SendKind::Reinjection => {
                self.note_copy(sent.offset, sent.bytes, arrives + subflow.srtt / 2 + grace(subflow) + DELAYED_ACK);
            }
            SendKind::Retransmission | SendKind::TailLossProbe => {}
        }
    }

    fn note_copy(&mut self, offset: u64, bytes: u32, overdue: Instant) {
        self.copies.insert(offset, CopyOf { end: offset + u64::from(bytes), overdue });
    }

    /// Whether a copy of the byte at `offset` is on its way in time.
    fn is_copied(&self, offset: u64, now: Instant) -> bool {
        let before = self.copies.range(..=offset).next_back();
        before.is_some_and(|(_, copy)| copy.end > offset && copy.overdue > now)
    }

    /// When the next copy is overdue.
    fn next_overdue(&self, now: Instant) -> Option<Instant> {
        self.copies.values().map(|copy| copy.overdue).filter(|overdue| *overdue > now).min()
    }

    /// Bytes that may still be copied.
    pub(super) fn budget(&self) -> u64 {
        (ALLOWANCE + self.sent / PERCENT * MOST_SHARE).saturating_sub(self.copied)
    }

    fn spare_budget(&self) -> u64 {
        (self.sent / PERCENT * SPARE_SHARE).saturating_sub(self.copied)
    }
}

/// By how much an acknowledgment may be late without being overdue.
pub(in crate::scheduler) fn grace(subflow: &SubflowView) -> Duration {
    (subflow.srtt / 8).max(subflow.rttvar * 4).max(LEAST_OVERDUE)
}

impl<T: Terms> Earliest<T> {
    /// The next copy, or a wait until one may be needed.
    pub(super) fn copy(&mut self, view: &View<'_>, set: SubflowSet) -> Decision {
        let now = view.connection.now;
        let missing: Vec<Missing<'_>> = self.missing(view);
        let copy = self
            .urgent(view, set, &missing)
            .or_else(|| self.sooner(view, set, &missing))
            .or_else(|| self.spare(view, set, &missing));
        let Some((packet, choice, reason)) = copy else {
            let next = missing.iter().map(|m| m.overdue).filter(|overdue| *overdue > now).min();
            let until = [next, self.tail.next_overdue(now)].into_iter().flatten().min();
            return Decision::Wait { until };
        };
        let subflow = &view.subflows[choice.position];
        let start = packet.offset.max(view.connection.unacked);
        let end = (packet.offset + u64::from(packet.bytes)).min(view.connection.next);
        let bytes = (end - start).min(u64::from(subflow.mss));
        let arrives = now + Duration::from_secs_f64(choice.arrival);
        self.tail.note_copy(start, bytes as u32, arrives + subflow.srtt / 2 + grace(subflow) + DELAYED_ACK);
        self.explanation = Some(self.forecast_event(&choice, subflow, None, reason));
        Decision::Duplicate { subflow: choice.position, offset: start, bytes }
    }

    /// The packets of which no copy is on its way, in the order of the stream.
    fn missing<'a>(&self, view: &View<'a>) -> Vec<Missing<'a>> {
        let now = view.connection.now;
        let mut missing = Vec::with_capacity(view.flight.len());
        for (index, packet) in view.flight.iter().enumerate() {
            let end = packet.offset + u64::from(packet.bytes);
            let gone = end <= view.connection.unacked || packet.offset >= view.connection.next;
            if gone || self.tail.is_copied(packet.offset.max(view.connection.unacked), now) {
                continue;
            }
            let holder = &view.subflows[packet.subflow];
            let due =
                self.tail.due.get(&(packet.offset, holder.id)).copied().unwrap_or(packet.sent_at + holder.srtt / 2);
            let last = view.flight.get(index + 1).is_none_or(|next| next.subflow != packet.subflow);
            let round_trip = holder.srtt.max(holder.latest_rtt);
            let back = (due + super::forecast::least_rtt(holder) / 2).max(packet.sent_at + round_trip);
            let overdue = back + grace(holder) + if last { DELAYED_ACK } else { Duration::ZERO };
            missing.push(Missing { packet: *packet, holder, due, overdue });
        }
        missing.sort_by_key(|m| (m.packet.offset, m.packet.subflow));
        missing
    }

    /// The first lost or late packet for which a copy is faster.
    fn urgent(&mut self, view: &View<'_>, set: SubflowSet, missing: &[Missing<'_>]) -> Option<Planned> {
        let (now, budget) = (view.connection.now, self.tail.budget());
        for m in missing.iter().filter(|m| u64::from(m.packet.bytes) <= budget) {
            let late = m.overdue <= now;
            if !m.packet.lost && !late {
                continue;
            }
            let bytes = u64::from(m.packet.bytes);
            let own = self.forecast(now, m.holder).of(bytes);
            let (except, own, reason) = if m.packet.lost {
                (Some(m.packet.subflow), own, ForecastReason::Lost)
            } else {
                // Its tail-loss probe comes two round trips after the transmission (RFC 8985 section 7.2).
                let probe = (m.packet.sent_at + m.holder.srtt * 2).since(now).as_secs_f64();
                (None, own + probe, ForecastReason::Late)
            };
            // A path that gives no sign is not the one to try again.
            let own = if m.holder.works() { own } else { f64::INFINITY };
            let choice = self.first(view, set, bytes, except);
            if let Some(choice) = choice.filter(|choice| choice.arrival + LOST_MARGIN < own) {
                return Some((m.packet, choice, reason));
            }
        }
        None
    }

    /// The packet on time that another subflow would bring earliest before it.
    fn sooner(&mut self, view: &View<'_>, set: SubflowSet, missing: &[Missing<'_>]) -> Option<Planned> {
        let (now, budget) = (view.connection.now, self.tail.budget());
        // What arrives last is worth most.
        for m in missing.iter().rev().filter(|m| u64::from(m.packet.bytes) <= budget) {
            let left = m.due.since(now).as_secs_f64();
            let Some(choice) = self.first(view, set, u64::from(m.packet.bytes), Some(m.packet.subflow)) else {
                continue;
            };
            if choice.arrival + SOONER_MARGIN + SOONER_SHARE * left < left {
                return Some((m.packet, choice, ForecastReason::Sooner));
            }
        }
        None
    }

    /// The packet whose repair would arrive last, for an idle subflow.
    fn spare(&mut self, view: &View<'_>, set: SubflowSet, missing: &[Missing<'_>]) -> Option<Planned> {
        let mut idle = SubflowSet::EMPTY;
        for position in set.iter().filter(|at| view.subflows[*at].in_flight == 0 && view.subflows[*at].queued == 0) {
            idle.insert(position);
        }
        let budget = self.tail.spare_budget();
        let affordable = missing.iter().filter(|m| u64::from(m.packet.bytes) <= budget);
        let last = affordable.max_by_key(|m| (m.due + m.holder.srtt, m.packet.offset))?;
        let choice = self.first(view, idle, u64::from(last.packet.bytes), Some(last.packet.subflow))?;
        let repaired = (last.due + last.holder.srtt).since(view.connection.now).as_secs_f64();
        (choice.arrival < repaired).then_some((last.packet, choice, ForecastReason::Spare))
    }
}
