//! The subflows of a connection, and the views of them that schedulers, congestion controls and path policies read.
//!
//! A view is derived from its subflow. What changes a subflow borrows it by one of the methods here, which marks what
//! may differ afterwards, and the views of marked subflows are written again when views are read. What changes several
//! times between two readings is written once.

use super::transport::mapping_len;
use super::{Commit, Mode, Role};
use crate::scheduler::SubflowSet;
use crate::subflow::{KnownMapping, Opening, PeerWindow, Receiver, Subflow, Withholding};
use crate::view::{Packets, SubflowView};
use anabranch_segment::TIMESTAMPS_LEN;
use anabranch_units::Instant;
use std::ops::Index;

/// The part of the connection's state that decides how many bytes of options a segment with data carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DataOptions {
    pub mode: Mode,
    pub role: Role,
    /// The peer has sent DSS after the handshake.
    pub confirmed: bool,
    pub wide_data_seq: bool,
}

impl DataOptions {
    /// Until the server answers with DSS, the client sends both keys again (RFC 8684 section 3.1).
    pub fn repeats_keys(self, subflow: &Subflow) -> bool {
        self.role == Role::Client && !self.confirmed && subflow.opening == Opening::Initial
    }

    /// Payload of a full segment on the subflow, given the options that data carries there.
    pub fn full_payload(self, subflow: &Subflow) -> u32 {
        let timestamps = if subflow.peer().timestamps { TIMESTAMPS_LEN } else { 0 };
        let mptcp = match self.mode {
            Mode::Plain if subflow.infinite_from != Some(subflow.sender.next()) => 0,
            // The keys with the length of the first data need more than DSS with narrow numbers.
            _ if self.repeats_keys(subflow) => 24.max(mapping_len(self.wide_data_seq)),
            _ => mapping_len(self.wide_data_seq),
        };
        subflow.payload_room(timestamps + mptcp)
    }
}

/// Which subflows may have something to send, by what it is. A subflow that is in none of the sets has nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Activity {
    /// Something other than data and acknowledgments, see [`Subflow::has_control_segments`].
    pub control_segments: SubflowSet,
    /// Data in flight.
    pub in_flight: SubflowSet,
    /// Data in its queue.
    pub queued: SubflowSet,
    /// Losses to repair, or a pace at which to send.
    pub repairing_or_paced: SubflowSet,
}

/// What the views say about which subflows can take data, in sets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Availability {
    /// Established, and neither failed nor forbidden: [`SubflowView::usable`].
    pub usable: SubflowSet,
    pub established: SubflowSet,
    pub backup: SubflowSet,
    /// There is room in the window or in the send buffer, as data commits to either.
    pub has_room: SubflowSet,
}

impl Availability {
    fn note(&mut self, at: usize, view: &SubflowView, commit: Commit) {
        self.usable.put(at, view.usable());
        self.established.put(at, view.established);
        self.backup.put(at, view.backup);
        self.note_room(at, view, commit);
    }

    fn note_room(&mut self, at: usize, view: &SubflowView, commit: Commit) {
        let has_room = match commit {
            Commit::AtWindow => view.room() > 0,
            Commit::IntoBuffer => view.memory < view.send_buffer,
        };
        self.has_room.put(at, has_room);
    }

    /// The subflows with room among those that are `considered`; backups only if those are all that is considered.
    pub fn with_room(&self, considered: SubflowSet) -> SubflowSet {
        let regular = considered.without(self.backup);
        let preferred = if regular.is_empty() { considered } else { regular };
        preferred.intersection(self.has_room)
    }
}

/// See the module's description.
pub(super) struct Subflows {
    subflows: Vec<Subflow>,
    commit: Commit,
    /// In the same order.
    views: Vec<SubflowView>,
    availability: Availability,
    /// Subflows on which new data waited for a burst when it was last asked about, and that are the same since unless
    /// they are in `changed`.
    deferring: SubflowSet,
    /// Subflows that may have changed since their view was written.
    changed: SubflowSet,
    /// Subflows that may have changed since their activity was examined.
    unexamined: SubflowSet,
    activity: Activity,
    /// Subflows that may owe the peer an acknowledgment.
    owing: SubflowSet,
    /// Subflows that may have changed since the end of the last burst, or that wait for the end of the next one.
    unsettled: SubflowSet,
    options: DataOptions,
}

impl Subflows {
    pub fn new(options: DataOptions, commit: Commit) -> Self {
        Subflows {
            subflows: Vec::new(),
            commit,
            views: Vec::new(),
            availability: Availability::default(),
            deferring: SubflowSet::EMPTY,
            changed: SubflowSet::EMPTY,
            unexamined: SubflowSet::EMPTY,
            activity: Activity::default(),
            owing: SubflowSet::EMPTY,
            unsettled: SubflowSet::EMPTY,
            options,
        }
    }

    /// What decides how many bytes of options data carries.
    #[inline]
    pub fn options(&self) -> DataOptions {
        self.options
    }

