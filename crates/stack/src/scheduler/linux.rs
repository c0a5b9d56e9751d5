//! The default of upstream Linux: the queue that drains soonest, in bursts.
//!
//! Among the contenders take the one whose queue would linger shortest, and give it a burst, which ends with the
//! fragment of the send queue (some 32 kB) that exceeds it, or where the subflow's buffer is full after a fragment:
//!
//! ```text
//! linger_i = m_i / avg_i                                     in seconds; smallest first, the oldest subflow on a tie
//! burst    = min(65 428 B, window_end - next)
//! avg_i    = (avg_i * m_i + pace_i * burst) / (m_i + burst)  of the chosen one, after the choice
//! ```
//!
//! m_i: memory of what was given to subflow i and is not yet acknowledged on it. pace_i: its pacing rate in bytes per
//! second, a multiple of window over round trip. avg_i starts at pace_i. A full subflow takes part too: if its queue is
//! the one that drains soonest, no subflow gets data. So a slow subflow gets its next burst only when what it holds
//! drains as soon as the fast one's full queue, and with all queues empty the initial subflow wins whatever its rate.
//!
//! Source: Linux 6.12, `net/mptcp/protocol.c`, `mptcp_subflow_get_send` and `__mptcp_push_pending`.
//!
//! Ours:
//! - A burst is not carried on at a later instant or in the application's next write, because 6.12 chooses anew in
//!   every push; `burst = "kept"` carries it on until it is used up, as 5.x did.
//! - Subflows that have no pacing rate yet are passed over as there, but used, oldest first, if no contender has one.
//! - A reinjection goes to the shortest linger too and leaves the state alone; there, a timer picks an idle subflow.

use super::{Decision, Entry, PerSubflow, Scheduler, Trigger, View};
use crate::view::{ConnectionView, SubflowView};
use anabranch_units::{Instant, SubflowId};

pub(super) const ENTRY: Entry = Entry {
    name: "linux",
    summary: "Takes the subflow whose queue drains soonest at its pacing rate, in bursts of up to 64 kB.",
    source: "Linux 6.12, net/mptcp/protocol.c, mptcp_subflow_get_send",
    create: |options| {
        options.expect_only(&["burst"])?;
        let kept = options.word("burst", &["push", "kept"])? == "kept";
        Ok(Box::new(Linux { kept, burst: None, average: PerSubflow::default() }))
    },
};

/// The longest burst: 64 KiB less the TCP header (20), its options (40), an IPv6 header (40) and a fragment header (8).
const MAX_BURST: u64 = 65_536 - 20 - 40 - 40 - 8;

#[derive(Debug)]
struct Linux {
    /// Whether a burst continues after the instant at which it was chosen.
    kept: bool,
    burst: Option<Burst>,
    /// Average pacing rate in bits per second; zero until there is one.
    average: PerSubflow<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Burst {
    subflow: SubflowId,
    /// Stream offset one past its last byte.
    end: u64,
    chosen_at: Instant,
}

impl Scheduler for Linux {
    fn decide(&mut self, view: &View<'_>, trigger: Trigger) -> Decision {
        self.average.forget_dead(view.subflows);
        if trigger == Trigger::Reinjection {
            let pick = self.least_linger(view.candidates()).or(view.candidates().next().map(|(position, _)| position));
            return view.one_segment(pick);
        }
        if let Some(decision) = self.running_burst(view) {
            return decision;
        }
        let pick = self.least_linger(view.contenders()).or(view.candidates().next().map(|(position, _)| position));
        match pick {
            Some(position) if view.candidates.contains(position) => self.start_burst(view, position),
            _ => Decision::Wait { until: None },
        }
    }
}

impl Linux {
    /// More of the current burst, if its subflow can take it.
    fn running_burst(&self, view: &View<'_>) -> Option<Decision> {
        let ConnectionView { now, write_begins, .. } = *view.connection;
        let burst = self.burst.filter(|b| self.kept || (b.chosen_at == now && !write_begins))?;
        let subflow = view.position_of(burst.subflow).filter(|position| view.candidates.contains(*position))?;
        let rest = burst.end.saturating_sub(view.connection.next);
        // A burst ends with the fragment, or with the segment, that exceeds it.
        let segment = u64::from(view.subflows[subflow].mss);
        (rest > 0).then_some(Decision::Send { subflow, bytes: view.connection.fragment.unwrap_or(rest.max(segment)) })
    }

