//! Re-injection by deadline: like min-rtt, and what is not acknowledged by its deadline is sent again elsewhere.
//!
//! A packet whose age has reached the deadline is copied once, before new data, by the candidate with the lowest round
//! trip other than the subflow that carries it:
//!
//! ```text
//! deadline = max(min(factor * min srtt, hard), floor)        min srtt: the lowest smoothed round trip of all subflows
//! ```
//!
//! So a slow path that holds data up costs little more than a round trip of the fastest one, and on paths whose round
//! trips differ by more than `factor` nearly all data of the slower ones is sent twice.
//!
//! Options: `factor` (1.1), `hard_ms` (500) and `floor_ms` (20), the values of XQUIC's library as of 2025; earlier ones
//! had 2, none and 0.
//!
//! Source: XQUIC (Apache-2.0), `xqc_reinj_deadline.c`, `xqc_reinjection.c` and its minimum-round-trip scheduler; the
//! idea is XLINK's (Zheng et al., SIGCOMM 2021), whose control by the player's buffer is not public.
//!
//! Ours:
//! - QUIC acknowledges packets; here a packet counts as arrived when its subflow acknowledges it or the stream's
//!   acknowledgment covers it.
//! - The age is that of the latest transmission: what a subflow retransmits begins anew.
//! - Only usable subflows count for the lowest round trip.

use super::ranges::Ranges;
use super::{Decision, Entry, FlightList, InFlight, Scheduler, Services, Trigger, View};
use anabranch_units::{Duration, Instant};

pub(super) const ENTRY: Entry = Entry {
    name: "reinject-deadline",
    summary: "Like min-rtt, and sends again on another subflow what is not acknowledged by a deadline.",
    source: "XQUIC, xqc_reinj_deadline.c; after Zheng et al., XLINK, SIGCOMM 2021",
    create: |options| {
        options.expect_only(&["factor", "hard_ms", "floor_ms"])?;
        let milliseconds = |name, default| options.number(name, default, 0.0..=60_000.0).map(|ms| ms / 1_000.0);
        Ok(Box::new(ReinjectDeadline {
            factor: options.number("factor", 1.1, 0.0..=100.0)?,
            hard: Duration::from_secs_f64(milliseconds("hard_ms", 500.0)?),
            floor: Duration::from_secs_f64(milliseconds("floor_ms", 20.0)?),
            copied: Ranges::default(),
        }))
    },
};

#[derive(Debug)]
struct ReinjectDeadline {
    factor: f64,
    hard: Duration,
    floor: Duration,
    /// What was copied already: a packet is copied once, and its copy never.
    copied: Ranges,
}

impl Scheduler for ReinjectDeadline {
    fn decide(&mut self, view: &View<'_>, trigger: Trigger) -> Decision {
        let fastest = view.fastest_candidate();
        if fastest.is_none() || trigger == Trigger::Reinjection {
            return view.one_segment(fastest);
        }
        self.copied.forget_before(view.connection.unacked);
        let deadline = self.deadline(view);
        if let Some(copy) = self.copy(view, deadline) {
            return copy;
        }
        if view.new_bytes() > 0 {
            return view.one_segment(fastest);
        }
        let due = view.flight.iter().filter(|packet| self.missing(view, packet).is_some());
        let due = due.map(|packet| packet.sent_at + deadline).filter(|due| *due > view.connection.now);
        Decision::Wait { until: due.min() }
    }

    fn services(&self) -> Services {
        Services { duplicates: true, flight: FlightList::Always, ..Services::NONE }
    }
}

impl ReinjectDeadline {
    fn deadline(&self, view: &View<'_>) -> Duration {
        let least = view.subflows.iter().filter(|s| s.usable() && !s.srtt.is_zero()).map(|s| s.srtt).min();
        least.unwrap_or_default().mul_f64(self.factor).min(self.hard).max(self.floor)
    }

    /// The first part of a packet that the peer lacks and of which no copy was made.
    fn missing(&self, view: &View<'_>, packet: &InFlight) -> Option<(u64, u64)> {
        let end = (packet.offset + u64::from(packet.bytes)).min(view.connection.next);
        self.copied.first_missing(packet.offset.max(view.connection.unacked), end)
    }

