//! How a connection carried the content, folded from what its two endpoints said.
//!
//! For a download the server's endpoint says what was sent, the client's what arrived; each has its own `observe`, so
//! that the requests' few packets in the other direction never mix in. Nothing is allocated or hashed per event.
//!
//! Windows, round trips and goodput of a subflow come from its [`TransportEvent::Sample`]s: the host has the server's
//! endpoint sample at an interval, and once more when the session ends.

mod over_time;
mod subflow;
#[cfg(test)]
mod tests;
mod timeline;

use crate::observed::Observed;
use anabranch_events::{Histogram, LossCause, TransportEvent};
use anabranch_units::{Duration, Instant, PathId, SubflowId};
use over_time::{Fluctuation, Stopwatch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use subflow::Subflow;

/// The fold. It may be asked for a report at any instant, so it also serves a run that is cut off.
#[derive(Clone, Debug)]
pub struct TransportMetrics {
    start: Instant,
    observed: Observed,
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
    /// When the total window is measured, since the start.
    window: Option<(Duration, Duration)>,
    total_window: Fluctuation,
    subflows: Vec<Option<Subflow>>,
}

/// What [`TransportMetrics`] found; the field names are those of `run --json`. What only the sender, or only the
/// receiver, knows is none (null in JSON) where it is not ours ([`Observed`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransportReport {
    /// Two consecutive segments on different subflows, retransmissions included. None: the sender is not observed.
    pub path_switches: Option<u64>,
    /// The same among the segments with new data only. None: the sender is not observed.
    pub path_switches_new_data: Option<u64>,
    /// Payload bytes that a subflow sent although another subflow had been given the same data: reinjections, and
    /// copies of the redundant scheduler. None: the sender is not observed.
    pub copied_bytes: Option<u64>,
    /// Payload bytes sent on metered paths, retransmissions included.
    pub metered_bytes: u64,
    /// Bytes that became readable in order, over the time from the session's start to its end, bit/s.
    pub goodput_bps: f64,
    /// How long bytes waited for earlier ones. None: the receiver is not observed, and each number is null in JSON.
    #[serde(with = "crate::group::observable")]
    #[schemars(with = "ReorderDelay")]
    pub reorder_delay_s: Option<ReorderDelay>,
    /// The most bytes that waited at once. None: the receiver is not observed.
    pub reorder_bytes_max: Option<u64>,
    /// Time in which only the receive window kept data back, in seconds. None: the sender is not observed.
    pub receive_window_limited_s: Option<f64>,
    /// Time in which the scheduler waited although a subflow had room, in seconds. None: the sender is not observed.
    pub scheduler_wait_s: Option<f64>,
    /// The congestion windows of all subflows together; null without samples.
    pub total_window: Option<TotalWindow>,
    /// Retransmissions of all subflows before and after each event of the scenario. None: the sender is not observed.
    pub retransmissions_around_events: Option<Vec<AroundEvent>>,
    /// By number.
    pub subflows: Vec<SubflowReport>,
}

/// How long bytes waited in the reassembly queue, in seconds, weighted by bytes; those in order waited zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-observable" = true))]
pub struct ReorderDelay {
    /// Exact.
    pub mean: f64,
    /// Within 0.8 %.
    pub p95: f64,
    /// Exact.
    pub max: f64,
}

/// The sum of the congestion windows of those subflows that may carry new data, over time: what was sampled counts
/// until the next sample. Within the statistics window where the session has one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TotalWindow {
    /// The mean over time, in packets.
    pub mean_packets: f64,
    /// The coefficient of variation: the standard deviation over time, over the mean.
    pub variation: f64,
}

/// Beginning and end, in seconds since the session's start, of a span in which the path policy forbade a subflow to
/// carry new data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DisabledSpan(pub f64, pub f64);

/// Retransmissions before and after an event of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AroundEvent {
    /// When the event was, in seconds since the run's start.
    pub at_s: f64,
    /// Before it.
    pub before: u64,
    /// In the same instant or later.
    pub after: u64,
}

/// What a report says of a path besides what was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathLabel {
    /// Its name.
    pub name: String,
    /// Whether the scenario calls it metered.
    pub metered: bool,
}

