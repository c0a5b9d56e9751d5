//! Dialogues with one link: send at this time, expect exactly this.
//!
//! Most links here send 2 Mb/s, so that 1500 bytes take 6 ms and 500 bytes take 2 ms.

mod support;

use anabranch_events::{DropCause, LinkEvent};
use anabranch_network::jitter::{Gamma, Normal, Uniform};
use anabranch_network::loss::{Bernoulli, EveryNth};
use anabranch_network::{
    AtEnd, Backlog, Change, DelayConfig, DirectionConfig, Jitter, Loss, LossAt, Opportunities, Probability,
    QueueConfig, RateConfig, Reordering, Steps, TokenBucketConfig,
};
use anabranch_units::{Bandwidth, Bytes, Duration, Instant};
use support::{Bench, Numbered, at, ms, probability};

/// 2 Mb/s, 20 ms, 64 kB.
fn plain() -> DirectionConfig {
    let mut config = DirectionConfig::new(Bandwidth::from_mbps(2), QueueConfig::drop_tail_bytes(64_000));
    config.delay = ms(20).into();
    config
}

fn every(n: u32) -> Loss {
    every_at(n, LossAt::Exit)
}

fn every_at(n: u32, at: LossAt) -> Loss {
    Loss::EveryNth(EveryNth { n, at })
}

fn dropped(at: Instant, cause: DropCause, bytes: u32) -> (Instant, LinkEvent) {
    (at, LinkEvent::Dropped { cause, bytes })
}

#[test]
fn links_can_move_between_threads() {
    fn movable<T: Send>(_: &T) {}
    movable(&Bench::new(&plain()).link);
}

#[test]
fn packets_are_serialised_and_then_propagate() {
    let mut bench = Bench::new(&plain());
    bench.send(at(0), 1500).send(at(0), 500).send(at(30), 1500);
    assert_eq!(bench.link.poll_timeout(), Some(at(56)));
    assert_eq!(bench.run_until(at(100)).arrivals_ms(), [(26, 0), (28, 1), (56, 2)]);
    assert_eq!(bench.link.poll_timeout(), None);
}

#[test]
fn the_timeout_is_the_arrival_and_not_a_nanosecond_earlier() {
    let mut bench = Bench::new(&plain());
    bench.send(at(0), 1500);
    assert_eq!(bench.link.poll_timeout(), Some(at(26)));
    assert_eq!(bench.link.poll_delivery(at(26) - Duration::from_nanos(1)), None);
    assert_eq!(bench.link.poll_delivery(at(26)).map(|packet| packet.number), Some(0));
}

#[test]
fn a_link_without_limits_delivers_at_once() {
    let config = DirectionConfig::new(Bandwidth::INFINITE, QueueConfig::drop_tail_packets(1));
    let mut bench = Bench::new(&config);
    bench.send(at(5), 1500).send(at(5), 1500).send(at(5), 40);
    assert_eq!(bench.run_until(at(5)).arrivals_ms(), [(5, 0), (5, 1), (5, 2)]);
}

#[test]
fn the_packet_in_service_does_not_count_as_waiting() {
    let mut config = plain();
    config.queue = QueueConfig::drop_tail_bytes(3000);
    let mut bench = Bench::new(&config);
    // One in service, two wait, the fourth does not fit; at 6 ms there is room again.
    bench.send(at(0), 1500).send(at(0), 1500).send(at(0), 1500).send(at(0), 1500).send(at(6), 1500);
    bench.run_until(at(100));
    let seen = bench.seen();
    assert_eq!(seen.order(), [0, 1, 2, 4]);
    assert_eq!(seen.log, [dropped(at(0), DropCause::Queue, 1500)]);
    // They waited 0, 6, 12 and 12 ms.
    assert_eq!(seen.queue_delay, (4, Some(Duration::from_micros(7500)), ms(12)));
}

#[test]
fn overhead_costs_time_but_is_not_counted() {
    let mut config = plain();
    config.overhead = 500;
    config.queue = QueueConfig::drop_tail_bytes(1500);
    let mut bench = Bench::new(&config);
    bench.send(at(0), 1500).send(at(0), 1500);
    assert_eq!(bench.run_until(at(100)).arrivals_ms(), [(28, 0), (36, 1)]);
    assert_eq!(bench.link.stats().delivered.bytes, 3000);
}

