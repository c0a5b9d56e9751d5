//! The server, the links and the namespaces, with real clients where this machine has them. All in one program, because Cargo runs programs
//! one after another, and most of these tests wait for the network.

#[path = "../common/mod.rs"]
mod common;

#[path = "../common/answer.rs"]
mod answer;
mod failover;
#[cfg(feature = "serve")]
mod fairness;
mod kernel_client;
mod kernel_to_kernel;
mod matrix;
mod namespaces;
#[cfg(feature = "serve")]
mod origin;
#[cfg(feature = "serve")]
mod requests;
#[cfg(feature = "serve")]
mod serve;
mod server;
mod trains;
mod tshark;
#[cfg(feature = "serve")]
mod uploads;