/// One subflow as the sender saw it. What is none was not observed, because the sender is not ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubflowReport {
    /// The name of its path.
    pub path: String,
    /// Whether the scenario calls its path metered.
    pub metered: bool,
    /// Payload bytes that were acknowledged, over the time from the session's start to its end, bit/s.
    pub goodput_bps: f64,
    /// Payload bytes sent, retransmissions included.
    pub bytes: u64,
    /// Segments with payload sent, retransmissions included.
    pub segments_sent: u64,
    /// Retransmissions of this subflow's own segments, tail loss probes included.
    pub retransmissions: u64,
    /// Segments with data that another subflow had been given.
    pub reinjections: Option<u64>,
    /// Window reductions by the retransmission timer.
    pub rto_count: u64,
    /// Window reductions by losses, timeouts included; penalties are none.
    pub loss_events: Option<u64>,
    /// Mean over time, in packets; null without samples.
    pub mean_cwnd_packets: Option<f64>,
    /// Mean over time, in seconds; null without samples.
    pub mean_srtt_s: Option<f64>,
    /// How often the path policy forbade it to carry new data.
    pub times_disabled: Option<u64>,
    /// How often the policy allowed it again.
    pub times_enabled: Option<u64>,
    /// Time in which it was forbidden, in seconds.
    pub disabled_s: Option<f64>,
    /// When that was.
    pub disabled_spans_s: Option<Vec<DisabledSpan>>,
    /// How often its congestion control did what only it does, by name; empty where the control counts nothing. `mcc`:
    /// samples of the round trip, samples that shot up (theta below one from then to the next sample), and increases
    /// and reductions of the window that theta made smaller.
    pub control_counts: Option<BTreeMap<Cow<'static, str>, u64>>,
    /// Its retransmissions before and after each event of the scenario.
    pub retransmissions_around_events: Option<Vec<AroundEvent>>,
}

/// What a sender that is not ours counts of one subflow, since the subflow was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderCounts {
    /// Payload bytes sent, retransmissions included.
    pub bytes: u64,
    /// Segments with payload sent, retransmissions included.
    pub segments: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// How often the retransmission timer fired.
    pub timeouts: u64,
}

impl TransportMetrics {
    /// For a session that begins at `start` in a scenario with events at `events`, in any order.
    pub fn new(start: Instant, events: &[Instant]) -> Self {
        let mut splits = events.to_vec();
        splits.sort_unstable();
        TransportMetrics {
            start,
            observed: Observed::EVERYTHING,
            splits,
            passed: 0,
            path_switches: 0,
            path_switches_new_data: 0,
            delivered: 0,
            reorder_delay: Histogram::new(),
            reorder_bytes_max: 0,
            receive_window_limited: Stopwatch::default(),
            scheduler_waiting: Stopwatch::default(),
            window: None,
            total_window: Fluctuation::within(start, Instant::FAR_FUTURE),
            subflows: Vec::new(),
        }
    }

    /// The same fold where not everything is observed.
    #[must_use]
    pub fn observing(self, observed: Observed) -> Self {
        TransportMetrics { observed, ..self }
    }

    /// Measures the total window only from the first of these until the second, since the session's start.
    #[must_use]
    pub fn within(mut self, window: Option<(Duration, Duration)>) -> Self {
        self.window = window;
        if let Some((from, to)) = window {
            self.total_window = Fluctuation::within(self.start + from, self.start + to);
        }
        self
    }

    /// The same fold, empty, for a session that begins at `start`.
    #[must_use]
    pub fn restarted(&self, start: Instant) -> Self {
        TransportMetrics::new(start, &self.splits).observing(self.observed).within(self.window)
    }

    /// Takes in one event of the endpoint that sends the content, in the order in which they were said. Most are of
    /// segments.
    #[inline]
    pub fn observe_sender(&mut self, at: Instant, event: &TransportEvent) {
        if let TransportEvent::SegmentSent { subflow, kind, bytes, .. } = *event {
            while self.splits.get(self.passed).is_some_and(|&split| split <= at) {
                self.passed += 1;
            }
            let passed = self.passed;
            if let Some(subflow) = self.subflow(subflow.index()) {
                subflow.on_sent(kind, bytes, passed);
            }
        } else {
            self.observe_change(at, event);
        }
    }

