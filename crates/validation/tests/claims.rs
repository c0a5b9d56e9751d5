//! The machinery behind the papers' claims, with short videos and few seeds. No test asserts that a claim holds.

use anabranch_scenario::load;
use anabranch_validation::claims::Claim;
use anabranch_validation::claims::reproduction::{Effort, Paper};
use anabranch_validation::claims::streaming::{Change, Condition, Study, Variant, dash, mptcp_plus};
use anabranch_validation::runs::{set, shipped};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

/// Twelve seconds of video, or a megabyte, so that a study takes seconds.
const SHORT: Variant = Variant {
    name: "short",
    change: |condition| match condition.changes.iter().any(|(key, _)| key == "session.0.video") {
        true => vec![set("session.0.video.size", "1 MB")],
        false => vec![set("session.0.video.duration", "12 s"), set("session.0.statistics", "{}")],
    },
};

fn study(conditions: &[Condition], seeds: u64) -> Study {
    Study::run(conditions, SHORT, seeds, &|| true).expect("nothing stops it")
}

fn check(claims: &[Claim], ids: &[&str]) {
    assert_eq!(claims.iter().map(|claim| claim.id).collect::<Vec<_>>(), ids);
    for claim in claims {
        assert!(!claim.claim.is_empty() && !claim.criterion.is_empty(), "{}", claim.id);
        for finding in &claim.findings {
            let measured = finding.text.contains('±') || finding.text.contains("correlation");
            assert!(measured, "{}: a finding shows its interval: {}", claim.id, finding.text);
        }
    }
}

#[test]
fn every_claim_of_dash_over_mptcp_is_judged_from_every_condition() {
    let conditions = dash::conditions();
    assert_eq!(conditions.len(), 3 * (5 + 2));
    let study = study(&conditions, 2);
    let claims = dash::claims(&study);
    check(&claims, &["D1", "D2", "D3", "D4", "D5", "D6", "D7", "D8", "D9"]);
    assert_eq!(study.unfinished(), (0, 42));
    let quantities = dash::quantities(&study);
    assert!(quantities.iter().all(|q| claims.iter().any(|claim| claim.id == q.claim) && q.ours.count == 2));
    assert_eq!(quantities.iter().filter(|q| !q.paper.is_empty()).count(), 4 + 4 + 3, "every number of the paper");
    // Start-up needs no statistics window: two segments of a second are there sooner than two of ten.
    let startup = |condition| study.values(condition, |seen| seen.startup_s);
    assert!(startup("1 s 1:1").iter().zip(startup("10 s 1:1")).all(|(short, long)| *short < long));
}

#[test]
fn every_claim_of_mptcp_plus_is_judged_from_every_condition() {
    let study = study(&mptcp_plus::conditions(), 2);
    let friendliness = Claim { id: "P9", claim: "measured elsewhere", criterion: "none", findings: Vec::new() };
    let claims = mptcp_plus::claims(&study, friendliness);
    check(&claims, &["P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9", "P10", "P11"]);
    let quantities = mptcp_plus::quantities(&study);
    assert!(quantities.iter().all(|q| claims.iter().any(|claim| claim.id == q.claim)));
}

#[test]
fn the_same_seeds_give_the_same_findings() {
    let some = &dash::conditions()[..2];
    let values = |study: &Study| {
        let of = |condition: &Condition| study.values(&condition.name, |seen| seen.bitrate_bps + seen.delay_s);
        some.iter().map(of).collect::<Vec<_>>()
    };
    let (once, again) = (study(some, 3), study(some, 3));
    assert_eq!(values(&once), values(&again));
    assert_eq!(values(&once.first(2)), values(&study(some, 2)), "more seeds do not change the first ones");
}

#[test]
fn a_study_can_be_stopped_and_says_how_far_it_is() {
    let some = &dash::conditions()[..2];
    let ticks = AtomicU64::new(0);
    let count = || ticks.fetch_add(1, Ordering::Relaxed) < u64::MAX;
    assert!(Study::run(some, SHORT, 2, &count).is_some());
    assert_eq!(ticks.into_inner(), 4);
    assert!(Study::run(some, SHORT, 2, &|| false).is_none());
    let effort = Effort { seeds: 10, sensitivity: false };
    assert_eq!(effort.ticks(Paper::Dash), 210);
    assert!(Effort { sensitivity: true, ..effort }.ticks(Paper::Dash) > 1000);
}

/// A misspelt key would be refused; one that changes nothing would be an assumption that is never varied.
#[test]
fn every_variant_of_the_assumptions_changes_a_scenario() {
    let papers = [(dash::conditions(), &dash::VARIANTS[..]), (mptcp_plus::conditions(), &mptcp_plus::VARIANTS[..])];
    for (conditions, variants) in papers {
        let names: BTreeSet<&str> = conditions.iter().map(|condition| condition.name.as_str()).collect();
        assert_eq!(names.len(), conditions.len(), "names are unique");
        for variant in variants {
            let differs = |condition: &Condition| {
                resolved(condition, (variant.change)(condition)) != resolved(condition, Vec::new())
            };
            let different = conditions.iter().filter(|condition| differs(condition)).count();
            assert_eq!(different > 0, variant.name != "as shipped", "{}", variant.name);
        }
    }
}

fn resolved(condition: &Condition, more: Vec<Change>) -> String {
    let changes: Vec<Change> = condition.changes.iter().cloned().chain(more).collect();
    load(shipped(condition.scenario), &condition.name, None, &changes).unwrap_or_else(|e| panic!("{e}")).resolved()
}
