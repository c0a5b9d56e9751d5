//! The sending half of a connection: bytes written by the application, acknowledged at the data level, and to be sent
//! again.

use super::Writer;
use super::pages::{Pages, WHOLE_FRAGMENT};
use crate::subflow::Reinjection;
use anabranch_events::CopyCause;
use anabranch_units::SubflowId;
use std::collections::VecDeque;

/// What the application writes at once, as the testbed's server does and many others do. Linux gives subflows what is
/// written before the next write begins.
const WRITE: u64 = 65_536;

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
    /// One past the last byte that the peer allows.
    window_end: u64,
    /// A window of plain TCP that is small is used from this byte on all the same.
    overridden_at: Option<u64>,
    reinjections: VecDeque<Reinjection>,
    /// The most bytes that may be written and not acknowledged.
    send_buffer: u64,
    /// Where data commits into the buffers of subflows: the memory of the send buffer.
    pages: Option<Pages>,
    /// A write found no room since the socket last said that it can be written (`SOCK_NOSPACE`).
    awaits_room: bool,
    /// Whether the application waits until it says so, or writes as soon as anything fits.
    waits_for_a_third: bool,
    /// The application wrote into the buffer since a subflow was given new data.
    write_begins: bool,
    /// One past the last byte that the send buffer took.
    sendable_end: u64,
}

impl Outgoing {
    /// A stream whose send buffer takes any number of bytes at any time.
    pub fn new(send_buffer: u64) -> Self {
        Outgoing { send_buffer, ..Outgoing::default() }
    }

    /// A stream whose send buffer is one of pages, as upstream Linux's is, filled by such an application.
    pub fn in_pages(send_buffer: u64, writer: Writer) -> Self {
        let waits_for_a_third = writer == Writer::WhenWritable;
        Outgoing { pages: Some(Pages::default()), waits_for_a_third, ..Outgoing::new(send_buffer) }
    }

    /// To be called after any change of what is written, and of the send buffer. A buffer of pages wakes an application
    /// that waits, once there is room, and is filled by [`Outgoing::write_next`]. Otherwise the buffer takes what has
    /// room at once.
    #[inline]
    fn use_room(&mut self) {
        if self.pages.is_some() {
            self.wake();
        } else {
            self.fill();
        }
    }

    fn wake(&mut self) {
        self.awaits_room &= self.lacks_room();
    }

    fn fill(&mut self) {
        // What the buffer took it keeps, also when a subflow with its buffer is gone.
        let taken_end = (self.unacked + self.send_buffer).max(self.sendable_end);
        self.sendable_end = self.written.min(taken_end);
    }

    /// To be called where more is acknowledged.
    #[inline]
    fn release(&mut self) {
        if self.pages.is_some() {
            self.release_pages();
        } else {
            self.fill();
        }
    }

    /// Not inlined, because acknowledgments cost more with it where there are no pages.
    #[inline(never)]
    fn release_pages(&mut self) {
        if let Some(pages) = &mut self.pages {
            pages.release(self.unacked, self.unacked == self.next);
        }
        self.wake();
    }

    /// One past the last byte of the fragment with this byte, or of one that would begin with it.
    pub fn fragment_end(&self, offset: u64) -> u64 {
        let known = self.pages.as_ref().and_then(|pages| pages.fragment_end(offset));
        known.unwrap_or(offset + WHOLE_FRAGMENT)
    }

    /// Where the buffer is one of pages: bytes from the next one to the end of its fragment.
    pub fn rest_of_fragment(&self) -> Option<u64> {
        self.pages.is_some().then(|| self.fragment_end(self.next) - self.next)
    }

    /// Whether the application wrote into pages since a subflow was given new data.
    pub fn write_begins(&self) -> bool {
        self.write_begins
    }

    /// The application's next write into pages, if it does not wait for room. Returns whether the buffer took any of
    /// it: up to the first fragment that reaches the buffer's limit.
    pub fn write_next(&mut self) -> bool {
        let waits = self.awaits_room && self.waits_for_a_third;
        let Some(pages) = self.pages.as_mut().filter(|_| !waits) else { return false };
        let before = self.sendable_end;
        let end = (before + WRITE).min(self.written);
        while self.sendable_end < end {
            if pages.used() >= self.send_buffer {
                self.awaits_room = true;
                break;
            }
            self.sendable_end += pages.copy(end - self.sendable_end, self.next < self.sendable_end);
        }
        let wrote = before < self.sendable_end;
        self.write_begins |= wrote;
        wrote
    }

    /// A subflow was given the next `bytes`.
    pub fn give(&mut self, bytes: u64) {
        self.next += bytes;
        self.write_begins = false;
    }

    /// Whether the application found no room for more, or waits for the next request while the socket cannot be
    /// written.
    pub fn writer_waits(&self) -> bool {
        (self.awaits_room || self.sendable_end >= self.written) && self.lacks_room()
    }

    /// Whether the application has bytes for which the send buffer has no room.
    pub fn overflows(&self) -> bool {
        self.written > self.sendable_end
    }

