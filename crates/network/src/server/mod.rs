//! Servers: how long a link takes to send a packet.
//!
//! A server works on one packet at a time. It gets the start of a packet and returns the end of its transmission; if
//! the rate changes meanwhile, the host interrupts it and passes the rest of the packet to the new one. Work is counted
//! in billionths of a bit, so that a rate in bits per second times nanoseconds is exact.

mod opportunities;
mod table;
mod token_bucket;

pub use token_bucket::TokenBucketConfig;

use crate::draws::Streams;
use crate::trace::{Opportunities, Steps, SyntheticConfig};
use anabranch_units::{Bandwidth, Duration, Instant};
use opportunities::OpportunityServer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use table::TableServer;
use token_bucket::TokenBucket;

/// An amount of transmission, in 10^-9 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Work(pub(crate) u64);

impl Work {
    pub(crate) const NONE: Work = Work(0);

    /// The work for `bytes`. Exact up to 2.3 GB; packets and bursts are far below.
    pub(crate) const fn of(bytes: u64) -> Self {
        Work(bytes.saturating_mul(8_000_000_000))
    }

    /// The work done at `rate` in `time`.
    #[inline]
    pub(crate) fn done(rate: Bandwidth, time: Duration) -> Self {
        let bits = u128::from(rate.as_bps()) * u128::from(time.as_nanos());
        Work(u64::try_from(bits).unwrap_or(u64::MAX))
    }

    /// The time for this work at `rate`, rounded up to a nanosecond; [`Duration::MAX`] at rate zero.
    #[inline]
    pub(crate) fn time(self, rate: Bandwidth) -> Duration {
        match rate {
            Bandwidth::INFINITE => Duration::ZERO,
            _ if self == Work::NONE => Duration::ZERO,
            Bandwidth::ZERO => Duration::MAX,
            rate => Duration::from_nanos(self.0.div_ceil(rate.as_bps())),
        }
    }

    /// The same in bits.
    pub(crate) fn bits(self) -> f64 {
        self.0 as f64 / 1e9
    }

    pub(crate) fn minus(self, other: Work) -> Work {
        Work(self.0.saturating_sub(other.0))
    }
}

/// A constant rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "Constant")]
pub struct ConstantConfig {
    /// The rate, or "unlimited".
    pub rate: Bandwidth,
}

/// The transmission rate of a link. Every packet counts with the link's overhead.
#[derive(Clone, Debug, PartialEq)]
pub enum RateConfig {
    /// Constant; [`Bandwidth::INFINITE`] takes no time, [`Bandwidth::ZERO`] keeps packets waiting.
    Constant(ConstantConfig),
    /// A shaper that lets bursts pass, like tc's tbf and HTB.
    TokenBucket(TokenBucketConfig),
    /// A recorded rate over time, starting when the link gets it.
    Table(Arc<Steps<Bandwidth>>),
    /// Mahimahi's recorded delivery opportunities, starting when the link gets them.
    Opportunities(Arc<Opportunities>),
    /// A synthetic rate over time, starting when the link gets it. It draws from its own stream.
    Synthetic(SyntheticConfig),
}

impl From<Bandwidth> for RateConfig {
    fn from(rate: Bandwidth) -> Self {
        RateConfig::Constant(ConstantConfig { rate })
    }
}

impl RateConfig {
    /// The mean rate: of a recording, over one pass; of a synthetic rate, the configured mean.
    pub fn mean(&self) -> Bandwidth {
        match self {
            RateConfig::Constant(constant) => constant.rate,
            RateConfig::TokenBucket(bucket) => bucket.rate,
            RateConfig::Table(steps) => steps.mean_rate(),
            RateConfig::Opportunities(trace) => trace.mean_rate(),
            RateConfig::Synthetic(config) => config.mean,
        }
    }
}

/// The kinds of server. An enumeration, because this is the hottest call of a link.
#[derive(Clone, Debug)]
enum Kind {
    Constant(Bandwidth),
    TokenBucket(TokenBucket),
    Table(TableServer),
    Opportunities(OpportunityServer),
}

