//! Sticky schedulers: change paths as seldom as possible.
//!
//! Sending begins on the subflow with the lowest round trip. It stays there while that subflow can take data. When it
//! cannot, the next is the candidate with the lowest round trip; whether to stick to that one too depends on the
//! variant:
//!
//! | name   | stands for                | sticks to j after leaving i               |
//! |--------|---------------------------|-------------------------------------------|
//! | gr-sty | greedy                    | always                                    |
//! | tp-sty | throughput                | lambda_i / lambda_j < 1                   |
//! | tr-sty | throughput and round trip | lambda_i / lambda_j < 1 and rtt_i < rtt_j |
//!
//! lambda: window over smoothed round trip in bytes per second, rtt: smoothed round trip, both at the moment of the
//! change. Where it does not stick, each segment goes to the lowest round trip, as with min-rtt, until that means
//! another change.
//!
//! Source: Nagayama et al., "Managing Path Switching in Multipath Video Streaming", section V.
//!
//! Ours, where the paper leaves it open:
//! - lambda is the estimate of the authors' earlier schedulers.
//! - The paper prints rtt_i < rtt_j, yet its analysis says that a change from a short to a long round trip is the one
//!   that drains the buffer, which would call for rtt_i > rtt_j. `tr_sense = "printed"` (default) or `"analysis"`
//!   chooses.
//! - When the current subflow has died there is no i to compare with: it begins anew, sticking to the lowest round
//!   trip.
//! - A reinjection goes to the lowest round trip and leaves the state alone.

use super::{Decision, Entry, Scheduler, Trigger, View};
use crate::view::SubflowView;
use anabranch_units::SubflowId;

const SOURCE: &str = "Nagayama et al., Managing Path Switching in Multipath Video Streaming, section V";

pub(super) const GREEDY: Entry = Entry {
    name: "gr-sty",
    summary: "Stays on a subflow until it can take no more data.",
    source: SOURCE,
    create: |options| {
        options.expect_only(&[])?;
        Ok(Box::new(Sticky::new(Stickiness::Greedy)))
    },
};

pub(super) const THROUGHPUT: Entry = Entry {
    name: "tp-sty",
    summary: "Stays on a subflow that is faster than the one before.",
    source: SOURCE,
    create: |options| {
        options.expect_only(&[])?;
        Ok(Box::new(Sticky::new(Stickiness::Throughput)))
    },
};

pub(super) const THROUGHPUT_AND_RTT: Entry = Entry {
    name: "tr-sty",
    summary: "Stays on a subflow that is faster than the one before and whose round trip compares as `tr_sense` says.",
    source: SOURCE,
    create: |options| {
        options.expect_only(&["tr_sense"])?;
        let sense = match options.word("tr_sense", &["printed", "analysis"])? {
            "printed" => Sense::Printed,
            _ => Sense::Analysis,
        };
        Ok(Box::new(Sticky::new(Stickiness::ThroughputAndRtt(sense))))
    },
};

/// When to stick to a new subflow.
#[derive(Clone, Copy, Debug)]
enum Stickiness {
    /// Always.
    Greedy,
    /// If its estimated throughput is higher than the old one's.
    Throughput,
    /// If, in addition, the round trips compare in this sense.
    ThroughputAndRtt(Sense),
}

/// The sense of the comparison of round trips.
#[derive(Clone, Copy, Debug)]
enum Sense {
    /// The old one's is shorter.
    Printed,
    /// The old one's is longer.
    Analysis,
}

impl Stickiness {
    /// Whether to stick to subflow `to` after leaving `from`.
    fn sticks(self, from: &SubflowView, to: &SubflowView) -> bool {
        let faster = from.rate() < to.rate();
        match self {
            Stickiness::Greedy => true,
            Stickiness::Throughput => faster,
            Stickiness::ThroughputAndRtt(Sense::Printed) => faster && from.srtt < to.srtt,
            Stickiness::ThroughputAndRtt(Sense::Analysis) => faster && from.srtt > to.srtt,
        }
    }
}

#[derive(Debug)]
struct Sticky {
    stickiness: Stickiness,
    current: Option<Current>,
}

