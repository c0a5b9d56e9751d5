//! Earliest: the subflow on which the next segment arrives first, unless the others are done before that.
//!
//! ```text
//! A_i = s_i + min(mss, unsent) / r_i        forecast of the next segment's arrival (forecast.rs)
//! T   : Σ over j ≠ i of r_j · max(T − s_j, 0) = unsent        the others alone would be done
//! x   : s_i + x / r_i = T − x / R                             the share of i with which all of them are done at the same time
//! ```
//! R: the rate of the others. Of the candidates take the one with the least A_i. It gets a segment if x is at least
//! that much, or if nothing is in flight anywhere. If x is less, it gets a full segment, x bytes or nothing, whichever
//! is done earliest; with nothing it waits for a faster subflow, for a quarter of the least round trip at most. So
//! while much is unsent every subflow is used, and the last bytes go where they arrive first: all subflows end
//! together, also where a full segment takes a slow one long. When nothing is unsent, late data and data that another
//! subflow would bring earlier is copied under a budget (`tail.rs`). A subflow on which no acknowledgment arrives is
//! given up for the time being (`silence.rs`).
//!
//! Source: ours; docs/validation/one-pipe.md has its measurements. ECF (Lim et al., CoNEXT 2017) asks the same question
//! of two subflows by their windows, STTF (Hurtig et al., IEEE/ACM ToN 27(1), 2019) forecasts times of arrival without
//! waiting.
//!
//! Where data commits into the buffer, a subflow gets only as much as its window takes: what stands in a queue cannot
//! be moved when the forecast changes.

mod forecast;
pub(super) mod joined;
mod lateness;
mod silence;
mod tail;

use super::{
    Decision, Entry, FlightList, Forecast, ForecastReason, InFlight, PerSubflow, Scheduler, Sent, Services, Silence,
    SubflowSet, Trigger, View,
};
use crate::view::SubflowView;
use anabranch_units::{Duration, Instant, SubflowId};
use forecast::{Arrival, Finish, Path, finish};
use std::fmt;
use tail::Tail;
pub(super) use tail::grace;

pub(super) const ENTRY: Entry = Entry {
    name: "earliest",
    summary: "Takes the subflow on which data arrives first, waits where that is faster, and copies late data.",
    source: "ours: docs/validation/one-pipe.md",
    create: |options| {
        options.expect_only(&["waiting", "copies", "failover"])?;
        let parts = Parts {
            waiting: options.flag("waiting", true)?,
            copies: options.flag("copies", true)?,
            failover: options.flag("failover", true)?,
        };
        Ok(Box::new(Earliest::new(parts, NoTerms)))
    },
};

/// A wait ends after this part of the least round trip, if nothing else ends it: without a limit a forecast that is
/// wrong could wait for ever.
const LONGEST_WAIT_DIVISOR: u64 = 4;
/// The bounds of that time.
const LEAST_WAIT: Duration = Duration::from_millis(1);
const MOST_WAIT: Duration = Duration::from_millis(100);

/// A subflow gets no less than this part of a segment: its acknowledgment costs as much as that of a full one.
const LEAST_PORTION_DIVISOR: u64 = 4;
/// What one more packet costs: the headers of IPv4 and TCP with timestamps and a DSS option.
const HEADER_BYTES: f64 = 72.0;

/// What can be switched off, to measure what it is worth.
#[derive(Clone, Copy, Debug)]
struct Parts {
    waiting: bool,
    copies: bool,
    failover: bool,
}

/// What a scheduler weighs besides the forecasts; nothing, unless it says otherwise.
trait Terms: fmt::Debug + Send + Sized {
    /// The subflow as forecasts see it.
    fn seen(&self, subflow: &SubflowView) -> SubflowView {
        *subflow
    }

    /// The subflows of a set that may get new data.
    fn eligible(&self, _view: &View<'_>, set: SubflowSet) -> SubflowSet {
        set
    }

    /// The subflow for new data among these.
    fn best(earliest: &mut Earliest<Self>, view: &View<'_>, set: SubflowSet) -> Option<Candidate> {
        earliest.first(view, set, view.connection.unsent, None)
    }

