//! Our endpoint serves the unmodified kernel over two paths: every byte arrives, both paths are used, and neither
//! the kernel nor tshark finds anything wrong with what we say.

mod common;

use anabranch_live::requirements::{CURL, MPTCPIZE, NSTAT, TSHARK};
use anabranch_live::{
    Application, BytesPacket, Clock, Counters, Emulator, End, Far, Limits, Link, Middlebox, Progress, Reply, Report,
    Script, Server, Step, Strip, Tap, Ways, When, lab, lab::Family,
};
use anabranch_network::{
    Change, Direction, DirectionConfig, LossConfig, Probability, QueueConfig, Reordering, Streams,
};
use anabranch_stack::Config;
use anabranch_stack::connection::{Choice, CongestionChoice, PathConfig, Protocol};
use anabranch_stack::options::Options;
use anabranch_units::{Bandwidth, Duration, PathId};
use common::capture::{self, CaptureFile};
use common::kernel::{self, Download, MPTCP, PORT, TCP};
use common::{content, require, while_emulating};

/// What every test transfers unless it says otherwise.
const TEN_MEGABYTES: u64 = 10_000_000;

/// How long the kernel and our server may take to say goodbye after the client has closed its socket: several
/// round trips, and repetitions where packets are lost.
const GOODBYE: std::time::Duration = std::time::Duration::from_millis(800);

/// Answers a request, once it is complete, with a head and so many bytes of content.
struct Bulk {
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
struct Case {
    name: &'static str,
    family: Family,
    /// The paths' one-way delays in ms.
    delays: Vec<u64>,
    /// How each direction of each link differs from the plain one: 20 Mb/s, 64 kB of queue.
    links: fn(&mut DirectionConfig),
    /// What stands in the way on each path.
    middlebox: fn(usize) -> Middlebox,
    script: Vec<Step>,
    scheduler: &'static str,
    congestion_control: &'static str,
    /// What else is special about our endpoint.
    endpoint: fn(&mut Config),
    len: u64,
    /// What stands before the content.
    head: String,
}

impl Case {
    fn new(name: &'static str) -> Self {
        Case {
            name,
            family: Family::V4,
            delays: vec![10, 20],
            links: |_| {},
            middlebox: |_| Middlebox::default(),
            script: Vec::new(),
            scheduler: "min-rtt",
            congestion_control: "newreno",
            endpoint: |_| {},
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
            mtu: lab::MTU,
            backup: false,
        });
        let mut config = Config::new(Protocol::Mptcp, paths.collect());
        config.local_port = PORT;
        config.scheduler = Choice::of(self.scheduler);
        let control = anabranch_stack::congestion::find(self.congestion_control).expect("registered");
        config.congestion_control = CongestionChoice { entry: control, options: Options::default() };
        (self.endpoint)(&mut config);
        config
    }

    fn direction(&self, path: usize, way: &str) -> Direction<BytesPacket> {
        let mut config = DirectionConfig::new(Bandwidth::from_mbps(20), QueueConfig::drop_tail_bytes(64_000));
        config.delay = Duration::from_millis(self.delays[path]).into();
        (self.links)(&mut config);
        config.validate().expect("a sensible link");
        Direction::new(&config, Streams::new(1, format!("link/{path}/{way}")))
    }

    /// Runs `client` in its namespace against our server.
    fn run<T>(&self, client: impl FnOnce(&anabranch_live::Netns) -> T) -> Outcome<T> {
        let n = self.delays.len() as u16;
        let site = lab::client(self.family, n, "reno").unwrap();
        let links = site.devices.into_iter().enumerate().map(|(i, client)| Link {
            client,
            far: Far::Host,
            up: self.direction(i, "up"),
            down: self.direction(i, "down"),
            middlebox: (self.middlebox)(i),
        });
        let server = Server::new(self.config(), Limits::default(), |_| Bulk::new(&self.head, self.len)).unwrap();
        let file = CaptureFile::new(self.name);
        let tap = Tap::file(file.path(), End::Far).unwrap();
        let script = Script::new(self.script.clone());
        let emulator = Emulator::new(Clock::new(), links.collect(), server, script, tap).unwrap();
        let ((result, received), server, report) = while_emulating(emulator, || {
            let result = client(&site.namespace);
            std::thread::sleep(GOODBYE);
            let devices = (1..=n).map(|i| format!("ct{i}"));
            (result, devices.map(|device| kernel::interface_bytes(&site.namespace, &device).0).collect())
        });
        eprintln!("{}: received {received:?}, {:?}, late by {:?}", self.name, server.counters(), report.lateness);
        Outcome { result, received, report, server: server.counters(), namespace: site.namespace, file }
    }
}

