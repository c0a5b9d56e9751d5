//! Requests for files that are unusual or hostile: the answers are compared with nginx's, and every difference has a
//! reason.

use crate::common::kernel;
use crate::common::nginx::Nginx;
use crate::common::require;
use crate::common::site::{Plan, Root};
use anabranch_serve::{AccessLog, LogFormat, Options, Visible};
use anabranch_testnet::Netns;
use anabranch_testnet::requirements::{CURL, NGINX};
use anabranch_testnet::sites::Family;
use std::fs::{self, FileTimes};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// Where nginx listens, in the router's namespace.
const NGINX_AT: &str = "127.0.0.1:8081";
/// The longest step of a test.
const TIMEOUT: Duration = Duration::from_secs(20);
/// When the files were modified, as a date, and the seconds before and after.
const MODIFIED: u64 = 1_700_000_000;
const DATE: &str = "Tue, 14 Nov 2023 22:13:20 GMT";
const BEFORE: &str = "Tue, 14 Nov 2023 22:13:19 GMT";
const AFTER: &str = "Tue, 14 Nov 2023 22:13:21 GMT";

/// A response.
#[derive(Debug)]
struct Got {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Got {
    fn header(&self, name: &str) -> Option<&str> {
        let line =
            self.head.lines().find_map(|line| line.split_once(": ").filter(|(n, _)| n.eq_ignore_ascii_case(name)));
        line.map(|(_, value)| value.trim())
    }
}

/// Sends a request as it is, and reads to the end of the stream.
fn exchange(mut stream: TcpStream, request: &str) -> Got {
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    stream.write_all(request.as_bytes()).expect("it leaves");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap_or_else(|error| panic!("{request:.80}: {error}"));
    let at =
        bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or_else(|| panic!("{request:.80}: no head")) + 4;
    let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
    Got { status, head, body: bytes.split_off(at) }
}

fn request(method: &str, path: &str, lines: &[String]) -> String {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    format!("{method} {path} HTTP/1.1\r\nHost: anabranch.test\r\n{lines}Connection: close\r\n\r\n")
}

fn ask_ours(client: &Netns, request: &str) -> Got {
    client.run(|| exchange(kernel::connect(Family::V4.server(), kernel::TCP), request)).expect("entered")
}

fn ask_nginx(router: &Netns, request: &str) -> Got {
    router.run(|| exchange(TcpStream::connect(NGINX_AT).expect("it listens"), request)).expect("entered")
}

/// nginx without TLS, which serves `root` inside the namespace.
fn nginx(namespace: &Netns, root: &Path) -> Nginx {
    let base = root.join("nginx");
    fs::create_dir_all(&base).expect("a directory");
    Nginx::start(namespace, &base, NGINX_AT, &format!("listen {NGINX_AT}; root {};", root.display()))
}

fn file(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("a file");
    let times = FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(MODIFIED));
    fs::File::options().write(true).open(path).and_then(|file| file.set_times(times)).expect("a time");
}

/// A request for 1000 bytes (`/f`) or none (`/empty`), the status here, and nginx's. `ETAG` is the server's validator.
type Case = (&'static str, &'static str, &'static [&'static str], u16, u16);