    /// Another protocol is in use from here on.
    pub fn set_mode(&mut self, mode: Mode) {
        self.options.mode = mode;
        self.changed = SubflowSet::below(self.subflows.len());
    }

    /// The peer has sent DSS after the handshake.
    pub fn confirm(&mut self) {
        self.options.confirmed = true;
        self.changed = SubflowSet::below(self.subflows.len());
    }

    pub fn len(&self) -> usize {
        self.subflows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.subflows.is_empty()
    }

    pub fn first(&self) -> Option<&Subflow> {
        self.subflows.first()
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Subflow> {
        self.subflows.iter()
    }

    /// A subflow that is about to change.
    #[inline]
    pub fn change(&mut self, at: usize) -> &mut Subflow {
        self.mark(at);
        &mut self.subflows[at]
    }

    /// Every subflow, each of which counts as changed.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Subflow> {
        self.mark_all(self.subflows.len());
        self.subflows.iter_mut()
    }

    /// Every subflow, for notes on which no view, no choice and no timer depends.
    pub fn iter_noted(&mut self) -> std::slice::IterMut<'_, Subflow> {
        self.subflows.iter_mut()
    }

    /// The receiving half of a subflow, which is in no view and has nothing to send but acknowledgments.
    #[inline]
    pub fn receiver(&mut self, at: usize) -> &mut Receiver {
        self.owing.insert(at);
        &mut self.subflows[at].receiver
    }

    /// A subflow whose peer answered: nothing changes but the pace, the send buffer, the signs of life, and
    /// with them the view.
    #[inline]
    pub fn answered(&mut self, at: usize) -> &mut Subflow {
        self.changed.insert(at);
        &mut self.subflows[at]
    }

    /// Has a subflow `send` a packet with new data. Of its view only the counts of data change, unless it was idle:
    /// then the control may change the window.
    #[inline]
    pub fn send<T>(&mut self, at: usize, send: impl FnOnce(&mut Subflow) -> T) -> T {
        let subflow = &mut self.subflows[at];
        let may_change = subflow.sender.board().is_empty() || subflow.infinite_from.is_some();
        let sent = send(subflow);
        if may_change {
            self.mark(at);
        } else {
            self.deferring.remove(at);
            let view = &mut self.views[at];
            subflow.count_data(view);
            self.availability.note_room(at, view, self.commit);
            self.unsettled.insert(at);
        }
        sent
    }

    /// The segments that a subflow withholds. No view shows them.
    #[inline]
    pub fn withholding(&mut self, at: usize) -> &mut Withholding {
        &mut self.subflows[at].sender.withholding
    }

    /// The window that the peer advertised on a subflow. No view shows it: the connection's is what counts.
    #[inline]
    pub fn peer_window(&mut self, at: usize) -> &mut PeerWindow {
        &mut self.subflows[at].peer_window
    }

    /// Stores a mapping of the peer in place of those that are used. No view shows mappings.
    pub fn replace_mappings(&mut self, at: usize, mapping: KnownMapping) {
        self.subflows[at].replace_mappings(mapping);
    }

    /// Which subflows may have something to send, acknowledgments apart.
    #[inline]
    pub fn activity(&mut self) -> &Activity {
        if !self.unexamined.is_empty() {
            self.examine();
        }
        &self.activity
    }

    fn examine(&mut self) {
        for at in std::mem::take(&mut self.unexamined).iter() {
            let (subflow, activity) = (&self.subflows[at], &mut self.activity);
            activity.control_segments.put(at, subflow.has_control_segments());
            activity.in_flight.put(at, !subflow.sender.board().is_empty());
            activity.queued.put(at, !subflow.queue.is_empty());
            activity.repairing_or_paced.put(at, subflow.sender.repairs_or_is_paced());
        }
    }

    /// Subflows that may owe the peer an acknowledgment, now or later. One that is not in the set owes none.
    #[inline]
    pub fn may_owe(&self) -> SubflowSet {
        let owes = |(at, subflow): (usize, &Subflow)| subflow.receiver.owes_ack() && !self.owing.contains(at);
        debug_assert!(
            !self.subflows.iter().enumerate().any(owes),
            "a receiver that was not marked owes an acknowledgment"
        );
        self.owing
    }

    /// Subflows that owe the peer an acknowledgment now.
    #[inline]
    pub fn owing(&mut self, now: Instant) -> SubflowSet {
        let mut due = SubflowSet::EMPTY;
        for at in self.owing.iter() {
            let receiver = &self.subflows[at].receiver;
            if receiver.wants_ack(now) {
                due.insert(at);
            } else if !receiver.owes_ack() {
                self.owing.remove(at);
            }
        }
        due
    }

    /// When the next timer of a subflow is due; [`Instant::FAR_FUTURE`] if none runs.
    pub fn deadline(&self) -> Instant {
        self.subflows.iter().map(Subflow::deadline).min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// Adds a subflow; returns its position.
    pub fn push(&mut self, subflow: Subflow) -> usize {
        let at = self.subflows.len();
        // There are few, and each is large.
        self.views.reserve_exact(1);
        self.subflows.reserve_exact(1);
        self.views.push(subflow.view(self.options.full_payload(&subflow)));
        self.subflows.push(subflow);
        self.mark(at);
        at
    }

    /// Removes a subflow; those after it move to the position before theirs.
    pub fn remove(&mut self, at: usize) -> Subflow {
        (self.activity, self.availability, self.deferring) =
            (Activity::default(), Availability::default(), SubflowSet::EMPTY);
        self.mark_all(self.subflows.len() - 1);
        self.views.remove(at);
        self.subflows.remove(at)
    }

    /// Moves a subflow behind all others; those after it move to the position before theirs.
    pub fn move_last(&mut self, at: usize) {
        (self.activity, self.availability, self.deferring) =
            (Activity::default(), Availability::default(), SubflowSet::EMPTY);
        self.mark_all(self.subflows.len());
        self.views[at..].rotate_left(1);
        self.subflows[at..].rotate_left(1);
    }

    /// The subflows as schedulers see them.
    #[inline]
    pub fn views(&mut self) -> &[SubflowView] {
        self.update_views();
        &self.views
    }

    /// The view of a subflow that nothing but [packets with new data](Subflows::send) has changed since views were
    /// read.
    #[inline]
    pub fn latest_view(&self, at: usize) -> &SubflowView {
        debug_assert!(!self.changed.contains(at), "the view of subflow {at} is out of date");
        &self.views[at]
    }

    /// What the views say, in sets.
    #[inline]
    pub fn availability(&mut self) -> &Availability {
        self.update_views();
        &self.availability
    }

    /// A subflow that is about to change, and the views of all as they are before that.
    pub fn with_views(&mut self, at: usize) -> (&mut Subflow, &[SubflowView]) {
        self.update_views();
        self.mark(at);
        (&mut self.subflows[at], &self.views)
    }

    /// Whether new data should wait until the subflow has room for a burst, see [`Sender::defers_for_burst`]. No view
    /// shows bursts, so this only leaves something for the end of the burst. Inlined, because a full subflow is asked
    /// again by each choice.
    ///
    /// [`Sender::defers_for_burst`]: crate::subflow::Sender::defers_for_burst
    #[inline(always)]
    pub fn defers_for_burst(&mut self, now: Instant, at: usize, unsent: u64, full: u32) -> bool {
        let sender = &mut self.subflows[at].sender;
        let unchanged = self.deferring.contains(at) && !self.changed.contains(at);
        let defers = if unchanged && sender.still_defers(now, unsent) {
            debug_assert!(sender.defers_for_burst(now, unsent, full), "the subflow has changed");
            true
        } else {
            sender.defers_for_burst(now, unsent, full)
        };
        self.deferring.put(at, defers);
        if defers {
            self.unsettled.insert(at);
        }
        defers
    }

    /// The subflows that may have changed since the last call, which are to be passed to [`Subflows::settle`].
    pub fn take_unsettled(&mut self) -> SubflowSet {
        std::mem::take(&mut self.unsettled)
    }

    /// Everything that could be sent was sent. `waits_for_pace`: the subflow has data whose time has not come. Returns
    /// the window before, if it decayed.
    pub fn settle(&mut self, now: Instant, at: usize, waits_for_pace: bool, decay: bool) -> Option<Packets> {
        let subflow = &mut self.subflows[at];
        subflow.sender.note_supply(waits_for_pace);
        let ends_burst = std::mem::take(&mut subflow.sent_in_burst) || subflow.sender.is_deferring();
        let before = if ends_burst { subflow.sender.after_sending(now, decay) } else { None };
        if before.is_some() {
            self.changed.insert(at);
        }
        if waits_for_pace || self.subflows[at].sender.is_deferring() {
            self.unsettled.insert(at);
        }
        before
    }

    #[inline]
    fn mark(&mut self, at: usize) {
        self.changed.insert(at);
        self.unexamined.insert(at);
        self.owing.insert(at);
        self.unsettled.insert(at);
    }

    fn mark_all(&mut self, count: usize) {
        self.changed = SubflowSet::below(count);
        self.unexamined = SubflowSet::below(count);
        self.owing = SubflowSet::below(count);
        self.unsettled = SubflowSet::below(count);
    }

    /// Writes the views that are out of date.
    #[inline]
    fn update_views(&mut self) {
        if !self.changed.is_empty() {
            self.write_views();
        }
        let truth = |subflow: &Subflow| subflow.view(self.options.full_payload(subflow));
        debug_assert!(self.subflows.iter().map(truth).eq(self.views.iter().copied()), "a view is out of date");
    }

    #[inline(never)]
    fn write_views(&mut self) {
        let changed = std::mem::take(&mut self.changed);
        self.deferring = self.deferring.without(changed);
        for at in changed.iter() {
            let (subflow, view) = (&self.subflows[at], &mut self.views[at]);
            *view = subflow.view(self.options.full_payload(subflow));
            self.availability.note(at, view, self.commit);
        }
    }
}

impl Index<usize> for Subflows {
    type Output = Subflow;

    fn index(&self, at: usize) -> &Subflow {
        &self.subflows[at]
    }
}
