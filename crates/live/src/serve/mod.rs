//! Files over HTTP/1.1 to real Multipath TCP clients.
//!
//! One TUN device per path stands between the kernel, which routes the server's address to it, and our endpoint. A thread drives
//! the endpoint ([`Stream`] is what comes out of it); HTTP runs on the caller's thread.
//!
//! On a router or host with the uplinks `up1` and `up2`, both of which clients reach as 10.99.0.1, for each path `N`:
//!
//! ```text
//! ip tuntap add dev srvN mode tun user USER           # USER then needs no privilege
//! ip link set srvN up mtu 1500
//! ip route add 10.99.0.1/32 dev srvN table 20N        # what comes in by a path goes to its device,
//! ip rule add iif upN lookup 20N pref 20N
//! ip route add CLIENTS-OF-N dev upN                   # and answers return by the path
//! sysctl -w net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.srvN.rp_filter=0
//! anabranch-serve --root DIR --listen srv1=10.99.0.1 --listen srv2=10.99.0.1
//! ```
//!
//! [`crate::lab::router`] does the same in a namespace, and the tests run the program behind it.

mod driver;
mod http;
mod stream;

pub use stream::Stream;

use crate::{Counters, Limits, Server, Tap, Tun};
use anabranch_stack::Config;
use anabranch_stack::connection::{Choice, CongestionChoice, PathConfig, Protocol};
use anabranch_stack::options::OptionError;
use anabranch_units::PathId;
use driver::{Driver, Order, Wakes};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::mpsc;

/// One path to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The TUN device; one that exists without a process, or a new one.
    pub device: String,
    /// The server's address on this path; the kernel routes it to the device. It may be the same on all paths.
    pub address: IpAddr,
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
    /// The directory whose files are served.
    pub root: PathBuf,
    /// Which subflow carries the next data.
    pub scheduler: Choice,
    /// The window of each subflow.
    pub congestion_control: CongestionChoice,
    /// Which subflows may carry new data.
    pub path_policy: Choice,
    /// Bounds for clients and attackers.
    pub limits: Limits,
    /// How long responses that are under way may take after the order to stop.
    pub grace: Duration,
    /// Record all packets to this pcapng file.
    pub capture: Option<PathBuf>,
}

impl Options {
    /// Serves `root` on these paths with the endpoint's defaults, on port 80.
    pub fn new(listen: Vec<Listen>, root: PathBuf) -> Self {
        // The endpoint's own defaults, from a path that is never used.
        let nowhere = PathConfig {
            id: PathId(0),
            local: IpAddr::from([0; 4]),
            remote: IpAddr::from([0; 4]),
            mtu: crate::lab::MTU,
            backup: false,
        };
        let defaults = Config::new(Protocol::Mptcp, vec![nowhere]);
        Options {
            listen,
            port: 80,
            mtu: crate::lab::MTU,
            root,
            scheduler: defaults.scheduler,
            congestion_control: defaults.congestion_control,
            path_policy: defaults.path_policy,
            limits: Limits::default(),
            grace: Duration::from_secs(10),
            capture: None,
        }
    }

    fn config(&self) -> Config {
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
        config.scheduler = self.scheduler.clone();
        config.congestion_control = self.congestion_control.clone();
        config.path_policy = self.path_policy.clone();
        config
    }
}

/// Why nothing is served, or no longer.
#[derive(Debug, Error)]
pub enum ServeError {
    /// No path was given.
    #[error("a server needs at least one path: a TUN device and an address")]
    NoPath,
    /// A scheduler, congestion control or path policy is not as it should be.
    #[error(transparent)]
    Option(#[from] OptionError),
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
    /// Something else of the operating system's.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Serves until Ctrl-C (SIGINT) or SIGTERM: then no new client is accepted, responses under way are completed within the grace
/// period, and a second signal ends them at once. `ready` is called once clients can come.
///
/// # Errors
/// See [`ServeError`].
pub fn serve(options: &Options, ready: impl FnOnce()) -> Result<Counters, ServeError> {
    let (driver, wakes, streams) = prepare(options)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let thread = {
        let wakes = wakes.clone();
        std::thread::Builder::new().name("anabranch-loop".into()).spawn(move || driver.run(&wakes))?
    };
    ready();
    let served = runtime.block_on(http::run(options, streams, &wakes));
    // Whatever happened here, the loop must end before its devices can vanish.
    wakes.order(if served.is_ok() { Order::Finish } else { Order::Abort });
    let counters = match thread.join() {
        Ok(result) => result?,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    served?;
    Ok(counters)
}

type Prepared = (
    Driver<Box<dyn FnMut(crate::Opened) -> stream::StreamApplication + Send>>,
    Arc<Wakes>,
    mpsc::UnboundedReceiver<Stream>,
);

/// Opens the devices, and connects the loop with whoever takes its streams.
fn prepare(options: &Options) -> Result<Prepared, ServeError> {
    check_root(&options.root)?;
    if options.listen.is_empty() {
        return Err(ServeError::NoPath);
    }
    let wakes = Arc::new(Wakes::new()?);
    // Its length is bounded by that of connections.
    let (sender, streams) = mpsc::unbounded_channel();
    let write_room = usize::try_from(options.limits.memory / 2).unwrap_or(usize::MAX);
    let for_streams = wakes.clone();
    let open = move |opened| {
        let (application, stream) = stream::pair(opened, write_room, for_streams.clone());
        // Nobody takes it any more: the stream is dropped, and that aborts the connection.
        let _ = sender.send(stream);
        application
    };
    let open: Box<dyn FnMut(_) -> _ + Send> = Box::new(open);
    let server = Server::new(options.config(), options.limits, open)?;
    let devices: Result<_, _> = options.listen.iter().map(|listen| open_device(&listen.device)).collect();
    let tap = match &options.capture {
        Some(path) => Tap::file(path, crate::End::Far)?,
        None => Tap::none(),
    };
    Ok((Driver { devices: devices?, server, tap }, wakes, streams))
}

fn open_device(name: &str) -> Result<Tun, ServeError> {
    Tun::open(name).map_err(|source| ServeError::Device { name: name.to_owned(), source })
}

fn check_root(root: &Path) -> Result<(), ServeError> {
    std::fs::read_dir(root).map(drop).map_err(|source| ServeError::Root { path: root.to_owned(), source })
}