/// Where the numbers differ, the reason stands above the case; `docs/how-to/serve.md` has it, too.
const CASES: [Case; 42] = [
    ("GET", "/f", &[], 200, 200),
    ("HEAD", "/f", &[], 200, 200),
    ("GET", "/f", &["Range: bytes=0-0"], 206, 206),
    ("GET", "/f", &["Range: Bytes=0-0"], 206, 206),
    ("GET", "/f", &["Range: bytes=990-5000"], 206, 206),
    ("GET", "/f", &["Range: bytes=-10"], 206, 206),
    ("GET", "/f", &["Range: bytes=-5000"], 206, 206),
    ("GET", "/f", &["Range: bytes=-0"], 416, 416),
    ("GET", "/f", &["Range: bytes=1000-"], 416, 416),
    ("GET", "/f", &["Range: seconds=1-2"], 200, 200),
    // Several ranges are ignored here, as RFC 9110 allows; nginx sends multipart/byteranges.
    ("GET", "/f", &["Range: bytes=0-1,5-6"], 200, 206),
    // Wrong syntax is ignored here and rejected by nginx; RFC 9110 section 14.2 allows both.
    ("GET", "/f", &["Range: bytes=5-4"], 200, 416),
    ("GET", "/f", &["Range: bytes=a-b"], 200, 416),
    ("GET", "/f", &["Range: bytes=-"], 200, 416),
    // RFC 9110 section 14.2: a range has a meaning for GET only.
    ("HEAD", "/f", &["Range: bytes=0-0"], 200, 206),
    // An empty file has no first byte (RFC 9110 section 14.1.2); nginx ignores ranges of empty files.
    ("GET", "/empty", &["Range: bytes=0-0"], 416, 200),
    ("GET", "/empty", &["Range: bytes=-5"], 200, 200),
    ("GET", "/f", &["If-None-Match: ETAG"], 304, 304),
    ("GET", "/f", &["If-None-Match: W/ETAG"], 304, 304),
    ("GET", "/f", &["If-None-Match: \"x\""], 200, 200),
    ("GET", "/f", &["If-None-Match: *"], 304, 304),
    ("GET", "/f", &["If-None-Match: \"x\"", "If-Modified-Since: DATE"], 200, 200),
    ("GET", "/f", &["If-Modified-Since: DATE"], 304, 304),
    // Not modified since a later date (RFC 9110 section 13.1.3); nginx compares for equality by default.
    ("GET", "/f", &["If-Modified-Since: AFTER"], 304, 200),
    ("GET", "/f", &["If-Modified-Since: BEFORE"], 200, 200),
    ("GET", "/f", &["If-Match: ETAG"], 200, 200),
    ("GET", "/f", &["If-Match: *"], 200, 200),
    ("GET", "/f", &["If-Match: \"x\""], 412, 412),
    ("GET", "/f", &["If-Match: W/ETAG"], 412, 412),
    // The date does not count together with If-Match (RFC 9110 section 13.2.2); nginx evaluates both.
    ("GET", "/f", &["If-Match: ETAG", "If-Unmodified-Since: BEFORE"], 200, 412),
    ("GET", "/f", &["If-Unmodified-Since: BEFORE"], 412, 412),
    ("GET", "/f", &["Range: bytes=1-2", "If-Range: ETAG"], 206, 206),
    ("GET", "/f", &["Range: bytes=1-2", "If-Range: W/ETAG"], 200, 200),
    ("GET", "/f", &["Range: bytes=1-2", "If-Range: \"x\""], 200, 200),
    ("GET", "/f", &["Range: bytes=1-2", "If-Range: DATE"], 206, 206),
    ("GET", "/f", &["Range: bytes=1-2", "If-Range: AFTER"], 200, 200),
    ("GET", "/f", &["Range: bytes=1-2", "If-None-Match: ETAG"], 304, 304),
    ("GET", "/f/", &[], 404, 404),
    ("GET", "//f", &[], 200, 200),
    ("POST", "/f", &[], 405, 405),
    // Pages of other servers may read everything here, so their browsers get an answer; nginx serves its own pages by
    // default.
    ("OPTIONS", "/f", &[], 204, 405),
    ("OPTIONS", "/none", &["Origin: http://page.test", "Access-Control-Request-Method: GET"], 204, 405),
];

