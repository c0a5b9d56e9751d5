//! Response pacing of a server of files: which responses are media, and whose they are.
//!
//! A response is media if the server has served an MPD that names its file, or if the player reports that it is (CMCD).
//! Requests with the same session (`sid` of CMCD) are of one viewer, and without one, those from the same address for
//! the same MPD.

use super::presentations::{Found, Presentation, Presentations, UnknownMedia};
use super::{MOST_VIEWERS, Pacer, Progress, ResponsePacing};
use crate::cmcd::{Cmcd, ObjectType, StreamingFormat};
use crate::content::DashVideo;
use crate::http::{Answer, MediaSegment};
use anabranch_events::PacingCounts;
use anabranch_units::{Bandwidth, Duration, Instant, SubflowId};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// The viewers of a server of files, and the policy that paces its responses. Connections are numbers.
#[derive(Debug)]
pub struct FilePacer {
    pacer: Pacer,
    presentations: Presentations,
    viewers: HashMap<Name, usize>,
    /// By number of the connection.
    clients: Vec<Client>,
    /// Whether caps may have changed since [`FilePacer::take_changed`].
    changes: bool,
    counts: PacingCounts,
}

/// The client of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Client {
    /// `None` of a viewer whom the host knows.
    address: Option<IpAddr>,
    /// The cap that the host knows.
    cap: Option<Bandwidth>,
}

/// What identifies a viewer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Name {
    who: Who,
    /// The path of the MPD; empty if the server does not know it.
    mpd: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Who {
    /// The name of the player's session.
    Session(String),
    Address(IpAddr),
}

/// A response with a file, or a part of one, that was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileResponse {
    /// The path that was asked for.
    pub path: String,
    /// What the player reported with the request.
    pub cmcd: Option<Cmcd>,
    /// Offset of its first byte in the stream of the connection.
    pub begin: u64,
    /// Bytes of its body. The header before it is not counted, so the response counts as over some hundred bytes early.
    pub bytes: u64,
}

impl FilePacer {
    /// A server without clients.
    pub fn new(policy: Box<dyn ResponsePacing>) -> Self {
        FilePacer {
            pacer: Pacer::new(policy),
            presentations: Presentations::default(),
            viewers: HashMap::new(),
            clients: Vec::new(),
            changes: false,
            counts: PacingCounts::default(),
        }
    }

    /// Whether this version of the MPD at this path is known.
    pub fn knows(&self, path: &str, version: &str) -> bool {
        self.presentations.has(path, version)
    }

    /// The server has served this version of the MPD at this path, which is that of a presentation, or of none that can
    /// be known.
    pub fn learn(&mut self, path: &str, version: &str, read: Result<Presentation, UnknownMedia>) {
        self.presentations.add(path, version, read.ok());
    }

    /// A client has connected; returns the connection's number, which may be that of an earlier one that is closed.
    pub fn open(&mut self, client: IpAddr) -> usize {
        self.open_at(Some(client))
    }

    /// A viewer of this video, whom the host knows, has connected. `viewer` is the number of one who had a connection
    /// before. Returns the numbers of the connection and of the viewer.
    pub fn open_of_viewer(
        &mut self,
        now: Instant,
        video: Option<Arc<DashVideo>>,
        viewer: Option<usize>,
    ) -> (usize, usize) {
        let connection = self.open_at(None);
        let viewer = viewer.unwrap_or_else(|| self.pacer.add_viewer(video));
        self.pacer.assign(now, connection, viewer);
        (connection, viewer)
    }

    fn open_at(&mut self, address: Option<IpAddr>) -> usize {
        let connection = self.pacer.open();
        if self.clients.len() <= connection {
            self.clients.resize(connection + 1, Client::default());
        }
        self.clients[connection] = Client { address, cap: None };
        connection
    }

    /// How long packets of a connection's subflows wait in queues: see [`Pacer::note_delays`].
    pub fn note_delays(
        &mut self,
        now: Instant,
        connection: usize,
        delays: impl Iterator<Item = (SubflowId, Duration)>,
    ) {
        self.changes |= self.pacer.note_delays(now, connection, delays);
    }

    /// A client has acknowledged so many bytes of its connection's stream, and these responses have begun since the
    /// last call.
    pub fn advance(&mut self, now: Instant, connection: usize, acked: u64, begun: impl Iterator<Item = FileResponse>) {
        self.progress(now, connection, Progress { acked, written: u64::MAX, over: false }, std::iter::empty());
        begun.for_each(|response| self.respond(now, connection, response));
    }

