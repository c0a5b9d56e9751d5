//! Events as a table of columns, for files and for analysis.

use crate::folds::SwitchForecast;
use anabranch_events::{DropCause, Forecast, LinkEvent, Note, PlayerEvent, TransportEvent};
use anabranch_units::{Duration, Instant};
use serde::Serialize;

/// The event of a [`Note`].
const NOTED: &str = "noted";

/// A column; every column of a table has the same length.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Column {
    /// Whole numbers; [`EventColumns::NO_INTEGER`] where the event has no such value.
    Integer(Vec<i64>),
    /// Numbers; NaN where the event has no such value.
    Float(Vec<f64>),
    /// Yes or no.
    Flag(Vec<Option<bool>>),
    /// Words: positions in the list of different ones.
    Text {
        /// The different words.
        words: Vec<String>,
        /// Positions in `words`.
        codes: Vec<Option<u32>>,
    },
}

/// Every event of a run, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EventColumns {
    /// Names and columns.
    pub columns: Vec<(&'static str, Column)>,
}

impl EventColumns {
    /// Stands for a value that an event does not have.
    pub const NO_INTEGER: i64 = i64::MIN;

    /// How many events.
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| match column {
            Column::Integer(c) => c.len(),
            Column::Float(c) => c.len(),
            Column::Flag(c) => c.len(),
            Column::Text { codes, .. } => codes.len(),
        })
    }

    /// Whether nothing happened.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One event with the values that some events have: a row of the table to be.
#[derive(Clone, Copy, Debug)]
pub struct EventRow {
    at: Instant,
    source: u32,
    event: &'static str,
    /// A word that belongs to the event: why, or of which kind.
    detail: Option<&'static str>,
    subflow: Option<u16>,
    to_subflow: Option<u16>,
    path: Option<u16>,
    bytes: Option<u64>,
    offset: Option<u64>,
    number: Option<u32>,
    representation: Option<u16>,
    seconds: f64,
    across_s: f64,
    rtt_from_s: f64,
    rtt_to_s: f64,
    rate_from_bps: f64,
    rate_to_bps: f64,
    cwnd_packets: f64,
    ssthresh_packets: f64,
    flag: Option<bool>,
    any: Option<bool>,
    new_data: Option<bool>,
    value: f64,
    forecast: Option<SwitchForecast>,
}

impl EventRow {
    fn new(at: Instant, source: u32, event: &'static str) -> Self {
        EventRow {
            at,
            source,
            event,
            detail: None,
            subflow: None,
            to_subflow: None,
            path: None,
            bytes: None,
            offset: None,
            number: None,
            representation: None,
            seconds: f64::NAN,
            across_s: f64::NAN,
            rtt_from_s: f64::NAN,
            rtt_to_s: f64::NAN,
            rate_from_bps: f64::NAN,
            rate_to_bps: f64::NAN,
            cwnd_packets: f64::NAN,
            ssthresh_packets: f64::NAN,
            flag: None,
            any: None,
            new_data: None,
            value: f64::NAN,
            forecast: None,
        }
    }

    fn representation(mut self, rank: u16) -> Self {
        self.representation = Some(rank);
        self
    }

    /// A note of a part from outside.
    fn note(at: Instant, source: u32, note: Note) -> Self {
        let subflow = note.subflow.map(|subflow| subflow.0);
        EventRow { detail: Some(note.name), subflow, value: note.value, ..EventRow::new(at, source, NOTED) }
    }

    fn seconds(mut self, time: Duration) -> Self {
        self.seconds = time.as_secs_f64();
        self
    }

    /// What a link said.
    pub fn link(at: Instant, source: u32, event: LinkEvent) -> Self {
        match event {
            LinkEvent::Dropped { cause, bytes } => {
                let detail = Some(match cause {
                    DropCause::Queue => "queue",
                    DropCause::Random => "random",
                    DropCause::Outage => "outage",
                    DropCause::TooBig => "too-big",
                });
                EventRow { detail, bytes: Some(u64::from(bytes)), ..EventRow::new(at, source, "dropped") }
            }
            LinkEvent::Switched { up } => EventRow { flag: Some(up), ..EventRow::new(at, source, "link-switched") },
        }
    }

