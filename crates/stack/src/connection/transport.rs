//! How an endpoint behaves: the keys of `[transport]` in scenarios.

use crate::external::Choice;
use crate::receive_memory::{ReceiveBuffer, ReceiveMemory};
use crate::{congestion, path_policy, scheduler};
use anabranch_segment::TIMESTAMPS_LEN;
use anabranch_units::{Bytes, text};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Which protocol a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Multipath TCP version 1, falling back to TCP where the peer cannot.
    Mptcp,
    /// Plain TCP over the first path.
    Tcp,
}

/// When data is bound to a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Commit {
    /// When the subflow's congestion window has room, one segment at a time (legacy Multipath TCP).
    AtWindow,
    /// Ahead of time, into the subflow's send buffer (upstream Linux).
    IntoBuffer,
}

/// When an application that found no room in the send buffer writes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Writer {
    /// When the socket says that it can be written, by `poll`, `epoll` or a write that waits: once a third of the send
    /// buffer is free (Linux's `sk_stream_is_writeable`). So nearly every server writes.
    WhenWritable,
    /// As soon as anything fits.
    AtOnce,
}

/// What is done with the data of a subflow that times out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Failover {
    /// The others retransmit all of it at once, and the subflow gets nothing new until something is received from it
    /// (legacy Multipath TCP).
    Legacy,
    /// An idle subflow retransmits the first unacknowledged data whenever the connection's own timer fires; a subflow
    /// from which nothing is received for several of these periods is stale: it gets nothing new, and everything is
    /// retransmitted on the others (upstream Linux).
    Upstream,
}

/// What the name of a part from outside looks like: where it is, a colon, and what it is called there.
pub const EXTERNAL_NAME: &str = "^[^:]+:[^:]+$";

fn choice_of(names: impl Iterator<Item = &'static str>) -> Schema {
    let names: Vec<&str> = names.collect();
    let external = json_schema!({ "type": "string", "pattern": EXTERNAL_NAME });
    let table = json_schema!({
        "type": "object",
        "properties": { "name": { "anyOf": [{ "enum": names }, external] } },
        "required": ["name"],
    });
    let expected = "a name, or a table with `name` and options";
    json_schema!({ "anyOf": [{ "enum": names }, external, table], "x-expected": expected })
}

/// The JSON Schema of the choice of a scheduler.
pub fn scheduler_schema(_: &mut SchemaGenerator) -> Schema {
    choice_of(scheduler::REGISTRY.names())
}

/// The JSON Schema of the choice of a path policy.
pub fn path_policy_schema(_: &mut SchemaGenerator) -> Schema {
    choice_of(path_policy::REGISTRY.names())
}

/// The JSON Schema of the choice of a congestion control.
pub fn congestion_control_schema(_: &mut SchemaGenerator) -> Schema {
    choice_of(congestion::REGISTRY.names())
}

