//! What the queue shows about the flows that share it, for `cbbr` (`coupling.rs`).
//!
//! ```text
//! d         the queueing delay of a round trip: its least sample over the path's least round trip, minus 1
//! shared    for 64 round trips after 16 in a row that had a queue
//! agnostic  the least d of the last 32 round trips, all with a queue, is above 0.7 of the largest,
//!           unless in the last 160 round trips with a queue a loss shortened it, for two in a row, to less than 0.6 of the largest d
//! ```
//! `cbbr` sends below the bandwidth while there is a queue, so its own queue does not last: a queue that stays is kept
//! by others. Loss-based flows let it shrink at each loss, and their queue rises and falls. BBR fills the pipe up to a
//! fixed number of packets, whether or not some are lost, and its queue stays as long as it is until BBR looks for its
//! least round trip. CUBIC grows slowly over the middle of its cycle, and its queue may then look like BBR's where the
//! bandwidth-delay product is large. The next loss tells them apart.
//!
//! Source: ours. Nimbus (Goyal et al., SIGCOMM 2022) and Copa (Arun and Balakrishnan, NSDI 2018) also ask the queue who
//! else is there, and change between two modes: Nimbus by how the cross traffic answers pulses, Copa by whether the
//! queue drains regularly.

/// Round trips in a row with a queue after which others keep it. `cbbr` leaves a twentieth of the bandwidth to drain a
/// queue, so that what its own probing puts there, at most a quarter of a bandwidth-delay product, is gone after 5.
const SHARED_AFTER: u32 = 16;
/// Round trips for which this is remembered. A NewReno that halved its window at 10 Mb/s and 40 ms needs some 30 to
/// fill the pipe again.
const REMEMBERED: u32 = 64;
/// Round trips over which the queue has to stay. With 16, `cbbr` took 1.4 of one CUBIC's rate at 10 Mb/s and 40 ms;
/// with 48, it got 0.83 of one BBR's.
const WINDOW: usize = 32;
/// The least queueing delay, over the largest, of a queue that stays. BBR's probing alone makes it vary by about a
/// tenth.
const STEADY: f32 = 0.7;
/// What losses leave of a queue of loss-based flows: less than this. When `cbbr` alone reduces its data in flight, more
/// is left.
const SHORTENED: f32 = 0.6;
/// Round trips in a row with a shortened queue; one alone may be BBR's short visit to its least round trip.
const SHORT_ROUNDS: u32 = 2;
/// Losses show their effect within so many round trips.
const EFFECT: u32 = 5;
/// Round trips with a queue for which a loss that shortened it is remembered: longer than the middle of a cycle of
/// CUBIC at 100 Mb/s and 40 ms.
const LOSS_REMEMBERED: u32 = 160;

/// The queue of the last round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Competition {
    /// Queueing delays of the last round trips with a queue, at their number modulo the window.
    delays: [f32; WINDOW],
    /// Round trips in a row that had a queue.
    queued: u32,
    loss_agnostic: bool,
    /// Round trips for which the queue still counts as shared, losses may still show their effect, and such a loss is
    /// remembered.
    shared_for: u32,
    effect_for: u32,
    shortened_for: u32,
    /// Round trips in a row with a shortened queue.
    short: u32,
}

impl Competition {
    /// Others use this queue, or did so shortly before.
    pub(super) fn is_shared(&self) -> bool {
        self.shared_for > 0
    }

    /// Others keep the queue as it is and do not react to losses, as BBR.
    pub(super) fn is_loss_agnostic(&self) -> bool {
        self.loss_agnostic
    }

