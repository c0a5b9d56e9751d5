//! A server that sends packets at recorded times, as Mahimahi's mm-link does.
//!
//! Every opportunity sends up to 1500 bytes: several small packets, or a part of one that spans opportunities. Capacity
//! that an opportunity does not use, because no packet waits, is lost.
//!
//! Ours: Mahimahi counts four bytes of its tunnel's header per packet in slots of 1504; give the link an overhead of 0.

use super::Work;
use crate::trace::{OPPORTUNITY_BYTES, Opportunities};
use anabranch_units::{Duration, Instant};
use std::sync::Arc;

/// Capacity of one opportunity.
const OPPORTUNITY: Work = Work::of(OPPORTUNITY_BYTES as u64);

#[derive(Clone, Debug)]
pub(super) struct OpportunityServer {
    trace: Arc<Opportunities>,
    place: Place,
    /// The position in the trace when the packet in service began.
    before: Place,
}

/// The used part of the trace.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// When the current pass of the trace began.
    pass_began: Instant,
    /// The first opportunity of this pass that is unused.
    next: usize,
    /// Unused capacity of the opportunity at `rest_at`, for packets that begin at exactly this time.
    rest: Work,
    rest_at: Instant,
}

impl OpportunityServer {
    pub(super) fn new(trace: Arc<Opportunities>, now: Instant) -> Self {
        let place = Place { pass_began: now, next: 0, rest: Work::NONE, rest_at: now };
        OpportunityServer { trace, place, before: place }
    }

    pub(super) fn serve(&mut self, now: Instant, work: Work) -> Instant {
        let times = self.trace.times();
        self.before = self.place;
        let period = self.trace.period();
        self.place.skip_before(now, times, period);
        let mut at = now;
        let mut left = work;
        loop {
            let used = left.min(self.place.rest);
            self.place.rest = self.place.rest.minus(used);
            left = left.minus(used);
            if left == Work::NONE {
                return at;
            }
            at = self.place.take_next(times, period);
        }
    }

    /// Bits of the opportunities after `from` until `to`, inclusive, used or not; of a server that has not served yet.
    pub(super) fn capacity_bits(&self, from: Instant, to: Instant) -> f64 {
        let times = self.trace.times();
        let period = self.trace.period().as_nanos();
        let until = |at: Instant| {
            let passed = at.since(self.place.pass_began).as_nanos();
            let in_this_pass = times.partition_point(|time| *time <= passed % period);
            passed / period * times.len() as u64 + in_this_pass as u64
        };
        (until(to) - until(from)) as f64 * OPPORTUNITY.bits()
    }

    /// Removes the packet that began at `began` with `work` to send. The opportunities until now, inclusive, have
    /// moved a part of it, and are used up.
    pub(super) fn interrupt(&mut self, began: Instant, work: Work, now: Instant) -> Work {
        let times = self.trace.times();
        self.place = self.before;
        let period = self.trace.period();
        self.place.skip_before(began, times, period);
        let mut left = work.minus(self.place.rest);
        while self.place.next_at(times) <= now {
            self.place.take_next(times, period);
            left = left.minus(OPPORTUNITY);
        }
        self.place.rest = Work::NONE;
        left
    }
}

impl Place {
    fn next_at(&self, times: &[u64]) -> Instant {
        self.pass_began + Duration::from_nanos(times[self.next])
    }

    /// Uses the next opportunity, and returns its time.
    fn take_next(&mut self, times: &[u64], period: Duration) -> Instant {
        self.rest = OPPORTUNITY;
        self.rest_at = self.next_at(times);
        self.next += 1;
        self.wrap(times, period);
        self.rest_at
    }

