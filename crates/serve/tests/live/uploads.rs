//! Uploads over TLS through our server to nginx, compared with the same uploads through the kernel's own proxy: nginx
//! on sockets of the kernel's Multipath TCP, with the same links and the same origin.
//!
//! `make uploads` runs the whole: 304 uploads of 1 to 50 MB each way. A few small ones belong to the live suite.

use crate::common::kernel::PORT;
use crate::common::nginx::Nginx;
use crate::common::site::{Plan, Root, start};
use crate::common::{content, require, while_emulating};
use anabranch_live::{Clock, Tap};
use anabranch_network::Change;
use anabranch_serve::Content;
use anabranch_testnet::requirements::{NGINX, NSTAT, OPENSSL, PYTHON, TC};
use anabranch_testnet::sites::{self, Family};
use anabranch_testnet::{Emulator, Netns, NoHost, Script, Step, When};
use anabranch_units::{Bandwidth, Duration, Instant, LinkDirection, PathId};
use std::fmt;
use std::path::{Path, PathBuf};

/// Address of the origins.
const ORIGIN: &str = "127.0.0.1:8443";
/// The client.
const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/common/upload.py");

/// What is wrong with the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Nothing,
    /// One packet of a hundred is lost on each path.
    Loss,
    /// The first path is cut for a while during each upload.
    Cut,
    /// The origin is reached at less than the rate of a path.
    SlowOrigin,
}

impl Trouble {
    const ALL: [Trouble; 4] = [Trouble::Nothing, Trouble::Loss, Trouble::Cut, Trouble::SlowOrigin];
}

/// Interval between two cuts, how long one lasts, and how long before it an upload begins.
const CUT_EVERY: Duration = Duration::from_secs(3);
const CUT_FOR: Duration = Duration::from_millis(1000);
const BEFORE_CUT: Duration = Duration::from_millis(200);
/// Number of cuts: two hours of them.
const CUTS: u64 = 2400;

fn cuts() -> Script {
    let step = |at: u64, up| Step {
        when: When::At(Instant::from_nanos(at)),
        path: PathId(0),
        directions: &LinkDirection::BOTH,
        change: Change::Up(up),
    };
    let steps = (1..=CUTS).flat_map(|k| {
        let at = k * CUT_EVERY.as_nanos();
        [step(at, false), step(at + CUT_FOR.as_nanos(), true)]
    });
    Script::new(steps)
}

/// How an upload is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Manner {
    multipath: bool,
    /// The client ends its side behind the file, and reads the answer afterwards.
    half_closed: bool,
}

impl Manner {
    fn all() -> impl Iterator<Item = Manner> {
        [true, false]
            .into_iter()
            .flat_map(|multipath| [true, false].into_iter().map(move |half_closed| Manner { multipath, half_closed }))
    }
}

impl fmt::Display for Manner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.multipath { "mptcp" } else { "tcp" })?;
        f.write_str(if self.half_closed { " half" } else { " whole" })
    }
}

/// A client and a way to an origin; the files of the origin are in `root`.
struct Way<'a> {
    client: &'a Netns,
    clock: Clock,
    root: &'a Path,
}

impl Way<'_> {
    /// Uploads the file and checks what has arrived; returns the seconds that it took.
    fn upload(&self, trouble: Trouble, manner: Manner, file: &Path, bytes: &[u8]) -> f64 {
        if trouble == Trouble::Cut {
            self.wait_for_cut();
        }
        let server = format!("{}:{PORT}", Family::V4.server());
        let how = manner.to_string();
        let mut client = self.client.command("python3");
        client.arg(CLIENT).args(how.split(' ')).arg(server).arg(file).arg("stored");
        let output = client.output().expect("it starts");
        let printed = String::from_utf8_lossy(&output.stdout);
        let (status, seconds) = printed.trim().split_once(' ').unwrap_or_else(|| {
            panic!("{trouble:?}, {manner}, {} bytes: {}", bytes.len(), String::from_utf8_lossy(&output.stderr))
        });
        assert_eq!(status, "201", "{trouble:?}, {manner}");
        let stored = self.root.join("stored");
        let intact = std::fs::read(&stored).expect("it was stored") == bytes;
        assert!(intact, "{trouble:?}, {manner}, {} bytes: others were stored", bytes.len());
        std::fs::remove_file(stored).expect("removed");
        seconds.parse().expect("a number")
    }

    /// Waits until the next cut is as far ahead as before each upload.
    fn wait_for_cut(&self) {
        let phase = (self.clock.now().as_nanos() + BEFORE_CUT.as_nanos()) % CUT_EVERY.as_nanos();
        std::thread::sleep(std::time::Duration::from_nanos(CUT_EVERY.as_nanos() - phase));
    }
}