struct Outcome<T> {
    result: T,
    /// Bytes that the client's interfaces received.
    received: Vec<u64>,
    report: Report,
    server: Counters,
    namespace: anabranch_live::Netns,
    file: CaptureFile,
}

impl Outcome<Download> {
    fn assert_intact(&self, len: u64) {
        eprintln!("{:.2} Mb/s", self.result.bits_per_second() / 1e6);
        assert_eq!((self.result.bytes, self.result.error), (len, None));
        assert_eq!(self.result.sha256, content::digest(&[], len));
    }
}

impl<T> Outcome<T> {
    /// Each interface received at least this share of everything.
    fn assert_all_paths_used(&self, share: f64) {
        let total: u64 = self.received.iter().sum();
        let least = (total as f64 * share) as u64;
        assert!(self.received.iter().all(|bytes| *bytes >= least), "{:?}", self.received);
    }

    /// Neither the kernel nor tshark nor our own server has anything to complain about.
    fn assert_clean(&self) {
        kernel::assert_mptcp_held(&self.namespace);
        let counters = kernel::mptcp_counters(&self.namespace);
        assert_eq!(counters["MPTcpExtMPCapableSYNACKRX"], 1, "{counters:?}");
        assert_eq!(counters["MPTcpExtMPJoinSynAckRx"], self.received.len() as u64 - 1, "{counters:?}");
        // Until a client has sent its first DATA_ACK, it has promised no window in its own eyes and drops data that is ahead of
        // other data, whatever its handshake said. Here some of the first flight always arrives, so that never happens.
        assert_eq!(counters["MPTcpExtNoDSSInWindow"], 0, "{counters:?}");
        assert_eq!((self.server.undecodable, self.server.unsendable), (0, 0));
        capture::assert_well_formed(self.file.path());
        let options = capture::mptcp_options(self.file.path());
        assert!(options[&0] >= 3 && options[&1] >= 3 && options[&2] > 1000, "{options:?}");
    }
}

impl<T> Outcome<T> {
    /// The connection ended, and our server has forgotten it.
    fn assert_closed(&self) {
        assert_eq!((self.server.accepted, self.server.closed), (1, 1));
    }

    /// It ended in order: nobody had to send RST. That cannot be asked for where the very last packets may be lost or late,
    /// nor where copies are under way of what the kernel has: it answers them with RST once it has closed.
    fn assert_closed_in_order(&self) {
        self.assert_closed();
        assert_eq!(self.server.unknown, 0);
        assert_eq!(capture::count(self.file.path(), "tcp.flags.reset == 1"), 0, "resets");
    }
}

fn download(namespace: &anabranch_live::Netns) -> Download {
    kernel::download(namespace, Family::V4.server(), MPTCP)
}

#[test]
fn ten_megabytes_over_two_paths() {
    require!(&[NSTAT, TSHARK]);
    let outcome = Case::new("clean").run(download);
    outcome.assert_intact(TEN_MEGABYTES);
    outcome.assert_all_paths_used(0.2);
    outcome.assert_clean();
    outcome.assert_closed_in_order();
    assert!(outcome.result.bits_per_second() > 22e6, "more than one link carries");
}

#[test]
fn ten_megabytes_over_ipv6() {
    require!(&[NSTAT, TSHARK]);
    let case = Case { family: Family::V6, ..Case::new("ipv6") };
    let outcome = case.run(|namespace| kernel::download(namespace, Family::V6.server(), MPTCP));
    outcome.assert_intact(TEN_MEGABYTES);
    outcome.assert_all_paths_used(0.2);
    outcome.assert_clean();
    outcome.assert_closed_in_order();
    assert_eq!(capture::count(outcome.file.path(), "ip"), 0, "nothing but IPv6");
}

