//! The state of a connection as its replaceable parts see it: plain values, kept up to date by the connection.

use anabranch_units::{Bandwidth, Duration, Instant, PathId, SubflowId};

/// A number of packets with a fraction, as congestion windows need it: fixed point with 32 fractional bits,
/// so that a window is an integer wherever it is stored and a float only inside a formula.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Packets(u64);

impl Packets {
    /// No packet.
    pub const ZERO: Packets = Packets(0);
    /// Beyond every window: a threshold that was never set.
    pub const INFINITE: Packets = Packets(u64::MAX);

    /// `n` whole packets.
    pub const fn whole(n: u32) -> Self {
        Packets((n as u64) << 32)
    }

    /// The nearest representable number; negative and undefined ones become zero.
    pub fn from_f64(n: f64) -> Self {
        Packets((n * 4_294_967_296.0 + 0.5) as u64)
    }

    /// The number for use in a formula; infinity for [`Packets::INFINITE`].
    pub fn as_f64(self) -> f64 {
        match i64::try_from(self.0) {
            // Processors convert signed integers.
            Ok(fixed) => fixed as f64 / 4_294_967_296.0,
            Err(_) if self == Packets::INFINITE => f64::INFINITY,
            Err(_) => self.0 as f64 / 4_294_967_296.0,
        }
    }

    /// Whole packets: how many may be sent.
    pub const fn floor(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// State of loss recovery (Linux's `tcp_ca_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// No sign of loss.
    #[default]
    Open,
    /// Selective acknowledgments hint at a loss or at reordering.
    Disorder,
    /// Repairing a loss that acknowledgments showed.
    Recovery,
    /// Repairing after the retransmission timer fired.
    Loss,
}

/// One subflow as schedulers, coupled congestion controls and path policies see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubflowView {
    /// Identifier, unique in the connection.
    pub id: SubflowId,
    /// The path that it uses.
    pub path: PathId,
    /// The handshake is complete, for a join including its fourth segment: data may be sent.
    pub established: bool,
    /// Either side marked it as a backup: it carries data only when no other subflow works.
    pub backup: bool,
    /// Bytes cost money on its path.
    pub metered: bool,
    /// It timed out and nothing was acknowledged since, or it is stale: its data was handed to others, and it gets no
    /// new data.
    pub potentially_failed: bool,
    /// A timeout alone keeps new data off it (legacy Multipath TCP); otherwise only its failure does (upstream Linux).
    pub rests_in_loss: bool,
    /// The path policy lets it carry new data.
    pub allowed: bool,
    /// State of loss recovery.
    pub phase: Phase,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// The same without the options of Multipath TCP (Linux's `mss_cache`).
    pub tcp_mss: u32,
    /// Congestion window.
    pub cwnd: Packets,
    /// Slow-start threshold.
    pub ssthresh: Packets,
    /// Packets in flight, as loss recovery estimates them.
    pub in_flight: u32,
    /// Packets that loss recovery takes for lost and has not retransmitted.
    pub unrepaired: u32,
    /// When the first unacknowledged packet was last sent; none where everything is acknowledged.
    pub oldest_sent: Option<Instant>,
    /// When the last acknowledgment arrived.
    pub last_ack_at: Instant,
    /// Payload bytes that were given to the subflow and have not left yet.
    pub queued: u64,
    /// Payload bytes that have left and are not acknowledged on the subflow.
    pub outstanding: u64,
    /// Bytes of memory that these take in Linux's send buffer: with the records of the packets in flight.
    pub memory: u64,
    /// Where data commits into the send buffer, the subflow takes more while `memory` is less than this.
    pub send_buffer: u64,
    /// Smoothed round trip; zero before the first sample.
    pub srtt: Duration,
    /// Mean deviation of the round trip; zero before the first sample.
    pub rttvar: Duration,
    /// The latest round-trip sample; zero before the first one.
    pub latest_rtt: Duration,
    /// The smallest round-trip sample; zero before the first one.
    pub min_rtt: Duration,
    /// How fast packets arrived at the peer lately; see [`SubflowView::delivery_rate`].
    pub delivery: Delivered,
    /// How fast bytes arrived at the peer lately; see [`SubflowView::arrival_rate`].
    pub arrivals: Arrivals,
    /// How fast packets may leave; see [`SubflowView::pacing_rate`].
    pub pace: Pace,
    /// The congestion control has few packets in flight, to measure the least round trip (BBR's ProbeRtt).
    pub seeks_min_rtt: bool,
    /// Payload bytes acknowledged since the last loss (OLIA's l2).
    pub acked_since_loss: u64,
    /// Payload bytes acknowledged between the last two losses (OLIA's l1).
    pub acked_between_losses: u64,
}

