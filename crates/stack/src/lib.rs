//! A sans-IO Multipath TCP version 1 endpoint (RFC 8684), sender and receiver, client and server.
//!
//! A [`Connection`] takes typed segments and the time. It returns the segments to send, its next timeout and events. It
//! has no clock, socket, thread or random number generator of its own. It handles stream offsets and lengths only,
//! never payload bytes: the host stores these, indexed by offset.
//!
//! Modules:
//! - [`connection`]: the data level: handshake of MPTCP, mappings, DATA_ACK, reassembly, reinjection, closing;
//! - `subflow`: one TCP: numbers, acknowledgments, loss recovery, timers;
//! - [`congestion`], [`scheduler`], [`path_policy`]: the replaceable parts, each a trait with a registry;
//! - [`external`]: such parts that are in no registry.
//!
//! Behaviour follows Linux; `docs/reference/deviations.md` lists each deliberate difference.

// Tests inside the crate use what tests outside of it share, and that names the crate.
#[cfg(test)]
extern crate self as anabranch_stack;

#[cfg(any(test, feature = "conformance"))]
pub mod breach;
pub mod congestion;
pub mod connection;
pub mod external;
pub use anabranch_registry::options;
mod packet_memory;
mod path;
mod path_manager;
pub mod path_policy;
mod queue;
mod reassembly;
mod receive_memory;
pub mod scheduler;
mod subflow;
pub mod view;

pub use connection::{Config, Connection, Placed, Transmit};
pub use packet_memory::packet_memory;
