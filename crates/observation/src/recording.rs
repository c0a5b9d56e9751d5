//! What a picture of the run needs: columns sampled at the scenario's interval, and lists of what happened when.

use crate::folds::SwitchForecast;
use anabranch_media::content::DashVideo;
use anabranch_units::{Duration, Instant};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Sampled columns of the first sessions (16 at most), and the scenario's events.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Recording {
    /// The time between samples.
    pub interval_s: f64,
    /// One per recorded session.
    pub sessions: Vec<SessionRecording>,
    /// What the scenario had happen.
    pub events: Vec<Mark>,
}

/// Something that happened to the network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mark {
    /// When.
    pub at_s: f64,
    /// What, in a few words, such as "wifi cut" or "wifi 2 → 0.5 Mb/s".
    pub text: String,
}

/// One session over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SessionRecording {
    /// Such as `session 0`.
    pub name: String,
    /// When each sample was taken; all columns have this length.
    pub time_s: Vec<f64>,
    /// Playing time that is buffered; NaN where the player has no buffer.
    pub buffer_s: Vec<f32>,
    /// One per path.
    pub paths: Vec<PathRecording>,
    /// Beginning and end of each frozen interval.
    pub stalls: Vec<(f64, f64)>,
    /// When each buffer underflow was.
    pub underflows: Vec<f64>,
    /// What was on screen, of a DASH video.
    pub shown: Vec<Shown>,
    /// Discarded pictures since the sample before.
    pub discards: Vec<u32>,
    /// Path switches (of all packets) since the sample before.
    pub path_switches: Vec<u32>,
    /// Switches of new data of a progressive video, each with its forecast: what reducers read. `None` if the run was
    /// not to [keep](crate::Keep::forecasts) them.
    #[serde(skip)]
    pub forecasts: Option<Vec<SwitchForecast>>,
    /// The numbers of discarded pictures: what reducers read.
    #[serde(skip)]
    pub discarded: Vec<u32>,
    /// What algorithms of the player and of the endpoint that sends the content emitted, by name and path.
    pub notes: Vec<NoteSeries>,
}

/// Numbers that an algorithm emitted under one name about one path, or about the whole connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NoteSeries {
    /// The name that they were emitted under.
    pub name: String,
    /// The path that they are about, if they are about one.
    pub path: Option<String>,
    /// When each was emitted, in seconds since the run began.
    pub time_s: Vec<f64>,
    /// The numbers, in the unit that their author gave them.
    pub value: Vec<f64>,
}

/// A representation on screen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Shown {
    /// When it came on screen.
    pub begin_s: f64,
    /// When another one took its place, or the session ended. The picture may have been frozen meanwhile.
    pub end_s: f64,
    /// Its nominal bitrate.
    pub bitrate_bps: f64,
    /// Width and height of its pictures; zero if not known.
    pub resolution: (u32, u32),
}

/// One path of one session over time. NaN where no subflow uses it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PathRecording {
    /// Its name.
    pub path: String,
    /// Payload acknowledged since the sample before, as a rate.
    pub throughput_bps: Vec<f32>,
    /// The mean rate that the slowest of its downlinks allowed since the sample before, headers included; infinite
    /// without a limit, zero while it is cut.
    pub capacity_bps: Vec<f32>,
    /// Congestion window in packets.
    pub cwnd_packets: Vec<f32>,
    /// Smoothed round trip.
    pub srtt_s: Vec<f32>,
    /// Beginning and end of each span in which the path policy forbade new data on it.
    pub disabled: Vec<(f64, f64)>,
    /// When each subflow of a sender that is ours was opened on it, and with which window in packets: samples begin
    /// later.
    pub opened: Vec<(f64, f64)>,
}

