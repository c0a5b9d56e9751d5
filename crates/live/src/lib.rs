//! The endpoint in real time. Only this crate uses the operating system's interfaces.
//!
//! - [`Netns`] and [`Tun`]: network namespaces that clean up after themselves, and devices in them;
//! - [`testnet`]: a client and a server with several paths between them;
//! - [`Emulator`]: the links of `anabranch-network` in real time, between two namespaces or between a namespace and a
//!   [`Host`] in this process, with a [`Script`] of changes and a [`Tap`] that records;
//! - [`Server`]: a host that accepts connections with our endpoint;
//! - [`requirements`]: what the machine must provide, and what is missing.

mod buffer;
mod clock;
mod emulator;
mod entropy;
mod host;
mod idle_states;
mod middlebox;
mod netns;
mod packet;
mod priority;
pub mod requirements;
mod script;
mod server;
mod tap;
pub mod testnet;
mod tun;
mod wait;

pub use clock::Clock;
pub use emulator::{EmulatedPath, Emulator, EmulatorReport, Far, LinkReport, Pipes, Route, Topology};
pub use entropy::SystemEntropy;
pub use host::{Host, NoHost};
pub use middlebox::{Middlebox, MiddleboxCounts, Strip};
pub use netns::Netns;
pub use packet::BytesPacket;
pub use priority::run_before_others;
pub use script::{Script, Step, When};
pub use server::{
    Application, ConnectionId, Counters, Finish, Gauges, Limits, Opened, Orphan, Outgoing, PathCounters, Progress,
    QueueingDelays, Reply, Server,
};
pub use tap::{End, Tap};
pub use tun::{DEFAULT_MTU, Offload, Tun};
pub use wait::{Waiter, sharpen_timers};
