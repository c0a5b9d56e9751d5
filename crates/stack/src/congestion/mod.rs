//! Congestion control: how large each subflow's window is.
//!
//! A controller sets the window and the slow-start threshold; loss detection and repair are the subflow's. Controllers
//! count *segments acknowledged*, not acknowledgments, so delayed ACKs do not slow growth (as Linux does).
//!
//! To add one: a file in this folder with an [`Entry`], and a line in [`REGISTRY`].

mod balia;
mod bbr;
mod compound;
mod coupled;
mod cubic;
mod cubic_steps;
mod hystart;
mod lia;
mod mcc;
mod newreno;
mod olia;
mod rounds;
mod wvegas;

#[cfg(test)]
mod conformance;
#[cfg(any(test, feature = "conformance"))]
pub mod contract;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod testing;

use crate::options::{OptionError, Options};
use crate::view::{Packets, SubflowView};
pub use anabranch_events::LossCause;
use anabranch_events::Note;
use anabranch_registry::Registry;
use anabranch_units::{Bandwidth, Duration, Instant};
use std::fmt;

/// Every controller, in the order in which lists show them.
pub static REGISTRY: Registry<Constructor> = Registry::new(&[
    newreno::ENTRY,
    cubic::ENTRY,
    compound::ENTRY,
    lia::ENTRY,
    olia::ENTRY,
    balia::ENTRY,
    wvegas::ENTRY,
    bbr::ENTRY,
    mcc::ENTRY,
    bbr::coupling::ENTRY,
    bbr::v3::ENTRY,
]);

/// A controller's line in the registry.
pub type Entry = anabranch_registry::Entry<Constructor>;

/// Makes a controller for a new subflow from its options and a seed, which is for controllers that draw random numbers.
pub type Constructor = fn(&Options, seed: u64) -> Result<Box<dyn CongestionControl>, OptionError>;

/// Makes the control of that name for a new subflow; the seed is for controls that draw.
///
/// # Errors
/// If there is none, or it refuses its options.
pub fn create(name: &str, options: &Options, seed: u64) -> Result<Box<dyn CongestionControl>, OptionError> {
    let entry = REGISTRY.named("congestion_control", name)?;
    (entry.create)(options, seed)
}

/// The smallest window after a loss that acknowledgments showed (RFC 5681 equation 4).
pub const MIN_SSTHRESH: f64 = 2.0;

/// How many windows a send buffer has room for, unless the control says otherwise (Linux's `tcp_sndbuf_expand`): one in
/// flight, and another one because new data is sent during the recovery of a loss, and the application may write late.
pub(crate) const BUFFERED_WINDOWS: u32 = 2;

/// The values that a controller may set. The subflow owns it; recovery (RFC 6937) and timeouts write `cwnd` too.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Congestion window in packets.
    pub cwnd: Packets,
    /// Slow-start threshold in packets; [`Packets::INFINITE`] before the first loss.
    pub ssthresh: Packets,
    /// The rate at which packets must be paced; `None` if the controller sets none.
    pub pacing_rate: Option<Bandwidth>,
    /// Bytes that a packet takes of that rate in addition to its payload. Linux counts none.
    pub paced_overhead: u32,
    /// Packets that leave together, as one burst of segmentation offload; the next ones wait for all of them.
    pub paced_burst: u32,
    /// When the pace lets the next burst leave. The subflow sets it.
    pub paced_until: Instant,
    /// Few packets are in flight, to measure the least round trip (BBR's ProbeRtt).
    pub seeks_min_rtt: bool,
}

impl Window {
    /// The window of a new connection: no round trip and no loss was measured.
    pub fn initial(packets: u32) -> Self {
        Window {
            cwnd: Packets::whole(packets),
            ssthresh: Packets::INFINITE,
            pacing_rate: None,
            paced_overhead: 0,
            paced_burst: 1,
            paced_until: Instant::ZERO,
            seeks_min_rtt: false,
        }
    }

    /// Whether the window is below its threshold.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// One packet for each acknowledged one, up to the threshold (RFC 5681 section 3.1); returns
    /// the acknowledged packets that are left for congestion avoidance.
    pub fn slow_start(&mut self, acked: u32) -> f64 {
        let (cwnd, acked) = (self.cwnd.as_f64(), f64::from(acked));
        let grown = (cwnd + acked).min(self.ssthresh.as_f64().max(cwnd));
        self.cwnd = Packets::from_f64(grown);
        acked - (grown - cwnd)
    }

    /// One packet for each window of acknowledged ones. The window counts in whole packets, as Linux does
    /// (`tcp_cong_avoid_ai`): its fraction is the share of the next step that has been acknowledged, and what a step
    /// leaves over is a smaller share of the next one. Delayed acknowledgments come in pairs, so whether a step comes
    /// with this pair or the next one hangs on a single packet.
    pub fn grow_per_window(&mut self, acked: f64) {
        /// Acknowledged packets that may have been lost by rounding.
        const ROUNDING: f64 = 1e-3;
        let window = f64::from(self.cwnd.floor().max(1));
        let credit = (self.cwnd.as_f64() - window).max(0.0) * window + acked;
        let steps = ((credit + ROUNDING) / window).floor();
        let grown = window + steps;
        self.cwnd = Packets::from_f64(grown + (credit - steps * window).max(0.0) / grown);
    }

    /// Adds to the window; a negative increment takes it down, but never below one packet.
    pub fn grow(&mut self, increment: f64) {
        self.cwnd = Packets::from_f64((self.cwnd.as_f64() + increment).max(1.0));
    }

