//! Gives freed memory back to the operating system.
//!
//! The C library keeps what was freed for later use. After a crowd has left, that would be most of the memory of the
//! process, and no other process could have it.

use super::meter::Meter;
use std::time::Duration;

/// How often the memory in use is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Less freed memory than this is not worth the time that giving it back takes.
const LEAST_FREED: u64 = 16 << 20;

/// Decides when to give memory back: when much less is in use than since the last time.
#[derive(Debug, Default)]
struct Trimmer {
    most: u64,
}

impl Trimmer {
    /// Whether to give memory back, when `used` bytes are in use.
    fn look(&mut self, used: u64) -> bool {
        let freed = self.most.saturating_sub(used);
        if freed >= LEAST_FREED && freed >= self.most / 2 {
            self.most = used;
            return true;
        }
        self.most = self.most.max(used);
        false
    }
}

/// Gives memory back as long as it is polled.
pub(super) async fn give_back(meter: Meter) {
    let mut trimmer = Trimmer::default();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if trimmer.look(meter.bytes()) {
            // It takes milliseconds, in which this thread serves others.
            let _ = tokio::task::spawn_blocking(trim).await;
        }
    }
}

#[cfg(target_env = "gnu")]
fn trim() {
    // SAFETY: the function takes a number, may be called at any time from any thread, and only releases pages that the
    // allocator has free.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Other C libraries have no such function; musl gives memory back by itself.
#[cfg(not(target_env = "gnu"))]
fn trim() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_once_when_most_of_it_is_free() {
        let mut trimmer = Trimmer::default();
        let looks = [0, 100, 60, 49, 40, 90, 20, 10, 0].map(|mib: u64| trimmer.look(mib << 20));
        assert_eq!(looks, [false, false, false, true, false, false, true, false, true]);
        let mut small = Trimmer::default();
        assert!(!small.look(10 << 20) && !small.look(0));
    }
}
