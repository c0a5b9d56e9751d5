//! The server, the links and the namespaces, with real clients where this machine has them. All in one program, because
//! Cargo runs programs one after another, and most of these tests wait for the network.

#[path = "../common/mod.rs"]
mod common;

mod failover;
mod fairness;
mod kernel_client;
mod kernel_to_kernel;
mod matrix;
mod namespaces;
mod origin;
mod requests;
mod serve;
mod tshark;
mod uploads;