    /// What is no media is not paced.
    fn respond(&mut self, now: Instant, connection: usize, response: FileResponse) {
        let Some(client) = self.clients[connection].address else { return };
        let reported = response.cmcd.as_ref();
        let found = self.presentations.find(&response.path);
        if found.is_none() && !reported.is_some_and(is_media) {
            return;
        }
        self.changes |= self.pacer.expire(now);
        let Some(viewer) = self.viewer_of(reported, client, found.as_ref()) else { return };
        self.pacer.assign(now, connection, viewer);
        let next = || MediaSegment { representation: 0, index: self.pacer.viewer(viewer).next_index() };
        let segment = found.map_or_else(next, |found| found.segment);
        let end = response.begin + response.bytes;
        let cmcd = response.cmcd.map(Arc::new);
        let answer = Answer { media: Some(segment), bytes: response.bytes, end, cmcd };
        let progress = Progress { acked: self.pacer.acked(connection), written: u64::MAX, over: false };
        self.progress(now, connection, progress, std::iter::once(answer));
    }

    /// The viewer of a response, an earlier one or a new one; none if there are enough.
    fn viewer_of(&mut self, reported: Option<&Cmcd>, client: IpAddr, found: Option<&Found>) -> Option<usize> {
        let session = reported.and_then(|reported| reported.session.clone());
        let who = session.map_or(Who::Address(client), Who::Session);
        let name = Name { who, mpd: found.map_or_else(String::new, |found| found.mpd.clone()) };
        if let Some(&at) = self.viewers.get(&name).filter(|at| self.pacer.is_known(**at)) {
            return Some(at);
        }
        if self.pacer.known() >= MOST_VIEWERS {
            return None;
        }
        let at = self.pacer.add_viewer(found.map(|found| found.video.clone()));
        // The place may have been another's, who has left.
        self.viewers.retain(|_, other| *other != at);
        self.viewers.insert(name, at);
        Some(at)
    }

    /// A connection has progressed, and a viewer whom the host knows has got these responses begun since the last call.
    pub fn progress(
        &mut self,
        now: Instant,
        connection: usize,
        progress: Progress,
        answers: impl Iterator<Item = Answer>,
    ) {
        let mut begun = 0;
        let sent = self.pacer.sends_media(connection);
        let answers = answers.inspect(|answer| begun += u64::from(answer.media.is_some()));
        let decided = self.pacer.progress(now, connection, progress, answers);
        self.changes |= decided || sent != self.pacer.sends_media(connection);
        self.counts.media += begun;
        self.counts.paced += begun * u64::from(self.cap(connection).is_some());
    }

    /// The connection is closed.
    pub fn close(&mut self, now: Instant, connection: usize) {
        self.pacer.close(now, connection);
        self.clients[connection] = Client::default();
        self.changes = true;
    }

    /// The cap of a connection's rate. What is no media is not limited.
    pub fn cap(&self, connection: usize) -> Option<Bandwidth> {
        self.pacer.pace(connection).filter(|_| self.pacer.sends_media(connection))
    }

    /// When the buffer of the connection's viewer will be empty; see [`Pacer::buffered_until`]. For what is no media no
    /// viewer waits that has a buffer.
    pub fn buffered_until(&self, connection: usize) -> Option<Instant> {
        self.pacer.buffered_until(connection).filter(|_| self.pacer.sends_media(connection))
    }

    /// Connections whose caps are others than when this was called last.
    pub fn take_changed(&mut self) -> Vec<usize> {
        if !std::mem::take(&mut self.changes) {
            return Vec::new();
        }
        let mut changed: Vec<_> = self.pacer.connections().filter(|&at| self.cap(at) != self.clients[at].cap).collect();
        changed.sort_unstable();
        for &at in &changed {
            self.clients[at].cap = self.cap(at);
        }
        changed
    }

    /// Counts so far, and present values.
    pub fn counts(&self) -> PacingCounts {
        let (presentations, unusable) = self.presentations.count();
        PacingCounts {
            viewers: self.pacer.present() as u64,
            limited: self.pacer.connections().filter(|&at| self.cap(at).is_some()).count() as u64,
            presentations: presentations as u64,
            unusable: unusable as u64,
            ..self.counts
        }
    }
}

/// Whether a player reports that it asked for media of DASH, and how long that plays.
fn is_media(reported: &Cmcd) -> bool {
    let is_dash = reported.format.is_none_or(|format| format == StreamingFormat::Dash);
    is_dash && reported.object.is_some_and(ObjectType::has_video) && reported.duration.is_some()
}

#[cfg(test)]
mod tests;
