//! A policy at work in a server: it sees the viewers and their responses, and the server's connections get the caps.
//!
//! The host reports a connection's progress whenever it changes, with the responses that it has begun since. It is the
//! same for a simulated server and a real one. A viewer may have several connections, and a connection need not belong
//! to a viewer.

use super::sharing::Sharing;
use super::{Moment, ResponsePacing, Viewer};
use crate::content::DashVideo;
use crate::http::Answer;
use anabranch_units::{Bandwidth, Duration, Instant, SubflowId};
use std::collections::VecDeque;
use std::sync::Arc;

/// A viewer who has not asked for this long after what is buffered was played has paused, or is gone.
const GONE_AFTER: Duration = Duration::from_secs(10);

/// The viewers and connections of a server, and the policy that paces its responses. Viewers and connections are
/// numbers.
#[derive(Debug)]
pub struct Pacer {
    policy: Box<dyn ResponsePacing>,
    viewers: Vec<Viewer>,
    /// By number of the viewer.
    presences: Vec<Presence>,
    sharing: Sharing,
    connections: Vec<Connection>,
    /// Numbers of connections that are closed.
    free: Vec<usize>,
}

/// Whether a viewer is there.
#[derive(Clone, Debug, Default)]
struct Presence {
    /// The open connections.
    connections: Vec<usize>,
    /// Asked for media, and has not left since.
    present: bool,
    /// The last request, or the end of the last response.
    active_at: Instant,
}

impl Presence {
    /// Whether its number is still needed.
    fn is_known(&self) -> bool {
        self.present || !self.connections.is_empty()
    }
}

/// A connection and its responses that are being sent.
#[derive(Debug, Default)]
struct Connection {
    viewer: Option<usize>,
    due: VecDeque<Answer>,
    acked: u64,
    /// The session on it is over.
    over: bool,
}

/// Progress of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of its stream that the viewer has acknowledged; fewer than before on a connection in the place of another
    /// one.
    pub acked: u64,
    /// One past the last byte of the last response, if that is known to be shorter than it was announced; [`u64::MAX`]
    /// if not.
    pub written: u64,
    /// The session is over.
    pub over: bool,
}

impl Pacer {
    /// A server without viewers.
    pub fn new(policy: Box<dyn ResponsePacing>) -> Self {
        Pacer {
            policy,
            viewers: Vec::new(),
            presences: Vec::new(),
            sharing: Sharing::default(),
            connections: Vec::new(),
            free: Vec::new(),
        }
    }

    /// A viewer of this video, if the server knows one. Numbers of viewers who have left, and have no connection, are
    /// used again.
    pub fn add_viewer(&mut self, video: Option<Arc<DashVideo>>) -> usize {
        if let Some(at) = self.presences.iter().position(|presence| !presence.is_known()) {
            self.viewers[at] = self.viewers[at].successor(video);
            self.sharing.forget(at);
            self.regroup();
            return at;
        }
        self.viewers.push(Viewer::new(video));
        self.presences.push(Presence::default());
        self.regroup();
        self.viewers.len() - 1
    }

    /// How long packets of a connection's subflows wait in queues: of each with data in flight, its round trip less its
    /// least one. Looked at only as often as delays are compared, so a host may pass them whenever it has them. Returns
    /// whether caps may have changed.
    pub fn note_delays(
        &mut self,
        now: Instant,
        connection: usize,
        delays: impl Iterator<Item = (SubflowId, Duration)>,
    ) -> bool {
        let Some(viewer) = self.connections[connection].viewer else { return false };
        if !self.policy.groups() || !self.sharing.wants(now, viewer) {
            return false;
        }
        delays.for_each(|(subflow, delay)| self.sharing.note(now, viewer, subflow, delay));
        let changes = self.sharing.compare(now);
        if changes {
            self.regroup();
            self.policy.decide(now, &mut self.viewers, &Moment::Grouped);
        }
        changes
    }

    fn regroup(&mut self) {
        let groups = self.sharing.groups(self.viewers.len());
        self.viewers.iter_mut().zip(groups).for_each(|(viewer, group)| viewer.group = group);
    }

    /// A connection was opened. Numbers of closed ones are used again.
    pub fn open(&mut self) -> usize {
        let at = self.free.pop().unwrap_or_else(|| {
            self.connections.push(Connection::default());
            self.connections.len() - 1
        });
        self.connections[at] = Connection::default();
        at
    }

    /// From now on the connection is this viewer's. Another viewer whose last one it was has left.
    pub fn assign(&mut self, now: Instant, connection: usize, viewer: usize) {
        if self.connections[connection].viewer == Some(viewer) {
            return;
        }
        // First, so that the policy sees the new viewer with a connection when the other one leaves.
        self.presences[viewer].connections.push(connection);
        self.detach(now, connection);
        self.connections[connection].viewer = Some(viewer);
    }

    /// A connection has progressed, and these responses have begun on it since the last call. Returns whether caps may
    /// have changed.
    pub fn progress(
        &mut self,
        now: Instant,
        connection: usize,
        progress: Progress,
        answers: impl Iterator<Item = Answer>,
    ) -> bool {
        let Progress { acked, written, over } = progress;
        let before = std::mem::replace(&mut self.connections[connection].acked, acked);
        let replaced = acked < before;
        if replaced {
            // Another connection in its place, whose responses are numbered from zero.
            self.connections[connection].due.clear();
        }
        let Some(viewer) = self.connections[connection].viewer else { return false };
        if replaced {
            self.viewers[viewer].replace_connection(connection);
        }
        self.viewers[viewer].delivered += if replaced { acked } else { acked - before };
        let mut decided = self.complete(now, connection, viewer, written);
        for answer in answers {
            decided |= self.begin(now, connection, viewer, answer);
        }
        let first = self.connections[connection].due.front();
        if first.is_some_and(|answer| answer.media.is_some() && acked > answer.end - answer.bytes) {
            self.viewers[viewer].began(now, connection);
        }
        if over && !std::mem::replace(&mut self.connections[connection].over, true) {
            self.leave(now, viewer);
            decided = true;
        }
        decided
    }

