//! What one subflow did, as its sender saw it.

use super::over_time::MeanOverTime;
use super::{DisabledSpan, SubflowReport, bps, timeline};
use anabranch_events::SendKind;
use anabranch_units::{Duration, Instant, PathId};
use std::collections::BTreeMap;

/// The counts of one subflow.
#[derive(Clone, Debug)]
pub(super) struct Subflow {
    path: PathId,
    bytes: u64,
    segments: u64,
    /// Between the scenario's events: one more than there are events.
    pub retransmissions: Vec<u64>,
    reinjections: u64,
    pub rto_count: u64,
    pub loss_events: u64,
    acked: u64,
    cwnd: MeanOverTime,
    srtt_s: MeanOverTime,
    /// Since when the path policy forbids new data, if it does.
    disabled_since: Option<Instant>,
    disabled: Vec<(Instant, Instant)>,
    enabled_again: u64,
    counts: BTreeMap<&'static str, u64>,
}

impl Subflow {
    pub fn new(path: PathId, events: usize) -> Self {
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
            disabled_since: None,
            disabled: Vec::new(),
            enabled_again: 0,
            counts: BTreeMap::new(),
        }
    }

    #[inline]
    pub fn on_sent(&mut self, kind: SendKind, bytes: u32, events_passed: usize) {
        self.bytes += u64::from(bytes);
        self.segments += 1;
        match kind {
            SendKind::Retransmission | SendKind::TailLossProbe => self.retransmissions[events_passed] += 1,
            SendKind::Reinjection => self.reinjections += 1,
            SendKind::New | SendKind::Duplicate => {}
        }
    }

    pub fn on_sample(&mut self, at: Instant, cwnd: f64, srtt: Duration, acked: u64) {
        self.acked = acked;
        self.cwnd.set(at, Some(cwnd));
        self.srtt_s.set(at, Some(srtt.as_secs_f64()));
    }

    /// The path policy forbade new data, or allowed it again.
    pub fn on_path_use(&mut self, at: Instant, allowed: bool) {
        if allowed {
            self.enabled_again += u64::from(self.disabled_since.is_some());
            self.end_disabled_span(at);
        } else {
            self.disabled_since.get_or_insert(at);
        }
    }

    pub fn on_count(&mut self, name: &'static str, count: u64) {
        self.counts.insert(name, count);
    }

    fn end_disabled_span(&mut self, at: Instant) {
        self.disabled.extend(self.disabled_since.take().map(|since| (since, at)));
    }

    /// The congestion window, zero while the path policy forbids new data; none when it is closed or was not sampled.
    pub fn window(&self) -> Option<f64> {
        let window = self.cwnd.present()?;
        Some(if self.disabled_since.is_some() { 0.0 } else { window })
    }

    pub fn close(&mut self, at: Instant) {
        self.cwnd.set(at, None);
        self.srtt_s.set(at, None);
        self.end_disabled_span(at);
    }

    /// Its numbers if the session, which began at `start`, ended at `end`.
    pub fn report(
        &self,
        start: Instant,
        end: Instant,
        splits: &[Instant],
        path_name: &impl Fn(PathId) -> String,
    ) -> SubflowReport {
        let mut closed = self.clone();
        closed.close(end);
        let span = |&(from, to): &(Instant, Instant)| {
            DisabledSpan(from.since(start).as_secs_f64(), to.since(start).as_secs_f64())
        };
        SubflowReport {
            path: path_name(closed.path),
            goodput_bps: bps(closed.acked, end.since(start)),
            bytes: closed.bytes,
            segments_sent: closed.segments,
            retransmissions: closed.retransmissions.iter().sum(),
            reinjections: closed.reinjections,
            rto_count: closed.rto_count,
            loss_events: closed.loss_events,
            mean_cwnd_packets: closed.cwnd.mean(),
            mean_srtt_s: closed.srtt_s.mean(),
            times_disabled: closed.disabled.len() as u64,
            times_enabled: closed.enabled_again,
            disabled_s: closed.disabled.iter().map(|(from, to)| to.since(*from).as_secs_f64()).sum::<f64>() + 0.0,
            disabled_spans_s: closed.disabled.iter().map(span).collect(),
            control_counts: closed.counts,
            retransmissions_around_events: timeline::around_events(splits, &closed.retransmissions),
        }
    }
}
