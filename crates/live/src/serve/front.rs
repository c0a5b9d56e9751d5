//! The asynchronous side: takes the streams from the loop, and answers them.

use super::access::{Log, Record};
use super::driver::{Order, Wakes};
use super::files::{self, Files};
use super::meter::Meter;
use super::metrics::{self, Shown};
use super::{Content, Options, Stream, proxy, trim};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use std::io;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

/// Number of orders to stop: the first one lets running responses complete, the second one aborts them.
pub(super) type Stops = watch::Receiver<u32>;

/// What all connections share.
pub(super) struct Shared {
    /// Counts their memory.
    pub(super) meter: Meter,
    /// The access log, if there is one.
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

    /// Answers a stream. A client's abort or protocol error concerns only itself, so the result is ignored.
    fn take(&self, stream: Stream, log: Option<Log>) {
        let visitor = stream.visitor(log);
        match self {
            Front::Files { directory, protocol, graceful } => {
                let directory = directory.clone();
                let service = service_fn(move |request| directory.clone().answer(request, visitor.clone()));
                let served = graceful.watch(protocol.serve_connection(TokioIo::new(stream), service));
                tokio::spawn(async move { drop(served.await) });
            }
            Front::Origin { address, announces, under_way, .. } => {
                let (address, announces, under_way) = (address.clone(), *announces, under_way.clone());
                tokio::spawn(async move {
                    let mut record = Record::of_connection(&visitor);
                    if let Ok((received, sent)) = proxy::pass(stream, &address, announces).await
                        && let Some(record) = &mut record
                    {
                        record.passed(received, sent);
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

/// Serves streams until the order to stop, and then completes the running responses. An error is an error of the
/// operating system.
pub(super) async fn run(
    options: &Options,
    mut streams: mpsc::UnboundedReceiver<Stream>,
    wakes: &Wakes,
    mut stops: Stops,
    metrics: Option<(std::net::TcpListener, Arc<Shown>)>,
    shared: &Shared,
) -> io::Result<()> {
    if let Some((listener, shown)) = metrics {
        tokio::spawn(metrics::show(TcpListener::from_std(listener)?, shown));
    }
    tokio::spawn(trim::give_back(shared.meter.clone()));
    let front = Front::new(options, &shared.meter)?;
    loop {
        tokio::select! {
            stream = streams.recv() => match stream {
                Some(stream) => front.take(stream, shared.log.clone()),
                // The loop has ended; joining it gives the reason.
                None => return Ok(()),
            },
            () = stopped(&mut stops, 1) => break,
        }
    }
    wakes.order(Order::Refuse);
    let end = async {
        front.complete().await;
        // All responses are written; they remain to be acknowledged.
        wakes.order(Order::Finish);
        while streams.recv().await.is_some() {}
    };
    tokio::select! {
        () = end => {}
        () = tokio::time::sleep(options.grace) => wakes.order(Order::Abort),
        () = stopped(&mut stops, 2) => wakes.order(Order::Abort),
    }
    Ok(())
}

/// Waits for this number of orders to stop; also ends when no order can come any more.
async fn stopped(stops: &mut Stops, times: u32) {
    let _ = stops.wait_for(|given| *given >= times).await;
}
