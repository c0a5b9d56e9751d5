//! Invariants of every link, every load and every pattern of calls.

mod support;

use anabranch_events::LinkEvent;
use anabranch_network::jitter::{Gamma, Normal, Uniform};
use anabranch_network::loss::{Bernoulli, EveryNth, GilbertElliott, GilbertElliottTime};
use anabranch_network::{
    AtEnd, Change, CoDelConfig, DelayConfig, DirectionConfig, Jitter, Loss, LossAt, Opportunities, Probability, QUEUES,
    QueueConfig, QueueLimit, RateConfig, RedConfig, Reordering, Steps, TokenBucketConfig,
};
use anabranch_units::{Bandwidth, Bytes, Duration, Instant};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use support::{Bench, Seen, Step};

const MTU: u32 = 1500;

fn micros(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_micros)
}

fn bandwidth() -> impl Strategy<Value = Bandwidth> {
    prop_oneof![
        4 => (100_000..50_000_000u64).prop_map(Bandwidth::from_bps),
        1 => Just(Bandwidth::INFINITE),
        1 => Just(Bandwidth::ZERO),
    ]
}

fn table() -> impl Strategy<Value = Steps<Bandwidth>> {
    let end = prop_oneof![Just(AtEnd::Loop), Just(AtEnd::Hold)];
    (vec((micros(1..20_000), bandwidth()), 1..6), end).prop_map(|(steps, end)| Steps::new(steps, end).unwrap())
}

fn opportunities() -> impl Strategy<Value = Opportunities> {
    vec(0..8u64, 1..12).prop_map(|gaps| {
        let times = gaps.iter().scan(1, |now, gap| {
            *now += gap;
            Some(Duration::from_millis(*now))
        });
        Opportunities::new(times).unwrap()
    })
}

fn token_bucket() -> impl Strategy<Value = TokenBucketConfig> {
    let peak = option::of(1..4u64);
    (100_000..20_000_000u64, 1600..20_000u64, peak).prop_map(|(bps, burst, factor)| TokenBucketConfig {
        rate: Bandwidth::from_bps(bps),
        burst: Bytes(burst),
        peak: factor.map_or(Bandwidth::INFINITE, |factor| Bandwidth::from_bps(bps * factor)),
    })
}

fn rate() -> impl Strategy<Value = RateConfig> {
    prop_oneof![
        bandwidth().prop_map(RateConfig::from),
        token_bucket().prop_map(RateConfig::TokenBucket),
        table().prop_map(|steps| RateConfig::Table(steps.into())),
        opportunities().prop_map(|trace| RateConfig::Opportunities(trace.into())),
    ]
}

fn queue() -> impl Strategy<Value = QueueConfig> {
    let limit = prop_oneof![(1500..40_000u64).prop_map(QueueLimit::Bytes), (1..30u64).prop_map(QueueLimit::Packets)];
    (0..QUEUES.len(), limit).prop_map(|(kind, limit)| match (QUEUES[kind].create)(limit) {
        // The recommended parameters need minutes to show; these act within a few packets.
        QueueConfig::Red(config) => QueueConfig::Red(RedConfig { weight_exponent: 2, ..config }),
        QueueConfig::CoDel(config) => QueueConfig::CoDel(CoDelConfig {
            target: Duration::from_millis(1),
            interval: Duration::from_millis(5),
            ..config
        }),
        config => config,
    })
}

fn chance() -> impl Strategy<Value = Probability> {
    (0..=100u32).prop_map(|percent| support::probability(f64::from(percent) / 100.0))
}

