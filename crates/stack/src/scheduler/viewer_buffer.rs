//! Viewer's buffer: decides as another scheduler does, but copies late data while the viewer's buffer is short, and
//! lets metered paths rest while it is long.
//!
//! ```text
//! b <= low           a late packet is copied once, before new data, by the other candidate with the lowest round trip
//!                    late: lost, or overdue = sent + max(srtt, latest rtt) + max(srtt/8, 4 rttvar, 5 ms),
//!                    or, when nothing is unsent, on a subflow with a longer round trip than the other one has
//! low < b <= high    nothing special
//! b > high           subflows on metered paths get no new data, as long as another subflow may carry it
//! ```
//! b is the playing time that the viewer has buffered by the server's estimate
//! ([`ConnectionView::buffer`](crate::view::ConnectionView::buffer)); where it is not estimated, the other scheduler
//! decides alone. The buffer plays out while data waits, so a rest ends by itself.
//!
//! Source: the two thresholds are XLINK's (Zheng et al., SIGCOMM 2021): below the lower one data is sent again on
//! another path, above the higher one it is not. That the slack of a long buffer spares a metered path is MP-DASH's
//! idea (Han et al., CoNEXT 2016).
//!
//! Ours:
//! - XLINK copies whatever is not acknowledged, once nothing is unsent; here, besides, lost and overdue packets before
//!   that, and at the end only what a slower subflow carries.
//! - XLINK's thresholds are percentiles of the buffers of its viewers. Between them it copies if the slowest path takes
//!   longer than the buffer lasts; with a low mark of seconds no path takes so long.
//! - MP-DASH runs in the client, knows each media segment's deadline, and uses the metered path if the other one's
//!   forecast misses it. Here the metered path joins when the buffer has fallen to the high mark: that needs no
//!   forecast.
//! - What a subflow in trouble has to hand over goes anywhere, also to metered paths.

use super::earliest::grace;
use super::hiding::Hiding;
use super::ranges::Ranges;
use super::{
    Decision, Entry, FlightList, Forecast, InFlight, Scheduler, Sent, Services, Silence, Trigger, View, create,
};
use crate::options::Options;
use crate::view::SubflowView;
use anabranch_events::Note;
use anabranch_units::{Duration, Instant};

/// Two media segments of 2 s, as long as `levels` takes a buffer for too short to pace the response.
const LOW_S: f64 = 4.0;
/// Less than players keep, so that the buffer can get above it: dash.js requests below 12 to 18 s. This is four fifths
/// of 12 s, a little more than one media segment of 2 s below them.
const HIGH_S: f64 = 9.6;

pub(super) const ENTRY: Entry = Entry {
    name: "viewer-buffer",
    summary: "Copies late data while the viewer's buffer is short, and rests metered paths while it is long.",
    source: "after Zheng et al., XLINK, SIGCOMM 2021, and Han et al., MP-DASH, CoNEXT 2016",
    create: |options| {
        options.expect_only(&["base", "low_s", "high_s"])?;
        let base = options.word("base", &["min-rtt", "earliest"])?;
        let mark = |name, default| options.number(name, default, 0.0..=3_600.0).map(Duration::from_secs_f64);
        let (low, high) = (mark("low_s", LOW_S)?, mark("high_s", HIGH_S)?);
        Ok(Box::new(ViewerBuffer::around(create(base, &Options::default())?, low, high)))
    },
};

#[derive(Debug)]
struct ViewerBuffer {
    inner: Box<dyn Scheduler>,
    /// What the scheduler inside asks for.
    asks: Services,
    low: Duration,
    high: Duration,
    /// What was copied already: a packet is copied once, and its copy never.
    copied: Ranges,
    hiding: Hiding,
}

impl Scheduler for ViewerBuffer {
    fn decide(&mut self, view: &View<'_>, trigger: Trigger) -> Decision {
        self.copied.forget_before(view.connection.unacked);
        if trigger == Trigger::Reinjection {
            return self.inner.decide(view, trigger);
        }
        let Some(buffer) = view.connection.buffer() else { return self.ask(view) };
        let now = view.connection.now;
        if buffer > self.high && buffer > self.low {
            let decision = self.rest(view);
            return sooner(decision, Some(now + (buffer - self.high)));
        }
        if buffer > self.low {
            let decision = self.ask(view);
            return sooner(decision, Some(now + (buffer - self.low)));
        }
        if let Some(copy) = self.copy(view) {
            return copy;
        }
        let decision = self.ask(view);
        sooner(decision, self.next_overdue(view))
    }

    fn services(&self) -> Services {
        Services { duplicates: true, flight: FlightList::Always, ..self.asks }
    }

    fn on_sent(&mut self, sent: &Sent, subflow: &SubflowView) {
        if self.asks.sending {
            self.inner.on_sent(sent, subflow);
        }
    }

