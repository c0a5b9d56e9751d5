//! Events of endpoints.

use anabranch_units::{Bandwidth, Duration, PathId, SubflowId};
use serde::Serialize;

/// Why a segment carries its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SendKind {
    /// The connection never sent these bytes before.
    New,
    /// The subflow retransmits its own segment.
    Retransmission,
    /// The subflow retransmits its own last segment to trigger an acknowledgment (RFC 8985 section 7.3).
    TailLossProbe,
    /// The connection sends bytes again that it had given to another subflow, which failed or blocks the window.
    Reinjection,
    /// The scheduler sends the same bytes on several subflows.
    Duplicate,
}

/// How a scheduler saw a subflow when it decided about new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Consideration {
    /// It was given the data.
    Chosen,
    /// It could have taken the data: the scheduler preferred another one, or to wait.
    PassedOver,
    /// It could take no new data: its window was full, its pace had not come to the next packet, or it was kept from
    /// new data.
    NotReady,
}

/// Why a window decayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecayCause {
    /// Nothing was sent for a retransmission timeout, or several (RFC 2861 and Linux's slow start after idle).
    Idle,
    /// A part of the window was not used for a retransmission timeout (RFC 2861).
    Unused,
}

/// Why data is sent again on another subflow than the one that was given it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopyCause {
    /// The retransmission timer of that subflow fired.
    Timeout,
    /// No acknowledgment arrived from it for so long that the scheduler gave it up.
    Silent,
    /// No acknowledgment arrived from it for several periods of the connection's timer (upstream Linux).
    Stale,
    /// It was closed, or will carry nothing more.
    Closed,
    /// The path policy forbade it new data.
    Policy,
    /// Packets of its size seem to be lost.
    BlackHole,
    /// Its data is the first that is not acknowledged, and the receive window is full.
    WindowFull,
    /// The connection made no progress for a timeout.
    NoProgress,
    /// The scheduler sends copies as its rule, and gives no other reason.
    Redundant,
    /// The scheduler takes the data for lost.
    Lost,
    /// The scheduler finds its acknowledgment overdue.
    Late,
    /// The scheduler expects the copy to arrive earlier than the original.
    Sooner,
    /// The subflow has nothing else to do, in case the original is lost.
    Spare,
}

/// Why a subflow reduced its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossCause {
    /// Acknowledgments showed a loss.
    FastRetransmit,
    /// The retransmission timer fired.
    Timeout,
    /// The scheduler penalised a slow subflow that blocks the shared window.
    Penalty,
}

/// Why segments of a subflow have another size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MtuCause {
    /// A router reported a packet that was too big.
    Reported,
    /// Large packets were lost where small ones arrived.
    BlackHole,
    /// A larger packet was tried, and arrived.
    Tried,
}

/// Why a connection continues, or ends, without Multipath TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FallbackReason {
    /// The peer's handshake carried no MP_CAPABLE.
    NotCapable,
    /// No SYN with MP_CAPABLE was answered.
    Unanswered,
    /// The first segments after the handshake carried no MPTCP option.
    OptionsStripped,
    /// A mapping was missing or contradicted an earlier one.
    BadMapping,
    /// The peer sent MP_FAIL or an infinite mapping.
    PeerFailed,
}

/// Why a subflow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CloseReason {
    /// Both sides had sent FIN.
    Finished,
    /// The peer sent RST.
    ResetByPeer,
    /// This side sent RST: the peer broke the protocol.
    ProtocolError,
    /// The retransmissions of the handshake or of data were used up.
    TimedOut,
    /// The path manager or the host closed the path.
    PathDown,
    /// The whole connection was aborted.
    Aborted,
}

/// Why a scheduler that forecasts arrivals decided as it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForecastReason {
    /// The others alone would be done before the next segment arrived on this subflow, so it gets none.
    Waits,
    /// After waiting, this subflow gets data again.
    Sends,
    /// Data is sent again here because another subflow lost it.
    Lost,
    /// Data is sent again here because its acknowledgment is overdue.
    Late,
    /// Data is sent again here because the copy will arrive earlier than the original.
    Sooner,
    /// Data is sent again here because the subflow has nothing else to do, in case the original is lost.
    Spare,
    /// No acknowledgment has arrived on this subflow for so long that the others send its data.
    Silent,
}

