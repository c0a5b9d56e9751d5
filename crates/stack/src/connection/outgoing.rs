//! The sending half of a connection: what the application wrote, what the peer acknowledged at the data level, and what must be sent again.

use super::failure::NOBODY;
use crate::subflow::Reinjection;
use std::collections::VecDeque;

/// Offsets count bytes of this end's stream from zero.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// First byte that the peer has not acknowledged.
    unacked: u64,
    /// First byte that no subflow was given.
    pub next: u64,
    /// Bytes that the application wrote.
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

    /// Takes back up to `bytes` of the end, as far as no subflow was given them; returns how many.
    pub fn withdraw(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.withdrawable());
        self.written -= taken;
        taken
    }

    /// Bytes that can be taken back.
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

    /// How much may be written and not acknowledged from now on.
    pub fn set_buffer(&mut self, bytes: u64) {
        self.send_buffer = bytes;
    }

    /// Everything was given to subflows, and the application has no more.
    pub fn exhausted(&self) -> bool {
        self.finished && self.next == self.written
    }

    /// One past the last number that the peer can have received: that of the end of data, once this can have been told.
    pub fn sent_end(&self) -> u64 {
        self.next + u64::from(self.exhausted())
    }

    /// The end of data must be told and was not acknowledged.
    pub fn end_pending(&self) -> bool {
        self.exhausted() && !self.end_acked
    }

    /// Everything, the end of data included, was acknowledged.
    pub fn done(&self) -> bool {
        self.end_acked
    }

    /// The end of the stream, once it is known.
    pub fn end(&self) -> u64 {
        self.written
    }

    /// DATA_ACK: everything before `offset` arrived. Ignores what was never sent. Returns whether it is news.
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

    /// Bytes of a failed subflow: what is not acknowledged of them must be sent again.
    pub fn reinject(&mut self, bytes: Reinjection) {
        if bytes.end > self.unacked {
            self.reinjections.push_back(bytes);
        }
    }

    /// Everything that was given to subflows and is not acknowledged must be sent again, by any of them.
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
        assert_eq!(outgoing.withdraw(50), 0, "the end may have been told");
    }
}
