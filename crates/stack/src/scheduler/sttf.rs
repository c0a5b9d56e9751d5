//! STTF, shortest transfer time first: the subflow on which the next segment arrives first, by windows and round trips.
//!
//! A subflow with window w, threshold h, n packets in flight and q segments queued delivers q + 1 segments in rounds of
//! its round trip. The first round takes what the window has free, each further one a whole window:
//!
//! ```text
//! round 0    max(w - n, 0) segments
//! round k    w_k segments    w_0 = w    w_k = min(2 w_(k-1), h) below h, w_(k-1) + 1 otherwise
//! time       (k + 1/2) * rtt    k: the round of segment q + 1    rtt: the latest sample
//! ```
//!
//! A segment goes to the shortest time. Subflows whose window is full take part: of much data a part is left to them,
//! and the segment goes elsewhere only if they cannot deliver everything unsent before it arrives there.
//!
//! Source: Hurtig et al., "Low-Latency Scheduling in MPTCP", IEEE/ACM Transactions on Networking 27(1), 2019; the
//! authors' module for multipath-tcp.org's kernel was read for its rules (`mptcp_sttf.c` of Karlstad University).
//!
//! Ours:
//! - There, segments queue on subflows with full windows, and are taken back when the estimates change. Here a segment
//!   is given away when it can leave, so that nothing has to be taken back. What goes then is the first unsent segment;
//!   there, it is the first one that the slower subflow was assigned.
//! - Growth below the threshold ends at the threshold; there, the last doubling may exceed it.
//! - A subflow without a sample counts as one without delay, as in min-rtt.
//! - There, the sender's copies of data that blocks the receive window are part of the module; here they are
//!   `transport.opportunistic_retransmission`.

use super::{Decision, Entry, Scheduler, Trigger, View};
use crate::view::{Packets, SubflowView};
use anabranch_units::Duration;

pub(super) const ENTRY: Entry = Entry {
    name: "sttf",
    summary: "Takes the subflow on which a segment arrives first by window, threshold and round trip.",
    source: "Hurtig et al., Low-Latency Scheduling in MPTCP, IEEE/ACM ToN 27(1), 2019 (STTF)",
    create: |options| {
        options.expect_only(&[])?;
        Ok(Box::new(Sttf))
    },
};

/// Rounds after which a queue counts as endless: no data waits for it, and the sums stay short.
const MOST_ROUNDS: u32 = 1_000;

#[derive(Debug)]
struct Sttf;

impl Scheduler for Sttf {
    fn decide(&mut self, view: &View<'_>, trigger: Trigger) -> Decision {
        let times = view.candidates().map(|(position, s)| (position, Transfer::of(s).time()));
        let Some((position, time)) = times.reduce(|best, next| if next.1 < best.1 { next } else { best }) else {
            return Decision::Wait { until: None };
        };
        let mss = u64::from(view.subflows[position].mss.max(1));
        let unsent = view.connection.unsent.div_ceil(mss);
        let others = view.contenders().filter(|(other, _)| *other != position);
        let sooner =
            others.fold(0_u64, |sum, (_, s)| sum.saturating_add(Transfer::of(s).segments_before(time, unsent)));
        if trigger == Trigger::NewData && sooner >= unsent {
            return Decision::Wait { until: None };
        }
        view.one_segment(Some(position))
    }

    fn arrival(&self, view: &View<'_>, position: usize) -> Option<Duration> {
        Some(Duration::from_secs_f64(Transfer::of(&view.subflows[position]).time()))
    }
}

/// The rounds in which a subflow delivers.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    /// Seconds of a round.
    rtt: f64,
    /// Segments that may leave now, in the first round.
    free: u64,
    /// Segments that are queued already.
    queued: u64,
    window: u64,
    threshold: u64,
}

impl Transfer {
    fn of(subflow: &SubflowView) -> Self {
        let rtt = if subflow.latest_rtt.is_zero() { subflow.srtt } else { subflow.latest_rtt };
        let window = u64::from(subflow.cwnd.floor());
        let threshold = if subflow.ssthresh == Packets::INFINITE { u64::MAX } else { subflow.ssthresh.floor().into() };
        Transfer {
            rtt: rtt.as_secs_f64(),
            free: window.saturating_sub(subflow.in_flight.into()),
            queued: subflow.queued.div_ceil(u64::from(subflow.mss.max(1))),
            window: window.max(1),
            threshold,
        }
    }

