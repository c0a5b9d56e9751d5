//! Measures whether the simulator is right, and whether the papers are.
//!
//! - [`rows`]: laws that theory or another program predicts, measured with the real endpoint over real links, each with its
//!   tolerance. The tests assert them; the program `validation` prints them with intervals over many seeds.
//! - [`claims`]: the claims of four papers, measured and compared with written criteria. No test asserts a claim; the program
//!   `claims` prints the verdicts.
//! - [`traces`]: synthetic rates of WiFi and mobile networks beside recorded ones; the program `traces` fits and compares them
//!   and writes the tables of `docs/validation/traces.md`.
//!
//! The first two programs write the tables of `docs/validation/laws.md` and `docs/validation/claims-*.md`.
//! `docs/validation.md` explains method and result.

pub mod claims;
pub mod report;
pub mod rows;
pub mod runs;
pub mod statistics;
pub mod traces;
