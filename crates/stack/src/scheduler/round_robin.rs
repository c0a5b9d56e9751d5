//! Round robin: each subflow sends a fixed number of segments per round.
//!
//! A subflow may send `num_segments` segments per round. A subflow in the middle of its turn goes on; otherwise the
//! oldest one that had no turn yet; when all that are considered had theirs, a new round begins for these. With
//! `cwnd_limited` (the default) full subflows are not considered, so that all windows get filled and shares follow the
//! windows. Without it the turn of a full subflow is waited for, and the shares are equal.
//!
//! Source: multipath-tcp.org v0.9x, `mptcp_rr.c`.
//!
//! Ours:
//! - A subflow's count never exceeds `num_segments`; there, a large buffer counts in full, after which the subflow
//!   never again equals its quota and gets no further turn.
//! - A reinjection goes to the oldest candidate and counts nothing, as there.

use super::{Decision, Entry, PerSubflow, Scheduler, Trigger, View};
use crate::options::{OptionError, Options};
use crate::view::SubflowView;
use anabranch_units::SubflowId;

pub(super) const ENTRY: Entry = Entry {
    name: "round-robin",
    summary: "Gives each subflow in turn a fixed number of segments.",
    source: "multipath-tcp.org v0.9x, mptcp_rr.c",
    create: |options| {
        options.expect_only(&["num_segments", "cwnd_limited"])?;
        Ok(Box::new(RoundRobin {
            num_segments: whole_number(options, "num_segments", 1, 255)?,
            cwnd_limited: options.flag("cwnd_limited", true)?,
            used: PerSubflow::default(),
            granted: None,
        }))
    },
};

#[derive(Debug)]
struct RoundRobin {
    /// Segments per turn.
    num_segments: u64,
    /// Whether full subflows lose their turn instead of being waited for.
    cwnd_limited: bool,
    /// Segments used of the present turn.
    used: PerSubflow<u64>,
    granted: Option<Granted>,
}

/// The latest grant; the next call shows how much of it was used.
#[derive(Clone, Copy, Debug)]
struct Granted {
    to: SubflowId,
    mss: u32,
    /// The stream's next offset at the grant.
    next: u64,
}

impl Scheduler for RoundRobin {
    fn decide(&mut self, view: &View<'_>, trigger: Trigger) -> Decision {
        if trigger == Trigger::Reinjection {
            return view.one_segment(view.candidates().next().map(|(position, _)| position));
        }
        self.settle(view);
        let turn =
            if self.cwnd_limited { self.next_turn(|| view.candidates()) } else { self.next_turn(|| view.contenders()) };
        match turn {
            Some(position) if view.candidates.contains(position) => self.grant(view, position),
            _ => Decision::Wait { until: None },
        }
    }
}

impl RoundRobin {
    /// Counts the used part of the latest grant.
    fn settle(&mut self, view: &View<'_>) {
        self.used.forget_dead(view.subflows);
        if let Some(granted) = self.granted.take() {
            let bytes = view.connection.next.saturating_sub(granted.next);
            let used = self.used.of(granted.to);
            *used = used.saturating_add(bytes.div_ceil(u64::from(granted.mss.max(1)))).min(self.num_segments);
        }
    }

    /// The subflow whose turn it is among those considered.
    fn next_turn<'a, I>(&mut self, considered: impl Fn() -> I) -> Option<usize>
    where
        I: Iterator<Item = (usize, &'a SubflowView)>,
    {
        let quota = self.num_segments;
        let begun = considered().find(|(_, s)| (1..quota).contains(self.used.of(s.id)));
        let pick = begun.or_else(|| considered().find(|(_, s)| *self.used.of(s.id) == 0));
        if pick.is_none() {
            considered().for_each(|(_, s)| *self.used.of(s.id) = 0);
        }
        pick.or_else(|| considered().next()).map(|(position, _)| position)
    }

    fn grant(&mut self, view: &View<'_>, position: usize) -> Decision {
        let SubflowView { id, mss, .. } = view.subflows[position];
        self.granted = Some(Granted { to: id, mss, next: view.connection.next });
        let left = self.num_segments - *self.used.of(id);
        Decision::Send { subflow: position, bytes: left * u64::from(mss) }
    }
}

/// The option `name` as a whole number from 1 to `max`.
fn whole_number(options: &Options, name: &str, default: u32, max: u32) -> Result<u64, OptionError> {
    let number = options.number(name, f64::from(default), 1.0..=f64::from(max))?;
    if number.fract() != 0.0 {
        return Err(OptionError { option: name.into(), message: format!("expected a whole number, not {number}") });
    }
    Ok(number as u64)
}

#[cfg(test)]
mod tests {
    use crate::options::{Options, Value};
    use crate::scheduler::create;
    use crate::scheduler::testing::{Bed, ms, send, wait};

