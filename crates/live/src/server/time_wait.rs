//! Subflows that have ended in order, and whose last acknowledgment may have been lost (RFC 9293 section 3.6).

use super::FlowKey;
use anabranch_segment::{Flags, Segment};
use anabranch_units::{Instant, SeqNumber};
use std::collections::{HashMap, VecDeque};

/// The final numbers of a subflow.
#[derive(Clone, Copy, Debug)]
pub(super) struct FinalNumbers {
    /// The number behind this side's FIN.
    pub(super) next: SeqNumber,
    /// The number behind the peer's FIN.
    pub(super) acked: SeqNumber,
}

/// What to do with a segment of a closed flow.
#[derive(Debug)]
pub(super) enum Lookup {
    /// The flow is unknown here.
    Unknown,
    /// Ignore the segment; an RST may be a late or a forged one (RFC 1337).
    Ignore,
    /// Send the final acknowledgment again.
    Answer(Segment),
}

/// The flows in TIME-WAIT.
#[derive(Debug)]
pub(super) struct TimeWait {
    ends: HashMap<FlowKey, (Instant, FinalNumbers)>,
    /// The end of each TIME-WAIT, ascending. A replaced entry has another time in `ends`.
    order: VecDeque<(Instant, FlowKey)>,
    most: usize,
}

impl TimeWait {
    pub(super) fn new(most: usize) -> Self {
        TimeWait { ends: HashMap::new(), order: VecDeque::new(), most }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Keeps a flow in TIME-WAIT until `until`; later calls must not have earlier times.
    pub(super) fn remember(&mut self, until: Instant, flow: FlowKey, end: FinalNumbers) {
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

    /// Forgets the flows whose time is over.
    pub(super) fn expire(&mut self, now: Instant) {
        while self.order.front().is_some_and(|(until, _)| *until <= now) {
            self.forget_oldest();
        }
    }

    pub(super) fn look_up(&mut self, now: Instant, flow: FlowKey, segment: &Segment) -> Lookup {
        self.expire(now);
        let Some(&(_, end)) = self.ends.get(&flow) else { return Lookup::Unknown };
        if segment.flags.contains(Flags::RST) {
            return Lookup::Ignore;
        }
        let newer = (segment.seq.0.wrapping_sub(end.acked.0) as i32) > 0;
        if super::opens(segment.flags) && newer {
            // The client reuses its port for a new connection, beyond the numbers of the old one.
            self.ends.remove(&flow);
            return Lookup::Unknown;
        }
        if segment.sequence_len() == 0 {
            return Lookup::Ignore;
        }
        let mut answer = Segment::new(Flags::ACK);
        (answer.seq, answer.ack) = (end.next, end.acked);
        Lookup::Answer(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::{Duration, PathId};

    #[test]
    fn what_is_over_is_forgotten_also_when_no_segment_comes() {
        let (local, remote) = ("10.99.0.1".parse().unwrap(), "10.1.0.2".parse().unwrap());
        let end = FinalNumbers { next: SeqNumber(1), acked: SeqNumber(2) };
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut waiting = TimeWait::new(10);
        for port in 1..=3u16 {
            let flow = FlowKey { path: PathId(0), local: (local, 80), remote: (remote, port) };
            waiting.remember(at(60 + u64::from(port)), flow, end);
        }
        let left = [60, 61, 62, 63].map(|seconds| {
            waiting.expire(at(seconds));
            waiting.len()
        });
        assert_eq!(left, [3, 2, 1, 0]);
    }
}
