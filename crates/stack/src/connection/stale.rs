//! Silent subflows as upstream Linux treats them (`net/mptcp`: `__mptcp_retrans`, `mptcp_subflow_get_retrans`,
//! `mptcp_pm_subflow_chk_stale`, `__mptcp_retransmit_pending_data`).
//!
//! The connection has a timer of its own. Its period is the longest time until the timer of an active subflow, as of
//! the last time that there was data to place, whether or not a subflow had room for it. The timer starts when the
//! first write was placed, and every progress of DATA_ACK restarts it. When it fires, each subflow with data in flight
//! is checked for acknowledgments since the last time, and the first unacknowledged fragment is retransmitted on an
//! idle subflow, if there is one. After more than four silent periods a subflow is stale, if another one works: it
//! gets no new data until an acknowledgment arrives on it, and the others retransmit everything.

use super::{Connection, Failover, Mode};
use crate::subflow::{Chunk, Subflow, TICK};
use anabranch_events::{CopyCause, SendKind};
use anabranch_units::{Duration, Instant};

/// Silent periods that a subflow may have (Linux `net.mptcp.stale_loss_cnt`).
const STALE_LOSS_COUNT: u32 = 4;
/// A subflow with fewer silent periods is an alternative (`stale_loss_cnt - 1`).
const ALTERNATIVE_LOSS_COUNT: u32 = STALE_LOSS_COUNT - 1;
/// A backup retransmits the first unacknowledged data once every other subflow had more silent periods than this.
const BACKUP_LOSS_COUNT: u32 = 1;
/// The period while no subflow has a timer (Linux `TCP_RTO_MIN`).
const LEAST_PERIOD: Duration = Duration::from_millis(200);

impl Connection {
    /// Whether subflows fail as in upstream Linux.
    pub(super) fn looks_for_stale(&self) -> bool {
        self.mode() == Mode::Multipath && self.config.transport.failover == Failover::Upstream
    }

    /// There is data to place, whether or not a subflow has room for it: the timer's period follows the subflows'
    /// timers (Linux's `mptcp_subflow_get_send`).
    pub(super) fn note_period(&mut self, now: Instant) {
        if self.config.transport.failover == Failover::Upstream {
            let active = self.subflows.iter().filter(|s| s.is_established() && s.silent_periods == 0);
            let timers = active.filter_map(|s| s.sender.deadline());
            self.progress.period = timers.map(|at| at.since(now)).max().unwrap_or_default();
        }
    }

    /// The timer's period, with a tick: it often races with the repair of a loss, whose acknowledgment comes two round
    /// trips after the last progress.
    pub(super) fn period(&self) -> Duration {
        TICK + if self.progress.period.is_zero() { LEAST_PERIOD } else { self.progress.period }
    }

    /// The connection's timer fired.
    pub(super) fn retransmit_first_unacked(&mut self, now: Instant) {
        let carries = |s: &Subflow| s.is_established() && !s.control_segments.fin_sent();
        let mut least_silent = u32::MAX;
        let (mut idle, mut idle_backup) = (None, None);
        for at in 0..self.subflows.len() {
            if !carries(&self.subflows[at]) {
                continue;
            }
            let subflow = &self.subflows[at];
            if !subflow.sender.board().is_empty() || !subflow.queue.is_empty() {
                if self.check_silence(at) {
                    return;
                }
                least_silent = least_silent.min(self.subflows[at].silent_periods);
            } else if subflow.backup_here || subflow.backup_there {
                idle_backup = idle_backup.or(Some(at));
            } else if subflow.allowed {
                idle = idle.or(Some(at));
            }
        }
        let backup = idle_backup.filter(|_| least_silent > BACKUP_LOSS_COUNT);
        if let Some(at) = idle.or(backup) {
            self.retransmit_fragment(now, at);
        }
    }

    /// Retransmits the first unacknowledged fragment on an idle subflow.
    fn retransmit_fragment(&mut self, now: Instant, at: usize) {
        let (head, next) = (self.outgoing.unacked(), self.outgoing.next);
        let end = next.min(self.outgoing.fragment_end(head));
        if head < end {
            let chunk = Chunk { stream_offset: head, len: end - head, kind: SendKind::Reinjection };
            self.note_copy(now, at, &chunk, None, CopyCause::NoProgress);
            self.queue(now, at, chunk);
        }
    }

    /// Another period has passed with data in flight on the subflow. True if that makes it stale.
    fn check_silence(&mut self, at: usize) -> bool {
        let subflow = self.subflows.change(at);
        if subflow.silent_periods == 0 {
            subflow.silent_since = subflow.last_ack_at;
            subflow.silent_periods = 1;
        } else if subflow.last_ack_at == subflow.silent_since {
            subflow.silent_periods += 1;
            return self.check_stale(at);
        } else {
            subflow.recover();
        }
        false
    }

    fn check_stale(&mut self, at: usize) -> bool {
        let subflow = &self.subflows[at];
        if subflow.potentially_failed || subflow.silent_periods <= STALE_LOSS_COUNT {
            return false;
        }
        let works =
            |s: &Subflow| s.is_established() && !s.potentially_failed && s.silent_periods < ALTERNATIVE_LOSS_COUNT;
        let alternative = self.subflows.iter().enumerate().any(|(i, other)| i != at && works(other));
        if alternative {
            self.subflows.change(at).potentially_failed = true;
            self.outgoing.reinject_everything(CopyCause::Stale);
        }
        alternative
    }
}
