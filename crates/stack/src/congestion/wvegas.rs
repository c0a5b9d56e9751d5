//! wVegas: keeps about ten packets queued in the network in total, most of them on the fastest path.
//!
//! ```text
//! once per round trip        diff = w (1 − base/rtt)
//!   slow start               diff > 1:  w = min(w, w·base/rtt + 1), ssthresh = min(ssthresh, w − 1);  else as NewReno
//!   afterwards               diff ≥ α_i:  α_i = max(2, 10 · x_i / Σ x_k)
//!                            diff > α_i:  w −= 1;   diff < α_i:  w += 1                           never below 2
//!   drain                    q ≥ 2·q_min:  w *= base / (2 rtt), and q_min is forgotten        q = rtt − base
//! after a loss               ssthresh = max(w/2, 2)
//! ```
//! `w` window, `diff` and `α` queued packets (packets), `rtt` mean and `base` least round trip (s), `q` queueing delay
//! (s), `x = w/rtt` rates (packets/s). `diff` and `α` are compared as whole packets, which leaves a dead band of one.
//! Fewer than three samples in a round are ignored: NewReno then. After a repair α begins again at 2; after an idle
//! time `base` is forgotten.
//! Cao, Xu, Fu, "Delay-based Congestion Control for Multipath TCP", ICNP 2012; draft-xu-mptcp-congestion-control-05.
//!
//! Ours: siblings weigh in with window over smoothed round trip; Linux's Multipath TCP v0.9x takes their rate when they
//! last reached α. And `q_min` is kept, and the window drained, only while `diff ≥ α`: in that kernel both happen
//! always, so that the first packet queued on an empty path already doubles the least delay and halves the window, and
//! α is never reached. Option `drain = "kernel"` gives the kernel's rule (`"at-target"` is the default).
//!
//! As every delay-based controller it starves with loss-based ones at its bottleneck, and takes a longer route for a
//! queue.

use super::coupled::{self, Path};
use super::rounds::Rounds;
use super::{Ack, CongestionControl, Entry, LossCause, MIN_SSTHRESH, Siblings, Window};
use crate::view::Packets;
use anabranch_units::{Duration, Instant};

pub(super) const ENTRY: Entry = Entry {
    name: "wvegas",
    summary: "Delay-based and coupled: keeps about ten packets queued in total.",
    source: "draft-xu-mptcp-congestion-control-05",
    create: |options, _seed| {
        options.expect_only(&["drain"])?;
        Ok(Box::new(WVegas::new(match options.word("drain", &["at-target", "kernel"])? {
            "kernel" => Drain::Always,
            _ => Drain::AtTarget,
        })))
    },
};

/// Packets that all subflows together keep queued.
const TOTAL_ALPHA: f64 = 10.0;
/// The smallest α, in packets, which is the initial one.
const MIN_ALPHA: f64 = 2.0;
/// Queued packets that end slow start.
const GAMMA: f64 = 1.0;
/// Rounds with fewer samples are decided as by NewReno.
const MIN_SAMPLES: u64 = 3;
/// Linux's least distance from the round trip to its retransmission timeout. After an idle time beyond such a timeout
/// Linux restarts the window, and wVegas forgets its measurements.
const MIN_RTO_VARIANCE: Duration = Duration::from_millis(200);

/// The condition of the drain rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drain {
    AtTarget,
    Always,
}

#[derive(Debug)]
struct WVegas {
    drain: Drain,
    rounds: Rounds,
    /// Sum of this round's samples.
    sum: Duration,
    samples: u64,
    base: Option<Duration>,
    alpha: Packets,
    least_queueing: Option<Duration>,
    restart: bool,
}

impl WVegas {
    fn new(drain: Drain) -> Self {
        WVegas {
            drain,
            rounds: Rounds::default(),
            sum: Duration::ZERO,
            samples: 0,
            base: None,
            alpha: Packets::from_f64(MIN_ALPHA),
            least_queueing: None,
            restart: false,
        }
    }

    fn observe(&mut self, rtt: Duration) {
        self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
        self.sum += rtt;
        self.samples += 1;
    }

    fn clear_samples(&mut self) {
        self.sum = Duration::ZERO;
        self.samples = 0;
    }

    fn restart_measuring(&mut self, ack: &Ack) {
        self.rounds.restart(ack);
        self.clear_samples();
        self.alpha = Packets::from_f64(MIN_ALPHA);
        self.least_queueing = None;
        self.restart = false;
    }

