//! Subflows that have ended in order, and whose last acknowledgment may have been lost (RFC 9293 section 3.6).

use super::Flow;
use anabranch_segment::{Flags, Segment};
use anabranch_units::{Instant, SeqNumber};
use std::collections::{HashMap, VecDeque};

/// Where a subflow ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// The number behind this side's FIN.
    pub(super) next: SeqNumber,
    /// The number behind the peer's FIN.
    pub(super) acked: SeqNumber,
}

/// What to do with a segment of a flow that was looked up.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The flow is not known here.
    Unknown,
    /// Nothing; an RST may be a late or a forged one (RFC 1337).
    Ignore,
    /// The end is told again.
    Answer(Segment),
}

/// The ends of flows, until they are safely forgotten.
#[derive(Debug)]
pub(super) struct TimeWait {
    ends: HashMap<Flow, (Instant, End)>,
    /// When each is forgotten, in order. An entry that was replaced has another time there.
    order: VecDeque<(Instant, Flow)>,
    most: usize,
}

impl TimeWait {
    pub(super) fn new(most: usize) -> Self {
        TimeWait { ends: HashMap::new(), order: VecDeque::new(), most }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Remembers the end of a flow until then; later calls name later times.
    pub(super) fn remember(&mut self, until: Instant, flow: Flow, end: End) {
        while self.order.len() >= self.most.max(1) {
            self.forget_oldest();
        }
        if self.most > 0 {
            self.ends.insert(flow, (until, end));
            self.order.push_back((until, flow));
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((until, flow)) = self.order.pop_front()
            && self.ends.get(&flow).is_some_and(|(at, _)| *at == until)
        {
            self.ends.remove(&flow);
        }
    }

    pub(super) fn judge(&mut self, now: Instant, flow: Flow, segment: &Segment) -> Verdict {
        while self.order.front().is_some_and(|(until, _)| *until <= now) {
            self.forget_oldest();
        }
        let Some(&(_, end)) = self.ends.get(&flow) else { return Verdict::Unknown };
        if segment.flags.contains(Flags::RST) {
            return Verdict::Ignore;
        }
        let newer = (segment.seq.0.wrapping_sub(end.acked.0) as i32) > 0;
        if super::opens(segment.flags) && newer {
            // The client uses its port again for a new connection, which nothing of the old one can disturb.
            self.ends.remove(&flow);
            return Verdict::Unknown;
        }
        if segment.sequence_len() == 0 {
            return Verdict::Ignore;
        }
        let mut answer = Segment::new(Flags::ACK);
        (answer.seq, answer.ack) = (end.next, end.acked);
        Verdict::Answer(answer)
    }
}
