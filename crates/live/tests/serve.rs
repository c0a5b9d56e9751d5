//! The server as a program, behind a router of the kernel's: real clients fetch files from it over two paths.
#![cfg(feature = "serve")]

mod common;

use anabranch_live::requirements::{CURL, MPTCPIZE, NSTAT, TSHARK};
use anabranch_live::{Clock, Emulator, Far, Link, Netns, NoHost, Script, Tap, lab, lab::Family};
use anabranch_network::{Direction, DirectionConfig, QueueConfig, Streams};
use anabranch_units::{Bandwidth, Duration};
use common::capture::{self, CaptureFile};
use common::kernel::{self, PORT};
use common::{content, require, while_emulating};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const LEN: u64 = 5_000_000;

/// A directory of files to serve, removed with its owner.
struct Root(PathBuf);

impl Root {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("anabranch-{}-{name}", std::process::id()));
        fs::create_dir_all(root.join("video")).expect("a directory");
        let mut video = vec![0; LEN as usize];
        content::fill(0, &mut video);
        fs::write(root.join("video/film.mp4"), video).expect("a file");
        for file in ["index.html", "player.js", "video/manifest.mpd", "video/1.m4s"] {
            fs::write(root.join(file), file).expect("a file");
        }
        fs::write(root.with_extension("secret"), "outside").expect("a file");
        Root(root)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
        let _ = fs::remove_file(self.0.with_extension("secret"));
    }
}

/// The program, ended with its owner.
struct Program {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Program {
    /// Starts it in a namespace, and waits until it serves.
    fn start(namespace: &Netns, family: Family, root: &Path, more: &[&str]) -> Self {
        let mut command = namespace.command(env!("CARGO_BIN_EXE_anabranch-serve"));
        for path in 1..=2 {
            command.args(["--listen", &format!("srv{path}={}", family.server())]);
        }
        command.args(["--port", &PORT.to_string()]).arg("--root").arg(root).args(more);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("it says something");
        assert!(line.starts_with("serving "), "{line}");
        Program { child, stderr }
    }

    fn interrupt(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    }

