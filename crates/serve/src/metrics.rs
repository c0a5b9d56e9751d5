//! The page that Prometheus reads, in its text format 0.0.4, which every scraper understands.
//!
//! It is written here and not by `prometheus-client`, which knows OpenMetrics only: there the type of a counter is
//! declared without its suffix `_total`, and a scraper that asks for 0.0.4 takes the counter for an untyped metric.

use super::Options;
use super::channel::lock;
use super::status::{Board, PathStatus, Process, Status};
use anabranch_events::PacingCounts;
use anabranch_stack::external::DecisionTimes;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::fmt::{Display, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;

/// A client has this long for a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// After an error of the operating system's, such as too many open files, the next connection is tried after this long.
const RETRY: Duration = Duration::from_millis(100);

/// What the page is made of.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) board: Arc<Board>,
    names: Mutex<Names>,
}

/// How data is sent.
#[derive(Debug)]
struct Names {
    scheduler: String,
    congestion_control: String,
    path_policy: String,
    response_pacing: String,
}

impl Names {
    fn of(options: &Options) -> Self {
        Names {
            scheduler: options.scheduler.name.clone(),
            congestion_control: options.congestion_control.name.clone(),
            path_policy: options.path_policy.name.clone(),
            response_pacing: options.response_pacing.as_ref().map_or("off", |pacing| pacing.name()).to_owned(),
        }
    }
}

impl Shown {
    pub(super) fn new(board: Arc<Board>, options: &Options) -> Self {
        Shown { board, names: Mutex::new(Names::of(options)) }
    }

    /// The options were changed.
    pub(super) fn update(&self, options: &Options) {
        *lock(&self.names) = Names::of(options);
    }
}

/// Answers requests for the page as long as it is polled.
pub(super) async fn show(listener: TcpListener, shown: Arc<Shown>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(RETRY).await;
            continue;
        };
        let shown = shown.clone();
        let service = service_fn(move |request| {
            let answer = answer(&shown, &request);
            async { Ok::<_, Infallible>(answer) }
        });
        let mut protocol = http1::Builder::new();
        protocol.timer(TokioTimer::new()).header_read_timeout(REQUEST_TIMEOUT);
        tokio::spawn(async move { drop(protocol.serve_connection(TokioIo::new(stream), service).await) });
    }
}

fn answer(shown: &Shown, request: &Request<Incoming>) -> Response<String> {
    if request.uri().path() != "/metrics" {
        return refuse(StatusCode::NOT_FOUND, "The metrics are at /metrics.\n");
    }
    if request.method() != Method::GET {
        return refuse(StatusCode::METHOD_NOT_ALLOWED, "The metrics can only be read.\n");
    }
    let mut response = Response::new(page(shown, &shown.board.read(), Process::now()));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn refuse(status: StatusCode, why: &str) -> Response<String> {
    let mut response = Response::new(why.to_owned());
    *response.status_mut() = status;
    response
}

/// The kinds of metric that there are here.
#[derive(Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
    Summary,
}

/// A page under construction.
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Summary => "summary",
        };
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (i, (label, text)) in labels.iter().enumerate() {
            let _ = write!(self.0, "{}{label}=\"{}\"", if i == 0 { '{' } else { ',' }, escaped(text));
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// A metric without labels.
    fn single(&mut self, name: &str, kind: Kind, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    /// A metric of each path.
    fn paths(&mut self, status: &Status, name: &str, kind: Kind, help: &str, value: impl Fn(&PathStatus) -> u64) {
        self.family(name, kind, help);
        for (i, path) in status.paths.iter().enumerate() {
            let number = (i + 1).to_string();
            self.sample(name, &[("path", &number), ("device", &path.device)], value(path));
        }
    }
}

/// A label's text may hold anything but a bare backslash, quotation mark or line feed.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn page(shown: &Shown, status: &Status, process: Process) -> String {
    let mut page = Page(String::with_capacity(8 << 10));
    page.family("anabranch_info", Kind::Gauge, "Always 1; the labels say how the server works.");
    let names = lock(&shown.names);
    let labels = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("scheduler", &names.scheduler),
        ("congestion_control", names.congestion_control.as_str()),
        ("path_policy", &names.path_policy),
        ("response_pacing", &names.response_pacing),
    ];
    page.sample("anabranch_info", &labels, 1);
    drop(names);
    page.single("anabranch_uptime_seconds", Kind::Gauge, "Since the start.", status.uptime.as_secs_f64());
    connections(&mut page, status);
    decisions(&mut page, status.decisions);
    pacing(&mut page, status.pacing);
    paths(&mut page, status);
    let (cpu, memory) = (process.cpu_seconds, process.resident_bytes);
    page.single("process_cpu_seconds_total", Kind::Counter, "Processor time, user and system.", cpu);
    page.single("process_resident_memory_bytes", Kind::Gauge, "Resident memory.", memory);
    page.0
}

