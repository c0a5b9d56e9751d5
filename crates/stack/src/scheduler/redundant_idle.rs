//! Redundant when idle: like min-rtt, and when nothing is unsent, subflows with room send what others carried.
//!
//! New data goes to the candidate with the lowest round trip. When there is none, the first data in the stream that is
//! not acknowledged and that some candidate has not carried yet is copied, by the one with the lowest round trip among
//! these. So copies cost nothing that new data could use, and the end of each response is sent on every subflow.
//!
//! Source: the schedulers "min RTT, redundant if the queue is empty" of Froemmgen et al., "A Programming Model for
//! Application-defined Multipath TCP Scheduling" (ProgMP), Middleware 2017; ReMP TCP, ICC 2016, copies always
//! (`redundant`).
//!
//! Ours:
//! - There, subflows that the operating system throttles or that lost packets are left out; here, as with every
//!   scheduler, those after a timeout are (and with `avoid_recovery` those that recover).
//! - A backup copies nothing.
//! - Where data commits into the buffer, a copy waits in the subflow's queue, as it does there.

use super::ranges::Ranges;
use super::{Decision, Entry, PerSubflow, Scheduler, Sent, Services, Trigger, View};
use crate::view::SubflowView;
use anabranch_units::SubflowId;

pub(super) const ENTRY: Entry = Entry {
    name: "redundant-idle",
    summary: "Like min-rtt, and when nothing new is left, copies on other subflows what is not acknowledged.",
    source: "Froemmgen et al., ProgMP, Middleware 2017: minimum round trip, redundant if the queue is empty",
    create: |options| {
        options.expect_only(&[])?;
        Ok(Box::new(RedundantIdle::default()))
    },
};

#[derive(Debug, Default)]
struct RedundantIdle {
    /// What each subflow was given.
    carried: PerSubflow<Ranges>,
    /// The subflow that was granted new data, and the stream's next offset then; the next call shows how much was sent.
    granted: Option<(SubflowId, u64)>,
}

impl Scheduler for RedundantIdle {
    fn decide(&mut self, view: &View<'_>, trigger: Trigger) -> Decision {
        self.settle(view);
        let fastest = view.fastest_candidate();
        if trigger == Trigger::Reinjection {
            return view.one_segment(fastest);
        }
        if view.new_bytes() > 0 {
            self.granted = fastest.map(|position| (view.subflows[position].id, view.connection.next));
            return view.one_segment(fastest);
        }
        self.copy(view).unwrap_or(Decision::Wait { until: None })
    }

    fn services(&self) -> Services {
        Services { duplicates: true, sending: true, ..Services::NONE }
    }

    fn on_sent(&mut self, sent: &Sent, subflow: &SubflowView) {
        // Reinjections, of which no decision knows the place in the stream.
        self.carried.of(subflow.id).insert(sent.offset, sent.offset + u64::from(sent.bytes));
    }
}

impl RedundantIdle {
    /// Notes which data the latest grant sent, and forgets what the peer has.
    fn settle(&mut self, view: &View<'_>) {
        self.carried.forget_dead(view.subflows);
        if let Some((id, before)) = self.granted.take() {
            self.carried.of(id).insert(before, view.connection.next);
        }
        for subflow in view.subflows {
            self.carried.of(subflow.id).forget_before(view.connection.unacked);
        }
    }

    /// The first data that a candidate has not carried.
    fn copy(&mut self, view: &View<'_>) -> Option<Decision> {
        let (unacked, next) = (view.connection.unacked, view.connection.next);
        let mut first: Option<(usize, u64, u64)> = None;
        for (position, subflow) in view.candidates().filter(|(_, s)| !s.backup) {
            let Some((offset, end)) = self.carried.of(subflow.id).first_missing(unacked, next) else { continue };
            let sooner = |best: &(usize, u64, u64)| {
                offset < best.1 || offset == best.1 && subflow.srtt < view.subflows[best.0].srtt
            };
            if first.as_ref().is_none_or(sooner) {
                first = Some((position, offset, end.min(offset + u64::from(subflow.mss))));
            }
        }
        let (subflow, offset, end) = first?;
        self.carried.of(view.subflows[subflow].id).insert(offset, end);
        Some(Decision::Duplicate { subflow, offset, bytes: end - offset })
    }
}

