//! Claims of two papers about a DASH session, measured and compared: "Performance of DASH over Multipath TCP" (claims
//! D1 to D9, [`dash`]) and "MPTCP+" (P1 to P11, [`mptcp_plus`]).
//!
//! A [`Condition`] is a shipped scenario with changes; it is simulated with several seeds. A seed decides the random losses
//! and the sequence of sizes of the media segments, so that conditions with the same seed play the same video, and
//! differences are taken seed by seed. Every verdict comes with the [`Quantity`]s for which the paper gives numbers.

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