#[test]
fn wide_data_sequence_numbers() {
    require!(&[NSTAT, TSHARK]);
    let case = Case { endpoint: |config| config.wide_data_seq = true, ..Case::new("wide") };
    let outcome = case.run(download);
    outcome.assert_intact(TEN_MEGABYTES);
    outcome.assert_all_paths_used(0.2);
    outcome.assert_clean();
    outcome.assert_closed_in_order();
}

#[test]
fn one_percent_of_all_packets_lost() {
    require!(&[NSTAT, TSHARK]);
    let lossy = |link: &mut DirectionConfig| link.loss = LossConfig::Bernoulli(Probability::new(0.01).unwrap());
    let outcome = Case { links: lossy, ..Case::new("loss") }.run(download);
    outcome.assert_intact(TEN_MEGABYTES);
    outcome.assert_all_paths_used(0.2);
    outcome.assert_clean();
    outcome.assert_closed();
    let lost = |path: &anabranch_live::PathReport| path.down.dropped(anabranch_events::DropCause::Random).packets;
    assert!(outcome.report.paths.iter().all(|path| lost(path) > 10), "the loss was real");
}

#[test]
fn packets_out_of_order() {
    require!(&[NSTAT, TSHARK]);
    let reordering = |link: &mut DirectionConfig| {
        let probability = Probability::new(0.05).unwrap();
        link.reordering = Some(Reordering { probability, extra: Duration::from_millis(8) });
    };
    let outcome = Case { links: reordering, ..Case::new("reordering") }.run(download);
    outcome.assert_intact(TEN_MEGABYTES);
    outcome.assert_all_paths_used(0.2);
    outcome.assert_clean();
    outcome.assert_closed();
}

#[test]
fn packets_twice() {
    require!(&[NSTAT, TSHARK]);
    let twice = |link: &mut DirectionConfig| link.duplication = Probability::new(0.05).unwrap();
    let outcome = Case { links: twice, ..Case::new("duplication") }.run(download);
    outcome.assert_intact(TEN_MEGABYTES);
    outcome.assert_all_paths_used(0.2);
    outcome.assert_clean();
    outcome.assert_closed();
}

#[test]
fn packets_with_a_flipped_bit() {
    require!(&[NSTAT, TSHARK]);
    let corrupting = |_| Middlebox { corruption: Probability::new(0.01).unwrap(), ..Middlebox::default() };
    let outcome = Case { middlebox: corrupting, ..Case::new("corruption") }.run(download);
    outcome.assert_intact(TEN_MEGABYTES);
    outcome.assert_all_paths_used(0.2);
    kernel::assert_mptcp_held(&outcome.namespace);
    outcome.assert_closed();
    // Both ends met corrupted packets, and took none of them: those whose IP version is hit are refused before they count.
    let corrupted = |way: usize| outcome.report.paths.iter().map(|path| path.meddled[way].corrupted).sum::<u64>();
    assert!(corrupted(0) > 10 && corrupted(1) > 50, "{:?}", outcome.report.paths);
    let bad_tcp = kernel::counter(&outcome.namespace, "TcpInCsumErrors");
    assert!(bad_tcp > 40 && bad_tcp <= corrupted(1), "{bad_tcp} of {}", corrupted(1));
    assert!(outcome.server.undecodable > 5 && outcome.server.undecodable <= corrupted(0), "{:?}", outcome.server);
}

/// After a middlebox took the options away: every byte arrived, by plain TCP over the initial path, and in order to the end.
fn assert_fell_back(outcome: &Outcome<Download>) {
    outcome.assert_intact(TEN_MEGABYTES);
    let counters = kernel::mptcp_counters(&outcome.namespace);
    assert_eq!(counters["MPTcpExtMPJoinSynTx"], 0, "{counters:?}");
    assert_eq!((outcome.received[1], outcome.server.accepted), (0, 1));
    assert!(outcome.report.paths[0].meddled.iter().any(|meddled| meddled.stripped > 0));
    capture::assert_well_formed(outcome.file.path());
    outcome.assert_closed_in_order();
}

