//! Measures the claims of the papers, and prints verdicts and tables as Markdown.
//!
//! `claims [--paper NAME]... [--seeds N] [--write DIR]`: every paper and ten seeds by default; the variants of the assumptions
//! get fewer. With `--write` the tables of each paper go into `DIR/claims-PAPER.md`, between their markers. A claim that is
//! not reproduced is no failure of the program.

use anabranch_validation::claims::reproduction::{Effort, Paper};
use anabranch_validation::claims::tables;
use anabranch_validation::report::replace_part;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Seeds where nothing else is asked for.
const SEEDS: u64 = 10;

struct Arguments {
    papers: Vec<Paper>,
    seeds: u64,
    /// The folder with one page for each paper.
    pages: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Some(arguments) = parse(std::env::args().skip(1)) else {
        eprintln!("usage: claims [--paper sticky|handoff|mptcp-plus|dash]... [--seeds N] [--write DIR], N at least 2");
        return ExitCode::from(2);
    };
    let effort = Effort { seeds: arguments.seeds, sensitivity: true };
    for paper in arguments.papers {
        eprintln!("{}: {} sessions", paper.name(), effort.ticks(paper));
        let measured = effort.reproduce(paper, &|| true).expect("nothing stops it");
        for (name, content) in tables::parts(&measured) {
            let name = format!("claims-{}-{name}", paper.name());
            println!("<!-- begin {name} -->\n\n{content}\n<!-- end {name} -->\n");
            if let Some(pages) = &arguments.pages
                && let Err(error) = replace_part(&page(pages, paper), &name, &content)
            {
                eprintln!("error: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// The page of a paper.
fn page(pages: &Path, paper: Paper) -> PathBuf {
    pages.join(format!("claims-{}.md", paper.name()))
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Arguments> {
    let mut parsed = Arguments { papers: Vec::new(), seeds: SEEDS, pages: None };
    while let Some(argument) = arguments.next() {
        let value = arguments.next()?;
        match argument.as_str() {
            "--write" => parsed.pages = Some(PathBuf::from(value)),
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
