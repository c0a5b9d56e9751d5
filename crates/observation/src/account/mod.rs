//! An account of link time: while a response is due, each moment of each path's link goes to what it carried, or to one
//! cause why it carried nothing useful.
//!
//! The account of a session is a list of spans in the order of time. A host [settles](Account::settle) it before
//! anything changes that a cause depends on; between two such moments the state of the sender is the same. The packets
//! that leave a link's server show what it is busy with, so nothing is computed as a remainder: a moment whose cause is
//! unknown is [`Cause::Unexplained`].

mod cuts;
mod table;

pub(crate) use table::tabulate;

use cuts::Cuts;

use anabranch_events::{DropCause, Limit, LossCause, PathLimit, PlayerEvent, TransportEvent};
use anabranch_units::{Duration, Instant, PathId};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a moment of a link went to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A packet with bytes that were not on their way before.
    Useful,
    /// The request was on its way to the server.
    Request,
    /// The window was still growing for the first time.
    StartUp,
    /// The congestion control kept the window, or its pace, below what the link carries.
    Window,
    /// Random losses: what was lost at the link's exit, the repair, and the window that they reduced.
    LossRandom,
    /// The same for losses at a full queue.
    LossQueue,
    /// The same for losses while the link was down, and what else the path needed to work again.
    LossOutage,
    /// The sender took reordered or late packets for lost.
    Reordering,
    /// The window had decayed because the connection was idle.
    IdleDecay,
    /// The server limited the pace of its response.
    Pacing,
    /// The player read no more for now: what arrives fills the receive buffer.
    Player,
    /// The client's program did not read, although data was there for it or its window was full.
    Reader,
    /// The server's program had a request, and wrote nothing more of the response.
    Application,
    /// The receiver's window was full of data beyond a gap, or is too small for the path.
    ReceiveWindow,
    /// The send buffer was full.
    SendBuffer,
    /// The path policy kept data off the path.
    Policy,
    /// The path is a backup.
    Backup,
    /// The scheduler kept data for another path, or had given it to one.
    Scheduler,
    /// No subflow was established on the path.
    NotJoined,
    /// Packets of another connection.
    Shared,
    /// The link, or the client's interface, was down.
    LinkDown,
    /// The link carried less than usual.
    LinkSlow,
    /// A packet with bytes that were on their way already.
    Copies,
    /// Everything was sent, and the last bytes were on their way.
    LastBytes,
    /// None of the above.
    Unexplained,
}

impl Cause {
    /// All of them, new data first.
    pub(crate) const ALL: [Cause; 25] = [
        Cause::Useful,
        Cause::Request,
        Cause::StartUp,
        Cause::Window,
        Cause::LossRandom,
        Cause::LossQueue,
        Cause::LossOutage,
        Cause::Reordering,
        Cause::IdleDecay,
        Cause::Pacing,
        Cause::Player,
        Cause::Reader,
        Cause::Application,
        Cause::ReceiveWindow,
        Cause::SendBuffer,
        Cause::Policy,
        Cause::Backup,
        Cause::Scheduler,
        Cause::NotJoined,
        Cause::Shared,
        Cause::LinkDown,
        Cause::LinkSlow,
        Cause::Copies,
        Cause::LastBytes,
        Cause::Unexplained,
    ];

    fn alone(self) -> Reason {
        Reason { cause: self, by: By::None }
    }
}

/// A cause, and who is behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reason {
    pub cause: Cause,
    pub by: By,
}

/// Who is behind a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum By {
    None,
    /// Another connection, by its position in the run.
    Flow(u32),
    /// A path of the session, by its position there.
    Path(u16),
}

/// A slice of time is this long. Chunks of a tenth of a second have ten of them.
pub(crate) const SLICE: Duration = Duration::from_millis(10);

/// Where link time is entered: number of the slice, position of the path in the session, number of the request, reason.
pub(crate) type Entry = (u64, u16, u32, Reason);

/// A packet that left the server of a path's link, or was dropped there.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// The connection whose packet it is, by its position in the run; none for this session's.
    pub foreign: Option<u32>,
    /// The position of its payload in the stream, modulo 2^32, and its length.
    pub payload: (u32, u32),
    /// When its transmission began; none if it was dropped before.
    pub began: Option<Instant>,
    /// When its last bit was sent, or when it was dropped.
    pub at: Instant,
    /// Why it was dropped.
    pub dropped: Option<DropCause>,
}

