//! Many cells, several at once, and void runs again.

use crate::cells::{Cell, Runs};
use crate::judgement::Judgement;
use crate::observation::{Live, Observation, run_live, simulate};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// A run whose packets were later than this many seconds at the 99th percentile measured the machine, not the links.
pub const LATEST_S: f64 = 1e-3;
/// How often a run is tried until it counts.
const TRIES: u32 = 2;

/// A cell with all that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// Which.
    pub cell: Cell,
    /// None if no live run counts.
    pub judgement: Option<Judgement>,
    /// The worst lateness of the live runs that count, at the 99th percentile.
    pub lateness_s: f64,
    /// Live runs that were void, first tries included.
    pub void: u32,
    /// Why live runs failed.
    pub errors: Vec<String>,
    /// The simulated runs.
    pub simulated: Vec<Observation>,
    /// The live runs that count.
    pub live: Vec<Observation>,
}

/// One live run to be made.
#[derive(Clone, Copy)]
struct Job {
    cell: usize,
    seed: u64,
}

/// What became of a job.
#[derive(Default)]
struct Attempt {
    live: Option<Live>,
    void: u32,
    error: Option<String>,
}

/// Runs all cells, `at_once` live ones at a time. `progress` hears of each live run that is over, how many there are, and
/// the cell's name; `stop` ends the campaign early.
pub fn run(
    cells: Vec<Cell>,
    at_once: usize,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize, &str) + Sync),
) -> Vec<Found> {
    let jobs = jobs(&cells);
    let (next, over) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let attempts = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..at_once.min(jobs.len()) {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let attempt = attempt(&cells[job.cell], job.seed, stop);
                    attempts.lock().unwrap_or_else(PoisonError::into_inner).push((*job, attempt));
                    progress(over.fetch_add(1, Ordering::Relaxed) + 1, jobs.len(), &cells[job.cell].name);
                }
            });
        }
    });
    let mut attempts = attempts.into_inner().unwrap_or_else(PoisonError::into_inner);
    attempts.sort_by_key(|(job, _)| (job.cell, job.seed));
    let mut of_cells: Vec<Vec<Attempt>> = cells.iter().map(|_| Vec::new()).collect();
    attempts.into_iter().for_each(|(job, attempt)| of_cells[job.cell].push(attempt));
    cells.into_iter().zip(of_cells).map(|(cell, attempts)| conclude(cell, attempts)).collect()
}

/// The longest first, so that none is left alone at the end; and the first runs of all cells before the second ones.
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

/// One live run; again if it was void.
fn attempt(cell: &Cell, seed: u64, stop: &AtomicBool) -> Attempt {
    let mut attempt = Attempt::default();
    let wanted = || !stop.load(Ordering::Relaxed);
    while attempt.void < TRIES && wanted() {
        match run_live(cell, seed, &wanted) {
            // What was stopped is no whole run.
            Ok(_) if !wanted() => break,
            Ok(live) if live.lateness_s < LATEST_S => {
                attempt.live = Some(live);
                break;
            }
            Ok(_) => attempt.void += 1,
            Err(error) => {
                attempt.error = Some(error.to_string());
                break;
            }
        }
    }
    attempt
}

fn conclude(cell: Cell, attempts: Vec<Attempt>) -> Found {
    let void = attempts.iter().map(|attempt| attempt.void).sum();
    let errors = attempts.iter().filter_map(|attempt| attempt.error.clone()).collect();
    let lives: Vec<Live> = attempts.into_iter().filter_map(|attempt| attempt.live).collect();
    let lateness_s = lives.iter().map(|live| live.lateness_s).fold(0.0, f64::max);
    let live: Vec<Observation> = lives.into_iter().map(|live| live.observation).collect();
    let simulated: Vec<Observation> = match cell.runs {
        Runs::Paired => live.iter().map(|run| simulate(&cell, run.seed)).collect(),
        Runs::Unpaired => (1..=u64::from(cell.simulated_runs)).map(|seed| simulate(&cell, seed)).collect(),
    };
    let judgement = Judgement::of(&cell, &simulated, &live);
    Found { cell, judgement, lateness_s, void, errors, simulated, live }
}
