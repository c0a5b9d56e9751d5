//! The highest estimated throughput first.
//!
//! Among the subflows with room take the one with the highest estimated rate, lambda_i = w_i * MSS_i / srtt_i in bytes
//! per second.
//!
//! Source: Kimura, Lima, Loureiro, "Alternative Scheduling Decisions for Multipath TCP", IEEE Communications Letters
//! 2017 (highest sending rate); Matsufuji et al., "Multipath TCP Packet Schedulers for Streaming Video", PACRIM 2017.
//! Ours: on a tie the lower round trip, then the older subflow; a subflow without a round-trip sample counts as rate
//! zero.

use super::{Decision, Entry, Scheduler, Trigger, View};

pub(super) const ENTRY: Entry = Entry {
    name: "highest-rate",
    summary: "Takes the subflow with the highest estimated throughput (window over round trip) that has room.",
    source: "Kimura et al., IEEE Communications Letters 2017; Matsufuji et al., PACRIM 2017",
    create: |options| {
        options.expect_only(&[])?;
        Ok(Box::new(HighestRate))
    },
};

#[derive(Debug)]
struct HighestRate;

impl Scheduler for HighestRate {
    fn decide(&mut self, view: &View<'_>, _trigger: Trigger) -> Decision {
        view.one_segment(view.best_candidate(|a, b| {
            let (rate_a, rate_b) = (a.rate(), b.rate());
            rate_a > rate_b || rate_a == rate_b && a.srtt < b.srtt
        }))
    }
}

#[cfg(test)]
mod tests {
    use crate::scheduler::testing::{Bed, ms, send};

    #[test]
    fn window_over_round_trip_decides() {
        // 10 kB / 20 ms = 500 kB/s; 60 kB / 100 ms = 600 kB/s; 12 kB / 20 ms = 600 kB/s at the lower round trip.
        let mut bed = Bed::new("highest-rate").subflow(ms(20), 10).subflow(ms(100), 60).subflow(ms(20), 12);
        assert_eq!(bed.decide(), send(2, 1000));
        bed.fill(2);
        assert_eq!(bed.decide(), send(1, 1000));
        bed.fill(1);
        assert_eq!(bed.decide(), send(0, 1000));
    }

    #[test]
    fn an_unsampled_subflow_comes_last_but_is_used() {
        let mut bed = Bed::new("highest-rate").subflow(ms(0), 10).subflow(ms(500), 1);
        assert_eq!(bed.decide(), send(1, 1000));
        bed.fill(1);
        assert_eq!(bed.decide(), send(0, 1000));
    }
}