fn loss() -> impl Strategy<Value = Loss> {
    let at = || prop_oneof![Just(LossAt::Entry), Just(LossAt::Exit)];
    prop_oneof![
        Just(Loss::NONE),
        (chance(), at()).prop_map(|(share, at)| Loss::Bernoulli(Bernoulli { share, at })),
        (chance(), chance(), chance(), chance(), at()).prop_map(
            |(good_to_bad, bad_to_good, loss_in_good, loss_in_bad, at)| {
                Loss::GilbertElliott(GilbertElliott { good_to_bad, bad_to_good, loss_in_good, loss_in_bad, at })
            }
        ),
        (1..5u32, at()).prop_map(|(n, at)| Loss::EveryNth(EveryNth { n, at })),
        (micros(1..20_000), micros(1..20_000), chance(), chance(), at()).prop_map(
            |(good, bad, loss_in_good, loss_in_bad, at)| {
                Loss::GilbertElliottTime(GilbertElliottTime { good, bad, loss_in_good, loss_in_bad, at })
            }
        ),
    ]
}

/// The shortest delay, in microseconds; jitter never reaches further below.
const LEAST_DELAY: u64 = 3_000;

fn delay() -> impl Strategy<Value = DelayConfig> {
    let length = || micros(LEAST_DELAY..60_000);
    let steps = vec((micros(1..30_000), length()), 1..5);
    prop_oneof![
        length().prop_map(DelayConfig::Constant),
        steps.prop_map(|steps| DelayConfig::Table(Steps::new(steps, AtEnd::Loop).unwrap().into())),
    ]
}

fn jitter() -> impl Strategy<Value = Jitter> {
    any::<bool>().prop_flat_map(jitter_that)
}

/// Jitter with which packets may overtake each other, or not.
fn jitter_that(reorders: bool) -> impl Strategy<Value = Jitter> {
    prop_oneof![
        micros(0..LEAST_DELAY).prop_map(move |half_width| Jitter::Uniform(Uniform { half_width, reorders })),
        micros(0..LEAST_DELAY / 3).prop_map(move |deviation| Jitter::Normal(Normal { deviation, reorders })),
        (micros(0..9_000), 10..50u32).prop_map(move |(mean, tenths)| {
            Jitter::Gamma(Gamma { mean, shape: f64::from(tenths) / 10.0, reorders })
        }),
    ]
}

fn reordering() -> impl Strategy<Value = Reordering> {
    (chance(), micros(0..20_000)).prop_map(|(share, by)| Reordering { share, by })
}

prop_compose! {
    fn config()(
        rate in rate(), queue in queue(), delay in delay(), jitter in option::of(jitter()),
        reordering in option::of(reordering()), duplication in chance(), loss in loss(),
        overhead in 0..60u32, up in prop::bool::weighted(0.9),
    ) -> DirectionConfig {
        DirectionConfig { rate, queue, delay, jitter, reordering, duplication, loss, mtu: MTU, reports_too_big: false, overhead, up }
    }
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        rate().prop_map(Change::Rate),
        queue().prop_map(Change::Queue),
        delay().prop_map(Change::Delay),
        option::of(jitter()).prop_map(Change::Jitter),
        option::of(reordering()).prop_map(Change::Reordering),
        chance().prop_map(Change::Duplication),
        loss().prop_map(Change::Loss),
        (600..=MTU).prop_map(Change::Mtu),
        (0..60u32).prop_map(Change::Overhead),
        any::<bool>().prop_map(Change::Up),
    ]
}

/// Gaps between steps: often none, so that things coincide, often a round number of milliseconds, as in traces.
fn gap() -> impl Strategy<Value = Duration> {
    prop_oneof![
        3 => Just(Duration::ZERO),
        3 => micros(0..1_000),
        3 => (1..10u64).prop_map(Duration::from_millis),
        1 => micros(0..80_000),
    ]
}

fn script() -> impl Strategy<Value = Vec<(Instant, Step)>> {
    let step = prop_oneof![20 => (20..=MTU + 20).prop_map(Step::Send), 3 => change().prop_map(Step::Change)];
    timed(vec((gap(), step), 1..120))
}

fn sends() -> impl Strategy<Value = Vec<(Instant, Step)>> {
    timed(vec((gap(), (20..=MTU).prop_map(Step::Send)), 1..120))
}

