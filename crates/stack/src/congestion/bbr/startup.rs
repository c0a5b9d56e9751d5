//! The end of Startup: the pipe is full when the bandwidth ceases to grow, or when a round trip loses too much.
//!
//! The bandwidth is the criterion of version 1, which has no other. But a round trip in which the sender lacked data
//! says nothing about growth. A subflow that the scheduler or the receive window holds back would therefore stay in
//! Startup, send at 2.89 times its bandwidth whenever it gets data, and overflow a shallow queue each time. So the
//! criterion of versions 2 and 3 ends Startup as well: in a loss recovery, at the end of a round trip with more than
//! [`LOSS_SHARE`] of its packets lost, in at least [`LOSS_EVENTS`] places (draft-ietf-ccwg-bbr, "Exiting Startup Based
//! on Packet Loss": `BBRLossThresh`, `BBRStartupFullLossCnt`). Ours: each acknowledgment that shows losses counts as
//! one place, as in the authors' code for Linux.

use super::rate::Rate;

const FULL_PIPE_GROWTH: f64 = 1.25;
const FULL_PIPE_ROUNDS: u32 = 3;
const LOSS_SHARE: f64 = 0.02;
const LOSS_EVENTS: u32 = 6;

/// Whether Startup has found the bandwidth.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    best: Rate,
    rounds_without_growth: u32,
    reached: bool,
    /// Since the round trip began: acknowledgments that showed losses, packets lost, packets delivered.
    loss_events: u32,
    lost: u64,
    delivered: u64,
}

impl FullPipe {
    pub(super) fn reached(&self) -> bool {
        self.reached
    }

    /// The pipe is full by another criterion.
    pub(super) fn reach(&mut self) {
        self.reached = true;
    }

    /// The bandwidth found so far may be wrong: rounds without growth count from here.
    pub(super) fn forget_best(&mut self) {
        self.best = Rate::ZERO;
    }

    /// A reduction was unnecessary: all rounds count anew.
    pub(super) fn restart(&mut self) {
        self.forget_best();
        self.rounds_without_growth = 0;
    }

    /// A round trip that was not limited by the application ended with this bandwidth.
    pub(super) fn on_round(&mut self, bandwidth: Rate) {
        if self.reached {
            return;
        }
        if bandwidth >= self.best.mul_f64(FULL_PIPE_GROWTH) {
            self.best = bandwidth;
            self.rounds_without_growth = 0;
        } else {
            self.rounds_without_growth += 1;
            self.reached = self.rounds_without_growth >= FULL_PIPE_ROUNDS;
        }
    }

    /// An acknowledgment delivered packets and showed others to be lost; it may end a round trip. `reacts`: whether its
    /// losses count, in a loss recovery of a sender that lacked data, or of any.
    pub(super) fn on_ack(&mut self, delivered: u32, lost: u32, round_start: bool, reacts: bool) {
        self.loss_events += u32::from(lost > 0);
        self.lost += u64::from(lost);
        self.delivered += u64::from(delivered);
        if !round_start {
            return;
        }
        let heavy = self.lost as f64 > LOSS_SHARE * (self.lost + self.delivered) as f64;
        self.reached |= reacts && heavy && self.loss_events >= LOSS_EVENTS;
        (self.loss_events, self.lost, self.delivered) = (0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Duration;

    #[test]
    fn three_rounds_without_a_quarter_more_bandwidth_fill_the_pipe() {
        let mut pipe = FullPipe::default();
        let mut rounds = |rates: &[u64]| {
            rates.iter().for_each(|&rate| pipe.on_round(Rate::new(rate, Duration::from_secs(1))));
            pipe.reached()
        };
        assert!(!rounds(&[100, 125, 157, 190, 195]));
        assert!(!rounds(&[197]), "the third round brought 25 %: 197 ≥ 1.25 · 157");
        assert!(!rounds(&[200, 210]));
        assert!(rounds(&[220]));
    }

    #[test]
    fn more_than_two_percent_of_a_round_must_be_lost_and_each_round_counts_anew() {
        // Six places with one packet each; 294 delivered make 2 %, 293 a little more.
        let round = |pipe: &mut FullPipe, delivered: u32, lost: u32| {
            (0..lost).for_each(|_| pipe.on_ack(0, 1, false, true));
            pipe.on_ack(delivered, 0, true, true);
            pipe.reached()
        };
        assert!(!round(&mut FullPipe::default(), 294, 6));
        assert!(round(&mut FullPipe::default(), 293, 6));
        let mut pipe = FullPipe::default();
        assert!(!round(&mut pipe, 100, 5) && !round(&mut pipe, 100, 5) && !round(&mut pipe, 100, 0));
        assert!(round(&mut pipe, 100, 6));
    }
}
