//! curl under `mptcpize` fetches from our server under every scheduler and congestion control, and through every pair
//! of disturbances: every byte arrives, every interface is used, and neither the kernel nor tshark reports a fault.

use crate::common::kernel::{self, Download};
use crate::common::served::{Case, Outcome, curl, http_head};
use crate::common::{asked_for, capture, content, require};
use anabranch_network::{Change, DirectionConfig, Loss, Probability, Reordering};
use anabranch_stack::connection::{Commit, Failover};
use anabranch_stack::{congestion, scheduler};
use anabranch_testnet::requirements::{CURL, MPTCPIZE, NSTAT, TSHARK, Tool};
use anabranch_testnet::{Middlebox, Step, Strip, When, sites::Family};
use anabranch_units::{Duration, LinkDirection, PathId};

const TOOLS: [Tool; 4] = [NSTAT, TSHARK, CURL, MPTCPIZE];

const MEGABYTE: u64 = 1_000_000;

/// tshark checks the capture of every n-th transfer: it takes longer than the transfer.
const SAMPLE: usize = 8;

/// Each interface receives at least this share of all bytes: far more than handshakes and acknowledgments.
const LEAST_SHARE: f64 = 0.02;

/// Peekaboo learns whether to wait for the fastest path, and mostly waits where a control keeps its window small and
/// soon open again. With wVegas the slowest of three paths got 0.9 % of the bytes.
const MAY_WAIT: &str = "peekaboo";

/// Links of one rate and almost equal delays. Then every scheduler but [`MAY_WAIT`] uses all of them: the fastest one's
/// window is full while there is data, and the rest goes elsewhere.
fn delays(paths: usize) -> Vec<u64> {
    [5, 6, 7][..paths].to_vec()
}

/// Over all paths of the network.
fn fetch(case: &Case) -> Outcome<Download> {
    fetch_after_joins(case, case.delays.len() as u64 - 1)
}

fn fetch_after_joins(case: &Case, joins: u64) -> Outcome<Download> {
    case.run(|namespace| curl(namespace, case.family, joins))
}

/// Every byte arrived over Multipath TCP, and neither the kernel nor our server reports a fault.
fn check(outcome: &Outcome<Download>, len: u64, what: &str) {
    assert_eq!((outcome.result.bytes, outcome.result.sha256), (len, content::digest(&[], len)), "{what}");
    kernel::assert_mptcp_held(&outcome.namespace);
    let counters = kernel::mptcp_counters(&outcome.namespace);
    assert_eq!(counters["MPTcpExtMPCapableSYNACKRX"], 1, "{what}: {counters:?}");
    assert!(counters["MPTcpExtMPJoinSynAckRx"] >= outcome.received.len() as u64 - 1, "{what}: {counters:?}");
    assert_eq!(outcome.server.unsendable, 0, "{what}");
}

/// Five megabytes over `paths` paths at 60 Mb/s, under some of all combinations.
fn every_combination(paths: usize, takes: impl Fn(usize) -> bool) {
    let controls = congestion::REGISTRY;
    let combinations = scheduler::REGISTRY.iter().flat_map(|s| controls.iter().map(move |c| (s.name, c.name)));
    let len = 5 * MEGABYTE;
    for (i, (scheduler, congestion_control)) in combinations.enumerate().filter(|(i, _)| takes(*i)) {
        let case = Case {
            scheduler,
            congestion_control,
            len,
            head: http_head(len),
            rate: 60,
            queue: 128_000,
            delays: delays(paths),
            capture: i % SAMPLE == 0,
            ..Case::new("matrix")
        };
        let what = format!("{scheduler}, {congestion_control}, {paths} paths");
        let outcome = fetch(&case);
        println!("{what}: {:.1} Mb/s, received {:?}", outcome.result.bits_per_second() / 1e6, outcome.received);
        check(&outcome, len, &what);
        if scheduler != MAY_WAIT {
            outcome.assert_all_paths_used(LEAST_SHARE);
        }
        if case.capture {
            capture::assert_well_formed(&outcome.file);
        }
    }
}

