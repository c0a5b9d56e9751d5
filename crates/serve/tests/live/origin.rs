//! An origin behind our server: bytes pass in both directions, also when one side ends, waits or aborts.

use crate::common::kernel::{self, PORT};
use crate::common::nginx::Nginx;
use crate::common::site::{LEN, Plan, Root};
use crate::common::{content, require};
use anabranch_serve::{Content, Options};
use anabranch_testnet::requirements::{CURL, MPTCPIZE, NGINX, NSTAT, OPENSSL};
use anabranch_testnet::sites::Family;
use anabranch_units::Bandwidth;
use sha2::{Digest, Sha256};
use socket2::SockRef;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::Stdio;
use std::thread::JoinHandle;
use std::time::Duration;

/// Address of origins in the router's namespace.
const ORIGIN: &str = "127.0.0.1:8443";
/// The longest step of a test.
const TIMEOUT: Duration = Duration::from_secs(30);

#[test]
fn nginx_with_tls_behind_it_serves_curl_over_two_paths() {
    require!(&[NSTAT, CURL, MPTCPIZE, NGINX, OPENSSL]);
    let root = Root::new("nginx");
    let ((), client) = Plan::new(Family::V4).serve(
        Content::Origin(ORIGIN.into()),
        |_| {},
        |site| {
            let _nginx = Nginx::start_tls(site.router, &root.0, ORIGIN);
            let url = format!("https://{}:{PORT}/video/film.mp4", Family::V4.server());
            let mut curl = site.client.command("mptcpize");
            curl.args(["run", "curl", "--insecure", "--silent", "--show-error", "--fail", "--max-time", "60", &url]);
            let curl = curl.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
            kernel::wait_until_joined(site.client, 1);
            let output = curl.wait_with_output().expect("it ends");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(output.stdout.len() as u64, LEN);
            assert_eq!(<[u8; 32]>::from(Sha256::digest(&output.stdout)), content::digest(&[], LEN));
            for device in ["ct1", "ct2"] {
                let received = kernel::interface_bytes(site.client, device).0;
                assert!(received > 1_000_000, "{device} received {received}");
            }
            site.serving.stop();
            assert_eq!(site.serving.finish().expect("nothing went wrong").accepted, 1);
        },
    );
    kernel::assert_mptcp_held(&client);
}

/// A client and the origin's end of its connection, each on a thread of its own.
fn converse(
    name: &str,
    adjust: impl FnOnce(&mut Options),
    client: impl FnOnce(TcpStream) + Send + 'static,
    origin: impl FnOnce(TcpStream) + Send + 'static,
) {
    let plan = Plan { rate: Bandwidth::from_mbps(200), queue: 500_000, ..Plan::new(Family::V4) };
    let ((), namespace) = plan.serve(Content::Origin(ORIGIN.into()), adjust, |site| {
        let listener = site.router.run(|| TcpListener::bind(ORIGIN)).expect("entered").expect("a port");
        let origin = spawn(name, move || {
            let (stream, _) = listener.accept().expect("a connection");
            origin(patient(stream));
        });
        let connected = site.client.run(|| kernel::connect(Family::V4.server(), kernel::MPTCP)).expect("entered");
        let client = spawn(name, move || client(patient(connected)));
        client.join().expect("the client is content");
        origin.join().expect("the origin is content");
        site.serving.stop();
        site.serving.finish().expect("nothing went wrong");
    });
    kernel::assert_mptcp_held(&namespace);
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    std::thread::Builder::new().name(name.into()).spawn(work).expect("a thread")
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    stream.set_write_timeout(Some(TIMEOUT)).expect("a timeout");
    stream
}

fn everything(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("the stream ends in order");
    bytes
}

/// The length of long streams: more than all buffers on the path hold, which are the kernel's (up to 10 MB on each side
/// of the proxy) and ours (up to 8 MiB).
const LONG: u64 = 48_000_000;
/// The most bytes of a stream without a reader.
const BUFFERS: u64 = 32_000_000;

