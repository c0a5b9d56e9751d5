//! Loss detection and repair: RACK-TLP (RFC 8985), proportional rate reduction (RFC 6937), timeouts (RFC 6298), and
//! undoing unnecessary reductions (Eifel by timestamps, RFC 3522 and 4015; duplicate SACK, RFC 3708; F-RTO, RFC 5682).

use super::{AckOutcome, Acknowledgment, Reduction, Sender, TimerKind};
use crate::congestion::{RateSample, Siblings, Window};
use crate::subflow::INITIAL_WINDOW;
use crate::subflow::rtt::timestamp;
use crate::subflow::scoreboard::{Delivery, Newest, Record};
use crate::view::{Packets, Phase};
use anabranch_events::LossCause;
use anabranch_units::{Duration, Instant};

/// Duplicate acknowledgments that show a loss as long as no reordering was seen (RFC 5681 section 3.2).
const DUPLICATE_THRESHOLD: u32 = 3;
/// Recoveries for which a reordering window widened by a duplicate SACK stays wide (RFC 8985 section 6.2).
const WINDOW_PERSISTENCE: u32 = 16;
/// The reordering window grows by quarters of the least round trip; Linux counts them in 8 bits.
const MAX_WINDOW_STEPS: u32 = 255;
/// Added to a probe's timeout for the delayed acknowledgment of a lone packet (Linux: the minimal timeout).
const LONE_PACKET_ALLOWANCE: Duration = Duration::from_millis(200);
/// The timeout of a packet that has waited longer already is due this much later, not at once (Linux's
/// `tcp_rearm_rto`).
const LEAST_TIMEOUT: Duration = Duration::from_micros(1);
/// How much later than set a timer fires in the mean: one tick of Linux where there are 250 a second, because its time
/// and its end are rounded up to whole ticks.
pub(crate) const TICK: Duration = Duration::from_millis(4);
/// Added to the timers of RACK and of probes: Linux's `TCP_TIMEOUT_MIN_US`, and a tick.
const TIMER_ALLOWANCE: Duration = Duration::from_nanos(2_000_000 + TICK.as_nanos());

/// Time-based loss detection: a packet is lost if one that was sent later, by more than the reordering window, has
/// arrived.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// When the latest of the delivered packets was sent, and its end.
    sent_at: Instant,
    end: u64,
    /// The round trip of the packet whose delivery was noted last, which may be an older one.
    rtt: Duration,
    advanced: bool,
    reordering_seen: bool,
    window_steps: u32,
    persistence: u32,
    duplicate_seen: bool,
    adapted_at: u64,
}

impl Default for Rack {
    fn default() -> Self {
        Rack {
            sent_at: Instant::ZERO,
            end: 0,
            rtt: Duration::ZERO,
            advanced: false,
            reordering_seen: false,
            window_steps: 1,
            persistence: 0,
            duplicate_seen: false,
            adapted_at: 0,
        }
    }
}

impl Rack {
    /// Whether the packet was sent after all that are known to have arrived.
    pub fn is_before(&self, record: &Record) -> bool {
        (self.sent_at, self.end) < (record.sent_at, record.end())
    }

    /// [`Rack::advance`] and a search for losses where packets that were sent once arrive in order, the `last` of them
    /// [after all others](Self::is_before), in fewer steps: nothing that is missing was sent before it.
    pub fn advance_in_order(&mut self, now: Instant, last: &Newest) {
        self.advanced = true;
        self.rtt = now.since(last.sent_at);
        (self.sent_at, self.end) = (last.sent_at, last.end);
    }

    /// Updates with the delivery of an acknowledgment.
    pub fn advance(&mut self, now: Instant, delivery: &Delivery) {
        self.reordering_seen |= delivery.reordered;
        let Some((sent_at, end)) = delivery.arrived else { return };
        self.advanced = true;
        // Also that of a packet which was sent earlier (RFC 8985 section 6.2 step 2, Linux's `tcp_rack_advance`): where
        // an acknowledgment moves ahead and reports the first packet behind a hole, the next one declares the loss.
        self.rtt = now.since(delivery.noted_last.1);
        if (sent_at, end) > (self.sent_at, self.end) {
            (self.sent_at, self.end) = (sent_at, end);
        }
    }