#[test]
#[ignore = "two hundred transfers; `make matrix`"]
fn every_scheduler_and_congestion_control_over_two_paths() {
    require!(&TOOLS);
    if !asked_for() {
        return;
    }
    every_combination(2, |_| true);
}

#[test]
#[ignore = "two hundred transfers; `make matrix`"]
fn every_scheduler_and_congestion_control_over_three_paths() {
    require!(&TOOLS);
    if !asked_for() {
        return;
    }
    every_combination(3, |_| true);
}

/// Every scheduler and every control, but not every pair: of 11 times 9 combinations every eighth.
#[test]
#[ignore = "slow suite: 13 transfers"]
fn some_schedulers_and_congestion_controls() {
    require!(&TOOLS);
    every_combination(2, |i| i % SAMPLE == 0);
}

#[test]
#[ignore = "600 MB; `make matrix`"]
fn two_hundred_megabytes_under_three_combinations() {
    require!(&TOOLS);
    if !asked_for() {
        return;
    }
    let len = 200 * MEGABYTE;
    for (scheduler, congestion_control, paths) in [("min-rtt", "cubic", 2), ("linux", "lia", 3), ("blest", "olia", 2)] {
        let case = Case {
            scheduler,
            congestion_control,
            len,
            head: http_head(len),
            rate: 150,
            queue: 256_000,
            delays: delays(paths),
            capture: false,
            ..Case::new("large")
        };
        let what = format!("200 MB, {scheduler}, {congestion_control}, {paths} paths");
        let outcome = fetch(&case);
        println!("{what}: {:.1} Mb/s, received {:?}", outcome.result.bits_per_second() / 1e6, outcome.received);
        check(&outcome, len, &what);
        outcome.assert_all_paths_used(LEAST_SHARE);
    }
}

/// The factors that differ from the plain case, with their numbers of values.
const FACTORS: [(&str, usize); 10] = [
    ("loss", 2),
    ("reordering", 2),
    ("duplication", 2),
    ("corruption", 2),
    ("cut", 3),
    ("ipv6", 2),
    ("strip", 2),
    ("paths", 2),
    ("transport", 4),
    ("scheduler", scheduler::REGISTRY.len()),
];

type Row = [usize; FACTORS.len()];

/// Rows in which every pair of values of two factors occurs: each next row takes, factor by factor, the value that
/// covers most pairs not yet in a row.
fn pairwise() -> Vec<Row> {
    let mut open = std::collections::BTreeSet::new();
    for (f, (_, values)) in FACTORS.iter().enumerate() {
        for (g, (_, others)) in FACTORS.iter().enumerate().skip(f + 1) {
            open.extend((0..*values).flat_map(|v| (0..*others).map(move |w| (f, v, g, w))));
        }
    }
    let mut rows = Vec::new();
    while let Some(&(f, v, g, w)) = open.iter().next() {
        let mut row = [usize::MAX; FACTORS.len()];
        (row[f], row[g]) = (v, w);
        for at in 0..row.len() {
            if row[at] == usize::MAX {
                let covered = |value: usize| {
                    let pair = |other: usize| match other < at {
                        true => (other, row[other], at, value),
                        false => (at, value, other, row[other]),
                    };
                    (0..row.len()).filter(|other| row[*other] != usize::MAX && open.contains(&pair(*other))).count()
                };
                let best = (0..FACTORS[at].1).rev().max_by_key(|value| covered(*value));
                row[at] = best.expect("a factor has values");
            }
        }
        for f in 0..row.len() {
            for g in f + 1..row.len() {
                open.remove(&(f, row[f], g, row[g]));
            }
        }
        rows.push(row);
    }
    rows
}

#[test]
fn every_pair_of_values_occurs_in_a_row() {
    let rows = pairwise();
    for (f, (_, values)) in FACTORS.iter().enumerate() {
        for (g, (_, others)) in FACTORS.iter().enumerate().skip(f + 1) {
            for (v, w) in (0..*values).flat_map(|v| (0..*others).map(move |w| (v, w))) {
                assert!(rows.iter().any(|row| row[f] == v && row[g] == w), "{f}: {v} with {g}: {w}");
            }
        }
    }
    // The minimum is the number of pairs of the two largest factors, and a greedy choice needs little more.
    let mut sizes: Vec<usize> = FACTORS.iter().map(|(_, values)| *values).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let least = sizes[0] * sizes[1];
    assert!((least..=least + least / 2).contains(&rows.len()), "{} rows, at least {least}", rows.len());
}

