//! Segments that are withheld now and then, to find out whether the peer acknowledges what it has not received
//! (Sherwood, Bhattacharjee and Braud, "Misbehaving TCP receivers can cause Internet-wide congestion collapse", CCS
//! 2005).
//!
//! A withheld segment counts as sent, but stays in the host. An honest receiver misses it: the first selective
//! acknowledgment beyond it, or the lack of any for the time of a loss probe, has it sent. The window does not react,
//! because nothing was lost. A peer that acknowledges it before that lies about what it received, and so could have any
//! rate sent to it, whatever the path carries.

use super::super::scoreboard::Record;
use super::{Acknowledgment, Sender};
use anabranch_units::Instant;
use core::num::NonZeroU32;

/// A segment that counts as sent and has not left the host.
#[derive(Clone, Copy, Debug)]
struct Withheld {
    start: u64,
    end: u64,
    /// It is to be sent now.
    due: bool,
}

/// See the module's description. Off until the first packet is [counted](Withholding::count_down).
#[derive(Clone, Debug, Default)]
pub(crate) struct Withholding {
    /// Packets with new data up to the next one that is withheld; `None` before it is drawn.
    countdown: Option<u64>,
    outstanding: Option<Withheld>,
    /// One past the last segment that was withheld and then sent.
    released: u64,
}

impl Withholding {
    /// Counts a packet with new data. Returns whether it is the turn of one that is withheld. From one to the next
    /// there are `interval` packets on average, and fewer than twice as many; each number is as likely, so that the
    /// peer cannot predict it.
    pub fn count_down(&mut self, interval: NonZeroU32, draw: impl FnOnce() -> u64) -> bool {
        let most = 2 * u64::from(interval.get()) - 1;
        let left = self.countdown.unwrap_or_else(|| 1 + draw() % most).saturating_sub(1);
        self.countdown = Some(left);
        left == 0
    }

    /// Whether a segment has not left the host.
    #[inline]
    pub fn is_outstanding(&self) -> bool {
        self.outstanding.is_some()
    }

    /// Whether the packet that begins here has not left the host.
    pub fn holds(&self, start: u64) -> bool {
        self.outstanding.is_some_and(|withheld| withheld.start == start)
    }

    /// Whether a segment is to be sent that was withheld.
    pub fn is_due(&self) -> bool {
        self.outstanding.is_some_and(|withheld| withheld.due)
    }

    /// The peer says that it has something of a segment that has not left the host.
    fn is_claimed(&self, ack: &Acknowledgment<'_>) -> bool {
        self.outstanding.is_some_and(|withheld| {
            let covers = |(start, end): &(u64, u64)| *start < withheld.end && *end > withheld.start;
            ack.acked > withheld.start || ack.blocks.iter().any(covers)
        })
    }

    /// The packet that begins here leaves the host.
    pub fn on_sent(&mut self, start: u64) {
        if self.holds(start) {
            self.outstanding = None;
        }
    }

    /// Whether a segment that was withheld is why something before `acked` and after is missing.
    pub fn delays(&self, acked: u64) -> bool {
        self.released > acked
    }
}

impl Sender {
    /// Whether the next packet with new data may be withheld: one at a time, while no timeout and no size of packets is
    /// in doubt.
    pub fn may_withhold(&self) -> bool {
        let calm = self.timeouts == 0 && self.phase != crate::view::Phase::Loss && !self.size.asks();
        calm && !self.withholding.is_outstanding() && !self.withholding.delays(self.acked)
    }

    /// The packet sent last, which begins at `start`, does not leave the host.
    pub fn withhold(&mut self, start: u64) {
        self.withholding.countdown = None;
        self.withholding.outstanding = Some(Withheld { start, end: self.next, due: false });
    }

    /// Whether the peer acknowledges what has not left the host; it is found out once.
    pub(super) fn finds_claim(&mut self, ack: &Acknowledgment<'_>) -> bool {
        let claimed = self.withholding.is_claimed(ack);
        if claimed {
            self.withholding.outstanding = None;
        }
        claimed
    }

    /// Something beyond the withheld segment arrived: the peer misses it.
    pub(super) fn release_missed(&mut self, now: Instant) {
        let beyond = self.board.highest_sacked();
        if self.withholding.outstanding.is_some_and(|withheld| withheld.end <= beyond) {
            self.release_withheld(now);
        }
    }

    /// Has the withheld segment sent. It counts as sent now, for the first time; a round trip or an order of arrival is
    /// not taken from it. False if there is none, or if it counts as lost and so is sent again anyway.
    pub(in crate::subflow) fn release_withheld(&mut self, now: Instant) -> bool {
        let Some(withheld) = self.withholding.outstanding.filter(|withheld| !withheld.due) else { return false };
        let position = self.board.position_of(withheld.start);
        let lost = position.and_then(|position| self.board.get(position)).is_none_or(Record::unrepaired);
        let Some(position) = position.filter(|_| !lost) else { return false };
        let state = self.rate.on_sent(now, false, self.board.in_flight(), self.board.marked());
        self.board.mark_retransmitted(position, now, state);
        self.withholding.outstanding = Some(Withheld { due: true, ..withheld });
        self.withholding.released = withheld.end;
        if position == self.board.first_position() {
            self.arm_timeout(now);
        }
        true
    }

    /// Whether everything up to the withheld segment arrived, so that a timeout says nothing about the network.
    pub(in crate::subflow) fn waits_for_withheld(&self) -> bool {
        self.board.front().is_some_and(|front| self.withholding.holds(front.start))
    }

    /// The withheld segment that is to be sent now, whatever the window and the pace are: it counts in both since it
    /// was withheld.
    pub fn next_withheld(&self) -> Option<(u64, Record)> {
        let withheld = self.withholding.outstanding.filter(|withheld| withheld.due)?;
        let position = self.board.position_of(withheld.start)?;
        Some((position, *self.board.get(position)?))
    }
}
