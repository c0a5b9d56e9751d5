//! The window that a peer advertised on a subflow.

/// The window of the peer's last segment that counts for it (RFC 9293's SND.WND, SND.WL1 and SND.WL2). Offsets are the
/// subflow's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeerWindow {
    seq: u64,
    acked: u64,
    bytes: u64,
    /// The largest so far (MAX.SND.WND).
    largest: u64,
}

impl PeerWindow {
    /// A segment at the peer's offset `seq` acknowledges everything before `acked` and has a window of so many bytes.
    /// It counts if it is newer than the one before (RFC 9293 section 3.10.7.4). Of two that are equally new and not in
    /// order the larger window counts, or a closed one (Linux's `tcp_may_update_window`). Returns whether it counts.
    pub fn update(&mut self, seq: u64, acked: u64, bytes: u64) -> bool {
        let newer = acked > self.acked || seq > self.seq;
        let same = seq == self.seq && (bytes > self.bytes || bytes == 0);
        let counts = acked >= self.acked && (newer || same);
        if counts {
            *self = PeerWindow { seq, acked, bytes, largest: self.largest.max(bytes) };
        }
        counts
    }

    /// Data that is given to the subflow lies in a window of the connection with so many bytes from there on: the
    /// subflow's is no smaller, until it is updated (Linux's `mptcp_check_allowed_size`).
    pub fn raise(&mut self, bytes: u64) {
        self.bytes = self.bytes.max(bytes);
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The largest window so far; zero before the first.
    pub fn largest(&self) -> u64 {
        self.largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_window_counts_only_with_something_new() {
        let mut window = PeerWindow::default();
        assert!(window.update(1, 1, 50_000));
        assert!(!window.update(1, 1, 40_000), "an acknowledgment of the same bytes");
        assert_eq!(window.bytes(), 50_000);
        assert!(window.update(1, 1, 60_000), "a larger one");
        assert!(window.update(1, 2, 40_000), "an acknowledgment of more");
        assert!(window.update(5, 2, 30_000), "a segment after data of the peer");
        assert!(!window.update(1, 2, 90_000), "one that is late");
        assert!(!window.update(9, 1, 90_000), "an acknowledgment that is late");
        assert!(window.update(5, 2, 0), "a closed one");
        assert_eq!((window.bytes(), window.largest()), (0, 60_000));
    }

    #[test]
    fn data_of_the_connection_raises_it_until_the_next_update() {
        let mut window = PeerWindow::default();
        assert!(window.update(1, 1, 1_000));
        window.raise(3_000);
        assert_eq!((window.bytes(), window.largest()), (3_000, 1_000));
        window.raise(2_000);
        assert!(!window.update(1, 1, 2_500), "of two that are equally new the larger counts");
        assert!(window.update(1, 2, 1_200));
        assert_eq!(window.bytes(), 1_200);
    }
}
