//! Equivalence tests: the same test cases in simulation and live on the kernel, with a verdict for each.
//!
//! [`question`] defines the parts and criteria, [`test_cases`] the test cases. A [`measurement`] is the result of a run,
//! simulated or live; [`equivalence`] has the statistics, [`judgement`] the comparison. A [`campaign`] runs many test
//! cases, several at once, and repeats invalid runs; its [`report`] is printed and saved.

#![cfg(target_os = "linux")]

pub mod campaign;
pub mod equivalence;
pub mod judgement;
pub mod kernel;
pub mod measurement;
pub mod question;
pub mod report;
pub mod test_cases;