fn assert_consistent(got: &Got, method: &str, len: usize, what: &str) {
    let announced: usize = got.header("content-length").map_or(0, |value| value.parse().expect("a number"));
    match (got.status, method) {
        (200, "HEAD") => assert_eq!((announced, got.body.len()), (len, 0), "{what}"),
        (200, _) => assert_eq!((announced, got.body.len()), (len, len), "{what}"),
        (206, _) => {
            let range = got.header("content-range").expect("a range").strip_prefix("bytes ").expect("of bytes");
            let (part, total) = range.split_once('/').expect("of a length");
            let (first, last) = part.split_once('-').expect("two numbers");
            let [first, last] = [first, last].map(|n| n.parse::<usize>().expect("a number"));
            assert_eq!(
                (total, got.body.len(), announced),
                (&*len.to_string(), last + 1 - first, last + 1 - first),
                "{what}"
            );
            assert!(got.body.iter().zip(first..).all(|(byte, at)| *byte == at as u8), "{what}");
        }
        (416, _) => assert_eq!(got.header("content-range"), Some(&*format!("bytes */{len}")), "{what}"),
        _ => assert!(got.body.is_empty(), "{what}"),
    }
    if [200, 206, 304].contains(&got.status) {
        assert!(got.header("etag").is_some() && got.header("last-modified") == Some(DATE), "{what}");
    }
}

#[test]
fn conditional_requests_and_ranges_compared_with_nginx() {
    require!(&[NGINX]);
    let root = Root::new("conditions");
    file(&root.0.join("f"), &(0..1000).map(|i| i as u8).collect::<Vec<_>>());
    file(&root.0.join("empty"), b"");
    Plan::new(Family::V4).serve(
        root.content(),
        |_| {},
        |site| {
            let _nginx = nginx(site.router, &root.0);
            let ours = |request: &str| ask_ours(site.client, request);
            let nginxs = |request: &str| ask_nginx(site.router, request);
            let etag = |got: Got| got.header("etag").expect("a validator").to_owned();
            for (method, path, lines, here, there) in CASES {
                let tag_of = request("HEAD", path, &[]);
                let of = |tag: &str| {
                    let fill = |line: &&str| {
                        line.replace("ETAG", tag)
                            .replace("DATE", DATE)
                            .replace("BEFORE", BEFORE)
                            .replace("AFTER", AFTER)
                    };
                    request(method, path, &lines.iter().map(fill).collect::<Vec<_>>())
                };
                let is_file = ["/f", "/empty"].contains(&path);
                let tags = if is_file { [etag(ours(&tag_of)), etag(nginxs(&tag_of))] } else { Default::default() };
                let got = ours(&of(&tags[0]));
                let what = format!("{method} {path} {lines:?}: {got:?}");
                assert_eq!((got.status, nginxs(&of(&tags[1])).status), (here, there), "{what}");
                assert_consistent(&got, method, if path == "/empty" { 0 } else { 1000 }, &what);
            }
            site.serving.stop();
        },
    );
}

#[test]
fn a_resumed_download_of_a_changed_file_begins_anew() {
    require!(&[]);
    let root = Root::new("resumed");
    let path = root.0.join("f");
    file(&path, &[1; 1000]);
    Plan::new(Family::V4).serve(
        root.content(),
        |_| {},
        |site| {
            let first = ask_ours(site.client, &request("GET", "/f", &["Range: bytes=0-499".into()]));
            assert_eq!((first.status, first.body), (206, vec![1; 500]));
            let etag = first.head.lines().find_map(|line| line.strip_prefix("etag: ")).expect("a validator").to_owned();
            // Of the same length and with the same time, but another file.
            file(&root.0.join("new"), &[2; 1000]);
            fs::rename(root.0.join("new"), &path).expect("replaced");
            let rest = ["Range: bytes=500-".into(), format!("If-Range: {etag}")];
            let second = ask_ours(site.client, &request("GET", "/f", &rest));
            assert_eq!((second.status, second.body), (200, vec![2; 1000]), "two versions were not spliced");
            site.serving.stop();
        },
    );
}

/// Bytes of a target that never arrives whole: twice the 64 KiB that the server keeps of a head, of which it reads as
/// much at once.
const TOO_LONG: usize = 140_000;