    /// A copy of the first data in the stream that is older than the deadline.
    fn copy(&mut self, view: &View<'_>, deadline: Duration) -> Option<Decision> {
        let now: Instant = view.connection.now;
        let mut late: Vec<&InFlight> = view.flight.iter().filter(|p| now.since(p.sent_at) >= deadline).collect();
        late.sort_by_key(|packet| packet.offset);
        for packet in late {
            let others = view.candidates().filter(|(position, _)| *position != packet.subflow);
            let other = others.min_by_key(|(_, s)| s.srtt);
            let (Some((offset, end)), Some((subflow, s))) = (self.missing(view, packet), other) else { continue };
            let end = end.min(offset + u64::from(s.mss));
            self.copied.insert(offset, end);
            return Some(Decision::Duplicate { subflow, offset, bytes: end - offset });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use crate::options::Value;
    use crate::scheduler::testing::{Bed, at, ms, send};
    use crate::scheduler::{Decision, InFlight};

    fn copy(subflow: usize, offset: u64, bytes: u64) -> Decision {
        Decision::Duplicate { subflow, offset, bytes }
    }

    fn packet(subflow: usize, offset: u64, sent_at_ms: u64) -> InFlight {
        InFlight { subflow, offset, bytes: 1_000, sent_at: at(ms(sent_at_ms)), lost: false }
    }

    /// Subflows of 50 and 200 ms; two packets are in flight on the slow one, sent at 0 and 10 ms. The deadline is 55
    /// ms.
    fn slow_path_in_use(bed: Bed) -> Bed {
        let mut bed = bed.subflow(ms(50), 10).subflow(ms(200), 10);
        bed.connection.next = 2_000;
        bed.flight = vec![packet(1, 0, 0), packet(1, 1_000, 10)];
        bed.load(1, 2);
        bed
    }

    fn asked_at(bed: &mut Bed, now_ms: u64) -> Decision {
        bed.connection.now = at(ms(now_ms));
        bed.decide()
    }

    #[test]
    fn what_reaches_the_deadline_is_copied_once_and_before_new_data() {
        let mut bed = slow_path_in_use(Bed::new("reinject-deadline"));
        assert_eq!(asked_at(&mut bed, 54), send(0, 1_000));
        assert_eq!(asked_at(&mut bed, 55), copy(0, 0, 1_000));
        assert_eq!(asked_at(&mut bed, 56), send(0, 1_000), "one of them is copied, the other one not yet late");
        assert_eq!(asked_at(&mut bed, 65), copy(0, 1_000, 1_000));
        assert_eq!(asked_at(&mut bed, 500), send(0, 1_000), "each of them once");
    }

    #[test]
    fn without_new_data_it_asks_again_at_the_next_deadline() {
        let mut bed = slow_path_in_use(Bed::new("reinject-deadline"));
        bed.connection.unsent = 0;
        assert_eq!(asked_at(&mut bed, 20), Decision::Wait { until: Some(at(ms(55))) });
        assert_eq!(asked_at(&mut bed, 55), copy(0, 0, 1_000));
        assert_eq!(asked_at(&mut bed, 56), Decision::Wait { until: Some(at(ms(65))) });
        bed.connection.unacked = 2_000;
        bed.flight.clear();
        assert_eq!(asked_at(&mut bed, 70), Decision::Wait { until: None });
    }

    #[test]
    fn a_packet_is_not_copied_by_the_subflow_that_carries_it() {
        let mut bed = slow_path_in_use(Bed::new("reinject-deadline"));
        bed.fill(0);
        assert_eq!(asked_at(&mut bed, 100), send(1, 1_000));
        // The fast one's own packet goes to the slow one.
        bed.flight = vec![packet(0, 0, 0)];
        assert_eq!(asked_at(&mut bed, 100), copy(1, 0, 1_000));
    }

    #[test]
    fn the_bounds_of_the_deadline_are_options() {
        let options = [("factor", Value::Number(4.0)), ("hard_ms", Value::Number(120.0))];
        let mut bed = slow_path_in_use(Bed::with("reinject-deadline", &options));
        assert_eq!(asked_at(&mut bed, 119), send(0, 1_000), "4 * 50 ms, but at most 120 ms");
        assert_eq!(asked_at(&mut bed, 120), copy(0, 0, 1_000));
        let mut bed = slow_path_in_use(Bed::with("reinject-deadline", &[("floor_ms", Value::Number(80.0))]));
        assert_eq!(asked_at(&mut bed, 79), send(0, 1_000));
        assert_eq!(asked_at(&mut bed, 80), copy(0, 0, 1_000));
    }

    #[test]
    fn what_the_peer_has_is_left_out_of_a_copy() {
        let mut bed = slow_path_in_use(Bed::new("reinject-deadline"));
        bed.connection.unacked = 400;
        assert_eq!(asked_at(&mut bed, 60), copy(0, 400, 600));
        assert_eq!(bed.reinject(), send(0, 1_000), "a reinjection goes to the lowest round trip");
    }
}
