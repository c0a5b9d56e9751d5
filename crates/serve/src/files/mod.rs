//! A directory over HTTP/1.1.

mod announce;
mod body;
mod conditions;
mod directory;
mod media_type;
mod preflight;

pub use directory::Visible;

use super::access::{Client, Pending};
use super::dates::http_date;
use super::meter::Meter;
use body::{CHUNK, FileBody, unblocked};
use conditions::{Selected, select};
use directory::{Directory, Opened};
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT_RANGES, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ALLOW, CACHE_CONTROL, CONTENT_LENGTH,
    CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG, HOST, HeaderName, HeaderValue, LAST_MODIFIED,
};
use hyper::server::conn::http1;
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::TokioTimer;
use media_type::media_type;
use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Time for a client's request, counted from the end of the last response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(75);

/// The longest path of a request, before decoding: twice what Linux takes as the path of a file. A whole head may have
/// 64 KiB.
const MAX_PATH: usize = 8 << 10;

/// Methods that have an answer for every file.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");

/// Headers of every response. Responses are not cached: a media segment that a browser plays a second time crosses the
/// paths a second time, or the second session would measure the browser's cache. Pages of other servers, such as a
/// reference player's, may read and time all responses.
static COMMON_HEADERS: [(HeaderName, HeaderValue); 4] = [
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
    (ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*")),
    (HeaderName::from_static("timing-allow-origin"), HeaderValue::from_static("*")),
];

/// The files below a directory: single ranges, conditional requests, types by extension; no lists of directories.
#[derive(Clone, Debug)]
pub(super) struct Files {
    directory: Arc<Directory>,
    meter: Meter,
}

impl Files {
    pub(super) fn new(root: &Path, visible: Visible, meter: Meter) -> io::Result<Self> {
        if !directory::is_supported() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "openat2, which Linux has since 5.6, is not allowed",
            ));
        }
        Ok(Files { directory: Arc::new(Directory::new(root, visible)?), meter })
    }

    /// Answers one request; whatever is wrong with it or its file is a status code, so there is always an answer.
    pub(super) async fn answer(
        self,
        request: Request<Incoming>,
        client: Client,
    ) -> Result<Response<FileBody>, Infallible> {
        let record = Pending::of_request(&client, &request);
        let mut response = match refusal(&request) {
            Some(refusal) => refusal,
            None => self.find(&request, &client).await,
        };
        for (name, value) in &COMMON_HEADERS {
            response.headers_mut().insert(name.clone(), value.clone());
        }
        let date = http_date(SystemTime::now()).and_then(|date| HeaderValue::from_str(&date).ok());
        date.and_then(|date| response.headers_mut().insert(DATE, date));
        if let Some(mut record) = record {
            record.answered(response.status().as_u16());
            response.body_mut().log(record);
        }
        Ok(response)
    }

    async fn find(&self, request: &Request<Incoming>, client: &Client) -> Answer {
        match *request.method() {
            Method::GET | Method::HEAD => {}
            Method::OPTIONS => return preflight::answer(request.headers()),
            _ => {
                let mut answer = empty(StatusCode::METHOD_NOT_ALLOWED);
                answer.headers_mut().insert(ALLOW, METHODS);
                return answer;
            }
        }
        let (directory, path) = (self.directory.clone(), request.uri().path().to_owned());
        match unblocked(move || directory.open(&path)).await {
            Ok(Some(opened)) => {
                announce::pass_mpd(&self.directory, client, request.uri().path(), &opened);
                let answer = self.send(request, opened);
                announce::announce(client, request, &answer);
                answer
            }
            Ok(None) => empty(StatusCode::NOT_FOUND),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => empty(StatusCode::SERVICE_UNAVAILABLE),
            Err(_) => empty(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }

    fn send(&self, request: &Request<Incoming>, opened: Opened) -> Answer {
        let Opened { file, len, version } = opened;
        let is_get = request.method() == Method::GET;
        let selected = select(request.headers(), is_get, &version, len);
        let (status, part) = match &selected {
            Selected::Whole => (StatusCode::OK, 0..len),
            Selected::Part(part) => (StatusCode::PARTIAL_CONTENT, part.clone()),
            Selected::NotModified => (StatusCode::NOT_MODIFIED, 0..0),
            Selected::PreconditionFailed => (StatusCode::PRECONDITION_FAILED, 0..0),
            Selected::Unsatisfiable => (StatusCode::RANGE_NOT_SATISFIABLE, 0..0),
        };
        let mut answer = empty(status);
        let mut set = |name, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                answer.headers_mut().insert(name, value);
            }
        };
        match &selected {
            Selected::Part(part) => set(CONTENT_RANGE, &format!("bytes {}-{}/{len}", part.start, part.end - 1)),
            Selected::Unsatisfiable => set(CONTENT_RANGE, &format!("bytes */{len}")),
            _ => {}
        }
        if let Selected::Whole | Selected::Part(_) | Selected::NotModified = selected {
            set(ETAG, &version.etag);
            if let Some(date) = version.last_modified(SystemTime::now()) {
                set(LAST_MODIFIED, &date);
            }
        }
        if let Selected::Whole | Selected::Part(_) = selected {
            set(ACCEPT_RANGES, "bytes");
            set(CONTENT_TYPE, media_type(request.uri().path()));
            set(CONTENT_LENGTH, &(part.end - part.start).to_string());
        }
        if is_get && !part.is_empty() {
            *answer.body_mut() = FileBody::new(file, part, self.meter.clone());
        }
        answer
    }
}

type Answer = Response<FileBody>;

/// Configuration of HTTP.
pub(super) fn protocol() -> http1::Builder {
    let mut builder = http1::Builder::new();
    // A client may close its sending side after its request and still want the answer.
    builder.half_close(true).timer(TokioTimer::new()).header_read_timeout(REQUEST_TIMEOUT);
    // Hyper's own dates panic when the clock shows a year before 1970 or after 9999.
    builder.auto_date_header(false);
    // The head of a request, or one chunk of a response.
    builder.max_buf_size(CHUNK);
    builder
}

/// The answer to a request that is wrong whatever file it names.
fn refusal(request: &Request<Incoming>) -> Option<Answer> {
    // RFC 9112 section 3.2: one Host, and none may be missing but in HTTP/1.0.
    let hosts = request.headers().get_all(HOST).iter().count();
    if hosts > 1 || (hosts == 0 && request.version() == Version::HTTP_11) {
        return Some(empty(StatusCode::BAD_REQUEST));
    }
    if request.uri().path().len() > MAX_PATH {
        return Some(empty(StatusCode::URI_TOO_LONG));
    }
    None
}

fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(FileBody::empty());
    *answer.status_mut() = status;
    answer
}
