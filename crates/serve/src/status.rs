//! Status of a server, published by the loop once a second for the metrics page and the status line.

use super::channel::lock;
use anabranch_events::PacingCounts;
use anabranch_live::{Counters, Gauges, PathCounters};
use anabranch_stack::external::DecisionTimes;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

/// A number of IP packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of packets.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: u64,
}

impl Traffic {
    pub(super) fn count(&mut self, packets: u32, bytes: usize) {
        self.packets += u64::from(packets);
        self.bytes += bytes as u64;
    }
}

/// Status of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathStatus {
    /// Whether its device is gone, and the path out of service until it is back.
    pub gone: bool,
    /// Name of its device.
    pub device: String,
    /// The server's address on it.
    pub address: IpAddr,
    /// Whether bytes cost money on it.
    pub metered: bool,
    /// From clients.
    pub received: Traffic,
    /// To clients.
    pub sent: Traffic,
    /// Packets to clients that the kernel refused, as it does while the device is down.
    pub refused: u64,
    /// Sent segments with payload.
    pub segments: PathCounters,
    /// Number of open subflows.
    pub subflows: u64,
}

/// Status of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Time since it started.
    pub uptime: Duration,
    /// Counters since it started.
    pub counters: Counters,
    /// Current values.
    pub gauges: Gauges,
    /// Bytes that the buffers of all connections occupy, without those of the endpoint.
    pub held: u64,
    /// How long decisions of algorithms that are in no registry took; zeros without such.
    pub decisions: DecisionTimes,
    /// Counts of the pacing of responses; zeros without.
    pub pacing: PacingCounts,
    /// Status of each path.
    pub paths: Vec<PathStatus>,
}

/// Holds the latest status.
#[derive(Debug, Default)]
pub(super) struct Board(Mutex<Status>);

impl Board {
    pub(super) fn publish(&self, status: Status) {
        *lock(&self.0) = status;
    }

    pub(super) fn read(&self) -> Status {
        lock(&self.0).clone()
    }
}

/// Resources used by this process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Process {
    /// Seconds of processor time so far, all threads together.
    pub cpu_seconds: f64,
    /// Bytes of main memory in use.
    pub resident_bytes: u64,
}

impl Process {
    /// The current values; zero where the kernel gives none.
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