#[test]
fn names_and_heads_that_are_wrong_are_answered_with_a_status() {
    require!(&[]);
    let root = Root::new("wrong");
    file(&root.0.join("f"), &[1; 10]);
    file(&root.0.join(".hidden"), &[1; 10]);
    std::os::unix::fs::symlink(root.0.with_extension("secret"), root.0.join("link")).expect("a link");
    Plan::new(Family::V4).serve(
        root.content(),
        |_| {},
        |site| {
            let ours = |request: &str| ask_ours(site.client, request).status;
            for (path, status) in [
                (format!("/{}", "x".repeat(300)), 404),
                (format!("/{}", "x/".repeat(3000)), 404),
                (format!("/{}", "x".repeat(9_000)), 414),
                (format!("/{}", "x".repeat(TOO_LONG)), 431),
                ("/f%00".into(), 404),
                ("/.hidden".into(), 404),
                ("/link".into(), 404),
                ("/video/".into(), 404),
            ] {
                assert_eq!(ours(&request("GET", &path, &[])), status, "{path:.40}");
            }
            for (head, status) in [
                ("GET /f HTTP/1.1\r\nConnection: close\r\n\r\n", 400),
                ("GET /f HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n", 400),
                ("GET /f HTTP/1.0\r\n\r\n", 200),
            ] {
                assert_eq!(ours(head), status, "{head}");
            }
            site.serving.stop();
        },
    );
}

#[test]
fn pages_of_other_servers_may_send_the_headers_of_cmcd() {
    require!(&[]);
    let root = Root::new("preflight");
    Plan::new(Family::V4).serve(
        root.content(),
        |_| {},
        |site| {
            let cmcd = "cmcd-object,cmcd-request,cmcd-session,cmcd-status";
            let lines = [
                "Origin: http://page.test".to_owned(),
                "Access-Control-Request-Method: GET".to_owned(),
                format!("Access-Control-Request-Headers: {cmcd}"),
                "Access-Control-Request-Headers: range".to_owned(),
            ];
            let got = ask_ours(site.client, &request("OPTIONS", "/video/manifest.mpd", &lines));
            assert_eq!(got.status, 204);
            assert_eq!(got.header("access-control-allow-origin"), Some("*"));
            assert_eq!(got.header("access-control-allow-methods"), Some("GET, HEAD, OPTIONS"));
            assert_eq!(got.header("access-control-max-age"), Some("86400"));
            let allowed: Vec<_> =
                got.head.lines().filter_map(|line| line.strip_prefix("access-control-allow-headers: ")).collect();
            assert_eq!(allowed, [cmcd, "range"]);
            // A response without a body has no length (RFC 9110 section 8.6).
            assert_eq!((got.header("content-length"), got.body.len()), (None, 0));
            // What is asked without a page gets the methods alone.
            let plain = ask_ours(site.client, &request("OPTIONS", "/video/manifest.mpd", &[]));
            assert_eq!((plain.status, plain.header("allow")), (204, Some("GET, HEAD, OPTIONS")));
            assert_eq!(plain.header("access-control-allow-methods"), None);
            site.serving.stop();
        },
    );
}

#[test]
fn what_is_no_request_of_http_1_is_answered_and_logged() {
    require!(&[CURL]);
    let root = Root::new("malformed");
    let log = root.0.join("access.log");
    let adjust = |options: &mut Options| {
        options.access_log = Some(AccessLog { file: log.clone(), format: LogFormat::Combined });
    };
    let mut either = String::new();
    Plan::new(Family::V4).serve(root.content(), adjust, |site| {
        let ours = |request: &str| ask_ours(site.client, request);
        // A client of HTTP/2 shows the answer to its user.
        let url = format!("http://{}:{}/video/film.mp4", Family::V4.server(), kernel::PORT);
        let options = ["--silent", "--http2-prior-knowledge", "--write-out", "%{http_version} %{http_code}", &url];
        let said = site.client.command("curl").args(options).output().expect("curl runs").stdout;
        let said = String::from_utf8(said).expect("text");
        assert_eq!(said, "This server speaks HTTP/1.1, not HTTP/2 (curl: --http1.1).\n2 505");
        assert_eq!(ours("nonsense\r\n\r\n").status, 400);
        // Where the whole head has arrived before it is parsed, hyper refuses the target, and the head otherwise.
        either = ours(&request("GET", &format!("/{}", "x".repeat(70_000)), &[])).status.to_string();
        assert!(["414", "431"].contains(&either.as_str()), "{either}");
        assert_eq!(ours(&request("GET", &format!("/{}", "x".repeat(TOO_LONG)), &[])).status, 431);
        site.serving.stop();
        site.serving.finish().expect("nothing went wrong");
    });
    let lines = fs::read_to_string(&log).expect("a log");
    let statuses: Vec<_> = lines.lines().filter_map(|line| line.split("\" ").nth(1)?.split(' ').next()).collect();
    assert_eq!(statuses, ["505", "400", either.as_str(), "431"], "{lines}");
}

