//! Two endpoints joined by paths, and an endpoint in dialogues, segment by segment. All in one program: each one more
//! would be linked by itself.

#[path = "../common/mod.rs"]
mod common;

mod addresses;
mod contracts;
mod data;
mod failure;
mod handshake;
mod hostile;
mod outages;
mod path_mtu;
mod paths;
mod random;
mod timestamps;
mod transfers;
mod windows;
mod withheld;