/// The name of a number that an algorithm emitted, and the path that it is about.
type NoteKey = (&'static str, Option<usize>);

/// Fills a [`SessionRecording`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    session: SessionRecording,
    /// By path, what each of its subflows had acknowledged at its last sample.
    acked: Vec<BTreeMap<u16, u64>>,
    /// By path, what the busiest of them brought since the sample before.
    most: Vec<u64>,
    last: Instant,
    interval: Duration,
    discards: u32,
    switches: u32,
    stalled_since: Option<Instant>,
    video: Option<Arc<DashVideo>>,
    /// Which representation is on screen, and since when.
    on_screen: Option<(Instant, u16)>,
    /// By path, since when it is forbidden.
    disabled_since: Vec<Option<Instant>>,
    /// In packets.
    initial_window: f64,
    /// Instants in seconds, and numbers.
    notes: BTreeMap<NoteKey, Vec<(f64, f64)>>,
}

impl Recorder {
    pub fn new(name: String, paths: impl IntoIterator<Item = String>, start: Instant) -> Self {
        let path = |path| PathRecording { path, ..PathRecording::default() };
        let paths: Vec<_> = paths.into_iter().map(path).collect();
        let (acked, most) = (vec![BTreeMap::new(); paths.len()], vec![0; paths.len()]);
        let disabled_since = vec![None; paths.len()];
        let session = SessionRecording { name, paths, ..SessionRecording::default() };
        Recorder { session, acked, most, disabled_since, last: start, ..Recorder::default() }
    }

    /// The session shows this video.
    #[must_use]
    pub fn of(mut self, video: Option<Arc<DashVideo>>) -> Self {
        self.video = video;
        self
    }

    /// The windows of its subflows begin with so many packets.
    #[must_use]
    pub fn with_initial_window(mut self, packets: u32) -> Self {
        self.initial_window = f64::from(packets);
        self
    }

    /// Another media segment came on screen.
    pub fn show(&mut self, at: Instant, representation: u16) {
        if self.on_screen.is_none_or(|(_, before)| before != representation) {
            self.end_shown(at);
            self.on_screen = Some((at, representation));
        }
    }

    fn end_shown(&mut self, at: Instant) {
        let (Some((since, rank)), Some(video)) = (self.on_screen.take(), &self.video) else { return };
        let representation = video.representations()[usize::from(rank)];
        self.session.shown.push(Shown {
            begin_s: since.as_secs_f64(),
            end_s: at.as_secs_f64(),
            bitrate_bps: representation.bitrate as f64,
            resolution: representation.resolution.map_or((0, 0), |r| (r.width, r.height)),
        });
    }

    /// A subflow was opened on a path, with the initial window.
    pub fn open(&mut self, at: Instant, path: usize) {
        self.session.paths[path].opened.push((at.as_secs_f64(), self.initial_window));
    }

    /// The path policy forbade new data on a path, or allowed it again.
    pub fn path_use(&mut self, at: Instant, path: usize, allowed: bool) {
        if allowed {
            self.end_disabled(at, path);
        } else {
            self.disabled_since[path].get_or_insert(at);
        }
    }

    fn end_disabled(&mut self, at: Instant, path: usize) {
        if let Some(since) = self.disabled_since[path].take() {
            self.session.paths[path].disabled.push((since.as_secs_f64(), at.as_secs_f64()));
        }
    }

    /// Begins the row of a sample: everything is unknown until it is said.
    pub fn begin(&mut self, now: Instant) {
        self.interval = now.since(self.last);
        self.last = now;
        self.session.time_s.push(now.as_secs_f64());
        self.session.buffer_s.push(f32::NAN);
        self.session.discards.push(std::mem::take(&mut self.discards));
        self.session.path_switches.push(std::mem::take(&mut self.switches));
        for path in &mut self.session.paths {
            path.throughput_bps.push(f32::NAN);
            path.cwnd_packets.push(f32::NAN);
            path.srtt_s.push(f32::NAN);
        }
    }

