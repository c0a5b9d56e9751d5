//! Configuration of one direction of a link, and the changes possible while it runs.

use crate::draws::Probability;
use crate::error::ConfigError;
use crate::jitter::Jitter;
use crate::loss::Loss;
use crate::queue::QueueConfig;
use crate::server::RateConfig;
use crate::trace::Steps;
use anabranch_units::{Bandwidth, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The largest packet that a link can be configured for: no IP packet is larger (RFC 791, RFC 8200), jumbograms aside.
pub const MAX_PACKET_BYTES: u32 = 65_575;

/// The smallest MTU that IPv4 allows (RFC 791 section 3.2).
const MIN_MTU: u32 = 68;

/// Bursts up to 2 GB are counted exactly.
const MAX_BURST: u64 = 2_000_000_000;

/// How long packets propagate after their last bit was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DelayConfig {
    /// Constant.
    Constant(Duration),
    /// A recorded delay over time, starting when the link gets it; a packet takes the value at its departure.
    Table(Arc<Steps<Duration>>),
}

impl From<Duration> for DelayConfig {
    fn from(delay: Duration) -> Self {
        DelayConfig::Constant(delay)
    }
}

impl DelayConfig {
    /// The smallest delay in the configuration.
    pub fn shortest(&self) -> Duration {
        match self {
            DelayConfig::Constant(delay) => *delay,
            DelayConfig::Table(steps) => steps.iter().map(|(_, delay)| delay).min().unwrap_or(Duration::ZERO),
        }
    }
}

/// Packets that are held back, so that others overtake them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reordering {
    /// The share of packets that is delayed.
    pub share: Probability,
    /// The additional delay of these packets.
    pub by: Duration,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionConfig {
    /// Transmission rate.
    pub rate: RateConfig,
    /// Queue and its limit. There is no default.
    pub queue: QueueConfig,
    /// Propagation delay. Default: zero.
    pub delay: DelayConfig,
    /// Variation of the delay. Default: none.
    pub jitter: Option<Jitter>,
    /// Packets held back for a while. Default: none.
    pub reordering: Option<Reordering>,
    /// Probability that a packet arrives twice. The copy uses no link time and arrives right after the original,
    /// as when a radio's acknowledgment is lost. Default: never.
    pub duplication: Probability,
    /// Loss model. Default: no loss.
    pub loss: Loss,
    /// Bytes at the network layer; larger packets are dropped. Default: 1500.
    pub mtu: u32,
    /// Whether the sender of a larger packet is to be notified, which is the host's task. Default: false.
    pub reports_too_big: bool,
    /// Bytes below the network layer that the rate counts with every packet, such as 14 for Ethernet. Default: 0.
    pub overhead: u32,
    /// Whether the link works at the start. Default: true.
    pub up: bool,
}

impl DirectionConfig {
    /// A direction with this rate and queue and defaults for the rest.
    pub fn new(rate: impl Into<RateConfig>, queue: QueueConfig) -> Self {
        DirectionConfig {
            rate: rate.into(),
            queue,
            delay: Duration::ZERO.into(),
            jitter: None,
            reordering: None,
            duplication: Probability::ZERO,
            loss: Loss::NONE,
            mtu: 1500,
            reports_too_big: false,
            overhead: 0,
            up: true,
        }
    }

    /// Checks that the parameters make sense, alone and together. The error names the field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if !(MIN_MTU..=MAX_PACKET_BYTES).contains(&self.mtu) {
            let problem = format!("{} bytes is not between {MIN_MTU} and {MAX_PACKET_BYTES}", self.mtu);
            return Err(ConfigError::new("mtu", problem));
        }
        if self.overhead > MAX_PACKET_BYTES {
            let problem = format!("{} bytes is more than any packet has", self.overhead);
            return Err(ConfigError::new("overhead", problem));
        }
        self.queue.validate(self.mtu)?;
        self.loss.check()?;
        self.validate_rate()?;
        self.validate_jitter()
    }

    fn validate_rate(&self) -> Result<(), ConfigError> {
        if let RateConfig::Synthetic(synthetic) = &self.rate {
            return synthetic.check().map_err(|error| {
                ConfigError::new("rate", format!("`{}` {}", error.field, error.problem)).expecting(error.expected)
            });
        }
        let RateConfig::TokenBucket(bucket) = &self.rate else { return Ok(()) };
        let packet = u64::from(self.mtu + self.overhead);
        if !(packet..=MAX_BURST).contains(&bucket.burst.0) {
            let problem =
                format!("{} bytes is not between the largest packet, {packet}, and {MAX_BURST}", bucket.burst.0);
            return Err(ConfigError::new("rate.burst", problem));
        }
        if bucket.peak < bucket.rate {
            return Err(ConfigError::new(
                "rate.peak",
                format!("{} is less than the rate, {}", bucket.peak, bucket.rate),
            ));
        }
        if bucket.rate == Bandwidth::INFINITE {
            return Err(ConfigError::new("rate.rate", "an infinite rate needs no token bucket"));
        }
        Ok(())
    }

    fn validate_jitter(&self) -> Result<(), ConfigError> {
        let Some(jitter) = self.jitter else { return Ok(()) };
        jitter.check()?;
        let (reach, delay) = (jitter.reach_below(), self.delay.shortest());
        if reach > delay {
            let problem = format!("reaches {reach} below the delay, which is only {delay}");
            return Err(ConfigError::new("jitter", problem));
        }
        Ok(())
    }
}

