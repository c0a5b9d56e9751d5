//! LIA: all subflows together are no more aggressive than one TCP on the best path, and none is on its own path.
//!
//! ```text
//! increase per acknowledged packet   w_i += min(α / Σw, 1 / w_i)
//!                                    α    = Σw · max_k(w_k / rtt_k²) / (Σ w_k / rtt_k)²
//! after a loss                       ssthresh = max(w_i / 2, 2)
//! ```
//! `w` windows (packets), `rtt` smoothed round trips (s), α without a unit. The sums run over the subflows that may
//! send; slow start is not coupled. RFC 6356 sections 3 and 4.1.
//!
//! Ours: α is computed anew for every acknowledgment. RFC 6356 allows, and Linux's Multipath TCP v0.9x does, keeping
//! it for a window; and the window moves by fractions, where Linux adds a packet after so many acknowledgments.
//! The handoff paper (Fujiwara et al.) prints eq. 4 without α's definition, sums from 0 to n over n subflows,
//! and says that the total grows no faster than one Reno; the minimum is a bound for each subflow, so we follow the
//! RFC.

use super::{Ack, CongestionControl, Entry, LossCause, Siblings, Window, coupled};
use anabranch_units::Instant;

pub(super) const ENTRY: Entry = Entry {
    name: "lia",
    summary: "Couples the increases so that all subflows together take what one TCP would on the best path.",
    source: "RFC 6356",
    create: |options, _seed| {
        options.expect_only(&[])?;
        Ok(Box::new(Lia))
    },
};

#[derive(Debug)]
struct Lia;

/// RFC 6356 equation (2), and the sum of the windows.
fn alpha_and_total(siblings: Siblings<'_>, window: &Window) -> (f64, f64) {
    let (mut total, mut rate, mut best) = (0.0, 0.0, 0.0_f64);
    for path in coupled::paths(siblings, window) {
        total += path.window;
        rate += path.rate();
        best = best.max(path.acceleration());
    }
    (total * best / (rate * rate), total)
}

impl CongestionControl for Lia {
    fn on_ack(&mut self, ack: &Ack, window: &mut Window, siblings: Siblings<'_>) {
        coupled::grow(ack, window, siblings, |own, window| {
            let (alpha, total) = alpha_and_total(siblings, window);
            (alpha / total).min(1.0 / own.window)
        });
    }

    fn on_congestion(&mut self, _now: Instant, _cause: LossCause, window: &mut Window, _siblings: Siblings<'_>) {
        window.set_ssthresh(window.cwnd.as_f64() / 2.0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_near, growth, threshold, view, window};
    use super::*;

    #[test]
    fn alpha_of_two_equal_paths_is_a_half() {
        // Σw = 20, max w/rtt² = 1000, (Σ w/rtt)² = 200²: 20 · 1000 / 40000.
        let all = [view(0, 10.0, 0.1), view(1, 10.0, 0.1)];
        assert_near(alpha_and_total(Siblings::new(&all, 0), &window(10.0)).0, 0.5, 1e-9);
        assert_near(growth(&mut Lia, 10.0, &all, 0), 0.5 / 20.0, 1e-6);
    }

    #[test]
    fn a_single_path_grows_as_newreno() {
        let all = [view(0, 8.0, 0.05)];
        assert_near(growth(&mut Lia, 8.0, &all, 0), 1.0 / 8.0, 1e-6);
        assert_near(threshold(&mut Lia, 8.0, LossCause::FastRetransmit, &all, 0), 4.0, 1e-9);
    }

    #[test]
    fn no_subflow_grows_faster_than_one_tcp_on_its_path() {
        // The short path has α = 22 · 2/0.01² / (2/0.01 + 20/1)² = 9.09, and 9.09 / 22 < 1/2, but 1/20 caps the long
        // one.
        let all = [view(0, 2.0, 0.01), view(1, 20.0, 1.0)];
        assert_near(growth(&mut Lia, 2.0, &all, 0), 9.0909 / 22.0, 1e-4);
        assert_near(growth(&mut Lia, 20.0, &all, 1), 1.0 / 20.0, 1e-6);
    }
}