#[test]
fn options_stripped_from_the_handshake_on() {
    require!(&[NSTAT, TSHARK]);
    let stripping = |_| Middlebox { strip: Strip::Everywhere, ..Middlebox::default() };
    let outcome = Case { middlebox: stripping, ..Case::new("strip-all") }.run(download);
    assert_fell_back(&outcome);
    let fell_back = kernel::mptcp_counters(&outcome.namespace)["MPTcpExtMPCapableFallbackSYNACK"];
    assert_eq!(fell_back, 1, "the kernel learnt it from the SYN/ACK");
}

#[test]
fn options_stripped_behind_the_handshake() {
    require!(&[NSTAT, TSHARK]);
    let stripping = |_| Middlebox { strip: Strip::BehindHandshake, ..Middlebox::default() };
    let outcome = Case { middlebox: stripping, ..Case::new("strip-late") }.run(download);
    assert_fell_back(&outcome);
    assert_eq!(
        kernel::mptcp_counters(&outcome.namespace)["MPTcpExtMPCapableSYNACKRX"],
        1,
        "MPTCP was agreed on at first"
    );
}

#[test]
fn options_stripped_on_the_second_path_only() {
    require!(&[NSTAT, TSHARK]);
    let stripping =
        |path| Middlebox { strip: if path == 1 { Strip::Everywhere } else { Strip::Nothing }, ..Middlebox::default() };
    let outcome = Case { middlebox: stripping, ..Case::new("strip-second") }.run(download);
    outcome.assert_intact(TEN_MEGABYTES);
    // The join failed, the connection did not.
    let counters = kernel::mptcp_counters(&outcome.namespace);
    assert_eq!((counters["MPTcpExtMPCapableSYNACKRX"], counters["MPTcpExtMPJoinSynAckRx"]), (1, 0), "{counters:?}");
    assert!(counters["MPTcpExtMPJoinSynTx"] > 0, "{counters:?}");
    assert!(capture::mptcp_options(outcome.file.path())[&2] > 1000, "the first path speaks MPTCP to the end");
    capture::assert_well_formed(outcome.file.path());
}

#[test]
fn everything_at_once_over_three_paths() {
    require!(&[NSTAT, TSHARK]);
    let bad = |link: &mut DirectionConfig| {
        link.loss = LossConfig::Bernoulli(Probability::new(0.03).unwrap());
        link.duplication = Probability::new(0.02).unwrap();
        link.reordering =
            Some(Reordering { probability: Probability::new(0.02).unwrap(), extra: Duration::from_millis(6) });
    };
    let len = 4_000_000;
    let case = Case { links: bad, delays: vec![5, 10, 30], len, ..Case::new("everything") };
    let outcome = case.run(download);
    outcome.assert_intact(len);
    outcome.assert_all_paths_used(0.02);
    outcome.assert_clean();
    outcome.assert_closed();
}

fn cut_and_restored(path: u16) -> Vec<Step> {
    let switch = |when, up| Step { when, path: PathId(path), way: Ways::Both, change: Change::Up(up) };
    vec![switch(When::Delivered(3_000_000), false), switch(When::After(Duration::from_secs(2)), true)]
}

#[test]
fn the_second_path_cut_and_restored() {
    require!(&[NSTAT, TSHARK]);
    let outcome = Case { script: cut_and_restored(1), ..Case::new("cut-second") }.run(download);
    outcome.assert_intact(TEN_MEGABYTES);
    outcome.assert_all_paths_used(0.05);
    outcome.assert_clean();
    outcome.assert_closed();
}

#[test]
fn the_initial_path_cut_and_restored() {
    require!(&[NSTAT, TSHARK]);
    let outcome = Case { script: cut_and_restored(0), ..Case::new("cut-initial") }.run(download);
    outcome.assert_intact(TEN_MEGABYTES);
    outcome.assert_all_paths_used(0.05);
    outcome.assert_clean();
    outcome.assert_closed();
}

#[test]
fn a_client_that_speaks_plain_tcp() {
    require!(&[NSTAT, TSHARK]);
    let outcome = Case::new("plain-tcp").run(|namespace| kernel::download(namespace, Family::V4.server(), TCP));
    outcome.assert_intact(TEN_MEGABYTES);
    capture::assert_well_formed(outcome.file.path());
    assert_eq!(capture::mptcp_options(outcome.file.path()).len(), 0, "no MPTCP option to a client that knows none");
    assert_eq!((outcome.server.undecodable, outcome.server.unsendable), (0, 0));
    outcome.assert_closed_in_order();
}