/// Declares the changes, each of one field of [`DirectionConfig`], with the scenario's key of that field.
macro_rules! changes {
    ($($(#[$doc:meta])* $field:ident: $change:ident($value:ty), $key:expr;)*) => {
        /// A change while the link runs.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Change {
            $($(#[$doc])* $change($value),)*
        }

        impl Change {
            /// The scenario's key of what changes; none if the link is cut or comes back.
            pub fn key(&self) -> Option<&'static str> {
                match self { $(Change::$change(_) => $key,)* }
            }
        }

        impl DirectionConfig {
            /// This configuration after a change.
            pub fn after(mut self, change: Change) -> Self {
                match change { $(Change::$change(value) => self.$field = value,)* }
                self
            }
        }
    };
}

changes! {
    /// The packet in service keeps its remaining bits, and sends them at the new rate. A token bucket that follows a
    /// token bucket keeps its tokens; recordings begin at this moment.
    rate: Rate(RateConfig), Some("rate");
    /// Waiting packets stay, even beyond the new limit; the new queue decides from now on.
    queue: Queue(QueueConfig), Some("queue");
    /// Packets that leave the server from now on take the new delay, but do not overtake earlier ones.
    delay: Delay(DelayConfig), Some("delay");
    /// For packets whose transmission begins from now on.
    jitter: Jitter(Option<Jitter>), Some("jitter");
    /// For packets whose transmission begins from now on.
    reordering: Reordering(Option<Reordering>), Some("reordering");
    /// For packets whose transmission begins from now on.
    duplication: Duplication(Probability), Some("duplication");
    /// For packets that enter (loss at entry), or whose transmission begins (loss at exit), from now on.
    loss: Loss(Loss), Some("loss");
    /// For packets that enter from now on. CoDel's threshold of one full packet stays what it was.
    mtu: Mtu(u32), Some("mtu");
    /// For packets that enter from now on.
    reports_too_big: ReportsTooBig(bool), Some("too_big");
    /// For packets whose transmission begins from now on.
    overhead: Overhead(u32), Some("overhead");
    /// A cut is silent, like a lost radio: packets that enter are dropped, as are those waiting or in
    /// service; packets that already propagate arrive. A link that comes back begins with an empty queue.
    up: Up(bool), None;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokenBucketConfig;
    use crate::jitter::{Gamma, Normal};
    use anabranch_units::Bytes;

    fn good() -> DirectionConfig {
        DirectionConfig::new(Bandwidth::from_mbps(2), QueueConfig::drop_tail_bytes(64_000))
    }

    fn bad_field(change: impl FnOnce(&mut DirectionConfig)) -> &'static str {
        let mut config = good();
        assert_eq!(config.validate(), Ok(()));
        change(&mut config);
        config.validate().unwrap_err().field
    }

    #[test]
    fn the_bad_field_is_named() {
        let bucket = |burst| TokenBucketConfig::new(Bandwidth::from_mbps(2), Bytes(burst));
        assert_eq!(bad_field(|c| c.mtu = 67), "mtu");
        assert_eq!(bad_field(|c| c.mtu = 70_000), "mtu");
        assert_eq!(bad_field(|c| c.overhead = 70_000), "overhead");
        assert_eq!(bad_field(|c| c.queue = QueueConfig::drop_tail_bytes(1499)), "queue.limit");
        assert_eq!(bad_field(|c| c.queue = QueueConfig::drop_tail_packets(0)), "queue.limit");
        assert_eq!(bad_field(|c| c.rate = RateConfig::TokenBucket(bucket(1499))), "rate.burst");
        let slow_peak = TokenBucketConfig { peak: Bandwidth::from_mbps(1), ..bucket(3000) };
        assert_eq!(bad_field(|c| c.rate = RateConfig::TokenBucket(slow_peak)), "rate.peak");
        let gamma = Jitter::Gamma(Gamma { mean: Duration::from_millis(1), shape: 0.5, reorders: false });
        assert_eq!(bad_field(|c| c.jitter = Some(gamma)), "jitter.shape");
    }

    #[test]
    fn jitter_may_not_reach_below_zero() {
        let jitter = Jitter::Normal(Normal { deviation: Duration::from_millis(2), reorders: false });
        let mut config = good();
        config.delay = Duration::from_millis(6).into();
        config.jitter = Some(jitter);
        assert_eq!(config.validate(), Ok(()));
        let later = config.after(Change::Delay(Duration::from_millis(5).into()));
        assert_eq!(
            later.validate().unwrap_err().to_string(),
            "jitter: reaches 6 ms below the delay, which is only 5 ms"
        );
    }
}
