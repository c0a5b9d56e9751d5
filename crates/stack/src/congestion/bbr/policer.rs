//! Whether a token-bucket policer limits the path: two consecutive intervals with the same rate and heavy loss.
//!
//! An interval lasts from one loss to another, 4 to 16 round trips later, and counts if at least 50/256 of its packets
//! were lost. If the rates of two intervals in a row agree within 1/8 or 4 kb/s, their mean is used in place of the
//! measured bandwidth, for 48 round trips. Constants of Linux's `tcp_bbr.c`; Flach et al., "An Internet-Wide Analysis
//! of
//! Traffic Policing", SIGCOMM 2016.

use super::rate::Rate;
use anabranch_units::{Duration, Instant};

const MIN_ROUNDS: u32 = 4;
const MAX_ROUNDS: u32 = 4 * MIN_ROUNDS;
const LOSS_SHARE: f64 = 50.0 / 256.0;
const SAME_SHARE: f64 = 1.0 / 8.0;
/// Bits per second: rates that differ by less are the same.
const SAME_BPS: u64 = 4_000;
const ROUNDS_IN_USE: u32 = 48;
/// Shorter intervals give no rate.
const MIN_INTERVAL: Duration = Duration::from_millis(1);

/// The counters of the subflow at an acknowledgment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) now: Instant,
    pub(super) delivered: u64,
    pub(super) lost: u64,
}

/// The counters' change at one acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckSample {
    pub(super) totals: Totals,
    /// The acknowledgment shows a loss.
    pub(super) loss: bool,
    pub(super) app_limited: bool,
    /// The acknowledgment begins a round trip.
    pub(super) round_start: bool,
    /// The controller is cycling its gains.
    pub(super) cycling: bool,
    pub(super) mss: u32,
}

/// The policer's instruction to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Nothing,
    /// The policed rate was used long enough: probe for bandwidth again.
    Resume,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    /// No loss was seen: a policer would still have tokens.
    #[default]
    Waiting,
    /// An interval is running; `previous` is the rate of the one before.
    Sampling { previous: Option<Rate>, from: Totals, rounds: u32 },
    /// The path is policed at this rate.
    Policed { rate: Rate, rounds: u32 },
}

/// The search for a policer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    state: State,
}

impl Policer {
    /// The policed rate, if there is one.
    pub(super) fn rate(&self) -> Option<Rate> {
        match self.state {
            State::Policed { rate, .. } => Some(rate),
            _ => None,
        }
    }

    pub(super) fn reset(&mut self) {
        self.state = State::Waiting;
    }

    pub(super) fn observe(&mut self, seen: &AckSample) -> Action {
        match &mut self.state {
            State::Policed { rounds, .. } => {
                if seen.cycling && seen.round_start {
                    *rounds += 1;
                    if *rounds >= ROUNDS_IN_USE {
                        self.reset();
                        return Action::Resume;
                    }
                }
            }
            State::Waiting if !seen.loss => {}
            State::Waiting => {
                self.state = State::Sampling { previous: None, from: seen.totals, rounds: 0 };
                self.sample(seen);
            }
            State::Sampling { .. } => self.sample(seen),
        }
        Action::Nothing
    }

    fn sample(&mut self, seen: &AckSample) {
        let State::Sampling { previous, from, rounds } = &mut self.state else { return };
        // A sender that ran out of data underestimates the rate.
        if seen.app_limited {
            return self.reset();
        }
        *rounds += u32::from(seen.round_start);
        if *rounds < MIN_ROUNDS {
            return;
        }
        if *rounds > MAX_ROUNDS {
            return self.reset();
        }
        let (previous, from) = (*previous, *from);
        // Only a loss shows that the tokens are used up.
        if seen.loss && is_lossy(&from, &seen.totals) && seen.totals.now.since(from.now) >= MIN_INTERVAL {
            self.finish_interval(previous, &from, seen);
        }
    }

    fn finish_interval(&mut self, previous: Option<Rate>, from: &Totals, seen: &AckSample) {
        let rate = Rate::new(seen.totals.delivered - from.delivered, seen.totals.now.since(from.now));
        self.state = match previous {
            Some(previous) if is_same(rate, previous, seen.mss) => {
                State::Policed { rate: rate.mean(previous), rounds: 0 }
            }
            _ => State::Sampling { previous: Some(rate), from: seen.totals, rounds: 0 },
        };
    }
}

fn is_lossy(from: &Totals, to: &Totals) -> bool {
    let delivered = to.delivered.saturating_sub(from.delivered);
    delivered > 0 && to.lost.saturating_sub(from.lost) as f64 >= LOSS_SHARE * delivered as f64
}

fn is_same(rate: Rate, previous: Rate, mss: u32) -> bool {
    let difference = rate.difference(previous);
    difference <= previous.mul_f64(SAME_SHARE) || difference.to_bandwidth(mss).as_bps() <= SAME_BPS
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::at;
    use super::*;

    /// Round trips of a tenth of a second with so many packets delivered and lost in each.
    struct Path {
        policer: Policer,
        totals: Totals,
        rounds: u32,
    }

    impl Path {
        fn new() -> Self {
            Path { policer: Policer::default(), totals: Totals::default(), rounds: 0 }
        }

        fn round(&mut self, delivered: u64, lost: u64, app_limited: bool) -> Action {
            self.rounds += 1;
            self.totals.now = at(f64::from(self.rounds) * 0.1);
            self.totals.delivered += delivered;
            self.totals.lost += lost;
            let totals = self.totals;
            self.policer.observe(&AckSample {
                totals,
                loss: lost > 0,
                app_limited,
                round_start: true,
                cycling: true,
                mss: 1448,
            })
        }
    }

    #[test]
    fn two_lossy_intervals_of_one_rate_reveal_a_policer_for_48_rounds() {
        let mut path = Path::new();
        // The first loss counts as a round already; then 3 more, and 4 for the second interval.
        for _ in 0..7 {
            path.round(20, 6, false);
            assert_eq!(path.policer.rate(), None);
        }
        path.round(20, 6, false);
        assert_eq!(path.policer.rate().unwrap().as_f64().round(), 200.0);
        for _ in 0..47 {
            assert_eq!(path.round(20, 0, false), Action::Nothing);
        }
        assert_eq!(path.round(20, 0, false), Action::Resume);
        assert_eq!(path.policer.rate(), None);
    }

    #[test]
    fn light_loss_different_rates_and_a_lack_of_data_reveal_none() {
        let run = |rounds: &[(u64, u64, bool)]| {
            let mut path = Path::new();
            for &(delivered, lost, app_limited) in rounds.iter().cycle().take(100) {
                path.round(delivered, lost, app_limited);
                assert_eq!(path.policer.rate(), None);
            }
        };
        run(&[(20, 3, false)]);
        run(&[(20, 6, false), (20, 6, false), (20, 6, true)]);
        let slow_then_fast = [(20, 6, false); 4].into_iter().chain([(40, 12, false); 4]).collect::<Vec<_>>();
        run(&slow_then_fast);
    }
}
