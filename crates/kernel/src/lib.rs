//! Coupled congestion control on the stock kernel: LIA, OLIA, BALIA and MCC as BPF programs (`tcp_congestion_ops` by
//! struct_ops), and what attaches them to a cgroup or a port.
//!
//! `bpf/law.h` has the laws of `anabranch-stack` in fixed point. It is compiled into the programs and into a test on
//! the host, which replays traces of acknowledgments and losses with these and with the controls of `anabranch-stack`.
//!
//! The kernel keeps loss detection, recovery, pacing and the scheduler, which cannot be replaced in a stock kernel.
//!
//! - [`Control`]: the laws by name;
//! - [`checks`]: what the machine must provide, and what is missing;
//! - `attach`, `detach`, `attachments`, and `PathUse`, which makes backups of the subflows that a path policy forbids
//!   (with the feature `bpf`).

#![cfg(target_os = "linux")]

#[cfg(feature = "bpf")]
mod attachment;
pub mod checks;
mod control;
mod error;
#[cfg(test)]
mod law;
#[cfg(feature = "bpf")]
mod netlink;
#[cfg(feature = "bpf")]
mod path_use;
#[cfg(feature = "bpf")]
mod pins;
#[cfg(feature = "bpf")]
mod status;
#[cfg(feature = "bpf")]
mod table;

#[cfg(feature = "bpf")]
pub use attachment::{MAX_SUBFLOWS, Selection, attach, detach};
pub use control::Control;
pub use error::KernelError;
#[cfg(feature = "bpf")]
pub use path_use::{Decision, PathUse};
#[cfg(feature = "bpf")]
pub use pins::{DEFAULT_FILE_SYSTEM, used_file_systems};
#[cfg(feature = "bpf")]
pub use status::{Attachment, Draining, attachments, draining};
#[cfg(feature = "bpf")]
pub use table::{Subflow, Totals};
