//! The server, at work on threads of its own; Python asks how it is doing.

use crate::InputError;
use crate::own::served::{self, FailureText, Service, is_own};
use crate::pacing::response_pacing;
use anabranch_live::Limits;
use anabranch_media::pacing;
use anabranch_serve::{
    AccessLog, Content, Devices as OpenDevices, Listen, LogFormat, Options, SEND_MEMORY, ServeError, Status, Visible,
};
use anabranch_stack::congestion;
use anabranch_stack::connection::Choice;
use anabranch_stack::external::Kind;
use anabranch_stack::options::OptionError;
use anabranch_units::Duration;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The defaults of the limits, for help texts.
#[derive(IntoPyObject)]
pub struct Defaults {
    max_connections: usize,
    max_per_address: usize,
    max_half_open: usize,
    memory: u64,
    send_memory: u64,
    receive_memory: u64,
    idle_seconds: f64,
    send_timeout_seconds: f64,
    grace_seconds: f64,
    scheduler: String,
    congestion_control: String,
    path_policy: String,
    response_pacing: &'static str,
}

/// The defaults of a server.
#[pyfunction]
pub fn serve_defaults() -> Defaults {
    let options = Options::new(Vec::new(), Content::Root(PathBuf::new()));
    let limits = Limits::default();
    Defaults {
        max_connections: limits.connections,
        max_per_address: limits.per_address,
        max_half_open: limits.half_open,
        memory: limits.memory,
        send_memory: SEND_MEMORY,
        receive_memory: limits.receive_memory,
        idle_seconds: limits.idle.as_secs_f64(),
        send_timeout_seconds: limits.stall.as_secs_f64(),
        grace_seconds: options.grace.as_secs_f64(),
        scheduler: options.scheduler.name,
        congestion_control: options.congestion_control.name,
        path_policy: options.path_policy.name,
        response_pacing: pacing::DEFAULT,
    }
}

/// What a path has carried, and what is open on it.
#[derive(IntoPyObject)]
pub struct PathFacts {
    device: String,
    /// Whether the device was deleted.
    gone: bool,
    sent_bytes: u64,
    received_bytes: u64,
    segments: u64,
    retransmitted_segments: u64,
    subflows: u64,
    /// How often segments became smaller for a link, by reports of routers and without; and the packets after the last
    /// time.
    mtu_reported: u64,
    mtu_black_holes: u64,
    mtu: u32,
    /// Subflows reset because the client acknowledged what had not left the server.
    false_acknowledgments: u64,
}

/// How a server is doing.
#[derive(IntoPyObject)]
pub struct Facts {
    uptime: f64,
    accepted: u64,
    refused: u64,
    /// SYNs refused because an own algorithm could not be made, and connections reset because one failed.
    unmade: u64,
    failed: u64,
    open: u64,
    half_open: u64,
    send_queue: u64,
    paths: Vec<PathFacts>,
}

impl From<Status> for Facts {
    fn from(status: Status) -> Self {
        let paths = status.paths.into_iter().map(|path| PathFacts {
            device: path.device,
            gone: path.gone,
            sent_bytes: path.sent.bytes,
            received_bytes: path.received.bytes,
            segments: path.segments.segments,
            retransmitted_segments: path.segments.retransmitted_segments,
            subflows: path.subflows,
            mtu_reported: path.segments.mtu_reported,
            mtu_black_holes: path.segments.mtu_black_holes,
            mtu: path.segments.mtu,
            false_acknowledgments: path.segments.false_acknowledgments,
        });
        Facts {
            uptime: status.uptime.as_secs_f64(),
            accepted: status.counters.accepted,
            refused: status.counters.refused,
            unmade: status.counters.unmade,
            failed: status.counters.failed,
            open: status.gauges.open,
            half_open: status.gauges.half_open,
            send_queue: status.gauges.send_queue,
            paths: paths.collect(),
        }
    }
}

/// A server at work.
#[pyclass(frozen)]
pub struct Serving {
    serving: Mutex<Option<anabranch_serve::Serving>>,
    service: Arc<Service>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let serving = self.serving.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // The thread that drops it has the interpreter, which the server's thread may need to end.
        Python::attach(|py| py.detach(|| drop(serving)));
    }
}

/// The open devices of a server, and the list of its open subflows, which outlive its process.
#[pyclass(frozen)]
pub struct Devices(OpenDevices);

