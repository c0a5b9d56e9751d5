//! The kernel as judge: the same cells in simulation and live, side by side, with a verdict for each.
//!
//! What is asked stands in [`question`], and of which scenarios in [`cells`]. An [`observation`] is what a run of one gives, in either world;
//! [`equivalence`] has the statistics of the verdict, [`judgement`] the verdict. A [`campaign`] runs many cells, several at once, and invalid
//! runs again; its [`report`] is for people and for files.

#![cfg(target_os = "linux")]

pub mod campaign;
pub mod cells;
pub mod equivalence;
pub mod judgement;
pub mod observation;
pub mod question;
pub mod report;