#[derive(Debug)]
struct PathAccount {
    id: PathId,
    /// Everything before is entered.
    settled: Instant,
    up: bool,
    /// When it was down last; none if it never was, or has carried payload of the session since.
    down_at: Option<Instant>,
    /// Whether the link is busy.
    busy: bool,
    /// The connection whose packet the link sent last, if it is another one.
    foreign: Option<u32>,
    limit: Option<PathLimit>,
    /// Reductions of the window whose effects last.
    cuts: Cuts,
    /// When the link was idle last because the window was full.
    starved: Instant,
    /// How long the link takes for a full packet, and the payload of it.
    packet: Option<(Duration, u32)>,
    /// The last loss of a packet with payload here.
    last_loss: Option<Cause>,
}

impl PathAccount {
    fn new(id: PathId, start: Instant) -> Self {
        PathAccount {
            id,
            settled: start,
            up: true,
            down_at: None,
            busy: false,
            foreign: None,
            limit: None,
            cuts: Cuts::default(),
            starved: start,
            packet: None,
            last_loss: None,
        }
    }

    /// The window that keeps the link busy, in packets, if a packet was seen.
    fn needed(&self, srtt: Duration) -> f64 {
        match self.packet {
            Some((time, _)) if !time.is_zero() && !srtt.is_zero() => srtt.as_secs_f64() / time.as_secs_f64(),
            _ => f64::INFINITY,
        }
    }

    /// The window was reduced between these numbers of packets.
    fn cut(&mut self, cause: Cause, from: f64, to: f64) {
        let srtt = self.limit.map_or(Duration::ZERO, |limit| limit.srtt);
        self.cuts.add(cause, from, to, self.settled, self.needed(srtt), srtt);
    }

    /// Notes a packet of payload that the link sent in this time.
    fn note_packet(&mut self, time: Duration, len: u32) {
        if self.packet.is_none_or(|(_, largest)| len >= largest) {
            self.packet = Some((time, len));
        }
    }
}

/// What the server's application has written.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// Bytes in the connection's stream.
    pub bytes: u64,
    /// Whether all of them were given to subflows.
    pub all_given: bool,
    /// Whether it has the request for more, and does not write it.
    pub owes: bool,
}

impl Written {
    const NOTHING: Written = Written { bytes: 0, all_given: true, owes: false };
}

/// See the module's description.
#[derive(Debug)]
pub struct Account {
    paths: Vec<PathAccount>,
    /// Requests whose responses are due, oldest first.
    due: Vec<u32>,
    /// When the last request was sent.
    requested: Instant,
    /// Bytes that the server's application had written when the last request was sent.
    written_before: u64,
    /// What it has written by now.
    written: Written,
    /// Whether bytes wait at the client that the player has not read.
    unread: bool,
    /// Whether the client's program does not read at all.
    paused: bool,
    /// Runs of the stream that are on their way or have arrived, by their beginnings; positions count from the first
    /// one seen.
    carried: Runs,
    /// Runs that were dropped and not sent again, with the path and the cause.
    missing: Vec<(u64, u64, usize, Cause)>,
    /// The last position seen, to tell how often the number has wrapped.
    position: Option<u64>,
    entries: BTreeMap<Entry, Duration>,
}

impl Account {
    /// The account of a session over these paths.
    pub fn new(start: Instant, paths: &[PathId]) -> Self {
        Account {
            paths: paths.iter().map(|id| PathAccount::new(*id, start)).collect(),
            due: Vec::new(),
            requested: start,
            written_before: 0,
            written: Written::NOTHING,
            unread: false,
            paused: false,
            carried: Runs::default(),
            missing: Vec::new(),
            position: None,
            entries: BTreeMap::new(),
        }
    }