    /// The state of a subflow on a path. A browser may have several connections, and so a path several subflows: their
    /// rates add up, and the window and the round trip are those of the busiest.
    pub fn sample(&mut self, path: usize, subflow: u16, cwnd: f64, srtt: Duration, acked: u64) {
        let brought = acked - self.acked[path].insert(subflow, acked).unwrap_or(0);
        let recorded = &mut self.session.paths[path];
        let (Some(throughput), Some(window), Some(rtt)) =
            (recorded.throughput_bps.last_mut(), recorded.cwnd_packets.last_mut(), recorded.srtt_s.last_mut())
        else {
            return;
        };
        let first = window.is_nan();
        if !self.interval.is_zero() {
            let others = if first { 0.0 } else { *throughput };
            *throughput = others + (brought as f64 * 8.0 / self.interval.as_secs_f64()) as f32;
        }
        if first || brought > self.most[path] {
            (*window, *rtt) = (cwnd as f32, srtt.as_secs_f64() as f32);
            self.most[path] = brought;
        }
    }

    pub fn buffer(&mut self, media: Duration) {
        if let Some(last) = self.session.buffer_s.last_mut() {
            *last = media.as_secs_f64() as f32;
        }
    }

    pub fn discard(&mut self, picture: u32) {
        self.discards += 1;
        self.session.discarded.push(picture);
    }

    pub fn keep_forecasts(&mut self) {
        self.session.forecasts = Some(Vec::new());
    }

    pub fn forecast(&mut self, forecast: SwitchForecast) {
        if let (Some(forecasts), true) = (&mut self.session.forecasts, forecast.new_data) {
            forecasts.push(forecast);
        }
    }

    pub fn path_switch(&mut self) {
        self.switches += 1;
    }

    /// An algorithm emitted a number, about one of the session's paths or about the whole connection.
    pub fn note(&mut self, at: Instant, name: &'static str, path: Option<usize>, value: f64) {
        self.notes.entry((name, path)).or_default().push((at.as_secs_f64(), value));
    }

    pub fn underflow(&mut self, at: Instant) {
        self.session.underflows.push(at.as_secs_f64());
    }

    pub fn stall(&mut self, at: Instant, frozen: bool) {
        if let Some(since) = self.stalled_since.take()
            && at > since
        {
            self.session.stalls.push((since.as_secs_f64(), at.as_secs_f64()));
        }
        self.stalled_since = frozen.then_some(at);
    }

