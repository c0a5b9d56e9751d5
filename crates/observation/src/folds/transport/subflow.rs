//! What one subflow did, as its sender saw it.

use super::over_time::MeanOverTime;
use super::{DisabledSpan, PathLabel, SenderCounts, SubflowReport, bps, timeline};
use anabranch_events::SendKind;
use anabranch_units::{Duration, Instant, PathId};
use std::borrow::Cow;
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
    /// Bytes that another subflow had been given.
    pub copied: u64,
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
    /// What a sender that is not ours counted; its events are not observed.
    pub counted: Option<SenderCounts>,
}

impl Subflow {
    pub fn new(path: PathId, events: usize) -> Self {
        Subflow {
            path,
            bytes: 0,
            segments: 0,
            retransmissions: vec![0; events + 1],
            reinjections: 0,
            copied: 0,
            rto_count: 0,
            loss_events: 0,
            acked: 0,
            cwnd: MeanOverTime::default(),
            srtt_s: MeanOverTime::default(),
            disabled_since: None,
            disabled: Vec::new(),
            enabled_again: 0,
            counts: BTreeMap::new(),
            counted: None,
        }
    }

    pub fn path(&self) -> PathId {
        self.path
    }

    #[inline]
    pub fn on_sent(&mut self, kind: SendKind, bytes: u32, events_passed: usize) {
        self.bytes += u64::from(bytes);
        self.segments += 1;
        match kind {
            SendKind::Retransmission | SendKind::TailLossProbe => self.retransmissions[events_passed] += 1,
            SendKind::Reinjection => {
                self.reinjections += 1;
                self.copied += u64::from(bytes);
            }
            SendKind::Duplicate => self.copied += u64::from(bytes),
            SendKind::New => {}
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

    /// Its numbers if the session, which began at `start`, ended at `end`. Of a sender that is not ours (`sender` is
    /// false) only counts and samples are known.
    pub fn report(
        &self,
        start: Instant,
        end: Instant,
        splits: &[Instant],
        sender: bool,
        path: PathLabel,
    ) -> SubflowReport {
        let mut closed = self.clone();
        closed.close(end);
        let counts = closed.counted.unwrap_or_else(|| closed.own_counts());
        let span = |&(from, to): &(Instant, Instant)| {
            DisabledSpan(from.since(start).as_secs_f64(), to.since(start).as_secs_f64())
        };
        let disabled_s = closed.disabled.iter().map(|(from, to)| to.since(*from).as_secs_f64()).sum::<f64>() + 0.0;
        SubflowReport {
            path: path.name,
            metered: path.metered,
            goodput_bps: bps(closed.acked, end.since(start)),
            bytes: counts.bytes,
            segments_sent: counts.segments,
            retransmissions: counts.retransmissions,
            reinjections: sender.then_some(closed.reinjections),
            rto_count: counts.timeouts,
            loss_events: sender.then_some(closed.loss_events),
            mean_cwnd_packets: closed.cwnd.mean(),
            mean_srtt_s: closed.srtt_s.mean(),
            times_disabled: sender.then_some(closed.disabled.len() as u64),
            times_enabled: sender.then_some(closed.enabled_again),
            disabled_s: sender.then_some(disabled_s),
            disabled_spans_s: sender.then(|| closed.disabled.iter().map(span).collect()),
            control_counts: sender.then(|| closed.counts.iter().map(|(name, n)| (Cow::from(*name), *n)).collect()),
            retransmissions_around_events: sender.then(|| timeline::around_events(splits, &closed.retransmissions)),
        }
    }

    /// What our sender's events add up to.
    fn own_counts(&self) -> SenderCounts {
        SenderCounts {
            bytes: self.bytes,
            segments: self.segments,
            retransmissions: self.retransmissions.iter().sum(),
            timeouts: self.rto_count,
        }
    }
}
