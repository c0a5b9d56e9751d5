//! The access log: a line for each response, or for each connection that was passed to an origin.

use super::channel::lock;
use super::dates::http_date;
use super::pacing::Announcements;
use anabranch_units::Bandwidth;
use hyper::header::{HeaderName, REFERER, USER_AGENT};
use hyper::{Request, Version};
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
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

/// Where lines are written.
type Target = Box<dyn Write + Send>;

/// What the thread of a log gets.
enum Work {
    Line(String),
    /// Further lines go here.
    Open(Target),
}

/// Writes lines on a thread of its own.
#[derive(Clone, Debug)]
pub(super) struct Log {
    work: SyncSender<Work>,
    options: AccessLog,
}

fn open(options: &AccessLog) -> io::Result<Target> {
    Ok(if options.file == Path::new("-") {
        Box::new(io::stdout())
    } else {
        Box::new(OpenOptions::new().append(true).create(true).open(&options.file)?)
    })
}

fn write_all(mut target: Target, received: &Receiver<Work>) {
    for work in received {
        match work {
            // A full disk loses lines and no clients.
            Work::Line(line) => drop(target.write_all(line.as_bytes()).and_then(|()| target.flush())),
            Work::Open(other) => target = other,
        }
    }
}

impl Log {
    /// Opens the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn start(options: &AccessLog) -> io::Result<Self> {
        let target = open(options)?;
        let (work, received) = sync_channel(MAX_WAITING);
        std::thread::Builder::new().name("anabranch-log".into()).spawn(move || write_all(target, &received))?;
        Ok(Log { work, options: options.clone() })
    }

    /// The log of these options: this one with its file opened again, which may have been renamed, or another one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn changed(&self, options: &AccessLog) -> io::Result<Self> {
        if self.options != *options {
            return Log::start(options);
        }
        // It waits for a slow disk: other lines may be lost, this must not be.
        let _ = self.work.send(Work::Open(open(options)?));
        Ok(self.clone())
    }

    fn write(&self, entry: &Entry) {
        let mut line = match self.options.format {
            LogFormat::Combined => entry.combined(),
            LogFormat::Json => entry.json(),
        };
        line.push('\n');
        let _ = self.work.try_send(Work::Line(line));
    }
}

/// What the log needs of a connection, from both sides of its stream: the loop reports what was sent and acknowledged,
/// the task what was written.
#[derive(Debug)]
pub(super) struct StreamStats {
    /// Payload sent on each path, and how much of it was retransmitted.
    paths: Vec<[AtomicU64; 2]>,
    /// The most subflows that were open at a time.
    subflows: AtomicUsize,
    /// Bytes written to the stream, and bytes of it that the client has acknowledged.
    written: AtomicU64,
    acked: AtomicU64,
    /// The cap of the connection's rate, bit/s; zero without one.
    pace_bps: AtomicU64,
    /// Number of records that wait. Without a log it stays zero, and the lock is not taken.
    waiting: AtomicUsize,
    records: Mutex<Waiting>,
}

/// Records whose responses were handed over.
#[derive(Debug, Default)]
struct Waiting {
    /// With the offset in the stream behind the response, once it was written.
    records: Vec<(Option<u64>, Record)>,
    /// The connection has ended.
    closed: bool,
}

impl StreamStats {
    pub(super) fn new(paths: usize) -> Arc<Self> {
        Arc::new(StreamStats {
            paths: (0..paths).map(|_| Default::default()).collect(),
            subflows: AtomicUsize::new(0),
            written: AtomicU64::new(0),
            acked: AtomicU64::new(0),
            pace_bps: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            records: Mutex::default(),
        })
    }

    /// A segment was sent; `again`: its first byte was sent on the subflow before.
    pub(super) fn count(&self, path: usize, bytes: u32, again: bool) {
        if let Some([all, retransmitted]) = self.paths.get(path) {
            all.fetch_add(u64::from(bytes), Ordering::Relaxed);
            retransmitted.fetch_add(u64::from(bytes) * u64::from(again), Ordering::Relaxed);
        }
    }

