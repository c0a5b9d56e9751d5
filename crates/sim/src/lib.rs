//! Simulation in virtual time: whole sessions over whole networks, described by a scenario.
//!
//! [`run`] simulates a scenario; the [`Outcome`](anabranch_observation::Outcome) has the metrics:
//!
//! ```
//! use anabranch_scenario::load;
//! use anabranch_sim::{RunOptions, run};
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
//! [`run_with`] also shows every segment to a [`Tap`]; [`Captures`] is one that writes packet captures.
//!
//! The same scenario, seed and version give the same metrics to the last byte, on any machine.

mod capture;
mod world;

pub use capture::{CaptureError, Captures};
pub use world::{RunOptions, Seen, Side, Tap, run, run_with};
