//! Runs many test cases, several at once, and repeats invalid runs.

use crate::judgement::Judgement;
use crate::kernel::Kernel;
use crate::measurement::{Browser, Lateness, Live, Measurement, emulated, play_in, run_live, simulate};
use crate::question::Part;
use crate::test_cases::{Client, Runs, TestCase};
use anabranch_observation::Strict;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How often a run is tried until it counts.
const TRIES: u32 = 2;
/// Browsers decode and draw: more of them would slow each other down on two processors.
const BROWSERS_AT_ONCE: usize = 2;

/// A test case with its results.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// The test case.
    #[serde(rename = "cell")]
    pub case: TestCase,
    /// The comparison; `None` without a valid live run.
    pub judgement: Option<Judgement>,
    /// That of the live runs that count; null without any.
    pub lateness: Option<Lateness>,
    /// Live runs that were invalid, first tries included.
    #[serde(rename = "void")]
    pub invalid: u32,
    /// Why runs failed.
    pub errors: Vec<String>,
    /// The simulated runs.
    pub simulated: Vec<Measurement>,
    /// The valid live runs.
    pub live: Vec<Measurement>,
}

/// A live run to be made.
#[derive(Clone, Copy)]
struct Job {
    case: usize,
    seed: u64,
}

/// Result of a job.
#[derive(Default)]
struct Attempt {
    live: Option<Live>,
    invalid: u32,
    error: Option<String>,
}

/// A campaign: its test cases with their results, and the kernel that the live runs were made with.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Its room for headers is that of the simulated runs.
    pub kernel: Kernel,
    /// In the order of the test cases.
    pub found: Vec<Found>,
}

/// Runs all test cases, `at_once` live ones at a time; those of the browser come last and few at a time. `progress`
/// gets the number of finished live runs, their total, and the test case's name; `stop` ends the campaign early. `kernel` is the
/// running one.
///
/// # Panics
/// If there are test cases for a browser and no browser.
pub fn run(
    cases: Vec<TestCase>,
    kernel: Kernel,
    at_once: usize,
    browser: Option<&dyn Browser>,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize, &str) + Sync),
) -> Campaign {
    let (browsers, others): (Vec<Job>, Vec<Job>) =
        jobs(&cases).into_iter().partition(|job| cases[job.case].client == Client::Browser);
    let (count, over) = (browsers.len() + others.len(), AtomicUsize::new(0));
    let attempts = Mutex::new(Vec::new());
    let work = |job: Job| {
        let attempt = attempt(&cases[job.case], job.seed, browser, stop);
        attempts.lock().unwrap_or_else(PoisonError::into_inner).push((job, attempt));
        progress(over.fetch_add(1, Ordering::Relaxed) + 1, count, &cases[job.case].name);
    };
    on_threads(&others, at_once, stop, &work);
    on_threads(&browsers, at_once.min(BROWSERS_AT_ONCE), stop, &work);
    let attempts = by_case(cases.len(), attempts.into_inner().unwrap_or_else(PoisonError::into_inner));
    let directory = browser.map(Browser::directory);
    let recorded = attempts.into_iter().map(Recorded::of).collect();
    Campaign::conclude(cases, recorded, kernel, directory)
}

/// The attempts of each test case in the order of their seeds; threads are done in any order.
fn by_case(cases: usize, mut attempts: Vec<(Job, Attempt)>) -> Vec<Vec<Attempt>> {
    attempts.sort_by_key(|(job, _)| (job.case, job.seed));
    let mut by_case: Vec<_> = (0..cases).map(|_| Vec::new()).collect();
    attempts.into_iter().for_each(|(job, attempt)| by_case[job.case].push(attempt));
    by_case
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
fn jobs(cases: &[TestCase]) -> Vec<Job> {
    let rounds = cases.iter().map(|case| case.live_runs).max().unwrap_or(0);
    let of_round = |round: u32| {
        let due = cases.iter().enumerate().filter(move |(_, case)| round <= case.live_runs);
        due.map(move |(case, _)| Job { case, seed: u64::from(round) })
    };
    let mut jobs: Vec<Job> = (1..=rounds).flat_map(of_round).collect();
    jobs.sort_by_key(|job| std::cmp::Reverse(cases[job.case].seconds));
    jobs
}

/// One live run; again if it was invalid.
fn attempt(case: &TestCase, seed: u64, browser: Option<&dyn Browser>, stop: &AtomicBool) -> Attempt {
    let mut attempt = Attempt::default();
    let wanted = || !stop.load(Ordering::Relaxed);
    while attempt.invalid < TRIES && wanted() {
        let ran = match case.client {
            Client::Model => run_live(case, seed, &wanted),
            Client::Browser => play_in(browser.expect("there is one for such test cases"), case, seed),
        };
        if !wanted() {
            // What was stopped is no whole run.
            return attempt;
        }
        match ran {
            Ok(live) if !live.invalid => return Attempt { live: Some(live), ..attempt },
            Ok(_) => attempt.invalid += 1,
            Err(error) => return Attempt { error: Some(error), ..attempt },
        }
    }
    attempt
}

/// The live runs of a test case, without the test case: what a report has of them, so that they can be judged again.
#[derive(Clone, Debug, Default)]
struct Recorded {
    invalid: u32,
    errors: Vec<String>,
    lateness: Option<Lateness>,
    live: Vec<Measurement>,
}

impl Recorded {
    fn of(attempts: Vec<Attempt>) -> Self {
        let invalid = attempts.iter().map(|attempt| attempt.invalid).sum();
        let errors = attempts.iter().filter_map(|attempt| attempt.error.clone()).collect();
        let lives: Vec<Live> = attempts.into_iter().filter_map(|attempt| attempt.live).collect();
        let lateness = Lateness::typical(&lives);
        Recorded { invalid, errors, lateness, live: lives.into_iter().map(|live| live.measurement).collect() }
    }
}

/// What `validate --json` printed, as far as the live runs are concerned. Verdicts and simulations are made anew.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Earlier {
    kernel: Strict<Kernel>,
    #[serde(rename = "cells")]
    cases: Vec<EarlierCase>,
    #[serde(default, rename = "parts")]
    _parts: IgnoredAny,
    #[serde(default, rename = "verdict")]
    _verdict: IgnoredAny,
}