#[cfg(test)]
mod tests {
    use crate::scheduler::testing::{Bed, at, ms, send, wait};
    use crate::scheduler::{Decision, Sent};
    use anabranch_events::SendKind;

    fn copy(subflow: usize, offset: u64, bytes: u64) -> Decision {
        Decision::Duplicate { subflow, offset, bytes }
    }

    /// Three subflows of 10, 50 and 90 ms, and so many bytes to send.
    fn three(unsent: u64) -> Bed {
        let mut bed = Bed::new("redundant-idle").subflow(ms(10), 10).subflow(ms(50), 10).subflow(ms(90), 10);
        bed.connection.unsent = unsent;
        bed
    }

    #[test]
    fn new_data_goes_once_and_its_end_on_every_subflow() {
        let mut bed = three(2_500);
        for bytes in [1_000, 1_000, 500] {
            assert_eq!(bed.decide(), send(0, 1_000));
            bed.sent(0, bytes);
        }
        // The first data first, the shorter round trip first.
        for offset in [0, 1_000] {
            assert_eq!(bed.decide(), copy(1, offset, 1_000));
            assert_eq!(bed.decide(), copy(2, offset, 1_000));
        }
        assert_eq!(bed.decide(), copy(1, 2_000, 500));
        assert_eq!(bed.decide(), copy(2, 2_000, 500));
        assert_eq!(bed.decide(), wait(), "everybody carried everything");
    }

    #[test]
    fn each_subflow_copies_what_it_did_not_carry() {
        let mut bed = three(3_000);
        bed.subflows.truncate(2);
        for position in [0, 1, 0] {
            if position == 1 {
                bed.fill(0);
            }
            assert_eq!(bed.decide(), send(position, 1_000));
            bed.sent(position, 1_000);
            bed.load(0, 0);
        }
        assert_eq!(bed.decide(), copy(1, 0, 1_000));
        assert_eq!(bed.decide(), copy(0, 1_000, 1_000));
        assert_eq!(bed.decide(), copy(1, 2_000, 1_000));
        assert_eq!(bed.decide(), wait());
    }

    #[test]
    fn new_data_ends_copying_and_what_is_acknowledged_is_not_copied() {
        let mut bed = three(2_000);
        for _ in 0..2 {
            bed.decide();
            bed.sent(0, 1_000);
        }
        assert_eq!(bed.decide(), copy(1, 0, 1_000));
        bed.connection.unacked = 1_300;
        assert_eq!(bed.decide(), copy(1, 1_300, 700));
        bed.connection.unsent = 1_000;
        assert_eq!(bed.decide(), send(0, 1_000));
    }

    #[test]
    fn what_left_as_a_reinjection_was_carried() {
        let mut bed = three(1_000);
        bed.decide();
        bed.sent(0, 1_000);
        assert_eq!(bed.reinject(), send(0, 1_000), "min-rtt");
        let sent = Sent { at: at(ms(0)), offset: 0, bytes: 1_000, kind: SendKind::Reinjection };
        let holder = bed.subflows[1];
        bed.scheduler.on_sent(&sent, &holder);
        assert_eq!(bed.decide(), copy(2, 0, 1_000));
    }

    #[test]
    fn a_lone_backup_copies_nothing() {
        let mut bed = three(1_000);
        bed.decide();
        bed.sent(0, 1_000);
        bed.subflows[1].backup = true;
        bed.subflows[0].potentially_failed = true;
        bed.subflows[2].potentially_failed = true;
        assert_eq!(bed.decide(), wait());
    }
}
