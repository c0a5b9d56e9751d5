//! A player over a network of constant rates, without latency: the network model of Sabre and of Pensieve's
//! environment. All times are seconds.

use anabranch_media::abr::{AbrRule, BufferState, Download, Event, Ladder, Mark, Pictures, Playback, Progress, View};
use anabranch_units::{Duration, Instant};

/// Both simulators report the progress of a download no more often than this.
const REPORT_INTERVAL: f64 = 0.05;

/// A rate and for how long it holds.
#[derive(Clone, Copy, Debug)]
pub struct Period {
    pub seconds: f64,
    pub bps: f64,
}

/// The rates of a synthetic network, between `low` and `high` kbit/s, each for 4 to 20 s: numbers of the linear
/// congruential generator of POSIX's `rand`, which the other simulators' input was made with too.
pub fn sequence(seed: u64, low: u64, high: u64) -> Vec<Period> {
    let mut state = seed;
    let mut next = |below: u64| {
        state = (state * 1_103_515_245 + 12_345) % (1 << 31);
        (state >> 8) % below
    };
    let mut period = || {
        let bps = 1_000.0 * (low + next(high - low)) as f64;
        Period { seconds: (4_000 + next(16_000)) as f64 / 1_000.0, bps }
    };
    (0..40).map(|_| period()).collect()
}

/// The player.
pub struct Fluid {
    pub ladder: Ladder,
    /// The network; it begins again at its end.
    pub periods: Vec<Period>,
    /// The representation of the first media segment.
    pub first: usize,
    /// Above this level it sleeps for a multiple of half a second (Pensieve).
    pub sleeps_above: Option<f64>,
}

/// The outcome of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The representation of each request, the abandoned ones included.
    pub requested: Vec<usize>,
    pub abandoned: usize,
    /// Seconds of stalls, without the start-up.
    pub stalled: f64,
}

/// The session so far.
struct State {
    now: f64,
    level: f64,
    next: u64,
    current: usize,
    downloads: Vec<Download>,
    outcome: Outcome,
}

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

impl Fluid {
    /// The time at which `bits` that begin to flow at `from` have arrived.
    fn arrival(&self, from: f64, bits: f64) -> f64 {
        let cycle: f64 = self.periods.iter().map(|period| period.seconds).sum();
        let (mut skip, mut end, mut left) = (from % cycle, from, bits);
        for period in self.periods.iter().cycle() {
            let lasts = (period.seconds - skip).max(0.0);
            skip = (skip - period.seconds).max(0.0);
            if left <= lasts * period.bps {
                return end + left / period.bps;
            }
            left -= lasts * period.bps;
            end += lasts;
        }
        unreachable!("the network begins again")
    }

    fn view<'a>(&'a self, state: &'a State) -> View<'a> {
        View {
            ladder: &self.ladder,
            now: at(state.now),
            buffer: Duration::from_secs_f64(state.level),
            buffer_state: Some(BufferState::Loaded),
            buffer_target: Duration::ZERO,
            playback: Playback::Steady,
            current: state.current,
            top: self.ladder.len() - 1,
            next: state.next,
            downloads: &state.downloads,
            pictures: Pictures::default(),
        }
    }

    fn play(state: &mut State, seconds: f64) {
        if state.next > 0 {
            state.outcome.stalled += (seconds - state.level).max(0.0);
        }
        state.level = (state.level - seconds).max(0.0);
        state.now += seconds;
    }

    /// A whole session.
    pub fn stream(&self, rule: &mut dyn AbrRule) -> Outcome {
        let outcome = Outcome::default();
        let mut state = State { now: 0.0, level: 0.0, next: 0, current: self.first, downloads: Vec::new(), outcome };
        let p = self.ladder.segment_duration().as_secs_f64();
        while state.next < self.ladder.segments() {
            let decision = rule.decide(&self.view(&state));
            Self::play(&mut state, decision.wait.as_secs_f64());
            state.current = decision.representation;
            while let Some(instead) = self.fetch(&mut state, rule) {
                state.outcome.abandoned += 1;
                state.current = instead;
            }
            state.level += p;
            state.next += 1;
            let excess = self.sleeps_above.map_or(0.0, |limit| (state.level - limit).max(0.0));
            Self::play(&mut state, (excess / 0.5).ceil() * 0.5);
        }
        state.outcome
    }

    /// Fetches a media segment; returns the representation to fetch instead if the rule abandons it.
    fn fetch(&self, state: &mut State, rule: &mut dyn AbrRule) -> Option<usize> {
        state.outcome.requested.push(state.current);
        let (index, representation, began) = (state.next, state.current, state.now);
        let total = self.ladder.segment_bytes(representation, index);
        let end = self.arrival(began, total as f64 * 8.0);
        while state.now + REPORT_INTERVAL < end {
            Self::play(state, REPORT_INTERVAL);
            // As a player does between two reports.
            rule.observe(&self.view(state), &Event::BufferMeasured);
            let bytes = (self.bits(began, state.now) / 8.0) as u64;
            let first_progress = Some(Mark { at: at(began), bytes: 0 });
            let progress = Progress { index, representation, requested_at: at(began), first_progress, bytes, total };
            if let Some(abandon) = rule.on_progress(&self.view(state), &progress) {
                return Some(abandon.representation);
            }
        }
        let rest = end - state.now;
        Self::play(state, rest);
        let download = Download {
            index,
            representation,
            requested_at: at(began),
            first_byte_at: at(began),
            first_progress: None,
            last_progress: Mark { at: at(end), bytes: total },
            finished_at: at(end),
        };
        rule.observe(&self.view(state), &Event::SegmentFinished(&download));
        state.downloads.push(download);
        None
    }

    /// The bits that arrive between two times.
    fn bits(&self, from: f64, to: f64) -> f64 {
        let cycle: f64 = self.periods.iter().map(|period| period.seconds).sum();
        let whole: f64 = self.periods.iter().map(|period| period.seconds * period.bps).sum();
        let until = |time: f64| {
            let mut left = time % cycle;
            let within = self.periods.iter().map(|period| {
                let lasts = left.clamp(0.0, period.seconds);
                left -= lasts;
                lasts * period.bps
            });
            (time / cycle).floor() * whole + within.sum::<f64>()
        };
        until(to) - until(from)
    }
}
