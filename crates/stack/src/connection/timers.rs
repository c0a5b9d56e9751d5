//! The connection's timers by name: when they are due, and what happens then.
//!
//! No timer is stored twice: the table asks the parts of the connection, each of which keeps its own deadline.

use super::Connection;
use super::state::Waits;
use crate::congestion::Siblings;
use crate::subflow::{State, TimerOutcome};
use anabranch_units::{Duration, Instant};

/// A connection without any subflow is given up after this long (Linux's close timeout).
const CLOSE_TIMEOUT: Duration = Duration::from_secs(60);

/// Guards against data that is acknowledged on every subflow but never at the connection level.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    pub deadline: Option<Instant>,
    pub backoff: u32,
    /// The first unacknowledged data was retransmitted on a faster subflow up to this offset.
    pub relieved_at: Option<u64>,
    /// Upstream Linux's period between two checks of the first unacknowledged data.
    pub period: Duration,
    pub opportunistic: u64,
    /// Time since which the connection has no subflow.
    pub without_subflow_since: Option<Instant>,
}

/// A timer of the connection, beside those of its subflows.
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
            if self.deadline(timer).is_some_and(|at| at <= now) {
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
            self.subflows[at].state = State::Closed(anabranch_events::CloseReason::TimedOut);
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
            Timer::Scheduler => self.waits.scheduler_until = None,
            Timer::Silence => self.foresight.until = None,
            Timer::Close => self.end_aborted(now),
            // What is due is sent by `poll_transmit` and by the last steps of `handle_timeout`.
            Timer::Pacing | Timer::Join | Timer::Announcement => {}
        }
    }

    /// When to call [`Connection::handle_timeout`], and [`Connection::poll_transmit`] after it; `None` if no timer
    /// runs.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let next = self.subflows.deadline().min(self.own_deadline());
        (next != Instant::FAR_FUTURE).then_some(next)
    }

    /// A time that is not after that of [`Connection::poll_timeout`], and is found with less work; [`Instant::FAR_FUTURE`] only if no
    /// timer runs. Nearly every packet moves a timer to a later time, which this ignores. A host that waits for this time
    /// calls [`Connection::find_timeout`] when it has come, and waits again if nothing is due.
    #[inline]
    pub fn timeout_bound(&mut self) -> Instant {
        self.subflows.lower_earliest().min(self.own_deadline())
    }

    /// The time of [`Connection::poll_timeout`], [`Instant::FAR_FUTURE`] for none. [`Connection::timeout_bound`] begins there again.
    pub fn find_timeout(&mut self) -> Instant {
        self.subflows.find_earliest().min(self.own_deadline())
    }

    /// When the next timer of the connection itself is due; [`Instant::FAR_FUTURE`] if none runs.
    #[inline]
    fn own_deadline(&self) -> Instant {
        let or_never = |deadline: Option<Instant>| deadline.unwrap_or(Instant::FAR_FUTURE);
        // Each timer by name: a loop over `Timer::ALL` would put all of them into a list first.
        let earliest = or_never(self.deadline(Timer::Progress))
            .min(or_never(self.deadline(Timer::Policy)))
            .min(or_never(self.deadline(Timer::Scheduler)))
            .min(or_never(self.deadline(Timer::Silence)))
            .min(or_never(self.deadline(Timer::Close)))
            .min(or_never(self.deadline(Timer::Pacing)))
            .min(or_never(self.deadline(Timer::Join)))
            .min(or_never(self.deadline(Timer::Announcement)));
        debug_assert_eq!(Timer::ALL.iter().map(|timer| or_never(self.deadline(*timer))).min(), Some(earliest));
        earliest
    }

    /// When a timer is due; `None` if it does not run. Inlined, so that no jump stands between one timer and the next.
    #[inline(always)]
    fn deadline(&self, timer: Timer) -> Option<Instant> {
        let Waits { scheduler_until, paced_until, .. } = self.waits;
        match timer {
            Timer::Progress => self.progress.deadline,
            Timer::Policy => self.policy_deadline(),
            Timer::Scheduler => scheduler_until,
            Timer::Silence => self.foresight.until,
            Timer::Close => self.progress.without_subflow_since.map(|since| since + CLOSE_TIMEOUT),
            Timer::Pacing => paced_until,
            Timer::Join => self.join_deadline(),
            Timer::Announcement => self.announcement_deadline(),
        }
    }

    /// The peer acknowledged data.
    pub(super) fn on_progress(&mut self, now: Instant) {
        self.progress.backoff = 0;
        self.progress.deadline = None;
        self.arm_progress(now);
    }

    /// Starts the timer that watches data in flight, an unacknowledged DATA_FIN, or a closed window.
    pub(super) fn arm_progress(&mut self, now: Instant) {
        let waiting = self.outgoing.next > self.outgoing.unacked()
            || self.outgoing.unsent() > 0
            || (self.data_fin_sent && self.outgoing.end_pending());
        if !waiting || self.closed || !self.established {
            self.progress.deadline = None;
        } else if self.progress.deadline.is_none() {
            let slowest = self.subflows.iter().map(|s| s.sender.rtt().base_rto()).max();
            let upstream = self.looks_for_stale() && self.outgoing.next > self.outgoing.unacked();
            if upstream {
                self.progress.deadline = Some(now + self.period());
                return;
            }
            // Twice the slowest subflow's timeout: the subflows' own retransmissions come first.
            let wait = slowest.unwrap_or(Duration::from_secs(1)) * 2;
            // Linux retransmits DATA_FIN at the pace of its timeout; a window may stay closed for long.
            let only_end = self.outgoing.next == self.outgoing.unacked() && self.outgoing.unsent() == 0;
            let most = if only_end { 2 } else { 6 };
            self.progress.deadline = Some(now + (wait * (1 << self.progress.backoff.min(most))));
        }
    }
}
