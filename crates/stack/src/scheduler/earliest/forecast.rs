//! When the next segment would arrive on a subflow, by what was delivered lately and what is in flight.
//!
//! ```text
//! r = min(largest arrival rate of the last 5 to 10 round trips, cwnd · mss / m)        m: least round trip
//! drain = min(max(drain, now), now + F / r) + bytes / r        at each transmission with F bytes in flight
//! s = max(drain − now, F / r − m − d, 0) + unrepaired · mss / r + m / 2
//! d = min(2 mss / r, 40 ms)                                    for how long a receiver may keep back an acknowledgment
//! ```
//! `drain` is when the bottleneck will have sent everything, which the bytes in flight alone do not say: just after a
//! burst all of them wait, a round trip later only those beyond one bandwidth-delay product. Packets that arrived but
//! are not acknowledged yet count as in flight, but do not wait.

use super::lateness::Lateness;
use crate::view::SubflowView;
use anabranch_units::{Duration, Instant};

/// Round trips in each half of the window of the largest rate.
const ROUNDS: u64 = 5;
/// Segments for which a receiver waits before it acknowledges.
pub(super) const ACKED_TOGETHER: f64 = 2.0;
/// How long it waits for the second one (Linux's `TCP_DELACK_MIN`).
pub(super) const DELAYED_ACK: Duration = Duration::from_millis(40);
/// The round trip of a subflow that has no sample yet.
const NOMINAL_RTT: Duration = Duration::from_millis(100);
/// The longest round trip that a forecast believes; longer ones are those of a queue for which no data waits.
const MOST_RTT: Duration = Duration::from_secs(10);
/// Segments per second below which a path is as good as none.
const LEAST_RATE: f64 = 0.1;

/// A forecast; times in seconds from now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Arrival {
    /// s: when the first byte of further data would arrive.
    pub start: f64,
    /// r: bytes per second from then on.
    pub rate: f64,
    /// mss: bytes of a full segment.
    pub segment: f64,
}

impl Arrival {
    /// A: when the next segment of at most `bytes` would have arrived.
    pub(super) fn of(&self, bytes: u64) -> f64 {
        self.start + self.segment.min(bytes as f64) / self.rate
    }
}

/// What is remembered of a subflow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    /// The largest rates of this half of the window and of the one before, in bytes per second.
    current: f64,
    previous: f64,
    /// When this half began.
    since: Instant,
    /// When the bottleneck will have sent what was given to the subflow.
    drain: Instant,
    /// Since when the subflow has not worked.
    failed_at: Option<Instant>,
    /// How late its acknowledgments have been.
    pub(super) lateness: Lateness,
}

/// After an outage of this length nothing is known of a path any more. A retransmission timeout is mostly shorter.
const OUTAGE: Duration = Duration::from_secs(1);

impl Path {
    /// The forecast for the next segment.
    pub(super) fn forecast(&mut self, now: Instant, subflow: &SubflowView) -> Arrival {
        let rate = self.rate(now, subflow);
        let mss = f64::from(subflow.mss);
        let least = least_rtt(subflow).as_secs_f64();
        let given = f64::from(subflow.in_flight) * mss + subflow.queued as f64;
        let unacknowledged = (ACKED_TOGETHER * mss / rate).min(DELAYED_ACK.as_secs_f64());
        let queue = self.drain.since(now).as_secs_f64().max(given / rate - least - unacknowledged).max(0.0);
        let start = queue + f64::from(subflow.unrepaired) * mss / rate + least / 2.0;
        Arrival { start, rate, segment: mss }
    }

    /// Notes whether the subflow works. One that works again after an outage is forgotten: in its rates the outage
    /// counts as time in which nothing arrived, and what was given to it is no longer on its way.
    pub(super) fn note_state(&mut self, now: Instant, works: bool) {
        if !works {
            self.failed_at.get_or_insert(now);
        } else if let Some(failed_at) = self.failed_at.take()
            && now.since(failed_at) >= OUTAGE
        {
            *self = Path { since: now, drain: now, ..Path::default() };
        }
    }