#[test]
fn curl_under_mptcpize() {
    require!(&[NSTAT, TSHARK, CURL, MPTCPIZE]);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {TEN_MEGABYTES}\r\nConnection: close\r\n\r\n");
    let case = Case { head, ..Case::new("curl") };
    let url = format!("http://{}:{PORT}/", Family::V4.server());
    let outcome = case.run(|namespace| {
        let mut command = namespace.command("mptcpize");
        command.args(["run", "curl", "--silent", "--show-error", "--max-time", "60", &url]).output().expect("it starts")
    });
    let curl = &outcome.result;
    assert!(curl.status.success(), "{}", String::from_utf8_lossy(&curl.stderr));
    use sha2::Digest;
    assert_eq!(curl.stdout.len() as u64, TEN_MEGABYTES);
    assert_eq!(<[u8; 32]>::from(sha2::Sha256::digest(&curl.stdout)), content::digest(&[], TEN_MEGABYTES));
    outcome.assert_all_paths_used(0.2);
    outcome.assert_clean();
    outcome.assert_closed_in_order();
}

#[test]
fn a_reader_that_closes_the_window() {
    require!(&[NSTAT, TSHARK]);
    let len = 2_000_000;
    let case = Case { len, ..Case::new("slow-reader") };
    let outcome = case.run(|namespace| kernel::download_slowly(namespace, Family::V4.server(), MPTCP));
    outcome.assert_intact(len);
    outcome.assert_clean();
    outcome.assert_closed_in_order();
    let closed = capture::count(outcome.file.path(), "tcp.window_size == 0 && ip.dst == 10.99.0.1");
    assert!(closed > 0, "the window was closed at times");
}

#[test]
fn a_client_that_leaves_in_the_middle() {
    require!(&[NSTAT, TSHARK]);
    let outcome =
        Case::new("leaves").run(|namespace| kernel::download_part(namespace, Family::V4.server(), MPTCP, 1_000_000));
    assert!(outcome.result >= 1_000_000 && outcome.result < TEN_MEGABYTES);
    let fast_closes = capture::count(outcome.file.path(), "tcp.options.mptcp.subtype == 7 && ip.dst == 10.99.0.1");
    assert!(fast_closes > 0, "the kernel aborted");
    assert_eq!((outcome.server.accepted, outcome.server.closed), (1, 1));
    capture::assert_well_formed(outcome.file.path());
}

#[test]
fn every_scheduler() {
    require!(&[NSTAT, TSHARK]);
    for entry in anabranch_stack::scheduler::REGISTRY {
        let len = 2_000_000;
        let case = Case { len, scheduler: entry.name, ..Case::new(entry.name) };
        let outcome = case.run(download);
        outcome.assert_intact(len);
        outcome.assert_clean();
        outcome.assert_closed();
    }
}

#[test]
fn every_congestion_control() {
    require!(&[NSTAT, TSHARK]);
    for entry in anabranch_stack::congestion::REGISTRY {
        let len = 2_000_000;
        let case = Case { len, congestion_control: entry.name, ..Case::new(entry.name) };
        let outcome = case.run(download);
        outcome.assert_intact(len);
        outcome.assert_clean();
        outcome.assert_closed_in_order();
    }
}

#[test]
fn twenty_clients_at_once() {
    require!(&[NSTAT, TSHARK]);
    let len = 300_000;
    let outcome = Case { len, ..Case::new("twenty") }.run(|namespace| {
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..20).map(|_| scope.spawn(|| download(namespace))).collect();
            clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>()
        })
    });
    let digest = content::digest(&[], len);
    assert!(outcome.result.iter().all(|d| (d.bytes, d.error, d.sha256) == (len, None, digest)));
    kernel::assert_mptcp_held(&outcome.namespace);
    capture::assert_well_formed(outcome.file.path());
    let server = outcome.server;
    assert_eq!((server.accepted, server.closed, server.undecodable, server.unsendable), (20, 20, 0, 0));
}