    /// Decides at the end of a round.
    fn adapt(&mut self, acked: u32, rtt: Duration, base: Duration, window: &mut Window, siblings: Siblings<'_>) {
        let cwnd = window.cwnd.as_f64();
        let uncongested = cwnd * (base.as_secs_f64() / rtt.as_secs_f64());
        let diff = (cwnd - uncongested).floor();
        if !window.in_slow_start() {
            self.avoid(diff, rtt, base, window, siblings);
        } else if diff > GAMMA {
            window.cwnd = Packets::from_f64(cwnd.min(uncongested.floor() + 1.0));
            lower_threshold(window);
        } else {
            window.slow_start(acked);
        }
        window.cwnd = window.cwnd.max(Packets::from_f64(MIN_SSTHRESH));
        // Linux keeps the threshold at three quarters of the window outside of recovery, so that a later drain
        // is undone by slow start.
        window.ssthresh = window.ssthresh.max(Packets::from_f64(window.cwnd.as_f64() * 0.75));
    }

    fn avoid(&mut self, diff: f64, rtt: Duration, base: Duration, window: &mut Window, siblings: Siblings<'_>) {
        if diff >= self.alpha.as_f64() {
            let share = share_of_own(rtt, window, siblings);
            self.alpha = Packets::from_f64((share * TOTAL_ALPHA).floor().max(MIN_ALPHA));
        }
        let alpha = self.alpha.as_f64();
        if diff > alpha {
            window.grow(-1.0);
            lower_threshold(window);
        } else if diff < alpha {
            window.grow(1.0);
        }
        if self.drain == Drain::Always || diff >= alpha {
            self.drain_queue(rtt, base, window);
        }
    }

    fn drain_queue(&mut self, rtt: Duration, base: Duration, window: &mut Window) {
        let queueing = rtt - base;
        let least = self.least_queueing.map_or(queueing, |least| least.min(queueing));
        if queueing >= least * 2 {
            let kept = base.as_secs_f64() / (2.0 * rtt.as_secs_f64());
            window.cwnd = Packets::from_f64(window.cwnd.as_f64() * kept);
            self.least_queueing = None;
        } else {
            self.least_queueing = Some(least);
        }
    }
}

/// The own share of the total rate, with this round's mean round trip for the own path.
fn share_of_own(rtt: Duration, window: &Window, siblings: Siblings<'_>) -> f64 {
    let own_rate = window.cwnd.as_f64() / rtt.as_secs_f64();
    let others: f64 = coupled::paths(siblings, window).filter(|p| !p.own).map(|p: Path| p.rate()).sum();
    own_rate / (own_rate + others)
}

fn lower_threshold(window: &mut Window) {
    let below = Packets::from_f64(window.cwnd.as_f64() - 1.0);
    window.ssthresh = window.ssthresh.min(below).max(Packets::from_f64(MIN_SSTHRESH));
}

