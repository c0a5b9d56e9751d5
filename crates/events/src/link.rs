//! Events of links.

use anabranch_units::{Bandwidth, PathId, SubflowId};
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

/// Whose packet was dropped, and what it carried. A link does not know it: a host adds it that keeps a table of events.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Carried {
    /// The endpoint that sent it, as a source of the table.
    pub sender: String,
    /// Its path.
    pub path: PathId,
    /// Its subflow, as the sender numbers it; absent where the sender has none for it any more.
    pub subflow: Option<SubflowId>,
    /// Offset of its payload in the sender's stream; absent without payload.
    pub offset: Option<u64>,
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
    /// A property of the link changed while it ran; recorded rates change all the time, which is no event.
    #[serde(rename = "link-changed")]
    Changed {
        /// Its key in a scenario.
        #[serde(rename = "detail")]
        what: &'static str,
        /// The mean of its rate from here on, if that is what changed.
        #[serde(rename = "rate_bps", serialize_with = "crate::column::bps_option")]
        rate: Option<Bandwidth>,
    },
    /// The link went down or came back.
    #[serde(rename = "link-switched")]
    Switched {
        /// Whether the link is up now.
        up: bool,
    },
}
