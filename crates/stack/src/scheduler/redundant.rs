//! Redundant: sends everything on every subflow; the first copy to arrive counts.
//!
//! Each subflow has its own place in the stream, its cursor c_i: the first byte that it has not carried yet, never
//! before the first unacknowledged one. Subflows with room take turns; subflow i sends the segment at c_i. Where c_i
//! lies before the first byte that no subflow has sent, that is a copy of another subflow's data; there, it is new
//! data. So a fast subflow runs ahead and a slow one follows, skipping data that the peer acknowledged meanwhile. A
//! full subflow does not block the others.
//!
//! Source: multipath-tcp.org v0.95, `mptcp_redundant.c`; Froemmgen et al., "ReMP TCP: Low Latency Multipath TCP", ICC
//! 2016. (A forerunner queued the copies, which a full path then stalled or lost.)
//!
//! Ours:
//! - A backup, where only backups are usable, carries new data at once and copies nothing; there, it waits until what
//!   others carried is acknowledged.
//! - A reinjection goes to the lowest round trip and moves no cursor.

use super::{Decision, Entry, PerSubflow, Scheduler, Services, Trigger, View};
use crate::view::SubflowView;
use anabranch_units::SubflowId;

pub(super) const ENTRY: Entry = Entry {
    name: "redundant",
    summary: "Sends everything on every subflow, each at its own pace.",
    source: "multipath-tcp.org v0.95, mptcp_redundant.c; Froemmgen et al., ICC 2016 (ReMP TCP)",
    create: |options| {
        options.expect_only(&[])?;
        Ok(Box::new(Redundant { cursor: PerSubflow::default(), last: None, granted: None }))
    },
};

#[derive(Debug)]
struct Redundant {
    /// One past the last byte that the subflow carried.
    cursor: PerSubflow<u64>,
    /// The subflow that sent last.
    last: Option<SubflowId>,
    /// The subflow that was granted new data, and the stream's next offset then; the next call shows how much was sent.
    granted: Option<(SubflowId, u64)>,
}

impl Scheduler for Redundant {
    fn decide(&mut self, view: &View<'_>, trigger: Trigger) -> Decision {
        self.settle(view);
        if trigger == Trigger::Reinjection {
            return view.one_segment(view.fastest_candidate());
        }
        for (position, subflow) in in_turn(view, self.last) {
            if let Some(decision) = self.next_for(view, position, subflow) {
                self.last = Some(subflow.id);
                return decision;
            }
        }
        Decision::Wait { until: None }
    }

    fn services(&self) -> Services {
        Services { duplicates: true, ..Services::NONE }
    }
}

impl Redundant {
    /// Moves the cursor of the latest grant over what was sent.
    fn settle(&mut self, view: &View<'_>) {
        self.cursor.forget_dead(view.subflows);
        if let Some((id, before)) = self.granted.take()
            && view.connection.next > before
        {
            *self.cursor.of(id) = view.connection.next;
        }
    }

    /// The next segment of one subflow, if it has one.
    fn next_for(&mut self, view: &View<'_>, position: usize, subflow: &SubflowView) -> Option<Decision> {
        let next = view.connection.next;
        let cursor = self.cursor.of(subflow.id);
        let offset = if subflow.backup { next } else { view.connection.unacked.max(*cursor) };
        let mss = u64::from(subflow.mss);
        if offset < next {
            let bytes = mss.min(next - offset);
            *cursor = offset + bytes;
            return Some(Decision::Duplicate { subflow: position, offset, bytes });
        }
        if view.new_bytes() == 0 {
            return None;
        }
        self.granted = Some((subflow.id, next));
        Some(Decision::Send { subflow: position, bytes: mss })
    }
}