impl CongestionControl for WVegas {
    fn on_ack(&mut self, ack: &Ack, window: &mut Window, siblings: Siblings<'_>) {
        if let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero()) {
            self.observe(rtt);
        }
        if self.restart && ack.may_grow {
            self.restart_measuring(ack);
        }
        let round_ended = self.rounds.ended_by(ack);
        if ack.may_grow {
            match self.base {
                Some(base) if round_ended && self.samples >= MIN_SAMPLES => {
                    self.adapt(ack.delivered, self.sum / self.samples, base, window, siblings);
                }
                _ if round_ended => {
                    let left = window.slow_start(ack.delivered);
                    window.grow(left / window.cwnd.as_f64());
                }
                _ => {
                    window.slow_start(ack.delivered);
                }
            }
        }
        if round_ended {
            self.clear_samples();
        }
    }

    fn on_congestion(&mut self, _now: Instant, _cause: LossCause, window: &mut Window, _siblings: Siblings<'_>) {
        window.set_ssthresh(window.cwnd.as_f64() / 2.0);
        self.restart = true;
    }

    fn on_restart(&mut self, _now: Instant, idle: Duration, _app_limited: bool, _window: &mut Window) {
        self.restart = true;
        if idle > self.base.unwrap_or(Duration::ZERO) + MIN_RTO_VARIANCE {
            self.base = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ack, assert_near, create, view, window};
    use super::*;
    use crate::options::Value;
    use crate::view::SubflowView;

    /// A path with a queue: the round trip is the base plus the time to send what does not fit into the pipe.
    struct Pipe {
        cc: Box<dyn CongestionControl>,
        window: Window,
        base: f64,
        capacity: f64,
        round: u64,
    }

    impl Pipe {
        fn new(cc: Box<dyn CongestionControl>, base: f64, capacity: f64) -> Self {
            Pipe { cc, window: window(4.0), base, capacity, round: 0 }
        }

        fn queue(&self) -> f64 {
            (self.window.cwnd.as_f64() - self.base * self.capacity).max(0.0)
        }

        fn rtt(&self) -> f64 {
            self.base + self.queue() / self.capacity
        }

        fn view(&self, id: u16) -> SubflowView {
            view(id, self.window.cwnd.as_f64(), self.rtt())
        }

        /// Acknowledges four packets of one round trip, the last of which ends it.
        fn round(&mut self, siblings: Siblings<'_>) {
            let rtt = self.rtt();
            for i in 1..=4 {
                let offset = self.round * 4 + i;
                let ack = Ack { acked_offset: offset, sent_offset: offset + 3, ..ack(0.0, 1, rtt) };
                self.cc.on_ack(&ack, &mut self.window, siblings);
            }
            self.round += 1;
        }
    }

    fn run(pipes: &mut [Pipe], rounds: usize) -> Vec<f64> {
        let mut largest = vec![0.0_f64; pipes.len()];
        for _ in 0..rounds {
            let views: Vec<_> = pipes.iter().enumerate().map(|(i, p)| p.view(i as u16)).collect();
            for (i, pipe) in pipes.iter_mut().enumerate() {
                pipe.round(Siblings::new(&views, i));
                largest[i] = largest[i].max(pipe.queue());
            }
        }
        largest
    }

    fn pipes(drain: &str, of: &[(f64, f64)]) -> Vec<Pipe> {
        let new = || create("wvegas", &[("drain", Value::Text(drain.into()))]);
        of.iter().map(|&(base, capacity)| Pipe::new(new(), base, capacity)).collect()
    }

    #[test]
    fn the_queues_settle_at_ten_packets_in_total() {
        for paths in [&[(0.1, 200.0), (0.1, 200.0)][..], &[(0.05, 600.0), (0.1, 200.0)], &[(0.1, 300.0)]] {
            let mut pipes = pipes("at-target", paths);
            run(&mut pipes, 400);
            let total: f64 = pipes.iter().map(Pipe::queue).sum();
            assert!((8.0..=12.0).contains(&total), "{total} packets queued on {paths:?}");
        }
    }

    #[test]
    fn the_faster_path_holds_more_of_them() {
        let mut pipes = pipes("at-target", &[(0.1, 600.0), (0.1, 200.0)]);
        run(&mut pipes, 400);
        let (fast, slow) = (pipes[0].queue(), pipes[1].queue());
        // α = 7 and 2, each with a dead band of one packet.
        assert!((7.0..=8.0).contains(&fast) && (2.0..=3.0).contains(&slow), "{fast} and {slow}");
    }

    #[test]
    fn the_kernels_drain_never_lets_the_queue_reach_its_target() {
        let mut pipes = pipes("kernel", &[(0.1, 300.0)]);
        run(&mut pipes, 50);
        let largest = run(&mut pipes, 400);
        assert!(largest[0] < 4.0, "{largest:?}");
    }

    #[test]
    fn a_queue_ends_slow_start_at_what_the_path_delivered() {
        let mut cc = WVegas::new(Drain::AtTarget);
        let all = [view(0, 40.0, 0.2)];
        let mut window = Window::initial(40);
        cc.observe(Duration::from_millis(100));
        for (offset, delivered) in [(1, 1), (2, 1), (3, 1), (10, 1)] {
            let ack = Ack { acked_offset: offset, sent_offset: 9, ..ack(0.0, delivered, 0.2) };
            cc.on_ack(&ack, &mut window, Siblings::new(&all, 0));
        }
        // The first acknowledgment ends a round of two samples: NewReno, 41. Two more: 43. The mean of 0.2, 0.2 and 0.2
        // against 0.1 then show that 21.5 packets left uncongested: 21 and one.
        assert_near(window.cwnd.as_f64(), 22.0, 1e-9);
        assert_near(window.ssthresh.as_f64(), 21.0, 1e-9);
    }

    #[test]
    fn a_long_idle_time_forgets_the_base_and_a_short_one_does_not() {
        let mut cc = WVegas::new(Drain::AtTarget);
        cc.observe(Duration::from_millis(100));
        cc.on_restart(Instant::ZERO, Duration::from_millis(250), true, &mut window(10.0));
        assert_eq!(cc.base, Some(Duration::from_millis(100)));
        cc.on_restart(Instant::ZERO, Duration::from_millis(301), true, &mut window(10.0));
        assert_eq!(cc.base, None);
    }
}
