//! What is legal in a scenario and probably not meant.

use std::fmt;

/// Something legal that is probably a mistake: the scenario runs, and its author should know. Shown by the command line
/// on standard error, as a Python warning, and kept in `run.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What kind of oddity it is. Programs may depend on it.
    pub kind: WarningKind,
    /// Where: the file with line and column, the key, or the override. Empty where no single place is to blame.
    pub place: String,
    /// What the warning is about, and what follows from it, in one sentence without a full stop.
    pub message: String,
}

/// The kinds of oddities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarningKind {
    /// An event's time is not before the end of the run: it never happens.
    EventAfterEnd,
    /// A session, or cross traffic, begins when the run is over.
    StartAfterEnd,
    /// A player whose bitrate rule was not made for such a video or buffer.
    OutsideDomain,
    /// Something in a trace's file that was probably not meant: a gap, an implausible unit.
    Trace,
    /// A trace that lets nothing through within the run.
    NothingPasses,
    /// A part of an MPD that is not used as it is written: skipped, cut, joined, or corrected.
    Manifest,
    /// More viewers than the server's pacing of responses compares: the others are not paced.
    Unpaced,
}

impl WarningKind {
    /// The word for it in `run.json` and in Python.
    pub fn word(self) -> &'static str {
        match self {
            WarningKind::EventAfterEnd => "event-after-end",
            WarningKind::StartAfterEnd => "start-after-end",
            WarningKind::OutsideDomain => "outside-domain",
            WarningKind::Trace => "trace",
            WarningKind::NothingPasses => "nothing-passes",
            WarningKind::Manifest => "manifest",
            WarningKind::Unpaced => "unpaced",
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.place, self.message)
    }
}
