//! What keeps each path from carrying more at this moment, for hosts that explain where time went.
//!
//! Nothing here is kept up to date: a host that asks gets an answer, and one that does not pays nothing.

use super::{Commit, Connection, Mode};
use crate::view::{Phase, SubflowView};
use anabranch_events::{Limit, PathLimit};
use anabranch_units::{Duration, Instant, PathId};

impl Connection {
    /// What limits each of the paths, in the order of [`Config::paths`](super::Config::paths). To be called when
    /// everything that may be sent was sent ([`Connection::transmit`]).
    pub fn limits(&self, now: Instant) -> Vec<PathLimit> {
        let views = self.views();
        let of_path = |path: PathId| {
            let on_path = views.iter().enumerate().filter(|(_, view)| view.path == path && view.established);
            let Some((at, view)) = on_path.max_by_key(|(_, view)| view.id) else {
                return PathLimit {
                    path,
                    limit: Limit::NotJoined,
                    cwnd: 0.0,
                    slow_start: true,
                    outstanding: 0,
                    srtt: Duration::ZERO,
                };
            };
            PathLimit {
                path,
                limit: self.limit_of(now, at, &views),
                cwnd: view.cwnd.as_f64(),
                slow_start: view.cwnd < view.ssthresh,
                outstanding: view.outstanding,
                srtt: view.srtt,
            }
        };
        self.config.paths.iter().map(|path| of_path(path.id)).collect()
    }

    fn limit_of(&self, now: Instant, at: usize, all: &[SubflowView]) -> Limit {
        let view = &all[at];
        let others = || all.iter().filter(|other| other.id != view.id);
        if view.potentially_failed {
            return Limit::Failed;
        }
        if !view.allowed {
            return Limit::Policy;
        }
        if view.backup && others().any(|other| other.usable() && !other.backup) {
            return Limit::Backup;
        }
        let (unsent, repairs) = (self.outgoing.unsent(), matches!(view.phase, Phase::Recovery | Phase::Loss));
        // What commits into the buffer cannot change to another subflow.
        let committed = self.config.transport.commit == Commit::IntoBuffer && others().any(|other| other.queued > 0);
        if view.queued == 0 && view.unrepaired == 0 && unsent == 0 {
            return match committed {
                true => Limit::Scheduler,
                false if self.outgoing.withdrawable() > 0 => Limit::SendBuffer,
                false => Limit::NoData,
            };
        }
        let paced_until = self.subflows[at].sender.paced_until();
        let cap_until = self.pace_cap.until();
        let cwnd_has_room = view.in_flight < view.cwnd.floor();
        if cwnd_has_room && cap_until > now && cap_until >= paced_until {
            return Limit::PaceCap;
        }
        let packet = view.queued.min(u64::from(view.mss));
        if cwnd_has_room && packet > 0 && view.unrepaired == 0 && !self.subflow_window_allows(at, packet) {
            return Limit::ReceiveWindow;
        }
        if view.queued > 0 || view.room() == 0 || view.unrepaired > 0 {
            return if repairs { Limit::Recovery } else { Limit::Window };
        }
        let space = self.outgoing.window_end().saturating_sub(self.outgoing.next);
        let window_blocks = space < unsent && space < u64::from(view.mss);
        if window_blocks && self.mode() != Mode::Negotiating {
            // The window is full of data that another subflow has yet to send.
            return if committed { Limit::Scheduler } else { Limit::ReceiveWindow };
        }
        if paced_until > now || !self.waits.scheduler_waiting { Limit::Window } else { Limit::Scheduler }
    }
}