    /// `bytes` leave now; `subflow` is the state before. Returns when they arrive.
    pub(super) fn send(&mut self, now: Instant, bytes: u32, subflow: &SubflowView) -> Instant {
        let rate = self.rate(now, subflow);
        let time = |bytes: f64| Duration::from_secs_f64(bytes / rate);
        let in_flight = time(f64::from(subflow.in_flight) * f64::from(subflow.mss));
        self.drain = self.drain.max(now).min(now + in_flight) + time(f64::from(bytes));
        self.drain + least_rtt(subflow) / 2
    }

    /// When the oldest outstanding packet should be acknowledged: the bottleneck sends it before the others.
    pub(super) fn oldest_due(&mut self, now: Instant, subflow: &SubflowView) -> Instant {
        let behind = subflow.outstanding.saturating_sub(u64::from(subflow.mss)) as f64;
        let later = Duration::from_secs_f64(behind / self.rate(now, subflow));
        self.drain - later + least_rtt(subflow)
    }

    /// r, in bytes per second.
    pub(super) fn rate(&mut self, now: Instant, subflow: &SubflowView) -> f64 {
        let half = round_trip(subflow.srtt) * ROUNDS;
        if now.since(self.since) >= half {
            // After a pause of both halves neither says anything.
            let recent = now.since(self.since) < half * 2;
            self.previous = if recent { self.current } else { 0.0 };
            (self.current, self.since) = (0.0, now);
        }
        let mss = f64::from(subflow.mss);
        self.current = self.current.max(subflow.arrival_rate().unwrap_or(0.0));
        let window = subflow.cwnd.as_f64().min(f64::from(u32::MAX)) * mss / least_rtt(subflow).as_secs_f64();
        let largest = self.current.max(self.previous);
        let rate = if largest > 0.0 { largest.min(window) } else { window };
        rate.max(LEAST_RATE * mss)
    }
}

/// m: the least round trip of a subflow.
pub(super) fn least_rtt(subflow: &SubflowView) -> Duration {
    round_trip(if subflow.min_rtt.is_zero() { subflow.srtt } else { subflow.min_rtt })
}

/// A measured round trip within bounds, or the nominal one.
fn round_trip(measured: Duration) -> Duration {
    if measured.is_zero() { NOMINAL_RTT } else { measured.min(MOST_RTT) }
}

/// When some subflows would be done together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Finish {
    /// T, in seconds from now.
    pub at: f64,
    /// Bytes per second of those that have begun by then.
    pub rate: f64,
}

impl Finish {
    /// How many of their bytes another subflow would take so that it is done at the same time; zero if its first byte
    /// arrives later.
    pub(super) fn share_of(&self, other: &Arrival) -> f64 {
        (self.at - other.start).max(0.0) * other.rate * self.rate / (other.rate + self.rate)
    }
}