    /// Lets the opportunities before `now` pass unused.
    fn skip_before(&mut self, now: Instant, times: &[u64], period: Duration) {
        if self.rest_at != now {
            self.rest = Work::NONE;
        }
        if self.next_at(times) >= now {
            return;
        }
        let passed = now.since(self.pass_began);
        if passed > period {
            // One nanosecond less, because opportunities at the very end of a pass still belong to it.
            let passes = (passed.as_nanos() - 1) / period.as_nanos();
            self.pass_began += period.saturating_mul(passes);
            self.next = 0;
        }
        let offset = now.since(self.pass_began).as_nanos();
        self.next += times[self.next..].partition_point(|time| *time < offset);
        self.wrap(times, period);
    }

    fn wrap(&mut self, times: &[u64], period: Duration) {
        if self.next == times.len() {
            self.next = 0;
            self.pass_began += period;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn server(trace: &str) -> OpportunityServer {
        OpportunityServer::new(Arc::new(Opportunities::parse(trace).unwrap()), Instant::ZERO)
    }

    fn serve(server: &mut OpportunityServer, now: u64, bytes: u64) -> Instant {
        server.serve(at(now), Work::of(bytes))
    }

    /// When full packets leave of which one always waits.
    fn six_full_packets(server: &mut OpportunityServer) -> [Instant; 6] {
        let mut now = at(0);
        std::array::from_fn(|_| {
            now = server.serve(now, OPPORTUNITY);
            now
        })
    }

    #[test]
    fn each_opportunity_moves_one_full_packet_and_the_trace_repeats() {
        let mut server = server("2\n3\n3\n10\n");
        assert_eq!(six_full_packets(&mut server), [at(2), at(3), at(3), at(10), at(12), at(13)]);
    }

    #[test]
    fn small_packets_share_an_opportunity_only_if_they_wait_for_it() {
        let mut server = server("5\n");
        assert_eq!(serve(&mut server, 1, 700), at(5));
        assert_eq!(serve(&mut server, 5, 700), at(5));
        // 100 bytes are left of the first opportunity: the packet spans both.
        assert_eq!(serve(&mut server, 5, 700), at(10));
        assert_eq!(serve(&mut server, 10, 900), at(10));
        // A packet that arrives later finds no capacity left.
        assert_eq!(serve(&mut server, 11, 1), at(15));
    }

    #[test]
    fn unused_opportunities_are_lost() {
        let mut server = server("0\n1\n4\n7\n");
        assert_eq!(serve(&mut server, 5, 1500), at(7));
        // The end of one pass and the beginning of the next fall together.
        assert_eq!(serve(&mut server, 7, 1500), at(7));
        assert_eq!(serve(&mut server, 70, 1500), at(70));
        assert_eq!(serve(&mut server, 70, 1500), at(70));
        assert_eq!(serve(&mut server, 70, 1500), at(71));
        assert_eq!(serve(&mut server, 7_000_003, 1500), at(7_000_004));
    }

    #[test]
    fn a_trace_may_end_after_its_last_opportunity() {
        // Moved by 2 ms: opportunities at 0, 3 and 7 of every 10 ms.
        let trace = Opportunities::parse("2\n5\n9\n12\n").unwrap().lasting(Duration::from_millis(10)).unwrap();
        let mut server = OpportunityServer::new(Arc::new(trace.shifted(Duration::from_millis(2))), Instant::ZERO);
        assert_eq!(six_full_packets(&mut server), [at(0), at(3), at(7), at(10), at(13), at(17)]);
        assert_eq!(serve(&mut server, 28, 1500), at(30));
        assert_eq!(serve(&mut server, 1_000_008, 1500), at(1_000_010));
    }

    #[test]
    fn an_interrupted_packet_has_used_its_opportunities() {
        let mut server = server("2\n4\n6\n");
        assert_eq!(serve(&mut server, 0, 4000), at(6));
        assert_eq!(server.interrupt(at(0), Work::of(4000), at(4)), Work::of(1000));
        // The opportunity at 4 ms was used by the packet that is gone.
        assert_eq!(serve(&mut server, 4, 1500), at(6));
    }
}
