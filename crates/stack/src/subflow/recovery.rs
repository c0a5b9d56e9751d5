//! Loss detection and repair: RACK-TLP (RFC 8985), proportional rate reduction (RFC 6937), timeouts (RFC 6298), and taking back
//! reductions that were unnecessary (Eifel by timestamps, RFC 3522 and 4015; duplicate SACK, RFC 3708; RFC 5682's evidence).

use super::scoreboard::Delivery;
use super::sender::{AckOutcome, Acknowledgment, Reduction, Sender, TimerKind, timestamp};
use crate::congestion::{RateSample, Siblings, Window};
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
/// Added to a probe's timeout otherwise (Linux `TCP_TIMEOUT_MIN`, two ticks of 1 ms).
const PROBE_ALLOWANCE: Duration = Duration::from_millis(2);

/// Time-based loss detection: a packet is lost if one that left later, by more than the reordering window, has arrived.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// When the latest of the delivered packets left, and its end.
    sent_at: Instant,
    end: u64,
    /// Its round trip.
    rtt: Duration,
    advanced: bool,
    reordering_seen: bool,
    window_steps: u32,
    persistence: u32,
    duplicate_seen: bool,
    adapted_at: u64,
    deadline: Option<Instant>,
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
            deadline: None,
        }
    }
}

impl Rack {
    /// Learns from what an acknowledgment delivered.
    pub fn advance(&mut self, now: Instant, delivery: &Delivery, min_rtt: Duration) {
        self.reordering_seen |= delivery.reordered;
        let Some(newest) = delivery.newest else { return };
        let rtt = now.since(newest.sent_at);
        // An answer within less than the least round trip is to the original, not to the repetition.
        if newest.repeated && rtt < min_rtt {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        if (newest.sent_at, newest.end) > (self.sent_at, self.end) {
            (self.sent_at, self.end) = (newest.sent_at, newest.end);
        }
    }

    /// Widens the reordering window once per round in which a duplicate SACK showed a needless repetition.
    pub fn adapt(&mut self, rate: &RateSample, delivered: u64) {
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

    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
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
    /// Packets sent since, repeated or new.
    pub sent: u32,
}

/// What is needed to take a reduction back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Undo {
    window: Window,
    /// When the first repetition of the episode left.
    first_repetition: Option<Instant>,
    /// Repetitions that no duplicate SACK showed to be needless.
    needed: i64,
    repeated: bool,
}

impl Undo {
    pub fn on_repeated(&mut self, now: Instant) {
        self.first_repetition.get_or_insert(now);
        self.needed += 1;
        self.repeated = true;
    }

    /// Every repetition turned out to be needless, or the peer answers the original transmission.
    fn justified(&self, echo: Option<u32>) -> bool {
        let all_needless = self.repeated && self.needed <= 0;
        let delayed = self.first_repetition.zip(echo).is_some_and(|(at, echo)| {
            // Strictly before: within one tick the two cannot be told apart.
            (echo.wrapping_sub(timestamp(at)) as i32) < 0
        });
        all_needless || delayed
    }
}

/// Tail-loss probe: when acknowledgments stop, one packet leaves ahead of the timeout to provoke an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TailProbe {
    /// The probe repeats the record at this position as soon as possible.
    due: Option<u64>,
    /// The episode ends when this offset is acknowledged.
    high_mark: Option<u64>,
}

impl TailProbe {
    pub fn take_due(&mut self) -> Option<u64> {
        self.due.take()
    }
}

impl Sender {
    /// A repetition turned out to be needless: its original had arrived.
    pub(super) fn on_duplicate_arrival(&mut self) {
        self.rack.duplicate_seen = true;
        self.rack.reordering_seen = true;
        if let Some(undo) = &mut self.undo {
            undo.needed -= 1;
        }
    }

    /// The state machine of recovery (Linux's `tcp_fastretrans_alert`).
    pub(super) fn repair(
        &mut self,
        now: Instant,
        ack: &Acknowledgment<'_>,
        advanced: bool,
        delivery: &Delivery,
        siblings: Siblings<'_>,
        outcome: &mut AckOutcome,
    ) {
        let complete = self.acked >= self.high_mark;
        match self.phase {
            Phase::Recovery if complete => self.end_recovery(now, ack.echo, outcome),
            Phase::Recovery => {
                // A partial acknowledgment that answers an original transmission: the whole episode was needless.
                if advanced && self.try_undo(now, ack.echo, false, outcome) {
                    return;
                }
            }
            Phase::Loss => {
                if self.try_undo_timeout(now, ack.echo, advanced, delivery, outcome) {
                    return;
                }
                if complete {
                    self.undo = None;
                    self.phase = Phase::Open;
                    self.control.on_recovery_end(now, &mut self.window);
                }
            }
            // A reduction may turn out to be needless after its recovery ended.
            Phase::Open | Phase::Disorder => {
                if ack.duplicate.is_some() && self.undo.is_some_and(|undo| undo.repeated && undo.needed <= 0) {
                    self.try_undo(now, None, false, outcome);
                }
            }
        }
        self.detect_losses(now);
        if matches!(self.phase, Phase::Open | Phase::Disorder) {
            if self.board.lost() > 0 {
                self.enter_recovery(now, siblings, outcome);
            } else {
                let doubtful = self.board.sacked() > 0;
                self.phase = if doubtful { Phase::Disorder } else { Phase::Open };
            }
        }
    }

