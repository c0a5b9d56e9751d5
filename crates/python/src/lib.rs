//! Python bindings of the simulator and the server: the module `anabranch._core`.
//!
//! Conversions only. Every default, check and choice lives in the crates below or in the Python package above; what is
//! offered here is described in `python/anabranch/_core.pyi`.

#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

mod experiment;
#[cfg(target_os = "linux")]
mod kernel;
mod outcome;
mod own;
#[cfg(target_os = "linux")]
mod pacing;
mod scenario;
#[cfg(target_os = "linux")]
mod serving;
mod simulate;
#[cfg(target_os = "linux")]
mod testbed;
mod toml_text;
mod traces;
mod viewer;

use pyo3::prelude::*;

pyo3::create_exception!(
    _core,
    InputError,
    pyo3::exceptions::PyValueError,
    "A scenario, a key, a value or a name is wrong. The message names the place, what was expected and, where there is one, the \
     nearest valid name."
);

pyo3::create_exception!(
    _core,
    LiveError,
    pyo3::exceptions::PyRuntimeError,
    "A live run cannot work on this machine, or failed. The message says what is missing and how to get it, or what went wrong."
);

pyo3::create_exception!(
    _core,
    AlgorithmError,
    pyo3::exceptions::PyRuntimeError,
    "An algorithm of the user's ended the run: it raised an exception, which is the cause of this one, or decided what no algorithm \
     may. The message names the algorithm and the simulated time."
);

/// The compiled part of Anabranch.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::AlgorithmError;
    #[pymodule_export]
    use super::InputError;
    #[pymodule_export]
    use super::LiveError;
    #[pymodule_export]
    use super::experiment::{Stop, measure, metrics_outline, toml_lines};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::kernel::{
        kernel_attach, kernel_checks, kernel_controls, kernel_detach, kernel_status, kernel_supported, kernel_use_paths,
    };
    #[pymodule_export]
    use super::outcome::{Outcome, check_metrics, metrics_schema};
    #[pymodule_export]
    use super::own::conformance::check_contract;
    #[pymodule_export]
    use super::own::context::{Context, Math, Rng};
    #[pymodule_export]
    use super::own::control::{Ack, Siblings, Window};
    #[pymodule_export]
    use super::own::playback::{Decision, Download, Ladder, PlayerEvent, PlayerView, Progress};
    #[pymodule_export]
    use super::own::scheduler::{Duplicate, Send, SentPacket, Wait};
    #[pymodule_export]
    use super::own::views::{InFlight, SchedulerView, Subflow};
    #[pymodule_export]
    use super::scenario::{
        Scenario, load, load_dictionary, nearest, rate_bps, registry, scenario_schema, shipped, time_s,
    };
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::serving::{Devices, Serving, check_serving, serve_defaults};
    #[pymodule_export]
    use super::simulate::run;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::testbed::{Testbed, header_room, live_missing};
    #[pymodule_export]
    use super::toml_text::value_text;
    #[pymodule_export]
    use super::traces::{trace_convert, trace_info, trace_synthesize};
    #[pymodule_export]
    use super::viewer::{Viewed, viewer_report};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
