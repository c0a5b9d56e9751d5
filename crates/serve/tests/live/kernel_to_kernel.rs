//! The links alone, without our endpoint: a kernel at both ends must measure the configured links.

use crate::common::capture::{self, CaptureFile};
use crate::common::kernel::{self, Download, Listener, MPTCP, TCP};
use crate::common::{content, require, while_emulating};
use anabranch_live::{Clock, End, Tap};
use anabranch_network::{Change, Direction, DirectionConfig, QueueConfig, Streams};
use anabranch_testnet::requirements::{NSTAT, TSHARK};
use anabranch_testnet::{
    EmulatedPath, Emulator, EmulatorReport, Far, Netns, NoHost, Script, Step, When,
    sites::{self, Family},
};
use anabranch_units::{Bandwidth, Duration, LinkDirection, PathId, PerDirection};

/// Rate in Mb/s and one-way delay in ms, the same in both directions, with a queue of 64 kB.
fn directions(path: usize, (rate, delay): (u64, u64)) -> PerDirection<Direction<anabranch_testnet::BytesPacket>> {
    let mut config = DirectionConfig::new(Bandwidth::from_mbps(rate), QueueConfig::drop_tail_bytes(64_000));
    config.delay = Duration::from_millis(delay).into();
    PerDirection::from_fn(|direction| Direction::new(&config, Streams::new(1, format!("link/{path}/{direction}"))))
}

/// Results of one transfer between two kernels.
pub struct Outcome<T> {
    pub download: T,
    pub report: EmulatorReport,
    /// Bytes that the client's interfaces received.
    pub received: Vec<u64>,
}

/// Sends `len` bytes from a kernel to a kernel; `fetch` downloads them in the client's namespace.
pub fn transfer_to<T>(
    protocol: i32,
    paths: &[(u64, u64)],
    len: u64,
    script: Script,
    tap: Tap,
    fetch: impl FnOnce(&Netns) -> T,
) -> Outcome<T> {
    let n = paths.len() as u16;
    let client = sites::client(Family::V4, n, "reno").unwrap();
    let server = sites::server(Family::V4, n, "reno").unwrap();
    let devices = client.devices.into_iter().zip(server.devices);
    let links = devices.zip(paths).enumerate().map(|(i, ((client, far), path))| {
        let PerDirection { up, down } = directions(i, *path);
        EmulatedPath { client, far: Far::Device(far), up, down, middlebox: Default::default() }
    });
    let emulator = Emulator::new(Clock::new(), links.collect(), NoHost, script, tap).unwrap();
    let listener = Listener::bind(&server.namespace, protocol);
    let serving = std::thread::spawn(move || listener.serve(len));
    let ((download, received), NoHost, report) = while_emulating(emulator, || {
        let download = fetch(&client.namespace);
        let devices = (1..=n).map(|i| format!("ct{i}"));
        (download, devices.map(|device| kernel::interface_bytes(&client.namespace, &device).0).collect())
    });
    serving.join().unwrap();
    if protocol == MPTCP {
        kernel::assert_mptcp_held(&client.namespace);
        kernel::assert_mptcp_held(&server.namespace);
    }
    Outcome { download, report, received }
}

/// The same with a plain download.
fn transfer(protocol: i32, paths: &[(u64, u64)], len: u64, script: Script, tap: Tap) -> Outcome<Download> {
    let outcome = transfer_to(protocol, paths, len, script, tap, |client| {
        let joins = if protocol == MPTCP { paths.len() as u64 - 1 } else { 0 };
        kernel::download(client, Family::V4.server(), protocol, joins)
    });
    let lateness = &outcome.report.lateness;
    eprintln!(
        "{:.2} Mb/s, received {:?}, late by {:?} in the middle, {:?} at the 99th percentile, {:?} at most",
        outcome.download.bits_per_second() / 1e6,
        outcome.received,
        lateness.quantile(0.5),
        lateness.quantile(0.99),
        lateness.max(),
    );
    outcome
}

/// Every byte arrived, and none was changed.
pub fn assert_intact(download: &Download, len: u64) {
    assert_eq!((download.bytes, download.error), (len, None));
    assert_eq!(download.sha256, content::digest(&[], len));
}

#[test]
fn tcp_fills_one_link_and_sees_its_delay() {
    require!(&[NSTAT]);
    let outcome = transfer(TCP, &[(10, 20)], 5_000_000, Script::default(), Tap::none());
    assert_intact(&outcome.download, 5_000_000);
    assert!(outcome.download.connecting >= std::time::Duration::from_millis(40), "a round trip takes 40 ms");
    let bps = outcome.download.bits_per_second();
    // 1448 of 1500 bytes are payload, so no more than 9.65 Mb/s can pass.
    assert!(bps < 9.66e6, "{bps}");
    // Slow start costs some round trips; the margin is for a machine that is busy with other tests.
    assert!(bps > 7.0e6, "{bps}");
}

#[test]
fn mptcp_uses_both_links_and_its_capture_decodes() {
    require!(&[NSTAT, TSHARK]);
    let file = CaptureFile::new("kernel-to-kernel");
    let tap = Tap::file(file.path(), End::Client).unwrap();
    let outcome = transfer(MPTCP, &[(10, 10), (10, 20)], 6_000_000, Script::default(), tap);
    assert_intact(&outcome.download, 6_000_000);
    assert!(outcome.received.iter().all(|bytes| *bytes > 1_000_000), "{:?}", outcome.received);
    let bps = outcome.download.bits_per_second();
    assert!(bps > 11e6, "more than one link carries: {bps}");

    capture::assert_well_formed(&file);
    let options = capture::mptcp_options(&file);
    assert!(options[&0] >= 3 && options[&1] >= 3 && options[&2] > 4000, "{options:?}");
}

#[test]
fn a_cut_link_delivers_nothing_and_its_restoration_heals() {
    require!(&[NSTAT]);
    let cut = |when, up| Step { when, path: PathId(1), directions: &LinkDirection::BOTH, change: Change::Up(up) };
    let script = Script::new([cut(When::Delivered(1_500_000), false), cut(When::After(Duration::from_secs(2)), true)]);
    let outcome = transfer(MPTCP, &[(10, 10), (10, 20)], 5_000_000, script, Tap::none());
    assert_intact(&outcome.download, 5_000_000);
    use anabranch_events::DropCause;
    let lost = outcome.report.paths.iter().map(|path| path.stats.down.dropped(DropCause::Outage).packets);
    let lost: Vec<_> = lost.collect();
    assert!(lost[0] == 0 && lost[1] > 0, "{lost:?}");
}
