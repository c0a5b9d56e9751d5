//! Events of links.

use serde::Serialize;

/// Why a link dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DropCause {
    /// The queue was full, or its management chose to drop.
    Queue,
    /// The loss model dropped it.
    Random,
    /// The link was down.
    Outage,
    /// The packet was larger than the link's MTU.
    TooBig,
}

/// An event of one direction of a link. Deliveries are counted, not emitted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkEvent {
    /// A packet was lost.
    Dropped {
        /// Cause of the loss.
        #[serde(rename = "detail")]
        cause: DropCause,
        /// Packet size in bytes, without the link's own overhead.
        bytes: u32,
    },
    /// The link went down or came back.
    #[serde(rename = "link-switched")]
    Switched {
        /// Whether the link is up now.
        up: bool,
    },
}
