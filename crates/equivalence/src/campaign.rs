//! Runs many test cases, several at once, and repeats invalid runs.

use crate::cells::{Cell, Client, Runs};
use crate::judgement::Judgement;
use crate::observation::{Browser, Lateness, Live, Observation, emulated, play_in, run_live, simulate};
use crate::question::Part;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// A run is invalid if its packets were later than this at the 99th percentile, in seconds: it measured the machine,
/// not the links.
pub const LATEST_S: f64 = 1e-3;
/// Most attempts of a run until it is valid.
const TRIES: u32 = 2;
/// Browsers decode and draw: more of them would slow each other down on two processors.
const BROWSERS_AT_ONCE: usize = 2;

/// A test case with its results.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// The test case.
    pub cell: Cell,
    /// The comparison; `None` without a valid live run.
    pub judgement: Option<Judgement>,
    /// Lateness of the valid live runs.
    pub lateness: Lateness,
    /// Number of invalid live runs, first attempts included.
    pub void: u32,
    /// Errors of failed live runs.
    pub errors: Vec<String>,
    /// The simulated runs.
    pub simulated: Vec<Observation>,
    /// The valid live runs.
    pub live: Vec<Observation>,
}

/// A live run to be made.
#[derive(Clone, Copy)]
struct Job {
    cell: usize,
    seed: u64,
}

/// Result of a job.
#[derive(Default)]
struct Attempt {
    live: Option<Live>,
    void: u32,
    error: Option<String>,
}

/// Runs all test cases, `at_once` live ones at a time; those of the browser come last and few at a time. `progress`
/// gets the number of finished live runs, their total, and the test case's name; `stop` ends the campaign early.
///
/// # Panics
/// If there are test cases for a browser and no browser.
pub fn run(
    cells: Vec<Cell>,
    at_once: usize,
    browser: Option<&dyn Browser>,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize, &str) + Sync),
) -> Vec<Found> {
    let (browsers, others): (Vec<Job>, Vec<Job>) =
        jobs(&cells).into_iter().partition(|job| cells[job.cell].client == Client::Browser);
    let (count, over) = (browsers.len() + others.len(), AtomicUsize::new(0));
    let attempts = Mutex::new(Vec::new());
    let work = |job: Job| {
        let attempt = attempt(&cells[job.cell], job.seed, browser, stop);
        attempts.lock().unwrap_or_else(PoisonError::into_inner).push((job, attempt));
        progress(over.fetch_add(1, Ordering::Relaxed) + 1, count, &cells[job.cell].name);
    };
    on_threads(&others, at_once, stop, &work);
    on_threads(&browsers, at_once.min(BROWSERS_AT_ONCE), stop, &work);
    let attempts = of_cells(cells.len(), attempts.into_inner().unwrap_or_else(PoisonError::into_inner));
    let directory = browser.map(Browser::directory);
    cells.into_iter().zip(attempts).map(|(cell, attempts)| conclude(cell, Recorded::of(attempts), directory)).collect()
}

/// The attempts of each cell in the order of their seeds; threads are done in any order.
fn of_cells(cells: usize, mut attempts: Vec<(Job, Attempt)>) -> Vec<Vec<Attempt>> {
    attempts.sort_by_key(|(job, _)| (job.cell, job.seed));
    let mut of_cells: Vec<_> = (0..cells).map(|_| Vec::new()).collect();
    attempts.into_iter().for_each(|(job, attempt)| of_cells[job.cell].push(attempt));
    of_cells
}

/// Runs all jobs in their order, `at_once` at a time, unless it is stopped.
fn on_threads(jobs: &[Job], at_once: usize, stop: &AtomicBool, work: &(dyn Fn(Job) + Sync)) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..at_once.min(jobs.len()) {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    work(*job);
                }
            });
        }
    });
}

