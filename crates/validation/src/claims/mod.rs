//! What two papers say happens to a video, measured and judged.
//!
//! "Sticky schedulers" (claims S1 to S11) and "handoff" (H1 to H10): every scenario, congestion control and scheduler of theirs is
//! a cell that is simulated with several seeds. A seed decides the random losses and the video's sequence of picture sizes,
//! so that cells with the same seed play the same video through the same luck, and differences are taken seed by seed.
//!
//! Every verdict comes from findings, comparisons that hold or do not: all hold, *reproduced*; some, *partly*; none,
//! *not reproduced*. See [`verdict`] for what each kind of comparison asks.

mod explanations;
pub mod forecasts;
mod handoff;
mod sticky;
pub mod study;
pub mod tables;
pub mod verdict;

pub use study::{Group, Study, VARIANTS, Variant};
pub use verdict::Claim;

/// The claims of both papers except S10, which needs every event ([`forecasts`]).
pub fn judge(study: &Study) -> Vec<Claim> {
    let mut claims = sticky::claims(study);
    claims.extend(handoff::claims(study));
    claims
}
