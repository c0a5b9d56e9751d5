//! The contract of every scheduler, of the registry or from outside, checked on arbitrary sequences of views.

use super::{Decision, Scheduler, SubflowSet, Trigger, View};
use crate::breach::{require, require_same};
use crate::view::{Arrivals, ConnectionView, Delivered, Pace, Packets, Phase, SubflowView};
use anabranch_units::{Bandwidth, Duration, Instant, PathId, SubflowId};
use proptest::prelude::*;

/// How often a scheduler is asked in one step of a sequence.
const QUESTIONS: usize = 6;

/// Subflows of a sequence.
const SUBFLOWS: usize = 5;

/// A sequence of views, and the subflow that is the only usable one after it.
#[derive(Clone, Debug)]
pub struct Case {
    steps: Vec<Step>,
    lone: usize,
}

/// Any sequence of up to nine views.
pub fn any_case() -> impl Strategy<Value = Case> {
    (prop::collection::vec(any_step(), 1..10), 0..SUBFLOWS).prop_map(|(steps, lone)| Case { steps, lone })
}

impl Case {
    /// Asks two schedulers that `make` makes: both must decide alike, send only on candidates and only what there is,
    /// wait only where something will wake them, and use a subflow that is the only usable one.
    ///
    /// # Errors
    /// The first breach.
    pub fn check(&self, make: &dyn Fn() -> Box<dyn Scheduler>) -> Result<(), TestCaseError> {
        let mut pair = [make(), make()];
        let mut connection = ConnectionView::default();
        for step in &self.steps {
            ask(&mut pair, &mut connection, step)?;
        }
        lone_subflow_gets_data(pair[0].as_mut(), connection, &self.steps[0], self.lone)
    }
}

/// Changes between two rounds of questions.
#[derive(Clone, Debug)]
struct Step {
    /// Every subflow of the sequence; `alive` marks those that exist in this step.
    subflows: Vec<SubflowView>,
    alive: u8,
    /// Which contenders have room.
    room: u8,
    elapsed: Duration,
    /// Bytes that the peer acknowledges, that it opens its window by, and that the application writes.
    acknowledged: u64,
    opened: u64,
    written: u64,
    retransmissions: u64,
    /// Whether one segment is sent at a time, whatever the decision allows.
    at_the_window: bool,
    trigger: Trigger,
}

fn any_bytes() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1..20_000_u64, 1..10_000_000_u64, Just(u64::MAX / 4)]
}

fn any_time() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::from_millis(50)),
        (1..2_000_000_000_u64).prop_map(Duration::from_nanos),
        Just(Duration::MAX)
    ]
}

fn any_window() -> impl Strategy<Value = Packets> {
    prop_oneof![Just(Packets::ZERO), Just(Packets::INFINITE), (0.0..200.0_f64).prop_map(Packets::from_f64)]
}

fn any_rate() -> impl Strategy<Value = Bandwidth> {
    prop_oneof![Just(Bandwidth::ZERO), Just(Bandwidth::INFINITE), (1..100_000_000_u64).prop_map(Bandwidth::from_bps)]
}

fn any_phase() -> impl Strategy<Value = Phase> {
    prop_oneof![4 => Just(Phase::Open), 1 => Just(Phase::Disorder), 2 => Just(Phase::Recovery), 1 => Just(Phase::Loss)]
}

prop_compose! {
    fn any_subflow()(
        (established, allowed) in (prop::bool::weighted(0.9), prop::bool::weighted(0.9)),
        (potentially_failed, rests_in_loss) in (prop::bool::weighted(0.1), any::<bool>()),
        (backup, metered) in (prop::bool::weighted(0.2), prop::bool::weighted(0.3)),
        phase in any_phase(),
        mss in prop_oneof![Just(1_u32), Just(1_400), Just(9_000)],
        (cwnd, ssthresh) in (any_window(), any_window()),
        in_flight in 0..300_u32,
        (queued, outstanding, memory, send_buffer) in (any_bytes(), any_bytes(), any_bytes(), any_bytes()),
        (srtt, rttvar, latest_rtt, min_rtt) in (any_time(), any_time(), any_time(), any_time()),
        pacing_rate in any_rate(),
    ) -> SubflowView {
        SubflowView {
            id: SubflowId(0), path: PathId(0), established, backup, metered, potentially_failed, rests_in_loss, allowed, phase,
            mss, tcp_mss: mss, cwnd, ssthresh, in_flight, unrepaired: in_flight / 20, oldest_sent: None, last_ack_at: Instant::ZERO, queued, outstanding, memory, send_buffer, srtt, rttvar, latest_rtt, min_rtt,
            pace: Pace::fixed(pacing_rate), delivery: Delivered::default(), arrivals: Arrivals::default(), acked_since_loss: 0, acked_between_losses: 0,
            seeks_min_rtt: false,
        }
    }
}