#[pymethods]
impl Devices {
    /// Opens the devices of these paths.
    #[new]
    fn new(listen: Vec<(String, String, bool)>) -> PyResult<Self> {
        let opened = OpenDevices::open(&parse_listen(listen)?);
        opened.map(Devices).map_err(|error| refused(&error))
    }

    /// Those of other paths, with the same list; devices of both stay open.
    fn changed(&self, listen: Vec<(String, String, bool)>) -> PyResult<Self> {
        let changed = self.0.changed(&parse_listen(listen)?);
        changed.map(Devices).map_err(|error| refused(&error))
    }
}

/// Checks the arguments of a server without opening anything but its directory.
#[pyfunction]
#[pyo3(signature = (**options))]
pub fn check_serving(py: Python<'_>, options: Option<Bound<'_, PyDict>>) -> PyResult<()> {
    let options = read(py, options, &Arc::default())?;
    py.detach(|| options.check()).map_err(|error| refused(&error))
}

fn read(py: Python<'_>, options: Option<Bound<'_, PyDict>>, service: &Arc<Service>) -> PyResult<Options> {
    let options = options.ok_or_else(|| InputError::new_err("a server needs options"))?;
    // Whatever does not fit its type is wrong input, and never the end of a server that reads its options again.
    let options = options.extract::<ServingOptions>().map_err(|error| not_an_option(py, &error))?;
    let modules = options.modules.clone();
    let mut read = options.read()?;
    let mut choices = [
        (Kind::Scheduler, &mut read.scheduler),
        (Kind::CongestionControl, &mut read.congestion_control),
        (Kind::PathPolicy, &mut read.path_policy),
    ];
    served::attach(py, &mut choices, modules.as_deref(), service)?;
    Ok(read)
}

/// The options of a server, as the command line has them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct ServingOptions {
    listen: Vec<(String, String, bool)>,
    root: Option<PathBuf>,
    origin: Option<String>,
    follow_symlinks: bool,
    hidden: bool,
    proxy_protocol: bool,
    port: u16,
    mtu: u32,
    scheduler: String,
    congestion_control: String,
    path_policy: String,
    response_pacing: String,
    /// Where modules of own algorithms are looked for first.
    modules: Option<PathBuf>,
    max_connections: usize,
    max_per_address: usize,
    max_half_open: usize,
    memory: u64,
    send_memory: u64,
    receive_memory: u64,
    idle_seconds: f64,
    send_timeout_seconds: f64,
    grace_seconds: f64,
    metrics: Option<String>,
    state: Option<PathBuf>,
    access_log: Option<PathBuf>,
    access_log_json: bool,
    offload: bool,
    test_acknowledgments: bool,
    capture: Option<PathBuf>,
}

impl ServingOptions {
    fn read(self) -> PyResult<Options> {
        let limits = Limits {
            connections: self.max_connections,
            per_address: self.max_per_address,
            half_open: self.max_half_open,
            memory: self.memory,
            receive_memory: self.receive_memory,
            idle: Duration::from_secs_f64(self.idle_seconds),
            stall: Duration::from_secs_f64(self.send_timeout_seconds),
            ..Limits::default()
        };
        let format = log_format(self.access_log_json);
        Ok(Options {
            visible: Visible { symlinks: self.follow_symlinks, hidden: self.hidden },
            proxy_protocol: self.proxy_protocol,
            port: self.port,
            mtu: self.mtu,
            scheduler: Choice::of(&self.scheduler),
            congestion_control: congestion_choice(&self.congestion_control)?,
            path_policy: Choice::of(&self.path_policy),
            response_pacing: response_pacing(&self.response_pacing)
                .map_err(|error| InputError::new_err(error.to_string()))?,
            limits,
            send_memory: self.send_memory,
            grace: std::time::Duration::try_from_secs_f64(self.grace_seconds)
                .map_err(|e| InputError::new_err(e.to_string()))?,
            metrics: self.metrics.as_deref().map(parse_socket_address).transpose()?,
            state: self.state,
            access_log: self.access_log.map(|file| AccessLog { file, format }),
            offload: self.offload,
            test_acknowledgments: self.test_acknowledgments,
            capture: self.capture,
            ..Options::new(parse_listen(self.listen)?, content_of(self.root, self.origin)?)
        })
    }
}