    /// Responses that are acknowledged to their ends are over. Returns whether the policy has decided.
    fn complete(&mut self, now: Instant, connection: usize, viewer: usize, written: u64) -> bool {
        let mut decided = false;
        let Connection { due, acked, .. } = &mut self.connections[connection];
        // A response may have been cut short after it was announced.
        while due.front().is_some_and(|answer| answer.end.min(written) <= *acked) {
            let Some(segment) = due.pop_front().and_then(|answer| answer.media) else { continue };
            if let Some(response) = self.viewers[viewer].completed(now, connection, segment) {
                self.presences[viewer].active_at = now;
                self.policy.decide(now, &mut self.viewers, &Moment::Delivered(viewer, response));
                decided = true;
            }
        }
        decided
    }

    /// A response has begun. Returns whether the policy has decided.
    fn begin(&mut self, now: Instant, connection: usize, viewer: usize, answer: Answer) -> bool {
        let (media, bytes) = (answer.media, answer.bytes);
        if let Some(reported) = &answer.cmcd {
            self.viewers[viewer].report(now, reported);
        }
        self.connections[connection].due.push_back(answer);
        let Some(segment) = media else { return false };
        self.viewers[viewer].requested(now, connection, segment, bytes);
        let presence = &mut self.presences[viewer];
        (presence.present, presence.active_at) = (true, now);
        self.policy.decide(now, &mut self.viewers, &Moment::Requested(viewer));
        true
    }

    /// The connection is closed, and with the last one of a viewer, the viewer has left. Returns whether caps may have
    /// changed.
    pub fn close(&mut self, now: Instant, connection: usize) -> bool {
        let left = self.detach(now, connection);
        self.connections[connection] = Connection::default();
        self.free.push(connection);
        left
    }

    /// Viewers who have not asked for anything for longer than they have media have left, until they ask again. Returns
    /// whether caps may have changed.
    pub fn expire(&mut self, now: Instant) -> bool {
        let is_gone = |at: &usize| {
            let (presence, viewer) = (&self.presences[*at], &self.viewers[*at]);
            let idle = now.since(presence.active_at);
            presence.present && !viewer.is_served() && viewer.buffer(now).is_zero() && idle >= GONE_AFTER
        };
        let gone: Vec<_> = (0..self.viewers.len()).filter(is_gone).collect();
        gone.iter().for_each(|&at| self.leave(now, at));
        !gone.is_empty()
    }

    /// The cap of a connection's rate: that of its viewer, in equal parts for all of the viewer's connections that send
    /// media.
    pub fn pace(&self, connection: usize) -> Option<Bandwidth> {
        let viewer = self.connections[connection].viewer?;
        let pace = self.viewers[viewer].pace?;
        let sending = self.presences[viewer].connections.iter().filter(|&&at| self.sends_media(at)).count() as u64;
        Some(Bandwidth::from_bps(pace.as_bps() / sending.max(1)))
    }

    /// When the buffer of the connection's viewer will be empty, by an estimate. A player that is paused, or has waited
    /// before it began, has more.
    pub fn buffered_until(&self, connection: usize) -> Option<Instant> {
        self.viewers[self.connections[connection].viewer?].buffered_until()
    }

    /// The connections of all viewers, by viewer.
    pub fn connections(&self) -> impl Iterator<Item = usize> {
        self.presences.iter().flat_map(|presence| presence.connections.iter().copied())
    }

    /// Bytes of the connection's stream that were acknowledged, as far as is known.
    pub fn acked(&self, connection: usize) -> u64 {
        self.connections[connection].acked
    }

    /// Whether a media segment is being sent on the connection, or is next.
    pub fn sends_media(&self, connection: usize) -> bool {
        self.connections[connection].due.front().is_some_and(|answer| answer.media.is_some())
    }

    /// A viewer, by number.
    pub fn viewer(&self, at: usize) -> &Viewer {
        &self.viewers[at]
    }

    /// Whether the viewer has open connections, or has not left.
    pub fn is_known(&self, viewer: usize) -> bool {
        self.presences[viewer].is_known()
    }

    /// Number of viewers who have open connections, or have not left.
    pub fn known(&self) -> usize {
        self.presences.iter().filter(|presence| presence.is_known()).count()
    }

    /// Number of viewers who are present.
    pub fn present(&self) -> usize {
        self.presences.iter().filter(|presence| presence.present).count()
    }

    /// Takes the connection from its viewer; returns whether that one has left.
    fn detach(&mut self, now: Instant, connection: usize) -> bool {
        let Some(viewer) = self.connections[connection].viewer.take() else { return false };
        self.viewers[viewer].forget_responses_on(connection);
        let presence = &mut self.presences[viewer];
        presence.connections.retain(|&at| at != connection);
        let leaves = presence.connections.is_empty() && presence.present;
        if leaves {
            self.leave(now, viewer);
        }
        leaves
    }

    fn leave(&mut self, now: Instant, viewer: usize) {
        self.presences[viewer].present = false;
        self.viewers[viewer].forget_responses();
        self.policy.decide(now, &mut self.viewers, &Moment::Left(viewer));
    }
}
