//! Memory of a server whose clients never read: bounded, counted, and given back. A program of its own, because it
//! looks at the memory of its process.

mod common;

use anabranch_serve::Process;
use anabranch_testnet::Netns;
use anabranch_testnet::sites::Family;
use anabranch_units::Bandwidth;
use common::kernel;
use common::require;
use common::site::{Plan, Root};
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Clients that request a large file and never read.
const CLIENTS: usize = 200;
/// The least memory that each of them is entitled to, by the documentation.
const FIRST_ROOM: u64 = 256 << 10;
/// What the documentation allows in addition: for HTTP and a part of the file.
const FIXED: u64 = 128 << 10;
/// Memory of everything else in this process: the emulator of links, state of connections, threads.
const OTHERS: u64 = 24 << 20;

fn resident() -> u64 {
    Process::now().resident_bytes
}

/// Waits until `done`, or fails.
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}: {} MiB resident", resident() >> 20);
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn non_reader(client: &Netns) -> TcpStream {
    let request = b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut stream = client.run(|| kernel::connect(Family::V4.server(), kernel::TCP)).expect("entered");
    stream.write_all(request).expect("it leaves");
    stream
}

#[test]
fn clients_that_never_read_hold_little_memory_and_it_is_given_back() {
    require!(&[]);
    let root = Root::new("memory");
    std::fs::File::create(root.0.join("large")).and_then(|file| file.set_len(1 << 30)).expect("a file");
    let plan = Plan { rate: Bandwidth::from_mbps(1000), queue: 2_000_000, ..Plan::new(Family::V4) };
    // No memory to grow into beyond the first room.
    plan.serve(
        root.content(),
        |options| options.send_memory = 0,
        |site| {
            let held = || site.serving.status().held;
            let before = resident();
            let clients: Vec<_> = (0..CLIENTS).map(|_| non_reader(site.client)).collect();
            let full = CLIENTS as u64 * FIRST_ROOM;
            wait_until("buffers fill", || held() >= full * 9 / 10);
            // The number is a second old.
            std::thread::sleep(Duration::from_millis(1500));
            let grown = resident().saturating_sub(before);
            eprintln!("{} MiB more resident, {} MiB counted", grown >> 20, held() >> 20);
            assert!(grown <= full + CLIENTS as u64 * FIXED + OTHERS, "{} MiB", grown >> 20);
            assert!(held() + OTHERS >= grown, "{} MiB resident, {} MiB counted", grown >> 20, held() >> 20);
            drop(clients);
            wait_until("connections end", || site.serving.status().gauges.open == 0 && held() == 0);
            wait_until("memory is given back", || resident() < before + OTHERS);
            site.serving.stop();
        },
    );
}