/// The latest delivery rate that shows the path: packets that were delivered, and the time in which they were. Stored
/// undivided because only some parts read the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Packets; zero before the first sample.
    pub packets: u32,
    /// The longer of the intervals in which they were sent and acknowledged.
    pub interval: Duration,
}

/// Bytes that arrived at the peer, and the time in which they did: the latest sample that shows the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// Bytes of payload; zero before the first sample.
    pub bytes: u32,
    /// The longer of the intervals in which they were sent and acknowledged.
    pub interval: Duration,
}

/// A pace as it was at the last acknowledgment: packets per round trip, or a rate that the congestion control set.
/// Stored undivided because most schedulers never read the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    /// The rate that the congestion control set.
    pub fixed: Option<Bandwidth>,
    /// Otherwise this many packets leave ...
    pub packets: f64,
    /// ... in this time; zero before the first round trip.
    pub round_trip: Duration,
}

impl Pace {
    /// A fixed rate, independent of the window.
    pub fn fixed(rate: Bandwidth) -> Self {
        Pace { fixed: Some(rate), ..Pace::default() }
    }

    /// The rate with packets of `mss` bytes; infinite before the first round trip.
    pub fn rate(&self, mss: u32) -> Bandwidth {
        match self.fixed {
            Some(rate) => rate,
            None if self.round_trip.is_zero() => Bandwidth::INFINITE,
            None => {
                let bits = self.packets * f64::from(mss) * 8.0;
                Bandwidth::from_bps((bits / self.round_trip.as_secs_f64()) as u64)
            }
        }
    }
}

impl SubflowView {
    /// An established, idle subflow on a path of its own, before its first loss: what tests of replaceable parts start
    /// from.
    pub fn idle(id: u16, mss: u32, cwnd: Packets, rtt: Duration) -> Self {
        SubflowView {
            id: SubflowId(id),
            path: PathId(id),
            established: true,
            backup: false,
            metered: false,
            potentially_failed: false,
            rests_in_loss: true,
            allowed: true,
            phase: Phase::Open,
            mss,
            tcp_mss: mss,
            cwnd,
            ssthresh: Packets::INFINITE,
            in_flight: 0,
            unrepaired: 0,
            oldest_sent: None,
            last_ack_at: Instant::ZERO,
            queued: 0,
            outstanding: 0,
            memory: 0,
            send_buffer: u64::MAX,
            srtt: rtt,
            rttvar: Duration::ZERO,
            latest_rtt: rtt,
            min_rtt: rtt,
            delivery: Delivered::default(),
            arrivals: Arrivals::default(),
            pace: Pace::default(),
            seeks_min_rtt: false,
            acked_since_loss: 0,
            acked_between_losses: 0,
        }
    }

    /// Linux's pacing rate: a multiple of window over round trip, whether or not packets are paced.
    pub fn pacing_rate(&self) -> Bandwidth {
        self.pace.rate(self.mss)
    }

    /// Whether the subflow could carry new data if its window allowed: legacy Linux's `mptcp_is_def_unavailable`,
    /// negated, or upstream Linux's `mptcp_subflow_active`.
    pub fn usable(&self) -> bool {
        self.allowed && self.works()
    }

    /// Whether it is usable apart from the path policy.
    pub fn works(&self) -> bool {
        let rests = self.rests_in_loss && self.phase == Phase::Loss;
        self.established && !self.potentially_failed && !rests
    }

    /// Free packets of the congestion window, counting queued segments as sent.
    pub fn room(&self) -> u32 {
        let queued = match self.queued {
            // Mostly; a division takes long.
            0 => 0,
            bytes => u32::try_from(bytes.div_ceil(u64::from(self.mss.max(1)))).unwrap_or(u32::MAX),
        };
        self.cwnd.floor().saturating_sub(self.in_flight.saturating_add(queued))
    }