/// A forecast on which a scheduler decided.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// The subflow that the decision is about.
    pub subflow: SubflowId,
    /// After which time its next segment would arrive at the peer.
    #[serde(rename = "arrival_s", serialize_with = "crate::column::seconds")]
    pub arrival: Duration,
    /// After which time the other subflows alone would have delivered everything that is unsent; none where there are
    /// no others, or where nothing is unsent.
    #[serde(rename = "finish_s", serialize_with = "crate::column::seconds_option")]
    pub finish: Option<Duration>,
    /// Bytes that may still be sent a second time.
    #[serde(rename = "budget_bytes")]
    pub budget: u64,
    /// Cause of the decision.
    #[serde(rename = "detail")]
    pub reason: ForecastReason,
}

/// A number that a replaceable part from outside reports under a name of its own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Note {
    /// What it is called.
    #[serde(rename = "detail")]
    pub name: &'static str,
    /// The number, in the unit that its author gave it.
    pub value: f64,
    /// The subflow that it is about, if it is about one.
    pub subflow: Option<SubflowId>,
}

/// An event of an endpoint. Rates and times are estimates at that time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransportEvent {
    /// The first handshake is complete: data may be sent.
    Established,
    /// The connection is plain TCP from here on.
    FellBack {
        /// Cause of the fallback.
        #[serde(rename = "detail")]
        reason: FallbackReason,
    },
    /// A subflow may carry data.
    SubflowOpened {
        /// The subflow.
        subflow: SubflowId,
        /// The path that it uses.
        path: PathId,
        /// The round trip of its handshake.
        #[serde(rename = "rtt_s", serialize_with = "crate::column::seconds")]
        rtt: Duration,
    },
    /// A subflow was closed.
    SubflowClosed {
        /// The subflow.
        subflow: SubflowId,
        /// The path that it used.
        path: PathId,
        /// Cause of the end.
        #[serde(rename = "detail")]
        reason: CloseReason,
    },
    /// How the scheduler saw an established subflow when it gave new data to one of them, or began to wait; one event
    /// for each that could take the data, or has a forecast. Emitted only where a host asks for reasons, before the
    /// segments that carry the data.
    Considered {
        /// The subflow.
        subflow: SubflowId,
        /// Whether it was given the data, and if not, whether it could have been.
        #[serde(rename = "detail")]
        consideration: Consideration,
        /// How many bytes it was given.
        bytes: u64,
        /// Offset of the next new byte in the connection's stream.
        offset: u64,
        /// Its smoothed round trip.
        #[serde(rename = "srtt_s", serialize_with = "crate::column::seconds")]
        srtt: Duration,
        /// After which time the next segment would arrive at the peer on it; absent where the scheduler makes no
        /// forecast.
        #[serde(rename = "arrival_s", serialize_with = "crate::column::seconds_option")]
        arrival: Option<Duration>,
    },
    /// A segment with payload was sent.
    SegmentSent {
        /// Its subflow.
        subflow: SubflowId,
        /// Why it carries its data.
        #[serde(rename = "detail")]
        kind: SendKind,
        /// Bytes of payload.
        bytes: u32,
        /// Offset of the payload in the connection's stream.
        offset: u64,
    },
    /// A subflow is given data that another one was given before. Emitted only where a host asks for reasons, before
    /// the segments that carry it.
    Copied {
        /// The subflow that is given it now.
        subflow: SubflowId,
        /// The subflow that was given it before, the latest if there are several; absent if none has it any more.
        #[serde(rename = "original_subflow")]
        original: Option<SubflowId>,
        /// Why it is sent again.
        #[serde(rename = "detail")]
        cause: CopyCause,
        /// Number of bytes.
        bytes: u64,
        /// Offset of the first of them in the connection's stream.
        offset: u64,
    },
    /// A segment with payload was sent on another subflow than the one before it: among all segments with payload,
    /// among those with new data only, or both.
    PathSwitched {
        /// The earlier segment's subflow.
        #[serde(rename = "subflow")]
        from: SubflowId,
        /// The later segment's subflow.
        #[serde(rename = "to_subflow")]
        to: SubflowId,
        /// Whether this is a switch among all segments with payload, retransmissions included.
        #[serde(rename = "any_data")]
        any: bool,
        /// Whether this is a switch among the segments with new data.
        new_data: bool,
        /// Offset of the later segment in the stream.
        offset: u64,
        /// Smoothed round trip of the earlier subflow.
        #[serde(rename = "rtt_from_s", serialize_with = "crate::column::seconds")]
        rtt_from: Duration,
        /// Smoothed round trip of the later subflow.
        #[serde(rename = "rtt_to_s", serialize_with = "crate::column::seconds")]
        rtt_to: Duration,
        /// Window over round trip of the earlier subflow.
        #[serde(rename = "rate_from_bps", serialize_with = "crate::column::bps")]
        rate_from: Bandwidth,
        /// Window over round trip of the later subflow.
        #[serde(rename = "rate_to_bps", serialize_with = "crate::column::bps")]
        rate_to: Bandwidth,
    },
    /// A subflow reduced its window.
    WindowReduced {
        /// The subflow.
        subflow: SubflowId,
        /// Cause of the reduction.
        #[serde(rename = "detail")]
        cause: LossCause,
        /// The window before, in packets.
        #[serde(rename = "cwnd_packets")]
        from: f64,
        /// The slow-start threshold after, in packets.
        #[serde(rename = "ssthresh_packets")]
        to: f64,
    },
    /// A window decayed because it was not used. No loss reduced it.
    WindowDecayed {
        /// The subflow.
        subflow: SubflowId,
        /// Cause of the decay.
        #[serde(rename = "detail")]
        cause: DecayCause,
        /// The window before, in packets.
        #[serde(rename = "cwnd_packets")]
        from: f64,
        /// The window after, in packets.
        #[serde(rename = "decayed_packets")]
        to: f64,
    },
    /// The retransmission timer fired. Only the first of consecutive timeouts reduces the window.
    TimeoutFired {
        /// The subflow.
        subflow: SubflowId,
        /// Number of consecutive timeouts without progress, from one.
        in_a_row: u32,
        /// What the timer was set to: the retransmission timeout, backed off after earlier ones (RFC 6298).
        #[serde(rename = "timeout_s", serialize_with = "crate::column::seconds")]
        timeout: Duration,
    },
    /// A reduction turned out to be unnecessary and was undone.
    ReductionUndone {
        /// The subflow.
        subflow: SubflowId,
    },
    /// Segments have another size from here on: path MTU discovery.
    PathMtu {
        /// The subflow.
        subflow: SubflowId,
        /// The IP packet of a full segment, in bytes.
        #[serde(rename = "mtu_bytes")]
        mtu: u32,
        /// Cause of the change.
        #[serde(rename = "detail")]
        cause: MtuCause,
    },
    /// Bytes became readable in order.
    Delivered {
        /// The subflow on which they arrived first, as the receiver numbers it; absent where the receiver is not ours.
        subflow: Option<SubflowId>,
        /// Offset of the first of them in the stream; absent where the receiver is not ours.
        offset: Option<u64>,
        /// Number of bytes.
        bytes: u32,
        /// How long they waited in the reassembly queue for earlier bytes; zero if they arrived in order.
        #[serde(rename = "waited_s", serialize_with = "crate::column::seconds")]
        waited: Duration,
        /// The part of `waited` after their own subflow had repaired everything before them, so that only bytes of
        /// other subflows were missing.
        #[serde(rename = "across_s", serialize_with = "crate::column::seconds")]
        across: Duration,
    },
    /// Bytes arrived out of order.
    OutOfOrder {
        /// The subflow on which they arrived, as the receiver numbers it.
        subflow: SubflowId,
        /// Offset of the first of them in the stream.
        offset: u64,
        /// Bytes now in the connection's reassembly queue.
        #[serde(rename = "waiting_bytes")]
        buffered: u64,
    },
    /// The peer's receive window began (or ceased) to block data for which some subflow had room.
    ReceiveWindowLimited {
        /// Whether it blocks now.
        limited: bool,
    },
    /// The scheduler began (or ceased) to wait although some subflow had room.
    SchedulerWaiting {
        /// Whether it waits now.
        waiting: bool,
    },
    /// A scheduler that forecasts arrivals began or ceased to keep data off a subflow, sent data a second time, or gave
    /// a silent subflow up.
    Forecast(Forecast),
    /// A subflow became a backup, or ceased to be one.
    PriorityChanged {
        /// The subflow.
        subflow: SubflowId,
        /// Whether it is a backup now.
        backup: bool,
        /// Whether the peer requested it.
        #[serde(rename = "detail", serialize_with = "crate::column::end")]
        by_peer: bool,
    },
    /// The path policy forbade a subflow to carry new data, or allowed it again.
    PathUse {
        /// The subflow.
        subflow: SubflowId,
        /// Whether it may carry new data now.
        allowed: bool,
    },
    /// A counter of the subflow's congestion control. Emitted before a sample and when the subflow closes, if it has
    /// changed.
    ControlCount {
        /// The subflow.
        subflow: SubflowId,
        /// Name of the counter.
        #[serde(rename = "detail")]
        name: &'static str,
        /// Count since the start of the subflow.
        count: u64,
    },
    /// A note of a replaceable part from outside.
    Noted(Note),
    /// The state of one subflow, at an interval that the host chooses.
    Sample {
        /// The subflow.
        subflow: SubflowId,
        /// Congestion window in packets.
        #[serde(rename = "cwnd_packets")]
        cwnd: f64,
        /// Slow-start threshold in packets; infinite before the first reduction.
        #[serde(rename = "ssthresh_packets")]
        ssthresh: f64,
        /// Packets in flight.
        #[serde(rename = "in_flight_packets")]
        in_flight: u32,
        /// Smoothed round trip.
        #[serde(rename = "srtt_s", serialize_with = "crate::column::seconds")]
        srtt: Duration,
        /// Payload bytes acknowledged so far.
        #[serde(rename = "acked_bytes")]
        acked: u64,
    },
    /// Every byte and the end of data were acknowledged, in both directions.
    Finished,
    /// The connection ended before that.
    Aborted,
}