    /// Whether new data waits although a subflow was chosen for it.
    fn withholds(_earliest: &mut Earliest<Self>, _view: &View<'_>, _choice: &Candidate) -> bool {
        false
    }

    /// A subflow gets new data.
    fn note_placed(&mut self, _subflow: SubflowId) {}
}

/// The forecasts alone.
#[derive(Debug)]
struct NoTerms;

impl Terms for NoTerms {}

#[derive(Debug)]
struct Earliest<T> {
    parts: Parts,
    terms: T,
    paths: PerSubflow<Path>,
    tail: Tail,
    /// Whether the last decision about new data was to wait.
    waits: bool,
    /// Reused by [`finish`].
    others: Vec<Arrival>,
    explanation: Option<Forecast>,
}

/// A candidate with its forecast.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    position: usize,
    /// A, in seconds from now.
    arrival: f64,
}

impl<T: Terms> Earliest<T> {
    fn new(parts: Parts, terms: T) -> Self {
        Earliest {
            parts,
            terms,
            paths: PerSubflow::default(),
            tail: Tail::default(),
            waits: false,
            others: Vec::new(),
            explanation: None,
        }
    }

    fn forecast(&mut self, now: Instant, subflow: &SubflowView) -> Arrival {
        let seen = self.terms.seen(subflow);
        self.paths.of(subflow.id).forecast(now, &seen)
    }

    /// The subflow of a set on which a segment of at most `bytes` arrives first, the older one on a tie; not the one at
    /// `except`.
    fn first(&mut self, view: &View<'_>, set: SubflowSet, bytes: u64, except: Option<usize>) -> Option<Candidate> {
        let mut first: Option<Candidate> = None;
        for position in set.iter().filter(|position| Some(*position) != except) {
            let arrival = self.forecast(view.connection.now, &view.subflows[position]).of(bytes);
            if first.is_none_or(|best| arrival < best.arrival) {
                first = Some(Candidate { position, arrival });
            }
        }
        first
    }

    /// The candidates whose window has room, or all of them if no other subflow could ever take the data.
    fn with_room(view: &View<'_>) -> SubflowSet {
        let alone = view.contenders().count() <= 1;
        let mut set = SubflowSet::EMPTY;
        for (position, subflow) in view.candidates() {
            if alone || subflow.room() > 0 {
                set.insert(position);
            }
        }
        set
    }

    /// When the contenders without the one at `position` would have delivered everything unsent.
    fn others_finish(&mut self, view: &View<'_>, position: usize) -> Option<Finish> {
        let mut others = std::mem::take(&mut self.others);
        others.clear();
        for (_, subflow) in view.contenders().filter(|(at, _)| *at != position) {
            others.push(self.forecast(view.connection.now, subflow));
        }
        let finish = finish(&mut others, view.connection.unsent);
        self.others = others;
        finish
    }

    fn place(&mut self, view: &View<'_>, set: SubflowSet) -> Decision {
        let eligible = self.terms.eligible(view, set);
        let Some(choice) = T::best(self, view, eligible) else { return self.wait(view) };
        if T::withholds(self, view, &choice) {
            return self.wait(view);
        }
        let (bytes, finish) = self.amount(view, &choice);
        let subflow = &view.subflows[choice.position];
        let waits = bytes == 0;
        if waits != self.waits {
            self.waits = waits;
            let reason = if waits { ForecastReason::Waits } else { ForecastReason::Sends };
            self.explanation = Some(self.forecast_event(&choice, subflow, finish, reason));
        }
        if waits {
            return self.wait(view);
        }
        self.terms.note_placed(subflow.id);
        Decision::Send { subflow: choice.position, bytes }
    }

