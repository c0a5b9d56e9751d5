//! Queues: which packets may wait, and which are sent or dropped.
//!
//! All are first in, first out, so the link keeps the packets itself and a queue only decides: whether an arriving
//! packet may wait, and whether the packet at the head is sent or dropped when the server is free. A queue that
//! reorders flows (such as fair queueing) does not fit this trait.
//!
//! Waiting packets are those behind the one in service. The packet in service is not counted, like the one that a
//! network card is sending below a Linux queueing discipline. Sizes are those of the network layer, without the link's
//! overhead. So a 64 kB queue behind a packet in service holds 64 000 bytes of IP packets.

mod codel;
mod drop_tail;
mod limit;
mod red;

pub use codel::CoDelConfig;
pub use drop_tail::DropTailConfig;
pub use limit::QueueLimit;
pub use red::RedConfig;

use crate::error::ConfigError;
use anabranch_registry::{Entry, Registry};
use anabranch_units::{Bandwidth, Instant};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

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

/// The parameters of a queue: the keys of `queue = { kind = ... }`, as their type derives them.
pub trait QueueParameters: Serialize + DeserializeOwned + JsonSchema {
    /// What the queue does, in one sentence.
    const SUMMARY: &'static str;
    /// Where it is defined.
    const SOURCE: &'static str;

    /// The queue of this size, with the source's recommended parameters.
    fn with_limit(limit: QueueLimit) -> Self;

    /// The largest queue.
    fn limit(&self) -> QueueLimit;

    /// Whether the run's seed decides which packets are dropped.
    fn is_random(&self) -> bool {
        false
    }

    /// Writes out what follows from the limit.
    fn complete(&mut self) {}

    /// Whether the parameters make sense together; their ranges are those of their types.
    ///
    /// # Errors
    /// Names the field, as in `queue.min`.
    fn check(&self) -> Result<(), ConfigError> {
        Ok(())
    }

    /// The empty queue of a link with this MTU and mean rate. Random decisions draw from `rng`.
    fn build(&self, mtu: u32, rate: Bandwidth, rng: ChaCha8Rng) -> Box<dyn Queue>;
}

/// Declares the type that is one of several queues, and their registry. A macro, so that a test can add one.
macro_rules! queues {
    (
        $(#[$attribute:meta])*
        $type:ident in $registry:ident { $($kind:literal => $variant:ident($parameters:ty)),* $(,)? }
    ) => {
        anabranch_registry::by_kind! {
            $(#[$attribute])*
            #[derive(Clone, Debug, PartialEq)]
            pub enum $type: "queue" {
                $(
                    #[doc = concat!("`", $kind, "`")]
                    #[schemars(description = <$parameters as QueueParameters>::SUMMARY)]
                    $kind => $variant($parameters),
                )*
            }
        }

        impl $type {
            /// The largest queue.
            pub fn limit(&self) -> QueueLimit {
                match self { $($type::$variant(queue) => queue.limit()),* }
            }

            /// Whether the run's seed decides which packets are dropped.
            pub fn is_random(&self) -> bool {
                match self { $($type::$variant(queue) => queue.is_random()),* }
            }

            /// Writes out what follows from the limit.
            pub fn complete(&mut self) {
                match self { $($type::$variant(queue) => queue.complete()),* }
            }

            /// Whether the parameters make sense together.
            ///
            /// # Errors
            /// Names the field, as in `queue.min`.
            pub fn check(&self) -> Result<(), ConfigError> {
                match self { $($type::$variant(queue) => queue.check()),* }
            }

            /// The empty queue of a link with this MTU and mean rate. Random decisions draw from `rng`.
            pub fn build(&self, mtu: u32, rate: Bandwidth, rng: ChaCha8Rng) -> Box<dyn Queue> {
                match self { $($type::$variant(queue) => queue.build(mtu, rate, rng)),* }
            }
        }

        /// Every queue that can be chosen by name. A constructor makes one of a size.
        pub static $registry: Registry<fn(QueueLimit) -> $type> = Registry::new(&[$(
            Entry {
                name: $kind,
                summary: <$parameters as QueueParameters>::SUMMARY,
                source: <$parameters as QueueParameters>::SOURCE,
                create: |limit| $type::$variant(QueueParameters::with_limit(limit)),
            },
        )*]);
    };
}

queues! {
    /// Which packets may wait. A size or a number of packets alone is a drop-tail queue of that limit.
    #[schemars(rename = "Queue")]
    QueueConfig in QUEUES {
        "drop-tail" => DropTail(drop_tail::DropTailConfig),
        "red" => Red(red::RedConfig),
        "codel" => CoDel(codel::CoDelConfig),
    }
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

    /// Checks the parameters, also against the largest packet.
    pub(crate) fn validate(&self, mtu: u32) -> Result<(), ConfigError> {
        self.limit().check(mtu)?;
        self.check()
    }
}

#[cfg(test)]
mod tests;