    fn silence(&mut self, view: &View<'_>) -> Silence {
        self.inner.silence(view)
    }

    fn explanation(&mut self) -> Option<Forecast> {
        self.inner.explanation()
    }

    fn arrival(&self, view: &View<'_>, position: usize) -> Option<Duration> {
        self.inner.arrival(view, position)
    }

    fn take_notes(&mut self, take: &mut dyn FnMut(Note)) {
        self.inner.take_notes(take);
    }
}

impl ViewerBuffer {
    fn around(inner: Box<dyn Scheduler>, low: Duration, high: Duration) -> Self {
        let asks = inner.services();
        ViewerBuffer { inner, asks, low, high, copied: Ranges::default(), hiding: Hiding::default() }
    }

    /// The decision of the scheduler inside.
    fn ask(&mut self, view: &View<'_>) -> Decision {
        ask(self.inner.as_mut(), self.asks, view)
    }

    /// The decision while metered paths rest, which the scheduler inside does not see.
    fn rest(&mut self, view: &View<'_>) -> Decision {
        if !view.contenders().any(|(_, s)| !s.metered) {
            return self.ask(view);
        }
        let decide = |shown: &View<'_>| ask(self.inner.as_mut(), self.asks, shown);
        let decision = self.hiding.decide_without(view, |s| s.metered, decide);
        decision.unwrap_or(Decision::Wait { until: None })
    }

    /// A copy of the first late data in the stream.
    fn copy(&mut self, view: &View<'_>) -> Option<Decision> {
        let mut first: Option<(u64, u64, usize)> = None;
        for packet in view.flight {
            let Some((offset, end)) = self.missing(view, packet) else { continue };
            if first.is_some_and(|(sooner, ..)| sooner <= offset) {
                continue;
            }
            let others = view.candidates().filter(|(position, _)| *position != packet.subflow);
            let Some((position, other)) = others.min_by_key(|(_, s)| s.srtt) else { continue };
            if is_late(view, packet, other) {
                first = Some((offset, end.min(offset + u64::from(other.mss)), position));
            }
        }
        let (offset, end, subflow) = first?;
        self.copied.insert(offset, end);
        Some(Decision::Duplicate { subflow, offset, bytes: end - offset })
    }

    /// The first part of a packet that the peer lacks and of which no copy was made.
    fn missing(&self, view: &View<'_>, packet: &InFlight) -> Option<(u64, u64)> {
        let end = (packet.offset + u64::from(packet.bytes)).min(view.connection.next);
        self.copied.first_missing(packet.offset.max(view.connection.unacked), end)
    }

    /// When the next packet is overdue that was not copied.
    fn next_overdue(&self, view: &View<'_>) -> Option<Instant> {
        let missing = view.flight.iter().filter(|packet| self.missing(view, packet).is_some());
        let overdue = missing.map(|packet| overdue(packet, &view.subflows[packet.subflow]));
        overdue.filter(|overdue| *overdue > view.connection.now).min()
    }
}

/// The decision of a scheduler that is asked about new data, and about copies only if it makes some.
fn ask(inner: &mut dyn Scheduler, asks: Services, view: &View<'_>) -> Decision {
    if view.new_bytes() == 0 && !asks.duplicates {
        return Decision::Wait { until: None };
    }
    inner.decide(view, Trigger::NewData)
}

/// When the acknowledgment of a packet should have come.
fn overdue(packet: &InFlight, holder: &SubflowView) -> Instant {
    packet.sent_at + holder.srtt.max(holder.latest_rtt) + grace(holder)
}

/// Whether a copy of a packet on another subflow is worth its bytes.
fn is_late(view: &View<'_>, packet: &InFlight, other: &SubflowView) -> bool {
    let holder = &view.subflows[packet.subflow];
    // On a path that slows down, acknowledgments come later and later, and none is overdue.
    let is_slower = || other.srtt < holder.srtt.max(holder.latest_rtt);
    packet.lost || view.connection.now >= overdue(packet, holder) || (view.new_bytes() == 0 && is_slower())
}

