//! HTTP/1.1 for programs: files below a directory, and bytes without meaning. It does no input or output but reading files, so it stands
//! on our endpoint and on the kernel's sockets alike.
//!
//! `GET` and `HEAD`, single ranges, connections that stay open (RFC 9110, RFC 9112). `/bytes/N` is N bytes; the rest are names of files.

use crate::apps::FILLER;
use anabranch_live::{Application, Progress, Reply};
use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};

/// A request whose header is longer is refused.
const MOST_REQUEST: usize = 1 << 16;
/// Lines of a request's header; browsers send about twenty.
const MOST_HEADERS: usize = 64;

/// What a response has behind its header.
enum Body {
    Nothing,
    Filler,
    /// A part of a file that begins here.
    File(File, u64),
}

struct Response {
    /// Where it begins in the stream.
    at: u64,
    head: Vec<u8>,
    body: Body,
    len: u64,
}

impl Response {
    fn end(&self) -> u64 {
        self.at + self.head.len() as u64 + self.len
    }

    /// Writes its bytes from `offset` of the stream on; what a file lacks meanwhile becomes filler, as its length was promised.
    fn fill(&self, offset: u64, buffer: &mut [u8]) {
        let from = (offset - self.at) as usize;
        let head = self.head.get(from..).unwrap_or_default();
        let n = head.len().min(buffer.len());
        let (front, back) = buffer.split_at_mut(n);
        front.copy_from_slice(&head[..n]);
        let into_body = (from + n).saturating_sub(self.head.len()) as u64;
        back.fill(FILLER);
        if let Body::File(file, start) = &self.body {
            let mut done = 0;
            while done < back.len() {
                match file.read_at(&mut back[done..], start + into_body + done as u64) {
                    Ok(0) | Err(_) => break,
                    Ok(read) => done += read,
                }
            }
        }
    }
}

/// The server's side of one connection.
pub(crate) struct Web {
    root: Option<PathBuf>,
    request: Vec<u8>,
    /// Those of which not everything was acknowledged.
    responses: VecDeque<Response>,
    written: u64,
    closing: bool,
}

impl Web {
    /// Serves the files below `root`, if there is one.
    pub fn new(root: Option<PathBuf>) -> Self {
        Web { root, request: Vec::new(), responses: VecDeque::new(), written: 0, closing: false }
    }

    /// Answers every request that is complete.
    fn answer(&mut self) {
        while !self.closing && !self.request.is_empty() {
            let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
            let mut parsed = httparse::Request::new(&mut headers);
            let asked = match parsed.parse(&self.request) {
                Ok(httparse::Status::Complete(len)) => (len, Asked::of(&parsed)),
                Ok(httparse::Status::Partial) if self.request.len() <= MOST_REQUEST => return,
                Ok(httparse::Status::Partial) | Err(_) => (self.request.len(), Asked::nonsense()),
            };
            let (len, asked) = asked;
            self.request.drain(..len);
            self.closing = asked.close;
            let response = self.respond(&asked);
            self.written = response.end();
            self.responses.push_back(response);
        }
    }

    fn respond(&self, asked: &Asked) -> Response {
        let found = match asked.status {
            Some(status) => Err(status),
            None => self.find(&asked.target),
        };
        let (status, kind, body, range, of) = match found {
            Err(status) => (status, "text/plain", Body::Nothing, 0..0, 0),
            Ok((kind, body, of)) => match asked.range.as_ref().map(|range| range.of(of)) {
                None => ("200 OK", kind, body, 0..of, of),
                Some(Some(range)) => ("206 Partial Content", kind, body, range, of),
                Some(None) => ("416 Range Not Satisfiable", kind, Body::Nothing, 0..0, of),
            },
        };
        let len = range.end - range.start;
        let part = match status {
            "206 Partial Content" => format!("Content-Range: bytes {}-{}/{of}\r\n", range.start, range.end - 1),
            "416 Range Not Satisfiable" => format!("Content-Range: bytes */{of}\r\n"),
            _ => String::new(),
        };
        let connection = if asked.close { "close" } else { "keep-alive" };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\nAccept-Ranges: bytes\r\n{part}\
             Cache-Control: no-store\r\nAccess-Control-Allow-Origin: *\r\nConnection: {connection}\r\n\r\n"
        );
        let body = match body {
            Body::File(file, start) => Body::File(file, start + range.start),
            other => other,
        };
        let len = if asked.head_only { 0 } else { len };
        Response { at: self.written, head: head.into_bytes(), body, len }
    }

    /// The type, the whole content and its length, or the status that says why not.
    fn find(&self, target: &str) -> Result<(&'static str, Body, u64), &'static str> {
        const NOT_FOUND: &str = "404 Not Found";
        let path = target.split(['?', '#']).next().unwrap_or_default();
        if let Some(bytes) = path.strip_prefix("/bytes/") {
            let bytes = bytes.parse().map_err(|_| NOT_FOUND)?;
            return Ok(("application/octet-stream", Body::Filler, bytes));
        }
        let name = Path::new(path.trim_start_matches('/'));
        // Nothing above the directory, and no absolute names.
        let plain = name.components().all(|part| matches!(part, Component::Normal(_)));
        let root = self.root.as_ref().filter(|_| plain).ok_or(NOT_FOUND)?;
        let file = File::open(root.join(name)).map_err(|_| NOT_FOUND)?;
        let about = file.metadata().map_err(|_| NOT_FOUND)?;
        if !about.is_file() {
            return Err(NOT_FOUND);
        }
        Ok((kind_of(name), Body::File(file, 0), about.len()))
    }
}

