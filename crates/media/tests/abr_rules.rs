//! Every registered bitrate rule, in whole sessions.

mod common;

use anabranch_media::abr::dashjs::Release;
use anabranch_media::abr::{
    Abandon, AbrOptions, AbrRule, Decision, Entry, Event, Ladder, Progress, REGISTRY, View, Vote,
};
use anabranch_units::Duration;
use common::network::{Mood, Network};
use common::session::{Session, Setup, Step};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

const BITRATES: [u64; 5] = [300_000, 750_000, 1_200_000, 2_350_000, 4_300_000];

/// A session of two-second media segments with a buffer that every rule can use.
fn session(entry: &Entry, mood: Mood, top: usize, seed: u64) -> Session {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let buffer = Duration::from_secs(240);
    let setup = Setup {
        ladder: Ladder::new(BITRATES.to_vec(), Duration::from_secs(2), 300).unwrap(),
        release: Release::V5,
        stable_buffer: buffer,
        top_buffer: buffer,
        stated_target: None,
        top,
        initial: 0,
        seeks: 1,
        replacements: 10,
        dropped_percent: 0,
    };
    let rule = (entry.create)(&AbrOptions::default()).unwrap();
    let network = Network::new(mood, &mut rng);
    Session::new(setup, rule, network, rng)
}

const WILD: Mood = Mood { bps: (100_000.0, 9_000_000.0), step: f64::INFINITY, hold_ms: 8_000, latency_ms: 200 };
const FAST: Mood = Mood { bps: (60_000_000.0, 70_000_000.0), step: 1.1, hold_ms: 8_000, latency_ms: 20 };
const SLOW: Mood = Mood { bps: (320_000.0, 340_000.0), step: 1.1, hold_ms: 8_000, latency_ms: 20 };

#[test]
fn every_rule_streams_over_a_wild_network_and_stays_within_the_limit() {
    for entry in REGISTRY {
        for top in [0, 2, 4] {
            let mut session = session(entry, WILD, top, 7);
            session.fetch(200);
            assert!(session.fetched().iter().all(|&r| r <= top), "{}: {:?}", entry.name, session.fetched());
        }
    }
}

#[test]
fn every_rule_finds_the_top_of_a_fast_network() {
    for entry in REGISTRY {
        let mut session = session(entry, FAST, 4, 7);
        session.fetch(200);
        let top = session.fetched().iter().filter(|&&r| r == 4).count();
        assert!(top > 50, "{}: {:?}", entry.name, session.fetched());
    }
}

#[test]
fn every_rule_that_adapts_stays_low_on_a_slow_network() {
    for entry in REGISTRY.iter().filter(|entry| entry.name != "fixed") {
        let mut session = session(entry, SLOW, 4, 7);
        session.fetch(100);
        let low = session.fetched().iter().filter(|&&r| r == 0).count();
        assert!(low >= 90, "{}: {:?}", entry.name, session.fetched());
    }
}

#[test]
fn the_same_session_gives_the_same_decisions() {
    for entry in REGISTRY {
        let run = || {
            let mut session = session(entry, WILD, 4, 11);
            session.fetch(100);
            format!("{:?}", session.steps)
        };
        assert_eq!(run(), run(), "{}", entry.name);
    }
}

#[test]
fn every_decision_has_a_reason() {
    for entry in REGISTRY {
        let mut session = session(entry, WILD, 4, 5);
        session.fetch(50);
        for (_, step) in &session.steps {
            if let Step::Decided { decision, .. } = step {
                assert!(!decision.reason.is_empty() && decision.wait < Duration::from_secs(3_600), "{}", entry.name);
            }
        }
    }
}

/// What a rule receives between two decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Finished,
    Aborted,
    Init,
    Measured,
    State,
    Seeked,
    Shown,
    Progress,
}

impl Input {
    const ALL: [Input; 8] = [
        Input::Finished,
        Input::Aborted,
        Input::Init,
        Input::Measured,
        Input::State,
        Input::Seeked,
        Input::Shown,
        Input::Progress,
    ];

