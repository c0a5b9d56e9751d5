//! What an endpoint can say.

use anabranch_units::{Bandwidth, Duration, PathId, SubflowId};

/// Why a segment carries the data that it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendKind {
    /// The connection never sent these bytes before.
    New,
    /// The subflow repeats its own segment.
    Retransmission,
    /// The subflow repeats its own last segment to provoke an acknowledgment (RFC 8985 section 7.3).
    TailLossProbe,
    /// The connection sends again what it had given to another subflow, which failed or blocks the window.
    Reinjection,
    /// The scheduler wants the same bytes on several subflows.
    Duplicate,
}

/// Why a subflow reduced its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// Acknowledgments showed a loss.
    FastRetransmit,
    /// The retransmission timer fired.
    Timeout,
    /// The scheduler penalised a slow subflow that blocks the shared window.
    Penalty,
}

/// Why a connection continues, or ends, without Multipath TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallbackReason {
    /// The peer's handshake carried no MP_CAPABLE.
    NotCapable,
    /// Nobody answered a SYN with MP_CAPABLE.
    Unanswered,
    /// The first segments after the handshake carried no MPTCP option.
    OptionsStripped,
    /// A mapping was missing or contradicted an earlier one.
    BadMapping,
    /// The peer sent MP_FAIL or an infinite mapping.
    PeerFailed,
}

/// Why a subflow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Both sides had sent FIN.
    Finished,
    /// The peer sent RST.
    ResetByPeer,
    /// This side sent RST: the peer broke the protocol.
    ProtocolError,
    /// The handshake or a retransmission was repeated in vain.
    TimedOut,
    /// The path manager or the host gave the path up.
    PathDown,
    /// The whole connection was aborted.
    Aborted,
}

/// What an endpoint can say. Rates and times are estimates at that moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TransportEvent {
    /// The first handshake is complete: data may flow.
    Established,
    /// The connection is plain TCP from here on.
    FellBack {
        /// Why.
        reason: FallbackReason,
    },
    /// A subflow may carry data.
    SubflowOpened {
        /// Its name.
        subflow: SubflowId,
        /// The path that it uses.
        path: PathId,
        /// The round trip of its handshake.
        rtt: Duration,
    },
    /// A subflow is gone.
    SubflowClosed {
        /// Its name.
        subflow: SubflowId,
        /// The path that it used.
        path: PathId,
        /// Why.
        reason: CloseReason,
    },
    /// A segment with payload left.
    SegmentSent {
        /// On this subflow.
        subflow: SubflowId,
        /// Why it carries what it carries.
        kind: SendKind,
        /// Bytes of payload.
        bytes: u32,
        /// Where they stand in the connection's stream.
        offset: u64,
    },
    /// A segment with payload left on another subflow than the one before it: among all segments with payload,
    /// among those with new data only, or both.
    PathSwitched {
        /// The earlier segment's subflow.
        from: SubflowId,
        /// The later segment's subflow.
        to: SubflowId,
        /// Whether this is a switch among all segments with payload, repetitions included.
        any: bool,
        /// Whether this is a switch among the segments with new data.
        new_data: bool,
        /// Where the later segment stands in the stream.
        offset: u64,
        /// Smoothed round trip of the earlier subflow.
        rtt_from: Duration,
        /// Smoothed round trip of the later subflow.
        rtt_to: Duration,
        /// Window over round trip of the earlier subflow.
        rate_from: Bandwidth,
        /// Window over round trip of the later subflow.
        rate_to: Bandwidth,
    },
    /// A subflow reduced its window.
    WindowReduced {
        /// On this subflow.
        subflow: SubflowId,
        /// Why.
        cause: LossCause,
        /// The window before, in packets.
        from: f64,
        /// The slow-start threshold after, in packets.
        to: f64,
    },
    /// The retransmission timer fired. Only the first of a row reduces the window.
    TimeoutFired {
        /// On this subflow.
        subflow: SubflowId,
        /// How many in a row there were now without progress, from one.
        in_a_row: u32,
    },
    /// A reduction turned out to be unnecessary and was taken back.
    ReductionUndone {
        /// On this subflow.
        subflow: SubflowId,
    },
    /// Bytes became readable in order.
    Delivered {
        /// How many.
        bytes: u32,
        /// How long they had waited for earlier ones since they arrived; zero if they arrived in order.
        waited: Duration,
        /// The part of it in which their own subflow had repaired everything before them, so that only bytes of other
        /// subflows were missing.
        across: Duration,
    },
    /// Bytes arrived ahead of others.
    OutOfOrder {
        /// Bytes now in the connection's reassembly queue.
        buffered: u64,
    },
    /// The peer's receive window began (or ceased) to keep data back that some subflow had room for.
    ReceiveWindowLimited {
        /// Whether it does now.
        limited: bool,
    },
    /// The scheduler began (or ceased) to wait although some subflow had room.
    SchedulerWaiting {
        /// Whether it does now.
        waiting: bool,
    },
    /// A subflow became a backup, or ceased to be one.
    PriorityChanged {
        /// Which.
        subflow: SubflowId,
        /// Whether it is a backup now.
        backup: bool,
        /// Whether the peer asked for it.
        by_peer: bool,
    },
    /// The path policy forbade a subflow to carry new data, or allowed it again.
    PathUse {
        /// Which.
        subflow: SubflowId,
        /// Whether it may now.
        allowed: bool,
    },
    /// How often a subflow's congestion control did what only it does. Told before a sample and when the subflow closes, if
    /// it has changed.
    ControlCount {
        /// Whose.
        subflow: SubflowId,
        /// What is counted.
        name: &'static str,
        /// How often so far.
        count: u64,
    },
    /// The state of one subflow, at an interval that the host chooses.
    Sample {
        /// Which.
        subflow: SubflowId,
        /// Congestion window in packets.
        cwnd: f64,
        /// Slow-start threshold in packets; infinite before the first reduction.
        ssthresh: f64,
        /// Packets in flight.
        in_flight: u32,
        /// Smoothed round trip.
        srtt: Duration,
        /// Payload bytes acknowledged so far.
        acked: u64,
    },
    /// Every byte and the end of data were acknowledged, in both directions.
    Finished,
    /// The connection ended before that.
    Aborted,
}

impl TransportEvent {
    /// The same event with other names for its subflows: where several connections are told as one.
    #[must_use]
    pub fn map_subflows(mut self, name: impl Fn(SubflowId) -> SubflowId) -> Self {
        match &mut self {
            TransportEvent::SubflowOpened { subflow, .. }
            | TransportEvent::SubflowClosed { subflow, .. }
            | TransportEvent::SegmentSent { subflow, .. }
            | TransportEvent::WindowReduced { subflow, .. }
            | TransportEvent::TimeoutFired { subflow, .. }
            | TransportEvent::ReductionUndone { subflow }
            | TransportEvent::PriorityChanged { subflow, .. }
            | TransportEvent::PathUse { subflow, .. }
            | TransportEvent::ControlCount { subflow, .. }
            | TransportEvent::Sample { subflow, .. } => *subflow = name(*subflow),
            TransportEvent::PathSwitched { from, to, .. } => (*from, *to) = (name(*from), name(*to)),
            TransportEvent::Established
            | TransportEvent::FellBack { .. }
            | TransportEvent::Delivered { .. }
            | TransportEvent::OutOfOrder { .. }
            | TransportEvent::ReceiveWindowLimited { .. }
            | TransportEvent::SchedulerWaiting { .. }
            | TransportEvent::Finished
            | TransportEvent::Aborted => {}
        }
        self
    }
}
