//! DYNAMIC: the throughput rule decides while the buffer is short, BOLA when it is long.
//!
//! 2.6 to 2.9:  on if B > 12 s (the stable buffer time), off if B <= 6 s
//! 5.x:         on if B >= 12 s (`hybridSwitchBufferTime`), off if B < 6 s
//! B buffered, compared whenever it is measured; it begins with the throughput.
//!
//! dash.js 2.9.3, AbrController.updateIsUsingBufferOccupancyABR; 5.2.1, AbrController._updateDynamicAbrStrategy. With
//! `ABR_STRATEGY_BOLA` 2.x uses BOLA from the first measurement on, 5.x (only `bolaRule` active) from the start.

use super::super::options::Strategy;
use super::js::millis;
use anabranch_units::Duration;

/// The level to switch off, as a share of the level to switch on.
const OFF_SHARE: f64 = 0.5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generation {
    V2,
    V5,
}

#[derive(Debug)]
pub(super) struct Dynamic {
    strategy: Strategy,
    generation: Generation,
    /// Level to switch on, in seconds.
    on: f64,
    bola: bool,
}

impl Dynamic {
    pub(super) fn new(strategy: Strategy, generation: Generation, on: Duration) -> Self {
        let bola = strategy == Strategy::Bola && generation == Generation::V5;
        Dynamic { strategy, generation, on: on.as_secs_f64(), bola }
    }

    pub(super) fn measured(&mut self, buffer: Duration) {
        self.bola = match self.strategy {
            Strategy::Bola => true,
            Strategy::Throughput => false,
            Strategy::Dynamic => {
                let threshold = if self.bola { OFF_SHARE * self.on } else { self.on };
                let level = 0.001 * millis(buffer);
                level > threshold || (self.generation == Generation::V5 && level >= threshold)
            }
        };
    }

    /// Whether BOLA decides; otherwise the throughput rule.
    pub(super) fn bola(&self) -> bool {
        self.bola
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether BOLA decides at the beginning and after each level in milliseconds.
    fn decides(strategy: Strategy, generation: Generation, levels: &[u64]) -> Vec<bool> {
        let mut dynamic = Dynamic::new(strategy, generation, Duration::from_secs(12));
        let mut decides = vec![dynamic.bola()];
        for &ms in levels {
            dynamic.measured(Duration::from_millis(ms));
            decides.push(dynamic.bola());
        }
        decides
    }

    #[test]
    fn it_switches_on_at_twelve_and_off_at_six() {
        let levels = [11_999, 12_000, 12_001, 6_001, 6_000, 5_999, 12_000];
        assert_eq!(
            decides(Strategy::Dynamic, Generation::V2, &levels),
            [false, false, false, true, true, false, false, false]
        );
        assert_eq!(
            decides(Strategy::Dynamic, Generation::V5, &levels),
            [false, false, true, true, true, true, false, true]
        );
    }

    #[test]
    fn the_other_strategies_do_not_switch() {
        assert_eq!(decides(Strategy::Throughput, Generation::V2, &[50_000]), [false, false]);
        assert_eq!(decides(Strategy::Throughput, Generation::V5, &[50_000]), [false, false]);
        assert_eq!(decides(Strategy::Bola, Generation::V2, &[0]), [false, true]);
        assert_eq!(decides(Strategy::Bola, Generation::V5, &[0]), [true, true]);
    }
}
