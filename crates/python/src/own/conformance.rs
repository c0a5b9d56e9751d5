//! The conformance suite of the registries, for algorithms in Python.

use super::parts::external;
use super::run::with_run;
use crate::InputError;
use anabranch_stack::breach::require_same;
use anabranch_stack::connection::Choice;
use anabranch_stack::external::{self as chosen, Kind};
use anabranch_stack::options::{OptionError, Options};
use anabranch_stack::{congestion, path_policy, scheduler};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Tries an algorithm on arbitrary inputs, always the same ones. `None` if it keeps the contract of its kind; otherwise
/// what it broke.
///
/// # Errors
/// `InputError` if there is no such algorithm; `KeyboardInterrupt`.
#[pyfunction]
#[pyo3(signature = (kind, name, *, directory, cases))]
pub fn check_contract(
    py: Python<'_>,
    kind: &str,
    name: &str,
    directory: Option<PathBuf>,
    cases: u32,
) -> PyResult<Option<String>> {
    let kind = match kind {
        "scheduler" => Kind::Scheduler,
        "congestion_control" => Kind::CongestionControl,
        "path_policy" => Kind::PathPolicy,
        other => return Err(InputError::new_err(format!("there is no contract of the kind `{other}`"))),
    };
    let mut choice = Choice::with(name, Options::default());
    let parts = external(directory.into_iter().collect()).parts;
    if parts.knows(kind, name) {
        choice.attach(parts);
    }
    let (choice, refused) = (&choice, |error: OptionError| InputError::new_err(error.message));
    match kind {
        Kind::Scheduler => {
            chosen::scheduler(choice).map_err(refused)?;
            let make = || chosen::scheduler(choice).expect("it was made before");
            try_cases(py, cases, &scheduler::contract::any_case(), |case| case.check(&make))
        }
        Kind::PathPolicy => {
            chosen::path_policy(choice).map_err(refused)?;
            let make = || chosen::path_policy(choice).expect("it was made before");
            try_cases(py, cases, &path_policy::contract::any_case(), |case| case.check(&make))
        }
        Kind::CongestionControl => {
            chosen::congestion_control(choice, 1).map_err(refused)?;
            let make = || chosen::congestion_control(choice, 1).expect("it was made before");
            try_cases(py, cases, &congestion::contract::any_life(), |life| {
                let [one, other] = [life.lead(make()), life.lead(make())];
                let words = |(window, threshold, pace): &congestion::contract::Set| {
                    let pace = pace.map_or("no pace".into(), |pace| pace.to_string());
                    format!("({}, {}, {pace})", window.as_f64(), threshold.as_f64())
                };
                match one.into_iter().zip(other).find(|(one, other)| one != other) {
                    None => Ok(()),
                    Some((one, other)) => require_same("windows (with thresholds and paces)", &one, &other, words),
                }
            })
        }
    }
}

/// Tries cases until one fails, and tells what failed.
fn try_cases<S: Strategy>(
    py: Python<'_>,
    cases: u32,
    strategy: &S,
    check: impl Fn(&S::Value) -> Result<(), TestCaseError>,
) -> PyResult<Option<String>> {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    // No smaller case is searched: only the breach is shown, and a search that ends early says so on standard error.
    let tried = runner.run(&strategy.no_shrink(), |case| {
        // What the author's code did wrong says more than what followed from it.
        with_run(py, 1, |_| check(&case)).map_err(|error| TestCaseError::fail(error.value(py).to_string()))?
    });
    py.check_signals()?;
    Ok(match tried {
        Ok(()) => None,
        Err(TestError::Fail(reason, _) | TestError::Abort(reason)) => Some(reason.message().to_string()),
    })
}