    fn of(event: &Event<'_>) -> Input {
        match event {
            Event::SegmentFinished(_) => Input::Finished,
            Event::SegmentAborted(_) => Input::Aborted,
            Event::InitFinished => Input::Init,
            Event::BufferMeasured => Input::Measured,
            Event::BufferState(_) => Input::State,
            Event::Seeked => Input::Seeked,
            Event::Shown { .. } => Input::Shown,
        }
    }

    /// What the next decision of a rule depends on besides the view. All rules of dash.js look at the downloads and at
    /// the progress of requests, from which they abandon some, and at seeks. 2.2 takes the time of an initialisation
    /// segment for latency. The later ones choose between BOLA and the throughput by the measured buffer; 2.9 empties
    /// BOLA's placeholder with the buffer, and counts the pictures that each representation dropped. 5 counts aborted
    /// requests too; it empties the placeholder as well, but then chooses by the throughput until BOLA has filled it
    /// again, and it counts pictures only where an option says so. RobustMPC compares its forecast with the download
    /// behind it, and BOLA abandons requests.
    fn needed(rule: &str) -> &'static [Input] {
        use Input::{Aborted, Finished, Init, Measured, Progress, Seeked, Shown, State};
        match rule {
            "dash.js-2.2" => &[Finished, Init, Seeked, Progress],
            "dash.js-2.9" => &[Finished, Measured, State, Seeked, Shown, Progress],
            "dash.js-5" => &[Finished, Aborted, Measured, Seeked, Progress],
            "robust-mpc" => &[Finished],
            "bola" => &[Progress],
            "bba-0" | "rate" | "fixed" => &[],
            other => panic!("what may the decisions of `{other}` depend on?"),
        }
    }
}

/// A rule that one kind of input does not reach.
#[derive(Debug)]
struct Deaf {
    rule: Box<dyn AbrRule>,
    to: Input,
}

impl AbrRule for Deaf {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        self.rule.decide(view)
    }

    fn observe(&mut self, view: &View<'_>, event: &Event<'_>) {
        if Input::of(event) != self.to {
            self.rule.observe(view, event);
        }
    }

    fn on_progress(&mut self, view: &View<'_>, progress: &Progress) -> Option<Abandon> {
        if self.to == Input::Progress { None } else { self.rule.on_progress(view, progress) }
    }

    fn votes(&self) -> &[Vote] {
        self.rule.votes()
    }
}

/// The decisions of a rule, or of one that does not receive an input, in an eventful session: with stalls, seeks,
/// replaced media segments, new representations on screen and dropped pictures.
fn decisions(entry: &Entry, deaf_to: Option<Input>, seed: u64) -> Vec<Decision> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let buffer = Duration::from_secs(30);
    let setup = Setup {
        stable_buffer: buffer,
        top_buffer: buffer,
        seeks: 5,
        dropped_percent: 10 * (seed % 4),
        ..session(entry, WILD, 4, seed).setup
    };
    let rule = (entry.create)(&AbrOptions::default()).unwrap();
    let rule = match deaf_to {
        Some(to) => Box::new(Deaf { rule, to }),
        None => rule,
    };
    let network = Network::new(WILD, &mut rng);
    let mut session = Session::new(setup, rule, network, rng);
    session.fetch(150);
    let decided = session.steps.into_iter().filter_map(|(_, step)| match step {
        Step::Decided { decision, .. } => Some(decision),
        _ => None,
    });
    decided.collect()
}

/// A rule that forgets something at an event that it does not name shows here, as one that ignores what it should use.
#[test]
fn decisions_depend_on_the_inputs_that_the_rule_names_and_on_no_others() {
    for entry in REGISTRY {
        let complete: Vec<_> = (0..EVENTFUL_SESSIONS).map(|seed| decisions(entry, None, seed)).collect();
        let matters = |input: &Input| {
            let mut sessions = complete.iter().zip(0..);
            sessions.any(|(complete, seed)| decisions(entry, Some(*input), seed) != *complete)
        };
        let found: Vec<Input> = Input::ALL.into_iter().filter(matters).collect();
        assert_eq!(found, Input::needed(entry.name), "{}", entry.name);
    }
}

/// Enough that every input of every rule matters in one of them.
const EVENTFUL_SESSIONS: u64 = 24;
