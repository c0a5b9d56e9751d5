//! A player reduced to the interface of bitrate rules, over a [`Network`]. It makes every move of a player (pauses,
//! seeks, replaced and abandoned media segments, stalls) and records the events and the rule's answers.

use super::network::Network;
use anabranch_media::abr::dashjs::{BufferWatch, Release, Reporter, Requested};
use anabranch_media::abr::{
    AbrRule, BufferState, Decision, Download, Event, Ladder, Mark, Pictures, Playback, Progress, View,
};
use anabranch_media::cmcd::Cmcd;
use anabranch_units::{Duration, Instant};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// The constant parameters of a session.
#[derive(Clone, Debug)]
pub struct Setup {
    pub ladder: Ladder,
    pub release: Release,
    pub stable_buffer: Duration,
    /// The buffer to hold at the top representation.
    pub top_buffer: Duration,
    /// The target that the rule gets, if it is not the true one (a stale metric of dash.js 2.2).
    pub stated_target: Option<Duration>,
    pub top: usize,
    pub initial: usize,
    /// Of a thousand media segments, how many are sought away from, and how many fetched twice.
    pub seeks: u32,
    pub replacements: u32,
    /// Of a hundred pictures, how many are dropped.
    pub dropped_percent: u64,
}

/// An event for the rule, or a question with its answer.
#[derive(Clone, Debug)]
pub enum Step {
    Level(Duration),
    State(BufferState),
    Decided {
        pictures: Pictures,
        target: Duration,
        decision: Decision,
        votes: Vec<(&'static str, usize)>,
    },
    Reported {
        progress: Progress,
        abandon: Option<usize>,
    },
    /// A request for a media segment, with what dash.js 5 reports.
    Requested {
        index: u64,
        representation: usize,
        cmcd: Cmcd,
    },
    Finished(Download),
    Aborted(Download),
    Init,
    Seek,
    Shown {
        from: usize,
        to: usize,
        pictures: Pictures,
    },
}

/// The end of a request.
enum Outcome {
    Complete,
    Abandoned(usize),
    SoughtAway,
}

const PICTURES_PER_SECOND: u64 = 25;
/// Time until a player with a full buffer checks again (dash.js: `startScheduleTimer(500)`).
const RETRY: Duration = Duration::from_millis(500);

pub struct Session {
    pub setup: Setup,
    rule: Box<dyn AbrRule>,
    network: Network,
    rng: ChaCha8Rng,
    now: Instant,
    /// The buffer level, and its last measurement.
    level: Duration,
    measured: Duration,
    watch: BufferWatch,
    reporter: Reporter,
    playing: bool,
    begun: bool,
    played: Duration,
    pictures: Pictures,
    downloads: Vec<Download>,
    current: usize,
    initialised: Option<usize>,
    shown: Option<usize>,
    next: u64,
    pub steps: Vec<(Instant, Step)>,
}

impl Session {
    pub fn new(setup: Setup, rule: Box<dyn AbrRule>, network: Network, rng: ChaCha8Rng) -> Self {
        Session {
            watch: BufferWatch::new(setup.release, setup.stable_buffer),
            reporter: Reporter::default(),
            current: setup.initial,
            setup,
            rule,
            network,
            rng,
            now: Instant::ZERO,
            level: Duration::ZERO,
            measured: Duration::ZERO,
            playing: false,
            begun: false,
            played: Duration::ZERO,
            pictures: Pictures::default(),
            downloads: Vec::new(),
            initialised: None,
            shown: None,
            next: 0,
            steps: Vec::new(),
        }
    }

    /// Fetches this many media segments.
    pub fn fetch(&mut self, segments: usize) {
        self.measure();
        while self.downloads.len() < segments {
            self.wait_for_room();
            let wait = self.decide();
            self.play(wait);
            self.fetch_next();
        }
    }

    /// The representations of the media segments, in the order in which they were fetched.
    pub fn fetched(&self) -> Vec<usize> {
        self.downloads.iter().map(|d| d.representation).collect()
    }

    fn one_in_thousand(&mut self, n: u32) -> bool {
        self.rng.random_range(0..1_000) < n
    }

    fn note(&mut self, step: Step) {
        self.steps.push((self.now, step));
    }

    fn target(&self) -> Duration {
        if self.current == self.setup.top { self.setup.top_buffer } else { self.setup.stable_buffer }
    }

    fn stated_target(&self) -> Duration {
        self.setup.stated_target.unwrap_or(self.target())
    }

    fn emit(&mut self, event: &Event<'_>) {
        let (rule, view) = self.rule_and_view();
        rule.observe(&view, event);
    }

    fn rule_and_view(&mut self) -> (&mut dyn AbrRule, View<'_>) {
        let view = View {
            ladder: &self.setup.ladder,
            now: self.now,
            buffer: self.measured,
            buffer_state: self.watch.state(),
            buffer_target: self.stated_target(),
            playback: if self.begun { Playback::Steady } else { Playback::Startup },
            current: self.current,
            top: self.setup.top,
            next: self.next,
            downloads: &self.downloads,
            pictures: self.pictures,
        };
        (self.rule.as_mut(), view)
    }

    fn measure(&mut self) {
        self.measured = self.level;
        self.note(Step::Level(self.level));
        self.emit(&Event::BufferMeasured);
        if let Some(state) = self.watch.measure(self.level, self.begun, false) {
            self.note(Step::State(state));
            if state == BufferState::Empty {
                self.reporter.note_empty();
            }
            self.emit(&Event::BufferState(state));
        }
    }

