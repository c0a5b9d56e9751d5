//! Our endpoint as a server for an unmodified kernel's clients: one network, one server, one transfer.

use super::capture::{self, CaptureFile};
use super::kernel::{self, Download, PORT};
use super::{content, emulating_until};
use anabranch_live::{Application, Clock, Counters, DEFAULT_MTU, End, Limits, Progress, Reply, Server, Tap};
use anabranch_network::{Direction, DirectionConfig, QueueConfig, Streams};
use anabranch_stack::Config;
use anabranch_stack::connection::{Choice, PathConfig, Protocol};
use anabranch_testnet::{
    BytesPacket, EmulatedPath, Emulator, EmulatorReport, Far, Middlebox, Netns, Script, Step,
    sites::{self, Family},
};
use anabranch_units::{Bandwidth, Duration, LinkDirection, PathId};
use sha2::{Digest, Sha256};
use std::io::Read;
use std::process::Stdio;

/// Default size of a transfer.
pub const TEN_MEGABYTES: u64 = 10_000_000;

/// Enough to fill both paths for a second, and for what is not a matter of rare losses or of the time that it takes.
pub const FOUR_MEGABYTES: u64 = 4_000_000;

/// How long our server may take to end after the client's kernel has: several round trips, and retransmissions where
/// packets are lost.
const LONGEST_CLOSE: Duration = Duration::from_millis(800);

/// How long packets that are still under way are waited for, so that what they do to the server is counted: a round
/// trip and more.
const STRAGGLERS: std::time::Duration = std::time::Duration::from_millis(100);

/// Answers a complete request with a head and a number of bytes of content.
pub struct Bulk {
    request: Vec<u8>,
    head: Vec<u8>,
    len: u64,
    answered: bool,
}

impl Bulk {
    fn new(head: &str, len: u64) -> Self {
        Bulk { request: Vec::new(), head: head.as_bytes().to_vec(), len, answered: false }
    }
}

impl Application for Bulk {
    fn receive(&mut self, bytes: &[u8]) {
        self.request.extend_from_slice(bytes);
    }

    fn poll(&mut self, _: Progress) -> Reply {
        if self.answered || !self.request.ends_with(b"\r\n\r\n") {
            return Reply::default();
        }
        self.answered = true;
        Reply { bytes: self.head.len() as u64 + self.len, finish: true, ..Reply::default() }
    }

    fn fill(&self, offset: u64, buffer: &mut [u8]) {
        let head = self.head.get(offset as usize..).unwrap_or_default();
        let n = head.len().min(buffer.len());
        buffer[..n].copy_from_slice(&head[..n]);
        content::fill((offset + n as u64).saturating_sub(self.head.len() as u64), &mut buffer[n..]);
    }
}

/// One network, one transfer.
pub struct Case {
    pub name: &'static str,
    pub family: Family,
    /// The rate of every link in Mb/s.
    pub rate: u64,
    /// Bytes of queue.
    pub queue: u64,
    /// The paths' one-way delays in ms.
    pub delays: Vec<u64>,
    /// Changes of each direction of each link from the plain one.
    pub links: Box<dyn Fn(&mut DirectionConfig) + Sync>,
    /// Whether to capture packets for tshark.
    pub capture: bool,
    /// The middlebox of each path.
    pub middlebox: Box<dyn Fn(usize) -> Middlebox + Sync>,
    pub script: Vec<Step>,
    pub scheduler: &'static str,
    pub congestion_control: &'static str,
    /// Changes of our endpoint's configuration.
    pub endpoint: Box<dyn Fn(&mut Config) + Sync>,
    pub len: u64,
    /// The head before the content.
    pub head: String,
}

impl Case {
    pub fn new(name: &'static str) -> Self {
        Case {
            name,
            family: Family::V4,
            rate: 20,
            queue: 64_000,
            delays: vec![10, 20],
            links: Box::new(|_| {}),
            capture: true,
            middlebox: Box::new(|_| Middlebox::default()),
            script: Vec::new(),
            scheduler: "min-rtt",
            congestion_control: "newreno",
            endpoint: Box::new(|_| {}),
            len: TEN_MEGABYTES,
            head: String::new(),
        }
    }

    /// The endpoint as a server at the server's address.
    fn config(&self) -> Config {
        let paths = (0..self.delays.len() as u16).map(|i| PathConfig {
            id: PathId(i),
            local: self.family.server(),
            remote: self.family.client(PathId(i)),
            mtu: DEFAULT_MTU,
            backup: false,
            metered: false,
        });
        let mut config = Config::new(Protocol::Mptcp, paths.collect());
        config.local_port = PORT;
        config.transport.scheduler = Choice::of(self.scheduler);
        config.transport.congestion_control = Choice::of(self.congestion_control);
        (self.endpoint)(&mut config);
        config
    }

    fn direction(&self, path: usize, direction: LinkDirection) -> Direction<BytesPacket> {
        let mut config =
            DirectionConfig::new(Bandwidth::from_mbps(self.rate), QueueConfig::drop_tail_bytes(self.queue));
        config.delay = Duration::from_millis(self.delays[path]).into();
        (self.links)(&mut config);
        config.validate().expect("a sensible link");
        Direction::new(&config, Streams::new(1, format!("link/{path}/{direction}")))
    }