    /// Marks what RACK deems lost and arms the reordering timer for what it cannot tell yet.
    fn detect_losses(&mut self, now: Instant) {
        self.rack.deadline = None;
        if !self.rack.advanced {
            return;
        }
        let recovering = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let window = self.rack.reordering_window(recovering, self.board.sacked(), self.rtt.min(), self.rtt.srtt());
        let patience = self.rack.rtt + window;
        while let Some((position, record)) = self.board.oldest_transmission() {
            if (record.sent_at, record.end()) >= (self.rack.sent_at, self.rack.end) {
                break;
            }
            if record.sent_at + patience > now {
                // Those behind it left until `rack.sent_at`: one timer for all of them (RFC 8985 section 6.2 step 5).
                self.rack.deadline = Some(self.rack.sent_at + patience);
                break;
            }
            self.board.mark_lost(position);
        }
    }

    fn enter_recovery(&mut self, now: Instant, siblings: Siblings<'_>, outcome: &mut AckOutcome) {
        self.high_mark = self.next;
        self.probe.high_mark = None;
        let reduction = self.reduce(now, LossCause::FastRetransmit, siblings);
        self.prr = Prr { prior: reduction.from.floor(), delivered: 0, sent: 0 };
        self.phase = Phase::Recovery;
        outcome.reduced = Some(reduction);
    }

    /// Asks the control for the new threshold and remembers how to take it back.
    fn reduce(&mut self, now: Instant, cause: LossCause, siblings: Siblings<'_>) -> Reduction {
        let prior = Window { ssthresh: self.current_ssthresh(), ..self.window };
        self.undo = Some(Undo { window: prior, first_repetition: None, needed: 0, repeated: false });
        self.note_loss_interval();
        self.control.on_congestion(now, cause, &mut self.window, siblings);
        Reduction { cause, from: prior.cwnd, to: self.window.ssthresh }
    }

