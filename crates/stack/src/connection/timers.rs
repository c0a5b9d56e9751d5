//! The connection's timers by name: when they are due, and what happens then.
//!
//! No timer is stored twice: the table asks the parts of the connection, each of which keeps its own deadline.

use super::Connection;
use super::deadline::Deadline;
use crate::congestion::Siblings;
use crate::subflow::{State, TimerOutcome};
use anabranch_units::{Duration, Instant};

/// Guards against data that is acknowledged on every subflow but never at the connection level.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    pub deadline: Deadline,
    pub backoff: u32,
    /// The first unacknowledged data was retransmitted on a faster subflow up to this offset.
    pub relieved_at: Option<u64>,
    /// Upstream Linux's period between two checks of the first unacknowledged data.
    pub period: Duration,
    pub opportunistic: u64,
    /// When a connection that has lost its last subflow is given up.
    pub close_at: Deadline,
}

/// A timer of the connection, in addition to those of its subflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// Data, DATA_FIN or the window made no progress.
    Progress,
    /// The path policy decides again.
    Policy,
    /// The scheduler wanted to be asked again.
    Scheduler,
    /// A subflow may be silent for too long.
    Silence,
    /// The connection has had no subflow for too long.
    Close,
    /// The pacing of a subflow lets its next packet leave.
    Pacing,
    /// The path manager retries a join.
    Join,
    /// An address is to be advertised again.
    Announcement,
}

impl Timer {
    /// In the order in which timers that are due at the same time run.
    const ALL: [Timer; 8] = [
        Timer::Progress,
        Timer::Policy,
        Timer::Scheduler,
        Timer::Silence,
        Timer::Close,
        Timer::Pacing,
        Timer::Join,
        Timer::Announcement,
    ];
}

impl Connection {
    /// Runs the timers that are due; to be called at the time of [`Connection::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        for at in 0..self.subflows.len() {
            self.handle_subflow_timeout(now, at);
        }
        for timer in Timer::ALL {
            if self.deadline(timer).is_due(now) {
                self.on_timer(now, timer);
            }
        }
        self.send_announcements(now);
        self.remove_dead(now);
        self.open_missing_subflows(now);
    }

    fn handle_subflow_timeout(&mut self, now: Instant, at: usize) {
        let subflow = &self.subflows[at];
        if subflow.handshake.due.is_some_and(|due| due <= now) && subflow.handshake_failed() {
            self.subflows.change(at).state = State::Closed(anabranch_events::CloseReason::TimedOut);
            return;
        }
        if subflow.sender.deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        let (subflow, views) = self.subflows.with_views(at);
        let (timer, outcome) = subflow.sender.on_timer(now, Siblings::new(views, at));
        self.report(now, at, &outcome);
        if let TimerOutcome::Timeout(timeout) = timer {
            self.on_subflow_timeout(now, at, timeout);
        }
    }

    fn on_timer(&mut self, now: Instant, timer: Timer) {
        match timer {
            Timer::Progress => self.on_no_progress(now),
            Timer::Policy => self.apply_policy(now),
            Timer::Scheduler => self.waits.scheduler_until = Deadline::NEVER,
            Timer::Silence => self.forecasting.until = Deadline::NEVER,
            Timer::Close => self.end_aborted(now),
            // What is due is sent by `poll_transmit` and by the last steps of `handle_timeout`.
            Timer::Pacing | Timer::Join | Timer::Announcement => {}
        }
    }

    /// When to call [`Connection::handle_timeout`], and [`Connection::poll_transmit`] after it; `None` if no timer
    /// runs.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let next = self.next_timeout();
        (next != Instant::FAR_FUTURE).then_some(next)
    }

    /// The time of [`Connection::poll_timeout`]; [`Instant::FAR_FUTURE`] for none.
    #[inline]
    pub fn next_timeout(&self) -> Instant {
        self.subflows.deadline().min(self.own_deadline())
    }

    /// When the next timer of the connection itself is due; [`Instant::FAR_FUTURE`] if none runs.
    #[inline]
    fn own_deadline(&self) -> Instant {
        // Each timer by name: a loop over `Timer::ALL` would put all of them into a list first.
        let earliest = self
            .deadline(Timer::Progress)
            .time()
            .min(self.deadline(Timer::Policy).time())
            .min(self.deadline(Timer::Scheduler).time())
            .min(self.deadline(Timer::Silence).time())
            .min(self.deadline(Timer::Close).time())
            .min(self.deadline(Timer::Pacing).time())
            .min(self.deadline(Timer::Join).time())
            .min(self.deadline(Timer::Announcement).time());
        debug_assert_eq!(Timer::ALL.iter().map(|timer| self.deadline(*timer).time()).min(), Some(earliest));
        earliest
    }

    /// When a timer is due. Inlined, so that no jump stands between one timer and the next.
    #[inline(always)]
    fn deadline(&self, timer: Timer) -> Deadline {
        match timer {
            Timer::Progress => self.progress.deadline,
            Timer::Policy => self.policy_deadline(),
            Timer::Scheduler => self.waits.scheduler_until,
            Timer::Silence => self.forecasting.until,
            Timer::Close => self.progress.close_at,
            Timer::Pacing => self.waits.paced_until,
            Timer::Join => self.join_deadline().into(),
            Timer::Announcement => self.announcement_deadline().into(),
        }
    }

    /// The peer acknowledged data.
    pub(super) fn on_progress(&mut self, now: Instant) {
        self.progress.backoff = 0;
        self.progress.deadline = Deadline::NEVER;
        self.arm_progress(now);
    }

    /// Starts the timer that watches data in flight, an unacknowledged DATA_FIN, or a closed window.
    pub(super) fn arm_progress(&mut self, now: Instant) {
        let waiting = self.outgoing.next > self.outgoing.unacked()
            || self.outgoing.has_unsent()
            || (self.data_fin_sent && self.outgoing.end_pending());
        if !waiting || self.closed || !self.established {
            self.progress.deadline = Deadline::NEVER;
        } else if !self.progress.deadline.runs() {
            let slowest = self.subflows.iter().map(|s| s.sender.rtt().base_rto()).max();
            let upstream = self.looks_for_stale() && self.outgoing.next > self.outgoing.unacked();
            if upstream {
                self.progress.deadline = Deadline::at(now + self.period());
                return;
            }
            // Twice the slowest subflow's timeout: the subflows' own retransmissions come first.
            let wait = slowest.unwrap_or(Duration::from_secs(1)) * 2;
            // Linux retransmits DATA_FIN at the pace of its timeout; a window may stay closed for long.
            let only_end = self.outgoing.next == self.outgoing.unacked() && !self.outgoing.has_unsent();
            let most = if only_end { 2 } else { 6 };
            self.progress.deadline = Deadline::at(now + (wait * (1 << self.progress.backoff.min(most))));
        }
    }
}
