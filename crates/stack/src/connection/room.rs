//! How much an application may write ahead of DATA_ACK where data commits into the send buffers of subflows.
//!
//! Linux makes the send buffer of a subflow larger while a writer waits for room and the window is not full: when an
//! acknowledgment was processed on that subflow and what it allows was sent, and after each record of new data that
//! leaves (`tcp_check_space`, `tcp_new_space`, `tcp_event_new_data_sent`). A record that fills the window has no such
//! effect, so that a receiver that acknowledges each packet keeps the buffer small. No other subflow's buffer changes.
//! That of the connection follows at once (`mptcp_propagate_sndbuf`), and then the writer is woken.

use super::{Commit, Connection};

/// Linux's connection has the buffers of its subflows and this (`tcp_wmem[0]`, `__mptcp_sync_sndbuf`).
const LEAST_BUFFER: u64 = 4_096;

impl Connection {
    /// An acknowledgment was processed on a subflow, whose send buffer may grow once what it allows was sent.
    #[inline]
    pub(super) fn mark_to_expand(&mut self, at: usize) {
        if self.config.transport.commit == Commit::IntoBuffer {
            self.waits.to_expand.insert(at);
            self.waits.gives_first = true;
        }
    }

    /// What acknowledgments allow was sent: send buffers grow, which wakes an application that waits for room. Returns
    /// whether it writes.
    pub(super) fn write_next(&mut self) -> bool {
        let mut grown = false;
        for at in std::mem::take(&mut self.waits.to_expand).iter() {
            grown |= self.expand_send_buffer(at);
        }
        if grown {
            self.size_send_buffer();
        }
        self.outgoing.write_next()
    }

    /// The send buffer of a subflow grows if the application waits for room and the window has some. Returns whether it
    /// did.
    #[inline]
    pub(super) fn expand_send_buffer(&mut self, at: usize) -> bool {
        let into_buffer = self.config.transport.commit == Commit::IntoBuffer;
        into_buffer && self.writer_waits() && self.subflows.answered(at).expand_send_buffer()
    }

    /// Whether the application waits for room in the send buffer (`SOCK_NOSPACE`).
    #[inline]
    pub(super) fn writer_waits(&self) -> bool {
        match self.config.transport.commit {
            Commit::AtWindow => self.outgoing.overflows(),
            Commit::IntoBuffer => self.outgoing.writer_waits(),
        }
    }

    /// Where data commits into the buffer, the connection's is as large as those of its subflows.
    pub(super) fn size_send_buffer(&mut self) {
        if self.config.transport.commit == Commit::IntoBuffer {
            self.outgoing.set_buffer(LEAST_BUFFER + self.subflows.iter().map(|s| s.memory.limit()).sum::<u64>());
        }
    }
}
