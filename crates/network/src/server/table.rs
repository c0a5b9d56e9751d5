//! A server whose rate follows a table: constant between steps, and a packet may span several of them.

use super::Work;
use crate::trace::{AtEnd, Steps};
use anabranch_units::{Bandwidth, Duration, Instant};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(super) struct TableServer {
    steps: Arc<Steps<Bandwidth>>,
    /// When the table's first step began.
    origin: Instant,
    /// Work of one pass; packets that need more skip whole passes.
    per_pass: u128,
    /// The step of the last packet, to save a search.
    hint: usize,
}

impl TableServer {
    pub(super) fn new(steps: Arc<Steps<Bandwidth>>, origin: Instant) -> Self {
        let per_pass = steps.iter().map(|(length, rate)| capacity(rate, length)).sum();
        TableServer { steps, origin, per_pass, hint: 0 }
    }

    pub(super) fn serve(&mut self, now: Instant, work: Work) -> Instant {
        let mut at = now;
        let mut left = u128::from(work.0);
        if self.steps.at_end() == AtEnd::Loop && left > self.per_pass {
            // A loop with a rate of zero never finishes; else leave at most one pass for the walk below.
            let Some(passes) = (left - 1).checked_div(self.per_pass) else {
                return Instant::FAR_FUTURE;
            };
            left -= passes * self.per_pass;
            at += self.steps.period().saturating_mul(u64::try_from(passes).unwrap_or(u64::MAX));
        }
        loop {
            let step = self.steps.step_at(at.since(self.origin), self.hint);
            self.hint = step.index;
            let possible = capacity(step.value, step.left);
            if possible >= left {
                return at + Work(left as u64).time(step.value);
            }
            left -= possible;
            at += step.left;
            if at == Instant::FAR_FUTURE {
                return at;
            }
        }
    }

    /// The work done by the table between two times, all of it for one packet.
    pub(super) fn done(&self, from: Instant, to: Instant) -> Work {
        let mut at = from;
        let mut done = 0;
        while at < to {
            let step = self.steps.step_at(at.since(self.origin), self.hint);
            let until = (at + step.left).min(to);
            done += capacity(step.value, until.since(at));
            at = until;
        }
        Work(u64::try_from(done).unwrap_or(u64::MAX))
    }
}

/// The work of a rate in this time, in 10^-9 bits.
fn capacity(rate: Bandwidth, time: Duration) -> u128 {
    u128::from(rate.as_bps()) * u128::from(time.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Byte rates of 1000, 0 and 3000 per second for 1, 2 and 1 seconds, from 10 s on.
    fn server(at_end: AtEnd) -> TableServer {
        let rates = [(1, 8_000), (2, 0), (1, 24_000)];
        let steps = rates.map(|(s, bps)| (Duration::from_secs(s), Bandwidth::from_bps(bps)));
        TableServer::new(Arc::new(Steps::new(steps, at_end).unwrap()), at(10_000))
    }

    #[test]
    fn a_packet_spans_steps_and_waits_while_the_rate_is_zero() {
        let mut server = server(AtEnd::Loop);
        assert_eq!(server.serve(at(10_000), Work::of(500)), at(10_500));
        // 500 bytes in the rest of the first second, nothing for two, 600 in a fifth of the fourth.
        assert_eq!(server.serve(at(10_500), Work::of(1100)), at(13_200));
        assert_eq!(server.done(at(10_500), at(13_100)), Work::of(800));
        // 2400 in the fourth second, then the table begins again.
        assert_eq!(server.serve(at(13_200), Work::of(2500)), at(14_100));
    }

    #[test]
    fn a_packet_may_take_many_passes() {
        // 4000 bytes per pass of four seconds.
        assert_eq!(server(AtEnd::Loop).serve(at(10_000), Work::of(4_000_000)), at(4_010_000));
        assert_eq!(
            server(AtEnd::Loop).serve(at(10_500), Work::of(4_000_700)),
            at(4_013_000 + 67) - Duration::from_nanos(333_333)
        );
    }

    #[test]
    fn the_last_rate_holds_when_asked() {
        assert_eq!(server(AtEnd::Hold).serve(at(20_000), Work::of(3000)), at(21_000));
    }

    #[test]
    fn a_table_of_zeros_never_finishes() {
        for at_end in [AtEnd::Loop, AtEnd::Hold] {
            let steps = Steps::new([(Duration::from_secs(1), Bandwidth::ZERO)], at_end).unwrap();
            let mut server = TableServer::new(Arc::new(steps), Instant::ZERO);
            assert_eq!(server.serve(at(5), Work::of(1)), Instant::FAR_FUTURE);
        }
    }

    #[test]
    fn a_table_may_need_longer_than_time_lasts() {
        // One bit per second for 36 years of every 73: two gigabytes take longer than 64 bits of nanoseconds hold.
        let long = Duration::from_nanos(1 << 60);
        for order in [[0, 1], [1, 0]] {
            let steps = Steps::new(order.map(|bps| (long, Bandwidth::from_bps(bps))), AtEnd::Loop).unwrap();
            let mut server = TableServer::new(Arc::new(steps), Instant::ZERO);
            assert_eq!(server.serve(at(5), Work::of(2_000_000_000)), Instant::FAR_FUTURE);
        }
    }
}
