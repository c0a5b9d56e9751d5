//! What to serve, to whom, and how; and what may be wrong with it.

use crate::Limits;
use anabranch_stack::Config;
use anabranch_stack::connection::{Choice, PathConfig, Protocol, Transport};
use anabranch_stack::options::OptionError;
use anabranch_units::PathId;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// One path to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The TUN device; one that exists without a process, or a new one.
    pub device: String,
    /// The server's address on this path; the kernel routes it to the device. It may be the same on all paths.
    pub address: IpAddr,
}

/// Where the bytes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The files below this directory, over HTTP/1.1.
    Root(PathBuf),
    /// Another server, `HOST:PORT`: what clients say is passed to it over TCP, and what it says to them, unread.
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

/// What to serve, to whom, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The paths; joins are accepted on all of them.
    pub listen: Vec<Listen>,
    /// The port.
    pub port: u16,
    /// The MTU of the devices in bytes.
    pub mtu: u32,
    /// What clients get.
    pub content: Content,
    /// Which subflow carries the next data.
    pub scheduler: Choice,
    /// The window of each subflow.
    pub congestion_control: Choice,
    /// Which subflows may carry new data.
    pub path_policy: Choice,
    /// Bounds for clients and attackers.
    pub limits: Limits,
    /// Bytes that all connections together may hold written and not acknowledged. Each may have its first
    /// [`FIRST_ROOM`](super::FIRST_ROOM); more only while there is some left.
    pub send_memory: u64,
    /// How long responses that are under way may take after the order to stop.
    pub grace: Duration,
    /// Show metrics to Prometheus at this address, with an ordinary socket of the kernel's.
    pub metrics: Option<SocketAddr>,
    /// Record all packets to this pcapng file.
    pub capture: Option<PathBuf>,
}

/// The default of [`Options::send_memory`]: with the first room of as many connections as the default limit allows, that is what
/// a machine with 1 GiB to spare can give away.
pub const SEND_MEMORY: u64 = 512 << 20;

impl Options {
    /// Serves `content` on these paths with the endpoint's defaults, on port 80.
    pub fn new(listen: Vec<Listen>, content: Content) -> Self {
        // The endpoint's own defaults, from a path that is never used.
        let defaults = Transport::default();
        Options {
            listen,
            port: 80,
            mtu: crate::lab::MTU,
            content,
            scheduler: defaults.scheduler,
            congestion_control: defaults.congestion_control,
            path_policy: defaults.path_policy,
            limits: Limits::default(),
            send_memory: SEND_MEMORY,
            grace: Duration::from_secs(10),
            metrics: None,
            capture: None,
        }
    }

    pub(super) fn config(&self) -> Config {
        let paths = self.listen.iter().enumerate().map(|(i, listen)| PathConfig {
            id: PathId(i as u16),
            local: listen.address,
            // Filled in as clients come.
            remote: listen.address,
            mtu: self.mtu,
            backup: false,
        });
        let mut config = Config::new(Protocol::Mptcp, paths.collect());
        config.local_port = self.port;
        config.transport.scheduler = self.scheduler.clone();
        config.transport.congestion_control = self.congestion_control.clone();
        config.transport.path_policy = self.path_policy.clone();
        config
    }

    /// What can be found out before anything is opened.
    pub(super) fn check(&self) -> Result<(), ServeError> {
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

/// Why nothing is served, or no longer.
#[derive(Debug, Error)]
pub enum ServeError {
    /// No path was given.
    #[error("a server needs at least one path: a TUN device and an address")]
    NoPath,
    /// A device was named for two paths.
    #[error("path {number} has the device {device} of an earlier one; each path needs its own")]
    Twice {
        /// The device.
        device: String,
        /// Which path names it again, from one.
        number: usize,
    },
    /// A scheduler, congestion control or path policy is not as it should be.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// The origin is not written as it must be.
    #[error("the origin {0:?} is not HOST:PORT, such as localhost:8080")]
    Origin(String),
    /// A device cannot be opened.
    #[error(
        "cannot open the TUN device {name}: {source}; as root, or with CAP_NET_ADMIN, or after `ip tuntap add dev {name} mode tun user USER`"
    )]
    Device {
        /// Its name.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The directory cannot be read.
    #[error("cannot serve {}: {source}", path.display())]
    Root {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The metrics cannot be shown there.
    #[error("cannot show metrics at {address}: {source}")]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The capture cannot be written.
    #[error("cannot write the capture {}: {source}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something else of the operating system's.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ServeError {
    /// Whether the options are wrong in themselves, on whatever machine.
    pub fn is_input(&self) -> bool {
        matches!(self, ServeError::NoPath | ServeError::Twice { .. } | ServeError::Option(_) | ServeError::Origin(_))
    }
}