#[test]
fn packets_above_the_mtu_are_dropped() {
    let mut bench = Bench::new(&plain());
    bench.send(at(0), 1501).send(at(0), 1500).change(at(1), Change::Mtu(1400)).send(at(1), 1500).run_until(at(100));
    let seen = bench.seen();
    assert_eq!(seen.order(), [1]);
    let mtu = (at(1), LinkEvent::Changed { what: "mtu", rate: None });
    assert_eq!(seen.log, [dropped(at(0), DropCause::TooBig, 1501), mtu, dropped(at(1), DropCause::TooBig, 1500)]);
}

#[test]
fn a_change_of_rate_keeps_what_is_left_of_the_packet() {
    let mut bench = Bench::new(&plain());
    bench.send(at(0), 1500).send(at(0), 1500);
    // A third of the first packet has left; the rest takes 8 ms at 1 Mb/s, the second packet 12 ms.
    bench.change(at(2), Change::Rate(Bandwidth::from_mbps(1).into()));
    assert_eq!(bench.link.poll_timeout(), Some(at(30)));
    assert_eq!(bench.run_until(at(100)).arrivals_ms(), [(30, 0), (42, 1)]);
}

#[test]
fn rate_zero_keeps_packets_until_it_ends() {
    let mut bench = Bench::new(&plain());
    bench.send(at(0), 1500).change(at(3), Change::Rate(Bandwidth::ZERO.into())).send(at(4), 500);
    assert_eq!(bench.link.poll_timeout(), None);
    bench.change(at(1000), Change::Rate(Bandwidth::from_mbps(2).into()));
    assert_eq!(bench.run_until(at(2000)).arrivals_ms(), [(1023, 0), (1025, 1)]);
}

#[test]
fn a_shorter_delay_holds_for_later_departures_and_no_packet_overtakes() {
    let mut bench = Bench::new(&plain());
    bench.send(at(0), 1500).send(at(0), 1500).send(at(0), 1500).send(at(0), 1500);
    // The first has left at 6 ms, for arrival at 26; the second leaves at 12 and may not arrive at 13.
    bench.change(at(7), Change::Delay(ms(1).into()));
    assert_eq!(bench.run_until(at(100)).arrivals_ms(), [(26, 0), (26, 1), (26, 2), (26, 3)]);
    bench.send(at(100), 1500);
    assert_eq!(bench.run_until(at(200)).arrivals_ms(), [(107, 4)]);
}

#[test]
fn a_recorded_delay_is_that_of_the_departure() {
    let mut config = plain();
    let steps = Steps::new([(ms(10), ms(20)), (ms(10), ms(50))], AtEnd::Loop).unwrap();
    config.delay = DelayConfig::Table(steps.into());
    let mut bench = Bench::new(&config);
    bench.send(at(0), 1500).send(at(9), 500).send(at(60), 1500);
    assert_eq!(bench.run_until(at(200)).arrivals_ms(), [(26, 0), (61, 1), (86, 2)]);
}

#[test]
fn a_recorded_delay_begins_when_the_link_gets_it() {
    let mut bench = Bench::new(&plain());
    let steps = Steps::new([(ms(10), ms(20)), (ms(10), ms(50))], AtEnd::Loop).unwrap();
    bench.change(at(1005), Change::Delay(DelayConfig::Table(steps.into())));
    bench.send(at(1005), 1500).send(at(1010), 1500);
    // They leave 6 and 12 ms after the change.
    assert_eq!(bench.run_until(at(2000)).arrivals_ms(), [(1031, 0), (1067, 1)]);
}

#[test]
fn effects_can_begin_while_the_link_runs() {
    let reordering = Reordering { share: Probability::ONE, by: ms(9) };
    let jitter = Jitter::Gamma(Gamma { mean: ms(3), shape: 9.0, reorders: false });
    let arrivals = |change| {
        let mut bench = Bench::new(&plain());
        bench.change(at(0), change).send(at(0), 1500).run_until(at(100));
        bench.seen().arrivals
    };
    assert_eq!(arrivals(Change::Loss(every(1))), []);
    assert_eq!(arrivals(Change::Duplication(Probability::ONE)), [(at(26), 0), (at(26), 0)]);
    assert_eq!(arrivals(Change::Reordering(Some(reordering))), [(at(35), 0)]);
    assert!(arrivals(Change::Jitter(Some(jitter)))[0].0 > at(26));
    assert_eq!(arrivals(Change::Overhead(500)), [(at(28), 0)]);
}

