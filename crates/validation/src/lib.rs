//! Is the simulator right, and are the papers?
//!
//! - [`rows`]: laws that theory or another program predicts, measured with the real endpoint over real links, each with its
//!   tolerance. The tests assert them; the program `validation` prints them with intervals over many seeds.
//! - [`claims`]: what the sticky schedulers' and the handoff paper say happens, measured and judged by written criteria.
//!   Nothing asserts a claim; the program `claims` prints the verdicts.
//!
//! - [`traces`]: made-up rates of WiFi and mobile networks beside recorded ones; the program `traces` fits and compares them
//!   and writes its part of `docs/traces.md`.
//!
//! The first two programs write their parts of `docs/validation.md`.

pub mod claims;
pub mod laboratory;
pub mod report;
pub mod rows;
pub mod statistics;
pub mod traces;