/// Writes content of that length without waiting for readers; returns the number of bytes accepted until none was for a
/// second.
fn write_until_stuck(stream: &mut TcpStream) -> u64 {
    stream.set_write_timeout(Some(Duration::from_secs(1))).expect("a timeout");
    let taken = write_content(stream, 0);
    stream.set_write_timeout(Some(TIMEOUT)).expect("a timeout");
    taken
}

/// Writes content from `from` to the end, or until it must wait too long; returns where it stopped.
fn write_content(stream: &mut TcpStream, from: u64) -> u64 {
    let (mut at, mut buffer) = (from, vec![0; 1 << 16]);
    while at < LONG {
        let len = (buffer.len() as u64).min(LONG - at) as usize;
        content::fill(at, &mut buffer[..len]);
        match stream.write(&buffer[..len]) {
            Ok(n) => at += n as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return at,
            Err(error) => panic!("after {at} bytes: {error}"),
        }
    }
    at
}

fn assert_long(stream: &mut TcpStream) {
    let bytes = everything(stream);
    assert_eq!(bytes.len() as u64, LONG);
    assert_eq!(<[u8; 32]>::from(Sha256::digest(&bytes)), content::digest(&[], LONG));
}

#[test]
fn a_client_that_has_finished_still_gets_its_answer() {
    require!(&[NSTAT]);
    let client = |mut stream: TcpStream| {
        stream.write_all(b"question").expect("it leaves");
        stream.shutdown(Shutdown::Write).expect("it is connected");
        assert_eq!(everything(&mut stream), b"answer to question");
    };
    let origin = |mut stream: TcpStream| {
        // Only the end of the client's stream ends this.
        let question = everything(&mut stream);
        stream.write_all(b"answer to ").expect("it leaves");
        stream.write_all(&question).expect("it leaves");
    };
    converse("half-closed-client", |_| {}, client, origin);
}

#[test]
fn an_origin_that_has_finished_still_receives() {
    require!(&[NSTAT]);
    let client = |mut stream: TcpStream| {
        assert_eq!(everything(&mut stream), b"greeting");
        stream.write_all(b"afterwards").expect("it leaves");
    };
    let origin = |mut stream: TcpStream| {
        stream.write_all(b"greeting").expect("it leaves");
        stream.shutdown(Shutdown::Write).expect("it is connected");
        assert_eq!(everything(&mut stream), b"afterwards");
    };
    converse("half-closed-origin", |_| {}, client, origin);
}

#[test]
fn an_origin_that_breaks_off_resets_the_client() {
    require!(&[NSTAT]);
    let client = |mut stream: TcpStream| {
        stream.write_all(b"question").expect("it leaves");
        let mut bytes = Vec::new();
        let error = stream.read_to_end(&mut bytes).expect_err("this is no end in order");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    };
    let origin = |mut stream: TcpStream| {
        stream.read_exact(&mut [0; 8]).expect("the question");
        SockRef::from(&stream).set_linger(Some(Duration::ZERO)).expect("an option");
    };
    converse("reset-by-origin", |_| {}, client, origin);
}

#[test]
fn a_client_that_breaks_off_resets_the_origin() {
    require!(&[NSTAT]);
    let client = |mut stream: TcpStream| {
        stream.read_exact(&mut [0; 8]).expect("the greeting");
        SockRef::from(&stream).set_linger(Some(Duration::ZERO)).expect("an option");
    };
    let origin = |mut stream: TcpStream| {
        stream.write_all(b"greeting").expect("it leaves");
        let error = stream.read(&mut [0; 8]).expect_err("this is no end in order");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    };
    converse("reset-by-client", |_| {}, client, origin);
}

#[test]
fn an_origin_that_is_not_there_resets_the_client() {
    require!(&[NSTAT]);
    Plan::new(Family::V4).serve(
        Content::Origin(ORIGIN.into()),
        |_| {},
        |site| {
            let connected = site.client.run(|| kernel::connect(Family::V4.server(), kernel::MPTCP)).expect("entered");
            let error = patient(connected).read(&mut [0; 8]).expect_err("there is no answer");
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
            site.serving.stop();
            site.serving.finish().expect("nothing went wrong");
        },
    );
}