prop_compose! {
    fn any_step()(
        mut subflows in prop::collection::vec(any_subflow(), SUBFLOWS),
        (alive, room) in (any::<u8>(), any::<u8>()),
        elapsed in prop_oneof![Just(Duration::ZERO), (0..500_000_000_u64).prop_map(Duration::from_nanos)],
        (acknowledged, opened, written) in (0..100_000_u64, 0..100_000_u64, 0..100_000_u64),
        retransmissions in 0..2_u64,
        at_the_window in any::<bool>(),
        trigger in prop_oneof![4 => Just(Trigger::NewData), 1 => Just(Trigger::Reinjection)],
    ) -> Step {
        for (index, subflow) in (0_u16..).zip(&mut subflows) {
            subflow.id = SubflowId(index);
        }
        Step { subflows, alive, room, elapsed, acknowledged, opened, written, retransmissions, at_the_window, trigger }
    }
}

/// Moves the connection on to a step.
fn advance(connection: &mut ConnectionView, step: &Step) {
    connection.now += step.elapsed;
    connection.unacked = connection.next.min(connection.unacked + step.acknowledged);
    connection.window_end += step.opened;
    connection.unsent += step.written;
    connection.opportunistic_retransmissions += step.retransmissions;
}

/// The subflows that live in a step, and the candidates among them: contenders with room, at least one if there is any.
fn population(connection: &ConnectionView, step: &Step) -> (Vec<SubflowView>, SubflowSet) {
    let bit = |bits: u8, id: SubflowId| bits >> id.0 & 1 == 1;
    let subflows: Vec<_> = step.subflows.iter().filter(|s| bit(step.alive, s.id)).copied().collect();
    let view = View { connection, subflows: &subflows, candidates: SubflowSet::EMPTY, flight: &[] };
    let mut candidates = SubflowSet::EMPTY;
    for (position, _) in view.contenders().filter(|(_, s)| bit(step.room, s.id)) {
        candidates.insert(position);
    }
    if let (true, Some((position, _))) = (candidates.is_empty(), view.contenders().next()) {
        candidates.insert(position);
    }
    (subflows, candidates)
}

/// Nothing is in flight whose acknowledgment would ask again.
const WAITS_FOR_EVER: &str = "it waits although every subflow that may send has room, so nothing would make it decide again; \
    expected a subflow, or a time to wait until";

/// Checks one decision against the contract.
fn check(view: &View<'_>, trigger: Trigger, decision: Decision) -> Result<(), TestCaseError> {
    let connection = view.connection;
    match decision {
        Decision::Send { subflow, bytes } => {
            to_candidate(view, subflow, bytes)?;
            let something = trigger == Trigger::Reinjection || view.new_bytes() > 0;
            require(something, || "it sends new data where there is none".into())?;
        }
        Decision::Duplicate { subflow, offset, bytes } => {
            require(trigger == Trigger::NewData, || "it duplicates where it is asked for a reinjection".into())?;
            to_candidate(view, subflow, bytes)?;
            let sent = connection.unacked..=connection.next;
            require(sent.contains(&offset) && offset + bytes <= connection.next, || {
                format!("it duplicates {bytes} bytes from offset {offset}; in flight are those from {sent:?}")
            })?;
            let mss = view.subflows[subflow].mss;
            require(bytes <= u64::from(mss), || format!("it duplicates {bytes} bytes; a segment has at most {mss}"))?;
        }
        Decision::Wait { until } => {
            require(trigger == Trigger::NewData, || "it waits with a reinjection that a candidate could take".into())?;
            // Waiting for an event is safe only where an event must come: from a full subflow.
            let full = view.contenders().any(|(position, _)| !view.candidates.contains(position));
            require(view.new_bytes() == 0 || full || until.is_some(), || WAITS_FOR_EVER.into())?;
        }
    }
    Ok(())
}

