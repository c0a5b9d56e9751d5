//! What one session says, folded into metrics while it is said, and stored only where that was asked for.

use crate::account::{Account, Written};
use crate::folds::{
    DashMetrics, DeliveryGaps, Downloads, PathLabel, SenderCounts, SwitchForecast, SwitchPredictor, TransportMetrics,
    TransportReport, ViewerMetrics,
};
use crate::metrics::{Ended, SessionMetrics};
use crate::observed::Observed;
use crate::recording::{Recorder, SessionRecording};
use crate::table::EventRow;
use anabranch_events::{HostEvent, Limit, Log, Note, PathLimit, PlayerEvent, TransportEvent};
use anabranch_media::{Content, RESPONSE_HEADER_BYTES};
use anabranch_scenario::MOST_RECORDED;
use anabranch_scenario::{FlowPlan, Scenario};
use anabranch_units::{Duration, Instant, LinkDirection, PathId, SubflowId};
use std::collections::BTreeMap;

/// Folds one session's events.
pub struct Observer {
    /// Such as `session 0`.
    pub name: String,
    start: Instant,
    observed: Observed,
    viewer: ViewerMetrics,
    dash: Option<DashMetrics>,
    /// Of a player without a video.
    downloads: Option<Downloads>,
    gaps: DeliveryGaps,
    goal: Goal,
    transport: TransportMetrics,
    predictor: Option<SwitchPredictor>,
    recorder: Option<Recorder>,
    /// Which of the session's paths each subflow uses, by the subflow's number.
    subflow_paths: Vec<Option<usize>>,
    paths: Vec<PathId>,
    rows: Option<Rows>,
    /// Only with [`Keep::account`].
    pub account: Option<Account>,
    /// The transport's numbers at the end of the warm-up.
    at_warm_up: Option<(Instant, TransportReport)>,
}

/// What a session reaches if nothing cuts it off.
#[derive(Clone, Copy, Debug)]
struct Goal {
    /// Whether it has an end; an endless download has none.
    has_end: bool,
    /// The playing time of its video.
    video: Option<Duration>,
    /// Bytes that its player has read at the end, at the least.
    bytes: u64,
}

impl Goal {
    fn of(flow: &FlowPlan) -> Self {
        // How much a DASH player reads is its choice, and what a download stops at may be its player's option.
        let bytes = if let Content::Progressive(frames) = &flow.content { frames.size() } else { 0 };
        Goal { has_end: flow.player.has_end(), video: flow.content.playing_time(), bytes }
    }
}

/// How and when a session ended, or was cut off.
pub struct Ending {
    /// Until when it is counted.
    pub at: Instant,
    /// When its player was done, if it was.
    pub finished: Option<Instant>,
    /// Why it ended.
    pub how: Ended,
}

/// What is kept of a run besides its metrics and the columns of its figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Every event, for the table of events.
    pub events: bool,
    /// The forecast of every path switch, for reducers. There may be hundreds of thousands.
    pub forecasts: bool,
    /// Where the link time of each session went.
    pub account: bool,
}

/// The session's part of the table of events.
struct Rows {
    list: Vec<EventRow>,
    /// The source of what the sender, the receiver and the player say.
    sources: [u32; 3],
    /// The path of each subflow, as the sender and the receiver number them.
    paths: [BTreeMap<SubflowId, PathId>; 2],
    /// What keeps each path from carrying more.
    limits: BTreeMap<PathId, Limit>,
    /// How many bytes the sending application has written, and the receiving one read.
    moved: [u64; 2],
    /// The window of the last event that has one.
    advertised: Option<u64>,
}

impl Rows {
    /// What an endpoint said: the sender, 0, or the receiver, 1.
    fn endpoint(&mut self, who: usize, at: Instant, event: &TransportEvent, forecast: Option<SwitchForecast>) {
        if let TransportEvent::SubflowOpened { subflow, path, .. } = *event {
            self.paths[who].insert(subflow, path);
        }
        let row = EventRow::transport(at, self.sources[who], event, forecast);
        self.list.push(row.on_path(|subflow| self.paths[who].get(&subflow).copied()));
    }