    /// What a player said.
    pub fn player(at: Instant, source: u32, event: &PlayerEvent) -> Self {
        let row = |name| EventRow::new(at, source, name);
        let numbered = |name, n: u32| EventRow { number: Some(n), ..row(name) };
        match *event {
            PlayerEvent::Requested { request } => numbered("requested", request),
            PlayerEvent::FirstByte { request } => numbered("first-byte", request),
            PlayerEvent::ResponseComplete { request, bytes, end } => {
                EventRow { bytes: Some(bytes), offset: Some(end), ..numbered("response-complete", request) }
            }
            PlayerEvent::PlaybackStarted => row("playback-started"),
            PlayerEvent::StallBegan => row("stall-began"),
            PlayerEvent::StallEnded => row("stall-ended"),
            PlayerEvent::BufferUnderflow { late } => row("buffer-underflow").seconds(late),
            PlayerEvent::PlayoutDelayRaised { to } => row("playout-delay-raised").seconds(to),
            PlayerEvent::PictureDiscarded { frame } => numbered("picture-discarded", frame),
            PlayerEvent::PicturesFlushed { first, count } => {
                EventRow { bytes: None, offset: Some(u64::from(count)), ..numbered("pictures-flushed", first) }
            }
            PlayerEvent::BufferLevel { media, bytes } => {
                EventRow { bytes: Some(bytes), ..row("buffer-level").seconds(media) }
            }
            PlayerEvent::PlaybackEnded => row("playback-ended"),
            PlayerEvent::RepresentationChosen { index, representation, reason } => EventRow {
                detail: Some(reason),
                ..numbered("representation-chosen", index).representation(representation)
            },
            PlayerEvent::InitRequested { request, representation } => {
                numbered("init-requested", request).representation(representation)
            }
            PlayerEvent::SegmentRequested { request, index, representation } => EventRow {
                offset: Some(u64::from(request)),
                ..numbered("segment-requested", index).representation(representation)
            },
            PlayerEvent::AudioRequested { request, index } => {
                EventRow { offset: Some(u64::from(request)), ..numbered("audio-requested", index) }
            }
            PlayerEvent::SegmentAbandoned { request, index, received, instead } => EventRow {
                offset: Some(u64::from(request)),
                bytes: Some(received),
                ..numbered("segment-abandoned", index).representation(instead)
            },
            PlayerEvent::SegmentAppended { index, representation, buffered } => {
                numbered("segment-appended", index).representation(representation).seconds(buffered)
            }
            PlayerEvent::SegmentShown { index, representation } => {
                numbered("segment-shown", index).representation(representation)
            }
            PlayerEvent::Reconnected => row("reconnected"),
            PlayerEvent::Noted(note) => EventRow::note(at, source, note),
            PlayerEvent::BufferStateChanged { loaded } => {
                EventRow { flag: Some(loaded), ..row("buffer-state-changed") }
            }
        }
    }

    /// What an endpoint said, with the forecast of a path switch.
    pub fn transport(at: Instant, source: u32, event: &TransportEvent, forecast: Option<SwitchForecast>) -> Self {
        use TransportEvent as E;
        let row = |name| EventRow::new(at, source, name);
        let on = |name, subflow: anabranch_units::SubflowId| EventRow { subflow: Some(subflow.0), ..row(name) };
        match *event {
            E::Established => row("established"),
            E::FellBack { reason } => EventRow { detail: Some(fallback(reason)), ..row("fell-back") },
            E::SubflowOpened { subflow, path, rtt } => {
                EventRow { path: Some(path.0), ..on("subflow-opened", subflow).seconds(rtt) }
            }
            E::SubflowClosed { subflow, path, reason } => {
                EventRow { path: Some(path.0), detail: Some(close(reason)), ..on("subflow-closed", subflow) }
            }
            E::SegmentSent { subflow, kind, bytes, offset } => EventRow {
                detail: Some(send_kind(kind)),
                bytes: Some(u64::from(bytes)),
                offset: Some(offset),
                ..on("segment-sent", subflow)
            },
            E::PathSwitched { from, .. } => EventRow { forecast, ..on("path-switched", from).switch(event) },
            E::WindowReduced { subflow, cause, from, to } => EventRow {
                detail: Some(loss_cause(cause)),
                cwnd_packets: from,
                ssthresh_packets: to,
                ..on("window-reduced", subflow)
            },
            E::TimeoutFired { subflow, in_a_row, timeout } => {
                EventRow { number: Some(in_a_row), ..on("timeout-fired", subflow).seconds(timeout) }
            }
            E::ReductionUndone { subflow } => on("reduction-undone", subflow),
            E::PathMtu { subflow, mtu, cause } => on("path-mtu", subflow).mtu(mtu, cause),
            E::Delivered { bytes, waited, across } => EventRow {
                bytes: Some(u64::from(bytes)),
                across_s: across.as_secs_f64(),
                ..row("delivered").seconds(waited)
            },
            E::OutOfOrder { buffered } => EventRow { bytes: Some(buffered), ..row("out-of-order") },
            E::ReceiveWindowLimited { limited } => EventRow { flag: Some(limited), ..row("receive-window-limited") },
            E::SchedulerWaiting { waiting } => EventRow { flag: Some(waiting), ..row("scheduler-waiting") },
            E::Forecast(forecast) => on("forecast", forecast.subflow).arrival(&forecast),
            E::PriorityChanged { subflow, backup, by_peer } => EventRow {
                flag: Some(backup),
                detail: Some(if by_peer { "peer" } else { "own" }),
                ..on("priority-changed", subflow)
            },
            E::PathUse { subflow, allowed } => EventRow { flag: Some(allowed), ..on("path-use", subflow) },
            E::ControlCount { subflow, name, count } => {
                EventRow { detail: Some(name), offset: Some(count), ..on("control-count", subflow) }
            }
            E::Sample { subflow, cwnd, ssthresh, in_flight, srtt, acked } => EventRow {
                cwnd_packets: cwnd,
                ssthresh_packets: ssthresh,
                number: Some(in_flight),
                bytes: Some(acked),
                ..on("sample", subflow).seconds(srtt)
            },
            E::Noted(note) => EventRow::note(at, source, note),
            E::Finished => row("finished"),
            E::Aborted => row("aborted"),
        }
    }