/// A test case of it. All that is judged is required: nothing is taken for zero.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EarlierCase {
    #[serde(rename = "cell")]
    case: Named,
    #[serde(rename = "void")]
    invalid: u32,
    errors: Vec<String>,
    lateness: Strict<Option<Lateness>>,
    live: Vec<Strict<Measurement>>,
    #[serde(default, rename = "judgement")]
    _judgement: IgnoredAny,
    #[serde(default, rename = "simulated")]
    _simulated: IgnoredAny,
}

/// Which test case it was.
#[derive(Deserialize)]
struct Named {
    part: Part,
    name: String,
}

impl EarlierCase {
    /// Its live runs, which have what the test case compares.
    fn recorded(&self, case: &TestCase) -> Result<Recorded, String> {
        let live: Vec<Measurement> = self.live.iter().map(|run| run.0.clone()).collect();
        let lateness = self.lateness.0;
        let checked = live.iter().try_for_each(|run| run.check(case));
        checked.map_err(|error| format!("{}: {error}", case.name))?;
        if lateness.is_none() && !live.is_empty() {
            return Err(format!("{}: `lateness` is null although there are live runs", case.name));
        }
        Ok(Recorded { invalid: self.invalid, errors: self.errors.clone(), lateness, live })
    }
}

/// Compares the live runs of an earlier campaign by new simulations, with the room for headers of the kernel that made them. `report`
/// is what it printed as JSON; test cases that it does not have count as not run.
///
/// # Errors
/// If it is no report, or lacks something that is judged; the message names the key.
pub fn again(cases: Vec<TestCase>, report: &str, directory: Option<&Path>) -> Result<Campaign, String> {
    let mut json = serde_json::Deserializer::from_str(report);
    let earlier: Earlier = serde_path_to_error::deserialize(&mut json).map_err(|error| error.to_string())?;
    json.end().map_err(|error| error.to_string())?;
    let recorded = |case: &TestCase| {
        let found = earlier.cases.iter().find(|other| other.case.part == case.part && other.case.name == case.name);
        found.map_or_else(|| Ok(Recorded::default()), |other| other.recorded(case))
    };
    let recorded: Vec<Recorded> = cases.iter().map(recorded).collect::<Result<_, _>>()?;
    Ok(Campaign::conclude(cases, recorded, earlier.kernel.0, directory))
}

impl Campaign {
    fn conclude(cases: Vec<TestCase>, recorded: Vec<Recorded>, kernel: Kernel, directory: Option<&Path>) -> Self {
        let conclude = |(case, recorded)| conclude(case, recorded, &kernel, directory);
        let found = cases.into_iter().zip(recorded).map(conclude).collect();
        Campaign { kernel, found }
    }
}

fn conclude(case: TestCase, recorded: Recorded, kernel: &Kernel, directory: Option<&Path>) -> Found {
    let Recorded { invalid, mut errors, lateness, live } = recorded;
    let seeds: Vec<u64> = match case.runs {
        Runs::Paired => live.iter().map(|run| run.seed).collect(),
        Runs::Unpaired => (1..=u64::from(case.simulated_runs)).collect(),
    };
    // Without a live run there is nothing to simulate for.
    let scenario = lateness.map(|lateness| emulated(&case, directory, kernel, lateness));
    let simulated = scenario.map_or(Ok(Vec::new()), |scenario| {
        seeds.into_iter().map(|seed| simulate(&case, &scenario, seed)).collect::<Result<Vec<_>, _>>()
    });
    let simulated = simulated.unwrap_or_else(|error| {
        errors.push(format!("simulated: {error}"));
        Vec::new()
    });
    let judgement = Judgement::of(&case, &simulated, &live);
    Found { case, judgement, lateness, invalid, errors, simulated, live }
}

#[cfg(test)]
mod tests;
