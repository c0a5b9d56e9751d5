//! A testbed, with the interpreter free for others meanwhile.

use crate::outcome::Outcome;
use crate::own::run::RunState;
use crate::scenario::Scenario;
use crate::viewer::Viewed;
use crate::{InputError, LiveError};
use anabranch_observation::Ended;
use anabranch_testbed::{ClientKind, ClientReport, Options, ServerKind, TestbedError};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A running testbed.
#[pyclass]
pub struct Testbed {
    testbed: Option<anabranch_testbed::Testbed>,
    /// What the author's algorithms have in common, if the scenario names any.
    own: Option<Arc<RunState>>,
}

/// What live runs need and this machine lacks, one sentence each with the remedy.
#[pyfunction]
pub fn live_missing() -> Vec<String> {
    anabranch_testnet::requirements::missing(&[])
}

/// Bytes that the running kernel reserves for headers in front of each packet.
#[pyfunction]
pub fn header_room() -> PyResult<u32> {
    anabranch_testbed::header_room().map_err(failed)
}

/// The run failed, or the machine cannot do it.
fn failed(error: TestbedError) -> PyErr {
    LiveError::new_err(error.to_string())
}

/// One of a few words.
fn chosen<T: Copy>(what: &str, word: &str, choices: &[(&str, T)]) -> PyResult<T> {
    let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
    let found = choices.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
    found.ok_or_else(|| InputError::new_err(format!("{what} `{word}`: expected {}", names.join(" or "))))
}

const ENDINGS: [(&str, Ended); 4] = [
    ("finished", Ended::Finished),
    ("duration", Ended::Duration),
    ("stuck", Ended::Stuck),
    ("stopped", Ended::Stopped),
];

fn ending(ended: Ended) -> &'static str {
    ENDINGS.iter().find(|(_, own)| *own == ended).map_or("stopped", |(name, _)| name)
}

impl Testbed {
    fn running(&self) -> PyResult<&anabranch_testbed::Testbed> {
        self.testbed.as_ref().ok_or_else(|| LiveError::new_err("the testbed was taken down"))
    }

    /// Raises what an author's code did wrong.
    fn check_own(&self, py: Python<'_>) -> PyResult<()> {
        self.own.as_ref().and_then(|own| own.failure(py)).map_or(Ok(()), Err)
    }
}

/// The state of a run with algorithms in Python; `None` if the scenario names none.
fn begin_own(scenario: &anabranch_scenario::Scenario, seed: u64) -> PyResult<Option<Arc<RunState>>> {
    if scenario.external().is_empty() {
        return Ok(None);
    }
    let busy =
        "another live run with algorithms in Python is going on in this process; wait for it, or use another process";
    RunState::begin_live(seed).map(Some).ok_or_else(|| LiveError::new_err(busy))
}

#[pymethods]
impl Testbed {
    /// Builds and starts everything but the first session's program.
    #[new]
    #[pyo3(signature = (scenario, *, seed, server, client, record_events, capture_dir=None, content_root=None))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        py: Python<'_>,
        scenario: &Scenario,
        seed: u64,
        server: &str,
        client: &str,
        record_events: bool,
        capture_dir: Option<PathBuf>,
        content_root: Option<PathBuf>,
    ) -> PyResult<Self> {
        let options = Options {
            seed,
            server: chosen("server", server, &[("anabranch", ServerKind::Anabranch), ("kernel", ServerKind::Kernel)])?,
            client: chosen("client", client, &[("model", ClientKind::Model), ("program", ClientKind::Program)])?,
            capture: capture_dir,
            content: content_root,
            record_events,
        };
        let own = begin_own(&scenario.0, seed)?;
        let testbed = py.detach(|| anabranch_testbed::Testbed::start(&scenario.0, &options)).map_err(failed)?;
        Ok(Testbed { testbed: Some(testbed), own })
    }

    /// The namespace of the first session's client.
    #[getter]
    fn namespace(&self) -> PyResult<&str> {
        self.running().map(anabranch_testbed::Testbed::namespace)
    }

    /// Where its server is.
    #[getter]
    fn url(&self) -> PyResult<String> {
        self.running().map(anabranch_testbed::Testbed::url)
    }

    /// Seconds since the run began.
    #[getter]
    fn elapsed(&self) -> PyResult<f64> {
        Ok(self.running()?.elapsed().as_secs_f64())
    }

    /// Why the run is over, if it is. Raises what an author's code did wrong.
    fn poll(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        self.check_own(py)?;
        Ok(self.running()?.poll().map_err(failed)?.map(ending))
    }

    /// Takes everything down and gives what was observed, with what the caller knows of the first session's client.
    #[pyo3(signature = (ended, *, client=None, viewed=None, counters=None, received_bytes=None, notes))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn finish(
        &mut self,
        py: Python<'_>,
        ended: &str,
        client: Option<String>,
        viewed: Option<PyRef<'_, Viewed>>,
        counters: Option<BTreeMap<String, u64>>,
        received_bytes: Option<BTreeMap<String, u64>>,
        notes: Vec<String>,
    ) -> PyResult<Outcome> {
        let viewer = viewed.as_ref().map(|viewed| viewed.viewer.clone());
        let dash = viewed.as_ref().and_then(|viewed| viewed.dash.clone());
        let ended = chosen("ended", ended, &ENDINGS)?;
        self.running()?;
        let testbed = self.testbed.take();
        let outcome = py.detach(|| testbed.map(|testbed| testbed.finish(ended)).transpose()).map_err(failed)?;
        let mut outcome = outcome.ok_or_else(|| LiveError::new_err("the testbed was taken down"))?;
        self.check_own(py)?;
        let decisions = self.own.take().and_then(|own| own.decision_latency());
        let client = ClientReport { name: client, viewer, dash, counters, received_bytes, notes, decisions };
        client.add_to(&mut outcome.metrics);
        Ok(Outcome::new(outcome))
    }

    /// Takes everything down, if that was not done.
    fn close(&mut self, py: Python<'_>) {
        let testbed = self.testbed.take();
        py.detach(|| drop(testbed));
        self.own = None;
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&mut self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }
}