#[test]
fn a_client_that_does_not_read_stops_the_origin_and_loses_nothing() {
    require!(&[NSTAT]);
    let (sender, receiver) = std::sync::mpsc::channel();
    let client = move |mut stream: TcpStream| {
        stream.write_all(b"go").expect("it leaves");
        let taken: u64 = receiver.recv_timeout(TIMEOUT).expect("the origin got stuck");
        assert!(taken < BUFFERS, "{taken} bytes went nowhere");
        assert_long(&mut stream);
    };
    let origin = move |mut stream: TcpStream| {
        stream.read_exact(&mut [0; 2]).expect("go");
        let taken = write_until_stuck(&mut stream);
        sender.send(taken).expect("the client waits");
        assert_eq!(write_content(&mut stream, taken), LONG);
    };
    converse("slow-client", |_| {}, client, origin);
}

#[test]
fn an_origin_that_does_not_read_stops_the_client_and_loses_nothing() {
    require!(&[NSTAT]);
    let (sender, receiver) = std::sync::mpsc::channel();
    let client = move |mut stream: TcpStream| {
        let taken = write_until_stuck(&mut stream);
        sender.send(taken).expect("the origin waits");
        assert_eq!(write_content(&mut stream, taken), LONG);
        stream.shutdown(Shutdown::Write).expect("it is connected");
        assert_eq!(everything(&mut stream), b"thanks");
    };
    let origin = move |mut stream: TcpStream| {
        let taken: u64 = receiver.recv_timeout(TIMEOUT).expect("the client got stuck");
        assert!(taken < BUFFERS, "{taken} bytes went nowhere");
        assert_long(&mut stream);
        stream.write_all(b"thanks").expect("it leaves");
    };
    converse("slow-origin", |_| {}, client, origin);
}

#[test]
fn a_client_that_never_reads_is_dropped_after_a_while() {
    require!(&[NSTAT]);
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let client = move |stream: TcpStream| {
        receiver.recv_timeout(TIMEOUT).expect("the client has sent its message");
        drop(stream);
    };
    let origin = move |mut stream: TcpStream| {
        // Its writing ends with an error once the server has given the client up.
        let error = std::io::copy(&mut std::io::repeat(7), &mut stream).expect_err("the client is gone");
        assert!([ErrorKind::ConnectionReset, ErrorKind::BrokenPipe].contains(&error.kind()), "{error}");
        sender.send(()).expect("the client waits");
    };
    let adjust = |options: &mut Options| options.limits.stall = anabranch_units::Duration::from_secs(2);
    converse("never-reads", adjust, client, origin);
}

/// One client that sends `len` bytes and ends its side, and an origin that answers with their digest.
fn upload(server: IpAddr, protocol: i32, len: u64) -> [u8; 32] {
    let mut stream = patient(kernel::connect(server, protocol));
    let (mut at, mut buffer) = (0, vec![0; 1 << 16]);
    while at < len {
        let n = (buffer.len() as u64).min(len - at) as usize;
        content::fill(at, &mut buffer[..n]);
        stream.write_all(&buffer[..n]).expect("the other end reads");
        at += n as u64;
    }
    stream.shutdown(Shutdown::Write).expect("it is connected");
    everything(&mut stream).try_into().expect("a digest")
}

/// Answers each connection with the digest of what it has sent.
fn digest_uploads(listener: &TcpListener, connections: usize) {
    for _ in 0..connections {
        let (stream, _) = listener.accept().expect("a connection");
        spawn("origin", move || {
            let mut stream = patient(stream);
            let bytes = everything(&mut stream);
            stream.write_all(&Sha256::digest(&bytes)).expect("it leaves");
        });
    }
}

/// Uploads one after the other in each test, for each protocol. A lost wake-up ended every second one of these.
const UPLOADS: usize = 24;

