//! Every registered bitrate rule, in whole sessions.

mod common;

use anabranch_media::abr::dashjs::Release;
use anabranch_media::abr::{AbrOptions, Entry, Ladder, REGISTRY};
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
