//! What the host decides before a connection begins.

use crate::options::Options;
use crate::{congestion, path_policy, scheduler};
use anabranch_units::PathId;
use core::net::IpAddr;

/// Random numbers for keys, initial sequence numbers and nonces: the operating system's live, the seed's in simulation.
pub trait Entropy: Send {
    /// The next 64 random bits.
    fn next_u64(&mut self) -> u64;
}

/// Which protocol a connection speaks.
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

/// What becomes of the data of a subflow that times out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failover {
    /// The others repeat all of it at once, and the subflow gets nothing new until it is heard of (legacy Multipath TCP).
    Legacy,
    /// An idle subflow repeats the head of the line whenever the connection's own timer fires; a subflow that is not heard of
    /// for several of these periods is stale: it gets nothing new, and everything is repeated on the others (upstream Linux).
    Upstream,
}

/// A scheduler or a path policy by name.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Its name in the registry.
    pub name: String,
    /// Its options.
    pub options: Options,
}

impl Choice {
    /// The one of that name, with its default options.
    pub fn of(name: &str) -> Self {
        Choice { name: name.into(), options: Options::default() }
    }
}

/// A congestion control by registry entry.
#[derive(Clone, Debug)]
pub struct CongestionChoice {
    /// Which.
    pub entry: &'static congestion::Entry,
    /// Its options.
    pub options: Options,
}

/// The receive window and how it grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveBuffer {
    /// Bytes of payload that are accepted at first.
    pub initial: u64,
    /// Bytes to which autotuning may raise that; the same as `initial` for a fixed window.
    pub max: u64,
}

/// One path that the connection may use.
#[derive(Clone, Copy, Debug)]
pub struct PathConfig {
    /// Its name.
    pub id: PathId,
    /// This end's address.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
    /// The largest IP packet.
    pub mtu: u32,
    /// Use it only when no other works.
    pub backup: bool,
}

impl PathConfig {
    /// Bytes of IP header on this path.
    pub fn ip_header(&self) -> u32 {
        if self.local.is_ipv4() { 20 } else { 40 }
    }
}

/// Everything that the host decides before a connection begins. The defaults are those of Linux.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which protocol to speak.
    pub protocol: Protocol,
    /// Which subflow carries the next data.
    pub scheduler: Choice,
    /// Which subflows may carry new data.
    pub path_policy: Choice,
    /// The window of each subflow.
    pub congestion_control: CongestionChoice,
    /// Paths whose subflows use another control.
    pub path_congestion_control: Vec<(PathId, CongestionChoice)>,
    /// When data is bound to a subflow.
    pub commit: Commit,
    /// What becomes of the data of a subflow that times out.
    pub failover: Failover,
    /// Repeat the head of the line on a faster subflow when the shared window is full (legacy Multipath TCP).
    pub opportunistic_retransmission: bool,
    /// Halve the window of the subflow that blocked it.
    pub penalisation: bool,
    /// What this end accepts.
    pub receive_buffer: ReceiveBuffer,
    /// Bytes that may be written and not acknowledged at the data level; the application's rest waits outside.
    pub send_buffer: u64,
    /// Packets that may leave before the first acknowledgment (RFC 6928).
    pub initial_window: u32,
    /// Space packets out at Linux's pacing rate even if the congestion control does not ask for it.
    pub pacing: bool,
    /// Decay the window while nothing is sent (RFC 2861).
    pub idle_restart: bool,
    /// Windows are whole numbers of packets after a reduction.
    pub whole_windows: bool,
    /// Hold a packet back until segmentation offload could take a burst, where Linux does. Bursts are not made.
    pub segmentation_offload: bool,
    /// After so many repetitions of a SYN with MP_CAPABLE that nobody answers, the next ones offer plain TCP (Linux
    /// `net.mptcp.syn_retrans_before_tcp_fallback`); as many as there are repetitions or more: never.
    pub capable_retries: u32,
    /// Use the timestamps option.
    pub timestamps: bool,
    /// Send data sequence numbers in 8 bytes rather than 4; the peer then has room for one SACK block instead of two.
    pub wide_data_seq: bool,
    /// A client joins to the remote addresses of all its paths; otherwise only to that of the first path and to those
    /// that the server announced, as a host must that knows no more.
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

    /// The control for a subflow on that path.
    pub(crate) fn congestion_control_on(&self, path: PathId) -> &CongestionChoice {
        let own = self.path_congestion_control.iter().find(|(id, _)| *id == path);
        own.map_or(&self.congestion_control, |(_, choice)| choice)
    }

    pub(crate) fn path(&self, id: PathId) -> Option<&PathConfig> {
        self.paths.iter().find(|path| path.id == id)
    }
}