#[test]
fn half_closed_uploads_arrive_whole_over_multipath_tcp_and_tcp() {
    require!(&[NSTAT]);
    let plan = Plan { rate: Bandwidth::from_mbps(1000), queue: 2_000_000, ..Plan::new(Family::V4) };
    plan.serve(
        Content::Origin(ORIGIN.into()),
        |_| {},
        |site| {
            let listener = site.router.run(|| TcpListener::bind(ORIGIN)).expect("entered").expect("a port");
            let origin = spawn("origin", move || digest_uploads(&listener, 2 * UPLOADS));
            for (protocol, i) in
                [kernel::MPTCP, kernel::TCP].into_iter().flat_map(|p| (0..UPLOADS).map(move |i| (p, i)))
            {
                // One to two million bytes: some of it is in the endpoint when the client has sent its last.
                let len = 1_000_000 + (i as u64 * 1_000_000) / UPLOADS as u64;
                let got = site.client.run(|| upload(Family::V4.server(), protocol, len)).expect("entered");
                assert_eq!(got, content::digest(&[], len), "upload {i} of {len} bytes over protocol {protocol}");
            }
            origin.join().expect("the origin is content");
            site.serving.stop();
            site.serving.finish().expect("nothing went wrong");
        },
    );
}

#[test]
fn uploads_over_tls_to_nginx_arrive_whole_over_multipath_tcp_and_tcp() {
    require!(&[NSTAT, CURL, MPTCPIZE, NGINX, OPENSSL]);
    let root = Root::new("nginx-uploads");
    let plan = Plan { rate: Bandwidth::from_mbps(1000), queue: 2_000_000, ..Plan::new(Family::V4) };
    plan.serve(
        Content::Origin(ORIGIN.into()),
        |_| {},
        |site| {
            let _nginx = Nginx::start_tls(site.router, &root.0, ORIGIN);
            for (program, i) in ["mptcpize", "env"].into_iter().flat_map(|p| (0..UPLOADS as u64).map(move |i| (p, i))) {
                let mut bytes = vec![0; 1_000_000 + (i as usize * 2_000_000) / UPLOADS];
                content::fill(i, &mut bytes);
                let (source, name) = (root.0.join("source"), format!("{program}-{i}"));
                std::fs::write(&source, &bytes).expect("a file");
                let url = format!("https://{}:{PORT}/{name}", Family::V4.server());
                let mut curl = site.client.command(program);
                curl.args(if program == "mptcpize" { &["run", "curl"][..] } else { &["curl"] });
                curl.args(["--insecure", "--silent", "--show-error", "--fail", "--max-time", "20", "--upload-file"]);
                let output = curl.arg(&source).arg(&url).output().expect("it starts");
                assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
                assert!(std::fs::read(root.0.join(&name)).expect("it was stored") == bytes, "{name}");
            }
            site.serving.stop();
            site.serving.finish().expect("nothing went wrong");
        },
    );
}

#[test]
fn an_origin_that_asks_for_it_gets_the_client_s_address() {
    require!(&[NSTAT]);
    let client = |mut stream: TcpStream| {
        let own = stream.local_addr().expect("an address");
        stream.write_all(b"question").expect("it leaves");
        assert_eq!(everything(&mut stream), own.port().to_be_bytes());
    };
    let origin = |mut stream: TcpStream| {
        let mut header = [0; 28];
        stream.read_exact(&mut header).expect("a header");
        assert_eq!(header[..14], *b"\r\n\r\n\0\r\nQUIT\n\x21\x11");
        assert_eq!((&header[14..20], &header[20..24]), (&[0, 12, 10, 1, 0, 2][..], &[10, 99, 0, 1][..]));
        assert_eq!(header[26..], PORT.to_be_bytes());
        let mut question = [0; 8];
        stream.read_exact(&mut question).expect("the question");
        assert_eq!(&question, b"question");
        stream.write_all(&header[24..26]).expect("it leaves");
    };
    converse("proxy-protocol", |options| options.proxy_protocol = true, client, origin);
}

/// Clients of the next test, and the most room that each may have.
const WRITERS: usize = 8;
const MOST_ROOM: u64 = 512 << 10;
/// What each begins with: 64 KiB, of which packets of full size fill more.
const FIRST_RECEIVE_ROOM: u64 = 84_000;