/// Data goes to a candidate, and at least a byte of it.
fn to_candidate(view: &View<'_>, subflow: usize, bytes: u64) -> Result<(), TestCaseError> {
    require(view.candidates.contains(subflow), || {
        format!("it sends on the subflow at position {subflow}, which is no candidate")
    })?;
    require(bytes > 0, || "it sends no byte".into())
}

/// Carries a decision out as the connection does.
fn apply(connection: &mut ConnectionView, view_mss: u32, step: &Step, decision: Decision) {
    if let (Decision::Send { bytes, .. }, Trigger::NewData) = (decision, step.trigger) {
        let limit = if step.at_the_window { u64::from(view_mss) } else { u64::MAX };
        let taken = bytes.min(limit).min(connection.unsent).min(connection.window_space());
        connection.next += taken;
        connection.unsent -= taken;
    }
}

/// Asks two equal schedulers the questions of one step.
fn ask(pair: &mut [Box<dyn Scheduler>; 2], connection: &mut ConnectionView, step: &Step) -> Result<(), TestCaseError> {
    advance(connection, step);
    let (subflows, candidates) = population(connection, step);
    for _ in 0..QUESTIONS {
        let view = View { connection, subflows: &subflows, candidates, flight: &[] };
        let useful = step.trigger == Trigger::Reinjection || view.new_bytes() > 0 || pair[0].services().duplicates;
        if !useful {
            return Ok(());
        }
        let [decision, same] = [0, 1].map(|index| pair[index].decide(&view, step.trigger));
        require_same("decisions", &decision, &same, Decision::to_string)?;
        if candidates.is_empty() {
            let waits = decision == Decision::Wait { until: None };
            require(waits, || format!("without candidates it decided to {decision}; expected to wait"))?;
            return Ok(());
        }
        check(&view, step.trigger, decision)?;
        match decision {
            Decision::Wait { .. } => return Ok(()),
            Decision::Send { subflow, .. } | Decision::Duplicate { subflow, .. } => {
                apply(connection, subflows[subflow].mss, step, decision);
            }
        }
    }
    Ok(())
}

/// Asks about endless data while `lone` is all that is usable, until it is given some.
fn lone_subflow_gets_data(
    scheduler: &mut dyn Scheduler,
    mut connection: ConnectionView,
    step: &Step,
    lone: usize,
) -> Result<(), TestCaseError> {
    let mut subflows = step.subflows.clone();
    for (position, subflow) in subflows.iter_mut().enumerate() {
        subflow.allowed = position == lone;
    }
    let healthy = &mut subflows[lone];
    (healthy.established, healthy.potentially_failed, healthy.phase) = (true, false, Phase::Open);
    let mss = u64::from(healthy.mss);
    // A scheduler may first duplicate data in flight: here, up to ten segments.
    connection.unacked = connection.unacked.max(connection.next.saturating_sub(10 * mss));
    connection.unsent += 10_000;
    connection.window_end = connection.next + 10_000;
    let mut candidates = SubflowSet::EMPTY;
    candidates.insert(lone);
    for _ in 0..=10 {
        let view = View { connection: &connection, subflows: &subflows, candidates, flight: &[] };
        match scheduler.decide(&view, Trigger::NewData) {
            Decision::Send { subflow, .. } => {
                return require(subflow == lone, || {
                    format!("it sends on the subflow at position {subflow}, where only that at {lone} may send")
                });
            }
            Decision::Duplicate { .. } => {}
            Decision::Wait { until } => require(until.is_some(), || WAITS_FOR_EVER.into())?,
        }
    }
    Err(TestCaseError::fail("the only subflow that may send gets no new data"))
}
