//! What a run is made of, whatever drives it: the simulator in virtual time, or a laboratory in real time.
//!
//! [`lines`] are the scenario's links and [`plan`] its connections with their players; an [`Observer`] per connection folds what is
//! said into metrics; [`gather`] makes the outcome of it all.

mod gather;
mod lines;
mod observer;
mod plan;

pub use crate::outcome::Row;
pub use gather::{Facts, Over, gather, link_metrics};
pub use lines::{Line, lines};
pub use observer::Observer;
pub use plan::{FlowPlan, plan};
