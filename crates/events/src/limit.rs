//! What keeps a path of a connection from carrying more.

use anabranch_units::{Duration, PathId};
use serde::Serialize;

/// Why a path carries no more data than it does, after everything was sent that may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// No subflow is established on the path.
    NotJoined,
    /// The subflow timed out or is stale: others carry its data.
    Failed,
    /// The path policy forbids it new data.
    Policy,
    /// It is a backup, and another subflow works.
    Backup,
    /// The congestion window is full, or the pace of the control has not come to the next packet.
    Window,
    /// The same while losses are repaired.
    Recovery,
    /// The window has room, but the cap on the pace of the connection has not come to the next packet.
    PaceCap,
    /// The peer's receive window is full.
    ReceiveWindow,
    /// The application has more, but the send buffer is full.
    SendBuffer,
    /// There is data and room for it, but the scheduler keeps it for, or has given it to, another subflow.
    Scheduler,
    /// Everything that the application wrote was sent.
    NoData,
}

/// A path of a connection as its sender sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathLimit {
    /// The path.
    pub path: PathId,
    /// Why it carries no more.
    pub limit: Limit,
    /// Congestion window in packets; zero without a subflow.
    pub cwnd: f64,
    /// Whether the window is below the slow-start threshold.
    pub slow_start: bool,
    /// Bytes that were sent on it and are not acknowledged.
    pub outstanding: u64,
    /// Smoothed round trip; zero before the first sample.
    pub srtt: Duration,
}
