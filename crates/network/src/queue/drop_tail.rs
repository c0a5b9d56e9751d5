//! Drop-tail: packets that fit may wait, others are dropped on arrival.

use super::{Backlog, Queue, QueueLimit, QueueParameters};
use anabranch_units::{Bandwidth, Instant};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A queue that drops packets that do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "DropTail")]
pub struct DropTailConfig {
    /// The capacity: a size such as "64 kB", or "100 packets".
    pub limit: QueueLimit,
}

impl QueueParameters for DropTailConfig {
    const SUMMARY: &'static str = "Drops packets that arrive when the queue is full.";
    const SOURCE: &'static str = "RFC 7567 section 2; tc-bfifo(8), tc-pfifo(8)";

    fn with_limit(limit: QueueLimit) -> Self {
        DropTailConfig { limit }
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }

    fn build(&self, _: u32, _: Bandwidth, _: ChaCha8Rng) -> Box<dyn Queue> {
        Box::new(DropTail(self.limit))
    }
}

struct DropTail(QueueLimit);

impl Queue for DropTail {
    #[inline]
    fn admit(&mut self, _: Instant, waiting: Backlog, bytes: u32) -> bool {
        self.0.admits(waiting, bytes)
    }
}
