//! What a link can say.

/// Why a link dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// The queue was full, or its management chose to drop.
    Queue,
    /// The loss model.
    Random,
    /// The link is down.
    Outage,
    /// Larger than the link's MTU.
    TooBig,
}

/// What one direction of a link can say. Deliveries are counted, not told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkEvent {
    /// A packet was lost.
    Dropped {
        /// Why.
        cause: DropCause,
        /// Its size, without the link's own overhead.
        bytes: u32,
    },
    /// The link went down or came back.
    Switched {
        /// Whether it is up now.
        up: bool,
    },
}
