use super::super::testing::{MSS, ack, assert_near, at, view, window};
use super::network::Network;
use super::outputs::{HIGH_GAIN, PACING_MARGIN};
use super::*;

impl Network<Bbr<Version1>> {
    fn new(capacity: f64, base: f64) -> Self {
        Network::with(Bbr::new(5, Version1), capacity, base)
    }

    fn pacing_gain(&self) -> f64 {
        self.window.pacing_rate.unwrap().as_bps() as f64 / (self.capacity * f64::from(MSS) * 8.0 * PACING_MARGIN)
    }
}

const MODES: [&str; 4] = ["startup", "drain", "probe-bw", "probe-rtt"];

fn mode(network: &Network<Bbr<Version1>>) -> &'static str {
    match network.bbr.mode {
        Mode::Startup => MODES[0],
        Mode::Drain => MODES[1],
        Mode::ProbeBw { .. } => MODES[2],
        Mode::ProbeRtt { .. } => MODES[3],
    }
}

#[test]
fn send_buffers_have_room_for_three_windows_as_in_linux_and_for_two_with_other_controls() {
    use super::super::testing::create;
    for (name, windows) in [("bbr", 3), ("cbbr", 2), ("cubic", 2)] {
        assert_eq!(create(name, &[]).buffered_windows(), windows, "{name}");
    }
}

#[test]
fn the_first_packets_are_paced_at_the_high_gain_over_the_handshakes_round_trip() {
    let network = Network::new(1000.0, 0.1);
    let expected = 10.0 / 0.1 * f64::from(MSS) * 8.0 * HIGH_GAIN * PACING_MARGIN;
    assert_near(network.window.pacing_rate.unwrap().as_bps() as f64, expected, 1e-6);
}

#[test]
fn it_finds_the_bandwidth_drains_the_queue_and_holds_the_pipe_full() {
    let mut network = Network::new(2000.0, 0.05);
    let (mut seen, mut largest_queue) = (vec![mode(&network)], 0.0_f64);
    network.run(3.0, |n| {
        if seen.last() != Some(&mode(n)) {
            seen.push(mode(n));
        }
        if n.now > 1.0 {
            largest_queue = largest_queue.max(n.link_free - n.now);
        }
    });
    assert_eq!(seen, MODES[..3]);
    assert_near(network.bbr.rate().as_f64(), 2000.0, 0.01);
    assert_near(network.bbr.min_rtt.unwrap().as_secs_f64(), 0.0505, 0.01);
    // Probing at 5/4 for about one round trip queues a quarter of a pipe and the probe's allowances.
    assert!(largest_queue < 0.5 * 0.05, "{largest_queue} s");
    let before = network.delivered;
    network.run(5.0, |_| {});
    assert!((network.delivered - before) as f64 > 0.98 * 2.0 * 2000.0);
    assert!(network.window.ssthresh != Packets::INFINITE);
}

#[test]
fn options_of_multipath_tcp_make_the_pace_keep_a_queue_unless_it_counts_headers() {
    // DSS takes 28 bytes of each segment.
    let queue = |paced| {
        let mut network =
            Network { options: 28, ..Network::with(Bbr { paced, ..Bbr::new(5, Version1) }, 2000.0, 0.05) };
        let mut least = f64::MAX;
        network.run(9.0, |n| {
            if n.now > 5.0 {
                least = least.min(n.link_free - n.now);
            }
        });
        least
    };
    assert!(queue(Pace::Linux) > 0.5 * 0.05, "{}", queue(Pace::Linux));
    assert!(queue(Pace::Packets) < 0.05 * 0.05, "{}", queue(Pace::Packets));
}

#[test]
fn random_loss_costs_no_more_than_what_is_lost() {
    let mut network = Network { lose_every: Some(37), ..Network::new(2000.0, 0.05) };
    network.run(2.0, |_| {});
    let before = network.delivered;
    network.run(8.0, |_| {});
    let share = (network.delivered - before) as f64 / (6.0 * 2000.0);
    assert!(share > 0.94, "{share} of the capacity with one packet in 37 lost");
    assert_eq!(network.bbr.policer.rate(), None);
}

#[test]
fn the_gain_cycles_through_its_eight_phases_for_about_a_round_trip_each() {
    let mut network = Network::new(2000.0, 0.05);
    network.run(1.0, |_| {});
    let mut phases: Vec<(usize, f64, f64)> = Vec::new();
    network.run(4.0, |n| {
        let Mode::ProbeBw { phase, .. } = n.bbr.mode else { panic!("{:?}", n.bbr.mode) };
        if phases.last().is_none_or(|&(last, ..)| last != phase) {
            phases.push((phase, n.now, n.pacing_gain()));
        }
    });
    assert!(phases.len() > 40);
    for pair in phases.windows(2) {
        assert_eq!(pair[1].0, (pair[0].0 + 1) % 8);
        assert!(pair[1].1 - pair[0].1 < 0.08, "{pair:?}");
    }
    for &(phase, _, gain) in &phases {
        assert_near(gain, CYCLE[phase], 0.02);
    }
    assert_eq!(CYCLE.iter().sum::<f64>(), 8.0);
}

#[test]
fn the_cycle_begins_anywhere_but_in_the_draining_phase() {
    let mut seen = [false; 8];
    let mut bbr = Bbr::new(1, Version1);
    for _ in 0..200 {
        bbr.begin_cycle(Instant::ZERO);
        let Mode::ProbeBw { phase, .. } = bbr.mode else { unreachable!() };
        seen[phase] = true;
    }
    assert_eq!(seen, [true, false, true, true, true, true, true, true]);
}

