//! The kernel's sockets and counters inside a namespace.

use super::content;
use anabranch_testnet::Netns;
use sha2::{Digest, Sha256};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// `IPPROTO_MPTCP`.
pub const MPTCP: i32 = 262;
/// `IPPROTO_TCP`.
pub const TCP: i32 = 6;

/// The server's port in all tests.
pub const PORT: u16 = 7000;

/// The request of a client; servers read to its end.
pub const REQUEST: &[u8] = b"GET / HTTP/1.0\r\n\r\n";

/// The longest possible transfer; beyond it the test fails.
const TIMEOUT: Duration = Duration::from_secs(60);

fn socket(domain: Domain, protocol: i32) -> Socket {
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::from(protocol))).expect("a socket");
    socket.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    socket.set_write_timeout(Some(TIMEOUT)).expect("a timeout");
    socket
}

/// Connects to the server, from the namespace of the calling thread.
pub fn connect(server: IpAddr, protocol: i32) -> TcpStream {
    let socket = socket(Domain::for_address((server, PORT).into()), protocol);
    socket.connect(&SockAddr::from(SocketAddr::from((server, PORT)))).expect("a connection");
    socket.into()
}

/// Results of a client.
#[derive(Debug, PartialEq)]
pub struct Download {
    pub bytes: u64,
    pub sha256: [u8; 32],
    /// How long `connect` took.
    pub connecting: Duration,
    /// From the first read to the end of the stream.
    pub receiving: Duration,
    /// Why it ended before the end of the stream; `None` if it did not.
    pub error: Option<std::io::ErrorKind>,
}

impl Download {
    pub fn bits_per_second(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.receiving.as_secs_f64()
    }
}

/// Connects to the server from inside `client`, sends [`REQUEST`], waits for `joins` joins ([`wait_until_joined`]), and
/// reads to the end of the stream.
pub fn download(client: &Netns, server: IpAddr, protocol: i32, joins: u64) -> Download {
    let work = || {
        let connected = request(server, protocol, None);
        wait_until_joined(client, joins);
        read_all(connected, |_| {})
    };
    client.run(work).expect("the namespace can be entered")
}

/// A download that waits for no join, with a trace: bytes read by each second after the beginning.
pub fn download_traced(client: &Netns, server: IpAddr, protocol: i32) -> (Download, Vec<(f64, u64)>) {
    let mut trace = Vec::new();
    let download = client.run(|| {
        let began = Instant::now();
        read_all(request(server, protocol, None), |bytes| trace.push((began.elapsed().as_secs_f64(), bytes)))
    });
    (download.expect("the namespace can be entered"), trace)
}

/// [`download`] with a small receive buffer, which is read in bursts.
pub fn download_slowly(client: &Netns, server: IpAddr, protocol: i32, joins: u64) -> Download {
    let mut reads = 0u32;
    let pause = |_| {
        reads += 1;
        if reads.is_multiple_of(16) {
            std::thread::sleep(Duration::from_millis(150));
        }
    };
    let work = || {
        let connected = request(server, protocol, Some(SMALL_BUFFER));
        wait_until_joined(client, joins);
        read_all(connected, pause)
    };
    client.run(work).expect("the namespace can be entered")
}

/// Reads at least `least` bytes and closes while more are waiting to be read, which makes the kernel abort the
/// connection; returns the number of bytes read.
pub fn download_part(client: &Netns, server: IpAddr, protocol: i32, least: u64) -> u64 {
    let read = || {
        let mut connected = request(server, protocol, None);
        let (mut bytes, mut buffer) = (0, vec![0; 1 << 16]);
        while bytes < least {
            bytes += connected.socket.read(&mut buffer).expect("more is to come") as u64;
        }
        std::thread::sleep(Duration::from_millis(100));
        bytes
    };
    client.run(read).expect("the namespace can be entered")
}

/// Bytes of a receive buffer that is soon full; the kernel doubles it for its own bookkeeping.
const SMALL_BUFFER: usize = 16_384;

/// A socket whose request was sent.
struct Connected {
    socket: Socket,
    connecting: Duration,
}

fn request(server: IpAddr, protocol: i32, receive_buffer: Option<usize>) -> Connected {
    let mut socket = socket(Domain::for_address((server, PORT).into()), protocol);
    if let Some(size) = receive_buffer {
        socket.set_recv_buffer_size(size).expect("a buffer");
    }
    let began = Instant::now();
    socket.connect(&SockAddr::from(SocketAddr::from((server, PORT)))).expect("a connection");
    let connecting = began.elapsed();
    socket.write_all(REQUEST).expect("the request leaves");
    Connected { socket, connecting }
}

fn read_all(connected: Connected, mut after_each_read: impl FnMut(u64)) -> Download {
    let Connected { mut socket, connecting } = connected;
    let began = Instant::now();
    let (mut bytes, mut hash, mut buffer, mut error) = (0, Sha256::new(), vec![0; 1 << 16], None);
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                bytes += n as u64;
                hash.update(&buffer[..n]);
                after_each_read(bytes);
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => {
                error = Some(e.kind());
                break;
            }
        }
    }
    Download { bytes, sha256: hash.finalize().into(), connecting, receiving: began.elapsed(), error }
}

/// Listens in the namespace of the calling thread.
pub fn listen(protocol: i32) -> TcpListener {
    let socket = socket(Domain::IPV4, protocol);
    socket.bind(&SockAddr::from(SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)))).expect("a port");
    socket.listen(8).expect("listening");
    socket.into()
}

/// A kernel's listening socket.
pub struct Listener(TcpListener);

impl Listener {
    pub fn bind(server: &Netns, protocol: i32) -> Self {
        Listener(server.run(|| listen(protocol)).expect("the namespace can be entered"))
    }

