//! Coupled congestion control in the stock kernel. Without the feature `kernel` the functions exist and say what is
//! missing.

use anabranch_kernel::{KernelError, checks};
use pyo3::prelude::*;
use std::path::PathBuf;

/// A requirement, what was found, and what helps if it is not met.
#[derive(IntoPyObject)]
pub struct Check {
    name: &'static str,
    found: String,
    remedy: Option<String>,
}

/// A subflow under a coupled control.
#[derive(IntoPyObject)]
pub struct Subflow {
    connection: u32,
    number: u32,
    namespace: u32,
    local: String,
    remote: String,
    window_packets: f64,
    rtt_s: f64,
    mss: u32,
    in_flight: u32,
    losses: u32,
    timeouts: u32,
}

/// A control that is attached.
#[derive(IntoPyObject)]
pub struct Attachment {
    control: &'static str,
    kernel_name: String,
    cgroup: Option<PathBuf>,
    port: Option<u64>,
    claimed: u64,
    released: u64,
    degraded: u64,
    subflows: Vec<Subflow>,
}

/// What is attached, and what running connections keep of detached controls.
#[derive(IntoPyObject)]
pub struct Status {
    attachments: Vec<Attachment>,
    draining_subflows: Vec<usize>,
}

/// Whether this build has the programs.
#[pyfunction]
pub fn kernel_supported() -> bool {
    cfg!(feature = "kernel")
}

/// The names of the controls that the programs implement.
#[pyfunction]
pub fn kernel_controls() -> Vec<&'static str> {
    anabranch_kernel::Control::ALL.map(anabranch_kernel::Control::name).into()
}

/// What the machine must provide.
#[pyfunction]
pub fn kernel_checks() -> Vec<Check> {
    let convert = |check: checks::Check| Check { name: check.name, found: check.found, remedy: check.remedy };
    checks::checks().into_iter().map(convert).collect()
}

#[cfg(feature = "kernel")]
mod bpf {
    use super::{Attachment, KernelError, Status, Subflow};
    use anabranch_kernel::{Control, DEFAULT_FILE_SYSTEM, Decision, MAX_SUBFLOWS, PathUse, Selection};
    use anabranch_stack::options::Options;
    use pyo3::prelude::*;
    use std::path::PathBuf;

    fn place(file_system: Option<PathBuf>) -> PathBuf {
        file_system.unwrap_or_else(|| DEFAULT_FILE_SYSTEM.into())
    }

    fn find(name: &str) -> Result<Control, KernelError> {
        Control::find(name).ok_or_else(|| {
            let names = Control::ALL.map(Control::name).join(", ");
            KernelError::Input(format!("`{name}` is none of the controls for the kernel: {names}"))
        })
    }

    pub fn attach(
        control: &str,
        cgroup: Option<PathBuf>,
        port: Option<u16>,
        max_subflows: Option<u32>,
        file_system: Option<PathBuf>,
    ) -> Result<(), KernelError> {
        let max_subflows = max_subflows.unwrap_or(MAX_SUBFLOWS);
        anabranch_kernel::attach(&place(file_system), find(control)?, &Selection { cgroup, port, max_subflows })
    }

    pub fn detach(control: Option<&str>, file_system: Option<PathBuf>) -> Result<Vec<&'static str>, KernelError> {
        let only = control.map(find).transpose()?;
        let detached = anabranch_kernel::detach(&place(file_system), only)?;
        Ok(detached.into_iter().map(Control::name).collect())
    }

    pub fn status(file_system: Option<PathBuf>) -> Result<Status, KernelError> {
        let place = place(file_system);
        let attachments = anabranch_kernel::attachments(&place)?.into_iter().map(attachment).collect();
        let draining = anabranch_kernel::draining(&place).into_iter().map(|table| table.subflows).collect();
        Ok(Status { attachments, draining_subflows: draining })
    }

    pub fn use_paths(
        py: Python<'_>,
        policy: &str,
        ready: &Bound<'_, PyAny>,
        changed: &Bound<'_, PyAny>,
        place: Option<PathBuf>,
    ) -> PyResult<()> {
        let place = self::place(place);
        let mut paths = PathUse::begin(&place, policy, Options::default()).map_err(|error| super::raised(&error))?;
        if let Err(error) = ready.call0() {
            py.detach(|| paths.end());
            return Err(error);
        }
        let ended = loop {
            let decisions = py.detach(|| paths.tick()).map_err(|error| super::raised(&error));
            let reported = decisions.and_then(|decisions| {
                decisions.into_iter().try_for_each(|Decision { subflow, used }| {
                    let found = self::subflow(subflow);
                    changed.call1((found.connection, found.local, found.remote, used)).map(|_| ())
                })
            });
            if let Err(error) = reported.and_then(|()| py.check_signals()) {
                break error;
            }
        };
        py.detach(|| paths.end());
        Err(ended)
    }

    fn attachment(found: anabranch_kernel::Attachment) -> Attachment {
        Attachment {
            control: found.control.name(),
            kernel_name: found.control.kernel_name(),
            cgroup: found.cgroup,
            port: Some(found.totals.port).filter(|port| *port > 0),
            claimed: found.totals.claimed,
            released: found.totals.released,
            degraded: found.totals.degraded,
            subflows: found.subflows.into_iter().map(subflow).collect(),
        }
    }

    fn subflow(found: anabranch_kernel::Subflow) -> Subflow {
        let text = |end: (std::net::IpAddr, u16)| std::net::SocketAddr::from(end).to_string();
        Subflow {
            connection: found.token,
            number: found.number,
            namespace: found.namespace,
            local: text(found.local),
            remote: text(found.remote),
            window_packets: found.window,
            rtt_s: found.rtt_s,
            mss: found.mss,
            in_flight: found.in_flight,
            losses: found.losses,
            timeouts: found.timeouts,
        }
    }
}

