//! How much may wait.

use super::Backlog;
use crate::error::ConfigError;
use anabranch_units::text;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;

/// The largest queue: `"64 kB"` or `"100 packets"` in scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Limit in bytes at the network layer.
    Bytes(u64),
    /// Limit in packets of any size.
    Packets(u64),
}

impl QueueLimit {
    /// Whether a packet of this size fits behind `backlog`.
    #[inline]
    pub fn admits(self, backlog: Backlog, bytes: u32) -> bool {
        match self {
            QueueLimit::Bytes(limit) => backlog.bytes + u64::from(bytes) <= limit,
            QueueLimit::Packets(limit) => backlog.packets < limit,
        }
    }

    /// The backlog in the unit of this limit.
    pub fn measure(self, backlog: Backlog) -> u64 {
        match self {
            QueueLimit::Bytes(_) => backlog.bytes,
            QueueLimit::Packets(_) => backlog.packets,
        }
    }

    /// The limit itself, in its unit.
    pub fn value(self) -> u64 {
        match self {
            QueueLimit::Bytes(limit) | QueueLimit::Packets(limit) => limit,
        }
    }

    /// A number in the unit of this limit.
    pub(super) fn with(self, n: u64) -> Self {
        match self {
            QueueLimit::Bytes(_) => QueueLimit::Bytes(n),
            QueueLimit::Packets(_) => QueueLimit::Packets(n),
        }
    }

    /// A queue that cannot hold a single packet would drop everything.
    pub(super) fn check(self, mtu: u32) -> Result<(), ConfigError> {
        match self {
            QueueLimit::Bytes(limit) if limit < u64::from(mtu) => Err(ConfigError::new(
                "queue.limit",
                format!("{limit} bytes cannot hold one packet of the MTU, {mtu} bytes"),
            )),
            QueueLimit::Packets(0) => Err(ConfigError::new("queue.limit", "must hold at least one packet")),
            _ => Ok(()),
        }
    }
}

/// The unit of a limit that counts packets.
const PACKETS: &str = "packets";

/// What messages expect of a limit.
const EXPECTED: &str = "a size such as \"64 kB\" or \"100 packets\"";

impl Serialize for QueueLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&match self {
            QueueLimit::Bytes(n) => text::write_bytes(*n),
            QueueLimit::Packets(n) => format!("{n} {PACKETS}"),
        })
    }
}

impl<'de> Deserialize<'de> for QueueLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = QueueLimit;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<QueueLimit, E> {
                let Some(number) = text.trim().strip_suffix(PACKETS).map(str::trim) else {
                    let problem = |problem| text::Problem { expected: EXPECTED.into(), ..problem };
                    let bytes = text::read_bytes(text).map_err(problem).map_err(E::custom)?;
                    return Ok(QueueLimit::Bytes(bytes));
                };
                let count = number.parse().map(QueueLimit::Packets);
                count.map_err(|_| E::custom(format!("`{number}` is no number of packets; expected {EXPECTED}")))
            }

            fn visit_i64<E: de::Error>(self, n: i64) -> Result<QueueLimit, E> {
                self.visit_str(&n.to_string())
            }
        }
        deserializer.deserialize_any(Text)
    }
}

impl JsonSchema for QueueLimit {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_measure_in_their_own_unit() {
        let backlog = Backlog { packets: 2, bytes: 3000 };
        assert!(QueueLimit::Bytes(4500).admits(backlog, 1500));
        assert!(!QueueLimit::Bytes(4499).admits(backlog, 1500));
        assert!(QueueLimit::Packets(3).admits(backlog, 1500));
        assert!(!QueueLimit::Packets(2).admits(backlog, 1));
        assert_eq!([QueueLimit::Bytes(9), QueueLimit::Packets(9)].map(|limit| limit.measure(backlog)), [3000, 2]);
    }
}