    /// Widens the reordering window once per round in which a duplicate SACK showed a needless retransmission.
    pub fn adapt(&mut self, rate: &RateSample, delivered: u64) {
        if rate.prior_delivered == 0 {
            return;
        }
        if rate.prior_delivered < self.adapted_at {
            self.duplicate_seen = false;
        }
        if self.duplicate_seen {
            self.duplicate_seen = false;
            self.window_steps = (self.window_steps + 1).min(MAX_WINDOW_STEPS);
            self.persistence = WINDOW_PERSISTENCE;
            self.adapted_at = delivered;
        } else if self.persistence == 0 {
            self.window_steps = 1;
        }
    }

    pub fn reordering_seen(&self) -> bool {
        self.reordering_seen
    }

    fn reordering_window(&self, recovering: bool, sacked: u32, min_rtt: Duration, srtt: Duration) -> Duration {
        let enough = recovering || sacked >= DUPLICATE_THRESHOLD;
        if (!self.reordering_seen && enough) || min_rtt == Duration::MAX {
            return Duration::ZERO;
        }
        (min_rtt / 4 * u64::from(self.window_steps)).min(srtt)
    }
}

/// Proportional rate reduction: spreads the cut of the window over a round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prr {
    /// The window when recovery began.
    prior: u32,
    delivered: u32,
    /// Packets sent since, retransmitted or new.
    pub sent: u32,
}

/// State for undoing a reduction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Undo {
    pub(super) window: Window,
    /// The first unacknowledged offset when the episode began: duplicates before it are ignored.
    since: u64,
    /// When the first retransmission of the episode was sent.
    first_retransmission: Option<Instant>,
    /// Retransmissions that no duplicate SACK showed to be needless; `None` before the first retransmission.
    needed: Option<u32>,
}

impl Undo {
    pub fn on_retransmitted(&mut self, now: Instant) {
        self.first_retransmission.get_or_insert(now);
        self.needed = Some(self.needed.unwrap_or(0) + 1);
    }

    /// Whether every retransmission turned out to be needless.
    fn all_needless(&self) -> bool {
        self.needed == Some(0)
    }

    /// Whether the missing data was late and not lost: the peer answers an original transmission, or the data arrived
    /// without a retransmission.
    fn delayed(&self, echo: Option<u32>) -> bool {
        let Some(first_retransmission) = self.first_retransmission else { return true };
        // Strictly before: within one tick the two cannot be told apart.
        echo.is_some_and(|echo| (echo.wrapping_sub(timestamp(first_retransmission)) as i32) < 0)
    }
}

/// The packet that arrived twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duplicate {
    /// The tail-loss probe's packet.
    OfProbe,
    /// Any other.
    Other,
}

/// Tail-loss probe: when acknowledgments stop, one packet is sent before the timeout to trigger an acknowledgment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TailProbe {
    /// The probe is sent as soon as possible.
    due: bool,
    /// The episode ends when this offset is acknowledged.
    high_mark: Option<u64>,
    /// The probe was new data, whose acknowledgment proves no loss.
    of_new_data: bool,
}

impl TailProbe {
    pub fn is_due(&self) -> bool {
        self.due
    }

    pub fn take_due(&mut self) -> bool {
        std::mem::take(&mut self.due)
    }

    /// The probe is sent: a packet with new data, which ends here.
    pub fn on_new_data(&mut self, end: u64) {
        *self = TailProbe { due: false, high_mark: Some(end), of_new_data: true };
    }
}

impl Sender {
    /// No probe waits for an answer, and no reduction to be undone.
    pub(super) fn doubts_nothing(&self) -> bool {
        self.probe.high_mark.is_none() && !self.undo.is_some_and(|undo| undo.all_needless())
    }

    /// A run arrived twice (RFC 2883). If it was retransmitted in this episode, the retransmission was needless. RACK
    /// waits longer afterwards if reordering may have misled it; this does not apply to probes, which follow a timer.
    pub(super) fn on_duplicate_arrival(&mut self, (start, end): (u64, u64)) -> Duplicate {
        let of_probe = self.probe.high_mark == Some(end);
        let packets = self.packets_of(end.saturating_sub(start));
        self.duplicates += u64::from(packets);
        if self.duplicates > self.retransmissions {
            // The network duplicated the packet.
            return Duplicate::Other;
        }
        self.rack.duplicate_seen |= self.rack.reordering_seen && !of_probe;
        if let Some(undo) = self.undo.as_mut().filter(|undo| end > undo.since) {
            undo.needed = undo.needed.map(|needed| needed.saturating_sub(packets));
        }
        if of_probe { Duplicate::OfProbe } else { Duplicate::Other }
    }