    /// Enters what a path's link did until `now`: the packets that have left it since the last call, in order, and
    /// since when it has been sending the present one.
    pub fn settle(
        &mut self,
        now: Instant,
        path: usize,
        passed: impl Iterator<Item = Passed>,
        serving_since: Option<Instant>,
        up: bool,
    ) {
        for packet in passed {
            if let Some(began) = packet.began {
                self.enter_idle(path, began);
            }
            let reason = self.take(path, &packet);
            if let Some(began) = packet.began {
                self.enter(path, began.max(self.paths[path].settled), packet.at, reason);
                self.paths[path].settled = self.paths[path].settled.max(packet.at);
            }
        }
        self.enter_idle(path, serving_since.unwrap_or(now).min(now));
        let account = &mut self.paths[path];
        if !(account.up && up) {
            account.down_at = Some(now);
        }
        (account.up, account.busy) = (up, serving_since.is_some());
    }

    /// What limits each path from now on, and what the server's application has written. To be called after
    /// [`Account::settle`].
    pub fn note_limits(&mut self, limits: &[PathLimit], written: Written) {
        self.written = written;
        for limit in limits {
            let Some(path) = self.paths.iter_mut().find(|path| path.id == limit.path) else { continue };
            let now = path.settled;
            let needed = path.needed(limit.srtt);
            // The window has kept the link busy for a round trip.
            let recovered = now.since(path.starved) >= limit.srtt;
            path.cuts.forget(limit.cwnd, now, needed, recovered);
            path.limit = Some(*limit);
        }
    }

    /// Whether bytes wait at the client after the player has read what it wanted, and whether its program does not read
    /// at all. To be called after [`Account::settle`].
    pub fn note_unread(&mut self, unread: bool, paused: bool) {
        (self.unread, self.paused) = (unread, paused);
    }

    /// What the endpoint said that sends the content; `path` is the position of the event's path.
    pub fn see_sender(&mut self, event: &TransportEvent, path: Option<usize>) {
        let Some(path) = path.map(|at| &mut self.paths[at]) else { return };
        match *event {
            TransportEvent::WindowReduced { cause, from, to, .. } => {
                let slow_start = path.limit.is_some_and(|limit| limit.slow_start);
                let cause = match (cause, path.last_loss.take()) {
                    (LossCause::Penalty, _) => Cause::Scheduler,
                    // Without the decay, slow start would not have filled the queue.
                    (_, Some(Cause::LossQueue)) if slow_start && path.cuts.cause() == Some(Cause::IdleDecay) => {
                        Cause::IdleDecay
                    }
                    (_, Some(lost)) => lost,
                    (_, None) => Cause::Reordering,
                };
                path.cut(cause, from, to);
            }
            TransportEvent::WindowDecayed { from, to, .. } => path.cut(Cause::IdleDecay, from, to),
            TransportEvent::ReductionUndone { .. } => path.cuts.undo(),
            _ => {}
        }
    }

    /// What the player said. To be called after [`Account::settle`].
    pub fn see_player(&mut self, event: &PlayerEvent) {
        match *event {
            PlayerEvent::Requested { request } => {
                self.due.push(request);
                self.requested = self.paths.first().map_or(self.requested, |path| path.settled);
                self.written_before = self.written.bytes;
            }
            PlayerEvent::ResponseComplete { request, .. } => self.due.retain(|due| *due != request),
            PlayerEvent::Reconnected => {
                self.due.clear();
                (self.carried, self.position) = (Runs::default(), None);
                self.missing.clear();
                (self.written, self.written_before) = (Written::NOTHING, 0);
            }
            _ => {}
        }
    }

    /// The link time of every slice.
    pub(crate) fn into_entries(self) -> BTreeMap<Entry, Duration> {
        self.entries
    }

    /// What the link was busy with; notes what is carried and what is missing.
    fn take(&mut self, path: usize, packet: &Passed) -> Reason {
        self.paths[path].foreign = packet.foreign;
        if let Some(flow) = packet.foreign {
            return Reason { cause: Cause::Shared, by: By::Flow(flow) };
        }
        let (number, len) = packet.payload;
        if len == 0 {
            return Cause::Useful.alone();
        }
        let start = self.unwrapped(number);
        let end = start + u64::from(len);
        if let Some(dropped) = packet.dropped {
            let cause = match dropped {
                DropCause::Queue => Cause::LossQueue,
                DropCause::Random | DropCause::TooBig => Cause::LossRandom,
                DropCause::Outage => Cause::LossOutage,
            };
            self.paths[path].last_loss = Some(cause);
            if !self.carried.contains(start, end) {
                self.missing.push((start, end, path, cause));
            }
            return cause.alone();
        }
        self.missing.retain(|(from, to, ..)| *to <= start || *from >= end);
        self.paths[path].down_at = None;
        if let Some(began) = packet.began {
            self.paths[path].note_packet(packet.at.since(began), len);
        }
        let cause = if self.carried.contains(start, end) { Cause::Copies } else { Cause::Useful };
        self.carried.insert(start, end);
        cause.alone()
    }

