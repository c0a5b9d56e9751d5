//! Events as a table of columns, for files and for analysis. The columns of an event are the fields of its type.

use crate::folds::SwitchForecast;
use crate::scalars::{Scalar, Scalars, scalars_of};
use anabranch_events::{Carried, HostEvent, LinkEvent, PlayerEvent, TransportEvent};
use anabranch_units::{Instant, PathId, SubflowId};
use serde::Serialize;
use std::collections::BTreeMap;

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

/// One event: a row of the table to be.
#[derive(Clone, Debug)]
pub struct EventRow {
    at: Instant,
    source: u32,
    event: &'static str,
    fields: Scalars,
}

impl EventRow {
    fn new(at: Instant, source: u32, event: &impl Serialize) -> Self {
        let (event, fields) = scalars_of(event);
        EventRow { at, source, event, fields }
    }

    /// What a link said, and what the packet carried that it dropped.
    pub fn link(at: Instant, source: u32, event: LinkEvent, carried: Option<Carried>) -> Self {
        let mut row = EventRow::new(at, source, &event);
        if let Some(carried) = carried {
            row.fields.extend(scalars_of(&carried).1);
        }
        row
    }

    /// What a player said.
    pub fn player(at: Instant, source: u32, event: &PlayerEvent) -> Self {
        EventRow::new(at, source, event)
    }

    /// What the host saw of an endpoint.
    pub fn host(at: Instant, source: u32, event: HostEvent) -> Self {
        EventRow::new(at, source, &event)
    }

    /// What an endpoint said, with the forecast of a path switch.
    pub fn transport(at: Instant, source: u32, event: &TransportEvent, forecast: Option<SwitchForecast>) -> Self {
        let mut row = EventRow::new(at, source, event);
        if let Some(forecast) = forecast {
            row.fields.extend(scalars_of(&forecast).1);
            row.fields.push(("underflow_expected", Scalar::Flag(forecast.underflow())));
            row.fields.push(("discard_expected", Scalar::Flag(forecast.discard())));
        }
        row
    }

    /// With the path of its subflow, where it has a subflow and not its path already.
    #[must_use]
    pub(crate) fn on_path(mut self, of: impl Fn(SubflowId) -> Option<PathId>) -> Self {
        let subflow = self.fields.iter().find_map(|(name, scalar)| match scalar {
            Scalar::Integer(number) if *name == "subflow" => u16::try_from(*number).ok(),
            _ => None,
        });
        if self.fields.iter().all(|(name, _)| *name != "path")
            && let Some(path) = subflow.and_then(|subflow| of(SubflowId(subflow)))
        {
            self.fields.push(("path", Scalar::Integer(path.0.into())));
        }
        self
    }
}

/// The kinds of columns.
#[derive(Clone, Copy)]
enum Kind {
    Integer,
    Float,
    Flag,
    Word,
}
use Kind::{Flag, Float, Integer, Word};

/// The columns that every table has, in their order. A value that is in none of them gets a column at the end: that of
/// notes, which exist only where a part comes from outside.
const COLUMNS: [(&str, Kind); 52] = [
    ("detail", Word),
    ("subflow", Integer),
    ("to_subflow", Integer),
    ("original_subflow", Integer),
    ("sender", Word),
    ("path", Integer),
    ("bytes", Integer),
    ("buffered_bytes", Integer),
    ("received_bytes", Integer),
    ("waiting_bytes", Integer),
    ("budget_bytes", Integer),
    ("acked_bytes", Integer),
    ("mtu_bytes", Integer),
    ("window_bytes", Integer),
    ("offset", Integer),
    ("end_offset", Integer),
    ("request", Integer),
    ("index", Integer),
    ("representation", Integer),
    ("count", Integer),
    ("in_a_row", Integer),
    ("rtt_s", Float),
    ("srtt_s", Float),
    ("timeout_s", Float),
    ("waited_s", Float),
    ("across_s", Float),
    ("arrival_s", Float),
    ("finish_s", Float),
    ("late_s", Float),
    ("delay_s", Float),
    ("buffered_s", Float),
    ("rtt_from_s", Float),
    ("rtt_to_s", Float),
    ("rate_from_bps", Float),
    ("rate_to_bps", Float),
    ("rate_bps", Float),
    ("download_bps", Float),
    ("cwnd_packets", Float),
    ("ssthresh_packets", Float),
    ("decayed_packets", Float),
    ("in_flight_packets", Integer),
    ("up", Flag),
    ("limited", Flag),
    ("waiting", Flag),
    ("backup", Flag),
    ("allowed", Flag),
    ("loaded", Flag),
    ("any_data", Flag),
    ("new_data", Flag),
    ("frame", Integer),
    ("frame_packets", Integer),
    ("packets_before", Integer),
];