    /// The state machine of recovery (Linux's `tcp_fastretrans_alert`). Returns whether the reordering timer waits for
    /// packets now.
    pub(super) fn repair(
        &mut self,
        now: Instant,
        ack: &Acknowledgment<'_>,
        advanced: bool,
        delivery: &Delivery,
        siblings: Siblings<'_>,
        outcome: &mut AckOutcome,
    ) -> bool {
        let complete = self.acked >= self.high_mark;
        match self.phase {
            Phase::Recovery if complete => self.end_recovery(now, ack.echo, outcome),
            Phase::Recovery => self.try_undo_partially(now, ack.echo, advanced, outcome),
            Phase::Loss => {
                if !self.try_undo_timeout(now, ack.echo, advanced, delivery, outcome) && complete {
                    self.phase = Phase::Open;
                    self.control.on_recovery_end(now, &mut self.window);
                }
            }
            Phase::Open | Phase::Disorder => {}
        }
        if self.phase != Phase::Loss && self.undo.is_some_and(|undo| undo.all_needless()) {
            // Also if that turns out after the end of the recovery.
            self.undo_reduction(now, outcome);
        }
        let retransmissions = self.board.retransmitted();
        let undecided_until = self.detect_losses(now);
        if let Some(at) = undecided_until {
            self.timer = Some((TimerKind::Reordering, at));
        }
        let lost_again = self.board.retransmitted() < retransmissions;
        match self.phase {
            Phase::Open | Phase::Disorder if self.board.lost() > 0 => self.enter_recovery(now, siblings, outcome),
            Phase::Open | Phase::Disorder => {
                let retransmitted = self.board.front().is_some_and(Record::ever_retransmitted);
                let doubtful = self.board.sacked() > 0 || retransmitted;
                self.phase = if doubtful { Phase::Disorder } else { Phase::Open };
            }
            // A packet that a timeout retransmitted is lost as well: this is a second congestion episode.
            Phase::Loss if lost_again => self.enter_recovery(now, siblings, outcome),
            Phase::Loss | Phase::Recovery => {}
        }
        undecided_until.is_some()
    }

    /// Marks packets that RACK considers lost. Returns when the undecided ones will be, if there are any.
    fn detect_losses(&mut self, now: Instant) -> Option<Instant> {
        if !self.rack.advanced {
            return None;
        }
        let recovering = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let window = self.rack.reordering_window(recovering, self.board.sacked(), self.rtt.min(), self.rtt.srtt());
        let lost_after = self.rack.rtt + window;
        while let Some((position, record)) = self.board.oldest_transmission() {
            if (record.sent_at, record.end()) >= (self.rack.sent_at, self.rack.end) {
                break;
            }
            if record.sent_at + lost_after > now {
                // One timer for all of them (RFC 8985 section 6.2 step 5).
                let latest = self.board.latest_transmission_before((self.rack.sent_at, self.rack.end));
                return latest.map(|sent_at| sent_at + lost_after + TIMER_ALLOWANCE);
            }
            if self.is_try(record.start) {
                self.fail_try(now, None);
            } else if self.withholding.holds(record.start) && self.release_withheld(now) {
                // It cannot have arrived; now it can.
            } else {
                self.board.mark_lost(position);
            }
        }
        None
    }

    fn enter_recovery(&mut self, now: Instant, siblings: Siblings<'_>, outcome: &mut AckOutcome) {
        self.high_mark = self.next;
        let reduction = self.reduce(now, LossCause::FastRetransmit, siblings);
        self.probe.high_mark = None;
        self.prr = Prr { prior: reduction.from.floor(), delivered: 0, sent: 0 };
        self.phase = Phase::Recovery;
        outcome.reduced = Some(reduction);
    }

