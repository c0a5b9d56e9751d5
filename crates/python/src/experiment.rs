//! What experiments ask of the compiled part: many runs of which only the numbers are wanted, and where in a plan a key
//! stands.

use crate::InputError;
use crate::own::run::with_run;
use crate::scenario::Scenario;
use anabranch_observation::reducers::{Number, REDUCERS, read_account, read_forecasts, reduce};
use anabranch_observation::{Metrics, Outcome, check_finite};
use anabranch_sim::RunOptions;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use toml::de::{DeTable, DeValue};

/// Ends runs on other threads early.
#[pyclass(frozen)]
#[derive(Default)]
pub struct Stop(AtomicBool);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Stop::default()
    }

    /// From now on every run that knows of this ends at once.
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Simulates a scenario, and gives its metrics alone as JSON on one line, with the numbers of reducers. The interpreter
/// is free for others all the time. Without `segments` the lists of media segments are empty.
///
/// # Errors
/// `KeyboardInterrupt` if it was stopped, `InputError` if there is no reducer of a name.
#[pyfunction]
#[pyo3(signature = (scenario, *, seed, stop, reducers=Vec::new(), segments=true))]
pub fn measure(
    py: Python<'_>,
    scenario: &Scenario,
    seed: u64,
    stop: PyRef<'_, Stop>,
    reducers: Vec<String>,
    segments: bool,
) -> PyResult<String> {
    check_reducers(&reducers)?;
    let (scenario, stop) = (&scenario.0, &stop.0);
    let wanted = || !stop.load(Ordering::Relaxed);
    let options = RunOptions { seed, ..kept_for(&reducers) };
    let simulate =
        |goes_on: &dyn Fn() -> bool| anabranch_sim::run(scenario, &options, &mut |_seconds| wanted() && goes_on());
    let kept = |outcome| match wanted() {
        true => line(scenario, outcome, &reducers, segments),
        false => Err(PyKeyboardInterrupt::new_err("stopped")),
    };
    if scenario.external().is_empty() {
        return py.detach(|| kept(simulate(&|| true)));
    }
    kept(with_run(py, seed, simulate)?)
}

/// What [`measure`] would give of a run that is stopped at its first sample: all keys that it has of this scenario,
/// after no time.
#[pyfunction]
#[pyo3(signature = (scenario, *, reducers=Vec::new()))]
pub fn metrics_outline(py: Python<'_>, scenario: &Scenario, reducers: Vec<String>) -> PyResult<String> {
    check_reducers(&reducers)?;
    let scenario = &scenario.0;
    py.detach(|| {
        let outcome = anabranch_sim::run(scenario, &kept_for(&reducers), &mut |_seconds| false);
        line(scenario, outcome, &reducers, true)
    })
}

/// What a run has to keep for reducers.
fn kept_for(reducers: &[String]) -> RunOptions {
    RunOptions { record_forecasts: read_forecasts(reducers), account: read_account(reducers), ..RunOptions::default() }
}

fn check_reducers(names: &[String]) -> PyResult<()> {
    match names.iter().find(|name| REDUCERS.find(name).is_none()) {
        Some(name) => Err(InputError::new_err(format!("no reducer is called `{name}`"))),
        None => Ok(()),
    }
}

/// Metrics, and per session the numbers of reducers.
#[derive(Serialize)]
struct Measured<'a> {
    metrics: &'a Metrics,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reduced: Vec<serde_json::Map<String, serde_json::Value>>,
}

fn line(
    scenario: &anabranch_scenario::Scenario,
    mut outcome: Outcome,
    names: &[String],
    segments: bool,
) -> PyResult<String> {
    // JSON would make a NaN null, as if it had not been observed.
    check_finite(&outcome.metrics).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let numbers = if names.is_empty() { Vec::new() } else { reduce(scenario, &outcome, names) };
    let of_session = |numbers: Vec<Number>| numbers.into_iter().map(|(name, value)| (name, value.into())).collect();
    let reduced = numbers.into_iter().map(of_session).collect();
    if !segments {
        let dash = outcome.metrics.sessions.iter_mut().filter_map(|session| session.dash.as_mut()?.as_mut());
        dash.for_each(|dash| dash.media_segments.clear());
    }
    serde_json::to_string(&Measured { metrics: &outcome.metrics, reduced })
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// Where the keys and the items of lists of a TOML text stand: the way to each, and its line. The name is for messages.
#[pyfunction]
#[pyo3(signature = (text, *, name))]
pub fn toml_lines(text: &str, name: &str) -> PyResult<Vec<(Vec<String>, usize)>> {
    let line = |offset: usize| 1 + text.as_bytes()[..offset.min(text.len())].iter().filter(|b| **b == b'\n').count();
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        InputError::new_err(format!("{name}:{}: {}", line(at), error.message()))
    })?;
    let mut found = Vec::new();
    collect_table(table.get_ref(), &mut Vec::new(), &line, &mut found);
    Ok(found)
}

fn collect_table(
    table: &DeTable<'_>,
    way: &mut Vec<String>,
    line: &dyn Fn(usize) -> usize,
    found: &mut Vec<(Vec<String>, usize)>,
) {
    for (key, value) in table {
        way.push(key.get_ref().to_string());
        found.push((way.clone(), line(key.span().start)));
        collect_value(value.get_ref(), way, line, found);
        way.pop();
    }
}

fn collect_value(
    value: &DeValue<'_>,
    way: &mut Vec<String>,
    line: &dyn Fn(usize) -> usize,
    found: &mut Vec<(Vec<String>, usize)>,
) {
    match value {
        DeValue::Table(table) => collect_table(table, way, line, found),
        DeValue::Array(items) => {
            for (position, item) in items.iter().enumerate() {
                way.push(position.to_string());
                found.push((way.clone(), line(item.span().start)));
                collect_value(item.get_ref(), way, line, found);
                way.pop();
            }
        }
        _ => {}
    }
}
