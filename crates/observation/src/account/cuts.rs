//! Reductions of a window whose effects last.
//!
//! Each cut lowers the window from where it was. Until the window is there again, what it lacks belongs to the cut with
//! the lowest such window that it has yet to reach: without that cut it would be larger already. A cut is over
//!
//! - when the window is as large as before, or as large as the link needs, and has kept the link busy for a round trip;
//! - when NewReno, which adds a packet each round trip, would be there again: what a more timid control takes longer is
//!   its own.

use super::Cause;
use anabranch_units::{Duration, Instant};

/// A window within so much of where it was is there again: windows are whole packets, and controls settle just below.
const REACHED: f64 = 0.95;

/// How many packets a control adds each round trip at least, so that the time is that of the loss. NewReno adds one
/// (RFC 5681), and CUBIC at least as much on average (RFC 9438, 4.3); a fifth less, because round trips are longer than
/// their smoothed value while a queue grows.
const PACKETS_PER_ROUND_TRIP: f64 = 0.8;

/// A reduction of the window.
#[derive(Clone, Copy, Debug)]
struct Cut {
    cause: Cause,
    /// The window before, in packets.
    from: f64,
    /// The window has been smaller since: loss recovery reduces it step by step.
    begun: bool,
    /// When NewReno's window would be as large as before.
    until: Instant,
}

/// The cuts of a path, the one with the largest window before it first.
#[derive(Clone, Debug, Default)]
pub(super) struct Cuts {
    list: Vec<Cut>,
    /// The cause of the latest one, over or not.
    pub last: Option<Cause>,
}

impl Cuts {
    /// The window was reduced between these numbers of packets. `needed` is the window that the link needs.
    pub fn add(&mut self, cause: Cause, from: f64, to: f64, now: Instant, needed: f64, srtt: Duration) {
        // Windows that were reached again are those of this cut from here on.
        self.list.retain(|cut| cut.from > from);
        self.list.push(Cut { cause, from, begun: false, until: now });
        self.last = Some(cause);
        for cut in &mut self.list {
            let packets = (cut.from.min(needed) - to).max(1.0);
            cut.until = now + Duration::from_secs_f64(packets / PACKETS_PER_ROUND_TRIP * srtt.as_secs_f64());
        }
    }

    /// The latest loss turned out to be none.
    pub fn undo(&mut self) {
        if let Some(cut) = self.list.last_mut() {
            cut.cause = Cause::Reordering;
            self.last = Some(Cause::Reordering);
        }
    }

    /// Forgets what is over; `busy` says whether the window kept the link busy for a round trip.
    pub fn forget(&mut self, window: f64, now: Instant, needed: f64, busy: bool) {
        self.list.retain_mut(|cut| {
            let smaller = window < REACHED * cut.from.min(needed);
            cut.begun |= smaller;
            let reached = cut.begun && !smaller && busy;
            !reached && now < cut.until
        });
    }

    /// The cause of what the window lacks.
    pub fn cause(&self) -> Option<Cause> {
        self.list.last().map(|cut| cut.cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SRTT: Duration = Duration::from_millis(20);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn the_cut_with_the_lowest_window_before_it_is_the_cause() {
        let mut cuts = Cuts::default();
        cuts.add(Cause::LossRandom, 80.0, 40.0, at(0), 100.0, SRTT);
        cuts.add(Cause::IdleDecay, 40.0, 10.0, at(100), 100.0, SRTT);
        cuts.forget(10.0, at(100), 100.0, false);
        assert_eq!(cuts.cause(), Some(Cause::IdleDecay));
        cuts.forget(40.0, at(200), 100.0, true);
        assert_eq!(cuts.cause(), Some(Cause::LossRandom));
        cuts.forget(78.0, at(300), 100.0, true);
        assert_eq!((cuts.cause(), cuts.last), (None, Some(Cause::IdleDecay)));
    }

    #[test]
    fn a_cut_is_over_when_the_window_is_what_the_link_needs() {
        let mut cuts = Cuts::default();
        cuts.add(Cause::LossQueue, 80.0, 20.0, at(0), 30.0, SRTT);
        cuts.forget(20.0, at(10), 30.0, false);
        cuts.forget(29.0, at(20), 30.0, false);
        assert_eq!(cuts.cause(), Some(Cause::LossQueue), "the link is idle at times");
        cuts.forget(29.0, at(40), 30.0, true);
        assert_eq!(cuts.cause(), None);
    }

    #[test]
    fn a_cut_lasts_as_long_as_newreno_takes() {
        let mut cuts = Cuts::default();
        cuts.add(Cause::LossQueue, 20.0, 10.0, at(0), 100.0, SRTT);
        // Ten packets at 0.8 a round trip: 250 ms.
        cuts.forget(12.0, at(249), 100.0, false);
        assert_eq!(cuts.cause(), Some(Cause::LossQueue));
        cuts.forget(12.0, at(250), 100.0, false);
        assert_eq!(cuts.cause(), None);
    }

    #[test]
    fn a_reduction_that_was_undone_was_reordering() {
        let mut cuts = Cuts::default();
        cuts.add(Cause::LossQueue, 20.0, 10.0, at(0), 100.0, SRTT);
        cuts.undo();
        assert_eq!(cuts.cause(), Some(Cause::Reordering));
    }
}
