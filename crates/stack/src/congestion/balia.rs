//! BALIA, a balance of LIA and OLIA: friendly to other flows and quick to shift load.
//!
//! ```text
//! increase per acknowledged packet   w_i += x_i / (rtt_i · (Σ x_k)²) · (1 + a)/2 · (4 + a)/5
//! after a loss                       ssthresh = max(w_i − w_i/2 · min(a, 3/2), 2)
//!                                    x_k = w_k / rtt_k,   a = max_k x_k / x_i
//! ```
//! `w` windows (packets), `rtt` smoothed round trips (s), `x` rates (packets/s), `a ≥ 1` without a unit.
//! One path alone is NewReno. Peng, Walid, Hwang, Low, "Multipath TCP: Analysis, Design, and Implementation", IEEE/ACM
//! ToN 2016; draft-walid-mptcp-congestion-control-04.
//!
//! Ours: `a` is continuous, as in the draft. Linux's Multipath TCP v0.9x divides integers, so that the decrease there
//! is a half for every a < 2 and three quarters from 2 on. The floor of two packets is RFC 5681's; the draft has one.

use super::coupled::{self, Path};
use super::{Ack, CongestionControl, Entry, LossCause, Siblings, Window};
use anabranch_units::Instant;

pub(super) const ENTRY: Entry = Entry {
    name: "balia",
    summary: "Couples increases and decreases for a balance of friendliness and responsiveness.",
    source: "draft-walid-mptcp-congestion-control-04",
    create: |options, _seed| {
        options.expect_only(&[])?;
        Ok(Box::new(Balia))
    },
};

/// The largest part of half a window that a loss takes.
const MOST_OF_HALF: f64 = 1.5;

#[derive(Debug)]
struct Balia;

/// How many times faster the fastest path is than the own one.
fn lag(own: &Path, paths: impl Iterator<Item = Path>) -> f64 {
    paths.map(|p| p.rate()).fold(0.0, f64::max) / own.rate()
}

impl CongestionControl for Balia {
    fn on_ack(&mut self, ack: &Ack, window: &mut Window, siblings: Siblings<'_>) {
        coupled::grow(ack, window, siblings, |own, window| {
            let paths = coupled::paths(siblings, window);
            let rate = coupled::total_rate(paths.clone());
            let a = lag(own, paths);
            own.acceleration() / (rate * rate) * (1.0 + a) / 2.0 * (4.0 + a) / 5.0
        });
    }

    fn on_congestion(&mut self, _now: Instant, _cause: LossCause, window: &mut Window, siblings: Siblings<'_>) {
        let a = coupled::own_path(siblings, window).map_or(1.0, |own| lag(&own, coupled::paths(siblings, window)));
        let cwnd = window.cwnd.as_f64();
        window.set_ssthresh(cwnd - cwnd / 2.0 * a.min(MOST_OF_HALF));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_near, growth, threshold, view};
    use super::*;

    #[test]
    fn one_path_alone_is_newreno() {
        let all = [view(0, 16.0, 0.07)];
        assert_near(growth(&mut Balia, 16.0, &all, 0), 1.0 / 16.0, 1e-6);
        assert_near(threshold(&mut Balia, 16.0, LossCause::FastRetransmit, &all, 0), 8.0, 1e-9);
    }

    #[test]
    fn the_slower_path_of_two_grows_and_shrinks_as_the_draft_says() {
        // x = 80 and 100 packets/s: a = 1.25. Increase (x + xm)(4x + xm) / (10 w S²) = 180 · 420 / (10 · 8 · 180²).
        let all = [view(0, 8.0, 0.1), view(1, 10.0, 0.1)];
        assert_near(growth(&mut Balia, 8.0, &all, 0), 180.0 * 420.0 / (80.0 * 32_400.0), 1e-6);
        assert_near(threshold(&mut Balia, 8.0, LossCause::FastRetransmit, &all, 0), 8.0 - 4.0 * 1.25, 1e-9);
    }

    #[test]
    fn a_loss_takes_at_most_three_quarters() {
        let all = [view(0, 20.0, 0.1), view(1, 90.0, 0.1)];
        assert_near(threshold(&mut Balia, 20.0, LossCause::FastRetransmit, &all, 0), 5.0, 1e-9);
    }
}
