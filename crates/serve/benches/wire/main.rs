//! Throughput of the server: compared with the kernel's through the same emulator, with many clients of a given
//! rate, and compared with the kernel's without an emulator.
//!
//! `cargo bench -p anabranch-serve` runs them as root; a name (`ratio`, `clients`, `direct`) picks one. Goodput is wall
//! time, so nothing else should run; processor time tells more where something does. Recorded in `docs/performance.md`.

#[path = "../../tests/common/mod.rs"]
mod common;
mod direct;
mod load;
mod threads;

use anabranch_live::{Clock, Tap};
use anabranch_serve::{Content, Process};
use anabranch_stack::connection::Choice;
use anabranch_testnet::sites::{self, Family};
use anabranch_testnet::{Emulator, Netns, NoHost, Script, requirements};
use anabranch_units::{Bandwidth, Duration};
use common::kernel::{self, MPTCP, PORT};
use common::site::{Plan, start};
use common::while_emulating;
use load::Load;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Instant;
use threads::Threads;

/// Bytes of one transfer of the comparison, and the number of transfers of each kind.
const TRANSFER: u64 = 600_000_000;
const ROUNDS: usize = 5;
/// Number of clients in the second measurement, rate of each in bit/s, and duration.
const CLIENTS: usize = 200;
const CLIENT_RATE: u64 = 2_000_000;
const SECONDS: u64 = 30;

/// A directory with a file of zeros that has no blocks on any disk, removed with its owner.
struct Zeros(PathBuf);

