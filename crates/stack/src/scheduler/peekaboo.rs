//! Peekaboo: learns whether to wait for the fast subflow or to use another one.
//!
//! The contender f with the lowest round trip is used while it has room. When it has none, the candidate s with the
//! lowest round trip may take the segment, or it waits for f. Each of the two actions is an arm of a contextual bandit
//! (LinUCB) with a linear model of its reward:
//!
//! ```text
//! x = (w_f / rtt_f, n_s / rtt_s, B / rtt_f, B / rtt_s, n_f / rtt_f, w_s / rtt_s)                  in Mb/s
//! value_a = theta_a . x + alpha * sqrt(x' A_a^-1 x)      theta_a = A_a^-1 b_a      alpha = 3/4
//! A_a = I + sum x x'      b_a = sum g x      g = mss / (time from the decision to the acknowledgment)    in Mb/s
//! ```
//!
//! w: window, n: in flight, B: room in the peer's window, all in bytes; rtt: latest sample. The sums are over the
//! decisions for action a whose packet, the next one on the subflow that was chosen, is acknowledged. The larger value
//! wins, on a tie s. A decision to wait holds until f has room. After `learning` decisions (200) the term with alpha is
//! left out, and the better action is taken in 9 of 10 cases where it is to send, and in 7 of 10 where it is to wait:
//! the stochastic adjustment, which keeps on trying the other action on paths that change.
//!
//! Source: Wu et al., "Peekaboo: Learning-based Multipath Scheduling for Dynamic Heterogeneous Environments", IEEE JSAC
//! 38(10), 2020: its abstract and the public MPQUIC schedulers after it (`SHARANTANGEDA/mp-quic-schedulers`, MIT).
//!
//! Ours:
//! - Both phases belong to one connection. There, the matrices are learned in earlier runs and kept in a file, and the
//!   bandit goes without the adjustment, the adjustment without learning; here the models learn in both phases.
//! - The adjustment draws no random numbers: its cases are spread evenly, so that the same history gives the same
//!   decisions. The shares are the constants of that source; the paper estimates them from the paths.
//! - A^-1 is updated by the formula of Sherman and Morrison, which is exact. A later ns-3 model multiplies by A.
//! - Units are such that typical values are near 1; there, bytes per nanosecond, compared with which the identity is
//!   large.

use super::{Decision, Entry, PerSubflow, Scheduler, Sent, Services, Trigger, View};
use crate::view::SubflowView;
use anabranch_events::SendKind;
use anabranch_units::{Duration, Instant, SubflowId};

pub(super) const ENTRY: Entry = Entry {
    name: "peekaboo",
    summary: "Learns by LinUCB whether to wait for the fast subflow or to use the next one.",
    source: "Wu et al., Peekaboo, IEEE JSAC 38(10), 2020; SHARANTANGEDA/mp-quic-schedulers",
    create: |options| {
        options.expect_only(&["learning"])?;
        let learning = options.number("learning", 200.0, 0.0..=1e9)? as u32;
        Ok(Box::new(Peekaboo { learning, ..Peekaboo::default() }))
    },
};

/// Elements of x.
const DIMENSION: usize = 6;
type Vector = [f64; DIMENSION];
/// The weight of what is not known yet.
const ALPHA: f64 = 0.75;
/// The adjustment: of so many decisions for an action ...
const CASES: u32 = 10;
/// ... so many are followed, if it is to send or to wait.
const FOLLOWED: [u32; 2] = [9, 7];
/// The bound of elements of x and of rewards, in Mb/s: windows and round trips without bounds stay numbers.
const MOST_MBPS: f64 = 1e4;

/// What to do when the fast subflow has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Send,
    Wait,
}

impl Action {
    fn other(self) -> Self {
        if self == Action::Send { Action::Wait } else { Action::Send }
    }
}

/// A linear model of the reward of one action.
#[derive(Clone, Copy, Debug)]
struct Arm {
    /// The inverse of A.
    inverse: [Vector; DIMENSION],
    /// b.
    weighted: Vector,
}