impl TransportEvent {
    /// The event with other subflow ids, for reports that join several connections.
    #[must_use]
    pub fn map_subflows(mut self, name: impl Fn(SubflowId) -> SubflowId + Copy) -> Self {
        match &mut self {
            TransportEvent::SubflowOpened { subflow, .. }
            | TransportEvent::SubflowClosed { subflow, .. }
            | TransportEvent::SegmentSent { subflow, .. }
            | TransportEvent::OutOfOrder { subflow, .. }
            | TransportEvent::Considered { subflow, .. }
            | TransportEvent::WindowReduced { subflow, .. }
            | TransportEvent::WindowDecayed { subflow, .. }
            | TransportEvent::TimeoutFired { subflow, .. }
            | TransportEvent::ReductionUndone { subflow }
            | TransportEvent::PathMtu { subflow, .. }
            | TransportEvent::PriorityChanged { subflow, .. }
            | TransportEvent::PathUse { subflow, .. }
            | TransportEvent::ControlCount { subflow, .. }
            | TransportEvent::Sample { subflow, .. } => *subflow = name(*subflow),
            TransportEvent::Copied { subflow, original, .. } => {
                (*subflow, *original) = (name(*subflow), original.map(name));
            }
            TransportEvent::Delivered { subflow, .. } => *subflow = subflow.map(name),
            TransportEvent::Forecast(forecast) => forecast.subflow = name(forecast.subflow),
            TransportEvent::Noted(note) => note.subflow = note.subflow.map(name),
            TransportEvent::PathSwitched { from, to, .. } => (*from, *to) = (name(*from), name(*to)),
            TransportEvent::Established
            | TransportEvent::FellBack { .. }
            | TransportEvent::ReceiveWindowLimited { .. }
            | TransportEvent::SchedulerWaiting { .. }
            | TransportEvent::Finished
            | TransportEvent::Aborted => {}
        }
        self
    }
}
