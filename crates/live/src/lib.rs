//! The endpoint in real time, as a host of the operating system's network.
//!
//! - [`Tun`]: devices whose packets this process reads and writes;
//! - [`Clock`], [`Waiter`] and [`SystemEntropy`]: the operating system's time and random numbers;
//! - [`Host`]: what speaks IP, and [`Server`]: a host that accepts connections with our endpoint;
//! - [`Tap`]: captures of packets.

mod buffer;
mod clock;
mod entropy;
mod host;
mod server;
mod tap;
mod tun;
mod wait;

pub use clock::Clock;
pub use entropy::SystemEntropy;
pub use host::Host;
pub use server::{
    Application, ConnectionId, Counters, Finish, Gauges, Limits, Opened, Orphan, Outgoing, PathCounters, Progress,
    QueueingDelays, Reply, Server,
};
pub use tap::{End, Tap};
pub use tun::{DEFAULT_MTU, Offload, Tun};
pub use wait::{Waiter, sharpen_timers};
