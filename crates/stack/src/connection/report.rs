//! Reasons for a host that asks for them ([`Connection::report_decisions`]): how the scheduler saw each subflow when it
//! decided about new data, and which data is a copy. No behaviour depends on it, and a host that does not ask pays
//! nothing.

use super::Connection;
use super::choose::NextSegment;
use crate::scheduler::{SubflowSet, View};
use crate::subflow::Chunk;
use anabranch_events::{Consideration, CopyCause, ForecastReason, TransportEvent};
use anabranch_units::{Instant, SubflowId};

impl Connection {
    /// Emits how the scheduler saw each subflow when it gave new data to one of them, or began to wait. What could take
    /// no data has an event only if the scheduler forecasts when data would arrive on it: others did not look at it.
    #[inline]
    pub(super) fn note_decision(&mut self, now: Instant, candidates: SubflowSet, placed: Option<&NextSegment>) {
        if self.reports_decisions {
            self.emit_decision(now, candidates, placed);
        }
    }

    #[cold]
    fn emit_decision(&mut self, now: Instant, candidates: SubflowSet, placed: Option<&NextSegment>) {
        let given = placed.and_then(|segment| match segment {
            NextSegment::Data { at, chunk, .. } => Some((*at, chunk.len)),
            _ => None,
        });
        let connection = self.connection_view(now);
        let view = View { connection: &connection, subflows: self.subflows.views(), candidates, flight: &[] };
        for (at, subflow) in view.subflows.iter().enumerate().filter(|(_, subflow)| subflow.established) {
            let bytes = given.filter(|(chosen, _)| *chosen == at).map(|(_, bytes)| bytes);
            let consideration = match bytes {
                Some(_) => Consideration::Chosen,
                None if candidates.contains(at) => Consideration::PassedOver,
                None => Consideration::NotReady,
            };
            let arrival = self.scheduler.arrival(&view, at);
            if consideration == Consideration::NotReady && arrival.is_none() {
                continue;
            }
            let (subflow, srtt, bytes) = (subflow.id, subflow.srtt, bytes.unwrap_or(0));
            let offset = connection.next;
            self.log.emit(now, TransportEvent::Considered { subflow, consideration, bytes, offset, srtt, arrival });
        }
    }

    /// Emits that the subflow `at` is given what another one was given before, for a host that asked for reasons.
    /// `from` is that subflow where it is known; else it is looked up.
    pub(super) fn note_copy(
        &mut self,
        now: Instant,
        at: usize,
        chunk: &Chunk,
        from: Option<SubflowId>,
        cause: CopyCause,
    ) {
        if self.reports_decisions {
            let Chunk { stream_offset: offset, len: bytes, .. } = *chunk;
            let original = from.or_else(|| self.holder_of(at, offset));
            let subflow = self.subflows[at].id;
            self.log.emit(now, TransportEvent::Copied { subflow, original, cause, bytes, offset });
        }
    }

    /// Why the scheduler's latest decision copies data.
    #[cold]
    pub(super) fn cause_of_duplicate(&self) -> CopyCause {
        match self.forecasting.latest_reason {
            Some(ForecastReason::Lost) => CopyCause::Lost,
            Some(ForecastReason::Late) => CopyCause::Late,
            Some(ForecastReason::Sooner) => CopyCause::Sooner,
            Some(ForecastReason::Spare) => CopyCause::Spare,
            Some(ForecastReason::Waits | ForecastReason::Sends | ForecastReason::Silent) | None => CopyCause::Redundant,
        }
    }

    /// The subflow that was given the byte at `offset` last, of those other than `at` that have it in flight or in
    /// their queues.
    #[cold]
    fn holder_of(&self, at: usize, offset: u64) -> Option<SubflowId> {
        let others = self.subflows.iter().enumerate().filter(|(other, _)| *other != at);
        let holders = others.filter_map(|(_, subflow)| {
            let covers = |start: u64, len: u64| start <= offset && offset < start + len;
            let sent = subflow.sender.board().records();
            let sent = sent.filter(|record| covers(record.stream_offset, u64::from(record.len)));
            let queued = subflow.queue.iter().any(|chunk| covers(chunk.stream_offset, chunk.len));
            let latest = sent.map(|record| record.sent_at).max();
            latest.or(queued.then_some(Instant::FAR_FUTURE)).map(|at| (at, subflow.id))
        });
        holders.max().map(|(_, id)| id)
    }
}
