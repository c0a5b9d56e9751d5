//! How fast the simulator is: CPU seconds (user and system time), delivered data packets per CPU second, peak memory.
//!
//! ```text
//! cargo bench -p anabranch-sim --bench simulator            # every case, each in a process of its own
//! cargo bench -p anabranch-sim --bench simulator -- base    # the cases whose names contain "base"
//! ```
//!
//! It reports and never decides: a wall time is no property of the code. Each case runs several times and the median
//! counts; a case has its own process, because peak memory only ever grows.

use anabranch_scenario::{Scenario, catalogue, load};
use anabranch_sim::{RunOptions, run};
use rustix::time::{ClockId, clock_gettime};
use std::process::Command;

/// Runs per case; the median is reported.
const RUNS: usize = 5;

/// The argument that tells a process to run one case.
const CASE: &str = "--case";

struct Case {
    name: &'static str,
    scenario: &'static str,
    overrides: &'static [(&'static str, &'static str)],
}

const fn case(name: &'static str, scenario: &'static str, overrides: &'static [(&'static str, &'static str)]) -> Case {
    Case { name, scenario, overrides }
}

const LOSS: [(&str, &str); 3] =
    [("link.path1.loss", "0.1 %"), ("link.path2.loss", "0.1 %"), ("link.path3.loss", "0.1 %")];

/// A bandwidth-delay product of about n packets of 1500 B on one path at 100 Mb/s (8333 packets per second), NewReno,
/// with a queue and buffers that let the window reach it.
macro_rules! window {
    ($name:literal, $rtt:literal, $packets:literal, $loss:literal) => {
        case(
            $name,
            "bulk/one-path",
            &[
                ("transport.congestion_control", "newreno"),
                ("link.path1.rtt", $rtt),
                ("link.path1.queue", $packets),
                ("link.path1.loss", $loss),
                ("transport.receive_buffer", "64 MB"),
                ("transport.send_buffer", "64 MB"),
            ],
        )
    };
}

/// Big Buck Bunny in 596 media segments of a second over 2 x 1 Mb/s, to the end.
macro_rules! dash {
    ($name:literal, $player:literal) => {
        case(
            $name,
            "dash/ratio-1-1",
            &[
                ("session.0.video", "{ kind = \"dash\", ladder = \"bbb-1s\" }"),
                ("session.0.player", $player),
                ("link.path1.loss", "0 %"),
                ("link.path2.loss", "0 %"),
            ],
        )
    };
}

const CASES: &[Case] = &[
    case("sticky/base", "sticky/base", &[]),
    case("sticky/3p-50", "sticky/3p-50", &[]),
    case("three-paths, loss-free", "bulk/three-paths", &[]),
    case("three-paths, 0.1 % loss", "bulk/three-paths", &LOSS),
    window!("window 10: 1.2 ms", "1.2 ms", "10 packets", "0 %"),
    window!("window 100: 12 ms", "12 ms", "100 packets", "0 %"),
    window!("window 1000: 120 ms", "120 ms", "1000 packets", "0 %"),
    window!("window 10000: 1.2 s", "1.2 s", "10000 packets", "0 %"),
    window!("window 10: 1.2 ms, 0.1 % loss", "1.2 ms", "10 packets", "0.1 %"),
    window!("window 1000: 120 ms, 0.01 % loss", "120 ms", "1000 packets", "0.01 %"),
    dash!("596 segments, dash.js-2.9", "dash.js-2.9"),
    dash!("596 segments, dash.js-5", "dash.js-5"),
    dash!("596 segments, robust-mpc", "robust-mpc"),
    case("four viewers", "dash/four-viewers", &[]),
    case("three-paths, ten times as long", "bulk/three-paths", &[("duration", "1000 s")]),
];

fn main() {
    // Cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().position(|argument| argument == CASE) {
        Some(at) => run_case(&arguments[at + 1]),
        None => run_all(arguments.first().map_or("", String::as_str)),
    }
}

fn run_all(filter: &str) {
    println!("{:<36} {:>8} {:>10} {:>14} {:>9}", "case", "CPU s", "packets", "packets/CPU s", "peak MiB");
    let program = std::env::current_exe().expect("a program knows its file");
    for case in CASES.iter().filter(|case| case.name.contains(filter)) {
        let status = Command::new(&program).args([CASE, case.name]).status();
        if !status.is_ok_and(|status| status.success()) {
            println!("{:<36} failed", case.name);
        }
    }
}

fn run_case(name: &str) {
    let case = CASES.iter().find(|case| case.name == name).expect("the name comes from the list");
    let text = catalogue::scenario(case.scenario).expect("the benchmark's scenarios are shipped").text;
    let overrides: Vec<_> = case.overrides.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let scenario = load(text, case.scenario, None, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let idle = peak_mib();
    let mut runs: Vec<(f64, u64)> = (0..RUNS).map(|_| measure(&scenario)).collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (cpu, packets) = runs[RUNS / 2];
    let rate = packets as f64 / cpu / 1e6;
    println!("{name:<36} {cpu:>8.3} {packets:>10} {rate:>12.2} M {:>4.0}+{:<4.0}", idle, peak_mib() - idle);
}

/// CPU seconds and delivered data packets of one run.
fn measure(scenario: &Scenario) -> (f64, u64) {
    let before = cpu_seconds();
    let outcome = run(scenario, &RunOptions::default(), &mut |_| true);
    (cpu_seconds() - before, outcome.metrics.packets)
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The largest resident set so far: the line `VmHWM` of the process's status, in kB (proc(5)).
fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel describes its processes");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the status has the peak");
    let kib = line.trim().trim_end_matches(" kB");
    kib.parse::<f64>().expect("the peak is a number") / 1024.0
}
