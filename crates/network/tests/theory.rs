//! Whole links against closed formulas and published traces.

mod support;

use anabranch_events::DropCause;
use anabranch_network::loss::GilbertElliott;
use anabranch_network::{
    AtEnd, CoDelConfig, ColumnName, DirectionConfig, Loss, LossAt, Opportunities, QueueConfig, QueueLimit,
    QueueParameters, RateAndLatency, RateConfig, RateUnit, Reading, RecordedRate, RedConfig, Steps, TableHints,
    TraceError, TraceHints,
};
use anabranch_units::{Bandwidth, Duration, Instant};
use std::path::PathBuf;
use support::{Bench, at, probability};

/// Sends packets of 1000 bytes, one every `gap_us`, for `seconds`; then runs the link empty.
fn load(config: &DirectionConfig, gap_us: u64, seconds: u64) -> Bench {
    let mut bench = Bench::new(config);
    for n in 0..seconds * 1_000_000 / gap_us {
        bench.send(Instant::ZERO + Duration::from_micros(gap_us * n), 1000);
    }
    bench
}

/// 8 Mb/s: 1000 bytes per millisecond.
fn eight_megabits(queue: QueueConfig) -> DirectionConfig {
    DirectionConfig::new(Bandwidth::from_mbps(8), queue)
}

#[test]
fn the_loss_on_a_link_is_the_models() {
    let burst = Loss::GilbertElliott(GilbertElliott {
        good_to_bad: probability(0.01),
        bad_to_good: probability(0.25),
        loss_in_good: probability(0.001),
        loss_in_bad: probability(0.6),
        at: LossAt::Exit,
    });
    for loss in [Loss::independent(probability(0.02)), burst] {
        let config = DirectionConfig { loss: loss.clone(), ..eight_megabits(QueueConfig::drop_tail_packets(10)) };
        let bench = load(&config, 1_000, 1000);
        let stats = bench.link.stats();
        let share = stats.dropped(DropCause::Random).packets as f64 / stats.sent.packets as f64;
        assert!((share / loss.long_run_rate() - 1.0).abs() < 0.05, "{loss:?}: {share}");
    }
}

/// Under a steady overload RED must drop just the excess, so its queue settles where the formula gives that
/// probability. Spaced drops are 1 to 1/p apart, (1 + 1/p) / 2 on average: a share f of drops needs p = f / (2 - f).
#[test]
fn red_settles_where_its_probability_equals_the_excess() {
    let red = RedConfig {
        min: Some(QueueLimit::Packets(20)),
        max: Some(QueueLimit::Packets(120)),
        ..RedConfig::with_limit(QueueLimit::Packets(1000))
    };
    for gap_us in [990, 950, 920] {
        let bench = load(&eight_megabits(QueueConfig::Red(red)), gap_us, 400);
        let excess = 1.0 - gap_us as f64 / 1000.0;
        let p = excess / (2.0 - excess);
        let queue = 20.0 + p / red.max_probability.as_f64() * 100.0;
        // Each waiting packet costs a millisecond.
        let waited = bench.link.stats().queue_delay.mean().unwrap().as_secs_f64() * 1e3;
        assert!((waited / queue - 1.0).abs() < 0.05, "gap {gap_us}: {waited} ms instead of {queue}");
    }
}

/// CoDel's drops come ever faster until they match even an excess that does not answer to them; drop-tail just fills.
#[test]
fn codel_shortens_a_standing_queue_that_drop_tail_keeps() {
    let limit = QueueLimit::Packets(200);
    let waiting = |queue| load(&eight_megabits(queue), 980, 120).link.backlog().packets;
    // 2 % of excess, 20 packets per second, need a pause of 50 ms between drops, reached at the fourth drop.
    let (tail, codel) =
        (waiting(QueueConfig::drop_tail_packets(200)), waiting(QueueConfig::CoDel(CoDelConfig::with_limit(limit))));
    assert!(tail >= 199, "{tail}");
    assert!(codel < 20, "{codel}");
}

#[test]
fn so_many_opportunities_per_second_move_so_many_packets() {
    for per_second in [1u64, 83, 1000, 7919] {
        // An uneven trace of one second; the last opportunity closes it.
        let times = (1..=per_second).map(|n| Duration::from_millis((n * n * 1000).div_ceil(per_second * per_second)));
        let trace = Opportunities::new(times).unwrap();
        assert_eq!(trace.mean_rate(), Bandwidth::from_bps(per_second * 12_000));
        let queue = QueueConfig::drop_tail_packets(100_000);
        let mut bench = Bench::new(&DirectionConfig::new(RateConfig::Opportunities(trace.into()), queue));
        for n in 0..per_second * 5 + 5 {
            bench.send(at(0), if n % 2 == 0 { 1400 } else { 1500 });
        }
        // 1450 bytes on average; the packet in service may be up to one packet ahead of whole ones.
        let delivered = bench.run_until(at(5_000)).link.stats().delivered.bytes;
        let possible = per_second * 5 * 1500;
        let sent = bench.link.stats().sent.bytes;
        assert!(delivered <= possible.min(sent) && delivered + 1500 > possible.min(sent), "{delivered} of {possible}");
    }
}

fn recorded(name: &str) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces").join(name);
    let text = std::fs::read_to_string(path).ok();
    if text.is_none() {
        eprintln!("skipped: no recorded trace {name} here");
    }
    text
}

