//! Helpers of the tests of bitrate rules.

#![allow(dead_code, reason = "every test target uses its own part of this")]

pub mod fluid;
pub mod network;
pub mod session;
