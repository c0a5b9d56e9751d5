//! How a connection carried the content, folded from what its two endpoints said.
//!
//! For a download the server's endpoint says what was sent, the client's what arrived; each has its own `observe`, so
//! that the requests' few packets in the other direction never mix in. Nothing is allocated or hashed per event.
//!
//! Windows, round trips and goodput of a subflow come from its [`TransportEvent::Sample`]s: the host has the server's
//! endpoint sample at an interval, and once more when the session ends.

use anabranch_events::{Histogram, LossCause, SendKind, TransportEvent};
use anabranch_units::{Duration, Instant, PathId};
use serde::Serialize;

/// The fold. It may be asked for a report at any instant, so it also serves a run that is cut off.
#[derive(Clone, Debug)]
pub struct TransportMetrics {
    start: Instant,
    /// The scenario's events in order, which split the retransmissions.
    splits: Vec<Instant>,
    /// How many of `splits` are past.
    passed: usize,
    path_switches: u64,
    path_switches_new_data: u64,
    delivered: u64,
    reorder_delay: Histogram,
    reorder_bytes_max: u64,
    receive_window_limited: Stopwatch,
    scheduler_waiting: Stopwatch,
    subflows: Vec<Option<Subflow>>,
}

/// What [`TransportMetrics`] found; the field names are those of `run --json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TransportReport {
    /// Two consecutive segments on different subflows, repetitions included.
    pub path_switches: u64,
    /// The same among the segments with new data only.
    pub path_switches_new_data: u64,
    /// Bytes that became readable in order, over the time from the session's start to its end.
    pub goodput_bps: f64,
    /// How long bytes waited for earlier ones.
    pub reorder_delay_s: ReorderDelay,
    /// The most bytes that waited at once.
    pub reorder_bytes_max: u64,
    /// Time in which only the receive window kept data back.
    pub receive_window_limited_s: f64,
    /// Time in which the scheduler waited although a subflow had room.
    pub scheduler_wait_s: f64,
    /// Retransmissions of all subflows before and after each event of the scenario.
    pub retransmissions_around_events: Vec<AroundEvent>,
    /// By number.
    pub subflows: Vec<SubflowReport>,
}

/// How long bytes waited in the reassembly queue, weighted by bytes; those in order waited zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReorderDelay {
    /// Exact.
    pub mean: f64,
    /// Within 0.8 %.
    pub p95: f64,
    /// Exact.
    pub max: f64,
}

/// Retransmissions before and after an event of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AroundEvent {
    /// When the event was.
    pub at_s: f64,
    /// Before it.
    pub before: u64,
    /// In the same instant or later.
    pub after: u64,
}

/// One subflow as the sender saw it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubflowReport {
    /// The name of its path.
    pub path: String,
    /// Payload bytes that were acknowledged, over the time from the session's start to its end.
    pub goodput_bps: f64,
    /// Payload bytes sent, repetitions included.
    pub bytes: u64,
    /// Segments with payload sent, repetitions included.
    pub segments_sent: u64,
    /// Those that repeated a segment of this subflow, tail loss probes included.
    pub retransmissions: u64,
    /// Those that repeated what another subflow had been given.
    pub reinjections: u64,
    /// Window reductions by the retransmission timer.
    pub rto_count: u64,
    /// Window reductions by losses, timeouts included; penalties are none.
    pub loss_events: u64,
    /// Mean over time, in packets; null without samples.
    pub mean_cwnd_packets: Option<f64>,
    /// Mean over time; null without samples.
    pub mean_srtt_s: Option<f64>,
    /// Its retransmissions before and after each event of the scenario.
    pub retransmissions_around_events: Vec<AroundEvent>,
}

impl TransportMetrics {
    /// For a session that begins at `start` in a scenario with events at `events`, in any order.
    pub fn new(start: Instant, events: &[Instant]) -> Self {
        let mut splits = events.to_vec();
        splits.sort_unstable();
        TransportMetrics {
            start,
            splits,
            passed: 0,
            path_switches: 0,
            path_switches_new_data: 0,
            delivered: 0,
            reorder_delay: Histogram::new(),
            reorder_bytes_max: 0,
            receive_window_limited: Stopwatch::default(),
            scheduler_waiting: Stopwatch::default(),
            subflows: Vec::new(),
        }
    }

