//! CUBIC's growth as Linux computes it: whole packets, one step after so many acknowledged packets.
//!
//! ```text
//! count  = ⌊w / (⌊W(t + rtt)⌋ − w)⌋    acknowledged packets per step, 100 w where W lies below
//! W_est += 1                             after each ⌊15 w / 8⌋ acknowledged packets
//! count  ≤ ⌊w / (W_est − w)⌋            where W_est lies above;  count ≥ 2
//! ```
//! While the window stays as it is, `count` is computed anew only every 1/32 s. That and the rounding make Linux slower
//! than the formula at small windows: W_est gains a packet at a time, and the window follows a window of
//! acknowledgments later. Source: Linux `tcp_cubic.c` 2.3 (`bictcp_update`), `tcp_cong_avoid_ai`.

use super::Window;
use anabranch_units::{Duration, Instant};

/// How long a count holds while the window does not change (Linux: HZ/32 ticks).
const COUNT_HOLDS: Duration = Duration::from_micros(31_250);
/// Acknowledged packets, in eighths of a window, that raise W_est by one: ⌊8 (1 + β)/3 (1 − β)⌋ with Linux's β.
const EIGHTHS_PER_STEP: u32 = 15;
/// Windows per packet of growth while the cubic function lies below the window.
const PLATEAU: u32 = 100;
/// The most acknowledged packets per step while no loss was seen: 5 % per round trip.
const SEARCHING: u32 = 20;
/// The fewest acknowledged packets per step: 1.5 times per round trip.
const FEWEST: u32 = 2;

/// The state of the counting.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps {
    /// Acknowledged packets that count towards the next step of W_est.
    acked: u32,
    /// W_est.
    estimate: u32,
    /// Acknowledged packets per step of the window.
    count: u32,
    /// The window for which `count` was computed, and the time.
    computed: Option<(u32, Instant)>,
    /// Acknowledged packets that count towards the next step of the window.
    credit: u32,
}

impl Steps {
    /// A loss: growth will begin anew.
    pub(super) fn on_reduction(&mut self) {
        self.credit = 0;
    }

    /// Growth begins at this window.
    pub(super) fn begin(&mut self, window: u32, acked: u32) {
        (self.acked, self.estimate) = (acked, window);
    }

    /// Packets were acknowledged. Whether the count has to be computed anew, by [`Steps::compute`].
    pub(super) fn due(&mut self, now: Instant, window: u32, acked: u32) -> bool {
        self.acked = self.acked.saturating_add(acked);
        !self.computed.is_some_and(|(for_window, at)| for_window == window && now.since(at) <= COUNT_HOLDS)
    }

    /// Computes the count. `target` is where the cubic function wants the window; `searching`: no loss was seen yet.
    pub(super) fn compute(&mut self, now: Instant, window: u32, target: u32, searching: bool) {
        self.computed = Some((window, now));
        let window = window.max(1);
        self.count = if target > window { window / (target - window) } else { PLATEAU * window };
        if searching {
            self.count = self.count.min(SEARCHING);
        }
        let step = (window * EIGHTHS_PER_STEP / 8).max(1);
        // As many whole steps as leave something to count.
        let steps = self.acked.saturating_sub(1) / step;
        self.acked -= steps * step;
        self.estimate += steps;
        if self.estimate > window {
            self.count = self.count.min(window / (self.estimate - window));
        }
        self.count = self.count.max(FEWEST);
    }

    /// Moves the window for acknowledged packets.
    pub(super) fn grow(&mut self, window: &mut Window, acked: u32) {
        let mut steps = 0;
        // Credit from a larger count is worth one step.
        if self.credit >= self.count {
            (self.credit, steps) = (0, 1);
        }
        self.credit += acked;
        steps += self.credit / self.count;
        self.credit %= self.count;
        window.grow(f64::from(steps));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{at, window};
    use super::*;

    #[test]
    fn a_step_takes_as_many_packets_as_the_window_per_packet_to_the_target() {
        let mut steps = Steps::default();
        steps.begin(50, 0);
        steps.compute(at(1.0), 50, 60, false);
        assert_eq!(steps.count, 5);
        let mut window = window(50.0);
        steps.grow(&mut window, 4);
        assert_eq!(window.cwnd.floor(), 50);
        steps.grow(&mut window, 6);
        assert_eq!(window.cwnd.floor(), 52);
        steps.compute(at(1.0), 50, 50, false);
        assert_eq!(steps.count, 5000);
        steps.compute(at(1.0), 50, 500, false);
        assert_eq!(steps.count, 2, "no faster than half a packet per packet");
        steps.compute(at(1.0), 50, 50, true);
        assert_eq!(steps.count, 20);
    }

    #[test]
    fn the_estimate_gains_a_packet_after_fifteen_eighths_of_a_window() {
        let mut steps = Steps::default();
        steps.begin(8, 0);
        steps.due(at(1.0), 8, 15);
        steps.compute(at(1.0), 8, 8, false);
        assert_eq!((steps.estimate, steps.count), (8, 800));
        steps.due(at(1.1), 8, 1);
        steps.compute(at(1.1), 8, 8, false);
        assert_eq!((steps.estimate, steps.count, steps.acked), (9, 8, 1));
    }

    #[test]
    fn a_count_holds_for_a_while() {
        let mut steps = Steps::default();
        assert!(steps.due(at(1.0), 8, 1));
        steps.compute(at(1.0), 8, 8, false);
        assert!(!steps.due(at(1.03), 8, 1));
        assert!(steps.due(at(1.03), 9, 1));
        assert!(steps.due(at(1.04), 8, 1));
    }

    #[test]
    fn credit_from_before_is_worth_one_step() {
        let (mut steps, mut window) = (Steps { credit: 90, count: 100, ..Steps::default() }, window(50.0));
        steps.count = 10;
        steps.grow(&mut window, 1);
        assert_eq!((window.cwnd.floor(), steps.credit), (51, 1));
    }
}