/// Those of the forecast of a path switch, which follow.
const FORECAST: [(&str, Kind); 4] =
    [("underflow_ratio", Float), ("discard_margin", Float), ("underflow_expected", Flag), ("discard_expected", Flag)];

/// Makes the table of rows from several sources; rows of equal times keep their order. `sources` names the sources,
/// `path_names` the paths.
pub(crate) fn tabulate(mut rows: Vec<EventRow>, sources: Vec<String>, path_names: &[String]) -> EventColumns {
    rows.sort_by_key(|row| row.at);
    let mut names: Vec<(&'static str, Kind)> = COLUMNS.into_iter().chain(FORECAST).collect();
    let mut positions: BTreeMap<&str, usize> = names.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect();
    for (name, scalar) in rows.iter().flat_map(|row| &row.fields) {
        positions.entry(name).or_insert_with(|| {
            names.push((name, kind_of(scalar)));
            names.len() - 1
        });
    }
    let mut filled: Vec<Filled> = names.iter().map(|(_, kind)| Filled::empty(*kind, rows.len())).collect();
    for (at, row) in rows.iter().enumerate() {
        for (name, scalar) in &row.fields {
            filled[positions[name]].put(at, scalar);
        }
    }
    let mut columns = vec![
        ("time_s", Column::Float(rows.iter().map(|row| row.at.as_secs_f64()).collect())),
        ("source", Column::Text { words: sources, codes: rows.iter().map(|row| Some(row.source)).collect() }),
        ("event", words(rows.iter().map(|row| Some(row.event)))),
    ];
    columns.extend(names.into_iter().zip(filled).map(|((name, _), values)| match (name, values) {
        ("path", Filled::Integer(paths)) => (name, named(path_names.to_vec(), &paths)),
        (_, values) => (name, values.into_column()),
    }));
    EventColumns { columns }
}

fn kind_of(scalar: &Scalar) -> Kind {
    match scalar {
        Scalar::Integer(_) => Integer,
        Scalar::Float(_) => Float,
        Scalar::Flag(_) => Flag,
        Scalar::Word(_) => Word,
    }
}

/// A column while rows are put into it.
enum Filled {
    Integer(Vec<i64>),
    Float(Vec<f64>),
    Flag(Vec<Option<bool>>),
    Word(Words),
}

impl Filled {
    fn empty(kind: Kind, rows: usize) -> Self {
        match kind {
            Integer => Filled::Integer(vec![EventColumns::NO_INTEGER; rows]),
            Float => Filled::Float(vec![f64::NAN; rows]),
            Flag => Filled::Flag(vec![None; rows]),
            Word => Filled::Word(Words { list: Vec::new(), codes: vec![None; rows] }),
        }
    }

    /// # Panics
    /// If the field of one event has another type than the field of that name of another event.
    fn put(&mut self, row: usize, scalar: &Scalar) {
        match (self, scalar) {
            (Filled::Integer(values), Scalar::Integer(n)) => values[row] = *n,
            (Filled::Float(values), Scalar::Float(x)) => values[row] = *x,
            (Filled::Flag(values), Scalar::Flag(flag)) => values[row] = Some(*flag),
            (Filled::Word(words), Scalar::Word(word)) => words.codes[row] = Some(words.code(word)),
            (_, scalar) => panic!("a column with values of two types; one of them is {scalar:?}"),
        }
    }

    fn into_column(self) -> Column {
        match self {
            Filled::Integer(values) => Column::Integer(values),
            Filled::Float(values) => Column::Float(values),
            Filled::Flag(values) => Column::Flag(values),
            Filled::Word(words) => words.into_column(),
        }
    }
}

/// Numbers that stand for names.
fn named(words: Vec<String>, numbers: &[i64]) -> Column {
    Column::Text { words, codes: numbers.iter().map(|n| u32::try_from(*n).ok()).collect() }
}

/// Words as positions in the list of different ones, in the order of their first appearance.
pub(crate) fn words<'a>(values: impl Iterator<Item = Option<&'a str>>) -> Column {
    let mut words = Words::default();
    for value in values {
        let code = value.map(|word| words.code(word));
        words.codes.push(code);
    }
    words.into_column()
}