impl Kind {
    fn new(config: &RateConfig, streams: &Streams, now: Instant) -> Self {
        match config {
            RateConfig::Constant(constant) => Kind::Constant(constant.rate),
            RateConfig::TokenBucket(bucket) => Kind::TokenBucket(TokenBucket::new(*bucket, now)),
            RateConfig::Table(steps) => Kind::Table(TableServer::new(Arc::clone(steps), now)),
            RateConfig::Opportunities(trace) => Kind::Opportunities(OpportunityServer::new(Arc::clone(trace), now)),
            RateConfig::Synthetic(config) => Kind::Table(TableServer::new(Arc::new(config.generate(streams)), now)),
        }
    }

    /// Begins this work; when it is done. Not inlined, because most links have a constant rate, which needs a fraction
    /// of the code.
    #[inline(never)]
    fn serve(&mut self, now: Instant, work: Work) -> Instant {
        match self {
            Kind::Constant(rate) => now + work.time(*rate),
            Kind::TokenBucket(bucket) => bucket.serve(now, work),
            Kind::Table(table) => table.serve(now, work),
            Kind::Opportunities(server) => server.serve(now, work),
        }
    }
}

/// The server of a link, with the packet in service.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    kind: Kind,
    /// When the packet in service began, or continued after a change.
    began: Instant,
    /// The rest of its work then.
    work: Work,
}

impl Server {
    /// A server whose synthetic rates draw from `streams`.
    pub(crate) fn new(config: &RateConfig, streams: &Streams, now: Instant) -> Self {
        Server { kind: Kind::new(config, streams, now), began: now, work: Work::NONE }
    }

    /// Begins a packet of this size, overhead included, and returns when its last bit leaves;
    /// [`Instant::FAR_FUTURE`] if never. The previous packet has left, or was interrupted, by `now`.
    #[inline]
    pub(crate) fn begin(&mut self, now: Instant, bytes: u64) -> Instant {
        self.serve(now, Work::of(bytes))
    }

    /// Sets a new rate. The packet in service, if there is one, keeps its remaining work; returns when it will now
    /// be sent. A token bucket that follows a token bucket keeps its tokens.
    pub(crate) fn change(
        &mut self,
        config: &RateConfig,
        streams: &Streams,
        now: Instant,
        busy: bool,
    ) -> Option<Instant> {
        let left = busy.then(|| self.interrupt(now));
        if let (Kind::TokenBucket(bucket), RateConfig::TokenBucket(config)) = (&mut self.kind, config) {
            bucket.change(*config, now);
            self.began = now;
            self.work = left?;
            return Some(bucket.resume(now, self.work));
        }
        self.kind = Kind::new(config, streams, now);
        Some(self.serve(now, left?))
    }

    /// Removes the unfinished packet in service, and returns its remaining work at `now`.
    pub(crate) fn interrupt(&mut self, now: Instant) -> Work {
        let (began, work) = (self.began, self.work);
        match &mut self.kind {
            Kind::Constant(rate) => work.minus(Work::done(*rate, now.since(began))),
            Kind::TokenBucket(bucket) => bucket.interrupt(began, work, now),
            Kind::Table(table) => work.minus(table.done(began, now)),
            Kind::Opportunities(server) => server.interrupt(began, work, now),
        }
    }

    /// Bits that the rate allows between two times, sent or not. A token bucket counts with the rate at which tokens
    /// gather.
    pub(crate) fn capacity_bits(&self, from: Instant, to: Instant) -> f64 {
        let time = to.since(from);
        let at_rate = |rate| match rate {
            Bandwidth::INFINITE => f64::INFINITY,
            rate => rate.as_bps() as f64 * time.as_secs_f64(),
        };
        match &self.kind {
            Kind::Constant(rate) => at_rate(*rate),
            Kind::TokenBucket(bucket) => at_rate(bucket.rate()),
            Kind::Table(table) => table.done(from, to).bits(),
            Kind::Opportunities(server) => server.capacity_bits(from, to),
        }
    }

