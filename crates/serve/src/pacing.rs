//! Pacing of responses: a pacer sees every response and its progress, and connections get the caps that it decides.
//!
//! The task of a connection announces each response before it writes it. The loop passes announcements and
//! acknowledgments on, in the order of its own clock. A decision may change the caps of other connections: these are
//! polled, as if their tasks had something.

use super::channel::{Ready, lock};
use super::loop_waker::LoopWaker;
use anabranch_events::PacingCounts;
use anabranch_live::{ConnectionId, QueueingDelays};
use anabranch_units::{Bandwidth, Instant};
use hyper::HeaderMap;
use std::collections::HashSet;
use std::fmt::Debug;
use std::mem::take;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A larger MPD is not looked at.
pub(super) const MOST_MPD: u64 = 8 << 20;

/// How the names of the headers begin that are passed on.
const PREFIX: &str = "cmcd-";

/// Decides how fast the responses of a server are sent. Connections are numbers, which it gives.
pub trait ResponsePacer: Debug + Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// Whether this version of the MPD at this path was passed to [`ResponsePacer::learn`].
    fn knows(&self, path: &str, version: &str) -> bool;

    /// A client has asked for this MPD. May take long.
    fn learn(&self, mpd: ServedMpd<'_>);

    /// A client has connected.
    fn open(&self, client: IpAddr) -> usize;

    /// The client has acknowledged so many bytes of the connection's stream, its packets wait so long in queues, and
    /// these responses have begun since the last call.
    fn progress(
        &self,
        now: Instant,
        connection: usize,
        acked: u64,
        delays: &QueueingDelays,
        begun: Vec<BegunResponse>,
    ) -> Caps;

    /// The connection is closed. Returns the connections whose caps are others now.
    fn close(&self, now: Instant, connection: usize) -> Vec<usize>;

    /// Counts so far, and present values.
    fn counts(&self) -> PacingCounts;
}

/// An MPD that is served.
pub struct ServedMpd<'a> {
    /// The path that was asked for.
    pub path: &'a str,
    /// Changes when the file does.
    pub version: &'a str,
    /// Its content.
    pub bytes: &'a [u8],
    /// Bytes of a file at a path, if it is served.
    pub size: &'a dyn Fn(&str) -> Option<u64>,
}

/// A response with a file or a part of one that was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BegunResponse {
    /// The path that was asked for.
    pub path: String,
    /// The query, without question mark.
    pub query: Option<String>,
    /// The values of headers whose names begin with `cmcd-`.
    pub cmcd: Vec<String>,
    /// Offset of its first byte in the stream of the connection.
    pub begin: u64,
    /// Bytes of its body.
    pub bytes: u64,
}

/// Caps after a connection has progressed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// That of the connection; `None`: no limit.
    pub own: Option<Bandwidth>,
    /// When the buffer of the connection's viewer will be empty if nothing more arrives; `None` where it is not
    /// estimated.
    pub buffered_until: Option<Instant>,
    /// Connections whose caps are others than before.
    pub changed: Vec<usize>,
}

/// The pacing of a server.
#[derive(Debug)]
pub(super) struct Pacing {
    pacer: Arc<dyn ResponsePacer>,
    ready: Arc<Ready<ConnectionId, LoopWaker>>,
    /// The connections by the numbers that they got.
    connections: Mutex<Vec<Option<ConnectionId>>>,
    /// Paths of MPDs that are being read.
    reading: Mutex<HashSet<String>>,
}

impl Pacing {
    pub(super) fn new(pacer: Arc<dyn ResponsePacer>, ready: Arc<Ready<ConnectionId, LoopWaker>>) -> Arc<Self> {
        Arc::new(Pacing { pacer, ready, connections: Mutex::default(), reading: Mutex::default() })
    }

    pub(super) fn name(&self) -> &str {
        self.pacer.name()
    }

    pub(super) fn counts(&self) -> PacingCounts {
        self.pacer.counts()
    }