    /// Asks the control for the new threshold and stores the state for an undo.
    fn reduce(&mut self, now: Instant, cause: LossCause, siblings: Siblings<'_>) -> Reduction {
        let prior = Window { ssthresh: self.current_ssthresh(), ..self.window };
        // Retransmissions in flight, that of a probe included, may yet turn out to be needless.
        let under_way = self.board.retransmitted() + u32::from(self.probe.high_mark.is_some());
        let needed = Some(under_way).filter(|n| *n > 0);
        self.undo = Some(Undo { window: prior, since: self.acked, first_retransmission: None, needed });
        self.size.note_reduction(prior);
        self.note_loss_interval();
        let whole = self.options.whole_windows && !self.control.governs_itself();
        if whole {
            self.window.cwnd = Packets::whole(self.window.cwnd.floor());
        }
        self.control.on_congestion(now, cause, &mut self.window, siblings);
        if whole {
            self.window.ssthresh = Packets::whole(self.window.ssthresh.floor());
        }
        Reduction { cause, from: prior.cwnd, to: self.window.ssthresh }
    }

    /// RFC 6937 with Linux's bound: while more is in flight than the threshold, send in proportion to what is
    /// delivered; below it, grow back to the threshold as fast as slow start would, but only if no further loss shows.
    pub(super) fn reduce_proportionally(&mut self, newly_delivered: u32, newly_lost: u32, advanced: bool) {
        if newly_delivered == 0 || self.prr.prior == 0 {
            return;
        }
        self.prr.delivered += newly_delivered;
        let in_flight = self.board.in_flight();
        let target = self.window.ssthresh.floor();
        let allowed = if in_flight > target {
            let share = u64::from(target) * u64::from(self.prr.delivered);
            let quota = share.div_ceil(u64::from(self.prr.prior)) as u32;
            quota.saturating_sub(self.prr.sent)
        } else {
            let bound = self.prr.delivered.saturating_sub(self.prr.sent).max(newly_delivered);
            let bonus = u32::from(advanced && newly_lost == 0);
            (target - in_flight).min(bound + bonus)
        };
        // The first retransmission is sent at once.
        let allowed = allowed.max(u32::from(self.prr.sent == 0));
        self.window.cwnd = Packets::whole((in_flight + allowed).max(1));
    }

    fn end_recovery(&mut self, now: Instant, echo: Option<u32>, outcome: &mut AckOutcome) {
        self.phase = Phase::Open;
        if self.undo.is_some_and(|undo| undo.all_needless() || undo.delayed(echo)) {
            self.undo_reduction(now, outcome);
            return;
        }
        self.rack.persistence = self.rack.persistence.saturating_sub(1);
        if !self.control.governs_itself() {
            self.window.cwnd = self.window.ssthresh;
        }
        self.control.on_recovery_end(now, &mut self.window);
    }

    /// A partial acknowledgment answers an original transmission: if no retransmission in flight can contradict, the
    /// whole episode was needless.
    fn try_undo_partially(&mut self, now: Instant, echo: Option<u32>, advanced: bool, outcome: &mut AckOutcome) {
        if advanced && self.board.retransmitted() == 0 && self.undo.is_some_and(|undo| undo.delayed(echo)) {
            self.board.unmark_lost();
            self.undo_reduction(now, outcome);
        }
    }

    /// After a timeout: the peer answers an original transmission, so the timeout was spurious.
    fn try_undo_timeout(
        &mut self,
        now: Instant,
        echo: Option<u32>,
        advanced: bool,
        delivery: &Delivery,
        outcome: &mut AckOutcome,
    ) -> bool {
        let proven = self.doubt_timeout && delivery.original_delivered;
        // The first arrival after the timeout decides (RFC 5682 step 2): later arrivals prove nothing.
        self.doubt_timeout &= !advanced;
        let justified = advanced && self.undo.is_some_and(|undo| undo.all_needless() || undo.delayed(echo));
        if proven || justified {
            self.board.unmark_lost();
            self.undo_reduction(now, outcome);
        }
        proven || justified
    }

    /// Undoes the last reduction, which was needless.
    fn undo_reduction(&mut self, now: Instant, outcome: &mut AckOutcome) {
        let Some(undo) = self.undo.take() else { return };
        self.window.cwnd = self.window.cwnd.max(undo.window.cwnd);
        self.window.ssthresh = self.window.ssthresh.max(undo.window.ssthresh);
        self.phase = Phase::Open;
        self.timeouts = 0;
        self.control.on_undo(now, &mut self.window);
        outcome.undone = true;
    }

