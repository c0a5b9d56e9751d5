//! OLIA: an aggregate of one TCP's throughput as with LIA, but windows move from congested paths to the best ones.
//!
//! ```text
//! increase per acknowledged packet   w_i += (w_i / rtt_i²) / (Σ w_k / rtt_k)² + α_i / w_i        never below 1
//!   with l = max(bytes since the last loss, bytes between the last two), n paths,
//!        B = the paths with the largest l / rtt², M = those with the largest window:
//!   α_i = +1 / (n · |B \ M|)   on a path of B \ M
//!         −1 / (n · |M|)       on a path of M, if B \ M is not empty
//!          0                   otherwise
//! after a loss                       ssthresh = max(w_i / 2, 2)
//! ```
//! `w` windows (packets), `rtt` smoothed round trips (s), `l` in payload bytes; the subflow keeps it. The α_i of all
//! paths sum to zero. Khalili et al., "MPTCP Is Not Pareto-Optimal", CoNEXT 2012;
//! draft-khalili-mptcp-congestion-control-05.
//!
//! Ours: windows are fractions; so that M can hold more than one path, whole packets are compared, as Linux's integer
//! windows are. Ties in B are relative to [`TIE`]. Linux's Multipath TCP v0.9x accumulates thousandths and then moves
//! by a whole packet, losing the remainder; we add the fraction.
//! The handoff paper (Fujiwara et al.) prints eq. 5 without `/ rtt_i²`, which is off by the square of a time, and
//! there and in the sticky-schedulers paper α is "a positive parameter": it takes all three signs. We follow the draft.

use super::coupled::{self, Path};
use super::{Ack, CongestionControl, Entry, LossCause, Siblings, Window};
use anabranch_units::Instant;

pub(super) const ENTRY: Entry = Entry {
    name: "olia",
    summary: "Couples the increases and moves windows from congested paths to the best ones.",
    source: "draft-khalili-mptcp-congestion-control-05",
    create: |options, _seed| {
        options.expect_only(&[])?;
        Ok(Box::new(Olia))
    },
};

/// Paths whose `l / rtt²` differ by less than this share are equally good: rounding must not decide.
const TIE: f64 = 1e-6;

#[derive(Debug)]
struct Olia;

fn quality(path: &Path) -> f64 {
    path.loss_interval / (path.rtt * path.rtt)
}

/// α_i of the own path.
fn alpha(own: &Path, paths: impl Iterator<Item = Path> + Clone) -> f64 {
    let best = paths.clone().map(|p| quality(&p)).fold(0.0, f64::max);
    let largest = paths.clone().map(|p| p.window.floor()).fold(0.0, f64::max);
    let has_largest_window = |p: &Path| p.window.floor() >= largest;
    let is_neglected = |p: &Path| !has_largest_window(p) && quality(p) >= best * (1.0 - TIE);

    let (mut n, mut neglected, mut largest_windows) = (0.0, 0.0, 0.0);
    for path in paths {
        n += 1.0;
        neglected += f64::from(u8::from(is_neglected(&path)));
        largest_windows += f64::from(u8::from(has_largest_window(&path)));
    }
    if neglected == 0.0 {
        0.0
    } else if is_neglected(own) {
        1.0 / (n * neglected)
    } else if has_largest_window(own) {
        -1.0 / (n * largest_windows)
    } else {
        0.0
    }
}

impl CongestionControl for Olia {
    fn on_ack(&mut self, ack: &Ack, window: &mut Window, siblings: Siblings<'_>) {
        coupled::grow(ack, window, siblings, |own, window| {
            let paths = coupled::paths(siblings, window);
            let rate = coupled::total_rate(paths.clone());
            own.acceleration() / (rate * rate) + alpha(own, paths) / own.window
        });
    }

    fn on_congestion(&mut self, _now: Instant, _cause: LossCause, window: &mut Window, _siblings: Siblings<'_>) {
        window.set_ssthresh(window.cwnd.as_f64() / 2.0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_near, growth, view, window};
    use super::*;
    use crate::view::SubflowView;

    /// α of each path, from windows, round trips and loss intervals.
    fn alphas(of: &[(f64, f64, u64)]) -> Vec<f64> {
        let all: Vec<_> = of.iter().enumerate().map(|(i, &(w, rtt, l))| with_interval(i as u16, w, rtt, l)).collect();
        (0..all.len())
            .map(|own| {
                let (siblings, window) = (Siblings::new(&all, own), window(of[own].0));
                alpha(&coupled::own_path(siblings, &window).unwrap(), coupled::paths(siblings, &window))
            })
            .collect()
    }

    fn with_interval(id: u16, w: f64, rtt: f64, l: u64) -> SubflowView {
        SubflowView { acked_since_loss: l, ..view(id, w, rtt) }
    }

    #[test]
    fn the_best_path_with_a_small_window_takes_from_the_largest() {
        // B = {1}, M = {0, 2}: +1/(3·1) and twice −1/(3·2).
        assert_eq!(
            alphas(&[(20.0, 0.1, 1000), (5.0, 0.1, 9000), (20.4, 0.1, 10)]),
            [-1.0 / 6.0, 1.0 / 3.0, -1.0 / 6.0]
        );
    }

    #[test]
    fn nothing_moves_while_the_best_path_has_the_largest_window() {
        assert_eq!(alphas(&[(20.0, 0.1, 9000), (5.0, 0.1, 1000)]), [0.0, 0.0]);
    }

    #[test]
    fn a_path_that_is_neither_best_nor_largest_keeps_its_share() {
        let found = alphas(&[(20.0, 0.1, 1000), (5.0, 0.1, 9000), (7.0, 0.1, 10)]);
        assert_eq!(found, [-1.0 / 3.0, 1.0 / 3.0, 0.0]);
        assert_eq!(found.iter().sum::<f64>(), 0.0);
    }

    #[test]
    fn quality_counts_the_squared_round_trip() {
        // 8000/0.2² < 3000/0.1²: the path with fewer bytes between losses is the better one.
        assert_eq!(alphas(&[(20.0, 0.2, 8000), (5.0, 0.1, 3000)]), [-0.5, 0.5]);
    }

    #[test]
    fn the_increase_is_that_of_the_draft() {
        // (10/0.01) / (100 + 50)² + 0 for the own path of two, whose window and quality are the largest.
        let all = [with_interval(0, 10.0, 0.1, 9000), with_interval(1, 5.0, 0.1, 10)];
        assert_near(growth(&mut Olia, 10.0, &all, 0), 1000.0 / 22_500.0, 1e-6);
        // On the neglected path α = +1/2 at w = 5; on the largest −1/2 at w = 10, which outweighs the first term.
        let all = [with_interval(0, 10.0, 0.1, 10), with_interval(1, 5.0, 0.1, 9000)];
        assert_near(growth(&mut Olia, 5.0, &all, 1), 500.0 / 22_500.0 + 0.1, 1e-6);
        assert_near(growth(&mut Olia, 10.0, &all, 0), 1000.0 / 22_500.0 - 0.05, 1e-6);
    }

    #[test]
    fn the_window_never_falls_below_one_packet() {
        let all = [with_interval(0, 1.0, 0.1, 10), with_interval(1, 0.5, 0.01, 9000)];
        assert_eq!(growth(&mut Olia, 1.0, &all, 0), 0.0);
    }
}