/// The longest first, so that none is left alone at the end; and the first runs of all test cases before the second
/// ones.
fn jobs(cells: &[Cell]) -> Vec<Job> {
    let rounds = cells.iter().map(|cell| cell.live_runs).max().unwrap_or(0);
    let of_round = |round: u32| {
        let due = cells.iter().enumerate().filter(move |(_, cell)| round <= cell.live_runs);
        due.map(move |(cell, _)| Job { cell, seed: u64::from(round) })
    };
    let mut jobs: Vec<Job> = (1..=rounds).flat_map(of_round).collect();
    jobs.sort_by_key(|job| std::cmp::Reverse(cells[job.cell].seconds));
    jobs
}

/// One live run; again if it was invalid.
fn attempt(cell: &Cell, seed: u64, browser: Option<&dyn Browser>, stop: &AtomicBool) -> Attempt {
    let mut attempt = Attempt::default();
    let wanted = || !stop.load(Ordering::Relaxed);
    while attempt.void < TRIES && wanted() {
        let ran = match cell.client {
            Client::Model => run_live(cell, seed, &wanted).map_err(|error| error.to_string()),
            Client::Browser => play_in(browser.expect("there is one for such cells"), cell, seed),
        };
        if !wanted() {
            // What was stopped is no whole run.
            return attempt;
        }
        match ran {
            Ok(live) if live.lateness.p99_s < LATEST_S => return Attempt { live: Some(live), ..attempt },
            Ok(_) => attempt.void += 1,
            Err(error) => return Attempt { error: Some(error), ..attempt },
        }
    }
    attempt
}

/// The live runs of a test case as recorded in a report, so that they can be compared again.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Recorded {
    void: u32,
    errors: Vec<String>,
    lateness: Lateness,
    live: Vec<Observation>,
}

impl Recorded {
    fn of(attempts: Vec<Attempt>) -> Self {
        let void = attempts.iter().map(|attempt| attempt.void).sum();
        let errors = attempts.iter().filter_map(|attempt| attempt.error.clone()).collect();
        let lives: Vec<Live> = attempts.into_iter().filter_map(|attempt| attempt.live).collect();
        let lateness = Lateness::typical(&lives);
        Recorded { void, errors, lateness, live: lives.into_iter().map(|live| live.observation).collect() }
    }
}

/// What is read of a report: its cells.
#[derive(Deserialize)]
struct Earlier {
    cells: Vec<EarlierCell>,
}

/// A cell of a report with its live runs.
#[derive(Deserialize)]
struct EarlierCell {
    cell: Named,
    #[serde(flatten)]
    recorded: Recorded,
}

/// What identifies a cell.
#[derive(Deserialize)]
struct Named {
    part: Part,
    name: String,
}

/// Judges the live runs of an earlier campaign by new simulations. `report` is what it printed as JSON; cells that it does not have, or
/// has in another shape, count as not run.
///
/// # Errors
/// If `report` is not a report.
pub fn again(cells: Vec<Cell>, report: &str, directory: Option<&Path>) -> Result<Vec<Found>, serde_json::Error> {
    let mut earlier: Vec<_> = serde_json::from_str::<Earlier>(report)?.cells;
    let conclude = |cell: Cell| {
        let found = earlier.iter_mut().find(|other| other.cell.part == cell.part && other.cell.name == cell.name);
        let recorded = found.map(|other| std::mem::take(&mut other.recorded)).unwrap_or_default();
        conclude(cell, recorded, directory)
    };
    Ok(cells.into_iter().map(conclude).collect())
}

fn conclude(cell: Cell, recorded: Recorded, directory: Option<&Path>) -> Found {
    let Recorded { void, errors, lateness, live } = recorded;
    let seeds: Vec<u64> = match cell.runs {
        Runs::Paired => live.iter().map(|run| run.seed).collect(),
        Runs::Unpaired if live.is_empty() => Vec::new(),
        Runs::Unpaired => (1..=u64::from(cell.simulated_runs)).collect(),
    };
    let scenario = emulated(&cell, directory, lateness);
    let simulated: Vec<_> = seeds.into_iter().map(|seed| simulate(&cell, &scenario, seed)).collect();
    let judgement = Judgement::of(&cell, &simulated, &live);
    Found { cell, judgement, lateness, void, errors, simulated, live }
}
