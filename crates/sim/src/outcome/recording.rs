//! What a picture of the run needs: columns sampled at the scenario's interval, and lists of what happened when.

use anabranch_units::{Duration, Instant};
use serde::Serialize;

/// Sessions beyond this number are not recorded, so that a run with thousands of viewers fits into memory.
pub(crate) const MOST_RECORDED: usize = 16;

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
    /// What, in a few words, such as "wifi down".
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
    /// Discarded pictures since the sample before.
    pub discards: Vec<u32>,
    /// Path switches (of all packets) since the sample before.
    pub path_switches: Vec<u32>,
}

/// One path of one session over time. NaN where no subflow uses it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PathRecording {
    /// Its name.
    pub path: String,
    /// Payload acknowledged since the sample before, as a rate.
    pub throughput_bps: Vec<f32>,
    /// Congestion window in packets.
    pub cwnd_packets: Vec<f32>,
    /// Smoothed round trip.
    pub srtt_s: Vec<f32>,
}

/// Fills a [`SessionRecording`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    session: SessionRecording,
    /// What each path's present subflow had acknowledged at the last sample, and which subflow it was.
    acked: Vec<Option<(u16, u64)>>,
    last: Instant,
    interval: Duration,
    discards: u32,
    switches: u32,
    stalled_since: Option<Instant>,
}

impl Recorder {
    pub fn new(name: String, paths: impl IntoIterator<Item = String>, start: Instant) -> Self {
        let path = |path| PathRecording { path, ..PathRecording::default() };
        let paths: Vec<_> = paths.into_iter().map(path).collect();
        let acked = vec![None; paths.len()];
        let session = SessionRecording { name, paths, ..SessionRecording::default() };
        Recorder { session, acked, last: start, ..Recorder::default() }
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

    /// The state of a subflow on a path.
    pub fn sample(&mut self, path: usize, subflow: u16, cwnd: f64, srtt: Duration, acked: u64) {
        let before = match self.acked[path] {
            Some((same, before)) if same == subflow => before,
            _ => 0,
        };
        self.acked[path] = Some((subflow, acked));
        let recorded = &mut self.session.paths[path];
        let (Some(throughput), Some(window), Some(rtt)) =
            (recorded.throughput_bps.last_mut(), recorded.cwnd_packets.last_mut(), recorded.srtt_s.last_mut())
        else {
            return;
        };
        if !self.interval.is_zero() {
            *throughput = ((acked - before) as f64 * 8.0 / self.interval.as_secs_f64()) as f32;
        }
        *window = cwnd as f32;
        *rtt = srtt.as_secs_f64() as f32;
    }

    pub fn buffer(&mut self, media: Duration) {
        if let Some(last) = self.session.buffer_s.last_mut() {
            *last = media.as_secs_f64() as f32;
        }
    }

    pub fn discard(&mut self) {
        self.discards += 1;
    }

    pub fn path_switch(&mut self) {
        self.switches += 1;
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
    fn discards_are_binned_and_an_open_stall_ends_with_the_run() {
        let mut r = Recorder::new("s".into(), [], at(0));
        r.discard();
        r.discard();
        r.begin(at(100));
        r.path_switch();
        r.begin(at(200));
        r.stall(at(210), true);
        r.stall(at(230), false);
        r.stall(at(250), true);
        let s = r.finish(at(300));
        assert_eq!((s.discards, s.path_switches), (vec![2, 0], vec![0, 1]));
        assert_eq!(s.stalls, [(0.21, 0.23), (0.25, 0.3)]);
    }
}
