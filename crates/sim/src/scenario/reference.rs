//! Every key of the schema, its default and its meaning: the one place where they stand.
//!
//! The reader refuses keys that are not here and takes defaults from here; `docs/scenario.md` is generated from here.

/// One key of one kind of table.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The kind of table, such as `link`.
    pub section: &'static str,
    /// The key.
    pub key: &'static str,
    /// The default as the scenario would write it (texts without quotes); none if the key is required or if its absence
    /// means something that `meaning` explains.
    pub default: Option<&'static str>,
    /// What it means, in one sentence.
    pub meaning: &'static str,
}

const fn key(section: &'static str, key: &'static str, default: &'static str, meaning: &'static str) -> Key {
    Key { section, key, default: Some(default), meaning }
}

const fn bare(section: &'static str, key: &'static str, meaning: &'static str) -> Key {
    Key { section, key, default: None, meaning }
}

/// The reference.
pub const KEYS: &[Key] = &[
    bare("scenario", "schema", "The version of the schema: 1."),
    bare("scenario", "question", "What the scenario wants to know, in one sentence."),
    bare("scenario", "duration", "When the run ends at the latest. Required."),
    key("scenario", "warm_up", "0 s", "When counting begins: goodput and means leave out what happened before."),
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
    // Links.
    bare("link", "rtt", "The round trip without queues; half of it each way."),
    bare(
        "link",
        "rate",
        "A rate, a token bucket { rate, burst, peak }, a trace { trace, ... } or a made-up one { synthetic, mean, ... }. Required.",
    ),
    bare("link", "delay", "The one-way delay, in each direction; instead of `rtt`."),
    bare("link", "jitter", "A random addition to the delay: { kind, ... }."),
    bare("link", "queue", "What may wait: a size or number of packets (drop-tail), or { kind, limit, ... }."),
    bare("link", "loss", "Random loss of the downlink: a share, or { kind, ... }."),
    bare("link", "reordering", "Packets that overtake others: { share, by }."),
    bare("link", "duplication", "The share of packets that arrive twice."),
    bare("link", "mtu", "The largest IP packet, in bytes."),
    bare("link", "overhead", "Bytes per packet that the rate counts in addition to the IP packet."),
    bare("link", "up", "The direction from client to server: the same keys, which win over those of the link."),
    bare("link", "down", "The direction from server to client, likewise."),
    bare("link.direction", "rate", "As for the link."),
    bare("link.direction", "delay", "The one-way delay."),
    bare("link.direction", "jitter", "As for the link."),
    bare("link.direction", "queue", "As for the link."),
    bare("link.direction", "loss", "As for the link, in this direction."),
    bare("link.direction", "reordering", "As for the link."),
    bare("link.direction", "duplication", "As for the link."),
    bare("link.direction", "mtu", "As for the link."),
    bare("link.direction", "overhead", "As for the link."),
    key("link.default", "delay", "0 ms", "A link without `rtt` and `delay` takes no time."),
    key("link.default", "queue", "64 kB", "About 43 full packets: 256 ms at 2 Mb/s, as home routers have them."),
    key("link.default", "loss", "0 %", "Only what the queue drops."),
    key("link.default", "duplication", "0 %", "None."),
    key("link.default", "mtu", "1500 B", "Ethernet's."),
    key("link.default", "overhead", "0 B", "As on a tunnel device; Ethernet has 14 B."),
    bare("link.rate", "rate", "The rate at which tokens gather."),
    bare("link.rate", "burst", "Bytes that may leave at once after an idle time."),
    key("link.rate", "peak", "unlimited", "The rate within a burst."),
    bare("link.trace", "trace", "The file, relative to the scenario's."),
    bare("link.trace", "format", "`mahimahi`, `columns` or `json`; recognised where absent."),
    bare(
        "link.trace",
        "unit",
        "The unit of a table's rates: `b/s`, `kb/s`, `Mb/s`, `B/s`. Required unless the column's heading ends in bps, kbps, \
         mbps or bytes_per_s.",
    ),
    bare("link.trace", "column", "Which column of a table holds the rates: 1; times, in seconds, are column 0."),
    key("link.trace", "at_end", "loop", "`loop`, or `hold`: the last rate for ever."),
    bare(
        "link.trace",
        "offset",
        "How far into the recording it begins: `trace_offset` of the scenario. What loops wraps around: after the end come the \
         beginning, and then the offset again.",
    ),
    bare(
        "link.trace",
        "duration",
        "How much of the recording is used, from the offset on; all of it. Traces of a pair that differ in length stay together \
         if they have the same.",
    ),
    key(
        "link.trace",
        "latency",
        "ignore",
        "What becomes of a recorded latency: `ignore`, `round-trip` (half of it is added to the delay of each direction that \
         follows the trace) or `one-way` (all of it is).",
    ),
    bare("link.synthetic", "synthetic", "The kind of network: a name of `anabranch list synthetic-rates`. Required."),
    bare("link.synthetic", "mean", "The mean rate in the long run. Required."),
    key("link.synthetic", "period", "3600 s", "After which time the rate begins again; steps last one second."),
    bare(
        "link.synthetic",
        "seed",
        "Which of the possible rates; the run's seed where absent. Both directions of a link follow the same one.",
    ),
    bare(
        "link.synthetic",
        "headroom",
        "The logit of the typical rate over that of the fastest modulation; the kind's.",
    ),
    bare("link.synthetic", "spread", "How far that logit wanders, as a standard deviation; the kind's."),
    bare("link.synthetic", "correlation_time", "After which time its correlation has fallen to 1/e; the kind's."),
    bare(
        "link.synthetic",
        "noise",
        "How much neighbouring seconds differ, as a standard deviation of logarithms; the kind's.",
    ),
    bare("link.synthetic", "between_outages", "The mean time from one outage to the next; the kind's."),
    bare("link.synthetic", "outage", "The mean length of an outage, `0 s` for none; the kind's."),
    bare("link.queue", "kind", "The name of a queue."),
    bare("link.queue", "limit", "A size such as \"64 kB\", or \"100 packets\"."),
    bare("link.queue.drop-tail", "kind", "`drop-tail`."),
    bare("link.queue.drop-tail", "limit", "A size such as \"64 kB\", or \"100 packets\". Required."),
    bare("link.queue.red", "kind", "`red`."),
    bare("link.queue.red", "limit", "A size, or a number of packets. Required."),
    bare("link.queue.red", "min", "Below this average nothing is dropped: a third of `max`."),
    bare("link.queue.red", "max", "At this average packets are dropped with `max_probability`: half of the limit."),
    bare("link.queue.red", "max_probability", "The probability at `max`: 10 %."),
    bare("link.queue.red", "gentle", "Whether the probability grows on from `max` to twice `max`: true."),
    bare("link.queue.red", "weight_exponent", "The average's weight is 2 to the minus this: 9."),
    bare("link.queue.red", "mean_packet", "Bytes of a typical packet: 1000."),
    bare("link.queue.codel", "kind", "`codel`."),
    bare("link.queue.codel", "limit", "A size, or a number of packets. Required."),
    bare("link.queue.codel", "target", "The acceptable time to wait: 5 ms."),
    bare("link.queue.codel", "interval", "How long a longer wait is tolerated: 100 ms."),
    bare("link.loss.bernoulli", "kind", "`bernoulli`: each packet with the same probability, independently."),
    bare("link.loss.bernoulli", "share", "The probability. Required."),
    key(
        "link.loss.bernoulli",
        "at",
        "exit",
        "`entry` (before the queue, as netem) or `exit` (after the server, like a radio).",
    ),
    bare("link.loss.gilbert-elliott", "kind", "`gilbert-elliott`: in bursts."),
    bare(
        "link.loss.gilbert-elliott",
        "good_to_bad",
        "How likely a bad state follows on a good one, per packet. Required.",
    ),
    bare(
        "link.loss.gilbert-elliott",
        "bad_to_good",
        "How likely a good state follows on a bad one, per packet. Required.",
    ),
    key("link.loss.gilbert-elliott", "loss_in_good", "0 %", "The loss in the good state."),
    key("link.loss.gilbert-elliott", "loss_in_bad", "100 %", "The loss in the bad state."),
    key("link.loss.gilbert-elliott", "at", "exit", "As for `bernoulli`."),
    bare("link.loss.every-nth", "kind", "`every-nth`: periodically."),
    bare("link.loss.every-nth", "n", "Every how many packets. Required."),
    key("link.loss.every-nth", "at", "exit", "As for `bernoulli`."),
    bare(
        "link.loss.gilbert-elliott-time",
        "kind",
        "`gilbert-elliott-time`: in bursts that last for a time, whatever is sent, as a radio's fades do.",
    ),
    bare("link.loss.gilbert-elliott-time", "good", "The mean length of a good state. Required."),
    bare("link.loss.gilbert-elliott-time", "bad", "The mean length of a bad state. Required."),
    key("link.loss.gilbert-elliott-time", "loss_in_good", "0 %", "The loss in the good state."),
    key("link.loss.gilbert-elliott-time", "loss_in_bad", "100 %", "The loss in the bad state."),
    key("link.loss.gilbert-elliott-time", "at", "exit", "As for `bernoulli`."),
    bare("link.jitter.uniform", "kind", "`uniform`: evenly around the delay."),
    bare("link.jitter.uniform", "half_width", "The largest distance from the delay. Required."),
    key("link.jitter.uniform", "reorders", "false", "Whether packets may overtake each other."),
    bare("link.jitter.normal", "kind", "`normal`: around the delay, truncated at three standard deviations."),
    bare("link.jitter.normal", "deviation", "The standard deviation. Required."),
    key("link.jitter.normal", "reorders", "false", "Whether packets may overtake each other."),
    bare("link.jitter.gamma", "kind", "`gamma`: the delay is the least."),
    bare("link.jitter.gamma", "mean", "The mean of what is added. Required."),
    bare("link.jitter.gamma", "shape", "At least 1, which is the exponential distribution. Required."),
    key("link.jitter.gamma", "reorders", "false", "Whether packets may overtake each other."),
    bare("link.reordering", "share", "Which share of packets is held back. Required."),
    bare("link.reordering", "by", "For how long. Required."),
    // Paths, sessions, traffic, events.
    bare("path", "links", "Names of its links, from the client to the server. Required."),
    key("path", "backup", "false", "Use it only when no other works."),
    bare("path", "congestion_control", "The control of its subflows; the transport's where absent."),
    key("path", "ip", "4", "The version of the Internet Protocol, 4 or 6, which decides the size of the header."),
    bare("session", "paths", "Names of its paths, the first for the initial subflow; all paths where absent."),
    bare("session", "transport", "Keys of [transport] that are different for this session."),
    bare(
        "session",
        "video",
        "What is transferred: { kind = \"progressive\", ... }, { kind = \"dash\", ... } or { kind = \"bulk\" }; endless bulk where \
         absent.",
    ),
    bare(
        "session",
        "player",
        "Who watches: a name, or { kind, ... }; where absent `vlc` for a progressive video, `dash.js-5` for DASH, `bulk` for bulk.",
    ),
    bare("session", "statistics", "What is measured of a DASH video, and when: { from, to, ... }."),
    key("session", "count", "1", "How many viewers of this kind."),
    key("session", "start", "0 s", "When the first of them begins."),
    key("session", "stagger", "0 s", "The time from each one's beginning to the next one's."),
    bare("video.progressive", "kind", "`progressive`: one file that is played while it is fetched."),
    bare("video.progressive", "size", "Bytes of the file. Required."),
    bare("video.progressive", "rate", "Its mean rate; the playing time is size over rate. Required."),
    key("video.progressive", "fps", "24", "Pictures per second: a number, or a ratio such as \"24000/1001\"."),
    key(
        "video.progressive",
        "seed",
        "1",
        "Which of the made-up sequences of picture sizes; independent of the run's seed, so repetitions play the same file.",
    ),
    bare(
        "video.progressive",
        "scene_variation",
        "Coefficient of variation of sizes between scenes: 0.43, as measured.",
    ),
    bare("video.progressive", "picture_variation", "The same between pictures of a kind within a scene: 0.2."),
    bare("video.progressive", "scene_length", "Mean length of a scene: 4 s."),
    bare("video.dash", "kind", "`dash`: media segments in several representations."),
    bare("video.dash", "ladder", "A shipped ladder: `bbb-1s`, `bbb-2s`, `bbb-6s`, `bbb-10s` (Big Buck Bunny, 596 s)."),
    bare("video.dash", "mpd", "Or an MPD, relative to the scenario's file, with the sizes that it states."),
    bare(
        "video.dash",
        "table",
        "Or a JSON table of sizes: `segment_duration_ms`, `bitrates_kbps`, `segment_sizes_bits`.",
    ),
    bare("video.dash", "duration", "Play no more than this; a live MPD ends here."),
    bare(
        "video.dash",
        "period",
        "Of an MPD: this period only, counted from one; all, one after the other, where absent.",
    ),
    bare(
        "video.dash",
        "adaptation_set",
        "Of an MPD: this one of each period, counted from one; the video with the highest bitrate where absent.",
    ),
    bare(
        "video.dash",
        "segment_duration",
        "Of an MPD: how long media segments are where only the file's index says it.",
    ),
    bare(
        "video.dash",
        "scene_variation",
        "How much the sizes of scenes vary, as a coefficient of variation: 0.222 for a ladder, and 0 (sizes as they are) for \
         an MPD or a table, where absent.",
    ),
    key("video.dash", "scene_length", "4 s", "Mean length of a scene."),
    key("video.dash", "seed", "1", "Which of the made-up sequences of sizes; independent of the run's seed."),
    bare("video.dash", "init", "Bytes of an initialisation segment: 672 B where neither this nor the MPD says it."),
    bare("video.dash", "manifest", "Bytes of the MPD: its own size, or 9321 B; 0 B if the player has it already."),
    bare("video.bulk", "kind", "`bulk`: bytes without meaning."),
    bare("video.bulk", "size", "How many; endless where absent."),
    bare("player", "kind", "The name of a player."),
    bare("player", "caching", "Playing time that must be read ahead before the start; the player's own where absent."),
    bare("player", "ring", "Bytes that are fetched ahead of the demultiplexer; the player's own where absent."),
    bare("player", "clock_jitter", "The highest growth of the playout delay; the player's own where absent."),
    bare("player", "duration", "When to stop although there is more (bulk)."),
    bare("player", "buffer", "DASH: playing time at which requests pause; the player's own where absent."),
    bare(
        "player",
        "buffer_at_top",
        "dash.js: the same at the highest representation: 30 s, 60 s from 600 s of video on.",
    ),
    bare("player", "startup", "DASH: playing time to be buffered before the first picture: one media segment."),
    bare(
        "player",
        "resume",
        "DASH: playing time to be buffered before a stall ends, beyond the player's own threshold.",
    ),
    bare("player", "initial_bitrate", "DASH: the first representation is the highest within: 1000 kb/s in dash.js."),
    bare("player", "initial_representation", "DASH: the first representation by rank, from 0; the others' is 0."),
    bare("player", "max_bitrate", "DASH: no representation above."),
    bare("player", "max_resolution", "DASH: no representation with larger pictures, such as \"1280x720\"."),
    bare("player", "audio", "DASH: fetch a sound track of this bitrate alongside, on the same connection: none."),
    bare(
        "player",
        "give_up",
        "DASH: what happens to a response that is given up: `close` (the connection is closed and another one opened, as browsers \
         do over HTTP/1.1), `cancel` (what has not left is taken back, as HTTP/2 does) or `drain` (all of it arrives): close.",
    ),
    bare("player", "fast_switch", "dash.js-5: replace what is buffered in a lower representation: true."),
    bare("player", "strategy", "dash.js-2.9, dash.js-5: `dynamic`, `bola` or `throughput`: dynamic."),
    bare("player", "dropped_frames", "dash.js-5: whether dropped pictures lower the representation: false."),
    bare(
        "player",
        "progress_timing",
        "dash.js-5: measure by progress reports, as without the Resource Timing API: false.",
    ),
    bare("player", "representation", "fixed: which representation, by rank from 0; the highest where absent."),
    bare("player", "finite", "bola: take account of the video's beginning and end: true."),
    bare("player", "samples", "rate, robust-mpc: how many media segments the estimate looks back: 5."),
    bare("player", "safety", "rate: what part of the estimate is used: 1."),
    bare("player", "horizon", "robust-mpc: how many media segments it looks ahead: 5."),
    bare("player", "stall_penalty", "robust-mpc: price of a second of stall, kbit/s: 3000."),
    bare("player", "switch_penalty", "robust-mpc: price of a change of quality by one kbit/s: 1."),
    key("statistics", "from", "0 s", "When counting begins, since the session's start."),
    bare("statistics", "to", "When it ends; with the session where absent."),
    key("statistics", "switch_penalty", "1", "Linear QoE: price of a change by one kbit/s (Yin et al., balanced)."),
    key("statistics", "stall_penalty", "3000", "Linear QoE: price of a second of stall, kbit/s."),
    key("statistics", "startup_penalty", "3000", "Linear QoE: price of a second of start-up, kbit/s."),
    key("statistics", "log_switch_penalty", "1", "Log QoE: price of a change by one."),
    key("statistics", "log_stall_penalty", "2.66", "Log QoE: price of a second of stall (Pensieve)."),
    key("statistics", "log_startup_penalty", "0", "Log QoE: price of a second of start-up."),
    key("traffic", "kind", "tcp", "`tcp`: a plain TCP download, as fast as it can."),
    bare("traffic", "path", "The name of its path. Required."),
    key(
        "traffic",
        "congestion_control",
        "cubic",
        "The control of its window: a name, or a table with `name` and options.",
    ),
    key("traffic", "count", "1", "How many of them."),
    key("traffic", "start", "0 s", "When the first of them begins."),
    key("traffic", "stagger", "0 s", "The time from each one's beginning to the next one's."),
    bare("traffic", "stop", "When they end; with the run where absent."),
    bare("traffic", "size", "Bytes of each download; endless where absent."),
    bare("event", "at", "When. Required."),
    bare("event", "link", "The name of the link that changes."),
    bare("event", "path", "The name of the path whose interface goes away or comes back, which the client notices."),
    key(
        "event",
        "down",
        "false",
        "true cuts (a cut link drops silently, like a lost radio), false restores; or a table of changes of the downlink.",
    ),
    bare("event", "up", "A table of changes of the uplink."),
    bare("event", "rtt", "The new round trip of both directions together."),
    bare("event", "rate", "The new rate of both directions."),
    bare("event", "delay", "The new delay of both directions."),
    bare("event", "jitter", "The new jitter of both directions."),
    bare("event", "queue", "The new queue of both directions."),
    bare("event", "loss", "The new loss of the downlink."),
    bare("event", "reordering", "The new reordering of both directions."),
    bare("event", "duplication", "The new duplication of both directions."),
    bare("event", "mtu", "The new MTU of both directions."),
    bare("event", "overhead", "The new overhead of both directions."),
];

/// The keys of a kind of table.
pub fn keys(section: &str) -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter(move |key| key.section == section).map(|key| key.key)
}

/// The default of a key.
///
/// # Panics
/// If the key is not in the reference, or has no default.
pub(super) fn default(section: &str, key: &str) -> &'static str {
    let found = KEYS.iter().find(|k| k.section == section && k.key == key);
    found.and_then(|k| k.default).unwrap_or_else(|| panic!("the reference has no default of {section}.{key}"))
}