    /// Lets time pass, with measurements as by dash.js at a browser's `timeupdate`.
    fn play(&mut self, length: Duration) {
        let end = self.now + length;
        while self.now < end {
            let tick = Duration::from_micros(self.rng.random_range(150_000..350_000)).min(end.since(self.now));
            self.now += tick;
            if self.playing {
                let shown = tick.min(self.level);
                self.level -= shown;
                self.played += shown;
                self.begun = true;
                self.playing = !self.level.is_zero();
                self.pictures.total = self.played.as_millis() * PICTURES_PER_SECOND / 1_000;
                self.pictures.dropped = self.pictures.total * self.setup.dropped_percent / 100;
                self.measure();
            }
        }
    }

    fn wait_for_room(&mut self) {
        self.start_playing();
        while self.level >= self.target() {
            self.play(RETRY);
        }
    }

    fn start_playing(&mut self) {
        let stalled = self.begun && self.watch.state() == Some(BufferState::Empty);
        self.playing = self.playing || (!self.level.is_zero() && !stalled);
    }

    /// Asks for a decision, and again for as long as a new representation must be initialised first; returns the wait.
    fn decide(&mut self) -> Duration {
        loop {
            let (rule, view) = self.rule_and_view();
            let decision = rule.decide(&view);
            let votes = rule.votes().iter().map(|v| (v.rule, v.representation)).collect();
            let (pictures, target) = (self.pictures, self.stated_target());
            self.note(Step::Decided { pictures, target, decision, votes });
            self.current = decision.representation;
            if self.initialised == Some(self.current) {
                return decision.wait;
            }
            self.initialise();
        }
    }

    fn initialise(&mut self) {
        self.initialised = Some(self.current);
        let latency = self.network.latency(&mut self.rng);
        self.play(latency);
        self.note(Step::Init);
        self.emit(&Event::InitFinished);
    }

    fn fetch_next(&mut self) {
        let replaces = self.next > 3 && self.one_in_thousand(self.setup.replacements);
        let index = if replaces { self.next - 2 } else { self.next };
        loop {
            match self.request(index) {
                Outcome::Complete => break,
                Outcome::SoughtAway => return,
                Outcome::Abandoned(representation) => {
                    self.current = representation;
                    if self.initialised != Some(representation) {
                        self.initialise();
                    }
                }
            }
        }
        if !replaces {
            self.next += 1;
            self.level += self.setup.ladder.segment_duration();
        }
        self.measure();
        self.show();
        self.start_playing();
    }

    fn show(&mut self) {
        let to = self.current;
        if let Some(from) = self.shown.replace(to).filter(|&from| from != to) {
            self.note(Step::Shown { from, to, pictures: self.pictures });
            self.emit(&Event::Shown { from, to });
        }
    }

    fn request(&mut self, index: u64) -> Outcome {
        let requested_at = self.now;
        let representation = self.current;
        self.report_request(index);
        let nominal = self.setup.ladder.segment_bytes(representation, index) as f64;
        let total = (nominal * self.rng.random_range(0.5..1.6)).max(1.0) as u64;
        let latency = self.network.latency(&mut self.rng);
        self.play(latency);
        let first_byte_at = self.now;
        let mut first_progress = None;
        let mut arrived = 0.0;
        // The first report may come with the first bytes, the next not before 50 ms.
        let mut pause = Duration::from_micros(self.rng.random_range(1..20_000));
        loop {
            let from = self.now;
            self.play(pause);
            arrived += self.network.bytes(from, self.now, &mut self.rng);
            let bytes = (arrived as u64).min(total);
            if bytes < total {
                first_progress.get_or_insert(Mark { at: self.now, bytes });
            }
            let last_progress = Mark { at: self.now, bytes };
            let progress = Progress { index, representation, requested_at, first_progress, bytes, total };
            let download = Download {
                index,
                representation,
                requested_at,
                first_byte_at,
                first_progress,
                last_progress,
                finished_at: self.now,
            };
            if let Some(outcome) = self.report(progress, download) {
                return outcome;
            }
            pause = Duration::from_micros(self.rng.random_range(50_000..150_000));
        }
    }

    /// Releases before the fifth have no CMCD as it is here.
    fn report_request(&mut self, index: u64) {
        if self.setup.release != Release::V5 {
            return;
        }
        let (representation, ladder) = (self.current, &self.setup.ladder);
        let cmcd = self.reporter.report(&Requested {
            buffer: self.measured,
            bitrate: ladder.bitrates()[representation],
            top: ladder.bitrates()[self.setup.top],
            duration: ladder.segment_duration(),
        });
        self.note(Step::Requested { index, representation, cmcd });
    }

    fn report(&mut self, progress: Progress, download: Download) -> Option<Outcome> {
        let (rule, view) = self.rule_and_view();
        let abandon = rule.on_progress(&view, &progress).map(|a| a.representation);
        self.note(Step::Reported { progress, abandon });
        if let Some(representation) = abandon {
            // The rule sees the abort after its effects.
            self.current = representation;
            self.note(Step::Aborted(download));
            self.emit(&Event::SegmentAborted(&download));
            return Some(Outcome::Abandoned(representation));
        }
        if progress.bytes == progress.total {
            self.note(Step::Finished(download));
            self.emit(&Event::SegmentFinished(&download));
            self.downloads.push(download);
            return Some(Outcome::Complete);
        }
        if self.one_in_thousand(self.setup.seeks) {
            self.seek(download);
            return Some(Outcome::SoughtAway);
        }
        None
    }

    fn seek(&mut self, running: Download) {
        self.note(Step::Seek);
        self.emit(&Event::Seeked);
        self.note(Step::Aborted(running));
        self.emit(&Event::SegmentAborted(&running));
        self.level = Duration::ZERO;
        self.playing = false;
        // Sometimes the very media segment that was being fetched.
        self.next += self.rng.random_range(0..4u64);
        self.measure();
    }
}
