//! Queues: which packets may wait, and which are sent or dropped.
//!
//! All are first in, first out, so the link keeps the packets itself and a queue only decides: whether an arriving packet
//! may wait, and whether the packet at the head is sent or dropped when the server is free. A queue that reorders flows
//! (such as fair queueing) does not fit this trait.
//!
//! Waiting packets are those behind the one in service. The packet in service is not counted, like the one that a
//! network card is sending below a Linux queueing discipline. Sizes are those of the network layer, without the link's
//! overhead. So a 64 kB queue behind a packet in service holds 64 000 bytes of IP packets.

mod codel;
mod drop_tail;
mod red;

pub use codel::CoDelConfig;
pub use drop_tail::DropTailConfig;
pub use red::RedConfig;

use crate::error::ConfigError;
use anabranch_registry::{Entry, Registry};
use anabranch_units::{Bandwidth, Instant};
use rand_chacha::ChaCha8Rng;

/// Size of the waiting packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Number of packets.
    pub packets: u64,
    /// Bytes at the network layer.
    pub bytes: u64,
}

impl Backlog {
    #[inline]
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    #[inline]
    pub(crate) fn remove(&mut self, bytes: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(bytes);
    }
}

/// The largest queue.
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

    /// A queue that cannot hold a single packet would drop everything.
    fn validate(self, mtu: u32) -> Result<(), ConfigError> {
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

/// The packet at the head of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedPacket {
    /// When it entered the queue.
    pub entered: Instant,
    /// Bytes at the network layer.
    pub bytes: u32,
}

/// A queue's decision about the packet at the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// The server takes it.
    Send,
    /// It is dropped, and the next packet is considered.
    Drop,
}

/// A queue's decisions. The times passed to it never decrease.
pub trait Queue: Send {
    /// Whether an arriving packet may join the waiting ones. It is called for every packet, also when none waits and
    /// the server is idle.
    fn admit(&mut self, now: Instant, waiting: Backlog, bytes: u32) -> bool;

    /// Whether the packet at the head is sent, now that the server is free. `behind` are the packets after it.
    fn depart(&mut self, now: Instant, packet: QueuedPacket, behind: Backlog) -> Departure {
        let _ = (now, packet, behind);
        Departure::Send
    }

    /// The server is free and no packet waits; or all waiting packets were lost in an outage.
    fn emptied(&mut self, now: Instant) {
        let _ = now;
    }

    /// The link's mean rate has changed.
    fn rate_changed(&mut self, rate: Bandwidth) {
        let _ = rate;
    }
}

/// The queue of a link and its limit. The limit has no default because it has a large effect.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueConfig {
    /// Drops packets that do not fit.
    DropTail(DropTailConfig),
    /// Random early detection.
    Red(RedConfig),
    /// Controlled delay.
    CoDel(CoDelConfig),
}

impl QueueConfig {
    /// A drop-tail queue of this many bytes.
    pub fn drop_tail_bytes(bytes: u64) -> Self {
        QueueConfig::DropTail(DropTailConfig { limit: QueueLimit::Bytes(bytes) })
    }

    /// A drop-tail queue of this many packets.
    pub fn drop_tail_packets(packets: u64) -> Self {
        QueueConfig::DropTail(DropTailConfig { limit: QueueLimit::Packets(packets) })
    }

    /// The largest queue.
    pub fn limit(&self) -> QueueLimit {
        match self {
            QueueConfig::DropTail(config) => config.limit,
            QueueConfig::Red(config) => config.limit,
            QueueConfig::CoDel(config) => config.limit,
        }
    }

    pub(crate) fn validate(&self, mtu: u32) -> Result<(), ConfigError> {
        self.limit().validate(mtu)?;
        match self {
            QueueConfig::DropTail(_) => Ok(()),
            QueueConfig::Red(config) => config.validate(),
            QueueConfig::CoDel(config) => config.validate(),
        }
    }

    /// The empty queue of a link with this MTU and mean rate. Random decisions draw from `rng`.
    pub fn build(&self, mtu: u32, rate: Bandwidth, rng: ChaCha8Rng) -> Box<dyn Queue> {
        match self {
            QueueConfig::DropTail(config) => Box::new(drop_tail::DropTail::new(*config)),
            QueueConfig::Red(config) => Box::new(red::Red::new(*config, rate, rng)),
            QueueConfig::CoDel(config) => Box::new(codel::CoDel::new(*config, mtu)),
        }
    }
}

/// A queue's line in the registry. Its constructor makes one of a size, with the source's recommended parameters.
pub type QueueEntry = Entry<fn(QueueLimit) -> QueueConfig>;

/// Every queue that can be chosen by name.
pub static QUEUES: Registry<fn(QueueLimit) -> QueueConfig> =
    Registry::new(&[drop_tail::ENTRY, red::ENTRY, codel::ENTRY]);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Streams;

    #[test]
    fn limits_measure_in_their_own_unit() {
        let backlog = Backlog { packets: 2, bytes: 3000 };
        assert!(QueueLimit::Bytes(4500).admits(backlog, 1500));
        assert!(!QueueLimit::Bytes(4499).admits(backlog, 1500));
        assert!(QueueLimit::Packets(3).admits(backlog, 1500));
        assert!(!QueueLimit::Packets(2).admits(backlog, 1));
        assert_eq!([QueueLimit::Bytes(9), QueueLimit::Packets(9)].map(|limit| limit.measure(backlog)), [3000, 2]);
    }

    #[test]
    fn every_registered_queue_is_valid_has_its_limit_and_admits_into_emptiness() {
        for kind in QUEUES {
            for limit in [QueueLimit::Bytes(64_000), QueueLimit::Packets(50), QueueLimit::Packets(1)] {
                let config = (kind.create)(limit);
                assert_eq!(config.limit(), limit, "{}", kind.name);
                config.validate(1500).unwrap_or_else(|error| panic!("{} {limit:?}: {error}", kind.name));
                let mut queue = config.build(1500, Bandwidth::from_mbps(2), Streams::new(1, kind.name).stream("queue"));
                assert!(queue.admit(Instant::ZERO, Backlog::default(), 1500), "{}", kind.name);
                let full = Backlog { packets: 50, bytes: 64_000 };
                assert!(!queue.admit(Instant::ZERO, full, 1500), "{}", kind.name);
            }
        }
    }
}