fn timed(steps: impl Strategy<Value = Vec<(Duration, Step)>>) -> impl Strategy<Value = Vec<(Instant, Step)>> {
    steps.prop_map(|steps| {
        let timed = steps.into_iter().scan(Instant::ZERO, |now, (gap, step)| {
            *now += gap;
            Some((*now, step))
        });
        timed.collect()
    })
}

/// Long after every script; links of rate zero never finish, so packets may stay inside.
fn the_end() -> Instant {
    Instant::ZERO + Duration::from_secs(3600)
}

/// A host that takes every delivery at the link's timeout.
fn attentive(config: &DirectionConfig, script: &[(Instant, Step)]) -> Seen {
    let mut bench = Bench::new(config);
    for (now, step) in script {
        bench.step(*now, step);
        bench.assert_conserved();
    }
    bench.run_until(the_end()).look(the_end());
    bench.assert_conserved();
    bench.seen()
}

proptest! {
    /// Polling more often changes nothing, and (as `Step::Look` asserts) finds nothing before the link's timeout.
    #[test]
    fn looking_more_often_changes_nothing(config in config(), script in script(), looks in vec(0..300_000u64, 0..200)) {
        let mut eager_script = script.clone();
        let end = script.last().unwrap().0.as_nanos() / 1_000;
        eager_script.extend(looks.iter().map(|us| (Instant::from_nanos(us % (end + 100_000) * 1_000), Step::Look)));
        // A stable sort: looks come after the steps of the same moment.
        eager_script.sort_by_key(|(now, _)| *now);
        prop_assert_eq!(attentive(&config, &script), attentive(&config, &eager_script));
    }

    /// Polling at the time of a step, right before it, changes nothing either.
    #[test]
    fn looking_right_before_each_step_changes_nothing(config in config(), script in script()) {
        let with_looks: Vec<_> = script.iter().flat_map(|(now, step)| [(*now, Step::Look), (*now, step.clone())]).collect();
        prop_assert_eq!(attentive(&config, &script), attentive(&config, &with_looks));
    }

    /// A host that polls only at the end gets the same packets in the same order.
    #[test]
    fn not_looking_at_all_changes_nothing_but_the_time_of_taking(config in config(), script in script()) {
        let mut bench = Bench::new(&config);
        for (now, step) in &script {
            bench.step_blindly(*now, step);
            bench.assert_conserved();
        }
        let blind = bench.look(the_end()).seen();
        let attentive = attentive(&config, &script);
        prop_assert_eq!(blind.order(), attentive.order());
        prop_assert_eq!(blind.log, attentive.log);
        prop_assert_eq!(blind.packets, attentive.packets);
        prop_assert_eq!(blind.queue_delay, attentive.queue_delay);
    }

    #[test]
    fn without_reordering_packets_stay_in_order(
        config in config(), jitter in option::of(jitter_that(false)), script in script(),
    ) {
        let config = DirectionConfig { reordering: None, jitter, ..config };
        let ordered = |step: &Step| !matches!(step, Step::Change(Change::Jitter(_) | Change::Reordering(_)));
        let script: Vec<_> = script.into_iter().filter(|(_, step)| ordered(step)).collect();
        prop_assert!(attentive(&config, &script).order().is_sorted());
    }

    /// Between any two departures no more passes than the rate allows, and a busy link loses less than a nanosecond
    /// each.
    #[test]
    fn the_rate_is_never_exceeded(bps in 10_000..100_000_000u64, overhead in 0..60u32, script in sends()) {
        let mut config = DirectionConfig::new(Bandwidth::from_bps(bps), QueueConfig::drop_tail_bytes(1 << 20));
        config.overhead = overhead;
        let departures = departures(&config, &script);
        prop_assert_eq!(departures.len(), script.len());
        for (first, (from, _)) in departures.iter().enumerate() {
            let mut bytes = 0;
            for (to, size) in &departures[first + 1..] {
                bytes += u64::from(size + overhead);
                let possible = Bandwidth::from_bps(bps).bytes_in(to.since(*from));
                prop_assert!(bytes <= possible, "{bytes} bytes in {}", to.since(*from));
            }
        }
        // All together: the last one leaves at the end of a busy period, no later than all bytes after the last step.
        let total: u64 = departures.iter().map(|(_, size)| u64::from(size + overhead)).sum();
        let latest = script.last().unwrap().0 + Bandwidth::from_bps(bps).time_to_send(total);
        prop_assert!(departures.last().unwrap().0 <= latest + Duration::from_nanos(departures.len() as u64));
    }

    /// In any interval of length t at most burst + rate t bytes leave, and at most peak t besides one packet.
    #[test]
    fn a_token_bucket_keeps_its_bound(bucket in token_bucket(), script in sends()) {
        let config = DirectionConfig::new(RateConfig::TokenBucket(bucket), QueueConfig::drop_tail_bytes(1 << 20));
        let departures = departures(&config, &script);
        prop_assert_eq!(departures.len(), script.len());
        for (first, (from, _)) in departures.iter().enumerate() {
            let mut bytes = 0;
            for (nth, (to, size)) in departures[first..].iter().enumerate() {
                bytes += u64::from(*size);
                let time = to.since(*from);
                prop_assert!(bytes <= bucket.burst.0 + bucket.rate.bytes_in(time), "{bytes} bytes in {time}");
                if nth > 0 {
                    let after_the_first = bytes - u64::from(departures[first].1);
                    prop_assert!(after_the_first <= bucket.peak.bytes_in(time) || bucket.peak == Bandwidth::INFINITE);
                }
            }
        }
    }

    /// A table of rates does just what the same changes do, one after the other.
    #[test]
    fn a_table_equals_scheduled_changes(steps in vec((micros(1..20_000), bandwidth()), 1..8), script in sends()) {
        let queue = QueueConfig::drop_tail_bytes(20_000);
        let table = Steps::new(steps.clone(), AtEnd::Hold).unwrap();
        let by_table = attentive(&DirectionConfig::new(RateConfig::Table(table.into()), queue.clone()), &script);

        let mut changed = Vec::new();
        let mut now = Instant::ZERO;
        for (length, rate) in &steps {
            changed.push((now, Step::Change(Change::Rate((*rate).into()))));
            now += *length;
        }
        changed.extend(script);
        changed.sort_by_key(|(now, _)| *now);
        let mut by_changes = attentive(&DirectionConfig::new(Bandwidth::ZERO, queue), &changed);
        // The changes themselves are said.
        by_changes.log.retain(|(_, event)| !matches!(event, LinkEvent::Changed { .. }));
        prop_assert_eq!(by_table, by_changes);
    }

    /// Up to any moment no more has left than the opportunities so far could move.
    #[test]
    fn opportunities_are_not_exceeded(trace in opportunities(), script in sends()) {
        let config = DirectionConfig::new(RateConfig::Opportunities(trace.clone().into()), QueueConfig::drop_tail_bytes(1 << 20));
        let departures = departures(&config, &script);
        prop_assert_eq!(departures.len(), script.len());
        // Per period, mean rate times period is 1500 bytes per opportunity; one more period covers the phase.
        let per_period = trace.mean_rate().bytes_in(trace.period()) + 1;
        let mut bytes = 0;
        for (time, size) in &departures {
            bytes += u64::from(*size);
            let periods = time.as_nanos() / trace.period().as_nanos() + 1;
            prop_assert!(bytes <= periods * per_period);
            prop_assert_eq!(time.as_nanos() % 1_000_000, 0, "off the millisecond");
        }
    }
}

/// When each packet left a link without delay, and its size.
fn departures(config: &DirectionConfig, script: &[(Instant, Step)]) -> Vec<(Instant, u32)> {
    let sizes: Vec<u32> =
        script.iter().map(|(_, step)| if let Step::Send(bytes) = step { *bytes } else { 0 }).collect();
    let seen = attentive(config, script);
    seen.arrivals.into_iter().map(|(time, number)| (time, sizes[number as usize])).collect()
}