#[test]
fn every_ten_seconds_four_packets_for_200_ms_measure_the_round_trip_again() {
    // Ten round trips are shorter than ProbeRtt: without muting, the bandwidth would be forgotten.
    let mut network = Network::new(2000.0, 0.015);
    network.run(9.9, |_| {});
    let before = network.window.cwnd;
    let (mut began, mut ended, mut least) = (None, None, u32::MAX);
    network.run(11.5, |n| {
        if mode(n) == "probe-rtt" {
            began = began.or(Some(n.now));
            least = least.min(n.window.cwnd.floor());
        } else if began.is_some() {
            ended = ended.or(Some((n.now, n.window.cwnd)));
        }
    });
    let (ended_at, window) = ended.unwrap();
    let lasted = ended_at - began.unwrap();
    assert!((0.2..0.26).contains(&lasted), "{lasted}");
    assert!((10.0..10.1).contains(&began.unwrap()), "{began:?}");
    assert_eq!(least, 4);
    assert_near(window.as_f64(), before.as_f64(), 0.1);
    assert_near(network.bbr.rate().as_f64(), 2000.0, 0.01);
}

#[test]
fn a_round_without_data_does_not_count_as_one_without_growth() {
    let mut bbr = Bbr { round_start: true, ..Bbr::new(1, Version1) };
    bbr.bandwidth.add(1, Rate::new(100, Duration::from_secs(1)));
    for _ in 0..10 {
        bbr.check_full_pipe(&ack(1.0, 2, 0.1), true);
    }
    assert!(!bbr.full_pipe.reached());
    for _ in 0..4 {
        bbr.check_full_pipe(&ack(1.0, 2, 0.1), false);
    }
    assert!(bbr.full_pipe.reached());
}

#[test]
fn a_repair_of_heavy_loss_ends_startup_although_every_sample_lacks_data() {
    let after = |lost: u32, events: u32, repair: Repair| {
        let mut bbr = Bbr { round_start: false, repair, ..Bbr::new(1, Version1) };
        for event in 0..10 {
            let lost = if event < events { lost } else { 0 };
            bbr.check_full_pipe(&Ack { lost, ..ack(1.0, 10, 0.1) }, true);
        }
        bbr.round_start = true;
        bbr.check_full_pipe(&ack(1.1, 10, 0.1), true);
        bbr.full_pipe.reached()
    };
    // 6 losses at 6 acknowledgments, and 110 packets delivered.
    assert!(after(1, 6, Repair::Conserving));
    assert!(!after(3, 5, Repair::Conserving), "in five places only");
    assert!(!after(1, 6, Repair::None), "the repair is over");
}

#[test]
fn a_repair_conserves_packets_for_a_round_and_then_restores_the_window() {
    let all = [view(0, 100.0, 0.1)];
    let siblings = Siblings::new(&all, 0);
    let (mut bbr, mut window) = (Bbr::new(1, Version1), window(100.0));
    bbr.on_congestion(at(1.0), LossCause::FastRetransmit, &mut window, siblings);
    let rate = |prior_delivered| RateSample {
        delivered: 1,
        interval: Duration::from_millis(100),
        prior_delivered,
        ..RateSample::default()
    };
    let first = Ack { in_flight: 60, total_delivered: 500, lost: 3, ..ack(1.0, 2, 0.1) };
    bbr.on_ack(&first, &mut window, siblings);
    assert_eq!(window.cwnd, Packets::whole(62));
    bbr.on_ack(&Ack { in_flight: 59, total_delivered: 502, lost: 0, rate: rate(499), ..first }, &mut window, siblings);
    assert_eq!((window.cwnd, bbr.repair), (Packets::whole(62), Repair::Conserving));
    // A packet that was sent in the repair arrives: the round is over.
    bbr.on_ack(&Ack { in_flight: 59, total_delivered: 504, lost: 0, rate: rate(500), ..first }, &mut window, siblings);
    assert_eq!(bbr.repair, Repair::Growing);
    bbr.on_recovery_end(at(1.2), &mut window);
    assert_eq!((window.cwnd, bbr.repair), (Packets::whole(100), Repair::None));
}

#[test]
fn packets_that_leave_the_network_before_the_next_burst_are_not_counted() {
    let mut bbr = Bbr::new(1, Version1);
    bbr.update_bandwidth(&RateSample { delivered: 100, interval: Duration::from_secs(1), ..RateSample::default() });
    let window = Window { paced_until: at(1.025), ..window(100.0) };
    assert_eq!(bbr.in_network(10, at(1.0), &window), 8);
    assert_eq!(bbr.in_network(1, at(1.0), &window), 0);
    assert_eq!(bbr.in_network(10, at(1.1), &window), 10);
    bbr.paced = Pace::Packets;
    assert_eq!(bbr.in_network(10, at(1.0), &window), 10);
}

#[test]
fn a_pause_that_no_lack_of_data_explains_changes_nothing() {
    let (mut bbr, mut window) = (Bbr::new(1, Version1), window(100.0));
    bbr.on_restart(at(1.0), Duration::from_secs(1), false, &mut window);
    assert!(!bbr.idle_restart);
    bbr.on_restart(at(1.0), Duration::from_secs(1), true, &mut window);
    assert!(bbr.idle_restart);
}

#[test]
fn a_sample_without_enough_data_counts_only_if_it_is_the_fastest() {
    let mut bbr = Bbr::new(1, Version1);
    let sample = |delivered, app_limited| RateSample {
        delivered,
        interval: Duration::from_secs(1),
        app_limited,
        ..RateSample::default()
    };
    let mut after = |sample| {
        bbr.update_bandwidth(&sample);
        bbr.round += 1;
        bbr.rate().as_f64()
    };
    assert_eq!(after(sample(100, false)), 100.0);
    for _ in 0..30 {
        assert_eq!(after(sample(10, true)), 100.0);
    }
    assert_eq!(after(sample(110, true)), 110.0);
}
