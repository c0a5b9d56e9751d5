//! The sending half of a subflow: acknowledged data, lost data, and the data that may be in flight.
//!
//! Offsets count the subflow's sequence space from its initial number: 0 is the SYN, 1 the first byte. One
//! acknowledgment goes through the steps of [`Sender::on_ack`] in Linux's order; loss detection and repair are in
//! `recovery.rs`, the pace and bursts in `sender/pacing.rs`, windows that are not used in `sender/usage.rs`, and
//! segments that are withheld to find peers that lie in `sender/withheld.rs`.

mod pacing;
mod recovery;
mod segment_size;
mod usage;
mod withheld;

use super::rate::RateSampler;
use super::rtt::{RttEstimator, timestamp};
use super::scoreboard::{Answer, Delivery, Record, Scoreboard};
use crate::congestion::{Ack, CongestionControl, Siblings, Window};
use crate::view::{Arrivals, Delivered, Pace, Packets, Phase};
use anabranch_events::{LossCause, Note, SendKind};
use anabranch_units::{Duration, Instant};
use pacing::{Burst, BurstSize, Deferral, PacedBurst};
use recovery::{Duplicate, Prr, Rack, TailProbe, Undo};
pub(crate) use recovery::{TICK, TimerOutcome};
use segment_size::SegmentSize;
pub(crate) use segment_size::{Attempt, least_mtu};
use usage::WindowUsage;
pub(crate) use withheld::Withholding;

/// The contents of an acknowledgment, in offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledgment<'a> {
    /// Everything before this arrived.
    pub acked: u64,
    /// Runs that arrived beyond it.
    pub blocks: &'a [(u64, u64)],
    /// A run that arrived twice (RFC 2883).
    pub duplicate: Option<(u64, u64)>,
    /// The echoed timestamp, in milliseconds of this end's clock.
    pub echo: Option<u32>,
    /// The segment carried data, or changed the window: it is not a duplicate acknowledgment.
    pub more_than_ack: bool,
}

/// Effect of an acknowledgment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckOutcome {
    /// The first unacknowledged offset moved.
    pub advanced: bool,
    /// The window was cut.
    pub reduced: Option<Reduction>,
    /// A cut was taken back.
    pub undone: bool,
    /// A small segment got through where a large one did not: that may take a few round trips to find out about.
    pub suspicious: bool,
    /// Segments have another size from here on.
    pub size: Option<SizeChange>,
    /// The peer acknowledged what has not left the host. Nothing else was learned from it.
    pub false_claim: bool,
}

/// The room that full segments have from here on, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SizeChange {
    /// A router reported what the next link takes.
    Reported(u32),
    /// Larger packets are lost without a report.
    BlackHole(u32),
    /// A larger packet arrived.
    Tried(u32),
}

/// A cut of the window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduction {
    pub cause: LossCause,
    pub from: Packets,
    pub to: Packets,
}

/// The purpose of a subflow's timer, of which there is one at a time (Linux's `icsk_pending`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerKind {
    /// Everything in flight counts as lost (RFC 6298).
    Timeout,
    /// The tail may be lost (RFC 8985 section 7).
    Probe,
    /// Packets that others overtook will be lost (RFC 8985 section 6.2 step 5).
    Reordering,
}

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(super) board: Scoreboard,
    pub(super) rtt: RttEstimator,
    pub(super) rate: RateSampler,
    pub(super) window: Window,
    pub(super) control: Box<dyn CongestionControl>,
    pub(super) phase: Phase,
    /// First unacknowledged offset.
    pub(super) acked: u64,
    /// Next offset to send.
    pub(super) next: u64,
    /// The episode of recovery ends when this is acknowledged.
    pub(super) high_mark: u64,
    pub(super) rack: Rack,
    pub(super) prr: Prr,
    pub(super) undo: Option<Undo>,
    pub(super) probe: TailProbe,
    /// Whether the last timeout may have been spurious (RFC 5682).
    pub(super) doubt_timeout: bool,
    /// Timeouts in a row without progress.
    pub(super) timeouts: u32,
    pub(super) timer: Option<(TimerKind, Instant)>,
    usage: WindowUsage,
    last_sent_at: Instant,
    /// When the window last decayed because nothing was sent.
    decayed_at: Instant,
    /// The path answered then after an outage, and no later packet was measured since.
    pub(super) revived_at: Option<Instant>,
    pub(super) options: SenderOptions,
    /// Room in the window was left free for a burst.
    deferring: bool,
    deferral: Deferral,
    burst: Option<Burst>,
    burst_size: BurstSize,
    /// With pacing: what is left of the burst that left last.
    paced: PacedBurst,
    acked_bytes: u64,
    acked_since_loss: u64,
    acked_between_losses: u64,
    /// Linux's pacing rate; updated by acknowledgments.
    pace: Pace,
    /// The largest payload sent: the size of a full packet.
    pub(super) largest: u32,
    pub(super) size: SegmentSize,
    pub(crate) withholding: Withholding,
    /// Packets that were sent again, and packets reported by the peer as arrived again.
    pub(super) retransmissions: u64,
    pub(super) duplicates: u64,
}