fn plan(trouble: Trouble) -> Plan {
    Plan {
        rate: Bandwidth::from_mbps(100),
        delay: Duration::from_millis(3),
        queue: 200_000,
        loss: u8::from(trouble == Trouble::Loss),
        ..Plan::new(Family::V4)
    }
}

/// The rate of a slow origin's loopback interface; bursts of it are at least as long as its packets.
fn slow_down(namespace: &Netns, trouble: Trouble) {
    if trouble == Trouble::SlowOrigin {
        let mut tc = namespace.command("tc");
        tc.args("qdisc add dev lo root tbf rate 30mbit burst 128k latency 100ms".split(' '));
        assert!(tc.status().expect("it starts").success());
    }
}

fn script(trouble: Trouble) -> Script {
    if trouble == Trouble::Cut { cuts() } else { Script::default() }
}

/// Runs `work` with a way through our server.
fn through_ours<T>(trouble: Trouble, work: impl FnOnce(&Way<'_>) -> T) -> T {
    let plan = plan(trouble);
    let root = Root::new(&format!("uploads-{trouble:?}"));
    let client = sites::client(plan.family, plan.paths, "reno").expect("namespaces");
    let router = sites::router(plan.family, plan.paths).expect("namespaces");
    let (links, client, router) = plan.links(client, router);
    let clock = Clock::new();
    let emulator = Emulator::new(clock, links, NoHost, script(trouble), Tap::none()).expect("links");
    let (result, NoHost, _) = while_emulating(emulator, || {
        let serving = start(&router, plan.options(Content::Origin(ORIGIN.into())));
        slow_down(&router, trouble);
        let _nginx = Nginx::start_tls(&router, &root.0, ORIGIN);
        let result = work(&Way { client: &client, clock, root: &root.0 });
        serving.stop();
        serving.finish().expect("nothing went wrong");
        result
    });
    result
}

/// Runs `work` with a way through nginx on the kernel's sockets.
fn through_the_kernel<T>(trouble: Trouble, work: impl FnOnce(&Way<'_>) -> T) -> T {
    let plan = plan(trouble);
    let (root, proxy) = (Root::new(&format!("kernel-{trouble:?}")), Root::new(&format!("proxy-{trouble:?}")));
    let client = sites::client(plan.family, plan.paths, "reno").expect("namespaces");
    let server = sites::server(plan.family, plan.paths, "reno").expect("namespaces");
    let (links, client, server) = plan.links(client, server);
    let clock = Clock::new();
    let emulator = Emulator::new(clock, links, NoHost, script(trouble), Tap::none()).expect("links");
    let (result, NoHost, _) = while_emulating(emulator, || {
        slow_down(&server, trouble);
        let _nginx = Nginx::start_tls(&server, &root.0, ORIGIN);
        let address = format!("{}:{PORT}", plan.family.server());
        let _proxy = Nginx::relay(&server, &proxy.0, &address, ORIGIN);
        work(&Way { client: &client, clock, root: &root.0 })
    });
    result
}

/// A file of this length to upload, removed with its owner.
struct Source(PathBuf, Vec<u8>);

impl Source {
    fn new(name: &str, len: usize) -> Self {
        let mut bytes = vec![0; len];
        content::fill(len as u64, &mut bytes);
        let path = std::env::temp_dir().join(format!("anabranch-{}-source-{name}", std::process::id()));
        std::fs::write(&path, &bytes).expect("a file");
        Source(path, bytes)
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The length of the uploads of the live suite: some seconds for all of them.
const SMALL: usize = 1_500_000;

/// Uploads in each manner arrive whole.
fn assert_whole(trouble: Trouble) {
    require!(&[NSTAT, NGINX, OPENSSL, PYTHON, TC]);
    let source = Source::new(&format!("{trouble:?}"), SMALL);
    through_ours(trouble, |way| {
        for manner in Manner::all() {
            way.upload(trouble, manner, &source.0, &source.1);
        }
    });
}

#[test]
fn uploads_arrive_whole_half_closed_or_not() {
    assert_whole(Trouble::Nothing);
}

#[test]
fn uploads_arrive_whole_with_loss() {
    assert_whole(Trouble::Loss);
}

#[test]
fn uploads_arrive_whole_with_cuts() {
    assert_whole(Trouble::Cut);
}

#[test]
fn uploads_arrive_whole_with_a_slow_origin() {
    assert_whole(Trouble::SlowOrigin);
}

/// Uploads for each trouble and manner: 304 in all.
const EACH: u32 = 19;
/// Lengths grow by the same factor from the least to the greatest.
const LEAST: f64 = 1e6;
const GREATEST: f64 = 50e6;
/// An upload through our server takes at most so many times as long as one through the kernel's.
const MOST_RATIO: f64 = 3.0;
/// How often an upload that took longer is tried again after the kernel's: other work of the machine may have delayed
/// it. The median of all tries counts.
const AGAIN: usize = 4;

fn length(i: u32) -> usize {
    (LEAST * (GREATEST / LEAST).powf(f64::from(i) / f64::from(EACH - 1))) as usize
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The ratio of the times of one upload each way.
fn pair(ours: &Way<'_>, kernels: &Way<'_>, trouble: Trouble, manner: Manner, source: &Source) -> f64 {
    let [our, their] = [ours, kernels].map(|way| way.upload(trouble, manner, &source.0, &source.1));
    println!(
        "{trouble:?}, {manner}, {:.1} MB: {our:.2} s, the kernel's {their:.2} s, ratio {:.2}",
        source.1.len() as f64 / 1e6,
        our / their
    );
    our / their
}

#[test]
#[ignore = "`make uploads` runs it: half an hour"]
fn no_upload_is_three_times_as_slow_as_through_the_kernel_s_proxy() {
    if !crate::common::asked_for() {
        return;
    }
    require!(&[NSTAT, NGINX, OPENSSL, PYTHON, TC]);
    let mut slow = Vec::new();
    for trouble in Trouble::ALL {
        let mut ratios = Vec::new();
        through_ours(trouble, |ours| {
            through_the_kernel(trouble, |kernels| {
                for (i, manner) in (0..EACH).flat_map(|i| Manner::all().map(move |manner| (i, manner))) {
                    let source = Source::new("compared", length(i));
                    let mut tries = vec![pair(ours, kernels, trouble, manner, &source)];
                    if tries[0] > MOST_RATIO {
                        tries.extend((0..AGAIN).map(|_| pair(ours, kernels, trouble, manner, &source)));
                    }
                    let ratio = median(&mut tries);
                    if ratio > MOST_RATIO {
                        slow.push(format!("{trouble:?}, {manner}, {} bytes: {tries:?}", source.1.len()));
                    }
                    ratios.push(ratio);
                }
            });
        });
        let most = ratios.iter().copied().fold(0.0, f64::max);
        println!(
            "{trouble:?}: {} uploads intact, median ratio {:.2}, greatest {most:.2}",
            ratios.len(),
            median(&mut ratios)
        );
    }
    assert!(slow.is_empty(), "{slow:#?}");
}
