//! Upstream Linux's scheduler and its way with a path that goes silent: the kernel at both ends of our links, compared
//! with the simulation of the same. `docs/validation/wire.md` records the results.

use crate::common::kernel::{self, MPTCP};
use crate::common::{asked_for, require};
use crate::kernel_to_kernel::{Outcome, assert_intact, transfer_to};
use anabranch_live::Tap;
use anabranch_network::Change;
use anabranch_observation::{Column, EventColumns};
use anabranch_sim::RunOptions;
use anabranch_testnet::requirements::NSTAT;
use anabranch_testnet::{Script, Step, When, sites::Family};
use anabranch_units::{Duration, Instant, LinkDirection, PathId};

/// A silent cut of a path, and its restoration.
#[derive(Clone, Copy)]
struct Cut {
    path: u16,
    at_s: f64,
    until_s: f64,
}

/// Rates in Mb/s and one-way delays in ms, the same in both directions, with queues of 64 kB.
type Paths = &'static [(u64, u64)];

/// A network and a transfer over it.
struct Case {
    name: &'static str,
    paths: Paths,
    megabytes: u64,
    cut: Option<Cut>,
}

/// With packets later than this, at the 99th percentile, a run is invalid: it measured the machine.
const MOST_LATE: Duration = Duration::from_millis(1);

/// Results at the receiver: bytes in order over time, and the shares of the paths.
struct Seen {
    deliveries: Vec<(f64, u64)>,
    by_path: Vec<u64>,
}

impl Seen {
    fn took(&self) -> f64 {
        self.deliveries.last().expect("something arrived").0
    }

    fn goodput(&self) -> f64 {
        self.deliveries.last().expect("something arrived").1 as f64 * 8.0 / self.took() / 1e6
    }

    /// The share of the first path.
    fn share(&self) -> f64 {
        self.by_path[0] as f64 / self.by_path.iter().sum::<u64>() as f64
    }

    /// The longest time without a byte that begins after `from`.
    fn longest_gap(&self, from: f64) -> f64 {
        let pairs = self.deliveries.windows(2).filter(|pair| pair[1].0 > from);
        pairs.map(|pair| pair[1].0 - pair[0].0.max(from)).fold(0.0, f64::max)
    }

    /// Bytes received by a time.
    fn by(&self, time: f64) -> u64 {
        self.deliveries.iter().take_while(|(at, _)| *at <= time).last().map_or(0, |(_, bytes)| *bytes)
    }
}

impl Case {
    fn bytes(&self) -> u64 {
        self.megabytes * 1_000_000
    }

    fn script(&self) -> Script {
        let at = |seconds: f64| When::At(Instant::ZERO + Duration::from_micros((seconds * 1e6) as u64));
        let step = |cut: Cut, when, up| Step {
            when,
            path: PathId(cut.path),
            directions: &LinkDirection::BOTH,
            change: Change::Up(up),
        };
        let steps = self.cut.map(|cut| [step(cut, at(cut.at_s), false), step(cut, at(cut.until_s), true)]);
        Script::new(steps.into_iter().flatten())
    }

    /// Kernel to kernel.
    fn live(&self) -> Seen {
        let len = self.bytes();
        let Outcome { download: (download, deliveries), report, received: by_path } =
            transfer_to(MPTCP, self.paths, len, self.script(), Tap::none(), |client| {
                kernel::download_traced(client, Family::V4.server(), MPTCP)
            });
        assert_intact(&download, len);
        let late = report.lateness.quantile(0.99);
        if late.is_some_and(|late| late > MOST_LATE) {
            println!("{}: the machine is too busy, the next line is invalid: late by {late:?}", self.name);
        }
        Seen { deliveries, by_path }
    }

    /// The same network in the simulator.
    fn simulated(&self, overrides: &[(&str, &str)]) -> Seen {
        use std::fmt::Write;
        let mut text = "schema = 1\nduration = \"300 s\"\n".to_owned();
        text += UPSTREAM;
        for (i, (rate, delay)) in self.paths.iter().enumerate() {
            let _ = write!(text, "[link.p{i}]\nrate = \"{rate} Mb/s\"\ndelay = \"{delay} ms\"\nqueue = \"64 kB\"\n");
        }
        let _ = write!(text, "[[session]]\nvideo = {{ kind = \"bulk\", size = \"{} MB\" }}\n", self.megabytes);
        if let Some(Cut { path, at_s, until_s }) = self.cut {
            let _ = write!(text, "[[event]]\nat = \"{at_s} s\"\nlink = \"p{path}\"\ndown = true\n");
            let _ = write!(text, "[[event]]\nat = \"{until_s} s\"\nlink = \"p{path}\"\ndown = false\n");
        }
        let overrides: Vec<_> = overrides.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let scenario =
            anabranch_scenario::load(&text, self.name, None, &overrides).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let outcome = anabranch_sim::run(
            &scenario,
            &RunOptions { seed: 1, record_events: true, ..RunOptions::default() },
            &mut |_| true,
        );
        let down = outcome.metrics.links.iter().filter(|link| link.direction == LinkDirection::Down);
        let by_path = down.map(|link| link.bytes).collect();
        Seen { deliveries: deliveries(outcome.events.as_ref().expect("recorded")), by_path }
    }
}

