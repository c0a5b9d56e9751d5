//! Files over HTTP, behind a router of the kernel's: real clients fetch them over two paths.

use crate::common::capture::{self, CaptureFile};
use crate::common::kernel::{self, PORT};
use crate::common::site::{LEN, Plan, Root};
use crate::common::{content, require};
use anabranch_live::DEFAULT_MTU;
use anabranch_serve::{Content, Listen, Options, ServeError, Serving};
use anabranch_stack::connection::Choice;
use anabranch_testnet::Netns;
use anabranch_testnet::requirements::{CURL, MPTCPIZE, NSTAT, TSHARK};
use anabranch_testnet::sites::Family;
use anabranch_units::Bandwidth;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

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

/// As [`fetch`], over two paths: reads what curl writes after the namespace's `joins`-th join
/// ([`kernel::wait_until_joined`]).
fn fetch_after_joins(client: &Netns, joins: u64, arguments: &[&str]) -> Output {
    let curl = curl(client, arguments).spawn().expect("it starts");
    kernel::wait_until_joined(client, joins);
    let output = curl.wait_with_output().expect("it ends");
    assert!(output.status.success(), "curl: {}", output.status);
    output
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Waits until the first path has delivered this many bytes.
fn wait_for(client: &Netns, bytes: u64) {
    let began = Instant::now();
    while kernel::interface_bytes(client, "ct1").0 < bytes {
        assert!(began.elapsed() < Duration::from_secs(10), "nothing comes");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Ends the server in order; returns the number of connections.
fn stop(serving: Serving) -> u64 {
    serving.stop();
    assert!(serving.wait(Duration::from_secs(5)), "no connection was left to wait for");
    serving.finish().expect("nothing went wrong").accepted
}

/// The samples of the metrics page, by everything before the value.
fn metrics(router: &Netns, serving: &Serving) -> BTreeMap<String, f64> {
    let url = format!("http://{}/metrics", serving.metrics().expect("an address"));
    let page = router.command("curl").args(["--silent", "--show-error", "--fail", &url]).output().expect("it starts");
    assert!(page.status.success(), "{}", String::from_utf8_lossy(&page.stderr));
    let page = String::from_utf8(page.stdout).expect("text");
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    let samples = samples.map(|line| line.rsplit_once(' ').expect("a value"));
    samples.map(|(name, value)| (name.to_owned(), value.parse().expect("a number"))).collect()
}

/// The sum of a counter over all paths.
fn count(metrics: &BTreeMap<String, f64>, name: &str) -> f64 {
    let name = format!("anabranch_path_{name}_total{{");
    metrics.iter().filter(|(sample, _)| sample.starts_with(&name)).map(|(_, value)| value).sum()
}

#[test]
fn curl_downloads_a_file_and_a_range_over_two_paths() {
    require!(&[NSTAT, TSHARK, CURL, MPTCPIZE]);
    let family = Family::V4;
    let (root, file) = (Root::new("serve"), CaptureFile::new("serve"));
    let film = url(family, "video/film.mp4");
    let adjust = |options: &mut Options| {
        options.scheduler = Choice::of("min-rtt");
        options.capture = Some(file.path().to_owned());
        options.metrics = Some("127.0.0.1:0".parse().expect("an address"));
    };
    let ((), client) = Plan::new(family).serve(root.content(), adjust, |site| {
        let whole = fetch_after_joins(site.client, 1, &[&film]);
        assert_eq!((whole.stdout.len() as u64, digest(&whole.stdout)), (LEN, content::digest(&[], LEN)));

        let part = fetch_after_joins(site.client, 2, &["--include", "--range", "1000000-3499999", &film]).stdout;
        let head_len = part.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
        let head = String::from_utf8_lossy(&part[..head_len]).to_lowercase();
        assert!(head.starts_with("http/1.1 206 "), "{head}");
        assert!(head.contains("content-range: bytes 1000000-3499999/5000000"), "{head}");
        let mut expected = vec![0; 2_500_000];
        content::fill(1_000_000, &mut expected);
        assert_eq!(digest(&part[head_len..]), digest(&expected));

        // The values of the page are at most a second old.
        std::thread::sleep(Duration::from_millis(1500));
        let metrics = metrics(site.router, &site.serving);
        let value = |name: &str| metrics.get(name).copied().unwrap_or_else(|| panic!("no {name}: {metrics:?}"));
        for (path, device) in [(1, "ct1"), (2, "ct2")] {
            let received = kernel::interface_bytes(site.client, device).0;
            assert!(received > 1_000_000, "{device} received {received}");
            let of_path = |name: &str| value(&format!("anabranch_path_{name}{{path=\"{path}\",device=\"srv{path}\"}}"));
            let (sent, payload) = (of_path("sent_bytes_total"), of_path("payload_bytes_total"));
            assert!(sent >= received as f64 && payload < sent && payload > 0.9 * sent, "{sent} {payload} {received}");
            let (segments, again) = (of_path("segments_total"), of_path("retransmitted_segments_total"));
            assert!(again < segments && segments <= of_path("sent_packets_total"), "{segments} {again}");
        }
        assert_eq!(value("anabranch_connections_accepted_total"), 2.0);
        assert_eq!((value("anabranch_connections_open"), value("anabranch_send_queue_bytes")), (0.0, 0.0));
        assert!(value("process_cpu_seconds_total") > 0.0 && value("process_resident_memory_bytes") > 1e6);
        assert!(
            metrics.keys().any(|name| name.starts_with("anabranch_info{") && name.contains("scheduler=\"min-rtt\""))
        );
        assert_eq!(stop(site.serving), 2);
    });
    kernel::assert_mptcp_held(&client);
    let counters = kernel::mptcp_counters(&client);
    assert_eq!((counters["MPTcpExtMPCapableSYNACKRX"], counters["MPTcpExtMPJoinSynAckRx"]), (2, 2), "{counters:?}");
    capture::assert_well_formed(&file);
}

#[test]
fn several_segments_are_one_packet_unless_that_is_turned_off() {
    require!(&[NSTAT, CURL, MPTCPIZE]);
    let family = Family::V4;
    let root = Root::new("offload");
    for offload in [true, false] {
        let adjust = |options: &mut Options| options.offload = offload;
        let (mean, client) = Plan::new(family).serve(root.content(), adjust, |site| {
            let whole = fetch(site.client, &[&url(family, "video/film.mp4")]);
            assert_eq!(digest(&whole.stdout), content::digest(&[], LEN));
            let of_both = |count: fn(&Netns, &str) -> (u64, u64)| {
                ["srv1", "srv2"].iter().map(|device| count(site.router, device).0).sum::<u64>()
            };
            of_both(kernel::interface_bytes) / of_both(kernel::interface_packets)
        });
        kernel::assert_mptcp_held(&client);
        assert_eq!(mean > u64::from(DEFAULT_MTU), offload, "packets of {mean} bytes from the server");
    }
}

#[test]
fn types_errors_and_what_lies_outside_over_ipv6() {
    require!(&[NSTAT, TSHARK, CURL, MPTCPIZE]);
    let family = Family::V6;
    let (root, file) = (Root::new("types"), CaptureFile::new("types"));
    let adjust = |options: &mut Options| {
        options.congestion_control = Choice::of("newreno");
        options.capture = Some(file.path().to_owned());
    };
    let ((), client) = Plan::new(family).serve(root.content(), adjust, |site| {
        let client = site.client;
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
        let headers = "%header{cache-control}; %header{access-control-allow-origin}; %header{timing-allow-origin}";
        let media = url(family, "video/1.m4s");
        let headers = fetch(client, &["--output", "/dev/null", "--write-out", headers, &media]);
        assert_eq!(headers.stdout, b"no-store; *; *");
        for directory in ["", "video/"] {
            assert!(status(directory).starts_with("404"), "no list of {directory:?}: {}", status(directory));
        }
        let secret = format!("anabranch-{}-types.secret", std::process::id());
        for outside in [format!("../{secret}"), format!("%2e%2e/{secret}"), format!("video/..%2f..%2f{secret}")] {
            assert!(status(&outside).starts_with("404"), "{outside}: {}", status(&outside));
        }
        let film = url(family, "video/film.mp4");
        let beyond = ["--output", "/dev/null", "--write-out", "%{http_code}", "--range", "5000000-", &film];
        assert_eq!(fetch(client, &beyond).stdout, b"416");
        // Several requests on one connection.
        let twice = fetch(client, &[&url(family, "index.html"), &url(family, "player.js")]);
        assert_eq!(twice.stdout, b"index.htmlplayer.js");
        stop(site.serving);
    });
    kernel::assert_mptcp_held(&client);
    capture::assert_well_formed(&file);
}

#[test]
fn a_download_under_way_is_completed_after_the_order_to_stop() {
    require!(&[NSTAT, CURL, MPTCPIZE]);
    let family = Family::V4;
    let root = Root::new("graceful");
    let film = url(family, "video/film.mp4");
    let ((), client) = Plan::new(family).serve(
        root.content(),
        |_| {},
        |site| {
            let download = curl(site.client, &[&film]).spawn().expect("it starts");
            let output = std::thread::spawn(|| download.wait_with_output().expect("it ends"));
            // The whole takes a second, so this is in the middle.
            wait_for(site.client, 300_000);
            site.serving.stop();
            let output = output.join().expect("it ends");
            assert!(output.status.success());
            assert_eq!(digest(&output.stdout), content::digest(&[], LEN), "all of it, although the end was ordered");
            assert_eq!(site.serving.finish().expect("nothing went wrong").accepted, 1);
        },
    );
    kernel::assert_mptcp_held(&client);
}

#[test]
fn the_second_order_to_stop_breaks_off() {
    require!(&[CURL, MPTCPIZE]);
    let family = Family::V4;
    let root = Root::new("at-once");
    let film = url(family, "video/film.mp4");
    Plan::new(family).serve(
        root.content(),
        |_| {},
        |site| {
            let download = curl(site.client, &["--limit-rate", "100k", &film]).spawn().expect("it starts");
            // Bytes that the kernel accepts without a reader.
            wait_for(site.client, 30_000);
            site.serving.stop();
            assert!(!site.serving.wait(Duration::from_millis(300)), "a download is under way");
            site.serving.stop();
            assert!(site.serving.wait(Duration::from_secs(5)));
            site.serving.finish().expect("nothing went wrong");
            let output = download.wait_with_output().expect("it ends");
            assert!(!output.status.success() && output.stdout.len() < LEN as usize, "the client got RST");
        },
    );
}

#[test]
#[ignore = "slow suite: a quarter of a gigabyte"]
fn five_downloads_of_fifty_megabytes_are_intact_with_loss_and_reordering() {
    const LEN: u64 = 50_000_000;
    require!(&[NSTAT, CURL, MPTCPIZE]);
    let family = Family::V4;
    let root = Root::new("disturbed");
    let mut bytes = vec![0; LEN as usize];
    content::fill(0, &mut bytes);
    std::fs::write(root.0.join("long"), &bytes).expect("a file");
    let long = url(family, "long");
    let plan = Plan {
        rate: Bandwidth::from_mbps(200),
        delay: anabranch_units::Duration::from_millis(2),
        queue: 500_000,
        loss: 1,
        reordering: 3,
        ..Plan::new(family)
    };
    let ((), client) = plan.serve(
        root.content(),
        |options| options.metrics = Some("127.0.0.1:0".parse().expect("an address")),
        |site| {
            let arguments = ["--max-time", "120", &*long];
            let downloads: Vec<_> = (0..5).map(|_| curl(site.client, &arguments).spawn().expect("it starts")).collect();
            let outputs: Vec<_> = downloads
                .into_iter()
                .map(|download| std::thread::spawn(|| download.wait_with_output().expect("it ends")))
                .collect();
            for output in outputs {
                let output = output.join().expect("it ends");
                assert!(output.status.success() && output.stdout == bytes, "{} bytes", output.stdout.len());
            }
            // The values of the page are at most a second old.
            std::thread::sleep(Duration::from_millis(1500));
            let metrics = metrics(site.router, &site.serving);
            assert_eq!(count(&metrics, "false_acknowledgments"), 0.0, "the kernel acknowledges what it has received");
            site.serving.stop();
        },
    );
    kernel::assert_mptcp_held(&client);
}

#[test]
fn errors_are_reported_plainly() {
    let listen = |device: &str| Listen { device: device.into(), address: Family::V4.server(), metered: false };
    let refusal = |listen: Vec<Listen>, content: Content, adjust: fn(&mut Options)| -> ServeError {
        let mut options = Options::new(listen, content);
        adjust(&mut options);
        Serving::start(options).expect_err("it is wrong")
    };
    let root = || Content::Root("/".into());
    let error = refusal(vec![listen("x")], Content::Root("/nonexistent".into()), |_| {});
    assert!(error.to_string().contains("cannot serve /nonexistent") && !error.is_input(), "{error}");
    for origin in ["localhost", ":80", "localhost:http", "localhost:0"] {
        let error = refusal(vec![listen("x")], Content::Origin(origin.into()), |_| {});
        assert!(error.to_string().contains("is not HOST:PORT") && error.is_input(), "{error}");
    }
    let error = refusal(vec![listen("x")], root(), |options| options.scheduler = Choice::of("nonsense"));
    assert!(error.to_string().contains("nonsense") && error.is_input(), "{error}");
    let error = refusal(vec![], root(), |_| {});
    assert!(error.to_string().contains("at least one path") && error.is_input(), "{error}");
    let error = refusal(vec![listen("x"), listen("y"), listen("x")], root(), |_| {});
    assert!(error.to_string().contains("path 3 has the device x") && error.is_input(), "{error}");
    let error = refusal(vec![listen("a-name-that-is-too-long")], root(), |_| {});
    assert!(error.to_string().contains("a-name-that-is-too-long") && !error.is_input(), "{error}");
}

/// How the server can learn of a link that takes 1400 bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Knows {
    Before,
    Reported,
    Nothing,
}

/// Fetches `len` bytes through a router whose devices to the client take packets of 1400 bytes; how long it took, in
/// seconds.
fn fetch_through_small_links(family: Family, paths: u16, len: u64, knows: Knows) -> f64 {
    let root = Root::new(&format!("path-mtu-{len}"));
    let mut bytes = vec![0; len as usize];
    content::fill(0, &mut bytes);
    std::fs::write(root.0.join("long"), &bytes).expect("a file");
    let adjust = |options: &mut Options| {
        options.scheduler = Choice::of("min-rtt");
        options.metrics = Some("127.0.0.1:0".parse().expect("an address"));
        if knows == Knows::Before {
            options.mtu = 1400;
        }
    };
    let (took, client) = Plan { paths, ..Plan::new(family) }.serve(root.content(), adjust, |site| {
        let mut script: String = (1..=paths).map(|path| format!("link set st{path} mtu 1400\n")).collect();
        // The kernel needs an address for its reports, and a way to the server.
        let (option, address) = match family {
            Family::V4 => ("-4", "10.200.0.1/32"),
            Family::V6 => ("-6", "fd00:200::1/128"),
        };
        script += &format!("addr add {address} dev lo\n");
        let server = family.server();
        script += &match knows {
            Knows::Nothing => format!("route add blackhole {server}\n"),
            Knows::Before | Knows::Reported => format!("route add {server} dev srv1\n"),
        };
        site.router.ip_of(option, &script).expect("the router is set up");
        let began = Instant::now();
        let whole = fetch(site.client, &[&url(family, "long")]);
        let took = began.elapsed().as_secs_f64();
        assert!(whole.stdout == bytes, "{} bytes", whole.stdout.len());
        // The values of the page are at most a second old.
        std::thread::sleep(Duration::from_millis(1500));
        let metrics = metrics(site.router, &site.serving);
        let found = (count(&metrics, "mtu_reported") > 0.0, count(&metrics, "mtu_black_holes") > 0.0);
        assert_eq!(found, (knows == Knows::Reported, knows == Knows::Nothing), "{paths} paths: {metrics:?}");
        stop(site.serving);
        took
    });
    kernel::assert_mptcp_held(&client);
    took
}

/// Downloads are repeated until their times are within the bounds, at most this often. What else the machine does only
/// lengthens a download, so the shortest of each kind counts.
const MOST_MEASUREMENTS: usize = 5;

/// A small link that the server does not know of costs at most a tenth of the time, and two seconds where no router
/// reports it.
fn assert_small_links_cost_little(family: Family, len: u64) {
    for paths in [1, 2] {
        let [mut known, mut reported, mut silent] = [f64::INFINITY; 3];
        // A tenth of a second is for the processes.
        let within =
            |known: f64, reported: f64, silent: f64| reported < 1.1 * known + 0.1 && silent < 1.1 * known + 2.0;
        for _ in 0..MOST_MEASUREMENTS {
            let took = |knows| fetch_through_small_links(family, paths, len, knows);
            known = known.min(took(Knows::Before));
            reported = reported.min(took(Knows::Reported));
            silent = silent.min(took(Knows::Nothing));
            eprintln!("{family:?}, {paths} paths, shortest: known {known} s, reported {reported} s, silent {silent} s");
            if within(known, reported, silent) {
                break;
            }
        }
        assert!(
            within(known, reported, silent),
            "{family:?}, {paths} paths: known {known} s, reported {reported} s, silent {silent} s"
        );
    }
}

#[test]
fn a_small_link_behind_the_router_costs_little_whether_it_reports_or_not() {
    require!(&[NSTAT, CURL, MPTCPIZE]);
    assert_small_links_cost_little(Family::V4, LEN);
}

#[test]
#[ignore = "slow suite: 240 MB at 20 and 40 Mb/s"]
fn small_links_cost_little_in_long_downloads_of_both_families() {
    require!(&[NSTAT, CURL, MPTCPIZE]);
    for family in [Family::V4, Family::V6] {
        assert_small_links_cost_little(family, 20_000_000);
    }
}