impl Zeros {
    fn new(len: u64) -> Self {
        let directory = std::env::temp_dir().join(format!("anabranch-{}-bench", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        File::create(directory.join("zeros")).and_then(|file| file.set_len(len)).expect("a file");
        Zeros(directory)
    }
}

impl Drop for Zeros {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Links without limits.
const OPEN: Plan = Plan {
    family: Family::V4,
    paths: 2,
    rate: Bandwidth::from_mbps(1_000_000),
    delay: Duration::ZERO,
    queue: 10_000_000,
    loss: 0,
    reordering: 0,
};

/// One download through links without limits.
struct Transfer {
    megabits_per_second: f64,
    /// Processor time of the server's threads.
    server: Threads,
    all: f64,
}

fn transfer(client: &Netns) -> Transfer {
    let (before, process) = (Threads::now(), Process::now());
    let began = Instant::now();
    let bytes = client.run(load::download).expect("the namespace can be entered");
    assert!(bytes >= TRANSFER, "{bytes}");
    let seconds = began.elapsed().as_secs_f64();
    Transfer {
        megabits_per_second: bytes as f64 * 8.0 / seconds / 1e6,
        server: Threads::now().since(&before),
        all: Process::now().cpu_seconds - process.cpu_seconds,
    }
}

fn ours(zeros: &Zeros) -> Transfer {
    let adjust = |options: &mut anabranch_serve::Options| {
        options.congestion_control = Choice::of("newreno");
    };
    let (transfer, client) = OPEN.serve(Content::Root(zeros.0.clone()), adjust, |site| {
        let transfer = transfer(site.client);
        for path in site.serving.status().paths {
            eprintln!("    {}: {:?}, refused {}, {:?}", path.device, path.sent, path.refused, path.segments);
        }
        transfer
    });
    kernel::assert_mptcp_held(&client);
    transfer
}

/// Answers the first client with zeros from memory through one of the kernel's sockets: the least possible work.
fn answer_with_zeros(server: &Netns) -> JoinHandle<()> {
    let listener: TcpListener = server.run(|| kernel::listen(MPTCP)).expect("the namespace can be entered");
    let answer = move || {
        let (mut stream, _) = listener.accept().expect("a client");
        // Unread data in a socket turns its close into an RST.
        stream.read_exact(&mut vec![0; load::REQUEST.len()]).expect("a request");
        let zeros = vec![0; 256 << 10];
        for _ in 0..TRANSFER.div_ceil(zeros.len() as u64) {
            stream.write_all(&zeros).expect("the client reads");
        }
    };
    std::thread::Builder::new().name("kernel-server".into()).spawn(answer).expect("a thread")
}

/// The kernel's server behind the emulator.
fn kernels() -> Transfer {
    let client = sites::client(OPEN.family, OPEN.paths, "reno").expect("namespaces");
    let server = sites::server(OPEN.family, OPEN.paths, "reno").expect("namespaces");
    let (links, client, server) = OPEN.links(client, server);
    let emulator = Emulator::new(Clock::new(), links, NoHost, Script::default(), Tap::none()).expect("links");
    let serving = answer_with_zeros(&server);
    let (transfer, NoHost, _) = while_emulating(emulator, || {
        let transfer = transfer(&client);
        serving.join().expect("it ends with its client");
        transfer
    });
    kernel::assert_mptcp_held(&client);
    transfer
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Both kinds in turn, so that other load of the machine affects both.
fn ratio() {
    let zeros = Zeros::new(TRANSFER);
    let (mut our_rates, mut their_rates, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let (our, their) = (ours(&zeros), kernels());
        println!(
            "round {round}: ours {:.0} Mb/s ({}, {:.2} CPU s in all), the kernel's {:.0} Mb/s ({:.2} CPU s in all), ratio {:.2}",
            our.megabits_per_second,
            our.server,
            our.all,
            their.megabits_per_second,
            their.all,
            our.megabits_per_second / their.megabits_per_second
        );
        our_rates.push(our.megabits_per_second);
        their_rates.push(their.megabits_per_second);
        ratios.push(our.megabits_per_second / their.megabits_per_second);
    }
    println!(
        "medians of {ROUNDS}: ours {:.0} Mb/s, the kernel's {:.0} Mb/s, ratio {:.2}",
        median(&mut our_rates),
        median(&mut their_rates),
        median(&mut ratios)
    );
}

/// Many clients, each of which reads no faster than its rate.
fn clients() {
    // The file is too long to be read to its end.
    let zeros = Zeros::new(CLIENT_RATE * SECONDS);
    let plan = Plan { rate: Bandwidth::from_mbps(300), delay: Duration::from_millis(10), queue: 1_500_000, ..OPEN };
    let client = sites::client(plan.family, plan.paths, "reno").expect("namespaces");
    let router = sites::router(plan.family, plan.paths).expect("namespaces");
    let (links, client, router) = plan.links(client, router);
    let emulator = Emulator::new(Clock::new(), links, NoHost, Script::default(), Tap::none()).expect("links");
    let idle = Process::now();
    let options = plan.options(Content::Root(zeros.0.clone()));
    let ((rates, server, memory, seconds), NoHost, report) = while_emulating(emulator, || {
        let serving = start(&router, options);
        let load = client.run(|| Load::connect(CLIENTS, CLIENT_RATE)).expect("the namespace can be entered");
        let (before, began) = (Threads::now(), Instant::now());
        let mut memory = 0;
        let rates = load.run(SECONDS, || memory = memory.max(Process::now().resident_bytes));
        let (seconds, server) = (began.elapsed().as_secs_f64(), Threads::now().since(&before));
        println!("{:?}", serving.status().gauges);
        (rates, server, memory, seconds)
    });
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let share = |rate: f64| 100.0 * rate / CLIENT_RATE as f64;
    println!(
        "{CLIENTS} clients at {} Mb/s for {seconds:.1} s: the least got {:.1} %, the mean {:.1} %; {server}: {:.0} % of one CPU; \
         {:.0} MiB resident with emulator and clients ({:.0} before); links late by {:?} at the 99th percentile",
        CLIENT_RATE / 1_000_000,
        share(least),
        share(rates.iter().sum::<f64>() / rates.len() as f64),
        100.0 * server.total() / seconds,
        memory as f64 / 1048576.0,
        idle.resident_bytes as f64 / 1048576.0,
        report.lateness.quantile(0.99),
    );
    kernel::assert_mptcp_held(&client);
}

fn main() {
    let missing = requirements::missing(&[requirements::NSTAT]);
    if !missing.is_empty() {
        eprintln!("nothing was measured: {}", missing.join(" "));
        std::process::exit(1);
    }
    let wanted = |name: &str| std::env::args().skip(1).filter(|word| !word.starts_with('-')).all(|word| word == name);
    println!("port {PORT}, {} processors", std::thread::available_parallelism().map_or(0, usize::from));
    for (name, measure) in [("ratio", ratio as fn()), ("clients", clients), ("direct", direct::compare)] {
        if wanted(name) {
            measure();
        }
    }
}
