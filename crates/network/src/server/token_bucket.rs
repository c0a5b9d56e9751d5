//! A token bucket: the long-run rate is bounded, bursts are not delayed.
//!
//! Tokens accumulate at `rate` up to `burst` bytes. A packet is sent as soon as there are as many tokens as it has
//! bytes, and takes them; not before its bits have passed at the `peak` rate either. So in any interval of length t at
//! most `burst + rate * t` bytes leave (Turner 1986; tc-tbf(8), tc-htb(8)). The bucket is full at the start.
//!
//! Deviation from tbf: tbf drops packets larger than the burst. Here such a packet waits until the bucket has
//! gathered its size, and the bound holds with the packet's size in place of the burst;
//! [`DirectionConfig::validate`](crate::DirectionConfig::validate) refuses a burst smaller than the MTU anyway.

use super::Work;
use anabranch_units::{Bandwidth, Bytes, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "TokenBucket")]
pub struct TokenBucketConfig {
    /// The rate at which tokens are added.
    pub rate: Bandwidth,
    /// Bytes that may leave at once after an idle time: the size of the bucket.
    pub burst: Bytes,
    /// The rate within a burst.
    #[serde(default = "unlimited")]
    pub peak: Bandwidth,
}

fn unlimited() -> Bandwidth {
    Bandwidth::INFINITE
}

impl TokenBucketConfig {
    /// A bucket whose bursts leave at once.
    pub fn new(rate: Bandwidth, burst: Bytes) -> Self {
        TokenBucketConfig { rate, burst, peak: unlimited() }
    }