    /// The same row with the size of packets from here on.
    fn mtu(self, mtu: u32, cause: anabranch_events::MtuCause) -> Self {
        EventRow { detail: Some(mtu_cause(cause)), number: Some(mtu), ..self }
    }

    /// The same row with the columns of a forecast.
    fn arrival(self, forecast: &Forecast) -> Self {
        EventRow {
            detail: Some(forecast_reason(forecast.reason)),
            number: forecast.finish.map(|finish| u32::try_from(finish.as_millis()).unwrap_or(u32::MAX)),
            bytes: Some(forecast.budget),
            ..self.seconds(forecast.arrival)
        }
    }

    /// The same row with the columns of a path switch.
    fn switch(self, event: &TransportEvent) -> Self {
        let TransportEvent::PathSwitched { to, any, new_data, offset, rtt_from, rtt_to, rate_from, rate_to, .. } =
            *event
        else {
            return self;
        };
        EventRow {
            to_subflow: Some(to.0),
            offset: Some(offset),
            any: Some(any),
            new_data: Some(new_data),
            rtt_from_s: rtt_from.as_secs_f64(),
            rtt_to_s: rtt_to.as_secs_f64(),
            rate_from_bps: rate_from.as_bps() as f64,
            rate_to_bps: rate_to.as_bps() as f64,
            ..self
        }
    }
}

fn mtu_cause(cause: anabranch_events::MtuCause) -> &'static str {
    use anabranch_events::MtuCause as C;
    match cause {
        C::Reported => "reported",
        C::BlackHole => "black-hole",
        C::Tried => "tried",
    }
}

fn fallback(reason: anabranch_events::FallbackReason) -> &'static str {
    use anabranch_events::FallbackReason as R;
    match reason {
        R::NotCapable => "not-capable",
        R::Unanswered => "unanswered",
        R::OptionsStripped => "options-stripped",
        R::BadMapping => "bad-mapping",
        R::PeerFailed => "peer-failed",
    }
}

fn close(reason: anabranch_events::CloseReason) -> &'static str {
    use anabranch_events::CloseReason as R;
    match reason {
        R::Finished => "finished",
        R::ResetByPeer => "reset-by-peer",
        R::ProtocolError => "protocol-error",
        R::TimedOut => "timed-out",
        R::PathDown => "path-down",
        R::Aborted => "aborted",
    }
}

fn send_kind(kind: anabranch_events::SendKind) -> &'static str {
    use anabranch_events::SendKind as K;
    match kind {
        K::New => "new",
        K::Retransmission => "retransmission",
        K::TailLossProbe => "tail-loss-probe",
        K::Reinjection => "reinjection",
        K::Duplicate => "duplicate",
    }
}

fn forecast_reason(reason: anabranch_events::ForecastReason) -> &'static str {
    use anabranch_events::ForecastReason as R;
    match reason {
        R::Waits => "waits",
        R::Sends => "sends",
        R::Lost => "lost",
        R::Late => "late",
        R::Sooner => "sooner",
        R::Spare => "spare",
        R::Silent => "silent",
    }
}

fn loss_cause(cause: anabranch_events::LossCause) -> &'static str {
    use anabranch_events::LossCause as C;
    match cause {
        C::FastRetransmit => "fast-retransmit",
        C::Timeout => "timeout",
        C::Penalty => "penalty",
    }
}