/// The subflow in use.
#[derive(Clone, Copy, Debug)]
struct Current {
    id: SubflowId,
    stuck: bool,
}

impl Sticky {
    fn new(stickiness: Stickiness) -> Self {
        Sticky { stickiness, current: None }
    }

    fn pick(&mut self, view: &View<'_>) -> Option<usize> {
        let current = self.current.and_then(|c| Some((c, view.position_of(c.id)?)));
        if let Some((Current { stuck: true, .. }, position)) = current
            && view.candidates.contains(position)
        {
            return Some(position);
        }
        let pick = view.fastest_candidate()?;
        let to = &view.subflows[pick];
        match current {
            Some((_, position)) if position == pick => {}
            Some((_, position)) => {
                let stuck = self.stickiness.sticks(&view.subflows[position], to);
                self.current = Some(Current { id: to.id, stuck });
            }
            None => self.current = Some(Current { id: to.id, stuck: true }),
        }
        Some(pick)
    }
}

impl Scheduler for Sticky {
    fn decide(&mut self, view: &View<'_>, trigger: Trigger) -> Decision {
        match trigger {
            Trigger::NewData => view.one_segment(self.pick(view)),
            Trigger::Reinjection => view.one_segment(view.fastest_candidate()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::options::{Options, Value};
    use crate::scheduler::create;
    use crate::scheduler::testing::{Bed, ms, send, wait};

    const ALL: [&str; 3] = ["gr-sty", "tp-sty", "tr-sty"];

    /// Leaves subflow 0 (full) for subflow 1, makes room on 0 again, and returns whether the scheduler stuck to 1.
    fn sticks(mut bed: Bed) -> bool {
        assert_eq!(bed.decide(), send(0, 1_000));
        bed.fill(0);
        assert_eq!(bed.decide(), send(1, 1_000));
        bed.load(0, 0);
        // Subflow 0 must be the better one by round trip, or a return to it would prove nothing.
        bed.subflows[0].srtt = bed.subflows[1].srtt / 2;
        match bed.decide() {
            decision if decision == send(1, 1_000) => true,
            decision if decision == send(0, 1_000) => false,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn it_begins_at_the_lowest_round_trip_and_stays_until_full() {
        for name in ALL {
            let mut bed = Bed::new(name).subflow(ms(100), 10).subflow(ms(50), 10);
            assert_eq!(bed.decide(), send(1, 1_000));
            bed.subflows[0].srtt = ms(1);
            assert_eq!(bed.decide(), send(1, 1_000), "{name}: a shorter round trip is no reason to leave");
            bed.load(1, 9);
            assert_eq!(bed.decide(), send(1, 1_000));
            bed.load(1, 10);
            assert_eq!(bed.decide(), send(0, 1_000));
        }
    }

    #[test]
    fn faster_and_longer_all_three_stick() {
        // 10 kB / 50 ms = 200 kB/s before, 21 kB / 100 ms = 210 kB/s after.
        for name in ALL {
            assert!(sticks(Bed::new(name).subflow(ms(50), 10).subflow(ms(100), 21)), "{name}");
        }
    }

    #[test]
    fn slower_only_the_greedy_one_sticks() {
        // 200 kB/s before, 19 kB / 100 ms = 190 kB/s after.
        for (name, expected) in [("gr-sty", true), ("tp-sty", false), ("tr-sty", false)] {
            assert_eq!(sticks(Bed::new(name).subflow(ms(50), 10).subflow(ms(100), 19)), expected, "{name}");
        }
    }

    #[test]
    fn equally_fast_is_not_faster() {
        for (name, expected) in [("gr-sty", true), ("tp-sty", false), ("tr-sty", false)] {
            assert_eq!(sticks(Bed::new(name).subflow(ms(50), 10).subflow(ms(100), 20)), expected, "{name}");
        }
    }

    #[test]
    fn with_equal_round_trips_only_tr_sty_lets_go() {
        for (name, expected) in [("gr-sty", true), ("tp-sty", true), ("tr-sty", false)] {
            assert_eq!(sticks(Bed::new(name).subflow(ms(50), 10).subflow(ms(50), 20)), expected, "{name}");
        }
    }

    /// Begins on subflow 0 at 50 ms; then subflow 1 has the other round trip given and is faster in any case.
    fn changes_to(options: &[(&str, Value)], srtt_ms: u64) -> bool {
        let mut bed = Bed::with("tr-sty", options).subflow(ms(50), 10).subflow(ms(60), 100);
        assert_eq!(bed.decide(), send(0, 1_000));
        bed.subflows[1].srtt = ms(srtt_ms);
        sticks(bed)
    }

    #[test]
    fn tr_sense_turns_the_comparison_of_round_trips_round() {
        let printed = [("tr_sense", Value::Text("printed".into()))];
        let analysis = [("tr_sense", Value::Text("analysis".into()))];
        assert!(changes_to(&[], 100) && !changes_to(&[], 20), "the default is as printed");
        assert!(changes_to(&printed, 100) && !changes_to(&printed, 20));
        assert!(!changes_to(&analysis, 100) && changes_to(&analysis, 20));
        assert!(!changes_to(&printed, 50) && !changes_to(&analysis, 50), "equal fulfils neither");
    }

    #[test]
    fn tr_sense_belongs_to_tr_sty_and_has_two_values() {
        let options = Options::new(vec![("tr_sense".into(), Value::Text("analysis".into()))]);
        assert!(create("tr-sty", &options).is_ok());
        assert!(create("tp-sty", &options).is_err());
        let options = Options::new(vec![("tr_sense".into(), Value::Text("opposite".into()))]);
        assert!(create("tr-sty", &options).is_err());
    }

    #[test]
    fn while_it_does_not_stick_it_follows_the_lowest_round_trip() {
        // The second subflow is slower than the first, the third slower still: tp-sty sticks to neither.
        let mut bed = Bed::new("tp-sty").subflow(ms(50), 20).subflow(ms(60), 10).subflow(ms(70), 5);
        assert_eq!(bed.decide(), send(0, 1_000));
        bed.fill(0);
        assert_eq!(bed.decide(), send(1, 1_000));
        bed.subflows[2].srtt = ms(55);
        assert_eq!(bed.decide(), send(2, 1_000), "no stickiness on the second");
        bed.load(0, 0);
        assert_eq!(bed.decide(), send(0, 1_000));
        bed.subflows[0].srtt = ms(99);
        assert_eq!(bed.decide(), send(0, 1_000), "back on the fastest of all it sticks");
    }

    #[test]
    fn the_state_survives_waiting_and_reinjection() {
        let mut bed = Bed::new("gr-sty").subflow(ms(50), 10).subflow(ms(100), 10);
        assert_eq!(bed.decide(), send(0, 1_000));
        bed.fill(0);
        assert_eq!(bed.decide(), send(1, 1_000));
        bed.fill(1);
        assert_eq!(bed.decide(), wait());
        bed.load(0, 0);
        bed.load(1, 0);
        assert_eq!(bed.reinject(), send(0, 1_000), "reinjection goes by round trip");
        assert_eq!(bed.decide(), send(1, 1_000), "and new data stays");
    }

    #[test]
    fn a_shift_of_positions_does_not_change_the_subflow() {
        let mut bed = Bed::new("gr-sty").subflow(ms(50), 10).subflow(ms(80), 10).subflow(ms(60), 10);
        bed.fill(0);
        bed.fill(2);
        assert_eq!(bed.decide(), send(1, 1_000));
        bed.load(2, 0);
        bed.subflows.remove(0);
        assert_eq!(bed.decide(), send(0, 1_000), "the same subflow, at position 0 now");
    }

    #[test]
    fn after_the_death_of_its_subflow_it_begins_anew() {
        // The survivor is slower, so tp-sty would not stick to it if it compared with the dead one.
        let mut bed = Bed::new("tp-sty").subflow(ms(50), 20).subflow(ms(60), 10).subflow(ms(70), 5);
        assert_eq!(bed.decide(), send(0, 1_000));
        bed.subflows.remove(0);
        assert_eq!(bed.decide(), send(0, 1_000));
        bed.subflows[1].srtt = ms(10);
        assert_eq!(bed.decide(), send(0, 1_000), "it sticks");
    }
}