    /// Window over smoothed round trip in bytes per second: the throughput estimate of the papers. Zero without a
    /// sample.
    pub fn rate(&self) -> f64 {
        window_rate(self.cwnd, self.mss, self.srtt)
    }

    /// The delivery rate in bytes of payload per second: what the path carried, whatever the window. `None` before the
    /// first sample. A subflow without data to send keeps its rate, unless it delivers more (Linux's
    /// `tcpi_delivery_rate`, draft-cheng-iccrg-delivery-rate-estimation).
    pub fn delivery_rate(&self) -> Option<f64> {
        let Delivered { packets, interval } = self.delivery;
        let measured = packets > 0 && !interval.is_zero();
        measured.then(|| f64::from(packets) * f64::from(self.mss) / interval.as_secs_f64())
    }

    /// The rate in bytes of payload per second at which data arrives at the peer while there is data to send; `None`
    /// before the first sample. Unlike [`SubflowView::delivery_rate`] it takes a short packet for what it carries, and
    /// leaves out the first round trip after a pause: the rate for forecasts.
    pub fn arrival_rate(&self) -> Option<f64> {
        let Arrivals { bytes, interval } = self.arrivals;
        (bytes > 0 && !interval.is_zero()).then(|| f64::from(bytes) / interval.as_secs_f64())
    }

    /// Whether the window is below its threshold.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// The window that coupled controls add up: while recovering, the one that recovery aims at, because the
    /// momentary one is inflated or deflated packet by packet (RFC 6937). After a timeout the window is what it is, one
    /// packet at first: a path that is dead must not hold down the others for what it once carried.
    pub fn settled_window(&self) -> f64 {
        match self.phase {
            Phase::Recovery if self.ssthresh != Packets::INFINITE => self.ssthresh.as_f64(),
            _ => self.cwnd.as_f64(),
        }
    }
}

/// A window of packets with `mss` bytes over a round trip, in bytes per second; zero without a round trip.
pub(crate) fn window_rate(cwnd: Packets, mss: u32, srtt: Duration) -> f64 {
    if srtt.is_zero() { 0.0 } else { cwnd.as_f64() * f64::from(mss) / srtt.as_secs_f64() }
}

/// The application's hints about its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// The rate at which the data is consumed, such as a video's bitrate.
    pub consumption_rate: Option<Bandwidth>,
    /// The stream offset at which the current message, such as a media segment, ends.
    pub message_end: Option<u64>,
}

/// The connection as schedulers see it. Offsets count bytes of the send stream from zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionView {
    /// Current time.
    pub now: Instant,
    /// The first byte that the peer has not acknowledged at the data level.
    pub unacked: u64,
    /// The first byte not yet given to a subflow.
    pub next: u64,
    /// Bytes written by the application and not yet given to a subflow.
    pub unsent: u64,
    /// One past the last byte that the peer's shared window allows.
    pub window_end: u64,
    /// Where data commits into the send buffer: bytes from `next` to the end of its fragment. Upstream Linux gives a
    /// subflow whole fragments.
    pub fragment: Option<u64>,
    /// Where data commits into the send buffer: the application wrote into it since a subflow was given new data.
    pub write_begins: bool,
    /// How often the first unacknowledged data was retransmitted on a faster subflow because the shared window was
    /// full.
    pub opportunistic_retransmissions: u64,
    /// The application's hints.
    pub hints: Hints,
    /// When the buffer of the viewer who gets this data will be empty if nothing more arrives, by an estimate of the
    /// server; `None` where it is not estimated.
    pub buffered_until: Option<Instant>,
}

impl ConnectionView {
    /// Free bytes of the peer's shared window.
    pub fn window_space(&self) -> u64 {
        self.window_end.saturating_sub(self.next)
    }

    /// Playing time that the viewer has buffered, if it is estimated; see [`ConnectionView::buffered_until`].
    pub fn buffer(&self) -> Option<Duration> {
        self.buffered_until.map(|until| until.since(self.now))
    }
}