    /// The subflow whose queue drains soonest; `None` if no subflow has a pacing rate.
    fn least_linger<'a>(&mut self, subflows: impl Iterator<Item = (usize, &'a SubflowView)>) -> Option<usize> {
        let lingers = subflows.filter_map(|(position, subflow)| Some((position, self.linger(subflow)?)));
        lingers.min_by_key(|(_, linger)| *linger).map(|(position, _)| position)
    }

    /// How long the subflow's queue lingers, in units of 2^-32 s; `None` without a pacing rate.
    fn linger(&mut self, subflow: &SubflowView) -> Option<u128> {
        let average = self.average.of(subflow.id);
        if *average == 0 {
            *average = subflow.pacing_rate().as_bps();
        }
        let bits = u128::from(subflow.memory) * 8;
        (bits << 32).checked_div(u128::from(*average))
    }

    fn start_burst(&mut self, view: &View<'_>, position: usize) -> Decision {
        let subflow = &view.subflows[position];
        let connection = view.connection;
        let burst = MAX_BURST.min(connection.window_space());
        let average = self.average.of(subflow.id);
        *average = weighted_average(*average, subflow.memory, subflow.pacing_rate().as_bps(), burst);
        self.burst = Some(Burst { subflow: subflow.id, end: connection.next + burst, chosen_at: connection.now });
        Decision::Send { subflow: position, bytes: connection.fragment.unwrap_or(burst) }
    }
}

