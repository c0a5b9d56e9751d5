//! Joined: `earliest` with the other principles of scheduling as terms, each of which can be switched off.
//!
//! | option       | off means                                                                                    |
//! |--------------|----------------------------------------------------------------------------------------------|
//! | `arrival`    | subflows are compared by half of their smoothed round trip, not by the forecast A; no waiting |
//! | `rate`       | forecasts take window over least round trip for the rate, not what was delivered             |
//! | `waiting`, `copies`, `failover` | as those of `earliest`                                                    |
//! | `recovery`   | subflows in fast recovery get new data like the others                                       |
//! | `window`     | the peer's window is not looked at                                                           |
//! | `stickiness` | a change of subflows has no price                                                            |
//!
//! ```text
//! recovery     only candidates that are not in fast recovery, unless all are
//! stickiness   stay on c, the subflow of the latest new data, while it is a candidate, need not wait, and A_c <= A_i + price · m_c
//! window       wait if a full subflow j has A_j < A_i, and sum over j != i of r_j · (A_i + m_i / 2) > M - (mss + y_i)
//! ```
//! m: least round trip. `switch_price` (1/2): a change costs as much as half a round trip of the subflow that is left,
//! the time in which its last packets are still on their way while others arrive. M: the peer's window from the first
//! unacknowledged byte. y_i: what was given to i and is not acknowledged on it. The left side is what the others send
//! until the segment on i is acknowledged and the window moves on (BLEST's question, with forecasts in place of round
//! trips).
//!
//! Source: ours; "further work" of Nagayama et al., "Managing Path Switching in Multipath Video Streaming", asks for
//! path switching joined with window space, throughput and TCP state. papers/one-pipe measures what each term is worth.

use super::super::{Entry, SubflowSet, View};
use super::forecast::{Arrival, least_rtt};
use super::{Candidate, Earliest, Parts, Terms};
use crate::options::{OptionError, Options};
use crate::view::{Arrivals, Phase, SubflowView};
use anabranch_units::{Instant, SubflowId};

pub(in super::super) const ENTRY: Entry = Entry {
    name: "joined",
    summary: "Like earliest; a change of subflows has a price, and recovery and the peer's window count, too.",
    source: "ours: docs/validation/one-pipe.md, Joined",
    create: |options| {
        let (parts, terms) = read(options)?;
        Ok(Box::new(Earliest::new(parts, terms)))
    },
};

/// The price of a change, in least round trips of the subflow that is left.
const SWITCH_PRICE: f64 = 0.5;

/// What `joined` weighs besides the forecasts.
#[derive(Debug)]
struct Joined {
    arrival: bool,
    rate: bool,
    recovery: bool,
    window: bool,
    /// Zero: a change costs nothing.
    switch_price: f64,
    /// The subflow of the latest new data.
    current: Option<SubflowId>,
}

fn read(options: &Options) -> Result<(Parts, Joined), OptionError> {
    let flags = ["arrival", "rate", "waiting", "copies", "failover", "recovery", "window", "stickiness"];
    let known: Vec<&str> = flags.into_iter().chain(["switch_price"]).collect();
    options.expect_only(&known)?;
    let on = |name| options.flag(name, true);
    let arrival = on("arrival")?;
    let price = options.number("switch_price", SWITCH_PRICE, 0.0..=100.0)?;
    let parts = Parts { waiting: on("waiting")? && arrival, copies: on("copies")?, failover: on("failover")? };
    let switch_price = if on("stickiness")? { price } else { 0.0 };
    let (rate, recovery, window) = (on("rate")?, on("recovery")?, on("window")?);
    let terms = Joined { arrival, rate, recovery, window, switch_price, current: None };
    Ok((parts, terms))
}

impl Terms for Joined {
    fn seen(&self, subflow: &SubflowView) -> SubflowView {
        if self.rate { *subflow } else { SubflowView { arrivals: Arrivals::default(), ..*subflow } }
    }

    /// Those that are not in fast recovery, unless all are.
    fn eligible(&self, view: &View<'_>, set: SubflowSet) -> SubflowSet {
        let mut healthy = SubflowSet::EMPTY;
        for position in set.iter().filter(|at| view.subflows[*at].phase != Phase::Recovery) {
            healthy.insert(position);
        }
        if !self.recovery || healthy.is_empty() { set } else { healthy }
    }