    /// The losses since the window was `before` had another reason than congestion: the threshold of before holds, and
    /// the window begins as after a pause. `None`: it was not reduced.
    pub(super) fn forgive_losses(&mut self, now: Instant, before: Option<Window>) {
        self.undo = None;
        if let Some(before) = before {
            let initial = Packets::whole(INITIAL_WINDOW);
            self.window.ssthresh = self.window.ssthresh.max(before.ssthresh);
            self.window.cwnd = self.window.cwnd.max(before.cwnd.min(initial));
            self.timeouts = 0;
        }
        // The model of a control that governs itself is that of a few small packets.
        if before.is_some() || self.control.governs_itself() {
            self.control.on_undo(now, &mut self.window);
        }
    }

    /// An acknowledgment after a probe: if more was acknowledged than the probe's own packet, the probe repaired a
    /// loss, unless it was `needless`: the original had arrived as well.
    pub(super) fn on_probe_ack(
        &mut self,
        now: Instant,
        acked: u64,
        needless: bool,
        siblings: Siblings<'_>,
        outcome: &mut AckOutcome,
    ) {
        let Some(high_mark) = self.probe.high_mark.filter(|mark| acked >= *mark) else { return };
        if needless || self.probe.of_new_data {
            self.probe.high_mark = None;
        } else if acked > high_mark {
            self.probe.high_mark = None;
            let reduction = self.reduce(now, LossCause::FastRetransmit, siblings);
            if self.control.governs_itself() {
                // The probe was the whole repair: no recovery follows whose end would tell the control so.
                self.control.on_recovery_end(now, &mut self.window);
            } else {
                self.window.cwnd = self.window.ssthresh;
            }
            self.undo = None;
            outcome.reduced = Some(reduction);
        }
    }

    /// The timer may be due. Returns whether a timeout fired, and what that did to the window.
    pub fn on_timer(&mut self, now: Instant, siblings: Siblings<'_>) -> (TimerOutcome, AckOutcome) {
        let mut outcome = AckOutcome::default();
        match self.timer {
            Some((TimerKind::Reordering, at)) if at <= now => {
                self.on_reordering_timer(now, siblings, &mut outcome);
                (TimerOutcome::None, outcome)
            }
            Some((TimerKind::Probe, at)) if at <= now => {
                self.on_probe_timer(now);
                (TimerOutcome::None, outcome)
            }
            Some((TimerKind::Timeout, at)) if at <= now => {
                if self.waits_for_withheld() && self.release_withheld(now) {
                    return (TimerOutcome::None, outcome);
                }
                let timeout = self.rtt.rto();
                self.on_timeout(now, siblings, &mut outcome);
                (TimerOutcome::Timeout(timeout), outcome)
            }
            _ => (TimerOutcome::None, outcome),
        }
    }

    /// What was overtaken is lost by now.
    fn on_reordering_timer(&mut self, now: Instant, siblings: Siblings<'_>, outcome: &mut AckOutcome) {
        let marked = self.board.marked();
        self.detect_losses(now);
        let lost = (self.board.marked() - marked) as u32;
        if lost > 0 && self.phase != Phase::Recovery {
            self.enter_recovery(now, siblings, outcome);
            // The timer replaces the acknowledgment that would have shown the loss.
            if !self.control.governs_itself() {
                self.reduce_proportionally(1, lost, false);
            }
        }
        if self.runs(TimerKind::Reordering) {
            self.restore_timeout(now);
        }
    }

    /// No acknowledgment came for two round trips. One probe is sent at a time: while it waits for its answer, only the
    /// timeout is set (Linux's `tcp_send_loss_probe`).
    fn on_probe_timer(&mut self, now: Instant) {
        if self.probe.high_mark.is_some() {
            self.restore_timeout(now);
            return;
        }
        let calm = matches!(self.phase, Phase::Open | Phase::Disorder);
        if !self.release_withheld(now) && calm && self.board.last_missing().is_some() {
            let due = !self.sample_as_probe();
            self.probe = TailProbe { due, high_mark: Some(self.next), of_new_data: false };
        }
        self.arm_timeout(now);
    }

