//! Measures the claims of the sticky schedulers' and the handoff paper, and prints verdicts and tables as Markdown.
//!
//! `claims [--seeds N] [--write FILE]`: ten seeds if not said otherwise; the variants of the assumptions get fewer. With
//! `--write` the parts go into FILE, between their markers. Nothing fails if a claim does.

use anabranch_validation::claims::study::{HANDOFF, STICKY};
use anabranch_validation::claims::{Study, VARIANTS, forecasts, tables};
use anabranch_validation::report::replace_part;
use std::path::PathBuf;
use std::process::ExitCode;

/// Seeds where nothing else is asked for.
const SEEDS: u64 = 10;
/// Seeds of a variant, at most: it only has to tell whether a verdict changes.
const VARIANT_SEEDS: u64 = 4;
/// Seeds of the forecasts, which record every event, at most.
const FORECAST_SEEDS: u64 = 3;

fn main() -> ExitCode {
    let (mut seeds, mut file) = (SEEDS, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match (argument.as_str(), arguments.next()) {
            ("--write", Some(path)) => file = Some(PathBuf::from(path)),
            // An interval needs two values.
            ("--seeds", Some(n)) if n.parse::<u64>().is_ok_and(|n| n >= 2) => seeds = n.parse().unwrap_or(SEEDS),
            _ => {
                eprintln!("usage: claims [--seeds N] [--write FILE], N at least 2");
                return ExitCode::from(2);
            }
        }
    }
    let parts = measure(seeds);
    for (name, content) in &parts {
        println!("<!-- begin {name} -->\n\n{content}\n<!-- end {name} -->\n");
        if let Some(file) = &file
            && let Err(error) = replace_part(file, name, content)
        {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn measure(seeds: u64) -> Vec<(&'static str, String)> {
    let mut studies = Vec::new();
    for (i, variant) in VARIANTS.into_iter().enumerate() {
        eprintln!("{}", variant.name);
        studies.push(Study::run(variant, if i == 0 { seeds } else { seeds.min(VARIANT_SEEDS) }));
    }
    eprintln!("forecasts");
    let areas = forecasts::measure(seeds.min(FORECAST_SEEDS));
    let claim = forecasts::claim(&areas);
    let shipped = &studies[0];
    let unfinished = tables::unfinished(shipped);
    vec![
        ("claims-verdicts", tables::verdicts_table(&studies, &claim)),
        ("claims-variants", tables::variants_table(&studies)),
        ("claims-forecasts", tables::forecasts_table(&areas)),
        ("claims-sticky", format!("{unfinished}\n\n{}", tables::cells_table(shipped, STICKY))),
        ("claims-handoff", tables::cells_table(shipped, HANDOFF)),
        ("claims-findings", tables::findings_list(shipped, &claim)),
    ]
}
