//! A test network on one machine: links in real time, between network namespaces and a host in this process.
//!
//! - [`Netns`]: network namespaces that clean up after themselves;
//! - [`sites`]: a client and a server with several paths between them;
//! - [`Emulator`]: the links of `anabranch-network` in real time, between two namespaces or between a namespace and a
//!   [`Host`](anabranch_live::Host) in this process, with [middleboxes](Middlebox) and a [`Script`] of changes;
//! - [`requirements`]: what the machine must provide, and what is missing.

mod emulator;
mod idle_states;
mod middlebox;
mod netns;
mod packet;
mod priority;
pub mod requirements;
mod script;
pub mod sites;

pub use emulator::{EmulatedPath, Emulator, EmulatorReport, Far, LinkReport, NoHost, Pipes, Route, Topology};
pub use middlebox::{Middlebox, MiddleboxCounts, Strip};
pub use netns::Netns;
pub use packet::BytesPacket;
pub use priority::run_before_others;
pub use script::{Script, Step, When};
