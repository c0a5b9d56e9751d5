//! The access log: a line for each response, or for each connection that was passed to an origin.

use hyper::header::{HeaderName, REFERER, USER_AGENT};
use hyper::{Request, Version};
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime};

/// Form of the lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// The combined format of Apache and nginx.
    #[default]
    Combined,
    /// An object of JSON, with times and paths.
    Json,
}

/// Where the access log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// The file that lines are appended to; `-` is the standard output.
    pub file: PathBuf,
    /// Their form.
    pub format: LogFormat,
}

/// Lines that may wait for the disk; further ones are lost, because clients do not wait for it.
const MAX_WAITING: usize = 10_000;

/// Writes lines on a thread of its own.
#[derive(Clone, Debug)]
pub(super) struct Log {
    lines: SyncSender<String>,
    format: LogFormat,
}

impl Log {
    /// Opens the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn start(options: &AccessLog) -> io::Result<Self> {
        let mut target: Box<dyn Write + Send> = if options.file == Path::new("-") {
            Box::new(io::stdout())
        } else {
            Box::new(OpenOptions::new().append(true).create(true).open(&options.file)?)
        };
        let (lines, received) = sync_channel::<String>(MAX_WAITING);
        let work = move || {
            for line in received {
                // A full disk loses lines and no clients.
                let _ = target.write_all(line.as_bytes()).and_then(|()| target.flush());
            }
        };
        std::thread::Builder::new().name("anabranch-log".into()).spawn(work)?;
        Ok(Log { lines, format: options.format })
    }

    fn write(&self, entry: &Entry) {
        let mut line = match self.format {
            LogFormat::Combined => entry.combined(),
            LogFormat::Json => entry.json(),
        };
        line.push('\n');
        let _ = self.lines.try_send(line);
    }
}

/// Payload that a connection has sent on each path.
#[derive(Debug)]
pub(super) struct PathBytes(Vec<[AtomicU64; 2]>);

impl PathBytes {
    pub(super) fn new(paths: usize) -> Arc<Self> {
        Arc::new(PathBytes((0..paths).map(|_| Default::default()).collect()))
    }

    /// A segment was sent; `again`: its first byte was sent on the subflow before.
    pub(super) fn count(&self, path: usize, bytes: u32, again: bool) {
        if let Some([all, retransmitted]) = self.0.get(path) {
            all.fetch_add(u64::from(bytes), Ordering::Relaxed);
            retransmitted.fetch_add(u64::from(bytes) * u64::from(again), Ordering::Relaxed);
        }
    }

    fn now(&self) -> Vec<[u64; 2]> {
        self.0.iter().map(|both| [0, 1].map(|i| both[i].load(Ordering::Relaxed))).collect()
    }
}

/// The client of a connection, as the log names it.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    pub(super) log: Option<Log>,
    pub(super) address: SocketAddr,
    pub(super) paths: Arc<PathBytes>,
}

/// What a client has asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    line: String,
    referer: Option<String>,
    agent: Option<String>,
}

/// One line.
#[derive(Clone, Debug)]
struct Entry {
    at: SystemTime,
    client: SocketAddr,
    /// `None` for a connection that was passed on unread.
    asked: Option<Asked>,
    status: Option<u16>,
    /// Bytes of the response's body, or to the client.
    sent: u64,
    /// Bytes from the client that were passed on.
    received: u64,
    complete: bool,
    first_byte: Option<Duration>,
    duration: Duration,
    /// Payload sent on each path meanwhile, and how much of it was retransmitted.
    paths: Vec<[u64; 2]>,
}

impl Entry {
    fn combined(&self) -> String {
        let (client, date) = (self.client.ip(), local_date(self.at));
        let status = self.status.map_or_else(|| "-".to_owned(), |status| status.to_string());
        let (line, referer, agent) = match &self.asked {
            Some(asked) => (Some(&asked.line), asked.referer.as_ref(), asked.agent.as_ref()),
            None => (None, None, None),
        };
        let [line, referer, agent] =
            [line, referer, agent].map(|text| text.map_or_else(|| "-".to_owned(), |t| escaped(t)));
        format!("{client} - - [{date}] \"{line}\" {status} {} \"{referer}\" \"{agent}\"", self.sent)
    }

    fn json(&self) -> String {
        let asked = self.asked.as_ref();
        let paths: Vec<_> = self
            .paths
            .iter()
            .map(|[bytes, retransmitted]| serde_json::json!({ "bytes": bytes, "retransmitted_bytes": retransmitted }))
            .collect();
        let since = self.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let line = serde_json::json!({
            "time": since.as_secs_f64(),
            "client": self.client.to_string(),
            "request": asked.map(|asked| &asked.line),
            "status": self.status,
            "sent_bytes": self.sent,
            "received_bytes": self.received,
            "complete": self.complete,
            "first_byte_s": self.first_byte.map(|time| time.as_secs_f64()),
            "duration_s": self.duration.as_secs_f64(),
            "paths": paths,
            "referer": asked.and_then(|asked| asked.referer.as_ref()),
            "user_agent": asked.and_then(|asked| asked.agent.as_ref()),
        });
        line.to_string()
    }
}