    /// Bytes were written to the stream.
    pub(super) fn wrote(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::AcqRel);
    }

    /// Bytes that were written to the stream so far.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// From here on this cap limits the connection's rate, if any does. A response that is not acknowledged to its end
    /// keeps the pace with which it was sent: the pacer takes it as over before, because it does not count the header.
    pub(super) fn paced(&self, cap: Option<Bandwidth>) {
        if cap.is_some() || self.waiting.load(Ordering::Acquire) == 0 {
            self.pace_bps.store(cap.map_or(0, Bandwidth::as_bps), Ordering::Relaxed);
        }
    }

    /// Everything that was handed over has been written to the stream.
    pub(super) fn flushed(&self) {
        if self.waiting.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut waiting = lock(&self.records);
        let written = self.written.load(Ordering::Acquire);
        for (end, _) in &mut waiting.records {
            end.get_or_insert(written);
        }
        self.write_acknowledged(waiting);
    }

    /// The client has acknowledged the stream so far, and has so many subflows.
    pub(super) fn progress(&self, acked: u64, subflows: usize) {
        self.subflows.fetch_max(subflows, Ordering::Relaxed);
        self.acked.store(acked, Ordering::Release);
        if self.waiting.load(Ordering::Acquire) > 0 {
            self.write_acknowledged(lock(&self.records));
        }
    }

    /// The connection has ended; what is not acknowledged will not be.
    pub(super) fn close(&self) {
        let records = {
            let mut waiting = lock(&self.records);
            waiting.closed = true;
            std::mem::take(&mut waiting.records)
        };
        records.into_iter().for_each(|(_, record)| record.write());
    }

    /// Keeps a record until its response is acknowledged. If all of it was written, that is so already or comes;
    /// otherwise the offset of its end is known at the next flush.
    fn keep(&self, mut record: Record) {
        let end = record.written.then(|| self.written.load(Ordering::Acquire));
        let mut waiting = lock(&self.records);
        if waiting.closed || end.is_some_and(|end| end <= self.acked.load(Ordering::Acquire)) {
            drop(waiting);
            if end.is_some_and(|end| end <= self.acked.load(Ordering::Acquire)) {
                record.acknowledged();
            }
            return record.write();
        }
        // Before the record is there, so that a later acknowledgment looks for it.
        self.waiting.fetch_add(1, Ordering::AcqRel);
        waiting.records.push((end, record));
        self.write_acknowledged(waiting);
    }

    fn write_acknowledged(&self, mut waiting: MutexGuard<'_, Waiting>) {
        let acked = self.acked.load(Ordering::Acquire);
        let done = waiting.records.extract_if(.., |(end, _)| end.is_some_and(|end| end <= acked)).collect::<Vec<_>>();
        self.waiting.fetch_sub(done.len(), Ordering::AcqRel);
        drop(waiting);
        for (_, mut record) in done {
            record.acknowledged();
            record.write();
        }
    }

    fn now(&self) -> Vec<[u64; 2]> {
        self.paths.iter().map(|both| [0, 1].map(|i| both[i].load(Ordering::Relaxed))).collect()
    }
}

/// The client of a connection, as the log names it.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) log: Option<Log>,
    pub(super) address: SocketAddr,
    pub(super) stats: Arc<StreamStats>,
    /// If the server paces responses.
    pub(super) announcements: Option<Arc<Announcements>>,
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
    /// Until the client had acknowledged everything.
    acknowledged: Option<Duration>,
    /// The most subflows that the connection has had at a time.
    subflows: usize,
    /// The cap of the connection's rate with which the response was sent, bit/s.
    pace_bps: Option<u64>,
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
            "acknowledged_s": self.acknowledged.map(|time| time.as_secs_f64()),
            "subflows": self.subflows,
            "pace_bps": self.pace_bps,
            "paths": paths,
            "referer": asked.and_then(|asked| asked.referer.as_ref()),
            "user_agent": asked.and_then(|asked| asked.agent.as_ref()),
        });
        escaped_json(&line.to_string())
    }
}

