//! A wrapper of any scheduler that keeps data off a subflow in fast recovery.
//!
//! A window in loss recovery is about to shrink, and new data queues behind the retransmissions. So subflows in fast
//! recovery are hidden from the scheduler inside, unless no other subflow has room.
//!
//! Source: Nagayama et al., "TCP State Driven MPTCP Packet Scheduling for Streaming Video", Evolving Internet 2018.
//! Ours: the scheduler inside neither uses a hidden subflow nor waits for it, which matters for those that compare a
//! slow subflow with a fast full one (BLEST, ECF, Linux).

use super::hiding::Hiding;
use super::{Decision, Forecast, Scheduler, Sent, Services, Silence, Trigger, View};
use crate::view::{Phase, SubflowView};
use anabranch_events::Note;
use anabranch_units::Duration;

/// A scheduler that sees subflows in fast recovery only when nothing else has room.
#[derive(Debug)]
pub(super) struct AvoidRecovery {
    inner: Box<dyn Scheduler>,
    hiding: Hiding,
}

impl AvoidRecovery {
    /// Wraps a scheduler.
    pub(super) fn around(inner: Box<dyn Scheduler>) -> Self {
        AvoidRecovery { inner, hiding: Hiding::default() }
    }
}

impl Scheduler for AvoidRecovery {
    fn decide(&mut self, view: &View<'_>, trigger: Trigger) -> Decision {
        let recovers = |s: &SubflowView| s.phase == Phase::Recovery;
        let healthy = self.hiding.decide_without(view, recovers, |shown| self.inner.decide(shown, trigger));
        healthy.unwrap_or_else(|| self.inner.decide(view, trigger))
    }

    fn services(&self) -> Services {
        self.inner.services()
    }

    fn on_sent(&mut self, sent: &Sent, subflow: &SubflowView) {
        self.inner.on_sent(sent, subflow);
    }

    fn silence(&mut self, view: &View<'_>) -> Silence {
        self.inner.silence(view)
    }

    fn explanation(&mut self) -> Option<Forecast> {
        self.inner.explanation()
    }

    fn arrival(&self, view: &View<'_>, position: usize) -> Option<Duration> {
        self.inner.arrival(view, position)
    }

    fn take_notes(&mut self, take: &mut dyn FnMut(Note)) {
        self.inner.take_notes(take);
    }
}

#[cfg(test)]
mod tests {
    use crate::options::Value;
    use crate::scheduler::testing::{Bed, ms, send, wait};
    use crate::view::Phase;

    fn avoiding(name: &str) -> Bed {
        Bed::with(name, &[("avoid_recovery", Value::Flag(true))])
    }

    #[test]
    fn a_recovering_subflow_is_avoided_while_another_has_room() {
        let mut bed = avoiding("min-rtt").subflow(ms(20), 10).subflow(ms(80), 10);
        assert_eq!(bed.decide(), send(0, 1000));
        bed.subflows[0].phase = Phase::Recovery;
        assert_eq!(bed.decide(), send(1, 1000));
        bed.fill(1);
        assert_eq!(bed.decide(), send(0, 1000));
    }

    #[test]
    fn reordering_alone_is_no_reason_to_avoid() {
        let mut bed = avoiding("min-rtt").subflow(ms(20), 10).subflow(ms(80), 10);
        bed.subflows[0].phase = Phase::Disorder;
        assert_eq!(bed.decide(), send(0, 1000));
    }

    #[test]
    fn a_sticky_scheduler_leaves_a_subflow_that_enters_recovery() {
        let mut bed = avoiding("gr-sty").subflow(ms(20), 10).subflow(ms(80), 10);
        assert_eq!(bed.decide(), send(0, 1000));
        bed.subflows[0].phase = Phase::Recovery;
        assert_eq!(bed.decide(), send(1, 1000));
        bed.subflows[0].phase = Phase::Open;
        assert_eq!(bed.decide(), send(1, 1000), "greedy: it stays on the new subflow");
    }

    #[test]
    fn no_data_waits_for_a_recovering_subflow() {
        // Without the wrapper ECF waits here: the fast subflow is full but so much faster that waiting pays.
        let full_fast_path = |mut bed: Bed| {
            bed.connection.unsent = 20_000;
            bed.fill(0);
            bed.subflows[0].phase = Phase::Recovery;
            bed
        };
        let mut plain = full_fast_path(Bed::new("ecf").subflow(ms(10), 10).subflow(ms(200), 10));
        assert_eq!(plain.decide(), wait());
        let mut avoiding = full_fast_path(avoiding("ecf").subflow(ms(10), 10).subflow(ms(200), 10));
        assert_eq!(avoiding.decide(), send(1, 1000));
    }

    #[test]
    fn the_wrapper_duplicates_if_the_scheduler_inside_does() {
        assert!(avoiding("redundant").scheduler.services().duplicates);
        assert!(!avoiding("min-rtt").scheduler.services().duplicates);
    }
}
