//! Claims of four papers about a video's playback, measured and compared with written criteria.
//!
//! "Sticky schedulers" (claims S1 to S11) and "handoff" (H1 to H10): every scenario, congestion control and scheduler
//! of theirs is a condition that is simulated with several seeds. A seed decides the random losses and the video's
//! sequence of picture sizes, so that conditions with the same seed have the same video and losses, and differences are
//! taken seed by seed.
//! The two DASH papers (D1 to D9, P1 to P11) are in [`streaming`].
//!
//! Every verdict comes from findings, comparisons that hold or do not: all hold, *reproduced*; some, *partly*; none,
//! *not reproduced*; no findings at all, *not testable*. See [`verdict`] for what each kind of comparison asks.
//!
//! [`reproduction`] measures whole papers and gives a row per claim; [`tables`] writes them as Markdown, [`json`] for
//! programs.

pub(crate) mod explanations;
pub mod forecasts;
mod handoff;
pub mod json;
pub mod reproduction;
mod sticky;
pub mod streaming;
pub mod study;
pub mod tables;
pub mod verdict;

pub use study::{Group, Study, VARIANTS, Variant};
pub use verdict::Claim;

/// Called after every session, from any thread; false ends the measurement.
pub type Tick<'a> = &'a (dyn Fn() -> bool + Sync);
