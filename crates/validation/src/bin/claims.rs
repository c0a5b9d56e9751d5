//! Measures the claims of the papers, and prints verdicts and tables as Markdown.
//!
//! `claims [--paper NAME]... [--seeds N] [--write FILE]`: every paper and ten seeds if not said otherwise; the variants of the
//! assumptions get fewer. With `--write` the parts go into FILE, between their markers. Nothing fails if a claim does.

use anabranch_validation::claims::reproduction::{Effort, Paper};
use anabranch_validation::claims::tables;
use anabranch_validation::report::replace_part;
use std::path::PathBuf;
use std::process::ExitCode;

/// Seeds where nothing else is asked for.
const SEEDS: u64 = 10;

struct Arguments {
    papers: Vec<Paper>,
    seeds: u64,
    file: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Some(arguments) = parse(std::env::args().skip(1)) else {
        eprintln!("usage: claims [--paper sticky|handoff|mptcp-plus|dash]... [--seeds N] [--write FILE], N at least 2");
        return ExitCode::from(2);
    };
    let effort = Effort { seeds: arguments.seeds, sensitivity: true };
    for paper in arguments.papers {
        eprintln!("{}: {} sessions", paper.name(), effort.ticks(paper));
        let measured = effort.reproduce(paper, &|| true).expect("nothing stops it");
        for (name, content) in tables::parts(&measured) {
            let name = format!("claims-{}-{name}", paper.name());
            println!("<!-- begin {name} -->\n\n{content}\n<!-- end {name} -->\n");
            if let Some(file) = &arguments.file
                && let Err(error) = replace_part(file, &name, &content)
            {
                eprintln!("error: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Arguments> {
    let mut parsed = Arguments { papers: Vec::new(), seeds: SEEDS, file: None };
    while let Some(argument) = arguments.next() {
        let value = arguments.next()?;
        match argument.as_str() {
            "--write" => parsed.file = Some(PathBuf::from(value)),
            // An interval needs two values.
            "--seeds" => parsed.seeds = value.parse().ok().filter(|n| *n >= 2)?,
            "--paper" => parsed.papers.push(Paper::find(&value)?),
            _ => return None,
        }
    }
    if parsed.papers.is_empty() {
        parsed.papers = Paper::ALL.to_vec();
    }
    Some(parsed)
}