    /// Both sides of a connection.
    pub(super) fn open(self: &Arc<Self>, id: ConnectionId, client: IpAddr) -> (PacedLoop, Arc<Announcements>) {
        let number = self.pacer.open(client);
        let mut connections = lock(&self.connections);
        if connections.len() <= number {
            connections.resize(number + 1, None);
        }
        connections[number] = Some(id);
        drop(connections);
        let announcements = Announcements { pacing: self.clone(), any: AtomicBool::new(false), list: Mutex::default() };
        let announcements = Arc::new(announcements);
        let of_loop =
            PacedLoop { pacing: self.clone(), number, announcements: announcements.clone(), now: Instant::ZERO };
        (of_loop, announcements)
    }

    /// Has these connections polled.
    fn wake(&self, numbers: &[usize], but: usize) {
        if numbers.is_empty() {
            return;
        }
        let connections = lock(&self.connections);
        let others = numbers.iter().filter(|number| **number != but);
        let ids: Vec<_> = others.filter_map(|number| connections.get(*number).copied().flatten()).collect();
        drop(connections);
        ids.into_iter().for_each(|id| self.ready.enter(id));
    }
}

/// The loop's side of a connection.
#[derive(Debug)]
pub(super) struct PacedLoop {
    pacing: Arc<Pacing>,
    number: usize,
    announcements: Arc<Announcements>,
    /// When it was polled last.
    now: Instant,
}

impl PacedLoop {
    /// The connection has progressed; returns the cap of its rate, and when its viewer's buffer will be empty.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        acked: u64,
        delays: &QueueingDelays,
    ) -> (Option<Bandwidth>, Option<Instant>) {
        self.now = now;
        let caps = self.pacing.pacer.progress(now, self.number, acked, delays, self.announcements.take());
        self.pacing.wake(&caps.changed, self.number);
        (caps.own, caps.buffered_until)
    }
}

impl Drop for PacedLoop {
    fn drop(&mut self) {
        // Before the number is another connection's.
        if let Some(connection) = lock(&self.pacing.connections).get_mut(self.number) {
            *connection = None;
        }
        let changed = self.pacing.pacer.close(self.now, self.number);
        self.pacing.wake(&changed, self.number);
    }
}

/// The task's side of a connection: the responses that it has begun.
#[derive(Debug)]
pub(super) struct Announcements {
    pacing: Arc<Pacing>,
    any: AtomicBool,
    list: Mutex<Vec<BegunResponse>>,
}

impl Announcements {
    /// A response is about to be written.
    pub(super) fn announce(&self, response: BegunResponse) {
        lock(&self.list).push(response);
        self.any.store(true, Ordering::Release);
    }

    fn take(&self) -> Vec<BegunResponse> {
        // Polls are many and responses are few.
        if self.any.swap(false, Ordering::Acquire) { take(&mut *lock(&self.list)) } else { Vec::new() }
    }

    /// Whether the MPD is wanted. Then it must be passed to [`Announcements::learn`]; until then it is wanted once
    /// only.
    pub(super) fn wants(&self, path: &str, version: &str) -> bool {
        !self.pacing.pacer.knows(path, version) && lock(&self.pacing.reading).insert(path.to_owned())
    }

    /// Passes an MPD on; nothing if it could not be read.
    pub(super) fn learn(&self, path: &str, mpd: Option<ServedMpd<'_>>) {
        if let Some(mpd) = mpd {
            self.pacing.pacer.learn(mpd);
        }
        lock(&self.pacing.reading).remove(path);
    }
}