    /// Runs `client` in its namespace against our server.
    pub fn run<T>(&self, client: impl FnOnce(&Netns) -> T) -> Outcome<T> {
        let n = self.delays.len() as u16;
        let site = sites::client(self.family, n, "reno").unwrap();
        let links = site.devices.into_iter().enumerate().map(|(i, client)| EmulatedPath {
            client,
            far: Far::Host,
            up: self.direction(i, LinkDirection::Up),
            down: self.direction(i, LinkDirection::Down),
            middlebox: (self.middlebox)(i),
        });
        let server = Server::new(self.config(), Limits::default(), |_| Bulk::new(&self.head, self.len)).unwrap();
        let file = CaptureFile::new(self.name);
        let tap = if self.capture { Tap::file(file.path(), End::Far).unwrap() } else { Tap::none() };
        let script = Script::new(self.script.clone());
        let emulator = Emulator::new(Clock::new(), links.collect(), server, script, tap).unwrap();
        let over = |server: &Server<_, _>| server.counters().accepted == server.counters().closed;
        let ((result, received), server, report) = emulating_until(emulator, over, LONGEST_CLOSE, || {
            let result = client(&site.namespace);
            kernel::wait_until_closed(&site.namespace);
            std::thread::sleep(STRAGGLERS);
            let devices = (1..=n).map(|i| format!("ct{i}"));
            (result, devices.map(|device| kernel::interface_bytes(&site.namespace, &device).0).collect())
        });
        eprintln!(
            "{}: received {received:?}, {:?}, late by {:?}",
            self.name,
            server.counters(),
            report.lateness.quantile(0.99)
        );
        Outcome { result, received, report, server: server.counters(), namespace: site.namespace, file }
    }
}

pub struct Outcome<T> {
    pub result: T,
    /// Bytes that the client's interfaces received.
    pub received: Vec<u64>,
    pub report: EmulatorReport,
    pub server: Counters,
    pub namespace: Netns,
    pub file: CaptureFile,
}

impl Outcome<Download> {
    pub fn assert_intact(&self, len: u64) {
        eprintln!("{:.2} Mb/s", self.result.bits_per_second() / 1e6);
        assert_eq!((self.result.bytes, self.result.error), (len, None));
        assert_eq!(self.result.sha256, content::digest(&[], len));
    }
}

impl<T> Outcome<T> {
    /// Each interface received at least this share of everything.
    pub fn assert_all_paths_used(&self, share: f64) {
        let total: u64 = self.received.iter().sum();
        let least = (total as f64 * share) as u64;
        assert!(self.received.iter().all(|bytes| *bytes >= least), "{:?}", self.received);
    }

    /// Neither the kernel nor tshark nor our own server reports a fault.
    pub fn assert_clean(&self) {
        kernel::assert_mptcp_held(&self.namespace);
        let counters = kernel::mptcp_counters(&self.namespace);
        assert_eq!(counters["MPTcpExtMPCapableSYNACKRX"], 1, "{counters:?}");
        assert_eq!(counters["MPTcpExtMPJoinSynAckRx"], self.received.len() as u64 - 1, "{counters:?}");
        // Until a client has sent its first DATA_ACK, it counts its window as not advertised and drops data that is
        // ahead of other data, whatever its handshake advertised. Here some of the first flight always arrives, so that
        // never happens.
        assert_eq!(counters["MPTcpExtNoDSSInWindow"], 0, "{counters:?}");
        assert_eq!((self.server.undecodable, self.server.unsendable), (0, 0));
        capture::assert_well_formed(&self.file);
        let options = capture::mptcp_options(&self.file);
        // At least one DSS for less than two packets of data.
        let received: u64 = self.received.iter().sum();
        assert!(options[&0] >= 3 && options[&1] >= 3 && options[&2] > received / 2000, "{options:?}");
    }
}

impl<T> Outcome<T> {
    /// The connection ended, and our server has dropped it.
    pub fn assert_closed(&self) {
        assert_eq!((self.server.accepted, self.server.closed), (1, 1));
    }

    /// It ended in order: without RST. That cannot be required where the very last packets may be lost or late, nor
    /// where copies of received data are in flight: the kernel answers them with RST once it has closed.
    pub fn assert_closed_in_order(&self) {
        self.assert_closed();
        assert_eq!(self.server.unknown, 0);
        assert_eq!(capture::count(&self.file, |packet| packet.reset), 0, "resets");
    }
}

/// Fetches the server's answer with curl under `mptcpize`; reads what curl writes after `joins` joins
/// ([`kernel::wait_until_joined`]).
pub fn curl(namespace: &Netns, family: Family, joins: u64) -> Download {
    let server = match family {
        Family::V4 => family.server().to_string(),
        Family::V6 => format!("[{}]", family.server()),
    };
    let url = format!("http://{server}:{PORT}/");
    let mut command = namespace.command("mptcpize");
    command
        .args(["run", "curl", "--silent", "--show-error", "--max-time", CURL_TIMEOUT_S, &url])
        .stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    kernel::wait_until_joined(namespace, joins);
    let began = std::time::Instant::now();
    let mut stdout = child.stdout.take().expect("a pipe");
    let (mut bytes, mut hash, mut buffer) = (0, Sha256::new(), vec![0; 1 << 16]);
    loop {
        match stdout.read(&mut buffer).expect("the pipe holds") {
            0 => break,
            n => {
                bytes += n as u64;
                hash.update(&buffer[..n]);
            }
        }
    }
    let receiving = began.elapsed();
    let status = child.wait().expect("curl ends");
    assert!(status.success(), "curl: {status}");
    Download { bytes, sha256: hash.finalize().into(), connecting: std::time::Duration::ZERO, receiving, error: None }
}

/// Seconds that a transfer with curl may take.
const CURL_TIMEOUT_S: &str = "120";

/// The HTTP head of `len` bytes of content.
pub fn http_head(len: u64) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n")
}