    /// Takes in one event of the endpoint that sends the content, in the order in which they were said.
    pub fn observe_sender(&mut self, at: Instant, event: &TransportEvent) {
        match *event {
            TransportEvent::SegmentSent { subflow, kind, bytes, .. } => {
                while self.splits.get(self.passed).is_some_and(|&split| split <= at) {
                    self.passed += 1;
                }
                let passed = self.passed;
                if let Some(subflow) = self.subflow(subflow.index()) {
                    subflow.on_sent(kind, bytes, passed);
                }
            }
            TransportEvent::PathSwitched { any, new_data, .. } => {
                self.path_switches += u64::from(any);
                self.path_switches_new_data += u64::from(new_data);
            }
            TransportEvent::SubflowOpened { subflow, path, .. } => {
                let index = subflow.index();
                if self.subflows.len() <= index {
                    self.subflows.resize(index + 1, None);
                }
                self.subflows[index] = Some(Subflow::new(path, self.splits.len()));
            }
            TransportEvent::SubflowClosed { subflow, .. } => {
                if let Some(subflow) = self.subflow(subflow.index()) {
                    subflow.close(at);
                }
            }
            TransportEvent::TimeoutFired { subflow, .. } => {
                if let Some(subflow) = self.subflow(subflow.index()) {
                    subflow.rto_count += 1;
                }
            }
            TransportEvent::WindowReduced { subflow, cause, .. } => {
                if let Some(subflow) = self.subflow(subflow.index()) {
                    subflow.loss_events += u64::from(cause != LossCause::Penalty);
                }
            }
            TransportEvent::Sample { subflow, cwnd, srtt, acked, .. } => {
                if let Some(subflow) = self.subflow(subflow.index()) {
                    subflow.on_sample(at, cwnd, srtt, acked);
                }
            }
            TransportEvent::ReceiveWindowLimited { limited } => self.receive_window_limited.turn(limited, at),
            TransportEvent::SchedulerWaiting { waiting } => self.scheduler_waiting.turn(waiting, at),
            _ => {}
        }
    }

    /// Takes in one event of the endpoint that receives the content.
    pub fn observe_receiver(&mut self, _at: Instant, event: &TransportEvent) {
        match *event {
            TransportEvent::Delivered { bytes, waited } => {
                self.delivered += u64::from(bytes);
                self.reorder_delay.record(waited.as_nanos(), u64::from(bytes));
            }
            TransportEvent::OutOfOrder { buffered } => self.reorder_bytes_max = self.reorder_bytes_max.max(buffered),
            _ => {}
        }
    }

    /// The metrics of a session that ended, or was cut off, at `end`. `path_name` names the paths.
    pub fn finish(&self, end: Instant, path_name: impl Fn(PathId) -> String) -> TransportReport {
        let length = end.since(self.start);
        let seconds = |nanos: f64| nanos / 1e9;
        let mut around = vec![0; self.splits.len() + 1];
        for subflow in self.subflows.iter().flatten() {
            for (sum, n) in around.iter_mut().zip(&subflow.retransmissions) {
                *sum += n;
            }
        }
        TransportReport {
            path_switches: self.path_switches,
            path_switches_new_data: self.path_switches_new_data,
            goodput_bps: bps(self.delivered, length),
            reorder_delay_s: ReorderDelay {
                mean: seconds(self.reorder_delay.mean()),
                p95: seconds(self.reorder_delay.quantile(0.95) as f64),
                max: seconds(self.reorder_delay.max() as f64),
            },
            reorder_bytes_max: self.reorder_bytes_max,
            receive_window_limited_s: self.receive_window_limited.total(end).as_secs_f64(),
            scheduler_wait_s: self.scheduler_waiting.total(end).as_secs_f64(),
            retransmissions_around_events: self.around_events(&around),
            subflows: self.subflows.iter().flatten().map(|s| self.subflow_report(s, end, &path_name)).collect(),
        }
    }

    fn subflow(&mut self, index: usize) -> Option<&mut Subflow> {
        self.subflows.get_mut(index)?.as_mut()
    }

