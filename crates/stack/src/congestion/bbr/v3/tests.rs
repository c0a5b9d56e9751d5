use super::super::network::Network;
use super::bounds::BETA;
use super::*;
use crate::congestion::testing::{ack, assert_near, at, view, window};

/// The phase of each acknowledgment, each phase once in a row.
fn phases(network: &mut Network<Bbr3>, until: f64) -> Vec<Phase> {
    let mut seen: Vec<Phase> = Vec::new();
    network.run(until, |n| {
        if seen.last().is_none_or(|last| std::mem::discriminant(last) != std::mem::discriminant(&n.bbr.phase)) {
            seen.push(n.bbr.phase);
        }
    });
    seen
}

fn network(capacity: f64, base: f64) -> Network<Bbr3> {
    Network::with(Bbr3::new(5), capacity, base)
}

#[test]
fn it_finds_the_bandwidth_drains_and_cycles_through_four_phases() {
    let mut network = network(2000.0, 0.05);
    let seen = phases(&mut network, 4.5);
    // Drain leaves as little in flight as Down has to.
    let begin = [Phase::Startup, Phase::Drain, Phase::Cruise, Phase::Refill, Phase::Up, Phase::Down, Phase::Cruise];
    assert!(seen.starts_with(&begin), "{seen:?}");
    assert_near(network.bbr.rate().as_f64(), 2000.0, 0.01);
}

#[test]
fn a_single_path_is_used_in_full_with_a_queue_below_one_bandwidth_delay_product() {
    let mut network = network(2000.0, 0.05);
    network.run(3.0, |_| {});
    let (before, mut longest) = (network.delivered, 0.0_f64);
    network.run(23.0, |n| longest = longest.max(n.link_free - n.now));
    // 1 % is the pace's margin, about 3 % are what ProbeRtt leaves out every five seconds.
    let share = (network.delivered - before) as f64 / (20.0 * 2000.0);
    assert!(share > 0.95, "{share}");
    assert!(longest < 1.3 * 0.05, "{longest} s of queue in a probe");
}

#[test]
fn half_a_pipe_for_200_ms_measures_the_round_trip_where_none_so_low_was_seen_for_5_s() {
    let mut network = network(2000.0, 0.05);
    network.run(3.0, |_| {});
    // The route became longer, so that no sample is near the least round trip.
    network.base = 0.06;
    let (mut began, mut ended, mut least) = (None, None, u32::MAX);
    network.run(14.0, |n| {
        if matches!(n.bbr.phase, Phase::ProbeRtt { .. }) {
            began = began.or(Some(n.now));
            least = least.min(n.window.cwnd.floor());
        } else if began.is_some() {
            ended = ended.or(Some(n.now));
        }
    });
    let lasted = ended.unwrap() - began.unwrap();
    assert!((0.2..0.4).contains(&lasted), "{lasted}");
    assert!((45..=62).contains(&least), "{least} packets of about 100");
    assert_near(network.bbr.round_trip.least().unwrap().as_secs_f64(), 0.06, 0.03);
}

#[test]
fn a_loss_in_each_round_trip_costs_a_fifth_of_the_path_at_most() {
    let mut network = Network { lose_every: Some(101), ..network(2000.0, 0.05) };
    network.run(3.0, |_| {});
    let before = network.delivered;
    network.run(23.0, |_| {});
    // Each round trip with a loss takes the rate of the last one as its bound, and the pace stays 1 % below it, until
    // the next probe.
    let share = (network.delivered - before) as f64 / (20.0 * 2000.0);
    assert!(share > 0.8, "{share} of the capacity with one packet in 101 lost");
}

fn sample(sent_in_flight: u32, lost: u32) -> RateSample {
    RateSample {
        delivered: 80,
        interval: Duration::from_millis(100),
        prior_delivered: 0,
        app_limited: false,
        sent_in_flight,
        lost,
    }
}

/// After Startup: 1000 packets/s over 100 ms, so 100 packets fill the pipe; 500 packets were delivered.
fn cruising() -> Bbr3 {
    let mut bbr = Bbr3::new(1);
    bbr.bandwidth.add(Rate::new(1000, Duration::from_secs(1)));
    bbr.round_trip = RoundTrip::starting(Some(Duration::from_millis(100)), at(0.0));
    bbr.filled.reach();
    (bbr.started, bbr.rtt_known, bbr.mss) = (true, true, 1448);
    (bbr.phase, bbr.delivered, bbr.wait) = (Phase::Cruise, 500, Duration::from_secs(2));
    bbr
}

