//! The kernel as judge: the same cells in simulation and live, side by side, with a verdict for each.
//!
//! - [`cells`]: what is compared, each cell as a scenario;
//! - [`observation`]: the two ways to run it, and what they give;
//! - [`equivalence`], [`judgement`]: the statistics of the verdict, and the verdict;
//! - [`campaign`]: many cells, several at once, and void runs again;
//! - [`report`]: tables.

#![cfg(target_os = "linux")]

pub mod campaign;
pub mod cells;
pub mod equivalence;
pub mod judgement;
pub mod observation;
pub mod report;
