//! The comparison from end to end, with a kernel for the live runs, over seconds instead of minutes. The slow suite runs the real ones.

#![cfg(target_os = "linux")]

use anabranch_equivalence::campaign::run;
use anabranch_equivalence::kernel::Kernel;
use anabranch_equivalence::question::Part;
use anabranch_equivalence::report::CampaignReport;
use anabranch_equivalence::test_cases::all;
use anabranch_live::requirements::skips_test;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const SECONDS: u32 = 4;

#[test]
fn live_runs_of_either_server_are_compared_with_simulated_ones() {
    if skips_test(&[]) {
        return;
    }
    let parts = [Part::OnePath, Part::OurServer];
    let first = |part: &Part| {
        let mut case = all(&[*part], true).swap_remove(0);
        let shorter = case.scenario.replace("duration = \"60 s\"", &format!("duration = \"{SECONDS} s\""));
        assert_ne!(shorter, case.scenario);
        (case.scenario, case.seconds) = (shorter, SECONDS);
        case
    };
    let cases: Vec<_> = parts.iter().map(first).collect();
    let runs: u32 = cases.iter().map(|case| case.live_runs).sum();
    let over = AtomicUsize::new(0);
    let count = |done: usize, of: usize, _: &str| {
        assert!(done <= of && of == runs as usize);
        over.fetch_add(1, Ordering::Relaxed);
    };
    let kernel = Kernel::running().expect("a known build");
    let campaign = run(cases, kernel, 4, None, &AtomicBool::new(false), &count);
    assert_eq!(over.into_inner(), runs as usize);
    for found in &campaign.found {
        assert!(found.errors.is_empty(), "{:?}", found.errors);
        // A busy machine is too late for the links of some runs; these are tried again, and do not count.
        assert!(found.live.len() as u32 == found.case.live_runs || found.invalid > 0, "{found:?}");
        let Some(judgement) = &found.judgement else { continue };
        assert!(found.live.iter().all(|run| run.goodput_bps > 1e5), "{found:?}");
        for compared in &judgement.compared {
            assert!(compared.simulated.is_finite() && compared.live.is_finite(), "{compared:?}");
        }
        // What a few seconds tell is little, but half or twice the goodput would be another network.
        let goodput = &judgement.compared[0];
        assert!((0.5..2.0).contains(&(goodput.simulated / goodput.live)), "{goodput:?}");
    }
    let report = CampaignReport::of(campaign);
    assert_eq!(report.parts.iter().map(|part| part.letter).collect::<Vec<_>>(), ["a", "c"]);
    assert!(report.parts.iter().all(|part| !part.rows.is_empty()));
}
