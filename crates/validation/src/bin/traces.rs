//! Compares synthetic rates with the recordings next to the project, and fits their parameters.
//!
//! `traces [--seeds N] [--write FILE]` prints the parameters and the comparison, and with `--write` puts them into FILE
//! (`docs/validation/traces.md`), between their markers. `traces --fit [KIND]` looks for parameters of every kind, or
//! of one. It fails without recordings.

use anabranch_network::{SYNTHETIC_KINDS, SyntheticModel};
use anabranch_validation::report::replace_part;
use anabranch_validation::traces::recorded::{FOLDER, GROUPS};
use anabranch_validation::traces::{fit, summaries, table};
use std::path::PathBuf;
use std::process::ExitCode;

/// Seeds where nothing else is asked for.
const SEEDS: u64 = 20;

fn main() -> ExitCode {
    let (mut seeds, mut file) = (SEEDS, None);
    let mut arguments = std::env::args().skip(1);
    if !std::path::Path::new(FOLDER).is_dir() {
        eprintln!("error: there are no recordings in {FOLDER}");
        return ExitCode::FAILURE;
    }
    while let Some(argument) = arguments.next() {
        match (argument.as_str(), arguments.next()) {
            ("--fit", kind) => return fit_kinds(kind.as_deref()),
            ("--write", Some(path)) => file = Some(PathBuf::from(path)),
            ("--seeds", Some(n)) if n.parse::<u64>().is_ok_and(|n| n >= 2) => seeds = n.parse().unwrap_or(SEEDS),
            _ => {
                eprintln!("usage: traces [--seeds N] [--write FILE] | --fit [KIND], N at least 2");
                return ExitCode::from(2);
            }
        }
    }
    for (name, content) in [("traces-parameters", table::parameters()), ("traces-comparison", table::comparison(seeds))]
    {
        println!("<!-- begin {name} -->\n\n{content}\n<!-- end {name} -->\n");
        if let Some(file) = &file
            && let Err(error) = replace_part(file, name, &content)
        {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn fit_kinds(only: Option<&str>) -> ExitCode {
    if let Some(only) = only
        && SYNTHETIC_KINDS.find(only).is_none()
    {
        eprintln!("error: no kind is called {only}");
        return ExitCode::from(2);
    }
    for group in GROUPS.iter().filter(|group| group.fitted && only.is_none_or(|only| only == group.kind)) {
        let real = summaries(&group.recordings());
        let start = (table::kind(group).create)();
        let before = fit::distance(&start, &real);
        let (found, after) = fit::fit(&start, &real);
        println!("{}: distance {before:.2} now, {after:.2} with\n{}", group.kind, spelled(&found));
    }
    ExitCode::SUCCESS
}

fn spelled(model: &SyntheticModel) -> String {
    format!(
        "  headroom {:.2}, spread {:.2}, correlation time {}, noise {:.3}, between outages {}, outage {}",
        model.headroom, model.spread, model.correlation_time, model.noise, model.between_outages, model.outage
    )
}