/// A line in the making; it is written when this is dropped.
#[derive(Debug)]
pub(super) struct Record {
    log: Log,
    entry: Entry,
    began: Instant,
    paths: Arc<PathBytes>,
    before: Vec<[u64; 2]>,
}

impl Record {
    /// Begins the line of a connection, if there is a log.
    pub(super) fn of_connection(visitor: &Visitor) -> Option<Self> {
        let entry = Entry {
            at: SystemTime::now(),
            client: visitor.address,
            asked: None,
            status: None,
            sent: 0,
            received: 0,
            complete: false,
            first_byte: None,
            duration: Duration::ZERO,
            paths: Vec::new(),
        };
        let (paths, before) = (visitor.paths.clone(), visitor.paths.now());
        Some(Record { log: visitor.log.clone()?, entry, began: Instant::now(), paths, before })
    }

    /// Begins the line of a request, if there is a log.
    pub(super) fn of_request<B>(visitor: &Visitor, request: &Request<B>) -> Option<Self> {
        let mut record = Record::of_connection(visitor)?;
        let text = |name: HeaderName| {
            let value = request.headers().get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let version = if request.version() == Version::HTTP_10 { "HTTP/1.0" } else { "HTTP/1.1" };
        let line = format!("{} {} {version}", request.method(), request.uri());
        record.entry.asked = Some(Asked { line, referer: text(REFERER), agent: text(USER_AGENT) });
        Some(record)
    }

    /// The response has this status.
    pub(super) fn answered(&mut self, status: u16) {
        self.entry.status = Some(status);
    }

    /// Bytes of the body were handed over.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.entry.first_byte.get_or_insert_with(|| self.began.elapsed());
        self.entry.sent += bytes as u64;
    }

    /// Everything was handed over.
    pub(super) fn completed(&mut self) {
        self.entry.complete = true;
    }

    /// Bytes were passed on in both directions, to their ends.
    pub(super) fn passed(&mut self, received: u64, sent: u64) {
        (self.entry.received, self.entry.sent, self.entry.complete) = (received, sent, true);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.entry.duration = self.began.elapsed();
        let now = self.paths.now();
        self.entry.paths =
            now.iter().zip(&self.before).map(|(now, before)| [0, 1].map(|i| now[i] - before[i])).collect();
        self.log.write(&self.entry);
    }
}

/// The date of the combined format, in UTC, such as `22/Nov/2026:12:22:58 +0000`.
fn local_date(at: SystemTime) -> String {
    let http = httpdate::fmt_http_date(at);
    let words: Vec<_> = http.split(' ').collect();
    match words[..] {
        [_, day, month, year, time, _] => format!("{day}/{month}/{year}:{time} +0000"),
        _ => http,
    }
}

/// Text between quotation marks, so that no client can forge a line.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' | '\\' => safe.extend(['\\', character]),
            character if character.is_control() => {
                let _ = write!(safe, "\\x{:02X}", u32::from(character));
            }
            character => safe.push(character),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            at: SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_500),
            client: "10.1.0.2:40000".parse().unwrap(),
            asked: Some(Asked {
                line: "GET /f HTTP/1.1".into(),
                referer: None,
                agent: Some("a\"b\n10.0.0.1 - -".into()),
            }),
            status: Some(206),
            sent: 1000,
            received: 0,
            complete: true,
            first_byte: Some(Duration::from_millis(3)),
            duration: Duration::from_millis(250),
            paths: vec![[700, 0], [400, 100]],
        }
    }

    #[test]
    fn a_line_of_the_combined_format() {
        let expected =
            r#"10.1.0.2 - - [14/Nov/2023:22:13:20 +0000] "GET /f HTTP/1.1" 206 1000 "-" "a\"b\x0A10.0.0.1 - -""#;
        assert_eq!(entry().combined(), expected);
        let passed = Entry { asked: None, status: None, ..entry() };
        assert_eq!(passed.combined(), r#"10.1.0.2 - - [14/Nov/2023:22:13:20 +0000] "-" - 1000 "-" "-""#);
    }

    #[test]
    fn a_line_of_json_has_times_and_paths() {
        let line: serde_json::Value = serde_json::from_str(&entry().json()).expect("JSON");
        assert_eq!((line["time"].as_f64(), line["status"].as_u64()), (Some(1_700_000_000.5), Some(206)));
        assert_eq!((line["first_byte_s"].as_f64(), line["duration_s"].as_f64()), (Some(0.003), Some(0.25)));
        assert_eq!(line["paths"][1]["retransmitted_bytes"], 100);
        assert_eq!((&line["request"], &line["referer"]), (&"GET /f HTTP/1.1".into(), &serde_json::Value::Null));
    }
}