    /// How many bytes the application of an endpoint, the sender, 0, or the receiver, 1, has moved by now.
    fn application(&mut self, who: usize, now: Instant, end: u64) {
        if std::mem::replace(&mut self.moved[who], end) != end {
            let event = if who == 0 { HostEvent::Written { end } } else { HostEvent::Read { end } };
            self.list.push(EventRow::host(now, self.sources[who], event));
        }
    }

    /// The window that the receiver has advertised by now, and one past the last byte that it allows.
    fn window(&mut self, now: Instant, (window, end): (u64, u64)) {
        let alike = |before: u64| window == before || (window < 2 * before && before < 2 * window);
        if !self.advertised.is_some_and(alike) {
            self.advertised = Some(window);
            self.list.push(EventRow::host(now, self.sources[1], HostEvent::WindowAdvertised { window, end }));
        }
    }

    /// What keeps the sender's paths from carrying more.
    fn limits(&mut self, now: Instant, limits: &[PathLimit]) {
        for PathLimit { path, limit, .. } in limits.iter().copied() {
            if self.limits.insert(path, limit) != Some(limit) {
                self.list.push(EventRow::host(now, self.sources[0], HostEvent::PathLimited { path, limit }));
            }
        }
    }
}

/// The observers of a scenario's connections, and the sources of the table of events by number: two per link, then
/// three per connection. Only with [`Keep::events`] do the observers keep rows for the table. `observed` says of each
/// connection, by number, whose events its observer gets.
pub fn observers(
    scenario: &Scenario,
    flows: &[FlowPlan],
    keep: Keep,
    observed: impl Fn(usize) -> Observed,
) -> (Vec<Observer>, Vec<String>) {
    let links = scenario
        .links
        .iter()
        .flat_map(|link| LinkDirection::BOTH.map(|direction| format!("{}/{direction}", link.name)));
    let mut sources: Vec<String> = links.collect();
    let observers = flows.iter().enumerate().map(|(number, flow)| {
        let rows = keep.events.then(|| {
            let own = ["server", "client", "player"].map(|who| {
                sources.push(format!("{}/{who}", flow.name));
                sources.len() as u32 - 1
            });
            Rows {
                list: Vec::new(),
                sources: own,
                paths: Default::default(),
                limits: BTreeMap::new(),
                moved: [0; 2],
                advertised: None,
            }
        });
        let recorded = flow.is_session && number < MOST_RECORDED;
        let mut observer = Observer::new(scenario, flow, recorded, observed(number));
        if let (Some(recorder), true) = (&mut observer.recorder, keep.forecasts) {
            recorder.keep_forecasts();
        }
        if keep.account && flow.is_session {
            observer.account = Some(Account::new(flow.start, &observer.paths));
        }
        Observer { rows, ..observer }
    });
    let observers = observers.collect();
    (observers, sources)
}

impl Observer {
    /// The observer of a connection; it samples for figures if the connection is recorded.
    fn new(scenario: &Scenario, flow: &FlowPlan, recorded: bool, observed: Observed) -> Self {
        let events: Vec<Instant> = scenario.events.iter().map(|event| Instant::ZERO + event.at).collect();
        let predictor = match &flow.content {
            Content::Progressive(frames) => {
                Some(SwitchPredictor::new(frames.clone(), flow.full_payload, RESPONSE_HEADER_BYTES))
            }
            _ => None,
        };
        let video = if let Content::Dash(video) = &flow.content { Some(video.clone()) } else { None };
        let path_name = |path: &usize| scenario.paths[*path].name.clone();
        let recorder = || {
            Recorder::new(flow.name.clone(), flow.paths.iter().map(path_name), flow.start)
                .with_initial_window(flow.transport.initial_window)
        };
        Observer {
            name: flow.name.clone(),
            start: flow.start,
            observed,
            viewer: ViewerMetrics::new(flow.start),
            downloads: flow.content.playing_time().is_none().then(Downloads::default),
            gaps: DeliveryGaps::default(),
            goal: Goal::of(flow),
            dash: video.clone().map(|video| DashMetrics::new(flow.start, video, flow.statistics.clone())),
            transport: TransportMetrics::new(flow.start, &events).observing(observed).within(flow.statistics.window()),
            predictor,
            recorder: recorded.then(|| recorder().of(video)),
            subflow_paths: Vec::new(),
            paths: flow.paths.iter().map(|path| PathId(*path as u16)).collect(),
            rows: None,
            account: None,
            at_warm_up: None,
        }
    }