    fn on_timeout(&mut self, now: Instant, siblings: Siblings<'_>, outcome: &mut AckOutcome) {
        if self.board.is_empty() {
            self.timer = None;
            return;
        }
        let first_of_episode = matches!(self.phase, Phase::Open | Phase::Disorder)
            || self.acked >= self.high_mark
            || (self.phase == Phase::Loss && self.timeouts == 0);
        // A timeout during a recovery that acknowledgments began is expected (Linux's condition for F-RTO).
        self.doubt_timeout = matches!(self.phase, Phase::Open | Phase::Disorder) || self.timeouts > 0;
        if first_of_episode {
            outcome.reduced = Some(self.reduce(now, LossCause::Timeout, siblings));
        }
        self.phase = Phase::Loss;
        self.high_mark = self.next;
        self.probe = TailProbe::default();
        self.abandon_try(now);
        // Packets sent so recently that RACK would not mark them lost may well be in flight.
        let lost_after = if self.rack.advanced { self.rack.rtt } else { Duration::ZERO };
        self.board.mark_all_lost(now - lost_after);
        // Also for a control with `governs_itself`: Linux does so for BBR, which restores its window when the repair is
        // complete.
        self.window.cwnd = Packets::whole(self.board.in_flight() + 1);
        self.timeouts += 1;
        self.sample_after_timeout();
        self.rtt.back_off();
        self.arm_timeout(now);
    }

    /// The peer answers again, but not to what is in flight: that is lost, and is sent again as if the timeout were
    /// due.
    pub fn expedite(&mut self, now: Instant) {
        self.rtt.reset_backoff();
        if !self.board.is_empty() {
            self.timer = Some((TimerKind::Timeout, now));
        }
    }

    /// Sets the timer after progress: a probe if possible, else the timeout; `None` if nothing is in flight.
    pub(super) fn arm_timer(&mut self, now: Instant) {
        if self.board.is_empty() {
            self.timer = None;
        } else if !self.arm_probe(now, true) {
            self.restore_timeout(now);
        }
    }

    /// Whether the timer runs for this purpose.
    pub(super) fn runs(&self, kind: TimerKind) -> bool {
        self.timer.is_some_and(|(purpose, _)| purpose == kind)
    }

    /// Sets the timeout. If it replaces a probe or the reordering timer, it counts from the last transmission of the
    /// first packet, which has waited meanwhile (Linux's `tcp_rearm_rto`).
    pub(super) fn restore_timeout(&mut self, now: Instant) {
        let replaces = self.runs(TimerKind::Probe) || self.runs(TimerKind::Reordering);
        match self.board.front() {
            Some(first) if replaces => {
                self.timer = Some((TimerKind::Timeout, (first.sent_at + self.rtt.rto()).max(now + LEAST_TIMEOUT)));
            }
            _ => self.arm_timeout(now),
        }
    }

    pub(super) fn arm_timeout(&mut self, now: Instant) {
        self.timer = Some((TimerKind::Timeout, now + self.rtt.rto()));
    }

    /// Two round trips without an acknowledgment trigger a probe, as long as no loss is known (RFC 8985 section 7.2).
    /// `progress`: an acknowledgment restarts the timer, not a transmission.
    pub(super) fn arm_probe(&mut self, now: Instant, progress: bool) -> bool {
        let calm = self.phase == Phase::Open && self.board.sacked() == 0;
        if !calm || !self.rtt.has_sample() {
            return false;
        }
        let Some(first) = self.board.front() else { return false };
        // No acknowledgment of what has not left the host can be delayed.
        let lone = self.board.packets_out() == 1 && !self.withholding.holds(first.start);
        let allowance = if lone { LONE_PACKET_ALLOWANCE } else { TIMER_ALLOWANCE };
        let probe_at = now + self.rtt.srtt() * 2 + allowance;
        // Later packets must not postpone the probe beyond the timeout of the first one.
        let timeout_at = if progress { now } else { first.sent_at } + self.rtt.rto();
        let at = if timeout_at > now { probe_at.min(timeout_at) } else { probe_at };
        self.timer = Some((TimerKind::Probe, at));
        true
    }
}

/// The timer that fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerOutcome {
    /// A timer that does not concern the connection; a probe may be sent.
    None,
    /// The retransmission timer, and what it was set to.
    Timeout(Duration),
}