/// Keeps a link busy for a while, and returns the rate at which packets arrive.
fn goodput(rate: RateConfig, seconds: u64) -> f64 {
    let mut bench = Bench::new(&DirectionConfig::new(rate, QueueConfig::drop_tail_packets(1_000_000)));
    let mut now = Instant::ZERO;
    let end = Instant::ZERO + Duration::from_secs(seconds);
    while now < end {
        // Enough for 100 ms at the highest rates that occur, without filling memory at lower ones.
        while bench.link.backlog().packets < 3000 {
            bench.send(now, 1500);
        }
        now += Duration::from_millis(20);
        bench.run_until(now);
    }
    bench.link.stats().delivered.bytes as f64 * 8.0 / seconds as f64
}

#[test]
fn recorded_wifi_and_cellular_pairs_are_read_and_followed() {
    for (name, first, rows) in [("7_1_wifi", 5_471_526, 100), ("7_1_cellular", 2_459_130, 100)] {
        let Some(text) = recorded(&format!("paired_wifi_cellular/{name}.csv")) else { return };
        let steps =
            table(&text, TableHints { unit: Some(RateUnit::BYTES_PER_SECOND), ..TableHints::default() }).unwrap();
        assert_eq!(steps.period(), Duration::from_secs(rows));
        assert_eq!(steps.value_at(Duration::ZERO), Bandwidth::from_bps(first * 8));
        let mean = steps.mean_rate().as_bps() as f64;
        let measured = goodput(RateConfig::Table(steps.into()), rows);
        assert!((measured / mean - 1.0).abs() < 0.001, "{name}: {measured} of {mean}");
    }
}

#[test]
fn recorded_mahimahi_traces_are_read_and_followed() {
    for (name, lines, period_ms) in
        [("ATT-LTE-driving-2016.down", 45_604, 120_002), ("Verizon-LTE-short.up", 69_367, 140_000)]
    {
        let Some(text) = recorded(&format!("mahimahi/{name}")) else { return };
        let trace = Opportunities::parse(&text).unwrap();
        assert_eq!(trace.period(), Duration::from_millis(period_ms));
        let mean = trace.mean_rate().as_bps() as f64;
        assert!((mean / (f64::from(lines) * 12_000.0 / (period_ms as f64 / 1e3)) - 1.0).abs() < 1e-6);
        // Two passes, nearly.
        let measured = goodput(RateConfig::Opportunities(trace.into()), period_ms / 500);
        assert!((measured / mean - 1.0).abs() < 0.01, "{name}: {measured} of {mean}");
    }
}

/// A table of time and rate.
fn table(text: &str, table: TableHints) -> Result<Steps<Bandwidth>, TraceError> {
    let read = Reading::of(text.as_bytes(), &TraceHints { table, ..TraceHints::default() })?;
    match read.recording.rate {
        RecordedRate::Table(steps) => Ok(steps),
        RecordedRate::Opportunities(_) => panic!("{:?}", read.understood),
    }
}

/// Every recorded trace in this folder whose name ends like this.
fn all_recorded(folder: &str, extension: &str) -> Vec<(PathBuf, String)> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces").join(folder);
    let Ok(entries) = std::fs::read_dir(path) else {
        eprintln!("skipped: no recorded traces {folder} here");
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let wanted = paths.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(extension) && !name.starts_with("LICENSE")
    });
    wanted.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn every_recorded_table_is_read() {
    let folders = [
        ("paired_wifi_cellular", ".csv", Some(RateUnit::BYTES_PER_SECOND), None),
        ("solis_wifi", ".txt", Some(RateUnit::MEGABITS_PER_SECOND), None),
        ("lumos_4g5g", ".txt", Some(RateUnit::MEGABITS_PER_SECOND), None),
        ("starlink_cellular", ".csv", None, Some(ColumnName::Number(1))),
    ];
    for (folder, extension, unit, rate_column) in folders {
        for (path, text) in all_recorded(folder, extension) {
            let rate_column = rate_column.clone();
            let steps = table(&text, TableHints { unit, rate_column, ..TableHints::default() });
            let steps = steps.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(steps.period() >= Duration::from_secs(10), "{}: {}", path.display(), steps.period());
            let mean = steps.mean_rate().as_bps();
            assert!((100_000..4_000_000_000).contains(&mean), "{}: {mean}", path.display());
        }
    }
    let third = TableHints { rate_column: Some(ColumnName::Name("tmobile_mbps".into())), ..TableHints::default() };
    if let Some(text) = recorded("starlink_cellular/drive_00.csv") {
        assert_eq!(table(&text, third).unwrap().value_at(Duration::ZERO), Bandwidth::from_mbps(190));
    }
}

#[test]
fn every_recorded_json_list_is_read() {
    for folder in ["sabre/4Glogs", "sabre/3Glogs", "sabre/hd_fs", "sabre/sd_fs"] {
        for (path, text) in all_recorded(folder, ".json") {
            let trace = RateAndLatency::parse_json(&text, AtEnd::Loop);
            let trace = trace.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(trace.latency.map(|latency| latency.period()), Some(trace.rate.period()));
        }
    }
    if let Some(text) = recorded("sabre/4Glogs/report_bicycle_0001.json") {
        let trace = RateAndLatency::parse_json(&text, AtEnd::Loop).unwrap();
        assert_eq!(trace.rate.value_at(Duration::from_millis(840)), Bandwidth::from_bps(22_485_000));
        assert_eq!(trace.latency.unwrap().value_at(Duration::ZERO), Duration::from_millis(20));
    }
}
