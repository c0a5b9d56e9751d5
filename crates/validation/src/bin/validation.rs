//! Measures every row of the validation table over its seeds and prints the table as Markdown.
//!
//! `validation [--write FILE] [--row N]...`: with `--write` the table goes into FILE (`docs/validation/laws.md`),
//! between its markers; with `--row` the other rows of the file stay. Ends with failure if an asserted check misses its
//! target.

use anabranch_validation::report::{replace_part, replace_rows, rows_table};
use anabranch_validation::rows::{self, Measured};
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut file = None;
    let mut numbers: Vec<u32> = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match (argument.as_str(), arguments.next()) {
            ("--write", Some(path)) => file = Some(PathBuf::from(path)),
            ("--row", Some(n)) if n.parse::<u32>().is_ok() => numbers.extend(n.parse::<u32>()),
            _ => {
                eprintln!("usage: validation [--write FILE] [--row N]...");
                return ExitCode::from(2);
            }
        }
    }
    let chosen = rows::all().into_iter().filter(|row| numbers.is_empty() || numbers.contains(&row.number));
    let measured: Vec<Measured> = chosen
        .map(|row| {
            eprintln!("row {}: {}", row.number, row.network);
            let seeds = row.seeds;
            row.measure(seeds)
        })
        .collect();
    let table = rows_table(&measured);
    println!("{table}");
    if let Some(file) = file
        && let Err(error) =
            if numbers.is_empty() { replace_part(&file, "rows", &table) } else { replace_rows(&file, "rows", &table) }
    {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    let failures: Vec<String> = measured.iter().flat_map(Measured::failures).collect();
    failures.iter().for_each(|failure| eprintln!("error: {failure}"));
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
