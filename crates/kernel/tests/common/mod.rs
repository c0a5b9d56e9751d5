//! A network between two namespaces, and what the tests leave of the machine as they found it.

use anabranch_live::{Clock, Tap};
use anabranch_testnet::sites::{self, Family, Site};
use anabranch_testnet::{EmulatedPath, Emulator, Far, Netns, NoHost, Script};

use anabranch_network::{Direction, DirectionConfig, QueueConfig, Streams};
use anabranch_units::{Bandwidth, Duration, PerDirection};
use libbpf_rs::query::{MapInfoIter, ProgInfoIter};
use rustix::fs::{FlockOperation, flock};
use rustix::mount::{UnmountFlags, unmount};
use socket2::{Domain, SockAddr, Socket, Type};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::Instant;

/// A port that hardly anything else uses: outside of the tests' namespaces, a control that is attached to it would
/// select it, too.
pub const PORT: u16 = 7177;

/// The longest that a step of a test may take.
pub const LONGEST: std::time::Duration = std::time::Duration::from_secs(30);

/// The longest that connections of an earlier test may keep its control. The kernel gives most of them up after a
/// minute.
const LINGERING: std::time::Duration = std::time::Duration::from_secs(180);

/// One test at a time, of this process and of all (tests/test_kernel.py has the same file).
static TURN: Mutex<()> = Mutex::new(());
const LOCK: &str = "/run/anabranch-kernel-tests.lock";

/// How the names of the tests' file systems begin (in tests/test_kernel.py as well).
const PLACE: &str = "anabranch-bpf-";

/// Who holds the lock knows that no test runs which has a file system of these names. What is attached there outlived
/// its test.
fn remove_what_killed_tests_left() {
    for place in anabranch_kernel::used_file_systems() {
        if place.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PLACE)) {
            anabranch_kernel::detach(&place, None).expect("detached");
            drop(Place { path: place });
        }
    }
}

/// The machine's BPF state, which belongs to one test at a time. The programs are pinned in a file system of the test's
/// own.
pub struct Machine {
    file_system: PathBuf,
    _lock: File,
    _turn: MutexGuard<'static, ()>,
}

impl Machine {
    pub fn take() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = File::options().create(true).append(true).open(LOCK).expect("a file");
        flock(&lock, FlockOperation::LockExclusive).expect("a lock");
        remove_what_killed_tests_left();
        wait_until_freed(LINGERING);
        let file_system = std::env::temp_dir().join(format!("{PLACE}{}", std::process::id()));
        std::fs::create_dir_all(&file_system).expect("a directory");
        Machine { file_system, _lock: lock, _turn: turn }
    }

    pub fn file_system(&self) -> &Path {
        &self.file_system
    }

    /// A second place for pins, removed with its owner.
    pub fn another_file_system(&self) -> Place {
        let path = self.file_system.with_extension("other");
        std::fs::create_dir_all(&path).expect("a directory");
        Place { path }
    }

    /// Whether anything is pinned.
    pub fn has_pins(&self) -> bool {
        self.file_system.join("anabranch").exists()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // A test that failed half-way detaches as well.
        let _ = anabranch_kernel::detach(&self.file_system, None);
        drop(Place { path: self.file_system.clone() });
    }
}

/// A mounted directory.
pub struct Place {
    pub path: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = unmount(&self.path, UnmountFlags::empty());
        let _ = std::fs::remove_dir(&self.path);
    }
}

/// Our programs and maps in the kernel, of any process.
fn kernel_objects() -> Vec<String> {
    let programs = ProgInfoIter::default().map(|program| program.name.to_string_lossy().into_owned());
    let maps = MapInfoIter::default().map(|map| map.name.to_string_lossy().into_owned());
    programs.chain(maps).filter(|name| name.starts_with("abr_")).collect()
}

/// Waits for something that happens soon, and fails if it does not.
#[track_caller]
pub fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    wait_at_most(LONGEST, || if happened() { Ok(()) } else { Err(format!("it never happened that {what}")) });
}

/// Waits for a check to succeed, and fails with its last reason if that takes too long.
#[track_caller]
fn wait_at_most(limit: std::time::Duration, mut check: impl FnMut() -> Result<(), String>) {
    let began = Instant::now();
    while let Err(reason) = check() {
        assert!(began.elapsed() < limit, "{reason}");
        sleep(std::time::Duration::from_millis(5));
    }
}

/// Waits until nothing of ours is in the kernel; programs and maps are freed a moment after their last user.
#[track_caller]
pub fn wait_until_freed(limit: std::time::Duration) {
    wait_at_most(limit, || {
        let left = kernel_objects();
        if left.is_empty() { Ok(()) } else { Err(format!("still in the kernel: {}", left.join(", "))) }
    });
}