fn probability(share: f64) -> Probability {
    Probability::new(share).expect("a probability")
}

/// The network and the transport of a row.
fn disturbed(row: Row, len: u64, capture: bool) -> Case {
    let [loss, reordering, duplication, corruption, cut, ipv6, strip, paths, transport, scheduler] = row;
    let links = move |link: &mut DirectionConfig| {
        if loss == 1 {
            link.loss = Loss::independent(probability(0.01));
        }
        if reordering == 1 {
            link.reordering = Some(Reordering { share: probability(0.03), by: Duration::from_millis(6) });
        }
        if duplication == 1 {
            link.duplication = probability(0.03);
        }
    };
    let middlebox = move |_| Middlebox {
        corruption: probability(if corruption == 1 { 0.005 } else { 0.0 }),
        strip: if strip == 1 { Strip::Everywhere } else { Strip::Nothing },
    };
    let endpoint = move |config: &mut anabranch_stack::Config| {
        config.transport.wide_data_seq = transport % 2 == 1;
        (config.transport.commit, config.transport.failover) = match transport / 2 {
            0 => (Commit::AtWindow, Failover::Legacy),
            _ => (Commit::IntoBuffer, Failover::Upstream),
        };
    };
    let switch =
        |when, path, up| Step { when, path: PathId(path), directions: &LinkDirection::BOTH, change: Change::Up(up) };
    let half = Duration::from_millis(500);
    let script = match cut {
        0 => Vec::new(),
        n => {
            vec![switch(When::Delivered(MEGABYTE), n as u16 - 1, false), switch(When::After(half), n as u16 - 1, true)]
        }
    };
    Case {
        family: if ipv6 == 1 { Family::V6 } else { Family::V4 },
        links: Box::new(links),
        middlebox: Box::new(middlebox),
        endpoint: Box::new(endpoint),
        script,
        delays: delays(2 + paths),
        scheduler: scheduler::REGISTRY[scheduler].name,
        congestion_control: "cubic",
        len,
        head: http_head(len),
        capture,
        ..Case::new("pairwise")
    }
}

#[test]
#[ignore = "dozens of transfers; `make matrix`"]
fn every_pair_of_disturbances() {
    require!(&TOOLS);
    if !asked_for() {
        return;
    }
    let len = 3 * MEGABYTE;
    for (i, row) in pairwise().into_iter().enumerate() {
        let named = FACTORS.iter().zip(row).filter(|(_, value)| *value > 0);
        let what = named.map(|((name, _), value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ");
        let case = disturbed(row, len, i % SAMPLE == 0);
        let stripped = row[6] == 1;
        let outcome = if stripped { fetch_after_joins(&case, 0) } else { fetch(&case) };
        println!("{what}: {:.1} Mb/s, received {:?}", outcome.result.bits_per_second() / 1e6, outcome.received);
        if stripped {
            assert_eq!((outcome.result.bytes, outcome.result.sha256), (len, content::digest(&[], len)), "{what}");
            let fell_back = kernel::mptcp_counters(&outcome.namespace)["MPTcpExtMPCapableFallbackSYNACK"];
            assert!(
                fell_back > 0 && outcome.received[1..].iter().all(|bytes| *bytes == 0),
                "{what}: {:?}",
                outcome.received
            );
        } else {
            check(&outcome, len, &what);
            // Where data commits into buffers, only Linux's own scheduler weighs these against each other. The others
            // fill one before they turn to the next, and the client's window may have ended by then.
            if row[8] < 2 || case.scheduler == "linux" {
                outcome.assert_all_paths_used(LEAST_SHARE);
            }
        }
        // Corruption by a middlebox is intended.
        if case.capture && row[3] == 0 {
            capture::assert_well_formed(&outcome.file);
        }
    }
}
