//! The lowest round trip first: the default of legacy Multipath TCP, the papers' "DFT".
//!
//! Among the subflows with room in their windows, take the one with the lowest smoothed round trip. Never waits while
//! one has room.
//!
//! Source: multipath-tcp.org v0.9x, `mptcp_sched.c`. Ours: on a tie the older subflow goes first (there: the younger
//! one, because its list is in reverse).

use super::{Decision, Entry, Scheduler, Trigger, View};

pub(super) const ENTRY: Entry = Entry {
    name: "min-rtt",
    summary: "Takes the subflow with the lowest smoothed round trip that has room.",
    source: "multipath-tcp.org v0.9x, mptcp_sched.c; the papers' DFT",
    create: |options| {
        options.expect_only(&[])?;
        Ok(Box::new(MinRtt))
    },
};

#[derive(Debug)]
struct MinRtt;

impl Scheduler for MinRtt {
    fn decide(&mut self, view: &View<'_>, _trigger: Trigger) -> Decision {
        view.one_segment(view.fastest_candidate())
    }
}

#[cfg(test)]
mod tests {
    use crate::scheduler::testing::{Bed, ms, send, wait};

    #[test]
    fn the_lowest_round_trip_goes_first_and_the_next_one_when_it_is_full() {
        let mut bed = Bed::new("min-rtt").subflow(ms(80), 10).subflow(ms(20), 10).subflow(ms(40), 10);
        assert_eq!(bed.decide(), send(1, 1000));
        bed.fill(1);
        assert_eq!(bed.decide(), send(2, 1000));
        bed.fill(0);
        bed.fill(2);
        assert_eq!(bed.decide(), wait());
    }

    #[test]
    fn a_tie_goes_to_the_older_subflow() {
        let mut bed = Bed::new("min-rtt").subflow(ms(20), 10).subflow(ms(20), 10);
        assert_eq!(bed.decide(), send(0, 1000));
    }

    #[test]
    fn a_backup_carries_data_only_where_nothing_else_is_usable() {
        let mut bed = Bed::new("min-rtt").subflow(ms(80), 10).subflow(ms(20), 10);
        bed.subflows[1].backup = true;
        assert_eq!(bed.decide(), send(0, 1000));
        bed.fill(0);
        assert_eq!(bed.decide(), wait());
        bed.subflows[0].potentially_failed = true;
        assert_eq!(bed.decide(), send(1, 1000));
    }
}
