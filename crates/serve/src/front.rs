//! The asynchronous side: takes the streams from the loop, and answers them.

use super::access::{Log, Pending};
use super::driver::{Order, Wakes};
use super::files::{self, Files};
use super::http2;
use super::meter::Meter;
use super::metrics::{self, Shown};
use super::proxy::{self, Passed};
use super::stream::Shared;
use super::{Content, Options, Stream, trim};
use hyper::StatusCode;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use std::io;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Orders to the asynchronous side.
pub(super) struct Orders {
    /// Number of orders to stop: the first one lets running responses complete, the second one aborts them.
    pub(super) stops: watch::Receiver<u32>,
    /// The options, and later ones.
    pub(super) versions: watch::Receiver<Version>,
}

/// The options at a time, and the access log that belongs to them.
#[derive(Clone, Debug)]
pub(super) struct Version {
    pub(super) options: Arc<Options>,
    pub(super) log: Option<Log>,
}

/// Handler of the streams.
enum Front {
    Files { directory: Files, protocol: http1::Builder, graceful: GracefulShutdown },
    Origin { address: Arc<str>, announces: bool, under_way: mpsc::Sender<()>, ended: mpsc::Receiver<()> },
}

impl Front {
    fn new(options: &Options, meter: &Meter) -> io::Result<Self> {
        Ok(match &options.content {
            Content::Root(root) => Front::Files {
                directory: Files::new(root, options.visible, meter.clone())?,
                protocol: files::protocol(),
                graceful: GracefulShutdown::new(),
            },
            Content::Origin(origin) => {
                // No message is ever sent; the channel ends when the last stream has dropped its sender.
                let (under_way, ended) = mpsc::channel(1);
                Front::Origin { address: origin.as_str().into(), announces: options.proxy_protocol, under_way, ended }
            }
        })
    }

    /// Answers a stream.
    fn take(&self, stream: Stream, log: Option<Log>) {
        let client = stream.client(log);
        match self {
            Front::Files { directory, protocol, graceful } => {
                let (directory, malformed) = (directory.clone(), client.clone());
                let service = service_fn(move |request| directory.clone().answer(request, client.clone()));
                let mut stream = Shared::new(stream);
                let served = graceful.watch(protocol.serve_connection(TokioIo::new(stream.clone()), service));
                tokio::spawn(async move {
                    // A client's abort concerns only itself. A request that is not HTTP/1 has no other place where it
                    // is logged.
                    let Err(error) = served.await else { return };
                    if !error.is_parse() {
                        return;
                    }
                    // Hyper says nothing to HTTP/2. What goes wrong here concerns only this client.
                    if error.is_parse_version_h2() && stream.write_all(&http2::refusal()).await.is_ok() {
                        let _ = stream.shutdown().await;
                    }
                    if let Some(mut record) = Pending::of_connection(&malformed) {
                        record.answered(refusal_of(&error).as_u16());
                        record.passed(0, 0, true);
                    }
                });
            }
            Front::Origin { address, announces, under_way, .. } => {
                let (address, announces, under_way) = (address.clone(), *announces, under_way.clone());
                tokio::spawn(async move {
                    let mut record = Pending::of_connection(&client);
                    let passed = Passed::default();
                    let ended = proxy::pass(stream, &address, announces, &passed).await;
                    if let Some(record) = &mut record {
                        record.passed(passed.received.into_inner(), passed.sent.into_inner(), ended.is_ok());
                    }
                    drop(under_way);
                });
            }
        }
    }

    /// Waits until all running responses are complete.
    async fn complete(self) {
        match self {
            Front::Files { graceful, .. } => graceful.shutdown().await,
            Front::Origin { under_way, mut ended, .. } => {
                drop(under_way);
                ended.recv().await;
            }
        }
    }
}

/// The status of the answer to a head that hyper cannot parse.
fn refusal_of(error: &hyper::Error) -> StatusCode {
    if error.is_parse_version_h2() {
        StatusCode::HTTP_VERSION_NOT_SUPPORTED
    } else if error.is_parse_too_large() {
        // Hyper answers 414 to a long target and 431 to a long head; only its text tells them apart.
        if error.to_string().contains("URI") {
            StatusCode::URI_TOO_LONG
        } else {
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
        }
    } else {
        StatusCode::BAD_REQUEST
    }
}

/// Whether requests are answered the same way with both options.
fn alike(one: &Options, other: &Options) -> bool {
    one.content == other.content && one.visible == other.visible && one.proxy_protocol == other.proxy_protocol
}

/// What answers streams now, and what completes those of earlier options.
struct Fronts {
    front: Front,
    version: Version,
    earlier: JoinSet<()>,
}

impl Fronts {
    /// Goes on with other options. Streams of the earlier ones complete their present response.
    fn change(&mut self, version: Version, meter: &Meter) {
        if !alike(&self.version.options, &version.options) {
            // The directory was there a moment ago; if it is gone, the earlier one stays.
            let Ok(front) = Front::new(&version.options, meter) else { return };
            self.earlier.spawn(std::mem::replace(&mut self.front, front).complete());
        }
        self.version = version;
    }

    /// Waits until all running responses are complete.
    async fn complete(mut self) {
        self.front.complete().await;
        while self.earlier.join_next().await.is_some() {}
    }
}

/// Serves streams until the order to stop, and then completes the running responses. An error is an error of the
/// operating system.
pub(super) async fn run(
    mut streams: mpsc::UnboundedReceiver<Stream>,
    wakes: &Wakes,
    orders: Orders,
    metrics: Option<(std::net::TcpListener, Arc<Shown>)>,
    meter: &Meter,
) -> io::Result<()> {
    let Orders { mut stops, mut versions } = orders;
    if let Some((listener, shown)) = metrics {
        tokio::spawn(metrics::show(TcpListener::from_std(listener)?, shown));
    }
    tokio::spawn(trim::give_back(meter.clone()));
    let version = versions.borrow_and_update().clone();
    let mut fronts = Fronts { front: Front::new(&version.options, meter)?, version, earlier: JoinSet::new() };
    loop {
        tokio::select! {
            stream = streams.recv() => match stream {
                Some(stream) => fronts.front.take(stream, fronts.version.log.clone()),
                // The loop has ended; joining it gives the reason.
                None => return Ok(()),
            },
            Ok(()) = versions.changed() => {
                let version = versions.borrow_and_update().clone();
                fronts.change(version, meter);
            }
            // Those that are complete need no place.
            Some(_) = fronts.earlier.join_next() => {}
            () = stopped(&mut stops, 1) => break,
        }
    }
    wakes.order(Order::Refuse);
    let grace = fronts.version.options.grace;
    let end = async {
        fronts.complete().await;
        // All responses are written; they remain to be acknowledged.
        wakes.order(Order::Finish);
        while streams.recv().await.is_some() {}
    };
    tokio::select! {
        () = end => {}
        () = tokio::time::sleep(grace) => wakes.order(Order::Abort),
        () = stopped(&mut stops, 2) => wakes.order(Order::Abort),
    }
    Ok(())
}

/// Waits for this number of orders to stop; also ends when no order can come any more.
async fn stopped(stops: &mut watch::Receiver<u32>, times: u32) {
    let _ = stops.wait_for(|given| *given >= times).await;
}
