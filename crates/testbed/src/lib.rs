//! A scenario in real time on one machine.
//!
//! [`Testbed::start`] builds a namespace for each of the scenario's clients, the scenario's links between them and a
//! server, and the server: our endpoint in this process, or a kernel's in a namespace of its own. The links treat the
//! same packets as the simulator's do with the same seed. Then either [`Testbed::play`] drives the scenario's players
//! on the kernel's sockets, or the host starts a program in [`Testbed::namespace`] and lets it fetch [`Testbed::url`].
//! [`Testbed::finish`] takes everything down and gives what was observed, as the simulator does; a [`ClientReport`]
//! adds what the caller knows of its program.
//!
//! Linux only, as root: [`TestbedError::Missing`] says what a machine lacks.

#![cfg(target_os = "linux")]

mod apps;
mod client;
mod error;
mod header_room;
mod http;
mod inspect;
mod kernel;
mod network;
mod options;
mod pacing;
mod report;
mod servers;
mod shared_flow;
mod sites;
mod socket;
mod sockopt;
mod testbed;

pub use error::TestbedError;
pub use header_room::header_room;
pub use network::links;
pub use options::{ClientKind, Options, ServerKind};
pub use report::{ClientReport, kernel_release};
pub use testbed::Testbed;
