//! Virtual time: whole sessions over whole networks, described by a scenario.
//!
//! [`load`] reads a scenario, [`run`] simulates it, and the [`Outcome`] says what the viewer saw:
//!
//! ```
//! use anabranch_sim::{RunOptions, load, run};
//!
//! let text = r#"
//!     schema = 1
//!     duration = "5 s"
//!     [link.wifi]
//!     rtt = "50 ms"
//!     rate = "2 Mb/s"
//!     [[session]]
//!     video = { kind = "bulk" }
//! "#;
//! let scenario = load(text, "example", None, &[]).unwrap();
//! let outcome = run(&scenario, &RunOptions::default(), &mut |_seconds| true);
//! assert!(outcome.metrics.sessions[0].transport.goodput_bps > 1.8e6);
//! ```
//!
//! The same scenario, seed and version give the same metrics to the last byte, on any machine.

pub mod catalogue;
mod error;
mod outcome;
pub mod parts;
mod quantity;
pub mod scenario;
pub mod traces;
mod world;

pub use error::{Error, nearest};
pub use outcome::{
    Column, Ended, EventColumns, Fairness, LinkMetrics, Mark, Metrics, Outcome, PathRecording, QueueDelay, Recording,
    SCHEMA, SessionMetrics, SessionRecording, Shown, jain,
};
pub use quantity::{Ratio, rate_bps, time_s};
pub use scenario::{Scenario, load};
pub use world::{RunOptions, run};
