//! Runs a shipped scenario, or a file, and prints its metrics as JSON.
//!
//! ```text
//! cargo run --release -p anabranch-sim --example run_scenario -- sticky/3p-50 transport.scheduler=gr-sty
//! ```

use anabranch_scenario::{catalogue, load};
use anabranch_sim::{RunOptions, run};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(name) = arguments.next() else {
        eprintln!("usage: run_scenario SCENARIO [KEY=VALUE]...");
        return ExitCode::from(2);
    };
    let overrides: Vec<(String, String)> = arguments
        .filter_map(|argument| argument.split_once('=').map(|(key, value)| (key.to_string(), value.to_string())))
        .collect();
    let text = match catalogue::scenario(&name) {
        Some(shipped) => Ok(shipped.text.to_string()),
        None => std::fs::read_to_string(&name),
    };
    let scenario = match text {
        Ok(text) => load(&text, &name, Path::new(&name).parent(), &overrides),
        Err(error) => {
            eprintln!("{name}: {error}");
            return ExitCode::from(2);
        }
    };
    match scenario {
        Ok(scenario) => {
            let outcome = run(&scenario, &RunOptions::default(), &mut |_| true);
            println!("{}", outcome.metrics.to_json(None));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
