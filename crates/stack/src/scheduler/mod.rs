//! Schedulers: which subflow carries the next data.
//!
//! A scheduler sees plain values ([`View`]) and answers with a [`Decision`]. It is asked again until it waits, so it
//! decides one step at a time. The interface names neither TCP nor DSS, so that it fits other multipath transports.
//!
//! To add one: a file in this folder with an [`Entry`], and a line in [`REGISTRY`]. The conformance tests pick it up.
//!
//! [`create`] makes one by name. Every scheduler takes the option `avoid_recovery`, which keeps new data off subflows
//! in fast recovery as long as another has room.

mod avoid_recovery;
mod blest;
mod earliest;
mod ecf;
mod hiding;
mod highest_rate;
mod largest_window;
mod linux;
mod min_rtt;
mod peekaboo;
mod per_subflow;
mod ranges;
mod redundant;
mod redundant_idle;
mod reinject_deadline;
mod round_robin;
mod sticky;
mod sttf;
mod viewer_buffer;

#[cfg(test)]
mod conformance;
#[cfg(any(test, feature = "conformance"))]
pub mod contract;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod window_model;

use crate::options::{OptionError, Options};
use crate::view::{ConnectionView, SubflowView};
pub use anabranch_events::{Forecast, ForecastReason};
use anabranch_events::{Note, SendKind};
use anabranch_registry::Registry;
use anabranch_units::{Duration, Instant, SubflowId};
use avoid_recovery::AvoidRecovery;
use per_subflow::PerSubflow;
use std::fmt;

/// Every scheduler, in the order in which lists show them.
pub static REGISTRY: Registry<Constructor> = Registry::new(&[
    min_rtt::ENTRY,
    linux::ENTRY,
    round_robin::ENTRY,
    redundant::ENTRY,
    blest::ENTRY,
    ecf::ENTRY,
    sticky::GREEDY,
    sticky::THROUGHPUT,
    sticky::THROUGHPUT_AND_RTT,
    largest_window::ENTRY,
    highest_rate::ENTRY,
    earliest::ENTRY,
    sttf::ENTRY,
    redundant_idle::ENTRY,
    reinject_deadline::ENTRY,
    peekaboo::ENTRY,
    earliest::joined::ENTRY,
    viewer_buffer::ENTRY,
]);

/// The option that every scheduler takes: keep data off subflows in fast recovery.
const AVOID_RECOVERY: &str = "avoid_recovery";

/// A scheduler's line in the registry.
pub type Entry = anabranch_registry::Entry<Constructor>;

/// Makes a scheduler for a new connection, from its own options only; [`create`] understands the common ones too.
pub type Constructor = fn(&Options) -> Result<Box<dyn Scheduler>, OptionError>;

/// Makes the scheduler of that name for a new connection, with its own options and the common one `avoid_recovery`.
///
/// # Errors
/// An unknown name, or an option that this scheduler does not know or cannot use.
pub fn create(name: &str, options: &Options) -> Result<Box<dyn Scheduler>, OptionError> {
    let entry = REGISTRY.named("scheduler", name)?;
    with_common_options(options, entry.create)
}

/// Makes a scheduler that understands the options which all have, whatever makes the scheduler itself from its own.
pub(crate) fn with_common_options(
    options: &Options,
    create: impl FnOnce(&Options) -> Result<Box<dyn Scheduler>, OptionError>,
) -> Result<Box<dyn Scheduler>, OptionError> {
    let avoid_recovery = options.flag(AVOID_RECOVERY, false)?;
    let scheduler = create(&options.without(AVOID_RECOVERY))?;
    Ok(if avoid_recovery { Box::new(AvoidRecovery::around(scheduler)) } else { scheduler })
}

/// Why the scheduler is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// New data is waiting: bytes that were never sent.
    NewData,
    /// Data of a failed subflow is waiting to be sent again; subflows that carried it already are no candidates.
    Reinjection,
}