    /// The session's paths.
    pub fn paths(&self) -> &[PathId] {
        &self.paths
    }

    /// One more than the highest number of a subflow so far.
    pub fn subflows_seen(&self) -> u16 {
        self.subflow_paths.len() as u16
    }

    /// The session has another connection from here on: what held of the old one's sender holds no more.
    pub fn reconnected(&mut self, now: Instant) {
        self.transport.observe_sender(now, &TransportEvent::ReceiveWindowLimited { limited: false });
        self.transport.observe_sender(now, &TransportEvent::SchedulerWaiting { waiting: false });
    }

    /// What the endpoint said that sends the content.
    #[inline]
    pub fn see_sender(&mut self, log: &mut Log<TransportEvent>) {
        log.consume(|at, event| {
            self.transport.observe_sender(at, event);
            // Most events are of segments, of which only the transport's numbers and the table of events tell.
            if self.rows.is_none() && matches!(event, TransportEvent::SegmentSent { .. }) {
                return;
            }
            let forecast = self.predictor.as_mut().and_then(|predictor| predictor.observe(at, event));
            if let (Some(forecast), Some(recorder)) = (forecast, &mut self.recorder) {
                recorder.forecast(forecast);
            }
            if let Some(rows) = &mut self.rows {
                rows.endpoint(0, at, event, forecast);
            }
            if let TransportEvent::WindowReduced { subflow, .. }
            | TransportEvent::WindowDecayed { subflow, .. }
            | TransportEvent::ReductionUndone { subflow } = *event
            {
                let path = self.path_of(subflow);
                if let Some(account) = &mut self.account {
                    account.see_sender(event, path);
                }
            }
            match *event {
                TransportEvent::SubflowOpened { subflow, path, .. } => self.opened(at, subflow, path),
                TransportEvent::PathSwitched { any: true, .. } => {
                    if let Some(recorder) = &mut self.recorder {
                        recorder.path_switch();
                    }
                }
                TransportEvent::Sample { subflow, cwnd, srtt, acked, .. } => self.record(subflow, cwnd, srtt, acked),
                TransportEvent::PathUse { subflow, allowed } => {
                    if let (Some(path), Some(recorder)) = (self.path_of(subflow), &mut self.recorder) {
                        recorder.path_use(at, path, allowed);
                    }
                }
                TransportEvent::Noted(note) => self.note(at, note),
                // Its successor on the path begins without a verdict.
                TransportEvent::SubflowClosed { subflow, .. } => {
                    if let (Some(path), Some(recorder)) = (self.path_of(subflow), &mut self.recorder) {
                        recorder.path_use(at, path, true);
                    }
                }
                _ => {}
            }
        });
    }

    /// What a sender that is not ours counts of a subflow, whose opening was observed.
    pub fn count_sender(&mut self, subflow: SubflowId, counts: SenderCounts) {
        self.transport.count_sender(subflow, counts);
    }

    /// What the endpoint said that receives it.
    #[inline]
    pub fn see_receiver(&mut self, log: &mut Log<TransportEvent>) {
        log.consume(|at, event| {
            self.transport.observe_receiver(at, event);
            self.gaps.observe_receiver(at, event);
            if let Some(dash) = &mut self.dash {
                dash.observe_receiver(event);
            }
            if let Some(rows) = &mut self.rows {
                rows.endpoint(1, at, event, None);
            }
        });
    }

