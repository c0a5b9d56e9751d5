//! The packets inside one direction of a link, in one ring.
//!
//! A packet stays in the slot in which it entered until it leaves the link. First come those that propagate, in the
//! order of their arrivals, then the one in service, if there is one, then those that wait. The server is a position in
//! the ring.

use anabranch_units::Instant;
use std::collections::VecDeque;

struct Slot<P> {
    packet: P,
    /// When it entered the link; once it propagates, when it arrives.
    time: Instant,
}

/// Propagating packets, ordered by arrival and then by departure, and behind them those that have not left the server,
/// in the order in which they entered.
///
/// Links keep the order by default, and then no packet is ever moved. A packet that overtakes others changes places
/// with each of them, and removing one in the middle moves those on the shorter side.
pub(crate) struct Ring<P> {
    slots: VecDeque<Slot<P>>,
    /// Number of propagating packets: the position of the first of the others.
    propagating: usize,
    /// When the first of them arrives; [`Instant::FAR_FUTURE`] if there is none. It is asked for several times per
    /// packet.
    next_arrival: Instant,
    /// When the last of all that ever propagated arrives: a packet that arrives no earlier overtakes none.
    last_arrival: Instant,
}

impl<P> Ring<P> {
    pub(crate) fn new() -> Self {
        Ring { slots: VecDeque::new(), propagating: 0, next_arrival: Instant::FAR_FUTURE, last_arrival: Instant::ZERO }
    }

    /// Every packet.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &P> {
        self.slots.iter().map(|slot| &slot.packet)
    }

    /// A packet enters the queue.
    #[inline]
    pub(crate) fn enter(&mut self, now: Instant, packet: P) {
        self.slots.push_back(Slot { packet, time: now });
    }

    /// The first packet that does not propagate, and when it entered.
    #[inline]
    pub(crate) fn head(&self) -> Option<(&P, Instant)> {
        self.slots.get(self.propagating).map(|slot| (&slot.packet, slot.time))
    }

    /// The head leaves the server and will arrive at this time.
    #[inline]
    pub(crate) fn propagate(&mut self, arrival: Instant) {
        let head = self.propagating;
        self.slots[head].time = arrival;
        self.propagating += 1;
        self.next_arrival = self.next_arrival.min(arrival);
        if arrival < self.last_arrival {
            self.overtake(head);
        } else {
            self.last_arrival = arrival;
        }
    }

    /// A copy of the packet that left the server last arrives with it.
    pub(crate) fn propagate_copy(&mut self, arrival: Instant, copy: P) {
        self.slots.insert(self.propagating, Slot { packet: copy, time: arrival });
        self.propagate(arrival);
    }

    /// Removes the head without letting it propagate.
    pub(crate) fn remove_head(&mut self) {
        self.slots.remove(self.propagating);
    }

    /// Removes all packets but the propagating ones.
    pub(crate) fn remove_waiting(&mut self) -> impl Iterator<Item = P> + '_ {
        self.slots.drain(self.propagating..).map(|slot| slot.packet)
    }

    /// When the next packet arrives; [`Instant::FAR_FUTURE`] if none propagates.
    #[inline]
    pub(crate) fn next_arrival(&self) -> Instant {
        self.next_arrival
    }

    /// The next packet, if it has arrived by `now`.
    #[inline]
    pub(crate) fn peek(&self, now: Instant) -> Option<&P> {
        if self.next_arrival > now { None } else { self.first() }
    }

    /// The packet in the first slot: the next to arrive, if one propagates.
    #[inline]
    pub(crate) fn first(&self) -> Option<&P> {
        self.slots.front().map(|slot| &slot.packet)
    }

    /// Removes the next packet to arrive, if one propagates.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<P> {
        self.propagating = self.propagating.checked_sub(1)?;
        let first = self.slots.pop_front()?;
        self.next_arrival = if self.propagating == 0 { Instant::FAR_FUTURE } else { self.slots[0].time };
        Some(first.packet)
    }

    /// Moves the packet in this slot before all that arrive later.
    #[cold]
    fn overtake(&mut self, mut slot: usize) {
        while slot > 0 && self.slots[slot - 1].time > self.slots[slot].time {
            self.slots.swap(slot - 1, slot);
            slot -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    /// All that propagate, in order.
    fn arrived(ring: &mut Ring<char>) -> String {
        core::iter::from_fn(|| ring.pop()).collect()
    }

    #[test]
    fn packets_leave_by_arrival_and_ties_by_departure() {
        let mut ring = Ring::new();
        "abcdefg".chars().for_each(|name| ring.enter(Instant::ZERO, name));
        [5, 9, 5, 1, 9].into_iter().for_each(|arrival| ring.propagate(at(arrival)));
        assert_eq!((ring.next_arrival(), ring.peek(at(1)), ring.peek(at(0))), (at(1), Some(&'d'), None));
        assert_eq!(arrived(&mut ring), "dacbe");
        assert_eq!((ring.next_arrival(), ring.peek(at(9))), (Instant::FAR_FUTURE, None), "f and g wait");
    }

    #[test]
    fn a_copy_follows_its_original_and_both_overtake() {
        let mut ring = Ring::new();
        "abc".chars().for_each(|name| ring.enter(at(3), name));
        ring.propagate(at(8));
        ring.propagate(at(5));
        ring.propagate_copy(at(5), 'B');
        assert_eq!(ring.head(), Some((&'c', at(3))));
        assert_eq!(arrived(&mut ring), "bBa");
    }

    #[test]
    fn what_has_not_left_the_server_can_be_removed() {
        let mut ring = Ring::new();
        "abcde".chars().for_each(|name| ring.enter(at(3), name));
        ring.propagate(at(4));
        ring.remove_head();
        assert_eq!(ring.head(), Some((&'c', at(3))));
        assert_eq!(ring.remove_waiting().collect::<String>(), "cde");
        assert_eq!(ring.head(), None);
        ring.remove_head();
        assert_eq!((ring.iter().count(), arrived(&mut ring).as_str()), (1, "a"));
    }
}