impl Application for Web {
    fn receive(&mut self, bytes: &[u8]) {
        self.request.extend_from_slice(bytes);
    }

    fn poll(&mut self, progress: Progress) -> Reply {
        while self.responses.front().is_some_and(|response| response.end() <= progress.acked) {
            self.responses.pop_front();
        }
        let before = self.written;
        self.answer();
        let finish = self.closing || progress.ended;
        Reply { bytes: self.written - before, finish, leave: progress.closed, ..Reply::default() }
    }

    fn fill(&self, offset: u64, buffer: &mut [u8]) {
        let (mut at, mut rest) = (offset, buffer);
        for response in self.responses.iter().filter(|response| response.end() > offset) {
            let n = rest.len().min((response.end() - at) as usize);
            let (now, later) = rest.split_at_mut(n);
            response.fill(at, now);
            at += n as u64;
            rest = later;
        }
    }
}

/// What matters of a request.
struct Asked {
    target: String,
    head_only: bool,
    close: bool,
    range: Option<Wanted>,
    /// Why it is refused.
    status: Option<&'static str>,
}

impl Asked {
    fn of(request: &httparse::Request<'_, '_>) -> Self {
        let value = |name: &str| {
            let header = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
            std::str::from_utf8(header.value).ok()
        };
        let has = |name: &str, word: &str| {
            value(name).is_some_and(|list| list.split(',').any(|one| one.trim().eq_ignore_ascii_case(word)))
        };
        let method = request.method.unwrap_or_default();
        let known = matches!(method, "GET" | "HEAD");
        let old = request.version == Some(0) && !has("connection", "keep-alive");
        Asked {
            target: request.path.unwrap_or_default().to_owned(),
            head_only: method == "HEAD",
            // What follows a request with a body is not looked for.
            close: old || has("connection", "close") || !known,
            range: value("range").and_then(Wanted::parse),
            status: (!known).then_some("405 Method Not Allowed"),
        }
    }

    fn nonsense() -> Self {
        Asked { target: String::new(), head_only: false, close: true, range: None, status: Some("400 Bad Request") }
    }
}

/// One range of bytes, as a request may ask for it. Others are ignored, as a server may (RFC 9110 section 14.2).
#[derive(Clone, Debug, PartialEq)]
enum Wanted {
    From(u64, Option<u64>),
    Last(u64),
}

impl Wanted {
    fn parse(value: &str) -> Option<Self> {
        let (first, last) = value.trim().strip_prefix("bytes=")?.split_once('-')?;
        match (first.trim(), last.trim()) {
            ("", last) => Some(Wanted::Last(last.parse().ok()?)),
            (first, "") => Some(Wanted::From(first.parse().ok()?, None)),
            (first, last) => {
                let (first, last) = (first.parse().ok()?, last.parse().ok()?);
                (first <= last).then_some(Wanted::From(first, Some(last)))
            }
        }
    }

    /// The range in a file of that length, if it has any of it.
    fn of(&self, len: u64) -> Option<Range<u64>> {
        let range = match *self {
            Wanted::From(first, last) => first..last.map_or(len, |last| len.min(last.saturating_add(1))),
            Wanted::Last(bytes) => len.saturating_sub(bytes)..len,
        };
        (range.start < range.end).then_some(range)
    }
}