#[test]
fn links_and_hidden_files_are_served_where_allowed() {
    require!(&[]);
    let root = Root::new("allowed");
    file(&root.0.join(".hidden"), &[1; 10]);
    std::os::unix::fs::symlink(root.0.with_extension("secret"), root.0.join("link")).expect("a link");
    let adjust = |options: &mut Options| options.visible = Visible { symlinks: true, hidden: true };
    Plan::new(Family::V4).serve(root.content(), adjust, |site| {
        for path in ["/.hidden", "/link"] {
            assert_eq!(ask_ours(site.client, &request("GET", path, &[])).status, 200, "{path}");
        }
        site.serving.stop();
    });
}

#[test]
fn requests_for_a_fifo_stop_nothing() {
    require!(&[]);
    let root = Root::new("fifo");
    file(&root.0.join("f"), &[1; 10]);
    let fifo = root.0.join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).expect("a FIFO");
    Plan::new(Family::V4).serve(
        root.content(),
        |_| {},
        |site| {
            for _ in 0..20 {
                assert_eq!(ask_ours(site.client, &request("GET", "/fifo", &[])).status, 404);
            }
            assert_eq!(ask_ours(site.client, &request("GET", "/f", &[])).status, 200);
            site.serving.stop();
            assert!(site.serving.wait(Duration::from_secs(5)), "nothing keeps it from ending");
        },
    );
}

#[test]
fn slow_and_ambiguous_requests_disturb_no_other_client() {
    require!(&[]);
    let root = Root::new("ambiguous");
    file(&root.0.join("f"), &[1; 10]);
    Plan::new(Family::V4).serve(
        root.content(),
        |_| {},
        |site| {
            // Heads that never end.
            let slow: Vec<_> = (0..100)
                .map(|_| {
                    let mut stream =
                        site.client.run(|| kernel::connect(Family::V4.server(), kernel::TCP)).expect("entered");
                    stream.write_all(b"GET /f HTTP/1.1\r\nHost: x\r\nX-").expect("it leaves");
                    stream
                })
                .collect();
            assert_eq!(ask_ours(site.client, &request("GET", "/f", &[])).status, 200);
            drop(slow);
            // Bodies whose end two servers could see in different places; the second request must not be answered.
            let hidden = "GET /f HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
            for lines in [
                "Content-Length: 5\r\nTransfer-Encoding: chunked",
                "Content-Length: 5\r\nContent-Length: 6",
                "Transfer-Encoding: chunked, identity",
                "Content-Length: +5",
                "Content-Length : 5",
                " Content-Length: 5",
            ] {
                let ambiguous = format!("GET /f HTTP/1.1\r\nHost: x\r\n{lines}\r\n\r\n0\r\n\r\n{hidden}");
                let got = ask_ours(site.client, &ambiguous);
                let answers = 1 + String::from_utf8_lossy(&got.body).matches("HTTP/1.1 ").count();
                // The first case has one meaning by RFC 9112 section 6.3, if the connection ends behind it.
                assert_eq!(answers, 1, "{lines}: {got:?}");
                let ended = got.status == 200 && got.header("connection") == Some("close");
                assert!(got.status == 400 || ended, "{lines}: {got:?}");
            }
            site.serving.stop();
        },
    );
}
