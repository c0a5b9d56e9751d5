//! Processors that do not enter idle states.

use std::fs::File;
use std::io::{self, Write};

/// Holds the latency that all processors may have, in microseconds, as long as it is open (`pm_qos_interface` of
/// Linux).
const LATENCY_LIMIT: &str = "/dev/cpu_dma_latency";

/// Keeps processors from idle states, out of which they come late, until it is dropped: a processor without work polls.
///
/// A processor of a virtual machine that idles is given back to the host, and is late when other guests are busy: one
/// timer of 100 was up to 3.5 ms late. Threads that spin would prevent this, too, but would delay the kernel's workers:
/// with autogroups, even a thread with `SCHED_IDLE` has its session's full share.
///
/// It has no effect without the right to do this, or where the kernel does not choose the idle states.
pub(crate) struct NoIdleStates {
    /// Closing it ends the limit.
    _limit: io::Result<File>,
}

impl NoIdleStates {
    /// Keeps processors from idle states from now on.
    pub(crate) fn begin() -> Self {
        NoIdleStates { _limit: limit_latency() }
    }
}

/// A latency of zero, which holds until the file is closed.
fn limit_latency() -> io::Result<File> {
    let mut file = File::options().write(true).open(LATENCY_LIMIT)?;
    file.write_all(&0_i32.to_ne_bytes())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read};

    #[test]
    fn the_latency_limit_is_zero_while_it_is_held() {
        let limit = NoIdleStates::begin();
        let Ok(mut file) = File::open(LATENCY_LIMIT) else {
            let kind = limit._limit.unwrap_err().kind();
            assert!(matches!(kind, ErrorKind::PermissionDenied | ErrorKind::NotFound), "{kind:?}");
            return;
        };
        let mut latency = [0; 4];
        file.read_exact(&mut latency).unwrap();
        assert_eq!(i32::from_ne_bytes(latency), 0);
    }
}