    /// A position that was sent modulo 2^32.
    fn unwrapped(&mut self, number: u32) -> u64 {
        // Far from zero, so that bytes before the first packet seen have positions too.
        let last = self.position.unwrap_or((1 << 40) + u64::from(number));
        let position = last.wrapping_add_signed(i64::from(number.wrapping_sub(last as u32) as i32));
        self.position = Some(position);
        position
    }

    fn enter_idle(&mut self, path: usize, until: Instant) {
        let since = self.paths[path].settled;
        if until > since {
            if let Some(reason) = self.idle_reason(path) {
                self.enter(path, since, until, reason);
            }
            let account = &mut self.paths[path];
            if account.limit.is_some_and(|limit| matches!(limit.limit, Limit::Window | Limit::Recovery)) {
                account.starved = until;
            }
            self.paths[path].settled = until;
        }
    }

    /// Why the link of a path is idle; none if nothing is due any more: all has arrived, and the player is yet to read
    /// it.
    fn idle_reason(&self, at: usize) -> Option<Reason> {
        let path = &self.paths[at];
        if !path.up {
            return Some(Cause::LinkDown.alone());
        }
        if self.written.owes && self.written.all_given {
            return Some(Cause::Application.alone());
        }
        let awaits_request = self.written.bytes == self.written_before && self.written.all_given;
        let Some(limit) = path.limit.filter(|_| !awaits_request) else {
            // A request, or its retransmission, may have been lost.
            let cut = self.paths.iter().any(|path| path.down_at.is_some_and(|down| down >= self.requested));
            return Some(if cut { Cause::LossOutage } else { Cause::Request }.alone());
        };
        let missing_here = self.missing.iter().find(|(_, _, path, _)| *path == at).map(|(.., cause)| *cause);
        let outage = path.down_at.map(|_| Cause::LossOutage);
        let cause = match limit.limit {
            Limit::NotJoined => outage.unwrap_or(Cause::NotJoined),
            Limit::Policy => Cause::Policy,
            Limit::Backup => Cause::Backup,
            Limit::Scheduler => Cause::Scheduler,
            Limit::PaceCap => Cause::Pacing,
            Limit::ReceiveWindow if self.unread && self.paused => Cause::Reader,
            Limit::ReceiveWindow if self.unread => Cause::Player,
            Limit::ReceiveWindow => Cause::ReceiveWindow,
            Limit::SendBuffer => Cause::SendBuffer,
            Limit::Failed => outage.or(missing_here).or(path.cuts.last).unwrap_or(Cause::Unexplained),
            Limit::Recovery => {
                let cut = path.cuts.cause().or(path.cuts.last);
                outage.or(missing_here).or(cut).unwrap_or(Cause::Unexplained)
            }
            Limit::Window => outage.or(missing_here).or(path.cuts.cause()).unwrap_or(match limit.slow_start {
                true => Cause::StartUp,
                false => Cause::Window,
            }),
            Limit::NoData => return self.last_bytes(missing_here),
        };
        Some(cause.alone())
    }

    /// Everything was sent: losses that are not repaired, or the path with the longest round trip among those with
    /// bytes on their way, are behind it.
    fn last_bytes(&self, missing_here: Option<Cause>) -> Option<Reason> {
        // While the link of another path is still busy, a loss on it delays nothing.
        let elsewhere = || self.missing.iter().find(|(_, _, path, _)| !self.paths[*path].busy);
        if let Some(cause) = missing_here.or_else(|| elsewhere().map(|(.., cause)| *cause)) {
            return Some(cause.alone());
        }
        let with_bytes = self.paths.iter().enumerate().filter_map(|(at, path)| {
            let limit = path.limit.filter(|limit| limit.outstanding > 0)?;
            Some(((path.busy, limit.srtt), at))
        });
        let Some((_, at)) = with_bytes.max() else {
            return (self.unread && self.paused).then(|| Cause::Reader.alone());
        };
        // They wait behind the packets of another connection.
        let before = self.paths[at].foreign.filter(|_| self.paths[at].busy);
        Some(match before {
            Some(flow) => Reason { cause: Cause::Shared, by: By::Flow(flow) },
            None => Reason { cause: Cause::LastBytes, by: By::Path(at as u16) },
        })
    }

