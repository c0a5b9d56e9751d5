//! The contract of every path policy, of the registry or from outside, checked on arbitrary states of subflows.

use super::PathPolicy;
use crate::breach::{require, require_same};
use crate::scheduler::SubflowSet;
use crate::view::{Packets, SubflowView};
use anabranch_units::{Duration, Instant};
use proptest::prelude::*;

/// States of subflows, one after the other: window in packets, round trip in milliseconds, and whether anything is in
/// flight.
#[derive(Clone, Debug)]
pub struct Case(Vec<Vec<(u32, u64, bool)>>);

/// Up to 299 states of up to four subflows.
pub fn any_case() -> impl Strategy<Value = Case> {
    let states = prop::collection::vec((1u32..200, 0u64..500, any::<bool>()), 1..5);
    prop::collection::vec(states, 1..300).prop_map(Case)
}

fn view((id, (cwnd, rtt_ms, busy)): (u16, &(u32, u64, bool))) -> SubflowView {
    let idle = SubflowView::idle(id, 1428, Packets::whole(*cwnd), Duration::from_millis(*rtt_ms));
    SubflowView { in_flight: u32::from(*busy), ..idle }
}

impl Case {
    /// Asks two policies that `make` makes: both must decide alike, allow at least one subflow and only existing ones,
    /// and ask to be called again later than now.
    ///
    /// # Errors
    /// The first breach.
    pub fn check(&self, make: &dyn Fn() -> Box<dyn PathPolicy>) -> Result<(), TestCaseError> {
        let (mut policy, mut other) = (make(), make());
        let mut now = Instant::ZERO;
        for round in &self.0 {
            let views: Vec<_> = (0..).zip(round).map(view).collect();
            let allowed = policy.decide(now, &views);
            let positions = |set: SubflowSet| set.iter().collect::<Vec<_>>();
            let (ours, theirs) = (positions(allowed), positions(other.decide(now, &views)));
            let words = |positions: &Vec<usize>| format!("{positions:?}");
            require_same("decisions (positions of the allowed subflows)", &ours, &theirs, words)?;
            require(!allowed.is_empty(), || "it allows no subflow".into())?;
            require(ours.iter().all(|at| *at < views.len()), || "it allows a subflow that does not exist".into())?;
            let Some(next) = policy.poll_timeout() else { break };
            require(next > now, || "the time of its next decision is not later than now".into())?;
            now = next;
        }
        Ok(())
    }
}
