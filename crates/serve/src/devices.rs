//! What outlives a server's process: its open devices, and the list of its open subflows.

use super::state::SharedState;
use super::{Listen, ServeError};
use anabranch_live::Tun;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a busy device is waited for, and how often it is tried. The kernel detaches the devices of a killed process
/// a moment after its end.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);
const BUSY_RETRY: Duration = Duration::from_millis(20);

/// Open TUN devices, and a list of open subflows in memory.
///
/// A process that holds them can run one server after the other in child processes. Packets wait in the devices
/// meanwhile, and a server that takes over from one that was killed resets the connections of the list.
#[derive(Clone, Debug)]
pub struct Devices {
    tuns: Vec<Arc<Tun>>,
    pub(super) subflows: Arc<SharedState>,
}

impl Devices {
    /// Opens the devices of these paths, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// If a device cannot be opened, or there is no memory for the list.
    pub fn open(listen: &[Listen]) -> Result<Self, ServeError> {
        Devices { tuns: Vec::new(), subflows: Arc::new(SharedState::new()?) }.changed(listen)
    }

    /// Those of other paths, with the same list; devices of both stay open. One of both that was deleted is opened
    /// again if it is back. It is not made, because one that the server makes has no routes, and keeps the operator
    /// from making it.
    ///
    /// # Errors
    /// If a device cannot be opened.
    pub fn changed(&self, listen: &[Listen]) -> Result<Self, ServeError> {
        let tuns = listen.iter().map(|listen| match self.tun(&listen.device) {
            Some(tun) if tun.is_attached() => Ok(tun),
            Some(deleted) => Ok(reopen(&listen.device).unwrap_or(deleted)),
            None => open(&listen.device),
        });
        Ok(Devices { tuns: tuns.collect::<Result<_, _>>()?, subflows: self.subflows.clone() })
    }

    /// The device of this name.
    pub(super) fn tun(&self, name: &str) -> Option<Arc<Tun>> {
        self.tuns.iter().find(|tun| tun.name() == name).cloned()
    }
}

/// Opens a device that was deleted, if it is there again.
pub(super) fn reopen(name: &str) -> Option<Arc<Tun>> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None).ok()?;
    rustix::net::netdevice::name_to_index(&socket, name).ok()?;
    Tun::open_offloading(name).ok().map(Arc::new)
}

/// Opens a device; one that another process has is waited for.
pub(super) fn open(name: &str) -> Result<Arc<Tun>, ServeError> {
    let began = Instant::now();
    loop {
        match Tun::open_offloading(name) {
            Ok(device) => return Ok(Arc::new(device)),
            Err(error) if error.kind() == ErrorKind::ResourceBusy && began.elapsed() < BUSY_TIMEOUT => {
                std::thread::sleep(BUSY_RETRY);
            }
            Err(source) => return Err(ServeError::Device { name: name.to_owned(), source }),
        }
    }
}
