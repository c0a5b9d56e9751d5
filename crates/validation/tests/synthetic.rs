//! Synthetic rates compared with the recordings that they were fitted to, where these are present.

use anabranch_validation::traces::recorded::GROUPS;
use anabranch_validation::traces::{STATISTICS, fit, summaries, table};

/// Seeds of the synthetic groups.
const SEEDS: u64 = 5;

/// How far a statistic may be off, in units of what counts as a noticeable difference, unless the recordings themselves
/// leave it more uncertain.
const TOLERANCE: f64 = 2.0;

#[test]
fn fitted_kinds_have_the_recordings_statistics() {
    for group in GROUPS.iter().filter(|group| group.fitted) {
        let real = summaries(&group.recordings());
        if real.is_empty() {
            assert!(
                std::env::var_os("ANABRANCH_REQUIRE_DATA").is_none_or(|v| v != "1"),
                "no recordings of {}",
                group.name
            );
            println!("skipped: there are no recordings of {}", group.name);
            continue;
        }
        let rows = table::compare(&real, &(table::kind(group).create)(), SEEDS);
        for (row, statistic) in rows.iter().zip(STATISTICS) {
            let (Some(real), Some(made)) = (row.real, row.made) else { continue };
            let allowed = (TOLERANCE * statistic.scale).max(2.0 * real.half);
            let off = (real.mean - made.mean).abs();
            assert!(off <= allowed, "{}: {}: {} recorded, {} made up", group.kind, row.name, real.mean, made.mean);
        }
    }
}

/// The fit's distance separates the kinds: none is nearer to another one's recordings than the one that was fitted to
/// them.
#[test]
#[ignore = "slow suite: each kind compared with the recordings of every other one"]
fn each_kind_is_nearest_to_its_own_recordings() {
    let fitted: Vec<_> = GROUPS.iter().filter(|group| group.fitted).collect();
    for group in &fitted {
        let real = summaries(&group.recordings());
        if real.is_empty() {
            continue;
        }
        let own = fit::distance(&(table::kind(group).create)(), &real);
        for other in fitted.iter().filter(|other| other.kind != group.kind) {
            let distance = fit::distance(&(table::kind(other).create)(), &real);
            assert!(own < distance, "{}: {own}, but {distance} as {}", group.kind, other.kind);
        }
    }
}