/// A set of subflows, by their positions in [`View::subflows`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubflowSet(u64);

impl SubflowSet {
    /// The empty set.
    pub const EMPTY: SubflowSet = SubflowSet(0);

    /// Positions that a set can hold, and so the most subflows of a connection.
    pub const CAPACITY: usize = 64;

    /// The positions below `count`, which is at most [`SubflowSet::CAPACITY`].
    pub fn below(count: usize) -> Self {
        SubflowSet(if count == 0 { 0 } else { u64::MAX >> (Self::CAPACITY - count) })
    }

    /// Adds the subflow at a position below 64.
    pub fn insert(&mut self, position: usize) {
        self.0 |= 1 << position;
    }

    /// Removes the subflow at a position.
    pub fn remove(&mut self, position: usize) {
        self.0 &= !(1 << position);
    }

    /// Adds or removes the subflow at a position below 64.
    pub(crate) fn put(&mut self, position: usize, member: bool) {
        self.0 = (self.0 & !(1 << position)) | (u64::from(member) << position);
    }

    /// The positions in either set.
    pub(crate) fn union(self, other: SubflowSet) -> SubflowSet {
        SubflowSet(self.0 | other.0)
    }

    /// The positions in both sets.
    pub(crate) fn intersection(self, other: SubflowSet) -> SubflowSet {
        SubflowSet(self.0 & other.0)
    }

    /// The positions that are not in the other set.
    pub(crate) fn without(self, other: SubflowSet) -> SubflowSet {
        SubflowSet(self.0 & !other.0)
    }

    /// Whether the subflow at that position belongs to the set.
    pub fn contains(self, position: usize) -> bool {
        position < 64 && self.0 & (1 << position) != 0
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The positions, lowest first.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            (rest != 0).then(|| {
                let position = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                position
            })
        })
    }
}

/// The state on which a scheduler decides.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// State of the connection.
    pub connection: &'a ConnectionView,
    /// Every live subflow, oldest first; the initial one is position 0 while it lives.
    pub subflows: &'a [SubflowView],
    /// The subflows that can take data at this moment: usable, with room (in the window or in the send buffer, as the
    /// transport is configured), backups only where nothing else is usable. A decision must name one of these.
    pub candidates: SubflowSet,
    /// Packets in flight, subflow by subflow in the order of their numbers, when the scheduler [asks for
    /// them](Services::flight); otherwise nothing. What the peer has, by whichever subflow, is left out.
    pub flight: &'a [InFlight],
}

/// A packet that was sent and of which no acknowledgment has said that it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Position of its subflow.
    pub subflow: usize,
    /// Stream offset of its first byte.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u32,
    /// When it was last sent.
    pub sent_at: Instant,
    /// Loss recovery takes it for lost and has not retransmitted it.
    pub lost: bool,
}

/// A packet that leaves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The time.
    pub at: Instant,
    /// Stream offset of its first byte.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u32,
    /// Why it carries them.
    pub kind: SendKind,
}

/// A scheduler's answer about subflows from which no acknowledgment arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silence {
    /// Position of a subflow to be given up for now: the others send its data again, and it gets no new data until an
    /// acknowledgment of data arrives on it.
    pub give_up: Option<usize>,
    /// When to ask again if nothing else happens.
    pub until: Option<Instant>,
}