    pub fn finish(mut self, end: Instant) -> SessionRecording {
        self.stall(end, false);
        self.end_shown(end);
        (0..self.disabled_since.len()).for_each(|path| self.end_disabled(end, path));
        let paths = &self.session.paths;
        let series = self.notes.into_iter().map(|((name, path), noted)| {
            let path = path.map(|path| paths[path].path.clone());
            let (time_s, value) = noted.into_iter().unzip();
            NoteSeries { name: name.into(), path, time_s, value }
        });
        self.session.notes = series.collect();
        self.session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn rates_come_from_what_was_acknowledged_between_samples() {
        let mut r = Recorder::new("s".into(), ["a".to_string(), "b".to_string()], at(0));
        r.begin(at(100));
        r.sample(0, 0, 10.0, Duration::from_millis(50), 1_000);
        r.begin(at(200));
        r.sample(0, 0, 11.0, Duration::from_millis(60), 3_500);
        // Another subflow on the same path begins at zero again.
        r.begin(at(300));
        r.sample(0, 2, 12.0, Duration::from_millis(60), 250);
        let s = r.finish(at(300));
        assert_eq!(s.paths[0].throughput_bps, [80_000.0, 200_000.0, 20_000.0]);
        assert_eq!(s.paths[0].cwnd_packets, [10.0, 11.0, 12.0]);
        assert!(s.paths[1].throughput_bps.iter().all(|x| x.is_nan()));
        assert_eq!(s.time_s, [0.1, 0.2, 0.3]);
    }

    #[test]
    fn an_opened_subflow_has_the_initial_window_before_its_first_sample() {
        let mut r = Recorder::new("s".into(), ["a".to_string(), "b".to_string()], at(0)).with_initial_window(4);
        r.open(at(45), 0);
        r.begin(at(100));
        r.sample(0, 0, 9.0, Duration::from_millis(50), 1_000);
        r.open(at(130), 1);
        let s = r.finish(at(200));
        assert_eq!((&s.paths[0].opened, &s.paths[1].opened), (&vec![(0.045, 4.0)], &vec![(0.13, 4.0)]));
        assert_eq!(s.paths[0].cwnd_packets, [9.0]);
    }

    #[test]
    fn subflows_on_one_path_add_up() {
        let mut r = Recorder::new("s".into(), ["a".to_string()], at(0));
        for (now, busy) in [(100, 1_000), (200, 3_000)] {
            r.begin(at(now));
            r.sample(0, 0, 20.0, Duration::from_millis(50), busy);
            r.sample(0, 64, 10.0, Duration::from_millis(30), 250);
        }
        r.begin(at(300));
        r.sample(0, 0, 20.0, Duration::from_millis(50), 3_000);
        r.sample(0, 64, 12.0, Duration::from_millis(30), 500);
        let s = r.finish(at(300));
        assert_eq!(s.paths[0].throughput_bps, [100_000.0, 160_000.0, 20_000.0]);
        assert_eq!(s.paths[0].cwnd_packets, [20.0, 20.0, 12.0]);
        assert_eq!(s.paths[0].srtt_s, [0.05, 0.05, 0.03]);
    }

    #[test]
    fn discards_are_binned_and_an_open_stall_ends_with_the_run() {
        let mut r = Recorder::new("s".into(), [], at(0));
        r.discard(7);
        r.discard(8);
        r.begin(at(100));
        r.path_switch();
        r.begin(at(200));
        r.stall(at(210), true);
        r.stall(at(230), false);
        r.stall(at(250), true);
        let s = r.finish(at(300));
        assert_eq!((s.discards, s.path_switches), (vec![2, 0], vec![0, 1]));
        assert_eq!(s.discarded, [7, 8]);
        assert_eq!(s.stalls, [(0.21, 0.23), (0.25, 0.3)]);
    }

    #[test]
    fn notes_become_a_series_by_name_and_path() {
        let mut r = Recorder::new("s".into(), ["a".to_string(), "b".to_string()], at(0));
        for (ms, name, path, value) in [(10, "cost", Some(1), 1.5), (20, "all", None, 4.0), (30, "cost", Some(1), 2.5)]
        {
            r.note(at(ms), name, path, value);
        }
        let series = |name: &str, path: Option<&str>, time_s: &[f64], value: &[f64]| NoteSeries {
            name: name.into(),
            path: path.map(Into::into),
            time_s: time_s.into(),
            value: value.into(),
        };
        let expected = [series("all", None, &[0.02], &[4.0]), series("cost", Some("b"), &[0.01, 0.03], &[1.5, 2.5])];
        assert_eq!(r.finish(at(40)).notes, expected);
    }

    #[test]
    fn representations_on_screen_and_forbidden_paths_become_spans() {
        let resolution = Some(anabranch_media::content::Resolution { width: 640, height: 360 });
        let of = |bitrate, resolution| anabranch_media::content::Representation { bitrate, resolution };
        let list = vec![of(100_000, None), of(500_000, resolution)];
        let video = DashVideo::nominal(list, &[Duration::from_secs(1); 4]).unwrap();
        let mut r = Recorder::new("s".into(), ["a".to_string(), "b".to_string()], at(0)).of(Some(Arc::new(video)));
        for (ms, rank) in [(1_000, 0), (2_000, 1), (3_000, 1), (5_000, 0)] {
            r.show(at(ms), rank);
        }
        for (ms, allowed) in [(500, true), (1_500, false), (1_600, false), (4_000, true), (5_500, false)] {
            r.path_use(at(ms), 1, allowed);
        }
        let s = r.finish(at(6_000));
        let shown = |begin_s, end_s, bitrate_bps, resolution| Shown { begin_s, end_s, bitrate_bps, resolution };
        let expected = [shown(1.0, 2.0, 1e5, (0, 0)), shown(2.0, 5.0, 5e5, (640, 360)), shown(5.0, 6.0, 1e5, (0, 0))];
        assert_eq!(s.shown, expected);
        assert_eq!((&s.paths[0].disabled, &s.paths[1].disabled), (&vec![], &vec![(1.5, 4.0), (5.5, 6.0)]));
    }
}