/// The candidates, oldest first, beginning behind the one that sent last.
fn in_turn<'a>(view: &View<'a>, last: Option<SubflowId>) -> impl Iterator<Item = (usize, &'a SubflowView)> + use<'a> {
    let behind = move |id: SubflowId| last.is_none_or(|last| id > last);
    let ahead = view.candidates().filter(move |(_, s)| behind(s.id));
    ahead.chain(view.candidates().filter(move |(_, s)| !behind(s.id)))
}

#[cfg(test)]
mod tests {
    use crate::scheduler::Decision;
    use crate::scheduler::testing::{Bed, ms, send, wait};

    fn copy(subflow: usize, offset: u64, bytes: u64) -> Decision {
        Decision::Duplicate { subflow, offset, bytes }
    }

    fn two() -> Bed {
        Bed::new("redundant").subflow(ms(10), 10).subflow(ms(50), 10)
    }

    #[test]
    fn every_subflow_carries_every_segment() {
        let mut bed = two();
        assert_eq!(bed.decide(), send(0, 1_000));
        bed.sent(0, 1_000);
        assert_eq!(bed.decide(), copy(1, 0, 1_000));
        assert_eq!(bed.decide(), send(0, 1_000));
        bed.sent(0, 600);
        assert_eq!(bed.decide(), copy(1, 1_000, 600), "the application had written no more");
        assert_eq!(bed.decide(), send(0, 1_000));
    }

    #[test]
    fn a_full_subflow_holds_no_other_up_and_resumes_at_its_own_cursor() {
        let mut bed = two();
        bed.fill(1);
        for _ in 0..3 {
            assert_eq!(bed.decide(), send(0, 1_000));
            bed.sent(0, 1_000);
        }
        bed.load(1, 0);
        assert_eq!(bed.decide(), copy(1, 0, 1_000));
        bed.fill(0);
        assert_eq!(bed.decide(), copy(1, 1_000, 1_000));
        assert_eq!(bed.decide(), copy(1, 2_000, 1_000));
        assert_eq!(bed.decide(), send(1, 1_000), "having caught up it carries new data");
    }

    #[test]
    fn acknowledged_data_is_skipped() {
        let mut bed = two();
        bed.fill(1);
        for _ in 0..5 {
            bed.decide();
            bed.sent(0, 1_000);
        }
        bed.connection.unacked = 3_500;
        bed.fill(0);
        bed.load(1, 0);
        assert_eq!(bed.decide(), copy(1, 3_500, 1_000));
        assert_eq!(bed.decide(), copy(1, 4_500, 500));
    }

    #[test]
    fn copies_go_on_while_no_new_data_may_be_sent() {
        for close in [|bed: &mut Bed| bed.connection.unsent = 0, |bed: &mut Bed| bed.connection.window_end = 1_000] {
            let mut bed = two();
            bed.decide();
            bed.sent(0, 1_000);
            close(&mut bed);
            assert_eq!(bed.decide(), copy(1, 0, 1_000));
            assert_eq!(bed.decide(), wait(), "everybody carried everything");
        }
    }

    #[test]
    fn a_newcomer_starts_at_the_first_unacknowledged_byte() {
        let mut bed = Bed::new("redundant").subflow(ms(10), 10);
        for _ in 0..4 {
            assert_eq!(bed.decide(), send(0, 1_000));
            bed.sent(0, 1_000);
        }
        bed.connection.unacked = 1_000;
        let mut bed = bed.subflow(ms(50), 10);
        assert_eq!(bed.decide(), copy(1, 1_000, 1_000));
    }

    #[test]
    fn cursors_follow_names_when_positions_shift() {
        let mut bed = two().subflow(ms(50), 10);
        bed.decide();
        bed.sent(0, 1_000);
        assert_eq!(bed.decide(), copy(1, 0, 1_000));
        bed.subflows.remove(0);
        assert_eq!(bed.decide(), copy(1, 0, 1_000), "the third subflow, at position 1 now");
        assert_eq!(bed.decide(), send(0, 1_000));
    }

    #[test]
    fn a_lone_backup_copies_nothing() {
        let mut bed = two();
        bed.subflows[1].backup = true;
        bed.decide();
        bed.sent(0, 1_000);
        assert_eq!(bed.decide(), send(0, 1_000), "the backup rests");
        bed.subflows[0].potentially_failed = true;
        assert_eq!(bed.decide(), send(1, 1_000));
    }

    #[test]
    fn a_reinjection_takes_the_lowest_round_trip_and_moves_no_cursor() {
        let mut bed = two();
        bed.decide();
        bed.sent(0, 1_000);
        assert_eq!(bed.reinject(), send(0, 1_000));
        assert_eq!(bed.decide(), copy(1, 0, 1_000));
    }
}
