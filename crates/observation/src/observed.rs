//! Whose events reach the metrics of a session.

/// Whose events reach the metrics of a session. What others alone know is not observed: `None` in the reports, null
/// in JSON, and never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The endpoint that sends the content is ours. Of a kernel's endpoint only samples and counters are known.
    pub sender: bool,
    /// The endpoint that receives the content is ours: it reports how long bytes wait for earlier ones.
    pub receiver: bool,
    /// The player is ours: it reports what its viewer sees.
    pub player: bool,
}

impl Observed {
    /// Both endpoints and the player, as in a simulation.
    pub const EVERYTHING: Observed = Observed { sender: true, receiver: true, player: true };
}