/// Linux behaviours of the sender that can be switched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SenderOptions {
    /// Packets are sent at Linux's pacing rate even if the control does not ask for it.
    pub paces: bool,
    /// After a reduction, windows are whole numbers of packets.
    pub whole_windows: bool,
    /// New data waits for room for a burst of segmentation offload.
    pub defers_for_burst: bool,
    /// The packets of a burst share one of Linux's buffers, whose memory decides when the subflow takes more data.
    pub counts_buffers: bool,
    /// Links may take smaller packets than the host knows.
    pub discovers_mtu: bool,
    /// The congestion control does not know where the subflow lacked data. In Linux it does over plain TCP, which notes
    /// it where it takes data from the application (`tcp_rate_check_app_limited`), and not over Multipath TCP.
    pub hides_app_limited: bool,
}

impl Default for SenderOptions {
    fn default() -> Self {
        SenderOptions {
            paces: false,
            whole_windows: true,
            defers_for_burst: true,
            counts_buffers: false,
            discovers_mtu: false,
            hides_app_limited: false,
        }
    }
}

impl Sender {
    pub fn new(control: Box<dyn CongestionControl>, initial_window: u32) -> Self {
        Sender {
            board: Scoreboard::default(),
            rtt: RttEstimator::default(),
            rate: RateSampler::default(),
            window: Window::initial(initial_window),
            control,
            phase: Phase::Open,
            acked: 0,
            next: 0,
            high_mark: 0,
            rack: Rack::default(),
            prr: Prr::default(),
            undo: None,
            probe: TailProbe::default(),
            doubt_timeout: false,
            timeouts: 0,
            timer: None,
            usage: WindowUsage::default(),
            last_sent_at: Instant::ZERO,
            decayed_at: Instant::ZERO,
            revived_at: None,
            options: SenderOptions::default(),
            deferring: false,
            deferral: Deferral::default(),
            burst: None,
            burst_size: BurstSize::default(),
            paced: PacedBurst::default(),
            acked_bytes: 0,
            acked_since_loss: 0,
            acked_between_losses: 0,
            pace: Pace::default(),
            largest: 0,
            size: SegmentSize::default(),
            withholding: Withholding::default(),
            retransmissions: 0,
            duplicates: 0,
        }
    }

    /// The handshake is complete: offset 1, the first byte, is next on both ends of the window.
    pub fn on_established(&mut self, now: Instant, handshake_rtt: Option<Duration>) {
        self.acked = 1;
        self.next = 1;
        self.timer = None;
        self.timeouts = 0;
        self.rtt.reset_backoff();
        self.usage.checked_at = now;
        self.last_sent_at = now;
        if let Some(sample) = handshake_rtt {
            self.rtt.update(sample, 1, 1);
            self.rtt.update_min(now, sample);
            self.update_pace();
        }
    }

    /// Sets the sender's behaviours.
    pub fn configure(&mut self, options: SenderOptions) {
        self.options = options;
        self.rate.hides_app_limited = options.hides_app_limited;
    }