    #[inline]
    fn best(earliest: &mut Earliest<Self>, view: &View<'_>, set: SubflowSet) -> Option<Candidate> {
        let (now, unsent) = (view.connection.now, view.connection.unsent);
        if earliest.terms.arrival && earliest.terms.switch_price == 0.0 {
            return earliest.first(view, set, unsent, None);
        }
        let mut best: Option<Candidate> = None;
        for position in set.iter() {
            let arrival = earliest.new_data(now, &view.subflows[position], unsent);
            if best.is_none_or(|best| arrival < best.arrival) {
                best = Some(Candidate { position, arrival });
            }
        }
        let best = best?;
        let current = earliest.terms.current.and_then(|id| view.position_of(id)).filter(|at| set.contains(*at));
        let Some(position) = current.filter(|current| *current != best.position) else { return Some(best) };
        let arrival = earliest.new_data(now, &view.subflows[position], unsent);
        let price = earliest.terms.switch_price * least_rtt(&view.subflows[position]).as_secs_f64();
        let current = Candidate { position, arrival };
        // One that gets nothing now waits for others, so the others must not wait for it.
        let stays = arrival <= best.arrival + price && earliest.gets_data(view, &current);
        Some(if stays { current } else { best })
    }

    /// Whether the others, one of which is faster but full, need the room that a segment on the chosen subflow takes in
    /// the peer's window.
    fn withholds(earliest: &mut Earliest<Self>, view: &View<'_>, choice: &Candidate) -> bool {
        if !earliest.terms.window {
            return false;
        }
        let now = view.connection.now;
        let subflow = &view.subflows[choice.position];
        let held = choice.arrival + least_rtt(subflow).as_secs_f64() / 2.0;
        let (mut needed, mut faster) = (0.0, false);
        for (position, other) in view.contenders().filter(|(position, _)| *position != choice.position) {
            let Arrival { rate, .. } = earliest.forecast(now, other);
            needed += rate * held;
            let full = !view.candidates.contains(position);
            faster |= full && earliest.new_data(now, other, view.connection.unsent) < choice.arrival;
        }
        let window = view.connection.window_end.saturating_sub(view.connection.unacked);
        let taken = u64::from(subflow.mss).saturating_add(subflow.queued).saturating_add(subflow.outstanding);
        faster && needed > window.saturating_sub(taken) as f64
    }

    fn note_placed(&mut self, subflow: SubflowId) {
        self.current = Some(subflow);
    }
}

impl Earliest<Joined> {
    /// When new data would arrive on a subflow, in seconds from now.
    fn new_data(&mut self, now: Instant, subflow: &SubflowView, unsent: u64) -> f64 {
        if self.terms.arrival { self.forecast(now, subflow).of(unsent) } else { (subflow.srtt / 2).as_secs_f64() }
    }

    /// Whether a subflow would get new data now, and need not wait.
    fn gets_data(&mut self, view: &View<'_>, choice: &Candidate) -> bool {
        !Joined::withholds(self, view, choice) && self.amount(view, choice).0 > 0
    }
}

#[cfg(test)]
mod tests {
    use crate::options::Value;
    use crate::scheduler::Decision;
    use crate::scheduler::testing::{Bed, at, ms, send};
    use crate::view::{Arrivals, Phase};

    /// Two empty paths with round trips of 100 ms and 100 and 80 kB/s: a segment arrives after 60 and 62.5 ms.
    fn bed(options: &[(&str, Value)]) -> Bed {
        let mut bed = Bed::with("joined", options).subflow(ms(100), 10).subflow(ms(100), 10);
        bed.subflows[0].arrivals = Arrivals { bytes: 10_000, interval: ms(100) };
        bed.subflows[1].arrivals = Arrivals { bytes: 8_000, interval: ms(100) };
        bed.connection.now = at(ms(1_000));
        bed
    }

    fn off(name: &'static str) -> Vec<(&'static str, Value)> {
        vec![(name, Value::Flag(false))]
    }

    fn is_wait(decision: Decision) -> bool {
        matches!(decision, Decision::Wait { until: Some(_) })
    }

    #[test]
    fn a_change_has_a_price() {
        // On 1, because 0 is full; then 0 has room again, and would be 2.5 ms + 60 ms = 62.5 ms faster than 1 with five
        // packets in its queue: more than half of 100 ms.
        let begun = |options: &[(&str, Value)]| {
            let mut bed = bed(options);
            bed.fill(0);
            assert_eq!(bed.decide(), send(1, 1_000));
            bed.load(0, 0);
            bed
        };
        let mut sticky = begun(&[]);
        assert_eq!(sticky.decide(), send(1, 1_000), "2.5 ms are less than half a round trip");
        sticky.load(1, 9);
        // 9 kB at 80 kB/s are 112.5 ms, less than the round trip and 25 ms for a delayed acknowledgment: 62.5 against
        // 60 ms.
        assert_eq!(sticky.decide(), send(1, 1_000));
        sticky.subflows[1].queued = 5_000;
        sticky.subflows[1].cwnd = crate::view::Packets::whole(20);
        // 14 kB are 175 ms: 112.5 against 60 ms.
        assert_eq!(sticky.decide(), send(0, 1_000));
        assert_eq!(begun(&off("stickiness")).decide(), send(0, 1_000));
        assert_eq!(begun(&[("switch_price", Value::Number(0.0))]).decide(), send(0, 1_000));
    }

