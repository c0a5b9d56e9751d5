//! The room for received data that all connections share.

/// Counts the room of all connections' receive buffers. What was advertised to a client cannot be taken back, so a
/// buffer keeps the room that it has; while the pool is full, none grows.
#[derive(Debug)]
pub(super) struct ReceivePool {
    taken: u64,
    most: u64,
}

impl ReceivePool {
    pub(super) fn new(most: u64) -> Self {
        ReceivePool { taken: 0, most }
    }

    /// Bytes of room that connections have.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Whether no buffer may grow.
    pub(super) fn is_full(&self) -> bool {
        self.taken >= self.most
    }

    /// A connection that had `before` bytes has `now` bytes.
    pub(super) fn change(&mut self, before: &mut u64, now: u64) {
        self.taken = self.taken + now - *before;
        *before = now;
    }

    /// Changes the size; connections keep what they have.
    pub(super) fn resize(&mut self, most: u64) {
        self.most = most;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_full_until_enough_has_ended() {
        let mut pool = ReceivePool::new(100);
        let (mut first, mut second) = (0, 0);
        pool.change(&mut first, 60);
        assert!(!pool.is_full());
        pool.change(&mut second, 60);
        assert!(pool.is_full() && pool.taken() == 120);
        pool.change(&mut first, 0);
        assert!(!pool.is_full() && (first, second) == (0, 60));
        pool.resize(50);
        assert!(pool.is_full());
    }
}