/// The same decision, but who waits is asked again at that time at the latest.
fn sooner(decision: Decision, at: Option<Instant>) -> Decision {
    match decision {
        Decision::Wait { until } => Decision::Wait { until: until.into_iter().chain(at).min() },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use crate::options::Value;
    use crate::scheduler::testing::{Bed, at, ms, send};
    use crate::scheduler::{Decision, InFlight};

    /// WiFi of 20 ms and metered LTE of 60 ms. It is 10 s.
    fn bed(buffer_s: Option<u64>) -> Bed {
        with(&[], buffer_s)
    }

    fn with(options: &[(&str, Value)], buffer_s: Option<u64>) -> Bed {
        let mut bed = Bed::with("viewer-buffer", options).subflow(ms(20), 10).subflow(ms(60), 10);
        bed.subflows[1].metered = true;
        bed.connection.now = at(ms(10_000));
        bed.connection.buffered_until = buffer_s.map(|s| at(ms(10_000 + s * 1_000)));
        bed
    }

    fn packet(subflow: usize, offset: u64, sent_at_ms: u64) -> InFlight {
        InFlight { subflow, offset, bytes: 1_000, sent_at: at(ms(sent_at_ms)), lost: false }
    }

    fn copy(subflow: usize, offset: u64, bytes: u64) -> Decision {
        Decision::Duplicate { subflow, offset, bytes }
    }

    #[test]
    fn a_metered_path_rests_until_the_buffer_has_fallen_to_the_high_mark() {
        let mut bed = bed(Some(12));
        assert_eq!(bed.decide(), send(0, 1_000));
        bed.fill(0);
        assert_eq!(bed.decide(), Decision::Wait { until: Some(at(ms(12_400))) }, "12 s less 9.6 s from now");
        bed.connection.now = at(ms(12_400));
        assert_eq!(bed.decide(), send(1, 1_000));
    }

    #[test]
    fn a_metered_path_does_not_rest_where_no_other_one_works() {
        let mut bed = bed(Some(12));
        bed.subflows[0].potentially_failed = true;
        assert_eq!(bed.decide(), send(1, 1_000));
        bed.subflows[0].potentially_failed = false;
        bed.subflows[0].backup = true;
        assert_eq!(bed.decide(), send(1, 1_000), "a backup is no other one");
    }

    #[test]
    fn paths_that_are_not_metered_never_rest_and_a_reinjection_goes_anywhere() {
        let mut bed = bed(Some(12));
        bed.fill(0);
        assert_eq!(bed.reinject(), send(1, 1_000));
        bed.subflows[1].metered = false;
        assert_eq!(bed.decide(), send(1, 1_000));
    }

    #[test]
    fn without_an_estimate_it_decides_as_its_base_does() {
        let mut bed = bed(None);
        bed.connection.next = 1_000;
        bed.flight = vec![packet(1, 0, 0)];
        bed.fill(0);
        assert_eq!(bed.decide(), send(1, 1_000), "neither a rest nor a copy");
        bed.connection.unsent = 0;
        assert_eq!(bed.decide(), Decision::Wait { until: None });
    }

    #[test]
    fn overdue_data_is_copied_once_and_before_new_data_while_the_buffer_is_short() {
        // 60 ms and an eighth: 67.5 ms.
        let mut bed = bed(Some(4));
        bed.connection.next = 2_000;
        bed.flight = vec![packet(1, 0, 9_932), packet(1, 1_000, 9_940)];
        assert_eq!(bed.decide(), copy(0, 0, 1_000));
        assert_eq!(bed.decide(), send(0, 1_000), "the other one is not overdue");
        bed.connection.now = at(ms(10_008));
        assert_eq!(bed.decide(), copy(0, 1_000, 1_000));
        assert_eq!(bed.decide(), send(0, 1_000));
        bed.flight.push(InFlight { lost: true, ..packet(0, 2_000, 10_007) });
        bed.connection.next = 3_000;
        assert_eq!(bed.decide(), copy(1, 2_000, 1_000), "lost, and not by the subflow that lost it");
    }

    #[test]
    fn nothing_is_copied_above_the_low_mark() {
        let mut bed = bed(Some(5));
        bed.connection.next = 1_000;
        bed.connection.unsent = 0;
        bed.flight = vec![packet(1, 0, 0)];
        assert_eq!(bed.decide(), Decision::Wait { until: Some(at(ms(11_000))) }, "until the low mark");
        bed.connection.now = at(ms(11_000));
        assert_eq!(bed.decide(), copy(0, 0, 1_000));
    }

    #[test]
    fn the_end_of_a_response_is_copied_from_the_slower_subflow() {
        let mut bed = bed(Some(1));
        bed.connection.next = 2_000;
        bed.connection.unsent = 0;
        bed.flight = vec![packet(0, 0, 9_990), packet(1, 1_000, 9_990)];
        assert_eq!(bed.decide(), copy(0, 1_000, 1_000));
        // The other one is overdue after 20 ms and the least grace of 5 ms.
        assert_eq!(bed.decide(), Decision::Wait { until: Some(at(ms(10_015))) });
        bed.subflows[0].latest_rtt = ms(900);
        assert_eq!(bed.decide(), copy(1, 0, 1_000), "WiFi has become slow");
    }

    #[test]
    fn marks_and_base_are_options() {
        let marks = [("low_s", Value::Number(1.0)), ("high_s", Value::Number(2.0))];
        let mut bed = with(&marks, Some(3));
        bed.fill(0);
        assert_eq!(bed.decide(), Decision::Wait { until: Some(at(ms(11_000))) });
        let base = with(&[("base", Value::Text("earliest".into()))], None);
        assert!(base.scheduler.services().silence && base.scheduler.services().sending);
    }
}
