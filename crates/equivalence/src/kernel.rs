//! The kernel under test.

use anabranch_testbed::{header_room, kernel_release};
use serde::{Deserialize, Serialize};

/// What a campaign has to know of the kernel that its live runs were made with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Its release, such as `6.12.8`.
    pub release: String,
    /// Bytes that its build reserves for headers in front of each packet: the simulated runs' `transport.header_room`.
    pub header_room: u32,
}

impl Kernel {
    /// The running one.
    ///
    /// # Errors
    /// If its room for headers cannot be found out.
    pub fn running() -> Result<Self, String> {
        let header_room = header_room().map_err(|error| error.to_string())?;
        Ok(Kernel { release: kernel_release(), header_room })
    }
}
