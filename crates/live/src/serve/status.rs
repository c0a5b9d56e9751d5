//! How a server is doing: what the loop publishes once a second for the metrics page and the status line.

use crate::Counters;
use crate::server::{Gauges, PathCounters};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// IP packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: u64,
}

impl Traffic {
    pub(super) fn count(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }
}

/// One path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathStatus {
    /// Its device.
    pub device: String,
    /// The server's address on it.
    pub address: IpAddr,
    /// From clients.
    pub received: Traffic,
    /// To clients.
    pub sent: Traffic,
    /// Packets to clients that the kernel refused, as it does while the device is down.
    pub refused: u64,
    /// Segments with payload.
    pub segments: PathCounters,
    /// Subflows that are open on it.
    pub subflows: u64,
}

/// How a server is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Since it started.
    pub uptime: Duration,
    /// What it counted.
    pub counters: Counters,
    /// What there is at the moment.
    pub gauges: Gauges,
    /// Path by path.
    pub paths: Vec<PathStatus>,
}

/// Where the latest status hangs.
#[derive(Debug, Default)]
pub(super) struct Board(Mutex<Status>);

impl Board {
    pub(super) fn publish(&self, status: Status) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }

    pub(super) fn read(&self) -> Status {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What this process uses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Process {
    /// Seconds of processor time so far, all threads together.
    pub cpu_seconds: f64,
    /// Bytes of main memory at the moment.
    pub resident_bytes: u64,
}

impl Process {
    /// This process, now. What the kernel does not tell is zero.
    pub fn now() -> Self {
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        // The second number of /proc/self/statm is the resident set in pages (proc(5)).
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default();
        Process {
            cpu_seconds: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9,
            resident_bytes: pages * rustix::param::page_size() as u64,
        }
    }
}