    /// Whether the socket says that it cannot be written: more than two thirds of the send buffer are in use
    /// (`sk_stream_is_writeable`: at least half as much is free as is in use). An application that has written
    /// everything, and polls for the next request, waits for room as well, because `poll` asks for both directions
    /// (`mptcp_poll`).
    pub fn lacks_room(&self) -> bool {
        let used = self.pages.as_ref().map_or(self.sendable_end.saturating_sub(self.unacked), Pages::used);
        3 * used > 2 * self.send_buffer
    }

    pub fn write(&mut self, bytes: u64) {
        debug_assert!(!self.finished, "nothing may be written after the end");
        self.written = self.written.saturating_add(bytes);
        self.use_room();
    }

    /// Withdraws up to `bytes` at the end that no subflow was given; returns how many.
    pub fn withdraw(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.withdrawable());
        self.written -= taken;
        // Bytes that no subflow was given can be withdrawn although the buffer took them.
        if self.sendable_end > self.written {
            self.sendable_end = self.written;
            self.pages.iter_mut().for_each(|pages| pages.truncate(self.written));
        }
        self.use_room();
        taken
    }

    /// Bytes written for which the send buffer has had no room yet.
    pub fn unbuffered(&self) -> u64 {
        self.written.saturating_sub(self.sendable_end.max(self.next))
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
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.sendable_end.saturating_sub(self.next)
    }

    /// Whether the application wrote bytes that no subflow was given, be they in the send buffer or not.
    pub fn has_unsent(&self) -> bool {
        self.next < self.written
    }

    /// Everything that the application wrote was sent and acknowledged.
    pub fn is_idle(&self) -> bool {
        self.unacked == self.written && self.reinjections.is_empty()
    }

    /// Sets the limit of bytes written and not acknowledged.
    pub fn set_buffer(&mut self, bytes: u64) {
        if self.send_buffer != bytes {
            self.send_buffer = bytes;
            self.use_room();
        }
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
    #[inline(never)]
    pub fn on_ack(&mut self, offset: u64) -> bool {
        if self.exhausted() && offset == self.written + 1 {
            let is_new = !self.end_acked;
            self.end_acked = true;
            self.unacked = self.written;
            self.release();
            return is_new;
        }
        if offset > self.next || offset <= self.unacked {
            return false;
        }
        self.unacked = offset;
        self.release();
        true
    }

    /// The peer's window ends at `end`; it is never taken back (RFC 8684 section 3.3.5).
    pub fn on_window(&mut self, end: u64) {
        self.window_end = self.window_end.max(end);
    }

    /// A window of plain TCP counts from here on, from the byte `acked`. Unlike that of Multipath TCP it may shrink
    /// (RFC 9293 section 3.8.6, MUST-34).
    pub fn on_plain_window(&mut self, acked: u64, window: u64) {
        self.window_end = acked + window;
    }

    /// Whether plain TCP holds back the last bytes of a window although nothing is in flight: `space` is less than half
    /// of the `largest` window so far (sender-side silly-window avoidance, RFC 9293 section 3.8.6.2.1, with Fs = 1/2).
    pub fn avoids_silly_window(&self, space: u64, largest: u64) -> bool {
        2 * space < largest && self.overridden_at != Some(self.next)
    }

    /// A small window has not opened for a timeout: the next segment uses what there is (that section's override).
    pub fn override_silly_window(&mut self) {
        self.overridden_at = Some(self.next);
    }

    /// Bytes of a failed subflow: those not acknowledged must be sent again.
    pub fn reinject(&mut self, bytes: Reinjection) {
        if bytes.end > self.unacked {
            self.reinjections.push_back(bytes);
        }
    }

    /// Forgets what was to be sent again for a subflow that works after all.
    pub fn cancel_reinjections(&mut self, of: SubflowId) {
        self.reinjections.retain(|bytes| bytes.avoid != Some(of));
    }

    /// All bytes given to subflows and not acknowledged must be sent again, on any subflow.
    pub fn reinject_everything(&mut self, cause: CopyCause) {
        self.reinjections.clear();
        self.reinject(Reinjection { start: self.unacked, end: self.next, avoid: None, cause });
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

    /// Bytes were given to subflows up to `next`, and acknowledged up to `unacked`.
    fn advance(outgoing: &mut Outgoing, next: u64, unacked: u64) {
        outgoing.next = next;
        assert!(outgoing.on_ack(unacked));
    }

    /// The application writes until it finds no room.
    fn fill(outgoing: &mut Outgoing) {
        while outgoing.write_next() {}
    }

    #[test]
    fn the_last_fragment_may_exceed_the_buffer() {
        let mut outgoing = Outgoing::in_pages(60_000, Writer::AtOnce);
        outgoing.write(100_000);
        fill(&mut outgoing);
        assert_eq!(outgoing.unsent(), 2 * WHOLE_FRAGMENT, "the second one reaches 60 000");
        assert_eq!(outgoing.unbuffered(), 100_000 - 2 * WHOLE_FRAGMENT);
        advance(&mut outgoing, 10_000, 9_999);
        fill(&mut outgoing);
        assert_eq!(outgoing.unsent(), 3 * WHOLE_FRAGMENT - 10_000);
        let mut bytewise = Outgoing::new(60_000);
        bytewise.write(100_000);
        assert_eq!(bytewise.unsent(), 60_000);
        assert!(!bytewise.write_next());
    }

    #[test]
    fn without_a_buffer_nothing_has_room() {
        for mut outgoing in [Outgoing::default(), Outgoing::in_pages(0, Writer::AtOnce)] {
            outgoing.write(1_000);
            assert!(!outgoing.write_next());
            assert_eq!((outgoing.unsent(), outgoing.unbuffered()), (0, 1_000));
            assert!(outgoing.has_unsent() && !outgoing.is_idle());
        }
    }

    #[test]
    fn the_application_writes_64_kib_at_a_time() {
        let mut outgoing = Outgoing::in_pages(1 << 20, Writer::AtOnce);
        outgoing.write(100_000);
        assert!(outgoing.write_next() && outgoing.write_begins());
        assert_eq!(outgoing.unsent(), 65_536);
        outgoing.give(60_000);
        assert!(outgoing.unsent() > 0 && !outgoing.write_begins());
        assert_eq!(outgoing.rest_of_fragment(), Some(2 * WHOLE_FRAGMENT - 60_000));
        outgoing.give(5_536);
        assert_eq!(outgoing.unsent(), 0);
        assert_eq!(outgoing.rest_of_fragment(), Some(WHOLE_FRAGMENT), "of one that would begin");
        assert!(outgoing.write_next());
        assert_eq!(outgoing.unsent(), 34_464, "what is left");
        assert!(!outgoing.write_next());
    }

    #[test]
    fn a_writer_that_found_no_room_writes_again_once_a_third_of_the_buffer_is_free() {
        // 65 456 bytes and the descriptions of two fragments are in use.
        let full = 2 * WHOLE_FRAGMENT;
        let written = |writer| {
            let mut outgoing = Outgoing::in_pages(60_000, writer);
            outgoing.write(1_000_000);
            fill(&mut outgoing);
            outgoing.give(full - 10);
            outgoing
        };
        let mut outgoing = written(Writer::WhenWritable);
        // Two thirds of 60 000 are in use, and a byte; 40 of them describe the fragment that is left.
        assert!(outgoing.on_ack(full - 39_961));
        assert!(!outgoing.write_next(), "a fragment fits, but the socket does not say so");
        assert!(outgoing.on_ack(full - 39_920));
        fill(&mut outgoing);
        assert!(outgoing.unsent() > 10, "it writes until the buffer is full");
        // The same application, writing whenever it looks.
        let mut at_once = written(Writer::AtOnce);
        assert!(at_once.on_ack(full - 59_000));
        assert!(at_once.writer_waits() && at_once.write_next());
    }

    #[test]
    fn a_larger_buffer_wakes_the_writer() {
        let mut outgoing = Outgoing::in_pages(60_000, Writer::WhenWritable);
        outgoing.write(1_000_000);
        fill(&mut outgoing);
        outgoing.set_buffer(98_000);
        assert!(!outgoing.write_next(), "65 536 of 98 000 bytes are in use");
        outgoing.set_buffer(98_304);
        assert!(outgoing.write_next());
    }

    #[test]
    fn a_write_that_fits_does_not_wait() {
        let mut outgoing = Outgoing::in_pages(60_000, Writer::WhenWritable);
        outgoing.write(50_000);
        fill(&mut outgoing);
        assert!(outgoing.lacks_room());
        outgoing.write(5_000);
        fill(&mut outgoing);
        assert_eq!(outgoing.unsent(), 55_000, "no write has found the buffer full yet");
    }

    #[test]
    fn what_is_withdrawn_is_not_sent_although_the_buffer_took_it() {
        let mut outgoing = Outgoing::in_pages(1 << 20, Writer::AtOnce);
        outgoing.write(200_000);
        assert!(outgoing.write_next());
        outgoing.give(30_000);
        assert_eq!(outgoing.withdraw(180_000), 170_000);
        assert!(outgoing.unsent() == 0 && !outgoing.write_next());
        outgoing.write(50);
        assert!(outgoing.write_next());
        assert_eq!(outgoing.unsent(), 50);
    }

    #[test]
    fn room_lacks_until_a_third_of_the_buffer_is_free() {
        let mut outgoing = Outgoing::new(60_000);
        outgoing.write(40_000);
        assert!(!outgoing.lacks_room());
        outgoing.write(60_000);
        assert!(outgoing.lacks_room());
        // Everything has room, but 40 001 of 60 000 are in use.
        advance(&mut outgoing, 60_000, 40_000);
        assert!(outgoing.lacks_room());
        advance(&mut outgoing, 100_000, 60_000);
        assert!(!outgoing.lacks_room());
    }
}