impl<'a> View<'a> {
    /// Positions and values of the candidates, oldest first.
    pub fn candidates(&self) -> impl Iterator<Item = (usize, &'a SubflowView)> + use<'a> {
        let subflows = self.subflows;
        self.candidates.iter().map(move |position| (position, &subflows[position]))
    }

    /// Positions and values of the contenders, oldest first: the subflows that carry new data when they have room.
    /// These are the usable ones; backups among them only where nothing else is usable.
    pub fn contenders(&self) -> impl Iterator<Item = (usize, &'a SubflowView)> + use<'a> {
        let backups_only = !self.subflows.iter().any(|s| s.usable() && !s.backup);
        self.subflows.iter().enumerate().filter(move |(_, s)| s.usable() && s.backup == backups_only)
    }

    /// The candidate with the lowest smoothed round trip, the older one on a tie.
    pub fn fastest_candidate(&self) -> Option<usize> {
        self.candidates().min_by_key(|(_, s)| s.srtt).map(|(position, _)| position)
    }

    /// The contender with the lowest smoothed round trip, whether or not it has room; the older one on a tie.
    pub fn fastest_contender(&self) -> Option<usize> {
        self.contenders().min_by_key(|(_, s)| s.srtt).map(|(position, _)| position)
    }

    /// The candidate that no other is `better` than, the oldest one on a tie.
    pub fn best_candidate(&self, better: impl Fn(&SubflowView, &SubflowView) -> bool) -> Option<usize> {
        let pick = self.candidates().reduce(|best, next| if better(next.1, best.1) { next } else { best });
        pick.map(|(position, _)| position)
    }

    /// The position of subflow `id`; `None` if it does not exist any more. Positions shift when a subflow closes; ids
    /// do not.
    pub fn position_of(&self, id: SubflowId) -> Option<usize> {
        self.subflows.iter().position(|s| s.id == id)
    }

    /// Bytes never sent before that may go now: written by the application and allowed by the peer's window.
    pub fn new_bytes(&self) -> u64 {
        self.connection.unsent.min(self.connection.window_space())
    }

    /// A full segment for the subflow at `position`; waiting if there is none.
    fn one_segment(&self, position: Option<usize>) -> Decision {
        match position {
            Some(subflow) => Decision::Send { subflow, bytes: u64::from(self.subflows[subflow].mss) },
            None => Decision::Wait { until: None },
        }
    }
}

/// What to do with the next data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Give the next unsent bytes to a subflow, at most `bytes` of them, and ask again.
    /// Where data commits at the window, one segment goes at a time, which is short if `bytes` is less than a full one.
    /// A scheduler that counts learns how much went from [`ConnectionView::next`] when it is asked again.
    Send {
        /// Position of a candidate.
        subflow: usize,
        /// Largest number of bytes to give.
        bytes: u64,
    },
    /// Send bytes again that another subflow was given before, then ask again. Does not advance the stream. The
    /// connection sends all of them, so a scheduler may take them as sent. The built-in schedulers never ask for more
    /// than a segment.
    Duplicate {
        /// Position of a candidate.
        subflow: usize,
        /// Stream offset of the first byte, not before the first unacknowledged one.
        offset: u64,
        /// Number of bytes, at most up to the first unsent byte.
        bytes: u64,
    },
    /// Send nothing now. The scheduler is asked again after the next acknowledgment or other change, or at `until`.
    Wait {
        /// When to ask again if nothing else changes.
        until: Option<Instant>,
    },
}

/// What is decided, after the word "to".
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decision::Send { subflow, bytes } => write!(f, "send {bytes} bytes on subflow {subflow}"),
            Decision::Duplicate { subflow, offset, bytes } => {
                write!(f, "send {bytes} bytes from offset {offset} again on subflow {subflow}")
            }
            Decision::Wait { until: None } => write!(f, "wait"),
            Decision::Wait { until: Some(time) } => write!(f, "wait until {time}"),
        }
    }
}

/// What a scheduler asks of the connection besides its decisions. What it does not ask for costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Services {
    /// To be asked also while no new data can be sent, so that data in flight can be [duplicated](Decision::Duplicate).
    pub duplicates: bool,
    /// When [`View::flight`] lists what is in flight.
    pub flight: FlightList,
    /// Whether [`Scheduler::silence`] is asked.
    pub silence: bool,
    /// Whether [`Scheduler::on_sent`] is called.
    pub sending: bool,
    /// Whether [`Scheduler::explanation`] is asked.
    pub explains: bool,
}

