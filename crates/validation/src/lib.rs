//! Is the simulator right, and are the papers?
//!
//! - [`rows`]: laws that theory or another program predicts, measured with the real endpoint over real links, each with its
//!   tolerance. The tests assert them; the program `validation` prints them with intervals over many seeds.
//! - [`claims`]: what the sticky schedulers' and the handoff paper say happens, measured and judged by written criteria.
//!   Nothing asserts a claim; the program `claims` prints the verdicts.
//!
//! Both programs write their part of `docs/validation.md`.

pub mod claims;
pub mod laboratory;
pub mod report;
pub mod rows;
pub mod statistics;
