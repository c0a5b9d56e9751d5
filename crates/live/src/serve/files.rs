//! A directory over HTTP/1.1.

use hyper::Response;
use hyper::body::Incoming;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue,
};
use hyper::{Request, server::conn::http1};
use hyper_util::rt::TokioTimer;
use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;
use tower_http::services::ServeDir;
use tower_http::services::fs::ServeFileSystemResponseBody as Body;
use tower_service::Service as _;

/// Time for a client's request, counted from the end of the last response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(75);

/// Bytes of one read from a file. Each read is a message to another thread, so reads are large.
const CHUNK: usize = 256 << 10;

/// Types of media files that the general list by extension lacks or may lack: DASH (ISO/IEC 23009-1 annex C) and its
/// segments.
const TYPES: [(&str, &str); 2] = [(".mpd", "application/dash+xml"), (".m4s", "video/iso.segment")];

/// Headers of every response. Responses are not cached: a media segment that a browser plays a second time crosses the
/// paths a second time, or the second session would measure the browser's cache. Pages of other servers, such as a
/// reference player's, may read and time all responses.
static COMMON_HEADERS: [(HeaderName, HeaderValue); 4] = [
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
    (ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*")),
    (HeaderName::from_static("timing-allow-origin"), HeaderValue::from_static("*")),
];

/// The files below `root`: single ranges, conditional requests, types by extension; no lists of directories, nothing outside.
pub(super) fn directory(root: &Path) -> ServeDir {
    ServeDir::new(root).append_index_html_on_directories(false).with_buf_chunk_size(CHUNK)
}

/// Configuration of HTTP.
pub(super) fn protocol() -> http1::Builder {
    let mut builder = http1::Builder::new();
    // A client may close its sending side after its request and still want the answer.
    builder.half_close(true).timer(TokioTimer::new()).header_read_timeout(REQUEST_TIMEOUT);
    builder
}

/// Answers one request; a file that does not exist or cannot be read is a status code, so there is always an answer.
pub(super) async fn answer(mut files: ServeDir, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let known = TYPES.iter().find(|(extension, _)| request.uri().path().ends_with(extension));
    let mut response = files.call(request).await?;
    if let Some((_, kind)) = known
        && response.headers().contains_key(CONTENT_TYPE)
    {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    for (name, value) in &COMMON_HEADERS {
        response.headers_mut().insert(name.clone(), value.clone());
    }
    Ok(response)
}
