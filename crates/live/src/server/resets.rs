//! Rate-limited answers to segments of no connection.

use super::FlowKey;
use anabranch_segment::{Flags, Segment};
use anabranch_units::{Duration, Instant};
use std::collections::VecDeque;

/// Answers that may wait at most.
const MAX_WAITING: usize = 64;

/// A token bucket of answers, and those that wait to be sent.
#[derive(Debug)]
pub(super) struct Answers {
    waiting: VecDeque<(FlowKey, Segment)>,
    per_second: u32,
    /// Resets that may be sent now.
    tokens: u32,
    /// When the last token was added.
    since: Instant,
}

impl Answers {
    pub(super) fn new(per_second: u32) -> Self {
        Answers { waiting: VecDeque::new(), per_second, tokens: per_second, since: Instant::ZERO }
    }

    /// Answers a segment that belongs to no connection (RFC 9293 section 3.10.7.1).
    pub(super) fn reset(&mut self, now: Instant, flow: FlowKey, segment: &Segment) {
        if segment.flags.contains(Flags::RST) || !self.take_token(now) {
            return;
        }
        let mut reset = Segment::new(Flags::RST);
        if segment.flags.contains(Flags::ACK) {
            reset.seq = segment.ack;
        } else {
            reset.flags = Flags::RST | Flags::ACK;
            reset.ack = segment.seq + segment.sequence_len();
        }
        self.push(flow, reset);
    }

    /// Acknowledges an old segment of a closed flow. A flood of them draws no flood of answers (RFC 5961 section 7).
    pub(super) fn acknowledge(&mut self, now: Instant, flow: FlowKey, segment: Segment) {
        if self.take_token(now) {
            self.push(flow, segment);
        }
    }

    /// Queues a segment of a flow without a connection; their number is limited.
    pub(super) fn push(&mut self, flow: FlowKey, mut segment: Segment) {
        if self.waiting.len() < MAX_WAITING {
            (segment.source_port, segment.destination_port) = (flow.local.1, flow.remote.1);
            self.waiting.push_back((flow, segment));
        }
    }

    pub(super) fn pop(&mut self) -> Option<(FlowKey, Segment)> {
        self.waiting.pop_front()
    }

    fn take_token(&mut self, now: Instant) -> bool {
        if now.since(self.since) >= Duration::from_secs(1) {
            (self.tokens, self.since) = (self.per_second, now);
        }
        let affordable = self.tokens > 0 && self.waiting.len() < MAX_WAITING;
        self.tokens -= u32::from(affordable);
        affordable
    }
}
