//! `queue = { ... }`: which packets may wait.

use anabranch_network::{CoDelConfig, DropTailConfig, Probability, QUEUES, QueueConfig, QueueLimit, RedConfig};
use anabranch_registry::by_kind;
use anabranch_units::{Duration, Ratio, text};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;

by_kind! {
    /// Which packets may wait. A size or a number of packets alone is a drop-tail queue of that limit.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Queue: "queue" {
        /// Packets that do not fit are dropped.
        "drop-tail" => DropTail(DropTail),
        /// Random early detection.
        "red" => Red(Red),
        /// Packets that have waited for too long are dropped.
        "codel" => CoDel(CoDel),
    }
}

/// A queue that drops packets that do not fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DropTail {
    /// The capacity: a size such as "64 kB", or "100 packets".
    pub limit: Limit,
}

/// Random early detection (Floyd and Jacobson, 1993).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Red {
    /// The capacity: a size such as "64 kB", or "100 packets".
    pub limit: Limit,
    /// Nothing is dropped while the average queue is below this: a third of `max` where absent. In the limit's unit.
    pub min: Option<Limit>,
    /// The average queue at which packets are dropped with `max_probability`: half of the limit where absent. In the limit's
    /// unit.
    pub max: Option<Limit>,
    /// The probability of a drop at `max`: 10 % where absent.
    pub max_probability: Option<Ratio>,
    /// Whether the probability rises from `max_probability` at `max` to 1 at twice `max`, or jumps to 1 at `max`: true where
    /// absent.
    pub gentle: Option<bool>,
    /// The weight of the newest sample in the average is 2 to the power of minus this: 9 where absent.
    #[serde(default, deserialize_with = "text::whole_option::<0, 24, _, _>")]
    #[schemars(range(max = 24))]
    pub weight_exponent: Option<u32>,
    /// Bytes of a typical packet: 1000 where absent.
    #[serde(default, deserialize_with = "text::whole_option::<1, 65535, _, _>")]
    #[schemars(range(min = 1, max = 65535))]
    pub mean_packet: Option<u32>,
}

/// Controlled delay (RFC 8289).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoDel {
    /// The capacity: a size such as "64 kB", or "100 packets".
    pub limit: Limit,
    /// The acceptable queueing delay: 5 ms where absent.
    pub target: Option<Duration>,
    /// How long the delay may exceed the target before a packet is dropped: 100 ms where absent.
    pub interval: Option<Duration>,
}

impl Queue {
    /// A drop-tail queue of so many bytes.
    pub fn drop_tail_bytes(bytes: u64) -> Self {
        Queue::DropTail(DropTail { limit: Limit(QueueLimit::Bytes(bytes)) })
    }

    /// As the network takes it.
    ///
    /// # Panics
    /// If a threshold has another unit than the limit, which is checked when the scenario is read.
    pub fn config(&self) -> QueueConfig {
        match self {
            Queue::DropTail(DropTail { limit }) => QueueConfig::DropTail(DropTailConfig { limit: limit.0 }),
            Queue::Red(red) => QueueConfig::Red(red.config()),
            Queue::CoDel(codel) => QueueConfig::CoDel(codel.config()),
        }
    }

    /// Writes out what follows from the limit.
    pub(in super::super) fn complete(&mut self) {
        match self {
            Queue::DropTail(_) => {}
            Queue::Red(red) => {
                let config = red.config();
                *red = Red {
                    limit: red.limit,
                    min: Some(red.limit.with(config.min)),
                    max: Some(red.limit.with(config.max)),
                    max_probability: Some(config.max_probability.into()),
                    gentle: Some(config.gentle),
                    weight_exponent: Some(config.weight_exponent),
                    mean_packet: Some(config.mean_packet),
                };
            }
            Queue::CoDel(codel) => {
                let CoDelConfig { target, interval, .. } = codel.config();
                (codel.target, codel.interval) = (Some(target), Some(interval));
            }
        }
    }

    /// The key of a threshold that has another unit than the limit.
    pub(in super::super) fn threshold_of_another_unit(&self) -> Option<&'static str> {
        let Queue::Red(red) = self else { return None };
        let thresholds = [("min", red.min), ("max", red.max)];
        let differs = |threshold: Option<Limit>| threshold.is_some_and(|t| t.with(0) != red.limit.with(0));
        thresholds.into_iter().find(|(_, threshold)| differs(*threshold)).map(|(key, _)| key)
    }
}

/// The network's configuration of this queue, with its own defaults.
fn usual(name: &str, limit: Limit) -> QueueConfig {
    let entry = QUEUES.find(name).expect("the queue is registered");
    (entry.create)(limit.0)
}

impl Red {
    fn config(&self) -> RedConfig {
        let QueueConfig::Red(usual) = usual("red", self.limit) else { unreachable!("red makes a RED queue") };
        RedConfig {
            limit: self.limit.0,
            min: self.min.map_or(usual.min, |min| min.0.value()),
            max: self.max.map_or(usual.max, |max| max.0.value()),
            max_probability: self.max_probability.map_or(usual.max_probability, Probability::from),
            gentle: self.gentle.unwrap_or(usual.gentle),
            weight_exponent: self.weight_exponent.unwrap_or(usual.weight_exponent),
            mean_packet: self.mean_packet.unwrap_or(usual.mean_packet),
        }
    }
}

impl CoDel {
    fn config(&self) -> CoDelConfig {
        let QueueConfig::CoDel(usual) = usual("codel", self.limit) else { unreachable!("codel makes a CoDel queue") };
        CoDelConfig {
            limit: self.limit.0,
            target: self.target.unwrap_or(usual.target),
            interval: self.interval.unwrap_or(usual.interval),
        }
    }
}

/// How much may wait: `"64 kB"` or `"100 packets"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(pub QueueLimit);

/// The unit of a limit that counts packets.
const PACKETS: &str = "packets";

/// What messages expect of a limit.
const EXPECTED: &str = "a size such as \"64 kB\" or \"100 packets\"";

impl Limit {
    /// A number in the unit of this limit.
    fn with(self, n: u64) -> Self {
        Limit(match self.0 {
            QueueLimit::Bytes(_) => QueueLimit::Bytes(n),
            QueueLimit::Packets(_) => QueueLimit::Packets(n),
        })
    }
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&match self.0 {
            QueueLimit::Bytes(n) => text::write_bytes(n),
            QueueLimit::Packets(n) => format!("{n} {PACKETS}"),
        })
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = Limit;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Limit, E> {
                let Some(number) = text.trim().strip_suffix(PACKETS).map(str::trim) else {
                    let problem = |problem| text::Problem { expected: EXPECTED.into(), ..problem };
                    let bytes = text::read_bytes(text).map_err(problem).map_err(E::custom)?;
                    return Ok(Limit(QueueLimit::Bytes(bytes)));
                };
                let count = number.parse().map(QueueLimit::Packets).map(Limit);
                count.map_err(|_| E::custom(format!("`{number}` is no number of packets; expected {EXPECTED}")))
            }

            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Limit, E> {
                self.visit_str(&n.to_string())
            }
        }
        deserializer.deserialize_any(Text)
    }
}

impl JsonSchema for Limit {
    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "x-expected": EXPECTED })
    }
}