/// The different words of a column, and which of them each row has.
#[derive(Default)]
struct Words {
    list: Vec<String>,
    codes: Vec<Option<u32>>,
}

impl Words {
    /// The position of a word in the list, to which it is added if it is new.
    fn code(&mut self, word: &str) -> u32 {
        let known = self.list.iter().position(|known| known == word);
        known.unwrap_or_else(|| {
            self.list.push(word.to_string());
            self.list.len() - 1
        }) as u32
    }

    fn into_column(self) -> Column {
        Column::Text { words: self.list, codes: self.codes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_events::{DropCause, Note, SendKind::New};
    use anabranch_units::{Bandwidth, Duration};

    #[test]
    fn rows_are_sorted_by_time_and_keep_their_order_within_an_instant() {
        let at = Instant::from_nanos;
        let rows = vec![
            EventRow::player(at(5), 1, &PlayerEvent::StallBegan),
            EventRow::link(at(3), 0, LinkEvent::Dropped { cause: DropCause::Queue, bytes: 40 }, None),
            EventRow::transport(at(5), 1, &TransportEvent::ReductionUndone { subflow: SubflowId(7) }, None),
        ];
        let table = tabulate(rows, vec!["link".into(), "session".into()], &[]);
        assert_eq!(table.len(), 3);
        let column = |name: &str| &table.columns.iter().find(|(n, _)| *n == name).unwrap().1;
        let Column::Text { words, codes } = column("event") else { panic!() };
        let names: Vec<_> = codes.iter().map(|c| words[c.unwrap() as usize].as_str()).collect();
        assert_eq!(names, ["dropped", "stall-began", "reduction-undone"]);
        let none = EventColumns::NO_INTEGER;
        assert_eq!(column("subflow"), &Column::Integer(vec![none, none, 7]));
        assert_eq!(column("bytes"), &Column::Integer(vec![40, none, none]));
    }

    #[test]
    fn a_row_with_a_subflow_has_the_path_of_that_subflow() {
        let opened = TransportEvent::SubflowOpened { subflow: SubflowId(3), path: PathId(1), rtt: Duration::ZERO };
        let sent =
            |subflow| TransportEvent::SegmentSent { subflow: SubflowId(subflow), kind: New, bytes: 1, offset: 0 };
        let path = |subflow: SubflowId| (subflow.0 == 3).then_some(PathId(0));
        let events = [opened, sent(3), sent(4), TransportEvent::Finished];
        let rows = events.iter().map(|event| EventRow::transport(Instant::ZERO, 0, event, None).on_path(path));
        let table = tabulate(rows.collect(), vec!["session".into()], &["wifi".into(), "lte".into()]);
        let (_, paths) = table.columns.iter().find(|(name, _)| *name == "path").unwrap();
        let Column::Text { words, codes } = paths else { panic!() };
        assert_eq!(words, &["wifi", "lte"]);
        assert_eq!(codes, &[Some(1), Some(0), None, None], "that of its own, that of its subflow, unknown, no subflow");
    }

    /// One of each event that has fields.
    fn every_event() -> Vec<EventRow> {
        use TransportEvent as T;
        use anabranch_events::{
            CloseReason, Consideration, CopyCause, DecayCause, FallbackReason, Forecast, ForecastReason, Limit,
            LossCause, MtuCause, SendKind,
        };
        let (at, time, rate) = (Instant::ZERO, Duration::from_millis(1), Bandwidth::from_mbps(1));
        let (subflow, path) = (SubflowId(1), PathId(0));
        let note = Note { name: "n", value: 1.0, subflow: Some(subflow) };
        let reason = ForecastReason::Waits;
        let transport = [
            T::FellBack { reason: FallbackReason::NotCapable },
            T::SubflowOpened { subflow, path, rtt: time },
            T::SubflowClosed { subflow, path, reason: CloseReason::Finished },
            T::SegmentSent { subflow, kind: SendKind::New, bytes: 1, offset: 2 },
            T::Considered {
                subflow,
                consideration: Consideration::Chosen,
                bytes: 1,
                offset: 2,
                srtt: time,
                arrival: Some(time),
            },
            T::Copied { subflow, original: Some(subflow), cause: CopyCause::Redundant, bytes: 1, offset: 2 },
            T::PathSwitched {
                from: subflow,
                to: subflow,
                any: true,
                new_data: true,
                offset: 1,
                rtt_from: time,
                rtt_to: time,
                rate_from: rate,
                rate_to: rate,
            },
            T::WindowReduced { subflow, cause: LossCause::Timeout, from: 2.0, to: 1.0 },
            T::WindowDecayed { subflow, cause: DecayCause::Idle, from: 2.0, to: 1.0 },
            T::TimeoutFired { subflow, in_a_row: 1, timeout: time },
            T::PathMtu { subflow, mtu: 1280, cause: MtuCause::BlackHole },
            T::Delivered { subflow: Some(subflow), offset: Some(1), bytes: 1, waited: time, across: time },
            T::OutOfOrder { subflow, offset: 1, buffered: 1 },
            T::ReceiveWindowLimited { limited: true },
            T::SchedulerWaiting { waiting: true },
            T::Forecast(Forecast { subflow, arrival: time, finish: Some(time), budget: 1, reason }),
            T::PriorityChanged { subflow, backup: true, by_peer: true },
            T::PathUse { subflow, allowed: true },
            T::ControlCount { subflow, name: "c", count: 1 },
            T::Noted(note),
            T::Sample { subflow, cwnd: 1.0, ssthresh: 1.0, in_flight: 1, srtt: time, acked: 1 },
        ];
        let mut rows: Vec<_> = transport.iter().map(|event| EventRow::transport(at, 0, event, None)).collect();
        rows.extend(every_event_of_players(note).iter().map(|event| EventRow::player(at, 0, event)));
        let changed = LinkEvent::Changed { what: "rate", rate: Some(rate) };
        rows.extend([LinkEvent::Switched { up: true }, changed].map(|event| EventRow::link(at, 0, event, None)));
        let carried = Carried { sender: "s".into(), path, subflow: Some(subflow), offset: Some(1) };
        rows.push(EventRow::link(at, 0, LinkEvent::Dropped { cause: DropCause::Queue, bytes: 1 }, Some(carried)));
        let limited = HostEvent::PathLimited { path, limit: Limit::Window };
        let advertised = HostEvent::WindowAdvertised { window: 1, end: 1 };
        rows.extend([limited, advertised, HostEvent::Read { end: 1 }].map(|event| EventRow::host(at, 0, event)));
        rows
    }

    fn every_event_of_players(note: Note) -> Vec<PlayerEvent> {
        use PlayerEvent as P;
        let (time, rate) = (Duration::from_millis(1), Bandwidth::from_mbps(1));
        vec![
            P::Requested { request: 1 },
            P::ResponseComplete { request: 1, bytes: 2, end: 3 },
            P::BufferUnderflow { late: time },
            P::PlayoutDelayRaised { to: time },
            P::PictureDiscarded { frame: 1 },
            P::PicturesFlushed { first: 1, count: 2 },
            P::BufferLevel { media: time, bytes: 1 },
            P::RepresentationChosen { index: 1, representation: 2, reason: "r", buffered: time, download: Some(rate) },
            P::SegmentRequested { request: 1, index: 2, representation: 3 },
            P::SegmentAbandoned { request: 1, index: 2, received: 3, instead: 4 },
            P::SegmentAppended { index: 1, representation: 2, buffered: time },
            P::BufferStateChanged { loaded: true },
            P::Noted(note),
        ]
    }

    #[test]
    fn every_field_has_its_column_and_only_notes_add_one() {
        let table = tabulate(every_event(), vec!["all".into()], &["wifi".into()]);
        let names: Vec<_> = table.columns.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), 3 + COLUMNS.len() + FORECAST.len() + 1, "{names:?}");
        assert_eq!(names.last(), Some(&"value"));
        let empty = |column: &Column| match column {
            Column::Integer(values) => values.iter().all(|n| *n == EventColumns::NO_INTEGER),
            Column::Float(values) => values.iter().all(|x| x.is_nan()),
            Column::Flag(values) => values.iter().all(Option::is_none),
            Column::Text { codes, .. } => codes.iter().all(Option::is_none),
        };
        let unused: Vec<_> = table.columns.iter().filter(|(_, column)| empty(column)).map(|(name, _)| *name).collect();
        let of_forecasts = ["frame_packets", "packets_before"].into_iter().chain(FORECAST.map(|(name, _)| name));
        assert_eq!(unused, of_forecasts.collect::<Vec<_>>());
    }
}
