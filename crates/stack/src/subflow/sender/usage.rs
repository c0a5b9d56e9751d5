//! How much of the window is used: a window grows only if it limited the sender, and an unused window decays.

use super::Sender;
use crate::subflow::INITIAL_WINDOW;
use crate::view::{Packets, Phase};
use anabranch_units::{Duration, Instant};

/// The used part of the window (RFC 7661's criterion, Linux's rule).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowUsage {
    /// The window limited the sender in the last round.
    limited: bool,
    /// The most packets in flight in the round.
    peak: u32,
    /// The round ends when this is acknowledged.
    round_end: u64,
    /// The most packets in flight since the window was last full, or decayed.
    used: u32,
    /// When the window was last full, or its use was last checked.
    pub checked_at: Instant,
}

impl Sender {
    /// Linux's `tcp_is_cwnd_limited`: growth is useful only if the window limited the sender. In slow start, half a
    /// window in use is enough, because the other half may be sent before the next acknowledgment.
    pub(super) fn window_limited(&self) -> bool {
        if self.usage.limited {
            return true;
        }
        self.window.in_slow_start() && self.window.cwnd.floor() < 2 * self.usage.peak
    }

    /// To be called when everything that could be sent was sent, also if this subflow sent nothing: whether delivery
    /// rates from now on show the path, or only what the subflow was given. They do not show the path if the window has
    /// room that nothing uses: no loss is to be repaired, no burst is being gathered, and no data waits `for_pace`,
    /// until the pacing rate lets it leave. It does not matter why there is no data: the application has none, the
    /// receive window is full, or the scheduler or the path policy holds the subflow back
    /// (draft-cheng-iccrg-delivery-rate-estimation-02, whose sender
    /// has no scheduler).
    pub fn note_supply(&mut self, for_pace: bool) {
        let repaired = self.board.lost() <= self.board.retransmitted();
        if self.has_room() && repaired && !self.deferring && !for_pace {
            self.rate.on_app_limited(self.board.in_flight());
        }
    }

    /// To be called when everything that could be sent was sent, and some was: notes whether the window limited the
    /// sender, and checks once a timeout whether it was used. A window that was not may `decay` (RFC 2861). Returns the
    /// window before, if it decayed.
    pub fn after_sending(&mut self, now: Instant, decay: bool) -> Option<Packets> {
        let limited = self.board.in_flight() >= self.window.cwnd.floor() || std::mem::take(&mut self.deferring);
        let out = self.board.packets_out();
        let usage = &mut self.usage;
        if self.acked >= usage.round_end || limited || (!usage.limited && out > usage.peak) {
            *usage = WindowUsage { limited, peak: out, round_end: self.next, ..*usage };
        }
        if self.window_limited() {
            (self.usage.used, self.usage.checked_at) = (0, now);
            return None;
        }
        self.usage.used = self.usage.used.max(out);
        if now.since(self.usage.checked_at) < self.rtt.rto() || self.control.governs_itself() {
            return None;
        }
        self.usage.checked_at = now;
        if decay && self.phase == Phase::Open { self.decay_unused() } else { None }
    }

    /// Linux's `tcp_cwnd_application_limited`: moves halfway from the window to its used part. Returns the window
    /// before, if it is another.
    fn decay_unused(&mut self) -> Option<Packets> {
        let before = self.window.cwnd;
        let used = std::mem::take(&mut self.usage.used).max(INITIAL_WINDOW);
        if used < before.floor() {
            self.window.ssthresh = self.current_ssthresh();
            self.window.cwnd = Packets::from_f64((before.as_f64() + f64::from(used)) / 2.0);
        }
        self.unless_unchanged(before)
    }

    /// The window as it was `before`, if it is another now.
    fn unless_unchanged(&self, before: Packets) -> Option<Packets> {
        (before != self.window.cwnd).then_some(before)
    }

    /// Whether the window decays in [`Sender::before_sending`]: nothing is in flight, and nothing was sent for a
    /// timeout.
    pub fn idles_beyond_timeout(&self, now: Instant) -> bool {
        self.idle_beyond_timeout(now, self.last_sent_at.max(self.decayed_at)).is_some()
    }

    /// To be called before the first packet after a pause: halves the window for every timeout that passed idle,
    /// down to the initial one (RFC 2861, Linux's `tcp_cwnd_restart`). Returns the window before, if it decayed.
    pub fn before_sending(&mut self, now: Instant) -> Option<Packets> {
        let before = self.window.cwnd;
        self.decay_idle(now, self.last_sent_at.max(self.decayed_at));
        self.unless_unchanged(before)
    }

    /// The same where data is queued before it is sent. Linux decays the window whenever it makes a record for new
    /// data, and so once per record that is queued before the first packet is sent.
    pub fn before_queueing(&mut self, now: Instant, records: u64, decay: bool) -> Option<Packets> {
        let before = self.window.cwnd;
        if decay {
            (0..records).for_each(|_| self.decay_idle(now, self.last_sent_at));
        }
        self.unless_unchanged(before)
    }

    /// How long nothing was in flight, and the timeout, if the pause is longer than that.
    fn idle_beyond_timeout(&self, now: Instant, since: Instant) -> Option<(Duration, Duration)> {
        if !self.board.is_empty() || self.next <= 1 {
            return None;
        }
        let (idle, rto) = (now.since(since), self.rtt.rto());
        (idle > rto && !self.control.governs_itself()).then_some((idle, rto))
    }

    fn decay_idle(&mut self, now: Instant, since: Instant) {
        let Some((idle, rto)) = self.idle_beyond_timeout(now, since) else { return };
        let cwnd = self.window.cwnd.floor();
        // A pause of exactly one timeout halves nothing yet.
        let halvings = ((idle.as_nanos() - 1) / rto.as_nanos()).min(31) as u32;
        self.window.ssthresh = self.current_ssthresh();
        let floor = cwnd.min(INITIAL_WINDOW);
        self.window.cwnd = Packets::whole((cwnd >> halvings).max(floor));
        (self.usage.used, self.usage.checked_at) = (0, now);
        self.decayed_at = now;
    }

    /// Linux's `tcp_current_ssthresh`: the threshold that keeps the window's history when it decays without a loss.
    pub(in super::super) fn current_ssthresh(&self) -> Packets {
        if self.phase == Phase::Recovery {
            return self.window.ssthresh;
        }
        self.window.ssthresh.max(Packets::from_f64(self.window.cwnd.as_f64() * 0.75))
    }
}
