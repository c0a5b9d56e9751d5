//! The units shared by all crates.
//!
//! A quantity is a type, so that bits are never taken for bytes nor milliseconds for microseconds.
//! Everything is stored as an integer; floating point appears only inside a formula, at its end
//! a conversion back. [`text`] reads and writes quantities with their units. This crate imports no other crate of
//! Anabranch.

mod bandwidth;
mod direction;
mod keys;
mod nearest;
mod sequence;
pub mod text;
mod time;

pub use bandwidth::Bandwidth;
pub use direction::{LinkDirection, PerDirection};
pub use keys::keys_of;
pub use nearest::nearest;
pub use sequence::SeqNumber;
pub use text::{Bytes, Ratio};
pub use time::{Duration, Instant};

/// Identifier of a path (a route through the network): an index into the topology's list of paths.
///
/// Both ends of a connection use the same index for the same route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct PathId(pub u16);

impl PathId {
    /// The index as a `usize`.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Identifier of a subflow within its connection: 0 is the initial one; identifiers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct SubflowId(pub u16);

impl SubflowId {
    /// The index as a `usize`.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}