    /// RFC 6937 with Linux's bound: while more is in flight than the threshold, send in proportion to what is delivered; below
    /// it, grow back to the threshold as fast as slow start would, but only if no further loss shows.
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
        // The first repetition leaves at once.
        let allowed = allowed.max(u32::from(self.prr.sent == 0));
        self.window.cwnd = Packets::whole((in_flight + allowed).max(1));
    }

    fn end_recovery(&mut self, now: Instant, echo: Option<u32>, outcome: &mut AckOutcome) {
        self.rack.persistence = self.rack.persistence.saturating_sub(1);
        self.phase = Phase::Open;
        if self.try_undo(now, echo, false, outcome) {
            return;
        }
        if !self.control.governs_itself() {
            self.window.cwnd = self.window.ssthresh;
        }
        self.control.on_recovery_end(now, &mut self.window);
    }

    /// Takes the last reduction back if there is proof that it was needless.
    fn try_undo(&mut self, now: Instant, echo: Option<u32>, proven: bool, outcome: &mut AckOutcome) -> bool {
        let Some(undo) = self.undo.filter(|undo| proven || undo.justified(echo)) else { return false };
        self.undo = None;
        self.board.unmark_lost();
        self.window.cwnd = self.window.cwnd.max(undo.window.cwnd);
        self.window.ssthresh = self.window.ssthresh.max(undo.window.ssthresh);
        self.phase = Phase::Open;
        self.control.on_undo(now, &mut self.window);
        outcome.undone = true;
        true
    }

    /// After a timeout: the peer answers an original transmission, so nothing was lost but time.
    fn try_undo_timeout(
        &mut self,
        now: Instant,
        echo: Option<u32>,
        advanced: bool,
        delivery: &Delivery,
        outcome: &mut AckOutcome,
    ) -> bool {
        if !advanced && !delivery.any_sacked {
            return false;
        }
        let proven = self.doubt_timeout && delivery.original_delivered;
        // Whatever arrives first after the timeout decides (RFC 5682 step 2): later arrivals prove nothing.
        self.doubt_timeout &= !advanced;
        self.try_undo(now, if advanced { echo } else { None }, proven, outcome)
    }

    /// An acknowledgment after a probe: if more was acknowledged than the probe's own packet, the probe repaired a loss.
    pub(super) fn on_probe_ack(
        &mut self,
        now: Instant,
        ack: &Acknowledgment<'_>,
        delivery: &Delivery,
        siblings: Siblings<'_>,
        outcome: &mut AckOutcome,
    ) {
        let Some(high_mark) = self.probe.high_mark.filter(|mark| ack.acked >= *mark) else { return };
        let pure_duplicate = delivery.packets == 0 && !ack.more_than_ack;
        if ack.duplicate.is_some() || pure_duplicate {
            // Both the original and the probe arrived.
            self.probe.high_mark = None;
        } else if ack.acked > high_mark {
            self.probe.high_mark = None;
            let reduction = self.reduce(now, LossCause::FastRetransmit, siblings);
            if !self.control.governs_itself() {
                self.window.cwnd = self.window.ssthresh;
            }
            self.undo = None;
            outcome.reduced = Some(reduction);
        }
    }

    /// The reordering timer, the probe timer or the retransmission timer is due. Returns the cut of a timeout.
    pub fn on_timer(&mut self, now: Instant, siblings: Siblings<'_>) -> (TimerOutcome, AckOutcome) {
        let mut outcome = AckOutcome::default();
        if self.rack.deadline.is_some_and(|at| at <= now) {
            self.detect_losses(now);
            if matches!(self.phase, Phase::Open | Phase::Disorder) && self.board.lost() > 0 {
                self.enter_recovery(now, siblings, &mut outcome);
                // The timer stands in for the acknowledgment that would have shown the loss.
                if !self.control.governs_itself() {
                    self.reduce_proportionally(1, 0, false);
                }
            }
            return (TimerOutcome::None, outcome);
        }
        match self.timer {
            Some((TimerKind::Probe, at)) if at <= now => {
                self.send_probe();
                self.arm_timeout(now);
                (TimerOutcome::Probe, outcome)
            }
            Some((TimerKind::Timeout, at)) if at <= now => {
                self.on_timeout(now, siblings, &mut outcome);
                (TimerOutcome::Timeout, outcome)
            }
            _ => (TimerOutcome::None, outcome),
        }
    }

    fn send_probe(&mut self) {
        if self.probe.high_mark.is_none() {
            self.probe.due = self.board.last_position();
            self.probe.high_mark = Some(self.next);
        }
    }

    fn on_timeout(&mut self, now: Instant, siblings: Siblings<'_>, outcome: &mut AckOutcome) {
        if self.board.is_empty() {
            self.timer = None;
            return;
        }
        let first_of_episode = matches!(self.phase, Phase::Open | Phase::Disorder)
            || self.acked >= self.high_mark
            || (self.phase == Phase::Loss && self.timeouts == 0);
        // A timeout in the midst of a recovery that acknowledgments began is no surprise (Linux's condition for F-RTO).
        self.doubt_timeout = matches!(self.phase, Phase::Open | Phase::Disorder) || self.timeouts > 0;
        if first_of_episode {
            outcome.reduced = Some(self.reduce(now, LossCause::Timeout, siblings));
        }
        self.phase = Phase::Loss;
        self.high_mark = self.next;
        self.probe = TailProbe::default();
        self.rack.deadline = None;
        // Packets that left so recently that RACK would not call them lost may well be under way.
        let window = self.rack.reordering_window(true, self.board.sacked(), self.rtt.min(), self.rtt.srtt());
        let patience = if self.rack.advanced { self.rack.rtt + window } else { Duration::ZERO };
        self.board.mark_all_lost(now - patience);
        // Also for a control that governs itself: Linux does so for BBR, which restores its window when the repair is complete.
        self.window.cwnd = Packets::whole(self.board.in_flight() + 1);
        self.timeouts += 1;
        self.rtt.back_off();
        self.arm_timeout(now);
    }

    /// Sets the timer after progress: a probe if one makes sense, else the timeout; none if nothing is under way.
    pub(super) fn arm_timer(&mut self, now: Instant) {
        if self.board.is_empty() {
            self.timer = None;
        } else if !self.arm_probe(now) {
            self.arm_timeout(now);
        }
    }

    pub(super) fn arm_timeout(&mut self, now: Instant) {
        self.timer = Some((TimerKind::Timeout, now + self.rtt.rto()));
    }

    /// Two round trips without an answer ask for a probe, as long as no loss is known (RFC 8985 section 7.2).
    pub(super) fn arm_probe(&mut self, now: Instant) -> bool {
        let calm = self.phase == Phase::Open && self.board.sacked() == 0;
        if !calm || self.board.is_empty() || !self.rtt.has_sample() || self.probe.high_mark.is_some() {
            return false;
        }
        let lone = self.board.packets_out() == 1;
        let allowance = if lone { LONE_PACKET_ALLOWANCE } else { PROBE_ALLOWANCE };
        let probe_at = now + self.rtt.srtt() * 2 + allowance;
        let timeout_at = self.board.front().map_or(Instant::FAR_FUTURE, |first| first.sent_at) + self.rtt.rto();
        // Later packets must not put the probe off beyond the timeout of the first one.
        self.timer = Some((TimerKind::Probe, probe_at.min(timeout_at.max(now))));
        true
    }
}

/// Which timer fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerOutcome {
    /// None that the connection needs to know of.
    None,
    /// A tail-loss probe will leave.
    Probe,
    /// The retransmission timer.
    Timeout,
}
