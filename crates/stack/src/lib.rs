//! A sans-IO Multipath TCP version 1 endpoint (RFC 8684), sender and receiver, client and server.
//!
//! A [`Connection`] takes typed segments and the time, and says what to send, when to wake it and what happened.
//! It never sees a clock, a socket, a thread, or a random number that it was not handed. It knows
//! stream offsets and lengths only, never payload bytes: the host owns these, keyed by offset.
//!
//! Where things live:
//! - [`connection`]: the data level: handshake of MPTCP, mappings, DATA_ACK, reassembly, reinjection, closing;
//! - `subflow`: one TCP: numbers, acknowledgments, loss recovery, timers;
//! - [`congestion`], [`scheduler`], [`path_policy`]: the replaceable parts, each a trait with a registry.
//!
//! Behaviour follows Linux; `docs/reference/deviations.md` lists each deliberate difference.

// Tests inside the crate use what tests outside of it share, and that names the crate.
#[cfg(test)]
extern crate self as anabranch_stack;

pub mod congestion;
pub mod connection;
pub mod options;
mod path_manager;
pub mod path_policy;
mod reassembly;
pub mod scheduler;
mod subflow;
pub mod view;

pub use connection::{Config, Connection, Placed, Transmit};