    /// The tokens of a full bucket.
    fn capacity(&self) -> Work {
        Work::of(self.burst.0)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct TokenBucket {
    config: TokenBucketConfig,
    level: Level,
    /// The level without the packet in service, for interruptions.
    without_packet: Level,
    /// The tokens that the packet in service consumes.
    price: Work,
}

/// The number of tokens at a time.
#[derive(Clone, Copy, Debug)]
struct Level {
    tokens: Work,
    at: Instant,
}

impl TokenBucket {
    pub(super) fn new(config: TokenBucketConfig, now: Instant) -> Self {
        let full = Level { tokens: config.capacity(), at: now };
        TokenBucket { config, level: full, without_packet: full, price: Work::NONE }
    }

    /// The rate at which tokens gather.
    pub(super) fn rate(&self) -> Bandwidth {
        self.config.rate
    }

    /// Begins a packet.
    pub(super) fn serve(&mut self, now: Instant, work: Work) -> Instant {
        self.price = work;
        self.resume(now, work)
    }

    /// Continues the interrupted packet: `work` is left to send, but it still consumes tokens for its whole size.
    pub(super) fn resume(&mut self, now: Instant, work: Work) -> Instant {
        let price = self.price;
        self.without_packet = self.level;
        let level = self.level_at(now, self.config.capacity());
        let gathered = now + price.minus(level.tokens).time(self.config.rate);
        let leaves = gathered.max(now + work.time(self.config.peak));
        // While a packet larger than the burst waits, the bucket's capacity is the packet's size.
        let level = self.level_at(leaves, self.config.capacity().max(price));
        self.level = Level { tokens: level.tokens.minus(price), at: leaves };
        leaves
    }

    /// Removes the packet that began at `began` with `work` to send, and returns the rest. Without a peak rate
    /// a packet is sent all at once, so all of it is left.
    pub(super) fn interrupt(&mut self, began: Instant, work: Work, now: Instant) -> Work {
        self.level = self.without_packet;
        self.level = self.level_at(now, self.config.capacity());
        match self.config.peak {
            Bandwidth::INFINITE => work,
            peak => work.minus(Work::done(peak, now.since(began))),
        }
    }

    pub(super) fn change(&mut self, config: TokenBucketConfig, now: Instant) {
        // Tokens beyond the capacity of a smaller bucket are dropped at its next update.
        self.level = self.level_at(now, self.config.capacity());
        self.config = config;
    }

    fn level_at(&self, now: Instant, capacity: Work) -> Level {
        let gathered = Work::done(self.config.rate, now.since(self.level.at));
        let tokens = Work(self.level.tokens.0.saturating_add(gathered.0)).min(capacity);
        Level { tokens, at: now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Duration;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// 8 Mb/s is a byte per microsecond.
    fn bucket(burst: u64) -> TokenBucket {
        TokenBucket::new(TokenBucketConfig::new(Bandwidth::from_mbps(8), Bytes(burst)), Instant::ZERO)
    }

    fn kilobytes(n: u64) -> Work {
        Work::of(n * 1000)
    }

    #[test]
    fn a_burst_leaves_at_once_and_the_rest_at_the_rate() {
        let mut bucket = bucket(3000);
        let mut now = at(0);
        let leaves: Vec<_> = (0..5)
            .map(|_| {
                now = bucket.serve(now, kilobytes(1));
                now
            })
            .collect();
        assert_eq!(leaves, [at(0), at(0), at(0), at(1), at(2)]);
        // 7 idle milliseconds fill the bucket, but not beyond its capacity.
        let later: Vec<_> = (0..4).map(|_| bucket.serve(at(9), kilobytes(1))).collect();
        assert_eq!(later, [at(9), at(9), at(9), at(10)]);
    }

    #[test]
    fn the_peak_rate_spaces_a_burst() {
        let config = TokenBucketConfig {
            peak: Bandwidth::from_mbps(16),
            ..TokenBucketConfig::new(Bandwidth::from_mbps(8), Bytes(3000))
        };
        let mut bucket = TokenBucket::new(config, Instant::ZERO);
        let half = Duration::from_micros(500);
        assert_eq!(bucket.serve(at(0), kilobytes(1)), at(0) + half);
        assert_eq!(bucket.serve(at(0) + half, kilobytes(1)), at(1));
        // Half a millisecond into the next packet half of it is left.
        assert_eq!(bucket.serve(at(1), kilobytes(1)), at(1) + half);
        let middle = at(1) + half / 2;
        let left = bucket.interrupt(at(1), kilobytes(1), middle);
        assert_eq!(left, Work::of(500));
        // The bucket holds 1750 tokens now. Half of the packet is left to send, but it still costs 1000 tokens.
        bucket.change(TokenBucketConfig { peak: Bandwidth::from_mbps(8), ..config }, middle);
        assert_eq!(bucket.resume(middle, left), middle + half);
        assert_eq!(bucket.level.tokens, Work::of(1750 + 500 - 1000));
    }

    #[test]
    fn an_interrupted_packet_gives_its_tokens_back() {
        let mut bucket = bucket(2000);
        assert_eq!(bucket.serve(at(0), kilobytes(2)), at(0));
        assert_eq!(bucket.serve(at(0), kilobytes(2)), at(2));
        assert_eq!(bucket.interrupt(at(0), kilobytes(2), at(1)), kilobytes(2));
        // 1000 tokens are there at 1 ms: half of what the packet needs. At half the rate the rest takes 2 ms.
        bucket.change(TokenBucketConfig::new(Bandwidth::from_mbps(4), Bytes(2000)), at(1));
        assert_eq!(bucket.resume(at(1), kilobytes(2)), at(3));
    }

    #[test]
    fn an_interrupted_packet_pays_its_whole_price() {
        let config = TokenBucketConfig {
            peak: Bandwidth::from_mbps(8),
            ..TokenBucketConfig::new(Bandwidth::from_mbps(4), Bytes(1000))
        };
        let mut bucket = TokenBucket::new(config, Instant::ZERO);
        assert_eq!(bucket.serve(at(0), kilobytes(1)), at(1));
        // 500 tokens are there; gathering another 500 takes as long as sending the packet.
        assert_eq!(bucket.serve(at(1), kilobytes(1)), at(3));
        assert_eq!(bucket.interrupt(at(1), kilobytes(1), at(2)), Work::NONE);
        bucket.change(config, at(2));
        assert_eq!(bucket.resume(at(2), Work::NONE), at(3));
    }

    #[test]
    fn a_smaller_bucket_spills() {
        let mut bucket = bucket(3000);
        bucket.change(TokenBucketConfig::new(Bandwidth::from_mbps(8), Bytes(1000)), at(0));
        assert_eq!([0, 0].map(|_| bucket.serve(at(0), kilobytes(1))), [at(0), at(1)]);
    }

    #[test]
    fn a_packet_larger_than_the_bucket_waits_for_its_size() {
        let mut bucket = bucket(1000);
        assert_eq!(bucket.serve(at(0), kilobytes(3)), at(2));
        assert_eq!(bucket.serve(at(2), kilobytes(3)), at(5));
    }
}