/// A line in the making. It is written once its response is acknowledged or the connection has ended, or when it is
/// dropped incomplete.
#[derive(Debug)]
pub(super) struct Pending(Option<Record>);

/// See [`Pending`].
#[derive(Debug)]
struct Record {
    log: Log,
    entry: Entry,
    began: Instant,
    stats: Arc<StreamStats>,
    before: Vec<[u64; 2]>,
    /// Everything has been written to the stream.
    written: bool,
}

impl Record {
    fn acknowledged(&mut self) {
        self.entry.acknowledged = Some(self.began.elapsed());
    }

    fn write(mut self) {
        let now = self.stats.now();
        self.entry.paths =
            now.iter().zip(&self.before).map(|(now, before)| [0, 1].map(|i| now[i] - before[i])).collect();
        self.entry.subflows = self.stats.subflows.load(Ordering::Relaxed);
        self.entry.pace_bps = Some(self.stats.pace_bps.load(Ordering::Relaxed)).filter(|bps| *bps > 0);
        self.log.write(&self.entry);
    }
}

impl Pending {
    /// Begins the line of a connection, if there is a log.
    pub(super) fn of_connection(client: &Client) -> Option<Self> {
        let entry = Entry {
            at: SystemTime::now(),
            client: client.address,
            asked: None,
            status: None,
            sent: 0,
            received: 0,
            complete: false,
            first_byte: None,
            duration: Duration::ZERO,
            acknowledged: None,
            subflows: 0,
            pace_bps: None,
            paths: Vec::new(),
        };
        let (stats, before) = (client.stats.clone(), client.stats.now());
        let record = Record { log: client.log.clone()?, entry, began: Instant::now(), stats, before, written: false };
        Some(Pending(Some(record)))
    }

    /// Begins the line of a request, if there is a log.
    pub(super) fn of_request<B>(client: &Client, request: &Request<B>) -> Option<Self> {
        let mut pending = Pending::of_connection(client)?;
        let text = |name: HeaderName| {
            let value = request.headers().get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let version = if request.version() == Version::HTTP_10 { "HTTP/1.0" } else { "HTTP/1.1" };
        let line = format!("{} {} {version}", request.method(), request.uri());
        pending.entry()?.asked = Some(Asked { line, referer: text(REFERER), agent: text(USER_AGENT) });
        Some(pending)
    }

    /// It is there until this is dropped.
    fn entry(&mut self) -> Option<&mut Entry> {
        self.0.as_mut().map(|record| &mut record.entry)
    }

    /// The response has this status.
    pub(super) fn answered(&mut self, status: u16) {
        self.0.iter_mut().for_each(|record| record.entry.status = Some(status));
    }

    /// Bytes of the body were handed over.
    pub(super) fn sent(&mut self, bytes: usize) {
        if let Some(Record { entry, began, .. }) = &mut self.0 {
            entry.first_byte.get_or_insert_with(|| began.elapsed());
            entry.sent += bytes as u64;
        }
    }

    /// Everything was handed over.
    pub(super) fn completed(&mut self) {
        self.0.iter_mut().for_each(|record| record.entry.complete = true);
    }

    /// Bytes were passed on in both directions, perhaps to their ends.
    pub(super) fn passed(&mut self, received: u64, sent: u64, complete: bool) {
        if let Some(Record { entry, written, .. }) = &mut self.0 {
            (entry.received, entry.sent, entry.complete) = (received, sent, complete);
            *written = complete;
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let Some(mut record) = self.0.take() else { return };
        record.entry.duration = record.began.elapsed();
        if record.entry.complete {
            record.stats.clone().keep(record);
        } else {
            record.write();
        }
    }
}

/// The date of the combined format, in UTC, such as `22/Nov/2026:12:22:58 +0000`.
fn local_date(at: SystemTime) -> String {
    let Some(http) = http_date(at) else { return "-".to_owned() };
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
            character if acts(character) => {
                // Its bytes, as nginx writes them.
                for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(safe, "\\x{byte:02X}");
                }
            }
            character => safe.push(character),
        }
    }
    safe
}