/// The dialogue: the pipe holds 100 packets. A probe at 150 packets in flight loses 4, which is above 2 %; the bound is
/// 150, and 128 while cruising. Then losses without a probe: 0.7 · 128, but no less than was delivered.
#[test]
fn a_dialogue_of_a_probe_that_loses_too_much_and_of_losses_without_one() {
    let all = [view(0, 150.0, 0.1)];
    let siblings = Siblings::new(&all, 0);
    let (mut bbr, mut window) = (cruising(), window(150.0));
    (bbr.phase, bbr.sampling, bbr.feedback) = (Phase::Up, true, Feedback::Arriving);
    let arriving = Ack { in_flight: 149, prior_in_flight: 150, total_delivered: 501, ..ack(1.0, 1, 0.15) };
    // 3 of 150 are 2 %, which is not above.
    let fair = Ack { lost: 3, rate: sample(150, 3), ..arriving };
    bbr.on_ack(&fair, &mut window, siblings);
    assert_eq!((bbr.phase, bbr.bounds.inflight), (Phase::Up, None));
    let heavy = Ack { lost: 1, rate: sample(150, 4), ..arriving };
    bbr.on_ack(&heavy, &mut window, siblings);
    assert_eq!((bbr.phase, bbr.bounds.inflight), (Phase::Down, Some(150)));
    assert_eq!(bbr.pacing_gain(), 0.9);
    // 100 in flight are the pipe's, and below 150 − 22.
    let drained = Ack { in_flight: 100, prior_in_flight: 101, total_delivered: 550, ..ack(1.05, 1, 0.12) };
    bbr.on_ack(&drained, &mut window, siblings);
    assert_eq!((bbr.phase, window.cwnd), (Phase::Cruise, Packets::whole(128)));
    // A loss begins a round; the first packet sent after it ends it.
    let lossy = Ack { lost: 1, total_delivered: 551, rate: sample(100, 1), ..drained };
    bbr.on_ack(&lossy, &mut window, siblings);
    assert_eq!(bbr.bounds.short_inflight, None);
    let next = Ack { total_delivered: 630, rate: RateSample { prior_delivered: 551, ..sample(100, 1) }, ..drained };
    bbr.on_ack(&next, &mut window, siblings);
    // 80 packets in 100 ms were delivered: more than 0.7 · 1000 packets/s, and less than 0.7 · 128 packets.
    assert_eq!(bbr.bounds.short_inflight, Some((128.0 * BETA) as u32));
    assert_near(bbr.rate().as_f64(), 800.0, 1e-6);
    assert_eq!(window.cwnd, Packets::whole(89));
}

#[test]
fn what_was_no_loss_changes_nothing() {
    let (mut bbr, mut window) = (cruising(), window(150.0));
    bbr.bounds.inflight = Some(150);
    (bbr.phase, bbr.sampling) = (Phase::Up, true);
    bbr.note_loss(&window);
    bbr.on_too_much_in_flight(&sample(120, 5), at(1.0), &window);
    assert_eq!((bbr.phase, bbr.bounds.inflight), (Phase::Down, Some(120)));
    bbr.on_undo(at(1.1), &mut window);
    assert_eq!((bbr.phase, bbr.bounds.inflight), (Phase::Refill, Some(150)));
}

#[test]
fn the_bound_grows_by_one_two_and_four_packets_in_the_round_trips_of_a_probe() {
    let (mut bbr, window) = (cruising(), window(100.0));
    (bbr.phase, bbr.bounds.inflight) = (Phase::Up, Some(100));
    let mut steps = Vec::new();
    for _ in 0..3 {
        bbr.steepen(&window);
        steps.push(bbr.per_increment.unwrap());
    }
    assert_eq!(steps, [100, 50, 25], "packets acknowledged for one more");
}

#[test]
fn heavy_loss_in_startup_ends_it_with_a_bound() {
    let (mut bbr, mut window) = (cruising(), window(150.0));
    (bbr.phase, bbr.filled, bbr.repairing) = (Phase::Startup, FullPipe::default(), true);
    bbr.signals.delivered = 130;
    for _ in 0..6 {
        bbr.check_startup(&Ack { lost: 1, ..ack(1.0, 10, 0.1) }, &sample(150, 1), &mut window);
    }
    assert_eq!(bbr.phase, Phase::Startup);
    bbr.round_start = true;
    bbr.check_startup(&ack(1.1, 10, 0.1), &sample(150, 6), &mut window);
    assert_eq!((bbr.phase, bbr.bounds.inflight), (Phase::Drain, Some(130)));
}