    /// Accepts one connection, reads a request, answers with `len` bytes of content and closes.
    pub fn serve(self, len: u64) {
        let (mut socket, _) = self.0.accept().expect("a client");
        let mut request = vec![0; REQUEST.len()];
        socket.read_exact(&mut request).expect("a request");
        let mut buffer = vec![0; 1 << 16];
        let mut at = 0;
        while at < len {
            let n = (buffer.len() as u64).min(len - at) as usize;
            content::fill(at, &mut buffer[..n]);
            socket.write_all(&buffer[..n]).expect("the response leaves");
            at += n as u64;
        }
    }
}

fn output(client: &Netns, program: &str, arguments: &[&str]) -> String {
    let output = client.command(program).args(arguments).output().expect("the program starts");
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Waits until servers have accepted this many joins of the namespace's kernel since its creation. Fails if the kernel
/// does not send them for long, or if a server does not accept them soon after.
///
/// A client that requires more than one path calls this between its request and its first read. The kernel sends a join
/// from a work queue as soon as the server's first DSS has arrived. On a busy machine the queue's thread was seen to
/// wait 0.26 s for a processor, and a join to come 1.8 s after the DSS, when the download was over. Until the first
/// read no more arrives than the receive buffer takes (128 KiB, and 64 KiB in a pipe), so what the paths carry
/// afterwards does not depend on that.
pub fn wait_until_joined(namespace: &Netns, joins: u64) {
    const LONGEST: Duration = Duration::from_secs(20);
    /// Two SYNs or their answers may be lost, for a second each.
    const LONGEST_ANSWER: Duration = Duration::from_secs(3);
    /// What takes longer is worth a line of output.
    const USUAL: Duration = Duration::from_millis(250);
    const EVERY: Duration = Duration::from_millis(10);
    if joins == 0 {
        return;
    }
    let (began, mut sent_at) = (Instant::now(), None);
    loop {
        let counters = mptcp_counters(namespace);
        let now = Instant::now();
        let [sent, accepted] = ["MPTcpExtMPJoinSynTx", "MPTcpExtMPJoinSynAckRx"].map(|name| counters[name]);
        if sent >= joins {
            sent_at.get_or_insert(now);
        }
        let sending = sent_at.unwrap_or(now) - began;
        if accepted >= joins {
            if sending > USUAL {
                eprintln!("the client's kernel sent its join only after {sending:?}");
            }
            return;
        }
        assert!(sending < LONGEST, "of {joins} joins the kernel sent {sent}: {counters:?}");
        let answering = now - sent_at.unwrap_or(now);
        assert!(answering < LONGEST_ANSWER, "of {sent} joins the server accepted {accepted}: {counters:?}");
        std::thread::sleep(EVERY);
    }
}

/// Waits until no connection of the namespace is open or closing, up to a limit: where a path is dead, one may remain.
pub fn wait_until_closed(namespace: &Netns) {
    const LONGEST: Duration = Duration::from_secs(5);
    let began = Instant::now();
    let open = || output(namespace, "ss", &["-Htn", "state", "connected", "exclude", "time-wait"]);
    while began.elapsed() < LONGEST && !open().trim().is_empty() {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// One of the namespace's counters since its creation, such as `TcpInCsumErrors`.
pub fn counter(namespace: &Netns, name: &str) -> u64 {
    let text = output(namespace, "nstat", &["-asz"]);
    let mut fields = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found = fields.find(|f| f.first() == Some(&name));
    found.unwrap_or_else(|| panic!("this kernel has no counter {name}"))[1].parse().expect("a number")
}

/// The namespace's MPTCP counters since its creation.
pub fn mptcp_counters(namespace: &Netns) -> BTreeMap<String, u64> {
    // -a: absolute values; -s: leave no history file; -z: zeros, too.
    let text = output(namespace, "nstat", &["-asz"]);
    let fields = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let counters = fields.filter(|f| f.first().is_some_and(|name| name.starts_with("MPTcp")));
    counters.map(|f| (f[0].to_owned(), f[1].parse().expect("a number"))).collect()
}

/// Fails if the kernel ever fell back to TCP or found a data sequence signal wrong.
pub fn assert_mptcp_held(namespace: &Netns) {
    /// Parts of the names of counters of failed or abandoned connections.
    const BAD: [&str; 10] = [
        "Fallback",
        "DSSNotMatching",
        "DSSCorruption",
        "DSSNoMatch",
        "InfiniteMap",
        "DataCsumErr",
        "MPFail",
        "HMacFailure",
        "NoTokenFound",
        "MPJoinRejected",
    ];
    let counters = mptcp_counters(namespace);
    for part in BAD {
        assert!(counters.keys().any(|name| name.contains(part)), "this kernel has no counter {part}: {counters:?}");
    }
    let bad: Vec<_> =
        counters.iter().filter(|(name, n)| **n > 0 && BAD.iter().any(|part| name.contains(part))).collect();
    assert!(bad.is_empty(), "{bad:?}");
}

/// Bytes of IP packets that an interface has received and sent, by the kernel's own count.
pub fn interface_bytes(namespace: &Netns, device: &str) -> (u64, u64) {
    interface_counts(namespace, device, "bytes")
}

/// As [`interface_bytes`], packets as they cross the interface: before the kernel cuts them up.
pub fn interface_packets(namespace: &Netns, device: &str) -> (u64, u64) {
    interface_counts(namespace, device, "packets")
}

fn interface_counts(namespace: &Netns, device: &str, what: &str) -> (u64, u64) {
    let text = output(namespace, "ip", &["-j", "-s", "link", "show", "dev", device]);
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let count = |way: &str| value[0]["stats64"][way][what].as_u64().expect("a counter");
    (count("rx"), count("tx"))
}
