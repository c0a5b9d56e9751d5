//! Options of a server, and their errors.

use super::{AccessLog, Devices, ResponsePacer, Visible};
use anabranch_live::{DEFAULT_MTU, Limits, Server};
use anabranch_stack::Config;
use anabranch_stack::connection::{Choice, PathConfig, Protocol, Transport, WITHHELD_INTERVAL};
use anabranch_stack::options::OptionError;
use anabranch_units::PathId;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// One path to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The TUN device; an existing one without a process, or a new one.
    pub device: String,
    /// The server's address on this path; the kernel routes it to the device. It may be the same on all paths.
    pub address: IpAddr,
    /// Whether bytes cost money on this path. Schedulers see it on each of its subflows.
    pub metered: bool,
}

/// Source of the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The files below this directory, over HTTP/1.1.
    Root(PathBuf),
    /// Another server, `HOST:PORT`: the bytes of clients are passed to it over TCP, and its bytes to them, without
    /// inspection.
    Origin(String),
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::Root(root) => write!(f, "{}", root.display()),
            Content::Origin(origin) => f.write_str(origin),
        }
    }
}

/// Options of a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// Paths; joins are accepted on all of them.
    pub listen: Vec<Listen>,
    /// TCP port.
    pub port: u16,
    /// The MTU of the devices in bytes.
    pub mtu: u32,
    /// Source of the content.
    pub content: Content,
    /// Which files of [`Content::Root`] are served.
    pub visible: Visible,
    /// Whether [`Content::Origin`] is sent the client's address before its bytes, in version 2 of the PROXY protocol.
    pub proxy_protocol: bool,
    /// Decides which subflow carries the next data.
    pub scheduler: Choice,
    /// The window of each subflow.
    pub congestion_control: Choice,
    /// Which subflows may carry new data.
    pub path_policy: Choice,
    /// Paces responses of [`Content::Root`] to viewers of DASH; `None`: they are not paced.
    pub response_pacing: Option<Arc<dyn ResponsePacer>>,
    /// Limits against overload and attacks.
    pub limits: Limits,
    /// Bytes that all connections together may hold written and not acknowledged. Each may have its first
    /// [`FIRST_ROOM`](super::FIRST_ROOM); more only while there is some left.
    pub send_memory: u64,
    /// How long running responses may take after the order to stop.
    pub grace: Duration,
    /// Address of the Prometheus metrics page, with an ordinary socket of the kernel's; `None`: no page.
    pub metrics: Option<SocketAddr>,
    /// File with the open subflows, at most 0.1 s old; those that an earlier server left there are reset at the
    /// start. `None`: the list of `devices` is used, if there is one; otherwise their clients time out by themselves.
    pub state: Option<PathBuf>,
    /// Devices that are open already; others are opened. `None`: all are opened.
    pub devices: Option<Devices>,
    /// Whether the kernel gets several segments as one packet, and cuts it up (segmentation offload). A capture turns
    /// it off.
    pub offload: bool,
    /// Whether segments are withheld now and then, to reset clients that acknowledge what they have not received.
    pub test_acknowledgments: bool,
    /// The access log; `None`: none.
    pub access_log: Option<AccessLog>,
    /// File for a pcapng capture of all packets; `None`: no capture.
    pub capture: Option<PathBuf>,
}

/// The default of [`Options::send_memory`]: with the first room of as many connections as the default limit allows,
/// this fits a machine with 1 GiB to spare.
pub const SEND_MEMORY: u64 = 512 << 20;

impl Options {
    /// Serves `content` on these paths with the endpoint's defaults, on port 80.
    pub fn new(listen: Vec<Listen>, content: Content) -> Self {
        // The endpoint's own defaults, from a path that is never used.
        let defaults = Transport::default();
        Options {
            listen,
            port: 80,
            mtu: DEFAULT_MTU,
            content,
            visible: Visible::default(),
            proxy_protocol: false,
            scheduler: defaults.scheduler,
            congestion_control: defaults.congestion_control,
            path_policy: defaults.path_policy,
            response_pacing: None,
            limits: Limits::default(),
            send_memory: SEND_MEMORY,
            grace: Duration::from_secs(10),
            metrics: None,
            state: None,
            devices: None,
            offload: true,
            test_acknowledgments: true,
            access_log: None,
            capture: None,
        }
    }

