//! Drop-tail: packets that fit may wait, others are dropped on arrival.

use super::{Backlog, Queue, QueueConfig, QueueEntry, QueueLimit};
use anabranch_units::Instant;

/// A queue that drops what does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropTailConfig {
    /// The largest queue.
    pub limit: QueueLimit,
}

pub(super) const ENTRY: QueueEntry = QueueEntry {
    name: "drop-tail",
    summary: "Drops packets that arrive when the queue is full.",
    source: "RFC 7567 section 2; tc-bfifo(8), tc-pfifo(8)",
    create: |limit| QueueConfig::DropTail(DropTailConfig { limit }),
};

pub(super) struct DropTail {
    limit: QueueLimit,
}

impl DropTail {
    pub(super) fn new(config: DropTailConfig) -> Self {
        DropTail { limit: config.limit }
    }
}

impl Queue for DropTail {
    #[inline]
    fn admit(&mut self, _: Instant, waiting: Backlog, bytes: u32) -> bool {
        self.limit.admits(waiting, bytes)
    }
}