    /// How it ended, and what it said.
    fn wait(mut self) -> (std::process::ExitStatus, String) {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).expect("text");
        (self.child.wait().expect("it ends"), said)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Client, links of 20 Mb/s, router, program; runs `work` with the client's namespace and the program.
fn with_server<T>(
    name: &str,
    family: Family,
    more: &[&str],
    work: impl FnOnce(&Netns, Program) -> T,
) -> (T, Netns, CaptureFile) {
    let root = Root::new(name);
    let client = lab::client(family, 2, "reno").unwrap();
    let router = lab::router(family, 2).unwrap();
    let direction = |path: usize, way: &str| {
        let mut config = DirectionConfig::new(Bandwidth::from_mbps(20), QueueConfig::drop_tail_bytes(64_000));
        config.delay = Duration::from_millis(10 * (path as u64 + 1)).into();
        Direction::new(&config, Streams::new(1, format!("link/{path}/{way}")))
    };
    let links = client.devices.into_iter().zip(router.devices).enumerate().map(|(i, (client, far))| Link {
        client,
        far: Far::Device(far),
        up: direction(i, "up"),
        down: direction(i, "down"),
        middlebox: Default::default(),
    });
    let emulator = Emulator::new(Clock::new(), links.collect(), NoHost, Script::default(), Tap::none()).unwrap();
    let file = CaptureFile::new(name);
    let pcap = ["--pcap", file.path().to_str().expect("text")];
    let more: Vec<_> = more.iter().copied().chain(pcap).collect();
    let program = Program::start(&router.namespace, family, &root.0, &more);
    let (result, NoHost, _) = while_emulating(emulator, || work(&client.namespace, program));
    (result, client.namespace, file)
}

fn url(family: Family, file: &str) -> String {
    format!("http://{}/{file}", std::net::SocketAddr::new(family.server(), PORT))
}

fn curl(client: &Netns, arguments: &[&str]) -> Command {
    let mut command = client.command("mptcpize");
    command.args(["run", "curl", "--silent", "--show-error", "--globoff", "--path-as-is", "--max-time", "60"]);
    command.args(arguments).stdout(Stdio::piped());
    command
}

fn fetch(client: &Netns, arguments: &[&str]) -> Output {
    let output = curl(client, arguments).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Waits until the first path has brought so many bytes.
fn wait_for(client: &Netns, bytes: u64) {
    let began = std::time::Instant::now();
    while kernel::interface_bytes(client, "ct1").0 < bytes {
        assert!(began.elapsed() < std::time::Duration::from_secs(10), "nothing comes");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Ends the program as Ctrl-C does.
fn stop(program: Program) -> String {
    let began = std::time::Instant::now();
    program.interrupt();
    let (status, said) = program.wait();
    assert!(status.success(), "{status}: {said}");
    assert!(began.elapsed() < std::time::Duration::from_secs(3), "nobody was left to wait for");
    said
}

#[test]
fn curl_downloads_a_file_and_a_range_over_two_paths() {
    require!(&[NSTAT, TSHARK, CURL, MPTCPIZE]);
    let family = Family::V4;
    let film = url(family, "video/film.mp4");
    let ((), client, file) = with_server("serve", family, &["--scheduler", "min-rtt"], |client, program| {
        let whole = fetch(client, &[&film]);
        assert_eq!((whole.stdout.len() as u64, digest(&whole.stdout)), (LEN, content::digest(&[], LEN)));

        let part = fetch(client, &["--include", "--range", "1000000-3499999", &film]).stdout;
        let head_len = part.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
        let head = String::from_utf8_lossy(&part[..head_len]).to_lowercase();
        assert!(head.starts_with("http/1.1 206 "), "{head}");
        assert!(head.contains("content-range: bytes 1000000-3499999/5000000"), "{head}");
        let mut expected = vec![0; 2_500_000];
        content::fill(1_000_000, &mut expected);
        assert_eq!(digest(&part[head_len..]), digest(&expected));

        for device in ["ct1", "ct2"] {
            let received = kernel::interface_bytes(client, device).0;
            assert!(received > 1_000_000, "{device} received {received}");
        }
        let said = stop(program);
        assert!(said.contains("served 2 connections"), "{said}");
    });
    kernel::assert_mptcp_held(&client);
    let counters = kernel::mptcp_counters(&client);
    assert_eq!((counters["MPTcpExtMPCapableSYNACKRX"], counters["MPTcpExtMPJoinSynAckRx"]), (2, 2), "{counters:?}");
    capture::assert_well_formed(file.path());
}

#[test]
fn types_errors_and_what_lies_outside_over_ipv6() {
    require!(&[NSTAT, TSHARK, CURL, MPTCPIZE]);
    let family = Family::V6;
    let ((), client, file) = with_server("types", family, &["--congestion-control", "newreno"], |client, program| {
        let status = |file: &str| {
            let format = ["--output", "/dev/null", "--write-out", "%{http_code} %{content_type}", &url(family, file)];
            String::from_utf8(fetch(client, &format).stdout).expect("text")
        };
        assert_eq!(status("video/film.mp4"), "200 video/mp4");
        assert_eq!(status("video/1.m4s"), "200 video/iso.segment");
        assert_eq!(status("video/manifest.mpd"), "200 application/dash+xml");
        assert_eq!(status("index.html"), "200 text/html");
        assert_eq!(status("player.js"), "200 text/javascript");
        assert_eq!(status("nothing"), "404 ");
        for directory in ["", "video/"] {
            assert!(status(directory).starts_with("404"), "no list of {directory:?}: {}", status(directory));
        }
        let secret = format!("anabranch-{}-types.secret", std::process::id());
        for outside in [format!("../{secret}"), format!("%2e%2e/{secret}"), format!("video/..%2f..%2f{secret}")] {
            assert!(status(&outside).starts_with("404"), "{outside}: {}", status(&outside));
        }
        let beyond = [
            "--output",
            "/dev/null",
            "--write-out",
            "%{http_code}",
            "--range",
            "5000000-",
            &url(family, "video/film.mp4"),
        ];
        assert_eq!(fetch(client, &beyond).stdout, b"416");
        // Several requests on one connection.
        let twice = fetch(client, &[&url(family, "index.html"), &url(family, "player.js")]);
        assert_eq!(twice.stdout, b"index.htmlplayer.js");
        stop(program);
    });
    kernel::assert_mptcp_held(&client);
    capture::assert_well_formed(file.path());
}

#[test]
fn a_download_under_way_is_completed_after_ctrl_c() {
    require!(&[NSTAT, TSHARK, CURL, MPTCPIZE]);
    let family = Family::V4;
    let film = url(family, "video/film.mp4");
    let ((), client, _) = with_server("graceful", family, &[], |client, program| {
        let download = curl(client, &[&film]).spawn().expect("it starts");
        let output = std::thread::spawn(|| download.wait_with_output().expect("it ends"));
        // The whole takes a second, so this is in the middle.
        wait_for(client, 300_000);
        program.interrupt();
        let output = output.join().expect("it ends");
        assert!(output.status.success());
        assert_eq!(digest(&output.stdout), content::digest(&[], LEN), "all of it, although the end was ordered");
        let (status, said) = program.wait();
        assert!(status.success() && said.contains("served 1 connections"), "{status}: {said}");
    });
    kernel::assert_mptcp_held(&client);
}

#[test]
fn a_second_ctrl_c_ends_it_at_once() {
    require!(&[CURL, MPTCPIZE]);
    let family = Family::V4;
    let film = url(family, "video/film.mp4");
    with_server("at-once", family, &[], |client, program| {
        let download = curl(client, &["--limit-rate", "100k", &film]).spawn().expect("it starts");
        // What the kernel takes without anybody reading it.
        wait_for(client, 30_000);
        program.interrupt();
        std::thread::sleep(std::time::Duration::from_millis(300));
        let output = {
            let began = std::time::Instant::now();
            program.interrupt();
            let (status, said) = program.wait();
            assert!(status.success(), "{status}: {said}");
            assert!(began.elapsed() < std::time::Duration::from_secs(2));
            download.wait_with_output().expect("it ends")
        };
        assert!(!output.status.success() && output.stdout.len() < LEN as usize, "the client was told with RST");
    });
}

#[test]
fn what_is_wrong_is_said_plainly() {
    let program = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_anabranch-serve")).args(arguments).output().expect("it starts");
        (output.status.code(), String::from_utf8(output.stderr).expect("text"))
    };
    let (code, said) = program(&["--root", "/nonexistent", "--listen", "x=10.0.0.1"]);
    assert!(code == Some(1) && said.contains("cannot serve /nonexistent"), "{said}");
    let (code, said) = program(&["--root", "/", "--listen", "x=10.0.0"]);
    assert!(code == Some(2) && said.contains("10.0.0"), "{said}");
    let (code, said) = program(&["--root", "/", "--listen", "x=10.0.0.1", "--congestion-control", "nonsense"]);
    assert!(code == Some(2) && said.contains("cubic"), "{said}");
    let (code, said) = program(&["--root", "/", "--listen", "x=10.0.0.1", "--scheduler", "nonsense"]);
    assert!(code == Some(1) && said.contains("nonsense"), "{said}");
    let (code, said) = program(&["--root", "/", "--listen", "a-name-that-is-too-long=10.0.0.1"]);
    assert!(code == Some(1) && said.contains("a-name-that-is-too-long"), "{said}");
}