    /// The window a round later.
    fn grown(&self, window: u64) -> u64 {
        if window < self.threshold { window.saturating_mul(2).min(self.threshold) } else { window.saturating_add(1) }
    }

    /// Seconds until a further segment is delivered.
    fn time(&self) -> f64 {
        let (mut left, mut window, mut round) = (self.queued.saturating_add(1), self.window, 0);
        left = left.saturating_sub(self.free);
        while left > 0 && round < MOST_ROUNDS {
            window = self.grown(window);
            left = left.saturating_sub(window);
            round += 1;
        }
        (f64::from(round) + 0.5) * self.rtt
    }

    /// How many segments besides those queued arrive in less than `time` seconds; counted up to `enough`.
    fn segments_before(&self, time: f64, enough: u64) -> u64 {
        let wanted = enough.saturating_add(self.queued);
        let (mut delivered, mut window, mut round) = (0_u64, self.window, 0);
        while delivered < wanted && (f64::from(round) + 0.5) * self.rtt < time {
            if round == MOST_ROUNDS {
                return enough;
            }
            delivered = delivered.saturating_add(if round == 0 { self.free } else { window });
            window = self.grown(window);
            round += 1;
        }
        delivered.saturating_sub(self.queued).min(enough)
    }
}

#[cfg(test)]
mod tests {
    use crate::scheduler::testing::{Bed, ms, send, wait};
    use crate::view::Packets;

    /// A full subflow of 10 packets at 10 ms, and an empty one at 100 ms, on which a segment takes 50 ms.
    fn full_fast_path() -> Bed {
        let mut bed = Bed::new("sttf").subflow(ms(10), 10).subflow(ms(100), 10);
        bed.fill(0);
        bed
    }

    fn with_unsent(mut bed: Bed, bytes: u64) -> Bed {
        bed.connection.unsent = bytes;
        bed
    }

    #[test]
    fn what_fits_the_window_takes_half_a_round_trip() {
        let mut bed = Bed::new("sttf").subflow(ms(30), 10).subflow(ms(10), 10);
        assert_eq!(bed.decide(), send(1, 1_000));
        bed.subflows[1].latest_rtt = ms(40);
        assert_eq!(bed.decide(), send(0, 1_000), "the latest sample counts, not the smoothed one");
    }

    #[test]
    fn before_the_first_loss_rounds_double() {
        // At 15, 25, 35 and 45 ms the fast one has delivered 20, 40, 80 and 160 further segments: 300 before 50 ms.
        assert_eq!(with_unsent(full_fast_path(), 300_000).decide(), wait());
        assert_eq!(with_unsent(full_fast_path(), 300_001).decide(), send(1, 1_000));
    }

    #[test]
    fn above_the_threshold_rounds_grow_by_one() {
        // 20 (up to the threshold), 21, 22 and 23.
        let bed = || {
            let mut bed = full_fast_path();
            bed.subflows[0].ssthresh = Packets::whole(20);
            bed
        };
        assert_eq!(with_unsent(bed(), 86_000).decide(), wait());
        assert_eq!(with_unsent(bed(), 86_001).decide(), send(1, 1_000));
    }

    #[test]
    fn what_is_queued_comes_first() {
        // 300 segments before 50 ms, of which 100 are queued there already.
        let bed = || {
            let mut bed = full_fast_path();
            bed.subflows[0].queued = 100_000;
            bed
        };
        assert_eq!(with_unsent(bed(), 200_000).decide(), wait());
        assert_eq!(with_unsent(bed(), 200_001).decide(), send(1, 1_000));
    }

    #[test]
    fn equal_times_are_no_reason_to_wait() {
        // The fast one needs a round more: 3/2 * 10 ms are the 30 / 2 ms of the other.
        let mut bed = Bed::new("sttf").subflow(ms(10), 10).subflow(ms(30), 10);
        bed.fill(0);
        assert_eq!(with_unsent(bed, 1_000).decide(), send(1, 1_000));
    }

    #[test]
    fn a_failed_subflow_is_not_waited_for_and_a_reinjection_does_not_wait() {
        let mut bed = with_unsent(full_fast_path(), 1_000);
        assert_eq!(bed.reinject(), send(1, 1_000));
        bed.subflows[0].potentially_failed = true;
        assert_eq!(bed.decide(), send(1, 1_000));
    }
}