impl Default for Arm {
    fn default() -> Self {
        let mut inverse = [[0.0; DIMENSION]; DIMENSION];
        for (index, row) in inverse.iter_mut().enumerate() {
            row[index] = 1.0;
        }
        Arm { inverse, weighted: [0.0; DIMENSION] }
    }
}

fn dot(a: &Vector, b: &Vector) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Arm {
    /// A^-1 x. The matrix is symmetric, so this serves theta . x as well.
    fn solve(&self, x: &Vector) -> Vector {
        self.inverse.map(|row| dot(&row, x))
    }

    fn value(&self, x: &Vector, alpha: f64) -> f64 {
        let solved = self.solve(x);
        dot(&solved, &self.weighted) + alpha * dot(&solved, x).max(0.0).sqrt()
    }

    fn learn(&mut self, x: &Vector, reward: f64) {
        let solved = self.solve(x);
        let scale = 1.0 + dot(&solved, x);
        for (row, a) in self.inverse.iter_mut().zip(&solved) {
            for (element, b) in row.iter_mut().zip(&solved) {
                *element -= a * b / scale;
            }
        }
        for (sum, element) in self.weighted.iter_mut().zip(x) {
            *sum += reward * element;
        }
    }
}

/// A decision whose reward is not known yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    action: Action,
    x: Vector,
    at: Instant,
    /// The subflow whose next packet is the decision's.
    subflow: SubflowId,
    /// Bytes that had left there before.
    before: u64,
    mss: u32,
}

#[derive(Debug, Default)]
struct Peekaboo {
    learning: u32,
    decisions: u32,
    /// The models of sending and of waiting.
    arms: [Arm; 2],
    /// Of the adjustment of either action: cases that were not followed, in shares of [`CASES`].
    credit: [u32; 2],
    pending: Vec<Pending>,
    /// Bytes that left for the first time on each subflow.
    sent: PerSubflow<u64>,
    /// The subflow that was chosen to be waited for.
    waits_for: Option<SubflowId>,
}

/// Bytes in a time, in Mb/s.
fn mbps(bytes: f64, time: Duration) -> f64 {
    (bytes * 8.0 / 1e6 / time.as_secs_f64()).clamp(0.0, MOST_MBPS)
}

/// x.
fn features(fast: &SubflowView, slow: &SubflowView, space: u64) -> Vector {
    let (rtt_f, rtt_s) = (fast.latest_rtt, slow.latest_rtt);
    if rtt_f.is_zero() || rtt_s.is_zero() {
        return [0.0; DIMENSION];
    }
    let window = |s: &SubflowView| s.cwnd.as_f64() * f64::from(s.mss);
    let in_flight = |s: &SubflowView| f64::from(s.in_flight) * f64::from(s.mss);
    [
        mbps(window(fast), rtt_f),
        mbps(in_flight(slow), rtt_s),
        mbps(space as f64, rtt_f),
        mbps(space as f64, rtt_s),
        mbps(in_flight(fast), rtt_f),
        mbps(window(slow), rtt_s),
    ]
}

impl Peekaboo {
    /// Bytes that the peer has acknowledged on a subflow.
    fn acknowledged(&mut self, subflow: &SubflowView) -> u64 {
        self.sent.of(subflow.id).saturating_sub(subflow.outstanding)
    }

    /// Learns from decisions whose packet was acknowledged.
    fn learn(&mut self, view: &View<'_>) {
        let now = view.connection.now;
        for pending in std::mem::take(&mut self.pending) {
            let Some(position) = view.position_of(pending.subflow) else { continue };
            let subflow = &view.subflows[position];
            if self.acknowledged(subflow) <= pending.before {
                self.pending.push(pending);
                continue;
            }
            // The connection does not ask while there is nothing to send, so the acknowledgment may have come before
            // now.
            let acked = if subflow.last_ack_at > pending.at { subflow.last_ack_at.min(now) } else { now };
            let reward = mbps(f64::from(pending.mss), acked.since(pending.at));
            self.arms[pending.action as usize].learn(&pending.x, reward);
        }
    }

