//! The sending half of a connection: bytes written by the application, acknowledged at the data level, and to be sent
//! again.

use super::Writer;
use crate::subflow::Reinjection;
use anabranch_events::CopyCause;
use anabranch_units::SubflowId;
use std::collections::VecDeque;

/// Linux takes the application's bytes in fragments of at most this many: the pages that it takes at once (32 KiB),
/// less the description of the fragment (`struct mptcp_data_frag`).
const FRAGMENT: u64 = 32_768 - 40;

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
    /// Whether the application's bytes are taken in whole fragments, the last of which may exceed the send buffer.
    whole_fragments: bool,
    /// A write found no room, and the application waits until the socket says that it can write again (`SOCK_NOSPACE`).
    awaits_room: bool,
    /// Whether it waits so, or writes as soon as anything fits.
    waits_for_a_third: bool,
    /// Where fragments are counted from: the first byte that was written when everything before was acknowledged.
    first_fragment: u64,
    /// One past the last byte of the application's current write, where data commits into the buffer.
    write_end: u64,
    /// One past the last byte that the send buffer took.
    sendable_end: u64,
}

impl Outgoing {
    /// A stream whose send buffer takes any number of bytes at any time.
    pub fn new(send_buffer: u64) -> Self {
        Outgoing { send_buffer, ..Outgoing::default() }
    }

    /// A stream whose send buffer takes whole fragments, as upstream Linux's does, from such an application.
    pub fn in_fragments(send_buffer: u64, writer: Writer) -> Self {
        let waits_for_a_third = writer == Writer::WhenWritable;
        Outgoing { whole_fragments: true, waits_for_a_third, ..Outgoing::new(send_buffer) }
    }

    /// The application writes, if it does not wait for room: to be called after any change of what is written, of what
    /// is acknowledged, and of the send buffer.
    fn fill_buffer(&mut self) {
        if self.awaits_room && self.lacks_room() {
            // Bytes that no subflow was given can be withdrawn although the buffer took them.
            self.sendable_end = self.sendable_end.min(self.written);
            return;
        }
        // What the buffer took it keeps, also when a subflow with its buffer is gone.
        let taken_end = self.room_end().max(self.sendable_end);
        self.sendable_end = self.written.min(taken_end);
        self.awaits_room = self.waits_for_a_third && self.written > taken_end;
    }

    /// One past the last byte for which the send buffer has room.
    fn room_end(&self) -> u64 {
        let limit = self.unacked + self.send_buffer;
        if self.whole_fragments && self.send_buffer > 0 { self.fragment_end(limit - 1) } else { limit }
    }

    /// One past the last byte of the fragment with this byte, whether or not all of it is written.
    pub fn fragment_end(&self, offset: u64) -> u64 {
        debug_assert!(offset >= self.first_fragment, "the fragment was acknowledged and is gone");
        self.first_fragment + ((offset - self.first_fragment) / FRAGMENT + 1) * FRAGMENT
    }

    /// Bytes from the next one to the end of its fragment, whether or not all of them are written.
    pub fn rest_of_fragment(&self) -> u64 {
        self.fragment_end(self.next) - self.next
    }

    /// Whether everything of the current write was given to subflows.
    pub fn write_placed(&self) -> bool {
        self.next >= self.write_end
    }

    /// The application's next write begins if the last one was given to subflows; returns the bytes of it that were
    /// not.
    pub fn begin_write(&mut self) -> u64 {
        if self.write_placed() {
            self.write_end = (self.next + WRITE).min(self.sendable_end);
        }
        self.write_end.saturating_sub(self.next)
    }

    /// No subflow takes more now: meanwhile the application writes as much as there is room for.
    pub fn write_all(&mut self) {
        self.write_end = self.sendable_end.max(self.next);
    }

