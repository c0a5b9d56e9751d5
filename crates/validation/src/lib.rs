//! Measures whether the simulator is right.
//!
//! - [`rows`]: laws that theory or another program predicts, measured with the real endpoint over real links, each with
//!   its tolerance. The tests assert them; the program `validation` prints them with intervals over many seeds.
//! - [`traces`]: synthetic rates of WiFi and mobile networks and recorded ones; the program `traces` fits and compares
//!   them and writes the tables of `docs/validation/traces.md`.
//!
//! The program `validation` writes the tables of `docs/validation/laws.md`. `docs/validation.md` explains method and
//! result. The papers' claims are no part of this crate: `papers/` has them.

pub mod report;
pub mod rows;
pub mod runs;
pub mod statistics;
pub mod traces;