/// The room of all receive buffers after clients have written as much as goes to an origin that does not read.
fn room_of_writers(receive_memory: u64) -> u64 {
    let plan = Plan { rate: Bandwidth::from_mbps(500), queue: 2_000_000, ..Plan::new(Family::V4) };
    let (room, _) = plan.serve(
        Content::Origin(ORIGIN.into()),
        |options| {
            options.limits.receive_memory = receive_memory;
            options.limits.memory = 2 * MOST_ROOM;
        },
        |site| {
            let listener = site.router.run(|| TcpListener::bind(ORIGIN)).expect("entered").expect("a port");
            let clients: Vec<_> = (0..WRITERS)
                .map(|_| {
                    let connected =
                        site.client.run(|| kernel::connect(Family::V4.server(), kernel::TCP)).expect("entered");
                    let mut stream = patient(connected);
                    let origin = listener.accept().expect("a connection").0;
                    std::thread::spawn(move || {
                        write_until_stuck(&mut stream);
                        (stream, origin)
                    })
                })
                .collect();
            let open: Vec<_> = clients.into_iter().map(|client| client.join().expect("it writes")).collect();
            // The number is a second old.
            std::thread::sleep(Duration::from_millis(1500));
            let room = site.serving.status().gauges.receive_room;
            drop(open);
            site.serving.stop();
            site.serving.finish().expect("nothing went wrong");
            room
        },
    );
    room
}

#[test]
fn receive_buffers_share_the_room_that_there_is() {
    require!(&[]);
    let limit = 1 << 20;
    let limited = room_of_writers(limit);
    // A connection that reaches the limit may grow beyond it once, and each has its first room.
    let most = limit + MOST_ROOM + WRITERS as u64 * FIRST_RECEIVE_ROOM;
    assert!(limited <= most, "{limited}");
    let enough = room_of_writers(1 << 30);
    assert!(enough > most, "{enough}");
}

/// The answer of an origin that ends its connection with it.
const ANSWER: u64 = 1_000_000;

/// What a client says to an origin that answers with [`ANSWER`] bytes and closes at once, and whether it ends its side
/// with that.
#[derive(Clone, Copy, Debug)]
struct Farewell {
    protocol: i32,
    half_closes: bool,
    /// The origin closes with bytes of the client unread, which makes its kernel send RST.
    leaves_unread: bool,
    /// The client goes on talking while it reads, also after the end of the origin's stream.
    goes_on: bool,
}

/// Waits until the peer's kernel has everything. The kernel of an origin that closes before discards the rest, and
/// sends RST, as soon as another byte of the client arrives: no proxy can pass on what was never sent.
fn wait_until_acknowledged(stream: &TcpStream) {
    loop {
        let mut unacknowledged: libc::c_int = 0;
        // SAFETY: TIOCOUTQ writes one int at the address that it is given, and this one lives until the call returns.
        let answer = unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &raw mut unacknowledged) };
        assert_eq!(answer, 0, "{}", std::io::Error::last_os_error());
        if unacknowledged == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The bytes that a client gets of the answer, and how its stream ends.