/// The type of a file by its name (IANA; of DASH ISO/IEC 23009-1 annex C).
fn kind_of(name: &Path) -> &'static str {
    match name.extension().and_then(|extension| extension.to_str()).unwrap_or_default() {
        "mpd" => "application/dash+xml",
        "m4s" => "video/iso.segment",
        "mp4" | "m4v" => "video/mp4",
        "webm" => "video/webm",
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" => "application/json",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that a server says to these bytes.
    fn said(web: &mut Web, request: &str) -> (String, bool) {
        let before = web.written;
        web.receive(request.as_bytes());
        let reply = web.poll(Progress { acked: before, ..Progress::default() });
        let mut bytes = vec![0; reply.bytes as usize];
        web.fill(before, &mut bytes);
        (String::from_utf8(bytes).expect("text"), reply.finish)
    }

    /// A folder with a file of ten bytes, which all tests of this process share: one that wrote it anew would empty it for the others.
    fn directory() -> PathBuf {
        static SHARED: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
        let make = || {
            let directory = std::env::temp_dir().join(format!("anabranch-testbed-http-{}", std::process::id()));
            std::fs::create_dir_all(&directory).expect("a directory");
            std::fs::write(directory.join("ten.txt"), "0123456789").expect("a file");
            directory
        };
        SHARED.get_or_init(make).clone()
    }

    #[test]
    fn files_and_ranges_of_them_come_on_one_connection() {
        let mut web = Web::new(Some(directory()));
        let (whole, ends) = said(&mut web, "GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(whole.starts_with("HTTP/1.1 200 OK\r\n") && whole.ends_with("\r\n\r\n0123456789") && !ends, "{whole}");
        for (range, expected) in [("2-4", "234"), ("7-", "789"), ("-2", "89"), ("8-99", "89")] {
            let (part, _) = said(&mut web, &format!("GET /ten.txt HTTP/1.1\r\nRange: bytes={range}\r\n\r\n"));
            assert!(part.starts_with("HTTP/1.1 206") && part.ends_with(&format!("\r\n\r\n{expected}")), "{part}");
        }
        let (none, _) = said(&mut web, "GET /ten.txt HTTP/1.1\r\nRange: bytes=10-\r\n\r\n");
        assert!(none.starts_with("HTTP/1.1 416") && none.contains("Content-Range: bytes */10"), "{none}");
        let (head, ends) = said(&mut web, "HEAD /ten.txt HTTP/1.1\r\nConnection: close\r\n\r\n");
        assert!(head.contains("Content-Length: 10") && head.ends_with("\r\n\r\n") && ends, "{head}");
    }

    #[test]
    fn requests_may_come_in_pieces_and_together() {
        let mut web = Web::new(None);
        assert_eq!(said(&mut web, "GET /bytes/3 HTTP/1.1\r\n").0, "");
        let (both, _) = said(&mut web, "\r\nGET /bytes/2 HTTP/1.1\r\n\r\n");
        let bodies: Vec<_> = both.split("HTTP/1.1 200 OK").skip(1).map(|r| r.rsplit("\r\n").next().unwrap()).collect();
        assert_eq!(bodies, ["...", ".."]);
    }

    #[test]
    fn bytes_can_be_filled_from_anywhere_across_responses() {
        let mut web = Web::new(Some(directory()));
        let (all, _) = said(&mut web, "GET /ten.txt HTTP/1.1\r\n\r\nGET /bytes/5 HTTP/1.1\r\n\r\n");
        for from in [1, 30, all.len() - 8] {
            let mut buffer = vec![0; all.len() - from];
            web.fill(from as u64, &mut buffer);
            assert_eq!(buffer, all.as_bytes()[from..]);
        }
    }

    #[test]
    fn nothing_above_the_directory_is_served() {
        let mut web = Web::new(Some(directory().join("sub")));
        for target in ["/../ten.txt", "//etc/passwd", "/%2e%2e/ten.txt", "/"] {
            let (refused, _) = said(&mut web, &format!("GET {target} HTTP/1.1\r\n\r\n"));
            assert!(refused.starts_with("HTTP/1.1 404"), "{target}: {refused}");
        }
        let (refused, ends) = said(&mut web, "POST / HTTP/1.1\r\n\r\n");
        assert!(refused.starts_with("HTTP/1.1 405") && ends);
        assert!(said(&mut Web::new(None), "nonsense\r\n\r\n").0.starts_with("HTTP/1.1 400"));
    }
}