    /// How many bytes the chosen subflow gets, zero if it waits, and when the others alone would be done.
    fn amount(&mut self, view: &View<'_>, choice: &Candidate) -> (u64, Option<Finish>) {
        let finish = self.others_finish(view, choice.position);
        let idle = view.subflows.iter().all(|s| s.in_flight == 0 && s.queued == 0);
        let bytes = match finish {
            Some(finish) if self.parts.waiting && !idle => self.portion(view, choice, finish),
            _ => u64::from(view.subflows[choice.position].mss),
        };
        (bytes, finish)
    }

    /// How many bytes the chosen subflow gets, so that it and the others are done earliest; zero if the others alone
    /// are.
    fn portion(&mut self, view: &View<'_>, choice: &Candidate, finish: Finish) -> u64 {
        let subflow = &view.subflows[choice.position];
        let arrival = self.forecast(view.connection.now, subflow);
        let segment = u64::from(subflow.mss).min(view.connection.unsent);
        let share = finish.share_of(&arrival) as u64;
        if share >= segment {
            return segment;
        }
        let done = |bytes: u64| {
            let bytes = bytes as f64;
            (arrival.start + bytes / arrival.rate).max(finish.at - bytes / finish.rate)
        };
        let whole = if choice.arrival <= finish.at { segment } else { 0 };
        let headers = HEADER_BYTES / (arrival.rate + finish.rate);
        let splits = share >= u64::from(subflow.mss) / LEAST_PORTION_DIVISOR && done(share) + headers < done(whole);
        if splits { share } else { whole }
    }

    fn wait(&self, view: &View<'_>) -> Decision {
        let least = view.contenders().map(|(_, s)| s.srtt).min().unwrap_or_default();
        let time = (least / LONGEST_WAIT_DIVISOR).clamp(LEAST_WAIT, MOST_WAIT);
        Decision::Wait { until: Some(view.connection.now + time) }
    }

    fn forecast_event(
        &self,
        choice: &Candidate,
        subflow: &SubflowView,
        finish: Option<Finish>,
        reason: ForecastReason,
    ) -> Forecast {
        Forecast {
            subflow: subflow.id,
            arrival: Duration::from_secs_f64(choice.arrival),
            finish: finish.map(|finish| Duration::from_secs_f64(finish.at)),
            budget: self.tail.budget(),
            reason,
        }
    }
}

impl<T: Terms> Scheduler for Earliest<T> {
    fn decide(&mut self, view: &View<'_>, trigger: Trigger) -> Decision {
        self.paths.forget_dead(view.subflows);
        self.tail.forget_acknowledged(view.connection.unacked);
        if view.candidates.is_empty() {
            return Decision::Wait { until: None };
        }
        if trigger == Trigger::Reinjection {
            let first = self.first(view, view.candidates, u64::MAX, None).map(|choice| choice.position);
            return view.one_segment(first);
        }
        let set = Self::with_room(view);
        if view.new_bytes() > 0 {
            return self.place(view, set);
        }
        if self.parts.copies { self.copy(view, set) } else { Decision::Wait { until: None } }
    }

    fn services(&self) -> Services {
        let flight = if self.parts.copies { FlightList::WithoutNewData } else { FlightList::Never };
        let (duplicates, silence) = (self.parts.copies, self.parts.failover);
        Services { duplicates, flight, silence, sending: true, explains: true }
    }

    fn on_sent(&mut self, sent: &Sent, subflow: &SubflowView) {
        let seen = self.terms.seen(subflow);
        let arrives = self.paths.of(subflow.id).send(sent.at, sent.bytes, &seen);
        self.tail.on_sent(sent, subflow, arrives);
    }

    fn silence(&mut self, view: &View<'_>) -> Silence {
        self.find_silent(view)
    }

    fn explanation(&mut self) -> Option<Forecast> {
        self.explanation.take()
    }

    fn arrival(&self, view: &View<'_>, position: usize) -> Option<Duration> {
        let subflow = &view.subflows[position];
        // A forecast notes what it has seen: that of a copy leaves the next decision as it is.
        let arrival = self.paths.get(subflow.id).forecast(view.connection.now, &self.terms.seen(subflow));
        Some(Duration::from_secs_f64(arrival.of(view.connection.unsent)))
    }
}

#[cfg(test)]
mod tests;
