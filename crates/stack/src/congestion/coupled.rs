//! What coupled controllers share: the paths of a connection as windows and round trips, and slow start for itself.

use super::{Ack, Siblings, Window};

/// One path of the connection in a coupled sum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// Window in packets. A sibling in recovery counts with the window that recovery aims at.
    pub(super) window: f64,
    /// Smoothed round trip in seconds.
    pub(super) rtt: f64,
    /// Payload bytes between losses: the larger of those since the last one and those between the last two.
    pub(super) loss_interval: f64,
    /// Whether it is the controller's own path.
    pub(super) own: bool,
}

impl Path {
    /// Window over round trip (packets/s).
    pub(super) fn rate(&self) -> f64 {
        self.window / self.rtt
    }

    /// Window over the squared round trip (packets/s²): how fast a window of this size grows as a rate.
    pub(super) fn acceleration(&self) -> f64 {
        self.rate() / self.rtt
    }
}

/// Every path that counts, the own one with its momentary window: controllers grow only outside of recovery.
pub(super) fn paths<'a>(siblings: Siblings<'a>, own_window: &Window) -> impl Iterator<Item = Path> + Clone + use<'a> {
    let own = siblings.own();
    let own_window = own_window.cwnd.as_f64();
    siblings.coupled().map(move |s| {
        let is_own = std::ptr::eq(s, own);
        Path {
            window: if is_own { own_window } else { s.settled_window() },
            rtt: s.srtt.as_secs_f64(),
            loss_interval: s.acked_since_loss.max(s.acked_between_losses) as f64,
            own: is_own,
        }
    })
}

/// `Σ w/rtt` (packets/s).
pub(super) fn total_rate(paths: impl Iterator<Item = Path>) -> f64 {
    paths.map(|p| p.rate()).sum()
}

/// `Σ w` (packets).
pub(super) fn total_window(paths: impl Iterator<Item = Path>) -> f64 {
    paths.map(|p| p.window).sum()
}

/// The own path; `None` while its round trip is unknown, because the coupled sums then have no weight for it.
pub(super) fn own_path(siblings: Siblings<'_>, window: &Window) -> Option<Path> {
    paths(siblings, window).find(|p| p.own && p.rtt > 0.0)
}

/// Grows the window: slow start uncoupled (RFC 6356 section 3), then by `increment` (packets per acknowledged packet)
/// of the own path. Without a round trip, as NewReno.
pub(super) fn grow(
    ack: &Ack,
    window: &mut Window,
    siblings: Siblings<'_>,
    increment: impl FnOnce(&Path, &Window) -> f64,
) {
    if !ack.may_grow {
        return;
    }
    let left = window.slow_start(ack.delivered);
    if left <= 0.0 {
        return;
    }
    let per_packet = match own_path(siblings, window) {
        Some(own) => increment(&own, window),
        None => 1.0 / window.cwnd.as_f64(),
    };
    window.grow(left * per_packet);
}

#[cfg(test)]
mod tests {
    use super::super::testing::{view, window};
    use super::*;
    use crate::view::{Packets, Phase, SubflowView};

    #[test]
    fn disallowed_and_unmeasured_siblings_do_not_count_recovering_ones_with_their_target_and_dead_ones_hardly() {
        let recovering = SubflowView { phase: Phase::Recovery, ssthresh: Packets::whole(7), ..view(2, 3.0, 0.1) };
        let dead = SubflowView { phase: Phase::Loss, ssthresh: Packets::whole(40), ..view(5, 1.0, 0.1) };
        let disallowed = SubflowView { allowed: false, ..view(3, 50.0, 0.1) };
        let unmeasured = view(4, 50.0, 0.0);
        let all = [view(1, 99.0, 0.2), recovering, disallowed, unmeasured, dead];
        let found: Vec<_> = paths(Siblings::new(&all, 0), &window(10.0)).map(|p| (p.window, p.rtt, p.own)).collect();
        assert_eq!(found, [(10.0, 0.2, true), (7.0, 0.1, false), (1.0, 0.1, false)]);
    }

    #[test]
    fn growth_without_a_round_trip_is_that_of_newreno() {
        let all = [view(1, 10.0, 0.0)];
        let mut window = window(10.0);
        grow(&super::super::testing::ack(0.0, 1, 0.1), &mut window, Siblings::new(&all, 0), |_, _| unreachable!());
        assert!((window.cwnd.as_f64() - 10.1).abs() < 1e-9);
    }
}
