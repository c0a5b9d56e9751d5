//! The scenario as a whole, and the endpoints.

use super::{Key, bare, key};

/// Each table in the order in which the page lists its keys.
pub(super) const KEYS: &[Key] = &[
    bare("scenario", "schema", "The version of the schema: 1."),
    bare("scenario", "question", "What the scenario wants to know, in one sentence."),
    bare("scenario", "duration", "When the run ends at the latest. Required."),
    key(
        "scenario",
        "warm_up",
        "0 s",
        "When goodput begins to count, of sessions, of cross traffic and of subflows. All else is of the whole run, or of a \
         session's `statistics`.",
    ),
    key("scenario", "sample_interval", "100 ms", "How often windows, rates and buffers are sampled."),
    key(
        "scenario",
        "stuck_after",
        "400 s",
        "A run in which no session received a packet for this long, and no event is to come, cannot progress and ends. \
         More than three of the longest retransmission timeouts, 120 s.",
    ),
    key(
        "scenario",
        "trace_offset",
        "0 s",
        "How far into their recordings the traces begin that have no `offset`: traces recorded together stay together.",
    ),
    bare("scenario", "transport", "How the endpoints behave."),
    bare("scenario", "link", "The links, one table each: [link.NAME]."),
    bare(
        "scenario",
        "path",
        "The paths over the links: [path.NAME]. A path per link, with its name, where none is written.",
    ),
    bare("scenario", "session", "Who downloads or watches: a list, [[session]]."),
    bare("scenario", "traffic", "Cross traffic: a list, [[traffic]]."),
    bare("scenario", "event", "What happens meanwhile: a list, [[event]]."),
    // Transport. The numbers are Linux's.
    key(
        "transport",
        "kernel",
        "legacy",
        "Whose behaviour is meant where the keys below say nothing: `legacy` (the patched kernels of the papers; their defaults \
         stand below) or `upstream` (today's Linux: scheduler `linux`, `commit = \"into-buffer\"`, `failover = \"upstream\"`, \
         neither of the two remedies for a full window, `wide_data_seq = true`).",
    ),
    key("transport", "protocol", "mptcp", "`mptcp`, or `tcp`: the session's first path only."),
    key(
        "transport",
        "scheduler",
        "min-rtt",
        "Which subflow carries the next data: a name, or a table with `name` and options.",
    ),
    key(
        "transport",
        "path_policy",
        "full-mesh",
        "Which subflows may carry new data: a name, or a table with `name` and options.",
    ),
    key(
        "transport",
        "congestion_control",
        "cubic",
        "The window of each subflow: a name, or a table with `name` and options.",
    ),
    key(
        "transport",
        "commit",
        "at-window",
        "When data is bound to a subflow: `at-window` (when its window has room, legacy Multipath TCP) or `into-buffer` \
         (ahead of time, into its send buffer, upstream Linux).",
    ),
    key(
        "transport",
        "failover",
        "legacy",
        "What becomes of the data of a subflow that times out: `legacy` (the others repeat it at once) or `upstream` (an idle \
         subflow repeats the head of the line, and everything is repeated once the subflow is stale, as upstream Linux does).",
    ),
    key(
        "transport",
        "opportunistic_retransmission",
        "true",
        "Repeat the head of the line on a faster subflow when the shared window is full.",
    ),
    key("transport", "penalisation", "true", "Then halve the window of the subflow that blocked it."),
    bare(
        "transport",
        "receive_buffer",
        "Bytes that the receiver accepts: a size for a fixed window, or a table with `initial` and `max` for autotuning.",
    ),
    key("transport", "send_buffer", "4194304 B", "Bytes written and not acknowledged at the data level (tcp_wmem)."),
    key("transport", "initial_window", "10", "Packets that may leave before the first acknowledgment (RFC 6928)."),
    key("transport", "pacing", "false", "Space packets out even if the congestion control does not ask for it."),
    key("transport", "idle_restart", "true", "Decay the window while nothing is sent (RFC 2861)."),
    key("transport", "whole_windows", "true", "Windows are whole numbers of packets after a reduction, as in Linux."),
    key(
        "transport",
        "segmentation_offload",
        "true",
        "Hold a packet back until offload could take a burst, where Linux does (tcp_tso_should_defer).",
    ),
    key(
        "transport",
        "capable_retries",
        "2",
        "How often a SYN with MP_CAPABLE is repeated before plain TCP is tried (syn_retrans_before_tcp_fallback); 128 for never.",
    ),
    key("transport", "timestamps", "true", "Use the timestamps option."),
    key(
        "transport",
        "wide_data_seq",
        "false",
        "Data sequence numbers of 8 bytes rather than 4, which leave room for one SACK block instead of two.",
    ),
    key("transport.receive_buffer", "initial", "65535 B", "What is accepted at first."),
    key(
        "transport.receive_buffer",
        "max",
        "3145728 B",
        "Up to where autotuning may raise it (about half of tcp_rmem's 6 MiB).",
    ),
];