    #[inline]
    fn serve(&mut self, now: Instant, work: Work) -> Instant {
        self.began = now;
        self.work = work;
        if let Kind::Constant(rate) = self.kind { now + work.time(rate) } else { self.kind.serve(now, work) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Bytes;

    fn streams() -> Streams {
        Streams::new(1, "test")
    }

    #[test]
    fn a_packet_in_service_keeps_its_remaining_bits() {
        let mut server = Server::new(&Bandwidth::from_mbps(2).into(), &streams(), Instant::ZERO);
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        assert_eq!(server.begin(at(0), 1500), at(6));
        // After 2 of 6 ms, 1000 bytes are left; at 1 Mb/s they take 8 ms.
        assert_eq!(server.change(&Bandwidth::from_mbps(1).into(), &streams(), at(2), true), Some(at(10)));
        // After another 4 ms, 500 bytes are left; a table of 4 Mb/s sends them in 1 ms.
        let table = Steps::new([(Duration::from_secs(1), Bandwidth::from_mbps(4))], crate::AtEnd::Loop).unwrap();
        assert_eq!(server.change(&RateConfig::Table(Arc::new(table)), &streams(), at(6), true), Some(at(7)));
        assert_eq!(server.change(&Bandwidth::from_mbps(1).into(), &streams(), at(7), false), None);
    }

    #[test]
    fn the_capacity_between_two_times_is_what_the_rate_allows() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let bits = |config: RateConfig| Server::new(&config, &streams(), at(0)).capacity_bits(at(500), at(3_000));
        assert_eq!(bits(Bandwidth::from_mbps(2).into()), 5e6);
        assert_eq!(bits(Bandwidth::INFINITE.into()), f64::INFINITY);
        let bucket = TokenBucketConfig::new(Bandwidth::from_mbps(2), Bytes(9000));
        assert_eq!(bits(RateConfig::TokenBucket(bucket)), 5e6);
        let table = [(Duration::from_secs(1), Bandwidth::from_mbps(4)), (Duration::from_secs(1), Bandwidth::ZERO)];
        let table = Steps::new(table, crate::AtEnd::Loop).unwrap();
        assert_eq!(bits(RateConfig::Table(Arc::new(table))), 2e6 + 4e6);
        let recorded = Opportunities::parse("600\n700\n1000\n").unwrap();
        assert_eq!(bits(RateConfig::Opportunities(Arc::new(recorded))), 9.0 * 12_000.0);
    }

    #[test]
    fn two_changes_of_a_shaper_count_what_was_sent_once() {
        // Tokens abound; the peak rates of 2, 1 and 4 Mb/s decide.
        let shaper = |peak| {
            let bucket = TokenBucketConfig {
                peak: Bandwidth::from_mbps(peak),
                ..TokenBucketConfig::new(Bandwidth::from_mbps(1), Bytes(9000))
            };
            RateConfig::TokenBucket(bucket)
        };
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let mut server = Server::new(&shaper(2), &streams(), at(0));
        assert_eq!(server.begin(at(0), 1500), at(6));
        assert_eq!(server.change(&shaper(1), &streams(), at(2), true), Some(at(10)));
        assert_eq!(server.change(&shaper(4), &streams(), at(6), true), Some(at(7)));
    }

    #[test]
    fn at_rate_zero_nothing_leaves_and_at_the_infinite_rate_everything_at_once() {
        let now = Instant::from_nanos(77);
        let mut server = Server::new(&Bandwidth::ZERO.into(), &streams(), now);
        assert_eq!(server.begin(now, 1), Instant::FAR_FUTURE);
        let later = now + Duration::from_secs(9);
        assert_eq!(
            server.change(&Bandwidth::from_bps(8).into(), &streams(), later, true),
            Some(later + Duration::from_secs(1))
        );
        assert_eq!(server.interrupt(later), Work::of(1));
        assert_eq!(server.change(&Bandwidth::INFINITE.into(), &streams(), later, false), None);
        assert_eq!(server.begin(later, 1500), later);
    }
}
