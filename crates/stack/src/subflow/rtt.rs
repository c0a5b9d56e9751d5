//! Round-trip time estimation and the retransmission timeout (RFC 6298, with Linux's differences).
//!
//! Linux puts the floor of 200 ms on the *variance term*, not on the whole timeout, so the timeout is at least one
//! round trip plus 200 ms; and it lets the deviation fall more slowly when the round trip itself falls.

use anabranch_units::{Duration, Instant};

/// The timeout before the first sample (RFC 6298 section 2.1).
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// The floor of the variance term (Linux `TCP_RTO_MIN`).
const MIN_VARIANCE_TERM: Duration = Duration::from_millis(200);
/// The ceiling of the timeout (Linux `TCP_RTO_MAX`).
const MAX_RTO: Duration = Duration::from_secs(120);
/// The least round trip expires after this long (Linux `tcp_min_rtt_wlen`).
const MIN_RTT_WINDOW: Duration = Duration::from_secs(300);

/// The estimator of one subflow.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    srtt: Duration,
    /// Mean deviation.
    deviation: Duration,
    /// The largest deviation of the present round.
    round_max: Duration,
    /// Four deviations, smoothed per round, never below the floor.
    variance_term: Duration,
    /// The present round ends when this offset is acknowledged.
    round_end: u64,
    latest: Duration,
    min: Duration,
    min_at: Instant,
    backoff: u32,
    /// The next sample is taken as the first.
    anew: bool,
}

impl Default for RttEstimator {
    fn default() -> Self {
        RttEstimator {
            srtt: Duration::ZERO,
            deviation: Duration::ZERO,
            round_max: MIN_VARIANCE_TERM,
            variance_term: MIN_VARIANCE_TERM,
            round_end: 0,
            latest: Duration::ZERO,
            min: Duration::MAX,
            min_at: Instant::ZERO,
            backoff: 0,
            anew: true,
        }
    }
}

impl RttEstimator {
    /// Takes a sample. `acked` and `sent` are the subflow's first unacknowledged and next offsets: they delimit rounds.
    pub fn update(&mut self, sample: Duration, acked: u64, sent: u64) {
        // A sample of zero would read as "none yet".
        let sample = sample.max(Duration::from_nanos(1));
        self.latest = sample;
        // Only a sample shows that the peer answers in time again (Karn).
        self.backoff = 0;
        if self.anew {
            self.anew = false;
            self.srtt = sample;
            self.deviation = sample / 2;
            self.variance_term = (self.deviation * 4).max(MIN_VARIANCE_TERM);
            self.round_max = self.variance_term;
            self.round_end = sent;
            return;
        }
        let falling = sample < self.srtt;
        let error = if falling { self.srtt - sample } else { sample - self.srtt };
        self.srtt = if falling { self.srtt - error / 8 } else { self.srtt + error / 8 };
        if error > self.deviation {
            // A falling round trip raises the deviation at an eighth of the usual gain.
            let gain = if falling { 32 } else { 4 };
            self.deviation += (error - self.deviation) / gain;
        } else {
            self.deviation -= (self.deviation - error) / 4;
        }
        self.round_max = self.round_max.max(self.deviation * 4);
        self.variance_term = self.variance_term.max(self.round_max);
        if acked > self.round_end {
            if self.round_max < self.variance_term {
                self.variance_term -= (self.variance_term - self.round_max) / 4;
            }
            self.round_end = sent;
            self.round_max = MIN_VARIANCE_TERM;
        }
    }

    /// The next sample is taken as the first: what was measured before says nothing any more. The least round trip
    /// stays.
    pub fn restart(&mut self) {
        self.anew = true;
    }

    /// Updates the least round trip with the latest packet that an acknowledgment covers, which waited least for it.
    pub fn update_min(&mut self, now: Instant, sample: Duration) {
        let sample = sample.max(Duration::from_nanos(1));
        if sample <= self.min || now.since(self.min_at) > MIN_RTT_WINDOW {
            (self.min, self.min_at) = (sample, now);
        }
    }

    /// Whether any sample was taken.
    pub fn has_sample(&self) -> bool {
        !self.srtt.is_zero()
    }

    /// Smoothed round trip; zero before the first sample.
    pub fn srtt(&self) -> Duration {
        self.srtt
    }

    /// What the timeout adds to the round trip.
    pub fn variance_term(&self) -> Duration {
        self.variance_term
    }

    /// Mean deviation.
    pub fn deviation(&self) -> Duration {
        self.deviation
    }

    /// The latest sample.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// The least recent sample; [`Duration::MAX`] before the first.
    pub fn min(&self) -> Duration {
        self.min
    }

    /// The retransmission timeout, backed off.
    pub fn rto(&self) -> Duration {
        (self.base_rto() * (1 << self.backoff.min(20))).min(MAX_RTO)
    }

    /// The retransmission timeout without back-off.
    pub fn base_rto(&self) -> Duration {
        if self.has_sample() { (self.srtt + self.variance_term).min(MAX_RTO) } else { INITIAL_RTO }
    }

    /// Doubles the timeout (RFC 6298 section 5.5).
    pub fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// Resets the back-off: the peer answers again.
    pub fn reset_backoff(&mut self) {
        self.backoff = 0;
    }
}

/// This end's timestamp clock: milliseconds, as Linux's default.
pub(crate) fn timestamp(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn the_floor_lies_on_the_variance_term() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.rto(), ms(1000));
        for i in 0..200 {
            rtt.update(ms(50), i * 10, i * 10 + 5);
        }
        assert_eq!(rtt.rto(), ms(250));
    }

    #[test]
    fn the_first_sample_gives_half_of_itself_as_deviation() {
        let mut rtt = RttEstimator::default();
        rtt.update(ms(300), 0, 10);
        assert_eq!((rtt.srtt(), rtt.deviation(), rtt.rto()), (ms(300), ms(150), ms(900)));
    }

    #[test]
    fn a_falling_round_trip_barely_raises_the_deviation() {
        let settled = || {
            let mut rtt = RttEstimator::default();
            (0..400).for_each(|i| rtt.update(ms(200), i * 10, i * 10 + 5));
            rtt
        };
        let (mut up, mut down) = (settled(), settled());
        up.update(ms(280), 5000, 5005);
        down.update(ms(120), 5000, 5005);
        assert!(up.deviation() > down.deviation() * 7 && up.deviation() < down.deviation() * 9);
    }

    #[test]
    fn back_off_doubles_up_to_two_minutes() {
        let mut rtt = RttEstimator::default();
        (0..3).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), ms(8000));
        (0..60).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), Duration::from_secs(120));
        rtt.reset_backoff();
        assert_eq!(rtt.rto(), ms(1000));
    }
}
