//! What schedulers that forecast arrivals ask of the connection: a list of what is in flight, subflows that are given
//! up because no acknowledgment arrives from them, and events that explain decisions. Other schedulers ask for none of
//! it, and it costs them nothing.

use super::deadline::Deadline;
use super::outgoing::Outgoing;
use super::subflows::Subflows;
use super::{Connection, Mode};
use crate::scheduler::{FlightList, InFlight, Services, SubflowSet, View};
use crate::subflow::Subflow;
use crate::view::SubflowView;
use anabranch_events::{CopyCause, ForecastReason, TransportEvent};
use anabranch_units::{Duration, Instant, SubflowId};

/// State of these services.
#[derive(Debug)]
pub(super) struct Forecasting {
    pub services: Services,
    /// When to look for silent subflows again.
    pub until: Deadline,
    /// The reason that the scheduler has given for its latest decision, if any.
    pub latest_reason: Option<ForecastReason>,
    /// The list for the view, kept to reuse the allocation.
    flight: Vec<InFlight>,
    /// Subflows that were given up and on which no data was acknowledged since.
    given_up: Vec<GivenUp>,
}

/// How often a subflow that was given up is probed. Its retransmission timer backs off: after an outage of ten seconds
/// it may wait for six more.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// A subflow that was given up.
#[derive(Clone, Copy, Debug)]
struct GivenUp {
    id: SubflowId,
    probe_at: Instant,
    /// A probe was sent: the path has been silent for so long that what was measured before says little.
    probed: bool,
    /// The latest probe has no answer.
    unanswered: bool,
}

impl Forecasting {
    pub fn new(services: Services) -> Self {
        Forecasting { services, until: Deadline::NEVER, latest_reason: None, flight: Vec::new(), given_up: Vec::new() }
    }

    /// Packets in flight for [`View::flight`].
    pub fn list_flight(&mut self, subflows: &Subflows, outgoing: &Outgoing) -> &[InFlight] {
        let lists = match self.services.flight {
            FlightList::Never => false,
            FlightList::WithoutNewData => outgoing.unsent() == 0,
            FlightList::Always => true,
        };
        if !lists {
            return &[];
        }
        self.flight.clear();
        let unacked = outgoing.unacked();
        for (at, subflow) in subflows.iter().enumerate() {
            let missing = subflow.sender.board().records().filter(|record| record.len > 0 && !record.sacked());
            let missing = missing.filter(|record| record.stream_offset + u64::from(record.len) > unacked);
            self.flight.extend(missing.map(|record| InFlight {
                subflow: at,
                offset: record.stream_offset,
                bytes: record.len,
                sent_at: record.sent_at,
                lost: record.unrepaired(),
            }));
        }
        &self.flight
    }

    /// A subflow is given up for the time being.
    #[cold]
    pub fn note_given_up(&mut self, now: Instant, id: SubflowId) {
        if self.services.silence && !self.given_up.iter().any(|given_up| given_up.id == id) {
            self.given_up.push(GivenUp { id, probe_at: now + PROBE_INTERVAL, probed: false, unanswered: false });
        }
    }

    /// Data was acknowledged on a subflow: it works, and what the others have not sent again of its data need not be.
    #[inline]
    pub fn answered(&mut self, now: Instant, subflow: &mut Subflow, outgoing: &mut Outgoing) {
        if !self.given_up.is_empty() {
            self.take_back(now, subflow, outgoing);
        }
    }

    /// Takes back that a subflow was given up, if it was.
    #[cold]
    fn take_back(&mut self, now: Instant, subflow: &mut Subflow, outgoing: &mut Outgoing) {
        if let Some(index) = self.given_up.iter().position(|given_up| given_up.id == subflow.id) {
            let given_up = self.given_up.swap_remove(index);
            outgoing.cancel_reinjections(subflow.id);
            subflow.reinjected_until = subflow.sender.acked();
            if given_up.probed {
                subflow.sender.forget_path(now);
            }
        }
    }

    /// Whether the subflow was probed since it was given up, or since this was last asked.
    fn was_probed(&mut self, id: SubflowId) -> bool {
        let found = self.given_up.iter_mut().find(|given_up| given_up.id == id);
        found.is_some_and(|given_up| std::mem::take(&mut given_up.unanswered))
    }
}

impl Connection {
    /// Gives up the subflows that the scheduler finds silent.
    pub(super) fn give_up_silent(&mut self, now: Instant) {
        if !self.forecasting.services.silence || self.mode() != Mode::Multipath {
            return;
        }
        self.forecasting.until = Deadline::NEVER;
        // Each turn gives up one that works, so this ends.
        for _ in 0..self.subflows.len() {
            let connection = self.connection_view(now);
            let subflows = self.subflows.views();
            let view = View { connection: &connection, subflows, candidates: SubflowSet::EMPTY, flight: &[] };
            let silence = self.scheduler.silence(&view);
            let works = |at: &usize| subflows.get(*at).is_some_and(SubflowView::works);
            let give_up = silence.give_up.filter(works);
            self.forecasting.until = silence.until.filter(|until| *until > now).into();
            self.explain(now);
            let Some(at) = give_up else { break };
            self.reinject_from(at, CopyCause::Silent);
            self.subflows.change(at).potentially_failed = true;
            self.forecasting.note_given_up(now, self.subflows[at].id);
        }
        if !self.forecasting.given_up.is_empty() {
            self.probe_given_up(now);
        }
    }

    /// Probes the subflows that were given up, so that a path that is back is found soon: a segment with an old number
    /// makes the peer answer at once, and takes no window.
    #[cold]
    fn probe_given_up(&mut self, now: Instant) {
        let (subflows, forecasting) = (&mut self.subflows, &mut self.forecasting);
        forecasting.given_up.retain(|given_up| subflows.iter().any(|subflow| subflow.id == given_up.id));
        for given_up in &mut forecasting.given_up {
            if given_up.probe_at <= now {
                given_up.probe_at = now + PROBE_INTERVAL;
                (given_up.probed, given_up.unanswered) = (true, true);
                subflows.iter_mut().filter(|s| s.id == given_up.id).for_each(|s| s.control_segments.probe_window());
            }
            forecasting.until = Deadline::at(forecasting.until.time().min(given_up.probe_at));
        }
    }

    /// A subflow that works no more answers, but acknowledges nothing new. If it was probed, what it had in flight
    /// before is lost, because the answer to the probe came first; it is sent again without the wait of the timer,
    /// which has backed off.
    #[cold]
    pub(super) fn on_sign_of_life(&mut self, now: Instant, at: usize) {
        if self.forecasting.was_probed(self.subflows[at].id) {
            self.subflows.change(at).sender.expedite(now);
        }
    }

    /// Emits the reason of the scheduler's latest decision, if it has one to give.
    #[inline]
    pub(super) fn explain(&mut self, now: Instant) {
        let explains = self.forecasting.services.explains;
        debug_assert!(explains || self.scheduler.explanation().is_none(), "an explanation that was not asked for");
        if explains {
            let forecast = self.scheduler.explanation();
            self.forecasting.latest_reason = forecast.map(|forecast| forecast.reason);
            if let Some(forecast) = forecast {
                self.log.emit(now, TransportEvent::Forecast(forecast));
            }
        }
    }
}
