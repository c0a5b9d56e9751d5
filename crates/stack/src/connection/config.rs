//! Configuration of a connection, chosen by the host before it begins.

use crate::options::Options;
use crate::{congestion, path_policy, scheduler};
use anabranch_units::PathId;
use core::net::IpAddr;

/// Random numbers for keys, initial sequence numbers and nonces: from the operating system live, from the seed in
/// simulation.
pub trait Entropy: Send {
    /// The next 64 random bits.
    fn next_u64(&mut self) -> u64;
}

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Multipath TCP version 1, falling back to TCP where the peer cannot.
    Mptcp,
    /// Plain TCP over the first path.
    Tcp,
}

/// When data is bound to a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// When the subflow's congestion window has room, one segment at a time (legacy Multipath TCP).
    AtWindow,
    /// Ahead of time, into the subflow's send buffer (upstream Linux).
    IntoBuffer,
}

/// Treatment of the data of a subflow that times out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failover {
    /// The others retransmit all of it at once, and the subflow gets no new data until an acknowledgment arrives on it
    /// (legacy Multipath TCP).
    Legacy,
    /// An idle subflow retransmits the first unacknowledged data whenever the connection's own timer fires. A subflow
    /// without acknowledgments for several of these periods is stale: it gets no new data, and the others retransmit
    /// everything (upstream Linux).
    Upstream,
}

/// A scheduler or a path policy by name.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Name in the registry.
    pub name: String,
    /// Options; none means defaults.
    pub options: Options,
}

impl Choice {
    /// The entry `name` with its default options.
    pub fn of(name: &str) -> Self {
        Choice { name: name.into(), options: Options::default() }
    }
}

/// A congestion control by registry entry.
#[derive(Clone, Debug)]
pub struct CongestionChoice {
    /// Registry entry of the control.
    pub entry: &'static congestion::Entry,
    /// Options; none means defaults.
    pub options: Options,
}

/// The receive window and how it grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveBuffer {
    /// Bytes of payload accepted at first.
    pub initial: u64,
    /// Bytes to which autotuning may raise that; the same as `initial` for a fixed window.
    pub max: u64,
}

/// One path that the connection may use.
#[derive(Clone, Copy, Debug)]
pub struct PathConfig {
    /// Identifier of the path.
    pub id: PathId,
    /// This end's address.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
    /// The largest IP packet, in bytes.
    pub mtu: u32,
    /// Whether to use the path only when no other works.
    pub backup: bool,
}

impl PathConfig {
    /// Bytes of the IP header on this path, without options.
    pub fn ip_header(&self) -> u32 {
        if self.local.is_ipv4() { 20 } else { 40 }
    }
}

/// Configuration of a connection. The defaults are those of Linux.
#[derive(Clone, Debug)]
pub struct Config {
    /// The protocol to use.
    pub protocol: Protocol,
    /// Decides which subflow carries the next data.
    pub scheduler: Choice,
    /// Decides which subflows may carry new data.
    pub path_policy: Choice,
    /// Sets the window of each subflow.
    pub congestion_control: CongestionChoice,
    /// Paths whose subflows use another control.
    pub path_congestion_control: Vec<(PathId, CongestionChoice)>,
    /// When data is bound to a subflow.
    pub commit: Commit,
    /// Treatment of the data of a subflow that times out.
    pub failover: Failover,
    /// Retransmit the first unacknowledged data on a faster subflow when the shared window is full (legacy Multipath
    /// TCP).
    pub opportunistic_retransmission: bool,
    /// Halve the window of the subflow that blocked the shared window.
    pub penalisation: bool,
    /// Receive window and its growth.
    pub receive_buffer: ReceiveBuffer,
    /// Bytes that may be written and not acknowledged at the data level; further bytes stay with the application.
    pub send_buffer: u64,
    /// Packets that may be sent before the first acknowledgment (RFC 6928).
    pub initial_window: u32,
    /// Pace packets at Linux's pacing rate even if the congestion control does not ask for it.
    pub pacing: bool,
    /// Decay the window while nothing is sent (RFC 2861).
    pub idle_restart: bool,
    /// Round windows to whole packets after a reduction.
    pub whole_windows: bool,
    /// Delay a packet until segmentation offload could send a burst, where Linux does. Bursts are not built.
    pub segmentation_offload: bool,
    /// Number of unanswered SYNs with MP_CAPABLE, first one excluded, after which the SYN offers plain TCP (Linux
    /// `net.mptcp.syn_retrans_before_tcp_fallback`). At or above the number of SYN retransmissions: never.
    pub capable_retries: u32,
    /// Use the timestamps option.
    pub timestamps: bool,
    /// Send data sequence numbers in 8 bytes rather than 4; the peer then has room for one SACK block instead of two.
    pub wide_data_seq: bool,
    /// A client joins to the remote addresses of all its paths; otherwise only to that of the first path and to those
    /// that the server advertised, as a host without other knowledge must.
    pub join_unannounced: bool,
    /// This end's port: the listening one of a server, the first ephemeral one of a client.
    pub local_port: u16,
    /// The server's port, on a client.
    pub remote_port: u16,
    /// The paths; the first carries the initial subflow.
    pub paths: Vec<PathConfig>,
}

impl Config {
    /// Linux's defaults for these paths: min-RTT and CUBIC if they are registered, data bound at the window.
    ///
    /// # Panics
    /// If `paths` is empty.
    pub fn new(protocol: Protocol, paths: Vec<PathConfig>) -> Self {
        assert!(!paths.is_empty(), "a connection needs a path");
        let cc = congestion::REGISTRY.find("cubic").unwrap_or(&congestion::REGISTRY[0]);
        Config {
            protocol,
            scheduler: Choice::of(scheduler::REGISTRY[0].name),
            path_policy: Choice::of(path_policy::REGISTRY[0].name),
            congestion_control: CongestionChoice { entry: cc, options: Options::default() },
            path_congestion_control: Vec::new(),
            commit: Commit::AtWindow,
            failover: Failover::Legacy,
            opportunistic_retransmission: true,
            penalisation: true,
            // net.ipv4.tcp_rmem = 4096 131072 6291456; about half of a buffer holds payload, the rest its bookkeeping.
            receive_buffer: ReceiveBuffer { initial: 65_535, max: 3_145_728 },
            // net.ipv4.tcp_wmem[2].
            send_buffer: 4_194_304,
            initial_window: 10,
            pacing: false,
            idle_restart: true,
            whole_windows: true,
            segmentation_offload: true,
            capable_retries: 2,
            timestamps: true,
            wide_data_seq: false,
            join_unannounced: true,
            local_port: 80,
            remote_port: 80,
            paths,
        }
    }

    /// The control for a subflow on `path`.
    pub(crate) fn congestion_control_on(&self, path: PathId) -> &CongestionChoice {
        let own = self.path_congestion_control.iter().find(|(id, _)| *id == path);
        own.map_or(&self.congestion_control, |(_, choice)| choice)
    }

    pub(crate) fn path(&self, id: PathId) -> Option<&PathConfig> {
        self.paths.iter().find(|path| path.id == id)
    }
}