/// How an endpoint behaves, whatever its paths are. The defaults are Linux's, and where legacy Multipath TCP and
/// upstream Linux differ, legacy Multipath TCP's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Transport {
    /// `mptcp`; or `tcp`, over the session's first path only.
    pub protocol: Protocol,
    /// Which subflow carries the next data: a name, or a table with `name` and options.
    #[schemars(schema_with = "scheduler_schema")]
    pub scheduler: Choice,
    /// Which subflows may carry new data: a name, or a table with `name` and options. `pud` has `n`, `rho`,
    /// `period_ms`, `readmit` (`degraded`, `never`, `probe`), `rate` (the throughput of a path: `window` over round
    /// trip as in the paper, or the measured `delivery` rate) and `tell_peer`.
    #[schemars(schema_with = "path_policy_schema")]
    pub path_policy: Choice,
    /// The congestion window of each subflow: a name, or a table with `name` and options.
    #[schemars(schema_with = "congestion_control_schema")]
    pub congestion_control: Choice,
    /// When data is assigned to a subflow: `at-window` (when its window has room, legacy Multipath TCP) or
    /// `into-buffer` (ahead of time, into its send buffer, upstream Linux).
    pub commit: Commit,
    /// When an application that found no room in the send buffer writes again, with `commit = "into-buffer"`:
    /// `when-writable` (once a third of it is free, when Linux wakes a writer) or `at-once` (as soon as anything fits).
    pub writer: Writer,
    /// What is done with the data of a subflow that times out: `legacy` (the others retransmit it at once) or
    /// `upstream` (an idle subflow retransmits the first unacknowledged data, and everything is retransmitted once the
    /// subflow is stale, as upstream Linux does).
    pub failover: Failover,
    /// Handle receive windows as upstream Linux does. A sender keeps a window for each subflow, which limits what is in
    /// flight on it, and which an acknowledgment of the same subflow bytes never reduces. It adds this window to each
    /// data acknowledgment, and so can send beyond what the peer advertised. A receiver acknowledges such data on the
    /// subflow, and drops what arrives ahead of a hole in the stream. Needs `failover = "upstream"`, whose timer sends
    /// that again.
    pub subflow_windows: bool,
    /// When the shared receive window is full, retransmit the first unacknowledged data on a faster subflow.
    pub opportunistic_retransmission: bool,
    /// In the same case, halve the congestion window of the slower subflow that blocks the receive window. Without
    /// `opportunistic_retransmission` it has no effect.
    pub penalisation: bool,
    /// The receive window, in bytes: a fixed size, or a table with `initial` and `max` for autotuning.
    pub receive_buffer: ReceiveBuffer,
    /// The most bytes that may be written and not yet acknowledged at the data level (tcp_wmem).
    pub send_buffer: Bytes,
    /// Bytes that the kernel's build reserves for headers in front of each packet (MAX_TCP_HEADER: 320 where drivers of
    /// wireless networks are compiled in, as in distributions; 256 in slim builds). With `commit = "into-buffer"` it
    /// decides how much memory a packet takes in the send buffers, and so how much data a subflow can hold ahead of its
    /// window.
    #[serde(deserialize_with = "text::whole::<128, 1024, _, _>")]
    #[schemars(range(min = 128, max = 1024))]
    pub header_room: u32,
    /// Packets that may leave before the first acknowledgment (RFC 6928).
    #[serde(deserialize_with = "text::whole::<1, 1000, _, _>")]
    #[schemars(range(min = 1, max = 1000))]
    pub initial_window: u32,
    /// Pace packets even if the congestion control does not ask for it.
    pub pacing: bool,
    /// Decay the congestion window while nothing is sent (RFC 2861).
    pub idle_restart: bool,
    /// Congestion windows are whole numbers of packets after a reduction, as in Linux.
    pub whole_windows: bool,
    /// Delay a packet where Linux does, so that segmentation offload can send a larger burst (tcp_tso_should_defer).
    pub segmentation_offload: bool,
    /// How often a SYN with MP_CAPABLE is retransmitted before plain TCP is tried (syn_retrans_before_tcp_fallback);
    /// 128 for never.
    #[serde(deserialize_with = "text::whole::<0, 128, _, _>")]
    #[schemars(range(max = 128))]
    pub capable_retries: u32,
    /// Use the timestamps option.
    pub timestamps: bool,
    /// Data sequence numbers of 8 bytes rather than 4, which leave room for one SACK block instead of two.
    pub wide_data_seq: bool,
}

impl Transport {
    /// Payload of a full segment of data, where `mss` is that of one without options.
    fn full_payload(&self, mss: u32) -> u32 {
        let timestamps = if self.timestamps { TIMESTAMPS_LEN } else { 0 };
        let mapping = match self.protocol {
            Protocol::Tcp => 0,
            Protocol::Mptcp => mapping_len(self.wide_data_seq),
        };
        mss.saturating_sub(timestamps + mapping).max(1)
    }

    /// Bytes of memory of the receive buffer at first and at most, see [`ReceiveBuffer::memory`]; `mss` is the payload
    /// of a full segment without options.
    pub fn receive_memory(&self, mss: u32) -> (u64, u64) {
        self.receive_buffer.memory(self.full_payload(mss))
    }

    /// The receive buffer of a connection or of a subflow, and the window that it begins with.
    pub(crate) fn receive_buffer(&self, mss: u32) -> (ReceiveMemory, u64) {
        let segment = self.full_payload(mss);
        (ReceiveMemory::new(self.receive_buffer, segment), self.receive_buffer.first_window(mss, segment))
    }
}

/// Bytes of options for DSS with an acknowledgment and a mapping.
pub(crate) fn mapping_len(wide_data_seq: bool) -> u32 {
    if wide_data_seq { 28 } else { 20 }
}

impl Default for Transport {
    fn default() -> Self {
        Transport {
            protocol: Protocol::Mptcp,
            scheduler: Choice::of("min-rtt"),
            path_policy: Choice::of("full-mesh"),
            congestion_control: Choice::of("cubic"),
            commit: Commit::AtWindow,
            writer: Writer::WhenWritable,
            failover: Failover::Legacy,
            subflow_windows: false,
            opportunistic_retransmission: true,
            penalisation: true,
            receive_buffer: ReceiveBuffer::default(),
            // net.ipv4.tcp_wmem[2].
            send_buffer: Bytes(4_194_304),
            header_room: 320,
            initial_window: 10,
            pacing: false,
            idle_restart: true,
            whole_windows: true,
            segmentation_offload: true,
            capable_retries: 2,
            timestamps: true,
            wide_data_seq: false,
        }
    }
}