    fn choose(&mut self, x: &Vector) -> Action {
        let learning = self.decisions < self.learning;
        self.decisions = self.decisions.saturating_add(1);
        let alpha = if learning { ALPHA } else { 0.0 };
        let [send, wait] = [0, 1].map(|arm: usize| self.arms[arm].value(x, alpha));
        let better = if send < wait { Action::Wait } else { Action::Send };
        if learning || self.follows(better) { better } else { better.other() }
    }

    /// Whether the adjustment follows this decision: its share of the cases, evenly spread and beginning with one that
    /// it follows.
    fn follows(&mut self, action: Action) -> bool {
        let missed = &mut self.credit[action as usize];
        *missed += CASES - FOLLOWED[action as usize];
        let follows = *missed < CASES;
        if !follows {
            *missed -= CASES;
        }
        follows
    }
}

impl Scheduler for Peekaboo {
    fn decide(&mut self, view: &View<'_>, trigger: Trigger) -> Decision {
        let slow = view.fastest_candidate();
        if trigger == Trigger::Reinjection {
            return view.one_segment(slow);
        }
        self.sent.forget_dead(view.subflows);
        self.learn(view);
        let (Some(slow), Some(fast)) = (slow, view.fastest_contender()) else {
            return view.one_segment(slow);
        };
        let (s, f) = (&view.subflows[slow], &view.subflows[fast]);
        if slow == fast {
            self.waits_for = None;
            return view.one_segment(Some(slow));
        }
        if self.waits_for == Some(f.id) {
            return Decision::Wait { until: None };
        }
        let x = features(f, s, view.connection.window_space());
        let action = self.choose(&x);
        let chosen = if action == Action::Send { s } else { f };
        let before = *self.sent.of(chosen.id);
        let at = view.connection.now;
        self.pending.push(Pending { action, x, at, subflow: chosen.id, before, mss: chosen.mss });
        self.waits_for = (action == Action::Wait).then_some(f.id);
        if action == Action::Send { view.one_segment(Some(slow)) } else { Decision::Wait { until: None } }
    }

    fn services(&self) -> Services {
        Services { sending: true, ..Services::NONE }
    }