/// When these subflows would have delivered `unsent` bytes together; none if there are none.
pub(super) fn finish(others: &mut [Arrival], unsent: u64) -> Option<Finish> {
    others.sort_by(|a, b| a.start.total_cmp(&b.start));
    // The first k of them have begun by T: Σ r (T − s) = unsent.
    let (mut rate, mut weighted) = (0.0, 0.0);
    let mut finish: Option<Finish> = None;
    for other in others.iter() {
        if finish.is_some_and(|finish| finish.at <= other.start) {
            break;
        }
        rate += other.rate;
        weighted += other.rate * other.start;
        finish = Some(Finish { at: (unsent as f64 + weighted) / rate, rate });
    }
    finish
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{at, ms, subflow};
    use super::*;
    use crate::view::Arrivals;

    /// 100 kB/s at 100 ms: ten segments of 1000 bytes per round trip, a window of twice that.
    fn path() -> SubflowView {
        let arrivals = Arrivals { bytes: 10_000, interval: ms(100) };
        SubflowView { arrivals, ..subflow(0, ms(100), 20) }
    }

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
    }

    #[test]
    fn an_empty_path_takes_half_a_round_trip_and_a_segment() {
        let arrival = Path::default().forecast(at(ms(1_000)), &path());
        near(arrival.start, 0.05);
        near(arrival.of(5_000), 0.06);
        near(arrival.of(500), 0.055);
    }

    #[test]
    fn before_any_delivery_the_window_per_round_trip_is_the_rate() {
        let fresh = subflow(0, ms(100), 10);
        near(Path::default().forecast(at(ms(0)), &fresh).rate, 100_000.0);
        let unmeasured = subflow(0, Duration::ZERO, 10);
        near(Path::default().forecast(at(ms(0)), &unmeasured).rate, 100_000.0);
    }

    #[test]
    fn a_window_below_the_delivery_rate_limits_it() {
        let small = SubflowView { cwnd: crate::view::Packets::whole(4), ..path() };
        near(Path::default().forecast(at(ms(0)), &small).rate, 40_000.0);
    }

    #[test]
    fn after_a_burst_everything_waits_and_a_round_trip_later_only_the_excess_does() {
        let mut forecaster = Path::default();
        let now = at(ms(1_000));
        for sent in 0..15 {
            let before = SubflowView { in_flight: sent, ..path() };
            // 10 ms for each of them, and half a round trip.
            assert_eq!(forecaster.send(now, 1_000, &before), now + ms(10) * u64::from(sent + 1) + ms(50));
        }
        let burst = SubflowView { in_flight: 15, ..path() };
        near(forecaster.forecast(now, &burst).start, 0.150 + 0.05);
        // After 100 ms the bottleneck has 5 of them left: by its drain, and by the excess over ten in flight.
        near(forecaster.forecast(now + ms(100), &burst).start, 0.050 + 0.05);
        // Of what is in flight a round trip later still, two may have arrived and wait for their acknowledgment.
        near(forecaster.forecast(now + ms(200), &burst).start, 0.030 + 0.05);
    }

    #[test]
    fn a_drain_that_was_forecast_too_late_is_corrected_by_what_is_in_flight() {
        let mut forecaster = Path { drain: at(ms(5_000)), ..Path::default() };
        let now = at(ms(1_000));
        let before = SubflowView { in_flight: 2, ..path() };
        assert_eq!(forecaster.send(now, 1_000, &before), now + ms(30) + ms(50));
    }

    #[test]
    fn what_must_be_repaired_comes_first() {
        let lossy = SubflowView { unrepaired: 3, ..path() };
        near(Path::default().forecast(at(ms(0)), &lossy).start, 0.05 + 0.03);
    }

    #[test]
    fn a_rate_is_forgotten_after_five_to_ten_round_trips() {
        let mut forecaster = Path::default();
        near(forecaster.forecast(at(ms(1_000)), &path()).rate, 100_000.0);
        let slower = SubflowView { arrivals: Arrivals { bytes: 5_000, interval: ms(100) }, ..path() };
        near(forecaster.forecast(at(ms(1_499)), &slower).rate, 100_000.0);
        near(forecaster.forecast(at(ms(1_600)), &slower).rate, 100_000.0);
        near(forecaster.forecast(at(ms(2_200)), &slower).rate, 50_000.0);
    }

    #[test]
    fn the_others_fill_up_like_water() {
        let arrival = |start: f64, rate: f64| Arrival { start, rate, segment: 1_000.0 };
        assert_eq!(finish(&mut [], 1_000), None);
        let at = |others: &mut [Arrival], unsent| finish(others, unsent).unwrap().at;
        near(at(&mut [arrival(0.05, 1e5)], 10_000), 0.15);
        // Until 0.15 s the first one alone delivers 10 kB; of the other 6 kB it brings 2/3 in 0.04 s.
        near(at(&mut [arrival(0.15, 5e4), arrival(0.05, 1e5)], 16_000), 0.19);
        near(at(&mut [arrival(0.15, 5e4), arrival(0.05, 1e5)], 9_000), 0.14);
    }

    #[test]
    fn a_share_ends_when_the_others_end() {
        let others = Finish { at: 0.25, rate: 1e5 };
        let slow = Arrival { start: 0.1, rate: 2.5e4, segment: 1_000.0 };
        // 3 kB take the slow one until 0.1 + 0.12 s, and the others without them until 0.25 - 0.03 s.
        near(others.share_of(&slow), 3_000.0);
        near(others.share_of(&Arrival { start: 0.25, ..slow }), 0.0);
        near(others.share_of(&Arrival { start: 0.3, ..slow }), 0.0);
    }
}