/// The same for a whole line of JSON, in which such characters occur within strings only.
fn escaped_json(line: &str) -> String {
    let mut safe = String::with_capacity(line.len());
    for character in line.chars() {
        if acts(character) {
            let _ = write!(safe, "\\u{:04x}", u32::from(character));
        } else {
            safe.push(character);
        }
    }
    safe
}

/// Whether a terminal may act on a character, or show what follows in another place: control characters of ASCII and of
/// its extension (C1), those that change the direction of text (UAX 9), and separators of lines.
fn acts(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
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
            acknowledged: Some(Duration::from_millis(375)),
            subflows: 2,
            pace_bps: Some(3_000_000),
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

    /// A log into a file, and what is in it once it has so many lines.
    struct File(std::path::PathBuf, Log);

    impl File {
        fn new(name: &str) -> Self {
            let file = std::env::temp_dir().join(format!("anabranch-{}-{name}", std::process::id()));
            let _ = std::fs::remove_file(&file);
            let log = Log::start(&AccessLog { file: file.clone(), format: LogFormat::Json }).expect("a file");
            File(file, log)
        }

        fn client(&self, stats: &Arc<StreamStats>) -> Client {
            let address = "10.1.0.2:40000".parse().unwrap();
            Client { log: Some(self.1.clone()), address, stats: stats.clone(), announcements: None }
        }

        fn lines(&self, number: usize) -> Vec<serde_json::Value> {
            let began = Instant::now();
            loop {
                let text = std::fs::read_to_string(&self.0).expect("a file");
                if text.lines().count() >= number && text.ends_with('\n') || number == 0 {
                    return text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
                }
                assert!(began.elapsed() < Duration::from_secs(30), "{text}");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn response(client: &Client, bytes: usize) {
        let mut pending = Pending::of_connection(client).expect("there is a log");
        pending.sent(bytes);
        pending.completed();
    }

    #[test]
    fn a_line_waits_until_its_response_is_acknowledged() {
        let (file, stats) = (File::new("acknowledged"), StreamStats::new(2));
        let client = file.client(&stats);
        stats.progress(0, 3);
        response(&client, 1000);
        // A part of it is in the stream, and even acknowledged; the end of it is not known before the flush.
        stats.wrote(600);
        stats.progress(600, 1);
        assert_eq!(file.lines(0).len(), 0);
        stats.wrote(500);
        stats.flushed();
        response(&client, 70);
        stats.wrote(100);
        stats.flushed();
        stats.progress(1099, 1);
        assert_eq!(file.lines(0).len(), 0);
        stats.count(1, 1100, false);
        stats.progress(1100, 1);
        let lines = file.lines(1);
        assert_eq!((lines.len(), &lines[0]["sent_bytes"], &lines[0]["subflows"]), (1, &1000.into(), &3.into()));
        assert!(lines[0]["acknowledged_s"].as_f64() >= lines[0]["duration_s"].as_f64());
        assert_eq!(lines[0]["paths"][1]["bytes"], 1100);
        stats.progress(1200, 1);
        assert_eq!(file.lines(2)[1]["sent_bytes"], 70);
    }

    #[test]
    fn what_was_not_acknowledged_has_a_line_without_that_time() {
        let (file, stats) = (File::new("closed"), StreamStats::new(1));
        let client = file.client(&stats);
        response(&client, 10);
        stats.wrote(10);
        stats.flushed();
        drop(Pending::of_connection(&client));
        stats.close();
        // No client is left to acknowledge this one.
        response(&client, 30);
        let mut lines = file.lines(3);
        lines.sort_by_key(|line| line["sent_bytes"].as_u64());
        let seen: Vec<_> = lines.iter().map(|line| (line["sent_bytes"].as_u64(), line["complete"].as_bool())).collect();
        assert_eq!(seen, [(Some(0), Some(false)), (Some(10), Some(true)), (Some(30), Some(true))]);
        assert!(lines.iter().all(|line| line["acknowledged_s"].is_null()));
    }

    #[test]
    fn a_line_has_the_pace_with_which_its_response_was_sent() {
        let (file, stats) = (File::new("paced"), StreamStats::new(1));
        let client = file.client(&stats);
        stats.paced(Some(Bandwidth::from_mbps(3)));
        stats.wrote(1000);
        response(&client, 1000);
        stats.flushed();
        // The pacer takes the response as over before its last bytes are acknowledged.
        stats.paced(None);
        stats.progress(1000, 1);
        assert_eq!(file.lines(1)[0]["pace_bps"].as_u64(), Some(3_000_000));
        stats.paced(None);
        response(&client, 10);
        stats.wrote(10);
        stats.flushed();
        stats.progress(1010, 1);
        assert!(file.lines(2)[1]["pace_bps"].is_null());
    }

    #[test]
    fn a_connection_that_was_passed_on_may_be_acknowledged_before_its_end_is_known() {
        let (file, stats) = (File::new("passed"), StreamStats::new(1));
        let client = file.client(&stats);
        let mut pending = Pending::of_connection(&client).expect("there is a log");
        stats.wrote(50);
        stats.progress(50, 1);
        stats.close();
        pending.passed(7, 50, true);
        drop(pending);
        let line = &file.lines(1)[0];
        assert_eq!((line["received_bytes"].as_u64(), line["sent_bytes"].as_u64()), (Some(7), Some(50)));
        assert!(line["acknowledged_s"].as_f64().is_some());
    }

    #[test]
    fn a_file_that_was_renamed_is_opened_again() {
        let (file, stats) = (File::new("renamed"), StreamStats::new(1));
        let client = file.client(&stats);
        drop(Pending::of_connection(&client));
        file.lines(1);
        let earlier = file.0.with_extension("1");
        std::fs::rename(&file.0, &earlier).expect("renamed");
        let log = file.1.changed(&file.1.options).expect("opened");
        drop(Pending::of_connection(&client));
        // Also for what has the log from before.
        drop(Pending::of_connection(&Client { log: Some(log), ..client }));
        assert_eq!(file.lines(2).len(), 2);
        assert_eq!(std::fs::read_to_string(&earlier).expect("a file").lines().count(), 1);
        std::fs::remove_file(earlier).expect("removed");
    }

    #[test]
    fn a_terminal_that_shows_a_line_does_nothing_else() {
        let agent = "\u{1b}[2J\u{9b}2J\u{202e}txt.exe\u{2028}\u{7f}ü";
        let mut entry = entry();
        entry.asked.as_mut().expect("a request").agent = Some(agent.into());
        assert!(
            entry.combined().ends_with(r#""\x1B[2J\xC2\x9B2J\xE2\x80\xAEtxt.exe\xE2\x80\xA8\x7Fü""#),
            "{}",
            entry.combined()
        );
        let json = entry.json();
        assert!(!json.contains(acts), "{json}");
        let line: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(line["user_agent"], agent);
    }

    #[test]
    fn a_clock_outside_of_http_s_years_gives_a_line() {
        let mut entry = entry();
        for at in
            [SystemTime::UNIX_EPOCH - Duration::from_secs(1), SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40)]
        {
            entry.at = at;
            assert!(entry.combined().contains("[-]"), "{}", entry.combined());
            entry.json();
        }
    }

    #[test]
    fn a_line_of_json_has_times_and_paths() {
        let line: serde_json::Value = serde_json::from_str(&entry().json()).expect("JSON");
        assert_eq!((line["time"].as_f64(), line["status"].as_u64()), (Some(1_700_000_000.5), Some(206)));
        assert_eq!((line["first_byte_s"].as_f64(), line["duration_s"].as_f64()), (Some(0.003), Some(0.25)));
        assert_eq!((line["acknowledged_s"].as_f64(), line["subflows"].as_u64()), (Some(0.375), Some(2)));
        assert_eq!(line["pace_bps"].as_u64(), Some(3_000_000));
        assert_eq!(line["paths"][1]["retransmitted_bytes"], 100);
        assert_eq!((&line["request"], &line["referer"]), (&"GET /f HTTP/1.1".into(), &serde_json::Value::Null));
    }
}