/// The packet in service keeps the delay that it drew; its arrival must be the timeout although the link's least delay
/// has grown.
#[test]
fn a_packet_that_drew_a_short_delay_is_on_time_after_jitter_ends() {
    let mut early = 0;
    for seed in 0..20 {
        let mut config = plain();
        config.jitter = Some(Jitter::Uniform(Uniform { half_width: ms(10), reorders: true }));
        let mut bench = Bench::seeded(&config, seed);
        bench.send(at(0), 1500).change(at(1), Change::Jitter(None));
        // The host calls only at times that the link returned.
        early += usize::from(bench.run_until(at(100)).seen().arrivals[0].0 < at(26));
    }
    assert!((3..17).contains(&early), "{early}");
}

#[test]
fn a_cut_link_loses_what_it_has_not_sent_and_delivers_what_propagates() {
    let mut bench = Bench::new(&plain());
    bench.send(at(0), 1500).send(at(0), 1400).send(at(0), 1300);
    bench.change(at(10), Change::Up(false)).send(at(15), 1200);
    assert!(!bench.link.is_up());
    assert_eq!(bench.link.backlog(), Backlog::default());
    bench.change(at(16), Change::Up(false)).change(at(40), Change::Up(true)).send(at(40), 500).run_until(at(100));
    let seen = bench.seen();
    assert_eq!(seen.arrivals, [(at(26), 0), (at(62), 4)]);
    let expected = [
        (at(10), LinkEvent::Switched { up: false }),
        dropped(at(10), DropCause::Outage, 1400),
        dropped(at(10), DropCause::Outage, 1300),
        dropped(at(15), DropCause::Outage, 1200),
        (at(40), LinkEvent::Switched { up: true }),
    ];
    assert_eq!(seen.log, expected);
}

#[test]
fn each_drop_has_its_packet_where_they_are_kept() {
    let mut config = plain();
    config.loss = every(3);
    config.queue = QueueConfig::drop_tail_bytes(3_000);
    let mut bench = Bench::new(&config);
    bench.link.keep_dropped();
    // The fourth finds the queue full, the third is lost on the air, and the last two find the link cut or are cut with
    // it.
    for number in 0..5 {
        bench.link.send(at(0), Numbered { number, bytes: 1500 });
    }
    bench.link.advance(at(40));
    bench.link.send(at(40), Numbered { number: 5, bytes: 1500 });
    bench.link.change(at(41), Change::Up(false));
    bench.link.send(at(42), Numbered { number: 6, bytes: 1500 });
    let drained: Vec<_> =
        bench.link.drain_drops().map(|(_, event, packet)| (event, packet.map(|p| p.number))).collect();
    let lost = |cause, number| (LinkEvent::Dropped { cause, bytes: 1500 }, Some(number));
    let expected = [
        lost(DropCause::Queue, 3),
        lost(DropCause::Queue, 4),
        lost(DropCause::Random, 2),
        (LinkEvent::Switched { up: false }, None),
        lost(DropCause::Outage, 5),
        lost(DropCause::Outage, 6),
    ];
    assert_eq!(drained, expected);
}

#[test]
fn a_change_is_said_with_the_new_rate_and_a_cut_is_no_change() {
    let mut bench = Bench::new(&plain());
    bench
        .change(at(10), Change::Rate(Bandwidth::from_mbps(3).into()))
        .change(at(20), Change::Mtu(1_000))
        .change(at(30), Change::Up(false));
    let changed = |what, rate| LinkEvent::Changed { what, rate };
    let expected = [
        (at(10), changed("rate", Some(Bandwidth::from_mbps(3)))),
        (at(20), changed("mtu", None)),
        (at(30), LinkEvent::Switched { up: false }),
    ];
    assert_eq!(bench.run_until(at(40)).seen().log, expected);
}

