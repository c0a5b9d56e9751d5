//! Memory of connections for bytes written and not acknowledged.

use super::meter::Meter;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Guaranteed room of each connection: twice the bandwidth-delay product of 20 Mb/s and 50 ms.
pub const FIRST_ROOM: usize = 256 << 10;

/// Counted for each connection from its beginning, beside its room: HTTP's buffers and a part of a file that was read ahead, or
/// the buffers of the proxy.
const FIXED: usize = 128 << 10;

/// Memory shared by all connections.
#[derive(Debug)]
pub(super) struct Budget(AtomicI64);

impl Budget {
    pub(super) fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Budget(AtomicI64::new(i64::try_from(bytes).unwrap_or(i64::MAX))))
    }

    /// Takes bytes if enough are left; returns whether it did.
    fn take(&self, bytes: usize) -> bool {
        let bytes = bytes as i64;
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| (left >= bytes).then_some(left - bytes))
            .is_ok()
    }

    /// Takes bytes, even beyond the limit.
    fn owe(&self, bytes: usize) {
        self.0.fetch_sub(bytes as i64, Ordering::Relaxed);
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_add(bytes as i64, Ordering::Relaxed);
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
    /// Room that may grow up to `most` bytes.
    pub(super) fn new(most: usize, budget: Arc<Budget>, meter: Meter) -> Self {
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

    /// The memory of so many first rooms, and of `connections` connections beside them.
    fn budget(rooms: usize, connections: usize) -> Arc<Budget> {
        Budget::new((rooms * FIRST_ROOM + connections * FIXED) as u64)
    }

    fn room(most: usize, budget: &Arc<Budget>) -> Room {
        Room::new(most, budget.clone(), Meter::default())
    }

    #[test]
    fn rooms_share_what_there_is_and_give_it_back() {
        let budget = budget(4, 2);
        let mut first = room(1 << 30, &budget);
        first.grow();
        assert_eq!(first.bytes(), 2 * FIRST_ROOM);
        let mut second = room(1 << 30, &budget);
        // One is left: enough for the growth of the second, not of the first.
        first.grow();
        second.grow();
        assert_eq!((first.bytes(), second.bytes()), (2 * FIRST_ROOM, 2 * FIRST_ROOM));
        // A new connection has its first room even so, and no room grows.
        let third = room(1 << 30, &budget);
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
        assert_eq!(budget.0.load(Ordering::Relaxed), (4 * FIRST_ROOM + 2 * FIXED) as i64);
    }

    #[test]
    fn no_room_is_larger_than_its_limit() {
        let budget = Budget::new(1 << 40);
        let mut small = room(1000, &budget);
        small.grow();
        assert_eq!(small.bytes(), 1000);
        let mut odd = room(3 * FIRST_ROOM, &budget);
        odd.grow();
        odd.grow();
        assert_eq!(odd.bytes(), 3 * FIRST_ROOM);
    }

    #[test]
    fn what_buffers_occupy_is_counted_until_the_connection_is_gone() {
        let meter = Meter::default();
        let mut room = Room::new(1 << 30, Budget::new(0), meter.clone());
        for bytes in [100, 5000, 300] {
            room.occupy(bytes);
            assert_eq!(meter.bytes(), bytes as u64);
        }
        drop(room);
        assert_eq!(meter.bytes(), 0);
    }
}