#[pymethods]
impl Serving {
    /// Opens the devices, as far as they are not given, and serves from now on. The options are those of the command
    /// line.
    #[new]
    #[pyo3(signature = (devices, **options))]
    fn new(py: Python<'_>, devices: Option<&Devices>, options: Option<Bound<'_, PyDict>>) -> PyResult<Self> {
        let service = Arc::default();
        let options = read(py, options, &service)?;
        let options = Options { devices: devices.map(|devices| devices.0.clone()), ..options };
        let started = py.detach(|| anabranch_serve::Serving::start(options));
        let serving = Mutex::new(Some(started.map_err(|error| refused(&error))?));
        Ok(Serving { serving, service })
    }

    /// Goes on with other options, and opens the access log again.
    #[pyo3(signature = (**options))]
    fn reload(&self, py: Python<'_>, options: Option<Bound<'_, PyDict>>) -> PyResult<()> {
        let options = read(py, options, &self.service)?;
        py.detach(|| self.with(|serving| serving.reload(options)))?.map_err(|error| refused(&error))?;
        self.service.forget_places();
        Ok(())
    }

    /// The failures of own algorithms that were not reported yet, the first one of each place: the author's traceback,
    /// if it was an exception, and a message.
    fn take_failures(&self) -> Vec<FailureText> {
        self.service.take_failures()
    }

    /// Orders it to stop: the first time what is under way is completed, the second time it is broken off.
    fn stop(&self) -> PyResult<()> {
        self.with(anabranch_serve::Serving::stop)
    }

    /// Waits until it has ended, but not longer than that; tells whether it has.
    fn wait(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let timeout = std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
        py.detach(|| self.with(|serving| serving.wait(timeout)))
    }

    /// How it was doing a moment ago.
    fn status(&self) -> PyResult<Facts> {
        self.with(|serving| serving.status().into())
    }

    /// Where the metrics are shown, if they are.
    fn metrics(&self) -> PyResult<Option<String>> {
        self.with(|serving| serving.metrics().map(|address| address.to_string()))
    }

    /// Waits until it has ended; tells how many connections it has accepted.
    fn finish(&self, py: Python<'_>) -> PyResult<u64> {
        let serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or_else(ended)?;
        let counters = py.detach(|| serving.finish()).map_err(|error| refused(&error))?;
        Ok(counters.accepted)
    }
}

impl Serving {
    fn with<T>(&self, ask: impl FnOnce(&anabranch_serve::Serving) -> T) -> PyResult<T> {
        self.serving.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(ask).ok_or_else(ended)
    }
}

fn parse_listen(listen: Vec<(String, String, bool)>) -> PyResult<Vec<Listen>> {
    let parse = |(device, address, metered): (String, String, bool)| {
        Ok(Listen { device, address: parse_address(&address)?, metered })
    };
    listen.into_iter().map(parse).collect()
}

fn content_of(root: Option<PathBuf>, origin: Option<String>) -> PyResult<Content> {
    match (root, origin) {
        (Some(root), None) => Ok(Content::Root(root)),
        (None, Some(origin)) => Ok(Content::Origin(origin)),
        _ => Err(InputError::new_err("one of a directory and an origin is needed")),
    }
}

fn log_format(json: bool) -> LogFormat {
    if json { LogFormat::Json } else { LogFormat::Combined }
}

/// Which option is of the wrong type or size, from the error of its extraction.
fn not_an_option(py: Python<'_>, error: &PyErr) -> PyErr {
    let why = error.cause(py).map_or_else(String::new, |cause| format!(": {}", cause.value(py)));
    InputError::new_err(format!("{}{why}", error.value(py)))
}

fn ended() -> PyErr {
    PyOSError::new_err("the server has ended")
}

fn parse_address(text: &str) -> PyResult<IpAddr> {
    text.parse().map_err(|_| InputError::new_err(format!("`{text}` is no IP address, such as 10.99.0.1 or fd00:99::1")))
}

fn parse_socket_address(text: &str) -> PyResult<SocketAddr> {
    text.parse().map_err(|_| InputError::new_err(format!("`{text}` is no ADDRESS:PORT, such as 127.0.0.1:9100")))
}

fn congestion_choice(name: &str) -> PyResult<Choice> {
    let known = (is_own(name) || congestion::REGISTRY.find(name).is_some()).then(|| Choice::of(name));
    known.ok_or_else(|| InputError::new_err(format!("there is no congestion control `{name}`")))
}

fn refused(error: &ServeError) -> PyErr {
    // An own algorithm that cannot be made; the message names it.
    if let ServeError::Option(OptionError { option, message }) = error
        && option == "name"
    {
        return InputError::new_err(message.clone());
    }
    if error.is_input() { InputError::new_err(error.to_string()) } else { PyOSError::new_err(error.to_string()) }
}
