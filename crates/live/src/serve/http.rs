//! HTTP/1.1 on the streams of the endpoint.

use super::driver::{Order, Wakes};
use super::{Options, Stream};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedReceiver;
use tower_http::services::ServeDir;
use tower_http::services::fs::ServeFileSystemResponseBody as Body;

/// A client has this long to say what it wants, counted from the end of the last response.
const REQUEST_PATIENCE: Duration = Duration::from_secs(75);

/// Types of media files that the general list by extension lacks or may lack: DASH (ISO/IEC 23009-1 annex C) and its segments.
const TYPES: [(&str, &str); 2] = [(".mpd", "application/dash+xml"), (".m4s", "video/iso.segment")];

/// The files below `root`: single ranges, conditional requests, types by extension; no lists of directories, nothing outside.
fn files(root: &Path) -> ServeDir {
    ServeDir::new(root).append_index_html_on_directories(false)
}

/// Answers one request.
async fn answer(mut files: ServeDir, request: Request<Incoming>) -> io::Result<Response<Body>> {
    let known = TYPES.iter().find(|(extension, _)| request.uri().path().ends_with(extension));
    let mut response = files.try_call(request).await?;
    if let Some((_, kind)) = known
        && response.headers().contains_key(CONTENT_TYPE)
    {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    Ok(response)
}

/// Serves the streams that come until a signal does, and then completes what is under way. An error is an error of the operating system.
pub(super) async fn run(options: &Options, mut streams: UnboundedReceiver<Stream>, wakes: &Wakes) -> io::Result<()> {
    let mut signals = Signals::new()?;
    let files = files(&options.root);
    let mut builder = http1::Builder::new();
    // A client that says no more after its request may still want the answer.
    builder.half_close(true).timer(TokioTimer::new()).header_read_timeout(REQUEST_PATIENCE);
    let graceful = GracefulShutdown::new();
    loop {
        tokio::select! {
            stream = streams.recv() => match stream {
                Some(stream) => {
                    let files = files.clone();
                    let service = service_fn(move |request| answer(files.clone(), request));
                    let served = graceful.watch(builder.serve_connection(TokioIo::new(stream), service));
                    // A client that breaks off, or speaks something else, is nobody's concern but its own.
                    tokio::spawn(async move { drop(served.await) });
                }
                // The loop is gone; it tells why when it is joined.
                None => return Ok(()),
            },
            () = signals.any() => break,
        }
    }
    wakes.order(Order::Refuse);
    let end = async {
        graceful.shutdown().await;
        // All responses are written; what remains is to get them acknowledged.
        wakes.order(Order::Finish);
        while streams.recv().await.is_some() {}
    };
    tokio::select! {
        () = end => {}
        () = tokio::time::sleep(options.grace) => wakes.order(Order::Abort),
        () = signals.any() => wakes.order(Order::Abort),
    }
    Ok(())
}

/// The signals that end a server.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Signals { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn any(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