    fn in_turns_of(segments: f64) -> Bed {
        Bed::with("round-robin", &[("num_segments", Value::Number(segments))])
    }

    #[test]
    fn subflows_take_turns_oldest_first() {
        let mut bed = Bed::new("round-robin").subflow(ms(90), 10).subflow(ms(10), 10).subflow(ms(50), 10);
        let turns: Vec<_> = (0..7).map(|_| bed.send_segment()).collect();
        assert_eq!(turns, [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn a_turn_lasts_its_quota_of_segments() {
        let mut bed = in_turns_of(3.0).subflow(ms(10), 100).subflow(ms(10), 100);
        assert_eq!(bed.decide(), send(0, 3_000));
        bed.sent(0, 1_000);
        assert_eq!(bed.decide(), send(0, 2_000), "its turn goes on");
        bed.sent(0, 1_500);
        assert_eq!(bed.decide(), send(1, 3_000), "a short segment counts as one");
        bed.sent(1, 3_000);
        assert_eq!(bed.decide(), send(0, 3_000), "a new round");
    }

    #[test]
    fn a_grant_that_was_not_used_is_not_counted() {
        let mut bed = Bed::new("round-robin").subflow(ms(10), 10).subflow(ms(10), 10);
        assert_eq!(bed.decide(), send(0, 1_000));
        assert_eq!(bed.decide(), send(0, 1_000));
    }

    #[test]
    fn a_full_subflow_loses_its_turn_but_keeps_its_place() {
        let mut bed = Bed::new("round-robin").subflow(ms(10), 10).subflow(ms(10), 10);
        assert_eq!(bed.send_segment(), 0);
        bed.fill(1);
        assert_eq!(bed.send_segment(), 0, "the only one that is considered starts a new round");
        bed.load(1, 0);
        assert_eq!(bed.send_segment(), 1);
    }

    #[test]
    fn without_cwnd_limited_the_turn_of_a_full_subflow_is_waited_for() {
        let mut bed =
            Bed::with("round-robin", &[("cwnd_limited", Value::Flag(false))]).subflow(ms(10), 10).subflow(ms(10), 10);
        assert_eq!(bed.send_segment(), 0);
        bed.fill(1);
        assert_eq!(bed.decide(), wait());
        bed.subflows[1].potentially_failed = true;
        assert_eq!(bed.decide(), send(0, 1_000), "a failed one is not waited for");
    }

    #[test]
    fn a_reinjection_does_not_count() {
        let mut bed = Bed::new("round-robin").subflow(ms(10), 10).subflow(ms(10), 10);
        assert_eq!(bed.send_segment(), 0);
        assert_eq!(bed.reinject(), send(0, 1_000));
        assert_eq!(bed.send_segment(), 1);
        assert_eq!(bed.send_segment(), 0);
    }

    #[test]
    fn the_death_of_a_subflow_shifts_positions_but_not_turns() {
        let mut bed = Bed::new("round-robin").subflow(ms(10), 10).subflow(ms(10), 10).subflow(ms(10), 10);
        assert_eq!(bed.send_segment(), 0);
        assert_eq!(bed.send_segment(), 1);
        bed.subflows.remove(0);
        assert_eq!(bed.send_segment(), 1, "the third subflow is at position 1 now");
        assert_eq!(bed.send_segment(), 0);
    }

    #[test]
    fn a_quota_must_be_a_whole_number() {
        for bad in [0.0, 1.5, 256.0, -1.0, f64::NAN] {
            let options = Options::new(vec![("num_segments".into(), Value::Number(bad))]);
            assert_eq!(create("round-robin", &options).unwrap_err().option, "num_segments", "{bad}");
        }
    }
}