#[test]
fn packets_lost_on_the_air_have_used_the_link() {
    let mut config = plain();
    config.loss = every(2);
    let mut bench = Bench::new(&config);
    bench.send(at(0), 1500).send(at(0), 1500).send(at(0), 1500);
    bench.run_until(at(100));
    let seen = bench.seen();
    assert_eq!(seen.arrivals, [(at(26), 0), (at(38), 2)]);
    assert_eq!(seen.log, [dropped(at(12), DropCause::Random, 1500)]);
}

#[test]
fn packets_lost_at_the_entry_cost_nothing() {
    let mut config = plain();
    config.loss = every_at(2, LossAt::Entry);
    let mut bench = Bench::new(&config);
    bench.send(at(0), 1500).send(at(1), 1500).send(at(2), 1500).run_until(at(100));
    let seen = bench.seen();
    assert_eq!(seen.arrivals, [(at(26), 0), (at(32), 2)]);
    assert_eq!(seen.log, [dropped(at(1), DropCause::Random, 1500)]);
}

#[test]
fn a_lost_packet_on_an_empty_pipe_does_not_hide_the_next_one() {
    let mut config = plain();
    config.loss = every(1);
    let mut bench = Bench::new(&config);
    bench.send(at(0), 1500).send(at(0), 1500).change(at(6), Change::Loss(Loss::NONE)).send(at(7), 500);
    // The second packet's transmission had begun at 6 ms, so it was lost as well; and no timeout was missed.
    assert_eq!(bench.run_until(at(100)).arrivals_ms(), [(34, 2)]);
}

#[test]
fn a_copy_arrives_right_after_its_original_and_uses_no_link_time() {
    let mut config = plain();
    config.duplication = Probability::ONE;
    let mut bench = Bench::new(&config);
    bench.send(at(0), 1500).send(at(0), 1500);
    assert_eq!(bench.run_until(at(100)).arrivals_ms(), [(26, 0), (26, 0), (32, 1), (32, 1)]);
    assert_eq!(bench.link.stats().duplicated.packets, 2);
}

#[test]
fn a_packet_held_back_is_overtaken() {
    let mut config = plain();
    config.reordering = Some(Reordering { share: Probability::ONE, by: ms(9) });
    let mut bench = Bench::new(&config);
    bench.send(at(0), 1500).send(at(0), 1500).send(at(0), 1500);
    // Only the first packet's transmission began before reordering ended.
    bench.change(at(1), Change::Reordering(None));
    assert_eq!(bench.run_until(at(100)).arrivals_ms(), [(32, 1), (35, 0), (38, 2)]);
}

#[test]
fn jitter_keeps_the_order_by_default() {
    let arrivals = |reorders| {
        let mut config = plain();
        config.jitter = Some(Jitter::Uniform(Uniform { half_width: ms(20), reorders }));
        let mut bench = Bench::new(&config);
        for n in 0..200 {
            bench.send(at(n), 100);
        }
        bench.run_until(at(1000)).seen()
    };
    let (ordered, free) = (arrivals(false), arrivals(true));
    assert!(ordered.order().is_sorted());
    assert!(!free.order().is_sorted());
    // Where nothing would have been overtaken, the delays are the same draws.
    let moment = |seen: &support::Seen, number| seen.arrivals.iter().find(|(_, n)| *n == number).unwrap().0;
    assert!((0..200).all(|number| moment(&ordered, number) >= moment(&free, number)));
    assert!((0..200).any(|number| moment(&ordered, number) == moment(&free, number)));
}

#[test]
fn a_smaller_queue_keeps_what_waits() {
    let mut bench = Bench::new(&plain());
    for _ in 0..5 {
        bench.send(at(0), 1500);
    }
    bench.change(at(1), Change::Queue(QueueConfig::drop_tail_packets(2))).send(at(1), 1500);
    // At 12 ms the third is in service and two wait; at 18 ms there is room for one more.
    bench.send(at(12), 1500).send(at(18), 1500).run_until(at(100));
    assert_eq!(bench.seen().order(), [0, 1, 2, 3, 4, 7]);
}