    /// A round trip ended: its queueing delay over the path's least round trip, if there was a queue, and whether it
    /// showed losses.
    pub(super) fn end_round(&mut self, delay: Option<f64>, lossy: bool) {
        self.shared_for = self.shared_for.saturating_sub(1);
        let Some(delay) = delay.map(|delay| delay as f32) else {
            (self.queued, self.short, self.loss_agnostic) = (0, 0, false);
            return;
        };
        self.effect_for = if lossy { EFFECT } else { self.effect_for.saturating_sub(1) };
        self.shortened_for = self.shortened_for.saturating_sub(1);
        self.short = if delay < SHORTENED * self.largest() { self.short + 1 } else { 0 };
        if self.short == SHORT_ROUNDS && self.effect_for > 0 {
            self.shortened_for = LOSS_REMEMBERED;
        }
        self.delays[self.queued as usize % WINDOW] = delay;
        self.queued = self.queued.saturating_add(1);
        if self.queued >= SHARED_AFTER {
            self.shared_for = REMEMBERED;
        }
        self.loss_agnostic = self.shortened_for == 0 && self.stays();
    }

    /// The delays since there was no queue, the window's at most.
    fn recent(&self) -> impl Iterator<Item = f32> {
        self.delays[..WINDOW.min(self.queued as usize)].iter().copied()
    }

    fn largest(&self) -> f32 {
        self.recent().fold(0.0, f32::max)
    }

    /// The queue stayed over the whole window.
    fn stays(&self) -> bool {
        self.queued as usize >= WINDOW && self.recent().fold(f32::MAX, f32::min) > STEADY * self.largest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(competition: &mut Competition, count: u32, delay: f64) {
        (0..count).for_each(|_| competition.end_round(Some(delay), false));
    }

    #[test]
    fn a_queue_that_stays_for_32_round_trips_is_kept_by_loss_agnostic_flows() {
        let mut competition = Competition::default();
        for round in 0..31 {
            // Losses change nothing while the queue stays.
            competition.end_round(Some(if round % 8 == 0 { 0.71 } else { 1.0 }), round % 10 == 0);
            assert!(!competition.is_loss_agnostic());
        }
        competition.end_round(Some(0.9), false);
        assert!(competition.is_loss_agnostic());
        competition.end_round(Some(0.69), false);
        assert!(!competition.is_loss_agnostic(), "0.69 is below 0.7 of the largest");
        rounds(&mut competition, 31, 1.0);
        assert!(!competition.is_loss_agnostic());
        rounds(&mut competition, 1, 1.0);
        assert!(competition.is_loss_agnostic(), "that round trip is no longer among the last 32");
        competition.end_round(None, false);
        assert!(!competition.is_loss_agnostic());
        rounds(&mut competition, 31, 0.9);
        assert!(!competition.is_loss_agnostic(), "without a queue all begins anew");
    }

    #[test]
    fn a_loss_that_shortens_the_queue_is_remembered() {
        let shortened = |lossy: bool, short_rounds: u32| {
            let mut competition = Competition::default();
            rounds(&mut competition, 32, 1.0);
            competition.end_round(Some(1.0), lossy);
            rounds(&mut competition, short_rounds, 0.59);
            rounds(&mut competition, 32, 1.0);
            competition
        };
        assert!(shortened(false, 2).is_loss_agnostic(), "without a loss the queue may shrink");
        assert!(shortened(true, 1).is_loss_agnostic(), "one round trip is too little");
        let mut competition = shortened(true, 2);
        assert!(!competition.is_loss_agnostic());
        rounds(&mut competition, 127, 1.0);
        assert!(!competition.is_loss_agnostic());
        rounds(&mut competition, 1, 1.0);
        assert!(competition.is_loss_agnostic(), "160 round trips after the second one with a shortened queue");
    }

    #[test]
    fn a_queue_is_shared_after_16_round_trips_and_for_64_more() {
        let mut competition = Competition::default();
        rounds(&mut competition, 15, 0.3);
        assert!(!competition.is_shared());
        rounds(&mut competition, 1, 0.9);
        for _ in 0..63 {
            competition.end_round(None, true);
            assert!(competition.is_shared());
        }
        competition.end_round(None, true);
        assert!(!competition.is_shared());
    }
}
