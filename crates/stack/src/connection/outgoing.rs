//! The sending half of a connection: bytes written by the application, acknowledged at the data level, and to be sent
//! again.

use super::failure::NOBODY;
use crate::subflow::Reinjection;
use std::collections::VecDeque;

/// Offsets count bytes of this end's stream from zero.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// First byte that the peer has not acknowledged.
    unacked: u64,
    /// First byte not yet given to a subflow.
    pub next: u64,
    /// Bytes written by the application.
    written: u64,
    /// The application wrote everything.
    finished: bool,
    /// The peer acknowledged the end of data.
    pub end_acked: bool,
    /// One past the last byte that the peer allows; never moves back.
    window_end: u64,
    reinjections: VecDeque<Reinjection>,
    send_buffer: u64,
}

impl Outgoing {
    pub fn new(send_buffer: u64) -> Self {
        Outgoing { send_buffer, ..Outgoing::default() }
    }

    pub fn write(&mut self, bytes: u64) {
        debug_assert!(!self.finished, "nothing may be written after the end");
        self.written = self.written.saturating_add(bytes);
    }

    /// Withdraws up to `bytes` at the end that no subflow was given; returns how many.
    pub fn withdraw(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.withdrawable());
        self.written -= taken;
        taken
    }

    /// Bytes that can be withdrawn.
    pub fn withdrawable(&self) -> u64 {
        if self.finished { 0 } else { self.written - self.next }
    }

    pub fn finish(&mut self) {
        self.finished = true;
    }

    pub fn unacked(&self) -> u64 {
        self.unacked
    }

    pub fn window_end(&self) -> u64 {
        self.window_end
    }

    /// Bytes that could be given to a subflow if the peer's window allowed.
    pub fn unsent(&self) -> u64 {
        self.written.min(self.unacked + self.send_buffer).saturating_sub(self.next)
    }

    /// Everything that may be sent was sent and acknowledged.
    pub fn is_idle(&self) -> bool {
        self.next == self.unacked && self.unsent() == 0 && self.reinjections.is_empty()
    }

    /// Sets the limit of bytes written and not acknowledged.
    pub fn set_buffer(&mut self, bytes: u64) {
        self.send_buffer = bytes;
    }

    /// Everything was given to subflows, and the application has no more.
    pub fn exhausted(&self) -> bool {
        self.finished && self.next == self.written
    }

    /// One past the last number that the peer can have received: that of DATA_FIN, once this can have been sent.
    pub fn sent_end(&self) -> u64 {
        self.next + u64::from(self.exhausted())
    }

    /// DATA_FIN must be sent or was not acknowledged.
    pub fn end_pending(&self) -> bool {
        self.exhausted() && !self.end_acked
    }

    /// All data and DATA_FIN were acknowledged.
    pub fn done(&self) -> bool {
        self.end_acked
    }

    /// Length of the stream, once it is known.
    pub fn end(&self) -> u64 {
        self.written
    }

    /// DATA_ACK: everything before `offset` arrived. Offsets of unsent data are ignored. Returns whether it advances.
    pub fn on_ack(&mut self, offset: u64) -> bool {
        if self.exhausted() && offset == self.written + 1 {
            let news = !self.end_acked;
            self.end_acked = true;
            self.unacked = self.written;
            return news;
        }
        if offset > self.next || offset <= self.unacked {
            return false;
        }
        self.unacked = offset;
        true
    }

    pub fn on_window(&mut self, end: u64) {
        self.window_end = self.window_end.max(end);
    }

    /// Bytes of a failed subflow: those not acknowledged must be sent again.
    pub fn reinject(&mut self, bytes: Reinjection) {
        if bytes.end > self.unacked {
            self.reinjections.push_back(bytes);
        }
    }

    /// All bytes given to subflows and not acknowledged must be sent again, on any subflow.
    pub fn reinject_everything(&mut self) {
        self.reinjections.clear();
        self.reinject(Reinjection { start: self.unacked, end: self.next, avoid: NOBODY });
    }

    /// The next bytes to send again.
    pub fn next_reinjection(&mut self) -> Option<Reinjection> {
        while let Some(front) = self.reinjections.front_mut() {
            front.start = front.start.max(self.unacked);
            if front.start < front.end {
                return Some(*front);
            }
            self.reinjections.pop_front();
        }
        None
    }

    /// The first `bytes` of the next reinjection were given to a subflow.
    pub fn take_reinjection(&mut self, bytes: u64) {
        if let Some(front) = self.reinjections.front_mut() {
            front.start += bytes;
            if front.start >= front.end {
                self.reinjections.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_no_subflow_was_given_can_be_taken_back() {
        let mut outgoing = Outgoing::new(1 << 20);
        outgoing.write(1_000);
        outgoing.next = 400;
        assert_eq!(outgoing.withdraw(100), 100);
        assert_eq!((outgoing.end(), outgoing.unsent()), (900, 500));
        assert_eq!(outgoing.withdraw(9_999), 500);
        assert_eq!((outgoing.end(), outgoing.unsent()), (400, 0));
        outgoing.write(50);
        assert_eq!(outgoing.unsent(), 50, "the stream goes on where it was cut");
        outgoing.finish();
        assert_eq!(outgoing.withdraw(50), 0, "DATA_FIN may have been sent");
    }
}