/// The values of the headers of CMCD.
pub(super) fn cmcd_of(headers: &HeaderMap) -> Vec<String> {
    let values = headers.iter().filter(|(name, _)| name.as_str().starts_with(PREFIX));
    values.filter_map(|(_, value)| Some(value.to_str().ok()?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loop_waker::LoopWaker;

    /// Gives numbers in turn, caps each connection by its number in Mb/s, and says that all others have changed.
    #[derive(Debug, Default)]
    struct Fake(Mutex<Vec<String>>);

    impl Fake {
        fn note(&self, what: String) {
            lock(&self.0).push(what);
        }
    }

    impl ResponsePacer for Fake {
        fn name(&self) -> &'static str {
            "fake"
        }

        fn knows(&self, _: &str, version: &str) -> bool {
            version == "known"
        }

        fn learn(&self, mpd: ServedMpd<'_>) {
            self.note(format!("learn {} {:?}", mpd.path, (mpd.size)("/f")));
        }

        fn open(&self, _: IpAddr) -> usize {
            let number = lock(&self.0).iter().filter(|noted| noted.starts_with("open")).count();
            self.note(format!("open {number}"));
            number
        }

        fn progress(
            &self,
            _: Instant,
            connection: usize,
            acked: u64,
            _: &QueueingDelays,
            begun: Vec<BegunResponse>,
        ) -> Caps {
            self.note(format!("progress {connection} {acked} {}", begun.len()));
            let own = Some(Bandwidth::from_mbps(connection as u64));
            Caps { own, buffered_until: Some(Instant::ZERO), changed: vec![0, 1, 2] }
        }

        fn close(&self, _: Instant, connection: usize) -> Vec<usize> {
            self.note(format!("close {connection}"));
            vec![0, 1]
        }

        fn counts(&self) -> PacingCounts {
            PacingCounts::default()
        }
    }

    fn response() -> BegunResponse {
        BegunResponse { path: "/a".into(), query: None, cmcd: Vec::new(), begin: 0, bytes: 1 }
    }

    #[test]
    fn announcements_are_passed_once_and_others_with_new_caps_are_woken() {
        let fake = Arc::new(Fake::default());
        let ready = Arc::new(Ready::new(LoopWaker::new().unwrap()));
        let pacing = Pacing::new(fake.clone(), ready.clone());
        let id = |index: usize| ConnectionId::new(index, 0);
        let client = IpAddr::from([10, 0, 0, 1]);
        let (first, _) = pacing.open(id(70), client);
        let (mut second, announcements) = pacing.open(id(71), client);
        let mut woken = Vec::new();
        announcements.announce(response());
        assert_eq!(
            second.follow(Instant::ZERO, 5, &QueueingDelays::default()),
            (Some(Bandwidth::from_mbps(1)), Some(Instant::ZERO))
        );
        ready.take(&mut woken);
        assert_eq!(take(&mut woken), [id(70)], "neither itself nor one that does not exist");
        second.follow(Instant::ZERO, 6, &QueueingDelays::default());
        ready.take(&mut woken);
        woken.clear();
        drop(first);
        ready.take(&mut woken);
        assert_eq!(woken, [id(71)]);
        let expected = ["open 0", "open 1", "progress 1 5 1", "progress 1 6 0", "close 0"];
        assert_eq!(*lock(&fake.0), expected);
    }

    #[test]
    fn an_mpd_is_read_once_at_a_time() {
        let fake = Arc::new(Fake::default());
        let ready = Arc::new(Ready::new(LoopWaker::new().unwrap()));
        let (_end, announcements) =
            Pacing::new(fake.clone(), ready).open(ConnectionId::new(0, 0), [10, 0, 0, 1].into());
        assert!(!announcements.wants("/a.mpd", "known"));
        assert!(announcements.wants("/a.mpd", "1") && !announcements.wants("/a.mpd", "1"));
        announcements.learn("/a.mpd", None);
        assert!(announcements.wants("/a.mpd", "1"), "it could not be read");
        let size = |_: &str| Some(7);
        announcements.learn("/a.mpd", Some(ServedMpd { path: "/a.mpd", version: "1", bytes: &[], size: &size }));
        assert_eq!(lock(&fake.0)[1], "learn /a.mpd Some(7)");
    }
}