fn connections(page: &mut Page, status: &Status) {
    let (gauges, counters) = (&status.gauges, &status.counters);
    let now: [(&str, &str, u64); 8] = [
        ("connections_open", "Connections whose handshake is complete.", gauges.open),
        ("connections_multipath", "Those of them that speak Multipath TCP.", gauges.multipath),
        ("connections_half_open", "Handshakes under way.", gauges.half_open),
        ("subflows_time_wait", "Ended subflows that are remembered.", gauges.time_waits),
        ("send_queue_bytes", "Written by the application and not acknowledged.", gauges.send_queue),
        ("receive_queue_bytes", "Received in order and not read.", gauges.receive_queue),
        ("receive_room_bytes", "Room of all receive buffers; what clients may send ahead.", gauges.receive_room),
        ("buffer_bytes", "Memory of all buffers of connections.", status.held + gauges.receive_memory),
    ];
    for (name, help, value) in now {
        page.single(&format!("anabranch_{name}"), Kind::Gauge, help, value);
    }
    let so_far: [(&str, &str, u64); 14] = [
        ("connections_accepted", "SYNs that were taken up.", counters.accepted),
        ("connections_closed", "Connections that ended, half-open ones included.", counters.closed),
        ("connections_refused", "SYNs left unanswered because of a limit, or of the end.", counters.refused),
        ("connections_unmade", "SYNs refused because an own algorithm could not be made.", counters.unmade),
        ("connections_failed", "Connections reset because an own algorithm failed.", counters.failed),
        ("connections_displaced", "Half-open connections that made room for newer ones.", counters.displaced),
        ("connections_silent", "Connections without a request that made room for new ones.", counters.silent),
        ("connections_idle", "Connections aborted because nothing was heard of the client.", counters.idle),
        ("connections_stalled", "Connections aborted because the client took no data.", counters.stalled),
        ("packets_undecodable", "Packets that could not be understood.", counters.undecodable),
        ("packets_misdirected", "Packets for an address that is not the server's.", counters.misdirected),
        ("reports_ignored", "Reports about packets too big that fit none in flight.", counters.reports_ignored),
        ("segments_unknown", "Segments that belong to no connection.", counters.unknown),
        ("segments_unsendable", "Segments that could not be encoded; zero, or there is a fault.", counters.unsendable),
    ];
    for (name, help, value) in so_far {
        page.single(&format!("anabranch_{name}_total"), Kind::Counter, help, value);
    }
}

fn decisions(page: &mut Page, times: DecisionTimes) {
    const NAME: &str = "anabranch_decision_seconds";
    page.family(NAME, Kind::Summary, "From the question to an own algorithm to its answer; quantiles since the start.");
    for (quantile, time) in [("0.5", times.p50), ("0.99", times.p99)] {
        // A quantile of nothing is no number (Prometheus, text format 0.0.4).
        let seconds = if times.decisions == 0 { f64::NAN } else { time.as_secs_f64() };
        page.sample(NAME, &[("quantile", quantile)], seconds);
    }
    page.sample(&format!("{NAME}_sum"), &[], times.total.as_secs_f64());
    page.sample(&format!("{NAME}_count"), &[], times.decisions);
}

fn pacing(page: &mut Page, counts: PacingCounts) {
    let now: [(&str, &str, u64); 4] = [
        ("viewers", "Viewers of DASH who are present, as far as responses are paced.", counts.viewers),
        ("connections", "Connections whose rate a pace limits.", counts.limited),
        ("presentations", "Presentations that are known by their MPDs.", counts.presentations),
        ("unusable_mpds", "MPDs that were asked for, and whose viewers cannot be paced.", counts.unusable),
    ];
    for (name, help, value) in now {
        page.single(&format!("anabranch_pacing_{name}"), Kind::Gauge, help, value);
    }
    let so_far = [
        ("media", "Responses with media.", counts.media),
        ("paced", "Those of them that were paced when they began.", counts.paced),
    ];
    for (name, help, value) in so_far {
        page.single(&format!("anabranch_pacing_{name}_responses_total"), Kind::Counter, help, value);
    }
}

/// A metric of a path: its name, what it means, and where its value stands.
type OfPath = (&'static str, &'static str, fn(&PathStatus) -> u64);