    /// Both ends' limits of sizes are known.
    pub fn begin_sizes(&mut self, ip_header: u32, room: u32) {
        self.size.begin(ip_header, room, self.options.discovers_mtu);
    }

    /// The size of segments.
    #[inline]
    pub fn size(&self) -> &SegmentSize {
        &self.size
    }

    /// The control's counters.
    pub fn control_counters(&self) -> &[(&'static str, u64)] {
        self.control.counters()
    }

    /// Passes on the control's notes.
    pub fn take_notes(&mut self, take: &mut dyn FnMut(Note)) {
        self.control.take_notes(take);
    }

    /// Passes the round trip of the handshake to the control.
    pub fn start_control(&mut self, now: Instant, siblings: Siblings<'_>) {
        self.control.on_established(now, &mut self.window, siblings);
    }

    /// Whether an acknowledgment of everything before `acked`, without SACK, finds nothing to do but
    /// [`Sender::update_pace`]: it acknowledges nothing new, nothing is in flight, and no repair waits for an answer.
    pub fn is_quiet(&self, acked: u64) -> bool {
        acked <= self.acked && self.phase == Phase::Open && self.board.is_empty() && self.doubts_nothing()
    }

    /// An acknowledgment that [finds nothing to do](Sender::is_quiet).
    pub fn on_quiet_ack(&mut self) {
        if self.rtt.has_sample() {
            self.update_pace();
        }
    }

    /// Whether an acknowledgment of everything before `acked`, without SACK, is plain: it delivers at least a packet,
    /// nothing is being repaired or doubted, no missing packet was marked, and the path was measured since its last
    /// outage.
    pub fn is_plain(&self, acked: u64) -> bool {
        let delivers = self.board.front().is_some_and(|front| front.end() <= acked && self.rack.is_before(front));
        let whole = !self.size.watches() && !self.withholding.is_outstanding();
        let settled = self.doubts_nothing() && whole && self.revived_at.is_none();
        let calm = self.phase == Phase::Open && settled;
        delivers && acked <= self.next && calm && self.board.is_unmarked()
    }

    /// [`Sender::on_ack`] with a [plain](Sender::is_plain) acknowledgment, in fewer steps.
    pub fn on_plain_ack(&mut self, now: Instant, acked: u64, siblings: Siblings<'_>) {
        let prior_in_flight = self.board.packets_out();
        let Some(delivery) = self.board.acknowledge_unmarked(acked) else { return };
        self.acked = acked;
        self.timeouts = 0;
        self.count_acked(delivery.bytes);
        let latest = now.since(delivery.last.sent_at);
        self.rtt.update(now.since(delivery.first_sent_at), acked, self.next);
        self.rtt.update_min(now, latest);
        self.rack.advance_in_order(now, &delivery.last);
        let (packets, bytes, marked) = (delivery.packets, delivery.bytes, self.board.marked());
        let rate = self.rate.on_delivered(now, packets, bytes, Some(delivery.last), self.rtt.min(), marked);
        self.rack.adapt(&rate, self.rate.delivered());
        let ack = Ack {
            now,
            delivered: delivery.packets,
            total_delivered: self.rate.delivered(),
            rtt: Some(latest),
            may_grow: self.window_limited(),
            prior_in_flight,
            in_flight: self.board.packets_out(),
            lost: 0,
            acked_offset: acked,
            sent_offset: self.next,
            rate,
        };
        self.control.on_ack(&ack, &mut self.window, siblings);
        self.update_pace();
        self.arm_timer(now);
    }

    /// One acknowledgment, in Linux's order: marks, round trip, loss detection, rate, window, timers.
    pub fn on_ack(&mut self, now: Instant, ack: &Acknowledgment<'_>, siblings: Siblings<'_>) -> AckOutcome {
        if ack.acked > self.next {
            return AckOutcome::default();
        }
        if self.withholding.is_outstanding() && self.finds_claim(ack) {
            return AckOutcome { false_claim: true, ..AckOutcome::default() };
        }
        let prior_in_flight = self.board.in_flight();
        let prior_marked = self.board.marked();
        let advanced = ack.acked > self.acked;
        let mut delivery = self.board.delivery(Answer { at: now, min_rtt: self.rtt.min(), echo: ack.echo });
        for &(start, end) in ack.blocks {
            if start >= self.acked && end <= self.next && start < end {
                self.board.selectively_acknowledge(start, end, self.high_mark, &mut delivery);
            }
        }
        let duplicate = ack.duplicate.map(|run| self.on_duplicate_arrival(run));
        if advanced {
            self.board.acknowledge(ack.acked, self.high_mark, &mut delivery);
            self.acked = ack.acked;
            self.timeouts = 0;
        }
        if self.withholding.is_outstanding() {
            self.release_missed(now);
        }
        self.count_acked(delivery.bytes);
        let sample = self.measure(now, advanced, &delivery, ack);
        self.rack.advance(now, &delivery);

        let mut outcome = AckOutcome { advanced, ..AckOutcome::default() };
        let pure_duplicate = !advanced && delivery.packets == 0 && !ack.more_than_ack;
        let probe_was_needless = duplicate == Some(Duplicate::OfProbe) || pure_duplicate;
        self.on_probe_ack(now, ack.acked, probe_was_needless, siblings, &mut outcome);
        if self.size.watches() {
            self.learn_sizes(now, self.acked, &delivery, &mut outcome);
        }
        let awaits_reordered = self.repair(now, ack, advanced, &delivery, siblings, &mut outcome);

        let (packets, bytes, marked) = (delivery.packets, delivery.payload, self.board.marked());
        let rate = self.rate.on_delivered(now, packets, bytes, delivery.newest, self.rtt.min(), marked);
        if self.revived_at.is_some() {
            // The sample has the outage in it.
            self.rate.forget_rates(now);
        }
        self.rack.adapt(&rate, self.rate.delivered());
        let lost = (self.board.marked() - prior_marked) as u32;
        self.move_window(now, advanced, prior_in_flight, lost, sample, &delivery, rate, siblings);
        if self.rtt.has_sample() {
            self.update_pace();
        }
        if !awaits_reordered && (advanced || self.front_outlived(&delivery)) {
            self.arm_timer(now);
        }
        outcome
    }

    /// Whether selectively acknowledged data was sent before the last transmission of the first missing packet. Only
    /// then do these acknowledgments show that the network still works on that packet, so that the timeout may be
    /// restarted.
    fn front_outlived(&self, delivery: &Delivery) -> bool {
        delivery.sacked.zip(self.board.front()).is_some_and(|((first, _), front)| first < front.sent_at)
    }

    /// How many packets a run of bytes is, roughly.
    pub(super) fn packets_of(&self, bytes: u64) -> u32 {
        let full = u64::from(self.largest.max(1));
        u32::try_from(bytes.div_ceil(full)).unwrap_or(u32::MAX).max(1)
    }

    fn count_acked(&mut self, bytes: u64) {
        self.acked_bytes += bytes;
        self.acked_since_loss += bytes;
    }

    /// Measures the round trip and returns the sample for the congestion control. The estimator takes the earliest
    /// packet of the acknowledgment, so that delayed acknowledgments count; the control takes the latest.
    fn measure(
        &mut self,
        now: Instant,
        advanced: bool,
        delivery: &Delivery,
        ack: &Acknowledgment<'_>,
    ) -> Option<Duration> {
        let cumulative = if delivery.retransmitted_acked { None } else { delivery.acked };
        let (first, last) = cumulative.or(delivery.sacked).map(|(a, b)| (Some(a), Some(b))).unwrap_or_default();
        let by_clock = || {
            // The echo answers the segment that moved the edge; otherwise it may be arbitrarily old (RFC 7323 section
            // 4.1).
            let echo = ack.echo.filter(|_| advanced)?;
            // The clock ticks in milliseconds; a difference of zero means only that it was below one.
            let elapsed = timestamp(now).wrapping_sub(echo);
            (elapsed < u32::MAX / 2).then(|| Duration::from_millis(u64::from(elapsed.max(1))))
        };
        let latest = delivery.sacked.map(|(_, b)| b).or(last).map(|at| now.since(at));
        if let Some(sample) = first.map(|at| now.since(at)).or_else(by_clock) {
            self.forget_outage(now, sample);
            self.rtt.update(sample, self.acked, self.next);
            self.rtt.update_min(now, latest.unwrap_or(sample));
        }
        latest
    }

    /// The path answers after an outage. Until a packet that is sent from now on is measured, its rate is unknown and
    /// its round trip stays; then both are measured anew (RFC 6298 section 5: round trips of before may be bogus).
    pub fn forget_path(&mut self, now: Instant) {
        self.revived_at = Some(now);
        self.rate.forget_rates(now);
    }

    /// A round trip was measured: the first one that began after an outage takes the place of all that was known.
    fn forget_outage(&mut self, now: Instant, sample: Duration) {
        if self.revived_at.is_some_and(|revived_at| sample <= now.since(revived_at)) {
            self.revived_at = None;
            self.rtt.restart();
        }
    }

    /// Proportional rate reduction during recovery, else the congestion control.
    #[allow(clippy::too_many_arguments)]
    fn move_window(
        &mut self,
        now: Instant,
        advanced: bool,
        prior_in_flight: u32,
        lost: u32,
        rtt: Option<Duration>,
        delivery: &Delivery,
        rate: crate::congestion::RateSample,
        siblings: Siblings<'_>,
    ) {
        let recovering = self.phase == Phase::Recovery;
        let tolerates_holes = self.rack.reordering_seen() || self.withholding.delays(self.acked);
        let forward = advanced || (tolerates_holes && delivery.any_sacked);
        let limited = self.window_limited();
        let ack = Ack {
            now,
            delivered: delivery.packets,
            total_delivered: self.rate.delivered(),
            rtt,
            may_grow: !recovering && forward && limited && delivery.packets > 0,
            prior_in_flight,
            in_flight: self.board.in_flight(),
            lost,
            acked_offset: self.acked,
            sent_offset: self.next,
            rate,
        };
        if delivery.packets > 0 {
            self.control.on_ack(&ack, &mut self.window, siblings);
        }
        if recovering && !self.control.governs_itself() {
            self.reduce_proportionally(delivery.packets, lost, advanced);
        }
    }

    /// Whether one more packet may be sent.
    pub fn has_room(&self) -> bool {
        self.board.in_flight() < self.window.cwnd.floor()
    }

    /// A packet with new data is sent. Returns its offset.
    pub fn on_sent(&mut self, now: Instant, stream_offset: u64, len: u32, fin: bool) -> u64 {
        let idle = self.board.is_empty();
        if idle && self.next > 1 {
            let app_limited = !self.options.hides_app_limited;
            self.control.on_restart(now, now.since(self.last_sent_at), app_limited, &mut self.window);
        }
        let state = self.rate.on_sent(now, idle, self.board.in_flight(), self.board.marked());
        let start = self.next;
        let record = Record::new(start, stream_offset, len, fin, now, state);
        self.next = record.end();
        self.board.push(record);
        if let Some(burst) = &mut self.burst {
            let goes_on = burst.take_one(now);
            if self.options.counts_buffers && goes_on && !idle {
                self.board.share_buffer();
            }
        }
        if self.size.watches() {
            self.size.note_sent(start, self.next);
        }
        self.after_transmission(now, len);
        if self.probe.is_due() {
            self.probe.on_new_data(self.next);
        } else if !self.arm_probe(now, false) && (idle || self.runs(TimerKind::Probe)) {
            self.restore_timeout(now);
        }
        start
    }

    /// The packet at `position` is sent again.
    pub fn on_retransmitted(&mut self, now: Instant, position: u64, len: u32) {
        let state = self.rate.on_sent(now, false, self.board.in_flight(), self.board.marked());
        self.retransmissions += 1;
        if let Some(record) = self.board.get(position).filter(|_| self.withholding.is_outstanding()) {
            self.withholding.on_sent(record.start);
        }
        let repairs = self.board.mark_retransmitted(position, now, state);
        if let Some(undo) = self.undo.as_mut().filter(|_| repairs) {
            undo.on_retransmitted(now);
        }
        self.after_transmission(now, len);
        // The timeout is that of the first packet. It is set when the reordering timer has fired, if that runs.
        if repairs && position == self.board.first_position() && !self.runs(TimerKind::Reordering) {
            self.arm_timeout(now);
        }
    }

    pub(super) fn after_transmission(&mut self, now: Instant, len: u32) {
        self.last_sent_at = now;
        self.largest = self.largest.max(len);
        if self.phase == Phase::Recovery {
            self.prr.sent += 1;
        }
        let own = || self.options.paces.then(|| self.pace().rate(self.largest)).filter(|_| self.rtt.has_sample());
        if let Some(rate) = self.window.pacing_rate.or_else(own) {
            self.take_pace(now, rate, len);
        }
    }

    /// Whether there may be a packet to retransmit when the window has room, or a pace that keeps packets back.
    pub fn repairs_or_is_paced(&self) -> bool {
        let repairs = self.probe.is_due() || self.board.lost() > 0 || self.exceeds_window();
        repairs || self.options.paces || self.window.pacing_rate.is_some()
    }

    /// Whether there is data to send whatever the window and the pace are: what shows the size of packets that pass, or
    /// was withheld.
    pub fn exceeds_window(&self) -> bool {
        self.size.wants_to_send() || self.withholding.is_due()
    }

    /// Whether there may be a packet to retransmit: a probe is due, or a packet is lost and the window has room, or its
    /// size matters.
    pub fn may_retransmit(&self) -> bool {
        self.probe.is_due() || (self.board.lost() > 0 && self.has_room()) || self.exceeds_window()
    }

    /// Whether a tail-loss probe is to be sent.
    pub fn probe_is_due(&self) -> bool {
        self.probe.is_due()
    }

    /// The next packet to retransmit, if the window has room for it.
    pub fn next_retransmission(&mut self) -> Option<(u64, Record, SendKind)> {
        if self.probe.take_due()
            && let Some((position, record)) = self.board.last_missing()
        {
            return Some((position, record, SendKind::TailLossProbe));
        }
        let lost = if self.board.lost() > 0 && self.has_room() { self.board.next_lost() } else { None };
        let next = lost.or_else(|| if self.size.wants_to_send() { self.next_resent() } else { None })?;
        Some((next.0, next.1, SendKind::Retransmission))
    }

    /// A loss begins: for OLIA, the bytes acknowledged since the last one become the last interval.
    pub(super) fn note_loss_interval(&mut self) {
        self.acked_between_losses = self.acked_since_loss;
        self.acked_since_loss = 0;
    }

    /// Halves the window because this subflow blocks a faster one (legacy Multipath TCP's penalisation).
    pub fn penalise(&mut self) -> Reduction {
        let from = self.window.cwnd;
        self.window.cwnd = Packets::from_f64((from.as_f64() / 2.0).max(1.0));
        if !self.window.in_slow_start() && self.window.ssthresh != Packets::INFINITE {
            let halved = self.window.ssthresh.as_f64() / 2.0;
            self.window.set_ssthresh(halved);
        }
        // The path could carry more than the cut window lets out.
        self.rate.on_app_limited(self.board.in_flight());
        Reduction { cause: LossCause::Penalty, from, to: self.window.ssthresh }
    }

    pub fn acked(&self) -> u64 {
        self.acked
    }

    pub fn next(&self) -> u64 {
        self.next
    }

    pub fn window(&self) -> &Window {
        &self.window
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    pub fn board(&self) -> &Scoreboard {
        &self.board
    }

    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// The latest delivery rate that shows the path.
    pub fn arrivals(&self) -> Arrivals {
        self.rate.arrivals()
    }

    pub fn delivery(&self) -> Delivered {
        self.rate.latest()
    }

    pub fn acked_bytes(&self) -> u64 {
        self.acked_bytes
    }

    /// OLIA's l2 and l1.
    pub fn loss_intervals(&self) -> (u64, u64) {
        (self.acked_since_loss, self.acked_between_losses)
    }

    /// Timeouts in a row without progress.
    pub fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// When to call [`Sender::on_timer`]; `None` if no timer runs.
    pub fn deadline(&self) -> Option<Instant> {
        self.timer.map(|(_, at)| at)
    }
}