#[test]
fn a_token_bucket_lets_a_burst_pass_and_remembers_it_across_an_outage() {
    let mut config = plain();
    config.rate = RateConfig::TokenBucket(TokenBucketConfig::new(Bandwidth::from_mbps(2), Bytes(3000)));
    let mut bench = Bench::new(&config);
    for _ in 0..4 {
        bench.send(at(0), 1500);
    }
    // Two leave at once, the third at 6 ms; the fourth would at 12, but is cut at 9 and leaves its tokens.
    bench.change(at(9), Change::Up(false)).change(at(9), Change::Up(true)).send(at(9), 1500).send(at(9), 500);
    assert_eq!(bench.run_until(at(100)).arrivals_ms(), [(20, 0), (20, 1), (26, 2), (32, 4), (34, 5)]);
}

#[test]
fn recorded_opportunities_move_packets() {
    let mut config = plain();
    config.rate = RateConfig::Opportunities(Opportunities::parse("3\n10\n").unwrap().into());
    let mut bench = Bench::new(&config);
    bench.send(at(0), 1500).send(at(0), 1500).send(at(0), 700).send(at(0), 700);
    assert_eq!(bench.run_until(at(100)).arrivals_ms(), [(23, 0), (30, 1), (33, 2), (33, 3)]);
}

#[test]
fn a_link_that_starts_down_drops_until_it_comes_up() {
    let config = DirectionConfig { up: false, ..plain() };
    let mut bench = Bench::new(&config);
    bench.send(at(0), 1500).change(at(5), Change::Up(true)).send(at(5), 1500);
    assert_eq!(bench.run_until(at(100)).arrivals_ms(), [(31, 1)]);
}

/// The loss of the k-th packet depends on seed, name and k: not on rate, timing, sizes or other effects.
#[test]
fn the_same_packets_are_lost_whatever_else_happens() {
    let lost = |seed, gap_us: u64, change: &dyn Fn(&mut DirectionConfig)| {
        let mut config = plain();
        config.loss = Loss::independent(probability(0.1));
        change(&mut config);
        let mut bench = Bench::seeded(&config, seed);
        for n in 0..500 {
            let now = Instant::ZERO + Duration::from_micros(gap_us * n);
            bench.send(now, 100 + (n * gap_us % 900) as u32);
        }
        let order = bench.run_until(at(100_000)).seen().order();
        (0..500).filter(|number| !order.contains(number)).collect::<Vec<_>>()
    };
    let reference = lost(1, 8000, &|_| {});
    let at_entry = Loss::Bernoulli(Bernoulli { share: probability(0.1), at: LossAt::Entry });
    assert!((20..80).contains(&reference.len()));
    assert_eq!(lost(1, 6001, &|c| c.rate = Bandwidth::from_mbps(50).into()), reference);
    assert_eq!(lost(1, 7000, &|c| c.loss = at_entry.clone()), reference);
    let jitter = Jitter::Normal(Normal { deviation: ms(5), reorders: true });
    assert_eq!(lost(1, 8000, &|c| c.jitter = Some(jitter)), reference);
    assert_eq!(lost(1, 8000, &|c| c.duplication = probability(0.3)), reference);
    assert_ne!(lost(2, 8000, &|_| {}), reference);
}

#[test]
fn departures_are_what_the_server_did() {
    let mut config = plain();
    config.queue = QueueConfig::drop_tail_packets(2);
    config.loss = every(2);
    let mut bench = Bench::new(&config);
    bench.link.observe_departures();
    bench.send(at(0), 1500).send(at(0), 1500).send(at(0), 1500).send(at(0), 500);
    assert_eq!(bench.link.serving_since(), Some(at(0)));
    bench.link.change(at(14), Change::Up(false));
    let seen = bench.link.drain_departures();
    let seen: Vec<_> = seen.map(|d| (d.packet.number, d.began, d.at, d.dropped)).collect();
    let expected = [
        // The queue holds two packets besides the one in service.
        (3, None, at(0), Some(DropCause::Queue)),
        (0, Some(at(0)), at(6), None),
        (1, Some(at(6)), at(12), Some(DropCause::Random)),
        // The link is cut while this one is being sent.
        (2, Some(at(12)), at(14), Some(DropCause::Outage)),
    ];
    assert_eq!(seen, expected);
    assert_eq!(bench.link.serving_since(), None);
}
