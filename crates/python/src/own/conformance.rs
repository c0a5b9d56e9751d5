//! The conformance suite of the registries, for algorithms in Python.

use super::parts::external;
use super::run::with_run;
use crate::InputError;
use anabranch_stack::connection::Choice;
use anabranch_stack::external::{self as chosen, Kind};
use anabranch_stack::options::{OptionError, Options};
use anabranch_stack::{congestion, path_policy, scheduler};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Tries an algorithm on arbitrary inputs, always the same ones. `None` if it keeps the contract of its kind; otherwise what it broke.
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
                prop_assert_eq!(life.lead(make()), life.lead(make()), "the same events give the same windows");
                Ok(())
            })
        }
    }
}

/// Tries cases until one fails, and reports the smallest one like it.
fn try_cases<S: Strategy>(
    py: Python<'_>,
    cases: u32,
    strategy: &S,
    check: impl Fn(&S::Value) -> Result<(), TestCaseError>,
) -> PyResult<Option<String>> {
    // Where it may not shrink for as long as it can, it says so on standard error.
    let config = Config { cases, failure_persistence: None, max_shrink_iters: u32::MAX, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let tried = runner.run(strategy, |case| {
        // What the author's code did wrong says more than what followed from it.
        with_run(py, 1, |_| check(&case)).map_err(|error| TestCaseError::fail(error.value(py).to_string()))?
    });
    py.check_signals()?;
    Ok(match tried {
        Ok(()) => None,
        Err(TestError::Fail(reason, _) | TestError::Abort(reason)) => Some(reason.message().to_string()),
    })
}
