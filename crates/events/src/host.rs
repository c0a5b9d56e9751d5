//! What the host of a connection sees of it, and the connection does not say.

use crate::Limit;
use anabranch_units::PathId;
use serde::Serialize;

/// What changed in a step of a connection. A host that keeps a table of events compares the connection with what it was
/// before; others do not pay for it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostEvent {
    /// Something else keeps a path from carrying more, from here on.
    PathLimited {
        /// The path.
        path: PathId,
        /// What keeps it.
        #[serde(rename = "detail")]
        limit: Limit,
    },
    /// The application wrote, or took back what was not sent.
    Written {
        /// One past the last byte that it has written, in the connection's stream.
        #[serde(rename = "end_offset")]
        end: u64,
    },
    /// The receiver advertises another window than at the last such event: one of at most half or at least double the
    /// size, the first one, none, or one after none.
    WindowAdvertised {
        /// The window, in bytes.
        #[serde(rename = "window_bytes")]
        window: u64,
        /// One past the last byte that the peer may send, in the connection's stream.
        #[serde(rename = "end_offset")]
        end: u64,
    },
    /// The application read.
    Read {
        /// One past the last byte that it has read, in the connection's stream.
        #[serde(rename = "end_offset")]
        end: u64,
    },
}