    fn subflow_report(&self, subflow: &Subflow, end: Instant, path_name: &impl Fn(PathId) -> String) -> SubflowReport {
        let mut closed = subflow.clone();
        closed.close(end);
        SubflowReport {
            path: path_name(closed.path),
            goodput_bps: bps(closed.acked, end.since(self.start)),
            bytes: closed.bytes,
            segments_sent: closed.segments,
            retransmissions: closed.retransmissions.iter().sum(),
            reinjections: closed.reinjections,
            rto_count: closed.rto_count,
            loss_events: closed.loss_events,
            mean_cwnd_packets: closed.cwnd.mean(),
            mean_srtt_s: closed.srtt_s.mean(),
            retransmissions_around_events: self.around_events(&closed.retransmissions),
        }
    }

    /// From counts between the events to sums before and after each.
    fn around_events(&self, counts: &[u64]) -> Vec<AroundEvent> {
        let split = |(n, at): (usize, &Instant)| {
            let (before, after) = counts.split_at(n + 1);
            AroundEvent { at_s: at.as_secs_f64(), before: before.iter().sum(), after: after.iter().sum() }
        };
        self.splits.iter().enumerate().map(split).collect()
    }
}

fn bps(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bytes as f64 * 8.0 / time.as_secs_f64() }
}

/// The counts of one subflow.
#[derive(Clone, Debug)]
struct Subflow {
    path: PathId,
    bytes: u64,
    segments: u64,
    /// Between the scenario's events: one more than there are events.
    retransmissions: Vec<u64>,
    reinjections: u64,
    rto_count: u64,
    loss_events: u64,
    acked: u64,
    cwnd: MeanOverTime,
    srtt_s: MeanOverTime,
}

impl Subflow {
    fn new(path: PathId, events: usize) -> Self {
        Subflow {
            path,
            bytes: 0,
            segments: 0,
            retransmissions: vec![0; events + 1],
            reinjections: 0,
            rto_count: 0,
            loss_events: 0,
            acked: 0,
            cwnd: MeanOverTime::default(),
            srtt_s: MeanOverTime::default(),
        }
    }

    #[inline]
    fn on_sent(&mut self, kind: SendKind, bytes: u32, events_passed: usize) {
        self.bytes += u64::from(bytes);
        self.segments += 1;
        match kind {
            SendKind::Retransmission | SendKind::TailLossProbe => self.retransmissions[events_passed] += 1,
            SendKind::Reinjection => self.reinjections += 1,
            SendKind::New | SendKind::Duplicate => {}
        }
    }

    fn on_sample(&mut self, at: Instant, cwnd: f64, srtt: Duration, acked: u64) {
        self.acked = acked;
        self.cwnd.set(at, Some(cwnd));
        self.srtt_s.set(at, Some(srtt.as_secs_f64()));
    }

    fn close(&mut self, at: Instant) {
        self.cwnd.set(at, None);
        self.srtt_s.set(at, None);
    }
}

/// The mean of a quantity that keeps its value until it is set again.
#[derive(Clone, Copy, Debug, Default)]
struct MeanOverTime {
    present: Option<(Instant, f64)>,
    /// The first value, for a subflow whose samples span no time.
    first: Option<f64>,
    integral: f64,
    time: Duration,
}

impl MeanOverTime {
    /// Sets it; none: it has no value any more.
    fn set(&mut self, at: Instant, value: Option<f64>) {
        if let Some((since, present)) = self.present {
            self.integral += present * at.since(since).as_secs_f64();
            self.time += at.since(since);
        }
        self.first = self.first.or(value);
        self.present = value.map(|v| (at, v));
    }

    fn mean(&self) -> Option<f64> {
        if self.time.is_zero() { self.first } else { Some(self.integral / self.time.as_secs_f64()) }
    }
}

/// Sums up the time in which something holds.
#[derive(Clone, Copy, Debug, Default)]
struct Stopwatch {
    total: Duration,
    running_since: Option<Instant>,
}

impl Stopwatch {
    fn turn(&mut self, on: bool, at: Instant) {
        self.total = self.total(at);
        self.running_since = on.then_some(at);
    }