    #[test]
    fn a_subflow_that_should_wait_for_a_faster_one_with_room_is_left() {
        // On 1, which would deliver 400 bytes after 55 ms: 1 ms later than 0, less than the price of a change. But 0
        // alone is done earlier, so 1 would wait for it.
        let mut bed = bed(&[]);
        bed.fill(0);
        assert_eq!(bed.decide(), send(1, 1_000));
        bed.load(0, 3);
        bed.connection.unsent = 400;
        assert_eq!(bed.decide(), send(0, 400));
    }

    #[test]
    fn a_subflow_that_would_take_the_window_of_another_is_left_for_one_that_does_not() {
        // On 1, which is slow; 2 is as fast as 0, and has room. For 1 the window of 10 kB would be needed by 0, which
        // is full.
        let mut bed = bed(&[("switch_price", Value::Number(10.0))]).subflow(ms(100), 10);
        bed.subflows[1].arrivals = Arrivals { bytes: 2_000, interval: ms(400) };
        bed.subflows[2].arrivals = bed.subflows[0].arrivals;
        bed.connection.window_end = 1_000_000;
        bed.fill(0);
        bed.fill(2);
        assert_eq!(bed.decide(), send(1, 1_000));
        bed.load(2, 5);
        assert_eq!(bed.decide(), send(1, 1_000), "the window has room for all");
        bed.connection.window_end = 20_000;
        assert_eq!(bed.decide(), send(2, 1_000));
    }

    #[test]
    fn a_subflow_in_fast_recovery_gets_nothing_new_while_another_has_room() {
        let recovering = |options: &[(&str, Value)]| {
            let mut bed = bed(options);
            bed.subflows[0].phase = Phase::Recovery;
            bed
        };
        let mut avoided = recovering(&[]);
        assert_eq!(avoided.decide(), send(1, 1_000));
        avoided.fill(1);
        assert_eq!(avoided.decide(), send(0, 1_000));
        assert_eq!(recovering(&off("recovery")).decide(), send(0, 1_000));
    }

    #[test]
    fn a_segment_that_would_take_the_window_of_a_faster_subflow_waits() {
        // Subflow 0 is full but faster: 10 ms of queue and 60 ms against 1 / 5 s and 50 ms on a path of 5 kB/s. Until
        // that is acknowledged after 300 ms, it sends 30 kB.
        let blocking = |options: &[(&str, Value)], window: u64| {
            let mut bed = bed(options);
            bed.subflows[1].arrivals = Arrivals { bytes: 2_000, interval: ms(400) };
            bed.fill(0);
            bed.connection.window_end = window;
            bed
        };
        assert_eq!(blocking(&[], 31_000).decide(), send(1, 1_000));
        assert!(is_wait(blocking(&[], 30_999).decide()));
        assert_eq!(blocking(&off("window"), 30_999).decide(), send(1, 1_000));
    }

    #[test]
    fn without_rates_the_window_counts_and_without_forecasts_the_round_trip() {
        // Windows of 10 and 20 packets of the same round trip: 100 and 200 kB/s.
        let mut windows = bed(&off("rate"));
        windows.subflows[1].cwnd = crate::view::Packets::whole(20);
        assert_eq!(windows.decide(), send(1, 1_000));
        assert_eq!(bed(&[]).decide(), send(0, 1_000));
        let mut round_trips = bed(&off("arrival"));
        round_trips.subflows[1].srtt = ms(90);
        assert_eq!(round_trips.decide(), send(1, 1_000));
    }

    #[test]
    fn with_every_term_of_its_own_off_it_is_earliest() {
        let own = ["stickiness", "recovery", "window"].map(|name| (name, Value::Flag(false)));
        let mut joined = bed(&own);
        let mut earliest = bed(&own);
        earliest.scheduler = crate::scheduler::create("earliest", &crate::options::Options::default()).expect("known");
        for (fill, unsent) in [(0, 100_000), (0, 500), (1, 20_000), (1, 1)] {
            for bed in [&mut joined, &mut earliest] {
                bed.fill(fill);
                bed.connection.unsent = unsent;
            }
            assert_eq!(joined.decide(), earliest.decide());
        }
    }
}