    /// Enters a span, slice by slice, if a response is due.
    fn enter(&mut self, path: usize, since: Instant, until: Instant, reason: Reason) {
        let Some(request) = self.due.first().copied() else { return };
        let (mut since, until) = (since.as_nanos(), until.as_nanos());
        let len = SLICE.as_nanos();
        while since < until {
            let slice = since / len;
            let end = until.min((slice + 1) * len);
            *self.entries.entry((slice, path as u16, request, reason)).or_default() +=
                Duration::from_nanos(end - since);
            since = end;
        }
    }
}

/// Disjoint runs of a stream, by their beginnings.
#[derive(Clone, Debug, Default)]
struct Runs(BTreeMap<u64, u64>);

impl Runs {
    /// Whether every byte is in a run.
    fn contains(&self, start: u64, end: u64) -> bool {
        self.0.range(..=start).next_back().is_some_and(|(_, to)| *to >= end)
    }

    /// Adds a run, and joins it with those that it touches.
    fn insert(&mut self, mut start: u64, mut end: u64) {
        while let Some((from, to)) = self.0.range(..=end).next_back().map(|(from, to)| (*from, *to)) {
            if to < start {
                break;
            }
            (start, end) = (start.min(from), end.max(to));
            self.0.remove(&from);
        }
        self.0.insert(start, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_events::DecayCause;
    use anabranch_units::Duration;

    const MORE: Written = Written { bytes: 1_000, all_given: false, owes: false };

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn limit(limit: Limit, cwnd: f64, outstanding: u64) -> PathLimit {
        let srtt = Duration::from_millis(20);
        PathLimit { path: PathId(0), limit, cwnd, slow_start: false, outstanding, srtt }
    }

    fn packet(position: u32, began: u64, until: u64) -> Passed {
        Passed { foreign: None, payload: (position, 100), began: Some(at(began)), at: at(until), dropped: None }
    }

    /// Milliseconds by cause.
    fn times(account: Account) -> BTreeMap<Cause, u64> {
        let mut times = BTreeMap::new();
        for ((.., reason), time) in account.into_entries() {
            *times.entry(reason.cause).or_default() += time.as_nanos() / 1_000_000;
        }
        times
    }

    #[test]
    fn every_moment_of_a_request_has_one_cause() {
        let mut account = Account::new(at(0), &[PathId(0)]);
        account.settle(at(5), 0, [].into_iter(), None, true);
        account.see_player(&PlayerEvent::Requested { request: 0 });
        account.settle(at(15), 0, [].into_iter(), None, true);
        // The server answers at 15 ms; the window stops it at 25 ms, and at 45 ms everything was sent.
        account.note_limits(&[limit(Limit::Window, 10.0, 100)], MORE);
        let sent = [packet(0, 15, 20), packet(100, 20, 25)];
        account.settle(at(45), 0, sent.into_iter(), Some(at(40)), true);
        account.note_limits(&[limit(Limit::NoData, 10.0, 100)], Written { all_given: true, ..MORE });
        account.settle(at(60), 0, [packet(0, 40, 50)].into_iter(), None, true);
        account.see_player(&PlayerEvent::ResponseComplete { request: 0, bytes: 1, end: 1 });
        account.settle(at(90), 0, [].into_iter(), None, true);
        let expected = [
            (Cause::Useful, 10),
            (Cause::Request, 10),
            (Cause::Window, 15),
            (Cause::Copies, 10),
            (Cause::LastBytes, 10),
        ];
        assert_eq!(times(account), BTreeMap::from(expected));
    }

    #[test]
    fn a_loss_is_the_cause_until_it_is_repaired_and_the_window_is_as_before() {
        let mut account = Account::new(at(0), &[PathId(0)]);
        account.see_player(&PlayerEvent::Requested { request: 0 });
        account.note_limits(&[limit(Limit::Window, 20.0, 100)], MORE);
        let lost = Passed { dropped: Some(DropCause::Random), ..packet(0, 0, 10) };
        account.settle(at(30), 0, [lost].into_iter(), None, true);
        let reduced = TransportEvent::WindowReduced {
            subflow: anabranch_units::SubflowId(0),
            cause: LossCause::FastRetransmit,
            from: 20.0,
            to: 10.0,
        };
        account.see_sender(&reduced, Some(0));
        account.note_limits(&[limit(Limit::Window, 10.0, 100)], MORE);
        account.settle(at(50), 0, [packet(0, 30, 40)].into_iter(), None, true);
        // The window is as before, and the link is busy for a round trip.
        account.note_limits(&[limit(Limit::Window, 20.0, 100)], MORE);
        account.settle(at(75), 0, [packet(100, 50, 75)].into_iter(), None, true);
        account.note_limits(&[limit(Limit::Window, 20.0, 100)], MORE);
        account.settle(at(85), 0, [].into_iter(), None, true);
        let expected = [(Cause::Useful, 35), (Cause::Window, 10), (Cause::LossRandom, 40)];
        assert_eq!(times(account), BTreeMap::from(expected));
    }

    #[test]
    fn a_window_that_decayed_is_the_cause_until_it_is_as_before_and_one_that_shrank_by_itself_is_not() {
        let idle_time = |events: &[TransportEvent]| {
            let mut account = Account::new(at(0), &[PathId(0)]);
            account.see_player(&PlayerEvent::Requested { request: 0 });
            account.note_limits(&[limit(Limit::NoData, 40.0, 0)], Written { all_given: true, ..MORE });
            account.settle(at(30), 0, [packet(0, 0, 30)].into_iter(), None, true);
            events.iter().for_each(|event| account.see_sender(event, Some(0)));
            account.note_limits(&[limit(Limit::Window, 10.0, 100)], MORE);
            account.settle(at(50), 0, [].into_iter(), None, true);
            times(account)
        };
        let subflow = anabranch_units::SubflowId(0);
        let decayed = TransportEvent::WindowDecayed { subflow, cause: DecayCause::Idle, from: 40.0, to: 10.0 };
        assert_eq!(idle_time(&[decayed]), BTreeMap::from([(Cause::Useful, 30), (Cause::IdleDecay, 20)]));
        // A control that probes for the least round trip does this.
        assert_eq!(idle_time(&[]), BTreeMap::from([(Cause::Useful, 30), (Cause::Window, 20)]));
    }

    #[test]
    fn programs_that_stop_are_causes_of_their_own() {
        let mut account = Account::new(at(0), &[PathId(0)]);
        account.see_player(&PlayerEvent::Requested { request: 0 });
        // The server has the request at 10 ms, and writes at 30 ms what fills the receive window until the client's
        // program reads.
        account.settle(at(10), 0, [].into_iter(), None, true);
        account.note_limits(&[limit(Limit::NoData, 10.0, 0)], Written { owes: true, ..Written::NOTHING });
        account.settle(at(30), 0, [].into_iter(), None, true);
        account.note_limits(&[limit(Limit::ReceiveWindow, 10.0, 0)], MORE);
        account.note_unread(true, true);
        account.settle(at(60), 0, [].into_iter(), None, true);
        // The rest of the response is there, and the program reads nothing; then it has its fill.
        account.note_limits(&[limit(Limit::NoData, 10.0, 0)], Written { all_given: true, ..MORE });
        account.settle(at(100), 0, [].into_iter(), None, true);
        account.note_unread(true, false);
        account.settle(at(150), 0, [].into_iter(), None, true);
        assert_eq!(
            times(account),
            BTreeMap::from([(Cause::Request, 10), (Cause::Application, 20), (Cause::Reader, 70)])
        );
    }

    #[test]
    fn runs_that_touch_are_one() {
        let mut runs = Runs::default();
        for (start, end) in [(10, 20), (30, 40), (20, 30), (5, 12)] {
            runs.insert(start, end);
        }
        assert_eq!(runs.0, BTreeMap::from([(5, 40)]));
        assert!(runs.contains(7, 40) && !runs.contains(7, 41) && !runs.contains(4, 6));
    }
}