/// `(a * weight_a + b * weight_b) / (weight_a + weight_b)`, rounded down; `b` if both weights are zero.
fn weighted_average(a: u64, weight_a: u64, b: u64, weight_b: u64) -> u64 {
    // Counting from the smaller term keeps the product within 128 bits and changes nothing else.
    let (base, spread, weight) = if a < b { (a, b - a, weight_b) } else { (b, a - b, weight_a) };
    let weights = u128::from(weight_a) + u128::from(weight_b);
    let share = (u128::from(spread) * u128::from(weight)).checked_div(weights);
    // The share of a spread is no more than the spread.
    share.map_or(b, |share| base + share as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Value;
    use crate::scheduler::testing::{Bed, at, kbps, ms, send, wait};
    use crate::view::Pace;

    /// Two subflows at 80 kb/s and 240 kb/s, so that 1000 bytes linger for 100 ms and 33.3 ms.
    fn slow_and_fast() -> Bed {
        let mut bed = Bed::new("linux").subflow(ms(100), 100).subflow(ms(100), 100);
        bed.subflows[0].pace = Pace::fixed(kbps(80));
        bed.subflows[1].pace = Pace::fixed(kbps(240));
        bed
    }

    #[test]
    fn the_burst_is_what_fits_a_maximum_sized_packet() {
        assert_eq!(MAX_BURST, 65_428);
    }

    #[test]
    fn with_empty_queues_the_initial_subflow_wins_whatever_its_rate() {
        assert_eq!(slow_and_fast().decide(), send(0, 65_428));
    }

    #[test]
    fn the_queue_that_drains_soonest_wins() {
        // 1000 B at 80 kb/s: 100 ms. 2999 B at 240 kb/s: 99.97 ms. 3000 B: 100 ms, a tie for the older one.
        let mut bed = slow_and_fast();
        bed.subflows[0].memory = 1_000;
        bed.subflows[1].memory = 2_999;
        assert_eq!(bed.decide(), send(1, 65_428));
        let mut bed = slow_and_fast();
        bed.subflows[0].memory = 1_000;
        bed.subflows[1].memory = 3_000;
        assert_eq!(bed.decide(), send(0, 65_428));
    }

    #[test]
    fn a_burst_stays_on_its_subflow_until_it_is_used_up() {
        let mut bed = slow_and_fast();
        assert_eq!(bed.decide(), send(0, 65_428));
        bed.sent(0, 60_000);
        assert_eq!(bed.decide(), send(0, 5_428));
        bed.sent(0, 5_428);
        assert_eq!(bed.decide(), send(1, 65_428));
    }

    /// Data commits into the send buffer, in fragments that begin at the next byte.
    fn fragmented() -> Bed {
        let mut bed = slow_and_fast();
        bed.connection.fragment = Some(32_728);
        bed
    }

    #[test]
    fn a_burst_ends_with_the_fragment_that_exceeds_it() {
        let mut bed = fragmented();
        assert_eq!(bed.decide(), send(0, 32_728));
        bed.sent(0, 32_728);
        // 32 700 bytes of the burst remain: a whole fragment.
        assert_eq!(bed.decide(), send(0, 32_728));
        bed.sent(0, 32_728);
        assert_eq!(bed.decide(), send(1, 32_728));
        // A burst that began within a fragment takes the rest of this one, and then two.
        let mut bed = fragmented();
        bed.connection.fragment = Some(728);
        assert_eq!(bed.decide(), send(0, 728));
        bed.sent(0, 728);
        bed.connection.fragment = Some(32_728);
        for _ in 0..2 {
            assert_eq!(bed.decide(), send(0, 32_728));
            bed.sent(0, 32_728);
        }
        assert_eq!(bed.decide(), send(1, 32_728));
    }

    #[test]
    fn a_burst_ends_after_a_fragment_that_fills_its_subflow() {
        let mut bed = fragmented();
        assert_eq!(bed.decide(), send(0, 32_728));
        bed.sent(0, 32_728);
        bed.fill(0);
        assert_eq!(bed.decide(), send(1, 32_728));
    }

    #[test]
    fn a_burst_ends_where_the_peers_window_ends() {
        let mut bed = slow_and_fast();
        bed.connection.window_end = bed.connection.next + 1_234;
        assert_eq!(bed.decide(), send(0, 1_234));
    }

    #[test]
    fn a_later_push_chooses_anew_unless_bursts_are_kept() {
        for (options, expected) in [(vec![], 1), (vec![("burst", Value::Text("kept".into()))], 0)] {
            let mut bed = Bed::with("linux", &options).subflow(ms(100), 100).subflow(ms(100), 100);
            bed.decide();
            bed.sent(0, 1_000);
            bed.connection.now = at(ms(1));
            let Decision::Send { subflow, .. } = bed.decide() else { panic!("there is room") };
            assert_eq!(subflow, expected);
        }
    }

    #[test]
    fn the_applications_next_write_chooses_anew() {
        let mut bed = fragmented();
        assert_eq!(bed.decide(), send(0, 32_728));
        bed.sent(0, 32_728);
        // The first subflow has the rest of its burst to come, but its queue lingers longer now.
        bed.connection.write_begins = true;
        assert_eq!(bed.decide(), send(1, 32_728));
    }

    #[test]
    fn a_full_subflow_that_drains_soonest_keeps_everybody_waiting() {
        // 1000 B at 80 kb/s: 100 ms; 2000 B at 240 kb/s: 67 ms, and this one is full.
        let mut bed = slow_and_fast();
        bed.subflows[0].memory = 1_000;
        bed.subflows[1].memory = 2_000;
        bed.fill(1);
        assert_eq!(bed.decide(), wait());
        // Once the fast one lingers longer, the slow one is given data.
        bed.subflows[1].memory = 4_000;
        assert_eq!(bed.decide(), send(0, 65_428));
    }

    #[test]
    fn a_burst_moves_on_when_its_subflow_fills_up() {
        let mut bed = slow_and_fast();
        assert_eq!(bed.decide(), send(0, 65_428));
        bed.sent(0, 10_000);
        bed.fill(0);
        assert_eq!(bed.decide(), send(1, 65_428));
    }

    #[test]
    fn the_average_rate_weighs_the_burst_against_what_is_buffered() {
        // Chosen with 34 572 B buffered and a rate that rose from 80 to 180 kb/s:
        // (80 * 34 572 + 180 * 65 428) / 100 000 = 145.428 kb/s.
        assert_eq!(weighted_average(80_000, 34_572, 180_000, 65_428), 145_428);
        let mut linux = Linux { kept: false, burst: None, average: PerSubflow::default() };
        let mut bed = slow_and_fast();
        *linux.average.of(SubflowId(0)) = 80_000;
        bed.subflows[0].pace = Pace::fixed(kbps(180));
        bed.subflows[0].memory = 34_572;
        bed.subflows[1].memory = 1_000_000;
        let decision = bed.ask(&mut linux, Trigger::NewData);
        assert_eq!(decision, send(0, 65_428));
        assert_eq!(*linux.average.of(SubflowId(0)), 145_428);
        assert_eq!(*linux.average.of(SubflowId(1)), 240_000, "the first rate seen, no update without a choice");
    }

    #[test]
    fn subflows_without_a_rate_are_passed_over_unless_none_has_one() {
        let mut bed = slow_and_fast();
        bed.subflows[0].pace = Pace::fixed(kbps(0));
        assert_eq!(bed.decide(), send(1, 65_428));
        let mut bed = slow_and_fast();
        bed.subflows[0].pace = Pace::fixed(kbps(0));
        bed.subflows[1].pace = Pace::fixed(kbps(0));
        assert_eq!(bed.decide(), send(0, 65_428));
    }

    #[test]
    fn a_reinjection_takes_one_segment_and_leaves_the_burst_alone() {
        let mut bed = slow_and_fast();
        assert_eq!(bed.decide(), send(0, 65_428));
        bed.sent(0, 10_000);
        assert_eq!(bed.reinject(), send(1, 1_000));
        assert_eq!(bed.decide(), send(0, 55_428));
    }

    #[test]
    fn averages_of_extreme_rates_neither_overflow_nor_divide_by_zero() {
        assert_eq!(weighted_average(5, 0, 7, 0), 7);
        assert_eq!(weighted_average(u64::MAX, u64::MAX, u64::MAX, MAX_BURST), u64::MAX);
        assert_eq!(weighted_average(u64::MAX, u64::MAX, 0, u64::MAX), u64::MAX / 2);
        assert_eq!(weighted_average(10, 1, 0, 3), 2, "10 / 4, rounded down");
        assert_eq!(weighted_average(0, 1, 10, 3), 7, "30 / 4, rounded down");
    }
}
