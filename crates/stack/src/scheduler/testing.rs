//! Helpers of this folder's tests: a set of subflows whose state a test sets by hand.
//!
//! Segments have 1000 bytes, so that hand-computed values stay readable.

use super::{Decision, InFlight, Scheduler, SubflowSet, Trigger, View, create};
use crate::options::{Options, Value};
use crate::view::{ConnectionView, Pace, Packets, SubflowView};
use anabranch_units::{Bandwidth, Duration, Instant};

/// Payload bytes of a full segment.
pub(super) const MSS: u32 = 1_000;

pub(super) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// The instant that long after the start.
pub(super) fn at(time: Duration) -> Instant {
    Instant::ZERO + time
}

pub(super) fn kbps(n: u64) -> Bandwidth {
    Bandwidth::from_bps(n * 1_000)
}

pub(super) fn send(subflow: usize, bytes: u64) -> Decision {
    Decision::Send { subflow, bytes }
}

pub(super) fn wait() -> Decision {
    Decision::Wait { until: None }
}

pub(super) fn options(entries: &[(&str, Value)]) -> Options {
    Options::new(entries.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}

/// An established, idle subflow before its first loss, of that round trip and a window of `cwnd` packets.
pub(super) fn subflow(id: u16, srtt: Duration, cwnd: u32) -> SubflowView {
    let window = u64::from(cwnd) * u64::from(MSS);
    // Linux's factor in congestion avoidance. Without a round trip there is no rate.
    let rate = if srtt.is_zero() { Bandwidth::ZERO } else { Bandwidth::from_bytes_per(window, srtt).mul_f64(1.2) };
    let idle = SubflowView::idle(id, MSS, Packets::whole(cwnd), srtt);
    SubflowView { send_buffer: 2 * window, pace: Pace::fixed(rate), ..idle }
}

/// The subflows that can take data where data commits at the window.
pub(super) fn candidates(connection: &ConnectionView, subflows: &[SubflowView]) -> SubflowSet {
    let view = View { connection, subflows, candidates: SubflowSet::EMPTY, flight: &[] };
    let mut candidates = SubflowSet::EMPTY;
    for (position, _) in view.contenders().filter(|(_, s)| s.room() > 0) {
        candidates.insert(position);
    }
    candidates
}

/// A scheduler and what it sees.
pub(super) struct Bed {
    pub(super) scheduler: Box<dyn Scheduler>,
    pub(super) connection: ConnectionView,
    pub(super) subflows: Vec<SubflowView>,
    pub(super) flight: Vec<InFlight>,
}

impl Bed {
    /// The scheduler of that name with its defaults, endless data, a huge peer's window, and no subflow yet.
    pub(super) fn new(name: &str) -> Self {
        Bed::with(name, &[])
    }

    /// The same with options.
    pub(super) fn with(name: &str, entries: &[(&str, Value)]) -> Self {
        let scheduler = create(name, &options(entries)).expect("a known scheduler and valid options");
        let connection = ConnectionView { unsent: 1 << 40, window_end: 1 << 40, ..ConnectionView::default() };
        Bed { scheduler, connection, subflows: Vec::new(), flight: Vec::new() }
    }

    /// Adds a subflow.
    pub(super) fn subflow(mut self, srtt: Duration, cwnd: u32) -> Self {
        let id = self.subflows.last().map_or(0, |s| s.id.0 + 1);
        self.subflows.push(subflow(id, srtt, cwnd));
        self
    }

    /// Puts that many packets into flight.
    pub(super) fn load(&mut self, position: usize, packets: u32) {
        self.subflows[position].in_flight = packets;
    }

    /// Fills the window.
    pub(super) fn fill(&mut self, position: usize) {
        self.load(position, self.subflows[position].cwnd.floor());
    }

    /// Asks the scheduler about new data.
    pub(super) fn decide(&mut self) -> Decision {
        let candidates = candidates(&self.connection, &self.subflows);
        let view = View { connection: &self.connection, subflows: &self.subflows, candidates, flight: &self.flight };
        self.scheduler.decide(&view, Trigger::NewData)
    }

    /// Asks the scheduler about a reinjection.
    pub(super) fn reinject(&mut self) -> Decision {
        let candidates = candidates(&self.connection, &self.subflows);
        let view = View { connection: &self.connection, subflows: &self.subflows, candidates, flight: &self.flight };
        self.scheduler.decide(&view, Trigger::Reinjection)
    }

    /// Asks another scheduler.
    pub(super) fn ask(&self, scheduler: &mut dyn Scheduler, trigger: Trigger) -> Decision {
        let candidates = candidates(&self.connection, &self.subflows);
        scheduler.decide(
            &View { connection: &self.connection, subflows: &self.subflows, candidates, flight: &self.flight },
            trigger,
        )
    }

    /// Gives new bytes to a subflow: they are queued there.
    pub(super) fn sent(&mut self, position: usize, bytes: u64) {
        self.subflows[position].queued += bytes;
        self.subflows[position].memory += bytes;
        self.connection.next += bytes;
        self.connection.unsent -= bytes;
    }

    /// Lets the scheduler place one new segment, which leaves and is acknowledged at once; returns its subflow.
    pub(super) fn send_segment(&mut self) -> usize {
        match self.decide() {
            Decision::Send { subflow, .. } => {
                self.connection.next += u64::from(MSS);
                self.connection.unsent -= u64::from(MSS);
                subflow
            }
            other => panic!("expected a segment, not {other:?}"),
        }
    }
}