/// Makes the table of rows from several sources; rows of equal times keep their order. `sources` names the sources,
/// `path_names` the paths.
pub(crate) fn tabulate(mut rows: Vec<EventRow>, sources: Vec<String>, path_names: Vec<String>) -> EventColumns {
    rows.sort_by_key(|row| row.at);
    let integers = |value: fn(&EventRow) -> Option<i64>| {
        Column::Integer(rows.iter().map(|row| value(row).unwrap_or(EventColumns::NO_INTEGER)).collect())
    };
    let floats = |value: fn(&EventRow) -> f64| Column::Float(rows.iter().map(value).collect());
    let flags = |value: fn(&EventRow) -> Option<bool>| Column::Flag(rows.iter().map(value).collect());
    let named =
        |words, value: fn(&EventRow) -> Option<u32>| Column::Text { words, codes: rows.iter().map(value).collect() };
    let mut columns = vec![
        ("time_s", floats(|r| r.at.as_secs_f64())),
        ("source", named(sources, |r| Some(r.source))),
        ("event", words(&rows, |r| Some(r.event))),
        ("detail", words(&rows, |r| r.detail)),
        ("subflow", integers(|r| r.subflow.map(i64::from))),
        ("to_subflow", integers(|r| r.to_subflow.map(i64::from))),
        ("path", named(path_names, |r| r.path.map(u32::from))),
        ("bytes", integers(|r| r.bytes.map(|n| n as i64))),
        ("offset", integers(|r| r.offset.map(|n| n as i64))),
        ("number", integers(|r| r.number.map(i64::from))),
        ("representation", integers(|r| r.representation.map(i64::from))),
        ("seconds", floats(|r| r.seconds)),
        ("across_s", floats(|r| r.across_s)),
        ("rtt_from_s", floats(|r| r.rtt_from_s)),
        ("rtt_to_s", floats(|r| r.rtt_to_s)),
        ("rate_from_bps", floats(|r| r.rate_from_bps)),
        ("rate_to_bps", floats(|r| r.rate_to_bps)),
        ("cwnd_packets", floats(|r| r.cwnd_packets)),
        ("ssthresh_packets", floats(|r| r.ssthresh_packets)),
        ("flag", flags(|r| r.flag)),
        ("any_data", flags(|r| r.any)),
        ("new_data", flags(|r| r.new_data)),
        ("frame", integers(|r| r.forecast.and_then(|f| f.frame).map(i64::from))),
        ("frame_packets", integers(|r| r.forecast.map(|f| i64::from(f.frame_packets)))),
        ("packets_before", integers(|r| r.forecast.map(|f| i64::from(f.packets_before)))),
        ("underflow_ratio", floats(|r| r.forecast.map_or(f64::NAN, |f| f.underflow_ratio))),
        ("discard_margin", floats(|r| r.forecast.map_or(f64::NAN, |f| f.discard_margin))),
        ("underflow_expected", flags(|r| r.forecast.map(|f| f.underflow()))),
        ("discard_expected", flags(|r| r.forecast.map(|f| f.discard()))),
    ];
    // Notes exist only where a part comes from outside; other runs keep the table that they had before there were any.
    if rows.iter().any(|row| row.event == NOTED) {
        columns.push(("value", floats(|r| r.value)));
    }
    EventColumns { columns }
}

/// Words as positions in the list of different ones, in the order of their first appearance.
fn words(rows: &[EventRow], value: fn(&EventRow) -> Option<&'static str>) -> Column {
    let mut words: Vec<String> = Vec::new();
    let mut code = |word: &str| {
        let known = words.iter().position(|known| known == word);
        known.unwrap_or_else(|| {
            words.push(word.to_string());
            words.len() - 1
        }) as u32
    };
    let codes = rows.iter().map(|row| value(row).map(&mut code)).collect();
    Column::Text { words, codes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::SubflowId;

    #[test]
    fn rows_are_sorted_by_time_and_keep_their_order_within_an_instant() {
        let at = Instant::from_nanos;
        let rows = vec![
            EventRow::player(at(5), 1, &PlayerEvent::StallBegan),
            EventRow::link(at(3), 0, LinkEvent::Dropped { cause: DropCause::Queue, bytes: 40 }),
            EventRow::transport(at(5), 1, &TransportEvent::ReductionUndone { subflow: SubflowId(7) }, None),
        ];
        let table = tabulate(rows, vec!["link".into(), "session".into()], vec![]);
        assert_eq!(table.len(), 3);
        let column = |name: &str| &table.columns.iter().find(|(n, _)| *n == name).unwrap().1;
        let Column::Text { words, codes } = column("event") else { panic!() };
        let names: Vec<_> = codes.iter().map(|c| words[c.unwrap() as usize].as_str()).collect();
        assert_eq!(names, ["dropped", "stall-began", "reduction-undone"]);
        let none = EventColumns::NO_INTEGER;
        assert_eq!(column("subflow"), &Column::Integer(vec![none, none, 7]));
        assert_eq!(column("bytes"), &Column::Integer(vec![40, none, none]));
    }
}
