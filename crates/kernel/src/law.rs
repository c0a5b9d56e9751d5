//! The laws of `bpf/law.h` compared with the controls of `anabranch-stack`: the same acknowledgments and losses, and
//! windows within one packet.

use anabranch_stack::congestion::{Ack, CongestionControl, LossCause, RateSample, Siblings, Window, create};
use anabranch_stack::options::Options;
use anabranch_stack::view::{Packets, SubflowView};
use anabranch_units::{Duration, Instant};

const PATHS: usize = 9;
const MSS: u32 = 1400;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct LawPath {
    window: u64,
    interval: u64,
    rtt_us: u32,
    unused: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct LawConnection {
    path: [LawPath; PATHS],
    work: [u64; PATHS],
    veiled: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct LawWindow {
    fraction: u64,
    cwnd: u32,
    ssthresh: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct LawHistory {
    sample: [u32; 10],
    count: u32,
    spiking: u32,
}

unsafe extern "C" {
    fn anabranch_law_increase(law: u32, connection: *mut LawConnection, spiking: u32) -> i64;
    fn anabranch_law_threshold(law: u32, connection: *mut LawConnection, spiking: u32) -> u64;
    fn anabranch_law_window(window: *const LawWindow) -> u64;
    fn anabranch_law_slow_start(window: *mut LawWindow, acked: u32) -> u32;
    fn anabranch_law_grow(window: *mut LawWindow, increase: i64, acked: u32);
    fn anabranch_law_reduce(window: *mut LawWindow, threshold: u64) -> u32;
    fn anabranch_law_observe(history: *mut LawHistory, rtt_us: u32);
}

/// The number of a law in `bpf/law.h`.
fn number(name: &str) -> u32 {
    1 + ["lia", "olia", "balia", "mcc"].iter().position(|own| *own == name).expect("a coupled law") as u32
}

/// One path with both implementations of the law.
struct Path {
    control: Box<dyn CongestionControl>,
    window: Window,
    fixed: LawWindow,
    history: LawHistory,
    rtt_us: u32,
    acked_since_loss: u64,
    acked_between_losses: u64,
    /// Packets acknowledged and sent, from which rounds follow.
    acked: u64,
    round_end: u64,
}

impl Path {
    fn new(law: &str, cwnd: u32, ssthresh: u32, rtt_us: u32) -> Self {
        let mut window = Window::initial(cwnd);
        window.ssthresh = Packets::whole(ssthresh);
        Path {
            control: create(law, &Options::default(), 1).expect("a registered law"),
            window,
            fixed: LawWindow { fraction: 0, cwnd, ssthresh },
            history: LawHistory::default(),
            rtt_us,
            acked_since_loss: 0,
            acked_between_losses: 0,
            acked: 0,
            round_end: 0,
        }
    }

    fn view(&self, id: usize) -> SubflowView {
        let rtt = Duration::from_micros(self.rtt_us.into());
        SubflowView {
            ssthresh: self.window.ssthresh,
            acked_since_loss: self.acked_since_loss,
            acked_between_losses: self.acked_between_losses,
            ..SubflowView::idle(id as u16, MSS, self.window.cwnd, rtt)
        }
    }

    fn fixed_path(&self) -> LawPath {
        // SAFETY: the function reads the window that the reference points to.
        let window = unsafe { anabranch_law_window(&raw const self.fixed) };
        let interval = self.acked_since_loss.max(self.acked_between_losses);
        LawPath { window, interval, rtt_us: self.rtt_us, unused: 0 }
    }

    /// Packets by which both windows differ.
    fn difference(&self) -> f64 {
        let fixed = f64::from(self.fixed.cwnd) + self.fixed.fraction as f64 / 2f64.powi(32);
        (self.window.cwnd.as_f64() - fixed).abs()
    }
}

/// A connection whose paths are computed twice.
struct Connection {
    law: u32,
    paths: Vec<Path>,
}

impl Connection {
    fn views(&self) -> Vec<SubflowView> {
        self.paths.iter().enumerate().map(|(id, path)| path.view(id)).collect()
    }

    fn fixed(&self, own: usize) -> LawConnection {
        let mut connection = LawConnection::default();
        connection.path[0] = self.paths[own].fixed_path();
        for (slot, path) in self.paths.iter().enumerate().filter(|(slot, _)| *slot != own) {
            connection.path[1 + slot] = path.fixed_path();
        }
        connection
    }

    fn acknowledge(&mut self, own: usize, packets: u32, sample_us: u32) {
        let views = self.views();
        let path = &mut self.paths[own];
        path.acked += u64::from(packets);
        path.acked_since_loss += u64::from(packets * MSS);
        let sent = path.acked + u64::from(path.window.cwnd.floor());
        let views = {
            let mut views = views;
            views[own].acked_since_loss = path.acked_since_loss;
            views
        };
        let ack = Ack {
            now: Instant::ZERO,
            delivered: packets,
            total_delivered: path.acked,
            rtt: Some(Duration::from_micros(sample_us.into())),
            may_grow: true,
            prior_in_flight: 0,
            in_flight: 0,
            lost: 0,
            acked_offset: path.acked,
            sent_offset: sent,
            rate: RateSample::default(),
        };
        path.control.on_ack(&ack, &mut path.window, Siblings::new(&views, own));
        // What the programs do in `pkts_acked` and `cong_avoid`.
        if path.acked > path.round_end {
            path.round_end = sent;
            // SAFETY: the function changes the history that the reference points to.
            unsafe { anabranch_law_observe(&raw mut path.history, sample_us) };
        }
        // SAFETY: as above, for the window.
        let left = unsafe { anabranch_law_slow_start(&raw mut path.fixed, packets) };
        if left > 0 {
            let (mut connection, spiking) = (self.fixed(own), self.paths[own].history.spiking);
            let fixed = &raw mut self.paths[own].fixed;
            // SAFETY: both pointers come from references that nothing else uses meanwhile.
            unsafe { anabranch_law_grow(fixed, anabranch_law_increase(self.law, &raw mut connection, spiking), left) };
        }
    }

    fn lose(&mut self, own: usize, cause: LossCause) {
        let views = self.views();
        let mut connection = self.fixed(own);
        let law = self.law;
        let path = &mut self.paths[own];
        path.control.on_congestion(Instant::ZERO, cause, &mut path.window, Siblings::new(&views, own));
        // SAFETY: as in `acknowledge`.
        unsafe {
            let threshold = anabranch_law_threshold(law, &raw mut connection, path.history.spiking);
            anabranch_law_reduce(&raw mut path.fixed, threshold);
        }
        (path.acked_between_losses, path.acked_since_loss) = (path.acked_since_loss, 0);
        if cause == LossCause::Timeout {
            if law == number("mcc") {
                // SAFETY: as above.
                unsafe {
                    anabranch_law_reduce(&raw mut path.fixed, ((connection.path[0].window >> 16) << 15).max(2 << 16))
                };
            }
            (path.window.cwnd, path.fixed.cwnd) = (Packets::whole(1), 1);
        } else {
            (path.window.cwnd, path.fixed.cwnd) = (path.window.ssthresh, path.fixed.ssthresh);
        }
    }
}

/// Numbers that look random and are always the same (Knuth's constants).
struct Draws(u64);

impl Draws {
    /// The next number below `limit`.
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A path of a trace: its base round trip, and one loss in so many packets.
type PathOfTrace = (u32, u64);

/// Replays a trace and returns the largest difference of the windows, and the largest window.
fn replay(law: &str, paths: &[PathOfTrace], seed: u64) -> (f64, f64) {
    let paths_of = |&(rtt, _): &PathOfTrace| Path::new(law, 10, 40, rtt);
    let mut connection = Connection { law: number(law), paths: paths.iter().map(paths_of).collect() };
    let mut draws = Draws(seed);
    let (mut difference, mut largest) = (0f64, 0f64);
    for _ in 0..100_000 {
        let own = draws.below(paths.len() as u64) as usize;
        let (base, one_in) = paths[own];
        // A queue that fills and empties: the smoothed round trip follows, and a sample is sometimes thrice as long.
        let queued = draws.below(u64::from(base)) as u32;
        let sample = if draws.below(50) == 0 { 3 * base } else { base + queued / 2 };
        let path = &mut connection.paths[own];
        path.rtt_us += sample / 8;
        path.rtt_us -= path.rtt_us / 8;
        connection.acknowledge(own, 1 + draws.below(2) as u32, sample);
        if draws.below(one_in) == 0 {
            let cause = if draws.below(20) == 0 { LossCause::Timeout } else { LossCause::FastRetransmit };
            connection.lose(own, cause);
        }
        difference = connection.paths.iter().map(Path::difference).fold(difference, f64::max);
        largest = connection.paths.iter().map(|path| path.window.cwnd.as_f64()).fold(largest, f64::max);
    }
    (difference, largest)
}

const TRACES: [&[PathOfTrace]; 6] = [
    &[(50_000, 300)],
    &[(50_000, 300), (50_000, 300)],
    &[(20_000, 1000), (200_000, 100)],
    &[(300, 2000), (900_000, 2000)],
    &[(15_000, 5000), (40_000, 200), (120_000, 800)],
    &[(10_000, 400); 8],
];

#[test]
fn windows_in_fixed_point_stay_within_a_packet_of_those_in_floating_point() {
    for law in ["lia", "olia", "balia", "mcc"] {
        for (trace, paths) in TRACES.iter().enumerate() {
            let (difference, largest) = replay(law, paths, 1 + trace as u64);
            assert!(difference < 1.0, "{law}, trace {trace}: windows differ by {difference} packets");
            // Windows that hardly move could not differ.
            assert!(largest > 20.0, "{law}, trace {trace}: no window exceeds {largest} packets");
        }
    }
}

#[test]
fn each_law_differs_from_the_others_by_more_than_a_packet() {
    let final_windows = |law: &str| {
        let mut connection =
            Connection { law: number(law), paths: vec![Path::new(law, 10, 4, 20_000), Path::new(law, 30, 4, 80_000)] };
        for step in 0..4000u32 {
            // Every thousandth packet spikes for a dozen rounds, which only MCC minds.
            let spike = if step % 1000 < 200 { 4 } else { 1 };
            connection.acknowledge((step % 2) as usize, 1, 20_000 * spike);
            if step % 701 == 700 {
                connection.lose(1, LossCause::FastRetransmit);
            }
        }
        connection.paths.iter().map(|path| f64::from(path.fixed.cwnd)).collect::<Vec<_>>()
    };
    let all: Vec<_> = ["lia", "olia", "balia", "mcc"].map(final_windows).into();
    for (i, one) in all.iter().enumerate() {
        for other in &all[..i] {
            let apart = one.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(apart > 1.0, "two laws end with {one:?} and {other:?}");
        }
    }
}

#[test]
fn a_single_path_grows_by_a_packet_in_each_window() {
    for law in 1..=4 {
        let mut connection = LawConnection::default();
        connection.path[0] = LawPath { window: 16 << 16, interval: 0, rtt_us: 70_000, unused: 0 };
        let all = &raw mut connection;
        // SAFETY: the pointer comes from a reference that nothing else uses meanwhile.
        let (increase, threshold) =
            unsafe { (anabranch_law_increase(law, all, 0), anabranch_law_threshold(law, all, 0)) };
        assert!((increase as f64 / 2f64.powi(32) - 1.0 / 16.0).abs() < 1e-6, "law {law}");
        assert_eq!(threshold, 8 << 16, "law {law}");
    }
}

#[test]
fn extreme_windows_and_round_trips_stay_in_range() {
    for law in 1..=4 {
        for (window, rtt_us) in [(1u64 << 36, 1), (1 << 16, 1), (1 << 36, 60_000_000), (1 << 16, u32::MAX)] {
            let path = [LawPath { window, interval: u64::MAX, rtt_us, unused: 0 }; PATHS];
            let mut connection = LawConnection { path, ..LawConnection::default() };
            connection.path[8] = LawPath { window: 1 << 16, interval: 0, rtt_us: 1_000_000, unused: 0 };
            let all = &raw mut connection;
            // SAFETY: as above.
            let (increase, threshold) =
                unsafe { (anabranch_law_increase(law, all, 1), anabranch_law_threshold(law, all, 1)) };
            assert!((-(1 << 32)..=1 << 32).contains(&increase), "law {law}: {increase}");
            assert!(threshold >= 2 << 16 && threshold <= window.max(2 << 16), "law {law}: {threshold}");
        }
    }
}