const UPSTREAM: &str = "[transport]\nkernel = \"upstream\"\ncongestion_control = \"newreno\"\n";

/// From the table of events: times and bytes of the response delivered, counted from the beginning of the connection.
fn deliveries(events: &EventColumns) -> Vec<(f64, u64)> {
    let column = |name: &str| &events.columns.iter().find(|(n, _)| *n == name).expect("a column").1;
    let (Column::Text { words, codes }, Column::Float(times), Column::Integer(bytes)) =
        (column("event"), column("time_s"), column("bytes"))
    else {
        panic!("the table of events has changed")
    };
    let delivered = words.iter().position(|word| *word == "delivered").expect("something was delivered");
    let rows = codes.iter().zip(times).zip(bytes).filter(|((code, _), _)| **code == Some(delivered as u32));
    let mut sum = 0;
    rows.map(|((_, time), bytes)| {
        sum += *bytes as u64;
        (*time, sum)
    })
    .collect()
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Largest relative difference of the simulation from the kernel.
const TOLERANCE: f64 = 0.1;

#[test]
#[ignore = "measures for minutes; `make matrix`"]
fn shares_of_two_unequal_paths() {
    require!(&[NSTAT]);
    if !asked_for() {
        return;
    }
    let cases: [(&str, Paths); 5] = [
        ("10 Mb/s 20 ms, 10 Mb/s 20 ms", &[(10, 10), (10, 10)]),
        ("10 Mb/s 20 ms, 4 Mb/s 60 ms", &[(10, 10), (4, 30)]),
        ("4 Mb/s 60 ms, 10 Mb/s 20 ms", &[(4, 30), (10, 10)]),
        ("10 Mb/s 20 ms, 2 Mb/s 100 ms", &[(10, 10), (2, 50)]),
        ("8 Mb/s 100 ms, 8 Mb/s 20 ms", &[(8, 50), (8, 10)]),
    ];
    for (name, paths) in cases {
        let case = Case { name, paths, megabytes: 15, cut: None };
        let simulated = case.simulated(&[]);
        println!("{name}: simulated {:.2} Mb/s, share {:.3}", simulated.goodput(), simulated.share());
        let runs: Vec<_> = (0..3).map(|_| case.live()).collect();
        for live in &runs {
            println!("{name}: kernel    {:.2} Mb/s, share {:.3}", live.goodput(), live.share());
        }
        let kernel = median(runs.iter().map(Seen::share));
        assert!((simulated.share() / kernel - 1.0).abs() < TOLERANCE, "{name}: {} of {kernel}", simulated.share());
        let kernel = median(runs.iter().map(Seen::goodput));
        assert!((simulated.goodput() / kernel - 1.0).abs() < TOLERANCE, "{name}: {} of {kernel}", simulated.goodput());
    }
}

#[test]
#[ignore = "measures for minutes; `make matrix`"]
fn a_path_cut_for_six_seconds() {
    require!(&[NSTAT]);
    if !asked_for() {
        return;
    }
    let cases: [(&str, Paths, u16); 3] = [
        ("equal, second cut", &[(10, 10), (10, 10)], 1),
        ("equal, first cut", &[(10, 10), (10, 10)], 0),
        ("unequal, second cut", &[(10, 10), (4, 30)], 1),
    ];
    for (name, paths, path) in cases {
        let cut = Cut { path, at_s: 4.0, until_s: 10.0 };
        let case = Case { name, paths, megabytes: 25, cut: Some(cut) };
        let print = |who: &str, seen: &Seen| {
            let bytes: Vec<_> = (3..=16).map(|second| seen.by(f64::from(second)) / 10_000).collect();
            println!(
                "{name}: {who} took {:.2} s, longest gap {:.2} s, share {:.3}; at 3, 4, ... s, in 10 kB: {bytes:?}",
                seen.took(),
                seen.longest_gap(cut.at_s),
                seen.share()
            );
        };
        print(
            "legacy   ",
            &case.simulated(&[("transport.failover", "legacy"), ("transport.subflow_windows", "false")]),
        );
        let simulated = case.simulated(&[]);
        print("simulated", &simulated);
        let runs: Vec<_> = (0..3).map(|_| case.live()).collect();
        runs.iter().for_each(|live| print("kernel   ", live));
        let kernel = median(runs.iter().map(Seen::took));
        assert!((simulated.took() / kernel - 1.0).abs() < TOLERANCE, "{name}: {} s, {kernel} s", simulated.took());
    }
}
