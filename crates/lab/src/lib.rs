//! A scenario in real time on one machine.
//!
//! [`Lab::start`] builds a namespace for each of the scenario's clients, the scenario's links between them and a server, and the server:
//! our endpoint in this process, or a kernel's in a namespace of its own. The links treat the same packets as the simulator's do with
//! the same seed. Then either [`Lab::play`] drives the scenario's players on the kernel's sockets, or somebody starts a program in
//! [`Lab::namespace`] and lets it fetch [`Lab::url`]. [`Lab::finish`] takes everything down and says what was seen, in the simulator's words.
//!
//! Linux only, as root: [`LabError::Missing`] says what a machine lacks.

#![cfg(target_os = "linux")]

mod apps;
mod client;
mod error;
mod flow;
mod http;
mod inspect;
mod kernel;
mod lab;
mod network;
mod options;
mod report;
mod servers;
mod sites;
mod socket;
mod sockopt;

pub use error::LabError;
pub use lab::Lab;
pub use network::links;
pub use options::{ClientKind, Options, ServerKind};
pub use report::{Lateness, LiveFacts, Report};
