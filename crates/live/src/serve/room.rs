//! Memory of connections for bytes written and not acknowledged.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Guaranteed room of each connection: twice the bandwidth-delay product of 20 Mb/s and 50 ms.
pub const FIRST_ROOM: usize = 256 << 10;

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
}

impl Room {
    /// Room that may grow up to `most` bytes.
    pub(super) fn new(most: usize, budget: Arc<Budget>) -> Self {
        let bytes = FIRST_ROOM.min(most);
        budget.owe(bytes);
        Room { bytes, most, budget }
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

impl Drop for Room {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_share_what_there_is_and_give_it_back() {
        let budget = Budget::new(4 * FIRST_ROOM as u64);
        let mut first = Room::new(1 << 30, budget.clone());
        first.grow();
        assert_eq!(first.bytes(), 2 * FIRST_ROOM);
        let mut second = Room::new(1 << 30, budget.clone());
        // One is left: enough for the growth of the second, not of the first.
        first.grow();
        second.grow();
        assert_eq!((first.bytes(), second.bytes()), (2 * FIRST_ROOM, 2 * FIRST_ROOM));
        // A new connection has its first room even so, and no room grows.
        let third = Room::new(1 << 30, budget.clone());
        drop(third);
        second.grow();
        assert_eq!(second.bytes(), 2 * FIRST_ROOM);
        drop(first);
        second.grow();
        assert_eq!(second.bytes(), 4 * FIRST_ROOM);
        drop(second);
        assert_eq!(budget.0.load(Ordering::Relaxed), 4 * FIRST_ROOM as i64);
    }

    #[test]
    fn no_room_is_larger_than_its_limit() {
        let budget = Budget::new(1 << 40);
        let mut small = Room::new(1000, budget.clone());
        small.grow();
        assert_eq!(small.bytes(), 1000);
        let mut odd = Room::new(3 * FIRST_ROOM, budget);
        odd.grow();
        odd.grow();
        assert_eq!(odd.bytes(), 3 * FIRST_ROOM);
    }
}