    fn total(&self, at: Instant) -> Duration {
        self.total + self.running_since.map_or(Duration::ZERO, |since| at.since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_ms, ms};
    use anabranch_events::CloseReason;
    use anabranch_units::{Bandwidth, SubflowId};

    fn opened(subflow: u16, path: u16) -> TransportEvent {
        TransportEvent::SubflowOpened { subflow: SubflowId(subflow), path: PathId(path), rtt: ms(50) }
    }

    fn sent(subflow: u16, kind: SendKind, bytes: u32) -> TransportEvent {
        TransportEvent::SegmentSent { subflow: SubflowId(subflow), kind, bytes, offset: 0 }
    }

    fn sample(subflow: u16, cwnd: f64, srtt: u64, acked: u64) -> TransportEvent {
        let subflow = SubflowId(subflow);
        TransportEvent::Sample { subflow, cwnd, ssthresh: f64::INFINITY, in_flight: 0, srtt: ms(srtt), acked }
    }

    fn reduced(subflow: u16, cause: LossCause) -> TransportEvent {
        TransportEvent::WindowReduced { subflow: SubflowId(subflow), cause, from: 10.0, to: 5.0 }
    }

    fn report(metrics: &TransportMetrics, end_ms: u64) -> TransportReport {
        metrics.finish(at_ms(end_ms), |path| format!("path{}", path.0))
    }

    #[test]
    fn segments_are_counted_by_kind_and_subflow() {
        let mut metrics = TransportMetrics::new(at_ms(0), &[]);
        metrics.observe_sender(at_ms(0), &opened(0, 0));
        metrics.observe_sender(at_ms(0), &opened(2, 1));
        use SendKind::{Duplicate, New, Reinjection, Retransmission, TailLossProbe};
        for kind in [New, New, Retransmission, TailLossProbe, Reinjection, Duplicate] {
            metrics.observe_sender(at_ms(1), &sent(0, kind, 100));
        }
        metrics.observe_sender(at_ms(1), &sent(2, New, 7));
        use LossCause::{FastRetransmit, Penalty, Timeout};
        for cause in [FastRetransmit, FastRetransmit, Timeout, Penalty] {
            metrics.observe_sender(at_ms(2), &reduced(2, cause));
        }
        for in_a_row in [1, 2] {
            metrics.observe_sender(at_ms(3), &TransportEvent::TimeoutFired { subflow: SubflowId(2), in_a_row });
        }
        let report = report(&metrics, 1_000);
        let [a, b] = &report.subflows[..] else { panic!("two subflows") };
        assert_eq!(
            (a.path.as_str(), a.bytes, a.segments_sent, a.retransmissions, a.reinjections),
            ("path0", 600, 6, 2, 1)
        );
        assert_eq!((b.path.as_str(), b.bytes, b.loss_events, b.rto_count), ("path1", 7, 3, 2));
    }

    #[test]
    fn retransmissions_are_split_by_the_scenarios_events() {
        // Events at 30 and 10 ms, given out of order; retransmissions at 5, 10, 20, 40 on two subflows.
        let mut metrics = TransportMetrics::new(at_ms(0), &[at_ms(30), at_ms(10)]);
        metrics.observe_sender(at_ms(0), &opened(0, 0));
        metrics.observe_sender(at_ms(0), &opened(1, 1));
        for (ms, subflow) in [(5, 0), (10, 1), (20, 1), (40, 0)] {
            metrics.observe_sender(at_ms(ms), &sent(subflow, SendKind::Retransmission, 1));
        }
        let report = report(&metrics, 100);
        let around = |list: &[AroundEvent]| list.iter().map(|e| (e.at_s, e.before, e.after)).collect::<Vec<_>>();
        assert_eq!(around(&report.retransmissions_around_events), [(0.01, 1, 3), (0.03, 3, 1)]);
        assert_eq!(around(&report.subflows[1].retransmissions_around_events), [(0.01, 0, 2), (0.03, 2, 0)]);
    }

    #[test]
    fn waiting_is_weighted_by_bytes() {
        let mut metrics = TransportMetrics::new(at_ms(0), &[]);
        for (bytes, waited) in [(9_000, 0), (600, 100), (400, 200)] {
            metrics.observe_receiver(at_ms(1), &TransportEvent::Delivered { bytes, waited: ms(waited) });
        }
        for buffered in [500, 4_000, 100] {
            metrics.observe_receiver(at_ms(1), &TransportEvent::OutOfOrder { buffered });
        }
        let report = report(&metrics, 2_000);
        assert_eq!(report.goodput_bps, 40_000.0);
        assert!((report.reorder_delay_s.mean - 0.014).abs() < 1e-12);
        assert!((report.reorder_delay_s.p95 / 0.1 - 1.0).abs() < 0.008);
        assert_eq!((report.reorder_delay_s.max, report.reorder_bytes_max), (0.2, 4_000));
    }

    #[test]
    fn switches_are_counted_for_all_packets_and_for_new_data() {
        let mut metrics = TransportMetrics::new(at_ms(0), &[]);
        for (any, new_data) in [(true, true), (true, false), (false, true), (true, false)] {
            let switch = TransportEvent::PathSwitched {
                from: SubflowId(0),
                to: SubflowId(1),
                any,
                new_data,
                offset: 0,
                rtt_from: ms(1),
                rtt_to: ms(1),
                rate_from: Bandwidth::ZERO,
                rate_to: Bandwidth::ZERO,
            };
            metrics.observe_sender(at_ms(1), &switch);
            metrics.observe_receiver(at_ms(1), &switch);
        }
        let report = report(&metrics, 10);
        assert_eq!((report.path_switches, report.path_switches_new_data), (3, 2));
    }

    #[test]
    fn limits_last_until_they_cease_or_the_session_ends() {
        let mut metrics = TransportMetrics::new(at_ms(0), &[]);
        let limited = |limited| TransportEvent::ReceiveWindowLimited { limited };
        let waiting = |waiting| TransportEvent::SchedulerWaiting { waiting };
        metrics.observe_sender(at_ms(100), &limited(true));
        metrics.observe_sender(at_ms(150), &limited(true));
        metrics.observe_sender(at_ms(300), &limited(false));
        metrics.observe_sender(at_ms(900), &waiting(true));
        let report = report(&metrics, 1_000);
        assert_eq!((report.receive_window_limited_s, report.scheduler_wait_s), (0.2, 0.1));
    }

    #[test]
    fn windows_and_round_trips_are_means_over_time() {
        let mut metrics = TransportMetrics::new(at_ms(0), &[]);
        metrics.observe_sender(at_ms(0), &opened(0, 0));
        assert_eq!(report(&metrics, 10).subflows[0].mean_cwnd_packets, None);
        metrics.observe_sender(at_ms(100), &sample(0, 10.0, 50, 1_000));
        assert_eq!(report(&metrics, 100).subflows[0].mean_cwnd_packets, Some(10.0));
        metrics.observe_sender(at_ms(200), &sample(0, 40.0, 80, 5_000));
        // 10 for 100 ms and 40 for 200 ms; closed at 400, so the rest does not count.
        let reason = CloseReason::PathDown;
        metrics.observe_sender(
            at_ms(400),
            &TransportEvent::SubflowClosed { subflow: SubflowId(0), path: PathId(0), reason },
        );
        let subflow = &report(&metrics, 1_000).subflows[0];
        assert!((subflow.mean_cwnd_packets.unwrap() - 30.0).abs() < 1e-9);
        assert!((subflow.mean_srtt_s.unwrap() - 0.07).abs() < 1e-9);
        assert_eq!(subflow.goodput_bps, 40_000.0);
    }

    #[test]
    fn field_names_are_the_contracts() {
        let mut metrics = TransportMetrics::new(at_ms(0), &[]);
        metrics.observe_sender(at_ms(0), &opened(0, 0));
        let json = serde_json::to_value(report(&metrics, 1)).unwrap();
        let session = "path_switches path_switches_new_data goodput_bps reorder_delay_s reorder_bytes_max \
            receive_window_limited_s scheduler_wait_s subflows";
        let subflow = "path goodput_bps bytes segments_sent retransmissions reinjections rto_count loss_events \
            mean_cwnd_packets mean_srtt_s";
        assert!(session.split_whitespace().all(|name| json.get(name).is_some()));
        assert!(subflow.split_whitespace().all(|name| json["subflows"][0].get(name).is_some()));
        assert!(["mean", "p95", "max"].iter().all(|name| json["reorder_delay_s"].get(name).is_some()));
    }
}