    /// Takes in an event of the sender that is not of a segment.
    fn observe_change(&mut self, at: Instant, event: &TransportEvent) {
        match *event {
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
                self.sum_windows(at);
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
                self.sum_windows(at);
            }
            TransportEvent::PathUse { subflow, allowed } => {
                if let Some(subflow) = self.subflow(subflow.index()) {
                    subflow.on_path_use(at, allowed);
                }
                self.sum_windows(at);
            }
            TransportEvent::ControlCount { subflow, name, count } => {
                if let Some(subflow) = self.subflow(subflow.index()) {
                    subflow.on_count(name, count);
                }
            }
            TransportEvent::ReceiveWindowLimited { limited } => self.receive_window_limited.turn(limited, at),
            TransportEvent::SchedulerWaiting { waiting } => self.scheduler_waiting.turn(waiting, at),
            _ => {}
        }
    }

    /// Takes in one event of the endpoint that receives the content.
    #[inline]
    pub fn observe_receiver(&mut self, _at: Instant, event: &TransportEvent) {
        match *event {
            TransportEvent::Delivered { bytes, waited, .. } => {
                self.delivered += u64::from(bytes);
                self.reorder_delay.record(waited.as_nanos(), u64::from(bytes));
            }
            TransportEvent::OutOfOrder { buffered, .. } => {
                self.reorder_bytes_max = self.reorder_bytes_max.max(buffered);
            }
            _ => {}
        }
    }

    /// Takes in the present counts of a subflow, which was opened before, of a sender that is not ours.
    pub fn count_sender(&mut self, subflow: SubflowId, counts: SenderCounts) {
        if let Some(subflow) = self.subflow(subflow.index()) {
            subflow.counted = Some(counts);
        }
    }

    /// The metrics of a session that ended, or was cut off, at `end`. `label` names the paths.
    pub fn finish(&self, end: Instant, label: impl Fn(PathId) -> PathLabel) -> TransportReport {
        let Observed { sender, receiver, .. } = self.observed;
        let mut total = self.total_window;
        total.set(end, None);
        let total_window = total.mean_and_variation();
        let subflows = self.subflow_reports(end, label);
        TransportReport {
            path_switches: sender.then_some(self.path_switches),
            path_switches_new_data: sender.then_some(self.path_switches_new_data),
            copied_bytes: sender.then(|| self.subflows.iter().flatten().map(|subflow| subflow.copied).sum()),
            metered_bytes: subflows.iter().filter(|subflow| subflow.metered).map(|subflow| subflow.bytes).sum(),
            goodput_bps: bps(self.delivered, end.since(self.start)),
            reorder_delay_s: receiver.then(|| self.reorder_delay()),
            reorder_bytes_max: receiver.then_some(self.reorder_bytes_max),
            receive_window_limited_s: sender.then(|| self.receive_window_limited.total(end).as_secs_f64()),
            scheduler_wait_s: sender.then(|| self.scheduler_waiting.total(end).as_secs_f64()),
            total_window: total_window.map(|(mean_packets, variation)| TotalWindow { mean_packets, variation }),
            retransmissions_around_events: sender.then(|| self.retransmissions_around_events()),
            subflows,
        }
    }

    fn reorder_delay(&self) -> ReorderDelay {
        let seconds = |nanos: f64| nanos / 1e9;
        ReorderDelay {
            mean: seconds(self.reorder_delay.mean()),
            p95: seconds(self.reorder_delay.quantile(0.95) as f64),
            max: seconds(self.reorder_delay.max() as f64),
        }
    }

    fn retransmissions_around_events(&self) -> Vec<AroundEvent> {
        let mut around = vec![0; self.splits.len() + 1];
        for subflow in self.subflows.iter().flatten() {
            for (sum, n) in around.iter_mut().zip(&subflow.retransmissions) {
                *sum += n;
            }
        }
        timeline::around_events(&self.splits, &around)
    }

    fn subflow_reports(&self, end: Instant, label: impl Fn(PathId) -> PathLabel) -> Vec<SubflowReport> {
        let sender = self.observed.sender;
        let report = |subflow: &Subflow| subflow.report(self.start, end, &self.splits, sender, label(subflow.path()));
        self.subflows.iter().flatten().map(report).collect()
    }

    fn sum_windows(&mut self, at: Instant) {
        let mut windows = self.subflows.iter().flatten().filter_map(Subflow::window).peekable();
        let sum = windows.peek().is_some().then(|| windows.sum());
        self.total_window.set(at, sum);
    }

    fn subflow(&mut self, index: usize) -> Option<&mut Subflow> {
        self.subflows.get_mut(index)?.as_mut()
    }
}

fn bps(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bytes as f64 * 8.0 / time.as_secs_f64() }
}