#[cfg(not(feature = "kernel"))]
mod bpf {
    use super::{KernelError, Status};
    use pyo3::prelude::*;
    use std::path::PathBuf;

    fn left_out<T>() -> Result<T, KernelError> {
        let reason = "this build of anabranch has no programs for the kernel, because clang or the headers of libelf were missing";
        Err(KernelError::Machine(format!("{reason}; apt-get install clang libelf-dev zlib1g-dev, and make build")))
    }

    pub fn attach(
        _: &str,
        _: Option<PathBuf>,
        _: Option<u16>,
        _: Option<u32>,
        _: Option<PathBuf>,
    ) -> Result<(), KernelError> {
        left_out()
    }

    pub fn detach(_: Option<&str>, _: Option<PathBuf>) -> Result<Vec<&'static str>, KernelError> {
        left_out()
    }

    pub fn status(_: Option<PathBuf>) -> Result<Status, KernelError> {
        left_out()
    }

    pub fn use_paths(
        _: Python<'_>,
        _: &str,
        _: &Bound<'_, PyAny>,
        _: &Bound<'_, PyAny>,
        _: Option<PathBuf>,
    ) -> PyResult<()> {
        left_out().map_err(|error| super::raised(&error))
    }
}

/// Attaches a control to a cgroup, a port, or a port of a cgroup.
#[pyfunction]
#[pyo3(signature = (control, *, cgroup=None, port=None, max_subflows=None, file_system=None))]
pub fn kernel_attach(
    py: Python<'_>,
    control: &str,
    cgroup: Option<PathBuf>,
    port: Option<u16>,
    max_subflows: Option<u32>,
    file_system: Option<PathBuf>,
) -> PyResult<()> {
    py.detach(|| bpf::attach(control, cgroup, port, max_subflows, file_system)).map_err(|error| raised(&error))
}

/// Detaches a control, or all; returns those that were attached.
#[pyfunction]
#[pyo3(signature = (control=None, *, file_system=None))]
pub fn kernel_detach(
    py: Python<'_>,
    control: Option<&str>,
    file_system: Option<PathBuf>,
) -> PyResult<Vec<&'static str>> {
    py.detach(|| bpf::detach(control, file_system)).map_err(|error| raised(&error))
}

/// What is attached.
#[pyfunction]
#[pyo3(signature = (*, file_system=None))]
pub fn kernel_status(py: Python<'_>, file_system: Option<PathBuf>) -> PyResult<Status> {
    py.detach(|| bpf::status(file_system)).map_err(|error| raised(&error))
}

/// Decides on path use until a signal is raised, and then lets every subflow carry data again. `ready` is called once,
/// when new subflows can join; `changed` gets connection, local end, remote end, and whether the subflow is used.
#[pyfunction]
#[pyo3(signature = (policy, ready, changed, *, file_system=None))]
pub fn kernel_use_paths(
    py: Python<'_>,
    policy: &str,
    ready: Bound<'_, PyAny>,
    changed: Bound<'_, PyAny>,
    file_system: Option<PathBuf>,
) -> PyResult<()> {
    bpf::use_paths(py, policy, &ready, &changed, file_system)
}

fn raised(error: &KernelError) -> PyErr {
    match error {
        KernelError::Input(message) => crate::InputError::new_err(message.clone()),
        KernelError::Machine(message) => crate::LiveError::new_err(message.clone()),
    }
}