/// The lines of the kernel's log.
pub fn kernel_log() -> Vec<String> {
    let output = Command::new("dmesg").output().expect("dmesg starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// Fails if the kernel has logged a warning since.
pub fn assert_no_warning(before: &[String]) {
    let last = before.last();
    let lines = kernel_log();
    let begin = lines.iter().rposition(|line| Some(line) == last).map_or(0, |at| at + 1);
    let bad = |line: &&String| ["WARNING", "BUG", "Call Trace", "Oops"].iter().any(|word| line.contains(word));
    let bad: Vec<_> = lines[begin..].iter().filter(bad).collect();
    assert!(bad.is_empty(), "{bad:?}");
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Tcp,
    Mptcp,
}

impl Protocol {
    fn number(self) -> i32 {
        match self {
            Protocol::Tcp => 6,
            Protocol::Mptcp => 262,
        }
    }
}

/// A client and a server, each in a namespace, and links of 10 Mb/s and 10 ms, 20 ms, ... between them.
pub struct Network {
    client: Netns,
    server: Netns,
    stop: Arc<AtomicBool>,
    emulator: Option<JoinHandle<()>>,
    /// Listening sockets by port.
    listeners: Mutex<BTreeMap<u16, Socket>>,
}

impl Network {
    pub fn new(paths: u16) -> Self {
        Network::of(&(1..=paths).map(|number| (10, 5 * u64::from(number))).collect::<Vec<_>>())
    }

    /// Links of these rates in Mb/s and one-way delays in ms.
    pub fn of(links: &[(u64, u64)]) -> Self {
        let paths = links.len() as u16;
        let Site { devices: near, namespace: client } = sites::client(Family::V4, paths, "reno").expect("a client");
        let Site { devices: far, namespace: server } = sites::server(Family::V4, paths, "reno").expect("a server");
        let links = near.into_iter().zip(far).zip(links).enumerate().map(|(number, ((client, far), (rate, delay)))| {
            let mut config = DirectionConfig::new(Bandwidth::from_mbps(*rate), QueueConfig::drop_tail_bytes(30_000));
            config.delay = Duration::from_millis(*delay).into();
            let line = |direction| Direction::new(&config, Streams::new(1, format!("link/{number}/{direction}")));
            let PerDirection { up, down } = PerDirection::from_fn(line);
            EmulatedPath { client, far: Far::Device(far), up, down, middlebox: Default::default() }
        });
        let mut emulator =
            Emulator::new(Clock::new(), links.collect::<Vec<_>>(), NoHost, Script::default(), Tap::none())
                .expect("links");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            emulator.run(&stopped, |_: &mut NoHost, _| false).expect("the emulator carries on");
        });
        Network { client, server, stop, emulator: Some(thread), listeners: Mutex::default() }
    }

    /// The namespace of the server.
    pub fn server(&self) -> &Netns {
        &self.server
    }

    /// Bytes that the client has received on a path (from 1).
    pub fn received(&self, path: u16) -> u64 {
        let counter = format!("/sys/class/net/ct{path}/statistics/rx_bytes");
        let output = self.client.command("cat").arg(counter).output().expect("cat starts");
        String::from_utf8_lossy(&output.stdout).trim().parse().expect("a counter")
    }

    /// Begins to send `bytes` from the server to the client; the thread returns how many arrived.
    pub fn download(&self, protocol: Protocol, port: u16, bytes: u64) -> Download {
        let address = SocketAddr::from((Family::V4.server(), port));
        let open = |protocol: Protocol| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol.number().into())).expect("a socket");
            socket.set_read_timeout(Some(LONGEST)).expect("a timeout");
            socket.set_write_timeout(Some(LONGEST)).expect("a timeout");
            socket
        };
        // It serves plain TCP as well, and joins need it while their connection lives.
        let listen = || {
            let listener = open(Protocol::Mptcp);
            listener.bind(&SockAddr::from(address)).expect("a port");
            listener.listen(8).expect("listening");
            listener
        };
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let listener = listeners.entry(port).or_insert_with(|| self.server.run(listen).expect("a namespace"));
        let connect = || {
            let socket = open(protocol);
            socket.connect(&SockAddr::from(address)).expect("a connection");
            socket
        };
        let receiver = self.client.run(connect).expect("a namespace");
        let (sender, _) = listener.accept().expect("a client");
        Download {
            sending: std::thread::spawn(move || send(sender, bytes)),
            receiving: std::thread::spawn(|| receive(receiver)),
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.emulator.take() {
            let _ = thread.join();
        }
    }
}

/// A download that may still run.
pub struct Download {
    sending: JoinHandle<()>,
    receiving: JoinHandle<u64>,
}

impl Download {
    /// Waits for its end; the bytes that arrived.
    pub fn join(self) -> u64 {
        self.sending.join().expect("everything was sent");
        self.receiving.join().expect("the end arrived")
    }
}

fn send(mut socket: Socket, bytes: u64) {
    let buffer = [0x5a; 1 << 14];
    let mut left = bytes;
    while left > 0 {
        let part = left.min(buffer.len() as u64) as usize;
        socket.write_all(&buffer[..part]).expect("the client reads");
        left -= part as u64;
    }
}

fn receive(mut socket: Socket) -> u64 {
    let (mut buffer, mut bytes) = (vec![0; 1 << 16], 0);
    loop {
        match socket.read(&mut buffer).expect("data or its end") {
            0 => return bytes,
            read => bytes += read as u64,
        }
    }
}

/// A cgroup of the test's own, removed with its owner.
pub struct Cgroup {
    path: PathBuf,
    /// Where this process was before.
    origin: PathBuf,
}

impl Cgroup {
    pub fn create() -> Self {
        let mounts = std::fs::read_to_string("/proc/self/mounts").expect("a list");
        let mut fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let root = PathBuf::from(fields.find(|fields| fields[2] == "cgroup2").expect("cgroups of version 2")[1]);
        let own = std::fs::read_to_string("/proc/self/cgroup").expect("a list");
        let own = own.lines().find_map(|line| line.strip_prefix("0::/")).expect("a cgroup of version 2");
        let path = root.join(format!("anabranch-test-{}", std::process::id()));
        std::fs::create_dir(&path).expect("a cgroup");
        Cgroup { path, origin: root.join(own) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves this process there.
    pub fn enter(&self) {
        std::fs::write(self.path.join("cgroup.procs"), "0").expect("a process may enter");
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::write(self.origin.join("cgroup.procs"), "0");
        if let Err(error) = std::fs::remove_dir(&self.path) {
            eprintln!("could not remove {}: {error}", self.path.display());
        }
    }
}