impl Services {
    /// Decisions about new data alone.
    pub const NONE: Services =
        Services { duplicates: false, flight: FlightList::Never, silence: false, sending: false, explains: false };
}

/// When a scheduler gets the list of what is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlightList {
    /// Never.
    Never,
    /// While no new data can be sent.
    WithoutNewData,
    /// For every decision, which costs a look at every packet in flight each time.
    Always,
}

/// Decides which subflow carries the next data.
pub trait Scheduler: fmt::Debug + Send {
    /// Decides one step. With [`Trigger::Reinjection`] only [`Decision::Send`] and [`Decision::Wait`] make sense.
    /// Called only while there is something to send that the peer's window allows, and at least one candidate.
    fn decide(&mut self, view: &View<'_>, trigger: Trigger) -> Decision;

    /// What it asks of the connection besides; always the same, so the connection asks once.
    fn services(&self) -> Services {
        Services::NONE
    }

    /// A packet with data leaves on a subflow, by whatever decision; `subflow` is the state before.
    fn on_sent(&mut self, _sent: &Sent, _subflow: &SubflowView) {}

    /// Whether a subflow is silent for so long that its data shall be sent on the others. Asked whenever something
    /// changed, before any decision, until it gives up no more.
    fn silence(&mut self, _view: &View<'_>) -> Silence {
        Silence::default()
    }

    /// The reason of the latest decision, if it is worth an event; asked after each one, if [`Services::explains`] says
    /// so.
    fn explanation(&mut self) -> Option<Forecast> {
        None
    }

    /// After which time the next segment would arrive at the peer on the subflow at a position, by the forecast on
    /// which this scheduler decides; `None` if it makes none. Asked for events alone, so it changes nothing.
    fn arrival(&self, _view: &View<'_>, _position: usize) -> Option<Duration> {
        None
    }

    /// Passes on the notes since the last call, oldest first, for the table of events. The built-in ones have none.
    fn take_notes(&mut self, _take: &mut dyn FnMut(Note)) {}
}

#[cfg(test)]
mod tests {
    use super::testing::{Bed, ms};
    use super::*;

    #[test]
    fn a_set_lists_its_positions_lowest_first() {
        let mut set = SubflowSet::EMPTY;
        for position in [63, 0, 5, 9] {
            set.insert(position);
        }
        set.remove(5);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 9, 63]);
        assert!(set.contains(9) && !set.contains(5) && !set.contains(64));
    }

    #[test]
    fn backups_are_contenders_only_among_themselves() {
        let mut bed = Bed::new("min-rtt").subflow(ms(10), 10).subflow(ms(10), 10).subflow(ms(10), 10);
        bed.subflows[1].backup = true;
        bed.subflows[2].backup = true;
        let contenders = |bed: &Bed| -> Vec<usize> {
            let view = View {
                connection: &bed.connection,
                subflows: &bed.subflows,
                candidates: SubflowSet::EMPTY,
                flight: &[],
            };
            view.contenders().map(|(position, _)| position).collect()
        };
        assert_eq!(contenders(&bed), [0]);
        bed.subflows[0].allowed = false;
        assert_eq!(contenders(&bed), [1, 2]);
        bed.subflows[1].established = false;
        assert_eq!(contenders(&bed), [2]);
    }

    #[test]
    fn what_is_new_is_bounded_by_the_application_and_by_the_peer() {
        let mut bed = Bed::new("min-rtt").subflow(ms(10), 10);
        bed.connection = ConnectionView { next: 100, unsent: 50, window_end: 130, ..ConnectionView::default() };
        let new_bytes = |bed: &Bed| {
            View { connection: &bed.connection, subflows: &bed.subflows, candidates: SubflowSet::EMPTY, flight: &[] }
                .new_bytes()
        };
        assert_eq!(new_bytes(&bed), 30);
        bed.connection.unsent = 20;
        assert_eq!(new_bytes(&bed), 20);
        bed.connection.window_end = 90;
        assert_eq!(new_bytes(&bed), 0);
    }
}