    /// What the player said.
    #[inline]
    pub fn see_player(&mut self, log: &mut Log<PlayerEvent>) {
        log.consume(|at, event| {
            self.viewer.observe(at, event);
            self.gaps.observe(at, event);
            if let Some(downloads) = &mut self.downloads {
                downloads.observe(at, event);
            }
            if let Some(account) = &mut self.account {
                account.see_player(event);
            }
            if let Some(dash) = &mut self.dash {
                dash.observe(at, event);
            }
            if let Some(rows) = &mut self.rows {
                rows.list.push(EventRow::player(at, rows.sources[2], event));
            }
            let Some(recorder) = &mut self.recorder else { return };
            match *event {
                PlayerEvent::BufferLevel { media, .. } => recorder.buffer(media),
                PlayerEvent::PictureDiscarded { frame } => recorder.discard(frame),
                PlayerEvent::BufferUnderflow { .. } => recorder.underflow(at),
                PlayerEvent::SegmentShown { representation, .. } => recorder.show(at, representation),
                PlayerEvent::Noted(note) => recorder.note(at, note.name, None, note.value),
                PlayerEvent::StallBegan => recorder.stall(at, true),
                PlayerEvent::StallEnded | PlayerEvent::PlaybackEnded => recorder.stall(at, false),
                _ => {}
            }
        });
    }

    /// Whether [`Observer::note_sender`] and [`Observer::note_receiver`] are to be called after each step of an
    /// endpoint.
    pub fn follows_endpoints(&self) -> bool {
        self.rows.is_some() || self.account.is_some()
    }

    /// What the sender is like after a step: what limits each of its paths, and what its application has written. What
    /// was said in the step was seen before.
    pub fn note_sender(&mut self, now: Instant, limits: &[PathLimit], written: Written) {
        if let Some(account) = &mut self.account {
            account.note_limits(limits, written);
        }
        if let Some(rows) = &mut self.rows {
            rows.application(0, now, written.bytes);
            rows.limits(now, limits);
        }
    }

    /// What the receiver is like after a step: how many bytes its application has read, whether it left any, whether it
    /// does not read at all, and the window that it has advertised with one past the last byte that it allows.
    pub fn note_receiver(&mut self, now: Instant, read: u64, unread: bool, paused: bool, advertised: (u64, u64)) {
        if let Some(account) = &mut self.account {
            account.note_unread(unread, paused);
        }
        if let Some(rows) = &mut self.rows {
            rows.application(1, now, read);
            rows.window(now, advertised);
        }
    }

    /// Whether the table of events is kept.
    pub fn keeps_rows(&self) -> bool {
        self.rows.is_some()
    }

    /// Whether the buffer levels of the player are kept: by the recording, which has the first sessions, or by the
    /// table of events.
    pub fn keeps_buffer_levels(&self) -> bool {
        self.recorder.is_some() || self.rows.is_some()
    }

    /// Samples follow.
    pub fn begin_sample(&mut self, now: Instant) {
        if let Some(recorder) = &mut self.recorder {
            recorder.begin(now);
        }
    }

    /// The session begins only now, before anything was said: its client took its time.
    ///
    /// Only a session in the testbed whose client is a program begins so. Its player is not observed, so what would
    /// count from here of a DASH video is not reported; what a real player reports is folded apart.
    pub fn restart(&mut self, now: Instant) {
        self.start = now;
        self.viewer = ViewerMetrics::new(now);
        self.transport = self.transport.restarted(now);
    }

    /// From here on goodput counts. All else, means and what the viewer saw included, is of the whole session or of its
    /// statistics window.
    pub fn end_warm_up(&mut self, now: Instant) {
        if now > self.start {
            self.at_warm_up =
                Some((now, self.transport.finish(now, |_| PathLabel { name: String::new(), metered: false })));
        }
    }