    /// Sets the threshold for after a loss, at least [`MIN_SSTHRESH`].
    pub fn set_ssthresh(&mut self, packets: f64) {
        self.ssthresh = Packets::from_f64(packets.max(MIN_SSTHRESH));
    }
}

/// The delivery rate seen by one acknowledgment (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    /// Packets delivered during `interval`; zero if the sample is invalid.
    pub delivered: u32,
    /// The longer of the sending and the acknowledging interval.
    pub interval: Duration,
    /// The count of all delivered packets when the acknowledged packet was sent: identifies its round.
    pub prior_delivered: u64,
    /// The sender had no data to send, so the path may be faster than the sample.
    pub app_limited: bool,
    /// Packets in flight when the acknowledged packet was sent, with it.
    pub sent_in_flight: u32,
    /// Packets that were found lost since it was sent.
    pub lost: u32,
}

/// The contents of one acknowledgment of new data.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Time of arrival.
    pub now: Instant,
    /// Packets that it newly acknowledged, cumulatively or selectively.
    pub delivered: u32,
    /// All packets delivered so far, these included.
    pub total_delivered: u64,
    /// The round trip that it measured; `None` if it acknowledges only retransmitted packets.
    pub rtt: Option<Duration>,
    /// Whether the window may grow: it limited the sender, and no repair is in progress.
    pub may_grow: bool,
    /// Packets in flight before the acknowledgment.
    pub prior_in_flight: u32,
    /// Packets in flight after the acknowledgment.
    pub in_flight: u32,
    /// Packets that it showed to be lost.
    pub lost: u32,
    /// The subflow's first unacknowledged byte, for controllers that count rounds.
    pub acked_offset: u64,
    /// The subflow's next byte to send.
    pub sent_offset: u64,
    /// The delivery rate.
    pub rate: RateSample,
}

/// All live subflows of the connection, and which of them is the controller's own.
#[derive(Clone, Copy, Debug)]
pub struct Siblings<'a> {
    all: &'a [SubflowView],
    own: usize,
}

impl<'a> Siblings<'a> {
    /// `own` is the position of the controller's subflow.
    pub fn new(all: &'a [SubflowView], own: usize) -> Self {
        debug_assert!(own < all.len());
        Siblings { all, own }
    }

    /// All live subflows, oldest first.
    pub fn all(&self) -> &'a [SubflowView] {
        self.all
    }

    /// The position of the controller's own subflow.
    pub fn position(&self) -> usize {
        self.own
    }

    /// The controller's own subflow.
    pub fn own(&self) -> &'a SubflowView {
        &self.all[self.own]
    }

    /// The subflows that count in a coupled sum: established, with a round trip, not disabled by the path policy.
    /// The own one always counts.
    pub fn coupled(&self) -> impl Iterator<Item = &'a SubflowView> + Clone + use<'a> {
        let own = self.own;
        let counts = move |i: usize, s: &SubflowView| i == own || (s.established && s.allowed && !s.srtt.is_zero());
        self.all.iter().enumerate().filter(move |(i, s)| counts(*i, s)).map(|(_, s)| s)
    }
}

/// Decides one subflow's window. Distinct causes are distinct methods; all but
/// [`on_ack`](Self::on_ack) and [`on_congestion`](Self::on_congestion) do nothing by default.
pub trait CongestionControl: fmt::Debug + Send {
    /// The subflow is established: `window` is the initial one, and the smoothed round trip is that of the handshake.
    /// For controllers that set a pacing rate before the first data leaves.
    fn on_established(&mut self, _now: Instant, _window: &mut Window, _siblings: Siblings<'_>) {}

    /// An acknowledgment of new data arrived. Round trips may be learned from every one; the window may grow
    /// only where [`Ack::may_grow`] says so.
    fn on_ack(&mut self, ack: &Ack, window: &mut Window, siblings: Siblings<'_>);

    /// A congestion episode begins: set `window.ssthresh`. Called once per episode; the subflow moves `cwnd` itself
    /// (to the threshold by proportional rate reduction, or to one packet more than is in flight on a timeout).
    fn on_congestion(&mut self, now: Instant, cause: LossCause, window: &mut Window, siblings: Siblings<'_>);

    /// The repair is complete; `cwnd` is the threshold.
    fn on_recovery_end(&mut self, _now: Instant, _window: &mut Window) {}

    /// The last reduction was spurious; `cwnd` and `ssthresh` are what they were before it.
    fn on_undo(&mut self, _now: Instant, _window: &mut Window) {}

    /// Sending begins again after `idle` without anything in flight; `cwnd` was decayed already (RFC 2861)
    /// unless the controller [governs itself](Self::governs_itself). `app_limited`: the controller knows that the
    /// sender lacks data (Linux's `tcp_sock.app_limited`).
    fn on_restart(&mut self, _now: Instant, _idle: Duration, _app_limited: bool, _window: &mut Window) {}

    /// How many windows the send buffer of a subflow has room for where Linux's behaviour is asked for
    /// (`failover = "upstream"`); Linux's `sndbuf_expand`.
    fn buffered_windows(&self) -> u32 {
        BUFFERED_WINDOWS
    }

    /// Whether recovery and idle decay shall leave `cwnd` alone, as BBR requires.
    fn governs_itself(&self) -> bool {
        false
    }

    /// Counters of the controller's own decisions, by name; for reports, never for decisions.
    fn counters(&self) -> &[(&'static str, u64)] {
        &[]
    }

    /// Passes on the notes since the last call, oldest first, for the table of events. The built-in ones have none.
    fn take_notes(&mut self, _take: &mut dyn FnMut(Note)) {}
}