const OF_PATHS: [OfPath; 12] = [
    ("received_bytes", "IP packets from clients.", |path| path.received.bytes),
    ("received_packets", "IP packets from clients.", |path| path.received.packets),
    ("sent_bytes", "IP packets to clients.", |path| path.sent.bytes),
    ("sent_packets", "IP packets to clients.", |path| path.sent.packets),
    ("refused_packets", "IP packets to clients that the kernel refused.", |path| path.refused),
    ("segments", "Segments with payload to clients.", |path| path.segments.segments),
    ("payload_bytes", "Payload of segments to clients.", |path| path.segments.bytes),
    ("retransmitted_segments", "Segments repeated on their subflow.", |path| path.segments.retransmitted_segments),
    ("retransmitted_bytes", "Payload repeated on its subflow.", |path| path.segments.retransmitted_bytes),
    ("mtu_reported", "Subflows with smaller segments since a router's report.", |path| path.segments.mtu_reported),
    ("mtu_black_holes", "Subflows with smaller segments since large ones vanished.", |path| {
        path.segments.mtu_black_holes
    }),
    ("false_acknowledgments", "Subflows reset because of data acknowledged before it was sent.", |path| {
        path.segments.false_acknowledgments
    }),
];

fn paths(page: &mut Page, status: &Status) {
    for (name, help, value) in OF_PATHS {
        page.paths(status, &format!("anabranch_path_{name}_total"), Kind::Counter, help, value);
    }
    page.paths(status, "anabranch_path_subflows", Kind::Gauge, "Open subflows.", |path| path.subflows);
    let gone = "Whether the device was deleted.";
    page.paths(status, "anabranch_path_device_gone", Kind::Gauge, gone, |path| u64::from(path.gone));
    let metered = "Whether the path is metered.";
    page.paths(status, "anabranch_path_metered", Kind::Gauge, metered, |path| u64::from(path.metered));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, Listen};

    fn shown() -> Shown {
        let options = Options::new(Vec::new(), Content::Origin("o:1".into()));
        Shown::new(Arc::default(), &options)
    }

    #[test]
    fn every_family_is_described_once_and_every_sample_is_of_a_family() {
        let path = |device: &str| PathStatus {
            gone: false,
            device: device.into(),
            address: [10, 0, 0, 1].into(),
            metered: device == "srv1",
            received: Default::default(),
            sent: super::super::status::Traffic { packets: 3, bytes: 4321 },
            refused: 0,
            segments: Default::default(),
            subflows: 2,
        };
        let status = Status { paths: vec![path("srv1"), path("a\"b\\")], ..Status::default() };
        let text = page(&shown(), &status, Process::default());
        assert!(text.contains("anabranch_path_sent_bytes_total{path=\"1\",device=\"srv1\"} 4321\n"), "{text}");
        assert!(text.contains("device=\"a\\\"b\\\\\"} "), "{text}");
        assert!(text.contains("anabranch_path_metered{path=\"1\",device=\"srv1\"} 1\n"), "{text}");
        let mut described = Vec::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let name = rest.split(' ').next().unwrap();
                assert!(!described.contains(&name), "{name} twice");
                described.push(name);
            } else if !line.starts_with('#') {
                let name = line.split(['{', ' ']).next().unwrap();
                let of_summary = ["_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
                let family =
                    of_summary.filter(|family| text.contains(&format!("# TYPE {family} summary\n"))).unwrap_or(name);
                assert_eq!(Some(&family), described.last(), "a family's samples stand together");
                assert!(line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line}");
            }
        }
        assert!(described.len() > 25);
    }

    #[test]
    fn the_times_of_decisions_are_a_summary_in_seconds() {
        use anabranch_units::Duration;
        let us = Duration::from_micros;
        let decisions = DecisionTimes { decisions: 3, total: us(1300), p50: us(200), p99: us(900) };
        let text = page(&shown(), &Status { decisions, ..Status::default() }, Process::default());
        for (sample, value) in
            [("{quantile=\"0.5\"}", "0.0002"), ("{quantile=\"0.99\"}", "0.0009"), ("_sum", "0.0013"), ("_count", "3")]
        {
            assert!(text.contains(&format!("anabranch_decision_seconds{sample} {value}\n")), "{sample} in {text}");
        }
        let without = page(&shown(), &Status::default(), Process::default());
        assert!(without.contains("anabranch_decision_seconds{quantile=\"0.5\"} NaN\n"), "{without}");
    }

    #[test]
    fn the_names_of_what_is_used_are_labels() {
        let listen = Listen { device: "x".into(), address: [10, 0, 0, 1].into(), metered: false };
        let options = Options::new(vec![listen], Content::Origin("o:1".into()));
        let text = page(&Shown::new(Arc::default(), &options), &Status::default(), Process::default());
        let scheduler = format!("scheduler=\"{}\"", options.scheduler.name);
        let info = text.lines().find(|line| line.starts_with("anabranch_info{")).expect("the line");
        assert!(info.contains(&scheduler) && info.ends_with("} 1"), "{info}");
    }
}
