//! What two papers say happens to a DASH viewer, measured and judged: "Performance of DASH over Multipath TCP" (claims D1 to D9,
//! [`dash`]) and "MPTCP+" (P1 to P11, [`mptcp_plus`]).
//!
//! A [`Condition`] is a shipped scenario with changes; it is simulated with several seeds. A seed decides the random losses
//! and the sequence of sizes of the media segments, so that conditions with the same seed play the same video, and
//! differences are taken seed by seed. Beside every verdict stand the [`Quantity`]s that the paper gives numbers for.

mod compare;
pub mod dash;
mod dash_cause;
pub(super) mod explanations;
mod friendliness;
mod gains;
pub mod mptcp_plus;
mod one_segment;
mod seen;
mod study;
mod windows;

pub use compare::Quantity;
pub use seen::Seen;
pub use study::{Change, Condition, Study, Variant};
