//! Network links as sans-IO parts, for the simulator in virtual time and the live emulator in real time alike.
//!
//! A link is two [`Direction`]s. Each is a queue, a server that takes the rate's time over every packet, and a list of
//! propagating packets:
//!
//! ```text
//! send -> MTU, outage, loss at entry -> queue -> server -> loss at exit, duplication -> delay, jitter -> poll_delivery
//! ```
//!
//! The host passes the time to every call; a direction never reads a clock. It is generic over the packet:
//! the simulator sends typed segments, the emulator raw bytes.
//!
//! ```
//! use anabranch_network::{Direction, DirectionConfig, Packet, QueueConfig, Streams};
//! use anabranch_units::{Bandwidth, Duration, Instant};
//!
//! struct Ping;
//! impl Packet for Ping {
//!     fn bytes(&self) -> u32 {
//!         1500
//!     }
//!     fn duplicate(&self) -> Self {
//!         Ping
//!     }
//! }
//!
//! let mut config = DirectionConfig::new(Bandwidth::from_mbps(2), QueueConfig::drop_tail_bytes(64_000));
//! config.delay = Duration::from_millis(25).into();
//! config.validate().unwrap();
//! let mut link = Direction::new(&config, Streams::new(1, "link/wifi/down"));
//! link.send(Instant::ZERO, Ping);
//! // 1500 bytes take 6 ms at 2 Mb/s, then they propagate for 25 ms.
//! let arrival = Instant::ZERO + Duration::from_millis(31);
//! assert_eq!(link.poll_timeout(), Some(arrival));
//! assert!(link.poll_delivery(arrival).is_some());
//! ```
//!
//! Queues and loss models are traits with a registry ([`QUEUES`], [`LOSS_MODELS`]); a new one is a file and a line.
//! Every random effect draws from its own stream, split from the run's seed by name ([`Streams`]).

mod config;
mod direction;
mod draws;
mod effects;
mod error;
mod histogram;
pub mod jitter;
pub mod loss;
mod queue;
mod ring;
mod server;
mod stats;
mod trace;

pub use config::{Change, DelayConfig, DirectionConfig, MAX_PACKET_BYTES, Reordering};
pub use direction::{Departed, Direction, Packet};
pub use draws::{Probability, Streams};
pub use error::ConfigError;
pub use histogram::Histogram;
pub use jitter::Jitter;
pub use loss::{LOSS_MODELS, Loss, LossAt};
pub use queue::{
    Backlog, CoDelConfig, Departure, DropTailConfig, QUEUES, Queue, QueueConfig, QueueLimit, QueueParameters,
    QueuedPacket, RedConfig,
};
pub use server::{ConstantConfig, RateConfig, TokenBucketConfig};
pub use stats::{Count, Imbalance, Stats};
pub use trace::{
    AtEnd, Column, ColumnName, FirstRow, Gap, Gaps, Latency, OPPORTUNITY_BYTES, OUTAGE_SHARE_OF_MEAN, Opportunities,
    RateAndLatency, RateUnit, Reading, RecordedNetwork, RecordedRate, SYNTHETIC_KINDS, Separator, Steps, Summary,
    SyntheticConfig, SyntheticEntry, SyntheticModel, TableFormat, TableHints, TimeUnit, TraceError, TraceHints,
    TraceKind, Understood,
};