    fn on_sent(&mut self, sent: &Sent, subflow: &SubflowView) {
        if !matches!(sent.kind, SendKind::Retransmission | SendKind::TailLossProbe) {
            *self.sent.of(subflow.id) += u64::from(sent.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Value;
    use crate::scheduler::testing::{Bed, at, ms, send, wait};

    /// A full subflow of 10 packets at 10 ms and an empty one at 100 ms; the peer's window has room for 10 kB.
    fn full_fast_path(mut bed: Bed) -> Bed {
        bed = bed.subflow(ms(10), 10).subflow(ms(100), 10);
        bed.fill(0);
        bed.connection.window_end = 10_000;
        bed
    }

    /// A packet leaves on a subflow, and everything there is acknowledged at once at that time.
    fn acknowledged(bed: &mut Bed, position: usize, time_ms: u64) {
        let subflow = bed.subflows[position];
        let sent = Sent { at: bed.connection.now, offset: 0, bytes: 1_000, kind: SendKind::New };
        bed.scheduler.on_sent(&sent, &subflow);
        bed.connection.now = at(ms(time_ms));
        bed.subflows[position].last_ack_at = bed.connection.now;
    }

    #[test]
    fn a_dialogue_by_hand() {
        let mut bed = full_fast_path(Bed::new("peekaboo"));
        // x = (8, 0, 8, 0.8, 8, 0.8) Mb/s, x . x = 193.28. Nothing is known: both are worth 0.75 * sqrt(193.28) =
        // 10.43.
        assert_eq!(bed.decide(), send(1, 1_000), "a tie");
        // Acknowledged after 100 ms, 0.08 Mb/s. Sending is worth 0.08 * 0.9949 + 0.75 * sqrt(0.9949) = 0.83 now.
        acknowledged(&mut bed, 1, 100);
        assert_eq!(bed.decide(), wait(), "0.83 against 10.43");
        assert_eq!(bed.decide(), wait(), "until the fast one has room");
        bed.load(0, 9);
        assert_eq!(bed.decide(), send(0, 1_000));
        // Acknowledged 20 ms after the decision, 0.4 Mb/s: waiting is worth 0.4 * 0.9949 + 0.748 = 1.15.
        acknowledged(&mut bed, 0, 120);
        bed.fill(0);
        assert_eq!(bed.decide(), wait(), "1.15 against 0.83");
        // Waiting once takes 10 s: its second reward is nearly nothing. (0.4 + 0.0008) * 193.28 / 387.56 + 0.75 *
        // sqrt(193.28 / 387.56) = 0.20 + 0.53 = 0.73.
        bed.load(0, 9);
        assert_eq!(bed.decide(), send(0, 1_000));
        acknowledged(&mut bed, 0, 10_120);
        bed.fill(0);
        assert_eq!(bed.decide(), send(1, 1_000), "0.73 against 0.83");
    }

    #[test]
    fn the_value_is_by_the_inverse() {
        // One element: A = 1 + 4 + 4 = 9, b = 2 * 3 + 2 * 1 = 8; theta = 8/9. By A in place of its inverse it would be
        // 72.
        let x = [2.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let mut arm = Arm::default();
        arm.learn(&x, 3.0);
        arm.learn(&x, 1.0);
        assert!((arm.value(&x, 0.0) - 2.0 * 8.0 / 9.0).abs() < 1e-12);
        assert!((arm.value(&x, 0.75) - 16.0 / 9.0 - 0.75 * (4.0_f64 / 9.0).sqrt()).abs() < 1e-12);
        // Two elements: A = ((2, 1), (1, 2)), its inverse ((2, -1), (-1, 2)) / 3, b = (3, 3); theta = (1, 1).
        let mut arm = Arm::default();
        arm.learn(&[1.0, 1.0, 0.0, 0.0, 0.0, 0.0], 3.0);
        assert!((arm.value(&[1.0, 0.0, 0.0, 0.0, 0.0, 0.0], 0.0) - 1.0).abs() < 1e-12);
        assert!((arm.inverse[0][1] + 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn after_learning_nine_of_ten_decisions_to_send_and_seven_of_ten_to_wait_are_followed() {
        for (action, share) in [(Action::Send, 9), (Action::Wait, 7)] {
            let mut peekaboo = Peekaboo::default();
            assert!(peekaboo.follows(action));
            let followed = (1..100).filter(|_| peekaboo.follows(action)).count() + 1;
            assert_eq!(followed, share * 10);
        }
        // Without a model both are worth nothing: to send, of which every tenth decision is turned round.
        let mut bed = full_fast_path(Bed::with("peekaboo", &[("learning", Value::Number(0.0))]));
        let decisions: Vec<_> = (0..10).map(|_| bed.decide()).collect();
        assert_eq!(decisions[..9], [send(1, 1_000); 9]);
        assert_eq!(decisions[9], wait());
    }

    #[test]
    fn the_fast_subflow_is_used_while_it_has_room_and_a_failed_one_is_not_waited_for() {
        let mut bed = Bed::new("peekaboo").subflow(ms(10), 10).subflow(ms(100), 10);
        assert_eq!(bed.decide(), send(0, 1_000));
        bed.fill(0);
        assert_eq!(bed.decide(), send(1, 1_000));
        acknowledged(&mut bed, 1, 100);
        assert_eq!(bed.decide(), wait());
        assert_eq!(bed.reinject(), send(1, 1_000), "a reinjection does not wait");
        bed.subflows[0].potentially_failed = true;
        assert_eq!(bed.decide(), send(1, 1_000));
    }
}