    /// Whether the application found no room for more, or waits for the next request while the socket cannot be
    /// written.
    pub fn writer_waits(&self) -> bool {
        self.write_end >= self.sendable_end && self.lacks_room()
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
        3 * self.sendable_end.saturating_sub(self.unacked) > 2 * self.send_buffer
    }

    pub fn write(&mut self, bytes: u64) {
        debug_assert!(!self.finished, "nothing may be written after the end");
        if self.unacked == self.written {
            self.first_fragment = self.written;
        }
        self.written = self.written.saturating_add(bytes);
        self.fill_buffer();
    }

    /// Withdraws up to `bytes` at the end that no subflow was given; returns how many.
    pub fn withdraw(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.withdrawable());
        self.written -= taken;
        self.fill_buffer();
        self.write_end = self.write_end.min(self.written);
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

    /// Everything that may be sent was sent and acknowledged.
    pub fn is_idle(&self) -> bool {
        self.next == self.unacked && self.unsent() == 0 && self.reinjections.is_empty()
    }

    /// Sets the limit of bytes written and not acknowledged.
    pub fn set_buffer(&mut self, bytes: u64) {
        if self.send_buffer != bytes {
            self.send_buffer = bytes;
            self.fill_buffer();
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
    pub fn on_ack(&mut self, offset: u64) -> bool {
        if self.exhausted() && offset == self.written + 1 {
            let is_new = !self.end_acked;
            self.end_acked = true;
            self.unacked = self.written;
            self.fill_buffer();
            return is_new;
        }
        if offset > self.next || offset <= self.unacked {
            return false;
        }
        self.unacked = offset;
        self.fill_buffer();
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

    #[test]
    fn the_last_fragment_may_exceed_the_buffer() {
        let mut outgoing = Outgoing::in_fragments(60_000, Writer::AtOnce);
        outgoing.write(100_000);
        assert_eq!(outgoing.unsent(), 2 * FRAGMENT, "65 456 bytes are the fewest whole fragments with 60 000");
        advance(&mut outgoing, 10_000, 10_000);
        assert_eq!(outgoing.unsent(), 3 * FRAGMENT - 10_000, "70 000 lies in the third one");
        let mut bytewise = Outgoing::new(60_000);
        bytewise.write(100_000);
        assert_eq!(bytewise.unsent(), 60_000);
    }

    #[test]
    fn fragments_begin_anew_after_everything_was_acknowledged() {
        let mut outgoing = Outgoing::in_fragments(1 << 20, Writer::AtOnce);
        outgoing.write(10_000);
        assert_eq!(outgoing.fragment_end(0), 32_728);
        advance(&mut outgoing, 10_000, 9_999);
        outgoing.write(10_000);
        assert_eq!(outgoing.rest_of_fragment(), 22_728, "the fragment goes on while a byte of it is unacknowledged");
        advance(&mut outgoing, 20_000, 20_000);
        outgoing.write(10_000);
        assert_eq!(outgoing.fragment_end(20_000), 52_728);
        assert_eq!(outgoing.rest_of_fragment(), 32_728);
    }

    #[test]
    fn without_a_buffer_nothing_has_room_and_nothing_overflows() {
        for outgoing in [Outgoing::default(), Outgoing::in_fragments(0, Writer::AtOnce)] {
            assert_eq!((outgoing.unsent(), outgoing.rest_of_fragment()), (0, FRAGMENT));
        }
    }

    #[test]
    fn the_application_writes_64_kib_at_a_time_while_subflows_take_them() {
        let mut outgoing = Outgoing::in_fragments(1 << 20, Writer::AtOnce);
        outgoing.write(200_000);
        assert_eq!(outgoing.begin_write(), 65_536);
        outgoing.next = 30_000;
        assert!(!outgoing.write_placed());
        assert_eq!(outgoing.begin_write(), 35_536, "the write under way goes on");
        outgoing.next = 65_536;
        assert!(outgoing.write_placed());
        assert_eq!(outgoing.begin_write(), 65_536, "the next one");
        // No subflow takes more, so that the application fills the buffer.
        outgoing.write_all();
        outgoing.next = 100_000;
        assert_eq!(outgoing.begin_write(), 100_000);
        let mut small = Outgoing::in_fragments(40_000, Writer::AtOnce);
        small.write(200_000);
        assert_eq!(small.begin_write(), 2 * FRAGMENT, "no more than there is room for");
        small.next = 2 * FRAGMENT;
        assert_eq!(small.begin_write(), 0);
    }

    #[test]
    fn a_writer_that_found_no_room_writes_again_once_a_third_of_the_buffer_is_free() {
        let mut outgoing = Outgoing::in_fragments(60_000, Writer::WhenWritable);
        outgoing.write(1_000_000);
        let full = 2 * FRAGMENT;
        assert_eq!(outgoing.unsent(), full);
        // 25 456 bytes are acknowledged, so that 40 000 are in use: just two thirds of 60 000.
        advance(&mut outgoing, full, full - 40_001);
        assert_eq!(outgoing.unsent(), 0, "a fragment fits, but the socket does not say so");
        advance(&mut outgoing, full, full - 40_000);
        assert_eq!(outgoing.unsent(), FRAGMENT, "it writes until the buffer is full");
        // The same application, writing whenever it looks.
        let mut at_once = Outgoing::in_fragments(60_000, Writer::AtOnce);
        at_once.write(1_000_000);
        advance(&mut at_once, full, full - 59_999);
        assert_eq!(at_once.unsent(), FRAGMENT);
    }

    #[test]
    fn a_larger_buffer_wakes_the_writer_and_a_withdrawal_does_not() {
        let mut outgoing = Outgoing::in_fragments(60_000, Writer::WhenWritable);
        outgoing.write(1_000_000);
        advance(&mut outgoing, 2 * FRAGMENT, 1);
        outgoing.set_buffer(90_000);
        assert_eq!(outgoing.unsent(), 0, "65 455 of 90 000 bytes are in use");
        outgoing.set_buffer(100_000);
        assert_eq!(outgoing.unsent(), 2 * FRAGMENT, "100 001 lies in the fourth fragment");
        assert_eq!(outgoing.withdraw(1_000_000), 1_000_000 - 2 * FRAGMENT);
        assert_eq!(outgoing.unsent(), 0, "what is withdrawn is not sent, although the buffer took it");
    }

    #[test]
    fn a_write_that_fits_does_not_wait() {
        let mut outgoing = Outgoing::in_fragments(60_000, Writer::WhenWritable);
        outgoing.write(50_000);
        assert!(outgoing.lacks_room());
        outgoing.write(5_000);
        assert_eq!(outgoing.unsent(), 55_000, "no write has found the buffer full yet");
    }

    #[test]
    fn a_write_ends_where_its_bytes_are_withdrawn() {
        let mut outgoing = Outgoing::in_fragments(1 << 20, Writer::AtOnce);
        outgoing.write(200_000);
        outgoing.begin_write();
        outgoing.next = 30_000;
        assert_eq!(outgoing.withdraw(180_000), 170_000);
        assert!(outgoing.write_placed());
        assert_eq!(outgoing.begin_write(), 0);
        outgoing.write(50);
        assert_eq!(outgoing.begin_write(), 50);
    }

    #[test]
    fn room_lacks_until_a_third_of_the_buffer_is_free() {
        let mut outgoing = Outgoing::in_fragments(60_000, Writer::AtOnce);
        outgoing.write(40_000);
        assert!(!outgoing.lacks_room());
        outgoing.write(60_000);
        assert!(outgoing.lacks_room());
        // Everything has room, but 40 001 of 60 000 are in use.
        advance(&mut outgoing, 100_000, 59_999);
        assert!(outgoing.lacks_room());
        advance(&mut outgoing, 100_000, 60_000);
        assert!(!outgoing.lacks_room());
    }
}
