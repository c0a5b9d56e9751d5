//! Memory of connections for bytes written and not acknowledged.

use super::meter::Meter;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

/// Guaranteed room of each connection: twice the bandwidth-delay product of 20 Mb/s and 50 ms.
pub const FIRST_ROOM: usize = 256 << 10;

/// Counted for each connection from its beginning, in addition to its room: HTTP's buffers and a part of a file that
/// was read ahead, or the buffers of the proxy.
const FIXED: usize = 128 << 10;

/// Memory shared by all connections.
#[derive(Debug)]
pub(super) struct Budget {
    /// Bytes that are free; negative if more is taken than there is.
    left: AtomicI64,
    total: AtomicI64,
    /// The most that one connection may have.
    most: AtomicUsize,
}

impl Budget {
    pub(super) fn new(bytes: u64, most: usize) -> Arc<Self> {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        Arc::new(Budget { left: AtomicI64::new(bytes), total: AtomicI64::new(bytes), most: AtomicUsize::new(most) })
    }

    /// Changes the sizes; connections that have more already keep it.
    pub(super) fn resize(&self, bytes: u64, most: usize) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let before = self.total.swap(bytes, Ordering::Relaxed);
        self.left.fetch_add(bytes - before, Ordering::Relaxed);
        self.most.store(most, Ordering::Relaxed);
    }

    /// Takes bytes if enough are left; returns whether it did.
    fn take(&self, bytes: usize) -> bool {
        let bytes = bytes as i64;
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| (left >= bytes).then_some(left - bytes))
            .is_ok()
    }

    /// Takes bytes, even beyond the limit.
    fn owe(&self, bytes: usize) {
        self.left.fetch_sub(bytes as i64, Ordering::Relaxed);
    }

    fn give_back(&self, bytes: usize) {
        self.left.fetch_add(bytes as i64, Ordering::Relaxed);
    }
}

/// The room of one connection. It begins small and doubles whenever it, and not the network, has limited the data in
/// flight, as Linux's send buffers do (`tcp_sndbuf_expand`).
#[derive(Debug)]
pub(super) struct Room {
    bytes: usize,
    most: usize,
    budget: Arc<Budget>,
    /// Bytes that the connection's buffers occupy, counted by `meter`.
    occupied: usize,
    meter: Meter,
}

impl Room {
    /// Room that may grow as far as the budget allows at present.
    pub(super) fn new(budget: Arc<Budget>, meter: Meter) -> Self {
        let most = budget.most.load(Ordering::Relaxed);
        let bytes = FIRST_ROOM.min(most);
        budget.owe(bytes + FIXED);
        Room { bytes, most, budget, occupied: 0, meter }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Doubles the room, if the limits allow.
    pub(super) fn grow(&mut self) {
        let more = self.bytes.min(self.most - self.bytes);
        if more > 0 && self.budget.take(more) {
            self.bytes += more;
        }
    }
}

impl Room {
    /// Gives back what was added to the guaranteed room.
    pub(super) fn shrink(&mut self) {
        let kept = FIRST_ROOM.min(self.most);
        self.budget.give_back(self.bytes.saturating_sub(kept));
        self.bytes = self.bytes.min(kept);
    }

    /// The connection's buffers occupy this many bytes now.
    pub(super) fn occupy(&mut self, bytes: usize) {
        if bytes > self.occupied {
            self.meter.add(bytes - self.occupied);
        } else if bytes < self.occupied {
            self.meter.remove(self.occupied - bytes);
        }
        self.occupied = bytes;
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes + FIXED);
        self.meter.remove(self.occupied);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory of so many first rooms, and of `connections` connections as well.
    fn budget(rooms: usize, connections: usize) -> Arc<Budget> {
        Budget::new((rooms * FIRST_ROOM + connections * FIXED) as u64, 1 << 30)
    }

    fn room(budget: &Arc<Budget>) -> Room {
        Room::new(budget.clone(), Meter::default())
    }

    #[test]
    fn rooms_share_what_there_is_and_give_it_back() {
        let budget = budget(4, 2);
        let mut first = room(&budget);
        first.grow();
        assert_eq!(first.bytes(), 2 * FIRST_ROOM);
        let mut second = room(&budget);
        // One is left: enough for the growth of the second, not of the first.
        first.grow();
        second.grow();
        assert_eq!((first.bytes(), second.bytes()), (2 * FIRST_ROOM, 2 * FIRST_ROOM));
        // A new connection has its first room even so, and no room grows.
        let third = room(&budget);
        drop(third);
        second.grow();
        assert_eq!(second.bytes(), 2 * FIRST_ROOM);
        first.shrink();
        second.grow();
        assert_eq!(second.bytes(), 2 * FIRST_ROOM, "doubling takes two, and one is left");
        drop(first);
        second.grow();
        assert_eq!(second.bytes(), 4 * FIRST_ROOM);
        drop(second);
        assert_eq!(budget.left.load(Ordering::Relaxed), (4 * FIRST_ROOM + 2 * FIXED) as i64);
    }

    #[test]
    fn a_budget_that_was_made_smaller_is_used_up_until_enough_was_given_back() {
        let budget = budget(4, 1);
        let mut room = room(&budget);
        room.grow();
        assert_eq!(room.bytes(), 2 * FIRST_ROOM);
        budget.resize((2 * FIRST_ROOM + FIXED) as u64, 1 << 30);
        room.grow();
        assert_eq!(room.bytes(), 2 * FIRST_ROOM);
        budget.resize((4 * FIRST_ROOM + FIXED) as u64, 1 << 30);
        room.grow();
        assert_eq!(room.bytes(), 4 * FIRST_ROOM);
    }

    #[test]
    fn no_room_is_larger_than_its_limit() {
        let budget = Budget::new(1 << 40, 1000);
        let mut small = room(&budget);
        small.grow();
        assert_eq!(small.bytes(), 1000);
        budget.resize(1 << 40, 3 * FIRST_ROOM);
        let mut odd = room(&budget);
        odd.grow();
        odd.grow();
        assert_eq!(odd.bytes(), 3 * FIRST_ROOM);
    }

    #[test]
    fn what_buffers_occupy_is_counted_until_the_connection_is_gone() {
        let meter = Meter::default();
        let mut room = Room::new(Budget::new(0, 1 << 30), meter.clone());
        for bytes in [100, 5000, 300] {
            room.occupy(bytes);
            assert_eq!(meter.bytes(), bytes as u64);
        }
        drop(room);
        assert_eq!(meter.bytes(), 0);
    }
}