    /// The numbers of a session that ended, or was cut off, and whose player has read `bytes`.
    pub fn metrics(&self, ending: &Ending, bytes: u64, labels: &[PathLabel]) -> SessionMetrics {
        let Observed { sender, player, .. } = self.observed;
        let end = ending.at;
        let mut transport = self.transport.finish(end, |path| labels[path.index()].clone());
        if let Some((since, before)) = &self.at_warm_up {
            self.discount(&mut transport, before, *since, end);
        }
        SessionMetrics {
            name: self.name.clone(),
            start_s: self.start.as_secs_f64(),
            finished_s: ending.finished.map(Instant::as_secs_f64),
            ended: ending.how,
            cut_off: self.is_cut_off(ending, bytes),
            video_s: self.goal.video.map(Duration::as_secs_f64),
            bytes,
            viewer: player.then(|| self.viewer.finish(end)),
            dash: self.dash.as_ref().map(|dash| player.then(|| dash.finish(end))),
            downloads: self.downloads.as_ref().filter(|_| player).map(|downloads| downloads.reports(self.start, bytes)),
            longest_delivery_gap_s: player.then(|| self.gaps.longest(end).as_secs_f64()),
            transport,
            switch_forecasts: self.predictor.as_ref().filter(|_| sender).map(SwitchPredictor::counts),
        }
    }

    /// Whether the session ended before its end. A player whose connection is closed too early plays what it has and is
    /// done.
    fn is_cut_off(&self, ending: &Ending, bytes: u64) -> bool {
        let cut_short = self.observed.player && bytes < self.goal.bytes;
        self.goal.has_end && (ending.how != Ended::Finished || cut_short)
    }

    /// The recording and the rows of the table.
    pub fn into_records(self, end: Instant) -> (Option<SessionRecording>, Vec<EventRow>) {
        (self.recorder.map(|recorder| recorder.finish(end)), self.rows.map_or_else(Vec::new, |rows| rows.list))
    }

    fn opened(&mut self, at: Instant, subflow: SubflowId, path: PathId) {
        let index = subflow.index();
        if self.subflow_paths.len() <= index {
            self.subflow_paths.resize(index + 1, None);
        }
        let path = self.paths.iter().position(|own| *own == path);
        self.subflow_paths[index] = path;
        // The window of another sender is known from its first sample on.
        if let (Some(path), Some(recorder), true) = (path, &mut self.recorder, self.observed.sender) {
            recorder.open(at, path);
        }
    }

    /// The position of a subflow's path among the session's.
    fn path_of(&self, subflow: SubflowId) -> Option<usize> {
        self.subflow_paths.get(subflow.index()).copied().flatten()
    }

    fn note(&mut self, at: Instant, note: Note) {
        let path = note.subflow.and_then(|subflow| self.path_of(subflow));
        if let Some(recorder) = &mut self.recorder {
            recorder.note(at, note.name, path, note.value);
        }
    }

    fn record(&mut self, subflow: SubflowId, cwnd: f64, srtt: Duration, acked: u64) {
        if let (Some(path), Some(recorder)) = (self.path_of(subflow), &mut self.recorder) {
            recorder.sample(path, subflow.0, cwnd, srtt, acked);
        }
    }

    /// Takes from the goodputs what came before `since`.
    fn discount(&self, report: &mut TransportReport, before: &TransportReport, since: Instant, end: Instant) {
        let (early, all) = (since.since(self.start).as_secs_f64(), end.since(self.start).as_secs_f64());
        let late =
            |whole: f64, first: f64| if all > early { (whole * all - first * early) / (all - early) } else { 0.0 };
        report.goodput_bps = late(report.goodput_bps, before.goodput_bps);
        for (subflow, first) in report.subflows.iter_mut().zip(&before.subflows) {
            subflow.goodput_bps = late(subflow.goodput_bps, first.goodput_bps);
        }
        let opened_later = report.subflows.iter_mut().skip(before.subflows.len());
        opened_later.for_each(|subflow| subflow.goodput_bps = late(subflow.goodput_bps, 0.0));
    }
}