fn farewell(case: Farewell) -> (u64, Result<(), ErrorKind>) {
    let plan = Plan { rate: Bandwidth::from_mbps(20), ..Plan::new(Family::V4) };
    let (got, _) = plan.serve(
        Content::Origin(ORIGIN.into()),
        |_| {},
        |site| {
            let listener = site.router.run(|| TcpListener::bind(ORIGIN)).expect("entered").expect("a port");
            let origin = spawn("origin", move || {
                let mut stream = patient(listener.accept().expect("a connection").0);
                stream.read_exact(&mut [0; 8]).expect("the head");
                let mut answer = vec![0; ANSWER as usize];
                content::fill(0, &mut answer);
                stream.write_all(&answer).expect("the other end reads");
                if case.goes_on {
                    wait_until_acknowledged(&stream);
                }
            });
            let connected = site.client.run(|| kernel::connect(Family::V4.server(), case.protocol)).expect("entered");
            let mut stream = patient(connected);
            let extra = if case.leaves_unread { "and more" } else { "" };
            stream.write_all(format!("question{extra}").as_bytes()).expect("it leaves");
            if case.half_closes {
                stream.shutdown(Shutdown::Write).expect("it is connected");
            }
            let (mut bytes, mut buffer) = (Vec::new(), vec![0; 10_000]);
            let end = loop {
                if case.goes_on {
                    let _ = stream.write_all(b"frame");
                }
                match stream.read(&mut buffer) {
                    Ok(0) => break Ok(()),
                    Ok(n) => bytes.extend_from_slice(&buffer[..n]),
                    // A read with a timeout ends like this when the process is stopped and continued (signal(7)).
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => break Err(error.kind()),
                }
            };
            let len = bytes.len() as u64;
            assert_eq!(<[u8; 32]>::from(Sha256::digest(&bytes)), content::digest(&[], len));
            drop(stream);
            origin.join().expect("the origin is content");
            site.serving.stop();
            site.serving.finish().expect("nothing went wrong");
            (len, end)
        },
    );
    got
}

#[test]
fn an_answer_that_ends_its_connection_arrives_whole_whatever_the_client_says() {
    require!(&[NSTAT]);
    let plain = Farewell { protocol: kernel::MPTCP, half_closes: false, leaves_unread: false, goes_on: false };
    let mut failures = Vec::new();
    for protocol in [kernel::MPTCP, kernel::TCP] {
        for case in [
            plain,
            Farewell { half_closes: true, ..plain },
            Farewell { leaves_unread: true, ..plain },
            Farewell { half_closes: true, leaves_unread: true, ..plain },
            Farewell { goes_on: true, ..plain },
        ] {
            let case = Farewell { protocol, ..case };
            let (len, end) = farewell(case);
            eprintln!("{case:?}: {len} bytes, {end:?}");
            // The kernel of an origin that leaves bytes unread discards what it had not sent yet, so there is no whole
            // answer to expect.
            if len != ANSWER && !case.leaves_unread {
                failures.push((case, len, end));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:?}");
}

/// The time between two frames.
const FRAME_EVERY: Duration = Duration::from_millis(20);

/// Frames go to and fro for this time.
fn exchange_frames(time: Duration) {
    let client = move |mut stream: TcpStream| {
        stream.set_nodelay(true).expect("an option");
        let (began, mut slowest) = (std::time::Instant::now(), Duration::ZERO);
        for number in 0u64.. {
            if began.elapsed() > time {
                break;
            }
            // Frames as those of a WebSocket: some bytes, and now and then many.
            let mut frame = vec![0; if number.is_multiple_of(16) { 20_000 } else { 6 + number as usize % 120 }];
            content::fill(number, &mut frame);
            let asked = std::time::Instant::now();
            stream.write_all(&frame).expect("it leaves");
            let mut echo = vec![0; frame.len()];
            stream.read_exact(&mut echo).expect("an echo");
            assert_eq!(echo, frame, "frame {number}");
            slowest = slowest.max(asked.elapsed());
            std::thread::sleep(FRAME_EVERY);
        }
        eprintln!("the slowest echo took {slowest:?}");
        assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    };
    let origin = |mut stream: TcpStream| {
        stream.set_nodelay(true).expect("an option");
        let mut buffer = [0; 4096];
        loop {
            match stream.read(&mut buffer).expect("the client ends in order") {
                0 => return,
                n => stream.write_all(&buffer[..n]).expect("it leaves"),
            }
        }
    };
    converse("frames", |_| {}, client, origin);
}

#[test]
fn frames_go_to_and_fro_without_waiting_for_more() {
    require!(&[NSTAT]);
    exchange_frames(Duration::from_secs(3));
}

#[test]
#[ignore = "slow suite: a minute"]
fn frames_go_to_and_fro_for_a_minute() {
    require!(&[NSTAT]);
    exchange_frames(Duration::from_secs(60));
}
