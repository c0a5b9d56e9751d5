//! A subflow on which no acknowledgment arrives although one is due.
//!
//! ```text
//! expected = max(oldest transmission + srtt, drain + m, last acknowledgment)
//! silent at  max(expected + max(3/4 · srtt, 4 rttvar, 60 ms) + 2 mss / r (+ 40 ms if only one packet is out),
//!                max(oldest transmission, last acknowledgment) + min(3 lateness, 0.2 s))
//! ```
//! Lateness: by how much an acknowledgment of the last minute came behind `expected`, at most; unknown, and so counted
//! as 0.2 s, during the first ten seconds.
//!
//! A path that dies silently shows it by what does not come back. The retransmission timeout waits for 200 ms more than
//! a round trip; a video on two paths need not wait for that, because the price of a false alarm is a second copy of
//! what is in flight there, and any acknowledgment of data ends it. LTE's schedulers pause for up to 0.2 s without
//! being gone, several times a minute: over recordings of it (Winstein et al., NSDI 2013) the first line alone gave up
//! working paths 45 times in 40 minutes. The connection probes a path that was given up, and what was measured before
//! an outage is forgotten (`forecasting.rs`). The two segments and the 40 ms are a receiver's delayed acknowledgment
//! (`forecast.rs`).

use super::super::{ForecastReason, Silence, View};
use super::forecast::{ACKED_TOGETHER, DELAYED_ACK};
use super::{Candidate, Earliest, Terms};
use crate::view::SubflowView;
use anabranch_units::{Duration, Instant};

/// The part of a smoothed round trip that an acknowledgment may be overdue: half of it gives false alarms when delays
/// jitter by 10 ms, a whole one lengthens the gap after a cut for nothing.
const OVERDUE: f64 = 0.75;
/// The least time that it may be overdue: on paths with a round trip of 20 ms, 20 ms gave false alarms for up to 0.5 %
/// of the bytes when delays jitter by 10 ms, 45 ms for up to 0.35 %, 60 ms for up to 0.1 %. After a cut there, gaps are
/// 0.02 to 0.05 s longer.
const LEAST_OVERDUE: Duration = Duration::from_millis(60);

impl<T: Terms> Earliest<T> {
    /// The subflow that is silent for longest, and when the next one will be.
    pub(super) fn find_silent(&mut self, view: &View<'_>) -> Silence {
        let now = view.connection.now;
        for subflow in view.subflows {
            self.paths.of(subflow.id).note_state(now, subflow.works());
        }
        let working = view.subflows.iter().filter(|s| s.works()).count();
        if working < 2 {
            return Silence::default();
        }
        let mut first: Option<(usize, Instant)> = None;
        for (position, subflow) in view.subflows.iter().enumerate().filter(|(_, s)| s.works()) {
            let Some(deadline) = self.silent_at(now, subflow) else { continue };
            if first.is_none_or(|(_, earliest)| deadline < earliest) {
                first = Some((position, deadline));
            }
        }
        match first {
            Some((position, deadline)) if deadline <= now => {
                let subflow = &view.subflows[position];
                let choice = Candidate { position, arrival: self.forecast(now, subflow).of(u64::MAX) };
                self.explanation = Some(self.forecast_event(&choice, subflow, None, ForecastReason::Silent));
                Silence { give_up: Some(position), until: None }
            }
            other => Silence { give_up: None, until: other.map(|(_, deadline)| deadline) },
        }
    }

    /// When the subflow will have been silent for too long; none while it owes nothing.
    fn silent_at(&mut self, now: Instant, subflow: &SubflowView) -> Option<Instant> {
        let subflow = &self.terms.seen(subflow);
        let path = self.paths.of(subflow.id);
        let Some(oldest) = subflow.oldest_sent.filter(|_| subflow.outstanding > 0 && !subflow.srtt.is_zero()) else {
            path.lateness.rest();
            return None;
        };
        let rate = path.rate(now, subflow);
        let expected = (oldest + subflow.srtt).max(path.oldest_due(now, subflow)).max(subflow.last_ack_at);
        path.lateness.note(now, subflow.last_ack_at, expected);
        let allowance = subflow.srtt.mul_f64(OVERDUE).max(subflow.rttvar * 4).max(LEAST_OVERDUE);
        let pair = Duration::from_secs_f64(ACKED_TOGETHER * f64::from(subflow.mss) / rate);
        let lone = if subflow.outstanding <= u64::from(subflow.mss) { DELAYED_ACK } else { Duration::ZERO };
        let pauses = oldest.max(subflow.last_ack_at) + path.lateness.pause(now);
        Some((expected + allowance + pair + lone).max(pauses))
    }
}
