//! Propagating packets, sorted by arrival.

use anabranch_units::Instant;
use std::collections::VecDeque;

/// A list in order of arrival; equal arrivals keep the order of departure.
///
/// Links keep the order by default, so a packet is almost always appended. With reordering it is inserted near the end,
/// among the few that it overtakes.
pub(crate) struct Pipe<P> {
    packets: VecDeque<(Instant, P)>,
}

impl<P> Pipe<P> {
    pub(crate) fn new() -> Self {
        Pipe { packets: VecDeque::new() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &P> {
        self.packets.iter().map(|(_, packet)| packet)
    }

    #[inline]
    pub(crate) fn push(&mut self, arrival: Instant, packet: P) {
        if self.packets.back().is_none_or(|(last, _)| *last <= arrival) {
            self.packets.push_back((arrival, packet));
        } else {
            let place = self.packets.partition_point(|(other, _)| *other <= arrival);
            self.packets.insert(place, (arrival, packet));
        }
    }

    /// When the next packet arrives; [`Instant::FAR_FUTURE`] if there is none.
    #[inline]
    pub(crate) fn next_arrival(&self) -> Instant {
        self.packets.front().map_or(Instant::FAR_FUTURE, |(arrival, _)| *arrival)
    }

    /// The next packet, if it has arrived by `now`.
    #[inline]
    pub(crate) fn pop(&mut self, now: Instant) -> Option<P> {
        if self.next_arrival() > now {
            return None;
        }
        self.packets.pop_front().map(|(_, packet)| packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_by_arrival_and_ties_by_departure() {
        let mut pipe = Pipe::new();
        for (arrival, name) in [(5, 'a'), (9, 'b'), (5, 'c'), (1, 'd'), (9, 'e')] {
            pipe.push(Instant::from_nanos(arrival), name);
        }
        assert_eq!(pipe.next_arrival(), Instant::from_nanos(1));
        assert_eq!(pipe.pop(Instant::ZERO), None);
        let order: String = core::iter::from_fn(|| pipe.pop(Instant::from_nanos(9))).collect();
        assert_eq!(order, "dacbe");
        assert_eq!(pipe.next_arrival(), Instant::FAR_FUTURE);
    }
}