    pub(super) fn config(&self) -> Config {
        let paths = self.listen.iter().enumerate().map(|(i, listen)| PathConfig {
            id: PathId(i as u16),
            local: listen.address,
            // Set when clients connect.
            remote: listen.address,
            mtu: self.mtu,
            backup: false,
            metered: listen.metered,
        });
        let mut config = Config::new(Protocol::Mptcp, paths.collect());
        config.local_port = self.port;
        // What is behind the machine's own interfaces is not known.
        config.mtu_discovery = true;
        config.withheld_interval = self.test_acknowledgments.then_some(WITHHELD_INTERVAL);
        config.transport.scheduler = self.scheduler.clone();
        config.transport.congestion_control = self.congestion_control.clone();
        config.transport.path_policy = self.path_policy.clone();
        config
    }

    /// What a running server cannot change; the name of the first such option that the other ones have changed.
    pub(super) fn fixed(&self, other: &Options) -> Option<&'static str> {
        let same = [
            ("listen", self.listen == other.listen),
            ("port", self.port == other.port),
            ("mtu", self.mtu == other.mtu),
            ("metrics", self.metrics == other.metrics),
            ("state", self.state == other.state),
            ("offload", self.offload == other.offload),
            ("pcap", self.capture == other.capture),
        ];
        same.into_iter().find(|(_, same)| !same).map(|(name, _)| name)
    }

    /// Checks what can be checked without opening devices or files.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub fn check(&self) -> Result<(), ServeError> {
        if self.listen.is_empty() {
            return Err(ServeError::NoPath);
        }
        if let Some((i, twice)) = self
            .listen
            .iter()
            .enumerate()
            .find(|(i, listen)| self.listen[..*i].iter().any(|earlier| earlier.device == listen.device))
        {
            return Err(ServeError::Twice { device: twice.device.clone(), number: i + 1 });
        }
        Server::<(), ()>::check(&self.config(), self.limits)?;
        match &self.content {
            Content::Root(root) => match std::fs::read_dir(root) {
                Ok(_) => Ok(()),
                Err(source) => Err(ServeError::Root { path: root.clone(), source }),
            },
            Content::Origin(origin) => {
                let named = origin.rsplit_once(':').filter(|(host, _)| !host.is_empty());
                match named.and_then(|(_, port)| port.parse::<u16>().ok()).filter(|port| *port > 0) {
                    Some(_) => Ok(()),
                    None => Err(ServeError::Origin(origin.clone())),
                }
            }
        }
    }
}

/// Why a server cannot start, or has ended.
#[derive(Debug, Error)]
pub enum ServeError {
    /// No path is configured.
    #[error("a server needs at least one path: a TUN device and an address")]
    NoPath,
    /// Two paths have the same device.
    #[error("path {number} has the device {device} of an earlier one; each path needs its own")]
    Twice {
        /// Name of the device.
        device: String,
        /// Number of the second path with it, from one.
        number: usize,
    },
    /// An option that a running server cannot change.
    #[error("a running server keeps its --{0}; start it again to change that")]
    Fixed(&'static str),
    /// Invalid scheduler, congestion control or path policy.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// The origin is not of the form `HOST:PORT`.
    #[error("the origin {0:?} is not HOST:PORT, such as localhost:8080")]
    Origin(String),
    /// A device cannot be opened.
    #[error("cannot open the TUN device {name}: {source}; {}", device_remedy(name, source))]
    Device {
        /// Name of the device.
        name: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The directory cannot be read.
    #[error("cannot serve {}: {source}", path.display())]
    Root {
        /// Path of the directory.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The metrics page cannot listen on its address.
    #[error("cannot show metrics at {address}: {source}")]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The access log cannot be written.
    #[error("cannot write the access log {}: {source}", path.display())]
    AccessLog {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file with the open subflows cannot be read or written.
    #[error("cannot use the state file {}: {source}", path.display())]
    State {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system, or that it is another program's file.
        source: io::Error,
    },
    /// The capture cannot be written.
    #[error("cannot write the capture {}: {source}", path.display())]
    Capture {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Another error of the operating system.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What to do about a device that cannot be opened.
fn device_remedy(name: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ResourceBusy => format!(
            "another process has it: `grep -l 'iff:.*{name}$' /proc/[0-9]*/fdinfo/*` as root shows which, and `--listen` with another \
             device avoids it"
        ),
        io::ErrorKind::NotFound => "there is no /dev/net/tun; `modprobe tun` as root makes it".to_owned(),
        _ => format!("as root, or with CAP_NET_ADMIN, or after `ip tuntap add dev {name} mode tun user USER`"),
    }
}

impl ServeError {
    /// Whether the options themselves are wrong, on any machine.
    pub fn is_input(&self) -> bool {
        matches!(self, ServeError::NoPath | ServeError::Twice { .. } | ServeError::Option(_) | ServeError::Origin(_))
    }
}
